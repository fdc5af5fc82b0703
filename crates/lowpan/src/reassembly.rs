//! Reassembly of fragments into packets, in memory of the caller. RFC 4944, section 5.3.
//!
//! Fragments may arrive in any order, and more than once. Choices that the RFC leaves open:
//!
//! - A fragment that overlaps others, and does not repeat one of them, restarts the packet, as the RFC requires. So does
//!   one with equal place and length but other octets: a sender that has restarted its tags sends such.
//! - A fragment of a complete packet is dropped, until the packet's time is over or its slot is reused:
//!   otherwise a frame whose acknowledgement was lost would take a slot for 60 s.

mod slot;

use core::time::Duration;

use thinair_wire::time::Instant;

use crate::decompress::{DecompressError, decompress_part};
use crate::fragment::{FragmentHeader, UNIT};
use crate::link::Links;
use crate::{LowpanSettings, dispatch};
pub(crate) use slot::FragmentPlace;
pub use slot::ReassemblySlot;
use slot::{DatagramKey, FirstFragmentInfo, Partial};

/// Longest time that RFC 4944 allows fragments to wait for the others.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Policy for a packet that begins while all slots that are long enough are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Reject it.
    #[default]
    Refuse,
    /// Drop the packet that began first. Where frames are lost, this keeps incomplete packets from blocking all others
    /// for a minute.
    ReplaceOldest,
}

/// Content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramKind {
    /// IPv6, decompressed.
    Ipv6,
    /// ROHC, without dispatch, as sent.
    Rohc,
}

/// A packet of which all fragments have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Content.
    pub kind: DatagramKind,
    /// Octets.
    pub octets: &'a [u8],
}

/// Result of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentOutcome<'a> {
    /// Other fragments are missing.
    Waiting,
    /// The fragment had arrived before.
    Duplicate,
    /// The fragment overlaps earlier ones, which were discarded; others are missing.
    BegunAnew,
    /// The fragment completes the packet.
    Complete(Datagram<'a>),
}

/// Reason why a fragment was dropped. Earlier fragments are kept, except in one case: a first fragment that differs from
/// an earlier one is an overlap, which ends the packet even if the new one cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReassemblyError {
    /// The peer sent an invalid fragment: empty, not a multiple of 8 octets and not the last, a subsequent one at offset
    /// 0, or one that ends after the packet.
    Malformed,
    /// The headers of a first fragment cannot be decompressed.
    Header(DecompressError),
    /// No slot is long enough, in use or not.
    TooLong {
        /// datagram_size.
        size: u16,
    },
    /// All slots that are long enough are in use, and packets are not replaced.
    Full,
}

impl core::fmt::Display for ReassemblyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Malformed => write!(f, "malformed fragment"),
            Self::Header(error) => write!(f, "first fragment: {error}"),
            Self::TooLong { size } => write!(f, "no reassembly slot is long enough for {size} octets"),
            Self::Full => write!(f, "all reassembly slots are in use"),
        }
    }
}

impl core::error::Error for ReassemblyError {}

/// Counters of packets and fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReassemblyCounters {
    /// Packets that were completed.
    pub complete: u64,
    /// Packets that were incomplete when their time was over.
    pub timed_out: u64,
    /// Packets that were dropped in favor of others.
    pub replaced: u64,
    /// Packets that were restarted after an overlap.
    pub overlapped: u64,
    /// Fragments that had arrived before.
    pub duplicates: u64,
    /// Fragments that were rejected because of an error.
    pub refused: u64,
}

/// Reassembles up to `N` packets at a time, each in the memory of a [`ReassemblySlot`].
///
/// **Give every fragment to [`receive`](Self::receive)**, with the time; to have slots released in between, call
/// [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct Reassembler<B, const N: usize> {
    slots: [ReassemblySlot<B>; N],
    timeout: Duration,
    when_full: WhenFull,
    counters: ReassemblyCounters,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>, const N: usize> Reassembler<B, N> {
    /// Creates a reassembler with a slot for each packet that may be incomplete at a time. `timeout` counts from the
    /// arrival of a packet's first fragment; RFC 4944 allows up to [`TIMEOUT`].
    pub const fn new(slots: [ReassemblySlot<B>; N], timeout: Duration, when_full: WhenFull) -> Self {
        let counters = ReassemblyCounters {
            complete: 0,
            timed_out: 0,
            replaced: 0,
            overlapped: 0,
            duplicates: 0,
            refused: 0,
        };
        Self { slots, timeout, when_full, counters }
    }

    /// Returns the counters.
    pub const fn counters(&self) -> ReassemblyCounters {
        self.counters
    }

    /// Returns the number of incomplete packets.
    pub fn waiting(&self) -> usize {
        self.slots.iter().filter(|slot| slot.waiting().is_some()).count()
    }

    /// Returns the time at which the next packet expires; `None` if there is none.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.slots.iter().filter_map(|slot| slot.waiting().map(|partial| partial.deadline)).min()
    }

    /// Drops expired packets.
    pub fn handle_timeout(&mut self, now: Instant) {
        for slot in &mut self.slots {
            self.counters.timed_out += u64::from(slot.handle_timeout(now));
        }
    }

    /// Drops all packets, as after a Disassociation event.
    pub fn clear(&mut self) {
        self.slots.iter_mut().for_each(ReassemblySlot::clear);
    }

    /// Processes the fragment of a packet between `links`, which are the addresses of a mesh header if there is one
    /// ([`HeaderStack::links`](crate::stack::HeaderStack)): `header`, and the `content` after it, of FRAG1 from its dispatch on.
    pub fn receive(
        &mut self,
        now: Instant,
        settings: &LowpanSettings,
        links: Links,
        header: FragmentHeader,
        content: &[u8],
    ) -> Result<FragmentOutcome<'_>, ReassemblyError> {
        self.handle_timeout(now);
        let outcome = self.enter(now, settings, links, header, content);
        let (index, entered) = outcome.inspect_err(|_| self.counters.refused += 1)?;
        if entered == Entered::Duplicate {
            self.counters.duplicates += 1;
            return Ok(FragmentOutcome::Duplicate);
        }
        self.counters.overlapped += u64::from(entered == Entered::BegunAnew);
        match self.slots.get_mut(index).and_then(ReassemblySlot::complete) {
            Some(datagram) => {
                self.counters.complete += 1;
                Ok(FragmentOutcome::Complete(datagram))
            }
            None if entered == Entered::BegunAnew => Ok(FragmentOutcome::BegunAnew),
            None => Ok(FragmentOutcome::Waiting),
        }
    }

    fn enter(
        &mut self,
        now: Instant,
        settings: &LowpanSettings,
        links: Links,
        header: FragmentHeader,
        content: &[u8],
    ) -> Result<(usize, Entered), ReassemblyError> {
        let place = FragmentPlace::of(header, content)?;
        let key = DatagramKey { links, size: header.datagram_size, tag: header.datagram_tag };
        let fragment = IncomingFragment { settings, links, place, content };
        if let Some(index) = self.slots.iter().position(|slot| slot.key() == Some(key))
            && let Some(slot) = self.slots.get_mut(index)
        {
            if let Some(entered) = fragment.enter_again(slot)? {
                return Ok((index, entered));
            }
            return Ok((index, fragment.begin_anew(slot, key, now + self.timeout)?));
        }
        let index = self.room(key.size)?;
        let slot = self.slots.get_mut(index).ok_or(ReassemblyError::Full)?;
        let was_waiting = slot.waiting().is_some();
        fragment.begin(slot, key, now + self.timeout)?;
        self.counters.replaced += u64::from(was_waiting);
        Ok((index, Entered::Added))
    }

    /// Returns the slot for a packet of `size` octets: a free one, or else the one to reuse.
    fn room(&self, size: u16) -> Result<usize, ReassemblyError> {
        let fitting =
            || self.slots.iter().enumerate().filter(|(_, slot)| slot.capacity() >= usize::from(size));
        if fitting().next().is_none() {
            return Err(ReassemblyError::TooLong { size });
        }
        let free = fitting().filter(|(_, slot)| slot.waiting().is_none());
        // A slot without a packet is older than any with a stored one; of equal ones the shortest is used.
        if let Some((index, _)) = free.min_by_key(|(_, slot)| (slot.deadline(), slot.capacity())) {
            return Ok(index);
        }
        match self.when_full {
            WhenFull::Refuse => Err(ReassemblyError::Full),
            WhenFull::ReplaceOldest => fitting()
                .min_by_key(|(_, slot)| slot.deadline())
                .map(|(index, _)| index)
                .ok_or(ReassemblyError::Full),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entered {
    Added,
    Duplicate,
    BegunAnew,
}

/// A valid fragment.
struct IncomingFragment<'a> {
    settings: &'a LowpanSettings,
    links: Links,
    place: FragmentPlace,
    content: &'a [u8],
}

impl IncomingFragment<'_> {
    /// Begins a packet with its first arrival. On failure the slot is unchanged, except octets of a packet that is
    /// dropped.
    fn begin<B: AsRef<[u8]> + AsMut<[u8]>>(
        &self,
        slot: &mut ReassemblySlot<B>,
        key: DatagramKey,
        deadline: Instant,
    ) -> Result<(), ReassemblyError> {
        let mut partial = Partial::new(key, deadline);
        let total = usize::from(key.size);
        match self.place {
            FragmentPlace::First => {
                let (first, len) = self.expand(slot, total, total)?;
                partial.first = Some(first);
                partial.units.add(0, len.div_ceil(UNIT));
            }
            FragmentPlace::At { start, end } => {
                slot.copy(start, self.content);
                partial.units.add(start / UNIT, end.div_ceil(UNIT));
            }
        }
        slot.set(partial);
        Ok(())
    }

    /// Restarts a packet after an overlap. Earlier fragments are dropped, even if this one turns out to be invalid: its
    /// room is used.
    fn begin_anew<B: AsRef<[u8]> + AsMut<[u8]>>(
        &self,
        slot: &mut ReassemblySlot<B>,
        key: DatagramKey,
        deadline: Instant,
    ) -> Result<Entered, ReassemblyError> {
        let was_waiting = slot.waiting().is_some();
        slot.clear();
        self.begin(slot, key, deadline)?;
        Ok(if was_waiting { Entered::BegunAnew } else { Entered::Added })
    }

    /// Adds a fragment to others; `None` if it overlaps a different one.
    fn enter_again<B: AsRef<[u8]> + AsMut<[u8]>>(
        &self,
        slot: &mut ReassemblySlot<B>,
    ) -> Result<Option<Entered>, ReassemblyError> {
        let Some(mut partial) = slot.partial() else { return Ok(None) };
        let total = usize::from(partial.key.size);
        match self.place {
            FragmentPlace::First => {
                if let Some(first) = partial.first {
                    let is_same = first.is_of(self.content);
                    return Ok(is_same.then_some(Entered::Duplicate));
                }
                let free = (partial.units.first() * UNIT).min(total);
                let (first, len) = match self.expand(slot, total, free) {
                    Ok(expanded) => expanded,
                    // Without the earlier fragments there would have been room.
                    Err(ReassemblyError::Header(DecompressError::OutputTooSmall { have }))
                        if have < total =>
                    {
                        return Ok(None);
                    }
                    Err(error) => return Err(error),
                };
                partial.first = Some(first);
                partial.units.add(0, len.div_ceil(UNIT));
            }
            FragmentPlace::At { start, end } => {
                let (from, to) = (start / UNIT, end.div_ceil(UNIT));
                if partial.units.has_any(from, to) {
                    let is_same = partial.units.is_one(from, to) && slot.octets(start, end) == self.content;
                    // A slot keeps the octets of a packet that was complete.
                    return Ok(is_same.then_some(Entered::Duplicate));
                }
                slot.copy(start, self.content);
                partial.units.add(from, to);
            }
        }
        slot.set(partial);
        Ok(Some(Entered::Added))
    }

    /// Decompresses a first fragment into the first `room` octets of the slot; returns its length.
    fn expand<B: AsRef<[u8]> + AsMut<[u8]>>(
        &self,
        slot: &mut ReassemblySlot<B>,
        total: usize,
        room: usize,
    ) -> Result<(FirstFragmentInfo, usize), ReassemblyError> {
        let out = slot.room(room);
        let too_small = ReassemblyError::Header(DecompressError::OutputTooSmall { have: out.len() });
        let mut copy = |octets: &[u8]| {
            out.get_mut(..octets.len()).ok_or(too_small)?.copy_from_slice(octets);
            Ok(octets.len())
        };
        let (kind, len, elided) = if let Some(rohc) = self.content.strip_prefix(&dispatch::ROHC) {
            (DatagramKind::Rohc, copy(rohc)?, None)
        } else if let Some(ipv6) = self.content.strip_prefix(&[dispatch::IPV6]) {
            (DatagramKind::Ipv6, copy(ipv6)?, None)
        } else {
            let expanded = decompress_part(self.settings, self.links, self.content, Some(total), out);
            let (done, elided) = expanded.map_err(ReassemblyError::Header)?;
            (DatagramKind::Ipv6, done.len, elided)
        };
        if len == 0 || len % UNIT != 0 && len != total {
            return Err(ReassemblyError::Malformed);
        }
        Ok((FirstFragmentInfo::of(kind, elided, self.content), len))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
