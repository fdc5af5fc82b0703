//! `thinair-lab serve` and `thinair-lab fetch` against each other and against malicious peers, on loopback.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[cfg(feature = "http3")]
mod http3;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Time limit of a step, longer than any takes here.
const LIMIT: Duration = Duration::from_secs(60);

/// Each service, and the scheme of its URLs.
const SERVICES: [(&str, &str); 5] = [
    ("coap", "coap"),
    ("coap-tcp", "coap+tcp"),
    ("http", "http"),
    ("iot-http", "http"),
    ("iot-spdy", "http"),
];

/// Server, which ends with the test.
struct TestServer {
    child: Child,
    address: SocketAddr,
}

impl TestServer {
    fn start(service: &str, folder: &TempDir, options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_thinair-lab"))
            .args(["serve", "--service", service, "--bind", "0", "--json"])
            .args(options)
            .arg(folder.path().join("served"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit('/').next().and_then(|address| address.parse().ok());
        Self { child, address: address.unwrap_or_else(|| panic!("{line}")) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Sends octets. Returns all octets that the server sends until it closes.
    fn ask(&self, octets: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(octets).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    /// Stops the server. Returns its counters.
    fn end(&mut self) -> Value {
        let start = Instant::now();
        let asked = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(asked.success());
        assert!(self.child.wait().unwrap().success());
        assert!(start.elapsed() < LIMIT / 4);
        let mut report = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut report).unwrap();
        serde_json::from_str(&report).unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let served = folder.path().join("served");
    fs::create_dir(&served).unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    fs::write(served.join("10"), "0123456789").unwrap();
    fs::write(served.join("empty"), "").unwrap();
    fs::write(served.join("large"), large()).unwrap();
    folder
}

/// Larger than any window or buffer, and binary.
fn large() -> Vec<u8> {
    (0..700_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn fetch(service: &str, url: &str, options: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_thinair-lab"))
        .args(["fetch", "--service", service, url])
        .args(options)
        .output();
    command.unwrap()
}

fn report(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn objects_come_as_they_are_by_every_service() {
    let folder = folder();
    for (service, scheme) in SERVICES {
        let mut server = TestServer::start(service, &folder, &[]);
        let url = |path: &str| format!("{scheme}://{}/{path}", server.address);
        for (path, object) in [("10", b"0123456789".to_vec()), ("empty", Vec::new()), ("large", large())] {
            let output = fetch(service, &url(path), &[]);
            assert!(output.status.success(), "{service}: {}", report(&output));
            assert!(output.stdout == object, "{service} {path}: {} octets", output.stdout.len());
        }
        let json = fetch(service, &url("10"), &["--json"]);
        let json: Value = serde_json::from_slice(&json.stdout).unwrap();
        assert_eq!(json["schema"], "thinair.fetch/1");
        assert_eq!((&json["service"], &json["octets"]), (&service.into(), &10.into()));
        let status = if scheme.starts_with("coap") { 205 } else { 200 };
        assert_eq!((&json["status"], &json["body"]), (&status.into(), &"0123456789".into()));
        assert!(json["seconds"].as_f64().unwrap() > 0.0 && json["received_octets"].as_u64().unwrap() > 10);
        let file = folder.path().join("fetched");
        let output = fetch(service, &url("large"), &["--json", "--output", file.to_str().unwrap()]);
        assert!(output.status.success() && fs::read(&file).unwrap() == large());
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&json["octets"], json.get("body")), (&700_000.into(), None));
        for path in ["missing", ".hidden", "%2e%2e%2fsecret"] {
            let output = fetch(service, &url(path), &[]);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{service} {path}");
            assert!(report(&output).contains("04 Not Found"), "{service}: {}", report(&output));
        }
        let done = server.end();
        assert_eq!((&done["requests"], &done["errors"]), (&8.into(), &3.into()), "{service}: {done}");
    }
}

#[test]
fn other_methods_are_answered_with_those_that_there_are() {
    let folder = folder();
    let mut server = TestServer::start("http", &folder, &[]);
    for request in [
        "POST /10 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "PUT /10 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "DELETE /10 HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let answer = String::from_utf8(server.ask(request.as_bytes())).unwrap();
        assert!(answer.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{answer}");
        assert!(answer.contains("\r\nAllow: GET, HEAD\r\n"), "{answer}");
    }
    server.end();
}

#[test]
fn the_code_of_a_response_is_printed_once() {
    let folder = folder();
    let server = TestServer::start("coap", &folder, &[]);
    let uri = format!("coap://{}/missing", server.address);
    for (command, options) in [
        ("get", &[][..]),
        ("get", &["-v"]),
        ("get", &["--json"]),
        ("get", &["--json", "-v"]),
        ("discover", &["-v"]),
    ] {
        let run = Command::new(env!("CARGO_BIN_EXE_thinair-lab"))
            .args(["coap", command, &uri])
            .args(options)
            .output();
        let output = run.unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", report(&output));
        assert_eq!(report(&output).matches("4.04").count(), 1, "{command} {options:?}: {}", report(&output));
    }
}

#[test]
fn streams_can_end_in_other_ways() {
    let folder = folder();
    for service in ["http", "iot-http", "iot-spdy"] {
        let server = TestServer::start(service, &folder, &[]);
        for options in [&["--close", "request"][..], &["--close", "reset"], &["--quick-ack"]] {
            for (path, len) in [("10", 10), ("large", 700_000)] {
                let output = fetch(service, &format!("http://{}/{path}", server.address), options);
                assert_eq!(output.stdout.len(), len, "{service} {options:?}: {}", report(&output));
            }
        }
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = folder();
    let server = TestServer::start("http", &folder, &[]);
    let url = format!("http://{}/10", server.address);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (service, url, options, code, words) in [
        ("http", &*format!("http://{closed}/"), &[][..], 1, "is this its port"),
        ("iot-http", &format!("http://{closed}/"), &[], 1, "is this its port"),
        ("iot-spdy", &url, &[], 1, "speak this service"),
        ("http", &url, &["--max-body", "9"], 1, "--max-body"),
        ("http", &url, &["--output", "/nowhere/file"], 1, "cannot write /nowhere/file"),
        ("http", "https://h/", &[], 2, "TLS"),
        ("http", "coap://h/", &[], 2, "http://HOST"),
        ("coap", "http://h/", &[], 2, "not a CoAP scheme"),
        ("coap", "coap+tcp://h/", &[], 2, "--service coap-tcp"),
        ("http", "http://h:0/", &[], 2, "a port is"),
        ("spdy", &url, &[], 2, "iot-spdy"),
    ] {
        let output = fetch(service, url, options);
        assert_eq!(output.status.code(), Some(code), "{service} {url}: {}", report(&output));
        assert!(report(&output).contains(words), "{}", report(&output));
    }
    let wrong = Command::new(env!("CARGO_BIN_EXE_thinair-lab"))
        .args(["serve", "--service", "http", "/nowhere"])
        .output();
    assert_eq!(wrong.unwrap().status.code(), Some(2));
    let taken = Command::new(env!("CARGO_BIN_EXE_thinair-lab"))
        .args(["serve", "--service", "http", "--bind", &server.address.to_string()])
        .output()
        .unwrap();
    assert_eq!(taken.status.code(), Some(1));
    assert!(report(&taken).contains("listen to 127.0.0.1:"), "{}", report(&taken));
}

/// The server does not respond: `fetch` ends by a signal or by its time limit.
#[test]
fn a_fetch_ends_when_it_is_asked_to() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let output = fetch("http", &url, &["--timeout", "200ms", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(report(&output).contains("--timeout"), "{}", report(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["status"].is_null() && json["error"].as_str().unwrap().contains("200ms"), "{json}");

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_thinair-lab"))
        .args(["fetch", "--service", "iot-http", &format!("http://{}/", silent.local_addr().unwrap())])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Its signal handlers are in place once its request arrives.
    let (mut stream, _) = silent.accept().unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    let start = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(start.elapsed() < LIMIT / 4);
}

/// A server that sends continuously, but never the requested object.
#[test]
fn a_server_that_does_not_stop_talking_is_left_when_the_time_is_over() {
    let talks = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", talks.local_addr().unwrap());
    let talking = std::thread::spawn(move || {
        let (mut stream, _) = talks.accept().unwrap();
        let more = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
        while stream.write_all(&more).is_ok() {}
    });
    let output = fetch("http", &url, &["--timeout", "300ms"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(report(&output).contains("300ms"), "{}", report(&output));
    talking.join().unwrap();
}

#[test]
fn no_path_leads_out_and_what_is_no_request_is_refused() {
    let folder = folder();
    let server = TestServer::start("http", &folder, &["--keep", "0s"]);
    for (request, status) in [
        ("GET /10 HTTP/1.1\r\nHost: h\r\n\r\n", "200"),
        ("GET /../secret HTTP/1.1\r\nHost: h\r\n\r\n", "404"),
        ("GET /..%2fsecret HTTP/1.1\r\nHost: h\r\n\r\n", "404"),
        ("GET http://h/%2e%2e/secret HTTP/1.1\r\nHost: h\r\n\r\n", "404"),
        ("GET //etc/passwd HTTP/1.1\r\nHost: h\r\n\r\n", "404"),
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "404"),
        ("PUT /10 HTTP/1.1\r\nHost: h\r\n\r\n", "405"),
        ("GET /10 HTTP/1.1\r\n\r\n", "400"),
        ("\0\r\n\r\n", "400"),
    ] {
        let answer = server.ask(request.as_bytes());
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(!answer.contains("secret"));
    }
    // Longer than any head may be, and more after it.
    let answer = server.ask(&[b"GET / HTTP/1.1\r\nA: ".as_slice(), &[b'a'; 60_000]].concat());
    assert!(answer.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&answer));
}

/// The maximum number of connections is silent; the next one is served nevertheless, and so is one that sends octet by
/// octet.
#[test]
fn those_who_say_nothing_do_not_keep_others_away() {
    let folder = folder();
    for service in ["http", "iot-spdy"] {
        let mut server = TestServer::start(service, &folder, &["--max-connections", "8"]);
        let silent: Vec<TcpStream> = (0..8).map(|_| server.connect()).collect();
        let output = fetch(service, &format!("http://{}/10", server.address), &[]);
        assert_eq!(output.stdout, b"0123456789", "{}", report(&output));
        let done = server.end();
        assert!(done["displaced"].as_u64().unwrap() >= 1, "{done}");
        drop(silent);
    }
    let server = TestServer::start("iot-http", &folder, &[]);
    let mut slow = server.connect();
    slow.set_nodelay(true).unwrap();
    for octet in b"GET /10 HTTP/1.0\r\n\r\n" {
        slow.write_all(&[*octet]).unwrap();
    }
    slow.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "HTTP/1.0 200 OK\r\n\r\n0123456789");
}

#[test]
fn a_connection_has_several_requests_if_it_is_kept() {
    let folder = folder();
    let mut server = TestServer::start("http", &folder, &["--keep", "1min"]);
    let two =
        b"GET /10 HTTP/1.1\r\nHost: h\r\n\r\nGET /empty HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let answer = String::from_utf8(server.ask(two)).unwrap();
    let first = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
    let second = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(answer, format!("{first}{second}"));
    // Several requests at once, with responses that each exceed a socket's buffer.
    let large = "GET /large HTTP/1.1\r\nHost: h\r\n\r\n".repeat(5);
    let last = "GET /10 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let answer = server.ask(&[large.as_bytes(), last.as_bytes()].concat());
    assert!(answer.len() > 5 * 700_000 && answer.ends_with(b"0123456789"), "{}", answer.len());
    // And many small ones: more than are answered in one round.
    let small = "GET /10 HTTP/1.1\r\nHost: h\r\n\r\n".repeat(5_000);
    let answer = server.ask(&[small.as_bytes(), last.as_bytes()].concat());
    assert_eq!(answer.len(), 5_000 * first.len() + first.len() + "Connection: close\r\n".len());
    let done = server.end();
    assert_eq!((&done["connections"], &done["requests"]), (&3.into(), &5_009.into()));
}
