//! Datagrams that were recorded come again behind kills at random moments, of two ends and of a mesh: none is accepted.
//!
//! `THINAIR_REPLAYS` is their number, a thousand for each kill; `make dist-test` has more than `make test`.

use std::collections::BTreeSet;
use std::time::Duration;

use super::groups::{Alteration, GroupSite};
use super::room::*;
use crate::{Keyring, Keys, Over, PublicKeys, Suite};

/// Datagrams that come again behind each kill.
const BEHIND_A_KILL: usize = 1_000;

fn kills() -> usize {
    let replays: usize =
        std::env::var("THINAIR_REPLAYS").map_or(8_000, |count| count.parse().expect("a number"));
    replays.div_ceil(BEHIND_A_KILL)
}

/// Random numbers below a bound.
fn below(random: &mut dyn crate::Random, bound: usize) -> usize {
    let mut octets = [0; 8];
    random.fill(&mut octets);
    (u64::from_le_bytes(octets) % bound as u64) as usize
}

/// The body of this number, of a few hundred octets, so that new keys follow much traffic, too.
fn body_of(number: usize) -> Vec<u8> {
    [&number.to_be_bytes()[..], &vec![number as u8; 40 + number % 600]].concat()
}

/// Two ends whose datagrams are recorded.
struct Recorded {
    room: Room,
    delivered: BTreeSet<Vec<u8>>,
    recorded: Vec<Flying>,
    number: usize,
}

impl Recorded {
    /// Delivers what is in transit, and records it.
    fn carry(&mut self) {
        self.room.poll();
        while let Some(flying) = self.room.air.pop_front() {
            let to = if flying.from == address(LEFT) { RIGHT } else { LEFT };
            if let Some(RoomEvent::Body(body, _)) = self.room.arrive(to, &flying) {
                assert!(self.delivered.insert(body), "a body twice");
            }
            self.recorded.push(flying);
            self.room.poll();
        }
        self.room.forget();
    }

    /// A body in each direction, where there is a session.
    fn exchange(&mut self) {
        for end in [LEFT, RIGHT] {
            self.number += 1;
            let _ = self.room.send(end, &body_of(self.number));
            self.carry();
        }
    }

    /// Sends a datagram to both ends once more. Returns the number of bodies that are accepted.
    fn replay(&mut self, flying: &Flying) -> usize {
        let accepted = [LEFT, RIGHT]
            .into_iter()
            .filter(|&to| matches!(self.room.arrive(to, flying), Some(RoomEvent::Body(..))));
        let accepted = accepted.count();
        self.room.forget();
        accepted
    }
}

fn two_ends(keys: &[Keyring; 2], kills: usize) {
    let mut random = random(0xdead);
    let room = Room::with_keys(Over::Datagrams, Suite::ChaCha20Poly1305, keys.clone());
    let mut ends = Recorded { room, delivered: BTreeSet::new(), recorded: Vec::new(), number: 0 };
    let (mut accepted, mut replays) = (0, 0);
    for kill in 0..kills {
        // At a moment in the key exchange, or behind it.
        for _ in 0..below(&mut *random, 400) {
            ends.exchange();
            ends.room.now = ends.room.now + Duration::from_millis(below(&mut *random, 400) as u64);
        }
        let killed = below(&mut *random, 2);
        ends.room.restart(killed, keys[killed].clone());
        // Half of them before the ends have spoken again, and half of them behind that.
        for is_back in [false, true] {
            if is_back {
                let before = ends.delivered.len();
                for _ in 0..60 {
                    ends.exchange();
                    ends.room.now = ends.room.now + Duration::from_secs(1);
                }
                assert!(ends.delivered.len() >= before + 60, "kill {kill}: the ends do not talk again");
            }
            for _ in 0..BEHIND_A_KILL / 2 {
                // Most of them are recent ones.
                let back =
                    below(&mut *random, ends.recorded.len()).min(below(&mut *random, ends.recorded.len()));
                let flying = ends.recorded[ends.recorded.len() - 1 - back].clone();
                replays += 1;
                accepted += ends.replay(&flying);
            }
            ends.carry();
        }
        // An attacker's memory is large, that of the test is not.
        let excess = ends.recorded.len().saturating_sub(20_000);
        ends.recorded.drain(..excess);
    }
    assert_eq!(accepted, 0, "of {replays}");
    println!("{replays} recorded datagrams behind {kills} kills of two ends: {accepted} accepted");
}

#[test]
fn two_ends_accept_nothing_again_behind_kills() {
    let shared = [(); 2].map(|()| Keyring::from(Keys::one(key(1))));
    let public = [(1, 2), (2, 1)].map(|(own, other)| {
        Keyring::from(PublicKeys::new(key(own), key(other).public(), None).expect("two ends"))
    });
    let kills = kills().div_ceil(2);
    two_ends(&shared, kills);
    two_ends(&public, kills);
}

#[test]
fn a_mesh_accepts_nothing_again_behind_kills() {
    let mut random = random(0xbeef);
    let mut sites = [1_u8, 2].map(GroupSite::new);
    let (mut delivered, mut recorded): (BTreeSet<Vec<u8>>, Vec<Vec<u8>>) = Default::default();
    let (mut number, mut accepted, mut replays) = (0, 0, 0);
    let kills = kills();
    for kill in 0..kills {
        let before = delivered.len();
        // At least as long as announcements take.
        for _ in 0..30 + below(&mut *random, 300) {
            for from in [LEFT, RIGHT] {
                let (mut sent, mut due) = (Vec::new(), Vec::new());
                while sites[from].poll(&mut due) {
                    sent.push(std::mem::take(&mut due));
                }
                number += 1;
                sent.push(sites[from].seal(&body_of(number)));
                for datagram in sent {
                    match sites[1 - from].open(&datagram) {
                        Alteration::Body(_, body) => assert!(delivered.insert(body), "a body twice"),
                        // It came too early, and may come once more.
                        Alteration::Refused(_) => continue,
                        Alteration::Session(..) | Alteration::Handled => {}
                    }
                    recorded.push(datagram);
                }
            }
            sites.iter_mut().for_each(|site| site.pass(Duration::from_millis(500)));
        }
        assert!(delivered.len() > before, "kill {kill}: the sites do not talk again");
        let killed = below(&mut *random, 2);
        sites[killed].kill(killed as u8 + 1);
        for _ in 0..BEHIND_A_KILL {
            let back = below(&mut *random, recorded.len()).min(below(&mut *random, recorded.len()));
            let datagram = recorded[recorded.len() - 1 - back].clone();
            replays += 1;
            for site in &mut sites {
                accepted += usize::from(matches!(site.open(&datagram), Alteration::Body(..)));
            }
        }
        let excess = recorded.len().saturating_sub(20_000);
        recorded.drain(..excess);
    }
    assert_eq!(accepted, 0, "of {replays}");
    println!("{replays} recorded datagrams behind {kills} kills of a mesh: {accepted} accepted");
}
