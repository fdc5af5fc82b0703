//! Ancillary data of a message, cmsg(3): the own address of a datagram, as destination of a received or source of a sent one,
//! and the length of the datagrams that are sent or received as one message.
//!
//! A socket that is bound to no address would answer from the address of the route, and a peer that has sent to another
//! one rejects an answer from there.

#![allow(unsafe_code, reason = "ancillary data is read and written by address, aligned as the system says")]
#![allow(clippy::unnecessary_cast, reason = "lengths of ancillary data are of another type in every libc")]

use std::net::IpAddr;
use std::ptr::{from_mut, from_ref};

use libc::{c_int, c_void, cmsghdr, in_pktinfo, in6_pktinfo, msghdr};

/// Buffer for an `in_pktinfo` or `in6_pktinfo` and a length, each with its header, aligned as a `cmsghdr` is.
#[derive(Clone, Copy, Default)]
#[allow(dead_code, reason = "it is read and written by address")]
pub(super) struct Control([u64; 8]);

/// Length of it, in octets.
const ROOM: usize = size_of::<Control>();

/// Octets that a value takes with its header.
const fn space<T>() -> usize {
    // SAFETY: this is a computation with numbers only.
    unsafe { libc::CMSG_SPACE(size_of::<T>() as u32) as usize }
}

const _: () = assert!(space::<in6_pktinfo>() + space::<c_int>() <= ROOM);
const _: () = assert!(space::<in_pktinfo>() <= space::<in6_pktinfo>());
const _: () = assert!(align_of::<cmsghdr>() <= align_of::<Control>());

/// Ancillary data of a received message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ancillary {
    /// Own address, and true if the message was sent to many: to a group or by broadcast.
    pub(super) to: Option<(IpAddr, bool)>,
    /// Length of each datagram but the last. `None`: the message is one datagram.
    pub(super) segment: Option<usize>,
}

impl Control {
    /// Makes it the buffer in which the system writes.
    pub(super) fn give(&mut self, header: &mut msghdr) {
        header.msg_control = from_mut(self).cast();
        header.msg_controllen = ROOM as _;
    }

    /// Sets the source address of a message. At most once, as [`set_segment`](Self::set_segment).
    pub(super) fn set_source(&mut self, from: IpAddr, header: &mut msghdr) {
        match from {
            IpAddr::V4(four) => {
                // The interface is that of the route.
                let address = libc::in_addr { s_addr: u32::from_ne_bytes(four.octets()) };
                let any = libc::in_addr { s_addr: 0 };
                let info = in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: address, ipi_addr: any };
                self.add(header, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            IpAddr::V6(six) => {
                let address = libc::in6_addr { s6_addr: six.octets() };
                let info = in6_pktinfo { ipi6_addr: address, ipi6_ifindex: 0 };
                self.add(header, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
            }
        }
    }

    /// Divides a message into datagrams of this length.
    pub(super) fn set_segment(&mut self, octets: u16, header: &mut msghdr) {
        self.add(header, libc::SOL_UDP, libc::UDP_SEGMENT, octets);
    }

    /// Appends a value to those of `header`, which are in this buffer.
    fn add<T: Copy>(&mut self, header: &mut msghdr, level: c_int, kind: c_int, value: T) {
        let used = if header.msg_control.is_null() { 0 } else { header.msg_controllen as usize };
        assert!(used + space::<T>() <= ROOM, "an address and a length have room");
        header.msg_control = from_mut(self).cast();
        header.msg_controllen = (used + space::<T>()) as _;
        // SAFETY: the `cmsghdr` and the value behind it lie in `self`, as was checked, which is borrowed exclusively. `used`
        // is a sum of results of CMSG_SPACE, which keep the alignment.
        unsafe {
            let place = from_mut(self).cast::<u8>().add(used).cast::<cmsghdr>();
            (*place).cmsg_level = level;
            (*place).cmsg_type = kind;
            (*place).cmsg_len = libc::CMSG_LEN(size_of::<T>() as u32) as _;
            libc::CMSG_DATA(place).cast::<T>().write_unaligned(value);
        }
    }

    /// Returns what the system has written. ip(7), ipv6(7), udp(7).
    pub(super) fn read(&self, header: &msghdr) -> Ancillary {
        let mut found = Ancillary::default();
        if header.msg_controllen as usize > ROOM
            || header.msg_control != from_ref(self).cast_mut().cast::<c_void>()
        {
            return found;
        }
        // SAFETY: `msg_control` is the address of `self`, and of it `msg_controllen` octets were written. `CMSG_FIRSTHDR`
        // and `CMSG_NXTHDR` are null if there is no room for a header in them; the length in a header is compared with
        // that of a value before the value is read.
        unsafe {
            let mut place = libc::CMSG_FIRSTHDR(header);
            while !place.is_null() {
                let holds =
                    |octets: usize| (*place).cmsg_len as usize >= libc::CMSG_LEN(octets as u32) as usize;
                match ((*place).cmsg_level, (*place).cmsg_type) {
                    (libc::IPPROTO_IP, libc::IP_PKTINFO) if holds(size_of::<in_pktinfo>()) => {
                        let info = libc::CMSG_DATA(place).cast::<in_pktinfo>().read_unaligned();
                        // The address in the header is one of this machine, unless it stands for many.
                        let to_many = info.ipi_addr.s_addr != info.ipi_spec_dst.s_addr;
                        found.to = Some((IpAddr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()), to_many));
                    }
                    (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) if holds(size_of::<in6_pktinfo>()) => {
                        let info = libc::CMSG_DATA(place).cast::<in6_pktinfo>().read_unaligned();
                        // ::ffff:0:0/96 on a socket of both families.
                        let own = IpAddr::from(info.ipi6_addr.s6_addr).to_canonical();
                        found.to = Some((own, own.is_multicast()));
                    }
                    (libc::SOL_UDP, libc::UDP_GRO) if holds(size_of::<c_int>()) => {
                        let octets = libc::CMSG_DATA(place).cast::<c_int>().read_unaligned();
                        found.segment = usize::try_from(octets).ok().filter(|octets| *octets > 0);
                    }
                    _ => {}
                }
                place = libc::CMSG_NXTHDR(header, place);
            }
        }
        found
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
