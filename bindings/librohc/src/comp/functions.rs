//! Functions of the compressor for C.

#![allow(unsafe_code, reason = "pointers of C become references here")]

use std::ffi::{c_uint, c_void};
use std::time::Duration;

use thinair_rohc::packet::{self, PADDING};
use thinair_rohc::{CompressorConfig, ReorderRatio, RtpDetection};

use super::{Comp, Compression, TIME_BASED_REFRESHES};
use crate::abi::{
    Buf, CompGeneral, CompLastPacket, ERROR, OK, RandomCallback, RtpCallback, Status, TraceCallback, answer,
    give, variadic,
};
use crate::clock::Clock;
use crate::handle::Handle;
use crate::profiles::Profiles;
use crate::side::{Side, channel, cid_type, functions, turn_all};
use crate::text::packet_type;
use crate::trace::{GENERAL, INFO, Trace, WARNING};

/// Environment variable that has RTP detected without a callback: the value is `guess`.
pub const RTP_VARIABLE: &str = "THINAIR_ROHC_RTP";

/// Packets, and time, between two refreshes.
const REFRESH: (usize, Duration) = (1_700, Duration::from_secs(1));

/// `ROHC_COMP_FEATURE_...`.
const NO_IP_CHECKSUMS: c_uint = 4;
const DUMP_PACKETS: c_uint = 8;

/// `rohc_comp_new2`.
///
/// # Safety
///
/// `random` is null or such a function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_comp_new2(
    cid_type: c_uint,
    max_cid: u16,
    random: Option<RandomCallback>,
    private: *mut c_void,
) -> *mut Comp {
    let (Some(channel), Some(random)) = (channel(cid_type, max_cid), random) else {
        return std::ptr::null_mut();
    };
    let guesses = std::env::var_os(RTP_VARIABLE).is_some_and(|value| value == "guess");
    let rtp = if guesses { RtpDetection::NEVER.or_guess() } else { RtpDetection::NEVER };
    let comp = Handle::give(Compression {
        config: CompressorConfig { rtp, ..CompressorConfig::new(channel) },
        profiles: Profiles::NONE,
        engine: None,
        trace: Trace::of(0),
        clock: Clock::new(),
        features: 0,
        refresh: REFRESH,
        rtp: None,
        rtp_port: None,
        mrru: 0,
        unit: Vec::new(),
        sent: 0,
        last: None,
        packets: 0,
        octets_in: 0,
        octets_out: 0,
    });
    // Random numbers of C have 15 bits or more.
    // SAFETY: the caller has given a function of that type, and the compressor is there.
    let seed = (0..5).fold(0_u64, |seed, _| seed << 15 ^ unsafe { random(comp, private) } as u64);
    // SAFETY: it was made above.
    if let Some(mut comp) = unsafe { Handle::enter(comp) } {
        comp.config.seed = seed;
    }
    comp
}

/// `rohc_comp_free`.
///
/// # Safety
///
/// `comp` is null or a compressor, which is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_comp_free(comp: *mut Comp) {
    // SAFETY: as the caller promises.
    unsafe { Handle::free(comp) }
}

/// `rohc_compress4`.
///
/// # Safety
///
/// `comp` is null or a compressor, buffers are as long as their fields promise, and `output` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_compress4(comp: *mut Comp, input: Buf, output: *mut Buf) -> Status {
    // SAFETY: as the caller promises.
    let (Some(mut comp), Some(output)) = (unsafe { Handle::enter(comp) }, unsafe { output.as_mut() }) else {
        return ERROR;
    };
    let comp = &mut *comp;
    if input.len == 0 || output.len != 0 || input.overlaps(output) {
        return ERROR;
    }
    // SAFETY: as the caller promises, and the two do not overlap.
    let (Some(octets), Some(room)) = (unsafe { input.octets() }, unsafe { output.room() }) else {
        return ERROR;
    };
    comp.trace.dump("packet to be compressed", octets);
    let now = comp.clock.now(input.time);
    match comp.compress(now, octets, room) {
        Ok(len) => {
            (output.len, output.time) = (len, input.time);
            comp.trace.dump("compressed packet", &room[..len]);
            OK
        }
        Err(status) => status,
    }
}

/// `rohc_comp_get_segment2`.
///
/// # Safety
///
/// As for [`rohc_compress4`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_comp_get_segment2(comp: *mut Comp, output: *mut Buf) -> Status {
    // SAFETY: as the caller promises.
    let (Some(mut comp), Some(output)) = (unsafe { Handle::enter(comp) }, unsafe { output.as_mut() }) else {
        return ERROR;
    };
    let comp = &mut *comp;
    // SAFETY: as the caller promises.
    let Some(room) = (unsafe { output.room() }).filter(|_| output.len == 0) else { return ERROR };
    match comp.segment(room) {
        Ok((len, status)) => {
            output.len = len;
            status
        }
        Err(status) => status,
    }
}

/// `rohc_comp_pad`.
///
/// # Safety
///
/// As for [`rohc_compress4`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_comp_pad(comp: *mut Comp, packet: *mut Buf, least: usize) -> Status {
    // SAFETY: as the caller promises.
    let (Some(_call), Some(packet)) = (unsafe { Handle::enter(comp) }, unsafe { packet.as_mut() }) else {
        return ERROR;
    };
    // SAFETY: as the caller promises.
    if unsafe { packet.octets() }.is_none_or(<[u8]>::is_empty) {
        return ERROR;
    }
    let padding = least.saturating_sub(packet.len);
    let Some(offset) = packet.offset.checked_sub(padding) else { return ERROR };
    // SAFETY: the octets are within the buffer, in front of the packet.
    unsafe { packet.data.add(offset).write_bytes(PADDING, padding) };
    (packet.offset, packet.len) = (offset, packet.len + padding);
    OK
}

/// `rohc_comp_deliver_feedback2`.
///
/// # Safety
///
/// `comp` is null or a compressor, and the buffer is as long as its fields promise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_comp_deliver_feedback2(comp: *mut Comp, feedback: Buf) -> bool {
    // SAFETY: as the caller promises.
    let (Some(mut comp), Some(octets)) = (unsafe { Handle::enter(comp) }, unsafe { feedback.octets() })
    else {
        return false;
    };
    let comp = &mut *comp;
    if octets.is_empty() {
        return true;
    }
    let now = comp.clock.now(feedback.time);
    let (Ok(parts), Some(engine)) = (packet::parts(octets), &mut comp.engine) else { return false };
    let mut are_taken = true;
    for element in parts.feedback {
        let taken = engine.receive_feedback(now, element);
        if let Err(error) = taken {
            comp.trace.emit(WARNING, GENERAL, format_args!("feedback is ignored: {error}"));
        }
        are_taken &= taken.is_ok();
    }
    are_taken
}

/// `rohc_comp_force_contexts_reinit`.
///
/// # Safety
///
/// `comp` is null or a compressor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_comp_force_contexts_reinit(comp: *mut Comp) -> bool {
    // SAFETY: as the caller promises.
    let Some(mut comp) = (unsafe { Handle::enter(comp) }) else { return false };
    let comp = &mut *comp;
    if let Some(engine) = &mut comp.engine {
        engine.reinitialize();
    }
    comp.trace.emit(INFO, GENERAL, format_args!("all contexts begin again"));
    true
}

functions! { Comp:
    /// `rohc_comp_set_traces_cb2`.
    rohc_comp_set_traces_cb2(comp, callback: Option<TraceCallback>, private: *mut c_void) {
        comp.trace.set(callback, private);
        true
    }

    /// `rohc_comp_profile_enabled`.
    rohc_comp_profile_enabled(comp, profile: c_uint) { comp.profiles.has(profile) }

    /// `rohc_comp_enable_profile`.
    rohc_comp_enable_profile(comp, profile: c_uint) { comp.enable(profile) }

    /// `rohc_comp_disable_profile`.
    rohc_comp_disable_profile(comp, profile: c_uint) { comp.disable(profile) }

    /// `rohc_comp_set_optimistic_approach`.
    rohc_comp_set_optimistic_approach(comp, repetitions: usize) {
        let number = u8::try_from(repetitions).ok().filter(|number| *number > 0 && comp.engine.is_none());
        if let Some(number) = number {
            (comp.config.repetitions, comp.config.window) = (number, number.min(16));
        }
        number.is_some()
    }

    /// `rohc_comp_set_reorder_ratio`: of profiles of RFC 5225.
    rohc_comp_set_reorder_ratio(comp, ratio: c_uint) {
        let ratio = match ratio {
            0 => ReorderRatio::None,
            1 => ReorderRatio::Quarter,
            2 => ReorderRatio::Half,
            3 => ReorderRatio::ThreeQuarters,
            _ => return false,
        };
        let is_possible = comp.engine.is_none();
        if is_possible {
            comp.config.reorder_ratio = ratio;
        }
        is_possible
    }

    /// `rohc_comp_set_periodic_refreshes`.
    rohc_comp_set_periodic_refreshes(comp, ir: usize, fo: usize) {
        let is_possible = comp.engine.is_none() && fo > 0 && fo < ir;
        if is_possible {
            comp.refresh.0 = ir;
        }
        is_possible
    }

    /// `rohc_comp_set_periodic_refreshes_time`.
    rohc_comp_set_periodic_refreshes_time(comp, ir: u64, fo: u64) {
        let is_possible = comp.engine.is_none() && fo > 0 && fo < ir;
        if is_possible {
            comp.refresh.1 = Duration::from_millis(ir);
        }
        is_possible
    }

    /// `rohc_comp_set_features`. Refreshes by time cannot be turned on or off behind the first packet.
    rohc_comp_set_features(comp, features: c_uint) {
        let changed = comp.features ^ features;
        let is_known = features & !(NO_IP_CHECKSUMS | DUMP_PACKETS | TIME_BASED_REFRESHES) == 0;
        if !is_known || comp.engine.is_some() && changed & TIME_BASED_REFRESHES != 0 {
            return false;
        }
        comp.features = features;
        comp.trace.dumps = features & DUMP_PACKETS != 0;
        true
    }

    /// `rohc_comp_set_rtp_detection_cb`.
    rohc_comp_set_rtp_detection_cb(comp, callback: Option<RtpCallback>, private: *mut c_void) {
        (comp.rtp, comp.rtp_port) = (callback.map(|callback| (callback, private)), None);
        if let Some(engine) = &mut comp.engine {
            engine.set_rtp(comp.config.rtp);
        }
        true
    }

    /// `rohc_comp_set_mrru`.
    rohc_comp_set_mrru(comp, mrru: usize) {
        if mrru > usize::from(u16::MAX) || mrru > 0 && comp.profiles.has_second_version() {
            return false;
        }
        comp.mrru = mrru;
        true
    }

    /// `rohc_comp_get_mrru`.
    rohc_comp_get_mrru(comp, mrru: *mut usize) {
        // SAFETY: as the caller promises.
        unsafe { give(mrru, comp.mrru) }
    }

    /// `rohc_comp_get_max_cid`.
    rohc_comp_get_max_cid(comp, max_cid: *mut usize) {
        // SAFETY: as the caller promises.
        unsafe { give(max_cid, comp.config.channel.max_cid().into()) }
    }

    /// `rohc_comp_get_cid_type`.
    rohc_comp_get_cid_type(comp, place: *mut c_uint) {
        // SAFETY: as the caller promises.
        unsafe { give(place, cid_type(&comp.config.channel)) }
    }

    /// `rohc_comp_get_last_packet_info2`.
    rohc_comp_get_last_packet_info2(comp, info: *mut CompLastPacket) {
        let Some(last) = comp.last else { return false };
        let state = comp.engine.as_ref().and_then(|engine| engine.context(last.cid));
        let value = CompLastPacket {
            version: [0; 2],
            context_id: last.cid.value().into(),
            is_context_init: last.is_first,
            context_mode: state.map_or(0, |state| state.mode.bits()).into(),
            context_state: match state.map(|state| state.state) {
                Some("IR") => 1,
                Some("FO") => 2,
                Some(_) => 3,
                None => 0,
            },
            context_used: state.is_some(),
            profile_id: last.profile.number().into(),
            packet_type: packet_type(last.profile, last.format),
            total_last_uncomp_size: last.octets_in as u64,
            header_last_uncomp_size: last.header_in.into(),
            total_last_comp_size: last.octets_out as u64,
            header_last_comp_size: last.header_out.into(),
        };
        // SAFETY: as the caller promises.
        unsafe { answer(info, value, &[58]) }
    }

    /// `rohc_comp_get_general_info`.
    rohc_comp_get_general_info(comp, info: *mut CompGeneral) {
        let value = CompGeneral {
            version: [0; 2],
            contexts_nr: comp.engine.as_ref().map_or(0, |engine| engine.contexts().count()) as u64,
            packets_nr: comp.packets,
            uncomp_bytes_nr: comp.octets_in,
            comp_bytes_nr: comp.octets_out,
        };
        // SAFETY: as the caller promises.
        unsafe { answer(info, value, &[36]) }
    }
}

/// `rohc_comp_set_wlsb_window_width`: the same number as the repetitions of the optimistic approach.
///
/// # Safety
///
/// As for [`rohc_comp_set_optimistic_approach`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_comp_set_wlsb_window_width(comp: *mut Comp, width: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { rohc_comp_set_optimistic_approach(comp, width) }
}

/// `rohc_comp_set_list_trans_nr`: the same number, too.
///
/// # Safety
///
/// As for [`rohc_comp_set_optimistic_approach`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_comp_set_list_trans_nr(comp: *mut Comp, number: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { rohc_comp_set_optimistic_approach(comp, number) }
}

variadic! {
    /// `rohc_comp_enable_profiles`.
    rohc_comp_enable_profiles: turn_all::<Compression, true>
}
variadic! {
    /// `rohc_comp_disable_profiles`.
    rohc_comp_disable_profiles: turn_all::<Compression, false>
}
