//! Buffers of a socket in the system, and datagrams that did not fit into them. sock_diag(7), SK_MEMINFO.

#![allow(unsafe_code, reason = "neither nix nor rustix has SO_MEMINFO")]

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;

use libc::socklen_t;

use crate::error::{ErrorContext as _, Result};

/// Number of values of SO_MEMINFO, and indices of those used here. linux/sock_diag.h.
const VALUES: usize = 9;
const RECEIVE_BUFFER: usize = 1;
const SEND_BUFFER: usize = 3;
const DROPS: usize = 8;

/// Buffers of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketMemory {
    /// Octets of the receive buffer (SO_RCVBUF); Linux uses a part of them for itself.
    pub receive_buffer: u32,
    /// Octets of the send buffer (SO_SNDBUF), likewise.
    pub send_buffer: u32,
    /// Datagrams that were dropped since the socket was opened: the receive buffer was full, or the checksum wrong.
    pub drops: u32,
}

/// Returns the buffers of a socket. Needs Linux 4.12.
///
/// # Errors
/// The socket is invalid, or the system is older.
pub fn memory(socket: &UdpSocket) -> Result<SocketMemory> {
    let mut values = [0_u32; VALUES];
    let mut length = size_of_val(&values) as socklen_t;
    let mut ask = || -> io::Result<()> {
        // SAFETY: the address and the length are those of `values`, into which any octets may be written.
        let done = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                values.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    ask().attempt(|| "read the buffer sizes of a socket".to_owned())?;
    Ok(SocketMemory {
        receive_buffer: values[RECEIVE_BUFFER],
        send_buffer: values[SEND_BUFFER],
        drops: values[DROPS],
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::udp::{set_receive_room, set_send_room};

    #[test]
    fn datagrams_that_find_no_room_are_counted() {
        let sockets = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let [from, to] = &sockets;
        let (receive, send) = (set_receive_room(to, 4_096).unwrap(), set_send_room(to, 8_192).unwrap());
        let before = memory(to).unwrap();
        assert_eq!((before.receive_buffer as usize, before.send_buffer as usize), (receive, send));
        assert_eq!(before.drops, 0);
        for _ in 0..100 {
            from.send_to(&[0; 1_000], to.local_addr().unwrap()).unwrap();
        }
        let drops = memory(to).unwrap().drops;
        assert!((50..100).contains(&drops), "{drops}");
    }
}
