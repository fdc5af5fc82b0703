//! The formats against the RFC: RFC 5225 has a formal notation, of which every COMPRESSED block is in [`BLOCKS`], with names, widths
//! and offsets. Where `THINAIR_VECTORS` has the RFC, the table is held against its text. Errata 1421 and 3185 change no octet of it, and
//! erratum 2703 no block; erratum 3248 is where it is applied: [`is_of_erratum`].

use std::collections::BTreeMap;
use std::println;
use std::string::String;
use std::vec::Vec;

use thinair_wire::coder::{Describer, FormatField, Step, Writer};

use super::chains::{
    between_static, dynamic, ip_dynamic, ip_id_enc_dyn, ip_id_enc_irreg, ip_irregular, ip_static, list_csrc,
    transport_irregular, upper_static, with_number,
};
use super::encodings::{
    Counter, ReorderRatio, SnWidths, fl_enc, lsb_7_or_31, sdvl_lsb, sdvl_or, sdvl_sn_lsb,
};
use super::formats::{Fields, base};
use super::headers::{GRE_SEQUENCE, Kind, MINE_SOURCE};
use super::state::{Behavior, State, coverage};
use crate::field::encodings::static_or_irreg;
use crate::id::{Format, ProfileId};
use crate::profile::notation::{agree, blocks_of};

/// Method and name of each block; its fields as [`blocks_of`] has them. Section 6.8.2.4.
#[rustfmt::skip]
const BLOCKS: [(&str, &str); 175] = [
    ("static_or_irreg.irreg_enc", "field:width"),
    ("static_or_irreg.static_enc", "field:0"),
    ("optional_32.present", "item:32"),
    ("optional_32.not_present", "item:0"),
    ("sdvl_or_static.present_7bit", "0 field:7"),
    ("sdvl_or_static.present_14bit", "10 field:14"),
    ("sdvl_or_static.present_21bit", "110 field:21"),
    ("sdvl_or_static.present_28bit", "1110 field:28"),
    ("sdvl_or_static.present_32bit", "11111111 field:32"),
    ("sdvl_or_static.not_present", "field:?"),
    ("sdvl_or_default.present_7bit", "0 field:7"),
    ("sdvl_or_default.present_14bit", "10 field:14"),
    ("sdvl_or_default.present_21bit", "110 field:21"),
    ("sdvl_or_default.present_28bit", "1110 field:28"),
    ("sdvl_or_default.present_32bit", "11111111 field:32"),
    ("sdvl_or_default.not_present", "field:?"),
    ("lsb_7_or_31.lsb_7", "0 item:7~((2^7)/4)-1"),
    ("lsb_7_or_31.lsb_31", "1 item:31~((2^31)/4)-1"),
    ("crc3.", "crc_value:3"),
    ("crc7.", "crc_value:7"),
    ("field_scaling.no_scaling", ""),
    ("field_scaling.scaling_used", ""),
    ("ip_dest_opt.dest_opt_static", "next_header:8 length:8"),
    ("ip_dest_opt.dest_opt_dynamic", "value:length.UVALUE*64+48"),
    ("ip_dest_opt.dest_opt_irregular", ""),
    ("ip_hop_opt.hop_opt_static", "next_header:8 length:8"),
    ("ip_hop_opt.hop_opt_dynamic", "value:length.UVALUE*64+48"),
    ("ip_hop_opt.hop_opt_irregular", ""),
    ("ip_rout_opt.rout_opt_static", "next_header:8 length:8 value:length.UVALUE*64+48"),
    ("ip_rout_opt.rout_opt_dynamic", ""),
    ("ip_rout_opt.rout_opt_irregular", ""),
    ("optional_lsb_7_or_31.present", "item:8,32"),
    ("optional_lsb_7_or_31.not_present", "item:0"),
    ("optional_checksum.cs_present", "value:16 reserved1:0"),
    ("optional_checksum.not_present", "value:0 reserved1:0"),
    ("gre_proto.ether_v4", "0 protocol:0"),
    ("gre_proto.ether_v6", "1 protocol:0"),
    ("gre.gre_static", "protocol:1 c_flag:1 k_flag:1 s_flag:1 padding:4 key:0,32"),
    ("gre.gre_dynamic", "checksum_and_res:0,16 sequence_number:0,32"),
    ("gre.gre_irregular", "checksum_and_res:0,16 sequence_number:0,8,32"),
    ("mine.mine_static", "next_header:8 s_bit:1 res_bits:7 orig_dest:32 orig_src:0,32"),
    ("mine.mine_dynamic", ""),
    ("mine.mine_irregular", ""),
    ("ah.ah_static", "next_header:8 length:8 spi:32"),
    ("ah.ah_dynamic", "sequence_number:32 icv:length.UVALUE*32-32"),
    ("ah.ah_irregular", "sequence_number:8,32 icv:length.UVALUE*32-32"),
    ("fl_enc.fl_zero", "0 flow_label:0 0000"),
    ("fl_enc.fl_non_zero", "1 flow_label:20"),
    ("ipv6.ipv6_static", "1 innermost_ip:1 0 flow_label:5,21 next_header:8 src_addr:128 dst_addr:128"),
    ("ipv6.ipv6_endpoint_dynamic", "tos_tc:8 ttl_hopl:8 reserved:6 reorder_ratio:2 msn:16"),
    ("ipv6.ipv6_regular_dynamic", "tos_tc:8 ttl_hopl:8"),
    ("ipv6.ipv6_outer_irregular", "tos_tc:0,8 ttl_hopl:0,8"),
    ("ipv6.ipv6_innermost_irregular", ""),
    ("ip_id_enc_dyn.ip_id_seq", "ip_id:16"),
    ("ip_id_enc_dyn.ip_id_random", "ip_id:16"),
    ("ip_id_enc_dyn.ip_id_zero", "ip_id:0"),
    ("ip_id_enc_irreg.ip_id_seq", ""),
    ("ip_id_enc_irreg.ip_id_seq_swapped", ""),
    ("ip_id_enc_irreg.ip_id_rand", "ip_id:16"),
    ("ip_id_enc_irreg.ip_id_zero", "ip_id:0"),
    ("ipv4.ipv4_static", "0 innermost_ip:1 000000 protocol:8 src_addr:32 dst_addr:32"),
    ("ipv4.ipv4_endpoint_innermost_dynamic", "000 reorder_ratio:2 df:1 ip_id_behavior_innermost:2 tos_tc:8 ttl_hopl:8 ip_id:0,16 msn:16"),
    ("ipv4.ipv4_regular_innermost_dynamic", "00000 df:1 ip_id_behavior_innermost:2 tos_tc:8 ttl_hopl:8 ip_id:0,16"),
    ("ipv4.ipv4_outer_dynamic", "00000 df:1 ip_id_behavior_outer:2 tos_tc:8 ttl_hopl:8 ip_id:0,16"),
    ("ipv4.ipv4_outer_irregular", "ip_id:0,16 tos_tc:0,8 ttl_hopl:0,8"),
    ("ipv4.ipv4_innermost_irregular", "ip_id:0,16"),
    ("udp.udp_static", "src_port:16 dst_port:16"),
    ("udp.udp_endpoint_dynamic", "checksum:16 msn:16 reserved:6 reorder_ratio:2"),
    ("udp.udp_regular_dynamic", "checksum:16"),
    ("udp.udp_zero_checksum_irregular", "checksum:0"),
    ("udp.udp_with_checksum_irregular", "checksum:16"),
    ("csrc_list_dynchain.no_list", "csrc_list:0"),
    ("csrc_list_dynchain.list_present", "csrc_list:VARIABLE"),
    ("rtp.rtp_static", "ssrc:32"),
    ("rtp.rtp_dynamic", "reserved:1 reorder_ratio:2 list_present:1 tss_indicator:1 tis_indicator:1 pad_bit:1 extension:1 marker:1 payload_type:7 sequence_number:16 timestamp:32 ts_stride:VARIABLE time_stride:VARIABLE csrc_list:VARIABLE"),
    ("rtp.rtp_irregular", ""),
    ("checksum_coverage_dynchain.inferred_coverage", "checksum_coverage:0"),
    ("checksum_coverage_dynchain.static_coverage", "checksum_coverage:16"),
    ("checksum_coverage_dynchain.irregular_coverage", "checksum_coverage:16"),
    ("checksum_coverage_irregular.inferred_coverage", "checksum_coverage:0"),
    ("checksum_coverage_irregular.static_coverage", "checksum_coverage:0"),
    ("checksum_coverage_irregular.irregular_coverage", "checksum_coverage:16"),
    ("udp_lite.udp_lite_static", "src_port:16 dst_port:16"),
    ("udp_lite.udp_lite_endpoint_dynamic", "reserved:4 coverage_behavior:2 reorder_ratio:2 checksum_coverage:16 checksum:16 msn:16"),
    ("udp_lite.udp_lite_regular_dynamic", "coverage_behavior:2 reserved:6 checksum_coverage:16 checksum:16"),
    ("udp_lite.udp_lite_irregular", "checksum_coverage:0,16 checksum:16"),
    ("esp.esp_static", "spi:32"),
    ("esp.esp_dynamic", "sequence_number:32 reserved:6 reorder_ratio:2"),
    ("esp.esp_irregular", ""),
    ("msn_lsb.none", "master:?~1"),
    ("msn_lsb.quarter", "master:?~((2^k)/4)-1"),
    ("msn_lsb.half", "master:?~((2^k)/2)-1"),
    ("msn_lsb.threequarters", "master:?~(((2^k)*3)/4)-1"),
    ("ip_id_lsb.nbo", "ip_id_offset:k~((2^k)/4)-1"),
    ("ip_id_lsb.non_nbo", "ip_id_offset:k~((2^k)/4)-1"),
    ("ip_id_sequential_variable.short", "ip_id:8~8"),
    ("ip_id_sequential_variable.long", "ip_id:16"),
    ("ip_id_sequential_variable.not_present", ""),
    ("dont_fragment.v4", "df:1"),
    ("dont_fragment.v6", "unused:1"),
    ("pt_irr_or_static.not_present", "payload_type:0"),
    ("pt_irr_or_static.present", "reserved:1 payload_type:7"),
    ("csrc_list_presence.no_list", "csrc_list:0"),
    ("csrc_list_presence.list_present", "csrc_list:VARIABLE"),
    ("scaled_ts_lsb.timerbased", "timestamp:?"),
    ("scaled_ts_lsb.regular", "timestamp:?~((2^k)/4)-1"),
    ("sdvl_sn_lsb.lsb7", "0 field:7"),
    ("sdvl_sn_lsb.lsb14", "10 field:14"),
    ("sdvl_sn_lsb.lsb21", "110 field:21"),
    ("sdvl_sn_lsb.lsb28", "1110 field:28"),
    ("sdvl_sn_lsb.lsb32", "11111111 field:field_width"),
    ("sdvl_lsb.lsb7", "0 field:7~((2^7)/4)-1"),
    ("sdvl_lsb.lsb14", "10 field:14~((2^14)/4)-1"),
    ("sdvl_lsb.lsb21", "110 field:21~((2^21)/4)-1"),
    ("sdvl_lsb.lsb28", "1110 field:28~((2^28)/4)-1"),
    ("sdvl_lsb.lsb32", "11111111 field:field_width"),
    ("sdvl_scaled_ts_lsb.lsb7", "0 field:7"),
    ("sdvl_scaled_ts_lsb.lsb14", "10 field:14"),
    ("sdvl_scaled_ts_lsb.lsb21", "110 field:21"),
    ("sdvl_scaled_ts_lsb.lsb28", "1110 field:28"),
    ("sdvl_scaled_ts_lsb.lsb32", "11111111 field:32"),
    ("variable_scaled_timestamp.present", "scaled_value:VARIABLE"),
    ("variable_scaled_timestamp.not_present", ""),
    ("variable_unscaled_timestamp.present", "timestamp:?"),
    ("variable_unscaled_timestamp.not_present", ""),
    ("profile_1_7_flags1_enc.not_present", "df:? ip_id_behavior:? reorder_ratio:?"),
    ("profile_1_7_flags1_enc.present", "ip_outer_indicator:1 ttl_hopl_indicator:1 tos_tc_indicator:1 df:1 ip_id_behavior:2 reorder_ratio:2"),
    ("profile_1_flags2_enc.not_present", "pad_bit:? extension:?"),
    ("profile_1_flags2_enc.present", "list_indicator:1 pt_indicator:1 time_stride_indicator:1 pad_bit:1 extension:1 reserved:3"),
    ("profile_2_3_4_flags_enc.not_present", "df:? ip_id_behavior:?"),
    ("profile_2_3_4_flags_enc.present", "ip_outer_indicator:1 df:1 ip_id_behavior:2 reserved:4"),
    ("profile_8_flags_enc.not_present", "df:? ip_id_behavior:? coverage_behavior:?"),
    ("profile_8_flags_enc.present", "reserved:2 ip_outer_indicator:1 df:1 ip_id_behavior:2 coverage_behavior:2"),
    ("profile_7_flags2_enc.not_present", "pad_bit:? extension:? coverage_behavior:?"),
    ("profile_7_flags2_enc.present", "reserved:1 list_indicator:1 pt_indicator:1 time_stride_indicator:1 pad_bit:1 extension:1 coverage_behavior:2"),
    ("rtp_baseheader.co_common", "11111010 marker:1 header_crc:7 flags1_indicator:1 flags2_indicator:1 tsc_indicator:1 tss_indicator:1 ip_id_indicator:1 control_crc3:3 outer_ip_indicator+ttl_hopl_indicator+tos_tc_indicator+df+ip_id_behavior_innermost+reorder_ratio:0,8 list_indicator+pt_indicator+tis_indicator+pad_bit+extension:0,8 tos_tc:0,8 ttl_hopl:0,8 payload_type:0,8 sequence_number:VARIABLE ip_id:0,8,16 ts_scaled:VARIABLE timestamp:VARIABLE ts_stride:VARIABLE time_stride:VARIABLE csrc_list:VARIABLE"),
    ("rtp_baseheader.pt_0_crc3", "0 msn:4 header_crc:3 timestamp:0 ip_id:0"),
    ("rtp_baseheader.pt_0_crc7", "1000 msn:5 header_crc:7 timestamp:0 ip_id:0"),
    ("rtp_baseheader.pt_1_rnd", "101 marker:1 msn:4 ts_scaled:5 header_crc:3"),
    ("rtp_baseheader.pt_1_seq_id", "1001 ip_id:4~4 msn:5 header_crc:3 timestamp:0"),
    ("rtp_baseheader.pt_1_seq_ts", "101 marker:1 msn:4 ts_scaled:5 header_crc:3 ip_id:0"),
    ("rtp_baseheader.pt_2_rnd", "110 msn:7 ts_scaled:6 marker:1 header_crc:7"),
    ("rtp_baseheader.pt_2_seq_id", "11000 msn:7 ip_id:5~5 header_crc:7 timestamp:0"),
    ("rtp_baseheader.pt_2_seq_both", "11001 msn:7 ip_id:5~5 header_crc:7 ts_scaled:7 marker:1"),
    ("rtp_baseheader.pt_2_seq_ts", "1101 msn:7 ts_scaled:5 marker:1 header_crc:7 ip_id:0"),
    ("udp_baseheader.co_common", "11111010 ip_id_indicator:1 header_crc:7 flags_indicator:1 ttl_hopl_indicator:1 tos_tc_indicator:1 reorder_ratio:2 control_crc3:3 outer_ip_indicator+df+ip_id_behavior_innermost:0,8 tos_tc:0,8 ttl_hopl:0,8 msn:8 ip_id:0,8,16"),
    ("udp_baseheader.pt_0_crc3", "0 msn:4 header_crc:3 ip_id:0"),
    ("udp_baseheader.pt_0_crc7", "100 msn:6 header_crc:7 ip_id:0"),
    ("udp_baseheader.pt_1_seq_id", "101 header_crc:3 msn:6 ip_id:4~4"),
    ("udp_baseheader.pt_2_seq_id", "110 ip_id:6~6 header_crc:7 msn:8"),
    ("esp_baseheader.co_common", "11111010 ip_id_indicator:1 header_crc:7 flags_indicator:1 ttl_hopl_indicator:1 tos_tc_indicator:1 reorder_ratio:2 control_crc3:3 outer_ip_indicator+df+ip_id_behavior_innermost:0,8 tos_tc:0,8 ttl_hopl:0,8 sequence_number:VARIABLE ip_id:0,8,16"),
    ("esp_baseheader.pt_0_crc3", "0 sequence_number:4 header_crc:3 ip_id:0"),
    ("esp_baseheader.pt_0_crc7", "100 sequence_number:6 header_crc:7 ip_id:0"),
    ("esp_baseheader.pt_1_seq_id", "101 header_crc:3 sequence_number:6 ip_id:4~4"),
    ("esp_baseheader.pt_2_seq_id", "110 ip_id:6~6 header_crc:7 sequence_number:8"),
    ("iponly_baseheader.co_common", "11111010 ip_id_indicator:1 header_crc:7 flags_indicator:1 ttl_hopl_indicator:1 tos_tc_indicator:1 reorder_ratio:2 control_crc3:3 outer_ip_indicator+df+ip_id_behavior_innermost:0,8 tos_tc:0,8 ttl_hopl:0,8 msn:8 ip_id:0,8,16"),
    ("iponly_baseheader.pt_0_crc3", "0 msn:4 header_crc:3 ip_id:0"),
    ("iponly_baseheader.pt_0_crc7", "100 msn:6 header_crc:7 ip_id:0"),
    ("iponly_baseheader.pt_1_seq_id", "101 header_crc:3 msn:6 ip_id:4~4"),
    ("iponly_baseheader.pt_2_seq_id", "110 ip_id:6~6 header_crc:7 msn:8"),
    ("udplite_rtp_baseheader.co_common", "11111010 marker:1 header_crc:7 flags1_indicator:1 flags2_indicator:1 tsc_indicator:1 tss_indicator:1 ip_id_indicator:1 control_crc3:3 outer_ip_indicator+ttl_hopl_indicator+tos_tc_indicator+df+ip_id_behavior_innermost+reorder_ratio:0,8 list_indicator+pt_indicator+tis_indicator+pad_bit+extension+coverage_behavior:0,8 tos_tc:0,8 ttl_hopl:0,8 payload_type:0,8 sequence_number:VARIABLE ip_id:0,8,16 ts_scaled:VARIABLE timestamp:VARIABLE ts_stride:VARIABLE time_stride:VARIABLE csrc_list:VARIABLE"),
    ("udplite_rtp_baseheader.pt_0_crc3", "0 msn:4 header_crc:3 timestamp:0 ip_id:0"),
    ("udplite_rtp_baseheader.pt_0_crc7", "1000 msn:5 header_crc:7 timestamp:0 ip_id:0"),
    ("udplite_rtp_baseheader.pt_1_rnd", "101 marker:1 msn:4 ts_scaled:5 header_crc:3"),
    ("udplite_rtp_baseheader.pt_1_seq_id", "1001 ip_id:4~4 msn:5 header_crc:3 timestamp:0"),
    ("udplite_rtp_baseheader.pt_1_seq_ts", "101 marker:1 msn:4 ts_scaled:5 header_crc:3 ip_id:0"),
    ("udplite_rtp_baseheader.pt_2_rnd", "110 msn:7 ts_scaled:6 marker:1 header_crc:7"),
    ("udplite_rtp_baseheader.pt_2_seq_id", "11000 msn:7 ip_id:5~5 header_crc:7 timestamp:0"),
    ("udplite_rtp_baseheader.pt_2_seq_both", "11001 msn:7 ip_id:5~5 header_crc:7 ts_scaled:7 marker:1"),
    ("udplite_rtp_baseheader.pt_2_seq_ts", "1101 msn:7 ts_scaled:5 marker:1 header_crc:7 ip_id:0"),
    ("udplite_baseheader.co_common", "11111010 ip_id_indicator:1 header_crc:7 flags_indicator:1 ttl_hopl_indicator:1 tos_tc_indicator:1 reorder_ratio:2 control_crc3:3 outer_ip_indicator+df+ip_id_behavior_innermost+coverage_behavior:0,8 tos_tc:0,8 ttl_hopl:0,8 msn:8 ip_id:0,8,16"),
    ("udplite_baseheader.pt_0_crc3", "0 msn:4 header_crc:3 ip_id:0"),
    ("udplite_baseheader.pt_0_crc7", "100 msn:6 header_crc:7 ip_id:0"),
    ("udplite_baseheader.pt_1_seq_id", "101 header_crc:3 msn:6 ip_id:4~4"),
    ("udplite_baseheader.pt_2_seq_id", "110 ip_id:6~6 header_crc:7 msn:8"),
];

/// Why a block has no function of its own to be held against.
fn is_absent(block: &str) -> Option<&'static str> {
    match block.split_once('.')? {
        ("crc3" | "crc7" | "field_scaling", _) => Some("it is a rule for values, not a layout"),
        ("msn_lsb" | "scaled_ts_lsb" | "ip_id_lsb", _) => Some("it is an offset, which is probed"),
        (_, "not_present" | "no_list") => Some("it has no octets"),
        (
            "optional_32"
            | "optional_lsb_7_or_31"
            | "optional_checksum"
            | "gre_proto"
            | "csrc_list_dynchain"
            | "csrc_list_presence"
            | "checksum_coverage_dynchain"
            | "checksum_coverage_irregular"
            | "ip_id_sequential_variable"
            | "dont_fragment"
            | "pt_irr_or_static"
            | "variable_scaled_timestamp"
            | "variable_unscaled_timestamp",
            _,
        ) => Some("it is seen where it is used"),
        (flags, _) if flags.ends_with("_enc") && flags.starts_with("profile_") => {
            Some("it is seen where it is used")
        }
        _ => None,
    }
}

/// Blocks whose width erratum 3248 changes: without a Checksum Coverage where that is inferred.
fn is_of_erratum(block: &str) -> bool {
    ["udp_lite.udp_lite_endpoint_dynamic", "udp_lite.udp_lite_regular_dynamic"].contains(&block)
}

type Room = Describer<256>;

/// The profile of a base header.
fn profile_of(method: &str) -> Option<ProfileId> {
    Some(match method {
        "rtp_baseheader" => ProfileId::RtpV2,
        "udp_baseheader" => ProfileId::UdpV2,
        "esp_baseheader" => ProfileId::EspV2,
        "iponly_baseheader" => ProfileId::IpV2,
        "udplite_rtp_baseheader" => ProfileId::RtpUdpLiteV2,
        "udplite_baseheader" => ProfileId::UdpLiteV2,
        _ => return None,
    })
}

/// A flow over IPv4 with the headers of a profile, and another header in front of them if one is given.
fn state(profile: ProfileId, behavior: Behavior, front: Option<Kind>) -> State {
    let mut state = State::new(profile);
    let headers = &mut state.headers;
    if let Some(kind) = front {
        let len = if kind == Kind::V6 { 40 } else { 20 };
        headers.push(kind, &[0; 40][..len]).unwrap();
    }
    headers.push(Kind::V4, &[0; 20]).unwrap();
    headers.end_ips();
    for kind in super::headers::upper(profile) {
        headers.push(*kind, &[0; 12][..if *kind == Kind::Rtp { 12 } else { 8 }]).unwrap();
    }
    state.behaviors = [behavior; super::headers::MAX_IP];
    state
}

/// The behavior that a format is for.
fn behavior_of(name: &str) -> Behavior {
    match name {
        "ip_id_random" | "ip_id_rand" | "pt_1_rnd" | "pt_2_rnd" => Behavior::Random,
        "ip_id_zero" => Behavior::Constant,
        "ip_id_seq_swapped" => Behavior::Swapped,
        _ => Behavior::Sequential,
    }
}

/// Fields that our function for a block describes, with flags as each of some choices has them.
fn ours(block: &str) -> Vec<Vec<FormatField>> {
    let (method, name) = block.split_once('.').unwrap();
    let seen = |choices: u32, run: &dyn Fn(&mut Room) -> Step| {
        let mut describer = Describer::new(choices);
        run(&mut describer).ok();
        describer.fields().to_vec()
    };
    let each = |choices: &[u32], run: &dyn Fn(&mut Room) -> Step| -> Vec<Vec<FormatField>> {
        choices.iter().map(|choices| seen(*choices, run)).collect()
    };
    let behavior = behavior_of(name);
    if let Some(profile) = profile_of(method) {
        let format = Format::ALL.into_iter().find(|format| format.name() == name).unwrap();
        return each(&[0, 0x5555, 0xAAAA], &|c| {
            let mut state = state(profile, behavior, None);
            let mut x = Fields::read(&state);
            base(format, c, &mut state, &mut x)
        });
    }
    // Discriminators of self-describing fields: ones, then a zero.
    let widths =
        |name: &str| ["7", "14", "21", "28", "32"].iter().position(|end| name.contains(end)).unwrap();
    let ones = |count: usize| [(1_u32 << count) - 1];
    let kind = |method: &str| match method {
        "ip_dest_opt" => Kind::Destination,
        "ip_hop_opt" => Kind::HopByHop,
        "ip_rout_opt" => Kind::Routing,
        "ah" => Kind::Ah,
        "gre" => Kind::Gre,
        "mine" => Kind::Mine,
        "udp" => Kind::Udp,
        "udp_lite" => Kind::UdpLite,
        "rtp" => Kind::Rtp,
        "esp" => Kind::Esp,
        _ => panic!("{block}"),
    };
    match (method, name) {
        ("static_or_irreg", _) => {
            each(&[0], &|c| static_or_irreg(c, "field", name == "irreg_enc", 16, &mut 0_u16))
        }
        ("sdvl_or_static" | "sdvl_or_default", _) => {
            each(&ones(widths(name)), &|c| sdvl_or(c, "field", true, None, &mut 0))
        }
        ("sdvl_sn_lsb", _) => {
            let bits = SnWidths { whole: 32, ratio: ReorderRatio::None, least: 0 };
            each(&ones(widths(name)), &|c| sdvl_sn_lsb(c, "field", bits, &mut Counter::read(0)))
        }
        ("sdvl_lsb" | "sdvl_scaled_ts_lsb", _) => {
            each(&ones(widths(name)), &|c| sdvl_lsb(c, "field", &mut Counter::read(0), |_| 0))
        }
        ("lsb_7_or_31", _) => {
            each(&[u32::from(name == "lsb_31")], &|c| lsb_7_or_31(c, "item", &mut Counter::read(0)))
        }
        ("fl_enc", _) => each(&[u32::from(name == "fl_non_zero")], &|c| fl_enc(c, &mut 0)),
        ("ip_id_enc_dyn", _) => each(&[0], &|c| ip_id_enc_dyn(c, behavior, &mut [0; 20])),
        ("ip_id_enc_irreg", _) => each(&[0], &|c| ip_id_enc_irreg(c, behavior, &mut [0; 20])),
        ("ipv4" | "ipv6", _) => {
            let is_v6 = method == "ipv6";
            let profile = if name.contains("endpoint") { ProfileId::IpV2 } else { ProfileId::UdpV2 };
            let is_outer = name.contains("outer") || is_v6 && name == "ipv6_regular_dynamic";
            let front = is_outer.then_some(if is_v6 { Kind::V6 } else { Kind::V4 });
            let whole = |behavior| {
                let mut state = state(profile, behavior, front);
                if is_v6 && !is_outer {
                    state = State::new(profile);
                    state.headers.push(Kind::V6, &[0; 40]).unwrap();
                    state.headers.end_ips();
                }
                state
            };
            let mut all = Vec::new();
            for behavior in [Behavior::Random, Behavior::Constant] {
                for outer in [false, true] {
                    all.extend(each(&[u32::from(is_v6), u32::MAX - u32::from(!is_v6)], &|c| {
                        let mut state = whole(behavior);
                        match name.rsplit_once('_').unwrap().1 {
                            "static" => ip_static(c, &mut state.headers, 0).map(|_| ()),
                            "dynamic" => ip_dynamic(c, &mut state, 0, 0),
                            _ => ip_irregular(c, &mut state, 0, 0, outer),
                        }
                    }));
                }
            }
            all
        }
        _ => chain_item(kind(method), name, &each),
    }
}

/// Items of extension headers, and of transport headers.
#[allow(clippy::type_complexity)]
fn chain_item(
    kind: Kind,
    name: &str,
    each: &dyn Fn(&[u32], &dyn Fn(&mut Room) -> Step) -> Vec<Vec<FormatField>>,
) -> Vec<Vec<FormatField>> {
    let mut octets = [0; 24];
    let (len, profile) = match kind {
        Kind::Ah => (24, ProfileId::UdpV2),
        Kind::Gre => (8, ProfileId::UdpV2),
        Kind::Mine => (12, ProfileId::UdpV2),
        Kind::Udp if name == "udp_regular_dynamic" => (8, ProfileId::RtpV2),
        Kind::UdpLite if name == "udp_lite_regular_dynamic" => (8, ProfileId::RtpUdpLiteV2),
        Kind::UdpLite => (8, ProfileId::UdpLiteV2),
        Kind::Rtp => (12, ProfileId::RtpV2),
        Kind::Esp => (8, ProfileId::EspV2),
        _ => (8, ProfileId::UdpV2),
    };
    match kind {
        Kind::Ah => octets[1] = 4,
        Kind::Gre => octets[0] = GRE_SEQUENCE,
        Kind::Mine => octets[1] = MINE_SOURCE,
        _ => {}
    }
    let whole = |used: bool, behavior: u8| {
        let mut state = State::new(profile);
        state.headers.push(Kind::V4, &[0; 20]).unwrap();
        state.headers.end_ips();
        state.headers.push(kind, &octets[..len]).unwrap();
        (state.checksum_used, state.coverage_behavior) = (used, behavior);
        state
    };
    let mut all = Vec::new();
    let behaviors = [coverage::INFERRED, coverage::STATIC, coverage::IRREGULAR];
    let used = name != "udp_zero_checksum_irregular";
    for behavior in behaviors {
        all.extend(each(&[0, u32::MAX], &|c| {
            let mut state = whole(used, behavior);
            let item = state.headers.items()[1];
            match name.rsplit_once('_').unwrap().1 {
                "static" if matches!(kind, Kind::Udp | Kind::UdpLite | Kind::Rtp | Kind::Esp) => {
                    upper_static(c, kind, &mut state.headers, 2)
                }
                "static" => between_static(c, kind, &mut state.headers, 2),
                "dynamic" => dynamic(c, &mut state, item),
                _ if matches!(kind, Kind::Udp | Kind::UdpLite) => transport_irregular(c, &mut state, item),
                _ if matches!(kind, Kind::Ah | Kind::Gre) => {
                    let mut x = Fields::read(&state);
                    with_number(c, kind, &mut { octets }[..len], &mut x, 0).map(|_| ())
                }
                _ => Ok(()),
            }
        }));
    }
    all
}

#[test]
fn every_block_of_the_notation_is_described_or_has_a_reason() {
    let (mut checked, mut reasons) = (0, BTreeMap::<_, usize>::new());
    for (block, notation) in BLOCKS {
        if let Some(reason) = is_absent(block) {
            *reasons.entry(reason).or_default() += 1;
            continue;
        }
        checked += 1;
        let notation: String = if is_of_erratum(block) {
            notation.replace("coverage:16", "coverage:0,16")
        } else {
            notation.into()
        };
        let tokens: Vec<_> = notation.split_whitespace().collect();
        for fields in ours(block) {
            assert!(agree(&tokens, &fields), "{block}: {notation}\nis not {fields:?}");
        }
    }
    println!("{checked} of {} blocks are held against functions; not: {reasons:?}", BLOCKS.len());
    assert_eq!((checked, checked + reasons.values().sum::<usize>()), (CHECKED, BLOCKS.len()));
}

/// The offset of `k` bits that a formula of the notation denotes.
fn offset(formula: &str, k: u32) -> u32 {
    match formula {
        "1" => 1,
        "((2^k)/4)-1" => (1 << k) / 4 - 1,
        "((2^k)/2)-1" => (1 << k) / 2 - 1,
        "(((2^k)*3)/4)-1" => (1 << k) * 3 / 4 - 1,
        _ => panic!("{formula}"),
    }
}

/// The formula of the block with that name.
fn formula(name: &str) -> &'static str {
    BLOCKS.iter().find(|(block, _)| *block == name).unwrap().1.split_once('~').unwrap().1
}

/// Each LSB-encoded field of the base headers has the values from `p` below the reference on, and no others.
#[test]
fn offsets_are_those_of_the_notation() {
    let ratios = [
        (ReorderRatio::None, "msn_lsb.none"),
        (ReorderRatio::Quarter, "msn_lsb.quarter"),
        (ReorderRatio::Half, "msn_lsb.half"),
        (ReorderRatio::ThreeQuarters, "msn_lsb.threequarters"),
    ];
    let mut probed = 0;
    for (block, notation) in BLOCKS {
        let (method, name) = block.split_once('.').unwrap();
        let Some(profile) = profile_of(method).filter(|_| name != "co_common") else { continue };
        let format = Format::ALL.into_iter().find(|format| format.name() == name).unwrap();
        for token in notation.split_whitespace() {
            let Some((field, width)) = token.split_once(':') else { continue };
            let k = width.split('~').next().unwrap().parse().unwrap_or(0);
            for (ratio, of_ratio) in ratios {
                let p = match field {
                    "msn" | "sequence_number" => offset(formula(of_ratio), k),
                    "ip_id" if k > 0 => offset(formula("ip_id_lsb.nbo"), k),
                    "ts_scaled" => offset(formula("scaled_ts_lsb.regular"), k),
                    _ => continue,
                };
                let fits = |ahead: u32| writes(profile, format, ratio, field, ahead);
                let last = (1_u32 << k) - 1 - p;
                assert!(fits(p.wrapping_neg()) && fits(last), "{block} {field} {p}");
                assert!(!fits((p + 1).wrapping_neg()) && !fits(last + 1), "{block} {field} {p}");
                probed += 1;
            }
        }
    }
    assert_eq!(probed, PROBED);
}

/// True if a format can encode a field that is so far ahead of its reference.
fn writes(profile: ProfileId, format: Format, ratio: ReorderRatio, field: &str, ahead: u32) -> bool {
    let mut state = state(profile, behavior_of(format.name()), None);
    state.reorder_ratio = ratio;
    let mut x = Fields::read(&state);
    let reference = 0x8000_0000_u32;
    let at = |ahead: u32| Counter::between(reference.wrapping_add(ahead), Some((reference, reference)));
    let id = |ahead: u32| Counter::between(0x8000_u16.wrapping_add(ahead as u16), Some((0x8000, 0x8000)));
    (x.msn, x.ts_scaled, x.ip_id_offset) = (at(0), at(0), id(0));
    match field {
        "ts_scaled" => x.ts_scaled = at(ahead),
        "ip_id" => x.ip_id_offset = id(ahead),
        _ => x.msn = at(ahead),
    }
    base(format, &mut Writer::new(&mut [0; 32], 0), &mut state, &mut x).is_ok()
}

/// A list of CSRC identifiers. RFC 5225, section 6.6.13.3.
#[test]
fn lists_of_csrc_identifiers_are_those_of_the_figures() {
    let mut describer = Room::new(0b1);
    let mut state = state(ProfileId::RtpV2, Behavior::Random, None);
    let item = state.headers.upper(Kind::Rtp).unwrap();
    list_csrc(&mut describer, &mut state, item, false).unwrap();
    let widths: Vec<_> = describer.fields().iter().map(|field| (field.name, field.bits)).collect();
    assert_eq!(widths, [("reserved", 3), ("PS", 1), ("m", 4)]);
}

#[test]
fn the_table_is_that_of_the_rfc() {
    let Some(shared) = std::env::var_os("THINAIR_VECTORS") else {
        println!("skipped: THINAIR_VECTORS is not set (the notation of RFC 5225)");
        return;
    };
    let text = std::fs::read(std::path::Path::new(&shared).join("rfc/rfc5225.txt")).unwrap();
    let found = blocks_of(&String::from_utf8_lossy(&text), "6.8.2.4.  Header Formats in ROHC-FN");
    assert_eq!(found.len(), BLOCKS.len());
    for ((block, notation), (found, fields)) in BLOCKS.iter().zip(&found) {
        assert_eq!((*block, *notation), (found.as_str(), fields.as_str()));
    }
}

/// Blocks that have a function, and offsets that are probed: one for each ratio.
const CHECKED: usize = 122;
const PROBED: usize = 4 * 58;
