//! Streams: RFC 8323.

use crate::config::Limits;
use core::time::Duration;
use std::string::String;
use std::vec::Vec;

use thinair_wire::time::Instant;

use super::support::*;
use crate::stream::StreamMessage;
use crate::*;

/// Two endpoints and a stream between them that delivers `step` octets at a time.
struct StreamPair {
    client: Endpoint<u8>,
    server: Endpoint<u8>,
    step: usize,
    log: Vec<String>,
    seen: Vec<Event<'static, u8>>,
}

fn events(endpoint: &mut Endpoint<u8>, now: Instant, mut octets: &[u8]) -> Vec<Event<'static, u8>> {
    let mut events = Vec::new();
    while !octets.is_empty() {
        events.extend(endpoint.handle_stream(now, PEER, &mut octets).map(Event::into_owned));
    }
    events.extend(core::iter::from_fn(|| endpoint.poll_event()));
    events
}

fn octets(endpoint: &mut Endpoint<u8>, now: Instant) -> Vec<u8> {
    sent(endpoint, now).concat()
}

fn frames(mut octets: &[u8]) -> Vec<String> {
    let mut frames = Vec::new();
    while let Some((frame, len)) = StreamMessage::read(octets).unwrap() {
        let words = if frame.code.class() == 7 {
            std::vec![std::format!("{}", frame.code)]
        } else {
            described_body(frame.code, &frame.options)
        };
        frames.push(words.join(" "));
        octets = &octets[len..];
    }
    frames
}

impl StreamPair {
    fn new(client: Config, server: Config, step: usize) -> Self {
        let (mut client, mut server) = (plain(client), plain(server));
        assert!(client.connected(at(0), PEER) && server.connected(at(0), PEER));
        Self { client, server, step, log: Vec::new(), seen: Vec::new() }
    }

    fn run(&mut self, app: &mut dyn FnMut(&mut Endpoint<u8>, Event<'static, u8>)) {
        loop {
            let up = octets(&mut self.client, at(1));
            self.log.extend(frames(&up).into_iter().map(|frame| std::format!("> {frame}")));
            for chunk in up.chunks(self.step) {
                for event in events(&mut self.server, at(1), chunk) {
                    app(&mut self.server, event);
                }
            }
            let down = octets(&mut self.server, at(1));
            self.log.extend(frames(&down).into_iter().map(|frame| std::format!("< {frame}")));
            for chunk in down.chunks(self.step) {
                let seen = events(&mut self.client, at(1), chunk);
                self.seen.extend(seen);
            }
            if up.is_empty() && down.is_empty() {
                return;
            }
        }
    }
}

fn echo(server: &mut Endpoint<u8>, event: Event<'static, u8>) {
    if let Event::Request { id, message, .. } = event {
        server.respond(at(1), id, &Response::content(message.payload)).unwrap();
    }
}

/// RFC 8323, sections 3.3 and 5.3: each side begins with a CSM; a request need not wait for that of the other side.
#[test]
fn a_request_goes_over_a_stream_in_pieces_of_any_size() {
    for step in [1, 2, 5, 1_000] {
        let mut streams = StreamPair::new(Config::default(), Config::default(), step);
        let call = streams.client.request(at(0), PEER, &Request::post("/a", &b"hello"[..])).unwrap();
        streams.run(&mut echo);
        assert_eq!(streams.log, ["> 7.01", "> POST /a", "< 7.01", "< 2.05"]);
        let [Event::StreamReady { block_wise: true, .. }, Event::Response { call: answered, message }] =
            &streams.seen[..]
        else {
            panic!("{:?}", streams.seen)
        };
        assert_eq!((*answered, &*message.payload), (call, &b"hello"[..]));
        assert_eq!(streams.client.poll_timeout(), None);
    }
}

/// Sections 5.3.1 and 6: bodies above Max-Message-Size use BERT.
#[test]
fn large_bodies_go_by_bert() {
    let body: Vec<u8> = (0..1 << 20).map(|i: u32| (i * 7 + i / 256) as u8).collect();
    let mut streams = StreamPair::new(Config::default(), Config::default(), 1_400);
    streams.client.request(at(0), PEER, &Request::post("/a", &body[..])).unwrap();
    streams.run(&mut echo);
    assert!(matches!(streams.seen.last(), Some(Event::Response { message, .. }) if *message.payload == body));
    // 64 blocks a message, and one more message.
    assert_eq!(streams.log.iter().filter(|line| line.starts_with("> POST")).count(), 2 * 16 - 1);

    // With a small Max-Message-Size on one side, that side receives blocks of 1,024.
    let small =
        Config { limits: Limits { max_stream_message: 1_152, ..Limits::default() }, ..Config::default() };
    let mut streams = StreamPair::new(Config::default(), small, 1_400);
    streams.client.request(at(0), PEER, &Request::post("/a", &body[..5_000])).unwrap();
    streams.run(&mut echo);
    assert!(
        matches!(streams.seen.last(), Some(Event::Response { message, .. }) if *message.payload == body[..5_000])
    );
    assert_eq!(streams.log[2..5], ["> POST /a 1:0/1/1024", "< 2.31 1:0/1/1024", "> POST /a 1:1/1/1024"]);
}

/// Sections 5.4 to 5.6: Ping, Pong, Release, Abort.
#[test]
fn signals_are_answered_and_reported() {
    let mut streams = StreamPair::new(Config::default(), Config::default(), 100);
    streams.run(&mut echo);
    assert!(streams.client.ping(at(1), PEER));
    streams.run(&mut echo);
    assert_eq!(streams.seen[1..], [Event::Pong { peer: PEER, after: Duration::ZERO }]);
    assert!(streams.client.ping(at(1), PEER));
    let deadline = streams.client.poll_timeout().unwrap();
    streams.client.handle_timeout(deadline);
    assert_eq!(streams.client.poll_event(), Some(Event::PingFailed { peer: PEER }));
    assert!(streams.server.release(at(1), PEER));
    streams.seen.clear();
    streams.run(&mut echo);
    assert_eq!(streams.seen, [Event::Released { peer: PEER }]);
    let refused = streams.client.request(at(1), PEER, &Request::get("/"));
    assert_eq!(refused, Err(RequestError::Closed));
    assert_eq!(
        events(&mut streams.client, at(2), b"\x00\xe5"),
        [Event::Closed { peer: PEER, reason: Closing::Aborted }]
    );
}

#[test]
fn broken_streams_are_aborted() {
    let csm = b"\x00\xe1";
    let cases: [(&[u8], StreamError); 6] = [
        (b"\x00\x01", StreamError::NoCsm),
        (b"\x09", StreamError::Token),
        (b"\xf0\x00\x02\x00\x00\x01", StreamError::TooLarge { length: 65_805 + 131_072 + 6, limit: 66_560 }),
        (b"\x00\xe1\x10\x01\xff", StreamError::Format),
        (b"\x10\xe1\x10", StreamError::BadOption { number: 1 }),
        (b"\x00\xe1\x10\xe2\x10", StreamError::BadOption { number: 1 }),
    ];
    for (broken, error) in cases {
        let mut server = plain(Config::default());
        server.connected(at(0), PEER);
        octets(&mut server, at(0));
        let seen = events(&mut server, at(0), broken);
        assert_eq!(
            seen.last(),
            Some(&Event::Closed { peer: PEER, reason: Closing::Broken(error) }),
            "{broken:?}"
        );
        assert_eq!(frames(&octets(&mut server, at(0))), ["7.05"]);
        // The stream is dropped.
        assert!(events(&mut server, at(0), csm).is_empty());
        assert!(octets(&mut server, at(0)).is_empty());
    }
}

#[test]
fn requests_fail_and_observers_go_with_their_stream() {
    let mut streams = StreamPair::new(Config::default(), Config::default(), 100);
    let call = streams.client.request(at(1), PEER, &Request::get("/t").observe()).unwrap();
    let mut observer = None;
    let mut app = |server: &mut Endpoint<u8>, event: Event<'static, u8>| {
        if let Event::Request { id, .. } = event {
            observer = server.accept(at(1), id);
            server.respond(at(1), id, &Response::content(b"1")).unwrap();
        }
    };
    streams.run(&mut app);
    let observer = observer.unwrap();
    streams.server.notify(at(2), observer, &Response::content(b"2"), true).unwrap();
    streams.seen.clear();
    streams.run(&mut echo);
    assert!(matches!(&streams.seen[..], [Event::Notification { message, .. }] if *message.payload == *b"2"));
    streams.client.disconnected(at(3), PEER);
    streams.server.disconnected(at(3), PEER);
    let closed = Event::Closed { peer: PEER, reason: Closing::Disconnected };
    let seen: Vec<_> = core::iter::from_fn(|| streams.client.poll_event()).collect();
    assert_eq!(seen, [Event::Failed { call, error: CallError::Closed }, closed.clone()]);
    let seen: Vec<_> = core::iter::from_fn(|| streams.server.poll_event()).collect();
    assert_eq!(seen, [Event::ObserverGone { observer, reason: Gone::Closed }, closed]);
    assert_eq!((streams.client.poll_timeout(), streams.server.poll_timeout()), (None, None));
}

/// The other side sends requests and does not read: waiting octets are bounded.
#[test]
fn a_peer_that_does_not_read_is_cut_off() {
    let mut server = plain(Config::default());
    server.connected(at(0), PEER);
    // Max-Message-Size is 66,560.
    let mut seen = events(&mut server, at(0), b"\x40\xe1\x23\x01\x04\x00");
    for _ in 0..20 {
        for event in events(&mut server, at(0), b"\x00\x01") {
            if let Event::Request { id, .. } = event {
                let _ = server.respond(at(0), id, &Response::content(&[0; 60_000][..]));
            }
            seen.extend(core::iter::from_fn(|| server.poll_event()));
        }
    }
    let closed = Closing::Broken(StreamError::Backlog);
    assert_eq!(seen.last(), Some(&Event::Closed { peer: PEER, reason: closed }));
    server.disconnected(at(0), PEER);
    assert!(octets(&mut server, at(0)).is_empty());
}

/// RFC 8323, section 7.1: the value of Observe is ignored over a stream.
#[test]
fn notifications_over_a_stream_are_in_order_whatever_their_sequence() {
    let mut client = plain(Config::default());
    client.connected(at(0), PEER);
    client.request(at(0), PEER, &Request::get("/t").observe()).unwrap();
    octets(&mut client, at(0));
    let seen = events(&mut client, at(1), b"\x00\xe1\x31\x45\x00\x60\xffa\x31\x45\x00\x60\xffb");
    let [Event::StreamReady { .. }, Event::Notification { .. }, Event::Notification { message, .. }] =
        &seen[..]
    else {
        panic!("{seen:?}")
    };
    assert_eq!(*message.payload, *b"b");
}

/// A message that is too large before the CSM of the other side waits for it, but not forever.
#[test]
fn a_csm_that_does_not_come_fails_what_waits_for_it() {
    let mut client = plain(Config::default());
    client.connected(at(0), PEER);
    let call = client.request(at(0), PEER, &Request::post("/t", &[0; 5_000][..])).unwrap();
    assert_eq!(frames(&octets(&mut client, at(0))), ["7.01"]);
    let deadline = client.poll_timeout().unwrap();
    client.handle_timeout(deadline);
    assert_eq!(client.poll_event(), Some(Event::Failed { call, error: CallError::NoResponse }));
    // Without a stream, octets are dropped.
    assert!(events(&mut plain(Config::default()), at(0), b"\x00\xe1").is_empty());
}

/// Section 7.4: over a stream a client "MUST explicitly deregister".
#[test]
fn a_cancelled_observation_is_deregistered() {
    let mut streams = StreamPair::new(Config::default(), Config::default(), 100);
    let call = streams.client.request(at(0), PEER, &Request::get("/a").observe()).unwrap();
    streams.run(&mut |server, event| {
        if let Event::Request { id, .. } = event {
            server.accept(at(1), id).unwrap();
            server.respond(at(1), id, &Response::content(b"1")).unwrap();
        }
    });
    assert_eq!(streams.server.observers(), 1);
    streams.client.cancel(at(2), call);
    streams.run(&mut |server, event| {
        if let Event::Request { id, .. } = event {
            server.respond(at(2), id, &Response::content(b"1")).unwrap();
        }
    });
    assert_eq!(streams.log[streams.log.len() - 2..], ["> GET /a Observe:1", "< 2.05"]);
    assert_eq!((streams.server.observers(), streams.client.poll_timeout()), (0, None));
}

/// RFC 8323, section 5.3.2: a CSM without Block-Wise-Transfer says nothing about blocks; BERT needs the option.
#[test]
fn blocks_are_tried_where_the_csm_does_not_name_them() {
    let body = std::vec![7; 5_000];
    for (csm, largest) in [(&b"\x00\xe1"[..], 1_024), (b"\x30\xe1\x22\x20\x00", 5_000)] {
        // A client of this peer: an upload.
        let mut client = plain(Config::default());
        client.connected(at(0), PEER);
        octets(&mut client, at(0));
        events(&mut client, at(0), csm);
        let call = client.request(at(0), PEER, &Request::put("/a", &body[..])).unwrap();
        let sent = octets(&mut client, at(0));
        let (frame, _) = StreamMessage::read(&sent).unwrap().unwrap();
        assert_eq!(frame.payload.len(), largest);
        let szx = frame.options.uint(number::BLOCK1).and_then(Block::from_uint).map(|block| block.size);
        assert_eq!(szx, (largest < 5_000).then_some(BlockSize::MAX), "{call:?}");

        // Its server: a response of as many octets.
        let mut server = plain(Config::default());
        server.connected(at(0), PEER);
        octets(&mut server, at(0));
        let mut seen = events(&mut server, at(0), csm);
        seen.extend(events(&mut server, at(0), b"\x21\x01\x01\xb1a"));
        let Some(Event::Request { id, .. }) = seen.pop() else { panic!("{seen:?}") };
        server.respond(at(0), id, &Response::content(&body[..])).unwrap();
        let sent = octets(&mut server, at(0));
        let (frame, _) = StreamMessage::read(&sent).unwrap().unwrap();
        assert_eq!((frame.code, frame.payload.len()), (Code::CONTENT, largest));
    }
}
