//! Path MTU of a carrier to one peer, discovered by probes that the peer confirms: DPLPMTUD (RFC 8899).
//!
//! Sizes are octets of the IP packet that carries a datagram. The search starts when a datagram close to the
//! base size is to be sent, so an idle tunnel sends no probes. If the configured MTU passes, one probe and
//! its confirmation suffice. Later, datagrams longer than the base request a confirmation from time to time;
//! if none arrives, the path is a black hole for this size. A report of a router (ICMP) causes a search, and
//! datagrams are as long as the base until a probe is confirmed; the interface of this machine is trusted.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thinair_wire::time::Instant;

/// PROBE_TIMER before the round-trip time is measured, and its minimum; afterwards it is 2 round-trip times
/// (RFC 8899, section 5.1.1).
const PROBE_TIMER: Duration = Duration::from_secs(1);
/// MAX_PROBES: number of consecutive probes of one size (RFC 8899, section 5.1.2).
const MAX_PROBES: u32 = 3;
/// PMTU_RAISE_TIMER: time after which a larger size is probed again (RFC 8899, section 5.1.1).
const PMTU_RAISE_TIMER: Duration = Duration::from_secs(600);
/// CONFIRMATION_TIMER: time for which a confirmed size is considered valid (RFC 8899, section 5.1.1).
const CONFIRMATION_TIMER: Duration = Duration::from_secs(10);
/// Minimum time between searches caused by routers.
const REPORTS_APART: Duration = Duration::from_secs(10);
/// Minimum time between probes of the base size while none is confirmed (state Error).
const RETRY: Duration = Duration::from_secs(5);
/// A datagram shorter than the current size by at most this number of octets counts as limited by it.
const NEARLY: u16 = 64;

/// Probed sizes below the largest one: MTUs of common links and tunnels.
const CANDIDATES: [u16; 18] = [
    1_280, 1_300, 1_340, 1_380, 1_400, 1_420, 1_440, 1_450, 1_460, 1_472, 1_476, 1_480, 1_492, 1_500, 2_000,
    4_000, 9_000, 16_000,
];

/// State of the search (RFC 8899, section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchState {
    /// The peer confirms no probes, as in earlier versions. Datagrams are as long as configured.
    Disabled,
    /// No larger size than the base is confirmed. A pending probe tests the base itself.
    Base,
    /// Larger sizes are probed.
    Searching,
    /// The largest size that passes is found.
    SearchComplete,
    /// Not even the base passes.
    Error,
}

/// Minimum sizes of an IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// BASE_PLPMTU: passes almost everywhere.
    pub base: u16,
    /// MIN_PLPMTU: used if the base does not pass.
    pub min: u16,
}

impl Least {
    /// IPv4: RFC 8899, section 5.1.2; RFC 791, section 3.1.
    pub const IPV4: Self = Self { base: 1_200, min: 576 };
    /// IPv6: RFC 8200, section 5.
    pub const IPV6: Self = Self { base: 1_280, min: 1_280 };
}

/// Counters of a [`PathMtu`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCounters {
    /// Maximum size of an IP packet to the peer, in octets. Absent: no search is possible.
    pub mtu: Option<u32>,
    /// Padded probes sent.
    pub probes: u64,
    /// Confirmations of probes, and of datagrams that requested one.
    pub confirmations: u64,
    /// Number of times that a confirmed size stopped passing without a report.
    pub black_holes: u64,
}

/// A size whose confirmation is pending.
#[derive(Clone, Copy, Debug)]
struct Probe {
    octets: u16,
    /// Number of probes sent.
    sent: u32,
    first_sent: Instant,
    /// Time at which the next one is due, or all have failed.
    at: Instant,
}

/// Search for the path MTU to one peer.
///
/// **Call [`sent`](Self::sent) before each datagram; [`poll`](Self::poll) after each call of another method
/// and at the time of [`poll_at`](Self::poll_at).**
#[derive(Debug)]
pub struct PathMtu {
    least: Least,
    configured: u16,
    /// Size before any confirmation.
    start: u16,
    /// MAX_PLPMTU: the configured MTU, or the limit of an interface of this machine.
    max: u16,
    state: SearchState,
    size: u16,
    settled: u16,
    /// Bounds of the search: the confirmed size, and the largest one that may pass.
    low: u16,
    high: u16,
    /// True if sizes between the bounds are not probed; and number of probes of each size.
    top_only: bool,
    attempts: u32,
    probe: Option<Probe>,
    /// Longest recently confirmed datagram, and its time.
    confirmed: Option<(u16, Instant)>,
    round_trip: Option<Duration>,
    /// True after a lost probe passed on retransmission: the path loses datagrams of any size.
    is_lossy: bool,
    /// True if the peer has ever confirmed a probe.
    is_known: bool,
    /// Time at which a larger size, or in state Error the base, is probed again.
    again_at: Option<Instant>,
    reported_at: Option<Instant>,
    counters: PathCounters,
}

impl PathMtu {
    /// Returns the state of an unknown path. `configured`: upper bound; `is_cut`: packets that are too long
    /// can be segmented: then datagrams are at most as long as the base until a larger size is confirmed,
    /// otherwise as long as configured.
    pub fn new(least: Least, configured: u16, is_cut: bool) -> Self {
        let start = if is_cut { least.base.min(configured) } else { configured };
        Self {
            least,
            configured,
            start,
            max: configured,
            state: SearchState::Base,
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

    /// PLPMTU: maximum size of an IP packet to the peer, in octets.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Result of the last search; the configured size before the first one.
    pub fn settled(&self) -> u16 {
        self.settled
    }

    /// State of the search.
    pub fn state(&self) -> SearchState {
        self.state
    }

    /// Counters since the start.
    pub fn counters(&self) -> PathCounters {
        PathCounters { mtu: Some(self.size.into()), ..self.counters }
    }

    /// Restarts the search on a new path: the peer has moved, or has restarted.
    pub fn restart(&mut self) {
        let counters = self.counters;
        let settled = self.settled;
        *self = Self {
            counters,
            settled,
            ..Self::new(self.least, self.configured, self.start < self.configured)
        };
    }

    /// Announces a datagram of this size. Returns true if it should request a confirmation.
    pub fn sent(&mut self, now: Instant, octets: u16) -> bool {
        if octets.saturating_add(NEARLY) > self.size {
            self.wanted(now);
        }
        let is_fresh = self
            .confirmed
            .is_some_and(|(longest, at)| octets <= longest && now.since(at) < CONFIRMATION_TIMER);
        let asks = self.state == SearchState::SearchComplete
            && self.probe.is_none()
            && self.is_known
            && octets > self.base()
            // A longer body was begun before the size fell.
            && octets <= self.size
            && !is_fresh;
        if asks {
            self.attempts = self.tries();
            let at = now + self.timer(1);
            self.probe = Some(Probe { octets, sent: 1, first_sent: now, at });
        }
        asks
    }

    /// Reports a packet that did not fit into one datagram.
    pub fn wanted(&mut self, now: Instant) {
        let is_time = self.again_at.is_some_and(|at| at <= now);
        match self.state {
            SearchState::Base if self.probe.is_none() && self.max <= self.base() => {
                self.complete(now, self.max)
            }
            SearchState::Base if self.probe.is_none() => {
                self.search(self.tries());
                self.try_size(now, self.max);
            }
            SearchState::SearchComplete if is_time && self.probe.is_none() => {
                self.max = self.configured;
                self.search(1);
                self.low = self.size;
                self.try_size(now, self.max);
            }
            SearchState::Error if is_time && self.probe.is_none() => self.try_size(now, self.base()),
            SearchState::Base
            | SearchState::SearchComplete
            | SearchState::Error
            | SearchState::Disabled
            | SearchState::Searching => {}
        }
    }

    /// Returns the size of a probe that is due now, in octets including padding.
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

    /// Postpones a probe that could not be sent for lack of keys, by a second.
    pub fn postpone(&mut self, now: Instant) {
        if let Some(probe) = &mut self.probe {
            probe.sent = probe.sent.saturating_sub(1);
            probe.at = now + PROBE_TIMER;
            self.counters.probes = self.counters.probes.saturating_sub(1);
        }
    }

    /// Time of the next call of [`poll`](Self::poll); `None`: nothing is pending.
    pub fn poll_at(&self) -> Option<Instant> {
        self.probe.map(|probe| probe.at)
    }

    /// Processes an authentic confirmation of the peer that a datagram of this size has arrived.
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
            // A late confirmation, which also proves smaller sizes.
            self.probe = None;
        }
        match self.state {
            SearchState::SearchComplete => {}
            SearchState::Base if octets >= self.base() => {
                // The base passes, and the previous size does not.
                self.counters.black_holes += u64::from(was_known && octets < self.size);
                let high = self.high.max(octets);
                self.search(self.tries());
                (self.low, self.high, self.size) = (octets, high, octets);
                self.next(now);
            }
            SearchState::Error | SearchState::Disabled if octets >= self.base() => {
                self.search(self.tries());
                (self.low, self.size) = (octets, octets);
                self.try_size(now, self.max);
            }
            SearchState::Searching if octets > self.low || self.probe.is_none() => {
                self.low = self.low.max(octets);
                self.high = self.high.max(self.low);
                self.size = self.size.max(self.low);
                self.next(now);
            }
            SearchState::Base | SearchState::Error | SearchState::Disabled | SearchState::Searching => {}
        }
    }

    /// Processes the report of a router that a datagram to the peer exceeded the MTU of its link. Reports can
    /// be forged, so they only cause a search at this size, and none below the base; during a search datagrams are
    /// as long as the base, since longer ones are lost if the report is true (RFC 8899, section 4.6.2).
    pub fn handle_report(&mut self, now: Instant, mtu: u32) {
        let Ok(mtu) = u16::try_from(mtu) else { return };
        if mtu < self.base() || mtu >= self.max || !self.is_known && self.state != SearchState::Searching {
            return;
        }
        match (self.state, self.probe) {
            (SearchState::Searching, Some(probe)) if probe.octets > mtu && mtu >= self.low => {
                // The size confirmed before may exceed what a probe still passes.
                self.high = mtu;
                self.probe = None;
                if mtu > self.low { self.try_size(now, mtu) } else { self.next(now) }
            }
            (SearchState::SearchComplete, _) if mtu < self.size => {
                if self.reported_at.is_some_and(|at| now.since(at) < REPORTS_APART) {
                    return;
                }
                self.reported_at = Some(now);
                let before = self.size;
                self.search(self.tries());
                // If the report is true, a probe of the previous size is reported again; otherwise it is
                // confirmed.
                (self.high, self.size, self.top_only) = (before, self.base(), true);
                self.confirmed = None;
                self.try_size(now, mtu);
            }
            _ => {}
        }
    }

    /// Processes the rejection of a datagram of this size by an interface of this machine. `mtu`: its MTU, if
    /// known. Returns true if the datagram was a probe, so that nothing was lost.
    pub fn handle_refusal(&mut self, now: Instant, octets: u16, mtu: Option<u16>) -> bool {
        let limit = mtu.unwrap_or(octets.saturating_sub(1)).max(self.least.min.min(self.configured));
        let is_probe = self.probe.is_some_and(|probe| {
            // The first probe that confirms a size is a datagram with a body.
            probe.octets == octets && (self.state != SearchState::SearchComplete || probe.sent > 1)
        });
        if limit >= self.max {
            return is_probe;
        }
        self.max = limit;
        (self.low, self.high) = (self.low.min(limit), self.high.min(limit));
        self.size = self.size.min(limit);
        let is_too_long = self.probe.is_some_and(|probe| probe.octets > limit);
        match self.state {
            SearchState::SearchComplete | SearchState::Disabled => {
                if is_too_long {
                    self.probe = None;
                }
                self.settled = self.size;
                self.again_at = Some(now + PMTU_RAISE_TIMER);
            }
            SearchState::Searching if is_too_long => self.try_size(now, limit),
            SearchState::Base | SearchState::Error if is_too_long => self.try_size(now, self.base()),
            SearchState::Base | SearchState::Error | SearchState::Searching => {}
        }
        is_probe
    }

    fn base(&self) -> u16 {
        self.least.base.min(self.max)
    }

    /// Returns the next smaller size to probe.
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

    /// Number of consecutive probes of one size: more of them on a path with random loss.
    fn tries(&self) -> u32 {
        if self.is_lossy { 2 * MAX_PROBES } else { MAX_PROBES }
    }

    /// Starts a search between the base and the maximum.
    fn search(&mut self, attempts: u32) {
        (self.state, self.attempts, self.top_only) = (SearchState::Searching, attempts, false);
        (self.low, self.high) = (self.base(), self.max);
        self.again_at = None;
    }

    fn try_size(&mut self, now: Instant, octets: u16) {
        if self.state == SearchState::Searching && octets <= self.low {
            return self.complete(now, self.low);
        }
        self.probe = Some(Probe { octets, sent: 0, first_sent: now, at: now });
    }

    /// Probes the middle one of the remaining sizes.
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
        (self.state, self.size, self.settled) = (SearchState::SearchComplete, size, size);
        self.probe = None;
        self.again_at = (size < self.configured).then(|| now + PMTU_RAISE_TIMER);
    }

    /// Handles the loss of all probes of a size.
    fn failed(&mut self, now: Instant, octets: u16) {
        match self.state {
            SearchState::Searching if !self.is_known => {
                // Either the size is too large, or the peer confirms nothing.
                self.high = self.below(octets);
                self.state = SearchState::Base;
                self.try_size(now, self.base());
            }
            SearchState::Searching => {
                self.high = if self.top_only { self.low } else { self.below(octets) };
                if octets <= self.low || self.high <= self.low {
                    self.complete(now, self.low)
                } else {
                    self.next(now);
                }
            }
            SearchState::SearchComplete => {
                // All three may have been lost by chance: the size is not excluded, but probed last.
                self.high = octets;
                (self.state, self.confirmed) = (SearchState::Base, None);
                self.try_size(now, self.base());
            }
            SearchState::Base if !self.is_known => {
                (self.state, self.size, self.settled) = (SearchState::Disabled, self.max, self.max);
            }
            SearchState::Base | SearchState::Error => {
                self.state = SearchState::Error;
                self.size = self.least.min.min(self.max);
                self.attempts = 1;
                self.again_at = Some(now + RETRY);
            }
            SearchState::Disabled => {}
        }
    }
}

#[cfg(test)]
mod tests;
