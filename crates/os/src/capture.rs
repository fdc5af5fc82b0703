//! Capture of frames of an interface (packet(7)): a copy of each frame that is received or sent.

#![allow(unsafe_code, reason = "neither nix nor rustix makes a sockaddr_ll or has PACKET_STATISTICS")]

use std::io::{self, IoSliceMut};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use libc::{sockaddr_ll, socklen_t};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, ReceiveTimestampns};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockType, recvmsg, setsockopt, socket,
};
use nix::sys::time::TimeSpec;

use crate::error::{ErrorContext as _, Result};
use crate::interface::Interface;

/// Longest frame that is captured completely, in octets: above the largest that an interface of Linux gathers.
pub const MAX_FRAME_LEN: usize = 256 * 1024;

/// Octets that wait in the system until they are read. Further frames are dropped and counted.
const WAITING: usize = 16 * 1024 * 1024;

/// Length of a header of Linux cooked captures, in octets: packet type 2, ARPHRD type 2, address length 2, address 8,
/// protocol 2.
const SLL_LEN: usize = 16;

/// Link type of the frames of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkHeader {
    /// An Ethernet header.
    Ethernet,
    /// An IP header.
    Ip,
    /// A radiotap header: an interface of IEEE 802.11 in monitor mode.
    Radiotap,
    /// A MAC header of IEEE 802.15.4 with its check sequence: an interface in monitor mode.
    Ieee802154,
    /// A header of Linux cooked captures (LINKTYPE_LINUX_SLL), for any other interface.
    Cooked,
}

impl LinkHeader {
    /// Returns the link type of a type in linux/if_arp.h.
    const fn of(hatype: u16) -> Self {
        const ARPHRD_RAWIP: u16 = 519;
        const ARPHRD_IEEE802154_MONITOR: u16 = 805;

        match hatype {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Self::Ethernet,
            libc::ARPHRD_NONE | ARPHRD_RAWIP => Self::Ip,
            libc::ARPHRD_IEEE80211_RADIOTAP => Self::Radiotap,
            ARPHRD_IEEE802154_MONITOR => Self::Ieee802154,
            _ => Self::Cooked,
        }
    }
}

/// A frame that was received or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedFrame<'b> {
    /// Capture time since 1970-01-01 00:00:00 UTC, by the system clock.
    pub time: Duration,
    /// The frame from its [`LinkHeader`] on, at most [`MAX_FRAME_LEN`] octets.
    pub octets: &'b [u8],
    /// Length of the frame, in octets.
    pub original_len: usize,
}

/// Capture of all frames of an interface, in both directions.
#[derive(Debug)]
pub struct FrameCapture {
    socket: OwnedFd,
    header: LinkHeader,
    /// Buffer for a cooked header and a frame.
    buffer: Vec<u8>,
    ancillary: Vec<u8>,
    is_loopback: bool,
    dropped: u64,
}

impl FrameCapture {
    /// Starts a capture. The interface does not become promiscuous.
    ///
    /// # Errors
    /// Missing privilege (CAP_NET_RAW), which is [`is_permission`](crate::Error::is_permission), or the interface is
    /// down.
    pub fn open(interface: &Interface) -> Result<Self> {
        let what = || format!("capture on `{}`", interface.name());
        let capture = Self::bound(interface, SockType::Raw).attempt(what)?;
        match capture.header {
            LinkHeader::Cooked => Self::bound(interface, SockType::Datagram).attempt(what),
            LinkHeader::Ethernet | LinkHeader::Ip | LinkHeader::Radiotap | LinkHeader::Ieee802154 => {
                Ok(capture)
            }
        }
    }

    fn bound(interface: &Interface, kind: SockType) -> io::Result<Self> {
        // Without a protocol no frame arrives before the socket is bound to the interface.
        let socket =
            socket(AddressFamily::Packet, kind, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)?;
        // Above the limit for everybody, as root and CAP_NET_ADMIN may.
        if setsockopt(&socket, RcvBufForce, &WAITING).is_err() {
            setsockopt(&socket, RcvBuf, &WAITING)?;
        }
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        let hatype = bind(&socket, interface.index())?;
        Ok(Self {
            socket,
            header: LinkHeader::of(hatype),
            buffer: vec![0; SLL_LEN + MAX_FRAME_LEN],
            ancillary: nix::cmsg_space!(TimeSpec),
            is_loopback: hatype == libc::ARPHRD_LOOPBACK,
            dropped: 0,
        })
    }

    /// Returns the link type of every frame.
    pub fn header(&self) -> LinkHeader {
        self.header
    }

    /// Returns the next frame; `None` if none waits. A frame on the loopback interface is returned once.
    ///
    /// # Errors
    /// The interface is gone or down.
    pub fn next_frame(&mut self) -> Result<Option<CapturedFrame<'_>>> {
        loop {
            let Some((time, original_len, from)) = self.receive().attempt(|| "receive a frame".to_owned())?
            else {
                return Ok(None);
            };
            if self.is_loopback && from.pkttype() == libc::PACKET_OUTGOING {
                continue;
            }
            let start = match self.header {
                LinkHeader::Cooked => {
                    self.buffer[..SLL_LEN].copy_from_slice(&cooked(&from));
                    0
                }
                LinkHeader::Ethernet | LinkHeader::Ip | LinkHeader::Radiotap | LinkHeader::Ieee802154 => {
                    SLL_LEN
                }
            };
            let end = SLL_LEN + original_len.min(MAX_FRAME_LEN);
            let octets = &self.buffer[start..end];
            return Ok(Some(CapturedFrame { time, octets, original_len: original_len + SLL_LEN - start }));
        }
    }

    /// Receives a frame into the buffer, after the room for a cooked header; returns time, length and source.
    fn receive(&mut self) -> io::Result<Option<(Duration, usize, LinkAddr)>> {
        let mut room = [IoSliceMut::new(&mut self.buffer[SLL_LEN..])];
        let socket = self.socket.as_raw_fd();
        let received = loop {
            let ancillary = Some(self.ancillary.as_mut_slice());
            match recvmsg::<LinkAddr>(socket, &mut room, ancillary, MsgFlags::MSG_TRUNC) {
                Ok(received) => break received,
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let time = received.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
            _ => None,
        });
        let from = received.address.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some((time.unwrap_or_default(), received.bytes, from)))
    }

    /// Returns the total number of frames that were dropped for lack of room in the system (PACKET_STATISTICS). On the
    /// loopback interface each frame counts twice, as sent and as received.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    /// Those of getsockopt(2).
    pub fn dropped(&mut self) -> Result<u64> {
        let dropped = dropped(&self.socket).attempt(|| "read the number of dropped frames".to_owned())?;
        // Reading resets the counter of the system.
        self.dropped += u64::from(dropped);
        Ok(self.dropped)
    }
}

impl AsFd for FrameCapture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the header of a cooked capture for a frame from `from`.
fn cooked(from: &LinkAddr) -> [u8; SLL_LEN] {
    let mut header = [0; SLL_LEN];
    header[0..2].copy_from_slice(&u16::from(from.pkttype()).to_be_bytes());
    header[2..4].copy_from_slice(&from.hatype().to_be_bytes());
    header[4..6].copy_from_slice(&(from.halen() as u16).to_be_bytes());
    header[6..12].copy_from_slice(&from.addr().unwrap_or_default());
    // In network byte order, as in the system.
    header[14..16].copy_from_slice(&from.protocol().to_ne_bytes());
    header
}

/// Binds to all protocols of an interface, and returns its type in linux/if_arp.h.
fn bind(socket: &OwnedFd, index: u32) -> io::Result<u16> {
    // SAFETY: a sockaddr_ll consists of numbers and arrays of numbers, for which zeros are valid.
    let mut address: sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = i32::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut length = size_of::<sockaddr_ll>() as socklen_t;
    // SAFETY: the address and the length are those of `address`, which is read.
    let done = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the address and the length are those of `address`, into which any octets may be written.
    let done = unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(address.sll_hatype)
}

/// Returns the number of frames dropped since the previous call.
fn dropped(socket: &OwnedFd) -> io::Result<u32> {
    // tp_packets and tp_drops of tpacket_stats in linux/if_packet.h.
    let mut statistics = [0_u32; 2];
    let mut length = size_of_val(&statistics) as socklen_t;
    // SAFETY: the address and the length are those of `statistics`, into which any octets may be written.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            statistics.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if done == 0 { Ok(statistics[1]) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Namespace, privileges};
    use std::net::UdpSocket;

    #[test]
    fn what_goes_over_the_loopback_interface_is_captured_once() {
        if !privileges::is_root() {
            println!("skipped: capturing needs root");
            return;
        }
        let namespace = Namespace::create("thinair-capture").unwrap();
        namespace
            .within(|| {
                let loopback = Interface::named("lo").unwrap();
                loopback.up().unwrap();
                let mut capture = FrameCapture::open(&loopback).unwrap();
                assert_eq!(capture.header(), LinkHeader::Ethernet);
                assert_eq!(capture.next_frame().unwrap(), None);
                let [from, to] = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
                from.send_to(b"hello", to.local_addr().unwrap()).unwrap();
                to.recv(&mut [0; 5]).unwrap();
                let frame = capture.next_frame().unwrap().unwrap();
                assert_eq!((frame.octets.len(), frame.original_len), (14 + 20 + 8 + 5, 47));
                assert_eq!(&frame.octets[42..], b"hello");
                assert!(frame.time > Duration::from_secs(1_000_000_000));
                assert_eq!(capture.next_frame().unwrap(), None);
                assert_eq!(capture.dropped().unwrap(), 0);

                // Far more than the system stores.
                let large = vec![0; 60_000];
                for _ in 0..1_000 {
                    from.send_to(&large, to.local_addr().unwrap()).unwrap();
                }
                let dropped = capture.dropped().unwrap();
                assert!(dropped > 100 && dropped < 2_000, "{dropped}");
                assert_eq!(capture.dropped().unwrap(), dropped);
            })
            .unwrap();
    }
}
