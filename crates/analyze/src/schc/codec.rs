//! Compression and decompression of packets: RuleID, residues, payload, padding (RFC 8724, section 7.2).

use thinair_wire::coder::Writer;
use thinair_wire::header::coap::option_header;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::ipv6::Ipv6;

use super::bits::{BitReader, BitWriter, Bits};
use super::checksum::udp_checksum;
use super::fields::{FieldId, Parsed};
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
    for (descriptor, field) in rule.descriptors.iter().zip(&packet.fields) {
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
pub(super) fn decompress(rule: &Rule, residue: &[u8], out: &mut Vec<u8>) -> Result<(), SchcError> {
    let mut reader = BitReader::new(residue);
    let mut tkl = 0;
    let mut values = Vec::with_capacity(rule.descriptors.len());
    for descriptor in &rule.descriptors {
        let value = value(descriptor, tkl, &mut reader)?;
        if descriptor.label.id == FieldId::CoapTkl {
            tkl = value.to_uint().unwrap_or(0) as usize;
        }
        values.push(value);
    }
    // Remaining bits of less than an octet are padding.
    let payload = reader.bits(reader.left() / 8 * 8).ok_or(SchcError::Short)?;
    let has_end = rule.descriptors.last().is_some_and(|last| last.label.id == FieldId::CoapOptionEnd);
    let is_coap = rule.descriptors.iter().any(|descriptor| descriptor.label.id == FieldId::CoapVersion);
    if is_coap && has_end == (payload.len() == 0) {
        return Err(SchcError::Payload);
    }
    let start = out.len();
    headers(rule, &values, out)?;
    out.extend_from_slice(payload.as_octets());
    compute(rule, out.get_mut(start..).unwrap_or_default())
}

/// Returns the value of a field; zero for one that is computed later.
fn value(descriptor: &Descriptor, tkl: usize, reader: &mut BitReader<'_>) -> Result<Bits, SchcError> {
    let known = match &descriptor.action {
        Action::NotSent(value) => return Ok(value.clone()),
        Action::Mapping(values) => {
            let index = reader.uint(index_bits(values.len())).ok_or(SchcError::Short)?;
            return values.get(index as usize).cloned().ok_or(SchcError::Index);
        }
        Action::Compute => return Ok(Bits::of(&[], 0, 16)),
        Action::Lsb(msb) => Some(msb),
        Action::ValueSent => None,
    };
    let sent = match descriptor.length {
        Length::Fixed(bits) => bits.saturating_sub(known.map_or(0, Bits::len)),
        Length::Tkl => (tkl * 8).saturating_sub(known.map_or(0, Bits::len)),
        Length::Variable => read_size(reader).ok_or(SchcError::Short)? * 8,
    };
    let sent = reader.bits(sent).ok_or(SchcError::Short)?;
    let Some(msb) = known else { return Ok(sent) };
    let mut octets = Vec::new();
    let mut writer = BitWriter::new(&mut octets);
    writer.bits(msb);
    writer.bits(&sent);
    Ok(Bits::of(&octets, 0, msb.len() + sent.len()))
}

/// Appends the fields; options with their delta and length.
fn headers(rule: &Rule, values: &[Bits], out: &mut Vec<u8>) -> Result<(), SchcError> {
    let mut writer = BitWriter::new(out);
    let mut before = 0;
    let mut option_value = Vec::new();
    for (descriptor, field) in rule.descriptors.iter().zip(values) {
        let Some((number, is_last)) = descriptor.label.id.option() else {
            writer.bits(field);
            continue;
        };
        option_value.extend_from_slice(field.as_octets());
        if is_last {
            let mut header = [0; 5];
            let mut coder = Writer::new(&mut header, 0);
            let mut delta = u32::from(number).saturating_sub(before);
            let mut length = option_value.len() as u32;
            option_header(&mut coder, &mut delta, &mut length).map_err(|_| SchcError::Length)?;
            let end = coder.finish().map_err(|_| SchcError::Length)?;
            writer.push(&header, 0, end * 8);
            writer.push(&option_value, 0, option_value.len() * 8);
            before = number.into();
            option_value.clear();
        }
    }
    Ok(())
}

/// Fills in computed values: lengths first, then checksums that cover them (RFC 8724, section 7.4.8).
fn compute(rule: &Rule, packet: &mut [u8]) -> Result<(), SchcError> {
    let is_v4 = packet.first().is_some_and(|octet| octet >> 4 == 4);
    let udp = if is_v4 { Ipv4::LEN } else { Ipv6::LEN };
    let computed: Vec<_> = rule
        .descriptors
        .iter()
        .filter(|descriptor| descriptor.action == Action::Compute)
        .map(|descriptor| descriptor.label.id)
        .collect();
    for id in &computed {
        let (at, from) = match id {
            FieldId::Ipv4Length => (2, 0),
            FieldId::Ipv6Length => (4, Ipv6::LEN),
            FieldId::UdpLength => (udp + 4, udp),
            _ => continue,
        };
        let length = u16::try_from(packet.len().saturating_sub(from)).map_err(|_| SchcError::Length)?;
        put(packet, at, length);
    }
    if computed.contains(&FieldId::Ipv4Checksum) {
        let checksum = Ipv4::checksum_of(packet.get(..Ipv4::LEN).unwrap_or_default());
        put(packet, 10, checksum);
    }
    if computed.contains(&FieldId::UdpChecksum) {
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
