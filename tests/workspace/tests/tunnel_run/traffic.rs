//! Traffic through a tunnel, and checks that it arrives unaltered.

use std::collections::HashSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use thinair_os::Namespace;

use super::bench::{ADDRESSES, TunnelBench, address, run, start, stop, wait_for};
use super::relay::RelayRandom;

/// Size of files that are fetched and sent by HTTP, in octets.
const FILE: usize = 300_000;

/// Time limit of a program in seconds.
const LONGEST: u32 = 60;

/// Outcomes of numbered datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) sent: usize,
    pub(crate) once: usize,
    /// Duplicates.
    pub(crate) again: usize,
    /// Equal to none that was sent.
    pub(crate) other: usize,
}

/// Flow of numbered datagrams: side of the sender, version of IP (0: IPv4), and destination port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramFlow {
    pub(crate) from: usize,
    pub(crate) version: usize,
    pub(crate) port: u16,
}

pub(crate) const FLOWS: [DatagramFlow; 4] = [
    DatagramFlow { from: 0, version: 0, port: 9000 },
    DatagramFlow { from: 1, version: 0, port: 9001 },
    DatagramFlow { from: 0, version: 1, port: 9002 },
    DatagramFlow { from: 1, version: 1, port: 9003 },
];

/// Content of a datagram: its number, and octets that depend on the number. From a few octets to more than fit into
/// some carriers at once.
pub(crate) fn content(port: u16, number: u64) -> Vec<u8> {
    let mut random = RelayRandom(number << 16 | u64::from(port));
    let len = random.below(1_200);
    let mut octets = number.to_be_bytes().to_vec();
    octets.extend(random.octets(len));
    octets
}

/// Sends numbered datagrams from one side of a bench to the other.
pub(crate) fn numbered(bench: &TunnelBench, flow: DatagramFlow, count: u64, after: Duration) -> Delivered {
    let end = |side: usize| {
        let address = SocketAddr::new(address(side, flow.version), flow.port);
        (&bench.inside[side], address)
    };
    numbered_between(end(flow.from), end(1 - flow.from), count, after)
}

/// Sends numbered datagrams, about two thousand per second, and receives them, until none has arrived for `after`.
pub(crate) fn numbered_between(
    from: (&Namespace, SocketAddr),
    to: (&Namespace, SocketAddr),
    count: u64,
    after: Duration,
) -> Delivered {
    let bind = |(namespace, address): (&Namespace, SocketAddr)| {
        namespace.within(|| UdpSocket::bind(address)).unwrap().unwrap()
    };
    let port = to.1.port();
    let (from, to) = (bind(from), bind(to));
    from.connect(to.local_addr().unwrap()).unwrap();
    to.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let _ = thinair_os::udp::set_receive_room(&to, 8 << 20);
    let sent_all = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let (mut delivered, mut seen) = (Delivered::default(), HashSet::new());
            let (mut room, mut last) = (vec![0; 2_000], Instant::now());
            let end = last + Duration::from_secs(LONGEST.into());
            while !sent_all.load(Ordering::Relaxed) || last.elapsed() < after {
                let Ok(len) = to.recv(&mut room) else { continue };
                last = Instant::now();
                assert!(last < end, "port {port}: no end");
                let octets = &room[..len];
                let number = octets.first_chunk().map(|number| u64::from_be_bytes(*number));
                match number {
                    Some(number) if number < count && content(port, number) == octets => {
                        if seen.insert(number) { delivered.once += 1 } else { delivered.again += 1 }
                    }
                    _ => {
                        delivered.other += 1;
                        println!("port {port}: {number:?} of {len} octets was never sent");
                    }
                }
            }
            delivered
        });
        let mut sent = 0;
        for number in 0..count {
            sent += usize::from(from.send(&content(port, number)).is_ok());
            std::thread::sleep(Duration::from_micros(400));
        }
        std::thread::sleep(after);
        sent_all.store(true, Ordering::Relaxed);
        Delivered { sent, ..taker.join().unwrap() }
    })
}

/// Pings from side A until `count` were answered. Returns the number of requests; `None` if it was too high.
pub(crate) fn ping(bench: &TunnelBench, version: usize, count: u32, size: u32) -> Option<u32> {
    let (enough, size) = (count.to_string(), size.to_string());
    let to = ADDRESSES[1][version];
    let command = ["ping", "-q", "-i", "0.02", "-w", "20", "-c", &enough, "-s", &size, to];
    let output = run(&bench.inside[0], LONGEST, &command);
    let printed = String::from_utf8_lossy(&output.stdout);
    let before =
        |what: &str| -> Option<u32> { printed.split(what).next()?.rsplit([' ', '\n']).next()?.parse().ok() };
    let (sent, received) = (before(" packets transmitted")?, before(" received")?);
    (received >= count).then_some(sent)
}

/// Runs iperf3 from A to B for a second, by TCP or UDP. Returns the client's report.
pub(crate) fn iperf(bench: &TunnelBench, udp: bool) -> Value {
    let port = if udp { "5202" } else { "5201" };
    let how: &[&str] = if udp { &["-u", "-b", "3M", "-l", "600", "-t", "1"] } else { &["-t", "1"] };
    let mut output_text = String::new();
    // iperf3 gives up a UDP test whose first datagram is lost.
    for _ in 0..4 {
        let server = start(&bench.inside[1], 40, &["iperf3", "-s", "-1", "-p", port]);
        assert!(wait_for(20, || listens(&bench.inside[1], port)), "iperf3 does not listen");
        let client = [&["iperf3", "-J", "-c", ADDRESSES[1][0], "-p", port][..], how].concat();
        let output = run(&bench.inside[0], 20, &client);
        stop(server);
        if output.status.success() {
            return serde_json::from_slice(&output.stdout).unwrap();
        }
        output_text = String::from_utf8_lossy(&output.stdout).into_owned();
    }
    panic!("iperf3 {how:?}: {output_text}\n{}", bench.reported());
}

/// True if a process listens on a TCP port.
fn listens(namespace: &Namespace, port: &str) -> bool {
    let wanted = format!(":{:04X} ", port.parse::<u16>().unwrap());
    let read = || ["tcp", "tcp6"].map(|file| fs::read_to_string(format!("/proc/thread-self/net/{file}")));
    let tables = namespace.within(read).unwrap();
    let mut lines = tables.iter().flatten().flat_map(|table| table.lines());
    lines.any(|line| line.contains(&wanted) && line.contains(" 0A "))
}

/// libcoap's client at A and server at B: notifications of a resource, and a block-wise transfer in each direction.
/// Returns the number of notifications: of the first observation with as many as `needed`, or the largest of four.
pub(crate) fn coap(bench: &TunnelBench, version: usize, needed: usize) -> usize {
    let host = ADDRESSES[1][version];
    let uri = |path: &str| {
        if version == 0 { format!("coap://{host}{path}") } else { format!("coap://[{host}]{path}") }
    };
    let server = start(&bench.inside[1], LONGEST, &["coap-server-notls", "-A", host, "-d", "10"]);
    let client = |options: &[&str], path: &str| {
        let uri = uri(path);
        let command = [&["coap-client-notls"], options, &[&uri]].concat();
        run(&bench.inside[0], LONGEST, &command)
    };
    let ready = wait_for(20, || !client(&["-B", "3"], "/").stdout.is_empty());
    assert!(ready, "no answer of libcoap\n{}", bench.reported());
    let sent = bench.folder.path(&format!("blocks{version}"));
    let octets = RelayRandom(version as u64).octets(3_000);
    fs::write(&sent, &octets).unwrap();
    let (notifications, received) = std::thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let mut most = 0;
            // Each notification is a time of day, with two colons. On a busy machine five seconds may be too few.
            for _ in 0..4 {
                let seen = client(&["-s", "5", "-B", "10"], "/time").stdout;
                most = most.max(seen.iter().filter(|octet| **octet == b':').count() / 2);
                if most >= needed {
                    break;
                }
            }
            most
        });
        let path = bench.folder.path(&format!("received{version}"));
        let mut received = Vec::new();
        // A client that loses several consecutive messages gives up. Its output until then is right, too.
        for _ in 0..4 {
            let _ = fs::remove_file(&path);
            client(&["-m", "put", "-t", "42", "-b", "512", "-B", "15", "-f", &sent], "/blocks");
            client(&["-b", "512", "-B", "15", "-o", &path], "/blocks");
            received = fs::read(&path).unwrap_or_default();
            if !octets.starts_with(&received) {
                let at = received.iter().zip(&octets).position(|(one, other)| one != other);
                let reported = String::from_utf8_lossy(&received[..received.len().min(60)]).into_owned();
                println!("{} octets, other ones from {at:?} on: {reported:?}", received.len());
                // A client that restarts writes a block a second time. Each block was sent.
                let mut blocks = received.chunks(512);
                let all = blocks.all(|block| octets.chunks(512).any(|sent| sent.starts_with(block)));
                assert!(all, "blocks that were never sent");
            }
            if received == octets {
                break;
            }
        }
        (observer.join().unwrap(), received)
    });
    assert!(received == octets, "{} octets in blocks came back as {}", octets.len(), received.len());
    stop(server);
    notifications
}

/// curl at A fetches a file from B, and sends one there; both must arrive octet by octet.
pub(crate) fn curl(bench: &TunnelBench, version: usize) {
    let at = SocketAddr::new(address(1, version), 8_080);
    let listener = bench.inside[1].within(|| TcpListener::bind(at)).unwrap().unwrap();
    listener.set_nonblocking(true).unwrap();
    let served = RelayRandom(1).octets(FILE);
    let sent = RelayRandom(2).octets(FILE);
    let path = bench.folder.path(&format!("upload{version}"));
    fs::write(&path, &sent).unwrap();
    let url = format!("http://{at}/file");
    let most = LONGEST.to_string();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| [serve(&listener, &served), serve(&listener, &served)]);
        let curl = ["curl", "-sS", "-g", "--noproxy", "*", "--max-time", &most, "-H", "Expect:"];
        let fetched = run(&bench.inside[0], LONGEST + 5, &[&curl[..], &[&url]].concat());
        let output_text = String::from_utf8_lossy(&fetched.stderr);
        assert!(fetched.status.success(), "{url}: {output_text}\n{}", bench.reported());
        assert!(fetched.stdout == served, "{} octets came as {}", served.len(), fetched.stdout.len());
        let done = run(&bench.inside[0], LONGEST + 5, &[&curl[..], &["-T", &path, &url]].concat());
        let output_text = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "upload to {url}: {output_text}\n{}", bench.reported());
        let [_, taken] = server.join().unwrap();
        assert!(taken == sent, "{} octets arrived as {}", sent.len(), taken.len());
    });
}

/// Answers one request with a file. Returns the body of the request.
fn serve(listener: &TcpListener, file: &[u8]) -> Vec<u8> {
    let mut connection = None;
    wait_for(u64::from(LONGEST), || {
        connection = listener.accept().ok();
        connection.is_some()
    });
    let Some((mut stream, _)) = connection else { return Vec::new() };
    answer(&mut stream, file).unwrap_or_default()
}

fn answer(stream: &mut TcpStream, file: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(LONGEST.into())))?;
    stream.set_write_timeout(Some(Duration::from_secs(LONGEST.into())))?;
    let (mut octets, mut room) = (Vec::new(), [0; 16_384]);
    let mut more = |octets: &mut Vec<u8>| -> std::io::Result<()> {
        match stream.read(&mut room)? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            len => {
                octets.extend_from_slice(&room[..len]);
                Ok(())
            }
        }
    };
    let head = loop {
        if let Some(end) = octets.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        more(&mut octets)?;
    };
    let text = String::from_utf8_lossy(&octets[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let length = length.unwrap_or(0);
    while octets.len() < head + length {
        more(&mut octets)?;
    }
    let body = if text.starts_with("get") { file } else { b"" };
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    stream.write_all(body)?;
    Ok(octets.split_off(head))
}
