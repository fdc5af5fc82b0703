//! Handshakes and their sessions.

use std::time::Duration;

use proptest::prelude::*;

use super::room::*;
use crate::{Keys, NewSession, NotSealed, Over, Refused, Suite};

const SUITES: [Suite; 4] = Suite::ALL;
const NEW: RoomEvent = RoomEvent::Session(NewSession { restarted: false });
const RESTARTED: RoomEvent = RoomEvent::Session(NewSession { restarted: true });

fn since(room: &Room, end: usize) -> Option<crate::SessionState> {
    room.ends[end].seal.session(0)
}

#[test]
fn two_ends_agree_on_keys_and_talk() {
    for suite in SUITES {
        for over in [Over::Datagrams, Over::Line] {
            let mut room = Room::new(over, suite);
            assert_eq!(room.send(LEFT, b"early"), Err(NotSealed::NoSession));
            room.run();
            for end in &room.ends {
                assert_eq!(end.events, [NEW]);
            }
            for i in 0..20_u8 {
                room.talk(LEFT, &[i; 40]);
                room.talk(RIGHT, &[i; 1]);
            }
        }
    }
}

#[test]
fn an_end_that_starts_anew_is_noticed() {
    // The initiator and the responder.
    let mut room = Room::ready(Over::Datagrams, Suite::ChaCha20Poly1305);
    room.restart(LEFT, Keys::one(key(1)));
    room.run();
    assert_eq!(room.ends[LEFT].events, [NEW]);
    assert_eq!(room.ends[RIGHT].events, [RESTARTED]);
    room.talk(RIGHT, b"welcome back");
    // A response needs no answer; this is none.
    room.pass(Duration::from_secs(10));

    room.restart(RIGHT, Keys::one(key(1)));
    room.forget();
    room.send(LEFT, b"to nobody").expect("it does not know yet");
    room.pass(Duration::from_secs(14));
    assert_eq!(since(&room, RIGHT), None);
    // Nothing is received for 15 s.
    room.pass(Duration::from_secs(2));
    assert_eq!(room.ends[LEFT].events, [RESTARTED]);
    room.talk(RIGHT, b"here we are");
    room.talk(LEFT, b"at last");
}

#[test]
fn a_keepalive_finds_out_as_well() {
    let mut room = Room::new(Over::Datagrams, Suite::ChaCha20Poly1305);
    room.ends[LEFT].seal = with_keepalive(room.now, Duration::from_secs(20));
    room.run();
    room.forget();
    room.restart(RIGHT, Keys::one(key(1)));
    // Behind the octet for a new mapping, the fourth keepalive requests an answer, which does not come within 15 s.
    room.pass(Duration::from_secs(3 + 4 * 20 + 16));
    room.talk(RIGHT, b"though nobody has sent anything");
}

#[test]
fn a_keepalive_is_one_datagram_and_every_fourth_has_an_answer() {
    // An hour with 180 keepalives of the left end, every fourth of which is answered.
    let mut room = Room::new(Over::Datagrams, Suite::ChaCha20Poly1305);
    room.ends[LEFT].seal = with_keepalive(room.now, Duration::from_secs(20));
    room.run();
    room.flown = 0;
    room.pass(Duration::from_secs(3_600));
    assert!((180..=180 + 45).contains(&room.flown), "{}", room.flown);

    // Two ends with keepalives hear each other, so that neither needs an answer.
    let mut room = Room::new(Over::Datagrams, Suite::ChaCha20Poly1305);
    for end in [LEFT, RIGHT] {
        room.ends[end].seal = with_keepalive_to(room.now, Duration::from_secs(20), 1 - end);
    }
    room.run();
    room.flown = 0;
    room.pass(Duration::from_secs(3_600));
    assert!((358..=362).contains(&room.flown), "{}", room.flown);
}

#[test]
fn silence_costs_nothing_and_one_way_traffic_little() {
    let mut room = Room::ready(Over::Line, Suite::AesCcm8);
    room.pass(Duration::from_secs(3_600));
    assert_eq!(room.flown, 6, "both have asked, both have answered, a confirmation and its answer");
}

#[test]
fn keys_are_renewed_after_two_hours_and_nothing_is_lost() {
    let mut room = Room::ready(Over::Datagrams, Suite::ChaCha20Poly1305);
    let first = since(&room, LEFT).expect("a session").since;
    let mut sessions = std::collections::BTreeSet::new();
    for i in 0..10_000_u32 {
        let octets = i.to_be_bytes();
        // Encrypted before the due datagrams, and delivered after them.
        let late = [LEFT, RIGHT].map(|end| room.seal(end, &octets).expect("there is always a session"));
        room.pass(Duration::from_secs(1));
        room.forget();
        for end in [LEFT, RIGHT] {
            assert_eq!(room.arrive(1 - end, &late[end]), Some(body(&octets)), "{i}");
        }
        sessions.insert(since(&room, LEFT).expect("a session").since);
    }
    assert_eq!(sessions.len(), 2);
    assert_eq!(sessions.last().expect("two").since(first).as_secs(), 7_200);
}

#[test]
fn new_keys_follow_much_traffic() {
    use crate::Rekey;
    // Octets a second, and the age at which 256 kB have gone through and the keys are 120 s old.
    for (octets, age) in [(1_000, 255..=257), (10_000, 119..=121), (30, 7_199..=7_201)] {
        let mut room = Room::ready(Over::Datagrams, Suite::ChaCha20Poly1305);
        let first = since(&room, LEFT).expect("a session").since;
        let mut renewed = None;
        for _ in 0..7_300 {
            room.talk_behind(LEFT, &vec![0; octets]);
            room.pass(Duration::from_secs(1));
            let now = since(&room, LEFT).expect("a session").since;
            if now != first {
                renewed = Some(now.since(first).as_secs());
                break;
            }
        }
        assert!(renewed.is_some_and(|renewed| age.contains(&renewed)), "{octets}: {renewed:?}");
    }
    let mut room = Room::new(Over::Datagrams, Suite::ChaCha20Poly1305);
    room.ends[LEFT].seal.rekey(Rekey::Every(Duration::from_secs(600)));
    room.run();
    let first = since(&room, LEFT).expect("a session").since;
    room.talk_behind(LEFT, b"one");
    room.pass(Duration::from_secs(700));
    assert_eq!(since(&room, LEFT).expect("a session").since.since(first).as_secs(), 600);
}

#[test]
fn keys_that_carry_nothing_are_erased() {
    let mut room = Room::ready(Over::Datagrams, Suite::ChaCha20Poly1305);
    room.flown = 0;
    room.pass(Duration::from_secs(3 * 3_600));
    assert_eq!((since(&room, LEFT), since(&room, RIGHT), room.flown), (None, None, 0));
    assert_eq!(room.send(LEFT, b"wakes it up"), Err(NotSealed::NoSession));
    room.run();
    room.talk(LEFT, b"and goes");
}

#[test]
fn keys_are_renewed_after_two_to_the_32_packets() {
    let mut room = Room::ready(Over::Datagrams, Suite::ChaCha20Poly1305);
    room.ends[LEFT].seal.skip_to((1 << 32) - 4_096);
    room.talk(LEFT, b"the whole counter");
    room.ends[LEFT].seal.skip_to((1 << 32) - 2);
    room.talk(LEFT, b"one");
    let last = since(&room, LEFT);
    room.now = room.now + Duration::from_secs(2);
    room.talk_behind(LEFT, b"last");
    assert_eq!(since(&room, LEFT).map(|session| session.sealed), Some(1), "a new one, and its confirmation");
    assert_ne!(since(&room, LEFT).map(|s| s.since), last.map(|s| s.since));
    // Without an answer, encryption ends.
    room.ends[LEFT].seal.skip_to((1 << 32) + (1 << 24));
    assert_eq!(room.send(LEFT, b"never"), Err(NotSealed::NoSession));
}

#[test]
fn no_key_and_nonce_twice_in_1_000_starts_with_a_clock_that_stands() {
    super::nonces::watch();
    let mut room = Room::ready(Over::Datagrams, Suite::ChaCha20Poly1305);
    for start in 0..1_000_usize {
        room.restart(start % 2, Keys::one(key(1)));
        if start % 2 == RIGHT {
            // It waits for the other end, which must detect the restart.
            room.restart(LEFT, Keys::one(key(1)));
        }
        room.run();
        for i in 0..3 {
            room.talk(LEFT, &[i]);
            room.talk(RIGHT, &[i]);
        }
    }
    assert!(super::nonces::count() > 6_000);
}

#[test]
fn keys_of_the_file_are_replaced_with_traffic_going_on() {
    let [old, new] = [1, 2].map(key);
    let steps =
        [Keys::two(old.clone(), new.clone()), Keys::two(new.clone(), old.clone()), Keys::one(new.clone())];
    for over in [Over::Datagrams, Over::Line] {
        let mut room =
            Room::with_keys(over, Suite::AesCcm8, [Keys::one(old.clone()), Keys::one(old.clone())]);
        room.run();
        let mut count = 0_u32;
        let mut traffic = |room: &mut Room| {
            for _ in 0..100 {
                count += 1;
                for end in [LEFT, RIGHT] {
                    let flying = room.seal(end, &count.to_be_bytes()).expect("there is always a session");
                    room.pass(Duration::from_secs(1));
                    assert_eq!(room.arrive(1 - end, &flying), Some(body(&count.to_be_bytes())), "{count}");
                }
            }
        };
        traffic(&mut room);
        for keys in &steps {
            for end in [RIGHT, LEFT] {
                let now = room.now;
                room.ends[end].seal.set_keys(now, 0, &keys.clone().into()).expect("no two alike");
                traffic(&mut room);
            }
        }
        for end in [LEFT, RIGHT] {
            assert_eq!(since(&room, end).map(|session| session.key), Some(new.id()));
        }
    }
}

#[test]
fn who_does_not_know_the_new_key_yet_is_asked_by_the_old_one() {
    let [old, new] = [1, 2].map(key);
    let keys = [Keys::two(new, old.clone()), Keys::one(old)];
    let mut room = Room::with_keys(Over::Datagrams, Suite::ChaCha20Poly1305, keys);
    room.pass(Duration::from_secs(30));
    room.talk(LEFT, b"by the second key");
}

#[test]
fn a_session_that_was_requested_with_a_removed_key_is_not_used() {
    let [old, new] = [1, 2].map(key);
    let mut room = Room::with_keys(
        Over::Datagrams,
        Suite::ChaCha20Poly1305,
        [Keys::one(old.clone()), Keys::two(new.clone(), old)],
    );
    // Its request is answered, and its first datagram is late.
    for to in [RIGHT, LEFT] {
        room.poll();
        let flying = room.air.pop_front().expect("a request, then its answer");
        room.arrive(to, &flying);
    }
    let late = room.seal(LEFT, b"late").expect("a session");
    let now = room.now;
    room.ends[RIGHT].seal.set_keys(now, 0, &Keys::one(new).into()).expect("no two alike");
    assert_eq!(room.arrive(RIGHT, &late), Some(RoomEvent::Refused(Refused::Unknown)));
    assert_eq!(since(&room, RIGHT), None);
}

#[test]
fn ends_that_use_each_others_session_agree_again() {
    let suite = Suite::ChaCha20Poly1305;
    let mut room = Room::new(Over::Datagrams, suite);
    room.ends[RIGHT].seal =
        start(room.now, Over::Datagrams, suite, Keys::one(key(1)), Some(address(LEFT)), 9);
    // The last datagram of an end with that first octet; all others are lost.
    let last = |room: &mut Room, from, first| {
        room.poll();
        let is_it = |flying: &Flying| flying.from == address(from) && flying.octets[0] == first;
        let found = room.air.iter().rfind(|flying| is_it(flying)).cloned();
        room.air.clear();
        found.expect("a datagram of that kind")
    };
    let [request_kind, answer_kind, keepalive] = [0x61, 0x62, 0x28];
    // Right has asked, and left has answered, but hears nothing, and asks itself.
    let request = last(&mut room, RIGHT, request_kind);
    room.arrive(LEFT, &request);
    let answer = last(&mut room, LEFT, answer_kind);
    room.arrive(RIGHT, &answer);
    let of_right = last(&mut room, RIGHT, keepalive);
    room.now = room.now + Duration::from_millis(1_500);
    let request = last(&mut room, LEFT, request_kind);
    room.arrive(RIGHT, &request);
    let answer = last(&mut room, RIGHT, answer_kind);
    room.arrive(LEFT, &answer);
    let of_left = last(&mut room, LEFT, keepalive);
    // Each hears that the other one uses the session that it has asked for.
    assert_eq!(room.arrive(LEFT, &of_right), Some(NEW));
    assert_eq!(room.arrive(RIGHT, &of_left), Some(NEW));
    room.pass(Duration::from_secs(40));
    for second in 0..200_u8 {
        for end in [LEFT, RIGHT] {
            let sent = room.seal(end, &[second]).expect("there is always a session");
            assert_eq!(room.arrive(1 - end, &sent), Some(body(&[second])), "{second}");
        }
        room.pass(Duration::from_secs(1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Both ends initiate at once, and some messages are late or lost: finally they use the same session, and
    /// from then on no body is lost, for longer than any old state is kept.
    #[test]
    fn both_ends_may_ask_at_once(fates in prop::collection::vec(0_u8..8, 0..40), line in any::<bool>(), seed in any::<u32>()) {
        let over = if line { Over::Line } else { Over::Datagrams };
        let mut room = Room::new(over, Suite::AesCcm8);
        for end in [LEFT, RIGHT] {
            room.ends[end].seal =
                start(room.now, over, Suite::AesCcm8, Keys::one(key(1)), Some(address(1 - end)), u64::from(seed) * 2 + end as u64);
        }
        let mut delivered = [0_u32; 2];
        for fate in fates {
            room.poll();
            match fate {
                0 => { room.air.pop_front(); }
                1 => room.now = room.now + Duration::from_millis(700),
                2 => room.air.rotate_left(usize::from(!room.air.is_empty())),
                3 => { let _ = room.send(LEFT, b"early"); }
                4 => { let _ = room.send(RIGHT, b"early"); }
                _ => {
                    if let Some(flying) = room.air.pop_front() {
                        let to = if flying.from == address(LEFT) { RIGHT } else { LEFT };
                        room.arrive(to, &flying);
                        delivered[to] += 1;
                    }
                }
            }
        }
        room.pass(Duration::from_secs(40));
        for second in 0..200_u8 {
            for end in [LEFT, RIGHT] {
                let sent = room.seal(end, &[second]);
                prop_assert!(sent.is_ok(), "{} at {}: {:?}", second, end, room.ends[end].events);
                prop_assert_eq!(room.arrive(1 - end, &sent.expect("sealed")), Some(body(&[second])));
            }
            room.pass(Duration::from_secs(1));
        }
    }
}
