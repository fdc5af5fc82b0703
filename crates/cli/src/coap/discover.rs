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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use thinair_coap::Response;

    use super::*;

    fn shown(links: &'static str) -> String {
        let response = Response::content(links.as_bytes()).format(40);
        let options = response.options.clone();
        let options = options.as_options();
        table(&Received { code: response.code, options, payload: response.payload }).unwrap()
    }

    /// RFC 6690, section 5, with a comma in a quoted value and an attribute without a value.
    #[test]
    fn each_link_is_a_row_with_its_attributes_in_columns() {
        let text = shown(r#"</s/temp>;rt="t c";if=sensor;ct="0 60";sz=12;title="a, b";obs,</f>;ct=65000"#);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.contains("/s/temp") || line.contains("/f"))
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(
            rows,
            [vec!["/s/temp", "t c", "sensor", "plain cbor", "12", "a, b", "obs"], vec!["/f", "65000"]],
            "{text}"
        );
    }

    #[test]
    fn escape_sequences_in_a_list_of_links_are_shown_and_not_sent() {
        let text = shown("</\x1b[2J>;rt=\"\x1b]0;t\x07\";\u{9b}2J=\"\x7f\"");
        assert!(text.contains(r"\u{1b}[2J"), "{text}");
        assert!(!text.chars().any(|character| character.is_control() && character != '\n'), "{text:?}");
    }
}
