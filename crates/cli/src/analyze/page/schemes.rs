//! Which schemes the page shows, and their table.

use thinair_analyze::Settings;
use thinair_analyze::outcome::{Outcome, Scheme};
use thinair_report::{Cell, Column, Table};

use crate::analyze::words;

/// Name of the traffic as it came.
pub(super) const BEFORE: &str = "before";

/// Octets that a scheme sends, feedback included.
pub(super) fn sent(scheme: &Scheme) -> u64 {
    scheme.sent_bytes()
}

/// The best mode of each scheme, the one that needs fewest octets first.
pub(super) struct Shown<'o> {
    outcome: &'o Outcome,
    /// Places in the outcome, and the schemes.
    schemes: Vec<(usize, &'o Scheme)>,
    /// Schemes that send the same packets as one that is shown, which they stand with.
    equal: Vec<(&'o Scheme, &'o Scheme)>,
}

impl<'o> Shown<'o> {
    pub(super) fn of(outcome: &'o Outcome) -> Self {
        let mut shown = Self { outcome, schemes: Vec::new(), equal: Vec::new() };
        if outcome.totals.packets == 0 {
            return shown;
        }
        let mut best: Vec<(usize, &Scheme)> = Vec::new();
        for (at, scheme) in outcome.totals.schemes.iter().enumerate() {
            let rank = |scheme: &Scheme| (!is_recommended(outcome, scheme), sent(scheme));
            match best.iter_mut().find(|(_, one)| one.scheme == scheme.scheme) {
                Some(one) if rank(scheme) < rank(one.1) => *one = (at, scheme),
                Some(_) => {}
                None => best.push((at, scheme)),
            }
        }
        best.sort_by_key(|(_, scheme)| !is_recommended(outcome, scheme));
        for (at, scheme) in best {
            match shown.schemes.iter().find(|(_, one)| sends_the_same(one, scheme)) {
                Some((_, one)) => shown.equal.push((scheme, one)),
                None => shown.schemes.push((at, scheme)),
            }
        }
        shown.schemes.sort_by_key(|(_, scheme)| sent(scheme));
        shown
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &'o Scheme)> {
        self.schemes.iter().copied()
    }

    /// The scheme that is recommended, or else the one that needs fewest octets; none if there is no packet.
    pub(super) fn best(&self) -> Option<&'o Scheme> {
        let recommended = self.iter().find(|(_, scheme)| is_recommended(self.outcome, scheme));
        recommended.or_else(|| self.iter().next()).map(|(_, scheme)| scheme)
    }

    /// Share of all octets that a scheme does not send: negative if it sends more.
    pub(super) fn saved(&self, scheme: &Scheme) -> f64 {
        saved(self.outcome, scheme)
    }

    /// A sentence for each shown scheme that others stand with.
    pub(super) fn left_out(&self) -> Vec<String> {
        let with = |shown: &Scheme| -> Vec<&str> {
            let equal = self.equal.iter().filter(|(_, one)| one.id() == shown.id());
            equal.map(|(scheme, _)| scheme.scheme).collect()
        };
        let sentence = |(_, shown): (usize, &Scheme)| match with(shown).as_slice() {
            [] => None,
            [one] => Some(format!("{one} sends the same packets as {} here.", words::label(shown))),
            several => Some(format!(
                "{} send the same packets as {} here.",
                several.join(" and "),
                words::label(shown)
            )),
        };
        self.iter().filter_map(sentence).collect()
    }
}

fn is_recommended(outcome: &Outcome, scheme: &Scheme) -> bool {
    outcome.recommendation.as_ref().is_some_and(|best| {
        best.scheme == scheme.scheme && scheme.mode == Some(best.mode) && sent(scheme) == best.bytes_out
    })
}

fn sends_the_same(one: &Scheme, other: &Scheme) -> bool {
    sent(one) == sent(other) && one.layers_out == other.layers_out && one.packet_types == other.packet_types
}

fn saved(outcome: &Outcome, scheme: &Scheme) -> f64 {
    match outcome.totals.traffic.bytes_in {
        0 => 0.0,
        before => 1.0 - sent(scheme) as f64 / before as f64,
    }
}

/// Which columns a table of schemes has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    /// Those that decide: as many as a telephone has room for.
    Deciding,
    All,
}

/// A row for the traffic as it came, and one for each scheme.
pub(super) fn table(settings: &Settings, outcome: &Outcome, schemes: &[&Scheme], columns: Columns) -> Table {
    let (packets, traffic) = (outcome.totals.packets, &outcome.totals.traffic);
    let all = columns == Columns::All;
    let mut rows = Rows::new(schemes);
    rows.column("octets", Cell::integer(traffic.bytes_in), |scheme| Cell::integer(sent(scheme)));
    rows.column("saved", Cell::Empty, |scheme| Cell::Percent(saved(outcome, scheme)));
    let header = |octets| Cell::number(words::per_packet(octets, packets), 1);
    rows.column("headers (B)", header(traffic.layers_in.all_headers()), |scheme| {
        header(scheme.layers_out.all_headers())
    });
    if all || outcome.mismatches() > 0 {
        rows.column("packets that differ", Cell::Empty, |scheme| Cell::integer(scheme.roundtrip_mismatches));
    }
    if all {
        rows.some("feedback", |scheme| scheme.feedback_bytes);
        rows.some("refreshes", |scheme| scheme.refresh_bytes);
    }
    if settings.billing.is_some() {
        let cost = |cost: Option<f64>| cost.map_or(Cell::Empty, |cost| Cell::number(cost, 2));
        rows.column("cost", cost(traffic.cost_in), |scheme| cost(scheme.cost_out));
    }
    if let Some(mtu) = settings.link_mtu {
        let count = |count: Option<u64>| count.map_or(Cell::Empty, Cell::integer);
        let name = format!("above {mtu} octets");
        rows.column(&name, count(traffic.over_mtu_in), |scheme| count(scheme.over_mtu_out));
    }
    if settings.loss.is_some() {
        rows.column("packets lost", Cell::Empty, |scheme| Cell::integer(scheme.lost));
    }
    rows.some("packets as they are", |scheme| scheme.not_applicable);
    rows.table()
}

/// A table that grows by columns.
struct Rows<'s> {
    schemes: &'s [&'s Scheme],
    columns: Vec<Column>,
    /// Traffic as it came, and then each scheme.
    rows: Vec<Vec<Cell>>,
}

impl<'s> Rows<'s> {
    fn new(schemes: &'s [&'s Scheme]) -> Self {
        let names =
            std::iter::once(BEFORE.to_owned()).chain(schemes.iter().map(|scheme| words::label(scheme)));
        let rows = names.map(|name| vec![Cell::text(name)]).collect();
        Self { schemes, columns: vec![Column::text("scheme")], rows }
    }

    fn column(&mut self, heading: &str, before: Cell, after: impl Fn(&Scheme) -> Cell) {
        self.columns.push(Column::number(heading));
        let cells = std::iter::once(before).chain(self.schemes.iter().map(|scheme| after(scheme)));
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.push(cell);
        }
    }

    /// A column of counts, unless all are zero.
    fn some(&mut self, heading: &str, after: impl Fn(&Scheme) -> u64) {
        if self.schemes.iter().any(|scheme| after(scheme) > 0) {
            self.column(heading, Cell::Empty, |scheme| match after(scheme) {
                0 => Cell::Empty,
                count => Cell::integer(count),
            });
        }
    }

    fn table(self) -> Table {
        let mut table = Table::new("", self.columns);
        for row in self.rows {
            table.row(row);
        }
        table
    }
}
