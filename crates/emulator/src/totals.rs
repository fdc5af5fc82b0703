//! What one direction has come to.

use std::collections::BTreeMap;

use thinair_link::Traffic;
use thinair_rohc::Format;

/// One direction of the link, from the start.
///
/// **Packets are delivered, refused by the compressor, dropped by the link, not decompressed, or still under way.** What
/// the link counts ([`Self::link`]) includes packets of feedback alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// IP packets that were to go over the link.
    pub packets: u64,
    /// Octets of them.
    pub octets: u64,
    /// IP packets that came out.
    pub delivered: u64,
    /// Octets of them.
    pub delivered_octets: u64,
    /// Of those, packets that are not, bit for bit, as they were.
    pub altered: u64,
    /// IP packets that the link dropped.
    pub dropped: u64,
    /// IP packets that are still under way.
    pub under_way: u64,
    /// What the link did.
    pub link: Traffic,
    /// Octets of packets whose transmission has begun: with ROHC, ROHC packets with the feedback in front of them.
    pub carried_octets: u64,
    /// Octets of the headers that were compressed.
    pub header_octets: u64,
    /// Octets that took their place.
    pub compressed_header_octets: u64,
    /// Packets that the compressor did not take, by reason.
    pub not_compressed: BTreeMap<&'static str, u64>,
    /// Packets that the decompressor did not give back, by reason.
    pub not_decompressed: BTreeMap<&'static str, u64>,
    /// ROHC packets by format.
    pub formats: BTreeMap<Format, u64>,
    /// Feedback that went this way, on packets that came the other way.
    pub feedback: FeedbackTotals,
}

/// Feedback that went one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedbackTotals {
    /// Elements.
    pub elements: u64,
    /// Octets of them, with their type octets.
    pub octets: u64,
    /// Elements that went in front of a packet.
    pub in_front: u64,
    /// Packets of feedback alone.
    pub alone: u64,
}

impl Totals {
    /// Packets that the decompressor did not give back.
    pub fn not_decompressed(&self) -> u64 {
        self.not_decompressed.values().sum()
    }

    /// Packets that the compressor did not take.
    pub fn not_compressed(&self) -> u64 {
        self.not_compressed.values().sum()
    }
}
