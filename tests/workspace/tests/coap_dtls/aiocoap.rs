//! aiocoap, whose DTLS is tinydtls, both ways.

use std::path::{Path, PathBuf};

use super::*;

/// Folder with aiocoap and tinydtls; `None` and a message if they are not installed.
fn with_tinydtls() -> Option<PathBuf> {
    let python = aiocoap()?;
    if !python.join("DTLSSocket").exists() {
        println!(
            "skipped: aiocoap over DTLS, because tinydtls is not compiled (`make test` does that, with gcc and autoconf)"
        );
        return None;
    }
    Some(python)
}

impl Bench {
    /// Starts aiocoap's server.
    fn serve_aiocoap(&self, python: &Path, port: u16) -> Server {
        let mut command = script(python, "secure_server.py");
        command.args(["127.0.0.1", &port.to_string(), &self.path("phone")]).stderr(Stdio::null());
        let server = Server::started("coaps", command.spawn().unwrap(), port + 1);
        let until = Instant::now() + Duration::from_secs(60);
        let arguments = ["get", &server.uri("/store"), "--timeout", "2s", "--psk-file", &self.path("phone")];
        while !ask(&arguments).status.success() {
            assert!(Instant::now() < until, "the server does not answer");
        }
        server
    }
}

#[test]
fn aiocoap_uses_our_server() {
    let Some(python) = with_tinydtls() else { return };
    let bench = Bench::new();
    let server = bench.serve(0, &[]);
    let run = |key: &str| {
        script(&python, "secure_client.py").args([&server.uri(""), &bench.path(key)]).output().unwrap()
    };
    let done = run("phone");
    assert!(done.status.success() && text(&done).contains("state 3 is told"), "{}", text(&done));
    bench.keys("other", &[("phone", "another secret..")]);
    let done = run("other");
    assert!(!done.status.success() && text(&done).contains("NetworkError"), "{}", text(&done));
    server.logs("another key");
}

#[test]
fn our_client_uses_aiocoaps_server_which_restarts() {
    let Some(python) = with_tinydtls() else { return };
    let bench = Bench::new();
    let port = free_port();
    let server = bench.serve_aiocoap(&python, port);
    let (store, file) = (server.uri("/store"), bench.path("body"));
    for octets in [9, 100_000] {
        fs::write(&file, body(octets)).unwrap();
        bench.done(&["put", &store, "--file", &file]);
        assert_eq!(bench.done(&["get", &store]), body(octets));
    }
    let seen = String::from_utf8(bench.done(&["observe", &server.uri("/count"), "--count", "4"])).unwrap();
    assert_eq!(seen.matches("count ").count(), 4, "{seen}");
    let json: Value = serde_json::from_slice(&bench.done(&["get", &store, "--json"])).unwrap();
    let of = |side: &str| json["handshake_octets"][side].as_u64().unwrap();
    println!("aiocoap: handshake of {} octets sent, {} received", of("sent"), of("received"));
    assert!(of("sent") + of("received") <= MOST_OF_HANDSHAKE);
    bench.keys("other", &[("phone", "another secret..")]);
    let message = bench.failed(&["get", &store, "--ack-timeout", "100ms"], "other");
    println!("aiocoap, another key: {}", message.trim());
    assert!(message.contains("--psk-file") || message.contains("another key"), "{message}");

    // Without ICMP messages while nobody listens.
    let relay = Relay::before(&server);
    let mut client = bench.repeated(&relay.uri("/store"), 2);
    client.next();
    drop(server);
    let _server = bench.serve_aiocoap(&python, port);
    client.next();
    client.end();
}
