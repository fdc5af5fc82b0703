//! Errors in capture files, with their positions.

use std::io;

use crate::Compression;

/// Reason why a capture file, or one record of it, cannot be read. Offsets count octets from the start of the
/// file, after decompression.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading the file failed. Reading ends.
    #[error("cannot read the capture at offset {offset}")]
    Io {
        /// Octets read before.
        offset: u64,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file begins neither as pcap nor as pcapng. Reading ends.
    #[error("not a capture file: no magic number of pcap or pcapng at offset 0: {found}; {advice}")]
    NotACapture {
        /// Probable type of the file.
        found: &'static str,
        /// Advice to the user.
        advice: &'static str,
    },
    /// The file is truncated. All earlier records have been returned. Reading ends.
    #[error("truncated file at offset {end}, {}, which starts at offset {offset}", place(*record))]
    Truncated {
        /// Start of the incomplete record or block.
        offset: u64,
        /// End of the file.
        end: u64,
        /// Number of the incomplete record, or of the record that would have followed the incomplete block; 0
        /// in the file header.
        record: u64,
    },
    /// The file violates its format. See [`Error::ends_reading`].
    #[error("malformed file at offset {offset}, {}: {flaw}", place(*record))]
    Malformed {
        /// Start of the record or block.
        offset: u64,
        /// The number of the record, or of the one that would have followed the block; 0 in the file header.
        record: u64,
        /// Violated rule.
        flaw: Flaw,
    },
}

impl Error {
    /// True if no further record can be read. Otherwise the reader continues with the next record.
    pub const fn ends_reading(&self) -> bool {
        match self {
            Self::Io { .. } | Self::NotACapture { .. } | Self::Truncated { .. } => true,
            Self::Malformed { flaw, .. } => flaw.ends_reading(),
        }
    }
}

fn place(record: u64) -> String {
    match record {
        0 => "in the file header".to_owned(),
        number => format!("record {number}"),
    }
}

/// Violated rule of pcap (draft-ietf-opsawg-pcap) or pcapng (draft-ietf-opsawg-pcapng), or exceeded limit of
/// this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// A version of the format that does not exist, or that is too old.
    #[error("version {major}.{minor} of the format is not supported")]
    Version {
        /// The major version number.
        major: u16,
        /// The minor version number.
        minor: u16,
    },
    /// A record or packet block longer than [`MAX_RECORD_LEN`](crate::MAX_RECORD_LEN).
    #[error("a record of {length} octets exceeds the limit of {limit}")]
    TooLong {
        /// Length in the file, in octets.
        length: u64,
        /// Limit in octets.
        limit: u64,
    },
    /// A block's total length is below 12 or not a multiple of 4.
    #[error("invalid block length {length}: not a multiple of 4 from 12 on")]
    BlockLength {
        /// Length in the file, in octets.
        length: u32,
    },
    /// The total lengths at the start and at the end of a block differ.
    #[error("block length {first} at the start of the block, {last} at its end")]
    BlockLengthsDiffer {
        /// Length at the start, in octets.
        first: u32,
        /// Length at the end, in octets.
        last: u32,
    },
    /// A Section Header Block without byte-order magic.
    #[error("the section header has no byte-order magic")]
    ByteOrderMagic,
    /// A Section Header Block or Interface Description Block is too short for its fields.
    #[error("block of type {block_type} is too short for its fields")]
    BlockTooShort {
        /// The block type.
        block_type: u32,
    },
    /// The number of Interface Description Blocks in a section exceeds the limit.
    #[error("more than {limit} interfaces in one section")]
    TooManyInterfaces {
        /// Maximum number of interfaces.
        limit: usize,
    },
    /// The compressed data is invalid, or its checksum is wrong.
    #[error("the {format} data is damaged")]
    Compression {
        /// Format of the data.
        format: Compression,
    },
    /// A packet block refers to an interface without a preceding description. Only this record is lost.
    #[error("interface {interface} is undefined; the section has defined {described} so far")]
    UnknownInterface {
        /// Interface ID, from 0.
        interface: u32,
        /// Interfaces described in this section before the packet.
        described: usize,
    },
    /// A packet block is too short for its fields or for its captured length. Only this record is lost.
    #[error("the packet is longer than its block")]
    PacketTooLong,
}

impl Flaw {
    const fn ends_reading(self) -> bool {
        match self {
            Self::Version { .. }
            | Self::TooLong { .. }
            | Self::BlockLength { .. }
            | Self::BlockLengthsDiffer { .. }
            | Self::ByteOrderMagic
            | Self::BlockTooShort { .. }
            | Self::TooManyInterfaces { .. }
            | Self::Compression { .. } => true,
            Self::UnknownInterface { .. } | Self::PacketTooLong => false,
        }
    }
}
