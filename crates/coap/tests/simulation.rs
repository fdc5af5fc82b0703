//! Two endpoints and a path between them that loses, duplicates, delays and reorders, in virtual time.
//!
//! Guarantee: every request ends once, with a response or an error; no request is processed twice; a body arrives
//! unchanged. A seed determines everything.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use thinair_coap::congestion::Algorithm;
use thinair_coap::{
    CallError, CallId, Config, Counters, Endpoint, Event, Limits, Request, RequestId, Response, Timing,
};
use thinair_link::Random;
use thinair_wire::time::Instant;

/// Properties of the path, in thousandths and milliseconds.
#[derive(Clone, Copy)]
struct PathModel {
    loss: u64,
    duplicates: u64,
    least: u64,
    most: u64,
}

/// Two ends: 0 is the client, 1 the server.
struct MessageWorld {
    ends: [Endpoint<u8>; 2],
    path: PathModel,
    random: Random,
    now: Instant,
    /// Datagrams under way, by their arrival.
    wire: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    count: u64,
    /// Responses that are given later.
    late: BTreeMap<(Instant, u64), (RequestId, Vec<u8>)>,
    /// Number of times that each request was processed.
    done: BTreeMap<Vec<u8>, u32>,
    ended: BTreeMap<CallId, Vec<Result<Vec<u8>, CallError>>>,
    think: bool,
}

impl MessageWorld {
    fn new(seed: u64, config: Config, path: PathModel, think: bool) -> Self {
        let mut random = Random::new(seed);
        let ends = [random.split(), random.split()]
            .map(|mut random| Endpoint::new(config, move || random.next_u64()));
        Self {
            ends,
            path,
            random,
            now: Instant::ZERO,
            wire: BTreeMap::new(),
            count: 0,
            late: BTreeMap::new(),
            done: BTreeMap::new(),
            ended: BTreeMap::new(),
            think,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound.max(1)
    }

    fn transmit(&mut self) {
        for from in 0..2 {
            let mut buffer = [0; 1_152];
            while let Some(transmit) = self.ends[from].poll_transmit(self.now, &mut buffer) {
                let copies = 1 + u64::from(self.below(1_000) < self.path.duplicates);
                for _ in 0..copies {
                    if self.below(1_000) < self.path.loss {
                        continue;
                    }
                    let delay = self.path.least + self.below(self.path.most - self.path.least);
                    self.count += 1;
                    let arrival = self.now + Duration::from_millis(delay);
                    self.wire.insert((arrival, self.count), (1 - from, buffer[..transmit.len].to_vec()));
                }
            }
        }
    }

    fn handle(&mut self, end: usize, event: Event<'_, u8>) {
        match event {
            Event::Request { id, message, .. } => {
                assert_eq!(end, 1);
                let name = message.payload[..message.payload.len().min(8)].to_vec();
                *self.done.entry(name).or_default() += 1;
                let body = message.payload.into_owned();
                if self.think && self.below(3) == 0 {
                    let at = self.now + Duration::from_millis(self.random.next_u64() % 5_000);
                    self.count += 1;
                    self.late.insert((at, self.count), (id, body));
                } else {
                    self.ends[1].respond(self.now, id, &Response::content(body)).unwrap();
                }
            }
            Event::Response { call, message } => {
                self.ended.entry(call).or_default().push(Ok(message.payload.into_owned()));
            }
            Event::Failed { call, error } => self.ended.entry(call).or_default().push(Err(error)),
            Event::Progress { .. } | Event::NotDelivered { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    /// Processes the next event; false if there is none.
    fn step(&mut self) -> bool {
        let timeouts = self.ends.iter().filter_map(Endpoint::poll_timeout);
        let next = timeouts
            .chain(self.wire.keys().next().map(|(at, _)| *at))
            .chain(self.late.keys().next().map(|(at, _)| *at))
            .min();
        let Some(next) = next else { return false };
        self.now = self.now.max(next);
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, datagram) = entry.remove();
            let now = self.now;
            let event = self.ends[to].handle_datagram(now, 1, &datagram).map(Event::into_owned);
            if let Some(event) = event {
                self.handle(to, event);
            }
        }
        while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (id, body) = entry.remove();
            let _ = self.ends[1].respond(self.now, id, &Response::content(body));
        }
        for end in 0..2 {
            self.ends[end].handle_timeout(self.now);
            while let Some(event) = self.ends[end].poll_event() {
                self.handle(end, event);
            }
        }
        self.transmit();
        true
    }

    fn run(&mut self, requests: u64, len: usize) -> Vec<(CallId, Vec<u8>)> {
        let mut calls = Vec::new();
        for i in 0..requests {
            let mut body = i.to_be_bytes().to_vec();
            body.extend((8..len).map(|j| (i as usize + j * 31 + j / 256) as u8));
            let confirmable = self.below(4) > 0 || len > 1_024;
            let request = Request { confirmable, ..Request::post("/counter", body.clone()) };
            calls.push((self.ends[0].request(self.now, 1, &request).unwrap(), body));
            self.transmit();
            // Some time goes by between requests.
            let until = self.now + Duration::from_millis(self.below(400));
            while self.now < until && self.step() {}
        }
        while self.step() {}
        calls
    }

    fn counters(&self) -> [&Counters; 2] {
        [self.ends[0].counters(), self.ends[1].counters()]
    }
}

/// Returns the number of calls that were answered.
fn check(world: &MessageWorld, calls: &[(CallId, Vec<u8>)]) -> usize {
    for (name, count) in &world.done {
        assert_eq!(*count, 1, "{name:?} was done {count} times");
    }
    let mut answered = 0;
    for (call, body) in calls {
        let ends = world.ended.get(call).unwrap();
        assert_eq!(ends.len(), 1, "{call:?} has ended {} times", ends.len());
        match &ends[0] {
            Ok(response) => {
                assert_eq!(response, body);
                answered += 1;
            }
            Err(CallError::Timeout { .. } | CallError::NoResponse) => {}
            Err(error) => panic!("{call:?}: {error}"),
        }
    }
    assert_eq!(world.ended.len(), calls.len());
    assert_eq!(world.counters()[1].forgotten_early, 0);
    answered
}

fn configurations() -> impl Iterator<Item = Config> {
    Algorithm::NAMES.into_iter().flat_map(|name| {
        [1, 4].map(|nstart| {
            let mut config = Config {
                timing: Timing { congestion: name.parse().unwrap(), ..Timing::default() },
                limits: Limits { max_calls: 1_000, max_flights: 1_000, ..Limits::default() },
                ..Config::default()
            };
            config.timing.transmission.nstart = nstart;
            config
        })
    })
}

#[test]
fn every_request_ends_once_and_none_is_done_twice() {
    let path = PathModel { loss: 200, duplicates: 100, least: 10, most: 3_000 };
    for (i, config) in configurations().enumerate() {
        for seed in 0..6 {
            let mut world = MessageWorld::new(seed * 100 + i as u64, config, path, true);
            let calls = world.run(60, 20);
            let answered = check(&world, &calls);
            assert!(answered >= 30, "{answered} of 60 answered: {:?}", config.timing.congestion);
            assert!(world.counters()[1].duplicates > 0);
        }
    }
}

#[test]
fn a_clean_path_needs_each_message_once() {
    let path = PathModel { loss: 0, duplicates: 0, least: 10, most: 11 };
    for config in configurations() {
        let mut world = MessageWorld::new(1, config, path, false);
        let calls = world.run(100, 20);
        assert_eq!(check(&world, &calls), 100);
        assert_eq!(world.counters().map(|counters| counters.retransmissions), [0, 0]);
    }
}

#[test]
fn bodies_in_blocks_arrive_whole_over_a_bad_path() {
    let path = PathModel { loss: 50, duplicates: 100, least: 10, most: 500 };
    for config in configurations() {
        let mut world = MessageWorld::new(7, config, path, false);
        let calls = world.run(3, 20_000);
        assert!(check(&world, &calls) > 0);
    }
}

#[test]
fn a_mebibyte_arrives_over_a_bad_path() {
    let path = PathModel { loss: 10, duplicates: 10, least: 10, most: 50 };
    let mut world = MessageWorld::new(
        3,
        Config { limits: Limits { remembered: 10_000, ..Limits::default() }, ..Config::default() },
        path,
        false,
    );
    let calls = world.run(1, 1 << 20);
    assert_eq!(check(&world, &calls), 1);
}

#[test]
fn a_dead_path_fails_every_request() {
    let path = PathModel { loss: 1_000, duplicates: 0, least: 10, most: 20 };
    for config in configurations() {
        let mut world = MessageWorld::new(1, config, path, false);
        let calls = world.run(5, 20);
        assert_eq!(check(&world, &calls), 0);
    }
}

/// Equal seeds give equal runs.
#[test]
fn a_seed_determines_everything() {
    let path = PathModel { loss: 200, duplicates: 100, least: 10, most: 3_000 };
    let run = || {
        let mut world = MessageWorld::new(9, Config::default(), path, true);
        world.run(40, 20);
        (world.now, world.counters().map(|counters| *counters), world.ended)
    };
    assert!(run() == run());
}
