//! Epochs of the sites of a mesh in files, which survive a loss of power.

use std::io::{self, Read as _};
use std::path::PathBuf;

use thinair_os::folder;
use thinair_session::{Epoch, EpochStore};

use crate::unit::SiteId;

/// Stores epochs in a directory: file `epoch-N` for site N, one line of text.
#[derive(Clone, Debug)]
pub(super) struct FileStore {
    directory: PathBuf,
}

impl FileStore {
    /// Returns a store in an existing directory.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn path(&self, site: SiteId) -> PathBuf {
        self.directory.join(format!("epoch-{}", site.number()))
    }
}

impl EpochStore for FileStore {
    fn load(&mut self, site: SiteId) -> io::Result<Option<Epoch>> {
        let path = self.path(site);
        let mut text = String::new();
        match folder::open_regular(&path) {
            Ok(file) => file.take(256).read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // A file that cannot be read must not count as missing: old epochs would be accepted.
        let bad = || {
            let why = format!("{}: not an epoch; remove it to accept any", path.display());
            io::Error::new(io::ErrorKind::InvalidData, why)
        };
        read(&text).map(Some).ok_or_else(bad)
    }

    /// The directory belongs to the user of the daemon, and root stores an epoch in it at the start.
    fn store(&mut self, site: SiteId, epoch: &Epoch) -> io::Result<()> {
        folder::replace(&self.path(site), write(epoch).as_bytes(), true)
    }
}

fn write(epoch: &Epoch) -> String {
    format!("{} {:032x} {}\n", epoch.number, u128::from_be_bytes(epoch.salt), epoch.counter)
}

fn read(text: &str) -> Option<Epoch> {
    let mut words = text.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let salt = words.next().filter(|word| word.len() == 32)?;
    let salt = u128::from_str_radix(salt, 16).ok()?.to_be_bytes();
    let counter = words.next()?.parse().ok()?;
    (words.next().is_none() && text.ends_with('\n')).then_some(Epoch { number, salt, counter })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    fn site(number: u8) -> SiteId {
        SiteId::new(number).expect("not zero")
    }

    /// The user of the daemon owns the directory, and root stores an epoch in it at the next start.
    #[test]
    fn links_in_the_directory_lead_nowhere() {
        let directory = std::env::temp_dir().join(format!("thinair-epoch-links-{}", std::process::id()));
        fs::create_dir_all(directory.join("epochs")).expect("a directory");
        let victim = directory.join("victim");
        fs::write(&victim, "not ours").expect("writable");
        let mut store = FileStore::new(directory.join("epochs"));
        let epoch = Epoch { number: 1_790_000_000, salt: [7; 16], counter: 0 };
        for name in ["epoch-1", "epoch-1.new"] {
            symlink(&victim, directory.join("epochs").join(name)).expect("a link");
        }
        store.store(site(1), &epoch).expect("both links are replaced");
        assert_eq!(fs::read_to_string(&victim).expect("there"), "not ours");
        assert_eq!(store.load(site(1)).expect("readable"), Some(epoch));
        let metadata = fs::symlink_metadata(directory.join("epochs/epoch-1")).expect("there");
        assert!(metadata.is_file() && metadata.mode() & 0o777 == 0o600, "{metadata:?}");
        fs::rename(directory.join("epochs/epoch-1"), &victim).expect("one file system");
        symlink(&victim, directory.join("epochs/epoch-1")).expect("a link");
        assert!(store.load(site(1)).is_err(), "a link is not followed");
        fs::remove_dir_all(directory).expect("ours");
    }

    #[test]
    fn what_is_stored_is_there_and_what_is_damaged_is_an_error() {
        let directory = std::env::temp_dir().join(format!("thinair-epochs-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let mut store = FileStore::new(directory.clone());
        assert_eq!(store.load(site(1)).expect("readable"), None);
        for counter in [0, u64::MAX] {
            let epoch = Epoch { number: 1_790_000_000, salt: [7; 16], counter };
            store.store(site(1), &epoch).expect("writable");
            assert_eq!(store.load(site(1)).expect("readable"), Some(epoch));
        }
        assert_eq!(store.load(site(2)).expect("readable"), None);
        let whole = fs::read_to_string(directory.join("epoch-1")).expect("text");
        for length in 0..whole.len() {
            fs::write(directory.join("epoch-1"), &whole[..length]).expect("writable");
            assert!(store.load(site(1)).is_err(), "{length} octets");
        }
        fs::remove_dir_all(directory).expect("ours");
    }
}
