//! Persistent devices, and devices that are deleted.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::Duration;

use common::namespace;
use thinair_os::tun::HEADER;
use thinair_os::{EventLoop, Interface, Offloads, Tun, TunKind, clock};

/// The shortest IPv4 packet, from 10.9.0.2 to 10.9.0.1; an unassigned protocol.
const PACKET: [u8; 20] = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253, 0x65, 0xd9, 10, 9, 0, 2, 10, 9, 0, 1];

/// Prepares an interface to send and receive.
fn set_up(name: &str) {
    let interface = Interface::named(name).unwrap();
    interface.quiet().unwrap();
    interface.up().unwrap();
    interface.add_address("10.9.0.1".parse().unwrap(), 32).unwrap();
    let to = ("10.9.0.2".parse().unwrap(), 32);
    interface.add_route(&thinair_os::Route { to, from: None, mtu: 0, congestion: None }).unwrap();
}

/// True if a packet of the system arrives at the device.
fn sends(tun: &Tun) -> bool {
    let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
    socket.send_to(b"x", "10.9.0.2:9").unwrap();
    let mut octets = [0; 100];
    (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        tun.read(&mut octets).is_ok_and(|len| len == 29)
    })
}

#[test]
fn a_device_that_stays_can_be_attached_to_again() {
    for (what, kind, other) in [("tun", TunKind::Tun, TunKind::Tap), ("tap", TunKind::Tap, TunKind::Tun)] {
        let Some(namespace) = namespace(&format!("stays-{what}")) else { return };
        let work = || {
            assert!(!Interface::exists("link0"));
            assert_eq!(Tun::attach("link0", kind).unwrap_err().kind(), ErrorKind::NotFound);
            let tun = Tun::open("link0", kind).unwrap();
            assert!(Interface::exists("link0"));
            drop(tun);
            assert!(!Interface::exists("link0"), "one that does not stay goes");

            let tun = Tun::open("link0", kind).unwrap();
            tun.set_persistent(true).unwrap();
            tun.set_owner(65_534).unwrap();
            let index = Interface::named("link0").unwrap().index();
            assert_eq!(Tun::attach("link0", kind).unwrap_err().kind(), ErrorKind::ResourceBusy);
            drop(tun);
            assert_eq!(Interface::named("link0").unwrap().index(), index);
            assert_eq!(Tun::attach("link0", other).unwrap_err().kind(), ErrorKind::InvalidInput);
            assert_eq!(Tun::open("lo", kind).unwrap_err().kind(), ErrorKind::InvalidInput, "no such device");

            let tun = Tun::attach("link0", kind).unwrap();
            assert_eq!(Interface::named("link0").unwrap().index(), index, "the same one");
            tun.set_persistent(false).unwrap();
            drop(tun);
            assert!(!Interface::exists("link0"));
        };
        namespace.within(work).unwrap();
    }
}

/// Turns on the offloads of a device: checksums, and segments of TCP and UDP that are cut later (TUNSETOFFLOAD, 0x67).
#[allow(unsafe_code, reason = "a call that no library wraps")]
fn offload(tun: &Tun) {
    /// _IOW('T', 208, unsigned int).
    const TUNSETOFFLOAD: u64 = 0x4004_54d0;
    // SAFETY: the file is open for the call, which takes a number, and no address.
    let done = unsafe { libc::ioctl(tun.as_fd().as_raw_fd(), TUNSETOFFLOAD as _, 0x67) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// The next packet of UDP over IPv4 that the system sends to the device, without the header of a frame.
fn datagram(tun: &Tun, kind: TunKind, length: usize) -> Vec<u8> {
    let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
    socket.send_to(&vec![b'x'; length], "10.9.0.2:9").unwrap();
    let mut octets = [0; 2_000];
    let head = if kind == TunKind::Tap { 14 } else { 0 };
    let found = (0..1_000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(1));
        let len = tun.read(&mut octets).ok()?;
        let packet = octets[head..len].to_vec();
        (packet.len() == 28 + length && packet[0] == 0x45 && packet[9] == 17).then_some(packet)
    });
    found.expect("a datagram")
}

#[test]
fn offloads_that_another_program_has_left_on_are_turned_off() {
    for kind in [TunKind::Tun, TunKind::Tap] {
        let Some(namespace) = namespace(&format!("offloads-{kind:?}").to_lowercase()) else { return };
        let work = || {
            let other = Tun::open("link0", kind).unwrap();
            other.set_persistent(true).unwrap();
            set_up("link0");
            if kind == TunKind::Tap {
                // Frames leave without address resolution.
                std::fs::write("/proc/sys/net/ipv4/conf/link0/arp_filter", "0").unwrap();
                let done = std::process::Command::new("ip")
                    .args(["link", "set", "link0", "arp", "off"])
                    .status()
                    .unwrap();
                assert!(done.success());
            }
            offload(&other);
            let is_whole = |tun: &Tun| {
                let packet = datagram(tun, kind, 100);
                let words =
                    packet[12..].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
                let sum: u32 = words.sum::<u32>() + 17 + 108;
                (sum & 0xffff) + (sum >> 16) == 0xffff
            };
            assert!(!is_whole(&other), "the other program calculates checksums itself");
            drop(other);
            for attach in [Tun::open as fn(&str, TunKind) -> _, Tun::attach] {
                let tun = attach("link0", kind).unwrap();
                assert!(is_whole(&tun), "{kind:?}: a checksum is missing");
                offload(&tun);
            }
        };
        namespace.within(work).unwrap();
    }
}

#[test]
fn an_interface_that_is_down_sends_nothing_and_takes_nothing() {
    let Some(namespace) = namespace("down") else { return };
    let work = || {
        let tun = Tun::open("link0", TunKind::Tun).unwrap();
        let nothing = |tun: &Tun| tun.read(&mut [0; 100]).unwrap_err().kind();
        assert_eq!(nothing(&tun), ErrorKind::WouldBlock);
        assert!(Tun::is_down(&tun.write(&PACKET).unwrap_err()));
        set_up("link0");
        tun.write(&PACKET).unwrap();
        assert!(sends(&tun));

        let interface = Interface::named("link0").unwrap();
        interface.down().unwrap();
        let why = tun.write(&PACKET).unwrap_err();
        assert!(Tun::is_down(&why) && !Tun::is_gone(&why), "{why}");
        assert_eq!(nothing(&tun), ErrorKind::WouldBlock);
        interface.up().unwrap();
        tun.write(&PACKET).unwrap();
    };
    namespace.within(work).unwrap();
}

#[test]
fn an_interface_that_is_taken_away_can_be_made_again() {
    let Some(namespace) = namespace("gone") else { return };
    let work = || {
        let tun = Tun::open("link0", TunKind::Tun).unwrap();
        set_up("link0");
        assert_eq!(tun.attach_again().unwrap_err().kind(), ErrorKind::AlreadyExists);
        let mut events = EventLoop::new(Duration::ZERO).unwrap();
        let mut ready = Vec::new();
        events.add(&tun, 1).unwrap();

        Interface::named("link0").unwrap().delete().unwrap();
        events.wait(Some(clock::now() + Duration::from_secs(10)), &mut ready).unwrap();
        assert_eq!(ready, [1], "it wakes who waits");
        for why in [tun.read(&mut [0; 100]).unwrap_err(), tun.write(&PACKET).unwrap_err()] {
            assert!(Tun::is_gone(&why) && !Tun::is_down(&why), "{why}");
        }
        assert!(tun.set_persistent(true).is_err());

        // A caller in another namespace creates it where it was.
        std::thread::scope(|scope| scope.spawn(|| tun.attach_again().unwrap()).join().unwrap());
        set_up("link0");
        tun.write(&PACKET).unwrap();
        assert!(sends(&tun));
        events.wait(Some(clock::now()), &mut ready).unwrap();
        assert_eq!(ready, [], "and is waited for as before");
    };
    namespace.within(work).unwrap();

    // Also from here, outside of the namespace.
    let tun = Tun::open_in(&namespace, "link1", TunKind::Tun).unwrap();
    namespace.within(|| Interface::named("link1").unwrap().delete().unwrap()).unwrap();
    tun.attach_again().unwrap();
    assert!(namespace.within(|| Interface::exists("link1")).unwrap() && !Interface::exists("link1"));
}

#[test]
fn a_device_with_offloads_has_a_header_before_each_packet_also_when_it_is_made_again() {
    let Some(namespace) = namespace("header") else { return };
    let work = || {
        let tun = Tun::open_offloaded("link0", TunKind::Tun).unwrap();
        assert_ne!(tun.offloads(), Offloads::None);
        for _ in 0..2 {
            set_up("link0");
            let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
            socket.send_to(b"x", "10.9.0.2:9").unwrap();
            let (mut header, mut octets) = ([0xFF; HEADER], [0; 100]);
            let found = (0..1_000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                tun.read_offloaded(&mut header, &mut octets).is_ok_and(|len| len == 29)
            });
            assert!(found);
            // The checksum of UDP is left to the reader; little-endian.
            assert_eq!(header, [1, 0, 0, 0, 0, 0, 20, 0, 6, 0]);
            tun.write_offloaded(&[0; HEADER], &PACKET).unwrap();
            let contradiction = [1, 0, 0, 0, 0, 0, 200, 0, 6, 0];
            let why = tun.write_offloaded(&contradiction, &PACKET).unwrap_err();
            assert_eq!(why.kind(), ErrorKind::InvalidInput);
            Interface::named("link0").unwrap().delete().unwrap();
            tun.attach_again().unwrap();
        }
    };
    namespace.within(work).unwrap();
}
