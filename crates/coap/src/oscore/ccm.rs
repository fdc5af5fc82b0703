//! AES-CCM-16-64-128 over a message in place. RFC 3610; RFC 9053, section 4.2.
//!
//! The backend of the crate `aes` is called once for all blocks of a message. The crate `ccm` calls it for each block, and takes twice
//! the instructions for a message of 9 octets.

use aes::Aes128Enc;
use aes::cipher::consts::U16;
use aes::cipher::{
    BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt as _, BlockSizeUser, KeyInit as _,
};

use super::keys::{KEY, overwriting_stack};
use super::nonce::{Aad, NONCE};

/// Octets of a tag.
pub(super) const TAG: usize = 8;

/// Octets of a block.
pub(super) const BLOCK: usize = 16;

/// Flags of the blocks of the key stream: the length of a message has two octets.
const STREAM: u8 = BLOCK as u8 - 1 - NONCE as u8 - 1;

/// Flags of the first authenticated block: there is additional data, and the length of a tag.
const FIRST: u8 = 0x40 | ((TAG as u8 - 2) / 2) << 3 | STREAM;

/// Octets of the stack that are overwritten behind a message: those of a prepared key, and of functions that use it.
const STACK: usize = 1_024;

/// Encrypts a message, and returns its tag. `None` if it has more than 65,535 octets.
pub(super) fn encrypt(key: &[u8; KEY], nonce: u128, aad: &Aad, text: &mut [u8]) -> Option<[u8; TAG]> {
    run(key, nonce, aad, text, false).map(u64::to_ne_bytes)
}

/// Decrypts a message. Returns false, and overwrites the message, if it has another tag, or more than 65,535 octets.
pub(super) fn decrypt(key: &[u8; KEY], nonce: u128, aad: &Aad, text: &mut [u8], tag: [u8; TAG]) -> bool {
    // Both are compared at once: the time does not show how many octets are right.
    let is_sound = run(key, nonce, aad, text, true) == Some(u64::from_ne_bytes(tag));
    if !is_sound {
        text.fill(0);
    }
    is_sound
}

fn run(key: &[u8; KEY], nonce: u128, aad: &Aad, text: &mut [u8], is_encrypted: bool) -> Option<u64> {
    u16::try_from(text.len()).ok()?;
    let mut tag = 0;
    let message = CcmMessage { nonce, aad, text, is_encrypted, tag: &mut tag };
    overwriting_stack::<STACK, ()>(|| {
        let cipher = Aes128Enc::new(&(*key).into());
        cipher.encrypt_with_backend(message);
        // `Drop` of the key would overwrite it octet by octet, which takes longer than to protect a short message. The part of the
        // stack on which it and its copies were is overwritten at once instead.
        core::mem::forget(cipher);
    });
    Some(tag)
}

struct CcmMessage<'m> {
    /// The octets of a number.
    nonce: u128,
    aad: &'m Aad,
    text: &'m mut [u8],
    is_encrypted: bool,
    tag: &'m mut u64,
}

impl BlockSizeUser for CcmMessage<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for CcmMessage<'_> {
    // In the caller the instructions of the backend are enabled.
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let Self { nonce, aad, text, is_encrypted, tag } = self;
        let blocks = CcmBlocks { backend, nonce };
        // The plaintext is authenticated.
        let mac = if is_encrypted {
            blocks.add_stream(text);
            blocks.mac(aad, text)
        } else {
            let mac = blocks.mac(aad, text);
            blocks.add_stream(text);
            mac
        };
        let [a, b, c, d, e, f, g, h, ..] = (mac ^ blocks.numbered(STREAM, 0)).to_ne_bytes();
        *tag = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
    }
}

/// Blocks of a message, encrypted. A block is the octets of a number.
struct CcmBlocks<'b, B> {
    backend: &'b B,
    nonce: u128,
}

impl<B: BlockCipherEncBackend<BlockSize = U16>> CcmBlocks<'_, B> {
    #[inline(always)]
    fn encrypt(&self, block: u128) -> u128 {
        let mut block = block.to_ne_bytes().into();
        self.backend.encrypt_block_inplace(&mut block);
        u128::from_ne_bytes(block.into())
    }

    /// Returns a block `A_i` or `B_0`: flags, nonce, number.
    #[inline(always)]
    fn numbered(&self, flags: u8, number: usize) -> u128 {
        self.encrypt((u128::from(flags) << 120 | self.nonce << 16 | number as u128).to_be())
    }

    #[inline(always)]
    fn mac(&self, aad: &Aad, text: &[u8]) -> u128 {
        let mut mac = self.numbered(FIRST, text.len());
        for block in aad.blocks() {
            mac = self.encrypt(mac ^ u128::from_ne_bytes(*block));
        }
        for chunk in text.chunks(BLOCK) {
            let mut block = [0; BLOCK];
            block[..chunk.len()].copy_from_slice(chunk);
            mac = self.encrypt(mac ^ u128::from_ne_bytes(block));
        }
        mac
    }

    #[inline(always)]
    fn add_stream(&self, text: &mut [u8]) {
        for (number, chunk) in (1..).zip(text.chunks_mut(BLOCK)) {
            let stream = self.numbered(STREAM, number).to_ne_bytes();
            chunk.iter_mut().zip(stream).for_each(|(octet, stream)| *octet ^= stream);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::oscore::nonce::{Id, MAX_NUMBER};
    use ccm::Ccm;
    use ccm::aead::AeadInOut as _;
    use ccm::aead::consts::{U8, U13};
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn octets_are_those_of_the_crate_ccm(
            key: [u8; KEY],
            nonce: [u8; NONCE],
            kid in vec(any::<u8>(), 0..=7),
            number in 0..=MAX_NUMBER,
            text in vec(any::<u8>(), 0..70),
            bit in 0..8 * TAG,
        ) {
            let aad = Aad::new(&Id::new(&kid).unwrap(), number);
            let mut expected = text.clone();
            let cipher = Ccm::<Aes128Enc, U8, U13>::new(&key.into());
            let expected_tag =
                cipher.encrypt_inout_detached(&nonce.into(), aad.octets(), expected.as_mut_slice().into()).unwrap();

            let nonce = nonce.iter().fold(0, |nonce, octet| nonce << 8 | u128::from(*octet));
            let mut octets = text.clone();
            let mut tag = encrypt(&key, nonce, &aad, &mut octets).unwrap();
            prop_assert_eq!((&octets, &tag[..]), (&expected, &expected_tag[..]));
            prop_assert!(decrypt(&key, nonce, &aad, &mut octets, tag));
            prop_assert_eq!(octets, &text[..]);

            tag[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!decrypt(&key, nonce, &aad, &mut expected, tag));
            prop_assert!(expected.iter().all(|octet| *octet == 0));
        }
    }

    #[test]
    fn the_length_of_a_message_has_two_octets() {
        let aad = Aad::new(&Id::new(b"").unwrap(), 0);
        let mut text = std::vec![0; 65_536];
        assert_eq!(encrypt(&[0; KEY], 0, &aad, &mut text), None);
        assert!(encrypt(&[0; KEY], 0, &aad, &mut text[1..]).is_some());
    }
}
