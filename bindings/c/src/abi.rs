//! Structures and constants as C sees them. `thinair_rohc.h` documents them.

use core::ffi::CStr;

use thinair_rohc::packet::PartsError;
use thinair_rohc::{CompressError, DecompressError};

/// Result of a function: `int32_t` in C, for the size of an enumeration depends on the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Error(pub i32);

/// Declares the results, and their texts.
macro_rules! errors {
    ($($name:ident = $number:literal $text:literal;)+) => {
        impl Error {
            $(#[doc = $text] pub const $name: Self = Self($number);)+

            /// Names and numbers.
            pub const ALL: &'static [(&'static str, i32)] = &[$((stringify!($name), $number)),+];

            /// The text.
            pub const fn text(self) -> &'static CStr {
                match self.0 {
                    $($number => match CStr::from_bytes_with_nul(concat!($text, "\0").as_bytes()) {
                        Ok(text) => text,
                        Err(_) => c"",
                    },)+
                    _ => c"unknown result",
                }
            }
        }
    };
}

errors! {
    OK = 0 "success";
    NOTHING_YET = 1 "the packet holds feedback alone, or a segment of a packet that goes on";
    ARGUMENT = 2 "a pointer is null or not aligned, or a length is impossible";
    OVERLAP = 3 "input and output overlap";
    MAX_CID = 4 "MAX_CID is beyond the CID space: 15 for small CIDs, 16383 for large ones";
    PROFILES = 5 "two variants of one profile, or a profile that is not in this build";
    CONFIG = 6 "a parameter of the configuration is out of range";
    MEMORY = 7 "the memory is too small, or there is none";
    NO_SIDE = 8 "the handle has no compressor, or no decompressor";
    OUTPUT_TOO_SMALL = 9 "the output buffer is too small";
    BAD_CID = 10 "the CID cannot be read, or is beyond MAX_CID";
    NO_CONTEXT = 11 "there is no context, and the packet does not establish one";
    UNSUPPORTED_PROFILE = 12 "the channel does not have the profile that the packet names";
    MALFORMED = 13 "the octets are no packet of the profile";
    NOT_ALLOWED = 14 "the state of the context does not allow this packet";
    BAD_CRC = 15 "the CRC does not match";
    UNKNOWN_ITEM = 16 "the packet refers to an item that was never received";
    AMBIGUOUS = 17 "the packet may be late or a duplicate, and would then mean something else";
    HELD_BACK = 18 "the context was repaired, and this packet is held back";
    CONTEXT_MEMORY = 19 "no memory for the extension headers of the flow";
    BAD_SEGMENT = 20 "the reassembled packet is too large, or its CRC does not match";
    BAD_FEEDBACK = 21 "the feedback is damaged, or for a context that does not exist";
}

impl From<CompressError> for Error {
    fn from(error: CompressError) -> Self {
        match error {
            // Octets that are no IP packet go by profile 0x0000.
            CompressError::NotIp(_) => Self::ARGUMENT,
            CompressError::OutputTooSmall { .. } => Self::OUTPUT_TOO_SMALL,
            CompressError::NoContexts => Self::MEMORY,
        }
    }
}

impl From<DecompressError> for Error {
    fn from(error: DecompressError) -> Self {
        match error {
            DecompressError::Packet(PartsError::Empty | PartsError::Feedback { .. })
            | DecompressError::Malformed(_) => Self::MALFORMED,
            DecompressError::NothingYet => Self::NOTHING_YET,
            DecompressError::Segment(_) => Self::BAD_SEGMENT,
            DecompressError::Cid => Self::BAD_CID,
            DecompressError::NoContext(_) => Self::NO_CONTEXT,
            DecompressError::UnsupportedProfile(..) => Self::UNSUPPORTED_PROFILE,
            DecompressError::NotAllowed(..) => Self::NOT_ALLOWED,
            DecompressError::Crc(..) => Self::BAD_CRC,
            DecompressError::UnknownItem(..)
            | DecompressError::UnknownTemplate(..)
            | DecompressError::UnknownRequest(..) => Self::UNKNOWN_ITEM,
            DecompressError::Ambiguous(..) => Self::AMBIGUOUS,
            DecompressError::OnTrial(..) => Self::HELD_BACK,
            DecompressError::NoMemory(_) => Self::CONTEXT_MEMORY,
            DecompressError::OutputTooSmall { .. } => Self::OUTPUT_TOO_SMALL,
        }
    }
}

/// Declares a structure of C with its fields, and a list of their offsets.
macro_rules! structure {
    ($(#[$doc:meta])+ $name:ident $c:literal { $($field:ident: $type:ty,)+ }) => {
        $(#[$doc])+
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        pub struct $name {
            $(#[allow(missing_docs, reason = "the header documents them")] pub $field: $type,)+
        }

        impl $name {
            /// Name in C, size, and the offset of each field.
            pub const LAYOUT: (&'static str, usize, &'static [(&'static str, usize)]) = (
                $c,
                size_of::<Self>(),
                &[$((stringify!($field), core::mem::offset_of!(Self, $field))),+],
            );
        }
    };
}

structure! {
    /// Parameters of a handle.
    Config "thinair_rohc_config" {
        size: u32,
        profiles: u32,
        max_cid: u16,
        mrru: u16,
        large_cids: u8,
        sides: u8,
        mode: u8,
        repetitions: u8,
        window: u8,
        counted: u8,
        feedback_in_front: u8,
        integrity: u8,
        rtp_guess: u8,
        rtp_port_count: u8,
        rtp_ports: [u16; 8],
        extension_flows: u16,
        refresh_packets: u32,
        refresh_ms: u32,
        seed: u64,
    }
}

structure! {
    /// One packet of a batch.
    Packet "thinair_rohc_packet" {
        input: *const u8,
        input_len: usize,
        output: *mut u8,
        output_size: usize,
        output_len: usize,
        lost: u32,
        error: i32,
        cid: u16,
        profile: u16,
        header_in: u32,
        header_out: u32,
    }
}

structure! {
    /// Counters of a handle.
    Statistics "thinair_rohc_statistics" {
        compressed_packets: u64,
        compressed_octets_in: u64,
        compressed_octets_out: u64,
        compressed_header_in: u64,
        compressed_header_out: u64,
        compress_errors: u64,
        decompressed_packets: u64,
        decompressed_octets_in: u64,
        decompressed_octets_out: u64,
        decompress_errors: u64,
        feedback_in: u64,
        feedback_in_refused: u64,
        feedback_out: u64,
        displaced_flows: u64,
    }
}

structure! {
    /// State of one context.
    Context "thinair_rohc_context" {
        profile: u16,
        state: u8,
        mode: u8,
        sn: u32,
    }
}

/// Packets lost before this one that nobody has counted.
pub const NOT_COUNTED: u32 = u32::MAX;

/// The handle has a compressor.
pub const COMPRESSOR: u8 = 1;

/// The handle has a decompressor.
pub const DECOMPRESSOR: u8 = 2;

/// Numbers of the profiles, by their bit in a set: the nine of RRC in its order, and further ones.
pub const PROFILES: [u16; 13] =
    [0x0001, 0x0002, 0x0003, 0x0004, 0x0006, 0x0101, 0x0102, 0x0103, 0x0104, 0x0007, 0x0008, 0x0181, 0x0182];
