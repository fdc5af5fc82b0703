#![no_main]
//! SNDUs: any octets are parsed without a panic, and parsing a built SNDU gives its parts.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_ule::extension::{ExtensionChain, SnduContent};
use thinair_ule::sndu::ReceivedSndu;
use thinair_ule::{EtherType, Npa, OptionalHeader, Sndu, Type, crc::Crc32, psi};

#[derive(Arbitrary, Debug)]
enum SnduInput {
    /// SNDU without its CRC.
    Sndu(Vec<u8>),
    /// Section of PSI without its CRC.
    Section(Vec<u8>),
    /// Octets after a base header.
    Chain(u16, Vec<u8>),
    /// Parts of an SNDU to be built.
    Pdu { to: Option<[u8; 6]>, headers: Vec<(u8, Vec<u8>)>, ether_type: u16, pdu: Vec<u8> },
    /// Several PDUs.
    Concat { type_field: u16, pdus: Vec<Vec<u8>> },
}

fuzz_target!(|input: SnduInput| match input {
    SnduInput::Sndu(mut octets) => {
        octets.extend(Crc32::of(&octets).to_be_bytes());
        if let Ok(sndu) = ReceivedSndu::read(&octets) {
            open(sndu.type_field, sndu.octets);
        }
    }
    SnduInput::Section(mut octets) => {
        octets.extend(Crc32::of(&octets).to_be_bytes());
        if let Ok(section) = psi::PsiSection::read(&octets) {
            assert!(psi::Pat::programs(section).count() <= octets.len() / 4);
            if let Some((_, streams)) = psi::Pmt::streams(section) {
                assert!(streams.filter(psi::ElementaryStream::is_ule).count() <= octets.len() / 5);
            }
        }
    }
    SnduInput::Chain(type_field, octets) => open(Type::new(type_field), &octets),
    SnduInput::Pdu { to, headers, ether_type, pdu } => {
        let headers: Vec<_> =
            headers.iter().filter_map(|(h_type, fields)| OptionalHeader::new(*h_type, fields)).collect();
        let ether_type = EtherType::new(ether_type).unwrap_or(EtherType::ROHC);
        let plain = Sndu::pdu(ether_type, &pdu).with_headers(&headers);
        let sndu = to.and_then(Npa::new).map_or(plain, |npa| plain.to(npa));
        let mut out = vec![0; 40_000];
        let Ok(len) = sndu.write(&mut out) else { return };
        assert_eq!(sndu.octets(), Ok(len));
        let received = ReceivedSndu::read(&out[..len]).expect("it was put together");
        assert_eq!(received.destination.and_then(Npa::new), sndu.destination());
        let chain = ExtensionChain::read(received.type_field, received.octets).expect("it was put together");
        assert_eq!(chain.content, SnduContent::Pdu(ether_type, &pdu));
    }
    SnduInput::Concat { type_field, pdus } => {
        let pdus: Vec<&[u8]> = pdus.iter().map(|pdu| &pdu[..]).collect();
        let mut out = vec![0; 40_000];
        let Ok(len) = Sndu::pdu_concat(Type::new(type_field), &pdus).write(&mut out) else { return };
        let received = ReceivedSndu::read(&out[..len]).expect("it was put together");
        match ExtensionChain::read(received.type_field, received.octets).map(|chain| chain.content) {
            Ok(SnduContent::PduConcat(concat)) => assert!(concat.pdus().eq(pdus)),
            other => panic!("{other:?}"),
        }
    }
});

fn open(type_field: Type, octets: &[u8]) {
    match ExtensionChain::read(type_field, octets).map(|chain| chain.content) {
        Ok(SnduContent::Bridged(frame)) => assert!(frame.contents().len() <= frame.octets().len()),
        Ok(SnduContent::PduConcat(concat)) => assert_eq!(concat.contents().count(), concat.pdus().count()),
        Ok(SnduContent::Pdu(..) | SnduContent::TsConcat(_) | SnduContent::Test(_)) | Err(_) => {}
    }
}
