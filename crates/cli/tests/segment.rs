//! `thinair segment proxy`: streams arrive complete in both directions, or both sides receive an error.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than any step of these tests.
const LIMIT: Duration = Duration::from_secs(60);

/// A running proxy, ended with the test.
struct Proxy {
    child: Child,
    address: SocketAddr,
    stdout: BufReader<ChildStdout>,
}

impl Proxy {
    fn start(to: SocketAddr, options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_thinair"))
            .args(["segment", "proxy", "--listen", "0", "--json", "--to", &to.to_string()])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split(' ').find_map(|word| word.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, address, stdout }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Reads the next line of its output.
    fn next_report(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn server() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Octets that depend on their position.
fn octets(seed: u32, len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761).rotate_left(seed) >> 11) as u8).collect()
}

fn is_reset(result: std::io::Result<usize>) -> bool {
    result.is_err_and(|why| why.kind() == ErrorKind::ConnectionReset)
}

#[test]
fn streams_come_through_both_ways_and_each_way_ends_by_itself() {
    let (listener, address) = server();
    for (side, sizer) in [("server", "adaptive"), ("client", "fixed:100"), ("server", "tssa")] {
        let mut proxy = Proxy::start(address, &["--constrained", side, "--sizer", sizer]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..12 {
                    let mut stream = accept(&listener);
                    scope.spawn(move || {
                        // The server answers at the end of the request, with twice as many octets in reverse
                        // order.
                        let mut taken = Vec::new();
                        stream.read_to_end(&mut taken).unwrap();
                        taken.extend(taken.clone().iter().rev());
                        stream.write_all(&taken).unwrap();
                    });
                }
            });
            for seed in 0..12 {
                let mut stream = proxy.connect();
                scope.spawn(move || {
                    let sent = octets(seed, [0, 1, 99, 100, 101, 65_536, 300_000][seed as usize % 7]);
                    for piece in sent.chunks(1 + 7_000 * seed as usize) {
                        stream.write_all(piece).unwrap();
                    }
                    stream.shutdown(Shutdown::Write).unwrap();
                    let mut back = Vec::new();
                    stream.read_to_end(&mut back).unwrap();
                    assert!(back[..sent.len()] == sent && back.len() == 2 * sent.len());
                    assert!(back[sent.len()..].iter().eq(sent.iter().rev()));
                });
            }
        });
        for _ in 0..12 {
            let report = proxy.next_report();
            assert_eq!(report["state"], "complete", "{report}");
            assert_eq!(report["acknowledged"], report["octets"], "{report}");
            let times =
                if side == "server" { (2, "octets_back", "octets") } else { (2, "octets", "octets_back") };
            assert_eq!(
                report[times.1].as_u64().unwrap(),
                times.0 * report[times.2].as_u64().unwrap(),
                "{report}"
            );
        }
    }
}

#[test]
fn a_stream_that_is_cut_short_does_not_look_complete() {
    let (listener, address) = server();
    let mut proxy = Proxy::start(address, &["--constrained", "server"]);
    // The server closes the connection while unread octets wait.
    let mut stream = proxy.connect();
    stream.write_all(b"something").unwrap();
    let other = accept(&listener);
    while other.peek(&mut [0; 9]).unwrap() < 9 {}
    drop(other);
    assert!(is_reset(stream.read(&mut [0])));
    let report = proxy.next_report();
    assert_eq!((&report["state"], report["error"].as_str().is_some()), (&"failed".into(), true), "{report}");

    // The client closes the connection.
    let mut stream = proxy.connect();
    let mut other = accept(&listener);
    other.write_all(b"something").unwrap();
    while stream.peek(&mut [0; 9]).unwrap() < 9 {}
    stream.write_all(b"x").unwrap();
    drop(stream);
    // Octets that it sent before may be lost, too.
    let mut octet = [0];
    let first = other.read(&mut octet);
    assert!(is_reset(if first.is_ok() { other.read(&mut octet) } else { first }));
    assert_eq!(proxy.next_report()["state"], "failed");

    // No server listens, and no other test takes the port.
    let mut proxy = Proxy::start(SocketAddr::from(([127, 0, 0, 1], 1)), &["--constrained", "server"]);
    let mut stream = proxy.connect();
    assert!(is_reset(stream.read(&mut octet)));
    let report = proxy.next_report();
    assert!(report["error"].as_str().unwrap().contains("refused"), "{report}");
}

#[test]
fn who_does_not_read_holds_back_who_writes_and_nothing_is_lost() {
    let (listener, address) = server();
    let mut proxy = Proxy::start(address, &["--constrained", "server", "--sizer", "fixed:1000"]);
    let stream = proxy.connect();
    let mut other = accept(&listener);
    stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let all = octets(3, 64 << 20);
    let mut written = 0;
    while let Ok(count) = (&stream).write(&all[written..]) {
        written += count;
        assert!(written < all.len(), "it takes whatever comes");
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let mut taken = Vec::new();
    other.read_to_end(&mut taken).unwrap();
    assert!(taken == all[..written], "{} of {written}", taken.len());
    drop((other, stream));
    assert_eq!(proxy.next_report()["octets"], written);
}

#[test]
fn one_more_stream_waits_until_another_one_has_ended() {
    let (listener, address) = server();
    let mut proxy = Proxy::start(address, &["--constrained", "client", "--max-connections", "2"]);
    let first = proxy.connect();
    let (_second, mut third) = (proxy.connect(), proxy.connect());
    let (of_first, _of_second) = (accept(&listener), accept(&listener));
    third.write_all(b"x").unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    drop((first, of_first));
    assert_eq!(proxy.next_report()["state"], "complete");
    listener.set_nonblocking(false).unwrap();
    let mut octet = [0];
    accept(&listener).read_exact(&mut octet).unwrap();
    assert_eq!(octet, *b"x");
}

#[test]
fn it_ends_when_it_is_told_to_and_so_do_streams() {
    let (listener, address) = server();
    let mut proxy = Proxy::start(address, &["--constrained", "server", "--every", "0.05"]);
    let mut stream = proxy.connect();
    let mut other = accept(&listener);
    stream.write_all(b"x").unwrap();
    other.read_exact(&mut [0]).unwrap();
    let report = proxy.next_report();
    assert_eq!((&report["state"], &report["stream"]), (&"open".into(), &0.into()));
    let asked = Instant::now();
    assert!(Command::new("kill").args(["-INT", &proxy.child.id().to_string()]).status().unwrap().success());
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
    println!("it took {:?} to end", asked.elapsed());
    assert!(is_reset(stream.read(&mut [0])) && is_reset(other.read(&mut [0])));
    let last =
        std::iter::repeat_with(|| proxy.next_report()).find(|report| report["state"] != "open").unwrap();
    assert_eq!((&last["state"], last["octets"].as_u64()), (&"failed".into(), Some(1)));
}

fn fails(arguments: &[&str], words: &[&str]) {
    let run = || -> std::io::Result<Output> {
        Command::new(env!("CARGO_BIN_EXE_thinair")).args(["segment", "proxy"]).args(arguments).output()
    };
    let output = run().unwrap();
    let report = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {report}");
    assert!(words.iter().all(|word| report.contains(word)), "{words:?} in: {report}");
}

#[test]
fn wrong_arguments_are_told() {
    let usual = ["--listen", "0", "--constrained", "server"];
    fails(&usual, &["--to"]);
    let usual = [&usual[..], &["--to", "127.0.0.1:9"]].concat();
    fails(&[&usual[..], &["--sizer", "fixed"]].concat(), &["fixed:OCTETS", "adaptive"]);
    fails(&[&usual[..], &["--least", "500", "--most", "100"]].concat(), &["--least 500", "--most 100"]);
    fails(
        &["--listen", "nowhere", "--to", "127.0.0.1:9", "--constrained", "client"],
        &["an address and a port"],
    );
    fails(&["--listen", "0", "--to", "127.0.0.1", "--constrained", "client"], &["HOST:PORT"]);
}
