//! Blocks with dynamic Huffman codes, and the encoding of these codes. RFC 1951, section 3.2.7.

use alloc::vec;
use alloc::vec::Vec;

use super::bits::Bits;
use super::code::{DISTANCES, END, HuffmanCode, LITERALS};
use super::parse::{Codes, Matches, ParseStep};

/// Order in which the lengths of the code length codes are written.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Number of rounds in which steps and codes are computed from each other. They converge after a few.
const ROUNDS: usize = 8;

/// Block with dynamic codes.
#[derive(Clone, Debug)]
pub(super) struct Dynamic {
    pub(super) codes: Codes,
    pub(super) steps: Vec<ParseStep>,
    encoded: EncodedCodes,
    /// Size of the block in bits, without the three bits of its header.
    pub(super) bits: u32,
}

/// Codes in their encoded form.
#[derive(Clone, Debug)]
struct EncodedCodes {
    literals: usize,
    distances: usize,
    /// Symbol, value of its extra bits, and their number.
    runs: Vec<(u8, u16, u8)>,
    code: HuffmanCode,
    /// Number of lengths of `code` that are written.
    lengths: usize,
}

impl Dynamic {
    /// Returns the smallest block found by iteration: steps for codes, codes for steps.
    pub(super) fn of(matches: &Matches<'_>) -> Option<Self> {
        let mut codes = Codes::fixed();
        let mut best: Option<Self> = None;
        for _ in 0..ROUNDS {
            let (steps, _) = matches.cheapest(&codes, 0)?;
            codes = measured(&steps);
            let encoded = EncodedCodes::of(&codes);
            let bits =
                encoded.bits() + steps.iter().map(|step| codes.cost(*step)).sum::<u32>() + codes.end_cost();
            if best.as_ref().is_some_and(|best| best.bits <= bits) {
                break;
            }
            best = Some(Self { codes: codes.clone(), steps, encoded, bits });
        }
        best
    }

    /// Writes the codes.
    pub(super) fn write_codes(&self, out: &mut Bits) {
        let encoded = &self.encoded;
        out.push((encoded.literals - 257) as u16, 5);
        out.push((encoded.distances - 1) as u16, 5);
        out.push((encoded.lengths - 4) as u16, 4);
        for symbol in ORDER.iter().take(encoded.lengths) {
            out.push(encoded.code.lengths[*symbol].into(), 3);
        }
        for &(symbol, extra, extra_bits) in &encoded.runs {
            let symbol = usize::from(symbol);
            out.push_code(encoded.code.codes[symbol], encoded.code.lengths[symbol]);
            out.push(extra, extra_bits);
        }
    }
}

/// Returns the codes in which these steps take the fewest bits.
fn measured(steps: &[ParseStep]) -> Codes {
    let (mut literals, mut distances) = (vec![0; LITERALS], vec![0; DISTANCES]);
    literals[END] = 1;
    for step in steps {
        let (symbol, distance) = step.symbols();
        literals[symbol.number] += 1;
        if let Some(distance) = distance {
            distances[distance.number] += 1;
        }
    }
    Codes {
        literals: HuffmanCode::of_counts(&literals, 15),
        distances: HuffmanCode::of_counts(&distances, 15),
    }
}

impl EncodedCodes {
    fn of(codes: &Codes) -> Self {
        let used = |code: &HuffmanCode| {
            code.lengths.iter().rposition(|length| *length > 0).map_or(0, |last| last + 1)
        };
        let (literals, distances) = (used(&codes.literals).max(257), used(&codes.distances).max(1));
        let lengths: Vec<u8> =
            [&codes.literals.lengths[..literals], &codes.distances.lengths[..distances]].concat();
        let runs = runs(&lengths);
        let mut counts = [0_u32; 19];
        runs.iter().for_each(|(symbol, ..)| counts[usize::from(*symbol)] += 1);
        let code = HuffmanCode::of_counts(&counts, 7);
        let last = ORDER.iter().rposition(|symbol| code.lengths[*symbol] > 0).unwrap_or(0);
        Self { literals, distances, runs, code, lengths: (last + 1).max(4) }
    }

    fn bits(&self) -> u32 {
        let run = |(symbol, _, extra_bits): &(u8, u16, u8)| {
            u32::from(self.code.lengths[usize::from(*symbol)]) + u32::from(*extra_bits)
        };
        14 + 3 * self.lengths as u32 + self.runs.iter().map(run).sum::<u32>()
    }
}

/// Encodes lengths as themselves and as repetitions: 16 repeats the previous one, 17 and 18 repeat zero.
fn runs(lengths: &[u8]) -> Vec<(u8, u16, u8)> {
    let mut runs = Vec::new();
    let mut rest = lengths;
    let mut before = None;
    while let Some(&length) = rest.first() {
        let count = rest.iter().take_while(|other| **other == length).count();
        let (run, taken) = match (length, count) {
            (0, 11..) => ((18, count.min(138) as u16 - 11, 7), count.min(138)),
            (0, 3..) => ((17, count as u16 - 3, 3), count),
            (_, 3..) if before == Some(length) => ((16, count.min(6) as u16 - 3, 2), count.min(6)),
            _ => ((length, 0, 0), 1),
        };
        runs.push(run);
        before = Some(length);
        rest = &rest[taken..];
    }
    runs
}
