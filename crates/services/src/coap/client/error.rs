//! Errors of a client, in words.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use crate::resolve::ResolveError;
use thinair_coap::{CallError, Code, RequestError, code};
use thinair_dtls::Failure;

/// Reason why there is no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The name is unknown, or cannot be resolved.
    #[error("cannot find the host `{host}`: {why}")]
    Resolve {
        /// Host as in the URI.
        host: String,
        /// Reason in the words of the system.
        why: String,
    },
    /// No address has answered: reasons of all attempts, in order.
    #[error("{}", describe(.0))]
    Failed(Vec<FailedAttempt>),
    /// The request cannot be sent at all.
    #[error("the request cannot be sent: {0}")]
    Request(#[from] RequestError),
    /// The time limit of the task is over.
    #[error("no response within {limit:?}{}", .latest.as_ref().map_or_else(String::new, ToString::to_string))]
    TimeLimit {
        /// The limit.
        limit: Duration,
        /// Receiver of the request, and number of messages; `None` if it was not sent.
        latest: Option<SentRequest>,
    },
    /// A signal has ended the task.
    #[error("interrupted")]
    Interrupted,
    /// `coaps://` needs a key.
    #[error("coaps:// needs a pre-shared key")]
    NoKey,
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

/// Receiver of a request, and number of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentRequest {
    /// Receiver.
    pub address: SocketAddr,
    /// Number of messages, retransmissions included.
    pub transmissions: u64,
}

impl std::fmt::Display for SentRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (address, times) = (self.address, times(self.transmissions));
        write!(f, "; {address} was sent {times}")
    }
}

/// Returns `1 message`, or `2 messages`.
fn times(count: u64) -> String {
    if count == 1 { "1 message".to_owned() } else { format!("{count} messages") }
}

/// Failed attempt at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    /// Address.
    pub address: SocketAddr,
    /// Reason.
    pub why: AddressError,
}

/// Reason why an address gave no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The port is closed, as its system reports.
    #[error("nobody listens there{}", if *.icmp { " (ICMP: port unreachable)" } else { "" })]
    Refused {
        /// True if it was reported by ICMP, false if by TCP.
        icmp: bool,
    },
    /// No route, or no permission, as this machine reports.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// A group: a request to one server may not be sent to it. RFC 7252, section 8.1.
    #[error("is a multicast address: this request is for one server")]
    Group,
    /// A request to a group, and an address of one host.
    #[error("is no multicast address: this request is for a group")]
    NoGroup,
    /// The handshake of TCP was not answered.
    #[error("no TCP connection within {0:?}")]
    ConnectTimeout(Duration),
    /// There is no session of DTLS.
    #[error("{0}")]
    Dtls(Failure),
    /// A datagram exceeds the path MTU.
    #[error("a datagram of {octets} octets exceeds the path MTU; use smaller blocks")]
    DatagramTooLarge {
        /// Length of the CoAP message, in octets.
        octets: usize,
    },
    /// The stream has ended before the response.
    #[error("the connection was closed before there was a response{}", .0.as_ref().map_or_else(String::new, |why| format!(": {why}")))]
    Closed(Option<String>),
    /// The request was not acknowledged.
    #[error(
        "no answer: the request was sent {transmissions} times over {over:.1?}{}",
        .icmp.as_ref().map_or_else(String::new, |icmp| format!(" ({icmp})"))
    )]
    NoAnswer {
        /// Number of transmissions.
        transmissions: u64,
        /// Time from the first transmission to giving up.
        over: Duration,
        /// ICMP error reported meanwhile, for example by routers.
        icmp: Option<String>,
    },
    /// The message layer, or a block-wise transfer, has failed.
    #[error("{0}")]
    Call(CallError),
}

impl AddressError {
    /// True if the request may be sent to another address of the host.
    pub(super) fn allows_another(&self, method: Code) -> bool {
        match self {
            Self::Refused { .. } | Self::Unreachable(_) | Self::ConnectTimeout(_) => true,
            // The server may have processed it, and its acknowledgement may be lost. RFC 7252, section 5.1;
            // RFC 8132, section 3.
            Self::NoAnswer { .. } | Self::Closed(_) | Self::Dtls(_) => {
                !matches!(method, Code::POST | code::PATCH)
            }
            Self::DatagramTooLarge { .. } | Self::Call(_) | Self::Group | Self::NoGroup => false,
        }
    }
}

fn describe(attempts: &[FailedAttempt]) -> String {
    let mut text = String::new();
    for (index, FailedAttempt { address, why }) in attempts.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = write!(text, "{}{address}: {why}", if index > 0 { "; " } else { "" });
    }
    text
}
