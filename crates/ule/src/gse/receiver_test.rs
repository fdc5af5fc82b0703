use super::super::data_field::{DataField, Put, ReUse, Sending};
use super::*;
use crate::crc::Crc32;
use crate::npa::Npa;
use crate::type_field::EtherType;
use std::vec::Vec;

const SIX: Label = Label::Six(Npa::BROADCAST);
const THREE: Label = Label::Three([1, 2, 3]);
const IPV6: Type = Type::new(0x86DD);

fn sending(label: Label, octets: &[u8], frag_id: u8) -> Sending<'_> {
    Sending::new(label, IPV6, octets, frag_id).expect("short enough")
}

/// Returns data fields of `size` octets with the PDUs in sequence.
fn fields(size: usize, mut pdus: Vec<Sending<'_>>) -> Vec<Vec<u8>> {
    let mut fields = Vec::new();
    while !pdus.iter().all(Sending::is_complete) {
        let mut out = std::vec![0xAA; size];
        let mut field = DataField::new(&mut out, ReUse::Allowed);
        for pdu in &mut pdus {
            if field.put(pdu) != Put::Complete {
                break;
            }
        }
        assert!(field.finish() > 0, "no progress");
        fields.push(out);
    }
    fields
}

type Delivered = Vec<(Label, Vec<u8>, bool)>;

fn receive<const N: usize>(receiver: &mut GseReceiver<'_, N>, field: &[u8]) -> Delivered {
    let mut delivered = Vec::new();
    let mut packets = receiver.receive(field);
    while let Some(pdu) = packets.next_pdu() {
        // The test judges effects that only damage can cause.
        assert!(pdu.type_field == IPV6 || !pdu.was_fragmented);
        delivered.push((pdu.label, pdu.octets.to_vec(), pdu.was_fragmented));
    }
    delivered
}

#[test]
fn labels_that_are_re_used_are_those_before() {
    let mut out = [0; 64];
    let mut field = DataField::new(&mut out, ReUse::Allowed);
    let sent = [SIX, SIX, Label::Broadcast, THREE, THREE];
    for label in sent {
        assert_eq!(field.put(&mut sending(label, b"pdu", 0)), Put::Complete);
    }
    let mut receiver = GseReceiver::new(Accept::Every, []);
    let labels: Vec<_> = receive(&mut receiver, &out).into_iter().map(|(label, ..)| label).collect();
    assert_eq!(labels, sent);
    // Without the previous label, there is nothing to re-use. It begins at octet 13.
    assert_eq!(receive(&mut receiver, &out[13..]).len(), 3);
    // Nor after a broadcast.
    assert_eq!(receive(&mut receiver, &[0xE0, 3, 0x86, 0xDD, 1, 0xF0, 3, 0x86, 0xDD, 1]).len(), 1);
    // Six zeros are not a label, and cannot be re-used.
    let zero = [0xC0, 9, 0x86, 0xDD, 0, 0, 0, 0, 0, 0, 1, 0xF0, 3, 0x86, 0xDD, 1];
    assert_eq!(receive(&mut receiver, &zero).len(), 0);
    let counters = receiver.counters();
    assert_eq!((counters.label_errors, counters.whole, counters.length_errors), (4, 5 + 3 + 1, 0));
}

#[test]
fn pdus_for_others_are_not_delivered() {
    let pdu = [7; 100];
    let sent = fields(
        50,
        std::vec![sending(SIX, &pdu, 1), sending(THREE, &pdu, 2), sending(Label::Broadcast, b"all", 3)],
    );
    let mut memory = [0; 100];
    let mut receiver = GseReceiver::new(Accept::Listed(&[THREE]), [GseSlot::new(&mut memory)]);
    let delivered: Vec<_> = sent.iter().flat_map(|field| receive(&mut receiver, field)).collect();
    let expected = [(THREE, pdu.to_vec(), true), (Label::Broadcast, b"all".to_vec(), false)];
    assert_eq!(delivered, expected);
    // Their fragments are no strays.
    let counters = receiver.counters();
    assert_eq!((counters.filtered, counters.strays), (1, 0));
}

#[test]
fn fragments_of_several_pdus_may_be_mixed() {
    let pdus: Vec<Vec<u8>> = (0..3).map(|i| std::vec![i; 60 + usize::from(i)]).collect();
    let mut sendings: Vec<_> = pdus.iter().zip(0..).map(|(pdu, i)| sending(THREE, pdu, 250 + i)).collect();
    let mut memory = [[0; 64]; 3];
    let mut receiver = GseReceiver::new(Accept::Every, memory.each_mut().map(|memory| GseSlot::new(memory)));
    let mut delivered = Vec::new();
    while !sendings.iter().all(Sending::is_complete) {
        for sending in &mut sendings {
            let mut out = [0; 20];
            let mut field = DataField::new(&mut out, ReUse::Allowed);
            field.put(sending);
            field.finish();
            delivered.extend(receive(&mut receiver, &out));
        }
    }
    let octets: Vec<_> = delivered.into_iter().map(|(_, octets, _)| octets).collect();
    assert_eq!(octets, pdus);
    assert_eq!(receiver.counters().reassembled, 3);
}

#[test]
fn memory_is_taken_from_the_oldest_and_pdus_that_are_too_long_are_left_out() {
    let (long, short) = ([1; 65], [2; 64]);
    let mut memory = [0; 64];
    let mut receiver = GseReceiver::new(Accept::Every, [GseSlot::new(&mut memory)]);
    let of = |pdu: &'static [u8], frag_id| fields(40, std::vec![sending(SIX, pdu, frag_id)]);
    let long = of(std::vec::Vec::leak(long.to_vec()), 1);
    let [a, b] = [2, 3].map(|frag_id| of(std::vec::Vec::leak(short.to_vec()), frag_id));
    for field in &long {
        assert!(receive(&mut receiver, field).is_empty());
    }
    // One begins, another one takes its place, and it cannot continue.
    assert!(receive(&mut receiver, &a[0]).is_empty());
    let delivered: Vec<_> = b.iter().flat_map(|field| receive(&mut receiver, field)).collect();
    assert_eq!(delivered.len(), 1);
    a[1..].iter().for_each(|field| assert!(receive(&mut receiver, field).is_empty()));
    let counters = receiver.counters();
    assert_eq!((counters.too_long, counters.displaced, counters.reassembled), (1, 1, 1));
    assert_eq!(counters.strays, (a.len() - 1) as u64);
}

#[test]
fn lost_fragments_and_wrong_octets_are_found_out() {
    let pdu: Vec<u8> = (0..100).collect();
    let sent = fields(40, std::vec![sending(SIX, &pdu, 9)]);
    assert_eq!(sent.len(), 4);
    let mut memory = [0; 100];
    let mut receiver = GseReceiver::new(Accept::Every, [GseSlot::new(&mut memory)]);
    let mut run = |order: &[usize]| {
        let delivered: usize = order.iter().map(|&i| receive(&mut receiver, &sent[i]).len()).sum();
        (delivered, *receiver.counters())
    };
    assert_eq!(run(&[0, 1, 2, 3]).0, 1);
    assert_eq!(run(&[0, 1, 3]).1.total_length_errors, 1);
    // A duplicate is too much, and the fragments after it belong to the same PDU.
    let (delivered, counters) = run(&[0, 1, 1, 2, 2, 3]);
    assert_eq!((delivered, counters.total_length_errors, counters.strays), (0, 2, 0));
    assert_eq!(run(&[1, 2, 3]).1.strays, 3);
    assert_eq!(run(&[0, 2, 1, 3]).1.crc_errors, 1);
    let (delivered, counters) = run(&[0, 1, 0, 1, 2, 3]);
    assert_eq!((delivered, counters.restarted), (1, 1));

    // Any flipped bit of a fragment: the PDU is not delivered, or is unchanged.
    for bit in 0..40 * 8 {
        for i in 0..4 {
            let mut sent = sent.clone();
            sent[i][bit / 8] ^= 0x80 >> (bit % 8);
            let delivered: Delivered = sent.iter().flat_map(|field| receive(&mut receiver, field)).collect();
            assert!(
                delivered.iter().all(|(_, octets, _)| *octets == pdu || octets.len() < 40),
                "{i}, bit {bit}"
            );
        }
    }
}

#[test]
fn a_pdu_has_256_bbframes_to_be_complete() {
    let pdu = [1; 50];
    let sent = fields(40, std::vec![sending(SIX, &pdu, 9)]);
    let mut memory = [0; 100];
    for between in [254, 255] {
        let mut receiver = GseReceiver::new(Accept::Every, [GseSlot::new(&mut memory)]);
        receive(&mut receiver, &sent[0]);
        for _ in 0..between {
            receive(&mut receiver, &[]);
        }
        let delivered = receive(&mut receiver, &sent[1]).len();
        let counters = receiver.counters();
        assert_eq!((delivered, counters.timed_out), if between == 254 { (1, 0) } else { (0, 1) });
    }
}

#[test]
fn what_is_too_short_or_too_long_for_its_field_is_counted() {
    let mut receiver = GseReceiver::new(Accept::Every, []);
    // A packet of one octet of Type; then a valid one.
    assert_eq!(receive(&mut receiver, &[0xE0, 1, 0x86, 0xE0, 3, 0x86, 0xDD, 1]).len(), 1);
    // Longer than the data field.
    assert_eq!(receive(&mut receiver, &[0xE0, 4, 0x86, 0xDD, 1]).len(), 0);
    assert_eq!(receiver.counters().length_errors, 2);
    // One octet is padding, as are all octets after a header of zeros.
    assert_eq!(receive(&mut receiver, &[0xE0, 3, 0x86, 0xDD, 1, 0xE0]).len(), 1);
    assert_eq!(receive(&mut receiver, &[0x0F, 0xFF, 0xE0, 3, 0x86, 0xDD, 1]).len(), 0);
    assert_eq!(receiver.counters().padding, 1 + 7);
}

/// There is a modulator that sends a Total_Length of two octets too many (dvb-gse, issue 11).
#[test]
fn a_wrong_total_length_can_be_ignored() {
    let pdu = [0x60; 30];
    let mut sent = fields(30, std::vec![sending(Label::Broadcast, &pdu, 0)]);
    assert_eq!(sent.len(), 2);
    let total_length = 30 + 2 + 2_u16;
    sent[0][3..5].copy_from_slice(&total_length.to_be_bytes());
    let crc = Crc32::of(&[&total_length.to_be_bytes()[..], &0x86DD_u16.to_be_bytes(), &pdu].concat());
    let rest = 3 + 30 - (30 - 7);
    sent[1][rest..rest + 4].copy_from_slice(&crc.to_be_bytes());

    let mut memory = [0; 100];
    let mut receiver = GseReceiver::new(Accept::Every, [GseSlot::new(&mut memory)]);
    assert!(sent.iter().all(|field| receive(&mut receiver, field).is_empty()));
    assert_eq!(receiver.counters().total_length_errors, 1);
    receiver.set_total_length(TotalLength::Ignored);
    let delivered: Vec<_> = sent.iter().flat_map(|field| receive(&mut receiver, field)).collect();
    assert_eq!(delivered, [(Label::Broadcast, pdu.to_vec(), true)]);
    // A PDU longer than the memory is still too long.
    let long = [1; 101];
    for field in fields(30, std::vec![sending(Label::Broadcast, &long, 0)]) {
        assert!(receive(&mut receiver, &field).is_empty());
    }
    assert_eq!(receiver.counters().too_long, 1);
}

#[test]
fn extension_headers_are_those_of_ule() {
    // Extension-Padding of one word before a ROHC packet.
    let mut receiver = GseReceiver::new(Accept::Every, []);
    let mut packets = receiver.receive(&[0xE0, 5, 0x01, 0x00, 0x22, 0xF1, 0xFD]);
    let chain = packets.next_pdu().and_then(|pdu| pdu.chain().ok());
    let content = chain.map(|chain| chain.content);
    assert_eq!(content, Some(crate::extension::SnduContent::Pdu(EtherType::ROHC, &[0xFD])));
}
