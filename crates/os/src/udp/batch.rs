//! sendmmsg(2) and recvmmsg(2) with headers on the stack.
//!
//! nix has these calls, with headers that are allocated for each, or kept. Kept headers cannot move to another thread, as
//! they contain addresses of memory; and a header that has received from a socket of IPv4 has no room for an address of
//! IPv6 the next time.

#![allow(
    unsafe_code,
    reason = "headers hold addresses of what is sent, and of where to put what is received"
)]

use std::io;
use std::mem::zeroed;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::ptr::{from_mut, from_ref};

use libc::{iovec, mmsghdr, sockaddr_in6, socklen_t};
use nix::sys::socket::{SockaddrIn, SockaddrIn6, SockaddrLike as _};

use super::control::Control;
use super::{MOST, MessageInfo};

/// Length of the longest address, in octets.
const LONGEST_NAME: socklen_t = size_of::<sockaddr_in6>() as socklen_t;

/// An address in the form of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Four(SockaddrIn),
    Six(SockaddrIn6),
}

impl From<SocketAddr> for Name {
    fn from(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(four) => Self::Four(four.into()),
            SocketAddr::V6(six) => Self::Six(six.into()),
        }
    }
}

impl Name {
    fn raw(&self) -> (*const libc::sockaddr, socklen_t) {
        match self {
            Self::Four(four) => (four.as_ptr(), four.len()),
            Self::Six(six) => (six.as_ptr(), six.len()),
        }
    }
}

/// Returns zeroed headers and slices for one call.
fn blank() -> ([mmsghdr; MOST], [iovec; MOST]) {
    // SAFETY: both consist of integers and raw pointers, for which zeros are valid.
    unsafe { (zeroed(), zeroed()) }
}

/// Datagrams to one address, sent as one message.
pub(super) struct Message<'d> {
    pub(super) octets: &'d [u8],
    pub(super) to: Option<&'d Name>,
    /// Own address.
    pub(super) from: Option<IpAddr>,
    /// Length of each datagram but the last (UDP_SEGMENT). `None`: there is one.
    pub(super) segment: Option<u16>,
}

/// Sends the first messages, at most [`MOST`]; returns the number of those sent.
pub(super) fn send<'d>(socket: &UdpSocket, messages: impl Iterator<Item = Message<'d>>) -> io::Result<usize> {
    let (mut headers, mut slices) = blank();
    let mut controls = [Control::default(); MOST];
    let mut count: libc::c_uint = 0;
    let places = headers.iter_mut().zip(slices.iter_mut().zip(&mut controls));
    for (Message { octets, to, from, segment }, (header, (slice, control))) in messages.zip(places) {
        slice.iov_base = octets.as_ptr().cast_mut().cast();
        slice.iov_len = octets.len();
        header.msg_hdr.msg_iov = from_mut(slice);
        header.msg_hdr.msg_iovlen = 1;
        if let Some((name, len)) = to.map(Name::raw) {
            header.msg_hdr.msg_name = name.cast_mut().cast();
            header.msg_hdr.msg_namelen = len;
        }
        if let Some(from) = from {
            control.set_source(from, &mut header.msg_hdr);
        }
        if let Some(segment) = segment {
            control.set_segment(segment, &mut header.msg_hdr);
        }
        count += 1;
    }
    if count == 0 {
        return Ok(0);
    }
    retry(|| {
        // The system call itself: `sendmmsg` of musl sends one datagram after the other, because it cannot rely on zeros in
        // the padding of a header. Those of `blank` are zeros, and so are those of `Control`.
        //
        // SAFETY: `count` headers are filled in. Slices and controls are on the stack, octets and names are borrowed for
        // longer than the call, and the call writes to none of them, but to the headers alone.
        unsafe { libc::syscall(libc::SYS_sendmmsg, socket.as_raw_fd(), headers.as_mut_ptr(), count, 0) }
    })
}

/// Receives a message into each `room` octets, at most [`MOST`], and passes on their properties. Waits for the first one
/// if the socket blocks.
pub(super) fn receive(
    socket: &UdpSocket,
    octets: &mut [u8],
    room: usize,
    arrivals: &mut Vec<MessageInfo>,
) -> io::Result<()> {
    let (mut headers, mut slices) = blank();
    // SAFETY: a `sockaddr_in6` consists of integers, for which zeros are valid.
    let mut names: [sockaddr_in6; MOST] = unsafe { zeroed() };
    let mut controls = [Control::default(); MOST];
    let mut count = 0;
    let room_for_names = names.iter_mut().zip(&mut controls);
    let places = octets.chunks_exact_mut(room).zip(slices.iter_mut().zip(room_for_names));
    for (header, (chunk, (slice, (name, control)))) in headers.iter_mut().zip(places) {
        slice.iov_base = chunk.as_mut_ptr().cast();
        slice.iov_len = chunk.len();
        header.msg_hdr.msg_iov = from_mut(slice);
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_name = from_mut(name).cast();
        header.msg_hdr.msg_namelen = LONGEST_NAME;
        control.give(&mut header.msg_hdr);
        count += 1;
    }
    let received = retry(|| {
        let (flags, timeout) = (libc::MSG_WAITFORONE, std::ptr::null_mut());
        // SAFETY: `count` headers are filled in. Each has a chunk of `octets`, a slice, a name and a control of its own,
        // with their true lengths; this function borrows `octets` exclusively. No timeout is given.
        unsafe { libc::recvmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, flags as _, timeout).into() }
    })?;
    let filled = headers.iter().zip(names.iter().zip(&controls));
    arrivals.extend(filled.take(received).map(|(header, (name, control))| {
        let head = &header.msg_hdr;
        let ancillary = control.read(head);
        // The length of the received part, not of the message: MSG_TRUNC is not set.
        let len = (header.msg_len as usize).min(room);
        MessageInfo {
            len,
            segment: ancillary.segment.unwrap_or(usize::MAX),
            is_cut: head.msg_flags & libc::MSG_TRUNC != 0,
            from: address(name, head.msg_namelen),
            to: ancillary.to.map(|(own, _)| own),
            to_many: ancillary.to.is_some_and(|(_, to_many)| to_many),
        }
    }));
    Ok(())
}

/// Decodes the address that the system has written, of `len` octets.
pub(super) fn address(name: &sockaddr_in6, len: socklen_t) -> Option<SocketAddr> {
    let raw = from_ref(name).cast();
    // SAFETY: `raw` is the address of a whole `sockaddr_in6`, which is longer than a `sockaddr_in`, and aligned for both.
    // Each function checks the family, and reads the address only if the length is that of the family.
    let (four, six) =
        unsafe { (SockaddrIn::from_raw(raw, Some(len)), SockaddrIn6::from_raw(raw, Some(len))) };
    let four = four.map(|four| SocketAddr::V4(four.into()));
    let address = four.or_else(|| six.map(|six| SocketAddr::V6(six.into())))?;
    // ::ffff:0:0/96 on a socket of both families.
    match address.ip().to_canonical() {
        ip if ip == address.ip() => Some(address),
        ip => Some((ip, address.port()).into()),
    }
}

/// Repeats a call until no signal interrupts it. Its result, if it is not negative, is a number of messages.
fn retry(mut call: impl FnMut() -> libc::c_long) -> io::Result<usize> {
    loop {
        match usize::try_from(call()) {
            Ok(count) => return Ok(count),
            Err(_) => {
                let why = io::Error::last_os_error();
                if why.kind() != io::ErrorKind::Interrupted {
                    return Err(why);
                }
            }
        }
    }
}
