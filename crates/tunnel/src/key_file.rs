//! Files with [keys](Keys), which nobody but their owner may read, change or replace.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thinair_session::{KeyId, KeyTextError, Keys, Random};
use thiserror::Error;
use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// Maximum size of a key file in octets.
const LARGEST: u64 = 4_096;

/// Reads a file, which only its owner may be able to read.
pub fn read(path: &Path) -> Result<Keys, KeyFileError> {
    let bad = |why| KeyFileError::Text { path: path.into(), why };
    Keys::parse(&read_text(path)?).map_err(bad)
}

/// Returns the text of a file with keys, which only its owner may be able to read.
pub fn read_text(path: &Path) -> Result<Zeroizing<String>, KeyFileError> {
    let io = |why| KeyFileError::Io { path: path.into(), why };
    let mut file = File::open(path).map_err(io)?;
    // Metadata of the open file, so that it cannot be replaced in between.
    let metadata = file.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
    }
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Exposed { path: path.into(), mode });
    }
    check_owners(path, metadata.uid())?;
    // Allocated with the maximum size: growing would leave copies in memory.
    let mut text = Zeroizing::new(Vec::with_capacity(LARGEST as usize + 64));
    (&mut file).take(LARGEST + 1).read_to_end(&mut text).map_err(io)?;
    let bad = |why| KeyFileError::Text { path: path.into(), why };
    if text.len() as u64 > LARGEST {
        return Err(bad(KeyTextError::TooLong));
    }
    let text = str::from_utf8(&text).map_err(|_| bad(KeyTextError::NotText))?;
    Keys::parse(text).map_err(bad)?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Writes a new file with a new key, accessible to its owner only. An existing file is kept, and causes
/// an error. A file that cannot be written to its end, as on a full disk, is removed.
pub fn generate(path: &Path, comment: &str, random: &mut dyn Random) -> Result<KeyId, KeyFileError> {
    let io = |why| KeyFileError::Io { path: path.into(), why };
    let (line, id) = Keys::line(comment, random);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(io)?;
    file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(|why| {
        let _ = std::fs::remove_file(path);
        io(why)
    })?;
    Ok(id)
}

/// Reason why a key file cannot be used. The error contains nothing of the file.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// The file cannot be read or written.
    #[error("key file {}: {why}{}", path.display(), hint(why, path))]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// Other users can read or write it.
    #[error("key file {}: other users can access it (mode {mode:04o}); run: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// Path of the file.
        path: PathBuf,
        /// Permissions of the file.
        mode: u32,
    },
    /// Another user owns it.
    #[error("key file {}: belongs to user {owner}, who can change it; run: chown {own} {}", path.display(), path.display())]
    Owner {
        /// Path of the file.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id of this process.
        own: u32,
    },
    /// Other users can put another file in its place.
    #[error("key file {}: other users can replace it, as they can write in {}; run: chmod go-w {}, or move it", path.display(), folder.display(), folder.display())]
    Folder {
        /// Path of the file.
        path: PathBuf,
        /// Its folder, without symbolic links.
        folder: PathBuf,
    },
    /// The content is invalid.
    #[error("key file {}: {why}", path.display())]
    Text {
        /// Path of the file.
        path: PathBuf,
        /// Error in the text.
        why: KeyTextError,
    },
}

/// User id of `nobody`, which services share.
#[cfg(target_os = "linux")]
const NOBODY: u32 = 65_534;

/// Checks who can change a key file, or put another one in its place: root, and the user of this process. For root also
/// the user who owns the file, such as that of a service; but not `nobody`.
#[cfg(target_os = "linux")]
fn check_owners(path: &Path, owner: u32) -> Result<(), KeyFileError> {
    let own = thinair_os::privileges::Account::own().uid();
    if owner != own && owner != 0 && (own != 0 || owner == NOBODY) {
        return Err(KeyFileError::Owner { path: path.into(), owner, own });
    }
    let io = |why| KeyFileError::Io { path: path.into(), why };
    let file = path.canonicalize().map_err(io)?;
    let folder = file.parent().unwrap_or(&file);
    let metadata = folder.metadata().map_err(io)?;
    let mode = metadata.permissions().mode();
    // With the sticky bit, only owners replace their files. The group of the owner's number is the owner's own.
    let others = if metadata.gid() == metadata.uid() { 0o002 } else { 0o022 };
    let is_open = mode & others != 0 && mode & 0o1000 == 0;
    if is_open || ![0, own, owner].contains(&metadata.uid()) {
        return Err(KeyFileError::Folder { path: path.into(), folder: folder.into() });
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check_owners(_: &Path, _: u32) -> Result<(), KeyFileError> {
    Ok(())
}

/// Returns advice for a missing file.
fn hint(why: &io::Error, path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    match (why.kind(), folder) {
        (io::ErrorKind::NotFound, Some(folder)) => format!("; there is no folder {}", folder.display()),
        (io::ErrorKind::NotFound, None) => {
            format!("; make one with: thinair tunnel keygen {}", path.display())
        }
        _ => String::new(),
    }
}
