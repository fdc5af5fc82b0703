//! Settings of a client and of a server.

use core::time::Duration;

use crate::cid::Cid;

/// Retransmission of the messages of a handshake. RFC 6347, section 4.2.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// First timeout, doubled with each retransmission. Default: 1 s.
    pub initial: Duration,
    /// Longest timeout. Default: 60 s.
    pub longest: Duration,
    /// Largest number of transmissions of a flight: with the defaults, the last one is sent after 31 s and given up after 63 s.
    /// Default: 6.
    pub transmissions: u8,
}

impl Default for Retransmission {
    fn default() -> Self {
        Self { initial: Duration::from_secs(1), longest: Duration::from_secs(60), transmissions: 6 }
    }
}

/// Settings of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Connection ID that the server puts into its records; `None`: connection IDs are not offered. Default: empty, so that
    /// only the server uses one.
    pub cid: Option<Cid>,
    /// Largest datagram of a handshake, in octets; at least 128. Default: 1,152.
    pub max_datagram: usize,
    /// Retransmission of handshakes.
    pub retransmission: Retransmission,
    /// Time without any record of the server after which sending starts another handshake beside the session, as the server may
    /// have lost it; `None`: never. At most one handshake in 10 s is started so. Default: 5 s.
    pub silence: Option<Duration>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            cid: Some(Cid::EMPTY),
            max_datagram: 1_152,
            retransmission: Retransmission::default(),
            silence: Some(Duration::from_secs(5)),
        }
    }
}

/// Settings of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Connection IDs, of 2 octets, are used with clients that offer them. Default: true.
    pub has_cids: bool,
    /// Largest datagram of a handshake, in octets; at least 128. Default: 1,152.
    pub max_datagram: usize,
    /// Retransmission of handshakes.
    pub retransmission: Retransmission,
    /// Largest number of sessions, at most 50,000; a further one displaces the least recently used one. Default: 10,000.
    pub max_sessions: usize,
    /// Largest number of sessions that can be resumed once they are over, for a day; a further one displaces the oldest one. 0: none, and
    /// a handshake has 8 octets less. Default: 10,000.
    pub max_resumable: usize,
    /// Largest number of handshakes of clients that have returned a cookie, 1 to 10,000; a further one displaces the oldest one.
    /// Default: 1,000.
    pub max_handshakes: usize,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            has_cids: true,
            max_datagram: 1_152,
            retransmission: Retransmission::default(),
            max_sessions: 10_000,
            max_resumable: 10_000,
            max_handshakes: 1_000,
        }
    }
}
