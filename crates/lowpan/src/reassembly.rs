//! Reassembly: fragments to packets, in memory of the caller. RFC 4944, section 5.3.
//!
//! Fragments may come in any order, and more than once. Where the RFC leaves something open:
//!
//! - A fragment that overlaps others, and is not one of them again, begins the packet anew, as the RFC has it. So does
//!   one with the same place and length but other octets: a sender that has begun to count tags anew sends such.
//! - A fragment of a packet that has been complete is dropped, until the packet's time is over or its slot is used:
//!   without that, a frame whose acknowledgement was lost would take a slot for 60 s.

mod slot;

use core::time::Duration;

use thinair_wire::time::Instant;

use crate::decompress::{DecompressError, decompress_part};
use crate::fragment::{FragmentHeader, UNIT};
use crate::link::Links;
use crate::{Settings, dispatch};
pub(crate) use slot::Place;
pub use slot::Slot;
use slot::{First, Key, Partial};

/// The longest that RFC 4944 allows fragments to wait for the others.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// What happens if a packet begins while all slots that are long enough are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused, and the others go on.
    #[default]
    Refuse,
    /// The one that began first is given up for it. Where frames are lost, this is what keeps packets that will never
    /// be complete from holding up all others for a minute.
    ReplaceOldest,
}

/// What is in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// IPv6, decompressed.
    Ipv6,
    /// ROHC, without dispatch, as it was sent.
    Rohc,
}

/// A packet whose fragments have all come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its octets.
    pub octets: &'a [u8],
}

/// What a fragment has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// Others are missing.
    Waiting,
    /// It had come before.
    Duplicate,
    /// It overlaps what had come before, which was discarded; others are missing.
    BegunAnew,
    /// It was the last that was missing.
    Complete(Datagram<'a>),
}

/// Why a fragment was dropped. What had come before is still there, but for one case: a first fragment that differs from
/// one before it is an overlap, and so the end of the packet, even if it cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReassemblyError {
    /// The peer sent a fragment that cannot be: empty, not a multiple of 8 octets and not the last, a subsequent one at
    /// offset 0, or one that ends behind the packet.
    Malformed,
    /// The headers of a first fragment cannot be decompressed.
    Header(DecompressError),
    /// No slot is so long, taken or not.
    TooLong {
        /// datagram_size.
        size: u16,
    },
    /// All slots that are long enough are taken, and packets are not replaced.
    Full,
}

impl core::fmt::Display for ReassemblyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Malformed => write!(f, "malformed fragment"),
            Self::Header(error) => write!(f, "first fragment: {error}"),
            Self::TooLong { size } => write!(f, "no slot has {size} octets"),
            Self::Full => write!(f, "all slots are taken"),
        }
    }
}

impl core::error::Error for ReassemblyError {}

/// What has become of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were complete.
    pub complete: u64,
    /// Packets of which fragments were missing when their time was over.
    pub timed_out: u64,
    /// Packets that were given up for others.
    pub replaced: u64,
    /// Packets that were begun anew.
    pub overlapped: u64,
    /// Fragments that had come before.
    pub duplicates: u64,
    /// Fragments that were dropped for an error.
    pub refused: u64,
}

/// Puts fragments together: `N` packets at a time, each in the memory of a [`Slot`].
///
/// **Give every fragment to [`receive`](Self::receive).** Time is told with each; to have slots freed in between, call
/// [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct Reassembler<B, const N: usize> {
    slots: [Slot<B>; N],
    timeout: Duration,
    when_full: WhenFull,
    counters: Counters,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>, const N: usize> Reassembler<B, N> {
    /// With slots, as many as packets may be on their way at the same time. `timeout` counts from a packet's first
    /// fragment that comes; RFC 4944 allows up to [`TIMEOUT`].
    pub const fn new(slots: [Slot<B>; N], timeout: Duration, when_full: WhenFull) -> Self {
        let counters =
            Counters { complete: 0, timed_out: 0, replaced: 0, overlapped: 0, duplicates: 0, refused: 0 };
        Self { slots, timeout, when_full, counters }
    }

    /// What has become of packets so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Packets of which fragments are missing.
    pub fn waiting(&self) -> usize {
        self.slots.iter().filter(|slot| slot.waiting().is_some()).count()
    }

    /// When the next packet is given up; `None` if there is none.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.slots.iter().filter_map(|slot| slot.waiting().map(|partial| partial.deadline)).min()
    }

    /// Gives up packets whose time is over.
    pub fn handle_timeout(&mut self, now: Instant) {
        for slot in &mut self.slots {
            self.counters.timed_out += u64::from(slot.handle_timeout(now));
        }
    }

    /// Forgets all packets, as after a Disassociation event.
    pub fn clear(&mut self) {
        self.slots.iter_mut().for_each(Slot::clear);
    }

    /// Takes the fragment of a packet between `links`, which are the addresses of a mesh header if there is one
    /// ([`Stack::links`](crate::stack::Stack)): `header`, and `content` behind it, of FRAG1 from its dispatch on.
    pub fn receive(
        &mut self,
        now: Instant,
        settings: &Settings,
        links: Links,
        header: FragmentHeader,
        content: &[u8],
    ) -> Result<Received<'_>, ReassemblyError> {
        self.handle_timeout(now);
        let outcome = self.enter(now, settings, links, header, content);
        let (index, entered) = outcome.inspect_err(|_| self.counters.refused += 1)?;
        if entered == Entered::Duplicate {
            self.counters.duplicates += 1;
            return Ok(Received::Duplicate);
        }
        self.counters.overlapped += u64::from(entered == Entered::BegunAnew);
        match self.slots.get_mut(index).and_then(Slot::complete) {
            Some(datagram) => {
                self.counters.complete += 1;
                Ok(Received::Complete(datagram))
            }
            None if entered == Entered::BegunAnew => Ok(Received::BegunAnew),
            None => Ok(Received::Waiting),
        }
    }

    fn enter(
        &mut self,
        now: Instant,
        settings: &Settings,
        links: Links,
        header: FragmentHeader,
        content: &[u8],
    ) -> Result<(usize, Entered), ReassemblyError> {
        let place = Place::of(header, content)?;
        let key = Key { links, size: header.datagram_size, tag: header.datagram_tag };
        let fragment = Incoming { settings, links, place, content };
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

    /// The slot for a packet of `size` octets: one that has none, or else the one to be used again.
    fn room(&self, size: u16) -> Result<usize, ReassemblyError> {
        let fitting =
            || self.slots.iter().enumerate().filter(|(_, slot)| slot.capacity() >= usize::from(size));
        if fitting().next().is_none() {
            return Err(ReassemblyError::TooLong { size });
        }
        let free = fitting().filter(|(_, slot)| slot.waiting().is_none());
        // A slot without a packet is older than any with one that is remembered; a short one is as good as a long one.
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

/// A fragment that could be.
struct Incoming<'a> {
    settings: &'a Settings,
    links: Links,
    place: Place,
    content: &'a [u8],
}

impl Incoming<'_> {
    /// As the first that comes of a packet; the slot is changed only if that goes well, but for octets of a packet that
    /// is given up.
    fn begin<B: AsRef<[u8]> + AsMut<[u8]>>(
        &self,
        slot: &mut Slot<B>,
        key: Key,
        deadline: Instant,
    ) -> Result<(), ReassemblyError> {
        let mut partial = Partial::new(key, deadline);
        let total = usize::from(key.size);
        match self.place {
            Place::First => {
                let (first, len) = self.expand(slot, total, total)?;
                partial.first = Some(first);
                partial.units.add(0, len.div_ceil(UNIT));
            }
            Place::At { start, end } => {
                slot.copy(start, self.content);
                partial.units.add(start / UNIT, end.div_ceil(UNIT));
            }
        }
        slot.set(partial);
        Ok(())
    }

    /// After an overlap. What had come before goes, even if this fragment turns out to be none: its room is used.
    fn begin_anew<B: AsRef<[u8]> + AsMut<[u8]>>(
        &self,
        slot: &mut Slot<B>,
        key: Key,
        deadline: Instant,
    ) -> Result<Entered, ReassemblyError> {
        let was_waiting = slot.waiting().is_some();
        slot.clear();
        self.begin(slot, key, deadline)?;
        Ok(if was_waiting { Entered::BegunAnew } else { Entered::Added })
    }

    /// In addition to others; `None` if it overlaps one that is another.
    fn enter_again<B: AsRef<[u8]> + AsMut<[u8]>>(
        &self,
        slot: &mut Slot<B>,
    ) -> Result<Option<Entered>, ReassemblyError> {
        let Some(mut partial) = slot.partial() else { return Ok(None) };
        let total = usize::from(partial.key.size);
        match self.place {
            Place::First => {
                if let Some(first) = partial.first {
                    let is_same = first.is_of(self.content);
                    return Ok(is_same.then_some(Entered::Duplicate));
                }
                let free = (partial.units.first() * UNIT).min(total);
                let (first, len) = match self.expand(slot, total, free) {
                    Ok(expanded) => expanded,
                    // It would have had room, had nothing come before.
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
            Place::At { start, end } => {
                let (from, to) = (start / UNIT, end.div_ceil(UNIT));
                if partial.units.has_any(from, to) {
                    let is_same = partial.units.is_one(from, to) && slot.octets(start, end) == self.content;
                    // Of a packet that was complete and is gone, the slot has the octets, too.
                    return Ok(is_same.then_some(Entered::Duplicate));
                }
                slot.copy(start, self.content);
                partial.units.add(from, to);
            }
        }
        slot.set(partial);
        Ok(Some(Entered::Added))
    }

    /// Writes a first fragment, as it was before compression, into the first `room` octets of the slot; returns how
    /// many it has.
    fn expand<B: AsRef<[u8]> + AsMut<[u8]>>(
        &self,
        slot: &mut Slot<B>,
        total: usize,
        room: usize,
    ) -> Result<(First, usize), ReassemblyError> {
        let out = slot.room(room);
        let too_small = ReassemblyError::Header(DecompressError::OutputTooSmall { have: out.len() });
        let mut copy = |octets: &[u8]| {
            out.get_mut(..octets.len()).ok_or(too_small)?.copy_from_slice(octets);
            Ok(octets.len())
        };
        let (kind, len, elided) = if let Some(rohc) = self.content.strip_prefix(&dispatch::ROHC) {
            (Kind::Rohc, copy(rohc)?, None)
        } else if let Some(ipv6) = self.content.strip_prefix(&[dispatch::IPV6]) {
            (Kind::Ipv6, copy(ipv6)?, None)
        } else {
            let expanded = decompress_part(self.settings, self.links, self.content, Some(total), out);
            let (done, elided) = expanded.map_err(ReassemblyError::Header)?;
            (Kind::Ipv6, done.len, elided)
        };
        if len == 0 || len % UNIT != 0 && len != total {
            return Err(ReassemblyError::Malformed);
        }
        Ok((First::of(kind, elided, self.content), len))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
