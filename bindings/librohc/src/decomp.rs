//! Functions of the decompressor.

#![allow(unsafe_code, reason = "pointers of C become references here")]

use std::ffi::{c_int, c_uint, c_void};

use thinair_rohc::feedback::{AckType, Feedback, MAX_ELEMENT};
use thinair_rohc::packet::{self, Parts};
use thinair_rohc::{
    CidSpace, DecompressError, Decompressed, Decompressor, DecompressorConfig, DecompressorMemory, Format,
    Instant, Mode, Threshold,
};

use crate::abi::{
    BAD_CRC, Buf, DecompContext, DecompGeneral, DecompLastPacket, ERROR, LARGE_CID, MALFORMED, NO_CONTEXT,
    OK, OUTPUT_TOO_SMALL, SMALL_CID, Status, TraceCallback, answer, give, listed, variadic,
};
use crate::clock::Clock;
use crate::comp::{BLOCKS, channel};
use crate::profiles::Profiles;
use crate::text::packet_type;
use crate::trace::{DEBUG, GENERAL, INFO, Trace, WARNING};

/// Environment variable by which the caller vouches that the compressor is this library, too: the value is `thinair`. Losses in a row
/// are then bridged by the time of packets.
pub const PEER_VARIABLE: &str = "THINAIR_ROHC_PEER";

/// `ROHC_DECOMP_FEATURE_...`.
const CRC_REPAIR: c_uint = 1;
const DUMP_PACKETS: c_uint = 8;

/// k and n, k_1 and n_1, k_2 and n_2 of the rates of feedback: ACK, NACK and STATIC-NACK.
const RATES: [usize; 6] = [1, 50, 30, 100, 30, 100];

/// Packets behind which an IR packet in U-mode is acknowledged again: the CID may have been given to another flow.
const IR_AGAIN: u16 = 8;

/// `struct rohc_decomp`.
///
/// The engine is made with the first packet, so that everything that is set before it counts.
#[derive(Debug)]
pub struct Decomp {
    config: DecompressorConfig,
    profiles: Profiles,
    engine: Option<Decompressor<'static>>,
    trace: Trace,
    clock: Clock,
    prtt: usize,
    rates: [usize; 6],
    /// Packets between two acknowledgments in U-mode.
    interval: usize,
    /// Packets of each CID.
    records: Vec<Record>,
    last: Option<Last>,
}

/// Packets of one CID.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    packets: u64,
    octets_in: u64,
    octets_out: u64,
    profile: u16,
    /// Packets since an acknowledgment in U-mode.
    unacknowledged: u16,
    /// SN, and `packets`, when the caller looked at the last packet.
    seen: (u32, u64),
}

/// The last packet.
#[derive(Clone, Copy, Debug)]
struct Last {
    done: Decompressed,
    octets_in: usize,
}

impl Decomp {
    #[cold]
    fn begin(&mut self) {
        let channel = self.profiles.on(self.config.channel);
        let contexts = channel.contexts();
        // TCP may still be turned on later, and has memory of its own.
        let memory = DecompressorMemory::owned(&channel, contexts.min(BLOCKS)).with_tcp_flows(contexts);
        self.config.channel = channel;
        self.engine = Some(Decompressor::new(self.config, memory));
        self.records = vec![Record::default(); contexts];
    }

    fn set_profiles(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.set_profiles(self.profiles.set);
        }
    }

    fn enable(&mut self, profile: c_uint) -> bool {
        let is_second_version = profile >> 8 == 1;
        let done = !(is_second_version && self.config.channel.mrru() > 0) && self.profiles.enable(profile);
        self.set_profiles();
        done
    }

    fn disable(&mut self, profile: c_uint) -> bool {
        let done = self.profiles.disable(profile);
        self.set_profiles();
        done
    }

    /// Decompresses a packet. Returns its octets, and whether it has to be acknowledged.
    #[inline(always)]
    fn decompress(&mut self, now: Instant, input: &[u8], output: &mut [u8]) -> Result<(usize, bool), Status> {
        if self.engine.is_none() {
            self.begin();
        }
        let Some(engine) = &mut self.engine else { return Err(ERROR) };
        match engine.decompress(now, input, output) {
            Ok(done) => Ok((done.len, self.note(done, input.len()))),
            Err(error) => self.failed(error),
        }
    }

    #[cold]
    fn failed(&mut self, error: DecompressError) -> Result<(usize, bool), Status> {
        self.last = None;
        if error == DecompressError::NothingYet {
            return Ok((0, false));
        }
        self.trace.emit(WARNING, GENERAL, format_args!("a packet is not decompressed: {error}"));
        Err(status(error))
    }

    /// Counts a packet. Returns whether it has to be acknowledged though the decompressor is in U-mode: RFC 3095, section 5.3.1.3,
    /// allows that, and callers count on it.
    #[inline(always)]
    fn note(&mut self, done: Decompressed, octets_in: usize) -> bool {
        let Some(record) = self.records.get_mut(done.cid.index()) else { return false };
        let profile = done.profile.number();
        let is_first = record.packets == 0 || record.profile != profile;
        record.packets += 1;
        record.octets_in += octets_in as u64;
        record.octets_out += done.len as u64;
        if is_first {
            (record.profile, record.seen) = (profile, (0, 0));
        }
        record.unacknowledged = record.unacknowledged.saturating_add(1);
        let is_due = self.config.mode == Mode::Unidirectional
            && (is_first
                || usize::from(record.unacknowledged) >= self.interval
                || record.unacknowledged >= IR_AGAIN && done.format == Format::Ir);
        if is_due {
            record.unacknowledged = 0;
        }
        self.last = Some(Last { done, octets_in });
        self.trace.emit(
            DEBUG,
            profile.into(),
            format_args!(
                "CID {}: {}, {octets_in} -> {} octets",
                done.cid.value(),
                done.format.name(),
                done.len
            ),
        );
        is_due
    }

    /// Packets by which the SN is ahead of the packet before: 1 if none is missing, negative if this one comes late. Packets that
    /// the caller did not look at count as received.
    fn ahead(&mut self, done: Decompressed, sn: Option<u32>) -> i64 {
        let Some(record) = self.records.get_mut(done.cid.index()) else { return 1 };
        let (Some(sn), (before, packets)) = (sn, record.seen) else { return 1 };
        let received = record.packets.wrapping_sub(packets) as i64;
        let moved = i64::from(sn.wrapping_sub(before) as i16);
        record.seen = (sn, record.packets);
        // At the first look, and at a second look at one packet, nothing is known.
        if packets == 0 || received == 0 { 1 } else { moved - received + 1 }
    }

    /// Writes waiting feedback behind what is in a buffer; of the last packet also an acknowledgment of U-mode.
    ///
    /// # Safety
    ///
    /// The buffer is as long as its fields promise.
    unsafe fn send_feedback(&mut self, is_due: bool, feedback: &mut Buf) {
        let Some(engine) = &mut self.engine else { return };
        let mut put = |element: &[u8]| {
            // SAFETY: as the caller promises.
            let Some(room) = (unsafe { feedback.room() }) else { return };
            if let Some(room) = room.get_mut(..element.len()) {
                room.copy_from_slice(element);
                feedback.len += element.len();
            }
        };
        let mut element = [0; MAX_ELEMENT];
        while let Some(len) = engine.poll_feedback(&mut element) {
            put(&element[..len]);
        }
        let Some(Last { done, .. }) = self.last.filter(|_| is_due) else { return };
        let sn = engine.context(done.cid).and_then(|state| state.sn).unwrap_or(0) & 0xFF;
        let ack = Feedback { sn, sn_bits: 8, ..Feedback::new(done.cid, AckType::Ack) };
        if let Some(len) = ack.write(self.config.channel.cids(), &mut element) {
            put(&element[..len]);
        }
    }
}

/// The status of a failure.
fn status(error: DecompressError) -> Status {
    match error {
        DecompressError::NoContext(_) => NO_CONTEXT,
        DecompressError::Crc(..) => BAD_CRC,
        DecompressError::OutputTooSmall { .. } => OUTPUT_TOO_SMALL,
        DecompressError::Packet(_) | DecompressError::Malformed(_) | DecompressError::Cid => MALFORMED,
        _ => ERROR,
    }
}

/// `rohc_decomp_new2`.
#[unsafe(no_mangle)]
pub extern "C" fn rohc_decomp_new2(cid_type: c_uint, max_cid: u16, mode: c_uint) -> *mut Decomp {
    let mode = u8::try_from(mode).ok().and_then(Mode::from_bits);
    let (Some(channel), Some(mode)) = (channel(cid_type, max_cid), mode) else { return std::ptr::null_mut() };
    Box::into_raw(Box::new(Decomp {
        config: DecompressorConfig { mode, deliver_empty: true, ..DecompressorConfig::new(channel) },
        profiles: Profiles::NONE,
        engine: None,
        trace: Trace::of(1),
        clock: Clock::new(std::env::var_os(PEER_VARIABLE).is_some_and(|value| value == "thinair")),
        prtt: 50,
        rates: RATES,
        interval: RATES[1] / RATES[0],
        records: Vec::new(),
        last: None,
    }))
}

/// `rohc_decomp_free`.
///
/// # Safety
///
/// `decomp` is null or a decompressor, which is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_decomp_free(decomp: *mut Decomp) {
    if !decomp.is_null() {
        // SAFETY: `rohc_decomp_new2` has made it of a box.
        drop(unsafe { Box::from_raw(decomp) });
    }
}

/// `rohc_decompress3`.
///
/// # Safety
///
/// `decomp` is null or a decompressor, buffers are as long as their fields promise, and `output`, `received` and `send` are null or can
/// be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_decompress3(
    decomp: *mut Decomp,
    input: Buf,
    output: *mut Buf,
    received: *mut Buf,
    send: *mut Buf,
) -> Status {
    // SAFETY: as the caller promises.
    let (Some(decomp), Some(output)) = (unsafe { decomp.as_mut() }, unsafe { output.as_mut() }) else {
        return ERROR;
    };
    if output.len != 0 || input.overlaps(output) {
        return ERROR;
    }
    // SAFETY: as the caller promises, and the two do not overlap.
    let (Some(octets), Some(room)) = (unsafe { input.octets() }, unsafe { output.room() }) else {
        return ERROR;
    };
    decomp.trace.dump("packet to be decompressed", octets);
    // SAFETY: as the caller promises.
    if let Some(received) = unsafe { received.as_mut() }
        && octets.first().is_some_and(|first| *first >= packet::PADDING)
        && let Ok(Parts { feedback, .. }) = packet::parts(octets)
        && !feedback.octets().is_empty()
    {
        // SAFETY: as the caller promises.
        let room = if received.overlaps(&input) { None } else { unsafe { received.room() } };
        let Some(room) = room.and_then(|room| room.get_mut(..feedback.octets().len())) else {
            return OUTPUT_TOO_SMALL;
        };
        room.copy_from_slice(feedback.octets());
        received.len += feedback.octets().len();
    }
    let now = decomp.clock.now(input.time);
    let result = decomp.decompress(now, octets, room);
    // SAFETY: as the caller promises.
    if let Some(send) = unsafe { send.as_mut() } {
        // SAFETY: as the caller promises.
        unsafe { decomp.send_feedback(result.is_ok_and(|(_, is_due)| is_due), send) };
    }
    match result {
        Ok((len, _)) => {
            (output.len, output.time) = (len, input.time);
            OK
        }
        Err(status) => status,
    }
}

/// Declares functions that set or read something: false without a decompressor.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($decomp:ident $(, $argument:ident: $type:ty)*) $body:block)+) => {
        $($(#[$doc])*
        ///
        /// # Safety
        ///
        /// `decomp` is null or a decompressor, and pointers are null or can be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(decomp: *mut Decomp $(, $argument: $type)*) -> bool {
            // SAFETY: as the caller promises.
            let Some($decomp) = (unsafe { decomp.as_mut() }) else { return false };
            $body
        })+
    };
}

functions! {
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
    rohc_decomp_get_cid_type(decomp, cid_type: *mut c_uint) {
        let number = if decomp.config.channel.cids() == CidSpace::Small { SMALL_CID } else { LARGE_CID };
        // SAFETY: as the caller promises.
        unsafe { give(cid_type, number) }
    }

    /// `rohc_decomp_set_prtt`: kept for the caller alone. The engine always sends as many bits of the SN as there are.
    rohc_decomp_set_prtt(decomp, prtt: usize) {
        let is_possible = prtt > 0 && prtt < usize::from(u16::MAX);
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
        if features & !(CRC_REPAIR | DUMP_PACKETS) != 0 || decomp.engine.is_some() {
            return false;
        }
        decomp.trace.dumps = features & DUMP_PACKETS != 0;
        decomp.trace.emit(INFO, GENERAL, format_args!("features {features}"));
        true
    }

    /// `rohc_decomp_get_last_packet_info`.
    rohc_decomp_get_last_packet_info(decomp, info: *mut DecompLastPacket) {
        let Some(Last { done, octets_in }) = decomp.last else { return false };
        let state = decomp.engine.as_ref().and_then(|engine| engine.context(done.cid));
        let ahead = decomp.ahead(done, state.and_then(|state| state.sn));
        let value = DecompLastPacket {
            version: [0; 2],
            context_mode: state.map_or(0, |state| state.mode.bits()).into(),
            context_state: match state.map(|state| state.state) {
                Some("NC") => 1,
                Some("SC") => 2,
                Some(_) => 3,
                None => 0,
            },
            profile_id: done.profile.number().into(),
            nr_lost_packets: (ahead - 1).max(0) as u64,
            nr_misordered_packets: (-ahead).max(0) as u64,
            is_duplicated: ahead == 0,
            corrected: [0; 3],
            packet_type: packet_type(done.profile, done.format),
            total_last_comp_size: octets_in as u64,
            header_last_comp_size: done.header_in as u64,
            total_last_uncomp_size: done.len as u64,
            header_last_uncomp_size: done.header_out as u64,
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

unsafe extern "C" fn enable_all(
    decomp: *mut Decomp,
    registers: *const u64,
    count: usize,
    stack: *const u64,
) -> bool {
    // SAFETY: the caller of the variadic function promises it.
    let (Some(decomp), numbers) = (unsafe { decomp.as_mut() }, unsafe { listed(registers, count, stack) })
    else {
        return false;
    };
    numbers.fold(true, |all, number: c_int| all & decomp.enable(number as c_uint))
}

unsafe extern "C" fn disable_all(
    decomp: *mut Decomp,
    registers: *const u64,
    count: usize,
    stack: *const u64,
) -> bool {
    // SAFETY: the caller of the variadic function promises it.
    let (Some(decomp), numbers) = (unsafe { decomp.as_mut() }, unsafe { listed(registers, count, stack) })
    else {
        return false;
    };
    numbers.fold(true, |all, number: c_int| all & decomp.disable(number as c_uint))
}

variadic! {
    /// `rohc_decomp_enable_profiles`.
    rohc_decomp_enable_profiles: enable_all
}
variadic! {
    /// `rohc_decomp_disable_profiles`.
    rohc_decomp_disable_profiles: disable_all
}
