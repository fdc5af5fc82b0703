//! The report as one page with plots.

use thinair_analyze::outcome::{Flow, Scheme};
use thinair_analyze::{Outcome, Settings};
use thinair_report::{
    Axis, Bars, Cell, Column, Document, Figure, Lines, Numerals, Section, Series, StackedBars, Table, Tile,
};

use super::{text, words};

/// More rows than this are a burden to a telephone.
const MOST_FLOWS: usize = 200;

/// Flows whose course is drawn.
const MOST_COURSES: usize = 3;

/// More curves than this, or bars beside each other, cannot be told apart.
const MOST_CURVES: usize = 5;

/// Fields of SCHC rules that are listed, or a few more.
const MOST_FIELDS: usize = 100;

/// Packet types with a part of their own in a bar.
const MOST_PARTS: usize = 6;

pub(crate) fn document(settings: &Settings, outcome: &Outcome) -> Document {
    let sections = [
        summary(settings, outcome),
        Section::new("Where the octets are").text(LAYERS).figure(octets_by_layer(outcome)),
        courses(outcome),
        headers(outcome),
        flows(outcome),
    ];
    let captures = Section::new("Captures").text(CAPTURES).table(inputs(outcome));
    let document = Document::new("What header compression saves").subtitle(subtitle(settings, outcome));
    sections.into_iter().chain(rules(outcome)).chain([captures]).fold(document, Document::section)
}

/// The section, with a paragraph if there is one.
fn with_text(section: Section, text: Option<String>) -> Section {
    match text {
        Some(text) => section.text(text),
        None => section,
    }
}

const LAYERS: &str = "Each bar is everything that is sent: before compression, and by each scheme. Compressed headers take the \
    place of those of IP and transport, and with some schemes of CoAP; what stands behind those goes as it is.";

const COURSES: &str = "A scheme that learns from the packets themselves, as ROHC does, begins a flow with large headers; one that \
    was told beforehand, as SCHC is by its rules, has no such start, but learns nothing either. Each curve is the mean of all \
    packets of the flow so far, with payload and feedback: where two of them cross, the one below has made up for its start. \
    The tables say after how many packets that is so for good; a scheme that is cheaper from the first packet on is not \
    listed.";

const HEADERS: &str = "In U-mode nothing comes back from the receiver, so the compressor repeats what it knows from time to \
    time: these refreshes are the spikes of U-mode. In O-mode the receiver asks when it needs one, by feedback the other way. By default \
    refreshes come every 16 s in dense traffic, and in sparse traffic as often as a share of the octets sent pays for, or every 128 packets \
    (docs/refresh.md).";

const CAPTURES: &str = "Every IP packet was compressed, decompressed by a decompressor of its own, and compared octet by \
    octet. Records without a whole IP packet are skipped. Odd packets have headers that cannot be restored from \
    others; they are carried by a profile that restores them exactly.";

fn subtitle(settings: &Settings, outcome: &Outcome) -> String {
    let files = match outcome.inputs.as_slice() {
        [only] => only.path.clone(),
        several => words::counted(several.len() as u64, "capture"),
    };
    format!("{files}; ROHC with MAX_CID {}", settings.channel.max_cid())
}

fn summary(settings: &Settings, outcome: &Outcome) -> Section {
    let (packets, traffic) = (outcome.totals.packets, &outcome.totals.traffic);
    let best = words::best(outcome);
    let saved = best.map(|best| {
        let octets = |octets: u64| Numerals::TYPESET.octets(octets);
        Tile::new(format!("saved by {}", words::label(best)), Cell::Percent(best.saved_ratio))
            .detail(format!("{} of {} are left", octets(best.sent_bytes()), octets(traffic.bytes_in)))
    });
    let header = best.map(|best| {
        let header = Cell::number(words::per_packet(best.layers_out.all_headers(), packets), 1);
        let before = words::per_packet(traffic.layers_in.all_headers(), packets);
        Tile::new(format!("header by {}", words::label(best)), header)
            .unit("B")
            .detail(format!("mean; before: {before:.1} B"))
    });
    let whole = [
        Tile::new("IP packets", Cell::integer(packets))
            .detail(format!("in {}", words::counted(outcome.flows.len() as u64, "flow"))),
        Tile::new("mismatches", Cell::integer(outcome.mismatches())).detail("after the round trip"),
    ];
    let section = Section::new("").tiles(saved.into_iter().chain(header).chain(whole));
    let result = best.map(|best| words::result(outcome, best));
    with_text(section, result).table(text::schemes(settings, outcome))
}

fn headers(outcome: &Outcome) -> Section {
    with_text(Section::new("Header sizes").text(HEADERS), left_out(outcome))
        .figure(over_time(outcome))
        .figure(sizes(outcome))
        .figure(octets_by_type(outcome))
        .table(text::packet_types(outcome))
}

fn octets_by_layer(outcome: &Outcome) -> Figure {
    let parts = ["IP", "transport", "compressed", "CoAP/RTP", "payload", "feedback"];
    let before = &outcome.totals.traffic.layers_in;
    let layers = [before.ip, before.transport, 0, before.application, before.payload, 0];
    let mut bars = StackedBars::new(Axis::new("octets").octets(), parts);
    bars = bars.bar("Before", layers.map(|octets| octets as f64));
    for scheme in &outcome.totals.schemes {
        let after = &scheme.layers_out;
        let layers =
            [after.ip, after.transport, after.rohc, after.application, after.payload, scheme.feedback_bytes];
        bars = bars.bar(words::label(scheme), layers.map(|octets| octets as f64));
    }
    Figure::new("Octets by layer", bars)
}

fn octets_by_type(outcome: &Outcome) -> Figure {
    let schemes = &outcome.totals.schemes;
    let octets_of = |name: &str| -> u64 {
        schemes.iter().map(|scheme| text::of_type(&scheme.rohc_bytes_by_type, name)).sum()
    };
    let mut names: Vec<_> = text::type_names(outcome).into_iter().collect();
    names.sort_by_key(|name| std::cmp::Reverse(octets_of(name)));
    let others = names.split_off(names.len().min(MOST_PARTS));
    let others = (!others.is_empty()).then_some(others);
    let parts = names.iter().copied().chain(others.as_ref().map(|_| "other"));
    let mut bars = StackedBars::new(Axis::new("octets").octets(), parts);
    for scheme in schemes {
        let octets = |name: &&str| text::of_type(&scheme.rohc_bytes_by_type, name);
        let rest = others.as_ref().map(|others| others.iter().map(octets).sum::<u64>());
        let octets = names.iter().map(octets).chain(rest);
        bars = bars.bar(words::label(scheme), octets.map(|octets| octets as f64));
    }
    Figure::new("What compressed headers are made of", bars)
        .note("Octets by packet type. IR and IR-DYN begin a context of ROHC or refresh it.")
}

/// The largest flows, packet by packet.
fn courses(outcome: &Outcome) -> Section {
    let section = Section::new("Start-up and break-even").text(COURSES);
    let section = with_text(section, left_out(outcome));
    text::largest(outcome, MOST_COURSES).into_iter().fold(section, |section, flow| {
        let mut table = text::start_up(flow);
        // The section says it once.
        table.title.clear();
        table.note.clear();
        section.figure(course(outcome, flow)).table(table)
    })
}

fn course(outcome: &Outcome, flow: &Flow) -> Figure {
    let x = Axis::new("packets of the flow so far").logarithmic();
    let mut lines = Lines::new(x, Axis::new("octets a packet").unit("B"));
    for (at, scheme) in drawn(outcome) {
        let points = flow.course.iter().map(|milestone| {
            let octets = milestone.bytes_out.get(at).copied().unwrap_or(0);
            (milestone.packets as f64, words::per_packet(octets, milestone.packets))
        });
        lines = lines.series(Series::new(words::label(scheme), points));
    }
    let before = flow.course.iter().map(|m| (m.packets as f64, words::per_packet(m.bytes_in, m.packets)));
    Figure::new(words::ends(flow), lines.series(Series::new("before", before)))
}

/// The schemes that have curves, with their places. If there are many, it is one mode of each.
fn drawn(outcome: &Outcome) -> Vec<(usize, &Scheme)> {
    let schemes = &outcome.totals.schemes;
    let all = schemes.iter().enumerate();
    if schemes.len() <= MOST_CURVES {
        return all.collect();
    }
    let is_last = |at: usize, name: &str| schemes.iter().skip(at + 1).all(|later| later.scheme != name);
    all.filter(|(at, scheme)| is_last(*at, scheme.scheme)).collect()
}

/// What [`drawn`] leaves out, in a sentence.
fn left_out(outcome: &Outcome) -> Option<String> {
    let drawn = drawn(outcome);
    let schemes = outcome.totals.schemes.iter().enumerate();
    let others: Vec<_> = schemes
        .filter(|(at, _)| drawn.iter().all(|(one, _)| one != at))
        .map(|(_, scheme)| words::label(scheme))
        .collect();
    (!others.is_empty()).then(|| {
        let others = others.join(", ");
        format!("Curves of {others} are left out, so that the others can be told apart; --mode u draws them.")
    })
}

fn flows(outcome: &Outcome) -> Section {
    let many = outcome.totals.schemes.len() > MOST_CURVES;
    let breadth = if many { text::Breadth::Middle } else { text::Breadth::Wide };
    let mut table = text::flows(outcome, MOST_FLOWS, breadth);
    table.title.clear();
    let section = Section::new("Flows").text(format!(
        "A flow is one direction of a conversation; profile says which ROHC profiles carried it, that of most packets \
         first. RTP goes as UDP until its first packets have shown what it is, or --rtp-ports tells. Headers, those of \
         CoAP and RTP included, are mean octets of a packet, before and in {}.{}",
        if many { "the scheme that needs fewest octets" } else { "each scheme" },
        match outcome.flows.len().saturating_sub(MOST_FLOWS) {
            0 => String::new(),
            more => format!(" These are the largest; {} more are not listed.", words::counted(more as u64, "flow")),
        }
    ));
    section.table(table)
}

fn over_time(outcome: &Outcome) -> Figure {
    let mut lines = Lines::new(Axis::new("time").unit("s"), Axis::new("header octets a packet").unit("B"));
    for (at, scheme) in drawn(outcome) {
        let points = outcome.timeline.stretches().map(|(time, stretch)| {
            let octets = stretch.header_bytes_out.get(at).copied().unwrap_or(0);
            (time.as_secs_f64(), words::per_packet(octets, stretch.packets))
        });
        lines = lines.series(Series::new(words::label(scheme), points));
    }
    let points = outcome.timeline.stretches().map(|(time, stretch)| {
        (time.as_secs_f64(), words::per_packet(stretch.header_bytes_in, stretch.packets))
    });
    let figure = Figure::new("Header size over time", lines.series(Series::new("before", points)));
    match outcome.inputs.len() {
        0 | 1 => figure.note("Means over short stretches of time."),
        _ => figure.note("Means over short stretches of time; the captures follow one another."),
    }
}

fn sizes(outcome: &Outcome) -> Figure {
    let series = drawn(outcome).into_iter().filter_map(|(at, scheme)| {
        let sizes = outcome.header_sizes_out.get(at)?;
        Some((words::label(scheme), sizes.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>()))
    });
    let bars = Bars::histogram(Axis::new("header size").unit("B"), Axis::new("packets"), series);
    Figure::new("Packets by header size", bars)
}

/// What SCHC was granted, if it is one of the schemes.
fn rules(outcome: &Outcome) -> Option<Section> {
    let told: Vec<_> = outcome.inputs.iter().filter_map(|input| input.schc_rules.as_ref()).collect();
    let octets: usize = told.iter().map(|rules| rules.provisioning_bytes).sum();
    let rules: usize = told.iter().map(|rules| rules.rules.len()).sum();
    let text = format!(
        "{} were derived from the very packets that are then compressed, and cost nothing on the link; telling them to a \
         device would take {}. Rules up are for packets of side a. Of many, only the first are listed.",
        words::counted(rules as u64, "rule"),
        words::counted(octets as u64, "octet")
    );
    Some(Section::new("Rules of SCHC").text(text).table(text::rules(told.first()?, MOST_FIELDS)))
}

fn inputs(outcome: &Outcome) -> Table {
    let mut table = Table::new(
        "",
        [
            Column::text("file"),
            Column::number("packets"),
            Column::number("compressed"),
            Column::text("skipped"),
            Column::text("odd"),
        ],
    );
    for input in &outcome.inputs {
        table.row([
            Cell::text(&input.path),
            Cell::integer(input.packets),
            Cell::integer(input.ip_packets),
            Cell::text(words::reasons(&input.skipped)),
            Cell::text(words::reasons(&input.odd)),
        ]);
    }
    table
}
