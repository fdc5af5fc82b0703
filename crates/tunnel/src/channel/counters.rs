//! Counters of a channel.

use serde::Serialize;
use thinair_rohc::feedback::AckType;
use thinair_rohc::{Compressed, Decompressed, Format};

/// Counters of a channel since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Packets or frames from the interface.
    pub sent: DirectionCounters,
    /// Packets or frames delivered to the interface.
    pub received: DirectionCounters,
    /// Compressed packets, by purpose of their ROHC packets.
    pub compressed: Kinds,
    /// Decompressed packets, by purpose of their ROHC packets.
    pub decompressed: Kinds,
    /// Packets that only the uncompressed profile supports, and frames with other content than an IP packet.
    pub not_compressible: u64,
    /// Packets among those that were sent unchanged.
    pub as_they_are: u64,
    /// Units that were segmented.
    pub segmented: u64,
    /// Segments that were sent.
    pub segments_sent: u64,
    /// Segments that were received.
    pub segments_received: u64,
    /// Feedback for the compressor of the other side.
    pub feedback_sent: Feedback,
    /// Feedback for our compressor.
    pub feedback_received: Feedback,
    /// Packets that were not sent, by reason.
    pub not_sent: Reasons,
    /// Units that were received and not delivered, by reason.
    pub not_received: Reasons,
}

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DirectionCounters {
    /// Packets, or frames.
    pub packets: u64,
    /// Octets of packets or frames.
    pub octets: u64,
    /// Octets of compressed headers before compression.
    pub headers: u64,
    /// Octets of ROHC headers, without feedback.
    pub rohc_headers: u64,
    /// Octets of units, including feedback.
    pub unit_octets: u64,
    /// Units.
    pub units: u64,
}

/// Counters of ROHC packets by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kinds {
    /// Initialization of a context: IR, IR-DYN, IR-CR.
    pub initialization: u64,
    /// Refresh of an established context; counted by the sender only.
    pub refresh: u64,
    /// All other packets.
    pub other: u64,
}

impl Kinds {
    pub(super) fn note_sent(&mut self, packet: &Compressed) {
        match (packet.refresh, packet.format.is_initialization()) {
            (true, _) => self.refresh += 1,
            (false, true) => self.initialization += 1,
            (false, false) => self.other += 1,
        }
    }

    pub(super) fn note_received(&mut self, packet: &Decompressed) {
        let format: Format = packet.format;
        if format.is_initialization() { self.initialization += 1 } else { self.other += 1 }
    }
}

/// Feedback elements of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Feedback {
    /// ACK.
    pub acks: u64,
    /// NACK.
    pub nacks: u64,
    /// STATIC-NACK.
    pub static_nacks: u64,
    /// NACK and STATIC-NACK that were ignored because of their number.
    pub too_many: u64,
    /// Elements that were invalid, or not for this site.
    pub ignored: u64,
    /// Octets, including type octets.
    pub octets: u64,
    /// Elements sent in front of a packet.
    pub in_front: u64,
    /// Packets with feedback only.
    pub alone: u64,
}

impl Feedback {
    /// Returns the sums with those of another channel.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            acks: self.acks + other.acks,
            nacks: self.nacks + other.nacks,
            static_nacks: self.static_nacks + other.static_nacks,
            too_many: self.too_many + other.too_many,
            ignored: self.ignored + other.ignored,
            octets: self.octets + other.octets,
            in_front: self.in_front + other.in_front,
            alone: self.alone + other.alone,
        }
    }

    pub(super) fn note(&mut self, ack: AckType) {
        match ack {
            AckType::Ack => self.acks += 1,
            AckType::Nack => self.nacks += 1,
            AckType::StaticNack => self.static_nacks += 1,
        }
    }
}

/// Counts by stable name, in the order of first occurrence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons(Vec<(&'static str, u64)>);

impl Reasons {
    /// Adds one. Only a new name allocates memory; names are few.
    pub fn count(&mut self, name: &'static str) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.0.push((name, 1)),
        }
    }

    /// Returns names and counts.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Returns the count of a name.
    pub fn of(&self, name: &str) -> u64 {
        self.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| count)
    }

    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }
}

impl Serialize for Reasons {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
