//! Files of pre-shared keys: lines as `IDENTITY:KEY`, the key in hexadecimal digits, as those of GnuTLS's psktool(1).

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use thinair_dtls::{MAX_IDENTITY, Psk, PskError};
use thinair_os::privileges;
use zeroize::Zeroizing;

/// Largest file, in octets.
const LARGEST: u64 = 1 << 20;

/// Fewest octets of a key: shorter ones are found by trying.
const SHORTEST_KEY: usize = 8;

/// Reason why a file gives no keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PskFileError {
    /// It cannot be read.
    #[error("`{}`: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// Other users can read it.
    #[error("`{}`: other users can access it (mode {mode:04o}); run: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A line has other contents than it must have. The error has none of them.
    #[error("`{}`, line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Reason.
        why: String,
    },
    /// It has no key, or is too long.
    #[error("`{}`: {why}", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// Reason.
        why: String,
    },
    /// A system call failed.
    #[error(transparent)]
    Os(#[from] thinair_os::Error),
}

/// Reads all keys of a file that nobody but its owner may read. From then on the process leaves no core dumps. Empty lines, and those
/// that begin with `#`, have none.
///
/// # Errors
/// The file cannot be read, is open to others, or has other contents.
pub fn read(path: &Path) -> Result<Vec<Psk>, PskFileError> {
    // Before there is a secret.
    privileges::hide_memory()?;
    let failed = |why| PskFileError::File { path: path.to_owned(), why };
    let mut file = File::open(path).map_err(failed)?;
    // Metadata of the open file, so that it cannot be replaced in between.
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(PskFileError::Exposed { path: path.to_owned(), mode });
    }
    let mut text = Zeroizing::new(String::with_capacity(4_096));
    let len = (&mut file).take(LARGEST + 1).read_to_string(&mut text).map_err(failed)?;
    let contents = |why: &str| PskFileError::Contents { path: path.to_owned(), why: why.to_owned() };
    if len as u64 > LARGEST {
        return Err(contents("it exceeds 1 MiB"));
    }
    let mut keys: Vec<Psk> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |why: String| PskFileError::Line { path: path.to_owned(), line: number, why };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let psk = parsed(line).map_err(wrong)?;
        if keys.iter().any(|other| other.identity() == psk.identity()) {
            return Err(wrong("an earlier line has the same identity".to_owned()));
        }
        keys.push(psk);
    }
    if keys.is_empty() {
        return Err(contents("no key: expected lines as IDENTITY:KEY, the key in hexadecimal digits"));
    }
    Ok(keys)
}

/// Makes a key of 16 random octets: a new file for the client, and a line in the server's file, which is made if there is none. Nobody
/// but their owner can read them.
///
/// # Errors
/// The client's file exists already, the server's has this identity, or they cannot be written; or the system has no random numbers.
pub fn create_pair(client: &Path, server: &Path, identity: &str) -> Result<(), PskFileError> {
    let failed = |path: &Path, why: io::Error| PskFileError::File { path: path.to_owned(), why };
    let other =
        |path: &Path, why: &str| PskFileError::Contents { path: path.to_owned(), why: why.to_owned() };
    if identity.is_empty()
        || identity.len() > MAX_IDENTITY
        || identity.chars().any(char::is_whitespace)
        || identity.starts_with('#')
    {
        return Err(other(client, "an identity has 1 to 128 octets, no spaces, and no # at its start"));
    }
    if server.exists() && read(server)?.iter().any(|psk| psk.identity() == identity.as_bytes()) {
        return Err(other(server, "it has a key for this identity already"));
    }
    let mut key = Zeroizing::new([0; 16]);
    getrandom::fill(&mut key[..]).map_err(|why| failed(client, io::Error::other(why.to_string())))?;
    // With room for all of it: no copy stays behind.
    let mut line = Zeroizing::new(String::with_capacity(identity.len() + 2 * key.len() + 2));
    line.push_str(identity);
    line.push(':');
    for octet in &key[..] {
        // Writing to a string does not fail.
        let _ = write!(line, "{octet:02x}");
    }
    line.push('\n');
    for (path, is_new) in [(client, true), (server, false)] {
        let mut options = OpenOptions::new();
        options.append(true).create(true).create_new(is_new).mode(0o600);
        let written = options.open(path).and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            file.sync_all()
        });
        written.map_err(|why| failed(path, why))?;
    }
    Ok(())
}

/// Reads the one key of a client's file.
///
/// # Errors
/// As for [`read`], or there are several.
pub fn read_one(path: &Path) -> Result<Psk, PskFileError> {
    let mut keys = read(path)?;
    match (keys.pop(), keys.len()) {
        (Some(psk), 0) => Ok(psk),
        (_, others) => {
            let why = format!("it has {} keys: a client has one", others + 1);
            Err(PskFileError::Contents { path: path.to_owned(), why })
        }
    }
}

fn parsed(line: &str) -> Result<Psk, String> {
    // An identity may have colons.
    let (identity, digits) = line.rsplit_once(':').ok_or("expected IDENTITY:KEY")?;
    let mut key = Zeroizing::new(Vec::with_capacity(digits.len() / 2));
    for pair in digits.as_bytes().chunks(2) {
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
        let octet = match pair {
            [high, low] => digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        key.push(octet.ok_or("expected pairs of hexadecimal digits behind the last colon")?);
    }
    if key.len() < SHORTEST_KEY {
        return Err(format!("a key has at least {SHORTEST_KEY} octets; 16 random ones are enough"));
    }
    Psk::new(identity.as_bytes(), &key).map_err(|why: PskError| why.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        // With mode 0600.
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn lines_are_identities_and_keys() {
        let file = file("# keys\n\nphone:000102030405060708090a0b0c0d0e0f\r\na:b:FFfe01020304050607\n");
        let keys = read(file.path()).unwrap();
        let identities: Vec<_> = keys.iter().map(Psk::identity).collect();
        assert_eq!(identities, [&b"phone"[..], b"a:b"]);
        assert!(read_one(file.path()).unwrap_err().to_string().contains("has 2 keys"));
    }

    #[test]
    fn keys_are_made_for_a_client_and_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let [phone, tag, server] = ["phone", "tag", "server"].map(|name| folder.path().join(name));
        create_pair(&phone, &server, "phone").unwrap();
        create_pair(&tag, &server, "tag").unwrap();
        let of = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!(of(&phone) + &of(&tag), of(&server));
        assert_eq!(read_one(&tag).unwrap().identity(), b"tag");
        assert_eq!(read(&server).unwrap().len(), 2);
        for (client, identity) in
            [(&phone, "third"), (&folder.path().join("new"), "tag"), (&folder.path().join("new"), "a b")]
        {
            assert!(create_pair(client, &server, identity).is_err());
        }
        assert_eq!(read(&server).unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_key_is_named_by_its_line_and_not_shown() {
        for (text, why) in [
            ("", "no key"),
            ("phone:0001020304050607\nsecret", "line 2: expected IDENTITY:KEY"),
            ("phone:000102030405060g", "line 1: expected pairs"),
            ("phone:0001020304050607f", "line 1: expected pairs"),
            ("phone:00010203040506", "at least 8 octets"),
            (":0001020304050607", "an identity has 1 to 128 octets"),
            ("a:0001020304050607\na:0001020304050608", "line 2: an earlier line"),
        ] {
            let error = read(file(text).path()).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("0001") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let file = file("phone:0001020304050607");
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = read(file.path()).unwrap_err().to_string();
        assert!(error.contains("(mode 0640); run: chmod 600"), "{error}");
    }
}
