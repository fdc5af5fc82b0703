//! Output files that are whole or absent: on a full disk no half file remains under the final name.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Writes a file. After an error a regular file that existed before is unchanged, and one that did not does not exist. Devices
/// and pipes are written as they are.
///
/// # Errors
/// The file cannot be created, or not be written to its end.
pub fn write(path: &Path, octets: impl AsRef<[u8]>) -> io::Result<()> {
    // A link remains a link.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let before = fs::metadata(path).ok();
    if before.as_ref().is_some_and(|before| !before.is_file()) {
        return fs::write(path, octets);
    }
    let beside = beside(path);
    let mut file = match OpenOptions::new().write(true).create_new(true).open(&beside) {
        Ok(file) => file,
        // A folder in which only existing files may be changed.
        Err(_) if before.is_some() => return fs::write(path, octets),
        Err(error) => return Err(error),
    };
    let permissions = before.map_or(Ok(()), |before| file.set_permissions(before.permissions()));
    let written = permissions
        .and_then(|()| file.write_all(octets.as_ref()))
        .and_then(|()| file.sync_data())
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Removes a regular file that could not be written to its end.
#[cfg(feature = "rohc")]
pub(crate) fn remove_half(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|file| file.is_file()) {
        let _ = fs::remove_file(path);
    }
}

/// Returns a name in the same folder, with the number of this process.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_behind_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write(&file, "one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        write(&link, "two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_device_is_written_as_it_is() {
        write(Path::new("/dev/null"), "one").unwrap();
        assert!(write(Path::new("/dev/full"), "one").is_err());
        assert!(Path::new("/dev/full").exists());
        assert!(write(Path::new("/absent/file"), "one").is_err());
    }
}
