//! Every element of this crate, for visual inspection: `cargo run --example specimen -- specimen.html`.

use std::process::ExitCode;

use thinair_report::{
    Axis, Bars, Cell, Column, Document, Figure, Lines, Section, Series, StackedBars, Style, Table, Tile,
};

fn main() -> ExitCode {
    let document = specimen();
    print!("{}", document.to_text(&Style::plain(100)));
    let Some(path) = std::env::args_os().nth(1) else { return ExitCode::SUCCESS };
    match std::fs::write(&path, document.to_html()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

fn specimen() -> Document {
    Document::new("What the headers of a voice link cost")
        .subtitle("Specimen with made-up values: 48,211 packets in 17 flows over 2 hours")
        .section(
            Section::new("")
                .tiles([
                    Tile::new("of all octets on the link saved", Cell::Percent(0.4473))
                        .detail("1.98 MB of 4.42 MB"),
                    Tile::new("mean header after compression", Cell::number(2.31, 2))
                        .unit("B")
                        .detail("before: 40.00 B"),
                    Tile::new("packets", Cell::integer(48_211)).detail("in 17 flows"),
                    Tile::new("repairs per 1,000 packets", Cell::estimate(0.42, 0.05, 2))
                        .detail("95 % interval"),
                ])
                .text(
                    "Nearly half of what this link carries says again what the packet before has said. The \
                     flows below are those that would gain most; the rest of the page shows where the octets \
                     are now, and where they would be.",
                ),
        )
        .section(what_to_set())
        .section(Section::new("Flows").table(flows()).figure(octets_by_layer()))
        .section(
            Section::new("Header sizes")
                .text("Counts over whole octets, two series side by side.")
                .figure(histogram()),
        )
        .section(Section::new("Over time").figure(long_series()).figure(steps()))
        .section(
            Section::new("In the lab")
                .table(lab())
                .figure(curves())
                .figure(logarithmic())
                .figure(categories()),
        )
        .section(Section::new("Reproductions").table(reproductions()).folded())
}

fn what_to_set() -> Section {
    Section::new("What to set")
        .facts([
            Tile::new("scheme", Cell::text("ROHC with RTP in O-mode")).detail("Profile 0x0001 at both ends."),
            Tile::new("headers", Cell::text("40.0 -> 2.3")).unit("B").detail("Mean octets of a packet."),
            Tile::new("memory", Cell::Octets(11_520))
                .detail("For 16 contexts at each end; --max-cid changes it."),
        ])
        .code(
            "At the gateway",
            "thinair tunnel run udp://:7000 --key sat.key --address 10.9.0.1/30\nthinair tunnel status",
        )
        .code(
            "At the device",
            "thinair tunnel run udp://198.51.100.7:7000 --key sat.key --address 10.9.0.2/30",
        )
        .terms([
            ("flow", "Packets that share a context."),
            ("feedback", "Messages of the receiver to the sender, the other way."),
        ])
}

fn flows() -> Table {
    let mut table = Table::new(
        "Flows by octets saved",
        [
            Column::text("flow"),
            Column::text("protocols"),
            Column::number("packets"),
            Column::number("mean header").unit("B"),
            Column::number("before"),
            Column::number("after"),
            Column::number("saved"),
        ],
    )
    .note("Both directions of a conversation are two flows.");
    for (name, protocols, packets, mean, before, after) in [
        ("192.0.2.10:5004 → 198.51.100.7:5004", "IPv4 UDP RTP", 21_004, 2.18, 1_932_368, 1_137_600),
        ("198.51.100.7:5004 → 192.0.2.10:5004", "IPv4 UDP RTP", 20_871, 2.22, 1_920_132, 1_131_700),
        ("[2001:db8::9]:443 → [2001:db8:0:1::7]:50112", "IPv6 TCP", 4_120, 6.4, 540_000, 401_200),
        ("192.0.2.10 → 192.0.2.1", "IPv4 ICMP", 12, 28.0, 1_008, 1_012),
    ] {
        table.row([
            Cell::text(name),
            Cell::text(protocols),
            Cell::integer(packets),
            Cell::number(mean, 2),
            Cell::Octets(before),
            Cell::Octets(after),
            Cell::Percent(1.0 - after as f64 / before as f64),
        ]);
    }
    table.total([
        Cell::text("all"),
        Cell::Empty,
        Cell::integer(46_007),
        Cell::Empty,
        Cell::Octets(4_393_508),
        Cell::Octets(2_671_512),
        Cell::Percent(0.3919),
    ]);
    table
}

fn octets_by_layer() -> Figure {
    let bars = StackedBars::new(Axis::new("octets").octets(), ["link", "IP", "UDP", "RTP", "payload"])
        .bar("Before", [674_954.0, 964_220.0, 385_688.0, 578_532.0, 1_816_000.0])
        .bar("After", [674_954.0, 48_000.0, 12_000.0, 51_000.0, 1_816_000.0]);
    Figure::new("Headers shrink from half of the octets to a twentieth", bars)
        .note("Octets by layer, before and after compression.")
}

fn histogram() -> Figure {
    let voice = (1..=42)
        .map(|size| (size, if size < 5 { 9_000 / size } else { 2_000 / (size * size) + size % 3 * 9 }));
    let data = (3..=60).map(|size| (size, 4_000 * (size % 7) / (size + 4)));
    let bars = Bars::histogram(
        Axis::new("header size").unit("B"),
        Axis::new("packets"),
        [("voice", voice.collect::<Vec<_>>()), ("data", data.collect())],
    );
    Figure::new("Most voice headers take three octets or less", bars)
        .note("Packets by size of their compressed header.")
}

fn long_series() -> Figure {
    let size =
        |t: f64| 2.0 + (t / 900.0).sin().powi(2) + if (t as u64).is_multiple_of(1_733) { 38.0 } else { 0.0 };
    let points = (0..48_000).map(f64::from).map(|t| (t * 0.15, size(t)));
    let lines = Lines::new(Axis::new("time").unit("s"), Axis::new("header size").unit("B"))
        .series(Series::new("", points));
    Figure::new("Refreshes stand out of an even stream", lines)
        .note("48,000 points; the least and the greatest of each stretch are drawn, so no spike is lost.")
}

fn steps() -> Figure {
    let up = [(0.0, 1.0), (40.0, 2.0), (95.0, 3.0), (300.0, 1.0), (330.0, 2.0), (380.0, 3.0), (600.0, 3.0)];
    let down = [(0.0, 1.0), (60.0, 2.0), (120.0, 2.0), (420.0, 3.0), (600.0, 3.0)];
    let lines = Lines::new(Axis::new("packet"), Axis::new("state"))
        .series(Series::new("sender", up).step())
        .series(Series::new("receiver", down).step());
    Figure::new("A value holds until the next", lines)
}

fn lab() -> Table {
    let mut table = Table::new(
        "Mean header size by loss rate",
        [
            Column::text("scheme"),
            Column::number("no loss").unit("B"),
            Column::number("1 % loss").unit("B"),
            Column::number("10 % loss").unit("B"),
        ],
    )
    .note("Mean and 95 % interval over 30 runs.");
    table.row([
        Cell::text("plain"),
        Cell::estimate(40.0, 0.0, 2),
        Cell::estimate(40.0, 0.0, 2),
        Cell::estimate(40.0, 0.0, 2),
    ]);
    table.row([
        Cell::text("first"),
        Cell::estimate(2.31, 0.02, 2),
        Cell::estimate(2.52, 0.11, 2),
        Cell::estimate(10.73, 10.25, 2),
    ]);
    table.row([
        Cell::text("second"),
        Cell::estimate(1.12, 0.001, 2),
        Cell::estimate(1.34, 0.08, 2),
        Cell::number(f64::NAN, 2),
    ]);
    table
}

fn curves() -> Figure {
    let run = |base: f64, slope: f64| {
        (0..=10).map(f64::from).map(move |loss| (loss / 100.0, base + slope * loss, 0.15 + 0.04 * loss))
    };
    let lines = Lines::new(Axis::new("loss").percent(), Axis::new("mean header size").unit("B"))
        .series(Series::with_margins("first", run(2.3, 0.6)))
        .series(Series::with_margins("second", run(1.1, 0.7)))
        .series(Series::with_margins("third, long name", run(3.0, 0.5)))
        .series(Series::with_margins("fourth", run(0.9, 0.2)));
    Figure::new("Loss costs octets", lines).note("Mean and 95 % interval over 30 runs.")
}

fn logarithmic() -> Figure {
    let rate =
        |power: f64| (0..120).map(move |x| (f64::from(x) / 10.0, 0.5 * (-f64::from(x) / power).exp(), 0.0));
    let with_band = |power| rate(power).map(|(x, y, _)| (x, y, y * 0.4));
    let lines = Lines::new(Axis::new("signal").unit("dB"), Axis::new("residual error rate").logarithmic())
        .series(Series::with_margins("check of 3 bits", with_band(18.0)))
        .series(Series::with_margins("check of 7 bits", with_band(12.0)))
        .series(Series::new("none", [(0.0, 0.5), (6.0, 0.2), (11.9, 0.0)]));
    Figure::new("Errors that slip through", lines)
}

fn categories() -> Figure {
    let bars = Bars::new(
        Axis::new(""),
        Axis::new("saved").percent(),
        ["voice over IPv4", "voice over IPv6", "web", "sensor readings"],
    )
    .series("first", [0.51, 0.62, 0.18, 0.47])
    .series("second", [0.55, 0.68, 0.21, 0.52])
    .series("third", [0.43, 0.49, -0.04, 0.5]);
    Figure::new("Where there is most to gain", bars).note("Share of all octets saved.")
}

fn reproductions() -> Table {
    let mut table = Table::new(
        "Published figures, measured again",
        [
            Column::text("claim"),
            Column::number("theirs"),
            Column::number("ours"),
            Column::number("bar"),
            Column::text("met"),
        ],
    );
    table.row([
        Cell::text("mean header, voice (B)"),
        Cell::number(1.5, 2),
        Cell::number(1.48, 2),
        Cell::number(1.6, 2),
        Cell::YesNo(true),
    ]);
    table.row([
        Cell::text("share of headers of one octet"),
        Cell::Percent(0.9),
        Cell::Percent(0.9996),
        Cell::Percent(0.85),
        Cell::YesNo(true),
    ]);
    table.row([
        Cell::text("loss propagation at 10⁻³"),
        Cell::Percent(0.0),
        Cell::Percent(0.0002),
        Cell::Percent(0.0),
        Cell::YesNo(false),
    ]);
    table
}
