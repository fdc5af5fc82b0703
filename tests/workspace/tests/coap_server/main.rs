//! `thinair coap serve` with clients of other implementations, and with malicious ones.
//!
//! Every server listens at a free port of the loopback addresses. Where the client of libcoap or aiocoap is missing,
//! the tests print the skipped parts. Time limits allow for a busy machine; no process outlives its test.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod attacks;
mod served;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use served::{Served, body, output};

const CLIENT: &str = "coap-client-notls";

/// Time limit of a client, in seconds.
const PATIENCE: &str = "60";

/// Runs libcoap's client. Returns its output, with errors first.
fn libcoap(arguments: &[&str]) -> String {
    let mut client = Command::new("timeout");
    client.args(["--signal", "KILL", "90", CLIENT, "-B", PATIENCE]).args(arguments);
    let done = client.stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout)
}

fn has_libcoap() -> bool {
    let there = Command::new(CLIENT).arg("-h").output().is_ok();
    if !there {
        println!("skipped: libcoap, because there is no {CLIENT} (Debian: libcoap3-bin)");
    }
    there
}

#[test]
fn libcoap_gets_puts_posts_and_deletes() {
    if !has_libcoap() {
        return;
    }
    let served = Served::start(&["--writable", "--test-resources"]);
    for (scheme, base) in [("udp", served.uri()), ("tcp", served.tcp_uri())] {
        let uri = |path: &str| format!("{base}{path}");
        let file = format!("/{scheme}.txt");
        libcoap(&["-m", "put", "-t", "0", "-e", "first", &uri(&file)]);
        assert_eq!(fs::read(served.root().join(&file[1..])).unwrap(), b"first", "{scheme}");
        assert_eq!(libcoap(&["-m", "get", &uri(&file)]).trim(), "first");
        libcoap(&["-m", "put", "-e", "second", &uri(&file)]);
        assert_eq!(libcoap(&["-m", "get", &uri(&file)]).trim(), "second");
        assert!(libcoap(&["-m", "get", "-A", "60", &uri(&file)]).contains("4.06"));
        libcoap(&["-m", "post", "-t", "50", "-e", "{}", &uri("/")]);
        libcoap(&["-m", "delete", &uri(&file)]);
        assert!(libcoap(&["-m", "get", &uri(&file)]).contains("4.04"));
        assert!(libcoap(&["-m", "get", &uri("/../secret")]).contains("4.04"));
        assert_eq!(libcoap(&["-m", "get", &uri("/separate")]).trim(), "a second later");
        let list = libcoap(&["-m", "get", &uri("/.well-known/core?rt=Type3")]);
        assert_eq!(list.matches("</link").count(), 2, "{list}");
    }
    let posted = fs::read_dir(served.root()).unwrap();
    let posted = posted.filter(|entry| entry.as_ref().unwrap().path().extension() == Some("json".as_ref()));
    assert_eq!(posted.count(), 2);
    let statistics = served.end();
    assert_eq!(statistics["connections"]["accepted"], 11);
    assert_eq!(statistics["responses"]["5"], 0);
}

#[test]
fn libcoap_observes() {
    if !has_libcoap() {
        return;
    }
    let served = Served::start(&["--writable"]);
    for uri in [served.uri(), served.tcp_uri()] {
        fs::write(served.root().join("seen.txt"), "state 0").unwrap();
        let path = format!("{uri}/seen.txt");
        let watching = std::thread::spawn(move || libcoap(&["-w", "-s", "4", "-m", "get", &path]));
        for state in 1..=2 {
            std::thread::sleep(Duration::from_millis(1_200));
            fs::write(served.root().join("seen.txt"), format!("state {state}")).unwrap();
        }
        let seen = watching.join().unwrap();
        // A file that is being overwritten can be read while it is empty.
        assert!(["state 0", "state 1", "state 2"].iter().all(|state| seen.contains(state)), "{seen}");
    }
    assert!(served.end()["notifications"].as_u64() >= Some(4));
}

#[test]
fn a_mebibyte_goes_and_comes_block_by_block() {
    if !has_libcoap() {
        return;
    }
    let served = Served::start(&["--writable"]);
    let body = body();
    let (sent, back) = (served.file("sent"), served.file("back"));
    fs::write(&sent, &body).unwrap();
    for (base, size) in [(served.uri(), "1024"), (served.uri(), "256"), (served.tcp_uri(), "1024")] {
        let uri = format!("{base}/large.bin");
        let _ = fs::remove_file(&back);
        let text = libcoap(&["-b", size, "-m", "put", "-f", sent.to_str().unwrap(), &uri]);
        let arrived = fs::read(served.root().join("large.bin")).unwrap();
        assert!(arrived == body, "{uri} {size}: {} octets; {text}", arrived.len());
        let text = libcoap(&["-b", size, "-m", "get", "-o", back.to_str().unwrap(), &uri]);
        let fetched = fs::read(&back).unwrap();
        assert!(fetched == body, "{uri} {size}: {} octets; {text}", fetched.len());
        fs::remove_file(served.root().join("large.bin")).unwrap();
    }
    // One octet more exceeds the limit.
    fs::write(&sent, [&body[..], b"x"].concat()).unwrap();
    let uri = format!("{}/large.bin", served.uri());
    assert!(libcoap(&["-m", "put", "-f", sent.to_str().unwrap(), &uri]).contains("4.13"));
    assert!(!served.root().join("large.bin").exists());
}

#[test]
fn aiocoap_finds_everything_in_order() {
    let python = PathBuf::from(thinair_tests::text(&thinair_tests::metadata(), "target_directory"))
        .join("coap-peers/python");
    let python = std::env::var_os("THINAIR_PYTHON").map_or(python, PathBuf::from);
    if !python.join("installed").exists() {
        println!("skipped: aiocoap, because it is not installed (`make test` does that, with pip)");
        return;
    }
    let served = Served::start(&["--writable"]);
    let file = served.file("body");
    fs::write(&file, body()).unwrap();
    for uri in [served.uri(), served.tcp_uri()] {
        let _ = fs::remove_file(served.root().join("large.bin"));
        let mut client = Command::new("timeout");
        client.args(["--signal", "KILL", "120", "python3", "-s"]);
        client.arg(thinair_tests::root().join("tests/workspace/peers/aiocoap_client.py"));
        client.arg(&uri).arg(&file).env("PYTHONPATH", &python).env("PYTHONDONTWRITEBYTECODE", "1");
        let done = client.stdin(Stdio::null()).output().unwrap();
        let text = output(&done);
        assert!(done.status.success(), "{uri}: {text}");
        assert!(text.contains("state 3 is told"), "{uri}: {text}");
        assert!(fs::read(served.root().join("large.bin")).unwrap() == body());
    }
}

#[test]
fn wrong_arguments_are_told_apart_from_failures() {
    let thinair = served::thinair();
    let status = |arguments: &[&str]| {
        let done = Command::new(&thinair).args(["coap", "serve"]).args(arguments).output().unwrap();
        (done.status.code(), output(&done))
    };
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = port.local_addr().unwrap().to_string();
    for (arguments, code, words) in [
        (&["--listen", "nowhere"][..], 2, "expected an address"),
        (&["--writable"], 2, "--root"),
        (&["--root", "/no/such/folder"], 2, "is not a folder"),
        (&["--no-tcp", "--no-udp"], 2, "leave nothing to serve"),
        (&["--congestion", "hope"], 2, "hope"),
        (&["--listen", &taken], 1, "cannot listen to"),
        (&["--listen", "192.0.2.77:0"], 1, "cannot listen to"),
    ] {
        let (status, text) = status(arguments);
        assert_eq!(status, Some(code), "{arguments:?}: {text}");
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
}
