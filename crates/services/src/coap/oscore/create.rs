//! New contexts.

use std::fmt::Write as _;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use zeroize::Zeroizing;

use super::FolderError;

/// Makes a context with a random secret: a new folder for the client, and one for the server. `client_id` is the client's Sender
/// ID, which differs from that of the server's other clients. That of the server is random: no message has it.
///
/// # Errors
/// A folder exists already, or cannot be made; or the system has no random numbers.
pub fn create_pair(client: &Path, server: &Path, client_id: &[u8]) -> Result<(), FolderError> {
    let mut random = Zeroizing::new([0; 16 + 8 + 4]);
    let no_random = |why: getrandom::Error| io::Error::other(why.to_string());
    getrandom::fill(&mut random[..]).map_err(no_random).map_err(FolderError::file(client))?;
    let (secret, others) = random.split_at(16);
    let (salt, server_id) = others.split_at(8);
    create(client, secret, salt, client_id, server_id)?;
    create(server, secret, salt, server_id, client_id)
}

fn create(
    folder: &Path,
    secret: &[u8],
    salt: &[u8],
    sender_id: &[u8],
    recipient_id: &[u8],
) -> Result<(), FolderError> {
    // With room for all of it: no copy stays behind.
    let mut text = Zeroizing::new(String::with_capacity(512));
    for (name, octets) in [
        ("{\"secret", secret),
        (", \"salt", salt),
        (", \"sender-id", sender_id),
        (", \"recipient-id", recipient_id),
    ] {
        // Writing to a string does not fail.
        let _ = write!(text, "{name}_hex\": \"");
        for octet in octets {
            let _ = write!(text, "{octet:02x}");
        }
        text.push('"');
    }
    text.push_str(", \"algorithm\": \"AES-CCM-16-64-128\", \"kdf-hashfun\": \"sha256\"}\n");
    let private = |is_recursive| {
        let mut builder = DirBuilder::new();
        builder.mode(0o700).recursive(is_recursive);
        builder
    };
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let made = parent.map_or(Ok(()), |parent| private(true).create(parent));
    made.and_then(|()| private(false).create(folder)).map_err(FolderError::file(folder))?;
    let path = folder.join("settings.json");
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(FolderError::file(&path))
}
