//! Huffman codes, fixed and made to measure, and what their symbols stand for. RFC 1951, sections 3.2.2 to 3.2.6.

use alloc::vec;
use alloc::vec::Vec;

/// Symbols of literals, the end of a block, and lengths.
pub(super) const LITERALS: usize = 286;
/// Symbols of distances.
pub(super) const DISTANCES: usize = 30;
/// The symbol that ends a block.
pub(super) const END: usize = 256;
/// Octets of a match, at least and at most.
pub(super) const LEAST: usize = 3;
pub(super) const MOST: usize = 258;

/// A symbol, and the bits behind its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) number: usize,
    pub(super) extra: u16,
    pub(super) extra_bits: u8,
}

/// The symbol of a length, 3 to 258.
pub(super) fn length_symbol(length: usize) -> Symbol {
    if length == MOST {
        return Symbol { number: 285, extra: 0, extra_bits: 0 };
    }
    // Four symbols for each number of extra bits, after the first eight of none.
    let above = length - LEAST;
    let extra_bits = above.checked_ilog2().map_or(0, |log| log.saturating_sub(2));
    let number = 257 + (extra_bits as usize) * 4 + (above >> extra_bits);
    let extra = (above & ((1 << extra_bits) - 1)) as u16;
    Symbol { number, extra, extra_bits: extra_bits as u8 }
}

/// The symbol of a distance, 1 to 32,768.
pub(super) fn distance_symbol(distance: usize) -> Symbol {
    let above = distance - 1;
    let extra_bits = above.checked_ilog2().map_or(0, |log| log.saturating_sub(1));
    let number = (extra_bits as usize) * 2 + (above >> extra_bits);
    let extra = (above & ((1 << extra_bits) - 1)) as u16;
    Symbol { number, extra, extra_bits: extra_bits as u8 }
}

/// A code: the bits of each symbol, and how many they are. 0: the symbol has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) lengths: Vec<u8>,
    pub(super) codes: Vec<u16>,
}

impl Code {
    /// The code of these lengths, 15 at most. RFC 1951, section 3.2.2.
    pub(super) fn of_lengths(lengths: Vec<u8>) -> Self {
        let mut count = [0_u16; 16];
        lengths.iter().for_each(|length| count[usize::from(*length & 15)] += 1);
        count[0] = 0;
        let mut next = [0_u16; 16];
        for bits in 1..16 {
            next[bits] = (next[bits - 1] + count[bits - 1]) << 1;
        }
        let codes = lengths.iter().map(|length| {
            let next = &mut next[usize::from(*length & 15)];
            *next = next.wrapping_add(1);
            next.wrapping_sub(1)
        });
        Self { codes: codes.collect(), lengths }
    }

    /// The code in which these numbers of symbols take the fewest bits, `most` for one. RFC 1951, section 3.2.7, wants two
    /// symbols at least; what is not used gets a code then.
    pub(super) fn of_counts(counts: &[u32], most: u8) -> Self {
        Self::of_lengths(package_merge(counts, most))
    }

    /// Literals, the end and lengths in a block with fixed codes. RFC 1951, section 3.2.6.
    pub(super) fn fixed_literals() -> Self {
        let length = |symbol| match symbol {
            0..144 => 8,
            144..256 => 9,
            256..280 => 7,
            _ => 8,
        };
        Self::of_lengths((0..288).map(length).collect())
    }

    /// Distances in a block with fixed codes.
    pub(super) fn fixed_distances() -> Self {
        Self::of_lengths(vec![5; DISTANCES])
    }

    /// Bits of a symbol, those behind its code included. One that has no code is dear, and not impossible: it may get one.
    pub(super) fn cost(&self, symbol: Symbol) -> u32 {
        let bits = match self.lengths.get(symbol.number) {
            Some(0) | None => 15,
            Some(bits) => *bits,
        };
        u32::from(bits) + u32::from(symbol.extra_bits)
    }
}

/// Lengths of codes by the package-merge algorithm (Larmore and Hirschberg, 1990): with each bit that may be used once more,
/// the cheapest pairs of what there is are packed, and offered beside the symbols.
fn package_merge(counts: &[u32], most: u8) -> Vec<u8> {
    let mut used: Vec<(u32, usize)> = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(symbol, count)| (*count, symbol))
        .collect();
    for symbol in 0..counts.len() {
        if used.len() >= 2 {
            break;
        }
        if !used.iter().any(|(_, other)| *other == symbol) {
            used.push((1, symbol));
        }
    }
    used.sort_unstable();
    let coins: Vec<(u64, Vec<usize>)> =
        used.iter().map(|(count, symbol)| (u64::from(*count), vec![*symbol])).collect();
    let mut offered = coins.clone();
    for _ in 1..most {
        let pairs = offered.chunks_exact(2).map(|pair| {
            let symbols = pair.iter().flat_map(|(_, symbols)| symbols.iter().copied()).collect();
            (pair.iter().map(|(count, _)| count).sum(), symbols)
        });
        let mut next: Vec<(u64, Vec<usize>)> = coins.iter().cloned().chain(pairs).collect();
        next.sort_by_key(|(count, _)| *count);
        offered = next;
    }
    let mut lengths = vec![0; counts.len()];
    for (_, symbols) in offered.iter().take(2 * used.len() - 2) {
        symbols.iter().for_each(|symbol| lengths[*symbol] += 1);
    }
    lengths
}
