//! Packed bodies: concatenated units.
//!
//! A single unit is the body. Of several units, each except the last follows its length of one or two octets:
//!
//! ```text
//!  0 1 2 3 4 5 6 7                     0 1 2 3 4 5 6 7   0 1 2 3 4 5 6 7
//! +-+-+-+-+-+-+-+-+                   +-+-+-+-+-+-+-+-+ +-+-+-+-+-+-+-+-+
//! |M|0|   length  |   1 to 63 octets  |M|1|          length             |   64 to 16,383 octets
//! +-+-+-+-+-+-+-+-+                   +-+-+-+-+-+-+-+-+ +-+-+-+-+-+-+-+-+
//! ```
//!
//! M: the next unit has a length, too; it is not the last. A flag beside the body marks several units.
//!
//! The type of units is not transmitted: they are ROHC packets, or Ethernet frames in a bridging tunnel. There, a ROHC
//! packet that belongs to no frame, such as feedback, is sent in a frame with zero addresses and the EtherType of ROHC.

use super::counters::{PackagerCounters, UnpackagerCounters};
use super::{Body, BodyIn, BodySink, PackagerConfig, PackagingError, PushError, UnitSink, UnpackError};
use crate::unit::{Protocol, SiteId, Unit};

/// M bit of a length: the next unit has a length, too.
const MORE: u8 = 0x80;
/// Flag of a length of two octets.
const LONG: u8 = 0x40;
/// Minimum length in the format of two octets.
const LEAST_LONG: usize = 0x40;
/// Maximum size of a unit other than the last one of its body.
const LONGEST_WITH_LENGTH: usize = 0x3FFF;

/// Padding: a ROHC packet of one octet (RFC 5795, section 5.2).
const ROHC_PADDING: u8 = 0xE0;

/// Length of an Ethernet header, the minimum size of a frame.
const ETHERNET: usize = 14;
/// Length of the addresses of an Ethernet frame.
const ADDRESSES: usize = 12;
/// Minimum size of the largest body: site number, header of a ROHC frame, and one octet of ROHC.
const LEAST_BODY: usize = 1 + ETHERNET + 1;
/// Header for a ROHC packet that belongs to no frame.
const ROHC_FRAME: [u8; ETHERNET] = *b"\0\0\0\0\0\0\0\0\0\0\0\0\x22\xf1";

/// Concatenates units as long as they arrive without a pause and fit.
#[derive(Debug)]
pub struct Packer {
    config: PackagerConfig,
    /// Octets of the buffer, which is allocated at the first unit.
    room: usize,
    /// Units, each after its length.
    buffer: Vec<u8>,
    /// Offsets of the length of the last unit and of the unit; `None` if there is none.
    last: Option<(usize, usize)>,
    /// True if the units belong to the channel with large CIDs.
    large: bool,
    /// Offset of the length of the unit before.
    before: Option<usize>,
    /// Maximum size of a body of several units, in octets.
    together: usize,
    /// Number of units in the buffer.
    units: u32,
    counters: PackagerCounters,
}

impl Packer {
    pub(super) fn new(config: PackagerConfig) -> Result<Self, PackagingError> {
        if config.largest_body < LEAST_BODY {
            return Err(PackagingError::NoRoom { room: config.largest_body, needed: LEAST_BODY });
        }
        let (together, counters) = (usize::MAX, PackagerCounters::default());
        Ok(Self {
            config,
            room: config.largest_body + 4,
            buffer: Vec::new(),
            last: None,
            large: false,
            before: None,
            together,
            units: 0,
            counters,
        })
    }

    /// Frees the buffer, unless there are units in it.
    pub(super) fn give_back(&mut self) {
        if self.last.is_none() {
            self.buffer = Vec::new();
        }
    }

    pub(super) fn keep_together(&mut self, octets: usize) {
        self.together = octets;
    }

    /// The unfinished body keeps its units, and may be longer.
    pub(super) fn limit(&mut self, octets: usize) {
        self.config.largest_body = octets.max(LEAST_BODY);
    }

    /// One octet of the body may be the site number.
    pub(super) const fn largest_unit(&self) -> usize {
        self.config.largest_body - 1
    }

    pub(super) const fn counters(&self) -> PackagerCounters {
        self.counters
    }

    pub(super) fn push(&mut self, unit: Unit<'_>, sink: BodySink<'_>) -> Result<(), PushError> {
        let header = self.header(unit).inspect_err(|_| self.counters.refused += 1)?;
        let octets = header.len() + unit.octets.len();
        self.counters.units += 1;
        self.counters.octets += unit.octets.len() as u64;
        let no_room = self.buffer.len() + octets > self.together.min(self.config.largest_body);
        if no_room
            || unit.large != self.large
            || unit.to.is_some()
            || self.last_length() > LONGEST_WITH_LENGTH
        {
            self.pause(sink);
        }
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(self.room);
        }
        self.large = unit.large;
        self.units += 1;
        if let Some(site) = unit.to {
            self.buffer.push(site.number());
        }
        if let Some(before) = self.before
            && let Some(length) = self.buffer.get_mut(before)
        {
            *length |= MORE;
        }
        self.before = self.last.map(|(length, _)| length);
        let length = self.buffer.len();
        match octets {
            0..LEAST_LONG => self.buffer.push(octets as u8),
            // Larger units are the last of their body, where the length is omitted.
            _ => self.buffer.extend_from_slice(&[(octets >> 8) as u8 & 0x3F | LONG, octets as u8]),
        }
        self.last = Some((length, self.buffer.len()));
        self.buffer.extend_from_slice(header);
        self.buffer.extend_from_slice(unit.octets);
        if unit.to.is_some() {
            self.send(unit.to, sink);
        }
        Ok(())
    }

    /// Returns the header of a unit that can be sent.
    fn header(&self, unit: Unit<'_>) -> Result<&'static [u8], PushError> {
        let octets = unit.octets.len();
        let header: &[u8] = match (self.config.bridged, unit.protocol) {
            (_, Protocol::Rohc | Protocol::Bridged) if octets == 0 => return Err(PushError::Empty),
            (false, Protocol::Rohc) => &[],
            (true, Protocol::Rohc) => &ROHC_FRAME,
            (true, Protocol::Bridged) if octets < ETHERNET || is_without_addresses(unit.octets) => {
                return Err(PushError::NotAFrame { octets });
            }
            (true, Protocol::Bridged) => &[],
            (false, Protocol::Bridged) | (_, Protocol::Ipv4 | Protocol::Ipv6) => {
                return Err(PushError::NotTold(unit.protocol));
            }
        };
        let most = self.largest_unit() - header.len();
        if octets > most {
            return Err(PushError::TooLong { octets, most });
        }
        Ok(header)
    }

    pub(super) fn pause(&mut self, sink: BodySink<'_>) {
        self.send(None, sink);
    }

    fn last_length(&self) -> usize {
        self.last.map_or(0, |(_, unit)| self.buffer.len() - unit)
    }

    /// Sends the current body.
    fn send(&mut self, to: Option<SiteId>, sink: BodySink<'_>) {
        let Some((length, unit)) = self.last else { return };
        let without = self.buffer.len() - (unit - length);
        let padded = self.padded(without);
        let mut several = self.before.is_some();
        let mut start = 0;
        if self.config.bridged && padded > without {
            several |= self.pad_behind(without);
        } else if several || to.is_some() || padded > without {
            // The last unit replaces its length, after padding.
            let padding = padded - without;
            let end = self.buffer.len();
            self.buffer.resize(end.max(padded), 0);
            self.buffer.copy_within(unit..end, length + padding);
            self.buffer.get_mut(length..length + padding).unwrap_or_default().fill(ROHC_PADDING);
            self.buffer.truncate(padded);
            self.counters.padding += padding as u64;
        } else {
            start = unit;
        }
        let octets = self.buffer.get(start..).unwrap_or_default();
        self.counters.bodies += 1;
        self.counters.body_octets += octets.len() as u64;
        sink(Body { octets, several, to, large: self.large, units: std::mem::take(&mut self.units) });
        self.buffer.clear();
        (self.last, self.before) = (None, None);
    }

    /// Returns the size of a body of `octets` octets with padding, as far as there is room.
    fn padded(&self, octets: usize) -> usize {
        let multiple = octets.next_multiple_of(usize::from(self.config.pad).max(1));
        multiple.min(self.config.largest_body).max(octets)
    }

    /// Pads a body of frames: the last unit consists of zeros, and may be empty. Returns false if there is no
    /// room.
    fn pad_behind(&mut self, without: usize) -> bool {
        let Some((length, unit)) = self.last else { return false };
        let end = self.buffer.len();
        if end > self.config.largest_body || self.last_length() > LONGEST_WITH_LENGTH {
            self.buffer.copy_within(unit..end, length);
            self.buffer.truncate(without);
            return false;
        }
        if let Some(length) = self.before.and_then(|before| self.buffer.get_mut(before)) {
            *length |= MORE;
        }
        let padded = self.padded(end);
        self.buffer.resize(padded, 0);
        self.counters.padding += (padded - without) as u64;
        true
    }
}

/// True if both addresses are zero, as in no real frame.
fn is_without_addresses(frame: &[u8]) -> bool {
    frame.iter().take(ADDRESSES).all(|octet| *octet == 0)
}

/// Extracts units from bodies.
#[derive(Debug)]
pub struct Unpacker {
    largest_unit: usize,
    bridged: bool,
    counters: UnpackagerCounters,
}

impl Unpacker {
    pub(super) fn new(largest_unit: usize, bridged: bool) -> Self {
        Self { largest_unit, bridged, counters: UnpackagerCounters::default() }
    }

    pub(super) const fn counters(&self) -> UnpackagerCounters {
        self.counters
    }

    /// Processes a body. A body with any error is dropped as a whole.
    pub(super) fn receive(&mut self, body: BodyIn<'_>, sink: UnitSink<'_>) -> Result<(), UnpackError> {
        let checked = self.units(body, &mut |_| {});
        self.counters.note(body.octets.len(), checked)?;
        let (mut units, mut octets) = (0, 0);
        let delivered = self.units(body, &mut |unit| {
            units += 1;
            octets += unit.octets.len() as u64;
            sink(None, unit);
        });
        self.counters.units += units;
        self.counters.octets += octets;
        delivered
    }

    fn units(&self, body: BodyIn<'_>, unit: &mut dyn FnMut(Unit<'_>)) -> Result<(), UnpackError> {
        let mut rest = body.octets;
        let mut to = None;
        if body.addressed {
            let (site, behind) = rest.split_first().ok_or(UnpackError::Ends { offset: 0 })?;
            to = Some(SiteId::new(*site).ok_or(UnpackError::NoSite)?);
            rest = behind;
        }
        let mut more = body.several;
        while more {
            let offset = body.octets.len() - rest.len();
            let (length, is_last, behind) = length(rest).ok_or(UnpackError::BadLength { offset })?;
            let left = behind.len();
            let (octets, behind) =
                behind.split_at_checked(length).ok_or(UnpackError::TooShort { offset, length, left })?;
            self.unit(body.octets.len() - left, octets, to, (false, true), unit)?;
            (rest, more) = (behind, !is_last);
        }
        self.unit(body.octets.len() - rest.len(), rest, to, (true, body.several), unit)
    }

    fn unit(
        &self,
        offset: usize,
        octets: &[u8],
        to: Option<SiteId>,
        (is_last, several): (bool, bool),
        unit: &mut dyn FnMut(Unit<'_>),
    ) -> Result<(), UnpackError> {
        let most = self.largest_unit;
        // Padding before the last unit does not count as part of it.
        let padding = match (self.bridged, is_last) {
            (false, true) => octets.iter().take_while(|octet| **octet == ROHC_PADDING).count(),
            (true, _) | (_, false) => 0,
        };
        let octets = octets.get(padding..).unwrap_or_default();
        let offset = offset + padding;
        let protocol = if self.bridged { Protocol::Bridged } else { Protocol::Rohc };
        let len = octets.len();
        let is_padding = match self.bridged {
            true => is_last && several && octets.iter().all(|octet| *octet == 0),
            false => padding > 0 && octets.is_empty(),
        };
        if is_padding {
            return Ok(());
        }
        if octets.is_empty() {
            return Err(UnpackError::Ends { offset });
        }
        let whole = Unit { protocol, to, large: false, octets };
        let found = match octets.split_first_chunk() {
            _ if !self.bridged => whole,
            Some((&ROHC_FRAME, rohc)) if !rohc.is_empty() => {
                Unit { protocol: Protocol::Rohc, to, large: false, octets: rohc }
            }
            Some(_) if !is_without_addresses(octets) => whole,
            _ => return Err(UnpackError::NotAFrame { offset, octets: len }),
        };
        if found.octets.len() > most {
            return Err(UnpackError::TooLong { offset, octets: len, most });
        }
        unit(found);
        Ok(())
    }
}

/// Parses the length at the start of `octets`; returns it with true if the next unit is not the last, and the
/// remaining octets.
fn length(octets: &[u8]) -> Option<(usize, bool, &[u8])> {
    let (first, rest) = octets.split_first()?;
    let is_last = first & MORE == 0;
    let high = usize::from(first & 0x3F);
    if first & LONG == 0 {
        return (high > 0).then_some((high, is_last, rest));
    }
    let (second, rest) = rest.split_first()?;
    let length = high << 8 | usize::from(*second);
    (length >= LEAST_LONG).then_some((length, is_last, rest))
}
