//! Listening for streams. Streams themselves are those of the standard library.

use std::io;
use std::net::{SocketAddr, TcpListener};

use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::error::{Attempt as _, Result};

/// Connections that the system accepts before anybody has asked for them.
const BACKLOG: i32 = 128;

/// Listens at one address, or, if it is unspecified, at all addresses of its family: one of IPv6 leaves IPv4 alone
/// (IPV6_V6ONLY), so that both can have the same port. Connections of an earlier process that linger are no hindrance
/// (SO_REUSEADDR). It does not block.
///
/// # Errors
/// There is no such address here, or somebody else has it.
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    let listen = || -> io::Result<TcpListener> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::ErrorKind;
    use std::net::TcpStream;

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
        // The other end closes first, and lingers; whoever listens next does not mind.
        drop(four.accept().unwrap());
        drop((stream, four));
        listen(address).unwrap();
    }
}
