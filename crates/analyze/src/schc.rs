//! Static Context Header Compression, to hold other schemes against. RFC 8724, section 7; of CoAP by RFC 8824.
//!
//! This module knows rules: how the best ones for a capture are found, and how packets are compressed and restored
//! with them, bit for bit. It refuses to know fragmentation, rules that change, and how a device gets its rules.
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
//! # Ok::<(), thinair_analyze::schc::Error>(())
//! ```
//!
//! # What is granted to SCHC
//!
//! The figures are a best case: both sides are provisioned with rules that were derived from the very packets that
//! are then compressed. Where a choice had to be made it was made in favour of SCHC:
//!
//! - Rules cost nothing on the link. [`RuleSet::provisioning_octets`] says what they would cost.
//! - RuleIDs have 8 bits, and each direction has 255 of them for itself: rules of both directions with one RuleID
//!   are one rule of RFC 8724, whose field descriptors have a Direction Indicator.
//! - The checksum of UDP is not sent where it is right, as if another layer vouched for the packet (RFC 8724,
//!   section 10.11), unless [`Checksum::Sent`] is asked for.
//! - The length of an option is in the rule where it is constant, also of Uri-Path and Uri-Query, for which
//!   RFC 8824 (section 5.3) has it sent; a length may have a rule of its own even for one packet.
//! - Values of Block and ETag that never change are in the rule, though RFC 8824 (sections 5.5 and 6.1) has them
//!   sent.
//!
//! What a longer capture would not keep is not granted:
//!
//! - The value of a Message ID, Token, Observe, Block, ETag, Partial IV, IPv4 Identification or wrong checksum is
//!   sent in full, unless one value is in all packets of a rule, and these are 8 at least. No rule takes Message
//!   IDs to start with some bits because those of the capture do.
//! - A rule knows an ephemeral port or a Flow Label only where 8 packets have it.
//! - Packets get a rule of their own because of their values (a path, say) only where they are 8.
//! - A list has at most 32 values, each of 4 packets on average.
//!
//! # What goes by rules
//!
//! UDP over a single IPv4 or IPv6 header, and CoAP where a port is one of [`Reading::ports`] and the message has no format error;
//! otherwise the message is payload. Everything else (TCP, fragments, IPv4 options, extension headers, tunnels,
//! lengths that disagree) goes behind the RuleID of no compression.
//!
//! Read these first: `fields.rs` (the parser), `rule.rs`, `codec.rs` (packets to and fro), `derive.rs` (the choice).

mod bits;
mod checksum;
mod codec;
mod derive;
mod fields;
mod learn;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod oracle;
mod rule;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use fields::{Label, Parsed};
pub use learn::Learner;
pub use rule::{Row, Rule};
use thinair_rohc::Ports;

/// The RuleID of packets that are sent as they are.
pub const NO_COMPRESSION: u8 = 0;

/// DI: which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the device to the application.
    Up,
    /// From the application to the device.
    Dw,
}

impl Direction {
    /// As RFC 8724 writes it.
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

/// How both ends read packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What becomes of the UDP checksum.
    pub checksum: Checksum,
    /// UDP ports that carry CoAP.
    pub ports: Ports,
}

impl Default for Reading {
    fn default() -> Self {
        Self { checksum: Checksum::default(), ports: Ports::COAP }
    }
}

/// What becomes of a UDP checksum that is right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// It is computed at the other end, as another layer vouches for the packet (RFC 8724, section 10.11).
    #[default]
    Computed,
    /// It is sent.
    Sent,
}

/// Why a SCHC packet cannot be restored. It is the sender's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no RuleID.
    #[error("a SCHC packet of no octet")]
    Empty,
    /// No rule of this direction has that RuleID.
    #[error("no rule has RuleID {0}")]
    UnknownRule(u8),
    /// The packet ends within the residue.
    #[error("the packet ends within the residue")]
    Short,
    /// An index is behind the end of its list.
    #[error("an index is behind the end of its list")]
    Index,
    /// The rule has a Payload Marker and the packet no payload, or the other way round.
    #[error("payload and Payload Marker do not go together")]
    Payload,
    /// The restored packet would be longer than its length fields can say.
    #[error("the restored packet is too long")]
    Length,
}

/// The rules of both directions. RFC 8724 calls them the context.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    reading: Reading,
    /// By direction; a rule's RuleID is one more than its place.
    rules: [Vec<Rule>; 2],
    /// Places of the rules for these fields.
    places: [HashMap<Vec<Label>, Vec<usize>, BuildHasherDefault<Fold>>; 2],
}

/// A hash of few octets a step. There are at most 255 rules of a direction, so nobody can make keys that meet.
#[derive(Clone, Copy, Debug, Default)]
struct Fold(u64);

impl Fold {
    fn add(&mut self, value: u64) {
        // Fibonacci hashing: 2^64 divided by the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for Fold {
    fn write(&mut self, octets: &[u8]) {
        octets.iter().for_each(|octet| self.add((*octet).into()));
    }

    fn write_u8(&mut self, value: u8) {
        self.add(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.add(value.into());
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.add(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

impl RuleSet {
    fn new(reading: Reading, rules: [Vec<Rule>; 2]) -> Self {
        let places = rules.each_ref().map(|rules| {
            let mut places: HashMap<_, Vec<_>, _> = HashMap::default();
            for (place, rule) in rules.iter().enumerate() {
                places.entry(rule.labels()).or_default().push(place);
            }
            places
        });
        Self { reading, rules, places }
    }

    /// The rules of a direction, the one that saves most octets first.
    pub fn rules(&self, direction: Direction) -> &[Rule] {
        self.rules.get(direction.index()).map_or(&[], Vec::as_slice)
    }

    /// Octets to tell all rules to a side, in an encoding as simple as this: a rule is its RuleID and the number of
    /// its field descriptors, an octet each. A descriptor has 2 octets of FID, 2 of FL, 1 of FP, 1 of DI, MO and
    /// CDA. A value follows in whole octets, behind an octet for its length where FL does not say it; the values of
    /// a list behind an octet for their number; those of MSB(x) behind two octets for x.
    pub fn provisioning_octets(&self) -> usize {
        self.rules.iter().flatten().map(Rule::provisioning_octets).sum()
    }

    /// Appends `packet` as a SCHC packet to `out`, and returns its RuleID. Of the rules that are for it, the one
    /// with the shortest residue is taken, and of these the first.
    pub fn compress(&self, direction: Direction, packet: &[u8], out: &mut Vec<u8>) -> u8 {
        let (rule, _) = self.compress_headers(direction, packet, out);
        rule
    }

    /// Does what [`compress`](Self::compress) does, and also returns the octets of the headers that the rule is for.
    pub(crate) fn compress_headers(
        &self,
        direction: Direction,
        packet: &[u8],
        out: &mut Vec<u8>,
    ) -> (u8, usize) {
        let Some((rule, parsed)) = self.select(direction, packet) else {
            codec::uncompressed(packet, out);
            return (NO_COMPRESSION, 0);
        };
        codec::compress(rule, &parsed, out);
        (rule.id, packet.len() - parsed.payload.len())
    }

    fn select<'p>(&self, direction: Direction, packet: &'p [u8]) -> Option<(&Rule, Parsed<'p>)> {
        let parsed = Parsed::parse(&self.reading, direction, packet)?;
        let places = self.places.get(direction.index())?.get(&parsed.labels())?;
        let rules = places.iter().filter_map(|place| self.rules(direction).get(*place));
        let fitting = rules.filter_map(|rule| Some((rule.residue_bits(&parsed)?, rule)));
        let (_, rule) = fitting.min_by_key(|(bits, rule)| (*bits, rule.id))?;
        Some((rule, parsed))
    }

    /// Appends the packet that `schc` stands for to `out`. After an error `out` is as before.
    pub fn decompress(&self, direction: Direction, schc: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let (id, residue) = schc.split_first().ok_or(Error::Empty)?;
        if *id == NO_COMPRESSION {
            out.extend_from_slice(residue);
            return Ok(());
        }
        let place = usize::from(*id).wrapping_sub(1);
        let rule = self.rules(direction).get(place).ok_or(Error::UnknownRule(*id))?;
        let start = out.len();
        codec::decompress(rule, residue, out).inspect_err(|_| out.truncate(start))
    }
}
