//! Key files with the secret that all ends share. It authenticates handshakes and announcements, and never
//! encrypts a packet itself.
//!
//! A key is 32 octets, written as 64 hexadecimal digits or in base64. A line contains one, and optionally a
//! comment after it; `#` begins a comment, too. The first key is used, a second one is accepted as well, so
//! that keys can be replaced site by site: add the new key as the second one everywhere, make it the first
//! one everywhere, remove the old one everywhere.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64ct::{Base64, Base64Unpadded, Encoding};
use thiserror::Error;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::{Random, suite};

/// Maximum size of a key file in octets.
const LARGEST: u64 = 4_096;

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

/// Reason why a key file cannot be used. The error contains nothing of the file.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// The file cannot be read or written.
    #[error("key file {}: {why}{}", path.display(), hint(why, path))]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// Other users can read or write it.
    #[error("key file {}: other users can access it (mode {mode:04o}); run: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// Path of the file.
        path: PathBuf,
        /// Permissions of the file.
        mode: u32,
    },
    /// Another user owns it.
    #[error("key file {}: belongs to user {owner}, who can change it; run: chown {own} {}", path.display(), path.display())]
    Owner {
        /// Path of the file.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id of this process.
        own: u32,
    },
    /// Other users can put another file in its place.
    #[error("key file {}: other users can replace it, as they can write in {}; run: chmod go-w {}, or move it", path.display(), folder.display(), folder.display())]
    Folder {
        /// Path of the file.
        path: PathBuf,
        /// Its folder, without symbolic links.
        folder: PathBuf,
    },
    /// The content is invalid.
    #[error("key file {}: {why}", path.display())]
    Text {
        /// Path of the file.
        path: PathBuf,
        /// Error in the text.
        why: KeyTextError,
    },
}

/// User id of `nobody`, which services share.
#[cfg(target_os = "linux")]
const NOBODY: u32 = 65_534;

/// Checks who can change a key file, or put another one in its place: root, and the user of this process. For root also
/// the user who owns the file, such as that of a service; but not `nobody`.
#[cfg(target_os = "linux")]
fn check_owners(path: &Path, owner: u32) -> Result<(), KeyFileError> {
    let own = thinair_os::privileges::Account::own().uid();
    if owner != own && owner != 0 && (own != 0 || owner == NOBODY) {
        return Err(KeyFileError::Owner { path: path.into(), owner, own });
    }
    let io = |why| KeyFileError::Io { path: path.into(), why };
    let file = path.canonicalize().map_err(io)?;
    let folder = file.parent().unwrap_or(&file);
    let metadata = folder.metadata().map_err(io)?;
    let mode = metadata.permissions().mode();
    // With the sticky bit, only owners replace their files. The group of the owner's number is the owner's own.
    let others = if metadata.gid() == metadata.uid() { 0o002 } else { 0o022 };
    let is_open = mode & others != 0 && mode & 0o1000 == 0;
    if is_open || ![0, own, owner].contains(&metadata.uid()) {
        return Err(KeyFileError::Folder { path: path.into(), folder: folder.into() });
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check_owners(_: &Path, _: u32) -> Result<(), KeyFileError> {
    Ok(())
}

/// Returns advice for a missing file.
fn hint(why: &io::Error, path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    match (why.kind(), folder) {
        (io::ErrorKind::NotFound, Some(folder)) => format!("; there is no folder {}", folder.display()),
        (io::ErrorKind::NotFound, None) => {
            format!("; make one with: thinair tunnel keygen {}", path.display())
        }
        _ => String::new(),
    }
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

    /// Reads a file, which only its owner may be able to read.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let bad = |why| KeyFileError::Text { path: path.into(), why };
        Self::parse(&Self::read_text(path)?).map_err(bad)
    }

    /// Returns the text of a file with keys, which only its owner may be able to read.
    pub fn read_text(path: &Path) -> Result<Zeroizing<String>, KeyFileError> {
        let io = |why| KeyFileError::Io { path: path.into(), why };
        let mut file = File::open(path).map_err(io)?;
        // Metadata of the open file, so that it cannot be replaced in between.
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(KeyFileError::Exposed { path: path.into(), mode });
        }
        check_owners(path, metadata.uid())?;
        // Allocated with the maximum size: growing would leave copies in memory.
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

    /// Writes a new file with a new key, accessible to its owner only. An existing file is kept, and causes
    /// an error. A file that cannot be written to its end, as on a full disk, is removed.
    pub fn generate(path: &Path, comment: &str, random: &mut dyn Random) -> Result<KeyId, KeyFileError> {
        let io = |why| KeyFileError::Io { path: path.into(), why };
        let (line, id) = Self::line(comment, random);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(io)?;
        file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(|why| {
            let _ = std::fs::remove_file(path);
            io(why)
        })?;
        Ok(id)
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
