//! Totals of one direction.

use std::collections::BTreeMap;

use thinair_link::LinkTraffic;
use thinair_rohc::Format;

/// Totals of one direction of the link, from the start.
///
/// **Packets are delivered, rejected by the compressor, dropped by the link, rejected by the decompressor, or still under way.** The
/// counters of the link ([`Self::link`]) include packets of feedback alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionTotals {
    /// IP packets that entered.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
    /// IP packets that were delivered.
    pub delivered: u64,
    /// Their octets.
    pub delivered_octets: u64,
    /// Delivered packets that differ from those that were sent.
    pub altered: u64,
    /// IP packets that the link dropped.
    pub dropped: u64,
    /// IP packets that are still under way.
    pub under_way: u64,
    /// Counters of the link.
    pub link: LinkTraffic,
    /// Octets of packets whose transmission has begun: with ROHC, ROHC packets with the feedback in front of them.
    pub carried_octets: u64,
    /// Octets of headers before compression.
    pub header_octets: u64,
    /// Octets of the same headers after compression.
    pub compressed_header_octets: u64,
    /// Packets that the compressor rejected, by reason.
    pub not_compressed: BTreeMap<&'static str, u64>,
    /// Packets that the decompressor rejected, by reason.
    pub not_decompressed: BTreeMap<&'static str, u64>,
    /// ROHC packets by format.
    pub formats: BTreeMap<Format, u64>,
    /// Feedback that was sent in this direction, about packets of the other one.
    pub feedback: FeedbackTotals,
}

/// Totals of feedback in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedbackTotals {
    /// Elements.
    pub elements: u64,
    /// Their octets, with their type octets.
    pub octets: u64,
    /// Elements that were piggybacked on a packet.
    pub in_front: u64,
    /// Packets of feedback alone.
    pub alone: u64,
}

impl DirectionTotals {
    /// Returns the number of packets that the decompressor rejected.
    pub fn not_decompressed(&self) -> u64 {
        self.not_decompressed.values().sum()
    }

    /// Returns the number of packets that the compressor rejected.
    pub fn not_compressed(&self) -> u64 {
        self.not_compressed.values().sum()
    }
}
