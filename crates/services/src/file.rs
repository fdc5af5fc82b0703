//! Reading of served files, with errors that are independent of the protocol.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read as _};

/// Reason why a file is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRefusal {
    /// Permission denied.
    Forbidden,
    /// It does not exist, or is not below the folder.
    Missing,
    /// No space left.
    Full,
    /// It exceeds the size limit.
    TooLarge,
    /// Any other error of the system.
    Failed,
}

/// ELOOP.
const LOOP: i32 = 40;

impl From<&io::Error> for FileRefusal {
    fn from(why: &io::Error) -> Self {
        match why.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::Forbidden,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full,
            // Paths that leave the folder are treated as absent: CrossesDevices, and FilesystemLoop of too
            // many links.
            ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::CrossesDevices
            | ErrorKind::InvalidFilename => Self::Missing,
            _ if why.raw_os_error() == Some(LOOP) => Self::Missing,
            _ => Self::Failed,
        }
    }
}

/// Reads a file of at most `most` octets.
///
/// # Errors
/// The file has more octets, or cannot be read.
pub fn read(file: File, metadata: &Metadata, most: usize) -> Result<Vec<u8>, FileRefusal> {
    if metadata.len() > most as u64 {
        return Err(FileRefusal::TooLarge);
    }
    let mut octets = Vec::with_capacity(metadata.len() as usize);
    // It may grow meanwhile.
    match file.take(most as u64 + 1).read_to_end(&mut octets) {
        Ok(len) if len > most => Err(FileRefusal::TooLarge),
        Ok(_) => Ok(octets),
        Err(why) => Err(FileRefusal::from(&why)),
    }
}
