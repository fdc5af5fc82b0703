//! Files of an end: its private key, its credential, and those of its peers.
//!
//! `NAME.key` has the private key, `NAME.ccs` beside it the credential of that key; every other `.ccs` file of the folder is the
//! credential of a peer, and `PEER.rights.json` has the rights of that peer at a server.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use thinair_coap::oscore::overwriting_stack;
use thinair_os::privileges;
use zeroize::Zeroizing;

use super::credential::{Credential, PrivateKey};
use crate::coap::oscore::FolderError;
use crate::coap::server::Rights;

/// Octets of the stack on which a private key may be after its files were read.
const STACK: usize = 1 << 16;

/// Ending of the name of a credential's file.
const CREDENTIAL: &str = "ccs";

/// Private key and credential of an end, with the credentials of its peers.
#[derive(Clone, Debug)]
pub struct Identity {
    pub(super) key: PrivateKey,
    pub(super) credential: Credential,
    pub(super) peers: Vec<Peer>,
}

/// A peer that an end accepts.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Name of the credential's file, without its ending.
    pub name: String,
    /// Credential.
    pub credential: Credential,
    /// Rights at a server.
    pub rights: Rights,
}

impl Identity {
    /// Reads the private key in a file, its credential, and the credentials of peers in its folder. From then on the process leaves
    /// no core dumps.
    ///
    /// # Errors
    /// A file cannot be read, or has other contents; others than its owner may read the private key; two credentials have one kid;
    /// or there is no peer.
    pub fn read(path: &Path) -> Result<Self, FolderError> {
        overwriting_stack::<STACK, _>(|| Self::read_files(path))
    }

    fn read_files(path: &Path) -> Result<Self, FolderError> {
        // Before there is a secret.
        privileges::hide_memory()?;
        let mode = fs::metadata(path).map_err(FolderError::file(path))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(wrong(path, "others may read this private key: `chmod 600` it, or make a new one"));
        }
        let octets = Zeroizing::new(fs::read(path).map_err(FolderError::file(path))?);
        let key = PrivateKey::decode(&octets);
        let key = key.ok_or_else(|| wrong(path, "no private key of P-256 as a COSE_Key in CBOR"))?;
        let own = path.with_extension(CREDENTIAL);
        let credential = credential(&own)?;
        if !key.is_of(&credential) {
            return Err(wrong(&own, "this is not the credential of the private key beside it"));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(FolderError::file(folder))?;
        let mut paths: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == CREDENTIAL) && *path != own);
        paths.retain(|path| path.file_name() != own.file_name());
        paths.sort();
        let (mut peers, mut kids) = (Vec::new(), BTreeMap::new());
        for path in paths {
            let credential = self::credential(&path)?;
            if key.is_of(&credential) {
                return Err(wrong(
                    &path,
                    "this is a credential of the private key of this end, not of a peer",
                ));
            }
            if let Some(other) = kids.insert(credential.kid().to_vec(), path.clone()) {
                return Err(wrong(&path, &format!("it has the same kid as `{}`", other.display())));
            }
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let rights = Rights::read_file(&path.with_extension("rights.json"))?;
            peers.push(Peer { name, credential, rights });
        }
        if peers.is_empty() {
            return Err(wrong(folder, "no credential of a peer: `thinair coap pair` exchanges them"));
        }
        Ok(Self { key, credential, peers })
    }

    /// Creates an identity without files.
    pub const fn new(key: PrivateKey, credential: Credential, peers: Vec<Peer>) -> Self {
        Self { key, credential, peers }
    }

    /// Returns the peers.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }
}

fn wrong(path: &Path, why: &str) -> FolderError {
    FolderError::Contents { path: path.to_owned(), why: why.to_owned() }
}

fn credential(path: &Path) -> Result<Credential, FolderError> {
    let octets = fs::read(path).map_err(FolderError::file(path))?;
    let credential = Credential::decode(&octets);
    let why = "no credential: a CWT Claims Set in CBOR with a public key of P-256 and a kid of 1 to 7 octets, of 128 octets at most";
    credential.ok_or_else(|| wrong(path, why))
}

/// Creates a private key in the new file `path`, which only its owner can read, and its credential beside it. `kid` differs from
/// those of the other ends that a peer knows.
///
/// # Errors
/// A file exists already, or cannot be made; kid or subject are too long.
pub fn create(path: &Path, kid: &[u8], subject: &str) -> Result<Credential, FolderError> {
    privileges::hide_memory()?;
    let key = PrivateKey::random();
    let credential = key.credential(kid, subject);
    let credential =
        credential.ok_or_else(|| wrong(path, "the kid has 1 to 7 octets, and the subject at most 23"))?;
    if path.extension().is_some_and(|ending| ending == CREDENTIAL) {
        return Err(wrong(path, "the file of a private key has another ending than its credential"));
    }
    write(path, &key.encode(), 0o600)?;
    write(&path.with_extension(CREDENTIAL), credential.encode(), 0o644)?;
    Ok(credential)
}

/// Exchanges credentials between the folders of two ends, with a private key `own.key` in each: a new one, unless there is one. The
/// file of a peer has the name of its folder.
///
/// # Errors
/// A file cannot be made or read; or one end has a credential of this name already.
pub fn pair(client: &Path, server: &Path) -> Result<(), FolderError> {
    let name = |folder: &Path| {
        let name = fs::canonicalize(folder).map_err(FolderError::file(folder))?;
        Ok::<_, FolderError>(name.file_name().unwrap_or_default().to_string_lossy().into_owned())
    };
    let mut ends = Vec::new();
    for (folder, other) in [(client, server), (server, client)] {
        DirBuilder::new().mode(0o700).recursive(true).create(folder).map_err(FolderError::file(folder))?;
        let key = folder.join("own.key");
        let subject = name(folder)?;
        let credential = match key.exists() {
            true => credential(&key.with_extension(CREDENTIAL))?,
            false => create(&key, &free_kid(&[folder, other])?, subject.get(..23).unwrap_or(&subject))?,
        };
        ends.push((folder, subject, credential));
    }
    let [(_, client_name, of_client), (_, server_name, of_server)] = &ends[..] else { return Ok(()) };
    for (folder, peer, credential) in [(client, server_name, of_server), (server, client_name, of_client)] {
        write(&folder.join(peer).with_extension(CREDENTIAL), credential.encode(), 0o644)?;
    }
    Ok(())
}

/// Returns a kid that no credential in the folders has: of one octet, which takes one in a message, while there is one.
fn free_kid(folders: &[&Path]) -> Result<Vec<u8>, FolderError> {
    let mut taken = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|ending| ending == CREDENTIAL) {
                taken.push(credential(&entry.path())?.kid().to_vec());
            }
        }
    }
    let mut random = [0; 2];
    getrandom::fill(&mut random).map_err(|why| FolderError::file(folders[0])(io::Error::other(why)))?;
    let short = super::short_ids(random[0]).map(|id| vec![id]).find(|kid| !taken.contains(kid));
    Ok(short.unwrap_or_else(|| random.to_vec()))
}

/// Writes a new file.
fn write(path: &Path, octets: &[u8], mode: u32) -> Result<(), FolderError> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(octets)?;
        file.sync_all()
    };
    write().map_err(|why| match why.kind() {
        ErrorKind::AlreadyExists => wrong(path, "there is such a file: remove it first if nothing uses it"),
        _ => FolderError::File { path: PathBuf::from(path), why },
    })
}
