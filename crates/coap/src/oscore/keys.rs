//! Keys of a context: derived once, in one place of memory, and overwritten at its end. RFC 8613, section 3.2.1.

use alloc::boxed::Box;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroize as _;

use super::context::ContextParameters;
use super::nonce::{ALGORITHM, NONCE, Nonces};

/// Octets of a key of AES-CCM-16-64-128.
pub(super) const KEY: usize = 16;

/// Octets of the stack that are overwritten behind a key derivation, and at the end of keys.
const STACK: usize = 4_096;

/// Keys and nonces of both directions. They stay where they are: moving the context leaves no copy of them.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) sender: DirectionKeys,
    pub(super) recipient: DirectionKeys,
}

/// Sender Key or Recipient Key, with the nonces of that endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DirectionKeys {
    pub(super) key: [u8; KEY],
    pub(super) nonces: Nonces,
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
        let mut common_iv = [0; NONCE];
        derive(&[], b"IV", &mut common_iv);
        for (id, keys) in
            [(parameters.sender_id, &mut self.sender), (parameters.recipient_id, &mut self.recipient)]
        {
            derive(id, b"Key", &mut keys.key);
            keys.nonces = Nonces::new(common_iv, id);
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        for keys in [&mut self.sender, &mut self.recipient] {
            keys.key.zeroize();
            keys.nonces.zeroize();
        }
        overwrite_stack::<STACK>();
    }
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
