//! Sockets of a client: one UDP port for each address family, and streams.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use thinair_coap::uri::Scheme;
use thinair_coap::{Code, Endpoint};
use thinair_os::clock::now;
use thinair_os::udp::options::disconnect;
use thinair_wire::time::Instant;

use super::TaskReport;
use super::error::{AddressError, ClientError};
use super::exchange::Stop;
use super::secure::SecureSocket;
use crate::coap::CoapPeer;
use crate::wait::{Wait, Woken};

/// Buffer for received octets: the largest datagram.
pub(super) const ROOM: usize = 1 << 16;

/// UDP sockets of a client: at most one for each address family, which keeps its port from its first to its last server.
#[derive(Default)]
pub(super) struct ClientPorts {
    v4: Option<ClientPort>,
    v6: Option<ClientPort>,
}

struct ClientPort {
    socket: UdpSocket,
    /// Server to which the socket is connected.
    server: Option<SocketAddr>,
}

impl ClientPorts {
    /// Connects the socket of the family of `server` to it: the system then reports ICMP errors of this address, and drops
    /// datagrams of others.
    pub(super) fn open(&mut self, server: SocketAddr) -> Result<&UdpSocket, Stop> {
        if server.ip().is_multicast() {
            return Err(Stop::Address(AddressError::Group));
        }
        let (place, any) = match server {
            SocketAddr::V4(_) => (&mut self.v4, IpAddr::from(Ipv4Addr::UNSPECIFIED)),
            SocketAddr::V6(_) => (&mut self.v6, Ipv6Addr::UNSPECIFIED.into()),
        };
        let refused = |why: io::Error| Stop::Address(reason(&why, Scheme::Coap));
        let port = match place {
            Some(port) => port,
            None => place.insert(ClientPort { socket: bind(any).map_err(refused)?, server: None }),
        };
        port.connect(server).map_err(refused)?;
        Ok(&port.socket)
    }
}

impl ClientPorts {
    /// Sends a datagram to a server to which the socket need not be connected. It may be lost.
    pub(super) fn send_last(&self, server: SocketAddr, datagram: &[u8]) {
        let port = if server.is_ipv4() { &self.v4 } else { &self.v6 };
        if let Some(port) = port {
            let _ = port.socket.send_to(datagram, server);
        }
    }
}

impl ClientPort {
    fn connect(&mut self, server: SocketAddr) -> io::Result<()> {
        if self.server != Some(server) {
            if self.server.take().is_some() {
                // Otherwise the socket would keep the source address of the first route.
                disconnect(&self.socket)?;
            }
            self.socket.connect(server)?;
            self.server = Some(server);
        }
        // An error of an earlier datagram.
        self.socket.take_error()?;
        Ok(())
    }
}

/// Returns a non-blocking socket with a port that the system has chosen. It is bound by its number, since Linux takes back
/// a port of its choice when the socket is disconnected.
fn bind(any: IpAddr) -> io::Result<UdpSocket> {
    // More ports that are taken in between are no coincidence.
    let mut picks_left = 16;
    loop {
        let port = UdpSocket::bind((any, 0))?.local_addr()?.port();
        match UdpSocket::bind((any, port)) {
            Err(why) if why.kind() == ErrorKind::AddrInUse && picks_left > 0 => picks_left -= 1,
            bound => {
                let socket = bound?;
                socket.set_nonblocking(true)?;
                return Ok(socket);
            }
        }
    }
}

pub(super) enum ClientSocket<'p> {
    Udp(&'p UdpSocket),
    Dtls(SecureSocket<'p>),
    Tcp {
        stream: TcpStream,
        /// Octets that the socket had no room for.
        output: Vec<u8>,
        /// True while it waits for room.
        is_full: bool,
    },
}

impl ClientSocket<'_> {
    /// Connects over TCP.
    pub(super) fn connect(
        address: SocketAddr,
        connect_timeout: Duration,
        waiting: &mut Wait<'_>,
    ) -> Result<Self, Stop> {
        let refused = |why: io::Error| Stop::Address(reason(&why, Scheme::CoapTcp));
        if address.ip().is_multicast() {
            return Err(Stop::Address(AddressError::Group));
        }
        let connecting = waiting.elsewhere(move || TcpStream::connect_timeout(&address, connect_timeout))?;
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
        Ok(Self::Tcp { stream, output: Vec::new(), is_full: false })
    }

    /// Waits for the socket from now on.
    pub(super) fn wait_for(&self, waiting: &Wait<'_>) -> Result<(), thinair_os::Error> {
        match self {
            Self::Udp(socket) => waiting.add(socket),
            Self::Dtls(secure) => waiting.add(secure.socket),
            Self::Tcp { stream, .. } => waiting.add(stream),
        }
    }

    /// Ends waiting for a socket that stays open.
    pub(super) fn forget(&self, waiting: &Wait<'_>) {
        // It is not there if waiting for it has failed.
        match self {
            Self::Udp(socket) => drop(waiting.remove(socket)),
            Self::Dtls(secure) => drop(waiting.remove(secure.socket)),
            Self::Tcp { .. } => {}
        }
    }

    pub(super) const fn is_stream(&self) -> bool {
        matches!(self, Self::Tcp { .. })
    }

    /// Sends the messages of the endpoint, as far as there is room. ICMP errors of the address that do not end the
    /// attempt are stored in `icmp`.
    pub(super) fn send(
        &mut self,
        peer: CoapPeer,
        endpoint: &mut Endpoint<CoapPeer>,
        buffer: &mut [u8],
        waiting: &Wait<'_>,
        report: &mut TaskReport,
        icmp: &mut Option<String>,
    ) -> Result<(), Stop> {
        match self {
            Self::Udp(socket) => {
                while let Some(transmit) = endpoint.poll_transmit(now(), buffer) {
                    let datagram = buffer.get(..transmit.len).unwrap_or_default();
                    if transmit.peer != peer {
                        // The reply to a late message of an earlier server.
                        // Not where that was in DTLS.
                        if let CoapPeer::Udp { address, socket: 0 } = transmit.peer {
                            let _ = socket.send_to(datagram, address);
                        }
                        continue;
                    }
                    let code = datagram.get(1).copied().map(Code);
                    let is_request = code.is_some_and(|code| code.class() == 0 && code != Code::EMPTY);
                    report.transmissions += u64::from(is_request);
                    send_datagram(socket, datagram, report, icmp)?;
                }
                Ok(())
            }
            Self::Dtls(secure) => secure.send(endpoint, buffer, report, icmp),
            Self::Tcp { stream, output, is_full } => {
                loop {
                    if output.is_empty() {
                        let Some(transmit) = endpoint.poll_transmit(now(), buffer) else { break };
                        if transmit.peer != peer {
                            continue;
                        }
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

    /// Returns the next datagram, or some octets of the stream, and their sender. `None` if there are none now.
    pub(super) fn receive<'b>(
        &mut self,
        peer: CoapPeer,
        buffer: &'b mut [u8],
        icmp: &mut Option<String>,
    ) -> Result<Option<(&'b [u8], CoapPeer)>, AddressError> {
        match self {
            Self::Udp(socket) => {
                let received = receive_datagram(socket, peer, buffer, icmp)?;
                Ok(received.map(|(len, from)| (buffer.get(..len).unwrap_or_default(), from)))
            }
            Self::Dtls(secure) => secure.receive(buffer, icmp),
            Self::Tcp { stream, .. } => loop {
                match stream.read(buffer) {
                    Ok(0) => return Err(AddressError::Closed(None)),
                    Ok(len) => return Ok(Some((buffer.get(..len).unwrap_or_default(), peer))),
                    Err(why) => match why.kind() {
                        ErrorKind::WouldBlock => return Ok(None),
                        ErrorKind::Interrupted => {}
                        _ => return Err(AddressError::Closed(Some(why.to_string()))),
                    },
                }
            },
        }
    }

    /// Time at which [`handle_timeout`](Self::handle_timeout) is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Dtls(secure) => secure.poll_timeout(),
            Self::Udp(_) | Self::Tcp { .. } => None,
        }
    }

    /// Retransmits a handshake that is due. Fails if there is no session.
    pub(super) fn handle_timeout(&mut self) -> Result<(), Stop> {
        match self {
            Self::Dtls(secure) => {
                secure.handle_timeout();
                secure.check()
            }
            Self::Udp(_) | Self::Tcp { .. } => Ok(()),
        }
    }

    /// Returns the octets of datagrams, or of the stream, with which a message of so many octets has arrived.
    pub(super) fn wire_octets(&mut self, message: usize) -> u64 {
        match self {
            Self::Dtls(secure) => secure.take_wire_octets(),
            Self::Udp(_) | Self::Tcp { .. } => message as u64,
        }
    }
}

/// Sends a datagram, and counts it.
pub(super) fn send_datagram(
    socket: &UdpSocket,
    datagram: &[u8],
    report: &mut TaskReport,
    icmp: &mut Option<String>,
) -> Result<(), Stop> {
    report.sent += 1;
    report.sent_octets += datagram.len() as u64;
    // The next call returns a pending ICMP error, and then does nothing else.
    let mut sent = socket.send(datagram);
    if let Err(why) = &sent
        && keep_trying(why, icmp)
    {
        sent = socket.send(datagram);
    }
    match sent {
        Ok(_) => Ok(()),
        // Like a loss on the path: it is retransmitted.
        Err(why) if why.kind() == ErrorKind::WouldBlock || keep_trying(&why, icmp) => Ok(()),
        Err(why) if why.raw_os_error() == Some(EMSGSIZE) => {
            Err(Stop::Address(AddressError::DatagramTooLarge { octets: datagram.len() }))
        }
        Err(why) => Err(Stop::Address(reason(&why, Scheme::Coap))),
    }
}

/// Receives a datagram. Returns its length and sender; `None` if there is none now.
pub(super) fn receive_datagram(
    socket: &UdpSocket,
    peer: CoapPeer,
    buffer: &mut [u8],
    icmp: &mut Option<String>,
) -> Result<Option<(usize, CoapPeer)>, AddressError> {
    loop {
        match socket.recv_from(buffer) {
            Ok((len, from)) => return Ok(Some((len, peer_of(peer, from)))),
            Err(why) => match why.kind() {
                ErrorKind::WouldBlock => return Ok(None),
                ErrorKind::Interrupted => {}
                _ if keep_trying(&why, icmp) => {}
                _ => return Err(reason(&why, Scheme::Coap)),
            },
        }
    }
}

/// Returns the sender of a datagram: `peer`, or an earlier server whose datagram had arrived before the socket was connected
/// to `peer`. The system leaves out the zone of an address that needs none.
fn peer_of(peer: CoapPeer, from: SocketAddr) -> CoapPeer {
    match peer {
        CoapPeer::Udp { address, .. } if address.ip() == from.ip() && address.port() == from.port() => peer,
        _ => CoapPeer::Udp { socket: 0, address: from },
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
