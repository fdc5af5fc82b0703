//! Outcomes of packets and units.

use thinair_rohc::{CompressError, Compressed, DecompressError};

use crate::unit::Protocol;

/// Outcome of sending a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Result of compression; `None`: sent uncompressed.
    pub compressed: Option<Compressed>,
    /// Number of units; several if the packet was segmented.
    pub units: usize,
    /// Octets of all units, including feedback.
    pub octets: usize,
}

/// Reason why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// The compressor rejects it.
    #[error("{0}")]
    Compress(CompressError),
    /// It is shorter than an Ethernet header.
    #[error("{0} octets are less than an Ethernet header")]
    ShortFrame(usize),
    /// A frame with the EtherType of ROHC, which the receiver would mistake for a compressed one.
    #[error("a frame with EtherType 0x22F1 (ROHC), which the tunnel uses itself")]
    RohcFrame,
    /// Longer than the MTU of the interface.
    #[error("a packet of {octets} octets exceeds the limit of {most}")]
    TooLong {
        /// Size of the packet, or of its unit, in octets.
        octets: usize,
        /// Maximum size in octets.
        most: usize,
    },
    /// This site of a mesh is a receiver only.
    #[error("this site is a receiver only")]
    OnlyHears,
}

impl NotSent {
    /// Stable name for reports.
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

/// Reason why a unit was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReceived {
    /// The decompressor rejects it.
    #[error("{0}")]
    Decompress(DecompressError),
    /// The configuration does not allow units of this type.
    #[error("a unit of kind {0:?}, which this channel does not use")]
    Unexpected(Protocol),
    /// The unit is malformed.
    #[error("a malformed unit of kind {0:?}")]
    Malformed(Protocol),
    /// The site is not in the mesh, or not identified.
    #[error("from a site that is not in the mesh")]
    UnknownSite,
    /// It is for another site.
    #[error("for another site")]
    NotForUs,
}

impl NotReceived {
    /// Stable name for reports.
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
