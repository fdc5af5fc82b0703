//! Huffman codes, fixed and dynamic, and the meaning of their symbols. RFC 1951, sections 3.2.2 to 3.2.6.

use alloc::vec;
use alloc::vec::Vec;

/// Number of symbols for literals, the end of a block, and lengths.
pub(super) const LITERALS: usize = 286;
/// Number of symbols for distances.
pub(super) const DISTANCES: usize = 30;
/// Symbol that ends a block.
pub(super) const END: usize = 256;
/// Minimum and maximum length of a match, in octets.
pub(super) const LEAST: usize = 3;
pub(super) const MOST: usize = 258;

/// Symbol, and the extra bits after its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) number: usize,
    pub(super) extra: u16,
    pub(super) extra_bits: u8,
}

/// Returns the symbol of a length, 3 to 258.
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

/// Returns the symbol of a distance, 1 to 32,768.
pub(super) fn distance_symbol(distance: usize) -> Symbol {
    let above = distance - 1;
    let extra_bits = above.checked_ilog2().map_or(0, |log| log.saturating_sub(1));
    let number = (extra_bits as usize) * 2 + (above >> extra_bits);
    let extra = (above & ((1 << extra_bits) - 1)) as u16;
    Symbol { number, extra, extra_bits: extra_bits as u8 }
}

/// Huffman code: bits and length of each symbol's code. Length 0: the symbol has no code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HuffmanCode {
    pub(super) lengths: Vec<u8>,
    pub(super) codes: Vec<u16>,
}

impl HuffmanCode {
    /// Builds the code with these lengths, 15 bits at most. RFC 1951, section 3.2.2.
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

    /// Builds the code in which symbols with these counts take the fewest bits, `most` per symbol at most. RFC 1951,
    /// section 3.2.7, requires at least two symbols; unused ones get a code then.
    pub(super) fn of_counts(counts: &[u32], most: u8) -> Self {
        Self::of_lengths(package_merge(counts, most))
    }

    /// Fixed code for literals, the end of a block and lengths. RFC 1951, section 3.2.6.
    pub(super) fn fixed_literals() -> Self {
        let length = |symbol| match symbol {
            0..144 => 8,
            144..256 => 9,
            256..280 => 7,
            _ => 8,
        };
        Self::of_lengths((0..288).map(length).collect())
    }

    /// Fixed code for distances.
    pub(super) fn fixed_distances() -> Self {
        Self::of_lengths(vec![5; DISTANCES])
    }

    /// Bits of a symbol, including its extra bits. A symbol without a code is expensive but not impossible: it may get
    /// one.
    pub(super) fn cost(&self, symbol: Symbol) -> u32 {
        let bits = match self.lengths.get(symbol.number) {
            Some(0) | None => 15,
            Some(bits) => *bits,
        };
        u32::from(bits) + u32::from(symbol.extra_bits)
    }
}

/// Code lengths by the package-merge algorithm (Larmore and Hirschberg, 1990): for each permitted bit, the cheapest
/// pairs of items are packaged and merged with the symbols. From the last list, the cheapest items are taken, and with
/// a package both of its items, down to the symbols. The number of times that a symbol is taken is the length of its
/// code.
fn package_merge(counts: &[u32], most: u8) -> Vec<u8> {
    let used = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let mut symbols: Vec<(u64, usize)> = used.map(|(symbol, count)| (u64::from(*count), symbol)).collect();
    let unused = (0..counts.len()).filter(|symbol| counts[*symbol] == 0);
    symbols.extend(unused.take(2_usize.saturating_sub(symbols.len())).map(|symbol| (1, symbol)));
    symbols.sort_unstable();
    // Items of each round, cheapest first: their count, and whether each is a package.
    let first: Vec<(u64, bool)> = symbols.iter().map(|(count, _)| (*count, false)).collect();
    let mut rounds = vec![first.clone()];
    for _ in 1..most {
        let packages = rounds.last().map(Vec::as_slice).unwrap_or_default().chunks_exact(2);
        let packages = packages.map(|pair| (pair[0].0 + pair[1].0, true));
        let mut offered: Vec<(u64, bool)> = first.iter().copied().chain(packages).collect();
        offered.sort_unstable();
        rounds.push(offered);
    }
    let mut lengths = vec![0; counts.len()];
    let mut taken = 2 * symbols.len() - 2;
    for offered in rounds.iter().rev() {
        let packages = offered.iter().take(taken).filter(|(_, is_package)| *is_package).count();
        symbols.iter().take(taken - packages).for_each(|(_, symbol)| lengths[*symbol] += 1);
        taken = 2 * packages;
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1951, sections 3.2.2 and 3.2.5.
    #[test]
    fn the_examples_of_the_rfc() {
        let code = HuffmanCode::of_lengths(vec![3, 3, 3, 3, 3, 2, 4, 4]);
        assert_eq!(code.codes, [0b010, 0b011, 0b100, 0b101, 0b110, 0b00, 0b1110, 0b1111]);
        for (length, number, extra, extra_bits) in [
            (3, 257, 0, 0),
            (10, 264, 0, 0),
            (12, 265, 1, 1),
            (130, 280, 15, 4),
            (257, 284, 30, 5),
            (258, 285, 0, 0),
        ] {
            assert_eq!(length_symbol(length), Symbol { number, extra, extra_bits }, "{length}");
        }
        for (distance, number, extra, extra_bits) in [
            (1, 0, 0, 0),
            (4, 3, 0, 0),
            (6, 4, 1, 1),
            (193, 15, 0, 6),
            (24_577, 29, 0, 13),
            (32_768, 29, 8_191, 13),
        ] {
            assert_eq!(distance_symbol(distance), Symbol { number, extra, extra_bits }, "{distance}");
        }
    }

    #[test]
    fn codes_are_complete_and_no_longer_than_they_may_be() {
        let fibonacci = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
        assert_eq!(HuffmanCode::of_counts(&fibonacci, 15).lengths, [10, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
        for (counts, most) in
            [(&fibonacci[..], 4), (&fibonacci, 7), (&[0, 7, 0], 15), (&[0, 0], 7), (&[9; 16], 4)]
        {
            let lengths = HuffmanCode::of_counts(counts, most).lengths;
            let room: u32 =
                lengths.iter().filter(|length| **length > 0).map(|length| 1 << (15 - length)).sum();
            assert_eq!(room, 1 << 15, "{counts:?}: {lengths:?}");
            assert!(lengths.iter().all(|length| *length <= most), "{counts:?}: {lengths:?}");
        }
    }
}
