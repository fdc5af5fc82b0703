//! Offloads: packets as large as a buffer at the interface, which are small ones on the carrier, and the same without them.

use std::fs;

use serde_json::json;
use thinair_os::Namespace;

use super::bench::{Between, CarrierKind, TUN, TunnelBench, has, run, start, thinair};

/// Octets of a stream.
const STREAM: usize = 3_000_000;

/// Sends a stream of TCP to the other end, which compares it. Arguments: own address, or `to`; address; octets; 1: with
/// Destination Options.
const STREAM_PROGRAM: &str = r#"
import random, socket, sys
what, address, octets, extended = sys.argv[1:]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
data = random.Random(7).randbytes(int(octets))
if what == "to":
    s = socket.socket(family)
    if extended == "1":
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, bytes([0, 0, 1, 4, 0, 0, 0, 0]))
    s.settimeout(60)
    s.connect((address, 7))
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)
    assert s.recv(1) == b"k"
else:
    s = socket.create_server((address, 7), family=family)
    print("listens", flush=True)
    s.settimeout(60)
    c, _ = s.accept()
    got = b"".join(iter(lambda: c.recv(1 << 16), b""))
    assert got == data, len(got)
    c.send(b"k")
"#;

/// Sends a UDP datagram with a wrong checksum, and prints it as the other end receives it. Arguments: `to` or `at`.
const WRONG_PROGRAM: &str = r#"
import socket, struct, sys, time
udp = struct.pack("!HHHH", 9, 9, 8 + 40, 0x1234) + bytes(range(40))
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0x4711, 0x4000, 64, 17, 0, bytes([10, 77, 0, 1]), bytes([10, 77, 0, 2]))
if sys.argv[1] == "to":
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    for _ in range(3):
        s.sendto(ip + udp, ("10.77.0.2", 0))
else:
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    s.settimeout(20)
    print("listens", flush=True)
    for _ in range(3):
        got = s.recv(2000)
        assert got[20:] == udp and got[4:6] == ip[4:6], got.hex()
"#;

/// Sends a datagram of 40,000 octets in segments of 1,000 (UDP_SEGMENT), and compares them at the other end.
const SEGMENTS_PROGRAM: &str = r#"
import socket, sys
data = bytes(i * 7 % 251 for i in range(40_500))
if sys.argv[1] == "to":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(17, 103, 1000)
    s.sendto(data, ("10.77.0.2", 9))
else:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("10.77.0.2", 9))
    s.settimeout(20)
    print("listens", flush=True)
    got = [s.recv(2000) for _ in range(41)]
    assert got == [data[at:at + 1000] for at in range(0, len(data), 1000)]
"#;

/// Runs a program at both ends: it waits at the second one.
fn both(inside: &[Namespace; 2], program: &str, at: &[&str], to: &[&str]) {
    let mut waiting = start(&inside[1], 60, &[&["python3", "-c", program], at].concat());
    let mut word = [0; 8];
    std::io::Read::read_exact(waiting.stdout.as_mut().unwrap(), &mut word).unwrap();
    let sent = run(&inside[0], 60, &[&["python3", "-c", program], to].concat());
    let received = waiting.wait_with_output().unwrap();
    for output in [sent, received] {
        assert!(output.status.success(), "{to:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

fn stream(inside: &[Namespace; 2], address: &str, is_extended: bool) {
    let octets = STREAM.to_string();
    let extended = if is_extended { "1" } else { "0" };
    both(inside, STREAM_PROGRAM, &["at", address, &octets, extended], &["to", address, &octets, extended]);
}

/// Packets that the system has sent by the interface of a namespace.
fn read_from(inside: &Namespace) -> u64 {
    let table = inside.within(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
    let numbers = table.lines().find_map(|line| line.trim().strip_prefix(&format!("{TUN}:"))).unwrap();
    numbers.split_whitespace().nth(9).unwrap().parse().unwrap()
}

#[test]
fn streams_and_datagrams_pass_octet_by_octet_with_offloads_and_without() {
    if thinair().is_none() || !has("python3", "python3") {
        return;
    }
    for (name, options, offloads) in [
        ("offload", &[][..], json!([["tso", "uso"], ["udp_segment", "udp_gro"]])),
        ("no-offload", &["--offloads", "off"], json!([[], []])),
    ] {
        let bench = TunnelBench::started(name, CarrierKind::UDP, Between::Nothing, options);
        let status = bench.end(0).status();
        assert_eq!(json!([status["inside"]["offloads"], status["carrier"]["offloads"]]), offloads);
        let before = read_from(&bench.inside[0]);
        for (address, is_extended) in [("10.77.0.2", false), ("fd77::2", false), ("fd77::2", true)] {
            stream(&bench.inside, address, is_extended);
        }
        both(&bench.inside, SEGMENTS_PROGRAM, &["at"], &["to"]);
        // Also through a system that divides segments itself.
        let reads = read_from(&bench.inside[0]) - before;
        let packets = bench.end(0).status()["totals"]["sent"]["packets"].as_u64().unwrap();
        println!("{name}: {packets} packets by {reads} reads");
        assert!(packets > 3 * STREAM as u64 / 1_500, "each segment is a packet of its own");
        assert_eq!(reads < packets / 3, name == "offload", "{reads} of {packets}");
        both(&bench.inside, WRONG_PROGRAM, &["at"], &["to"]);
    }
}

#[test]
fn frames_pass_with_offloads_also_with_a_vlan_tag() {
    if thinair().is_none() || !has("python3", "python3") {
        return;
    }
    let bench = TunnelBench::started("vlan", CarrierKind::UDP, Between::Nothing, &["--tap"]);
    let stream_by = |address: &str| {
        let count = || bench.end(0).status()["totals"]["sent"]["packets"].as_u64().unwrap();
        let before = (read_from(&bench.inside[0]), count());
        stream(&bench.inside, address, false);
        let (reads, packets) = (read_from(&bench.inside[0]) - before.0, count() - before.1);
        println!("{address}: {packets} packets by {reads} reads");
        assert!(packets > STREAM as u64 / 1_500 && reads < packets / 3, "{reads} of {packets}");
    };
    stream_by("10.77.0.2");
    for (side, inside) in bench.inside.iter().enumerate() {
        let script = format!(
            "ip link add link {TUN} name {TUN}.5 type vlan id 5 && ip link set {TUN}.5 up && \
             ip address add 10.78.0.{}/24 dev {TUN}.5",
            side + 1
        );
        let made = run(inside, 10, &["sh", "-c", &script]);
        if !made.status.success() {
            println!(
                "skipped: VLAN tags, which this kernel lacks: {}",
                String::from_utf8_lossy(&made.stderr)
            );
            return;
        }
    }
    stream_by("10.78.0.2");
}
