//! Section `[security]`: protection of datagrams.

use std::time::Duration;

use super::setting::{ConfigError, ConfiguredValue};
use super::settings::{Settings, SettingsSection};
use super::url::CarrierScheme;
use super::words;
use crate::site_config::{Rekey, Security, Suite};

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
pub(super) fn security(
    settings: &Settings,
    scheme: CarrierScheme,
    is_group: bool,
) -> Result<Security, ConfigError> {
    let section = settings.section("security");
    let (open, insecure) = (section.is_true("open")?, section.is_true("insecure")?);
    let of_peer = settings.sections("peer").iter().find_map(|peer| peer.setting("key"));
    let private = section.setting("private_key");
    let key = section.setting("key").or(of_peer).or(private);
    let public = settings.sections("peer").iter().find_map(|peer| peer.setting("public_key"));
    let public = public.or(section.setting("peers"));
    if let (Some(public), None) = (public, private) {
        return Err(public.error(
            "needs a private key of this end; create one with `thinair tunnel keygen FILE`, and give --private-key FILE \
             (`private_key` in [security])",
        ));
    }
    let given = [("key", key.is_some()), ("open", open), ("insecure", insecure)];
    let given: Vec<_> = given.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
    if let [first, second, ..] = given[..] {
        let place = section.place_of(second).or(key.map(|setting| &setting.place));
        return Err(ConfigError::maybe_at(
            place,
            format!("`{first}` and `{second}` contradict each other; take one out"),
        ));
    }
    if given.is_empty() {
        return Err(ConfigError::of_all(unprotected(scheme)));
    }
    if open || insecure {
        let name = if open { "open" } else { "insecure" };
        if let Some(wrong) = refused(scheme, open) {
            return Err(ConfigError::maybe_at(section.place_of(name), wrong));
        }
        for key in ["suite", "tag", "rekey"] {
            if let Some(setting) = section.setting(key) {
                return Err(setting.error(format!(
                    "applies to encrypted datagrams, and `{name}` disables encryption; remove it"
                )));
            }
        }
        return Ok(if open { Security::Open } else { Security::Insecure });
    }
    let Some(key) = key else { return Err(ConfigError::of_all(unprotected(scheme))) };
    match scheme {
        CarrierScheme::UleFile => {
            return Err(key.error(
                "a transport stream in a file cannot be encrypted, since it has no datagrams; give --open (`open = true`) \
                 instead, and encrypt the file by other means if necessary",
            ));
        }
        CarrierScheme::SerialRaw => {
            return Err(key.error(
                "serial+raw:// is for tests with damaged frames, which authentication rejects; use \
                 serial://, or --insecure (`insecure = true`) without a key",
            ));
        }
        CarrierScheme::Udp | CarrierScheme::UleUdp | CarrierScheme::GseUdp | CarrierScheme::Serial => {}
    }
    if let (Some(peers), true) = (section.setting("peers"), is_group) {
        return Err(peers.error("is for a hub, and the sites of a mesh have a [[site]] each; remove it"));
    }
    if let (Some(private), true) = (private, is_group) {
        return Err(private.error(
            "is for two ends or several peers; the sites of a mesh share one key: give `key` instead",
        ));
    }
    let [path, private] = [section.setting("key"), private].map(|setting| setting.map(key_path).transpose());
    let (path, private) = (path?, private?);
    if let (Some(setting), true) = (section.setting("private_key"), path.is_some() && path == private) {
        return Err(
            setting.error("is the shared key file, which the other end has, too; create a file for each use")
        );
    }
    let suite = suite(&section, scheme, is_group)?;
    let is_chosen = section.setting("suite").or(section.setting("tag")).is_some();
    let negotiates = !is_chosen && !is_group && suite.tag() == Suite::AesGcm.tag();
    let rekey = section.read("rekey", rekey)?.unwrap_or_default();
    if let (Some(setting), true) = (section.setting("rekey"), is_group) {
        return Err(
            setting.error("is for two ends; the keys of a mesh are new at each start of a site. Remove it")
        );
    }
    Ok(Security::Key { path, private, suite, negotiates, rekey })
}

/// Parses the age of session keys.
fn rekey(text: &str) -> Result<Rekey, String> {
    const RANGE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(7_200)];
    if text == "auto" {
        return Ok(Rekey::Auto);
    }
    let age = words::span(text).ok().filter(|age| (RANGE[0]..=RANGE[1]).contains(age));
    age.map(Rekey::Every).ok_or_else(|| "give a time from 1min to 2h, or auto".to_owned())
}

/// Returns advice if no protection is configured.
fn unprotected(scheme: CarrierScheme) -> String {
    let name = scheme.name();
    match scheme {
        CarrierScheme::UleUdp | CarrierScheme::GseUdp => format!(
            "no protection is configured for {name}://; give --key FILE (`key` in [security]) to encrypt each \
             datagram, or --open (`open = true`) for the standard format, which every receiver can read and anybody \
             can forge"
        ),
        CarrierScheme::UleFile => format!(
            "{name}:// writes a transport stream without protection; confirm this with --open (`open = true` \
             in [security])"
        ),
        CarrierScheme::SerialRaw => format!(
            "{name}:// has no protection; confirm this with --insecure (`insecure = true` in [security])"
        ),
        CarrierScheme::Udp | CarrierScheme::Serial => format!(
            "no protection is configured for {name}://; create a key file at each end with `thinair tunnel keygen FILE`, and \
             give --private-key FILE (`private_key` in [security]) and --public-key KEY of the other end (`public_key` in \
             [[peer]]), or one file at both ends with --key FILE (`key`); or give --insecure (`insecure = true`), and anybody \
             who can send a datagram can send packets into the network"
        ),
    }
}

/// Returns the reason why a carrier cannot be used with this kind of missing protection.
fn refused(scheme: CarrierScheme, open: bool) -> Option<&'static str> {
    match (scheme.is_standard(), open) {
        (false, true) => Some(
            "is for ule+udp://, gse+udp:// and ule+file://, which have a standard format; give `key`, or `insecure` to \
             use this carrier without protection",
        ),
        (true, false) => {
            Some("is for udp:// and serial://; use `open` for transport streams and GSE without protection")
        }
        (true, true) | (false, false) => None,
    }
}

/// Returns the path of a key file. A text that looks like a key is rejected, and not repeated in the error.
pub(super) fn key_path(setting: &ConfiguredValue) -> Result<std::path::PathBuf, ConfigError> {
    let text = setting.text()?;
    if text.is_empty() {
        return Err(setting.error("is empty; give the path of a key file"));
    }
    if looks_like_key(text) {
        return Err(setting.error(
            "needs the path of a key file, and the value looks like a key itself, which every user of this machine \
             could read in the list of processes; discard that key, create a new one with `thinair tunnel keygen \
             FILE`, and give FILE",
        ));
    }
    if text == "-" {
        return Err(setting.error("keys are not read from standard input; give the path of a key file"));
    }
    Ok(setting.place.path(text))
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

fn suite(section: &SettingsSection, scheme: CarrierScheme, is_group: bool) -> Result<Suite, ConfigError> {
    let by_name = section.read("suite", words::word(SUITES))?;
    let by_tag = section.read("tag", words::word(TAGS))?;
    let other = by_name.filter(|name| by_tag.is_some_and(|tag| tag.tag() != name.tag()));
    if let (Some(name), Some(setting)) = (other, section.setting("tag")) {
        return Err(setting.error(format!(
            "the suite {} has a tag of {} octets; remove `tag` or `suite`",
            suite_name(name),
            name.tag()
        )));
    }
    let default = if scheme.is_serial() { Suite::AesCcm8 } else { Suite::ChaCha20Poly1305 };
    let suite = by_name.or(by_tag).unwrap_or(default);
    let setting = section.setting("suite").or(section.setting("tag"));
    if let (Suite::AesCcm4, true, Some(setting)) = (suite, is_group, setting) {
        return Err(setting.error(
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
