//! The folder of a tunnel while it runs, `/run/thinair/NAME`: locked, with its sockets in it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thinair_os::folder;
use thinair_os::privileges::Account;

use super::control::CONTROL_SOCKET;
use crate::config::STATUS_SOCKET;

/// A folder that this process has locked. The lock ends with the last process that holds it, including the
/// helper. **The folder is removed when this is dropped**, unless somebody has created it again.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    lock: File,
}

/// Error of [`RunFolder::claim`].
#[derive(Debug, thiserror::Error)]
pub enum RunFolderError {
    /// A tunnel of this name is running.
    #[error(
        "{}: a tunnel of this name runs; stop it with `thinair tunnel down {}`, or give another --name or --tun",
        path.display(), name(path)
    )]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The system refuses it.
    #[error("{}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

impl RunFolder {
    /// Creates the folder if it is missing, with mode 0750 and its parents with mode 0755, and locks it.
    /// `patience`: time for a tunnel that holds it to end, and to undo its changes.
    pub fn claim(path: &Path, patience: Duration) -> Result<Self, RunFolderError> {
        let io = |source| RunFolderError::Io { path: path.to_owned(), source };
        let until = Instant::now() + patience;
        loop {
            if let Some(parent) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o755).create(parent).map_err(io)?;
            }
            match DirBuilder::new().mode(0o750).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io(error)),
                _ => {}
            }
            match Self::lock(path) {
                Ok(Some(folder)) => return Ok(folder),
                // A tunnel that ended has removed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(io(error)),
                Ok(None) if Instant::now() >= until => {
                    return Err(RunFolderError::InUse { path: path.to_owned() });
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Locks the folder if it exists and nobody else holds it.
    fn lock(path: &Path) -> io::Result<Option<Self>> {
        let lock = File::open(path)?;
        if !folder::lock(&lock)? {
            return Ok(None);
        }
        if !is_at(&lock, path)? {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Some(Self { path: path.to_owned(), lock }))
    }

    /// True if a tunnel is running there.
    pub fn is_in_use(path: &Path) -> bool {
        File::open(path).is_ok_and(|file| folder::lock(&file).is_ok_and(|is_locked| !is_locked))
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the group of the daemon's account ask for the status.
    pub(super) fn give_to(&self, account: &Account) -> io::Result<()> {
        chown(&self.path, None, Some(account.gid()))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if is_at(&self.lock, &self.path).unwrap_or(false) {
            clear(&self.path);
        }
    }
}

/// True if an open folder is the one that has the path now.
fn is_at(folder: &File, path: &Path) -> io::Result<bool> {
    let (open, named) = (folder.metadata()?, fs::metadata(path)?);
    Ok((open.dev(), open.ino()) == (named.dev(), named.ino()))
}

/// Removes the sockets of a tunnel that has ended, and its folder.
pub(super) fn clear(path: &Path) {
    for socket in [STATUS_SOCKET, CONTROL_SOCKET] {
        let _ = fs::remove_file(path.join(socket));
    }
    // If systemd has created it, systemd removes it.
    let _ = fs::remove_dir(path);
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_by_one_and_free_when_it_ends() {
        let base = std::env::temp_dir().join(format!("thinair-run-{}", std::process::id()));
        let path = base.join("thinair").join("sat");
        let claim = || RunFolder::claim(&path, Duration::from_millis(50));
        let first = claim().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o750);
        assert!(RunFolder::is_in_use(&path));
        let refused = claim().unwrap_err();
        assert!(refused.to_string().contains("`thinair tunnel down sat`"), "{refused}");
        // The helper removes it while the tunnel still has it open; another tunnel may have created it
        // again.
        clear(&path);
        let second = claim().unwrap();
        drop(first);
        assert!(path.exists() && RunFolder::is_in_use(&path));
        drop(second);
        assert!(!path.exists() && !RunFolder::is_in_use(&path));
        fs::remove_dir_all(base).unwrap();
    }
}
