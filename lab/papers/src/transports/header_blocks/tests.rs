//! Header blocks, decoded by other implementations.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use thinair_http::deflate::Flush;
use thinair_http::spdy::HeaderBlocks;

use super::codec::Hpack;
use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// Blocks of one direction, beside their messages.
fn blocks(codec: Codec, talk: HeaderSet, side: MessageSide) -> impl Iterator<Item = (HttpMessage, Vec<u8>)> {
    let mut encoder = codec.encoder();
    TURNS.into_iter().map(move |turn| {
        let message = HttpMessage::new(talk, side, turn);
        let block = encoder.encode(&message).unwrap();
        (message, block)
    })
}

fn directions() -> impl Iterator<Item = (HeaderSet, MessageSide)> {
    TALKS.into_iter().flat_map(|talk| SIDES.map(|side| (talk, side)))
}

#[test]
fn hpack_is_that_of_the_examples_of_rfc_7541() {
    // Appendix C.4: requests with Huffman's code.
    let first = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
    let mut second = first.to_vec();
    second.push(("cache-control", "no-cache"));
    let third = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ];
    let mut requests = Hpack::new(4_096);
    assert_eq!(requests.block(&first).unwrap(), hex("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff"));
    assert_eq!(requests.block(&second).unwrap(), hex("8286 84be 5886 a8eb 1064 9cbf"));
    let block = hex("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf");
    assert_eq!(requests.block(&third).unwrap(), block);
    // Appendix C.6: responses, and a table of 256 octets, from which entries are evicted.
    let response = |status, date| {
        [
            (":status", status),
            ("cache-control", "private"),
            ("date", date),
            ("location", "https://www.example.com"),
        ]
    };
    let mut responses = Hpack::new(256);
    let block = hex(
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 \
            63c7 8f0b 97c8 e9ae 82ae 43d3",
    );
    assert_eq!(responses.block(&response("302", "Mon, 21 Oct 2013 20:13:21 GMT")).unwrap(), block);
    let block = responses.block(&response("307", "Mon, 21 Oct 2013 20:13:21 GMT")).unwrap();
    assert_eq!(block, hex("4883 640e ffc1 c0bf"));
    let mut third = response("200", "Mon, 21 Oct 2013 20:13:22 GMT").to_vec();
    third.push(("content-encoding", "gzip"));
    third.push(("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"));
    let block = hex(
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 \
            b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    );
    assert_eq!(responses.block(&third).unwrap(), block);
}

#[test]
fn every_block_says_what_it_is_made_of() {
    for (talk, side) in directions() {
        for codec in [Codec::Spdy, Codec::IotSpdy] {
            let mut reader = HeaderBlocks::new(Flush::Sync, 8_192);
            for (message, block) in blocks(codec, talk, side) {
                let headers = reader.read(&block).unwrap();
                for (name, value) in message.spdy() {
                    assert_eq!(headers.value(name), Some(value), "{codec:?} {talk:?} {side:?}");
                }
            }
        }
        let mut decoder = httlib_hpack::Decoder::default();
        for (message, block) in blocks(Codec::Hpack, talk, side) {
            let mut fields = Vec::new();
            decoder.decode(&mut block.clone(), &mut fields).unwrap();
            let fields: Vec<_> =
                fields.iter().map(|(name, value, _)| (name.as_slice(), value.as_slice())).collect();
            assert_eq!(fields, octets_of(&message));
        }
        for (message, block) in blocks(Codec::Qpack, talk, side) {
            let decoded = qpack::decode_stateless(&mut block.as_slice(), u64::MAX).unwrap();
            let fields: Vec<_> = decoded.fields.iter().map(|of| (&*of.name, &*of.value)).collect();
            assert_eq!(fields, octets_of(&message));
        }
    }
}

fn octets_of(message: &HttpMessage) -> Vec<(&[u8], &[u8])> {
    let fields = message.fields_of_http2().into_iter();
    fields.map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
}

#[test]
fn huffmans_code_makes_no_text_longer() {
    for (talk, side) in directions() {
        for turn in TURNS {
            for (name, value) in HttpMessage::new(talk, side, turn).fields_of_http2() {
                for text in [name, value] {
                    let mut coded = Vec::new();
                    let one = (text.as_bytes().to_vec(), Vec::new(), httlib_hpack::Encoder::HUFFMAN_NAME);
                    httlib_hpack::Encoder::default().encode(one, &mut coded).unwrap();
                    // An octet for the representation, one for the length, and those of an empty value.
                    assert!(coded.len() <= 1 + 1 + text.len() + 1, "{text}");
                }
            }
        }
    }
}

#[test]
fn what_was_said_is_not_said_again_where_blocks_are_compressed() {
    for (talk, side) in directions() {
        let octets = |codec: Codec, turn: Turn| {
            let octets: Vec<_> = blocks(codec, talk, side).map(|(_, block)| block.len()).collect();
            octets[turn as usize]
        };
        for codec in [Codec::Spdy, Codec::IotSpdy, Codec::Hpack] {
            // An entry of HPACK's static table takes one octet from the start.
            assert!(octets(codec, Turn::Second) <= octets(codec, Turn::First), "{codec:?} {talk:?} {side:?}");
            assert!(
                octets(codec, Turn::First) < octets(Codec::Http1, Turn::First)
                    || side == MessageSide::Request
            );
        }
        for turn in TURNS {
            assert!(octets(Codec::IotSpdy, turn) < octets(Codec::Spdy, turn), "{talk:?} {side:?} {turn:?}");
        }
    }
}

/// nghttpd, if it is installed.
struct NghttpServer {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Drop for NghttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl NghttpServer {
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        for octets in [10, 50] {
            std::fs::write(folder.path().join(octets.to_string()), vec![b'x'; octets]).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("nghttpd");
        command.args(["--no-tls", "-a", "127.0.0.1", "-d"]).arg(folder.path()).arg(port.to_string());
        match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(child) => Some(Self { child, port, _folder: folder }),
            Err(why) if why.kind() == ErrorKind::NotFound => None,
            Err(why) => panic!("{why}"),
        }
    }

    fn connect(&self) -> TcpStream {
        let begin = Instant::now();
        loop {
            match TcpStream::connect(("127.0.0.1", self.port)) {
                Ok(stream) => return stream,
                Err(_) if begin.elapsed() < Duration::from_secs(10) => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(why) => panic!("nghttpd does not listen: {why}"),
            }
        }
    }
}

/// Frame of HTTP/2. RFC 9113, section 4.1.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    [&length[..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

#[test]
fn nghttpd_finds_the_objects_that_hpack_blocks_ask_for() {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    /// END_STREAM and END_HEADERS.
    const ENDS: u8 = 0x5;
    let Some(server) = NghttpServer::start() else {
        println!("skipped: there is no nghttpd (Debian: nghttp2-server)");
        return;
    };
    let mut stream = server.connect();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    sent.extend(frame(SETTINGS, 0, 0, &[]));
    for (at, (_, block)) in blocks(Codec::Hpack, HeaderSet::Browser, MessageSide::Request).enumerate() {
        sent.extend(frame(HEADERS, ENDS, 1 + 2 * at as u8, &block));
    }
    stream.write_all(&sent).unwrap();
    let mut objects = [0; 3];
    while objects != [10, 10, 50] {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).unwrap();
        if head[3] == DATA {
            objects[usize::from(head[8]) / 2] += payload.len();
            assert!(payload.iter().all(|octet| *octet == b'x'), "{objects:?}");
        }
    }
}
