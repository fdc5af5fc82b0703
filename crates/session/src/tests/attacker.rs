//! All that an attacker on the path can do to the first datagrams of two ends or of a mesh, and to those behind a handshake: deliver
//! each, drop it, deliver it twice, hold it back until after the next one, or send it back to its sender. Then the attacker delivers
//! everything recorded to everybody once more, and gives up.
//!
//! Whatever happens, no body is delivered twice, none to its sender, and none that was not sent; no key and nonce are used
//! twice; and when the attacker has given up, the ends talk again.
//!
//! `THINAIR_DEPTH` is the number of datagrams with a choice; `make dist-test` has more than `make test`.

use std::collections::BTreeSet;
use std::time::Duration;

use super::groups::{Alteration, GroupSite};
use super::room::*;
use crate::{Keyring, Keys, Over, PublicKeys, Suite};

const FATES: usize = 5;

fn depth(usual: u32) -> u32 {
    std::env::var("THINAIR_DEPTH").map_or(usual, |depth| depth.parse().expect("a number"))
}

/// Fates of datagrams, in the order in which they are sent, behind `skip` that are delivered.
struct Fates {
    skip: u32,
    rest: usize,
    left: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DatagramFate {
    Deliver,
    Drop,
    Twice,
    Hold,
    Return,
}

impl Fates {
    /// The fate of the next datagram; `None`: no choice is left.
    fn next(&mut self) -> Option<DatagramFate> {
        if self.skip > 0 {
            self.skip -= 1;
            return Some(DatagramFate::Deliver);
        }
        self.left = self.left.checked_sub(1)?;
        let fate = self.rest % FATES;
        self.rest /= FATES;
        Some(
            [
                DatagramFate::Deliver,
                DatagramFate::Drop,
                DatagramFate::Twice,
                DatagramFate::Hold,
                DatagramFate::Return,
            ][fate],
        )
    }
}

/// Bodies that were delivered to each end.
#[derive(Default)]
struct Delivered(BTreeSet<(usize, Vec<u8>)>);

impl Delivered {
    /// Takes a body: the sender, and a number that no other one has.
    fn take(&mut self, to: usize, body: Vec<u8>, case: &str) {
        assert_eq!(body.len(), 5, "{case}: a body that nobody has sent: {body:?}");
        assert_ne!(usize::from(body[0]), to, "{case}: a body to its sender: {body:?}");
        assert!(self.0.insert((to, body)), "{case}: a body twice");
    }
}

/// The next body of an end.
fn numbered(from: usize, number: &mut u32) -> Vec<u8> {
    *number += 1;
    [&[from as u8][..], &number.to_be_bytes()].concat()
}

struct Attack {
    room: Room,
    delivered: Delivered,
    recorded: Vec<Flying>,
    is_recording: bool,
    held: Option<Flying>,
    number: u32,
    case: String,
}

impl Attack {
    fn arrive(&mut self, to: usize, flying: &Flying) {
        if let Some(RoomEvent::Body(body, _)) = self.room.arrive(to, flying) {
            self.delivered.take(to, body, &self.case);
        }
        self.room.forget();
    }

    /// Sends what is due, with these fates.
    fn all(&mut self, fates: &mut Fates) {
        self.room.poll();
        let mut most = 1_000;
        while let Some(flying) = self.room.air.pop_front() {
            most -= 1;
            assert!(most > 0, "{}: datagrams without an end", self.case);
            let from = if flying.from == address(LEFT) { LEFT } else { RIGHT };
            let fate = fates.next();
            if self.is_recording {
                self.recorded.push(flying.clone());
            }
            match fate.unwrap_or(DatagramFate::Deliver) {
                DatagramFate::Deliver => self.arrive(1 - from, &flying),
                DatagramFate::Drop => {}
                DatagramFate::Twice => (0..2).for_each(|_| self.arrive(1 - from, &flying)),
                DatagramFate::Hold => {
                    if let Some(before) = self.held.replace(flying) {
                        self.late(&before);
                    }
                    continue;
                }
                DatagramFate::Return => self.arrive(from, &flying),
            }
            if let Some(held) = self.held.take() {
                self.late(&held);
            }
            self.room.poll();
        }
    }

    fn late(&mut self, flying: &Flying) {
        let to = if flying.from == address(LEFT) { RIGHT } else { LEFT };
        self.arrive(to, flying);
    }

    /// A second, in which both ends send a body if they have a session.
    fn second(&mut self, fates: &mut Fates) {
        self.all(fates);
        for end in [LEFT, RIGHT] {
            let body = numbered(end, &mut self.number);
            let _ = self.room.send(end, &body);
        }
        self.all(fates);
        self.room.now = self.room.now + Duration::from_secs(1);
    }
}

fn two_ends(keys: &[Keyring; 2], skip: u32, depth: u32) {
    super::nonces::watch();
    for case in 0..FATES.pow(depth) {
        let room = Room::with_keys(Over::Datagrams, Suite::ChaCha20Poly1305, keys.clone());
        let mut attack = Attack {
            // Keys differ in each case, as ends that start have other random octets.
            room,
            delivered: Delivered::default(),
            recorded: Vec::new(),
            is_recording: true,
            held: None,
            number: 0,
            case: format!("case {case}"),
        };
        for end in [LEFT, RIGHT] {
            let known = (end == LEFT).then(|| address(RIGHT));
            let seed = (case * 2 + end) as u64 + 1_000;
            let suite = Suite::ChaCha20Poly1305;
            attack.room.ends[end].seal =
                start(attack.room.now, Over::Datagrams, suite, keys[end].clone(), known, seed);
        }
        let mut fates = Fates { skip, rest: case, left: depth };
        for _ in 0..6 {
            attack.second(&mut fates);
        }
        // Everything once more, to both.
        attack.is_recording = false;
        for flying in std::mem::take(&mut attack.recorded) {
            for to in [LEFT, RIGHT] {
                attack.arrive(to, &flying);
            }
        }
        let mut none = Fates { skip: 0, rest: 0, left: 0 };
        for _ in 0..40 {
            attack.second(&mut none);
        }
        let before = attack.delivered.0.len();
        attack.second(&mut none);
        assert_eq!(attack.delivered.0.len(), before + 2, "{}: the ends do not talk again", attack.case);
    }
    println!("{} attacks on two ends", FATES.pow(depth));
}

#[test]
fn no_attacker_on_the_path_of_two_ends_breaks_a_promise() {
    let shared = [(); 2].map(|()| Keyring::from(Keys::one(key(1))));
    let public = [(1, 2), (2, 1)].map(|(own, other)| {
        Keyring::from(PublicKeys::new(key(own), key(other).public(), None).expect("two ends"))
    });
    for keys in [shared, public] {
        // From the first request on, and from the first bodies on.
        for skip in [0, 4] {
            two_ends(&keys, skip, depth(3));
        }
    }
}

#[test]
fn no_attacker_on_the_path_of_a_mesh_breaks_a_promise() {
    let depth = depth(4);
    for case in 0..FATES.pow(depth) {
        let name = format!("case {case}");
        let mut fates = Fates { skip: 0, rest: case, left: depth };
        let mut sites = [1_u8, 2].map(GroupSite::new);
        let (mut delivered, mut recorded, mut held) = (Delivered::default(), Vec::new(), None);
        let mut number = 0;
        let open = |sites: &mut [GroupSite; 2], delivered: &mut Delivered, to: usize, datagram: &[u8]| {
            if let Alteration::Body(from, body) = sites[to].open(datagram) {
                assert_eq!(usize::from(from), usize::from(body[0]) + 1, "{name}: another sender");
                delivered.take(to, body, &name);
            }
        };
        for second in 0..24 {
            for from in [LEFT, RIGHT] {
                let mut sent = Vec::new();
                let mut due = Vec::new();
                while sites[from].poll(&mut due) {
                    sent.push(std::mem::take(&mut due));
                }
                sent.push(sites[from].seal(&numbered(from, &mut number)));
                for datagram in sent {
                    let fate = fates.next();
                    recorded.extend(fate.map(|_| datagram.clone()));
                    match fate.unwrap_or(DatagramFate::Deliver) {
                        DatagramFate::Deliver => open(&mut sites, &mut delivered, 1 - from, &datagram),
                        DatagramFate::Drop => {}
                        DatagramFate::Twice => {
                            (0..2).for_each(|_| open(&mut sites, &mut delivered, 1 - from, &datagram));
                        }
                        DatagramFate::Hold => {
                            held = Some((from, datagram));
                            continue;
                        }
                        DatagramFate::Return => open(&mut sites, &mut delivered, from, &datagram),
                    }
                    if let Some((from, late)) = held.take() {
                        open(&mut sites, &mut delivered, 1 - from, &late);
                    }
                }
            }
            if second == 12 {
                for datagram in recorded.drain(..) {
                    for to in [LEFT, RIGHT] {
                        open(&mut sites, &mut delivered, to, &datagram);
                    }
                }
            }
            for site in &mut sites {
                site.pass(Duration::from_secs(1));
            }
        }
        for from in [LEFT, RIGHT] {
            let before = delivered.0.len();
            let datagram = sites[from].seal(&numbered(from, &mut number));
            open(&mut sites, &mut delivered, 1 - from, &datagram);
            assert_eq!(delivered.0.len(), before + 1, "{name}: the sites do not talk again");
        }
    }
    println!("{} attacks on a mesh", FATES.pow(depth));
}
