//! A stream of constant rate: a TS Packet for each slot, a null packet if there is nothing else.

use std::collections::VecDeque;
use std::time::Duration;

use thinair_ule::ts::NULL_PACKET;
use thinair_ule::{Encapsulator, SlotClock, TsPacket};
use thinair_wire::time::Instant;

use crate::packaging::PackagingError;

/// Slots that are later than this are left out: the machine was asleep, or the clock jumped.
const LATEST: Duration = Duration::from_secs(1);
/// Bodies of TS Packets that may wait before the next unit has to.
const BODIES: usize = 2;
/// TS Packets of the longest unit, at most.
const OF_A_UNIT: usize = super::LARGEST_UNIT / 183 + 2;

/// TS Packets that wait for their slots, and when those are.
#[derive(Debug)]
pub(super) struct Constant {
    pace: SlotClock,
    bitrate: u64,
    per_body: usize,
    /// TS Packets that wait for their slots.
    waiting: VecDeque<Waiting>,
    /// Units that end in the TS Packet that the encapsulator has begun.
    ends: u32,
    /// Whether the units that come next do.
    large: bool,
    pub(super) nulls: u64,
}

/// A TS Packet that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    /// True if its units belong to the channel with large CIDs.
    pub(super) large: bool,
    /// Units that end in it.
    pub(super) units: u32,
    pub(super) packet: TsPacket,
}

impl Constant {
    pub(super) fn new(now: Instant, bitrate: u64, per_body: usize) -> Result<Self, PackagingError> {
        if bitrate == 0 {
            return Err(PackagingError::Bitrate(bitrate));
        }
        let waiting = VecDeque::with_capacity(BODIES * per_body + OF_A_UNIT);
        Ok(Self {
            pace: SlotClock::new(now, bitrate),
            bitrate,
            per_body,
            waiting,
            ends: 0,
            large: false,
            nulls: 0,
        })
    }

    /// Whether so much waits that a unit would wait longer than it has to.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= BODIES * self.per_body
    }

    /// A TS Packet that is complete. While it is not full, there is room for those of any unit.
    pub(super) fn push(&mut self, packet: &TsPacket) {
        let units = std::mem::take(&mut self.ends);
        self.waiting.push_back(Waiting { large: self.large, units, packet: *packet });
    }

    /// A unit was pushed: it ends in the TS Packet that is begun, or in the last one that is complete.
    pub(super) fn unit_ends(&mut self, encapsulator: &Encapsulator) {
        match self.waiting.back_mut().filter(|_| encapsulator.poll_at().is_none()) {
            Some(last) => last.units += 1,
            None => self.ends += 1,
        }
    }

    /// Units that come next belong to that channel, or to the other one: they share no TS Packet with those before.
    pub(super) fn set_large(&mut self, large: bool, encapsulator: &mut Encapsulator) {
        if large != self.large {
            encapsulator.flush(&mut |packet| self.push(packet));
            self.large = large;
        }
    }

    /// When the last slot of a body begins that has so many TS Packets.
    pub(super) fn poll_at(&self, has: usize) -> Instant {
        self.pace.at(self.per_body.saturating_sub(has + 1) as u64)
    }

    /// Goes on to the next slot, if it has begun.
    pub(super) fn has_slot(&mut self, now: Instant) -> bool {
        if self.pace.next_at() + LATEST < now {
            self.pace = SlotClock::new(now, self.bitrate);
        }
        self.pace.advance(now)
    }

    /// TS Packet of the slot. What is begun does not wait for more: the slot would be empty.
    pub(super) fn next(&mut self, encapsulator: &mut Encapsulator) -> Waiting {
        if self.waiting.is_empty() {
            encapsulator.flush(&mut |packet| self.push(packet));
        }
        self.waiting.pop_front().unwrap_or_else(|| {
            self.nulls += 1;
            Waiting { large: self.large, units: 0, packet: NULL_PACKET }
        })
    }
}
