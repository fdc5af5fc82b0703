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

use self::batch::{Message, Name};
pub use self::memory::{SocketMemory, memory};

/// Largest number of messages in one call. More would save little.
pub const MOST: usize = 64;

/// Largest number of datagrams in one message: that of older kernels.
const SEGMENTS: usize = 64;

/// Largest message, in octets: the payload of UDP over IPv4 is at most 65,507.
const LONGEST: usize = 65_000;

/// Sends at most [`MOST`] datagrams to `to`, or, if it is `None`, to the peer of a connected socket. Returns the number
/// of those sent, the first ones of `datagrams`.
///
/// # Errors
/// Not even the first one could be sent. On a non-blocking socket, [`WouldBlock`](io::ErrorKind::WouldBlock) means that
/// there is no room.
pub fn send(socket: &UdpSocket, to: Option<SocketAddr>, datagrams: &[&[u8]]) -> io::Result<usize> {
    let to = to.map(Name::from);
    let message = |octets| Message { octets, to: to.as_ref(), from: None, segment: None };
    batch::send(socket, datagrams.iter().copied().map(message))
}

/// A queued datagram: place of its octets, destination, and own source address.
#[derive(Clone, Debug)]
struct QueuedDatagram {
    octets: Range<usize>,
    to: Option<Name>,
    from: Option<IpAddr>,
}

/// Queue of datagrams, each with a destination of its own. Its memory is reused.
///
/// If it [groups](Self::grouping) them, consecutive datagrams of one length to one destination, and a shorter one behind
/// them, are one message, which the system divides as late as it can (UDP_SEGMENT). A datagram of another length begins the
/// next message of the same call.
#[derive(Debug, Default)]
pub struct SendQueue {
    octets: Vec<u8>,
    datagrams: Vec<QueuedDatagram>,
    /// Number of datagrams sent.
    gone: usize,
    groups: bool,
    /// Number of the next datagrams that are sent one by one.
    apart: usize,
}

impl SendQueue {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty queue that groups datagrams, if the system can do so for this socket.
    pub fn grouping(socket: &UdpSocket) -> Self {
        Self { groups: options::divides_messages(socket), ..Self::default() }
    }

    /// True if datagrams are grouped: the system was able to do so until now.
    pub fn groups(&self) -> bool {
        self.groups
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
            let mut counts = [0; MOST];
            let messages = self.messages().zip(&mut counts).map(|((message, datagrams), count)| {
                *count = datagrams;
                message
            });
            match batch::send(socket, messages) {
                Ok(messages) => {
                    let datagrams: usize = counts.iter().take(messages).sum();
                    sent += datagrams;
                    self.gone += datagrams;
                    self.apart = self.apart.saturating_sub(datagrams);
                }
                // Each datagram of the message is tried alone, to find the one that the system rejects.
                Err(why) if counts[0] > 1 && why.kind() != io::ErrorKind::WouldBlock => {
                    self.apart = counts[0];
                    // The interface on the way cannot compute checksums, which this needs.
                    self.groups &= why.raw_os_error() != Some(libc::EIO);
                }
                Err(_) if sent > 0 => return Ok(sent),
                Err(why) => return Err(why),
            }
        }
        self.clear();
        Ok(sent)
    }

    /// Queued datagrams as messages, each with the number of its datagrams.
    fn messages(&self) -> impl Iterator<Item = (Message<'_>, usize)> {
        let mut rest = self.datagrams.get(self.gone..).unwrap_or_default();
        let mut apart = self.apart;
        std::iter::from_fn(move || {
            let first = rest.first()?;
            let count = if self.groups && apart == 0 { group(rest) } else { 1 };
            apart = apart.saturating_sub(count);
            let (group, behind) = rest.split_at(count);
            rest = behind;
            let octets = first.octets.start..group.last().unwrap_or(first).octets.end;
            let message = Message {
                octets: &self.octets[octets],
                to: first.to.as_ref(),
                from: first.from,
                segment: (count > 1).then_some(first.octets.len() as u16),
            };
            Some((message, count))
        })
    }

    /// Drops the first queued datagram.
    pub fn skip(&mut self) {
        self.gone = (self.gone + 1).min(self.datagrams.len());
        self.apart = self.apart.saturating_sub(1);
        if self.is_empty() {
            self.clear();
        }
    }

    /// Drops all queued datagrams.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.datagrams.clear();
        (self.gone, self.apart) = (0, 0);
    }
}

/// Returns the number of the first datagrams that can be one message.
fn group(datagrams: &[QueuedDatagram]) -> usize {
    let Some(first) = datagrams.first().filter(|first| !first.octets.is_empty()) else { return 1 };
    let most = (LONGEST / first.octets.len()).clamp(1, SEGMENTS);
    let mut count = 1;
    for next in datagrams.iter().take(most).skip(1) {
        let len = next.octets.len();
        if len == 0 || len > first.octets.len() || next.to != first.to || next.from != first.from {
            break;
        }
        count += 1;
        if len < first.octets.len() {
            break;
        }
    }
    count
}

/// Datagrams that were received together. Its memory is reused.
#[derive(Debug)]
pub struct ReceiveBatch {
    octets: Vec<u8>,
    /// Octets of the buffer of each message.
    room: usize,
    /// Maximum length of a datagram.
    longest: usize,
    messages: Vec<MessageInfo>,
    /// Number of messages that were [taken](Self::take_next), and octets of the next one.
    taken: (usize, usize),
}

/// A datagram, its source, and the address of this machine to which it was sent.
pub type TakenDatagram<'b> = (&'b mut [u8], Option<SocketAddr>, Option<IpAddr>);

/// Properties of a received message.
#[derive(Clone, Copy, Debug)]
struct MessageInfo {
    /// Octets in the buffer.
    len: usize,
    /// Length of each datagram but the last.
    segment: usize,
    /// True if it was longer than the buffer.
    is_cut: bool,
    from: Option<SocketAddr>,
    /// Address of this machine that it was sent to, if that is reported.
    to: Option<IpAddr>,
    /// True if it was sent to a group or by broadcast, and that is reported.
    to_many: bool,
}

impl MessageInfo {
    /// Lengths of its datagrams.
    fn lengths(&self) -> impl Iterator<Item = usize> + use<> {
        let Self { len, segment, .. } = *self;
        let count = len.div_ceil(segment).max(1);
        (0..count).map(move |number| segment.min(len - number * segment))
    }
}

impl ReceiveBatch {
    /// Creates buffers for `count` datagrams, at most [`MOST`], of `room` octets each.
    pub fn new(count: usize, room: usize) -> Self {
        Self::with_rooms(count, room, room)
    }

    /// Creates buffers for `count` messages of a socket that [joins
    /// datagrams](options::join_datagrams), of at most `longest` octets each.
    pub fn of_joined(count: usize, longest: usize) -> Self {
        Self::with_rooms(count, usize::from(u16::MAX), longest)
    }

    fn with_rooms(count: usize, room: usize, longest: usize) -> Self {
        let (count, room) = (count.clamp(1, MOST), room.max(1));
        let messages = Vec::with_capacity(count);
        Self { octets: vec![0; count * room], room, longest, messages, taken: (0, 0) }
    }

    /// Receives waiting messages, in place of those of the previous call. Returns their number, those that were too long
    /// included: at least one. A blocking socket waits for the first one only.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none, and the socket does not block. An error of an earlier
    /// datagram (for example ECONNREFUSED).
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.messages.clear();
        self.taken = (0, 0);
        batch::receive(socket, &mut self.octets, self.room, &mut self.messages)?;
        Ok(self.messages.len())
    }

    /// Iterates over the datagrams that fitted, with their sources. An IPv4 address is one also on a socket of IPv6.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<SocketAddr>)> {
        self.whole().map(|(datagram, message)| (datagram, message.from))
    }

    /// Iterates as [`iter`](Self::iter), with the address of this machine to which each was sent, if the socket [reports
    /// it](options::report_own_address): then without those that were sent to a group (multicast) or by broadcast.
    pub fn iter_with_own(&self) -> impl Iterator<Item = (&[u8], Option<SocketAddr>, Option<IpAddr>)> {
        let own = self.whole().filter(|(_, message)| !message.to_many);
        own.map(|(datagram, message)| (datagram, message.from, message.to))
    }

    /// Datagrams that fitted, each with its message.
    fn whole(&self) -> impl Iterator<Item = (&[u8], &MessageInfo)> {
        let buffers = self.octets.chunks_exact(self.room).zip(&self.messages);
        let whole = buffers.filter(|(_, message)| !message.is_cut);
        let datagrams = whole.flat_map(|(buffer, message)| {
            // The last one of several may be shorter, but not empty.
            let segment = message.segment.min(message.len).max(1);
            let is_empty = message.len == 0;
            let several = buffer[..message.len].chunks(segment);
            several.chain(is_empty.then_some(&buffer[..0])).map(move |datagram| (datagram, message))
        });
        datagrams.filter(|(datagram, _)| datagram.len() <= self.longest)
    }

    /// Takes the next datagram, to be changed in place, where it came from, and the address of this machine to which it was
    /// sent, if the socket [reports it](options::report_own_address), and it is no group and no broadcast address:
    /// `Some(None)` stands for one that was too long, and is not there.
    pub fn take_next(&mut self) -> Option<Option<TakenDatagram<'_>>> {
        let (number, offset) = self.taken;
        let MessageInfo { len, segment, is_cut, from, to, to_many } = *self.messages.get(number)?;
        let end = offset.saturating_add(segment).min(len);
        self.taken = if end == len { (number + 1, 0) } else { (number, end) };
        let start = number * self.room;
        let fits = !is_cut && end - offset <= self.longest;
        let datagram = &mut self.octets[start + offset..start + end];
        Some(fits.then(|| (datagram, from, to.filter(|_| !to_many))))
    }

    /// Returns the number of datagrams that were too long, and dropped.
    pub fn too_long(&self) -> usize {
        let is_too_long = |message: &MessageInfo, len| message.is_cut || len > self.longest;
        let lengths =
            self.messages.iter().flat_map(|message| message.lengths().map(move |len| (message, len)));
        lengths.filter(|(message, len)| is_too_long(message, *len)).count()
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

    /// Lengths of the queued datagrams, message by message.
    fn messages(queue: &SendQueue) -> Vec<(usize, Option<u16>)> {
        queue.messages().map(|(message, datagrams)| (datagrams, message.segment)).collect()
    }

    #[test]
    fn datagrams_of_one_length_to_one_address_are_one_message() {
        let (one, other) = pair();
        let (a, b) = (one.local_addr().ok(), other.local_addr().ok());
        let mut queue = SendQueue::grouping(&one);
        assert!(queue.groups());
        for (to, len) in [(a, 100), (a, 100), (a, 60), (a, 60), (b, 60), (b, 0), (b, 60), (b, 61), (b, 61)] {
            queue.push(to, &vec![1; len]);
        }
        let three = (3, Some(100));
        assert_eq!(messages(&queue), [three, (1, None), (1, None), (1, None), (1, None), (2, Some(61))]);
        queue.clear();
        // At most 64, and no more octets than a message has.
        for len in [10; 70].into_iter().chain([9_000; 9]) {
            queue.push(a, &vec![1; len]);
        }
        assert_eq!(messages(&queue), [(64, Some(10)), (6, Some(10)), (7, Some(9_000)), (2, Some(9_000))]);
    }

    #[test]
    fn messages_arrive_as_the_datagrams_that_they_consist_of() {
        let (one, other) = pair();
        let joins = options::join_datagrams(&other);
        let mut queue = SendQueue::grouping(&one);
        let lengths = [700, 700, 700, 650, 700, 0, 1, 1, 1, 1_201, 1_201, 1_200, 1_200];
        let sent: Vec<_> = lengths.into_iter().zip(0..).map(|(len, number)| vec![number; len]).collect();
        for datagram in &sent {
            queue.push(other.local_addr().ok(), datagram);
        }
        assert_eq!(queue.send(&one).unwrap(), sent.len());
        let mut received =
            if joins { ReceiveBatch::of_joined(3, 1_200) } else { ReceiveBatch::new(3, 1_200) };
        let (mut arrived, mut taken, mut too_long) = (Vec::new(), Vec::new(), 0);
        while arrived.len() + too_long < sent.len() {
            received.receive(&other).unwrap();
            arrived.extend(all(&received));
            too_long += received.too_long();
            while let Some(datagram) = received.take_next() {
                taken.extend(datagram.map(|(datagram, ..)| datagram.to_vec()));
            }
        }
        let fits: Vec<_> = sent.into_iter().filter(|datagram| datagram.len() <= 1_200).collect();
        assert_eq!((arrived, too_long), (fits.clone(), 2));
        assert_eq!(taken, fits);
    }

    #[test]
    fn of_a_message_that_is_refused_each_datagram_is_tried_alone() {
        let (one, other) = pair();
        let (to, broadcast) = (other.local_addr().ok(), "255.255.255.255:9".parse().ok());
        let mut queue = SendQueue::grouping(&one);
        for (to, octet) in [(to, 1), (to, 2), (broadcast, 3), (broadcast, 4), (to, 5), (to, 6)] {
            queue.push(to, &[octet; 20]);
        }
        assert_eq!(queue.send(&one).unwrap(), 2);
        for left in [4, 3] {
            assert_eq!(queue.send(&one).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            assert_eq!((queue.len(), queue.groups()), (left, true));
            queue.skip();
        }
        assert_eq!((messages(&queue), queue.send(&one).unwrap()), (vec![(2, Some(20))], 2));
        let mut octets = [0; 100];
        let arrived = [1, 2, 5, 6].map(|_| other.recv(&mut octets).map(|len| (len, octets[0])).unwrap());
        assert_eq!(arrived, [(20, 1), (20, 2), (20, 5), (20, 6)]);
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
