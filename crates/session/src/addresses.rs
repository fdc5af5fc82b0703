//! Addresses of the two ends of a datagram.

use std::net::{IpAddr, SocketAddr};

/// Address of the peer of a datagram, and the own address at which it arrived, or from which it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressPair {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Own address. `None`: unknown, or that of the route.
    pub own: Option<IpAddr>,
}

impl AddressPair {
    /// Returns the pair in a form that is independent of the socket's family.
    pub fn canonical(self) -> Self {
        Self { peer: canonical(self.peer), own: self.own.map(|own| own.to_canonical()) }
    }
}

impl From<SocketAddr> for AddressPair {
    fn from(peer: SocketAddr) -> Self {
        Self { peer, own: None }
    }
}

/// Returns an address in a form that is independent of the socket's family.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
