//! A client that observes a server over a path that loses, duplicates and reorders, in virtual time.
//!
//! Guarantee (RFC 7641, section 1.3): each delivered state is complete and newer than the one before, and once the
//! resource stops changing, the client gets its last state, however many messages were lost.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use thinair_coap::congestion::Algorithm;
use thinair_coap::{
    BlockSize, CallId, Config, Endpoint, Event, ObserverId, Policy, Request, Response, Timing,
};
use thinair_link::Random;
use thinair_wire::time::Instant;

struct ObserveWorld {
    /// Client (0) and server (1).
    ends: [Endpoint<u8>; 2],
    random: Random,
    now: Instant,
    wire: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    count: u64,
    state: u64,
    observers: Vec<ObserverId>,
    call: Option<CallId>,
    /// Latest state delivered to the client, in this observation.
    seen: Option<u64>,
    notifications: u64,
}

/// Representation of a state: its number, and octets that follow from it, in one block or several.
fn body(state: u64) -> Vec<u8> {
    let len = if state.is_multiple_of(3) { 900 } else { 20 };
    state.to_be_bytes().into_iter().chain((8..len).map(|i| (state * 31 + i) as u8)).collect()
}

impl ObserveWorld {
    fn new(seed: u64, config: Config) -> Self {
        let mut random = Random::new(seed);
        let ends = [random.split(), random.split()]
            .map(|mut random| Endpoint::new(config, move || random.next_u64()));
        Self {
            ends,
            random,
            now: Instant::ZERO,
            wire: BTreeMap::new(),
            count: 0,
            state: 0,
            observers: Vec::new(),
            call: None,
            seen: None,
            notifications: 0,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn response(&self) -> Response<'static> {
        Response::content(body(self.state)).etag(&self.state.to_be_bytes()).max_age(20)
    }

    fn transmit(&mut self) {
        for from in 0..2 {
            let mut buffer = [0; 1_152];
            while let Some(transmit) = self.ends[from].poll_transmit(self.now, &mut buffer) {
                // A fifth is lost, a tenth is duplicated.
                let copies = 1 + u64::from(self.below(10) == 0);
                for _ in 0..copies {
                    if self.below(5) > 0 {
                        self.count += 1;
                        let arrival = self.now + Duration::from_millis(10 + self.below(1_500));
                        self.wire.insert((arrival, self.count), (1 - from, buffer[..transmit.len].to_vec()));
                    }
                }
            }
        }
    }

    fn handle(&mut self, end: usize, event: Event<'static, u8>) {
        match (end, event) {
            (1, Event::Request { id, .. }) => {
                self.observers.extend(self.ends[1].accept(self.now, id));
                let response = self.response();
                self.ends[1].respond(self.now, id, &response).unwrap();
            }
            (1, Event::ObserverGone { observer, .. }) => self.observers.retain(|other| *other != observer),
            (0, Event::Notification { call, message }) => {
                assert_eq!(Some(call), self.call);
                let state = u64::from_be_bytes(message.payload[..8].try_into().unwrap());
                assert_eq!(*message.payload, body(state), "the parts of a state go together");
                assert!(self.seen <= Some(state), "{:?}, then {state}", self.seen);
                self.seen = Some(state);
                self.notifications += 1;
            }
            (0, Event::Failed { call, .. } | Event::Response { call, .. }) => {
                assert_eq!(Some(call), self.call);
                (self.call, self.seen) = (None, None);
            }
            (0, Event::Progress { .. }) | (1, Event::NotDelivered { .. }) => {}
            (end, other) => panic!("{end}: {other:?}"),
        }
    }

    fn step(&mut self, until: Instant) {
        let timeouts = self.ends.iter().filter_map(Endpoint::poll_timeout);
        let next = timeouts.chain(self.wire.keys().next().map(|(at, _)| *at)).min();
        self.now = self.now.max(next.unwrap_or(until).min(until));
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, datagram) = entry.remove();
            let event = self.ends[to].handle_datagram(self.now, 1, &datagram).map(Event::into_owned);
            event.into_iter().for_each(|event| self.handle(to, event));
        }
        for end in 0..2 {
            self.ends[end].handle_timeout(self.now);
            while let Some(event) = self.ends[end].poll_event() {
                self.handle(end, event);
            }
        }
        if self.call.is_none() {
            self.call = Some(self.ends[0].request(self.now, 1, &Request::get("/state").observe()).unwrap());
        }
        self.transmit();
    }

    fn run(&mut self, until: Instant) {
        while self.now < until {
            self.step(until);
        }
    }
}

#[test]
fn the_last_state_arrives_in_the_end() {
    for (i, name) in Algorithm::NAMES.into_iter().enumerate() {
        let config = Config {
            timing: Timing { congestion: name.parse().unwrap(), ..Timing::default() },
            policy: Policy { block_size: BlockSize::at_most(256), ..Policy::default() },
            ..Config::default()
        };
        for seed in 0..6 {
            let mut world = ObserveWorld::new(seed * 10 + i as u64, config);
            for _ in 0..60 {
                let pause = Duration::from_millis(100 + world.below(9_000));
                world.run(world.now + pause);
                world.state += 1;
                let confirmable = world.below(3) == 0;
                for observer in world.observers.clone() {
                    let response = world.response();
                    let _ = world.ends[1].notify(world.now, observer, &response, confirmable);
                }
                world.transmit();
            }
            // A new registration may take several attempts, each of minutes.
            let end = world.now + Duration::from_secs(3_600);
            while world.seen != Some(60) && world.now < end {
                world.step(end);
            }
            assert_eq!(world.seen, Some(60), "{name}, seed {seed}");
            assert!(world.notifications > 8, "{name}, seed {seed}: {}", world.notifications);
            assert!(world.ends[1].held_octets() <= 4_096);
        }
    }
}
