//! A transport stream in virtual time, with its sender and receiver: packets, compressor, encapsulator, TS clock; then
//! receiver, decompressor, packets. All octets are real, only time is virtual.
//!
//! [`one_way`] has one site that sends to another, `real_time` the kernels of two hosts at both ends, in real time.
//! [`mesh`] has many sites, each heard by all others or through a hub.

mod listener;
pub mod mesh;
pub mod one_way;
#[cfg(target_os = "linux")]
pub mod real_time;
mod sender;

use core::time::Duration;

use thinair_rohc::{ChannelError, CompressError};
use thinair_ule::{PushError, Since};
use thinair_wire::time::Instant;

/// Bits of a TS packet.
const TS_BITS: u128 = 188 * 8;
const SECOND: u128 = 1_000_000_000;

/// Reason that a run has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum BroadcastError {
    /// The parameters of a channel are invalid.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// A compressor rejected a packet.
    #[error(transparent)]
    Compress(#[from] CompressError),
    /// An encapsulator rejected a PDU.
    #[error("cannot encapsulate a packet: {0}")]
    Push(PushError),
    /// The plan is not possible.
    #[error("{0}")]
    Unfit(&'static str),
}

impl From<PushError> for BroadcastError {
    fn from(error: PushError) -> Self {
        Self::Push(error)
    }
}

/// Packing of PDUs into TS packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// A PDU is encapsulated at once. If it does not fill its last TS packet, that waits for another PDU.
    Push {
        /// Packing Threshold: the maximum wait. Zero is padding mode.
        wait: Duration,
        /// Event from which the wait counts.
        since: Since,
    },
    /// The TS clock requests PDUs, packet by packet.
    Pull,
}

/// Carrier of a sender, and its packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCarrier {
    /// Rate of whole TS packets including null packets, in bit/s; at least 1.
    pub bitrate: u64,
    /// Time from the end of a TS packet at the sender to its end at the receiver.
    pub delay: Duration,
    /// Packing of PDUs into TS packets.
    pub filling: Filling,
    /// Maximum number of PDUs per SNDU; below 2 there is no PDU-Concat.
    pub concat: usize,
}

impl StreamCarrier {
    /// Time at which TS packet `slot` begins.
    fn slot(&self, slot: u64) -> Instant {
        let nanos = u128::from(slot) * TS_BITS * SECOND / u128::from(self.bitrate.max(1));
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Time at which TS packet `slot` has arrived.
    fn arrival(&self, slot: u64) -> Instant {
        self.slot(slot.saturating_add(1)) + self.delay
    }
}

/// Delays of packets, from their arrival at the sender to their delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays(Vec<u64>);

impl Delays {
    fn note(&mut self, sent: Instant, delivered: Instant) {
        self.0.push(delivered.nanos_since(sent));
    }

    fn sort(&mut self) {
        self.0.sort_unstable();
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there was no packet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Mean in milliseconds; `None` without packets.
    pub fn mean_ms(&self) -> Option<f64> {
        let sum: u128 = self.0.iter().map(|nanos| u128::from(*nanos)).sum();
        (!self.0.is_empty()).then(|| sum as f64 / self.0.len() as f64 / 1e6)
    }

    /// Percentile in milliseconds; `None` without packets.
    pub fn percentile_ms(&self, percent: usize) -> Option<f64> {
        let rank = (self.0.len() * percent.min(100)).div_ceil(100).max(1);
        self.0.get(rank - 1).map(|nanos| *nanos as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_do_not_drift() {
        let carrier =
            StreamCarrier { bitrate: 3_507_000, delay: Duration::ZERO, filling: Filling::Pull, concat: 1 };
        assert_eq!(carrier.slot(3_507_000), Instant::from_millis(1_504_000));
        assert_eq!(carrier.slot(1).as_nanos(), 428_856);
    }

    #[test]
    fn percentiles_are_ranks() {
        let mut delays = Delays::default();
        for ms in (1..=200).rev() {
            delays.note(Instant::ZERO, Instant::from_millis(ms));
        }
        delays.sort();
        assert_eq!(delays.mean_ms(), Some(100.5));
        assert_eq!([0, 50, 99, 100].map(|p| delays.percentile_ms(p)), [1.0, 100.0, 198.0, 200.0].map(Some));
        assert_eq!((Delays::default().mean_ms(), Delays::default().percentile_ms(50)), (None, None));
    }
}
