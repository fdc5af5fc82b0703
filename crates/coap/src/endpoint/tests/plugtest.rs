//! The test descriptions of the OSCORE plugtests of ETSI, against ourselves, by their numbers: 1 to 9 are requests, 10 to 15 errors.
//!
//! Not here: 0, plain CoAP, which other modules test; 16 and later, with proxies that take blocks apart, which are refused
//! (`outer_blocks_are_rejected` in `oscore.rs`). Blocks within protection, FETCH, restarts and other implementations are tested
//! there, too, and in `tests/workspace/tests/coap_oscore`.

use std::vec::Vec;

use super::support::*;
use crate::oscore::{Context, ContextId, ContextParameters};
use crate::*;

fn context(secret: &[u8], sender_id: &[u8], recipient_id: &[u8]) -> Context {
    let parameters = ContextParameters {
        master_secret: secret,
        master_salt: b"\x9E\x7C\xA9\x22\x23\x78\x63\x40",
        id_context: None,
        sender_id,
        recipient_id,
    };
    Context::new(&parameters, 0, true, |_| Some(u64::MAX)).unwrap()
}

const SECRET: &[u8] = b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A\x0B\x0C\x0D\x0E\x0F\x10";

/// Ends with these contexts.
fn ends(client: Context, server: Option<Context>) -> (EndpointPair, ContextId) {
    let server_config = Config {
        policy: Policy { recognised: &[1, 5, 11, 15, 17], ..Policy::default() },
        ..Config::default()
    };
    let mut pair = EndpointPair::new(Config::default(), server_config);
    if let Some(server) = server {
        pair.server.add_context(server).unwrap();
    }
    let context = pair.client.add_context(client).unwrap();
    (pair, context)
}

/// Sends a request to a server whose answer is `response`. Returns the request that arrived, if one did, and the client's event.
fn exchange(
    (pair, context): &mut (EndpointPair, ContextId),
    request: &Request<'_>,
    response: &Response<'_>,
) -> (Option<Received<'static>>, Event<'static, u8>) {
    pair.client.request_protected(at(pair.millis), PEER, request, *context).unwrap();
    let mut arrived = None;
    let mut events = pair.run(&mut |server, now, event| {
        let Event::Request { id, message, .. } = event else { panic!("{event:?}") };
        assert!(server.context_of(id).is_some());
        server.accept(now, id);
        arrived = Some(message);
        server.respond(now, id, response).unwrap();
    });
    assert_eq!(events.len(), 1, "{events:?}");
    (arrived, events.remove(0))
}

fn sound() -> (EndpointPair, ContextId) {
    ends(context(SECRET, b"", b"\x01"), Some(context(SECRET, b"\x01", b"")))
}

fn response(event: Event<'static, u8>) -> Received<'static> {
    match event {
        Event::Response { message, .. } | Event::Notification { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

/// Code of the answer without protection to a request that is refused.
fn refused(event: &Event<'_, u8>) -> Code {
    match event {
        Event::Failed { error: CallError::NotProtected { code }, .. } => *code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn tests_1_to_3_get_with_query_etag_accept_and_max_age() {
    let mut ends = sound();
    let hello = Response::content(&b"Hello World!"[..]).format(0);
    let (request, event) = exchange(&mut ends, &Request::get("/oscore/hello/1"), &hello);
    assert!(request.unwrap().options.is_path("/oscore/hello/1"));
    let message = response(event);
    assert_eq!((&*message.payload, message.options.content_format()), (&b"Hello World!"[..], Some(0)));

    let (request, event) =
        exchange(&mut ends, &Request::get("/oscore/hello/2?first=1"), &hello.clone().etag(&[0x2B]));
    let query: Vec<_> = request.unwrap().options.query().map(<[u8]>::to_vec).collect();
    assert_eq!(query, [b"first=1"]);
    assert_eq!(response(event).options.first(number::ETAG), Some(&[0x2B][..]));

    let (request, event) = exchange(&mut ends, &Request::get("/oscore/hello/3").accept(0), &hello.max_age(5));
    assert_eq!(request.unwrap().options.accept(), Some(0));
    assert_eq!(response(event).options.uint(number::MAX_AGE), Some(5));
    // Nothing of it shows.
    assert!(ends.0.log.iter().all(|line| line == "> CON POST" || line == "< ACK 2.04"), "{:?}", ends.0.log);
}

#[test]
fn tests_4_and_5_an_observation_and_its_end() {
    let mut ends = sound();
    let request = Request::get("/oscore/observe1").observe();
    ends.0.client.request_protected(at(0), PEER, &request, ends.1).unwrap();
    let mut observer = None;
    let mut events = ends.0.run(&mut |server, now, event| {
        let Event::Request { id, .. } = event else { panic!("{event:?}") };
        observer = server.accept(now, id);
        server.respond(now, id, &Response::content(&b"one"[..])).unwrap();
    });
    let Event::Notification { call, message } = events.remove(0) else { panic!("no notification") };
    assert_eq!(&*message.payload, b"one");
    ends.0.millis += 4_000;
    ends.0.server.handle_timeout(at(ends.0.millis));
    ends.0
        .server
        .notify(at(ends.0.millis), observer.unwrap(), &Response::content(&b"two"[..]), false)
        .unwrap();
    let events = ends.0.run(&mut |_, _, event| panic!("{event:?}"));
    assert!(matches!(&events[..], [Event::Notification { message, .. }] if *message.payload == *b"two"));
    assert!(ends.0.client.deregister(at(ends.0.millis), call));
    let mut gone = false;
    let events = ends.0.run(&mut |server, now, event| match event {
        Event::Request { id, observe, .. } => {
            assert_eq!(observe, Some(Observe::Deregister));
            server.respond(now, id, &Response::content(&b"two"[..])).unwrap();
        }
        Event::ObserverGone { reason, .. } => gone = reason == Gone::Deregistered,
        other => panic!("{other:?}"),
    });
    assert!(gone && matches!(&events[..], [Event::Response { .. }]), "{events:?}");
}

#[test]
fn tests_6_to_9_post_put_with_conditions_and_delete() {
    let mut ends = sound();
    let text = Request::post("/oscore/hello/6", &b"\x4A"[..]).format(0);
    let (request, event) =
        exchange(&mut ends, &text, &Response::new(Code::CHANGED).payload(&b"\x4A"[..]).format(0));
    let request = request.unwrap();
    assert_eq!(
        (request.code, &*request.payload, request.options.content_format()),
        (Code::POST, &b"\x4A"[..], Some(0))
    );
    assert_eq!((response(event).code), Code::CHANGED);

    let matching = Request::put("/oscore/hello/7", &b"\x7A"[..]).option(number::IF_MATCH, &[0x7B]);
    let (request, event) = exchange(&mut ends, &matching, &Response::new(Code::CHANGED));
    assert_eq!(request.unwrap().options.first(number::IF_MATCH), Some(&[0x7B][..]));
    assert_eq!(response(event).code, Code::CHANGED);

    let fresh = Request::put("/oscore/hello/7", &b"\x8A"[..]).option(number::IF_NONE_MATCH, &[]);
    let (request, event) = exchange(&mut ends, &fresh, &Response::new(code::PRECONDITION_FAILED));
    assert_eq!(request.unwrap().options.first(number::IF_NONE_MATCH), Some(&[][..]));
    assert_eq!(response(event).code, code::PRECONDITION_FAILED);

    let (request, event) =
        exchange(&mut ends, &Request::delete("/oscore/test"), &Response::new(code::DELETED));
    assert_eq!((request.unwrap().code, response(event).code), (Code::DELETE, code::DELETED));
}

#[test]
fn tests_10_to_12_other_identifiers_and_keys() {
    let server = || Some(context(SECRET, b"\x01", b""));
    let other = b"another secret..";
    let (get, hello) = (Request::get("/oscore/hello/1"), Response::content(&b"Hello World!"[..]));
    // 10: the server has no context with this kid.
    let (request, event) = exchange(&mut ends(context(SECRET, b"\x07", b"\x01"), server()), &get, &hello);
    assert_eq!((request, refused(&event)), (None, code::UNAUTHORIZED));
    // 11: it has other keys.
    let (request, event) = exchange(&mut ends(context(other, b"", b"\x01"), server()), &get, &hello);
    assert_eq!((request, refused(&event)), (None, code::BAD_REQUEST));
    // 12: the client has another Recipient ID, and so another key for the response. The response is no answer.
    let (request, event) = exchange(&mut ends(context(SECRET, b"", b"\x02"), server()), &get, &hello);
    assert!(request.is_some());
    let forged = CallError::Oscore(oscore::OscoreError::Forged);
    assert!(matches!(event, Event::Failed { error, .. } if error == forged), "{event:?}");
}

#[test]
fn test_13_a_request_again() {
    let (mut pair, context) = sound();
    pair.client.request_protected(at(0), PEER, &Request::get("/oscore/hello/1"), context).unwrap();
    let mut request = sent(&mut pair.client, at(0)).remove(0);
    let events = received(&mut pair.server, at(0), &request);
    assert!(matches!(&events[..], [Event::Request { .. }]));
    // Another Message ID: no duplicate for the message layer.
    request[3] ^= 1;
    assert!(received(&mut pair.server, at(1), &request).is_empty());
    let answer = sent(&mut pair.server, at(1)).remove(0);
    assert!(
        Message::read(&answer).unwrap().code == code::UNAUTHORIZED && answer.ends_with(b"Replay detected")
    );
}

#[test]
fn tests_14_and_15_one_end_without_protection() {
    let (get, hello) = (Request::get("/oscore/hello/1"), Response::content(&b"Hello World!"[..]));
    // 14: the server does not use OSCORE.
    let (request, event) = exchange(&mut ends(context(SECRET, b"", b"\x01"), None), &get, &hello);
    assert_eq!((request, refused(&event)), (None, code::BAD_OPTION));
    // 15: the client does not: the application sees that.
    let (mut pair, _) = sound();
    pair.request(&get);
    let events = pair.run(&mut |server, now, event| {
        let Event::Request { id, .. } = event else { panic!("{event:?}") };
        assert_eq!(server.context_of(id), None);
        server.respond(now, id, &Response::new(code::UNAUTHORIZED)).unwrap();
    });
    assert!(matches!(&events[..], [Event::Response { message, .. }] if message.code == code::UNAUTHORIZED));
}
