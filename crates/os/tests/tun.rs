//! Persistent devices, and devices that are deleted.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

use common::namespace;
use thinair_os::{EventLoop, Interface, Tun, TunKind, clock};

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
