//! Functions of the library. `thinair_rohc.h` documents them.
//!
//! Every pointer may be null, and every length may be anything: what cannot be used is answered by an error, before anything has
//! changed. Three things nobody can check, so the header asks for them: that a handle is one which was created and not yet
//! destroyed, that octets which a length promises are there, and that no other thread uses the handle meanwhile.

#![allow(unsafe_code, reason = "pointers of C become references here, and nowhere else")]

use core::ffi::{CStr, c_char, c_void};
use core::ptr::NonNull;

use thinair_rohc::packet::{self, Parts};
use thinair_rohc::{
    Arrival, Cid, CompressError, Compressed, DecompressError, Decompressed, Instant, ProfileId,
};

use crate::abi::{COMPRESSOR, Config, Context, DECOMPRESSOR, Error, NOT_COUNTED, Packet, Statistics};
use crate::memory::{ALIGNMENT, Handle};

/// Largest length of a slice.
const MAX_LEN: usize = isize::MAX as usize;

/// `thinair_rohc_version`.
#[unsafe(no_mangle)]
pub extern "C" fn thinair_rohc_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(text) => text,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// `thinair_rohc_error_text`.
#[unsafe(no_mangle)]
pub extern "C" fn thinair_rohc_error_text(error: Error) -> *const c_char {
    error.text().as_ptr()
}

/// `thinair_rohc_config_init`.
///
/// # Safety
///
/// `config` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_config_init(config: *mut Config) -> Error {
    // SAFETY: as the caller promises.
    unsafe { give(config, Config::new()) }
}

/// `thinair_rohc_size`.
///
/// # Safety
///
/// `config` is null or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_size(config: *const Config) -> usize {
    // SAFETY: as the caller promises.
    let config = unsafe { take(config) };
    let size = config.and_then(|config| config.check()).map(|config| Handle::size(&config));
    // The block may begin at any address.
    size.map_or(0, |size| size + ALIGNMENT - 1)
}

/// `thinair_rohc_create`.
///
/// # Safety
///
/// `config` is null or can be read, `handle` is null or can be written, and `memory` is null, or `size` octets that are lent until
/// the handle is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_create(
    config: *const Config,
    memory: *mut c_void,
    size: usize,
    handle: *mut *mut Handle,
) -> Error {
    if !is_aligned(handle) {
        return Error::ARGUMENT;
    }
    let create = || {
        // SAFETY: as the caller promises.
        let config = unsafe { take(config) }?.check()?;
        let Some(memory) = NonNull::new(memory.cast::<u8>()) else { return Handle::allocate(config) };
        let skip = memory.align_offset(ALIGNMENT);
        let room = size.min(MAX_LEN).checked_sub(skip).ok_or(Error::MEMORY)?;
        if room < Handle::size(&config) {
            return Err(Error::MEMORY);
        }
        // SAFETY: the memory is lent, and from its first aligned octet on there is room for the handle.
        Ok(unsafe { Handle::place(config, memory.add(skip), 0) })
    };
    let (result, created) = match create() {
        Ok(created) => (Error::OK, created.as_ptr()),
        Err(error) => (error, core::ptr::null_mut()),
    };
    // SAFETY: it is not null and aligned, so it can be written.
    unsafe { handle.write(created) };
    result
}

/// `thinair_rohc_destroy`.
///
/// # Safety
///
/// `handle` is null, or is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_destroy(handle: *mut Handle) {
    if let Some(handle) = NonNull::new(handle) {
        // SAFETY: as the caller promises.
        unsafe { Handle::destroy(handle) };
    }
}

/// `thinair_rohc_reset`.
///
/// # Safety
///
/// `handle` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_reset(handle: *mut Handle) -> Error {
    // SAFETY: as the caller promises.
    match unsafe { of(handle) } {
        Ok(handle) => {
            handle.reset();
            Error::OK
        }
        Err(error) => error,
    }
}

/// `thinair_rohc_keep`.
///
/// # Safety
///
/// `handle` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_keep(handle: *mut Handle) -> Error {
    // SAFETY: as the caller promises.
    match unsafe { of(handle) } {
        Ok(handle) => {
            handle.endpoint.begin_group();
            Error::OK
        }
        Err(error) => error,
    }
}

/// `thinair_rohc_compress`.
///
/// # Safety
///
/// `handle` is null or a handle, `input` and `output` are null or are of the given lengths, `output_len` is null or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_compress(
    handle: *mut Handle,
    now: u64,
    input: *const u8,
    input_len: usize,
    output: *mut u8,
    output_size: usize,
    output_len: *mut usize,
) -> Error {
    let compress = || {
        // SAFETY: as the caller promises.
        let (handle, (input, output)) =
            unsafe { (of(handle)?, octets(input, input_len, output, output_size)?) };
        handle.compress(now, input, output, |done| done.len)
    };
    // SAFETY: as the caller promises.
    unsafe { give_len(output_len, compress) }
}

/// `thinair_rohc_decompress`.
///
/// # Safety
///
/// As for [`thinair_rohc_compress`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_decompress(
    handle: *mut Handle,
    now: u64,
    lost: u32,
    input: *const u8,
    input_len: usize,
    output: *mut u8,
    output_size: usize,
    output_len: *mut usize,
) -> Error {
    let decompress = || {
        // SAFETY: as the caller promises.
        let (handle, (input, output)) =
            unsafe { (of(handle)?, octets(input, input_len, output, output_size)?) };
        handle.decompress(now, lost, input, output, |done| done.len)
    };
    // SAFETY: as the caller promises.
    unsafe { give_len(output_len, decompress) }
}

/// `thinair_rohc_compress_batch`.
///
/// # Safety
///
/// `handle` is null or a handle, and `packets` null or `count` packets, each of which is as for [`thinair_rohc_compress`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_compress_batch(
    handle: *mut Handle,
    now: u64,
    packets: *mut Packet,
    count: usize,
) -> usize {
    // SAFETY: as the caller promises.
    let (Ok(handle), Ok(packets)) = (unsafe { of(handle) }, unsafe { list(packets, count) }) else {
        return 0;
    };
    let mut done = 0;
    for packet in packets {
        // SAFETY: as the caller promises.
        let octets = unsafe { packet.octets() };
        let result = octets.and_then(|(input, output)| {
            handle.compress(now, input, output, |done| {
                packet.record(done.len, done.cid, done.profile, done.header_in, done.header_out)
            })
        });
        done += packet.finish(result);
    }
    done
}

/// `thinair_rohc_decompress_batch`.
///
/// # Safety
///
/// As for [`thinair_rohc_compress_batch`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_decompress_batch(
    handle: *mut Handle,
    now: u64,
    packets: *mut Packet,
    count: usize,
) -> usize {
    // SAFETY: as the caller promises.
    let (Ok(handle), Ok(packets)) = (unsafe { of(handle) }, unsafe { list(packets, count) }) else {
        return 0;
    };
    let mut done = 0;
    for packet in packets {
        // SAFETY: as the caller promises.
        let octets = unsafe { packet.octets() };
        let lost = packet.lost;
        let result = octets.and_then(|(input, output)| {
            handle.decompress(now, lost, input, output, |done| {
                packet.record(done.len, done.cid, done.profile, done.header_in, done.header_out)
            })
        });
        done += packet.finish(result);
    }
    done
}

/// `thinair_rohc_give_feedback`.
///
/// # Safety
///
/// `handle` is null or a handle, and `elements` null or `len` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_give_feedback(
    handle: *mut Handle,
    now: u64,
    elements: *const u8,
    len: usize,
) -> Error {
    let give = || {
        // SAFETY: as the caller promises.
        let (handle, elements) = unsafe { (of(handle)?, input(elements, len)?) };
        if !handle.config.has_compressor {
            return Err(Error::NO_SIDE);
        }
        let parts = packet::parts(elements).map_err(|_| Error::BAD_FEEDBACK)?;
        handle.take_feedback(now, parts)
    };
    give().err().unwrap_or(Error::OK)
}

/// `thinair_rohc_poll_feedback`.
///
/// # Safety
///
/// `handle` is null or a handle, and `output` null or `output_size` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_poll_feedback(
    handle: *mut Handle,
    output: *mut u8,
    output_size: usize,
) -> usize {
    if output.is_null() || output_size > MAX_LEN {
        return 0;
    }
    // SAFETY: as the caller promises.
    let Ok(handle) = (unsafe { of(handle) }) else { return 0 };
    // SAFETY: it is not null, and as the caller promises.
    let output = unsafe { core::slice::from_raw_parts_mut(output, output_size) };
    let len = handle.endpoint.poll_feedback(output);
    handle.statistics.feedback_out += u64::from(len.is_some());
    len.unwrap_or(0)
}

/// `thinair_rohc_feedback_in_front`.
///
/// # Safety
///
/// `packet` is null or `len` octets, and `elements_len` null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_feedback_in_front(
    packet: *const u8,
    len: usize,
    elements_len: *mut usize,
) -> *const u8 {
    // SAFETY: as the caller promises.
    let octets = unsafe { input(packet, len) };
    let parts = octets.ok().and_then(|octets| packet::parts(octets).ok());
    let elements = parts.map_or(&[][..], |parts| parts.feedback.octets());
    // SAFETY: as the caller promises.
    if unsafe { give(elements_len, elements.len()) } != Error::OK || elements.is_empty() {
        return core::ptr::null();
    }
    elements.as_ptr()
}

/// `thinair_rohc_get_statistics`.
///
/// # Safety
///
/// `handle` is null or a handle, and `statistics` null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_get_statistics(
    handle: *mut Handle,
    statistics: *mut Statistics,
) -> Error {
    // SAFETY: as the caller promises.
    match unsafe { of(handle) } {
        Ok(handle) => {
            let displaced_flows = u64::from(handle.endpoint.compressor.displaced_flows());
            // SAFETY: as the caller promises.
            unsafe { give(statistics, Statistics { displaced_flows, ..handle.statistics }) }
        }
        Err(error) => error,
    }
}

/// `thinair_rohc_get_context`.
///
/// # Safety
///
/// `handle` is null or a handle, and `context` null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinair_rohc_get_context(
    handle: *mut Handle,
    side: u8,
    cid: u16,
    context: *mut Context,
) -> Error {
    let look = || {
        // SAFETY: as the caller promises.
        let endpoint = &unsafe { of(handle)? }.endpoint;
        let cid = Cid::new(cid).ok_or(Error::BAD_CID)?;
        let state = match side {
            COMPRESSOR => endpoint.compressor.context(cid),
            DECOMPRESSOR => endpoint.decompressor.context(cid),
            _ => return Err(Error::ARGUMENT),
        };
        let state = state.ok_or(Error::NO_CONTEXT)?;
        let number = match state.state {
            "IR" | "NC" => 1,
            "FO" | "SC" => 2,
            _ => 3,
        };
        let profile = state.profile.number();
        Ok(Context { profile, state: number, mode: state.mode.bits(), sn: state.sn.unwrap_or(0) })
    };
    match look() {
        // SAFETY: as the caller promises.
        Ok(found) => unsafe { give(context, found) },
        Err(error) => error,
    }
}

impl Handle {
    /// Compresses a packet, counts it, and hands the outcome to `record`.
    #[inline(always)]
    fn compress<T>(
        &mut self,
        now: u64,
        input: &[u8],
        output: &mut [u8],
        record: impl FnOnce(&Compressed) -> T,
    ) -> Result<T, Error> {
        if !self.config.has_compressor {
            return Err(Error::NO_SIDE);
        }
        let now = Instant::from_nanos(now);
        let result = match (self.config.has_decompressor, self.config.feedback_in_front) {
            (false, _) => self.endpoint.compressor.compress(now, input, output),
            (true, false) => self.endpoint.compress(now, input, output),
            (true, true) => self.endpoint.send(now, input, output),
        };
        match result {
            Ok(done) => Ok(record(self.statistics.count_compressed(input, &done))),
            Err(error) => self.compress_otherwise(now, input, output, error).map(|done| record(&done)),
        }
    }

    /// Sends what is no IP packet by profile 0x0000.
    #[cold]
    fn compress_otherwise(
        &mut self,
        now: Instant,
        input: &[u8],
        output: &mut [u8],
        error: CompressError,
    ) -> Result<Compressed, Error> {
        let result = match error {
            CompressError::NotIp(_) => self.endpoint.compressor.uncompressed(now, input, output),
            error => Err(error),
        };
        match result {
            Ok(done) => Ok(*self.statistics.count_compressed(input, &done)),
            Err(error) => {
                self.statistics.compress_errors += 1;
                Err(error.into())
            }
        }
    }

    /// Decompresses a packet, counts it, and hands the outcome to `record`.
    #[inline(always)]
    fn decompress<T>(
        &mut self,
        now: u64,
        lost: u32,
        input: &[u8],
        output: &mut [u8],
        record: impl FnOnce(&Decompressed) -> T,
    ) -> Result<T, Error> {
        if !self.config.has_decompressor {
            return Err(Error::NO_SIDE);
        }
        let now = Instant::from_nanos(now);
        let arrival = Arrival { now, lost: (lost != NOT_COUNTED).then_some(lost) };
        let counters = &mut self.statistics;
        let result = if self.config.has_compressor {
            if input.first().is_some_and(|first| *first >= packet::PADDING)
                && let Ok(parts) = packet::parts(input)
            {
                // The endpoint hands them to the compressor.
                counters.feedback_in += parts.feedback.count() as u64;
            }
            self.endpoint.receive(arrival, input, output)
        } else {
            self.endpoint.decompressor.decompress(arrival, input, output)
        };
        match result {
            Ok(done) => {
                counters.decompressed_packets += 1;
                counters.decompressed_octets_in += input.len() as u64;
                counters.decompressed_octets_out += done.len as u64;
                Ok(record(&done))
            }
            Err(error) => Err(self.decompress_failed(error)),
        }
    }

    #[cold]
    fn decompress_failed(&mut self, error: DecompressError) -> Error {
        self.statistics.decompress_errors += u64::from(error != DecompressError::NothingYet);
        error.into()
    }

    /// Hands all elements to the compressor. An error if one was refused.
    fn take_feedback(&mut self, now: u64, parts: Parts<'_>) -> Result<(), Error> {
        let mut result = Ok(());
        for element in parts.feedback {
            self.statistics.feedback_in += 1;
            let taken = self.endpoint.compressor.receive_feedback(Instant::from_nanos(now), element);
            if taken.is_err() {
                self.statistics.feedback_in_refused += 1;
                result = Err(Error::BAD_FEEDBACK);
            }
        }
        result
    }
}

impl Statistics {
    /// Counts a packet that was compressed.
    #[inline(always)]
    fn count_compressed<'d>(&mut self, input: &[u8], done: &'d Compressed) -> &'d Compressed {
        self.compressed_packets += 1;
        self.compressed_octets_in += input.len() as u64;
        self.compressed_octets_out += done.len as u64;
        self.compressed_header_in += done.header_in as u64;
        self.compressed_header_out += done.header_out as u64;
        done
    }
}

impl Packet {
    /// Input and output of a packet.
    ///
    /// # Safety
    ///
    /// As for [`thinair_rohc_compress`].
    #[inline(always)]
    unsafe fn octets<'a>(&self) -> Result<(&'a [u8], &'a mut [u8]), Error> {
        // SAFETY: as the caller promises.
        unsafe { octets(self.input, self.input_len, self.output, self.output_size) }
    }

    /// Notes an outcome.
    #[inline(always)]
    fn record(&mut self, len: usize, cid: Cid, profile: ProfileId, header_in: usize, header_out: usize) {
        self.output_len = len;
        (self.cid, self.profile) = (cid.value(), profile.number());
        (self.header_in, self.header_out) = (header_in as u32, header_out as u32);
    }

    /// Notes whether there was an outcome, and counts it.
    #[inline(always)]
    fn finish(&mut self, result: Result<(), Error>) -> usize {
        match result {
            Ok(()) => {
                self.error = Error::OK.0;
                1
            }
            Err(error) => {
                (self.error, self.output_len) = (error.0, 0);
                (self.cid, self.profile, self.header_in, self.header_out) = (0, 0, 0, 0);
                0
            }
        }
    }
}

#[inline(always)]
fn is_aligned<T>(pointer: *const T) -> bool {
    !pointer.is_null() && pointer.is_aligned()
}

/// The handle behind a pointer.
///
/// # Safety
///
/// It is null or a handle that nobody else uses.
#[inline(always)]
unsafe fn of<'a>(handle: *mut Handle) -> Result<&'a mut Handle, Error> {
    // SAFETY: it is not null, and as the caller promises.
    if is_aligned(handle) { Ok(unsafe { &mut *handle }) } else { Err(Error::ARGUMENT) }
}

/// The value behind a pointer.
///
/// # Safety
///
/// It is null or can be read.
unsafe fn take<T: Copy>(value: *const T) -> Result<T, Error> {
    // SAFETY: it is not null and aligned, and as the caller promises.
    if is_aligned(value) { Ok(unsafe { value.read() }) } else { Err(Error::ARGUMENT) }
}

/// Writes a value.
///
/// # Safety
///
/// `place` is null or can be written.
unsafe fn give<T: Copy>(place: *mut T, value: T) -> Error {
    if !is_aligned(place) {
        return Error::ARGUMENT;
    }
    // SAFETY: it is not null and aligned, and as the caller promises.
    unsafe { place.write(value) };
    Error::OK
}

/// Writes the length of an output: 0 on failure. Nothing is done if there is no place for it.
///
/// # Safety
///
/// `place` is null or can be written.
#[inline(always)]
unsafe fn give_len(place: *mut usize, run: impl FnOnce() -> Result<usize, Error>) -> Error {
    if !is_aligned(place) {
        return Error::ARGUMENT;
    }
    let (error, len) = match run() {
        Ok(len) => (Error::OK, len),
        Err(error) => (error, 0),
    };
    // SAFETY: it is not null and aligned, and as the caller promises.
    unsafe { place.write(len) };
    error
}

/// Octets to be read.
///
/// # Safety
///
/// There are none, or `len` octets.
#[inline(always)]
unsafe fn input<'a>(input: *const u8, len: usize) -> Result<&'a [u8], Error> {
    if input.is_null() || len > MAX_LEN {
        return Err(Error::ARGUMENT);
    }
    // SAFETY: the pointer is not null, and as the caller promises.
    Ok(unsafe { core::slice::from_raw_parts(input, len) })
}

/// Octets to be read and to be written, which do not overlap.
///
/// # Safety
///
/// As for [`thinair_rohc_compress`].
#[inline(always)]
unsafe fn octets<'a>(
    from: *const u8,
    len: usize,
    output: *mut u8,
    size: usize,
) -> Result<(&'a [u8], &'a mut [u8]), Error> {
    // SAFETY: as the caller promises.
    let from = unsafe { input(from, len)? };
    if output.is_null() || size > MAX_LEN {
        return Err(Error::ARGUMENT);
    }
    // One begins within the other.
    let ahead = (from.as_ptr() as usize).wrapping_sub(output as usize);
    if ahead < size || ahead.wrapping_neg() < len {
        return Err(Error::OVERLAP);
    }
    // SAFETY: the pointer is not null, the octets are none of the input, and as the caller promises.
    Ok((from, unsafe { core::slice::from_raw_parts_mut(output, size) }))
}

/// Packets of a batch.
///
/// # Safety
///
/// `packets` is null or has `count` of them.
unsafe fn list<'a>(packets: *mut Packet, count: usize) -> Result<&'a mut [Packet], Error> {
    if !is_aligned(packets) || count > MAX_LEN / size_of::<Packet>() {
        return Err(Error::ARGUMENT);
    }
    // SAFETY: the pointer is not null and aligned, and as the caller promises.
    Ok(unsafe { core::slice::from_raw_parts_mut(packets, count) })
}
