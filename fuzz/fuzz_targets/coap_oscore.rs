//! OSCORE: the option reads back, no octets but those of the other end are accepted, and what the other end protects, whatever it
//! is, comes out as it went in and harms no endpoint.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_coap::oscore::{Context, ContextParameters, Established, KeyExchange, OscoreOption};
use thinair_coap::{
    Builder, Code, Config, Endpoint, Event, OptionList, Request, Response, Token, Type, code, number,
};
use thinair_wire::time::Instant;

#[derive(Arbitrary, Debug)]
enum OscoreStep<'a> {
    /// A value of the option.
    Value(&'a [u8]),
    /// A datagram with these octets as option and ciphertext: a request to the server, or a response to the client.
    Datagram { code: u8, token: u8, value: &'a [u8], edhoc: bool, ciphertext: &'a [u8] },
    /// A message that the client has protected, with a bit flipped if there is a place for it.
    Protected { code: u8, options: Vec<(u16, &'a [u8])>, payload: &'a [u8], flipped: Option<u16> },
    /// A request of the client, observing or not.
    Request(bool),
}

fn context(sender_id: &[u8], recipient_id: &[u8]) -> Context {
    let secret = b"a secret of both";
    let parameters = ContextParameters {
        master_secret: secret,
        master_salt: b"",
        id_context: None,
        sender_id,
        recipient_id,
    };
    Context::new(&parameters, 0, true, |_| Some(u64::MAX)).expect("these are allowed")
}

/// Exchanges that are completed by an empty message, with keys that no other end has.
struct Exchange;

impl KeyExchange for Exchange {
    fn complete(&mut self, _: Instant, id: &[u8], message: &[u8]) -> Result<Established, Response<'static>> {
        let is_possible = message == b"\x40" && id != b"other";
        let established = || Established { context: context(b"other", id), replaced: Some(vec![1]) };
        is_possible.then(established).ok_or(Response::new(code::BAD_REQUEST))
    }
}

fn datagram(code: Code, id: u16, token: Token, options: &OptionList, payload: &[u8]) -> Option<Vec<u8>> {
    let mut octets = vec![0; 70_000];
    let mut builder = Builder::new(&mut octets, Type::NonConfirmable, code, id, &token).ok()?;
    builder.options(&options.as_options()).ok()?;
    let len = builder.payload(payload).ok()?;
    octets.truncate(len);
    Some(octets)
}

fuzz_target!(|steps: Vec<OscoreStep<'_>>| {
    let now = Instant::ZERO;
    let mut server = Endpoint::<u8>::new(Config::default(), || 7);
    server.add_context(context(b"s", b"c")).expect("it is the first");
    server.set_key_exchange(Exchange);
    // Its numbers are beyond those of `far`, so that neither are replays of the other.
    let mut client = Endpoint::<u8>::new(Config::default(), || 7);
    let near = client.add_context(context(b"d", b"s")).expect("it is the first");
    let mut far = context(b"c", b"s");
    let mut buffer = [0; 1_152];
    for (id, step) in (0_u16..).zip(steps) {
        match step {
            OscoreStep::Value(value) => {
                if let Ok(option) = OscoreOption::read(value) {
                    assert_eq!(option.write().as_deref(), Some(value));
                }
            }
            OscoreStep::Datagram { code, token, value, edhoc, ciphertext } => {
                let mut options = OptionList::new();
                options.push(number::OSCORE, value);
                if edhoc {
                    options.push(number::EDHOC, &[]);
                }
                let token = Token::of(u64::from(token), 1);
                let Some(octets) = datagram(Code(code), id, token, &options, ciphertext) else { continue };
                let event = server.handle_datagram(now, 1, &octets);
                assert!(!matches!(event, Some(Event::Request { .. })), "{event:?}");
                let event = client.handle_datagram(now, 1, &octets);
                assert!(
                    !matches!(event, Some(Event::Response { .. } | Event::Notification { .. })),
                    "{event:?}"
                );
            }
            OscoreStep::Protected { code, options, payload, flipped } => {
                let mut list = OptionList::new();
                options.iter().for_each(|(number, value)| list.push(*number, value));
                let protected = far.protect_request(Code(code), &list.as_options(), payload);
                let Some((mut protected, _)) = protected else { continue };
                let bit = flipped.map(usize::from).filter(|bit| *bit < 8 * protected.payload.len());
                if let Some(bit) = bit {
                    protected.payload[bit / 8] ^= 1 << (bit % 8);
                }
                let (options, token) = (&protected.options, Token::EMPTY);
                let Some(octets) = datagram(Code::POST, id, token, options, &protected.payload) else {
                    continue;
                };
                if let Some(Event::Request { id, message, .. }) = server.handle_datagram(now, 1, &octets) {
                    assert_eq!(bit, None, "a forged message is accepted");
                    assert!(message.code == Code(code) && server.context_of(id).is_some());
                    server.accept(now, id);
                    let _ = server.respond(now, id, &Response::content(payload.to_vec()));
                }
            }
            OscoreStep::Request(observe) => {
                let request = Request { observe, ..Request::get("/a") };
                let _ = client.request_protected(now, 1, &request, near);
            }
        }
        while server.poll_transmit(now, &mut buffer).is_some() || server.poll_event().is_some() {}
        while client.poll_transmit(now, &mut buffer).is_some() || client.poll_event().is_some() {}
    }
});
