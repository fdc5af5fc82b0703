//! What an analysis found, as plain values. Serialized, [`Outcome`] is the JSON document
//! `thinair.analyze/1`: keys are added in later versions, none is removed or changes its meaning.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::timeline::Timeline;

/// The name and version of the JSON document.
pub const SCHEMA: &str = "thinair.analyze/1";

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The files, in the order in which they were read.
    pub inputs: Vec<Input>,
    /// Sums over all of them.
    pub totals: Totals,
    /// The flows, in order of appearance.
    pub flows: Vec<Flow>,
    /// The first packets that did not come back bit for bit, at most [`MOST_FAULTS`].
    pub faults: Vec<Fault>,
    /// Header sizes over time, one input after the other.
    #[serde(skip)]
    pub timeline: Timeline,
    /// Packets by octets of their IP and transport headers, as they came.
    #[serde(skip)]
    pub header_sizes_in: BTreeMap<u64, u64>,
    /// Packets by octets of their headers as sent, for each scheme.
    #[serde(skip)]
    pub header_sizes_out: Vec<BTreeMap<u64, u64>>,
}

/// Faults that are kept; all are counted.
pub const MOST_FAULTS: usize = 10;

impl Outcome {
    /// Packets that did not come back bit for bit, in all schemes.
    pub fn mismatches(&self) -> u64 {
        self.totals.schemes.iter().map(|scheme| scheme.roundtrip_mismatches).sum()
    }
}

/// One capture file. `ip_packets` and all of `skipped` make `packets`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Input {
    /// As it was named.
    pub path: String,
    /// Records.
    pub packets: u64,
    /// Records with a whole IP packet: those that are compressed.
    pub ip_packets: u64,
    /// The other records, by the reason why they are passed over.
    pub skipped: BTreeMap<&'static str, u64>,
    /// IP packets that are compressed as far as they can be restored exactly, by the reason why that is less
    /// than usual; each under its first reason.
    pub odd: BTreeMap<&'static str, u64>,
    /// Why reading ended before the end of the file: it is cut off, as when a capture was interrupted, or
    /// damaged.
    pub ended_by: Option<String>,
    /// Reading ended at damage: what follows is not known.
    #[serde(skip)]
    pub damaged: bool,
}

/// Sums over all inputs. Octets are those of IP packets, without link headers.
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// IP packets.
    pub packets: u64,
    /// What came in.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// What each scheme made of it.
    pub schemes: Vec<Scheme>,
}

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
    /// The ROHC profile of most of its packets.
    pub profile: &'static str,
    /// Packets.
    pub packets: u64,
    /// What came in.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// What each scheme made of it.
    pub schemes: Vec<Scheme>,
}

/// Octets that came in.
#[derive(Clone, Debug, Serialize)]
pub struct Traffic {
    /// Octets of IP packets.
    pub bytes_in: u64,
    /// Octets of IP headers, extension headers, and UDP, UDP-Lite or TCP headers with options. Application
    /// headers are not among them.
    pub header_bytes_in: u64,
    /// Where the octets are.
    pub layers_in: LayersIn,
    /// Price of all packets, if the link has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_in: Option<f64>,
    /// Packets larger than the link MTU, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_mtu_in: Option<u64>,
}

/// What one scheme made of the packets.
#[derive(Clone, Debug, Serialize)]
pub struct Scheme {
    /// `rohc-v1`.
    pub scheme: &'static str,
    /// `u`, `o` or `r`.
    pub mode: Option<&'static str>,
    /// Octets that were sent, without feedback.
    pub bytes_out: u64,
    /// Octets that were sent in place of `header_bytes_in`: ROHC headers, and headers that went as they were.
    pub header_bytes_out: u64,
    /// 1 - `bytes_out` / `bytes_in`; 0 if there was nothing.
    pub saved_ratio: f64,
    /// Packets that did not come back bit for bit. On a link with loss, those that were delivered and differ.
    pub roundtrip_mismatches: u64,
    /// Packets that were not delivered, on a link with loss.
    pub lost: u64,
    /// The same by reason: `link`, or why the decompressor refused.
    pub lost_by: BTreeMap<&'static str, u64>,
    /// Packets by format.
    pub packet_types: BTreeMap<&'static str, u64>,
    /// Octets of ROHC headers by format.
    pub rohc_bytes_by_type: BTreeMap<&'static str, u64>,
    /// Packets by profile.
    pub profiles: BTreeMap<&'static str, u64>,
    /// Packets that refresh a context which was established.
    pub refreshes: u64,
    /// Octets of the ROHC headers of those.
    pub refresh_bytes: u64,
    /// Feedback packets, each sent by itself in the other direction.
    pub feedback_packets: u64,
    /// Octets of those.
    pub feedback_bytes: u64,
    /// Where the octets of `bytes_out` are.
    pub layers_out: LayersOut,
    /// Price of all packets and of feedback, if the link has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_out: Option<f64>,
    /// Packets larger than the link MTU, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_mtu_out: Option<u64>,
}

/// Octets by layer, as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LayersIn {
    /// IP headers and extension headers.
    pub ip: u64,
    /// UDP, UDP-Lite and TCP headers.
    pub transport: u64,
    /// Headers of CoAP (on its port) with token, options and payload marker, and of RTP.
    pub application: u64,
    /// What is left.
    pub payload: u64,
}

impl LayersIn {
    /// IP and transport.
    pub fn headers(&self) -> u64 {
        self.ip + self.transport
    }
}

/// Octets by layer, as they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LayersOut {
    /// ROHC headers.
    pub rohc: u64,
    /// IP headers that went as they were.
    pub ip: u64,
    /// Transport headers that went as they were.
    pub transport: u64,
    /// Application headers that went as they were.
    pub application: u64,
    /// What is left.
    pub payload: u64,
}

impl LayersOut {
    /// All headers but those of applications.
    pub fn headers(&self) -> u64 {
        self.rohc + self.ip + self.transport
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.rohc += other.rohc;
        self.ip += other.ip;
        self.transport += other.transport;
        self.application += other.application;
        self.payload += other.payload;
    }
}

/// A packet that did not come back bit for bit.
#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    /// Index of the input, from 0.
    pub input: usize,
    /// The record in its file, from 1.
    pub packet: u64,
    /// Where the packet comes from.
    pub src: String,
    /// Where it goes to.
    pub dst: String,
    /// The scheme.
    pub scheme: &'static str,
    /// Its mode.
    pub mode: Option<&'static str>,
    /// The format that was sent; `None` if the packet was not compressed.
    pub format: Option<&'static str>,
    /// The first octet that differs, from 0; `None` if nothing was delivered.
    pub offset: Option<usize>,
    /// What happened, in words.
    pub cause: String,
}
