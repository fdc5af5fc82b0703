//! Keys of security contexts from the keys of both ends: EDHOC (RFC 9528), with the crate `lakers`.
//!
//! Both authenticate by static Diffie-Hellman keys (method 3) with cipher suite 2: P-256, AES-CCM-16-64-128, SHA-256. Each has
//! the [`Credential`] of the other beforehand, a CWT Claims Set, and messages name it by its kid ([`Identity`]). Message 3 goes
//! with the first protected request (RFC 9668), or by itself. Not in it: certificates, signatures, other suites, credentials by
//! value, external authorization data, resumption. `lakers` expects valid points and lengths: `message` checks those that show.

mod credential;
mod crypto;
mod identity;
mod initiator;
mod message;
mod responder;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};

use lakers::EDHOCError;
use thinair_coap::oscore::{Context, ContextError, ContextParameters};
use zeroize::Zeroizing;

pub use credential::{Credential, PrivateKey};
pub use identity::{Identity, Peer, create, pair};
pub use initiator::Initiator;
pub use responder::{MAX_CONTEXTS, MAX_EXCHANGES, Responder};

/// Path of the resource of the Responder.
pub const PATH: &str = "/.well-known/edhoc";

/// Reason why a key exchange fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The message cannot be decoded.
    #[error("message {0} of EDHOC cannot be decoded, or has more than a kid of a credential")]
    Malformed(u8),
    /// The Initiator wants another method.
    #[error("method {0} of EDHOC is not supported: only 3, static keys at both ends")]
    Method(u8),
    /// The Initiator wants another cipher suite.
    #[error("the cipher suite of EDHOC is not supported: only 2")]
    Suite,
    /// The other end names a credential that this end does not have.
    #[error("the other end has credential {0}, which is not beside the private key of this end")]
    UnknownCredential(String),
    /// The other end does not have the private key of its credential, or the credential of this end, or the message was changed.
    #[error(
        "the other end cannot prove that it has the private key of {0}, or has another credential of this end"
    )]
    NotAuthentic(String),
    /// The other end has ended the exchange.
    #[error("the other end refuses the key exchange: {0}")]
    Refused(String),
    /// The Responder has no exchange with this identifier any more, or never had.
    #[error("no such key exchange: it has ended, or took too long")]
    Unknown,
    /// Both ends have chosen one connection identifier.
    #[error(transparent)]
    Context(#[from] ContextError),
}

/// Random octets of the system.
fn random<const N: usize>() -> [u8; N] {
    let mut octets = [0; N];
    // It worked when the client or server started, and Linux never runs out of random numbers.
    getrandom::fill(&mut octets).expect("the system has random numbers");
    octets
}

/// Returns the context of a completed exchange: `exporter` returns octets for a label. RFC 9528, appendix A.1.
fn context(
    exporter: &mut dyn FnMut(u8, usize) -> [u8; lakers::MAX_BUFFER_LEN],
    own: &[u8],
    others: &[u8],
) -> Result<Context, ContextError> {
    const SECRET: usize = 16;
    const SALT: usize = 8;
    let (secret, salt) = (Zeroizing::new(exporter(0, SECRET)), Zeroizing::new(exporter(1, SALT)));
    let parameters = ContextParameters {
        master_secret: &secret[..SECRET],
        master_salt: &salt[..SALT],
        id_context: None,
        sender_id: others,
        recipient_id: own,
    };
    // The context ends with the process: its numbers need no file.
    Context::new(&parameters, 0, true, |next: u64| next.checked_add(1 << 20))
}

/// Runs a step of `lakers`, which panics at some octets that show only behind decryption. The step owns its state.
fn guarded<T>(message: u8, step: impl FnOnce() -> Result<T, ExchangeError>) -> Result<T, ExchangeError> {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or(Err(ExchangeError::Malformed(message)))
}

/// Returns the reason for an error of `lakers` in a message of the other end, whose credential is `peer`.
fn reason(error: &EDHOCError, message: u8, peer: &str) -> ExchangeError {
    match error {
        EDHOCError::MacVerificationFailed => ExchangeError::NotAuthentic(peer.to_owned()),
        _ => ExchangeError::Malformed(message),
    }
}

impl Identity {
    /// Returns the peer whose credential ID_CRED names.
    fn peer_of(&self, id: &lakers::IdCred) -> Result<&Peer, ExchangeError> {
        let peer = self.peers.iter().find(|peer| peer.credential.is_named_by(id));
        peer.ok_or_else(|| {
            // {4: kid}: the kid follows the map's head, its key, and its own head.
            let kid = id.as_full_value().get(3..).unwrap_or_default();
            ExchangeError::UnknownCredential(kid.iter().map(|octet| format!("{octet:02x}")).collect())
        })
    }
}

/// Returns the reason in an error message of the other end; `None` if it is none.
pub(super) fn refusal_of(payload: &[u8]) -> Option<ExchangeError> {
    message::meaning(payload).map(ExchangeError::Refused)
}

/// Returns all byte strings that are one octet in a message, those of -24 to 23, from a random one on. RFC 9528, section 3.3.2.
pub(super) fn short_ids(random: u8) -> impl Iterator<Item = u8> {
    let all = (0x00..=0x17).chain(0x20..=0x37);
    all.clone().chain(all).skip(usize::from(random % 48)).take(48)
}
