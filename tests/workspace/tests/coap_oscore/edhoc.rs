//! Keys that are agreed on by EDHOC: `thinair coap` with itself and with aiocoap, as Initiator and as Responder.

use super::*;

/// Octets of CoAP of the first protected exchange, without its last answer, and with that of `/time`.
const MOST: [u64; 2] = [165, 200];

/// Makes the folders `phone` and `sensor`.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.pair("phone", "sensor");
    bench
}

impl Bench {
    fn pair(&self, client: &str, server: &str) {
        let done = ask(&["pair", &self.path(client), &self.path(server)]);
        assert!(done.status.success(), "{}", text(&done));
    }

    fn serve_edhoc(&self) -> Server {
        self.serve_by(&["--edhoc", &self.path("sensor/own.key")])
    }

    fn ask_edhoc(&self, arguments: &[&str], key: &str) -> Output {
        ask(&[arguments, &["--edhoc", &self.path(key)]].concat())
    }

    #[track_caller]
    fn agreed(&self, arguments: &[&str]) -> Output {
        let done = self.ask_edhoc(arguments, "phone/own.key");
        assert!(done.status.success(), "{arguments:?}: {}", text(&done));
        done
    }
}

/// Numbers in the line of `--timing` that begins so.
fn numbers(text: &str, beginning: &str) -> Vec<u64> {
    let line = text.lines().find(|line| line.starts_with(beginning)).unwrap();
    line.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn our_client_and_server_agree_over_both_transports() {
    let bench = bench();
    let server = bench.serve_edhoc();
    for base in [server.uri(""), format!("coap+tcp://{}", server.address())] {
        let file = bench.path("body");
        fs::write(&file, body(3_000)).unwrap();
        bench.agreed(&["put", &format!("{base}/body.bin"), "--file", &file]);
        assert_eq!(bench.agreed(&["get", &format!("{base}/body.bin")]).stdout, body(3_000));
        let seen = bench.agreed(&["observe", &format!("{base}/time"), "--count", "2"]).stdout;
        assert_eq!(String::from_utf8(seen).unwrap().matches("UTC").count(), 2);
    }
    assert!(text(&ask(&["get", &server.uri("/time")])).contains("4.01 Unauthorized"));
}

/// With one key exchange for several requests, and with fewer octets than aiocoap's 64, 52 and 45 allow.
#[test]
fn the_first_protected_exchange_is_short() {
    let bench = bench();
    let server = bench.serve_edhoc();
    let done = text(&bench.agreed(&["get", &server.uri("/time"), "--timing", "--repeat", "2"]));
    assert_eq!(done.matches("keys agreed on with \"sensor\"").count(), 1, "{done}");
    let (agreed, asked) = (numbers(&done, "keys agreed"), numbers(&done, "host found"));
    let [.., sent, received] = agreed[..] else { panic!("{agreed:?}") };
    let [.., request, answer, _, _] = asked[..] else { panic!("{asked:?}") };
    println!("{sent} + {received} + {request} octets, and {answer} of the answer");
    let without = sent + received + request;
    assert!(without <= MOST[0] && without + answer <= MOST[1], "{done}");
}

#[test]
fn each_client_has_its_own_rights() {
    let bench = bench();
    bench.pair("tablet", "sensor");
    fs::write(bench.path("sensor") + "/phone.rights.json", r#"{"/time": ["GET"]}"#).unwrap();
    let server = bench.serve_edhoc();
    let put = ["put", &server.uri("/file"), "--payload", "x"];
    bench.agreed(&["get", &server.uri("/time")]);
    assert!(text(&bench.ask_edhoc(&put, "phone/own.key")).contains("4.03 Forbidden"));
    assert!(bench.ask_edhoc(&put, "tablet/own.key").status.success());
}

#[test]
fn strangers_are_refused_with_a_reason() {
    let bench = bench();
    bench.pair("thief", "safe");
    let server = bench.serve_edhoc();
    let failed = |key: &str| {
        let done = bench.ask_edhoc(&["get", &server.uri("/time")], key);
        assert_eq!((done.status.code(), &done.stdout[..]), (Some(1), &b""[..]));
        text(&done)
    };
    // The server has another credential than the client wants, or with another kid.
    let why = failed("thief/own.key");
    assert!(why.contains("cannot prove") || why.contains("which is not beside"), "{why}");
    // The client has the right credential of the server, which has none of the client.
    fs::copy(bench.path("phone/sensor.ccs"), bench.path("thief/safe.ccs")).unwrap();
    let why = failed("thief/own.key");
    assert!(why.contains("4.00") || why.contains("refuses"), "{why}");
    // A server that does not use EDHOC.
    drop(server);
    let server = bench.serve(&[]);
    let why = text(&bench.ask_edhoc(&["get", &server.uri("/time")], "phone/own.key"));
    assert!(why.contains("4.01"), "{why}");
    let why = text(&bench.ask_edhoc(&["get", &server.uri("/time")], "phone/none.key"));
    assert!(why.contains("none.key"), "{why}");
}

#[test]
fn a_server_that_has_restarted_agrees_anew() {
    let bench = bench();
    for _ in 0..2 {
        let server = bench.serve_edhoc();
        bench.agreed(&["get", &server.uri("/time")]);
    }
}

#[test]
fn a_key_is_printed_without_its_secret() {
    let bench = Bench::new();
    let done = ask(&["keygen", &bench.path("own.key"), "--kid", "0x07", "--subject", "lamp"]);
    let printed = text(&done);
    assert!(
        done.status.success()
            && printed.starts_with("{14: {2: \"lamp\", 8: {1: {1: 2, 2: h'07', -1: 1, -2: h'")
    );
    let key = fs::read(bench.path("own.key")).unwrap();
    let secret: String = key[8..].iter().map(|octet| format!("{octet:02x}")).collect();
    assert!(key.len() == 40 && !printed.contains(&secret));
    assert_eq!(ask(&["keygen", &bench.path("own.key")]).status.code(), Some(1));
}

#[test]
fn aiocoap_agrees_with_our_server() {
    let Some(python) = aiocoap() else { return };
    let bench = bench();
    let server = bench.serve_edhoc();
    let (mut posts, mut exchanges) = (0, 0);
    for (message_3, posts_each) in [("plain", 2), ("combined", 1)] {
        let mut client = script(&python, "secure_client.py");
        client.env("MESSAGE_3", message_3);
        let done = client.args([&server.uri(""), &bench.path("phone")]).output().unwrap();
        assert!(done.status.success() && text(&done).contains("state 3 is told"), "{}", text(&done));
        let log = server.log();
        let count = |what: &str, before: usize| log.matches(what).count() - before;
        let (more_posts, more) =
            (count("POST /.well-known/edhoc 2.04", posts), count("exchange has succeeded", exchanges));
        assert!(
            more > 0 && more_posts == posts_each * more,
            "{message_3}: {more} exchanges, {more_posts} requests"
        );
        (posts, exchanges) = (posts + more_posts, exchanges + more);
    }
    // A client that the server does not know.
    bench.pair("thief", "safe");
    fs::copy(bench.path("phone/sensor.ccs"), bench.path("thief/safe.ccs")).unwrap();
    let mut client = script(&python, "secure_client.py");
    let done = client.args([&server.uri(""), &bench.path("thief")]).output().unwrap();
    assert!(!done.status.success(), "{}", text(&done));
}

#[test]
fn our_client_agrees_with_aiocoaps_server() {
    let Some(python) = aiocoap() else { return };
    let bench = bench();
    let server = bench.serve_aiocoap(&python, "sensor");
    let store = server.uri("/store");
    let file = bench.path("body");
    fs::write(&file, body(3_000)).unwrap();
    bench.agreed(&["put", &store, "--file", &file]);
    assert_eq!(bench.agreed(&["get", &store]).stdout, body(3_000));
    assert_eq!(bench.agreed(&["fetch", &store, "--payload", "2000"]).stdout, body(2_000));
    let seen = bench.agreed(&["observe", &server.uri("/count"), "--count", "3"]).stdout;
    assert_eq!(String::from_utf8(seen).unwrap().matches("count ").count(), 3);
    bench.pair("thief", "safe");
    fs::copy(bench.path("phone/sensor.ccs"), bench.path("thief/safe.ccs")).unwrap();
    let why = text(&bench.ask_edhoc(&["get", &store], "thief/own.key"));
    assert!(why.contains("not protected"), "{why}");
}
