//! Keys for a peer, each with its id and what is derived from it once; and peers by their public keys.

use std::collections::HashMap;

use super::peer::PeerState;
use crate::seal::Random;
use crate::seal::handshake::{EndIdentity, Initiation, ProofKey};
use crate::seal::key_file::{Key, KeyId};
use crate::seal::public_key::{Keyring, PublicKey, PublicKeys};

/// One key for a peer, with which a session can be agreed on.
#[derive(Clone)]
pub(in crate::seal) struct Credential {
    pub(in crate::seal) id: KeyId,
    /// Key of cookies, and in a handshake the shared key: with public keys that of the peer in its place.
    pub(in crate::seal) key: Key,
    pub(in crate::seal) proof: ProofKey,
    /// Public keys; `None`: a shared one.
    pub(in crate::seal) public: Option<Box<PublicKeys>>,
}

impl Credential {
    /// Returns the credentials of a keyring, in the order of their use.
    pub(super) fn of(keys: &Keyring) -> Vec<Self> {
        let shared = keys.shared().map(|key| Self {
            id: key.id(),
            key: key.clone(),
            proof: ProofKey::of(key),
            public: None,
        });
        let public = keys.public.iter().map(|public| {
            let gate = public.theirs().gate();
            Self { id: public.id(), proof: ProofKey::of(&gate), key: gate, public: Some(public.clone()) }
        });
        shared.chain(public).collect()
    }

    /// Writes a request by it to `out`.
    pub(super) fn start(
        &self,
        index: u8,
        ours: &EndIdentity,
        number: u32,
        random: &mut dyn Random,
        out: &mut Vec<u8>,
    ) -> Initiation {
        match &self.public {
            Some(keys) => Initiation::start_public((keys, &self.proof), index, ours, number, random, out),
            None => Initiation::start((&self.key, &self.proof), index, ours, number, random, out),
        }
    }
}

/// This end and its peers by their public keys.
pub(super) struct PublicEnds {
    /// `None`: no peer has one.
    pub(super) own: Option<OwnEnd>,
    peers: HashMap<PublicKey, usize>,
}

/// The private key of this end, and what a request to it proves.
#[derive(Clone)]
pub(super) struct OwnEnd {
    pub(super) private: Key,
    /// Key of cookies.
    pub(super) gate: Key,
    pub(super) proof: ProofKey,
}

impl PublicEnds {
    pub(super) fn of(peers: &[PeerState]) -> Self {
        let keys = peers.iter().enumerate().flat_map(|(number, peer)| {
            peer.keys.iter().filter_map(move |key| Some((number, key.public.as_deref()?)))
        });
        let mut ends = Self { own: None, peers: HashMap::new() };
        for (number, keys) in keys {
            ends.peers.insert(*keys.theirs(), number);
            ends.own.get_or_insert_with(|| {
                let gate = keys.ours().gate();
                OwnEnd { private: keys.private().clone(), proof: ProofKey::of(&gate), gate }
            });
        }
        ends
    }

    /// Number of the peer with a public key.
    pub(super) fn peer(&self, key: &PublicKey) -> Option<usize> {
        self.peers.get(key).copied()
    }
}
