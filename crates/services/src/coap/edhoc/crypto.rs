//! Cryptography of cipher suite 2, as `lakers` wants it, by the crates that OSCORE and DTLS have, too: P-256, AES-CCM-16-64-128, SHA-256.

use aes::Aes128;
use ccm::Ccm;
use ccm::aead::consts::{U8, U13};
use ccm::aead::{AeadInOut as _, KeyInit as _};
use hkdf::Hkdf;
use lakers::{
    AES_CCM_TAG_LEN, BufferCiphertext3, BufferPlaintext3, BytesCcmIvLen, BytesCcmKeyLen, BytesHashLen,
    BytesMaxBuffer, BytesMaxInfoBuffer, BytesP256ElemLen, CryptoTrait, EDHOCError, MAX_BUFFER_LEN,
};
use p256::elliptic_curve::Generate as _;
use p256::elliptic_curve::point::{AffineCoordinates as _, DecompressPoint as _};
use p256::{AffinePoint, PublicKey, SecretKey};
use sha2::{Digest as _, Sha256};

type Aead = Ccm<Aes128, U8, U13>;

/// Cryptography with random numbers of the system. It panics where `lakers` has not checked a length or a point: see
/// [`guarded`](super::guarded).
#[derive(Clone, Copy, Debug)]
pub(super) struct EdhocCrypto;

impl CryptoTrait for EdhocCrypto {
    fn sha256_digest(&mut self, message: &BytesMaxBuffer, len: usize) -> BytesHashLen {
        Sha256::digest(&message[..len]).into()
    }

    fn hkdf_expand(
        &mut self,
        key: &BytesHashLen,
        info: &BytesMaxInfoBuffer,
        info_len: usize,
        len: usize,
    ) -> BytesMaxBuffer {
        let mut output = [0; MAX_BUFFER_LEN];
        let hkdf = Hkdf::<Sha256>::from_prk(key).expect("a key of the length of the hash");
        hkdf.expand(&info[..info_len], &mut output[..len]).expect("at most 255 times the length of the hash");
        output
    }

    fn hkdf_extract(&mut self, salt: &BytesHashLen, input: &BytesP256ElemLen) -> BytesHashLen {
        Hkdf::<Sha256>::extract(Some(salt), input).0.into()
    }

    fn aes_ccm_encrypt_tag_8(
        &mut self,
        key: &BytesCcmKeyLen,
        nonce: &BytesCcmIvLen,
        data: &[u8],
        plaintext: &BufferPlaintext3,
    ) -> BufferCiphertext3 {
        let mut out = BufferCiphertext3::new();
        out.len = plaintext.len + AES_CCM_TAG_LEN;
        let (text, rest) = out.content.split_at_mut(plaintext.len);
        text.copy_from_slice(plaintext.as_slice());
        let tag = Aead::new(key.into()).encrypt_inout_detached(nonce.into(), data, text.into());
        rest[..AES_CCM_TAG_LEN].copy_from_slice(&tag.expect("shorter than 64 KiB"));
        out
    }

    fn aes_ccm_decrypt_tag_8(
        &mut self,
        key: &BytesCcmKeyLen,
        nonce: &BytesCcmIvLen,
        data: &[u8],
        ciphertext: &BufferCiphertext3,
    ) -> Result<BufferPlaintext3, EDHOCError> {
        let bad = |_| EDHOCError::MacVerificationFailed;
        let (text, tag) =
            ciphertext.as_slice().split_last_chunk::<AES_CCM_TAG_LEN>().ok_or(()).map_err(bad)?;
        let mut out = BufferPlaintext3::new();
        out.len = text.len();
        out.content[..text.len()].copy_from_slice(text);
        let opened = Aead::new(key.into()).decrypt_inout_detached(
            nonce.into(),
            data,
            (&mut out.content[..text.len()]).into(),
            tag.into(),
        );
        opened.map_err(|_| ()).map_err(bad)?;
        Ok(out)
    }

    fn p256_ecdh(&mut self, private: &BytesP256ElemLen, public: &BytesP256ElemLen) -> BytesP256ElemLen {
        let private = SecretKey::from_bytes(private.into()).expect("a private key that was checked");
        // Both points with this x-coordinate give the same secret.
        let public: Option<AffinePoint> = AffinePoint::decompress(public.into(), 1.into()).into();
        let public =
            public.and_then(|point| PublicKey::from_affine(point).ok()).expect("a point of the curve");
        (*private.diffie_hellman(&public).raw_secret_bytes()).into()
    }

    fn get_random_byte(&mut self) -> u8 {
        let [octet] = super::random();
        octet
    }

    fn p256_generate_key_pair(&mut self) -> (BytesP256ElemLen, BytesP256ElemLen) {
        let private = SecretKey::generate();
        (private.to_bytes().into(), private.public_key().as_affine().x().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex<const N: usize>(text: &str) -> [u8; N] {
        let digits: Vec<u8> = text.bytes().filter(|digit| !digit.is_ascii_whitespace()).collect();
        let octet = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).expect("digits")
        };
        let octets: Vec<u8> = digits.chunks(2).map(octet).collect();
        octets.try_into().expect("the length of the value")
    }

    fn padded<const N: usize>(octets: &[u8]) -> [u8; N] {
        let mut out = [0; N];
        out[..octets.len()].copy_from_slice(octets);
        out
    }

    /// FIPS 180-2, appendix B.1.
    #[test]
    fn a_digest_is_that_of_the_standard() {
        let digest = EdhocCrypto.sha256_digest(&padded(b"abc"), 3);
        assert_eq!(digest, hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    }

    #[test]
    fn keys_are_derived_as_in_rfc_5869() {
        // The second step of test case 1, section A.1.
        let prk = hex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
        let info: [u8; 10] = hex("f0f1f2f3f4f5f6f7f8f9");
        let out = EdhocCrypto.hkdf_expand(&prk, &padded(&info), 10, 42);
        let expected: [u8; 42] =
            hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
        assert_eq!(out[..42], expected);
        // The first step is HMAC, which RFC 2104 makes of two hashes.
        let (salt, input) = ([7; 32], [9; 32]);
        let inner: Vec<u8> = padded::<64>(&salt).map(|octet| octet ^ 0x36).into_iter().chain(input).collect();
        let outer = padded::<64>(&salt).map(|octet| octet ^ 0x5c).into_iter();
        let outer: Vec<u8> = outer.chain(Sha256::digest(inner)).collect();
        assert_eq!(EdhocCrypto.hkdf_extract(&salt, &input)[..], Sha256::digest(outer)[..]);
    }

    /// RFC 3610, section 8, packet vector 1.
    #[test]
    fn what_is_encrypted_is_that_of_rfc_3610_and_a_changed_octet_is_found() {
        let key = hex("c0c1c2c3c4c5c6c7c8c9cacbcccdcecf");
        let nonce = hex("00000003020100a0a1a2a3a4a5");
        let data: [u8; 8] = hex("0001020304050607");
        let plain = hex::<23>("08090a0b0c0d0e0f101112131415161718191a1b1c1d1e");
        let plain = BufferPlaintext3::new_from_slice(&plain).expect("short");
        let mut sealed = EdhocCrypto.aes_ccm_encrypt_tag_8(&key, &nonce, &data, &plain);
        let expected: [u8; 31] = hex("588c979a61c663d2f066d0c2c0f989806d5f6b61dac38417e8d12cfdf926e0");
        assert_eq!(sealed.as_slice(), expected);
        let opened = EdhocCrypto.aes_ccm_decrypt_tag_8(&key, &nonce, &data, &sealed);
        assert_eq!(opened.expect("authentic").as_slice(), plain.as_slice());
        sealed.content[3] ^= 1;
        assert!(EdhocCrypto.aes_ccm_decrypt_tag_8(&key, &nonce, &data, &sealed).is_err());
        sealed.len = 7;
        assert!(EdhocCrypto.aes_ccm_decrypt_tag_8(&key, &nonce, &data, &sealed).is_err());
    }

    /// RFC 5903, section 8.1.
    #[test]
    fn both_ends_have_the_common_secret_of_rfc_5903() {
        let private = [
            "c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433",
            "c6ef9c5d78ae012a011164acb397ce2088685d8f06bf9be0b283ab46476bee53",
        ];
        let public = [
            "dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c3772581180",
            "d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63",
        ];
        let secret = hex("d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de");
        for (own, other) in [(0, 1), (1, 0)] {
            assert_eq!(EdhocCrypto.p256_ecdh(&hex(private[own]), &hex(public[other])), secret);
        }
        let (one, two) = (EdhocCrypto.p256_generate_key_pair(), EdhocCrypto.p256_generate_key_pair());
        assert_ne!(one, two);
        assert_eq!(EdhocCrypto.p256_ecdh(&one.0, &two.1), EdhocCrypto.p256_ecdh(&two.0, &one.1));
    }
}
