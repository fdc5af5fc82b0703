//! Data fields of BBFrames from outside, and our own PDUs through such fields, some of which are lost, as the octets
//! determine.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_ule::gse::{
    Accept, BbHeader, DataField, GsePackets, GseReceiver, GseSlot, Label, Put, ReUse, Sending, TotalLength,
};
use thinair_ule::{Npa, Type};

#[derive(Arbitrary, Debug)]
enum GseInput<'a> {
    Fields { fields: Vec<&'a [u8]>, ignore_total_length: bool },
    Pdus { pdus: Vec<(ArbitraryLabel, u16, &'a [u8])>, sizes: Vec<u8>, lost: u64, re_use: bool },
}

#[derive(Arbitrary, Debug)]
enum ArbitraryLabel {
    Six(u8),
    Three(u8),
    Broadcast,
}

fuzz_target!(|input: GseInput<'_>| match input {
    GseInput::Fields { fields, ignore_total_length } => {
        let mut memory = [[0; 64], [0; 64]];
        let mut receiver =
            GseReceiver::new(Accept::Every, memory.each_mut().map(|memory| GseSlot::new(memory)));
        if ignore_total_length {
            receiver.set_total_length(TotalLength::Ignored);
        }
        for field in fields {
            let _ = BbHeader::read(field);
            let mut packets = receiver.receive(field);
            while let Some(pdu) = packets.next_pdu() {
                let _ = pdu.chain();
            }
        }
    }
    GseInput::Pdus { pdus, sizes, lost, re_use } => through(&pdus, &sizes, lost, re_use),
});

type SentPdu<'a> = (Label, Type, &'a [u8]);

fn through(pdus: &[(ArbitraryLabel, u16, &[u8])], sizes: &[u8], lost: u64, re_use: bool) {
    let label = |label: &ArbitraryLabel| match label {
        ArbitraryLabel::Six(last) => Npa::new([0, 0, 0, 0, 1, *last]).map_or(Label::Broadcast, Label::Six),
        ArbitraryLabel::Three(octet) => Label::Three([*octet; 3]),
        ArbitraryLabel::Broadcast => Label::Broadcast,
    };
    let pdus: Vec<SentPdu<'_>> =
        pdus.iter().map(|(l, kind, octets)| (label(l), Type::new(*kind), *octets)).collect();
    let re_use = if re_use { ReUse::Allowed } else { ReUse::Never };
    // A first fragment needs 14 octets.
    let mut sizes = sizes.iter().map(|size| usize::from(*size).max(14)).chain([255]).cycle();
    let mut memory = [0; 4_096];
    let mut receiver = GseReceiver::new(Accept::Every, [GseSlot::new(&mut memory)]);
    let (mut delivered, mut number) = (0, 0);
    let mut waiting = pdus.iter();
    let mut under_way = None;
    loop {
        let mut out = [0; 255];
        let out = &mut out[..sizes.next().unwrap_or(255)];
        let mut field = DataField::new(out, re_use);
        while let Some(mut sending) = under_way.take().or_else(|| next(&mut waiting)) {
            if field.put(&mut sending) != Put::Complete {
                under_way = Some(sending);
                break;
            }
        }
        field.finish();
        number += 1;
        if lost >> (number % 64) & 1 == 0 {
            delivered += check(receiver.receive(out), &pdus);
        }
        if under_way.is_none() && waiting.len() == 0 {
            break;
        }
    }
    let all_fit = pdus.iter().all(|pdu| pdu.2.len() <= 1_000);
    assert!(lost > 0 || !all_fit || delivered == pdus.len(), "{delivered} of {}", pdus.len());
}

fn next<'a>(waiting: &mut std::slice::Iter<'_, SentPdu<'a>>) -> Option<Sending<'a>> {
    let (label, kind, octets) = waiting.next()?;
    Sending::new(*label, *kind, octets, 7).ok()
}

/// Every delivered PDU was sent.
fn check(mut packets: GsePackets<'_, '_, '_, 1>, pdus: &[SentPdu<'_>]) -> usize {
    let mut count = 0;
    while let Some(pdu) = packets.next_pdu() {
        assert!(pdus.contains(&(pdu.label, pdu.type_field, pdu.octets)));
        count += 1;
    }
    count
}
