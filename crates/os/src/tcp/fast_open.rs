//! TCP Fast Open: octets with the SYN, and a FIN with the last octets. RFC 7413.
//!
//! `net.ipv4.tcp_fastopen` is a bit mask of the system: 1 permits it for opened streams, 2 for accepted ones, 0x204 for
//! both without a cookie. Linux puts no more into a SYN than a packet of the MTU less 80 octets.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{SendFlags, sockopt};

use super::segments::information;
use super::{set_option, stream_socket};
use crate::error::{ErrorContext as _, Result};

/// Largest number of streams with data in the SYN whose client has not answered the SYN-ACK yet.
const WAITING: libc::c_int = 64;

/// MSG_FASTOPEN, which rustix does not define.
const FAST_OPEN: SendFlags = SendFlags::from_bits_retain(libc::MSG_FASTOPEN as u32);

/// Result of opening a stream.
#[derive(Debug)]
pub struct Opening {
    /// The stream, which does not block. It becomes writable when it is open, or has failed.
    pub stream: TcpStream,
    /// Octets that were sent with the SYN.
    pub sent: usize,
}

/// Time of the acknowledgment of a SYN-ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgment {
    /// With the next octets that are sent.
    Held,
    /// Immediately, by a segment of its own: the default of Linux.
    AtOnce,
}

/// Accepts data in SYNs, where the system permits it.
///
/// # Errors
/// The socket is invalid.
pub fn accept_data(listener: &TcpListener) -> Result<()> {
    set_option(listener, libc::TCP_FASTOPEN, WAITING).attempt(|| "enable TCP Fast Open".to_owned())
}

/// Begins to open a stream, as [`connect`](super::connect) does, and sends the first of these octets with the SYN, if the
/// system permits it and has a cookie of the other side. If the acknowledgment is held, the SYN-ACK is acknowledged by
/// the first octets that are sent or by the end of the stream, if either comes within about 200 ms, and not by a segment
/// of its own.
///
/// # Errors
/// There is no route to that address.
pub fn connect(to: SocketAddr, octets: &[u8], acknowledgment: Acknowledgment) -> Result<Opening> {
    let connect = || -> io::Result<Option<Opening>> {
        let socket = stream_socket(to)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        if acknowledgment == Acknowledgment::Held {
            hold(&socket)?;
        }
        let sent = match rustix::net::sendto(&socket, octets, FAST_OPEN | SendFlags::NOSIGNAL, &to) {
            Ok(sent) => sent,
            // Only the SYN was sent, with a request for a cookie.
            Err(Errno::INPROGRESS) => 0,
            Err(Errno::OPNOTSUPP) => return Ok(None),
            Err(why) => return Err(why.into()),
        };
        Ok(Some(Opening { stream: socket.into(), sent }))
    };
    match connect().attempt(|| format!("connect to {to} (TCP)"))? {
        Some(opening) => Ok(opening),
        None => Ok(Opening { stream: super::connect(to)?, sent: 0 }),
    }
}

/// Delays the next acknowledgments until octets are sent, for at least about 40 ms. By default Linux acknowledges the
/// first octets immediately.
///
/// # Errors
/// The socket is invalid.
pub fn hold(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_tcp_quickack(socket, false)?)
}

/// Sends octets, and returns the number of those accepted. `more` means that others follow, or the end of the stream: a
/// segment that is not full waits for it.
///
/// # Errors
/// Those of send(2). A stream that the other side has closed is an error, not a signal.
pub fn send(stream: &TcpStream, octets: &[u8], more: bool) -> io::Result<usize> {
    let flags = if more { SendFlags::MORE } else { SendFlags::empty() };
    Ok(rustix::net::send(stream, octets, flags | SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?)
}

/// True if the handshake is complete. Octets can be sent earlier to a client that has sent data with its SYN; but a FIN,
/// and data that waits for it, is sent only when the stream is closed completely.
pub fn is_open(stream: &TcpStream) -> bool {
    /// TCP_SYN_RECV of linux/tcp_states.h.
    const SYN_RECEIVED: u8 = 3;
    information(stream).is_ok_and(|information| information[0] != SYN_RECEIVED)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::Shutdown;

    use super::*;

    /// The system decides if octets are sent with the SYN; they arrive in any case.
    #[test]
    fn octets_arrive_however_the_stream_is_opened() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        accept_data(&listener).unwrap();
        let Opening { stream, sent } =
            connect(listener.local_addr().unwrap(), b"request", Acknowledgment::Held).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        stream.set_nonblocking(false).unwrap();
        let rest = &b"request"[sent..];
        (&stream).write_all(rest).unwrap();
        let mut octets = [0; 7];
        accepted.read_exact(&mut octets).unwrap();
        assert_eq!(&octets, b"request");
        assert_eq!(send(&accepted, b"rep", true).unwrap(), 3);
        assert_eq!(send(&accepted, b"ly", true).unwrap(), 2);
        accepted.shutdown(Shutdown::Write).unwrap();
        let mut reply = String::new();
        (&stream).read_to_string(&mut reply).unwrap();
        assert_eq!(reply, "reply");
    }

    #[test]
    fn who_is_not_there_is_found_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let refused = match connect(address, b"request", Acknowledgment::AtOnce) {
            Ok(opening) => {
                opening.stream.set_nonblocking(false).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(20));
                opening.stream.take_error().unwrap().map(|why| why.kind())
            }
            Err(why) => Some(why.kind()),
        };
        assert_eq!(refused, Some(io::ErrorKind::ConnectionRefused));
    }
}
