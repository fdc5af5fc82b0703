//! Keys of a configuration: their files, and what they are for each peer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use thinair_session::{BadPublicKey, Key, Keyring, Keys, PublicKey, PublicKeys};

use super::{Others, Peer, Security, SiteConfig};
use crate::key_file::KeyFileError;

/// Public key of a peer.
#[derive(Clone, Debug)]
pub struct PeerPublicKey {
    /// The key.
    pub key: PublicKey,
    /// Key file of a secret that both ends share besides. `None`: none.
    pub psk: Option<PathBuf>,
    /// Place of the key: file and line, or option.
    pub at: String,
}

/// Reason why the keys of a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// A key file cannot be used.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// A public key does not fit the private one of this end.
    #[error("{at}: {why} (private key: {})", .private.display())]
    Public {
        /// Place of the public key.
        at: String,
        /// Reason.
        why: BadPublicKey,
        /// Private key file of this end.
        private: PathBuf,
    },
    /// A peer has no key.
    #[error("peer `{0}` has no key; give it `public_key` or `key`")]
    None(String),
}

/// Returns a function that reads each key file once.
pub fn read_once<'r>(
    read: &'r dyn Fn(&Path) -> Result<Keys, KeyFileError>,
) -> impl Fn(&Path) -> Result<Keys, KeyFileError> + 'r {
    let known = RefCell::new(HashMap::new());
    move |path| {
        if let Some(keys) = known.borrow().get(path) {
            return Ok(Keys::clone(keys));
        }
        let keys = read(path)?;
        known.borrow_mut().insert(path.to_owned(), keys.clone());
        Ok(keys)
    }
}

impl SiteConfig {
    /// Returns all key files: the common one, the private key, and those of peers.
    pub fn key_files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = self.common_key_file().map(Path::to_owned).into_iter().collect();
        files.extend(self.private_key_file().map(Path::to_owned));
        if let Others::Peers(peers) = &self.others {
            for peer in peers {
                files.extend(peer.key.clone());
                files.extend(peer.public_key.as_ref().and_then(|public| public.psk.clone()));
            }
        }
        files
    }

    /// Returns the shared key file of this end; `None` without one, or if each peer has its own file.
    pub fn common_key_file(&self) -> Option<&Path> {
        let Security::Key { path, .. } = &self.security else { return None };
        let is_used = match &self.others {
            Others::Peers(peers) => peers.iter().any(|peer| peer.key.is_none()),
            Others::Mesh(_) => true,
        };
        path.as_deref().filter(|_| is_used)
    }

    /// Returns the private key file of this end.
    pub fn private_key_file(&self) -> Option<&Path> {
        let Security::Key { private, .. } = &self.security else { return None };
        private.as_deref()
    }

    /// Returns the keys for a peer. `read`: returns those of a file.
    pub fn keyring(
        &self,
        peer: &Peer,
        read: &dyn Fn(&Path) -> Result<Keys, KeyFileError>,
    ) -> Result<Keyring, KeyringError> {
        let shared = peer.key.as_deref().or(self.common_key_file()).map(read).transpose()?;
        let public = match (&peer.public_key, self.private_key_file()) {
            (Some(PeerPublicKey { key, psk, at }), Some(private)) => {
                let first = |path: &Path| Ok::<Key, KeyFileError>(read(path)?.first().clone());
                let psk = psk.as_deref().map(first).transpose()?;
                let bad = |why| KeyringError::Public { at: at.clone(), why, private: private.to_owned() };
                Some(PublicKeys::new(first(private)?, *key, psk).map_err(bad)?)
            }
            _ => None,
        };
        Keyring::new(shared, public).ok_or_else(|| KeyringError::None(peer.name.clone()))
    }
}
