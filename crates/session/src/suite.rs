//! Ciphers, and the derivation of their keys. Inputs of a cipher are a counter, the clear header, and the
//! body; packets are unknown here.
//!
//! Nonces are formed as in TLS 1.3 (RFC 8446, section 5.3): the counter in network order after four zero
//! octets, XOR an IV that is derived with the key.

use std::fmt;
use std::ops::Range;

use aes::Aes128;
use aes_gcm::Aes128Gcm;
use ccm::Ccm;
use ccm::aead::array::ArraySize;
use ccm::aead::consts::{U4, U8, U12};
use ccm::aead::{AeadInOut, KeyInit, Nonce, Tag};
use chacha20poly1305::ChaCha20Poly1305;
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// Cipher and tag length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// ChaCha20-Poly1305 (RFC 8439): a tag of 16 octets.
    ChaCha20Poly1305,
    /// AES-128-GCM (RFC 5116): a tag of 16 octets.
    AesGcm,
    /// AES-128-CCM with a tag of 8 octets (RFC 6655).
    AesCcm8,
    /// AES-128-CCM with a tag of 4 octets, and new keys after 65,536 wrong tags.
    AesCcm4,
}

impl Suite {
    /// All suites.
    pub const ALL: [Self; 4] = [Self::ChaCha20Poly1305, Self::AesGcm, Self::AesCcm8, Self::AesCcm4];

    /// Length of the tag in octets.
    pub const fn tag(self) -> usize {
        match self {
            Self::ChaCha20Poly1305 | Self::AesGcm => 16,
            Self::AesCcm8 => 8,
            Self::AesCcm4 => 4,
        }
    }

    /// Number in handshakes and announcements.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::ChaCha20Poly1305 => 1,
            Self::AesCcm8 => 2,
            Self::AesCcm4 => 3,
            Self::AesGcm => 4,
        }
    }

    /// Number of wrong tags after which a key is no longer used. With a tag of 4 octets, one forger out of
    /// 65,536 then has had one packet accepted. Longer tags never reach a limit.
    pub(super) const fn forgeries(self) -> u64 {
        match self {
            Self::ChaCha20Poly1305 | Self::AesGcm | Self::AesCcm8 => u64::MAX,
            Self::AesCcm4 => 1 << 16,
        }
    }

    const fn key_length(self) -> usize {
        match self {
            Self::ChaCha20Poly1305 => 32,
            Self::AesGcm | Self::AesCcm8 | Self::AesCcm4 => 16,
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
            Self::AesGcm => "AES-128-GCM",
            Self::AesCcm8 | Self::AesCcm4 => "AES-128-CCM",
        };
        write!(f, "{name}, a tag of {} octets", self.tag())
    }
}

/// HKDF-Expand with the key extracted from `secret` and `salt`; `label` names the purpose (RFC 5869).
pub(super) fn derive(salt: &[u8], secret: &[u8], label: &[&[u8]], out: &mut [u8]) {
    let hkdf = Hkdf::<Sha256>::new(Some(salt), secret);
    // The only possible error is an output of more than 255 hashes.
    hkdf.expand_multi_info(label, out).expect("a key is shorter than 8,160 octets");
}

enum AeadKey {
    ChaCha20Poly1305(ChaCha20Poly1305),
    AesGcm(Box<Aes128Gcm>),
    AesCcm8(Box<Ccm<Aes128, U8, U12>>),
    AesCcm4(Box<Ccm<Aes128, U4, U12>>),
}

/// Key and IV of one direction.
pub(super) struct Cipher {
    algorithm: AeadKey,
    iv: Zeroizing<[u8; 12]>,
    #[cfg(test)]
    pub(super) name: [u8; 32],
}

impl Cipher {
    /// Derives key and IV of `suite` from `secret` and `salt`. `label` names the purpose; the number of the
    /// suite is added, so that suites never share a key.
    pub(super) fn derive(suite: Suite, salt: &[u8], secret: &[u8], label: &[&[u8]]) -> Self {
        let mut material = Zeroizing::new([0; 44]);
        let number = [suite.number()];
        let mut info = [&[][..]; 8];
        info[..label.len()].copy_from_slice(label);
        info[label.len()] = &number;
        derive(salt, secret, &info[..=label.len()], &mut material[..]);
        let (key, rest) = material.split_at(suite.key_length());
        let mut iv = Zeroizing::new([0; 12]);
        iv.copy_from_slice(&rest[..12]);
        let algorithm = match suite {
            Suite::ChaCha20Poly1305 => AeadKey::ChaCha20Poly1305(new(key)),
            Suite::AesGcm => AeadKey::AesGcm(Box::new(new(key))),
            Suite::AesCcm8 => AeadKey::AesCcm8(Box::new(new(key))),
            Suite::AesCcm4 => AeadKey::AesCcm4(Box::new(new(key))),
        };
        Self {
            algorithm,
            iv,
            #[cfg(test)]
            name: *material.first_chunk().expect("44 octets"),
        }
    }

    /// Encrypts the octets of `out` after `header`, which is the place of the associated data, and appends the tag.
    /// **A counter must never be used twice.**
    pub(super) fn seal(&self, counter: u64, header: Range<usize>, out: &mut Vec<u8>) {
        #[cfg(test)]
        super::tests::nonces::used(self.name, counter);
        let nonce = self.nonce(counter);
        match &self.algorithm {
            AeadKey::ChaCha20Poly1305(cipher) => seal(cipher, nonce, header, out),
            AeadKey::AesGcm(cipher) => seal(&**cipher, nonce, header, out),
            AeadKey::AesCcm8(cipher) => seal(&**cipher, nonce, header, out),
            AeadKey::AesCcm4(cipher) => seal(&**cipher, nonce, header, out),
        }
    }

    /// Decrypts body and tag in place; returns the length of the body, or `None` if the tag is wrong.
    pub(super) fn open(&self, counter: u64, header: &[u8], sealed: &mut [u8]) -> Option<usize> {
        let nonce = self.nonce(counter);
        match &self.algorithm {
            AeadKey::ChaCha20Poly1305(cipher) => open(cipher, nonce, header, sealed),
            AeadKey::AesGcm(cipher) => open(&**cipher, nonce, header, sealed),
            AeadKey::AesCcm8(cipher) => open(&**cipher, nonce, header, sealed),
            AeadKey::AesCcm4(cipher) => open(&**cipher, nonce, header, sealed),
        }
    }

    fn nonce(&self, counter: u64) -> [u8; 12] {
        let mut nonce = *self.iv;
        for (octet, part) in nonce[4..].iter_mut().zip(counter.to_be_bytes()) {
            *octet ^= part;
        }
        nonce
    }
}

fn new<C: KeyInit>(key: &[u8]) -> C {
    C::new_from_slice(key).expect("as long as the suite says")
}

fn seal<C: AeadInOut<NonceSize = U12>>(cipher: &C, nonce: [u8; 12], header: Range<usize>, out: &mut Vec<u8>) {
    let (before, body) = out.split_at_mut(header.end);
    let tag = cipher
        .encrypt_inout_detached(&Nonce::<C>::from(nonce), &before[header.start..], body.into())
        .expect("a body is shorter than 2^24 octets");
    out.extend_from_slice(&tag);
}

fn open<C: AeadInOut<NonceSize = U12>>(
    cipher: &C,
    nonce: [u8; 12],
    header: &[u8],
    sealed: &mut [u8],
) -> Option<usize>
where
    C::TagSize: ArraySize,
{
    let length = sealed.len().checked_sub(tag_size::<C>())?;
    let (body, tag) = sealed.split_at_mut(length);
    let tag = Tag::<C>::try_from(&*tag).ok()?;
    cipher.decrypt_inout_detached(&Nonce::<C>::from(nonce), header, body.into(), &tag).ok()?;
    Some(length)
}

fn tag_size<C: AeadInOut>() -> usize {
    <C::TagSize as ccm::aead::array::typenum::Unsigned>::USIZE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 4 of "The Galois/Counter Mode of Operation (GCM)" (McGrew and Viega, 2005): 60 octets after
    /// 20 octets of associated data.
    #[test]
    fn gcm_is_that_of_its_paper() {
        let octets = |hex: &str| -> Vec<u8> {
            let digits = hex.as_bytes().chunks(2);
            digits
                .map(|two| u8::from_str_radix(str::from_utf8(two).expect("ASCII"), 16).expect("hex"))
                .collect()
        };
        let cipher: Aes128Gcm = new(&octets("feffe9928665731c6d6a8f9467308308"));
        let nonce = *octets("cafebabefacedbaddecaf888").first_chunk().expect("12 octets");
        let header = octets("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let body = octets(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
             1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        );
        let mut datagram = [&header[..], &body].concat();
        seal(&cipher, nonce, 0..header.len(), &mut datagram);
        let expected = octets(
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
             21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e0915bc94fbc3221a5db94fae95ae7121a47",
        );
        assert_eq!(&datagram[header.len()..], expected);
        let (clear, sealed) = datagram.split_at_mut(header.len());
        assert_eq!(open(&cipher, nonce, clear, sealed), Some(body.len()));
        assert_eq!(&sealed[..body.len()], body);
    }
}
