//! Datagrams in batches: many with one system call. What else is asked of a socket: [`options`]; what became of datagrams
//! on their way: [`errors`].

mod batch;
pub mod errors;
mod memory;
pub mod options;
mod own_address;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::Range;

use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, SndBuf, SndBufForce};
use nix::sys::socket::{getsockopt, setsockopt};

use self::batch::Name;
pub use self::memory::{Memory, memory};

/// The most datagrams of one call. More would save nothing that counts.
pub const MOST: usize = 64;

/// Sends datagrams: to `to`, or, if it is `None`, to where the socket is connected. How many went: the first ones of
/// `datagrams`, and no more than [`MOST`].
///
/// # Errors
/// Not even the first one could go. On a socket that does not block, [`WouldBlock`](io::ErrorKind::WouldBlock) says
/// that there is no room.
pub fn send(socket: &UdpSocket, to: Option<SocketAddr>, datagrams: &[&[u8]]) -> io::Result<usize> {
    let to = to.map(Name::from);
    batch::send(socket, datagrams.iter().map(|&datagram| (datagram, to.as_ref(), None)))
}

/// A datagram that waits: where its octets are, where it goes, and from which address of this machine.
#[derive(Clone, Debug)]
struct Waiting {
    octets: Range<usize>,
    to: Option<Name>,
    from: Option<IpAddr>,
}

/// Datagrams that wait to be sent, each to an address of its own. Its memory stays, and is used again.
#[derive(Debug, Default)]
pub struct Outgoing {
    octets: Vec<u8>,
    datagrams: Vec<Waiting>,
    /// How many of them have gone.
    gone: usize,
}

impl Outgoing {
    /// Nothing waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// A datagram behind the others: to `to`, or, if it is `None`, to where the socket is connected.
    pub fn push(&mut self, to: Option<SocketAddr>, datagram: &[u8]) {
        self.push_with(to, |octets| octets.extend_from_slice(datagram));
    }

    /// The same for a datagram that `write` puts behind the octets that are there, which it must leave as they are.
    pub fn push_with<T>(&mut self, to: Option<SocketAddr>, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let start = self.octets.len();
        let result = write(&mut self.octets);
        let octets = start.min(self.octets.len())..self.octets.len();
        self.datagrams.push(Waiting { octets, to: to.map(Name::from), from: None });
        result
    }

    /// A datagram behind the others, which leaves from this address of this machine whatever the socket is bound to;
    /// `None`: from that of the socket, or from the one that the way to the other end says. For answers of a socket that
    /// is bound to no address: see [`options::tell_own_address`].
    pub fn push_from(&mut self, from: Option<IpAddr>, to: SocketAddr, datagram: &[u8]) {
        self.push(Some(to), datagram);
        if let Some(waiting) = self.datagrams.last_mut() {
            waiting.from = from;
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.datagrams.len() - self.gone
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sends what waits, in its order, until there is no more, or the system refuses one. How many went; the others
    /// wait on.
    ///
    /// # Errors
    /// The reason why the first one that waits could not go, if none went before it.
    /// [`WouldBlock`](io::ErrorKind::WouldBlock): the socket does not block, and has no room now. Anything else is
    /// about this one datagram (EMSGSIZE, ENETUNREACH), or about an earlier one (ECONNREFUSED): a caller that does not
    /// [skip](Self::skip) it meets it again.
    pub fn send(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        let mut sent = 0;
        while !self.is_empty() {
            let waiting = self.datagrams.iter().skip(self.gone);
            let waiting = waiting.map(|one| (&self.octets[one.octets.clone()], one.to.as_ref(), one.from));
            match batch::send(socket, waiting) {
                Ok(count) => {
                    sent += count;
                    self.gone += count;
                }
                Err(_) if sent > 0 => return Ok(sent),
                Err(why) => return Err(why),
            }
        }
        self.clear();
        Ok(sent)
    }

    /// Gives up the first one that waits.
    pub fn skip(&mut self) {
        self.gone = (self.gone + 1).min(self.datagrams.len());
        if self.is_empty() {
            self.clear();
        }
    }

    /// Gives up all that wait.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.datagrams.clear();
        self.gone = 0;
    }
}

/// Datagrams that were received together. Its memory stays, and is used again.
#[derive(Debug)]
pub struct Received {
    octets: Vec<u8>,
    /// Room for each.
    room: usize,
    datagrams: Vec<Arrival>,
}

/// What is known of a datagram that was received.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// Octets of it that are there.
    len: usize,
    /// Whether it had more.
    is_cut: bool,
    from: Option<SocketAddr>,
    /// Which address of this machine it was sent to, if that is told.
    to: Option<IpAddr>,
}

impl Received {
    /// Room for `count` datagrams, at most [`MOST`], of `room` octets each.
    pub fn new(count: usize, room: usize) -> Self {
        let (count, room) = (count.clamp(1, MOST), room.max(1));
        Self { octets: vec![0; count * room], room, datagrams: Vec::with_capacity(count) }
    }

    /// Takes the datagrams that are there, in place of those of the last time. How many there were, those that were too
    /// long included: at least one. A socket that blocks waits for the first one only.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none, and the socket does not block. What an earlier
    /// datagram met on its way (as ECONNREFUSED).
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.datagrams.clear();
        batch::receive(socket, &mut self.octets, self.room, &mut self.datagrams)?;
        Ok(self.datagrams.len())
    }

    /// The datagrams that had room, and where each came from. An IPv4 address is one also where the socket is one of
    /// IPv6.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<SocketAddr>)> {
        let chunks = self.octets.chunks_exact(self.room);
        let whole = chunks.zip(&self.datagrams).filter(|(_, arrival)| !arrival.is_cut);
        whole.map(|(chunk, arrival)| (&chunk[..arrival.len], arrival.from))
    }

    /// The same, with the address of this machine to which each was sent, if the socket
    /// [tells it](options::tell_own_address).
    pub fn iter_with_own(&self) -> impl Iterator<Item = (&[u8], Option<SocketAddr>, Option<IpAddr>)> {
        let chunks = self.octets.chunks_exact(self.room);
        let whole = chunks.zip(&self.datagrams).filter(|(_, arrival)| !arrival.is_cut);
        whole.map(|(chunk, arrival)| (&chunk[..arrival.len], arrival.from, arrival.to))
    }

    /// The same, for those that work in place.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&mut [u8], Option<SocketAddr>)> {
        let chunks = self.octets.chunks_exact_mut(self.room);
        let whole = chunks.zip(&self.datagrams).filter(|(_, arrival)| !arrival.is_cut);
        whole.map(|(chunk, arrival)| (&mut chunk[..arrival.len], arrival.from))
    }

    /// How many were too long, and are not there.
    pub fn too_long(&self) -> usize {
        self.datagrams.iter().filter(|arrival| arrival.is_cut).count()
    }
}

/// Asks for room for this many octets that were received and not yet read, above what the system lets everybody have if
/// the caller may (CAP_NET_ADMIN). The room that there is then, half of which Linux takes for itself.
///
/// # Errors
/// There is no socket.
pub fn set_receive_room(socket: &UdpSocket, octets: usize) -> io::Result<usize> {
    if setsockopt(socket, RcvBufForce, &octets).is_err() {
        setsockopt(socket, RcvBuf, &octets)?;
    }
    Ok(getsockopt(socket, RcvBuf)?)
}

/// The same for octets that are to be sent.
///
/// # Errors
/// There is no socket.
pub fn set_send_room(socket: &UdpSocket, octets: usize) -> io::Result<usize> {
    if setsockopt(socket, SndBufForce, &octets).is_err() {
        setsockopt(socket, SndBuf, &octets)?;
    }
    Ok(getsockopt(socket, SndBuf)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn bound(address: &str) -> UdpSocket {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    }

    fn pair() -> (UdpSocket, UdpSocket) {
        (bound("127.0.0.1:0"), bound("127.0.0.1:0"))
    }

    fn all(received: &Received) -> Vec<Vec<u8>> {
        received.iter().map(|(datagram, _)| datagram.to_vec()).collect()
    }

    #[test]
    fn a_batch_arrives_as_it_was_sent() {
        let (one, other) = pair();
        let sent: Vec<Vec<u8>> = (0..100).map(|i| vec![i; usize::from(i) * 7]).collect();
        let slices: Vec<_> = sent.iter().map(Vec::as_slice).collect();
        for connected in [false, true] {
            let to = (!connected).then(|| other.local_addr().unwrap());
            if connected {
                one.connect(other.local_addr().unwrap()).unwrap();
            }
            assert_eq!(send(&one, to, &slices).unwrap(), MOST);
            assert_eq!(send(&one, to, &slices[MOST..]).unwrap(), 100 - MOST);
            let mut received = Received::new(16, 700);
            let mut arrived = Vec::new();
            while arrived.len() < sent.len() {
                assert!(received.receive(&other).unwrap() <= 16);
                assert!(received.iter().all(|(_, from)| from == one.local_addr().ok()));
                arrived.extend(all(&received));
            }
            assert_eq!(arrived, sent);
        }
    }

    #[test]
    fn each_goes_to_its_own_address() {
        let (one, a) = pair();
        let b = bound("127.0.0.1:0");
        let mut outgoing = Outgoing::new();
        for round in 0..3 {
            for i in 0..100 {
                let to = if i % 3 == 0 { &a } else { &b }.local_addr().ok();
                outgoing.push(to, &[round, i]);
            }
            assert_eq!((outgoing.len(), outgoing.send(&one).unwrap(), outgoing.len()), (100, 100, 0));
            let mut received = Received::new(MOST, 10);
            for (socket, expected) in [(&a, 34), (&b, 66)] {
                let mut arrived = Vec::new();
                while arrived.len() < expected {
                    received.receive(socket).unwrap();
                    arrived.extend(all(&received));
                }
                let is_a = expected == 34;
                let expected = (0..100).filter(|i| (i % 3 == 0) == is_a).map(|i| vec![round, i]);
                assert_eq!(arrived, expected.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn one_that_is_refused_holds_up_the_others_until_it_is_skipped() {
        let (one, other) = pair();
        let to = other.local_addr().ok();
        let mut outgoing = Outgoing::new();
        outgoing.push(to, b"first");
        outgoing.push_with(to, |octets| octets.resize(octets.len() + 70_000, 0));
        outgoing.push(to, b"last");
        assert_eq!(outgoing.send(&one).unwrap(), 1);
        assert_eq!(outgoing.send(&one).unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
        assert_eq!(outgoing.len(), 2);
        outgoing.skip();
        assert_eq!(outgoing.send(&one).unwrap(), 1);
        assert!(outgoing.is_empty());
        outgoing.skip();
        let mut received = Received::new(4, 10);
        let mut arrived = Vec::new();
        while arrived.len() < 2 {
            received.receive(&other).unwrap();
            arrived.extend(all(&received));
        }
        assert_eq!(arrived, [b"first".to_vec(), b"last".to_vec()]);
    }

    #[test]
    fn what_is_too_long_is_not_cut_but_told() {
        let (one, other) = pair();
        for datagram in [&[1; 10][..], &[2; 11], &[3; 9], &[], &[5; 500]] {
            one.send_to(datagram, other.local_addr().unwrap()).unwrap();
        }
        let mut received = Received::new(8, 10);
        assert_eq!(received.receive(&other).unwrap(), 5);
        assert_eq!(all(&received), [vec![1; 10], vec![3; 9], vec![]]);
        assert_eq!(received.too_long(), 2);
        let in_place: Vec<_> = received.iter_mut().map(|(datagram, _)| datagram.len()).collect();
        assert_eq!(in_place, [10, 9, 0]);
    }

    #[test]
    fn one_memory_serves_sockets_of_both_families() {
        let Ok(six) = UdpSocket::bind("[::]:0") else {
            println!("skipped: no IPv6");
            return;
        };
        let (four, _) = pair();
        let sender = UdpSocket::bind("[::1]:0").unwrap();
        let mut received = Received::new(8, 10);
        let port = six.local_addr().unwrap().port();
        for _ in 0..2 {
            // A datagram of IPv4 on a socket of IPv6, one of IPv6, and one on a socket of IPv4.
            four.send_to(b"4", ("127.0.0.1", port)).unwrap();
            received.receive(&six).unwrap();
            assert_eq!(received.iter().next(), Some((&b"4"[..], four.local_addr().ok())));
            sender.send_to(b"6", ("::1", port)).unwrap();
            received.receive(&six).unwrap();
            assert_eq!(received.iter().next(), Some((&b"6"[..], sender.local_addr().ok())));
            // And back: Linux takes addresses of IPv4 on a socket of IPv6.
            let mut outgoing = Outgoing::new();
            outgoing.push(four.local_addr().ok(), b"back");
            outgoing.push(sender.local_addr().ok(), b"back");
            assert_eq!(outgoing.send(&six).unwrap(), 2);
            received.receive(&four).unwrap();
            assert_eq!(received.iter().next(), Some((&b"back"[..], Some(([127, 0, 0, 1], port).into()))));
            sender.recv(&mut [0; 10]).unwrap();
        }
    }

    #[test]
    fn a_socket_that_does_not_block_says_that_there_is_nothing() {
        let (one, _) = pair();
        one.set_nonblocking(true).unwrap();
        let mut received = Received::new(4, 100);
        assert_eq!(received.receive(&one).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(received.iter().count(), 0);
        assert_eq!(send(&one, None, &[]).unwrap(), 0);
        assert_eq!(Outgoing::new().send(&one).unwrap(), 0);
    }

    #[test]
    fn room_is_granted() {
        let (one, _) = pair();
        assert!(set_receive_room(&one, 100_000).unwrap() >= 100_000);
        assert!(set_send_room(&one, 100_000).unwrap() >= 100_000);
    }
}
