//! Refreshes of sparse traffic: their octets in U-mode, and the waiting time of a decompressor that starts
//! late.

#![allow(clippy::unwrap_used)]

mod retimed;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;

use thinair_analyze::{Directions, endpoint};
use thinair_capture::{Error, Reader};
use thinair_lowpan::Contexts;
use thinair_rohc::{
    Channel, Cid, CidSpace, CompressorConfig, DecompressorConfig, Endpoint, Instant, Mode, ProfileId,
    ProfileSet, Refresh,
};

use retimed::{PACES, retimed};

/// Longer than any packet of the captures.
const ROOM: usize = 4_096;

/// Maximum octets of the demo capture with new times, whose IP packets have 38,400.
const DEMO_BAR: usize = 6_500;

/// Maximum octets of the readings of a thermostat, whose IP packets have 696,270.
const LESHAN_BAR: usize = 300_000;

/// Maximum number of packets of its flow that a joining decompressor waits.
const JOIN_BAR: usize = 128;

/// Octets of all packets of a capture, and the longest wait of a decompressor that joins late, in packets of
/// its flow.
#[derive(Default)]
struct RunResult {
    octets: usize,
    wait: usize,
}

/// A decompressor that joined late, and its progress in its flow.
struct Joined {
    /// Its end of the link. It has sent the requests to which responses refer.
    end: Endpoint<'static>,
    packets: usize,
    /// The newest packet that was not delivered, from 1.
    lost: usize,
}

/// Returns an end of a link in U-mode with profile `coap`, as in an analysis.
fn end(refresh: Refresh) -> Endpoint<'static> {
    let profiles = ProfileSet::v1().with(ProfileId::Coap).unwrap();
    let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
    let decompressor = DecompressorConfig { mode: Mode::Unidirectional, ..DecompressorConfig::new(channel) };
    endpoint(CompressorConfig { refresh, ..CompressorConfig::new(channel) }, decompressor, &[])
}

/// Octets of a capture and the wait under the default policy, and the octets without refreshes.
fn with_and_without(capture: &[u8]) -> (RunResult, usize) {
    (run(capture, Refresh::default()), run(capture, Refresh::Off).octets)
}

/// Sends every packet of a capture. At each one, another decompressor joins its flow.
fn run(capture: &[u8], refresh: Refresh) -> RunResult {
    let mut reader = Reader::new(capture).unwrap();
    let mut directions = Directions::new(Contexts::NONE);
    let mut ends = [end(refresh), end(refresh)];
    let mut joined: BTreeMap<(usize, Cid), VecDeque<Joined>> = BTreeMap::new();
    let (mut rohc, mut back) = (vec![0; ROOM], vec![0; ROOM]);
    let (mut run, mut first) = (RunResult::default(), None);
    while let Some(record) = reader.next_record() {
        let record = match record {
            Ok(record) => record,
            Err(Error::Truncated { .. }) => break,
            Err(error) => panic!("{error}"),
        };
        let nanos = record.time.as_nanos();
        let now = Instant::from_nanos(nanos - *first.get_or_insert(nanos));
        let Ok((side, packet)) = directions.packet(&record) else { continue };
        let side = side.index();
        let done = ends[side].send(now, packet, &mut rohc).unwrap();
        let len = done.len;
        let joined = joined.entry((side, done.cid)).or_default();
        joined.push_back(Joined { end: end(refresh), packets: 0, lost: 0 });
        for late in joined.iter_mut() {
            late.end.observe(&ends[side]);
            late.packets += 1;
            match late.end.receive(now, &rohc[..len], &mut back) {
                Ok(got) => assert_eq!(back[..got.len], *packet, "a packet was delivered wrong"),
                Err(_) => late.lost = late.packets,
            }
            run.wait = run.wait.max(late.lost + 1);
        }
        // A decompressor is followed for a while after it delivers packets.
        if joined.front().is_some_and(|late| late.packets > JOIN_BAR + 32) {
            joined.pop_front();
        }
        let got = ends[1 - side].receive(now, &rohc[..len], &mut back).unwrap();
        assert_eq!(back[..got.len], *packet);
        run.octets += len;
    }
    run
}

fn leshan() -> Option<Vec<u8>> {
    let Some(shared) = std::env::var_os("THINAIR_SHARED") else {
        println!("skipped, because THINAIR_SHARED is not set: readings of a thermostat");
        return None;
    };
    Some(fs::read(Path::new(&shared).join("captures/open/leshan-thermostat-readings.pcapng")).unwrap())
}

#[test]
fn sparse_exchanges_stay_small_in_u_mode_and_serve_late_decompressors() {
    for pace in PACES {
        let (RunResult { octets, wait }, without) = with_and_without(&retimed(pace));
        assert!(octets <= DEMO_BAR, "{pace} s: {octets}");
        assert!(
            (octets - without) * 10 <= octets,
            "{pace} s: {octets} octets, and {without} without refreshes"
        );
        assert!(wait <= JOIN_BAR, "{pace} s: {wait}");
    }
}

#[test]
fn readings_of_a_thermostat_stay_small_in_u_mode_and_serve_late_decompressors() {
    let Some(capture) = leshan() else { return };
    let (RunResult { octets, wait }, without) = with_and_without(&capture);
    assert!(octets <= LESHAN_BAR, "{octets}");
    assert!((octets - without) * 10 <= octets, "{octets} octets, and {without} without refreshes");
    assert!(wait <= JOIN_BAR, "{wait}");
}
