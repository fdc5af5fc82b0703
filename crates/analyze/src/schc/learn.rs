//! Common properties of the packets of a capture, collected in one pass and in bounded memory.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::bits::Bits;
use super::fields::{FieldId, FieldLabel, Knowledge, Parsed};
use super::{Direction, Reading, RuleSet, derive};

/// Maximum number of groups of packets per direction that are distinguished by all properties, and again as
/// many without distinguishing values, and as many without addresses and ports. A larger capture does not
/// suit 255 rules.
const MAX_GROUPS: usize = 1_024;

/// Maximum number of values remembered per field: an index of 5 bits.
const MAX_VALUES: usize = 32;

/// Maximum number of counted values of a field that is chosen per flow.
const MAX_FLOW_VALUES: usize = 65_536;

/// Number of packets from which on a value counts as a property of the deployment, not of a short capture.
pub(super) const ESTABLISHED: u64 = 8;

/// Observes packets, and derives the best rules for them.
///
/// **First call [`observe`](Self::observe) for every packet, then [`finish`](Self::finish).**
#[derive(Debug, Default)]
pub struct Learner {
    reading: Reading,
    groups: [BTreeMap<GroupKey, Group>; 2],
    census: Census,
}

/// Common properties of the packets of a group. `None`: may differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKey {
    pub(super) labels: Rc<[FieldLabel]>,
    /// Lengths of options in bits.
    pub(super) lengths: Option<Vec<usize>>,
    /// Type, TKL and code.
    pub(super) message: Option<Vec<u8>>,
    /// Ports and Flow Label.
    pub(super) flow: Option<Vec<u8>>,
    pub(super) addresses: Option<Vec<u8>>,
    /// All other fields that a rule may contain: Hop Limit, Uri-Path, Content-Format.
    pub(super) values: Option<Vec<u8>>,
}

/// Packets with equal field lengths, unless a [`GroupKey`] was widened.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) packets: u64,
    /// Octets before the payload of each packet.
    pub(super) header: u64,
    /// Values by field, in the order of the labels.
    pub(super) seen: Vec<FieldValues>,
}

/// The values of a field.
#[derive(Clone, Debug)]
pub(super) struct FieldValues {
    /// Minimum and maximum length in bits.
    pub(super) len: (usize, usize),
    /// Common prefix of all values.
    pub(super) prefix: Bits,
    /// The values with their counts; incomplete if there are more than [`MAX_VALUES`].
    pub(super) values: BTreeMap<Bits, u64>,
    /// True if `values` is complete.
    pub(super) complete: bool,
}

/// Number of packets in both directions by value, for fields that are chosen per flow.
#[derive(Debug, Default)]
pub(super) struct Census(BTreeMap<(FieldId, Bits), u64>);

impl Learner {
    /// Returns a learner without observations.
    pub fn new(reading: Reading) -> Self {
        Self { reading, ..Self::default() }
    }

    /// Observes a packet.
    pub fn observe(&mut self, direction: Direction, packet: &[u8]) {
        let Some(parsed) = Parsed::parse(&self.reading, direction, packet) else { return };
        let values: Vec<_> = parsed.fields.iter().map(|field| parsed.value(field)).collect();
        for (field, value) in parsed.fields.iter().zip(&values) {
            self.census.count(field.label.id, value);
        }
        let Some(groups) = self.groups.get_mut(direction.index()) else { return };
        let mut key = GroupKey::of(&parsed, &values);
        let is_full = |groups: &BTreeMap<_, _>, key: &GroupKey, times| {
            groups.len() >= times * MAX_GROUPS && !groups.contains_key(key)
        };
        if is_full(groups, &key, 1) {
            key.values = None;
        }
        if is_full(groups, &key, 2) {
            (key.addresses, key.flow) = (None, None);
        }
        if is_full(groups, &key, 3) {
            return;
        }
        let group = groups.entry(key).or_default();
        group.header = (packet.len() - parsed.payload.len()) as u64;
        group.add(&values);
    }

    /// Returns the best rules for the observed packets.
    pub fn finish(self) -> RuleSet {
        let [up, dw] = self.groups;
        let rules = |direction, groups: BTreeMap<_, _>| {
            derive::rules(direction, groups.into_iter().collect(), &self.census)
        };
        RuleSet::new(self.reading, [rules(Direction::Up, up), rules(Direction::Dw, dw)])
    }
}

impl GroupKey {
    fn of(packet: &Parsed<'_>, values: &[Bits]) -> Self {
        // Capacities that most packets need.
        let [mut message, mut flow, mut addresses, mut others] = [16, 24, 64, 128].map(Vec::with_capacity);
        for (field, value) in packet.fields.iter().zip(values) {
            let id = field.label.id;
            use FieldId::{CoapCode, CoapTkl, CoapType, Ipv6FlowLabel, UdpAppPort, UdpDevPort};
            let part = match id {
                CoapType | CoapTkl | CoapCode => &mut message,
                Ipv6FlowLabel | UdpDevPort | UdpAppPort => &mut flow,
                _ if field.label.computable || id.knowledge(value) == Knowledge::Any => continue,
                _ if id.is_address() => &mut addresses,
                _ => &mut others,
            };
            part.extend((value.len() as u32).to_be_bytes());
            part.extend(value.as_octets());
        }
        let options = packet.fields.iter().filter(|field| field.label.id.is_option());
        Self {
            labels: packet.labels().into(),
            lengths: Some(options.map(|field| field.len).collect()),
            message: Some(message),
            flow: Some(flow),
            addresses: Some(addresses),
            values: Some(others),
        }
    }
}

impl Group {
    fn add(&mut self, values: &[Bits]) {
        self.packets += 1;
        if self.seen.is_empty() {
            self.seen = values.iter().map(FieldValues::one).collect();
        } else {
            for (seen, value) in self.seen.iter_mut().zip(values) {
                seen.add(value, 1);
                seen.shorten(value);
                seen.len = (seen.len.0.min(value.len()), seen.len.1.max(value.len()));
            }
        }
    }

    /// Merges groups with equal labels.
    pub(super) fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        if self.seen.is_empty() {
            self.seen.clone_from(&other.seen);
        } else {
            for (seen, other) in self.seen.iter_mut().zip(&other.seen) {
                seen.merge(other);
            }
        }
    }
}

impl FieldValues {
    fn one(value: &Bits) -> Self {
        Self {
            len: (value.len(), value.len()),
            prefix: value.clone(),
            values: BTreeMap::from([(value.clone(), 1)]),
            complete: true,
        }
    }

    fn add(&mut self, value: &Bits, packets: u64) {
        let has_room = self.values.len() < MAX_VALUES;
        match self.values.get_mut(value) {
            Some(count) => *count += packets,
            None if has_room => {
                self.values.insert(value.clone(), packets);
            }
            None => self.complete = false,
        }
    }

    /// Shortens the prefix to the part that a value shares.
    fn shorten(&mut self, value: &Bits) {
        let common = self.prefix.common_prefix(value);
        if common < self.prefix.len() {
            self.prefix = self.prefix.prefix(common);
        }
    }

    fn merge(&mut self, other: &Self) {
        for (value, packets) in &other.values {
            self.add(value, *packets);
        }
        self.complete &= other.complete;
        self.shorten(&other.prefix);
        self.len = (self.len.0.min(other.len.0), self.len.1.max(other.len.1));
    }
}

impl Census {
    fn count(&mut self, id: FieldId, value: &Bits) {
        if id.knowledge(value) != Knowledge::PerFlow {
            return;
        }
        let key = (id, value.clone());
        if self.0.len() < MAX_FLOW_VALUES || self.0.contains_key(&key) {
            *self.0.entry(key).or_default() += 1;
        }
    }

    /// True if enough packets have the value for a rule to contain it.
    pub(super) fn is_established(&self, id: FieldId, value: &Bits) -> bool {
        self.0.get(&(id, value.clone())).is_some_and(|packets| *packets >= ESTABLISHED)
    }
}
