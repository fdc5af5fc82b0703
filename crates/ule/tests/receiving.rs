//! Treatment of invalid input by a Receiver, and its counters: RFC 4326, section 7.

mod common;

use std::time::Duration;

use common::{packet_with, pid, pushed, received};
use thinair_ule::ts::NULL_PACKET;
use thinair_ule::{
    AfterBadCrc, EncapsulatorConfig, EtherType, Lenience, Packing, Receiver, ReceiverConfig,
    ReceiverCounters, Since, Sndu, TsPacket,
};

fn packed(sndus: &[Sndu<'_>]) -> Vec<TsPacket> {
    let packing = Packing::Threshold { wait: Duration::from_secs(1), since: Since::First };
    pushed(EncapsulatorConfig { packing, ..EncapsulatorConfig::new(pid()) }, sndus)
}

/// TS Packets of SNDUs of these sizes, packed; each payload repeats its number.
fn stream(sizes: &[usize]) -> Vec<TsPacket> {
    let pdus: Vec<_> = sizes.iter().zip(1..).map(|(octets, i)| vec![i; octets - 8]).collect();
    packed(&pdus.iter().map(|pdu| Sndu::pdu(EtherType::IPV4, pdu)).collect::<Vec<_>>())
}

/// Returns the numbers of the delivered SNDUs.
fn numbers(config: ReceiverConfig, packets: &[TsPacket]) -> (Vec<u8>, ReceiverCounters) {
    let (got, counters) = received(config, packets);
    (got.iter().map(|got| got.octets[0]).collect(), counters)
}

fn strict() -> ReceiverConfig {
    ReceiverConfig::new(pid())
}

fn lenient(lenience: Lenience) -> ReceiverConfig {
    ReceiverConfig { lenience, ..strict() }
}

#[test]
fn a_lost_packet_takes_what_was_in_it() {
    // Packets hold 1 and the start of 2; 2; the end of 2 and the start of 3; the end of 3, and 4.
    let packets = stream(&[100, 400, 60, 100]);
    assert_eq!(packets.len(), 4);
    let without = |lost: usize| {
        let kept: Vec<_> = (0..4).filter(|i| *i != lost).map(|i| packets[i]).collect();
        numbers(strict(), &kept)
    };
    let delivered = [0, 1, 2, 3].map(|lost| without(lost).0);
    assert_eq!(delivered, [vec![3, 4], vec![1, 3, 4], vec![1, 4], vec![1, 2]]);
    let counters = without(1).1;
    assert_eq!((counters.continuity_errors, counters.cut_short, counters.crc_errors), (1, 1, 0));
}

#[test]
fn a_packet_that_comes_twice_is_taken_once() {
    let packets = stream(&[100, 400, 60]);
    let twice: Vec<_> = packets.iter().flat_map(|packet| [*packet; 2]).collect();
    let (delivered, counters) = numbers(strict(), &twice);
    assert_eq!(delivered, [1, 2, 3]);
    assert_eq!((counters.duplicates, counters.continuity_errors), (packets.len() as u64, 0));
}

/// 16 lost TS Packets leave no gap in the Continuity Counter; Payload Pointer or CRC show the loss.
#[test]
fn sixteen_lost_packets_are_found_nevertheless() {
    let packets = stream(&[200; 40]);
    let kept: Vec<_> = packets[..3].iter().chain(&packets[19..]).copied().collect();
    let (delivered, counters) = numbers(strict(), &kept);
    assert_eq!(counters.continuity_errors, 0);
    assert_eq!(counters.delimiting_errors + counters.crc_errors, 1);
    assert!(delivered.starts_with(&[1, 2]) && delivered.ends_with(&[39, 40]));
    assert!(delivered.is_sorted());
}

#[test]
fn header_errors_are_counted_and_end_what_has_begun() {
    let damaged = |at: usize, xor: u8| {
        let mut packets = stream(&[100, 400, 60]);
        packets[1][at] ^= xor;
        numbers(strict(), &packets)
    };
    let (delivered, counters) = damaged(0, 1);
    assert_eq!((delivered, counters.sync_errors, counters.cut_short), (vec![1, 3], 1, 1));
    let (delivered, counters) = damaged(1, 0x80);
    assert_eq!((delivered, counters.transport_errors, counters.cut_short), (vec![1, 3], 1, 1));
    let (delivered, counters) = damaged(3, 0x20);
    assert_eq!((delivered, counters.adaptation_fields), (vec![1, 3], 1));
    // Transport Scrambling Control is ignored.
    let (delivered, counters) = damaged(3, 0x80);
    assert_eq!((delivered, counters.scrambled), (vec![1, 2, 3], 1));
    // Packets of another PID are ignored.
    let (delivered, counters) = damaged(2, 1);
    assert_eq!((delivered, counters.continuity_errors), (vec![1, 3], 1));
}

#[test]
fn a_payload_pointer_is_checked() {
    // The third TS Packet has the end of 2 after its Payload Pointer.
    let with_pointer = |pointer: u8, config: ReceiverConfig| {
        let mut packets = stream(&[100, 400, 60]);
        packets[2][4] = pointer;
        numbers(config, &packets)
    };
    let right = stream(&[100, 400, 60])[2][4];
    assert_eq!(with_pointer(right, strict()).0, [1, 2, 3]);
    for wrong in [182, 183, 255] {
        let (delivered, counters) = with_pointer(wrong, strict());
        assert_eq!(
            (delivered, counters.payload_pointer_errors, counters.cut_short),
            (vec![1], 1, 1),
            "{wrong}"
        );
    }
    // 2 is dropped; at a wrong pointer, there is no SNDU.
    for wrong in [right - 1, right + 1] {
        let (delivered, counters) = with_pointer(wrong, strict());
        assert_eq!((delivered, counters.delimiting_errors), (vec![1], 1), "{wrong}");
    }
}

#[test]
fn larger_payload_pointers_can_be_forgiven() {
    // An SNDU of 365 octets leaves two octets after a Payload Pointer that is not needed.
    let sndu = {
        let mut octets = vec![0; 365];
        Sndu::pdu(EtherType::IPV4, &[7; 357]).write(&mut octets).expect("it can be sent");
        octets
    };
    let mut packets = [packet_with(&sndu[..183]), packet_with(&sndu[182..])];
    packets[1][3] = 0x11;
    packets[1][4] = 182;
    packets[1][5..].fill(0xFF);
    packets[1][5..187].copy_from_slice(&sndu[183..]);
    assert_eq!(numbers(strict(), &packets).1.payload_pointer_errors, 1);
    let lenience = Lenience { large_payload_pointers: true, ..Lenience::STRICT };
    let (delivered, counters) = numbers(lenient(lenience), &packets);
    assert_eq!((delivered, counters.payload_pointer_errors, counters.delimiting_errors), (vec![7], 0, 0));
}

#[test]
fn adaptation_fields_and_other_counters_can_be_forgiven() {
    let mut packet = stream(&[60])[0];
    packet.copy_within(4..174, 18);
    packet[3] |= 0x20;
    packet[4..18].fill(0xFF);
    packet[4] = 13;
    assert_eq!(numbers(strict(), &[packet]).0, []);
    let lenience = Lenience { adaptation_fields: true, ..Lenience::STRICT };
    assert_eq!(numbers(lenient(lenience), &[packet]).0, [1]);
    // An adaptation field longer than the packet.
    packet[4] = 200;
    assert_eq!(numbers(lenient(lenience), &[packet]).0, []);

    let mut packets = stream(&[100, 400, 60]);
    packets.iter_mut().for_each(|packet| packet[3] = 0x10);
    assert_eq!(numbers(strict(), &packets).0, [1]);
    let lenience = Lenience { any_continuity: true, ..Lenience::STRICT };
    assert_eq!(numbers(lenient(lenience), &packets).0, [1, 2, 3]);
}

#[test]
fn a_length_that_cannot_be_ends_the_packet() {
    // Without an address at least one octet and the CRC; with one, address and CRC.
    for (length, bad) in [(0x8004, true), (0x8005, false), (0x0009, true), (0x000A, false), (0x0000, true)] {
        let packet = packet_with(&u16::to_be_bytes(length));
        let counters = received(strict(), &[packet]).1;
        assert_eq!(counters.length_errors, u64::from(bad), "{length:#06x}");
        assert_eq!(counters.crc_errors, u64::from(!bad), "{length:#06x}");
    }
}

#[test]
fn behind_an_end_without_payload_pointer_there_is_padding_alone() {
    // 2 ends in the second TS Packet, which has no Payload Pointer, and leaves 20 octets.
    let packets = stream(&[183 + 164]);
    assert_eq!(packets.len(), 2);
    let with = |octets: &[u8]| {
        let mut packets = packets.clone();
        packets[1][168..168 + octets.len()].copy_from_slice(octets);
        numbers(strict(), &packets)
    };
    assert_eq!(with(&[0xFF, 0xFF, 1]).1.delimiting_errors, 0);
    let (delivered, counters) = with(&[0x80, 0x05]);
    assert_eq!((delivered, counters.delimiting_errors), (vec![1], 1));
    // One remaining octet should be 0xFF.
    let mut packets = stream(&[182]);
    assert_eq!(numbers(strict(), &packets).1.delimiting_errors, 0);
    packets[0][187] = 0xFE;
    assert_eq!(numbers(strict(), &packets).1.delimiting_errors, 1);
}

#[test]
fn after_a_wrong_crc_the_next_sndu_is_found_or_the_packet_left() {
    let mut packets = stream(&[60, 60, 60, 200]);
    packets[0][20] ^= 1;
    let (delivered, counters) = numbers(strict(), &packets);
    assert_eq!((delivered, counters.crc_errors), (vec![2, 3, 4], 1));
    let letter = ReceiverConfig { after_bad_crc: AfterBadCrc::Discard, ..strict() };
    assert_eq!(numbers(letter, &packets).0, []);
}

#[test]
fn an_sndu_longer_than_the_buffer_is_skipped_alone() {
    let packets = stream(&[300, 900, 300, 100]);
    let mut buffer = [0; 300];
    let mut receiver = Receiver::new(strict(), &mut buffer);
    let mut lens = Vec::new();
    for packet in &packets {
        receiver.receive(packet, &mut |delivery| match delivery.payload {
            thinair_ule::Payload::Pdu(_, pdu) => lens.push(pdu.len()),
            _ => panic!("nothing else was sent"),
        });
    }
    assert_eq!((lens, receiver.counters().too_long), (vec![292, 292, 92], 1));
    assert_eq!((receiver.counters().delimiting_errors, receiver.counters().crc_errors), (0, 0));
}

#[test]
fn ts_packets_in_sndus_are_delivered_whole() {
    let inner = [NULL_PACKET; 2];
    let (got, counters) = received(strict(), &packed(&[Sndu::ts_concat(&inner)]));
    assert_eq!((got[0].type_field, &got[0].octets[..]), (2, inner.as_flattened()));
    assert_eq!(counters.delivered, 1);
}

#[test]
fn sizes_that_do_not_add_up_are_counted_apart() {
    // Type, payload, and expected counters: PDU-Concat, TS-Concat, payload length, type.
    let cases: [(u16, &[u8], [u64; 4]); 6] = [
        (0x0003, b"\x22\xf1\0\x03one\0\x04two", [1, 0, 0, 0]),
        (0x0002, &[0x47; 189], [0, 1, 0, 0]),
        (0x0001, b"abcdefghijkl\0\x05four", [0, 0, 1, 0]),
        (0x0500, b"too few", [0, 0, 1, 0]),
        (0x0003, b"\x00\x03\0\0", [0, 0, 0, 1]),
        (0x0004, b"unknown", [0, 0, 0, 1]),
    ];
    for (type_field, payload, expected) in cases {
        let mut sndu = (0x8000 | (payload.len() as u16 + 4)).to_be_bytes().to_vec();
        sndu.extend(type_field.to_be_bytes());
        sndu.extend(payload);
        sndu.extend(thinair_ule::crc::Crc32::of(&sndu).to_be_bytes());
        let mut packets = vec![];
        for (i, chunk) in sndu.chunks(183).enumerate() {
            let mut packet = packet_with(chunk);
            if i > 0 {
                packet = [0xFF; 188];
                packet[..4].copy_from_slice(&[0x47, 0x00, 0x35, 0x11]);
                packet[4..4 + chunk.len()].copy_from_slice(chunk);
            }
            packets.push(packet);
        }
        let (got, counters) = received(strict(), &packets);
        let counted = [
            counters.pdu_concat_errors,
            counters.ts_concat_errors,
            counters.payload_length_errors,
            counters.type_errors,
        ];
        assert_eq!((got.len(), counted), (0, expected), "{type_field:#06x}");
    }
}
