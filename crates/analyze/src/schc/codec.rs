//! Compression and decompression of packets: RuleID, residues, payload, padding (RFC 8724, section 7.2).

use std::borrow::Cow;

use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::ipv6::Ipv6;

use super::bits::{BitReader, BitWriter, Bits};
use super::checksum::udp_checksum;
use super::fields::{FieldId, Parsed};
use super::layout::{self, Layout, Part};
use super::rule::{Action, Descriptor, Length, Rule, index_bits, size_bits};
use super::{NO_COMPRESSION, SchcError};

/// Appends `packet` uncompressed.
pub(super) fn uncompressed(packet: &[u8], out: &mut Vec<u8>) {
    out.push(NO_COMPRESSION);
    out.extend_from_slice(packet);
}

/// Appends `packet`, compressed by a matching `rule`.
pub(super) fn compress(rule: &Rule, packet: &Parsed<'_>, out: &mut Vec<u8>) {
    let mut writer = BitWriter::new(out);
    writer.uint(rule.id.into(), 8);
    for (descriptor, field) in rule.descriptors.iter().zip(packet.fields) {
        let known = match &descriptor.action {
            Action::NotSent(_) | Action::Compute => continue,
            Action::Mapping(values) => {
                let index = values.iter().position(|value| value.is_at(packet.octets, field.at, field.len));
                writer.uint(index.unwrap_or(0) as u32, index_bits(values.len()));
                continue;
            }
            Action::Lsb(msb) => msb.len(),
            Action::ValueSent => 0,
        };
        let sent = field.len.saturating_sub(known);
        if descriptor.length == Length::Variable {
            size(&mut writer, sent / 8);
        }
        writer.push(packet.octets, field.at + known, sent);
    }
    writer.push(packet.payload, 0, packet.payload.len() * 8);
}

/// Appends the size of a residue in octets (RFC 8724, section 7.4.2).
fn size(writer: &mut BitWriter<'_>, octets: usize) {
    let escape = match size_bits(octets) {
        4 => 0,
        12 => 0xF00,
        _ => 0xFFF_0000,
    };
    writer.uint(escape | octets as u32, size_bits(octets));
}

fn read_size(reader: &mut BitReader<'_>) -> Option<usize> {
    let octets = match reader.uint(4)? {
        0xF => match reader.uint(8)? {
            0xFF => reader.uint(16)?,
            octets => octets,
        },
        octets => octets,
    };
    Some(octets as usize)
}

/// Appends the packet that results from applying `rule` to `residue`, the octets after the RuleID.
pub(super) fn decompress(
    rule: &Rule,
    layout: &Layout,
    residue: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), SchcError> {
    let start = out.len();
    let mut reader = BitReader::new(residue);
    let mut writer = BitWriter::new(out);
    let mut tkl = layout.tkl;
    for part in &layout.parts {
        match part {
            Part::Known(bits) => writer.bits(bits),
            Part::Field(at) => {
                let Some(descriptor) = rule.descriptors.get(*at) else { continue };
                let value = value(descriptor, tkl, &mut reader)?;
                if descriptor.label.id == FieldId::CoapTkl {
                    tkl = value.to_uint().unwrap_or(0) as usize;
                }
                writer.bits(&value);
            }
            Part::Option(fields, delta) => {
                let mut option = Bits::default();
                for descriptor in rule.descriptors.get(fields.clone()).unwrap_or_default() {
                    option = option.followed_by(&*value(descriptor, tkl, &mut reader)?);
                }
                writer.bits(&layout::header(*delta, option.len() / 8)?);
                writer.bits(&option);
            }
        }
    }
    // Remaining bits of less than an octet are padding.
    let payload = reader.left() / 8 * 8;
    if layout.is_coap && layout.has_end == (payload == 0) {
        return Err(SchcError::Payload);
    }
    writer.push(residue, reader.position(), payload);
    compute(layout, out.get_mut(start..).unwrap_or_default())
}

/// Returns the value of a field; zero for one that is computed later.
fn value<'r>(
    descriptor: &'r Descriptor,
    tkl: usize,
    reader: &mut BitReader<'_>,
) -> Result<Cow<'r, Bits>, SchcError> {
    let known = match &descriptor.action {
        Action::NotSent(value) => return Ok(Cow::Borrowed(value)),
        Action::Mapping(values) => {
            let index = reader.uint(index_bits(values.len())).ok_or(SchcError::Short)?;
            return values.get(index as usize).map(Cow::Borrowed).ok_or(SchcError::Index);
        }
        Action::Compute => return Ok(Cow::Owned(Bits::of(&[], 0, 16))),
        Action::Lsb(msb) => Some(msb),
        Action::ValueSent => None,
    };
    let sent = match descriptor.length {
        Length::Fixed(bits) => bits.saturating_sub(known.map_or(0, Bits::len)),
        Length::Tkl => (tkl * 8).saturating_sub(known.map_or(0, Bits::len)),
        Length::Variable => read_size(reader).ok_or(SchcError::Short)? * 8,
    };
    let sent = reader.bits(sent).ok_or(SchcError::Short)?;
    let Some(msb) = known else { return Ok(Cow::Owned(sent)) };
    Ok(Cow::Owned(msb.followed_by(&sent)))
}

/// Fills in computed values: lengths first, then checksums that cover them (RFC 8724, section 7.4.8).
fn compute(layout: &Layout, packet: &mut [u8]) -> Result<(), SchcError> {
    let is_v4 = packet.first().is_some_and(|octet| octet >> 4 == 4);
    let udp = if is_v4 { Ipv4::LEN } else { Ipv6::LEN };
    for id in &layout.computed {
        let (at, from) = match id {
            FieldId::Ipv4Length => (2, 0),
            FieldId::Ipv6Length => (4, Ipv6::LEN),
            FieldId::UdpLength => (udp + 4, udp),
            _ => continue,
        };
        let length = u16::try_from(packet.len().saturating_sub(from)).map_err(|_| SchcError::Length)?;
        put(packet, at, length);
    }
    if layout.computed.contains(&FieldId::Ipv4Checksum) {
        let checksum = Ipv4::checksum_of(packet.get(..Ipv4::LEN).unwrap_or_default());
        put(packet, 10, checksum);
    }
    if layout.computed.contains(&FieldId::UdpChecksum) {
        let checksum = udp_checksum(packet, udp).ok_or(SchcError::Length)?;
        put(packet, udp + 6, checksum);
    }
    Ok(())
}

fn put(packet: &mut [u8], at: usize, word: u16) {
    if let Some(octets) = packet.get_mut(at..at + 2) {
        octets.copy_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Sizes of RFC 8724, section 7.4.2.
    #[test]
    fn a_size_is_written_as_the_rfc_says() {
        let written = |octets| {
            let mut out = Vec::new();
            let mut writer = BitWriter::new(&mut out);
            size(&mut writer, octets);
            let bits = size_bits(octets);
            // The reader consumes exactly the bits of the size.
            let mut reader = BitReader::new(&out);
            let left = reader.left() - bits;
            assert_eq!((read_size(&mut reader), reader.left()), (Some(octets), left));
            out
        };
        assert_eq!(written(0), [0x00]);
        assert_eq!(written(14), [0xE0]);
        assert_eq!(written(15), [0xF0, 0xF0]);
        assert_eq!(written(254), [0xFF, 0xE0]);
        assert_eq!(written(255), [0xFF, 0xF0, 0x0F, 0xF0]);
        assert_eq!(written(65_535), [0xFF, 0xFF, 0xFF, 0xF0]);
    }
}
