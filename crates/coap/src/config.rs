//! How an endpoint is set, and how much memory it may use.

use core::time::Duration;

use crate::block::BlockSize;
use crate::congestion::{Algorithm, Transmission};
use crate::message::MAX_MESSAGE;
use crate::number;

/// How Tokens are chosen. RFC 7252, section 5.3.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tokens {
    /// They count, in as many octets as the requests under way need; most often one. They compress well. Somebody who
    /// cannot see requests can guess them: for paths that are protected otherwise.
    #[default]
    Counting,
    /// Random ones of this many octets, 1 to 8; 4 or more are meant to be hard to guess.
    Random(u8),
}

/// Settings of an endpoint.
///
/// ```
/// use thinair_coap::{Config, Limits, Policy};
///
/// // A sensor that answers on the Internet.
/// let config = Config { limits: Limits::DEVICE, policy: Policy::INTERNET, ..Config::default() };
/// assert_eq!(config.limits.max_peers, 8);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Transmission, congestion control, and timeouts.
    pub timing: Timing,
    /// Bounds of memory.
    pub limits: Limits,
    /// Blocks, options, tokens, and protection of others.
    pub policy: Policy,
}

/// Transmission parameters, congestion control, and timeouts of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Transmission parameters of a peer of which nothing else was said.
    pub transmission: Transmission,
    /// Congestion control of a peer of which nothing else was said.
    pub congestion: Algorithm,
    /// How long a request waits for its response before it is acknowledged on its own, and the response becomes a separate
    /// one. 100 ms; below the timeout of clients that adapt.
    pub processing_delay: Duration,
    /// How long a client waits for the response once its request was acknowledged, or was not confirmable. 93 s.
    pub response_timeout: Duration,
    /// How long a transfer may rest. 247 s, EXCHANGE_LIFETIME.
    pub transfer_timeout: Duration,
    /// At least every so often a notification is confirmable. 24 h, the most that RFC 7641, section 4.5, allows.
    pub confirm_notifications: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            transmission: Transmission::default(),
            congestion: Algorithm::default(),
            processing_delay: Duration::from_millis(100),
            response_timeout: Duration::from_secs(93),
            transfer_timeout: Duration::from_secs(247),
            confirm_notifications: Duration::from_secs(86_400),
        }
    }
}

/// Bounds of the memory that an endpoint keeps for its peers.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Peers of which something is known. The one that was not heard of for longest is forgotten. 1,024.
    pub max_peers: usize,
    /// Requests that wait for the application's response. More are answered with 5.03. 256.
    pub max_requests: usize,
    /// Requests under way. 256.
    pub max_calls: usize,
    /// Messages that are not acknowledged, or wait for NSTART. 512.
    pub max_flights: usize,
    /// Observers of all resources. 256.
    pub max_observers: usize,
    /// Replies that wait for [`poll_transmit`](crate::Endpoint::poll_transmit). More are dropped, as by a full socket. 1,024.
    pub max_replies: usize,
    /// Messages of peers that are remembered, so that a duplicate is not acted on again. If there are more within
    /// EXCHANGE_LIFETIME, the oldest are forgotten early, which [`Counters`](crate::Counters) tell. 4,096.
    pub remembered: usize,
    /// Octets of responses that are remembered, to be sent again for a duplicate. 64 KiB. A duplicate of a GET or FETCH
    /// whose response is gone is acted on again, others are left without an answer.
    pub remembered_octets: usize,
    /// Octets of a message in a datagram that is sent, at most; [`MAX_MESSAGE`].
    pub max_message: usize,
    /// Max-Message-Size that is told to the other side of a stream: octets of a message that are taken. RFC 8323, section
    /// 5.3.1. 64 KiB + 1 KiB.
    pub max_stream_message: usize,
    /// Largest body that is reassembled from blocks, in octets. Default: 1 MiB + 16 KiB.
    pub max_body: usize,
    /// Octets of all bodies together that are held for others: uploads that are not complete, responses of which not all
    /// blocks were fetched. 4 MiB.
    pub max_bodies: usize,
    /// Block-wise uploads, and responses that are held, at the same time. 64 each.
    pub max_transfers: usize,
}

impl Limits {
    /// Those of a server with memory to spare.
    pub const SERVER: Self = Self {
        max_peers: 1_024,
        max_requests: 256,
        max_calls: 256,
        max_flights: 512,
        max_observers: 256,
        max_replies: 1_024,
        remembered: 4_096,
        remembered_octets: 1 << 16,
        max_message: MAX_MESSAGE,
        max_stream_message: 65 << 10,
        max_body: 1 << 20 | 1 << 14,
        max_bodies: 4 << 20,
        max_transfers: 64,
    };

    /// Those of a device that talks to a few: at most 32 KiB of bodies, 8 peers and as many observers.
    pub const DEVICE: Self = Self {
        max_peers: 8,
        max_requests: 4,
        max_calls: 4,
        max_flights: 8,
        max_observers: 8,
        max_replies: 8,
        remembered: 32,
        remembered_octets: 2_048,
        max_stream_message: 1_152,
        max_body: 1 << 14,
        max_bodies: 1 << 15,
        max_transfers: 2,
        ..Self::SERVER
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::SERVER
    }
}

/// Behavior of an endpoint towards its peers: size of blocks, options, amplification, tokens.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Size of the blocks that are proposed and offered.
    pub block_size: BlockSize,
    /// Critical options that the application acts on. A request with another one is refused with 4.02.
    pub recognised: &'static [u16],
    /// A response to a peer that has not shown that it receives what is sent to its address has at most this many times
    /// the octets of its request; otherwise the peer is asked to echo a value first. RFC 9175, section 2.3. Nothing: no
    /// limit, for networks where addresses cannot be spoofed. On the Internet: 3.
    pub amplification: Option<u8>,
    /// How Tokens are chosen.
    pub tokens: Tokens,
}

impl Policy {
    /// For a path that is protected otherwise, on which addresses are not spoofed and nobody guesses Tokens.
    pub const PROTECTED: Self = Self {
        block_size: BlockSize::MAX,
        recognised: RECOGNISED,
        amplification: None,
        tokens: Tokens::Counting,
    };

    /// For a path without protection: RFC 9175, section 2.3, and RFC 7252, section 5.3.1.
    pub const INTERNET: Self = Self { amplification: Some(3), tokens: Tokens::Random(8), ..Self::PROTECTED };
}

impl Default for Policy {
    fn default() -> Self {
        Self::PROTECTED
    }
}

/// Default of [`Policy::recognised`]: options that the endpoint and its resources handle.
pub const RECOGNISED: &[u16] = &[
    // The most frequent ones first.
    number::URI_PATH,
    number::URI_QUERY,
    number::IF_MATCH,
    number::URI_HOST,
    number::IF_NONE_MATCH,
    number::URI_PORT,
    number::ACCEPT,
    number::BLOCK2,
    number::BLOCK1,
];
