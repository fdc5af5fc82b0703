//! Encoder of a zlib stream: blocks, and the state between pieces.

use alloc::vec::Vec;

use super::adler_32;
use super::bits::Bits;
use super::code::{END, HuffmanCode, Symbol};
use super::dynamic::Dynamic;
use super::parse::{Codes, Matches, ParseStep};

/// Maximum distance of a match, in octets, as the stream's header announces it (CINFO 3). The receiver needs this much
/// memory.
const WINDOW: usize = 2_048;

/// CMF and FLG: deflate, window size, preset dictionary, and check bits that make both a multiple of 31. RFC 1950,
/// section 2.2.
const HEAD: [u8; 2] = {
    let first = 0x38_u16;
    let second = 0b0010_0000;
    let check = 31 - (first * 256 + second) % 31;
    [first as u8, (second + check) as u8]
};

/// Maximum size of a stored block, in octets. RFC 1951, section 3.2.4.
const STORED: usize = 65_535;

/// End of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// Ends with the last bit of the piece. Bit-oriented readers (zlib, miniz and their derivatives) then have all of
    /// it.
    #[default]
    Least,
    /// Ends with an empty stored block, as `Z_SYNC_FLUSH` does, for readers that deliver data only at the end of a
    /// block.
    Sync,
}

/// Block or header that the octets so far have begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// No block, but this many bits of the header of a block with fixed codes: `010`.
    Header(u8),
    /// Block with fixed codes, and this many zero bits of the next code.
    Fixed(u8),
}

/// Bits of a block's header with BFINAL 0: BFINAL and BTYPE. RFC 1951, section 3.2.3.
const STORED_HEADER: u16 = 0b000;
const FIXED_HEADER: u16 = 0b010;
const DYNAMIC_HEADER: u16 = 0b100;
const HEADER_BITS: u8 = 3;

/// Length of the code that ends a block with fixed codes, in bits; all of them are zero.
const FIXED_END: u8 = 7;

/// One direction of a connection.
#[derive(Clone, Debug)]
pub struct Encoder {
    flush: Flush,
    /// Header of the stream, until it is written.
    head: Option<[u8; 6]>,
    /// Octets that both ends have, dictionary first, as far as a match can reach.
    window: Vec<u8>,
    open: Open,
}

/// Encoding of a piece.
enum PieceEncoding {
    /// Steps in the open block with fixed codes, or in a new one.
    Fixed(Vec<ParseStep>),
    /// Steps in another block with fixed codes, for pieces of which no cheap step begins with the pending zero bits.
    Again(Vec<ParseStep>),
    /// Block with dynamic codes, after the open block is closed.
    Dynamic(Dynamic),
    Stored,
}

impl Encoder {
    /// Begins a stream with a preset dictionary, which both ends have.
    pub fn new(dictionary: &[u8], flush: Flush) -> Self {
        let [first, second] = HEAD;
        let [a, b, c, d] = adler_32(dictionary).to_be_bytes();
        let mut encoder = Self {
            flush,
            head: Some([first, second, a, b, c, d]),
            window: Vec::new(),
            open: Open::Header(0),
        };
        encoder.remember(dictionary);
        encoder
    }

    /// Returns the next octets of the stream, from which the other end can decode all of this piece.
    pub fn encode(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Bits::default();
        if let Some(head) = self.head.take() {
            out.push_octets(&head);
        }
        if !piece.is_empty() {
            self.write(piece, &mut out);
            self.remember(piece);
        }
        self.finish(&mut out);
        out.into_octets()
    }

    fn remember(&mut self, octets: &[u8]) {
        self.window.extend_from_slice(octets);
        let reach = self.window.len().saturating_sub(WINDOW);
        self.window.drain(..reach);
    }

    fn write(&mut self, piece: &[u8], out: &mut Bits) {
        let known = self.window.len();
        let octets = [self.window.as_slice(), piece].concat();
        let matches = Matches::find(&octets, known, WINDOW);
        match self.plan(&matches, piece.len()) {
            PieceEncoding::Fixed(steps) => {
                let zeros = match self.open {
                    Open::Fixed(zeros) => zeros,
                    Open::Header(bits) => {
                        out.push(FIXED_HEADER >> bits, HEADER_BITS - bits);
                        0
                    }
                };
                write_steps(&Codes::fixed(), &steps, zeros, out);
                self.open = Open::Fixed(0);
            }
            PieceEncoding::Again(steps) => {
                let begun = self.close(out);
                out.push(FIXED_HEADER >> begun, HEADER_BITS - begun);
                write_steps(&Codes::fixed(), &steps, 0, out);
                self.open = Open::Fixed(0);
            }
            PieceEncoding::Dynamic(block) => {
                let begun = self.close(out);
                out.push(DYNAMIC_HEADER >> begun, HEADER_BITS - begun);
                block.write_codes(out);
                write_steps(&block.codes, &block.steps, 0, out);
                let end = Symbol { number: END, extra: 0, extra_bits: 0 };
                write_symbol(&block.codes.literals, end, 0, out);
                self.open = Open::Header(0);
            }
            PieceEncoding::Stored => {
                for part in piece.chunks(STORED) {
                    self.write_stored(part, out);
                }
            }
        }
    }

    /// Returns the encoding with the fewest bits. Of equal ones, the one that continues the open block comes first.
    fn plan(&self, matches: &Matches<'_>, len: usize) -> PieceEncoding {
        let fixed = Codes::fixed();
        // Bits up to and including the header of another block.
        let header = u32::from(HEADER_BITS) + self.closing_bits();
        let zeros = if let Open::Fixed(zeros) = self.open { zeros } else { 0 };
        let begins = match self.open {
            Open::Fixed(_) => 0,
            Open::Header(bits) => u32::from(HEADER_BITS - bits),
        };
        let mut best = None;
        let mut offer = |bits: u32, plan: PieceEncoding| {
            if best.as_ref().is_none_or(|(other, _)| bits < *other) {
                best = Some((bits, plan));
            }
        };
        if let Some((steps, bits)) = matches.cheapest(&fixed, zeros) {
            offer(begins + bits, PieceEncoding::Fixed(steps));
        }
        if zeros > 0
            && let Some((steps, bits)) = matches.cheapest(&fixed, 0)
        {
            offer(header + bits, PieceEncoding::Again(steps));
        }
        if let Some(block) = Dynamic::of(matches) {
            offer(header + block.bits, PieceEncoding::Dynamic(block));
        }
        // The first stored block begins at an octet boundary, and so did this piece.
        let others = 5 * (len.div_ceil(STORED) as u32 - 1);
        offer(header.next_multiple_of(8) + 8 * (4 + len as u32 + others), PieceEncoding::Stored);
        best.map_or(PieceEncoding::Stored, |(_, plan)| plan)
    }

    /// Bits until the header of another block can begin, less the header's bits that are already written.
    fn closing_bits(&self) -> u32 {
        match self.open {
            Open::Fixed(zeros) => u32::from(FIXED_END - zeros),
            Open::Header(0 | 1) => 0,
            Open::Header(bits) => u32::from(HEADER_BITS - bits + FIXED_END),
        }
    }

    /// Closes the open block. Returns the number of zero bits of the next block's header that are already written.
    fn close(&mut self, out: &mut Bits) -> u8 {
        let open = core::mem::replace(&mut self.open, Open::Header(0));
        match open {
            Open::Fixed(zeros) => out.push(0, FIXED_END - zeros),
            // One zero bit is only BFINAL 0.
            Open::Header(bits @ (0 | 1)) => return bits,
            Open::Header(bits) => {
                out.push(FIXED_HEADER >> bits, HEADER_BITS - bits);
                out.push(0, FIXED_END);
            }
        }
        0
    }

    fn write_stored(&mut self, octets: &[u8], out: &mut Bits) {
        let begun = self.close(out);
        out.push(STORED_HEADER, HEADER_BITS - begun);
        out.push(0, out.missing());
        let len = octets.len() as u16;
        out.push_octets(&len.to_le_bytes());
        out.push_octets(&(!len).to_le_bytes());
        out.push_octets(octets);
    }

    /// Fills the last octet.
    fn finish(&mut self, out: &mut Bits) {
        if self.flush == Flush::Sync {
            self.write_stored(&[], out);
            return;
        }
        let mut missing = out.missing();
        if let Open::Header(bits) = self.open {
            let header = missing.min(HEADER_BITS - bits);
            out.push(FIXED_HEADER >> bits, header);
            missing -= header;
            self.open =
                if bits + header == HEADER_BITS { Open::Fixed(0) } else { Open::Header(bits + header) };
        }
        if let Open::Fixed(zeros) = self.open {
            out.push(0, missing);
            let zeros = zeros + missing;
            self.open = if zeros == FIXED_END { Open::Header(0) } else { Open::Fixed(zeros) };
        }
    }
}

/// Writes steps. `zeros` bits of the first code are already written.
fn write_steps(codes: &Codes, steps: &[ParseStep], zeros: u8, out: &mut Bits) {
    for (index, step) in steps.iter().enumerate() {
        let (symbol, distance) = step.symbols();
        write_symbol(&codes.literals, symbol, if index == 0 { zeros } else { 0 }, out);
        if let Some(distance) = distance {
            write_symbol(&codes.distances, distance, 0, out);
        }
    }
}

fn write_symbol(code: &HuffmanCode, symbol: Symbol, standing: u8, out: &mut Bits) {
    // The bits that are already written are the highest ones, and zero.
    out.push_code(code.codes[symbol.number], code.lengths[symbol.number] - standing);
    out.push(symbol.extra, symbol.extra_bits);
}
