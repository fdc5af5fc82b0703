//! HTTP and SPDY from outside, in pieces of any size; header blocks of SPDY from outside, optionally after the start of
//! a valid zlib stream; and octets through our encoder, each piece of which is readable as soon as its octets are
//! there.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use thinair_http::deflate::{Decoder, Encoder, Flush};
use thinair_http::spdy::DICTIONARY;
use thinair_http::{HttpLimits, HttpProtocol, HttpResponse, Target};

/// Limit on a body and on a decompressed block, in octets.
const MOST: usize = 4_096;

#[derive(Arbitrary, Debug)]
enum HttpInput<'a> {
    Client { protocol: u8, pieces: Vec<&'a [u8]> },
    Server { protocol: u8, keeps: bool, asks: bool, body: u16, pieces: Vec<&'a [u8]> },
    Block { head: bool, pieces: Vec<&'a [u8]> },
    Stream { sync: bool, pieces: Vec<&'a [u8]> },
}

fn protocol(number: u8) -> HttpProtocol {
    [HttpProtocol::Http, HttpProtocol::IotHttp, HttpProtocol::IotSpdy][usize::from(number) % 3]
}

fuzz_target!(|input: HttpInput<'_>| {
    let limits = HttpLimits { body: MOST, ..HttpLimits::default() };
    let target = Target { host: "a", path: "/10" };
    match input {
        HttpInput::Client { protocol: number, pieces } => {
            let mut client = protocol(number).client(target, limits).expect("it can be asked for");
            for piece in pieces {
                if client.handle_input(piece).is_err() {
                    return;
                }
                client.sent(client.output().len());
            }
            let _ = client.handle_end();
            assert!(client.response().is_none_or(|response| response.body.len() <= MOST));
        }
        HttpInput::Server { protocol: number, keeps, asks, body, pieces } => {
            let protocol = protocol(number);
            let mut server = protocol.server(keeps, limits);
            if asks && let Ok(client) = protocol.client(target, limits) {
                server.handle_input(client.output());
            }
            for piece in pieces {
                server.handle_input(piece);
                while let Some(request) = server.poll_request() {
                    let body = vec![7; body.into()];
                    server.respond(request.stream, HttpResponse { status: 200, body });
                }
                server.sent(server.output().len());
            }
            server.handle_end();
            assert!(server.poll_request().is_some() || server.is_closing());
        }
        HttpInput::Block { head, pieces } => {
            let mut decoder = Decoder::new(DICTIONARY);
            if head {
                let _ = decoder.decode(&[0x38, 0xEB, 0xE3, 0xC6, 0xA7, 0xC2], MOST);
            }
            for piece in pieces {
                if decoder.decode(piece, MOST).is_err() {
                    return;
                }
            }
        }
        HttpInput::Stream { sync, pieces } => {
            let mut encoder = Encoder::new(DICTIONARY, if sync { Flush::Sync } else { Flush::Least });
            let mut decoder = Decoder::new(DICTIONARY);
            for piece in pieces {
                let octets = encoder.encode(piece);
                assert_eq!(decoder.decode(&octets, piece.len()).as_deref(), Ok(piece));
            }
        }
    }
});
