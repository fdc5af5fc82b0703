//! Requests under load, and replayed requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::room::*;
use crate::{Keys, NewSession, Over, PeerKeys, Refused, Suite, TwoWay};

const SUITE: Suite = Suite::ChaCha20Poly1305;
const REQUEST: usize = 91;
const ANSWER: usize = 68;
const COOKIE: usize = 50;

fn asked(room: &mut Room) -> Flying {
    room.restart(LEFT, Keys::one(key(1)));
    asked_again(room)
}

fn asked_again(room: &mut Room) -> Flying {
    let mut octets = Vec::new();
    room.ends[LEFT].seal.poll(room.now, &mut octets).expect("a request");
    assert_eq!(octets.len(), REQUEST);
    Flying { from: address(LEFT), to: Some(address(RIGHT)), octets }
}

fn answered(room: &mut Room, request: &Flying) -> Vec<u8> {
    assert_eq!(room.arrive(RIGHT, request), None);
    let mut octets = Vec::new();
    let (_, to) = room.ends[RIGHT].seal.poll(room.now, &mut octets).expect("an answer");
    assert_eq!(to, Some(request.from.into()));
    octets
}

/// Lengths of the answers to `count` requests of different instances.
fn flood(room: &mut Room, count: usize) -> Vec<usize> {
    (0..count)
        .map(|_| {
            // Far enough apart not to depend on the one before.
            room.now = room.now + Duration::from_millis(1);
            let request = asked(room);
            answered(room, &request).len()
        })
        .collect()
}

#[test]
fn another_instance_that_has_just_asked_costs_a_cookie() {
    let mut room = Room::ready(Over::Datagrams, SUITE);
    // A recorded request of an earlier start, replayed repeatedly.
    let recorded = asked(&mut room);
    assert_eq!(answered(&mut room, &recorded).len(), ANSWER);
    let request = asked(&mut room);
    let cookie = answered(&mut room, &request);
    assert_eq!(cookie.len(), COOKIE);
    let reply = Flying { from: address(RIGHT), to: None, octets: cookie };

    // The cookie is useless at another address, or for another request.
    let mut damaged = reply.clone();
    damaged.octets[30] ^= 1;
    assert!(matches!(room.arrive(LEFT, &damaged), Some(RoomEvent::Refused(_))));
    assert_eq!(room.arrive(LEFT, &reply), None);
    room.now = room.now + Duration::from_millis(1);
    let paid = asked_again(&mut room);
    let elsewhere = Flying { from: address(9), ..paid.clone() };
    assert_eq!(room.arrive(RIGHT, &elsewhere), Some(RoomEvent::Refused(Refused::Forged)));
    assert_eq!(answered(&mut room, &paid).len(), ANSWER);
}

#[test]
fn an_end_gets_its_session_though_others_repeat_old_requests() {
    let mut room = Room::ready(Over::Datagrams, SUITE);
    let recorded: Vec<_> = (0..50).map(|_| asked(&mut room)).collect();
    room.restart(LEFT, Keys::one(key(1)));
    room.forget();
    for old in recorded {
        let elsewhere = Flying { from: address(9), ..old };
        room.arrive(RIGHT, &elsewhere);
        while room.ends[RIGHT].seal.poll(room.now, &mut Vec::new()).is_some() {}
        room.pass(Duration::from_millis(100));
    }
    assert!(room.ends[RIGHT].events.contains(&RoomEvent::Session(NewSession { restarted: true })));
    room.talk(LEFT, b"and talks");
    room.talk(RIGHT, b"with the other");
}

#[test]
fn under_load_everybody_needs_a_cookie() {
    let mut room = Room::new(Over::Datagrams, SUITE);
    // A single instance, so that only load matters.
    let mut lengths = Vec::new();
    for _ in 0..40 {
        let request = asked_again(&mut room);
        lengths.push(answered(&mut room, &request).len());
        room.ends[LEFT].seal.ask_again(room.now);
    }
    assert_eq!(lengths[..16], [ANSWER; 16]);
    assert_eq!(lengths[16..], [COOKIE; 24]);
    room.pass(Duration::from_secs(20));
    room.talk(LEFT, b"by an answer or by a cookie");

    // Later there is capacity again.
    room.pass(Duration::from_secs(60));
    assert_eq!(flood(&mut room, 1), [ANSWER]);
}

#[test]
fn a_forged_request_is_rejected_before_anything_is_derived_or_decrypted() {
    let drawn = Arc::new(AtomicUsize::new(0));
    let mut room = Room::ready(Over::Datagrams, SUITE);
    let request = asked(&mut room);
    // An attempt to decrypt a request draws the secret of an answer.
    let (count, mut octets) = (Arc::clone(&drawn), random(5));
    let counting = Box::new(move |out: &mut [u8]| {
        count.fetch_add(1, Ordering::Relaxed);
        octets.fill(out);
    });
    let peers = vec![PeerKeys { keys: Keys::one(key(1)).into(), address: None, keepalive: None }];
    room.ends[RIGHT].seal =
        TwoWay::new(room.now, Over::Datagrams, peers, SUITE, PARAMETERS, counting).expect("one peer");
    let before = drawn.load(Ordering::Relaxed);
    for octet in 6..REQUEST {
        let mut forged = request.clone();
        forged.octets[octet] ^= 1;
        assert_eq!(room.arrive(RIGHT, &forged), Some(RoomEvent::Refused(Refused::Forged)), "{octet}");
    }
    assert_eq!(drawn.load(Ordering::Relaxed), before);
    // They have used up nothing.
    assert_eq!(answered(&mut room, &request).len(), ANSWER);
    assert!(drawn.load(Ordering::Relaxed) > before);
}

#[test]
fn requests_of_earlier_versions_are_answered_and_their_forgeries_are_few() {
    let mut room = Room::new(Over::Datagrams, SUITE);
    let unproved = |room: &mut Room| {
        let mut request = asked(room);
        request.octets[REQUEST - 16..].fill(0);
        request
    };
    let request = unproved(&mut room);
    assert_eq!(answered(&mut room, &request).len(), ANSWER);
    // A flood from elsewhere, each of which would have to be decrypted.
    for _ in 0..1_000 {
        let mut forged = Flying { from: address(9), ..request.clone() };
        forged.octets[40] ^= 1;
        assert_eq!(room.arrive(RIGHT, &forged), Some(RoomEvent::Refused(Refused::Forged)));
    }
    let flooded = Flying { from: address(9), ..unproved(&mut room) };
    assert_eq!(
        room.arrive(RIGHT, &flooded),
        Some(RoomEvent::Refused(Refused::Forged)),
        "its bucket is empty"
    );
    room.now = room.now + Duration::from_secs(6);
    let request = unproved(&mut room);
    assert_eq!(answered(&mut room, &request).len(), ANSWER, "other addresses have theirs");
    room.now = room.now + Duration::from_secs(6);
    let later = Flying { from: address(9), ..unproved(&mut room) };
    assert_eq!(answered(&mut room, &later).len(), ANSWER, "it has filled again");
}

#[test]
fn requests_from_one_address_cost_others_no_cookie() {
    let mut room = Room::new(Over::Datagrams, SUITE);
    for number in 0..20 {
        let request = Flying { from: address(9), ..asked_again(&mut room) };
        assert_eq!(answered(&mut room, &request).len(), if number < 16 { ANSWER } else { COOKIE });
        room.ends[LEFT].seal.ask_again(room.now);
    }
    let request = asked_again(&mut room);
    assert_eq!(answered(&mut room, &request).len(), ANSWER);
}

#[test]
fn a_cookie_is_good_for_four_minutes_at_most() {
    let mut room = Room::ready(Over::Datagrams, SUITE);
    let recorded = asked(&mut room);
    answered(&mut room, &recorded);
    let request = asked(&mut room);
    let octets = answered(&mut room, &request);
    assert_eq!(room.arrive(LEFT, &Flying { from: address(RIGHT), to: None, octets }), None);
    let paid = asked_again(&mut room);
    room.now = room.now + Duration::from_secs(240);
    let recorded = asked(&mut room);
    answered(&mut room, &recorded);
    assert_eq!(room.arrive(RIGHT, &paid), Some(RoomEvent::Refused(Refused::Forged)));
}
