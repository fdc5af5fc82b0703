//! Random captures in random shards, against one run.

#![allow(clippy::unwrap_used)]

use std::ops::Range;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use thinair_capture::{LinkType, Timestamp, Writer};
use thinair_rohc::{Channel, CidSpace, Mode, ProfileId, ProfileSet};
use thinair_wire::header::ipv4::Ipv4;

use super::MergeError;
use crate::outcome::Outcome;
use crate::portable::Portable;
use crate::run::Analysis;
use crate::settings::{Billing, MOST_PARTITIONS, RandomLoss, SchemeSpec, Settings};
use crate::survey::Survey;
use crate::timeline::Timeline;

/// A packet between two of a few hosts.
#[derive(Clone, Copy, Debug)]
struct SentBetween {
    from: u8,
    to: u8,
    kind: Kind,
    octet: u8,
    /// Exponent of the time since the packet before, in powers of four milliseconds.
    pause: u32,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Request,
    Response,
    Datagram,
    Fragment,
    /// In GRE between two other hosts.
    InTunnel,
    /// Not an IP packet.
    Other,
}

fn sent() -> impl Strategy<Value = SentBetween> {
    use Kind::{Datagram, Fragment, InTunnel, Other, Request, Response};
    let kind = vec![Request, Request, Response, Response, Datagram, Fragment, InTunnel, Other];
    let kind = prop::sample::select(kind);
    (0..6_u8, 0..6_u8, kind, any::<u8>(), 0..7_u32).prop_map(|(from, to, kind, octet, pause)| SentBetween {
        from,
        to,
        kind,
        octet,
        pause,
    })
}

impl SentBetween {
    /// Returns the packet with this number.
    fn packet(self, number: u16) -> Vec<u8> {
        let [high, low] = number.to_be_bytes();
        let token = self.octet & 3;
        let (ports, payload) = match self.kind {
            Kind::Request => ([57_345, 5683], vec![0x41, 1, high, low, token, 0xB4, b't', b'i', b'm', b'e']),
            Kind::Response => ([5683, 57_345], vec![0x61, 0x45, high, low, token, 0xFF, self.octet]),
            Kind::Datagram | Kind::Fragment | Kind::InTunnel => {
                ([u16::from(token) + 9, 99], vec![high, low, self.octet])
            }
            Kind::Other => return vec![self.octet & 0x0F; 3],
        };
        let len = 8 + payload.len() as u16;
        let mut packet = match (self.from ^ self.to) & 1 {
            // IPv4 between hosts of different parity, and IPv6 between others.
            1 => {
                let mut header = *b"\x45\0\0\0\0\0\0\0\x40\x11\0\0\x0a\x63\0\0\x0a\x63\0\0";
                (header[15], header[19]) = (self.from, self.to);
                header[2..4].copy_from_slice(&(20 + len).to_be_bytes());
                header[4..6].copy_from_slice(&number.to_be_bytes());
                header[6] = if matches!(self.kind, Kind::Fragment) { 0x20 } else { 0 };
                let sum = Ipv4::checksum_of(&header);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                header.to_vec()
            }
            _ => {
                let mut header = [0; 40];
                header[0] = 0x60;
                header[4..6].copy_from_slice(&len.to_be_bytes());
                header[6..8].copy_from_slice(&[17, 64]);
                (header[8], header[23], header[24], header[39]) = (0xFD, self.from, 0xFD, self.to);
                header.to_vec()
            }
        };
        packet.extend([ports[0], ports[1], len, 0x1234].iter().flat_map(|field| field.to_be_bytes()));
        packet.extend(payload);
        match self.kind {
            Kind::InTunnel => tunneled(&packet, self.octet),
            _ => packet,
        }
    }
}

/// Returns an IPv4 packet with a packet in GRE.
fn tunneled(packet: &[u8], from: u8) -> Vec<u8> {
    let mut header = *b"\x45\0\0\0\0\0\0\0\x40\x2f\0\0\xc0\0\x02\0\xc0\0\x02\xff";
    header[15] = from;
    header[2..4].copy_from_slice(&(24 + packet.len() as u16).to_be_bytes());
    let sum = Ipv4::checksum_of(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let kind = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xDD] };
    [&header[..], &[0, 0], &kind, packet].concat()
}

/// Returns a capture of the packets.
fn capture(packets: &[SentBetween]) -> Vec<u8> {
    let mut file = Writer::new(Vec::new(), LinkType::RAW).unwrap();
    let mut time = 0;
    for (sent, number) in packets.iter().zip(0..) {
        time += 1_000_000 * 4_u64.pow(sent.pause);
        file.write(Timestamp::from_nanos(time), &sent.packet(number)).unwrap();
    }
    file.into_inner()
}

fn settings() -> impl Strategy<Value = Settings> {
    let channel =
        prop::sample::select(vec![(CidSpace::Small, 1), (CidSpace::Small, 15), (CidSpace::Large, 30)]);
    let loss = option::of((0.0..0.6, 0..9_u64));
    let billing = option::of((1..50_u32, 0.0..2.0));
    (channel, loss, billing, option::of(30..60_u32), 0..12_usize, any::<bool>(), 1..40_u32).prop_map(
        |((cids, max_cid), loss, billing, link_mtu, most_flows, damage_one, partitions)| {
            let v1 = Channel::new(cids, max_cid, ProfileSet::v1()).unwrap();
            let profiles = ProfileSet::v1().with(ProfileId::Coap).unwrap();
            let coap = Channel::new(cids, max_cid, profiles).unwrap();
            let rohc = |name, channel, mode| SchemeSpec::Rohc { name, channel, mode, learned: false };
            let schemes = [
                rohc("rohc-v1", v1, Mode::Optimistic),
                rohc("coap", coap, Mode::Unidirectional),
                rohc("coap", coap, Mode::Optimistic),
                SchemeSpec::Schc,
                SchemeSpec::Lowpan,
            ];
            Settings {
                loss: loss.map(|(probability, seed)| RandomLoss { probability, seed }),
                billing: billing.map(|(unit, price)| Billing::new(unit, price)),
                link_mtu,
                most_flows,
                damage_one,
                partitions,
                ..Settings::new(coap, &schemes)
            }
        },
    )
}

fn surveyed(settings: &Settings, captures: &[Vec<u8>]) -> Survey {
    let mut survey = Survey::default();
    for capture in captures {
        survey.read(settings, capture.as_slice(), |_| ()).unwrap();
    }
    survey
}

/// Returns the outcome of a run that carries `only` these partitions.
fn run(settings: &Settings, only: Range<u32>, survey: &Survey, captures: &[Vec<u8>]) -> Outcome {
    let mut analysis = Analysis::new(Settings { only, ..settings.clone() }, survey.clone());
    for capture in captures {
        analysis.read("made.pcap", capture.as_slice(), |_| ()).unwrap();
    }
    analysis.finish()
}

/// Returns an outcome as it arrives from another process.
fn sent_by_another(outcome: &Outcome) -> Outcome {
    let settings = outcome.sums.as_ref().unwrap().settings.clone();
    let text = serde_json::to_string(&Portable::of(outcome).unwrap()).unwrap();
    serde_json::from_str::<Portable>(&text).unwrap().into_outcome(settings)
}

/// Compares all values in every digit.
fn assert_equal(merged: Outcome, whole: Outcome) {
    let [merged, whole] = [merged, whole].map(|outcome| format!("{:#?}", Outcome { sums: None, ..outcome }));
    for (number, (merged, whole)) in (1..).zip(merged.lines().zip(whole.lines())) {
        assert_eq!(merged, whole, "line {number}");
    }
    assert_eq!(merged.len(), whole.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn shards_add_up_to_one_run_in_every_bit(
        packets in vec(sent(), 1..150),
        second in vec(sent(), 0..40),
        settings in settings(),
        mut cuts in vec(0..45_u32, 0..5),
        turn in 0..6_usize,
    ) {
        let captures = [capture(&packets), capture(&second)];
        let survey = surveyed(&settings, &captures);
        let whole = run(&settings, 0..u32::MAX, &survey, &captures);
        let survey: Survey = serde_json::from_str(&serde_json::to_string(&survey).unwrap()).unwrap();
        cuts.sort_unstable();
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([u32::MAX]);
        let mut parts: Vec<_> =
            starts.zip(ends).map(|(start, end)| run(&settings, start..end, &survey, &captures)).collect();
        let turn = turn % parts.len();
        parts.rotate_left(turn);
        for part in parts.iter_mut().step_by(2) {
            let sent = sent_by_another(part);
            assert_equal(sent.clone(), part.clone());
            *part = sent;
        }
        assert_equal(Outcome::merge(parts).unwrap(), whole);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn inputs_of_joined_runs_are_those_of_one_run(
        packets in vec(vec(sent(), 1..80), 1..5),
        settings in settings(),
    ) {
        let settings = Settings { loss: None, damage_one: false, ..settings };
        let captures: Vec<_> = packets.iter().map(|packets| capture(packets)).collect();
        let whole = run(&settings, 0..u32::MAX, &surveyed(&settings, &captures), &captures);
        let alone = |captures: &[Vec<u8>]| run(&settings, 0..u32::MAX, &surveyed(&settings, captures), captures);
        let joined = Outcome::join(captures.chunks(1).map(alone).collect()).unwrap();
        let packets = |outcome: &Outcome| outcome.timeline.stretches().map(|(_, stretch)| stretch.packets).sum::<u64>();
        prop_assert_eq!(packets(&joined), packets(&whole));
        let timeline = Timeline::default();
        assert_equal(Outcome { timeline: timeline.clone(), ..joined }, Outcome { timeline, ..whole });
    }
}

#[test]
fn runs_that_do_not_fit_together_are_not_joined() {
    let (settings, captures) = conversations();
    let survey = surveyed(&settings, &captures);
    let part = |settings: &Settings, only| run(settings, only, &survey, &captures);
    let joined = |parts| Outcome::join(parts).map(|_| ());
    let (whole, other) = (part(&settings, 0..8), Settings { link_mtu: Some(60), ..settings.clone() });
    let lossy = Settings { loss: Some(RandomLoss { probability: 0.1, seed: 1 }), ..settings.clone() };
    assert_eq!(joined(vec![]), Err(MergeError::Missing(0)));
    assert_eq!(joined(vec![whole.clone(), part(&settings, 0..7)]), Err(MergeError::Missing(7)));
    assert_eq!(joined(vec![whole.clone(), part(&other, 0..8)]), Err(MergeError::Settings));
    assert_eq!(joined(vec![whole.clone(), whole.best_of_each()]), Err(MergeError::Reduced));
    assert_eq!(joined(vec![part(&lossy, 0..8), part(&lossy, 0..8)]), Err(MergeError::Impaired));
}

/// Datagrams of each host to each other one, more than 20 of each flow, and settings with eight partitions, each
/// with a single context.
fn conversations() -> (Settings, Vec<Vec<u8>>) {
    let pairs = (0..6).flat_map(|from| (0..6).map(move |to| (from, to))).cycle().take(36 * 25);
    let packets: Vec<_> =
        pairs.map(|(from, to)| SentBetween { from, to, kind: Kind::Datagram, octet: 0, pause: 1 }).collect();
    let channel = Channel::new(CidSpace::Small, 0, ProfileSet::v1()).unwrap();
    let rohc = SchemeSpec::Rohc { name: "rohc-v1", channel, mode: Mode::Optimistic, learned: false };
    (Settings { partitions: 8, ..Settings::new(channel, &[rohc]) }, vec![capture(&packets)])
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    let (settings, captures) = conversations();
    let survey = surveyed(&settings, &captures);
    let part = |only| run(&settings, only, &survey, &captures);
    let merged = |parts| Outcome::merge(parts).map(|_| ());
    assert_eq!(merged(vec![part(3..8), part(0..3)]), Ok(()));
    assert_eq!(merged(vec![]), Err(MergeError::Missing(0)));
    assert_eq!(merged(vec![part(1..8)]), Err(MergeError::Missing(0)));
    assert_eq!(merged(vec![part(0..3), part(4..8)]), Err(MergeError::Missing(3)));
    assert_eq!(merged(vec![part(0..3), part(3..7)]), Err(MergeError::Missing(7)));
    assert_eq!(merged(vec![part(0..4), part(3..8)]), Err(MergeError::Twice(3)));
    assert_eq!(merged(vec![part(0..8), part(0..8)]), Err(MergeError::Twice(0)));
    assert_eq!(merged(vec![part(0..3).best_of_each(), part(3..8)]), Err(MergeError::Reduced));

    let other = Settings { link_mtu: Some(60), ..settings.clone() };
    let others = run(&other, 3..8, &survey, &captures);
    assert_eq!(merged(vec![part(0..3), others]), Err(MergeError::Settings));
    let fewer = vec![captures[0][..captures[0].len() / 2].to_vec()];
    let others = run(&settings, 3..8, &survey, &fewer);
    assert_eq!(merged(vec![part(0..3), others]), Err(MergeError::Inputs));
    let others = run(&settings, 3..8, &Survey::default(), &captures);
    assert_eq!(merged(vec![part(0..3), others]), Err(MergeError::Inputs));
}

#[test]
fn merged_parts_are_a_whole_and_a_part_again() {
    let (settings, captures) = conversations();
    let survey = surveyed(&settings, &captures);
    let part = |only| run(&settings, only, &survey, &captures);
    let merged = Outcome::merge(vec![part(0..3), part(3..8)]).unwrap();
    assert!(merged.totals.schemes[0].larger_flows > Some(10));
    assert_equal(merged.clone(), part(0..8));
    let again = Outcome::merge(vec![merged.clone()]).unwrap();
    assert_equal(again, merged);
}

#[test]
fn shards_carry_all_partitions_and_about_as_many_packets_each() {
    let (settings, captures) = conversations();
    let settings = Settings { partitions: 1_000, ..settings };
    let survey = surveyed(&settings, &captures);
    for most in [0, 1, 2, 3] {
        let shards = survey.shards(most);
        assert_eq!(shards.len(), most.max(1));
        let packets: Vec<_> = shards
            .iter()
            .map(|only| run(&settings, only.clone(), &survey, &captures).totals.packets as usize)
            .collect();
        assert_eq!(packets.iter().sum::<usize>(), 36 * 25);
        // Two hosts exchange 50 packets.
        let mean = 36 * 25 / shards.len();
        assert!(packets.iter().all(|packets| packets.abs_diff(mean) <= 50), "{packets:?}");
    }
    assert_eq!(Survey::default().shards(4).len(), 1);
}

#[test]
fn a_number_of_partitions_out_of_range_is_the_nearest_one() {
    let (settings, captures) = conversations();
    for (partitions, nearest) in [(0, 1), (u32::MAX, MOST_PARTITIONS)] {
        let settings = Settings { partitions, ..settings.clone() };
        let survey = surveyed(&settings, &captures);
        assert_eq!(run(&settings, 0..u32::MAX, &survey, &captures).partitions, nearest);
    }
}
