//! Primitives of handshakes, for snow: those that this crate has anyway, so that each exists once in the program.

use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInOut, KeyInit, Tag};
use curve25519_dalek::MontgomeryPoint;
use sha2::{Digest, Sha256};
use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::Zeroizing;

const TAG: usize = 16;

/// Primitives, and the ephemeral secret of one handshake.
pub(super) struct Resolver(pub(super) Zeroizing<[u8; 32]>);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.0.clone()))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        matches!(choice, DHChoice::Curve25519).then(|| Box::new(X25519::default()) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        matches!(choice, HashChoice::SHA256).then(|| Box::new(Sha(Sha256::new())) as Box<dyn Hash>)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        let none = || Box::new(ChaChaPoly(Zeroizing::new([0; 32]))) as Box<dyn Cipher>;
        matches!(choice, CipherChoice::ChaChaPoly).then(none)
    }
}

/// Returns the secret once.
struct Once(Option<Zeroizing<[u8; 32]>>);

impl Random for Once {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        let secret = self.0.take().filter(|secret| secret.len() == dest.len()).ok_or(Error::Rng)?;
        dest.copy_from_slice(&secret[..]);
        Ok(())
    }
}

/// Returns the public key of a private one (RFC 7748, section 5).
pub(super) fn public(private: &[u8; 32]) -> [u8; 32] {
    MontgomeryPoint::mul_base_clamped(*private).to_bytes()
}

/// Returns the secret of a private key and a public one: zeros for a point of low order.
pub(super) fn agree(private: &[u8; 32], public: &[u8; 32]) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(MontgomeryPoint(*public).mul_clamped(*private).to_bytes())
}

/// A key pair.
#[derive(Default)]
struct X25519 {
    private: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        self.public = public(&self.private);
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), Error> {
        random.try_fill_bytes(&mut self.private[..])?;
        self.public = public(&self.private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.private[..]
    }

    fn dh(&self, theirs: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let theirs = theirs.first_chunk().ok_or(Error::Dh)?;
        out[..32].copy_from_slice(&agree(&self.private, theirs)[..]);
        Ok(())
    }
}

struct Sha(Sha256);

impl Hash for Sha {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        Digest::reset(&mut self.0);
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        out[..32].copy_from_slice(&self.0.finalize_reset());
    }
}

/// Key of a cipher. Nonces are as in the Noise specification, section 12.3.
struct ChaChaPoly(Zeroizing<[u8; 32]>);

impl ChaChaPoly {
    fn cipher(&self) -> ChaCha20Poly1305 {
        ChaCha20Poly1305::new_from_slice(&self.0[..]).expect("32 octets")
    }
}

fn nonce(counter: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&counter.to_le_bytes());
    nonce
}

impl Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; 32]) {
        *self.0 = *key;
    }

    fn encrypt(&self, counter: u64, clear: &[u8], plain: &[u8], out: &mut [u8]) -> usize {
        let (body, rest) = out.split_at_mut(plain.len());
        body.copy_from_slice(plain);
        let tag = self.cipher().encrypt_inout_detached(&nonce(counter).into(), clear, body.into());
        rest[..TAG].copy_from_slice(&tag.expect("a message of a handshake is short"));
        plain.len() + TAG
    }

    fn decrypt(&self, counter: u64, clear: &[u8], sealed: &[u8], out: &mut [u8]) -> Result<usize, Error> {
        let (sealed, tag) = sealed.split_last_chunk::<TAG>().ok_or(Error::Decrypt)?;
        let body = out.get_mut(..sealed.len()).ok_or(Error::Decrypt)?;
        body.copy_from_slice(sealed);
        let tag = Tag::<ChaCha20Poly1305>::from(*tag);
        let opened = self.cipher().decrypt_inout_detached(&nonce(counter).into(), clear, body.into(), &tag);
        opened.map_err(|_| Error::Decrypt)?;
        Ok(sealed.len())
    }
}
