//! Datagrams that the carrier may still refuse: they count as sent when they are queued, and no longer when it does.

use std::collections::VecDeque;

use crate::status::TrafficCounters;

/// Maximum number of datagrams. The queue of a carrier is shorter, since the interface is not read while it is full.
const MOST: usize = 1_024;

/// A datagram on its way to the carrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    /// Number of its pipeline.
    pub(super) pipeline: usize,
    /// Octets of the carrier, with its headers.
    pub(super) octets: usize,
    /// Packets that end in it.
    pub(super) packets: TrafficCounters,
}

/// The last datagrams, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// Number of the first one.
    first: u64,
    last: VecDeque<Departure>,
}

impl Departures {
    /// Adds a datagram. Returns its number.
    pub(super) fn push(&mut self, pipeline: usize, octets: usize) -> u64 {
        if self.last.len() == MOST {
            self.last.pop_front();
            self.first += 1;
        }
        self.last.push_back(Departure { pipeline, octets, packets: TrafficCounters::default() });
        self.first + self.last.len() as u64 - 1
    }

    fn place(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok())
    }

    /// Adds packets that end in a datagram.
    pub(super) fn add(&mut self, number: u64, packets: &TrafficCounters) {
        if let Some(departure) = self.place(number).and_then(|place| self.last.get_mut(place)) {
            departure.packets.add(packets);
        }
    }

    /// Returns a datagram that was refused. `None`: it is too old.
    pub(super) fn refused(&self, number: u64) -> Option<Departure> {
        self.place(number).and_then(|place| self.last.get(place)).copied()
    }
}
