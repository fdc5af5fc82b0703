//! Events of an endpoint for its application, and errors.

use core::fmt;
use core::time::Duration;

use crate::code::{self, Code};
use crate::request::Received;
use crate::table::SlotKey;

/// Identifies a request of a peer that waits for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(crate) SlotKey);

/// Identifies a request to a peer that waits for its response, or for notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(crate) SlotKey);

/// Identifies a peer that observes a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObserverId(pub(crate) SlotKey);

/// Observe option of a request. RFC 7641, section 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observe {
    /// Observe 0: the client wants notifications; [`Endpoint::accept`](crate::Endpoint::accept) adds it to the list.
    Register,
    /// Observe 1: the client wants no more; its entry is removed already.
    Deregister,
}

/// Event for the application. `'d` is the lifetime of the datagram that caused it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'d, P> {
    /// Request of a peer. Answer it with [`Endpoint::respond`](crate::Endpoint::respond), now or later.
    Request {
        /// Request to answer.
        id: RequestId,
        /// Sender.
        peer: P,
        /// Observe option, if there is one.
        observe: Option<Observe>,
        /// The request, with its whole body.
        message: Received<'d>,
    },
    /// Response to a request: the call is over, whatever the Response Code.
    Response {
        /// Call that is answered.
        call: CallId,
        /// The response, with its whole body.
        message: Received<'d>,
    },
    /// State of an observed resource: the first response, or a notification. More follow. If one that is not a success
    /// arrives, it is a `Response`, and the observation is over.
    Notification {
        /// Call that observes.
        call: CallId,
        /// The representation.
        message: Received<'d>,
    },
    /// Failure: there will be no response, or no more notifications.
    Failed {
        /// Failed call.
        call: CallId,
        /// Reason.
        error: CallError,
    },
    /// Progress of a block-wise transfer.
    Progress {
        /// Call that transfers.
        call: CallId,
        /// Octets of the request's body that the server has.
        sent: usize,
        /// Octets of the response's body that have arrived.
        received: usize,
        /// Octets of the response's body, if the server has announced them (Size2).
        total: Option<usize>,
    },
    /// End of an observation by a client. Nothing can be sent to the observer any longer.
    ObserverGone {
        /// Observer that is gone.
        observer: ObserverId,
        /// Reason.
        reason: Gone,
    },
    /// Loss of a separate response.
    NotDelivered {
        /// Request that was answered.
        request: RequestId,
        /// Reason.
        reason: Gone,
    },
    /// Arrival of the CSM of the other side of a stream: its limits are known.
    StreamReady {
        /// Peer.
        peer: P,
        /// Max-Message-Size in octets.
        max_message: usize,
        /// True if the CSM has Block-Wise-Transfer: the peer supports Block1 and Block2. Otherwise it may.
        block_wise: bool,
    },
    /// Answer of a peer to a ping.
    Pong {
        /// Peer.
        peer: P,
        /// Round-trip time.
        after: Duration,
    },
    /// Ping without an answer.
    PingFailed {
        /// Peer that did not answer.
        peer: P,
    },
    /// Release of a stream by the other side, which ends once the exchanges under way are complete: no further requests,
    /// then [`Endpoint::disconnected`](crate::Endpoint::disconnected).
    Released {
        /// Peer.
        peer: P,
    },
    /// End of a stream. Close it when [`Endpoint::poll_transmit`](crate::Endpoint::poll_transmit) has no more for it.
    Closed {
        /// Peer.
        peer: P,
        /// Reason.
        reason: Closing,
    },
}

/// Reason for a request without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// No acknowledgement of the request until MAX_TRANSMIT_WAIT. Check that the peer is up, and the path works.
    Timeout {
        /// Number of transmissions.
        transmissions: u8,
    },
    /// No response to a request that was acknowledged or is Non-confirmable, within
    /// [`Timing::response_timeout`](crate::Timing::response_timeout).
    NoResponse,
    /// Reset from the peer, which has rejected the request: it does not implement CoAP, or lacks context.
    Reset,
    /// The body of the response has more than [`Limits::max_body`](crate::Limits::max_body) octets.
    TooLarge {
        /// Limit in octets.
        limit: usize,
    },
    /// Request larger than the server accepts: even the smallest message exceeds its limit.
    MessageTooLarge {
        /// Limit of the peer, in octets.
        limit: usize,
    },
    /// Representation that has changed while its blocks were fetched, several times in a row.
    Changed,
    /// Invalid blocks from the server: out of order, of another size, without end, or without the option that describes
    /// them.
    BadBlock,
    /// 2.31 (Continue) in answer to the last block of a request's body, or to a request without blocks.
    UnexpectedContinue,
    /// Response with an unknown critical option.
    BadOption {
        /// Option Number.
        number: u16,
    },
    /// Response to a protected request that is not protected: the server has no such security context, or rejects it. It may be
    /// anybody's.
    NotProtected {
        /// Response Code.
        code: Code,
    },
    /// Response that cannot be unprotected.
    #[cfg(feature = "oscore")]
    Oscore(crate::oscore::OscoreError),
    /// No Sender Sequence Number: all were used, or none could be stored.
    NoSequenceNumber,
    /// Call of [`Endpoint::cancel`](crate::Endpoint::cancel).
    Cancelled,
    /// End of the stream.
    Closed,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout { transmissions } => {
                write!(f, "no acknowledgement after {transmissions} transmissions")
            }
            Self::NoResponse => write!(f, "no response"),
            Self::Reset => write!(f, "the peer has rejected the request (RST)"),
            Self::TooLarge { limit } => {
                write!(f, "the response exceeds the limit of {limit} octets")
            }
            Self::MessageTooLarge { limit } => {
                write!(f, "the peer accepts no message of more than {limit} octets")
            }
            Self::Changed => write!(f, "the representation changed repeatedly while it was fetched"),
            Self::BadBlock => write!(
                f,
                "the server sent an invalid block: out of order, of another size, without an end, or without its option"
            ),
            Self::UnexpectedContinue => {
                write!(f, "the server answered 2.31 (Continue) although it has the whole request")
            }
            Self::BadOption { number } => {
                write!(f, "the response has the unknown critical option {number}")
            }
            Self::NotProtected { code } => {
                let why = match *code {
                    code::UNAUTHORIZED => {
                        ": the server has no such security context, or had the request before"
                    }
                    code::BAD_REQUEST => ": the server has other keys for this security context",
                    code::BAD_OPTION => ": the server does not support OSCORE",
                    _ => "",
                };
                write!(f, "the answer to the protected request is {code}, not protected{why}")
            }
            #[cfg(feature = "oscore")]
            Self::Oscore(error) => write!(f, "the response is not accepted: {error}"),
            Self::NoSequenceNumber => write!(f, "no Sender Sequence Number could be reserved"),
            Self::Cancelled => write!(f, "cancelled"),
            Self::Closed => write!(f, "the stream has ended"),
        }
    }
}

impl core::error::Error for CallError {}

/// Reason why a request cannot be sent. The caller is at fault, or out of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// [`Limits::max_calls`](crate::Limits::max_calls) requests are under way.
    TooManyCalls,
    /// [`Limits::max_flights`](crate::Limits::max_flights) messages wait.
    TooManyFlights,
    /// [`Limits::max_peers`](crate::Limits::max_peers) peers are in use.
    TooManyPeers,
    /// The code is not a method.
    NotAMethod(Code),
    /// An option value is too long to encode.
    Option,
    /// Options and one block do not fit into a message.
    TooLarge {
        /// Largest message, in octets.
        limit: usize,
    },
    /// The endpoint does not have the security context.
    NoContext,
    /// No Sender Sequence Number: all were used, or none could be stored.
    NoSequenceNumber,
    /// The stream has ended, or is about to.
    Closed,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyCalls => write!(f, "too many requests are under way"),
            Self::TooManyFlights => write!(f, "too many messages wait for their acknowledgement"),
            Self::TooManyPeers => write!(f, "too many peers are busy"),
            Self::NotAMethod(code) => write!(f, "{code} is not a method"),
            Self::Option => write!(f, "an option value is too long to encode"),
            Self::TooLarge { limit } => write!(f, "options and one block have more than {limit} octets"),
            Self::NoContext => write!(f, "the endpoint has no such security context"),
            Self::NoSequenceNumber => write!(f, "no Sender Sequence Number could be reserved"),
            Self::Closed => write!(f, "the stream has ended"),
        }
    }
}

impl core::error::Error for RequestError {}

/// Reason why a response or notification cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RespondError {
    /// The request was answered already, or its peer is gone.
    Gone,
    /// The code is not a Response Code.
    NotAResponse(Code),
    /// An option value is too long to encode, or options and one block do not fit into a message.
    Option,
    /// [`Limits::max_flights`](crate::Limits::max_flights) messages wait.
    TooManyFlights,
    /// The response cannot be protected: there is no Sender Sequence Number, or the context is gone.
    NotProtected,
}

impl fmt::Display for RespondError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => write!(f, "the request was answered already, or its peer is gone"),
            Self::NotAResponse(code) => write!(f, "{code} is not a Response Code"),
            Self::Option => write!(f, "the options do not fit into a message"),
            Self::TooManyFlights => write!(f, "too many messages wait for their acknowledgement"),
            Self::NotProtected => {
                write!(f, "no Sender Sequence Number could be reserved, or the context is gone")
            }
        }
    }
}

impl core::error::Error for RespondError {}

/// Reason why an observer, or the receiver of a separate response, is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It has answered with a Reset.
    Reset,
    /// It has not sent an acknowledgement.
    Timeout {
        /// Number of transmissions.
        transmissions: u8,
    },
    /// It has sent Observe 1.
    Deregistered,
    /// A response that is not a success was sent to it. RFC 7641, section 4.2.
    Error,
    /// Its stream has ended.
    Closed,
}

/// Reason for the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// [`Endpoint::disconnected`](crate::Endpoint::disconnected).
    Disconnected,
    /// The other side has sent Abort.
    Aborted,
    /// The other side violated the protocol, and was sent an Abort.
    Broken(StreamError),
}

/// Protocol violation on a stream. The peer is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// A Token Length above 8.
    Token,
    /// A malformed option, or a Payload Marker without a payload.
    Format,
    /// A message larger than the limit.
    TooLarge {
        /// Octets of the message.
        length: usize,
        /// Largest message accepted, in octets.
        limit: usize,
    },
    /// The first message is not a CSM. RFC 8323, section 5.3.
    NoCsm,
    /// A signal with an unknown critical option. RFC 8323, section 5.2.
    BadOption {
        /// Option Number.
        number: u16,
    },
    /// More octets wait for the other side than the send buffer of the stream can hold, because it does not read.
    Backlog,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token => write!(f, "a Token of more than 8 octets"),
            Self::Format => write!(f, "malformed message"),
            Self::TooLarge { length, limit } => {
                write!(f, "a message of {length} octets exceeds the limit of {limit}")
            }
            Self::NoCsm => write!(f, "the first message is not a CSM"),
            Self::BadOption { number } => {
                write!(f, "a signal with the unknown critical option {number}")
            }
            Self::Backlog => write!(f, "the other side does not read its messages"),
        }
    }
}

impl core::error::Error for StreamError {}

impl<P> Event<'_, P> {
    /// Returns the event with its octets copied.
    pub fn into_owned(self) -> Event<'static, P> {
        match self {
            Self::Request { id, peer, observe, message } => {
                Event::Request { id, peer, observe, message: message.into_owned() }
            }
            Self::Response { call, message } => Event::Response { call, message: message.into_owned() },
            Self::Notification { call, message } => {
                Event::Notification { call, message: message.into_owned() }
            }
            Self::Failed { call, error } => Event::Failed { call, error },
            Self::Progress { call, sent, received, total } => Event::Progress { call, sent, received, total },
            Self::ObserverGone { observer, reason } => Event::ObserverGone { observer, reason },
            Self::NotDelivered { request, reason } => Event::NotDelivered { request, reason },
            Self::StreamReady { peer, max_message, block_wise } => {
                Event::StreamReady { peer, max_message, block_wise }
            }
            Self::Pong { peer, after } => Event::Pong { peer, after },
            Self::PingFailed { peer } => Event::PingFailed { peer },
            Self::Released { peer } => Event::Released { peer },
            Self::Closed { peer, reason } => Event::Closed { peer, reason },
        }
    }
}
