//! Persistent state of groups: the highest epoch of every site. It prevents replays of datagrams that were
//! recorded before a restart.

use std::io;

use crate::SiteId;

/// Highest epoch of a site, and its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Time of the site at its start in seconds, or the previous number plus one.
    pub number: u64,
    /// Salt drawn at that start.
    pub salt: [u8; 16],
    /// Counters below this one are rejected after a restart: all that were accepted, and reserved ones.
    pub counter: u64,
}

/// Persistent storage of epochs. **Stored epochs must survive a loss of power.**
pub trait EpochStore: Send {
    /// Returns the epoch stored last for `site`; `None`: none was stored.
    fn load(&mut self, site: SiteId) -> io::Result<Option<Epoch>>;
    /// Stores an epoch.
    fn store(&mut self, site: SiteId, epoch: &Epoch) -> io::Result<()>;
}
