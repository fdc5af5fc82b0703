//! Functions of the library. `thinair_rohc.h` documents them.
//!
//! Three things cannot be checked, so the header asks for them: that a handle was created and is not yet destroyed, that octets
//! which a length promises are there, and that no other thread uses the handle meanwhile.

#![allow(unsafe_code, reason = "the functions that C calls")]

use core::ffi::{CStr, c_char, c_void};
use core::ptr::NonNull;

use thinair_rohc::{Cid, packet};

use crate::abi::{COMPRESSOR, Config, Context, DECOMPRESSOR, Error, Packet, Statistics};
use crate::memory::{ALIGNMENT, Handle};
use crate::pointers::{MAX_LEN, give, give_len, input, is_aligned, list, octets, of, take};

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
    unsafe {
        batch(handle, packets, count, |handle, packet, input, output| {
            handle.compress(now, input, output, |done| {
                packet.record(done.len, done.cid, done.profile, done.header_in, done.header_out)
            })
        })
    }
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
    unsafe {
        batch(handle, packets, count, |handle, packet, input, output| {
            handle.decompress(now, packet.lost, input, output, |done| {
                packet.record(done.len, done.cid, done.profile, done.header_in, done.header_out)
            })
        })
    }
}

/// Runs `each` on every packet of a batch, and returns how many succeeded.
///
/// # Safety
///
/// As for [`thinair_rohc_compress_batch`].
#[inline(always)]
unsafe fn batch(
    handle: *mut Handle,
    packets: *mut Packet,
    count: usize,
    each: impl Fn(&mut Handle, &mut Packet, &[u8], &mut [u8]) -> Result<(), Error>,
) -> usize {
    // SAFETY: as the caller promises.
    let (Ok(handle), Ok(packets)) = (unsafe { of(handle) }, unsafe { list(packets, count) }) else {
        return 0;
    };
    let mut done = 0;
    for packet in packets {
        // SAFETY: as the caller promises.
        let octets = unsafe { packet.octets() };
        match octets.and_then(|(input, output)| each(handle, packet, input, output)) {
            Ok(()) => done += 1,
            Err(error) => packet.fail(error),
        }
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
