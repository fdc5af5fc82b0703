//! A socket to one address, datagrams or stream.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use thinair_coap::uri::Scheme;
use thinair_coap::{Code, Endpoint};
use thinair_wire::time::Instant;

use super::TaskReport;
use super::error::{AddressError, ClientError};
use super::exchange::Stop;
use crate::coap::CoapPeer;
use crate::wait::{Wait, Woken};

/// Buffer for received octets: the largest datagram.
pub(super) const ROOM: usize = 1 << 16;

pub(super) enum ClientSocket {
    Udp(UdpSocket),
    Tcp {
        stream: TcpStream,
        /// Octets that the socket had no room for.
        output: Vec<u8>,
        /// True while it waits for room.
        is_full: bool,
    },
}

impl ClientSocket {
    pub(super) fn open(
        scheme: Scheme,
        address: SocketAddr,
        connect_timeout: Duration,
        waiting: &mut Wait<'_>,
    ) -> Result<Self, Stop> {
        let refused = |why: io::Error| Stop::Address(reason(&why, scheme));
        if address.ip().is_multicast() {
            return Err(Stop::Address(AddressError::Group));
        }
        match scheme {
            Scheme::Coap => {
                let any: SocketAddr = match address {
                    SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                    SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
                };
                let socket = UdpSocket::bind(any).map_err(refused)?;
                // Connected: the system reports ICMP errors of this address, and drops datagrams of others.
                socket.connect(address).map_err(refused)?;
                socket.set_nonblocking(true).map_err(refused)?;
                waiting.add(&socket)?;
                Ok(Self::Udp(socket))
            }
            Scheme::CoapTcp => {
                let connecting =
                    waiting.elsewhere(move || TcpStream::connect_timeout(&address, connect_timeout))?;
                let stream = match connecting {
                    Ok(Ok(stream)) => stream,
                    Ok(Err(why)) if why.kind() == ErrorKind::TimedOut => {
                        return Err(Stop::Address(AddressError::ConnectTimeout(connect_timeout)));
                    }
                    Ok(Err(why)) => return Err(refused(why)),
                    Err(Woken::Interrupted) => return Err(Stop::All(ClientError::Interrupted)),
                    Err(_) => return Err(Stop::TIME),
                };
                // Messages are written at once, so that there is nothing to wait for; with Nagle's algorithm every second
                // message would wait for a round trip.
                stream.set_nodelay(true).map_err(refused)?;
                stream.set_nonblocking(true).map_err(refused)?;
                waiting.add(&stream)?;
                Ok(Self::Tcp { stream, output: Vec::new(), is_full: false })
            }
        }
    }

    pub(super) const fn is_stream(&self) -> bool {
        matches!(self, Self::Tcp { .. })
    }

    /// Sends the messages of the endpoint, as far as there is room. ICMP errors of the address that do not end the
    /// attempt are stored in `icmp`.
    pub(super) fn send(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint<CoapPeer>,
        buffer: &mut [u8],
        waiting: &Wait<'_>,
        report: &mut TaskReport,
        icmp: &mut Option<String>,
    ) -> Result<(), Stop> {
        match self {
            Self::Udp(socket) => {
                while let Some(transmit) = endpoint.poll_transmit(now, buffer) {
                    let datagram = buffer.get(..transmit.len).unwrap_or_default();
                    report.sent += 1;
                    report.sent_octets += datagram.len() as u64;
                    let code = datagram.get(1).copied().map(Code);
                    let is_request = code.is_some_and(|code| code.class() == 0 && code != Code::EMPTY);
                    report.transmissions += u64::from(is_request);
                    // The next call returns a pending ICMP error, and then does nothing else.
                    let mut sent = socket.send(datagram);
                    if let Err(why) = &sent
                        && keep_trying(why, icmp)
                    {
                        sent = socket.send(datagram);
                    }
                    match sent {
                        Ok(_) => {}
                        // Like a loss on the path: it is retransmitted.
                        Err(why) if why.kind() == ErrorKind::WouldBlock || keep_trying(&why, icmp) => {}
                        Err(why) if why.raw_os_error() == Some(EMSGSIZE) => {
                            let octets = datagram.len();
                            return Err(Stop::Address(AddressError::DatagramTooLarge { octets }));
                        }
                        Err(why) => return Err(Stop::Address(reason(&why, Scheme::Coap))),
                    }
                }
                Ok(())
            }
            Self::Tcp { stream, output, is_full } => {
                loop {
                    if output.is_empty() {
                        let Some(transmit) = endpoint.poll_transmit(now, buffer) else { break };
                        output.extend_from_slice(buffer.get(..transmit.len).unwrap_or_default());
                    }
                    match stream.write(output) {
                        Ok(len) => {
                            report.sent += 1;
                            report.sent_octets += len as u64;
                            output.drain(..len);
                        }
                        Err(why) if why.kind() == ErrorKind::Interrupted => {}
                        Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                        // Octets that arrived before the other side closed may still be read; reading returns the end.
                        Err(_) => {
                            output.clear();
                            break;
                        }
                    }
                }
                if *is_full == output.is_empty() {
                    *is_full = !output.is_empty();
                    waiting.change(&*stream, *is_full)?;
                }
                Ok(())
            }
        }
    }

    /// Returns the next datagram, or some octets of the stream. `None` if there are none now.
    pub(super) fn receive<'b>(
        &mut self,
        buffer: &'b mut [u8],
        icmp: &mut Option<String>,
    ) -> Result<Option<&'b [u8]>, AddressError> {
        loop {
            let (received, scheme) = match self {
                Self::Udp(socket) => (socket.recv(buffer), Scheme::Coap),
                Self::Tcp { stream, .. } => (stream.read(buffer), Scheme::CoapTcp),
            };
            match received {
                Ok(0) if scheme == Scheme::CoapTcp => return Err(AddressError::Closed(None)),
                Ok(len) => return Ok(Some(buffer.get(..len).unwrap_or_default())),
                Err(why) => match why.kind() {
                    ErrorKind::WouldBlock => return Ok(None),
                    ErrorKind::Interrupted => {}
                    _ if scheme == Scheme::CoapTcp => {
                        return Err(AddressError::Closed(Some(why.to_string())));
                    }
                    _ if keep_trying(&why, icmp) => {}
                    _ => return Err(reason(&why, scheme)),
                },
            }
        }
    }
}

/// True for errors of a socket after an ICMP message of a router: the path may be back for the next transmission. RFC
/// 1122, section 4.2.3.9.
fn keep_trying(why: &io::Error, icmp: &mut Option<String>) -> bool {
    let is_soft = matches!(why.kind(), ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable);
    if is_soft {
        *icmp = Some(why.to_string());
    }
    is_soft
}

/// EMSGSIZE of Linux, for which `ErrorKind` has no value yet.
const EMSGSIZE: i32 = 90;

fn reason(why: &io::Error, scheme: Scheme) -> AddressError {
    match why.kind() {
        ErrorKind::ConnectionRefused => AddressError::Refused { icmp: scheme == Scheme::Coap },
        _ => AddressError::Unreachable(why.to_string()),
    }
}
