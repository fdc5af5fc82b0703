//! Attacks that must not exhaust a server's memory, or keep it from answering others.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::time::Duration;

use thinair_os::udp::send;

use super::served::Served;

/// Datagrams of a flood; fewer for an unoptimized server.
const FLOOD: usize = if cfg!(debug_assertions) { 200_000 } else { 1_000_000 };

/// Permitted growth of a server's memory in KiB: pages that are counted late, and the allocator's overhead.
const SLACK: u64 = 3_072;

/// Pseudorandom numbers.
struct FloodRandom(u64);

impl FloodRandom {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Sends datagrams from several sockets, half of which begin as messages do.
fn flood(served: &Served, count: usize, seed: u64) {
    let sockets: Vec<_> = (0..50).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let mut random = FloodRandom(seed);
    let mut datagrams = vec![[0; 64]; 64];
    for round in 0..count / 64 {
        for datagram in &mut datagrams {
            for octets in datagram.chunks_exact_mut(8) {
                octets.copy_from_slice(&random.next().to_ne_bytes());
            }
            if random.next().is_multiple_of(2) {
                // Version 1, a valid Token length, and a method.
                datagram[0] = 0x40 | datagram[0] & 0x37;
                datagram[1] %= 6;
            }
        }
        let slices: Vec<_> =
            datagrams.iter().map(|datagram| &datagram[..4 + (datagram[9] as usize) % 60]).collect();
        let _ = send(&sockets[round % sockets.len()], Some(served.address()), &slices);
    }
}

/// Starts uploads without continuing them, from several sockets: PUT /NUMBER, Block1 0/1/1024.
fn uploads(served: &Served, count: u16) {
    let sockets: Vec<_> = (0..40).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    for number in 0..count {
        let [high, low] = number.to_be_bytes();
        let path = format!("{number:05}");
        let front = [&[0x40, 3, high, low, 0xB5][..], path.as_bytes(), &[0xD1, 3, 0x0E, 0xFF]].concat();
        let datagram = [&front[..], &[7; 1_024]].concat();
        let socket = &sockets[usize::from(number) % sockets.len()];
        socket.send_to(&datagram, served.address()).unwrap();
        if number % 64 == 0 {
            assert!(served.answers());
        }
    }
}

/// Opens streams that send nothing, or half a message.
fn half_open(served: &Served, count: usize) {
    let mut open = Vec::new();
    for number in 0..count {
        let mut stream = served.connect();
        match number % 3 {
            0 => {}
            // First half of a CSM.
            1 => stream.write_all(b"\x10").unwrap(),
            // A CSM, and the start of a message of 60,000 octets.
            _ => stream.write_all(b"\x00\xE1\xE0\xE9\x53\x01half").unwrap(),
        }
        open.push(stream);
        if open.len() > 300 {
            open.clear();
        }
    }
}

#[test]
fn garbage_and_what_is_never_finished_take_no_memory() {
    let served = Served::start(&["--writable", "--test-resources"]);
    let all = |flooded: usize, uploaded: u16, opened: usize, seed: u64| {
        flood(&served, flooded, seed);
        assert!(served.answers(), "after a flood");
        uploads(&served, uploaded);
        half_open(&served, opened);
        assert!(served.answers(), "after streams");
        served.resident()
    };
    // Fills tables and buffers once, before the memory is measured.
    let before = all(FLOOD / 4, 300, 300, 7);
    let after = all(FLOOD, 2_000, 2_000, 11);
    println!("{before} KiB resident, then {after} KiB");
    assert!(after < before + SLACK, "{before} KiB resident, then {after} KiB");
    // Some of the garbage is a POST, which creates a file; no upload was complete.
    assert!((0..2_000).all(|number| !served.root().join(format!("{number:05}")).exists()));
    let statistics = served.end();
    println!("{statistics:#}");
    assert!(statistics["datagrams"]["malformed"].as_u64() > Some(1_000));
    assert!(statistics["connections"]["displaced"].as_u64() > Some(1_000));
}

/// Reads the message at the start of a stream. Returns its code. All messages here have less than 269 octets.
fn read_code(stream: &mut TcpStream) -> Option<u8> {
    let mut first = [0];
    stream.read_exact(&mut first).ok()?;
    let (length, token) = (usize::from(first[0] >> 4), usize::from(first[0] & 0xF));
    let mut extended = [0];
    let rest = match length {
        13 => {
            stream.read_exact(&mut extended).ok()?;
            13 + usize::from(extended[0])
        }
        length => length,
    };
    let mut code = [0];
    stream.read_exact(&mut code).ok()?;
    stream.read_exact(&mut vec![0; token + rest]).ok()?;
    Some(code[0])
}

const CSM: u8 = 0xE1;
const RELEASE: u8 = 0xE4;
const ABORT: u8 = 0xE5;
const CONTENT: u8 = 0x45;

#[test]
fn streams_are_released_when_the_server_ends() {
    let mut served = Served::start(&[]);
    let mut stream = served.connect();
    // A CSM, and GET /time.
    stream.write_all(b"\x00\xE1\x50\x01\xB4time").unwrap();
    assert_eq!([(); 2].map(|()| read_code(&mut stream)), [Some(CSM), Some(CONTENT)]);
    served.ask_to_end();
    assert_eq!([(); 2].map(|()| read_code(&mut stream)), [Some(RELEASE), None]);
    assert_eq!(served.ended()["requests"], 1);
}

#[test]
fn a_stream_that_is_none_is_aborted() {
    let served = Served::start(&[]);
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x50\x01\xB4time", b"\x0F\xE1"] {
        let mut stream = served.connect();
        stream.write_all(nonsense).unwrap();
        assert_eq!([(); 3].map(|()| read_code(&mut stream)), [Some(CSM), Some(ABORT), None], "{nonsense:?}");
    }
    // A message above the maximum size is rejected at once.
    let mut stream = served.connect();
    stream.write_all(b"\x00\xE1\xF0\x7F\xFF\xFF\xFF\x01").unwrap();
    assert_eq!([(); 3].map(|()| read_code(&mut stream)), [Some(CSM), Some(ABORT), None]);
    assert!(served.answers());
}

#[test]
fn what_is_asked_in_a_row_is_answered_no_faster_than_it_is_read() {
    let served = Served::start(&[]);
    std::fs::write(served.root().join("large.bin"), vec![7; 1 << 20]).unwrap();
    let mut stream = served.connect();
    // A CSM with Max-Message-Size 2 MiB, then requests for a mebibyte each.
    stream.write_all(b"\x40\xE1\x23\x20\x00\x00").unwrap();
    assert_eq!(read_code(&mut stream), Some(CSM));
    let before = served.resident();
    stream.write_all(&b"\xA0\x01\xB9large.bin".repeat(REQUESTS)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let grown = served.resident().saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB");
    assert!(served.answers());
    // Nothing is lost meanwhile: every octet of every response arrives.
    let mut octets = 0;
    let mut buffer = vec![0; 1 << 20];
    while let Some(len) = stream.read(&mut buffer).ok().filter(|len| *len > 0) {
        octets += len;
    }
    println!("{octets} octets, and {grown} KiB more resident");
    assert!((REQUESTS << 20..(REQUESTS << 20) + 100 * REQUESTS).contains(&octets), "{octets}");
}

/// Number of consecutive requests.
const REQUESTS: usize = 50;

/// RFC 9175, section 2.3: small blocks until then; and the response comes from the address of the request.
#[test]
fn strangers_are_asked_to_echo_and_the_asked_address_answers() {
    let served = Served::at("0.0.0.0:0", &["--test-resources"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let asked = std::net::SocketAddr::from(([127, 0, 0, 77], served.port()));
    let ask = |request: &[u8]| {
        socket.send_to(request, asked).unwrap();
        let mut answer = vec![0; 2_000];
        let (len, from) = socket.recv_from(&mut answer).unwrap();
        assert_eq!(from, asked);
        answer.truncate(len);
        answer
    };
    // 2.05 with Content-Format 0 and Block2 0/1/16, without room for Echo.
    let answer = ask(b"\x40\x01\x00\x01\xB5large");
    assert_eq!((answer[1], &answer[4..7]), (CONTENT, &[0xC0, 0xB1, 0x08][..]));
    assert!(answer.len() <= 3 * 10);
    // Block2 1/1/16 with Echo: option 252, 6 octets.
    let answer = ask(b"\x40\x01\x00\x02\xB5large\xC1\x10");
    assert_eq!((answer[1], &answer[4..9]), (CONTENT, &[0xC0, 0xB1, 0x18, 0xD6, 216][..]));
    assert!(answer.len() <= 3 * 12);
    let echo = &answer[9..15];
    let answer = ask(&[b"\x40\x01\x00\x03\xB5large\xD6\xE4", echo].concat());
    assert_eq!(answer[1], CONTENT);
    assert!(answer.len() > 1_000);
    // From now on the address is verified.
    assert!(ask(b"\x40\x01\x00\x04\xB5large").len() > 1_000);
}
