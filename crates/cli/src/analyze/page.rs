//! The report as an HTML page: the decision first, then its reasons, then details that a reader unfolds.
//!
//! All octets on the page are octets sent, feedback included, so that bars, tables and figures agree.

mod shown;
mod terms;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use thinair_analyze::Settings;

use thinair_analyze::outcome::{Flow, MOST_COURSES, Outcome, Scheme};
use thinair_report::{
    Axis, Bars, Cell, Column, Document, Figure, Lines, Numerals, Section, Series, StackedBars, Table, Tile,
};

use self::shown::ShownSchemes;
use super::advice::Advice;
use super::{rows, text, words};

/// Format of numbers in sentences and figures of the page.
const N: Numerals = Numerals::TYPESET;

/// Maximum number of flows listed, limited for small screens.
const MOST_FLOWS: usize = 60;

/// Number of SCHC rule fields from which on no further rule is listed.
const MOST_FIELDS: usize = 40;

/// Number of packet types with their own segment in a bar.
const MOST_PARTS: usize = 6;

pub(crate) fn document(settings: &Settings, outcome: &Outcome, advice: &Advice) -> Document {
    let shown = ShownSchemes::of(outcome);
    let document = Document::new(title(&shown)).subtitle(subtitle(outcome));
    let sections = [Some(summary(settings, outcome, &shown)), bill(outcome), Some(decision(advice))];
    let sections = sections.into_iter().flatten();
    let sections = sections.chain([compared(settings, outcome, &shown), layers(outcome, &shown)]);
    let document = sections.fold(document, Document::section);
    let details = [all_modes(settings, outcome, &shown), courses(outcome, &shown)];
    let details = details.into_iter().chain([headers(outcome, &shown), flows(outcome), rules(outcome)]);
    let details = details.flatten().chain([captures(outcome)]);
    details.map(Section::folded).fold(document, Document::section)
}

/// Returns the finding in a few words.
fn title(shown: &ShownSchemes<'_>) -> String {
    match shown.best() {
        Some(best) if best.saved_ratio > 0.0 => {
            format!("{} saves {}", words::name(best), N.percent(best.saved_ratio, 1))
        }
        Some(_) => "Header compression saves nothing here".to_owned(),
        None => "No IP packet to compress".to_owned(),
    }
}

fn subtitle(outcome: &Outcome) -> String {
    let files = match outcome.inputs.as_slice() {
        [only] => only.path.clone(),
        several => counted(several.len() as u64, "capture"),
    };
    let packets = counted(outcome.totals.packets, "IP packet");
    format!("{files}: {packets} in {}", counted(outcome.totals.flows, "flow"))
}

/// Key figures: what is paid, for what most of it, what changes by the best scheme, and what is left.
fn summary(settings: &Settings, outcome: &Outcome, shown: &ShownSchemes<'_>) -> Section {
    let (packets, traffic) = (outcome.totals.packets, &outcome.totals.traffic);
    let section = Section::new("");
    let Some(best) = shown.best() else {
        return section.text("Nothing was compressed. The captures and what they hold are listed below.");
    };
    let mean = |octets: u64| N.number(words::per_packet(octets, packets), 1);
    let header = change(mean(traffic.layers_in.all_headers()), mean(best.layers_out.all_headers()));
    let octets = change(N.integer(traffic.bytes_in.into()), N.integer(best.sent_bytes().into()));
    let fewer = if best.saved_ratio < 0.0 { "more octets sent" } else { "fewer octets sent" };
    let [paid, left] = price(settings, outcome, best).unwrap_or_else(|| {
        let paid = Tile::new("octets of IP packets", Cell::integer(traffic.bytes_in));
        let feedback = if best.feedback_bytes > 0 { "feedback included; " } else { "" };
        let left = Tile::new("octets that are left", Cell::integer(best.sent_bytes()));
        [paid.detail(counted(packets, "packet")), left.detail(format!("{feedback}{}", restored(outcome)))]
    });
    let largest = outcome.bill.first().map(|row| {
        let remedy = row.remedy.map_or(String::new(), |remedy| format!("; {remedy}"));
        let detail = format!("largest part of all frames{remedy}");
        Tile::new(words::cause(row), Cell::Percent(row.share)).detail(detail)
    });
    let saved = Tile::new(fewer, Cell::Percent(best.saved_ratio.abs()))
        .detail(format!("{octets} octets; headers of a packet, mean: {header}\u{202f}B"));
    section.tiles([Some(paid), largest, Some(saved), Some(left)].into_iter().flatten())
}

/// Price of a month before, and with the recommended scheme; where none is recommended or the capture is too short, price of the
/// capture, and with the best scheme. `None` without a price.
fn price(settings: &Settings, outcome: &Outcome, best: &Scheme) -> Option<[Tile; 2]> {
    let recommended = outcome.recommendation.as_ref();
    let month = recommended.and_then(|best| best.month.as_ref().map(|month| (month, best.seconds)));
    let (before, after, period) = match month {
        Some((month, seconds)) => (month.cost_in?, month.cost_out?, Some(words::duration(seconds))),
        None => (outcome.totals.traffic.cost_in?, best.cost_out?, None),
    };
    let currency = settings.tariff.as_ref().map_or("", |tariff| tariff.currency.as_str());
    let of_month = if period.is_some() { " a month" } else { "" };
    let amount = |caption: &str, price: f64| {
        let usual = if price < 1.0 { 4 } else { 2 };
        let decimals = settings.tariff.as_ref().map_or(usual, |tariff| tariff.decimals(usual));
        Tile::new(format!("{caption}{of_month}"), Cell::text(N.number(price, decimals))).unit(currency)
    };
    let period = period.map_or("for these packets".to_owned(), |time| format!("at the rate of these {time}"));
    let word = if after > before { "more to pay" } else { "less to pay" };
    let ratio = if before > 0.0 { (1.0 - after / before).abs() } else { 0.0 };
    Some([
        amount("to pay", before).detail(period),
        amount("left to pay", after).detail(format!("{} {word}; {}", N.percent(ratio, 1), restored(outcome))),
    ])
}

/// Result of the round trips.
fn restored(outcome: &Outcome) -> String {
    match outcome.mismatches() {
        0 => "every packet is restored exactly".to_owned(),
        some => format!("{} not restored exactly", counted(some, "packet")),
    }
}

const BILL: &str = "Each octet of each frame counts once. Packets with data are divided into headers and payload; all others, such as \
    handshakes, count with all their octets. Header compression saves octets of all headers; the sum stands beside those of IP. Each remedy is tried alone, on these packets.";

/// Number of causes that are listed.
const MOST_CAUSES: usize = 8;

/// Octets of frames by cause, and remedies.
fn bill(outcome: &Outcome) -> Option<Section> {
    let columns = [
        Column::text("cause"),
        Column::number("octets"),
        Column::number("share"),
        Column::text("remedy"),
        Column::number("saves").unit("B"),
    ];
    let mut table = Table::new("", columns);
    let (listed, others) = outcome.bill.split_at(outcome.bill.len().min(MOST_CAUSES));
    for row in listed {
        table.row([
            Cell::text(words::cause(row)),
            Cell::integer(row.bytes),
            Cell::Percent(row.share),
            row.remedy.map_or(Cell::Empty, Cell::text),
            row.saves_bytes.map_or(Cell::Empty, Cell::integer),
        ]);
    }
    if !others.is_empty() {
        let (bytes, share) =
            others.iter().fold((0, 0.0), |(bytes, share), row| (bytes + row.bytes, share + row.share));
        let label = format!("{}, listed in --json", counted(others.len() as u64, "smaller cause"));
        table.row([Cell::text(label), Cell::integer(bytes), Cell::Percent(share), Cell::Empty, Cell::Empty]);
    }
    (!listed.is_empty()).then(|| Section::new("What is paid for").text(BILL).table(table))
}

/// Settings of both ends, and the savings.
fn decision(advice: &Advice) -> Section {
    let reasons = advice.rows.iter().map(|(name, text)| Tile::new(*name, Cell::Empty).detail(text));
    let facts = std::iter::once(Tile::new("use", Cell::text(&advice.headline))).chain(reasons);
    let section = Section::new("What to use").facts(facts);
    advice.blocks.iter().fold(section, |section, (heading, lines)| section.code(*heading, lines.join("\n")))
}

/// The best mode of each scheme, side by side.
fn compared(settings: &Settings, outcome: &Outcome, shown: &ShownSchemes<'_>) -> Section {
    let schemes: Vec<_> = shown.iter().map(|(_, scheme)| scheme).collect();
    let mut table = rows::schemes(settings, outcome, &schemes, rows::Columns::Deciding);
    table.note = "Octets of IP packets as they are sent, feedback included, without link headers. Headers are those of IP, \
                  transport, CoAP and RTP, or what is sent in their place."
        .to_owned();
    let terms = words::terms(settings, outcome);
    let section = Section::new("Schemes side by side").table(table).terms(terms::schemes(schemes));
    if terms.is_empty() { section } else { section.text(terms) }
}

fn all_modes(settings: &Settings, outcome: &Outcome, shown: &ShownSchemes<'_>) -> Option<Section> {
    let all: Vec<_> = outcome.totals.schemes.iter().collect();
    let table = rows::schemes(settings, outcome, &all, rows::Columns::All);
    let text =
        format!("{ALL_MODES} Column new flow is the mean header of {}.", words::first_packets(outcome));
    shown.best().map(|_| Section::new("All schemes and modes").text(text).table(table))
}

const ALL_MODES: &str = "Feedback and refreshes are among the octets. A refresh repeats a context that the receiver may have \
    lost; docs/refresh.md lists how often that is, by pace.";

const LAYERS: &str = "Each bar is everything that is sent, before compression and by each scheme.";

fn layers(outcome: &Outcome, shown: &ShownSchemes<'_>) -> Section {
    let section = Section::new("Where the octets are").text(LAYERS);
    section.figure(octets_by_layer(outcome, shown)).terms(terms::LAYERS)
}

fn octets_by_layer(outcome: &Outcome, shown: &ShownSchemes<'_>) -> Figure {
    let parts = ["IP", "transport", "compressed", "CoAP/RTP", "payload", "feedback"];
    let before = &outcome.totals.traffic.layers_in;
    let layers = [before.ip, before.transport, 0, before.application, before.payload, 0];
    let mut bars = StackedBars::new(Axis::new("octets").unit("B"), parts);
    bars = bars.bar(rows::BEFORE, layers.map(|octets| octets as f64));
    for (_, scheme) in shown.iter() {
        let after = &scheme.layers_out;
        let layers =
            [after.ip, after.transport, after.rohc, after.application, after.payload, scheme.feedback_bytes];
        bars = bars.bar(words::label(scheme), layers.map(|octets| octets as f64));
    }
    Figure::new("Octets by layer", bars)
}

const COURSES: &str = "A scheme that learns from the packets themselves, as ROHC does, begins a flow with large headers. One that \
    is given rules beforehand, as SCHC is, has no such start, but learns nothing either. Each curve is the mean of all \
    packets of the flow so far, with payload and feedback: where two of them cross, the one below has made up for its start. \
    The tables list after how many packets that is so for good; a scheme that is cheaper from the first packet on is not \
    listed.";

/// The largest flows, packet by packet.
fn courses(outcome: &Outcome, shown: &ShownSchemes<'_>) -> Option<Section> {
    let section = Section::new("Start-up and break-even").text(COURSES);
    let flows = text::largest(outcome, MOST_COURSES);
    (!flows.is_empty()).then(|| {
        flows.into_iter().fold(section, |section, flow| {
            let mut table = text::start_up(flow);
            // The section has a title of its own.
            table.title.clear();
            table.note.clear();
            section.figure(course(shown, flow)).table(table)
        })
    })
}

fn course(shown: &ShownSchemes<'_>, flow: &Flow) -> Figure {
    let x = Axis::new("packets of the flow so far").logarithmic();
    let mut lines = Lines::new(x, Axis::new("octets a packet").unit("B"));
    for (at, scheme) in shown.iter() {
        let points = flow.course.iter().map(|milestone| {
            let octets = milestone.bytes_out.get(at).copied().unwrap_or(0);
            (milestone.packets as f64, words::per_packet(octets, milestone.packets))
        });
        lines = lines.series(Series::new(words::label(scheme), points));
    }
    let before = flow.course.iter().map(|m| (m.packets as f64, words::per_packet(m.bytes_in, m.packets)));
    Figure::new(words::ends(flow), lines.series(Series::new(rows::BEFORE, before)))
}

const HEADERS: &str =
    "Headers of the packets as they are sent: spikes are those of refreshes and of flows that begin.";

fn headers(outcome: &Outcome, shown: &ShownSchemes<'_>) -> Option<Section> {
    let types = text::packet_types(outcome);
    let section = Section::new("Header sizes").text(HEADERS);
    let section = section.figure(over_time(outcome, shown)).figure(sizes(outcome, shown));
    let section = section.terms(terms::packet_types(text::type_names(outcome)));
    let section = section.figure(octets_by_type(outcome, shown)).table(types);
    shown.best().map(|_| section)
}

fn over_time(outcome: &Outcome, shown: &ShownSchemes<'_>) -> Figure {
    let mut lines = Lines::new(Axis::new("time").unit("s"), Axis::new("header octets a packet").unit("B"));
    for (at, scheme) in shown.iter() {
        let points = outcome.timeline.stretches().map(|(time, stretch)| {
            let octets = stretch.header_bytes_out.get(at).copied().unwrap_or(0);
            (time.as_secs_f64(), words::per_packet(octets, stretch.packets))
        });
        lines = lines.series(Series::new(words::label(scheme), points));
    }
    let points = outcome.timeline.stretches().map(|(time, stretch)| {
        (time.as_secs_f64(), words::per_packet(stretch.header_bytes_in, stretch.packets))
    });
    let figure = Figure::new("Header size over time", lines.series(Series::new(rows::BEFORE, points)));
    match outcome.inputs.len() {
        0 | 1 => figure.note("Means over short stretches of time."),
        _ => figure.note("Means over short stretches of time; the captures follow one another."),
    }
}

fn sizes(outcome: &Outcome, shown: &ShownSchemes<'_>) -> Figure {
    let series = shown.iter().filter_map(|(at, scheme)| {
        let sizes = outcome.header_sizes_out.get(at)?;
        Some((words::label(scheme), sizes.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>()))
    });
    let bars = Bars::histogram(Axis::new("header size").unit("B"), Axis::new("packets"), series);
    Figure::new("Packets by header size", bars)
}

fn octets_by_type(outcome: &Outcome, shown: &ShownSchemes<'_>) -> Figure {
    let octets_of = |name: &str| -> u64 {
        shown.iter().map(|(_, scheme)| text::of_type(&scheme.rohc_bytes_by_type, name)).sum()
    };
    let mut names: Vec<_> = text::type_names(outcome).into_iter().collect();
    names.sort_by_key(|name| std::cmp::Reverse(octets_of(name)));
    let others = names.split_off(names.len().min(MOST_PARTS));
    let others = (!others.is_empty()).then_some(others);
    let parts = names.iter().copied().chain(others.as_ref().map(|_| "other"));
    let mut bars = StackedBars::new(Axis::new("octets").unit("B"), parts);
    for (_, scheme) in shown.iter() {
        let octets = |name: &&str| text::of_type(&scheme.rohc_bytes_by_type, name);
        let rest = others.as_ref().map(|others| others.iter().map(octets).sum::<u64>());
        let octets = names.iter().map(octets).chain(rest);
        bars = bars.bar(words::label(scheme), octets.map(|octets| octets as f64));
    }
    Figure::new("What compressed headers are made of", bars).note("Octets by packet type.")
}

fn flows(outcome: &Outcome) -> Option<Section> {
    let listed = text::largest(outcome, MOST_FLOWS);
    let left_out = outcome.totals.flows - listed.len() as u64;
    let text = format!(
        "Headers are mean octets of a packet, those of CoAP and RTP included: before, and in the scheme that needs fewest \
         octets for this flow.{}",
        match left_out {
            0 => String::new(),
            more => format!(
                " These flows are the largest; {} more are in the output of --csv.",
                N.integer(more.into())
            ),
        }
    );
    let profiles = listed.iter().flat_map(|flow| flow.profiles.iter().copied().chain([flow.profile]));
    let terms = terms::profiles(profiles);
    (!listed.is_empty())
        .then(|| Section::new("Flows").text(text).terms(terms).table(flow_table(outcome, &listed)))
}

/// All flows that have all figures, largest first, and the sum of the others.
pub(crate) fn all_flows(outcome: &Outcome) -> Table {
    let mut table = flow_table(outcome, &text::largest(outcome, usize::MAX));
    if !outcome.other_flows.is_empty() {
        let others = &outcome.other_flows;
        let label = format!("{}, listed in the CSV file", counted(others.len() as u64, "smaller flow"));
        let mut row = vec![Cell::text(label), Cell::Empty];
        row.extend((outcome.inputs.len() > 1).then_some(Cell::Empty));
        row.push(Cell::integer(others.iter().map(|flow| flow.packets).sum::<u64>()));
        row.push(Cell::integer(others.iter().map(|flow| flow.bytes_in).sum::<u64>()));
        table.total(row);
    }
    table
}

fn flow_table(outcome: &Outcome, listed: &[&Flow]) -> Table {
    let several = outcome.inputs.len() > 1;
    let has_ssrcs = listed.iter().any(|flow| !flow.ssrcs.is_empty());
    let mut columns = vec![Column::text("flow"), Column::text("protocol / profile")];
    columns.extend(several.then(|| Column::number("capture")));
    columns.extend([Column::number("packets"), Column::number("octets before")]);
    columns.extend([Column::number("headers before").unit("B"), Column::text("best")]);
    columns.push(Column::number("headers after").unit("B"));
    columns.extend(has_ssrcs.then(|| Column::text("SSRC")));
    let mut table = Table::new("", columns);
    for flow in listed {
        let header = |octets| Cell::number(words::per_packet(octets, flow.packets), 1);
        let best = flow.schemes.iter().min_by_key(|scheme| scheme.sent_bytes());
        let mut row = vec![Cell::text(words::ends(flow)), Cell::text(words::carried_by(flow))];
        row.extend(several.then(|| Cell::integer(flow.input + 1)));
        row.extend([Cell::integer(flow.packets), Cell::integer(flow.traffic.bytes_in)]);
        row.push(header(flow.traffic.layers_in.all_headers()));
        row.push(best.map_or(Cell::Empty, |best| Cell::text(words::label(best).replace(' ', "\u{a0}"))));
        row.push(best.map_or(Cell::Empty, |best| header(best.layers_out.all_headers())));
        row.extend(has_ssrcs.then(|| Cell::text(words::ssrcs(flow))));
        table.row(row);
    }
    table
}

/// Rules of SCHC, if it is one of the schemes and has rules.
fn rules(outcome: &Outcome) -> Option<Section> {
    let derived: Vec<_> = outcome.inputs.iter().filter_map(|input| input.schc_rules.as_ref()).collect();
    let octets: usize = derived.iter().map(|rules| rules.provisioning_bytes).sum();
    let rules: usize = derived.iter().map(|rules| rules.rules.len()).sum();
    let text = format!(
        "A rule lists the fields of a header and how each is sent. {} derived from the very packets that are then \
         compressed, and cost nothing on the link; sending them to a device would take {}. Of many, only the first are listed.",
        if rules == 1 { "1 rule was".to_owned() } else { format!("{} were", counted(rules as u64, "rule")) },
        counted(octets as u64, "octet")
    );
    let first = derived.iter().find(|rules| !rules.rules.is_empty())?;
    let table = text::rules(first, MOST_FIELDS);
    Some(Section::new("Rules of SCHC").text(text).terms(terms::RULES).table(table))
}

const CAPTURES: &str = "Records without the whole headers of an IP packet are skipped. Zeros stand for the payload of packets that are cut \
    off. Odd packets have headers that cannot be restored from \
    others; they are carried by a profile that restores them exactly.";

fn captures(outcome: &Outcome) -> Section {
    let several = outcome.inputs.len() > 1;
    let has_cut = outcome.inputs.iter().any(|input| input.cut > 0);
    let has_odd = outcome.inputs.iter().any(|input| !input.odd.is_empty());
    let mut columns = vec![Column::text("file")];
    columns.extend(several.then(|| Column::number("capture")));
    columns.extend([Column::number("packets"), Column::number("compressed")]);
    columns.extend(has_cut.then(|| Column::number("cut off")));
    columns.push(Column::text("skipped"));
    columns.extend(has_odd.then(|| Column::text("odd")));
    let mut table = Table::new("", columns);
    for (at, input) in outcome.inputs.iter().enumerate() {
        let mut row = vec![Cell::text(&input.path)];
        row.extend(several.then(|| Cell::integer(at + 1)));
        row.extend([Cell::integer(input.packets), Cell::integer(input.ip_packets)]);
        row.extend(has_cut.then(|| Cell::integer(input.cut)));
        row.push(Cell::text(reasons(&input.skipped)));
        row.extend(has_odd.then(|| Cell::text(reasons(&input.odd))));
        table.row(row);
    }
    let section = Section::new(if several { "Captures" } else { "The capture" }).text(CAPTURES);
    let section = match outcome.inputs.iter().map(|input| input.iphc_frames).sum() {
        0 => section,
        frames => section.text(words::iphc(frames)),
    };
    section.table(table)
}

/// Formats counts as `truncated 3, not ip 1`.
fn reasons(reasons: &BTreeMap<&'static str, u64>) -> String {
    let parts = reasons
        .iter()
        .map(|(name, count)| format!("{} {}", name.replace('_', " "), N.integer((*count).into())));
    parts.collect::<Vec<_>>().join(", ")
}

/// Formats a number before and after compression, on one line.
fn change(before: String, after: String) -> String {
    format!("{before}\u{a0}→\u{a0}{after}")
}

fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", N.integer(count.into()), if count == 1 { "" } else { "s" })
}
