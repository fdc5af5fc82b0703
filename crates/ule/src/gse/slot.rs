//! Memory for the reassembly of fragments.

use core::marker::PhantomData;

use super::header::GseHeader;
use super::label::Label;
use crate::crc::Crc32;
use crate::type_field::Type;

/// Memory for the fragments of one PDU at a time, of any Frag_ID. Longer PDUs are not reassembled in it. The memory is
/// borrowed or owned: a `Vec`, an array.
#[derive(Debug)]
pub struct GseSlot<'m, B = &'m mut [u8]> {
    octets: B,
    pdu: Option<Partial>,
    borrowed: PhantomData<&'m ()>,
}

/// State of a PDU of which fragments have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partial {
    pub(super) frag_id: u8,
    pub(super) label: Label,
    pub(super) type_field: Type,
    /// Octets of all fragments by Total_Length, without the CRC-32. If Total_Length is not checked: the largest
    /// possible number.
    pub(super) expected: usize,
    /// Octets received; after the last fragment, without the CRC-32.
    pub(super) len: usize,
    crc: Crc32,
    /// Number of BBFrames since the one that it began in.
    pub(super) age: u16,
}

/// Reason why a fragment ends its PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The fragments are longer or shorter than Total_Length.
    TotalLength,
    Crc,
    /// The fragments exceed the slot, while Total_Length is not checked.
    TooLong,
}

const CRC: usize = 4;

impl<'m> GseSlot<'m> {
    /// Creates a slot for PDUs of up to as many octets as `memory` has, Extension Headers included. 65,533 suffice for
    /// all.
    pub const fn new(memory: &'m mut [u8]) -> Self {
        Self { octets: memory, pdu: None, borrowed: PhantomData }
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> GseSlot<'_, B> {
    /// [`new`](GseSlot::new) with memory of any kind, borrowed or owned.
    pub const fn with(memory: B) -> Self {
        Self { octets: memory, pdu: None, borrowed: PhantomData }
    }

    pub(super) fn capacity(&self) -> usize {
        self.octets.as_ref().len()
    }

    pub(super) fn partial(&self) -> Option<&Partial> {
        self.pdu.as_ref()
    }

    pub(super) fn partial_mut(&mut self) -> Option<&mut Partial> {
        self.pdu.as_mut()
    }

    pub(super) fn free(&mut self) {
        self.pdu = None;
    }

    /// Returns the octets of a complete PDU.
    pub(super) fn complete(&self, len: usize) -> &[u8] {
        self.octets.as_ref().get(..len).unwrap_or_default()
    }

    /// Begins with a first fragment. `data` must not exceed `expected`, nor that the size of the slot.
    pub(super) fn begin(
        &mut self,
        header: GseHeader,
        frag_id: u8,
        label: Label,
        type_field: Type,
        expected: usize,
        data: &[u8],
    ) {
        let crc = Crc32::START.then(header.covered().octets());
        let partial = Partial { frag_id, label, type_field, expected, len: 0, crc, age: 0 };
        self.pdu = Some(partial);
        self.append(data);
    }

    fn append(&mut self, data: &[u8]) -> Option<()> {
        let partial = self.pdu.as_mut()?;
        let end = partial.len.checked_add(data.len()).filter(|&end| end <= partial.expected)?;
        self.octets.as_mut().get_mut(partial.len..end)?.copy_from_slice(data);
        partial.len = end;
        partial.crc = partial.crc.then(data);
        Some(())
    }

    /// Adds a fragment that is neither the first nor the last. If that fails, the slot is released.
    pub(super) fn middle(&mut self, data: &[u8], is_checked: bool) -> Result<(), Failure> {
        if self.append(data).is_some() {
            return Ok(());
        }
        self.free();
        Err(if is_checked { Failure::TotalLength } else { Failure::TooLong })
    }

    /// Adds the last fragment. The slot is released, and keeps the octets until it is used again.
    pub(super) fn last(&mut self, data: &[u8], is_checked: bool) -> Result<Partial, Failure> {
        let sent = data.last_chunk::<CRC>().copied();
        let data = data.len().checked_sub(CRC).and_then(|len| data.get(..len));
        let (Some(sent), Some(data)) = (sent, data) else {
            self.free();
            return Err(Failure::TotalLength);
        };
        self.middle(data, is_checked)?;
        // There is one, since `middle` has put data into it.
        let partial = self.pdu.take().ok_or(Failure::TotalLength)?;
        if is_checked && partial.len != partial.expected {
            return Err(Failure::TotalLength);
        }
        if partial.crc.value().to_be_bytes() != sent {
            return Err(Failure::Crc);
        }
        Ok(partial)
    }
}
