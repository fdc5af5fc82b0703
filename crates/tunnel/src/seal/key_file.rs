//! Key files: the secret that all ends share. It authenticates handshakes and announcements, and never seals a packet.
//!
//! A key is 32 octets, written as 64 hexadecimal digits or in base64. A line holds one, with a comment behind it; `#`
//! begins a comment, too. The first key is the one that we use. A second one is accepted as well, so that keys can be
//! replaced one site after the other: add the new one as the second everywhere, make it the first everywhere, take the
//! old one out everywhere.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64ct::{Base64, Base64Unpadded, Encoding};
use thiserror::Error;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::{Random, suite};

/// Octets of the longest key file.
const LARGEST: u64 = 4_096;

/// A key that ends share. Wiped when it is dropped; never shown.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; 32]);

/// Names a key in handshakes and tells nothing of it: derived by HKDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 4]);

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl Key {
    /// The key of these octets.
    pub fn new(octets: [u8; 32]) -> Self {
        Self(octets)
    }

    /// The id that stands for it.
    pub fn id(&self) -> KeyId {
        let mut id = [0; 4];
        suite::derive(&[], &self.0, &[b"thinair 1 key id"], &mut id);
        KeyId(id)
    }

    pub(super) fn octets(&self) -> &[u8; 32] {
        &self.0
    }

    fn parse(word: &str) -> Option<Self> {
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

/// The keys of a file: one or two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    first: Key,
    second: Option<Key>,
}

/// Why a key file gives no keys. Nothing of the file is repeated.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// It cannot be read or written.
    #[error("key file {}: {why}{}", path.display(), hint(why, path))]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// Others than its owner may read or write it.
    #[error("key file {}: mode {mode:04o} lets others at it; run: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// What is in it is not keys.
    #[error("key file {}: {why}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: KeyTextError,
    },
}

/// What to do about a file that is not there.
fn hint(why: &io::Error, path: &Path) -> String {
    match why.kind() {
        io::ErrorKind::NotFound => format!("; make one with: thinair tunnel keygen {}", path.display()),
        _ => String::new(),
    }
}

/// What is wrong with the text of a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyTextError {
    /// No line has a key.
    #[error("has no key; make one with: thinair tunnel keygen")]
    Empty,
    /// More than two.
    #[error("line {0}: a third key; there may be one that is used and one more that is accepted")]
    Third(usize),
    /// A line begins with something else.
    #[error("line {0}: not a key: 32 octets as 64 hexadecimal digits, or in base64")]
    NotAKey(usize),
    /// A key is there twice.
    #[error("line {0}: the same key again")]
    Again(usize),
    /// A key of zeros.
    #[error("line {0}: a key of which all octets are alike is no secret")]
    Weak(usize),
    /// It is longer than any key file.
    #[error("longer than 4,096 octets")]
    TooLong,
    /// It is not UTF-8.
    #[error("not text")]
    NotText,
}

impl Keys {
    /// One key.
    pub fn one(key: Key) -> Self {
        Self { first: key, second: None }
    }

    /// The key that is used, and one more that is accepted.
    pub fn two(first: Key, second: Key) -> Self {
        Self { first, second: Some(second) }
    }

    /// The key that we use.
    pub fn first(&self) -> &Key {
        &self.first
    }

    /// All that are accepted.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.first).chain(&self.second)
    }

    /// Reads a file that only its owner may read.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let bad = |why| KeyFileError::Text { path: path.into(), why };
        Self::parse(&Self::read_text(path)?).map_err(bad)
    }

    /// The text of a file that only its owner may read, and that has keys.
    pub fn read_text(path: &Path) -> Result<Zeroizing<String>, KeyFileError> {
        let io = |why| KeyFileError::Io { path: path.into(), why };
        let mut file = File::open(path).map_err(io)?;
        // Of what was opened, so that nobody can put another file in its place in between.
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(KeyFileError::Exposed { path: path.into(), mode });
        }
        // As large as it may get at once: a buffer that grows leaves copies behind.
        let mut text = Zeroizing::new(Vec::with_capacity(LARGEST as usize + 64));
        (&mut file).take(LARGEST + 1).read_to_end(&mut text).map_err(io)?;
        let bad = |why| KeyFileError::Text { path: path.into(), why };
        if text.len() as u64 > LARGEST {
            return Err(bad(KeyTextError::TooLong));
        }
        let text = str::from_utf8(&text).map_err(|_| bad(KeyTextError::NotText))?;
        Self::parse(text).map_err(bad)?;
        Ok(Zeroizing::new(text.to_owned()))
    }

    /// The keys of a text.
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

    /// Writes a new file with a new key, for its owner alone. A file that is there is left as it is: an error.
    pub fn generate(path: &Path, comment: &str, random: &mut dyn Random) -> Result<KeyId, KeyFileError> {
        let io = |why| KeyFileError::Io { path: path.into(), why };
        let (line, id) = Self::line(comment, random);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(io)?;
        file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
        Ok(id)
    }

    /// A line of a key file with a new key, and the id of the key.
    pub fn line(comment: &str, random: &mut dyn Random) -> (Zeroizing<String>, KeyId) {
        let mut key = Key([0; 32]);
        random.fill(&mut key.0);
        let mut digits = Zeroizing::new([0; 64]);
        let text = Base64::encode(&key.0, &mut digits[..]).expect("44 digits");
        let mut line = Zeroizing::new(String::with_capacity(64 + comment.len()));
        line.push_str(text);
        // A comment stays on its line.
        for word in comment.split_whitespace() {
            line.push(' ');
            line.push_str(word);
        }
        line.push('\n');
        (line, key.id())
    }
}
