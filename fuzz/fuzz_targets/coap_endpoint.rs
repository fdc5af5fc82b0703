//! Datagrams, streams and time for an endpoint, in any order: nothing panics, memory stays within its bounds, and all
//! exchanges end.

#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_coap::{CallId, Config, Endpoint, Event, Limits, ObserverId, Request, RequestId, Response};
use thinair_wire::time::Instant;

#[derive(Arbitrary, Debug)]
enum EndpointStep<'a> {
    Datagram(u8, &'a [u8]),
    /// Octets after a well-formed header.
    Message {
        peer: u8,
        first: u8,
        code: u8,
        message_id: u8,
        rest: &'a [u8],
    },
    Octets(u8, &'a [u8]),
    Connect(u8),
    Disconnect(u8),
    Get {
        peer: u8,
        observe: bool,
        confirmable: bool,
    },
    Post(u8, u16),
    Cancel,
    Deregister,
    Accept,
    Respond(u16),
    Notify(u16, bool),
    Ping(u8),
    Wait(u16),
}

fuzz_target!(|steps: Vec<EndpointStep<'_>>| {
    let config = Config {
        limits: Limits {
            max_peers: 4,
            max_requests: 6,
            max_calls: 6,
            max_flights: 8,
            max_bodies: 20_000,
            max_body: 10_000,
            max_transfers: 3,
            max_observers: 3,
            remembered: 16,
            remembered_octets: 4_096,
            max_replies: 16,
            max_stream_message: 2_000,
            ..Limits::default()
        },
        ..Config::default()
    };
    let mut random = 1_u64;
    let mut endpoint = Endpoint::<u8>::new(config, move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random
    });
    let mut now = Instant::ZERO;
    let (mut requests, mut calls, mut observers) =
        (Vec::<RequestId>::new(), Vec::<CallId>::new(), Vec::<ObserverId>::new());
    for step in steps {
        let mut events = Vec::new();
        match step {
            EndpointStep::Datagram(peer, octets) => {
                events.extend(endpoint.handle_datagram(now, peer % 8, octets).map(Event::into_owned));
            }
            EndpointStep::Message { peer, first, code, message_id, rest } => {
                let datagram = [&[0x40 | first & 0x31, code, 0, message_id], rest].concat();
                events.extend(endpoint.handle_datagram(now, peer % 8, &datagram).map(Event::into_owned));
            }
            EndpointStep::Octets(peer, mut octets) => {
                while !octets.is_empty() {
                    let left = octets.len();
                    events.extend(endpoint.handle_stream(now, peer % 8, &mut octets).map(Event::into_owned));
                    if octets.len() == left {
                        break;
                    }
                }
            }
            EndpointStep::Connect(peer) => {
                endpoint.connected(now, peer % 8);
            }
            EndpointStep::Disconnect(peer) => endpoint.disconnected(now, peer % 8),
            EndpointStep::Get { peer, observe, confirmable } => {
                let request = Request { observe, confirmable, ..Request::get("/a") };
                calls.extend(endpoint.request(now, peer % 8, &request));
            }
            EndpointStep::Post(peer, len) => {
                let request = Request::post("/a", vec![0; usize::from(len % 5_000)]);
                calls.extend(endpoint.request(now, peer % 8, &request));
            }
            EndpointStep::Cancel => calls.pop().into_iter().for_each(|call| endpoint.cancel(now, call)),
            EndpointStep::Deregister => {
                calls.last().map(|call| endpoint.deregister(now, *call));
            }
            EndpointStep::Accept => {
                observers.extend(requests.last().and_then(|request| endpoint.accept(now, *request)))
            }
            EndpointStep::Respond(len) => {
                if let Some(request) = requests.pop() {
                    let _ =
                        endpoint.respond(now, request, &Response::content(vec![0; usize::from(len % 5_000)]));
                }
            }
            EndpointStep::Notify(len, confirmable) => {
                if let Some(observer) = observers.last() {
                    let response = Response::content(vec![0; usize::from(len % 5_000)]);
                    let _ = endpoint.notify(now, *observer, &response, confirmable);
                }
            }
            EndpointStep::Ping(peer) => {
                endpoint.ping(now, peer % 8);
            }
            EndpointStep::Wait(millis) => {
                now = now + Duration::from_millis(u64::from(millis));
                endpoint.handle_timeout(now);
            }
        }
        drain(&mut endpoint, now, &mut events);
        for event in events {
            if let Event::Request { id, .. } = event {
                requests.push(id);
            }
        }
        assert!(endpoint.peers() <= 4 && endpoint.observers() <= 3 && endpoint.held_octets() <= 20_000);
    }
    calls.into_iter().for_each(|call| endpoint.cancel(now, call));
    let mut wakes = 0;
    while let Some(next) = endpoint.poll_timeout() {
        now = now.max(next);
        endpoint.handle_timeout(now);
        drain(&mut endpoint, now, &mut Vec::new());
        wakes += 1;
        assert!(wakes < 10_000, "it never ends");
    }
});

fn drain(endpoint: &mut Endpoint<u8>, now: Instant, events: &mut Vec<Event<'static, u8>>) {
    let mut buffer = [0; 1_152];
    let mut sent = 0;
    while endpoint.poll_transmit(now, &mut buffer).is_some() {
        sent += 1;
        assert!(sent < 10_000, "it sends for ever");
    }
    events.extend(std::iter::from_fn(|| endpoint.poll_event()));
}
