//! UDP sockets of a server: reception in batches, and a queue of datagrams to send.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use thinair_os::udp::{MOST, ReceiveBatch, SendQueue};
use thinair_os::{EventLoop, Interest};

use super::{LONGEST_DATAGRAM, ServerError, ServerStatistics};

/// Largest number of local addresses of peers: a peer has room for one octet.
const MOST_PLACES: usize = u8::MAX as usize + 1;

/// A UDP socket of the server.
#[derive(Debug)]
struct ServerSocket {
    socket: UdpSocket,
    outgoing: SendQueue,
    /// True while it waits for room; it reads nothing meanwhile.
    is_full: bool,
    /// True if its datagrams are those of DTLS.
    is_secure: bool,
    /// True if it is bound to no address: each datagram reports its destination.
    is_open: bool,
}

/// Local address of a peer: a socket, and the source address of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LocalAddress {
    socket: usize,
    own: Option<IpAddr>,
}

/// All sockets.
#[derive(Debug)]
pub(super) struct Datagrams {
    sockets: Vec<ServerSocket>,
    /// Local addresses; the first ones are the sockets themselves.
    places: Vec<LocalAddress>,
    received: Option<ReceiveBatch>,
}

impl Datagrams {
    /// Adds all sockets to the event loop; their tokens are their numbers. True: a socket is for DTLS.
    pub(super) fn open(sockets: Vec<(UdpSocket, bool)>, events: &EventLoop) -> Result<Self, ServerError> {
        if sockets.len() > MOST_PLACES / 2 {
            return Err(ServerError::TooManyAddresses);
        }
        let mut all = Vec::new();
        for ((socket, is_secure), token) in sockets.into_iter().zip(0..) {
            events.add(&socket, token)?;
            let is_open = socket.local_addr().is_ok_and(|address| address.ip().is_unspecified());
            all.push(ServerSocket { socket, outgoing: SendQueue::new(), is_full: false, is_secure, is_open });
        }
        let places = (0..all.len()).map(|socket| LocalAddress { socket, own: None }).collect();
        let received = (!all.is_empty()).then(|| ReceiveBatch::new(MOST, LONGEST_DATAGRAM));
        Ok(Self { sockets: all, places, received })
    }

    /// Receives a batch from a socket. The buffer is moved out, so that datagrams can be sent meanwhile;
    /// [`give_back`](Self::give_back) returns it.
    pub(super) fn receive(
        &mut self,
        socket: usize,
        statistics: &mut ServerStatistics,
    ) -> Option<ReceiveBatch> {
        let mut received = self.received.take()?;
        match self.sockets.get(socket).map(|socket| received.receive(&socket.socket)) {
            Some(Ok(_)) => {
                statistics.too_long += received.too_long() as u64;
                Some(received)
            }
            // Nothing to read, or an error of an earlier datagram.
            _ => {
                self.received = Some(received);
                None
            }
        }
    }

    pub(super) fn give_back(&mut self, received: ReceiveBatch) {
        self.received = Some(received);
    }

    /// Returns the number of the local address for a peer that has sent to `own` by this socket.
    pub(super) fn place(&mut self, socket: usize, own: Option<IpAddr>) -> u8 {
        let is_open = self.sockets.get(socket).is_some_and(|socket| socket.is_open);
        if !is_open || own.is_none() {
            return socket as u8;
        }
        let place = LocalAddress { socket, own };
        if let Some(known) = self.places.iter().position(|known| *known == place) {
            return known as u8;
        }
        if self.places.len() >= MOST_PLACES {
            // The answer gets the source address of the route.
            return socket as u8;
        }
        self.places.push(place);
        (self.places.len() - 1) as u8
    }

    /// Queues a datagram for the next [`send`](Self::send).
    #[inline]
    pub(super) fn push(&mut self, place: u8, to: SocketAddr, datagram: &[u8]) {
        let Some(LocalAddress { socket, own }) = self.places.get(usize::from(place)).copied() else { return };
        if let Some(socket) = self.sockets.get_mut(socket) {
            socket.outgoing.push_from(own, to, datagram);
        }
    }

    /// Sends queued datagrams, as far as there is room.
    pub(super) fn send(
        &mut self,
        events: &EventLoop,
        statistics: &mut ServerStatistics,
    ) -> Result<(), ServerError> {
        for (number, socket) in self.sockets.iter_mut().enumerate() {
            if !socket.outgoing.is_empty() {
                socket.send(events, number as u64, statistics)?;
            }
        }
        Ok(())
    }

    /// True if the datagrams of a socket are those of DTLS.
    pub(super) fn is_secure(&self, socket: usize) -> bool {
        self.sockets.get(socket).is_some_and(|socket| socket.is_secure)
    }

    /// True if a socket waits for room.
    pub(super) fn is_full(&self, socket: usize) -> bool {
        self.sockets.get(socket).is_some_and(|socket| socket.is_full)
    }

    /// Returns the number of sockets.
    pub(super) fn len(&self) -> usize {
        self.sockets.len()
    }
}

impl ServerSocket {
    fn send(
        &mut self,
        events: &EventLoop,
        token: u64,
        statistics: &mut ServerStatistics,
    ) -> Result<(), ServerError> {
        let mut waits = false;
        while !self.outgoing.is_empty() {
            match self.outgoing.send(&self.socket) {
                Ok(_) => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => {
                    waits = true;
                    break;
                }
                Err(_) => {
                    statistics.refused += 1;
                    self.outgoing.skip();
                }
            }
        }
        if waits != self.is_full {
            let what = if waits { Interest::Writing } else { Interest::Reading };
            events.change(&self.socket, token, what)?;
            self.is_full = waits;
        }
        Ok(())
    }
}
