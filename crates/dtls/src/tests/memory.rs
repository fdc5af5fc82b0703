//! Memory of a server.

use core::mem::size_of;
use core::net::SocketAddr;

use super::sessions::connect;
use super::support::*;
use crate::handshake::Handshake;
use crate::*;

/// 10,000 sessions, as many that can be resumed, and as many handshakes as are allowed beside them.
#[test]
fn ten_thousand_sessions_have_15_megabytes_at_most() {
    let mut server = Server::<u16>::new(std::vec![psk(b"tag")], ServerConfig::default(), numbers(2));
    let now = thinair_wire::time::Instant::from_millis(1_000_000);
    for address in 0..300 {
        connect(&mut server, now, address);
    }
    // A vector that has grown has room for twice its contents. A handshake has its longest message, its longest flight, and what
    // the allocator adds.
    let session = 2 * Server::<SocketAddr>::session_octets();
    // By address: an entry in a tree whose nodes are half full.
    let address = 2 * (size_of::<SocketAddr>() + 2 * size_of::<Option<u16>>() + 16);
    let handshake = size_of::<Handshake>() + 1_036 + 512 + 64 + address;
    let config = ServerConfig::default();
    let resumable = config.max_resumable * Server::<SocketAddr>::resumable_octets();
    let octets =
        config.max_sessions * (session + address) + config.max_handshakes * (session + handshake) + resumable;
    std::println!("10,000 sessions and 1,000 handshakes: at most {octets} octets; {session} of a session");
    assert!(octets <= 15_000_000, "{octets}");
}
