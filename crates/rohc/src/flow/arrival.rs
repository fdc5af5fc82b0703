//! Time of arrival, and losses that the carrier has counted. From these the decompressor infers how many packets of a flow are
//! missing.

use thinair_wire::time::Instant;

use crate::flow::pace::{FlowPace, SHORTEST, Stamp, is_duplicate, units};

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
    /// CID of the packet, if the carrier counts.
    cid: u16,
    /// Packets of this CID in a row, at most 255.
    run: u8,
}

/// Number of packets in a row of one flow from which on missing packets are taken for packets of this flow.
const ALONE: u8 = 64;

/// Number that stands for an unknown number of lost packets.
const UNCOUNTED: u32 = 1 << 24;

impl Moment {
    /// Before the first arrival. `ignores_pauses` is that of [`Interop`](crate::Interop).
    pub(crate) fn new(ignores_pauses: bool) -> Self {
        Self { ignores_pauses, ..Self::default() }
    }

    /// This arrival, at a time that it may have been given just before: whoever copies it does not wait for that.
    #[inline]
    pub(crate) fn at(self, now: Instant) -> Self {
        Self { now, ..self }
    }

    /// This arrival with its pause, if pauses are ignored.
    pub(crate) fn with_pauses(self) -> Option<Self> {
        self.ignores_pauses.then_some(Self { ignores_pauses: false, is_again: true, ..self })
    }

    /// True if the carrier counts, and the packet was sent behind all that have arrived.
    pub(crate) fn is_in_order(self) -> bool {
        self.counts
    }

    /// Records the CID of the packet that has arrived.
    #[inline]
    pub(crate) fn note_flow(&mut self, cid: u16) {
        if self.counts {
            self.run = if self.cid == cid { self.run.saturating_add(1) } else { 0 };
            self.cid = cid;
        }
    }

    /// True if the last packets of the channel were all of the flow of this one.
    fn is_alone(self) -> bool {
        self.run >= ALONE
    }

    /// Records the next arrival.
    #[inline]
    pub(crate) fn advance(&mut self, arrival: Arrival) {
        self.now = arrival.now;
        if self.counts || arrival.lost.is_some() {
            self.count(arrival);
        }
    }

    fn count(&mut self, arrival: Arrival) {
        let lost = arrival.lost.map_or(UNCOUNTED, |lost| lost.min(UNCOUNTED));
        self.lost = self.lost.wrapping_add(lost);
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

/// Packets behind which the bits of the smallest format come round.
pub(crate) const CLOCK_TURN: u32 = 16;

/// Flag in `Arrivals::failed`: the carrier counted.
const COUNTED: u8 = 0x80;

/// Evidence about the number of packets that the flow has had since the last verified packet, including the one that has arrived.
///
/// | evidence | what it proves | what it does not prove |
/// |---|---|---|
/// | time | no more packets than fit at the pace of the flow | any packet: the sender may have been silent |
/// | count of the carrier | no more packets than are missing | that the missing packets were of this flow |
/// | count that agrees with the time, in a flow that is alone | this number of packets, and no silence | |
///
/// A CRC excludes candidates within these limits, and proves one if it excludes all others; a checksum that covers what follows from the
/// sequence number proves one by itself (`crate::flow::search`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Largest number of packets: by the carrier's count if there is one, else by the time.
    pub(crate) most: u32,
    /// The carrier has counted the missing packets.
    pub(crate) is_counted: bool,
    /// The number is `most`, and the flow was not silent.
    pub(crate) is_exact: bool,
    /// Usual times between packets that have passed: the steps of an RTP timestamp that goes on in silence.
    pub(crate) intervals: Intervals,
}

/// Number of times between packets, by the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intervals {
    /// The nearest number.
    pub(crate) number: u32,
    /// Largest deviation from it.
    pub(crate) off: u32,
    /// The pace of the flow is steady.
    pub(crate) is_steady: bool,
}

impl Passed {
    /// The evidence if no more packets than that are assumed.
    pub(crate) fn within(self, packets: u32) -> Self {
        let Intervals { number, off, is_steady } = self.intervals;
        let intervals = Intervals { number: number.min(packets), off: off.min(packets), is_steady };
        Self { most: self.most.min(packets), intervals, ..self }
    }
}

impl Intervals {
    /// The largest number.
    pub(crate) fn most(self) -> u32 {
        self.number.saturating_add(self.off)
    }

    /// True if that many may have passed, of a steady pace.
    pub(crate) fn contain(self, packets: u32) -> bool {
        packets.abs_diff(self.number) <= self.off
    }

    /// True if there was no time for silence besides the packets that were sent: at most as many as the bits of a sequence number stand for
    /// that are `ahead` of the last one, and repeat after a `turn`. Fewer than `least` lost packets do not hide a jump of a timestamp.
    pub(crate) fn leave_no_silence(self, ahead: u32, turn: u32, least: u32) -> bool {
        let first = ahead.saturating_sub(1) % turn + 1;
        let first = if first > least { first } else { first + turn };
        ahead <= least || self.number <= first.saturating_add(self.off)
    }
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

    /// Returns the evidence about the number of packets that have passed.
    pub(crate) fn passed(&self, at: Moment) -> Passed {
        let intervals = self.intervals(at);
        let Some(missing) = self.missing(at) else {
            // A flow without a steady pace may become faster.
            let most = if intervals.is_steady {
                intervals.most()
            } else {
                intervals.number.saturating_mul(2).saturating_add(2)
            };
            return Passed { most, is_counted: false, is_exact: false, intervals };
        };
        let most = missing + u32::from(self.failed()) + 1;
        let agrees = intervals.is_steady && intervals.contain(most);
        Passed { most, is_counted: true, is_exact: at.is_alone() && agrees, intervals }
    }

    /// Returns the usual times between packets that have passed.
    fn intervals(&self, at: Moment) -> Intervals {
        let (gap, waited) = (u64::from(self.pace.gap().max(SHORTEST)), self.waited(at));
        let is_steady = self.pace.is_steady();
        let half = if is_steady { gap / 2 } else { 0 };
        let number = u32::try_from((waited + half) / gap).unwrap_or(u32::MAX);
        let off = 2 + number / if is_steady { 64 } else { 2 };
        Intervals { number, off, is_steady }
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
