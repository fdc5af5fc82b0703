//! Namespaces, interfaces and TUN devices, where the caller may create them; elsewhere the tests report that they are
//! skipped.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{cable, name, namespace};
use thinair_os::signals::{Ask, ask};
use thinair_os::{Interface, Namespace, Route, Signals, Tun, TunKind, clock};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1));
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2));

/// Creates a TUN device that is up, quiet, and has an address.
fn tun(namespace: &Namespace, mtu: u32) -> Tun {
    namespace.quiet().unwrap();
    let tun = Tun::open_in(namespace, "link0", TunKind::Tun).unwrap();
    let set_up = || {
        let interface = Interface::named(tun.name())?;
        interface.quiet()?;
        interface.set_mtu(1_280)?;
        interface.up()?;
        interface.add_address(HERE, 30)?;
        interface.add_address("fd09::1".parse().unwrap(), 64)?;
        let route = Route { to: (THERE, 32), from: Some(HERE), mtu, congestion: Some("reno".to_owned()) };
        interface.add_route(&route)
    };
    namespace.within(set_up).unwrap().unwrap();
    tun
}

/// Returns the packets that the system sends until it has been silent for `silence`.
fn packets(tun: &Tun, silence: Duration) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut last = clock::now();
    let mut octets = [0; 2_000];
    while clock::now().since(last) < silence {
        match tun.read(&mut octets) {
            Ok(len) => {
                packets.push(octets[..len].to_vec());
                last = clock::now();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1))
            }
            Err(error) => panic!("{error}"),
        }
    }
    packets
}

#[test]
fn a_name_is_there_while_the_namespace_is() {
    let Some(namespace) = namespace("name") else { return };
    let path = Path::new("/run/netns").join(name("name"));
    assert!(path.exists());
    let taken = Namespace::create(&name("name")).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
    assert!(path.exists(), "the one that is there stays");
    drop(Namespace::open(&name("name")).unwrap());
    assert!(path.exists(), "only who made it takes it away");
    drop(namespace);
    assert!(!path.exists());
    for wrong in ["", "..", "a/b"] {
        assert_eq!(Namespace::create(wrong).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn a_packet_goes_out_and_one_comes_in() {
    let Some(namespace) = namespace("packet") else { return };
    let tun = tun(&namespace, 0);
    let socket = namespace.within(|| UdpSocket::bind("0.0.0.0:5683").unwrap()).unwrap();
    socket.send_to(b"there", (THERE, 5683)).unwrap();
    let sent = packets(&tun, Duration::from_millis(300));
    assert_eq!(sent.len(), 1, "and nothing that nobody asked for: {sent:02x?}");
    let packet = &sent[0];
    assert_eq!(
        (packet.len(), &packet[12..20], &packet[28..]),
        (33, &[10, 9, 0, 1, 10, 9, 0, 2][..], &b"there"[..])
    );
    // The packet with exchanged addresses, to which checksums are insensitive.
    let mut back = packet.clone();
    back[12..20].rotate_left(4);
    tun.write(&back).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut octets = [0; 100];
    assert_eq!(socket.recv_from(&mut octets).unwrap(), (5, (THERE, 5683).into()));
    assert_eq!(tun.write(b"\0no packet").unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn the_route_limits_the_length_of_a_packet() {
    let Some(namespace) = namespace("mtu") else { return };
    let tun = tun(&namespace, 128);
    let socket = namespace.within(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    socket.send_to(&[7; 300], (THERE, 5683)).unwrap();
    let lengths: Vec<_> = packets(&tun, Duration::from_millis(100)).iter().map(Vec::len).collect();
    // 308 octets of UDP in fragments of 104, the largest multiple of 8 below 108.
    assert_eq!(lengths, [124, 124, 120]);
}

#[test]
fn a_cable_joins_two_namespaces() {
    let (Some(a), Some(b)) = (namespace("veth-a"), namespace("veth-b")) else { return };
    cable((&a, HERE), (&b, THERE));
    let bind = |namespace: &Namespace| namespace.within(|| UdpSocket::bind("0.0.0.0:7000").unwrap()).unwrap();
    let (one, other) = (bind(&a), bind(&b));
    other.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    one.send_to(b"over the cable", (THERE, 7000)).unwrap();
    assert_eq!(other.recv_from(&mut [0; 100]).unwrap(), (14, (HERE, 7000).into()));
}

#[test]
fn a_command_runs_inside_and_can_be_interrupted() {
    let Some(namespace) = namespace("command") else { return };
    tun(&namespace, 0);
    let output =
        namespace.spawn(Command::new("cat").arg("/proc/net/dev").stdout(std::process::Stdio::piped()));
    let output = String::from_utf8(output.unwrap().wait_with_output().unwrap().stdout).unwrap();
    let own = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    assert!(output.lines().count() < 6 && output != own, "{output}");

    // Blocking the signals here does not block them in children.
    let signals = Signals::take().unwrap();
    let mut child = namespace.spawn(Command::new("sleep").arg("60")).unwrap();
    ask(&mut child, Ask::Interrupt);
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    drop(signals);

    let missing = namespace.spawn(&mut Command::new("/no/such/command")).unwrap_err();
    assert_eq!(
        (missing.kind(), missing.to_string()),
        (ErrorKind::NotFound, "cannot run `/no/such/command`".to_owned())
    );
}
