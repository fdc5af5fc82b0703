//! Handshakes of two messages (Noise Protocol Framework, revision 34). Their payloads describe each end.
//!
//! With a shared key: `Noise_NNpsk0_25519_ChaChaPoly_SHA256`. Message 1 is decrypted with that key alone, before any curve
//! operation. With public keys: `Noise_IKpsk2_25519_ChaChaPoly_SHA256`. Message 1 has the public key of the initiator,
//! encrypted for the responder.
//!
//! Message 1 may be a replay: **only a packet decrypted with the session keys proves the presence of the initiator.**

use hkdf::hmac::{Hmac, KeyInit, Mac as _};
use sha2::{Digest, Sha256};
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::header::{ANSWER, Index, KIND, LONG, LONG_ANSWER, LONG_INDEX, PUBLIC_REQUEST, REQUEST, WHOSE};
use super::key::{Key, KeyId};
use super::primitives::Resolver;
use super::public_key::{PublicKey, PublicKeys};
use super::suite::Cipher;
use super::{Random, direction, suite};
use crate::Suite;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
/// Prologue, followed by the clear octets of a request.
const PROTOCOL: &[u8] = b"thinair 1 two-way";
/// Those with public keys.
const PUBLIC_PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_SHA256";
const PUBLIC_PROTOCOL: &[u8] = b"thinair 1 public keys";

const EPHEMERAL: usize = 32;
const TAG: usize = 16;
/// Kind, short index, id of the key.
const REQUEST_HEADER: usize = 6;
const REQUEST_PAYLOAD: usize = 21;
/// Length of the proof at the end of a request: of the shared key, or of a cookie.
pub(super) const MAC: usize = 16;
/// Length of a request with a short index in octets.
pub(super) const REQUEST_LENGTH: usize = REQUEST_HEADER + EPHEMERAL + REQUEST_PAYLOAD + TAG + MAC;
/// Kind, short index.
const PUBLIC_HEADER: usize = 2;
/// Length of an encrypted public key.
const STATIC: usize = 32 + TAG;
/// Length of a request with public keys and a short index in octets.
pub(super) const PUBLIC_REQUEST_LENGTH: usize =
    PUBLIC_HEADER + EPHEMERAL + STATIC + REQUEST_PAYLOAD + TAG + MAC;
/// Kind, short index.
const ANSWER_HEADER: usize = 2;
/// Description of the end, and a short index.
const ANSWER_PAYLOAD: usize = IDENTITY + WHOSE;
/// Suite, instance, digest.
const IDENTITY: usize = 17;
/// Length of an answer with short indices in octets: less than that of a request, so that it cannot amplify traffic.
pub(super) const ANSWER_LENGTH: usize = ANSWER_HEADER + EPHEMERAL + ANSWER_PAYLOAD + TAG;
const _: () =
    assert!(ANSWER_LENGTH + LONG - WHOSE <= REQUEST_LENGTH && REQUEST_LENGTH <= PUBLIC_REQUEST_LENGTH);

/// Description of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndIdentity {
    pub(super) suite: u8,
    /// Random number drawn at its start.
    pub(super) instance: [u8; 8],
    /// Digest of its channel parameters.
    pub(super) digest: [u8; 8],
    /// True if it offers AES-GCM, too. In an answer, `suite` is the one that is used.
    pub(super) offers_aes: bool,
    /// True if it requests an answer when it needs one. In an answer: to a request of such an end only.
    pub(super) asks: bool,
    /// True for an initiator that sends long indices where it is assigned one.
    pub(super) takes_long: bool,
}

/// Offer of AES-GCM in the number of a request, which earlier versions take for a part of the number.
const OFFERS_AES: u32 = 1 << 31;
/// [`EndIdentity::asks`] in the number of a request, and in the suite of an answer.
const ASKS: u32 = 1 << 30;
const ANSWER_ASKS: u8 = 1 << 7;
/// [`EndIdentity::takes_long`] in the number of a request.
const TAKES_LONG: u32 = 1 << 29;

impl EndIdentity {
    fn write(&self, out: &mut [u8]) {
        out[0] = self.suite;
        out[1..9].copy_from_slice(&self.instance);
        out[9..17].copy_from_slice(&self.digest);
    }

    fn read(octets: &[u8]) -> Option<Self> {
        Some(Self {
            suite: *octets.first()?,
            instance: *octets.get(1..)?.first_chunk()?,
            digest: *octets.get(9..)?.first_chunk()?,
            offers_aes: false,
            asks: false,
            takes_long: false,
        })
    }
}

/// Key by which a request proves that its sender has the shared key: a forged one costs its receiver neither decryption
/// nor key derivation.
#[derive(Clone)]
pub(super) struct ProofKey(Zeroizing<[u8; 32]>);

impl ProofKey {
    pub(super) fn of(key: &Key) -> Self {
        let mut own = Zeroizing::new([0; 32]);
        suite::derive(&[], key.octets(), &[b"thinair 1 request proof"], &mut own[..]);
        Self(own)
    }

    fn of_request(&self, request: &[u8]) -> Hmac<Sha256> {
        <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0[..])
            .expect("keys of any length")
            .chain_update(request)
    }

    /// True if the end of a datagram is the proof of the request in front of it.
    pub(super) fn proves(&self, datagram: &[u8]) -> bool {
        let Some((request, mac)) = datagram.split_last_chunk::<MAC>() else { return false };
        self.of_request(request).verify_truncated_left(mac).is_ok()
    }
}

/// True for a request of an earlier version, which proves nothing.
pub(super) fn is_unproved(datagram: &[u8]) -> bool {
    datagram.ends_with(&[0; MAC])
}

/// A request whose answer is pending.
pub(super) struct Initiation {
    noise: HandshakeState,
    /// Hash of the request, to which a cookie is bound.
    pub(super) hash: [u8; 32],
}

/// Clear part of a request.
#[derive(Clone, Copy)]
pub(super) struct RequestHeader {
    /// Index for packets to the initiator.
    pub(super) index: Index,
    /// Shared key; `None` with public keys.
    pub(super) key: Option<KeyId>,
}

/// A decrypted request.
pub(super) struct OpenedRequest {
    noise: HandshakeState,
    pub(super) theirs: EndIdentity,
    /// Number of the request of that instance.
    pub(super) number: u32,
}

/// Secrets that two ends share after a handshake.
pub(super) struct SharedSecrets {
    /// Keys from the initiator to the responder, and back.
    keys: Zeroizing<[[u8; 32]; 2]>,
    /// Hash that orders sessions equally at both ends.
    pub(super) hash: [u8; 32],
}

impl Initiation {
    /// Writes a request to `out`, with its proof at the end.
    pub(super) fn start(
        (key, proof): (&Key, &ProofKey),
        index: Index,
        ours: &EndIdentity,
        number: u32,
        random: &mut dyn Random,
        out: &mut Vec<u8>,
    ) -> Self {
        begin(REQUEST, index, out);
        out.extend(key.id().0);
        let noise = builder(key, out, random, true);
        let started = Self::write(noise, 0, proof, ours, number, out);
        debug_assert_eq!(out.len(), REQUEST_LENGTH + index.more());
        started
    }

    /// Writes a request with public keys to `out`, with its proof at the end.
    pub(super) fn start_public(
        (keys, proof): (&PublicKeys, &ProofKey),
        index: Index,
        ours: &EndIdentity,
        number: u32,
        random: &mut dyn Random,
        out: &mut Vec<u8>,
    ) -> Self {
        begin(PUBLIC_REQUEST, index, out);
        let secret = secret(random);
        let prologue = [PUBLIC_PROTOCOL, out].concat();
        let noise = Builder::with_resolver(pattern(PUBLIC_PATTERN), Box::new(Resolver(secret)))
            .prologue(&prologue)
            .and_then(|builder| builder.local_private_key(keys.private().octets()))
            .and_then(|builder| builder.remote_public_key(keys.theirs().octets()))
            .and_then(|builder| builder.psk(2, keys.psk().octets())?.build_initiator())
            .expect("all that the pattern needs is there");
        let started = Self::write(noise, STATIC, proof, ours, number, out);
        debug_assert_eq!(out.len(), PUBLIC_REQUEST_LENGTH + index.more());
        started
    }

    /// Writes message 1 and its proof behind the header in `out`. `more`: octets of it besides ephemeral key and payload.
    fn write(
        mut noise: HandshakeState,
        more: usize,
        proof: &ProofKey,
        ours: &EndIdentity,
        number: u32,
        out: &mut Vec<u8>,
    ) -> Self {
        let mut payload = [0; REQUEST_PAYLOAD];
        ours.write(&mut payload);
        let offer = if ours.offers_aes { OFFERS_AES } else { 0 };
        let asks = if ours.asks { ASKS } else { 0 };
        let takes_long = if ours.takes_long { TAKES_LONG } else { 0 };
        payload[IDENTITY..].copy_from_slice(&(number | offer | asks | takes_long).to_be_bytes());
        write(&mut noise, more, &payload, out)
            .expect("room for it, in the order of the pattern, and a public key that was checked");
        let hash = Sha256::digest(&out).into();
        let mac = proof.of_request(out).finalize().into_bytes();
        out.extend_from_slice(&mac[..MAC]);
        Self { noise, hash }
    }

    /// Decrypts an answer: returns the responder, its index, and the shared secrets.
    pub(super) fn finish(&mut self, answer: &[u8]) -> Option<(EndIdentity, Index, SharedSecrets)> {
        let has = |flag| answer.first().is_some_and(|first| first & flag != 0);
        let header = ANSWER_HEADER + more(has(LONG_INDEX));
        if answer.len() != ANSWER_LENGTH + more(has(LONG_INDEX)) + more(has(LONG_ANSWER)) {
            return None;
        }
        let mut payload = [0; ANSWER_PAYLOAD + LONG + TAG];
        let length = self.noise.read_message(answer.get(header..)?, &mut payload).ok()?;
        let payload = payload.get(..length)?;
        let theirs = EndIdentity::read(payload)?;
        let (suite, asks) = (theirs.suite & !ANSWER_ASKS, theirs.suite & ANSWER_ASKS != 0);
        let theirs = EndIdentity { suite, asks, ..theirs };
        let (index, _) = Index::read(payload.get(IDENTITY..)?, has(LONG_ANSWER))?;
        Some((theirs, index, SharedSecrets::of(&mut self.noise)))
    }
}

impl RequestHeader {
    /// Parses the clear part of a datagram with the length of a request.
    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let index = Index::of_handshake(datagram)?;
        match (datagram.first()? & !LONG_INDEX, datagram.len() - index.more()) {
            (REQUEST, REQUEST_LENGTH) => {
                let id = datagram.get(KIND + index.octets().len()..)?.first_chunk()?;
                Some(Self { index, key: Some(KeyId(*id)) })
            }
            (PUBLIC_REQUEST, PUBLIC_REQUEST_LENGTH) => Some(Self { index, key: None }),
            _ => None,
        }
    }
}

impl OpenedRequest {
    /// Decrypts a request with the key that its header identifies, without curve operations.
    pub(super) fn open(key: &Key, datagram: &[u8], random: &mut dyn Random) -> Option<Self> {
        let (header, message) = parts(datagram, REQUEST_HEADER + Index::of_handshake(datagram)?.more())?;
        Self::read(builder(key, header, random, false), message)
    }

    /// Decrypts a request with public keys. Returns the initiator's one, too. Its psk is to be [set](Self::set_psk).
    pub(super) fn open_public(
        private: &Key,
        datagram: &[u8],
        random: &mut dyn Random,
    ) -> Option<(PublicKey, Self)> {
        let (header, message) = parts(datagram, PUBLIC_HEADER + Index::of_handshake(datagram)?.more())?;
        let prologue = [PUBLIC_PROTOCOL, header].concat();
        let noise = Builder::with_resolver(pattern(PUBLIC_PATTERN), Box::new(Resolver(secret(random))))
            .prologue(&prologue)
            .and_then(|builder| builder.local_private_key(private.octets())?.build_responder())
            .expect("all that the pattern needs is there");
        let opened = Self::read(noise, message)?;
        let theirs = PublicKey::new(*opened.noise.get_remote_static()?.first_chunk()?);
        Some((theirs, opened))
    }

    /// Sets the secret that both ends share besides their public keys.
    pub(super) fn set_psk(&mut self, keys: &PublicKeys) {
        self.noise.set_psk(2, keys.psk().octets()).expect("32 octets, at a place that every pattern has");
    }

    fn read(mut noise: HandshakeState, message: &[u8]) -> Option<Self> {
        let mut payload = [0; REQUEST_PAYLOAD + TAG];
        let length = noise.read_message(message, &mut payload).ok()?;
        let payload = payload.get(..length)?;
        let number = u32::from_be_bytes(*payload.get(IDENTITY..)?.first_chunk()?);
        let (offers_aes, asks) = (number & OFFERS_AES != 0, number & ASKS != 0);
        let takes_long = number & TAKES_LONG != 0;
        let theirs = EndIdentity { offers_aes, asks, takes_long, ..EndIdentity::read(payload)? };
        Some(Self { noise, theirs, number: number & !(OFFERS_AES | ASKS | TAKES_LONG) })
    }

    /// Writes the answer to `out`; `None`: the request contains an invalid curve point. `to`: index of the
    /// request; `index`: index of ours.
    pub(super) fn answer(
        mut self,
        ours: &EndIdentity,
        to: Index,
        index: Index,
        out: &mut Vec<u8>,
    ) -> Option<SharedSecrets> {
        begin(ANSWER | if index.is_long() { LONG_ANSWER } else { 0 }, to, out);
        let mut payload = [0; IDENTITY + LONG];
        ours.write(&mut payload);
        if ours.asks && self.theirs.asks {
            payload[0] |= ANSWER_ASKS;
        }
        let index = index.octets();
        payload[IDENTITY..][..index.len()].copy_from_slice(index);
        write(&mut self.noise, 0, &payload[..IDENTITY + index.len()], out)?;
        Some(SharedSecrets::of(&mut self.noise))
    }
}

impl SharedSecrets {
    fn of(noise: &mut HandshakeState) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(noise.get_handshake_hash());
        let (first, second) = noise.dangerously_get_raw_split();
        Self { keys: Zeroizing::new([first, second]), hash }
    }

    /// Returns both directions at this end.
    pub(super) fn directions(&self, suite: Suite, initiator: bool) -> (direction::Sealer, direction::Opener) {
        let cipher = |key: &[u8; 32]| Cipher::derive(suite, &[], key, &[b"thinair 1 two-way traffic"]);
        let (send, receive) = if initiator { (0, 1) } else { (1, 0) };
        let opener = direction::Opener::new(cipher(&self.keys[receive]), suite.forgeries(), 0);
        (direction::Sealer::of_session(cipher(&self.keys[send])), opener)
    }
}

/// Writes the kind of a message, and the index of the initiator.
pub(super) fn begin(kind: u8, index: Index, out: &mut Vec<u8>) {
    out.push(kind | if index.is_long() { LONG_INDEX } else { 0 });
    out.extend_from_slice(index.octets());
}

/// Octets that an index has more than a short one.
const fn more(is_long: bool) -> usize {
    if is_long { LONG - WHOSE } else { 0 }
}

/// Returns header and message of a request, without its proof.
fn parts(datagram: &[u8], header: usize) -> Option<(&[u8], &[u8])> {
    let (header, rest) = datagram.split_at_checked(header)?;
    Some((header, rest.get(..rest.len().checked_sub(MAC)?)?))
}

fn write(noise: &mut HandshakeState, more: usize, payload: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.resize(start + EPHEMERAL + more + payload.len() + TAG, 0);
    let length = noise.write_message(payload, &mut out[start..]).ok()?;
    out.truncate(start + length);
    Some(())
}

fn builder(key: &Key, header: &[u8], random: &mut dyn Random, initiator: bool) -> HandshakeState {
    let secret = secret(random);
    let prologue = [PROTOCOL, header].concat();
    Builder::with_resolver(pattern(PATTERN), Box::new(Resolver(secret)))
        .prologue(&prologue)
        .and_then(|builder| builder.psk(0, key.octets()))
        .and_then(|builder| if initiator { builder.build_initiator() } else { builder.build_responder() })
        .expect("all that the pattern needs is there")
}

fn pattern(name: &str) -> NoiseParams {
    name.parse().expect("a pattern that snow has")
}

/// Returns the ephemeral secret of a handshake.
fn secret(random: &mut dyn Random) -> Zeroizing<[u8; 32]> {
    let mut secret = Zeroizing::new([0; 32]);
    random.fill(&mut secret[..]);
    secret
}
