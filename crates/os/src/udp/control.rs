//! Own address of a datagram, as destination of a received or source of a sent one: ancillary data of a message, cmsg(3).
//!
//! A socket that is bound to no address would answer from the address of the route, and a peer that has sent to another
//! one rejects an answer from there.

#![allow(unsafe_code, reason = "ancillary data is read and written by address, aligned as the system says")]
#![allow(clippy::unnecessary_cast, reason = "lengths of ancillary data are of another type in every libc")]

use std::net::IpAddr;
use std::ptr::{from_mut, from_ref};

use libc::{c_int, c_void, in_pktinfo, in6_pktinfo, msghdr};

/// Buffer for one `in_pktinfo` or `in6_pktinfo` with its header, aligned as a `cmsghdr` is.
#[derive(Clone, Copy, Default)]
#[allow(dead_code, reason = "it is read and written by address")]
pub(super) struct Control([u64; 5]);

/// Length of it, in octets.
const ROOM: usize = size_of::<Control>();

// SAFETY: these are computations with numbers only.
const _: () = unsafe {
    assert!(libc::CMSG_SPACE(size_of::<in6_pktinfo>() as u32) as usize <= ROOM);
    assert!(libc::CMSG_SPACE(size_of::<in_pktinfo>() as u32) as usize <= ROOM);
    assert!(align_of::<libc::cmsghdr>() <= align_of::<Control>());
};

impl Control {
    /// Makes it the buffer in which the system writes.
    pub(super) fn give(&mut self, header: &mut msghdr) {
        header.msg_control = from_mut(self).cast();
        header.msg_controllen = ROOM as _;
    }

    /// Sets the source address of the datagram.
    pub(super) fn set(&mut self, from: IpAddr, header: &mut msghdr) {
        match from {
            IpAddr::V4(four) => {
                // The interface is that of the route.
                let address = libc::in_addr { s_addr: u32::from_ne_bytes(four.octets()) };
                let any = libc::in_addr { s_addr: 0 };
                let info = in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: address, ipi_addr: any };
                self.write(header, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            IpAddr::V6(six) => {
                let address = libc::in6_addr { s6_addr: six.octets() };
                let info = in6_pktinfo { ipi6_addr: address, ipi6_ifindex: 0 };
                self.write(header, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
            }
        }
    }

    fn write<T: Copy>(&mut self, header: &mut msghdr, level: c_int, kind: c_int, value: T) {
        const { assert!(size_of::<T>() <= size_of::<in6_pktinfo>()) };
        self.give(header);
        // SAFETY: a `cmsghdr` and a value of at most an `in6_pktinfo` fit into `self`, as is asserted above, so that the
        // address of the first header is that of `self`, and its data lie after it. `self` is borrowed exclusively.
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(size_of::<T>() as u32) as _;
            let first = libc::CMSG_FIRSTHDR(header);
            (*first).cmsg_level = level;
            (*first).cmsg_type = kind;
            (*first).cmsg_len = libc::CMSG_LEN(size_of::<T>() as u32) as _;
            libc::CMSG_DATA(first).cast::<T>().write_unaligned(value);
        }
    }

    /// Returns the own address that the system has written, and true if the datagram was sent to many: to a group or by
    /// broadcast. ip(7), ipv6(7).
    pub(super) fn address(&self, header: &msghdr) -> Option<(IpAddr, bool)> {
        if header.msg_controllen as usize > ROOM
            || header.msg_control != from_ref(self).cast_mut().cast::<c_void>()
        {
            return None;
        }
        // SAFETY: `msg_control` is the address of `self`, and of it `msg_controllen` octets were written. `CMSG_FIRSTHDR`
        // is null if there is no room for a header in them; the length in a header is compared with that of a value
        // before the value is read.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(header);
            if first.is_null() {
                return None;
            }
            let holds = |octets: usize| (*first).cmsg_len as usize >= libc::CMSG_LEN(octets as u32) as usize;
            match ((*first).cmsg_level, (*first).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) if holds(size_of::<in_pktinfo>()) => {
                    let info = libc::CMSG_DATA(first).cast::<in_pktinfo>().read_unaligned();
                    // The address in the header is one of this machine, unless it stands for many.
                    let to_many = info.ipi_addr.s_addr != info.ipi_spec_dst.s_addr;
                    Some((IpAddr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()), to_many))
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) if holds(size_of::<in6_pktinfo>()) => {
                    let info = libc::CMSG_DATA(first).cast::<in6_pktinfo>().read_unaligned();
                    // ::ffff:0:0/96 on a socket of both families.
                    let own = IpAddr::from(info.ipi6_addr.s6_addr).to_canonical();
                    Some((own, own.is_multicast()))
                }
                _ => None,
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::{IpAddr, SocketAddr, UdpSocket};
    use std::time::Duration;

    use super::super::options::{ToGroups, bind_one_family, join, report_own_address, send_to_groups};
    use super::super::{ReceiveBatch, SendQueue};
    use crate::interface::Interface;

    fn asked(own: &str, at: &str, unspecified: &str) {
        let Ok(client) = UdpSocket::bind((own, 0)) else {
            println!("skipped: no {own}");
            return;
        };
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let server = bind_one_family(SocketAddr::new(unspecified.parse().unwrap(), 0)).unwrap();
        report_own_address(&server).unwrap();
        let port = server.local_addr().unwrap().port();
        server.set_nonblocking(false).unwrap();
        client.send_to(b"question", (at, port)).unwrap();
        let mut received = ReceiveBatch::new(4, 100);
        received.receive(&server).unwrap();
        let (datagram, from, to) = received.iter_with_own().next().unwrap();
        assert_eq!((datagram, from), (&b"question"[..], client.local_addr().ok()));
        assert_eq!(to, Some(at.parse().unwrap()));
        let mut outgoing = SendQueue::new();
        outgoing.push_from(to, from.unwrap(), b"answer");
        outgoing.push_from(None, from.unwrap(), b"another");
        assert_eq!(outgoing.send(&server).unwrap(), 2);
        let (_, answered_by) = client.recv_from(&mut [0; 10]).unwrap();
        assert_eq!(answered_by, SocketAddr::new(at.parse().unwrap(), port));
        client.recv_from(&mut [0; 10]).unwrap();
    }

    #[test]
    fn an_answer_leaves_from_the_address_that_was_asked() {
        // The source address of the route to 127.0.0.1 would be 127.0.0.1.
        asked("127.0.0.1", "127.0.0.77", "0.0.0.0");
        asked("::1", "::1", "::");
    }

    #[test]
    fn a_datagram_to_a_group_or_by_broadcast_was_sent_to_no_own_address() {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let server = bind_one_family("0.0.0.0:0".parse().unwrap()).unwrap();
        report_own_address(&server).unwrap();
        let port = server.local_addr().unwrap().port();
        let group = IpAddr::from([239, 255, 77, 2]);
        let lo = Interface::with_name_or_address("lo").unwrap();
        join(&server, group, Some(&lo)).unwrap();
        client.set_broadcast(true).unwrap();
        let how = ToGroups { interface: Some(lo), hops: 1, heard_here: true };
        send_to_groups(&client, group, &how).unwrap();
        for (datagram, to) in
            [(b"group", group), (b"broad", [127, 255, 255, 255].into()), (b"alone", [127, 0, 0, 1].into())]
        {
            client.send_to(datagram, (to, port)).unwrap();
        }
        let mut received = ReceiveBatch::new(4, 100);
        received.receive(&server).unwrap();
        assert_eq!(received.iter().count(), 3);
        let datagrams: Vec<_> = received.iter_with_own().map(|(datagram, _, _)| datagram).collect();
        assert_eq!(datagrams, [b"alone"]);
    }

    #[test]
    fn both_families_can_have_one_port() {
        let four = bind_one_family("0.0.0.0:0".parse().unwrap()).unwrap();
        let port = four.local_addr().unwrap().port();
        match bind_one_family(SocketAddr::new("::".parse().unwrap(), port)) {
            Ok(six) => assert_eq!(six.local_addr().unwrap().port(), port),
            Err(why) => assert_ne!(why.kind(), std::io::ErrorKind::AddrInUse),
        }
    }
}
