//! A stream of constant rate: a TS Packet per slot, a null packet if nothing else is pending.

use std::collections::VecDeque;
use std::time::Duration;

use thinair_ule::ts::NULL_PACKET;
use thinair_ule::{Encapsulator, SlotClock, TsPacket};
use thinair_wire::time::Instant;

use crate::packaging::PackagingError;

/// Age from which on slots are skipped: the machine was suspended, or the clock jumped.
const LATEST: Duration = Duration::from_secs(1);
/// Number of bodies of pending TS Packets from which on units must wait.
const BODIES: usize = 2;
/// Maximum number of TS Packets of a unit.
const OF_A_UNIT: usize = super::LARGEST_UNIT / 183 + 2;

/// Pending TS Packets and their slots.
#[derive(Debug)]
pub(super) struct Constant {
    pace: SlotClock,
    bitrate: u64,
    per_body: usize,
    /// Pending TS Packets.
    waiting: VecDeque<PendingPacket>,
    /// Number of units that end in the incomplete TS Packet of the encapsulator.
    ends: u32,
    /// True if the next units belong to the channel with large CIDs.
    large: bool,
    pub(super) nulls: u64,
}

/// A pending TS Packet.
#[derive(Debug)]
pub(super) struct PendingPacket {
    /// True if its units belong to the channel with large CIDs.
    pub(super) large: bool,
    /// Number of units that end in it.
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

    /// True if the queue would delay a unit too long.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= BODIES * self.per_body
    }

    /// Adds a complete TS Packet. Unless the queue is full, it has room for those of any unit.
    pub(super) fn push(&mut self, packet: &TsPacket) {
        let units = std::mem::take(&mut self.ends);
        self.waiting.push_back(PendingPacket { large: self.large, units, packet: *packet });
    }

    /// Records the end of a pushed unit: in the incomplete TS Packet, or in the last complete one.
    pub(super) fn unit_ends(&mut self, encapsulator: &Encapsulator) {
        match self.waiting.back_mut().filter(|_| encapsulator.poll_at().is_none()) {
            Some(last) => last.units += 1,
            None => self.ends += 1,
        }
    }

    /// Sets the channel of the next units, which share no TS Packet with those before if it changes.
    pub(super) fn set_large(&mut self, large: bool, encapsulator: &mut Encapsulator) {
        if large != self.large {
            encapsulator.flush(&mut |packet| self.push(packet));
            self.large = large;
        }
    }

    /// Start time of the last slot of a body that has `has` TS Packets already.
    pub(super) fn poll_at(&self, has: usize) -> Instant {
        self.pace.at(self.per_body.saturating_sub(has + 1) as u64)
    }

    /// Goes on to the next slot. False if it has not begun.
    pub(super) fn take_slot(&mut self, now: Instant) -> bool {
        if self.pace.next_at() + LATEST < now {
            self.pace = SlotClock::new(now, self.bitrate);
        }
        self.pace.advance(now)
    }

    /// Returns the TS Packet of the slot. An incomplete TS Packet is sent, too: the slot would be empty
    /// otherwise.
    pub(super) fn next(&mut self, encapsulator: &mut Encapsulator) -> PendingPacket {
        if self.waiting.is_empty() {
            encapsulator.flush(&mut |packet| self.push(packet));
        }
        self.waiting.pop_front().unwrap_or_else(|| {
            self.nulls += 1;
            PendingPacket { large: self.large, units: 0, packet: NULL_PACKET }
        })
    }
}
