//! The last minutes of a daemon: counters at intervals, for readers that begin later. Bounded, and without a timer of its own: an
//! idle daemon adds nothing.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Minimum interval of two samples, in seconds.
const EVERY: f64 = 5.0;

/// Maximum number of samples: ten minutes of steady traffic.
const MOST: usize = 120;

/// Counters at a time. Differences of two samples are those of the time between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Time since the start of the daemon.
    pub uptime_seconds: f64,
    /// Packets at the interface, in both directions.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
    /// Octets on the carrier, in both directions.
    pub carrier_octets: u64,
    /// Units of all peers that were lost on the way here.
    pub lost_units: u64,
    /// Units that arrived, of peers whose losses are counted.
    pub received_units: u64,
    /// Longest round trip of a peer, measured last. Absent: none was measured.
    pub round_trip_seconds: Option<f64>,
}

/// Samples, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct History(VecDeque<Sample>);

impl History {
    /// Returns an empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// True if a sample is due.
    pub fn is_due(&self, uptime_seconds: f64) -> bool {
        self.0.back().is_none_or(|last| uptime_seconds - last.uptime_seconds >= EVERY)
    }

    /// Adds a sample, unless nothing has changed since the last two: those show the pause already.
    pub fn add(&mut self, sample: Sample) {
        let is_alike = |other: &Sample| Sample { uptime_seconds: sample.uptime_seconds, ..*other } == sample;
        if self.0.len() >= 2 && self.0.iter().rev().take(2).all(is_alike) {
            self.0.pop_back();
        }
        self.0.push_back(sample);
        if self.0.len() > MOST {
            self.0.pop_front();
        }
    }

    /// Returns the samples, the oldest first.
    pub fn samples(&self) -> Vec<Sample> {
        self.0.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(uptime_seconds: f64, packets: u64) -> Sample {
        Sample { uptime_seconds, packets, ..Sample::default() }
    }

    #[test]
    fn it_is_bounded_and_keeps_the_newest() {
        let mut history = History::new();
        for at in 0..10_000_u32 {
            history.add(sample(f64::from(at) * EVERY, at.into()));
        }
        let kept = history.samples();
        assert_eq!(kept.len(), MOST);
        assert_eq!(kept.last().map(|last| last.packets), Some(9_999));
        assert!(!history.is_due(9_999.0 * EVERY + 1.0) && history.is_due(10_000.0 * EVERY));
    }

    #[test]
    fn a_pause_has_a_begin_and_an_end() {
        let mut history = History::new();
        history.add(sample(0.0, 1));
        for at in 1..100_u32 {
            history.add(sample(f64::from(at) * EVERY, 7));
        }
        assert_eq!(history.samples(), [sample(0.0, 1), sample(5.0, 7), sample(495.0, 7)]);
    }
}
