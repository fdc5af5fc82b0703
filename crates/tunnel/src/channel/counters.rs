//! What a channel has done, in numbers that only grow.

use serde::Serialize;
use thinair_rohc::feedback::AckType;
use thinair_rohc::{Compressed, Decompressed, Format};

/// Numbers of one channel since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Packets or frames from inside.
    pub sent: Way,
    /// Packets or frames to inside.
    pub received: Way,
    /// Packets that were compressed, by what their ROHC packets were for.
    pub compressed: Kinds,
    /// The same of packets that were decompressed.
    pub decompressed: Kinds,
    /// Packets that no profile but the uncompressed one takes, or frames that hold no IP packet alone.
    pub not_compressible: u64,
    /// Packets of those that went as they are.
    pub as_they_are: u64,
    /// Units that were cut into segments, and segments that were sent.
    pub segmented: u64,
    /// Segments that were sent.
    pub segments_sent: u64,
    /// Segments that were received.
    pub segments_received: u64,
    /// Feedback for the other side's compressor.
    pub feedback_sent: Feedback,
    /// Feedback for our compressor.
    pub feedback_received: Feedback,
    /// What was not sent, by reason.
    pub not_sent: Reasons,
    /// What was received and not delivered, by reason.
    pub not_received: Reasons,
}

/// Numbers of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Way {
    /// Packets, or frames.
    pub packets: u64,
    /// Octets of them.
    pub octets: u64,
    /// Octets of their headers, as far as they were compressed.
    pub headers: u64,
    /// Octets of ROHC headers, feedback not included.
    pub rohc_headers: u64,
    /// Octets of units, feedback included.
    pub unit_octets: u64,
    /// Units.
    pub units: u64,
}

/// What ROHC packets were for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kinds {
    /// To begin a context: IR, IR-DYN, IR-CR.
    pub initialization: u64,
    /// To refresh one that was established; known where packets are sent, and not where they are received.
    pub refresh: u64,
    /// All others.
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
    /// NACK and STATIC-NACK that were passed over, because too many came.
    pub too_many: u64,
    /// Elements that made no sense, or were not for this site.
    pub ignored: u64,
    /// Octets, with their type octets.
    pub octets: u64,
    /// Elements that went in front of a packet.
    pub in_front: u64,
    /// Packets that held nothing but feedback.
    pub alone: u64,
}

impl Feedback {
    pub(super) fn note(&mut self, ack: AckType) {
        match ack {
            AckType::Ack => self.acks += 1,
            AckType::Nack => self.nacks += 1,
            AckType::StaticNack => self.static_nacks += 1,
        }
    }
}

/// How often something happened, by its stable name, in the order of the first time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons(Vec<(&'static str, u64)>);

impl Reasons {
    /// Counts one. Names are few, and only a new one takes memory.
    pub fn count(&mut self, name: &'static str) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.0.push((name, 1)),
        }
    }

    /// Names and counts.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }

    /// How often a reason was counted.
    pub fn of(&self, name: &str) -> u64 {
        self.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| count)
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }
}

impl Serialize for Reasons {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
