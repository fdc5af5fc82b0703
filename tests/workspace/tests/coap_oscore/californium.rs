//! OSCORE with Californium, both ways: methods and blocks. Observations are not compared: this version of Californium drops its own
//! notifications.

use super::*;

#[test]
fn californium_uses_our_server() {
    let Some(mut client) = californium("OscorePeer") else { return };
    let bench = Bench::new();
    let server = bench.serve(&[]);
    let done = client.args(["client", &server.uri(""), &bench.path("client")]).output().unwrap();
    assert!(done.status.success() && text(&done).contains("FETCH selects by 3209 octets"), "{}", text(&done));
}

#[test]
fn our_client_uses_californiums_server() {
    let Some(mut command) = californium("OscorePeer") else { return };
    let bench = Bench::new();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    command.args(["server", &port.to_string(), &bench.path("server")]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let server = Server::started("coap", child, port);
    assert_eq!(line, "serving\n");
    let store = server.uri("/store");
    assert_eq!(bench.done(&["get", &store]), b"nothing yet");
    let file = bench.path("body");
    for octets in [9, 3_000] {
        fs::write(&file, body(octets)).unwrap();
        bench.done(&["put", &store, "--file", &file]);
        assert_eq!(bench.done(&["get", &store]), body(octets));
        assert_eq!(bench.done(&["fetch", &store, "--payload", &octets.to_string()]), body(octets));
    }
    assert!(text(&ask(&["get", &store])).contains("4.01"));
}
