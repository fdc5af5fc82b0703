//! Settings of an endpoint, and bounds of its memory.

use core::time::Duration;

use crate::block::BlockSize;
use crate::congestion::{Algorithm, Transmission};
use crate::message::MAX_MESSAGE;
use crate::number;

/// Choice of Tokens. RFC 7252, section 5.3.1. All messages of a block-wise transfer have one Token; one that is in use is
/// left out, and Tokens become longer when all are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tokens {
    /// Consecutive numbers, in as many octets as the requests under way need; most often one. They compress well. An
    /// attacker who cannot see requests can guess them: for paths that are protected otherwise.
    #[default]
    Counting,
    /// Random Tokens of this many octets, 1 to 8; with 4 or more they are hard to guess.
    Random(u8),
    /// Consecutive numbers of this many octets, 1 to 8, from a random start for each peer. They compress well, and who sees
    /// no requests has to guess the start.
    Sequence(u8),
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
    /// Transmission parameters of peers without their own.
    pub transmission: Transmission,
    /// Congestion control of peers without their own.
    pub congestion: Algorithm,
    /// Time after which an unanswered request is acknowledged separately; its response then becomes a separate one.
    /// Default: 100 ms, below the timeout of clients that adapt.
    pub processing_delay: Duration,
    /// Time that a client waits for the response to a request that was acknowledged or is Non-confirmable. Default: 93 s.
    pub response_timeout: Duration,
    /// Longest pause in a block-wise transfer. Default: 247 s, EXCHANGE_LIFETIME.
    pub transfer_timeout: Duration,
    /// Longest interval between Confirmable notifications. Default: 24 h, the maximum of RFC 7641, section 4.5.
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
    /// Largest number of peers with a state. The least recently active one is dropped first. Default: 1,024.
    pub max_peers: usize,
    /// Largest number of requests that wait for the application's response. Further ones are answered with 5.03. Default:
    /// 256.
    pub max_requests: usize,
    /// Largest number of the endpoint's own requests under way. Default: 256.
    pub max_calls: usize,
    /// Largest number of messages that wait for an acknowledgement or for NSTART. Default: 512.
    pub max_flights: usize,
    /// Largest number of observers of all resources. Default: 256.
    pub max_observers: usize,
    /// Largest number of observers of one peer, which thus leaves room for others. Default: 64.
    pub max_observers_of_peer: usize,
    /// Largest number of replies that wait for [`poll_transmit`](crate::Endpoint::poll_transmit). Further ones are
    /// dropped, as by a full socket. Default: 1,024.
    pub max_replies: usize,
    /// Largest number of received messages that are stored to detect duplicates. If more arrive within EXCHANGE_LIFETIME,
    /// the oldest are dropped early, and counted in [`Counters::forgotten_early`](crate::Counters::forgotten_early).
    /// Default: 4,096.
    pub remembered: usize,
    /// Octets of responses that are stored for retransmission after a duplicate. Default: 64 KiB. A duplicate of a GET or
    /// FETCH whose response is no longer stored is processed again; other duplicates get no answer.
    pub remembered_octets: usize,
    /// Largest message sent in a datagram, in octets. Default: [`MAX_MESSAGE`].
    pub max_message: usize,
    /// Max-Message-Size announced on a stream: the largest message accepted, in octets. RFC 8323, section 5.3.1. Default:
    /// 64 KiB + 1 KiB.
    pub max_stream_message: usize,
    /// Largest body that is reassembled from blocks, in octets. Default: 1 MiB + 16 KiB.
    pub max_body: usize,
    /// Octets of all bodies together that are stored for peers: incomplete uploads, and responses of which some blocks
    /// have not been fetched. Default: 4 MiB.
    pub max_bodies: usize,
    /// Largest number of block-wise uploads, and of stored responses. Default: 64 each.
    pub max_transfers: usize,
}

impl Limits {
    /// Limits of a server with ample memory.
    pub const SERVER: Self = Self {
        max_peers: 1_024,
        max_requests: 256,
        max_calls: 256,
        max_flights: 512,
        max_observers: 256,
        max_observers_of_peer: 64,
        max_replies: 1_024,
        remembered: 4_096,
        remembered_octets: 1 << 16,
        max_message: MAX_MESSAGE,
        max_stream_message: 65 << 10,
        max_body: 1 << 20 | 1 << 14,
        max_bodies: 4 << 20,
        max_transfers: 64,
    };

    /// Limits of a device with few peers: at most 32 KiB of bodies, 8 peers and as many observers.
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
    /// Size of the blocks that the endpoint proposes and offers.
    pub block_size: BlockSize,
    /// Critical options that the application implements. A request with another one is rejected with 4.02.
    pub recognised: &'static [u16],
    /// Amplification factor: largest ratio of response to request, in octets, until the peer has shown that it receives
    /// at its address. A larger response is replaced by a request to echo a value. RFC 9175, section 2.3. `None`: no
    /// limit, for networks where addresses cannot be spoofed. On the Internet: 3.
    pub amplification: Option<u8>,
    /// Choice of Tokens.
    pub tokens: Tokens,
}

impl Policy {
    /// Policy for a path that is protected otherwise, on which addresses are not spoofed and Tokens are not guessed.
    pub const PROTECTED: Self = Self {
        block_size: BlockSize::MAX,
        recognised: RECOGNISED,
        amplification: None,
        tokens: Tokens::Counting,
    };

    /// Policy of a client on a path without protection. RFC 7252, section 5.3.1, recommends 32 bits that a sender who sees no
    /// requests has to guess. Of these, the Token has 24, fresh for each process and server, and an ephemeral port has 14.8
    /// (Linux chooses from 28,232), together 38.8. The start of the Message IDs adds 16, but only for responses within an
    /// Acknowledgement: a separate response needs none.
    pub const CLIENT: Self = Self { tokens: Tokens::Sequence(3), ..Self::PROTECTED };

    /// Policy of a client whose requests are protected by OSCORE, on any path. A response is bound to its request by the Partial IV
    /// (RFC 8613, section 7): a Token has to distinguish requests under way, and nothing else (RFC 7252, section 5.3.1). Not for
    /// DTLS, which binds no response: there a Token that returns may bring the response to an earlier request (RFC 9175, section
    /// 4.2).
    pub const OSCORE_CLIENT: Self = Self { tokens: Tokens::Sequence(1), ..Self::PROTECTED };

    /// Policy for a path without protection: RFC 9175, section 2.3, and RFC 7252, section 5.3.1.
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
