//! Peers of an endpoint.

use std::net::SocketAddr;

/// A peer of an endpoint: its datagrams or its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoapPeer {
    /// Datagrams, over one of the endpoint's sockets.
    Udp {
        /// Number of the socket, from 0.
        socket: u8,
        /// Address of the peer.
        address: SocketAddr,
    },
    /// A stream. Every connection has a number of its own, which is not reused.
    Tcp(u64),
}
