//! Two ends, and a simulated network: datagrams stay there until the test delivers them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use thinair_wire::time::Instant;

use crate::{
    BodyFlags, Destination, Key, Keyring, Keys, NewSession, NotSealed, Opened, Over, PeerKeys, Refused, Seal,
    Sender, Suite, TwoWay,
};

/// Random octets of a generator with this seed.
pub(crate) fn random(seed: u64) -> Box<dyn crate::Random> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    Box::new(move |octets: &mut [u8]| {
        for octet in octets {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *octet = ((z ^ (z >> 31)) >> 24) as u8;
        }
    })
}

pub(crate) fn key(octet: u8) -> Key {
    let mut octets = [octet; 32];
    octets[0] = 0x5a;
    Key::new(octets)
}

pub(crate) const PARAMETERS: [u8; 8] = *b"channels";

/// Result at an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RoomEvent {
    Body(Vec<u8>, BodyFlags),
    Session(NewSession),
    Closed,
    Refused(Refused),
}

/// One end: left or right.
pub(crate) struct RoomEnd {
    pub(crate) seal: TwoWay,
    pub(crate) address: SocketAddr,
    pub(crate) events: Vec<RoomEvent>,
}

/// A datagram in transit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flying {
    pub(crate) from: SocketAddr,
    pub(crate) to: Option<SocketAddr>,
    pub(crate) octets: Vec<u8>,
}

pub(crate) struct Room {
    pub(crate) now: Instant,
    pub(crate) ends: [RoomEnd; 2],
    pub(crate) air: VecDeque<Flying>,
    pub(crate) over: Over,
    /// Number of datagrams sent.
    pub(crate) flown: usize,
    /// Their octets, with the headers of IPv4 and UDP.
    pub(crate) octets: usize,
    suite: Suite,
    seed: u64,
}

pub(crate) const LEFT: usize = 0;
pub(crate) const RIGHT: usize = 1;

pub(crate) fn address(number: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number as u8 + 1], 5_000))
}

pub(crate) fn body(octets: &[u8]) -> RoomEvent {
    RoomEvent::Body(octets.to_vec(), BodyFlags::default())
}

impl Room {
    /// The left end knows the address of the right one, which waits for it.
    pub(crate) fn new(over: Over, suite: Suite) -> Self {
        Self::with_keys(over, suite, [Keys::one(key(1)), Keys::one(key(1))])
    }

    pub(crate) fn with_keys(over: Over, suite: Suite, keys: [impl Into<Keyring>; 2]) -> Self {
        let now = Instant::from_millis(1_000_000);
        let [left, right] = keys;
        let ends = [
            RoomEnd {
                seal: start(now, over, suite, left, Some(address(RIGHT)), 1),
                address: address(LEFT),
                events: Vec::new(),
            },
            RoomEnd {
                seal: start(now, over, suite, right, None, 2),
                address: address(RIGHT),
                events: Vec::new(),
            },
        ];
        Self { now, ends, air: VecDeque::new(), over, flown: 0, octets: 0, suite, seed: 2 }
    }

    /// Returns a network after the key exchange.
    pub(crate) fn ready(over: Over, suite: Suite) -> Self {
        let mut room = Self::new(over, suite);
        room.run();
        assert!(room.ends.iter().all(|end| end.seal.session(0).is_some()));
        room.forget();
        room
    }

    pub(crate) fn forget(&mut self) {
        self.ends.iter_mut().for_each(|end| end.events.clear());
    }

    /// Restarts an end with the key `keys`.
    pub(crate) fn restart(&mut self, end: usize, keys: impl Into<Keyring>) {
        self.seed += 1;
        let known = (end == LEFT).then(|| address(RIGHT));
        self.ends[end].seal = start(self.now, self.over, self.suite, keys, known, self.seed);
    }

    pub(crate) fn seal(&mut self, end: usize, octets: &[u8]) -> Result<Flying, NotSealed> {
        let mut out = Vec::new();
        let from = &mut self.ends[end];
        from.seal.seal(self.now, Destination::Peer(0), BodyFlags::default(), octets, &mut out)?;
        Ok(Flying { from: from.address, to: from.seal.address(0), octets: out })
    }

    /// Encrypts and sends a body.
    pub(crate) fn send(&mut self, end: usize, octets: &[u8]) -> Result<(), NotSealed> {
        let flying = self.seal(end, octets)?;
        self.air.push_back(flying);
        Ok(())
    }

    /// Sends all pending datagrams.
    pub(crate) fn poll(&mut self) {
        for end in &mut self.ends {
            let mut out = Vec::new();
            while let Some((_, to)) = end.seal.poll(self.now, &mut out) {
                let to = to.map(|to| to.peer).or(end.seal.address(0));
                self.air.push_back(Flying { from: end.address, to, octets: std::mem::take(&mut out) });
            }
        }
    }

    /// Delivers `flying` to an end.
    pub(crate) fn arrive(&mut self, end: usize, flying: &Flying) -> Option<RoomEvent> {
        let mut octets = flying.octets.clone();
        let from = (self.over == Over::Datagrams).then_some(flying.from.into());
        let end = &mut self.ends[end];
        let event = match end.seal.open(self.now, from, &mut octets) {
            Opened::Body { from, flags, body, session, .. } => {
                assert_eq!(from, Sender::Peer(0));
                end.events.extend(session.map(RoomEvent::Session));
                RoomEvent::Body(body.to_vec(), flags)
            }
            Opened::Session { session, .. } => RoomEvent::Session(session),
            Opened::Refused(refused) => RoomEvent::Refused(refused),
            Opened::Closed { .. } => RoomEvent::Closed,
            Opened::Alive { .. } | Opened::Path { .. } | Opened::Mapping { .. } | Opened::Handled => {
                return None;
            }
        };
        end.events.push(event.clone());
        Some(event)
    }

    /// Delivers all datagrams to their destinations until none is in transit.
    pub(crate) fn run(&mut self) {
        self.poll();
        while let Some(flying) = self.air.pop_front() {
            self.flown += 1;
            self.octets += 28 + flying.octets.len();
            let to = self.other(&flying);
            self.arrive(to, &flying);
            self.poll();
        }
    }

    fn other(&self, flying: &Flying) -> usize {
        if flying.from == self.ends[LEFT].address { RIGHT } else { LEFT }
    }

    /// Advances time, and delivers everything that becomes due.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.run();
            let due = self.ends.iter().filter_map(|end| end.seal.poll_at()).min();
            match due {
                Some(due) if due <= end => self.now = due.max(self.now),
                _ => break,
            }
        }
        self.now = end;
        self.run();
    }

    /// Sends a body from end to end; new keys may be reported before or after it.
    pub(crate) fn talk_behind(&mut self, from: usize, octets: &[u8]) {
        self.forget();
        self.send(from, octets).expect("a session");
        self.run();
        assert!(self.ends[1 - from].events.contains(&body(octets)));
    }

    /// Sends a body from end to end, without other results.
    pub(crate) fn talk(&mut self, from: usize, octets: &[u8]) {
        self.forget();
        self.send(from, octets).expect("a session");
        self.run();
        assert_eq!(self.ends[1 - from].events, [body(octets)]);
    }
}

/// A left end that requests keepalives.
pub(crate) fn with_keepalive(now: Instant, keepalive: Duration) -> TwoWay {
    with_keepalive_to(now, keepalive, RIGHT)
}

/// An end that sends keepalives to the other one.
pub(crate) fn with_keepalive_to(now: Instant, keepalive: Duration, to: usize) -> TwoWay {
    let peers = vec![PeerKeys {
        keys: Keys::one(key(1)).into(),
        address: Some(address(to)),
        keepalive: Some(keepalive),
    }];
    let random = random(77 + to as u64 * 100);
    TwoWay::new(now, Over::Datagrams, peers, Suite::ChaCha20Poly1305, PARAMETERS, random).expect("one peer")
}

/// A right end.
pub(crate) fn with_parameters(now: Instant, suite: Suite, digest: [u8; 8]) -> TwoWay {
    let peers = vec![PeerKeys { keys: Keys::one(key(1)).into(), address: None, keepalive: None }];
    TwoWay::new(now, Over::Datagrams, peers, suite, digest, random(78)).expect("one peer")
}

pub(crate) fn start(
    now: Instant,
    over: Over,
    suite: Suite,
    keys: impl Into<Keyring>,
    address: Option<SocketAddr>,
    seed: u64,
) -> TwoWay {
    let peers = vec![PeerKeys { keys: keys.into(), address, keepalive: None }];
    TwoWay::new(now, over, peers, suite, PARAMETERS, random(seed)).expect("one peer")
}

// `Seal` must be constructible outside of this module.
const _: fn(TwoWay) -> Seal = Seal::TwoWay;
