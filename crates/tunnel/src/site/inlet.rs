//! The way in: a unit becomes a packet again, and is delivered if its source may send it.

use thinair_wire::time::Instant;

use super::Shell;
use super::source::Source;
use super::way::Way;
use crate::channel::{AllowedIps, NotReceived};
use crate::status::{Counters, Drop, Failure};
use crate::unit::{SiteId, Unit};

/// The way in, with all that it touches.
pub(super) struct Inlet<'a> {
    pub(super) now: Instant,
    pub(super) sources: &'a mut [Source],
    pub(super) ways: &'a mut [Way],
    /// Whether all sources share one way.
    pub(super) mesh: bool,
    /// Whether units belong to the channel with large CIDs.
    pub(super) large: bool,
    pub(super) allowed: &'a AllowedIps,
    pub(super) counters: &'a mut Counters,
    pub(super) shell: &'a mut dyn Shell,
}

impl Inlet<'_> {
    /// A unit. `sealed`: the number of its source, if a seal tells it; `site`: the number that its packaging tells.
    pub(super) fn take(&mut self, sealed: Option<usize>, site: Option<SiteId>, unit: Unit<'_>) {
        let number = self.whose(sealed, site);
        let Self { sources, ways, mesh, allowed, counters, shell, .. } = self;
        let Some((number, source)) = number.and_then(|number| Some((number, sources.get_mut(number)?)))
        else {
            counters.drops.count(Drop::UnknownSender);
            return;
        };
        let way = if *mesh { 0 } else { number };
        let Some(way) = ways.get_mut(way) else { return };
        let compressed = unit.octets.len();
        let from = source.id.filter(|_| *mesh);
        source.heard_at = Some(self.now);
        let unit = Unit { large: self.large, ..unit };
        let result = way.channel.receive(self.now, from, unit, &mut |packet| {
            if !allowed.allows(number, packet) {
                counters.drops.count(Drop::NotAllowedSource);
            } else if shell.deliver(packet) {
                counters.received.packet(packet.len(), compressed);
                source.counters.received.packet(packet.len(), compressed);
            } else {
                counters.drops.count(Drop::InterfaceRefused);
            }
        });
        match result {
            Ok(()) => {}
            Err(NotReceived::Decompress(error)) => {
                if let Some(failure) = Failure::of(&error) {
                    counters.drops.count(Drop::Decompression);
                    source.counters.failures.count(failure);
                }
            }
            Err(NotReceived::NotForUs) => counters.drops.count(Drop::NotForUs),
            Err(NotReceived::UnknownSite) => counters.drops.count(Drop::UnknownSender),
            Err(NotReceived::Unexpected(_) | NotReceived::Malformed(_)) => {
                counters.drops.count(Drop::Packaging);
            }
        }
    }

    /// Whose a unit is: the seal says so; else its PID, or the place where there is but one.
    fn whose(&self, sealed: Option<usize>, site: Option<SiteId>) -> Option<usize> {
        match (sealed, site) {
            (Some(number), _) => Some(number),
            (None, Some(site)) if self.mesh => self.sources.iter().position(|source| source.id == Some(site)),
            // Peers are counted from 1 by those who give them numbers.
            (None, Some(site)) => Some(usize::from(site.number()) - 1),
            (None, None) => (self.sources.len() == 1).then_some(0),
        }
    }
}
