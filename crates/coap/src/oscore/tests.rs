//! The test vectors of RFC 8613, appendix C, and refusals.

#![allow(clippy::unwrap_used)]

use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::Code;
use crate::message::{Builder, Message};
use crate::option::Options;

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

const SECRET: &[u8] = b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10";
const SALT: &[u8] = b"\x9e\x7c\xa9\x22\x23\x78\x63\x40";

/// Returns client and server of a vector, with the client's next number.
fn ends(
    salt: &[u8],
    id_context: Option<&[u8]>,
    client: &[u8],
    server: &[u8],
    next: u64,
) -> (Context, Context) {
    let parameters = |sender_id, recipient_id| ContextParameters {
        master_secret: SECRET,
        master_salt: salt,
        id_context,
        sender_id,
        recipient_id,
    };
    let all = |_| Some(u64::MAX);
    (
        Context::new(&parameters(client, server), next, true, all).unwrap(),
        Context::new(&parameters(server, client), 0, true, all).unwrap(),
    )
}

fn c_1() -> (Context, Context) {
    ends(SALT, None, b"", b"\x01", 20)
}

fn c_2() -> (Context, Context) {
    ends(b"", None, b"\x00", b"\x01", 20)
}

fn c_3() -> (Context, Context) {
    ends(SALT, Some(b"\x37\xcb\xf3\x21\x00\x17\xa2\xd3"), b"", b"\x01", 20)
}

/// Writes a protected message with the header of the message that it protects.
fn written(plain: &Message<'_>, protected: &Protected) -> Vec<u8> {
    let mut out = [0; 128];
    let mut builder =
        Builder::new(&mut out, plain.message_type, protected.code, plain.message_id, &plain.token).unwrap();
    builder.options(&protected.options.as_options()).unwrap();
    let len = builder.payload(&protected.payload).unwrap();
    out[..len].to_vec()
}

#[test]
fn keys_are_those_of_appendices_c_1_to_c_3() {
    let vectors = [
        (
            c_1(),
            "f0910ed7295e6ad4b54fc793154302ff",
            "ffb14e093c94c9cac9471648b4f98710",
            "4622d4dd6d944168eefb54987c",
        ),
        (
            c_2(),
            "321b26943253c7ffb6003b0b64d74041",
            "e57b5635815177cd679ab4bcec9d7dda",
            "be35ae297d2dace910c52e99f9",
        ),
        (
            c_3(),
            "af2a1300a5e95788b356336eeecd2b92",
            "e39a0c7c77b43f03b4b39ab9a268699f",
            "2ca58fb85ff1b81c0b7181b85e",
        ),
    ];
    for ((client, server), sender, recipient, common_iv) in vectors {
        assert_eq!(client.keys.sender[..], hex(sender));
        assert_eq!(client.keys.recipient[..], hex(recipient));
        assert_eq!(client.keys.common_iv.to_be_bytes()[3..], hex(common_iv));
        let (ours, theirs) = (&client.keys, &server.keys);
        assert_eq!((theirs.sender, theirs.recipient), (ours.recipient, ours.sender));
        assert_eq!(theirs.common_iv, ours.common_iv);
    }
}

#[test]
fn requests_are_those_of_appendices_c_4_to_c_6() {
    let vectors = [
        (
            c_1(),
            "44015d1f00003974396c6f63616c686f737483747631",
            "44025d1f00003974396c6f63616c686f7374620914ff612f1092f1776f1c1668b3825e",
        ),
        (
            c_2(),
            "440171c30000b932396c6f63616c686f737483747631",
            "440271c30000b932396c6f63616c686f737463091400ff4ed339a5a379b0b8bc731fffb0",
        ),
        (
            c_3(),
            "44012f8eef9bbf7a396c6f63616c686f737483747631",
            "44022f8eef9bbf7a396c6f63616c686f73746b19140837cbf3210017a2d3ff72cd7273fd331ac45cffbe55c3",
        ),
    ];
    for ((mut client, mut server), plain, expected) in vectors {
        let (plain, expected) = (hex(plain), hex(expected));
        let plain = Message::read(&plain).unwrap();
        let (protected, binding) = client.protect_request(plain.code, &plain.options, plain.payload).unwrap();
        assert_eq!(written(&plain, &protected), expected);

        let received = Message::read(&expected).unwrap();
        let (request, at_server) = server.unprotect_request(&received.options, received.payload).unwrap();
        assert_eq!(
            (request.code, request.options(), request.payload()),
            (plain.code, plain.options, &[][..])
        );
        assert_eq!(at_server, binding);
        let again = server.unprotect_request(&received.options, received.payload);
        assert_eq!(again, Err(OscoreError::Replayed));
    }
}

#[test]
fn responses_are_those_of_appendices_c_7_and_c_8() {
    let (mut client, mut server) = c_1();
    let request = hex("44015d1f00003974396c6f63616c686f737483747631");
    let request = Message::read(&request).unwrap();
    let (protected, asked) = client.protect_request(request.code, &request.options, &[]).unwrap();
    let (_, binding) = server.unprotect_request(&protected.options.as_options(), &protected.payload).unwrap();

    let plain = hex("64455d1f00003974ff48656c6c6f20576f726c6421");
    let plain = Message::read(&plain).unwrap();
    // The first response has the nonce of the request, a second one its own Partial IV.
    for expected in [
        "64445d1f0000397490ffdbaad1e9a7e7b2a813d3c31524378303cdafae119106",
        "64445d1f00003974920100ff4d4c13669384b67354b2b6175ff4b8658c666a6cf88e",
    ] {
        let expected = hex(expected);
        let protected = server.protect_response(binding, plain.code, &plain.options, plain.payload).unwrap();
        assert_eq!(written(&plain, &protected), expected);
        let received = Message::read(&expected).unwrap();
        let response = client.unprotect_response(asked, &received.options, received.payload).unwrap();
        assert_eq!((response.code, response.payload()), (plain.code, plain.payload));
    }
}

#[test]
fn parameters_that_are_not_allowed_are_refused() {
    let sound = ContextParameters {
        master_secret: SECRET,
        master_salt: b"",
        id_context: None,
        sender_id: b"a",
        recipient_id: b"b",
    };
    let error = |parameters| Context::new(&parameters, 0, true, Some).unwrap_err();
    assert_eq!(error(ContextParameters { master_secret: &SECRET[1..], ..sound }), ContextError::ShortSecret);
    assert_eq!(error(ContextParameters { sender_id: b"12345678", ..sound }), ContextError::LongId);
    assert_eq!(error(ContextParameters { sender_id: b"b", ..sound }), ContextError::EqualIds);
    assert_eq!(error(ContextParameters { id_context: Some(&[0; 33]), ..sound }), ContextError::LongIdContext);
}

#[test]
fn nothing_is_protected_with_a_number_that_is_not_reserved() {
    let parameters = ContextParameters {
        master_secret: SECRET,
        master_salt: b"",
        id_context: None,
        sender_id: b"a",
        recipient_id: b"b",
    };
    let mut asked = Vec::new();
    // Two numbers at a time, until the medium is full.
    let mut context = Context::new(&parameters, 7, true, move |next| {
        asked.push(next);
        (asked.len() <= 2).then_some(next + 2)
    })
    .unwrap();
    let numbers: Vec<_> = (0..6).map(|_| context.take_number()).collect();
    assert_eq!(numbers, [Some(7), Some(8), Some(9), Some(10), None, None]);

    let last = nonce::MAX_NUMBER;
    let mut context = Context::new(&parameters, last, true, |_| Some(u64::MAX)).unwrap();
    assert_eq!([context.take_number(), context.take_number()], [Some(last), None]);
}

#[test]
fn contexts_of_10_000_peers_are_small_and_found_at_once() {
    let mut contexts = Contexts::new(7);
    let mut clients = Vec::new();
    for number in 0..10_000_u16 {
        let (client, server) = ends(SALT, None, &number.to_be_bytes(), b"s", 0);
        contexts.insert(server).unwrap();
        clients.push(client);
    }
    let (context, window) =
        (size_of::<Context>() + size_of::<keys::Keys>(), size_of::<window::ReplayWindow>());
    // The allocator adds 16 octets to the keys of each.
    let octets = contexts.capacity() + 10_000 * (size_of::<keys::Keys>() + 16);
    std::println!("a context has {context} octets with its window of {window}, and 10,000 have {octets}");
    assert!(context - window <= 400 && octets <= 5_000_000);
    assert_eq!(contexts.insert(ends(SALT, None, &[0, 7], b"s", 0).1), Err(ContextError::Ambiguous));
    let mut found = std::collections::BTreeSet::new();
    for client in &mut clients {
        let (request, _) = client.protect_request(Code::GET, &Options::default(), &[]).unwrap();
        let opened = contexts.unprotect_request(&request.options.as_options(), &request.payload);
        let (_, context, _) = opened.unwrap();
        assert!(found.insert(context));
    }
    assert!(contexts.longest_bucket() <= 12, "{}", contexts.longest_bucket());
}

proptest! {
    /// All bits that OSCORE protects: those of the option's value, and of the ciphertext.
    #[test]
    fn a_message_with_a_flipped_bit_is_refused(bit in 0..(3 + 13) * 8_usize) {
        let (mut client, mut server) = c_2();
        let options = crate::request::Request::get("/tv1").options;
        let (mut request, binding) = client.protect_request(Code::GET, &options.as_options(), &[]).unwrap();
        let mut value = request.options.as_options().first(crate::number::OSCORE).unwrap().to_vec();
        let octet = value.iter_mut().chain(&mut request.payload).nth(bit / 8).unwrap();
        *octet ^= 1 << (bit % 8);
        let mut list = crate::option::OptionList::new();
        list.push(crate::number::OSCORE, &value);
        let mut contexts = Contexts::new(0);
        contexts.insert(server).unwrap();
        prop_assert!(contexts.unprotect_request(&list.as_options(), &request.payload).is_err());

        server = c_2().1;
        server.window.as_mut().unwrap().receive(20);
        let mut response =
            server.protect_response(binding, Code::CONTENT, &Options::default(), b"twelve octet").unwrap();
        let len = response.payload.len();
        response.payload[bit / 8 % len] ^= 1 << (bit % 8);
        let options = response.options.as_options();
        prop_assert_eq!(client.unprotect_response(binding, &options, &response.payload), Err(OscoreError::Forged));
    }

    #[test]
    fn no_octets_cause_a_panic(value in proptest::collection::vec(any::<u8>(), 0..20), payload in proptest::collection::vec(any::<u8>(), 0..40)) {
        let (mut client, mut server) = c_1();
        let mut list = crate::option::OptionList::new();
        list.push(crate::number::OSCORE, &value);
        let _ = server.unprotect_request(&list.as_options(), &payload);
        let _ = client.unprotect_response(Binding(3), &list.as_options(), &payload);
    }
}
