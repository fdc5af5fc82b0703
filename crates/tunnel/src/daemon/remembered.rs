//! Addresses of peers, stored from one start to the next: after a restart, a peer without configured address
//! is asked for keys at its last address.
//!
//! The file `peers` in the state folder has a line for each: id of its key, address, name. Behind the address
//! and `@` there may be the own address at which it has asked. The file is
//! optional: errors of reading or writing it are logged at a low level, and otherwise ignored.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use thinair_os::folder;
use thinair_os::privileges::Account;
use thinair_session::{AddressPair, KeyId, PEERS};
use thinair_wire::time::Instant;

use super::ownership;
use crate::site_config::{Carrier, Others, Security, SiteConfig};

/// Least time between two writes.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// Length of the longest file that is read, in octets.
const LARGEST: u64 = 2 << 20;

/// Last address of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) key: KeyId,
    pub(super) addresses: AddressPair,
}

/// The file.
#[derive(Debug)]
pub(super) struct Remembered {
    folder: PathBuf,
    entries: Vec<Entry>,
    /// Count of changes at the last write, and the earliest time of the next one.
    written: u64,
    next_at: Instant,
}

impl Remembered {
    /// Reads the file of a configuration, and creates its folder. `None`: peers have no addresses, or are not
    /// authenticated.
    pub(super) fn open(config: &SiteConfig) -> Option<Self> {
        let (Security::Key { .. }, Others::Peers(_), Carrier::Udp { .. }) =
            (&config.security, &config.others, &config.carrier)
        else {
            return None;
        };
        let folder = config.state.clone();
        if let Err(error) = fs::create_dir_all(&folder) {
            tracing::debug!(%error, folder = %folder.display(), "addresses of peers cannot be kept");
            return None;
        }
        let mut remembered = Self { folder, entries: Vec::new(), written: 0, next_at: Instant::ZERO };
        match remembered.read() {
            Ok(text) => remembered.entries = text.lines().take(PEERS).filter_map(entry).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::debug!(%error, "addresses of peers cannot be read"),
        }
        Some(remembered)
    }

    fn read(&self) -> io::Result<String> {
        let mut text = String::new();
        folder::open_regular(&self.folder.join("peers"))?.take(LARGEST).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Last addresses of all peers, by name.
    pub(super) fn by_name(&self) -> HashMap<&str, &Entry> {
        self.entries.iter().map(|entry| (entry.name.as_str(), entry)).collect()
    }

    /// Gives the folder to the daemon's account, which writes the file.
    pub(super) fn give_to(&self, account: &Account) {
        if let Err(error) = ownership::give_folder(&self.folder, account) {
            tracing::debug!(%error, folder = %self.folder.display(), "addresses of peers cannot be kept");
        }
    }

    /// Time when changes must be written. `moves`: count of changes.
    pub(super) fn due_at(&self, moves: u64) -> Option<Instant> {
        (moves != self.written).then_some(self.next_at)
    }

    /// Writes current addresses of peers. Peers that were not heard since the start keep their entries.
    pub(super) fn write(&mut self, now: Instant, moves: u64, known: impl Iterator<Item = Entry>) {
        (self.written, self.next_at) = (moves, now + AGAIN);
        let known: Vec<_> = known.collect();
        let names: HashSet<_> = known.iter().map(|entry| entry.name.as_str()).collect();
        self.entries.retain(|entry| !names.contains(entry.name.as_str()));
        self.entries.extend(known);
        let excess = self.entries.len().saturating_sub(PEERS);
        self.entries.drain(..excess);
        if let Err(error) = self.store() {
            tracing::debug!(%error, "addresses of peers cannot be kept");
        }
    }

    fn store(&self) -> io::Result<()> {
        let mut text = String::new();
        for Entry { name, key, addresses: AddressPair { peer, own } } in &self.entries {
            let own = own.map(|own| format!("@{own}")).unwrap_or_default();
            text += &format!("{key} {peer}{own} {name}\n");
        }
        folder::replace(&self.folder.join("peers"), text.as_bytes(), false)
    }
}

fn entry(line: &str) -> Option<Entry> {
    let mut words = line.splitn(3, ' ');
    let key = words.next().filter(|word| word.len() == 8)?;
    let key = KeyId(u32::from_str_radix(key, 16).ok()?.to_be_bytes());
    let addresses = words.next()?;
    let (peer, own) = match addresses.split_once('@') {
        Some((peer, own)) => (peer, Some(own.parse().ok()?)),
        None => (addresses, None),
    };
    let peer: SocketAddr = peer.parse().ok()?;
    let name = words.next()?.to_owned();
    let addresses = AddressPair { peer, own };
    (peer.port() != 0 && !peer.ip().is_unspecified()).then_some(Entry { name, key, addresses })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered(name: &str) -> Remembered {
        let folder = std::env::temp_dir().join(format!("thinair-peers-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        Remembered { folder, entries: Vec::new(), written: 0, next_at: Instant::ZERO }
    }

    fn at(name: &str, port: u16) -> Entry {
        let own = (port > 5_000).then(|| [198, 51, 100, 8].into());
        let addresses = AddressPair { peer: ([192, 0, 2, 1], port).into(), own };
        Entry { name: name.to_owned(), key: KeyId([0, 1, 2, 3]), addresses }
    }

    #[test]
    fn what_is_written_is_read_and_old_entries_stay() {
        let mut kept = remembered("kept");
        kept.write(Instant::ZERO, 1, [at("a hill", 5_000), at("dale", 5_001)].into_iter());
        assert_eq!((kept.due_at(1), kept.due_at(2)), (None, Some(Instant::from_millis(1_000))));
        kept.write(Instant::ZERO, 2, [at("a hill", 6_000)].into_iter());
        let text = kept.read().expect("written");
        let entries: Vec<_> = text.lines().filter_map(entry).collect();
        assert_eq!(entries, [at("dale", 5_001), at("a hill", 6_000)]);
        assert_eq!(kept.by_name().get("dale"), Some(&&at("dale", 5_001)));
        assert_eq!(kept.by_name().get("coast"), None);
        let many = (0..PEERS + 1_000).map(|number| at(&number.to_string(), 7_000));
        kept.write(Instant::ZERO, 3, many);
        assert_eq!(kept.read().expect("written").lines().count(), PEERS);
        fs::remove_dir_all(&kept.folder).expect("ours");
    }

    #[test]
    fn what_is_no_entry_is_passed_over() {
        for line in [
            "",
            "00010203",
            "00010203 192.0.2.1:5000",
            "00010203 192.0.2.1 hill",
            "00010203 0.0.0.0:5000 hill",
            "00010203 192.0.2.1:0 hill",
            "0001020 192.0.2.1:5000 hill",
            "+0010203 192.0.2.1:x hill",
            "00010203 192.0.2.1:5000@here hill",
        ] {
            assert_eq!(entry(line), None, "{line}");
        }
        assert_eq!(entry("00010203 192.0.2.1:5000 hill"), Some(at("hill", 5_000)));
    }
}
