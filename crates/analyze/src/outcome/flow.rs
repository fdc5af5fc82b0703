//! Flows: with every sum, or with their octets alone.

use serde::Serialize;

use super::{Scheme, Traffic};

/// One direction of a conversation.
#[derive(Clone, Debug, Serialize)]
pub struct Flow {
    /// Index of the input it is in, from 0.
    pub input: usize,
    /// Where it comes from: address and port.
    pub src: String,
    /// Where it goes to: address and port.
    pub dst: String,
    /// The name of what the innermost IP header carries.
    pub protocol: String,
    /// The side of the link where it starts, `a` or `b`.
    pub side: &'static str,
    /// The ROHC profile of most of its packets, in the last of the schemes that are ROHC.
    pub profile: &'static str,
    /// All profiles of its packets in that scheme, the one of most packets first. RTP that is found by its first
    /// packets has those in profile `udp` or `udp-lite`.
    pub profiles: Vec<&'static str>,
    /// Security Parameters Index, of ESP alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spi: Option<u32>,
    /// SSRCs of its RTP streams, at most 8; not there if it has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ssrcs: Vec<u32>,
    /// Packets.
    pub packets: u64,
    /// Packets and octets that came in.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Outcome of each scheme.
    pub schemes: Vec<Scheme>,
    /// Pairs of schemes of which one is cheaper than the other in the end, and the packet from which on it is.
    pub break_even: Vec<BreakEven>,
    /// Octets so far, at some packets of the flow; empty unless it is one of the [`MOST_COURSES`](super::MOST_COURSES) largest.
    #[serde(skip)]
    pub course: Vec<Milestone>,
}

/// One scheme gets cheaper than another one for good. What counts is all octets of the flow so far, feedback
/// included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakEven {
    /// The scheme that is cheaper, as [`Scheme::id`].
    pub cheaper: String,
    /// The scheme that it is cheaper than.
    pub than: String,
    /// It is cheaper after so many packets of the flow, and stays so to its end: 1 if it always was.
    pub after_packets: u64,
}

/// Octets of the first packets of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Milestone {
    /// Packets of the flow so far.
    pub packets: u64,
    /// Octets of those as they came.
    pub bytes_in: u64,
    /// Octets that each scheme sent for them, feedback included.
    pub bytes_out: Vec<u64>,
}

/// One direction of a conversation with its octets alone.
#[derive(Clone, Debug, Serialize)]
pub struct OtherFlow {
    /// Index of the input it is in, from 0.
    pub input: usize,
    /// Where it comes from: address and port.
    pub src: String,
    /// Where it goes to: address and port.
    pub dst: String,
    /// The name of what the innermost IP header carries.
    pub protocol: String,
    /// The side of the link where it starts, `a` or `b`.
    pub side: &'static str,
    /// Security Parameters Index, of ESP alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spi: Option<u32>,
    /// SSRCs of its RTP streams, at most 8; not there if it has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ssrcs: Vec<u32>,
    /// Packets.
    pub packets: u64,
    /// Octets of its IP packets.
    pub bytes_in: u64,
    /// [`Scheme::bytes_out`] of each scheme, in the order of [`Totals::schemes`](super::Totals::schemes).
    pub bytes_out: Vec<u64>,
    /// [`Scheme::feedback_bytes`] of each scheme, in the same order; empty if none has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub feedback_bytes: Vec<u64>,
}
