//! Stateless cookies: HMACs of the client's address and ClientHello. RFC 6347, section 4.2.1.

use core::hash::{Hash, Hasher};
use core::time::Duration;

use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use thinair_wire::time::Instant;
use zeroize::Zeroizing;

use crate::message::ClientHello;
use crate::prf::hmac;

/// Octets of a cookie: it is guessed as seldom as a tag.
pub(crate) const COOKIE: usize = 8;

/// A cookie is valid in the period in which it was made, and in the next one.
const PERIOD: Duration = Duration::from_secs(60);

/// Key of a server's cookies.
pub(crate) struct Cookies(Zeroizing<[u8; 32]>);

impl Cookies {
    pub(crate) const fn new(key: Zeroizing<[u8; 32]>) -> Self {
        Self(key)
    }

    pub(crate) fn make<P: Hash>(&self, now: Instant, peer: &P, hello: &ClientHello<'_>) -> [u8; COOKIE] {
        self.of_period(period(now), peer, hello)
    }

    pub(crate) fn is_valid<P: Hash>(&self, now: Instant, peer: &P, hello: &ClientHello<'_>) -> bool {
        let of = |period| self.of_period(period, peer, hello).ct_eq(hello.cookie);
        let now = period(now);
        (of(now) | of(now.wrapping_sub(1))).into()
    }

    fn of_period<P: Hash>(&self, period: u64, peer: &P, hello: &ClientHello<'_>) -> [u8; COOKIE] {
        let mut mac = HashedMac(hmac(&self.0[..]));
        period.hash(&mut mac);
        peer.hash(&mut mac);
        hello.bound.hash(&mut mac);
        let octets = mac.0.finalize().into_bytes();
        core::array::from_fn(|place| octets[place])
    }
}

fn period(now: Instant) -> u64 {
    now.since(Instant::ZERO).as_secs() / PERIOD.as_secs()
}

/// An HMAC of all that is hashed.
struct HashedMac(Hmac<Sha256>);

impl Hasher for HashedMac {
    fn write(&mut self, octets: &[u8]) {
        self.0.update(octets);
    }

    /// Not used: the result is the HMAC.
    fn finish(&self) -> u64 {
        0
    }
}
