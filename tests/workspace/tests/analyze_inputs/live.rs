//! Captures on an interface. They need root, for separate network namespaces; without it, the tests are skipped.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::UdpSocket;
use std::os::unix::process::CommandExt as _;
use std::process::Child;
use std::time::{Duration, Instant};

use thinair_os::signals::{Ask, ask};
use thinair_os::{Interface, Namespace, Route};

use super::*;
use thinair_tests::world::in_a_world;

/// Two hosts with a cable between them; the command runs on the first.
struct CableHosts {
    one: Namespace,
    other: Namespace,
}

impl CableHosts {
    fn new() -> Self {
        let (one, other) = (Namespace::create("one").unwrap(), Namespace::create("other").unwrap());
        Interface::veth((&one, "eth0"), (&other, "eth0")).unwrap();
        for (host, address) in [(&one, "192.0.2.1"), (&other, "192.0.2.2")] {
            host.quiet().unwrap();
            host.within(|| {
                let interface = Interface::named("eth0").unwrap();
                interface.add_address(address.parse().unwrap(), 24).unwrap();
                interface.up().unwrap();
                let to = ("192.0.2.0".parse().unwrap(), 24);
                interface.add_route(&Route { to, from: None, mtu: 0, congestion: None }).unwrap();
            })
            .unwrap();
        }
        Self { one, other }
    }

    /// Starts a capture, and returns when the command has announced it, with the rest of its standard error.
    fn capture(&self, arguments: &[&str]) -> (Child, BufReader<std::process::ChildStderr>) {
        let mut command = Command::new(command());
        command.args(["analyze", "--interface", "eth0"]).args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.one.spawn(&mut command).unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert_eq!(line, "thinair: capturing on eth0; Ctrl-C ends it\n");
        (child, stderr)
    }

    /// Sends datagrams of a call from one host to the other.
    fn send(&self, count: u32) {
        let to = self.other.within(|| UdpSocket::bind("192.0.2.2:5004").unwrap()).unwrap();
        let from = self.one.within(|| UdpSocket::bind("192.0.2.1:5004").unwrap()).unwrap();
        for number in 0..count {
            from.send_to(&[&[0_u8; 60][..], &number.to_be_bytes()].concat(), "192.0.2.2:5004").unwrap();
            to.recv(&mut [0; 64]).unwrap();
        }
    }
}

/// Output and exit status of the command, and the time of its end.
fn ended(mut child: Child, mut stderr: BufReader<std::process::ChildStderr>) -> (Output, String) {
    let mut report = String::new();
    stderr.read_to_string(&mut report).unwrap();
    let mut stdout = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    let status = child.wait().unwrap();
    (Output { status, stdout, stderr: Vec::new() }, report)
}

/// Packets of UDP in a document.
fn udp_packets(found: &Value) -> u64 {
    let flows = found["flows"].as_array().unwrap().iter().filter(|flow| flow["protocol"] == "udp");
    flows.map(|flow| flow["packets"].as_u64().unwrap()).sum()
}

#[test]
fn what_an_interface_carries_is_analyzed_until_it_is_interrupted() {
    in_a_world("live::what_an_interface_carries_is_analyzed_until_it_is_interrupted", || {
        let hosts = CableHosts::new();
        let kept = folder().path("kept.pcap");
        let (mut child, stderr) = hosts.capture(&["--json", "--write", kept.to_str().unwrap()]);
        hosts.send(500);
        ask(&mut child, Ask::Interrupt);
        let (output, report) = ended(child, stderr);
        assert_eq!(output.status.code(), Some(0), "{report}");
        let found = json(&output);
        assert_eq!(udp_packets(&found), 500);
        assert_eq!(
            (&found["inputs"][0]["path"], &found["inputs"][0]["dropped"]),
            (&"eth0".into(), &0.into())
        );
        assert!(
            report.contains(" captured in ") && report.contains(" 0 frames dropped by the kernel"),
            "{report}"
        );
        for scheme in found["totals"]["schemes"].as_array().unwrap() {
            assert_eq!(scheme["roundtrip_mismatches"], 0);
        }
        // Schemes that need the packets beforehand are included, and the kept file gives equal packets.
        let again = json(&thinair(&["analyze", "--json"], &[&kept]));
        assert_eq!(again["totals"], found["totals"]);
        assert!(again["totals"]["schemes"].to_string().contains("schc"));
    });
}

#[test]
fn a_capture_ends_after_its_time() {
    in_a_world("live::a_capture_ends_after_its_time", || {
        let hosts = CableHosts::new();
        let start = Instant::now();
        let (child, stderr) = hosts.capture(&["--for", "700ms", "--schemes", "rohc-v1"]);
        hosts.send(20);
        let (output, report) = ended(child, stderr);
        assert!(start.elapsed() >= Duration::from_millis(700));
        assert_eq!(output.status.code(), Some(0), "{report}");
        assert!(stdout(&output).starts_with("eth0: "), "{}", stdout(&output));

        // A quiet interface, and one that is down.
        let silence = hosts.capture(&["--for", "100ms", "--schemes", "rohc-v1"]);
        let (output, report) = ended(silence.0, silence.1);
        if output.status.code() == Some(1) {
            assert!(report.contains("eth0: no "), "{report}");
            assert_eq!(stdout(&output), "");
        }
        hosts.one.within(|| Interface::named("eth0").unwrap().down().unwrap()).unwrap();
        let mut command = Command::new(command());
        let down = command.args(["analyze", "--interface", "eth0", "--for", "100ms"]).stderr(Stdio::piped());
        let down = hosts.one.spawn(down).unwrap().wait_with_output().unwrap();
        assert_eq!(down.status.code(), Some(1));
        assert!(stderr_of(&down).contains("eth0"), "{}", stderr_of(&down));
    });
}

fn stderr_of(output: &Output) -> String {
    super::stderr(output)
}

#[test]
fn errors_of_interfaces_say_what_is_missing() {
    in_a_world("live::errors_of_interfaces_say_what_is_missing", || {
        let unknown = thinair(&["analyze", "--interface", "eth7"], &[]);
        assert_eq!(unknown.status.code(), Some(1));
        assert!(
            stderr(&unknown).contains("no interface `eth7`; the interfaces are lo"),
            "{}",
            stderr(&unknown)
        );

        // A copy, if the file of the command is not readable for others.
        let copy = Path::new("/run/thinair");
        fs::copy(command(), copy).unwrap();
        let nobody = Command::new(copy).args(["analyze", "--interface", "lo"]).uid(65_534).output().unwrap();
        assert_eq!(nobody.status.code(), Some(1));
        assert!(stderr(&nobody).contains("CAP_NET_RAW"), "{}", stderr(&nobody));
    });
}

#[test]
fn options_of_a_capture_need_an_interface() {
    for (arguments, why) in [
        (&["--for", "1s"][..], "--interface"),
        (&["--for", "1s", CAPTURE], "cannot be used with"),
        (&["--write", "kept.pcap", CAPTURE], "cannot be used with"),
        (&["--interface", "lo", CAPTURE], "cannot be used with"),
        (&["--interface", "lo", "--for", "soon"], "expected a number above 0"),
    ] {
        let output = thinair(&[&["analyze"], arguments].concat(), &[]);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    }
}
