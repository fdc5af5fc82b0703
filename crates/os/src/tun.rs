//! TUN and TAP devices: a network interface whose packets this process reads and writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::error::{Attempt as _, Error, Result};
use crate::namespace::Namespace;

/// Where the driver is asked for devices.
const DRIVER: &str = "/dev/net/tun";

/// What a device carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunKind {
    /// IP packets.
    Tun,
    /// Ethernet frames.
    Tap,
}

/// A TUN or TAP device. It is there until it is dropped.
///
/// Each [`read`](Self::read) and [`write`](Self::write) is one packet, with nothing in front, and neither waits: the
/// kind [`WouldBlock`](io::ErrorKind::WouldBlock) says that there is no packet, or no room.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
}

impl Tun {
    /// Makes a device in the network namespace of this thread. It is down, and has no address.
    ///
    /// # Errors
    /// There is no driver, the name is longer than 15 octets or taken, or the caller may not (CAP_NET_ADMIN).
    pub fn open(name: &str, kind: TunKind) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(DRIVER)
            .attempt(|| format!("open {DRIVER}, the driver of TUN devices"))?;
        let name = ioctl::set_interface(&file, name, kind)
            .map_err(|why| Error::new(format!("make the TUN device `{name}`"), why))?;
        Ok(Self { file, name })
    }

    /// Makes a device in another network namespace.
    ///
    /// # Errors
    /// Those of [`open`](Self::open) and of [`Namespace::within`].
    pub fn open_in(namespace: &Namespace, name: &str, kind: TunKind) -> Result<Self> {
        namespace.within(|| Self::open(name, kind))?
    }

    /// What the interface is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next packet that the system sends: its octets at the start of `out`, and how many they are. What does not
    /// fit is cut off.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none. EIO while the interface is down.
    pub fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(out)
    }

    /// A packet arrives at the system.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is no room. EIO while the interface is down. EINVAL if it is
    /// no IP packet.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The one call that no library wraps.
#[allow(unsafe_code, reason = "TUNSETIFF takes a structure by its address")]
mod ioctl {
    use std::ffi::{c_char, c_int};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd as _;

    use super::TunKind;

    // `linux/if_tun.h` declares it as _IOW('T', 202, int), but it takes, and fills, a `struct ifreq`.
    nix::ioctl_readwrite_bad!(
        tun_set_iff,
        nix::request_code_write!(b'T', 202, size_of::<c_int>()),
        libc::ifreq
    );

    /// Ties an open file of the driver to an interface; the name that it got.
    pub(super) fn set_interface(file: &File, name: &str, kind: TunKind) -> io::Result<String> {
        if name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // SAFETY: an `ifreq` is made of integers and arrays of them, for which all zeros is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as c_char;
        }
        let kind = match kind {
            TunKind::Tun => libc::IFF_TUN,
            TunKind::Tap => libc::IFF_TAP,
        };
        // Both flags are below 0x8000.
        request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as i16;
        // SAFETY: the file is open for the call, and `request` is a whole `ifreq`, which is what the driver reads and
        // writes.
        unsafe { tun_set_iff(file.as_raw_fd(), &mut request) }?;
        let name = request.ifr_name.iter().take_while(|&&octet| octet != 0);
        Ok(name.map(|&octet| char::from(octet as u8)).collect())
    }
}
