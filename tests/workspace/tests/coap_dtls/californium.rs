//! Californium, whose DTLS is Scandium, both ways, with connection IDs of 6 octets.

use super::*;

#[test]
fn californium_uses_our_server_from_two_addresses_and_across_a_restart() {
    let Some(mut command) = californium("DtlsPeer") else { return };
    let bench = Bench::new();
    let port = free_port();
    let mut server = bench.serve(port, &[]);
    let relay = Relay::before(&server);
    command.args(["client", &relay.uri(""), &bench.path("phone")]);
    let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut go, mut said) = (client.stdin.take().unwrap(), String::new());
    let (mut moved, mut resumed) = (0, 0);
    for line in BufReader::new(client.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let seen = relay.seen.lock().unwrap().clone();
        let waits = match line.as_str() {
            "move" => {
                *relay.moves.lock().unwrap() = true;
                moved = seen.len();
                true
            }
            "resume" => {
                resumed = seen.len();
                assert_eq!(messages(&seen[moved..], CLIENT_HELLO), 0, "a new address needs no handshake");
                assert_eq!(messages(&seen, CLIENT_KEY_EXCHANGE), 1);
                true
            }
            "restart" => {
                assert!(messages(&seen[resumed..], CLIENT_HELLO) > 0);
                assert_eq!(messages(&seen[resumed..], CLIENT_KEY_EXCHANGE), 0, "it is resumed");
                drop(server);
                server = bench.serve(port, &[]);
                true
            }
            _ => false,
        };
        if waits {
            go.write_all(b"\n").unwrap();
        }
        said += &line;
        said.push('\n');
    }
    println!("{said}");
    assert!(client.wait().unwrap().success());
    assert!(said.contains("100000 octets come") && said.contains("another session begins"), "{said}");
    assert!(said.contains("another key is refused"), "{said}");
    server.logs("another key");
}

#[test]
fn our_client_uses_californiums_server_from_two_addresses_and_across_a_restart() {
    if californium("DtlsPeer").is_none() {
        return;
    }
    let bench = Bench::new();
    let port = free_port();
    let start = |port: u16| {
        let mut command = californium("DtlsPeer").unwrap();
        command.args(["server", &port.to_string(), &bench.path("phone")]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "serving\n");
        Server::started("coaps", child, port)
    };
    let server = start(port);
    let (store, file) = (server.uri("/store"), bench.path("body"));
    assert_eq!(bench.done(&["get", &store]), b"nothing yet");
    for octets in [9, 100_000] {
        fs::write(&file, body(octets)).unwrap();
        bench.done(&["put", &store, "--file", &file]);
        assert_eq!(bench.done(&["get", &store]), body(octets));
    }
    let seen = String::from_utf8(bench.done(&["observe", &server.uri("/count"), "--count", "3"])).unwrap();
    assert_eq!(seen.matches("count ").count(), 3, "{seen}");
    bench.keys("other", &[("phone", "another secret..")]);
    let message = bench.failed(&["get", &store, "--ack-timeout", "100ms"], "other");
    println!("Californium, another key: {}", message.trim());

    assert!(message.contains("--psk-file") || message.contains("another key"), "{message}");

    let relay = Relay::before(&server);
    let mut client = bench.repeated(&relay.uri("/store"), 3);
    client.next();
    *relay.moves.lock().unwrap() = true;
    client.next();
    assert_eq!(
        messages(&relay.seen.lock().unwrap(), CLIENT_KEY_EXCHANGE),
        1,
        "a new address needs no handshake"
    );
    drop(server);
    let server = start(port);
    client.next();
    client.end();
    assert_eq!(messages(&relay.seen.lock().unwrap(), CLIENT_KEY_EXCHANGE), 2);

    let relay = Relay::before(&server);
    let mut client = bench.repeated(&relay.uri("/expire"), 2);
    client.next();
    client.next();
    client.end();
    let seen = relay.seen.lock().unwrap();
    assert!(messages(&seen, CLIENT_HELLO) > 2, "the session was over");
    assert_eq!(messages(&seen, CLIENT_KEY_EXCHANGE), 1, "it is resumed");
}
