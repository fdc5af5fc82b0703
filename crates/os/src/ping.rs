//! Echo requests (RFC 792, RFC 4443), which the system at the other end answers.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};

use crate::clock::now;
use crate::error::{ErrorContext as _, Result};

/// Length of type, code, checksum, identifier and sequence number, in octets.
const HEADER: usize = 8;

/// Sends echo requests to one address.
#[derive(Debug)]
pub struct Ping {
    socket: UdpSocket,
    /// ICMP types of requests and of replies.
    types: (u8, u8),
    sequence: u16,
    octets: Vec<u8>,
}

impl Ping {
    /// Creates a sender of echo requests to `address`.
    ///
    /// # Errors
    /// There is no route to that address, or a missing permission: `net.ipv4.ping_group_range` lists the permitted
    /// groups ([`Namespace::allow_pings`](crate::Namespace::allow_pings)).
    pub fn to(address: IpAddr) -> Result<Self> {
        let open = || -> io::Result<Self> {
            let (family, protocol, types) = match address {
                IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP, (8, 0)),
                IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6, (128, 129)),
            };
            let flags = SocketFlags::CLOEXEC;
            let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(protocol))?;
            // It is not UDP, but it has the same calls.
            let socket = UdpSocket::from(socket);
            socket.connect(SocketAddr::new(address, 0))?;
            Ok(Self { socket, types, sequence: 0, octets: Vec::new() })
        };
        open().attempt(|| format!("ping {address}"))
    }

    /// Sends a request, and waits for its reply; returns the round-trip time, or `None` if there is none within
    /// `patience`, which must not be zero.
    ///
    /// # Errors
    /// The request could not be sent, or a router reported that it cannot arrive.
    pub fn once(&mut self, payload: &[u8], patience: Duration) -> io::Result<Option<Duration>> {
        self.sequence = self.sequence.wrapping_add(1);
        self.octets.clear();
        // The system fills in identifier and checksum.
        self.octets.extend_from_slice(&[self.types.0, 0, 0, 0, 0, 0]);
        self.octets.extend_from_slice(&self.sequence.to_be_bytes());
        self.octets.extend_from_slice(payload);
        let sent = now();
        let end = sent + patience;
        self.socket.send(&self.octets)?;
        let mut reply = [0; HEADER];
        loop {
            let left = end.since(now().min(end)).max(Duration::from_micros(1));
            self.socket.set_read_timeout(Some(left))?;
            match self.socket.recv(&mut reply) {
                Ok(HEADER..) if reply[0] == self.types.1 && reply[6..] == self.sequence.to_be_bytes() => {
                    return Ok(Some(now().since(sent)));
                }
                // A late reply.
                Ok(_) if now() < end => {}
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if why.kind() != io::ErrorKind::WouldBlock => return Err(why),
                Ok(_) | Err(_) => return Ok(None),
            }
        }
    }
}
