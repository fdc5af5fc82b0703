//! Times of the transmissions of a Confirmable message.
//!
//! MAX_RETRANSMIT counts timeouts of at least ACK_TIMEOUT; with a measured timeout of some milliseconds, as many would be
//! over before a server has erased a page of its flash, or a path has moved to another cell. So an algorithm that measures
//! has the time limits that follow from MAX_RETRANSMIT (RFC 7252, section 4.8.2) in place of the count: transmissions for
//! MAX_TRANSMIT_SPAN, and an answer is awaited until MAX_TRANSMIT_WAIT. Between these, the timeouts are those of the
//! algorithm, with two bounds: silence is not waited out for much longer than it lasts, and [`MAX_TRANSMISSIONS`] reach to
//! the end of the span.

use core::time::Duration;

use super::{Timer, Transmission, nanos, part};

const MILLISECOND: u64 = 1_000_000;

/// Largest number of transmissions of a message whose timeouts are measured.
pub const MAX_TRANSMISSIONS: u8 = 12;

/// Transmissions whose times are the algorithm's alone: as many as by MAX_RETRANSMIT of RFC 7252.
const UNSPREAD: u8 = 5;

/// Length of a pause behind which an exchange goes on at once: of a handover, or of writing to flash. During it, and one
/// RTO before it can begin, a timeout is at most [`EARLY_TIMEOUT`], or one RTO.
const EARLY: u64 = 2_000 * MILLISECOND;
const EARLY_TIMEOUT: u64 = 1_500 * MILLISECOND;

/// Addition to the span that keeps peers from retransmitting simultaneously: its share of the span is at most 1 / 4.
const DITHER: u64 = 4;

/// Transmissions of one message: those of its algorithm, within the time limits of its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// Largest number of transmissions.
    count: u8,
    /// Time of the last transmission after the first, in nanoseconds. `None`: the count decides.
    span: Option<u64>,
    /// Time after the first transmission at which the message is given up, in nanoseconds.
    wait: u64,
    /// Time after the first transmission from which none follows, in nanoseconds.
    lifetime: u64,
    /// ACK_TIMEOUT in nanoseconds.
    ack_timeout: u64,
    /// True if there was a measurement when the message was first sent.
    is_measured: bool,
}

impl Schedule {
    /// Schedule of RFC 7252, section 4.2: MAX_RETRANSMIT timeouts, and one more.
    pub(crate) fn counted(parameters: &Transmission) -> Self {
        Self {
            count: parameters.max_retransmit.saturating_add(1),
            span: None,
            wait: 0,
            lifetime: nanos(parameters.retransmission_lifetime()),
            ack_timeout: nanos(parameters.ack_timeout),
            is_measured: false,
        }
    }

    /// Schedule of an algorithm that measures the path. `random` is the position in the range of the span's dither.
    pub(crate) fn timed(parameters: &Transmission, is_measured: bool, random: u64) -> Self {
        let lifetime = nanos(parameters.retransmission_lifetime());
        let span = nanos(parameters.max_transmit_span());
        let span = span.saturating_add(part(span / DITHER, random)).min(lifetime);
        Self {
            count: MAX_TRANSMISSIONS,
            span: Some(span),
            wait: nanos(parameters.max_transmit_wait()),
            lifetime,
            ack_timeout: nanos(parameters.ack_timeout),
            is_measured,
        }
    }

    /// True if a message is sent again `elapsed` after its first transmission; the latest of its `transmissions` was sent
    /// `latest` after the first.
    pub(crate) fn allows(&self, transmissions: u8, latest: Duration, elapsed: Duration) -> bool {
        !self.is_last(transmissions, nanos(latest)) && nanos(elapsed) <= self.lifetime
    }

    /// True if no transmission follows the `transmissions`-th, `elapsed` after the first.
    fn is_last(&self, transmissions: u8, elapsed: u64) -> bool {
        transmissions >= self.count || self.span.is_some_and(|span| elapsed >= span)
    }

    /// Returns the time from a transmission to the next one, or to giving up: the `transmissions`-th, `elapsed` after the
    /// first.
    pub(crate) fn timeout(&self, timer: &Timer, transmissions: u8, elapsed: Duration) -> Duration {
        let Some(span) = self.span else { return timer.timeout() };
        let elapsed = nanos(elapsed);
        if self.is_last(transmissions, elapsed) {
            return Duration::from_nanos(self.wait.saturating_sub(elapsed));
        }
        let rest = span - elapsed;
        let timeout =
            timer.nanos.min(self.longest(timer, elapsed)).max(self.shortest(timer, transmissions, elapsed));
        Duration::from_nanos(timeout.min(rest))
    }

    /// True during the time in which a pause of [`EARLY`] that began within the first RTO may end. An RTO that is long
    /// beside ACK_TIMEOUT backs off from the start.
    fn is_early(&self, timer: &Timer, elapsed: u64) -> bool {
        self.is_measured
            && timer.rto <= self.ack_timeout.saturating_mul(2)
            && elapsed < EARLY.saturating_add(timer.rto)
    }

    /// Returns the longest timeout: three quarters of the silence so far. SlowRTO of FASOR, which measures how long an
    /// answer takes, is not shortened, nor is a back-off to twice the first timeout.
    fn longest(&self, timer: &Timer, elapsed: u64) -> u64 {
        if !self.is_measured || timer.is_slow() || elapsed == 0 {
            return u64::MAX;
        }
        match self.is_early(timer, elapsed) {
            true => timer.rto.max(EARLY_TIMEOUT),
            false => timer.rto.saturating_mul(2).max(elapsed / 4 * 3),
        }
    }

    /// Returns the shortest timeout: if each further one is twice as long, the transmissions that are left fill the rest
    /// of the span. Never longer than the one of RFC 7252 at this transmission.
    fn shortest(&self, timer: &Timer, transmissions: u8, elapsed: u64) -> u64 {
        if transmissions < UNSPREAD {
            return 0;
        }
        let rest = self.span.unwrap_or(0).saturating_sub(elapsed);
        let left = u32::from(self.count.saturating_sub(transmissions));
        let parts = 1_u64.checked_shl(left).unwrap_or(u64::MAX) - 1;
        let of_rfc7252 = 1_u64.checked_shl(u32::from(transmissions - 1)).unwrap_or(u64::MAX);
        let shortest = rest.div_ceil(parts.max(1)).min(self.ack_timeout.saturating_mul(of_rfc7252));
        if self.is_early(timer, elapsed) { shortest.min(EARLY_TIMEOUT) } else { shortest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Series;

    /// Returns the times of all transmissions in milliseconds, and of giving up.
    fn times(schedule: &Schedule, first: u64, factor: u64) -> (std::vec::Vec<u64>, u64) {
        let first = first * 1_000;
        let mut timer = Timer::new(first, first, Series::Double);
        let (mut elapsed, mut times) = (Duration::ZERO, std::vec![0]);
        loop {
            let latest = elapsed;
            elapsed += schedule.timeout(&timer, times.len() as u8, latest);
            if !schedule.allows(times.len() as u8, latest, elapsed) {
                return (times, elapsed.as_millis() as u64);
            }
            times.push(elapsed.as_millis() as u64);
            timer.nanos *= factor;
        }
    }

    /// By hand: 2 s, doubled; given up after 62 s.
    #[test]
    fn rfc_7252_counts() {
        let schedule = Schedule::counted(&Transmission::default());
        assert_eq!(times(&schedule, 2_000_000, 2), (std::vec![0, 2_000, 6_000, 14_000, 30_000], 62_000));
        let none = Transmission { max_retransmit: 0, ..Transmission::default() };
        assert_eq!(times(&Schedule::counted(&none), 2_000_000, 2), (std::vec![0], 2_000));
        assert_eq!(times(&Schedule::timed(&none, true, 0), 20_000, 2), (std::vec![0], 3_000));
    }

    /// With any measured RTO the last transmission is 45 s after the first, the end after 93 s, and there are at most 12 transmissions.
    #[test]
    fn measured_timeouts_have_the_limits_of_time() {
        for micros in [1, 100, 5_000, 15_000, 80_000, 375_000, 900_000, 2_000_000, 12_000_000, 60_000_000] {
            for factor in [2, 3] {
                for (random, last) in [(0, 45_000), (u64::MAX, 56_250)] {
                    for is_measured in [false, true] {
                        let schedule = Schedule::timed(&Transmission::default(), is_measured, random);
                        let (times, over) = times(&schedule, micros, factor);
                        assert_eq!((times.last(), over), (Some(&last), 93_000), "{micros}: {times:?}");
                        assert!(times.len() <= usize::from(MAX_TRANSMISSIONS), "{micros}: {times:?}");
                    }
                }
            }
        }
    }

    /// By hand from the bounds: the first five as the algorithm has them; 354 ms are the rest of the span in 127 parts.
    #[test]
    fn short_timeouts_are_spread_over_the_span() {
        let schedule = Schedule::timed(&Transmission::default(), true, 0);
        let (times, _) = times(&schedule, 10_000, 2);
        assert_eq!(times[..6], [0, 10, 30, 70, 150, 503]);
        assert_eq!(times.len(), usize::from(MAX_TRANSMISSIONS));
    }

    /// A round trip of 12 s backs off as its algorithm has it.
    #[test]
    fn long_timeouts_are_not_shortened() {
        let schedule = Schedule::timed(&Transmission::default(), true, 0);
        assert_eq!(times(&schedule, 12_000_000, 2).0, [0, 12_000, 36_000, 45_000]);
    }

    /// `retransmission_lifetime`: ACK_TIMEOUT of 60 s has a span of 1,350 s.
    #[test]
    fn no_transmission_follows_the_lifetime() {
        for ack_timeout in [100, 10_000, 60_000] {
            let parameters =
                Transmission { ack_timeout: Duration::from_millis(ack_timeout), ..Transmission::default() };
            for random in [0, u64::MAX] {
                let (times, over) = times(&Schedule::timed(&parameters, true, random), 50_000, 2);
                let last = Duration::from_millis(*times.last().unwrap_or(&0));
                assert!(
                    last <= parameters.retransmission_lifetime() && last >= parameters.max_transmit_span()
                );
                assert_eq!(Duration::from_millis(over), parameters.max_transmit_wait());
            }
        }
    }
}
