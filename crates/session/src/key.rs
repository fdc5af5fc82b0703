//! Secrets that ends share, and the text of a key file. A key authenticates handshakes and announcements, and never encrypts a
//! packet itself. Files are not read here.
//!
//! A key is 32 octets, written as 64 hexadecimal digits or in base64. A line contains one, and optionally a
//! comment after it; `#` begins a comment, too. The first key is used, a second one is accepted as well, so
//! that keys can be replaced site by site: add the new key as the second one everywhere, make it the first
//! one everywhere, remove the old one everywhere.

use base64ct::{Base64, Base64Unpadded, Encoding};
use thiserror::Error;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::{Random, suite};

/// A shared key. Erased when it is dropped; never displayed.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; 32]);

/// Id of a key in handshakes, derived by HKDF. It does not reveal the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 4]);

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl Key {
    /// Returns the key with these octets.
    pub fn new(octets: [u8; 32]) -> Self {
        Self(octets)
    }

    /// Id of the key.
    pub fn id(&self) -> KeyId {
        let mut id = [0; 4];
        suite::derive(&[], &self.0, &[b"thinair 1 key id"], &mut id);
        KeyId(id)
    }

    pub(super) fn octets(&self) -> &[u8; 32] {
        &self.0
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        let mut octets = Zeroizing::new([0; 32]);
        let filled = if word.len() == 64 {
            hexadecimal(word.as_bytes(), &mut octets)?;
            true
        } else {
            let decode = if word.ends_with('=') { Base64::decode } else { Base64Unpadded::decode };
            decode(word.as_bytes(), &mut octets[..]).is_ok_and(|octets| octets.len() == 32)
        };
        filled.then(|| Self(*octets))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.id())
    }
}

fn hexadecimal(digits: &[u8], out: &mut [u8; 32]) -> Option<()> {
    for (pair, octet) in digits.chunks_exact(2).zip(out) {
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
        *octet = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(())
}

/// The one or two keys of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    first: Key,
    second: Option<Key>,
}

/// Error in the text of a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyTextError {
    /// No line contains a key.
    #[error("no key; create one with `thinair tunnel keygen FILE`")]
    Empty,
    /// There are more than two keys.
    #[error("line {0}: a third key; a file has at most two")]
    Third(usize),
    /// A line begins with other text.
    #[error("line {0}: not a key; expected 32 octets as 64 hexadecimal digits or in base64")]
    NotAKey(usize),
    /// A key occurs twice.
    #[error("line {0}: a duplicate of the first key")]
    Again(usize),
    /// A key consists of zeros.
    #[error("line {0}: a key whose octets are all equal is not secret")]
    Weak(usize),
    /// The file exceeds the maximum size.
    #[error("the file exceeds 4,096 octets")]
    TooLong,
    /// The file is not UTF-8.
    #[error("the file is not UTF-8 text")]
    NotText,
}

impl Keys {
    /// Returns a single key.
    pub fn one(key: Key) -> Self {
        Self { first: key, second: None }
    }

    /// Returns a key to use, and a second one to accept.
    pub fn two(first: Key, second: Key) -> Self {
        Self { first, second: Some(second) }
    }

    /// The key to use.
    pub fn first(&self) -> &Key {
        &self.first
    }

    /// All accepted keys.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.first).chain(&self.second)
    }

    /// Parses the keys of a text.
    pub fn parse(text: &str) -> Result<Self, KeyTextError> {
        let mut keys: Option<Self> = None;
        for (line, number) in text.lines().zip(1..) {
            let Some(word) = line.split('#').next().and_then(|line| line.split_whitespace().next()) else {
                continue;
            };
            let key = Key::parse(word).ok_or(KeyTextError::NotAKey(number))?;
            if key.0.iter().all(|octet| *octet == key.0[0]) {
                return Err(KeyTextError::Weak(number));
            }
            match &mut keys {
                None => keys = Some(Self::one(key)),
                Some(keys) if keys.iter().any(|other| *other == key) => {
                    return Err(KeyTextError::Again(number));
                }
                Some(Self { second: Some(_), .. }) => return Err(KeyTextError::Third(number)),
                Some(keys) => keys.second = Some(key),
            }
        }
        keys.ok_or(KeyTextError::Empty)
    }

    /// Returns a line of a key file with a new key, and the id of the key.
    pub fn line(comment: &str, random: &mut dyn Random) -> (Zeroizing<String>, KeyId) {
        let mut key = Key([0; 32]);
        random.fill(&mut key.0);
        let mut digits = Zeroizing::new([0; 64]);
        let text = Base64::encode(&key.0, &mut digits[..]).expect("44 digits");
        let mut line = Zeroizing::new(String::with_capacity(64 + comment.len()));
        line.push_str(text);
        // Line breaks in a comment are removed.
        for word in comment.split_whitespace() {
            line.push(' ');
            line.push_str(word);
        }
        line.push('\n');
        (line, key.id())
    }
}
