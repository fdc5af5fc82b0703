//! Ten thousand LwM2M packets of a Leshan server and a thermostat: many observed resources on one 5-tuple.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use thinair_capture::Reader;
use thinair_report::{Axis, Cell, Column, Figure, Section, StackedBars, Table};
use thinair_rohc::{Format, Instant, Mode, ProfileId, Refresh};

use super::table::verdict;
use crate::pair::{End, Pair, Settings};
use crate::paper::{Error, Findings, Plan};
use crate::row::Row;

/// Where the capture is in the folder of shared ones.
const CAPTURE: &str = "captures/open/leshan-thermostat-readings.pcapng";
/// What rohc-lib needs with its defaults.
const ROHC_LIB: f64 = 592_546.0;

/// A way to carry the capture.
struct Way {
    name: &'static str,
    what: &'static str,
    is_elided: bool,
    mode: Mode,
    refresh: Option<Refresh>,
    max: f64,
}

const WAYS: [Way; 3] = [
    Way {
        name: "o-carried",
        what: "O-mode without refreshes, checksums carried",
        is_elided: false,
        mode: Mode::Optimistic,
        refresh: Some(Refresh::Off),
        max: 150_000.0,
    },
    Way {
        name: "o-elided",
        what: "O-mode without refreshes, checksums elided",
        is_elided: true,
        mode: Mode::Optimistic,
        refresh: Some(Refresh::Off),
        max: 130_000.0,
    },
    Way {
        name: "u-carried",
        what: "U-mode with the default refreshes, checksums carried",
        is_elided: false,
        mode: Mode::Unidirectional,
        refresh: None,
        max: 300_000.0,
    },
];

/// The packets of the capture, with the end that each comes from.
struct Capture(Vec<(Instant, End, Vec<u8>)>);

/// Where the octets went.
#[derive(Default)]
struct Spent {
    packets: u64,
    octets: u64,
    payload: u64,
    feedback: u64,
    not_exact: u64,
    /// Packets and octets of ROHC headers, by format.
    headers: BTreeMap<Format, (u64, u64)>,
}

pub(super) fn measure(plan: &Plan, findings: &mut Findings) -> Result<(), Error> {
    let path = plan.shared.as_ref().map(|shared| shared.join(CAPTURE)).filter(|path| path.is_file());
    let Some(path) = path else {
        findings.left_out.push(format!("Left out: the rows leshan/..., as there is no shared {CAPTURE}."));
        return Ok(());
    };
    let capture = read(&path)?;
    let plain: usize = capture.0.iter().map(|(_, _, packet)| packet.len()).sum();
    let mut totals = Table::new(
        "",
        [
            Column::text("way"),
            Column::number("octets").unit("B"),
            Column::number("payload").unit("B"),
            Column::number("first octets").unit("B"),
            Column::number("other headers").unit("B"),
            Column::number("feedback").unit("B"),
        ],
    );
    let mut formats = Table::new(
        "Headers by format",
        [
            Column::text("way"),
            Column::text("format"),
            Column::number("packets"),
            Column::number("octets").unit("B"),
            Column::number("mean").unit("B"),
        ],
    );
    let parts = ["payload", "first octets", "other headers"];
    let mut bars = StackedBars::new(Axis::new("octets").octets(), parts);
    for way in &WAYS {
        let spent = carry(way, &capture, plan.seed)?;
        rows(way, plain, &spent, findings);
        let others = spent.octets - spent.payload - spent.packets;
        totals.row([
            Cell::text(way.name),
            verdict(spent.octets as f64, Some(way.max)),
            Cell::integer(spent.payload),
            Cell::integer(spent.packets),
            Cell::integer(others),
            Cell::integer(spent.feedback),
        ]);
        for (format, (packets, octets)) in &spent.headers {
            formats.row([
                Cell::text(way.name),
                Cell::text(format.name()),
                Cell::integer(*packets),
                Cell::integer(*octets),
                Cell::number(*octets as f64 / *packets as f64, 2),
            ]);
        }
        bars = bars.bar(way.name, [spent.payload, spent.packets, others].map(|octets| octets as f64));
    }
    findings.ours.push(
        Section::new("Leshan")
            .text(format!(
                "{} LwM2M packets of {plain} octets, both directions, real times. Message IDs count across many observed \
                    resources. rohc-lib with its defaults needs {ROHC_LIB} octets. Feedback is not in the sums.",
                capture.0.len()
            ))
            .table(totals)
            .figure(Figure::new("Where the octets of the Leshan capture go", bars))
            .table(formats),
    );
    Ok(())
}

fn rows(way: &Way, plain: usize, spent: &Spent, findings: &mut Findings) {
    let row = |part: &str, what: &str, octets: u64| {
        let id = if part.is_empty() {
            format!("leshan/{}", way.name)
        } else {
            format!("leshan/{}/{part}", way.name)
        };
        Row::new(id, format!("{}: {what}", way.what), "octets", octets as f64)
    };
    findings.rows.push(
        row("", "all packets", spent.octets)
            .peer("plain", plain as f64)
            .peer("rohc-lib", ROHC_LIB)
            .at_most(way.max),
    );
    findings.rows.extend([
        row("payload", "payload behind the compressed headers", spent.payload),
        row("first-octets", "one octet of header a packet", spent.packets),
        row("feedback", "feedback, not in the sum", spent.feedback),
    ]);
    for (format, (packets, octets)) in &spent.headers {
        let what = format!("headers behind the first octet of {packets} packets {}", format.name());
        findings.rows.push(row(format.name(), &what, octets - packets));
    }
    findings.rows.push(
        Row::new(
            format!("leshan/{}/not-exact", way.name),
            format!("{}: packets that did not come back as they were", way.what),
            "packets",
            spent.not_exact as f64,
        )
        .at_most(0.0),
    );
}

fn carry(way: &Way, capture: &Capture, seed: u64) -> Result<Spent, Error> {
    let settings = Settings::new(Some(ProfileId::Coap), seed)?;
    let settings = if way.is_elided { settings.elided() } else { settings };
    let mut pair = Pair::new(&Settings { mode: way.mode, refresh: way.refresh, ..settings })?;
    let mut spent = Spent::default();
    for (now, from, packet) in &capture.0 {
        let trip = pair.carry(*now, *from, packet)?;
        let (len, header) = (trip.compressed.len as u64, trip.compressed.header_out as u64);
        spent.packets += 1;
        spent.octets += len;
        spent.payload += len - header;
        spent.feedback += trip.feedback as u64;
        spent.not_exact += u64::from(!trip.is_exact);
        let (packets, octets) = spent.headers.entry(trip.compressed.format).or_default();
        *packets += 1;
        *octets += header;
    }
    Ok(spent)
}

fn read(path: &Path) -> Result<Capture, Error> {
    let file = File::open(path).map_err(|source| Error::Open { path: path.to_owned(), source })?;
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let mut reader = Reader::new(file).map_err(failed)?;
    let mut packets = Vec::new();
    let (mut first, mut begins) = (None, None);
    while let Some(record) = reader.next_record() {
        let record = record.map_err(failed)?;
        let Ok(network) = record.network_packet() else { continue };
        // The sender of the first packet is one end, everybody else the other.
        let source = source_of(network.packet);
        let from =
            if source == *first.get_or_insert_with(|| source.clone()) { End::Client } else { End::Server };
        let time = record.time.as_nanos();
        let now = Instant::from_nanos(time.saturating_sub(*begins.get_or_insert(time)));
        packets.push((now, from, network.packet.to_vec()));
    }
    Ok(Capture(packets))
}

fn source_of(packet: &[u8]) -> Vec<u8> {
    let addresses = match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(12..16),
        _ => packet.get(8..24),
    };
    addresses.unwrap_or_default().to_vec()
}
