//! Functions of the decompressor for C.

#![allow(unsafe_code, reason = "pointers of C become references here")]

use std::ffi::{c_uint, c_void};

use thinair_rohc::packet::{self, Parts};
use thinair_rohc::{Decompressor, DecompressorConfig, Interop, Mode, Threshold};

use super::{Decomp, Decompression};
use crate::abi::{
    Buf, DecompContext, DecompGeneral, DecompLastPacket, ERROR, OK, OUTPUT_TOO_SMALL, Status, TraceCallback,
    answer, give, variadic,
};
use crate::clock::Clock;
use crate::handle::Handle;
use crate::profiles::Profiles;
use crate::side::{Side, channel, cid_type, functions, turn_all};
use crate::text::packet_type;
use crate::trace::{GENERAL, INFO, Trace};

/// Environment variable by which the caller vouches that the compressor is this library, too: the value is `thinair`. Losses in a row
/// are then bridged by the time of packets.
pub const PEER_VARIABLE: &str = "THINAIR_ROHC_PEER";

/// `ROHC_DECOMP_FEATURE_...`.
const CRC_REPAIR: c_uint = 1;
const DUMP_PACKETS: c_uint = 8;

/// k and n, k_1 and n_1, k_2 and n_2 of the rates of feedback: ACK, NACK and STATIC-NACK.
const RATES: [usize; 6] = [1, 50, 30, 100, 30, 100];

/// `rohc_decomp_new2`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_decomp_new2(cid_type: c_uint, max_cid: u16, mode: c_uint) -> *mut Decomp {
    let mode = u8::try_from(mode).ok().and_then(Mode::from_bits);
    let (Some(channel), Some(mode)) = (channel(cid_type, max_cid), mode) else { return std::ptr::null_mut() };
    // Another make does not send more bits of the SN behind a pause, and its packets would be taken for late ones.
    let ignores_pauses = std::env::var_os(PEER_VARIABLE).is_none_or(|value| value != "thinair");
    let interop = Interop { deliver_empty: true, ignores_pauses, ..Interop::STANDARD };
    let config = DecompressorConfig { mode, interop, ..DecompressorConfig::new(channel) };
    Handle::give(Decompression {
        config,
        profiles: Profiles::NONE,
        engine: None,
        trace: Trace::of(1),
        clock: Clock::new(),
        prtt: 50,
        rates: RATES,
        interval: RATES[1] / RATES[0],
        records: Vec::new(),
        last: None,
    })
}

/// `rohc_decomp_free`.
///
/// # Safety
///
/// `decomp` is null or a decompressor, which is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_decomp_free(decomp: *mut Decomp) {
    // SAFETY: as the caller promises.
    unsafe { Handle::free(decomp) }
}

/// `rohc_decompress3`.
///
/// # Safety
///
/// `decomp` is null or a decompressor, buffers are as long as their fields promise, and `output`, `received` and `send` are null or can
/// be written; none of them lies within a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_decompress3(
    decomp: *mut Decomp,
    input: Buf,
    output: *mut Buf,
    received: *mut Buf,
    send: *mut Buf,
) -> Status {
    if output == received || output == send || received == send && !send.is_null() {
        return ERROR;
    }
    // SAFETY: as the caller promises, and they are not one.
    let (decomp, output, received, send) =
        unsafe { (Handle::enter(decomp), output.as_mut(), received.as_mut(), send.as_mut()) };
    let (Some(mut decomp), Some(output)) = (decomp, output) else { return ERROR };
    let decomp = &mut *decomp;
    if input.len == 0 || output.len != 0 || input.overlaps(output) {
        return ERROR;
    }
    // SAFETY: as the caller promises, and the two do not overlap.
    let (Some(octets), Some(room)) = (unsafe { input.octets() }, unsafe { output.room() }) else {
        return ERROR;
    };
    decomp.trace.dump("packet to be decompressed", octets);
    if let Some(received) = received
        && octets.first().is_some_and(|first| *first >= packet::PADDING)
        && let Ok(Parts { feedback, .. }) = packet::parts(octets)
        && !feedback.octets().is_empty()
    {
        let is_apart = !received.overlaps(&input) && !received.overlaps(output);
        // SAFETY: as the caller promises, and nobody else uses it.
        let room = if is_apart { unsafe { received.room() } } else { None };
        let Some(room) = room.and_then(|room| room.get_mut(..feedback.octets().len())) else {
            return OUTPUT_TOO_SMALL;
        };
        room.copy_from_slice(feedback.octets());
        received.len += feedback.octets().len();
    }
    let now = decomp.clock.now(input.time);
    let result = decomp.decompress(now, octets, room);
    let (status, is_due) = match result {
        Ok((len, is_due)) => {
            (output.len, output.time) = (len, input.time);
            (OK, is_due)
        }
        Err(status) => (status, false),
    };
    if let Some(send) = send
        && (is_due || decomp.engine.as_ref().is_some_and(Decompressor::has_feedback))
    {
        // SAFETY: as the caller promises; the room of the output is not used any more.
        unsafe { decomp.send_feedback(is_due, send) };
    }
    status
}

functions! { Decomp:
    /// `rohc_decomp_set_traces_cb2`.
    rohc_decomp_set_traces_cb2(decomp, callback: Option<TraceCallback>, private: *mut c_void) {
        decomp.trace.set(callback, private);
        true
    }

    /// `rohc_decomp_profile_enabled`.
    rohc_decomp_profile_enabled(decomp, profile: c_uint) { decomp.profiles.has(profile) }

    /// `rohc_decomp_enable_profile`.
    rohc_decomp_enable_profile(decomp, profile: c_uint) { decomp.enable(profile) }

    /// `rohc_decomp_disable_profile`.
    rohc_decomp_disable_profile(decomp, profile: c_uint) { decomp.disable(profile) }

    /// `rohc_decomp_set_mrru`.
    rohc_decomp_set_mrru(decomp, mrru: usize) {
        let Ok(mrru) = u16::try_from(mrru) else { return false };
        if decomp.engine.is_some() || mrru > 0 && decomp.profiles.has_second_version() {
            return false;
        }
        decomp.config.channel = decomp.config.channel.with_mrru(mrru);
        true
    }

    /// `rohc_decomp_get_mrru`.
    rohc_decomp_get_mrru(decomp, mrru: *mut usize) {
        // SAFETY: as the caller promises.
        unsafe { give(mrru, decomp.config.channel.mrru()) }
    }

    /// `rohc_decomp_get_max_cid`.
    rohc_decomp_get_max_cid(decomp, max_cid: *mut usize) {
        // SAFETY: as the caller promises.
        unsafe { give(max_cid, decomp.config.channel.max_cid().into()) }
    }

    /// `rohc_decomp_get_cid_type`.
    rohc_decomp_get_cid_type(decomp, place: *mut c_uint) {
        // SAFETY: as the caller promises.
        unsafe { give(place, cid_type(&decomp.config.channel)) }
    }

    /// `rohc_decomp_set_prtt`: kept for the caller alone. The engine always sends as many bits of the SN as there are.
    rohc_decomp_set_prtt(decomp, prtt: usize) {
        let is_possible = prtt < usize::MAX / 2;
        if is_possible {
            decomp.prtt = prtt;
        }
        is_possible
    }

    /// `rohc_decomp_get_prtt`.
    rohc_decomp_get_prtt(decomp, prtt: *mut usize) {
        // SAFETY: as the caller promises.
        unsafe { give(prtt, decomp.prtt) }
    }

    /// `rohc_decomp_set_rate_limits`.
    rohc_decomp_set_rate_limits(decomp, k: usize, n: usize, k1: usize, n1: usize, k2: usize, n2: usize) {
        let rates = [k, n, k1, n1, k2, n2];
        let is_possible = decomp.engine.is_none() && rates.chunks(2).all(|rate| rate[1] > 0 && rate[0] <= rate[1]);
        if is_possible {
            decomp.rates = rates;
            decomp.interval = n / k.max(1);
            decomp.config.nack = threshold(k1, n1);
            decomp.config.static_nack = threshold(k2, n2);
        }
        is_possible
    }

    /// `rohc_decomp_get_rate_limits`.
    rohc_decomp_get_rate_limits(
        decomp,
        k: *mut usize,
        n: *mut usize,
        k1: *mut usize,
        n1: *mut usize,
        k2: *mut usize,
        n2: *mut usize
    ) {
        let places = [k, n, k1, n1, k2, n2];
        // SAFETY: as the caller promises.
        !places.iter().any(|place| place.is_null())
            && places.into_iter().zip(decomp.rates).all(|(place, rate)| unsafe { give(place, rate) })
    }

    /// `rohc_decomp_set_features`.
    rohc_decomp_set_features(decomp, features: c_uint) {
        if features & !(CRC_REPAIR | DUMP_PACKETS) != 0 {
            return false;
        }
        decomp.trace.dumps = features & DUMP_PACKETS != 0;
        decomp.trace.emit(INFO, GENERAL, format_args!("features {features}"));
        true
    }

    /// `rohc_decomp_get_last_packet_info`.
    rohc_decomp_get_last_packet_info(decomp, info: *mut DecompLastPacket) {
        let Some(last) = decomp.last else { return false };
        let state = decomp.engine.as_ref().and_then(|engine| engine.context(last.cid));
        let ahead = decomp.ahead(last.cid, state.and_then(|state| state.sn));
        let value = DecompLastPacket {
            version: [0; 2],
            context_mode: state.map_or(0, |state| state.mode.bits()).into(),
            context_state: match state.map(|state| state.state) {
                Some("NC") => 1,
                Some("SC") => 2,
                Some(_) => 3,
                None => 0,
            },
            profile_id: last.profile.number().into(),
            nr_lost_packets: (ahead - 1).max(0) as u64,
            nr_misordered_packets: (-ahead).max(0) as u64,
            is_duplicated: ahead == 0,
            corrected: [0; 3],
            packet_type: packet_type(last.profile, last.format),
            total_last_comp_size: last.octets_in as u64,
            header_last_comp_size: last.header_in.into(),
            total_last_uncomp_size: last.octets_out as u64,
            header_last_uncomp_size: last.header_out.into(),
        };
        // SAFETY: as the caller promises.
        unsafe { answer(info, value, &[33, 61, 93]) }
    }

    /// `rohc_decomp_get_context_info`.
    rohc_decomp_get_context_info(decomp, cid: u16, info: *mut DecompContext) {
        let record = decomp.records.get(usize::from(cid)).filter(|record| record.packets > 0);
        let Some(record) = record else { return false };
        let value = DecompContext {
            version: [0; 2],
            packets_nr: record.packets,
            comp_bytes_nr: record.octets_in,
            uncomp_bytes_nr: record.octets_out,
            corrected: [0; 3],
        };
        // SAFETY: as the caller promises.
        unsafe { answer(info, value, &[52]) }
    }

    /// `rohc_decomp_get_general_info`.
    rohc_decomp_get_general_info(decomp, info: *mut DecompGeneral) {
        let value = DecompGeneral {
            version: [0; 2],
            contexts_nr: decomp.engine.as_ref().map_or(0, |engine| engine.contexts().count()) as u64,
            packets_nr: decomp.records.iter().map(|record| record.packets).sum(),
            comp_bytes_nr: decomp.records.iter().map(|record| record.octets_in).sum(),
            uncomp_bytes_nr: decomp.records.iter().map(|record| record.octets_out).sum(),
            corrected: [0; 3],
        };
        // SAFETY: as the caller promises.
        unsafe { answer(info, value, &[36, 60]) }
    }
}

/// A share of failures as so many of the last 16 packets.
fn threshold(k: usize, n: usize) -> Threshold {
    const LAST: usize = 16;
    let failures = (k.saturating_mul(LAST)).div_ceil(n).clamp(1, LAST);
    Threshold { k: failures as u8, n: LAST as u8 }
}

variadic! {
    /// `rohc_decomp_enable_profiles`.
    rohc_decomp_enable_profiles: turn_all::<Decompression, true>
}
variadic! {
    /// `rohc_decomp_disable_profiles`.
    rohc_decomp_disable_profiles: turn_all::<Decompression, false>
}
