//! Sessions by public keys.

use std::time::Duration;

use super::room::*;
use crate::{
    BadPeers, BadPublicKey, FEW, Key, Keyring, Keys, NewSession, NotSealed, Opened, Over, PeerKeys,
    PublicKey, PublicKeys, Refused, Sender, Suite, TwoWay,
};

const SUITE: Suite = Suite::ChaCha20Poly1305;
const REQUEST: usize = 135;
const ANSWER: usize = 68;
const COOKIE: usize = 50;

/// The keys of an end whose private key is `own`, for one whose private key is `other`.
fn keys(own: u8, other: u8) -> PublicKeys {
    PublicKeys::new(key(own), key(other).public(), None).expect("keys of two ends")
}

fn with_psk(own: u8, other: u8, psk: u8) -> PublicKeys {
    PublicKeys::new(key(own), key(other).public(), Some(key(psk))).expect("keys of two ends")
}

fn room() -> Room {
    Room::with_keys(Over::Datagrams, SUITE, [keys(1, 2), keys(2, 1)])
}

/// The next datagram of an end.
fn next(room: &mut Room, end: usize) -> Flying {
    let mut octets = Vec::new();
    room.ends[end].seal.poll(room.now, &mut octets).expect("a datagram");
    Flying { from: address(end), to: Some(address(1 - end)), octets }
}

#[test]
fn two_ends_agree_on_keys_and_talk() {
    for suite in Suite::ALL {
        for over in [Over::Datagrams, Over::Line] {
            for psk in [None, Some(9)] {
                let of = |own, other| psk.map_or(keys(own, other), |psk| with_psk(own, other, psk));
                let mut room = Room::with_keys(over, suite, [of(1, 2), of(2, 1)]);
                assert_eq!(room.send(LEFT, b"early"), Err(NotSealed::NoSession));
                room.run();
                for end in &room.ends {
                    assert_eq!(end.events, [RoomEvent::Session(NewSession { restarted: false })]);
                }
                room.talk(LEFT, b"there");
                room.talk(RIGHT, b"and back");
            }
        }
    }
}

/// A request and its answer are at most 232 octets of UDP payload, and no datagram has more octets than with a shared key.
#[test]
fn a_handshake_is_203_octets() {
    let mut room = room();
    let request = next(&mut room, LEFT);
    assert_eq!(room.arrive(RIGHT, &request), None);
    let answer = next(&mut room, RIGHT);
    assert_eq!([request.octets.len(), answer.octets.len()], [REQUEST, ANSWER]);
    assert!(matches!(room.arrive(LEFT, &answer), Some(RoomEvent::Session(_))));
    room.run();
    // All 64 bits of the counter are in the first datagram.
    room.talk(LEFT, b"first");
    assert_eq!(room.seal(LEFT, &[0; 50]).expect("a session").octets.len(), 50 + 20);
}

/// Nobody without a private key sees who asks: two requests, and two starts, have no octet in common behind the first one.
#[test]
fn nothing_of_a_request_is_constant_in_clear() {
    let mut room = room();
    let mut requests = Vec::new();
    for _ in 0..16 {
        room.restart(LEFT, keys(1, 2));
        requests.push(next(&mut room, LEFT).octets);
    }
    for place in 1..REQUEST {
        assert!(requests.iter().any(|request| request[place] != requests[0][place]), "octet {place}");
    }
    assert!(requests.iter().all(|request| request[0] == requests[0][0]), "the kind of the datagram");
    for request in &requests {
        assert!(!request.windows(8).any(|octets| octets == &key(1).public().octets()[..8]));
    }
}

#[test]
fn indices_of_sessions_are_random() {
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..8 {
        let mut room = room();
        for end in [LEFT, RIGHT] {
            let seed = seen.len() as u64 + end as u64 * 100;
            let own = if end == LEFT { keys(1, 2) } else { keys(2, 1) };
            room.ends[end].seal =
                start(room.now, Over::Datagrams, SUITE, own, (end == LEFT).then(|| address(RIGHT)), seed);
        }
        room.run();
        for end in [LEFT, RIGHT] {
            seen.insert(room.seal(end, b"x").expect("a session").octets[1]);
        }
    }
    assert!(seen.len() > 8, "{seen:?}");
}

#[test]
fn who_has_the_public_key_only_gets_no_session() {
    // Another private key; and the right one, without the psk.
    for (left, right) in
        [(keys(3, 2), keys(2, 1)), (keys(1, 2), with_psk(2, 1, 9)), (with_psk(1, 2, 8), with_psk(2, 1, 9))]
    {
        let mut room = Room::with_keys(Over::Datagrams, SUITE, [left, right]);
        room.pass(Duration::from_secs(30));
        assert!(room.ends.iter().all(|end| end.seal.session(0).is_none()));
    }
    // The other way round: the answer of an end that is not the one asked.
    let mut room = Room::with_keys(Over::Datagrams, SUITE, [keys(1, 3), keys(2, 1)]);
    room.pass(Duration::from_secs(30));
    assert!(room.ends.iter().all(|end| end.seal.session(0).is_none()));
    assert_eq!(
        room.ends[RIGHT].events.first(),
        Some(&RoomEvent::Refused(Refused::Forged)),
        "a proof for another end"
    );
}

#[test]
fn an_unknown_end_is_named_by_its_public_key() {
    let mut room = Room::with_keys(Over::Datagrams, SUITE, [keys(3, 2), keys(2, 1)]);
    let request = next(&mut room, LEFT);
    let stranger = key(3).public();
    assert_eq!(room.arrive(RIGHT, &request), Some(RoomEvent::Refused(Refused::UnknownPublicKey(stranger))));
}

/// Key compromise: with the private key of the right end, nobody pretends to be the left one towards it.
#[test]
fn the_thief_of_a_key_is_not_anybody_else() {
    let mut room = room();
    // The thief answers as the right end would, and asks as the left one: it has key 2, and not key 1.
    let private = key(2);
    let as_left = PublicKeys::new(private, key(1).public(), None).expect("its own keys");
    room.ends[LEFT].seal = start(room.now, Over::Datagrams, SUITE, as_left, Some(address(RIGHT)), 7);
    room.pass(Duration::from_secs(30));
    assert!(room.ends[RIGHT].seal.session(0).is_none());
}

#[test]
fn a_replayed_request_brings_no_session() {
    let mut room = room();
    let request = next(&mut room, LEFT);
    assert_eq!(room.arrive(RIGHT, &request), None);
    assert_eq!(room.arrive(RIGHT, &request), Some(RoomEvent::Refused(Refused::Replayed)));
    // To another start of the right end, which has never seen it: answered, and nothing follows.
    room.restart(RIGHT, keys(2, 1));
    room.forget();
    assert_eq!(room.arrive(RIGHT, &request), None);
    assert_eq!(next(&mut room, RIGHT).octets.len(), ANSWER);
    room.now = room.now + Duration::from_secs(120);
    room.ends[RIGHT].seal.poll(room.now, &mut Vec::new());
    assert!(room.ends[RIGHT].seal.session(0).is_none() && room.ends[RIGHT].events.is_empty());
}

#[test]
fn under_load_a_cookie_comes_before_any_curve_operation() {
    let mut room = room();
    let mut lengths = Vec::new();
    for _ in 0..24 {
        let request = next(&mut room, LEFT);
        assert_eq!(room.arrive(RIGHT, &request), None);
        lengths.push(next(&mut room, RIGHT).octets.len());
        room.ends[LEFT].seal.ask_again(room.now);
    }
    assert_eq!(lengths[..16], [ANSWER; 16]);
    assert_eq!(lengths[16..], [COOKIE; 8]);
    room.pass(Duration::from_secs(20));
    room.talk(LEFT, b"by a cookie");

    // A request with a wrong proof costs an HMAC: no random octet is drawn for an answer.
    let mut forged = next_request(&mut room);
    *forged.octets.last_mut().expect("octets") ^= 1;
    assert_eq!(room.arrive(RIGHT, &forged), Some(RoomEvent::Refused(Refused::Forged)));
}

fn next_request(room: &mut Room) -> Flying {
    room.restart(LEFT, keys(1, 2));
    next(room, LEFT)
}

#[test]
fn two_ends_of_different_modes_are_told_so() {
    let shared: Keyring = Keys::one(key(1)).into();
    for (left, right, public) in
        [(keys(1, 2).into(), shared.clone(), true), (shared, keys(2, 1).into(), false)]
    {
        let mut room = Room::with_keys(Over::Datagrams, SUITE, [left, right]);
        let request = next(&mut room, LEFT);
        let refused = Refused::OtherMode { public, of: Some(Sender::Peer(0)) };
        assert_eq!(room.arrive(RIGHT, &request), Some(RoomEvent::Refused(refused)));
    }
}

/// The step from a shared key to public keys: both are accepted while both are there, and no packet is lost.
#[test]
fn ends_change_from_a_shared_key_to_public_keys_without_interruption() {
    let shared = || Some(Keys::one(key(5)));
    let both = |own, other| Keyring::new(shared(), Some(keys(own, other))).expect("keys");
    let mut room = Room::with_keys(
        Over::Datagrams,
        SUITE,
        [Keyring::new(shared(), None), Keyring::new(shared(), None)].map(|keys| keys.expect("keys")),
    );
    room.run();
    room.forget();
    let steps: [(usize, Keyring); 4] =
        [(LEFT, both(1, 2)), (RIGHT, both(2, 1)), (LEFT, keys(1, 2).into()), (RIGHT, keys(2, 1).into())];
    for (end, keys) in steps {
        let late = [LEFT, RIGHT].map(|end| room.seal(end, b"in flight").expect("a session"));
        room.ends[end].seal.set_keys(room.now, 0, &keys).expect("no two alike");
        for flying in late {
            let to = if flying.from == address(LEFT) { RIGHT } else { LEFT };
            assert_eq!(room.arrive(to, &flying), Some(body(b"in flight")), "{end}");
        }
        for _ in 0..70 {
            room.pass(Duration::from_secs(1));
            room.forget();
            room.talk(LEFT, b"all the time");
            room.talk(RIGHT, b"in both directions");
        }
    }
    let id = keys(1, 2).id();
    assert!(room.ends.iter().all(|end| end.seal.session(0).expect("a session").key == id));
}

#[test]
fn a_public_key_that_is_taken_out_ends_its_sessions_at_once() {
    let mut room = room();
    room.run();
    let sent = room.seal(LEFT, b"too late").expect("a session");
    room.forget();
    room.ends[RIGHT].seal.set_keys(room.now, 0, &keys(2, 3).into()).expect("no two alike");
    assert_eq!(room.arrive(RIGHT, &sent), Some(RoomEvent::Refused(Refused::Unknown)));
    assert!(room.ends[RIGHT].seal.session(0).is_none());
    room.pass(Duration::from_secs(60));
    assert!(room.ends[RIGHT].seal.session(0).is_none());
}

#[test]
fn a_hub_knows_its_peers_by_their_public_keys() {
    let now = thinair_wire::time::Instant::from_millis(5);
    let peer = |number: u8| PeerKeys { keys: keys(200, number).into(), address: None, keepalive: None };
    let peers = (0..FEW as u8).map(peer).collect();
    let mut hub = TwoWay::new(now, Over::Datagrams, peers, SUITE, PARAMETERS, random(500)).expect("64");
    let mut indices = std::collections::BTreeSet::new();
    for number in (0..FEW as u8).rev() {
        let mut one =
            start(now, Over::Datagrams, SUITE, keys(number, 200), Some(address(100)), u64::from(number) + 1);
        let (mut out, mut answer) = (Vec::new(), Vec::new());
        let from = address(usize::from(number));
        one.poll(now, &mut out).expect("a request");
        assert_eq!(hub.open(now, Some(from.into()), &mut out), Opened::Handled, "{number}");
        hub.poll(now, &mut answer).expect("an answer");
        assert!(matches!(one.open(now, Some(address(100).into()), &mut answer), Opened::Session { .. }));
        out.clear();
        one.poll(now, &mut out).expect("a confirmation");
        indices.insert(out[1]);
        let Opened::Session { from: sender, .. } = hub.open(now, Some(from.into()), &mut out) else {
            panic!("{number}")
        };
        assert_eq!(sender, Sender::Peer(usize::from(number)));
    }
    assert_eq!(indices.len(), FEW, "an index for each");

    let twice = vec![peer(1), peer(1)];
    assert_eq!(hub.check(&twice).err(), Some(BadPeers::AlikePublic(0, 1)));
}

#[test]
fn what_is_no_key_of_another_end_is_named() {
    let own = key(1);
    let new = |theirs| PublicKeys::new(own.clone(), theirs, None).err();
    assert_eq!(new(own.public()), Some(BadPublicKey::Own));
    assert_eq!(new(PublicKey::new(*own.octets())), Some(BadPublicKey::Private));
    let mut one = [0; 32];
    assert_eq!(new(PublicKey::new(one)), Some(BadPublicKey::Weak));
    one[0] = 1;
    assert_eq!(new(PublicKey::new(one)), Some(BadPublicKey::Weak), "a point of low order");
    assert_eq!(new(key(2).public()), None);
}

/// RFC 7748, section 6.1.
#[test]
fn public_keys_are_those_of_x25519() {
    let private =
        Key::parse("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a").expect("a key");
    let public =
        PublicKey::parse("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a").expect("a key");
    assert_eq!(private.public(), public);
    assert_eq!(public.to_string(), "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=");
    assert_eq!(PublicKey::parse(&public.to_string()), Some(public));
}
