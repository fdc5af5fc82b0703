//! Datagrams in batches: many with one system call.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, SndBuf, SndBufForce};
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, getsockopt, recvmmsg, sendmmsg, setsockopt};

/// The most datagrams of one call (UIO_MAXIOV).
pub const MOST: usize = 1_024;

/// Sends datagrams: to `to`, or, if it is `None`, to where the socket is connected. How many went: the first ones of
/// `datagrams`, and no more than [`MOST`].
///
/// # Errors
/// Not even the first one could go. On a socket that does not block, [`WouldBlock`](io::ErrorKind::WouldBlock) says
/// that there is no room.
pub fn send(socket: &UdpSocket, to: Option<SocketAddr>, datagrams: &[&[u8]]) -> io::Result<usize> {
    let datagrams = &datagrams[..datagrams.len().min(MOST)];
    if datagrams.is_empty() {
        return Ok(0);
    }
    let slices: Vec<_> = datagrams.iter().map(|datagram| [IoSlice::new(datagram)]).collect();
    let addresses = vec![to.map(SockaddrStorage::from); datagrams.len()];
    let mut headers = MultiHeaders::preallocate(datagrams.len(), None);
    let sent = retry(|| {
        let flags = MsgFlags::empty();
        sendmmsg(socket.as_raw_fd(), &mut headers, &slices, &addresses, [], flags).map(Iterator::count)
    })?;
    Ok(sent)
}

/// Datagrams that were received together.
#[derive(Debug)]
pub struct Received {
    octets: Vec<u8>,
    /// Room for each.
    room: usize,
    /// How long each is, and where it came from.
    datagrams: Vec<(usize, Option<SocketAddr>)>,
}

impl Received {
    /// Room for `count` datagrams, at most [`MOST`], of `room` octets each. What is longer is cut off.
    pub fn new(count: usize, room: usize) -> Self {
        let (count, room) = (count.clamp(1, MOST), room.max(1));
        Self { octets: vec![0; count * room], room, datagrams: Vec::with_capacity(count) }
    }

    /// Takes the datagrams that are there, in place of those of the last time. How many there are: at least one. A
    /// socket that blocks waits for the first one only.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none, and the socket does not block. What an earlier
    /// datagram met on its way (as ECONNREFUSED).
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.datagrams.clear();
        let room = self.room;
        let datagrams = &mut self.datagrams;
        retry(|| {
            let mut slices: Vec<_> =
                self.octets.chunks_exact_mut(room).map(|chunk| [IoSliceMut::new(chunk)]).collect();
            let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(slices.len(), None);
            let flags = MsgFlags::MSG_WAITFORONE;
            let messages = recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), flags, None)?;
            datagrams.extend(messages.map(|message| (message.bytes, message.address.and_then(plain))));
            Ok(datagrams.len())
        })
    }

    /// The datagrams, and where each came from.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<SocketAddr>)> {
        let chunks = self.octets.chunks_exact(self.room);
        chunks.zip(&self.datagrams).map(|(chunk, &(len, from))| (&chunk[..len.min(chunk.len())], from))
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

fn plain(address: SockaddrStorage) -> Option<SocketAddr> {
    let four = address.as_sockaddr_in().map(|four| SocketAddr::V4((*four).into()));
    four.or_else(|| address.as_sockaddr_in6().map(|six| SocketAddr::V6((*six).into())))
}

/// Until no signal comes in between.
fn retry<T>(mut call: impl FnMut() -> nix::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            result => return Ok(result?),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        sockets.into()
    }

    #[test]
    fn a_batch_arrives_as_it_was_sent() {
        let (one, other) = pair();
        let sent: Vec<Vec<u8>> = (0..20).map(|i| vec![i; usize::from(i) * 7]).collect();
        let slices: Vec<_> = sent.iter().map(Vec::as_slice).collect();
        for connected in [false, true] {
            let to = (!connected).then(|| other.local_addr().unwrap());
            if connected {
                one.connect(other.local_addr().unwrap()).unwrap();
            }
            assert_eq!(send(&one, to, &slices).unwrap(), 20);
            let mut received = Received::new(16, 100);
            let mut all = Vec::new();
            while all.len() < sent.len() {
                received.receive(&other).unwrap();
                for (datagram, from) in received.iter() {
                    assert_eq!(from, one.local_addr().ok());
                    all.push(datagram.to_vec());
                }
            }
            for (sent, received) in sent.iter().zip(&all) {
                assert_eq!(&sent[..sent.len().min(100)], received);
            }
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
    }

    #[test]
    fn room_is_granted() {
        let (one, _) = pair();
        assert!(set_receive_room(&one, 100_000).unwrap() >= 100_000);
        assert!(set_send_room(&one, 100_000).unwrap() >= 100_000);
    }
}
