//! Bounds of a window of reference candidates, in less memory than the window. RFC 3095, section 4.5.2.

use crate::lsb::{self, Shift};
use crate::serial::Serial;

/// Lowest and highest value that the other side may hold as its reference.
///
/// A [`Window`](crate::window::Window) keeps every candidate. A range keeps the bounds of a few spans of them, normally four, and
/// drops a span at a time. It may therefore keep a value that is no longer a candidate, which can only cost bits: of 2 to 4
/// candidates it keeps exactly that many, of 16 it keeps 16 to 20.
#[derive(Clone, Copy, Debug)]
pub struct Range<S, const SPANS: usize = 4> {
    low: [S; SPANS],
    high: [S; SPANS],
    /// Index of the span that grows, and in the low half the number of spans with values.
    place: u8,
    /// Values in the span that grows. The highest bit is set if all spans have values and all values are equal.
    filled: u8,
}

/// The highest bit of `filled`: all values are equal.
const SAME: u8 = 0x80;

impl<S: Serial, const SPANS: usize> Default for Range<S, SPANS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Serial, const SPANS: usize> Range<S, SPANS> {
    /// Creates a range without candidates.
    pub fn new() -> Self {
        let zero = S::default();
        Self { low: [zero; SPANS], high: [zero; SPANS], place: 0, filled: 0 }
    }

    /// Index of the span that grows.
    #[inline]
    fn newest(&self) -> usize {
        usize::from(self.place >> 4) % SPANS
    }

    /// Number of spans with values.
    #[inline]
    fn used(&self) -> usize {
        usize::from(self.place & 0xF)
    }

    fn set(&mut self, newest: usize, used: usize) {
        self.place = (newest << 4 | used) as u8;
    }

    #[inline]
    fn is_same(&self) -> bool {
        self.filled & SAME != 0
    }

    /// True if there is no candidate: nothing was sent yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.place == 0
    }

    /// Removes every candidate.
    #[inline]
    pub fn clear(&mut self) {
        self.place = 0;
        self.filled = 0;
    }

    /// Adds a value that was sent with a CRC. At least the last `width` values, up to 64, are kept.
    #[inline(always)]
    pub fn push(&mut self, value: S, width: usize) {
        if self.is_same() && value == self.low[self.newest()] {
            return;
        }
        self.insert(value, width);
    }

    #[inline(never)]
    fn insert(&mut self, value: S, width: usize) {
        let at = self.newest();
        let goes_on = value == self.high[at].plus(1) && value.since(self.low[at]) < 1 << (S::BITS - 1);
        if goes_on && !self.is_empty() && usize::from(self.filled) < span(width, SPANS) {
            self.high[at] = value;
            self.filled += 1;
            return;
        }
        self.insert_all(value, value, 1, width);
        let at = (self.newest() + 1) % SPANS;
        // The oldest span normally shows that they are not equal.
        if self.low[at] != value || self.used() < SPANS {
            return;
        }
        if self.low.iter().chain(&self.high).all(|bound| *bound == value) {
            self.filled |= SAME;
        }
    }

    /// Makes a value the only candidate.
    pub fn set_only(&mut self, value: S) {
        *self = Self { low: [value; SPANS], high: [value; SPANS], place: SPANS as u8, filled: SAME | 1 };
    }

    /// Adds `count` values from `low` to `high`, which were sent in sequence.
    fn insert_all(&mut self, low: S, high: S, count: u8, width: usize) {
        self.filled &= !SAME;
        let mut at = self.newest();
        if self.is_empty() || usize::from(self.filled) >= span(width, SPANS) {
            at = (at + 1) % SPANS;
            self.set(at, (self.used() + 1).min(SPANS));
            self.filled = 0;
            self.low[at] = low;
            self.high[at] = high;
        } else {
            self.widen(at, low);
            self.widen(at, high);
        }
        self.filled = self.filled.saturating_add(count).min(SAME - 1);
    }

    /// Extends a span to a value. Bounds of half the space or more do not change, and stand for any value.
    fn widen(&mut self, at: usize, value: S) {
        let half = 1 << (S::BITS - 1);
        let (low, high) = (self.low[at], self.high[at]);
        if high.since(low) >= half {
            return;
        }
        if value.since(low) < half {
            if value.since(low) > high.since(low) {
                self.high[at] = value;
            }
        } else if high.since(value) < half {
            self.low[at] = value;
        } else {
            self.low[at] = high.plus(1);
        }
    }

    /// Adds a value that the other side hardly takes as its reference, to the newest span: no other one is dropped for it.
    pub fn include(&mut self, value: S) {
        if self.is_empty() {
            return self.push(value, 1);
        }
        self.filled &= !SAME;
        self.widen(self.newest(), value);
    }

    /// Adds a value to the newest span, which grows without limit; opens another span if `opens`. The other side may hold any
    /// value of the spans before until [`keep_newest`](Self::keep_newest) is called, so they are merged into one. R-mode, RFC
    /// 3095, section 5.5.1.2.
    pub fn add(&mut self, value: S, opens: bool) {
        self.filled &= !SAME;
        if self.is_empty() || opens {
            let (before, used) = (self.merged(), 1 + self.used().min(1));
            *self = Self { low: [value; SPANS], high: [value; SPANS], ..Self::new() };
            self.set(0, used);
            (self.low[SPANS - 1], self.high[SPANS - 1]) = before;
        } else {
            self.widen(self.newest(), value);
        }
        // This span is full for every later width.
        self.filled = SAME - 1;
    }

    /// True if a value is the only candidate, and all spans hold it.
    #[inline]
    pub fn holds_only(&self, value: S) -> bool {
        self.is_same() && value == self.low[self.newest()]
    }

    /// Lowest and highest candidate; `None` if there is none, or they span half the space or more.
    #[inline]
    pub fn bounds(&self) -> Option<(S, S)> {
        if self.is_same() {
            return Some((self.low[self.newest()], self.low[self.newest()]));
        }
        if self.is_empty() {
            return None;
        }
        // Signed distances from one of the values. Their order does not matter, so where every span has values this is a loop
        // over two arrays.
        let origin = self.low[self.newest()];
        let beside = |value: S| (value.since(origin) << (32 - S::BITS)) as i32 >> (32 - S::BITS);
        let (mut low, mut high, mut is_wide) = (0, 0, false);
        let mut look = |first: S, last: S| {
            let (first, last) = (beside(first), beside(last));
            is_wide |= last < first;
            (low, high) = (low.min(first), high.max(last));
        };
        if self.used() == SPANS {
            for (first, last) in self.low.iter().zip(&self.high) {
                look(*first, *last);
            }
        } else {
            self.spans().for_each(|(first, last)| look(first, last));
        }
        let span = high.wrapping_sub(low) as u32;
        (!is_wide && span < 1 << (S::BITS - 1)).then(|| (origin.plus(low as u32), origin.plus(high as u32)))
    }

    /// True if there are candidates, and a value is less than `distance` ahead of each: of the lowest one as of the highest one.
    #[inline(always)]
    pub fn is_within(&self, value: S, distance: u32) -> bool {
        let mut is_within = !self.is_empty();
        for (at, (low, high)) in self.low.iter().zip(&self.high).enumerate() {
            let is_empty = (self.newest() + SPANS - at) % SPANS >= self.used();
            // The bounds of a span that stands for any value are in the other order.
            let (of_low, of_high) = (value.since(*low), value.since(*high));
            is_within &= is_empty || of_high <= of_low && of_low < distance;
        }
        is_within
    }

    /// Returns the bounds of all spans together.
    fn merged(&self) -> (S, S) {
        let (mut all, at) = (*self, self.newest());
        for (low, high) in self.spans().skip(1) {
            all.widen(at, low);
            // Any value may lie between these bounds.
            if high.since(low) >= 1 << (S::BITS - 1) {
                return (low, high);
            }
            all.widen(at, high);
        }
        (all.low[at], all.high[at])
    }

    /// Keeps the newest span alone: one of its values was acknowledged, so that older values are no longer candidates.
    pub fn keep_newest(&mut self) {
        self.filled &= !SAME;
        self.set(self.newest(), self.used().min(1));
    }

    /// Drops values older than the newest `newer + 1`, one of which was acknowledged.
    pub fn acknowledge(&mut self, newer: usize, width: usize) {
        if self.is_same() || self.is_empty() {
            return;
        }
        let behind = (newer + 1).saturating_sub(usize::from(self.filled)).div_ceil(span(width, SPANS));
        self.set(self.newest(), self.used().min(1 + behind));
    }

    /// Lowest and highest candidate of each span. Bounds of half the space or more stand for any value.
    pub fn spans(&self) -> impl Iterator<Item = (S, S)> + '_ {
        (0..self.used()).map(|back| {
            let at = (self.newest() + SPANS - back) % SPANS;
            (self.low[at], self.high[at])
        })
    }

    /// Number of bits of `value` that are enough for every candidate; the whole width if there is no candidate.
    #[inline]
    pub fn needed_bits(&self, value: S, shift: Shift) -> u32 {
        if self.is_same() {
            return lsb::needed_bits(value, self.low[self.newest()], shift);
        }
        self.needed_bits_of_all(value, shift)
    }

    fn needed_bits_of_all(&self, value: S, shift: Shift) -> u32 {
        let mut needed = if self.is_empty() { S::BITS } else { 0 };
        for (low, high) in self.spans() {
            needed = needed.max(lsb::needed_bits(value, low, shift));
            if high != low {
                needed = needed.max(lsb::needed_bits(value, high, shift));
                // Bounds of half the space or more stand for any value.
                if high.since(low) >= 1 << (S::BITS - 1) {
                    needed = S::BITS;
                }
            }
        }
        needed
    }
}

/// Number of spans of the [`Range`] in a [`SequenceRange`].
const SPANS: usize = 4;

/// `run` of a [`SequenceRange`] whose next value opens a span. It is handled like a run of two, which hardly needs more bits.
const OPENS: u8 = 2;

/// Number of values of a span. The newest span may hold a single value, so that the older ones must cover the rest of `width`.
fn span(width: usize, spans: usize) -> usize {
    width.saturating_sub(1).div_ceil(spans - 1).max(1)
}

/// A [`Range`] of sequence numbers: values that normally increase by one.
///
/// As long as they do, the candidates are exactly the last ones that were sent.
#[derive(Clone, Copy, Debug)]
pub struct SequenceRange<S> {
    newest: S,
    /// Number of newest values that increase by one.
    run: u8,
    /// Values sent before the run.
    before: Range<S, SPANS>,
    kind: Before,
}

/// Values that the spans in `before` of a [`SequenceRange`] stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// All values between the bounds of a span.
    Exact,
    /// Perhaps fewer.
    Sparse,
    /// As `Sparse`, and the newest value, too, behind which another one was [included](SequenceRange::include).
    Late,
}

impl<S: Serial> Default for SequenceRange<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Serial> SequenceRange<S> {
    /// Creates a range without candidates.
    pub fn new() -> Self {
        Self { newest: S::default(), run: 0, before: Range::new(), kind: Before::Exact }
    }

    /// True if there is no candidate: nothing was sent yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.run == 0
    }

    /// Adds a value that was sent with a CRC. At least the last `width` values are kept.
    #[inline]
    pub fn push(&mut self, value: S, width: usize) {
        let is_next = self.run > 0 && value == self.newest.plus(1);
        if is_next && usize::from(self.run) == width && self.is_run() {
            self.newest = value;
        } else {
            self.push_any(value, width, is_next);
        }
    }

    /// Adds a value that is sent behind the newest one, and is hardly a reference of the other side, which has the newest one. It is a
    /// candidate as long as one that is pushed, and the newest one as long as if it were pushed next.
    pub fn include(&mut self, value: S, width: usize) {
        if self.run == 0 {
            return;
        }
        if self.kind != Before::Late {
            self.before.insert_all(self.oldest(), self.newest, self.run, width);
            (self.run, self.kind) = (1, Before::Late);
        }
        self.before.include(value);
    }

    /// True if all candidates are in the newest run.
    #[inline]
    fn is_run(&self) -> bool {
        self.before.is_empty() && self.kind == Before::Exact
    }

    #[inline(never)]
    fn push_any(&mut self, value: S, width: usize, is_next: bool) {
        let is_late = self.kind == Before::Late;
        if is_late {
            self.kind = Before::Sparse;
        }
        if is_next {
            // `before` has the value in front of it if that is followed by a late one.
            self.run = if is_late { 1 } else { (usize::from(self.run) + 1).min(width.max(1)) as u8 };
            if usize::from(self.run) >= width {
                self.before.clear();
                self.kind = Before::Exact;
            } else if !self.before.is_empty() {
                self.trim(width);
            }
        } else {
            if self.run > 0 && !is_late {
                self.before.insert_all(self.oldest(), self.newest, self.run, width);
                // Each run has a span of its own if there are as many spans as values.
                if span(width, SPANS) > 1 {
                    self.kind = Before::Sparse;
                }
            }
            self.run = 1;
            self.trim(width);
        }
        self.newest = value;
    }

    /// Drops the oldest values before the newest run, so that `width` candidates stay.
    fn trim(&mut self, width: usize) {
        if self.kind != Before::Exact {
            return;
        }
        let mut left = width.saturating_sub(usize::from(self.run)) as u32;
        let (newest, mut used) = (self.before.newest(), 0);
        while left > 0 && used < self.before.used() {
            let at = (newest + SPANS - used) % SPANS;
            let high = self.before.high[at];
            let values = (high.since(self.before.low[at]) + 1).min(left);
            self.before.low[at] = high.plus((values - 1).wrapping_neg());
            left -= values;
            used += 1;
        }
        match used {
            0 => self.before.clear(),
            _ => self.before.set(newest, used),
        }
    }

    /// Drops the values sent before the newest one that equals `value`, which was acknowledged. Returns the largest number of
    /// values sent after it; `None` if it is unknown.
    pub fn acknowledge(&mut self, value: S) -> Option<usize> {
        let newer = self.newest.since(value);
        if newer >= u32::from(self.run) {
            return None;
        }
        self.run = newer as u8 + 1;
        self.before.clear();
        if self.kind == Before::Late {
            self.kind = Before::Sparse;
        }
        Some(newer as usize)
    }

    /// Keeps all candidates until one is acknowledged: R-mode, RFC 3095, section 5.5.1.2. From then on values are
    /// [added](Self::add) and [confirmed](Self::confirm).
    pub fn hold(&mut self) {
        if self.run > 0 {
            self.before.add(self.oldest(), true);
            self.before.add(self.newest, false);
            self.run = OPENS;
            self.kind = Before::Sparse;
        }
    }

    /// Removes every candidate.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Adds a value that the other side may hold until another one is confirmed. Returns true if it opens a span of values, one
    /// of which has to be confirmed.
    pub fn add(&mut self, value: S) -> bool {
        // A confirmed value was sent since, so the first one is newer than all before it.
        let is_newest = self.bounds().is_none_or(|(_, newest)| newest.is_before(value));
        let opens = self.run != 1 && is_newest;
        self.before.add(value, opens);
        self.kind = Before::Sparse;
        if opens {
            (self.newest, self.run) = (value, 1);
        }
        opens
    }

    /// Handles the acknowledgment of a value. Returns true if the values before the newest span are no longer candidates; `None`
    /// if no such value was sent.
    pub fn confirm(&mut self, value: S) -> Option<bool> {
        let (oldest, newest) = self.bounds()?;
        if value.is_before(oldest) || newest.is_before(value) {
            return None;
        }
        let confirmed = self.run == 1 && !value.is_before(self.newest);
        if confirmed {
            self.before.keep_newest();
            self.run = OPENS;
        }
        Some(confirmed)
    }

    /// Oldest and newest value that was added.
    pub fn bounds(&self) -> Option<(S, S)> {
        let newest = self.before.spans().next()?.1;
        Some((self.before.spans().last()?.0, newest))
    }

    /// Number of bits of `value` that are enough for every candidate; the whole width if there is no candidate.
    #[inline]
    pub fn needed_bits(&self, value: S, shift: Shift) -> u32 {
        if self.run == 0 {
            return S::BITS;
        }
        let mut needed = lsb::needed_bits(value, self.oldest(), shift);
        if self.run > 1 {
            needed = needed.max(lsb::needed_bits(value, self.newest, shift));
        }
        if !self.before.is_empty() {
            needed = needed.max(self.before.needed_bits_of_all(value, shift));
        }
        needed
    }

    /// True if `k` bits of `value` are enough for every candidate. More bits than [`needed_bits`](Self::needed_bits) may not be:
    /// with [`Shift::Sn`] an interval of 5 bits begins later than one of 4.
    #[inline]
    pub fn fits(&self, value: S, k: u32, shift: Shift) -> bool {
        self.run > 0
            && lsb::fits(value, self.oldest(), k, shift)
            && lsb::fits(value, self.newest, k, shift)
            && (self.before.is_empty() || self.fits_before(value, k, shift))
    }

    /// True if `k` bits of `value` are enough for every candidate before the newest run.
    #[inline(never)]
    fn fits_before(&self, value: S, k: u32, shift: Shift) -> bool {
        self.before.spans().all(|(low, high)| {
            high.since(low) < 1 << (S::BITS - 1)
                && lsb::fits(value, low, k, shift)
                && lsb::fits(value, high, k, shift)
        })
    }

    #[inline]
    fn oldest(&self) -> S {
        self.newest.plus(u32::from(self.run).wrapping_sub(1).wrapping_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn of_four_candidates_exactly_four_are_kept() {
        let mut range = Range::<u16>::new();
        assert_eq!(range.needed_bits(7, Shift::Zero), 16);
        for value in [100_u16, 7, 7, 7, 7] {
            range.push(value, 4);
        }
        assert_eq!(range.needed_bits(7, Shift::Zero), 0);
        range.push(8, 4);
        assert_eq!(range.needed_bits(8, Shift::Zero), 1);
        range.acknowledge(0, 4);
        assert_eq!(range.needed_bits(8, Shift::Zero), 0);
    }

    #[test]
    fn one_value_can_be_made_the_only_candidate() {
        let mut range = Range::<u16>::new();
        (1..9_u16).for_each(|value| range.push(value * 100, 4));
        range.set_only(7);
        assert!(range.holds_only(7) && !range.holds_only(800));
        assert_eq!([range.needed_bits(7, Shift::Zero), range.needed_bits(8, Shift::Zero)], [0, 1]);
        range.push(8, 4);
        assert!(!range.holds_only(8) && range.needed_bits(8, Shift::Zero) > 0);
    }

    #[test]
    fn a_counter_has_exactly_the_last_values_as_candidates() {
        let mut count = SequenceRange::new();
        for sn in 100_u16..140 {
            count.push(sn, 16);
        }
        assert_eq!(count.needed_bits(140, Shift::MinusOne), 4);
        assert_eq!(count.acknowledge(139), Some(0));
        assert_eq!(count.needed_bits(140, Shift::MinusOne), 0);
        assert_eq!(count.acknowledge(100), None);
    }

    #[test]
    fn of_four_candidates_of_a_counter_with_gaps_exactly_four_are_kept() {
        let mut count = SequenceRange::new();
        for sn in [240_u16, 241, 242, 243, 246, 247, 249, 250, 251, 254] {
            count.push(sn, 4);
        }
        // 249 is the oldest: from it 4 bits reach 263, and from 247 they would not.
        assert_eq!(count.needed_bits(263, Shift::Sn), 4);
        assert_eq!(count.needed_bits(264, Shift::Sn), 5);
    }

    proptest! {
        /// Values that are late are candidates like others, and the newest one remains one behind any number of them.
        #[test]
        fn late_values_and_the_newest_one_are_covered(
            steps in proptest::collection::vec(prop_oneof![4 => Just(1_i32), 1 => 2_i32..9, 2 => -8_i32..=0], 1..60),
            width in 1_usize..=16,
            value: u16,
        ) {
            let (mut count, mut offsets) = (SequenceRange::new(), Range::<u16>::new());
            let (mut sent, mut newest) = (Vec::new(), 65_500_u16);
            for (i, &step) in steps.iter().enumerate() {
                let sn = newest.wrapping_add(step as u16);
                if step > 0 || i == 0 {
                    newest = sn;
                    count.push(sn, width);
                    offsets.push(sn, width);
                } else {
                    count.include(sn, width);
                    offsets.include(sn);
                }
                sent.push(sn);
            }
            let last = sent.iter().rev().take(width).chain([&newest]);
            for (&reference, value) in last.flat_map(|sn| [(sn, value), (sn, newest.wrapping_add(1))]) {
                for distance in [1, 8, 100, 1 << 15] {
                    let bounds = offsets.bounds();
                    let is_within = bounds.is_some_and(|(low, high)| value.since(low) < distance && value.since(high) < distance);
                    prop_assert_eq!(offsets.is_within(value, distance), is_within, "{} within {} of {:?}", value, distance, bounds);
                }
                for (k, shift) in [(count.needed_bits(value, Shift::Sn), Shift::Sn), (offsets.needed_bits(value, Shift::Zero), Shift::Zero)] {
                    let bits = u32::from(value) & ((1_u64 << k) - 1) as u32;
                    prop_assert_eq!(lsb::decode(bits, k, reference, shift), value, "{} from {}", k, reference);
                }
            }
        }

        /// The bits that a sequence range needs are enough for each of the last `width` values.
        #[test]
        fn every_candidate_of_a_counter_is_covered(
            steps in proptest::collection::vec(prop_oneof![6 => Just(1_u16), 1 => 0_u16..4, 1 => any::<u16>()], 1..80),
            width in 1_usize..=16,
            value: u16,
            acked in 0_usize..80,
        ) {
            let mut count = SequenceRange::new();
            let mut candidates = Vec::new();
            let mut sn = 65_500_u16;
            for (i, &step) in steps.iter().enumerate() {
                sn = sn.wrapping_add(step);
                count.push(sn, width);
                candidates.push(sn);
                candidates.drain(..candidates.len().saturating_sub(width));
                if i == acked {
                    let newer = candidates.len() / 2;
                    let value = candidates[candidates.len() - 1 - newer];
                    if let Some(left) = count.acknowledge(value) {
                        let at = candidates.iter().rposition(|other| *other == value).unwrap_or(0);
                        prop_assert_eq!(left, candidates.len() - 1 - at);
                        candidates.drain(..at);
                    }
                }
            }
            for (shift, value) in [Shift::MinusOne, Shift::Sn].map(|s| [(s, value), (s, sn.wrapping_add(1))]).concat() {
                let k = count.needed_bits(value, shift);
                for &reference in &candidates {
                    let bits = u32::from(value) & ((1_u64 << k) - 1) as u32;
                    prop_assert_eq!(lsb::decode(bits, k, reference, shift), value, "{} from {}", k, reference);
                }
            }
        }
    }

    proptest! {
        /// In R-mode every value that was added since the span before the newest began is a candidate.
        #[test]
        fn what_was_not_acknowledged_stays_a_candidate(
            first in proptest::collection::vec(any::<u16>(), 0..6),
            steps in proptest::collection::vec(
                (prop_oneof![any::<u16>(), 0_u16..40, 65_500_u16..=65_535], 0_u8..6), 1..60),
            value: u16,
        ) {
            let mut range: Range<u16> = Range::new();
            for v in &first {
                range.push(*v, 4);
            }
            let mut old = first[first.len().saturating_sub(4)..].to_vec();
            let (mut new, mut opens) = (Vec::new(), true);
            for (v, what) in steps {
                range.add(v, opens);
                new.push(v);
                opens = what == 0;
                if opens {
                    range.keep_newest();
                    old = core::mem::take(&mut new);
                }
                for shift in [Shift::Zero, Shift::MinusOne, Shift::Ts, Shift::Sn] {
                    let k = range.needed_bits(value, shift);
                    for &reference in old.iter().chain(&new) {
                        let bits = u32::from(value) & ((1_u64 << k) - 1) as u32;
                        prop_assert_eq!(lsb::decode(bits, k, reference, shift), value, "{} from {}", k, reference);
                    }
                }
            }
        }

        /// In R-mode every unconfirmed value of a sequence range is a candidate; an acknowledgment names the value.
        #[test]
        fn what_was_not_confirmed_stays_a_candidate_of_a_counter(
            steps in proptest::collection::vec((prop_oneof![6 => 1_u16..4, 1 => 65_530_u16..=65_535], 0_usize..12), 1..200),
        ) {
            let mut count: SequenceRange<u16> = SequenceRange::new();
            let mut sn = 65_400_u16;
            for _ in 0..6 {
                sn = sn.wrapping_add(1);
                count.push(sn, 4);
            }
            let mut candidates: Vec<u16> = (0..4).map(|back: u16| sn.wrapping_sub(3 - back)).collect();
            count.hold();
            for (step, acked) in steps {
                sn = sn.wrapping_add(step);
                count.add(sn);
                candidates.push(sn);
                if acked < candidates.len() && acked < 6 {
                    let at = candidates.len() - 1 - acked;
                    if count.confirm(candidates[at]) == Some(true) {
                        let first = candidates.iter().rposition(|other| *other == candidates[at]).unwrap_or(0);
                        candidates.drain(..first.min(at));
                    }
                }
                let needed = count.needed_bits(sn.wrapping_add(1), Shift::MinusOne);
                for k in 0..16 {
                    for (shift, value, fits) in [
                        (Shift::MinusOne, sn.wrapping_add(1), k >= needed),
                        (Shift::Sn, sn.wrapping_add(2), count.fits(sn.wrapping_add(2), k, Shift::Sn)),
                    ] {
                        let bits = u32::from(value) & ((1_u32 << k) - 1);
                        for &reference in candidates.iter().filter(|_| fits) {
                            prop_assert_eq!(lsb::decode(bits, k, reference, shift), value, "{} from {}", k, reference);
                        }
                    }
                }
            }
        }

        /// The bits that a range needs are enough for each of the last `width` values.
        #[test]
        fn every_candidate_is_covered(
            values in proptest::collection::vec(prop_oneof![any::<u16>(), 0_u16..40, 65_500_u16..=65_535], 1..60),
            width in 1_usize..=16,
            value: u16,
            newer in proptest::option::of(0_usize..6),
        ) {
            let mut range = Range::<u16>::new();
            let mut candidates = Vec::new();
            for (i, &v) in values.iter().enumerate() {
                range.push(v, width);
                candidates.push(v);
                if let (true, Some(newer)) = (i == values.len() / 2, newer) {
                    range.acknowledge(newer, width);
                    candidates.drain(..candidates.len().saturating_sub(newer + 1));
                }
                candidates.drain(..candidates.len().saturating_sub(width));
            }
            for shift in [Shift::Zero, Shift::MinusOne, Shift::Ts, Shift::Sn] {
                let k = range.needed_bits(value, shift);
                for &reference in &candidates {
                    let bits = u32::from(value) & ((1_u64 << k) - 1) as u32;
                    prop_assert_eq!(lsb::decode(bits, k, reference, shift), value, "{} from {}", k, reference);
                }
            }
            if let Some((low, high)) = range.bounds() {
                for &reference in &candidates {
                    prop_assert!(reference.since(low) <= high.since(low), "{} {} {}", low, reference, high);
                }
            }
        }
    }
}
