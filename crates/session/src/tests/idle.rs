//! Cost of ends that have nothing to send, or only one of them something.

use std::time::Duration;

use thinair_wire::time::Instant;

use super::room::*;
use crate::{Over, Suite, TwoWay};

const SUITE: Suite = Suite::ChaCha20Poly1305;
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// Flag of a whole counter in the first octet.
const FULL: u8 = 0x10;

/// A room whose left end has a keepalive, after the key exchange.
fn with_left(keepalive: Duration) -> Room {
    let mut room = Room::new(Over::Datagrams, SUITE);
    room.ends[LEFT].seal = with_keepalive(room.now, keepalive);
    room.run();
    (room.flown, room.octets) = (0, 0);
    room.forget();
    room
}

fn session_of(seal: &TwoWay) -> Option<Instant> {
    seal.session(0).map(|session| session.since)
}

/// Delivers what is due until `end`, through a NAT before the left end that forgets it after `timeout`.
fn pass_nat(room: &mut Room, end: Instant, timeout: Duration, mapped_at: &mut Instant) {
    loop {
        room.poll();
        while let Some(flying) = room.air.pop_front() {
            let is_left = flying.from == address(LEFT);
            if is_left {
                *mapped_at = room.now;
            }
            if is_left || room.now.since(*mapped_at) <= timeout {
                room.arrive(if is_left { RIGHT } else { LEFT }, &flying);
            }
            room.poll();
        }
        match room.ends.iter().filter_map(|end| end.seal.poll_at()).min() {
            Some(due) if due <= end => room.now = due.max(room.now),
            _ => break,
        }
    }
    room.now = end;
}

#[test]
fn an_idle_day_costs_nothing_without_a_nat_and_little_behind_one() {
    let mut room = Room::ready(Over::Datagrams, SUITE);
    (room.flown, room.octets) = (0, 0);
    room.pass(DAY);
    assert_eq!((room.flown, room.octets), (0, 0));

    for (timeout, most) in [(300, 16_000), (30, 155_000)] {
        let mut room = with_left(Duration::from_secs(timeout) * 9 / 10);
        for day in 1..=3 {
            (room.flown, room.octets) = (0, 0);
            room.pass(DAY);
            println!("day {day}, NAT of {timeout} s: {} datagrams, {} octets", room.flown, room.octets);
            assert!(room.octets <= most, "NAT of {timeout} s, day {day}: {} octets", room.octets);
        }
    }
}

#[test]
fn a_bare_octet_costs_three_fifths_and_changes_nothing_at_the_far_end() {
    for (timeout, most) in [(300, 9_500), (30, 95_000)] {
        let mut room = with_left(Duration::from_secs(timeout) * 9 / 10);
        room.ends[LEFT].seal.send_bare_keepalives();
        for day in 1..=3 {
            (room.flown, room.octets) = (0, 0);
            room.pass(DAY);
            println!("bare, day {day}, NAT of {timeout} s: {} datagrams, {} octets", room.flown, room.octets);
            assert!(room.octets <= most, "NAT of {timeout} s, day {day}: {} octets", room.octets);
        }
        assert!(room.ends.iter().all(|end| end.seal.session(0).is_none()), "keys come with packets only");
        assert!(room.ends[LEFT].events.is_empty(), "it is answered by nothing");
        // The next packet is behind a handshake; before it, an octet from elsewhere moves no address.
        let elsewhere = Flying { from: address(7), to: None, octets: vec![0] };
        room.arrive(RIGHT, &elsewhere);
        assert_eq!(room.ends[RIGHT].seal.address(0), Some(address(LEFT)));
        assert!(room.seal(RIGHT, b"a packet").is_err());
        room.run();
        room.talk_behind(RIGHT, b"the same packet");
    }
}

#[test]
fn an_end_that_may_have_moved_shows_its_address_at_once() {
    let mut room = with_left(Duration::from_secs(270));
    room.ends[LEFT].seal.send_bare_keepalives();
    room.pass(Duration::from_secs(600));
    room.ends[LEFT].address = address(8);
    let now = room.now;
    room.ends[LEFT].seal.show_address(now);
    room.poll();
    let flying = room.air.pop_front().expect("a keepalive");
    room.arrive(RIGHT, &flying);
    assert_eq!(room.ends[RIGHT].seal.address(0), Some(address(8)));
}

#[test]
fn an_end_behind_a_nat_is_reached_at_any_minute_of_a_day() {
    let timeout = Duration::from_secs(300);
    let mut room = with_left(timeout * 9 / 10);
    let (start, mut mapped_at) = (room.now, room.now);
    for minute in 1..=24 * 60 {
        pass_nat(&mut room, start + MINUTE * minute, timeout, &mut mapped_at);
        assert!(room.now.since(mapped_at) <= timeout, "no mapping in minute {minute}");
        // After more and more silence, up to 11 hours of it.
        if minute.is_power_of_two() || minute % 719 == 0 {
            room.forget();
            room.send(RIGHT, &minute.to_be_bytes()).expect("a session");
            let now = room.now;
            pass_nat(&mut room, now, timeout, &mut mapped_at);
            assert!(room.ends[LEFT].events.contains(&body(&minute.to_be_bytes())), "minute {minute}");
        }
    }
}

#[test]
fn readings_of_a_sensor_are_answered_a_few_times_a_day() {
    for over in [Over::Datagrams, Over::Line] {
        let mut room = Room::ready(over, SUITE);
        (room.flown, room.octets) = (0, 0);
        let mut readings = 0;
        let day = room.now + DAY;
        while room.now < day {
            room.talk_behind(LEFT, b"21.5 C");
            room.pass(Duration::from_secs(28));
            readings += 1;
        }
        let more = room.flown - readings;
        println!("{readings} readings and {more} other datagrams, {} octets", room.octets);
        // Requests for answers, and new keys every 2 hours: 4 datagrams each.
        assert!(more <= 2 * 8 + 4 * 12, "{more} datagrams beside {readings} readings");
        // No reading has a whole counter.
        let least = readings * (28 + 4 - usize::from(over == Over::Line) + 6 + 16);
        assert!(room.octets <= least + more * 130, "{} octets", room.octets);
    }
}

#[test]
fn an_answered_request_needs_no_sign_of_life() {
    let mut room = Room::ready(Over::Datagrams, SUITE);
    (room.flown, room.octets) = (0, 0);
    for _ in 0..10 {
        room.talk(LEFT, b"GET");
        room.talk(RIGHT, b"2.05");
        room.pass(MINUTE);
    }
    assert_eq!(room.flown, 20);
}

#[test]
fn an_end_that_goes_on_sending_finds_out_in_15_s_that_nobody_is_there() {
    let mut room = Room::ready(Over::Datagrams, SUITE);
    room.talk(LEFT, b"a request");
    room.talk(RIGHT, b"and its response");
    // The other end has restarted, and nobody has told this one.
    room.restart(RIGHT, crate::Keys::one(key(1)));
    for second in 0..17_u8 {
        room.send(LEFT, &[second]).expect("there is always a session");
        room.pass(Duration::from_secs(1));
    }
    room.talk(LEFT, b"with new keys");
}

#[test]
fn the_whole_counter_is_sent_only_where_too_many_may_be_missing() {
    let is_full = |flying: &Flying| flying.octets[0] & FULL != 0;
    let mut room = Room::new(Over::Datagrams, SUITE);
    room.poll();
    // The key exchange, its confirmation, and packets between hours of silence.
    while let Some(flying) = room.air.pop_front() {
        let is_body = flying.octets[0] >> 5 == 1;
        assert!(!(is_body && is_full(&flying)), "the first counter of a session is 0");
        room.arrive(if flying.from == address(LEFT) { RIGHT } else { LEFT }, &flying);
        room.poll();
    }
    for hours in 0..5 {
        room.pass(MINUTE * 60);
        for end in [LEFT, RIGHT] {
            let flying = room.seal(end, b"behind hours of silence").expect("a session");
            assert!(!is_full(&flying), "{end} after {hours} hours");
            room.arrive(1 - end, &flying);
            room.run();
        }
    }
    // 32,768 counters later, without anything from the other end.
    let heard = room.ends[LEFT].seal.session(0).expect("a session").sealed;
    room.ends[LEFT].seal.skip_to(heard + 32_767);
    assert!(!is_full(&room.seal(LEFT, b"the last one").expect("a session")));
    for _ in 0..2 {
        assert!(is_full(&room.seal(LEFT, b"too many").expect("a session")));
    }
    // It requests a sign of life, and has one.
    room.run();
    assert!(!is_full(&room.seal(LEFT, b"it has them all").expect("a session")));
}

#[test]
fn new_keys_come_with_packets_only_and_at_the_latest_after_a_day() {
    let mut room = with_left(MINUTE);
    let first = session_of(&room.ends[LEFT].seal);
    room.pass(MINUTE * 60 * 20);
    assert_eq!(session_of(&room.ends[RIGHT].seal), first);
    // The end that has answered the request sends first: it requests, and the other one does not.
    (room.flown, room.octets) = (0, 0);
    room.talk_behind(RIGHT, b"after 20 hours");
    room.pass(MINUTE * 5);
    let second = session_of(&room.ends[RIGHT].seal);
    assert!(second.is_some() && second != first);
    assert!(room.flown <= 14, "{} datagrams", room.flown);
    // Keepalives alone keep keys for a day.
    room.pass(DAY + MINUTE * 10);
    assert!(session_of(&room.ends[LEFT].seal) != second);
    room.talk(LEFT, b"a new day");
}

#[test]
fn ends_of_earlier_versions_get_their_signs_of_life() {
    for old in [LEFT, RIGHT] {
        let mut room = Room::new(Over::Datagrams, SUITE);
        room.ends[old].seal.wait_for_signs();
        room.run();
        room.forget();
        (room.flown, room.octets) = (0, 0);
        for _ in 0..20 {
            room.talk(old, b"a reading");
            room.pass(MINUTE);
        }
        // One sign for each, no new keys, and at most a request that the end of an earlier version would not send.
        assert!((40..=42).contains(&room.flown), "{}", room.flown);
    }
}
