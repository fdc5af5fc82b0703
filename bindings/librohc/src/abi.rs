//! Structures and numbers as C sees them. The headers document them.

#![allow(unsafe_code, reason = "pointers of C become references here")]
#![allow(missing_docs, reason = "the headers document every field and number")]

use std::ffi::{c_char, c_int, c_uint, c_void};

/// A random number.
pub type RandomCallback = unsafe extern "C" fn(*const crate::comp::Comp, *mut c_void) -> c_int;

/// True if a datagram is RTP. Arguments: innermost IP header, UDP header, payload, its octets.
pub type RtpCallback = unsafe extern "C" fn(*const u8, *const u8, *const u8, c_uint, *mut c_void) -> bool;

/// A trace.
pub type TraceCallback = unsafe extern "C" fn(*mut c_void, c_uint, c_uint, c_int, *const c_char, ...);

/// `rohc_status_t`.
pub type Status = c_uint;

pub const OK: Status = 0;
pub const SEGMENT: Status = 1;
pub const MALFORMED: Status = 2;
pub const NO_CONTEXT: Status = 3;
pub const BAD_CRC: Status = 4;
pub const OUTPUT_TOO_SMALL: Status = 5;
pub const ERROR: Status = 6;

/// `rohc_cid_type_t`.
pub const LARGE_CID: c_uint = 0;
pub const SMALL_CID: c_uint = 1;

/// `rohc_ts`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Time {
    pub sec: u64,
    pub nsec: u64,
}

/// `rohc_buf`: octets with room around them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Buf {
    pub time: Time,
    pub data: *mut u8,
    pub max_len: usize,
    pub offset: usize,
    pub len: usize,
}

impl Buf {
    /// The octets, if the buffer is well-formed.
    ///
    /// # Safety
    ///
    /// `data` is null or has `max_len` octets.
    #[inline(always)]
    pub(crate) unsafe fn octets<'a>(&self) -> Option<&'a [u8]> {
        if self.is_malformed() {
            return None;
        }
        // SAFETY: the octets are within the buffer, as was just checked.
        Some(unsafe { core::slice::from_raw_parts(self.data.add(self.offset), self.len) })
    }

    /// The room behind the octets, if the buffer is well-formed.
    ///
    /// # Safety
    ///
    /// `data` is null or has `max_len` octets, and nobody else uses those behind the octets.
    #[inline(always)]
    pub(crate) unsafe fn room<'a>(&self) -> Option<&'a mut [u8]> {
        if self.is_malformed() {
            return None;
        }
        let at = self.offset + self.len;
        // SAFETY: the room is within the buffer, as was just checked.
        Some(unsafe { core::slice::from_raw_parts_mut(self.data.add(at), self.max_len - at) })
    }

    /// True if one of two buffers begins within the other.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let ahead = (self.data as usize).wrapping_sub(other.data as usize);
        ahead < other.max_len || ahead.wrapping_neg() < self.max_len
    }

    #[inline(always)]
    fn is_malformed(&self) -> bool {
        self.data.is_null()
            || self.max_len == 0
            || self.max_len > isize::MAX as usize
            || self.offset.checked_add(self.len).is_none_or(|end| end > self.max_len)
    }
}

/// `rohc_comp_last_packet_info2_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed)]
pub struct CompLastPacket {
    pub version: [u16; 2],
    pub context_id: u32,
    pub is_context_init: bool,
    pub context_mode: u32,
    pub context_state: u32,
    pub context_used: bool,
    pub profile_id: u32,
    pub packet_type: u32,
    pub total_last_uncomp_size: u64,
    pub header_last_uncomp_size: u64,
    pub total_last_comp_size: u64,
    pub header_last_comp_size: u64,
}

/// `rohc_comp_general_info_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed)]
pub struct CompGeneral {
    pub version: [u16; 2],
    pub contexts_nr: u64,
    pub packets_nr: u64,
    pub uncomp_bytes_nr: u64,
    pub comp_bytes_nr: u64,
}

/// `rohc_decomp_last_packet_info_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed)]
pub struct DecompLastPacket {
    pub version: [u16; 2],
    pub context_mode: u32,
    pub context_state: u32,
    pub profile_id: u32,
    pub nr_lost_packets: u64,
    pub nr_misordered_packets: u64,
    pub is_duplicated: bool,
    pub corrected: [u64; 3],
    pub packet_type: u32,
    pub total_last_comp_size: u64,
    pub header_last_comp_size: u64,
    pub total_last_uncomp_size: u64,
    pub header_last_uncomp_size: u64,
}

/// `rohc_decomp_context_info_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed)]
pub struct DecompContext {
    pub version: [u16; 2],
    pub packets_nr: u64,
    pub comp_bytes_nr: u64,
    pub uncomp_bytes_nr: u64,
    pub corrected: [u64; 3],
}

/// `rohc_decomp_general_info_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed)]
pub struct DecompGeneral {
    pub version: [u16; 2],
    pub contexts_nr: u64,
    pub packets_nr: u64,
    pub comp_bytes_nr: u64,
    pub uncomp_bytes_nr: u64,
    pub corrected: [u64; 3],
}

/// Marks structures that begin with two `u16` of a version, have no padding, and may have any octets.
///
/// # Safety
///
/// The structure is packed and begins with `version`.
pub(crate) unsafe trait Versioned: Copy {}

// SAFETY: packed, and begins with `version`.
unsafe impl Versioned for CompLastPacket {}
// SAFETY: packed, and begins with `version`.
unsafe impl Versioned for CompGeneral {}
// SAFETY: packed, and begins with `version`.
unsafe impl Versioned for DecompLastPacket {}
// SAFETY: packed, and begins with `version`.
unsafe impl Versioned for DecompContext {}
// SAFETY: packed, and begins with `version`.
unsafe impl Versioned for DecompGeneral {}

/// Writes as much of `value` as the version that the caller has set in `info` has: `sizes` are those of versions 0.0, 0.1 and so on.
/// Returns false for another version.
///
/// # Safety
///
/// `info` is null or a structure of the version that stands in it.
pub(crate) unsafe fn answer<T: Versioned>(info: *mut T, value: T, sizes: &[usize]) -> bool {
    const VERSION: usize = 4;
    if info.is_null() {
        return false;
    }
    // SAFETY: not null, and the structure begins with its version.
    let [major, minor] = unsafe { info.cast::<[u16; 2]>().read_unaligned() };
    let Some(&size) = sizes.get(usize::from(minor)).filter(|_| major == 0) else { return false };
    // SAFETY: `size` octets are those of the caller's version, and none of them is behind the end of `value`; the two do not overlap.
    unsafe {
        let from = (&raw const value).cast::<u8>().add(VERSION);
        core::ptr::copy_nonoverlapping(
            from,
            info.cast::<u8>().add(VERSION),
            size.min(size_of::<T>()) - VERSION,
        );
    }
    true
}

/// Writes a value, if there is a place for it.
///
/// # Safety
///
/// `place` is null or can be written.
pub(crate) unsafe fn give<T>(place: *mut T, value: T) -> bool {
    if place.is_null() {
        return false;
    }
    // SAFETY: not null, and as the caller promises.
    unsafe { place.write_unaligned(value) };
    true
}

/// The four functions that take profiles as a list of variable length, which ends with -1. C passes such a list in registers and
/// then on the stack; each function puts the registers on its stack and calls a common one with both.
macro_rules! variadic {
    ($(#[$doc:meta])* $name:ident: $to:path) => {
        #[cfg(all(target_arch = "x86_64", not(windows)))]
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// The first argument is null or a handle, and others follow, of which one is -1.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "sub rsp, 56",
                "mov [rsp], rsi",
                "mov [rsp + 8], rdx",
                "mov [rsp + 16], rcx",
                "mov [rsp + 24], r8",
                "mov [rsp + 32], r9",
                "mov rsi, rsp",
                "mov edx, 5",
                "lea rcx, [rsp + 64]",
                "call {}",
                "add rsp, 56",
                "ret",
                sym $to,
            )
        }

        #[cfg(all(target_arch = "aarch64", not(target_vendor = "apple"), not(windows)))]
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// The first argument is null or a handle, and others follow, of which one is -1.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, #-80]!",
                "stp x1, x2, [sp, #16]",
                "stp x3, x4, [sp, #32]",
                "stp x5, x6, [sp, #48]",
                "str x7, [sp, #64]",
                "add x1, sp, #16",
                "mov x2, #7",
                "add x3, sp, #80",
                "bl {}",
                "ldp x29, x30, [sp], #80",
                "ret",
                sym $to,
            )
        }

        #[cfg(not(any(
            all(target_arch = "x86_64", not(windows)),
            all(target_arch = "aarch64", not(target_vendor = "apple"), not(windows))
        )))]
        $(#[$doc])*
        ///
        /// Lists are not read on this machine: false.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> bool {
            false
        }
    };
}
pub(crate) use variadic;

/// The profiles of such a list, up to -1. Lists of more than 32 end there, for one that long has no end.
///
/// # Safety
///
/// There are `count` slots at `registers`, and at `stack` those that follow, up to one that is -1.
pub(crate) unsafe fn listed(
    registers: *const u64,
    count: usize,
    stack: *const u64,
) -> impl Iterator<Item = c_int> {
    // SAFETY: as the caller promises; nothing is read behind -1.
    let slot = move |i: usize| unsafe {
        if i < count { registers.add(i).read() } else { stack.add(i - count).read() }
    };
    (0..32).map(move |i| slot(i) as c_int).take_while(|number| *number != -1)
}
