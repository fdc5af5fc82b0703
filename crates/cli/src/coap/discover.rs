//! A list of links (RFC 6690) as a table.

use anyhow::Context as _;
use thinair_coap::Received;
use thinair_coap::link_format::links;
use thinair_report::{Cell, Column, Table};

use super::names;
use crate::terminal::{print, style};

/// Width of the output in columns, if it is not a terminal.
const PLAIN_WIDTH: usize = 120;

/// Link attributes with their own column.
const COLUMNS: [&str; 5] = ["rt", "if", "ct", "sz", "title"];

pub(super) fn show(response: &Received<'_>) -> anyhow::Result<()> {
    print(&table(response)?)
}

/// Returns the table, with control characters escaped.
pub(super) fn table(response: &Received<'_>) -> anyhow::Result<String> {
    let text = std::str::from_utf8(&response.payload).context("the list of links is not UTF-8")?;
    let columns = ["resource", "type (rt)", "interface (if)", "formats (ct)", "octets (sz)", "title", "more"];
    let mut table = Table::new("", columns.map(Column::text));
    for link in links(text) {
        let link = link.context("the list of links is malformed")?;
        let of = |name: &str| {
            let values: Vec<_> =
                link.attributes().filter(|(other, _)| *other == name).map(|(_, value)| value).collect();
            names::printable(&values.join(" "))
        };
        let more = link.attributes().filter(|(name, _)| !COLUMNS.contains(name));
        let more: Vec<_> = more
            .map(|(name, value)| if value.is_empty() { name.to_owned() } else { format!("{name}={value}") })
            .collect();
        let [kind, interface, formats, octets, title] = COLUMNS.map(of);
        let formats = formats.split(' ').map(|number| match number.parse().ok().and_then(names::format) {
            Some(name) => name.split_once('/').map_or(name, |(_, short)| short).to_owned(),
            None => number.to_owned(),
        });
        let formats = formats.collect::<Vec<_>>().join(" ");
        let target = names::printable(link.target);
        let more = names::printable(&more.join(" "));
        table.row([target, kind, interface, formats, octets, title, more].map(Cell::text));
    }
    Ok(table.to_text(&style(PLAIN_WIDTH)))
}
