//! Receiving side: units become packets again, and are delivered if their source may send them.

use thinair_wire::time::Instant;

use super::CommonParts;
use super::pipeline::Pipeline;
use super::source::Source;
use crate::channel::{AllowedIps, LONGEST, NotReceived};
use crate::status::{Drop, Failure};
use crate::unit::{SiteId, Unit};

/// Receiving side of a source.
pub(super) struct Inlet<'a> {
    pub(super) now: Instant,
    /// Number of the source, if a seal identifies it.
    pub(super) number: Option<usize>,
    pub(super) sources: &'a mut [Source],
    pub(super) pipelines: &'a mut [Pipeline],
    /// True if all sources share one pipeline.
    pub(super) mesh: bool,
    /// True if units belong to the channel with large CIDs.
    pub(super) large: bool,
    pub(super) allowed: &'a AllowedIps,
    pub(super) common: &'a mut CommonParts,
}

impl Inlet<'_> {
    /// Handles a unit. `site`: the number in its packaging.
    pub(super) fn take(&mut self, site: Option<SiteId>, unit: Unit<'_>) {
        let number = self.whose(site);
        let Self { sources, pipelines, mesh, allowed, common, .. } = self;
        let CommonParts { counters, outputs, .. } = common;
        let Some((source, found)) = number.and_then(|number| Some((number, sources.get_mut(number)?))) else {
            counters.drops.count(Drop::UnknownSender);
            return;
        };
        let Some(pipeline) = pipelines.get_mut(if *mesh { 0 } else { source }) else { return };
        let compressed = unit.octets.len();
        let from = found.id.filter(|_| *mesh);
        found.heard_at = Some(self.now);
        let unit = Unit { large: self.large, ..unit };
        // Decompressed where it waits.
        let room = outputs.room(LONGEST);
        match pipeline.channel.receive(self.now, from, unit, room) {
            Ok(None) => {}
            Ok(Some(place)) => {
                let packet = room.get(place.clone()).unwrap_or_default();
                let octets = packet.len();
                if !allowed.allows(source, packet) {
                    counters.drops.count(Drop::NotAllowedSource);
                    found.count_not_allowed(packet);
                } else if outputs.push_packet(Some((source, compressed)), place) {
                    counters.received.packet(octets, compressed);
                    found.counters.received.packet(octets, compressed);
                } else {
                    counters.drops.count(Drop::InterfaceRefused);
                }
            }
            Err(NotReceived::Decompress(error)) => {
                if let Some(failure) = Failure::of(&error) {
                    counters.drops.count(Drop::Decompression);
                    found.counters.failures.count(failure);
                }
            }
            Err(NotReceived::NotForUs) => counters.drops.count(Drop::NotForUs),
            Err(NotReceived::UnknownSite) => counters.drops.count(Drop::UnknownSender),
            Err(NotReceived::Unexpected(_) | NotReceived::Malformed(_)) => {
                counters.drops.count(Drop::Packaging);
            }
        }
    }

    /// Returns the number of the source of a unit: by the seal, otherwise by its PID, or the only one.
    fn whose(&self, site: Option<SiteId>) -> Option<usize> {
        match (self.number, site) {
            (Some(number), _) => Some(number),
            (None, Some(site)) if self.mesh => self.sources.iter().position(|source| source.id == Some(site)),
            // Numbers of peers start at 1.
            (None, Some(site)) => Some(usize::from(site.number()) - 1),
            (None, None) => (self.sources.len() == 1).then_some(0),
        }
    }
}
