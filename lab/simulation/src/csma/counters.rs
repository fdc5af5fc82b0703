//! Counters of a node.

use core::ops::AddAssign;

use thinair_link::energy::{CC2420, CORTEX_M3, Energy, Power, Radio, Usage};

/// Radio of Ayadi and Awang (2010), table I: 50.2 mW to send, 59.1 mW to receive, and also to wait, for which they give
/// no value.
pub(super) const RADIO: Radio = Radio {
    transmit: Power::from_microwatts(50_200),
    receive: Power::from_microwatts(59_100),
    idle: Power::from_microwatts(59_100),
    ..CC2420
};

/// Events at a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Data frames sent, including retransmissions.
    pub sent: u64,
    /// Acknowledgments sent.
    pub acks: u64,
    /// Data frames sent and not acknowledged in time.
    pub unacknowledged: u64,
    /// Data frames retransmitted.
    pub retries: u64,
    /// Assessments that found the channel busy.
    pub busy: u64,
    /// Channel accesses that failed: CHANNEL_ACCESS_FAILURE.
    pub access_failures: u64,
    /// Frames to this node that collided, or that arrived while it was sending.
    pub collisions: u64,
    /// Frames to this node damaged by bit errors.
    pub damaged: u64,
    /// Duplicate data frames.
    pub duplicates: u64,
    /// Frames dropped after all retransmissions, or because the channel stayed busy.
    pub dropped: u64,
    /// Frames dropped because the queue was full.
    pub overflowed: u64,
    /// Octets sent, on the air.
    pub octets: u64,
    /// Frames sent for the first time; 0 where frames are only counted.
    pub begun: u64,
    /// Nanoseconds that these have waited: in the queue, and for the channel.
    pub waited: u64,
    /// Packets and fragments that were rejected: headers that cannot be parsed or compressed, missing contexts,
    /// reassemblies that were replaced. 0 where frames are only counted.
    pub refused: u64,
    /// Activity of the radio, in nanoseconds.
    pub usage: Usage,
}

/// [`NodeCounters`] in half the memory: networks of many nodes consist mostly of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CompactCounters {
    pub(super) sent: u32,
    pub(super) acks: u32,
    pub(super) unacknowledged: u32,
    pub(super) retries: u32,
    pub(super) busy: u32,
    pub(super) access_failures: u32,
    pub(super) collisions: u32,
    pub(super) damaged: u32,
    pub(super) duplicates: u32,
    pub(super) dropped: u32,
    pub(super) overflowed: u32,
    pub(super) octets: u64,
    pub(super) transmit: u64,
    pub(super) receive: u64,
    pub(super) overhear: u64,
}

impl CompactCounters {
    /// Counters after `elapsed` nanoseconds.
    pub(super) fn after(&self, elapsed: u64) -> NodeCounters {
        let Self { transmit, receive, overhear, .. } = *self;
        NodeCounters {
            sent: self.sent.into(),
            acks: self.acks.into(),
            unacknowledged: self.unacknowledged.into(),
            retries: self.retries.into(),
            busy: self.busy.into(),
            access_failures: self.access_failures.into(),
            collisions: self.collisions.into(),
            damaged: self.damaged.into(),
            duplicates: self.duplicates.into(),
            dropped: self.dropped.into(),
            overflowed: self.overflowed.into(),
            octets: self.octets,
            begun: 0,
            waited: 0,
            refused: 0,
            usage: Usage { transmit, receive, overhear, elapsed, instructions: 0 },
        }
    }
}

impl AddAssign<&Self> for NodeCounters {
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
        self.begun += other.begun;
        self.waited += other.waited;
        self.refused += other.refused;
        self.usage.transmit += other.usage.transmit;
        self.usage.receive += other.usage.receive;
        self.usage.overhear += other.usage.overhear;
        self.usage.elapsed += other.usage.elapsed;
    }
}

/// Energy of all nodes together, by three methods. **Do not mix them.**
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Sending, and receiving frames for the node itself.
    pub airtime: Energy,
    /// With overhearing.
    pub with_overhearing: Energy,
    /// With idle listening, by a receiver that never sleeps.
    pub with_idle: Energy,
}

impl Total {
    /// Sums over nodes, each of which has existed for as long as its usage states.
    pub fn of<'c>(nodes: impl IntoIterator<Item = &'c NodeCounters>) -> Self {
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
