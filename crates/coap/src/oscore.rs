//! OSCORE: requests and responses encrypted and authenticated from end to end. RFC 8613.
//!
//! A [`Context`] has the keys of two endpoints, the sequence number of its own requests, and the replay window of the other
//! end. It protects code, most options and payload of a message ([`Context::protect_request`]), which become the payload of
//! another one. An endpoint does so by itself for requests by
//! [`Endpoint::request_protected`](crate::Endpoint::request_protected), and for the answers to protected requests.
//!
//! Keys come from a common secret, or from EDHOC (RFC 9528), which the application runs; its last message goes with the first
//! protected request ([`Context::with_message_3`], [`KeyExchange`]).
//!
//! The only algorithms are AES-CCM-16-64-128 and HKDF with SHA-256, the mandatory ones. Not in it: storage of contexts, EDHOC,
//! Group OSCORE, key update, and outer Block1 and Block2, which only a proxy adds.

mod context;
mod contexts;
mod key_exchange;
mod keys;
mod nonce;
mod option;
mod protect;
#[cfg(test)]
mod tests;
mod window;

use core::fmt;

use crate::code;
use crate::request::Response;
use crate::table::SlotKey;

pub use context::{Context, ContextError, ContextParameters, MAX_ID, SequenceNumbers};
pub(crate) use contexts::Contexts;
pub use key_exchange::{Established, KeyExchange};
pub use keys::overwriting_stack;
pub(crate) use nonce::Id;
pub use option::OscoreOption;
pub use protect::{Binding, Protected, Unprotected};
pub use window::REPLAY_WINDOW;

/// Identifies a security context of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub(crate) SlotKey);

/// Reason why a protected message is rejected. The peer is at fault. RFC 8613, section 8.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OscoreError {
    /// The OSCORE option cannot be decoded, or the message has no ciphertext.
    Malformed,
    /// No context has this Recipient ID and ID Context.
    NoContext,
    /// The Partial IV was received before, or is older than the replay window.
    Replayed,
    /// The message was changed on its way, or protected with other keys.
    Forged,
    /// The message is divided by a proxy into outer blocks, which are not supported.
    OuterBlock,
}

impl OscoreError {
    /// Returns the unprotected response. RFC 8613, sections 7.4 and 8.2.
    pub(crate) fn as_response(self) -> Response<'static> {
        let (code, why) = match self {
            Self::Malformed => (code::BAD_OPTION, "Failed to decode COSE"),
            Self::NoContext => (code::UNAUTHORIZED, "Security context not found"),
            Self::Replayed => (code::UNAUTHORIZED, "Replay detected"),
            Self::Forged => (code::BAD_REQUEST, "Decryption failed"),
            Self::OuterBlock => (code::REQUEST_ENTITY_TOO_LARGE, "Outer blocks are not supported"),
        };
        Response::new(code).max_age(0).payload(why.as_bytes())
    }
}

impl fmt::Display for OscoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the OSCORE option cannot be decoded",
            Self::NoContext => "no security context has these identifiers",
            Self::Replayed => "the message was received before",
            Self::Forged => "the message was changed, or its keys are others",
            Self::OuterBlock => "the protected message is divided into outer blocks",
        })
    }
}

impl core::error::Error for OscoreError {}
