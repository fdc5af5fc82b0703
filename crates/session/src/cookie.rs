//! Cookies: under load, or shortly after another request, an initiator must first prove that it receives
//! datagrams at its address. No state is kept for it meanwhile.
//!
//! A cookie is encrypted with the shared key, so that replayed requests do not reveal one.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInOut, KeyInit, Tag};
use hkdf::hmac::{Hmac, Mac};
use sha2::Sha256;
use thinair_wire::time::Instant;
use zeroize::Zeroizing;

use super::handshake::{self, MAC, REQUEST_LENGTH};
use super::header::{COOKIE, Index};
use super::key::Key;
use super::{Random, suite};

/// Time for which a secret creates cookies; they stay valid for the same time again.
const SECRET_FOR: Duration = Duration::from_secs(120);
/// Time for which an initiator uses a cookie.
pub(super) const USED_FOR: Duration = Duration::from_secs(110);

/// Kind, short index.
const HEADER: usize = 2;
const SALT: usize = 16;
/// Length of a cookie in octets.
const LENGTH: usize = 16;
const TAG: usize = 16;
/// Length of the message with a cookie and a short index in octets.
pub(super) const REPLY_LENGTH: usize = HEADER + SALT + LENGTH + TAG;
const _: () = assert!(REPLY_LENGTH <= REQUEST_LENGTH);

pub(super) type Cookie = [u8; LENGTH];

/// Secrets from which cookies are derived.
pub(super) struct Jar {
    secret: Zeroizing<[u8; 32]>,
    last: Zeroizing<[u8; 32]>,
    since: Instant,
    /// Time until which a cookie may be valid. `None`: none was sent.
    valid_until: Option<Instant>,
}

impl Jar {
    pub(super) fn new(now: Instant, random: &mut dyn Random) -> Self {
        let mut jar = Self {
            secret: Zeroizing::new([0; 32]),
            last: Zeroizing::new([0; 32]),
            since: now,
            valid_until: None,
        };
        random.fill(&mut jar.secret[..]);
        random.fill(&mut jar.last[..]);
        jar
    }

    fn turn(&mut self, now: Instant, random: &mut dyn Random) {
        let age = now.since(self.since);
        if age >= SECRET_FOR {
            std::mem::swap(&mut self.secret, &mut self.last);
            random.fill(&mut self.secret[..]);
            if age >= SECRET_FOR * 2 {
                random.fill(&mut self.last[..]);
            }
            self.since = now;
        }
    }

    /// True if the end of `request` proves possession of a cookie for `from`, derived from this secret or the
    /// last one.
    pub(super) fn paid(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        request: &[u8],
        random: &mut dyn Random,
    ) -> bool {
        if self.valid_until.is_none_or(|until| until < now) {
            return false;
        }
        self.turn(now, random);
        let Some((request, mac)) = request.split_last_chunk::<MAC>() else { return false };
        [&self.secret, &self.last]
            .into_iter()
            .any(|secret| hmac(&cookie(secret, from), &[request]).verify_truncated_left(mac).is_ok())
    }

    /// Writes a message with a cookie for `from` to `out`. `hash`: of its request, without the last 16
    /// octets.
    pub(super) fn reply(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        key: &Key,
        (index, hash): (Index, &[u8; 32]),
        random: &mut dyn Random,
        out: &mut Vec<u8>,
    ) {
        self.turn(now, random);
        self.valid_until = Some(now + SECRET_FOR * 2);
        let mut salt = [0; SALT];
        random.fill(&mut salt);
        handshake::begin(COOKIE, index, out);
        let header = out.len();
        out.extend(salt);
        let mut cookie = cookie(&self.secret, from);
        let tag = cipher(key, &salt, hash)
            .encrypt_inout_detached(&[0; 12].into(), &out[..header], cookie.as_mut_slice().into())
            .expect("16 octets");
        out.extend(cookie);
        out.extend(tag);
    }
}

/// Returns the cookie in a message that answers the request with this `hash`.
pub(super) fn open(key: &Key, hash: &[u8; 32], reply: &[u8]) -> Option<Cookie> {
    let more = Index::of_handshake(reply)?.more();
    if reply.len() != REPLY_LENGTH + more {
        return None;
    }
    let (header, rest) = reply.split_at(HEADER + more);
    let (salt, rest) = rest.split_at(SALT);
    let (sealed, tag) = rest.split_at(LENGTH);
    let mut cookie = [0; LENGTH];
    cookie.copy_from_slice(sealed);
    let tag = Tag::<ChaCha20Poly1305>::try_from(tag).ok()?;
    cipher(key, salt, hash)
        .decrypt_inout_detached(&[0; 12].into(), header, cookie.as_mut_slice().into(), &tag)
        .ok()?;
    Some(cookie)
}

/// Fills the last 16 octets of `request` with the proof of a cookie.
pub(super) fn pay(cookie: &Cookie, request: &mut [u8]) {
    let end = request.len() - MAC;
    let (request, mac) = request.split_at_mut(end);
    mac.copy_from_slice(&hmac(cookie, &[request]).finalize().into_bytes()[..MAC]);
}

fn cookie(secret: &[u8; 32], from: Option<SocketAddr>) -> Cookie {
    let mut address = [0; 19];
    if let Some(from) = from {
        address[0] = 1;
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        address[1..17].copy_from_slice(&ip.octets());
        address[17..].copy_from_slice(&from.port().to_be_bytes());
    }
    let mut cookie = [0; LENGTH];
    cookie.copy_from_slice(&hmac(secret, &[&address]).finalize().into_bytes()[..LENGTH]);
    cookie
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = <Hmac<Sha256> as hkdf::hmac::KeyInit>::new_from_slice(key).expect("keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac
}

/// Cipher for this message only, derived from a fresh salt and the request.
fn cipher(key: &Key, salt: &[u8], hash: &[u8; 32]) -> ChaCha20Poly1305 {
    let mut own = Zeroizing::new([0; 32]);
    suite::derive(salt, key.octets(), &[b"thinair 1 cookie", hash], &mut own[..]);
    ChaCha20Poly1305::new_from_slice(&own[..]).expect("32 octets")
}
