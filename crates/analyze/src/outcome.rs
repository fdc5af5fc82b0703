//! What an analysis found, as plain values. Serialized, [`Outcome`] is the JSON document
//! `thinair.analyze/1`: keys are added in later versions, none is removed or changes its meaning.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use thinair_capture::LinkType;
use thinair_rohc::{Channel, CidSpace};

mod flow;

pub use flow::{BreakEven, Flow, Milestone, OtherFlow};

use crate::recommendation::Recommendation;
use crate::schc::{self, Direction, RuleSet};
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
    /// Scheme and settings to use; none if no scheme that both ends can be set to saves anything.
    pub recommendation: Option<Recommendation>,
    /// The largest flows, in order of appearance: those with most octets, at most
    /// [`Settings::most_flows`](crate::Settings::most_flows).
    pub flows: Vec<Flow>,
    /// All others, in order of appearance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_flows: Vec<OtherFlow>,
    /// The first packets that did not come back bit for bit, at most [`MOST_FAULTS`].
    pub faults: Vec<Fault>,
    /// Sizes of all headers over time, one input after the other.
    #[serde(skip)]
    pub timeline: Timeline,
    /// Packets by octets of all their headers, as they came.
    #[serde(skip)]
    pub header_sizes_in: BTreeMap<u64, u64>,
    /// Packets by octets of all their headers as sent, for each scheme.
    #[serde(skip)]
    pub header_sizes_out: Vec<BTreeMap<u64, u64>>,
}

/// Faults that are kept; all are counted.
pub const MOST_FAULTS: usize = 10;

/// Flows whose [`Flow::course`] is kept, the largest by octets.
pub const MOST_COURSES: usize = 3;

impl Outcome {
    /// Packets that did not come back bit for bit, in all schemes.
    pub fn mismatches(&self) -> u64 {
        self.totals.schemes.iter().map(|scheme| scheme.roundtrip_mismatches).sum()
    }
}

impl Outcome {
    /// The outcome with only one scheme of each name, the one that sends fewest octets, feedback included; without
    /// [`other_flows`](Self::other_flows).
    pub fn best_of_each(&self) -> Self {
        let schemes = &self.totals.schemes;
        let is_best = |at: usize, scheme: &Scheme| {
            let others = schemes.iter().enumerate().filter(|(_, other)| other.scheme == scheme.scheme);
            others.min_by_key(|(_, other)| other.sent_bytes()).is_some_and(|(best, _)| best == at)
        };
        let keep: Vec<_> = schemes.iter().enumerate().map(|(at, scheme)| is_best(at, scheme)).collect();
        let outcome = Self {
            schema: self.schema,
            inputs: self.inputs.clone(),
            totals: self.totals.clone(),
            recommendation: self.recommendation.clone(),
            flows: self.flows.clone(),
            other_flows: Vec::new(),
            faults: self.faults.clone(),
            timeline: self.timeline.clone(),
            header_sizes_in: self.header_sizes_in.clone(),
            header_sizes_out: self.header_sizes_out.clone(),
        };
        outcome.only(&keep)
    }

    /// The outcome with the schemes for which `keep` is true.
    fn only(mut self, keep: &[bool]) -> Self {
        let left_out = self.totals.schemes.iter().zip(keep).filter(|(_, keep)| !**keep);
        let ids: Vec<_> = left_out.map(|(scheme, _)| scheme.id()).collect();
        retain(&mut self.totals.schemes, keep);
        retain(&mut self.header_sizes_out, keep);
        self.timeline.retain(keep);
        for flow in &mut self.flows {
            retain(&mut flow.schemes, keep);
            flow.break_even.retain(|one| !ids.contains(&one.cheaper) && !ids.contains(&one.than));
            flow.course.iter_mut().for_each(|milestone| retain(&mut milestone.bytes_out, keep));
        }
        self
    }
}

/// Keeps what belongs to the schemes that are kept.
pub(crate) fn retain<T>(of_schemes: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    of_schemes.retain(|_| keep.next().is_none_or(|keep| *keep));
}

/// One capture file. `ip_packets` and all of `skipped` make `packets`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Input {
    /// As it was named.
    pub path: String,
    /// Records.
    pub packets: u64,
    /// Records with an IP packet whose headers are whole: those that are compressed.
    pub ip_packets: u64,
    /// Those of `ip_packets` whose payload was not captured, or not all of it: zeros stand for what is missing, so that a
    /// checksum over it is not that of the packet.
    pub cut: u64,
    /// Records by link type: its name in the registry of `LINKTYPE_` values and its number. The first one of a file is there
    /// also if it has no record.
    #[serde(serialize_with = "by_link_type")]
    pub link_types: BTreeMap<LinkType, u64>,
    /// Packets that were looked for in a tunnel, by its kind; empty if there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unwrapped: BTreeMap<&'static str, u64>,
    /// The other records, by the reason why they are passed over.
    pub skipped: BTreeMap<&'static str, u64>,
    /// IP packets that are compressed as far as they can be restored exactly, by the reason why that is less
    /// than usual; each under its first reason.
    pub odd: BTreeMap<&'static str, u64>,
    /// Frames that the system dropped before they could be captured, where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Why reading ended before the end of the file: it is cut off, as when a capture was interrupted, or
    /// damaged.
    pub ended_by: Option<String>,
    /// The rules of SCHC that were derived from it, if that is one of the schemes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schc_rules: Option<SchcRules>,
    /// The prefixes that are contexts of 6LoWPAN, if that is one of the schemes: the most frequent first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowpan_contexts: Option<Vec<String>>,
    /// Reading ended at damage: what follows is not known.
    #[serde(skip)]
    pub damaged: bool,
}

fn by_link_type<S: Serializer>(records: &BTreeMap<LinkType, u64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(records.iter().map(|(link_type, records)| (link_type.to_string(), records)))
}

/// The rules of SCHC that both ends were given before the first packet.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SchcRules {
    /// Octets to tell all of them to a side, see [`RuleSet::provisioning_octets`].
    pub provisioning_bytes: usize,
    /// The rules: those of packets from side `a`, then those of packets to it.
    pub rules: Vec<SchcRule>,
}

/// A rule of SCHC for one direction.
#[derive(Clone, Debug, Serialize)]
pub struct SchcRule {
    /// RuleID.
    pub id: u8,
    /// DI: `Up` from side `a`, or `Dw`.
    pub direction: &'static str,
    /// Octets to tell it to a side.
    pub provisioning_bytes: usize,
    /// Its field descriptors.
    pub fields: Vec<schc::Row>,
}

impl SchcRules {
    pub(crate) fn of(rules: &RuleSet) -> Self {
        let told = |rule: &schc::Rule| SchcRule {
            id: rule.id(),
            direction: rule.direction().name(),
            provisioning_bytes: rule.provisioning_octets(),
            fields: rule.rows().collect(),
        };
        let all = [Direction::Up, Direction::Dw].into_iter().flat_map(|direction| rules.rules(direction));
        Self { provisioning_bytes: rules.provisioning_octets(), rules: all.map(told).collect() }
    }
}

/// Sums over all inputs. Octets are those of IP packets, without link headers.
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// IP packets.
    pub packets: u64,
    /// Flows: those of [`Outcome::flows`] and of [`Outcome::other_flows`].
    pub flows: u64,
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
    /// Octets of IP headers, extension headers, and UDP, UDP-Lite, ESP (SPI and Sequence Number) or TCP headers with
    /// options. Application headers are not among them.
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
    /// `rohc-v1`, `coap`, `tcp`, `schc` or `6lowpan`.
    pub scheme: &'static str,
    /// `u`, `o` or `r`; none where a scheme has no modes.
    pub mode: Option<&'static str>,
    /// Contexts of ROHC, where they are not those of the other schemes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contexts: Option<Contexts>,
    /// Octets that were sent, without feedback.
    pub bytes_out: u64,
    /// Octets that were sent in place of `header_bytes_in`: compressed headers, and headers that went as they
    /// were. Where a scheme also compresses CoAP or RTP, its compressed headers stand for those as well.
    pub header_bytes_out: u64,
    /// Octets of the first packet of each flow.
    pub first_packet_bytes: u64,
    /// 1 - (`bytes_out` + `feedback_bytes`) / `bytes_in`; 0 if there was nothing.
    pub saved_ratio: f64,
    /// Packets that the scheme has no way for: they go as they are.
    pub not_applicable: u64,
    /// Packets that did not come back bit for bit. On a link with loss, those that were delivered and differ.
    pub roundtrip_mismatches: u64,
    /// Packets that were not delivered, on a link with loss.
    pub lost: u64,
    /// The same by reason: `link`, or why the decompressor refused.
    pub lost_by: BTreeMap<&'static str, u64>,
    /// Packets by format, without those that the scheme has no way for.
    pub packet_types: BTreeMap<Cow<'static, str>, u64>,
    /// Octets of compressed headers by format, in every scheme. ROHC was the first.
    pub rohc_bytes_by_type: BTreeMap<Cow<'static, str>, u64>,
    /// Packets by ROHC profile.
    pub profiles: BTreeMap<&'static str, u64>,
    /// Packets that refresh a context which was established.
    pub refreshes: u64,
    /// Octets of the compressed headers of those.
    pub refresh_bytes: u64,
    /// How long a decompressor waits that starts late or has lost its context; none where feedback asks for what it
    /// needs, and where a scheme has no contexts.
    #[serde(flatten)]
    pub late_wait: Option<LateWait>,
    /// Flows of more than 20 packets that took more octets than without compression, feedback included, even if the octets of
    /// their CIDs and 3 octets of each IR packet (type, profile, CRC) are not counted. Of totals of ROHC alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub larger_flows: Option<u64>,
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

/// Packets that build a context from nothing, and how far apart they are, by flow: a decompressor that starts late, or has
/// lost its context, delivers nothing of a flow in between. Packets of profile 0x0000 are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LateWait {
    /// Largest number of packets of a flow from such a packet to the next one, or to the end of the flow.
    #[serde(rename = "late_wait_packets")]
    pub packets: u64,
    /// Longest time from such a packet to the next one, or to the end of the flow, in seconds.
    #[serde(rename = "late_wait_seconds")]
    pub seconds: f64,
    /// Mean number of packets from such a packet to the next one, or to the end of the flow.
    #[serde(rename = "late_wait_mean_packets")]
    pub mean_packets: f64,
    /// Mean time from such a packet to the next one, or to the end of the flow, in seconds.
    #[serde(rename = "late_wait_mean_seconds")]
    pub mean_seconds: f64,
}

impl Scheme {
    /// `rohc-v1/u`, `rohc-v1/u/large-127`, or the name alone where there are no modes.
    pub fn id(&self) -> String {
        id(self.scheme, self.mode, self.contexts)
    }

    /// Octets that were sent, feedback included.
    pub fn sent_bytes(&self) -> u64 {
        self.bytes_out + self.feedback_bytes
    }
}

pub(crate) fn id(scheme: &str, mode: Option<&str>, contexts: Option<Contexts>) -> String {
    let mut id = scheme.to_owned();
    if let Some(mode) = mode {
        id += &format!("/{mode}");
    }
    if let Some(Contexts { cid, max_cid }) = contexts {
        id += &format!("/{cid}-{max_cid}");
    }
    id
}

/// Context identifiers of a ROHC channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Contexts {
    /// CID space: `small` or `large`.
    pub cid: &'static str,
    /// MAX_CID: 0 to 15, or 0 to 16,383.
    pub max_cid: u16,
}

impl Contexts {
    /// The identifiers of a channel.
    pub fn of(channel: &Channel) -> Self {
        let cid = match channel.cids() {
            CidSpace::Small => "small",
            CidSpace::Large => "large",
        };
        Self { cid, max_cid: channel.max_cid() }
    }
}

/// Octets by layer, as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LayersIn {
    /// IP headers and extension headers.
    pub ip: u64,
    /// UDP, UDP-Lite, ESP and TCP headers.
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

    /// IP, transport and application.
    pub fn all_headers(&self) -> u64 {
        self.headers() + self.application
    }
}

/// Octets by layer, as they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LayersOut {
    /// Compressed headers, in every scheme. ROHC was the first.
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

    /// All headers.
    pub fn all_headers(&self) -> u64 {
        self.headers() + self.application
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
    pub format: Option<Cow<'static, str>>,
    /// The first octet that differs, from 0; `None` if nothing was delivered.
    pub offset: Option<usize>,
    /// What happened, in words.
    pub cause: String,
}
