//! UDP sockets: what comes in batches, and what waits to go.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use thinair_os::udp::{MOST, Outgoing, Received};
use thinair_os::{EventLoop, Interest};

use super::{LONGEST_DATAGRAM, ServerError, Statistics};

/// Addresses at which sockets are asked, at most: a peer has room for one octet.
const MOST_PLACES: usize = u8::MAX as usize + 1;

/// A socket.
#[derive(Debug)]
struct Socket {
    socket: UdpSocket,
    outgoing: Outgoing,
    /// It waits for room, and reads nothing meanwhile.
    is_full: bool,
    /// Bound to no address: each datagram tells where it was sent to.
    is_open: bool,
}

/// Where a peer has asked: a socket, and the address of this machine that the answer leaves from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    socket: usize,
    own: Option<IpAddr>,
}

/// All sockets.
#[derive(Debug)]
pub(super) struct Datagrams {
    sockets: Vec<Socket>,
    /// The first ones are the sockets themselves.
    places: Vec<Place>,
    received: Option<Received>,
}

impl Datagrams {
    /// Waits for all sockets; each is called by its number.
    pub(super) fn open(sockets: Vec<UdpSocket>, events: &EventLoop) -> Result<Self, ServerError> {
        if sockets.len() > MOST_PLACES / 2 {
            return Err(ServerError::TooManyAddresses);
        }
        let mut all = Vec::new();
        for (socket, token) in sockets.into_iter().zip(0..) {
            events.add(&socket, token)?;
            let is_open = socket.local_addr().is_ok_and(|address| address.ip().is_unspecified());
            all.push(Socket { socket, outgoing: Outgoing::new(), is_full: false, is_open });
        }
        let places = (0..all.len()).map(|socket| Place { socket, own: None }).collect();
        let received = (!all.is_empty()).then(|| Received::new(MOST, LONGEST_DATAGRAM));
        Ok(Self { sockets: all, places, received })
    }

    /// Takes a batch from a socket. Handed over apart, so that sockets can be sent to meanwhile; to be given back.
    pub(super) fn receive(&mut self, socket: usize, statistics: &mut Statistics) -> Option<Received> {
        let mut received = self.received.take()?;
        match self.sockets.get(socket).map(|socket| received.receive(&socket.socket)) {
            Some(Ok(_)) => {
                statistics.too_long += received.too_long() as u64;
                Some(received)
            }
            // Nothing is there after all, or an earlier datagram has met an error on its way.
            _ => {
                self.received = Some(received);
                None
            }
        }
    }

    pub(super) fn give_back(&mut self, received: Received) {
        self.received = Some(received);
    }

    /// What a peer is called that has sent to this address of this machine by this socket.
    pub(super) fn place(&mut self, socket: usize, own: Option<IpAddr>) -> u8 {
        let is_open = self.sockets.get(socket).is_some_and(|socket| socket.is_open);
        if !is_open || own.is_none() {
            return socket as u8;
        }
        let place = Place { socket, own };
        if let Some(known) = self.places.iter().position(|known| *known == place) {
            return known as u8;
        }
        if self.places.len() >= MOST_PLACES {
            // The answer leaves from where the way back says.
            return socket as u8;
        }
        self.places.push(place);
        (self.places.len() - 1) as u8
    }

    /// A datagram goes with the next [`send`](Self::send).
    #[inline]
    pub(super) fn push(&mut self, place: u8, to: SocketAddr, datagram: &[u8]) {
        let Some(Place { socket, own }) = self.places.get(usize::from(place)).copied() else { return };
        if let Some(socket) = self.sockets.get_mut(socket) {
            socket.outgoing.push_from(own, to, datagram);
        }
    }

    /// Sends what waits, as far as there is room.
    pub(super) fn send(
        &mut self,
        events: &EventLoop,
        statistics: &mut Statistics,
    ) -> Result<(), ServerError> {
        for (number, socket) in self.sockets.iter_mut().enumerate() {
            if !socket.outgoing.is_empty() {
                socket.send(events, number as u64, statistics)?;
            }
        }
        Ok(())
    }

    /// Whether a socket waits for room.
    pub(super) fn is_full(&self, socket: usize) -> bool {
        self.sockets.get(socket).is_some_and(|socket| socket.is_full)
    }

    /// How many sockets there are.
    pub(super) fn len(&self) -> usize {
        self.sockets.len()
    }
}

impl Socket {
    fn send(
        &mut self,
        events: &EventLoop,
        token: u64,
        statistics: &mut Statistics,
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
