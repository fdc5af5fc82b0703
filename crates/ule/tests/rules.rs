//! Impaired streams at Receivers with different rules: RFC 4326 to the letter, our default, and the crate `ule` as
//! another implementation (it leaves Continuity Counters to its caller, so this test checks them). The receiver of the
//! Linux kernel also continues after a wrong CRC, and considers a duplicated TS Packet a gap.
//!
//! `cargo test -p thinair-ule --test rules -- --show-output` prints the table.

mod common;

use std::time::Duration;

use common::{Got, pid, received};
use thinair_link::Random;
use thinair_ule::ts::{Cc, TsHeader};
use thinair_ule::{
    AfterBadCrc, Encapsulator, EncapsulatorConfig, EtherType, Npa, Packing, ReceiverConfig, Since, Sndu,
    TsPacket,
};
use thinair_wire::time::Instant;

const SNDUS: usize = 20_000;

/// PDUs of 1 to 1,500 octets, of three Types, with an address or without; half of them packed.
fn sent() -> (Vec<Got>, Vec<TsPacket>) {
    let mut random = Random::new(4_326);
    let packing = Packing::Threshold { wait: Duration::from_secs(1), since: Since::First };
    let mut encapsulator =
        Encapsulator::new(EncapsulatorConfig { packing, ..EncapsulatorConfig::new(pid()) });
    let (mut sent, mut packets) = (Vec::new(), Vec::new());
    for _ in 0..SNDUS {
        let pdu: Vec<u8> = (0..=random.below(1_500)).map(|_| random.next_u64() as u8).collect();
        let ether_type = [EtherType::IPV4, EtherType::IPV6, EtherType::ROHC][random.below(3) as usize];
        let destination = Npa::new([0, 1, 2, 3, 4, 5]).filter(|_| random.below(2) == 0);
        let sndu = Sndu::pdu(ether_type, &pdu);
        let sndu = destination.map_or(sndu, |npa| sndu.to(npa));
        encapsulator.push(Instant::ZERO, &sndu, &mut |packet| packets.push(*packet)).expect("it can be sent");
        if random.below(2) == 0 {
            encapsulator.flush(&mut |packet| packets.push(*packet));
        }
        sent.push(Got { destination, type_field: ether_type.value(), time_stamp: None, octets: pdu });
    }
    encapsulator.flush(&mut |packet| packets.push(*packet));
    (sent, packets)
}

/// Numbers of TS Packets in 10,000 that are lost, duplicated, and have one bit flipped.
#[derive(Clone, Copy)]
struct Impairments {
    lost: u64,
    doubled: u64,
    flipped: u64,
}

fn impaired(packets: &[TsPacket], impairments: Impairments, seed: u64) -> Vec<TsPacket> {
    let mut random = Random::new(seed);
    let mut arrived = Vec::new();
    for packet in packets {
        let mut packet = *packet;
        let (lost, doubled, flipped) =
            (random.below(10_000), random.below(10_000), random.below(10_000) < impairments.flipped);
        if lost < impairments.lost {
            continue;
        }
        if flipped {
            let bit = random.below(8 * 188) as usize;
            packet[bit / 8] ^= 0x80 >> (bit % 8);
        }
        arrived.push(packet);
        if doubled < impairments.doubled {
            arrived.push(packet);
        }
    }
    arrived
}

/// The other implementation, with the duties of its caller.
fn by_the_crate_ule(packets: &[TsPacket]) -> Vec<Got> {
    let mut receiver = ule::UleReceiver::new();
    let mut last: Option<Cc> = None;
    let mut got = Vec::new();
    for packet in packets {
        let Ok(header) = TsHeader::read(packet) else {
            receiver.reset();
            continue;
        };
        if header.pid != pid() || header.transport_error || last == Some(header.cc) {
            continue;
        }
        if last.replace(header.cc).is_some_and(|last| last.next() != header.cc) {
            receiver.reset();
        }
        for sndu in receiver.push(&packet[4..], header.payload_unit_start) {
            if let Ok(sndu) = ule::Sndu::parse(&sndu) {
                got.push(Got {
                    destination: sndu.dest_address.and_then(Npa::new),
                    type_field: sndu.type_field().to_u16(),
                    time_stamp: None,
                    octets: sndu.pdu().to_vec(),
                });
            }
        }
    }
    got
}

/// Returns how many of the sent SNDUs arrived; asserts that all others are absent, and that they are in order.
fn accepted(sent: &[Got], got: &[Got]) -> usize {
    let mut rest = sent.iter();
    assert!(got.iter().all(|got| rest.any(|sent| sent == got)), "what was not sent is delivered");
    got.len()
}

#[test]
fn sndus_accepted_by_rule() {
    let (sent, packets) = sent();
    let none = Impairments { lost: 0, doubled: 0, flipped: 0 };
    let streams = [
        ("clean", none),
        ("1 % of TS Packets lost", Impairments { lost: 100, ..none }),
        ("1 % twice", Impairments { doubled: 100, ..none }),
        ("1 % with one bit flipped", Impairments { flipped: 100, ..none }),
        ("0.5 % each", Impairments { lost: 50, doubled: 50, flipped: 50 }),
    ];
    println!("{SNDUS} SNDUs in {} TS Packets; accepted", packets.len());
    println!("{:26} {:>9} {:>7} {:>11}", "stream", "RFC 4326", "ours", "crate `ule`");
    let letter = ReceiverConfig { after_bad_crc: AfterBadCrc::Discard, ..ReceiverConfig::new(pid()) };
    let table = streams.map(|(name, impairments)| {
        let arrived = impaired(&packets, impairments, 5_163);
        let rules = [
            received(letter.clone(), &arrived).0,
            received(ReceiverConfig::new(pid()), &arrived).0,
            by_the_crate_ule(&arrived),
        ];
        let [letter, ours, other] = rules.map(|got| accepted(&sent, &got));
        println!("{name:26} {letter:>9} {ours:>7} {other:>11}");
        [letter, ours, other]
    });
    let [clean, lost, doubled, flipped, each] = table;
    assert_eq!(clean, [SNDUS; 3]);
    assert_eq!(doubled, [SNDUS; 3]);
    assert_eq!(lost, [lost[0]; 3], "a loss leaves nothing to choose");
    // The other one ignores Adaptation Field Control, so it continues where a bit of that is flipped.
    assert!(flipped[0] + 250 < flipped[1] && flipped[1] + 10 > flipped[2]);
    assert!(each[0] + 100 < each[1] && each[1] + 10 > each[2]);
}
