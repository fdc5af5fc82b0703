//! Use of the room in TS Packets by an Encapsulator, and times of sending: RFC 4326, sections 6.1 and 6.2.

mod common;

use std::time::Duration;

use common::{pid, pushed, received};
use thinair_ule::ts::{LEN, NULL_PACKET, TsHeader};
use thinair_ule::{
    Concat, Encapsulator, EncapsulatorConfig, EtherType, Npa, Packing, PduQueue, Pulled, PushError,
    ReceiverConfig, Since, Sndu, SnduError, SnduSource, TsPacket,
};
use thinair_wire::time::Instant;

static PAYLOAD: [u8; 40_000] = [0x5A; 40_000];

/// An SNDU of `octets` octets, without an address.
fn sndu(octets: usize) -> Sndu<'static> {
    Sndu::pdu(EtherType::ROHC, &PAYLOAD[..octets - 8])
}

fn threshold(millis: u64, since: Since) -> EncapsulatorConfig {
    let packing = Packing::Threshold { wait: Duration::from_millis(millis), since };
    EncapsulatorConfig { packing, ..EncapsulatorConfig::new(pid()) }
}

/// Source of identical SNDUs.
struct Endless {
    sndu: Sndu<'static>,
    left: usize,
}

impl SnduSource for Endless {
    fn peek(&self, ahead: usize) -> Option<Sndu<'_>> {
        (ahead < self.left).then_some(self.sndu)
    }

    fn take(&mut self, count: usize) {
        self.left -= count;
    }
}

/// `1 if L <= 183, else 1 + ceil((L - 183) / 184)`.
#[test]
fn padding_takes_a_ts_packet_more_each_184_octets() {
    for octets in 9..1_200_usize {
        let expected = if octets <= 183 { 1 } else { 1 + (octets - 183).div_ceil(184) };
        let packets = pushed(EncapsulatorConfig::new(pid()), &[sndu(octets)]);
        assert_eq!(packets.len(), expected, "{octets}");
        let (got, counters) = received(ReceiverConfig::new(pid()), &packets);
        assert_eq!((got.len(), counters.delimiting_errors), (1, 0), "{octets}");
    }
}

/// Rules (i) to (iii) and (v): conditions for the second SNDU to start in the TS Packet in which the first one ends.
#[test]
fn an_sndu_starts_only_where_its_length_has_room() {
    // Octets that the first SNDU leaves; true if PUSI is set there; true if the second one starts there.
    let cases = [
        (0, true, false),
        (1, true, false),
        (2, true, true),
        (3, true, true),
        (0, false, false),
        (1, false, false),
        (2, false, false),
        (3, false, true),
        (4, false, true),
    ];
    for (free, pusi, packs) in cases {
        let first = if pusi { 183 } else { 183 + 184 } - free;
        let packets = pushed(threshold(1, Since::First), &[sndu(first), sndu(100)]);
        let shared = &packets[if pusi { 0 } else { 1 }];
        let header = TsHeader::read(shared).expect("it begins with 0x47");
        assert_eq!(header.payload_unit_start, pusi || packs, "{free} {pusi}");
        let (got, counters) = received(ReceiverConfig::new(pid()), &packets);
        assert_eq!((got.len(), counters.sndus), (2, 2), "{free} {pusi}");
        if packs {
            // Length is never divided.
            let at = LEN - free + usize::from(!pusi);
            assert_eq!(shared[at..at + 2], [0x80, 96], "{free} {pusi}");
        } else {
            assert_eq!(shared[LEN - free..], vec![0xFF; free], "{free} {pusi}");
            let next = TsHeader::read(&packets[if pusi { 1 } else { 2 }]).expect("it begins with 0x47");
            assert!(next.payload_unit_start);
        }
    }
}

#[test]
fn continuity_counters_count_on() {
    let packets = pushed(EncapsulatorConfig::new(pid()), &[sndu(700); 9]);
    let counters =
        packets.iter().map(|packet| TsHeader::read(packet).expect("it begins with 0x47").cc.value());
    assert!(counters.eq((0..packets.len()).map(|i| (i % 16) as u8)));
}

#[test]
fn a_packet_that_is_not_full_leaves_when_the_threshold_is_over() {
    let at = Instant::from_millis;
    for (since, deadline) in [(Since::First, 15), (Since::Last, 18)] {
        let mut encapsulator = Encapsulator::new(threshold(5, since));
        let mut packets: Vec<TsPacket> = Vec::new();
        let mut out = |packet: &TsPacket| packets.push(*packet);
        assert_eq!(encapsulator.poll_at(), None);
        encapsulator.push(at(10), &sndu(50), &mut out).expect("it can be sent");
        encapsulator.push(at(13), &sndu(50), &mut out).expect("it can be sent");
        assert_eq!(encapsulator.poll_at(), Some(at(deadline)));
        encapsulator.poll(at(deadline - 1), &mut out);
        assert_eq!(encapsulator.counters().ts_packets, 0);
        encapsulator.poll(at(deadline), &mut out);
        assert_eq!((encapsulator.poll_at(), encapsulator.counters().ts_packets), (None, 1));
        encapsulator.poll(at(100), &mut out);
        assert_eq!(packets.len(), 1);
        // An SNDU that fills its TS Packet does not wait.
        encapsulator.push(at(20), &sndu(183), &mut |_| ()).expect("it can be sent");
        assert_eq!(encapsulator.poll_at(), None);
    }
    // With a wait of zero nothing waits.
    assert_eq!(pushed(threshold(0, Since::First), &[sndu(50); 3]).len(), 3);
}

/// RFC 4326, section 6.2: packing "may be determined on a per-session, per-packet, or per-SNDU basis".
#[test]
fn packing_is_decided_sndu_by_sndu() {
    let mut encapsulator = Encapsulator::new(threshold(5, Since::First));
    let mut count = 0;
    let mut out = |_: &TsPacket| count += 1;
    encapsulator.push(Instant::ZERO, &sndu(50), &mut out).expect("it can be sent");
    encapsulator.push(Instant::ZERO, &sndu(50), &mut out).expect("it can be sent");
    encapsulator.flush(&mut out);
    encapsulator.push(Instant::ZERO, &sndu(50), &mut out).expect("it can be sent");
    encapsulator.flush(&mut out);
    encapsulator.flush(&mut out);
    assert_eq!(count, 2);
}

#[test]
fn a_slot_takes_what_is_queued_else_padding_else_nothing() {
    let mut encapsulator = Encapsulator::new(EncapsulatorConfig::new(pid()));
    let mut source = Endless { sndu: sndu(150), left: 0 };
    assert_eq!(encapsulator.pull(&mut source), Pulled::Null);
    assert_eq!(encapsulator.pull(&mut source).packet(), &NULL_PACKET);
    source.left = 3;
    let mut kinds = Vec::new();
    let mut packets = Vec::new();
    for _ in 0..4 {
        let pulled = encapsulator.pull(&mut source);
        kinds.push(matches!(pulled, Pulled::Full(_)));
        packets.push(*pulled.packet());
        if pulled == Pulled::Null {
            break;
        }
    }
    // 450 octets, and a Payload Pointer each: 183, 183, 84 and padding.
    assert_eq!(kinds, [true, true, false, false]);
    assert_eq!(received(ReceiverConfig::new(pid()), &packets).0.len(), 3);
    let counters = encapsulator.counters();
    assert_eq!((counters.ts_packets, counters.padded, counters.nulls, counters.sndus), (3, 1, 3, 3));
}

/// Cost of an SNDU in TS payload, saturated: `L * 184/183` below 183 octets, `L + 1` above, except for the one or two
/// octets at the end of a TS Packet in which no Length has room.
#[test]
fn slots_are_full_under_load() {
    for (octets, expected) in [(51, 51.0 * 184.0 / 183.0), (131, 131.0 * 184.0 / 183.0), (523, 524.0)] {
        let mut encapsulator = Encapsulator::new(EncapsulatorConfig::new(pid()));
        let mut source = Endless { sndu: sndu(octets), left: 20_000 };
        let mut slots = 0.0;
        while matches!(encapsulator.pull(&mut source), Pulled::Full(_)) {
            slots += 1.0;
        }
        let cost = slots * 184.0 / 20_000.0;
        assert!((cost / expected - 1.0_f64).abs() < 0.002, "{octets}: {cost}");
    }
}

#[test]
fn pushing_and_pulling_take_turns() {
    let mut encapsulator = Encapsulator::new(threshold(5, Since::First));
    let mut packets: Vec<TsPacket> = Vec::new();
    encapsulator
        .push(Instant::ZERO, &sndu(100), &mut |packet| packets.push(*packet))
        .expect("it can be sent");
    let mut source = Endless { sndu: sndu(200), left: 1 };
    packets.push(*encapsulator.pull(&mut source).packet());
    let midway = encapsulator.push(Instant::ZERO, &sndu(100), &mut |_| ());
    assert_eq!(midway, Err(PushError::Midway));
    assert_eq!(encapsulator.drain(Instant::ZERO, &mut source, &mut |_| ()), Err(PushError::Midway));
    packets.push(*encapsulator.pull(&mut source).packet());
    encapsulator
        .push(Instant::ZERO, &sndu(100), &mut |packet| packets.push(*packet))
        .expect("it can be sent");
    encapsulator.flush(&mut |packet| packets.push(*packet));
    assert_eq!(received(ReceiverConfig::new(pid()), &packets).0.len(), 3);
}

#[test]
fn queued_pdus_of_one_type_share_an_sndu() {
    let npa = Npa::new([0, 1, 2, 3, 4, 5]).expect("it is one");
    let sndus = [
        Sndu::pdu(EtherType::ROHC, b"one"),
        Sndu::pdu(EtherType::ROHC, b"two"),
        Sndu::pdu(EtherType::ROHC, b"three"),
        Sndu::pdu(EtherType::ROHC, b"four"),
        Sndu::pdu(EtherType::IPV6, b"another Type"),
        Sndu::pdu(EtherType::IPV6, b"another destination").to(npa),
        Sndu::pdu(EtherType::IPV6, &PAYLOAD[..80]).to(npa),
        Sndu::pdu(EtherType::IPV6, b"too many octets").to(npa),
        Sndu::test(b"alone"),
        Sndu::test(b"alone"),
    ];
    let config = EncapsulatorConfig {
        concat: Some(Concat { pdus: 3, octets: 130 }),
        ..EncapsulatorConfig::new(pid())
    };
    let fill = |queue: &mut PduQueue<'_, 16>| {
        for sndu in &sndus {
            queue.push(sndu).expect("there is room");
        }
    };
    let mut octets = [0; 1_000];
    let mut queue = PduQueue::<16>::new(&mut octets);

    fill(&mut queue);
    let mut pulling = Encapsulator::new(config);
    let mut pulled: Vec<TsPacket> = Vec::new();
    while let Pulled::Full(packet) | Pulled::Padded(packet) = pulling.pull(&mut queue) {
        pulled.push(*packet);
    }
    fill(&mut queue);
    let mut draining = Encapsulator::new(config);
    let mut drained: Vec<TsPacket> = Vec::new();
    draining
        .drain(Instant::ZERO, &mut queue, &mut |packet| drained.push(*packet))
        .expect("nothing is pulled");

    for (encapsulator, packets) in [(pulling, pulled), (draining, drained)] {
        let (got, counters) = received(ReceiverConfig::new(pid()), &packets);
        let mut expected: Vec<_> = [&b"one"[..], b"two", b"three", b"four"].to_vec();
        expected.extend([&b"another Type"[..], b"another destination", &PAYLOAD[..80], b"too many octets"]);
        assert!(got.iter().map(|got| &got.octets[..]).eq(expected));
        // one, two and three; four; another Type; another destination, and 80 octets; too many; two tests.
        assert_eq!((counters.sndus, counters.tests, counters.delivered), (7, 2, 8));
        assert_eq!((encapsulator.counters().sndus, encapsulator.counters().pdus), (7, 10));
    }
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let npa = Npa::new([0, 1, 2, 3, 4, 5]).expect("it is one");
    let of = |octets: usize| Sndu::pdu(EtherType::IPV4, &PAYLOAD[..octets]);
    assert_eq!(of(32_762).octets(), Ok(32_770));
    // Without an address the largest Length would be an End Indicator.
    assert_eq!(of(32_763).octets(), Err(SnduError::TooLong { octets: 32_771, most: 32_770 }));
    assert_eq!(of(32_757).to(npa).octets(), Ok(32_771));
    assert_eq!(of(32_758).to(npa).octets(), Err(SnduError::TooLong { octets: 32_772, most: 32_771 }));
    assert_eq!((of(0).octets(), of(0).to(npa).octets()), (Err(SnduError::Empty), Ok(14)));
    let nested = Sndu::pdu_concat(thinair_ule::Type::PDU_CONCAT, &[]);
    assert_eq!(nested.octets(), Err(SnduError::BadConcat));
    assert_eq!(of(10).write(&mut [0; 17]), Err(SnduError::NoRoom { needed: 18, had: 17 }));

    let mut encapsulator = Encapsulator::new(EncapsulatorConfig::new(pid()));
    let refused = encapsulator.push(Instant::ZERO, &of(0), &mut |_| ());
    assert_eq!(refused, Err(PushError::Sndu(SnduError::Empty)));
    // It is taken from the source, and the next one is sent.
    let mut source = Endless { sndu: of(0), left: 3 };
    assert_eq!(encapsulator.pull(&mut source), Pulled::Null);
    assert_eq!((source.left, encapsulator.counters().refused), (0, 3));
    // The longest of all is sent and received.
    let packets = pushed(EncapsulatorConfig::new(pid()), &[of(32_757).to(npa)]);
    assert_eq!(received(ReceiverConfig::new(pid()), &packets).0.len(), 1);
}

/// A source that changes its PDU.
struct Fickle {
    len: usize,
}

impl SnduSource for Fickle {
    fn peek(&self, ahead: usize) -> Option<Sndu<'_>> {
        (ahead == 0 && self.len > 0).then(|| Sndu::pdu(EtherType::IPV4, &PAYLOAD[..self.len]))
    }

    fn take(&mut self, _count: usize) {
        self.len = 0;
    }
}

#[test]
fn a_source_that_changes_its_pdu_spoils_that_one_alone() {
    for changed in [0, 1, 350, 30_000] {
        let mut encapsulator = Encapsulator::new(EncapsulatorConfig::new(pid()));
        let mut source = Fickle { len: 400 };
        let mut packets = vec![*encapsulator.pull(&mut source).packet()];
        source.len = changed;
        for _ in 0..4 {
            packets.push(*encapsulator.pull(&mut source).packet());
        }
        source.len = 50;
        packets.push(*encapsulator.pull(&mut source).packet());
        let (got, _) = received(ReceiverConfig::new(pid()), &packets);
        assert!(got.iter().map(|got| got.octets.len()).eq([50]), "{changed}");
    }
}
