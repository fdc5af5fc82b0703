//! Loss as the tunnel program of rohc-lib 1.6.0 has it under the name `uniform`: a counter of octets, and no chance.
//!
//! A packet is dropped when the octets since the last drop reach 1 / (8 * BER). The counter then begins with what
//! the packet had beyond that, **and the whole packet is added to it once more**. Published round trips over lossy
//! links were measured with it, and a row of them may owe more to this than to bit errors.

/// The counter of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counter {
    octets: u64,
}

impl Counter {
    /// Whether a packet of `len` octets is dropped, with `between` octets between two errors.
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
