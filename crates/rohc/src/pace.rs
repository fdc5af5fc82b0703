//! Pace of a flow: the time between its packets, as both ends measure it. The compressor infers from it when the decompressor
//! may not be sure of the next packet.

use thinair_wire::time::Instant;

/// Times are in units of 2^12 ns, about 4 us.
pub(crate) fn units(nanos: u64) -> u64 {
    nanos >> 12
}

/// Shorter times between packets count as this one, about 1 ms: packets that were sent or queued together.
pub(crate) const SHORTEST: u32 = 256;

/// A step of so many packets, or more, says nothing of the pace: the sender may have leapt, or begun anew.
pub(crate) const LEAP: u32 = 64;

/// Parts of a smoothed time in which distances from it are kept.
pub(crate) const OFF: u32 = 64;

/// Pace of the packets of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowPace {
    /// Smoothed time between packets, 0 before the second one. In octets, which need no padding.
    gap: [u8; 4],
    /// Mean distance of these times from `gap`, in parts of [`OFF`].
    spread: u8,
    /// The longest of these times, which is forgotten slowly, as [`size`] has it.
    longest: u8,
    /// Packets behind the first.
    steps: u8,
}

impl FlowPace {
    /// A flow without packets.
    pub(crate) const NEW: Self = Self { gap: [0; 4], spread: 0, longest: 0, steps: 0 };

    /// A packet was sent, or arrived, `waited` after the last one, from which it is `ahead` by packets and by times between
    /// packets: those count on in silence.
    #[inline]
    pub(crate) fn note(&mut self, waited: u64, ahead: u32, intervals: u32) {
        if ahead >= LEAP {
            return;
        }
        let part = |of: u32| if of > 1 { waited / u64::from(of) } else { waited };
        if intervals < LEAP {
            self.note_time(u32::try_from(part(intervals)).unwrap_or(u32::MAX));
        }
        self.longest = forget(self.longest, self.steps).max(size(part(ahead)));
        // Its low bits go round.
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
        // Rounded up, or small ones would never change it.
        let (off, spread) = (u32::from(off), u32::from(self.spread));
        self.spread = if off > spread {
            spread + (off - spread).div_ceil(8)
        } else {
            spread - (spread - off).div_ceil(8)
        } as u8;
        self.gap = smooth(gap, time).to_ne_bytes();
    }

    /// Smoothed time between packets: at least [`SHORTEST`], or 0 before the second one.
    #[inline]
    pub(crate) fn gap(&self) -> u32 {
        u32::from_ne_bytes(self.gap)
    }

    /// True if there was more than one packet.
    #[inline]
    pub(crate) fn is_known(&self) -> bool {
        self.steps > 0
    }

    /// True if packets come at a pace.
    pub(crate) fn is_steady(&self) -> bool {
        /// Packets behind the first from which on a flow is known to be paced or not.
        const KNOWN: u8 = 8;
        self.steps >= KNOWN && u32::from(self.spread) <= OFF / 4
    }

    /// True if another end, for which packets take longer or shorter, may see a steady pace.
    pub(crate) fn may_be_steady(&self) -> bool {
        u32::from(self.spread) <= OFF / 2
    }

    /// True if the flow was silent for four times as long as between other packets.
    pub(crate) fn has_paused(&self) -> bool {
        self.longest >= size(self.gap().into()).saturating_add(16)
    }

    /// True if the flow was about as long silent before.
    pub(crate) fn is_usual(&self, waited: u64) -> bool {
        size(waited) <= self.longest.saturating_add(8)
    }

    /// True if the flow was as long silent before, and another end has noticed that, too.
    #[inline]
    pub(crate) fn is_surely_usual(&self, waited: u64) -> bool {
        size(waited) <= self.longest && !self.may_be_steady()
    }
}

/// The size of a time: eight steps from one to its double, 0 to 255.
#[inline]
fn size(time: u64) -> u8 {
    let time = time.max(8);
    let exponent = time.ilog2();
    let behind = (time >> (exponent - 3)) as u32 & 7;
    ((exponent - 3) * 8 + behind).min(255) as u8
}

/// Distance of a time from the `smoothed` one, in parts of [`OFF`]; nothing if that is 0.
#[inline]
fn off(time: u32, smoothed: u32) -> Option<u8> {
    let off = OFF.saturating_mul(time.abs_diff(smoothed)).checked_div(smoothed)?;
    Some(off.min(u32::from(u8::MAX)) as u8)
}

/// A smoothed time with one more. A pause counts as at most four times the `smoothed` time: one that comes once says little.
#[inline]
fn smooth(smoothed: u32, time: u32) -> u32 {
    let most = smoothed.saturating_mul(4);
    smoothed - smoothed / 8 + time.min(most) / 8
}

/// The longest of some times, as it is remembered behind so many packets: half of it behind 256.
#[inline]
fn forget(longest: u8, packets: u8) -> u8 {
    longest.saturating_sub(u8::from(packets.is_multiple_of(32)))
}

/// A time, or none yet, in two words: whoever keeps it need not be aligned to 8 octets.
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

    /// Shorter times never make a longer one of them all, so that a compressor which takes off the jitter of a link is sure.
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
