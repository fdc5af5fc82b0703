//! What a node has done.

use core::ops::AddAssign;

use thinair_link::energy::{CC2420, CORTEX_M3, Energy, Power, Radio, Usage};

/// The radio of Ayadi and Awang (2010), table I: 50.2 mW to send, 59.1 mW to receive, and, as they say nothing of it, to wait.
pub(super) const RADIO: Radio = Radio {
    transmit: Power::from_microwatts(50_200),
    receive: Power::from_microwatts(59_100),
    idle: Power::from_microwatts(59_100),
    ..CC2420
};

/// What happened at a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data frames that were sent, retransmissions included.
    pub sent: u64,
    /// Acknowledgments that were sent.
    pub acks: u64,
    /// Data frames that were sent and not acknowledged in time.
    pub unacknowledged: u64,
    /// Data frames that were sent again.
    pub retries: u64,
    /// Assessments that found the channel busy.
    pub busy: u64,
    /// Accesses that were given up: CHANNEL_ACCESS_FAILURE.
    pub access_failures: u64,
    /// Frames to this node that were destroyed by others, or that came while it was sending: collisions.
    pub collisions: u64,
    /// Frames to this node that bit errors have damaged.
    pub damaged: u64,
    /// Data frames that came twice.
    pub duplicates: u64,
    /// Frames that were given up after all retransmissions, or because the channel stayed busy.
    pub dropped: u64,
    /// Frames for which the queue had no room.
    pub overflowed: u64,
    /// Octets that were sent, on the air.
    pub octets: u64,
    /// Nanoseconds of the radio.
    pub usage: Usage,
}

impl Counters {
    /// What has happened since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let usage = Usage {
            transmit: self.usage.transmit - earlier.usage.transmit,
            receive: self.usage.receive - earlier.usage.receive,
            overhear: self.usage.overhear - earlier.usage.overhear,
            elapsed: self.usage.elapsed.saturating_sub(earlier.usage.elapsed),
            instructions: 0,
        };
        Self {
            sent: self.sent - earlier.sent,
            acks: self.acks - earlier.acks,
            unacknowledged: self.unacknowledged - earlier.unacknowledged,
            retries: self.retries - earlier.retries,
            busy: self.busy - earlier.busy,
            access_failures: self.access_failures - earlier.access_failures,
            collisions: self.collisions - earlier.collisions,
            damaged: self.damaged - earlier.damaged,
            duplicates: self.duplicates - earlier.duplicates,
            dropped: self.dropped - earlier.dropped,
            overflowed: self.overflowed - earlier.overflowed,
            octets: self.octets - earlier.octets,
            usage,
        }
    }
}

impl AddAssign<&Counters> for Counters {
    fn add_assign(&mut self, other: &Self) {
        self.sent += other.sent;
        self.acks += other.acks;
        self.unacknowledged += other.unacknowledged;
        self.retries += other.retries;
        self.busy += other.busy;
        self.access_failures += other.access_failures;
        self.collisions += other.collisions;
        self.damaged += other.damaged;
        self.duplicates += other.duplicates;
        self.dropped += other.dropped;
        self.overflowed += other.overflowed;
        self.octets += other.octets;
        self.usage.transmit += other.usage.transmit;
        self.usage.receive += other.usage.receive;
        self.usage.overhear += other.usage.overhear;
        self.usage.elapsed += other.usage.elapsed;
    }
}

/// What all nodes together have spent, three ways. **They may not be mixed.**
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Sending, and receiving what was for them.
    pub airtime: Energy,
    /// With what they overheard.
    pub with_overhearing: Energy,
    /// With waiting, by a receiver that never sleeps.
    pub with_idle: Energy,
}

impl Total {
    /// Of these nodes, each of which has existed for as long as its usage says.
    pub fn of<'c>(nodes: impl IntoIterator<Item = &'c Counters>) -> Self {
        let mut all = Usage::default();
        let mut idle = 0;
        for node in nodes {
            all.transmit += node.usage.transmit;
            all.receive += node.usage.receive;
            all.overhear += node.usage.overhear;
            idle += node.usage.rest();
        }
        all.elapsed = all.transmit + all.receive + all.overhear + idle;
        let spent = RADIO.spends(&all, &CORTEX_M3, 1_000);
        Self {
            airtime: spent.airtime(),
            with_overhearing: spent.with_overhearing(),
            with_idle: spent.with_idle(),
        }
    }
}
