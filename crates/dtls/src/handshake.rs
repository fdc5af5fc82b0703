//! State of both ends during a handshake.

use alloc::vec::Vec;
use core::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::alert::AlertDescription;
use crate::cid::Cid;
use crate::flight::Flight;
use crate::incoming::{Incoming, body};
use crate::message::FINISHED;
use crate::prf::{HASH, Keys, MasterSecret, Random};

/// Reason why a handshake has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The other end does not answer.
    NoAnswer {
        /// Number of transmissions of the last flight.
        transmissions: u8,
    },
    /// The other end has answered, and does not confirm the keys: it may have another key for the identity.
    NotConfirmed {
        /// Number of transmissions of the last flight.
        transmissions: u8,
    },
    /// The other end has sent an alert. It is not authentic, as there are no keys yet.
    Alert(AlertDescription),
    /// The other end was sent an alert: it is at fault.
    Refused(AlertDescription),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer { transmissions } => {
                write!(f, "no answer to {transmissions} transmissions of a DTLS handshake")
            }
            Self::NotConfirmed { transmissions } => write!(
                f,
                "the DTLS handshake was not confirmed, after {transmissions} transmissions: the keys of both ends may differ"
            ),
            Self::Alert(AlertDescription::BAD_RECORD_MAC | AlertDescription::DECRYPT_ERROR) => {
                write!(f, "the other end has another key for this identity")
            }
            Self::Alert(AlertDescription::UNKNOWN_PSK_IDENTITY) => {
                write!(f, "the other end has no key with this identity")
            }
            Self::Alert(description) => write!(f, "the other end refuses the DTLS handshake: {description}"),
            Self::Refused(AlertDescription::BAD_RECORD_MAC | AlertDescription::DECRYPT_ERROR) => {
                write!(f, "it has another key for its identity")
            }
            Self::Refused(AlertDescription::UNKNOWN_PSK_IDENTITY) => write!(f, "its identity is unknown"),
            Self::Refused(AlertDescription::HANDSHAKE_FAILURE) => {
                write!(f, "it does not support TLS_PSK_WITH_AES_128_CCM_8 with extended master secret")
            }
            Self::Refused(description) => write!(f, "its DTLS handshake is not valid: {description}"),
        }
    }
}

impl core::error::Error for Failure {}

/// Handshake of a client or server.
pub(crate) struct Handshake {
    /// Hash of all messages, but the first ClientHello and HelloVerifyRequest. RFC 6347, section 4.2.6.
    transcript: Sha256,
    pub(crate) incoming: Incoming,
    pub(crate) flight: Flight,
    /// Number of the ClientHello, at a server.
    pub(crate) hello: u16,
    pub(crate) client_random: Random,
    pub(crate) server_random: Random,
    /// True if both ends use connection IDs.
    pub(crate) has_cids: bool,
    /// Session of the ClientHello, later that of the ServerHello.
    pub(crate) session_id: Vec<u8>,
    /// True if the session is resumed: there are no keys to exchange.
    pub(crate) is_resumed: bool,
    /// Connection ID of the other end.
    pub(crate) write_cid: Cid,
    /// Number of the next message to send.
    next_message: u16,
    /// Next sequence number of epoch 0.
    pub(crate) sequence: u64,
    /// True if an alert was sent, as a record could not be decrypted.
    pub(crate) is_refused: bool,
    /// Master secret, behind ClientKeyExchange, or of the session that is resumed.
    pub(crate) secret: Option<MasterSecret>,
}

impl Handshake {
    /// `incoming`, `outgoing`: numbers of the next messages.
    pub(crate) fn new(incoming: u16, outgoing: u16, sequence: u64) -> Self {
        Self {
            transcript: Sha256::new(),
            incoming: Incoming::new(incoming),
            flight: Flight::default(),
            hello: 0,
            client_random: [0; 32],
            server_random: [0; 32],
            has_cids: false,
            session_id: Vec::new(),
            is_resumed: false,
            write_cid: Cid::EMPTY,
            next_message: outgoing,
            sequence,
            is_refused: false,
            secret: None,
        }
    }

    /// Starts the hash, with nothing in it.
    pub(crate) fn restart_transcript(&mut self) {
        self.transcript = Sha256::new();
    }

    /// Adds a message that is received in one fragment.
    pub(crate) fn hash_message(&mut self, message: &[u8]) {
        self.transcript.update(message);
    }

    /// Adds the complete message to the hash, and expects the next one.
    pub(crate) fn accept_message(&mut self) {
        self.transcript.update(self.incoming.message().1);
        self.incoming.advance();
    }

    /// Appends a message to the flight and to the hash.
    pub(crate) fn push(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        let message = self.flight.push(kind, self.next_message, write);
        self.transcript.update(message);
        self.next_message = self.next_message.wrapping_add(1);
    }

    /// Appends ChangeCipherSpec and Finished of the client, or of the server.
    pub(crate) fn finish(&mut self, is_client: bool) {
        let Some(secret) = &self.secret else { return };
        let finished = secret.verify_data(is_client, &self.hash());
        self.flight.change_cipher_spec();
        self.push(FINISHED, |out| out.extend_from_slice(&finished));
    }

    /// Returns the keys of both directions, once there is a master secret.
    pub(crate) fn keys(&self) -> Option<Keys> {
        Some(self.secret.as_ref()?.keys(&self.client_random, &self.server_random))
    }

    /// Returns the hash of all messages so far.
    pub(crate) fn hash(&self) -> [u8; HASH] {
        self.transcript.clone().finalize().into()
    }

    /// True if the complete message is the Finished message of the client, or of the server.
    pub(crate) fn is_finished_by(&self, is_client: bool) -> bool {
        let (_, message) = self.incoming.message();
        self.secret
            .as_ref()
            .is_some_and(|secret| secret.verify_data(is_client, &self.hash()).ct_eq(body(message)).into())
    }
}
