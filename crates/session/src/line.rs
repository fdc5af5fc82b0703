//! Framing on a serial line: datagrams in a stream of octets, with or without a CRC-32.
//!
//! The CRC is FCS-32 of RFC 1662 (CRC-32/ISO-HDLC), least significant octet first, over the datagram; it
//! follows the datagram within the frame, since SLIP and COBS have none. Damaged frames are dropped, and the
//! [`Deframer`] resumes at the next delimiter. It buffers one frame.

mod cobs;
mod counters;
mod slip;

#[cfg(test)]
mod tests;

use thinair_wire::crc::fcs32;

pub use counters::{DeframerCounters, FramerCounters};

/// Length of the CRC-32, in octets.
pub const CRC: usize = 4;

/// Framing on a serial line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// SLIP (RFC 1055).
    Slip,
    /// Consistent Overhead Byte Stuffing (COBS).
    Cobs,
}

/// A datagram exceeds the maximum size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a datagram of {octets} octets exceeds the limit of the line, {most}")]
pub struct DatagramTooLong {
    /// Size of the datagram in octets.
    pub octets: usize,
    /// Maximum size in octets.
    pub most: usize,
}

/// Puts datagrams into frames.
#[derive(Clone, Debug)]
pub struct Framer {
    framing: Framing,
    crc: bool,
    largest: usize,
    /// True if noise may have arrived since the last delimiter.
    silent: bool,
    counters: FramerCounters,
}

impl Framer {
    /// Returns a framer for datagrams of at most `largest` octets, without the CRC.
    pub const fn new(framing: Framing, crc: bool, largest: usize) -> Self {
        Self { framing, crc, largest, silent: true, counters: FramerCounters::ZERO }
    }

    /// Maximum size of the frame of a datagram, in octets: each octet escaped, and a leading delimiter.
    pub const fn longest_frame(framing: Framing, crc: bool, datagram: usize) -> usize {
        let octets = datagram + if crc { CRC } else { 0 };
        match framing {
            Framing::Slip => 2 * octets + 2,
            Framing::Cobs => octets + octets / cobs::BLOCK + 3,
        }
    }

    /// Appends the frame of a datagram to `out`. An empty datagram is not sent: without CRC its frame is empty, and with
    /// one it is four zeros, the CRC-32 of nothing, which a single damaged bit may make of a longer frame.
    pub fn frame(&mut self, datagram: &[u8], out: &mut Vec<u8>) -> Result<(), DatagramTooLong> {
        if datagram.len() > self.largest {
            return Err(DatagramTooLong { octets: datagram.len(), most: self.largest });
        }
        if datagram.is_empty() {
            return Ok(());
        }
        let before = out.len();
        let crc = if self.crc { fcs32(datagram) } else { [0; CRC] };
        let parts = [datagram, if self.crc { &crc[..] } else { &[] }];
        let silent = std::mem::take(&mut self.silent);
        match self.framing {
            Framing::Slip => slip::encode(silent, parts, out),
            Framing::Cobs => cobs::encode(silent, parts, out),
        }
        self.counters.frames += 1;
        self.counters.octets += datagram.len() as u64;
        self.counters.line_octets += (out.len() - before) as u64;
        Ok(())
    }

    /// Records a silence of the line: the next frame begins with a delimiter, so that noise does not become
    /// part of it (RFC 1055). The first frame does so, too; others do not.
    pub const fn silent(&mut self) {
        self.silent = true;
    }

    /// Counters of sent frames.
    pub const fn counters(&self) -> FramerCounters {
        self.counters
    }
}

/// Reason why a frame was dropped. Offsets count octets on the line, from the start of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The CRC-32 is wrong.
    #[error("a frame of {octets} octets with a wrong CRC-32")]
    Crc {
        /// Size of the frame with the CRC, in octets.
        octets: usize,
    },
    /// The frame is too short for a datagram and its CRC-32.
    #[error("a frame of {octets} octets is too short for a datagram and its CRC-32")]
    TooShort {
        /// Size of the frame in octets.
        octets: usize,
    },
    /// The frame exceeds the maximum size; it is reported at once, and the rest is skipped.
    #[error("a frame of more than {most} octets")]
    TooLong {
        /// Maximum size without the CRC, in octets.
        most: usize,
    },
    /// SLIP: an octet after ESC that RFC 1055 does not define.
    #[error("invalid octet {octet:#04x} after ESC, at octet {offset} of the frame")]
    BadEscape {
        /// Offset of the octet.
        offset: usize,
        /// Value of the octet.
        octet: u8,
    },
    /// SLIP: the frame ends after ESC. COBS: it ends within a block.
    #[error("the frame ends within an escape or a block, at octet {offset}")]
    CutShort {
        /// Offset of the end.
        offset: usize,
    },
}

/// Receiver of datagrams and of errors.
pub type FrameSink<'s> = &'s mut dyn FnMut(Result<&[u8], FrameError>);

/// Finds frames in octets that arrive in pieces of any size.
#[derive(Clone, Debug)]
pub struct Deframer {
    framing: Framing,
    crc: bool,
    largest: usize,
    /// Decoded octets of the current frame.
    frame: Vec<u8>,
    /// Number of its octets on the line.
    offset: usize,
    state: FramePosition,
    counters: DeframerCounters,
}

/// Position of the next octet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramePosition {
    /// At the start.
    Start,
    /// At any octet.
    Octet,
    /// SLIP: after ESC.
    Escaped,
    /// COBS: within a block.
    Block {
        /// Remaining octets, at least one.
        left: u8,
        /// True if a zero follows unless the frame ends.
        zero: bool,
    },
    /// COBS: after a block.
    BlockEnd {
        /// True if a zero follows unless the frame ends.
        zero: bool,
    },
    /// In a damaged frame, up to the next delimiter.
    Skipping,
}

impl Deframer {
    /// Returns a deframer for datagrams of at most `largest` octets. It allocates its memory here.
    pub fn new(framing: Framing, crc: bool, largest: usize) -> Self {
        let room = largest + if crc { CRC } else { 0 };
        Self {
            framing,
            crc,
            largest,
            frame: Vec::with_capacity(room),
            offset: 0,
            state: FramePosition::Start,
            counters: DeframerCounters::default(),
        }
    }

    /// Processes the next octets of the line, and passes completed datagrams and errors to `sink`.
    pub fn receive(&mut self, octets: &[u8], sink: FrameSink<'_>) {
        self.counters.line_octets += octets.len() as u64;
        let limit = match self.framing {
            Framing::Slip => slip::END,
            Framing::Cobs => cobs::LIMIT,
        };
        for &octet in octets {
            if octet == limit {
                self.end(sink);
                continue;
            }
            let before = self.offset;
            self.offset = self.offset.saturating_add(1);
            let step = match self.framing {
                Framing::Slip => slip::step(self.state, octet),
                Framing::Cobs => cobs::step(self.state, octet),
            };
            let (state, pushed) = match step {
                Ok(step) => step,
                Err(octet) => {
                    self.drop_frame(FrameError::BadEscape { offset: before, octet }, sink);
                    self.state = FramePosition::Skipping;
                    continue;
                }
            };
            self.state = state;
            if let Some(octet) = pushed {
                self.push(octet, sink);
            }
        }
    }

    /// Counters of received frames.
    pub const fn counters(&self) -> DeframerCounters {
        self.counters
    }

    fn push(&mut self, octet: u8, sink: FrameSink<'_>) {
        let most = self.largest + if self.crc { CRC } else { 0 };
        if self.frame.len() < most {
            self.frame.push(octet);
        } else {
            self.drop_frame(FrameError::TooLong { most: self.largest }, sink);
            self.state = FramePosition::Skipping;
        }
    }

    /// Processes a delimiter.
    fn end(&mut self, sink: FrameSink<'_>) {
        match self.state {
            // Delimiters can be adjacent; a skipped frame has been reported already.
            FramePosition::Start | FramePosition::Skipping => {}
            FramePosition::Escaped | FramePosition::Block { .. } => {
                self.drop_frame(FrameError::CutShort { offset: self.offset }, sink);
            }
            FramePosition::Octet | FramePosition::BlockEnd { .. } => self.deliver(sink),
        }
        (self.state, self.offset) = (FramePosition::Start, 0);
        self.frame.clear();
    }

    fn deliver(&mut self, sink: FrameSink<'_>) {
        let datagram = match (self.crc, self.frame.split_last_chunk::<CRC>()) {
            (false, _) if self.frame.is_empty() => return,
            (false, _) => &self.frame[..],
            (true, None | Some(([], _))) => {
                return self.drop_frame(FrameError::TooShort { octets: self.frame.len() }, sink);
            }
            (true, Some((datagram, crc))) if fcs32(datagram) == *crc => datagram,
            (true, Some(_)) => {
                return self.drop_frame(FrameError::Crc { octets: self.frame.len() }, sink);
            }
        };
        self.counters.frames += 1;
        self.counters.octets += datagram.len() as u64;
        sink(Ok(datagram));
    }

    fn drop_frame(&mut self, error: FrameError, sink: FrameSink<'_>) {
        self.counters.count(error);
        self.frame.clear();
        sink(Err(error));
    }
}
