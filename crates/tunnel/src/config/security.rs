//! Section `[security]`: protection of datagrams.

use super::settings::{Section, Settings};
use super::told::{ConfigError, Told};
use super::url::Scheme;
use super::words;
use crate::plan::{Security, Suite};

const SUITES: &[(&str, Suite)] = &[
    ("chacha20-poly1305", Suite::ChaCha20Poly1305),
    ("aes-gcm", Suite::AesGcm),
    ("aes-ccm-8", Suite::AesCcm8),
    ("aes-ccm-4", Suite::AesCcm4),
];

const TAGS: &[(&str, Suite)] =
    &[("16", Suite::ChaCha20Poly1305), ("8", Suite::AesCcm8), ("4", Suite::AesCcm4)];

/// Returns the name of a suite.
pub fn suite_name(suite: Suite) -> &'static str {
    SUITES.iter().find(|(_, of)| *of == suite).map_or("", |(name, _)| *name)
}

/// Returns the protection of a carrier. `is_group`: all sites of a mesh share one key.
pub(super) fn security(settings: &Settings, scheme: Scheme, is_group: bool) -> Result<Security, ConfigError> {
    let section = settings.section("security");
    let (open, insecure) = (section.is_true("open")?, section.is_true("insecure")?);
    let of_peer = settings.sections("peer").iter().find_map(|peer| peer.told("key"));
    let key = section.told("key").or(of_peer);
    let told = [("key", key.is_some()), ("open", open), ("insecure", insecure)];
    let told: Vec<_> = told.iter().filter(|(_, is_told)| *is_told).map(|(name, _)| *name).collect();
    if let [first, second, ..] = told[..] {
        let place = section.place_of(second).or(key.map(|told| &told.place));
        return Err(ConfigError::maybe_at(
            place,
            format!("`{first}` and `{second}` contradict each other; take one out"),
        ));
    }
    if told.is_empty() {
        return Err(ConfigError::of_all(unprotected(scheme)));
    }
    if open || insecure {
        let name = if open { "open" } else { "insecure" };
        if let Some(wrong) = refused(scheme, open) {
            return Err(ConfigError::maybe_at(section.place_of(name), wrong));
        }
        for key in ["suite", "tag"] {
            if let Some(told) = section.told(key) {
                return Err(
                    told.error(format!("applies to encrypted datagrams, and `{name}` disables encryption; remove it"))
                );
            }
        }
        return Ok(if open { Security::Open } else { Security::Insecure });
    }
    let Some(key) = key else { return Err(ConfigError::of_all(unprotected(scheme))) };
    match scheme {
        Scheme::UleFile => {
            return Err(key.error(
                "a transport stream in a file cannot be encrypted, since it has no datagrams; give --open (`open = true`) \
                 instead, and encrypt the file by other means if necessary",
            ));
        }
        Scheme::SerialRaw => {
            return Err(key.error(
                "serial+raw:// is for tests with damaged frames, which authentication rejects; use \
                 serial://, or --insecure (`insecure = true`) without a key",
            ));
        }
        Scheme::Udp | Scheme::UleUdp | Scheme::GseUdp | Scheme::Serial => {}
    }
    Ok(Security::Key { path: key_path(key)?, suite: suite(&section, scheme, is_group)? })
}

/// Returns advice if no protection is configured.
fn unprotected(scheme: Scheme) -> String {
    let name = scheme.name();
    match scheme {
        Scheme::UleUdp | Scheme::GseUdp => format!(
            "no protection is configured for {name}://; give --key FILE (`key` in [security]) to encrypt each \
             datagram, or --open (`open = true`) for the standard format, which every receiver can read and anybody \
             can forge"
        ),
        Scheme::UleFile => format!(
            "{name}:// writes a transport stream without protection; confirm this with --open (`open = true` \
             in [security])"
        ),
        Scheme::SerialRaw => format!(
            "{name}:// has no protection; confirm this with --insecure (`insecure = true` in [security])"
        ),
        Scheme::Udp | Scheme::Serial => format!(
            "no protection is configured for {name}://; create a key file with `thinair tunnel keygen FILE`, and \
             give --key FILE (`key` in [security]) at both ends; or give --insecure (`insecure = true`), and anybody \
             who can send a datagram can send packets into the network"
        ),
    }
}

/// Returns the reason why a carrier cannot be used with this kind of missing protection.
fn refused(scheme: Scheme, open: bool) -> Option<&'static str> {
    match (scheme.is_standard(), open) {
        (false, true) => Some(
            "is for ule+udp://, gse+udp:// and ule+file://, which have a standard format; give `key`, or `insecure` to \
             use this carrier without protection",
        ),
        (true, false) => Some(
            "is for udp:// and serial://; use `open` for transport streams and GSE without protection",
        ),
        (true, true) | (false, false) => None,
    }
}

/// Returns the path of a key file. A text that looks like a key is rejected, and not repeated in the error.
pub(super) fn key_path(told: &Told) -> Result<std::path::PathBuf, ConfigError> {
    let text = told.text()?;
    if text.is_empty() {
        return Err(told.error("is empty; give the path of a key file"));
    }
    if looks_like_key(text) {
        return Err(told.error(
            "needs the path of a key file, and the value looks like a key itself, which every user of this machine \
             could read in the list of processes; discard that key, create a new one with `thinair tunnel keygen \
             FILE`, and give FILE",
        ));
    }
    if text == "-" {
        return Err(told.error("keys are not read from standard input; give the path of a key file"));
    }
    Ok(told.place.path(text))
}

/// True for 16 octets or more in hexadecimal, or 32 in base64, without characters that are usual in paths.
fn looks_like_key(text: &str) -> bool {
    let hex = text.len() >= 32 && text.bytes().all(|octet| octet.is_ascii_hexdigit());
    let is_base64 = |octet: u8| octet.is_ascii_alphanumeric() || b"+/-_=".contains(&octet);
    let base64 = matches!(text.len(), 43 | 44 | 86 | 88)
        && text.bytes().all(is_base64)
        && !text.starts_with('/')
        && text.bytes().any(|octet| octet.is_ascii_digit())
        && text.bytes().any(|octet| octet.is_ascii_uppercase());
    hex || base64
}

fn suite(section: &Section, scheme: Scheme, is_group: bool) -> Result<Suite, ConfigError> {
    let by_name = section.read("suite", words::word(SUITES))?;
    let by_tag = section.read("tag", words::word(TAGS))?;
    let other = by_name.filter(|name| by_tag.is_some_and(|tag| tag.tag() != name.tag()));
    if let (Some(name), Some(told)) = (other, section.told("tag")) {
        return Err(told.error(format!(
            "the suite {} has a tag of {} octets; remove `tag` or `suite`",
            suite_name(name),
            name.tag()
        )));
    }
    let default = if scheme.is_serial() { Suite::AesCcm8 } else { Suite::ChaCha20Poly1305 };
    let suite = by_name.or(by_tag).unwrap_or(default);
    let told = section.told("suite").or(section.told("tag"));
    if let (Suite::AesCcm4, true, Some(told)) = (suite, is_group, told) {
        return Err(told.error(
            "a tag of 4 octets is too short for a group, which cannot exchange new keys after wrong tags; give 8 or \
             16",
        ));
    }
    Ok(suite)
}

#[cfg(test)]
mod tests {
    use super::looks_like_key;

    #[test]
    fn keys_do_not_look_like_paths() {
        for key in [
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
            "000102030405060708090A0B0C0D0E0F",
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        ] {
            assert!(looks_like_key(key), "{key}");
        }
        for path in [
            "sat.key",
            "/etc/thinair/sat.key",
            "/home/operator/Tunnels2/keys/satellite-12345",
            "deadbeef",
            "a-rather-long-name-of-a-key-file-in-a-folder",
        ] {
            assert!(!looks_like_key(path), "{path}");
        }
    }
}
