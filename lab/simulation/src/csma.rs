//! Many hops of IEEE 802.15.4 in virtual time: nodes with carrier sensing, collisions, acknowledgments and queues; and
//! the costs of packets over them.
//!
//! This module implements unslotted CSMA-CA (IEEE 802.15.4-2006, section 7.5.1.4), the range of nodes ([`Topology`]),
//! fragmentation into frames ([`CsmaFraming`]) and reassembly on the way or at the end ([`Forwarding`]), damage by a bit
//! error rate that may change ([`BitErrorRate`]), and counters of each node's activity ([`NodeCounters`]). [`CsmaNetwork`]
//! moves packets of any kind ([`CsmaPacket`]); a [`Transfer`] sends a file by TCP, with segment sizes of a
//! [`SegmentSizer`](thinair_segment::SegmentSizer). It has no routing protocols, and nothing of a particular paper.
//!
//! A frame is represented by numbers (packet, part, length), or by its octets, which the code of a real node
//! compresses, fragments and parses ([`CsmaFraming::Rfc4944`]). **Frames that overlap at a receiver are all lost** (no
//! capture), a radio either sends or receives, and distances are whole hops.

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
pub use counters::{NodeCounters, Total};
pub use framing::{CsmaFraming, FrameCompression, Plain};
pub use network::{CsmaNetwork, PacketArrival};
pub use packet::{CsmaPacket, address};
pub use topology::Topology;
pub use transfer::{Point, Running, Transfer, TransferOutcome};

/// MAC parameters. Names and values are those of IEEE 802.15.4-2006 at 2.4 GHz, where a symbol takes 16 us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacConfig {
    /// macMinBE, 8 at most. Default: 3.
    pub min_be: u8,
    /// macMaxBE, 8 at most. Default: 5.
    pub max_be: u8,
    /// macMaxCSMABackoffs: maximum number of further backoffs on a busy channel. Default: 4.
    pub max_csma_backoffs: u8,
    /// macMaxFrameRetries. Default: 3, so that a frame is sent four times at most.
    pub max_frame_retries: u8,
    /// aUnitBackoffPeriod. Default: 20 symbols, 320 us.
    pub unit_backoff_period: Duration,
    /// Duration of a clear channel assessment. Default: 8 symbols, 128 us.
    pub cca: Duration,
    /// aTurnaroundTime. Default: 12 symbols, 192 us.
    pub turnaround: Duration,
    /// macAckWaitDuration. Default: 54 symbols, 864 us.
    pub ack_wait: Duration,
    /// Airtime of an octet. Default: 2 symbols, 32 us.
    pub octet: Duration,
    /// Handling of a frame after CHANNEL_ACCESS_FAILURE.
    pub access_failure: AccessFailure,
    /// Hops over which a node senses transmissions and defers its own; at least 1. Default: 2.
    pub sense_range: u8,
    /// Hops over which a transmission destroys the reception of another one; at least 1. Default: 1.
    pub interference_range: u8,
    /// Queue of a node in frames, including the one that is being sent. Default: 100.
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

/// Handling of a frame after CHANNEL_ACCESS_FAILURE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessFailure {
    /// The frame is dropped, as in the standard (section 7.5.6.5).
    Drop,
    /// It counts as a retransmission: the frame is retried as often as after a missing acknowledgment.
    Retry,
}

/// Place of reassembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Frames are forwarded one by one, and reassembled at the end (mesh-under, RFC 8930).
    Single,
    /// Every node waits for all frames of a packet (route-over, RFC 4944), for this many packets at a time; another one
    /// replaces the oldest.
    Reassembled(u8),
}

/// Configuration of a network without its traffic.
#[derive(Clone, Debug)]
pub struct CsmaConfig {
    /// Positions of the nodes.
    pub topology: Topology,
    /// Channel access.
    pub mac: MacConfig,
    /// Fragmentation of packets.
    pub framing: CsmaFraming,
    /// Place of reassembly.
    pub forwarding: Forwarding,
    /// Bit errors.
    pub errors: BitErrorRate,
}
