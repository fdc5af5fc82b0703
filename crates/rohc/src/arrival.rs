//! What is known of a packet that arrives, beside its octets, and what follows from that for packets that are missing.

use thinair_wire::time::Instant;

/// Arrival of a ROHC packet.
///
/// ```
/// use thinair_rohc::{Arrival, Instant};
///
/// let now = Instant::from_millis(20);
/// // A carrier that does not number its frames.
/// assert_eq!(Arrival::from(now), Arrival { now, lost: None });
/// // One that does, and misses the last two.
/// let arrival = Arrival { now, lost: Some(2) };
/// # let _ = arrival;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the packet arrived.
    pub now: Instant,
    /// Packets of the channel that the carrier knows to be missing between this packet and the newest one before it: their
    /// number, or more if it is not known exactly. `Some(0)` if none is missing. `None` if the carrier does not count, or the
    /// packet comes later than one that was sent behind it.
    pub lost: Option<u32>,
}

impl From<Instant> for Arrival {
    fn from(now: Instant) -> Self {
        Self { now, lost: None }
    }
}

