//! What becomes of packets and units.

use thinair_rohc::{CompressError, Compressed, DecompressError};

use crate::unit::Protocol;

/// What became of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// How it was compressed; `None`: it went as it is.
    pub compressed: Option<Compressed>,
    /// Units, which are several if they are segments.
    pub units: usize,
    /// Octets of all units, with feedback.
    pub octets: usize,
}

/// Why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// The compressor does not take it.
    #[error("{0}")]
    Compress(CompressError),
    /// It is no Ethernet frame.
    #[error("{0} octets are no Ethernet frame")]
    ShortFrame(usize),
    /// A frame with the EtherType of ROHC: it would be taken for one of ours.
    #[error("a frame with EtherType 0x22F1 (ROHC), which is taken by the tunnel itself")]
    RohcFrame,
    /// Longer than the interface has been told.
    #[error("the packet has {octets} octets, there is room for {most}")]
    TooLong {
        /// Octets of the packet, or of the unit that it became.
        octets: usize,
        /// Most that there may be.
        most: usize,
    },
    /// This site of a mesh only hears.
    #[error("this site only hears")]
    OnlyHears,
}

impl NotSent {
    /// A stable name for reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Compress(CompressError::NotIp(_)) => "not_ip",
            Self::Compress(CompressError::OutputTooSmall { .. }) | Self::TooLong { .. } => "too_long",
            Self::Compress(CompressError::NoContexts) => "no_contexts",
            Self::ShortFrame(_) => "short_frame",
            Self::RohcFrame => "rohc_frame",
            Self::OnlyHears => "only_hears",
        }
    }
}

/// Why nothing was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReceived {
    /// The decompressor refuses it.
    #[error("{0}")]
    Decompress(DecompressError),
    /// Units of this kind are not agreed on.
    #[error("a unit of kind {0:?}, which this channel does not carry")]
    Unexpected(Protocol),
    /// The unit is not what it says.
    #[error("a unit of kind {0:?} that is none")]
    Malformed(Protocol),
    /// The site is not in the mesh, or not told.
    #[error("from a site that is not in the mesh")]
    UnknownSite,
    /// It is for another site.
    #[error("for another site")]
    NotForUs,
}

impl NotReceived {
    /// A stable name for reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Decompress(error) => error.name(),
            Self::Unexpected(_) => "unexpected_unit",
            Self::Malformed(_) => "malformed_unit",
            Self::UnknownSite => "unknown_site",
            Self::NotForUs => "for_another_site",
        }
    }
}
