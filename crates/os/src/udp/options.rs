//! Options of a socket: groups (multicast), a shared address, and the treatment of datagrams that exceed the path MTU.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo, UdpGroSegment, UdpGsoSegment};
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::error::{ErrorContext as _, Result};
use crate::interface::Interface;

/// Creates a socket whose address other sockets of this machine can share (SO_REUSEADDR). Each of them receives datagrams
/// to a group; datagrams to a unicast address are received by the last socket that was bound. All that share the address
/// must be bound so.
///
/// Bound to the address of a group, it receives datagrams to this group only; bound to an unspecified address, those to
/// all groups that any program on this machine has joined, with the same port. Both can send.
///
/// # Errors
/// The address is not one of this machine, or is in exclusive use.
pub fn bind_shared(address: SocketAddr) -> Result<UdpSocket> {
    let bind = || -> io::Result<UdpSocket> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        rustix::net::bind(&socket, &address)?;
        Ok(socket.into())
    };
    bind().attempt(|| format!("listen to {address}"))
}

/// Creates a non-blocking socket for one address, or, if it is unspecified, for all addresses of its family: a socket of
/// IPv6 excludes IPv4 (IPV6_V6ONLY), so that both can have the same port.
///
/// # Errors
/// The address is not one of this machine, or is in use.
pub fn bind_one_family(address: SocketAddr) -> Result<UdpSocket> {
    let bind = || -> io::Result<UdpSocket> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        rustix::net::bind(&socket, &address)?;
        Ok(socket.into())
    };
    bind().attempt(|| format!("listen to {address}"))
}

/// Disconnects a socket from its peer. It keeps its port if that was bound by number, and gets another source address when
/// it is connected again.
///
/// # Errors
/// The socket is invalid.
pub fn disconnect(socket: &UdpSocket) -> io::Result<()> {
    Ok(rustix::net::connect_unspec(socket)?)
}

/// Reports for each datagram from now on the address of this machine that it was sent to
/// ([`ReceiveBatch::iter_with_own`](super::ReceiveBatch::iter_with_own)): a socket bound to no address can answer from that
/// address.
///
/// # Errors
/// The socket is invalid.
pub fn report_own_address(socket: &UdpSocket) -> Result<()> {
    let report = || -> io::Result<()> {
        if socket.local_addr()?.is_ipv4() {
            setsockopt(socket, Ipv4PacketInfo, &true)?;
        } else {
            setsockopt(socket, Ipv6RecvPacketInfo, &true)?;
        }
        Ok(())
    };
    report().attempt(|| "enable reports of the own address of datagrams".to_owned())
}

/// Joins datagrams of one source and length to a message from now on, as far as they arrive together (UDP_GRO). False: the
/// system cannot. Then each is received alone.
pub fn join_datagrams(socket: &UdpSocket) -> bool {
    setsockopt(socket, UdpGroSegment, &true).is_ok()
}

/// True if the system can divide a message into datagrams (UDP_SEGMENT). Nothing is divided without a length.
pub(super) fn divides_messages(socket: &UdpSocket) -> bool {
    setsockopt(socket, UdpGsoSegment, &0).is_ok()
}

/// Joins a group on an interface; `None`: the one to which the group is routed.
///
/// # Errors
/// The address is not a group, or there is no route to it; the socket is one of IPv4, and the group one of IPv6.
pub fn join(socket: &UdpSocket, group: IpAddr, interface: Option<&Interface>) -> Result<()> {
    let index = interface.map_or(0, Interface::index);
    let joined = match group {
        IpAddr::V4(group) => {
            sockopt::set_ip_add_membership_with_ifindex(socket, &group, &Ipv4Addr::UNSPECIFIED, index)
        }
        IpAddr::V6(group) => sockopt::set_ipv6_add_membership(socket, &group, index),
    };
    joined.attempt(|| match interface {
        Some(interface) => format!("join the group {group} by `{}`", interface.name()),
        None => format!("join the group {group}"),
    })
}

/// Sending to groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToGroups {
    /// Interface; `None`: the one to which the group is routed.
    pub interface: Option<Interface>,
    /// Hop limit. 1, the default of the system: this network only.
    pub hops: u8,
    /// True if members on this machine receive them, too, including the sender.
    pub heard_here: bool,
}

/// Sets the sending to groups of the family of `group`.
///
/// # Errors
/// The interface is gone; the socket is one of IPv4, and the group one of IPv6.
pub fn send_to_groups(socket: &UdpSocket, group: IpAddr, how: &ToGroups) -> Result<()> {
    let index = how.interface.as_ref().map_or(0, Interface::index);
    let set = || -> io::Result<()> {
        if group.is_ipv4() {
            let any = Ipv4Addr::UNSPECIFIED;
            sockopt::set_ip_multicast_if_with_ifindex(socket, &any, &any, index)?;
            sockopt::set_ip_multicast_ttl(socket, how.hops.into())?;
            sockopt::set_ip_multicast_loop(socket, how.heard_here)?;
        } else {
            sockopt::set_ipv6_multicast_if(socket, index)?;
            sockopt::set_ipv6_multicast_hops(socket, how.hops.into())?;
            sockopt::set_ipv6_multicast_loop(socket, how.heard_here)?;
        }
        Ok(())
    };
    set().attempt(|| format!("set the options for groups such as {group}"))
}

/// Treatment of a datagram that exceeds the path MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OversizePolicy {
    /// It is fragmented.
    Fragments,
    /// It is rejected (EMSGSIZE) if its size exceeds the known path MTU, which routers report (RFC 1191, RFC 8201). An
    /// attacker who forges such reports can thus shorten datagrams.
    Refused,
    /// It is rejected if it exceeds the MTU of the interface; on the rest of the path it may be lost. Reports of routers
    /// are ignored.
    Lost,
}

/// Sets the treatment of datagrams that exceed the path MTU.
///
/// # Errors
/// The socket is invalid.
pub fn set_too_long(socket: &UdpSocket, what: OversizePolicy) -> Result<()> {
    let (four, six) = match what {
        OversizePolicy::Fragments => (Ipv4PathMtuDiscovery::DONT, Ipv6PathMtuDiscovery::DONT),
        OversizePolicy::Refused => (Ipv4PathMtuDiscovery::DO, Ipv6PathMtuDiscovery::DO),
        OversizePolicy::Lost => (Ipv4PathMtuDiscovery::PROBE, Ipv6PathMtuDiscovery::PROBE),
    };
    let set = || -> io::Result<()> {
        // A socket of IPv6 sends to addresses of IPv4, too.
        sockopt::set_ip_mtu_discover(socket, four)?;
        if socket.local_addr()?.is_ipv6() {
            sockopt::set_ipv6_mtu_discover(socket, six)?;
        }
        Ok(())
    };
    set().attempt(|| "set the path MTU discovery of a socket".to_owned())
}

/// Returns the path MTU of a connected socket in octets, as far as the system knows it.
///
/// # Errors
/// The socket is not connected (ENOTCONN).
pub fn path_mtu(socket: &UdpSocket) -> Result<u32> {
    let mtu = || -> io::Result<u32> {
        let is_six = socket.peer_addr()?.is_ipv6();
        Ok(if is_six { sockopt::ipv6_mtu(socket) } else { sockopt::ip_mtu(socket) }?)
    };
    mtu().attempt(|| "read the path MTU of a socket".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn member(group: SocketAddr, interface: &Interface) -> UdpSocket {
        let socket = bind_shared(group).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        join(&socket, group.ip(), Some(interface)).unwrap();
        socket
    }

    /// A port that is not in use at present.
    fn port() -> u16 {
        UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn all_members_of_a_group_on_one_machine_hear_what_is_sent_to_it() {
        let by_address = Interface::with_name_or_address("127.0.0.1").unwrap();
        assert_eq!(by_address, Interface::with_name_or_address("lo").unwrap());
        // The loopback interface has no route to groups of IPv6.
        let group = SocketAddr::new([239, 255, 77, 1].into(), port());
        let members = [member(group, &by_address), member(group, &by_address)];
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let how = ToGroups { interface: Some(by_address), hops: 1, heard_here: true };
        send_to_groups(&sender, group.ip(), &how).unwrap();
        sender.send_to(b"to all", group).unwrap();
        for member in &members {
            let received = member.recv_from(&mut [0; 10]).unwrap();
            assert_eq!(received, (6, sender.local_addr().unwrap()));
        }
    }

    #[test]
    fn what_is_no_group_or_no_interface_is_refused() {
        let socket = bind_shared("127.0.0.1:0".parse().unwrap()).unwrap();
        let why = join(&socket, "10.0.0.1".parse().unwrap(), None).unwrap_err();
        assert_eq!(why.to_string(), "cannot join the group 10.0.0.1");
        assert!(join(&socket, "ff02::1".parse().unwrap(), None).is_err(), "a socket of IPv4");
        for text in ["no-such-link", "192.0.2.77"] {
            assert!(Interface::with_name_or_address(text).is_err(), "{text}");
        }
        let alone = UdpSocket::bind("127.0.0.1:0").unwrap();
        let why = bind_shared(alone.local_addr().unwrap()).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::AddrInUse);
    }
}
