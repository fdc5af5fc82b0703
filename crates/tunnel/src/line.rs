//! Frames of a serial line: datagrams in a stream of octets, with a CRC-32 or without.
//!
//! The CRC is FCS-32 of RFC 1662 (CRC-32/ISO-HDLC), least significant octet first, over the datagram; it stands behind it
//! within the frame, as SLIP and COBS have none. What is damaged is dropped, and the next limit of a frame is where the
//! [`Deframer`] goes on. It holds one frame.

mod cobs;
mod counters;
mod slip;

#[cfg(test)]
mod tests;

use thinair_wire::crc::fcs32;

pub use counters::{DeframerCounters, FramerCounters};

use crate::plan::Framing;

/// Octets of the CRC-32.
pub const CRC: usize = 4;

/// A datagram is longer than the frames of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a datagram of {octets} octets, but frames of the line have at most {most}")]
pub struct TooLong {
    /// Octets of the datagram.
    pub octets: usize,
    /// Octets that one may have.
    pub most: usize,
}

/// Puts datagrams into frames.
#[derive(Clone, Debug)]
pub struct Framer {
    framing: Framing,
    crc: bool,
    largest: usize,
    /// Whether noise may have come since the last limit.
    silent: bool,
    counters: FramerCounters,
}

impl Framer {
    /// For datagrams of at most `largest` octets, which the CRC does not count among.
    pub const fn new(framing: Framing, crc: bool, largest: usize) -> Self {
        Self { framing, crc, largest, silent: true, counters: FramerCounters::ZERO }
    }

    /// Octets of the longest frame that a datagram of so many octets can become: each escaped, and a limit in front.
    pub const fn longest_frame(framing: Framing, crc: bool, datagram: usize) -> usize {
        let octets = datagram + if crc { CRC } else { 0 };
        match framing {
            Framing::Slip => 2 * octets + 2,
            Framing::Cobs => octets + octets / cobs::BLOCK + 3,
        }
    }

    /// Puts a datagram behind what is in `out`. One without any octets, which a line without CRC cannot tell from nothing,
    /// is not sent there.
    pub fn frame(&mut self, datagram: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
        if datagram.len() > self.largest {
            return Err(TooLong { octets: datagram.len(), most: self.largest });
        }
        if datagram.is_empty() && !self.crc {
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

    /// The line was silent for a while: the next frame begins with a limit, so that noise is not taken for its start
    /// (RFC 1055). So does the first one; the others do without.
    pub const fn silent(&mut self) {
        self.silent = true;
    }

    /// What it has done.
    pub const fn counters(&self) -> FramerCounters {
        self.counters
    }
}

/// Why a frame was dropped. An offset counts octets of the frame as they are on the line, from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The CRC-32 is wrong.
    #[error("a frame of {octets} octets with a wrong CRC-32")]
    Crc {
        /// Octets of it, with the CRC.
        octets: usize,
    },
    /// There is no room for a CRC-32.
    #[error("a frame of {octets} octets, which is less than its CRC-32 has")]
    TooShort {
        /// Octets of it.
        octets: usize,
    },
    /// It is longer than a frame may be; told where that was seen, and the rest is skipped.
    #[error("a frame of more than {most} octets")]
    TooLong {
        /// Octets that it may have, without the CRC.
        most: usize,
    },
    /// SLIP: behind ESC stands what RFC 1055 does not know.
    #[error("octet {offset} of the frame is {octet:#04x}, behind ESC")]
    BadEscape {
        /// Where it stands.
        offset: usize,
        /// What it is.
        octet: u8,
    },
    /// SLIP: the frame ends behind ESC. COBS: it ends within a block.
    #[error("the frame ends within an escape or a block, at octet {offset}")]
    CutShort {
        /// Where it ends.
        offset: usize,
    },
}

/// Where datagrams go, and what was dropped.
pub type FrameSink<'s> = &'s mut dyn FnMut(Result<&[u8], FrameError>);

/// Finds frames in octets that come in pieces of any size.
#[derive(Clone, Debug)]
pub struct Deframer {
    framing: Framing,
    crc: bool,
    largest: usize,
    /// What of the frame has come, decoded.
    frame: Vec<u8>,
    /// Octets of it on the line.
    offset: usize,
    state: State,
    counters: DeframerCounters,
}

/// Where in a frame the next octet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At its start.
    Start,
    /// Where any octet may stand.
    Octet,
    /// SLIP: behind ESC.
    Escaped,
    /// COBS: so many octets of a block are left, with a zero behind it or not.
    Block {
        /// Octets, at least one.
        left: u8,
        /// Whether a zero follows if the frame goes on.
        zero: bool,
    },
    /// COBS: behind a block.
    BlockEnd {
        /// Whether a zero follows if the frame goes on.
        zero: bool,
    },
    /// Up to the next limit, all is dropped.
    Skipping,
}

impl Deframer {
    /// For datagrams of at most `largest` octets. Its memory is taken here, and does not grow.
    pub fn new(framing: Framing, crc: bool, largest: usize) -> Self {
        let room = largest + if crc { CRC } else { 0 };
        Self {
            framing,
            crc,
            largest,
            frame: Vec::with_capacity(room),
            offset: 0,
            state: State::Start,
            counters: DeframerCounters::default(),
        }
    }

    /// Takes the next octets of the line, and gives the datagrams that end in them to `sink`, and what was dropped.
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
                    self.state = State::Skipping;
                    continue;
                }
            };
            self.state = state;
            if let Some(octet) = pushed {
                self.push(octet, sink);
            }
        }
    }

    /// What it has seen.
    pub const fn counters(&self) -> DeframerCounters {
        self.counters
    }

    fn push(&mut self, octet: u8, sink: FrameSink<'_>) {
        let most = self.largest + if self.crc { CRC } else { 0 };
        if self.frame.len() < most {
            self.frame.push(octet);
        } else {
            self.drop_frame(FrameError::TooLong { most: self.largest }, sink);
            self.state = State::Skipping;
        }
    }

    /// A limit has come.
    fn end(&mut self, sink: FrameSink<'_>) {
        match self.state {
            // Limits may stand side by side; what was skipped was told.
            State::Start | State::Skipping => {}
            State::Escaped | State::Block { .. } => {
                self.drop_frame(FrameError::CutShort { offset: self.offset }, sink);
            }
            State::Octet | State::BlockEnd { .. } => self.deliver(sink),
        }
        (self.state, self.offset) = (State::Start, 0);
        self.frame.clear();
    }

    fn deliver(&mut self, sink: FrameSink<'_>) {
        let datagram = match (self.crc, self.frame.split_last_chunk::<CRC>()) {
            (false, _) if self.frame.is_empty() => return,
            (false, _) => &self.frame[..],
            (true, None) => {
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
