//! Tests of the formats of RTP, ESP and UDP-Lite against the figures of RFC 3095, sections 5.7 and 5.12, and of RFC
//! 4019: tables and octets typed by hand.

#![allow(clippy::unusual_byte_groupings, reason = "groups are the fields of the figures")]

use std::format;
use std::vec::Vec;

use thinair_wire::coder::{Lsb, Reader, Refusal, Writer};

use super::cce::Cce;
use super::formats_test::{described, fields};
use super::tail::{Tail, tail};
use super::type2::FormatExtension;
use super::{IP_ID, IpVersion, RTP_FORMATS, RTP_FORMATS_R, Rfc3095Fields, SN, TS, base, ir, type1};
use crate::id::{Format, ProfileId};

/// Fields of a packet with or without a T bit in its formats.
fn rtp(has_t_bit: bool) -> Rfc3095Fields<'static> {
    fields(ProfileId::Rtp, &[if has_t_bit { IpVersion::V4 } else { IpVersion::V6 }])
}

#[test]
fn base_formats_of_rtp_are_those_of_section_5_7() {
    for (format, has_t_bit, choices, expected) in [
        (Format::Uo0, true, 0, "0 SN:4 CRC:3"),
        (Format::Uo1, false, 0, "10 TS:6 M:1 SN:4 CRC:3"),
        (Format::Uo1Id, true, 0, "10 0 IP-ID:5 X:1 SN:4 CRC:3"),
        (Format::Uo1Ts, true, 0, "10 1 TS:5 M:1 SN:4 CRC:3"),
        (Format::Uor2, false, 0, "110 TS:6 M:1 SN:6 X:1 CRC:7"),
        (Format::Uor2Id, true, 0, "110 IP-ID:5 0 M:1 SN:6 X:1 CRC:7"),
        (Format::Uor2Ts, true, 0, "110 TS:5 1 M:1 SN:6 X:1 CRC:7"),
        // Section 5.7.5: +T and -T are both TS without a T bit.
        (Format::Uor2Ext0, false, 0b10, "110 TS:6 M:1 SN:6 X:1 CRC:7 00 SN:3 TS:3"),
        (Format::Uor2Ext1, false, 0b10, "110 TS:6 M:1 SN:6 X:1 CRC:7 01 SN:3 TS:3 TS:8"),
        (Format::Uor2Ext2, false, 0b10, "110 TS:6 M:1 SN:6 X:1 CRC:7 10 SN:3 TS:3 TS:8 TS:8"),
        // T = 0: +T is IP-ID, -T is TS.
        (Format::Uor2IdExt0, true, 0b10, "110 IP-ID:5 0 M:1 SN:6 X:1 CRC:7 00 SN:3 IP-ID:3"),
        (Format::Uor2IdExt1, true, 0b10, "110 IP-ID:5 0 M:1 SN:6 X:1 CRC:7 01 SN:3 IP-ID:3 TS:8"),
        (Format::Uor2IdExt2, true, 0b10, "110 IP-ID:5 0 M:1 SN:6 X:1 CRC:7 10 SN:3 IP-ID:3 IP-ID:8 TS:8"),
        // T = 1: +T is TS, -T is IP-ID.
        (Format::Uor2TsExt0, true, 0b10, "110 TS:5 1 M:1 SN:6 X:1 CRC:7 00 SN:3 TS:3"),
        (Format::Uor2TsExt1, true, 0b10, "110 TS:5 1 M:1 SN:6 X:1 CRC:7 01 SN:3 TS:3 IP-ID:8"),
        (Format::Uor2TsExt2, true, 0b10, "110 TS:5 1 M:1 SN:6 X:1 CRC:7 10 SN:3 TS:3 TS:8 IP-ID:8"),
        (Format::Uo1IdExt0, true, 0b1, "10 0 IP-ID:5 X:1 SN:4 CRC:3 00 SN:3 IP-ID:3"),
        (Format::Uo1IdExt1, true, 0b1, "10 0 IP-ID:5 X:1 SN:4 CRC:3 01 SN:3 IP-ID:3 TS:8"),
        (Format::Uo1IdExt2, true, 0b1, "10 0 IP-ID:5 X:1 SN:4 CRC:3 10 SN:3 IP-ID:3 IP-ID:8 TS:8"),
        (Format::Uo1IdExt3, true, 0b1, "10 0 IP-ID:5 X:1 SN:4 CRC:3 11 S:1 R-TS:1 Tsc:1 I:1 ip:1 rtp:1"),
        // Formats of R-mode: RFC 3095, section 5.7.2.
        (Format::R0, true, 0, "00 SN:6"),
        (Format::R0Crc, true, 0, "01 SN:6 SN:1 CRC:7"),
        (Format::R1, false, 0, "10 SN:6 M:1 X:1 TS:6"),
        (Format::R1Id, true, 0, "10 SN:6 M:1 X:1 0 IP-ID:5"),
        (Format::R1Ts, true, 0, "10 SN:6 M:1 X:1 1 TS:5"),
        (Format::R1Ext0, false, 0b10, "10 SN:6 M:1 X:1 TS:6 00 SN:3 TS:3"),
        (Format::R1Ext1, false, 0b10, "10 SN:6 M:1 X:1 TS:6 01 SN:3 TS:3 TS:8"),
        (Format::R1Ext2, false, 0b10, "10 SN:6 M:1 X:1 TS:6 10 SN:3 TS:3 TS:8 TS:8"),
        (Format::R1Ext3, false, 0b10, "10 SN:6 M:1 X:1 TS:6 11 S:1 R-TS:1 Tsc:1 I:1 ip:1 rtp:1"),
        (Format::R1IdExt0, true, 0b10, "10 SN:6 M:1 X:1 0 IP-ID:5 00 SN:3 IP-ID:3"),
        (Format::R1IdExt1, true, 0b10, "10 SN:6 M:1 X:1 0 IP-ID:5 01 SN:3 IP-ID:3 TS:8"),
        (Format::R1IdExt2, true, 0b10, "10 SN:6 M:1 X:1 0 IP-ID:5 10 SN:3 IP-ID:3 IP-ID:8 TS:8"),
        (Format::R1IdExt3, true, 0b10, "10 SN:6 M:1 X:1 0 IP-ID:5 11 S:1 R-TS:1 Tsc:1 I:1 ip:1 rtp:1"),
        (Format::R1TsExt0, true, 0b10, "10 SN:6 M:1 X:1 1 TS:5 00 SN:3 TS:3"),
        (Format::R1TsExt1, true, 0b10, "10 SN:6 M:1 X:1 1 TS:5 01 SN:3 TS:3 IP-ID:8"),
        (Format::R1TsExt2, true, 0b10, "10 SN:6 M:1 X:1 1 TS:5 10 SN:3 TS:3 TS:8 IP-ID:8"),
        (Format::R1TsExt3, true, 0b10, "10 SN:6 M:1 X:1 1 TS:5 11 S:1 R-TS:1 Tsc:1 I:1 ip:1 rtp:1"),
    ] {
        let mut x = rtp(has_t_bit);
        assert_eq!(described(choices, |c| base(format, c, &mut x)), expected, "{}", format.name());
        // The other kind of context does not have the format (RFC 3095, section 5.7).
        if !matches!(format, Format::Uo0 | Format::R0 | Format::R0Crc) {
            let mut out = [0; 16];
            let refused = base(format, &mut Writer::new(&mut out, 0), &mut rtp(!has_t_bit));
            assert_eq!(refused, Err(Refusal::NotThis), "{}", format.name());
        }
    }
}

#[test]
fn extension_3_of_rtp_is_that_of_section_5_7_5() {
    // M, X; S, R-TS, Tsc, I, ip, rtp; TOS, TTL, DF, PR, IPX, NBO, RND, ip2; TOS2, TTL2, DF2, PR2, IPX2, NBO2, RND2, I2.
    let flags = "11 S:1 R-TS:1 Tsc:1 I:1 ip:1 rtp:1 \
                 TOS:1 TTL:1 DF:1 PR:1 IPX:1 NBO:1 RND:1 ip2:1 \
                 TOS2:1 TTL2:1 DF2:1 PR2:1 IPX2:1 NBO2:1 RND2:1 I2:1 ";
    // With all flags, RND and RND2 too, there is no T bit. TS of one octet; R-PT, M, R-X, CSRC, TSS, TIS; R-P; an
    // empty list; TS_STRIDE of one octet, TIME_STRIDE of two.
    let inner = 0b1110_1111_u32;
    let choices = 0b11 | 0b111_111 << 2 | inner << 8 | 0b1110_1111 << 16;
    let mut x = fields(ProfileId::Rtp, &[IpVersion::V4, IpVersion::V4]);
    let found = described(choices, |c| base(Format::Uor2Ext3, c, &mut x));
    let expected = "110 TS:6 M:1 SN:6 X:1 CRC:7 ";
    assert!(
        found.starts_with(&format!(
            "{expected}{flags}SN:8 sdvl:1 TS:7 TOS:8 TTL:8 PR:8 IP-ID:16 TOS2:8 TTL2:8"
        )),
        "{found}"
    );
    assert!(found.contains("PR2:8 IP-ID2:16 Mode:2 R-PT:1 M:1 R-X:1 CSRC:1 TSS:1 TIS:1"), "{found}");
}

#[test]
fn rtp_flags_and_fields_are_those_of_section_5_7_5() {
    // M, X; rtp alone; R-PT, M, R-X, CSRC, TSS, TIS; R-P; GP, PS; TS_STRIDE of one octet, TIME_STRIDE of two.
    let choices = 0b10 | 0b100_000 << 2 | 0b111_111 << 8 | 0b01 << 18;
    let mut x = rtp(false);
    assert_eq!(
        described(choices, |c| base(Format::Uor2Ext3, c, &mut x)),
        "110 TS:6 M:1 SN:6 X:1 CRC:7 11 S:1 R-TS:1 Tsc:1 I:1 ip:1 rtp:1 \
         Mode:2 R-PT:1 M:1 R-X:1 CSRC:1 TSS:1 TIS:1 R-P:1 RTP PT:7 ET:2 GP:1 PS:1 CC:4 sdvl:1 TS_STRIDE:7 \
         sdvl:1 sdvl:1 TIME_STRIDE:14"
    );
}

#[test]
fn chains_of_rtp_esp_and_udp_lite_are_those_of_section_5_7_7_and_rfc_4019() {
    let v6 = "Type of Service:8 Time to Live:8 ET:2 GP:1 PS:1 CC:4";
    let head = "11111000 Profile:8 CRC:8";
    let rtp_dynamic =
        "V:2 P:1 RX:1 CC:4 M:1 PT:7 RTP Sequence Number:16 RTP Timestamp:32 ET:2 GP:1 PS:1 CC:4";
    let chain = |profile, choices| {
        let mut x = fields(profile, &[IpVersion::V6]);
        described(choices, |c| ir::ir_dyn(c, &mut x))
    };
    // GP, PS; P, RX, M.
    assert_eq!(chain(ProfileId::Rtp, 0), format!("{head} {v6} Checksum:16 {rtp_dynamic}"));
    // RX: X, TIS, TSS; a stride of one octet, a time stride of one.
    assert_eq!(
        chain(ProfileId::Rtp, 0b11_1000_1000),
        format!(
            "{head} {v6} Checksum:16 {rtp_dynamic} reserved:3 X:1 Mode:2 TIS:1 TSS:1 sdvl:1 TS_Stride:7 \
             sdvl:1 Time_Stride:7"
        )
    );
    assert_eq!(chain(ProfileId::Esp, 0), format!("{head} {v6} Sequence Number:32"));
    let udp_lite = format!("{head} {v6} Checksum Coverage:16 Checksum:16");
    assert_eq!(chain(ProfileId::UdpLite, 0), format!("{udp_lite} SN:16"));
    assert_eq!(chain(ProfileId::RtpUdpLite, 0), format!("{udp_lite} {rtp_dynamic}"));
    let static_v6 = "1111110 D:1 Profile:8 CRC:8 terminates:1 Version:3 Flow Label:20 Next Header:8 \
                     Source Address:128 Destination Address:128";
    for (profile, expected) in [
        (ProfileId::Rtp, "Source Port:16 Destination Port:16 SSRC:32"),
        (ProfileId::RtpUdpLite, "Source Port:16 Destination Port:16 SSRC:32"),
        (ProfileId::UdpLite, "Source Port:16 Destination Port:16"),
        (ProfileId::Esp, "SPI:32"),
    ] {
        let mut x = fields(profile, &[IpVersion::V6]);
        let found = described(0, |c| ir::ir(c, &mut x, false).map(|_| ()));
        assert_eq!(found, format!("{static_v6} {expected}"), "{}", profile.name());
    }
}

#[test]
fn the_tail_of_udp_lite_is_that_of_section_5_3_1() {
    let has = |coverage| Tail { coverage, ..Tail::default() };
    for profile in [ProfileId::UdpLite, ProfileId::RtpUdpLite] {
        let mut x = fields(profile, &[IpVersion::V6]);
        assert_eq!(described(0, |c| tail(c, &mut x, &has(false))), "UDP-Lite Checksum:16");
        let full = "UDP-Lite Checksum Coverage:16 UDP-Lite Checksum:16";
        assert_eq!(described(0, |c| tail(c, &mut x, &has(true))), full);
    }
    // Dynamic chains of further IP headers come before them.
    let mut x = fields(ProfileId::UdpLite, &[IpVersion::V6; 3]);
    assert_eq!(
        described(0, |c| tail(c, &mut x, &has(true))),
        "Type of Service:8 Time to Live:8 ET:2 GP:1 PS:1 CC:4 \
         UDP-Lite Checksum Coverage:16 UDP-Lite Checksum:16"
    );
    let mut x = fields(ProfileId::Rtp, &[IpVersion::V6]);
    let has = Tail { udp_checksum: true, ..Tail::default() };
    assert_eq!(described(0, |c| tail(c, &mut x, &has)), "UDP Checksum:16");
    let mut x = fields(ProfileId::Esp, &[IpVersion::V6]);
    assert_eq!(described(0, |c| tail(c, &mut x, &has)), "");
}

/// Every format is identified by its bits: no other one can read its octets.
#[test]
fn no_two_formats_of_rtp_read_the_same_octets() {
    let modes = [&RTP_FORMATS[..], &RTP_FORMATS_R];
    for (has_t_bit, formats) in [false, true].into_iter().flat_map(|t| modes.map(|formats| (t, formats))) {
        for format in formats.iter().copied() {
            let mut out = [0; 64];
            let mut writer = Writer::new(&mut out, 0);
            for slot in [SN, IP_ID, TS] {
                writer.offer(slot, Lsb { value: 0x2AAA, needed: 0 });
            }
            if base(format, &mut writer, &mut rtp(has_t_bit)).is_err() {
                continue;
            }
            let end = writer.finish().unwrap_or(0);
            let readers = formats.iter().copied().filter(|other| {
                let mut reader = Reader::new(out[0], &out[1..end]);
                base(*other, &mut reader, &mut rtp(has_t_bit)) == Ok(())
            });
            assert_eq!(readers.collect::<Vec<_>>(), [format], "T bit: {has_t_bit}");
        }
    }
}

/// Writes a format with SN 0x155, IP-ID offset 0x0ACE and TS 0x1F35, and a CRC of ones.
fn written(format: Format, x: &mut Rfc3095Fields<'_>, has: &Tail) -> Vec<u8> {
    let mut out = [0; 64];
    let mut writer = Writer::new(&mut out, 0);
    for (slot, value) in [(SN, 0x155), (IP_ID, 0x0ACE), (TS, 0x1F35)] {
        writer.offer(slot, Lsb { value, needed: 0 });
    }
    assert_eq!(base(format, &mut writer, x), Ok(()), "{}", format.name());
    writer.fill_crc(if writer.crc_width() == 3 { 0b111 } else { 0b111_1111 });
    assert_eq!(tail(&mut writer, x, has), Ok(()));
    let end = writer.finish().unwrap_or(0);
    out[..end].to_vec()
}

/// Octets by hand. SN 0x155 is 1_0101_0101, the IP-ID offset 1010_1100_1110, TS 1_1111_0011_0101; M is set if the
/// format has it.
#[test]
fn octets_of_rtp_formats_are_those_of_the_figures() {
    let has = Tail { udp_checksum: true, ..Tail::default() };
    for (format, has_t_bit, m, octets) in [
        (Format::Uo0, true, false, &[0b0_0101_111][..]),
        (Format::Uo1, false, true, &[0b10_110101, 0b1_0101_111]),
        (Format::Uo1Id, true, false, &[0b10_0_01110, 0b0_0101_111]),
        (Format::Uo1Ts, true, true, &[0b10_1_10101, 0b1_0101_111]),
        (Format::Uor2, false, true, &[0b110_11010, 0b1_1_010101, 0b0_1111111]),
        (Format::Uor2Id, true, true, &[0b110_01110, 0b0_1_010101, 0b0_1111111]),
        (Format::Uor2Ts, true, true, &[0b110_10101, 0b1_1_010101, 0b0_1111111]),
        // The base header has the bits above those of the extension.
        (Format::Uo1IdExt1, true, false, &[0b10_0_11001, 0b1_1010_111, 0b01_101_110, 0x35]),
        (Format::Uor2Ext2, false, true, &[0b110_00000, 0b0_1_101010, 0b1_1111111, 0b10_101_000, 0x1F, 0x35]),
        (Format::Uor2TsExt2, true, true, &[0b110_00011, 0b1_1_101010, 0b1_1111111, 0b10_101_111, 0x35, 0xCE]),
        (Format::Uor2IdExt2, true, true, &[0b110_00001, 0b0_1_101010, 0b1_1111111, 0b10_101_010, 0xCE, 0x35]),
        (Format::R0, true, false, &[0b00_010101]),
        (Format::R0Crc, false, false, &[0b01_101010, 0b1_1111111]),
        (Format::R1, false, true, &[0b10_010101, 0b1_0_110101]),
        (Format::R1Id, true, true, &[0b10_010101, 0b1_0_0_01110]),
        (Format::R1Ts, true, true, &[0b10_010101, 0b1_0_1_10101]),
        (Format::R1Ext1, false, true, &[0b10_101010, 0b1_1_000011, 0b01_101_111, 0x35]),
        (Format::R1IdExt1, true, false, &[0b10_101010, 0b0_1_0_11001, 0b01_101_110, 0x35]),
        (Format::R1IdExt2, true, true, &[0b10_101010, 0b1_1_0_00001, 0b10_101_010, 0xCE, 0x35]),
        (Format::R1TsExt2, true, true, &[0b10_101010, 0b1_1_1_00011, 0b10_101_111, 0x35, 0xCE]),
    ] {
        let mut x = rtp(has_t_bit);
        x.rtp.m = m;
        x.udp.checksum = 0xC0DE;
        let expected = [octets, &[0xC0, 0xDE]].concat();
        assert_eq!(written(format, &mut x, &has), expected, "{}", format.name());
    }
}

/// Extension 3 by hand: unscaled TS 0x1F35 in 5 + 14 bits, payload type 96 with padding, TS_STRIDE 160.
#[test]
fn octets_of_extension_3_are_those_of_the_figure() {
    let mut x = rtp(true);
    x.mode = 2;
    x.rtp.p = true;
    x.rtp.pt = 96;
    x.rtp.stride = 160;
    x.rtp_extra.scaled = false;
    x.rtp_extra.ts = 2;
    x.rtp_extra.flags = true;
    x.rtp_extra.pt = true;
    x.rtp_extra.stride = true;
    assert_eq!(
        written(Format::Uor2TsExt3, &mut x, &Tail::default()),
        [
            0b110_00000,
            0b1_0_010101,
            0b1_1111111,
            0b11_0_1_0_0_0_1,
            // sdvl of two octets.
            0b10_011111,
            0b0011_0101,
            // Mode, R-PT, M, R-X, CSRC, TSS, TIS.
            0b10_1_0_0_0_1_0,
            0b1_1100000,
            0b10_000000,
            160,
        ]
    );
}

/// RFC 4019, appendix B: the outer packet type, the inner base header, its extension, coverage and checksum. Every kind
/// around every packet type that the profiles have in U- and O-mode.
#[test]
fn octets_of_cce_packets_are_those_of_appendix_b() {
    let has = Tail { coverage: true, ..Tail::default() };
    let outer = [(Cce::Once, 0b1111_1001), (Cce::On, 0b1111_1010), (Cce::Off, 0b1111_1011)];
    // 0x0008: the formats of section 5.11.3, over IPv4 with an IP-ID that counts.
    for (format, inner) in [
        (Format::Uo0, &[0b0_0101_111][..]),
        (Format::Uo1, &[0b10_001110, 0b10101_111]),
        (Format::Uor2, &[0b110_10101, 0b0_1111111]),
        (Format::Uor2Ext0, &[0b110_01010, 0b1_1111111, 0b00_101_110]),
        (Format::Uor2Ext1, &[0b110_01010, 0b1_1111111, 0b01_101_010, 0xCE]),
        (Format::Uor2Ext3, &[0b110_10101, 0b1_1111111, 0b11_0_01_0_0_0]),
    ] {
        for (kind, first) in outer {
            let mut x = fields(ProfileId::UdpLite, &[IpVersion::V4]);
            x.mode = 1;
            x.cce = Some(kind);
            x.udp.coverage = 0x0014;
            x.udp.checksum = 0xC0DE;
            let expected = [&[first][..], inner, &[0x00, 0x14, 0xC0, 0xDE]].concat();
            assert_eq!(written(format, &mut x, &has), expected, "{kind:?} {}", format.name());
            assert_eq!(Cce::of(first), Some(kind));
        }
    }
    // 0x0007: formats of RTP.
    for (format, has_t_bit, inner) in [
        (Format::Uo0, true, &[0b0_0101_111][..]),
        (Format::Uo1, false, &[0b10_110101, 0b0_0101_111]),
        (Format::Uo1Id, true, &[0b10_0_01110, 0b0_0101_111]),
        (Format::Uo1Ts, true, &[0b10_1_10101, 0b0_0101_111]),
        (Format::Uor2, false, &[0b110_11010, 0b1_0_010101, 0b0_1111111]),
        (Format::Uor2Id, true, &[0b110_01110, 0b0_0_010101, 0b0_1111111]),
        (Format::Uor2Ts, true, &[0b110_10101, 0b1_0_010101, 0b0_1111111]),
    ] {
        for (kind, first) in outer {
            let mut x =
                fields(ProfileId::RtpUdpLite, &[if has_t_bit { IpVersion::V4 } else { IpVersion::V6 }]);
            x.cce = Some(kind);
            x.udp.coverage = 0x0014;
            x.udp.checksum = 0xC0DE;
            let expected = [&[first][..], inner, &[0x00, 0x14, 0xC0, 0xDE]].concat();
            assert_eq!(written(format, &mut x, &has), expected, "{kind:?} {}", format.name());
        }
    }
    // In R-mode, `CCE()` around formats that update nothing.
    for (profile, version, format, inner) in [
        (ProfileId::UdpLite, IpVersion::V4, Format::R0, &[0b00_010101][..]),
        (ProfileId::UdpLite, IpVersion::V4, Format::R1, &[0b10_010101, 0b0_1001110]),
        (ProfileId::RtpUdpLite, IpVersion::V6, Format::R1, &[0b10_010101, 0b0_0_110101]),
        (ProfileId::RtpUdpLite, IpVersion::V4, Format::R1Ts, &[0b10_010101, 0b0_0_1_10101]),
    ] {
        let mut x = fields(profile, &[version]);
        x.cce = Some(Cce::Once);
        x.udp.coverage = 0x0014;
        x.udp.checksum = 0xC0DE;
        let expected = [&[0b1111_1001][..], inner, &[0x00, 0x14, 0xC0, 0xDE]].concat();
        assert_eq!(written(format, &mut x, &has), expected, "{}", format.name());
    }
    // F, K = 00 is IR-DYN, and the next value is IR.
    assert_eq!([Cce::of(0b1111_1000), Cce::of(0b1111_1100)], [None; 2]);
}

/// RFC 4815, section 8.4: two M fields that differ.
#[test]
fn a_packet_with_two_markers_that_differ_is_refused() {
    let mut x = rtp(true);
    let octets = [0b110_00000, 0b1_1_000000, 0b1_0000000, 0b11_0_0_1_0_0_1, 0b01_0_0_0_0_0_0];
    let mut reader = Reader::new(octets[0], &octets[1..]);
    assert!(base(Format::Uor2TsExt3, &mut reader, &mut x).is_err());
    let mut same = octets;
    same[4] |= 0b1_0000;
    let mut reader = Reader::new(same[0], &same[1..]);
    assert_eq!(base(Format::Uor2TsExt3, &mut reader, &mut rtp(true)), Ok(()));
    // UO-1-ID has no M of its own.
    let octets = [0b10_0_00000, 0b1_0000_000, 0b11_0_0_1_0_0_1, 0b01_0_1_0_0_0_0];
    let mut x = rtp(true);
    assert_eq!(
        type1::uo_1_id(&mut Reader::new(octets[0], &octets[1..]), &mut x, FormatExtension::Three),
        Ok(())
    );
    assert!(x.rtp.m);
}
