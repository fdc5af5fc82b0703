//! Refreshes of sparse traffic: octets that they take in U-mode, and how long a decompressor that starts late waits.

#![allow(clippy::unwrap_used)]

mod retimed;

use std::fs;
use std::path::Path;

use thinair_analyze::{Directions, endpoint};
use thinair_capture::{Error, Reader};
use thinair_lowpan::Contexts;
use thinair_rohc::{
    Channel, Cid, CidSpace, CompressorConfig, DecompressorConfig, Endpoint, Instant, Mode, ProfileId,
    ProfileSet,
};

use retimed::{PACES, retimed};

/// Longer than any packet of the captures.
const ROOM: usize = 4_096;

/// Largest number of octets of the re-timed demo capture, of which the IP packets have 38,400.
const DEMO_BAR: usize = 6_500;

/// Largest number of octets of the readings of a thermostat, of which the IP packets have 696,270.
const LESHAN_BAR: usize = 300_000;

/// Packets of its flow within which a decompressor that joins is served.
const JOIN_BAR: usize = 128;

/// A packet and its compressed form.
struct Sent {
    side: usize,
    now: Instant,
    cid: Cid,
    rohc: Vec<u8>,
    packet: Vec<u8>,
    /// Octets of a header that refreshes a context.
    refresh: usize,
}

/// An end of a link in U-mode with profile `coap`, as an analysis has it.
fn end() -> Endpoint<'static> {
    let profiles = ProfileSet::v1().with(ProfileId::Coap).unwrap();
    let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
    let decompressor =
        DecompressorConfig { mode: Mode::Unidirectional, ..DecompressorConfig::new(channel) };
    endpoint(CompressorConfig::new(channel), decompressor, &[])
}

/// Compresses every packet of a capture and compares it with its decompressed form.
fn send(capture: &[u8]) -> Vec<Sent> {
    let mut reader = Reader::new(capture).unwrap();
    let mut directions = Directions::new(Contexts::NONE);
    let mut ends = [end(), end()];
    let (mut rohc, mut back) = (vec![0; ROOM], vec![0; ROOM]);
    let (mut all, mut first) = (Vec::new(), None);
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
        let (done, len) = ends[side].send(now, packet, &mut rohc).unwrap();
        let got = ends[1 - side].receive(now, &rohc[..len], &mut back).unwrap();
        assert_eq!(back[..got.len], *packet);
        let refresh = if done.refresh { done.header_out } else { 0 };
        all.push(Sent {
            side,
            now,
            cid: done.cid,
            rohc: rohc[..len].to_vec(),
            packet: packet.to_vec(),
            refresh,
        });
    }
    all
}

fn octets(all: &[Sent]) -> usize {
    all.iter().map(|sent| sent.rohc.len()).sum()
}

/// Largest number of packets of a flow that a decompressor needs until it delivers every packet that follows, for one
/// that joins at each packet of the capture.
fn longest_wait(all: &[Sent]) -> usize {
    (0..all.len()).map(|join| wait(&all[join..])).max().unwrap_or(0)
}

/// The same for a decompressor that joins at the first of these packets; each flow is followed for a while.
fn wait(rest: &[Sent]) -> usize {
    let mut ends = [end(), end()];
    let mut back = vec![0; ROOM];
    let mut flows: Vec<(usize, Cid, usize, usize)> = Vec::new();
    for sent in rest {
        if flows.len() > 1 && flows.iter().all(|flow| flow.2 > JOIN_BAR + 16) {
            break;
        }
        let at = flows.iter().position(|flow| (flow.0, flow.1) == (sent.side, sent.cid)).unwrap_or_else(|| {
            flows.push((sent.side, sent.cid, 0, 0));
            flows.len() - 1
        });
        let got = ends[1 - sent.side].receive(sent.now, &sent.rohc, &mut back);
        let [a, b] = &mut ends;
        if sent.side == 0 { a.observe(b) } else { b.observe(a) }
        let (_, _, packets, lost) = &mut flows[at];
        *packets += 1;
        match got {
            Ok(got) => assert_eq!(back[..got.len], sent.packet, "a packet was delivered wrong"),
            Err(_) => *lost = *packets,
        }
    }
    // The packet behind the last one that was lost.
    flows.iter().map(|flow| flow.3 + 1).max().unwrap_or(0)
}

fn leshan() -> Option<Vec<u8>> {
    let Some(shared) = std::env::var_os("THINAIR_SHARED") else {
        println!("skipped, because THINAIR_SHARED is not set: readings of a thermostat");
        return None;
    };
    Some(fs::read(Path::new(&shared).join("captures/open/leshan-thermostat-readings.pcapng")).unwrap())
}

#[test]
fn sparse_exchanges_stay_small_in_u_mode() {
    let all: Vec<_> = PACES.iter().map(|&pace| octets(&send(&retimed(pace)))).collect();
    assert!(all.iter().all(|&octets| octets <= DEMO_BAR), "{all:?}");
}

#[test]
fn readings_of_a_thermostat_stay_small_in_u_mode() {
    let Some(capture) = leshan() else { return };
    let octets = octets(&send(&capture));
    assert!(octets <= LESHAN_BAR, "{octets}");
}

#[test]
fn refreshes_of_sparse_exchanges_take_a_tenth_at_most() {
    for pace in PACES {
        let all = send(&retimed(pace));
        let refreshes: usize = all.iter().map(|sent| sent.refresh).sum();
        assert!(refreshes * 10 <= octets(&all), "{pace} s: {refreshes} of {}", octets(&all));
    }
}

#[test]
fn a_decompressor_that_joins_sparse_exchanges_is_served_within_128_packets() {
    for pace in PACES {
        let packets = longest_wait(&send(&retimed(pace)));
        assert!(packets <= JOIN_BAR, "{pace} s: {packets}");
    }
}

#[test]
fn a_decompressor_that_joins_the_readings_of_a_thermostat_is_served_within_128_packets() {
    let Some(capture) = leshan() else { return };
    let packets = longest_wait(&send(&capture));
    assert!(packets <= JOIN_BAR, "{packets}");
}
