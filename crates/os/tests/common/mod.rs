//! Namespaces for tests, where the caller may create them.

#![allow(dead_code, clippy::unwrap_used, reason = "each test uses some of it")]

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use thinair_os::{Interface, Namespace, Route};

/// A unique name.
pub(crate) fn name(what: &str) -> String {
    format!("thinair-test-{what}-{}", std::process::id())
}

/// Creates a namespace for one test; prints the reason and returns `None` without the privilege.
pub(crate) fn namespace(what: &str) -> Option<Namespace> {
    match Namespace::create(&name(what)) {
        Ok(namespace) => Some(namespace),
        Err(error) if error.is_permission() => {
            println!("skipped: {error}, which needs root");
            None
        }
        Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error)),
    }
}

/// Joins two namespaces by a cable, with an interface `cable` at each end, and an address there.
pub(crate) fn cable(one: (&Namespace, IpAddr), other: (&Namespace, IpAddr)) {
    Interface::veth((one.0, "cable"), (other.0, "cable")).unwrap();
    for ((namespace, own), (_, there)) in [(one, other), (other, one)] {
        let set_up = || {
            let interface = Interface::named("cable")?;
            let bits = if own.is_ipv4() { 32 } else { 128 };
            interface.up()?;
            interface.add_address(own, bits)?;
            interface.add_route(&Route { to: (there, bits), from: Some(own), mtu: 0, congestion: None })
        };
        namespace.quiet().unwrap();
        namespace.within(set_up).unwrap().unwrap();
    }
    // Packets sent before both ends have detected each other are lost.
    let bind = |(namespace, own): (&Namespace, IpAddr)| {
        let socket = namespace.within(|| UdpSocket::bind((own, 9)).unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        socket
    };
    let (here, there) = (bind(one), bind(other));
    for (from, to) in [(&here, &there), (&there, &here)] {
        let arrives = (0..2_000).any(|_| {
            let _ = from.send_to(b"?", to.local_addr().unwrap());
            to.recv(&mut [0]).is_ok()
        });
        assert!(arrives, "the cable is not up");
    }
}
