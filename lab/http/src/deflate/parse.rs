//! Shortest encoding of octets as literals and matches with given codes: a shortest path over all matches.

use alloc::vec;
use alloc::vec::Vec;

use super::code::{END, HuffmanCode, LEAST, MOST, Symbol, distance_symbol, length_symbol};

/// A literal, or a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParseStep {
    Literal(u8),
    Match { length: usize, distance: usize },
}

impl ParseStep {
    /// Symbol of a literal or a length, and of a distance.
    pub(super) fn symbols(self) -> (Symbol, Option<Symbol>) {
        match self {
            Self::Literal(octet) => (Symbol { number: octet.into(), extra: 0, extra_bits: 0 }, None),
            Self::Match { length, distance } => (length_symbol(length), Some(distance_symbol(distance))),
        }
    }

    fn octets(self) -> usize {
        match self {
            Self::Literal(_) => 1,
            Self::Match { length, .. } => length,
        }
    }
}

/// Codes in which steps are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Codes {
    pub(super) literals: HuffmanCode,
    pub(super) distances: HuffmanCode,
}

impl Codes {
    pub(super) fn fixed() -> Self {
        Self { literals: HuffmanCode::fixed_literals(), distances: HuffmanCode::fixed_distances() }
    }

    /// Bits that a step takes.
    pub(super) fn cost(&self, step: ParseStep) -> u32 {
        let (symbol, distance) = step.symbols();
        self.literals.cost(symbol) + distance.map_or(0, |distance| self.distances.cost(distance))
    }

    /// True if the code of a step begins with this many zero bits.
    fn begins_with_zeros(&self, step: ParseStep, zeros: u8) -> bool {
        let number = step.symbols().0.number;
        let bits = self.literals.lengths.get(number).copied().unwrap_or(0);
        bits >= zeros && self.literals.codes.get(number).is_some_and(|code| code >> (bits - zeros) == 0)
    }

    /// Bits of the end of a block.
    pub(super) fn end_cost(&self) -> u32 {
        self.literals.cost(Symbol { number: END, extra: 0, extra_bits: 0 })
    }
}

/// Matches at each octet after `start`: the nearest, and so the cheapest, of each length.
#[derive(Debug)]
pub(super) struct Matches<'o> {
    octets: &'o [u8],
    start: usize,
    /// Length and distance of the matches at each octet, each longer and farther than the previous one.
    found: Vec<Vec<(usize, usize)>>,
}

impl<'o> Matches<'o> {
    /// Finds the matches in `octets`, of which both ends have those before `start`; at most `window` octets back.
    pub(super) fn find(octets: &'o [u8], start: usize, window: usize) -> Self {
        // Latest positions, by a hash of their three octets.
        const PLACES: usize = 1 << 12;
        const NONE: usize = usize::MAX;
        let place = |at: usize| {
            let three = octets.get(at..at + LEAST)?;
            let number = three.iter().fold(0_usize, |number, octet| number * 0x9E5 + usize::from(*octet));
            Some(number % PLACES)
        };
        let mut last = vec![NONE; PLACES];
        let mut before = vec![NONE; octets.len()];
        let mut found = Vec::with_capacity(octets.len() - start);
        for at in 0..octets.len() {
            let mut matches: Vec<(usize, usize)> = Vec::new();
            if let Some(place) = place(at) {
                let mut candidate = last[place];
                while at >= start && candidate != NONE && at - candidate <= window {
                    let length = common(octets, candidate, at);
                    if length >= LEAST && matches.last().is_none_or(|(longest, _)| length > *longest) {
                        matches.push((length, at - candidate));
                    }
                    candidate = if length == MOST { NONE } else { before[candidate] };
                }
                before[at] = last[place];
                last[place] = at;
            }
            if at >= start {
                found.push(matches);
            }
        }
        Self { octets, start, found }
    }

    /// Returns the steps that take the fewest bits, and that number. The code of the first one begins with `zeros` zero
    /// bits, which are not counted; `None` if there is no such encoding.
    pub(super) fn cheapest(&self, codes: &Codes, zeros: u8) -> Option<(Vec<ParseStep>, u32)> {
        let len = self.octets.len() - self.start;
        let mut best: Vec<Option<(u32, ParseStep)>> = vec![None; len + 1];
        for at in 0..len {
            let so_far = match (at, &best[at]) {
                (0, _) => 0,
                (_, Some((bits, _))) => *bits,
                (_, None) => continue,
            };
            let mut offer = |step: ParseStep| {
                if at == 0 && zeros > 0 && !codes.begins_with_zeros(step, zeros) {
                    return;
                }
                let bits = so_far + codes.cost(step) - if at == 0 { u32::from(zeros) } else { 0 };
                let there = &mut best[at + step.octets()];
                if there.is_none_or(|(other, _)| bits < other) {
                    *there = Some((bits, step));
                }
            };
            offer(ParseStep::Literal(self.octets[self.start + at]));
            let mut shortest = LEAST;
            for &(longest, distance) in &self.found[at] {
                (shortest..=longest).for_each(|length| offer(ParseStep::Match { length, distance }));
                shortest = longest + 1;
            }
        }
        let mut steps = Vec::new();
        let mut at = len;
        while at > 0 {
            let (_, step) = best[at]?;
            steps.push(step);
            at -= step.octets();
        }
        steps.reverse();
        let bits = best[len].map_or(0, |(bits, _)| bits);
        Some((steps, bits))
    }
}

/// Number of equal octets at both positions, 258 at most.
fn common(octets: &[u8], one: usize, other: usize) -> usize {
    let (one, other) = (octets[one..].iter(), octets[other..].iter());
    one.zip(other).take(MOST).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference: fewest bits for the octets from `at` on, over every literal and every match at every distance.
    fn fewest(octets: &[u8], at: usize, codes: &Codes, zeros: u8) -> Option<u32> {
        let Some(octet) = octets.get(at) else { return Some(0) };
        let matches = (1..=at).flat_map(|distance| {
            let longest = common(octets, at - distance, at);
            (LEAST..=longest).map(move |length| ParseStep::Match { length, distance })
        });
        let steps = core::iter::once(ParseStep::Literal(*octet)).chain(matches);
        let may_begin = |step: &ParseStep| zeros == 0 || codes.begins_with_zeros(*step, zeros);
        let bits = steps.filter(may_begin).filter_map(|step| {
            Some(codes.cost(step) - u32::from(zeros) + fewest(octets, at + step.octets(), codes, 0)?)
        });
        bits.min()
    }

    proptest! {
        #[test]
        fn nothing_takes_fewer_bits(
            known in proptest::collection::vec(b'a'..b'd', 0..40),
            piece in proptest::collection::vec(b'a'..b'd', 1..11),
            shift: u8,
            zeros in 0..4_u8,
        ) {
            let octets: Vec<u8> = known.iter().chain(&piece).map(|octet| octet.wrapping_add(shift)).collect();
            let codes = Codes::fixed();
            let matches = Matches::find(&octets, known.len(), 2_048);
            let found = matches.cheapest(&codes, zeros).map(|(_, bits)| bits);
            prop_assert_eq!(found, fewest(&octets, known.len(), &codes, zeros));
        }

        /// Long runs use the longest matches.
        #[test]
        fn long_matches_are_found(len in 3..600_usize) {
            let octets = vec![7; 1 + len];
            let (steps, _) = Matches::find(&octets, 1, 2_048).cheapest(&Codes::fixed(), 0).unwrap();
            prop_assert_eq!(steps.iter().map(|step| step.octets()).sum::<usize>(), len);
            prop_assert!(steps.len() <= len.div_ceil(MOST) + 1, "{:?}", steps);
        }
    }
}
