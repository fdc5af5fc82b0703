//! Frames: headers of DATA frames, and whole control frames. Section 2.2.

use alloc::vec::Vec;
use core::fmt;

/// Version in control frames of SPDY/3 and SPDY/3.1.
const VERSION: u16 = 3;

/// Size of a frame's header, in octets.
pub(super) const HEAD: usize = 8;

/// Maximum size of a frame's data, in octets: 24 bits.
pub(super) const LONGEST: usize = (1 << 24) - 1;

/// Flags. FLAG_FIN: the sender's last frame of a stream; FLAG_UNIDIRECTIONAL: the receiver sends none.
const FIN: u8 = 0x01;
const UNIDIRECTIONAL: u8 = 0x02;

/// Status code of RST_STREAM. Section 2.6.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset(pub u32);

impl Reset {
    /// The peer violated the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// The stream was not processed.
    pub const REFUSED_STREAM: Self = Self(3);
    /// The sender no longer wants the stream.
    pub const CANCEL: Self = Self(5);
    /// The peer sent more DATA than the window allowed.
    pub const FLOW_CONTROL_ERROR: Self = Self(7);
}

/// Control frame. Header blocks are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control<'f> {
    /// SYN_STREAM. Section 2.6.1.
    SynStream {
        /// Stream identifier; odd if the client opens the stream.
        stream: u32,
        /// Associated stream; 0: none.
        associated: u32,
        /// Priority; 0 is the highest, 7 the lowest.
        priority: u8,
        /// FLAG_FIN: the sender's last frame of the stream.
        fin: bool,
        /// FLAG_UNIDIRECTIONAL: no reply follows.
        unidirectional: bool,
        /// Header block.
        block: &'f [u8],
    },
    /// SYN_REPLY. Section 2.6.2.
    SynReply {
        /// Stream that is answered.
        stream: u32,
        /// FLAG_FIN: the sender's last frame of the stream.
        fin: bool,
        /// Header block.
        block: &'f [u8],
    },
    /// RST_STREAM. Section 2.6.3.
    RstStream {
        /// Stream that ends.
        stream: u32,
        /// Status code.
        reset: Reset,
    },
    /// SETTINGS: pairs of an identifier and a value. Section 2.6.4.
    Settings(Vec<(u32, u32)>),
    /// PING. Section 2.6.5.
    Ping(u32),
    /// GOAWAY. Section 2.6.6.
    GoAway {
        /// Last stream of the receiver's that was processed.
        last_good: u32,
        /// Status code: 0 for OK, 1 for a protocol error.
        status: u32,
    },
    /// HEADERS. Section 2.6.7.
    Headers {
        /// Stream of the headers.
        stream: u32,
        /// FLAG_FIN: the sender's last frame of the stream.
        fin: bool,
        /// Header block.
        block: &'f [u8],
    },
    /// WINDOW_UPDATE. Section 2.6.8.
    WindowUpdate {
        /// Stream; 0: the connection.
        stream: u32,
        /// Additional octets that may be sent.
        delta: u32,
    },
    /// Unknown type, which is ignored.
    Other(u16),
}

/// SETTINGS_INITIAL_WINDOW_SIZE. Section 2.6.4.
pub(super) const INITIAL_WINDOW_SIZE: u32 = 7;

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameHead {
    Data { stream: u32, fin: bool, len: usize },
    Control { kind: u16, flags: u8, len: usize },
}

/// Error in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpdyFrameError {
    /// Another version, or another protocol.
    Version,
    /// The length does not fit the type.
    Length,
    /// Invalid stream identifier.
    Stream,
    /// Control frame that exceeds the limit.
    TooLarge,
}

impl fmt::Display for SpdyFrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "not a frame of SPDY/3",
            Self::Length => "frame with a wrong length",
            Self::Stream => "frame with an invalid stream identifier",
            Self::TooLarge => "control frame that exceeds the limit",
        })
    }
}

impl core::error::Error for SpdyFrameError {}

impl FrameHead {
    pub(super) fn read(octets: [u8; HEAD]) -> Result<Self, SpdyFrameError> {
        let [a, b, c, d, flags, rest @ ..] = octets;
        let len = rest.iter().fold(0, |len, octet| len << 8 | usize::from(*octet));
        if a & 0x80 == 0 {
            let stream = u32::from_be_bytes([a, b, c, d]);
            return if stream == 0 {
                Err(SpdyFrameError::Stream)
            } else {
                Ok(Self::Data { stream, fin: flags & FIN != 0, len })
            };
        }
        if u16::from_be_bytes([a & 0x7F, b]) != VERSION {
            return Err(SpdyFrameError::Version);
        }
        Ok(Self::Control { kind: u16::from_be_bytes([c, d]), flags, len })
    }

    fn write(self, out: &mut Vec<u8>) {
        let (first, flags, len) = match self {
            Self::Data { stream, fin, len } => (stream, if fin { FIN } else { 0 }, len),
            Self::Control { kind, flags, len } => {
                (0x8000_0000 | (u32::from(VERSION) << 16) | u32::from(kind), flags, len)
            }
        };
        out.extend_from_slice(&first.to_be_bytes());
        out.extend_from_slice(&((u32::from(flags) << 24) | len as u32).to_be_bytes());
    }
}

/// Writes a DATA frame. Section 2.2.2. **At most [`LONGEST`] octets.**
pub(super) fn write_data(stream: u32, fin: bool, octets: &[u8], out: &mut Vec<u8>) {
    FrameHead::Data { stream, fin, len: octets.len() }.write(out);
    out.extend_from_slice(octets);
}

/// Reads the next 32-bit number, without its reserved first bit.
fn number<'f>(octets: &mut &'f [u8]) -> Result<u32, SpdyFrameError> {
    let (number, rest): (&'f [u8; 4], &'f [u8]) = octets.split_first_chunk().ok_or(SpdyFrameError::Length)?;
    *octets = rest;
    Ok(u32::from_be_bytes(*number))
}

fn stream(octets: &mut &[u8]) -> Result<u32, SpdyFrameError> {
    match number(octets)? & 0x7FFF_FFFF {
        0 => Err(SpdyFrameError::Stream),
        stream => Ok(stream),
    }
}

impl<'f> Control<'f> {
    /// Parses a control frame's data.
    pub(super) fn read(kind: u16, flags: u8, mut octets: &'f [u8]) -> Result<Self, SpdyFrameError> {
        let rest = &mut octets;
        let fin = flags & FIN != 0;
        let control = match kind {
            1 => {
                let (stream, associated) = (stream(rest)?, number(rest)? & 0x7FFF_FFFF);
                let ([priority, _slot], block) = rest.split_first_chunk().ok_or(SpdyFrameError::Length)?;
                let (priority, unidirectional) = (priority >> 5, flags & UNIDIRECTIONAL != 0);
                return Ok(Self::SynStream { stream, associated, priority, fin, unidirectional, block });
            }
            2 => return Ok(Self::SynReply { stream: stream(rest)?, fin, block: rest }),
            3 => Self::RstStream { stream: stream(rest)?, reset: Reset(number(rest)?) },
            4 => {
                let count = number(rest)?;
                let (pairs, behind) = rest.as_chunks::<8>();
                if pairs.len() as u64 != u64::from(count) || !behind.is_empty() {
                    return Err(SpdyFrameError::Length);
                }
                let pair = |[_, a, b, c, value @ ..]: &[u8; 8]| {
                    (u32::from_be_bytes([0, *a, *b, *c]), u32::from_be_bytes(*value))
                };
                return Ok(Self::Settings(pairs.iter().map(pair).collect()));
            }
            6 => Self::Ping(number(rest)?),
            7 => Self::GoAway { last_good: number(rest)? & 0x7FFF_FFFF, status: number(rest)? },
            8 => return Ok(Self::Headers { stream: stream(rest)?, fin, block: rest }),
            9 => {
                Self::WindowUpdate { stream: number(rest)? & 0x7FFF_FFFF, delta: number(rest)? & 0x7FFF_FFFF }
            }
            other => return Ok(Self::Other(other)),
        };
        if octets.is_empty() { Ok(control) } else { Err(SpdyFrameError::Length) }
    }

    /// Writes the frame.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let (kind, flags) = match self {
            Self::SynStream { fin, unidirectional, .. } => {
                (1, (u8::from(*fin) * FIN) | (u8::from(*unidirectional) * UNIDIRECTIONAL))
            }
            Self::SynReply { fin, .. } => (2, u8::from(*fin) * FIN),
            Self::RstStream { .. } => (3, 0),
            Self::Settings(_) => (4, 0),
            Self::Ping(_) => (6, 0),
            Self::GoAway { .. } => (7, 0),
            Self::Headers { fin, .. } => (8, u8::from(*fin) * FIN),
            Self::WindowUpdate { .. } => (9, 0),
            Self::Other(kind) => (*kind, 0),
        };
        FrameHead::Control { kind, flags, len: 0 }.write(out);
        let mut numbers = |numbers: &[u32]| {
            numbers.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
        };
        match self {
            Self::SynStream { stream, associated, priority, block, .. } => {
                numbers(&[*stream, *associated]);
                out.extend_from_slice(&[priority << 5, 0]);
                out.extend_from_slice(block);
            }
            Self::SynReply { stream, block, .. } | Self::Headers { stream, block, .. } => {
                numbers(&[*stream]);
                out.extend_from_slice(block);
            }
            Self::RstStream { stream, reset } => numbers(&[*stream, reset.0]),
            Self::Settings(pairs) => {
                numbers(&[pairs.len() as u32]);
                pairs.iter().for_each(|(name, value)| numbers(&[*name, *value]));
            }
            Self::Ping(number) => numbers(&[*number]),
            Self::GoAway { last_good, status } => numbers(&[*last_good, *status]),
            Self::WindowUpdate { stream, delta } => numbers(&[*stream, *delta]),
            Self::Other(_) => {}
        }
        let len = (out.len() - start - HEAD) as u32;
        if let Some([_, low @ ..]) = out.get_mut(start + 4..start + HEAD) {
            low.copy_from_slice(&len.to_be_bytes()[1..]);
        }
    }
}
