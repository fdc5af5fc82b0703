//! Datagrams of a client in DTLS: `coaps://`.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use thinair_coap::{Code, Endpoint};
use thinair_dtls::{ClientConfig, ClientEvent, OVERHEAD, Psk, Retransmission};
use thinair_os::clock::now;
use thinair_wire::time::Instant;

use super::TaskReport;
use super::carrier::{ROOM, receive_datagram, send_datagram};
use super::error::{AddressError, ClientError};
use super::exchange::Stop;
use crate::coap::CoapPeer;
use crate::wait::{Wait, Woken};

/// Number of the socket of peers in DTLS.
const SOCKET: u8 = 1;

/// Octets that a record adds to a message, with the longest connection ID of a server.
const RECORD: usize = OVERHEAD + thinair_dtls::MAX_CID + 1;

/// Handshake of DTLS before a request: datagrams of both sides, and octets in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Octets in them.
    pub sent_octets: u64,
    /// Datagrams received.
    pub received: u64,
    /// Octets in them.
    pub received_octets: u64,
}

/// Key of a client, and its sessions by the addresses of servers.
pub(super) struct SecureServers {
    psk: Psk,
    config: ClientConfig,
    sessions: BTreeMap<SocketAddr, thinair_dtls::Client>,
}

impl SecureServers {
    /// `initial`: first timeout of handshakes.
    pub(super) fn new(psk: Psk, initial: Option<Duration>) -> Self {
        let default = Retransmission::default();
        let retransmission = Retransmission { initial: initial.unwrap_or(default.initial), ..default };
        let config = ClientConfig { retransmission, ..ClientConfig::default() };
        Self { psk, config, sessions: BTreeMap::new() }
    }

    /// Ends all sessions: their servers need the memory for others. Calls `send` for each datagram of this.
    pub(super) fn close(&mut self, mut send: impl FnMut(SocketAddr, &[u8])) {
        let mut room = [0; 128];
        for (address, session) in &mut self.sessions {
            session.close();
            while let Some(len) = session.poll_datagram(now(), &mut room) {
                send(*address, room.get(..len).unwrap_or_default());
            }
        }
    }

    /// Returns datagrams in the session with a server, or in a new one.
    pub(super) fn open<'s>(&'s mut self, socket: &'s UdpSocket, address: SocketAddr) -> SecureSocket<'s> {
        let Self { psk, config, sessions } = self;
        let session = sessions.entry(address).or_insert_with(|| {
            // The random source has worked, and does not fail later.
            thinair_dtls::Client::new(psk.clone(), *config, || getrandom::u64().unwrap_or_default())
        });
        let peer = CoapPeer::Udp { socket: SOCKET, address };
        let (received, room) = (vec![0; ROOM], vec![0; ROOM + RECORD]);
        SecureSocket { socket, session, peer, received, rest: 0..0, room, wire_octets: 0 }
    }
}

/// Datagrams in a session with a server.
pub(super) struct SecureSocket<'s> {
    pub(super) socket: &'s UdpSocket,
    session: &'s mut thinair_dtls::Client,
    pub(super) peer: CoapPeer,
    /// The latest datagram, and what is left of it to process.
    received: Vec<u8>,
    rest: std::ops::Range<usize>,
    room: Vec<u8>,
    /// Octets of datagrams that were received since the latest message.
    wire_octets: u64,
}

impl SecureSocket<'_> {
    /// Makes a session, unless there is one.
    pub(super) fn connect(&mut self, waiting: &mut Wait<'_>, report: &mut TaskReport) -> Result<(), Stop> {
        if self.session.is_connected() {
            return Ok(());
        }
        self.session.connect(now());
        let mut icmp = None;
        loop {
            self.flush(report, &mut icmp)?;
            match waiting.wait(self.poll_timeout())? {
                Woken::Look => {}
                Woken::TimeLimit => return Err(Stop::TIME),
                Woken::Interrupted => return Err(ClientError::Interrupted.into()),
            }
            self.handle_timeout();
            self.check()?;
            while self.receive_records(None, &mut icmp).map_err(Stop::Address)? {
                report.received += 1;
                report.received_octets += std::mem::take(&mut self.wire_octets);
            }
            if self.session.is_connected() {
                report.handshake = Some(HandshakeReport {
                    sent: report.sent,
                    sent_octets: report.sent_octets,
                    received: report.received,
                    received_octets: report.received_octets,
                });
                (report.sent, report.sent_octets) = (0, 0);
                (report.received, report.received_octets) = (0, 0);
                return Ok(());
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.session.poll_timeout()
    }

    pub(super) fn handle_timeout(&mut self) {
        self.session.handle_timeout(now());
    }

    /// Returns the octets of datagrams that were received since the latest call.
    pub(super) fn take_wire_octets(&mut self) -> u64 {
        std::mem::take(&mut self.wire_octets)
    }

    /// Sends messages of the endpoint, and of a handshake.
    pub(super) fn send(
        &mut self,
        endpoint: &mut Endpoint<CoapPeer>,
        buffer: &mut [u8],
        report: &mut TaskReport,
        icmp: &mut Option<String>,
    ) -> Result<(), Stop> {
        while let Some(transmit) = endpoint.poll_transmit(now(), buffer) {
            let message = buffer.get(..transmit.len).unwrap_or_default();
            if transmit.peer != self.peer {
                // The reply to a late message of an earlier server; not where that was in DTLS.
                if let CoapPeer::Udp { address, socket } = transmit.peer
                    && socket != SOCKET
                {
                    let _ = self.socket.send_to(message, address);
                }
                continue;
            }
            let code = message.get(1).copied().map(Code);
            report.transmissions +=
                u64::from(code.is_some_and(|code| code.class() == 0 && code != Code::EMPTY));
            match self.session.send(now(), message, &mut self.room) {
                Ok(len) => {
                    let datagram = self.room.get(..len).unwrap_or_default();
                    send_datagram(self.socket, datagram, report, icmp)?;
                }
                // Like a loss on the path: the message is retransmitted, in the session that is being made.
                Err(_) => self.session.connect(now()),
            }
        }
        self.flush(report, icmp)
    }

    /// Sends datagrams of a handshake.
    fn flush(&mut self, report: &mut TaskReport, icmp: &mut Option<String>) -> Result<(), Stop> {
        while let Some(len) = self.session.poll_datagram(now(), &mut self.room) {
            send_datagram(self.socket, self.room.get(..len).unwrap_or_default(), report, icmp)?;
        }
        Ok(())
    }

    /// Returns the next message, and its sender. `None` if there is none now.
    pub(super) fn receive<'b>(
        &mut self,
        buffer: &'b mut [u8],
        icmp: &mut Option<String>,
    ) -> Result<Option<(&'b [u8], CoapPeer)>, AddressError> {
        let mut message = None;
        while message.is_none() && self.receive_records(Some((buffer, &mut message)), icmp)? {}
        Ok(message.and_then(|len| Some((buffer.get(..len)?, self.peer))))
    }

    /// Processes what is left of the latest datagram, or the next one, up to the first message, which is copied. Returns false if there
    /// is nothing to read.
    fn receive_records(
        &mut self,
        mut to: Option<(&mut [u8], &mut Option<usize>)>,
        icmp: &mut Option<String>,
    ) -> Result<bool, AddressError> {
        if self.rest.is_empty() {
            match receive_datagram(self.socket, self.peer, &mut self.received, icmp)? {
                Some((len, from)) if from == self.peer => {
                    self.rest = 0..len;
                    self.wire_octets += len as u64;
                }
                // A late datagram of an earlier server.
                Some(_) => return Ok(true),
                None => return Ok(false),
            }
        }
        let mut rest = self.received.get_mut(self.rest.clone()).unwrap_or_default();
        let content = self.session.handle_datagram(now(), &mut rest);
        self.rest.start = self.rest.end - rest.len();
        if let (Some(content), Some((buffer, message))) = (content, &mut to)
            && let Some(place) = buffer.get_mut(..content.len())
        {
            place.copy_from_slice(content);
            **message = Some(content.len());
        }
        while let Some(event) = self.session.poll_event() {
            match event {
                // The request is retransmitted in a new session.
                ClientEvent::Closed(_) => self.session.connect(now()),
                ClientEvent::Failed(failure) if !self.session.is_connected() => {
                    return Err(AddressError::Dtls(failure));
                }
                _ => {}
            }
        }
        Ok(true)
    }

    /// Fails if a handshake was given up, and there is no session.
    pub(super) fn check(&mut self) -> Result<(), Stop> {
        while let Some(event) = self.session.poll_event() {
            if let ClientEvent::Failed(failure) = event
                && !self.session.is_connected()
            {
                return Err(Stop::Address(AddressError::Dtls(failure)));
            }
        }
        Ok(())
    }
}
