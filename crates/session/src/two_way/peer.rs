//! One peer: its keys, its sessions, and the times of key exchanges.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use thinair_wire::time::Instant;

use super::credential::Credential;
use super::session::{REKEY, REKEY_LATER, Session};
use super::timers::{PeerTimer, Timers};
use super::{Over, PeerKeys};
use crate::cookie::Cookie;
use crate::direction::{NEW_KEYS_AT, Plain};
use crate::handshake::{EndIdentity, Initiation};
use crate::header::{ClearHeader, Index, PathBody, Whose};
use crate::key::KeyId;
use crate::public_key::Keyring;
use crate::{AddressPair, BodyFlags, Missing, NewSession, NotSealed, Refused, Rekey, canonical};

mod asking;
mod liveness;
mod parting;

pub use asking::Unanswered;
use liveness::Liveness;

/// Sessions of a peer: the current one, the previous one, the next one, and a requested one.
pub(super) const SESSIONS: u8 = 4;

/// Age of keys at which they are replaced if they have carried that many octets: a handshake is less than a thousandth of them.
const USED: (Duration, u64) = (Duration::from_secs(120), 256_000);
/// Time for which the previous and the next session are kept.
const KEPT: Duration = Duration::from_secs(60);
/// Time for which a request of an unknown instance blocks those of other instances without a cookie.
const YOUNG: Duration = Duration::from_secs(5);
/// Silence after a received packet at which a keepalive is sent to an end of an earlier version, which requests none.
const SIGN: Duration = Duration::from_secs(10);
/// Time without received packets after sending, besides a round trip, at which the session counts as dead.
const DEAD: Duration = Duration::from_secs(15);
/// Such a time after a request for an answer to unanswered packets.
const DEAD_UNHEARD: Duration = Duration::from_secs(5);
/// Age of a session, besides a round trip, from which on the other end should not use another one.
const AGREED: Duration = Duration::from_secs(10);
/// Number of keepalives without anything received, and the longest time, after which one requests an answer at the earliest.
/// Others keep a NAT mapping with one datagram.
const UNHEARD: (u32, Duration) = (4, Duration::from_secs(120));
/// Age of a mapping with traffic in both directions at which a datagram makes it last: Linux keeps it for 30 s before.
const SETTLED: Duration = Duration::from_secs(3);
/// Number of consecutive wrong tags at which it counts as dead, too.
const WRONG: u32 = 32;
/// Number of confirmations of new keys until a packet is received, after 0.25 s, 0.5 s, ...
const CONFIRMATIONS: u32 = 6;
const CONFIRM: Duration = Duration::from_millis(250);

/// A request whose answer is pending.
pub(super) struct RequestInFlight {
    pub(super) initiation: Initiation,
    pub(super) index: Index,
    pub(super) key: Credential,
    since: Instant,
    paid: bool,
    /// Own address from which it was sent. `None`: that of the route.
    own: Option<IpAddr>,
}

/// State of a peer.
pub(super) struct PeerState {
    /// Keys; the first one is used.
    pub(super) keys: Vec<Credential>,
    /// Configured address, and the one it was heard from last.
    pub(super) home: Option<SocketAddr>,
    pub(super) address: Option<SocketAddr>,
    /// Own address at which its newest datagram arrived, and whether datagrams to it leave from there.
    own: Option<IpAddr>,
    keeps_own: bool,
    /// Addresses before our start, and number of further requests to the peer there.
    remembered: Option<(AddressPair, u32)>,
    pub(super) keepalive: Option<Duration>,
    /// True if keepalives are one octet without authentication.
    pub(super) has_bare_keepalives: bool,
    /// True if the next keepalive must show the address of this end.
    shows_address: bool,
    /// True if a NAT may not have seen traffic in both directions for long enough to keep the mapping for its usual time.
    is_new_mapping: bool,
    pub(super) rekey: Rekey,
    /// Last instance with a session, and its highest request number.
    instance: Option<([u8; 8], u32)>,
    current: Option<Box<Session>>,
    previous: Option<(Box<Session>, Instant)>,
    next: Option<NextSession>,
    pub(super) pending: Option<Box<RequestInFlight>>,
    /// An earlier request, whose answer would show the round trip. `None` if there is a current session.
    given_up: Option<Box<RequestInFlight>>,
    /// Time from a request to its answer. Zero: not measured.
    round_trip: Duration,
    /// The round trip for reports, which the end that was asked measures from its answer to the first packet.
    pub(super) measured: Option<Duration>,
    cookie: Option<(Cookie, Instant)>,
    pub(super) timers: Timers,
    /// Number of our requests since our start, and of consecutive ones.
    requests: u32,
    attempts: u32,
    last_request: Option<Instant>,
    /// Time of the last authentic datagram.
    heard_at: Option<Instant>,
    liveness: Liveness,
    last_suspicion: Option<Instant>,
    /// True if the session may be dead: nothing was received since the last suspicion.
    suspected: bool,
    /// A silence that is still to be reported.
    pub(super) unanswered: Option<Unanswered>,
    /// True if a packet was pending since the last request.
    eager: bool,
    confirmations: u32,
    wrong: u32,
}

/// A session created by a request, with which nothing was decrypted yet.
struct NextSession {
    session: Box<Session>,
    request: u32,
    until: Instant,
}

impl PeerState {
    pub(super) fn new(now: Instant, over: Over, peer: PeerKeys) -> Self {
        let address = peer.address.map(canonical);
        let mut timers = Timers::default();
        if address.is_some() || over == Over::Line {
            timers.set(PeerTimer::Try, now);
        }
        Self {
            keys: Credential::of(&peer.keys),
            home: address,
            address,
            own: None,
            keeps_own: false,
            remembered: None,
            keepalive: peer.keepalive.filter(|keepalive| !keepalive.is_zero()),
            has_bare_keepalives: false,
            shows_address: false,
            is_new_mapping: true,
            rekey: Rekey::Auto,
            instance: None,
            current: None,
            previous: None,
            next: None,
            pending: None,
            given_up: None,
            round_trip: Duration::ZERO,
            measured: None,
            cookie: None,
            timers,
            requests: 0,
            attempts: 0,
            last_request: None,
            heard_at: None,
            liveness: Liveness::new(),
            last_suspicion: None,
            suspected: false,
            unanswered: None,
            eager: false,
            confirmations: 0,
            wrong: 0,
        }
    }

    pub(super) fn current(&self) -> Option<&Session> {
        self.current.as_deref()
    }

    #[cfg(test)]
    pub(super) fn skip_to(&mut self, counter: u64) {
        self.current.as_mut().expect("a session").sealer.skip_to(counter);
    }

    pub(super) fn set_keys(&mut self, now: Instant, keys: &Keyring) {
        let before = std::mem::replace(&mut self.keys, Credential::of(keys));
        let known = |id: KeyId| self.keys.iter().any(|key| key.id == id);
        let is_revoked =
            |id: KeyId| !known(id) && before.iter().any(|key| key.id == id && key.public.is_some());
        self.current.take_if(|current| is_revoked(current.key));
        self.previous.take_if(|(previous, _)| is_revoked(previous.key));
        if self.current.is_none() {
            self.attempts = 0;
            self.try_by(now);
        }
        let known = |id: KeyId| self.keys.iter().any(|key| key.id == id);
        if self.pending.as_ref().is_some_and(|pending| !known(pending.key.id)) {
            self.pending = None;
        }
        self.next.take_if(|next| !known(next.session.key));
        self.given_up = None;
        if let Some(current) = &mut self.current {
            if !known(current.key) {
                current.until = current.until.min(now + KEPT);
                self.timers.by(PeerTimer::Retire, current.until);
            }
            if current.key != self.keys[0].id {
                self.attempts = 0;
                self.try_by(now);
            }
        }
    }

    /// True if a request with that number may be a new one.
    pub(super) fn is_fresh(&self, theirs: &EndIdentity, number: u32) -> bool {
        let next = self.next.as_ref().map(|next| (next.session.instance, next.request));
        let seen = [self.instance, next];
        !seen.into_iter().flatten().any(|(instance, last)| instance == theirs.instance && number <= last)
    }

    /// True if the peer's last known instance is this one.
    pub(super) fn is_instance(&self, instance: &[u8; 8]) -> bool {
        self.instance.is_some_and(|(known, _)| known == *instance)
    }

    /// True if another instance has just requested a session, and this one is unknown: one of both is a
    /// replay.
    pub(super) fn is_waiting_for_another(&self, now: Instant, theirs: &EndIdentity) -> bool {
        !self.is_instance(&theirs.instance)
            && self.next.as_ref().is_some_and(|next| {
                next.session.instance != theirs.instance && now.since(next.session.since) < YOUNG
            })
    }

    /// Gives up the session of the peer's earlier request, which another one replaces.
    pub(super) fn drop_next(&mut self) {
        self.next = None;
    }

    /// Indices of all sessions.
    pub(super) fn indices(&self) -> impl Iterator<Item = Index> + use<> {
        let used = [
            self.current.as_ref().map(|session| session.ours),
            self.previous.as_ref().map(|(session, _)| session.ours),
            self.next.as_ref().map(|next| next.session.ours),
            self.pending.as_ref().map(|pending| pending.index),
        ];
        used.into_iter().flatten()
    }

    /// Records `session`, which answers a request of the peer.
    pub(super) fn asked(&mut self, now: Instant, session: Box<Session>, request: u32) {
        if let Some((instance, last)) = &mut self.instance
            && *instance == session.instance
        {
            *last = request;
        }
        let until = now + KEPT;
        self.next = Some(NextSession { session, request, until });
        self.timers.by(PeerTimer::Retire, until);
    }

    /// Processes the answer to our request. `None`: both ends have initiated at once, and the session of the
    /// other end is used.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        from: Option<AddressPair>,
        session: Box<Session>,
    ) -> Option<NewSession> {
        let pending = self.pending.take()?;
        self.round_trip = now.since(pending.since);
        self.measured = Some(self.round_trip);
        if let Some(next) = &mut self.next
            && next.session.since >= pending.since
            && next.session.instance == session.instance
        {
            // Both ends know both sessions, and make the same choice.
            if next.session.hash > session.hash {
                return None;
            }
            next.session.passed_over = true;
        }
        self.is_at(from);
        self.keeps_own = pending.own.is_some();
        self.confirmations = CONFIRMATIONS;
        self.timers.set(PeerTimer::Ask, now);
        Some(self.install(now, session, 0))
    }

    /// Records the source of the newest datagram, and the own address at which it arrived.
    fn is_at(&mut self, from: Option<AddressPair>) {
        if let Some(AddressPair { peer, own }) = from {
            (self.address, self.own) = (Some(peer), own);
        }
    }

    /// Addresses of datagrams to the peer. The own one is that at which it has asked for the session: a NAT or
    /// a firewall before it drops datagrams from another one. An end that has asked leaves its own address to
    /// the route, which changes when it moves.
    pub(super) fn pair(&self) -> Option<AddressPair> {
        Some(AddressPair { peer: self.address?, own: self.own.filter(|_| self.keeps_own) })
    }

    /// Makes `session` the current one. `request`: number of the peer's request that created it.
    fn install(&mut self, now: Instant, session: Box<Session>, request: u32) -> NewSession {
        let restarted = self.instance.is_some_and(|(instance, _)| instance != session.instance);
        match &mut self.instance {
            Some((instance, last)) if *instance == session.instance => *last = request.max(*last),
            unknown => *unknown = Some((session.instance, request)),
        }
        // Packets of an earlier instance belong to contexts that no longer exist.
        self.previous = self.current.take().filter(|_| !restarted).map(|session| (session, now + KEPT));
        self.keeps_own |= session.is_of_peer();
        let renewed_at = session.since + self.rekey_age() + session.later();
        self.current = Some(session);
        self.given_up = None;
        self.attempts = 0;
        self.wrong = 0;
        self.suspected = false;
        self.remembered = None;
        if restarted || self.suspected {
            self.liveness = Liveness::new();
        }
        let over =
            [PeerTimer::Try, PeerTimer::Rekey, PeerTimer::Unheard, PeerTimer::Dead, PeerTimer::Unanswered];
        for timer in over {
            self.timers.stop(timer);
        }
        if self.rekey != Rekey::Auto {
            self.timers.set(PeerTimer::Rekey, renewed_at);
        }
        self.timers.by(PeerTimer::Retire, now + KEPT);
        NewSession { restarted }
    }

    pub(super) fn seal(
        &mut self,
        now: Instant,
        over: Over,
        flags: BodyFlags,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        let whose = |theirs| match over {
            Over::Datagrams => Whose::Index(theirs),
            Over::Line => Whose::Slot(*theirs.octets().last().unwrap_or(&0)),
        };
        self.seal_as(now, whose, flags, body, out)
    }

    /// Encrypts a body; its header begins with `whose`, the index that the peer has assigned to the session.
    pub(super) fn seal_as(
        &mut self,
        now: Instant,
        whose: impl FnOnce(Index) -> Whose,
        flags: BodyFlags,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        let (mut is_answered, mut asks, mut is_unsure) = (true, false, false);
        let age = self.rekey_age();
        let sealed = match &mut self.current {
            Some(session) if now < session.until => {
                let whose = whose(session.theirs);
                is_answered = !matches!(whose, Whose::Path(_, PathBody::Confirmation));
                asks = session.asks;
                let sealed = session.sealer.seal(whose, flags, body, out);
                session.note_datagram(now);
                is_unsure = session.sealer.is_unsure();
                let is_old = !body.is_empty() && is_answered && session.is_old_for_packet(now, age);
                let until = session.until;
                if is_old {
                    self.timers.by(PeerTimer::Retire, until);
                }
                if is_old || session.sealer.counter() >= NEW_KEYS_AT {
                    self.try_unless_trying(now);
                }
                sealed
            }
            Some(_) | None => Err(NotSealed::NoSession),
        };
        self.eager = true;
        self.shows_address = false;
        if sealed.is_err() || (self.suspected && !body.is_empty()) {
            self.hurry(now, sealed.is_err());
        }
        sealed?;
        self.note_octets(body.len());
        self.timers.stop(PeerTimer::Sign);
        if !body.is_empty() && is_answered && self.timers.at(PeerTimer::Dead).is_none() {
            if !asks {
                self.timers.set(PeerTimer::Dead, now + DEAD + self.round_trip);
            } else if is_unsure {
                self.timers.set(PeerTimer::Unheard, now);
            } else if let Some(at) = self.liveness.sent(now) {
                self.timers.by(PeerTimer::Unheard, at);
            }
        }
        if self.confirmations == 0 {
            self.ask_later(now);
        }
        Ok(())
    }

    /// Encrypts a body that leaves from another socket, or goes to one: it is no sign of life.
    pub(super) fn seal_aside(
        &mut self,
        now: Instant,
        kind: PathBody,
        flags: BodyFlags,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotSealed> {
        match &mut self.current {
            Some(session) if now < session.until => {
                session.note_datagram(now);
                session.sealer.seal(Whose::Path(session.theirs, kind), flags, body, out)
            }
            Some(_) | None => Err(NotSealed::NoSession),
        }
    }

    /// Sets the interval of keepalives, if there are any.
    pub(super) fn set_keepalive(&mut self, now: Instant, keepalive: Duration) {
        if self.keepalive.is_some_and(|before| before != keepalive) {
            self.keepalive = Some(keepalive);
            if self.timers.at(PeerTimer::Ask).is_some() {
                self.timers.by(PeerTimer::Ask, now + keepalive);
            }
        }
    }

    /// Age of keys from which on a packet replaces them.
    fn rekey_age(&self) -> Duration {
        match self.rekey {
            Rekey::Auto => REKEY,
            Rekey::Every(age) => age,
        }
    }

    /// Counts octets of a body of the current session. When it has carried enough, its keys are replaced at the age for that.
    fn note_octets(&mut self, octets: usize) {
        let Some(session) = &mut self.current else { return };
        let before = session.octets;
        session.octets += octets as u64;
        if self.rekey == Rekey::Auto && before < USED.1 && session.octets >= USED.1 {
            self.timers.by(PeerTimer::Rekey, session.since + USED.0 + session.later());
        }
    }

    /// Records the number of units in the last encrypted body.
    pub(super) fn note_sealed(&mut self, units: u32) {
        if let Some(session) = &mut self.current {
            session.sealer.note_units(units);
        }
    }

    /// Records the number of units in the newest body, which belongs to the current session.
    pub(super) fn note_opened(&mut self, units: u32) {
        if let Some(session) = &mut self.current {
            session.opener.note_units(units);
        }
    }

    /// Decrypts a body. Returns its range in the datagram, whether its source becomes the peer's address, and
    /// the session if it is the first body of one.
    pub(super) fn open(
        &mut self,
        now: Instant,
        from: Option<AddressPair>,
        index: Index,
        header: &ClearHeader,
        length: usize,
        datagram: &mut [u8],
    ) -> Result<(Plain, Option<NewSession>), Refused> {
        let age = self.rekey_age();
        let of = |session: &Session| session.ours == index;
        let is_next = self.next.as_ref().is_some_and(|next| of(&next.session));
        let is_current = self.current.as_deref().is_some_and(of);
        let session = if is_current {
            self.current.as_deref_mut()
        } else if is_next {
            self.next.as_mut().map(|next| &mut *next.session)
        } else {
            self.previous.as_mut().map(|(session, _)| &mut **session).filter(|session| of(session))
        };
        let session = session.ok_or(Refused::Unknown)?;
        let opened = session.opener.open(header, length, datagram);
        let mut plain = match opened {
            Ok(plain) => plain,
            Err(refused) => {
                let worn = session.opener.worn();
                self.refused(now, refused, is_current && worn);
                return Err(refused);
            }
        };
        if matches!(header.whose, Whose::Path(_, PathBody::Mapping)) {
            session.note_datagram(now);
            if !is_current || !plain.newest {
                plain.missing = Missing::Uncounted;
            }
            return Ok((plain, None));
        }
        session.heard = true;
        session.sealer.note_heard();
        session.note_datagram(now);
        let has_packet =
            !plain.body.is_empty() && !matches!(header.whose, Whose::Path(_, PathBody::Confirmation));
        let is_waited_for = !session.asks;
        let is_old = has_packet && session.is_old_for_packet(now, age);
        let until = session.until;
        self.heard_at = Some(now);
        self.liveness.heard(now, has_packet);
        self.suspected = false;
        self.wrong = 0;
        self.timers.stop(PeerTimer::Unheard);
        self.timers.stop(PeerTimer::Dead);
        if is_old && is_current {
            self.timers.by(PeerTimer::Rekey, now + REKEY_LATER);
            self.timers.by(PeerTimer::Retire, until);
        }
        let mut new_session = None;
        if is_next
            && self.next.as_ref().is_some_and(|next| !next.session.passed_over)
            && let Some(next) = self.next.take()
        {
            self.measured = Some(now.since(next.session.since));
            // The sender has the session keys: the request was not a replay.
            self.pending = None;
            new_session = Some(self.install(now, next.session, next.request));
        } else if is_current && self.confirmations > 0 {
            self.confirmed(now);
        }
        if is_current {
            self.note_octets(plain.body.len());
        }
        plain.newest &= is_current || new_session.is_some();
        // After two simultaneous key exchanges and losses, each end may use the session that the other does not.
        let agreed_at = self.current.as_ref().map(|session| session.since + AGREED + self.round_trip);
        if !is_current && new_session.is_none() && agreed_at.is_some_and(|at| at <= now) {
            self.suspect(now);
        }
        if !plain.newest {
            plain.missing = Missing::Uncounted;
        }
        if plain.newest {
            self.is_at(from);
        }
        if plain.body.is_empty() && header.flags.several {
            self.timers.set(PeerTimer::Sign, now);
        } else if has_packet && is_waited_for {
            self.timers.by(PeerTimer::Sign, now + SIGN);
        }
        Ok((plain, new_session))
    }

    /// True if a keepalive requests an answer: to confirm new keys, or as nothing was received for long.
    pub(super) fn asks(&self, now: Instant) -> bool {
        let Some(keepalive) = self.keepalive.filter(|_| self.confirmations == 0) else { return true };
        let long = (keepalive * UNHEARD.0).min(UNHEARD.1).max(self.liveness.patience);
        self.heard_at.is_none_or(|at| now.since(at) >= long)
    }

    fn confirmed(&mut self, now: Instant) {
        self.confirmations = 0;
        if self.keepalive.is_none() {
            self.timers.stop(PeerTimer::Ask);
        }
        self.ask_later(now);
    }

    /// Sets the time of the next keepalive, if there are any.
    fn ask_later(&mut self, now: Instant) {
        if let Some(keepalive) = self.keepalive {
            let after = if self.is_new_mapping { SETTLED.min(keepalive) } else { keepalive };
            self.timers.set(PeerTimer::Ask, now + after);
        }
    }

    fn refused(&mut self, now: Instant, refused: Refused, worn: bool) {
        if worn {
            self.try_unless_trying(now);
        }
        if refused == Refused::Forged {
            self.wrong += 1;
            if self.wrong >= WRONG {
                self.wrong = 0;
                self.suspect(now);
            }
        }
    }

    fn retire(&mut self, now: Instant) {
        self.previous = self.previous.take().filter(|(_, until)| now < *until);
        self.next = self.next.take().filter(|next| now < next.until);
        self.current = self.current.take().filter(|session| now < session.until);
        let ends = [
            self.current.as_ref().map(|session| session.until),
            self.previous.as_ref().map(|(_, until)| *until),
            self.next.as_ref().map(|next| next.until),
        ];
        for until in ends.into_iter().flatten() {
            self.timers.by(PeerTimer::Retire, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory of a peer: at most four sessions, one of them a pending handshake, and a given up one instead of the
    /// current one. Boxed parts have fixed sizes, except the messages that snow stores of a handshake.
    #[test]
    fn memory_of_a_peer_is_bounded() {
        let request = size_of::<RequestInFlight>();
        let sessions = 2 * size_of::<Session>() + size_of::<Session>().max(request) + request;
        let keys = 3 * size_of::<Credential>() + size_of::<crate::PublicKeys>();
        // The key schedules of AES are in their own boxes.
        let ciphers = 6 * size_of::<ccm::Ccm<aes::Aes128, ccm::aead::consts::U8, ccm::aead::consts::U12>>();
        let all = size_of::<PeerState>() + sessions + keys + ciphers;
        assert!(all <= 8_448, "{all} octets");
    }
}
