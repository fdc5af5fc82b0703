//! `thinair coap`, run as a user runs it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::net::UdpSocket;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use thinair_coap::{Builder, Code, Message, Type, code, number};

#[test]
fn the_option_that_ended_the_wait_is_named() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap://{}/time", silent.local_addr().unwrap());
    for (options, named, other) in [
        (["--for", "100ms", "--timeout", "60s"], "--for", "--timeout"),
        (["--for", "60s", "--timeout", "100ms"], "--timeout", "--for"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thinair"));
        let output = command.args(["coap", "observe", &uri]).args(options).output().unwrap();
        let report = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{report}");
        assert!(report.contains(&format!("Raise the limit with {named}")), "{report}");
        assert!(!report.contains(other), "{report}");
    }
}

/// RFC 7252, section 8.1: no Confirmable request to a group. Where there is no member, the wait ends.
#[test]
fn a_request_to_a_group_is_asked_for() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_thinair"))
            .args(["coap", "get"])
            .args(arguments)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let group = "coap://[ff02::4343%25lo]:59/x";
    let (status, report) = run(&[group]);
    assert!(status == Some(1) && report.contains("multicast") && report.contains("--group"), "{report}");
    // Or no route to it.
    let (status, report) = run(&[group, "--group=100ms"]);
    assert!(status == Some(1) && !report.contains("Omit"), "{report}");
    let (status, report) = run(&["coap://127.0.0.1/x", "--group=100ms"]);
    assert!(status == Some(1) && report.contains("no multicast address"), "{report}");
    let (status, report) = run(&["coap+tcp://127.0.0.1/x", "--group"]);
    assert!(status == Some(2) && report.contains("over UDP"), "{report}");
}

/// Returns a server that answers a request for `/missing` with 4.04 and others with their number. It reports the port of
/// the sender, the Token and the Message ID of each message, and answers a registration with three notifications.
fn witness(address: &str) -> (String, mpsc::Receiver<(u16, Vec<u8>, u16)>) {
    let socket = UdpSocket::bind(address).unwrap();
    let uri = format!("coap://{}", socket.local_addr().unwrap());
    let (seen, witnessed) = mpsc::channel();
    thread::spawn(move || {
        let (mut buffer, mut number) = ([0; 1_500], 0_u8);
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let request = Message::read(&buffer[..len]).unwrap();
            let _ = seen.send((from.port(), request.token.octets().to_vec(), request.message_id));
            let is_missing = request.options.path().any(|segment| segment == b"missing");
            let observe = request.options.uint(number::OBSERVE);
            for notification in 0..if observe == Some(0) { 3_u8 } else { 1 } {
                let (kind, id) = match notification {
                    0 => (Type::Acknowledgement, request.message_id),
                    _ => (Type::NonConfirmable, notification.into()),
                };
                let code = if is_missing { code::NOT_FOUND } else { Code::CONTENT };
                let mut answer = [0; 64];
                let mut builder = Builder::new(&mut answer, kind, code, id, &request.token).unwrap();
                if observe == Some(0) {
                    builder.option(number::OBSERVE, &[notification + 1]).unwrap();
                }
                number += 1;
                let payload = if is_missing { String::new() } else { format!("{number}") };
                let len = builder.payload(payload.as_bytes()).unwrap();
                socket.send_to(&answer[..len], from).unwrap();
            }
        }
    });
    (uri, witnessed)
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_thinair")).arg("coap").args(arguments).output().unwrap();
    let text = |octets| String::from_utf8(octets).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn several_requests_have_one_port_and_count() {
    let (one, seen_by_one) = witness("127.0.0.1:0");
    let (other, seen_by_other) = witness("127.0.0.2:0");
    let uris = [format!("{one}/a"), format!("{other}/b"), format!("{one}/c")];
    let [a, b, c] = uris.each_ref().map(String::as_str);
    assert_eq!(
        run(&["get", a, b, c, "--repeat", "3"]),
        (Some(0), "1\n1\n2\n3\n2\n4\n5\n3\n6\n".to_owned(), String::new())
    );
    let [of_one, of_other] = [seen_by_one, seen_by_other].map(|seen| seen.try_iter().collect::<Vec<_>>());
    assert_eq!((of_one.len(), of_other.len()), (6, 3));
    for seen in [&of_one, &of_other] {
        for pair in seen.windows(2) {
            let [before, after] = [&pair[0].1, &pair[1].1]
                .map(|token| token.iter().fold(0, |uint, octet| uint << 8 | u32::from(*octet)));
            assert_eq!((after, pair[1].1.len()), ((before + 1) & 0xFF_FFFF, 3));
            assert_eq!(pair[1].2, pair[0].2.wrapping_add(1));
        }
        assert!(seen.iter().all(|(port, ..)| *port == of_one[0].0), "{of_one:?} {of_other:?}");
    }
    assert_ne!((&of_one[0].1, of_one[0].2), (&of_other[0].1, of_other[0].2));
}

#[test]
fn a_repeated_put_and_an_observation_have_one_port() {
    let (server, seen) = witness("127.0.0.1:0");
    let uri = format!("{server}/a");
    let start = Instant::now();
    let (status, _, report) =
        run(&["put", &uri, "--payload", "x", "--repeat", "3", "--every", "100ms", "--token-length", "2"]);
    assert_eq!(status, Some(0), "{report}");
    assert!(start.elapsed() >= Duration::from_millis(200));
    let puts: Vec<_> = seen.try_iter().collect();
    assert_eq!((puts.len(), puts[0].1.len()), (3, 2));
    assert!(puts.iter().all(|(port, ..)| *port == puts[0].0));

    let (status, states, report) = run(&["observe", &uri, "--count", "3"]);
    assert_eq!((status, &*states), (Some(0), "4\n5\n6\n"), "{report}");
    // Registration and deregistration: one port, one Token.
    let observed: Vec<_> = seen.try_iter().collect();
    assert_eq!(observed.len(), 2);
    assert_eq!((observed[0].0, &observed[0].1), (observed[1].0, &observed[1].1));
}

#[test]
fn a_request_that_fails_does_not_end_the_series() {
    let (server, _seen) = witness("127.0.0.1:0");
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let uris = [format!("{server}/missing"), format!("coap://{closed}/x"), format!("{server}/here")];
    let [missing, closed, here] = uris.each_ref().map(String::as_str);
    let (status, payload, report) = run(&["get", missing, closed, here]);
    assert_eq!((status, &*payload), (Some(1), "2\n"), "{report}");
    let lines: Vec<_> = report.lines().collect();
    assert_eq!(lines.len(), 2, "{report}");
    assert!(lines[0].starts_with(&format!("thinair: {missing}: 4.04")), "{report}");
    assert!(
        lines[1].starts_with(&format!("thinair: {closed}: ")) && lines[1].contains("nobody listens"),
        "{report}"
    );
    let (status, documents, _) = run(&["get", missing, here, "--json"]);
    assert_eq!((status, documents.lines().count()), (Some(1), 2), "{documents}");
    for (arguments, why) in [
        (&["get", missing, here, "--output", "x"][..], "--output"),
        (&["get", missing, here, "--group"], "--group"),
        (&["get", here, "--every", "1s"], "--repeat"),
    ] {
        let (status, _, report) = run(arguments);
        assert!(status == Some(2) && report.contains(why), "{arguments:?}: {report}");
    }
}
