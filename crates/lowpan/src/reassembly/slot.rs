//! Memory in which fragments of a packet are reassembled, with its state: 256 units of 8 octets, each with a bit for
//! its arrival, and a bit that marks the start of a fragment.

use thinair_wire::time::Instant;

use super::{Datagram, DatagramKind, ReassemblyError};
use crate::decompress::ElidedChecksum;
use crate::fcs;
use crate::fragment::{FragmentHeader, UNIT};
use crate::link::Links;

/// Memory for one packet at a time, borrowed or owned: an array, a `Vec`.
///
/// 1,280 octets are sufficient for any packet that RFC 4944 requires nodes to accept, 2,047 for any fragmented packet.
/// A slot has at most 192 octets beside them.
#[derive(Debug)]
pub struct ReassemblySlot<B> {
    octets: B,
    partial: Option<Partial>,
}

/// Identifies the packet of a fragment. RFC 4944, section 5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatagramKey {
    pub(super) links: Links,
    pub(super) size: u16,
    pub(super) tag: u16,
}

/// A packet of which fragments have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partial {
    pub(super) key: DatagramKey,
    pub(super) deadline: Instant,
    pub(super) first: Option<FirstFragmentInfo>,
    pub(super) units: Units,
    /// True if all have arrived, and the packet was delivered.
    is_complete: bool,
}

/// Properties of a first fragment, sufficient to distinguish it from another.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstFragmentInfo {
    kind: DatagramKind,
    elided: Option<ElidedChecksum>,
    /// Length of its octets as sent, which are not stored.
    len: usize,
    check: [u8; fcs::LEN],
}

impl FirstFragmentInfo {
    pub(super) fn of(kind: DatagramKind, elided: Option<ElidedChecksum>, content: &[u8]) -> Self {
        Self { kind, elided, len: content.len(), check: fcs::fcs(content) }
    }

    pub(super) fn is_of(&self, content: &[u8]) -> bool {
        self.len == content.len() && self.check == fcs::fcs(content)
    }
}

/// Place of a fragment in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FragmentPlace {
    /// At its start; the end follows from decompression.
    First,
    /// Range in octets; `start` is a multiple of 8.
    At { start: usize, end: usize },
}

impl FragmentPlace {
    pub(crate) fn of(header: FragmentHeader, content: &[u8]) -> Result<Self, ReassemblyError> {
        let size = usize::from(header.datagram_size);
        let Some(offset) = header.datagram_offset else { return Ok(Self::First) };
        let start = usize::from(offset) * UNIT;
        let end = start + content.len();
        let is_sound = offset > 0
            && !content.is_empty()
            && end <= size
            && (content.len().is_multiple_of(UNIT) || end == size);
        if is_sound { Ok(Self::At { start, end }) } else { Err(ReassemblyError::Malformed) }
    }
}

impl Partial {
    pub(super) const fn new(key: DatagramKey, deadline: Instant) -> Self {
        Self { key, deadline, first: None, units: Units::NONE, is_complete: false }
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> ReassemblySlot<B> {
    /// Creates a slot for packets of up to as many octets as `memory` has.
    pub const fn new(memory: B) -> Self {
        Self { octets: memory, partial: None }
    }

    pub(super) fn capacity(&self) -> usize {
        self.octets.as_ref().len()
    }

    /// Returns the packet in the slot, complete or not.
    pub(super) const fn partial(&self) -> Option<Partial> {
        self.partial
    }

    pub(super) fn key(&self) -> Option<DatagramKey> {
        self.partial.map(|partial| partial.key)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.partial.map(|partial| partial.deadline)
    }

    /// Returns the packet if it is incomplete.
    pub(super) fn waiting(&self) -> Option<&Partial> {
        self.partial.as_ref().filter(|partial| !partial.is_complete)
    }

    pub(super) const fn set(&mut self, partial: Partial) {
        self.partial = Some(partial);
    }

    pub(super) const fn clear(&mut self) {
        self.partial = None;
    }

    /// Drops an expired packet; returns true if fragments were missing.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        let Some(partial) = self.partial.filter(|partial| partial.deadline <= now) else { return false };
        self.partial = None;
        !partial.is_complete
    }

    pub(super) fn room(&mut self, len: usize) -> &mut [u8] {
        self.octets.as_mut().get_mut(..len).unwrap_or_default()
    }

    pub(super) fn octets(&self, start: usize, end: usize) -> &[u8] {
        self.octets.as_ref().get(start..end).unwrap_or_default()
    }

    pub(super) fn copy(&mut self, start: usize, content: &[u8]) {
        if let Some(room) = self.octets.as_mut().get_mut(start..start + content.len()) {
            room.copy_from_slice(content);
        }
    }

    /// Returns the packet when it becomes complete, once.
    pub(super) fn complete(&mut self) -> Option<Datagram<'_>> {
        let partial = self.partial.as_mut().filter(|partial| !partial.is_complete)?;
        let size = usize::from(partial.key.size);
        let first = partial.first.filter(|_| partial.units.has_all(size.div_ceil(UNIT)))?;
        partial.is_complete = true;
        let octets = self.octets.as_mut().get_mut(..size)?;
        if let Some(elided) = first.elided {
            elided.fill_in(octets);
        }
        Some(Datagram { kind: first.kind, octets })
    }
}

/// Units of 8 octets that have arrived, and those of them that begin a fragment. Ranges are of units, and not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Units {
    came: [u64; 4],
    began: [u64; 4],
}

/// Number of units of 2,047 octets.
const UNITS: usize = 256;

impl Units {
    const NONE: Self = Self { came: [0; 4], began: [0; 4] };

    /// Adds a fragment.
    pub(super) fn add(&mut self, from: usize, to: usize) {
        (from..to).for_each(|unit| set(&mut self.came, unit));
        set(&mut self.began, from);
    }

    pub(super) fn has_any(&self, from: usize, to: usize) -> bool {
        (from..to).any(|unit| has(&self.came, unit))
    }

    pub(super) fn has_all(&self, to: usize) -> bool {
        (0..to).all(|unit| has(&self.came, unit))
    }

    /// Returns the first unit that has arrived.
    pub(super) fn first(&self) -> usize {
        (0..UNITS).find(|unit| has(&self.came, *unit)).unwrap_or(UNITS)
    }

    /// True if a fragment with this range has arrived.
    pub(super) fn is_one(&self, from: usize, to: usize) -> bool {
        let is_all_here =
            (from..to).all(|unit| has(&self.came, unit) && (has(&self.began, unit) == (unit == from)));
        is_all_here && (!has(&self.came, to) || has(&self.began, to))
    }
}

fn has(bits: &[u64; 4], unit: usize) -> bool {
    bits.get(unit / 64).is_some_and(|word| word >> (unit % 64) & 1 == 1)
}

fn set(bits: &mut [u64; 4], unit: usize) {
    if let Some(word) = bits.get_mut(unit / 64) {
        *word |= 1 << (unit % 64);
    }
}
