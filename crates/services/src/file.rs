//! The whole of a file that is served, and why there may be none of it, for whatever protocol says so.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read as _};

/// Why a file is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It may not be read or written.
    Forbidden,
    /// It is not there, or not below the folder.
    Missing,
    /// There is no room for it.
    Full,
    /// It has more octets than are served.
    TooLarge,
    /// The system says something else.
    Failed,
}

/// ELOOP.
const LOOP: i32 = 40;

impl From<&io::Error> for Refusal {
    fn from(why: &io::Error) -> Self {
        match why.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::Forbidden,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full,
            // What leads out of the folder is not there: CrossesDevices, and FilesystemLoop of too many links.
            ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::CrossesDevices
            | ErrorKind::InvalidFilename => Self::Missing,
            _ if why.raw_os_error() == Some(LOOP) => Self::Missing,
            _ => Self::Failed,
        }
    }
}

/// The octets of a file, `most` of them at most.
///
/// # Errors
/// The file has more octets, or cannot be read.
pub fn read(file: File, metadata: &Metadata, most: usize) -> Result<Vec<u8>, Refusal> {
    if metadata.len() > most as u64 {
        return Err(Refusal::TooLarge);
    }
    let mut octets = Vec::with_capacity(metadata.len() as usize);
    // It may grow meanwhile.
    match file.take(most as u64 + 1).read_to_end(&mut octets) {
        Ok(len) if len > most => Err(Refusal::TooLarge),
        Ok(_) => Ok(octets),
        Err(why) => Err(Refusal::from(&why)),
    }
}
