//! Errors of connections and requests.

use core::fmt;

use crate::spdy::{HeaderBlockError, SpdyFrameError};

/// Reason to close a connection or to reject a request. Each variant names the side that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpError {
    /// The caller: a host or a path has octets that are not allowed in a request.
    Target,
    /// The caller: no further request is possible, as the previous response is incomplete or ends the connection.
    NoOther,
    /// The peer: invalid line in a head.
    Head,
    /// The peer: a head, or the headers of a stream, exceeds this limit in octets.
    HeadTooLarge(usize),
    /// The peer: the length of the body is ambiguous or unsupported.
    BodyLength,
    /// The peer: a body exceeds this limit in octets.
    BodyTooLarge(usize),
    /// The peer, or the network: the stream ended after this many octets of an incomplete body, or before the body.
    Truncated(usize),
    /// The peer: it reset a stream of SPDY with this status code.
    Reset(u32),
    /// The peer: invalid SPDY frame.
    Frame(SpdyFrameError),
    /// The peer: invalid SPDY header block.
    HeaderBlock(HeaderBlockError),
    /// The peer: octets after the end of the response, or a second response.
    Unexpected,
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target => {
                f.write_str("the host or the path has characters that are not allowed in a request")
            }
            Self::NoOther => f.write_str("the connection accepts no further request"),
            Self::Head => f.write_str("the response is invalid in this protocol"),
            Self::HeadTooLarge(limit) => {
                write!(f, "the headers of the response exceed the limit of {limit} octets")
            }
            Self::BodyLength => f.write_str("the length of the object is missing or ambiguous"),
            Self::BodyTooLarge(limit) => write!(f, "the object exceeds the limit of {limit} octets"),
            Self::Truncated(octets) => {
                write!(f, "the connection was closed after {octets} octets of the object, before its end")
            }
            Self::Reset(reason) => {
                write!(f, "the server reset the stream (status {reason} of RST_STREAM)")
            }
            Self::Frame(why) => write!(f, "invalid response: {why}"),
            Self::HeaderBlock(why) => write!(f, "invalid headers in the response: {why}"),
            Self::Unexpected => f.write_str("octets follow the end of the response"),
        }
    }
}

impl core::error::Error for HttpError {}

impl From<SpdyFrameError> for HttpError {
    fn from(why: SpdyFrameError) -> Self {
        Self::Frame(why)
    }
}

impl From<HeaderBlockError> for HttpError {
    fn from(why: HeaderBlockError) -> Self {
        Self::HeaderBlock(why)
    }
}
