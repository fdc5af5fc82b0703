//! Headers compressed towards one destination, and rebuilt.
//!
//! A [`Channel`] takes packets (of TUN) or frames (of TAP) and makes units of them for the packaging, and the other way
//! round. It has the ROHC endpoint of a pair, or the compressor of this site of a mesh with a decompressor for each other
//! site, and the feedback between them. It knows no carrier but for the octets that a unit may have, and what it
//! vouches for. ROHC: RFC 5795.

mod allowed;
mod bridge;
mod counters;
mod ends;
mod feedback;
mod mesh;
mod outcome;
mod segments;
mod setup;
mod spaces;

use thinair_rohc::contexts::ContextState;
use thinair_rohc::packet::{self, PacketBody};
use thinair_rohc::{DecompressError, Instant, ProfileId};

pub use allowed::{AllowedError, AllowedIps};
pub use counters::{Counters, Feedback, Kinds, Reasons, Way};
pub use feedback::{NACK_INTERVAL, NACKS_A_SECOND};
pub use outcome::{NotReceived, NotSent, Sent};
pub use setup::{Role, Setup, SetupError};
pub use spaces::{Cids, FEW, LIVE};

use crate::plan::ChannelPlan;
use crate::seal::Missing;
use crate::unit::{Protocol, SiteId, Unit};
use bridge::Frame;
use ends::Ends;
use spaces::Spaces;

/// Octets that a header may grow by when it is compressed, with extension headers.
const GROWTH: usize = 1_024;

/// Octets of the longest packet or frame that is delivered.
const LONGEST: usize = bridge::HEADER + 65_535 + 40;

/// In front of where packets are compressed to, there is room for the header of a frame and for feedback.
const FRONT: usize = bridge::HEADER + feedback::ROOM;

/// One destination: a peer, or a mesh.
///
/// **Each packet goes to [`send`](Self::send), each unit that comes to [`receive`](Self::receive). When
/// [`poll_at`](Self::poll_at) has come, [`poll`](Self::poll) hands out feedback that has waited for a packet long
/// enough. Units of one call go to the carrier in their order with nothing in between, for they may be segments.** A time
/// that goes back is taken for the latest one.
#[derive(Debug)]
pub struct Channel {
    spaces: Spaces,
    plan: ChannelPlan,
    own: Option<SiteId>,
    bridged: bool,
    as_is: bool,
    mtu: usize,
    largest_unit: usize,
    mrru: usize,
    /// A unit that is sent: what is compressed begins at [`FRONT`].
    room: Vec<u8>,
    /// One segment.
    segment: Vec<u8>,
    /// A packet that is delivered, behind the header of its frame.
    delivered: Vec<u8>,
    now: Instant,
    counters: Counters,
}

impl Channel {
    /// A channel, with all memory that it will ever need.
    pub fn new(setup: &Setup<'_>) -> Result<Self, SetupError> {
        let Setup { plan, mtu, largest_unit, mrru, .. } = *setup;
        if largest_unit < 20 {
            return Err(SetupError::Narrow(largest_unit));
        }
        let own = match setup.role {
            Role::Mesh { own, .. } => own,
            Role::Pair | Role::OneWay => None,
        };
        let spaces = Spaces::new(setup)?;
        let mtu = usize::from(mtu);
        Ok(Self {
            spaces,
            plan: plan.clone(),
            own,
            bridged: setup.bridged,
            as_is: setup.bridged || plan.by_type && setup.typed,
            mtu,
            largest_unit,
            mrru: usize::from(mrru),
            room: vec![0; FRONT + mtu + GROWTH],
            segment: vec![0; largest_unit.min(LONGEST)],
            delivered: vec![0; LONGEST],
            now: Instant::ZERO,
            counters: Counters::default(),
        })
    }

    /// Compresses a packet, or what is in a frame, and hands out the units that it becomes.
    pub fn send(
        &mut self,
        now: Instant,
        packet: &[u8],
        sink: &mut dyn FnMut(Unit<'_>),
    ) -> Result<Sent, NotSent> {
        self.now = self.now.max(now);
        let sent = self.pack(packet, sink);
        let counters = &mut self.counters;
        match &sent {
            Ok(sent) => {
                let way = &mut counters.sent;
                way.packets += 1;
                way.octets += packet.len() as u64;
                way.units += sent.units as u64;
                way.unit_octets += sent.octets as u64;
                match &sent.compressed {
                    Some(compressed) => {
                        way.headers += compressed.header_in as u64;
                        way.rohc_headers += compressed.header_out as u64;
                        counters.compressed.note_sent(compressed);
                    }
                    None => counters.as_they_are += 1,
                }
            }
            Err(error) => counters.not_sent.count(error.name()),
        }
        sent
    }

    fn pack(&mut self, packet: &[u8], sink: &mut dyn FnMut(Unit<'_>)) -> Result<Sent, NotSent> {
        let (addresses, ip) = if self.bridged {
            match bridge::outgoing(packet) {
                Frame::Packet { addresses, packet } => (addresses, packet),
                Frame::Short => return Err(NotSent::ShortFrame(packet.len())),
                Frame::Other if bridge::is_rohc(packet) => return Err(NotSent::RohcFrame),
                Frame::Other => {
                    self.counters.not_compressible += 1;
                    return self.go_as_it_is(Protocol::Bridged, packet, sink);
                }
            }
        } else {
            (&[][..], packet)
        };
        if ip.len() > self.mtu {
            return Err(NotSent::TooLong { octets: ip.len(), most: self.mtu });
        }
        let room = self.room.get_mut(FRONT..).unwrap_or_default();
        let compressed = self.spaces.compress(self.now, &self.plan, ip, room)?;
        let as_is = match (self.as_is, self.bridged) {
            (false, _) => None,
            (true, true) => Some(Protocol::Bridged),
            (true, false) if ip.first().is_some_and(|first| first >> 4 == 4) => Some(Protocol::Ipv4),
            (true, false) => Some(Protocol::Ipv6),
        };
        if compressed.profile == ProfileId::Uncompressed {
            self.counters.not_compressible += 1;
            if let Some(protocol) = as_is.filter(|_| packet.len() <= self.largest_unit) {
                return self.go_as_it_is(protocol, packet, sink);
            }
        }
        match self.emit(addresses, &compressed, sink) {
            // Its context has seen a packet that nobody hears of, which is like one that is lost.
            Err(NotSent::TooLong { .. }) if as_is.is_some() && packet.len() <= self.largest_unit => {
                let protocol = as_is.unwrap_or(Protocol::Bridged);
                self.go_as_it_is(protocol, packet, sink)
            }
            sent => sent,
        }
    }

    fn go_as_it_is(
        &mut self,
        protocol: Protocol,
        octets: &[u8],
        sink: &mut dyn FnMut(Unit<'_>),
    ) -> Result<Sent, NotSent> {
        if self.spaces.only_hears() {
            return Err(NotSent::OnlyHears);
        }
        if octets.len() > self.largest_unit {
            return Err(NotSent::TooLong { octets: octets.len(), most: self.largest_unit });
        }
        sink(Unit { protocol, to: None, large: self.spaces.sends_large(), octets });
        Ok(Sent { compressed: None, units: 1, octets: octets.len() })
    }

    /// Notes the units that are missing before those that [`receive`](Self::receive) takes next, which are of one datagram
    /// of a site if there is a mesh. Without, nothing is known to be missing or not.
    pub fn note_missing(&mut self, from: Option<SiteId>, missing: Missing) {
        self.spaces.note_missing(from, missing);
    }

    /// Units that follow go in another datagram than those before.
    pub fn begin_group(&mut self) {
        self.spaces.begin_group();
    }

    /// Takes a unit, of a site if there is a mesh, and hands out the packet or frame that it becomes.
    ///
    /// Feedback in it goes to the compressor. A unit that brings nothing but that, or a segment of a unit that goes on, is
    /// no error.
    pub fn receive(
        &mut self,
        now: Instant,
        from: Option<SiteId>,
        unit: Unit<'_>,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), NotReceived> {
        self.now = self.now.max(now);
        let way = &mut self.counters.received;
        way.units += 1;
        way.unit_octets += unit.octets.len() as u64;
        let result = self.unpack(from, unit, sink);
        match &result {
            Ok(octets) if *octets > 0 => {
                self.counters.received.packets += 1;
                self.counters.received.octets += *octets as u64;
            }
            Ok(_) => {}
            Err(error) => self.counters.not_received.count(error.name()),
        }
        result.map(|_| ())
    }

    /// Octets that were handed out.
    fn unpack(
        &mut self,
        from: Option<SiteId>,
        unit: Unit<'_>,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, NotReceived> {
        let Unit { protocol, to, large, octets } = unit;
        if to.is_some() && to != self.own {
            return Err(NotReceived::NotForUs);
        }
        let Some(ends) = self.spaces.receiving(&self.plan, large) else {
            return Err(NotReceived::Unexpected(protocol));
        };
        if !ends.knows(from) {
            return Err(NotReceived::UnknownSite);
        }
        match (protocol, self.bridged) {
            (Protocol::Rohc, bridged) => {
                let packet = self.rohc(from, to, large, octets)?;
                if packet > 0 && bridged {
                    // A packet, where there should be a frame around it.
                    return Err(NotReceived::Malformed(protocol));
                }
                self.hand_out(bridge::HEADER, packet, sink)
            }
            (Protocol::Ipv4 | Protocol::Ipv6, false) if self.as_is => {
                let version = if protocol == Protocol::Ipv4 { 4 } else { 6 };
                let header = if protocol == Protocol::Ipv4 { 20 } else { 40 };
                if octets.len() < header || octets.first().is_none_or(|first| first >> 4 != version) {
                    return Err(NotReceived::Malformed(protocol));
                }
                sink(octets);
                Ok(octets.len())
            }
            (Protocol::Bridged, true) => match bridge::incoming(octets) {
                Frame::Short => Err(NotReceived::Malformed(protocol)),
                Frame::Other => {
                    sink(octets);
                    Ok(octets.len())
                }
                Frame::Packet { addresses, packet } => {
                    let packet = self.rohc(from, to, large, packet)?;
                    if packet == 0 {
                        return Ok(0);
                    }
                    let (header, ip) = self.delivered.split_at_mut(bridge::HEADER);
                    let ether_type = bridge::ether_type(ip).ok_or(NotReceived::Malformed(protocol))?;
                    let (into, of) = header.split_at_mut(addresses.len());
                    into.copy_from_slice(addresses);
                    of.copy_from_slice(&ether_type);
                    self.hand_out(0, bridge::HEADER + packet, sink)
                }
            },
            _ => Err(NotReceived::Unexpected(protocol)),
        }
    }

    /// Takes a ROHC packet. Returns the octets of the packet that is delivered, 0 if there is none.
    fn rohc(
        &mut self,
        from: Option<SiteId>,
        to: Option<SiteId>,
        large: bool,
        octets: &[u8],
    ) -> Result<usize, NotReceived> {
        let parts = packet::parts(octets).map_err(|e| NotReceived::Decompress(DecompressError::Packet(e)))?;
        let Some(ends) = self.spaces.receiving(&self.plan, large) else {
            return Err(NotReceived::Unexpected(Protocol::Rohc));
        };
        if !parts.feedback.octets().is_empty() {
            ends.feedback(self.now, from, to, parts.feedback, &mut self.counters.feedback_received);
        }
        let rest = match parts.body {
            PacketBody::Empty => return Ok(0),
            PacketBody::Header(header) => header,
            PacketBody::Segment { octets: segment, .. } => {
                self.counters.segments_received += 1;
                octets.get(octets.len() - segment.len() - 1..).unwrap_or_default()
            }
        };
        let room = self.delivered.get_mut(bridge::HEADER..).unwrap_or_default();
        let due = self.now + self.plan.feedback_wait;
        match ends.decompress(self.now, from, rest, room, due, &mut self.counters) {
            Ok(done) => {
                self.spaces.note_received(large);
                let way = &mut self.counters.received;
                way.headers += done.header_out as u64;
                way.rohc_headers += done.header_in as u64;
                self.counters.decompressed.note_received(&done);
                Ok(done.len)
            }
            Err(DecompressError::NothingYet) => Ok(0),
            Err(error) => Err(NotReceived::Decompress(error)),
        }
    }

    fn hand_out(&self, start: usize, len: usize, sink: &mut dyn FnMut(&[u8])) -> Result<usize, NotReceived> {
        if let Some(octets) = self.delivered.get(start..start + len).filter(|octets| !octets.is_empty()) {
            sink(octets);
        }
        Ok(len)
    }

    /// When [`poll`](Self::poll) is next to be called; `None` if there is nothing to wait for.
    pub fn poll_at(&self) -> Option<Instant> {
        self.spaces.poll_at()
    }

    /// Hands out feedback that has waited long enough for a packet to go in front of.
    pub fn poll(&mut self, now: Instant, sink: &mut dyn FnMut(Unit<'_>)) {
        self.now = self.now.max(now);
        let (now, most) = (self.now, self.most_alone());
        self.spaces.poll(now, most, &mut self.counters, sink);
    }

    /// Octets of the longest unit that holds nothing but feedback: packed frames need one around it.
    fn most_alone(&self) -> usize {
        self.largest_unit - if self.bridged { bridge::HEADER } else { 0 }
    }

    /// The peer, or a site, has started anew and has no contexts: neither has this end. In a mesh, our own contexts begin
    /// anew for all, so that the site hears us at once.
    pub fn reset(&mut self, from: Option<SiteId>) {
        self.spaces.reset(&self.plan, from);
    }

    /// What was done since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The CID space of each direction.
    pub fn cids(&self) -> Cids {
        self.spaces.cids()
    }

    /// Units have at most so many octets from now on: no more than at the start.
    pub fn limit(&mut self, largest_unit: usize) {
        self.largest_unit = largest_unit.min(self.segment.len());
    }

    /// The contexts of our compressor.
    pub fn compressor_contexts(&self) -> impl Iterator<Item = ContextState> + '_ {
        self.spaces.all().filter_map(Ends::compressor).flat_map(|compressor| compressor.contexts())
    }

    /// The contexts of our decompressors, with the site that they hear.
    pub fn decompressor_contexts(&self) -> impl Iterator<Item = (Option<SiteId>, ContextState)> + '_ {
        self.spaces
            .all()
            .flat_map(Ends::decompressors)
            .flat_map(|(site, decompressor)| decompressor.contexts().map(move |context| (site, context)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
