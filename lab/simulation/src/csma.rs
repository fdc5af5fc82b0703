//! Many hops of IEEE 802.15.4 in virtual time: nodes that listen before they talk, frames that overlap, acknowledgments
//! and queues on the way; and what packets that go over them cost.
//!
//! This module knows unslotted CSMA-CA (IEEE 802.15.4-2006, section 7.5.1.4), who hears whom ([`Topology`]), how packets are
//! cut into frames ([`Framing`]) and put together again on the way or at the end ([`Forwarding`]), damage by a bit error
//! rate that may change ([`BitErrorRate`]), and what each node has done and spent ([`Counters`]). [`Network`] moves packets
//! of whatever kind ([`Packet`]); a [`Transfer`] sends a file by TCP, its segments cut by a
//! [`SegmentSizer`](thinair_segment::SegmentSizer). It refuses to know routing protocols and which paper is run again.
//!
//! A frame is a handful of numbers: which packet, which part of it, how long; or it is there octet by octet, with what is
//! in it compressed, cut and read again by the code of a real node ([`Framing::Rfc4944`]). **Frames that overlap at a
//! receiver are lost all of them** (no capture), a radio either sends or receives, and distances are whole hops.

mod air;
mod bit_errors;
mod counted;
mod counters;
mod framing;
mod lowpan;
mod network;
mod node;
mod packet;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod topology;
mod transfer;
mod tunnel;

use core::time::Duration;

pub use bit_errors::BitErrorRate;
pub use counters::{Counters, Total};
pub use framing::{Compression, Framing, Plain};
pub use network::{Arrival, Network};
pub use packet::{Packet, address};
pub use topology::Topology;
pub use transfer::{Outcome, Point, Running, Transfer};

/// Names and values are those of IEEE 802.15.4-2006 at 2.4 GHz, where a symbol takes 16 us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacConfig {
    /// macMinBE. 3; at most 8.
    pub min_be: u8,
    /// macMaxBE. 5; at most 8.
    pub max_be: u8,
    /// macMaxCSMABackoffs: how often a channel may be found busy again. 4.
    pub max_csma_backoffs: u8,
    /// macMaxFrameRetries. 3, so that a frame is sent four times at most.
    pub max_frame_retries: u8,
    /// aUnitBackoffPeriod: 20 symbols, 320 us.
    pub unit_backoff_period: Duration,
    /// How long a clear channel assessment takes: 8 symbols, 128 us.
    pub cca: Duration,
    /// aTurnaroundTime: 12 symbols, 192 us.
    pub turnaround: Duration,
    /// macAckWaitDuration: 54 symbols, 864 us.
    pub ack_wait: Duration,
    /// How long an octet is on the air: 2 symbols, 32 us.
    pub octet: Duration,
    /// What a channel that stays busy means for a frame.
    pub access_failure: AccessFailure,
    /// Hops over which a node hears that others send, and does not send itself: 1 and more. 2.
    pub sense_range: u8,
    /// Hops over which a transmission destroys the reception of another one: 1 and more. 1.
    pub interference_range: u8,
    /// Frames that wait in a node, the one that is being sent included. 100.
    pub queue: u16,
}

impl Default for MacConfig {
    fn default() -> Self {
        Self {
            min_be: 3,
            max_be: 5,
            max_csma_backoffs: 4,
            max_frame_retries: 3,
            unit_backoff_period: Duration::from_micros(320),
            cca: Duration::from_micros(128),
            turnaround: Duration::from_micros(192),
            ack_wait: Duration::from_micros(864),
            octet: Duration::from_micros(32),
            access_failure: AccessFailure::Retry,
            sense_range: 2,
            interference_range: 1,
            queue: 100,
        }
    }
}

/// What CHANNEL_ACCESS_FAILURE means for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessFailure {
    /// The frame is given up, as the standard has it (section 7.5.6.5).
    Drop,
    /// It counts as a retransmission: the frame is tried again as often as one that was not acknowledged.
    Retry,
}

/// Where frames are put together again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Frames go on one by one, and become a packet at the end (mesh-under, RFC 8930).
    Single,
    /// Every node waits for all frames of a packet (route-over, RFC 4944), with so many packets at a time; another one takes
    /// the place of the oldest.
    Reassembled(u8),
}

/// Everything about a network but who sends what.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who is where.
    pub topology: Topology,
    /// How a node accesses the channel.
    pub mac: MacConfig,
    /// How packets are cut.
    pub framing: Framing,
    /// Where they are put together.
    pub forwarding: Forwarding,
    /// What becomes of bits.
    pub errors: BitErrorRate,
}
