//! All PDUs that are sent arrive; after losses or damage, no wrong PDU does.

use proptest::prelude::*;
use std::vec::Vec;

use super::{Accept, DataField, GsePackets, GseReceiver, GseSlot, Label, Put, ReUse, Sending};
use crate::npa::Npa;
use crate::type_field::Type;

type SentPdu = (Label, Type, Vec<u8>);

fn label() -> impl Strategy<Value = Label> {
    prop_oneof![
        // Few different labels, so that they repeat.
        (1..3_u8).prop_map(|i| Npa::new([0, 0, 0, 0, 0, i]).map_or(Label::Broadcast, Label::Six)),
        (0..2_u8).prop_map(|i| Label::Three([i; 3])),
        Just(Label::Broadcast),
    ]
}

/// PDUs with sizes of data fields. Long PDUs have larger fields, since they must be complete within 256 of them.
fn pdus_and_sizes() -> impl Strategy<Value = (Vec<SentPdu>, Vec<usize>)> {
    let pdu = |len| (label(), any::<u16>().prop_map(Type::new), prop::collection::vec(any::<u8>(), len));
    let pdus = |len| prop::collection::vec(pdu(len), 1..20);
    prop_oneof![
        4 => (pdus(0..300), prop::collection::vec(30_usize..400, 1..8)),
        1 => (pdus(3_000..9_000), prop::collection::vec(300_usize..5_000, 1..8)),
    ]
}

/// Returns data fields of these sizes in turn, with up to four PDUs at a time.
fn encapsulate(pdus: &[SentPdu], sizes: &[usize], re_use: ReUse) -> Vec<Vec<u8>> {
    let mut waiting = pdus.iter();
    let mut under_way: Vec<Sending<'_>> = Vec::new();
    let mut fields = Vec::new();
    for &size in sizes.iter().cycle() {
        let mut out = std::vec![0; size];
        let mut field = DataField::new(&mut out, re_use);
        let mut i = 0;
        loop {
            if i == under_way.len() {
                if i == 4 {
                    break;
                }
                let Some((label, type_field, octets)) = waiting.next() else { break };
                // As many Frag_IDs as PDUs under way, all different.
                let free = (0..4).find(|id| !under_way.iter().any(|other| other.frag_id() == *id));
                let Ok(sending) = Sending::new(*label, *type_field, octets, free.unwrap_or(0)) else { break };
                under_way.push(sending);
            }
            if field.put(&mut under_way[i]) == Put::NoRoom && field.room() < 14 {
                break;
            }
            i += 1;
        }
        under_way.retain(|sending| !sending.is_complete());
        let len = field.finish();
        out.truncate(len.max(size / 2));
        fields.push(out);
        if under_way.is_empty() && waiting.len() == 0 {
            return fields;
        }
    }
    fields
}

fn collect<const N: usize>(mut packets: GsePackets<'_, '_, '_, N>) -> Vec<(SentPdu, bool)> {
    let mut delivered = Vec::new();
    while let Some(pdu) = packets.next_pdu() {
        delivered.push(((pdu.label, pdu.type_field, pdu.octets.to_vec()), pdu.was_fragmented));
    }
    delivered
}

fn sorted(mut sent: Vec<SentPdu>) -> Vec<SentPdu> {
    sent.sort();
    sent
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn all_that_is_sent_arrives(
        (pdus, sizes) in pdus_and_sizes(),
        re_use in prop_oneof![Just(ReUse::Allowed), Just(ReUse::Never)],
    ) {
        let fields = encapsulate(&pdus, &sizes, re_use);
        let mut memory = std::vec![[0; 9_000]; 4];
        let [a, b, c, d] = memory.as_mut_slice() else { unreachable!() };
        let mut receiver = GseReceiver::new(Accept::Every, [a, b, c, d].map(|memory| GseSlot::new(memory)));
        let delivered: Vec<_> = fields.iter().flat_map(|field| collect(receiver.receive(field))).collect();
        let counters = *receiver.counters();
        let fragmented = delivered.iter().filter(|(_, was_fragmented)| *was_fragmented).count();
        prop_assert_eq!(sorted(delivered.into_iter().map(|(sent, _)| sent).collect()), sorted(pdus.clone()));
        prop_assert_eq!(counters.reassembled, fragmented as u64);
        prop_assert_eq!(counters.whole, (pdus.len() - fragmented) as u64);
        prop_assert_eq!(counters.padding, fields.iter().map(|field| padding(field)).sum::<u64>());
        let errors = counters.length_errors + counters.label_errors + counters.strays + counters.restarted
            + counters.displaced + counters.timed_out + counters.too_long + counters.total_length_errors
            + counters.crc_errors + counters.filtered;
        prop_assert_eq!(errors, 0);
    }

    /// BBFrames are lost, duplicated and reordered: a whole PDU that arrives was sent, and so was a reassembled
    /// one, since its CRC-32 covers the label, the Type and every octet.
    #[test]
    fn nothing_wrong_arrives_of_bbframes_that_are_lost(
        (pdus, sizes) in pdus_and_sizes(),
        fates in prop::collection::vec(0..10_u8, 1..50),
    ) {
        let mut arriving = Vec::new();
        for (field, fate) in encapsulate(&pdus, &sizes, ReUse::Allowed).into_iter().zip(fates.iter().cycle()) {
            match fate {
                0 => {}
                1 => arriving.extend([field.clone(), field]),
                2 => arriving.insert(arriving.len().saturating_sub(1), field),
                _ => arriving.push(field),
            }
        }
        let mut memory = [[0; 9_000]; 2];
        let mut receiver = GseReceiver::new(Accept::Every, memory.each_mut().map(|memory| GseSlot::new(memory)));
        for field in &arriving {
            for (delivered, _) in collect(receiver.receive(field)) {
                prop_assert!(pdus.contains(&delivered));
            }
        }
    }

    /// Random octets: no panic, and every octet is accounted for.
    #[test]
    fn any_octets_are_survived(fields in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..20)) {
        let mut memory = [0; 100];
        let mut receiver = GseReceiver::new(Accept::Every, [GseSlot::new(&mut memory)]);
        for field in &fields {
            collect(receiver.receive(field));
        }
        prop_assert_eq!(receiver.counters().data_fields, fields.len() as u64);
    }
}

/// Returns the octets of padding of a data field without errors, computed from lengths alone.
fn padding(field: &[u8]) -> u64 {
    let mut at = 0;
    while let [first, second, ..] = field[at..]
        && first & 0xF0 != 0
    {
        at += 2 + usize::from(u16::from_be_bytes([first & 0x0F, second]));
    }
    (field.len() - at) as u64
}
