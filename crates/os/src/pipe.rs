//! Pipes, devices and files by their paths, with non-blocking reads and writes.
//!
//! Where there is nothing to read, or no room to write, they fail with [`WouldBlock`](std::io::ErrorKind::WouldBlock),
//! and an [`EventLoop`](crate::EventLoop) can wait. Files of a disk never do so, and cannot be waited for.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::error::{ErrorContext as _, Result};
use crate::signals::{Signal, Signals};

/// Time between attempts to open a named pipe that has no reader yet.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// Opens `path` for reading. A named pipe without a writer is at its end.
///
/// # Errors
/// The file does not exist, or is not readable.
pub fn read(path: &Path) -> Result<File> {
    let open = without_waiting().read(true).open(path);
    open.attempt(|| format!("read {}", path.display()))
}

/// Opens `path` for writing, from its start; creates the file if necessary. **Waits where it is a named pipe without a
/// reader**, as a shell does, until a signal asks to end, but never afterwards.
///
/// # Errors
/// The file is not writable, or cannot be created. [`Interrupted`](io::ErrorKind::Interrupted): a signal came first.
pub fn write(path: &Path, signals: &Signals) -> Result<File> {
    let what = || format!("write {}", path.display());
    loop {
        let opened = without_waiting().write(true).create(true).truncate(true).open(path);
        let has_no_reader = |error: &io::Error| error.raw_os_error() == Some(Errno::ENXIO as i32);
        if !(opened.as_ref().is_err_and(has_no_reader) && is_pipe(path)) {
            return opened.attempt(what);
        }
        if let Some(Signal::End { .. }) = signals.poll() {
            return Err(io::Error::from(io::ErrorKind::Interrupted)).attempt(what);
        }
        thread::sleep(BETWEEN_ATTEMPTS);
    }
}

fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.file_type().is_fifo())
}

/// Opens standard input again: other processes that share it are not affected.
///
/// # Errors
/// It is closed, or a socket.
pub fn standard_input() -> Result<File> {
    read(Path::new("/proc/self/fd/0"))
}

/// Opens standard output again. A file is written from its start, and not truncated before.
///
/// # Errors
/// It is closed, or a socket.
pub fn standard_output() -> Result<File> {
    let open = without_waiting().write(true).open("/proc/self/fd/1");
    open.attempt(|| "write to standard output".to_owned())
}

fn without_waiting() -> OpenOptions {
    let mut options = File::options();
    options.custom_flags(OFlag::O_NONBLOCK.bits());
    options
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsRawFd;

    use nix::sys::signal::{Signal as Number, raise};
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    fn path(file: &impl AsRawFd) -> std::path::PathBuf {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }

    #[test]
    fn an_empty_pipe_is_not_waited_for() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut opened = read(&path(&reader)).unwrap();
        let mut octets = [0; 8];
        assert_eq!(opened.read(&mut octets).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        writer.write_all(b"come").unwrap();
        assert_eq!(opened.read(&mut octets).unwrap(), 4);
        drop(writer);
        assert_eq!(opened.read(&mut octets).unwrap(), 0, "nobody writes any more");
    }

    #[test]
    fn a_full_pipe_is_not_waited_for() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut opened = write(&path(&writer), &Signals::take().unwrap()).unwrap();
        let full = loop {
            if let Err(error) = opened.write_all(&[7; 4_096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        let mut octets = [0; 4_096];
        reader.read_exact(&mut octets).unwrap();
        assert!(opened.write(&octets).is_ok());
    }

    #[test]
    fn a_file_is_made_and_begun_anew() {
        let path = std::env::temp_dir().join(format!("thinair-pipe-{}", std::process::id()));
        let signals = Signals::take().unwrap();
        for text in ["longer", "short"] {
            write(&path, &signals).unwrap().write_all(text.as_bytes()).unwrap();
            let mut found = String::new();
            read(&path).unwrap().read_to_string(&mut found).unwrap();
            assert_eq!(found, text);
        }
        std::fs::remove_file(&path).unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(error.to_string(), format!("cannot read {}", path.display()));
    }

    #[test]
    fn a_signal_ends_the_wait_for_a_reader() {
        let path = std::env::temp_dir().join(format!("thinair-fifo-{}", std::process::id()));
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        let signals = Signals::take().unwrap();
        raise(Number::SIGINT).unwrap();
        assert_eq!(write(&path, &signals).unwrap_err().kind(), io::ErrorKind::Interrupted);
        let mut reader = read(&path).unwrap();
        write(&path, &signals).unwrap().write_all(b"come").unwrap();
        let mut octets = [0; 8];
        assert_eq!(reader.read(&mut octets).unwrap(), 4);
        std::fs::remove_file(&path).unwrap();
    }
}
