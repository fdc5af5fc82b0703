//! Numbers as text, and predicates of numbers.

#![allow(unsafe_code, reason = "names of functions are those of C, and one takes a text of C")]

use std::ffi::{CStr, c_char, c_uint};

use thinair_rohc::{Format, ProfileId};

/// `rohc_packet_t`, the name that `rohc_get_packet_type` takes, its text, and whether it has a CRC of 7 or 8 bits.
const PACKETS: [(c_uint, &CStr, &CStr, bool); 64] = [
    (0, c"ir", c"IR", true),
    (1, c"irdyn", c"IR-DYN", true),
    (2, c"uo0", c"UO-0", false),
    (3, c"uo1", c"UO-1", false),
    (4, c"uo1id", c"UO-1-ID", false),
    (5, c"uo1ts", c"UO-1-TS", false),
    (6, c"uo1rtp", c"UO-1-RTP", false),
    (7, c"uor2", c"UOR-2", true),
    (8, c"uor2rtp", c"UOR-2-RTP", true),
    (9, c"uor2id", c"UOR-2-ID", true),
    (10, c"uor2ts", c"UOR-2-TS", true),
    (13, c"uncomp-normal", c"Normal", false),
    (14, c"unknown", c"unknown ROHC packet", false),
    (15, c"tcp-co-common", c"co_common", true),
    (16, c"tcp-rnd-1", c"rnd_1", false),
    (17, c"tcp-rnd-2", c"rnd_2", false),
    (18, c"tcp-rnd-3", c"rnd_3", false),
    (19, c"tcp-rnd-4", c"rnd_4", false),
    (20, c"tcp-rnd-5", c"rnd_5", false),
    (21, c"tcp-rnd-6", c"rnd_6", false),
    (22, c"tcp-rnd-7", c"rnd_7", false),
    (23, c"tcp-rnd-8", c"rnd_8", true),
    (24, c"tcp-seq-1", c"seq_1", false),
    (25, c"tcp-seq-2", c"seq_2", false),
    (26, c"tcp-seq-3", c"seq_3", false),
    (27, c"tcp-seq-4", c"seq_4", false),
    (28, c"tcp-seq-5", c"seq_5", false),
    (29, c"tcp-seq-6", c"seq_6", false),
    (30, c"tcp-seq-7", c"seq_7", false),
    (31, c"tcp-seq-8", c"seq_8", true),
    (32, c"ir-cr", c"IR-CR", true),
    (33, c"co-repair", c"co_repair", true),
    (34, c"pt-0-crc3", c"pt_0_crc3", false),
    (35, c"nortp-pt-0-crc7", c"pt_0_crc7", true),
    (36, c"nortp-pt-1-seq-id", c"pt_1_seq_id", false),
    (37, c"nortp-pt-2-seq-id", c"pt_2_seq_id", true),
    (38, c"rtp-pt-0-crc7", c"pt_0_crc7-RTP", true),
    (39, c"rtp-pt-1-rnd", c"pt_1_rnd", false),
    (40, c"rtp-pt-1-seq-id", c"pt_1_seq_id-RTP", false),
    (41, c"rtp-pt-1-seq-ts", c"pt_1_seq_ts", false),
    (42, c"rtp-pt-2-rnd", c"pt_2_rnd", true),
    (43, c"rtp-pt-2-seq-id", c"pt_2_seq_id-RTP", true),
    (44, c"rtp-pt-2-seq-ts", c"pt_2_seq_ts", true),
    (45, c"rtp-pt-2-seq-both", c"pt_2_seq_both", true),
    (46, c"uo1id-ext0", c"UO-1-ID-EXT-0", false),
    (47, c"uo1id-ext1", c"UO-1-ID-EXT-1", false),
    (48, c"uo1id-ext2", c"UO-1-ID-EXT-2", false),
    (49, c"uo1id-ext3", c"UO-1-ID-EXT-3", false),
    (50, c"uor2-ext0", c"UOR-2-EXT-0", true),
    (51, c"uor2-ext1", c"UOR-2-EXT-1", true),
    (52, c"uor2-ext2", c"UOR-2-EXT-2", true),
    (53, c"uor2-ext3", c"UOR-2-EXT-3", true),
    (54, c"uor2rtp-ext0", c"UOR-2-RTP-EXT-0", true),
    (55, c"uor2rtp-ext1", c"UOR-2-RTP-EXT-1", true),
    (56, c"uor2rtp-ext2", c"UOR-2-RTP-EXT-2", true),
    (57, c"uor2rtp-ext3", c"UOR-2-RTP-EXT-3", true),
    (58, c"uor2id-ext0", c"UOR-2-ID-EXT-0", true),
    (59, c"uor2id-ext1", c"UOR-2-ID-EXT-1", true),
    (60, c"uor2id-ext2", c"UOR-2-ID-EXT-2", true),
    (61, c"uor2id-ext3", c"UOR-2-ID-EXT-3", true),
    (62, c"uor2ts-ext0", c"UOR-2-TS-EXT-0", true),
    (63, c"uor2ts-ext1", c"UOR-2-TS-EXT-1", true),
    (64, c"uor2ts-ext2", c"UOR-2-TS-EXT-2", true),
    (65, c"uor2ts-ext3", c"UOR-2-TS-EXT-3", true),
];

/// `ROHC_PACKET_UNKNOWN`.
const UNKNOWN: c_uint = 14;

fn packet(number: c_uint) -> Option<&'static (c_uint, &'static CStr, &'static CStr, bool)> {
    PACKETS.iter().find(|(known, ..)| *known == number)
}

/// The number of a format: those of RTP have others where both RTP and other profiles have a format of that name.
pub(crate) fn packet_type(profile: ProfileId, format: Format) -> c_uint {
    let name = format.name();
    let is_rtp = matches!(profile.number(), 0x0001 | 0x0007 | 0x0101);
    let is = |text: &CStr| {
        let text = text.to_str().unwrap_or_default();
        match is_rtp {
            true => {
                text.replace("UOR-2-RTP", "UOR-2").replace("UO-1-RTP", "UO-1").replace("-RTP", "") == name
            }
            false => text == name,
        }
    };
    // Those of RTP stand behind the others.
    PACKETS.iter().rev().find(|(_, _, text, _)| is(text)).map_or(UNKNOWN, |(number, ..)| *number)
}

/// `rohc_version`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_version() -> *mut c_char {
    const VERSION: &[u8] = concat!("2.3.1 (thinair ", env!("CARGO_PKG_VERSION"), ")\0").as_bytes();
    // Nobody writes there, though the type would allow it.
    VERSION.as_ptr().cast::<c_char>().cast_mut()
}

/// `rohc_strerror`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_strerror(status: c_uint) -> *const c_char {
    let text = match status {
        0 => c"success",
        1 => c"success, and the packet was cut into segments",
        2 => c"the packet is malformed",
        3 => c"there is no context for the packet",
        4 => c"the CRC of the packet does not match",
        5 => c"the output buffer is too small",
        6 => c"another failure",
        _ => c"no description",
    };
    text.as_ptr()
}

/// `rohc_get_mode_descr`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_get_mode_descr(mode: c_uint) -> *const c_char {
    let text = match mode {
        1 => c"U-mode",
        2 => c"O-mode",
        3 => c"R-mode",
        _ => c"no description",
    };
    text.as_ptr()
}

/// `rohc_get_profile_descr`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_get_profile_descr(profile: c_uint) -> *const c_char {
    let text = match profile {
        0x0000 => c"Uncompressed (0x0000)",
        0x0001 => c"RTP/UDP/IP (0x0001)",
        0x0002 => c"UDP/IP (0x0002)",
        0x0003 => c"ESP/IP (0x0003)",
        0x0004 => c"IP (0x0004)",
        0x0005 => c"RTP/UDP/IP LLA (0x0005)",
        0x0006 => c"TCP/IP (0x0006)",
        0x0007 => c"RTP/UDP-Lite/IP (0x0007)",
        0x0008 => c"UDP-Lite/IP (0x0008)",
        0x0101 => c"RTP/UDP/IP version 2 (0x0101)",
        0x0102 => c"UDP/IP version 2 (0x0102)",
        0x0103 => c"ESP/IP version 2 (0x0103)",
        0x0104 => c"IP version 2 (0x0104)",
        0x0107 => c"RTP/UDP-Lite/IP version 2 (0x0107)",
        0x0108 => c"UDP-Lite/IP version 2 (0x0108)",
        _ => c"no description",
    };
    text.as_ptr()
}

/// `rohc_get_packet_descr`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_get_packet_descr(packet_type: c_uint) -> *const c_char {
    packet(packet_type).map_or(c"unknown ROHC packet", |(_, _, text, _)| text).as_ptr()
}

/// `rohc_get_packet_type`.
///
/// # Safety
///
/// `text` is null or a text that ends with a null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_get_packet_type(text: *const c_char) -> c_uint {
    if text.is_null() {
        return UNKNOWN;
    }
    // SAFETY: not null, and as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    PACKETS.iter().find(|(_, name, ..)| *name == text).map_or(UNKNOWN, |(number, ..)| *number)
}

/// `rohc_get_ext_descr`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_get_ext_descr(extension: c_uint) -> *const c_char {
    let text = match extension {
        0 => c"EXT-0",
        1 => c"EXT-1",
        2 => c"EXT-2",
        3 => c"EXT-3",
        4 => c"none",
        _ => c"unknown ROHC extension",
    };
    text.as_ptr()
}

/// `rohc_comp_get_state_descr`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_comp_get_state_descr(state: c_uint) -> *const c_char {
    let text = match state {
        1 => c"IR",
        2 => c"FO",
        3 => c"SO",
        4 => c"CR",
        _ => c"no description",
    };
    text.as_ptr()
}

/// `rohc_decomp_get_state_descr`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_decomp_get_state_descr(state: c_uint) -> *const c_char {
    let text = match state {
        1 => c"No Context",
        2 => c"Static Context",
        3 => c"Full Context",
        _ => c"no description",
    };
    text.as_ptr()
}

/// `rohc_packet_is_ir`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_packet_is_ir(packet_type: c_uint) -> bool {
    matches!(packet_type, 0 | 1 | 32)
}

/// `rohc_packet_carry_static_info`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_packet_carry_static_info(packet_type: c_uint) -> bool {
    matches!(packet_type, 0 | 32)
}

/// `rohc_packet_carry_crc_7_or_8`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_packet_carry_crc_7_or_8(packet_type: c_uint) -> bool {
    packet(packet_type).is_some_and(|(.., has)| *has)
}

/// `rohc_profile_is_rohcv1`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_profile_is_rohcv1(profile: c_uint) -> bool {
    profile & 0xFF00 == 0
}

/// `rohc_profile_is_rohcv2`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_profile_is_rohcv2(profile: c_uint) -> bool {
    profile & 0xFF00 == 0x0100
}

/// `rohc_profile_get_other_version`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_profile_get_other_version(profile: c_uint) -> c_uint {
    const MAX: c_uint = 0x0109;
    match profile & 0xFF00 {
        0 => profile + 0x0100,
        0x0100 => profile - 0x0100,
        _ => MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_the_numbers_of_their_profiles() {
        assert_eq!(packet_type(ProfileId::Udp, Format::Uor2), 7);
        assert_eq!(packet_type(ProfileId::Rtp, Format::Uor2), 8);
        assert_eq!(packet_type(ProfileId::Udp, Format::Uor2Ext3), 53);
        assert_eq!(packet_type(ProfileId::Rtp, Format::Uor2Ext3), 57);
        assert_eq!(packet_type(ProfileId::Rtp, Format::Uor2IdExt0), 58);
        assert_eq!(packet_type(ProfileId::Rtp, Format::Uo1), 6);
        assert_eq!(packet_type(ProfileId::Udp, Format::Uo0), 2);
        assert_eq!(packet_type(ProfileId::Tcp, Format::Seq8), 31);
        assert_eq!(packet_type(ProfileId::Rtp, Format::R1), UNKNOWN);
    }
}
