//! What an endpoint takes, as its documentation says.

use core::mem::size_of;
use std::net::SocketAddr;

use crate::endpoint::flight::Flight;
use crate::endpoint::observers::Observer;
use crate::endpoint::peer::Peer;
use crate::endpoint::remembered::Seen;
use crate::endpoint::server::Pending;

/// Octets of an entry of the index by hash: two buckets at most, and a link.
const INDEX: usize = 2 * 4 + 8;
/// Octets of what makes a slot out of a value, and of its place in an order.
const SLOT: usize = 8;
const ORDER: usize = 8;

#[test]
fn octets_of_each_are_those_of_the_documentation() {
    let peer = size_of::<Peer<SocketAddr>>() + SLOT + INDEX + ORDER;
    let remembered = size_of::<Seen>() + INDEX;
    let request = size_of::<Pending>() + SLOT + ORDER;
    std::println!(
        "peer {peer}, remembered {remembered}, request {request}, flight {}, observer {}",
        size_of::<Flight>(),
        size_of::<Observer>()
    );
    assert!(peer <= 320, "{peer}");
    assert!(remembered <= 72, "{remembered}");
    assert!(request <= 176, "{request}");
}
