//! Sending side: packets to one peer, or to all sites of a mesh, on their way to the carrier.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use thinair_session::mapping::MappingSearch;
use thinair_session::path_mtu::PathMtu;
use thinair_session::{AddressPair, BodyFlags, Destination, NotSealed, PathSeal, Seal};
use thinair_wire::time::Instant;

use super::CommonParts;
use super::departures::Departure;
use super::hold::WaitingPackets;
use super::mapping::OwedAnswer;
use super::peer_channel::PeerChannel;
use super::unsent::{Fate, Unsent};
use crate::packaging::{Body, Packager, PushError};
use crate::status::{Counters, Drop, TrafficCounters};
use crate::unit::Unit;

/// Bodies that may wait for the first keys.
const HELD: usize = 32;

/// Number of units from which a body is a group: its loss exceeds the tolerance of the smallest SN if it
/// happens two or three times in a row.
const GROUP: u32 = 4;

/// Stages from packets to datagrams for one destination.
pub(super) struct Pipeline {
    pub(super) name: String,
    pub(super) channel: PeerChannel,
    pub(super) packager: Packager,
    pub(super) link: Link,
    /// Packets that wait for others.
    pub(super) waiting: WaitingPackets,
    /// True if its packager may have an unfinished body.
    pub(super) is_unfinished: bool,
}

impl Pipeline {
    /// Time of the first of its timers.
    pub(super) fn poll_at(&self) -> Option<Instant> {
        let path = self.link.path.as_ref().and_then(|path| path.poll_at());
        let mapping = self.link.mapping.as_ref().and_then(|mapping| mapping.poll_at());
        let owed = self.link.owed.as_ref().map(|owed| owed.at);
        let times =
            [self.channel.poll_at(), self.packager.poll_at(), path, mapping, owed, self.waiting.due()];
        times.into_iter().flatten().min()
    }
}

/// A body that waits for keys.
struct HeldBody {
    flags: BodyFlags,
    units: u32,
    body: Vec<u8>,
    /// Packets that end in it.
    packets: TrafficCounters,
}

/// Stage between the packaging and the carrier.
pub(super) struct Link {
    pub(super) destination: Destination,
    /// Destination, if the seal does not know a newer one.
    pub(super) configured: Option<SocketAddr>,
    /// Own address at which the configured one has sent datagrams, if the seal knows none.
    pub(super) own: Option<IpAddr>,
    /// True if the carrier has addresses.
    pub(super) needs_address: bool,
    pub(super) sent: TrafficCounters,
    /// `sent` when the peer was heard last.
    pub(super) arrived: TrafficCounters,
    /// Packets in the packager.
    pub(super) unsent: Unsent,
    /// Path MTU; `None` if the carrier has none, or nobody confirms probes.
    pub(super) path: Option<PathMtu>,
    /// Search for the timeout of mappings; `None`: the interval of keepalives is fixed, or there are none.
    pub(super) mapping: Option<MappingSearch>,
    /// Result of that search in the last event.
    pub(super) reported: Option<Option<Duration>>,
    /// Answer that the peer has requested.
    pub(super) owed: Option<OwedAnswer>,
    /// Size that packaging and channel are limited to, and the size of the last event.
    pub(super) limited_to: Option<u16>,
    pub(super) settled: u16,
    /// A body of several units was sent since the last packet was compressed.
    pub(super) has_grouped: bool,
    /// Bodies that wait for keys.
    held: VecDeque<HeldBody>,
}

impl Link {
    pub(super) fn new(destination: Destination, configured: Option<SocketAddr>, needs_address: bool) -> Self {
        Self {
            destination,
            configured,
            own: None,
            needs_address,
            sent: TrafficCounters::default(),
            arrived: TrafficCounters::default(),
            unsent: Unsent::default(),
            path: None,
            mapping: None,
            reported: None,
            owed: None,
            limited_to: None,
            settled: 0,
            has_grouped: false,
            held: VecDeque::new(),
        }
    }

    /// Addresses of datagrams.
    pub(super) fn pair(&self, seal: Option<&Seal>) -> Option<AddressPair> {
        let known = match (seal, self.destination) {
            (Some(seal @ Seal::TwoWay(_)), Destination::Peer(peer)) => seal.own_address(peer),
            _ => self.own,
        };
        Some(AddressPair { peer: self.address(seal)?, own: known })
    }

    /// Counts packets whose datagram was passed to the carrier.
    fn count_sent(&mut self, common: &mut CommonParts, number: u64, packets: &TrafficCounters) {
        self.sent.add(packets);
        common.counters.sent.add(packets);
        common.departures.add(number, packets);
    }

    /// Takes back a datagram that the carrier refused, with the packets that end in it.
    pub(super) fn take_back(&mut self, counters: &mut Counters, refused: &Departure) {
        self.sent.take_back(&refused.packets);
        self.sent.take_datagram_back(refused.octets);
        counters.refused_datagram(refused.octets, &refused.packets);
        // Something was heard before the carrier took it.
        if self.arrived.datagrams > self.sent.datagrams {
            self.arrived.take_back(&refused.packets);
            self.arrived.take_datagram_back(refused.octets);
            if let Some(arrived) = &mut counters.arrived {
                arrived.take_back(&refused.packets);
                arrived.take_datagram_back(refused.octets);
            }
        }
    }

    /// Records that the peer was heard: everything that was sent before may have arrived.
    pub(super) fn heard(&mut self, counters: &mut Counters) {
        if let Some(arrived) = &mut counters.arrived {
            arrived.add(&self.sent.since(&self.arrived));
            self.arrived = self.sent;
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
            Ok(()) => self.link.unsent.push(),
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
        let fate = self.seal_and_carry(flags, body.units, body.octets, true);
        let packets = self.link.unsent.body(body.units, fate);
        self.note_fate(fate, &packets);
    }

    /// Records the end of a packet of `octets`, and `compressed` octets after compression.
    pub(super) fn end_packet(&mut self, octets: usize, compressed: usize) {
        if let Some(fate) = self.link.unsent.end(octets, compressed) {
            let mut packet = TrafficCounters::default();
            packet.packet(octets, compressed);
            self.note_fate(fate, &packet);
        }
    }

    fn note_fate(&mut self, fate: Fate, packets: &TrafficCounters) {
        match fate {
            Fate::Left(number) => self.link.count_sent(self.common, number, packets),
            Fate::Held => {
                if let Some(held) = self.link.held.back_mut() {
                    held.packets.add(packets);
                }
            }
            Fate::Dropped => {}
        }
    }

    /// Sends bodies that have waited for keys.
    pub(super) fn carry_held(&mut self) {
        for _ in 0..self.link.held.len() {
            if let Some(held) = self.link.held.pop_front()
                && let Fate::Left(number) = self.seal_and_carry(held.flags, held.units, &held.body, false)
            {
                self.link.count_sent(self.common, number, &held.packets);
            }
        }
    }

    /// Seals and sends a datagram about the path MTU. False if there are no keys, or no address.
    pub(super) fn carry_path(&mut self, path: PathSeal<'_>) -> bool {
        let CommonParts { seal: Some(seal), outputs, .. } = &mut *self.common else { return false };
        let address = self.link.pair(Some(seal));
        let (Destination::Peer(peer), Some(_)) = (self.link.destination, address) else { return false };
        let is_sealed = seal.seal_path(self.now, peer, path, outputs.begin_datagram()).is_ok();
        is_sealed && self.carry_datagram(address).is_some()
    }

    fn seal_and_carry(&mut self, flags: BodyFlags, units: u32, body: &[u8], hold: bool) -> Fate {
        let sealed = self.seal(flags, units, body);
        let address = self.link.pair(self.common.seal.as_ref());
        match sealed {
            Ok(()) if address.is_some() || !self.link.needs_address => {
                self.carry_datagram(address).map_or(Fate::Dropped, Fate::Left)
            }
            Err(NotSealed::NoSession) if hold && self.link.held.len() < HELD => {
                let packets = TrafficCounters::default();
                self.link.held.push_back(HeldBody { flags, units, body: body.to_vec(), packets });
                Fate::Held
            }
            Ok(()) | Err(NotSealed::NoSession | NotSealed::NoDestination | NotSealed::OnlyHears) => {
                self.common.counters.drops.count(Drop::NoSession);
                Fate::Dropped
            }
        }
    }

    /// Seals a body where it will wait, and requests a confirmation if the search for the path MTU needs one.
    fn seal(&mut self, flags: BodyFlags, units: u32, body: &[u8]) -> Result<(), NotSealed> {
        let Self { now, common: CommonParts { seal, outputs, outer, .. }, link } = self;
        let datagram = outputs.begin_datagram();
        let Some(seal) = seal else {
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

    /// Queues the sealed datagram as an output. Returns its number; `None`: there is no room.
    pub(super) fn carry_datagram(&mut self, to: Option<AddressPair>) -> Option<u64> {
        let CommonParts { counters, outer, outputs, departures, .. } = &mut *self.common;
        if !outputs.has_room(outputs.begun()) {
            counters.drops.count(Drop::CarrierFull);
            return None;
        }
        let octets = outputs.begun() + *outer;
        let pipeline = match self.link.destination {
            Destination::Peer(peer) => peer,
            Destination::Everybody => 0,
        };
        let number = departures.push(pipeline, octets);
        outputs.push_datagram(to, number);
        counters.sent_datagram(octets);
        self.link.sent.datagram(octets);
        Some(number)
    }
}
