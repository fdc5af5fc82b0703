//! All SNDUs, sent in any mode, are delivered unchanged; and after any impairment of TS Packets, nothing is delivered
//! that was not sent, and nothing twice or out of order.

mod common;

use std::collections::VecDeque;
use std::time::Duration;

use common::{Got, pid};
use proptest::collection::vec;
use proptest::prelude::*;
use thinair_ule::{
    AfterBadCrc, Concat, Delivery, Encapsulator, EncapsulatorConfig, EtherType, HLen, Npa, OptionalHeader,
    Packing, Pulled, Receiver, ReceiverConfig, Since, Sndu, SnduSource, Synchronizer, TimeStamp, TsPacket,
};
use thinair_wire::time::Instant;

/// A PDU to send: it contains its number, so that no two are equal.
#[derive(Clone, Debug)]
struct SentSndu {
    destination: Option<Npa>,
    ether_type: EtherType,
    headers: Vec<OptionalHeader>,
    time_stamp: Option<u32>,
    pdu: Vec<u8>,
}

impl SentSndu {
    fn sndu(&self) -> Sndu<'_> {
        let sndu = Sndu::pdu(self.ether_type, &self.pdu).with_headers(&self.headers);
        self.destination.map_or(sndu, |npa| sndu.to(npa))
    }

    fn got(&self) -> Got {
        Got {
            destination: self.destination,
            type_field: self.ether_type.value(),
            time_stamp: self.time_stamp,
            octets: self.pdu.clone(),
        }
    }
}

fn sent() -> impl Strategy<Value = Vec<SentSndu>> {
    let lens = prop_oneof![4 => 4..250_usize, 2 => 170..190_usize, 1 => 4..2_000_usize, 1 => 350..370_usize];
    let types = prop::sample::select(&[EtherType::IPV4, EtherType::IPV6, EtherType::ROHC][..]);
    let one = (lens, types, any::<(bool, u8)>(), prop::option::weighted(0.1, any::<u32>()), 0..6_u8);
    let all = vec(one, 1..60);
    all.prop_map(|all| {
        let mut sent = Vec::new();
        for (number, (len, ether_type, (addressed, fill), time_stamp, padding)) in (0_u32..).zip(all) {
            let mut pdu = vec![fill; len];
            pdu[..4].copy_from_slice(&number.to_be_bytes());
            let mut headers = Vec::new();
            headers.extend(time_stamp.map(|micros| OptionalHeader::time_stamp_of(TimeStamp::new(micros))));
            // One in ten has other headers, too.
            headers.extend(HLen::new(padding).filter(|_| fill % 10 == 0).map(OptionalHeader::padding));
            let destination = Npa::new([2, 0, 0, 0, 0, fill & 1]).filter(|_| addressed);
            sent.push(SentSndu { destination, ether_type, headers, time_stamp, pdu });
        }
        sent
    })
}

/// Mode of an Encapsulator.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// Pushed; SNDUs come `apart` milliseconds apart.
    Push { apart: u64 },
    /// Pulled; `arrive` PDUs arrive in a slot.
    Pull { arrive: usize },
    /// Drained each time `arrive` PDUs have arrived.
    Drain { arrive: usize },
}

fn mode() -> impl Strategy<Value = (Mode, EncapsulatorConfig)> {
    let modes = prop_oneof![
        (0..4_u64).prop_map(|apart| Mode::Push { apart }),
        (1..4_usize).prop_map(|arrive| Mode::Pull { arrive }),
        (1..9_usize).prop_map(|arrive| Mode::Drain { arrive }),
    ];
    let since = prop::sample::select(&[Since::First, Since::Last][..]);
    let packing = prop_oneof![
        Just(Packing::Off),
        (0..8_u64, since)
            .prop_map(|(millis, since)| Packing::Threshold { wait: Duration::from_millis(millis), since }),
    ];
    let concat =
        prop::option::of((1..9_usize, 0..600_usize).prop_map(|(pdus, octets)| Concat { pdus, octets }));
    (modes, packing, concat).prop_map(|(mode, packing, concat)| {
        (mode, EncapsulatorConfig { packing, concat, ..EncapsulatorConfig::new(pid()) })
    })
}

/// PDUs that have arrived.
struct Arrived<'a>(VecDeque<&'a SentSndu>);

impl SnduSource for Arrived<'_> {
    fn peek(&self, ahead: usize) -> Option<Sndu<'_>> {
        self.0.get(ahead).map(|sent| sent.sndu())
    }

    fn take(&mut self, count: usize) {
        self.0.drain(..count);
    }
}

fn encapsulated(sent: &[SentSndu], mode: Mode, config: EncapsulatorConfig) -> Vec<TsPacket> {
    let mut encapsulator = Encapsulator::new(config);
    let mut packets = Vec::new();
    let mut arrived = Arrived(VecDeque::new());
    match mode {
        Mode::Push { apart } => {
            let mut now = Instant::ZERO;
            for sent in sent {
                let next = now + Duration::from_millis(apart);
                while let Some(at) = encapsulator.poll_at().filter(|at| *at <= next) {
                    encapsulator.poll(at, &mut |packet| packets.push(*packet));
                }
                now = next;
                encapsulator
                    .push(now, &sent.sndu(), &mut |packet| packets.push(*packet))
                    .expect("it can be sent");
            }
        }
        Mode::Drain { arrive } => {
            for some in sent.chunks(arrive) {
                arrived.0.extend(some);
                encapsulator
                    .drain(Instant::ZERO, &mut arrived, &mut |packet| packets.push(*packet))
                    .expect("nothing is pulled");
            }
        }
        Mode::Pull { arrive } => {
            let mut rest = sent.chunks(arrive);
            loop {
                let some = rest.next();
                arrived.0.extend(some.into_iter().flatten());
                match encapsulator.pull(&mut arrived) {
                    Pulled::Full(packet) | Pulled::Padded(packet) => packets.push(*packet),
                    Pulled::Null if some.is_none() => break,
                    Pulled::Null => {}
                }
            }
        }
    }
    encapsulator.flush(&mut |packet| packets.push(*packet));
    assert_eq!(encapsulator.counters().ts_packets, packets.len() as u64);
    assert_eq!(encapsulator.counters().pdus, sent.len() as u64);
    packets
}

/// Impairment of a TS Packet.
#[derive(Clone, Copy, Debug)]
enum TsImpairment {
    Arrives,
    Lost,
    Twice,
    Flipped(usize),
    Overwritten { at: usize, len: usize, with: u8 },
}

fn fates() -> impl Strategy<Value = Vec<TsImpairment>> {
    let fate = prop_oneof![
        20 => Just(TsImpairment::Arrives),
        1 => Just(TsImpairment::Lost),
        1 => Just(TsImpairment::Twice),
        1 => (0..8 * 188_usize).prop_map(TsImpairment::Flipped),
        1 => (4..188_usize, 1..40_usize, any::<u8>()).prop_map(|(at, len, with)| TsImpairment::Overwritten { at, len, with }),
    ];
    vec(fate, 1..100)
}

fn impaired(packets: &[TsPacket], fates: &[TsImpairment]) -> Vec<TsPacket> {
    let mut arrived = Vec::new();
    for (packet, fate) in packets.iter().zip(fates.iter().cycle()) {
        let mut packet = *packet;
        match *fate {
            TsImpairment::Arrives => {}
            TsImpairment::Lost => continue,
            TsImpairment::Twice => arrived.push(packet),
            TsImpairment::Flipped(bit) => packet[bit / 8] ^= 0x80 >> (bit % 8),
            TsImpairment::Overwritten { at, len, with } => packet[at..188.min(at + len)].fill(with),
        }
        arrived.push(packet);
    }
    arrived
}

fn received(config: ReceiverConfig, room: usize, packets: &[TsPacket]) -> Vec<Got> {
    let mut buffer = vec![0; room];
    let mut receiver = Receiver::new(config, &mut buffer);
    let mut got = Vec::new();
    for packet in packets {
        receiver.receive(packet, &mut |delivery: Delivery<'_>| got.push(delivery.into()));
    }
    assert_eq!(receiver.counters().delivered, got.len() as u64);
    got
}

fn is_part_in_order(sent: &[SentSndu], got: &[Got]) -> bool {
    let mut rest = sent.iter();
    got.iter().all(|got| rest.any(|sent| sent.got() == *got))
}

proptest! {
    #[test]
    fn all_that_is_sent_comes_back((mode, config) in mode(), sent in sent()) {
        let packets = encapsulated(&sent, mode, config);
        let got = received(ReceiverConfig::new(pid()), 5_000, &packets);
        prop_assert!(got.iter().eq(sent.iter().map(SentSndu::got).collect::<Vec<_>>().iter()));
    }

    #[test]
    fn nothing_comes_back_that_was_not_sent(
        (mode, config) in mode(),
        sent in sent(),
        fates in fates(),
        discard in any::<bool>(),
        room in prop::sample::select(&[0_usize, 300, 5_000][..]),
    ) {
        let packets = impaired(&encapsulated(&sent, mode, config), &fates);
        let after_bad_crc = if discard { AfterBadCrc::Discard } else { AfterBadCrc::GoOn };
        let got = received(ReceiverConfig { after_bad_crc, ..ReceiverConfig::new(pid()) }, room, &packets);
        prop_assert!(is_part_in_order(&sent, &got), "{got:?}");
    }

    /// A gap loses SNDUs that began before it or in it: those that start after it are delivered.
    #[test]
    fn what_starts_behind_a_hole_is_delivered(sent in sent(), from in 0..60_usize, len in 1..15_usize) {
        let packing = Packing::Threshold { wait: Duration::from_secs(1), since: Since::First };
        let config = EncapsulatorConfig { packing, ..EncapsulatorConfig::new(pid()) };
        let packets = encapsulated(&sent, Mode::Push { apart: 0 }, config);
        let (from, end) = (from.min(packets.len()), (from + len).min(packets.len()));
        let kept = [&packets[..from], &packets[end..]].concat();
        let got = received(ReceiverConfig::new(pid()), 5_000, &kept);
        // The last SNDU that ends in the packets before the gap, and the first that starts after it.
        let whole = |packets: &[TsPacket]| received(ReceiverConfig::new(pid()), 5_000, packets).len();
        prop_assert!(is_part_in_order(&sent, &got));
        prop_assert_eq!(got.len(), whole(&packets[..from]) + whole(&packets[end..]));
    }

    #[test]
    fn any_octets_are_taken(packets in vec(vec(any::<u8>(), 187), 0..40), sync in any::<bool>()) {
        let packets: Vec<TsPacket> = packets
            .iter()
            .map(|octets| {
                let mut packet = [0x47; 188];
                packet[1..].copy_from_slice(octets);
                if sync {
                    packet[1..4].copy_from_slice(&[0x40 & octets[0], 0x35, 0x10 | octets[2] & 1]);
                }
                packet
            })
            .collect();
        received(ReceiverConfig::new(pid()), 100, &packets);
        let mut synchronizer = Synchronizer::new();
        let mut count = 0;
        packets.as_flattened().chunks(77).for_each(|piece| synchronizer.push(piece, &mut |_| count += 1));
        synchronizer.finish(&mut |_| count += 1);
        prop_assert!(count <= packets.len());
    }
}
