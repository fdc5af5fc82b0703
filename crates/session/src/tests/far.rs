//! Ends with a long way between them, while both have packets to send.

use std::collections::VecDeque;
use std::time::Duration;

use super::room::*;
use crate::{Keys, Over, Suite};

const STEP: Duration = Duration::from_millis(100);

/// Passes `seconds`, while each of `ends` has a packet every second and a datagram takes half of `round_trip`. Returns
/// the time from the start until each end delivers, in milliseconds, and the number of sessions of both.
fn talk(room: &mut Room, ends: &[usize], seconds: u32, round_trip: Duration) -> ([Option<u64>; 2], usize) {
    let start = room.now;
    let mut flying: VecDeque<_> = VecDeque::new();
    let mut delivered = [None; 2];
    for step in 0..seconds * 10 {
        while let Some((_, datagram)) = flying.pop_front_if(|(at, _): &mut (_, Flying)| *at <= room.now) {
            let to = if datagram.from == address(LEFT) { RIGHT } else { LEFT };
            if matches!(room.arrive(to, &datagram), Some(RoomEvent::Body(..))) {
                delivered[to].get_or_insert(room.now.since(start).as_millis() as u64);
            }
        }
        for end in ends {
            if step % 10 == 0 {
                let _ = room.send(*end, b"a packet");
            }
        }
        room.poll();
        flying.extend(room.air.drain(..).map(|datagram| (room.now + round_trip / 2, datagram)));
        room.now = room.now + STEP;
    }
    let events = room.ends.iter().flat_map(|end| &end.events);
    (delivered, events.filter(|event| matches!(event, RoomEvent::Session(_))).count())
}

#[test]
fn a_session_needs_a_few_round_trips_however_long_they_are() {
    for (round_trip, most) in [(600, 2), (1_800, 6), (2_200, 8), (4_200, 14), (6_000, 20), (20_000, 70)] {
        let round_trip = Duration::from_millis(round_trip);
        let mut room = Room::new(Over::Datagrams, Suite::ChaCha20Poly1305);
        let (delivered, sessions) = talk(&mut room, &[LEFT], 600, round_trip);
        println!("{round_trip:?}: {delivered:?}, {sessions} sessions");
        assert!(delivered[RIGHT].is_some_and(|at| at <= most * 1_000), "{round_trip:?}: {delivered:?}");
        assert_eq!(sessions, 2, "{round_trip:?}");

        // Both ends have the address of the other, and packets for it.
        let mut room = Room::new(Over::Datagrams, Suite::ChaCha20Poly1305);
        room.ends[RIGHT].seal =
            start(room.now, room.over, Suite::ChaCha20Poly1305, Keys::one(key(1)), Some(address(LEFT)), 9);
        let (delivered, sessions) = talk(&mut room, &[LEFT, RIGHT], 600, round_trip);
        println!("{round_trip:?}: {delivered:?}, {sessions} sessions, both");
        assert!(delivered.iter().flatten().filter(|at| **at <= most * 1_000).count() == 2, "{delivered:?}");
        assert!(sessions <= 4, "{round_trip:?}: {sessions} sessions");
    }
}
