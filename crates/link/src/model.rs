//! What a constrained link is: the numbers of its two directions.

use core::time::Duration;

use crate::airtime::Airtime;
use crate::bit_errors::BitErrorModel;
use crate::framing::Framing;
use crate::integrity::Integrity;
use crate::jitter::Jitter;
use crate::loss::LossModel;

/// A link between two sides, A and B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkModel<'a> {
    /// From A to B; the uplink of links that have one.
    pub a_to_b: Direction<'a>,
    /// From B to A.
    pub b_to_a: Direction<'a>,
    /// Whether both may be on the air at the same time.
    pub duplex: Duplex,
}

impl<'a> LinkModel<'a> {
    /// A link that is the same in both directions.
    pub const fn symmetric(direction: Direction<'a>, duplex: Duplex) -> Self {
        Self { a_to_b: direction, b_to_a: direction, duplex }
    }
}

/// Whether the directions share a medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplex {
    /// Each has its own.
    #[default]
    Full,
    /// **Only one side is on the air at a time.** The side with a packet goes first when it is free, and if both have
    /// one, the side that did not go last: the sides take turns, and none collides.
    Half {
        /// How long the medium stays free when the other side begins.
        turnaround: Duration,
    },
}

/// One direction of a link. By default packets arrive when they are offered, and the queue holds 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction<'a> {
    /// How long frames are on the air.
    pub airtime: Airtime,
    /// For every frame on top of that: preamble, gap, access to the medium.
    pub per_frame: Duration,
    /// From the end of a packet to its arrival.
    pub delay: Duration,
    /// Delay on top, different for each packet.
    pub jitter: Jitter,
    /// Whether packets arrive in the order in which they were sent: one that jitter would let overtake another waits
    /// for it.
    pub keeps_order: bool,
    /// Packets that wait for the air.
    pub queue: Queue,
    /// Frames.
    pub framing: Framing,
    /// What the first packet waits after a pause.
    pub idle_wake: Option<IdleWake>,
    /// The share of time in which this side may be on the air.
    pub duty_cycle: Option<DutyCycle>,
    /// Which packets are lost.
    pub loss: LossModel<'a>,
    /// What is lost at a time.
    pub loss_unit: LossUnit,
    /// Which bits are damaged, those of frame and fragment headers included.
    pub bit_errors: BitErrorModel,
    /// What the receiver does with damage; frame by frame. To drop what is damaged without fail:
    /// [`Integrity::Modelled`] with a width of 64. A frame of which the headers are damaged is dropped if there is
    /// any check, and goes unharmed if there is none.
    pub integrity: Integrity,
}

impl Default for Direction<'_> {
    fn default() -> Self {
        Self::IDEAL
    }
}

impl Direction<'_> {
    /// The default, for constants.
    pub const IDEAL: Self = Self {
        airtime: Airtime::None,
        per_frame: Duration::ZERO,
        delay: Duration::ZERO,
        jitter: Jitter {
            deviation: Duration::ZERO,
            spikes: crate::probability::Probability::NEVER,
            spike: Duration::ZERO,
        },
        keeps_order: true,
        queue: Queue::packets(1_000),
        framing: Framing { overhead: 0, mtu: 0, fragmentation: crate::framing::Fragmentation::None },
        idle_wake: None,
        duty_cycle: None,
        loss: LossModel::None,
        loss_unit: LossUnit::Frame,
        bit_errors: BitErrorModel::None,
        integrity: Integrity::None,
    };

    /// Nanoseconds on the air of a packet of `len` octets, with the frames it goes in, and without what every frame
    /// takes on top.
    pub fn on_air(&self, len: usize) -> u64 {
        let mut carried = 0;
        let frames =
            self.framing.frames(len).map(|frame| self.airtime.of(frame.octets() as u64, &mut carried));
        frames.fold(0, u64::saturating_add)
    }
}

/// The queue of a direction. The packet on the air is not in it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Packets that may wait. 0 is taken for 1: one that goes on the air at once passes through the queue, too.
    pub packets: u32,
    /// Octets that may wait, without what frames add.
    pub octets: u64,
    /// Who is dropped.
    pub discipline: Discipline,
    /// Packets that the link holds in this direction, at most: that wait, are on the air or on the way, or have
    /// arrived and were not polled. This bounds the memory, and is refused with [`NoRoom`](crate::DropReason::NoRoom).
    pub held: u32,
}

impl Queue {
    /// Drop-tail, `packets` that wait, and memory for 65,536 more.
    pub const fn packets(packets: u32) -> Self {
        Self {
            packets,
            octets: u64::MAX,
            discipline: Discipline::DropTail,
            held: packets.saturating_add(65_536),
        }
    }
}

/// Who is dropped from a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// The packet that finds the queue full.
    #[default]
    DropTail,
    /// That one, and those that CoDel drops where they leave the queue.
    CoDel(CoDelConfig),
}

/// The parameters of CoDel. RFC 8289, section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// TARGET: how long packets may wait in a standing queue. The RFC has 5 ms, and more where a packet takes longer
    /// than that on the air (section 4.4).
    pub target: Duration,
    /// INTERVAL: a round trip, at worst. The RFC has 100 ms.
    pub interval: Duration,
    /// Octets: with no more in the queue than this, nothing is dropped. The RFC has the MTU.
    pub max_packet: u32,
}

impl CoDelConfig {
    /// As in RFC 8289: 5 ms, 100 ms, and `mtu`.
    pub const fn new(mtu: u32) -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), max_packet: mtu }
    }
}

/// A radio that goes to sleep. The first packet of all finds it asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleWake {
    /// Nothing was on the air in this direction for longer than this: it sleeps.
    pub after: Duration,
    /// How long it takes to wake; packets wait for it in the queue's order.
    pub wake: Duration,
}

/// The share of time in which a side may be on the air, in thousandths: 1 to 1,000.
///
/// **After a packet the side is silent for its airtime times (1 / share - 1)**, as LoRaWAN devices are; so the share
/// holds over every packet and the pause behind it, and not only over an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DutyCycle(u16);

impl DutyCycle {
    /// `None` if it is not from 1 to 1,000.
    pub const fn from_per_mille(share: u16) -> Option<Self> {
        if share >= 1 && share <= 1_000 { Some(Self(share)) } else { None }
    }

    /// In thousandths.
    pub const fn per_mille(self) -> u16 {
        self.0
    }

    /// The pause after `airtime`, both in nanoseconds.
    pub const fn pause(self, airtime: u64) -> u64 {
        let pause = airtime as u128 * (1_000 - self.0) as u128 / self.0 as u128;
        if pause > u64::MAX as u128 { u64::MAX } else { pause as u64 }
    }
}

/// What a loss model takes at a time. If any part of a packet is lost, the packet is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossUnit {
    /// A frame; a packet that is not fragmented is one.
    #[default]
    Frame,
    /// The packet, whatever frames it goes in.
    Packet,
    /// Every so many octets of a packet that were begun, though they are no frames of this link: those of a link
    /// further on. 0 is taken for 1.
    Fragment(u16),
}
