//! Sockets between two machines, represented by namespaces.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use common::{cable, namespace};
use thinair_os::udp::options::{
    OversizePolicy, ToGroups, bind_shared, join, path_mtu, send_to_groups, set_too_long,
};
use thinair_os::{Interface, Namespace, Ping};

/// Creates a member of a group in a namespace.
fn member(namespace: &Namespace, group: SocketAddr) -> UdpSocket {
    let bind = || {
        let socket = bind_shared(group).unwrap();
        join(&socket, group.ip(), Some(&Interface::named("cable").unwrap())).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    };
    namespace.within(bind).unwrap()
}

#[test]
fn a_group_is_heard_by_the_interface_by_which_it_was_joined() {
    for (group, here, there, family) in
        [("239.255.77.1", "10.9.0.1", "10.9.0.2", "4"), ("ff15::7701", "fd09::1", "fd09::2", "6")]
    {
        let (Some(a), Some(b)) =
            (namespace(&format!("group{family}-a")), namespace(&format!("group{family}-b")))
        else {
            return;
        };
        cable((&a, here.parse().unwrap()), (&b, there.parse().unwrap()));
        let group = SocketAddr::new(group.parse().unwrap(), 5_004);
        let (neighbour, far, other) = (member(&a, group), member(&b, group), member(&b, group));
        let set_up = || {
            let socket = UdpSocket::bind((here, 0)).unwrap();
            let interface = Interface::with_name_or_address(here).unwrap();
            assert_eq!(interface.name(), "cable");
            let how = ToGroups { interface: Some(interface), hops: 3, heard_here: false };
            send_to_groups(&socket, group.ip(), &how).unwrap();
            socket.send_to(b"to others", group).unwrap();
            send_to_groups(&socket, group.ip(), &ToGroups { heard_here: true, ..how }).unwrap();
            socket.send_to(b"to all", group).unwrap();
            socket.local_addr().unwrap()
        };
        let sender = a.within(set_up).unwrap();
        let interface = b.within(|| Interface::named("cable").unwrap()).unwrap();
        let mut octets = [0; 20];
        for member in [&far, &other] {
            assert_eq!(member.recv_from(&mut octets).unwrap(), (9, sender));
            assert_eq!(member.recv_from(&mut octets).unwrap(), (6, sender));
        }
        assert_eq!(
            neighbour.recv_from(&mut octets).unwrap(),
            (6, sender),
            "what was for others is not there"
        );
        // A member can also send to the group, on a chosen interface.
        let how = ToGroups { interface: Some(interface), hops: 1, heard_here: false };
        send_to_groups(&far, group.ip(), &how).unwrap();
        far.send_to(b"back", group).unwrap();
        assert_eq!(neighbour.recv(&mut octets).unwrap(), 4);
    }
}

#[test]
fn a_datagram_longer_than_the_way_takes_is_refused_or_cut_into_fragments() {
    for (here, there, headers) in [("10.9.0.1", "10.9.0.2", 28), ("fd09::1", "fd09::2", 48)] {
        let (Some(a), Some(b)) =
            (namespace(&format!("long{headers}-a")), namespace(&format!("long{headers}-b")))
        else {
            return;
        };
        cable((&a, here.parse().unwrap()), (&b, there.parse().unwrap()));
        let bind = |namespace: &Namespace, address: &str| {
            namespace.within(|| UdpSocket::bind((address, 5_004)).unwrap()).unwrap()
        };
        let (sender, receiver) = (bind(&a, here), bind(&b, there));
        assert_eq!(path_mtu(&sender).unwrap_err().kind(), ErrorKind::NotConnected);
        sender.connect((there, 5_004)).unwrap();
        assert_eq!(path_mtu(&sender).unwrap(), 1_500);
        for what in [OversizePolicy::Refused, OversizePolicy::Lost, OversizePolicy::Fragments] {
            set_too_long(&sender, what).unwrap();
            assert_eq!(sender.send(&vec![0; 1_500 - headers]).unwrap(), 1_500 - headers);
            let longer = sender.send(&vec![0; 1_501 - headers]);
            assert_eq!(longer.is_ok(), what == OversizePolicy::Fragments, "{what:?}: {longer:?}");
        }
        receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        for expected in [1_500, 1_500, 1_500, 1_501] {
            assert_eq!(receiver.recv(&mut [0; 2_000]).unwrap() + headers, expected);
        }
    }
}

#[test]
fn the_other_machine_answers_echo_requests_by_itself() {
    for (here, there, family) in [("10.9.0.1", "10.9.0.2", "4"), ("fd09::1", "fd09::2", "6")] {
        let (Some(a), Some(b)) =
            (namespace(&format!("ping{family}-a")), namespace(&format!("ping{family}-b")))
        else {
            return;
        };
        cable((&a, here.parse().unwrap()), (&b, there.parse().unwrap()));
        a.allow_pings().unwrap();
        let mut ping = a.within(|| Ping::to(there.parse().unwrap()).unwrap()).unwrap();
        for len in [0, 56, 1_400] {
            assert!(ping.once(&vec![7; len], Duration::from_secs(10)).unwrap().is_some());
        }
        // There is no answer when the cable is down.
        b.within(|| Interface::named("cable").unwrap().down().unwrap()).unwrap();
        let nothing = ping.once(&[], Duration::from_millis(20));
        assert!(!matches!(nothing, Ok(Some(_))), "{nothing:?}");
    }
}
