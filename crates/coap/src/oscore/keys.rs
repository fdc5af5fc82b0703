//! Keys of a context: derived once, in one place of memory, and overwritten at its end. RFC 8613, section 3.2.1.

use alloc::boxed::Box;
use core::mem::ManuallyDrop;

use aes::Aes128Enc;
use ccm::Ccm;
use ccm::aead::KeyInit as _;
use ccm::aead::consts::{U8, U13};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroize as _;

use super::context::ContextParameters;
use super::nonce::{ALGORITHM, NONCE};

/// Octets of a key of AES-CCM-16-64-128.
pub(super) const KEY: usize = 16;

/// AES-CCM-16-64-128. RFC 9053, section 4.2.
pub(super) type Aead = Ccm<Aes128Enc, U8, U13>;

/// Octets of the stack that are overwritten behind a key derivation, and at the end of keys.
const STACK: usize = 4_096;

/// Octets of the stack that are overwritten behind a message: those of a prepared key, and of functions that use it.
const STACK_OF_MESSAGE: usize = 1_024;

/// Sender Key, Recipient Key and Common IV. They stay where they are: moving the context leaves no copy of them.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) sender: [u8; KEY],
    pub(super) recipient: [u8; KEY],
    /// The octets of a number.
    pub(super) common_iv: u128,
}

impl Keys {
    /// Derives the keys. The length of the ID Context is below 256.
    pub(super) fn derive(parameters: &ContextParameters<'_>) -> Box<Self> {
        let mut keys = Box::<Self>::default();
        overwriting_stack::<STACK, ()>(|| keys.fill(parameters));
        keys
    }

    fn fill(&mut self, parameters: &ContextParameters<'_>) {
        let hkdf = Hkdf::<Sha256>::new(Some(parameters.master_salt), parameters.master_secret);
        let derive = |id: &[u8], label: &[u8], out: &mut [u8]| {
            let id_context = parameters.id_context;
            // info = [id, id_context / nil, alg_aead, type, L], each with a head of one octet.
            let bytes = |octets: &[u8]| head(0x40, octets.len());
            let (length, context) = ([out.len() as u8], id_context.map_or(Head::NIL, bytes));
            let info = [
                &[0x85],
                bytes(id).octets(),
                id,
                context.octets(),
                id_context.unwrap_or_default(),
                &[ALGORITHM],
                head(0x60, label.len()).octets(),
                label,
                &length,
            ]
            .concat();
            // L is below 24, so that it is an octet of CBOR, and far below the limit of HKDF.
            hkdf.expand(&info, out).expect("a key is shorter than 8,160 octets");
        };
        derive(parameters.sender_id, b"Key", &mut self.sender);
        derive(parameters.recipient_id, b"Key", &mut self.recipient);
        let mut common_iv = [0; 16];
        derive(&[], b"IV", &mut common_iv[16 - NONCE..]);
        self.common_iv = u128::from_be_bytes(common_iv);
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.sender.zeroize();
        self.recipient.zeroize();
        self.common_iv.zeroize();
        overwrite_stack::<STACK>();
    }
}

/// Calls a function with a prepared key.
///
/// `Drop` of the key would overwrite it octet by octet, which takes longer than to protect a short message. The part of the stack on which
/// it and its copies were is overwritten at once instead.
pub(super) fn with_cipher<T>(key: &[u8; KEY], call: impl FnOnce(&Aead) -> T) -> T {
    overwriting_stack::<STACK_OF_MESSAGE, T>(|| call(&ManuallyDrop::new(Aead::new(&(*key).into()))))
}

/// Calls a function, and overwrites `OCTETS` of the stack behind the caller, where the function has left copies of keys.
pub fn overwriting_stack<const OCTETS: usize, T>(call: impl FnOnce() -> T) -> T {
    #[inline(never)]
    fn called<T>(call: impl FnOnce() -> T) -> T {
        call()
    }
    let result = called(call);
    overwrite_stack::<OCTETS>();
    result
}

#[inline(never)]
fn overwrite_stack<const OCTETS: usize>() {
    core::hint::black_box(&mut [0_u8; OCTETS]);
}

/// Head of a CBOR string, or `nil`.
struct Head {
    octets: [u8; 2],
    len: usize,
}

impl Head {
    const NIL: Self = Self { octets: [0xF6, 0], len: 1 };

    fn octets(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or_default()
    }
}

/// Returns the head of a string of less than 256 octets. RFC 8949, section 3.
const fn head(major: u8, len: usize) -> Head {
    if len < 24 {
        Head { octets: [major | len as u8, 0], len: 1 }
    } else {
        Head { octets: [major | 24, len as u8], len: 2 }
    }
}
