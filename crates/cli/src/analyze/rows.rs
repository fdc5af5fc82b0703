//! Tables with a row for the uncompressed traffic and one for each scheme, so that the number of columns
//! stays fixed.

use thinair_analyze::Settings;
use thinair_analyze::outcome::{Outcome, Scheme};
use thinair_report::{Cell, Column, Table};

use super::words;

/// Name of the uncompressed traffic.
pub(crate) const BEFORE: &str = "before";

/// Selection of columns in a table of schemes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Columns {
    /// Columns for a decision, few enough for a phone.
    Deciding,
    All,
}

/// Returns a table with a row for the uncompressed traffic, and one for each scheme.
pub(crate) fn schemes(
    settings: &Settings,
    outcome: &Outcome,
    schemes: &[&Scheme],
    columns: Columns,
) -> Table {
    let (packets, traffic) = (outcome.totals.packets, &outcome.totals.traffic);
    let all = columns == Columns::All;
    let mut rows = Rows::new(schemes);
    rows.column("octets", Cell::integer(traffic.bytes_in), |scheme| Cell::integer(scheme.sent_bytes()));
    rows.column("saved", Cell::Empty, |scheme| Cell::Percent(scheme.saved_ratio));
    let header = |octets| Cell::number(words::per_packet(octets, packets), 1);
    rows.column("headers (B)", header(traffic.layers_in.all_headers()), |scheme| {
        header(scheme.layers_out.all_headers())
    });
    if all {
        let header = |octets| Cell::number(words::per_packet(octets, outcome.totals.flows), 1);
        rows.column("new flow", header(traffic.first_header_bytes_in), |scheme| {
            header(scheme.first_header_bytes_out)
        });
    }
    if all || outcome.mismatches() > 0 {
        rows.column("wrong", Cell::Empty, |scheme| Cell::integer(scheme.roundtrip_mismatches));
    }
    if all {
        rows.some("feedback", 0, |scheme| scheme.feedback_bytes);
        rows.some("refreshes", 0, |scheme| scheme.refresh_bytes);
    }
    if settings.billing.is_some() {
        let tariff = settings.tariff.as_ref();
        let name = tariff.map_or("cost".to_owned(), |tariff| format!("cost ({})", tariff.currency));
        let decimals = tariff.map_or(2, |tariff| tariff.decimals(2));
        let cost = |cost: Option<f64>| cost.map_or(Cell::Empty, |cost| Cell::number(cost, decimals));
        rows.column(&name, cost(traffic.cost_in), |scheme| cost(scheme.cost_out));
    }
    if let Some(mtu) = settings.link_mtu {
        let count = |count: Option<u64>| count.map_or(Cell::Empty, Cell::integer);
        let name = format!("above {mtu} octets");
        rows.column(&name, count(traffic.over_mtu_in), |scheme| count(scheme.over_mtu_out));
    }
    if settings.loss.is_some() {
        rows.column("packets lost", Cell::Empty, |scheme| Cell::integer(scheme.lost));
    }
    rows.some("not compressed", 0, |scheme| scheme.not_applicable);
    rows.table()
}

/// A table that grows by columns.
pub(crate) struct Rows<'s> {
    schemes: &'s [&'s Scheme],
    columns: Vec<Column>,
    /// Cells of the uncompressed traffic, then of each scheme.
    rows: Vec<Vec<Cell>>,
}

impl<'s> Rows<'s> {
    pub(crate) fn new(schemes: &'s [&'s Scheme]) -> Self {
        let names =
            std::iter::once(BEFORE.to_owned()).chain(schemes.iter().map(|scheme| words::label(scheme)));
        let rows = names.map(|name| vec![Cell::text(name)]).collect();
        Self { schemes, columns: vec![Column::text("scheme")], rows }
    }

    pub(crate) fn column(&mut self, heading: &str, before: Cell, after: impl Fn(&Scheme) -> Cell) {
        self.columns.push(Column::number(heading));
        let cells = std::iter::once(before).chain(self.schemes.iter().map(|scheme| after(scheme)));
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.push(cell);
        }
    }

    /// Adds a column of counts, unless all are zero.
    pub(crate) fn some(&mut self, heading: &str, before: u64, after: impl Fn(&Scheme) -> u64) {
        let some = |count| if count == 0 { Cell::Empty } else { Cell::integer(count) };
        if before > 0 || self.schemes.iter().any(|scheme| after(scheme) > 0) {
            self.column(heading, some(before), |scheme| some(after(scheme)));
        }
    }

    pub(crate) fn table(self) -> Table {
        let mut table = Table::new("", self.columns);
        for row in self.rows {
            table.row(row);
        }
        table
    }
}
