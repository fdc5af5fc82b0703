//! Block-wise transfer: the examples of RFC 7959, section 3, and its rules.

use crate::config::{Limits, Policy};
use std::vec::Vec;

use thinair_wire::time::Instant;

use super::support::*;
use crate::*;

fn blocks_of(octets: usize) -> Config {
    Config {
        policy: Policy { block_size: BlockSize::at_most(octets), ..Policy::default() },
        ..Config::default()
    }
}

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

/// A server that responds to each request with `body`.
fn serves(body: Vec<u8>) -> impl FnMut(&mut Endpoint<u8>, Instant, Event<'static, u8>) {
    move |server, now, event| {
        let Event::Request { id, .. } = event else { panic!("{event:?}") };
        server.respond(now, id, &Response::content(&body[..])).unwrap();
    }
}

fn last(events: &[Event<'static, u8>]) -> Received<'static> {
    match events.last() {
        Some(Event::Response { message, .. }) => message.clone(),
        other => panic!("{other:?}"),
    }
}

/// Section 3.1, figure 2.
#[test]
fn figure_2_simple_block_wise_get() {
    let mut pair = EndpointPair::new(Config::default(), blocks_of(128));
    pair.request(&Request::get("/status"));
    let events = pair.run(&mut serves(body(300)));
    assert_eq!(
        pair.log,
        [
            "> CON GET /status",
            "< ACK 2.05 2:0/1/128",
            "> CON GET /status 2:1/0/128",
            "< ACK 2.05 2:1/1/128",
            "> CON GET /status 2:2/0/128",
            "< ACK 2.05 2:2/0/128",
        ]
    );
    assert_eq!(*last(&events).payload, body(300));
    assert!(matches!(events[0], Event::Progress { received: 128, total: Some(300), .. }));
    assert_eq!(pair.server.held_octets(), 0);
}

/// Figure 3: early negotiation. The client wants 64 octets from the start.
#[test]
fn figure_3_early_negotiation() {
    let mut pair = EndpointPair::new(blocks_of(64), blocks_of(128));
    pair.request(&Request::get("/status"));
    let events = pair.run(&mut serves(body(300)));
    assert_eq!(
        pair.log[..3],
        ["> CON GET /status 2:0/0/64", "< ACK 2.05 2:0/1/64", "> CON GET /status 2:1/0/64"]
    );
    assert_eq!(pair.log[9], "< ACK 2.05 2:4/0/64");
    assert_eq!(*last(&events).payload, body(300));
}

/// Figure 7: simple atomic block-wise PUT.
#[test]
fn figure_7_atomic_put() {
    let mut pair = EndpointPair::new(blocks_of(128), Config::default());
    pair.request(&Request::put("/options", body(300)));
    let mut bodies = Vec::new();
    let events = pair.run(&mut |server, now, event| {
        let Event::Request { id, message, .. } = event else { panic!("{event:?}") };
        bodies.push(message.payload.into_owned());
        server.respond(now, id, &Response::new(Code::CHANGED)).unwrap();
    });
    assert_eq!(
        pair.log,
        [
            "> CON PUT /options 2:0/0/128 1:0/1/128",
            "< ACK 2.31 1:0/1/128",
            "> CON PUT /options 2:0/0/128 1:1/1/128",
            "< ACK 2.31 1:1/1/128",
            "> CON PUT /options 2:0/0/128 1:2/0/128",
            "< ACK 2.04 2:0/0/128 1:2/0/128",
        ]
    );
    assert_eq!(bodies, [body(300)]);
    assert_eq!(last(&events).code, Code::CHANGED);
    assert_eq!(pair.server.held_octets(), 0);
}

/// Figures 8 and 9: the server wants smaller blocks: 32 instead of 128 octets.
#[test]
fn figure_9_a_server_asks_for_smaller_blocks() {
    let mut pair = EndpointPair::new(Config::default(), blocks_of(32));
    pair.request(&Request::put("/options", body(1_100)));
    let mut bodies = Vec::new();
    pair.run(&mut |server, now, event| {
        let Event::Request { id, message, .. } = event else { panic!("{event:?}") };
        bodies.push(message.payload.into_owned());
        server.respond(now, id, &Response::new(Code::CHANGED)).unwrap();
    });
    assert_eq!(
        pair.log[..4],
        [
            "> CON PUT /options 1:0/1/1024",
            "< ACK 2.31 1:0/1/32",
            "> CON PUT /options 1:32/1/32",
            "< ACK 2.31 1:32/1/32"
        ]
    );
    assert_eq!(pair.log[pair.log.len() - 2..], ["> CON PUT /options 1:34/0/32", "< ACK 2.04 1:34/0/32"]);
    assert_eq!(bodies, [body(1_100)]);
}

/// Figure 11: block-wise POST with a block-wise response: it is done once.
#[test]
fn figure_11_post_both_ways() {
    let mut pair = EndpointPair::new(Config::default(), blocks_of(64));
    pair.request(&Request::post("/soap", body(1_500)));
    let mut count = 0;
    let events = pair.run(&mut |server, now, event| {
        let Event::Request { id, message, .. } = event else { panic!("{event:?}") };
        assert_eq!(*message.payload, body(1_500));
        count += 1;
        server.respond(now, id, &Response::new(Code::CHANGED).payload(body(200))).unwrap();
    });
    assert_eq!(*last(&events).payload, body(200));
    assert_eq!((last(&events).code, count), (Code::CHANGED, 1));
    assert!(pair.log.contains(&"> CON POST /soap 2:3/0/64".into()));
}

#[test]
fn a_mebibyte_goes_both_ways() {
    let mut pair = EndpointPair::new(Config::default(), Config::default());
    pair.request(&Request::post("/", body(1 << 20)));
    let mut count = 0;
    let events = pair.run(&mut |server, now, event| {
        let Event::Request { id, message, .. } = event else { panic!("{event:?}") };
        count += 1;
        server.respond(now, id, &Response::content(message.payload)).unwrap();
    });
    assert_eq!((count, pair.log.len()), (1, 2 * 2_047));
    assert_eq!(*last(&events).payload, body(1 << 20));
    assert_eq!(pair.server.held_octets(), 0);
}

/// Section 2.9.3: 4.13, with the largest size accepted.
#[test]
fn bodies_that_are_too_large_are_refused() {
    let mut pair = EndpointPair::new(
        Config::default(),
        Config { limits: Limits { max_body: 3_000, ..Limits::default() }, ..Config::default() },
    );
    for len in [3_001, 100_000] {
        pair.request(&Request::put("/", body(len)));
        let events = pair.run(&mut |_, _, event| panic!("{event:?}"));
        let refused = last(&events);
        assert_eq!(
            (refused.code, refused.options.uint(number::SIZE1)),
            (code::REQUEST_ENTITY_TOO_LARGE, Some(3_000))
        );
        assert_eq!(pair.log.len(), 2);
        pair.log.clear();
    }
    let mut pair = EndpointPair::new(
        Config { limits: Limits { max_body: 3_000, ..Limits::default() }, ..Config::default() },
        Config::default(),
    );
    let call = pair.request(&Request::get("/"));
    let events = pair.run(&mut serves(body(3_001)));
    assert_eq!(events, [Event::Failed { call, error: CallError::TooLarge { limit: 3_000 } }]);
}

/// Section 2.5: a block that does not follow; section 2.4: another representation.
#[test]
fn blocks_that_do_not_follow_each_other_are_refused() {
    let mut server = plain(blocks_of(16));
    let block1 = |id: u8, value: &[u8], len: usize| {
        let mut datagram =
            [&[0x40, 3, 0, id, 0xB1, b'a', 0xD0 | value.len() as u8, 3], value, &[0xFF]].concat();
        datagram.extend(body(len));
        datagram
    };
    let mut reply = |datagram: &[u8]| {
        assert!(received(&mut server, at(0), datagram).is_empty());
        described(&sent(&mut server, at(0))[0])
    };
    assert_eq!(reply(&block1(1, &[0x08], 16)), "ACK 2.31 1:0/1/16");
    // The second one is missing.
    assert_eq!(reply(&block1(2, &[0x28], 16)), "ACK 4.08");
    // The first one is missing.
    assert_eq!(reply(&block1(3, &[0x18], 16)), "ACK 4.08");
    // A size that differs from the option; SZX 7.
    assert_eq!(reply(&block1(4, &[0x08], 15)), "ACK 4.00");
    assert_eq!(reply(&block1(5, &[0x0F], 16)), "ACK 4.00");
    assert_eq!(server.held_octets(), 0);
}

#[test]
fn a_representation_that_changes_is_fetched_again() {
    for (changes, fails) in [(1, false), (100, true)] {
        let mut pair = EndpointPair::new(
            Config::default(),
            Config {
                limits: Limits { max_transfers: 0, max_bodies: 0, ..blocks_of(64).limits },
                ..blocks_of(64)
            },
        );
        let call = pair.request(&Request::get("/"));
        let mut asked = 0;
        let events = pair.run(&mut |server, now, event| {
            let Event::Request { id, .. } = event else { panic!("{event:?}") };
            asked += 1;
            let version = (asked / 2).min(changes) as u8;
            let octets: Vec<u8> = body(150).into_iter().map(|octet| octet ^ version).collect();
            server.respond(now, id, &Response::content(octets).etag(&[version])).unwrap();
        });
        if fails {
            assert_eq!(events.last(), Some(&Event::Failed { call, error: CallError::Changed }));
        } else {
            let expected: Vec<u8> = body(150).into_iter().map(|octet| octet ^ 1).collect();
            assert_eq!(*last(&events).payload, expected);
        }
    }
}

/// Uploads and downloads with too long a pause release their memory.
#[test]
fn transfers_that_rest_leave_nothing_behind() {
    let config = Config {
        limits: Limits { max_transfers: 3, max_bodies: 20_000, ..Limits::default() },
        ..Config::default()
    };
    let mut server = plain(config);
    for peer in 0..200_u8 {
        let mut datagram = b"\x40\x03\x00\x01\xb1a\xd1\x03\x0e\xff".to_vec();
        datagram.extend(body(1_024));
        assert!(server.handle_datagram(at(u64::from(peer)), peer, &datagram).is_none());
        sent(&mut server, at(u64::from(peer)));
        assert!(server.held_octets() <= 3 * 2_048, "{}", server.held_octets());
    }
    while let Some(now) = server.poll_timeout() {
        server.handle_timeout(now);
    }
    assert_eq!(server.held_octets(), 0);
}

/// Over half an hour of blocks that come one at a time, memory stays within the configured bound.
#[test]
fn large_uploads_of_many_peers_share_their_room() {
    let config = Config { limits: Limits { max_bodies: 50_000, ..Limits::default() }, ..Config::default() };
    let mut server = plain(config);
    for num in 0..40_u32 {
        for peer in 0..20_u8 {
            let value = Block { num, more: true, size: BlockSize::MAX }.to_uint();
            let mut out = [0; 1_200];
            let mut builder =
                Builder::new(&mut out, Type::Confirmable, Code::PUT, num as u16, &Token::EMPTY).unwrap();
            builder.option(number::URI_PATH, b"a").unwrap();
            builder.uint(number::BLOCK1, value).unwrap();
            let len = builder.payload(&body(1_024)).unwrap();
            server.handle_datagram(at(u64::from(num) * 45_000), peer, &out[..len]);
            sent(&mut server, at(u64::from(num) * 45_000));
            assert!(server.held_octets() <= 50_000);
        }
    }
}

/// RFC 9175, section 3.3: without a Request-Tag, blocks of one body would be mixed with those of the
/// other.
#[test]
fn bodies_to_the_same_resource_at_the_same_time_are_distinguished() {
    let mut config = Config::default();
    config.timing.transmission.nstart = 4;
    let mut pair = EndpointPair::new(config, Config::default());
    let all = [body(3_000), [body(1_000), body(3_000)].concat(), body(2_999)];
    let calls: Vec<_> = all.iter().map(|body| pair.request(&Request::post("/a", &body[..]))).collect();
    let events = pair.run(&mut |server, now, event| {
        let Event::Request { id, message, .. } = event else { panic!("{event:?}") };
        server.respond(now, id, &Response::content(message.payload)).unwrap();
    });
    for (call, body) in calls.iter().zip(&all) {
        let response = events.iter().find_map(|event| match event {
            Event::Response { call: other, message } if other == call => Some(&message.payload),
            _ => None,
        });
        assert_eq!(response.map(|payload| &payload[..]), Some(&body[..]));
    }
}

/// A server whose blocks are out of order, of another size, or incomplete.
#[test]
fn blocks_that_make_no_sense_fail_a_request() {
    for second in [
        // NUM 2 and 3 instead of 1, 15 octets with M, SZX 7.
        (0x28_u8, 16),
        (0x18, 15),
        (0x1F, 16),
        (0x38, 16),
    ] {
        let mut client = plain(Config::default());
        let call = client.request(at(0), PEER, &Request::get("/")).unwrap();
        sent(&mut client, at(0));
        let block = |id: u8, value: u8, len: usize| {
            [&[0x61, 0x45, 0, id, 0, 0xD1, 10, value, 0xFF], &body(len)[..]].concat()
        };
        let events = received(&mut client, at(1), &block(0, 0x08, 16));
        assert!(matches!(events[..], [Event::Progress { received: 16, .. }]), "{events:?}");
        sent(&mut client, at(1));
        let events = received(&mut client, at(2), &block(1, second.0, second.1));
        assert_eq!(events, [Event::Failed { call, error: CallError::BadBlock }], "{second:?}");
        assert_eq!(client.poll_timeout(), None);
    }
}

/// RFC 7959, section 2.9.1: 2.31 requests the next block; behind the last one it is no answer.
#[test]
fn continue_is_no_last_answer() {
    let last = Request::put("/a", std::vec![7; 20]);
    let get = Request::get("/a");
    for request in [&last, &get] {
        let mut client = plain(blocks_of(16));
        let call = client.request(at(0), PEER, request).unwrap();
        let mut events = Vec::new();
        // 2.31 with the Token and Message ID of each request.
        for message_id in 0..3 {
            let Some(datagram) = sent(&mut client, at(0)).pop() else { break };
            let token = datagram[4];
            let block = Message::read(&datagram).unwrap().options.uint(number::BLOCK1);
            let mut answer = std::vec![0x61, 0x5F, 0, message_id, token];
            answer.extend(block.map(|block| [0xD1, 14, block as u8]).into_iter().flatten());
            events = received(&mut client, at(0), &answer);
        }
        assert_eq!(events, [Event::Failed { call, error: CallError::UnexpectedContinue }]);
    }
}

/// RFC 7959, section 2.4: a body is complete with the block that no other follows, and with no message without Block2.
#[test]
fn a_body_is_not_cut_where_block2_is_missing() {
    let mut client = plain(blocks_of(16));
    let call = client.request(at(0), PEER, &Request::get("/a")).unwrap();
    sent(&mut client, at(0));
    // Block2 0/1/16.
    let first = [&b"\x61\x45\x00\x00\x00\xd1\x0a\x08\xff"[..], &[1; 16]].concat();
    assert!(matches!(received(&mut client, at(0), &first)[..], [Event::Progress { .. }]));
    let token = sent(&mut client, at(0))[0][4];
    let second = [&[0x61, 0x45, 0, 1, token, 0xFF][..], &[2; 16]].concat();
    assert_eq!(received(&mut client, at(0), &second), [Event::Failed { call, error: CallError::BadBlock }]);
    // An error needs none.
    let mut client = plain(blocks_of(16));
    client.request(at(0), PEER, &Request::get("/a")).unwrap();
    sent(&mut client, at(0));
    received(&mut client, at(0), &first);
    let token = sent(&mut client, at(0))[0][4];
    let events = received(&mut client, at(0), &[0x61, 0x84, 0, 1, token]);
    assert!(matches!(&events[..], [Event::Response { message, .. }] if message.code == code::NOT_FOUND));
}

/// RFC 7959, section 2.3: a success that does not name the block is an answer to the first part as the whole.
#[test]
fn an_upload_does_not_go_on_where_block1_is_missing() {
    let mut client = plain(blocks_of(16));
    let call = client.request(at(0), PEER, &Request::put("/a", std::vec![7; 40])).unwrap();
    let token = sent(&mut client, at(0))[0][4];
    let events = received(&mut client, at(0), &[0x61, 0x44, 0, 0, token]);
    assert_eq!(events, [Event::Failed { call, error: CallError::BadBlock }]);
}
