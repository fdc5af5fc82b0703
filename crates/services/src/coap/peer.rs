//! Whom an endpoint talks to.

use std::net::SocketAddr;

/// A peer of an endpoint: what its messages go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// Datagrams, by one of the endpoint's sockets.
    Udp {
        /// Which socket, counted from 0.
        socket: u8,
        /// The address at the other end.
        address: SocketAddr,
    },
    /// A stream. Every connection has a number of its own, which is not used again.
    Tcp(u64),
}
