//! A second process that keeps the privileges that the first one gives up, for the few operations that need them.
//!
//! The helper is a fork of the process, made while there is one thread. Both communicate over a socket of messages; a
//! message may carry an open file. The helper lives until the other end of its socket is closed, also when the process
//! was killed, so that it can restore the host then. Signals that end the process do not end the helper.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Seek as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg,
    setsockopt, socketpair, sockopt,
};
use nix::sys::time::TimeVal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::error::{ErrorContext as _, Result};

/// Longest message, in octets.
pub const LONGEST: usize = 128 << 10;

/// Time for a helper to end after its socket was closed.
const GRACE: Duration = Duration::from_secs(5);

/// One end of the socket between a process and its helper.
#[derive(Debug)]
pub struct HelperSocket {
    socket: OwnedFd,
    room: Vec<u8>,
}

/// The helper of this process. **Dropping it ends the helper, and waits for its end.**
#[derive(Debug)]
pub struct Helper {
    line: Option<HelperSocket>,
    pid: Pid,
}

/// Starts a helper, which runs `serve` and ends.
///
/// **Must be called before the process has other threads**, and with the signals that end it blocked
/// ([`Signals::take`](crate::Signals::take)).
///
/// # Errors
/// The system has no room for another process.
pub fn start(serve: impl FnOnce(HelperSocket)) -> Result<Helper> {
    let what = || "start a helper process".to_owned();
    let (ours, theirs) = HelperSocket::pair().attempt(what)?;
    match forked::fork().attempt(what)? {
        Some(pid) => Ok(Helper { line: Some(ours), pid }),
        None => {
            drop(ours);
            // Shown by ps(1), without further effect.
            let _ = nix::sys::prctl::set_name(c"thinair-helper");
            let status = catch_unwind(AssertUnwindSafe(|| serve(theirs)));
            forked::exit(status.is_err().into())
        }
    }
}

impl Helper {
    /// Returns the socket to the helper.
    ///
    /// # Errors
    /// The helper was [ended](Self::end).
    pub fn line(&mut self) -> io::Result<&mut HelperSocket> {
        self.line.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Returns the number of its process.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Ends the helper, and waits until it has restored the host.
    pub fn end(&mut self) {
        if self.line.take().is_none() {
            return;
        }
        let until = Instant::now() + GRACE;
        while waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) == Ok(WaitStatus::StillAlive)
            && Instant::now() < until
        {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.end();
    }
}

impl AsFd for HelperSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl HelperSocket {
    /// Returns both ends of a new socket.
    ///
    /// # Errors
    /// The system has no room for another file.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let end = |socket| Self { socket, room: vec![0; LONGEST] };
        Ok((end(one), end(other)))
    }

    /// Returns another handle of this end.
    ///
    /// # Errors
    /// The system has no room for another file.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, room: vec![0; LONGEST] })
    }

    /// Sends a message of at most [`LONGEST`] octets, with an open file.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn send(&self, message: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let raw = file.map(|file| [file.as_raw_fd()]);
        let rights: Vec<_> = raw.iter().map(|raw| ControlMessage::ScmRights(raw)).collect();
        let octets = [IoSlice::new(message)];
        sendmsg::<()>(self.socket.as_raw_fd(), &octets, &rights, MsgFlags::MSG_NOSIGNAL, None)?;
        Ok(())
    }

    /// Waits for a message, at most for `limit` if it is given; zero: not at all. `None`: the other end is gone.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock): no message came in time.
    pub fn receive(&mut self, limit: Option<Duration>) -> io::Result<Option<(&[u8], Option<OwnedFd>)>> {
        let is_now = limit == Some(Duration::ZERO);
        let limit = limit.unwrap_or_default();
        let time = TimeVal::new(limit.as_secs().try_into().unwrap_or(i64::MAX), limit.subsec_micros().into());
        setsockopt(&self.socket, sockopt::ReceiveTimeout, &time)?;
        let mut control = nix::cmsg_space!([std::os::fd::RawFd; 1]);
        let mut octets = [IoSliceMut::new(&mut self.room)];
        let raw = self.socket.as_raw_fd();
        let now = if is_now { MsgFlags::MSG_DONTWAIT } else { MsgFlags::empty() };
        let flags = MsgFlags::MSG_CMSG_CLOEXEC | now;
        let received = loop {
            match recvmsg::<()>(raw, &mut octets, Some(&mut control), flags) {
                Err(Errno::EINTR) => {}
                result => break result?,
            }
        };
        let file = received.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmRights(files) => files.first().map(|&file| forked::owned(file)),
            _ => None,
        });
        let length = received.bytes;
        Ok((length > 0).then(|| (self.room.get(..length).unwrap_or_default(), file)))
    }
}

/// Returns a file in memory with these octets, for a message that is too long.
///
/// # Errors
/// The system has no room for it.
pub fn file_of(octets: &[u8]) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create(c"thinair-helper", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(octets)?;
    file.rewind()?;
    Ok(file.into())
}

#[allow(unsafe_code, reason = "fork(2), _exit(2), and files that come by number")]
mod forked {
    use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

    use nix::unistd::{ForkResult, Pid};

    /// Forks; returns the number of the child, or `None` in the child.
    pub(super) fn fork() -> nix::Result<Option<Pid>> {
        // SAFETY: the caller has guaranteed that there is one thread, so no other one holds a lock, and the memory of the
        // child is consistent.
        match unsafe { nix::unistd::fork() }? {
            ForkResult::Parent { child } => Ok(Some(child)),
            ForkResult::Child => Ok(None),
        }
    }

    /// Ends the child, without the exit handlers of the parent.
    pub(super) fn exit(status: i32) -> ! {
        // SAFETY: _exit(2) does not access memory of this process.
        unsafe { libc::_exit(status) }
    }

    /// Takes ownership of a file that a message carried.
    pub(super) fn owned(file: RawFd) -> OwnedFd {
        // SAFETY: the system has just opened it for this process, and nothing else has its number.
        unsafe { OwnedFd::from_raw_fd(file) }
    }
}
