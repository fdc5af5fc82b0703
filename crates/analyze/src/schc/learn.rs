//! Common properties of the packets of a capture, collected in one pass and in bounded memory.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::bits::Bits;
use super::fields::{FieldId, FieldLabel, Knowledge, Parsed};
use super::{Direction, FieldRoom, FoldMap, Reading, RuleSet, derive};

/// Maximum number of groups of packets per direction that are distinguished by all properties, and again as
/// many without distinguishing values, and as many without addresses and ports. A larger capture does not
/// suit 255 rules.
const MAX_GROUPS: usize = 1_024;

/// Maximum number of values remembered per field: an index of 5 bits.
const MAX_VALUES: usize = 32;

/// Maximum number of kinds of packets per direction that are recognized. Others take more time.
const MAX_KINDS: usize = 4_096;

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
    directions: [Groups; 2],
    census: Census,
    /// Properties of the latest packet.
    properties: Properties,
    room: FieldRoom,
}

/// Groups of one direction.
#[derive(Debug, Default)]
struct Groups {
    list: Vec<Group>,
    /// Indices of the groups.
    by_key: BTreeMap<GroupKey, usize>,
    kinds: Vec<Kind>,
    /// Indices of the kinds.
    by_properties: FoldMap<Vec<u8>, usize>,
}

/// Packets with equal properties, which are therefore in one group.
#[derive(Debug)]
struct Kind {
    /// Index of their group; `None` if there were too many groups.
    group: Option<usize>,
    labels: Rc<[FieldLabel]>,
    /// Values of the first packet.
    values: Vec<Bits>,
    /// Number of packets after the first one.
    repeats: u64,
}

/// Headers of a packet, with ones in place of fields that can be computed, and zeros in place of others that vary. Packets
/// with equal octets have equal fields, and equal keys.
#[derive(Debug, Default)]
struct Properties(Vec<u8>);

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
        let Some(parsed) = Parsed::parse(&self.reading, direction, packet, &mut self.room) else { return };
        let Some(groups) = self.directions.get_mut(direction.index()) else { return };
        self.properties.set(&parsed);
        if groups.repeat(&self.properties, &parsed) {
            return;
        }
        let values: Vec<_> = parsed.fields.iter().map(|field| parsed.value(field)).collect();
        for (field, value) in parsed.fields.iter().zip(&values) {
            self.census.count(field.label.id, value);
        }
        let key = GroupKey::of(&parsed, &values);
        let labels = Rc::clone(&key.labels);
        let group = groups.of(key);
        if let Some(group) = group.and_then(|group| groups.list.get_mut(group)) {
            group.header = (packet.len() - parsed.payload.len()) as u64;
            group.add(&values);
        }
        if groups.kinds.len() < MAX_KINDS {
            groups.by_properties.insert(self.properties.0.clone(), groups.kinds.len());
            groups.kinds.push(Kind { group, labels, values, repeats: 0 });
        }
    }

    /// Forgets the kinds of packets: the next packet is observed like the first one of its kind.
    #[cfg(test)]
    pub(super) fn forget_kinds(&mut self) {
        self.directions.iter_mut().for_each(|groups| groups.by_properties.clear());
    }

    /// Returns the best rules for the observed packets.
    pub fn finish(mut self) -> RuleSet {
        let [up, dw] = self.directions.map(|groups| groups.finish(&mut self.census));
        let rules = |direction, groups| derive::rules(direction, groups, &self.census);
        RuleSet::new(self.reading, [rules(Direction::Up, up), rules(Direction::Dw, dw)])
    }
}

impl Groups {
    /// Returns the index of the group with a key, or with part of it if there are too many groups.
    fn of(&mut self, mut key: GroupKey) -> Option<usize> {
        let is_full = |groups: &BTreeMap<_, _>, key: &GroupKey, times| {
            groups.len() >= times * MAX_GROUPS && !groups.contains_key(key)
        };
        if is_full(&self.by_key, &key, 1) {
            key.values = None;
        }
        if is_full(&self.by_key, &key, 2) {
            (key.addresses, key.flow) = (None, None);
        }
        if is_full(&self.by_key, &key, 3) {
            return None;
        }
        let group = *self.by_key.entry(key).or_insert(self.list.len());
        if group == self.list.len() {
            self.list.push(Group::default());
        }
        Some(group)
    }

    /// Counts a packet whose properties an earlier one had; returns false if none had.
    fn repeat(&mut self, properties: &Properties, packet: &Parsed<'_>) -> bool {
        let kind = self.by_properties.get(&properties.0).and_then(|kind| self.kinds.get_mut(*kind));
        let Some(kind) = kind else { return false };
        kind.repeats += 1;
        if let Some(group) = kind.group.and_then(|group| self.list.get_mut(group)) {
            group.repeat(packet);
        }
        true
    }

    /// Returns the groups in the order of their keys, and counts the values of packets that repeat properties.
    fn finish(mut self, census: &mut Census) -> Vec<(GroupKey, Group)> {
        for Kind { group, labels, values, repeats } in &self.kinds {
            let seen = group.and_then(|group| self.list.get_mut(group)).map(|group| &mut group.seen);
            let mut seen = seen.into_iter().flatten();
            for (label, value) in labels.iter().zip(values) {
                census.repeat(label.id, value, *repeats);
                if let Some(seen) = seen.next()
                    && !label.varies()
                    && let Some(packets) = seen.values.get_mut(value)
                {
                    *packets += repeats;
                }
            }
        }
        let group = |(key, group): (_, usize)| Some((key, std::mem::take(self.list.get_mut(group)?)));
        self.by_key.into_iter().filter_map(group).collect()
    }
}

impl Properties {
    fn set(&mut self, packet: &Parsed<'_>) {
        self.0.clear();
        self.0.extend_from_slice(packet.header());
        for field in packet.fields.iter().filter(|field| field.label.varies()) {
            // These fields consist of whole octets.
            let octets = self.0.get_mut(field.at / 8..(field.at + field.len) / 8).unwrap_or_default();
            octets.fill(if field.label.computable { 0xFF } else { 0 });
        }
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
                _ if field.label.varies() => continue,
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
                seen.observe(value);
            }
        }
    }

    /// Adds a packet that differs from an earlier one in fields only that vary. The other ones are counted
    /// [later](Groups::finish).
    fn repeat(&mut self, packet: &Parsed<'_>) {
        self.packets += 1;
        for (seen, field) in self.seen.iter_mut().zip(packet.fields) {
            // A rule contains no values of computed fields.
            if field.label.varies() && !field.label.computable {
                seen.observe(&packet.value(field));
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

    fn observe(&mut self, value: &Bits) {
        self.add(value, 1);
        self.shorten(value);
        self.len = (self.len.0.min(value.len()), self.len.1.max(value.len()));
    }

    /// Counts a value; nothing depends on counts that are incomplete.
    fn add(&mut self, value: &Bits, packets: u64) {
        if !self.complete {
            return;
        }
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

    /// Counts further packets with a value.
    fn repeat(&mut self, id: FieldId, value: &Bits, packets: u64) {
        if id.knowledge(value) == Knowledge::PerFlow
            && let Some(count) = self.0.get_mut(&(id, value.clone()))
        {
            *count += packets;
        }
    }

    /// True if enough packets have the value for a rule to contain it.
    pub(super) fn is_established(&self, id: FieldId, value: &Bits) -> bool {
        self.0.get(&(id, value.clone())).is_some_and(|packets| *packets >= ESTABLISHED)
    }
}
