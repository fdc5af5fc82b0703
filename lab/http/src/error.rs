//! What is wrong with what came.

use core::fmt;

use crate::spdy::{FrameError, HeaderBlockError};

/// Why a connection is to be given up, or a request cannot be made. Whose fault it is stands at each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The caller: a host or a path has octets that cannot stand in a request.
    Target,
    /// The caller: there can be no other request, as the response to this one is not there, or the connection ends with it.
    NoOther,
    /// The peer: a line of the head is none.
    Head,
    /// The peer: a head, or the headers of a stream, that is longer than the limit in octets.
    HeadTooLarge(usize),
    /// The peer: it does not tell how long the body is in one way that can be understood.
    BodyLength,
    /// The peer: a body that is longer than the limit in octets.
    BodyTooLarge(usize),
    /// The peer, or the network: the stream has ended after so many octets of a body that has more, or before it.
    Truncated(usize),
    /// The peer: a stream of SPDY was reset, for this reason.
    Reset(u32),
    /// The peer: frames of SPDY that make no sense.
    Frame(FrameError),
    /// The peer: headers of SPDY that make no sense.
    HeaderBlock(HeaderBlockError),
    /// The peer: octets behind the end of the response, or a second one.
    Unexpected,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target => f.write_str("the host or the path has characters that cannot stand in a request"),
            Self::NoOther => f.write_str("the connection cannot have another request"),
            Self::Head => f.write_str("what the server sent is no response of this protocol"),
            Self::HeadTooLarge(limit) => {
                write!(f, "the headers of the response are longer than {limit} octets")
            }
            Self::BodyLength => f.write_str("the server does not say clearly how long the object is"),
            Self::BodyTooLarge(limit) => write!(f, "the object is longer than {limit} octets"),
            Self::Truncated(octets) => {
                write!(f, "the connection was closed after {octets} octets of the object, which are not all")
            }
            Self::Reset(reason) => {
                write!(f, "the server has reset the stream (status {reason} of RST_STREAM)")
            }
            Self::Frame(why) => write!(f, "what the server sent is {why}"),
            Self::HeaderBlock(why) => write!(f, "the headers that the server sent are of no use: {why}"),
            Self::Unexpected => f.write_str("the server sent more than the response"),
        }
    }
}

impl core::error::Error for Error {}

impl From<FrameError> for Error {
    fn from(why: FrameError) -> Self {
        Self::Frame(why)
    }
}

impl From<HeaderBlockError> for Error {
    fn from(why: HeaderBlockError) -> Self {
        Self::HeaderBlock(why)
    }
}
