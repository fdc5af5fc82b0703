//! Peers of an endpoint.

use std::net::SocketAddr;

use thinair_dtls::SessionId;

/// A peer of an endpoint: its datagrams, its session of DTLS, or its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoapPeer {
    /// Datagrams, over one of the endpoint's sockets.
    Udp {
        /// Number of the socket, from 0. A client's datagrams in DTLS have a number of their own.
        socket: u8,
        /// Address of the peer.
        address: SocketAddr,
    },
    /// A session of a server, wherever its client is.
    Dtls(SessionId),
    /// A stream. Every connection has a number of its own, which is not reused.
    Tcp(u64),
}
