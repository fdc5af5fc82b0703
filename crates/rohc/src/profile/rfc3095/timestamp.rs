//! RTP timestamps: scaled by TS_STRIDE, or approximated by a timer. RFC 3095, sections 4.5.3 and 4.5.4; RFC 4815,
//! section 4.

use thinair_wire::coder::Reader;
use thinair_wire::lsb::{self, Shift};
use thinair_wire::range::Range;
use thinair_wire::serial::Serial;
use thinair_wire::time::Instant;

use super::TS;
use super::rtp::{RtpExtra, RtpFields};
use super::timer::TimestampTimer;
use crate::compressor::CompressorConfig;
use crate::field::timer::{TimerLimits, phase, ticks};

/// Number of steps that are examined before a larger TS_STRIDE is sent.
const LOOKS: u8 = 5;

/// Number of steps that are no multiples of TS_STRIDE, less those that are, at which it is dropped: a single one is a jump.
const ROUGH: u8 = 4;

/// Factor by which a stride must be larger to be worth sending.
const WORTH: u32 = 16;

/// Number of packets in a row with one constant multiple of TS_STRIDE as their step, at which that becomes the stride. An octet
/// in each of them is then about a fourth of the cost of TS_STRIDE, and a step that is repeated that often is no exception.
const EVEN: u8 = 4;

/// Returns `TS_SCALED` of a timestamp. `TS_OFFSET` is the remainder (RFC 4815, section 4.4).
#[inline]
pub(super) fn scaled(ts: u32, stride: u32) -> u32 {
    ts.checked_div(stride).unwrap_or(0)
}

/// Returns `TS_OFFSET` of a timestamp, which also changes where the timestamp wraps around. With a stride of zero the timestamp is not
/// scaled.
#[inline]
pub(super) fn offset(ts: u32, stride: u32) -> u32 {
    ts.checked_rem(stride).unwrap_or(ts)
}

/// Decodes the timestamp of a compressed header; `None` if the header must be discarded.
///
/// `reference` is the last verified header, which arrived at `arrival`, and `ahead` its distance in SN.
pub(super) fn decode(
    reader: &Reader<'_>,
    extra: &RtpExtra,
    reference: &RtpFields,
    ahead: i32,
    arrival: Instant,
    now: Instant,
) -> Option<u32> {
    let (bits, k) = reader.collected(TS);
    if !extra.scaled {
        // RFC 4815, section 4.2: "If a packet with no TS bits is received with Tsc = 0, the decompressor MUST discard
        // the packet."
        return (k > 0).then(|| lsb::decode(bits, k, reference.ts, Shift::Ts));
    }
    // RFC 4815, section 4.6: "When TS is scaled, it is always scaled using context(TS_STRIDE)."
    let stride = reference.stride;
    if k == 0 {
        return Some(ahead_of(reference, ahead));
    }
    let from = scaled(reference.ts, stride);
    let to = if reference.time_stride > 0 {
        let elapsed = ticks(now, reference.time_stride).wrapping_sub(ticks(arrival, reference.time_stride));
        lsb::decode(bits, k, from.wrapping_add(elapsed), Shift::Half)
    } else {
        lsb::decode(bits, k, from, Shift::Ts)
    };
    Some(to.wrapping_mul(stride).wrapping_add(offset(reference.ts, stride)))
}

/// Returns the timestamp of a header that is `ahead` of a reference, and carries none.
#[inline]
pub(super) fn ahead_of(reference: &RtpFields, ahead: i32) -> u32 {
    reference.ts.wrapping_add(reference.stride.wrapping_mul(ahead as u32))
}

/// Two counts from 0 to 15 in one octet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TwoCounts(u8);

impl TwoCounts {
    fn new(first: u8, second: u8) -> Self {
        Self(first.min(15) << 4 | second.min(15))
    }

    fn get(self) -> (u8, u8) {
        (self.0 >> 4, self.0 & 15)
    }
}

/// Progress of the search for TS_STRIDE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// No packet yet.
    #[default]
    New,
    /// No step yet.
    Begun,
    /// There was a step, which gave the first estimate.
    Guessed,
}

/// State of the timestamps of a flow at the compressor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timestamps {
    /// Values that the decompressor may hold as its reference: unscaled, or, with TIME_STRIDE, as phases. In R-mode these are the
    /// timestamps of updates, see `reliable`.
    references: Range<u32, 3>,
    timer: TimestampTimer,
    /// Number of packets left that must carry a new TS_STRIDE. In R-mode this and the next fields are not counted but
    /// acknowledged.
    stride: u8,
    /// Number of packets left that must carry TS unscaled, because TS_OFFSET has changed.
    unscaled: u8,
    /// Number of packets left until TS follows from the SN with every reference.
    bend: u8,
    /// SN of the first such reference. The context has the first SN of the other changes.
    since: [u8; 2],
    /// Greatest common divisor of the examined steps.
    divisor: u32,
    /// Number of these; and twice the steps that were no multiples of TS_STRIDE, less those that were.
    looks: TwoCounts,
    /// Strides in the last step, if it was a small multiple, and number of packets in a row with as many.
    even: TwoCounts,
    stage: Stage,
    /// Number of packets left that must carry P, X and PT. These are no timestamps, but there is room for it here.
    pub(super) pt: u8,
    /// [`STRIDE_KNOWN`] and [`X_ALONE`].
    flags: u8,
}

/// The decompressor may have received a TS_STRIDE, for this flow or for a previous one with this CID: IR packets "do not clear
/// the whole context" (RFC 4815, section 6.3).
const STRIDE_KNOWN: u8 = 1;

/// Packets that must carry X need not carry P and PT.
const X_ALONE: u8 = 2;

/// Fields of the timestamp that a packet must carry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needed {
    /// The value of the slot, scaled or not.
    pub(super) value: u32,
    /// Number of bits without which the other side could decode another value, if any are sent.
    pub(super) bits: u32,
    pub(super) scaled: bool,
    /// Without any bits, the SN determines it.
    pub(super) inferable: bool,
}

/// SN of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct SnStep {
    pub(super) sn: u32,
    /// SN of the packet before.
    pub(super) before: u32,
    /// SN from which on an acknowledgment confirms the changes of the packet.
    pub(super) since: u16,
}

impl Timestamps {
    /// Records the timestamp of a packet, relative to the packet before: sets TS_STRIDE in `now`, and the fields that must be sent.
    /// Returns true if more than the timestamp itself has to be sent from now on.
    pub(super) fn note(
        &mut self,
        time: Instant,
        now: &mut RtpFields,
        before: &RtpFields,
        SnStep { sn, before: sn_before, since }: SnStep,
        config: &CompressorConfig,
        link: Option<&TimerLimits>,
    ) -> bool {
        let repetitions = config.repetitions;
        now.stride = before.stride.max(1);
        now.time_stride = before.time_stride;
        if self.stage == Stage::New {
            self.stage = Stage::Begun;
            self.timer.start(time, now);
            return false;
        }
        let step = now.ts.wrapping_sub(before.ts);
        if step == 0 {
            self.even = TwoCounts::default();
        } else if step != now.stride || self.rough() > 0 || self.stage == Stage::Begun {
            self.learn(now, (step as i32).unsigned_abs());
            self.count_even(now, step);
        } else {
            (self.divisor, self.even) = (step, TwoCounts::default());
        }
        // TS_STRIDE is 1 from the beginning (RFC 3095, section 5.7.5.2), but some decompressors need to receive it.
        let turned = now.stride != before.stride || !self.is_stride_known();
        if turned {
            self.note_stride_sent();
            self.stride = repetitions.max(1);
        }
        let is_moved = turned || offset(now.ts, now.stride) != offset(before.ts, now.stride);
        if is_moved {
            self.unscaled = repetitions.max(1);
        }
        let ahead = i32::from(sn.wrapping_sub(sn_before) as i16) as u32;
        let linear = before.ts.wrapping_add(ahead.wrapping_mul(now.stride));
        if is_moved || now.ts != linear {
            self.bend(since, config.window);
        }
        let is_other_kind = self.timer.note(time, now, turned, link, config);
        if is_other_kind {
            self.references.clear();
        }
        is_moved || is_other_kind
    }

    /// True if a timestamp is one TS_STRIDE ahead of the one before, and no change has to be sent or learned.
    #[inline]
    pub(super) fn is_regular(&self, now: &RtpFields, before: &RtpFields) -> bool {
        let is_known = self.stage == Stage::Guessed && self.rough() == 0 && self.is_stride_known();
        let is_quiet = self.stride | self.unscaled | self.bend == 0 && self.timer.is_quiet();
        let is_ahead = before.ts.checked_add(before.stride) == Some(now.ts);
        is_known && is_quiet && is_ahead && now.time_stride == 0
    }

    /// Records a sent timestamp that [`is_regular`](Self::is_regular).
    #[inline]
    pub(super) fn go_on(&mut self, now: &RtpFields, window: usize) {
        (self.divisor, self.even) = (now.stride, TwoCounts::default());
        self.references.push(now.ts, window);
    }

    /// Records that timestamps follow from the SN with references from this SN on, and not with those before.
    fn bend(&mut self, sn: u16, window: u8) {
        self.bend = window.max(1);
        self.since = sn.to_be_bytes();
    }

    /// Counts steps of one constant multiple of TS_STRIDE, and makes it the stride if they continue.
    fn count_even(&mut self, now: &mut RtpFields, step: u32) {
        let is_multiple = step > now.stride && step.is_multiple_of(now.stride);
        let strides = step.checked_div(now.stride).filter(|_| is_multiple).unwrap_or(0).min(16) as u8 % 16;
        let (before, count) = self.even.get();
        let count = if strides == 0 {
            0
        } else if strides == before {
            count + 1
        } else {
            1
        };
        self.even = TwoCounts::new(strides, count);
        if count >= EVEN {
            now.stride = step;
            (self.divisor, self.looks, self.even) = (0, TwoCounts::default(), TwoCounts::default());
        }
    }

    /// Learns from a step, and sets the stride to be used from now on.
    fn learn(&mut self, now: &mut RtpFields, step: u32) {
        let fits = step.is_multiple_of(now.stride);
        if self.stage == Stage::Begun {
            // The first step is as good an estimate as any.
            self.stage = Stage::Guessed;
            now.stride = step;
            return;
        }
        let (mut steps, mut rough) = self.looks.get();
        if !fits && rough == 0 {
            (self.divisor, steps) = (0, 0);
        }
        self.divisor = gcd(self.divisor, step);
        steps += 1;
        if !fits {
            rough += 2;
        }
        // A step that divides TS_STRIDE is no jump: the stride was too large.
        let is_given_up = !fits && (rough >= ROUGH || now.stride.is_multiple_of(step));
        let is_looked_at = fits && rough == 0 && steps >= LOOKS;
        if is_given_up || is_looked_at && self.divisor / now.stride >= WORTH {
            now.stride = self.divisor;
        }
        if is_given_up || is_looked_at {
            (self.divisor, self.looks) = (0, TwoCounts::default());
        } else {
            self.looks = TwoCounts::new(steps, rough.saturating_sub(u8::from(fits)));
        }
    }

    fn rough(&self) -> u8 {
        self.looks.get().1
    }

    pub(super) fn is_stride_known(&self) -> bool {
        self.flags & STRIDE_KNOWN != 0
    }

    /// Records that the decompressor may receive a TS_STRIDE from now on.
    pub(super) fn note_stride_sent(&mut self) {
        self.flags |= STRIDE_KNOWN;
    }

    /// True if packets that must carry X need not carry P and PT.
    pub(super) fn is_x_alone(&self) -> bool {
        self.flags & X_ALONE != 0
    }

    pub(super) fn set_x_alone(&mut self, is_alone: bool) {
        self.flags = if is_alone { self.flags | X_ALONE } else { self.flags & !X_ALONE };
    }

    /// Returns the fields that must be sent of the recorded timestamp.
    pub(super) fn needed(&self, time: Instant, now: &RtpFields, link: Option<&TimerLimits>) -> Needed {
        let by_timer = now.time_stride > 0;
        let inferable = self.bend == 0;
        if self.unscaled > 0 || self.stride > 0 || self.timer.is_settling() && !inferable {
            return self.unscaled(now);
        }
        let value = scaled(now.ts, now.stride);
        if self.timer.is_settling() {
            return Needed { value, bits: u32::BITS, scaled: true, inferable };
        }
        if let (true, Some(link)) = (by_timer, link) {
            let bits = TimestampTimer::bits(time, now, &self.references, link);
            return Needed { value, bits, scaled: true, inferable };
        }
        let mut bits = 0;
        for (low, high) in self.references.spans() {
            for bound in [low, high] {
                bits = bits.max(lsb::needed_bits(value, scaled(bound, now.stride), Shift::Ts));
            }
            if high.wrapping_sub(low) >= 1 << 31 {
                bits = u32::BITS;
            }
        }
        Needed { value, bits, scaled: true, inferable }
    }

    /// Returns what must be sent of the recorded timestamp if it is not scaled.
    #[cold]
    pub(super) fn unscaled(&self, now: &RtpFields) -> Needed {
        let is_near = now.time_stride == 0 && !self.timer.is_settling();
        let bits = if is_near { self.references.needed_bits(now.ts, Shift::Ts) } else { u32::BITS };
        Needed { value: now.ts, bits, ..Needed::default() }
    }

    /// Records a packet that was sent, not in R-mode.
    pub(super) fn commit(
        &mut self,
        time: Instant,
        now: &RtpFields,
        extra: &RtpExtra,
        in_full: bool,
        window: usize,
    ) {
        self.references.push(reference(time, now), window);
        self.timer.sent(in_full || extra.time_stride);
        self.bend = self.bend.saturating_sub(1);
        if in_full || !extra.scaled {
            self.unscaled = self.unscaled.saturating_sub(1);
        }
        if in_full || extra.stride {
            self.stride = self.stride.saturating_sub(1);
        }
    }

    /// Records a late packet; acknowledgments confirm changes from `since` on.
    pub(super) fn note_late(&mut self, time: Instant, now: &RtpFields, since: u16) {
        self.references.include(reference(time, now));
        self.since = since.to_be_bytes();
    }

    /// Handles the acknowledgment of a packet, after which `newer` were sent.
    pub(super) fn acknowledge(&mut self, sn: u16, newer: usize, window: usize) {
        if !sn.is_before(u16::from_be_bytes(self.since)) {
            self.references.acknowledge(newer, window);
            self.bend = 0;
        }
    }

    /// Counts a packet with the full timestamp and TS_STRIDE twice.
    pub(super) fn count_once_more(&mut self) {
        self.stride = self.stride.saturating_sub(1);
        self.unscaled = self.unscaled.saturating_sub(1);
    }

    /// Handles the acknowledgment of a packet with all changes.
    pub(super) fn acknowledge_changes(&mut self) {
        (self.stride, self.unscaled, self.pt) = (0, 0, 0);
    }

    /// Records an update that was sent in R-mode. See `Range::add`.
    pub(super) fn add_reference(&mut self, ts: u32, opens: bool) {
        self.references.add(ts, opens);
    }

    /// Handles the acknowledgment of an update in R-mode. If it belongs to the newest span of references, the previous ones are
    /// dropped.
    pub(super) fn acknowledge_reference(&mut self, sn: u16, is_of_newest: bool) {
        if is_of_newest {
            self.references.keep_newest();
        }
        if !sn.is_before(u16::from_be_bytes(self.since)) {
            self.bend = 0;
        }
    }

    /// Handles the acknowledgment of a packet in R-mode that has switched the timer off.
    pub(super) fn acknowledge_timer(&mut self) {
        self.timer.acknowledge();
    }

    /// Sends counted changes, from that SN on, until they are acknowledged.
    pub(super) fn repeat(&mut self, sn: u16, repetitions: u8, window: u8) {
        (self.stride, self.unscaled) = (repetitions.max(1), repetitions.max(1));
        self.note_stride_sent();
        self.bend(sn, window);
    }

    /// Drops references before that SN.
    pub(super) fn forget_references(&mut self, sn: u16) {
        self.references.clear();
        self.bend(sn, self.bend);
    }

    /// True if TIME_STRIDE must be sent.
    pub(super) fn needs_time_stride(&self) -> bool {
        self.timer.is_due()
    }

    /// True if a new TS_STRIDE must be sent.
    pub(super) fn needs_stride(&self) -> bool {
        self.stride > 0
    }
}

/// Returns what the decompressor may hold of a timestamp: a phase where a timer approximates it.
fn reference(time: Instant, now: &RtpFields) -> u32 {
    if now.time_stride > 0 { phase(time, scaled(now.ts, now.stride), now.time_stride) } else { now.ts }
}

fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
