//! Time of arrival, and packets that the carrier has counted as lost: from these the decompressor infers how many packets of a
//! flow are missing.

use thinair_wire::time::Instant;

use crate::pace::{FlowPace, LEAP, SHORTEST, Stamp, units};

/// Arrival of a ROHC packet.
///
/// ```
/// use thinair_rohc::{Arrival, Instant};
///
/// let now = Instant::from_millis(20);
/// // A carrier that does not number its frames.
/// assert_eq!(Arrival::from(now), Arrival { now, lost: None });
/// // One that does, and misses the last two.
/// let arrival = Arrival { now, lost: Some(2) };
/// # let _ = arrival;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the packet arrived.
    pub now: Instant,
    /// Packets of the channel that the carrier knows to be missing between this packet and the newest one before it: their
    /// number, or more if it is not known exactly. `Some(0)` if none is missing. `None` if the carrier does not count, or the
    /// packet comes later than one that was sent behind it.
    pub lost: Option<u32>,
}

impl From<Instant> for Arrival {
    fn from(now: Instant) -> Self {
        Self { now, lost: None }
    }
}

/// Arrivals of a channel so far, as its contexts see them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    /// Packets that are missing since the channel began, modulo 2^32, and whether the carrier counts.
    lost: u32,
    counts: bool,
}

/// Stands for packets that nobody has counted.
const UNCOUNTED: u32 = 1 << 24;

impl Moment {
    /// The next arrival.
    pub(crate) fn advance(&mut self, arrival: Arrival) {
        let lost = arrival.lost.map_or(UNCOUNTED, |lost| lost.min(UNCOUNTED));
        self.now = arrival.now;
        self.lost = self.lost.wrapping_add(if self.counts || arrival.lost.is_some() { lost } else { 0 });
        self.counts = arrival.lost.is_some();
    }
}

/// A time, with a carrier that does not count.
#[cfg(test)]
impl From<Instant> for Moment {
    fn from(now: Instant) -> Self {
        Self { now, ..Self::default() }
    }
}

/// Arrivals of the packets of a flow, and what they say of how many are missing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    /// Arrival of the last packet that was verified.
    last: Stamp,
    /// Packets that were missing then, as in [`Moment`].
    lost: u32,
    pace: FlowPace,
    /// Packets since the last one that was verified that were not, and whether the carrier counted when that came.
    failed: u8,
}

/// Flag in `Arrivals::failed`: the carrier counted.
const COUNTED: u8 = 0x80;

/// Packets that a flow may have had since the last one that was verified, the one that has arrived included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassedPackets {
    /// So many at most: the carrier has counted those that are missing.
    AtMost(u32),
    /// About `packets`, `off` more or less: the flow is paced.
    About { packets: u32, off: u32 },
    /// So many at most, if they came no more than twice as fast as before. The flow is not paced.
    Perhaps(u32),
}

impl Arrivals {
    /// A flow without packets.
    pub(crate) const NEW: Self = Self { last: Stamp::NEVER, lost: 0, pace: FlowPace::NEW, failed: 0 };

    /// Arrival of the last packet that was verified.
    #[inline]
    pub(crate) fn last(&self) -> Instant {
        self.last.time()
    }

    /// Time since the last packet that was verified, in the units of [`FlowPace`].
    #[inline]
    fn waited(&self, at: Moment) -> u64 {
        units(at.now.nanos_since(self.last()))
    }

    /// True if so many packets may have passed since the last one that was verified, by the clock.
    #[inline]
    pub(crate) fn is_behind(&self, at: Moment, packets: u64) -> bool {
        self.waited(at) >= u64::from(self.pace.gap()) * packets
    }

    /// A packet was verified, `ahead` of the last one.
    #[inline]
    pub(crate) fn note(&mut self, at: Moment, ahead: u32) {
        self.note_intervals(at, ahead, ahead);
    }

    /// A packet was verified, `ahead` of the last one by packets, and by times between packets: those count on in silence.
    #[inline]
    pub(crate) fn note_intervals(&mut self, at: Moment, ahead: u32, intervals: u32) {
        if self.last != Stamp::NEVER {
            self.pace.note(self.waited(at), ahead, intervals);
        }
        self.last = Stamp::of(at.now);
        self.lost = at.lost;
        self.failed = if at.counts { COUNTED } else { 0 };
    }

    /// A packet was not verified.
    pub(crate) fn note_failure(&mut self) {
        if self.failed & !COUNTED < !COUNTED {
            self.failed += 1;
        } else {
            // As one more that is missing: it is the sum of both that counts.
            self.lost = self.lost.wrapping_sub(1);
        }
    }

    /// The arrivals of a flow whose sequence number has moved by `ahead` to an IR packet: those of a new one if it has leapt, for then
    /// the compressor has begun anew, too.
    #[inline]
    pub(crate) fn behind(self, ahead: i32) -> Self {
        if ahead.unsigned_abs() < LEAP { self } else { Self::NEW }
    }

    /// Packets since the last one that was verified that were not.
    pub(crate) fn failed(&self) -> u8 {
        self.failed & !COUNTED
    }

    /// True if no packet has failed since the last one that was verified.
    #[inline]
    pub(crate) fn has_not_failed(&self) -> bool {
        self.failed & !COUNTED == 0
    }

    /// Packets that are missing since the last one that was verified, if the carrier has counted them.
    #[inline]
    fn missing(&self, at: Moment) -> Option<u32> {
        let missing = at.lost.wrapping_sub(self.lost);
        (at.counts && self.failed & COUNTED != 0 && missing < UNCOUNTED).then_some(missing)
    }

    /// True if so many packets may have come since the last one that was verified, as fast as any.
    pub(crate) fn had_time_for(&self, at: Moment, packets: u32) -> bool {
        self.waited(at) >= u64::from(SHORTEST) * u64::from(packets)
    }

    /// True if more than a `turn` of packets may have passed. The same bits come again after a turn, and then need a proof.
    #[inline]
    pub(crate) fn is_open(&self, at: Moment, turn: u32) -> bool {
        // Half a turn: packets may come faster than before.
        self.pace.is_known() && self.waited(at) > u64::from(self.pace.gap()) * u64::from(turn / 2)
    }

    /// True if a packet with the bits of the next SN is the next packet, by the carrier's count or by the clock, and not one that
    /// is a `turn` later.
    #[inline]
    pub(crate) fn is_next(&self, at: Moment, turn: u32) -> bool {
        self.missing(at).map_or_else(|| !self.is_open(at, turn), |missing| missing == 0)
    }

    /// Packets that may have passed.
    pub(crate) fn passed(&self, at: Moment) -> PassedPackets {
        if let Some(missing) = self.missing(at) {
            return PassedPackets::AtMost(missing + u32::from(self.failed & !COUNTED) + 1);
        }
        self.passed_by_clock(at)
    }

    /// Packets that may have passed, whatever the carrier counts.
    pub(crate) fn passed_by_clock(&self, at: Moment) -> PassedPackets {
        let (gap, waited) = (u64::from(self.pace.gap().max(SHORTEST)), self.waited(at));
        let packets = u32::try_from(waited / gap).unwrap_or(u32::MAX);
        if self.pace.is_steady() {
            let nearest = u32::try_from((waited + gap / 2) / gap).unwrap_or(u32::MAX);
            return PassedPackets::About { packets: nearest, off: 2 + nearest / 64 };
        }
        PassedPackets::Perhaps(packets.saturating_mul(2).saturating_add(2))
    }

    /// True if the flow was about as long silent before.
    pub(crate) fn is_usual(&self, at: Moment) -> bool {
        self.pace.is_usual(self.waited(at))
    }

    /// True if the flow was silent for some packets, sometime.
    pub(crate) fn has_paused(&self) -> bool {
        self.pace.has_paused()
    }

    /// True if the flow was about as long silent before, and nothing was missed since, but for a packet that was damaged.
    pub(crate) fn has_paused_as_usual(&self, at: Moment) -> bool {
        self.failed() <= 1 && self.is_usual(at)
    }
}
