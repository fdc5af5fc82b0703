//! Why there is no response, in words.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use crate::resolve::ResolveError;
use thinair_coap::{CallError, Code, RequestError, code};

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The name is not known, or cannot be asked for.
    #[error("cannot find the host `{host}`: {why}")]
    Resolve {
        /// As in the URI.
        host: String,
        /// In the words of the system.
        why: String,
    },
    /// What became of each address that was tried, in their order.
    #[error("{}", told(.0))]
    Failed(Vec<Attempt>),
    /// The request cannot be sent at all.
    #[error("the request cannot be sent: {0}")]
    Request(#[from] RequestError),
    /// The time for all of it is over.
    #[error("no response within {limit:?}{}", .latest.as_ref().map_or_else(String::new, ToString::to_string))]
    TimeLimit {
        /// What the limit was.
        limit: Duration,
        /// Whom the request was sent to, and how often; nothing if it was not sent.
        latest: Option<Sent>,
    },
    /// A signal has ended it.
    #[error("interrupted")]
    Interrupted,
    /// The system has no room for files or threads.
    #[error(transparent)]
    System(#[from] thinair_os::Error),
    /// The system gives no random numbers.
    #[error("the system has no random numbers")]
    NoRandomness,
}

impl From<ResolveError> for ClientError {
    fn from(why: ResolveError) -> Self {
        match why {
            ResolveError::Unknown { host, why } => Self::Resolve { host, why },
            ResolveError::Interrupted => Self::Interrupted,
            ResolveError::System(why) => Self::System(why),
        }
    }
}

/// Whom a request was sent to, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Whom.
    pub address: SocketAddr,
    /// Messages, those that were sent again included.
    pub transmissions: u64,
}

impl std::fmt::Display for Sent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (address, times) = (self.address, times(self.transmissions));
        write!(f, "; {address} was sent {times}")
    }
}

/// `1 message`, or `2 messages`.
fn times(count: u64) -> String {
    if count == 1 { "1 message".to_owned() } else { format!("{count} messages") }
}

/// An address that did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Which one.
    pub address: SocketAddr,
    /// Why.
    pub why: AddressError,
}

/// Why there is no response of an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Its system says that the port is closed.
    #[error("nobody listens there{}", if *.icmp { " (ICMP: port unreachable)" } else { "" })]
    Refused {
        /// By ICMP; TCP says it by itself.
        icmp: bool,
    },
    /// No route, or no permission: the system of this machine says so.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// TCP's handshake was not answered.
    #[error("no TCP connection within {0:?}")]
    ConnectTimeout(Duration),
    /// A datagram that is larger than what fits through.
    #[error("a datagram of {octets} octets does not fit through")]
    DatagramTooLarge {
        /// Octets of CoAP.
        octets: usize,
    },
    /// The stream has ended before the response.
    #[error("the connection was closed before there was a response{}", .0.as_ref().map_or_else(String::new, |why| format!(": {why}")))]
    Closed(Option<String>),
    /// Nobody has acknowledged the request.
    #[error(
        "no answer: the request was sent {transmissions} times over {over:.1?}{}",
        .icmp.as_ref().map_or_else(String::new, |icmp| format!(" ({icmp})"))
    )]
    NoAnswer {
        /// How often it was sent.
        transmissions: u64,
        /// From the first transmission until it was given up.
        over: Duration,
        /// What was told on the way, as by routers.
        icmp: Option<String>,
    },
    /// The message layer, or a block-wise transfer, has failed.
    #[error("{0}")]
    Call(CallError),
}

impl AddressError {
    /// Whether another address of the host may be asked for the same.
    pub(super) fn allows_another(&self, method: Code) -> bool {
        match self {
            Self::Refused { .. } | Self::Unreachable(_) | Self::ConnectTimeout(_) => true,
            // It may have been done, and its acknowledgement lost. RFC 7252, section 5.1; RFC 8132, section 3.
            Self::NoAnswer { .. } | Self::Closed(_) => !matches!(method, Code::POST | code::PATCH),
            Self::DatagramTooLarge { .. } | Self::Call(_) => false,
        }
    }
}

fn told(attempts: &[Attempt]) -> String {
    let mut text = String::new();
    for (index, Attempt { address, why }) in attempts.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = write!(text, "{}{address}: {why}", if index > 0 { "; " } else { "" });
    }
    text
}
