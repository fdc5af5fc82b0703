//! Tests of the formats against RFC 3095. It has no formal notation, so each format is compared with a table typed
//! by hand from its figures, with the section. A round trip would not detect a width that is wrong on both sides.

use std::format;
use std::string::String;
use std::vec::Vec;

use thinair_wire::coder::{Coder, Describer, Lsb, Reader, Step, Writer};

use super::list::{CompressedList, ListKind, compressed_list, encoding};
use super::tail::{Tail, tail};
use super::{IP_ID, IP_ID2, IpFields, IpVersion, Rfc3095Fields, SN, base, ir};
use crate::id::{Format, ProfileId};
use crate::mode::Mode;

/// Returns the fields of a format as `pattern` or `name:bits`, with its flags given as bits.
pub(super) fn described(choices: u32, run: impl FnOnce(&mut Describer<64>) -> Step) -> String {
    let mut describer = Describer::new(choices);
    run(&mut describer).ok();
    let fields: Vec<String> = describer
        .fields()
        .iter()
        .map(|field| match field.name {
            "" => format!("{:0width$b}", field.pattern, width = field.bits as usize),
            name => format!("{name}:{}", field.bits),
        })
        .collect();
    fields.join(" ")
}

pub(super) fn fields(profile: ProfileId, versions: &[IpVersion]) -> Rfc3095Fields<'static> {
    let mut x = Rfc3095Fields::new(profile);
    x.ip_count = versions.len();
    for (ip, version) in x.ips.iter_mut().zip(versions) {
        ip.header.version = *version;
    }
    x
}

#[test]
fn base_formats_are_those_of_the_figures() {
    let one = [IpVersion::V4];
    let two = [IpVersion::V4, IpVersion::V4];
    // Section 5.7.1; 5.11.3; 5.11.3 and 5.11.4.
    for (format, versions, choices, expected) in [
        (Format::Uo0, &one[..], 0, "0 SN:4 CRC:3"),
        (Format::Uo1, &one, 0, "10 IP-ID:6 SN:5 CRC:3"),
        (Format::R0, &one, 0, "00 SN:6"),
        (Format::R0Crc, &one, 0, "01 SN:6 SN:1 CRC:7"),
        (Format::R1, &one, 0, "10 SN:6 X:1 IP-ID:7"),
        (Format::R1Ext0, &one, 1, "10 SN:6 X:1 IP-ID:7 00 SN:3 IP-ID:3"),
        (Format::R1Ext1, &one, 1, "10 SN:6 X:1 IP-ID:7 01 SN:3 IP-ID:3 IP-ID:8"),
        (Format::R1Ext2, &two, 1, "10 SN:6 X:1 IP-ID:7 10 SN:3 IP-ID2:3 IP-ID2:8 IP-ID:8"),
        (Format::R1Ext3, &one, 0b00001, "10 SN:6 X:1 IP-ID:7 11 S:1 Mode:2 I:1 ip:1 ip2:1"),
        (Format::Uor2, &one, 0, "110 SN:5 X:1 CRC:7"),
        (Format::Uor2Ext0, &one, 1, "110 SN:5 X:1 CRC:7 00 SN:3 IP-ID:3"),
        (Format::Uor2Ext1, &one, 1, "110 SN:5 X:1 CRC:7 01 SN:3 IP-ID:3 IP-ID:8"),
        (Format::Uor2Ext2, &two, 1, "110 SN:5 X:1 CRC:7 10 SN:3 IP-ID2:3 IP-ID2:8 IP-ID:8"),
        // Flags in the order in which they are read: X S I ip ip2.
        (Format::Uor2Ext3, &one, 0b00001, "110 SN:5 X:1 CRC:7 11 S:1 Mode:2 I:1 ip:1 ip2:1"),
        (Format::Uor2Ext3, &one, 0b00111, "110 SN:5 X:1 CRC:7 11 S:1 Mode:2 I:1 ip:1 ip2:1 SN:8 IP-ID:16"),
    ] {
        let mut x = fields(ProfileId::Udp, versions);
        let found = described(choices, |c| base(format, c, &mut x));
        assert_eq!(found, expected, "{}", format.name());
    }
}

#[test]
fn extension_3_is_that_of_section_5_11_4() {
    let mut x = fields(ProfileId::Udp, &[IpVersion::V4, IpVersion::V4]);
    // X, S, I, ip, ip2; seven inner flags; seven outer flags and I2; CL, ASeq, ESeq, GSeq left out by IPX = 0.
    let choices = 0b1110_1111_1101_1111_1111;
    assert_eq!(
        described(choices, |c| base(Format::Uor2Ext3, c, &mut x)),
        "110 SN:5 X:1 CRC:7 11 S:1 Mode:2 I:1 ip:1 ip2:1 \
         TOS:1 TTL:1 DF:1 PR:1 IPX:1 NBO:1 RND:1 reserved:1 \
         TOS2:1 TTL2:1 DF2:1 PR2:1 IPX2:1 NBO2:1 RND2:1 I2:1 \
         SN:8 TOS:8 TTL:8 PR:8 IP-ID:16 TOS2:8 TTL2:8 PR2:8 IP-ID2:16"
    );
    // Section 5.8.5.1: the IP extension header(s) field, with an AH sequence number in its long form.
    let mut x = fields(ProfileId::Ip, &[IpVersion::V6]);
    let choices = 0b1_0010_0010_0000_1001;
    assert_eq!(
        described(choices, |c| base(Format::Uor2Ext3, c, &mut x)),
        "110 SN:5 X:1 CRC:7 11 S:1 Mode:2 I:1 ip:1 ip2:1 \
         TOS:1 TTL:1 DF:1 PR:1 IPX:1 NBO:1 RND:1 reserved:1 \
         CL:1 ASeq:1 ESeq:1 GSeq:1 reserved:4 long:1 AH Seq Number:31"
    );
}

#[test]
fn chains_are_those_of_sections_5_7_7_and_3843() {
    let static_v4 = "terminates:1 Version:3 reserved:4 Protocol:8 Source Address:32 \
                     Destination Address:32";
    let dynamic_v4 = "Type of Service:8 Time to Live:8 Identification:16 DF:1 RND:1 NBO:1 SID:1 reserved:4 \
                      ET:2 GP:1 PS:1 CC:4";
    let mut x = fields(ProfileId::Udp, &[IpVersion::V4]);
    // 5.7.7.1, 5.7.7.4, 5.7.7.5, 5.11.1: D set.
    assert_eq!(
        described(1, |c| ir::ir(c, &mut x, true).map(|_| ())),
        format!(
            "1111110 D:1 Profile:8 CRC:8 {static_v4} Source Port:16 Destination Port:16 {dynamic_v4} \
             Checksum:16 SN:16"
        )
    );
    // 3843, 3.5: "a two-octet field containing the SN present at the end of the dynamic chain".
    let mut x = fields(ProfileId::Ip, &[IpVersion::V6]);
    assert_eq!(
        described(0, |c| ir::ir_dyn(c, &mut x)),
        "11111000 Profile:8 CRC:8 Type of Service:8 Time to Live:8 ET:2 GP:1 PS:1 CC:4 SN:16"
    );
    // 5.7.7.3, static part of IPv6.
    let mut ip = IpFields::EMPTY;
    ip.header.version = IpVersion::V6;
    assert_eq!(
        described(0, |c| ir::ip_static(c, &mut ip)),
        "terminates:1 Version:3 Flow Label:20 Next Header:8 Source Address:128 \
         Destination Address:128"
    );
}

/// The chains of profile 0x0002 with the CoAP header of the paper's section IV behind UDP.
#[test]
fn lists_are_those_of_section_5_8_6() {
    for (encoding, choices, expected) in [
        (encoding::GENERIC, 0b001, "ET:2 GP:1 PS:1 CC:4 gen_id:8"),
        (
            encoding::INSERTION,
            0b001,
            "ET:2 GP:1 PS:1 X:1 Index:3 gen_id:8 ref_id:8 long:1 insertion bit mask:7",
        ),
        (encoding::INSERTION, 0b110, "ET:2 GP:1 PS:1 reserved:4 ref_id:8 long:1 insertion bit mask:15"),
        (encoding::REMOVAL, 0b01, "ET:2 GP:1 reserved:1 Count:4 gen_id:8 ref_id:8 long:1 removal bit mask:7"),
        (
            encoding::REMOVE_THEN_INSERT,
            0b0001,
            "ET:2 GP:1 PS:1 X:1 Index:3 gen_id:8 ref_id:8 long:1 removal bit mask:7 long:1 insertion bit mask:7",
        ),
    ] {
        let mut x = CompressedList { encoding, ..CompressedList::default() };
        assert_eq!(described(choices, |c| compressed_list(c, &mut x, ListKind::ExtensionHeader)), expected);
    }
    // Three XI fields of 4 bits: two octets with padding.
    let mut x = CompressedList { count: 3, ..CompressedList::default() };
    assert_eq!(
        described(0, |c| compressed_list(c, &mut x, ListKind::ExtensionHeader)),
        "ET:2 GP:1 PS:1 CC:4 X:1 Index:3 X:1 Index:3 X:1 Index:3 reserved:4"
    );
}

#[test]
fn the_tail_has_the_order_of_the_uncompressed_header() {
    let mut x = fields(ProfileId::Udp, &[IpVersion::V4, IpVersion::V4]);
    x.ips[0].rnd = true;
    x.ips[1].rnd = true;
    let has = Tail { udp_checksum: true, coverage: false, icv: [12, 0] };
    assert_eq!(described(0, |c| tail(c, &mut x, &has)), "IP-ID:16 AH data:0 IP-ID:16 UDP Checksum:16");
    let mut x = fields(ProfileId::Ip, &[IpVersion::V4, IpVersion::V6, IpVersion::V6]);
    // RFC 3843, section 3.6: dynamic chains for additional IP headers, without SN.
    assert_eq!(
        described(0, |c| tail(c, &mut x, &Tail::default())),
        "Type of Service:8 Time to Live:8 ET:2 GP:1 PS:1 CC:4"
    );
}

/// Every format has a whole number of octets, and no pattern of first bits is a prefix of another.
#[test]
fn every_format_fills_octets_and_is_told_by_its_first_bits() {
    let mut out = [0; 64];
    let modes = [Mode::Optimistic, Mode::Reliable];
    for (mode, &format) in
        modes.into_iter().flat_map(|mode| super::formats(ProfileId::Udp, mode).iter().map(move |f| (mode, f)))
    {
        let mut x = fields(ProfileId::Udp, &[IpVersion::V4, IpVersion::V4]);
        let mut writer = Writer::new(&mut out, 0);
        for slot in [SN, IP_ID, IP_ID2] {
            writer.offer(slot, Lsb { value: 0x2AAA, needed: 0 });
        }
        assert_eq!(base(format, &mut writer, &mut x), Ok(()), "{}", format.name());
        let end = writer.finish().unwrap_or(0);
        let taken: Vec<_> = super::formats(ProfileId::Udp, mode)
            .iter()
            .copied()
            .filter(|other| {
                let mut reader = Reader::new(out[0], &out[1..end]);
                base(*other, &mut reader, &mut fields(ProfileId::Udp, &[IpVersion::V4; 2])) == Ok(())
            })
            .collect();
        assert_eq!(taken, [format]);
    }
}

/// R-0-CRC and R-1 by hand, with a large CID in between: "The SN field straddles the CID field." RFC 3095, sections
/// 5.7.1 and 5.11.3.
#[test]
fn formats_of_r_mode_by_hand() {
    let mut out = [0; 4];
    for (format, expected) in [
        (Format::R0, &[0b00_011101][..]),
        (Format::R0Crc, &[0b01_101110, 0b1_0000000]),
        (Format::R1, &[0b10_011101, 0b0_0100101]),
        (Format::R1Ext0, &[0b10_101011, 0b1_0000100, 0b00_101_101]),
    ] {
        let mut writer = Writer::new(&mut out, 0);
        writer.offer(SN, Lsb { value: 0x015D, needed: 6 });
        writer.offer(IP_ID, Lsb { value: 0x25, needed: 0 });
        let mut x = fields(ProfileId::Udp, &[IpVersion::V4]);
        assert_eq!(base(format, &mut writer, &mut x), Ok(()));
        let end = writer.finish().unwrap_or(0);
        assert_eq!(out[..end], *expected, "{}", format.name());
    }
}

/// UOR-2 with extension 0 by hand: SN 0x5D in 8 bits, IP-ID offset 5 in 3. RFC 3095, sections 5.11.3 and 4.5.7.
#[test]
fn sn_bits_of_an_extension_are_the_lower_ones() {
    let mut out = [0; 3];
    let mut writer = Writer::new(&mut out, 0);
    writer.offer(SN, Lsb { value: 0x5D, needed: 8 });
    writer.offer(IP_ID, Lsb { value: 5, needed: 3 });
    let mut x = fields(ProfileId::Udp, &[IpVersion::V4]);
    assert_eq!(base(Format::Uor2Ext0, &mut writer, &mut x), Ok(()));
    assert_eq!(writer.finish(), Ok(3));
    assert_eq!(out, [0b110_01011, 0b1_0000000, 0b00_101_101]);
    let mut reader = Reader::new(out[0], &out[1..]);
    assert_eq!(base(Format::Uor2Ext0, &mut reader, &mut x), Ok(()));
    assert_eq!((reader.collected(SN), reader.collected(IP_ID)), ((0x5D, 8), (5, 3)));
    assert_eq!(reader.enforce(true), Ok(()));
}
