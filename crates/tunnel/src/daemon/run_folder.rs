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

/// A folder that this process has locked. The lock goes with the last process that has it, the helper included. **The folder is
/// removed when this is dropped**, unless somebody has made it anew.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    lock: File,
}

/// Why a folder is not this tunnel's.
#[derive(Debug, thiserror::Error)]
pub enum RunFolderError {
    /// A tunnel of this name runs.
    #[error(
        "{}: a tunnel of this name runs; stop it with `thinair tunnel down {}`, or give another --name or --tun",
        path.display(), name(path)
    )]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The system does not allow it.
    #[error("{}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system reports.
        source: io::Error,
    },
}

impl RunFolder {
    /// Makes the folder if it is missing, with mode 0750 and below one with mode 0755, and locks it. `patience`: time for a
    /// tunnel that has it to end, and to undo what it has changed.
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
                // It was removed meanwhile, by a tunnel that ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(io(error)),
                Ok(None) if Instant::now() >= until => {
                    return Err(RunFolderError::InUse { path: path.to_owned() });
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Locks the folder, if it is there and nobody has it.
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

    /// Whether a tunnel runs there.
    pub fn is_in_use(path: &Path) -> bool {
        File::open(path).is_ok_and(|file| folder::lock(&file).is_ok_and(|is_locked| !is_locked))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the group of the account that the daemon goes on as ask for the status.
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

/// Whether an open folder is the one that has the path now.
fn is_at(folder: &File, path: &Path) -> io::Result<bool> {
    let (open, named) = (folder.metadata()?, fs::metadata(path)?);
    Ok((open.dev(), open.ino()) == (named.dev(), named.ino()))
}

/// Removes the sockets of a tunnel that is gone, and its folder.
pub(super) fn clear(path: &Path) {
    for socket in [STATUS_SOCKET, CONTROL_SOCKET] {
        let _ = fs::remove_file(path.join(socket));
    }
    // systemd removes one that it has made.
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
        // The helper of a tunnel removes it while the tunnel still has it open; another one may have made it anew.
        clear(&path);
        let second = claim().unwrap();
        drop(first);
        assert!(path.exists() && RunFolder::is_in_use(&path));
        drop(second);
        assert!(!path.exists() && !RunFolder::is_in_use(&path));
        fs::remove_dir_all(base).unwrap();
    }
}
