//! Control over the segments of a stream, and their state.
//!
//! Linux chooses segments freely: up to the MSS, and separates writes only if nothing waits. Two options give the caller
//! control. Data sent with `MSG_EOR` is never merged with later data; and with `TCP_NOTSENT_LOWAT` there is room to write
//! only when all earlier data was sent, so that the next size is chosen when the segment is sent, not seconds before. A
//! lost segment is retransmitted unchanged. No privilege is needed.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use rustix::net::{SendFlags, sockopt};

use super::set_option;
use crate::error::{ErrorContext as _, Result};

/// State of a stream as a sender (`TCP_INFO`), since its opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Octets that were acknowledged; one more on streams that this side has opened.
    pub acknowledged: u64,
    /// Segments that have arrived, acknowledged cumulatively or by SACK. Linux 4.18; 0 before.
    pub delivered: u32,
    /// Retransmitted segments.
    pub sent_again: u32,
    /// Segments under way.
    pub unacknowledged: u32,
    /// Octets that were not sent yet.
    pub unsent: u32,
    /// Largest segment, in octets.
    pub mss: u32,
    /// Smoothed round-trip time; zero before the first measurement.
    pub round_trip: Duration,
    /// Consecutive timeouts without an acknowledgment since: the latest losses were detected by a timer.
    pub timeouts: u8,
}

/// Prepares a stream for [`send`].
///
/// # Errors
/// The socket is invalid.
pub fn prepare(stream: &TcpStream) -> Result<()> {
    let set = || -> io::Result<()> {
        sockopt::set_tcp_nodelay(stream, true)?;
        set_option(stream, libc::TCP_NOTSENT_LOWAT, 1)
    };
    set().attempt(|| "set the segment options of a stream".to_owned())
}

/// Sends octets as one segment, if they do not exceed [`TcpInfo::mss`]; returns the number of those accepted. Without room
/// ([`WouldBlock`](io::ErrorKind::WouldBlock)), earlier octets were not sent yet.
///
/// # Errors
/// Those of send(2). A stream that the other side has closed is an error, not a signal.
pub fn send(stream: &TcpStream, octets: &[u8]) -> io::Result<usize> {
    let flags = SendFlags::EOR | SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    Ok(rustix::net::send(stream, octets, flags)?)
}

/// Returns the state of the stream.
///
/// # Errors
/// The socket is invalid.
pub fn info(stream: &TcpStream) -> Result<TcpInfo> {
    // `struct tcp_info` of linux/tcp.h; fields that an older system lacks stay 0.
    let info = information(stream).attempt(|| "read TCP_INFO of a stream".to_owned())?;
    let u32_at = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    let mut acknowledged = [0; 8];
    acknowledged.copy_from_slice(&info[120..128]);
    Ok(TcpInfo {
        acknowledged: u64::from_ne_bytes(acknowledged),
        delivered: u32_at(192),
        sent_again: u32_at(100),
        unacknowledged: u32_at(24),
        unsent: u32_at(144),
        mss: u32_at(16),
        round_trip: Duration::from_micros(u32_at(68).into()),
        timeouts: info[2],
    })
}

/// Octets of `struct tcp_info` that are read.
const INFORMATION: usize = 200;

#[allow(unsafe_code)]
pub(super) fn information(stream: &TcpStream) -> io::Result<[u8; INFORMATION]> {
    let mut octets = [0; INFORMATION];
    let mut length = INFORMATION as libc::socklen_t;
    // SAFETY: the system writes at most `length` octets, which `octets` has, before the call returns.
    let code = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            octets.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if code == 0 { Ok(octets) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn each_write_is_a_segment() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        prepare(&stream).unwrap();
        let before = info(&stream).unwrap();
        for _ in 0..20 {
            // All of them fit into the first window.
            while send(&stream, &[7; 100]).is_err_and(|why| why.kind() == io::ErrorKind::WouldBlock) {
                std::thread::yield_now();
            }
        }
        let mut octets = [0; 2_000];
        other.read_exact(&mut octets).unwrap();
        let after = loop {
            let after = info(&stream).unwrap();
            if after.unacknowledged == 0 {
                break after;
            }
            // Its answer carries the acknowledgment.
            other.write_all(b"x").unwrap();
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(after.acknowledged - before.acknowledged, 2_000);
        assert_eq!(after.delivered - before.delivered, 20);
        assert_eq!((after.sent_again, after.unsent, after.timeouts), (0, 0, 0));
        assert!(after.mss > 1_000 && after.round_trip > Duration::ZERO);
    }

    /// Writes that wait (`TCP_CORK`) could be merged into one segment.
    #[test]
    fn what_waits_is_not_put_together() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        let before = info(&stream).unwrap();
        set_option(&stream, libc::TCP_CORK, 1).unwrap();
        for _ in 0..8 {
            assert_eq!(send(&stream, &[7; 100]).unwrap(), 100);
        }
        set_option(&stream, libc::TCP_CORK, 0).unwrap();
        other.read_exact(&mut [0; 800]).unwrap();
        while info(&stream).unwrap().unacknowledged > 0 {
            other.write_all(b"x").unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(info(&stream).unwrap().delivered - before.delivered, 8);
    }

    #[test]
    fn who_sends_to_nobody_gets_an_error_and_no_signal() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        prepare(&stream).unwrap();
        drop(listener.accept().unwrap());
        let why = (0..1_000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            send(&stream, &[0; 10]).err()
        });
        let kind = why.unwrap().kind();
        assert!(matches!(kind, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe), "{kind:?}");
    }
}
