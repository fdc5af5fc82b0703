//! The report on a terminal, and tables that the HTML page shares.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::iter::repeat;

use thinair_analyze::Settings;
use thinair_analyze::outcome::{Flow, OtherFlow, Outcome, SchcRules, Scheme};
use thinair_report::{Cell, Column, Style, Table};

use super::rows::{self, Columns, Rows};
use super::words;
use crate::terminal::sentence;

/// Number of flows listed by default.
pub(crate) const MOST_FLOWS: usize = 20;

/// Number of rows of CSV that are in memory at a time.
const CSV_ROWS: usize = 1_000;

/// Width of the wide table of flows without schemes, and of each scheme, in columns.
const WIDE: (usize, usize) = (124, 12);

/// Width from which the table of flows shows SPI and SSRC, in columns.
const MIDDLE: usize = 120;

/// Amount of detail in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Captures, schemes and flows.
    Best,
    /// Also layers, packet types and the start of the largest flow.
    All,
}

/// Returns the report as text.
pub(crate) fn report(
    settings: &Settings,
    outcome: &Outcome,
    extent: Extent,
    most_flows: usize,
    style: &Style,
    sentences: usize,
) -> String {
    let mut out = String::new();
    for input in &outcome.inputs {
        sentence(&mut out, "", &words::input(input), sentences);
    }
    let wide = WIDE.0 + WIDE.1 * outcome.totals.schemes.len();
    let breadth = match style.width {
        width if width >= wide => Breadth::Wide,
        width if width >= MIDDLE => Breadth::Middle,
        _ => Breadth::Narrow,
    };
    let mut flows = flows(outcome, most_flows, breadth);
    flows.note = left_out(outcome, flows.rows().len());
    let mut tables = vec![schemes(settings, outcome)];
    if extent == Extent::All {
        tables.extend([layers(outcome), packet_types(outcome), octets_by_type(outcome), late_waits(outcome)]);
        tables.extend(largest(outcome, 1).into_iter().map(start_up));
    }
    tables.push(flows);
    for table in tables.iter().filter(|table| !table.rows().is_empty()) {
        out.push('\n');
        out += &table.to_text(style);
    }
    if extent == Extent::All {
        out.push('\n');
        for scheme in &outcome.totals.schemes {
            sentence(&mut out, "", &words::result(outcome, scheme), sentences);
        }
    }
    out
}

/// Returns a line on options that list further flows; empty if all are listed.
fn left_out(outcome: &Outcome, shown: usize) -> String {
    let (listed, all) = (outcome.flows.len() - shown, outcome.totals.flows);
    let parts = [
        (listed > 0).then(|| format!("{} more with --all-flows", words::counted(listed as u64, "flow"))),
        (all > outcome.flows.len() as u64).then(|| format!("all {} with --csv", words::counted(all, "flow"))),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!("The largest {shown}; {}.", parts.join(", ")) }
}

/// Octets and savings of each scheme.
pub(crate) fn schemes(settings: &Settings, outcome: &Outcome) -> Table {
    let all: Vec<_> = outcome.totals.schemes.iter().collect();
    let mut table = rows::schemes(settings, outcome, &all, Columns::All);
    table.title = "Schemes".to_owned();
    table.note = format!(
        "Octets of packets and of feedback. Each packet was compressed, decompressed and compared: it is wrong if it did not come \
         back bit for bit. Headers are those of IP, transport, CoAP and RTP, or the compressed ones in their \
         place: means of all packets, and of {} (new flow). {}",
        words::first_packets(outcome),
        words::terms(settings, outcome)
    );
    table
}

/// Octets of headers and payload by layer.
pub(crate) fn layers(outcome: &Outcome) -> Table {
    let before = &outcome.totals.traffic.layers_in;
    let all: Vec<_> = outcome.totals.schemes.iter().collect();
    let mut rows = Rows::new(&all);
    rows.some("IP", before.ip, |scheme| scheme.layers_out.ip);
    rows.some("transport", before.transport, |scheme| scheme.layers_out.transport);
    rows.some("compressed", 0, |scheme| scheme.layers_out.rohc);
    rows.some("CoAP and RTP", before.application, |scheme| scheme.layers_out.application);
    rows.some("payload", before.payload, |scheme| scheme.layers_out.payload);
    rows.some("feedback", 0, |scheme| scheme.feedback_bytes);
    let mut table = rows.table();
    table.title = "Octets by layer".to_owned();
    table.note("Headers, as they are or compressed, and payload. Feedback goes the other way.")
}

/// Number of packets in each format.
pub(crate) fn packet_types(outcome: &Outcome) -> Table {
    types_table("Packets by type", outcome, |scheme| &scheme.packet_types)
}

/// Octets of headers in each format.
pub(crate) fn octets_by_type(outcome: &Outcome) -> Table {
    types_table("Octets of compressed headers by type", outcome, |scheme| &scheme.rohc_bytes_by_type)
}

/// Waiting time of a decompressor that starts late, in schemes without feedback.
pub(crate) fn late_waits(outcome: &Outcome) -> Table {
    let columns = [
        Column::text("scheme"),
        Column::number("longest").unit("packets"),
        Column::number("longest").unit("s"),
        Column::number("mean").unit("packets"),
        Column::number("mean").unit("s"),
    ];
    let mut table = Table::new("Late decompressors in U-mode", columns).note(
        "Packets and time of a flow from one IR packet to the next, or to the end: a decompressor that starts late, or has lost \
         its context, delivers nothing of the flow in between. In other modes it asks for an IR packet.",
    );
    for scheme in &outcome.totals.schemes {
        let Some(wait) = &scheme.late_wait else { continue };
        table.row([
            Cell::text(words::label(scheme)),
            Cell::integer(wait.packets),
            Cell::number(wait.seconds, 1),
            Cell::number(wait.mean_packets, 1),
            Cell::number(wait.mean_seconds, 1),
        ]);
    }
    table
}

fn types_table(title: &str, outcome: &Outcome, of: impl Fn(&Scheme) -> &Types) -> Table {
    let schemes = &outcome.totals.schemes;
    let columns = schemes.iter().map(|scheme| Column::number(words::label(scheme)));
    let mut table = Table::new(title, std::iter::once(Column::text("type")).chain(columns));
    for name in type_names(outcome) {
        let cells = schemes.iter().map(|scheme| match of_type(of(scheme), name) {
            0 => Cell::Empty,
            count => Cell::integer(count),
        });
        table.row(std::iter::once(Cell::text(name)).chain(cells));
    }
    table
}

/// Counts by packet format.
type Types = BTreeMap<Cow<'static, str>, u64>;

/// Returns the formats that any scheme sent; all rules of SCHC count as one.
pub(crate) fn type_names(outcome: &Outcome) -> BTreeSet<&str> {
    outcome
        .totals
        .schemes
        .iter()
        .flat_map(|scheme| scheme.packet_types.keys())
        .map(|name| type_name(name))
        .collect()
}

/// Returns the count of a format.
pub(crate) fn of_type(types: &Types, name: &str) -> u64 {
    types.iter().filter(|(one, _)| type_name(one) == name).map(|(_, count)| count).sum()
}

fn type_name(name: &str) -> &str {
    if name.starts_with("rule ") { "rule" } else { name }
}

/// Rules of SCHC, field by field: whole rules, up to about `most` fields.
pub(crate) fn rules(rules: &SchcRules, most: usize) -> Table {
    let columns = ["rule", "field", "FL", "FP", "TV", "MO", "CDA", "bits sent"].map(Column::text);
    let mut table = Table::new("", columns);
    for rule in &rules.rules {
        if table.rows().len() >= most {
            break;
        }
        for field in &rule.fields {
            table.row([
                Cell::text(format!("{} {}", rule.id, rule.direction)),
                Cell::text(&field.field),
                Cell::text(&field.fl),
                Cell::integer(field.fp),
                Cell::text(&field.tv),
                Cell::text(&field.mo),
                Cell::text(field.cda),
                Cell::text(field.sent.map_or_else(|| "varies".to_owned(), |bits| bits.to_string())),
            ]);
        }
    }
    table
}

/// Cost of the start of a flow in each scheme, and the packet from which on it has paid off.
pub(crate) fn start_up(flow: &Flow) -> Table {
    let columns = [
        Column::text("scheme"),
        Column::number("first packet").unit("B"),
        Column::number("mean").unit("B"),
        Column::text("gets cheaper than (after packets)"),
    ];
    let title = format!("Start-up and break-even: {}", words::ends(flow));
    let mut table = Table::new(title, columns).note(
        "Octets of a packet with payload. A scheme gets cheaper than another one when all octets of the flow so far, \
         feedback included, are fewer, and stay so; where that is so from the first packet on, nothing is listed.",
    );
    for scheme in &flow.schemes {
        let mean = words::per_packet(scheme.bytes_out + scheme.feedback_bytes, flow.packets);
        table.row([
            Cell::text(words::label(scheme)),
            Cell::integer(scheme.first_packet_bytes),
            Cell::number(mean, 1),
            Cell::text(words::overtaken(flow, scheme)),
        ]);
    }
    table
}

/// The largest flows. Narrow tables show only the best scheme, and no SSRC.
pub(crate) fn flows(outcome: &Outcome, most: usize, breadth: Breadth) -> Table {
    let several = outcome.inputs.len() > 1;
    let mut columns = Vec::new();
    if several {
        columns.push(Column::number("file"));
    }
    let flows = largest(outcome, most);
    let has_ssrcs = breadth != Breadth::Narrow && flows.iter().any(|flow| !flow.ssrcs.is_empty());
    columns.extend([Column::text("from"), Column::text("to"), Column::text("protocol / profile")]);
    columns.extend([Column::number("packets"), Column::number("octets"), Column::number("header").unit("B")]);
    match breadth {
        Breadth::Wide => columns.extend(
            outcome.totals.schemes.iter().map(|scheme| Column::number(words::label(scheme)).unit("B")),
        ),
        Breadth::Narrow | Breadth::Middle => {
            columns.extend([Column::text("best"), Column::number("header").unit("B")])
        }
    }
    if has_ssrcs {
        columns.push(Column::text("SSRC"));
    }
    let mut table = Table::new("Flows", columns);
    for flow in flows {
        let header = |octets| Cell::number(words::per_packet(octets, flow.packets), 1);
        let mut row = Vec::new();
        if several {
            row.push(Cell::integer(flow.input + 1));
        }
        row.extend([
            Cell::text(&flow.src),
            Cell::text(words::destination(flow)),
            Cell::text(words::carried_by(flow)),
            Cell::integer(flow.packets),
            Cell::integer(flow.traffic.bytes_in),
            header(flow.traffic.layers_in.all_headers()),
        ]);
        let after = |scheme: &Scheme| header(scheme.layers_out.all_headers());
        match breadth {
            Breadth::Wide => row.extend(flow.schemes.iter().map(after)),
            Breadth::Narrow | Breadth::Middle => {
                let best = flow.schemes.iter().min_by_key(|scheme| scheme.bytes_out + scheme.feedback_bytes);
                row.extend(best.into_iter().flat_map(|best| [Cell::text(words::label(best)), after(best)]));
            }
        }
        if has_ssrcs {
            row.push(Cell::text(words::ssrcs(flow)));
        }
        table.row(row);
    }
    table
}

/// Available width of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breadth {
    Narrow,
    Middle,
    Wide,
}

/// Returns the flows with most octets, largest first.
pub(crate) fn largest(outcome: &Outcome, most: usize) -> Vec<&Flow> {
    let mut flows: Vec<_> = outcome.flows.iter().collect();
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.traffic.bytes_in));
    flows.truncate(most);
    flows
}

/// Writes every flow under the names of the JSON document, many rows at a time: the largest ones in order of appearance, then the others
/// with octets only.
pub(crate) fn write_flows_csv(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    let mut columns: Vec<_> =
        ["path", "src", "dst", "protocol", "profile"].into_iter().map(Column::text).collect();
    columns.extend(["packets", "bytes_in", "header_bytes_in"].into_iter().map(Column::number));
    for scheme in &outcome.totals.schemes {
        let suffix = csv_suffix(scheme);
        columns.extend(CSV_OF_SCHEME.map(|name| Column::number(format!("{name}_{suffix}"))));
    }
    columns.extend([Column::text("profiles"), Column::number("spi"), Column::text("ssrcs")]);
    let flows = outcome.flows.iter().map(|flow| flow_cells(outcome, flow));
    let others = outcome.other_flows.iter().map(|flow| other_flow_cells(outcome, flow));
    let mut rows = flows.chain(others).peekable();
    let mut is_first = true;
    while is_first || rows.peek().is_some() {
        let mut table = Table::new("", columns.clone());
        rows.by_ref().take(CSV_ROWS).for_each(|row| table.row(row));
        let text = table.to_csv();
        // The header stands once.
        let rest = text.split_once('\n').map_or("", |(_, rows)| rows);
        out.write_all(if is_first { text.as_bytes() } else { rest.as_bytes() })?;
        is_first = false;
    }
    Ok(())
}

/// Path of an input in CSV.
fn path_cell(outcome: &Outcome, input: usize) -> Cell {
    Cell::text(outcome.inputs.get(input).map_or("", |input| input.path.as_str()))
}

fn flow_cells(outcome: &Outcome, flow: &Flow) -> Vec<Cell> {
    let mut row = vec![
        path_cell(outcome, flow.input),
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
            Cell::integer(scheme.first_packet_bytes),
            Cell::integer(scheme.not_applicable),
        ]);
    }
    row.push(Cell::text(flow.profiles.join(" ")));
    row.extend(identifiers(flow.spi, &flow.ssrcs));
    row
}

fn other_flow_cells(outcome: &Outcome, flow: &OtherFlow) -> Vec<Cell> {
    let mut row = vec![
        path_cell(outcome, flow.input),
        Cell::text(&flow.src),
        Cell::text(&flow.dst),
        Cell::text(&flow.protocol),
    ];
    row.extend([Cell::Empty, Cell::integer(flow.packets), Cell::integer(flow.bytes_in), Cell::Empty]);
    for (bytes_out, feedback_bytes) in flow.bytes_out.iter().zip(flow.feedback_bytes.iter().chain(repeat(&0)))
    {
        let mut cells = CSV_OF_SCHEME.map(|_| Cell::Empty);
        let saved_ratio = 1.0 - words::per_packet(bytes_out + feedback_bytes, flow.bytes_in);
        cells[0] = Cell::integer(*bytes_out);
        cells[2] = Cell::number(saved_ratio, 4);
        cells[4] = Cell::integer(*feedback_bytes);
        row.extend(cells);
    }
    row.push(Cell::Empty);
    row.extend(identifiers(flow.spi, &flow.ssrcs));
    row
}

/// SPI and SSRCs of a flow.
fn identifiers(spi: Option<u32>, ssrcs: &[u32]) -> [Cell; 2] {
    let ssrcs: Vec<_> = ssrcs.iter().map(u32::to_string).collect();
    [spi.map_or(Cell::Empty, Cell::integer), Cell::text(ssrcs.join(" "))]
}

const CSV_OF_SCHEME: [&str; 9] = [
    "bytes_out",
    "header_bytes_out",
    "saved_ratio",
    "refresh_bytes",
    "feedback_bytes",
    "lost",
    "roundtrip_mismatches",
    "first_packet_bytes",
    "not_applicable",
];

/// Suffix of a scheme's columns in CSV: `coap_u`, `schc`. `rohc-v1` in U-mode, once the only scheme, has `u`.
fn csv_suffix(scheme: &Scheme) -> String {
    match (scheme.scheme, scheme.mode) {
        (super::ROHC_V1, Some(mode)) if scheme.contexts.is_none() => mode.to_owned(),
        _ => scheme.id().replace('/', "_"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::File;

    use thinair_analyze::{Analysis, SchemeName, Survey};
    use thinair_rohc::{Channel, CidSpace, Mode, ProfileSet};

    use super::*;

    #[test]
    fn all_schemes_fit_the_terminal() {
        let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
        let mut settings = Settings::new(channel, &[]);
        let captures = ["coap_udp4_observe.pcap", "coap_udp6_get_con.pcap"]
            .map(|name| (name, format!("../../captures/{name}")));
        let mut survey = Survey::default();
        for (_, path) in &captures {
            survey.read(&settings, File::open(path).unwrap(), |_| ()).unwrap();
        }
        let modes = [Mode::Unidirectional, Mode::Optimistic];
        let all = SchemeName::USUAL.iter().flat_map(|name| name.specs(&channel, &modes).unwrap());
        settings.schemes = survey.applicable(&all.collect::<Vec<_>>());
        let mut analysis = Analysis::new(settings.clone(), survey);
        for (name, path) in &captures {
            analysis.read(name, File::open(path).unwrap(), |_| ()).unwrap();
        }
        let outcome = analysis.finish();
        assert_eq!(outcome.totals.schemes.len(), 6);
        for width in [60, 80, 100] {
            let text = report(&settings, &outcome, Extent::All, MOST_FLOWS, &Style::plain(width), width);
            assert!(text.contains("\nSchemes\n") && text.contains("\nROHC v1 in U-mode: "), "{text}");
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{line}");
            }
        }
        // Lines of a pipe are whole.
        let text = report(&settings, &outcome, Extent::All, MOST_FLOWS, &Style::plain(80), usize::MAX);
        assert_eq!(text.matches(" came back bit for bit.\n").count(), 6, "{text}");
    }
}
