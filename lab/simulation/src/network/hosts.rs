//! Hosts by their addresses, and the networks that run them.

use std::collections::BTreeMap;

use thinair_link::Side;
use thinair_wire::time::Instant;

use super::{Address, NetworkHost};
use thinair_emulator::DirectionTotals;

/// Hosts in the order in which they were added.
#[derive(Debug)]
pub(super) struct HostTable<H> {
    placed: Vec<Placed<H>>,
    by_address: BTreeMap<Address, usize>,
}

#[derive(Debug)]
pub(super) struct Placed<H> {
    pub(super) host: H,
    pub(super) address: Address,
    /// Time of its next scheduled call.
    pub(super) at: Option<Instant>,
}

impl<H: NetworkHost> HostTable<H> {
    pub(super) const fn new() -> Self {
        Self { placed: Vec::new(), by_address: BTreeMap::new() }
    }

    /// Adds a host. Returns its number.
    pub(super) fn add(&mut self, address: Address, host: H) -> usize {
        let number = self.placed.len();
        self.by_address.insert(address, number);
        self.placed.push(Placed { host, address, at: None });
        number
    }

    pub(super) fn len(&self) -> usize {
        self.placed.len()
    }

    pub(super) fn get(&self, number: usize) -> Option<&H> {
        self.placed.get(number).map(|placed| &placed.host)
    }

    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Placed<H>> {
        self.placed.get_mut(number)
    }

    /// Host for a packet from side `from`: hosts of one side do not receive each other.
    pub(super) fn destination(&self, from: Side, packet: &[u8]) -> Option<usize> {
        let to = Address::destination(packet).filter(|to| to.side() != from)?;
        self.by_address.get(&to).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &H> {
        self.placed.iter().map(|placed| &placed.host)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut H> {
        self.placed.iter_mut().map(|placed| &mut placed.host)
    }
}

/// Hosts with a link between them and a clock, virtual or real.
pub(super) trait HostWorld<H: NetworkHost> {
    /// Reason that time cannot continue.
    type Error;

    /// Adds a host, which is first called at its own timeout.
    fn add(&mut self, address: Address, host: H) -> Result<(), Self::Error>;

    /// Processes events before `end`, or until `done` returns true. It is called with a host and its number after every
    /// packet that arrives and every timer.
    fn run_until(&mut self, end: Instant, done: &mut dyn FnMut(usize, &H) -> bool)
    -> Result<(), Self::Error>;

    /// Schedules every host again.
    fn wake(&mut self) -> Result<(), Self::Error>;

    /// Hosts, in the order in which they were added.
    fn hosts(&self) -> &HostTable<H>;

    /// Mutable hosts, between two runs; [`Self::wake`] is called afterwards.
    fn hosts_mut(&mut self) -> &mut HostTable<H>;

    /// Totals that the link has carried from that side.
    fn totals(&self, from: Side) -> DirectionTotals;

    /// Number of events.
    fn events(&self) -> u64;

    /// Current time.
    fn now(&self) -> Instant;
}
