//! Search for the sequence number, acknowledgment number and timestamps of a packet whose bits stand for several values: after a
//! loss, and in late packets. The TCP checksum, which is carried unchanged, covers them all.
//!
//! One's-complement sums are numbers modulo 2^16 - 1, in which a field of 32 bits counts by its value. Of all combinations of
//! turns that the pace of the flow allows, only few are therefore rebuilt: those with a correct sum.

use super::decompress::{ReadPacket, TcpReceiverContext};
use super::formats::has_crc7;
use super::growth::{FARTHEST, NUMBERS, distance, numbers, octets};
use super::options::index;
use super::state::TcpState;
use crate::flow::arrival::Passed;
use crate::work;

/// Number of combinations that are possible. One in 2^19 passes a checksum and a CRC of 3 bits by chance, one in 2^23 a CRC of 7 bits: then
/// the next two limits do not hold.
const COMBINATIONS: i64 = 8_192;

/// In a flow that pauses, in which the right combination is less surely among those that are tried.
const FEWER_COMBINATIONS: i64 = 2_048;

/// If a number that grows is not sent, and may have grown in lost packets: the right combination is then not among them.
const FEWEST_COMBINATIONS: i64 = 16;

/// Number of packets in which a compressor repeats a number that has changed.
const REPEATED: u32 = 4;

/// Number of steps of a search: one number follows from the others, so that a step decides on many combinations. Without timestamps
/// there are at most as many as the square root of the combinations; with them, only after long losses in both directions more.
pub(super) const STEPS: u32 = 768;

/// Modulus of one's-complement sums.
const MODULUS: i64 = 0xFFFF;

/// Number of combinations with a correct sum that are kept.
const SOLUTIONS: usize = 8;

/// Combinations of turns with which the checksum is correct.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Solutions {
    pub(super) turns: [[i32; NUMBERS]; SOLUTIONS],
    pub(super) count: usize,
}

impl Solutions {
    /// The numbers as read, without additional turns.
    pub(super) const AS_READ: Self = Self { turns: [[0; NUMBERS]; SOLUTIONS], count: 1 };

    pub(super) fn iter(&self) -> impl Iterator<Item = &[i32; NUMBERS]> {
        self.turns.iter().take(self.count)
    }
}

impl ReadPacket<'_> {
    /// Returns the turns of the numbers that were read in part, by their bits.
    pub(super) fn turns_of(&self, last: &TcpState) -> [u32; NUMBERS] {
        let [seq, seq_scaled, ack, ack_scaled, value, echo] = self.number_bits;
        let turn = |bits: u8, scale: u32| if bits == 0 { 0 } else { scale << bits };
        let seq = turn(seq, 1) | turn(seq_scaled, self.payload.len() as u32);
        let ack = turn(ack, 1) | turn(ack_scaled, u32::from(last.ack_stride));
        // SACK blocks are encoded relative to the acknowledgment number.
        let has_sack = self.next.options.structure().contains(&index::SACK);
        [seq, if has_sack { 0 } else { ack }, turn(value, 1), turn(echo, 1)]
    }
}

impl TcpReceiverContext {
    /// Returns the turns of the numbers with which the TCP checksum of a packet is correct, within the limits by carrier, clock
    /// and previous numbers. `off` is the sum of the packet with the numbers as read. `None` if there are too many.
    pub(super) fn solve(
        &self,
        found: &ReadPacket<'_>,
        last: &TcpState,
        passed: Passed,
        off: u16,
        steps: &mut Steps,
    ) -> Option<Solutions> {
        if off.is_multiple_of(0xFFFF) {
            return Some(Solutions::AS_READ);
        }
        let is_strong = has_crc7(found.format);
        let limits = if is_strong { passed.within(FARTHEST) } else { passed };
        let mut ranges = [(0, 0); NUMBERS];
        let (read, kept) = (numbers(&found.next), numbers(last));
        for (i, range) in ranges.iter_mut().enumerate() {
            *range = self.range(found.turns[i], distance(read[i], kept[i]), i, last, limits);
        }
        let turn = found.turns.map(i64::from);
        let has_stamps = found.next.options.structure().contains(&index::TIMESTAMP);
        // If both ends have clocks, the distance of the timestamps stays about constant.
        let is_tied = has_stamps && turn[2] > 0 && turn[3] > 0;
        let tie = is_tied.then(|| Tie {
            ahead: distance(read[3], kept[3]) - distance(read[2], kept[2]),
            slack: 64 + 4 * i64::from(self.drift),
        });
        let may_be_stale = |number: usize| {
            turn[number] == 0 && read[number] == kept[number] && self.grown(number, last).0 > 0
        };
        let left = if is_strong {
            COMBINATIONS
        } else if passed.most > REPEATED && (may_be_stale(0) || may_be_stale(1)) {
            FEWEST_COMBINATIONS
        } else if self.has_paused() {
            FEWER_COMBINATIONS
        } else {
            COMBINATIONS
        };
        let mut search = Search { off: off.into(), read, turn, left, solutions: Solutions::default(), steps };
        if turn[2] == 0 && turn[3] == 0 {
            // One of the two follows from the other.
            let [seq, ack, ..] = ranges;
            let (outer, inner) = if len(seq) < len(ack) { (0, 1) } else { (1, 0) };
            for n in ranges[outer].0..=ranges[outer].1 {
                let mut turns = [0; NUMBERS];
                turns[outer] = n;
                search.find(turns, inner, None, ranges[inner])?;
            }
            return Some(search.solutions);
        }
        let growth = self.growth(last);
        let (ahead, new) = (distance(read[2], kept[2]), octets(&found.next, last));
        let limits = growth.octets(ranges[2], turn[2], ahead);
        let (outer, inner) = if len(ranges[0]) < len(ranges[1]) { (0, 1) } else { (1, 0) };
        for n in ranges[outer].0..=ranges[outer].1 {
            let so_far = new + turn[outer] * n;
            let (near, still) = within(ranges[inner], turn[inner], so_far, limits);
            for m in (near.0..=near.1).chain(still) {
                if !search.steps.take() {
                    return None;
                }
                let mut turns = [0; NUMBERS];
                (turns[outer], turns[inner]) = (n, m);
                let values = growth.values(ranges[2], turn[2], ahead, so_far + turn[inner] * m);
                search.find_stamps(turns, values, ranges[3], tie)?;
            }
        }
        Some(search.solutions)
    }
}

/// Returns the turns with which a number of octets is within `limits`, and those with which it is zero, if that is not.
fn within(all: (i64, i64), turn: i64, octets: i64, limits: (i64, i64)) -> ((i64, i64), Option<i64>) {
    if turn == 0 {
        return (all, None);
    }
    let near = (-(octets - limits.0).div_euclid(turn), (limits.1 - octets).div_euclid(turn));
    let near = (near.0.max(all.0), near.1.min(all.1));
    let zero = -octets / turn;
    let is_apart =
        zero * turn == -octets && (all.0..=all.1).contains(&zero) && !(near.0..=near.1).contains(&zero);
    (near, is_apart.then_some(zero))
}

/// Limit of the distance of the two timestamps: TSecr is `ahead` by about that much, as far as its bits were read.
#[derive(Clone, Copy)]
struct Tie {
    ahead: i64,
    slack: i64,
}

impl Tie {
    /// Returns the turns of a timestamp with a distance of at most `slack` to one that has moved by `moved`.
    fn near(&self, moved: i64, turn: i64) -> (i64, i64) {
        let shift = turn.trailing_zeros();
        (-((self.slack - moved) >> shift), (moved + self.slack) >> shift)
    }
}

/// Search for the turns with which the sum of a packet is right.
struct Search<'s> {
    /// Sum of the packet with the numbers as read.
    off: i64,
    read: [u32; NUMBERS],
    turn: [i64; NUMBERS],
    /// Number of combinations that are still possible.
    left: i64,
    solutions: Solutions,
    steps: &'s mut Steps,
}

impl Search<'_> {
    /// Finds the turns of both timestamps, beside those of sequence and acknowledgment number. `None` if there are too many.
    fn find_stamps(
        &mut self,
        turns: [i64; NUMBERS],
        values: (i64, i64),
        echoes: (i64, i64),
        tie: Option<Tie>,
    ) -> Option<()> {
        let [seq, ack, ..] = turns;
        let [.., by_value, by_echo] = self.turn;
        let both = |a: (i64, i64), b: (i64, i64)| (a.0.max(b.0), a.1.min(b.1));
        match tie {
            None if by_echo == 0 => self.find(turns, 2, None, values)?,
            None => {
                for value in values.0..=values.1 {
                    self.find([seq, ack, value, 0], 3, None, echoes)?;
                }
            }
            // Both move by as many turns, except for some.
            Some(tie) if by_value == by_echo => {
                let apart = tie.near(-tie.ahead, by_echo);
                for apart in apart.0..=apart.1 {
                    let values = both(values, (echoes.0 - apart, echoes.1 - apart));
                    self.find([seq, ack, 0, apart], 2, Some(3), values)?;
                }
            }
            Some(tie) if by_value < by_echo => {
                let moved = |value: i64| value * by_value - tie.ahead;
                let (low, high) =
                    (tie.near(moved(values.0), by_echo).0, tie.near(moved(values.1), by_echo).1);
                let echoes = both(echoes, (low, high));
                for echo in echoes.0..=echoes.1 {
                    let near = tie.near(echo * by_echo + tie.ahead, by_value);
                    self.find([seq, ack, 0, echo], 2, None, both(values, near))?;
                }
            }
            Some(tie) => {
                for value in values.0..=values.1 {
                    let near = tie.near(value * by_value - tie.ahead, by_echo);
                    self.find([seq, ack, value, 0], 3, None, both(echoes, near))?;
                }
            }
        }
        Some(())
    }

    /// Finds the turns of a number within a range, beside those of the others, of which one may move `with` it. `None` if there
    /// are too many combinations, steps or solutions.
    fn find(
        &mut self,
        turns: [i64; NUMBERS],
        number: usize,
        with: Option<usize>,
        range: (i64, i64),
    ) -> Option<()> {
        self.left -= 1 + len(range);
        if self.left < 0 || !self.steps.take() {
            return None;
        }
        let at = |n: i64| {
            let mut turns = turns;
            turns[number] += n;
            if let Some(with) = with {
                turns[with] += n;
            }
            turns
        };
        let (low, high) = range;
        if low > high {
            return Some(());
        }
        let step = self.turn[number] + with.map_or(0, |with| self.turn[with]);
        if high - low < FEW {
            return (low..=high).try_for_each(|n| self.add(at(n)));
        }
        let (divisor, inverse) = inverse(step);
        let modulus = MODULUS / divisor;
        // Each time that a number wraps around, the sum is one less: 2^32 is 1.
        let (read, turn) = (self.read.map(i64::from), self.turn);
        let wraps =
            |n: i64| at(n).iter().enumerate().map(|(i, n)| (read[i] + n * turn[i]) >> 32).sum::<i64>();
        let base = self.off + turns.iter().zip(turn).map(|(n, turn)| n * turn).sum::<i64>();
        let (first, last) = (wraps(low), wraps(high));
        for wrapped in first..=last {
            let sum = (wrapped - base).rem_euclid(MODULUS);
            let root = sum / divisor * inverse % modulus;
            let mut n = low + (root - low).rem_euclid(modulus);
            while sum % divisor == 0 && n <= high {
                // More than one root takes more steps.
                if !self.steps.take() {
                    return None;
                }
                if wraps(n) == wrapped {
                    self.add(at(n))?;
                }
                n += modulus;
            }
        }
        Some(())
    }

    /// Adds the turns to the solutions if the sum is right with them. `None` if there is no room.
    fn add(&mut self, turns: [i64; NUMBERS]) -> Option<()> {
        work::note(1);
        // They may wrap around.
        let moved = |i: usize| i64::from(self.read[i].wrapping_add((turns[i] * self.turn[i]) as u32));
        let sum: i64 = (0..NUMBERS).map(|i| moved(i) - i64::from(self.read[i])).sum();
        if (self.off + sum) % MODULUS == 0 {
            *self.solutions.turns.get_mut(self.solutions.count)? = turns.map(|n| n as i32);
            self.solutions.count += 1;
        }
        Some(())
    }
}

/// Numbers in a range up to which each is tried.
const FEW: i64 = 4;

/// Numbers in a range.
fn len(range: (i64, i64)) -> i64 {
    let (low, high) = range;
    (high - low + 1).max(0)
}

/// Returns the greatest common divisor of a number and 2^16 - 1, and the inverse of the number divided by it.
fn inverse(number: i64) -> (i64, i64) {
    let number = number.rem_euclid(MODULUS);
    if number.count_ones() == 1 {
        return (1, 1 << ((16 - number.trailing_zeros()) % 16));
    }
    // Euclid's algorithm.
    let (mut rest, mut next) = ((MODULUS, 0), (number, 1));
    while next.0 != 0 {
        let times = rest.0 / next.0;
        (rest, next) = (next, (rest.0 - times * next.0, rest.1 - times * next.1));
    }
    (rest.0, rest.1.rem_euclid(MODULUS / rest.0))
}

/// Steps that are left of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    left: u32,
}

impl Steps {
    pub(super) const fn new(most: u32) -> Self {
        Self { left: most }
    }

    /// Takes a step. False if none is left.
    #[inline]
    pub(super) fn take(&mut self) -> bool {
        let is_left = self.left > 0;
        self.left -= u32::from(is_left);
        is_left
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::flow::arrival::Intervals;
    use crate::id::Format;
    use crate::work::Work;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        /// However many combinations the growth of a flow and the bits of a packet allow, a search takes few steps: each has at most
        /// [`FEW`] sums, besides the estimates that bound all.
        #[test]
        fn a_search_has_a_bounded_number_of_steps(
            packets in 16..200_u16,
            grown in proptest::array::uniform4(prop_oneof![Just(0_u32), 0..300_000_u32, 0..30_000_000_u32]),
            read: [u16; NUMBERS],
            bits in proptest::array::uniform4(prop_oneof![4..16_u32, Just(40)]),
            payload in prop_oneof![Just(1_u32), 1..1_500_u32, Just(1_285)],
            most in 1..5_000_u32,
            is_paced: bool,
            off: u16,
            drift in prop_oneof![0..200_u16, any::<u16>()],
        ) {
            let mut context = TcpReceiverContext::new();
            context.drift = drift;
            let mut last = TcpState { msn: packets, ..TcpState::EMPTY };
            last.options.read(&[1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0]);
            [last.seq, last.ack] = [grown[0], grown[1]];
            last.options.timestamps = [grown[2], grown[3]];
            let mut next = last;
            next.seq = last.seq.wrapping_add(read[0].into());
            next.ack = last.ack.wrapping_add(read[1].into());
            for i in 0..2 {
                next.options.timestamps[i] = last.options.timestamps[i].wrapping_add(read[2 + i].into());
            }
            let mut found = ReadPacket::whole(next, Format::Seq5, &[]);
            found.turns = bits.map(|bits| if bits == 40 { 0 } else { 1 << bits });
            found.turns[0] *= payload;
            let intervals = Intervals { number: most, off: 2 + most / 64, is_steady: is_paced };
            let passed = Passed { most: intervals.most(), is_counted: false, is_exact: false, intervals };
            Work::take();
            let _ = context.solve(&found, &last, passed, off, &mut Steps::new(STEPS));
            let work = Work::take().steps;
            prop_assert!(work <= STEPS as usize * FEW as usize + 200, "{work}");
        }

        /// A search finds each combination whose sum is right, and no other, as all combinations one by one do.
        #[test]
        fn a_search_finds_what_trying_all_finds(
            off in 1..0xFFFF_i64,
            read: [u32; NUMBERS],
            bits in proptest::array::uniform4(prop_oneof![4..22_u32, Just(40)]),
            payload in prop_oneof![Just(1_i64), 1..1_500_i64, Just(255), Just(1_285), Just(1_460)],
            low in proptest::array::uniform4(-20..20_i64),
            count in proptest::array::uniform4(0..9_i64),
            many in 0..2_000_i64,
            slack in 0..3_000_i64,
            is_tied: bool,
        ) {
            let mut turn = bits.map(|bits| if bits == 40 { 0 } else { 1_i64 << bits });
            turn[0] *= payload;
            let mut ranges = [0, 1, 2, 3].map(|i| if turn[i] == 0 { (0, 0) } else { (low[i], low[i] + count[i]) });
            let has_stamps = turn[2] > 0 || turn[3] > 0;
            if !has_stamps && turn[1] > 0 {
                ranges[1].1 += many;
            }
            if has_stamps && turn[3] > 0 {
                ranges[3].1 += many / 64;
            }
            let tie = Some(Tie { ahead: 77, slack }).filter(|_| is_tied && turn[2] > 0 && turn[3] > 0);
            let (mut some, mut all) = (Steps::new(u32::MAX), Steps::new(u32::MAX));
            let search = |steps| Search { off, read, turn, left: i64::MAX, solutions: Solutions::default(), steps };
            let (mut found, mut expected) = (search(&mut some), search(&mut all));
            let pairs = || (ranges[0].0..=ranges[0].1).flat_map(|a| (ranges[1].0..=ranges[1].1).map(move |b| (a, b)));
            let mut is_full = false;
            for (seq, ack) in pairs() {
                for value in ranges[2].0..=ranges[2].1 {
                    for echo in ranges[3].0..=ranges[3].1 {
                        let apart = echo * turn[3] - value * turn[2];
                        if tie.is_none_or(|tie| (apart + tie.ahead).abs() <= tie.slack) {
                            is_full |= expected.add([seq, ack, value, echo]).is_none();
                        }
                    }
                }
            }
            prop_assume!(!is_full);
            if has_stamps {
                for (seq, ack) in pairs() {
                    prop_assert!(found.find_stamps([seq, ack, 0, 0], ranges[2], ranges[3], tie).is_some());
                }
            } else {
                for seq in ranges[0].0..=ranges[0].1 {
                    prop_assert!(found.find([seq, 0, 0, 0], 1, None, ranges[1]).is_some());
                }
            }
            let sorted = |search: &Search<'_>| {
                let mut turns: std::vec::Vec<_> = search.solutions.iter().copied().collect();
                turns.sort_unstable();
                turns
            };
            prop_assert_eq!(sorted(&found), sorted(&expected));
        }
    }

    #[test]
    fn a_number_times_its_inverse_is_their_common_divisor() {
        for number in 1..MODULUS {
            let (divisor, inverse) = inverse(number);
            assert_eq!(number / divisor * inverse % (MODULUS / divisor), 1 % (MODULUS / divisor), "{number}");
        }
    }
}
