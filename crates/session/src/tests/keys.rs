//! Keys and their text.

use crate::{Key, KeyTextError, Keys};

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
