//! Peers that answer: each pair agrees on keys in a handshake, again after much traffic or 2 hours with some, and each end may
//! restart.
//!
//! A peer has up to four sessions: the current one, with which we encrypt; the previous one, which still
//! decrypts its last packets; the next one, created by a request of the peer; and one that we have requested.
//! An initiator uses a session as soon as it is answered. A responder uses it after decrypting a packet of
//! it: a replayed request thus changes nothing, and no packet is encrypted that the other end cannot decrypt
//! yet.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use thinair_wire::time::Instant;
use thiserror::Error;

use super::cookie::Jar;
use super::handshake::EndIdentity;
use super::header::{
    ANSWER, COOKIE, ClearHeader, DatagramKind, Index, LONG_ANSWER, LONG_INDEX, PUBLIC_REQUEST, PathBody,
    REQUEST, Whose,
};
use super::public_key::Keyring;
use super::{
    Around, BodyFlags, Destination, MappingMessage, NotSealed, Opened, PathNews, PathSeal, Random, Refused,
    Sender,
};
use crate::{AddressPair, Schedule, Suite};

mod backlog;
mod credential;
mod indices;
mod membership;
mod messages;
mod peer;
mod restart;
mod session;
mod timers;

use backlog::Backlog;
use credential::KnownKeys;
use indices::Indices;
use peer::PeerState;
pub use peer::Unanswered;
pub use restart::Whereabouts;
pub use session::SessionState;

/// Maximum number of peers.
pub const PEERS: usize = 10_000;
/// Largest number of peers whose sessions an index of an octet identifies: each has four.
pub const FEW: usize = 64;
/// Maximum number of pending answers; further ones are dropped.
const ANSWERS: usize = 64;
/// Number of pending answers from which on further requests wait, and of waiting ones that are answered in a turn: between two
/// turns packets are handled.
const TURN: usize = 4;
/// Requests of this end that may be sent at once, and the interval at which another one is allowed: many peers do not take the
/// processor from packets.
const REQUESTS: (u32, Duration) = (64, Duration::from_micros(500));
/// Number of buckets of requests.
const BUCKETS: usize = 64;
/// Number of requests answered at once without a cookie in each of them, and the interval at which another one is allowed.
const BURST: u32 = 16;
const ONE_MORE: Duration = Duration::from_millis(125);

/// Transport below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Datagrams of many peers.
    Datagrams,
    /// A line with one peer: datagrams are an octet shorter, and have no addresses.
    Line,
}

/// When two ends agree on new session keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rekey {
    /// When a session is 120 s old and has carried 256 kB, at the latest after 2 h.
    #[default]
    Auto,
    /// When a session has this age.
    Every(Duration),
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
    #[error(
        "{0} peers; expected 1 to {PEERS}, or 1 on a serial line: divide them among several hubs, each with a port of its own"
    )]
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
    known: KnownKeys,
    indices: Indices,
    jar: Jar,
    load: Box<RequestLoad>,
    answers: VecDeque<PendingAnswer>,
    backlog: Backlog,
    /// Waiting requests that are answered in this turn.
    turn: usize,
    /// Lower bounds of the next timeout of each peer.
    schedule: Schedule,
    /// Recent requests of this end, and the time until which no further one is sent.
    requests: Bucket,
    asks_at: Instant,
    /// Peers that do not answer, which are to be reported.
    unanswered: VecDeque<usize>,
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
        let (mut known, mut schedule) = (KnownKeys::default(), Schedule::default());
        for (number, peer) in peers.iter().enumerate() {
            known.add(number, &peer.keys);
            schedule.set(number, Some(now));
        }
        Ok(Self {
            over,
            suite,
            rekey: Rekey::Auto,
            has_bare_keepalives: false,
            ours: EndIdentity {
                suite: suite.number(),
                instance,
                digest,
                offers_aes: false,
                asks: true,
                takes_long: over == Over::Datagrams,
            },
            jar: Jar::new(now, &mut *random),
            known,
            peers,
            indices: Indices::new(),
            load: Box::new(RequestLoad::new(&mut *random)),
            random,
            answers: VecDeque::new(),
            backlog: Backlog::default(),
            turn: TURN,
            schedule,
            requests: Bucket::default(),
            asks_at: Instant::ZERO,
            unanswered: VecDeque::new(),
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
    pub fn set_keys(&mut self, now: Instant, number: usize, keys: &Keyring) -> Result<(), BadPeers> {
        for key in keys.shared() {
            let others = self.known.sharing(key.id()).filter(|other| *other != number);
            let is_other = |other: &usize| {
                let known = self.peers.get(*other).into_iter().flat_map(|other| &other.keys);
                known.clone().any(|known| known.id == key.id() && known.key != *key)
            };
            if let Some(other) = others.clone().find(is_other) {
                return Err(BadPeers::KeyIds(number, other));
            }
        }
        let Some(peer) = self.peers.get_mut(number) else { return Err(BadPeers::Count(self.peers.len())) };
        self.known.remove(number, &peer.keys);
        peer.set_keys(now, keys);
        self.known.add(number, &peer.keys);
        self.schedule.set(number, Some(now));
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
    pub fn sign_at(&self, peer: usize) -> Option<Instant> {
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
        self.schedule.set(0, Some(now));
    }

    /// Behaves as earlier versions, which take short indices only.
    #[cfg(test)]
    pub(super) fn take_short_only(&mut self) {
        self.ours.takes_long = false;
    }

    /// Behaves as earlier versions, which expect a sign of life after 10 s.
    #[cfg(test)]
    pub(super) fn wait_for_signs(&mut self) {
        self.ours.asks = false;
    }

    /// Octets that datagrams to a peer have more than `around` counts: of the index that it has assigned.
    pub fn more_around(&self, peer: usize) -> usize {
        self.peers.get(peer).and_then(PeerState::current).map_or(0, |session| session.theirs.more())
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
        let Destination::Peer(number) = to else { return Err(NotSealed::NoDestination) };
        let peer = self.peers.get_mut(number).ok_or(NotSealed::NoDestination)?;
        let sealed = peer.seal(now, self.over, flags, body, out);
        self.schedule.by(number, peer.timers.first());
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
        number: usize,
        path: PathSeal<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        let around = self.around().most() + self.more_around(number);
        let peer = self.peers.get_mut(number).ok_or(NotSealed::NoDestination)?;
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
        self.schedule.by(number, peer.timers.first());
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
    pub(super) fn set_keepalive(&mut self, now: Instant, number: usize, keepalive: Duration) {
        if let Some(peer) = self.peers.get_mut(number) {
            peer.set_keepalive(now, keepalive);
            self.schedule.by(number, peer.timers.first());
        }
    }

    /// Shows the address of this end to peers with keepalives.
    pub(super) fn show_address(&mut self, now: Instant) {
        for (number, peer) in self.peers.iter_mut().enumerate() {
            peer.show_address(now);
            self.schedule.by(number, Some(now));
        }
    }

    pub(super) fn open<'d>(
        &mut self,
        now: Instant,
        from: Option<AddressPair>,
        datagram: &'d mut [u8],
    ) -> Opened<'d> {
        let from = from.map(AddressPair::canonical);
        match datagram.first().map(|first| (*first, DatagramKind::of(*first))) {
            Some((_, Some(DatagramKind::TwoWay | DatagramKind::Path | DatagramKind::LongPath))) => {
                self.open_body(now, from, datagram)
            }
            Some((first, _)) => match (first & !(LONG_INDEX | LONG_ANSWER), first & LONG_ANSWER != 0) {
                (REQUEST | PUBLIC_REQUEST, false) => self.request(now, from, datagram),
                (ANSWER, _) => self.answer(now, from, datagram),
                (COOKIE, false) => self.cookie(now, datagram),
                _ => Opened::Refused(Refused::Malformed),
            },
            None => Opened::Refused(Refused::Malformed),
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
        let index = match header.whose {
            Whose::Index(index) | Whose::Path(index, _) => index,
            Whose::Slot(slot) => Index::Short(slot),
            Whose::Site(..) => return Opened::Refused(Refused::Malformed),
        };
        if datagram.len() < length + self.suite.tag() {
            return Opened::Refused(Refused::Malformed);
        }
        let owner = self.indices.owner(index);
        let Some((number, peer)) = owner.and_then(|number| Some((number, self.peers.get_mut(number)?)))
        else {
            return Opened::Refused(Refused::Unknown);
        };
        let before = peer.pair();
        let opened = peer.open(now, from, index, &header, length, datagram);
        self.moves += u64::from(peer.pair() != before);
        let is_mapping = matches!(header.whose, Whose::Path(_, PathBody::Mapping));
        let is_farewell = header.flags.addressed
            && !is_mapping
            && opened.as_ref().is_ok_and(|(plain, _)| plain.body.is_empty());
        let has_closed = is_farewell && peer.close(now, index);
        self.schedule.by(number, peer.timers.first());
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
        if self.answers.is_empty() {
            self.answer_waiting(now);
        }
        if let Some(answer) = self.answers.pop_front() {
            out.extend_from_slice(&answer.octets);
            return Some((Destination::Peer(answer.peer), answer.to));
        }
        let polled = self.poll_peers(now, out);
        if polled.is_none() {
            self.turn = TURN;
        }
        polled
    }

    fn poll_peers(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<(Destination, Option<AddressPair>)> {
        while let Some(number) = self.schedule.due(now) {
            let Some(peer) = self.peers.get(number) else { break };
            if peer.is_asking(now) {
                // The peer that has waited longest is the next one.
                if let Err(at) = self.requests.take(now, REQUESTS) {
                    self.asks_at = at;
                    return None;
                }
            }
            let spare = self.free_index(peer.asks_with_long());
            let Some(peer) = self.peers.get_mut(number) else { break };
            let written = peer.poll(now, self.over, &self.ours, spare, &mut *self.random, out);
            if peer.unanswered.is_some() {
                self.unanswered.push_back(number);
            }
            let Some(to) = written else {
                self.schedule.set(number, peer.timers.first());
                continue;
            };
            if let Some(index) = peer.pending.as_ref().map(|pending| pending.index) {
                self.indices.assign(index, number, &self.peers);
            }
            return Some((Destination::Peer(number), to));
        }
        None
    }

    pub(super) fn poll_at(&self) -> Option<Instant> {
        if !self.answers.is_empty() || !self.backlog.is_empty() {
            return Some(Instant::ZERO);
        }
        self.schedule.first().map(|(at, _)| at.max(self.asks_at))
    }
}

/// Recent work of a kind, by the time at which as much may be done at once again as ever.
#[derive(Clone, Copy, Default)]
struct Bucket {
    free_at: Instant,
}

impl Bucket {
    /// Takes one of `most` at once, which come back one in each `interval`. Otherwise returns the time of the next one.
    fn take(&mut self, now: Instant, (most, interval): (u32, Duration)) -> Result<(), Instant> {
        let after = self.free_at.max(now) + interval;
        if after.since(now) > interval * most {
            return Err(now + (after.since(now) - interval * most));
        }
        self.free_at = after;
        Ok(())
    }
}

/// Recent work for requests, so that those from one address take nothing from others: buckets of [`BURST`] of them. An address
/// has the bucket of its hash.
struct RequestLoad {
    buckets: [Bucket; BUCKETS],
    secret: [u8; 8],
}

impl RequestLoad {
    fn new(random: &mut dyn Random) -> Self {
        let mut secret = [0; 8];
        random.fill(&mut secret);
        Self { buckets: [Bucket::default(); BUCKETS], secret }
    }

    /// Returns true and takes one, if the bucket of an address is not empty.
    fn bear(&mut self, now: Instant, from: Option<SocketAddr>) -> bool {
        let mut hasher = DefaultHasher::new();
        self.secret.hash(&mut hasher);
        match from.map(|from| from.ip()) {
            Some(IpAddr::V6(address)) => address.segments()[..4].hash(&mut hasher),
            address => address.hash(&mut hasher),
        }
        self.buckets[hasher.finish() as usize % BUCKETS].take(now, (BURST, ONE_MORE)).is_ok()
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
    let (mut public, mut ids, mut shared) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (number, peer) in peers.iter().enumerate() {
        if let Some(keys) = &peer.keys.public
            && let Some(earlier) = public.insert(*keys.theirs(), number)
        {
            return Err(BadPeers::AlikePublic(earlier, number));
        }
        for key in peer.keys.shared() {
            let (earlier, known) = *ids.entry(key.id()).or_insert((number, key));
            if known != key {
                return Err(BadPeers::KeyIds(earlier, number));
            }
            match shared.insert((key.id(), peer.address), number) {
                Some(earlier) if earlier != number => return Err(BadPeers::Alike(earlier, number)),
                Some(_) | None => {}
            }
        }
    }
    Ok(())
}
