//! Observe: the examples of RFC 7641, and its rules.

use crate::config::{Limits, Policy};
use core::time::Duration;
use std::vec::Vec;

use thinair_wire::time::Instant;

use super::support::*;
use crate::*;

/// A server that accepts and stores every observer.
struct Thermometer {
    observers: Vec<ObserverId>,
    gone: Vec<Gone>,
    celsius: &'static str,
}

impl Thermometer {
    fn new() -> Self {
        Self { observers: Vec::new(), gone: Vec::new(), celsius: "18.5 Cel" }
    }

    fn handle(&mut self, server: &mut Endpoint<u8>, now: Instant, event: Event<'static, u8>) {
        match event {
            Event::Request { id, .. } => {
                self.observers.extend(server.accept(now, id));
                let response = Response::content(self.celsius.as_bytes()).max_age(15);
                server.respond(now, id, &response).unwrap();
            }
            Event::ObserverGone { reason, .. } => self.gone.push(reason),
            other => panic!("{other:?}"),
        }
    }
}

fn states(events: &[Event<'static, u8>]) -> Vec<std::string::String> {
    events
        .iter()
        .map(|event| match event {
            Event::Notification { message, .. } => {
                std::string::String::from_utf8(message.payload.to_vec()).unwrap()
            }
            other => std::format!("{other:?}"),
        })
        .collect()
}

/// RFC 7641, figure 2: registration and two notifications.
#[test]
fn figure_2_observing_a_resource() {
    let mut pair = EndpointPair::new(Config::default(), Config::default());
    let mut app = Thermometer::new();
    pair.request(&Request::get("/temperature").observe());
    let mut events = pair.run(&mut |server, now, event| app.handle(server, now, event));
    for (state, confirmable) in [("19.2 Cel", false), ("19.7 Cel", true)] {
        let now = at(pair.millis);
        pair.server.notify(now, app.observers[0], &Response::content(state.as_bytes()), confirmable).unwrap();
        events.extend(pair.run(&mut |server, now, event| app.handle(server, now, event)));
    }
    assert_eq!(states(&events), ["18.5 Cel", "19.2 Cel", "19.7 Cel"]);
    assert_eq!(
        pair.log,
        [
            "> CON GET /temperature Observe:0",
            "< ACK 2.05 Observe:1",
            "< NON 2.05 Observe:2",
            "< CON 2.05 Observe:3",
            "> ACK",
        ]
    );
}

/// RFC 7641, section 3.4: a notification that was overtaken is dropped.
#[test]
fn notifications_that_were_overtaken_are_dropped() {
    let mut client = plain(Config::default());
    client.request(at(0), PEER, &Request::get("/").observe()).unwrap();
    sent(&mut client, at(0));
    let mut delivered = Vec::new();
    let mut notify = |millis: u64, id: u8, observe: u32| {
        let message_type = if id == 0 { 0x61 } else { 0x51 };
        let observe = observe.to_be_bytes();
        let datagram = [&[message_type, 0x45, 0, id, 0, 0x63], &observe[1..], &[0xFF, id]].concat();
        let events = received(&mut client, at(millis), &datagram);
        delivered.extend(events.iter().map(|event| match event {
            Event::Notification { message, .. } => message.payload[0],
            other => panic!("{other:?}"),
        }));
    };
    notify(0, 0, 10);
    notify(10, 1, 12);
    notify(20, 2, 11);
    notify(30, 3, 12);
    notify(40, 4, 1 << 22);
    // More than half of the range ahead counts as older.
    notify(50, 5, (1 << 22) + (1 << 23) + 1);
    // 24 bits wrap.
    notify(60, 6, 0xC0_0000 - 1);
    notify(70, 7, 5);
    // After 128 s every value is new.
    notify(128_070, 8, 4);
    notify(128_071, 9, 4);
    assert_eq!(delivered, [0, 1, 4, 6, 7, 9]);
}

/// Section 3.3.1: without a notification within Max-Age and some seconds, the client registers again.
#[test]
fn a_client_registers_again_when_the_representation_is_too_old() {
    let mut pair = EndpointPair::new(rfc7252(), rfc7252());
    let mut app = Thermometer::new();
    let call = pair.request(&Request::get("/temperature").observe());
    pair.run(&mut |server, now, event| app.handle(server, now, event));
    // Max-Age of 15 s, and 5 s.
    let now = pair.client.poll_timeout().unwrap();
    assert_eq!(now, at(20_000));
    pair.millis = 20_000;
    pair.client.handle_timeout(now);
    let events = pair.run(&mut |server, now, event| app.handle(server, now, event));
    assert!(matches!(events[..], [Event::Notification { call: other, .. }] if other == call), "{events:?}");
    // The entry is unchanged.
    assert_eq!((app.observers[0], app.observers.len(), pair.server.observers()), (app.observers[1], 2, 1));
    // The server no longer answers.
    while let Some(now) = pair.client.poll_timeout() {
        pair.client.handle_timeout(now);
        sent(&mut pair.client, now);
    }
    assert_eq!(
        pair.client.poll_event(),
        Some(Event::Failed { call, error: CallError::Timeout { transmissions: 5 } })
    );
}

/// Section 3.6: by Observe 1, and by a Reset of the next notification, Confirmable or not.
#[test]
fn observations_end() {
    for confirmable in [None, Some(false), Some(true)] {
        let mut pair = EndpointPair::new(Config::default(), Config::default());
        let mut app = Thermometer::new();
        let call = pair.request(&Request::get("/temperature").observe());
        pair.run(&mut |server, now, event| app.handle(server, now, event));
        let now = at(pair.millis);
        match confirmable {
            None => {
                assert!(pair.client.deregister(now, call));
                let events = pair.run(&mut |server, now, event| app.handle(server, now, event));
                assert!(matches!(events[..], [Event::Response { .. }]), "{events:?}");
                assert_eq!(pair.log[2..], ["> CON GET /temperature Observe:1", "< ACK 2.05"]);
                assert_eq!(app.gone, [Gone::Deregistered]);
            }
            Some(confirmable) => {
                pair.client.cancel(now, call);
                pair.server.notify(now, app.observers[0], &Response::content(b"20"), confirmable).unwrap();
                let events = pair.run(&mut |server, now, event| app.handle(server, now, event));
                assert_eq!(events, [Event::Failed { call, error: CallError::Cancelled }]);
                assert_eq!(app.gone, [Gone::Reset]);
                assert_eq!(pair.log[3], "> RST");
            }
        }
        assert_eq!(pair.server.observers(), 0);
        let again = pair.server.notify(at(99), app.observers[0], &Response::content(b"21"), false);
        assert_eq!(again, Err(RespondError::Gone));
    }
}

/// Section 4.2: an error ends the observation; section 4.5: a client that does not acknowledge is removed.
#[test]
fn errors_and_silence_end_observations() {
    let mut pair = EndpointPair::new(rfc7252(), rfc7252());
    let mut app = Thermometer::new();
    let call = pair.request(&Request::get("/temperature").observe());
    pair.run(&mut |server, now, event| app.handle(server, now, event));
    let gone = Response::new(code::NOT_FOUND);
    pair.server.notify(at(pair.millis), app.observers[0], &gone, true).unwrap();
    let events = pair.run(&mut |server, now, event| app.handle(server, now, event));
    assert!(matches!(events[..], [Event::Response { call: other, .. }] if other == call));
    assert_eq!(pair.log[2..], ["< CON 4.04", "> ACK"]);
    assert_eq!(pair.client.poll_timeout(), None);

    pair.request(&Request::get("/temperature").observe());
    pair.run(&mut |server, now, event| app.handle(server, now, event));
    pair.server.notify(at(pair.millis), app.observers[1], &Response::content(b"1"), true).unwrap();
    let mut newest = Vec::new();
    while let Some(now) = pair.server.poll_timeout() {
        newest.extend(sent(&mut pair.server, now));
        // Section 4.5.2: a retransmission has the newest state.
        let state = std::format!("{}", now.as_nanos() / 1_000_000_000);
        pair.server.notify(now, app.observers[1], &Response::content(state.as_bytes()), false).unwrap();
        pair.server.handle_timeout(now);
    }
    let payloads: Vec<_> =
        newest.iter().map(|datagram| Message::read(datagram).unwrap().payload.to_vec()).collect();
    assert_eq!(payloads, [&b"1"[..], b"2", b"6", b"14", b"30"]);
    let expected = Gone::Timeout { transmissions: 5 };
    let events: Vec<_> = core::iter::from_fn(|| pair.server.poll_event()).collect();
    assert!(
        matches!(events[..], [.., Event::ObserverGone { reason, .. }] if reason == expected),
        "{events:?}"
    );
}

/// Section 4.5: "at least every 24 hours".
#[test]
fn at_least_once_a_day_a_notification_is_confirmable() {
    let mut pair = EndpointPair::new(Config::default(), Config::default());
    let mut app = Thermometer::new();
    pair.request(&Request::get("/temperature").observe());
    pair.run(&mut |server, now, event| app.handle(server, now, event));
    let day = Duration::from_secs(86_400).as_millis() as u64;
    for millis in [day - 10, day + 10, day + 3_000] {
        pair.millis = millis;
        pair.server.notify(at(millis), app.observers[0], &Response::content(b"1"), false).unwrap();
        pair.run(&mut |server, now, event| app.handle(server, now, event));
    }
    assert_eq!(
        pair.log[2..],
        ["< NON 2.05 Observe:2", "< CON 2.05 Observe:3", "> ACK", "< NON 2.05 Observe:4"]
    );
}

/// RFC 7959, section 2.6 and figure 12: the first block is the notification, the client asks for the others.
#[test]
fn a_notification_in_blocks() {
    let config = Config {
        policy: Policy { block_size: BlockSize::at_most(64), ..Policy::default() },
        ..Config::default()
    };
    let mut pair = EndpointPair::new(Config::default(), config);
    let mut app = Thermometer::new();
    app.celsius = "0123456789012345678901234567890123456789012345678901234567890123456789";
    pair.request(&Request::get("/status").observe());
    let mut events = pair.run(&mut |server, now, event| app.handle(server, now, event));
    let next = "9".repeat(130);
    pair.server.notify(at(pair.millis), app.observers[0], &Response::content(next.as_bytes()), true).unwrap();
    events.extend(pair.run(&mut |server, now, event| app.handle(server, now, event)));
    let events: Vec<_> =
        events.iter().filter(|event| !matches!(event, Event::Progress { .. })).cloned().collect();
    assert_eq!(states(&events), [app.celsius, &next]);
    assert_eq!(
        pair.log,
        [
            "> CON GET /status Observe:0",
            "< ACK 2.05 Observe:1 2:0/1/64",
            "> CON GET /status 2:1/0/64",
            "< ACK 2.05 2:1/0/64",
            "< CON 2.05 Observe:2 2:0/1/64",
            "> ACK",
            "> CON GET /status 2:1/0/64",
            "< ACK 2.05 2:1/1/64",
            "> CON GET /status 2:2/0/64",
            "< ACK 2.05 2:2/0/64",
        ]
    );
}

#[test]
fn the_list_of_observers_is_bounded() {
    let mut pair = EndpointPair::new(
        Config::default(),
        Config { limits: Limits { max_observers: 1, ..Limits::default() }, ..Config::default() },
    );
    let mut app = Thermometer::new();
    for _ in 0..2 {
        pair.request(&Request::get("/temperature").observe());
    }
    let events = pair.run(&mut |server, now, event| app.handle(server, now, event));
    assert!(matches!(events[..], [Event::Notification { .. }, Event::Response { .. }]), "{events:?}");
    assert_eq!(pair.server.observers(), 1);
}

#[test]
fn one_client_does_not_take_the_whole_list_of_observers() {
    let limits = Limits { max_observers: 3, max_observers_of_peer: 2, ..Limits::default() };
    let mut server = plain(Config { limits, ..Config::default() });
    let mut register = |peer: u8, token: u8| {
        // CON GET with a token of an octet, and Observe 0.
        let datagram = [0x41, 1, 0x70, token, token, 0x60];
        let event = server.handle_datagram(at(1), peer, &datagram);
        let Some(Event::Request { id, .. }) = event else { panic!("{event:?}") };
        let is_accepted = server.accept(at(1), id).is_some();
        server.respond(at(1), id, &Response::content(b"18")).unwrap();
        is_accepted
    };
    assert_eq!([1, 2, 3].map(|token| register(1, token)), [true, true, false]);
    assert!(register(2, 1), "another client");
}

/// Section 4.2: "The Content-Format specified in a 2.xx notification MUST be the same"; otherwise 4.06, and the end.
#[test]
fn another_content_format_ends_an_observation() {
    let mut pair = EndpointPair::new(Config::default(), Config::default());
    let mut app = Thermometer::new();
    let call = pair.request(&Request::get("/temperature").observe());
    pair.run(&mut |server, now, event| app.handle(server, now, event));
    // 2.03 has no Content-Format.
    pair.server.notify(at(pair.millis), app.observers[0], &Response::valid(b"1"), true).unwrap();
    pair.run(&mut |server, now, event| app.handle(server, now, event));
    pair.server.notify(at(pair.millis), app.observers[0], &Response::content(b"1").format(60), true).unwrap();
    let events = pair.run(&mut |server, now, event| app.handle(server, now, event));
    assert!(
        matches!(&events[..], [Event::Response { call: other, message }]
        if *other == call && message.code == code::NOT_ACCEPTABLE),
        "{events:?}"
    );
    assert_eq!((pair.server.observers(), pair.log[2].as_str()), (0, "< CON 2.03 Observe:2"));
}

/// A server that was restarted begins a new sequence: its state is delivered all the same.
#[test]
fn a_client_registers_with_a_server_that_was_started_again() {
    let mut pair = EndpointPair::new(rfc7252(), rfc7252());
    let mut app = Thermometer::new();
    let call = pair.request(&Request::get("/temperature").observe());
    pair.run(&mut |server, now, event| app.handle(server, now, event));
    for _ in 0..5 {
        pair.server
            .notify(at(pair.millis), app.observers[0], &Response::content(b"1").max_age(15), true)
            .unwrap();
        pair.run(&mut |server, now, event| app.handle(server, now, event));
    }
    pair.server = plain(Config::default());
    let now = pair.client.poll_timeout().unwrap();
    pair.millis = now.as_nanos() / 1_000_000;
    pair.client.handle_timeout(now);
    let events = pair.run(&mut |server, now, event| app.handle(server, now, event));
    assert!(matches!(events[..], [Event::Notification { call: other, .. }] if other == call), "{events:?}");
}

/// A stale answer leaves the call with a deadline.
#[test]
fn an_answer_that_does_not_count_leaves_a_deadline() {
    let mut client = plain(Config::default());
    let call = client.request(at(0), PEER, &Request::get("/").observe()).unwrap();
    sent(&mut client, at(0));
    received(&mut client, at(1), b"\x61\x45\x00\x00\x00\x61\x05\xffA");
    assert!(client.deregister(at(2), call));
    sent(&mut client, at(2));
    // The server continues unaware.
    assert!(received(&mut client, at(3), b"\x61\x45\x00\x01\x00\x61\x06\xffA").is_empty());
    let end = client.poll_timeout().unwrap();
    client.handle_timeout(end);
    assert_eq!(client.poll_event(), Some(Event::Failed { call, error: CallError::NoResponse }));
}

/// Section 4.2: an error that goes out instead of a retransmission (section 4.5.2) ends the observation, too.
#[test]
fn an_error_instead_of_a_retransmission_ends_an_observation() {
    for last in [Response::new(code::NOT_FOUND), Response::content(b"1").format(60)] {
        let mut pair = EndpointPair::new(rfc7252(), rfc7252());
        let mut app = Thermometer::new();
        pair.request(&Request::get("/temperature").observe());
        pair.run(&mut |server, now, event| app.handle(server, now, event));
        let now = at(pair.millis);
        pair.server.notify(now, app.observers[0], &Response::content(b"1"), true).unwrap();
        assert_eq!(sent(&mut pair.server, now).len(), 1, "lost");
        pair.server.notify(now, app.observers[0], &last, true).unwrap();
        pair.millis += 2_000;
        pair.server.handle_timeout(at(pair.millis));
        let events = pair.run(&mut |server, now, event| app.handle(server, now, event));
        assert!(matches!(events[..], [Event::Response { .. }]), "{events:?}");
        assert_eq!((pair.server.observers(), &app.gone[..]), (0, &[Gone::Error][..]));
        assert_eq!((pair.log[3].as_str(), pair.server.poll_timeout()), ("> ACK", None));
    }
}

/// Sections 3.3.2 and 4.3.2: 2.03 for a stored representation tells no Content-Format; the first 2.05 does.
#[test]
fn an_observation_with_a_stored_representation_goes_on_when_the_state_changes() {
    let mut pair = EndpointPair::new(Config::default(), Config::default());
    let mut observers = Vec::new();
    pair.request(&Request::get("/temperature").option(number::ETAG, b"1").observe());
    pair.run(&mut |server, now, event| {
        let Event::Request { id, .. } = event else { panic!("{event:?}") };
        observers.extend(server.accept(now, id));
        server.respond(now, id, &Response::valid(b"1")).unwrap();
    });
    for (format, observed) in [(60, 1), (60, 1), (0, 0)] {
        let state = Response::content(b"2").format(format);
        pair.server.notify(at(pair.millis), observers[0], &state, true).unwrap();
        pair.run(&mut |_, _, event| assert!(matches!(event, Event::ObserverGone { .. })));
        assert_eq!(pair.server.observers(), observed);
    }
    assert_eq!(
        pair.log[1..],
        [
            "< ACK 2.03 Observe:1",
            "< CON 2.05 Observe:2",
            "> ACK",
            "< CON 2.05 Observe:3",
            "> ACK",
            "< CON 4.06",
            "> ACK"
        ]
    );
}

/// A notification does not acknowledge a later message of its call: RFC 7252, section 5.2.2, is about responses.
#[test]
fn a_notification_is_not_the_answer_to_a_message_under_way() {
    for (message_type, duplicate) in [(0x51, 0), (0x41, 1)] {
        let mut client = plain(rfc7252());
        let call = client.request(at(0), PEER, &Request::get("/").observe()).unwrap();
        sent(&mut client, at(0));
        received(&mut client, at(1), b"\x61\x45\x00\x00\x00\x61\x05\xffA");
        assert!(client.deregister(at(2), call));
        let lost = sent(&mut client, at(2));
        assert!(received(&mut client, at(3), &[message_type, 0x45, 9, 9, 0, 0x61, 6, 0xFF, b'A']).is_empty());
        assert_eq!(sent(&mut client, at(3)).len(), duplicate, "acknowledgement");
        assert_eq!(client.poll_timeout(), Some(at(2_002)));
        client.handle_timeout(at(2_002));
        assert_eq!(sent(&mut client, at(2_002)), lost);
        assert_eq!(client.peer(at(2_002), &PEER).unwrap().samples, 1);
        let events = received(&mut client, at(2_003), b"\x61\x45\x00\x01\x00\xffA");
        assert!(matches!(events[..], [Event::Response { .. }]), "{events:?}");
    }
}

/// The first notification is the response to the registration, and acknowledges it. RFC 7252, section 5.2.2.
#[test]
fn a_separate_response_acknowledges_its_registration() {
    let mut client = plain(rfc7252());
    client.request(at(0), PEER, &Request::get("/").observe()).unwrap();
    sent(&mut client, at(0));
    let events = received(&mut client, at(3), b"\x41\x45\x09\x09\x00\x61\x06\xffA");
    assert!(matches!(events[..], [Event::Notification { .. }]), "{events:?}");
    assert_eq!(client.peer(at(3), &PEER).unwrap().samples, 1);
}

/// Section 4.4: "MUST be greater than any preceding" value for the same client, Token and resource.
#[test]
fn a_client_that_observes_again_sees_greater_numbers() {
    let mut server = plain(Config::default());
    let mut app = Thermometer::new();
    let mut numbers = Vec::new();
    for (id, observe) in [(1, 0), (2, 1), (3, 0), (4, 0)] {
        let request = [0x51, 1, 0, id, 0x63, 0x61, observe, 0x51, b'a'];
        for event in received(&mut server, at(id.into()), &request) {
            app.handle(&mut server, at(id.into()), event);
        }
        if id == 3 {
            server.forget_observer(app.observers[1]);
        }
        let answers = sent(&mut server, at(id.into()));
        numbers.extend(Message::read(&answers[0]).unwrap().options.uint(number::OBSERVE));
    }
    assert_eq!(numbers, [1, 2, 3]);
}
