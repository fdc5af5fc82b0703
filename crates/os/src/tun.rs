//! TUN and TAP devices: a network interface whose packets this process reads and writes.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::error::{Error, ErrorContext as _, Result};
use crate::interface::Interface;
use crate::namespace::Namespace;

/// Device file of the driver.
const DRIVER: &str = "/dev/net/tun";

/// Kind of packets of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunKind {
    /// IP packets.
    Tun,
    /// Ethernet frames.
    Tap,
}

/// Length of the header that a device [with offloads](Tun::open_offloaded) has before each packet, in octets.
pub const HEADER: usize = 10;

/// Work that the system leaves to the reader of a device, and accepts from its writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offloads {
    /// None. Packets are complete.
    #[default]
    None,
    /// Checksums, and segments of TCP (TSO).
    Tcp,
    /// Checksums, segments of TCP, and datagrams of UDP (USO).
    TcpAndUdp,
}

/// A TUN or TAP device. It exists until it is dropped, or, if it is [persistent](Self::set_persistent), until it is
/// deleted.
///
/// **Settings of a persistent device stay from one program to the next.** Attaching resets those that change packets:
/// offloads, with which checksums are left to the program and segments exceed the MTU, and filters of a TAP device.
///
/// Each [`read`](Self::read) and [`write`](Self::write) is one packet, without a header of the driver, unless it was opened
/// [with offloads](Self::open_offloaded): then it is read and written [with its header](Self::read_offloaded). Neither
/// blocks: the kind [`WouldBlock`](io::ErrorKind::WouldBlock) means that there is no packet, or no room.
///
/// **The interface may be deleted by others.** Then both return EBADFD ([`is_gone`](Self::is_gone)), and for an event loop
/// the device is always ready. The device can be [attached](Self::attach_again) when there is an interface of that name
/// again, without opening it anew, which a process may not be able to in another network namespace.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    kind: TunKind,
    /// With any of them, packets have a header.
    offloads: Offloads,
}

impl Tun {
    /// Creates a device in the network namespace of this thread: it is down, and has no address. Or attaches to a
    /// persistent one of that name, of which only offloads and filters are changed.
    ///
    /// # Errors
    /// There is no driver, the name is longer than 15 octets, or in use by an interface of another kind, or another
    /// process is attached to it ([`ResourceBusy`](io::ErrorKind::ResourceBusy)). Missing privilege: CAP_NET_ADMIN to
    /// create one; its owner may attach to one.
    pub fn open(name: &str, kind: TunKind) -> Result<Self> {
        Self::open_as(name, kind, false)
    }

    /// [`open`](Self::open) with a header of the driver before each packet (IFF_VNET_HDR), and with the
    /// [offloads](Self::offloads) that the system has.
    ///
    /// # Errors
    /// Those of [`open`](Self::open). The system has no such header, or not even the offloads of TCP.
    pub fn open_offloaded(name: &str, kind: TunKind) -> Result<Self> {
        Self::open_as(name, kind, true)
    }

    fn open_as(name: &str, kind: TunKind, has_header: bool) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(DRIVER)
            .attempt(|| format!("open {DRIVER}, the driver of TUN devices"))?;
        let (name, offloads) = ioctl::set_interface(&file, name, kind, has_header)
            .map_err(|why| Error::new(format!("create the {} device `{name}`", kind.name()), why))?;
        Ok(Self { file, name, kind, offloads })
    }

    /// [`open`](Self::open) in another network namespace.
    ///
    /// # Errors
    /// Those of [`open`](Self::open) and of [`Namespace::within`].
    pub fn open_in(namespace: &Namespace, name: &str, kind: TunKind) -> Result<Self> {
        namespace.within(|| Self::open(name, kind))?
    }

    /// Attaches to a persistent device, without creating one.
    ///
    /// # Errors
    /// There is no interface of that name ([`NotFound`](io::ErrorKind::NotFound)); those of [`open`](Self::open).
    pub fn attach(name: &str, kind: TunKind) -> Result<Self> {
        let is_there = Interface::exists(name);
        if !is_there {
            let what = format!("find the {} device `{name}`", kind.name());
            return Err(Error::new(what, io::ErrorKind::NotFound));
        }
        Self::open(name, kind)
    }

    /// Attaches again to an interface of its name, or creates it again, in the network namespace where it was, after it
    /// was deleted.
    ///
    /// # Errors
    /// It is attached ([`AlreadyExists`](io::ErrorKind::AlreadyExists)); those of [`open`](Self::open).
    pub fn attach_again(&self) -> Result<()> {
        ioctl::set_interface(&self.file, &self.name, self.kind, self.offloads != Offloads::None)
            .map(drop)
            .map_err(|why| Error::new(format!("attach to `{}` again", self.name), why))
    }

    /// Makes the interface persistent, so that it stays after the drop, or not.
    ///
    /// # Errors
    /// The interface was deleted.
    pub fn set_persistent(&self, stays: bool) -> Result<()> {
        ioctl::set_persistent(&self.file, stays)
            .map_err(|why| Error::new(format!("set the persistence of `{}`", self.name), why))
    }

    /// Sets the user, by number, who may attach to it without privileges. **If it was never set, all users may.**
    ///
    /// # Errors
    /// The interface was deleted.
    pub fn set_owner(&self, user: u32) -> Result<()> {
        ioctl::set_owner(&self.file, user)
            .map_err(|why| Error::new(format!("set the owner of `{}` to user {user}", self.name), why))
    }

    /// True if an error of [`read`](Self::read) or [`write`](Self::write) means that the interface was deleted.
    pub fn is_gone(why: &io::Error) -> bool {
        why.raw_os_error() == Some(libc::EBADFD)
    }

    /// True if an error of [`write`](Self::write) means that the interface is down.
    pub fn is_down(why: &io::Error) -> bool {
        why.raw_os_error() == Some(libc::EIO)
    }

    /// Returns the name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Offloads of the device.
    pub fn offloads(&self) -> Offloads {
        self.offloads
    }

    /// Reads the next packet that the system sends to the start of `out`, and returns its length. A longer packet is
    /// truncated. The device must be without offloads.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none, and while the interface is down. EBADFD if it was
    /// deleted.
    pub fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        debug_assert_eq!(self.offloads, Offloads::None);
        (&self.file).read(out)
    }

    /// [`read`](Self::read) of a device with offloads: the header of the driver goes to `header` (`struct virtio_net_hdr`,
    /// little-endian), and a packet of up to 65,535 octets may stand for many of the size of the MTU.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_offloaded(&self, header: &mut [u8; HEADER], out: &mut [u8]) -> io::Result<usize> {
        debug_assert_ne!(self.offloads, Offloads::None);
        let len = (&self.file).read_vectored(&mut [IoSliceMut::new(header), IoSliceMut::new(out)])?;
        Ok(len.saturating_sub(HEADER))
    }

    /// Passes a packet to the system. The device must be without offloads.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is no room. EIO while the interface is down. EBADFD if it was
    /// deleted. EINVAL if it is not an IP packet.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        debug_assert_eq!(self.offloads, Offloads::None);
        (&self.file).write(packet).map(drop)
    }

    /// [`write`](Self::write) to a device with offloads.
    ///
    /// # Errors
    /// As [`write`](Self::write); EINVAL also if the header contradicts the packet.
    pub fn write_offloaded(&self, header: &[u8; HEADER], packet: &[u8]) -> io::Result<()> {
        debug_assert_ne!(self.offloads, Offloads::None);
        (&self.file).write_vectored(&[IoSlice::new(header), IoSlice::new(packet)]).map(drop)
    }
}

impl TunKind {
    fn name(self) -> &'static str {
        match self {
            Self::Tun => "TUN",
            Self::Tap => "TAP",
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The calls that no library wraps.
#[allow(unsafe_code, reason = "TUNSETIFF takes a structure by its address, others a number")]
mod ioctl {
    use std::ffi::{c_char, c_int};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd as _;

    use super::{HEADER, Offloads, TunKind};

    /// Bits of TUNSETOFFLOAD: checksums, and segments of TCP over IPv4, over IPv6, and with ECN.
    const TCP: c_int = 0x01 | 0x02 | 0x04 | 0x08;
    /// Datagrams of UDP over IPv4 and over IPv6, too.
    const TCP_AND_UDP: c_int = TCP | 0x20 | 0x40;

    // `linux/if_tun.h` declares it as _IOW('T', 202, int), but it reads and writes a `struct ifreq`.
    nix::ioctl_readwrite_bad!(
        tun_set_iff,
        nix::request_code_write!(b'T', 202, size_of::<c_int>()),
        libc::ifreq
    );

    // _IOW('T', 203, int) and _IOW('T', 204, int), but the argument is the number itself.
    nix::ioctl_write_int_bad!(tun_set_persist, nix::request_code_write!(b'T', 203, size_of::<c_int>()));
    nix::ioctl_write_int_bad!(tun_set_owner, nix::request_code_write!(b'T', 204, size_of::<c_int>()));
    nix::ioctl_write_int_bad!(tun_set_offload, nix::request_code_write!(b'T', 208, size_of::<c_int>()));

    // _IOW('T', 216, int) and _IOW('T', 220, int).
    nix::ioctl_write_ptr_bad!(
        tun_set_header_size,
        nix::request_code_write!(b'T', 216, size_of::<c_int>()),
        c_int
    );
    nix::ioctl_write_ptr_bad!(
        tun_set_header_little_endian,
        nix::request_code_write!(b'T', 220, size_of::<c_int>()),
        c_int
    );

    // _IOW('T', 209, unsigned int) and _IOW('T', 214, struct sock_fprog); the second one ignores its argument.
    nix::ioctl_write_ptr_bad!(
        tun_set_filter,
        nix::request_code_write!(b'T', 209, size_of::<c_int>()),
        TunFilter
    );
    nix::ioctl_write_int_bad!(
        tun_detach_filter,
        nix::request_code_write!(b'T', 214, size_of::<libc::sock_fprog>())
    );

    /// `struct tun_filter` without addresses.
    #[repr(C)]
    pub(super) struct TunFilter {
        flags: u16,
        count: u16,
    }

    pub(super) fn set_persistent(file: &File, stays: bool) -> io::Result<()> {
        // SAFETY: the file is open for the call, which takes a number, and no address.
        unsafe { tun_set_persist(file.as_raw_fd(), stays.into()) }?;
        Ok(())
    }

    pub(super) fn set_owner(file: &File, user: u32) -> io::Result<()> {
        // SAFETY: the file is open for the call, which takes a number, and no address.
        unsafe { tun_set_owner(file.as_raw_fd(), user.cast_signed()) }?;
        Ok(())
    }

    /// Turns on as many offloads as the system has.
    fn set_offloads(file: &File) -> io::Result<Offloads> {
        // SAFETY: the file is open for the calls, which read a number by its address.
        unsafe {
            tun_set_header_size(file.as_raw_fd(), &(HEADER as c_int))?;
            tun_set_header_little_endian(file.as_raw_fd(), &1)?;
        }
        // SAFETY: the file is open for the calls, which take a number, and no address.
        unsafe {
            if tun_set_offload(file.as_raw_fd(), TCP_AND_UDP).is_ok() {
                return Ok(Offloads::TcpAndUdp);
            }
            tun_set_offload(file.as_raw_fd(), TCP)?;
        }
        Ok(Offloads::Tcp)
    }

    /// Ties an open file of the driver to an interface; returns the name of the interface, and its offloads.
    pub(super) fn set_interface(
        file: &File,
        name: &str,
        kind: TunKind,
        has_header: bool,
    ) -> io::Result<(String, Offloads)> {
        if name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // SAFETY: an `ifreq` consists of integers and arrays of them, for which zeros are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as c_char;
        }
        let kind = match kind {
            TunKind::Tun => libc::IFF_TUN,
            TunKind::Tap => libc::IFF_TAP,
        };
        // The flags are below 0x8000.
        let header = if has_header { libc::IFF_VNET_HDR } else { 0 };
        request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI | header) as i16;
        // SAFETY: the file is open for the call, and `request` is a complete `ifreq`, which the driver reads and writes.
        unsafe { tun_set_iff(file.as_raw_fd(), &mut request) }?;
        let offloads = if has_header {
            set_offloads(file)?
        } else {
            // SAFETY: the file is open for the call, which takes a number, and no address.
            unsafe { tun_set_offload(file.as_raw_fd(), 0) }?;
            Offloads::None
        };
        if kind == libc::IFF_TAP {
            // SAFETY: `TunFilter` is a `tun_filter` of `count` addresses, which the call only reads.
            unsafe { tun_set_filter(file.as_raw_fd(), &TunFilter { flags: 0, count: 0 }) }?;
            // SAFETY: the file is open for the call, which ignores its argument.
            unsafe { tun_detach_filter(file.as_raw_fd(), 0) }?;
        }
        let name = request.ifr_name.iter().take_while(|&&octet| octet != 0);
        Ok((name.map(|&octet| char::from(octet as u8)).collect(), offloads))
    }
}
