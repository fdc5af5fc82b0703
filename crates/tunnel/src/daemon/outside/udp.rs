//! A UDP socket that sends and receives batches of datagrams.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};

use thinair_os::Error;
use thinair_os::interface::Interface;
use thinair_os::udp::errors::{self, ErrorReport};
use thinair_os::udp::options::{self, OversizePolicy, ToGroups};
use thinair_os::udp::{self, ReceiveBatch, SendQueue, SocketMemory};
use thinair_session::AddressPair;

use super::{Arrival, Flushed, Received};

/// Datagrams received by one call.
const BATCH: usize = 64;

/// Messages of joined datagrams received by one call, each of up to 64 KiB.
const JOINED: usize = 8;

/// Queued datagrams above which the interface is no longer read.
const FULL: usize = 64;

/// EMSGSIZE: the datagram is longer than the interface allows.
const EMSGSIZE: i32 = 90;

/// Limit of stored error reports.
const REPORTS: usize = 64;

/// Socket buffers in octets, large enough for a burst.
const ROOM: usize = 2 << 20;

#[derive(Debug)]
pub(in crate::daemon) struct Socket {
    socket: UdpSocket,
    out: SendQueue,
    /// Numbers of the queued datagrams.
    numbers: VecDeque<u64>,
    /// Source address of datagrams to a group, if it is configured.
    of_group: Option<IpAddr>,
    received: ReceiveBatch,
    /// Messages that it receives by one call.
    batch: usize,
    /// True if datagrams may arrive joined to one message.
    joins: bool,
    /// Error reports that were not fetched yet.
    reports: VecDeque<ErrorReport>,
}

impl Socket {
    pub(super) fn open(
        listen: SocketAddr,
        group: Option<&(IpAddr, Option<String>)>,
        ttl: u8,
        largest: usize,
        offloads: bool,
    ) -> Result<Self, Error> {
        let what = || format!("listen on {listen}");
        let socket = match group {
            Some((group, interface)) => {
                let interface = interface.as_deref().map(Interface::with_name_or_address).transpose()?;
                let socket = options::bind_shared(listen)?;
                options::join(&socket, *group, interface.as_ref())?;
                options::send_to_groups(
                    &socket,
                    *group,
                    &ToGroups { interface, hops: ttl, heard_here: true },
                )?;
                socket
            }
            None => UdpSocket::bind(listen).map_err(|why| match why.kind() {
                io::ErrorKind::AddrInUse => Error::new(
                    format!("{}, where another program listens: see `ss -ulpn`, or give --listen", what()),
                    why,
                ),
                _ => Error::new(what(), why),
            })?,
        };
        if listen.ip().is_unspecified() {
            // Peers may ask at any address, and are answered from there.
            options::report_own_address(&socket)?;
        }
        // An interface with several addresses is given by one of them.
        let of_group = group.and_then(|(_, interface)| interface.as_deref()?.parse().ok());
        let of_group = of_group.filter(has_no_zone);
        socket.set_nonblocking(true).map_err(|why| Error::new(what(), why))?;
        options::set_too_long(&socket, OversizePolicy::Lost)?;
        errors::keep_reports(&socket)?;
        for (set, limit) in [
            (udp::set_receive_room as fn(&UdpSocket, usize) -> io::Result<usize>, "net.core.rmem_max"),
            (udp::set_send_room, "net.core.wmem_max"),
        ] {
            let octets = set(&socket, ROOM).map_err(|why| Error::new(what(), why))?;
            if octets < ROOM {
                tracing::warn!(
                    octets,
                    "the system grants a smaller buffer than asked for, and bursts may be lost: `sysctl -w {limit}={ROOM}`"
                );
            }
        }
        let joins = offloads && options::join_datagrams(&socket);
        Ok(Self {
            out: if offloads { SendQueue::grouping(&socket) } else { SendQueue::new() },
            socket,
            numbers: VecDeque::new(),
            of_group,
            received: match joins {
                true => ReceiveBatch::of_joined(JOINED, largest),
                // One octet more, to detect datagrams that are too long.
                false => ReceiveBatch::new(BATCH, largest + 1),
            },
            batch: if joins { JOINED } else { BATCH },
            joins,
            reports: VecDeque::new(),
        })
    }

    pub(super) fn port(&self) -> Option<u16> {
        self.socket.local_addr().ok().map(|own| own.port())
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn carry(&mut self, number: u64, to: Option<AddressPair>, datagram: &[u8]) {
        self.numbers.push_back(number);
        match to {
            Some(AddressPair { peer, own }) => self.out.push_from(own.or(self.of_group), peer, datagram),
            None => self.out.push(None, datagram),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= FULL
    }

    pub(super) fn flush(&mut self) -> Flushed {
        let mut flushed = Flushed::default();
        let mut is_tried_again = false;
        while !self.out.is_empty() {
            match self.out.send(&self.socket) {
                Ok(sent) => {
                    is_tried_again = false;
                    self.numbers.drain(..sent.min(self.numbers.len()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    flushed.waits = true;
                    break;
                }
                // The own address is gone, or leads nowhere: the route has another one.
                Err(_) if is_tried_again && self.out.forget_own_address() => {}
                // It may be a pending error of an earlier datagram, which reading the error queue clears.
                Err(_) if !is_tried_again => {
                    self.read_reports();
                    is_tried_again = true;
                }
                Err(error) => {
                    self.read_reports();
                    is_tried_again = false;
                    let number = self.numbers.pop_front();
                    if error.raw_os_error() == Some(EMSGSIZE) {
                        flushed.too_long.extend(number);
                    } else {
                        tracing::debug!(%error, "a datagram was refused");
                        flushed.refused.extend(number);
                    }
                    self.out.skip();
                }
            }
        }
        flushed
    }

    /// Empties the error queue, as a socket with errors is always ready. Only the first reports are kept.
    fn read_reports(&mut self) {
        while let Some(report) = errors::next_report(&self.socket) {
            if self.reports.len() < REPORTS {
                self.reports.push_back(report);
            }
        }
    }

    pub(super) fn next_report(&mut self) -> Option<ErrorReport> {
        self.reports.pop_front()
    }

    pub(super) fn memory(&self) -> Option<SocketMemory> {
        udp::memory(&self.socket).ok()
    }

    /// True if sent datagrams are grouped to messages, and if received ones may arrive so.
    pub(super) fn offloads(&self) -> [bool; 2] {
        [self.out.groups(), self.joins]
    }

    pub(super) fn receive(&mut self) -> Received {
        match self.received.receive(&self.socket) {
            Ok(count) if count == self.batch => Received::More,
            Ok(_) => Received::All,
            // Woken by the error queue, or spuriously.
            Err(error) => {
                self.read_reports();
                if error.kind() == io::ErrorKind::WouldBlock { Received::All } else { Received::More }
            }
        }
    }

    pub(super) fn poll_arrival(&mut self) -> Option<Arrival<'_>> {
        Some(match self.received.take_next()? {
            Some((datagram, from, own)) => {
                let own = own.filter(has_no_zone);
                Arrival::Datagram(from.map(|peer| AddressPair { peer, own }), datagram)
            }
            None => Arrival::TooLong,
        })
    }
}

/// False for a link-local address of IPv6, which needs an interface to be a source.
fn has_no_zone(own: &IpAddr) -> bool {
    !matches!(own, IpAddr::V6(six) if six.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EACCES without SO_BROADCAST, EMSGSIZE above 65,507 octets.
    #[test]
    fn a_datagram_that_the_system_refuses_is_named() {
        let other = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let to = AddressPair::from(other.local_addr().expect("an address"));
        let listen = "127.0.0.1:0".parse().expect("an address");
        let mut socket = Socket::open(listen, None, 1, 1_500, false).expect("a socket");
        let broadcast = AddressPair::from("255.255.255.255:9".parse::<SocketAddr>().expect("an address"));
        let long = vec![0; 65_508];
        for round in [0, 10] {
            for (number, to, datagram) in
                [(1, to, &b"1"[..]), (2, broadcast, b"2"), (3, to, b"3"), (4, to, &long), (5, to, b"5")]
            {
                socket.carry(round + number, Some(to), datagram);
            }
            let refused = Flushed { refused: vec![round + 2], too_long: vec![round + 4], waits: false };
            assert_eq!(socket.flush(), refused);
            assert_eq!((socket.flush(), socket.numbers.len()), (Flushed::default(), 0));
            let mut arrived = [0; 2];
            for expected in [b"1", b"3", b"5"] {
                let (octets, _) = other.recv_from(&mut arrived).expect("a datagram");
                assert_eq!(&arrived[..octets], expected);
            }
        }
    }
}
