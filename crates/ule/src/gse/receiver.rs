//! Receiver: GSE Packets out of the data fields of BBFrames, PDUs out of GSE Packets.

use super::header::{FIXED, GseHeader, MAX_LENGTH, SentLabel, is_padding};
use super::label::Label;
use super::slot::{Failure, GseSlot};
use crate::extension::{ExtensionChain, ExtensionError};
use crate::type_field::Type;

/// Number of BBFrames within which a PDU has to be complete, the one with its first fragment included.
const MAX_AGE: u16 = 256;
/// Octets of Protocol_Type, which Total_Length counts besides the label and the PDU.
const TYPE: usize = 2;

/// A received PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pdu<'p> {
    /// Its label, also if it was re-used.
    pub label: Label,
    /// Its Type, or the Extension Header that it begins with.
    pub type_field: Type,
    /// Its octets, Extension Headers included.
    pub octets: &'p [u8],
    /// True if it came in fragments, so that its CRC-32 was checked.
    pub was_fragmented: bool,
}

impl<'p> Pdu<'p> {
    /// Reads its Extension Headers.
    pub fn chain(&self) -> Result<ExtensionChain<'p>, ExtensionError> {
        ExtensionChain::read(self.type_field, self.octets)
    }
}

/// Labels that a receiver accepts.
#[derive(Clone, Copy, Debug)]
pub enum Accept<'m> {
    /// All.
    Every,
    /// This one, and [`Label::Broadcast`].
    One(Label),
    /// These, and [`Label::Broadcast`].
    Listed(&'m [Label]),
}

impl Accept<'_> {
    fn takes(&self, label: Label) -> bool {
        match self {
            Self::Every => true,
            Self::One(own) => label == Label::Broadcast || label == *own,
            Self::Listed(labels) => label == Label::Broadcast || labels.contains(&label),
        }
    }
}

/// Treatment of Total_Length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TotalLength {
    /// Checked: PDUs of another length are discarded.
    #[default]
    Checked,
    /// Ignored, for modulators that send a wrong one; the CRC-32, which covers the field, must be correct.
    Ignored,
}

/// Counters of a receiver. They continue from 0 after the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GseReceiverCounters {
    /// Data fields of BBFrames.
    pub data_fields: u64,
    /// GSE Packets with a header that could be read.
    pub packets: u64,
    /// PDUs delivered from one packet.
    pub whole: u64,
    /// PDUs delivered from several packets.
    pub reassembled: u64,
    /// Octets of padding.
    pub padding: u64,
    /// PDUs with a label that is not accepted.
    pub filtered: u64,
    /// Packets that end within their header, or after their data field; then the rest of the field is lost.
    pub length_errors: u64,
    /// Labels of six zeros, and labels to re-use where there was none in the data field.
    pub label_errors: u64,
    /// Fragments of a PDU whose first fragment is missing, or that was dropped since.
    pub strays: u64,
    /// PDUs dropped because another one with the same Frag_ID began.
    pub restarted: u64,
    /// PDUs dropped because the memory was needed for another one.
    pub displaced: u64,
    /// PDUs dropped because they were not complete within 256 BBFrames.
    pub timed_out: u64,
    /// PDUs that exceed all slots.
    pub too_long: u64,
    /// PDUs whose fragments are longer or shorter than their Total_Length.
    pub total_length_errors: u64,
    /// PDUs with a wrong CRC-32.
    pub crc_errors: u64,
}

/// Receiver of GSE Packets that reassembles up to `N` PDUs at a time.
///
/// **Give it every BBFrame of its stream, in order.** A lost BBFrame need not be reported: later fragments have a wrong length
/// or CRC-32.
#[derive(Debug)]
pub struct GseReceiver<'m, const N: usize, B = &'m mut [u8]> {
    slots: [GseSlot<'m, B>; N],
    accept: Accept<'m>,
    total_length: TotalLength,
    /// One bit for each Frag_ID: set if its fragments are of a PDU that is ignored.
    ignored: [u64; 4],
    counters: GseReceiverCounters,
}

impl<'m, const N: usize> GseReceiver<'m, N> {
    /// Creates a receiver with its memory. More slots than the 256 Frag_IDs are of no use; with none, only whole PDUs
    /// are received.
    pub const fn new(accept: Accept<'m>, slots: [GseSlot<'m>; N]) -> Self {
        Self::with(accept, slots)
    }
}

impl<'m, const N: usize, B: AsRef<[u8]> + AsMut<[u8]>> GseReceiver<'m, N, B> {
    /// [`new`](GseReceiver::new) with memory of any kind.
    pub const fn with(accept: Accept<'m>, slots: [GseSlot<'m, B>; N]) -> Self {
        let counters = GseReceiverCounters {
            data_fields: 0,
            packets: 0,
            whole: 0,
            reassembled: 0,
            padding: 0,
            filtered: 0,
            length_errors: 0,
            label_errors: 0,
            strays: 0,
            restarted: 0,
            displaced: 0,
            timed_out: 0,
            too_long: 0,
            total_length_errors: 0,
            crc_errors: 0,
        };
        Self { slots, accept, total_length: TotalLength::Checked, ignored: [0; 4], counters }
    }

    /// Sets the treatment of Total_Length from now on.
    pub const fn set_total_length(&mut self, total_length: TotalLength) {
        self.total_length = total_length;
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &GseReceiverCounters {
        &self.counters
    }

    /// Processes the data field of a BBFrame. **Call [`GsePackets::next_pdu`](GsePackets::next_pdu) until it returns
    /// `None`**: the remaining PDUs are lost.
    pub fn receive<'r, 'f>(&'r mut self, data_field: &'f [u8]) -> GsePackets<'r, 'm, 'f, N, B> {
        self.counters.data_fields = self.counters.data_fields.wrapping_add(1);
        for slot in &mut self.slots {
            let Some(partial) = slot.partial_mut() else { continue };
            partial.age += 1;
            if partial.age == MAX_AGE {
                slot.free();
                count(&mut self.counters.timed_out);
            }
        }
        GsePackets { receiver: self, rest: data_field, last_label: None }
    }

    fn is_checked(&self) -> bool {
        self.total_length == TotalLength::Checked
    }

    fn slot_of(&self, frag_id: u8) -> Option<usize> {
        self.slots.iter().position(|slot| slot.partial().is_some_and(|partial| partial.frag_id == frag_id))
    }

    fn ignore(&mut self, frag_id: u8, is_ignored: bool) {
        if let Some(word) = self.ignored.get_mut(usize::from(frag_id / 64)) {
            let bit = 1 << (frag_id % 64);
            *word = if is_ignored { *word | bit } else { *word & !bit };
        }
    }

    fn is_ignored(&self, frag_id: u8) -> bool {
        self.ignored.get(usize::from(frag_id / 64)).is_some_and(|word| word >> (frag_id % 64) & 1 == 1)
    }

    /// Returns a slot for a PDU of `len` octets: the smallest free one; else the one in use for the longest time.
    fn slot_for(&mut self, len: usize) -> Option<usize> {
        let enough = |slot: &GseSlot<'_, B>| slot.capacity() >= len;
        let all = || self.slots.iter().enumerate().filter(|(_, slot)| enough(slot));
        let free = all().filter(|(_, slot)| slot.partial().is_none()).min_by_key(|(_, slot)| slot.capacity());
        if let Some((index, _)) = free {
            return Some(index);
        }
        let age = |slot: &GseSlot<'_, B>| slot.partial().map_or(0, |partial| partial.age);
        let (index, _) = all().max_by_key(|(_, slot)| age(slot))?;
        count(&mut self.counters.displaced);
        Some(index)
    }

    fn first(&mut self, header: GseHeader, frag_id: u8, pdu: FirstFragmentFields<'_>) {
        let FirstFragmentFields { total_length, sent_label, label, type_field, data } = pdu;
        if let Some(slot) = self.slot_of(frag_id).and_then(|index| self.slots.get_mut(index)) {
            slot.free();
            count(&mut self.counters.restarted);
        }
        self.ignore(frag_id, true);
        let expected = usize::from(total_length).checked_sub(TYPE + sent_label.octets());
        let expected = match self.total_length {
            TotalLength::Checked => match expected.filter(|&expected| expected >= data.len()) {
                Some(expected) => expected,
                None => return count(&mut self.counters.total_length_errors),
            },
            TotalLength::Ignored => self.slots.iter().map(GseSlot::capacity).max().unwrap_or(0),
        };
        if !self.accept.takes(label) {
            return count(&mut self.counters.filtered);
        }
        if expected < data.len() {
            return count(&mut self.counters.too_long);
        }
        let Some(index) = self.slot_for(expected) else { return count(&mut self.counters.too_long) };
        if let Some(slot) = self.slots.get_mut(index) {
            slot.begin(header, frag_id, label, type_field, expected, data);
            self.ignore(frag_id, false);
        }
    }

    /// Processes a fragment after the first. Returns the place of a PDU that is complete.
    fn go_on(&mut self, frag_id: u8, data: &[u8], is_last: bool) -> Option<PduPlace<'static>> {
        let is_checked = self.is_checked();
        let Some(index) = self.slot_of(frag_id) else {
            if !self.is_ignored(frag_id) {
                count(&mut self.counters.strays);
            }
            // The next fragment with this Frag_ID belongs to another PDU.
            if is_last {
                self.ignore(frag_id, false);
            }
            return None;
        };
        let slot = self.slots.get_mut(index)?;
        let (done, failure) = if is_last {
            match slot.last(data, is_checked) {
                Ok(partial) => (Some(partial), None),
                Err(failure) => (None, Some(failure)),
            }
        } else {
            (None, slot.middle(data, is_checked).err())
        };
        match failure {
            Some(Failure::TotalLength) => count(&mut self.counters.total_length_errors),
            Some(Failure::Crc) => count(&mut self.counters.crc_errors),
            Some(Failure::TooLong) => count(&mut self.counters.too_long),
            None => {}
        }
        if failure.is_some() && !is_last {
            self.ignore(frag_id, true);
        }
        let partial = done?;
        count(&mut self.counters.reassembled);
        Some(PduPlace::Reassembled {
            slot: index,
            len: partial.len,
            label: partial.label,
            type_field: partial.type_field,
        })
    }
}

/// Fields of a first fragment.
struct FirstFragmentFields<'f> {
    total_length: u16,
    sent_label: SentLabel,
    label: Label,
    type_field: Type,
    data: &'f [u8],
}

/// Place of a PDU.
enum PduPlace<'f> {
    Whole { label: Label, type_field: Type, octets: &'f [u8] },
    Reassembled { slot: usize, len: usize, label: Label, type_field: Type },
}

fn count(counter: &mut u64) {
    *counter = counter.wrapping_add(1);
}

/// Iterator over the PDUs of a data field.
#[derive(Debug)]
pub struct GsePackets<'r, 'm, 'f, const N: usize, B = &'m mut [u8]> {
    receiver: &'r mut GseReceiver<'m, N, B>,
    rest: &'f [u8],
    /// Label that LT 0b11 re-uses.
    last_label: Option<Label>,
}

impl<'f, const N: usize, B: AsRef<[u8]> + AsMut<[u8]>> GsePackets<'_, '_, 'f, N, B> {
    /// Returns the next PDU of this data field.
    pub fn next_pdu(&mut self) -> Option<Pdu<'_>> {
        while let Some(packet) = self.next_packet() {
            match self.take(packet) {
                Some(PduPlace::Whole { label, type_field, octets }) => {
                    return Some(Pdu { label, type_field, octets, was_fragmented: false });
                }
                Some(PduPlace::Reassembled { slot, len, label, type_field }) => {
                    let octets = self.receiver.slots.get(slot).map_or(&[][..], |slot| slot.complete(len));
                    return Some(Pdu { label, type_field, octets, was_fragmented: true });
                }
                None => {}
            }
        }
        None
    }

    /// Splits off the next GSE Packet.
    fn next_packet(&mut self) -> Option<&'f [u8]> {
        let counters = &mut self.receiver.counters;
        let length = match *self.rest {
            // One octet is not a header.
            [] | [_] => None,
            [first, ..] if is_padding(first) => None,
            [first, second, ..] => Some(usize::from(u16::from_be_bytes([first, second])) & MAX_LENGTH),
        };
        let Some(length) = length else {
            counters.padding = counters.padding.wrapping_add(self.rest.len() as u64);
            self.rest = &[];
            return None;
        };
        let Some((packet, rest)) = self.rest.split_at_checked(FIXED + length) else {
            count(&mut counters.length_errors);
            self.rest = &[];
            return None;
        };
        self.rest = rest;
        Some(packet)
    }

    fn take(&mut self, packet: &'f [u8]) -> Option<PduPlace<'f>> {
        let receiver = &mut *self.receiver;
        let Some((header, data)) = GseHeader::read(packet) else {
            count(&mut receiver.counters.length_errors);
            // It may have had a label.
            self.last_label = None;
            return None;
        };
        count(&mut receiver.counters.packets);
        match header {
            GseHeader::Whole { label, type_field } => {
                let label = self.label(label)?;
                let receiver = &mut *self.receiver;
                if !receiver.accept.takes(label) {
                    count(&mut receiver.counters.filtered);
                    return None;
                }
                count(&mut receiver.counters.whole);
                Some(PduPlace::Whole { label, type_field, octets: data })
            }
            GseHeader::First { frag_id, total_length, label: sent_label, type_field } => {
                let label = self.label(sent_label);
                let receiver = &mut *self.receiver;
                let Some(label) = label else {
                    // Any earlier PDU with this Frag_ID has ended.
                    if let Some(index) = receiver.slot_of(frag_id) {
                        receiver.slots.get_mut(index)?.free();
                        count(&mut receiver.counters.restarted);
                    }
                    receiver.ignore(frag_id, true);
                    return None;
                };
                receiver.first(
                    header,
                    frag_id,
                    FirstFragmentFields { total_length, sent_label, label, type_field, data },
                );
                None
            }
            GseHeader::Middle { frag_id } => receiver.go_on(frag_id, data, false),
            GseHeader::Last { frag_id } => receiver.go_on(frag_id, data, true),
        }
    }

    /// Returns the label of a PDU from its encoding.
    fn label(&mut self, sent: SentLabel) -> Option<Label> {
        let (label, last) = match sent {
            // Receivers differ in the meaning of a re-use after it: here it is an error.
            SentLabel::Full(Label::Broadcast) => (Some(Label::Broadcast), None),
            SentLabel::Full(label) => (Some(label), Some(label)),
            SentLabel::Zero => (None, None),
            SentLabel::ReUsed => (self.last_label, self.last_label),
        };
        self.last_label = last;
        if label.is_none() {
            count(&mut self.receiver.counters.label_errors);
        }
        label
    }
}

#[cfg(test)]
#[path = "receiver_test.rs"]
mod tests;
