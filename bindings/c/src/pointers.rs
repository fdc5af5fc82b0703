//! Pointers of C as references. Every pointer may be null or unaligned, and every length may be anything: then the answer is an
//! error, and nothing has changed. Whatever else a pointer must be, the caller promises.

#![allow(unsafe_code, reason = "pointers of C become references here")]

use crate::abi::{Error, Packet};
use crate::memory::Handle;

/// Largest length of a slice.
pub(crate) const MAX_LEN: usize = isize::MAX as usize;

#[inline(always)]
pub(crate) fn is_aligned<T>(pointer: *const T) -> bool {
    !pointer.is_null() && pointer.is_aligned()
}

/// The handle behind a pointer.
///
/// # Safety
///
/// It is null or a handle that nobody else uses.
#[inline(always)]
pub(crate) unsafe fn of<'a>(handle: *mut Handle) -> Result<&'a mut Handle, Error> {
    // SAFETY: it is not null, and as the caller promises.
    if is_aligned(handle) { Ok(unsafe { &mut *handle }) } else { Err(Error::ARGUMENT) }
}

/// The value behind a pointer.
///
/// # Safety
///
/// It is null or can be read.
pub(crate) unsafe fn take<T: Copy>(value: *const T) -> Result<T, Error> {
    // SAFETY: it is not null and aligned, and as the caller promises.
    if is_aligned(value) { Ok(unsafe { value.read() }) } else { Err(Error::ARGUMENT) }
}

/// Writes a value.
///
/// # Safety
///
/// `place` is null or can be written.
pub(crate) unsafe fn give<T: Copy>(place: *mut T, value: T) -> Error {
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
pub(crate) unsafe fn give_len(place: *mut usize, run: impl FnOnce() -> Result<usize, Error>) -> Error {
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
pub(crate) unsafe fn input<'a>(input: *const u8, len: usize) -> Result<&'a [u8], Error> {
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
/// `from` is null or `len` octets, and `output` null or `size` octets.
#[inline(always)]
pub(crate) unsafe fn octets<'a>(
    from: *const u8,
    len: usize,
    output: *mut u8,
    size: usize,
) -> Result<(&'a [u8], &'a mut [u8]), Error> {
    if from.is_null() || output.is_null() || len | size > MAX_LEN {
        return Err(Error::ARGUMENT);
    }
    // One begins within the other.
    let ahead = (from as usize).wrapping_sub(output as usize);
    if ahead < size || ahead.wrapping_neg() < len {
        return Err(Error::OVERLAP);
    }
    // SAFETY: neither pointer is null, the octets of the one are none of the other, and as the caller promises.
    Ok(unsafe { (core::slice::from_raw_parts(from, len), core::slice::from_raw_parts_mut(output, size)) })
}

/// Packets of a batch.
///
/// # Safety
///
/// `packets` is null or has `count` of them.
pub(crate) unsafe fn list<'a>(packets: *mut Packet, count: usize) -> Result<&'a mut [Packet], Error> {
    if !is_aligned(packets) || count > MAX_LEN / size_of::<Packet>() {
        return Err(Error::ARGUMENT);
    }
    // SAFETY: the pointer is not null and aligned, and as the caller promises.
    Ok(unsafe { core::slice::from_raw_parts_mut(packets, count) })
}

impl Packet {
    /// Input and output of a packet.
    ///
    /// # Safety
    ///
    /// `input` is null or `input_len` octets, and `output` null or `output_size` octets.
    #[inline(always)]
    pub(crate) unsafe fn octets<'a>(&self) -> Result<(&'a [u8], &'a mut [u8]), Error> {
        // SAFETY: as the caller promises.
        unsafe { octets(self.input, self.input_len, self.output, self.output_size) }
    }
}
