//! Identifiers, Partial IVs, nonces, and the additional authenticated data. RFC 8613, sections 5.2 and 5.4.

use zeroize::Zeroize as _;

use super::MAX_ID;
use super::ccm::BLOCK;

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

/// Nonces of an endpoint. RFC 8613, section 5.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Nonces {
    /// The octets of the nonce of Partial IV 0, as a number: a Partial IV differs from 0 in its last octets.
    first: u128,
}

impl Nonces {
    /// The length of the identifier, the identifier after zeros, and the Partial IV after zeros, XORed with the Common IV.
    pub(super) fn new(common_iv: [u8; NONCE], id: &[u8]) -> Self {
        let mut first = [0; 16];
        first[16 - NONCE] = id.len() as u8;
        first[16 - PartialIv::MOST - id.len()..16 - PartialIv::MOST].copy_from_slice(id);
        first[16 - NONCE..].iter_mut().zip(common_iv).for_each(|(octet, iv)| *octet ^= iv);
        Self { first: u128::from_be_bytes(first) }
    }

    /// Returns the nonce of a Partial IV.
    pub(super) fn of(self, number: u64) -> u128 {
        self.first ^ u128::from(number)
    }

    pub(super) fn zeroize(&mut self) {
        self.first.zeroize();
    }
}

/// Additional authenticated data: `Enc_structure` around `external_aad`, RFC 8613, section 5.4; in blocks, behind its length, RFC 3610,
/// section 2.2.
pub(super) struct Aad {
    octets: [u8; Self::ROOM],
    len: usize,
}

impl Aad {
    /// The length, `[ "Encrypt0", h'', h'` with another length, and `[ 1, [alg_aead], ` in CBOR.
    const FRONT: [u8; 18] = *b"\0\0\x83\x68Encrypt0\x40\0\x85\x01\x81\x0a";
    /// Octets of the blocks of the largest one.
    const ROOM: usize = (Self::FRONT.len() + 1 + MAX_ID + 1 + PartialIv::MOST + 1).next_multiple_of(BLOCK);

    /// Returns that of a request with this kid and Partial IV, and of its responses.
    pub(super) fn new(kid: &Id, number: u64) -> Self {
        let (kid_len, number_len) = (usize::from(kid.len), PartialIv::new(number).octets().len());
        // A string of less than 24 octets has a head of one.
        let bytes = |len: usize| 0x40 | len as u8;
        let mut octets = [0; Self::ROOM];
        octets[..18].copy_from_slice(&Self::FRONT);
        octets[18] = bytes(kid_len);
        // All octets of an identifier, and 8 of a number, in one step each: those that are too many are overwritten, or zero.
        octets[19..19 + MAX_ID].copy_from_slice(&kid.octets);
        let at = 19 + kid_len;
        octets[at] = bytes(number_len);
        octets[at + 1..at + 9].copy_from_slice(&(number << (64 - 8 * number_len)).to_be_bytes());
        // No Class I options.
        let end = at + 1 + number_len;
        octets[end] = bytes(0);
        octets[1] = (end + 1 - 2) as u8;
        octets[13] = bytes(end + 1 - 14);
        Self { octets, len: end + 1 }
    }

    pub(super) fn blocks(&self) -> &[[u8; BLOCK]] {
        self.octets.as_chunks().0.get(..self.len.div_ceil(BLOCK)).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets[2..self.len]
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
