use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::frame::{Control, Reset, write_data};
use super::header_block::HeaderBlocks;
use super::reader::{FrameReader, ReceivedFrame};
use super::{SpdyClient, SpdyServer};
use crate::deflate::Flush;
use crate::{
    ClientEngine as _, HttpError, HttpLimits, HttpRequest, HttpResponse, Method, ServerEngine as _, Target,
};

fn client(host: &str, path: &str) -> SpdyClient {
    SpdyClient::new(Target { host, path }, Flush::Least, HttpLimits::default()).unwrap()
}

fn server(keeps: bool) -> SpdyServer {
    SpdyServer::new(keeps, Flush::Least, HttpLimits::default())
}

fn ok(body: &[u8]) -> HttpResponse {
    HttpResponse { status: 200, body: body.to_vec() }
}

/// Takes all output of a server.
fn out(server: &mut SpdyServer) -> Vec<u8> {
    let out = server.output().to_vec();
    server.sent(out.len());
    out
}

fn written(control: &Control<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    control.write(&mut out);
    out
}

/// Control frames as their text, DATA as its length.
fn frames(octets: &[u8]) -> Vec<String> {
    let mut reader = FrameReader::new(1 << 20);
    reader.push(octets);
    let mut frames = Vec::new();
    while let Some(incoming) = reader.next().unwrap() {
        frames.push(match incoming {
            ReceivedFrame::Data { stream, octets, fin } => {
                alloc::format!("Data {stream} {}{}", octets.len(), if fin { " fin" } else { "" })
            }
            ReceivedFrame::Control(whole) => match whole.control().unwrap() {
                Control::SynReply { stream, fin, .. } => alloc::format!("SynReply {stream} {fin}"),
                other => alloc::format!("{other:?}"),
            },
        });
    }
    assert!(reader.is_empty());
    frames
}

/// Later requests are short, as header blocks refer to earlier ones; and windows never close.
#[test]
fn a_client_asks_for_others_on_the_same_connection() {
    let mut server = server(true);
    let mut client = client("192.0.2.1", "/10");
    let mut lengths = Vec::new();
    for number in 0..20_u8 {
        assert_eq!(
            client.ask(Target { host: "a", path: "/" }),
            Err(HttpError::NoOther),
            "nothing has come yet"
        );
        let request = client.output().to_vec();
        lengths.push(request.len());
        client.sent(request.len());
        server.handle_input(&request);
        let request = server.poll_request().unwrap();
        assert_eq!(request.stream, 1 + 2 * u32::from(number));
        let body = vec![number; 30_000];
        server.respond(request.stream, ok(&body));
        // WINDOW_UPDATE frames let the rest go.
        while client.response().is_none() {
            let response = out(&mut server);
            assert!(!response.is_empty(), "{number}");
            client.handle_input(&response).unwrap();
            let updates = client.output().to_vec();
            client.sent(updates.len());
            server.handle_input(&updates);
        }
        assert_eq!(client.response().unwrap().body, body);
        client.ask(Target { host: "192.0.2.1", path: "/10" }).unwrap();
    }
    assert!(lengths[1] < 40 && lengths[1] + 30 < lengths[0], "{lengths:?}");
}

/// zlib with `Z_SYNC_FLUSH` takes 80 for the first of them.
#[test]
fn five_headers_and_their_frame_are_71_octets() {
    assert_eq!(client("a", "/10").output().len(), 71);
    assert_eq!(client("10.9.0.2:8080", "/10").output().len(), 83);
    let sync =
        SpdyClient::new(Target { host: "a", path: "/10" }, Flush::Sync, HttpLimits::default()).unwrap();
    assert_eq!(sync.output().len(), 77);
}

#[test]
fn an_object_is_asked_for_and_comes() {
    let mut client = client("10.9.0.2:8080", "/10");
    let mut server = server(false);
    // In two pieces: the octets in the SYN, and the rest.
    for octets in [&client.output()[..48], &client.output()[48..]] {
        assert_eq!(server.poll_request(), None);
        assert!(!server.is_closing());
        server.handle_input(octets);
    }
    let asked = HttpRequest { stream: 1, method: Method::Get, target: "/10".to_string() };
    assert_eq!(server.poll_request(), Some(asked));
    assert!(!server.is_closing());
    server.respond(1, ok(b"0123456789"));
    assert!(server.is_closing());
    assert_eq!(frames(server.output()), ["SynReply 1 false", "Data 1 10 fin"]);
    for octet in server.output() {
        assert_eq!(client.response(), None);
        client.handle_input(&[*octet]).unwrap();
    }
    assert_eq!(client.response(), Some(&ok(b"0123456789")));
    assert_eq!(client.handle_end(), Ok(()));
}

#[test]
fn a_connection_has_many_streams() {
    let mut blocks = HeaderBlocks::new(Flush::Sync, 8_192);
    let mut server = server(true);
    let mut sizes = Vec::new();
    for (index, path) in ["/a", "/b", "/c?d"].into_iter().enumerate() {
        let stream = index as u32 * 2 + 1;
        let block = blocks.write(&pairs("GET", path));
        sizes.push(block.len());
        server.handle_input(&syn(stream, &block));
    }
    // Repeated headers take few octets.
    assert!(sizes[1] < sizes[0] / 2 && sizes[2] < sizes[0] / 2, "{sizes:?}");
    let requests: Vec<_> = core::iter::from_fn(|| server.poll_request()).collect();
    assert_eq!(requests.iter().map(|request| &*request.target).collect::<Vec<_>>(), ["/a", "/b", "/c?d"]);
    server.respond(5, ok(b"five"));
    server.respond(1, HttpResponse::empty(404));
    assert!(!server.is_idle());
    server.respond(3, ok(b"three"));
    server.respond(3, ok(b"again"));
    let expected =
        ["SynReply 5 false", "Data 5 4 fin", "SynReply 1 true", "SynReply 3 false", "Data 3 5 fin"];
    assert_eq!(frames(&out(&mut server)), expected);
    assert!(server.is_idle() && !server.is_closing());
    server.handle_end();
    assert!(server.is_closing() && server.is_last());
}

#[test]
fn no_more_data_goes_than_is_allowed() {
    let mut client = client("a", "/10");
    let mut server = server(false);
    let body: Vec<u8> = (0..200_000_u32).map(|number| number as u8).collect();
    server.handle_input(client.output());
    client.sent(client.output().len());
    server.poll_request().unwrap();
    server.respond(1, ok(&body));
    let first = out(&mut server);
    assert_eq!(frames(&first), ["SynReply 1 false", "Data 1 65536"]);
    assert!(!server.is_closing());
    client.handle_input(&first).unwrap();
    let mut rounds = 0;
    while client.response().is_none() {
        let allowed = client.output().to_vec();
        client.sent(allowed.len());
        assert!(!allowed.is_empty());
        server.handle_input(&allowed);
        client.handle_input(&out(&mut server)).unwrap();
        rounds += 1;
    }
    assert_eq!(client.response(), Some(&ok(&body)));
    assert!(rounds > 1 && server.is_closing());
}

#[test]
fn streams_share_what_is_allowed_for_all_of_them() {
    let mut blocks = HeaderBlocks::new(Flush::Sync, 8_192);
    let mut server = server(true);
    for stream in [1, 3] {
        let block = blocks.write(&pairs("GET", "/"));
        server.handle_input(&syn(stream, &block));
        server.poll_request().unwrap();
    }
    server.respond(1, ok(&[1; 40_000]));
    server.respond(3, ok(&[3; 40_000]));
    let expected =
        ["SynReply 1 false", "Data 1 40000 fin", "SynReply 3 false", "Data 3 25536"].map(String::from);
    assert_eq!(frames(&out(&mut server)), expected);
    server.handle_input(&written(&Control::WindowUpdate { stream: 3, delta: 1_000 }));
    assert!(server.output().is_empty());
    server.handle_input(&written(&Control::WindowUpdate { stream: 0, delta: 20_000 }));
    assert_eq!(frames(&out(&mut server)), ["Data 3 14464 fin"]);
}

#[test]
fn settings_change_what_may_be_sent() {
    let mut server = server(false);
    server.handle_input(&written(&Control::Settings(vec![(4, 100), (7, 5)])));
    server.handle_input(client("a", "/10").output());
    server.poll_request().unwrap();
    server.respond(1, ok(b"0123456789"));
    assert_eq!(frames(&out(&mut server)), ["SynReply 1 false", "Data 1 5"]);
    server.handle_input(&written(&Control::Settings(vec![(7, 2)])));
    server.handle_input(&written(&Control::WindowUpdate { stream: 1, delta: 4 }));
    assert_eq!(frames(&out(&mut server)), ["Data 1 1"]);
    server.handle_input(&written(&Control::RstStream { stream: 1, reset: Reset::CANCEL }));
    // A client that sends SETTINGS may have more requests.
    assert!(server.is_idle() && !server.is_closing() && server.output().is_empty());
    server.handle_end();
    assert!(server.is_closing());
}

#[test]
fn who_can_allow_nothing_more_takes_what_comes() {
    let mut server = server(false);
    server.handle_input(client("a", "/10").output());
    server.handle_end();
    server.poll_request().unwrap();
    server.respond(1, ok(&[7; 200_000]));
    assert_eq!(frames(&out(&mut server)), ["SynReply 1 false", "Data 1 200000 fin"]);
    assert!(server.is_closing() && server.is_last());
}

#[test]
fn what_makes_no_sense_ends_the_connection() {
    let good = client("a", "/10").output().to_vec();
    let syn_of = |stream: u32| {
        let mut octets = good.clone();
        octets[8..12].copy_from_slice(&stream.to_be_bytes());
        octets
    };
    for octets in [
        b"GET / HTTP/1.1\r\n".to_vec(),
        // SPDY/2.
        [&[0x80, 2], &good[2..]].concat(),
        syn_of(2),
        syn_of(0),
        // A block that is no zlib stream; a frame that is too long.
        [&good[..18], &vec![0; good.len() - 18]].concat(),
        vec![0x80, 3, 0, 1, 1, 1, 0, 0],
        // PING of 5 octets.
        vec![0x80, 3, 0, 6, 0, 0, 0, 5, 0, 0, 0, 1, 0],
        [good.clone(), syn_of(1)].concat(),
    ] {
        let mut server = server(true);
        server.handle_input(&octets);
        assert_eq!(server.poll_request(), None, "{octets:x?}");
        assert!(server.is_closing());
        let sent = frames(&out(&mut server));
        assert!(matches!(&*sent, [only] if only.starts_with("GoAway")), "{sent:?}");
        server.handle_input(&good);
        assert!(server.output().is_empty());
    }
}

#[test]
fn streams_that_ask_for_nothing_are_answered_or_reset() {
    let mut server = SpdyServer::new(true, Flush::Least, HttpLimits { streams: 2, ..HttpLimits::default() });
    let mut blocks = HeaderBlocks::new(Flush::Least, 8_192);
    let all = pairs("GET", "/");
    for (stream, headers) in [
        (1, pairs("POST", "/")),
        (3, pairs("GET", "*")),
        (5, all.iter().filter(|(name, _)| *name != ":host").copied().collect()),
        (7, [all.as_slice(), &[(":path", "/2")]].concat()),
    ] {
        let block = blocks.write(&headers);
        server.handle_input(&syn(stream, &block));
        assert_eq!(server.poll_request(), None, "{headers:?}");
        assert_eq!(frames(&out(&mut server)), [alloc::format!("SynReply {stream} true")]);
    }
    for stream in [9, 11] {
        let block = blocks.write(&all);
        server.handle_input(&syn(stream, &block));
        assert!(server.output().is_empty());
    }
    let block = blocks.write(&all);
    server.handle_input(&syn(13, &block));
    assert_eq!(frames(&out(&mut server)), ["RstStream { stream: 13, reset: Reset(3) }"]);
    server.handle_input(&written(&Control::Ping(7)));
    server.handle_input(&written(&Control::Ping(8)));
    assert_eq!(frames(&out(&mut server)), ["Ping(7)"]);
}

#[test]
fn a_client_answers_what_it_must_and_tells_what_is_wrong() {
    let mut blocks = HeaderBlocks::new(Flush::Sync, 8_192);
    let mut client = client("a", "/10");
    client.sent(client.output().len());
    let pushed = blocks.write(&pairs("GET", "/pushed"));
    client.handle_input(&syn(2, &pushed)).unwrap();
    client.handle_input(&written(&Control::Ping(2))).unwrap();
    client.handle_input(&written(&Control::Ping(3))).unwrap();
    client.handle_input(&written(&Control::Settings(vec![(4, 100)]))).unwrap();
    client.handle_input(&written(&Control::GoAway { last_good: 1, status: 0 })).unwrap();
    client.handle_input(&written(&Control::Other(77))).unwrap();
    assert_eq!(frames(client.output()), ["RstStream { stream: 2, reset: Reset(3) }", "Ping(2)"]);
    let block = blocks.write(&[("date", "today"), (":status", "404 Not Found"), (":version", "HTTP/1.1")]);
    let reply = Control::SynReply { stream: 1, fin: false, block: &block };
    client.handle_input(&written(&reply)).unwrap();
    let mut data = Vec::new();
    write_data(1, false, b"no", &mut data);
    write_data(1, true, b"", &mut data);
    client.handle_input(&data).unwrap();
    assert_eq!(client.response(), Some(&HttpResponse { status: 404, body: b"no".to_vec() }));

    for (octets, error) in [
        (written(&Control::RstStream { stream: 1, reset: Reset::CANCEL }), HttpError::Reset(5)),
        (written(&Control::GoAway { last_good: 0, status: 0 }), HttpError::Reset(3)),
        (data, HttpError::Head),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), HttpError::BodyTooLarge(3)),
        (Vec::new(), HttpError::Truncated(0)),
    ] {
        let limits = HttpLimits { body: 3, ..HttpLimits::default() };
        let target = Target { host: "a", path: "/" };
        let mut client = SpdyClient::new(target, Flush::Least, limits).unwrap();
        let result = client.handle_input(&octets).and_then(|()| client.handle_end());
        // Octets of another protocol look like DATA of a stream that does not exist.
        let error = if error == HttpError::BodyTooLarge(3) { HttpError::Head } else { error };
        assert_eq!(result, Err(error), "{octets:x?}");
    }
}

fn pairs<'p>(method: &'p str, path: &'p str) -> Vec<(&'p str, &'p str)> {
    vec![
        (":method", method),
        (":path", path),
        (":version", "HTTP/1.1"),
        (":host", "example.net"),
        (":scheme", "http"),
        ("user-agent", "test"),
    ]
}

fn syn(stream: u32, block: &[u8]) -> Vec<u8> {
    let (associated, priority, unidirectional) = (0, 3, false);
    written(&Control::SynStream { stream, associated, priority, fin: true, unidirectional, block })
}

proptest! {
    #[test]
    fn any_octets_are_read(pieces: Vec<Vec<u8>>, behind: bool) {
        let mut client = client("a", "/10");
        let mut server = server(true);
        if behind {
            server.handle_input(client.output());
        }
        for piece in &pieces {
            server.handle_input(piece);
            while let Some(request) = server.poll_request() {
                server.respond(request.stream, ok(b"body"));
            }
        }
        server.handle_end();
        for piece in &pieces {
            if client.handle_input(piece).is_err() {
                break;
            }
        }
        let _ = client.handle_end();
    }

    #[test]
    fn frames_are_read_as_they_were_written(
        kind in 0..9_u16, stream in 1..1_u32 << 31, other in 0..1_u32 << 31, fin: bool, flag: bool,
        priority in 0..8_u8, octets: Vec<u8>,
    ) {
        let block = octets.as_slice();
        let control = match kind {
            0 => Control::SynStream { stream, associated: other, priority, fin, unidirectional: flag, block },
            1 => Control::SynReply { stream, fin, block },
            2 => Control::RstStream { stream, reset: Reset(other) },
            3 => Control::Settings(vec![(stream & 0xFF_FFFF, other); usize::from(priority)]),
            4 => Control::Ping(other),
            5 => Control::GoAway { last_good: other, status: stream },
            6 => Control::Headers { stream, fin, block },
            7 => Control::WindowUpdate { stream: other, delta: stream },
            _ => Control::Other(100 + u16::from(priority)),
        };
        let mut reader = FrameReader::new(1 << 16);
        reader.push(&written(&control));
        let Some(ReceivedFrame::Control(whole)) = reader.next().unwrap() else { panic!() };
        prop_assert_eq!(whole.control().unwrap(), control);
        prop_assert!(reader.is_empty());
    }
}
