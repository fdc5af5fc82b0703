//! First reading of all captures: provisioning of schemes without learning, and facts for the selection of
//! schemes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thinair_capture::{Error, Reader};
use thinair_lowpan::{Contexts, LowpanContext};
use thinair_rohc::{CidSpace, Mode, ProfileId, ProfileSet};
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;

use crate::bill::{Bill, BillFlow, Remedies};
use crate::flow::Directory;
use crate::outcome::{InputSummary, MOST_COURSES};
use crate::packet::ParsedPacket;
use crate::portable::PortableInput;
use crate::schc::{Checksum, Direction, Learner, Reading, RuleSet};
use crate::settings::{SchemeSpec, Settings};
use crate::sides::CaptureSide;
use crate::unpack::Unpack;

/// Facts about captures, collected before their packets are compressed.
///
/// **Call [`read`](Self::read) for each capture, in the order in which [`Analysis`](crate::Analysis) reads
/// them.** All shards of a run may share one survey: it has all that a shard needs of the packets that it does not
/// carry. Serialized, it is read by the same version of this crate only, from trusted data.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Survey {
    #[serde(with = "portable_inputs")]
    pub(crate) inputs: Vec<Arc<SurveyedInput>>,
    pub(crate) facts: Facts,
    /// Octets of all frames by cause.
    pub(crate) bill: Bill,
    largest: Largest,
    /// Number of packets of each partition.
    packets: Vec<u64>,
}

/// Facts for the selection of schemes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    most_flows: usize,
    has_ipv6: bool,
    has_coap: bool,
    has_dtls: bool,
    has_tcp: bool,
}

impl Facts {
    /// Adds the facts about other captures.
    pub(crate) fn add(&mut self, other: &Self) {
        self.most_flows = self.most_flows.max(other.most_flows);
        self.has_ipv6 |= other.has_ipv6;
        self.has_coap |= other.has_coap;
        self.has_dtls |= other.has_dtls;
        self.has_tcp |= other.has_tcp;
    }
}

/// A flow in the first reading.
struct FlowCount {
    side: CaptureSide,
    partition: u32,
    packets: u64,
    octets: u64,
    bill: BillFlow,
}

/// The largest flows by octets, selected in memory proportional to their number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Largest {
    /// Octets and number of each flow, smallest on top; of flows with equal octets the last one.
    heap: BinaryHeap<Reverse<(u64, Reverse<usize>)>>,
    /// Number of flows so far.
    flows: usize,
}

/// Selected flows, by their numbers in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// In ascending order.
    numbers: Vec<usize>,
    /// Flows whose course is drawn, the largest ones.
    drawn: Vec<usize>,
    /// Number of first flows to list if no sizes are known.
    unranked: usize,
}

impl Largest {
    fn add(&mut self, octets: u64, most: usize) {
        self.heap.push(Reverse((octets, Reverse(self.flows))));
        self.flows += 1;
        if self.heap.len() > most {
            self.heap.pop();
        }
    }

    fn finish(self) -> Listed {
        // `Reverse` puts the largest first.
        let mut numbers: Vec<_> =
            self.heap.into_sorted_vec().into_iter().map(|Reverse((_, Reverse(number)))| number).collect();
        let drawn = numbers.iter().copied().take(MOST_COURSES).collect();
        numbers.sort_unstable();
        Listed { numbers, drawn, unranked: 0 }
    }
}

impl Listed {
    /// True if the flow of that number is listed with all sums.
    pub(crate) fn has(&self, number: usize) -> bool {
        number < self.unranked || self.numbers.binary_search(&number).is_ok()
    }

    /// True if its course is drawn.
    pub(crate) fn is_drawn(&self, number: usize) -> bool {
        number < self.unranked.min(MOST_COURSES) || self.drawn.contains(&number)
    }
}

/// A capture in the survey.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SurveyedInput {
    /// Rules of SCHC at both ends.
    pub(crate) rules: RuleSet,
    /// Contexts of 6LoWPAN at both ends.
    #[serde(with = "portable_contexts")]
    pub(crate) contexts: Contexts,
    /// Counts of its records and packets, without its path.
    summary: PortableInput,
    /// Places of its flows, in order of appearance.
    pub(crate) flows: Vec<FlowPlace>,
}

/// Partition and side of a flow, in 2 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FlowPlace(u16);

impl SurveyedInput {
    /// Counts of its records and packets, without its path.
    pub(crate) fn summary(&self) -> InputSummary {
        self.summary.clone().into()
    }
}

impl FlowPlace {
    /// `partition`: less than [`MOST_PARTITIONS`](crate::MOST_PARTITIONS), which is 2^10.
    fn new(partition: u32, side: CaptureSide) -> Self {
        Self((partition as u16) << 1 | side.index() as u16)
    }

    pub(crate) fn partition(self) -> u32 {
        (self.0 >> 1).into()
    }

    pub(crate) fn side(self) -> CaptureSide {
        if self.0 & 1 == 0 { CaptureSide::A } else { CaptureSide::B }
    }
}

/// Length of the prefixes that are 6LoWPAN contexts, in bits; the rest of an address is the interface
/// identifier.
const PREFIX: u8 = 64;

/// Maximum number of 6LoWPAN contexts (RFC 6282, section 3.1.2).
const MOST_CONTEXTS: usize = 16;

/// Prefix of link-local addresses, which need no context.
const LINK_LOCAL: [u8; 8] = [0xFE, 0x80, 0, 0, 0, 0, 0, 0];

/// Direction of a packet for SCHC; side A is the device.
pub(crate) fn direction(from: CaptureSide) -> Direction {
    match from {
        CaptureSide::A => Direction::Up,
        CaptureSide::B => Direction::Dw,
    }
}

impl Survey {
    /// Reads a capture as far as possible. `progress` receives the octets read so far from time to time.
    ///
    /// Rules of SCHC and contexts of 6LoWPAN are derived if these are among the schemes of the settings, or if the settings
    /// have no schemes yet.
    ///
    /// # Errors
    /// The data is not a capture, or cannot be read.
    pub fn read<R: Read>(
        &mut self,
        settings: &Settings,
        source: R,
        mut progress: impl FnMut(u64),
    ) -> Result<(), Error> {
        let checksum = if settings.elides_checksums() { Checksum::Computed } else { Checksum::Sent };
        let ports = settings.compressor.coap.ports;
        let wants = |spec| settings.schemes.is_empty() || settings.schemes.contains(&spec);
        let mut learner = wants(SchemeSpec::Schc).then(|| Learner::new(Reading { checksum, ports }));
        let mut prefixes = wants(SchemeSpec::Lowpan).then(BTreeMap::new);
        let (mut summary, mut remedies) = (InputSummary::default(), Remedies::default());
        let mut flows = Directory::default();
        let mut unpack =
            Unpack::new(settings.contexts).keeping_tunnels(settings.keep_tunnels).filling_payload(ports);
        let mut reader = Reader::new(source)?;
        while let Some(record) = reader.next_record() {
            match record {
                Ok(record) => {
                    let packet = summary.count(&mut unpack, &record);
                    if packet.is_none() {
                        self.bill.frame(&record);
                    }
                    if let Some(packet) = packet {
                        let flow = flows.of(&packet, |side| FlowCount {
                            side,
                            partition: packet.partition(settings.partitions()),
                            packets: 0,
                            octets: 0,
                            bill: BillFlow::default(),
                        });
                        flow.packets += 1;
                        flow.octets += packet.octets.len() as u64;
                        self.bill.packet(&record, &packet, &mut flow.bill, &ports, &mut remedies);
                        if let Some(learner) = &mut learner {
                            learner.observe(direction(flow.side), packet.octets);
                        }
                        if let Some(prefixes) = &mut prefixes {
                            count_prefixes(&packet, prefixes);
                        }
                        let is_of_coap = |port| ports.has(port);
                        self.facts.has_coap |= packet.key.protocol == protocol::UDP
                            && packet.key.ports.is_some_and(|(a, b)| is_of_coap(a) || is_of_coap(b));
                        self.facts.has_dtls |= packet.is_dtls();
                        self.facts.has_tcp |= packet.key.protocol == protocol::TCP;
                        self.facts.has_ipv6 |= packet.octets.first().is_some_and(|first| first >> 4 == 6);
                    }
                }
                Err(error) => summary.count_error(error)?,
            }
            if summary.packets.is_multiple_of(crate::run::PROGRESS_EVERY) {
                progress(reader.octets_read());
            }
        }
        summary.end(&reader, &unpack);
        self.bill.finish(remedies);
        self.packets.resize(settings.partitions() as usize, 0);
        let mut numbers = vec![0; self.packets.len()];
        for flow in flows.list() {
            let partition = flow.partition as usize;
            self.packets[partition] += flow.packets;
            numbers[partition] += 1;
            self.largest.add(flow.octets, settings.most_flows);
        }
        self.facts.most_flows = numbers.into_iter().fold(self.facts.most_flows, usize::max);
        let flows = flows.list().iter().map(|flow| FlowPlace::new(flow.partition, flow.side)).collect();
        self.inputs.push(Arc::new(SurveyedInput {
            rules: learner.map(Learner::finish).unwrap_or_default(),
            contexts: contexts(prefixes.unwrap_or_default()),
            summary: summary.into(),
            flows,
        }));
        Ok(())
    }

    /// Counts a capture that [`read`](Self::read) refused: it has no packet, and its place among the captures.
    pub fn leave_out(&mut self) {
        self.inputs.push(Arc::default());
    }

    /// Returns at most `most` flows of all captures to list with all sums.
    pub(crate) fn listed(&mut self, most: usize) -> Listed {
        match self.inputs.is_empty() {
            true => Listed { unranked: most, ..Listed::default() },
            false => std::mem::take(&mut self.largest).finish(),
        }
    }

    /// Adds the facts of another survey for the selection of schemes: [`applicable`](Self::applicable) and others then
    /// consider the captures of both.
    pub fn add_facts(&mut self, other: &Self) {
        self.facts.add(&other.facts);
    }

    /// Number of flows in the partition of a capture with most flows.
    pub fn most_flows(&self) -> usize {
        self.facts.most_flows
    }

    /// True if any datagram has a port of CoAP.
    pub fn has_coap(&self) -> bool {
        self.facts.has_coap
    }

    /// Divides the partitions into at most `most` ranges with about equal numbers of packets, each for
    /// [`Settings::only`]. Together they are all partitions.
    pub fn shards(&self, most: usize) -> Vec<Range<u32>> {
        let packets: u64 = self.packets.iter().sum();
        let most = most.max(1) as u64;
        let (mut shards, mut start, mut before) = (Vec::new(), 0, 0);
        for (end, of_partition) in (1..).zip(&self.packets) {
            before += of_partition;
            let is_last = shards.len() as u64 + 1 == most;
            if !is_last && before * most >= packets * (shards.len() as u64 + 1) {
                shards.push(start..end);
                start = end;
            }
        }
        shards.push(start..u32::MAX);
        shards
    }

    /// Returns the profiles of a set that can make a difference: without `coap` if no datagram has a
    /// CoAP port, and without `tcp` if there is no TCP.
    pub fn useful(&self, profiles: ProfileSet) -> ProfileSet {
        self.facts.useful(profiles)
    }

    /// Returns the schemes whose results can differ on these captures, in the given order: the first one of
    /// several equivalent schemes; 6LoWPAN only for IPv6.
    pub fn applicable(&self, schemes: &[SchemeSpec]) -> Vec<SchemeSpec> {
        let mut kept: Vec<SchemeSpec> = Vec::new();
        for &spec in schemes {
            let is_applicable = match spec {
                SchemeSpec::Rohc { .. } => {
                    kept.iter().all(|other| self.essence(other) != self.essence(&spec))
                }
                SchemeSpec::Schc => true,
                SchemeSpec::Lowpan => self.facts.has_ipv6,
            };
            if is_applicable {
                kept.push(spec);
            }
        }
        kept
    }

    /// Returns the properties of a scheme that can make a difference.
    fn essence(&self, spec: &SchemeSpec) -> Option<(CidSpace, u16, ProfileSet, Mode, bool)> {
        match *spec {
            SchemeSpec::Rohc { channel, mode, learned, .. } => {
                Some((channel.cids(), channel.max_cid(), self.useful(channel.profiles()), mode, learned))
            }
            SchemeSpec::Schc | SchemeSpec::Lowpan => None,
        }
    }
}

impl Facts {
    /// Returns the profiles of a set that can make a difference.
    pub(crate) fn useful(&self, profiles: ProfileSet) -> ProfileSet {
        let is_useful = |profile: &ProfileId| match profile {
            ProfileId::Coap => self.has_coap,
            ProfileId::Dtls => self.has_dtls,
            ProfileId::Tcp => self.has_tcp,
            _ => true,
        };
        let kept: Vec<_> = profiles.iter().filter(is_useful).collect();
        ProfileSet::of(&kept).unwrap_or(profiles)
    }
}

/// Counts the prefixes of the outer header.
fn count_prefixes(packet: &ParsedPacket<'_>, prefixes: &mut BTreeMap<[u8; 8], u64>) {
    let Ok(header) = Ipv6::read(packet.octets) else { return };
    for address in [header.source, header.destination] {
        let Some(&prefix) = address.first_chunk() else { continue };
        let is_context = prefix != LINK_LOCAL && prefix[0] != 0xFF && address != [0; 16];
        if is_context {
            *prefixes.entry(prefix).or_default() += 1;
        }
    }
}

/// Inputs without the pointers to them.
mod portable_inputs {
    use std::sync::Arc;

    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::SurveyedInput;

    type Inputs = Vec<Arc<SurveyedInput>>;

    pub(super) fn serialize<S: Serializer>(inputs: &Inputs, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(inputs.iter().map(|input| &**input))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Inputs, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().map(Arc::new).collect())
    }
}

/// Contexts of 6LoWPAN as their prefixes, in the order of their numbers.
mod portable_contexts {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{Contexts, numbered};

    pub(super) fn serialize<S: Serializer>(contexts: &Contexts, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..).map_while(|id| contexts.context(id)).map(|context| context.prefix()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Contexts, D::Error> {
        Ok(numbered(Vec::deserialize(deserializer)?))
    }
}

/// Returns the most frequent prefixes; referring to the first one costs no octet.
fn contexts(prefixes: BTreeMap<[u8; 8], u64>) -> Contexts {
    let mut prefixes: Vec<_> = prefixes.into_iter().collect();
    prefixes.sort_by_key(|(_, packets)| std::cmp::Reverse(*packets));
    let address = |(prefix, _): ([u8; 8], u64)| {
        let mut address = [0; 16];
        address[..8].copy_from_slice(&prefix);
        address
    };
    numbered(prefixes.into_iter().take(MOST_CONTEXTS).map(address))
}

/// Returns contexts of these prefixes, numbered in their order.
fn numbered(prefixes: impl IntoIterator<Item = [u8; 16]>) -> Contexts {
    let mut contexts = Contexts::NONE;
    for (id, prefix) in (0..).zip(prefixes) {
        let added = LowpanContext::new(prefix, PREFIX).and_then(|context| contexts.with(id, context));
        contexts = added.unwrap_or(contexts);
    }
    contexts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_flows_are_listed_and_of_equal_ones_the_first() {
        let mut largest = Largest::default();
        [5, 9, 1, 5, 7, 5].into_iter().for_each(|octets| largest.add(octets, 4));
        let listed = largest.finish();
        let numbers: Vec<_> = (0..6).filter(|number| listed.has(*number)).collect();
        assert_eq!((numbers, listed.drawn), (vec![0, 1, 3, 4], vec![1, 4, 0]));
    }

    #[test]
    fn the_most_frequent_prefix_is_context_0() {
        let prefixes = (0..20_u8).map(|i| ([0xFD, 0, 0, 0, 0, 0, 0, i], u64::from(i) + 1)).collect();
        let contexts = contexts(prefixes);
        let last = |id| contexts.context(id).map(|context| (context.prefix()[7], context.length()));
        assert_eq!((last(0), last(15)), (Some((19, 64)), Some((4, 64))));
    }
}
