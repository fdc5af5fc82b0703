//! Results of an analysis, as plain values. Serialized, [`Outcome`] is the JSON document `thinair.analyze/1`:
//! later versions add keys; none is removed or changes its meaning.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;

use serde::{Deserialize, Serialize, Serializer};
use thinair_capture::{Error, LinkType, Reader, Record};
use thinair_link::tariff::Tariff;
use thinair_rohc::{Channel, CidSpace};

mod flow;

pub use flow::{BreakEven, Flow, Milestone, OtherFlow};

pub use crate::bill::{BillCause, BillRow};
use crate::merge::RunSums;
use crate::packet::ParsedPacket;
use crate::portable::names;
use crate::recommendation::Recommendation;
use crate::schc::{self, Direction, RuleSet};
use crate::timeline::Timeline;
use crate::unpack::Unpack;

/// A name of a fixed set.
pub type Name = &'static str;

/// Name and version of the JSON document.
pub const SCHEMA: &str = "thinair.analyze/1";

/// Results of an analysis.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Number of parallel channels of each link, as set by `Settings`.
    pub partitions: u32,
    /// The files, in reading order.
    pub inputs: Vec<InputSummary>,
    /// Sums over all files.
    pub totals: Totals,
    /// Octets of all frames by cause and protocol, largest first; empty without a survey. The sum is that of the frames
    /// of the captures, without those that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bill: Vec<BillRow>,
    /// Recommended scheme and settings; `None` if no scheme that both ends can be configured for saves
    /// anything: octets, or units where the link bills units.
    pub recommendation: Option<Recommendation>,
    /// The largest flows by octets, in order of appearance; at most
    /// [`Settings::most_flows`](crate::Settings::most_flows).
    pub flows: Vec<Flow>,
    /// All others, in order of appearance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_flows: Vec<OtherFlow>,
    /// The first packets that were not restored bit for bit, at most [`MOST_FAULTS`].
    pub faults: Vec<Mismatch>,
    /// Sizes of all headers over time, input after input.
    #[serde(skip)]
    pub timeline: Timeline,
    /// Number of packets by the octets of all their uncompressed headers.
    #[serde(skip)]
    pub header_sizes_in: BTreeMap<u64, u64>,
    /// Number of packets by the octets of all their headers as sent, for each scheme.
    #[serde(skip)]
    pub header_sizes_out: Vec<BTreeMap<u64, u64>>,
    /// Sums for [`merge`](Self::merge); `None` if schemes were left out.
    #[serde(skip)]
    pub(crate) sums: Option<Box<RunSums>>,
}

/// Maximum number of faults listed; all are counted.
pub const MOST_FAULTS: usize = 10;

/// Number of flows with a [`Flow::course`], the largest by octets.
pub const MOST_COURSES: usize = 3;

impl Outcome {
    /// Number of packets that were not restored bit for bit, in all schemes.
    pub fn mismatches(&self) -> u64 {
        self.totals.schemes.iter().map(|scheme| scheme.roundtrip_mismatches).sum()
    }
}

impl Outcome {
    /// Returns the outcome with only the best variant of each scheme, the one with the lowest price, if the link
    /// has one, then with fewest octets sent, feedback included; without [`other_flows`](Self::other_flows).
    pub fn best_of_each(&self) -> Self {
        let schemes = &self.totals.schemes;
        let is_best = |at: usize, scheme: &Scheme| {
            let others = schemes.iter().enumerate().filter(|(_, other)| other.scheme == scheme.scheme);
            let rank = |scheme: &Scheme| (scheme.cost_out.unwrap_or_default(), scheme.sent_bytes());
            let cheapest = others.min_by(|(_, a), (_, b)| {
                let ((cost, octets), (other_cost, other_octets)) = (rank(a), rank(b));
                cost.total_cmp(&other_cost).then(octets.cmp(&other_octets))
            });
            cheapest.is_some_and(|(best, _)| best == at)
        };
        let keep: Vec<_> = schemes.iter().enumerate().map(|(at, scheme)| is_best(at, scheme)).collect();
        let outcome = Self {
            schema: self.schema,
            partitions: self.partitions,
            inputs: self.inputs.clone(),
            totals: self.totals.clone(),
            bill: self.bill.clone(),
            recommendation: self.recommendation.clone(),
            flows: self.flows.clone(),
            other_flows: Vec::new(),
            faults: self.faults.clone(),
            timeline: self.timeline.clone(),
            header_sizes_in: self.header_sizes_in.clone(),
            header_sizes_out: self.header_sizes_out.clone(),
            sums: None,
        };
        outcome.only(&keep)
    }

    /// Returns the outcome with the schemes for which `keep` is true.
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

/// Retains the elements of the schemes for which `keep` is true.
pub(crate) fn retain<T>(of_schemes: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    of_schemes.retain(|_| keep.next().is_none_or(|keep| *keep));
}

/// A capture file. `packets` is the sum of `ip_packets` and all of `skipped`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InputSummary {
    /// Path, as given.
    pub path: String,
    /// Number of records.
    pub packets: u64,
    /// Records with an IP packet whose headers are complete; these are compressed.
    pub ip_packets: u64,
    /// Records of `ip_packets` whose payload was not captured completely. Zeros replace the missing octets,
    /// so checksums over them do not match.
    pub cut: u64,
    /// Number of records by link type: name in the registry of `LINKTYPE_` values and number. Includes the
    /// first link type of a file even if it has no record.
    #[serde(serialize_with = "by_link_type", skip_deserializing)]
    pub link_types: BTreeMap<LinkType, u64>,
    /// Packets extracted from tunnels, by kind of tunnel; empty if there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default, deserialize_with = "names")]
    pub unwrapped: BTreeMap<Name, u64>,
    /// Packets of tunnels that are not opened, by kind of tunnel: their outer packets are compressed. Empty if there are
    /// none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default, deserialize_with = "names")]
    pub not_unwrapped: BTreeMap<Name, u64>,
    /// Frames whose headers were compressed with LOWPAN_IPHC (RFC 6282). Their packets count as expanded from it.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub iphc_frames: u64,
    /// Other records, by reason for skipping them.
    #[serde(deserialize_with = "names")]
    pub skipped: BTreeMap<Name, u64>,
    /// IP packets that are compressed less than usual so that they can be restored exactly, by the first
    /// reason that applies.
    #[serde(deserialize_with = "names")]
    pub odd: BTreeMap<Name, u64>,
    /// Frames that the system dropped before they could be captured, if it was queried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Reason why reading ended before the end of the file: it is truncated, as by an interrupted capture, or
    /// damaged.
    pub ended_by: Option<String>,
    /// Rules of SCHC derived from the file, if SCHC is one of the schemes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schc_rules: Option<SchcRules>,
    /// Prefixes used as 6LoWPAN contexts, if 6LoWPAN is one of the schemes; most frequent first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowpan_contexts: Option<Vec<String>>,
    /// True if reading ended at damage, and the rest of the file is unknown.
    #[serde(skip)]
    pub damaged: bool,
}

impl InputSummary {
    /// Counts a record. Returns its IP packet, if it has one with complete headers.
    pub(crate) fn count<'p>(
        &mut self,
        unpack: &'p mut Unpack,
        record: &Record<'p>,
    ) -> Option<ParsedPacket<'p>> {
        self.packets += 1;
        *self.link_types.entry(record.link_type).or_default() += 1;
        let packet = match unpack.packet(record) {
            Ok(packet) => packet,
            Err(reason) => {
                *self.skipped.entry(reason).or_default() += 1;
                return None;
            }
        };
        self.ip_packets += 1;
        self.cut += u64::from(packet.missing > 0);
        if let Some(odd) = packet.odd {
            *self.odd.entry(odd).or_default() += 1;
        }
        Some(packet)
    }

    /// Counts a record that cannot be read, or notes the end of reading.
    pub(crate) fn count_error(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Io { .. } => return Err(error),
            error if error.ends_reading() => {
                self.damaged = !matches!(error, Error::Truncated { .. });
                self.ended_by = Some(error.to_string());
            }
            _ => {
                self.packets += 1;
                *self.skipped.entry("malformed_record").or_default() += 1;
            }
        }
        Ok(())
    }

    /// Adds what is known when all records are read.
    pub(crate) fn end<R: Read>(&mut self, reader: &Reader<R>, unpack: &Unpack) {
        if let Some(link_type) = reader.link_type() {
            self.link_types.entry(link_type).or_default();
        }
        self.unwrapped.clone_from(unpack.unwrapped());
        self.not_unwrapped.clone_from(unpack.not_unwrapped());
        self.iphc_frames = unpack.iphc_frames();
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn by_link_type<S: Serializer>(records: &BTreeMap<LinkType, u64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(records.iter().map(|(link_type, records)| (link_type.to_string(), records)))
}

/// SCHC rules provisioned at both ends before the first packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SchcRules {
    /// Octets for provisioning all of them at one side, see [`RuleSet::provisioning_octets`].
    pub provisioning_bytes: usize,
    /// The rules: first those of packets from side `a`, then those of packets to it.
    pub rules: Vec<SchcRule>,
}

/// A rule of SCHC for one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchcRule {
    /// RuleID.
    pub id: u8,
    /// DI: `Up` from side `a`, or `Dw`.
    #[serde(deserialize_with = "names")]
    pub direction: Name,
    /// Octets for provisioning it at one side.
    pub provisioning_bytes: usize,
    /// Field descriptors.
    pub fields: Vec<schc::DescriptorRow>,
}

impl SchcRules {
    pub(crate) fn of(rules: &RuleSet) -> Self {
        let to_rule = |rule: &schc::Rule| SchcRule {
            id: rule.id(),
            direction: rule.direction().name(),
            provisioning_bytes: rule.provisioning_octets(),
            fields: rule.rows().collect(),
        };
        let all = [Direction::Up, Direction::Dw].into_iter().flat_map(|direction| rules.rules(direction));
        Self { provisioning_bytes: rules.provisioning_octets(), rules: all.map(to_rule).collect() }
    }
}

/// Sums over all inputs. Octets are those of IP packets, without link layer headers.
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// IP packets.
    pub packets: u64,
    /// Number of flows in [`Outcome::flows`] and [`Outcome::other_flows`].
    pub flows: u64,
    /// Uncompressed traffic.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Price list of the link, if one is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tariff: Option<TariffSource>,
    /// Price of sessions, apart from their octets, if the price list has sessions; part of each price in the totals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_cost: Option<f64>,
    /// Price of all packets if payloads wait for others of their flow, by the longest wait; empty without a price list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packing: Vec<PackingCost>,
    /// Results of each scheme.
    pub schemes: Vec<Scheme>,
}

/// Origin of a price list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TariffSource {
    /// Name of the network and its seller.
    pub name: String,
    /// Where the price list was read.
    pub source: String,
    /// Date on which it was read.
    pub read: String,
    /// Currency of all prices: a code of ISO 4217, `credit` or `octet`.
    pub currency: String,
}

impl TariffSource {
    pub(crate) fn of(tariff: &Tariff) -> Self {
        let Tariff { name, source, read, currency, .. } = tariff.clone();
        Self { name, source, read, currency }
    }
}

/// Price of datagrams that wait for others of their flow, uncompressed, in packets of at most 1,280 octets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PackingCost {
    /// Longest wait, in seconds.
    pub within_seconds: u32,
    /// Price of all packets.
    pub cost: f64,
    /// 1 - `cost` / [`Traffic::cost_in`].
    pub saved_ratio: f64,
}

/// Octets of the uncompressed traffic.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Traffic {
    /// Octets of IP packets.
    pub bytes_in: u64,
    /// Octets of IP headers, extension headers, and UDP, UDP-Lite, ESP (SPI and Sequence Number) or TCP
    /// headers with options. Application headers are not included.
    pub header_bytes_in: u64,
    /// Octets by layer.
    pub layers_in: LayersIn,
    /// Octets of all headers of the first packets of all flows, application headers included.
    pub first_header_bytes_in: u64,
    /// Price of all packets, if the link has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_in: Option<f64>,
    /// Packets that exceed the link MTU, if one is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_mtu_in: Option<u64>,
}

/// Results of one scheme.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scheme {
    /// `rohc-v1`, `coap`, `dtls`, `tcp`, `schc` or `6lowpan`.
    #[serde(deserialize_with = "names")]
    pub scheme: Name,
    /// `u`, `o` or `r`; `None` for schemes without modes.
    #[serde(deserialize_with = "names")]
    pub mode: Option<Name>,
    /// Contexts of ROHC, if they differ from those of the other schemes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contexts: Option<Contexts>,
    /// Octets sent, without feedback.
    pub bytes_out: u64,
    /// Octets sent in place of `header_bytes_in`: compressed headers, and uncompressed ones. If a scheme also
    /// compresses CoAP or RTP, its compressed headers include those.
    pub header_bytes_out: u64,
    /// Octets of the first packets of all flows.
    pub first_packet_bytes: u64,
    /// Octets sent in place of `first_header_bytes_in`, without feedback.
    pub first_header_bytes_out: u64,
    /// 1 - (`bytes_out` + `feedback_bytes`) / `bytes_in`; 0 without traffic.
    pub saved_ratio: f64,
    /// Packets that the scheme cannot compress and sends unchanged.
    pub not_applicable: u64,
    /// Packets that were not restored bit for bit. On a lossy link: delivered packets that differ.
    pub roundtrip_mismatches: u64,
    /// Packets that were not delivered, on a lossy link.
    pub lost: u64,
    /// Packets that were not delivered, by reason: `link`, or the reason of the decompressor.
    #[serde(deserialize_with = "names")]
    pub lost_by: BTreeMap<Name, u64>,
    /// Packets by format, without those that the scheme cannot compress.
    pub packet_types: BTreeMap<Cow<'static, str>, u64>,
    /// Octets of compressed headers by format, for every scheme, not only ROHC.
    pub rohc_bytes_by_type: BTreeMap<Cow<'static, str>, u64>,
    /// Packets by ROHC profile.
    #[serde(deserialize_with = "names")]
    pub profiles: BTreeMap<Name, u64>,
    /// Packets that refresh an established context.
    pub refreshes: u64,
    /// Octets of their compressed headers.
    pub refresh_bytes: u64,
    /// Waiting time of a decompressor that starts late or has lost its context; `None` if feedback requests
    /// the context, and for schemes without contexts.
    #[serde(flatten)]
    pub late_wait: Option<LateWait>,
    /// Flows of more than 20 packets that took more octets than without compression, feedback included, apart
    /// from CIDs and 3 octets of each IR packet (type, profile, CRC). Only in totals of ROHC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub larger_flows: Option<u64>,
    /// Feedback packets, each sent separately in the other direction.
    pub feedback_packets: u64,
    /// Octets of feedback packets.
    pub feedback_bytes: u64,
    /// Octets of `bytes_out` by layer.
    pub layers_out: LayersOut,
    /// Price of all packets and of feedback, if the link has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_out: Option<f64>,
    /// Packets that exceed the link MTU, if one is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_mtu_out: Option<u64>,
}

/// Gaps between packets that establish a context from nothing, by flow: a decompressor that starts late, or
/// has lost its context, delivers no packet of the flow within a gap. Packets of profile 0x0000 are not
/// counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Identifier such as `rohc-v1/u` or `rohc-v1/u/large-127`; the name alone for schemes without modes.
    pub fn id(&self) -> String {
        id(self.scheme, self.mode, self.contexts)
    }

    /// Octets sent, feedback included.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contexts {
    /// CID space: `small` or `large`.
    #[serde(deserialize_with = "names")]
    pub cid: Name,
    /// MAX_CID: 0 to 15, or 0 to 16,383.
    pub max_cid: u16,
}

impl Contexts {
    /// Returns the identifiers of a channel.
    pub fn of(channel: &Channel) -> Self {
        let cid = match channel.cids() {
            CidSpace::Small => "small",
            CidSpace::Large => "large",
        };
        Self { cid, max_cid: channel.max_cid() }
    }
}

/// Octets of uncompressed packets by layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayersIn {
    /// IP headers and extension headers.
    pub ip: u64,
    /// UDP, UDP-Lite, ESP and TCP headers.
    pub transport: u64,
    /// Headers of CoAP (on its port) with token, options and payload marker, and of RTP.
    pub application: u64,
    /// All other octets.
    pub payload: u64,
}

impl LayersIn {
    /// Octets of IP and transport headers.
    pub fn headers(&self) -> u64 {
        self.ip + self.transport
    }

    /// Octets of IP, transport and application headers.
    pub fn all_headers(&self) -> u64 {
        self.headers() + self.application
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.ip += other.ip;
        self.transport += other.transport;
        self.application += other.application;
        self.payload += other.payload;
    }
}

/// Octets sent, by layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayersOut {
    /// Compressed headers of any scheme, not only ROHC.
    pub rohc: u64,
    /// Uncompressed IP headers.
    pub ip: u64,
    /// Uncompressed transport headers.
    pub transport: u64,
    /// Uncompressed application headers.
    pub application: u64,
    /// All other octets.
    pub payload: u64,
}

impl LayersOut {
    /// Octets of all headers except application headers.
    pub fn headers(&self) -> u64 {
        self.rohc + self.ip + self.transport
    }

    /// Octets of all headers.
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

/// A packet that was not restored bit for bit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mismatch {
    /// Index of the input, from 0.
    pub input: usize,
    /// Number of its record in the file, from 1.
    pub packet: u64,
    /// Source of the packet.
    pub src: String,
    /// Destination of the packet.
    pub dst: String,
    /// The scheme.
    #[serde(deserialize_with = "names")]
    pub scheme: Name,
    /// Its mode.
    #[serde(deserialize_with = "names")]
    pub mode: Option<Name>,
    /// Format sent; `None` if the packet was not compressed.
    pub format: Option<Cow<'static, str>>,
    /// Offset of the first octet that differs, from 0; `None` if nothing was delivered.
    pub offset: Option<usize>,
    /// Description of the error.
    pub cause: String,
}
