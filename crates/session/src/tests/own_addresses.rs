//! The own address from which datagrams to a peer leave.

use std::net::IpAddr;

use super::room::{LEFT, PARAMETERS, RIGHT, Room, address, key, random};
use crate::{AddressPair, BodyFlags, Destination, Keys, Over, PeerKeys, Suite, TwoWay};

const SECOND: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 8));

/// Delivers `octets` from the end of a room to the other one, which they reach at an own address.
fn deliver(room: &mut Room, to: usize, own: Option<IpAddr>, mut octets: Vec<u8>) {
    let from = AddressPair { peer: address(1 - to), own };
    let _ = room.ends[to].seal.open(room.now, Some(from), &mut octets);
}

/// Delivers all datagrams of both ends, those to the right one at its address `own`. Returns the addresses of those that
/// the right end has sent.
fn exchange(room: &mut Room, own: Option<IpAddr>) -> Vec<Option<AddressPair>> {
    let mut sent = Vec::new();
    loop {
        let mut octets = Vec::new();
        if room.ends[LEFT].seal.poll(room.now, &mut octets).is_some() {
            deliver(room, RIGHT, own, octets);
        } else if let Some((_, to)) = room.ends[RIGHT].seal.poll(room.now, &mut octets) {
            let known = room.ends[RIGHT].seal.address(0);
            let kept = room.ends[RIGHT].seal.own_address(0);
            sent.push(to.or_else(|| known.map(|peer| AddressPair { peer, own: kept })));
            deliver(room, LEFT, None, octets);
        } else {
            return sent;
        }
    }
}

#[test]
fn an_end_answers_from_the_address_at_which_it_was_asked() {
    let mut room = Room::new(Over::Datagrams, Suite::ChaCha20Poly1305);
    let sent = exchange(&mut room, Some(SECOND));
    assert!(!sent.is_empty());
    assert!(
        sent.iter().all(|to| *to == Some(AddressPair { peer: address(LEFT), own: Some(SECOND) })),
        "{sent:?}"
    );
    assert_eq!(room.ends[RIGHT].seal.own_address(0), Some(SECOND));
    // The one that has asked may move.
    assert_eq!(room.ends[LEFT].seal.own_address(0), None);
    let kept = room.ends[RIGHT].seal.whereabouts().next().expect("an address");
    assert_eq!(kept.addresses, AddressPair { peer: address(LEFT), own: Some(SECOND) });
}

#[test]
fn only_an_authentic_datagram_changes_the_own_address() {
    let mut room = Room::new(Over::Datagrams, Suite::ChaCha20Poly1305);
    exchange(&mut room, Some(SECOND));
    let mut sealed = Vec::new();
    let left = &mut room.ends[LEFT].seal;
    left.seal(room.now, Destination::Peer(0), BodyFlags::default(), b"!", &mut sealed).expect("a session");
    let mut forged = sealed.clone();
    *forged.last_mut().expect("a tag") ^= 1;
    let third = Some([198, 51, 100, 9].into());
    deliver(&mut room, RIGHT, third, forged);
    assert_eq!(room.ends[RIGHT].seal.own_address(0), Some(SECOND), "forged");
    deliver(&mut room, RIGHT, third, sealed);
    assert_eq!(room.ends[RIGHT].seal.own_address(0), third, "the peer uses another address");
}

#[test]
fn behind_a_restart_requests_leave_from_the_last_address_and_by_turns_from_that_of_the_route() {
    let room = Room::new(Over::Datagrams, Suite::ChaCha20Poly1305);
    let peers = vec![PeerKeys { keys: Keys::one(key(1)).into(), address: None, keepalive: None }];
    let suite = Suite::ChaCha20Poly1305;
    let mut seal =
        TwoWay::new(room.now, Over::Datagrams, peers, suite, PARAMETERS, random(9)).expect("one peer");
    let kept = AddressPair { peer: address(LEFT), own: Some(SECOND) };
    seal.remember(room.now, 0, kept);
    let (_, to) = seal.poll(room.now, &mut Vec::new()).expect("a request");
    assert_eq!(to, Some(kept));

    // An end that was asked asks again: it may have moved meanwhile.
    let mut room = Room::new(Over::Datagrams, suite);
    exchange(&mut room, Some(SECOND));
    room.ends[RIGHT].seal.ask_again(room.now);
    let mut requests = Vec::new();
    for _ in 0..4 {
        room.now = room.ends[RIGHT].seal.poll_at().expect("a request is due").max(room.now);
        let mut octets = Vec::new();
        while let Some((_, to)) = room.ends[RIGHT].seal.poll(room.now, &mut octets) {
            if octets[0] == crate::header::REQUEST {
                requests.push(to.map(|to| to.own));
            }
            octets.clear();
        }
    }
    assert!(requests.contains(&None), "from the last address: {requests:?}");
    assert!(requests.contains(&Some(None)), "from that of the route: {requests:?}");
}
