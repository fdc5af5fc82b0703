//! Parameters of a context: `settings.json` and `secret.json`, in the format of aiocoap.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;
use thinair_coap::oscore::ContextParameters;
use zeroize::Zeroizing;

use super::FolderError;

/// Files with parameters; no parameter may be in both.
pub(super) const FILES: [&str; 2] = ["secret.json", "settings.json"];

type Text = Zeroizing<String>;

/// Contents of one file. Octets are in hexadecimal digits, or ASCII. Others are not read: the replay window has one size.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Contents {
    secret_hex: Option<Text>,
    secret_ascii: Option<Text>,
    salt_hex: Option<Text>,
    salt_ascii: Option<Text>,
    #[serde(rename = "sender-id_hex")]
    sender_id_hex: Option<Text>,
    #[serde(rename = "sender-id_ascii")]
    sender_id_ascii: Option<Text>,
    #[serde(rename = "recipient-id_hex")]
    recipient_id_hex: Option<Text>,
    #[serde(rename = "recipient-id_ascii")]
    recipient_id_ascii: Option<Text>,
    #[serde(rename = "id-context_hex")]
    id_context_hex: Option<Text>,
    #[serde(rename = "id-context_ascii")]
    id_context_ascii: Option<Text>,
    algorithm: Option<String>,
    #[serde(rename = "kdf-hashfun")]
    kdf_hashfun: Option<String>,
}

type Octets = Zeroizing<Vec<u8>>;

/// Parameters of a context.
pub(super) struct Settings {
    secret: Octets,
    salt: Option<Octets>,
    sender_id: Octets,
    recipient_id: Octets,
    id_context: Option<Octets>,
}

impl Settings {
    pub(super) fn parameters(&self) -> ContextParameters<'_> {
        ContextParameters {
            master_secret: &self.secret,
            master_salt: self.salt.as_ref().map_or(&[], |salt| &salt[..]),
            id_context: self.id_context.as_ref().map(|id| &id[..]),
            sender_id: &self.sender_id,
            recipient_id: &self.recipient_id,
        }
    }
}

/// Reads the parameters in a folder.
pub(super) fn read(folder: &Path) -> Result<Settings, FolderError> {
    let wrong = |why: String| FolderError::Contents { path: folder.to_owned(), why };
    let mut files = Vec::new();
    for name in FILES {
        let path = folder.join(name);
        let text = match fs::read(&path) {
            Ok(text) => Zeroizing::new(text),
            Err(why) if why.kind() == ErrorKind::NotFound => continue,
            Err(why) => return Err(FolderError::File { path, why }),
        };
        // An error of the parser has the place, and no contents, unless a value has another type: then its text.
        let contents: Contents = serde_json::from_slice(&text).map_err(|why| FolderError::Contents {
            path,
            why: format!("no settings of OSCORE (line {}, column {})", why.line(), why.column()),
        })?;
        files.push(contents);
    }
    if files.is_empty() {
        return Err(wrong("no settings.json: `thinair coap keygen` makes a context".to_owned()));
    }
    for (name, wanted, of) in [
        (
            "algorithm",
            "AES-CCM-16-64-128",
            (|file| file.algorithm.as_ref()) as fn(&Contents) -> Option<&String>,
        ),
        ("kdf-hashfun", "sha256", |file| file.kdf_hashfun.as_ref()),
    ] {
        if let Some(other) = files.iter().filter_map(of).find(|value| *value != wanted) {
            return Err(wrong(format!("{name} {other} is not supported: only {wanted}")));
        }
    }
    let octets = |name: &str, hex: fn(&Contents) -> Option<&Text>, ascii: fn(&Contents) -> Option<&Text>| {
        let hex = files.iter().filter_map(hex).map(|text| {
            hexadecimal(text)
                .ok_or_else(|| wrong(format!("{name}_hex: expected pairs of hexadecimal digits")))
        });
        let ascii = files.iter().filter_map(ascii).map(|text| Ok(Zeroizing::new(text.as_bytes().to_vec())));
        let mut values = hex.chain(ascii);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(wrong(format!("there are several values of {name}"))),
            (value, None) => value.transpose(),
        }
    };
    let needed = |name: &str, value: Option<Octets>| {
        value.ok_or_else(|| wrong(format!("settings.json: {name}_hex is missing")))
    };
    Ok(Settings {
        secret: needed(
            "secret",
            octets("secret", |file| file.secret_hex.as_ref(), |file| file.secret_ascii.as_ref())?,
        )?,
        salt: octets("salt", |file| file.salt_hex.as_ref(), |file| file.salt_ascii.as_ref())?,
        sender_id: needed(
            "sender-id",
            octets("sender-id", |file| file.sender_id_hex.as_ref(), |file| file.sender_id_ascii.as_ref())?,
        )?,
        recipient_id: needed(
            "recipient-id",
            octets(
                "recipient-id",
                |file| file.recipient_id_hex.as_ref(),
                |file| file.recipient_id_ascii.as_ref(),
            )?,
        )?,
        id_context: octets(
            "id-context",
            |file| file.id_context_hex.as_ref(),
            |file| file.id_context_ascii.as_ref(),
        )?,
    })
}

fn hexadecimal(text: &str) -> Option<Octets> {
    let mut octets = Zeroizing::new(Vec::with_capacity(text.len() / 2));
    for pair in text.as_bytes().chunks(2) {
        let [high, low] = pair else { return None };
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
        octets.push(digit(*high)? << 4 | digit(*low)?);
    }
    Some(octets)
}
