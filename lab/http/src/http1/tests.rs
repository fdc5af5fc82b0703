use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::{HeadForm, Http1Client, Http1Server};
use crate::{
    ClientEngine as _, HttpError, HttpLimits, HttpResponse, Method, ServerEngine as _, Target, status,
};

const TARGET: Target<'_> = Target { host: "10.9.0.2:8080", path: "/10" };

fn client(form: HeadForm) -> Http1Client {
    Http1Client::new(form, TARGET, HttpLimits::default()).unwrap()
}

/// Result of a client that reads these octets and then the end of the stream.
fn read(octets: &[u8]) -> Result<HttpResponse, HttpError> {
    let mut client = client(HeadForm::Minimal);
    client.handle_input(octets)?;
    client.handle_end()?;
    Ok(client.response().unwrap().clone())
}

fn ok(body: &[u8]) -> HttpResponse {
    HttpResponse { status: 200, body: body.to_vec() }
}

/// Lets a server respond `ok(b"ten octets")` to every request.
fn serve(server: &mut Http1Server, octets: &[u8]) -> (Vec<String>, String) {
    let mut targets = Vec::new();
    server.handle_input(octets);
    let mut out = Vec::new();
    while let Some(request) = server.poll_request() {
        targets.push(request.target);
        server.respond(request.stream, ok(b"ten octets"));
    }
    out.extend_from_slice(server.output());
    server.sent(out.len());
    (targets, String::from_utf8(out).unwrap())
}

/// Octets that the evaluation of these services counts: 20 + 19, without the object.
#[test]
fn reduced_heads_have_39_octets() {
    let client = client(HeadForm::Reduced);
    assert_eq!(client.output(), b"GET /10 HTTP/1.0\r\n\r\n");
    let mut server = Http1Server::new(HeadForm::Reduced, true, HttpLimits::default());
    let (_, out) = serve(&mut server, client.output());
    assert_eq!(out, "HTTP/1.0 200 OK\r\n\r\nten octets");
    assert_eq!(client.output().len() + out.len() - 10, 39);
    assert!(server.is_closing());
}

#[test]
fn minimal_heads_say_what_rfc_9112_demands() {
    let client = client(HeadForm::Minimal);
    let request = "GET /10 HTTP/1.1\r\nHost: 10.9.0.2:8080\r\nConnection: close\r\n\r\n";
    assert_eq!(client.output(), request.as_bytes());
    let mut server = Http1Server::new(HeadForm::Minimal, true, HttpLimits::default());
    let (_, out) = serve(&mut server, client.output());
    assert_eq!(out, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nten octets");
    assert!(server.is_closing());
}

#[test]
fn a_connection_can_have_several_requests() {
    let mut server = Http1Server::new(HeadForm::Minimal, true, HttpLimits::default());
    let two = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nHEAD /b?x=1 HTTP/1.1\r\nhost: h\r\n\r\nGET /c";
    let (targets, out) = serve(&mut server, two);
    assert_eq!(targets, ["/a", "/b?x=1"]);
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    assert_eq!(out, format!("{head}ten octets{head}"));
    assert!(!server.is_closing() && !server.is_idle());
    let (targets, _) = serve(&mut server, b" HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(targets, ["/c"]);
    assert!(server.is_idle());
    server.handle_end();
    assert!(server.is_closing());
}

#[test]
fn a_client_asks_for_others_on_a_connection_that_stays() {
    let mut server = Http1Server::new(HeadForm::Minimal, true, HttpLimits::default());
    let mut client = Http1Client::lasting(TARGET, HttpLimits::default()).unwrap();
    for body in [&b"first"[..], b"second"] {
        assert_eq!(client.ask(TARGET), Err(HttpError::NoOther), "nothing has come yet");
        let request = client.output().to_vec();
        assert!(!request.windows(5).any(|at| at == b"close"));
        client.sent(request.len());
        server.handle_input(&request);
        let request = server.poll_request().unwrap();
        server.respond(request.stream, ok(body));
        let response = server.output().to_vec();
        server.sent(response.len());
        client.handle_input(&response).unwrap();
        assert_eq!(client.response().unwrap().body, body);
        client.ask(TARGET).unwrap();
    }
    // The server announces the end of the connection, or gives no length.
    for response in [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx",
        "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\n\r\nx",
    ] {
        let mut client = Http1Client::lasting(TARGET, HttpLimits::default()).unwrap();
        client.handle_input(response.as_bytes()).unwrap();
        client.handle_end().unwrap();
        assert_eq!(client.ask(TARGET), Err(HttpError::NoOther), "{response}");
    }
}

#[test]
fn what_is_no_request_is_answered_once_and_closed() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(9_000));
    let many = format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "A: b\r\n".repeat(65));
    for (request, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("\x16\x03\x01\x02\0\x01", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 413),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 405),
        ("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 405),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        (&long, 431),
        (&many, 431),
    ] {
        let mut server = Http1Server::new(HeadForm::Minimal, true, HttpLimits::default());
        let (targets, out) = serve(&mut server, request.as_bytes());
        assert!(targets.is_empty(), "{request}");
        assert!(out.starts_with(&format!("HTTP/1.1 {expected} {}\r\n", status::phrase(expected))), "{out}");
        assert_eq!(out.contains("\r\nAllow: GET, HEAD\r\n"), expected == 405, "{out}");
        assert!(server.is_closing(), "{request}");
        let (targets, out) = serve(&mut server, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(targets.is_empty() && out.is_empty());
    }
}

#[test]
fn a_head_that_never_ends_is_not_kept() {
    let mut server =
        Http1Server::new(HeadForm::Reduced, false, HttpLimits { head: 100, ..HttpLimits::default() });
    server.handle_input(b"GET / HTTP/1.0\r\n");
    while server.wants_input() && !server.is_closing() {
        server.handle_input(b"A: b\r\n");
        assert_eq!(server.poll_request(), None);
    }
    assert!(server.output().starts_with(b"HTTP/1.0 431 "));
}

#[test]
fn head_has_no_body_and_absolute_forms_are_understood() {
    let mut server = Http1Server::new(HeadForm::Reduced, false, HttpLimits::default());
    server.handle_input(b"HEAD http://example.net/a/b HTTP/1.0\r\n\r\n");
    let request = server.poll_request().unwrap();
    assert_eq!((request.method, &*request.target), (Method::Head, "/a/b"));
    server.respond(0, ok(b"ten octets"));
    assert_eq!(server.output(), b"HTTP/1.0 200 OK\r\n\r\n");
}

#[test]
fn bodies_are_counted_chunked_or_until_the_end() {
    for (octets, body) in [
        ("HTTP/1.0 200 OK\r\n\r\nabc", "abc"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "abc"),
        ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", ""),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\nabc", "abc"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nA: b\r\n\r\n",
            "abc",
        ),
    ] {
        assert_eq!(read(octets.as_bytes()), Ok(ok(body.as_bytes())), "{octets}");
        // Any segmentation gives this result.
        let mut client = client(HeadForm::Reduced);
        octets.bytes().for_each(|octet| client.handle_input(&[octet]).unwrap());
        client.handle_end().unwrap();
        assert_eq!(client.response().unwrap().body, body.as_bytes());
    }
    assert_eq!(read(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n").unwrap().body, b"");
}

#[test]
fn what_is_no_response_is_told() {
    let limits = HttpLimits { body: 3, head: 60, streams: 1 };
    let big = HttpError::BodyTooLarge(3);
    for (octets, error) in [
        ("", HttpError::Truncated(0)),
        ("HTTP/1.1 200", HttpError::Truncated(0)),
        ("SSH-2.0-x\r\n", HttpError::Head),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", HttpError::Truncated(2)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd", HttpError::Unexpected),
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", big),
        ("HTTP/1.1 200 OK\r\n\r\nabcd", big),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", HttpError::Truncated(2)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", HttpError::BodyLength),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", HttpError::BodyLength),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabcd", big),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", HttpError::BodyLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1,1\r\n\r\n", HttpError::BodyLength),
        ("HTTP/1.1 200 OK\r\nA: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", HttpError::HeadTooLarge(60)),
    ] {
        let mut client = Http1Client::new(HeadForm::Minimal, TARGET, limits).unwrap();
        let result = client.handle_input(octets.as_bytes()).and_then(|()| client.handle_end());
        assert_eq!(result, Err(error), "{octets}");
    }
}

#[test]
fn a_target_cannot_break_a_line() {
    for (host, path) in
        [("h", "/a b"), ("h", "/\r\nA: b"), ("h\n", "/"), ("", "/"), ("h", "a"), ("h", "/\u{fc}")]
    {
        let target = Target { host, path };
        assert_eq!(
            Http1Client::new(HeadForm::Reduced, target, HttpLimits::default()).unwrap_err(),
            HttpError::Target
        );
    }
}

proptest! {
    #[test]
    fn any_octets_are_read(pieces: Vec<Vec<u8>>) {
        let mut client = client(HeadForm::Minimal);
        let mut server = Http1Server::new(HeadForm::Minimal, true, HttpLimits::default());
        for piece in &pieces {
            if client.handle_input(piece).is_err() {
                break;
            }
        }
        let _ = client.handle_end();
        for piece in &pieces {
            serve(&mut server, piece);
        }
        server.handle_end();
    }

    #[test]
    fn objects_come_as_they_are(body: Vec<u8>, piece in 1..50_usize, reduced: bool) {
        let form = if reduced { HeadForm::Reduced } else { HeadForm::Minimal };
        let mut client = client(form);
        let mut server = Http1Server::new(form, false, HttpLimits::default());
        for octets in client.output().to_vec().chunks(piece) {
            server.handle_input(octets);
        }
        prop_assert!(server.poll_request().is_some());
        server.respond(0, ok(&body));
        for octets in server.output().chunks(piece) {
            client.handle_input(octets).unwrap();
        }
        client.handle_end().unwrap();
        prop_assert_eq!(&client.response().unwrap().body, &body);
        let chunked: Vec<u8> = body.chunks(piece).flat_map(|chunk| {
            [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat()
        }).collect();
        let head = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(), chunked, b"0\r\n\r\n".to_vec()];
        prop_assert_eq!(read(&head.concat()), Ok(ok(&body)));
    }
}
