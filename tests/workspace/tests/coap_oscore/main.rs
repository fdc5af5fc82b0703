//! OSCORE end to end: `thinair coap` with itself and with aiocoap, both ways; what is not accepted; restarts, also by SIGKILL; key
//! exchanges.
//!
//! Every server listens at a free port of 127.0.0.1. Where aiocoap is missing, the tests print what they skip. Time limits allow
//! for a busy machine; no process outlives its test.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod californium;
mod edhoc;
mod memory;
mod proxy;
mod relay;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use relay::{Relay, replay};
use thinair_tests::secure_coap::{
    LIMIT, Server, aiocoap, ask, body, californium, done, failed, limited, script, server, text, thinair,
};

/// Folders of a test: contexts, and files that are served.
struct Bench(tempfile::TempDir);

impl Bench {
    /// Makes a context for `client` and `server`.
    fn new() -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        fs::create_dir(bench.path("root")).unwrap();
        bench.keygen("client", "server");
        bench
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn keygen(&self, client: &str, server: &str) {
        let arguments = [&self.path(client), &self.path(server), "--client-id", "01"];
        let done = Command::new(thinair()).args(["coap", "keygen"]).args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", text(&done));
    }

    fn serve(&self, arguments: &[&str]) -> Server {
        self.serve_by(&[&["--oscore", &self.path("server")], arguments].concat())
    }

    /// Starts a server with these arguments.
    fn serve_by(&self, arguments: &[&str]) -> Server {
        let root = self.path("root");
        let mut command = server(&["-vv", "--listen", "127.0.0.1:0", "--root", &root, "--writable"]);
        command.arg("--test-resources");
        Server::start("coap", command.args(arguments))
    }

    /// Starts aiocoap's server.
    fn serve_aiocoap(&self, python: &Path, folder: &str) -> Server {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = script(python, "secure_server.py");
        command.args(["127.0.0.1", &port.to_string(), &self.path(folder)]).stderr(Stdio::null());
        let server = Server::started("coap", command.spawn().unwrap(), port);
        let until = Instant::now() + Duration::from_secs(60);
        while !text(&ask(&["get", &server.uri("/store"), "--timeout", "2s"])).contains("4.01") {
            assert!(Instant::now() < until, "the server does not answer");
        }
        server
    }

    /// Returns the payload of the response to a protected request.
    #[track_caller]
    fn done(&self, arguments: &[&str]) -> Vec<u8> {
        done(&[arguments, &["--oscore", &self.path("client")]].concat())
    }

    /// Returns the messages of a protected request that fails.
    #[track_caller]
    fn failed(&self, arguments: &[&str], context: &str) -> String {
        failed(&[arguments, &["--oscore", &self.path(context)]].concat())
    }
}

#[test]
fn our_client_and_server_speak_to_each_other_over_both_transports() {
    let bench = Bench::new();
    let server = bench.serve(&[]);
    for base in [server.uri(""), format!("coap+tcp://{}", server.address())] {
        for octets in [9, 3_000, 100_000] {
            let file = bench.path("body");
            fs::write(&file, body(octets)).unwrap();
            bench.done(&["put", &format!("{base}/body.bin"), "--file", &file, "--timing"]);
            assert_eq!(fs::read(bench.path("root") + "/body.bin").unwrap(), body(octets));
            assert_eq!(bench.done(&["get", &format!("{base}/body.bin")]), body(octets));
        }
        bench.done(&[
            "put",
            &format!("{base}/body.bin"),
            "--payload",
            "x",
            "--congestion",
            "cocoa",
            "--block-size",
            "64",
        ]);
        for names in ["humidity".to_owned(), "humidity\n".to_owned() + &"unknown\n".repeat(400)] {
            let values = bench.done(&["fetch", &format!("{base}/values"), "--payload", &names]);
            assert_eq!(values, b"humidity=40\n");
        }
        let seen = bench.done(&["observe", &format!("{base}/time"), "--count", "2"]);
        assert_eq!(String::from_utf8(seen).unwrap().matches("UTC").count(), 2);
        assert!(String::from_utf8(bench.done(&["discover", &base])).unwrap().contains("/time"));
    }
}

#[test]
fn what_is_not_protected_is_unauthorized_unless_it_is_named() {
    let bench = Bench::new();
    let server = bench.serve(&["--unprotected", "/time"]);
    assert!(text(&ask(&["get", &server.uri("/body.bin")])).contains("4.01 Unauthorized"));
    assert!(text(&ask(&["put", &server.uri("/body.bin"), "--payload", "x"])).contains("4.01"));
    assert!(text(&ask(&["discover", &server.uri("")])).contains("4.01"));
    assert!(ask(&["get", &server.uri("/time")]).status.success());
    assert!(!Path::new(&(bench.path("root") + "/body.bin")).exists());
}

#[test]
fn a_context_has_the_rights_in_its_folder() {
    let bench = Bench::new();
    fs::write(bench.path("server") + "/rights.json", r#"{"/time": ["GET"], "/log/*": ["*"]}"#).unwrap();
    fs::create_dir(bench.path("root") + "/log").unwrap();
    let server = bench.serve(&[]);
    bench.done(&["get", &server.uri("/time")]);
    bench.done(&["put", &server.uri("/log/1"), "--payload", "x"]);
    for refused in [&["put", &server.uri("/body"), "--payload", "x"][..], &["get", &server.uri("/body")]] {
        assert!(bench.failed(refused, "client").contains("4.03 Forbidden"), "{refused:?}");
    }
    fs::write(bench.path("server") + "/rights.json", r#"{"/time": ["get"]}"#).unwrap();
    drop(server);
    let done = ask(&["serve", "--listen", "127.0.0.1:0", "--oscore", &bench.path("server")]);
    assert!(text(&done).contains("rights.json") && text(&done).contains("`get`"), "{}", text(&done));
}

/// A server keeps the lock of each folder open.
#[test]
fn a_server_has_more_folders_than_its_soft_limit_of_files() {
    const FOLDERS: u8 = 80;
    let bench = Bench::new();
    let folder = |name: &str, sender: &str, recipient: &str| {
        fs::create_dir_all(bench.path(name)).unwrap();
        let ids = format!("\"sender-id_hex\": \"{sender}\", \"recipient-id_hex\": \"{recipient}\"");
        let settings = format!("{{\"secret_hex\": \"{}\", {ids}}}", "5a".repeat(16));
        fs::write(bench.path(name) + "/settings.json", settings).unwrap();
    };
    for number in 0..FOLDERS {
        let id = format!("{number:02x}");
        folder(&format!("sensors/{id}"), "ff", &id);
        folder("last", &id, "ff");
    }
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -Sn 40 && exec \"$@\"", "sh"]);
    command.args(["timeout", "--foreground", "--signal", "KILL", LIMIT, &thinair(), "coap", "serve"]);
    command.args(["--listen", "127.0.0.1:0", "--oscore", &bench.path("sensors")]);
    let server = Server::start("coap", &mut command);
    done(&["get", &server.uri("/time"), "--oscore", &bench.path("last")]);
}

#[test]
fn other_keys_give_a_reason_and_no_payload() {
    let bench = Bench::new();
    bench.keygen("other", "elsewhere");
    let server = bench.serve(&[]);
    assert!(bench.failed(&["get", &server.uri("/time")], "other").contains("other keys"));
    let other = bench.path("third");
    let done = ask(&["keygen", &other, &bench.path("third-server"), "--client-id", "77"]);
    assert!(done.status.success());
    assert!(bench.failed(&["get", &server.uri("/time")], "third").contains("no such security context"));
}

/// Both ends begin anew, one with and one without SIGKILL; a recorded request stays one that was received.
#[test]
fn a_request_is_received_once_also_across_a_restart() {
    let bench = Bench::new();
    let server = bench.serve(&[]);
    // A relay between client and server, which keeps the first request.
    let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap://{}/file", relay.local_addr().unwrap());
    let relayed = std::thread::spawn({
        let (relay, server) = (relay.try_clone().unwrap(), server.address());
        move || {
            let mut buffer = [0; 1_500];
            let (len, client) = relay.recv_from(&mut buffer).unwrap();
            let request = buffer[..len].to_vec();
            relay.send_to(&request, server).unwrap();
            let len = relay.recv(&mut buffer).unwrap();
            relay.send_to(&buffer[..len], client).unwrap();
            request
        }
    });
    bench.done(&["put", &uri, "--payload", "once"]);
    let mut request = relayed.join().unwrap();
    let file = bench.path("root") + "/file";
    fs::remove_file(&file).unwrap();
    relay.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut replay = |server: &Server, message_id: u8| {
        // The Message ID is not protected: it is no duplicate.
        request[3] ^= message_id;
        relay.send_to(&request, server.address()).unwrap();
        let mut answer = [0; 100];
        let len = relay.recv(&mut answer).unwrap();
        answer[..len].to_vec()
    };
    let answer = replay(&server, 1);
    assert!(answer.ends_with(b"Replay detected"), "{answer:?}");
    drop(server);
    let server = bench.serve(&[]);
    // The server does not know whether it has received it: it asks for a fresh one, protected (outer code 2.04).
    assert_eq!(replay(&server, 2)[1], 0x44);
    // As any request after a restart.
    bench.done(&["get", &server.uri("/time")]);
    assert!(replay(&server, 4).ends_with(b"Replay detected"));
    assert!(!Path::new(&file).exists());
}

/// Partial IVs of requests on the wire, while the client is killed at any time.
#[test]
fn no_number_is_sent_twice_though_the_client_is_killed() {
    let bench = Bench::new();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let uri = format!("coap://{}/x", server.local_addr().unwrap());
    let mut numbers = BTreeSet::new();
    for round in 0..12 {
        let mut client = Command::new(thinair());
        client.args(["coap", "get", &uri, "--non", "--oscore", &bench.path("client")]);
        let mut client = client.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut buffer = [0; 100];
        let len = server.recv(&mut buffer).unwrap();
        // Header, Token of one octet, option 9.
        let (value, option) = (usize::from(buffer[5] & 0xF), buffer[5] >> 4);
        assert_eq!((buffer[0] & 0xF, option, buffer[6] & 0b1000), (1, 9, 0b1000), "{:?}", &buffer[..len]);
        assert!(numbers.insert(buffer[6..6 + value].to_vec()), "round {round}: {:?}", &buffer[..len]);
        client.kill().unwrap();
        client.wait().unwrap();
    }
}

#[test]
fn a_folder_is_used_by_one_process_and_on_one_machine() {
    let bench = Bench::new();
    let server = bench.serve(&[]);
    let second = ask(&["serve", "--listen", "127.0.0.1:0", "--oscore", &bench.path("server")]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second).contains("another process uses"), "{}", text(&second));

    bench.done(&["get", &server.uri("/time")]);
    let done = Command::new("cp").args(["-r", &bench.path("client"), &bench.path("copy")]).status().unwrap();
    assert!(done.success());
    assert!(bench.failed(&["get", &server.uri("/time")], "copy").contains("--moved"));
    let done = ask(&["get", &server.uri("/time"), "--oscore", &bench.path("copy"), "--moved"]);
    assert!(done.status.success(), "{}", text(&done));
}

#[test]
fn no_log_has_a_key() {
    let bench = Bench::new();
    let settings = fs::read_to_string(bench.path("client") + "/settings.json").unwrap();
    let settings: serde_json::Value = serde_json::from_str(&settings).unwrap();
    let secret = settings["secret_hex"].as_str().unwrap();
    let server = bench.serve(&[]);
    let done = ask(&["get", &server.uri("/time"), "-v", "--timing", "--oscore", &bench.path("client")]);
    let log = server.log() + &text(&done);
    assert!(log.contains("/time") || log.contains("2.05"), "{log}");
    assert!(!log.contains(secret) && !log.to_lowercase().contains(&secret.to_lowercase()));
    // A file that cannot be parsed is not quoted.
    let path = bench.path("client") + "/settings.json";
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("\"sender-id_hex\"", "")).unwrap();
    let why = bench.failed(&["get", &server.uri("/time")], "client");
    assert!(why.contains("settings.json") && !why.contains(secret), "{why}");
}

#[test]
fn aiocoap_uses_our_server_which_restarts() {
    let Some(python) = aiocoap() else { return };
    let bench = Bench::new();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let server = bench.serve(&[]);
        let relay = Relay::new(server.address());
        let mut client = script(&python, "secure_client.py");
        let done = client.args([&relay.uri(""), &bench.path("client")]).output().unwrap();
        assert!(done.status.success() && text(&done).contains("state 3 is told"), "{}", text(&done));
        // Nothing is accepted again, neither by the server that had it nor by the one after it.
        seen.extend(relay.requests());
        assert!(seen.len() > 200, "{}", seen.len());
        for (number, message) in (0..).zip(&seen) {
            let answer = replay(server.address(), message, number);
            assert!(answer[1] == 0x81 && answer.ends_with(b"Replay detected"), "{number}: {answer:?}");
        }
    }
}

#[test]
fn our_client_uses_aiocoaps_server_which_restarts() {
    let Some(python) = aiocoap() else { return };
    let bench = Bench::new();
    let file = bench.path("body");
    for _ in 0..2 {
        let server = bench.serve_aiocoap(&python, "server");
        let store = server.uri("/store");
        for octets in [9, 3_000, 100_000] {
            fs::write(&file, body(octets)).unwrap();
            bench.done(&["put", &store, "--file", &file]);
            assert_eq!(bench.done(&["get", &store]), body(octets));
        }
        let relay = Relay::new(server.address());
        bench.done(&["put", &relay.uri("/store"), "--payload", "once"]);
        bench.done(&["put", &store, "--file", &file]);
        for message in relay.requests() {
            let answer = replay(server.address(), &message, 9);
            assert!(answer[1] == 0x81 && answer.ends_with(b"Replay detected"), "{answer:?}");
        }
        assert!(!relay.requests().is_empty());
        for octets in [5, 3_000] {
            assert_eq!(bench.done(&["fetch", &store, "--payload", &octets.to_string()]), body(octets));
        }
        let seen =
            String::from_utf8(bench.done(&["observe", &server.uri("/count"), "--count", "4"])).unwrap();
        let counts: Vec<u32> =
            seen.split("count ").skip(1).map(|count| count.trim().parse().unwrap()).collect();
        assert!(counts.len() == 4 && counts.is_sorted(), "{seen}");
    }
}

#[test]
fn aiocoap_and_we_refuse_each_others_wrong_keys() {
    let Some(python) = aiocoap() else { return };
    let bench = Bench::new();
    bench.keygen("other", "elsewhere");
    let server = bench.serve(&[]);
    let mut client = script(&python, "secure_client.py");
    let done = client.args([&server.uri(""), &bench.path("other")]).output().unwrap();
    assert!(!done.status.success(), "{}", text(&done));
    drop(server);
    let server = bench.serve_aiocoap(&python, "server");
    let why = bench.failed(&["get", &server.uri("/store")], "other");
    assert!(why.contains("not protected"), "{why}");
    assert_eq!(bench.done(&["get", &server.uri("/store")]), b"nothing yet");
}
