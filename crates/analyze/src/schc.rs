//! Static Context Header Compression (RFC 8724, section 7; CoAP: RFC 8824), as a reference for comparisons.
//!
//! This module derives the best rules for a capture, and compresses and restores packets with them, bit for bit.
//! Fragmentation, changes of rules, and their distribution to devices are out of scope.
//!
//! ```
//! use thinair_analyze::schc::{Direction, Learner};
//!
//! // CoAP GETs over UDP and IPv6, each 57 octets. The checksum is that of Message ID 0 less the Message ID.
//! let get = |id: u16| {
//!     let mut packet = *b"\x60\0\0\0\0\x11\x11\x40\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x02\
//!         \xe0\x01\x16\x33\0\x11\x00\x00\x40\x01\0\0\xb4time";
//!     packet[50..52].copy_from_slice(&id.to_be_bytes());
//!     packet[46..48].copy_from_slice(&(CHECKSUM - id).to_be_bytes());
//!     packet
//! };
//! # const CHECKSUM: u16 = 0x2F2F;
//! let mut learner = Learner::default();
//! for id in 0..10 {
//!     learner.observe(Direction::Up, &get(id * 1_000));
//! }
//! let rules = learner.finish();
//!
//! let mut schc = Vec::new();
//! let rule = rules.compress(Direction::Up, &get(0x1234), &mut schc);
//! assert_eq!((rule, schc.as_slice()), (1, &[0x01, 0x12, 0x34][..]));
//! let mut back = Vec::new();
//! rules.decompress(Direction::Up, &schc, &mut back)?;
//! assert_eq!(back, get(0x1234));
//! # Ok::<(), thinair_analyze::schc::SchcError>(())
//! ```
//!
//! # Assumptions in favor of SCHC
//!
//! The figures are a best case: both sides are provisioned with rules derived from the very packets that are then
//! compressed. Where a choice had to be made, it favors SCHC:
//!
//! - Rules cost nothing on the link. [`RuleSet::provisioning_octets`] returns what sending them would cost.
//! - RuleIDs have 8 bits, and each direction has 255 of them: rules of both directions with equal RuleIDs are one
//!   rule of RFC 8724, whose field descriptors have a Direction Indicator.
//! - A correct UDP checksum is not sent, as if another layer protected the packet (RFC 8724, section 10.11), except
//!   with [`Checksum::Sent`].
//! - The rule contains the length of an option if it is constant, also of Uri-Path and Uri-Query, for which RFC 8824
//!   (section 5.3) sends it; a length can have its own rule even for one packet.
//! - The rule contains constant values of Block and ETag, although RFC 8824 (sections 5.5 and 6.1) sends them.
//!
//! Rules do not exploit coincidences that a longer capture would not show:
//!
//! - A Message ID, Token, Observe, Block, ETag, Partial IV, IPv4 Identification or wrong checksum is sent in full,
//!   unless all packets of a rule have the same value, and they are at least 8. No rule contains common leading bits
//!   of Message IDs.
//! - A rule contains an ephemeral port or a Flow Label only if at least 8 packets have it.
//! - A group of packets gets its own rule because of its values (a path, for instance) only if it has at least 8
//!   packets.
//! - A list has at most 32 values, with a mean of at least 4 packets per value.
//!
//! # Packets covered by rules
//!
//! UDP over a single IPv4 or IPv6 header, and CoAP if a port is one of [`Reading::ports`] and the message has no
//! format error; otherwise the message is payload. All other packets (TCP, fragments, IPv4 options, extension
//! headers, tunnels, inconsistent lengths) are sent after the RuleID of no compression.
//!
//! Where to begin: `fields.rs` (parser), `rule.rs`, `codec.rs` (compression and decompression), `derive.rs`
//! (selection of rules).

mod bits;
mod checksum;
mod codec;
mod derive;
mod fields;
mod layout;
mod learn;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod oracle;
mod rule;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hash as _, Hasher};

use bits::Bits;
use fields::{FieldLabel, Parsed, ParsedField};
use layout::Layout;
pub use learn::Learner;
pub use rule::{DescriptorRow, Rule};
use serde::{Deserialize, Serialize};
use thinair_rohc::Ports;

/// RuleID of packets that are sent uncompressed.
pub const NO_COMPRESSION: u8 = 0;

/// Direction of a packet (DI).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Direction {
    /// From the device to the application.
    Up,
    /// From the application to the device.
    Dw,
}

impl Direction {
    /// Name of the direction in RFC 8724.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "Up",
            Self::Dw => "Dw",
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Up => 0,
            Self::Dw => 1,
        }
    }
}

/// Rules for parsing packets, equal at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Treatment of the UDP checksum.
    pub checksum: Checksum,
    /// UDP ports that carry CoAP.
    pub ports: Ports,
}

impl Default for Reading {
    fn default() -> Self {
        Self { checksum: Checksum::default(), ports: Ports::COAP }
    }
}

/// Treatment of a correct UDP checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Checksum {
    /// Not sent: the other end computes it, since another layer protects the packet (RFC 8724, section
    /// 10.11).
    #[default]
    Computed,
    /// Sent in the residue.
    Sent,
}

/// Reason why a SCHC packet cannot be decompressed. The sender is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchcError {
    /// The packet has no RuleID.
    #[error("a SCHC packet of no octet")]
    Empty,
    /// No rule of this direction has that RuleID.
    #[error("no rule has RuleID {0}")]
    UnknownRule(u8),
    /// The packet ends within the residue.
    #[error("the packet ends within the residue")]
    Short,
    /// An index exceeds the length of its list.
    #[error("an index is behind the end of its list")]
    Index,
    /// The rule has a Payload Marker and the packet has no payload, or vice versa.
    #[error("payload and Payload Marker do not go together")]
    Payload,
    /// The restored packet would exceed the range of its length fields.
    #[error("the restored packet is too long")]
    Length,
}

/// Rules of both directions, called the context in RFC 8724.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(into = "PortableRules", from = "PortableRules")]
pub struct RuleSet {
    reading: Reading,
    /// By direction; the RuleID of a rule is its index plus one.
    rules: [Vec<Rule>; 2],
    /// By direction, in the order of the rules.
    layouts: [Vec<Layout>; 2],
    /// By direction; the rules by a hash of the labels of their fields.
    places: [FoldMap<u64, Vec<AlikeRules>>; 2],
}

/// Memory for the fields of a packet.
pub(crate) type FieldRoom = Vec<ParsedField>;

type FoldMap<K, V> = HashMap<K, V, BuildHasherDefault<Fold>>;

/// Indices of the rules of a direction that have the same fields.
#[derive(Clone, Debug, Default)]
struct AlikeRules {
    labels: Vec<FieldLabel>,
    /// Index of the field for which the rules have most values.
    field: usize,
    /// The rules that contain its value, by this value.
    by_value: FoldMap<Bits, Vec<usize>>,
    /// The other rules.
    others: Vec<usize>,
}

impl AlikeRules {
    fn new(labels: Vec<FieldLabel>, rules: &[Rule], places: &[usize]) -> Self {
        let places = || places.iter().filter_map(|place| Some((*place, rules.get(*place)?)));
        let values =
            |field| places().filter_map(move |(_, rule)| rule.value(field)).collect::<BTreeSet<_>>().len();
        let fields = places().map(|(_, rule)| rule.descriptors.len()).min().unwrap_or(0);
        // The first of several fields with as many values.
        let field = (0..fields).rev().max_by_key(|field| values(*field)).unwrap_or(0);
        let mut alike = Self { labels, field, ..Self::default() };
        for (place, rule) in places() {
            match rule.value(field) {
                Some(value) => alike.by_value.entry(value.clone()).or_default().push(place),
                None => alike.others.push(place),
            }
        }
        alike
    }

    /// True if a packet has these fields.
    fn have(&self, packet: &Parsed<'_>) -> bool {
        self.labels.iter().eq(packet.fields.iter().map(|field| &field.label))
    }

    /// Returns the indices of the rules that may match a packet.
    fn candidates(&self, packet: &Parsed<'_>) -> impl Iterator<Item = usize> {
        let value = packet.fields.get(self.field).map(|field| packet.value(field));
        let with_value = value.and_then(|value| self.by_value.get(&value));
        with_value.into_iter().flatten().chain(&self.others).copied()
    }
}

/// Rules without their index.
#[derive(Serialize, Deserialize)]
struct PortableRules(Checksum, Vec<u16>, [Vec<Rule>; 2]);

impl From<RuleSet> for PortableRules {
    fn from(RuleSet { reading, rules, .. }: RuleSet) -> Self {
        Self(reading.checksum, (0..=u16::MAX).filter(|port| reading.ports.has(*port)).collect(), rules)
    }
}

impl From<PortableRules> for RuleSet {
    fn from(PortableRules(checksum, ports, rules): PortableRules) -> Self {
        Self::new(Reading { checksum, ports: Ports::of(&ports).unwrap_or(Ports::COAP) }, rules)
    }
}

/// A hash that processes several octets per step. With at most 255 rules per direction, collisions are
/// harmless.
#[derive(Clone, Copy, Debug, Default)]
struct Fold(u64);

/// Factor of Fibonacci hashing: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Fold {
    fn add(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(GOLDEN);
    }

    /// Adds a number of few bits.
    fn add_small(&mut self, value: u64) {
        self.0 = self.0.rotate_left(5) ^ value;
    }

    /// Returns the hash of the labels of fields.
    fn of_labels<'l>(labels: impl Iterator<Item = &'l FieldLabel>) -> u64 {
        let mut hash = Self::default();
        labels.for_each(|label| label.hash(&mut hash));
        hash.finish()
    }
}

impl Hasher for Fold {
    fn write(&mut self, octets: &[u8]) {
        let (words, rest) = octets.as_chunks();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        rest.iter().for_each(|octet| self.add((*octet).into()));
    }

    fn write_u8(&mut self, value: u8) {
        self.add_small(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.add_small(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.add_small(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.add_small(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0.wrapping_mul(GOLDEN).rotate_left(26)
    }
}

impl RuleSet {
    fn new(reading: Reading, rules: [Vec<Rule>; 2]) -> Self {
        let places = rules.each_ref().map(|rules| {
            let mut by_labels: FoldMap<_, Vec<_>> = FoldMap::default();
            for (place, rule) in rules.iter().enumerate() {
                by_labels.entry(rule.labels()).or_default().push(place);
            }
            let mut places: FoldMap<_, Vec<_>> = FoldMap::default();
            for (labels, alike) in by_labels {
                let hash = Fold::of_labels(labels.iter());
                places.entry(hash).or_default().push(AlikeRules::new(labels, rules, &alike));
            }
            places
        });
        let layouts = rules.each_ref().map(|rules| rules.iter().map(Layout::of).collect());
        Self { reading, rules, layouts, places }
    }

    /// Returns the rules of a direction, largest savings first.
    pub fn rules(&self, direction: Direction) -> &[Rule] {
        self.rules.get(direction.index()).map_or(&[], Vec::as_slice)
    }

    /// Octets for provisioning all rules at one side, in a simple encoding: a rule is its RuleID and the
    /// number of its field descriptors, an octet each. A descriptor has 2 octets of FID, 2 of FL, 1 of FP, 1
    /// of DI, MO and CDA. A value follows in whole octets, after an octet with its length if FL does not
    /// define it; the values of a list after an octet with their number; those of MSB(x) after two octets
    /// with x.
    pub fn provisioning_octets(&self) -> usize {
        self.rules.iter().flatten().map(Rule::provisioning_octets).sum()
    }

    /// Appends `packet` as a SCHC packet to `out`, and returns its RuleID. Of the matching rules, uses the
    /// first one with the shortest residue.
    pub fn compress(&self, direction: Direction, packet: &[u8], out: &mut Vec<u8>) -> u8 {
        let (rule, _) = self.compress_headers(direction, packet, &mut Vec::new(), out);
        rule
    }

    /// Works like [`compress`](Self::compress), and also returns the octets of the headers that the rule
    /// covers. `room` is memory for the fields of the packet.
    pub(crate) fn compress_headers(
        &self,
        direction: Direction,
        packet: &[u8],
        room: &mut FieldRoom,
        out: &mut Vec<u8>,
    ) -> (u8, usize) {
        let Some((rule, parsed)) = self.select(direction, packet, room) else {
            codec::uncompressed(packet, out);
            return (NO_COMPRESSION, 0);
        };
        codec::compress(rule, &parsed, out);
        (rule.id, packet.len() - parsed.payload.len())
    }

    fn select<'p>(
        &self,
        direction: Direction,
        packet: &'p [u8],
        room: &'p mut FieldRoom,
    ) -> Option<(&Rule, Parsed<'p>)> {
        let parsed = Parsed::parse(&self.reading, direction, packet, room)?;
        let hash = Fold::of_labels(parsed.fields.iter().map(|field| &field.label));
        let alike =
            self.places.get(direction.index())?.get(&hash)?.iter().find(|alike| alike.have(&parsed))?;
        let rules = alike.candidates(&parsed).filter_map(|place| self.rules(direction).get(place));
        let fitting = rules.filter_map(|rule| Some((rule.residue_bits(&parsed)?, rule)));
        let (_, rule) = fitting.min_by_key(|(bits, rule)| (*bits, rule.id))?;
        Some((rule, parsed))
    }

    /// Decompresses `schc` and appends the packet to `out`, which is unchanged after an error.
    pub fn decompress(&self, direction: Direction, schc: &[u8], out: &mut Vec<u8>) -> Result<(), SchcError> {
        let (id, residue) = schc.split_first().ok_or(SchcError::Empty)?;
        if *id == NO_COMPRESSION {
            out.extend_from_slice(residue);
            return Ok(());
        }
        let place = usize::from(*id).wrapping_sub(1);
        let unknown = SchcError::UnknownRule(*id);
        let rule = self.rules(direction).get(place).ok_or(unknown)?;
        let layout =
            self.layouts.get(direction.index()).and_then(|layouts| layouts.get(place)).ok_or(unknown)?;
        let start = out.len();
        codec::decompress(rule, layout, residue, out).inspect_err(|_| out.truncate(start))
    }
}
