//! Tests of the four coders against each other, and of each by itself.

use super::*;
use crate::header::ah::Ah;
use crate::header::coap::{self, Coap};
use crate::header::esp::Esp;
use crate::header::ipv4::Ipv4;
use crate::header::ipv6::Ipv6;
use crate::header::rtp::Rtp;
use crate::header::tcp::Tcp;
use crate::header::udp::Udp;
use crate::header::udp_lite::UdpLite;
use proptest::collection::vec;
use proptest::prelude::*;
use std::vec::Vec;

const SN: LsbSlot = LsbSlot::new(0, "SN");
const TS: LsbSlot = LsbSlot::new(1, "TS");

proptest! {
    #[test]
    fn what_a_writer_writes_a_reader_and_a_tracer_read(plan in vec(piece(), 0..24), start in 0..3_usize) {
        let mut out = [0xEE; 1024];
        let mut writer = Writer::new(&mut out, start);
        writer.offer(TS, Lsb { value: last_lsb(&plan), needed: 0 });
        let mut written: Vec<_> = plan.iter().map(PieceValue::of).collect();
        let bits = format(&mut writer, &plan, &mut written).unwrap();
        writer.fill_crc(0b101);
        let end = writer.finish().unwrap();
        prop_assert_eq!((end - start) as u32 * 8, bits);
        prop_assert!(out[..start].iter().chain(&out[end..]).all(|&octet| octet == 0xEE));

        let mut reader = Reader::contiguous(&out[start..end]);
        let mut read = std::vec![PieceValue::default(); plan.len()];
        prop_assert_eq!(format(&mut reader, &plan, &mut read), Ok(bits));
        prop_assert_eq!(&read, &written);
        prop_assert_eq!(reader.crc_read(), Some((3, 0b101)));
        prop_assert_eq!(reader.remaining(), &[][..]);

        let mut traced = 0;
        let mut tracer = Tracer::new(Reader::contiguous(&out[start..end]), |field| traced += field.bits);
        let mut again = std::vec![PieceValue::default(); plan.len()];
        prop_assert_eq!(format(&mut tracer, &plan, &mut again), Ok(bits));
        prop_assert_eq!(&again, &written);
        prop_assert_eq!(traced, bits);

        // With the first octet apart, as with large CIDs.
        if plan.iter().all(|piece| !matches!(piece, Piece::Octets(_) | Piece::Slice(_))) {
            let mut reader = Reader::new(out[start], &out[start + 1..end]);
            let mut apart = std::vec![PieceValue::default(); plan.len()];
            prop_assert_eq!(format(&mut reader, &plan, &mut apart), Ok(bits));
            prop_assert_eq!(&apart, &written);
        }
    }

    #[test]
    fn every_shorter_buffer_has_no_room_and_every_truncation_is_malformed(plan in vec(piece(), 0..12)) {
        let mut out = [0; 512];
        let mut writer = Writer::new(&mut out, 0);
        let values: Vec<_> = plan.iter().map(PieceValue::of).collect();
        format(&mut writer, &plan, &mut values.clone()).unwrap();
        let end = writer.finish().unwrap();
        for len in 0..end {
            let mut buffer = [0xEE; 512];
            let mut writer = Writer::new(&mut buffer[..len], 0);
            format(&mut writer, &plan, &mut values.clone()).unwrap();
            prop_assert_eq!(writer.finish(), Err(NoRoom));
            prop_assert!(buffer[len..].iter().all(|&octet| octet == 0xEE));

            let mut reader = Reader::contiguous(&out[..len]);
            let mut read = std::vec![PieceValue::default(); plan.len()];
            prop_assert_eq!(format(&mut reader, &plan, &mut read), Err(Refusal::Malformed));
        }
    }

    #[test]
    fn after_a_rewind_nothing_of_the_first_format_is_left(
        first in vec(piece(), 0..12), second in vec(piece(), 0..12), ts: u32
    ) {
        let mut fresh = [0; 512];
        let mut writer = Writer::new(&mut fresh, 2);
        writer.offer(TS, Lsb { value: ts, needed: 0 });
        format(&mut writer, &second, &mut second.iter().map(PieceValue::of).collect::<Vec<_>>()).unwrap();
        let end = writer.finish().unwrap();

        let mut out = [0; 512];
        let mut writer = Writer::new(&mut out, 2);
        writer.offer(TS, Lsb { value: ts, needed: 0 });
        format(&mut writer, &first, &mut first.iter().map(PieceValue::of).collect::<Vec<_>>()).unwrap();
        writer.fill_crc(0b111);
        // In the middle of an octet.
        writer.uint("", 5, &mut 0b10101_u8).unwrap();
        writer.rewind();
        prop_assert_eq!(writer.position(), 2);
        prop_assert_eq!(writer.crc_width(), 0);
        format(&mut writer, &second, &mut second.iter().map(PieceValue::of).collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(writer.finish(), Ok(end));
        prop_assert_eq!(&out[..end], &fresh[..end]);
    }

    /// The extension holds the lower bits. RFC 3095, section 4.5.7.
    #[test]
    fn a_slot_is_put_together_from_base_and_extensions(
        value: u32, a in 1..=10_u32, b in 0..=11_u32, c in 0..=11_u32
    ) {
        let split = |coder: &mut dyn FnMut(u32, u32) -> Step| -> Step {
            coder(a, b + c)?;
            if b > 0 {
                coder(b, c)?;
            }
            if c > 0 {
                coder(c, 0)?;
            }
            Ok(())
        };
        let width = a + b + c;
        let pad = (8 - width % 8) % 8;
        let mut out = [0; 8];
        let mut writer = Writer::new(&mut out, 0);
        writer.offer(SN, Lsb { value, needed: width });
        split(&mut |width, rest| writer.lsb(SN, width, rest)).unwrap();
        if pad > 0 {
            writer.reserved(pad).unwrap();
        }
        let end = writer.finish().unwrap();

        let mut reader = Reader::contiguous(&out[..end]);
        split(&mut |width, rest| reader.lsb(SN, width, rest)).unwrap();
        let low = (u64::from(value) & ((1 << width) - 1)) as u32;
        prop_assert_eq!(reader.collected(SN), (low, width));

        // One bit more than the format has does not fit, already in the base header.
        let mut writer = Writer::new(&mut out, 0);
        writer.offer(SN, Lsb { value, needed: width + 1 });
        prop_assert_eq!(writer.lsb(SN, a, b + c), Err(Refusal::DoesNotFit));
        prop_assert_eq!(writer.position(), 0);
    }

    #[test]
    fn a_self_describing_value_comes_back(value in 0..=0x1FFF_FFFF_u32, stale: u32) {
        let octets = sdvl_octets(value).unwrap();
        let mut read = stale;
        let mut reader = Reader::contiguous(&octets);
        prop_assert_eq!(sdvl(&mut reader, "", &mut read), Ok(()));
        prop_assert_eq!(read, value);
        prop_assert_eq!(reader.position(), octets.len());
    }

    #[test]
    fn a_traced_header_is_told_bit_by_bit(octets in vec(any::<u8>(), 0..80)) {
        prop_assert!(told(&octets, |c| Ipv4::default().code(c)));
        prop_assert!(told(&octets, |c| Ipv6::default().code(c)));
        prop_assert!(told(&octets, |c| Udp::default().code(c)));
        prop_assert!(told(&octets, |c| UdpLite::default().code(c)));
        prop_assert!(told(&octets, |c| Tcp::default().code(c)));
        prop_assert!(told(&octets, |c| Rtp::default().code(c)));
        prop_assert!(told(&octets, |c| Esp::default().code(c)));
        prop_assert!(told(&octets, |c| Ah::default().code(c)));
        prop_assert!(told(&octets, |c| Coap::default().code(c, octets.len())));
        prop_assert!(told(&octets, |c| coap::option(c, &mut 0, &mut &[][..])));
        prop_assert!(told(&octets, |c| sdvl(c, "", &mut 0)));
    }
}

/// RFC 5795, section 5.3.2: the boundaries of the table.
#[test]
fn a_self_describing_value_has_one_to_four_octets() {
    let table: [(u32, &[u8]); 8] = [
        (0, &[0x00]),
        (127, &[0x7F]),
        (128, &[0x80, 0x80]),
        (16_383, &[0xBF, 0xFF]),
        (16_384, &[0xC0, 0x40, 0x00]),
        (2_097_151, &[0xDF, 0xFF, 0xFF]),
        (2_097_152, &[0xE0, 0x20, 0x00, 0x00]),
        (536_870_911, &[0xFF, 0xFF, 0xFF, 0xFF]),
    ];
    for (value, octets) in table {
        assert_eq!(sdvl_octets(value), Ok(octets.to_vec()), "{value}");
        let mut read = 0;
        assert_eq!(sdvl(&mut Reader::contiguous(octets), "", &mut read), Ok(()));
        assert_eq!(read, value);
        for len in 0..octets.len() {
            let mut reader = Reader::contiguous(&octets[..len]);
            assert_eq!(sdvl(&mut reader, "", &mut 0), Err(Refusal::Malformed), "{len} octets of {value}");
        }
    }
    for value in [536_870_912, u32::MAX] {
        assert_eq!(sdvl_octets(value), Err(Refusal::DoesNotFit));
    }
}

/// The initial value of the variable does not matter to a reader.
#[test]
fn a_self_describing_value_is_read_over_a_large_one() {
    let mut value = u32::MAX;
    assert_eq!(sdvl(&mut Reader::contiguous(&[0xE0, 0x20, 0, 0]), "", &mut value), Ok(()));
    assert_eq!(value, 2_097_152);
}

/// A CRC that did not fit leaves no gap; the octet before it belongs to another field.
#[test]
fn a_crc_without_room_is_not_filled_in() {
    let mut out = [0; 2];
    let mut writer = Writer::new(&mut out[..1], 1);
    writer.discriminator(5, 0).unwrap();
    writer.crc("CRC", 3).unwrap();
    writer.fill_crc(0b111);
    assert_eq!(writer.finish(), Err(NoRoom));
    assert_eq!(out, [0, 0]);
}

#[test]
fn a_format_without_crc_is_not_filled_in() {
    let mut out = [0; 2];
    let mut writer = Writer::new(&mut out, 1);
    writer.uint("", 8, &mut 0_u8).unwrap();
    writer.fill_crc(0b111);
    assert_eq!(writer.finish(), Ok(2));
    assert_eq!(out, [0, 0]);
}

#[test]
fn a_writer_that_starts_behind_its_buffer_has_no_room() {
    let mut writer = Writer::new(&mut [], 3);
    writer.uint("", 8, &mut 1_u8).unwrap();
    assert_eq!(writer.written(), []);
    assert_eq!(writer.finish(), Err(NoRoom));
}

#[test]
fn a_wrong_pattern_or_guard_is_not_this() {
    let mut reader = Reader::contiguous(&[0b1010_0000]);
    assert_eq!(reader.discriminator(3, 0b101), Ok(()));
    assert_eq!(reader.discriminator(2, 0b11), Err(Refusal::NotThis));
    assert_eq!(reader.enforce(false), Err(Refusal::NotThis));
    assert_eq!(Writer::new(&mut [], 0).enforce(false), Err(Refusal::NotThis));
}

#[test]
fn a_described_header_without_options_has_its_length() {
    fn bits(code: impl FnOnce(&mut Describer<32>) -> Step) -> u32 {
        let mut describer = Describer::new(0);
        code(&mut describer).unwrap();
        describer.bits()
    }
    assert_eq!(bits(|c| Ipv4::default().code(c)), 160);
    assert_eq!(bits(|c| Ipv6::default().code(c)), 320);
    assert_eq!(bits(|c| Udp::default().code(c)), 64);
    assert_eq!(bits(|c| UdpLite::default().code(c)), 64);
    assert_eq!(bits(|c| Tcp::default().code(c)), 160);
    assert_eq!(bits(|c| Rtp::default().code(c)), 96);
    assert_eq!(bits(|c| Esp::default().code(c)), 64);
    assert_eq!(bits(|c| Ah::default().code(c)), 96);
    assert_eq!(bits(|c| Coap::default().code(c, Coap::LEN)), 32);
    assert_eq!(bits(|c| coap::option_header(c, &mut 12, &mut 13)), 8 + 8);
    assert_eq!(bits(|c| coap::option_header(c, &mut 269, &mut 0)), 8 + 16);
}

#[test]
fn a_describer_walks_both_branches_of_every_flag() {
    let described = |choices| {
        let mut describer = Describer::<8>::new(choices);
        sdvl(&mut describer, "value", &mut 0).unwrap();
        (describer.flags(), describer.bits())
    };
    assert_eq!(described(0b000), (1, 8));
    assert_eq!(described(0b001), (2, 16));
    assert_eq!(described(0b011), (3, 24));
    assert_eq!(described(0b111), (3, 32));

    // The second flag of RTP is X.
    let rtp = |choices| {
        let mut describer = Describer::<32>::new(choices);
        Rtp::default().code(&mut describer).unwrap();
        describer.fields().iter().any(|field| field.name == "header extension")
    };
    assert!(!rtp(0b101));
    assert!(rtp(0b010));
}

#[test]
fn a_describer_without_room_says_so() {
    assert_eq!(Udp::default().code(&mut Describer::<3>::new(0)), Err(Refusal::Malformed));
}

fn sdvl_octets(mut value: u32) -> Step<Vec<u8>> {
    let mut out = [0; 4];
    let mut writer = Writer::new(&mut out, 0);
    sdvl(&mut writer, "", &mut value)?;
    let end = writer.finish().unwrap();
    Ok(out[..end].to_vec())
}

/// Returns true if the fields that a tracer emits are those that were read: no bit twice, and none missing.
fn told(octets: &[u8], code: impl FnOnce(&mut Tracer<'_, &mut dyn FnMut(Traced<'_>)>) -> Step) -> bool {
    let mut bits = 0;
    let mut on_field = |field: Traced<'_>| bits += field.bits;
    let mut tracer = Tracer::new(Reader::contiguous(octets), &mut on_field as &mut dyn FnMut(Traced<'_>));
    let coded = code(&mut tracer);
    let read = tracer.reader().position() as u32 * 8;
    // A rejected header may end within an octet.
    if coded.is_ok() { bits == read } else { bits <= read }
}

/// A part of a random format.
#[derive(Clone, Debug)]
enum Piece {
    Uint(u32, u32),
    Flag(bool),
    Reserved(u32),
    Discriminator(u32, u32),
    Lsb(u32, u32),
    Octets([u8; 3]),
    Slice(Vec<u8>),
}

fn piece() -> impl Strategy<Value = Piece> {
    let number = || (1..=32_u32, any::<u32>()).prop_map(|(width, value)| (width, low(width, value)));
    prop_oneof![
        number().prop_map(|(width, value)| Piece::Uint(width, value)),
        any::<bool>().prop_map(Piece::Flag),
        (1..=32_u32).prop_map(Piece::Reserved),
        number().prop_map(|(width, pattern)| Piece::Discriminator(width, pattern)),
        number().prop_map(|(width, value)| Piece::Lsb(width, value)),
        any::<[u8; 3]>().prop_map(Piece::Octets),
        vec(any::<u8>(), 0..9).prop_map(Piece::Slice),
    ]
}

fn low(width: u32, value: u32) -> u32 {
    (u64::from(value) & ((1 << width) - 1)) as u32
}

/// A writer has one value for a slot.
fn last_lsb(plan: &[Piece]) -> u32 {
    let lsb = |piece: &Piece| if let Piece::Lsb(_, value) = piece { Some(*value) } else { None };
    plan.iter().rev().find_map(lsb).unwrap_or_default()
}

/// Variables that a piece reads into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PieceValue<'p> {
    number: u32,
    flag: bool,
    octets: [u8; 3],
    slice: &'p [u8],
}

impl<'p> PieceValue<'p> {
    fn of(piece: &'p Piece) -> Self {
        let mut value = Self::default();
        match piece {
            Piece::Uint(_, number) => value.number = *number,
            Piece::Flag(flag) => value.flag = *flag,
            Piece::Octets(octets) => value.octets = *octets,
            Piece::Slice(slice) => value.slice = slice,
            Piece::Reserved(_) | Piece::Discriminator(..) | Piece::Lsb(..) => {}
        }
        value
    }
}

/// Format that `plan` describes, with a CRC-3 at its end. Returns its number of bits.
fn format<'p, C: Coder<'p>>(c: &mut C, plan: &[Piece], values: &mut [PieceValue<'p>]) -> Step<u32> {
    let mut bits = 0;
    for (piece, value) in plan.iter().zip(values) {
        match piece {
            Piece::Uint(width, _) => {
                c.uint("uint", *width, &mut value.number)?;
                bits += width;
            }
            Piece::Flag(_) => {
                let returned = c.flag("flag", &mut value.flag)?;
                assert_eq!(returned, value.flag);
                bits += 1;
            }
            Piece::Reserved(width) => {
                c.reserved(*width)?;
                bits += width;
            }
            Piece::Discriminator(width, pattern) => {
                c.discriminator(*width, *pattern)?;
                bits += width;
            }
            Piece::Lsb(width, _) => {
                c.lsb(TS, *width, 0)?;
                bits += width;
            }
            Piece::Octets(_) => {
                bits += align(c, bits, 0)?;
                c.octets("octets", &mut value.octets)?;
                bits += 24;
            }
            Piece::Slice(slice) => {
                bits += align(c, bits, 0)?;
                c.slice("slice", slice.len(), &mut value.slice)?;
                bits += slice.len() as u32 * 8;
            }
        }
    }
    bits += align(c, bits, 5)?;
    c.crc("CRC", 3)?;
    Ok(bits + 3)
}

/// Adds reserved bits to the `bits` bits so far until `to` bits of an octet are used. Returns their number.
fn align<'p, C: Coder<'p>>(c: &mut C, bits: u32, to: u32) -> Step<u32> {
    let missing = (to + 8 - bits % 8) % 8;
    for _ in 0..missing {
        c.reserved(1)?;
    }
    Ok(missing)
}
