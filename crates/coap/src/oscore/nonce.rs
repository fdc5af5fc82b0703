//! Identifiers, Partial IVs, nonces, and the additional authenticated data. RFC 8613, sections 5.2 and 5.4.

use super::MAX_ID;

/// Octets of a nonce of AES-CCM-16-64-128.
pub(super) const NONCE: usize = 13;

/// Largest Partial IV. RFC 8613, section 7.2.1.
pub(super) const MAX_NUMBER: u64 = (1 << 40) - 1;

/// `alg_aead` of AES-CCM-16-64-128 in CBOR. RFC 9053, section 4.2.
pub(super) const ALGORITHM: u8 = 10;

/// A Sender ID or Recipient ID: 0 to [`MAX_ID`] octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    len: u8,
    octets: [u8; MAX_ID],
}

impl Id {
    pub(crate) fn new(octets: &[u8]) -> Option<Self> {
        let mut id = Self { len: octets.len() as u8, octets: [0; MAX_ID] };
        id.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(id)
    }

    pub(super) fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// A Partial IV in as few octets as it needs, and at least one.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartialIv([u8; 8]);

impl PartialIv {
    /// Longest one, in octets.
    pub(super) const MOST: usize = 5;

    pub(super) const fn new(number: u64) -> Self {
        Self(number.to_be_bytes())
    }

    pub(super) fn octets(&self) -> &[u8] {
        let zeros = u64::from_be_bytes(self.0).leading_zeros() as usize / 8;
        self.0.get(zeros.min(7)..).unwrap_or_default()
    }
}

/// Returns the nonce of the Partial IV `number` of the endpoint `id`. RFC 8613, section 5.2.
pub(super) fn nonce(common_iv: u128, id: &Id, number: u64) -> [u8; NONCE] {
    // The length of the identifier, the identifier after zeros, and the Partial IV after zeros; as numbers, since of a short message
    // such steps take as long as its encryption.
    let [a, b, c, d, e, f, g] = id.octets;
    let padded = u64::from_be_bytes([a, b, c, d, e, f, g, 0]) >> 8 >> (8 * (MAX_ID - usize::from(id.len)));
    let (len, padded, number) = (u128::from(id.len), u128::from(padded), u128::from(number));
    let nonce =
        common_iv ^ (len << (8 * (MAX_ID + PartialIv::MOST)) | padded << (8 * PartialIv::MOST) | number);
    let [_, _, _, nonce @ ..] = nonce.to_be_bytes();
    nonce
}

/// Additional authenticated data: `Enc_structure` around `external_aad`. RFC 8613, section 5.4.
pub(super) struct Aad {
    octets: [u8; Self::ROOM],
    len: usize,
}

impl Aad {
    /// `[ "Encrypt0", h'', ` in CBOR.
    const FRONT: &'static [u8; 11] = b"\x83\x68Encrypt0\x40";
    /// Octets of the largest one, and those that the last number is written beyond itself.
    const ROOM: usize = 11 + 1 + 4 + 1 + MAX_ID + 1 + 8;

    /// Returns that of a request with this kid and Partial IV, and of its responses.
    pub(super) fn new(kid: &Id, number: u64) -> Self {
        let (kid_len, number_len) = (usize::from(kid.len), PartialIv::new(number).octets().len());
        // The array has 5 elements: 1, [alg_aead], request_kid, request_piv, and no Class I options.
        let array = 4 + 1 + kid_len + 1 + number_len + 1;
        // A string of less than 24 octets has a head of one.
        let bytes = |len: usize| 0x40 | len as u8;
        let mut octets = [0; Self::ROOM];
        octets[..11].copy_from_slice(Self::FRONT);
        octets[11] = bytes(array);
        octets[12..16].copy_from_slice(&[0x85, 0x01, 0x81, ALGORITHM]);
        octets[16] = bytes(kid_len);
        // All octets of an identifier, and 8 of a number, in one step each: those that are too many are overwritten.
        octets[17..17 + MAX_ID].copy_from_slice(&kid.octets);
        let at = 17 + kid_len;
        octets[at] = bytes(number_len);
        octets[at + 1..at + 9].copy_from_slice(&(number << (64 - 8 * number_len)).to_be_bytes());
        let end = at + 1 + number_len;
        octets[end] = bytes(0);
        Self { octets, len: end + 1 }
    }

    pub(super) fn octets(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// RFC 8613, sections 5.4 and C.5.
    #[test]
    fn the_additional_data_is_that_of_the_examples() {
        let id = Id::new(&[0]).unwrap();
        assert_eq!(
            Aad::new(&id, 0x25).octets(),
            b"\x83\x68Encrypt0\x40\x49\x85\x01\x81\x0a\x41\x00\x41\x25\x40"
        );
        let most = Aad::new(&Id::new(&[7; MAX_ID]).unwrap(), MAX_NUMBER);
        assert_eq!(most.octets().len(), 11 + 1 + 4 + 1 + MAX_ID + 1 + PartialIv::MOST + 1);
        assert_eq!(Id::new(&[7; MAX_ID + 1]), None);
    }
}
