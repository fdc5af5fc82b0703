//! Bits of a sequence number that a packet carries, so that the decompressor is sure which packet it is: more behind a pause, which
//! looks to it like a loss, and more for a while behind its request for repair.
//!
//! RFC 3095 has the window for references that may have been missed (section 4.5.1), and says nothing of pauses. The other
//! end's rule is in `arrival`; this one is twice as careful, since the link may have spread or gathered packets.

use thinair_wire::time::Instant;

use crate::pace::{FlowPace, units};

/// Bits behind a request for repair: losses of 128 packets do not matter then.
const BEHIND_NACK: u8 = 8;

/// Packets that have so many bits.
const PACKETS_BEHIND_NACK: u8 = 64;

/// Bits of SN in the smallest formats, and packets that a pause may have room for with them.
const SMALLEST: u32 = 4;

/// Time by which a link may spread or gather packets, in the units of [`FlowPace`]: 2 ms, beside a quarter of the time between them.
const JITTER: u64 = 512;

/// Pace of a flow at the compressor, and bits that its next packets carry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Caution {
    /// Time of the last packet, in the units of [`FlowPace`], modulo 2^40, which are 52 days; 0 before the first one.
    last: [u8; 5],
    pace: FlowPace,
    bits: u8,
    /// Packets still to be sent with so many bits.
    left: u8,
    /// Group of packets that the last packet belonged to, modulo 256.
    group: u8,
}

/// Units behind one before the origin, modulo 2^40.
fn stamp(now: Instant) -> u64 {
    (units(now.as_nanos()) + 1) & 0xFF_FFFF_FFFF
}

impl Caution {
    /// When the last packet was sent; 0 before the first one.
    fn last(&self) -> u64 {
        let [a, b, c, d, e] = self.last;
        u64::from_be_bytes([0, 0, 0, a, b, c, d, e])
    }

    /// Time since the last packet, in the units of [`FlowPace`].
    #[inline]
    pub(crate) fn waited(&self, now: Instant) -> u64 {
        stamp(now).wrapping_sub(self.last()) & 0xFF_FFFF_FFFF
    }

    /// True if the next packet, so long behind the last one, needs no more bits than any other.
    #[inline]
    pub(crate) fn is_quiet(&self, waited: u64) -> bool {
        self.left == 0 && !self.is_behind_pause(waited)
    }

    /// True if the decompressor may look for other packets than the next one, usual as the pause may be, or if it has asked for
    /// repair.
    #[inline]
    pub(crate) fn is_behind_any_pause(&self, now: Instant) -> bool {
        self.left > 0 || self.is_longer_than_smallest(self.waited(now))
    }

    #[inline]
    fn is_longer_than_smallest(&self, waited: u64) -> bool {
        self.pace.is_known() && waited > u64::from(self.pace.gap()) << SMALLEST >> 2
    }

    /// True if the decompressor may not be sure of a packet in the smallest format behind such a pause. The pause is half of
    /// that in `arrival`; one that is usual does not count.
    #[inline]
    fn is_behind_pause(&self, waited: u64) -> bool {
        self.is_longer_than_smallest(waited) && !self.pace.is_surely_usual(waited)
    }

    /// Bits that the next packet needs, 0 if it needs no more than any other.
    pub(crate) fn bits(&self, now: Instant) -> u32 {
        let kept = if self.left > 0 { u32::from(self.bits) } else { 0 };
        kept.max(self.bits_behind_pause(self.waited(now)))
    }

    fn bits_behind_pause(&self, waited: u64) -> u32 {
        if !self.is_behind_pause(waited) {
            return 0;
        }
        let packets = (waited / u64::from(self.pace.gap().max(1))).saturating_mul(4);
        (u64::BITS - packets.leading_zeros()).clamp(SMALLEST + 1, u16::BITS)
    }

    /// True if the last packet belonged to that group.
    #[inline]
    pub(crate) fn is_in(&self, group: u8) -> bool {
        self.group == group
    }

    /// The next packet belongs to that group. The first one of a group has more bits, since groups may be lost as a whole.
    #[inline]
    pub(crate) fn join(&mut self, group: u8) {
        if self.group != group {
            self.begin(group);
        }
    }

    #[cold]
    fn begin(&mut self, group: u8) {
        let kept = if self.left > 0 { self.bits } else { 0 };
        (self.group, self.bits, self.left) = (group, kept.max(BEHIND_NACK), self.left.max(1));
    }

    /// A packet was sent, whose sequence number is a `step` behind that of the one before; changes are sent with so many
    /// `repetitions`.
    #[inline]
    pub(crate) fn sent(&mut self, now: Instant, step: u32, repetitions: u8) {
        let waited = self.waited(now);
        if !self.is_quiet(waited) {
            self.sent_with_caution(waited, repetitions);
        }
        self.sent_quietly(now, waited, step);
    }

    /// [`sent`](Self::sent), with no more bits than any other, so long behind the last packet.
    #[inline]
    pub(crate) fn sent_quietly(&mut self, now: Instant, waited: u64, step: u32) {
        if self.last != [0; 5] {
            // The other end may have seen shorter times.
            self.pace.note(waited.saturating_sub(waited / 4 + JITTER), step, step);
        }
        let [_, _, _, last @ ..] = stamp(now).to_be_bytes();
        self.last = last;
    }

    #[cold]
    fn sent_with_caution(&mut self, waited: u64, repetitions: u8) {
        let behind_pause = self.bits_behind_pause(waited);
        if behind_pause > 0 {
            let kept = if self.left > 0 { self.bits } else { 0 };
            self.bits = kept.max(behind_pause as u8);
            self.left = self.left.max(repetitions);
        }
        self.left = self.left.saturating_sub(1);
    }

    /// The other end has asked for repair: packets were lost, or damaged.
    pub(crate) fn refused(&mut self) {
        let kept = if self.left > 0 { self.bits } else { 0 };
        (self.bits, self.left) = (kept.max(BEHIND_NACK), PACKETS_BEHIND_NACK);
    }
}
