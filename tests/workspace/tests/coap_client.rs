//! `thinair coap get|put|post|delete|observe|discover` against the servers of libcoap and aiocoap, over UDP and TCP.
//!
//! Each test has its own network namespace with only loopback, which needs root; without it, or without a server, the
//! tests are skipped with a message. Time limits allow for a busy machine, except for the reaction to an interruption.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use thinair_os::signals::{Ask, ask};
use thinair_os::{Interface, Namespace};
use thinair_tests::{metadata, root, text};

/// Time limit of every process, in seconds.
const LIMIT: &str = "300";

/// Network namespace with a server.
struct ServerBench {
    namespace: Namespace,
    folder: PathBuf,
    server: Option<Child>,
}

/// Path of the command, or `None` and a message with the reason that nothing can be tested. The environment may name an
/// existing build.
fn thinair() -> Option<&'static str> {
    static COMMAND: OnceLock<Option<String>> = OnceLock::new();
    let command = COMMAND.get_or_init(|| match Namespace::create_unnamed() {
        Ok(_) => Some(thinair_tests::command()),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    });
    command.as_deref()
}

impl ServerBench {
    fn new(name: &str) -> Option<Self> {
        thinair()?;
        let namespace = Namespace::create_unnamed().unwrap();
        namespace.within(|| Interface::named("lo")?.up()).unwrap().unwrap();
        let folder = std::env::temp_dir().join(format!("thinair-coap-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Some(Self { namespace, folder, server: None })
    }

    fn spawn(&self, command: &[&str]) -> Child {
        let mut timeout = Command::new("timeout");
        // Without --foreground the command would receive a signal twice.
        timeout.args(["--foreground", "--signal", "KILL", LIMIT]).args(command);
        timeout.env("PYTHONPATH", python()).env("PYTHONDONTWRITEBYTECODE", "1");
        self.spawn_alone(&mut timeout)
    }

    fn spawn_alone(&self, command: &mut Command) -> Child {
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.namespace.spawn(command).unwrap()
    }

    /// Server of libcoap; `None` if it is not installed.
    fn with_libcoap(name: &str) -> Option<Self> {
        if Command::new("coap-server-notls").arg("-h").output().is_err() {
            println!("skipped: there is no coap-server-notls (Debian: libcoap3-bin)");
            return None;
        }
        let mut bench = Self::new(name)?;
        bench.server = Some(bench.spawn(&["coap-server-notls", "-A", "127.0.0.1", "-d", "10", "-v", "0"]));
        bench.wait("/time");
        Some(bench)
    }

    /// Server of aiocoap; `None` if it is not installed.
    fn with_aiocoap(name: &str) -> Option<Self> {
        if !python().join("installed").exists() {
            println!("skipped: aiocoap is not installed (`make test` does that, with pip)");
            return None;
        }
        let mut bench = Self::new(name)?;
        let script = root().join("tests/workspace/peers/aiocoap_server.py");
        let command = ["python3", "-s", script.to_str().unwrap(), "127.0.0.1", "5683"];
        bench.server = Some(bench.spawn(&command));
        bench.wait("/store");
        Some(bench)
    }

    /// Waits until the server answers.
    fn wait(&mut self, path: &str) {
        let until = Instant::now() + Duration::from_secs(40);
        while !self.run(&["get", &format!("coap://127.0.0.1{path}"), "--timeout", "5s"]).status.success() {
            assert!(Instant::now() < until, "the server does not answer");
            assert!(self.server.as_mut().unwrap().try_wait().unwrap().is_none(), "the server has ended");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn start(&self, arguments: &[&str]) -> Child {
        self.spawn(&[&[thinair().unwrap(), "coap"], arguments].concat())
    }

    /// Without `timeout`, which may end by a signal itself before it has passed the signal on.
    fn start_to_interrupt(&self, arguments: &[&str]) -> Child {
        self.spawn_alone(Command::new(thinair().unwrap()).arg("coap").args(arguments))
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.start(arguments).wait_with_output().unwrap()
    }

    /// Output of a request that succeeds.
    #[track_caller]
    fn done(&self, arguments: &[&str]) -> Vec<u8> {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        output.stdout
    }

    /// JSON output of a request.
    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_slice(&self.done(&[arguments, &["--json"]].concat())).unwrap()
    }
}

impl Drop for ServerBench {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // `timeout` passes the signal on.
            ask(&mut server, Ask::Terminate);
            let _ = server.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Folder in which `make test` has installed aiocoap.
fn python() -> PathBuf {
    Path::new(&text(&metadata(), "target_directory")).join("coap-peers/python")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Octets with a long period.
fn octets(count: u32) -> Vec<u8> {
    (0..count).map(|index| (index.wrapping_mul(index).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

const SCHEMES: [&str; 2] = ["coap", "coap+tcp"];

#[test]
fn libcoap_answers_every_method() {
    let Some(bench) = ServerBench::with_libcoap("methods") else { return };
    for scheme in SCHEMES {
        let uri = |path: &str| format!("{scheme}://127.0.0.1{path}");
        let report = bench.json(&["get", &uri("/time")]);
        assert_eq!(
            (&report["schema"], &report["code"], &report["method"]),
            (&"thinair.coap/1".into(), &"2.05".into(), &"GET".into())
        );
        assert!(report["payload"].as_str().unwrap().contains(':'), "{report}");
        assert_eq!(
            (&report["messages"]["transmissions"], &report["address"]),
            (&1.into(), &"127.0.0.1:5683".into())
        );

        // Only the payload is on standard output; other requested output is on standard error.
        let output =
            bench.run(&["put", &uri("/made"), "--payload", "here it is", "--format", "text/plain", "-v"]);
        assert!(output.status.success() && output.stdout.is_empty(), "{}", stderr(&output));
        assert!(stderr(&output).starts_with("2.01 Created"), "{}", stderr(&output));
        assert_eq!(bench.done(&["get", &uri("/made")]), b"here it is");
        bench.done(&["delete", &uri("/made")]);
        let output = bench.run(&["get", &uri("/made")]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        assert!(stderr(&output).starts_with("thinair: 4.04 Not Found"), "{}", stderr(&output));

        let table = String::from_utf8(bench.done(&["discover", &uri("")])).unwrap();
        assert!(
            table.contains("/time") && table.contains("Internal Clock") && table.contains("obs"),
            "{table}"
        );
    }
    // Congestion control, times and message types are local to the client.
    for options in
        [&["--congestion", "cocoa"][..], &["--congestion", "fasor", "--ack-timeout", "500ms"], &["--non"]]
    {
        bench.done(&[&["get", "coap://127.0.0.1/time"], options].concat());
    }
}

#[test]
fn libcoap_takes_and_gives_a_mebibyte_in_blocks() {
    let Some(bench) = ServerBench::with_libcoap("blocks") else { return };
    large(&bench, |number| format!("/large{number}"), "Created");
}

#[test]
fn aiocoap_takes_and_gives_a_mebibyte_in_blocks() {
    let Some(bench) = ServerBench::with_aiocoap("aiocoap-blocks") else { return };
    large(&bench, |_| "/store".to_owned(), "Changed");
}

/// Puts a body, gets it back, and compares octet by octet.
fn large(bench: &ServerBench, path: impl Fn(usize) -> String, answer: &str) {
    let body = octets(1 << 20);
    fs::write(bench.folder.join("sent"), &body).unwrap();
    for (number, scheme) in SCHEMES.into_iter().enumerate() {
        let uri = format!("{scheme}://127.0.0.1{}", path(number));
        let report = bench.json(&["put", &uri, "--file", "sent", "--format", "42"]);
        assert_eq!(report["code_name"], answer, "{report}");
        let blocks = if number == 0 { Some(1_024) } else { None };
        if blocks.is_some() {
            assert_eq!(report["blocks"]["up"].as_u64(), blocks, "{report}");
        }
        let output = bench.run(&["get", &uri, "--output", "received", "--timing"]);
        assert!(output.status.success() && output.stdout.is_empty(), "{}", stderr(&output));
        assert!(fs::read(bench.folder.join("received")).unwrap() == body, "{scheme}: other octets");
        // Smaller blocks, of a smaller body.
        let small = &body[..10_000];
        fs::write(bench.folder.join("small"), small).unwrap();
        bench.done(&["put", &uri, "--file", "small", "--format", "42", "--block-size", "128"]);
        let report = bench.json(&["get", &uri, "--block-size", "128"]);
        assert_eq!(
            (&report["payload_octets"], &report["payload_encoding"]),
            (&10_000.into(), &"base64".into())
        );
        assert_eq!(bench.done(&["get", &uri]), small);
        let output = bench.run(&["get", &uri, "--max-body", "5000"]);
        assert_eq!(output.status.code(), Some(1), "{scheme}");
        assert!(
            stderr(&output).contains("exceeds the limit of 5000 octets"),
            "{scheme}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn libcoap_is_observed() {
    let Some(bench) = ServerBench::with_libcoap("observe") else { return };
    for scheme in SCHEMES {
        let uri = format!("{scheme}://127.0.0.1/time");
        let seen = String::from_utf8(bench.done(&["observe", &uri, "--count", "3"])).unwrap();
        assert_eq!(seen.lines().count(), 3, "{seen}");
        assert!(seen.lines().all(|line| line.matches(':').count() == 2), "{seen}");
    }
    // A resource that cannot be observed causes a message, after its only response.
    let output = bench.run(&["observe", "coap://127.0.0.1/", "--count", "2"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stdout.is_empty() && stderr(&output).contains("does not let"), "{}", stderr(&output));
}

#[test]
fn aiocoap_answers_every_method_and_is_observed() {
    let Some(bench) = ServerBench::with_aiocoap("aiocoap") else { return };
    for scheme in SCHEMES {
        let uri = |path: &str| format!("{scheme}://127.0.0.1{path}");
        bench.done(&["put", &uri("/store"), "--payload", "one"]);
        assert_eq!(bench.done(&["get", &uri("/store")]), b"one");
        let report = bench.json(&["post", &uri("/store"), "--payload", "something"]);
        assert_eq!(
            (&report["code"], &report["location"], &report["payload"]),
            (&"2.01".into(), &"/store/made".into(), &"somethin".into())
        );
        bench.done(&["delete", &uri("/store")]);
        assert_eq!(bench.done(&["get", &uri("/store")]), b"");
        // Separate response.
        assert_eq!(bench.done(&["get", &uri("/late")]), b"late");
        let output = bench.run(&["get", &uri("/missing")]);
        assert!(output.status.code() == Some(1) && stderr(&output).contains("4.04"), "{}", stderr(&output));

        let lines =
            String::from_utf8(bench.done(&["observe", &uri("/count"), "--count", "5", "--json"])).unwrap();
        let counts: Vec<u64> = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].as_str().unwrap().to_owned())
            .map(|text| text.strip_prefix("count ").unwrap().parse().unwrap())
            .collect();
        assert_eq!(counts.len(), 5, "{lines}");
        assert!(counts.is_sorted_by(|one, other| one < other), "{counts:?}");
        let seen = bench.done(&["observe", &uri("/count"), "--for", "500ms"]);
        assert!(!seen.is_empty());
    }
    let table = String::from_utf8(bench.done(&["discover", "coap://127.0.0.1"])).unwrap();
    assert!(table.contains("/count"), "{table}");
}

#[test]
fn whoever_is_not_there_is_told() {
    let Some(bench) = ServerBench::new("nobody") else { return };
    let output = bench.run(&["get", "coap://127.0.0.1/x"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("127.0.0.1:5683: nobody listens there (ICMP"), "{}", stderr(&output));
    let output = bench.run(&["get", "coap+tcp://127.0.0.1/x"]);
    assert!(stderr(&output).contains("127.0.0.1:5683: nobody listens there"), "{}", stderr(&output));
    // No route at all.
    let output = bench.run(&["get", "coap://192.0.2.1/x"]);
    assert!(stderr(&output).contains("192.0.2.1:5683: cannot be reached"), "{}", stderr(&output));
    // A name that does not resolve.
    let output = bench.run(&["get", "coap://nowhere.invalid/x"]);
    assert!(stderr(&output).contains("cannot find the host `nowhere.invalid`"), "{}", stderr(&output));

    let silent = bench.namespace.within(|| std::net::UdpSocket::bind("127.0.0.1:5683")).unwrap().unwrap();
    // Others than `rfc7252` retransmit for a time, not for a number.
    let options = ["--congestion", "rfc7252", "--ack-timeout", "20ms", "--max-retransmit", "3", "--json"];
    let output = bench.run(&[&["get", "coap://127.0.0.1/x"][..], &options].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("sent 4 times over"), "{}", stderr(&output));
    assert!(stderr(&output).contains("--ack-timeout"), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["messages"]["transmissions"], &report["messages"]["received"]),
        (&4.into(), &0.into())
    );
    assert!(report["error"].as_str().unwrap().contains("no answer"), "{report}");
    let output = bench.run(&["get", "coap://127.0.0.1/x", "--timeout", "200ms"]);
    assert!(stderr(&output).contains("no response within 200ms"), "{}", stderr(&output));
    drop(silent);
}

/// Time until a command ends after an interruption, and its output.
fn interrupted(mut child: Child) -> (Duration, Output) {
    let start = Instant::now();
    ask(&mut child, Ask::Interrupt);
    let output = child.wait_with_output().unwrap();
    (start.elapsed(), output)
}

#[test]
fn an_interruption_is_heard() {
    let Some(bench) = ServerBench::with_libcoap("interrupted") else { return };
    let silent = bench.namespace.within(|| std::net::UdpSocket::bind("127.0.0.1:7000")).unwrap().unwrap();
    let waiting = bench.start_to_interrupt(&["get", "coap://127.0.0.1:7000/x"]);
    // Once the request arrives, the command only waits.
    silent.recv(&mut [0; 100]).unwrap();
    let (took, output) = interrupted(waiting);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("interrupted"), "{}", stderr(&output));
    assert!(took < Duration::from_secs(5), "{took:?}");

    // An interrupted observation prints a message, and is no failure.
    for scheme in SCHEMES {
        let observing =
            bench.start_to_interrupt(&["observe", &format!("{scheme}://127.0.0.1/time"), "--timing"]);
        std::thread::sleep(Duration::from_millis(1_500));
        let (took, output) = interrupted(observing);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(
            !output.stdout.is_empty() && stderr(&output).contains("2 requests sent"),
            "{}",
            stderr(&output)
        );
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

#[test]
fn wrong_arguments_are_status_2_and_told() {
    let Some(bench) = ServerBench::new("usage") else { return };
    for (arguments, why) in [
        (&["get", "coaps+tcp://127.0.0.1/"][..], "TLS"),
        (&["get", "coaps://127.0.0.1/"], "--psk-file"),
        (&["get", "coap://127.0.0.1/", "--psk-file", "x"], "coaps://"),
        (&["get", "127.0.0.1/x"], "absolute URI"),
        (&["get", "coap://h/a b"], "percent-encoded (octet 10)"),
        (&["get", "coap://h/", "--ack-timeout", "2"], "with us, ms, s"),
        (&["get", "coap://h/", "--option", "6=0"], "observe"),
        (&["put", "coap://h/", "--file", "not-there"], "cannot read not-there"),
        (&["put", "coap://h/", "--payload", "x", "--file", "y"], "cannot be used with"),
        (&["get", "coap://h/", "--accept", "jpeg2000"], "give its number"),
    ] {
        let output = bench.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    }
}
