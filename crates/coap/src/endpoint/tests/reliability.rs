//! Messages: RFC 7252, sections 4 and 5.2, and the message flows of its appendix A.

use crate::config::{Limits, Policy};
use core::time::Duration;
use std::vec::Vec;

use super::support::*;
use crate::*;

fn request(endpoint: &mut Endpoint<u8>, path: &str) -> CallId {
    endpoint.request(at(0), PEER, &Request::get(path)).unwrap()
}

/// Appendix A, figure 16: the response is piggybacked.
#[test]
fn figure_16_a_piggybacked_response() {
    let mut server = endpoint(1);
    let events = received(&mut server, at(0), b"\x40\x01\x7d\x34\xbbtemperature");
    let [Event::Request { id, message, .. }] = &events[..] else { panic!("{events:?}") };
    assert!(message.options.is_path("/temperature"));
    server.respond(at(1), *id, &Response::content(b"22.3 C")).unwrap();
    assert_eq!(sent(&mut server, at(1)), [b"\x60\x45\x7d\x34\xff22.3 C".to_vec()]);
    assert_eq!(server.respond(at(2), *id, &Response::content(b"")), Err(RespondError::Gone));
}

/// Figures 18 and 19: request or response is lost; the duplicate gets the stored response, and the application sees the
/// request once.
#[test]
fn figures_18_and_19_a_lost_message_is_sent_again() {
    let (mut client, mut server) = (plain(rfc7252()), endpoint(1));
    let call = request(&mut client, "/temperature");
    let first = sent(&mut client, at(0));
    assert_eq!(client.poll_timeout(), Some(at(2_000)));
    client.handle_timeout(at(1_999));
    assert!(sent(&mut client, at(1_999)).is_empty());
    client.handle_timeout(at(2_000));
    let second = sent(&mut client, at(2_000));
    assert_eq!(first, second);
    let events = received(&mut server, at(2_100), &first[0]);
    let [Event::Request { id, .. }] = &events[..] else { panic!("{events:?}") };
    server.respond(at(2_100), *id, &Response::content(b"22.3 C")).unwrap();
    let response = sent(&mut server, at(2_100));
    assert!(received(&mut server, at(2_200), &second[0]).is_empty());
    assert_eq!(sent(&mut server, at(2_200)), response);
    assert_eq!(server.counters().duplicates, 1);
    let events = received(&mut client, at(2_300), &response[0]);
    let [Event::Response { call: answered, message }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((*answered, &*message.payload), (call, &b"22.3 C"[..]));
    assert_eq!(client.poll_timeout(), None);
}

/// Figures 20 and 21: the response takes its time, and is a separate message; the acknowledgement may be lost.
#[test]
fn figures_20_and_21_a_separate_response() {
    for lost in [false, true] {
        let (mut client, mut server) = (endpoint(1), endpoint(2));
        let call = request(&mut client, "/temperature");
        let request = sent(&mut client, at(0));
        let events = received(&mut server, at(100), &request[0]);
        let [Event::Request { id, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(server.poll_timeout(), Some(at(200)));
        server.handle_timeout(at(200));
        let acknowledgement = sent(&mut server, at(200));
        assert_eq!(acknowledgement[0][..2], *b"\x60\x00");
        assert_eq!(acknowledgement[0][2..], request[0][2..4]);
        // A duplicate is acknowledged again.
        assert!(received(&mut server, at(300), &request[0]).is_empty());
        assert_eq!(sent(&mut server, at(300)), acknowledgement);
        if !lost {
            assert!(received(&mut client, at(300), &acknowledgement[0]).is_empty());
        }
        server.respond(at(900), *id, &Response::content(b"22.3 C")).unwrap();
        let response = sent(&mut server, at(900));
        assert_eq!(response[0][..2], *b"\x41\x45");
        let events = received(&mut client, at(1_000), &response[0]);
        let [Event::Response { call: answered, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(*answered, call);
        let last = sent(&mut client, at(1_000));
        assert_eq!(last[0][..2], *b"\x60\x00");
        // Lost, and retransmitted: the client acknowledges again, without an event.
        assert!(received(&mut client, at(1_100), &response[0]).is_empty());
        assert_eq!(sent(&mut client, at(1_100)), last);
        assert!(received(&mut server, at(1_200), &last[0]).is_empty());
        assert_eq!((client.poll_timeout(), server.poll_timeout()), (None, None));
    }
}

/// RFC 7252, section 4.8.2: 2 + 4 + 8 + 16 + 32 s.
#[test]
fn a_silent_peer_is_given_up_after_max_transmit_wait() {
    let mut client = plain(rfc7252());
    let call = request(&mut client, "/");
    let mut times = Vec::new();
    while let Some(now) = client.poll_timeout() {
        sent(&mut client, now);
        client.handle_timeout(now);
        times.push(now.as_nanos() / 1_000_000_000);
    }
    assert_eq!(times, [2, 6, 14, 30, 62]);
    let event = client.poll_event();
    assert_eq!(event, Some(Event::Failed { call, error: CallError::Timeout { transmissions: 5 } }));
    assert_eq!(client.counters().retransmissions, 4);
}

#[test]
fn an_acknowledged_request_without_a_response_is_given_up() {
    let mut client = plain(Config::default());
    let call = request(&mut client, "/");
    sent(&mut client, at(0));
    assert!(received(&mut client, at(50), b"\x60\x00\x00\x00").is_empty());
    assert_eq!(client.poll_timeout(), Some(at(93_050)));
    client.handle_timeout(at(93_050));
    assert_eq!(client.poll_event(), Some(Event::Failed { call, error: CallError::NoResponse }));
}

/// Section 4.2: a Reset ends a request; section 4.3: an Empty Confirmable message is a ping.
#[test]
fn resets_end_requests_and_answer_pings() {
    let (mut client, mut server) = (plain(Config::default()), plain(Config::default()));
    let call = request(&mut client, "/");
    sent(&mut client, at(0));
    let events = received(&mut client, at(10), b"\x70\x00\x00\x00");
    assert_eq!(events, [Event::Failed { call, error: CallError::Reset }]);
    assert!(client.ping(at(20), PEER));
    let ping = sent(&mut client, at(20));
    assert_eq!(ping, [b"\x40\x00\x00\x01".to_vec()]);
    assert!(received(&mut server, at(30), &ping[0]).is_empty());
    let pong = sent(&mut server, at(30));
    assert_eq!(pong, [b"\x70\x00\x00\x01".to_vec()]);
    let events = received(&mut client, at(40), &pong[0]);
    assert_eq!(events, [Event::Pong { peer: PEER, after: Duration::from_millis(20) }]);
}

/// Section 4.7: NSTART.
#[test]
fn messages_wait_for_nstart() {
    for nstart in [1, 2] {
        let mut config = Config::default();
        config.timing.transmission.nstart = nstart;
        let mut client = plain(config);
        for path in ["/a", "/b", "/c"] {
            request(&mut client, path);
        }
        let datagrams = sent(&mut client, at(0));
        assert_eq!(datagrams.len(), usize::from(nstart));
        let status = client.peer(at(0), &PEER).unwrap();
        assert_eq!((status.in_flight, status.waiting), (usize::from(nstart), 3 - usize::from(nstart)));
        // Message ID and Token are consecutive.
        assert_eq!(datagrams[0], b"\x41\x01\x00\x00\x00\xb1a");
        assert_eq!(received(&mut client, at(5), b"\x61\x45\x00\x00\x00\xffA").len(), 1);
        let next = sent(&mut client, at(5));
        assert_eq!(next[0][2..5], [0, nstart as u8, nstart as u8]);
    }
}

/// Section 4.5: a Message ID of another peer, or after EXCHANGE_LIFETIME, identifies another message.
#[test]
fn a_message_id_means_a_message_of_one_peer_for_exchange_lifetime() {
    let mut server = plain(Config::default());
    let datagram = b"\x40\x01\x12\x34\xb1a";
    assert_eq!(received(&mut server, at(0), datagram).len(), 1);
    assert_eq!(received(&mut server, at(246_999), datagram).len(), 0);
    assert!(server.handle_datagram(at(246_999), 2, datagram).is_some());
    assert_eq!(received(&mut server, at(247_000), datagram).len(), 1);
    let datagram = b"\x50\x01\x12\x35\xb1a";
    assert_eq!(received(&mut server, at(0), datagram).len(), 1);
    assert_eq!(received(&mut server, at(144_999), datagram).len(), 0);
    assert_eq!(received(&mut server, at(145_000), datagram).len(), 1);
}

/// Section 5.3.2: an acknowledgement with a response has to have both Message ID and Token right.
#[test]
fn a_response_that_goes_with_nothing_is_rejected_or_ignored() {
    let mut client = plain(Config::default());
    request(&mut client, "/a");
    sent(&mut client, at(0));
    for wrong in [&b"\x61\x45\x00\x00\x01\xffA"[..], b"\x61\x45\x00\x01\x00\xffA"] {
        assert!(received(&mut client, at(1), wrong).is_empty());
        assert!(sent(&mut client, at(1)).is_empty());
    }
    for (wrong, reply) in [
        (b"\x41\x45\x77\x00\x05\xffA", b"\x70\x00\x77\x00"),
        (b"\x51\x45\x77\x01\x05\xffA", b"\x70\x00\x77\x01"),
    ] {
        assert!(received(&mut client, at(1), wrong).is_empty());
        assert_eq!(sent(&mut client, at(1)), [reply.to_vec()]);
    }
    assert_eq!(client.counters().unmatched, 4);
    assert_eq!(received(&mut client, at(2), b"\x61\x45\x00\x00\x00\xffA").len(), 1);
}

/// Section 5.4.1: unknown critical options; section 4.2: malformed messages.
#[test]
fn what_is_not_understood_is_refused() {
    let mut server = plain(Config::default());
    let cases: [(&[u8], &[u8]); 8] = [
        // Option 9 is critical; Confirmable, Non-confirmable.
        (b"\x40\x01\x00\x01\x90", b"\x60\x82\x00\x01\xffunsupported option 9"),
        (b"\x50\x01\x00\x02\x90", b"\x70\x00\x00\x02"),
        // Accept twice, Uri-Port with 3 octets.
        (b"\x40\x01\x00\x03\xd0\x04\x00", b"\x60\x82\x00\x03\xffunsupported option 17"),
        (b"\x40\x01\x00\x04\x73abc", b"\x60\x82\x00\x04\xffunsupported option 7"),
        // Proxy-Uri.
        (b"\x40\x01\x00\x05\xd1\x16a", b"\x60\xa5\x00\x05"),
        // Malformed: Confirmable, Non-confirmable. A reserved class.
        (b"\x40\x01\x00\x06\xff", b"\x70\x00\x00\x06"),
        (b"\x50\x01\x00\x07\xff", b""),
        (b"\x40\x21\x00\x08", b"\x70\x00\x00\x08"),
    ];
    for (datagram, reply) in cases {
        assert!(received(&mut server, at(0), datagram).is_empty());
        let expected: Vec<_> = [reply.to_vec()].into_iter().filter(|reply| !reply.is_empty()).collect();
        assert_eq!(sent(&mut server, at(0)), expected, "{datagram:?}");
    }
    // An elective option with a wrong length (Content-Format of 3 octets) is ignored.
    assert_eq!(received(&mut server, at(0), b"\x40\x01\x00\x09\xc3abc").len(), 1);
}

/// A request that is dismissed releases its room.
#[test]
fn a_request_that_is_dismissed_needs_no_room() {
    let mut server =
        plain(Config { limits: Limits { max_requests: 1, ..Limits::default() }, ..Config::default() });
    for message_id in 0..3 {
        let events = received(&mut server, at(0), &[0x40, 1, 0, message_id]);
        let [Event::Request { id, .. }] = &events[..] else { panic!("{events:?}") };
        server.dismiss(*id);
        assert_eq!(server.respond(at(0), *id, &Response::content(b"")), Err(RespondError::Gone));
        assert_eq!(sent(&mut server, at(0)), [[0x60, 0, 0, message_id]]);
        assert_eq!(server.poll_timeout(), None);
    }
}

/// Section 5.4.1: a response with an unknown critical option is rejected, whatever its type.
#[test]
fn a_response_with_an_unknown_critical_option_is_rejected() {
    for (response, reply) in [
        (&b"\x61\x45\x00\x00\x00\x90\xffA"[..], None),
        (b"\x41\x45\x12\x34\x00\x90\xffA", Some(b"\x70\x00\x12\x34".to_vec())),
        (b"\x51\x45\x12\x34\x00\x90\xffA", Some(b"\x70\x00\x12\x34".to_vec())),
    ] {
        let mut client = plain(Config::default());
        let call = request(&mut client, "/");
        sent(&mut client, at(0));
        let events = received(&mut client, at(10), response);
        assert_eq!(events, [Event::Failed { call, error: CallError::BadOption { number: 9 } }]);
        assert_eq!(sent(&mut client, at(10)), reply.iter().cloned().collect::<Vec<_>>());
        assert_eq!(client.poll_timeout(), None);
        // A duplicate is rejected again if it is Confirmable.
        received(&mut client, at(20), response);
        let again = reply.filter(|_| response[0] == 0x41);
        assert_eq!(sent(&mut client, at(20)), again.into_iter().collect::<Vec<_>>());
    }
}

/// RFC 8132: requests for one resource with different bodies: each has its own response, block by block.
#[test]
fn fetches_of_different_parts_at_the_same_time_are_distinguished() {
    let mut config = Config {
        policy: Policy { block_size: BlockSize::at_most(64), ..Policy::default() },
        ..Config::default()
    };
    config.timing.transmission.nstart = 4;
    let mut pair = EndpointPair::new(config, config);
    let calls =
        [b'a', b'b', b'c'].map(|part| (part, pair.request(&Request::fetch("/parts", [part; 100].to_vec()))));
    let events = pair.run(&mut |server, now, event| {
        let Event::Request { id, message, .. } = event else { panic!("{event:?}") };
        assert_eq!(message.code, code::FETCH);
        server.respond(now, id, &Response::content(message.payload.repeat(3))).unwrap();
    });
    for (part, call) in calls {
        let response = events.iter().find_map(|event| match event {
            Event::Response { call: other, message } if *other == call => Some(message.payload.to_vec()),
            _ => None,
        });
        assert_eq!(response, Some([part; 300].to_vec()));
    }
}

/// Section 5.3.2: the Message ID of one request and the Token of another.
#[test]
fn a_token_of_another_request_does_not_match() {
    let mut config = Config::default();
    config.timing.transmission.nstart = 2;
    let mut client = plain(config);
    let calls = [request(&mut client, "/a"), request(&mut client, "/b")];
    sent(&mut client, at(0));
    for crossed in [b"\x61\x45\x00\x00\x01\xffB", b"\x61\x45\x00\x01\x00\xffA"] {
        assert!(received(&mut client, at(1), crossed).is_empty());
    }
    for (i, call) in calls.into_iter().enumerate() {
        let events = received(&mut client, at(2), &[0x61, 0x45, 0, i as u8, i as u8, 0xFF, b'x']);
        assert!(matches!(&events[..], [Event::Response { call: other, .. }] if *other == call), "{events:?}");
    }
}
