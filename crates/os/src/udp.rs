//! Datagrams in batches: many with one system call. Options of sockets: [`options`]; errors of datagrams under way:
//! [`errors`].

mod batch;
mod control;
pub mod errors;
mod memory;
pub mod options;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::Range;

use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, SndBuf, SndBufForce};
use nix::sys::socket::{getsockopt, setsockopt};

use self::batch::Name;
pub use self::memory::{SocketMemory, memory};

/// Largest number of datagrams in one call. More would save little.
pub const MOST: usize = 64;

/// Sends at most [`MOST`] datagrams to `to`, or, if it is `None`, to the peer of a connected socket. Returns the number
/// of those sent, the first ones of `datagrams`.
///
/// # Errors
/// Not even the first one could be sent. On a non-blocking socket, [`WouldBlock`](io::ErrorKind::WouldBlock) means that
/// there is no room.
pub fn send(socket: &UdpSocket, to: Option<SocketAddr>, datagrams: &[&[u8]]) -> io::Result<usize> {
    let to = to.map(Name::from);
    batch::send(socket, datagrams.iter().map(|&datagram| (datagram, to.as_ref(), None)))
}

/// A queued datagram: place of its octets, destination, and own source address.
#[derive(Clone, Debug)]
struct QueuedDatagram {
    octets: Range<usize>,
    to: Option<Name>,
    from: Option<IpAddr>,
}

/// Queue of datagrams, each with a destination of its own. Its memory is reused.
#[derive(Debug, Default)]
pub struct SendQueue {
    octets: Vec<u8>,
    datagrams: Vec<QueuedDatagram>,
    /// Number of datagrams sent.
    gone: usize,
}

impl SendQueue {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a datagram to `to`, or, if it is `None`, to the peer of a connected socket.
    pub fn push(&mut self, to: Option<SocketAddr>, datagram: &[u8]) {
        self.push_with(to, |octets| octets.extend_from_slice(datagram));
    }

    /// Appends a datagram that `write` adds to the octets of the buffer; it must not change earlier octets.
    pub fn push_with<T>(&mut self, to: Option<SocketAddr>, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let start = self.octets.len();
        let result = write(&mut self.octets);
        let octets = start.min(self.octets.len())..self.octets.len();
        self.datagrams.push(QueuedDatagram { octets, to: to.map(Name::from), from: None });
        result
    }

    /// Appends a datagram with this source address of this machine, independent of the socket's own; `None`: the address
    /// of the socket, or the one of the route. For answers of a socket that is bound to no address: see
    /// [`options::report_own_address`].
    pub fn push_from(&mut self, from: Option<IpAddr>, to: SocketAddr, datagram: &[u8]) {
        self.push(Some(to), datagram);
        if let Some(waiting) = self.datagrams.last_mut() {
            waiting.from = from;
        }
    }

    /// Removes the source address of the first queued datagram, which then leaves from the address of the socket, or the one
    /// of the route. False: it has none.
    pub fn forget_own_address(&mut self) -> bool {
        let first = self.datagrams.get_mut(self.gone);
        first.is_some_and(|first| first.from.take().is_some())
    }

    /// Returns the number of queued datagrams.
    pub fn len(&self) -> usize {
        self.datagrams.len() - self.gone
    }

    /// True if no datagram is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sends queued datagrams, in order, until there are none, or the system rejects one. Returns the number of those
    /// sent; the others stay queued.
    ///
    /// # Errors
    /// The error of the first queued datagram, if none was sent before it. [`WouldBlock`](io::ErrorKind::WouldBlock): the
    /// socket does not block, and has no room at present. Any other error concerns this datagram (EMSGSIZE, ENETUNREACH),
    /// or an earlier one (ECONNREFUSED): without a [skip](Self::skip) it repeats.
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

    /// Drops the first queued datagram.
    pub fn skip(&mut self) {
        self.gone = (self.gone + 1).min(self.datagrams.len());
        if self.is_empty() {
            self.clear();
        }
    }

    /// Drops all queued datagrams.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.datagrams.clear();
        self.gone = 0;
    }
}

/// Datagrams that were received together. Its memory is reused.
#[derive(Debug)]
pub struct ReceiveBatch {
    octets: Vec<u8>,
    /// Octets of the buffer of each.
    room: usize,
    datagrams: Vec<DatagramInfo>,
    /// How many of them were [taken](Self::take_next).
    taken: usize,
}

/// A datagram, its source, and the address of this machine to which it was sent.
pub type TakenDatagram<'b> = (&'b mut [u8], Option<SocketAddr>, Option<IpAddr>);

/// Properties of a received datagram.
#[derive(Clone, Copy, Debug)]
struct DatagramInfo {
    /// Octets in the buffer.
    len: usize,
    /// True if it was longer.
    is_cut: bool,
    from: Option<SocketAddr>,
    /// Address of this machine that it was sent to, if that is reported.
    to: Option<IpAddr>,
    /// True if it was sent to a group or by broadcast, and that is reported.
    to_many: bool,
}

impl ReceiveBatch {
    /// Creates buffers for `count` datagrams, at most [`MOST`], of `room` octets each.
    pub fn new(count: usize, room: usize) -> Self {
        let (count, room) = (count.clamp(1, MOST), room.max(1));
        Self { octets: vec![0; count * room], room, datagrams: Vec::with_capacity(count), taken: 0 }
    }

    /// Receives waiting datagrams, in place of those of the previous call. Returns their number, those that were too long
    /// included: at least one. A blocking socket waits for the first one only.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none, and the socket does not block. An error of an earlier
    /// datagram (for example ECONNREFUSED).
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.datagrams.clear();
        self.taken = 0;
        batch::receive(socket, &mut self.octets, self.room, &mut self.datagrams)?;
        Ok(self.datagrams.len())
    }

    /// Iterates over the datagrams that fitted, with their sources. An IPv4 address is one also on a socket of IPv6.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<SocketAddr>)> {
        let chunks = self.octets.chunks_exact(self.room);
        let whole = chunks.zip(&self.datagrams).filter(|(_, arrival)| !arrival.is_cut);
        whole.map(|(chunk, arrival)| (&chunk[..arrival.len], arrival.from))
    }

    /// Iterates as [`iter`](Self::iter), with the address of this machine to which each was sent, if the socket [reports
    /// it](options::report_own_address): then without those that were sent to a group (multicast) or by broadcast.
    pub fn iter_with_own(&self) -> impl Iterator<Item = (&[u8], Option<SocketAddr>, Option<IpAddr>)> {
        let chunks = self.octets.chunks_exact(self.room);
        let own = chunks.zip(&self.datagrams).filter(|(_, arrival)| !arrival.is_cut && !arrival.to_many);
        own.map(|(chunk, arrival)| (&chunk[..arrival.len], arrival.from, arrival.to))
    }

    /// Takes the next datagram, to be changed in place, where it came from, and the address of this machine to which it was
    /// sent, if the socket [reports it](options::report_own_address), and it is no group and no broadcast address:
    /// `Some(None)` stands for one that was too long, and is not there.
    pub fn take_next(&mut self) -> Option<Option<TakenDatagram<'_>>> {
        let DatagramInfo { len, is_cut, from, to, to_many } = *self.datagrams.get(self.taken)?;
        let start = self.taken * self.room;
        self.taken += 1;
        Some((!is_cut).then(|| (&mut self.octets[start..start + len], from, to.filter(|_| !to_many))))
    }

    /// Returns the number of datagrams that were too long, and dropped.
    pub fn too_long(&self) -> usize {
        self.datagrams.iter().filter(|arrival| arrival.is_cut).count()
    }
}

/// Requests a receive buffer of this many octets, above the limit for everybody if the caller may (CAP_NET_ADMIN).
/// Returns the resulting size, half of which Linux uses for itself.
///
/// # Errors
/// The socket is invalid.
pub fn set_receive_room(socket: &UdpSocket, octets: usize) -> io::Result<usize> {
    if setsockopt(socket, RcvBufForce, &octets).is_err() {
        setsockopt(socket, RcvBuf, &octets)?;
    }
    Ok(getsockopt(socket, RcvBuf)?)
}

/// Requests a send buffer, as [`set_receive_room`] does for received octets.
///
/// # Errors
/// The socket is invalid.
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

    fn all(received: &ReceiveBatch) -> Vec<Vec<u8>> {
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
            let mut received = ReceiveBatch::new(16, 700);
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
        let mut outgoing = SendQueue::new();
        for round in 0..3 {
            for i in 0..100 {
                let to = if i % 3 == 0 { &a } else { &b }.local_addr().ok();
                outgoing.push(to, &[round, i]);
            }
            assert_eq!((outgoing.len(), outgoing.send(&one).unwrap(), outgoing.len()), (100, 100, 0));
            let mut received = ReceiveBatch::new(MOST, 10);
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
        let mut outgoing = SendQueue::new();
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
        let mut received = ReceiveBatch::new(4, 10);
        let mut arrived = Vec::new();
        while arrived.len() < 2 {
            received.receive(&other).unwrap();
            arrived.extend(all(&received));
        }
        assert_eq!(arrived, [b"first".to_vec(), b"last".to_vec()]);
    }

    #[test]
    fn what_is_too_long_is_not_cut_but_reported() {
        let (one, other) = pair();
        for datagram in [&[1; 10][..], &[2; 11], &[3; 9], &[], &[5; 500]] {
            one.send_to(datagram, other.local_addr().unwrap()).unwrap();
        }
        let mut received = ReceiveBatch::new(8, 10);
        assert_eq!(received.receive(&other).unwrap(), 5);
        assert_eq!(all(&received), [vec![1; 10], vec![3; 9], vec![]]);
        assert_eq!(received.too_long(), 2);
        let next = || received.take_next().map(|next| next.map(|(datagram, ..)| datagram.len()));
        let in_place: Vec<_> = std::iter::from_fn(next).collect();
        assert_eq!(in_place, [Some(10), None, Some(9), Some(0), None]);
    }

    #[test]
    fn one_memory_serves_sockets_of_both_families() {
        let Ok(six) = UdpSocket::bind("[::]:0") else {
            println!("skipped: no IPv6");
            return;
        };
        let (four, _) = pair();
        let sender = UdpSocket::bind("[::1]:0").unwrap();
        let mut received = ReceiveBatch::new(8, 10);
        let port = six.local_addr().unwrap().port();
        for _ in 0..2 {
            // A datagram of IPv4 on a socket of IPv6, one of IPv6, and one on a socket of IPv4.
            four.send_to(b"4", ("127.0.0.1", port)).unwrap();
            received.receive(&six).unwrap();
            assert_eq!(received.iter().next(), Some((&b"4"[..], four.local_addr().ok())));
            sender.send_to(b"6", ("::1", port)).unwrap();
            received.receive(&six).unwrap();
            assert_eq!(received.iter().next(), Some((&b"6"[..], sender.local_addr().ok())));
            // And back: Linux accepts addresses of IPv4 on a socket of IPv6.
            let mut outgoing = SendQueue::new();
            outgoing.push(four.local_addr().ok(), b"back");
            outgoing.push(sender.local_addr().ok(), b"back");
            assert_eq!(outgoing.send(&six).unwrap(), 2);
            received.receive(&four).unwrap();
            assert_eq!(received.iter().next(), Some((&b"back"[..], Some(([127, 0, 0, 1], port).into()))));
            sender.recv(&mut [0; 10]).unwrap();
        }
    }

    #[test]
    fn a_socket_that_does_not_block_reports_that_there_is_nothing() {
        let (one, _) = pair();
        one.set_nonblocking(true).unwrap();
        let mut received = ReceiveBatch::new(4, 100);
        assert_eq!(received.receive(&one).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(received.iter().count(), 0);
        assert_eq!(send(&one, None, &[]).unwrap(), 0);
        assert_eq!(SendQueue::new().send(&one).unwrap(), 0);
    }

    #[test]
    fn room_is_granted() {
        let (one, _) = pair();
        assert!(set_receive_room(&one, 100_000).unwrap() >= 100_000);
        assert!(set_send_room(&one, 100_000).unwrap() >= 100_000);
    }
}
