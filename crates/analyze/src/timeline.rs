//! Header sizes over time, in a bounded number of intervals.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::outcome;

/// Maximum number of intervals. If a packet is later than the last one, neighbors are merged.
const MOST: usize = 240;

/// Initial length of an interval, in nanoseconds.
const SHORTEST: u64 = 1_000_000;

/// Octets of all headers of the packets in each interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of an interval in nanoseconds.
    length: u64,
    stretches: Vec<Stretch>,
}

/// Sums of one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Packets.
    pub packets: u64,
    /// Octets of their headers.
    pub header_bytes_in: u64,
    /// Octets of their headers as each scheme sent them, in the order of schemes.
    pub header_bytes_out: Vec<u64>,
}

impl Stretch {
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.header_bytes_in += other.header_bytes_in;
        let len = self.header_bytes_out.len().max(other.header_bytes_out.len());
        self.header_bytes_out.resize(len, 0);
        for (sum, out) in self.header_bytes_out.iter_mut().zip(&other.header_bytes_out) {
            *sum += out;
        }
    }
}

impl Default for Timeline {
    fn default() -> Self {
        Self { length: SHORTEST, stretches: Vec::new() }
    }
}

impl Timeline {
    /// Returns the intervals with packets, each with the time at its middle.
    pub fn stretches(&self) -> impl Iterator<Item = (Duration, &Stretch)> {
        let stretches = self.stretches.iter().enumerate().filter(|(_, stretch)| stretch.packets > 0);
        stretches.map(|(at, stretch)| {
            let middle = (self.length / 2).saturating_add(at as u64 * self.length);
            (Duration::from_nanos(middle), stretch)
        })
    }

    /// Adds one packet.
    pub(crate) fn add(&mut self, nanos: u64, header_in: usize, header_out: &[usize]) {
        while nanos / self.length >= MOST as u64 {
            self.halve();
        }
        let at = (nanos / self.length) as usize;
        if at >= self.stretches.len() {
            self.stretches.resize_with(at + 1, Stretch::default);
        }
        let stretch = &mut self.stretches[at];
        stretch.packets += 1;
        stretch.header_bytes_in += header_in as u64;
        stretch.header_bytes_out.resize(header_out.len(), 0);
        for (sum, out) in stretch.header_bytes_out.iter_mut().zip(header_out) {
            *sum += *out as u64;
        }
    }

    /// Adds the packets of another timeline, as if each had been [added](Self::add).
    pub(crate) fn merge(&mut self, mut other: Self) {
        while self.length < other.length {
            self.halve();
        }
        while other.length < self.length {
            other.halve();
        }
        if self.stretches.len() < other.stretches.len() {
            self.stretches.resize_with(other.stretches.len(), Stretch::default);
        }
        for (sum, stretch) in self.stretches.iter_mut().zip(&other.stretches) {
            sum.add(stretch);
        }
    }

    /// Moves all packets by a time, rounded down to an interval.
    pub(crate) fn delay(&mut self, nanos: u64) {
        while nanos / self.length >= (MOST - self.stretches.len().min(MOST - 1)) as u64 {
            self.halve();
        }
        let empty = std::iter::repeat_n(Stretch::default(), (nanos / self.length) as usize);
        self.stretches.splice(0..0, empty);
    }

    /// Keeps the schemes for which `keep` is true.
    pub(crate) fn retain(&mut self, keep: &[bool]) {
        for stretch in &mut self.stretches {
            outcome::retain(&mut stretch.header_bytes_out, keep);
        }
    }

    /// Halves the resolution.
    fn halve(&mut self) {
        // Doubling ends: 64 bits of nanoseconds are less than 240 times the largest power of two.
        self.length = self.length.saturating_mul(2);
        let mut merged = Vec::with_capacity(MOST);
        for pair in self.stretches.chunks(2) {
            let mut sum = pair[0].clone();
            if let Some(second) = pair.get(1) {
                sum.add(second);
            }
            merged.push(sum);
        }
        self.stretches = merged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_merged_and_nothing_is_lost() {
        let mut timeline = Timeline::default();
        for i in 0..10_000_u64 {
            timeline.add(i * 1_000_000, 40, &[10, 3]);
        }
        timeline.add(u64::MAX, 40, &[10, 3]);
        assert!(timeline.stretches.len() <= MOST);
        let sums = timeline.stretches().fold([0; 4], |sums, (_, stretch)| {
            let out = &stretch.header_bytes_out;
            [sums[0] + stretch.packets, sums[1] + stretch.header_bytes_in, sums[2] + out[0], sums[3] + out[1]]
        });
        assert_eq!(sums, [10_001, 400_040, 100_010, 30_003]);
    }
}
