//! Security contexts of OSCORE in folders, as aiocoap has them.
//!
//! `settings.json`, or `secret.json` beside it, has the parameters of the key derivation; `sequence.json` has the next Sender
//! Sequence Number. Numbers are reserved there, some at a time, before they are used, and one process at a time uses a folder
//! (`lock`). `thinair.json` marks machine and file: a copied folder is not used, since two messages with one number reveal
//! their contents. The mark does not find a whole disk that is restored or cloned with its machine.

mod create;
mod settings;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thinair_coap::oscore::{Context, ContextError, SequenceNumbers};
use thinair_os::{folder, privileges};

pub use create::create_pair;

/// Numbers that are reserved at the start; each further time twice as many, up to [`LONGEST_STEP`].
const STEP: u64 = 16;

/// Largest number of Sender Sequence Numbers that are reserved at a time.
const LONGEST_STEP: u64 = 1_024;

/// Numbers that a moved folder leaves out: more than its original can have used since without being noticed.
pub const MOVED: u64 = 1 << 16;

/// Reason why a folder gives no context.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// A file cannot be read or written.
    #[error("`{}`: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// A file has other contents than it must have.
    #[error("`{}`: {why}", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// Reason.
        why: String,
    },
    /// The parameters do not make a context.
    #[error("`{}`: {why}", path.display())]
    Context {
        /// The folder.
        path: PathBuf,
        /// Reason.
        why: ContextError,
    },
    /// A system call failed.
    #[error(transparent)]
    Os(#[from] thinair_os::Error),
    /// Another process uses the folder.
    #[error("another process uses the security context in `{}`: end it, or make a context for each", .0.display())]
    Locked(PathBuf),
    /// The folder was copied.
    #[error(
        "`{}` was copied or restored: two messages of a context with one number reveal their contents. If its original is never \
         used again, use it with --moved; otherwise make a new context",
        .0.display()
    )]
    Copied(PathBuf),
    /// The folder was used, and does not have its numbers any more.
    #[error("`{}` is missing, though the context was used: make a new context", .0.display())]
    Lost(PathBuf),
}

impl FolderError {
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |why| Self::File { path: path.to_owned(), why }
    }
}

/// Contents of `sequence.json`.
#[derive(Deserialize, Serialize)]
struct Sequence {
    /// First Sender Sequence Number that is not reserved.
    #[serde(rename = "next-to-send")]
    next_to_send: u64,
    /// Replay window, or `unknown`: after a restart a fresh request is asked for.
    received: serde_json::Value,
}

/// Contents of `thinair.json`.
#[derive(Deserialize, PartialEq, Serialize)]
struct Mark {
    /// Hash of the machine's identifier.
    machine: String,
    /// Number of this file in its file system.
    file: u64,
}

/// Opens the context in a folder. `is_moved`: the folder was copied, and its original is not used any more.
///
/// Sender Sequence Numbers are reserved before this returns; the folder stays locked as long as the context exists. From then on
/// the process leaves no core dumps.
///
/// # Errors
/// The folder is in use, was copied, or has no context; or numbers cannot be stored.
pub fn open(path: &Path, is_moved: bool) -> Result<Context, FolderError> {
    // Before there is a secret.
    privileges::hide_memory()?;
    let settings = settings::read(path)?;
    let lock = lock(path)?;
    let (sequence_path, mark_path) = (path.join("sequence.json"), path.join("thinair.json"));
    let mark = parsed::<Mark>(&mark_path)?;
    let sequence = parsed::<Sequence>(&sequence_path)?;
    let is_ours = match &mark {
        Some(mark) => *mark == this_mark(&mark_path).map_err(FolderError::file(&mark_path))?,
        None => true,
    };
    if !is_ours && !is_moved {
        return Err(FolderError::Copied(path.to_owned()));
    }
    if mark.is_some() && sequence.is_none() {
        return Err(FolderError::Lost(sequence_path));
    }
    let is_new = sequence.is_none();
    let jump = if is_ours { 0 } else { MOVED };
    let next = sequence.map_or(0, |sequence| sequence.next_to_send).saturating_add(jump);
    let mut numbers = FolderNumbers { path: sequence_path, end: next, step: STEP, lock };
    // Also what a server receives must be known to have been received after its next start.
    numbers.store(next + STEP).map_err(FolderError::file(&numbers.path))?;
    if mark.is_none() || !is_ours {
        write_mark(&mark_path).map_err(FolderError::file(&mark_path))?;
    }
    let context = Context::new(&settings.parameters(), next, is_new, numbers);
    context.map_err(|why| FolderError::Context { path: path.to_owned(), why })
}

/// Returns the folders of contexts at `path`: itself, or those in it, in the order of their names.
///
/// # Errors
/// It cannot be read, or has no contexts.
pub fn folders(path: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let is_context = |path: &Path| settings::FILES.iter().any(|file| path.join(file).is_file());
    if is_context(path) {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(FolderError::file(path))?;
    let mut folders: Vec<_> =
        entries.iter().map(fs::DirEntry::path).filter(|path| is_context(path)).collect();
    folders.sort();
    if folders.is_empty() {
        let why = "neither it nor a folder in it has settings.json: `thinair coap keygen` makes a context"
            .to_owned();
        return Err(FolderError::Contents { path: path.to_owned(), why });
    }
    Ok(folders)
}

/// Locks a folder, as aiocoap does.
fn lock(path: &Path) -> Result<File, FolderError> {
    let lock_path = path.join("lock");
    loop {
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock_path);
        let file = file.map_err(FolderError::file(&lock_path))?;
        if !folder::lock(&file).map_err(FolderError::file(&lock_path))? {
            return Err(FolderError::Locked(path.to_owned()));
        }
        // Its previous owner may have removed the file meanwhile.
        let held = file.metadata().map_err(FolderError::file(&lock_path))?;
        if fs::metadata(&lock_path).is_ok_and(|found| (found.dev(), found.ino()) == (held.dev(), held.ino()))
        {
            return Ok(file);
        }
    }
}

/// Reads a file of JSON; `None` if there is none.
fn parsed<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, FolderError> {
    let octets = match fs::read(path) {
        Ok(octets) => octets,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(FolderError::File { path: path.to_owned(), why }),
    };
    let parsed = serde_json::from_slice(&octets);
    parsed.map(Some).map_err(|why| FolderError::Contents { path: path.to_owned(), why: why.to_string() })
}

/// Returns the mark of this machine and of the file at `path`.
fn this_mark(path: &Path) -> io::Result<Mark> {
    Ok(Mark { machine: machine(), file: fs::metadata(path)?.ino() })
}

/// Replaces the mark.
fn write_mark(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mark = Mark { machine: machine(), file: file.metadata()?.ino() };
    file.write_all(serde_json::to_string(&mark)?.as_bytes())?;
    file.sync_all()
}

/// Returns a hash of the identifier of this machine, which is to be kept confidential: machine-id(5). Without one, of nothing.
fn machine() -> String {
    let id = fs::read("/etc/machine-id").unwrap_or_default();
    let hash = Sha256::new().chain_update(b"thinair OSCORE").chain_update(id).finalize();
    hash.iter().take(8).map(|octet| format!("{octet:02x}")).collect()
}

/// Sender Sequence Numbers in `sequence.json`.
struct FolderNumbers {
    path: PathBuf,
    /// First number that is not reserved in the file.
    end: u64,
    step: u64,
    #[expect(dead_code, reason = "it is locked as long as it is open")]
    lock: File,
}

impl FolderNumbers {
    fn store(&mut self, end: u64) -> io::Result<()> {
        let sequence = Sequence { next_to_send: end, received: "unknown".into() };
        folder::replace(&self.path, serde_json::to_string(&sequence)?.as_bytes(), true)?;
        self.end = end;
        Ok(())
    }
}

impl SequenceNumbers for FolderNumbers {
    fn reserve(&mut self, next: u64) -> Option<u64> {
        if self.end > next {
            return Some(self.end);
        }
        self.step = (self.step * 2).min(LONGEST_STEP);
        match self.store(next.saturating_add(self.step)) {
            Ok(()) => Some(self.end),
            Err(why) => {
                tracing::error!(path = %self.path.display(), %why, "no Sender Sequence Numbers can be reserved: nothing is sent");
                None
            }
        }
    }

    fn release(&mut self, next: u64) {
        if next < self.end
            && let Err(why) = self.store(next)
        {
            // They stay reserved.
            tracing::debug!(%why, "Sender Sequence Numbers are left out");
        }
    }
}
