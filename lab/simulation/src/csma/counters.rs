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
    /// Frames that were sent for the first time; 0 where frames are only counted.
    pub begun: u64,
    /// Nanoseconds that these have waited for that: behind others, and for the channel.
    pub waited: u64,
    /// Packets and fragments that could not be used: headers that cannot be read or compressed, contexts that are not
    /// there, packets that were given up for others. 0 where frames are only counted.
    pub refused: u64,
    /// Nanoseconds of the radio.
    pub usage: Usage,
}

/// [`Counters`] in half the room: networks of many nodes are mostly that.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
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

impl Tally {
    /// After so many nanoseconds.
    pub(super) fn told(&self, elapsed: u64) -> Counters {
        let Self { transmit, receive, overhear, .. } = *self;
        Counters {
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

impl AddAssign<&Self> for Counters {
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
