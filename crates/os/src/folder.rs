//! A folder that no path leaves: not by `..`, not by an absolute path, not by a symbolic link, and not by one that is
//! replaced meanwhile. The kernel ensures it: openat2(2) with RESOLVE_BENEATH.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags};

use crate::error::{ErrorContext as _, Result};

/// A folder with its content.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FolderEntry {
    /// Name. Names that are not UTF-8 are omitted.
    pub name: String,
    /// True for a folder. A symbolic link counts as its target.
    pub is_folder: bool,
    /// Length of a file, in octets.
    pub len: u64,
}

/// Condition on an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// An existing file is replaced.
    Any,
    /// An existing file is kept, which is an error ([`AlreadyExists`](io::ErrorKind::AlreadyExists)).
    Nothing,
}

/// Locks an open file or folder, for as long as it stays open, in children too. `false`: it is locked already.
///
/// # Errors
/// The file system does not support locks.
pub fn lock(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Opens a file, for reading, in a folder in which another user may have put anything: a symbolic link at its name is
/// not followed, and the other end of a pipe not waited for.
///
/// # Errors
/// It does not exist, is not a regular file ([`InvalidInput`](io::ErrorKind::InvalidInput)) or a symbolic link, or is
/// not readable.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// Replaces a file, with mode 0600, in a folder in which another user may have put anything: no symbolic link is
/// followed. A reader sees the earlier content or the new one. Until then the name of the file has the suffix `.new`.
/// `is_durable`: when this returns, the new content survives a loss of power.
///
/// # Errors
/// It cannot be written; then the earlier content stays.
pub fn replace(path: &Path, octets: &[u8], is_durable: bool) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // A new file is never that of a link.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(octets)?;
    if is_durable {
        file.sync_all()?;
    }
    fs::rename(&new, path)?;
    match path.parent() {
        // The entry of the folder, too.
        Some(folder) if is_durable => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Paths must stay beneath the folder, and must not use links of /proc.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

impl Folder {
    /// Opens the folder at `path`, anywhere.
    ///
    /// # Errors
    /// It is not a folder, or is not readable; the system has no openat2(2) (Linux 5.6).
    pub fn open(path: &Path) -> Result<Self> {
        let open = || -> io::Result<Self> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = Self(rustix::fs::open(path, flags, Mode::empty())?);
            folder.folder(Path::new("."))?;
            Ok(folder)
        };
        open().attempt(|| format!("open the folder `{}`", path.display()))
    }

    /// Opens a folder below this one, or `.`.
    ///
    /// # Errors
    /// It is not a folder, or not below (Linux then returns [`CrossesDevices`](io::ErrorKind::CrossesDevices)).
    pub fn folder(&self, path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat2(&self.0, path, flags, Mode::empty(), BENEATH)?))
    }

    /// Opens a file below, for reading. It may be of another kind: the caller checks its metadata. The call does not wait
    /// for the other end of a pipe.
    ///
    /// # Errors
    /// It does not exist, is not below, or is not readable.
    pub fn file(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat2(&self.0, path, flags, Mode::empty(), BENEATH)?.into())
    }

    /// Returns at most `most` entries, in the order of names; names that begin with a dot are omitted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn entries(&self, most: usize) -> io::Result<Vec<FolderEntry>> {
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name.starts_with('.') {
                continue;
            }
            // Entries that lead out of the folder are treated as absent.
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let Ok(file) = rustix::fs::openat2(&self.0, name, flags, Mode::empty(), BENEATH) else {
                continue;
            };
            let metadata = File::from(file).metadata()?;
            if metadata.is_file() || metadata.is_dir() {
                entries.push(FolderEntry {
                    name: name.to_owned(),
                    is_folder: metadata.is_dir(),
                    len: metadata.len(),
                });
            }
            if entries.len() >= most {
                break;
            }
        }
        entries.sort();
        Ok(entries)
    }

    /// Creates a file of this name in this folder atomically: a reader sees the earlier content or the new one. `name` is
    /// one name, not a path. `temporary` is the name that it has until then; nothing else may have that name.
    ///
    /// # Errors
    /// It cannot be written; then nothing has changed. A folder is not replaced.
    pub fn write(&self, name: &str, temporary: &str, octets: &[u8], before: Before) -> io::Result<()> {
        if [name, temporary].iter().any(|name| name.contains('/')) {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        let mut file: File = rustix::fs::openat(&self.0, temporary, flags, mode)?.into();
        let done = file.write_all(octets).and_then(|()| {
            let how = match before {
                Before::Any => RenameFlags::empty(),
                Before::Nothing => RenameFlags::NOREPLACE,
            };
            Ok(rustix::fs::renameat_with(&self.0, temporary, &self.0, name, how)?)
        });
        if done.is_err() {
            let _ = rustix::fs::unlinkat(&self.0, temporary, AtFlags::empty());
        }
        done
    }

    /// Removes the file of this name from this folder; for a symbolic link, the link.
    ///
    /// # Errors
    /// It does not exist, is a folder ([`IsADirectory`](io::ErrorKind::IsADirectory)), or cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        if name.contains('/') {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{ErrorKind, Read as _};
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    /// A folder of the test, with a secret beside it.
    fn root(name: &str) -> (PathBuf, Folder) {
        let root = std::env::temp_dir().join(format!("thinair-folder-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("served/below")).unwrap();
        fs::write(root.join("secret"), b"secret").unwrap();
        fs::write(root.join("served/below/file"), b"content").unwrap();
        let folder = Folder::open(&root.join("served")).unwrap();
        (root, folder)
    }

    #[test]
    fn no_path_leads_out() {
        let (root, folder) = root("out");
        symlink("../secret", root.join("served/relative")).unwrap();
        symlink(root.join("secret"), root.join("served/absolute")).unwrap();
        symlink("..", root.join("served/up")).unwrap();
        symlink("below/file", root.join("served/inside")).unwrap();
        let out = ["../secret", "below/../../secret", "relative", "absolute", "up/secret", "/etc/passwd"];
        for path in out {
            assert!(folder.file(Path::new(path)).is_err(), "{path}");
        }
        for path in ["below/file", "inside", "below/../below/file"] {
            let mut content = String::new();
            folder.file(Path::new(path)).unwrap().read_to_string(&mut content).unwrap();
            assert_eq!(content, "content", "{path}");
        }
        assert!(folder.folder(Path::new("up")).is_err() && folder.folder(Path::new("..")).is_err());
        let names: Vec<_> = folder.entries(10).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["below", "inside"]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_another_user_has_put_there_is_not_followed() {
        let (root, _) = root("others");
        let (secret, file) = (root.join("secret"), root.join("served/own"));
        for place in ["own", "own.new"] {
            symlink(&secret, root.join("served").join(place)).unwrap();
        }
        assert!(open_regular(&file).is_err());
        for (content, is_durable) in [("one", true), ("two", false)] {
            replace(&file, content.as_bytes(), is_durable).unwrap();
            let mut read = String::new();
            open_regular(&file).unwrap().read_to_string(&mut read).unwrap();
            assert_eq!(read, content);
        }
        assert_eq!(fs::read(&secret).unwrap(), b"secret");
        nix::unistd::mkfifo(&root.join("served/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(open_regular(&root.join("served/pipe")).unwrap_err().kind(), ErrorKind::InvalidInput);
        // A folder at the name of the new file is not removed.
        fs::create_dir(root.join("served/own.new")).unwrap();
        assert!(replace(&file, b"three", true).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"two");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_is_written_is_there_at_once_or_not_at_all() {
        let (root, folder) = root("write");
        folder.write("new", ".temporary", b"one", Before::Nothing).unwrap();
        let again = folder.write("new", ".temporary", b"two", Before::Nothing).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(root.join("served/new")).unwrap(), b"one");
        folder.write("new", ".temporary", b"three", Before::Any).unwrap();
        assert_eq!(fs::read(root.join("served/new")).unwrap(), b"three");
        assert!(folder.write("below", ".temporary", b"x", Before::Any).is_err(), "a folder");
        // A link is replaced, and not its target.
        symlink("../secret", root.join("served/link")).unwrap();
        folder.write("link", ".temporary", b"x", Before::Any).unwrap();
        assert_eq!(fs::read(root.join("secret")).unwrap(), b"secret");
        for name in ["../out", "below/x"] {
            assert!(folder.write(name, ".temporary", b"x", Before::Any).is_err(), "{name}");
            assert!(folder.remove(name).is_err(), "{name}");
        }
        folder.remove("new").unwrap();
        assert_eq!(folder.remove("new").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(folder.remove("below").unwrap_err().kind(), ErrorKind::IsADirectory);
        assert!(!root.join("served/.temporary").exists());
        fs::remove_dir_all(root).unwrap();
    }
}
