//! Octets from outside: whatever they are, nothing panics, one datagram has at most one reply, and memory stays bounded.

#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;
use thinair_coap::{Config, Endpoint, Event, Limits, Policy, Request, Response};
use thinair_link::Random;
use thinair_wire::time::Instant;

fn endpoint() -> Endpoint<u8> {
    let mut random = Random::new(1);
    let config = Config {
        limits: Limits {
            max_peers: 4,
            max_requests: 8,
            max_bodies: 10_000,
            max_transfers: 4,
            max_observers: 4,
            remembered: 16,
            remembered_octets: 4_096,
            max_replies: 16,
            max_stream_message: 2_000,
            ..Limits::default()
        },
        policy: Policy { amplification: Some(3), ..Policy::default() },
        ..Config::default()
    };
    Endpoint::new(config, move || random.next_u64())
}

/// Octets that are often a message: a first octet of version 1, codes and options with a meaning.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let code = prop_oneof![0..8_u8, Just(0x45), Just(0x5F), Just(0x81), Just(0x88), Just(0x8D), any::<u8>()];
    let head = (0x40..0x80_u8, code, 0..4_u8, 0..8_u8)
        .prop_map(|(first, code, high, low)| vec![first & 0xF1, code, high, low]);
    let option = prop_oneof![
        Just(vec![0x60]),
        Just(vec![0x61, 1]),
        Just(vec![0xB1, b'a']),
        Just(vec![0xD1, 10, 0x08]),
        Just(vec![0xD1, 10, 0x18]),
        Just(vec![0xD1, 14, 0x08]),
        Just(vec![0xD1, 14, 0x10]),
        Just(vec![0xD1, 14, 0x0F]),
        Just(vec![0xE1, 0, 0, 2]),
        Just(vec![0xFF]),
        vec(any::<u8>(), 0..5),
    ];
    let payload =
        prop_oneof![Just(vec![]), Just(vec![0xFF; 17]), vec(any::<u8>(), 0..40), Just(vec![0xFF; 1_025])];
    (head, vec(any::<u8>(), 0..2), vec(option, 0..4), payload).prop_map(
        |(mut octets, token, options, payload)| {
            octets.extend(token);
            options.into_iter().for_each(|option| octets.extend(option));
            octets.extend(payload);
            octets
        },
    )
}

fn answer(endpoint: &mut Endpoint<u8>, now: Instant, event: Event<'static, u8>, how: u8) {
    if let Event::Request { id, .. } = event {
        if how & 1 == 1 {
            endpoint.accept(now, id);
        }
        if how & 2 == 2 {
            let _ = endpoint.respond(now, id, &Response::content(vec![how; usize::from(how) * 20]));
        }
    }
}

proptest! {
    #[test]
    fn datagrams_have_at_most_one_reply_each(
        steps in vec((datagram(), 0..6_u8, any::<u8>(), 0..3_000_u64), 1..40),
    ) {
        let mut endpoint = endpoint();
        let mut now = Instant::ZERO;
        let mut buffer = [0; 1_152];
        endpoint.request(now, 0, &Request::get("/a").observe()).unwrap();
        endpoint.request(now, 1, &Request::post("/b", vec![7; 3_000])).unwrap();
        while endpoint.poll_transmit(now, &mut buffer).is_some() {}
        for (datagram, peer, how, wait) in steps {
            let requests = endpoint.handle_datagram(now, peer, &datagram).map(Event::into_owned);
            // A reply, and the next message of a request that it answers.
            let mut sent = 0;
            while let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
                sent += 1;
                prop_assert!(transmit.peer == peer);
            }
            prop_assert!(sent <= 1 + usize::from(matches!(requests, Some(Event::Progress { .. }))), "{} sent", sent);
            if let Some(event) = requests {
                answer(&mut endpoint, now, event, how);
            }
            while endpoint.poll_event().is_some() {}
            prop_assert!(endpoint.held_octets() <= 10_000 && endpoint.peers() <= 4 && endpoint.observers() <= 4);
            now = now + std::time::Duration::from_millis(wait);
            endpoint.handle_timeout(now);
            while endpoint.poll_transmit(now, &mut buffer).is_some() {}
        }
        // All exchanges end.
        let mut wakes = 0;
        while let Some(next) = endpoint.poll_timeout() {
            now = now.max(next);
            endpoint.handle_timeout(now);
            while endpoint.poll_transmit(now, &mut buffer).is_some() {}
            wakes += 1;
            prop_assert!(wakes < 1_000);
        }
    }

    #[test]
    fn streams_take_any_octets(
        chunks in vec((prop_oneof![
            Just(b"\x00\xe1".to_vec()),
            Just(b"\x20\x01\xb1a".to_vec()),
            Just(b"\x00\xe2".to_vec()),
            Just(b"\x01\x45\x00".to_vec()),
            vec(any::<u8>(), 0..30),
        ], any::<u8>()), 1..40),
    ) {
        let mut endpoint = endpoint();
        let now = Instant::ZERO;
        let mut buffer = [0; 100];
        prop_assert!(endpoint.connected(now, 1));
        endpoint.request(now, 1, &Request::post("/b", vec![7; 3_000])).unwrap();
        for (chunk, how) in chunks {
            let mut octets = &chunk[..];
            while !octets.is_empty() {
                if let Some(event) = endpoint.handle_stream(now, 1, &mut octets) {
                    let event = event.into_owned();
                    answer(&mut endpoint, now, event, how);
                }
            }
            while endpoint.poll_transmit(now, &mut buffer).is_some() {}
        }
        endpoint.disconnected(now, 1);
        prop_assert!(endpoint.poll_timeout().is_none() || endpoint.held_octets() > 0);
    }
}
