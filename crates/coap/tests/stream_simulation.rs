//! Two endpoints and a stream between them that comes in pieces, breaks and is opened again, in virtual time.
//!
//! Guarantee: every request ends once, with its own response or an error; nothing is stored in the end.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use thinair_coap::{CallError, CallId, Config, Endpoint, Event, Limits, Request, RequestId, Response};
use thinair_link::Random;
use thinair_wire::time::Instant;

struct StreamWorld {
    ends: [Endpoint<u8>; 2],
    /// Octets under way to each end.
    wire: [VecDeque<u8>; 2],
    random: Random,
    now: Instant,
    late: Vec<(RequestId, Vec<u8>)>,
    ended: BTreeMap<CallId, Vec<Result<Vec<u8>, CallError>>>,
}

impl StreamWorld {
    fn below(&mut self, bound: usize) -> usize {
        (self.random.next_u64() % bound as u64) as usize
    }

    fn handle(&mut self, end: usize, event: Event<'static, u8>) {
        match (end, event) {
            (1, Event::Request { id, message, .. }) => {
                let body = message.payload.into_owned();
                match self.below(3) {
                    0 => self.late.push((id, body)),
                    // The stream may have ended after the request.
                    _ => drop(self.ends[1].respond(self.now, id, &Response::content(body))),
                }
            }
            (0, Event::Response { call, message }) => {
                self.ended.entry(call).or_default().push(Ok(message.payload.into_owned()));
            }
            (0, Event::Failed { call, error }) => self.ended.entry(call).or_default().push(Err(error)),
            (_, Event::Progress { .. } | Event::StreamReady { .. } | Event::Closed { .. }) => {}
            (end, other) => panic!("{end}: {other:?}"),
        }
    }

    /// Moves all octets to send to the wire, after every call.
    fn transmit(&mut self, from: usize) {
        let mut buffer = [0; 700];
        while let Some(transmit) = self.ends[from].poll_transmit(self.now, &mut buffer) {
            self.wire[1 - from].extend(&buffer[..transmit.len]);
        }
    }

    /// Delivers some octets, in pieces of any size.
    fn turn(&mut self) {
        self.now = self.now + Duration::from_millis(5);
        for from in 0..2 {
            self.transmit(from);
            let to = 1 - from;
            let most = [1, 7, 300, 5_000][self.below(4)];
            let len = self.wire[to].len().min(1 + self.below(most));
            let piece: Vec<u8> = self.wire[to].drain(..len).collect();
            let mut octets = &piece[..];
            while !octets.is_empty() {
                let event = self.ends[to].handle_stream(self.now, 1, &mut octets).map(Event::into_owned);
                event.into_iter().for_each(|event| self.handle(to, event));
                self.transmit(to);
            }
            self.ends[to].handle_timeout(self.now);
            while let Some(event) = self.ends[to].poll_event() {
                self.handle(to, event);
            }
        }
        if self.below(20) == 0 {
            for (id, body) in std::mem::take(&mut self.late) {
                // Its stream may be gone.
                let _ = self.ends[1].respond(self.now, id, &Response::content(body));
                self.transmit(1);
            }
        }
    }

    fn connect(&mut self) {
        self.wire = [VecDeque::new(), VecDeque::new()];
        for end in &mut self.ends {
            end.disconnected(self.now, 1);
            assert!(end.connected(self.now, 1));
        }
    }
}

fn run(seed: u64, breaks: bool, sizes: [usize; 2]) -> (usize, usize) {
    let mut random = Random::new(seed);
    let ends = [0, 1].map(|i| {
        let mut random = random.split();
        let config = Config {
            limits: Limits { max_stream_message: sizes[i], ..Limits::default() },
            ..Config::default()
        };
        Endpoint::new(config, move || random.next_u64())
    });
    let mut world = StreamWorld {
        ends,
        wire: [VecDeque::new(), VecDeque::new()],
        random,
        now: Instant::ZERO,
        late: Vec::new(),
        ended: BTreeMap::new(),
    };
    world.connect();
    let mut calls = Vec::new();
    for i in 0..60_u8 {
        let len = [0, 10, 1_000, 9_000][world.below(4)];
        let body: Vec<u8> = (0..len).map(|j| i ^ (j * 7 + j / 256) as u8).collect();
        if let Ok(call) = world.ends[0].request(world.now, 1, &Request::post("/echo", body.clone())) {
            calls.push((call, body));
            world.transmit(0);
        }
        for _ in 0..world.below(40) {
            world.turn();
        }
        if breaks && world.below(15) == 0 {
            world.connect();
        }
    }
    // Until everything is delivered, and then as long as anything waits.
    let end = world.now + Duration::from_secs(600);
    while world.ended.len() < calls.len() && world.now < end {
        world.turn();
    }
    let mut answered = 0;
    for (call, body) in &calls {
        let ends = world.ended.get(call).map_or(&[][..], |ends| ends);
        match ends {
            [Ok(response)] => {
                assert_eq!(response, body);
                answered += 1;
            }
            [Err(CallError::Closed)] => assert!(breaks),
            other => panic!("{call:?}: {other:?}"),
        }
    }
    world.ends.iter_mut().for_each(|end| end.disconnected(world.now, 1));
    (answered, calls.len())
}

#[test]
fn every_request_over_a_stream_is_answered() {
    for sizes in [[1_152, 1_152], [66_560, 66_560], [1_152, 66_560], [66_560, 4_000]] {
        for seed in 0..4 {
            assert_eq!(run(seed, false, sizes), (60, 60));
        }
    }
}

#[test]
fn requests_end_with_their_stream() {
    for seed in 0..8 {
        let (answered, calls) = run(seed, true, [66_560, 1_152]);
        assert!(answered > 10 && answered < calls, "{answered} of {calls}");
    }
}
