//! Encrypted bodies: lost, late, duplicated, damaged, and forged ones.

use std::time::Duration;

use proptest::prelude::*;

use super::room::*;
use crate::{BodyFlags, Destination, Missing, NotSealed, Opened, Over, Refused, Sender, Suite};

fn ready() -> Room {
    Room::ready(Over::Datagrams, Suite::ChaCha20Poly1305)
}

#[test]
fn header_and_tag_take_as_many_octets_as_said() {
    for (over, suite, octets) in [
        (Over::Datagrams, Suite::ChaCha20Poly1305, 20),
        (Over::Datagrams, Suite::AesGcm, 20),
        (Over::Datagrams, Suite::AesCcm8, 12),
        (Over::Line, Suite::AesCcm8, 11),
        (Over::Line, Suite::AesCcm4, 7),
    ] {
        let mut room = Room::ready(over, suite);
        assert_eq!(room.ends[LEFT].seal.around().usual(), octets);
        let first = room.seal(LEFT, b"body").expect("a session").octets.len() - 4;
        assert_eq!(first, octets, "soon after the confirmation");
        room.now = room.now + Duration::from_secs(10);
        let after_silence = room.seal(LEFT, b"body").expect("a session").octets.len() - 4;
        assert_eq!(after_silence, octets);
        let long = (0..32_770)
            .filter(|_| room.seal(LEFT, b"body").expect("a session").octets.len() - 4 == octets + 6);
        assert_eq!(long.count(), 4, "the whole counter, from 32,768 on behind the answer of the other end");
    }
}

#[test]
fn nothing_is_opened_twice() {
    let mut room = ready();
    let flying = room.seal(LEFT, b"once").expect("a session");
    assert_eq!(room.arrive(RIGHT, &flying), Some(body(b"once")));
    assert_eq!(room.arrive(RIGHT, &flying), Some(RoomEvent::Refused(Refused::Replayed)));
}

#[test]
fn late_ones_are_opened_up_to_2_048() {
    let mut room = ready();
    let flying: Vec<_> =
        (0..2_300_u32).map(|i| room.seal(LEFT, &i.to_be_bytes()).expect("a session")).collect();
    room.arrive(RIGHT, &flying[2_200]);
    // The 2,048 counters below the next one, including the one opened.
    for late in (153..2_200).rev() {
        assert_eq!(room.arrive(RIGHT, &flying[late]), Some(body(&(late as u32).to_be_bytes())));
        assert_eq!(room.arrive(RIGHT, &flying[late]), Some(RoomEvent::Refused(Refused::Replayed)));
    }
    let too_late = room.arrive(RIGHT, &flying[152]);
    // Its low bits are completed to a future counter.
    assert_eq!(too_late, Some(RoomEvent::Refused(Refused::Forged)));
}

#[test]
fn units_that_are_missing_are_counted() {
    let mut room = ready();
    let units = [1, 3, 2, 5, 1, 4, 7];
    let mut flying = Vec::new();
    for units in units {
        flying.push(room.seal(LEFT, b"some units").expect("a session"));
        room.ends[LEFT].seal.note_sealed(Destination::Peer(0), units);
    }
    let mut open = |at: usize| {
        let mut octets = flying[at].octets.clone();
        let end = &mut room.ends[RIGHT];
        let Opened::Body { missing, .. } = end.seal.open(room.now, Some(flying[at].from.into()), &mut octets)
        else {
            panic!("not opened: {at}");
        };
        if missing != Missing::Uncounted {
            end.seal.note_opened(Sender::Peer(0), units[at]);
        }
        missing
    };
    // The handshake has encrypted a datagram before.
    assert!(matches!(open(0), Missing::Unknown | Missing::Counted(0)));
    assert_eq!(open(1), Missing::Counted(0));
    assert_eq!(open(4), Missing::Counted(2 + 5));
    assert_eq!(open(3), Missing::Uncounted, "late");
    assert_eq!(open(5), Missing::Counted(0), "late ones were counted already");
    assert_eq!(open(6), Missing::Counted(0));
}

#[test]
fn after_a_long_loss_it_goes_on() {
    for (lost, wait) in [(63_000_u32, 0), (70_000, 0), (200_000, 0), (70_000, 10)] {
        let mut room = ready();
        room.talk(LEFT, b"before");
        for _ in 0..lost {
            room.seal(LEFT, b"lost").expect("a session");
        }
        room.now = room.now + Duration::from_secs(wait);
        let mut refused = 0;
        loop {
            let flying = room.seal(LEFT, b"after").expect("a session");
            if room.arrive(RIGHT, &flying) == Some(body(b"after")) {
                break;
            }
            refused += 1;
        }
        assert_eq!(refused, 0, "{refused} behind {lost}");
        room.talk_behind(LEFT, b"and so on");
    }
}

#[test]
fn an_octet_that_is_changed_anywhere_is_found() {
    for (over, suite) in [(Over::Datagrams, Suite::ChaCha20Poly1305), (Over::Line, Suite::AesCcm8)] {
        let mut room = Room::ready(over, suite);
        let flying = room.seal(LEFT, b"a body").expect("a session");
        for bit in 0..flying.octets.len() * 8 {
            let mut damaged = flying.clone();
            damaged.octets[bit / 8] ^= 1 << (bit % 8);
            let event = room.arrive(RIGHT, &damaged);
            assert!(matches!(event, Some(RoomEvent::Refused(_))), "bit {bit}: {event:?}");
        }
        for length in 0..flying.octets.len() {
            let mut short = flying.clone();
            short.octets.truncate(length);
            let event = room.arrive(RIGHT, &short);
            assert!(matches!(event, Some(RoomEvent::Refused(_))), "{length} octets: {event:?}");
        }
        assert_eq!(room.arrive(RIGHT, &flying), Some(body(b"a body")), "nothing was changed by all that");
    }
}

#[test]
fn flags_travel() {
    let mut room = ready();
    for (several, addressed) in [(true, false), (false, true), (true, true)] {
        let flags = BodyFlags { several, addressed };
        let mut octets = Vec::new();
        let end = &mut room.ends[LEFT].seal;
        end.seal(room.now, Destination::Peer(0), flags, b"body", &mut octets).expect("a session");
        let flying = Flying { from: address(LEFT), to: None, octets };
        assert_eq!(room.arrive(RIGHT, &flying), Some(RoomEvent::Body(b"body".to_vec(), flags)));
    }
}

#[test]
fn there_is_nobody_else() {
    let mut room = ready();
    for to in [Destination::Peer(1), Destination::Everybody] {
        let end = &mut room.ends[LEFT].seal;
        let sealed = end.seal(room.now, to, BodyFlags::default(), b"body", &mut Vec::new());
        assert_eq!(sealed, Err(NotSealed::NoDestination));
    }
}

#[test]
fn reflected_bodies_are_refused() {
    for over in [Over::Datagrams, Over::Line] {
        let mut room = Room::ready(over, Suite::AesCcm8);
        for _ in 0..20 {
            let mut flying = room.seal(LEFT, b"mine").expect("a session");
            flying.from = address(RIGHT);
            let event = room.arrive(LEFT, &flying);
            assert!(
                matches!(event, Some(RoomEvent::Refused(Refused::Forged | Refused::Unknown))),
                "{event:?}"
            );
        }
    }
}

#[test]
fn an_address_moves_by_an_authentic_newer_packet_only() {
    let mut room = ready();
    let [first, second] = [b"first", b"later"].map(|octets| room.seal(LEFT, octets).expect("a session"));
    let at = |flying: &Flying, number| Flying { from: address(number), ..flying.clone() };
    let mut forged = at(&second, 7);
    forged.octets[10] ^= 1;
    room.arrive(RIGHT, &forged);
    assert_eq!(room.ends[RIGHT].seal.address(0), Some(address(LEFT)), "forged");
    room.arrive(RIGHT, &at(&second, 8));
    assert_eq!(room.ends[RIGHT].seal.address(0), Some(address(8)), "newer");
    room.arrive(RIGHT, &at(&first, 9));
    assert_eq!(room.ends[RIGHT].seal.address(0), Some(address(8)), "older");
    room.arrive(RIGHT, &at(&second, 9));
    assert_eq!(room.ends[RIGHT].seal.address(0), Some(address(8)), "replayed");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Random octets: nothing is delivered or answered, and the session continues afterwards.
    #[test]
    fn octets_of_nobody_do_nothing(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..60),
        kinds in prop::collection::vec(0_usize..8, 60),
        line in any::<bool>(),
    ) {
        let over = if line { Over::Line } else { Over::Datagrams };
        let mut room = Room::ready(over, Suite::AesCcm8);
        for (mut octets, kind) in datagrams.into_iter().zip(kinds) {
            // Most random octets would have an invalid kind.
            if let (Some(first), Some(known)) = (octets.first_mut(), [0x20, 0x24, 0x30, 0x61, 0x62, 0x63].get(kind)) {
                *first = *known;
                let length = match known { 0x61 => 91, 0x62 => 68, 0x63 => 50, _ => octets.len() };
                octets.resize(length, 7);
                if kind % 2 == 0 && octets.len() > 1 {
                    octets[1] &= 3;
                }
            }
            let event = room.arrive(RIGHT, &Flying { from: address(5), to: None, octets });
            prop_assert!(matches!(event, Some(RoomEvent::Refused(_))), "{:?}", event);
            prop_assert!(room.ends[RIGHT].seal.poll(room.now, &mut Vec::new()).is_none());
        }
        room.talk(LEFT, b"still there");
        room.talk(RIGHT, b"so are we");
    }

    /// For any order, loss and repetition: each body is delivered at most once, and unchanged.
    #[test]
    fn what_comes_out_was_sealed(order in prop::collection::vec(0_usize..300, 1..600)) {
        let mut room = ready();
        let flying: Vec<_> =
            (0..300_u32).map(|i| room.seal(LEFT, &i.to_be_bytes()).expect("a session")).collect();
        let mut seen = std::collections::BTreeSet::new();
        for which in order {
            let event = room.arrive(RIGHT, &flying[which]);
            if seen.insert(which) {
                prop_assert_eq!(event, Some(body(&(which as u32).to_be_bytes())));
            } else {
                prop_assert_eq!(event, Some(RoomEvent::Refused(Refused::Replayed)));
            }
        }
    }
}
