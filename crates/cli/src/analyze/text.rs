//! The report on a terminal, and the tables that the page shares with it.

use std::collections::{BTreeMap, BTreeSet};

use thinair_analyze::Settings;
use thinair_analyze::outcome::{Flow, Outcome, Scheme};
use thinair_report::{Cell, Column, Style, Table};

use super::words;

/// Flows that are listed unless all are asked for.
pub(crate) const MOST_FLOWS: usize = 20;

/// Columns that the wide table of flows needs.
const WIDE: usize = 130;

/// The whole report as text: inputs, schemes, layers, packet types, flows, and the result in a sentence.
pub(crate) fn report(settings: &Settings, outcome: &Outcome, most_flows: usize, style: &Style) -> String {
    let mut out = String::new();
    for input in &outcome.inputs {
        out += &words::input(input);
        out.push('\n');
    }
    let breadth = if style.width < WIDE { Breadth::Narrow } else { Breadth::Wide };
    let mut flows = flows(outcome, most_flows, breadth);
    if let more @ 1.. = outcome.flows.len().saturating_sub(most_flows) {
        flows.note = format!(
            "The largest {most_flows}; {} more with --all-flows.",
            words::counted(more as u64, "flow")
        );
    }
    let tables = [schemes(settings, outcome), layers(outcome), packet_types(outcome), flows];
    for table in tables.iter().filter(|table| !table.rows().is_empty()) {
        out.push('\n');
        out += &table.to_text(style);
    }
    out.push('\n');
    for scheme in &outcome.totals.schemes {
        out += &words::result(outcome, scheme);
        out.push('\n');
    }
    out
}

/// What each scheme made of all packets.
pub(crate) fn schemes(settings: &Settings, outcome: &Outcome) -> Table {
    let (packets, traffic) = (outcome.totals.packets, &outcome.totals.traffic);
    let mut rows = Rows::new("Schemes", "", outcome);
    rows.add("octets", Cell::integer(traffic.bytes_in), |scheme| Cell::integer(scheme.bytes_out));
    rows.add("saved", Cell::Empty, |scheme| Cell::Percent(scheme.saved_ratio));
    let header = |octets| Cell::number(words::per_packet(octets, packets), 1);
    rows.add("header octets a packet", header(traffic.header_bytes_in), |s| header(s.header_bytes_out));
    rows.add("refreshes", Cell::Empty, |scheme| Cell::integer(scheme.refreshes));
    rows.add("octets of refreshes", Cell::Empty, |scheme| Cell::integer(scheme.refresh_bytes));
    if settings.billing.is_some() {
        let cost = |cost: Option<f64>| cost.map_or(Cell::Empty, |cost| Cell::number(cost, 2));
        rows.add("cost, feedback included", cost(traffic.cost_in), |scheme| cost(scheme.cost_out));
    }
    if let Some(mtu) = settings.link_mtu {
        let count = |count: Option<u64>| count.map_or(Cell::Empty, Cell::integer);
        let name = format!("packets above {mtu} octets");
        rows.add(&name, count(traffic.over_mtu_in), |scheme| count(scheme.over_mtu_out));
    }
    if settings.loss.is_some() {
        rows.add("packets lost", Cell::Empty, |scheme| Cell::integer(scheme.lost));
    }
    rows.add("packets that differ after the round trip", Cell::Empty, |scheme| {
        Cell::integer(scheme.roundtrip_mismatches)
    });
    rows.table.note("Headers are those of IP and transport, and what is sent in their place. Octets of refreshes are their ROHC headers.")
}

/// Where the octets are.
pub(crate) fn layers(outcome: &Outcome) -> Table {
    let before = &outcome.totals.traffic.layers_in;
    let mut rows = Rows::new("Octets by layer", "layer", outcome);
    rows.octets("IP headers", before.ip, |scheme| scheme.layers_out.ip);
    rows.octets("transport headers", before.transport, |scheme| scheme.layers_out.transport);
    rows.octets("ROHC headers", 0, |scheme| scheme.layers_out.rohc);
    rows.octets("CoAP and RTP headers", before.application, |scheme| scheme.layers_out.application);
    rows.octets("payload", before.payload, |scheme| scheme.layers_out.payload);
    rows.octets("feedback, the other way", 0, |scheme| scheme.feedback_bytes);
    rows.table
}

/// How often each format was sent, and what its headers took.
pub(crate) fn packet_types(outcome: &Outcome) -> Table {
    let schemes = &outcome.totals.schemes;
    let mut columns = vec![Column::text("packet type")];
    columns.extend(schemes.iter().map(|scheme| Column::number(words::mode(scheme))));
    columns.extend(schemes.iter().map(|scheme| Column::number(format!("{} octets", words::mode(scheme)))));
    let mut table = Table::new("Packets by type, and octets of their ROHC headers", columns);
    for name in type_names(outcome) {
        let of = |counts: &BTreeMap<&str, u64>| Cell::integer(counts.get(name).copied().unwrap_or(0));
        let packets = schemes.iter().map(|scheme| of(&scheme.packet_types));
        let octets = schemes.iter().map(|scheme| of(&scheme.rohc_bytes_by_type));
        table.row(std::iter::once(Cell::text(name)).chain(packets).chain(octets));
    }
    table
}

/// The formats that were sent in any scheme.
pub(crate) fn type_names(outcome: &Outcome) -> BTreeSet<&'static str> {
    outcome.totals.schemes.iter().flat_map(|scheme| scheme.packet_types.keys().copied()).collect()
}

/// A table with one row a quantity, and columns `before` and one a scheme: few columns fit everywhere.
struct Rows<'o> {
    table: Table,
    schemes: &'o [Scheme],
}

impl<'o> Rows<'o> {
    fn new(title: &str, heading: &str, outcome: &'o Outcome) -> Self {
        let schemes = &outcome.totals.schemes;
        let mut columns = vec![Column::text(heading), Column::number("before")];
        columns.extend(schemes.iter().map(|scheme| Column::number(words::name(scheme))));
        Self { table: Table::new(title, columns), schemes }
    }

    fn add(&mut self, name: &str, before: Cell, after: impl Fn(&Scheme) -> Cell) {
        let after = self.schemes.iter().map(after);
        self.table.row([Cell::text(name), before].into_iter().chain(after));
    }

    /// A row of octets, unless they are none everywhere.
    fn octets(&mut self, name: &str, before: u64, after: impl Fn(&Scheme) -> u64) {
        if before > 0 || self.schemes.iter().any(|scheme| after(scheme) > 0) {
            self.add(name, Cell::integer(before), |scheme| Cell::integer(after(scheme)));
        }
    }
}

/// The largest flows. Less is said of each where the table must be narrow.
pub(crate) fn flows(outcome: &Outcome, most: usize, breadth: Breadth) -> Table {
    let several = outcome.inputs.len() > 1;
    let mut columns = Vec::new();
    if several {
        columns.push(Column::number("file"));
    }
    columns.extend([Column::text("from"), Column::text("to")]);
    match breadth {
        Breadth::Wide => columns.extend([Column::text("protocol"), Column::text("profile")]),
        Breadth::Narrow => columns.push(Column::text("protocol / profile")),
    }
    columns.extend([Column::number("packets"), Column::number("octets"), Column::number("header").unit("B")]);
    for scheme in &outcome.totals.schemes {
        if breadth == Breadth::Wide {
            columns.push(Column::number(format!("{} octets", words::mode(scheme))));
        }
        columns.push(Column::number(format!("{} header", words::mode(scheme))).unit("B"));
    }
    let mut table = Table::new("Flows", columns);
    for flow in largest(outcome, most) {
        let header = |octets| Cell::number(words::per_packet(octets, flow.packets), 1);
        let mut row = Vec::new();
        if several {
            row.push(Cell::integer(flow.input + 1));
        }
        row.extend([Cell::text(&flow.src), Cell::text(&flow.dst)]);
        match breadth {
            Breadth::Wide => row.extend([Cell::text(&flow.protocol), Cell::text(flow.profile)]),
            Breadth::Narrow => row.push(Cell::text(format!("{} / {}", flow.protocol, flow.profile))),
        }
        row.extend([
            Cell::integer(flow.packets),
            Cell::integer(flow.traffic.bytes_in),
            header(flow.traffic.header_bytes_in),
        ]);
        for scheme in &flow.schemes {
            if breadth == Breadth::Wide {
                row.push(Cell::integer(scheme.bytes_out));
            }
            row.push(header(scheme.header_bytes_out));
        }
        table.row(row);
    }
    table
}

/// Room for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breadth {
    Narrow,
    Wide,
}

fn largest(outcome: &Outcome, most: usize) -> Vec<&Flow> {
    let mut flows: Vec<_> = outcome.flows.iter().collect();
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.traffic.bytes_in));
    flows.truncate(most);
    flows
}

/// Every flow, in order of appearance, under the names of the JSON document.
pub(crate) fn flows_csv(outcome: &Outcome) -> String {
    let mut columns: Vec<_> =
        ["path", "src", "dst", "protocol", "profile"].into_iter().map(Column::text).collect();
    columns.extend(["packets", "bytes_in", "header_bytes_in"].into_iter().map(Column::number));
    for scheme in &outcome.totals.schemes {
        let suffix = scheme.mode.map_or_else(|| scheme.scheme.to_owned(), str::to_owned);
        let names =
            ["bytes_out", "header_bytes_out", "saved_ratio", "refresh_bytes", "feedback_bytes", "lost"];
        let names = names.into_iter().chain(["roundtrip_mismatches"]);
        columns.extend(names.map(|name| Column::number(format!("{name}_{suffix}"))));
    }
    let mut table = Table::new("", columns);
    for flow in &outcome.flows {
        let path = outcome.inputs.get(flow.input).map_or("", |input| input.path.as_str());
        let mut row = vec![
            Cell::text(path),
            Cell::text(&flow.src),
            Cell::text(&flow.dst),
            Cell::text(&flow.protocol),
            Cell::text(flow.profile),
            Cell::integer(flow.packets),
            Cell::integer(flow.traffic.bytes_in),
            Cell::integer(flow.traffic.header_bytes_in),
        ];
        for scheme in &flow.schemes {
            row.extend([
                Cell::integer(scheme.bytes_out),
                Cell::integer(scheme.header_bytes_out),
                Cell::number(scheme.saved_ratio, 4),
                Cell::integer(scheme.refresh_bytes),
                Cell::integer(scheme.feedback_bytes),
                Cell::integer(scheme.lost),
                Cell::integer(scheme.roundtrip_mismatches),
            ]);
        }
        table.row(row);
    }
    table.to_csv()
}
