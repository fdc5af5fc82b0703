//! Sending side: packets to one peer, or to all sites of a mesh, on their way to the carrier.

use std::collections::VecDeque;
use std::net::SocketAddr;

use thinair_wire::time::Instant;

use super::CommonParts;
use super::output::QueuedOutput;
use crate::channel::Channel;
use crate::packaging::{Body, Packager, PushError};
use crate::path_mtu::PathMtu;
use crate::seal::{BodyFlags, Destination, NotSealed, PathSeal, Seal};
use crate::status::{Drop, TrafficCounters};
use crate::unit::Unit;

/// Bodies that may wait for the first keys.
const HELD: usize = 32;

/// Number of units from which a body is a group: its loss exceeds the tolerance of the smallest SN if it
/// happens two or three times in a row.
const GROUP: u32 = 4;

/// Stages from packets to datagrams for one destination.
pub(super) struct Pipeline {
    pub(super) name: String,
    pub(super) channel: Channel,
    pub(super) packager: Packager,
    pub(super) link: Link,
}

/// Stage between the packaging and the carrier.
pub(super) struct Link {
    pub(super) destination: Destination,
    /// Destination, if the seal does not know a newer one.
    pub(super) configured: Option<SocketAddr>,
    /// True if the carrier has addresses.
    pub(super) needs_address: bool,
    pub(super) sent: TrafficCounters,
    /// Path MTU; `None` if the carrier has none, or nobody confirms probes.
    pub(super) path: Option<PathMtu>,
    /// Size that packaging and channel are limited to, and the size of the last event.
    pub(super) limited_to: Option<u16>,
    pub(super) settled: u16,
    /// A body of several units was sent since the last packet was compressed.
    pub(super) has_grouped: bool,
    /// Bodies that wait for keys.
    held: VecDeque<(BodyFlags, u32, Vec<u8>)>,
}

impl Link {
    pub(super) fn new(destination: Destination, configured: Option<SocketAddr>, needs_address: bool) -> Self {
        Self {
            destination,
            configured,
            needs_address,
            sent: TrafficCounters::default(),
            path: None,
            limited_to: None,
            settled: 0,
            has_grouped: false,
            held: VecDeque::new(),
        }
    }

    /// Destination of datagrams.
    pub(super) fn address(&self, seal: Option<&Seal>) -> Option<SocketAddr> {
        let moved = match (seal, self.destination) {
            (Some(seal), Destination::Peer(peer)) => seal.address(peer),
            _ => None,
        };
        moved.or(self.configured)
    }
}

/// The end of a pipeline, with everything that it needs.
pub(super) struct Outlet<'a> {
    pub(super) now: Instant,
    pub(super) common: &'a mut CommonParts,
    pub(super) link: &'a mut Link,
}

impl Outlet<'_> {
    /// Packs a unit into bodies, and sends full ones.
    pub(super) fn push(&mut self, packager: &mut Packager, unit: Unit<'_>) {
        let now = self.now;
        let result = packager.push(now, unit, &mut |body| self.carry(body));
        let drops = &mut self.common.counters.drops;
        match result {
            Ok(()) => {}
            Err(PushError::TooLong { .. }) => drops.count(Drop::TooLong),
            Err(PushError::Full) => drops.count(Drop::CarrierFull),
            Err(
                PushError::Empty | PushError::NotTold(_) | PushError::NotAFrame { .. } | PushError::NoNpa(_),
            ) => drops.count(Drop::NotCompressed),
        }
    }

    /// Seals and sends a body.
    pub(super) fn carry(&mut self, body: Body<'_>) {
        self.link.has_grouped |= body.units >= GROUP;
        // Between two ends nothing is addressed, and a mesh has one channel.
        let flags = BodyFlags { several: body.several, addressed: body.to.is_some() || body.large };
        self.seal_and_carry(flags, body.units, body.octets, true);
    }

    /// Sends bodies that have waited for keys.
    pub(super) fn carry_held(&mut self) {
        for _ in 0..self.link.held.len() {
            if let Some((flags, units, body)) = self.link.held.pop_front() {
                self.seal_and_carry(flags, units, &body, false);
            }
        }
    }

    /// Seals and sends a datagram about the path MTU. False if there are no keys, or no address.
    pub(super) fn carry_path(&mut self, path: PathSeal<'_>) -> bool {
        let CommonParts { seal: Some(seal), datagram, .. } = &mut *self.common else { return false };
        let address = self.link.address(Some(seal));
        let (Destination::Peer(peer), Some(_)) = (self.link.destination, address) else { return false };
        let is_sealed = seal.seal_path(self.now, peer, path, datagram).is_ok();
        if is_sealed {
            self.carry_datagram(address);
        }
        is_sealed
    }

    fn seal_and_carry(&mut self, flags: BodyFlags, units: u32, body: &[u8], hold: bool) {
        let sealed = self.seal(flags, units, body);
        let address = self.link.address(self.common.seal.as_ref());
        match sealed {
            Ok(()) if address.is_some() || !self.link.needs_address => self.carry_datagram(address),
            Err(NotSealed::NoSession) if hold && self.link.held.len() < HELD => {
                self.link.held.push_back((flags, units, body.to_vec()));
            }
            Ok(()) | Err(NotSealed::NoSession | NotSealed::NoDestination | NotSealed::OnlyHears) => {
                self.common.counters.drops.count(Drop::NoSession);
            }
        }
    }

    /// Seals a body, and requests a confirmation if the search for the path MTU needs one.
    fn seal(&mut self, flags: BodyFlags, units: u32, body: &[u8]) -> Result<(), NotSealed> {
        let Self { now, common: CommonParts { seal, datagram, outer, .. }, link } = self;
        let Some(seal) = seal else {
            datagram.clear();
            datagram.extend_from_slice(body);
            return Ok(());
        };
        let octets = *outer + seal.around().usual() + body.len();
        let octets = u16::try_from(octets).unwrap_or(u16::MAX);
        let asks = link.path.as_mut().is_some_and(|path| path.sent(*now, octets));
        match link.destination {
            Destination::Peer(peer) if asks => {
                seal.seal_path(*now, peer, PathSeal::Body(flags, body), datagram)?;
            }
            to @ (Destination::Peer(_) | Destination::Everybody) => {
                seal.seal(*now, to, flags, body, datagram)?
            }
        }
        seal.note_sealed(link.destination, units);
        Ok(())
    }

    /// Queues the sealed datagram as an output.
    pub(super) fn carry_datagram(&mut self, to: Option<SocketAddr>) {
        let CommonParts { counters, datagram, outer, outputs, .. } = &mut *self.common;
        if outputs.push(QueuedOutput::Datagram(to), datagram) {
            counters.sent_datagram(datagram.len() + *outer);
            self.link.sent.datagram(datagram.len() + *outer);
        } else {
            counters.drops.count(Drop::CarrierFull);
        }
    }
}
