//! Ten thousand LwM2M packets of a Leshan server and a thermostat: many observed resources on one 5-tuple.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use thinair_capture::Reader;
use thinair_rohc::{Format, Instant, ProfileId};

use crate::form::{Figures, PaperRun};
use crate::pair::{EndPair, PairEnd, PairSettings};
use crate::paper::PaperError;

/// Path of the capture in the folder of shared captures.
const CAPTURE: &str = "captures/open/leshan-thermostat-readings.pcapng";
/// Packets of the capture, with the end that sent each.
struct LeshanCapture(Vec<(Instant, PairEnd, Vec<u8>)>);

/// Octets by purpose.
#[derive(Default)]
struct Spent {
    packets: u64,
    octets: u64,
    payload: u64,
    feedback: u64,
    not_exact: u64,
    /// Number and octets of ROHC headers, by format.
    headers: BTreeMap<Format, (u64, u64)>,
}

pub(super) fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let plan = run.plan;
    let path = plan.shared.as_ref().map(|shared| shared.join(CAPTURE)).filter(|path| path.is_file());
    let Some(path) = path else {
        figures.left_out.push(format!("Left out: the rows leshan/..., as there is no shared {CAPTURE}."));
        return Ok(());
    };
    let capture = read(&path)?;
    let plain = capture.0.iter().map(|(_, _, packet)| packet.len()).sum::<usize>() as f64;
    figures.put("leshan/packets", capture.0.len() as f64);
    figures.put("leshan/plain", plain);
    let carried = PairSettings::new(Some(ProfileId::Coap), plan.seed)?;
    let ways = [
        ("o-carried", carried.optimistic()),
        ("o-elided", carried.optimistic().elided()),
        ("u-carried", carried),
    ];
    for (way, settings) in ways {
        let spent = carry(&settings, &capture)?;
        let id = format!("leshan/{way}");
        figures.put(id.clone(), spent.octets as f64).peer("plain", plain);
        let parts = [
            ("payload", spent.payload),
            ("first-octets", spent.packets),
            ("others", spent.octets - spent.payload - spent.packets),
            ("feedback", spent.feedback),
            ("not-exact", spent.not_exact),
        ];
        for (name, part) in parts {
            figures.put(format!("{id}/{name}"), part as f64);
        }
        for (format, (packets, octets)) in &spent.headers {
            let format = format.name();
            figures.put(format!("{id}/{format}"), (octets - packets) as f64).note = packets.to_string();
            let shown = format!("format/{way}/{format}");
            figures.put(format!("{shown}/packets"), *packets as f64);
            figures.put(format!("{shown}/octets"), *octets as f64);
            figures.put(format!("{shown}/mean"), *octets as f64 / *packets as f64);
        }
    }
    Ok(())
}

fn carry(settings: &PairSettings, capture: &LeshanCapture) -> Result<Spent, PaperError> {
    let mut pair = EndPair::new(settings)?;
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

fn read(path: &Path) -> Result<LeshanCapture, PaperError> {
    let file = File::open(path).map_err(|source| PaperError::Open { path: path.to_owned(), source })?;
    let failed = |source| PaperError::Read { path: path.to_owned(), source };
    let mut reader = Reader::new(file).map_err(failed)?;
    let mut packets = Vec::new();
    let (mut first, mut begins) = (None, None);
    while let Some(record) = reader.next_record() {
        let record = record.map_err(failed)?;
        let Ok(network) = record.network_packet() else { continue };
        // The sender of the first packet is one end, all others the other end.
        let source = source_of(network.packet);
        let from = if source == *first.get_or_insert_with(|| source.clone()) {
            PairEnd::Client
        } else {
            PairEnd::Server
        };
        let time = record.time.as_nanos();
        let now = Instant::from_nanos(time.saturating_sub(*begins.get_or_insert(time)));
        packets.push((now, from, network.packet.to_vec()));
    }
    Ok(LeshanCapture(packets))
}

fn source_of(packet: &[u8]) -> Vec<u8> {
    let addresses = match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(12..16),
        _ => packet.get(8..24),
    };
    addresses.unwrap_or_default().to_vec()
}
