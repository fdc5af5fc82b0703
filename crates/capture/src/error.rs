//! What can be wrong with a capture file, and where.

use std::io;

use crate::Compression;

/// Why a capture file, or one record of it, could not be read. Offsets count octets from the start of the file; those of a
/// compressed file count octets of its content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system could not give the file's octets. Reading ends.
    #[error("cannot read the capture at offset {offset}")]
    Io {
        /// Octets that were read before.
        offset: u64,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file does not begin as a pcap or pcapng file does. Reading ends.
    #[error("not a capture file: no magic number of pcap or pcapng at offset 0: {found}; {advice}")]
    NotACapture {
        /// What it seems to be instead.
        found: &'static str,
        /// What its owner can do.
        advice: &'static str,
    },
    /// The file ends too early. All records before this one have been given. Reading ends.
    #[error("truncated file at offset {end}, {}, which starts at offset {offset}", place(*record))]
    Truncated {
        /// Where the record or block starts that is not whole.
        offset: u64,
        /// Where the file ends.
        end: u64,
        /// The number of the record that is not whole, or that would have followed the block that is not; 0 in the
        /// file header.
        record: u64,
    },
    /// The file breaks the rules of its format. See [`Error::ends_reading`].
    #[error("malformed file at offset {offset}, {}: {flaw}", place(*record))]
    Malformed {
        /// Where the record or block starts.
        offset: u64,
        /// The number of the record, or of the one that would have followed the block; 0 in the file header.
        record: u64,
        /// Which rule.
        flaw: Flaw,
    },
}

impl Error {
    /// Whether nothing after this can be read. If not, the reader goes on with the next record.
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

/// A rule of pcap (draft-ietf-opsawg-pcap) or pcapng (draft-ietf-opsawg-pcapng) which a file breaks, or a limit of this
/// crate which it exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// A version of the format which does not exist, or is too old to be read.
    #[error("version {major}.{minor} of the format is not supported")]
    Version {
        /// The major version number.
        major: u16,
        /// The minor version number.
        minor: u16,
    },
    /// A record or packet block longer than [`MAX_RECORD_LEN`](crate::MAX_RECORD_LEN).
    #[error("{length} octets in one record are more than this reader takes ({limit})")]
    TooLong {
        /// Octets that the file announces.
        length: u64,
        /// Octets that are allowed.
        limit: u64,
    },
    /// A block's total length is below 12 or not a multiple of 4.
    #[error("a block cannot be {length} octets long")]
    BlockLength {
        /// Octets that the file announces.
        length: u32,
    },
    /// The total lengths at the start and at the end of a block differ.
    #[error("the block's length is {first} at its start but {last} at its end")]
    BlockLengthsDiffer {
        /// Octets, as given at the start.
        first: u32,
        /// Octets, as given at the end.
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
    /// More Interface Description Blocks in a section than can be referred to in reason.
    #[error("more than {limit} interfaces in one section")]
    TooManyInterfaces {
        /// Interfaces that are allowed.
        limit: usize,
    },
    /// The compressed data cannot be decompressed, or its checksum is wrong.
    #[error("the {format} data is damaged")]
    Compression {
        /// Format of the data.
        format: Compression,
    },
    /// A packet block refers to an interface which no block before it describes. Only this record is lost.
    #[error("interface {interface} is not among the {described} described so far")]
    UnknownInterface {
        /// Interface ID, from 0.
        interface: u32,
        /// Interfaces described in this section before the packet.
        described: usize,
    },
    /// A packet block does not have room for its fields or for the octets which it announces. Only this record is lost.
    #[error("the packet does not fit in its block")]
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
