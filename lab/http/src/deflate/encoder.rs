//! The stream: blocks, what is open between pieces, and what both ends know already.

use alloc::vec::Vec;

use super::adler_32;
use super::bits::Bits;
use super::code::{Code, END, Symbol};
use super::dynamic::Dynamic;
use super::parse::{Codes, Matches, Step};

/// Octets that a match can reach back, as the head of the stream says: CINFO 3. The receiver needs as much memory.
const WINDOW: usize = 2_048;

/// CMF and FLG: deflate, window, a dictionary, and a number that makes both of them a multiple of 31. RFC 1950, section 2.2.
const HEAD: [u8; 2] = {
    let first = 0x38_u16;
    let second = 0b0010_0000;
    let check = 31 - (first * 256 + second) % 31;
    [first as u8, (second + check) as u8]
};

/// Octets of a stored block, at most. RFC 1951, section 3.2.4.
const STORED: usize = 65_535;

/// How a piece ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// With its last bit. Readers that work bit by bit have all of it: zlib, miniz, and those made of them.
    #[default]
    Least,
    /// With an empty stored block, as `Z_SYNC_FLUSH` does: for readers that hand out what they have at the end of a block
    /// alone.
    Sync,
}

/// What the octets so far have begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// No block, but so many bits of the header of one with fixed codes: `010`.
    Header(u8),
    /// A block with fixed codes, and so many zero bits of the next code.
    Fixed(u8),
}

/// Bits of the header of a block, those in which it is the last one not set: number and kind. RFC 1951, section 3.2.3.
const STORED_HEADER: u16 = 0b000;
const FIXED_HEADER: u16 = 0b010;
const DYNAMIC_HEADER: u16 = 0b100;
const HEADER_BITS: u8 = 3;

/// Bits of the end of a block with fixed codes: all zero.
const FIXED_END: u8 = 7;

/// One direction of a connection.
#[derive(Clone, Debug)]
pub struct Encoder {
    flush: Flush,
    /// The head of the stream, until it is written.
    head: Option<[u8; 6]>,
    /// What both ends have, the dictionary first, as far as a match can reach.
    window: Vec<u8>,
    open: Open,
}

/// How a piece is said.
enum Plan {
    /// In the block that is open, or is begun: the steps.
    Fixed(Vec<Step>),
    /// In another block of that sort: no step begins with the bits that stand already, or none that is cheap.
    Again(Vec<Step>),
    /// In a block of its own, after what is open.
    Dynamic(Dynamic),
    Stored,
}

impl Encoder {
    /// A stream that begins with the name of a dictionary, which both ends have.
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

    /// The next octets of the stream: with them, the other end has all of this piece.
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
            Plan::Fixed(steps) => {
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
            Plan::Again(steps) => {
                let begun = self.close(out);
                out.push(FIXED_HEADER >> begun, HEADER_BITS - begun);
                write_steps(&Codes::fixed(), &steps, 0, out);
                self.open = Open::Fixed(0);
            }
            Plan::Dynamic(block) => {
                let begun = self.close(out);
                out.push(DYNAMIC_HEADER >> begun, HEADER_BITS - begun);
                block.write_codes(out);
                write_steps(&block.codes, &block.steps, 0, out);
                let end = Symbol { number: END, extra: 0, extra_bits: 0 };
                write_symbol(&block.codes.literals, end, 0, out);
                self.open = Open::Header(0);
            }
            Plan::Stored => {
                for part in piece.chunks(STORED) {
                    self.write_stored(part, out);
                }
            }
        }
    }

    /// The plan with the fewest bits. One that goes on with what is open comes first: others must take less.
    fn plan(&self, matches: &Matches<'_>, len: usize) -> Plan {
        let fixed = Codes::fixed();
        // What it takes to get to the header of another block, and to say it.
        let header = u32::from(HEADER_BITS) + self.closing_bits();
        let zeros = if let Open::Fixed(zeros) = self.open { zeros } else { 0 };
        let begins = match self.open {
            Open::Fixed(_) => 0,
            Open::Header(bits) => u32::from(HEADER_BITS - bits),
        };
        let mut best = None;
        let mut offer = |bits: u32, plan: Plan| {
            if best.as_ref().is_none_or(|(other, _)| bits < *other) {
                best = Some((bits, plan));
            }
        };
        if let Some((steps, bits)) = matches.cheapest(&fixed, zeros) {
            offer(begins + bits, Plan::Fixed(steps));
        }
        if zeros > 0
            && let Some((steps, bits)) = matches.cheapest(&fixed, 0)
        {
            offer(header + bits, Plan::Again(steps));
        }
        if let Some(block) = Dynamic::of(matches) {
            offer(header + block.bits, Plan::Dynamic(block));
        }
        // Its octets begin at an octet, and so did this piece.
        let others = 5 * (len.div_ceil(STORED) as u32 - 1);
        offer(header.next_multiple_of(8) + 8 * (4 + len as u32 + others), Plan::Stored);
        best.map_or(Plan::Stored, |(_, plan)| plan)
    }

    /// Bits until the header of a block of any kind can stand, less those of it that stand already.
    fn closing_bits(&self) -> u32 {
        match self.open {
            Open::Fixed(zeros) => u32::from(FIXED_END - zeros),
            Open::Header(0 | 1) => 0,
            Open::Header(bits) => u32::from(HEADER_BITS - bits + FIXED_END),
        }
    }

    /// Ends what is open: how many bits, all zero, of the header of the next block stand then.
    fn close(&mut self, out: &mut Bits) -> u8 {
        let open = core::mem::replace(&mut self.open, Open::Header(0));
        match open {
            Open::Fixed(zeros) => out.push(0, FIXED_END - zeros),
            // One zero bit says only that it is not the last block.
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

/// Writes steps; of the first code so many bits stand already.
fn write_steps(codes: &Codes, steps: &[Step], zeros: u8, out: &mut Bits) {
    for (index, step) in steps.iter().enumerate() {
        let (symbol, distance) = step.symbols();
        write_symbol(&codes.literals, symbol, if index == 0 { zeros } else { 0 }, out);
        if let Some(distance) = distance {
            write_symbol(&codes.distances, distance, 0, out);
        }
    }
}

fn write_symbol(code: &Code, symbol: Symbol, standing: u8, out: &mut Bits) {
    // The bits that stand are the highest ones, and zero.
    out.push_code(code.codes[symbol.number], code.lengths[symbol.number] - standing);
    out.push(symbol.extra, symbol.extra_bits);
}
