//! Time of arrival, and losses that the carrier has counted. From these the decompressor infers how many packets of a flow are
//! missing.

use thinair_wire::time::Instant;

use crate::pace::{FlowPace, SHORTEST, Stamp, is_duplicate, units};

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
    /// Time of arrival.
    pub now: Instant,
    /// Number of packets of the channel that are missing between this packet and the newest one before it, as counted by the
    /// carrier: exact, or too large if the carrier does not have the exact number. `Some(0)` if none is missing. `None` if the
    /// carrier does not count, or the packet was sent before one that has arrived.
    pub lost: Option<u32>,
}

impl From<Instant> for Arrival {
    fn from(now: Instant) -> Self {
        Self { now, lost: None }
    }
}

/// Newest arrival of a channel, as its contexts see it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    /// Packets missing since the channel began, modulo 2^32.
    lost: u32,
    counts: bool,
    ignores_pauses: bool,
    /// The packet is tried once more, with its pause.
    is_again: bool,
}

/// Number that stands for an unknown number of lost packets.
const UNCOUNTED: u32 = 1 << 24;

impl Moment {
    /// Before the first arrival. `ignores_pauses` is that of `DecompressorConfig`.
    pub(crate) fn new(ignores_pauses: bool) -> Self {
        Self { ignores_pauses, ..Self::default() }
    }

    /// This arrival with its pause, if pauses are ignored.
    pub(crate) fn with_pauses(self) -> Option<Self> {
        self.ignores_pauses.then_some(Self { ignores_pauses: false, is_again: true, ..self })
    }

    /// True if the carrier counts, and the packet was sent behind all that have arrived.
    pub(crate) fn is_in_order(self) -> bool {
        self.counts
    }

    /// Records the next arrival.
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

/// Arrivals of the packets of a flow, from which it infers the number of missing packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    /// Arrival of the last verified packet.
    last: Stamp,
    /// Packets missing at that time, as in [`Moment`].
    lost: u32,
    pace: FlowPace,
    /// Packets that failed since the last verified packet. Flag [`COUNTED`]: the carrier counted at that time.
    failed: u8,
}

/// Flag in `Arrivals::failed`: the carrier counted.
const COUNTED: u8 = 0x80;

/// Number of packets that the flow may have had since the last verified packet, including the one that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassedPackets {
    /// Upper limit, since the carrier has counted the missing packets.
    AtMost(u32),
    /// About `packets`, plus or minus `off`: the flow is paced.
    About { packets: u32, off: u32 },
    /// Upper limit for a flow that sends at most twice as fast as before. The flow is not paced.
    Perhaps(u32),
}

impl Arrivals {
    /// A flow without packets.
    pub(crate) const NEW: Self = Self { last: Stamp::NEVER, lost: 0, pace: FlowPace::NEW, failed: 0 };

    /// Arrival of the last verified packet.
    #[inline]
    pub(crate) fn last(&self) -> Instant {
        self.last.time()
    }

    /// Time since the last verified packet, in the units of [`FlowPace`]; 0 if pauses are ignored.
    #[inline]
    fn waited(&self, at: Moment) -> u64 {
        if at.ignores_pauses { 0 } else { self.elapsed(at) }
    }

    #[inline]
    fn elapsed(&self, at: Moment) -> u64 {
        units(at.now.nanos_since(self.last()))
    }

    /// True if that many packets may have passed since the last verified packet, by the clock, whether pauses are ignored or not.
    #[inline]
    pub(crate) fn is_behind(&self, at: Moment, packets: u64) -> bool {
        self.elapsed(at) >= u64::from(self.pace.gap()) * packets
    }

    /// True if the clock is no evidence of the order of packets: it is ignored, or they come faster than it tells.
    #[inline]
    pub(crate) fn is_without_clock(&self, at: Moment) -> bool {
        at.ignores_pauses || self.pace.gap() <= SHORTEST
    }

    /// True if so many packets in a row have been held back that the next one, which may be late or ahead, is ahead: packets are late
    /// one by one. Only where no clock tells.
    pub(crate) fn has_held_back(&self, at: Moment) -> bool {
        const HELD_BACK: u8 = 2;
        self.is_without_clock(at) && self.failed() >= HELD_BACK
    }

    /// Records a verified packet, `ahead` packets after the last one.
    #[inline(always)]
    pub(crate) fn note(&mut self, at: Moment, ahead: u32) {
        self.note_intervals(at, ahead, ahead);
    }

    /// Records a verified packet, `ahead` packets and `intervals` times between packets after the last one. Intervals also count
    /// while the flow is silent.
    #[inline(always)]
    pub(crate) fn note_intervals(&mut self, at: Moment, ahead: u32, intervals: u32) {
        if self.last != Stamp::NEVER && !is_duplicate(self.elapsed(at), ahead) {
            self.pace.note(self.elapsed(at), ahead, intervals);
        }
        self.last = Stamp::of(at.now);
        self.lost = at.lost;
        self.failed = if at.counts { COUNTED } else { 0 };
    }

    /// Records a packet that failed verification.
    pub(crate) fn note_failure(&mut self, at: Moment) {
        if at.is_again {
            return;
        }
        if self.failed & !COUNTED < !COUNTED {
            self.failed += 1;
        } else {
            // Counts as one more missing packet: only the sum of both is used.
            self.lost = self.lost.wrapping_sub(1);
        }
    }

    /// Returns the arrivals after an IR packet of the flow that has moved the sequence number by `ahead`: those of a new flow after a
    /// leap, since the compressor has then restarted, too. A refresh that ends an outage is no leap. A context that was lost keeps
    /// the pace of its flow, in profiles of RFC 3095 and RFC 5225.
    #[inline]
    pub(crate) fn behind(self, at: Moment, ahead: i32) -> Self {
        if self.pace.is_leap(ahead, self.elapsed(at)) { Self::NEW } else { self }
    }

    /// Number of packets that failed since the last verified packet.
    pub(crate) fn failed(&self) -> u8 {
        self.failed & !COUNTED
    }

    /// True if no packet has failed since the last verified packet.
    #[inline]
    pub(crate) fn has_not_failed(&self) -> bool {
        self.failed & !COUNTED == 0
    }

    /// Number of packets missing since the last verified packet, if the carrier has counted them.
    #[inline]
    fn missing(&self, at: Moment) -> Option<u32> {
        let missing = at.lost.wrapping_sub(self.lost);
        (at.counts && self.failed & COUNTED != 0 && missing < UNCOUNTED).then_some(missing)
    }

    /// True if the time since the last verified packet is long enough for that many packets at the highest rate.
    pub(crate) fn had_time_for(&self, at: Moment, packets: u32) -> bool {
        self.waited(at) >= u64::from(SHORTEST) * u64::from(packets)
    }

    /// True if more than a `turn` of packets may have passed. The bits repeat after a turn, so that their meaning has to be
    /// proved.
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

    /// True if enough packets have arrived to tell their pace.
    #[inline]
    pub(crate) fn has_settled(&self) -> bool {
        self.pace.is_settled()
    }

    /// Returns the number of packets that may have passed.
    pub(crate) fn passed(&self, at: Moment) -> PassedPackets {
        if let Some(missing) = self.missing(at) {
            return PassedPackets::AtMost(missing + u32::from(self.failed & !COUNTED) + 1);
        }
        self.passed_by_clock(at)
    }

    /// Returns the number of packets that may have passed, by the clock alone.
    pub(crate) fn passed_by_clock(&self, at: Moment) -> PassedPackets {
        let (gap, waited) = (u64::from(self.pace.gap().max(SHORTEST)), self.waited(at));
        let packets = u32::try_from(waited / gap).unwrap_or(u32::MAX);
        if self.pace.is_steady() {
            let nearest = u32::try_from((waited + gap / 2) / gap).unwrap_or(u32::MAX);
            return PassedPackets::About { packets: nearest, off: 2 + nearest / 64 };
        }
        PassedPackets::Perhaps(packets.saturating_mul(2).saturating_add(2))
    }

    /// True if the flow has been silent for about as long before.
    pub(crate) fn is_usual(&self, at: Moment) -> bool {
        self.pace.is_usual(self.waited(at))
    }

    /// True if the flow has ever been silent for several packets.
    pub(crate) fn has_paused(&self) -> bool {
        self.pace.has_paused()
    }

    /// True if the flow has been silent for about as long before, and at most one packet has failed since the last verified
    /// packet.
    pub(crate) fn has_paused_as_usual(&self, at: Moment) -> bool {
        self.failed() <= 1 && self.is_usual(at)
    }
}
