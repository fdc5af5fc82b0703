//! Listening for streams, and opening them without blocking. Streams are those of the standard library; control of
//! segments: [`segments`]; octets that are sent with the SYN: [`fast_open`].

pub mod fast_open;
pub mod segments;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::error::{ErrorContext as _, Result};

/// Largest number of connections that the system accepts in advance.
const BACKLOG: i32 = 128;

/// Listens at one address, or, if it is unspecified, at all addresses of its family: a socket of IPv6 excludes IPv4
/// (IPV6_V6ONLY), so that both can have the same port. Lingering connections of an earlier process do not matter
/// (SO_REUSEADDR). The listener does not block.
///
/// # Errors
/// The address is not one of this machine, or is in use.
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    let listen = || -> io::Result<TcpListener> {
        let socket = stream_socket(address)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(socket.into())
    };
    listen().attempt(|| format!("listen to {address} (TCP)"))
}

/// Begins to open a non-blocking stream, without waiting until it is open: it becomes writable when it is open, or has
/// failed, which [`TcpStream::take_error`] returns.
///
/// # Errors
/// There is no route to that address.
pub fn connect(to: SocketAddr) -> Result<TcpStream> {
    let connect = || -> io::Result<TcpStream> {
        let socket = stream_socket(to)?;
        match rustix::net::connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
            Err(why) => Err(why.into()),
        }
    };
    connect().attempt(|| format!("connect to {to} (TCP)"))
}

/// Enables the detection of a peer that is gone silently (SO_KEEPALIVE): after two hours of silence, by default.
///
/// # Errors
/// The socket is invalid.
pub fn keep_alive(stream: &TcpStream) -> Result<()> {
    sockopt::set_socket_keepalive(stream, true).attempt(|| "enable keep-alives".to_owned())
}

/// Aborts a stream with a reset, so that the other side detects missing data; octets that wait are dropped (SO_LINGER).
pub fn reset(stream: TcpStream) {
    // Without the option the stream is closed all the same.
    let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
}

/// Creates a non-blocking socket of the family of this address.
fn stream_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(family, SocketType::STREAM, flags, None)?)
}

/// Sets an integer option of TCP that no library wraps.
#[allow(unsafe_code)]
fn set_option(socket: &impl AsRawFd, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the system reads one int, which lives until the call returns.
    let code = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn one_port_is_for_one_listener_of_a_family() {
        let four = listen("0.0.0.0:0".parse().unwrap()).unwrap();
        assert_eq!(four.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        let address = four.local_addr().unwrap();
        assert_eq!(listen(address).unwrap_err().kind(), ErrorKind::AddrInUse);
        if let Err(why) = listen(SocketAddr::new("::".parse().unwrap(), address.port())) {
            assert_ne!(why.kind(), ErrorKind::AddrInUse);
        }
        let stream = TcpStream::connect(("127.0.0.1", address.port())).unwrap();
        // The other end closes first, and lingers; a later listener is not affected.
        drop(four.accept().unwrap());
        drop((stream, four));
        listen(address).unwrap();
    }

    #[test]
    fn a_stream_is_open_when_there_is_room_to_write() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut events = crate::EventLoop::new(std::time::Duration::ZERO).unwrap();
        let mut ready = Vec::new();
        let stream = connect(address).unwrap();
        keep_alive(&stream).unwrap();
        events.add_for(&stream, 1, crate::Interest::Writing).unwrap();
        events.wait(None, &mut ready).unwrap();
        assert_eq!((ready.as_slice(), stream.take_error().unwrap().is_none()), ([1].as_slice(), true));
        assert_eq!(stream.peer_addr().unwrap(), address);
        // There is no listener any more.
        drop((listener, stream));
        let refused = connect(address).unwrap();
        events.add_for(&refused, 2, crate::Interest::Writing).unwrap();
        events.wait(None, &mut ready).unwrap();
        assert_eq!(refused.take_error().unwrap().unwrap().kind(), ErrorKind::ConnectionRefused);
    }
}
