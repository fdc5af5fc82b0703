//! Message 3 of EDHOC in front of the first protected request. RFC 9668, section 3.

use std::vec;
use std::vec::Vec;

use thinair_wire::time::Instant;

use super::support::*;
use crate::oscore::{Context, ContextParameters, Established, KeyExchange};
use crate::*;

const MESSAGE_3: &[u8] = b"\x43key";

fn context(own: &[u8], other: &[u8]) -> Context {
    let parameters = ContextParameters {
        master_secret: b"agreed on by all",
        master_salt: b"",
        id_context: None,
        sender_id: other,
        recipient_id: own,
    };
    Context::new(&parameters, 0, true, |_| Some(u64::MAX)).unwrap()
}

/// A Responder with exchanges with these identifiers; a context replaces the one with identifier 0.
struct Exchanges(Vec<u8>);

impl KeyExchange for Exchanges {
    fn complete(&mut self, _: Instant, id: &[u8], message: &[u8]) -> Result<Established, Response<'static>> {
        let known = self.0.iter().position(|known| id == [*known]).filter(|_| message == MESSAGE_3);
        self.0.remove(known.ok_or(Response::new(code::BAD_REQUEST).payload(&b"\x01\x62no"[..]))?);
        Ok(Established { context: context(id, b"c").with_owner(7), replaced: Some(vec![0]) })
    }
}

/// Ends of which only the client has a context, with a message 3.
fn ends(exchanges: &[u8], id: u8, message_3: &[u8]) -> (EndpointPair, crate::oscore::ContextId) {
    let mut pair = EndpointPair::new(Config::default(), Config::default());
    pair.server.set_key_exchange(Exchanges(exchanges.to_vec()));
    let context = context(b"c", &[id]).with_message_3(message_3);
    let context = pair.client.add_context(context).unwrap();
    (pair, context)
}

fn ask(
    pair: &mut EndpointPair,
    context: crate::oscore::ContextId,
    request: &Request<'_>,
) -> Vec<Event<'static, u8>> {
    let now = at(pair.millis);
    pair.client.request_protected(now, PEER, request, context).unwrap();
    let events = pair.run(&mut |server, now, event| {
        let Event::Request { id, .. } = event else { panic!("{event:?}") };
        let owner = server.context_of(id).and_then(|context| server.context(context)).map(Context::owner);
        assert_eq!(owner, Some(7));
        server.respond(now, id, &Response::content(&b"21.5"[..])).unwrap();
    });
    events.into_iter().filter(|event| !matches!(event, Event::Progress { .. })).collect()
}

#[test]
fn the_first_request_brings_its_context() {
    let (mut pair, context) = ends(&[5], 5, MESSAGE_3);
    pair.server.add_context(self::context(&[0], b"c")).unwrap();
    for _ in 0..2 {
        let events = ask(&mut pair, context, &Request::get("/temperature"));
        assert!(matches!(&events[..], [Event::Response { message, .. }] if *message.payload == *b"21.5"));
    }
    assert_eq!(pair.log, ["> CON POST", "< ACK 2.04", "> CON POST", "< ACK 2.04"]);
    assert!(pair.server.context_with(&[5]).is_some() && pair.server.context_with(&[0]).is_none());
}

#[test]
fn each_request_has_message_3_until_the_first_response() {
    let mut client = context(b"c", &[5]).with_message_3(MESSAGE_3);
    let mut server = context(&[5], b"c");
    let (request, binding) = client.protect_request(Code::GET, &Options::default(), b"").unwrap();
    assert!(request.options.as_options().first(number::EDHOC).is_some_and(<[u8]>::is_empty));
    assert!(request.payload.starts_with(MESSAGE_3));
    let options = request.options.as_options();
    let (_, asked) = server.unprotect_request(&options, &request.payload[MESSAGE_3.len()..]).unwrap();
    let response = server.protect_response(asked, Code::CONTENT, &Options::default(), b"").unwrap();
    assert!(client.unprotect_response(binding, &response.options.as_options(), b"forged response").is_err());
    assert!(
        client.protect_request(Code::GET, &Options::default(), b"").unwrap().0.payload.starts_with(MESSAGE_3)
    );
    client.unprotect_response(binding, &response.options.as_options(), &response.payload).unwrap();
    let (request, _) = client.protect_request(Code::GET, &Options::default(), b"").unwrap();
    assert_eq!(request.options.as_options().first(number::EDHOC), None);
    assert!(!request.payload.starts_with(MESSAGE_3));
}

#[test]
fn the_blocks_of_the_first_request_go_through() {
    let (mut pair, context) = ends(&[5], 5, MESSAGE_3);
    let body = vec![b'x'; 3_000];
    let events = ask(&mut pair, context, &Request::put("/store", &body[..]));
    assert!(matches!(&events[..], [Event::Response { .. }]), "{events:?}");
}

#[test]
fn an_exchange_that_is_not_known_or_fails_has_an_answer_without_protection() {
    for (exchanges, message_3) in
        [(&[4][..], MESSAGE_3), (&[5], b"\x43yek"), (&[5], b"no CBOR"), (&[5], b"\x58\xFF")]
    {
        let (mut pair, context) = ends(exchanges, 5, message_3);
        let events = ask(&mut pair, context, &Request::get("/temperature"));
        let refused =
            |event: &_| matches!(event, Event::Failed { error: CallError::NotProtected { .. }, .. });
        assert!(matches!(&events[..], [event] if refused(event)), "{events:?}");
        assert_eq!(pair.server.context_with(&[5]), None);
        assert_eq!(pair.server.counters().unverified, 1);
    }
}
