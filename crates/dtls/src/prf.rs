//! Secrets of a handshake: the PRF with SHA-256 (RFC 5246, section 5), master secret, keys, Finished.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::{Zeroize as _, Zeroizing};

use crate::association::{IV, KEY, TrafficKey};
use crate::psk::Psk;

/// Octets of a hash of the handshake.
pub(crate) const HASH: usize = 32;

/// Octets of `verify_data` in Finished. RFC 5246, section 7.4.9.
pub(crate) const VERIFY_DATA: usize = 12;

/// Random of a client or server.
pub(crate) type Random = [u8; 32];

/// Master secret of a session.
#[derive(Clone)]
pub(crate) struct MasterSecret(Zeroizing<[u8; 48]>);

/// Keys of both directions.
pub(crate) struct Keys {
    pub(crate) client: TrafficKey,
    pub(crate) server: TrafficKey,
}

impl MasterSecret {
    /// Extended master secret. RFC 7627, section 4.
    pub(crate) fn new(psk: &Psk, session_hash: &[u8; HASH]) -> Self {
        let mut secret = Zeroizing::new([0; 48]);
        prf(&psk.premaster_secret(), b"extended master secret", &[session_hash], &mut secret[..]);
        Self(secret)
    }

    /// Keys and initialization vectors. RFC 5246, section 6.3; RFC 6655, section 3.
    pub(crate) fn keys(&self, client: &Random, server: &Random) -> Keys {
        let mut block = Zeroizing::new([0; 2 * (KEY + IV)]);
        prf(&self.0[..], b"key expansion", &[server, client], &mut block[..]);
        let (keys, ivs) = block.split_at(2 * KEY);
        let of = |place: usize| TrafficKey::new(&keys[place * KEY..][..KEY], &ivs[place * IV..][..IV]);
        Keys { client: of(0), server: of(1) }
    }

    /// Contents of the Finished message of the client, or of the server. RFC 5246, section 7.4.9.
    pub(crate) fn verify_data(&self, is_client: bool, hash: &[u8; HASH]) -> [u8; VERIFY_DATA] {
        let label: &[u8] = if is_client { b"client finished" } else { b"server finished" };
        let mut data = [0; VERIFY_DATA];
        prf(&self.0[..], label, &[hash], &mut data);
        data
    }
}

/// Fills `out` with pseudorandom octets. RFC 5246, section 5.
fn prf(secret: &[u8], label: &[u8], seed: &[&[u8]], out: &mut [u8]) {
    let keyed = hmac(secret);
    let seeded = |mut mac: Hmac<Sha256>| {
        mac.update(label);
        seed.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes()
    };
    let mut a = seeded(keyed.clone());
    for chunk in out.chunks_mut(HASH) {
        let mut octets = seeded(keyed.clone().chain_update(a));
        for (to, from) in chunk.iter_mut().zip(&octets) {
            *to = *from;
        }
        octets.zeroize();
        a = keyed.clone().chain_update(a).finalize().into_bytes();
    }
    a.zeroize();
}

/// Returns an HMAC with a key.
pub(crate) fn hmac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("a key of an HMAC has any length")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets<const N: usize>(digits: &str) -> [u8; N] {
        core::array::from_fn(|place| {
            u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).expect("digits")
        })
    }

    /// Test vector of P_SHA256, published on the mailing list of the TLS working group ("Test vectors for TLS 1.2 PRF").
    #[test]
    fn the_prf_has_the_octets_of_the_published_vector() {
        let secret: [u8; 16] = octets("9bbe436ba940f017b17652849a71db35");
        let seed: [u8; 16] = octets("a0ba9f936cda311827a6f796ffd5198c");
        let expected: [u8; 100] = octets(
            "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14baf9af0fa022f7\
             077def17abfd3797c0564bab4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff70187347b66"
                .replace(' ', "")
                .as_str(),
        );
        let mut out = [0; 100];
        prf(&secret, b"test label", &[&seed], &mut out);
        assert_eq!(out, expected);
    }

    /// RFC 4279, section 2.
    #[test]
    fn the_premaster_secret_is_as_many_zeros_as_the_key_has_octets_and_the_key() {
        let psk = Psk::new(b"i", &[7, 8, 9]).expect("short");
        assert_eq!(psk.premaster_secret()[..], [0, 3, 0, 0, 0, 0, 3, 7, 8, 9]);
    }
}
