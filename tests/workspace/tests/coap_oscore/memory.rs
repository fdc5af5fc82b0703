//! Secrets in the memory of processes: a live context has its keys, and nothing has the secret from which they were derived; no key stays
//! behind its context.

use std::io::Read as _;

use thinair_coap::oscore::ContextId;
use thinair_coap::{Config, Endpoint, Event, Request, Response};
use thinair_services::coap::{edhoc, oscore};
use thinair_tests::memory::{digits, found};
use thinair_wire::time::Instant as Moment;

use super::*;

/// Complements of a Master Secret, and of the Sender Keys that follow from it for the Sender IDs 01 and 02, without salt.
const SECRET: [u8; 16] =
    [0x74, 0xde, 0x60, 0x1c, 0xb4, 0xba, 0x0e, 0xd1, 0x8d, 0x76, 0x8c, 0x5d, 0x6e, 0xf2, 0x82, 0x35];
const CLIENT_KEY: [u8; 16] =
    [0xff, 0x40, 0x01, 0x67, 0x34, 0x02, 0x03, 0x05, 0x51, 0xd0, 0x5a, 0xc4, 0xac, 0x27, 0x14, 0x5e];
const SERVER_KEY: [u8; 16] =
    [0x28, 0x1d, 0xae, 0x3d, 0x7d, 0x30, 0xc5, 0xeb, 0x93, 0xa6, 0x1b, 0xca, 0xcf, 0x03, 0xea, 0xa2];

/// Folders `client` and `server` with these keys.
fn bench() -> Bench {
    let bench = Bench(tempfile::tempdir().unwrap());
    fs::create_dir(bench.path("root")).unwrap();
    for (name, sender, recipient) in [("client", "01", "02"), ("server", "02", "01")] {
        fs::create_dir(bench.path(name)).unwrap();
        let mut text = Vec::with_capacity(256);
        text.extend_from_slice(b"{\"secret_hex\": \"");
        text.extend(digits(&SECRET).iter().map(|digit| !digit));
        let ids = format!("\", \"sender-id_hex\": \"{sender}\", \"recipient-id_hex\": \"{recipient}\"}}");
        text.extend_from_slice(ids.as_bytes());
        fs::write(bench.path(name) + "/settings.json", &text).unwrap();
        text.fill(0);
        std::hint::black_box(&text);
    }
    bench
}

/// How often a process has the keys, and the secret in octets and digits. `None` and a message if its memory cannot be read.
fn secrets(process: u32) -> Option<([usize; 2], [usize; 2])> {
    match found(process, &[&CLIENT_KEY, &SERVER_KEY, &SECRET, &digits(&SECRET)]) {
        Ok(counts) => Some(([counts[0], counts[1]], [counts[2], counts[3]])),
        Err(why) => {
            println!("skipped: memory, which this user cannot read ({why})");
            None
        }
    }
}

#[test]
fn processes_have_the_keys_of_live_contexts_and_no_secret() {
    let bench = bench();
    let server = bench.serve(&[]);
    let mut client = Command::new(thinair());
    client.args(["coap", "get", &server.uri("/time"), "--repeat", "2", "--every", "60s", "--oscore"]);
    let mut client = client.arg(bench.path("client")).stdout(Stdio::piped()).spawn().unwrap();
    // The first request was answered, and the next one comes in a minute.
    client.stdout.as_mut().unwrap().read_exact(&mut [0; 10]).unwrap();
    let counts = [client.id(), server.process()].map(secrets);
    client.kill().unwrap();
    client.wait().unwrap();
    for (keys, secret) in counts.into_iter().flatten() {
        assert!(keys[0] > 0 && keys[1] > 0, "{keys:?}");
        assert_eq!(secret, [0, 0]);
    }
}

/// An endpoint with the context in a folder.
fn endpoint(folder: &str) -> (Endpoint<u8>, ContextId) {
    let mut endpoint = Endpoint::new(Config::default(), || 7);
    let context = oscore::open(Path::new(folder), false).unwrap();
    let context = endpoint.add_context(context).unwrap();
    (endpoint, context)
}

#[test]
fn keys_end_with_their_context() {
    let bench = bench();
    let (mut client, client_context) = endpoint(&bench.path("client"));
    let (mut server, server_context) = endpoint(&bench.path("server"));
    let (now, mut buffer) = (Moment::ZERO, [0; 1_152]);
    for _ in 0..3 {
        client.request_protected(now, 1, &Request::get("/time"), client_context).unwrap();
        let len = client.poll_transmit(now, &mut buffer).unwrap().len;
        let event = server.handle_datagram(now, 1, &buffer[..len]);
        let Some(Event::Request { id, .. }) = event else { panic!("{event:?}") };
        server.respond(now, id, &Response::content(&b"12:00"[..])).unwrap();
        let len = server.poll_transmit(now, &mut buffer).unwrap().len;
        let event = client.handle_datagram(now, 1, &buffer[..len]);
        assert!(matches!(event, Some(Event::Response { .. })), "{event:?}");
    }
    let Some((keys, secret)) = secrets(std::process::id()) else { return };
    // Two contexts have both.
    assert!(keys[0] >= 2 && keys[1] >= 2, "{keys:?}");
    assert_eq!(secret, [0, 0]);
    drop((client.remove_context(client_context), server.remove_context(server_context)));
    assert_eq!(secrets(std::process::id()), Some(([0, 0], [0, 0])));
}

/// The key of a file for EDHOC. During an exchange the crate `lakers` has copies that it does not overwrite.
#[test]
fn a_private_key_ends_with_its_identity() {
    let bench = Bench(tempfile::tempdir().unwrap());
    let done = ask(&["pair", &bench.path("phone"), &bench.path("sensor")]);
    assert!(done.status.success(), "{}", text(&done));
    let path = bench.path("phone/own.key");
    let complement = {
        let mut octets = fs::read(&path).unwrap();
        let complement: Vec<u8> = octets[8..].iter().map(|octet| !octet).collect();
        octets.fill(0);
        std::hint::black_box(&octets);
        complement
    };
    let identity = edhoc::Identity::read(Path::new(&path)).unwrap();
    let Ok(live) = found(std::process::id(), &[&complement]) else {
        return println!("skipped: memory, which this user cannot read");
    };
    assert!(live[0] > 0);
    drop(identity);
    assert_eq!(found(std::process::id(), &[&complement]).unwrap(), [0]);
}
