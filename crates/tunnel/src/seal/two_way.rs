//! Peers that answer: each pair agrees on keys in a handshake, again after much traffic or 2 hours with some, and each end may
//! restart.
//!
//! A peer has up to four sessions: the current one, with which we encrypt; the previous one, which still
//! decrypts its last packets; the next one, created by a request of the peer; and one that we have requested.
//! An initiator uses a session as soon as it is answered. A responder uses it after decrypting a packet of
//! it: a replayed request thus changes nothing, and no packet is encrypted that the other end cannot decrypt
//! yet.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use thinair_wire::time::Instant;
use thiserror::Error;

use super::cookie::Jar;
use super::handshake::EndIdentity;
use super::header::{ANSWER, COOKIE, ClearHeader, DatagramKind, PUBLIC_REQUEST, PathBody, REQUEST, Whose};
use super::public_key::Keyring;
use super::{
    Around, BodyFlags, Destination, MappingMessage, NotSealed, Opened, PathNews, PathSeal, Random, Refused,
    Sender,
};
use crate::addresses::AddressPair;
use crate::site_config::{Rekey, Suite};

mod credential;
mod indices;
mod membership;
mod messages;
mod peer;
mod restart;
mod session;
mod timers;

use credential::PublicEnds;
use indices::Indices;
use peer::PeerState;
pub use peer::Unanswered;
pub use restart::Whereabouts;
pub use session::SessionState;

/// Maximum number of peers: an index, of an octet, identifies one of their sessions, of which each has four.
pub const PEERS: usize = 64;
/// Maximum number of pending answers; further ones are dropped.
const ANSWERS: usize = 16;
/// Number of buckets of requests.
const BUCKETS: usize = 64;
/// Number of requests answered at once without a cookie in each of them, and the interval at which another one is allowed.
const BURST: u64 = 16;
const ONE_MORE: Duration = Duration::from_millis(125);

/// Transport below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Datagrams of many peers.
    Datagrams,
    /// A line with one peer: datagrams are an octet shorter, and have no addresses.
    Line,
}

/// Parameters of a peer.
#[derive(Clone, Debug)]
pub struct PeerKeys {
    /// Keys for it.
    pub keys: Keyring,
    /// Address; `None`: the peer contacts us.
    pub address: Option<SocketAddr>,
    /// Interval at which a keepalive is requested. `None`: not requested.
    pub keepalive: Option<Duration>,
}

/// Reason why the parameters of peers are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadPeers {
    /// There are none, more than one on a line, or more than [`PEERS`].
    #[error("{0} peers; expected 1 to 64, or 1 on a serial line")]
    Count(usize),
    /// Two peers cannot be distinguished.
    #[error("peers {0} and {1} have the same key and no address; give them different keys, or addresses")]
    Alike(usize, usize),
    /// Two peers have the same public key.
    #[error("peers {0} and {1} have the same public key; each needs its own")]
    AlikePublic(usize, usize),
    /// Two keys have equal ids.
    #[error("peers {0} and {1} have keys with equal ids; create another key")]
    KeyIds(usize, usize),
}

/// Encrypted datagrams for peers that answer.
pub struct TwoWay {
    over: Over,
    suite: Suite,
    rekey: Rekey,
    has_bare_keepalives: bool,
    ours: EndIdentity,
    random: Box<dyn Random>,
    peers: Vec<PeerState>,
    /// Follows from the keys of the peers.
    public: PublicEnds,
    indices: Indices,
    jar: Jar,
    load: Box<RequestLoad>,
    answers: VecDeque<PendingAnswer>,
    /// Lower bound of the next timeout of any peer.
    due: Option<Instant>,
    /// True if a peer that does not answer is to be reported.
    has_unanswered: bool,
    /// Number of changes of peers' addresses.
    moves: u64,
}

struct PendingAnswer {
    peer: usize,
    to: Option<AddressPair>,
    octets: Vec<u8>,
}

impl TwoWay {
    /// Creates the state of this instance, and draws its number. `digest`: of the channel parameters, which
    /// must be equal at both ends. A key exchange with peers of known addresses starts at the next
    /// [`poll`](super::Seal::poll).
    pub fn new(
        now: Instant,
        over: Over,
        peers: Vec<PeerKeys>,
        suite: Suite,
        digest: [u8; 8],
        mut random: Box<dyn Random>,
    ) -> Result<Self, BadPeers> {
        check(over, &peers)?;
        let mut instance = [0; 8];
        random.fill(&mut instance);
        let peers: Vec<_> = peers.into_iter().map(|peer| PeerState::new(now, over, peer)).collect();
        Ok(Self {
            over,
            suite,
            rekey: Rekey::Auto,
            has_bare_keepalives: false,
            ours: EndIdentity { suite: suite.number(), instance, digest, offers_aes: false, asks: true },
            jar: Jar::new(now, &mut *random),
            public: PublicEnds::of(&peers),
            peers,
            indices: Indices::new(),
            load: Box::new(RequestLoad::new(&mut *random)),
            random,
            answers: VecDeque::with_capacity(ANSWERS),
            due: Some(now),
            has_unanswered: false,
            moves: 0,
        })
    }

    /// Offers AES-GCM besides the suite: it is used with a peer that offers it, too, or that has it as its suite. Tags must
    /// have the same length.
    pub fn offer_aes(&mut self) {
        self.ours.offers_aes = self.suite.tag() == Suite::AesGcm.tag();
    }

    /// Sets when new session keys are requested, for all peers.
    pub fn rekey(&mut self, rekey: Rekey) {
        self.rekey = rekey;
        self.peers.iter_mut().for_each(|peer| peer.rekey = rekey);
    }

    /// Makes keepalives to all peers one octet without authentication, which keeps the mapping of a NAT, and nothing else.
    pub fn send_bare_keepalives(&mut self) {
        self.has_bare_keepalives = true;
        self.peers.iter_mut().for_each(|peer| peer.has_bare_keepalives = true);
    }

    /// Returns the suite for sessions with a peer, or the reason why there are none.
    fn agree(&self, theirs: &EndIdentity, peer: usize) -> Result<Suite, Refused> {
        let peer = Sender::Peer(peer);
        let suite = self.agreed(theirs).ok_or(Refused::OtherSuite(peer))?;
        if self.ours.digest == theirs.digest { Ok(suite) } else { Err(Refused::OtherParameters(peer)) }
    }

    /// Returns the suite for sessions with an end, by its authenticated offer or answer. `None`: there is none in common.
    fn agreed(&self, theirs: &EndIdentity) -> Option<Suite> {
        let has_gcm = |end: &EndIdentity| end.offers_aes || end.suite == Suite::AesGcm.number();
        if has_gcm(&self.ours) && has_gcm(theirs) {
            return Some(Suite::AesGcm);
        }
        (self.ours.suite == theirs.suite).then_some(self.suite)
    }

    /// Replaces the keys of a peer. Traffic continues: datagrams in transit are still decrypted, and a session with a
    /// removed shared key ends when there is a new one, or after a minute. Sessions with removed public keys end at once.
    pub fn set_keys(&mut self, now: Instant, peer: usize, keys: &Keyring) -> Result<(), BadPeers> {
        let all = || self.peers.iter().enumerate().filter(|(other, _)| *other != peer);
        for (other, known) in all() {
            if keys
                .shared()
                .any(|key| known.keys.iter().any(|known| known.id == key.id() && known.key != *key))
            {
                return Err(BadPeers::KeyIds(peer, other));
            }
        }
        let Some(peer) = self.peers.get_mut(peer) else { return Err(BadPeers::Count(self.peers.len())) };
        peer.set_keys(now, keys);
        self.public = PublicEnds::of(&self.peers);
        self.due = Some(now);
        Ok(())
    }

    /// Address of a peer, if it is known.
    pub fn address(&self, peer: usize) -> Option<SocketAddr> {
        self.peers.get(peer)?.address
    }

    /// Own address at which a peer has asked for the current session. `None`: unknown, or this end has asked.
    pub(super) fn own_address(&self, peer: usize) -> Option<IpAddr> {
        self.peers.get(peer)?.pair()?.own
    }

    /// Round trip to a peer, measured by the last key exchange. `None`: not measured.
    pub(super) fn round_trip(&self, peer: usize) -> Option<Duration> {
        self.peers.get(peer)?.measured
    }

    /// Time at which a keepalive for a peer is due, in whose place a packet may be sent.
    pub(crate) fn sign_at(&self, peer: usize) -> Option<Instant> {
        let timers = &self.peers.get(peer)?.timers;
        timers::earlier(timers.at(timers::PeerTimer::Ask), timers.at(timers::PeerTimer::Sign))
    }

    /// State of the session with a peer; `None`: there is none.
    pub fn session(&self, peer: usize) -> Option<SessionState> {
        Some(self.peers.get(peer)?.current()?.state())
    }

    /// Skips counters of the current session of the only peer.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, counter: u64) {
        self.peers[0].skip_to(counter);
    }

    /// Starts a key exchange with the only peer, regardless of earlier ones.
    #[cfg(test)]
    pub(super) fn ask_again(&mut self, now: Instant) {
        self.peers[0].timers.set(timers::PeerTimer::Try, now);
        self.due = Some(now);
    }

    /// Behaves as earlier versions, which expect a sign of life after 10 s.
    #[cfg(test)]
    pub(super) fn wait_for_signs(&mut self) {
        self.ours.asks = false;
    }

    pub(super) fn around(&self) -> Around {
        Around::two_way(self.over, self.suite)
    }

    pub(super) fn seal(
        &mut self,
        now: Instant,
        to: Destination,
        flags: BodyFlags,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        let Destination::Peer(peer) = to else { return Err(NotSealed::NoDestination) };
        let peer = self.peers.get_mut(peer).ok_or(NotSealed::NoDestination)?;
        let sealed = peer.seal(now, self.over, flags, body, out);
        self.due = timers::earlier(self.due, peer.timers.first());
        sealed
    }

    pub(super) fn note_sealed(&mut self, to: Destination, units: u32) {
        if let Destination::Peer(peer) = to
            && let Some(peer) = self.peers.get_mut(peer)
        {
            peer.note_sealed(units);
        }
    }

    pub(super) fn note_opened(&mut self, from: Sender, units: u32) {
        if let Sender::Peer(peer) = from
            && let Some(peer) = self.peers.get_mut(peer)
        {
            peer.note_opened(units);
        }
    }

    /// Encrypts a message on the path MTU to a peer.
    pub(super) fn seal_path(
        &mut self,
        now: Instant,
        peer: usize,
        path: PathSeal<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        let around = self.around().most();
        let peer = self.peers.get_mut(peer).ok_or(NotSealed::NoDestination)?;
        let (kind, flags) = match path {
            PathSeal::Body(flags, _) => (PathBody::Body, flags),
            PathSeal::Padding(_) => (PathBody::Padding, BodyFlags::default()),
            PathSeal::Confirmation(_) => (PathBody::Confirmation, BodyFlags::default()),
        };
        let padding;
        let confirmed;
        let body: &[u8] = match path {
            PathSeal::Body(_, body) => body,
            PathSeal::Padding(octets) => {
                padding = vec![0; usize::from(octets).saturating_sub(around)];
                &padding
            }
            PathSeal::Confirmation(octets) => {
                confirmed = octets.to_be_bytes();
                &confirmed
            }
        };
        let sealed = peer.seal_as(now, |theirs| Whose::Path(theirs, kind), flags, body, out);
        self.due = timers::earlier(self.due, peer.timers.first());
        sealed
    }

    /// Encrypts a message on the mapping of a NAT to a peer.
    pub(super) fn seal_mapping(
        &mut self,
        now: Instant,
        peer: usize,
        message: &MappingMessage,
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        let peer = self.peers.get_mut(peer).ok_or(NotSealed::NoDestination)?;
        let (flags, body) = message.to_body();
        peer.seal_aside(now, PathBody::Mapping, flags, &body, out)
    }

    /// Sets the interval of keepalives to a peer that has keepalives.
    pub(super) fn set_keepalive(&mut self, now: Instant, peer: usize, keepalive: Duration) {
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.set_keepalive(now, keepalive);
            self.due = timers::earlier(self.due, peer.timers.first());
        }
    }

    /// Shows the address of this end to peers with keepalives.
    pub(super) fn show_address(&mut self, now: Instant) {
        self.peers.iter_mut().for_each(|peer| peer.show_address(now));
        self.due = Some(now);
    }

    pub(super) fn open<'d>(
        &mut self,
        now: Instant,
        from: Option<AddressPair>,
        datagram: &'d mut [u8],
    ) -> Opened<'d> {
        let from = from.map(AddressPair::canonical);
        match datagram.first().map(|first| (*first, DatagramKind::of(*first))) {
            Some((_, Some(DatagramKind::TwoWay | DatagramKind::Path))) => self.open_body(now, from, datagram),
            Some((REQUEST | PUBLIC_REQUEST, _)) => self.request(now, from, datagram),
            Some((ANSWER, _)) => self.answer(now, from, datagram),
            Some((COOKIE, _)) => self.cookie(now, datagram),
            _ => Opened::Refused(Refused::Malformed),
        }
    }

    fn open_body<'d>(
        &mut self,
        now: Instant,
        from: Option<AddressPair>,
        datagram: &'d mut [u8],
    ) -> Opened<'d> {
        let read = ClearHeader::read(datagram, self.over == Over::Datagrams);
        let Some((header, length)) = read else { return Opened::Refused(Refused::Malformed) };
        let (Whose::Index(index) | Whose::Slot(index) | Whose::Path(index, _)) = header.whose else {
            return Opened::Refused(Refused::Malformed);
        };
        if datagram.len() < length + self.suite.tag() {
            return Opened::Refused(Refused::Malformed);
        }
        let number = self.indices.owner(index);
        let Some(peer) = self.peers.get_mut(number) else { return Opened::Refused(Refused::Unknown) };
        let before = peer.pair();
        let opened = peer.open(now, from, index, &header, length, datagram);
        self.moves += u64::from(peer.pair() != before);
        let is_mapping = matches!(header.whose, Whose::Path(_, PathBody::Mapping));
        let is_farewell = header.flags.addressed
            && !is_mapping
            && opened.as_ref().is_ok_and(|(plain, _)| plain.body.is_empty());
        let has_closed = is_farewell && peer.close(now, index);
        self.due = timers::earlier(self.due, peer.timers.first());
        let sender = Sender::Peer(number);
        match opened {
            Ok(_) if has_closed => Opened::Closed { from: sender },
            Err(refused) => Opened::Refused(refused),
            Ok((plain, _)) if is_mapping => {
                match MappingMessage::of_body(header.flags, &datagram[plain.body]) {
                    Some(message) => Opened::Mapping { from: sender, missing: plain.missing, message },
                    None => Opened::Refused(Refused::Malformed),
                }
            }
            Ok((plain, session)) if matches!(header.whose, Whose::Path(..)) => {
                let body = &datagram[plain.body];
                let path = match (header.whose, body.first_chunk()) {
                    (Whose::Path(_, PathBody::Confirmation), Some(octets)) => {
                        PathNews::Confirmed(u16::from_be_bytes(*octets))
                    }
                    (Whose::Path(_, PathBody::Body), _) => PathNews::ConfirmBody(header.flags, body),
                    _ => PathNews::Confirm,
                };
                Opened::Path { from: sender, newest: plain.newest, missing: plain.missing, session, path }
            }
            Ok((plain, session)) if !plain.body.is_empty() => Opened::Body {
                from: sender,
                flags: header.flags,
                body: &datagram[plain.body],
                newest: plain.newest,
                missing: plain.missing,
                session,
            },
            Ok((_, Some(session))) => Opened::Session { from: sender, session },
            Ok((plain, None)) => Opened::Alive { from: sender, missing: plain.missing },
        }
    }

    pub(super) fn poll(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<(Destination, Option<AddressPair>)> {
        if let Some(answer) = self.answers.pop_front() {
            out.extend_from_slice(&answer.octets);
            return Some((Destination::Peer(answer.peer), answer.to));
        }
        if self.due.is_none_or(|due| now < due) {
            return None;
        }
        let spare = self.free_index();
        for (number, peer) in self.peers.iter_mut().enumerate() {
            let written = peer.poll(now, self.over, &self.ours, spare, &mut *self.random, out);
            self.has_unanswered |= peer.unanswered.is_some();
            if let Some(to) = written {
                if let Some(index) = peer.pending.as_ref().map(|pending| pending.index) {
                    self.indices.assign(index, number);
                }
                return Some((Destination::Peer(number), to));
            }
        }
        self.due = self.peers.iter().map(|peer| peer.timers.first()).fold(None, timers::earlier);
        None
    }

    pub(super) fn poll_at(&self) -> Option<Instant> {
        if self.answers.is_empty() { self.due } else { Some(Instant::ZERO) }
    }
}

/// Recent work for requests, so that those from one address take nothing from others: buckets of [`BURST`] of them,
/// each by the time at which it is full again. An address has the bucket of its hash.
struct RequestLoad {
    free_at: [Instant; BUCKETS],
    secret: [u8; 8],
}

impl RequestLoad {
    fn new(random: &mut dyn Random) -> Self {
        let mut secret = [0; 8];
        random.fill(&mut secret);
        Self { free_at: [Instant::ZERO; BUCKETS], secret }
    }

    /// Returns true and takes one, if the bucket of an address is not empty.
    fn bear(&mut self, now: Instant, from: Option<SocketAddr>) -> bool {
        let mut hasher = DefaultHasher::new();
        self.secret.hash(&mut hasher);
        match from.map(|from| from.ip()) {
            Some(IpAddr::V6(address)) => address.segments()[..4].hash(&mut hasher),
            address => address.hash(&mut hasher),
        }
        let free_at = &mut self.free_at[hasher.finish() as usize % BUCKETS];
        let after = (*free_at).max(now) + ONE_MORE;
        let room = after.since(now) <= ONE_MORE * BURST as u32;
        if room {
            *free_at = after;
        }
        room
    }
}

fn check(over: Over, peers: &[PeerKeys]) -> Result<(), BadPeers> {
    let most = match over {
        Over::Datagrams => PEERS,
        Over::Line => 1,
    };
    if peers.is_empty() || peers.len() > most {
        return Err(BadPeers::Count(peers.len()));
    }
    for (b, later) in peers.iter().enumerate() {
        for (a, earlier) in peers[..b].iter().enumerate() {
            let theirs = |peer: &PeerKeys| peer.keys.public.as_ref().map(|keys| *keys.theirs());
            if theirs(earlier).is_some() && theirs(earlier) == theirs(later) {
                return Err(BadPeers::AlikePublic(a, b));
            }
            for (x, y) in earlier.keys.shared().flat_map(|x| later.keys.shared().map(move |y| (x, y))) {
                if x != y && x.id() == y.id() {
                    return Err(BadPeers::KeyIds(a, b));
                }
                if x == y && earlier.address == later.address {
                    return Err(BadPeers::Alike(a, b));
                }
            }
        }
    }
    Ok(())
}
