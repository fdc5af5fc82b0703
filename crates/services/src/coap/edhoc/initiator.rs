//! The Initiator: a client. RFC 9528, sections 5.2 to 5.4.

use lakers::{ConnId, CredentialTransfer, EDHOCMethod, EDHOCSuite, EdhocInitiator, EdhocInitiatorWaitM2};
use thinair_coap::oscore::Context;

use super::crypto::EdhocCrypto;
use super::{ExchangeError, Identity, context, guarded, message, reason};

/// An Initiator that waits for message 2.
pub struct Initiator {
    state: EdhocInitiatorWaitM2<EdhocCrypto>,
    id: u8,
}

impl Initiator {
    /// Begins an exchange, with a connection identifier of one octet that no other context of this end has as its Recipient ID.
    /// Returns the payload of the request.
    pub fn new(id: u8) -> (Self, Vec<u8>) {
        let initiator = EdhocInitiator::new(EdhocCrypto, EDHOCMethod::StatStat, EDHOCSuite::CipherSuite2);
        let id_1 = ConnId::from_slice(&[id]);
        let (state, message_1) =
            initiator.prepare_message_1(id_1, &None).expect("a message 1 without data has 37 octets");
        (Self { state, id }, [&[TRUE], message_1.as_slice()].concat())
    }

    /// Completes the exchange by message 2, the payload of the response. The context sends message 3 with its first request. Returns
    /// the name of the peer, too.
    ///
    /// # Errors
    /// The message is not of a peer of this end.
    pub fn complete(self, message_2: &[u8], identity: &Identity) -> Result<(Context, String), ExchangeError> {
        let message_2 = message::message_2(message_2)?;
        let unknown = |error| reason(&error, 2, "its credential");
        let (mut state, peer_id, credential, data) =
            guarded(2, || self.state.parse_message_2(&message_2).map_err(unknown))?;
        if data.is_some_and(|data| data.is_critical) {
            return Err(ExchangeError::Malformed(2));
        }
        let peer = identity.peer_of(&credential)?;
        let why = |error| reason(&error, 2, &peer.name);
        state.set_identity(identity.key.octets(), identity.credential.inner()).map_err(why)?;
        let state = guarded(2, || state.verify_message_2(peer.credential.inner()).map_err(why))?;
        let (state, message_3, _) =
            state.prepare_message_3(CredentialTransfer::ByReference, &None).map_err(why)?;
        let mut done = state.completed_without_message_4().map_err(why)?;
        let context =
            context(&mut |label, len| done.edhoc_exporter(label, &[], len), &[self.id], peer_id.as_slice())?;
        Ok((context.with_message_3(message_3.as_slice()), peer.name.clone()))
    }
}

/// `true` in CBOR, before message 1. RFC 9528, appendix A.2.
pub(super) const TRUE: u8 = 0xF5;
