//! What is kept of groups while no daemon runs: the highest epoch of every site. Without it, what was recorded
//! yesterday could be played again today.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;

use crate::unit::SiteId;

/// The highest epoch of a site, and how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Seconds of the clock of the site at its start, or one more than the last one.
    pub number: u64,
    /// What was drawn at that start.
    pub salt: [u8; 16],
    /// No counter below this one is accepted after a restart.
    pub counter: u64,
}

/// Keeps epochs. **What was stored is there after a loss of power.**
pub trait EpochStore: Send {
    /// What was stored for `site` last; `None`: nothing was.
    fn load(&mut self, site: SiteId) -> io::Result<Option<Epoch>>;
    /// Stores it.
    fn store(&mut self, site: SiteId, epoch: &Epoch) -> io::Result<()>;
}

/// Keeps epochs in a directory: `epoch-N` is that of site N, one line of text.
#[derive(Clone, Debug)]
pub struct FileStore {
    directory: PathBuf,
}

impl FileStore {
    /// In this directory, which is there.
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
        // A file that cannot be read must not be taken for one that is not there: old epochs would be accepted.
        let bad = || {
            let why = format!("{}: not an epoch; remove it to accept any", path.display());
            io::Error::new(io::ErrorKind::InvalidData, why)
        };
        read(&text).map(Some).ok_or_else(bad)
    }

    /// Another file first, then its name: there is always a whole one.
    fn store(&mut self, site: SiteId, epoch: &Epoch) -> io::Result<()> {
        let (path, new) = (self.path(site, ""), self.path(site, ".new"));
        let mut file = File::create(&new)?;
        file.write_all(write(epoch).as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        // The name, too.
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
