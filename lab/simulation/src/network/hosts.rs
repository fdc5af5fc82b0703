//! Hosts by their addresses, and what moves time on around them.

use std::collections::BTreeMap;

use thinair_link::Side;
use thinair_wire::time::Instant;

use super::{Address, Host};
use thinair_emulator::DirectionTotals;

/// Hosts in the order in which they were added.
#[derive(Debug)]
pub(super) struct Hosts<H> {
    placed: Vec<Placed<H>>,
    by_address: BTreeMap<Address, usize>,
}

#[derive(Debug)]
pub(super) struct Placed<H> {
    pub(super) host: H,
    pub(super) address: Address,
    /// When it was to be called next.
    pub(super) at: Option<Instant>,
}

impl<H: Host> Hosts<H> {
    pub(super) const fn new() -> Self {
        Self { placed: Vec::new(), by_address: BTreeMap::new() }
    }

    /// The number of the new one.
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

    /// Whom a packet is for that has come from `from`: hosts of one side do not hear each other.
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

/// Hosts with a link between them and a time, virtual or real.
pub(super) trait World<H: Host> {
    /// Why time cannot go on.
    type Error;

    /// One more host, which is called first when it wants to be.
    fn add(&mut self, address: Address, host: H) -> Result<(), Self::Error>;

    /// Lets happen what happens before `end`, or until `done` says so, which is asked of the host, and its number, after
    /// every packet that arrives and every timer.
    fn run_until(&mut self, end: Instant, done: &mut dyn FnMut(usize, &H) -> bool)
    -> Result<(), Self::Error>;

    /// Asks every host again what it wants.
    fn wake(&mut self) -> Result<(), Self::Error>;

    /// The hosts, in the order in which they were added.
    fn hosts(&self) -> &Hosts<H>;

    /// The hosts, to be changed between two runs; [`Self::wake`] is called then.
    fn hosts_mut(&mut self) -> &mut Hosts<H>;

    /// What the link has carried from that side.
    fn totals(&self, from: Side) -> DirectionTotals;

    /// Things that have happened.
    fn events(&self) -> u64;

    /// The time.
    fn now(&self) -> Instant;
}
