//! The engine in virtual time.

use std::time::Duration;

use proptest::prelude::*;
use thinair_link::{Airtime, BitErrorModel, Duplex, Integrity, LossModel, Probability, Queue, Rate};
use thinair_link::{Direction, Fragmentation, Framing};
use thinair_rohc::ProfileId;
use thinair_rohc::{Channel, CidSpace, CompressorConfig, DecompressorConfig, Format, Mode, ProfileSet};
use thinair_wire::checksum::Sum;

use super::*;
use crate::with_mtu;

/// A link of 20 kbit/s and 20 ms in each direction.
fn slow() -> Direction<'static> {
    Direction {
        airtime: Airtime::Rate(Rate::from_bps(20_000).unwrap()),
        delay: Duration::from_millis(20),
        ..Direction::IDEAL
    }
}

fn model(direction: Direction<'static>) -> LinkModel<'static> {
    LinkModel::symmetric(direction, Duplex::Full)
}

fn channel(mode: Mode) -> RohcChannel {
    let profiles = ProfileSet::v1().with(ProfileId::Coap).unwrap();
    let shape = Channel::new(CidSpace::Small, 15, profiles).unwrap();
    RohcChannel {
        compressor: CompressorConfig::new(shape),
        decompressor: DecompressorConfig { mode, ..DecompressorConfig::new(shape) },
        bases: Vec::new(),
        feedback_wait: Duration::from_millis(10),
        ends: None,
    }
}

/// A datagram of UDP over IPv6 from `from`, with its checksum.
fn datagram(from: Side, number: u16, payload: usize) -> Vec<u8> {
    let len = u16::try_from(8 + payload).unwrap();
    let mut packet = vec![0x60, 0, 0, 0, (len >> 8) as u8, len as u8, 17, 64];
    let addresses = [from, from.other()].map(|side| 1 + side as u8);
    for host in addresses {
        packet.extend([0xfd, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    packet.extend([0x1f, 0x40 + addresses[0], 0x1f, 0x40 + addresses[1], (len >> 8) as u8, len as u8, 0, 0]);
    packet.extend(number.to_be_bytes().into_iter().cycle().take(payload));
    let sum = Sum::ZERO.octets(&packet[8..]).word(17).word(len).checksum();
    packet[46..48].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Polls until nothing is under way.
fn finish(engine: &mut Engine) -> Vec<Passage> {
    let mut passages = Vec::new();
    while let Some(next) = engine.poll_at() {
        passages.extend(std::iter::from_fn(|| engine.poll(next)));
    }
    passages
}

/// Sends datagrams of `payload` octets every `gap` ms from A; B answers each on arrival if `answers`.
fn talk(engine: &mut Engine, count: u16, payload: usize, gap: u64, answers: bool) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut sent = 0;
    loop {
        let next = (sent < count).then(|| at(u64::from(sent) * gap));
        match engine.poll_at() {
            Some(due) if next.is_none_or(|next| due <= next) => {
                while let Some(passage) = engine.poll(due) {
                    if answers && passage.from == Side::A && !passage.delivered.is_empty() {
                        engine.handle_packet(
                            due,
                            Side::B,
                            &datagram(Side::B, passage.number as u16, payload),
                        );
                    }
                    passages.push(passage);
                }
            }
            _ => {
                let Some(next) = next else { return passages };
                engine.handle_packet(next, Side::A, &datagram(Side::A, sent, payload));
                sent += 1;
            }
        }
    }
}

/// Every packet has ended somewhere, or is under way.
fn assert_accounts(engine: &Engine) {
    for side in Side::ALL {
        let totals = engine.totals(side);
        let ended = totals.delivered + totals.dropped + totals.not_compressed() + totals.not_decompressed();
        assert_eq!(totals.packets, ended + totals.under_way);
        assert_eq!(totals.link.offered, totals.packets - totals.not_compressed() + totals.feedback.alone);
    }
}

#[test]
fn a_packet_of_44_octets_takes_37_6_ms_at_20_kbit_s_and_20_ms() {
    let mut engine = Engine::new(&model(slow()), 1, None);
    engine.handle_packet(at(100), Side::A, &[0; 44]);
    engine.handle_packet(at(100), Side::A, &[0; 44]);
    // Polled when nothing has arrived, and far too late: the times are the same.
    assert_eq!(engine.poll(at(137)), None);
    let passages: Vec<_> = std::iter::from_fn(|| engine.poll(at(9_000))).collect();
    let nanos = |passage: &Passage| {
        let times = passage.times.unwrap();
        [passage.entered, times.start, times.sent, times.arrival].map(|time| time.as_nanos() / 100_000)
    };
    assert_eq!(
        passages.iter().map(nanos).collect::<Vec<_>>(),
        [[1000, 1000, 1176, 1376], [1000, 1176, 1352, 1552]]
    );
    assert!(
        passages
            .iter()
            .all(|passage| passage.fate == PassageOutcome::Delivered && passage.delivered == [0; 44])
    );
    assert!(engine.is_idle());
    assert_accounts(&engine);
}

#[test]
fn what_the_queue_refuses_is_reported_at_once() {
    let mut engine = Engine::new(&model(Direction { queue: Queue::packets(2), ..slow() }), 1, None);
    for _ in 0..4 {
        engine.handle_packet(at(5), Side::B, &[0; 20]);
    }
    // One is on the air, two wait.
    assert_eq!(engine.poll_at(), Some(at(5)));
    let refused = engine.poll(at(5)).unwrap();
    assert_eq!((refused.number, refused.fate), (3, PassageOutcome::Dropped(DropReason::QueuePackets)));
    assert_eq!(engine.totals(Side::B).under_way, 3);
    assert_eq!(finish(&mut engine).len(), 3);
    assert_accounts(&engine);
}

/// RFC 3095 keeps its contexts over losses of a few packets; a full queue drops hundreds in a row.
#[test]
fn packets_that_the_queue_drops_are_never_compressed() {
    for mode in [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable] {
        let direction = Direction { queue: Queue::packets(4), ..slow() };
        let mut engine = Engine::new(&model(direction), 1, Some(&channel(mode)));
        let passages = talk(&mut engine, 2_000, 4, 1, false);
        let totals = engine.totals(Side::A);
        assert!(totals.dropped > 1_000, "{mode:?}: {}", totals.dropped);
        assert_eq!((totals.altered, totals.not_decompressed()), (0, 0), "{mode:?}");
        let compressed: u64 = totals.formats.values().sum();
        assert_eq!((compressed, totals.delivered), (totals.packets - totals.dropped, compressed), "{mode:?}");
        // A packet that waits, and is dropped, is as it was.
        let full = |passage: &Passage| passage.fate == PassageOutcome::Dropped(DropReason::QueuePackets);
        assert!(passages.iter().filter(|passage| full(passage)).all(|passage| passage.carried_octets == 52));
        assert_accounts(&engine);
    }
}

#[test]
fn a_full_queue_drops_no_feedback() {
    let queue = Queue::packets(1);
    let mut engine = Engine::new(&model(Direction { queue, ..slow() }), 1, Some(&channel(Mode::Optimistic)));
    for number in 0..200 {
        // A sends now and then, and B fills its queue.
        if number % 20 == 0 {
            engine.handle_packet(at(10 * number), Side::A, &datagram(Side::A, number as u16, 4));
        }
        for _ in 0..3 {
            engine.handle_packet(at(10 * number), Side::B, &datagram(Side::B, number as u16, 100));
        }
        while engine.poll(at(10 * number + 9)).is_some() {}
    }
    finish(&mut engine);
    let (a, b) = (engine.totals(Side::A), engine.totals(Side::B));
    assert!(b.dropped > 200 && b.feedback.elements > 0, "{b:?}");
    assert_eq!((b.feedback.in_front + b.feedback.alone, b.feedback.alone), (b.feedback.elements, 0), "{b:?}");
    assert_eq!(b.link.dropped.total(), b.dropped);
    assert_eq!((a.altered, a.not_decompressed(), b.altered, b.not_decompressed()), (0, 0, 0, 0));
    assert_accounts(&engine);
}

#[test]
fn rohc_gives_every_packet_back_in_every_mode() {
    for mode in [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable] {
        let mut engine = Engine::new(&model(slow()), 1, Some(&channel(mode)));
        let passages = talk(&mut engine, 100, 4, 100, true);
        for side in Side::ALL {
            let totals = engine.totals(side);
            assert_eq!((totals.packets, totals.delivered, totals.altered), (100, 100, 0), "{mode:?}");
            assert_eq!(totals.octets, 100 * 52);
            assert_eq!(totals.delivered_octets, totals.octets);
            // After the first ones: at least one octet for UO-0, the UDP checksum, and the payload.
            assert!(totals.carried_octets < 100 * 14, "{mode:?}: {}", totals.carried_octets);
            assert!(totals.formats[&Format::Ir] >= 1);
            let has_feedback = totals.feedback.elements > 0;
            assert_eq!(has_feedback, mode != Mode::Unidirectional, "{mode:?}");
        }
        assert!(
            passages
                .iter()
                .all(|passage| matches!(passage.fate, PassageOutcome::Delivered | PassageOutcome::Consumed))
        );
        assert_accounts(&engine);
    }
}

#[test]
fn feedback_goes_in_front_of_an_answer_and_alone_if_there_is_none() {
    let run = |answers| {
        let mut engine = Engine::new(&model(slow()), 1, Some(&channel(Mode::Optimistic)));
        talk(&mut engine, 20, 4, 100, answers);
        assert_accounts(&engine);
        engine.totals(Side::B)
    };
    let answered = run(true);
    assert!(answered.feedback.in_front > 0 && answered.feedback.alone == 0, "{:?}", answered.feedback);
    let silent = run(false);
    assert!(silent.feedback.in_front == 0 && silent.feedback.alone > 0, "{:?}", silent.feedback);
    assert_eq!((silent.packets, silent.link.offered), (0, silent.feedback.alone));
    // Everything that B sends over A's channel is that feedback, octet by octet.
    assert_eq!(silent.carried_octets, silent.feedback.octets);
}

#[test]
fn feedback_that_waited_enters_the_link_when_it_was_due() {
    let mut engine = Engine::new(&model(slow()), 1, Some(&channel(Mode::Optimistic)));
    let packet = datagram(Side::A, 0, 4);
    engine.handle_packet(at(0), Side::A, &packet);
    let arrival = loop {
        let due = engine.poll_at().unwrap();
        if let Some(passage) = engine.poll(due) {
            break passage.ended;
        }
    };
    // Nobody polls for a second.
    assert_eq!(engine.poll_at(), Some(arrival + Duration::from_millis(10)));
    let alone = std::iter::from_fn(|| engine.poll(at(1_000))).next().unwrap();
    assert_eq!((alone.from, alone.ip_octets, alone.fate), (Side::B, 0, PassageOutcome::Consumed));
    assert_eq!(alone.entered, arrival + Duration::from_millis(10));
}

#[test]
fn frames_of_a_long_packet_are_counted() {
    let direction = Direction { framing: Framing { overhead: 9, ..Framing::default() }, ..slow() };
    let mut engine = Engine::new(&with_mtu(&model(direction), 128), 1, None);
    engine.handle_packet(at(0), Side::A, &datagram(Side::A, 1, 1_000));
    let passage = finish(&mut engine).remove(0);
    // 1,048 octets: 120 in the first frame of 124 that hold one, and 120 in each that follows.
    assert_eq!((passage.frames, passage.fate), (9, PassageOutcome::Delivered));
    assert_eq!(passage.frame_octets, 1_048 + 4 + 8 * 5 + 9 * 9);
    assert_eq!(
        (engine.totals(Side::A).link.frames, engine.totals(Side::A).link.octets),
        (9, passage.frame_octets)
    );
    assert!(matches!(
        engine.model().a_to_b.framing.fragmentation,
        Fragmentation::Frames { payload: 128, .. }
    ));
}

#[test]
fn what_is_no_ip_packet_is_not_compressed() {
    let mut engine = Engine::new(&model(slow()), 1, Some(&channel(Mode::Unidirectional)));
    engine.handle_packet(at(3), Side::A, &[0; 40]);
    assert_eq!(engine.poll_at(), Some(at(3)));
    let passage = engine.poll(at(3)).unwrap();
    assert_eq!((passage.fate, passage.frames), (PassageOutcome::NotCompressed("not_ip"), 0));
    assert!(engine.is_idle());
    assert_accounts(&engine);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any behavior of the link: every packet is accounted for, a delivered packet equals the one that was sent, and the
    /// seed determines everything.
    #[test]
    fn nothing_is_lost_from_the_accounts(
        seed: u64,
        loss in 0..30_u32,
        damage in 0..3_u32,
        has_check: bool,
        mode in 0..4_usize,
        gap in 1..60_u64,
        answers: bool,
    ) {
        let direction = Direction {
            loss: LossModel::Random(Probability::from_percent(loss).unwrap()),
            bit_errors: BitErrorModel::Random(Probability::from_ratio(u64::from(damage), 2_000).unwrap()),
            integrity: if has_check { Integrity::Crc16 } else { Integrity::None },
            queue: Queue::packets(5),
            ..slow()
        };
        let modes = [None, Some(Mode::Unidirectional), Some(Mode::Optimistic), Some(Mode::Reliable)];
        let run = || {
            let channel = modes[mode].map(channel);
            let mut engine = Engine::new(&model(direction), seed, channel.as_ref());
            let passages = talk(&mut engine, 60, 6, gap, answers);
            (passages, Side::ALL.map(|side| engine.totals(side)), engine)
        };
        let (passages, totals, engine) = run();
        assert_accounts(&engine);
        for side in Side::ALL {
            prop_assert_eq!(totals[side as usize].under_way, 0);
        }
        let mut last = Instant::ZERO;
        for passage in &passages {
            prop_assert!(passage.ended >= last);
            last = passage.ended;
            if passage.fate == PassageOutcome::Delivered && passage.from == Side::A {
                prop_assert_eq!(passage.ip_octets, passage.delivered.len());
            }
        }
        let (again, totals_again, _) = run();
        prop_assert_eq!(passages, again);
        prop_assert_eq!(totals, totals_again);
    }
}

/// RFC 6282: two octets for IPv6, whose addresses are those of the link and whose prefix is context 0, and seven for UDP:
/// its NHC octet, ports, checksum. Packets of IPv4 are not carried.
#[test]
fn iphc_carries_ipv6_in_fewer_octets_and_gives_it_back() {
    let mut engine = Engine::new(&model(slow()), 1, None).with_iphc();
    let packets = Side::ALL.map(|side| datagram(side, 1, 10));
    engine.handle_packet(at(0), Side::A, &packets[0]);
    engine.handle_packet(at(0), Side::B, &packets[1]);
    engine.handle_packet(at(0), Side::A, &[0x45; 40]);
    let mut passages = finish(&mut engine);
    passages.sort_by_key(|passage| passage.number);
    for (passage, packet) in passages.iter().zip(&packets) {
        assert_eq!((passage.fate, &passage.delivered), (PassageOutcome::Delivered, packet));
        assert_eq!(passage.carried_octets, 2 + 7 + 10);
    }
    assert_eq!(passages[2].fate, PassageOutcome::NotCompressed("not_ipv6"));
    assert_eq!(engine.totals(Side::A).compressed_header_octets, 9);
    assert_accounts(&engine);
}
