//! State of one node: queue, progress of the first frame, and reception.

use std::collections::VecDeque;

use thinair_link::Random;
use thinair_wire::time::Instant;

use super::counters::CompactCounters;

/// Frame in a queue, or on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueuedFrame {
    /// Identifier of its contents, chosen by the caller that has enqueued it.
    pub(super) load: u32,
    pub(super) part: u16,
    /// Addressee.
    pub(super) to: u16,
}

/// Progress of a node with the first frame of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramePhase {
    /// No frame.
    Idle,
    /// Back-off and assessment.
    Access,
    /// The channel was clear, and the radio turns around.
    Turnaround,
    /// The frame is on the air.
    Sending,
    /// The node waits for the acknowledgment.
    Waiting,
}

/// Reception of the radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reception {
    /// No decodable transmission.
    Nothing,
    /// Transmission of this node, undisturbed so far.
    Whole(u16),
    /// Transmission of this node, destroyed by another one.
    Destroyed(u16),
}

/// Another node: reach of this node's transmissions, and its latest frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Near {
    pub(super) node: u16,
    reach: u8,
    /// DSN of the latest received frame, if there was one.
    dsn: u8,
}

impl Near {
    const UNDERSTANDS: u8 = 1;
    const IS_DISTURBED: u8 = 2;
    const SENSES: u8 = 4;
    const HAS_SENT: u8 = 8;

    pub(super) const fn new(node: u16, understands: bool, is_disturbed: bool, senses: bool) -> Self {
        let reach = if understands { Self::UNDERSTANDS } else { 0 }
            | if is_disturbed { Self::IS_DISTURBED } else { 0 }
            | if senses { Self::SENSES } else { 0 };
        Self { node, reach, dsn: 0 }
    }

    pub(super) const fn understands(self) -> bool {
        self.reach & Self::UNDERSTANDS != 0
    }

    pub(super) const fn is_disturbed(self) -> bool {
        self.reach & Self::IS_DISTURBED != 0
    }

    pub(super) const fn senses(self) -> bool {
        self.reach & Self::SENSES != 0
    }
}

/// Node and its radio.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) queue: VecDeque<QueuedFrame>,
    pub(super) phase: FramePhase,
    /// NB and BE. IEEE 802.15.4-2006, section 7.5.1.4.
    pub(super) nb: u8,
    pub(super) be: u8,
    pub(super) retries: u8,
    /// macDSN.
    pub(super) dsn: u8,
    /// Node to which an acknowledgment is sent next, or now.
    pub(super) acknowledges: Option<u16>,
    pub(super) is_transmitting: bool,
    pub(super) reception: Reception,
    /// Number of transmissions that it senses, and that disturb it.
    pub(super) sensed: u16,
    pub(super) disturbing: u16,
    /// Time since which it senses none.
    pub(super) clear_since: Instant,
    /// Time until which the radio has been counted as receiving.
    pub(super) counted_until: Instant,
    pub(super) near: Box<[Near]>,
    pub(super) random: Random,
    pub(super) tally: CompactCounters,
}

impl Node {
    pub(super) fn new(near: Box<[Near]>, random: Random) -> Self {
        Self {
            queue: VecDeque::new(),
            phase: FramePhase::Idle,
            nb: 0,
            be: 0,
            retries: 0,
            // In the standard it starts anywhere.
            dsn: 0,
            acknowledges: None,
            is_transmitting: false,
            reception: Reception::Nothing,
            sensed: 0,
            disturbing: 0,
            clear_since: Instant::ZERO,
            counted_until: Instant::ZERO,
            near,
            random,
            tally: CompactCounters::default(),
        }
    }

    /// Stores the DSN of a frame. Returns true if it differs from that of the previous frame.
    pub(super) fn store_dsn(&mut self, from: u16, dsn: u8) -> bool {
        let Some(near) = self.near.iter_mut().find(|near| near.node == from) else { return false };
        let store_dsn = near.reach & Near::HAS_SENT == 0 || near.dsn != dsn;
        (near.reach, near.dsn) = (near.reach | Near::HAS_SENT, dsn);
        store_dsn
    }
}
