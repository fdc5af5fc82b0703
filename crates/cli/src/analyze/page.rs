//! The report as one page with plots.

use thinair_analyze::{Outcome, Settings};
use thinair_report::{
    Axis, Bars, Cell, Column, Document, Figure, Lines, Numerals, Section, Series, StackedBars, Table, Tile,
};

use super::{text, words};

/// More rows than this are a burden to a telephone.
const MOST_FLOWS: usize = 200;

pub(crate) fn document(settings: &Settings, outcome: &Outcome) -> Document {
    Document::new("What header compression saves")
        .subtitle(subtitle(settings, outcome))
        .section(summary(outcome))
        .section(
            Section::new("Where the octets are")
                .text(LAYERS)
                .figure(octets_by_layer(outcome))
                .table(text::schemes(settings, outcome)),
        )
        .section(
            Section::new("Header sizes")
                .text(HEADERS)
                .figure(over_time(outcome))
                .figure(sizes(outcome))
                .figure(octets_by_type(outcome))
                .table(text::packet_types(outcome)),
        )
        .section(flows(outcome))
        .section(Section::new("Captures").text(CAPTURES).table(inputs(outcome)))
}

const LAYERS: &str = "Each bar is everything that is sent: before compression, and in each mode. ROHC headers take the place \
    of IP and transport headers; what stands behind those goes as it is.";

const HEADERS: &str = "In U-mode nothing comes back from the receiver, so the compressor repeats what it knows from time to \
    time: these refreshes are the spikes. In O-mode the receiver asks when it needs one, by feedback the other way. Traffic \
    that is sparse pays for a refresh with nearly every packet.";

const CAPTURES: &str = "Every IP packet was compressed, decompressed by a decompressor of its own, and compared octet by \
    octet. Records without a whole IP packet are skipped. Odd packets have headers that cannot be restored from \
    others; they are carried by a profile that restores them exactly.";

fn subtitle(settings: &Settings, outcome: &Outcome) -> String {
    let files = match outcome.inputs.as_slice() {
        [only] => only.path.clone(),
        several => words::counted(several.len() as u64, "capture"),
    };
    let channel = &settings.channel;
    let profiles: Vec<_> = channel.profiles().iter().map(|profile| profile.name()).collect();
    format!("{files}; MAX_CID {}, profiles {}", channel.max_cid(), profiles.join(", "))
}

fn summary(outcome: &Outcome) -> Section {
    let (packets, traffic) = (outcome.totals.packets, &outcome.totals.traffic);
    let schemes = &outcome.totals.schemes;
    let saved = schemes.iter().map(|scheme| {
        let octets = |octets: u64| Numerals::TYPESET.octets(octets);
        Tile::new(format!("saved in {}", words::mode(scheme)), Cell::Percent(scheme.saved_ratio))
            .detail(format!("{} of {}", octets(scheme.bytes_out), octets(traffic.bytes_in)))
    });
    let headers = schemes.iter().map(|scheme| {
        let header = Cell::number(words::per_packet(scheme.header_bytes_out, packets), 1);
        let before = words::per_packet(traffic.header_bytes_in, packets);
        Tile::new(format!("header in {}", words::mode(scheme)), header)
            .unit("B")
            .detail(format!("mean; before: {before:.1} B"))
    });
    let whole = [
        Tile::new("IP packets", Cell::integer(packets))
            .detail(format!("in {}", words::counted(outcome.flows.len() as u64, "flow"))),
        Tile::new("octets before", Cell::Octets(traffic.bytes_in)),
        Tile::new("mismatches", Cell::integer(outcome.mismatches())).detail("after the round trip"),
    ];
    let section = Section::new("").tiles(saved.chain(headers).chain(whole));
    schemes.iter().fold(section, |section, scheme| section.text(words::result(outcome, scheme)))
}

fn octets_by_layer(outcome: &Outcome) -> Figure {
    let parts = ["IP", "transport", "ROHC", "CoAP/RTP", "payload", "feedback"];
    let before = &outcome.totals.traffic.layers_in;
    let layers = [before.ip, before.transport, 0, before.application, before.payload, 0];
    let mut bars = StackedBars::new(Axis::new("octets").octets(), parts);
    bars = bars.bar("Before", layers.map(|octets| octets as f64));
    for scheme in &outcome.totals.schemes {
        let after = &scheme.layers_out;
        let layers =
            [after.ip, after.transport, after.rohc, after.application, after.payload, scheme.feedback_bytes];
        bars = bars.bar(words::mode(scheme), layers.map(|octets| octets as f64));
    }
    Figure::new("Octets by layer", bars)
}

fn octets_by_type(outcome: &Outcome) -> Figure {
    let names = text::type_names(outcome);
    let mut bars = StackedBars::new(Axis::new("octets").octets(), names.iter().copied());
    for scheme in &outcome.totals.schemes {
        let octets = |name: &&str| scheme.rohc_bytes_by_type.get(name).copied().unwrap_or(0) as f64;
        bars = bars.bar(words::mode(scheme), names.iter().map(octets));
    }
    Figure::new("What ROHC headers are made of", bars)
        .note("Octets of ROHC headers by packet type. IR and IR-DYN begin a context or refresh it.")
}

fn flows(outcome: &Outcome) -> Section {
    let mut table = text::flows(outcome, MOST_FLOWS, text::Breadth::Narrow);
    table.title.clear();
    let section = Section::new("Flows").text(format!(
        "A flow is one direction of a conversation; profile says which ROHC profile carried most of it. Headers are mean \
         octets a packet, before and in each mode.{}",
        match outcome.flows.len().saturating_sub(MOST_FLOWS) {
            0 => String::new(),
            more => format!(" These are the largest; {} more are not listed.", words::counted(more as u64, "flow")),
        }
    ));
    section.table(table)
}

fn over_time(outcome: &Outcome) -> Figure {
    let mut lines = Lines::new(Axis::new("time").unit("s"), Axis::new("header octets a packet").unit("B"));
    for (at, scheme) in outcome.totals.schemes.iter().enumerate() {
        let points = outcome.timeline.stretches().map(|(time, stretch)| {
            let octets = stretch.header_bytes_out.get(at).copied().unwrap_or(0);
            (time.as_secs_f64(), words::per_packet(octets, stretch.packets))
        });
        lines = lines.series(Series::new(words::mode(scheme), points));
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
    let schemes = outcome.totals.schemes.iter().zip(&outcome.header_sizes_out);
    let series = schemes.map(|(scheme, sizes)| {
        (words::mode(scheme), sizes.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>())
    });
    let bars = Bars::histogram(Axis::new("header size").unit("B"), Axis::new("packets"), series);
    Figure::new("Packets by header size", bars)
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
