//! Persistent state of groups: the highest epoch of every site. It prevents replays of datagrams that were
//! recorded before a restart.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;

use crate::unit::SiteId;

/// Highest epoch of a site, and its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Time of the site at its start in seconds, or the previous number plus one.
    pub number: u64,
    /// Salt drawn at that start.
    pub salt: [u8; 16],
    /// Counters below this one are rejected after a restart.
    pub counter: u64,
}

/// Persistent storage of epochs. **Stored epochs must survive a loss of power.**
pub trait EpochStore: Send {
    /// Returns the epoch stored last for `site`; `None`: none was stored.
    fn load(&mut self, site: SiteId) -> io::Result<Option<Epoch>>;
    /// Stores an epoch.
    fn store(&mut self, site: SiteId, epoch: &Epoch) -> io::Result<()>;
}

/// Stores epochs in a directory: file `epoch-N` for site N, one line of text.
#[derive(Clone, Debug)]
pub struct FileStore {
    directory: PathBuf,
}

impl FileStore {
    /// Returns a store in an existing directory.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn path(&self, site: SiteId, ending: &str) -> PathBuf {
        self.directory.join(format!("epoch-{}{ending}", site.number()))
    }
}

impl EpochStore for FileStore {
    fn load(&mut self, site: SiteId) -> io::Result<Option<Epoch>> {
        let path = self.path(site, "");
        let mut text = String::new();
        match File::open(&path) {
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

    /// Writes another file first, then renames it: one version is always complete.
    fn store(&mut self, site: SiteId, epoch: &Epoch) -> io::Result<()> {
        let (path, new) = (self.path(site, ""), self.path(site, ".new"));
        let mut file = File::create(&new)?;
        file.write_all(write(epoch).as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        // The directory entry, too.
        File::open(&self.directory)?.sync_all()
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
    use super::*;

    fn site(number: u8) -> SiteId {
        SiteId::new(number).expect("not zero")
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
