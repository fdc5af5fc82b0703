//! Base64 for octets in JSON.

/// Encodes octets in Base64 (RFC 4648, section 4).
pub fn base64(octets: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(octets.len().div_ceil(3) * 4);
    for chunk in octets.chunks(3) {
        let bits = [0, 1, 2]
            .into_iter()
            .fold(0, |bits, index| bits << 8 | usize::from(chunk.get(index).copied().unwrap_or_default()));
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 0x3F;
            text.push(if digit <= chunk.len() { char::from(ALPHABET[value]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of RFC 4648, section 10.
    #[test]
    fn the_vectors_of_base64() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
