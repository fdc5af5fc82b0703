//! Protection against peers: no amplification, no memory above the limits.

use crate::config::{Limits, Policy};
use std::vec::Vec;

use super::support::*;
use crate::*;

/// RFC 9175, section 2.3: before a client has echoed a value, a response has at most three times the octets of its request.
#[test]
fn amplification_is_limited_until_the_client_has_echoed() {
    let config =
        Config { policy: Policy { amplification: Some(3), ..Policy::default() }, ..Config::default() };
    let mut pair = EndpointPair::new(Config::default(), config);
    let mut asked = 0;
    let mut app = |server: &mut Endpoint<u8>, now, event| {
        let Event::Request { id, .. } = event else { panic!("{event:?}") };
        asked += 1;
        server.respond(now, id, &Response::content(&[b'a'; 500][..])).unwrap();
    };
    pair.request(&Request::get("/big"));
    let events = pair.run(&mut app);
    // The second request has room for the value to echo in its response; then the client begins again.
    assert_eq!(
        pair.log,
        [
            "> CON GET /big",
            "< ACK 2.05 2:0/1/16",
            "> CON GET /big 2:1/0/16",
            "< ACK 2.05 2:1/1/16",
            "> CON GET /big",
            "< ACK 2.05",
        ]
    );
    assert!(matches!(&events[..], [.., Event::Response { message, .. }] if message.payload.len() == 500));
    // The address is verified from now on.
    pair.request(&Request::get("/big"));
    pair.run(&mut app);
    assert_eq!(pair.log[6..], ["> CON GET /big", "< ACK 2.05"]);
    assert_eq!(asked, 4);
}

/// For any request, Confirmable or not, observed or not, answered now or later: three times as many octets at most.
#[test]
fn no_reply_to_an_unknown_peer_is_larger_than_three_times_its_request() {
    for datagram in [
        &b"\x40\x01\x00\x01"[..],
        b"\x50\x01\x00\x01",
        b"\x40\x01\x00\x01\x60",
        b"\x40\x02\x00\x01",
        b"\x41\x02\x00\x01\x07\xb7actions\xff0123456789",
        b"\x41\x03\x00\x01\x07\xb7actions\xd1\x03\x06\xff0123456789",
        b"\x41\x05\x00\x01\x07\xb1a",
    ] {
        for late in [false, true] {
            let mut server = plain(Config {
                policy: Policy { amplification: Some(3), ..Policy::default() },
                ..Config::default()
            });
            let events = received(&mut server, at(0), datagram);
            server.handle_timeout(at(if late { 500 } else { 0 }));
            for event in events {
                let Event::Request { id, .. } = event else { panic!("{event:?}") };
                server.accept(at(500), id);
                server.respond(at(500), id, &Response::content(&[b'a'; 2_000][..])).unwrap();
            }
            let mut octets = 0;
            loop {
                octets += sent(&mut server, at(500)).iter().map(Vec::len).sum::<usize>();
                let Some(now) = server.poll_timeout().filter(|now| *now < at(100_000)) else { break };
                server.handle_timeout(now);
            }
            assert!(octets <= 3 * datagram.len() + 4 * usize::from(late), "{octets} for {datagram:?}");
        }
    }
}

/// RFC 7967: classes of responses that the client does not want.
#[test]
fn responses_that_nobody_wants_are_not_sent() {
    for (no_response, code, is_sent) in [
        (2, Code::CHANGED, false),
        (2, code::NOT_FOUND, true),
        (8, code::NOT_FOUND, false),
        (16, code::NOT_FOUND, true),
        (26, Code::CONTENT, false),
        (0, Code::CONTENT, true),
    ] {
        for confirmable in [false, true] {
            let mut pair = EndpointPair::new(Config::default(), Config::default());
            let request = Request::put("/", &b"x"[..]).uint(number::NO_RESPONSE, no_response);
            pair.request(&Request { confirmable, ..request });
            let events = pair.run(&mut |server, now, event| {
                let Event::Request { id, .. } = event else { panic!("{event:?}") };
                server.respond(now, id, &Response::new(code)).unwrap();
            });
            assert_eq!(events.len(), usize::from(is_sent));
            let expected = if confirmable { "< ACK" } else { "" };
            assert_eq!(
                pair.log.get(1).map_or("", |reply| reply),
                if is_sent { &pair.log[1] } else { expected }
            );
        }
    }
}

/// Section 4.5: memory of duplicates, of replies, of peers and of requests is bounded.
#[test]
fn a_flood_is_answered_within_bounds() {
    let config = Config {
        limits: Limits {
            max_peers: 10,
            max_requests: 5,
            remembered: 20,
            max_replies: 8,
            ..Limits::default()
        },
        ..Config::default()
    };
    let mut random = thinair_link::Random::new(1);
    let mut server = Endpoint::<u64>::new(config, move || random.next_u64());
    let mut overload = 0;
    for peer in 0..1_000_u64 {
        let datagram = [&b"\x40\x01"[..], &(peer as u16).to_be_bytes(), b"\xb1a"].concat();
        overload += u64::from(server.handle_datagram(at(peer), peer, &datagram).is_none());
        assert!(server.peers() <= 10);
    }
    assert_eq!(overload, 995);
    assert!(server.counters().forgotten_early > 0 && server.counters().dropped > 0);
    assert_eq!(server.outgoing.len(), 8);
}

fn limited() -> Config {
    Config { policy: Policy { amplification: Some(3), ..Policy::default() }, ..Config::default() }
}

/// A request that was processed is answered by a block that is small enough; further ones, too.
#[test]
fn the_large_answer_to_a_post_of_an_unknown_client_comes_in_small_blocks() {
    let mut pair = EndpointPair::new(Config::default(), limited());
    let (mut asked, body) = (0, [b'a'; 100]);
    pair.request(&Request::post("/actions", &b"0123456789"[..]));
    let events = pair.run(&mut |server, now, event| {
        let Event::Request { id, .. } = event else { panic!("{event:?}") };
        asked += 1;
        let created = Response::new(code::CREATED).option(number::LOCATION_PATH, b"actions");
        server.respond(now, id, &created.payload(&body[..])).unwrap();
    });
    let [.., Event::Response { message, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((message.code, &*message.payload, asked), (code::CREATED, &body[..], 1));
    assert_eq!(message.options.first(number::LOCATION_PATH), Some(&b"actions"[..]));
    assert_eq!(
        pair.log,
        [
            "> CON POST /actions",
            "< ACK 2.01 2:0/1/32",
            "> CON POST /actions 2:1/0/32",
            "< ACK 2.01 2:1/1/32",
            "> CON POST /actions 2:2/0/32",
            "< ACK 2.01 2:2/1/32",
            "> CON POST /actions 2:3/0/32",
            "< ACK 2.01 2:3/0/32",
        ]
    );
}

/// A short answer is sent as it is.
#[test]
fn the_short_answer_to_a_post_of_an_unknown_client_is_one_message() {
    let mut pair = EndpointPair::new(Config::default(), limited());
    pair.request(&Request::post("/actions", &b"0123456789"[..]));
    let events = pair.run(&mut |server, now, event| {
        let Event::Request { id, .. } = event else { panic!("{event:?}") };
        server.respond(now, id, &Response::content(&[b'a'; 50][..])).unwrap();
    });
    assert!(matches!(&events[..], [Event::Response { message, .. }] if message.payload.len() == 50));
}

/// Only a body of which a part was sent is stored.
#[test]
fn a_body_that_was_not_sent_is_not_stored() {
    let mut server = plain(limited());
    let events = received(&mut server, at(0), b"\x40\x01\x00\x01\xb1a");
    let [Event::Request { id, .. }] = &events[..] else { panic!("{events:?}") };
    server.respond(at(0), *id, &Response::content(&[b'a'; 5_000][..])).unwrap();
    assert_eq!(sent(&mut server, at(0))[0][..2], *b"\x60\x81");
    assert_eq!((server.held_octets(), server.poll_timeout()), (0, None));
}

/// A client that knows blocks, but not Echo, gets the whole answer if its requests are long enough for the smallest block.
#[test]
fn an_answer_can_be_fetched_without_echo() {
    for (method, code) in [(Code::GET, Code::CONTENT), (Code::POST, Code::CHANGED)] {
        let mut server = plain(limited());
        let (mut body, path) = (Vec::<u8>::new(), b"sensors");
        for num in 0..7_u8 {
            let mut datagram = [&[0x41, method.0, 0, num, 7, 0xB7][..], path].concat();
            if num > 0 {
                datagram.extend([0xC1, num << 4]);
            }
            for event in received(&mut server, at(0), &datagram) {
                let Event::Request { id, .. } = event else { panic!("{event:?}") };
                // A body is stored only if its request may not be processed twice.
                assert!(num == 0 || method == Code::GET, "processed once");
                server.respond(at(0), id, &Response::new(code).payload(&[b'a'; 100][..])).unwrap();
            }
            let answer = sent(&mut server, at(0)).pop().unwrap();
            assert!(answer.len() <= 3 * datagram.len());
            let message = Message::read(&answer).unwrap();
            assert_eq!(message.code, code);
            let block = message.options.uint(number::BLOCK2).and_then(Block::from_uint).unwrap();
            assert_eq!(body.len(), block.offset());
            body.extend_from_slice(message.payload);
        }
        assert_eq!(body, [b'a'; 100]);
        assert_eq!(server.held_octets(), 0);
    }
}

/// The reason of a 4.02 counts, too.
#[test]
fn a_refusal_is_as_short_as_its_request_allows() {
    let mut server = plain(limited());
    for (datagram, reply) in [
        (&b"\x40\x01\x00\x01\x90"[..], &b"\x60\x82\x00\x01"[..]),
        (b"\x40\x01\x00\x02\x94long", b"\x60\x82\x00\x02\xffunsupported option 9"),
    ] {
        received(&mut server, at(0), datagram);
        assert_eq!(sent(&mut server, at(0)), [reply]);
    }
}
