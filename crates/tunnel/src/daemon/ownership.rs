//! Hand-over of the state folder to the account of the daemon. Files of other users stay theirs: a user who may write
//! in the folder could have put links to them there.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

use thinair_os::folder;
use thinair_os::privileges::Account;

/// Gives a folder to an account. The administrator may have made it a symbolic link.
///
/// # Errors
/// It belongs to another user than root.
pub(super) fn give_folder(path: &Path, account: &Account) -> io::Result<()> {
    give(&File::open(path)?, path, account)
}

/// Gives the regular files in a folder to an account. Symbolic links stay as they are.
///
/// # Errors
/// One belongs to another user than root, or has a second name.
pub(super) fn give_files(path: &Path, account: &Account) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            give(&folder::open_regular(&entry.path())?, &entry.path(), account)?;
        }
    }
    Ok(())
}

/// Changes the owner of an open file: its name may be that of another one by now.
fn give(file: &File, path: &Path, account: &Account) -> io::Result<()> {
    let metadata = file.metadata()?;
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if metadata.uid() != 0 && metadata.uid() != account.uid() {
        return refused(format!(
            "{} belongs to user {}; run: chown -R {} {}",
            path.display(),
            metadata.uid(),
            account.name(),
            path.display()
        ));
    }
    if metadata.is_file() && metadata.nlink() != 1 {
        return refused(format!("{} has a second name (hard link); remove it", path.display()));
    }
    fchown(file, Some(account.uid()), Some(account.gid()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    #[test]
    fn files_of_others_and_links_stay_as_they_are() {
        let account = Account::named("nobody").expect("every system has it");
        let folder = std::env::temp_dir().join(format!("thinair-ownership-{}", std::process::id()));
        let state = folder.join("state");
        fs::create_dir_all(&state).expect("a folder");
        let owner = |path: &Path| fs::symlink_metadata(path).expect("there").uid();
        for name in ["victim", "state/epoch-1"] {
            fs::write(folder.join(name), "text").expect("writable");
        }
        symlink(folder.join("victim"), state.join("epoch-2")).expect("a link");
        if chown(state.join("epoch-1"), Some(0), None).is_err() {
            return fs::remove_dir_all(folder).expect("ours");
        }
        give_folder(&state, &account).expect("of root");
        give_files(&state, &account).expect("of root");
        assert_eq!(
            ["state", "state/epoch-1", "victim"].map(|name| owner(&folder.join(name))),
            [account.uid(), account.uid(), 0]
        );
        // A second name of a file of root.
        fs::hard_link(folder.join("victim"), state.join("epoch-3")).expect("one file system");
        let error = give_files(&state, &account).expect_err("a link").to_string();
        assert!(error.contains("hard link") && owner(&folder.join("victim")) == 0, "{error}");
        fs::remove_file(state.join("epoch-3")).expect("ours");
        chown(&state, Some(12_345), None).expect("root");
        let error = give_folder(&state, &account).expect_err("of another user").to_string();
        assert!(error.contains("belongs to user 12345") && error.contains("chown -R nobody"), "{error}");
        assert_eq!(owner(&state), 12_345);
        fs::remove_dir_all(folder).expect("ours");
    }
}
