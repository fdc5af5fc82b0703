//! Number of bits of a sequence number that a packet needs for a decompressor to identify it: more after a pause, which looks
//! like a loss to the decompressor, and more for some time after its request for repair.
//!
//! RFC 3095 has the window for references that may have been lost (section 4.5.1), and does not cover pauses. The rule of the
//! other end is in `arrival`. This one is twice as careful, since the link may have spread or gathered packets.

use thinair_wire::time::Instant;

use crate::flow::pace::{FlowPace, is_duplicate, units};

/// Bits after a request for repair, enough for a loss of 128 packets.
const BEHIND_NACK: u8 = 8;

/// Number of packets with these bits.
const PACKETS_BEHIND_NACK: u8 = 64;

/// Packets in which compressors repeat a change: a decompressor takes a number that is so many ahead, behind a usual pause, for the next
/// one (`proof`).
pub(crate) const REPEATED: i32 = 4;

/// Bits of SN in the smallest formats.
const SMALLEST: u32 = 4;

/// Largest number of bits: those of a timestamp behind a pause of months. A sequence number needs no more than its 16.
const MOST: u32 = 30;

/// Time by which a link may spread or gather packets, in the units of [`FlowPace`]: 2 ms, in addition to a quarter of the time
/// between them.
const JITTER: u64 = 512;

/// Distances between the packets behind a pause that a decompressor can identify without those before. The first packets behind a pause
/// are those that are most likely to be lost, all together: so these are spread, over 808 packets.
const SPREAD: [u8; 7] = [2, 5, 16, 76, 200, 254, 254];

/// Pace of a flow at the compressor, and bits that its next packets carry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Caution {
    /// Time of the last packet, in the units of [`FlowPace`], modulo 2^40 (52 days); 0 before the first one.
    last: [u8; 5],
    pace: FlowPace,
    bits: u8,
    /// Number of packets still to be sent with these bits.
    left: u8,
    /// Number of packets up to the next one of [`SPREAD`] that carries these bits; 0 if none is left.
    until: u8,
    /// Number of these that were sent, above a set of [`Moved`]: fields that have moved at the pause.
    spread_and_moved: u8,
    /// Group of packets of the last packet, modulo 256.
    group: u8,
}

/// Flag beside [`Moved`]: a request for repair was answered by one more packet that can be identified.
const REPEATED_AT_ONCE: u8 = 0x08;

/// Flags in `Caution::spread_and_moved`, and one of the number above them.
const FLAGS: u8 = 0x0F;
const ONE_SPREAD: u8 = 0x10;

/// A field that a decompressor infers from the sequence number, and that does not follow from it at a pause.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moved {
    IpId = 1,
    /// The RTP timestamp has jumped by a multiple of its stride.
    Timestamp = 2,
    /// The RTP timestamp has jumped by another number.
    TimestampOffset = 4,
}

/// Returns the units since one unit before the origin, modulo 2^40.
fn stamp(now: Instant) -> u64 {
    (units(now.as_nanos()) + 1) & 0xFF_FFFF_FFFF
}

impl Caution {
    /// Time of the last packet; 0 before the first one.
    fn last(&self) -> u64 {
        let [a, b, c, d, e] = self.last;
        u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
    }

    /// Time since the last packet, in the units of [`FlowPace`].
    #[inline]
    pub(crate) fn waited(&self, now: Instant) -> u64 {
        stamp(now).wrapping_sub(self.last()) & 0xFF_FFFF_FFFF
    }

    /// True if the next packet, sent `waited` after the last one, needs no additional bits.
    #[inline(always)]
    pub(crate) fn is_quiet(&self, waited: u64) -> bool {
        self.left == 0 && self.until != 1 && !self.is_behind_pause(waited)
    }

    /// Begins the next packet. True if fields that have moved with it are to be [noted](Self::note_moved).
    #[inline]
    pub(crate) fn begin_packet(&mut self, now: Instant) -> bool {
        if self.until != 0 {
            return true;
        }
        let has_waited = self.has_waited(now);
        if has_waited {
            self.spread_and_moved = 0;
        }
        has_waited
    }

    /// Records that a field of the next packet does not follow from the last packet.
    pub(crate) fn note_moved(&mut self, field: Moved) {
        self.spread_and_moved |= field as u8;
    }

    /// True if the next packet is one of those behind a pause that are to be identified without those before.
    pub(crate) fn is_spread(&self) -> bool {
        self.until == 1
    }

    /// True if the next packet is to be identified without those before, and all that carry changes at the pause may have been lost.
    pub(crate) fn may_hide_changes(&self) -> bool {
        self.until == 1 && self.spread() > 1
    }

    /// True if the next packet [may hide changes](Self::may_hide_changes), and that field has changed.
    pub(crate) fn repeats(&self, field: Moved) -> bool {
        self.may_hide_changes() && self.spread_and_moved & field as u8 != 0
    }

    /// True if the next packet [may hide changes](Self::may_hide_changes), and there were some.
    pub(crate) fn repeats_any(&self) -> bool {
        self.may_hide_changes() && self.spread_and_moved & FLAGS & !REPEATED_AT_ONCE != 0
    }

    /// True if the pause was so long that a checksum does not prove a timestamp that has jumped: too many candidates have an equal sum.
    pub(crate) fn is_behind_long_pause(&self) -> bool {
        self.bits > 8
    }

    /// Bits with which the packets behind a pause are identified; of a timestamp, which may need more than 16.
    pub(crate) fn spread_bits(&self) -> u32 {
        self.bits.into()
    }

    /// Number of packets of [`SPREAD`] that were sent.
    fn spread(&self) -> u8 {
        self.spread_and_moved / ONE_SPREAD
    }

    /// Bits that were set for the next packets; 0 if there are none.
    fn kept(&self) -> u8 {
        if self.left > 0 || self.until != 0 { self.bits } else { 0 }
    }

    /// True if the decompressor may consider other packets than the next one, even after a usual pause, or if it has asked for
    /// repair.
    #[inline]
    pub(crate) fn is_behind_any_pause(&self, now: Instant) -> bool {
        self.left > 0 || self.until == 1 || self.has_waited(now)
    }

    /// True if the decompressor may consider other packets than the next one because of the time that has passed.
    pub(crate) fn has_waited(&self, now: Instant) -> bool {
        self.is_longer_than_smallest(self.waited(now))
    }

    /// True if a number that does not go on may look like one that has come round: time has passed, or no pace tells.
    pub(crate) fn may_have_turned(&self, now: Instant) -> bool {
        !self.pace.is_known() || self.has_waited(now)
    }

    #[inline]
    fn is_longer_than_smallest(&self, waited: u64) -> bool {
        self.pace.is_known() && waited > u64::from(self.pace.gap()) << SMALLEST >> 2
    }

    /// True if the decompressor may not identify a packet in the smallest format after such a pause. The limit is half of that in
    /// `arrival`; a usual pause does not count.
    #[inline(always)]
    fn is_behind_pause(&self, waited: u64) -> bool {
        self.is_longer_than_smallest(waited) && !self.pace.is_surely_usual(waited)
    }

    /// Bits that the next packet needs, whose sequence number is `step` after that of the last one; 0 if it needs no additional bits.
    #[inline(always)]
    pub(crate) fn bits(&self, now: Instant, step: i32) -> u32 {
        let is_due = self.left > 0 || self.until == 1;
        let (kept, waited) = (if is_due { u32::from(self.bits) } else { 0 }, self.waited(now));
        let behind_step = if (1..=REPEATED).contains(&step) { 0 } else { self.bits_behind_step(waited) };
        kept.max(self.bits_behind_pause(waited)).max(behind_step).min(u16::BITS)
    }

    /// Bits behind a pause that is a usual one only where the number goes on. A decompressor that has had the flow before may know a pace
    /// where this end knows none.
    #[cold]
    fn bits_behind_step(&self, waited: u64) -> u32 {
        match self.pace.is_known() {
            false => MOST,
            true if self.is_longer_than_smallest(waited) => self.bits_to_tell(waited),
            true => 0,
        }
    }

    fn bits_behind_pause(&self, waited: u64) -> u32 {
        if self.is_behind_pause(waited) { self.bits_to_tell(waited) } else { 0 }
    }

    /// Bits that tell a packet apart from all that may have been sent in that time.
    #[inline]
    fn bits_to_tell(&self, waited: u64) -> u32 {
        let packets = (waited / u64::from(self.pace.gap().max(1))).saturating_mul(4);
        (u64::BITS - packets.leading_zeros()).clamp(SMALLEST + 1, MOST)
    }

    /// True if the last packet belonged to `group`.
    #[inline]
    pub(crate) fn is_in(&self, group: u8) -> bool {
        self.group == group
    }

    /// Sets the group of the next packet. The first packet of a group has more bits, since a group may be lost as a whole.
    #[inline]
    pub(crate) fn join(&mut self, group: u8) {
        if self.group != group {
            self.begin(group);
        }
    }

    #[cold]
    fn begin(&mut self, group: u8) {
        (self.group, self.bits, self.left) = (group, self.kept().max(BEHIND_NACK), self.left.max(1));
    }

    /// Records that an IR packet moves the sequence number by `ahead`: the decompressor measures the pace anew after a leap
    /// (`Arrivals::behind`).
    #[inline]
    pub(crate) fn leap(&mut self, now: Instant, ahead: i32) {
        if self.pace.is_leap(ahead, self.waited(now)) {
            (self.last, self.pace) = ([0; 5], FlowPace::NEW);
        }
    }

    /// Records a packet that was sent, whose sequence number is `step` after that of the last one.
    #[inline]
    pub(crate) fn sent(&mut self, now: Instant, step: u32) {
        let waited = self.waited(now);
        if !self.is_quiet(waited) {
            self.sent_with_caution(waited);
        }
        self.sent_quietly(now, waited, step);
    }

    /// [`sent`](Self::sent) for a packet without additional bits, `waited` after the last one.
    #[inline(always)]
    pub(crate) fn sent_quietly(&mut self, now: Instant, waited: u64, step: u32) {
        if self.last != [0; 5] && !is_duplicate(waited, step) {
            // The other end may have seen shorter times.
            self.pace.note(waited.saturating_sub(waited / 4 + JITTER), step, step);
        }
        let [last @ .., _, _, _] = stamp(now).to_le_bytes();
        self.last = last;
        if self.until > 1 {
            self.until -= 1;
        }
    }

    #[cold]
    fn sent_with_caution(&mut self, waited: u64) {
        let behind_pause = self.bits_behind_pause(waited);
        if behind_pause > 0 {
            self.bits = self.kept().max(behind_pause as u8);
            self.spread_and_moved &= FLAGS & !REPEATED_AT_ONCE;
        }
        if behind_pause > 0 || self.until == 1 {
            // One more than to the next one, since this packet is counted, too.
            self.until = SPREAD.get(usize::from(self.spread())).map_or(0, |next| next + 1);
            self.spread_and_moved += ONE_SPREAD;
        }
        self.left = self.left.saturating_sub(1);
    }

    /// True if a request for repair still has its bits: they are left for more packets than behind a pause.
    pub(crate) fn is_behind_nack(&self, repetitions: u8) -> bool {
        self.left > repetitions
    }

    /// Handles a request for repair behind a pause: the packets that the decompressor could identify were lost, so that another one is sent
    /// at once. False if that was done before, or there was no pause: the context is damaged.
    pub(crate) fn repeat_at_once(&mut self) -> bool {
        let may = self.until != 0 && self.spread_and_moved & REPEATED_AT_ONCE == 0;
        if may {
            (self.until, self.spread_and_moved) = (1, self.spread_and_moved | REPEATED_AT_ONCE);
        }
        may
    }

    /// Handles an acknowledgment of a packet, behind which `newer` packets were sent. One that was sent behind the pause ends it.
    pub(crate) fn acknowledge(&mut self, newer: u32) {
        let spread: u32 = SPREAD.iter().take(self.spread().into()).map(|packets| u32::from(*packets)).sum();
        if self.until > 0 && newer <= spread.saturating_sub(self.until.into()) {
            (self.until, self.spread_and_moved) = (0, 0);
        }
    }

    /// Handles a request for repair: packets were lost, or damaged.
    pub(crate) fn refused(&mut self) {
        (self.bits, self.left) = (self.kept().max(BEHIND_NACK), PACKETS_BEHIND_NACK);
    }
}
