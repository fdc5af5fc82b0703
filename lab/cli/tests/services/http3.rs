//! HTTP/3, with generated and given certificates.

use super::*;

/// Starts a server with a generated certificate. Returns the certificate's path, too.
fn start(folder: &TempDir, name: &str) -> (TestServer, String) {
    let certificate = folder.path().join(name).display().to_string();
    (TestServer::start("http3", folder, &["--save-certificate", &certificate]), certificate)
}

#[test]
fn objects_come_by_http3_from_a_server_that_is_trusted() {
    let folder = folder();
    let (mut server, certificate) = start(&folder, "server.pem");
    let url = |path: &str| format!("https://{}/{path}", server.address);
    let trusting = ["--trust-certificate", &certificate];
    for (path, object) in [("10", b"0123456789".to_vec()), ("empty", Vec::new()), ("large", large())] {
        let output = fetch("http3", &url(path), &trusting);
        assert!(output.status.success(), "{}", report(&output));
        assert!(output.stdout == object, "{path}: {} octets", output.stdout.len());
    }
    for path in ["missing", ".hidden", "%2e%2e%2fsecret"] {
        let output = fetch("http3", &url(path), &trusting);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{path}");
        assert!(report(&output).contains("404 Not Found"), "{}", report(&output));
    }
    let output = fetch("http3", &url("large"), &[&trusting[..], &["--max-body", "1000"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(report(&output).contains("--max-body"), "{}", report(&output));
    let done = server.end();
    assert_eq!(
        (&done["service"], &done["requests"], &done["errors"]),
        (&"http3".into(), &7.into(), &3.into())
    );
}

#[test]
fn a_session_is_resumed_with_the_request_in_its_first_datagram() {
    let folder = folder();
    let (mut server, certificate) = start(&folder, "server.pem");
    let url = format!("https://{}/10", server.address);
    let [cold, warm] = [&[][..], &["--resume"]].map(|more| {
        let output = fetch("http3", &url, &[&["--json", "--trust-certificate", &certificate], more].concat());
        assert!(output.status.success(), "{}", report(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    });
    assert_eq!((&cold["status"], &warm["body"]), (&200.into(), &"0123456789".into()));
    // 0-RTT: the request did not wait for the handshake.
    assert!(cold["connected_seconds"].is_number() && warm["connected_seconds"].is_null(), "{warm}");
    let done = server.end();
    assert_eq!((&done["connections"], &done["requests"]), (&3.into(), &3.into()));
}

#[test]
fn nobody_is_trusted_who_was_not_named() {
    let folder = folder();
    let (server, _) = start(&folder, "server.pem");
    let (_other, others) = start(&folder, "other.pem");
    let url = format!("https://{}/10", server.address);
    let output = fetch("http3", &url, &["--trust-certificate", &others]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(report(&output).contains("certificate"), "{}", report(&output));
    for (options, words) in [
        (&[][..], "--trust-certificate"),
        (&["--trust-certificate", "/nowhere"], "/nowhere"),
        (&["--trust-certificate", folder.path().join("served/10").to_str().unwrap()], "no certificate"),
    ] {
        let output = fetch("http3", &url, options);
        assert_ne!(output.status.code(), Some(0));
        assert!(report(&output).contains(words), "{}", report(&output));
    }
    let plain = fetch("http3", &format!("http://{}/10", server.address), &[]);
    assert_eq!(plain.status.code(), Some(2));
    assert!(report(&plain).contains("https://HOST"), "{}", report(&plain));
    let plain = fetch("http", &format!("http://{}/10", server.address), &["--trust-certificate", &others]);
    assert_eq!(plain.status.code(), Some(2));
    for wrong in [&["http3"][..], &["http", "--save-certificate", &others], &["http3", "--key", &others]] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_thinair-lab")).args(["serve", "--service"]).args(wrong).output();
        assert_eq!(output.unwrap().status.code(), Some(2), "{wrong:?}");
    }
}

/// The server does not respond, as on a path with too small an MTU.
#[test]
fn a_fetch_by_http3_ends_when_its_time_is_over() {
    let folder = folder();
    let (_server, certificate) = start(&folder, "server.pem");
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let output = fetch("http3", &url, &["--timeout", "300ms", "--json", "--trust-certificate", &certificate]);
    assert_eq!(output.status.code(), Some(1));
    assert!(report(&output).contains("--timeout"), "{}", report(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["status"].is_null() && json["error"].as_str().unwrap().contains("300ms"), "{json}");
}

#[test]
fn a_certificate_that_the_server_is_given_must_have_its_address_in_it() {
    let folder = folder();
    for (address, is_right) in [("127.0.0.1", true), ("127.0.0.2", false)] {
        let [key, certificate] =
            ["key", "pem"].map(|end| folder.path().join(format!("{address}.{end}")).display().to_string());
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
            .args(["-subj", "/CN=thing", "-addext", &format!("subjectAltName=IP:{address}")])
            // A certificate authority may not be a server's own certificate.
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", &key, "-out", &certificate])
            .output();
        let Ok(made) = made else {
            println!("skipped: there is no openssl to make certificates with");
            return;
        };
        assert!(made.status.success(), "{}", report(&made));
        let server = TestServer::start("http3", &folder, &["--certificate", &certificate, "--key", &key]);
        let url = format!("https://{}/10", server.address);
        let output = fetch("http3", &url, &["--trust-certificate", &certificate]);
        assert_eq!(output.status.success(), is_right, "{}", report(&output));
        assert!(is_right || report(&output).contains("certificate"), "{}", report(&output));
    }
}
