mod bridged;
mod damage;
mod meshed;
mod spaces;
mod storm;

use std::path::Path;
use std::time::Duration;

use thinair_capture::Reader;
use thinair_rohc::{CidSpace, CompressError, Integrity, Mode};

use super::*;

/// A unit in transit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owned {
    protocol: Protocol,
    to: Option<SiteId>,
    large: bool,
    octets: Vec<u8>,
}

impl Owned {
    fn of(unit: Unit<'_>) -> Self {
        Self { protocol: unit.protocol, to: unit.to, large: unit.large, octets: unit.octets.to_vec() }
    }

    fn unit(&self) -> Unit<'_> {
        Unit { protocol: self.protocol, to: self.to, large: self.large, octets: &self.octets }
    }
}

fn config(mode: Mode) -> ChannelConfig {
    ChannelConfig { mode, ..ChannelConfig::new() }
}

fn setup(config: &ChannelConfig) -> Setup<'_> {
    Setup {
        config,
        role: Role::Pair,
        integrity: Integrity::None,
        bridged: false,
        typed: false,
        mtu: 1_500,
        largest_unit: 1_600,
        mrru: 0,
        feedback_interval: Duration::ZERO,
        seed: 0x5EED,
    }
}

fn pair(setup: &Setup<'_>) -> [Channel; 2] {
    [Channel::new(setup).unwrap(), Channel::new(&Setup { seed: setup.seed + 1, ..*setup }).unwrap()]
}

fn send(channel: &mut Channel, now: Instant, packet: &[u8]) -> (Result<Sent, NotSent>, Vec<Owned>) {
    let mut units = Vec::new();
    let sent = channel.send(now, packet, &mut |unit| units.push(Owned::of(unit)));
    if let Ok(sent) = &sent {
        let octets: usize = units.iter().map(|unit| unit.octets.len()).sum();
        assert_eq!((sent.units, sent.octets), (units.len(), octets));
    }
    (sent, units)
}

fn poll(channel: &mut Channel, now: Instant) -> Vec<Owned> {
    let mut units = Vec::new();
    channel.poll(now, &mut |unit| units.push(Owned::of(unit)));
    assert!(channel.poll_at().is_none_or(|at| at > now));
    units
}

fn receive(
    channel: &mut Channel,
    now: Instant,
    from: Option<SiteId>,
    unit: &Owned,
) -> (Result<(), NotReceived>, Vec<Vec<u8>>) {
    let mut room = vec![0; LONGEST];
    let received = channel.receive(now, from, unit.unit(), &mut room);
    let packets = received.iter().flatten().map(|place| room[place.clone()].to_vec()).collect();
    (received.map(drop), packets)
}

/// Sends a packet from `from` to `to`, and returns the delivered packets; all units are complete.
fn carry(from: &mut Channel, to: &mut Channel, now: Instant, packet: &[u8]) -> Vec<Vec<u8>> {
    let (sent, units) = send(from, now, packet);
    sent.unwrap();
    let mut packets = Vec::new();
    for unit in &units {
        let (received, delivered) = receive(to, now, None, unit);
        received.unwrap();
        packets.extend(delivered);
    }
    packets
}

/// Transfers due feedback in both directions.
fn settle(ends: &mut [Channel; 2], now: Instant) {
    let [a, b] = ends;
    for unit in poll(a, now) {
        receive(b, now, None, &unit).0.unwrap();
    }
    for unit in poll(b, now) {
        receive(a, now, None, &unit).0.unwrap();
    }
}

/// Returns the IP packets of a capture, each with true for the direction of the first.
fn captured(name: &str) -> Vec<(bool, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures").join(name);
    let mut reader = Reader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    let mut first = None;
    while let Some(record) = reader.next_record() {
        let record = record.unwrap();
        let Ok(network) = record.network_packet() else { continue };
        let packet = network.packet;
        let source = match packet[0] >> 4 {
            4 => packet[12..16].to_vec(),
            _ => packet[8..24].to_vec(),
        };
        let same = *first.get_or_insert_with(|| source.clone()) == source;
        packets.push((same, packet.to_vec()));
    }
    assert!(!packets.is_empty(), "{name}");
    packets
}

fn captures() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let entries = std::fs::read_dir(path).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".pcap")).collect();
    names.sort();
    names
}

/// Returns an IPv6 packet of UDP with an arbitrary checksum.
fn udp6(port: u16, number: u16, payload: usize) -> Vec<u8> {
    let len = (payload + 8) as u16;
    let mut packet = vec![0x60, 0, 0, 0, (len >> 8) as u8, len as u8, 17, 64];
    packet.extend([0xFD; 16]);
    packet.extend([0xFE; 16]);
    packet.extend(port.to_be_bytes());
    packet.extend([0x1F, 0x90, (len >> 8) as u8, len as u8, 0x12, 0x34]);
    // The first octet is valid neither in RTP nor in CoAP, so that neither is detected.
    let rest = (1..payload).map(|i| (i as u16).wrapping_mul(31).wrapping_add(number) as u8);
    packet.extend([1].into_iter().take(payload).chain(rest));
    packet
}

/// A fragment, which only the uncompressed profile supports.
fn fragment(octets: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, (octets >> 8) as u8, octets as u8, 0, 7, 0x20, 0, 64, 17, 0, 0];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.resize(usize::from(octets), 0xA5);
    packet
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

#[test]
fn captures_come_through_bit_for_bit() {
    for (mode, cids, by_type) in [
        (Mode::Unidirectional, CidSpace::Small, false),
        (Mode::Optimistic, CidSpace::Small, true),
        (Mode::Optimistic, CidSpace::Large, false),
        (Mode::Reliable, CidSpace::Small, false),
    ] {
        let config = ChannelConfig { cids, by_type, ..config(mode) };
        let mut totals = [0; 3];
        for name in captures() {
            let mut ends =
                pair(&Setup { typed: true, mtu: u16::MAX, largest_unit: 70_000, ..setup(&config) });
            for (i, (forth, packet)) in captured(&name).iter().enumerate() {
                let now = ms(10 * i as u64);
                let [a, b] = &mut ends;
                let (from, to) = if *forth { (a, b) } else { (b, a) };
                assert_eq!(carry(from, to, now, packet), [packet.as_slice()], "{name}, packet {i}");
                settle(&mut ends, now);
            }
            for end in &ends {
                let counters = end.counters();
                assert_eq!((counters.not_sent.total(), counters.not_received.total()), (0, 0), "{name}");
                let one = [counters.sent.octets, counters.sent.unit_octets, counters.feedback_received.acks];
                for (total, one) in totals.iter_mut().zip(one) {
                    *total += one;
                }
            }
        }
        let [octets, units, acks] = totals;
        assert!(units < octets, "{octets} octets became {units}");
        assert_eq!(acks > 0, mode != Mode::Unidirectional);
    }
}

#[test]
fn two_ends_come_to_the_mode_of_the_plan() {
    for mode in [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable] {
        let config = config(mode);
        let mut ends = pair(&setup(&config));
        for i in 0..60 {
            let [a, b] = &mut ends;
            let (forth, back) = (udp6(1, i, 20), udp6(2, i, 20));
            assert_eq!(carry(a, b, ms(u64::from(i) * 20), &forth), [forth]);
            assert_eq!(carry(b, a, ms(u64::from(i) * 20), &back), [back]);
        }
        let [a, b] = &ends;
        let context = a.compressor_contexts().next().unwrap();
        assert_eq!((context.mode, context.state), (mode, "SO"));
        let (site, context) = b.decompressor_contexts().next().unwrap();
        assert_eq!((site, context.mode, context.state), (None, mode, "FC"));
        // Packets in both directions carry the feedback.
        assert_eq!(b.counters().feedback_sent.alone, 0);
        assert_eq!(b.counters().feedback_sent.in_front > 0, mode != Mode::Unidirectional);
        assert_eq!(b.counters().feedback_sent.in_front, a.counters().feedback_received.acks);
    }
}

#[test]
fn feedback_goes_alone_when_no_packet_comes() {
    let config = config(Mode::Optimistic);
    let [mut a, mut b] = pair(&setup(&config));
    let packet = udp6(1, 0, 20);
    carry(&mut a, &mut b, ms(100), &packet);
    assert_eq!(b.poll_at(), Some(ms(120)));
    assert_eq!(poll(&mut b, ms(119)), []);
    let units = poll(&mut b, ms(120));
    assert_eq!((units.len(), units[0].protocol, b.poll_at()), (1, Protocol::Rohc, None));
    assert_eq!(receive(&mut a, ms(121), None, &units[0]), (Ok(()), Vec::new()));
    assert_eq!(a.compressor_contexts().next().unwrap().mode, Mode::Optimistic);
    assert_eq!((b.counters().feedback_sent.alone, a.counters().feedback_received.acks), (1, 1));
}

#[test]
fn all_feedback_that_waits_goes_with_the_next_packet() {
    let config = config(Mode::Optimistic);
    let [mut a, mut b] = pair(&setup(&config));
    for flow in 1..=12 {
        carry(&mut a, &mut b, ms(0), &udp6(flow, 0, 20));
    }
    let (sent, units) = send(&mut b, ms(1), &udp6(99, 0, 20));
    assert_eq!((sent.unwrap().units, b.poll_at()), (1, None));
    receive(&mut a, ms(1), None, &units[0]).0.unwrap();
    assert_eq!((b.counters().feedback_sent.in_front, a.counters().feedback_received.acks), (12, 12));
    assert!(a.compressor_contexts().all(|context| context.mode == Mode::Optimistic));
}

#[test]
fn feedback_that_does_not_fit_in_front_waits() {
    let config = config(Mode::Optimistic);
    let [mut a, mut b] = pair(&Setup { largest_unit: 300, ..setup(&config) });
    carry(&mut a, &mut b, ms(0), &udp6(1, 0, 20));
    let (sent, units) = send(&mut b, ms(1), &udp6(9, 0, 300 - 51));
    assert_eq!((sent.unwrap().octets, units.len(), b.poll_at()), (299, 1, Some(ms(20))));
    let (sent, _) = send(&mut b, ms(2), &udp6(9, 0, 100));
    assert!(sent.unwrap().octets > 150 && b.poll_at().is_none());
}

#[test]
fn packets_that_no_profile_takes_go_as_they_are_where_that_is_agreed() {
    let config = ChannelConfig { by_type: true, ..config(Mode::Optimistic) };
    let [mut a, mut b] = pair(&Setup { typed: true, ..setup(&config) });
    let packet = fragment(100);
    let (sent, units) = send(&mut a, ms(0), &packet);
    assert_eq!(sent.unwrap().compressed, None);
    assert_eq!(units, [Owned { protocol: Protocol::Ipv4, to: None, large: false, octets: packet.clone() }]);
    assert_eq!(receive(&mut b, ms(0), None, &units[0]), (Ok(()), vec![packet.clone()]));
    // A unit of a type that does not match its content.
    let wrong = Owned { protocol: Protocol::Ipv6, ..units[0].clone() };
    let malformed = Err(NotReceived::Malformed(Protocol::Ipv6));
    assert_eq!(receive(&mut b, ms(0), None, &wrong), (malformed, Vec::new()));
    // If types are not transmitted, or the configuration does not enable it, profile 0x0000 is used.
    for (by_type, typed) in [(true, false), (false, true)] {
        let config = ChannelConfig { by_type, ..config.clone() };
        let [mut a, mut b] = pair(&Setup { typed, ..setup(&config) });
        // Other senders use the Type of IP in any case, where types are transmitted.
        let expected = match typed {
            true => (Ok(()), vec![packet.clone()]),
            false => (Err(NotReceived::Unexpected(Protocol::Ipv4)), Vec::new()),
        };
        assert_eq!(receive(&mut b, ms(0), None, &units[0]), expected);
        let (sent, own) = send(&mut a, ms(0), &packet);
        assert_eq!(sent.unwrap().compressed.unwrap().profile, ProfileId::Uncompressed);
        assert_eq!(receive(&mut b, ms(0), None, &own[0]), (Ok(()), vec![packet.clone()]));
    }
}

#[test]
fn what_is_no_packet_is_counted() {
    let config = config(Mode::Optimistic);
    let [mut a, _] = pair(&setup(&config));
    for garbage in [&[][..], &[0x15; 60], &[0x45; 10], &[0x60; 39]] {
        assert!(matches!(send(&mut a, ms(0), garbage).0, Err(NotSent::Compress(CompressError::NotIp(_)))));
    }
    assert_eq!(
        send(&mut a, ms(0), &udp6(1, 0, 1_453)).0,
        Err(NotSent::TooLong { octets: 1_501, most: 1_500 })
    );
    assert_eq!(a.counters().not_sent.of("not_ip"), 4);
    assert_eq!(a.counters().not_sent.of("too_long"), 1);
    assert_eq!(serde_json::to_value(a.counters()).unwrap()["not_sent"]["not_ip"], 4);
}

#[test]
fn modes_that_need_feedback_are_refused_where_there_is_none() {
    let sites = [SiteId::new(2).unwrap()];
    let mesh = |feedback| Role::Mesh { own: SiteId::new(1), sites: &sites, feedback };
    let error = |mode, role| {
        let config = config(mode);
        Channel::new(&Setup { role, ..setup(&config) }).err().map(|error| error.to_string())
    };
    assert_eq!(
        error(Mode::Optimistic, Role::OneWay).unwrap(),
        "mode o needs feedback, and this carrier is one-way: use mode u"
    );
    assert_eq!(
        error(Mode::Reliable, mesh(false)).unwrap(),
        "mode r needs feedback: set `feedback = true` in [mesh] at all sites, or use mode u"
    );
    assert_eq!(
        error(Mode::Reliable, mesh(true)).unwrap(),
        "mode r supports a single decompressor, and a mesh has many: use mode o or u"
    );
    assert_eq!(error(Mode::Unidirectional, Role::OneWay), None);
    assert_eq!(error(Mode::Unidirectional, mesh(false)), None);
    assert_eq!(error(Mode::Optimistic, mesh(true)), None);
    let twice = Role::Mesh { own: SiteId::new(2), sites: &sites, feedback: true };
    assert_eq!(error(Mode::Optimistic, twice).unwrap(), "site 2 is listed twice");
    let config = ChannelConfig { max_cid: 16, ..config(Mode::Optimistic) };
    let error = Channel::new(&setup(&config)).unwrap_err();
    assert_eq!(error.to_string(), "MAX_CID 16 exceeds 15, the highest CID of the CID space");
}

#[test]
fn one_way_nothing_is_answered() {
    let config = config(Mode::Unidirectional);
    let [mut a, mut b] = pair(&Setup { role: Role::OneWay, ..setup(&config) });
    for i in 0..20 {
        let packet = udp6(1, i, 20);
        assert_eq!(carry(&mut a, &mut b, ms(u64::from(i)), &packet), [packet]);
    }
    let garbage = Owned { protocol: Protocol::Rohc, to: None, large: false, octets: vec![0x05; 30] };
    for i in 0..20 {
        let _ = receive(&mut b, ms(100 + i), None, &garbage);
    }
    assert_eq!((b.poll_at(), b.counters().feedback_sent), (None, Feedback::default()));
}

#[test]
fn after_a_restart_packets_come_at_once() {
    for mode in [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable] {
        let config = config(mode);
        let mut ends = pair(&setup(&config));
        for i in 0..40 {
            let now = ms(20 * u64::from(i));
            let [a, b] = &mut ends;
            if i == 20 {
                *b = Channel::new(&Setup { seed: 99, ..setup(&config) }).unwrap();
                a.reset(None);
                assert_eq!(a.compressor_contexts().count(), 0);
            }
            let (forth, back) = (udp6(1, i, 20), udp6(2, i, 20));
            assert_eq!(carry(a, b, now, &forth), [forth]);
            assert_eq!(carry(b, a, now, &back), [back]);
            settle(&mut ends, now);
        }
        assert_eq!(ends[0].compressor_contexts().next().unwrap().mode, mode);
        // Counters are not reset.
        assert_eq!(ends[0].counters().sent.packets, 40);
    }
}

#[test]
fn long_packets_go_in_segments() {
    let config = config(Mode::Optimistic);
    let narrow = Setup { mtu: 1_280, largest_unit: 60, mrru: 1_412, ..setup(&config) };
    let mut ends = pair(&narrow);
    for i in 0..30 {
        let now = ms(100 * u64::from(i));
        let [a, b] = &mut ends;
        let (forth, back) = (udp6(1, i, 1_232), udp6(2, i, 600));
        let (sent, units) = send(a, now, &forth);
        assert!(sent.unwrap().units >= 21 && units.iter().all(|unit| unit.octets.len() <= 60));
        let mut delivered = Vec::new();
        for unit in &units {
            let (received, packets) = receive(b, now, None, unit);
            received.unwrap();
            delivered.extend(packets);
        }
        assert_eq!(delivered, [forth]);
        // Feedback precedes all segments.
        let waits = b.poll_at().is_some();
        let (_, units) = send(b, now, &back);
        let is_segment = |unit: &Owned| unit.octets[0] >> 1 == 0x7F;
        assert_eq!(is_segment(&units[0]), !waits);
        assert!(units[1..].iter().all(is_segment));
        assert!(b.poll_at().is_none());
        let delivered: Vec<_> = units.iter().flat_map(|unit| receive(a, now, None, unit).1).collect();
        assert_eq!(delivered, [back]);
        settle(&mut ends, now);
    }
    let [a, b] = &mut ends;
    assert_eq!((a.counters().segmented, a.counters().not_received.total()), (30, 0));
    assert_eq!(b.counters().segments_received, a.counters().segments_sent);
    // A lost segment costs its packet, and no other.
    let (_, mut units) = send(a, ms(9_000), &udp6(1, 77, 1_000));
    units.remove(5);
    assert!(units.iter().all(|unit| receive(b, ms(9_000), None, unit).1.is_empty()));
    let packet = udp6(1, 78, 1_000);
    assert_eq!(carry(a, b, ms(9_001), &packet), [packet]);
    assert_eq!(b.counters().not_received.of("bad_segment"), 1);
    // If MRRU is 0, the packet is not sent.
    let [mut a, _] = pair(&Setup { mrru: 0, ..narrow });
    assert!(matches!(send(&mut a, ms(0), &udp6(1, 0, 100)).0, Err(NotSent::TooLong { most: 60, .. })));
}

#[test]
fn a_unit_that_only_grew_too_long_goes_as_it_is() {
    let config = ChannelConfig { by_type: true, ..config(Mode::Optimistic) };
    let [mut a, mut b] = pair(&Setup { typed: true, largest_unit: 100, ..setup(&config) });
    let packet = udp6(1, 0, 52);
    let (sent, units) = send(&mut a, ms(0), &packet);
    assert_eq!((sent.unwrap().compressed, units[0].protocol), (None, Protocol::Ipv6));
    assert_eq!(receive(&mut b, ms(0), None, &units[0]).1, [packet]);
}

/// An IPv6 packet with twice as many extension headers as are compressed, sixteen.
fn chained(payload: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    let octets = 2 * (40 + 8 * 8) + 8 + payload;
    for (above, last) in [(0, 41), (40 + 8 * 8, 17)] {
        let len = (octets - above - 40) as u16;
        packet.extend([0x60, 0, 0, 0, (len >> 8) as u8, len as u8, 60, 64]);
        packet.extend([0xFD; 32]);
        for i in 0..8_u8 {
            packet.extend([if i == 7 { last } else { 60 }, 0, 1, 4, i, 0, 0, 0]);
        }
    }
    let udp = udp6(1, 1, payload);
    packet.extend(&udp[40..]);
    packet
}

#[test]
fn packets_grow_by_no_more_than_the_budget_says() {
    use crate::mtu::{GROWTH, GROWTH_WITH_EXTENSIONS};
    let config = ChannelConfig { cids: CidSpace::Large, max_cid: 300, ..config(Mode::Unidirectional) };
    let wide = Setup { mtu: u16::MAX, largest_unit: 70_000, ..setup(&config) };
    let mut most = [0, 0];
    let mut grow = |a: &mut Channel, packet: &[u8], with_extensions: bool| {
        let (sent, _) = send(a, ms(0), packet);
        let growth = sent.unwrap().octets.saturating_sub(packet.len());
        let most = &mut most[usize::from(with_extensions)];
        *most = growth.max(*most);
    };
    for name in captures() {
        let [mut a, _] = pair(&wide);
        // CIDs of two octets.
        for port in 0..128 {
            send(&mut a, ms(0), &udp6(port, 0, 4)).0.unwrap();
        }
        for (_, packet) in captured(&name) {
            grow(&mut a, &packet, name.starts_with("ah"));
        }
    }
    let [mut a, _] = pair(&wide);
    grow(&mut a, &chained(100), true);
    grow(&mut a, &fragment(100), false);
    let [plain, extended] = most;
    assert!((4..=GROWTH).contains(&plain), "{plain} octets");
    assert!((4..=GROWTH_WITH_EXTENSIONS).contains(&extended), "{extended} octets with extension headers");
}

#[test]
fn a_packet_that_has_only_grown_too_long_goes_in_segments() {
    let config = config(Mode::Optimistic);
    let (mtu, mrru) = (1_400, 1_436);
    let [mut a, mut b] = pair(&Setup { mtu, mrru, largest_unit: usize::from(mtu), ..setup(&config) });
    let packet = chained(usize::from(mtu) - chained(0).len());
    assert_eq!(packet.len(), usize::from(mtu));
    for i in 0..10 {
        assert_eq!(carry(&mut a, &mut b, ms(i), &packet), [packet.as_slice()]);
    }
    assert_eq!((a.counters().segmented, a.counters().segments_sent), (4, 8));
}
