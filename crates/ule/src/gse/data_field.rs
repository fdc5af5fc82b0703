//! Sender: PDUs into GSE Packets, GSE Packets into the data fields of BBFrames.

use core::fmt;

use super::header::{FIXED, GseHeader, MAX_LENGTH, SentLabel};
use super::label::Label;
use crate::crc::Crc32;
use crate::type_field::Type;

/// Length of the CRC-32 after the last fragment, in octets.
const CRC: usize = 4;
/// Octets of Protocol_Type, which Total_Length counts besides the label and the PDU.
const TYPE: usize = 2;

/// A PDU that is being put into one data field or several.
///
/// Fragments of PDUs with different Frag_IDs may be interleaved. **Until one is complete, no other one of the same
/// Frag_ID may be begun**: a receiver would drop the first.
#[derive(Clone, Copy, Debug)]
pub struct Sending<'p> {
    label: Label,
    type_field: Type,
    octets: &'p [u8],
    frag_id: u8,
    progress: SendingState,
}

#[derive(Clone, Copy, Debug)]
enum SendingState {
    Nothing,
    /// Number of octets sent, with their CRC-32.
    Fragments(usize, Crc32),
    Complete,
}

/// Error: PDU too long; its octets, with Extension Headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PduTooLong(pub usize);

impl fmt::Display for PduTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a PDU of {} octets exceeds the maximum of {}", self.0, Sending::MAX)
    }
}

impl core::error::Error for PduTooLong {}

impl<'p> Sending<'p> {
    /// Length of the longest PDU, Extension Headers included, with any label, in octets.
    pub const MAX: usize = 0xFFFF - TYPE - 6;

    /// Creates a PDU that begins with the Extension Headers that `type_field` announces. `frag_id` is for fragments.
    pub const fn new(
        label: Label,
        type_field: Type,
        octets: &'p [u8],
        frag_id: u8,
    ) -> Result<Self, PduTooLong> {
        if octets.len() > Self::MAX {
            return Err(PduTooLong(octets.len()));
        }
        Ok(Self { label, type_field, octets, frag_id, progress: SendingState::Nothing })
    }

    /// Returns the Frag_ID of its fragments.
    pub const fn frag_id(&self) -> u8 {
        self.frag_id
    }

    /// True if it was completely put into data fields.
    pub const fn is_complete(&self) -> bool {
        matches!(self.progress, SendingState::Complete)
    }
}

/// Re-use of the previous label instead of sending it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReUse {
    /// Allowed within a BBFrame: LT is 0b11.
    Allowed,
    /// Every label is sent.
    Never,
}

/// Result of [`DataField::put`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The PDU is complete.
    Complete,
    /// The rest is for the next data field, in which it should come first.
    Partly,
    /// There is no room for any octet of it.
    NoRoom,
}

/// Data field of a BBFrame that is being filled.
#[derive(Debug)]
pub struct DataField<'b> {
    out: &'b mut [u8],
    len: usize,
    re_use: ReUse,
    /// Label that LT 0b11 would re-use. After a broadcast receivers differ, so then it is `None`.
    last_label: Option<Label>,
}

/// State of an unfinished data field, besides its octets, which allows to continue it.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    len: usize,
    re_use: ReUse,
    last_label: Option<Label>,
}

impl Filled {
    /// Returns the state of an empty data field.
    pub const fn nothing(re_use: ReUse) -> Self {
        Self { len: 0, re_use, last_label: None }
    }

    /// Returns the octets of GSE Packets in it.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there is no GSE Packet in it.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<'b> DataField<'b> {
    /// Creates an empty data field. The length of `out` is its largest length.
    pub const fn new(out: &'b mut [u8], re_use: ReUse) -> Self {
        Self { out, len: 0, re_use, last_label: None }
    }

    /// Continues an unfinished data field: `out` must be unchanged. If it is shorter than the filled part, there is no
    /// room.
    pub fn go_on_with(out: &'b mut [u8], filled: Filled) -> Self {
        let Filled { len, re_use, last_label } = filled;
        let len = len.min(out.len());
        Self { out, len, re_use, last_label }
    }

    /// Leaves it unfinished, to continue it later.
    pub const fn leave(self) -> Filled {
        Filled { len: self.len, re_use: self.re_use, last_label: self.last_label }
    }

    /// Returns the octets of GSE Packets in it.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there is no GSE Packet in it.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the free octets.
    pub const fn room(&self) -> usize {
        self.out.len() - self.len
    }

    /// Puts in as much of a PDU as there is room for: all, or a fragment with at least one octet of it.
    pub fn put(&mut self, sending: &mut Sending<'_>) -> Put {
        match sending.progress {
            SendingState::Complete => Put::Complete,
            SendingState::Nothing => self.begin(sending),
            SendingState::Fragments(sent, crc) => self.go_on(sending, sent, crc),
        }
    }

    fn begin(&mut self, sending: &mut Sending<'_>) -> Put {
        let Sending { label, type_field, octets, frag_id, .. } = *sending;
        let is_last = self.re_use == ReUse::Allowed && self.last_label == Some(label);
        let sent_label = if is_last { SentLabel::ReUsed } else { SentLabel::Full(label) };
        let whole = GseHeader::Whole { label: sent_label, type_field };
        if whole.octets() + octets.len() <= self.largest() {
            sending.progress = SendingState::Complete;
            self.write(whole, octets, &[]);
            self.note(label);
            return Put::Complete;
        }
        let total_length = TYPE + sent_label.octets() + octets.len();
        let Ok(total_length) = u16::try_from(total_length) else { return Put::NoRoom };
        let first = GseHeader::First { frag_id, total_length, label: sent_label, type_field };
        // At least one octet remains for the fragment with the CRC-32: some receivers reject it without.
        let len = self.largest().saturating_sub(first.octets()).min(octets.len().saturating_sub(1));
        let Some((data, _)) = octets.split_at_checked(len).filter(|_| len > 0) else { return Put::NoRoom };
        let crc = Crc32::START.then(first.covered().octets()).then(data);
        sending.progress = SendingState::Fragments(len, crc);
        self.write(first, data, &[]);
        self.note(label);
        Put::Partly
    }

    fn go_on(&mut self, sending: &mut Sending<'_>, sent: usize, crc: Crc32) -> Put {
        let frag_id = sending.frag_id;
        let rest = sending.octets.get(sent..).unwrap_or_default();
        let last = GseHeader::Last { frag_id };
        // The CRC-32 is not divided.
        if last.octets() + rest.len() + CRC <= self.largest() {
            sending.progress = SendingState::Complete;
            self.write(last, rest, &crc.then(rest).value().to_be_bytes());
            return Put::Complete;
        }
        let middle = GseHeader::Middle { frag_id };
        let len = self.largest().saturating_sub(middle.octets()).min(rest.len().saturating_sub(1));
        let Some((data, _)) = rest.split_at_checked(len).filter(|_| len > 0) else { return Put::NoRoom };
        sending.progress = SendingState::Fragments(sent + len, crc.then(data));
        self.write(middle, data, &[]);
        Put::Partly
    }

    /// Returns the length of the largest GSE Packet that fits, in octets.
    fn largest(&self) -> usize {
        self.room().min(FIXED + MAX_LENGTH)
    }

    fn note(&mut self, label: Label) {
        self.last_label = (label != Label::Broadcast).then_some(label);
    }

    /// Writes a packet for which there is room.
    fn write(&mut self, header: GseHeader, data: &[u8], crc: &[u8]) {
        let free = self.out.get_mut(self.len..).unwrap_or_default();
        let Some(mut end) = header.write(data.len() + crc.len(), free) else { return };
        for part in [data, crc] {
            if let Some(place) = free.get_mut(end..end + part.len()) {
                place.copy_from_slice(part);
                end += part.len();
            }
        }
        self.len += end;
    }

    /// Fills the free octets with padding, and returns the number of octets before it: a BBFrame may be sent with a
    /// DFL of that, or of the whole.
    pub fn finish(self) -> usize {
        let Self { out, len, .. } = self;
        out.get_mut(len..).unwrap_or_default().fill(0);
        len
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::npa::Npa;
    use crate::type_field::EtherType;

    const SIX: Label = Label::Six(Npa::BROADCAST);
    const THREE: Label = Label::Three([1, 2, 3]);

    fn sending(label: Label, octets: &[u8]) -> Sending<'_> {
        Sending::new(label, EtherType::ROHC.into(), octets, 5).unwrap()
    }

    #[test]
    fn a_label_is_re_used_within_a_data_field_only_and_not_behind_a_broadcast() {
        let mut out = [0xAA; 80];
        for (re_use, types) in
            [(ReUse::Allowed, [0, 3, 1, 3, 2, 2, 1]), (ReUse::Never, [0, 0, 1, 1, 2, 2, 1])]
        {
            let mut field = DataField::new(&mut out, re_use);
            let mut starts = std::vec::Vec::new();
            for label in [SIX, SIX, THREE, THREE, Label::Broadcast, Label::Broadcast, THREE] {
                starts.push(field.len());
                assert_eq!(field.put(&mut sending(label, b"1")), Put::Complete);
            }
            let end = field.finish();
            let sent: std::vec::Vec<_> = starts.iter().map(|&at| out[at] >> 4 & 3).collect();
            assert_eq!(sent, types);
            assert!(out[end..].iter().all(|&octet| octet == 0));
            // The next data field begins with the label.
            let mut field = DataField::new(&mut out, re_use);
            field.put(&mut sending(THREE, b"1"));
            assert_eq!(out[0] >> 4, 0b1101);
        }
    }

    /// Equal PDUs in full data fields of every size: no space remains that a fragment would have fitted in, and the
    /// CRC-32 is never without an octet of the PDU.
    #[test]
    fn fragments_fill_data_fields() {
        let pdu: std::vec::Vec<u8> = (0..200).collect();
        for size in 0..240 {
            let mut sending = sending(SIX, &pdu);
            let mut out = std::vec![0; size];
            let mut data = 0;
            for round in 0.. {
                let mut field = DataField::new(&mut out, ReUse::Allowed);
                let put = field.put(&mut sending);
                let room = field.room();
                let len = field.finish();
                let (_, rest) = GseHeader::read(&out[..len]).unwrap_or((GseHeader::Last { frag_id: 0 }, &[]));
                data += rest.len();
                match put {
                    // A first fragment needs 14 octets, and the last one 8.
                    Put::NoRoom => {
                        assert!(size < 14, "{size}");
                        break;
                    }
                    Put::Partly => assert!(room == 0 || room < 4 + 4, "{size}: {room} in round {round}"),
                    Put::Complete => {
                        let is_whole = round == 0;
                        assert_eq!(data, if is_whole { 200 } else { 204 });
                        assert!(is_whole || rest.len() > CRC);
                        assert!(sending.is_complete());
                        assert_eq!(is_whole, size >= 210);
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn long_pdus_are_in_fragments_though_there_is_room() {
        let pdu = std::vec![1; Sending::MAX];
        assert!(Sending::new(SIX, EtherType::IPV6.into(), &[0; Sending::MAX + 1], 0).is_err());
        let mut sending = sending(SIX, &pdu);
        let mut out = std::vec![0; 70_000];
        let mut field = DataField::new(&mut out, ReUse::Allowed);
        let mut packets = 1;
        while field.put(&mut sending) == Put::Partly {
            packets += 1;
        }
        // 4,084 octets in the first, 4,094 in each following.
        assert_eq!(packets, 1 + (Sending::MAX + CRC - 4_084).div_ceil(4_094));
        let len = field.finish();
        assert_eq!(len, Sending::MAX + CRC + 13 + 3 * (packets - 1));
        assert_eq!(out[..13], [0x8F, 0xFF, 5, 0xFF, 0xFF, 0x22, 0xF1, 255, 255, 255, 255, 255, 255]);
    }
}
