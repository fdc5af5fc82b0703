//! What one node knows: its queue, how far it is with the frame at the front, and what it hears.

use std::collections::VecDeque;

use thinair_link::Random;
use thinair_wire::time::Instant;

use super::counters::Tally;

/// A frame that waits, or is on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// What it is of, and which part of it: whoever has enqueued it knows.
    pub(super) load: u32,
    pub(super) part: u16,
    /// The addressee.
    pub(super) to: u16,
}

/// How far a node is with the frame at the front of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is none.
    Idle,
    /// Back-off and assessment.
    Access,
    /// The channel was clear, and the radio turns around.
    Turnaround,
    /// The frame is on the air.
    Sending,
    /// Its acknowledgment is waited for.
    Waiting,
}

/// What the radio hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reception {
    /// Nothing that could be understood.
    Nothing,
    /// A frame of that node, whole so far.
    Whole(u16),
    /// A frame of that node, over which another one has come.
    Destroyed(u16),
}

/// Another node, what of this one's transmissions gets there, and what has come from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Near {
    pub(super) node: u16,
    reach: u8,
    /// The DSN of the frame that was received last, if there was one.
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

/// A node and its radio.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) queue: VecDeque<Frame>,
    pub(super) phase: Phase,
    /// NB and BE. IEEE 802.15.4-2006, section 7.5.1.4.
    pub(super) nb: u8,
    pub(super) be: u8,
    pub(super) retries: u8,
    /// macDSN.
    pub(super) dsn: u8,
    /// Who gets an acknowledgment next, or now.
    pub(super) acknowledges: Option<u16>,
    pub(super) is_transmitting: bool,
    pub(super) reception: Reception,
    /// Transmissions that it senses, and that disturb it.
    pub(super) sensed: u16,
    pub(super) disturbing: u16,
    /// Since when it senses none.
    pub(super) clear_since: Instant,
    /// Until when the radio has been counted as receiving.
    pub(super) counted_until: Instant,
    pub(super) near: Box<[Near]>,
    pub(super) random: Random,
    pub(super) tally: Tally,
}

impl Node {
    pub(super) fn new(near: Box<[Near]>, random: Random) -> Self {
        Self {
            queue: VecDeque::new(),
            phase: Phase::Idle,
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
            tally: Tally::default(),
        }
    }

    /// Notes the DSN of a frame; whether it is another one than that of the frame before.
    pub(super) fn is_new(&mut self, from: u16, dsn: u8) -> bool {
        let Some(near) = self.near.iter_mut().find(|near| near.node == from) else { return false };
        let is_new = near.reach & Near::HAS_SENT == 0 || near.dsn != dsn;
        (near.reach, near.dsn) = (near.reach | Near::HAS_SENT, dsn);
        is_new
    }
}
