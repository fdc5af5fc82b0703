//! CoAP over DTLS end to end: `thinair coap` with itself, with libcoap over OpenSSL and GnuTLS, aiocoap and Californium, both ways, and
//! with OpenSSL's s_client; restarts, new addresses, resumed sessions, other keys; Wireshark decrypts our records.
//!
//! Every server listens at free ports of 127.0.0.1. Where a peer is missing, the tests print what they skip. Time limits allow
//! for a busy machine; no process outlives its test.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod aiocoap;
mod californium;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use thinair_capture::LinkType;
use thinair_tests::secure_coap::{
    LIMIT, Server, aiocoap, ask, body, californium, done, failed, limited, script, server, text, thinair,
};
use thinair_tests::tshark;

/// Key of the identity `phone`: text, since libcoap takes no other one.
const KEY: &str = "secret_of_phone_";

/// Handshake with the longest cookies of peers, in octets of UDP payload.
const MOST_OF_HANDSHAKE: u64 = 600;

/// Returns libcoap's programs of this kind with each library of DTLS that is there.
fn libcoap(kind: &str) -> Vec<String> {
    let all = ["openssl", "gnutls"].map(|library| format!("coap-{kind}-{library}"));
    let (there, missing): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|program| Command::new(program).arg("-?").output().is_ok());
    for program in missing {
        println!("skipped: libcoap, because there is no {program} (Debian: libcoap3-bin)");
    }
    there
}

fn free_port() -> u16 {
    // Two in a row: libcoap serves coaps on the second one.
    loop {
        let first = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if first < u16::MAX && UdpSocket::bind(("127.0.0.1", first + 1)).is_ok() {
            return first;
        }
    }
}

/// Folder of a test: keys, and files that are served.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        fs::create_dir(bench.path("root")).unwrap();
        bench.keys("phone", &[("phone", KEY)]);
        bench.keys("server", &[("phone", KEY), ("tag", "secret of a tag!")]);
        bench
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file of keys.
    fn keys(&self, name: &str, keys: &[(&str, &str)]) {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.path(name))
            .unwrap();
        for (identity, key) in keys {
            writeln!(file, "{identity}:{}", tshark::hex(key.as_bytes())).unwrap();
        }
    }

    /// Starts a server of coaps alone, at this port of 127.0.0.1 and the next one; 0: any.
    fn serve(&self, port: u16, arguments: &[&str]) -> Server {
        let (keys, root, address) = (self.path("server"), self.path("root"), format!("127.0.0.1:{port}"));
        let mut command =
            server(&["--listen", &address, "--no-udp", "--no-tcp", "--root", &root, "--writable"]);
        command.args(["--test-resources", "--psk-file", &keys]);
        Server::start("coaps", command.args(arguments))
    }

    /// Starts libcoap's server.
    fn serve_libcoap(&self, program: &str, port: u16, key: &str) -> Server {
        let mut command = Command::new("timeout");
        command.args(["--foreground", "--signal", "KILL", LIMIT, program, "-A", "127.0.0.1"]);
        command.args(["-p", &port.to_string(), "-k", key, "-d", "9", "-v", "1"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Server::started("coaps", child, port + 1);
        let until = Instant::now() + Duration::from_secs(60);
        let plain = format!("coap://127.0.0.1:{port}/time");
        while !ask(&["get", &plain, "--timeout", "2s"]).status.success() {
            assert!(Instant::now() < until, "{program} does not answer");
        }
        server
    }

    /// Starts a client that gets so often, every 3 s.
    fn repeated(&self, uri: &str, times: u32) -> Repeated {
        let mut client = limited(&thinair());
        client.args(["coap", "get", uri, "--psk-file", &self.path("phone"), "--json", "--every", "3s"]);
        client.args(["--repeat", &times.to_string()]);
        let mut child = client.stdout(Stdio::piped()).spawn().unwrap();
        let responses = BufReader::new(child.stdout.take().unwrap()).lines();
        Repeated { child, responses }
    }

    /// Returns the payload of the response to a request with the key of this file.
    #[track_caller]
    fn done(&self, arguments: &[&str]) -> Vec<u8> {
        done(&[arguments, &["--psk-file", &self.path("phone")]].concat())
    }

    /// Returns the messages of a request that fails.
    #[track_caller]
    fn failed(&self, arguments: &[&str], key: &str) -> String {
        failed(&[arguments, &["--psk-file", &self.path(key)]].concat())
    }
}

/// A client with one session, and the responses to its requests.
struct Repeated {
    child: Child,
    responses: Lines<BufReader<ChildStdout>>,
}

impl Repeated {
    /// Waits for the next response, which is 2.05.
    #[track_caller]
    fn next(&mut self) -> Value {
        let response = serde_json::from_str::<Value>(&self.responses.next().unwrap().unwrap()).unwrap();
        assert_eq!(response["code"], "2.05", "{response}");
        response
    }

    /// Waits for the end of the client.
    fn end(mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

/// A datagram, and true if the client has sent it.
type Seen = (bool, Vec<u8>);

/// Types of handshake messages.
const CLIENT_HELLO: u8 = 1;
const CLIENT_KEY_EXCHANGE: u8 = 16;

/// Records of handshake messages of this type, without protection.
fn messages(seen: &[Seen], kind: u8) -> usize {
    seen.iter().filter(|(_, datagram)| datagram[0] == 22 && datagram.get(13) == Some(&kind)).count()
}

/// A relay before a server, which sees all datagrams, and can give the client another address.
struct Relay {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// Set: the next datagram of the client has another source port.
    moves: Arc<Mutex<bool>>,
}

impl Relay {
    fn before(server: &Server) -> Self {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        let relay =
            Self { port: front.local_addr().unwrap().port(), seen: Arc::default(), moves: Arc::default() };
        let (seen, moves, port) = (relay.seen.clone(), relay.moves.clone(), server.port);
        let back = move || {
            let back = UdpSocket::bind("127.0.0.1:0").unwrap();
            back.connect(("127.0.0.1", port)).unwrap();
            back.set_nonblocking(true).unwrap();
            back
        };
        front.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        std::thread::spawn(move || {
            let (mut behind, mut client, mut buffer) = (back(), None::<SocketAddr>, [0; 2_048]);
            let until = Instant::now() + Duration::from_secs(120);
            while Instant::now() < until {
                if let Ok((len, from)) = front.recv_from(&mut buffer) {
                    client = Some(from);
                    if std::mem::take(&mut *moves.lock().unwrap()) {
                        behind = back();
                    }
                    seen.lock().unwrap().push((true, buffer[..len].to_vec()));
                    let _ = behind.send(&buffer[..len]);
                }
                while let (Ok(len), Some(client)) = (behind.recv(&mut buffer), client) {
                    seen.lock().unwrap().push((false, buffer[..len].to_vec()));
                    let _ = front.send_to(&buffer[..len], client);
                }
            }
        });
        relay
    }

    fn uri(&self, path: &str) -> String {
        format!("coaps://127.0.0.1:{}{path}", self.port)
    }
}

#[test]
fn our_client_and_server_speak_to_each_other() {
    let bench = Bench::new();
    let server = bench.serve(0, &[]);
    for octets in [9, 3_000, 100_000] {
        let file = bench.path("body");
        fs::write(&file, body(octets)).unwrap();
        bench.done(&["put", &server.uri("/body.bin"), "--file", &file]);
        assert_eq!(fs::read(bench.path("root") + "/body.bin").unwrap(), body(octets));
        assert_eq!(bench.done(&["get", &server.uri("/body.bin")]), body(octets));
    }
    let seen = bench.done(&["observe", &server.uri("/time"), "--count", "2"]);
    assert_eq!(String::from_utf8(seen).unwrap().matches("UTC").count(), 2);
    assert!(String::from_utf8(bench.done(&["discover", &server.uri("")])).unwrap().contains("/time"));
    let json: Value = serde_json::from_slice(&bench.done(&["get", &server.uri("/time"), "--json"])).unwrap();
    let of = |side: &str| json["handshake_octets"][side].as_u64().unwrap();
    println!("handshake: {} octets sent, {} received", of("sent"), of("received"));
    assert!(of("sent") + of("received") <= MOST_OF_HANDSHAKE);
    // A session for all requests: one handshake.
    let many = bench.done(&["get", &server.uri("/time"), "--repeat", "3", "--json"]);
    let many = String::from_utf8(many).unwrap();
    assert_eq!((many.lines().count(), many.matches("handshake_octets").count()), (3, 1));
}

#[test]
fn requests_without_a_key_need_an_open_resource_and_identities_have_rights() {
    let bench = Bench::new();
    let rights = bench.path("rights.json");
    fs::write(&rights, r#"{"phone": {"/time": ["GET"]}}"#).unwrap();
    let (keys, root) = (bench.path("server"), bench.path("root"));
    let mut command = limited(&thinair());
    command.args(["coap", "serve", "--listen", "127.0.0.1:0", "--no-tcp", "--root", &root, "--writable"]);
    command.args(["--psk-file", &keys, "--psk-rights", &rights, "--unprotected", "/.well-known/core"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let [plain, secure]: [&str; 2] =
        first.strip_prefix("serving ").unwrap().split(", ").collect::<Vec<_>>().try_into().unwrap();
    let port = secure.rsplit(':').next().unwrap().parse().unwrap();
    let server = Server::started("coaps", child, port);
    assert!(text(&ask(&["get", &format!("{plain}/time")])).contains("4.01 Unauthorized"));
    assert!(ask(&["discover", plain]).status.success());
    bench.done(&["get", &server.uri("/time")]);
    assert!(bench.failed(&["put", &server.uri("/x"), "--payload", "x"], "phone").contains("4.03 Forbidden"));
    bench.keys("tag", &[("tag", "secret of a tag!")]);
    assert!(bench.failed(&["get", &server.uri("/time")], "tag").contains("4.03 Forbidden"));
}

#[test]
fn another_key_is_an_error_at_both_ends() {
    let bench = Bench::new();
    let server = bench.serve(0, &[]);
    bench.keys("other", &[("phone", "another secret..")]);
    bench.keys("unknown", &[("nobody", KEY)]);
    let message = bench.failed(&["get", &server.uri("/time")], "other");
    assert!(message.contains("the other end has another key for this identity"), "{message}");
    server.logs("it has another key for its identity");
    // Reports are a second apart.
    std::thread::sleep(Duration::from_millis(1_100));
    let message = bench.failed(&["get", &server.uri("/time")], "unknown");
    assert!(message.contains("the other end has no key with this identity"), "{message}");
    server.logs("its identity is unknown");
    assert!(!server.log().contains(KEY));
}

/// Killed without a word, and started again: the client has another session, and its second response within seconds.
#[test]
fn a_restart_of_the_server_costs_a_handshake_and_no_minute() {
    let bench = Bench::new();
    let port = free_port();
    let server = bench.serve(port, &[]);
    let mut client = bench.repeated(&server.uri("/time"), 2);
    client.next();
    drop(server);
    let _server = bench.serve(port, &[]);
    let second = client.next();
    let (time, sent) = (&second["times_ms"]["total"], &second["messages"]["sent"]);
    println!("2.05 after {time} ms, with {sent} datagrams sent");
    client.end();
}

/// A session with its connection ID survives a new address; Wireshark decrypts its records, as RFC 9146 has them.
#[test]
fn a_session_survives_a_new_address_of_the_client() {
    let bench = Bench::new();
    let server = bench.serve(0, &[]);
    let relay = Relay::before(&server);
    let mut client = limited(&thinair());
    client.args(["coap", "get", &relay.uri("/time"), "--psk-file", &bench.path("phone"), "--json"]);
    client.args(["--repeat", "2", "--every", "1s"]);
    let mut client = client.stdout(Stdio::piped()).spawn().unwrap();
    let mut responses = BufReader::new(client.stdout.take().unwrap()).lines();
    responses.next().unwrap().unwrap();
    let before = relay.seen.lock().unwrap().len();
    *relay.moves.lock().unwrap() = true;
    let second: Value = serde_json::from_str(&responses.next().unwrap().unwrap()).unwrap();
    assert_eq!(second["code"], "2.05", "{second}");
    assert!(client.wait().unwrap().success());
    let seen = relay.seen.lock().unwrap().clone();
    // Records with a connection ID to the server, application data to the client, and no handshake.
    assert!(
        seen[before..]
            .iter()
            .all(|(is_request, datagram)| datagram[0] == if *is_request { 25 } else { 23 }
                || datagram[0] == 21)
    );
    if !tshark::is_there() {
        return;
    }
    let file = tshark::OutputFolder::new("dtls").path("session.pcap");
    let packets: Vec<_> = seen.iter().map(|(is_request, datagram)| packet(*is_request, datagram)).collect();
    tshark::write(LinkType::RAW, &file, &packets);
    let mut tshark = limited("tshark");
    tshark.args([
        "-o",
        &format!("dtls.psk:{}", tshark::hex(KEY.as_bytes())),
        "-d",
        "udp.port==5684,dtls",
        "-Y",
        "coap",
    ]);
    let fields = ["-T", "fields", "-e", "coap.code", "-e", "coap.mid"];
    let done = tshark.arg("-r").arg(&file).args(fields).output().unwrap();
    // On a busy machine messages are sent again, with their Message IDs.
    let messages = String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let of = |code: &str| messages.iter().filter(|message| message.split('\t').next() == Some(code)).count();
    println!("Wireshark decrypts {} requests and {} responses", of("1"), of("69"));
    assert_eq!((of("1"), of("69"), messages.len()), (2, 2, 4), "{}", text(&done));
}

/// UDP datagram over IPv4 between a client and port 5684.
fn packet(is_request: bool, payload: &[u8]) -> Vec<u8> {
    let mut packet = tshark::datagram(5_684, payload);
    // Addresses by direction, as Wireshark tells both ends by address and port.
    let (from, to) = if is_request { (1, 2) } else { (2, 1) };
    (packet[15], packet[19]) = (from, to);
    let client = 40_000_u16.to_be_bytes();
    let place = if is_request { 20 } else { 22 };
    packet[place..place + 2].copy_from_slice(&client);
    packet
}

#[test]
fn libcoaps_clients_use_our_server() {
    let bench = Bench::new();
    for program in libcoap("client") {
        let server = bench.serve(0, &[]);
        let ask = |arguments: &[&str], key: &str| {
            let mut client = limited(&program);
            client.args(["-v", "3", "-B", "30", "-k", key, "-u", "phone"]).args(arguments).output().unwrap()
        };
        let output = bench.path("output");
        let uri = server.uri("/from-libcoap");
        let done = ask(&["-m", "put", "-e", "hello", &uri], KEY);
        assert!(done.status.success(), "{program}: {}", text(&done));
        assert_eq!(bench.done(&["get", &uri]), b"hello", "{program}: {}", text(&done));
        ask(&["-m", "get", "-o", &output, &uri], KEY);
        assert_eq!(fs::read(&output).unwrap(), b"hello", "{program}");
        let file = bench.path("large");
        fs::write(&file, body(100_000)).unwrap();
        let uri = server.uri("/large.bin");
        let done = ask(&["-m", "put", "-b", "1024", "-f", &file, &uri], KEY);
        assert_eq!(
            fs::read(bench.path("root") + "/large.bin").unwrap(),
            body(100_000),
            "{program}: {}",
            text(&done)
        );
        fs::remove_file(&output).unwrap();
        ask(&["-m", "get", "-b", "1024", "-o", &output, &uri], KEY);
        assert_eq!(fs::read(&output).unwrap(), body(100_000), "{program}");
        let done = ask(&["-s", "3", &server.uri("/time")], KEY);
        assert!(text(&done).matches("UTC").count() >= 2, "{program}: {}", text(&done));
        let done = ask(&["-B", "5", &server.uri("/time")], "another secret");
        assert!(!text(&done).contains("UTC"), "{program}: {}", text(&done));
        server.logs("another key");
        println!("{program} uses our server");
    }
}

#[test]
fn our_client_uses_libcoaps_servers() {
    let bench = Bench::new();
    for program in libcoap("server") {
        let server = bench.serve_libcoap(&program, free_port(), KEY);
        assert!(!bench.done(&["get", &server.uri("/time")]).is_empty(), "{program}");
        bench.done(&["put", &server.uri("/new"), "--payload", "hello"]);
        assert_eq!(bench.done(&["get", &server.uri("/new")]), b"hello", "{program}");
        let file = bench.path("large");
        fs::write(&file, body(100_000)).unwrap();
        bench.done(&["put", &server.uri("/large"), "--file", &file]);
        assert_eq!(bench.done(&["get", &server.uri("/large")]), body(100_000), "{program}");
        let seen = bench.done(&["observe", &server.uri("/time"), "--count", "2"]);
        assert!(String::from_utf8(seen).unwrap().lines().count() == 2, "{program}");
        let json: Value =
            serde_json::from_slice(&bench.done(&["get", &server.uri("/time"), "--json"])).unwrap();
        let of = |side: &str| json["handshake_octets"][side].as_u64().unwrap();
        println!("{program}: handshake of {} octets sent, {} received", of("sent"), of("received"));
        assert!(of("sent") + of("received") <= MOST_OF_HANDSHAKE, "{program}");
        bench.keys("other", &[("phone", "another secret")]);
        let message = bench.failed(&["get", &server.uri("/time"), "--ack-timeout", "100ms"], "other");
        println!("{program}, another key: {}", message.trim());
        assert!(message.contains("Compare --psk-file"), "{program}: {message}");
    }
}

/// libcoap's server drops records of no session without an answer: the client tries again by itself.
#[test]
fn a_restart_of_libcoaps_server_costs_seconds() {
    let bench = Bench::new();
    let Some(program) = libcoap("server").into_iter().next() else { return };
    let server = bench.serve_libcoap(&program, free_port(), KEY);
    let mut client = bench.repeated(&server.uri("/time"), 2);
    client.next();
    let port = server.port - 1;
    drop(server);
    let _server = bench.serve_libcoap(&program, port, KEY);
    println!("{program}: 2.05 after {} ms", client.next()["times_ms"]["total"]);
    client.end();
}

/// libcoap's server has no connection IDs: a client that is not found at its new address resumes the session, as OpenSSL keeps it.
#[test]
fn a_new_address_without_a_connection_id_resumes_the_session() {
    let bench = Bench::new();
    let Some(program) = libcoap("server").into_iter().find(|program| program.ends_with("openssl")) else {
        return;
    };
    let server = bench.serve_libcoap(&program, free_port(), KEY);
    let relay = Relay::before(&server);
    let mut client = bench.repeated(&relay.uri("/time"), 2);
    client.next();
    *relay.moves.lock().unwrap() = true;
    println!("{program}: 2.05 after {} ms", client.next()["times_ms"]["total"]);
    client.end();
    let seen = relay.seen.lock().unwrap();
    assert!(messages(&seen, CLIENT_HELLO) > 2);
    assert_eq!(messages(&seen, CLIENT_KEY_EXCHANGE), 1, "it is resumed");
}

/// A message through OpenSSL's s_client: `GET /time`, Non-confirmable; and once more in the session resumed.
#[test]
fn openssl_s_client_uses_our_server() {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("skipped: s_client, because there is no openssl");
        return;
    }
    let bench = Bench::new();
    let server = bench.serve(0, &[]);
    let relay = Relay::before(&server);
    let (key, session) = (tshark::hex(KEY.as_bytes()), bench.path("session"));
    for keeps in ["-sess_out", "-sess_in"] {
        let mut client = limited("openssl");
        client.args([
            "s_client",
            "-dtls1_2",
            "-quiet",
            "-psk",
            &key,
            "-psk_identity",
            "phone",
            keeps,
            &session,
        ]);
        client.args(["-cipher", "PSK-AES128-CCM8@SECLEVEL=0", "-connect"]);
        client.arg(format!("127.0.0.1:{}", relay.port));
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut client = client.spawn().unwrap();
        client.stdin.as_mut().unwrap().write_all(b"\x50\x01\x12\x34\xb4time").unwrap();
        let mut header = [0; 4];
        client.stdout.as_mut().unwrap().read_exact(&mut header).unwrap();
        // Non-confirmable, 2.05.
        assert_eq!((header[0] & 0xF0, header[1]), (0x50, 0x45));
        let child = format!("/proc/{0}/task/{0}/children", client.id());
        for child in fs::read_to_string(child).unwrap_or_default().split_whitespace() {
            let _ = Command::new("kill").args(["-9", child]).status();
        }
        let _ = client.wait();
    }
    let seen = relay.seen.lock().unwrap();
    assert!(messages(&seen, CLIENT_HELLO) > 2);
    assert_eq!(messages(&seen, CLIENT_KEY_EXCHANGE), 1, "it is resumed");
}
