use std::fs::{self, Permissions};

use super::*;

const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";

/// A source that repeats an octet, except the first one.
fn random(seed: u8) -> impl FnMut(&mut [u8]) + Send {
    move |octets: &mut [u8]| {
        octets.fill(seed);
        octets[0] = 0;
    }
}

#[test]
fn a_file_that_others_may_read_is_refused() {
    let path = std::env::temp_dir().join(format!("thinair-key-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let id = generate(&path, "made by a\ntest", &mut random(1)).expect("a new file");
    let mode = |mode| fs::set_permissions(&path, Permissions::from_mode(mode)).expect("ours");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(read(&path).expect("keys").first().id(), id);
    assert!(matches!(generate(&path, "", &mut random(2)), Err(KeyFileError::Io { .. })), "it is there");
    for exposed in [0o640, 0o604, 0o620, 0o660, 0o777] {
        mode(exposed);
        let error = read(&path).expect_err("exposed").to_string();
        assert!(error.contains(&format!("chmod 600 {}", path.display())), "{error}");
    }
    mode(0o400);
    assert!(read(&path).is_ok());
    mode(0o600);
    fs::write(&path, "#".repeat(5_000)).expect("writable");
    assert!(matches!(read(&path), Err(KeyFileError::Text { why: KeyTextError::TooLong, .. })));
    fs::write(&path, [0xff; 64]).expect("writable");
    assert!(matches!(read(&path), Err(KeyFileError::Text { why: KeyTextError::NotText, .. })));
    // An error contains file, line and reason, and nothing else.
    fs::write(&path, format!("{HEX}\nnonsense\n")).expect("writable");
    let bad = read(&path).expect_err("no key");
    let start = format!("key file {}: line 2: not a key", path.display());
    assert!(bad.to_string().starts_with(&start) && std::error::Error::source(&bad).is_none(), "{bad}");
    fs::remove_file(&path).expect("ours");
    let gone = read(&path).expect_err("gone").to_string();
    assert!(gone.contains("No such file") && gone.contains("keygen"), "{gone}");
    assert!(read(&std::env::temp_dir()).is_err(), "a directory");
}

#[test]
fn a_file_that_others_may_replace_is_refused() {
    let folder = std::env::temp_dir().join(format!("thinair-key-folder-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("a new folder");
    let path = folder.join("key");
    generate(&path, "", &mut random(1)).expect("a new file");
    for (mode, is_safe) in [(0o755, true), (0o777, false), (0o1777, true), (0o702, false), (0o775, true)] {
        fs::set_permissions(&folder, Permissions::from_mode(mode)).expect("ours");
        match read(&path) {
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
        let error = read(&path).expect_err("of nobody").to_string();
        assert!(error.contains("belongs to user 65534") && error.contains("chown 0"), "{error}");
        give(&path, 12_345).expect("root");
        assert!(read(&path).is_ok(), "the user of a service");
        give(&folder, 12_346).expect("root");
        assert!(matches!(read(&path), Err(KeyFileError::Folder { .. })), "the folder of another user");
        std::os::unix::fs::chown(&folder, Some(0), Some(12_345)).expect("root");
        for (mode, is_safe) in [(0o755, true), (0o775, false), (0o1775, true)] {
            fs::set_permissions(&folder, Permissions::from_mode(mode)).expect("ours");
            assert_eq!(read(&path).is_ok(), is_safe, "{mode:o} with a group of others");
        }
    }
    fs::remove_dir_all(folder).expect("ours");
}
