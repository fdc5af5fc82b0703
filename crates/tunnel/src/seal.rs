//! How datagrams are sealed: bodies in, datagrams out, and back.
//!
//! Three kinds. [`TwoWay`]: peers that answer; each pair agrees on keys by a handshake. [`Group`]: sites that
//! broadcast; each announces keys of its own. [`Insecure`]: one octet says what a body is, and nobody is kept out. The
//! octets are described in `docs/carriers.md`, section "Encrypted datagrams".
//!
//! Sans-IO: times, octets and random octets are handed in; datagrams and events come out. Only
//! [`key_file`] and [`FileStore`] touch files. **After every [`open`](Seal::open), and at [`poll_at`](Seal::poll_at),
//! [`poll`](Seal::poll) is to be called until it gives nothing more.**

use std::net::SocketAddr;

use thinair_wire::time::Instant;
use thiserror::Error;

use crate::unit::SiteId;

mod around;
mod cookie;
mod direction;
mod epochs;
mod group;
mod handshake;
mod header;
mod insecure;
pub mod key_file;
mod replay;
mod suite;
mod two_way;

#[cfg(test)]
mod tests;

pub use around::Around;
pub use epochs::{Epoch, EpochStore, FileStore};
pub use group::{BadGroup, Group, GroupPlan};
pub use insecure::Insecure;
pub use key_file::{Key, KeyFileError, KeyId, Keys};
pub use two_way::{BadPeers, Over, PEERS, PeerKeys, SessionState, TwoWay, Unanswered, Whereabouts};

/// Where random octets come from. They must be good: keys are made of them.
pub trait Random: Send {
    /// Fills `octets` with random ones that nobody can guess.
    fn fill(&mut self, octets: &mut [u8]);
}

impl<F: FnMut(&mut [u8]) + Send> Random for F {
    fn fill(&mut self, octets: &mut [u8]) {
        self(octets);
    }
}

/// What is to be known of a body before it is unpacked. Travels in the clear header, and is authenticated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyFlags {
    /// More than one unit is in it.
    pub several: bool,
    /// In a mesh: it begins with the number of the one site that it is for. Between two ends: its units belong to the
    /// channel with large CIDs; of an empty body: its sender has ended the session.
    pub addressed: bool,
}

/// Whom a body is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The peer of that number.
    Peer(usize),
    /// All sites of the group.
    Everybody,
}

/// Whom a body is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sender {
    /// The peer of that number.
    Peer(usize),
    /// A site of the group.
    Site(SiteId),
}

/// Units that are missing between a datagram and the newest one before it. Counters count units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// So many were sent between the two, and have not arrived.
    Counted(u32),
    /// The first datagram of its session: those that follow are counted from here.
    Unknown,
    /// Nothing is counted, or the datagram is late: newer ones were opened before.
    #[default]
    Uncounted,
}

/// What a datagram was.
#[derive(Debug, PartialEq, Eq)]
pub enum Opened<'d> {
    /// A body.
    Body {
        /// Whose.
        from: Sender,
        /// What is to be known of it.
        flags: BodyFlags,
        /// Its octets; never empty.
        body: &'d [u8],
        /// It is the newest one of the peer's: its address is now the peer's.
        newest: bool,
        /// Units that are missing before it.
        missing: Missing,
        /// It is the first one by new keys: as [`Session`](Self::Session), before the body.
        session: Option<NewSession>,
    },
    /// About the path MTU.
    Path {
        /// Whose.
        from: Sender,
        /// As in [`Body`](Self::Body).
        newest: bool,
        /// As in [`Body`](Self::Body).
        missing: Missing,
        /// As in [`Body`](Self::Body).
        session: Option<NewSession>,
        /// The content.
        path: PathNews<'d>,
    },
    /// New keys are in use.
    Session {
        /// With whom.
        from: Sender,
        /// What is new.
        session: NewSession,
    },
    /// A sign of life.
    Alive {
        /// Whose.
        from: Sender,
        /// As in [`Body`](Self::Body).
        missing: Missing,
    },
    /// The other end has ended the session, and says so. There is none any more.
    Closed {
        /// Who has.
        from: Sender,
    },
    /// Something authentic that is none of the caller's business: part of a handshake.
    Handled,
    /// Refused, and nothing was changed by it.
    Refused(Refused),
}

/// What a peer has sent about the path MTU. Lengths are octets of the payload of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathNews<'d> {
    /// A datagram of that length has arrived there.
    Confirmed(u16),
    /// The length of this datagram is to be confirmed; it is a probe without a body.
    Confirm,
    /// The length of this datagram is to be confirmed, and it has a body.
    ConfirmBody(BodyFlags, &'d [u8]),
}

/// What is sealed about the path MTU. Lengths as in [`PathNews`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathSeal<'b> {
    /// A body whose datagram is to be confirmed.
    Body(BodyFlags, &'b [u8]),
    /// Padding, so that the datagram has that length.
    Padding(u16),
    /// A datagram of that length has arrived.
    Confirmation(u16),
}

/// New keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// The other end has started anew since we heard from it: contexts of headers start anew, too.
    pub restarted: bool,
}

/// Why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[non_exhaustive]
pub enum Refused {
    /// It is nothing that this carrier has.
    #[error("not a datagram of this kind of carrier")]
    Malformed,
    /// Its session, site or address is not known here.
    #[error("of nobody who is known")]
    Unknown,
    /// It asks for a session, or announces keys, by a key that is in no key file here.
    #[error("by key {key}, which is not known here")]
    UnknownKey {
        /// The key that it names.
        key: KeyId,
        /// Who may have sent it. **Not authenticated**: a guess by its address, or the only one without a session.
        of: Option<Sender>,
    },
    /// It was not sealed by the key that it names.
    #[error("forged, damaged, or sealed by another key")]
    Forged,
    /// It was there already.
    #[error("replayed")]
    Replayed,
    /// It is more than 2,048 packets late.
    #[error("too old")]
    TooOld,
    /// It is one of ours.
    #[error("reflected")]
    Reflected,
    /// So many were forged that the key is out of use.
    #[error("too many were forged; new keys are awaited")]
    WornOut,
    /// An answer to nothing that we have asked, or that somebody else has answered.
    #[error("an answer to nothing")]
    Unasked,
    /// Several peers share its key, and its address is that of none of them.
    #[error("of one of several peers with the same key, at no known address")]
    Ambiguous,
    /// The other end seals by another cipher.
    #[error("the other end seals with another cipher")]
    OtherSuite(Sender),
    /// The other end has other parameters of channels.
    #[error("the other end has other channel parameters")]
    OtherParameters(Sender),
    /// The site has announced a higher epoch before.
    #[error("of an epoch that is over")]
    StaleEpoch(SiteId),
    /// The site has announced this epoch with another salt before.
    #[error("of a known epoch with another salt")]
    OtherSalt(SiteId),
    /// The site has not announced its keys yet.
    #[error("by keys that were not announced yet")]
    NotAnnounced(SiteId),
    /// The highest epoch cannot be kept, so that it is not used.
    #[error("its epoch cannot be kept")]
    NotKept(SiteId),
}

impl Refused {
    /// Its name in counters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::UnknownKey { .. } => "unknown_key",
            Self::Forged => "forged",
            Self::Replayed => "replayed",
            Self::TooOld => "too_old",
            Self::Reflected => "reflected",
            Self::WornOut => "worn_out",
            Self::Unasked => "unasked",
            Self::Ambiguous => "ambiguous",
            Self::OtherSuite(_) => "other_suite",
            Self::OtherParameters(_) => "other_parameters",
            Self::StaleEpoch(_) => "stale_epoch",
            Self::OtherSalt(_) => "other_salt",
            Self::NotAnnounced(_) => "not_announced",
            Self::NotKept(_) => "not_kept",
        }
    }
}

/// Why a body was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum NotSealed {
    /// There are no keys yet, or no longer; they are on their way.
    #[error("no keys have been agreed on yet")]
    NoSession,
    /// There is no such destination.
    #[error("no such destination")]
    NoDestination,
    /// This site only hears.
    #[error("this site only hears")]
    OnlyHears,
}

/// How datagrams are sealed.
#[expect(clippy::large_enum_variant, reason = "there is one of it")]
pub enum Seal {
    /// Not at all.
    Insecure(Insecure),
    /// For peers that answer.
    TwoWay(TwoWay),
    /// For sites that broadcast.
    Group(Group),
}

impl Seal {
    /// Seals `body` into `out`, which is emptied before. An empty body is a sign of life.
    pub fn seal(
        &mut self,
        now: Instant,
        to: Destination,
        flags: BodyFlags,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        out.clear();
        match self {
            Self::Insecure(seal) => seal.seal(to, flags, body, out),
            Self::TwoWay(seal) => seal.seal(now, to, flags, body, out),
            Self::Group(seal) => seal.seal(now, to, flags, body, out),
        }
    }

    /// Seals what is about the path MTU towards a peer into `out`, which is emptied before.
    pub fn seal_path(
        &mut self,
        now: Instant,
        peer: usize,
        path: PathSeal<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        out.clear();
        match self {
            Self::TwoWay(seal) => seal.seal_path(now, peer, path, out),
            Self::Insecure(_) | Self::Group(_) => Err(NotSealed::NoDestination),
        }
    }

    /// Counts the units of the body that was sealed last for `to`: a counter for each, and one at least. They tell the
    /// other end how many are missing where a datagram is.
    pub fn note_sealed(&mut self, to: Destination, units: u32) {
        match self {
            Self::Insecure(_) => {}
            Self::TwoWay(seal) => seal.note_sealed(to, units),
            Self::Group(seal) => seal.note_sealed(units),
        }
    }

    /// Counts the units that were found in the newest body of `from`.
    pub fn note_opened(&mut self, from: Sender, units: u32) {
        match self {
            Self::Insecure(_) => {}
            Self::TwoWay(seal) => seal.note_opened(from, units),
            Self::Group(seal) => seal.note_opened(from, units),
        }
    }

    /// Opens `datagram` in place. `from`: its source; `None` where the carrier has no addresses.
    pub fn open<'d>(&mut self, now: Instant, from: Option<SocketAddr>, datagram: &'d mut [u8]) -> Opened<'d> {
        match self {
            Self::Insecure(seal) => seal.open(from, datagram),
            Self::TwoWay(seal) => seal.open(now, from, datagram),
            Self::Group(seal) => seal.open(now, datagram),
        }
    }

    /// Writes the next datagram that is to be sent unasked to `out`, which is emptied before: for whom, and to exactly
    /// which address if not to that of the peer. `None`: nothing, until [`poll_at`](Self::poll_at).
    pub fn poll(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<(Destination, Option<SocketAddr>)> {
        out.clear();
        match self {
            Self::Insecure(_) => None,
            Self::TwoWay(seal) => seal.poll(now, out),
            Self::Group(seal) => seal.poll(now, out).then_some((Destination::Everybody, None)),
        }
    }

    /// When [`poll`](Self::poll) is to be called next, though nothing comes and goes. May be early.
    pub fn poll_at(&self) -> Option<Instant> {
        match self {
            Self::Insecure(_) => None,
            Self::TwoWay(seal) => seal.poll_at(),
            Self::Group(seal) => seal.poll_at(),
        }
    }

    /// Where the peer of that number is, as far as is known.
    pub fn address(&self, peer: usize) -> Option<SocketAddr> {
        match self {
            Self::Insecure(seal) => seal.address(peer),
            Self::TwoWay(seal) => seal.address(peer),
            Self::Group(_) => None,
        }
    }

    /// Next peer that was found not to answer. To be called after [`poll`](Self::poll) until there is none.
    pub fn poll_unanswered(&mut self) -> Option<(usize, Unanswered)> {
        match self {
            Self::TwoWay(seal) => seal.poll_unanswered(),
            Self::Insecure(_) | Self::Group(_) => None,
        }
    }

    /// Hint, by ICMP, that nothing listens at `address`. **It is not authenticated**: at most every 30 s it makes a peer
    /// there be asked for new keys, and no session ends.
    pub fn note_unreachable(&mut self, now: Instant, address: SocketAddr) {
        match self {
            Self::TwoWay(seal) => seal.note_unreachable(now, address),
            Self::Insecure(_) | Self::Group(_) => {}
        }
    }

    /// Key that the peer of that number is asked with first.
    pub fn key(&self, peer: usize) -> Option<KeyId> {
        match self {
            Self::TwoWay(seal) => seal.key(peer),
            Self::Group(seal) => Some(seal.key()),
            Self::Insecure(_) => None,
        }
    }

    /// Ends all sessions between two peers: [`poll`](Self::poll) gives a farewell for each. Nothing is sealed after.
    pub fn farewell(&mut self, now: Instant) {
        match self {
            Self::TwoWay(seal) => seal.farewell(now),
            Self::Insecure(_) | Self::Group(_) => {}
        }
    }

    /// Octets of header and tag.
    pub fn around(&self) -> Around {
        match self {
            Self::Insecure(seal) => seal.around(),
            Self::TwoWay(seal) => seal.around(),
            Self::Group(seal) => seal.around(),
        }
    }

    /// Before the daemon ends: what must be kept is stored.
    pub fn close(&mut self) -> std::io::Result<()> {
        match self {
            Self::Insecure(_) | Self::TwoWay(_) => Ok(()),
            Self::Group(seal) => seal.close(),
        }
    }
}
