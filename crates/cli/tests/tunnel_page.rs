//! The live page of `thinair tunnel page` over a plain connection, and in a browser if there is one.

#![allow(clippy::unwrap_used)]
#![cfg(all(feature = "tunnel", target_os = "linux"))]

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use thinair_tunnel::status::socket::StatusSocket;
use thinair_tunnel::status::{
    CarrierLoss, CarrierStatus, ContextCount, Counters, Drop as Dropped, Identity, InsideStatus,
    PeerCounters, PeerKind, PeerStatus, SCHEMA, Side, Status,
};
use thinair_wire::time::Instant;

/// `thinair tunnel page`, and its address.
struct Page {
    child: Child,
    address: SocketAddr,
}

impl Page {
    fn of(socket: &std::path::Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_thinair"))
            .args(["tunnel", "page", "--until-eof", "--http", "127.0.0.1:0"])
            .arg(socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
        Self { child, address }
    }

    /// Ends its input, and waits for its end.
    fn end(&mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.end();
    }
}

/// A daemon that only answers at its status socket, with one more packet of 100 octets each time.
struct StatusDaemon {
    page: Page,
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    _folder: TempDir,
}

impl StatusDaemon {
    fn start(has_traffic: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.sock");
        let mut socket = StatusSocket::bind(&path).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut counters = Counters::new(0);
            let mut uptime = 1.0;
            while !is_over.load(Ordering::Relaxed) {
                socket.accept_and_answer(Instant::ZERO, || {
                    if has_traffic {
                        counters.sent.packet(100, 20);
                        counters.sent_datagram(50);
                        counters.latency_sent.record(30_000);
                        counters.drops.count(Dropped::Forged);
                    }
                    uptime += 0.5;
                    status(&counters, uptime)
                });
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Self { page: Page::of(&path), over, thread: Some(thread), _folder: folder }
    }

    fn address(&self) -> SocketAddr {
        self.page.address
    }
}

impl Drop for StatusDaemon {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn status(counters: &Counters, uptime: f64) -> Status {
    let identity = Identity {
        site: None,
        inside: InsideStatus {
            name: "air0".to_owned(),
            bridged: false,
            mtu: 1400,
            addresses: Vec::new(),
            up: true,
            offloads: Vec::new(),
        },
        carrier: CarrierStatus {
            url: "udp://192.0.2.1:4754".to_owned(),
            mtu: 1500,
            overhead: 48,
            ..CarrierStatus::default()
        },
        security: "none".to_owned(),
    };
    let mut status = Status::new(identity, counters, uptime, 0.1);
    let contexts = if counters.sent.packets == 0 {
        Vec::new()
    } else {
        vec![ContextCount {
            side: Side::Compressor,
            profile: "coap".to_owned(),
            mode: "O".to_owned(),
            state: "SO".to_owned(),
            contexts: 3,
        }]
    };
    status.peers.push(PeerStatus {
        suite: None,
        source_not_allowed: None,
        // A name that would be HTML if it were not escaped on the page, and that ends a label if it is not
        // escaped in metrics.
        name: "<i>\"hill\"</i>".to_owned(),
        kind: PeerKind::Peer,
        address: None,
        session_seconds: None,
        heard_seconds: None,
        trouble: None,
        loss: Some(CarrierLoss::new(5, 195)),
        round_trip_seconds: Some(0.612),
        cids: None,
        nat: None,
        counters: PeerCounters::default(),
        contexts,
    });
    status
}

struct HttpAnswer {
    code: u16,
    head: String,
    body: String,
}

impl HttpAnswer {
    fn has(&self, header: &str) -> bool {
        self.head.to_ascii_lowercase().lines().any(|line| line.starts_with(&header.to_ascii_lowercase()))
    }
}

fn asked(to: SocketAddr, request: &str) -> HttpAnswer {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    HttpAnswer { code, head: head.to_owned(), body: body.to_owned() }
}

fn got(from: SocketAddr, path: &str) -> HttpAnswer {
    asked(from, &format!("GET {path} HTTP/1.1\r\nHost: {from}\r\nConnection: close\r\n\r\n"))
}

#[test]
fn the_page_and_all_that_it_fetches_are_there() {
    let daemon = StatusDaemon::start(true);
    let page = got(daemon.address(), "/");
    assert_eq!(page.code, 200);
    assert!(page.has("content-type: text/html"));
    assert!(page.has("content-security-policy: default-src 'none'; script-src 'self'"));
    assert!(!page.body.contains("<script>") && !page.body.contains(" style="), "nothing is inline");
    let mut links = 0;
    for part in page.body.split(['"', '\n']).filter(|part| part.starts_with('/')) {
        let file = got(daemon.address(), part);
        assert_eq!(file.code, 200, "{part}");
        assert!(file.has("x-content-type-options: nosniff"), "{part}");
        assert!(!file.has("access-control-"), "{part}");
        links += 1;
    }
    assert!(links >= 8, "{links} links");
    assert_eq!(got(daemon.address(), "/etc/passwd").code, 404);
}

#[test]
fn the_status_is_the_newest() {
    let daemon = StatusDaemon::start(true);
    let first: Status = serde_json::from_str(&got(daemon.address(), "/status.json").body).unwrap();
    assert_eq!(first.schema, SCHEMA);
    // Longer than a status is kept.
    std::thread::sleep(Duration::from_millis(300));
    let second: Status = serde_json::from_str(&got(daemon.address(), "/status.json").body).unwrap();
    assert!(second.totals.sent.packets > first.totals.sent.packets);
}

#[test]
fn metrics_have_help_units_and_escaped_labels() {
    let daemon = StatusDaemon::start(true);
    let answer = got(daemon.address(), "/metrics");
    assert!(answer.has("content-type: application/openmetrics-text"));
    let text = &answer.body;
    for line in [
        "# HELP thinair_tunnel_inside_bytes Octets of packets at the interface",
        "# UNIT thinair_tunnel_inside_bytes bytes",
        "# TYPE thinair_tunnel_inside_bytes counter",
        "thinair_tunnel_drops_total{reason=\"replayed\"} 0",
        "thinair_tunnel_uptime_seconds ",
        "thinair_tunnel_latency_seconds_bucket{le=\"0.000065536\",direction=\"sent\"}",
        "thinair_tunnel_latency_seconds_bucket{le=\"+Inf\",direction=\"sent\"}",
        "thinair_tunnel_latency_seconds_count{direction=\"sent\"}",
        r#"thinair_tunnel_peer_lost_units_total{peer="<i>\"hill\"</i>"} 5"#,
        r#"thinair_tunnel_peer_received_units_total{peer="<i>\"hill\"</i>"} 195"#,
        r#"thinair_tunnel_peer_round_trip_seconds{peer="<i>\"hill\"</i>"} 0.612"#,
        r#"thinair_tunnel_contexts{peer="<i>\"hill\"</i>",side="compressor",profile="coap",mode="O",state="SO"} 3.0"#,
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}\nis not in\n{text}");
    }
    for line in text.lines() {
        assert!(line == "# EOF" || line.contains("thinair_tunnel_"), "{line}");
    }
    let value = |name: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let packets = value("thinair_tunnel_packets_total{direction=\"sent\"}");
    assert_eq!(packets, value("thinair_tunnel_latency_seconds_count{direction=\"sent\"}"));
    assert_eq!(value("thinair_tunnel_carrier_bytes_total{direction=\"sent\"}"), 50 * packets);
}

#[test]
fn other_names_than_those_of_loopback_are_refused() {
    let daemon = StatusDaemon::start(true);
    let port = daemon.address().port();
    for host in [format!("localhost:{port}"), format!("[::1]:{port}"), "127.0.0.1".to_owned()] {
        let request = format!("GET /status.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(asked(daemon.address(), &request).code, 200, "{host}");
    }
    for path in ["/", "/status.json", "/metrics", "/page.js"] {
        for host in ["example.org", "example.org:80", "127.0.0.1.example.org", "192.0.2.1", ""] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let answer = asked(daemon.address(), &request);
            assert_eq!(answer.code, 421, "{path} of {host:?}");
            assert!(!answer.body.contains("air0"));
        }
        let absolute =
            format!("GET http://example.org{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert_eq!(asked(daemon.address(), &absolute).code, 421);
        assert_eq!(asked(daemon.address(), &format!("GET {path} HTTP/1.0\r\n\r\n")).code, 421, "no Host");
    }
}

#[test]
fn nothing_but_get() {
    let daemon = StatusDaemon::start(true);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"] {
        let request = format!(
            "{method} /status.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let answer = asked(daemon.address(), &request);
        assert_eq!(answer.code, 405, "{method}");
        assert!(answer.has("allow: GET"), "{method}: {}", answer.head);
    }
}

#[test]
fn without_a_daemon_there_is_a_page_that_names_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut page = Page::of(&folder.path().join("status.sock"));
    assert_eq!(got(page.address, "/").code, 200);
    let answer = got(page.address, "/status.json");
    assert!(answer.code == 503 && answer.body.contains("no daemon is running here"), "{}", answer.body);
    assert_eq!(page.end(), Some(0));
    assert!(TcpStream::connect(page.address).is_err());
}

#[test]
fn an_address_in_use_and_one_of_others_are_errors_at_once() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let page = |address: &str| {
        Command::new(env!("CARGO_BIN_EXE_thinair"))
            .args(["tunnel", "page", "--http", address, "status.sock"])
            .output()
            .unwrap()
    };
    let busy = page(&address.to_string());
    let words = String::from_utf8(busy.stderr).unwrap();
    assert_eq!(busy.status.code(), Some(1), "{words}");
    assert!(words.contains(&address.to_string()) && words.contains("another port"), "{words}");
    for address in ["0.0.0.0:80", "192.0.2.1:9000", "[::]:80", "[2001:db8::1]:80", "[::ffff:192.0.2.1]:80"] {
        let exposed = page(address);
        let words = String::from_utf8(exposed.stderr).unwrap();
        assert_eq!(exposed.status.code(), Some(2), "{address}: {words}");
        assert!(words.contains("no access control"), "{address}: {words}");
    }
}

#[test]
fn idle_connections_do_not_take_all_places() {
    let daemon = StatusDaemon::start(true);
    let idle: Vec<_> = (0..20).map(|_| TcpStream::connect(daemon.address()).unwrap()).collect();
    assert_eq!(got(daemon.address(), "/status.json").code, 200);
    drop(idle);
}

/// Returns the page in Chromium after ten seconds of virtual time; `None` without Chromium.
fn shown(address: SocketAddr) -> Option<String> {
    let chromium = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success()))?;
    let profile = std::env::temp_dir().join(format!("thinair-live-{}", address.port()));
    let out = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("http://{address}/"))
        .output()
        .unwrap();
    let _ = std::fs::remove_dir_all(profile);
    Some(String::from_utf8(out.stdout).unwrap())
}

const NO_BROWSER: &str = "skipped: there is no Chromium here";

#[test]
fn a_browser_shows_what_is_saved() {
    let daemon = StatusDaemon::start(true);
    let Some(page) = shown(daemon.address()) else { return eprintln!("{NO_BROWSER}") };
    for words in [
        "<body class=\"live\">",
        "50.0\u{202f}%</dd>",
        "<dt>saved</dt>",
        "3 in SO",
        "&lt;i&gt;\"hill\"&lt;/i&gt;",
        // Loss and round trip of the carrier.
        "2.5\u{202f}%</td>",
        "612\u{202f}ms</td>",
        "The tag is wrong",
        "<canvas",
    ] {
        assert!(page.contains(words), "{words} is not in\n{page}");
    }
}

#[test]
fn a_browser_says_that_there_is_no_traffic() {
    let daemon = StatusDaemon::start(false);
    let Some(page) = shown(daemon.address()) else { return eprintln!("{NO_BROWSER}") };
    for words in ["<body class=\"quiet\">", "No traffic yet.", "No contexts yet", "Nothing was lost."] {
        assert!(page.contains(words), "{words} is not in\n{page}");
    }
}
