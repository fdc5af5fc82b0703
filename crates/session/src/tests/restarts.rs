//! Ends that restart, and ends that never return.

use std::time::Duration;

use super::room::*;
use crate::{Keys, NewSession, NotSealed, Over, Refused, Suite, Unanswered};

const NEW: RoomEvent = RoomEvent::Session(NewSession { restarted: false });
const RESTARTED: RoomEvent = RoomEvent::Session(NewSession { restarted: true });

fn ready() -> Room {
    Room::ready(Over::Datagrams, Suite::ChaCha20Poly1305)
}

/// Returns the datagrams that an end sends of its own accord within some seconds, with their times;
/// `packets`: it also has packets to send.
fn sent(room: &mut Room, end: usize, seconds: u32, packets: bool) -> Vec<(Duration, Flying)> {
    let start = room.now;
    let mut sent = Vec::new();
    for _ in 0..seconds * 10 {
        if packets {
            let _ = room.seal(end, b"a packet");
        }
        let end = &mut room.ends[end];
        let mut octets = Vec::new();
        while let Some((_, to)) = end.seal.poll(room.now, &mut octets) {
            let to = to.map(|to| to.peer).or(end.seal.address(0));
            let flying = Flying { from: end.address, to, octets: std::mem::take(&mut octets) };
            sent.push((room.now.since(start), flying));
        }
        room.now = room.now + Duration::from_millis(100);
    }
    sent
}

/// Returns the farewell of an end.
fn farewell(room: &mut Room, end: usize) -> Flying {
    let now = room.now;
    room.ends[end].seal.farewell(now);
    let mut sent = sent(room, end, 1, false);
    assert_eq!(sent.len(), 1);
    sent.remove(0).1
}

#[test]
fn an_end_that_listens_asks_where_the_other_one_was() {
    let mut room = ready();
    let known: Vec<_> = room.ends[RIGHT].seal.whereabouts().collect();
    assert_eq!(known.iter().map(|at| (at.peer, at.addresses.peer)).collect::<Vec<_>>(), [(0, address(LEFT))]);
    assert_eq!(room.ends[LEFT].seal.whereabouts().count(), 0, "its address is configured");

    room.restart(RIGHT, Keys::one(key(1)));
    room.ends[RIGHT].seal.remember(room.now, 0, address(LEFT).into());
    assert_eq!(room.ends[RIGHT].seal.address(0), None, "nothing is sent there but requests");
    room.forget();
    let moves = room.ends[RIGHT].seal.moves();
    room.run();
    assert_eq!(room.ends[RIGHT].events, [NEW]);
    assert_eq!(room.ends[LEFT].events, [RESTARTED]);
    assert_ne!(room.ends[RIGHT].seal.moves(), moves);
    room.talk(LEFT, b"at once");
    room.talk(RIGHT, b"both ways");
}

#[test]
fn an_address_that_does_not_answer_is_given_up_and_the_peer_may_come_from_elsewhere() {
    for packets in [false, true] {
        let mut room = ready();
        room.restart(RIGHT, Keys::one(key(1)));
        room.ends[RIGHT].seal.remember(room.now, 0, address(9).into());
        let requests = sent(&mut room, RIGHT, 3_600, packets);
        assert_eq!(requests.len(), 6);
        assert!(requests.iter().all(|(_, request)| request.to == Some(address(9))));
        assert_eq!(room.ends[RIGHT].seal.poll_unanswered(), None, "it comes when it wants to");
        room.restart(LEFT, Keys::one(key(1)));
        room.run();
        room.talk(RIGHT, b"there you are");
    }
}

#[test]
fn a_peer_with_an_address_that_has_moved_is_asked_at_both() {
    let mut room = ready();
    room.restart(LEFT, Keys::one(key(1)));
    room.ends[LEFT].seal.remember(room.now, 0, address(9).into());
    let requests = sent(&mut room, LEFT, 10, false);
    let to: Vec<_> = requests.iter().map(|(_, request)| request.to.expect("somewhere")).collect();
    assert_eq!(to, [address(9), address(RIGHT), address(RIGHT), address(RIGHT)]);
    assert_eq!(room.ends[LEFT].seal.poll_unanswered(), Some((0, Unanswered::Request)));
}

#[test]
fn a_farewell_ends_the_session_and_nothing_is_sent_until_there_is_something() {
    for over in [Over::Datagrams, Over::Line] {
        for end in [LEFT, RIGHT] {
            let mut room = Room::ready(over, Suite::AesCcm8);
            let farewell = farewell(&mut room, end);
            assert_eq!(room.arrive(1 - end, &farewell), Some(RoomEvent::Closed));
            assert!(room.ends.iter().all(|end| end.seal.session(0).is_none()));
            assert_eq!(room.seal(end, b"after the end"), Err(NotSealed::NoSession));
            assert!(sent(&mut room, 1 - end, 3_600, false).is_empty());
            assert_eq!(room.send(1 - end, b"held"), Err(NotSealed::NoSession));
            let first = sent(&mut room, 1 - end, 1, false);
            assert_eq!(first.first().map(|(after, _)| after.as_secs()), Some(0), "a request at once");
        }
    }
}

#[test]
fn a_farewell_is_not_forged_and_not_replayed() {
    let mut room = ready();
    // Not of a keepalive, nor of other datagrams.
    let now = room.now;
    room.ends[LEFT].seal.ask_again(now);
    room.run();
    let body = room.seal(LEFT, b"a body").expect("a session");
    let farewell = farewell(&mut room, LEFT);
    for octet in 0..farewell.octets.len() {
        let mut forged = farewell.clone();
        forged.octets[octet] ^= 0x04;
        assert!(matches!(room.arrive(RIGHT, &forged), Some(RoomEvent::Refused(_))), "{octet}");
    }
    let mut forged = body.clone();
    forged.octets[0] ^= 0x04;
    assert_eq!(room.arrive(RIGHT, &forged), Some(RoomEvent::Refused(Refused::Forged)));
    assert!(room.ends[RIGHT].seal.session(0).is_some());
    assert_eq!(room.arrive(RIGHT, &farewell), Some(RoomEvent::Closed));
    assert_eq!(room.arrive(RIGHT, &farewell), Some(RoomEvent::Refused(Refused::Unknown)));

    // A farewell delayed until the next start.
    for _ in 0..4 {
        room.restart(LEFT, Keys::one(key(1)));
        room.run();
        let event = room.arrive(RIGHT, &farewell);
        assert!(matches!(event, Some(RoomEvent::Refused(_))), "{event:?}");
        room.talk(LEFT, b"still there");
        room.talk(RIGHT, b"both ways");
    }
}

#[test]
fn a_farewell_of_the_session_before_ends_nothing() {
    let mut room = ready();
    let now = room.now;
    // Delayed during a key exchange of both ends.
    let mut octets = Vec::new();
    let flags = crate::BodyFlags { several: false, addressed: true };
    let to = crate::Destination::Peer(0);
    room.ends[LEFT].seal.seal(now, to, flags, &[], &mut octets).expect("a session");
    let late = Flying { from: address(LEFT), to: None, octets };
    room.ends[LEFT].seal.ask_again(now);
    room.run();
    assert_eq!(room.arrive(RIGHT, &late), None);
    room.talk(RIGHT, b"by the new keys");
}

#[test]
fn with_packets_waiting_requests_are_at_most_two_seconds_apart_for_thirty() {
    let mut room = Room::new(Over::Datagrams, Suite::ChaCha20Poly1305);
    let requests = sent(&mut room, LEFT, 120, true);
    for pair in requests.windows(2) {
        let (wait, most) = (pair[1].0 - pair[0].0, if pair[0].0.as_secs() < 30 { 2_000 } else { 4_000 });
        assert!((1_000..=most).contains(&wait.as_millis()), "{wait:?} after {:?}", pair[0].0);
    }
    // With a session whose other end does not answer.
    let mut room = ready();
    let mut requests = sent(&mut room, LEFT, 60, true);
    // Before them it requests a sign of life.
    requests.retain(|(_, flying)| flying.octets[0] == 0x61);
    let first = requests[0].0;
    assert_eq!(first.as_secs(), 15, "nothing was heard for so long");
    for pair in requests.windows(2).filter(|pair| (pair[0].0 - first).as_secs() < 28) {
        assert!((pair[1].0 - pair[0].0).as_millis() <= 2_000, "{pair:?}");
    }
}

#[test]
fn a_hint_that_nobody_listens_makes_a_peer_be_asked_and_ends_no_session() {
    let mut room = ready();
    let hint = |room: &mut Room, at| {
        let now = room.now;
        room.ends[LEFT].seal.note_unreachable(now, at);
        let before = room.flown;
        room.run();
        room.flown - before
    };
    room.now = room.now + Duration::from_secs(60);
    assert_eq!(hint(&mut room, address(9)), 0, "nobody is there");
    // A request, its answer, a confirmation and the answer to that.
    assert_eq!(hint(&mut room, address(RIGHT)), 4);
    for _ in 0..29 {
        room.pass(Duration::from_secs(1));
        assert_eq!(hint(&mut room, address(RIGHT)), 0);
    }
    room.talk(LEFT, b"as if nothing were");
    assert_eq!(room.ends[LEFT].seal.poll_unanswered(), None);
}

#[test]
fn silence_is_found_out() {
    let unanswered = |room: &mut Room, seconds, packets| {
        sent(room, LEFT, seconds, packets);
        room.ends[LEFT].seal.poll_unanswered()
    };
    let mut room = Room::new(Over::Datagrams, Suite::ChaCha20Poly1305);
    assert_eq!(unanswered(&mut room, 4, false), None);
    assert_eq!(unanswered(&mut room, 1, false), Some((0, Unanswered::Request)));
    assert_eq!(unanswered(&mut room, 600, true), None, "once");
    let mut room = ready();
    assert_eq!(unanswered(&mut room, 600, false), None, "nothing was sent");
    assert_eq!(unanswered(&mut room, 15, true), None);
    assert_eq!(unanswered(&mut room, 1, true), Some((0, Unanswered::Session)));
    let mut room = ready();
    room.pass(Duration::from_secs(7_500));
    assert_eq!(room.ends[LEFT].seal.poll_unanswered(), None, "new keys were agreed on");
}
