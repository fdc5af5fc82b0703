//! RTP timestamps: scaled by TS_STRIDE, or approximated by a timer. RFC 3095, sections 4.5.3 and 4.5.4; RFC 4815,
//! section 4.

use thinair_wire::coder::Reader;
use thinair_wire::lsb::{self, Shift};
use thinair_wire::range::Range;
use thinair_wire::serial::Serial;
use thinair_wire::time::Instant;

use super::TS;
use super::rtp::{RtpExtra, RtpFields};
use super::timer::{TimerLimits, TimestampTimer, ticks};

/// Steps that are looked at before a larger TS_STRIDE is told.
const LOOKS: u8 = 5;

/// Steps that are no multiples of TS_STRIDE, less those that are, at which it is given up: a single one is a jump.
const ROUGH: u8 = 4;

/// So many times as large a stride must fit before it is worth telling.
const WORTH: u32 = 4;

/// Packets in a row of which each is the same multiple of TS_STRIDE ahead, at which that becomes the stride: an octet in
/// each of them is then about a fourth of what TS_STRIDE costs, and what goes on for so long is no exception.
const EVEN: u8 = 4;

/// `TS_SCALED` of a timestamp. `TS_OFFSET` is what is left (RFC 4815, section 4.4).
#[inline]
pub(super) fn scaled(ts: u32, stride: u32) -> u32 {
    ts.checked_div(stride).unwrap_or(0)
}

/// `TS_OFFSET` of a timestamp. A stride of zero scales nothing: the timestamp stays as it is.
#[inline]
fn offset(ts: u32, stride: u32) -> u32 {
    ts.checked_rem(stride).unwrap_or(ts)
}

/// The timestamp of a compressed header; `None` if the header must be discarded.
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

/// The timestamp of a header that is so much `ahead` of a reference, and says none.
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

/// How far the compressor has come with TS_STRIDE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// No packet yet.
    #[default]
    New,
    /// No step yet.
    Begun,
    /// There was a step, from which the first guess was made.
    Guessed,
}

/// What the compressor knows of the timestamps of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timestamps {
    /// What the decompressor may hold as its reference: unscaled, or, with TIME_STRIDE, as phases. In R-mode these are
    /// the timestamps of updates, see `reliable`.
    references: Range<u32, 3>,
    timer: TimestampTimer,
    /// Packets left that must say a new TS_STRIDE; in R-mode, this and what follows is not counted but acknowledged.
    stride: u8,
    /// Packets left that must say TS unscaled, because TS_OFFSET has changed.
    unscaled: u8,
    /// Packets left until every reference is one from which TS can be told by the SN alone.
    bend: u8,
    /// The SN of the first such reference. (Since when the others are said, the context knows.)
    since: [u8; 2],
    /// Greatest common divisor of the steps that were looked at.
    divisor: u32,
    /// How many those were; and twice the steps that were no multiples of TS_STRIDE, less those that were.
    looks: TwoCounts,
    /// Strides in the last step, as far as it was a small multiple, and packets in a row with as many.
    even: TwoCounts,
    stage: Stage,
    /// Packets left that must say P, X and PT: no timestamps, but there is room for it here.
    pub(super) pt: u8,
    /// [`STRIDE_KNOWN`] and [`X_ALONE`].
    flags: u8,
}

/// The decompressor may have been told a TS_STRIDE, for this flow or for one that had the same CID before: IR packets "do not
/// clear the whole context" (RFC 4815, section 6.3).
const STRIDE_KNOWN: u8 = 1;

/// Packets that must say X need not say P and PT.
const X_ALONE: u8 = 2;

/// What a packet must say of its timestamp.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needed {
    /// The value of the slot, scaled or not.
    pub(super) value: u32,
    /// Bits without which the other side could decode another value, if it is sent any.
    pub(super) bits: u32,
    pub(super) scaled: bool,
    /// Without any bits, the SN tells it.
    pub(super) inferable: bool,
}

impl Timestamps {
    /// Notes the timestamp of a packet with SN `sn`, against the packet before: finds TS_STRIDE, which goes into
    /// `now`, and what must be said; acknowledgments of it have SNs from `since` on. Returns whether there is anything to be said from now on but the timestamp itself.
    pub(super) fn note(
        &mut self,
        time: Instant,
        now: &mut RtpFields,
        before: &RtpFields,
        (sn, sn_before, since): (u32, u32, u16),
        (repetitions, window): (u8, u8),
        link: Option<&TimerLimits>,
    ) -> bool {
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
        // TS_STRIDE is 1 from the beginning (RFC 3095, section 5.7.5.2), but there are decompressors that must be told.
        let turned = now.stride != before.stride || !self.is_stride_known();
        if turned {
            self.know_stride();
            self.stride = repetitions.max(1);
        }
        let is_moved = turned || offset(now.ts, now.stride) != offset(before.ts, now.stride);
        if is_moved {
            self.unscaled = repetitions.max(1);
        }
        let ahead = i32::from(sn.wrapping_sub(sn_before) as i16) as u32;
        let linear = before.ts.wrapping_add(ahead.wrapping_mul(now.stride));
        if is_moved || now.ts != linear {
            self.bend(since, window);
        }
        let is_other_kind = self.timer.note(time, now, turned, link, (repetitions, window));
        if is_other_kind {
            self.references.clear();
        }
        is_moved || is_other_kind
    }

    /// True if a timestamp is one TS_STRIDE ahead of the one before, and nothing has to be said or learned.
    #[inline]
    pub(super) fn is_regular(&self, now: &RtpFields, before: &RtpFields) -> bool {
        let is_known = self.stage == Stage::Guessed && self.rough() == 0 && self.is_stride_known();
        let is_quiet = self.stride | self.unscaled | self.bend == 0 && self.timer.is_quiet();
        let is_ahead = before.ts.checked_add(before.stride) == Some(now.ts);
        is_known && is_quiet && is_ahead && now.time_stride == 0
    }

    /// A timestamp was sent that [`is_regular`](Self::is_regular).
    #[inline]
    pub(super) fn go_on(&mut self, now: &RtpFields, window: usize) {
        (self.divisor, self.even) = (now.stride, TwoCounts::default());
        self.references.push(now.ts, window);
    }

    /// The SN tells timestamps from references with this SN on, and not from those before.
    fn bend(&mut self, sn: u16, window: u8) {
        self.bend = window.max(1);
        self.since = sn.to_be_bytes();
    }

    /// Counts steps that are one multiple of TS_STRIDE, and makes it the stride if they go on.
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

    /// Learns from a step, and sets the stride that is to be used from now on.
    fn learn(&mut self, now: &mut RtpFields, step: u32) {
        let fits = step.is_multiple_of(now.stride);
        if self.stage == Stage::Begun {
            // The first step is as good a guess as any.
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

    /// The decompressor may have been told a TS_STRIDE from now on.
    pub(super) fn know_stride(&mut self) {
        self.flags |= STRIDE_KNOWN;
    }

    /// Packets that must say X need not say P and PT.
    pub(super) fn is_x_alone(&self) -> bool {
        self.flags & X_ALONE != 0
    }

    pub(super) fn set_x_alone(&mut self, is_alone: bool) {
        self.flags = if is_alone { self.flags | X_ALONE } else { self.flags & !X_ALONE };
    }

    /// What must be said of the timestamp that was noted.
    pub(super) fn needed(&self, time: Instant, now: &RtpFields, link: Option<&TimerLimits>) -> Needed {
        let by_timer = now.time_stride > 0;
        let inferable = self.bend == 0;
        if self.unscaled > 0 || self.stride > 0 || self.timer.is_settling() && !inferable {
            let is_near = !(by_timer || self.timer.is_settling());
            let bits = if is_near { self.references.needed_bits(now.ts, Shift::Ts) } else { u32::BITS };
            return Needed { value: now.ts, bits, ..Needed::default() };
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

    /// The packet was sent, not in R-mode.
    pub(super) fn commit(
        &mut self,
        time: Instant,
        now: &RtpFields,
        extra: &RtpExtra,
        in_full: bool,
        window: usize,
    ) {
        let reference = if now.time_stride > 0 { TimestampTimer::phase(time, now) } else { now.ts };
        self.references.push(reference, window);
        self.timer.sent(in_full || extra.time_stride);
        self.bend = self.bend.saturating_sub(1);
        if in_full || !extra.scaled {
            self.unscaled = self.unscaled.saturating_sub(1);
        }
        if in_full || extra.stride {
            self.stride = self.stride.saturating_sub(1);
        }
    }

    /// A packet was acknowledged, behind which `newer` were sent.
    pub(super) fn acknowledge(&mut self, sn: u16, newer: usize, window: usize) {
        if !sn.is_before(u16::from_be_bytes(self.since)) {
            self.references.acknowledge(newer, window);
            self.bend = 0;
        }
    }

    /// A packet with the timestamp and TS_STRIDE in full counts twice.
    pub(super) fn count_once_more(&mut self) {
        self.stride = self.stride.saturating_sub(1);
        self.unscaled = self.unscaled.saturating_sub(1);
    }

    /// A packet was acknowledged that has said all there is to say.
    pub(super) fn acknowledge_said(&mut self) {
        (self.stride, self.unscaled, self.pt) = (0, 0, 0);
    }

    /// An update was sent in R-mode. See `Range::add`.
    pub(super) fn add_reference(&mut self, ts: u32, opens: bool) {
        self.references.add(ts, opens);
    }

    /// An update was acknowledged in R-mode; if it is of the newest span of references, those before are none any more.
    pub(super) fn acknowledge_reference(&mut self, sn: u16, is_of_newest: bool) {
        if is_of_newest {
            self.references.keep_newest();
        }
        if !sn.is_before(u16::from_be_bytes(self.since)) {
            self.bend = 0;
        }
    }

    /// A packet was acknowledged in R-mode that has said that there is no timer.
    pub(super) fn acknowledge_timer(&mut self) {
        self.timer.acknowledge();
    }

    /// What was counted is said, from that SN on, until it is acknowledged.
    pub(super) fn repeat(&mut self, sn: u16, (repetitions, window): (u8, u8)) {
        (self.stride, self.unscaled) = (repetitions.max(1), repetitions.max(1));
        self.know_stride();
        self.bend(sn, window);
    }

    /// No packet before that SN is a reference.
    pub(super) fn forget_references(&mut self, sn: u16) {
        self.references.clear();
        self.bend(sn, self.bend);
    }

    /// Whether TIME_STRIDE must be said.
    pub(super) fn says_time_stride(&self) -> bool {
        self.timer.says()
    }

    /// Whether a new TS_STRIDE must be said.
    pub(super) fn says_stride(&self) -> bool {
        self.stride > 0
    }
}

fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
