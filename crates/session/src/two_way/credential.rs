//! Keys for a peer, each with its id and what is derived from it once; and peers by their keys.

use std::collections::HashMap;

use crate::Random;
use crate::handshake::{EndIdentity, Initiation, ProofKey};
use crate::header::Index;
use crate::key::{Key, KeyId};
use crate::public_key::{Keyring, PublicKey, PublicKeys};

/// One key for a peer, with which a session can be agreed on.
#[derive(Clone)]
pub(crate) struct Credential {
    pub(crate) id: KeyId,
    /// Key of cookies, and in a handshake the shared key: with public keys that of the peer in its place.
    pub(crate) key: Key,
    pub(crate) proof: ProofKey,
    /// Public keys; `None`: a shared one.
    pub(crate) public: Option<Box<PublicKeys>>,
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
        index: Index,
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

/// This end by its private key, and its peers by their keys.
#[derive(Default)]
pub(super) struct KnownKeys {
    /// `None`: no peer has a public key.
    pub(super) own: Option<OwnEnd>,
    public: HashMap<PublicKey, u32>,
    /// Peers with a shared key of that id, in the order of their numbers.
    shared: HashMap<KeyId, Vec<u32>>,
}

/// The private key of this end, and what a request to it proves.
#[derive(Clone)]
pub(super) struct OwnEnd {
    pub(super) private: Key,
    /// Key of cookies.
    pub(super) gate: Key,
    pub(super) proof: ProofKey,
}

impl KnownKeys {
    /// Adds the keys of a peer.
    pub(super) fn add(&mut self, number: usize, keys: &[Credential]) {
        let number = number as u32;
        for key in keys {
            let Some(public) = &key.public else {
                let peers = self.shared.entry(key.id).or_default();
                if let Err(place) = peers.binary_search(&number) {
                    peers.insert(place, number);
                }
                continue;
            };
            self.public.insert(*public.theirs(), number);
            if self.own.as_ref().is_none_or(|own| own.private != *public.private()) {
                let gate = public.ours().gate();
                let (private, proof) = (public.private().clone(), ProofKey::of(&gate));
                self.own = Some(OwnEnd { private, proof, gate });
            }
        }
    }

    /// Removes the keys of a peer.
    pub(super) fn remove(&mut self, number: usize, keys: &[Credential]) {
        let number = number as u32;
        for key in keys {
            match &key.public {
                Some(public) if self.public.get(public.theirs()) == Some(&number) => {
                    self.public.remove(public.theirs());
                }
                Some(_) => {}
                None => {
                    if let Some(peers) = self.shared.get_mut(&key.id) {
                        peers.retain(|peer| *peer != number);
                        if peers.is_empty() {
                            self.shared.remove(&key.id);
                        }
                    }
                }
            }
        }
        if self.public.is_empty() {
            self.own = None;
        }
    }

    /// Number of the peer with a public key.
    pub(super) fn peer(&self, key: &PublicKey) -> Option<usize> {
        self.public.get(key).map(|number| *number as usize)
    }

    /// Numbers of the peers with a shared key of that id.
    pub(super) fn sharing(&self, id: KeyId) -> impl Iterator<Item = usize> + Clone {
        self.shared.get(&id).into_iter().flatten().map(|number| *number as usize)
    }

    /// True if a peer has a shared key.
    pub(super) fn has_shared(&self) -> bool {
        !self.shared.is_empty()
    }
}
