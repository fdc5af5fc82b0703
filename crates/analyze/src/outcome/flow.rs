//! Flows, with all sums or with octets only.

use serde::Serialize;

use super::{Scheme, Traffic};

/// One direction of a conversation.
#[derive(Clone, Debug, Serialize)]
pub struct Flow {
    /// Index of its input, from 0.
    pub input: usize,
    /// Number in order of appearance, from 0, over all inputs, and flows of both lists.
    #[serde(skip)]
    pub number: usize,
    /// Source: address and port.
    pub src: String,
    /// Destination: address and port.
    pub dst: String,
    /// Name of the protocol in the innermost IP header.
    pub protocol: String,
    /// Side of the link that sends it, `a` or `b`.
    pub side: &'static str,
    /// ROHC profile of most packets, in the last ROHC scheme.
    pub profile: &'static str,
    /// All profiles of its packets in that scheme, most frequent first. RTP flows that are detected by their
    /// first packets have those packets in profile `udp` or `udp-lite`.
    pub profiles: Vec<&'static str>,
    /// Security Parameters Index; only of ESP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spi: Option<u32>,
    /// SSRCs of its RTP streams, at most 8; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ssrcs: Vec<u32>,
    /// Packets.
    pub packets: u64,
    /// Packets and octets of the uncompressed flow.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Results of each scheme.
    pub schemes: Vec<Scheme>,
    /// Pairs of schemes with the packet from which on one is cheaper than the other, up to the end.
    pub break_even: Vec<BreakEven>,
    /// Sums at some packets of the flow; empty unless it is one of the [`MOST_COURSES`](super::MOST_COURSES)
    /// largest.
    #[serde(skip)]
    pub course: Vec<Milestone>,
}

/// A scheme that becomes cheaper than another one for good, by all octets of the flow so far, feedback
/// included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakEven {
    /// Cheaper scheme, as [`Scheme::id`].
    pub cheaper: String,
    /// More expensive scheme, as [`Scheme::id`].
    pub than: String,
    /// Number of packets of the flow after which it stays cheaper; 1 if it always was.
    pub after_packets: u64,
}

/// Octets of the first packets of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Milestone {
    /// Number of packets so far.
    pub packets: u64,
    /// Octets of the uncompressed packets.
    pub bytes_in: u64,
    /// Octets sent by each scheme, feedback included.
    pub bytes_out: Vec<u64>,
}

/// One direction of a conversation, with octets only.
#[derive(Clone, Debug, Serialize)]
pub struct OtherFlow {
    /// Index of its input, from 0.
    pub input: usize,
    /// Number in order of appearance, from 0, over all inputs, and flows of both lists.
    #[serde(skip)]
    pub number: usize,
    /// Source: address and port.
    pub src: String,
    /// Destination: address and port.
    pub dst: String,
    /// Name of the protocol in the innermost IP header.
    pub protocol: String,
    /// Side of the link that sends it, `a` or `b`.
    pub side: &'static str,
    /// Security Parameters Index; only of ESP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spi: Option<u32>,
    /// SSRCs of its RTP streams, at most 8; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ssrcs: Vec<u32>,
    /// Packets.
    pub packets: u64,
    /// Octets of its IP packets.
    pub bytes_in: u64,
    /// [`Scheme::bytes_out`] of each scheme, in the order of [`Totals::schemes`](super::Totals::schemes).
    pub bytes_out: Vec<u64>,
    /// [`Scheme::feedback_bytes`] of each scheme, in that order; empty if there is no feedback.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub feedback_bytes: Vec<u64>,
}
