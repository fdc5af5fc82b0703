//! Congestion window in segments: slow start, loss (RFC 5681), and algorithm of congestion avoidance.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use thinair_wire::time::Instant;

use super::cubic::Cubic;

/// Algorithm of congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionAlgorithm {
    /// A segment per round trip; a loss halves the window. RFC 5681, section 3.1.
    Reno,
    /// Cubic in the time since the loss, which leaves 0.7 of the window. RFC 9438.
    Cubic,
}

impl CongestionAlgorithm {
    /// Name of the algorithm.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
        }
    }
}

/// Unknown name of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm;

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no congestion control of TCP has that name; there are reno and cubic")
    }
}

impl std::error::Error for UnknownAlgorithm {}

impl FromStr for CongestionAlgorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        [Self::Reno, Self::Cubic]
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or(UnknownAlgorithm)
    }
}

/// Congestion window of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    window: u32,
    threshold: u32,
    /// Segments acknowledged since the window grew.
    counted: u32,
    cubic: Option<Cubic>,
}

impl Congestion {
    pub(super) fn new(algorithm: CongestionAlgorithm, initial: u32) -> Self {
        Self {
            window: initial.max(1),
            threshold: u32::MAX,
            counted: 0,
            cubic: matches!(algorithm, CongestionAlgorithm::Cubic).then(Cubic::default),
        }
    }

    /// cwnd in segments.
    pub(super) const fn window(&self) -> u32 {
        self.window
    }

    /// ssthresh in segments; the largest number before the first loss.
    pub(super) const fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Handles an acknowledgment of `segments` segments, sent while the window was the limit.
    pub(super) fn on_acked(&mut self, now: Instant, segments: u32, rtt: Option<Duration>) {
        let mut segments = segments;
        if self.window < self.threshold {
            // Slow start. RFC 5681, section 3.1, with RFC 3465's L = 1 segment of growth for each one acknowledged.
            let growth = segments.min(self.threshold - self.window);
            self.window += growth;
            segments -= growth;
            if segments == 0 {
                return;
            }
        }
        let per_growth = match &mut self.cubic {
            None => self.window,
            Some(cubic) => cubic.segments_per_growth(now, self.window, segments, rtt),
        };
        self.counted += segments;
        while self.counted >= per_growth.max(1) {
            self.counted -= per_growth.max(1);
            self.window += 1;
        }
    }

    /// Handles a loss detected by acknowledgments, with `in_flight` segments in flight: sets the window of the
    /// recovery.
    pub(super) fn on_loss(&mut self, in_flight: u32) {
        self.threshold = self.reduced(in_flight);
        self.window = self.threshold;
    }

    /// Handles the retransmission timeout: one segment. RFC 5681, section 3.1. `first`: the first one of this segment.
    pub(super) fn on_timeout(&mut self, in_flight: u32, first: bool) {
        if first {
            self.threshold = self.reduced(in_flight);
        }
        self.window = 1;
        self.counted = 0;
    }

    fn reduced(&mut self, in_flight: u32) -> u32 {
        self.counted = 0;
        match &mut self.cubic {
            None => (in_flight / 2).max(2),
            Some(cubic) => cubic.on_loss(self.window),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reno_doubles_then_adds_one_a_round_trip_and_halves() {
        let mut reno = Congestion::new(CongestionAlgorithm::Reno, 2);
        let now = Instant::ZERO;
        reno.on_acked(now, 2, None);
        reno.on_acked(now, 4, None);
        assert_eq!(reno.window(), 8);
        reno.on_loss(8);
        assert_eq!((reno.window(), reno.threshold()), (4, 4));
        (0..4).for_each(|_| reno.on_acked(now, 1, None));
        assert_eq!(reno.window(), 5);
        reno.on_timeout(5, true);
        reno.on_timeout(1, false);
        assert_eq!((reno.window(), reno.threshold()), (1, 2));
    }

    /// RFC 9438, section 4.2: after a loss at 100 segments the window is back there after K = cbrt(100 * 0.3 / 0.4) s.
    #[test]
    fn cubic_is_back_after_k_seconds() {
        let mut cubic = Congestion::new(CongestionAlgorithm::Cubic, 100);
        cubic.on_loss(100);
        assert_eq!(cubic.window(), 70);
        // A round trip of 1 s, in which the Reno-friendly window stays smaller.
        let rtt = Duration::from_secs(1);
        let mut reached = None;
        for second in 0..10 {
            let now = Instant::from_millis(1_000 * second);
            for _ in 0..cubic.window() {
                cubic.on_acked(now, 1, Some(rtt));
            }
            if cubic.window() >= 99 && reached.is_none() {
                reached = Some(second);
            }
        }
        // K is 4.2 s; the window of a round trip is that of its end.
        assert!(matches!(reached, Some(3..=5)), "{reached:?}");
        assert!(cubic.window() > 110);
    }
}
