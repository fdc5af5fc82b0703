//! Pre-shared keys. RFC 4279, sections 2 and 5.3.

use alloc::vec::Vec;
use core::fmt;

use zeroize::Zeroizing;

/// Longest identity, in octets. RFC 4279, section 5.3.
pub const MAX_IDENTITY: usize = 128;

/// Longest key, in octets. RFC 4279, section 5.3.
pub const MAX_KEY: usize = 64;

/// A key that both ends have, and its name. It is overwritten when it is dropped.
#[derive(Clone)]
pub struct Psk {
    identity: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

/// Reason why identity and key are not accepted. The caller is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PskError {
    /// The identity is empty, or has more than [`MAX_IDENTITY`] octets.
    Identity,
    /// The key is empty, or has more than [`MAX_KEY`] octets.
    Key,
}

impl fmt::Display for PskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => write!(f, "an identity has 1 to {MAX_IDENTITY} octets"),
            Self::Key => write!(f, "a key has 1 to {MAX_KEY} octets"),
        }
    }
}

impl core::error::Error for PskError {}

impl Psk {
    /// Creates a key: at least 16 random octets, unless it is for a test.
    ///
    /// # Errors
    /// Identity or key is empty or too long.
    pub fn new(identity: &[u8], key: &[u8]) -> Result<Self, PskError> {
        if identity.is_empty() || identity.len() > MAX_IDENTITY {
            return Err(PskError::Identity);
        }
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(PskError::Key);
        }
        Ok(Self { identity: identity.to_vec(), key: Zeroizing::new(key.to_vec()) })
    }

    /// Returns the identity, which is sent without encryption.
    pub fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// Returns the premaster secret. RFC 4279, section 2.
    pub(crate) fn premaster_secret(&self) -> Zeroizing<Vec<u8>> {
        // The length of a key is at most `MAX_KEY`.
        let len = (self.key.len() as u16).to_be_bytes();
        let mut secret = Zeroizing::new(Vec::with_capacity(2 * (2 + self.key.len())));
        secret.extend_from_slice(&len);
        secret.extend(core::iter::repeat_n(0, self.key.len()));
        secret.extend_from_slice(&len);
        secret.extend_from_slice(&self.key);
        secret
    }
}

impl fmt::Debug for Psk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Psk")
            .field("identity", &format_args!("{}", self.identity.escape_ascii()))
            .finish_non_exhaustive()
    }
}
