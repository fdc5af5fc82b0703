//! Requests for keys and keepalives: due times and intervals.

use std::net::IpAddr;
use std::time::Duration;

use thinair_wire::time::Instant;

use super::{CONFIRM, CONFIRMATIONS, DEAD, DEAD_UNHEARD, PeerState, RequestInFlight};
use crate::cookie::{self, Cookie};
use crate::handshake::EndIdentity;
use crate::header::{BARE_KEEPALIVE, Index};
use crate::two_way::Over;
use crate::two_way::timers::PeerTimer;
use crate::{AddressPair, BodyFlags, Random};

/// Minimum interval of key exchanges on suspicion.
const SUSPICION: Duration = Duration::from_secs(30);
/// Minimum interval of requests.
pub(super) const CALM: Duration = Duration::from_secs(1);
/// Number of doublings of the waiting time for an answer, from 1 s to 4 s.
const BACK_OFF: u32 = 2;
/// Without pending packets: number of requests after which the waiting time is this one, or that of keepalives with as many
/// octets.
const PATIENT: (u32, Duration) = (6, Duration::from_secs(120));
/// With pending packets: number of first requests, those of 30 s, and their maximum waiting time.
const HURRIED: (u32, Duration) = (17, Duration::from_secs(2));
/// With pending packets and without a session: maximum waiting time of later requests.
const EAGER: Duration = Duration::from_secs(4);
/// Longest round trip that is measured.
const LONGEST: Duration = Duration::from_secs(30);
/// Time without an answer after which a peer is reported.
const UNANSWERED: Duration = Duration::from_secs(4);
/// Number of requests to the address before our start, without and with a configured address.
const REMEMBERED: [u32; 2] = [6, 1];

/// A peer that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Requests for keys have not been answered for 4 s.
    Request,
    /// A session has not been answered for 15 s, although something was sent.
    Session,
}

impl PeerState {
    /// Writes the datagram that is due to `out`, and returns its addresses if they differ from those
    /// of the peer.
    /// `None`: nothing is due. `spare`: a free index, for a request.
    pub(in crate::two_way) fn poll(
        &mut self,
        now: Instant,
        over: Over,
        ours: &EndIdentity,
        spare: Option<Index>,
        random: &mut dyn Random,
        out: &mut Vec<u8>,
    ) -> Option<Option<AddressPair>> {
        while let Some(timer) = self.timers.take(now) {
            let written = match timer {
                PeerTimer::Retire => {
                    self.retire(now);
                    false
                }
                PeerTimer::Rekey => {
                    // Keys that carry nothing are erased when they expire.
                    if self.current().is_some_and(|session| session.octets > 0) {
                        self.try_unless_trying(now);
                    }
                    false
                }
                PeerTimer::Dead => {
                    self.unanswered = Some(Unanswered::Session);
                    self.suspect(now);
                    false
                }
                PeerTimer::Unanswered => {
                    if self.current.is_none() {
                        self.unanswered = Some(Unanswered::Request);
                    }
                    false
                }
                PeerTimer::Try => {
                    let index = spare.or(self.pending.as_ref().map(|pending| pending.index));
                    let remembered = self.take_remembered();
                    let is_somewhere = remembered.is_some() || self.address.is_some() || over == Over::Line;
                    if let Some(index) = index.filter(|_| is_somewhere) {
                        // A peer at a remembered address may be gone; if it has no configured address, it
                        // will contact us itself.
                        if self.attempts == 0 && (remembered.is_none() || self.home.is_some()) {
                            self.timers.set(PeerTimer::Unanswered, now + UNANSWERED);
                        }
                        let to = remembered.or_else(|| self.elsewhere());
                        let own = to.or_else(|| self.pair()).and_then(|pair| pair.own);
                        self.request(now, ours, (index, own), random, out);
                        return Some(to);
                    }
                    false
                }
                PeerTimer::Farewell => self.farewell(now, over, out),
                PeerTimer::Ask if self.is_bare() => self.keep_mapping(now, out),
                PeerTimer::Ask => self.sign(now, over, self.asks(now).then_some(DEAD), out),
                PeerTimer::Unheard => self.sign(now, over, Some(DEAD_UNHEARD), out),
                PeerTimer::Sign => self.sign(now, over, None, out),
            };
            if written {
                return Some(None);
            }
        }
        None
    }

    /// True if the next datagram is a request, which is due.
    pub(in crate::two_way) fn is_asking(&self, now: Instant) -> bool {
        self.timers.at(PeerTimer::Try).is_some_and(|at| at <= now)
    }

    /// True if the next request has a long index at an end with many peers. Every fourth one is for an end of an earlier
    /// version.
    pub(in crate::two_way) fn asks_with_long(&self) -> bool {
        self.attempts % 4 != 2
    }

    /// Addresses of every other request to a peer whose datagrams leave from a certain own address: that of
    /// the route, as this end may have moved.
    fn elsewhere(&self) -> Option<AddressPair> {
        let pair = self.pair().filter(|pair| pair.own.is_some() && self.attempts % 2 == 1)?;
        Some(pair.peer.into())
    }

    /// Writes message 1 of a handshake, which leaves from `own`; `index`: that of the session.
    fn request(
        &mut self,
        now: Instant,
        ours: &EndIdentity,
        (index, own): (Index, Option<IpAddr>),
        random: &mut dyn Random,
        out: &mut Vec<u8>,
    ) {
        let replaced = self.pending.take();
        if self.current.is_none()
            && self.given_up.as_ref().is_none_or(|given_up| now.since(given_up.since) >= LONGEST)
        {
            self.given_up = replaced;
        }
        // A peer that does not have our first key yet may have the other one.
        let other = self.attempts >= 2 && self.attempts % 2 == 1;
        let key = self.keys[usize::from(other) % self.keys.len()].clone();
        self.requests += 1;
        let initiation = key.start(index, ours, self.requests, random, out);
        let mut paid = false;
        // Used once: where it is not valid any more, the request is as a forged one.
        if let Some((cookie, since)) = self.cookie.take()
            && now.since(since) < cookie::USED_FOR
        {
            cookie::pay(&cookie, out);
            paid = true;
        }
        self.pending = Some(Box::new(RequestInFlight { initiation, index, key, since: now, paid, own }));
        let wait = if self.attempts >= PATIENT.0 && !self.eager {
            PATIENT.1.max(self.keepalive.unwrap_or_default() * 5 / 2)
        } else {
            Duration::from_secs(1 << self.attempts.min(BACK_OFF))
        };
        let wait = wait.max(self.patience());
        // Up to a quarter longer, so that many peers do not initiate simultaneously.
        let mut share = [0];
        random.fill(&mut share);
        self.timers.set(PeerTimer::Try, now + wait + wait * u32::from(share[0]) / 1_024);
        self.attempts = self.attempts.saturating_add(1);
        self.last_request = Some(now);
        self.eager = false;
    }

    /// Sets the address before our start, which is tried first.
    pub(in crate::two_way) fn remember(&mut self, now: Instant, address: AddressPair) {
        if self.home != Some(address.peer) {
            self.remembered = Some((address, REMEMBERED[usize::from(self.home.is_some())]));
            self.timers.set(PeerTimer::Try, now);
        }
    }

    /// Returns the address before our start, if the next request goes there.
    fn take_remembered(&mut self) -> Option<AddressPair> {
        let (address, left) = self.remembered?;
        self.remembered = (left > 1).then_some((address, left - 1));
        Some(address)
    }

    /// Records that a packet waits for a session, or for a working one.
    pub(super) fn hurry(&mut self, now: Instant, has_none: bool) {
        let pace = match self.attempts {
            attempts if attempts < HURRIED.0 => HURRIED.1,
            _ if has_none => EAGER,
            _ => return,
        };
        let after = self.last_request.map_or(now, |last| last + pace.max(self.patience()));
        self.try_by(after.max(now));
    }

    /// Least time for which an answer is awaited: the next request makes its session useless.
    fn patience(&self) -> Duration {
        self.round_trip + self.round_trip / 4
    }

    /// Processes an answer that is not that to the pending request. If it answers an earlier one, requests are
    /// too frequent for the round trip: the pending one is given the time to be answered.
    pub(in crate::two_way) fn answered_late(&mut self, now: Instant, answer: &[u8]) {
        let Some(given_up) = &mut self.given_up else { return };
        if Index::of_handshake(answer) != Some(given_up.index) || given_up.initiation.finish(answer).is_none()
        {
            return;
        }
        self.round_trip = now.since(given_up.since);
        self.measured = Some(self.round_trip);
        self.given_up = None;
        if let (Some(at), Some(last)) = (self.timers.at(PeerTimer::Try), self.last_request) {
            self.timers.set(PeerTimer::Try, at.max(last + self.patience()));
        }
    }

    /// Sends a keepalive, which requests an answer within `ask`, besides a round trip. `None`: it requests none.
    fn sign(&mut self, now: Instant, over: Over, ask: Option<Duration>, out: &mut Vec<u8>) -> bool {
        let eager = self.eager;
        let flags = BodyFlags { several: ask.is_some(), addressed: false };
        let sealed = self.seal(now, over, flags, &[], out).is_ok();
        self.eager = eager;
        let Some(within) = ask else { return sealed };
        if self.confirmations > 0 {
            let after = CONFIRM * (1 << (CONFIRMATIONS - self.confirmations));
            self.confirmations -= 1;
            if self.confirmations > 0 {
                self.timers.set(PeerTimer::Ask, now + after);
            } else {
                self.confirmed(now);
            }
        } else {
            self.liveness.asked();
        }
        if sealed && self.timers.at(PeerTimer::Dead).is_none() {
            self.timers.set(PeerTimer::Dead, now + within + self.round_trip);
        }
        sealed
    }

    /// True if the next keepalive only keeps the mapping of a NAT.
    fn is_bare(&self) -> bool {
        (self.has_bare_keepalives || self.is_new_mapping) && self.confirmations == 0 && !self.shows_address
    }

    /// Writes a keepalive that the peer does not read.
    fn keep_mapping(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        out.push(BARE_KEEPALIVE);
        self.is_new_mapping = false;
        self.ask_later(now);
        true
    }

    /// Sends a keepalive at once that shows the address of this end, if there are keepalives.
    pub(in crate::two_way) fn show_address(&mut self, now: Instant) {
        if self.keepalive.is_some() && self.timers.at(PeerTimer::Ask).is_some() {
            (self.shows_address, self.is_new_mapping) = (true, true);
            self.timers.set(PeerTimer::Ask, now);
        }
    }

    /// Processes a cookie for our request.
    pub(in crate::two_way) fn given(&mut self, now: Instant, cookie: Cookie) {
        self.cookie = Some((cookie, now));
        if let Some(pending) = &mut self.pending
            && !pending.paid
        {
            // Once for each request without a cookie.
            pending.paid = true;
            self.timers.set(PeerTimer::Try, now);
        }
    }

    /// Gives up waiting for an answer; the next request is sent at its time.
    pub(in crate::two_way) fn give_up(&mut self) {
        self.pending = None;
        self.timers.stop(PeerTimer::Unanswered);
    }

    /// Suspects that the session is dead.
    pub(in crate::two_way) fn suspect(&mut self, now: Instant) {
        if self.last_suspicion.is_none_or(|last| now.since(last) >= SUSPICION) {
            self.last_suspicion = Some(now);
            self.suspected = true;
            self.try_unless_trying(now);
        }
    }

    pub(super) fn try_unless_trying(&mut self, now: Instant) {
        if self.timers.at(PeerTimer::Try).is_none() {
            self.attempts = 0;
            self.try_by(now);
        }
    }

    pub(in crate::two_way) fn try_by(&mut self, at: Instant) {
        let calm = self.last_request.map_or(at, |last| at.max(last + CALM));
        self.timers.by(PeerTimer::Try, calm);
    }
}
