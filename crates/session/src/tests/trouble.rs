//! Ends with different settings, and attackers.

use std::time::Duration;

use super::room::*;
use crate::{BadPeers, FEW, Keys, NotSealed, Opened, Over, PEERS, PeerKeys, Refused, Sender, Suite, TwoWay};

const SUITE: Suite = Suite::ChaCha20Poly1305;

/// Returns the request of a new left end.
fn request(room: &mut Room) -> Flying {
    room.restart(LEFT, Keys::one(key(1)));
    let mut octets = Vec::new();
    room.ends[LEFT].seal.poll(room.now, &mut octets).expect("it asks at its start");
    Flying { from: address(LEFT), to: Some(address(RIGHT)), octets }
}

#[test]
fn with_other_keys_nothing_gets_through() {
    let mut room = Room::with_keys(Over::Datagrams, SUITE, [Keys::one(key(1)), Keys::one(key(2))]);
    room.pass(Duration::from_secs(60));
    assert!(room.ends[LEFT].events.is_empty(), "no answer");
    let unknown = Refused::UnknownKey { key: key(1).id(), of: Some(Sender::Peer(0)) };
    assert!(room.ends[RIGHT].events.iter().all(|event| *event == RoomEvent::Refused(unknown)));
    assert_eq!(room.send(LEFT, b"never"), Err(NotSealed::NoSession));

    // Nor with the id of the right key and another key.
    let mut room = Room::ready(Over::Datagrams, SUITE);
    let mut request = request(&mut room);
    request.octets[2..6].copy_from_slice(&key(1).id().0);
    request.octets[20] ^= 1;
    assert_eq!(room.arrive(RIGHT, &request), Some(RoomEvent::Refused(Refused::Forged)));
}

#[test]
fn other_parameters_are_said_at_both_ends() {
    let mut room = Room::new(Over::Datagrams, SUITE);
    room.ends[RIGHT].seal = with_parameters(room.now, Suite::ChaCha20Poly1305, *b"others..");
    room.run();
    for end in &room.ends {
        assert_eq!(end.events, [RoomEvent::Refused(Refused::OtherParameters(Sender::Peer(0)))]);
    }
    let mut room = Room::new(Over::Datagrams, SUITE);
    room.ends[RIGHT].seal = with_parameters(room.now, Suite::AesCcm8, PARAMETERS);
    room.run();
    for end in &room.ends {
        assert_eq!(end.events, [RoomEvent::Refused(Refused::OtherSuite(Sender::Peer(0)))]);
    }
    assert_eq!(room.send(LEFT, b"never"), Err(NotSealed::NoSession));
}

#[test]
fn reflected_messages_are_refused() {
    let mut room = Room::ready(Over::Datagrams, SUITE);
    let request = request(&mut room);
    assert_eq!(room.arrive(LEFT, &request), Some(RoomEvent::Refused(Refused::Reflected)));
    room.arrive(RIGHT, &request);
    let mut answer = Vec::new();
    room.ends[RIGHT].seal.poll(room.now, &mut answer).expect("an answer");
    let answer = Flying { from: address(LEFT), to: None, octets: answer };
    let event = room.arrive(RIGHT, &answer);
    assert_eq!(event, Some(RoomEvent::Refused(Refused::Unasked)));
}

#[test]
fn an_answer_is_shorter_than_its_request_and_comes_to_an_authentic_one_only() {
    let mut room = Room::ready(Over::Datagrams, SUITE);
    let request = request(&mut room);
    for length in 0..request.octets.len() {
        let mut short = request.clone();
        short.octets.truncate(length);
        room.arrive(RIGHT, &short);
        assert_eq!(room.ends[RIGHT].seal.poll(room.now, &mut Vec::new()), None, "{length}");
    }
    // The last 16 octets are for cookies, which were not requested.
    for octet in 0..request.octets.len() - 16 {
        let mut damaged = request.clone();
        damaged.octets[octet] ^= 1;
        let event = room.arrive(RIGHT, &damaged);
        assert!(matches!(event, Some(RoomEvent::Refused(_))), "{octet}: {event:?}");
        assert_eq!(room.ends[RIGHT].seal.poll(room.now, &mut Vec::new()), None, "{octet}");
    }
    let mut answer = Vec::new();
    assert_eq!(room.arrive(RIGHT, &request), None);
    room.ends[RIGHT].seal.poll(room.now, &mut answer).expect("an answer");
    assert!(answer.len() <= request.octets.len());
}

#[test]
fn a_replayed_request_changes_nothing() {
    let mut room = Room::new(Over::Datagrams, SUITE);
    let of_an_old_start = request(&mut room);
    let of_this_start = request(&mut room);
    assert_eq!(room.arrive(RIGHT, &of_this_start), None);
    room.run();
    assert!(room.ends[RIGHT].seal.session(0).is_some());
    let before = room.ends[RIGHT].seal.session(0);

    assert_eq!(room.arrive(RIGHT, &of_this_start), Some(RoomEvent::Refused(Refused::Replayed)));
    // A request alone does not distinguish an old start from a new one. It is answered, without further
    // consequences.
    let elsewhere = Flying { from: address(9), ..of_an_old_start };
    room.forget();
    assert_eq!(room.arrive(RIGHT, &elsewhere), None);
    let mut answer = Vec::new();
    let to = room.ends[RIGHT].seal.poll(room.now, &mut answer).map(|(_, to)| to);
    assert_eq!(to, Some(Some(address(9).into())));
    let answer = Flying { from: address(RIGHT), to: None, octets: answer };
    let event = room.arrive(LEFT, &answer);
    assert!(matches!(event, Some(RoomEvent::Refused(Refused::Unasked | Refused::Forged))), "{event:?}");
    assert_eq!(room.ends[RIGHT].seal.session(0), before);
    assert_eq!(room.ends[RIGHT].seal.address(0), Some(address(LEFT)));
    for i in 0..100 {
        room.talk(LEFT, &[i]);
        room.talk(RIGHT, &[i]);
        room.pass(Duration::from_secs(1));
    }
}

#[test]
fn requests_without_an_answer_are_few() {
    let mut room = Room::new(Over::Datagrams, SUITE);
    let mut sent = 0;
    let mut count = |room: &mut Room, seconds: u32, traffic: bool| {
        sent = 0;
        for _ in 0..seconds {
            if traffic {
                let _ = room.send(LEFT, b"?");
            }
            while room.ends[LEFT].seal.poll(room.now, &mut Vec::new()).is_some() {
                sent += 1;
            }
            room.now = room.now + Duration::from_secs(1);
        }
        sent
    };
    let idle = count(&mut room, 3_600, false);
    assert!((20..=40).contains(&idle), "{idle} in an hour");
    let busy = count(&mut room, 3_600, true);
    assert!((600..=900).contains(&busy), "{busy} in an hour, with packets waiting");
}

#[test]
fn wrong_tags_wear_a_short_one_out_and_new_keys_follow() {
    let mut room = Room::ready(Over::Line, Suite::AesCcm4);
    let flying = room.seal(LEFT, b"a body").expect("a session");
    let mut forged = flying.clone();
    *forged.octets.last_mut().expect("a tag") ^= 1;
    for _ in 0..65_536 {
        assert_eq!(room.arrive(RIGHT, &forged), Some(RoomEvent::Refused(Refused::Forged)));
    }
    assert_eq!(room.arrive(RIGHT, &forged), Some(RoomEvent::Refused(Refused::WornOut)));
    assert_eq!(
        room.arrive(RIGHT, &flying),
        Some(RoomEvent::Refused(Refused::WornOut)),
        "the right one as well"
    );
    room.forget();
    room.pass(Duration::from_secs(2));
    room.talk(LEFT, b"by new keys");
    assert_eq!(room.arrive(RIGHT, &flying), Some(RoomEvent::Refused(Refused::WornOut)));
}

#[test]
fn forgers_do_not_make_us_ask_more_than_twice_a_minute() {
    let mut room = Room::ready(Over::Datagrams, SUITE);
    let mut forged = room.seal(RIGHT, b"a body").expect("a session");
    *forged.octets.last_mut().expect("a tag") ^= 1;
    let before = room.flown;
    for _ in 0..6_000 {
        room.arrive(LEFT, &forged);
        room.pass(Duration::from_millis(10));
        forged.octets[1] = forged.octets[1].wrapping_add(1) % 4;
    }
    // A request, its answer, a confirmation and the answer to that.
    assert!(room.flown - before <= 3 * 4, "{}", room.flown - before);
}

#[test]
fn peers_are_told_apart() {
    let now = thinair_wire::time::Instant::ZERO;
    let peer =
        |number: u8, address| PeerKeys { keys: Keys::one(key(number)).into(), address, keepalive: None };
    let new = |over, peers| TwoWay::new(now, over, peers, SUITE, PARAMETERS, random(1)).err();
    assert_eq!(new(Over::Datagrams, vec![]), Some(BadPeers::Count(0)));
    assert_eq!(new(Over::Line, vec![peer(1, None), peer(2, None)]), Some(BadPeers::Count(2)));
    assert_eq!(new(Over::Datagrams, vec![peer(1, None), peer(1, None)]), Some(BadPeers::Alike(0, 1)));
    assert_eq!(new(Over::Datagrams, vec![peer(1, None), peer(1, Some(address(3)))]), None);
    let many_of = |count| {
        (0..count).map(|i| peer(1, Some(([192, 0, 2, 1], 1_000 + i as u16).into()))).collect::<Vec<_>>()
    };
    assert_eq!(new(Over::Datagrams, many_of(PEERS)), None);
    assert_eq!(new(Over::Datagrams, many_of(PEERS + 1)), Some(BadPeers::Count(PEERS + 1)));
}

#[test]
fn many_peers_share_a_key_and_talk_to_one() {
    let now = thinair_wire::time::Instant::from_millis(5);
    let hub = address(100);
    let peers = (0..FEW).map(|i| PeerKeys {
        keys: Keys::one(key(1)).into(),
        // One of them has no configured address.
        address: (i > 0).then(|| address(i)),
        keepalive: None,
    });
    let mut one =
        TwoWay::new(now, Over::Datagrams, peers.collect(), SUITE, PARAMETERS, random(500)).expect("64");
    let mut all: Vec<_> = (0..FEW)
        .map(|i| start(now, Over::Datagrams, SUITE, Keys::one(key(1)), Some(hub), i as u64 + 1))
        .collect();
    let (mut at, mut out) = (now, Vec::new());
    for _ in 0..600 {
        at = at + Duration::from_millis(100);
        for (i, peer) in all.iter_mut().enumerate() {
            while peer.poll(at, &mut out).is_some() {
                assert!(!matches!(
                    one.open(at, Some(address(i).into()), &mut out),
                    Opened::Refused(Refused::Ambiguous)
                ));
                out.clear();
            }
        }
        while let Some((peer, to)) = one.poll(at, &mut out) {
            let crate::Destination::Peer(peer) = peer else { panic!("{peer:?}") };
            let to = to.map(|to| to.peer).or(one.address(peer)).expect("known");
            let number = (0..FEW).find(|i| address(*i) == to).expect("one of them");
            all[number].open(at, Some(hub.into()), &mut out);
            out.clear();
        }
    }
    for (i, peer) in all.iter().enumerate() {
        assert!(one.session(i).is_some() && peer.session(0).is_some(), "{i}");
        assert_eq!(one.address(i), Some(address(i)));
    }
}
