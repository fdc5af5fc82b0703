//! What an endpoint tells its application.

use core::fmt;
use core::time::Duration;

use crate::code::Code;
use crate::request::Received;
use crate::table::Key;

/// A request of a peer that waits for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(crate) Key);

/// A request to a peer that waits for its response, or for notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(crate) Key);

/// A peer that observes a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObserverId(pub(crate) Key);

/// What a request says of observing. RFC 7641, section 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observe {
    /// Observe 0: the client wants notifications; [`Endpoint::accept`](crate::Endpoint::accept) gives it its wish.
    Register,
    /// Observe 1: the client wants no more; its entry is gone already.
    Deregister,
}

/// Something for the application. `'d` is the life of the datagram that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'d, P> {
    /// A peer asks for something: [`Endpoint::respond`](crate::Endpoint::respond), now or later.
    Request {
        /// For the response.
        id: RequestId,
        /// Who asks.
        peer: P,
        /// Whether it wants to observe.
        observe: Option<Observe>,
        /// The request, with its whole body.
        message: Received<'d>,
    },
    /// The response to a request: the call is over, whatever the response says.
    Response {
        /// Which request.
        call: CallId,
        /// The response, with its whole body.
        message: Received<'d>,
    },
    /// The state of a resource that is observed: the first response, or a notification. More follow. If one that is not a
    /// success arrives, it is a `Response`, and the observation is over.
    Notification {
        /// Which request.
        call: CallId,
        /// The representation.
        message: Received<'d>,
    },
    /// There will be no response, or no more notifications.
    Failed {
        /// Which request.
        call: CallId,
        /// Why.
        error: CallError,
    },
    /// A block-wise transfer goes on.
    Progress {
        /// Which request.
        call: CallId,
        /// Octets of the request's body that the server has.
        sent: usize,
        /// Octets of the response's body that have arrived.
        received: usize,
        /// Octets of the response's body, if the server has told (Size2).
        total: Option<usize>,
    },
    /// A client observes no more. Nothing can be sent to it any longer.
    ObserverGone {
        /// Which one.
        observer: ObserverId,
        /// Why.
        reason: Gone,
    },
    /// A separate response did not arrive.
    NotDelivered {
        /// Which request.
        request: RequestId,
        /// Why.
        reason: Gone,
    },
    /// The other side of a stream has sent its CSM: what it can take is known.
    StreamReady {
        /// Which one.
        peer: P,
        /// Max-Message-Size in octets.
        max_message: usize,
        /// Block-Wise-Transfer: it knows Block1 and Block2.
        block_wise: bool,
    },
    /// The peer has answered a ping.
    Pong {
        /// Who.
        peer: P,
        /// How long it took.
        after: Duration,
    },
    /// A ping was not answered.
    PingFailed {
        /// Who is silent.
        peer: P,
    },
    /// The other side of a stream wants it to end once what is under way is done: no further requests, then
    /// [`Endpoint::disconnected`](crate::Endpoint::disconnected).
    Released {
        /// Which one.
        peer: P,
    },
    /// A stream is over. Close it when [`Endpoint::poll_transmit`](crate::Endpoint::poll_transmit) has no more for it.
    Closed {
        /// Which one.
        peer: P,
        /// Why.
        reason: Closing,
    },
}

/// Why there is no response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// Nobody has acknowledged the request: is the peer there, is the path up, is ACK_TIMEOUT below the round trip?
    Timeout {
        /// How often it was sent.
        transmissions: u8,
    },
    /// The request was acknowledged, or was not confirmable, and no response came within
    /// [`Timing::response_timeout`](crate::Timing::response_timeout).
    NoResponse,
    /// The peer has rejected the request with a Reset: it does not speak CoAP, or lacks context.
    Reset,
    /// The body of the response has more than [`Limits::max_body`](crate::Limits::max_body) octets.
    TooLarge {
        /// Octets that are allowed.
        limit: usize,
    },
    /// The server does not take bodies of this size: even the smallest message is above what it takes.
    MessageTooLarge {
        /// Octets that the peer takes.
        limit: usize,
    },
    /// The representation has changed while its blocks were fetched, several times in a row.
    Changed,
    /// The server's blocks make no sense: out of order, of another size, without end.
    BadBlock,
    /// The response has a critical option that is not known.
    BadOption {
        /// Option Number.
        number: u16,
    },
    /// [`Endpoint::cancel`](crate::Endpoint::cancel).
    Cancelled,
    /// The stream has ended.
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
                write!(f, "the response has more than {limit} octets, which is the limit")
            }
            Self::MessageTooLarge { limit } => {
                write!(f, "the peer takes no message of more than {limit} octets")
            }
            Self::Changed => write!(f, "the representation has changed again and again while it was fetched"),
            Self::BadBlock => write!(f, "the server's blocks do not follow each other"),
            Self::BadOption { number } => {
                write!(f, "the response has option {number}, which is critical and not known")
            }
            Self::Cancelled => write!(f, "cancelled"),
            Self::Closed => write!(f, "the stream has ended"),
        }
    }
}

impl core::error::Error for CallError {}

/// Why a request cannot be sent. The caller is at fault, or out of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// [`Limits::max_calls`](crate::Limits::max_calls) are under way.
    TooManyCalls,
    /// [`Limits::max_flights`](crate::Limits::max_flights) messages wait.
    TooManyFlights,
    /// [`Limits::max_peers`](crate::Limits::max_peers) are busy.
    TooManyPeers,
    /// The code is not a method.
    NotAMethod(Code),
    /// An option has a value that cannot be said.
    Option,
    /// Options and one block do not fit into a message.
    TooLarge {
        /// Octets of a message.
        limit: usize,
    },
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
            Self::Option => write!(f, "an option has more octets than can be said"),
            Self::TooLarge { limit } => write!(f, "options and one block have more than {limit} octets"),
            Self::Closed => write!(f, "the stream has ended"),
        }
    }
}

impl core::error::Error for RequestError {}

/// Why a response or notification was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RespondError {
    /// It was answered already, or its peer is gone.
    Gone,
    /// The code is not a Response Code.
    NotAResponse(Code),
    /// An option has a value that cannot be said, or options and one block do not fit into a message.
    Option,
    /// [`Limits::max_flights`](crate::Limits::max_flights) messages wait.
    TooManyFlights,
}

impl fmt::Display for RespondError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => write!(f, "it was answered already, or its peer is gone"),
            Self::NotAResponse(code) => write!(f, "{code} is not a Response Code"),
            Self::Option => write!(f, "the options do not fit into a message"),
            Self::TooManyFlights => write!(f, "too many messages wait for their acknowledgement"),
        }
    }
}

impl core::error::Error for RespondError {}

/// Why an observer, or the receiver of a separate response, is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It has answered with a Reset.
    Reset,
    /// It has not acknowledged anything.
    Timeout {
        /// How often the message was sent.
        transmissions: u8,
    },
    /// It has said so: Observe 1.
    Deregistered,
    /// A response that is not a success was sent to it. RFC 7641, section 4.2.
    Error,
    /// Its stream has ended.
    Closed,
}

/// Why a stream is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// [`Endpoint::disconnected`](crate::Endpoint::disconnected).
    Disconnected,
    /// The other side has sent Abort.
    Aborted,
    /// The other side breaks the rules: it was sent an Abort.
    Broken(StreamError),
}

/// What is wrong with a stream. The peer is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// A Token Length above 8.
    Token,
    /// An option that cannot be read, or a Payload Marker without a payload.
    Format,
    /// A message of more octets than are taken.
    TooLarge {
        /// Octets of the message.
        length: usize,
        /// Octets that are taken.
        limit: usize,
    },
    /// The first message is not a CSM. RFC 8323, section 5.3.
    NoCsm,
    /// A signal with a critical option that is not known. RFC 8323, section 5.2.
    BadOption {
        /// Option Number.
        number: u16,
    },
    /// More than the send buffer of the stream can hold is owed to the other side, which does not read.
    Backlog,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token => write!(f, "a Token of more than 8 octets"),
            Self::Format => write!(f, "a message that cannot be read"),
            Self::TooLarge { length, limit } => write!(f, "a message of {length} octets, {limit} are taken"),
            Self::NoCsm => write!(f, "the first message is not a CSM"),
            Self::BadOption { number } => {
                write!(f, "a signal with option {number}, which is critical and not known")
            }
            Self::Backlog => write!(f, "the other side does not read what is owed to it"),
        }
    }
}

impl core::error::Error for StreamError {}

impl<P> Event<'_, P> {
    /// The same, on its own.
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
