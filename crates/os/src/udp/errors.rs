//! Error queue of a socket: errors of datagrams under way, reported by ICMP or this machine. ip(7), ipv6(7), IP_RECVERR.
//!
//! An ICMP message is not authenticated: the system checks that it quotes a datagram of this socket, and nothing else.

#![allow(unsafe_code, reason = "ancillary data is read by address, aligned as the system says")]
#![allow(clippy::unnecessary_cast, reason = "lengths of ancillary data are of another type in every libc")]

use std::io;
use std::mem::zeroed;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::ptr::from_mut;

use libc::{c_int, iovec, msghdr, sock_extended_err, sockaddr_in6, socklen_t};

use super::batch;
use crate::error::{ErrorContext as _, Result};

/// Room for the ancillary data of one error: an extended error, the address of its reporter, and a packet info.
const ROOM: usize = 32;

/// Codes of Destination Unreachable. RFC 792; RFC 4443, section 3.1.
const ICMP_UNREACHABLE: u8 = 3;
const ICMP_FRAGMENTATION_NEEDED: u8 = 4;
const ICMPV6_UNREACHABLE: u8 = 1;
const ICMPV6_PACKET_TOO_BIG: u8 = 2;

/// An error of a datagram that was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorReport {
    /// Destination of the datagram. Its port is 0 where this machine has rejected the datagram itself.
    pub to: SocketAddr,
    /// The error.
    pub problem: Problem,
}

/// Reason of an error report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It exceeds the MTU of an interface on its path.
    TooBig {
        /// MTU of that interface, in octets; 0: not reported (a router older than RFC 1191).
        mtu: u32,
        /// True if an interface of this machine rejected the datagram. A report of a router can be forged.
        local: bool,
    },
    /// Port, host or network unreachable, or prohibited.
    Unreachable,
    /// Anything else: time exceeded, parameter problem.
    Other,
}

/// Keeps errors in the error queue of the socket, for [`next_report`]. **From then on, sending and receiving can fail
/// with the error of an earlier datagram, and a socket whose queue is not empty is always ready.**
///
/// # Errors
/// The socket is invalid.
pub fn keep_reports(socket: &UdpSocket) -> Result<()> {
    let set = |level: c_int, name: c_int| -> io::Result<()> {
        let on: c_int = 1;
        // SAFETY: the address and the length are those of an integer on the stack, which is only read.
        let done = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                level,
                name,
                (&raw const on).cast(),
                size_of::<c_int>() as socklen_t,
            )
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    let keep = || -> io::Result<()> {
        // A socket of IPv6 sends to addresses of IPv4, too.
        set(libc::IPPROTO_IP, libc::IP_RECVERR)?;
        if socket.local_addr()?.is_ipv6() {
            set(libc::IPPROTO_IPV6, libc::IPV6_RECVERR)?;
        }
        Ok(())
    };
    keep().attempt(|| "enable error reports of datagrams".to_owned())
}

/// Removes the first error from the queue. `None`: there is none. Never blocks.
pub fn next_report(socket: &UdpSocket) -> Option<ErrorReport> {
    let mut control = [0_u64; ROOM];
    // SAFETY: both consist of integers and raw pointers, for which zeros are valid.
    let (mut name, mut header): (sockaddr_in6, msghdr) = unsafe { (zeroed(), zeroed()) };
    // The datagram itself is not requested.
    let mut slice = iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    header.msg_iov = from_mut(&mut slice);
    header.msg_iovlen = 1;
    header.msg_name = from_mut(&mut name).cast();
    header.msg_namelen = size_of::<sockaddr_in6>() as socklen_t;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: name, slice and control are on the stack, with their true lengths; no octets of payload are requested.
    while unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) } < 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
    let to = batch::address(&name, header.msg_namelen)?;
    Some(ErrorReport { to, problem: extended(&header).map_or(Problem::Other, |error| problem(&error)) })
}

/// Returns the extended error in the ancillary data that the system has written.
fn extended(header: &msghdr) -> Option<sock_extended_err> {
    let needed = size_of::<sock_extended_err>();
    // SAFETY: `msg_control` points to `msg_controllen` octets that the system has written, aligned as a `cmsghdr`; the
    // macros step within them, and an error is read only where the length in its header covers it completely.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        while !next.is_null() {
            let is_error = matches!(
                ((*next).cmsg_level, (*next).cmsg_type),
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
            );
            if is_error && (*next).cmsg_len as usize >= libc::CMSG_LEN(needed as u32) as usize {
                return Some(libc::CMSG_DATA(next).cast::<sock_extended_err>().read_unaligned());
            }
            next = libc::CMSG_NXTHDR(header, next);
        }
    }
    None
}

fn problem(error: &sock_extended_err) -> Problem {
    match (error.ee_origin, error.ee_type, error.ee_code) {
        (libc::SO_EE_ORIGIN_LOCAL, _, _) if error.ee_errno == libc::EMSGSIZE as u32 => {
            Problem::TooBig { mtu: error.ee_info, local: true }
        }
        (libc::SO_EE_ORIGIN_ICMP, ICMP_UNREACHABLE, ICMP_FRAGMENTATION_NEEDED)
        | (libc::SO_EE_ORIGIN_ICMP6, ICMPV6_PACKET_TOO_BIG, _) => {
            Problem::TooBig { mtu: error.ee_info, local: false }
        }
        (libc::SO_EE_ORIGIN_ICMP, ICMP_UNREACHABLE, _)
        | (libc::SO_EE_ORIGIN_ICMP6, ICMPV6_UNREACHABLE, _) => Problem::Unreachable,
        _ => Problem::Other,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Waits for the first report.
    fn report(socket: &UdpSocket) -> ErrorReport {
        let found = (0..2_000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            next_report(socket)
        });
        found.expect("a report")
    }

    fn reports(host: &str) {
        let Ok(socket) = UdpSocket::bind((host, 0)) else {
            println!("skipped: no {host}");
            return;
        };
        socket.set_nonblocking(true).unwrap();
        keep_reports(&socket).unwrap();
        assert_eq!(next_report(&socket), None);
        let nobody = UdpSocket::bind((host, 0)).unwrap().local_addr().unwrap();
        socket.send_to(b"anybody there?", nobody).unwrap();
        assert_eq!(report(&socket), ErrorReport { to: nobody, problem: Problem::Unreachable });
        assert_eq!(next_report(&socket), None);
        // While the queue is not read, the error is returned by the next call.
        socket.send_to(b"anybody there?", nobody).unwrap();
        let refused = (0..2_000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            socket.send_to(b"again", nobody).err()
        });
        assert_eq!(refused.unwrap().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn nobody_at_a_port_is_reported_with_its_address() {
        reports("127.0.0.1");
        reports("::1");
    }

    #[test]
    fn an_address_of_ipv4_is_one_also_at_a_socket_of_ipv6() {
        let Ok(socket) = UdpSocket::bind("[::]:0") else {
            println!("skipped: no IPv6");
            return;
        };
        keep_reports(&socket).unwrap();
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mapped = SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(), nobody.port());
        socket.send_to(b"anybody there?", mapped).unwrap();
        assert_eq!(report(&socket), ErrorReport { to: nobody, problem: Problem::Unreachable });
    }
}
