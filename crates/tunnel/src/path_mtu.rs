//! Path MTU of a carrier towards one peer, found by probes that the peer confirms. DPLPMTUD, RFC 8899.
//!
//! Sizes are octets of the IP packet that carries a datagram. The search starts when a datagram nearly as long as the
//! base is to be sent, so an idle tunnel sends no probe. Where the configured MTU passes, one probe and its confirmation
//! are all. Later, a datagram longer than the base asks for a confirmation now and then; if none comes, the path is a black
//! hole for its size. Routers (ICMP) give hints, which probes check; the interface of this machine is believed.

use std::time::Duration;

use thinair_wire::time::Instant;

use crate::status::PathCounters;

/// PROBE_TIMER before a round trip was measured; then it is 2 round trips and no less. RFC 8899, section 5.1.1.
const PROBE_TIMER: Duration = Duration::from_secs(1);
/// MAX_PROBES: probes of one size in a row. RFC 8899, section 5.1.2.
const MAX_PROBES: u32 = 3;
/// PMTU_RAISE_TIMER: time after which a larger size is tried again. RFC 8899, section 5.1.1.
const PMTU_RAISE_TIMER: Duration = Duration::from_secs(600);
/// CONFIRMATION_TIMER: time for which a confirmed size is taken to pass. RFC 8899, section 5.1.1.
const CONFIRMATION_TIMER: Duration = Duration::from_secs(10);
/// Least time from one search that a router has caused to the next.
const REPORTS_APART: Duration = Duration::from_secs(10);
/// Least time from one probe of the base to the next while none is confirmed (state Error).
const RETRY: Duration = Duration::from_secs(5);
/// A datagram that is at most so many octets shorter than possible would be longer if it could.
const NEARLY: u16 = 64;

/// Sizes that are tried below the largest one: MTUs of common links and tunnels.
const CANDIDATES: [u16; 18] = [
    1_280, 1_300, 1_340, 1_380, 1_400, 1_420, 1_440, 1_450, 1_460, 1_472, 1_476, 1_480, 1_492, 1_500, 2_000,
    4_000, 9_000, 16_000,
];

/// State of the search. RFC 8899, section 5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The peer confirms no probes: it is of an earlier version. Datagrams are as long as configured.
    Disabled,
    /// Nothing longer than the base is known to pass. With a probe under way, the base itself is confirmed.
    Base,
    /// Larger sizes are probed.
    Searching,
    /// The size is the largest one that passes.
    SearchComplete,
    /// Not even the base passes.
    Error,
}

/// Smallest sizes of a family of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// BASE_PLPMTU: passes nearly everywhere.
    pub base: u16,
    /// MIN_PLPMTU: used where not even the base passes.
    pub min: u16,
}

impl Least {
    /// IPv4: RFC 8899, section 5.1.2; RFC 791, section 3.1.
    pub const IPV4: Self = Self { base: 1_200, min: 576 };
    /// IPv6: RFC 8200, section 5.
    pub const IPV6: Self = Self { base: 1_280, min: 1_280 };
}

/// A size whose confirmation is awaited.
#[derive(Clone, Copy, Debug)]
struct Probe {
    octets: u16,
    /// Probes of it that were sent.
    sent: u32,
    first_sent: Instant,
    /// When the next one is due, or all have failed.
    at: Instant,
}

/// Search for the path MTU towards one peer.
///
/// **[`sent`](Self::sent) is called before each datagram; [`poll`](Self::poll) after each call of another method and when
/// [`poll_at`](Self::poll_at) has come.**
#[derive(Debug)]
pub struct PathMtu {
    least: Least,
    configured: u16,
    /// Size before anything was confirmed.
    start: u16,
    /// MAX_PLPMTU: the configured MTU, or less where an interface of this machine takes less.
    max: u16,
    state: State,
    size: u16,
    settled: u16,
    /// Bounds of the search: the size that was confirmed, and the largest one that may pass.
    low: u16,
    high: u16,
    /// Whether nothing between both is tried, and how often each size is.
    top_only: bool,
    attempts: u32,
    probe: Option<Probe>,
    /// Longest datagram that was confirmed of late, and when.
    confirmed: Option<(u16, Instant)>,
    round_trip: Option<Duration>,
    /// Whether a probe was lost that passed when it was sent again: the path loses datagrams of any size.
    is_lossy: bool,
    /// Whether the peer has ever confirmed a probe.
    is_known: bool,
    /// When a larger size, or in state Error the base, is tried again.
    again_at: Option<Instant>,
    reported_at: Option<Instant>,
    counters: PathCounters,
}

impl PathMtu {
    /// A path of which nothing is known. `configured`: upper bound; `is_cut`: whether packets that are too long can be cut
    /// into segments: then datagrams are no longer than the base until a larger size is confirmed, else as long as
    /// configured.
    pub fn new(least: Least, configured: u16, is_cut: bool) -> Self {
        let start = if is_cut { least.base.min(configured) } else { configured };
        Self {
            least,
            configured,
            start,
            max: configured,
            state: State::Base,
            size: start,
            settled: configured,
            low: least.base.min(configured),
            high: configured,
            top_only: false,
            attempts: MAX_PROBES,
            probe: None,
            confirmed: None,
            round_trip: None,
            is_lossy: false,
            is_known: false,
            again_at: None,
            reported_at: None,
            counters: PathCounters::default(),
        }
    }

    /// PLPMTU: octets of the longest IP packet that may be sent to the peer.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// The size with which the last search has ended; the configured one before the first.
    pub fn settled(&self) -> u16 {
        self.settled
    }

    /// State of the search.
    pub fn state(&self) -> State {
        self.state
    }

    /// Counters since the start.
    pub fn counters(&self) -> PathCounters {
        PathCounters { mtu: Some(self.size.into()), ..self.counters }
    }

    /// The path is another one: the peer has moved, or has started anew.
    pub fn restart(&mut self) {
        let counters = self.counters;
        let settled = self.settled;
        *self = Self {
            counters,
            settled,
            ..Self::new(self.least, self.configured, self.start < self.configured)
        };
    }

    /// A datagram of so many octets is about to be sent. Whether it is to ask for a confirmation.
    pub fn sent(&mut self, now: Instant, octets: u16) -> bool {
        if octets.saturating_add(NEARLY) > self.size {
            self.wanted(now);
        }
        let is_fresh = self
            .confirmed
            .is_some_and(|(longest, at)| octets <= longest && now.since(at) < CONFIRMATION_TIMER);
        let asks = self.state == State::SearchComplete
            && self.probe.is_none()
            && self.is_known
            && octets > self.base()
            && !is_fresh;
        if asks {
            self.attempts = self.tries();
            let at = now + self.timer(1);
            self.probe = Some(Probe { octets, sent: 1, first_sent: now, at });
        }
        asks
    }

    /// A packet did not fit into one datagram.
    pub fn wanted(&mut self, now: Instant) {
        let is_time = self.again_at.is_some_and(|at| at <= now);
        match self.state {
            State::Base if self.probe.is_none() && self.max <= self.base() => self.complete(now, self.max),
            State::Base if self.probe.is_none() => {
                self.search(self.tries());
                self.try_size(now, self.max);
            }
            State::SearchComplete if is_time && self.probe.is_none() => {
                self.max = self.configured;
                self.search(1);
                self.low = self.size;
                self.try_size(now, self.max);
            }
            State::Error if is_time && self.probe.is_none() => self.try_size(now, self.base()),
            State::Base | State::SearchComplete | State::Error | State::Disabled | State::Searching => {}
        }
    }

    /// Octets of a probe that is to be sent now. It is padded to be as long as that.
    pub fn poll(&mut self, now: Instant) -> Option<u16> {
        while let Some(mut probe) = self.probe.filter(|probe| probe.at <= now) {
            if probe.sent < self.attempts {
                if probe.sent == 0 {
                    probe.first_sent = now;
                }
                probe.sent += 1;
                probe.at = now + self.timer(probe.sent);
                self.probe = Some(probe);
                self.counters.probes += 1;
                return Some(probe.octets);
            }
            self.probe = None;
            self.failed(now, probe.octets);
        }
        None
    }

    /// The probe could not be sent: there are no keys yet. It is due again after a second.
    pub fn postpone(&mut self, now: Instant) {
        if let Some(probe) = &mut self.probe {
            probe.sent = probe.sent.saturating_sub(1);
            probe.at = now + PROBE_TIMER;
            self.counters.probes = self.counters.probes.saturating_sub(1);
        }
    }

    /// When [`poll`](Self::poll) is to be called next; `None`: nothing is under way.
    pub fn poll_at(&self) -> Option<Instant> {
        self.probe.map(|probe| probe.at)
    }

    /// The peer has confirmed that a datagram of so many octets has arrived. Only what is authentic.
    pub fn handle_confirmation(&mut self, now: Instant, octets: u16) {
        if octets > self.max {
            return;
        }
        self.counters.confirmations += 1;
        let was_known = std::mem::replace(&mut self.is_known, true);
        if self.confirmed.is_none_or(|(longest, at)| octets >= longest || now.since(at) >= CONFIRMATION_TIMER)
        {
            self.confirmed = Some((octets, now));
        }
        if let Some(probe) = self.probe.filter(|probe| probe.octets == octets) {
            if probe.sent == 1 {
                self.round_trip = Some(now.since(probe.first_sent));
            }
            self.is_lossy |= probe.sent > 1;
            self.probe = None;
        } else if self.probe.is_some_and(|probe| probe.octets < octets) {
            // Late, and proof for what is shorter, too.
            self.probe = None;
        }
        match self.state {
            State::SearchComplete => {}
            State::Base if octets >= self.base() => {
                // The base passes where the size before does not.
                self.counters.black_holes += u64::from(was_known && octets < self.size);
                let high = self.high.max(octets);
                self.search(self.tries());
                (self.low, self.high, self.size) = (octets, high, octets);
                self.next(now);
            }
            State::Error | State::Disabled if octets >= self.base() => {
                self.search(self.tries());
                (self.low, self.size) = (octets, octets);
                self.try_size(now, self.max);
            }
            State::Searching if octets > self.low || self.probe.is_none() => {
                self.low = self.low.max(octets);
                self.high = self.high.max(self.low);
                self.size = self.size.max(self.low);
                self.next(now);
            }
            State::Base | State::Error | State::Disabled | State::Searching => {}
        }
    }

    /// A router reports that a datagram to the peer was too long, and the MTU of its link. Anybody could have sent that, so
    /// it only causes a search at this size, and nothing below the base. RFC 8899, section 4.6.
    pub fn handle_report(&mut self, now: Instant, mtu: u32) {
        let Ok(mtu) = u16::try_from(mtu) else { return };
        if mtu < self.base() || mtu >= self.max || !self.is_known && self.state != State::Searching {
            return;
        }
        match (self.state, self.probe) {
            (State::Searching, Some(probe)) if probe.octets > mtu && mtu >= self.low => {
                // What was confirmed above is another matter than what a probe may still meet.
                self.high = mtu;
                self.probe = None;
                if mtu > self.low { self.try_size(now, mtu) } else { self.next(now) }
            }
            (State::SearchComplete, _) if mtu < self.size => {
                if self.reported_at.is_some_and(|at| now.since(at) < REPORTS_APART) {
                    return;
                }
                self.reported_at = Some(now);
                let before = self.size;
                self.search(self.tries());
                // If it is true, a probe of the size before is reported again; if not, it is confirmed.
                (self.high, self.size, self.top_only) = (before, self.base(), true);
                self.confirmed = None;
                self.try_size(now, mtu);
            }
            _ => {}
        }
    }

    /// An interface of this machine has refused a datagram of so many octets. `mtu`: its MTU, where it is known. Whether the
    /// datagram was a probe, and nothing was lost.
    pub fn handle_refusal(&mut self, now: Instant, octets: u16, mtu: Option<u16>) -> bool {
        let limit = mtu.unwrap_or(octets.saturating_sub(1)).max(self.least.min.min(self.configured));
        let is_probe = self.probe.is_some_and(|probe| {
            // The first one that confirms a size is a datagram that was to be sent anyway.
            probe.octets == octets && (self.state != State::SearchComplete || probe.sent > 1)
        });
        if limit >= self.max {
            return is_probe;
        }
        self.max = limit;
        (self.low, self.high) = (self.low.min(limit), self.high.min(limit));
        self.size = self.size.min(limit);
        let is_too_long = self.probe.is_some_and(|probe| probe.octets > limit);
        match self.state {
            State::SearchComplete | State::Disabled => {
                if is_too_long {
                    self.probe = None;
                }
                self.settled = self.size;
                self.again_at = Some(now + PMTU_RAISE_TIMER);
            }
            State::Searching if is_too_long => self.try_size(now, limit),
            State::Base | State::Error if is_too_long => self.try_size(now, self.base()),
            State::Base | State::Error | State::Searching => {}
        }
        is_probe
    }

    fn base(&self) -> u16 {
        self.least.base.min(self.max)
    }

    /// The next size that is worth a try below one that does not pass.
    fn below(&self, octets: u16) -> u16 {
        let shorter = CANDIDATES.into_iter().filter(|size| *size < octets);
        shorter.max().unwrap_or(self.low).max(self.low)
    }

    fn timer(&self, sent: u32) -> Duration {
        match self.round_trip {
            Some(round_trip) => PROBE_TIMER.max(round_trip * 2),
            None => PROBE_TIMER * (1 << (sent - 1).min(4)),
        }
    }

    /// Probes of one size in a row: more of them where the path loses some by chance.
    fn tries(&self) -> u32 {
        if self.is_lossy { 2 * MAX_PROBES } else { MAX_PROBES }
    }

    /// All between the base and the most is possible.
    fn search(&mut self, attempts: u32) {
        (self.state, self.attempts, self.top_only) = (State::Searching, attempts, false);
        (self.low, self.high) = (self.base(), self.max);
        self.again_at = None;
    }

    fn try_size(&mut self, now: Instant, octets: u16) {
        if self.state == State::Searching && octets <= self.low {
            return self.complete(now, self.low);
        }
        self.probe = Some(Probe { octets, sent: 0, first_sent: now, at: now });
    }

    /// Tries the middle one of the sizes that are left.
    fn next(&mut self, now: Instant) {
        let (low, high) = (self.low, self.high);
        let between = CANDIDATES.iter().copied().filter(|size| !self.top_only && low < *size && *size < high);
        let count = between.clone().count();
        if self.top_only {
            self.attempts = 1;
        }
        match between.clone().nth(count / 2) {
            Some(size) => self.try_size(now, size),
            None => self.try_size(now, high),
        }
    }

    fn complete(&mut self, now: Instant, size: u16) {
        (self.state, self.size, self.settled) = (State::SearchComplete, size, size);
        self.probe = None;
        self.again_at = (size < self.configured).then(|| now + PMTU_RAISE_TIMER);
    }

    /// All probes of a size are lost.
    fn failed(&mut self, now: Instant, octets: u16) {
        match self.state {
            State::Searching if !self.is_known => {
                // It may be the size, or the peer confirms nothing.
                self.high = self.below(octets);
                self.state = State::Base;
                self.try_size(now, self.base());
            }
            State::Searching => {
                self.high = if self.top_only { self.low } else { self.below(octets) };
                if octets <= self.low || self.high <= self.low {
                    self.complete(now, self.low)
                } else {
                    self.next(now);
                }
            }
            State::SearchComplete => {
                // By chance all three may have been lost: the size is not ruled out, but tried last.
                self.high = octets;
                (self.state, self.confirmed) = (State::Base, None);
                self.try_size(now, self.base());
            }
            State::Base if !self.is_known => {
                (self.state, self.size, self.settled) = (State::Disabled, self.max, self.max);
            }
            State::Base | State::Error => {
                self.state = State::Error;
                self.size = self.least.min.min(self.max);
                self.attempts = 1;
                self.again_at = Some(now + RETRY);
            }
            State::Disabled => {}
        }
    }
}

#[cfg(test)]
mod tests;
