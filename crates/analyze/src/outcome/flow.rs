//! Flows, with all sums or with octets only.

use serde::{Deserialize, Serialize};

use super::{Name, Scheme, Traffic};
use crate::portable::names;

/// One direction of a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    #[serde(deserialize_with = "names")]
    pub side: Name,
    /// ROHC profile of most packets, in the last ROHC scheme.
    #[serde(deserialize_with = "names")]
    pub profile: Name,
    /// All profiles of its packets in that scheme, most frequent first. RTP flows that are detected by their
    /// first packets have those packets in profile `udp` or `udp-lite`.
    #[serde(deserialize_with = "names")]
    pub profiles: Vec<Name>,
    /// Security Parameters Index; only of ESP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spi: Option<u32>,
    /// SSRCs of its RTP streams, at most 8; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
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

impl Flow {
    /// Returns the flow with octets only.
    pub(crate) fn without_sums(self) -> OtherFlow {
        let feedback_bytes: Vec<_> = self.schemes.iter().map(|scheme| scheme.feedback_bytes).collect();
        OtherFlow {
            input: self.input,
            number: self.number,
            src: self.src,
            dst: self.dst,
            protocol: self.protocol,
            side: self.side,
            spi: self.spi,
            ssrcs: self.ssrcs,
            packets: self.packets,
            bytes_in: self.traffic.bytes_in,
            bytes_out: self.schemes.iter().map(|scheme| scheme.bytes_out).collect(),
            feedback_bytes: if feedback_bytes.iter().all(|octets| *octets == 0) {
                Vec::new()
            } else {
                feedback_bytes
            },
        }
    }
}

/// A scheme that becomes cheaper than another one for good, by all octets of the flow so far, feedback
/// included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakEven {
    /// Cheaper scheme, as [`Scheme::id`].
    pub cheaper: String,
    /// More expensive scheme, as [`Scheme::id`].
    pub than: String,
    /// Number of packets of the flow after which it stays cheaper; 1 if it always was.
    pub after_packets: u64,
}

/// Octets of the first packets of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Milestone {
    /// Number of packets so far.
    pub packets: u64,
    /// Octets of the uncompressed packets.
    pub bytes_in: u64,
    /// Octets sent by each scheme, feedback included.
    pub bytes_out: Vec<u64>,
}

/// One direction of a conversation, with octets only.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    #[serde(deserialize_with = "names")]
    pub side: Name,
    /// Security Parameters Index; only of ESP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spi: Option<u32>,
    /// SSRCs of its RTP streams, at most 8; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub ssrcs: Vec<u32>,
    /// Packets.
    pub packets: u64,
    /// Octets of its IP packets.
    pub bytes_in: u64,
    /// [`Scheme::bytes_out`] of each scheme, in the order of [`Totals::schemes`](super::Totals::schemes).
    pub bytes_out: Vec<u64>,
    /// [`Scheme::feedback_bytes`] of each scheme, in that order; empty if there is no feedback.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub feedback_bytes: Vec<u64>,
}
