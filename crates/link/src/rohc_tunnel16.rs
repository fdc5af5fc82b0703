//! Loss of the tunnel program of rohc-lib 1.6.0, named `uniform` there: a counter of octets, without randomness.
//!
//! A packet is dropped when the octets since the last drop reach 1 / (8 * BER). The counter then restarts with the
//! excess of the packet, **and the whole packet is added to it once more**. Published measurements of round trips
//! over lossy links used it, and some of their effects may be due to this rather than to bit errors.

/// Counter of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counter {
    octets: u64,
}

impl Counter {
    /// Counts a packet of `len` octets; returns true if it is dropped, with `between` octets between two errors.
    pub(crate) fn drops(&mut self, len: u64, between: u64) -> bool {
        let is_dropped = self.octets.saturating_add(len) >= between;
        if is_dropped {
            self.octets = (self.octets.saturating_add(len)).saturating_sub(between);
        }
        self.octets = self.octets.saturating_add(len);
        is_dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At a bit error rate of 10^-3 an error comes every 125 octets.
    #[test]
    fn a_drop_counts_twice() {
        let mut counter = Counter::default();
        let dropped: std::vec::Vec<_> = (0..60).filter(|_| counter.drops(5, 125)).collect();
        // 24 packets pass from 0, and 23 from 5: the dropped one was counted again.
        assert_eq!(dropped, [24, 48]);
    }
}
