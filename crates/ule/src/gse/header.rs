//! Header of a GSE Packet: `S E LT:2 GSE_Length:12 | [Frag_ID:8] | [Total_Length:16] | [Protocol_Type:16 Label]`.

use thinair_wire::coder::{Coder, Reader, Step, Writer};

use super::label::Label;
use crate::npa::Npa;
use crate::type_field::Type;

/// Octets before those that GSE_Length counts.
pub(super) const FIXED: usize = 2;
/// Largest GSE_Length.
pub(super) const MAX_LENGTH: usize = 0xFFF;
/// Length of the longest header, in octets: that of a first fragment with a label of six octets.
const LONGEST: usize = 13;

/// Label as sent, by Label Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentLabel {
    /// In full, including the label of no octets.
    Full(Label),
    /// Six octets of zero, which are not a label.
    Zero,
    /// LT 0b11: the label of the previous packet in the same BBFrame.
    ReUsed,
}

impl SentLabel {
    pub(super) const fn octets(self) -> usize {
        match self {
            Self::Full(label) => label.octets(),
            Self::Zero => 6,
            Self::ReUsed => 0,
        }
    }
}

/// Kind of GSE Packet, by S and E, with its header fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GseHeader {
    Whole { label: SentLabel, type_field: Type },
    First { frag_id: u8, total_length: u16, label: SentLabel, type_field: Type },
    Middle { frag_id: u8 },
    Last { frag_id: u8 },
}

/// Header fields as encoded. Those that are not sent have no meaning.
#[derive(Clone, Copy, Default)]
struct GseHeaderFields {
    start: bool,
    end: bool,
    label_type: u8,
    length: u16,
    frag_id: u8,
    total_length: u16,
    type_field: u16,
    six: [u8; 6],
    three: [u8; 3],
}

const SIX: u8 = 0b00;
const THREE: u8 = 0b01;
const BROADCAST: u8 = 0b10;
const RE_USE: u8 = 0b11;

impl GseHeaderFields {
    fn code<'p, C: Coder<'p>>(&mut self, c: &mut C) -> Step {
        let start = c.flag("S", &mut self.start)?;
        let end = c.flag("E", &mut self.end)?;
        c.uint("LT", 2, &mut self.label_type)?;
        c.uint("GSE_Length", 12, &mut self.length)?;
        if !(start && end) {
            c.uint("Frag_ID", 8, &mut self.frag_id)?;
        }
        if !start {
            return Ok(());
        }
        if !end {
            c.uint("Total_Length", 16, &mut self.total_length)?;
        }
        c.uint("Protocol_Type", 16, &mut self.type_field)?;
        match self.label_type {
            SIX => c.octets("Label", &mut self.six),
            THREE => c.octets("Label", &mut self.three),
            _ => Ok(()),
        }
    }

    fn set_label(&mut self, label: SentLabel) {
        match label {
            SentLabel::Full(Label::Six(npa)) => (self.label_type, self.six) = (SIX, npa.octets()),
            SentLabel::Full(Label::Three(octets)) => (self.label_type, self.three) = (THREE, octets),
            SentLabel::Full(Label::Broadcast) => self.label_type = BROADCAST,
            SentLabel::Zero => self.label_type = SIX,
            SentLabel::ReUsed => self.label_type = RE_USE,
        }
    }

    fn label(&self) -> SentLabel {
        match self.label_type {
            SIX => Npa::new(self.six).map_or(SentLabel::Zero, |npa| SentLabel::Full(Label::Six(npa))),
            THREE => SentLabel::Full(Label::Three(self.three)),
            BROADCAST => SentLabel::Full(Label::Broadcast),
            _ => SentLabel::ReUsed,
        }
    }
}

impl GseHeader {
    /// Returns the length of the header in octets, the first two included.
    pub(super) const fn octets(self) -> usize {
        match self {
            Self::Whole { label, .. } => FIXED + 2 + label.octets(),
            Self::First { label, .. } => FIXED + 5 + label.octets(),
            Self::Middle { .. } | Self::Last { .. } => FIXED + 1,
        }
    }

    /// Writes the header of a packet with `data` octets at the start of `out`, and returns its end; `None` if there
    /// is no room. The packet must not exceed the maximum of GSE_Length.
    pub(super) fn write(self, data: usize, out: &mut [u8]) -> Option<usize> {
        let length = u16::try_from(self.octets() - FIXED + data).ok()?;
        let mut fields = GseHeaderFields { length, ..GseHeaderFields::default() };
        match self {
            Self::Whole { label, type_field } => {
                (fields.start, fields.end, fields.type_field) = (true, true, type_field.value());
                fields.set_label(label);
            }
            Self::First { frag_id, total_length, label, type_field } => {
                (fields.start, fields.type_field) = (true, type_field.value());
                (fields.frag_id, fields.total_length) = (frag_id, total_length);
                fields.set_label(label);
            }
            // Public encapsulators send 0b11 where there is no label. With 0b00 a middle fragment would be padding.
            Self::Middle { frag_id } => (fields.frag_id, fields.label_type) = (frag_id, RE_USE),
            Self::Last { frag_id } => {
                (fields.frag_id, fields.label_type, fields.end) = (frag_id, RE_USE, true);
            }
        }
        let mut writer = Writer::new(out, 0);
        fields.code(&mut writer).ok()?;
        writer.finish().ok()
    }

    /// Reads the header of a packet, and returns it with the octets after it; `None` if the packet ends within the
    /// header.
    pub(super) fn read(packet: &[u8]) -> Option<(Self, &[u8])> {
        let mut fields = GseHeaderFields::default();
        let mut reader = Reader::contiguous(packet);
        fields.code(&mut reader).ok()?;
        let (frag_id, type_field) = (fields.frag_id, Type::new(fields.type_field));
        let header = match (fields.start, fields.end) {
            (true, true) => Self::Whole { label: fields.label(), type_field },
            (true, false) => {
                let (label, total_length) = (fields.label(), fields.total_length);
                Self::First { frag_id, total_length, label, type_field }
            }
            (false, false) => Self::Middle { frag_id },
            (false, true) => Self::Last { frag_id },
        };
        Some((header, reader.remaining()))
    }

    /// Returns the octets of a first fragment's header that the CRC-32 covers: all after Frag_ID.
    pub(super) fn covered(self) -> Covered {
        let mut octets = [0; LONGEST];
        let end = self.write(0, &mut octets).unwrap_or(0);
        Covered { octets, end }
    }
}

/// Octets that the CRC-32 covers: see [`GseHeader::covered`].
pub(super) struct Covered {
    octets: [u8; LONGEST],
    end: usize,
}

impl Covered {
    pub(super) fn octets(&self) -> &[u8] {
        self.octets.get(FIXED + 1..self.end).unwrap_or_default()
    }
}

/// True if GSE Packets end here: S, E and LT are all zero, and the rest of the data field is padding.
pub(super) const fn is_padding(first: u8) -> bool {
    first & 0xF0 == 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::type_field::EtherType;

    const TYPE: Type = Type::new(0x22F1);

    fn written(header: GseHeader, data: usize) -> std::vec::Vec<u8> {
        let mut out = [0; LONGEST];
        let end = header.write(data, &mut out).unwrap();
        assert_eq!(end, header.octets());
        assert_eq!(GseHeader::read(&out[..end]), Some((header, &[][..])));
        for len in 0..end {
            assert_eq!(GseHeader::read(&out[..len]), None);
            assert_eq!(header.write(data, &mut [0; LONGEST][..len]), None);
        }
        out[..end].to_vec()
    }

    #[test]
    fn headers_are_those_of_the_layout() {
        let six = SentLabel::Full(Label::Six(Npa::new([0, 1, 2, 3, 4, 5]).unwrap()));
        let three = SentLabel::Full(Label::Three([9, 8, 7]));
        let broadcast = SentLabel::Full(Label::Broadcast);
        let whole = |label| GseHeader::Whole { label, type_field: TYPE };
        assert_eq!(written(whole(six), 5), [0xC0, 13, 0x22, 0xF1, 0, 1, 2, 3, 4, 5]);
        assert_eq!(written(whole(three), 5), [0xD0, 10, 0x22, 0xF1, 9, 8, 7]);
        assert_eq!(written(whole(broadcast), 0xFFD), [0xEF, 0xFF, 0x22, 0xF1]);
        assert_eq!(written(whole(SentLabel::ReUsed), 5), [0xF0, 7, 0x22, 0xF1]);
        assert_eq!(written(whole(SentLabel::Zero), 0), [0xC0, 8, 0x22, 0xF1, 0, 0, 0, 0, 0, 0]);
        let first = GseHeader::First { frag_id: 0xAB, total_length: 0x1234, label: three, type_field: TYPE };
        assert_eq!(written(first, 1), [0x90, 9, 0xAB, 0x12, 0x34, 0x22, 0xF1, 9, 8, 7]);
        assert_eq!(first.covered().octets(), [0x12, 0x34, 0x22, 0xF1, 9, 8, 7]);
        assert_eq!(written(GseHeader::Middle { frag_id: 1 }, 256), [0x31, 1, 1]);
        assert_eq!(written(GseHeader::Last { frag_id: 1 }, 4), [0x70, 5, 1]);
    }

    /// Header of a packet that a modulator sent, from the tests of the receiver dvb-gse 0.10.
    #[test]
    fn a_header_of_a_modulator_is_read() {
        let packet = [0xC0, 0x5C, 0x08, 0x00, 0x02, 0x00, 0x48, 0x55, 0x4C, 0x4B, 0x45];
        let label = SentLabel::Full(Label::Six(Npa::new([0x02, 0x00, 0x48, 0x55, 0x4C, 0x4B]).unwrap()));
        let header = GseHeader::Whole { label, type_field: EtherType::IPV4.into() };
        assert_eq!(GseHeader::read(&packet), Some((header, &[0x45][..])));
    }
}
