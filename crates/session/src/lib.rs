//! Sessions of a tunnel: encryption and authentication of datagrams, bodies to datagrams and back; the
//! [path MTU](path_mtu) to a peer, the [timeout of a NAT](mapping), and [frames on a line](mod@line).
//!
//! There are three variants. [`TwoWay`]: peers that answer; each pair agrees on keys in a handshake.
//! [`Group`]: sites that broadcast; each announces its own keys. [`Insecure`]: one octet with the kind of a
//! body, without protection. `docs/carriers.md`, section "Encrypted datagrams", describes the formats.
//!
//! Sans-IO: times, octets and random octets are arguments; datagrams and events are results. Contents of bodies are unknown here. **After every
//! [`open`](Seal::open), and at [`poll_at`](Seal::poll_at), call [`poll`](Seal::poll) until it returns `None`.**

#![deny(missing_docs)]

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use thinair_wire::time::Instant;
use thiserror::Error;

mod addresses;
mod around;
mod cookie;
mod direction;
mod epochs;
mod group;
mod handshake;
mod header;
mod insecure;
mod key;
pub mod line;
pub mod mapping;
mod mapping_message;
pub mod path_mtu;
mod primitives;
mod public_key;
mod replay;
mod schedule;
mod suite;
mod two_way;

#[cfg(test)]
mod tests;

pub use addresses::{AddressPair, canonical};
pub use around::Around;
pub use epochs::{Epoch, EpochStore};
pub use group::{BadGroup, Group, GroupConfig};
pub use insecure::Insecure;
pub use key::{Key, KeyId, KeyTextError, Keys};
pub use mapping_message::MappingMessage;
pub use public_key::{BadPublicKey, Keyring, PublicKey, PublicKeys};
pub use schedule::Schedule;
pub use suite::Suite;
pub use two_way::{
    BadPeers, FEW, Over, PEERS, PeerKeys, Rekey, SessionState, TwoWay, Unanswered, Whereabouts,
};

/// Source of random octets, from which keys are made: it must be cryptographically secure.
pub trait Random: Send {
    /// Fills `octets` with unpredictable octets.
    fn fill(&mut self, octets: &mut [u8]);
}

impl<F: FnMut(&mut [u8]) + Send> Random for F {
    fn fill(&mut self, octets: &mut [u8]) {
        self(octets);
    }
}

/// Properties of a body that are required for unpacking it. They are in the clear header, and authenticated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyFlags {
    /// True if the body contains more than one unit.
    pub several: bool,
    /// In a mesh: the body begins with the number of its only destination site. Between two ends: its units
    /// belong to the channel with large CIDs; with an empty body: the sender has ended the session.
    pub addressed: bool,
}

/// Destination of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The peer of this number.
    Peer(usize),
    /// All sites of the group.
    Everybody,
}

/// Number of a site in a mesh, 1 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(std::num::NonZeroU8);

impl SiteId {
    /// Returns the site of that number; `None` for 0, which is reserved.
    pub fn new(number: u8) -> Option<Self> {
        std::num::NonZeroU8::new(number).map(Self)
    }

    /// Number of the site.
    pub fn number(self) -> u8 {
        self.0.get()
    }
}

/// Sender of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sender {
    /// The peer of this number.
    Peer(usize),
    /// A site of the group.
    Site(SiteId),
}

/// Number of units missing between a datagram and the newest one before it. Counters count units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Number of units that were sent in between and have not arrived.
    Counted(u32),
    /// Unknown, for the first datagram of a session: those that follow are counted from here.
    Unknown,
    /// Not counted, or the datagram is late: newer ones have been opened before.
    #[default]
    Uncounted,
}

/// Result of opening a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum Opened<'d> {
    /// A body.
    Body {
        /// Sender.
        from: Sender,
        /// Properties of the body.
        flags: BodyFlags,
        /// Octets of the body, never empty.
        body: &'d [u8],
        /// True if it is the newest one of the peer: its source becomes the address of the peer.
        newest: bool,
        /// Units missing before it.
        missing: Missing,
        /// Set for the first datagram with new keys: as [`Session`](Self::Session), before the body.
        session: Option<NewSession>,
    },
    /// A message on the path MTU.
    Path {
        /// Sender.
        from: Sender,
        /// As in [`Body`](Self::Body).
        newest: bool,
        /// As in [`Body`](Self::Body).
        missing: Missing,
        /// As in [`Body`](Self::Body).
        session: Option<NewSession>,
        /// Content of the message.
        path: PathNews<'d>,
    },
    /// A message on the mapping of a NAT. It is no sign of life, as it concerns another socket than that in use.
    Mapping {
        /// Sender.
        from: Sender,
        /// As in [`Body`](Self::Body).
        missing: Missing,
        /// Content of the message.
        message: MappingMessage,
    },
    /// New keys are in use.
    Session {
        /// Other end of the session.
        from: Sender,
        /// Properties of the session.
        session: NewSession,
    },
    /// A sign of life.
    Alive {
        /// Sender.
        from: Sender,
        /// As in [`Body`](Self::Body).
        missing: Missing,
    },
    /// The other end has ended the session.
    Closed {
        /// Sender.
        from: Sender,
    },
    /// Authentic, without consequences for the caller: part of a handshake.
    Handled,
    /// Rejected, without effect.
    Refused(Refused),
}

/// Message of a peer on the path MTU. Lengths are octets of UDP payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathNews<'d> {
    /// A datagram of that length has arrived at the peer.
    Confirmed(u16),
    /// The length of this datagram must be confirmed; it is a probe without a body.
    Confirm,
    /// The length of this datagram must be confirmed, and it has a body.
    ConfirmBody(BodyFlags, &'d [u8]),
}

/// Content of a message on the path MTU. Lengths as in [`PathNews`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathSeal<'b> {
    /// A body; its datagram must be confirmed.
    Body(BodyFlags, &'b [u8]),
    /// Padding to a datagram of that length.
    Padding(u16),
    /// Confirmation that a datagram of that length has arrived.
    Confirmation(u16),
}

/// Properties of a new session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// True if the other end has restarted since its last datagram: header compression contexts are reset,
    /// too.
    pub restarted: bool,
}

/// Reason why a datagram was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum Refused {
    /// It has no valid format of this carrier.
    #[error("malformed for this carrier")]
    Malformed,
    /// Its session, site or address is unknown.
    #[error("unknown session, site or address")]
    Unknown,
    /// It requests a session, or announces keys, with a key that is in no key file here.
    #[error("unknown key {key}")]
    UnknownKey {
        /// Id of the key.
        key: KeyId,
        /// Possible sender. **Not authenticated**: a guess by its address, or the only peer without a
        /// session.
        of: Option<Sender>,
    },
    /// It requests a session with a public key that no peer has.
    #[error("unknown public key {0}")]
    UnknownPublicKey(PublicKey),
    /// It requests a session by a shared key where this end has public keys only, or the reverse.
    #[error("the other end uses {}", if *public { "public keys" } else { "a shared key" })]
    OtherMode {
        /// True if the request is one of public keys.
        public: bool,
        /// Possible sender, as in [`UnknownKey`](Self::UnknownKey). **Not authenticated.**
        of: Option<Sender>,
    },
    /// Authentication failed.
    #[error("authentication failed: forged, damaged, or encrypted with another key")]
    Forged,
    /// It is a replay.
    #[error("replayed")]
    Replayed,
    /// It is late by more than 2,048 packets.
    #[error("too late for the replay window")]
    TooOld,
    /// It is one of our own datagrams.
    #[error("our own datagram, reflected")]
    Reflected,
    /// Authentication failed so often that the key is no longer used.
    #[error("authentication failed too often; a key exchange is pending")]
    WornOut,
    /// A response without a pending request.
    #[error("an answer without a pending request")]
    Unasked,
    /// Several peers share its key, and its address is that of none of them.
    #[error("ambiguous: several peers share the key, and none has this address")]
    Ambiguous,
    /// The other end uses another cipher.
    #[error("the other end uses another cipher")]
    OtherSuite(Sender),
    /// The other end has other channel parameters.
    #[error("the other end has other channel parameters")]
    OtherParameters(Sender),
    /// The site has announced a higher epoch before.
    #[error("the epoch is over")]
    StaleEpoch(SiteId),
    /// The site has announced this epoch with another salt before.
    #[error("the epoch is known with another salt")]
    OtherSalt(SiteId),
    /// The site has not announced its keys yet.
    #[error("the keys were not announced yet")]
    NotAnnounced(SiteId),
    /// The highest epoch, or its progress, cannot be stored, and is therefore not used.
    #[error("the epoch cannot be stored")]
    NotKept(SiteId),
}

impl Refused {
    /// Name in counters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::UnknownKey { .. } | Self::UnknownPublicKey(_) => "unknown_key",
            Self::OtherMode { .. } => "other_mode",
            Self::Forged => "forged",
            Self::Replayed => "replayed",
            Self::TooOld => "too_old",
            Self::Reflected => "our own datagram, reflected",
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

/// Reason why a body was not encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum NotSealed {
    /// There is no session yet, or no longer; a key exchange is pending.
    #[error("no session yet; a key exchange is pending")]
    NoSession,
    /// The destination is unknown.
    #[error("unknown destination")]
    NoDestination,
    /// This site is a receiver only.
    #[error("this site is a receiver only")]
    OnlyHears,
}

/// Variant of protection.
#[allow(clippy::large_enum_variant, reason = "there is one of a site")]
pub enum Seal {
    /// No protection.
    Insecure(Insecure),
    /// For peers that answer.
    TwoWay(TwoWay),
    /// For sites that broadcast.
    Group(Group),
}

impl Seal {
    /// Appends the datagram of `body` to `out`. An empty body is a keepalive.
    pub fn seal(
        &mut self,
        now: Instant,
        to: Destination,
        flags: BodyFlags,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        match self {
            Self::Insecure(seal) => seal.seal(to, flags, body, out),
            Self::TwoWay(seal) => seal.seal(now, to, flags, body, out),
            Self::Group(seal) => seal.seal(to, flags, body, out),
        }
    }

    /// Appends the datagram of a message on the path MTU to a peer to `out`.
    pub fn seal_path(
        &mut self,
        now: Instant,
        peer: usize,
        path: PathSeal<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        match self {
            Self::TwoWay(seal) => seal.seal_path(now, peer, path, out),
            Self::Insecure(_) | Self::Group(_) => Err(NotSealed::NoDestination),
        }
    }

    /// Appends the datagram of a message on the mapping of a NAT to `out`. It is no sign of life, and moves no keepalive.
    pub fn seal_mapping(
        &mut self,
        now: Instant,
        peer: usize,
        message: &MappingMessage,
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        match self {
            Self::TwoWay(seal) => seal.seal_mapping(now, peer, message, out),
            Self::Insecure(_) | Self::Group(_) => Err(NotSealed::NoDestination),
        }
    }

    /// Sets the interval of keepalives to a peer that has keepalives.
    pub fn set_keepalive(&mut self, now: Instant, peer: usize, keepalive: Duration) {
        match self {
            Self::TwoWay(seal) => seal.set_keepalive(now, peer, keepalive),
            Self::Insecure(_) | Self::Group(_) => {}
        }
    }

    /// Shows the address of this end to peers with keepalives, as it may be another one.
    pub fn show_address(&mut self, now: Instant) {
        match self {
            Self::TwoWay(seal) => seal.show_address(now),
            Self::Insecure(_) | Self::Group(_) => {}
        }
    }

    /// Records the number of units in the last body encrypted for `to`: each uses a counter, at least one per
    /// body. The other end computes the number of missing units from them.
    pub fn note_sealed(&mut self, to: Destination, units: u32) {
        match self {
            Self::Insecure(_) => {}
            Self::TwoWay(seal) => seal.note_sealed(to, units),
            Self::Group(seal) => seal.note_sealed(units),
        }
    }

    /// Records the number of units in the newest body of `from`.
    pub fn note_opened(&mut self, from: Sender, units: u32) {
        match self {
            Self::Insecure(_) => {}
            Self::TwoWay(seal) => seal.note_opened(from, units),
            Self::Group(seal) => seal.note_opened(from, units),
        }
    }

    /// Decrypts `datagram` in place. `from`: its source, and the own address at which it arrived; `None` if
    /// the carrier has no addresses.
    pub fn open<'d>(
        &mut self,
        now: Instant,
        from: Option<AddressPair>,
        datagram: &'d mut [u8],
    ) -> Opened<'d> {
        match self {
            Self::Insecure(seal) => seal.open(from.map(|from| from.peer), datagram),
            Self::TwoWay(seal) => seal.open(now, from, datagram),
            Self::Group(seal) => seal.open(now, datagram),
        }
    }

    /// Writes the next pending datagram to `out`, which is cleared first. Returns its destination, and
    /// addresses if they differ from those of the peer. `None`: nothing is pending until
    /// [`poll_at`](Self::poll_at).
    pub fn poll(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<(Destination, Option<AddressPair>)> {
        out.clear();
        match self {
            Self::Insecure(_) => None,
            Self::TwoWay(seal) => seal.poll(now, out),
            Self::Group(seal) => seal.poll(now, out).then_some((Destination::Everybody, None)),
        }
    }

    /// Time of the next call of [`poll`](Self::poll) without other events. May be early.
    pub fn poll_at(&self) -> Option<Instant> {
        match self {
            Self::Insecure(_) => None,
            Self::TwoWay(seal) => seal.poll_at(),
            Self::Group(seal) => seal.poll_at(),
        }
    }

    /// Address of a peer, if it is known.
    pub fn address(&self, peer: usize) -> Option<SocketAddr> {
        match self {
            Self::Insecure(seal) => seal.address(peer),
            Self::TwoWay(seal) => seal.address(peer),
            Self::Group(_) => None,
        }
    }

    /// Own address from which datagrams to a peer leave: that at which it has asked for the session. `None`:
    /// that of the route.
    pub fn own_address(&self, peer: usize) -> Option<IpAddr> {
        match self {
            Self::TwoWay(seal) => seal.own_address(peer),
            Self::Insecure(_) | Self::Group(_) => None,
        }
    }

    /// Round trip to a peer, measured by the last key exchange. `None`: not measured.
    pub fn round_trip(&self, peer: usize) -> Option<Duration> {
        match self {
            Self::TwoWay(seal) => seal.round_trip(peer),
            Self::Insecure(_) | Self::Group(_) => None,
        }
    }

    /// Returns the next peer that does not answer. Call it after [`poll`](Self::poll) until it returns
    /// `None`.
    pub fn poll_unanswered(&mut self) -> Option<(usize, Unanswered)> {
        match self {
            Self::TwoWay(seal) => seal.poll_unanswered(),
            Self::Insecure(_) | Self::Group(_) => None,
        }
    }

    /// Processes an ICMP hint that no socket listens at `address`. **It is not authenticated**: at most every
    /// 30 s it triggers a key exchange with a peer at that address, and ends no session.
    pub fn note_unreachable(&mut self, now: Instant, address: SocketAddr) {
        match self {
            Self::TwoWay(seal) => seal.note_unreachable(now, address),
            Self::Insecure(_) | Self::Group(_) => {}
        }
    }

    /// Id of the key used first in a key exchange with a peer.
    pub fn key(&self, peer: usize) -> Option<KeyId> {
        match self {
            Self::TwoWay(seal) => seal.key(peer),
            Self::Group(seal) => Some(seal.key()),
            Self::Insecure(_) => None,
        }
    }

    /// Ends all sessions with peers: [`poll`](Self::poll) returns a farewell for each. Nothing is encrypted
    /// afterwards.
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

    /// Stores persistent state before the daemon ends.
    pub fn close(&mut self) -> std::io::Result<()> {
        match self {
            Self::Insecure(_) | Self::TwoWay(_) => Ok(()),
            Self::Group(seal) => seal.close(),
        }
    }
}
