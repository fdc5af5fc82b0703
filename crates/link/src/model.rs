//! Model of a constrained link: the parameters of its two directions.

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
    /// Direction from A to B; the uplink of links that have one.
    pub a_to_b: Direction<'a>,
    /// Direction from B to A.
    pub b_to_a: Direction<'a>,
    /// Sharing of the medium.
    pub duplex: Duplex,
}

impl<'a> LinkModel<'a> {
    /// Creates a link with two equal directions.
    pub const fn symmetric(direction: Direction<'a>, duplex: Duplex) -> Self {
        Self { a_to_b: direction, b_to_a: direction, duplex }
    }
}

/// Sharing of the medium by the two directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplex {
    /// Each has its own medium.
    #[default]
    Full,
    /// **Only one side is on the air at a time.** The side with a packet sends first when the medium is free, and if both have
    /// one, the side that did not send last: the sides alternate, and there are no collisions.
    Half {
        /// Time for which the medium stays free before the other side begins.
        turnaround: Duration,
    },
}

/// One direction of a link. Default: packets arrive when they are offered, and the queue holds 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction<'a> {
    /// Airtime of frames.
    pub airtime: Airtime,
    /// Additional time of every frame: preamble, gap, access to the medium.
    pub per_frame: Duration,
    /// Time from the end of a transmission to the arrival.
    pub delay: Duration,
    /// Additional random delay of each packet.
    pub jitter: Jitter,
    /// True if packets arrive in the order of sending: one that jitter would let overtake another waits for it.
    pub keeps_order: bool,
    /// Queue of packets that wait for transmission.
    pub queue: Queue,
    /// Mapping of packets to frames.
    pub framing: Framing,
    /// Wait of the first packet after a pause.
    pub idle_wake: Option<IdleWake>,
    /// Share of time in which this side may be on the air.
    pub duty_cycle: Option<DutyCycle>,
    /// Loss of packets.
    pub loss: LossModel<'a>,
    /// Unit that the loss model applies to.
    pub loss_unit: LossUnit,
    /// Bit errors, including those of frame and fragment headers.
    pub bit_errors: BitErrorModel,
    /// Treatment of damage by the receiver, for each frame. To drop all damaged frames: [`Integrity::Modelled`] with a
    /// width of 64. A frame with damaged headers is dropped if there is any check, and is delivered unharmed if there
    /// is none.
    pub integrity: Integrity,
}

impl Default for Direction<'_> {
    fn default() -> Self {
        Self::IDEAL
    }
}

impl Direction<'_> {
    /// Default, for constants.
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

    /// Returns the airtime of a packet of `len` octets in its frames, in nanoseconds, without
    /// [`per_frame`](Self::per_frame).
    pub fn on_air(&self, len: usize) -> u64 {
        let mut carried = 0;
        let frames =
            self.framing.frames(len).map(|frame| self.airtime.of(frame.octets() as u64, &mut carried));
        frames.fold(0, u64::saturating_add)
    }
}

/// Queue of a direction. It does not include the packet on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Largest number of packets. 0 means 1: a packet that is sent at once passes through the queue, too.
    pub packets: u32,
    /// Largest number of octets, without those that frames add.
    pub octets: u64,
    /// Queueing discipline.
    pub discipline: Discipline,
    /// Largest number of packets that the link holds in this direction: that wait, are under way, or have arrived and
    /// were not polled. It limits the memory; further ones are rejected with [`NoRoom`](crate::DropReason::NoRoom).
    pub held: u32,
}

impl Queue {
    /// Creates a drop-tail queue for `packets` packets, and memory for 65,536 more.
    pub const fn packets(packets: u32) -> Self {
        Self {
            packets,
            octets: u64::MAX,
            discipline: Discipline::DropTail,
            held: packets.saturating_add(65_536),
        }
    }
}

/// Queueing discipline: choice of the packets to drop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// Drops the packet that finds the queue full.
    #[default]
    DropTail,
    /// Drops that packet, and those that CoDel selects when they leave the queue.
    CoDel(CoDelConfig),
}

/// Parameters of CoDel. RFC 8289, section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// TARGET: acceptable wait in a standing queue. The RFC has 5 ms, and more where a packet takes longer than that
    /// on the air (section 4.4).
    pub target: Duration,
    /// INTERVAL: worst-case round-trip time. The RFC has 100 ms.
    pub interval: Duration,
    /// Queue length in octets up to which nothing is dropped. The RFC has the MTU.
    pub max_packet: u32,
}

impl CoDelConfig {
    /// Creates the parameters of RFC 8289: 5 ms, 100 ms, and `mtu`.
    pub const fn new(mtu: u32) -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), max_packet: mtu }
    }
}

/// A radio that goes to sleep. It is asleep before the first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleWake {
    /// Longest pause in this direction without sleep.
    pub after: Duration,
    /// Time to wake up, for which packets wait in the order of the queue.
    pub wake: Duration,
}

/// Share of time in which a side may be on the air, in thousandths: 1 to 1,000.
///
/// **After a packet the side is silent for its airtime times (1 / share - 1)**, as LoRaWAN devices are; so the share
/// holds over every packet with its pause, and not only over an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DutyCycle(u16);

impl DutyCycle {
    /// Creates a duty cycle; `None` if `share` is not from 1 to 1,000.
    pub const fn from_per_mille(share: u16) -> Option<Self> {
        if share >= 1 && share <= 1_000 { Some(Self(share)) } else { None }
    }

    /// Returns the share in thousandths.
    pub const fn per_mille(self) -> u16 {
        self.0
    }

    /// Returns the pause after `airtime`, both in nanoseconds.
    pub const fn pause(self, airtime: u64) -> u64 {
        let pause = airtime as u128 * (1_000 - self.0) as u128 / self.0 as u128;
        if pause > u64::MAX as u128 { u64::MAX } else { pause as u64 }
    }
}

/// Unit of loss. A packet is lost if any unit of it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossUnit {
    /// A frame; an unfragmented packet is one.
    #[default]
    Frame,
    /// The packet, in any number of frames.
    Packet,
    /// A fragment of up to this many octets, independent of the frames of this link: one of a link further on the
    /// path. 0 means 1.
    Fragment(u16),
}
