//! Datagrams that no honest end sends: nothing panics, nothing is kept, little is answered.

use core::time::Duration;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::support::*;
use crate::*;

/// Returns the octets that a server answers to a datagram.
fn answered(server: &mut Server<Address>, datagram: &[u8]) -> usize {
    let now = thinair_wire::time::Instant::from_millis(5);
    let mut octets = datagram.to_vec();
    let mut rest = &mut octets[..];
    while !rest.is_empty() {
        assert!(server.handle_datagram(now, 3, &mut rest).is_none());
    }
    let mut buffer = [0; 2_048];
    core::iter::from_fn(|| server.poll_datagram(now, &mut buffer).map(|(_, len)| len)).sum()
}

fn first_hello() -> Vec<u8> {
    let mut client = client(ClientConfig::default());
    client.connect(Default::default());
    let mut buffer = [0; 2_048];
    let len = client.poll_datagram(Default::default(), &mut buffer).unwrap();
    buffer[..len].to_vec()
}

#[test]
fn before_the_cookie_nothing_is_kept_and_no_more_is_sent_than_was_received() {
    let mut server = server(ServerConfig::default());
    let hello = first_hello();
    let reply = answered(&mut server, &hello);
    std::println!("ClientHello {} octets, HelloVerifyRequest {reply}", hello.len());
    assert!(reply > 0 && reply <= hello.len());
    assert_eq!((server.handshakes(), server.poll_timeout()), (0, None));
    // The shortest ClientHello that can be read, without extensions.
    let mut short = std::vec![
        22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 54, 1, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0, 42, 0xfe, 0xfd
    ];
    short.extend([0; 32]);
    short.extend([0, 0, 0, 2, 0xc0, 0xa8, 1, 0]);
    let reply = answered(&mut server, &short);
    assert!(reply > 0 && reply <= short.len(), "{reply} of {}", short.len());
    // Records of no session.
    for record in [
        &[23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 7, 0, 2, 1, 2][..],
        &[25, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 7, 1, 2, 0, 1, 1],
    ] {
        let reply = answered(&mut server, record);
        assert!(reply <= record.len(), "{reply} of {}", record.len());
    }
    assert_eq!(server.handshakes(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_octets_are_answered_by_more(datagram in vec(any::<u8>(), 0..200), cut in 0_usize..100, flips in vec((0_usize..100, any::<u8>()), 0..4)) {
        let mut server = server(ServerConfig::default());
        prop_assert!(answered(&mut server, &datagram) <= datagram.len());
        let mut hello = first_hello();
        for (place, octet) in flips {
            let place = place % hello.len();
            hello[place] = octet;
        }
        hello.truncate(cut.max(1));
        prop_assert!(answered(&mut server, &hello) <= hello.len());
        prop_assert_eq!(server.handshakes(), 0);
    }

    /// Datagrams of a handshake and a session, each changed in some octets or cut, beside the right ones.
    #[test]
    fn changed_datagrams_do_no_harm(changes in vec((0_usize..200, any::<u8>(), 0_usize..200), 1..60), seed in any::<u64>()) {
        let impairments = Impairments { loss: 5, ..Impairments::default() };
        let mut path = Path::impaired(client(ClientConfig::default()), server(ServerConfig::default()), impairments, seed);
        path.client.connect(path.now);
        for (place, octet, cut) in changes {
            path.run(Duration::from_millis(60));
            let Some((to_server, datagram)) = path.sent.get(place % path.sent.len().max(1)) else { continue };
            let (to_server, mut datagram) = (*to_server, datagram.clone());
            let at = place % datagram.len();
            datagram[at] = octet;
            datagram.truncate(cut.max(1));
            path.forge(to_server, 1, &datagram);
            if path.client.is_connected() {
                path.send(b"data");
            }
            prop_assert!(path.at_server.iter().all(|(_, content)| content == b"data"));
        }
    }
}
