//! Public keys (X25519), by which two ends know each other without a shared secret.
//!
//! A private key is a [`Key`], in a key file of its own, as `wg genkey` writes it, too. A public key is written in base64 or as
//! 64 hexadecimal digits.

use std::fmt;

use base64ct::{Base64, Encoding};

use super::key::{Key, KeyId, Keys};
use super::{primitives, suite};

/// A public key. Displayed in base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Returns the key with these octets.
    pub const fn new(octets: [u8; 32]) -> Self {
        Self(octets)
    }

    /// Parses a key in base64, or of 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        Key::parse(text).map(|key| Self(*key.octets()))
    }

    pub(super) const fn octets(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key in place of a shared one, for what an initiator can know before a handshake: proofs of requests, and cookies.
    pub(super) fn gate(&self) -> Key {
        Key::new(self.0)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 44];
        f.write_str(Base64::encode(&self.0, &mut digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl Key {
    /// Returns the public key of this private one.
    pub fn public(&self) -> PublicKey {
        PublicKey(primitives::public(self.octets()))
    }

    /// True if this private key agrees on a secret with a public key: not with a point of low order.
    fn agrees_with(&self, theirs: &PublicKey) -> bool {
        primitives::agree(self.octets(), &theirs.0).iter().any(|octet| *octet != 0)
    }
}

/// The private key of this end, the public key of another one, and optionally a secret that both share besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKeys {
    private: Key,
    ours: PublicKey,
    theirs: PublicKey,
    psk: Option<Key>,
}

/// Reason why the keys of two ends do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPublicKey {
    /// It is the private key of this end.
    #[error(
        "is the private key of this end, which nobody else may see; make a new one with `thinair tunnel keygen`, and give the \
         public key of the other end"
    )]
    Private,
    /// It is the public key of this end.
    #[error("is the public key of this end; give that of the other end")]
    Own,
    /// No private key agrees on a secret with it.
    #[error("is not a public key: no secret can be agreed on with it")]
    Weak,
}

impl PublicKeys {
    /// Returns the keys of two ends.
    pub fn new(private: Key, theirs: PublicKey, psk: Option<Key>) -> Result<Self, BadPublicKey> {
        let ours = private.public();
        if *private.octets() == theirs.0 {
            return Err(BadPublicKey::Private);
        }
        if ours == theirs {
            return Err(BadPublicKey::Own);
        }
        if !private.agrees_with(&theirs) {
            return Err(BadPublicKey::Weak);
        }
        Ok(Self { private, ours, theirs, psk })
    }

    pub(super) const fn private(&self) -> &Key {
        &self.private
    }

    /// Public key of this end.
    pub const fn ours(&self) -> &PublicKey {
        &self.ours
    }

    /// Public key of the other end.
    pub const fn theirs(&self) -> &PublicKey {
        &self.theirs
    }

    /// The secret that both ends share besides; zeros without one.
    pub(super) fn psk(&self) -> Key {
        self.psk.clone().unwrap_or(Key::new([0; 32]))
    }

    /// Id of these keys, equal at both ends. It is never sent.
    pub fn id(&self) -> KeyId {
        let (low, high) = (self.ours.min(self.theirs), self.ours.max(self.theirs));
        let mut id = [0; 4];
        suite::derive(
            self.psk().octets(),
            &[low.0, high.0].concat(),
            &[b"thinair 1 public keys id"],
            &mut id,
        );
        KeyId(id)
    }
}

/// Keys of this end for one peer: shared ones, public ones, or both while the ends change from one to the other. With both,
/// requests use the shared one, and both are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyring {
    pub(super) shared: Option<Keys>,
    pub(super) public: Option<Box<PublicKeys>>,
}

impl Keyring {
    /// Returns the keys for a peer. `None`: there are none.
    pub fn new(shared: Option<Keys>, public: Option<PublicKeys>) -> Option<Self> {
        let is_any = shared.is_some() || public.is_some();
        is_any.then(|| Self { shared, public: public.map(Box::new) })
    }

    /// Ids of all keys.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.shared().map(Key::id).chain(self.public.iter().map(|keys| keys.id()))
    }

    /// Shared keys.
    pub(super) fn shared(&self) -> impl Iterator<Item = &Key> {
        self.shared.iter().flat_map(Keys::iter)
    }
}

impl From<Keys> for Keyring {
    fn from(keys: Keys) -> Self {
        Self { shared: Some(keys), public: None }
    }
}

impl From<PublicKeys> for Keyring {
    fn from(keys: PublicKeys) -> Self {
        Self { shared: None, public: Some(Box::new(keys)) }
    }
}
