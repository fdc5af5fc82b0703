//! Key files, and bodies without protection.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use thinair_wire::time::Instant;

use super::room::random;
use crate::seal::key_file::KeyTextError;
use crate::seal::{
    BodyFlags, Destination, Insecure, Key, KeyFileError, Keys, Missing, NotSealed, Opened, Refused, Seal,
    Sender,
};
use crate::unit::SiteId;

const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
const BASE64: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn counting() -> Key {
    Key::new(std::array::from_fn(|i| i as u8))
}

#[test]
fn keys_are_hexadecimal_or_base64() {
    let keys = Keys::one(counting());
    for text in
        [HEX, BASE64, BASE64.trim_end_matches('='), &format!("# ours\n\n  {HEX}  of the ship # 2026\n")]
    {
        assert_eq!(Keys::parse(text).as_ref(), Ok(&keys), "{text}");
    }
    let other = HEX.replace("1F", "20");
    let two = Keys::parse(&format!("{HEX}\n{other}\n")).expect("two keys");
    assert_eq!(two.first(), &counting());
    assert_eq!(two.iter().count(), 2);
}

#[test]
fn what_is_no_key_is_said_by_its_line() {
    let other = HEX.replace("1F", "20");
    let third = HEX.replace("1F", "21");
    let zeros = "0".repeat(64);
    for (text, error) in [
        (String::new(), KeyTextError::Empty),
        ("# nothing\n".into(), KeyTextError::Empty),
        (format!("\n{}", &HEX[1..]), KeyTextError::NotAKey(2)),
        (HEX.replace('0', "g"), KeyTextError::NotAKey(1)),
        (BASE64[..40].into(), KeyTextError::NotAKey(1)),
        (format!("{HEX}\n{BASE64}"), KeyTextError::Again(2)),
        (format!("{HEX}\n{other}\n\n{third}"), KeyTextError::Third(4)),
        (zeros, KeyTextError::Weak(1)),
    ] {
        assert_eq!(Keys::parse(&text), Err(error), "{text}");
        assert!(!error.to_string().contains(&HEX[8..16]), "nothing of a key is said");
    }
}

#[test]
fn a_file_that_others_may_read_is_refused() {
    let path = std::env::temp_dir().join(format!("thinair-key-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let id = Keys::generate(&path, "made by a\ntest", &mut *random(1)).expect("a new file");
    let mode = |mode| fs::set_permissions(&path, Permissions::from_mode(mode)).expect("ours");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(Keys::read(&path).expect("keys").first().id(), id);
    assert!(
        matches!(Keys::generate(&path, "", &mut *random(2)), Err(KeyFileError::Io { .. })),
        "it is there"
    );
    for exposed in [0o640, 0o604, 0o620, 0o660, 0o777] {
        mode(exposed);
        let error = Keys::read(&path).expect_err("exposed").to_string();
        assert!(error.contains(&format!("chmod 600 {}", path.display())), "{error}");
    }
    mode(0o400);
    assert!(Keys::read(&path).is_ok());
    mode(0o600);
    fs::write(&path, "#".repeat(5_000)).expect("writable");
    assert!(matches!(Keys::read(&path), Err(KeyFileError::Text { why: KeyTextError::TooLong, .. })));
    fs::write(&path, [0xff; 64]).expect("writable");
    assert!(matches!(Keys::read(&path), Err(KeyFileError::Text { why: KeyTextError::NotText, .. })));
    // An error contains file, line and reason, and nothing else.
    fs::write(&path, format!("{HEX}\nnonsense\n")).expect("writable");
    let bad = Keys::read(&path).expect_err("no key");
    let start = format!("key file {}: line 2: not a key", path.display());
    assert!(bad.to_string().starts_with(&start) && std::error::Error::source(&bad).is_none(), "{bad}");
    fs::remove_file(&path).expect("ours");
    let gone = Keys::read(&path).expect_err("gone").to_string();
    assert!(gone.contains("No such file") && gone.contains("keygen"), "{gone}");
    assert!(Keys::read(&std::env::temp_dir()).is_err(), "a directory");
}

#[test]
fn a_file_that_others_may_replace_is_refused() {
    let folder = std::env::temp_dir().join(format!("thinair-key-folder-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("a new folder");
    let path = folder.join("key");
    Keys::generate(&path, "", &mut *random(1)).expect("a new file");
    for (mode, is_safe) in [(0o755, true), (0o777, false), (0o1777, true), (0o702, false), (0o775, true)] {
        fs::set_permissions(&folder, Permissions::from_mode(mode)).expect("ours");
        match Keys::read(&path) {
            Ok(_) => assert!(is_safe, "{mode:o}"),
            Err(error) => {
                assert!(!is_safe && error.to_string().contains("chmod go-w"), "{mode:o}: {error}");
            }
        }
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("ours");
    let give = |path: &Path, user| std::os::unix::fs::chown(path, Some(user), None);
    // Only root gives files to others.
    if give(&path, 65_534).is_ok() {
        let error = Keys::read(&path).expect_err("of nobody").to_string();
        assert!(error.contains("belongs to user 65534") && error.contains("chown 0"), "{error}");
        give(&path, 12_345).expect("root");
        assert!(Keys::read(&path).is_ok(), "the user of a service");
        give(&folder, 12_346).expect("root");
        assert!(matches!(Keys::read(&path), Err(KeyFileError::Folder { .. })), "the folder of another user");
        std::os::unix::fs::chown(&folder, Some(0), Some(12_345)).expect("root");
        for (mode, is_safe) in [(0o755, true), (0o775, false), (0o1775, true)] {
            fs::set_permissions(&folder, Permissions::from_mode(mode)).expect("ours");
            assert_eq!(Keys::read(&path).is_ok(), is_safe, "{mode:o} with a group of others");
        }
    }
    fs::remove_dir_all(folder).expect("ours");
}

#[test]
fn a_key_is_never_shown() {
    let shown = format!("{:?} {:?}", counting(), Keys::one(counting()));
    assert!(!shown.contains("0, 1, 2") && !shown.contains("000102") && !shown.contains("AAEC"), "{shown}");
    assert!(shown.contains(&counting().id().to_string()));
}

/// Id according to another implementation of HKDF-SHA256 (RFC 5869): Python's hmac module.
#[test]
fn the_id_of_a_key_is_of_hkdf() {
    assert_eq!(counting().id().to_string(), "96a9a443");
}

#[test]
fn insecure_bodies_have_an_octet_in_front() {
    let [near, far] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 5_000)));
    let mut seal = Seal::Insecure(Insecure::peers(vec![Some(near), Some(far)]));
    let (now, flags) = (Instant::ZERO, BodyFlags { several: true, addressed: false });
    let mut out = Vec::new();
    seal.seal(now, Destination::Peer(1), flags, b"body", &mut out).expect("a peer");
    assert_eq!(out, b"\xa8body");
    let sealed = seal.seal(now, Destination::Peer(2), flags, b"body", &mut Vec::new());
    assert_eq!(sealed, Err(NotSealed::NoDestination));
    let body = Opened::Body {
        from: Sender::Peer(1),
        flags,
        body: b"body",
        newest: false,
        missing: Missing::Uncounted,
        session: None,
    };
    assert_eq!(seal.open(now, Some(far.into()), &mut out), body);
    let stranger = SocketAddr::from(([192, 0, 2, 3], 5_000));
    assert_eq!(seal.open(now, Some(stranger.into()), &mut out), Opened::Refused(Refused::Unknown));
    for bad in [&b""[..], b"\xa0", b"\xb0body", b"\x20body"] {
        assert_eq!(seal.open(now, Some(far.into()), &mut bad.to_vec()), Opened::Refused(Refused::Malformed));
    }
}

#[test]
fn insecure_groups_say_who_sends() {
    let site = |number| SiteId::new(number).expect("not zero");
    let mut seal = Seal::Insecure(Insecure::group(Some(site(1)), vec![site(2)]));
    let (now, flags) = (Instant::ZERO, BodyFlags::default());
    let mut out = Vec::new();
    seal.seal(now, Destination::Everybody, flags, b"body", &mut out).expect("it sends");
    assert_eq!(out, b"\xa0\x01body");
    assert_eq!(seal.open(now, None, &mut out), Opened::Refused(Refused::Reflected));
    out[1] = 2;
    let from = Sender::Site(site(2));
    assert_eq!(
        seal.open(now, None, &mut out),
        Opened::Body {
            from,
            flags,
            body: b"body",
            newest: false,
            missing: Missing::Uncounted,
            session: None
        }
    );
    out[1] = 3;
    assert_eq!(seal.open(now, None, &mut out), Opened::Refused(Refused::Unknown));
}
