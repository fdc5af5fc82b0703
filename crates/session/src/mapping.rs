//! Time for which a NAT, or a stateful firewall, keeps the mapping of an idle socket (RFC 4787, section 4.3), by probes that
//! the peer answers: the interval of keepalives follows it.
//!
//! Probes leave from a second socket, whose mapping may be lost. A probe requests an answer after a delay, to the address
//! that it came from: an answer that arrives proves that the mapping lasts so long. Delays double until several answers in a
//! row are missing, and then the interval between both is halved. Before each delay, the mapping has two-way traffic for
//! more than two seconds, as that in use: Linux keeps others for a shorter time. Until more is proved, keepalives are
//! frequent; a lost datagram only makes the result smaller.

use std::net::IpAddr;
use std::time::Duration;

use thinair_wire::time::Instant;

/// Shortest timeout of a NAT that is supported.
pub const LEAST: Duration = Duration::from_secs(10);
/// First delay.
const FIRST: Duration = Duration::from_secs(12);
/// Longest delay. Also the longest one that a peer is asked for.
pub const LONGEST: Duration = Duration::from_secs(3_072);
/// Interval of keepalives if the peer does not answer probes.
pub const UNKNOWN: Duration = Duration::from_secs(25);
/// Share of the timeout that is the interval of keepalives, in percent.
const SHARE: u32 = 95;
/// Ratio of the shortest refuted delay to the longest proved one at which the search ends, in percent.
const CLOSE: u128 = 110;
/// Number of answers in a row that are missing at a delay that is refuted.
const TRIES: u32 = 3;
/// Maximum number of requests of a search. Each has one answer.
const REQUESTS: u32 = 30;
/// Number of first requests after which a peer counts as one that does not answer.
const FIRST_REQUESTS: u32 = 5;
/// Time from the first traffic of a mapping to the request with a delay.
const SETTLED: Duration = Duration::from_secs(3);
/// Time for which an answer is awaited, besides its delay: the first one, and the longest one.
const PATIENCE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];
/// Time after a missing answer of a peer that has answered before, doubled with each further one, up to 32 times.
const PAUSE: Duration = Duration::from_secs(60);
/// Age of a result at which new keys cause a request, which shows whether the address is still the same.
const CHECKED: Duration = Duration::from_secs(12 * 3_600);

/// Timeout behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedTimeout {
    /// Address from which datagrams arrive at the peer.
    pub address: IpAddr,
    /// Time for which a mapping is kept at least.
    pub timeout: Duration,
}

/// A request that is to be sent from the second socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingProbe {
    /// Its number.
    pub id: u16,
    /// Time after which the peer answers.
    pub delay: Duration,
}

/// Next step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A request without a delay is due, which creates a mapping.
    Open(Instant),
    /// Its answer is awaited, from one time to the other.
    Opening(Instant, Instant),
    /// The request with a delay is due.
    Ask(Instant),
    /// Its answer is awaited until then.
    Asking(Instant),
    /// There is a result.
    Done,
}

/// Search for the timeout of mappings to one peer.
///
/// **Call [`poll`](Self::poll) until it returns `None` after each call of another method, and at the time of
/// [`poll_at`](Self::poll_at). Then [`keepalive`](Self::keepalive) may have changed.**
#[derive(Debug)]
pub struct MappingSearch {
    step: Step,
    /// Longest proved delay, and shortest refuted one.
    proved: Option<Duration>,
    refuted: Option<Duration>,
    /// Number of the last request, and of all.
    id: u16,
    requests: u32,
    /// Number of missing answers in a row: without a delay, and at the current one.
    unopened: u32,
    unanswered: u32,
    round_trip: Duration,
    address: Option<IpAddr>,
    /// Result of an earlier search.
    remembered: Option<LearnedTimeout>,
    checked_at: Option<Instant>,
}

impl MappingSearch {
    /// Begins a search. `remembered`: the result of an earlier one, which is valid if the address is still the same.
    pub fn new(now: Instant, remembered: Option<LearnedTimeout>) -> Self {
        Self {
            step: Step::Open(now),
            proved: None,
            refuted: None,
            id: 0,
            requests: 0,
            unopened: 0,
            unanswered: 0,
            round_trip: Duration::ZERO,
            address: None,
            remembered,
            checked_at: None,
        }
    }

    /// Interval of keepalives that keeps the mapping in use.
    pub fn keepalive(&self) -> Duration {
        match self.proved {
            _ if self.is_unanswered() => UNKNOWN,
            proved => proved.unwrap_or(LEAST) * SHARE / 100,
        }
    }

    /// Result of the search; `None`: there is none yet, or the peer does not answer.
    pub fn learned(&self) -> Option<LearnedTimeout> {
        let timeout = self.proved.unwrap_or(LEAST);
        self.address.filter(|_| self.step == Step::Done).map(|address| LearnedTimeout { address, timeout })
    }

    /// True if the peer does not answer probes, as those of earlier versions.
    pub fn is_unanswered(&self) -> bool {
        self.step == Step::Done && self.address.is_none()
    }

    /// Number of requests of this search.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Returns the request that is due.
    pub fn poll(&mut self, now: Instant) -> Option<MappingProbe> {
        match self.step {
            Step::Opening(_, until) if until <= now => self.note_unopened(now),
            Step::Asking(until) if until <= now => self.note_unanswered(now),
            Step::Opening(..) | Step::Asking(_) | Step::Open(_) | Step::Ask(_) | Step::Done => {}
        }
        match self.step {
            Step::Open(at) if at <= now => {
                self.step = Step::Opening(now, now + self.patience());
                Some(self.request(Duration::ZERO))
            }
            Step::Ask(at) if at <= now => {
                let delay = self.delay();
                self.step = Step::Asking(now + delay + self.patience());
                Some(self.request(delay))
            }
            Step::Opening(..) | Step::Asking(_) | Step::Open(_) | Step::Ask(_) | Step::Done => None,
        }
    }

    /// Time of the next call of [`poll`](Self::poll).
    pub fn poll_at(&self) -> Option<Instant> {
        match self.step {
            Step::Open(at) | Step::Opening(_, at) | Step::Ask(at) | Step::Asking(at) => Some(at),
            Step::Done => None,
        }
    }

    /// Takes back the request of the last [`poll`](Self::poll), which cannot be sent without keys: new ones cause it again.
    pub fn postpone(&mut self, now: Instant) {
        self.requests = self.requests.saturating_sub(1);
        self.step = Step::Open(now + PATIENCE[1]);
    }

    /// Handles the answer to the request of this number, which came from `address`.
    pub fn handle_answer(&mut self, now: Instant, id: u16, address: IpAddr) {
        if id != self.id || !matches!(self.step, Step::Opening(..) | Step::Asking(_)) {
            return;
        }
        if self.address.is_some_and(|known| known != address) {
            self.restart(now);
            return;
        }
        self.address = Some(address);
        self.checked_at = Some(now);
        self.unopened = 0;
        if let Some(remembered) = self.remembered.take().filter(|remembered| remembered.address == address) {
            self.proved = Some(remembered.timeout);
            self.requests = REQUESTS;
        }
        match self.step {
            Step::Opening(since, _) => {
                self.round_trip = now.since(since);
                self.step = Step::Ask(now + SETTLED);
            }
            Step::Asking(_) => {
                self.proved = Some(self.delay());
                self.unanswered = 0;
                self.step = Step::Ask(now);
            }
            Step::Open(_) | Step::Ask(_) | Step::Done => {}
        }
        self.finish();
    }

    /// Handles new keys. `restarted`: the peer has restarted, and has no requests any more.
    pub fn handle_session(&mut self, now: Instant, restarted: bool) {
        let is_old = self.checked_at.is_none_or(|at| now.since(at) >= CHECKED);
        let is_waiting = matches!(self.step, Step::Open(_));
        if restarted || is_waiting || (self.step == Step::Done && self.address.is_some() && is_old) {
            self.unopened = 0;
            self.step = Step::Open(now);
        }
    }

    /// Begins again, as this end may have another address. The result stays if it has not.
    pub fn restart(&mut self, now: Instant) {
        let remembered = self.learned().or(self.remembered);
        *self = Self { id: self.id, ..Self::new(now, remembered) };
    }

    fn request(&mut self, delay: Duration) -> MappingProbe {
        self.id = self.id.wrapping_add(1);
        // Later ones only show whether the address is still the same.
        self.requests = (self.requests + 1).min(REQUESTS);
        MappingProbe { id: self.id, delay }
    }

    /// Next delay, in whole milliseconds.
    fn delay(&self) -> Duration {
        match (self.proved, self.refuted) {
            (None, None) => FIRST,
            (Some(proved), None) => (proved * 2).min(LONGEST),
            (proved, Some(refuted)) => {
                let square = proved.unwrap_or(LEAST).as_millis() * refuted.as_millis();
                Duration::from_millis(u64::try_from(square.isqrt()).unwrap_or(u64::MAX))
            }
        }
    }

    /// Time for which an answer is awaited, besides its delay.
    fn patience(&self) -> Duration {
        (PATIENCE[0] * (1 << self.unopened.min(5))).min(PATIENCE[1]).max(self.round_trip * 2)
    }

    fn note_unopened(&mut self, now: Instant) {
        self.unopened += 1;
        self.step = match self.address {
            None if self.unopened >= FIRST_REQUESTS => Step::Done,
            None => Step::Open(now),
            Some(_) => Step::Open(now + PAUSE * (1 << (self.unopened - 1).min(5))),
        };
        self.finish();
    }

    fn note_unanswered(&mut self, now: Instant) {
        self.unanswered += 1;
        if self.unanswered >= TRIES {
            self.refuted = Some(self.delay());
            self.unanswered = 0;
        }
        self.step = Step::Open(now);
        self.finish();
    }

    /// Ends the search if the result is close enough, or has cost enough.
    fn finish(&mut self) {
        let proved = self.proved.unwrap_or(LEAST);
        let is_close = |refuted: Duration| refuted.as_millis() * 100 <= proved.as_millis() * CLOSE;
        // A request without a delay alone proves nothing.
        let is_spent = self.requests >= REQUESTS;
        if self.address.is_some() && (is_spent || proved >= LONGEST || self.refuted.is_some_and(is_close)) {
            self.step = Step::Done;
        }
    }
}

#[cfg(test)]
mod tests;
