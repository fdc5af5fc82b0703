//! A rule: the provisioned part of each field of a packet, and the part that is sent (RFC 8724, section 7.1).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::Direction;
use super::bits::Bits;
use super::fields::{FieldId, FieldLabel, Parsed};
use crate::outcome::Name;
use crate::portable::names;

/// Field length (FL).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Length {
    /// Number of bits.
    Fixed(usize),
    /// Number of octets in CoAP.TKL (RFC 8824, section 4.5).
    Tkl,
    /// Any number of octets, sent before the residue (RFC 8724, section 7.4.2).
    Variable,
}

/// Combination of TV, MO and CDA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Action {
    /// equal, not-sent.
    NotSent(Bits),
    /// match-mapping, mapping-sent, with at least two values.
    Mapping(Vec<Bits>),
    /// MSB, LSB, with the common prefix of the values.
    Lsb(Bits),
    /// ignore, value-sent.
    ValueSent,
    /// ignore, compute-*.
    Compute,
}

/// Field descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Descriptor {
    pub(super) label: FieldLabel,
    pub(super) length: Length,
    pub(super) action: Action,
}

/// A rule for the packets of one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub(super) id: u8,
    pub(super) direction: Direction,
    pub(super) descriptors: Vec<Descriptor>,
}

/// A field descriptor as a line of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DescriptorRow {
    /// FID, as written in RFC 8724 and RFC 8824.
    pub field: String,
    /// FL: bits, `tkl` or `var`.
    pub fl: String,
    /// FP: from 1.
    pub fp: u16,
    /// DI: `Up` or `Dw`.
    #[serde(deserialize_with = "names")]
    pub di: Name,
    /// TV: hexadecimal from the left, a list in brackets, or nothing.
    pub tv: String,
    /// MO.
    pub mo: String,
    /// CDA.
    #[serde(deserialize_with = "names")]
    pub cda: Name,
    /// Number of bits sent; `None` if it depends on the packet.
    pub sent: Option<usize>,
}

impl Rule {
    /// RuleID: 1 to 255.
    pub fn id(&self) -> u8 {
        self.id
    }

    /// Direction of its packets.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns its field descriptors.
    pub fn rows(&self) -> impl Iterator<Item = DescriptorRow> + '_ {
        self.descriptors.iter().map(|descriptor| descriptor.row(self.direction))
    }

    /// Octets for provisioning the rule at one side, see
    /// [`RuleSet::provisioning_octets`](super::RuleSet::provisioning_octets).
    pub fn provisioning_octets(&self) -> usize {
        2 + self.descriptors.iter().map(Descriptor::provisioning_octets).sum::<usize>()
    }

    pub(super) fn labels(&self) -> Vec<FieldLabel> {
        self.descriptors.iter().map(|descriptor| descriptor.label).collect()
    }

    /// Value that a field of every matching packet has, if it is only one.
    pub(super) fn value(&self, field: usize) -> Option<&Bits> {
        match &self.descriptors.get(field)?.action {
            Action::NotSent(value) => Some(value),
            Action::Mapping(_) | Action::Lsb(_) | Action::ValueSent | Action::Compute => None,
        }
    }

    /// Bits of the residue of `packet`, whose labels are those of the rule; `None` if the rule does not
    /// match.
    pub(super) fn residue_bits(&self, packet: &Parsed<'_>) -> Option<usize> {
        let mut bits = 0;
        for (descriptor, field) in self.descriptors.iter().zip(packet.fields) {
            if !descriptor.matches(packet.octets, field.at, field.len) {
                return None;
            }
            bits += descriptor.residue_bits(field.len);
        }
        Some(bits)
    }
}

impl Descriptor {
    /// True if length and MO match the field of `len` bits at bit `at`.
    fn matches(&self, packet: &[u8], at: usize, len: usize) -> bool {
        let length = match self.length {
            Length::Fixed(bits) => bits == len,
            Length::Tkl | Length::Variable => true,
        };
        length
            && match &self.action {
                Action::NotSent(value) => value.is_at(packet, at, len),
                Action::Mapping(values) => values.iter().any(|value| value.is_at(packet, at, len)),
                Action::Lsb(msb) => msb.len() <= len && msb.starts_at(packet, at),
                Action::ValueSent | Action::Compute => true,
            }
    }

    /// Bits sent of a matching value of `len` bits.
    pub(super) fn residue_bits(&self, len: usize) -> usize {
        let sent = match &self.action {
            Action::NotSent(_) | Action::Compute => return 0,
            Action::Mapping(values) => return index_bits(values.len()),
            Action::Lsb(msb) => len.saturating_sub(msb.len()),
            Action::ValueSent => len,
        };
        match self.length {
            Length::Fixed(_) | Length::Tkl => sent,
            Length::Variable => size_bits(sent / 8) + sent,
        }
    }

    fn provisioning_octets(&self) -> usize {
        let is_fixed = matches!(self.length, Length::Fixed(_));
        let value = |value: &Bits| usize::from(!is_fixed) + value.as_octets().len();
        6 + match &self.action {
            Action::NotSent(tv) => value(tv),
            Action::Mapping(tv) => 1 + tv.iter().map(value).sum::<usize>(),
            Action::Lsb(msb) => 2 + msb.as_octets().len(),
            Action::ValueSent | Action::Compute => 0,
        }
    }

    fn row(&self, direction: Direction) -> DescriptorRow {
        let (tv, mo, cda) = match &self.action {
            Action::NotSent(value) => (hex(value), "equal".to_owned(), "not-sent"),
            Action::Mapping(values) => {
                let values: Vec<_> = values.iter().map(hex).collect();
                (format!("[{}]", values.join(", ")), "match-mapping".to_owned(), "mapping-sent")
            }
            Action::Lsb(msb) => (hex(msb), format!("MSB({})", msb.len()), "LSB"),
            Action::ValueSent => (String::new(), "ignore".to_owned(), "value-sent"),
            Action::Compute => (String::new(), "ignore".to_owned(), self.computation()),
        };
        let sends_nothing = matches!(self.action, Action::NotSent(_) | Action::Compute);
        let (fl, sent) = match (self.length, &self.action) {
            (Length::Fixed(bits), _) => (bits.to_string(), Some(self.residue_bits(bits))),
            (Length::Tkl, _) => ("tkl".to_owned(), sends_nothing.then_some(0)),
            (Length::Variable, Action::Mapping(_)) => ("var".to_owned(), Some(self.residue_bits(0))),
            (Length::Variable, _) => ("var".to_owned(), sends_nothing.then_some(0)),
        };
        let FieldLabel { id, position, .. } = self.label;
        DescriptorRow { field: id.to_string(), fl, fp: position, di: direction.name(), tv, mo, cda, sent }
    }

    fn computation(&self) -> &'static str {
        match self.label.id {
            FieldId::Ipv4Checksum | FieldId::UdpChecksum => "compute-checksum",
            _ => "compute-length",
        }
    }
}

/// Bits of an index into a list with this number of values (RFC 8724, section 7.4.5).
pub(super) fn index_bits(values: usize) -> usize {
    (usize::BITS - values.saturating_sub(1).leading_zeros()) as usize
}

/// Bits of the size of a residue with this number of octets (RFC 8724, section 7.4.2).
pub(super) fn size_bits(octets: usize) -> usize {
    match octets {
        0..=14 => 4,
        15..=254 => 12,
        _ => 28,
    }
}

fn hex(value: &Bits) -> String {
    let digits = value.as_octets().iter().fold(String::new(), |mut text, octet| {
        // Writing to a string does not fail.
        let _ = write!(text, "{octet:02x}");
        text
    });
    match value.len() {
        len if len % 8 == 0 => digits,
        // A value that does not fill octets is written as a number.
        len => value.to_uint().map_or(digits, |number| format!("{number:0width$x}", width = len.div_ceil(4))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_has_as_many_bits_as_the_last_one_needs() {
        let bits: Vec<_> = [1, 2, 3, 4, 5, 8, 9, 16].map(index_bits).into();
        assert_eq!(bits, [0, 1, 2, 2, 3, 3, 4, 4]);
    }

    /// Sizes of RFC 8724, section 7.4.2.
    #[test]
    fn a_size_has_4_12_or_28_bits() {
        let bits: Vec<_> = [0, 14, 15, 254, 255, 65_535].map(size_bits).into();
        assert_eq!(bits, [4, 4, 12, 12, 28, 28]);
    }
}
