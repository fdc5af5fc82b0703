//! Pace of a flow: the time between its packets, as both ends measure it. From it the compressor infers when the decompressor
//! may not identify the next packet.

use thinair_wire::time::Instant;

/// Converts nanoseconds to units of 2^12 ns, about 4 us.
pub(crate) fn units(nanos: u64) -> u64 {
    nanos >> 12
}

/// Smallest time between packets, about 1 ms. Shorter ones count as this: the packets were sent or queued together.
pub(crate) const SHORTEST: u32 = 256;

/// Number of packets from which on a step is not used to measure the pace: the sender may have leapt, or restarted.
const LEAP: u32 = 64;

/// Number of packets over which a time is smoothed. With 8, where losses and arrivals alternate, the smoothed time is off by more
/// than the part of it that `Arrivals` allows for.
const SMOOTHED: u32 = 16;

/// Number of parts of a smoothed time in which deviations are measured.
pub(crate) const OFF: u32 = 64;

/// Clock of an end of a channel: one that is set back goes on from where it was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SteadyClock {
    /// Nanoseconds by which it was set back so far.
    behind: u64,
}

impl SteadyClock {
    /// Returns the steady time at a time of the clock, not before that of the `last` packet.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant, last: Instant) -> Instant {
        let steady = self.at(now);
        if steady < last { self.set_back(steady, last) } else { steady }
    }

    /// [`advance`](Self::advance), but a clock that is set back may hide a pause: it goes on as if as much time had passed.
    #[inline]
    pub(crate) fn advance_by_pause(&mut self, now: Instant, last: Instant) -> Instant {
        let steady = self.at(now);
        if steady < last { self.set_back(steady, last + last.since(steady)) } else { steady }
    }

    #[cold]
    fn set_back(&mut self, steady: Instant, to: Instant) -> Instant {
        self.behind = self.behind.wrapping_add(to.nanos_since(steady));
        to
    }

    /// Returns the steady time at a time of the clock that no packet has.
    #[inline]
    pub(crate) fn at(&self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos().wrapping_add(self.behind))
    }
}

/// Number of packets from the last one to one that is `ahead` of it: 0 if the number stands still, 1 if it has gone back.
#[inline]
pub(crate) fn steps(ahead: i32) -> u32 {
    if ahead < 0 { 1 } else { ahead.unsigned_abs() }
}

/// True if a packet whose number stands still is no packet of its own: it was `waited` behind the last one, as duplicates are.
#[inline]
pub(crate) fn is_duplicate(waited: u64, steps: u32) -> bool {
    steps == 0 && waited < u64::from(SHORTEST)
}

/// Pace of the packets of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowPace {
    /// Smoothed time between packets; 0 before the second one. As octets, to avoid padding.
    gap: [u8; 4],
    /// Mean deviation of these times from `gap`, in parts of [`OFF`].
    spread: u8,
    /// The longest of these times, as [`size`] encodes it; it decays slowly.
    longest: u8,
    /// Number of packets after the first.
    steps: u8,
}

impl FlowPace {
    /// A flow without packets.
    pub(crate) const NEW: Self = Self { gap: [0; 4], spread: 0, longest: 0, steps: 0 };

    /// Records a packet that was sent or has arrived `waited` after the last one, and is `ahead` of it by packets and
    /// `intervals` by times between packets. Intervals also count while the flow is silent.
    #[inline(always)]
    pub(crate) fn note(&mut self, waited: u64, ahead: u32, intervals: u32) {
        let part = |of: u32| if of > 1 { waited / u64::from(of) } else { waited };
        if ahead < LEAP {
            // Timestamps whose steps are several strides seem to go on in silence for which there was no time.
            let least = || u64::from(if self.is_known() { self.gap() / 2 } else { SHORTEST });
            let intervals = if intervals > ahead && part(intervals) < least() { ahead } else { intervals };
            self.note_times((intervals < LEAP).then_some(part(intervals)), part(ahead));
        }
    }

    /// Records the time between two packets, if it is known, and the time since the last one.
    #[inline(never)]
    fn note_times(&mut self, between: Option<u64>, waited: u64) {
        if let Some(between) = between {
            self.note_time(u32::try_from(between).unwrap_or(u32::MAX));
        }
        self.longest = forget(self.longest, self.steps).max(size(waited));
        // The low bits go on counting.
        self.steps = if self.steps == u8::MAX { u8::MAX - 0x1F } else { self.steps + 1 };
    }

    #[inline]
    fn note_time(&mut self, time: u32) {
        let time = time.max(SHORTEST);
        let gap = self.gap();
        let Some(off) = off(time, gap) else {
            (self.gap, self.spread) = (time.to_ne_bytes(), OFF as u8 / 2);
            return;
        };
        // Rounded up, since small deviations would otherwise never change it.
        let (off, spread) = (u32::from(off), u32::from(self.spread));
        self.spread = if off > spread {
            spread + (off - spread).div_ceil(8)
        } else {
            spread - (spread - off).div_ceil(8)
        } as u8;
        self.gap = smooth(gap, time, (u32::from(self.steps) + 1).min(SMOOTHED)).to_ne_bytes();
    }

    /// Smoothed time between packets: at least [`SHORTEST`], or 0 before the second one.
    #[inline]
    pub(crate) fn gap(&self) -> u32 {
        u32::from_ne_bytes(self.gap)
    }

    /// True if a time between packets was measured.
    #[inline]
    pub(crate) fn is_known(&self) -> bool {
        self.gap != [0; 4]
    }

    /// True if a step of the sequence number is a leap: the sender has leapt or restarted, since there was no time for half as many
    /// packets.
    #[inline]
    pub(crate) fn is_leap(&self, ahead: i32, waited: u64) -> bool {
        let packets = ahead.unsigned_abs();
        packets >= LEAP && (ahead < 0 || waited < u64::from(self.gap()) * u64::from(packets / 2))
    }

    /// True if enough packets have come to tell whether their pace is steady.
    pub(crate) fn is_settled(&self) -> bool {
        self.steps >= 8
    }

    /// True if packets come at a steady pace.
    pub(crate) fn is_steady(&self) -> bool {
        self.is_settled() && u32::from(self.spread) <= OFF / 4
    }

    /// True if the other end, with longer or shorter delays, may see a steady pace.
    pub(crate) fn may_be_steady(&self) -> bool {
        u32::from(self.spread) <= OFF / 2
    }

    /// True if the flow has been silent for four times the usual time between packets.
    pub(crate) fn has_paused(&self) -> bool {
        self.longest >= size(self.gap().into()).saturating_add(16)
    }

    /// True if the flow has been silent for about as long before.
    pub(crate) fn is_usual(&self, waited: u64) -> bool {
        size(waited) <= self.longest.saturating_add(8)
    }

    /// True if the flow has been silent for as long before, and the other end has noticed it for certain.
    #[inline]
    pub(crate) fn is_surely_usual(&self, waited: u64) -> bool {
        size(waited) <= self.longest && !self.may_be_steady()
    }
}

/// Encodes a time in 0 to 255: eight steps from one time to its double.
#[inline]
fn size(time: u64) -> u8 {
    let time = time.max(8);
    let exponent = time.ilog2();
    let behind = (time >> (exponent - 3)) as u32 & 7;
    ((exponent - 3) * 8 + behind).min(255) as u8
}

/// Deviation of a time from the `smoothed` one, in parts of [`OFF`]; `None` if that is 0.
#[inline]
fn off(time: u32, smoothed: u32) -> Option<u8> {
    let off = OFF.saturating_mul(time.abs_diff(smoothed)).checked_div(smoothed)?;
    Some(off.min(u32::from(u8::MAX)) as u8)
}

/// Returns the average of a smoothed time over `packets - 1` packets and one more. A pause counts as at most four times the
/// `smoothed` time, since a single one is no trend.
#[inline]
fn smooth(smoothed: u32, time: u32, packets: u32) -> u32 {
    let most = smoothed.saturating_mul(4);
    // A shift, in a flow that is not new.
    let part = |of: u32| if packets == SMOOTHED { of / SMOOTHED } else { of / packets };
    smoothed - part(smoothed) + part(time.min(most))
}

/// Returns the longest time, decayed by a number of packets: to half of it after 256.
#[inline]
fn forget(longest: u8, packets: u8) -> u8 {
    longest.saturating_sub(u8::from(packets.is_multiple_of(32)))
}

/// A time or none, in two words, so that a struct with it need not be aligned to 8 octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp([u32; 2]);

impl Stamp {
    pub(crate) const NEVER: Self = Self([0; 2]);

    #[inline]
    pub(crate) fn of(time: Instant) -> Self {
        let behind = time.as_nanos().wrapping_add(1);
        Self([(behind >> 32) as u32, behind as u32])
    }

    #[inline]
    pub(crate) fn time(self) -> Instant {
        Instant::from_nanos((u64::from(self.0[0]) << 32 | u64::from(self.0[1])).saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_at_the_origin_of_time_has_come() {
        let origin = Instant::from_nanos(0);
        assert_ne!(Stamp::of(origin), Stamp::NEVER);
        assert_eq!(Stamp::of(origin).time(), origin);
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on() {
        let at = Instant::from_millis;
        let (mut receiver, mut sender) = (SteadyClock::default(), SteadyClock::default());
        assert_eq!(receiver.advance(at(400), at(1_000)), at(1_000));
        assert_eq!(receiver.advance(at(420), at(1_000)), at(1_020));
        // A pause may be hidden: as long as the clock has gone back.
        assert_eq!(sender.advance_by_pause(at(400), at(1_000)), at(1_600));
        assert_eq!(sender.advance_by_pause(at(420), at(1_600)), at(1_620));
    }

    /// Where TS_STRIDE is a small part of the steps, each step looks like silence.
    #[test]
    fn silence_for_which_there_was_no_time_is_none() {
        let twenty = units(20_000_000);
        let mut pace = FlowPace::NEW;
        (0..20).for_each(|_| pace.note(twenty, 1, 32));
        assert_eq!(u64::from(pace.gap()), twenty);
        // Silence is: the pace stays.
        pace.note(twenty * 32, 1, 32);
        assert_eq!(u64::from(pace.gap()), twenty);
    }

    /// Shorter times never give a longer gap, so that a compressor that subtracts the jitter of a link is safe.
    #[test]
    fn shorter_times_make_a_shorter_gap() {
        let (mut short, mut long) = (FlowPace::NEW, FlowPace::NEW);
        for i in 0..10_000_u64 {
            let time = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (30 + i % 30);
            short.note(time - time / 3, 1, 1);
            long.note(time, 1, 1);
            assert!(short.gap() <= long.gap() && short.longest <= long.longest, "{i}");
        }
    }
}
