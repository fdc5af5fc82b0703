//! Protected exchanges: requests, blocks, observations, restarts, and messages that are rejected.

use std::vec::Vec;

use thinair_wire::time::Instant;

use super::support::*;
use crate::oscore::{Context, ContextId, ContextParameters, OscoreError};
use crate::*;

const SECRET: &[u8] = b"a secret of both";

fn context(secret: &[u8], sender_id: &[u8], recipient_id: &[u8], next: u64, is_new: bool) -> Context {
    let parameters = ContextParameters {
        master_secret: secret,
        master_salt: b"",
        id_context: None,
        sender_id,
        recipient_id,
    };
    Context::new(&parameters, next, is_new, |_| Some(u64::MAX)).unwrap()
}

/// A client and a server with a context in common.
struct Protected {
    pair: EndpointPair,
    context: ContextId,
    /// Representation at the server.
    body: Vec<u8>,
    requests: Vec<(Code, bool)>,
    observers: Vec<ObserverId>,
}

impl Protected {
    fn new() -> Self {
        let mut pair = EndpointPair::new(Config::default(), Config::default());
        let id = pair.client.add_context(context(SECRET, b"c", b"s", 0, true)).unwrap();
        pair.server.add_context(context(SECRET, b"s", b"c", 0, true)).unwrap();
        Self { pair, context: id, body: b"18.5 Cel".to_vec(), requests: Vec::new(), observers: Vec::new() }
    }

    fn ask(&mut self, request: &Request<'_>) -> Vec<Event<'static, u8>> {
        let now = at(self.pair.millis);
        self.pair.client.request_protected(now, PEER, request, self.context).unwrap();
        self.run()
    }

    fn ask_plainly(&mut self, request: &Request<'_>) -> Vec<Event<'static, u8>> {
        self.pair.request(request);
        self.run()
    }

    fn run(&mut self) -> Vec<Event<'static, u8>> {
        let Self { pair, body, requests, observers, .. } = self;
        let events = pair.run(&mut |server, now, event| match event {
            Event::Request { id, message, .. } => {
                requests.push((message.code, server.context_of(id).is_some()));
                if message.code == Code::PUT {
                    *body = message.payload.to_vec();
                    return server.respond(now, id, &Response::new(Code::CHANGED)).unwrap();
                }
                observers.extend(server.accept(now, id));
                server.respond(now, id, &Response::content(&body[..])).unwrap();
            }
            Event::ObserverGone { observer, .. } => observers.retain(|other| *other != observer),
            other => panic!("{other:?}"),
        });
        events.into_iter().filter(|event| !matches!(event, Event::Progress { .. })).collect()
    }

    fn notify(&mut self, state: &str) -> Vec<Event<'static, u8>> {
        // More than the 3 s between notifications of RFC 7641, section 4.5.1.
        self.pair.millis += 4_000;
        let now = at(self.pair.millis);
        self.pair.server.handle_timeout(now);
        self.pair.client.handle_timeout(now);
        let response = Response::content(state.as_bytes());
        self.pair.server.notify(now, self.observers[0], &response, false).unwrap();
        self.run()
    }

    /// Begins the server anew: it has lost its replay windows.
    fn restart_server(&mut self) {
        self.pair.server = endpoint_with(7, Config::default());
        self.pair.server.add_context(context(SECRET, b"s", b"c", 100, false)).unwrap();
        self.observers.clear();
    }
}

fn payload<'e>(events: &'e [Event<'static, u8>]) -> &'e [u8] {
    match events {
        [Event::Response { message, .. } | Event::Notification { message, .. }] => &message.payload,
        other => panic!("{other:?}"),
    }
}

fn error(events: &[Event<'static, u8>]) -> CallError {
    match events {
        [Event::Failed { error, .. }] => *error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_and_its_response_show_neither_method_nor_path() {
    let mut ends = Protected::new();
    assert_eq!(payload(&ends.ask(&Request::get("/temperature"))), b"18.5 Cel");
    assert_eq!(ends.pair.log, ["> CON POST", "< ACK 2.04"]);
    assert_eq!(ends.requests, [(Code::GET, true)]);
    assert_eq!(payload(&ends.ask(&Request::fetch("/temperature", &b"part"[..]))), b"18.5 Cel");
    assert_eq!(ends.requests[1..], [(code::FETCH, true)]);
    // Beside it, an endpoint answers requests that are not protected.
    assert_eq!(payload(&ends.ask_plainly(&Request::get("/temperature"))), b"18.5 Cel");
    assert_eq!(ends.requests[2..], [(Code::GET, false)]);
}

/// RFC 8613, section 6.3: a request adds 13 octets and its identifier to what it protects, a response 11.
#[test]
fn a_message_has_as_few_octets_as_there_are() {
    let mut ends = Protected::new();
    let now = at(0);
    ends.pair.client.request_protected(now, PEER, &Request::get("/time"), ends.context).unwrap();
    let request = sent(&mut ends.pair.client, now).remove(0);
    // Header and Token; option, flags, Partial IV and kid; marker; code, path, tag.
    assert_eq!(request.len(), 5 + 4 + 1 + (1 + 5 + 8));
    let Some(Event::Request { id, .. }) = ends.pair.server.handle_datagram(now, PEER, &request).map(owned)
    else {
        panic!()
    };
    ends.pair.server.respond(now, id, &Response::content(b"12:00")).unwrap();
    // Header and Token; option; marker; code, marker, payload, tag.
    assert_eq!(sent(&mut ends.pair.server, now)[0].len(), 5 + 1 + 1 + (1 + 1 + 5 + 8));
}

#[test]
fn blocks_are_within_and_every_one_is_protected() {
    for len in [3_000, 100_000] {
        let mut ends = Protected::new();
        let body: Vec<u8> = (0..len).map(|number| (number % 251) as u8).collect();
        assert!(
            matches!(&ends.ask(&Request::put("/store", &body[..]))[..], [Event::Response { message, .. }] if message.is_success())
        );
        assert_eq!(ends.body, body);
        assert_eq!(payload(&ends.ask(&Request::get("/store"))), body);
        assert_eq!(ends.requests, [(Code::PUT, true), (Code::GET, true)]);
        assert!(ends.pair.log.iter().all(|line| ["> CON POST", "< ACK 2.04"].contains(&&line[..])));
    }
}

#[test]
fn a_stored_body_is_not_sent_without_protection() {
    let mut ends = Protected::new();
    ends.body = std::vec![7; 3_000];
    let request = Request::get("/store");
    ends.pair.client.request_protected(at(0), PEER, &request, ends.context).unwrap();
    let first = sent(&mut ends.pair.client, at(0)).remove(0);
    let Some(Event::Request { id, .. }) = ends.pair.server.handle_datagram(at(0), PEER, &first).map(owned)
    else {
        panic!()
    };
    ends.pair.server.respond(at(0), id, &Response::content(ends.body.clone())).unwrap();
    sent(&mut ends.pair.server, at(0));
    assert!(ends.pair.server.held_octets() > 0);
    // A request for it from this address without protection is the application's to answer.
    let mut datagram = [0; 64];
    let mut builder = Builder::new(&mut datagram, Type::Confirmable, Code::GET, 99, &Token::EMPTY).unwrap();
    builder.option(number::URI_PATH, b"store").unwrap();
    builder.uint(number::BLOCK2, Block { num: 1, more: false, size: BlockSize::MAX }.to_uint()).unwrap();
    let len = builder.finish();
    let event = ends.pair.server.handle_datagram(at(1), PEER, &datagram[..len]).map(owned);
    let Some(Event::Request { id, .. }) = event else { panic!("{event:?}") };
    assert_eq!(ends.pair.server.context_of(id), None);
}

#[test]
fn notifications_are_ordered_by_their_partial_ivs() {
    let mut ends = Protected::new();
    assert_eq!(payload(&ends.ask(&Request::get("/temperature").observe())), b"18.5 Cel");
    assert_eq!(payload(&ends.notify("19.2 Cel")), b"19.2 Cel");
    assert_eq!(payload(&ends.notify("19.7 Cel")), b"19.7 Cel");
    assert_eq!(
        ends.pair.log,
        ["> CON FETCH Observe:0", "< ACK 2.05 Observe:1", "< NON 2.05 Observe:2", "< NON 2.05 Observe:3"]
    );
    // A notification that is overtaken by a later one is dropped, also after 128 s.
    let now = at(ends.pair.millis + 4_000);
    ends.pair.server.notify(now, ends.observers[0], &Response::content(b"20.1 Cel"), false).unwrap();
    let late = sent(&mut ends.pair.server, now).remove(0);
    ends.pair.millis += 8_000;
    assert_eq!(payload(&ends.notify("20.5 Cel")), b"20.5 Cel");
    assert_eq!(received(&mut ends.pair.client, at(ends.pair.millis + 200_000), &late), []);
}

#[test]
fn an_observation_ends_only_by_what_is_protected() {
    let mut ends = Protected::new();
    ends.ask(&Request::get("/temperature").observe());
    let now = at(1_000);
    let registered = Message::read(b"\x41\x01\x00\x63\x00\x60").unwrap();
    // An unprotected Observe 1, and an unprotected Observe 0, with the Token of the registration.
    for value in [&[1][..], &[]] {
        let mut datagram = [0; 64];
        let mut builder = Builder::new(
            &mut datagram,
            Type::NonConfirmable,
            Code::GET,
            900 + value.len() as u16,
            &registered.token,
        )
        .unwrap();
        builder.option(number::OBSERVE, value).unwrap();
        builder.option(number::URI_PATH, b"temperature").unwrap();
        let len = builder.finish();
        let event = ends.pair.server.handle_datagram(now, PEER, &datagram[..len]).map(owned);
        let Some(Event::Request { id, .. }) = event else { panic!("{event:?}") };
        assert_eq!(ends.pair.server.accept(now, id), None);
        ends.pair.server.dismiss(id);
    }
    assert_eq!(ends.pair.server.observers(), 1);
    // An unprotected error with the Token does not end it for the client.
    let forged = b"\x51\x84\xab\xcd\x00";
    assert_eq!(received(&mut ends.pair.client, now, forged), []);
    assert_eq!(payload(&ends.notify("19.2 Cel")), b"19.2 Cel");
}

#[test]
fn a_server_that_has_restarted_asks_for_a_fresh_request() {
    let mut ends = Protected::new();
    ends.ask(&Request::get("/temperature"));
    let repeated = {
        let call = ends
            .pair
            .client
            .request_protected(at(9), PEER, &Request::put("/store", &b"x"[..]), ends.context)
            .unwrap();
        let sent = sent(&mut ends.pair.client, at(9)).remove(0);
        ends.pair.client.cancel(at(9), call);
        ends.pair.client.poll_event();
        sent
    };
    ends.restart_server();
    ends.pair.log.clear();
    ends.requests.clear();
    assert_eq!(payload(&ends.ask(&Request::get("/temperature"))), b"18.5 Cel");
    assert_eq!(ends.pair.log, ["> CON POST", "< ACK 2.04", "> CON POST", "< ACK 2.04"]);
    assert_eq!(ends.requests, [(Code::GET, true)]);
    // Earlier requests are repetitions now.
    assert_eq!(received(&mut ends.pair.server, at(20), &repeated), []);
    let answer = sent(&mut ends.pair.server, at(20)).remove(0);
    assert_eq!(Message::read(&answer).unwrap().payload, b"Replay detected");
    assert_eq!(ends.pair.server.counters().unverified, 1);
}

#[test]
fn a_large_body_is_sent_to_a_server_that_has_restarted() {
    let mut ends = Protected::new();
    ends.restart_server();
    let body = [7; 3_000];
    ends.ask(&Request::put("/store", &body[..]));
    assert_eq!(ends.body, body);
}

#[test]
fn an_exchange_with_other_keys_delivers_nothing() {
    let mut ends = Protected::new();
    ends.pair.client.remove_context(ends.context);
    ends.context = ends.pair.client.add_context(context(b"some other secret", b"c", b"s", 0, true)).unwrap();
    assert_eq!(error(&ends.ask(&Request::get("/"))), CallError::NotProtected { code: code::BAD_REQUEST });
    ends.pair.client.remove_context(ends.context);
    ends.context = ends.pair.client.add_context(context(SECRET, b"x", b"s", 0, true)).unwrap();
    assert_eq!(error(&ends.ask(&Request::get("/"))), CallError::NotProtected { code: code::UNAUTHORIZED });
    // An endpoint without contexts does not know the option.
    ends.pair.server = plain(Config::default());
    assert_eq!(error(&ends.ask(&Request::get("/"))), CallError::NotProtected { code: code::BAD_OPTION });
    assert_eq!(ends.requests, []);
}

#[test]
fn a_response_that_is_changed_or_not_protected_is_not_delivered() {
    let mut ends = Protected::new();
    let answer = |ends: &mut Protected, now: Instant| {
        ends.pair.client.request_protected(now, PEER, &Request::get("/"), ends.context).unwrap();
        let request = sent(&mut ends.pair.client, now).remove(0);
        let event = ends.pair.server.handle_datagram(now, PEER, &request).map(owned);
        let Some(Event::Request { id, .. }) = event else { panic!("{event:?}") };
        ends.pair.server.respond(now, id, &Response::content(b"12:00")).unwrap();
        sent(&mut ends.pair.server, now).remove(0)
    };
    let mut changed = answer(&mut ends, at(0));
    *changed.last_mut().unwrap() ^= 1;
    let events = received(&mut ends.pair.client, at(0), &changed);
    assert_eq!(error(&events), CallError::Oscore(OscoreError::Forged));
    // A success that is not protected is ignored, and the true response is still delivered.
    let sound = answer(&mut ends, at(1));
    let header = Message::read(&sound).unwrap();
    let plain = Message {
        message_type: Type::NonConfirmable,
        code: Code::CONTENT,
        message_id: 999,
        options: Options::default(),
        payload: b"forged",
        ..header.clone()
    };
    let mut datagram = [0; 64];
    let len = plain.write(&mut datagram).unwrap();
    assert_eq!(received(&mut ends.pair.client, at(1), &datagram[..len]), []);
    assert_eq!(payload(&received(&mut ends.pair.client, at(1), &sound)), b"12:00");
}

#[test]
fn a_retransmission_is_the_same_octets_and_a_duplicate_is_answered_by_them() {
    let mut ends = Protected::new();
    ends.pair.client.request_protected(at(0), PEER, &Request::get("/"), ends.context).unwrap();
    let first = sent(&mut ends.pair.client, at(0)).remove(0);
    let again_at = ends.pair.client.poll_timeout().unwrap();
    ends.pair.client.handle_timeout(again_at);
    assert_eq!(sent(&mut ends.pair.client, again_at), core::slice::from_ref(&first));
    let Some(Event::Request { id, .. }) = ends.pair.server.handle_datagram(at(1), PEER, &first).map(owned)
    else {
        panic!()
    };
    ends.pair.server.respond(at(1), id, &Response::content(b"12:00")).unwrap();
    let answer = sent(&mut ends.pair.server, at(1));
    assert_eq!(received(&mut ends.pair.server, again_at, &first), []);
    assert_eq!(sent(&mut ends.pair.server, again_at), answer);
}

#[test]
fn outer_blocks_are_rejected() {
    let mut ends = Protected::new();
    ends.pair.client.request_protected(at(0), PEER, &Request::get("/"), ends.context).unwrap();
    let request = sent(&mut ends.pair.client, at(0)).remove(0);
    let message = Message::read(&request).unwrap();
    let mut options = OptionList::copied(&message.options);
    options.push_uint(number::BLOCK1, Block { num: 0, more: true, size: BlockSize::MIN }.to_uint());
    let divided = Message { options: options.as_options(), ..message.clone() };
    let mut datagram = [0; 64];
    let len = divided.write(&mut datagram).unwrap();
    assert_eq!(received(&mut ends.pair.server, at(0), &datagram[..len]), []);
    let answer = sent(&mut ends.pair.server, at(0)).remove(0);
    assert_eq!(Message::read(&answer).unwrap().code, code::REQUEST_ENTITY_TOO_LARGE);
}

/// Over a stream messages are longer than AES-CCM allows with a nonce of 13 octets.
#[test]
fn a_large_body_over_a_stream_is_divided_so_that_it_can_be_protected() {
    let mut ends = Protected::new();
    let EndpointPair { client, server, .. } = &mut ends.pair;
    client.connected(at(0), PEER);
    server.connected(at(0), PEER);
    let body: Vec<u8> = (0..100_000).map(|number| (number % 251) as u8).collect();
    client.request_protected(at(0), PEER, &Request::put("/store", &body[..]), ends.context).unwrap();
    let (mut stored, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..1_000 {
        for octets in sent(client, at(0)) {
            let mut octets = &octets[..];
            while !octets.is_empty() {
                if let Some(Event::Request { id, message, .. }) =
                    server.handle_stream(at(0), PEER, &mut octets)
                {
                    stored = message.payload.to_vec();
                    server.respond(at(0), id, &Response::new(Code::CHANGED)).unwrap();
                }
            }
        }
        for octets in sent(server, at(0)) {
            let mut octets = &octets[..];
            while !octets.is_empty() {
                answers.extend(client.handle_stream(at(0), PEER, &mut octets).map(owned));
            }
        }
    }
    assert!(stored == body);
    assert!(
        answers.iter().any(|event| matches!(event, Event::Response { message, .. } if message.is_success()))
    );
}
