//! Whole runs over captures that the tests build.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use thinair_capture::{LinkType, Reader, Timestamp, Writer};
use thinair_rohc::{Channel, CidSpace, Mode, ProfileId, ProfileSet};
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;

use super::Analysis;
use crate::outcome::{BreakEven, Outcome, Totals};
use crate::settings::{Billing, RandomLoss, SchemeSpec, Settings};
use crate::survey::Survey;

fn settings() -> Settings {
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
    let rohc = |mode| SchemeSpec::Rohc { name: "rohc-v1", channel, mode, learned: false };
    let modes = [Mode::Unidirectional, Mode::Optimistic].map(rohc);
    Settings::new(channel, &[modes[0], modes[1], SchemeSpec::Schc, SchemeSpec::Lowpan])
}

/// Returns a UDP datagram over IPv4 from host `from` to host `to`, with this IP-ID and payload.
fn datagram(from: u8, to: u8, id: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet =
        Vec::from(*b"\x45\0\0\0\0\0\0\0\x40\x11\0\0\x0a\x63\0\0\x0a\x63\0\0\xe0\x01\x16\x33\0\0\x12\x34");
    packet[15] = from;
    packet[19] = to;
    packet[4..6].copy_from_slice(&id.to_be_bytes());
    packet.extend_from_slice(payload);
    let len = packet.len() as u16;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[24..26].copy_from_slice(&(len - 20).to_be_bytes());
    sealed(packet)
}

/// Returns the packet with a correct header checksum.
fn sealed(mut packet: Vec<u8>) -> Vec<u8> {
    let end = usize::from(packet[0] & 0x0F) * 4;
    packet[10..12].copy_from_slice(&[0, 0]);
    let sum = Ipv4::checksum_of(&packet[..end]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn changed(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut packet = datagram(1, 2, 7, b"\x40\x01\x12\x34\xb4time");
    change(&mut packet);
    packet
}

fn run(settings: Settings, packets: &[Vec<u8>], nanos: impl Fn(u64) -> u64) -> Outcome {
    run_in(1, settings, packets, nanos)
}

fn run_in(threads: usize, settings: Settings, packets: &[Vec<u8>], nanos: impl Fn(u64) -> u64) -> Outcome {
    let mut file = Writer::new(Vec::new(), LinkType::RAW).unwrap();
    for (packet, at) in packets.iter().zip(0..) {
        file.write(Timestamp::from_nanos(nanos(at)), packet).unwrap();
    }
    let capture = file.into_inner();
    let mut survey = Survey::default();
    survey.read(&settings, capture.as_slice(), |_| ()).unwrap();
    let mut analysis = Analysis::new(settings, survey).with_threads(threads);
    analysis.read("made.pcap", capture.as_slice(), |_| ()).unwrap();
    analysis.finish()
}

/// More packets than a batch has, some of them damaged or lost.
#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let packets: Vec<_> = (0..3_000)
        .map(|at| datagram((at % 23) as u8, 99, at, &at.to_be_bytes()[..(at % 3).into()]))
        .collect();
    let loss = Some(RandomLoss { probability: 0.05, seed: 1 });
    for settings in [
        settings(),
        Settings { loss, partitions: 3, ..settings() },
        Settings { damage_one: true, partitions: 2, ..settings() },
    ] {
        let json = |threads| {
            let outcome = run_in(threads, settings.clone(), &packets, |at| at * 1_000_000);
            assert_eq!((outcome.totals.packets, outcome.totals.flows), (3_000, 23));
            serde_json::to_string(&outcome).unwrap()
        };
        let one = json(1);
        for threads in [2, 3, 9] {
            assert!(json(threads) == one, "{threads} threads");
        }
    }
}

#[test]
fn odd_packets_are_counted_and_come_back_exactly() {
    let odd = [
        ("fragment", changed(|p| p[6] = 0x20)),
        ("fragment", changed(|p| p[7] = 3)),
        ("reserved_bits", changed(|p| p[6] = 0x80)),
        ("length_mismatch", changed(|p| p.push(0))),
        ("udp_length_mismatch", changed(|p| p[25] += 1)),
        ("ipv4_options", {
            changed(|p| {
                p[0] = 0x46;
                p[3] += 4;
                p.splice(20..20, [0x94, 4, 0, 0]);
            })
        }),
    ];
    let mut packets: Vec<_> = odd.iter().map(|(_, packet)| sealed(packet.clone())).collect();
    packets.push(changed(|p| p[10] ^= 1));
    packets.push(datagram(1, 2, 8, b""));
    packets.push(b"\x00\x01".to_vec());
    packets.push(vec![0x45; 19]);
    let packets: Vec<_> = packets.iter().cycle().take(5 * packets.len()).cloned().collect();

    let outcome = run(settings(), &packets, |at| at * 1_000_000);

    let input = &outcome.inputs[0];
    assert_eq!((outcome.mismatches(), &outcome.faults.len()), (0, &0), "{:?}", outcome.faults);
    assert_eq!((input.packets, input.ip_packets), (50, 40));
    assert_eq!(input.skipped.values().sum::<u64>(), 10);
    let counts: Vec<_> = input.odd.iter().map(|(name, count)| (*name, *count)).collect();
    assert_eq!(
        counts,
        [
            ("bad_ip_checksum", 5),
            ("fragment", 10),
            ("ipv4_options", 5),
            ("length_mismatch", 5),
            ("reserved_bits", 5),
            ("udp_length_mismatch", 5)
        ]
    );
}

#[test]
fn both_directions_of_a_conversation_have_their_side() {
    let mut packets = Vec::new();
    for i in 0..6 {
        packets.push(datagram(1, 2, i, b"to"));
        packets.push(datagram(2, 1, i, b"and fro"));
    }
    let outcome = run(settings(), &packets, |at| at * 1_000_000);
    let told: Vec<_> =
        outcome.flows.iter().map(|flow| (flow.src.as_str(), flow.side, flow.packets)).collect();
    assert_eq!(told, [("10.99.0.1:57345", "a", 6), ("10.99.0.2:57345", "b", 6)]);
    assert!(outcome.totals.schemes[1].feedback_bytes > 0);
    assert_eq!(outcome.totals.schemes[0].feedback_bytes, 0);
}

#[test]
fn time_never_goes_back() {
    let packets: Vec<_> = (0..40).map(|i| datagram(1, 2, i, b"tick")).collect();
    let outcome = run(settings(), &packets, |at| 5_000_000_000 - at * 100_000_000);
    assert_eq!(outcome.mismatches(), 0);
    assert_eq!(outcome.timeline.stretches().count(), 1);
}

#[test]
fn loss_is_counted_apart_from_mismatches() {
    let packets: Vec<_> = (0..2_000).map(|i| datagram(1, 2, i, &i.to_be_bytes())).collect();
    let loss = Some(RandomLoss { probability: 0.2, seed: 9 });
    let outcome = run(Settings { loss, ..settings() }, &packets, |at| at * 1_000_000);
    for scheme in &outcome.totals.schemes {
        assert!((300..600).contains(&scheme.lost), "{}", scheme.lost);
        assert_eq!(scheme.lost, scheme.lost_by.values().sum::<u64>());
    }
    let by_link = |at: usize| outcome.totals.schemes[at].lost_by["link"];
    assert_eq!(by_link(0), by_link(1));
}

#[test]
fn more_flows_than_contexts_still_come_back() {
    let packets: Vec<_> = (0..3_000_u16).map(|i| datagram(1, 2 + (i % 50) as u8, i, b"x")).collect();
    let outcome = run(settings(), &packets, |at| at * 1_000_000);
    assert_eq!((outcome.mismatches(), outcome.flows.len()), (0, 50));
}

#[test]
fn what_a_scheme_has_no_way_for_goes_as_it_is() {
    let packets: Vec<_> = (0..9).map(|i| datagram(1, 2, i, b"four")).collect();
    let outcome = run(settings(), &packets, |at| at);
    let lowpan = &outcome.totals.schemes[3];
    assert_eq!((lowpan.not_applicable, lowpan.bytes_out), (9, outcome.totals.traffic.bytes_in));
    assert_eq!((lowpan.layers_out.rohc, lowpan.header_bytes_out), (0, 9 * 28));
    assert!(lowpan.packet_types.is_empty());
}

#[test]
fn a_scheme_that_is_left_out_leaves_no_trace() {
    let packets: Vec<_> = (0..40).map(|i| datagram(1, 2, i, b"x")).collect();
    let whole = run(settings(), &packets, |at| at * 1_000_000);
    let rest = whole.best_of_each();
    assert_eq!((whole.flows[0].break_even.len(), rest.flows[0].break_even.len()), (6, 3));
    assert_eq!((rest.totals.schemes.len(), rest.header_sizes_out.len()), (3, 3));
    assert!(rest.flows[0].course.iter().all(|milestone| milestone.bytes_out.len() == 3));
    assert!(rest.timeline.stretches().all(|(_, stretch)| stretch.header_bytes_out.len() == 3));
    assert_eq!(rest.totals.schemes[0].id(), "rohc-v1/o");
    let names = |one: &BreakEven| [one.cheaper.clone(), one.than.clone()];
    assert!(rest.flows[0].break_even.iter().flat_map(names).all(|name| name != "rohc-v1/u"));
}

/// Feedback counts, too, and the course of a flow agrees with its sums.
#[test]
fn the_course_of_a_flow_ends_at_its_sums() {
    let packets: Vec<_> = (0..45).map(|i| datagram(1, 2, i, b"x")).collect();
    let outcome = run(settings(), &packets, |at| at * 1_000_000);
    let flow = &outcome.flows[0];
    let last = flow.course.last().unwrap();
    let sums: Vec<_> = flow.schemes.iter().map(|scheme| scheme.bytes_out + scheme.feedback_bytes).collect();
    assert_eq!((last.packets, last.bytes_in, &last.bytes_out), (45, flow.traffic.bytes_in, &sums));
    let firsts: Vec<_> = flow.schemes.iter().map(|scheme| scheme.first_packet_bytes).collect();
    // O-mode answers the first IR packet with feedback.
    assert_eq!(flow.course[0].bytes_out[0], firsts[0]);
    assert!(flow.course[0].bytes_out[1] > firsts[1]);
}

#[test]
fn headers_of_new_flows_are_those_of_their_first_packets() {
    let firsts = [datagram(1, 2, 1, b"one"), datagram(2, 1, 1, b"two"), datagram(3, 4, 1, b"three")];
    let more = firsts.iter().cycle().take(12).cloned();
    let packets: Vec<_> = firsts.iter().cloned().chain(more).collect();

    let alone = run(settings(), &firsts, |at| at * 1_000_000);
    let whole = run(settings(), &packets, |at| at * 1_000_000);

    assert_eq!((whole.totals.flows, whole.totals.traffic.first_header_bytes_in), (3, 3 * 28));
    // The rules of SCHC depend on all packets.
    for (alone, whole) in alone.totals.schemes.iter().zip(&whole.totals.schemes).take(2) {
        assert_eq!(whole.first_header_bytes_out, alone.layers_out.all_headers(), "{}", whole.id());
        assert!(whole.first_header_bytes_out < whole.layers_out.all_headers(), "{}", whole.id());
    }
}

#[test]
fn records_that_come_one_by_one_count_as_those_of_a_file() {
    let capture = std::fs::read("../../captures/coap_udp4_observe.pcap").unwrap();
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
    let scheme = SchemeSpec::Rohc { name: "rohc-v1", channel, mode: Mode::Optimistic, learned: false };
    let settings = Settings::new(channel, &[scheme]);

    let mut whole = Analysis::new(settings.clone(), Survey::default());
    whole.read("file", capture.as_slice(), |_| ()).unwrap();
    let mut live = Analysis::new(settings, Survey::default());
    let mut link = live.begin("eth0");
    let mut reader = Reader::new(capture.as_slice()).unwrap();
    while let Some(record) = reader.next_record() {
        live.observe(&mut link, &record.unwrap());
    }

    let sums = |totals: Totals| (totals.packets, totals.traffic.bytes_in, totals.schemes[0].bytes_out);
    assert_eq!(sums(live.totals()), sums(whole.totals()));
    assert_eq!(link.input().packets, 403);
}

/// Flows of many sizes, only some of which are listed.
#[test]
fn flows_that_are_not_listed_keep_their_octets() {
    let packets: Vec<_> = (0..100_u16)
        .map(|i| datagram(1, 2 + (i * i % 50) as u8, i, &vec![b'x'; usize::from(i % 7)]))
        .collect();
    let run = |most_flows| run(Settings { most_flows, ..settings() }, &packets, |at| at * 1_000_000);
    let whole = run(50);
    assert!(whole.other_flows.is_empty());
    let mut by_size: Vec<_> = whole.flows.iter().collect();
    by_size.sort_by_key(|flow| std::cmp::Reverse(flow.traffic.bytes_in));
    for most in [0, 1, 7] {
        let part = run(most);
        assert_eq!(format!("{:?}", part.totals), format!("{:?}", whole.totals));
        assert_eq!(part.totals.flows, (part.flows.len() + part.other_flows.len()) as u64);
        let largest: Vec<_> = whole
            .flows
            .iter()
            .filter(|flow| by_size[..most].iter().any(|large| large.dst == flow.dst))
            .map(|flow| format!("{flow:?}"))
            .collect();
        assert_eq!(part.flows.iter().map(|flow| format!("{flow:?}")).collect::<Vec<_>>(), largest);
        for other in &part.other_flows {
            let flow = whole.flows.iter().find(|flow| flow.dst == other.dst).unwrap();
            assert_eq!((other.packets, other.bytes_in), (flow.packets, flow.traffic.bytes_in));
            let out: Vec<_> = flow.schemes.iter().map(|scheme| scheme.bytes_out).collect();
            let mut feedback: Vec<_> = flow.schemes.iter().map(|scheme| scheme.feedback_bytes).collect();
            if feedback.iter().all(|octets| *octets == 0) {
                feedback.clear();
            }
            assert_eq!((&other.bytes_out, &other.feedback_bytes), (&out, &feedback));
        }
    }
}

#[test]
fn where_units_are_billed_a_recommendation_saves_some() {
    // 48 octets are two units of 40, a compressed packet is one.
    let settings = Settings { billing: Some(Billing::new(40, 3.0)), ..settings() };
    let packets: Vec<_> = (0..400).map(|i| datagram(1, 2, i, b"twenty octets, whole")).collect();
    let outcome = run(settings.clone(), &packets, |at| at * 1_000_000);
    assert!(outcome.recommendation.is_some());
    assert!(outcome.totals.schemes[1].cost_out < Some(1_300.0), "{:?}", outcome.totals.schemes[1].cost_out);

    // 36 octets are one unit: no scheme can cost less.
    let packets: Vec<_> = (0..400).map(|i| datagram(1, 2, i, b"8 octets")).collect();
    let outcome = run(settings, &packets, |at| at * 1_000_000);
    assert!(outcome.totals.schemes[1].saved_ratio > 0.5);
    assert_eq!(outcome.recommendation, None);
}

#[test]
fn a_capture_of_known_duration_has_the_rate_of_all_of_it() {
    let packets: Vec<_> = (0..11).map(|i| datagram(1, 2, i, b"tick")).collect();
    let run = |duration| {
        let outcome = run(Settings { duration, ..settings() }, &packets, |at| at * 200_000_000);
        let recommendation = outcome.recommendation.unwrap();
        (recommendation.seconds, recommendation.month.unwrap().bytes_in)
    };
    let (seconds, octets) = run(None);
    assert_eq!((seconds, octets), (2.0, 11 * 32 * 1_296_000));
    assert_eq!(run(Some(Duration::from_secs(16))), (16.0, octets / 8));
    // Packets later than that count, too.
    assert_eq!(run(Some(Duration::from_secs(1))), (seconds, octets));
}

/// Segments of connections of six packets, each from a new port of one client, whose sequence numbers are near those of the last.
fn short_connections(count: u16) -> Vec<Vec<u8>> {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    const FIN: u8 = 1;
    let mut packets = Vec::new();
    for connection in 0..count {
        let mut seq = 1_000 + 7_919 * u32::from(connection);
        for (flags, octets) in [(SYN, 0_u32), (ACK, 0), (ACK, 21), (ACK, 21), (ACK, 21), (ACK | FIN, 0)] {
            let mut tcp: Vec<u8> =
                [40_000 + 37 * connection, 80].iter().flat_map(|port| port.to_be_bytes()).collect();
            tcp.extend(seq.to_be_bytes());
            let ack = if flags & ACK > 0 { 5_000 + 3 * seq } else { 0 };
            tcp.extend(ack.to_be_bytes());
            tcp.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
            tcp.extend((0..octets).map(|i| (i + seq) as u8));
            let mut packet = Vec::from(*b"\x45\0\0\0\0\0\x40\0\x40\x06\0\0\x0a\0\0\x05\x0a\0\0\x09");
            let pseudo = Sum::ZERO.octets(&packet[12..20]).word(6).word(tcp.len() as u16);
            let sum = pseudo.octets(&tcp).checksum();
            tcp[16..18].copy_from_slice(&sum.to_be_bytes());
            packet.extend(&tcp);
            let len = packet.len() as u16;
            packet[2..4].copy_from_slice(&len.to_be_bytes());
            packet[4..6].copy_from_slice(&(packets.len() as u16).to_be_bytes());
            packets.push(sealed(packet));
            seq += octets + u32::from(flags & (SYN | FIN) > 0);
        }
    }
    packets
}

/// A loss of a SYN would contradict the capture: the packets behind it show that it arrived, and a compressor relies on that. Other
/// losses are still counted.
#[test]
fn a_loss_does_not_contradict_the_capture() {
    let tcp = ProfileSet::of(&[ProfileId::Tcp]).unwrap();
    let channel = Channel::new(CidSpace::Small, 15, tcp).unwrap();
    let rohc = |mode| SchemeSpec::Rohc { name: "tcp", channel, mode, learned: false };
    let modes = [Mode::Unidirectional, Mode::Optimistic].map(rohc);
    let packets = short_connections(200);
    for seed in 1..9 {
        let loss = Some(RandomLoss { probability: 0.1, seed });
        let outcome =
            run(Settings { loss, ..Settings::new(channel, &modes) }, &packets, |at| at * 10_000_000);
        assert_eq!(outcome.mismatches(), 0, "seed {seed}");
        let by_link = |at: usize| outcome.totals.schemes[at].lost_by["link"];
        assert!((60..140).contains(&by_link(0)), "{}", by_link(0));
        assert_eq!(by_link(0), by_link(1));
    }
}
