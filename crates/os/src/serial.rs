//! Serial lines for octets without translation.
//!
//! A line is set to eight bits, no parity, one stop bit, no echo, no control characters and no flow control. A [`Pty`]
//! is a line without a wire, for tests.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::pty::{grantpt, ptsname, unlockpt};
use rustix::termios::{
    ControlModes, InputModes, OptionalActions, SpecialCodeIndex, Termios, ioctl_tiocexcl, ioctl_tiocnxcl,
    tcgetattr, tcsetattr,
};

use crate::error::{ErrorContext as _, Result};

/// Relative deviation of a line's speed from the configured one: 2 %, of which each end can have half before the tenth
/// bit of a character is mistaken for another.
const TOLERANCE: f64 = 0.02;

/// A serial line in exclusive use.
///
/// Neither [`read`](Self::read) nor [`write`](Self::write) blocks.
#[derive(Debug)]
pub struct Serial {
    file: File,
    path: PathBuf,
    speed: u32,
}

impl Serial {
    /// Opens a line, and sets its speed in bit/s; `None` keeps the present one. Octets received before remain readable.
    ///
    /// # Errors
    /// The file does not exist, or is not a serial line; it is in use ([`ResourceBusy`](io::ErrorKind::ResourceBusy), or
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if by a process of the same user or of root); the line does not support
    /// the speed.
    pub fn open(path: &Path, speed: Option<u32>) -> Result<Self> {
        let shown = path.display();
        let what = || format!("open the serial line {shown}");
        let file = options().open(path).attempt(what)?;
        let settings = tcgetattr(&file).attempt(|| format!("use {shown} as a serial line"))?;
        // TIOCEXCL excludes other users, but not root.
        flock(&file, FlockOperation::NonBlockingLockExclusive).attempt(what)?;
        ioctl_tiocexcl(&file).attempt(what)?;
        // From here on the exclusion ends if anything fails.
        let mut line = Self { file, path: path.to_owned(), speed: 0 };
        line.speed = set(&line.file, settings, speed).attempt(|| match speed {
            Some(speed) => format!("set the serial line {shown} to {speed} bit/s"),
            None => format!("set the serial line {shown}"),
        })?;
        Ok(line)
    }

    /// Returns the line as an open file, for another process ([`from_file`](Self::from_file)). It stays locked.
    pub fn into_file(self) -> io::Result<OwnedFd> {
        // Dropping this line ends TIOCEXCL, but not the lock of the file; the other process sets TIOCEXCL again.
        self.file.try_clone().map(OwnedFd::from)
    }

    /// Takes over a line that another process has opened and set.
    ///
    /// # Errors
    /// The file is not a serial line, or is in use.
    pub fn from_file(file: OwnedFd, path: &Path) -> Result<Self> {
        let shown = path.display();
        let file = File::from(file);
        let settings = tcgetattr(&file).attempt(|| format!("use {shown} as a serial line"))?;
        ioctl_tiocexcl(&file).attempt(|| format!("lock the serial line {shown}"))?;
        Ok(Self { speed: settings.output_speed(), file, path: path.to_owned() })
    }

    /// Returns the path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the speed in bit/s, start and stop bit of each octet included.
    pub fn speed(&self) -> u32 {
        self.speed
    }

    /// Reads received octets to the start of `out`, and returns their number: at least one.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there are none. [`BrokenPipe`](io::ErrorKind::BrokenPipe) if the line
    /// is gone: unplugged, or hung up. Then it must be opened again.
    pub fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        read(&self.file, out)
    }

    /// Sends octets as far as there is room, at least one, and returns their number.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is no room. [`BrokenPipe`](io::ErrorKind::BrokenPipe) if the
    /// line is gone.
    pub fn write(&self, octets: &[u8]) -> io::Result<usize> {
        write(&self.file, octets)
    }
}

impl AsFd for Serial {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Serial {
    fn drop(&mut self) {
        let _ = ioctl_tiocnxcl(&self.file);
    }
}

/// A serial line without a wire: octets written here are read by a process that opens [`path`](Self::path) as a serial
/// line, and vice versa. It is as fast as memory, at any speed.
#[derive(Debug)]
pub struct Pty {
    file: File,
    path: PathBuf,
    /// Keeps the line in existence while no other process has opened it.
    _line: File,
}

impl Pty {
    /// Creates a line.
    ///
    /// # Errors
    /// The system has no room for another one.
    pub fn open() -> Result<Self> {
        let open = || -> io::Result<Self> {
            // posix_openpt(3), with the flag for non-blocking mode.
            let file = options().open("/dev/ptmx")?;
            grantpt(&file)?;
            unlockpt(&file)?;
            let path = PathBuf::from(OsString::from_vec(ptsname(&file, Vec::new())?.into_bytes()));
            let line = options().open(&path)?;
            set(&line, tcgetattr(&line)?, None)?;
            Ok(Self { file, path, _line: line })
        };
        open().attempt(|| "create a pseudoterminal".to_owned())
    }

    /// Returns the path of its line.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads as [`Serial::read`].
    ///
    /// # Errors
    /// Those of [`Serial::read`].
    pub fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        read(&self.file, out)
    }

    /// Writes as [`Serial::write`].
    ///
    /// # Errors
    /// Those of [`Serial::write`].
    pub fn write(&self, octets: &[u8]) -> io::Result<usize> {
        write(&self.file, octets)
    }
}

impl AsFd for Pty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Options to open lines: non-blocking, and not as the terminal of this process.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    options.read(true).write(true).custom_flags(flags);
    options
}

/// Sets a line, and returns its speed in bit/s.
fn set(line: &File, mut settings: Termios, speed: Option<u32>) -> io::Result<u32> {
    settings.make_raw();
    settings.input_modes -= InputModes::IXON | InputModes::IXOFF | InputModes::IXANY | InputModes::INPCK;
    settings.control_modes -= ControlModes::CSIZE | ControlModes::PARENB | ControlModes::CSTOPB;
    settings.control_modes -= ControlModes::CRTSCTS;
    // The receiver is enabled, and modem control lines are ignored.
    settings.control_modes |= ControlModes::CS8 | ControlModes::CREAD | ControlModes::CLOCAL;
    // With a VMIN of 0, absence of octets would look like a line that is gone.
    settings.special_codes[SpecialCodeIndex::VMIN] = 1;
    settings.special_codes[SpecialCodeIndex::VTIME] = 0;
    if let Some(speed) = speed {
        if speed == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a speed of 0 would hang up the line"));
        }
        settings.set_speed(speed)?;
    }
    tcsetattr(line, OptionalActions::Now, &settings)?;
    // A driver that does not support all settings silently uses a part of them.
    let is = tcgetattr(line)?;
    let got = is.output_speed();
    if let Some(speed) = speed
        && f64::from(got.abs_diff(speed)) > f64::from(speed) * TOLERANCE
    {
        return Err(io::Error::new(io::ErrorKind::Unsupported, format!("the line would run at {got} bit/s")));
    }
    if is.control_modes.intersection(ControlModes::CSIZE) != ControlModes::CS8 {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "the line does not support eight data bits"));
    }
    Ok(got)
}

fn read(mut file: &File, out: &mut [u8]) -> io::Result<usize> {
    match file.read(out) {
        Ok(0) if !out.is_empty() => Err(io::ErrorKind::BrokenPipe.into()),
        result => result.map_err(gone),
    }
}

fn write(mut file: &File, octets: &[u8]) -> io::Result<usize> {
    file.write(octets).map_err(gone)
}

/// Unifies the error codes of a line that is gone.
fn gone(why: io::Error) -> io::Error {
    match Errno::from_io_error(&why) {
        Some(Errno::IO | Errno::NXIO | Errno::NODEV) => io::Error::new(io::ErrorKind::BrokenPipe, why),
        _ => why,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::EventLoop;
    use crate::clock::now;

    /// Octets of all values, and those that a terminal would interpret.
    fn octets() -> Vec<u8> {
        (0..=255).chain(*b"\r\n\x03\x04\x11\x13\x1a\x1c\xff\xff\0").collect()
    }

    /// Reads `len` octets while the other end writes them.
    fn read_all(
        from: impl AsFd + Copy,
        read: impl Fn(&mut [u8]) -> io::Result<usize>,
        len: usize,
    ) -> Vec<u8> {
        let mut events = EventLoop::new(std::time::Duration::ZERO).unwrap();
        events.add(from, 0).unwrap();
        let (mut all, mut ready, mut out) = (Vec::new(), Vec::new(), [0; 100]);
        while all.len() < len {
            events.wait(Some(now() + std::time::Duration::from_secs(10)), &mut ready).unwrap();
            assert_eq!(ready, [0], "{} of {len} octets have come", all.len());
            let count = read(&mut out).unwrap();
            all.extend_from_slice(&out[..count]);
        }
        all
    }

    #[test]
    fn octets_pass_as_they_are_both_ways() {
        let pty = Pty::open().unwrap();
        let line = Serial::open(pty.path(), Some(115_200)).unwrap();
        assert_eq!((line.speed(), line.path()), (115_200, pty.path()));
        let octets = octets();
        assert_eq!(line.read(&mut [0; 10]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(pty.write(&octets).unwrap(), octets.len());
        assert_eq!(read_all(&line, |out| line.read(out), octets.len()), octets);
        assert_eq!(line.write(&octets).unwrap(), octets.len());
        assert_eq!(read_all(&pty, |out| pty.read(out), octets.len()), octets);
        // Nothing was echoed.
        for (end, kind) in [(line.read(&mut [0; 10]), "line"), (pty.read(&mut [0; 10]), "pty")] {
            assert_eq!(end.unwrap_err().kind(), io::ErrorKind::WouldBlock, "{kind}");
        }
    }

    #[test]
    fn any_speed_is_possible_but_none() {
        let pty = Pty::open().unwrap();
        for speed in [300, 9_600, 12_345, 4_000_000] {
            assert_eq!(Serial::open(pty.path(), Some(speed)).unwrap().speed(), speed);
        }
        assert_eq!(Serial::open(pty.path(), None).unwrap().speed(), 4_000_000, "as it was");
        let refused = Serial::open(pty.path(), Some(0)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert!(refused.to_string().ends_with("to 0 bit/s"), "{refused}");
    }

    #[test]
    fn a_line_is_for_one_alone() {
        let pty = Pty::open().unwrap();
        let line = Serial::open(pty.path(), None).unwrap();
        let second = Serial::open(pty.path(), None).unwrap_err().kind();
        assert!(matches!(second, io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy), "{second:?}");
        drop(line);
        Serial::open(pty.path(), None).unwrap();
    }

    #[test]
    fn a_full_line_takes_no_more_until_it_is_read() {
        let pty = Pty::open().unwrap();
        let line = Serial::open(pty.path(), None).unwrap();
        let mut sent = 0;
        let full = loop {
            match line.write(&[0x55; 1_000]) {
                Ok(count) => sent += count,
                Err(why) => break why,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert!(sent > 0);
        assert_eq!(read_all(&pty, |out| pty.read(out), sent).len(), sent);
        assert!(line.write(&[0x55]).is_ok());
    }

    #[test]
    fn a_line_that_is_gone_is_distinguished_from_one_that_is_silent() {
        let pty = Pty::open().unwrap();
        let line = Serial::open(pty.path(), None).unwrap();
        drop(pty);
        assert_eq!(line.read(&mut [0; 10]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(line.write(&[0; 10]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn what_is_no_line_is_refused() {
        let missing = Serial::open(Path::new("/dev/no-such-line"), None).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let null = Serial::open(Path::new("/dev/null"), None).unwrap_err();
        assert_eq!(null.to_string(), "cannot use /dev/null as a serial line");
        assert!(null.source().is_some());
    }
}
