//! Troubles: reasons why no packets reach a peer, with their beginning and end.

use std::fmt;
use std::net::SocketAddr;

use thinair_session::{KeyId, PublicKey, Refused, Seal, Sender, Unanswered};
use thinair_wire::time::Instant;

use super::output::OutputQueue;
use super::source::Source;
use super::{Site, SiteEvent, number};

/// Reason why no packets reach a peer, or arrive from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Requests for keys were not answered for 4 s.
    NoAnswer {
        /// Their destination; `None`: a line.
        address: Option<SocketAddr>,
        /// The key that they name.
        ours: Option<KeyId>,
    },
    /// Nothing was received for 15 s although data was sent.
    Silent {
        /// Its destination; `None`: a line.
        address: Option<SocketAddr>,
    },
    /// A request names a key that is in no key file of this end. **Not authenticated.**
    OtherKey {
        /// Its sender; `None`: a line.
        address: Option<SocketAddr>,
        /// The key that it names.
        theirs: KeyId,
        /// Our first key for the peer.
        ours: Option<KeyId>,
    },
    /// A request has a public key that no peer here has. Its sender has the private key.
    OtherPublicKey {
        /// Its sender; `None`: a line.
        address: Option<SocketAddr>,
        /// The public key.
        theirs: PublicKey,
    },
    /// A request uses public keys where this end has shared ones only, or the reverse. **Not authenticated.**
    OtherMode {
        /// Its sender; `None`: a line.
        address: Option<SocketAddr>,
        /// True if the request uses public keys.
        public: bool,
    },
    /// The network reports that nothing listens at the address. **Not authenticated.**
    Unreachable {
        /// The address.
        address: SocketAddr,
    },
    /// The channels of the other end have different parameters.
    OtherParameters,
    /// The other end uses another cipher.
    OtherSuite,
    /// The other end has ended the session.
    Closed,
}

impl Trouble {
    /// Stable name for machines, in `snake_case`.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoAnswer { .. } => "no_answer",
            Self::Silent { .. } => "silent",
            Self::OtherKey { .. } | Self::OtherPublicKey { .. } => "other_key",
            Self::OtherMode { .. } => "other_mode",
            Self::Unreachable { .. } => "unreachable",
            Self::OtherParameters => "other_parameters",
            Self::OtherSuite => "other_suite",
            Self::Closed => "closed",
        }
    }

    /// The address concerned, if any.
    pub const fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::NoAnswer { address, .. }
            | Self::Silent { address }
            | Self::OtherKey { address, .. }
            | Self::OtherPublicKey { address, .. }
            | Self::OtherMode { address, .. } => *address,
            Self::Unreachable { address } => Some(*address),
            Self::OtherParameters | Self::OtherSuite | Self::Closed => None,
        }
    }

    /// Rank of a trouble: an authenticated one above a hint, and a hint above silence.
    const fn weight(&self) -> u8 {
        match self {
            Self::NoAnswer { .. } | Self::Silent { .. } => 0,
            Self::OtherKey { .. }
            | Self::OtherPublicKey { .. }
            | Self::OtherMode { .. }
            | Self::Unreachable { .. } => 1,
            Self::OtherParameters | Self::OtherSuite | Self::Closed => 2,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |address: Option<SocketAddr>| {
            address.map_or("the other end of the line".to_owned(), |address| address.to_string())
        };
        let ours = |ours: Option<KeyId>| ours.map_or(String::new(), |ours| format!("; ours is {ours}"));
        match self {
            Self::NoAnswer { address, ours: key } => write!(
                f,
                "no answer from {}: nobody is there, a firewall is in between, or the keys differ{}",
                at(*address),
                ours(*key)
            ),
            Self::Silent { address } => {
                write!(f, "nothing was heard from {} for 15 s though something was sent", at(*address))
            }
            Self::OtherKey { address, theirs, ours: key } => write!(
                f,
                "a request from {} names key {theirs}, which is in no key file here{}",
                at(*address),
                ours(*key)
            ),
            Self::OtherPublicKey { address, theirs } => write!(
                f,
                "a request from {} has the public key {theirs}, which no peer here has; give it as `public_key` in its \
                 [[peer]] if it may come in",
                at(*address)
            ),
            Self::OtherMode { address, public: true } => write!(
                f,
                "a request from {} uses public keys, and this end has a shared key only; give `private_key` in [security] \
                 and `public_key` in [[peer]], or a `key` at the other end",
                at(*address)
            ),
            Self::OtherMode { address, public: false } => write!(
                f,
                "a request from {} uses a shared key, and this end has public keys only; give `key` here, or `private_key` \
                 and `public_key` at the other end",
                at(*address)
            ),
            Self::Unreachable { address } => {
                write!(f, "nothing listens at {address} (ICMP destination unreachable)")
            }
            Self::OtherParameters => f.write_str(
                "the other end has other channel parameters, so that nothing can be carried; `thinair tunnel check \
                 FILE --against OTHER` compares two files",
            ),
            Self::OtherSuite => {
                f.write_str("the other end encrypts with another cipher; give both the same `suite`")
            }
            Self::Closed => f.write_str("closed by the other end"),
        }
    }
}

impl Source {
    /// Records that source `number` has sent something authentic, which ends its trouble.
    pub(super) fn works(&mut self, number: usize, outputs: &mut OutputQueue) {
        if let Some((trouble, _)) = self.trouble.take() {
            outputs.push_event(Some(number), SiteEvent::Over(trouble));
        }
    }

    /// Records a trouble of source `number`. A trouble that is already known, or has a higher rank, stays.
    pub(super) fn suffers(
        &mut self,
        now: Instant,
        number: usize,
        trouble: Trouble,
        outputs: &mut OutputQueue,
    ) {
        let known = self.trouble.as_ref().map(|(known, _)| known);
        if known.is_some_and(|known| known.reason() == trouble.reason() || known.weight() > trouble.weight())
        {
            return;
        }
        self.trouble = Some((trouble, now));
        outputs.push_event(Some(number), SiteEvent::Trouble(trouble));
    }
}

impl Site {
    /// Handles a hint, by ICMP, that nothing listens at `address`. **It is not authenticated**: it is shown,
    /// and new keys are requested from a peer there, at most every 30 s; no session ends.
    pub fn note_unreachable(&mut self, now: Instant, address: SocketAddr) {
        if let Some(seal) = &mut self.common.seal {
            seal.note_unreachable(now, address);
        }
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        if self.mesh {
            return;
        }
        for (number, (pipeline, source)) in self.pipelines.iter().zip(&mut self.sources).enumerate() {
            if pipeline.link.address(self.common.seal.as_ref()) == Some(address) {
                source.suffers(now, number, Trouble::Unreachable { address }, &mut self.common.outputs);
            }
        }
    }

    /// Records the refusal of a datagram of a handshake.
    pub(super) fn note_refused(&mut self, now: Instant, from: Option<SocketAddr>, refused: Refused) {
        let (sender, trouble) = match refused {
            Refused::OtherParameters(sender) => (Some(sender), Trouble::OtherParameters),
            Refused::OtherSuite(sender) => (Some(sender), Trouble::OtherSuite),
            Refused::UnknownPublicKey(theirs) => (None, Trouble::OtherPublicKey { address: from, theirs }),
            Refused::OtherMode { public, of } => (of, Trouble::OtherMode { address: from, public }),
            Refused::UnknownKey { key, of } => {
                let peer = match of {
                    Some(Sender::Peer(peer)) => peer,
                    Some(Sender::Site(_)) | None => 0,
                };
                let ours = self.common.seal.as_ref().and_then(|seal| seal.key(peer)).filter(|_| of.is_some());
                (of, Trouble::OtherKey { address: from, theirs: key, ours })
            }
            _ => return,
        };
        let number = sender.and_then(|sender| number(&self.sources, sender));
        let outputs = &mut self.common.outputs;
        match number.and_then(|number| Some((number, self.sources.get_mut(number)?))) {
            Some((number, source)) => source.suffers(now, number, trouble, outputs),
            None => {
                outputs.push_event(None, SiteEvent::Trouble(trouble));
            }
        }
    }

    /// Records peers that do not answer.
    pub(super) fn note_unanswered(&mut self, now: Instant) {
        while let Some((peer, unanswered)) = self.common.seal.as_mut().and_then(Seal::poll_unanswered) {
            let (Some(pipeline), Some(source)) = (self.pipelines.get(peer), self.sources.get_mut(peer))
            else {
                continue;
            };
            let seal = self.common.seal.as_ref();
            let address = pipeline.link.address(seal);
            let trouble = match unanswered {
                Unanswered::Request => {
                    Trouble::NoAnswer { address, ours: seal.and_then(|seal| seal.key(peer)) }
                }
                Unanswered::Session => Trouble::Silent { address },
            };
            source.suffers(now, peer, trouble, &mut self.common.outputs);
        }
    }
}
