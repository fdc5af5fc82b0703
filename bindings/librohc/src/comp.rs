//! Functions of the compressor.

#![allow(unsafe_code, reason = "pointers of C become references here")]

use std::ffi::{c_int, c_uint, c_void};
use std::time::Duration;

use thinair_rohc::packet::{self, PADDING};
use thinair_rohc::{
    Channel, CidSpace, CompressError, Compressed, Compressor, CompressorConfig, CompressorMemory, Instant,
    ProfileSet, Refresh, RtpDetection,
};
use thinair_wire::crc::fcs32;
use thinair_wire::header::chain::HeaderChain;

use crate::abi::{
    Buf, CompGeneral, CompLastPacket, ERROR, LARGE_CID, OK, OUTPUT_TOO_SMALL, RandomCallback, RtpCallback,
    SEGMENT, SMALL_CID, Status, TraceCallback, answer, give, listed, variadic,
};
use crate::clock::Clock;
use crate::profiles::Profiles;
use crate::text::packet_type;
use crate::trace::{DEBUG, GENERAL, INFO, Trace, WARNING};

/// Environment variable that has RTP detected without a callback: the value is `guess`.
pub const RTP_VARIABLE: &str = "THINAIR_ROHC_RTP";

/// Flows with extension headers that have room at the same time, at most.
pub(crate) const BLOCKS: usize = 64;

/// Octets that a packet may grow by.
const GROWTH: usize = 512;

/// Octets of UDP and RTP headers: no callback is asked of a smaller datagram.
const UDP_HEADER: usize = 8;
const RTP_HEADER: usize = 12;

/// Packets between two refreshes.
const REFRESHES: (usize, usize) = (1_700, 700);

/// `ROHC_COMP_FEATURE_...`.
const NO_IP_CHECKSUMS: c_uint = 4;
const DUMP_PACKETS: c_uint = 8;
const TIME_BASED_REFRESHES: c_uint = 16;

/// `struct rohc_comp`.
///
/// The engine is made with the first packet, so that everything that is set before it counts.
#[derive(Debug)]
pub struct Comp {
    config: CompressorConfig,
    profiles: Profiles,
    engine: Option<Compressor<'static>>,
    trace: Trace,
    clock: Clock,
    features: c_uint,
    rtp: Option<(RtpCallback, *mut c_void)>,
    mrru: usize,
    /// A packet that is cut into segments with its CRC, and the octets of it that are sent.
    unit: Vec<u8>,
    sent: usize,
    last: Option<Last>,
    packets: u64,
    octets_in: u64,
    octets_out: u64,
}

/// The last packet.
#[derive(Clone, Copy, Debug)]
struct Last {
    done: Compressed,
    octets_in: usize,
    is_first: bool,
}

impl Comp {
    /// The engine, which is made now if it is not there yet.
    #[inline(always)]
    fn engine(&mut self) -> &mut Compressor<'static> {
        if self.engine.is_none() {
            self.begin();
        }
        match &mut self.engine {
            Some(engine) => engine,
            None => unreachable!("it was made just now"),
        }
    }

    #[cold]
    fn begin(&mut self) {
        let channel = self.profiles.on(self.config.channel);
        let contexts = channel.contexts();
        // TCP may still be turned on later, and has memory of its own.
        let memory = CompressorMemory::owned(&channel, contexts.min(BLOCKS)).with_tcp_flows(contexts);
        self.config.channel = channel;
        self.engine = Some(Compressor::new(self.config, memory));
    }

    fn set_profiles(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.set_profiles(self.profiles.set);
        }
    }

    fn enable(&mut self, profile: c_uint) -> bool {
        let is_second_version = profile >> 8 == 1;
        let done = !(is_second_version && self.mrru > 0) && self.profiles.enable(profile);
        self.set_profiles();
        done
    }

    fn disable(&mut self, profile: c_uint) -> bool {
        let done = self.profiles.disable(profile);
        self.set_profiles();
        done
    }

    /// Sets a refresh policy, if no packet was sent yet.
    fn set_refresh(&mut self, ir: u64, fo: u64, refresh: Refresh) -> bool {
        let is_possible = self.engine.is_none() && fo > 0 && fo < ir;
        if is_possible {
            self.config.refresh = refresh;
        }
        is_possible
    }

    #[inline(always)]
    fn compress(&mut self, now: Instant, input: &[u8], output: &mut [u8]) -> Result<usize, Status> {
        match self.run(now, input, output) {
            Ok(done) => Ok(self.note(done, input.len())),
            Err(error) => self.failed(now, input, error),
        }
    }

    #[cold]
    fn failed(&mut self, now: Instant, input: &[u8], error: CompressError) -> Result<usize, Status> {
        let status = match error {
            CompressError::OutputTooSmall { .. } if self.mrru > 0 => return self.cut(now, input),
            CompressError::OutputTooSmall { .. } => OUTPUT_TOO_SMALL,
            CompressError::NotIp(_) | CompressError::NoContexts => ERROR,
        };
        self.trace.emit(WARNING, GENERAL, format_args!("a packet is not compressed: {error}"));
        Err(status)
    }

    #[inline(always)]
    fn run(&mut self, now: Instant, input: &[u8], output: &mut [u8]) -> Result<Compressed, CompressError> {
        let rtp = self.rtp;
        let engine = self.engine();
        let mut chain = HeaderChain::empty();
        if chain.parse_in_place(input).is_err() {
            return engine.uncompressed(now, input, output);
        }
        if let Some((callback, private)) = rtp {
            engine.set_rtp(asked(callback, private, &chain));
        }
        engine.compress_parsed(now, &chain, output)
    }

    /// Counts a packet, and returns its octets.
    #[inline(always)]
    fn note(&mut self, done: Compressed, octets_in: usize) -> usize {
        let is_first = done.format.is_initialization()
            && self.last.is_none_or(|last| last.done.cid != done.cid || last.done.profile != done.profile);
        self.last = Some(Last { done, octets_in, is_first });
        self.packets += 1;
        self.octets_in += octets_in as u64;
        self.octets_out += done.len as u64;
        self.trace.emit(
            DEBUG,
            done.profile.number().into(),
            format_args!(
                "CID {}: {}, {octets_in} -> {} octets",
                done.cid.value(),
                done.format.name(),
                done.len
            ),
        );
        done.len
    }

    /// Compresses a packet to be cut into segments.
    #[cold]
    fn cut(&mut self, now: Instant, input: &[u8]) -> Result<usize, Status> {
        let mut unit = std::mem::take(&mut self.unit);
        unit.resize(input.len() + GROWTH, 0);
        let result = self.run(now, input, &mut unit);
        let Ok(done) = result else { return Err(ERROR) };
        let len = self.note(done, input.len());
        unit.truncate(len);
        unit.extend_from_slice(&fcs32(&unit));
        self.sent = 0;
        if unit.len() > self.mrru {
            self.trace.emit(WARNING, GENERAL, format_args!("{} octets are more than MRRU", unit.len()));
            return Err(OUTPUT_TOO_SMALL);
        }
        self.unit = unit;
        Err(SEGMENT)
    }

    /// Writes the next segment. RFC 5795, section 5.2.5.1.
    fn segment(&mut self, output: &mut [u8]) -> Result<(usize, Status), Status> {
        const TYPE: u8 = 0b1111_1110;
        let rest = self.unit.get(self.sent..).filter(|rest| !rest.is_empty()).ok_or(ERROR)?;
        let [first, room @ ..] = output else { return Err(OUTPUT_TOO_SMALL) };
        if room.is_empty() {
            return Err(OUTPUT_TOO_SMALL);
        }
        let len = rest.len().min(room.len());
        let is_last = len == rest.len();
        *first = TYPE | u8::from(is_last);
        room[..len].copy_from_slice(&rest[..len]);
        self.sent += len;
        if is_last {
            self.unit.clear();
        }
        Ok((1 + len, if is_last { OK } else { SEGMENT }))
    }
}

/// Asks a callback whether a packet is RTP.
fn asked(callback: RtpCallback, private: *mut c_void, chain: &HeaderChain<'_>) -> RtpDetection {
    let packet = chain.packet();
    let (Some(ip), Some(udp)) = (chain.ips().last(), chain.udp()) else { return RtpDetection::NEVER };
    let (ip, datagram) = (packet.get(ip.offset..), packet.get(chain.ip_end()..));
    let (Some(ip), Some(datagram)) = (ip, datagram) else { return RtpDetection::NEVER };
    let Some(payload) = datagram.get(UDP_HEADER..).filter(|payload| payload.len() >= RTP_HEADER) else {
        return RtpDetection::NEVER;
    };
    let size = c_uint::try_from(payload.len()).unwrap_or(c_uint::MAX);
    // SAFETY: the caller has set a function of that type, and the pointers are to octets of the packet.
    let is_rtp = unsafe { callback(ip.as_ptr(), datagram.as_ptr(), payload.as_ptr(), size, private) };
    match is_rtp {
        true => RtpDetection::of_ports(&[udp.destination_port]).unwrap_or(RtpDetection::NEVER),
        false => RtpDetection::NEVER,
    }
}

/// A channel of these parameters, without profiles.
pub(crate) fn channel(cid_type: c_uint, max_cid: u16) -> Option<Channel> {
    let cids = match cid_type {
        SMALL_CID => CidSpace::Small,
        LARGE_CID => CidSpace::Large,
        _ => return None,
    };
    Channel::new(cids, max_cid, ProfileSet::UNCOMPRESSED).ok()
}

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
    let refresh = Refresh::Periodic { packets: Some(REFRESHES.0 as u32), time: None, backoff: false };
    let comp = Box::into_raw(Box::new(Comp {
        config: CompressorConfig { rtp, refresh, ..CompressorConfig::new(channel) },
        profiles: Profiles::NONE,
        engine: None,
        trace: Trace::of(0),
        clock: Clock::new(true),
        features: 0,
        rtp: None,
        mrru: 0,
        unit: Vec::new(),
        sent: 0,
        last: None,
        packets: 0,
        octets_in: 0,
        octets_out: 0,
    }));
    // Random numbers of C have 15 bits or more.
    // SAFETY: the caller has given a function of that type, and the compressor is there.
    let seed = (0..5).fold(0_u64, |seed, _| seed << 15 ^ unsafe { random(comp, private) } as u64);
    // SAFETY: it was made above.
    unsafe { (*comp).config.seed = seed };
    comp
}

/// `rohc_comp_free`.
///
/// # Safety
///
/// `comp` is null or a compressor, which is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_comp_free(comp: *mut Comp) {
    if !comp.is_null() {
        // SAFETY: `rohc_comp_new2` has made it of a box.
        drop(unsafe { Box::from_raw(comp) });
    }
}

/// `rohc_compress4`.
///
/// # Safety
///
/// `comp` is null or a compressor, buffers are as long as their fields promise, and `output` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rohc_compress4(comp: *mut Comp, input: Buf, output: *mut Buf) -> Status {
    // SAFETY: as the caller promises.
    let (Some(comp), Some(output)) = (unsafe { comp.as_mut() }, unsafe { output.as_mut() }) else {
        return ERROR;
    };
    if output.len != 0 || input.overlaps(output) {
        return ERROR;
    }
    // SAFETY: as the caller promises, and the two do not overlap.
    let (Some(octets), Some(room)) = (unsafe { input.octets() }, unsafe { output.room() }) else {
        return ERROR;
    };
    if octets.is_empty() {
        return ERROR;
    }
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
    let (Some(comp), Some(output)) = (unsafe { comp.as_mut() }, unsafe { output.as_mut() }) else {
        return ERROR;
    };
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
    let (Some(_), Some(packet)) = (unsafe { comp.as_ref() }, unsafe { packet.as_mut() }) else {
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
    let (Some(comp), Some(octets)) = (unsafe { comp.as_mut() }, unsafe { feedback.octets() }) else {
        return false;
    };
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
    let Some(comp) = (unsafe { comp.as_mut() }) else { return false };
    if let Some(engine) = &mut comp.engine {
        engine.reinitialize();
    }
    comp.trace.emit(INFO, GENERAL, format_args!("all contexts begin again"));
    true
}

/// Declares functions that set or read something: false without a compressor.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($comp:ident $(, $argument:ident: $type:ty)*) $body:block)+) => {
        $($(#[$doc])*
        ///
        /// # Safety
        ///
        /// `comp` is null or a compressor, and pointers are null or can be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(comp: *mut Comp $(, $argument: $type)*) -> bool {
            // SAFETY: as the caller promises.
            let Some($comp) = (unsafe { comp.as_mut() }) else { return false };
            $body
        })+
    };
}

functions! {
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

    /// `rohc_comp_set_reorder_ratio`: of profiles of RFC 5225, which the engine sends in order.
    rohc_comp_set_reorder_ratio(comp, ratio: c_uint) { ratio == 0 && comp.engine.is_none() }

    /// `rohc_comp_set_periodic_refreshes`.
    rohc_comp_set_periodic_refreshes(comp, ir: usize, fo: usize) {
        let packets = Some(u32::try_from(ir).unwrap_or(u32::MAX));
        let time = match comp.config.refresh {
            Refresh::Periodic { time, .. } => time,
            _ => None,
        };
        comp.set_refresh(ir as u64, fo as u64, Refresh::Periodic { packets, time, backoff: false })
    }

    /// `rohc_comp_set_periodic_refreshes_time`.
    rohc_comp_set_periodic_refreshes_time(comp, ir: u64, fo: u64) {
        let packets = match comp.config.refresh {
            Refresh::Periodic { packets, .. } => packets,
            _ => None,
        };
        let time = Some(Duration::from_millis(ir));
        comp.features & TIME_BASED_REFRESHES != 0
            && comp.set_refresh(ir, fo, Refresh::Periodic { packets, time, backoff: false })
    }

    /// `rohc_comp_set_features`.
    rohc_comp_set_features(comp, features: c_uint) {
        if features & !(NO_IP_CHECKSUMS | DUMP_PACKETS | TIME_BASED_REFRESHES) != 0 || comp.engine.is_some() {
            return false;
        }
        comp.features = features;
        comp.trace.dumps = features & DUMP_PACKETS != 0;
        if features & TIME_BASED_REFRESHES != 0 {
            let packets = Some(REFRESHES.0 as u32);
            let time = Some(Duration::from_secs(1));
            comp.config.refresh = Refresh::Periodic { packets, time, backoff: false };
        }
        true
    }

    /// `rohc_comp_set_rtp_detection_cb`.
    rohc_comp_set_rtp_detection_cb(comp, callback: Option<RtpCallback>, private: *mut c_void) {
        comp.rtp = callback.map(|callback| (callback, private));
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
    rohc_comp_get_cid_type(comp, cid_type: *mut c_uint) {
        let number = if comp.config.channel.cids() == CidSpace::Small { SMALL_CID } else { LARGE_CID };
        // SAFETY: as the caller promises.
        unsafe { give(cid_type, number) }
    }

    /// `rohc_comp_get_last_packet_info2`.
    rohc_comp_get_last_packet_info2(comp, info: *mut CompLastPacket) {
        let Some(Last { done, octets_in, is_first }) = comp.last else { return false };
        let state = comp.engine.as_ref().and_then(|engine| engine.context(done.cid));
        let value = CompLastPacket {
            version: [0; 2],
            context_id: done.cid.value().into(),
            is_context_init: is_first,
            context_mode: state.map_or(0, |state| state.mode.bits()).into(),
            context_state: match state.map(|state| state.state) {
                Some("IR") => 1,
                Some("FO") => 2,
                Some(_) => 3,
                None => 0,
            },
            context_used: state.is_some(),
            profile_id: done.profile.number().into(),
            packet_type: packet_type(done.profile, done.format),
            total_last_uncomp_size: octets_in as u64,
            header_last_uncomp_size: done.header_in as u64,
            total_last_comp_size: done.len as u64,
            header_last_comp_size: done.header_out as u64,
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

/// Changes all profiles of a list; false if one of them could not be.
unsafe extern "C" fn enable_all(
    comp: *mut Comp,
    registers: *const u64,
    count: usize,
    stack: *const u64,
) -> bool {
    // SAFETY: the caller of the variadic function promises it.
    let (Some(comp), numbers) = (unsafe { comp.as_mut() }, unsafe { listed(registers, count, stack) }) else {
        return false;
    };
    numbers.fold(true, |all, number: c_int| all & comp.enable(number as c_uint))
}

unsafe extern "C" fn disable_all(
    comp: *mut Comp,
    registers: *const u64,
    count: usize,
    stack: *const u64,
) -> bool {
    // SAFETY: the caller of the variadic function promises it.
    let (Some(comp), numbers) = (unsafe { comp.as_mut() }, unsafe { listed(registers, count, stack) }) else {
        return false;
    };
    numbers.fold(true, |all, number: c_int| all & comp.disable(number as c_uint))
}

variadic! {
    /// `rohc_comp_enable_profiles`.
    rohc_comp_enable_profiles: enable_all
}
variadic! {
    /// `rohc_comp_disable_profiles`.
    rohc_comp_disable_profiles: disable_all
}
