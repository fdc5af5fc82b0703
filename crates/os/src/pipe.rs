//! Pipes, devices and files by their paths, with non-blocking reads and writes.
//!
//! Where there is nothing to read, or no room to write, they fail with [`WouldBlock`](std::io::ErrorKind::WouldBlock),
//! and an [`EventLoop`](crate::EventLoop) can wait. Files of a disk never do so, and cannot be waited for.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;
use rustix::io::ioctl_fionbio;

use crate::error::{ErrorContext as _, Result};

/// Opens `path` for reading. A named pipe without a writer is at its end.
///
/// # Errors
/// The file does not exist, or is not readable.
pub fn read(path: &Path) -> Result<File> {
    let open = without_waiting().read(true).open(path);
    open.attempt(|| format!("read {}", path.display()))
}

/// Opens `path` for writing, from its start; creates the file if necessary. **Waits where it is a named pipe without a
/// reader**, as a shell does, but never afterwards.
///
/// # Errors
/// The file is not writable, or cannot be created.
pub fn write(path: &Path) -> Result<File> {
    let what = || format!("write {}", path.display());
    let file = File::options().write(true).create(true).truncate(true).open(path).attempt(what)?;
    // Set after opening, because a non-blocking open of a pipe without a reader fails.
    ioctl_fionbio(&file, true).attempt(what)?;
    Ok(file)
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
    use std::io::{self, Read as _, Write as _};
    use std::os::fd::AsRawFd;

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
        let mut opened = write(&path(&writer)).unwrap();
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
        for text in ["longer", "short"] {
            write(&path).unwrap().write_all(text.as_bytes()).unwrap();
            let mut found = String::new();
            read(&path).unwrap().read_to_string(&mut found).unwrap();
            assert_eq!(found, text);
        }
        std::fs::remove_file(&path).unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(error.to_string(), format!("cannot read {}", path.display()));
    }
}
