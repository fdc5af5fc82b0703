//! Compression and decompression of headers for one destination.
//!
//! A [`Channel`] converts packets (of a TUN interface) or frames (of a TAP interface) to units for the
//! packaging, and back. It contains the ROHC endpoint of a pair, or for a mesh the compressor of this site
//! and a decompressor for each other site, and the feedback between them. Of the carrier it uses only the
//! maximum size of a unit and the integrity check. ROHC: RFC 5795.

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

use std::ops::Range;

use thinair_rohc::contexts::ContextState;
use thinair_rohc::packet::{self, PacketBody};
use thinair_rohc::{DecompressError, Instant, ProfileId};
use thinair_session::Missing;

pub(crate) use allowed::source_address;
pub use allowed::{AllowedError, AllowedIps};
pub use counters::{Counters, DirectionCounters, Feedback, Kinds, Reasons};
pub use feedback::{NACK_INTERVAL, NACKS_A_SECOND};
pub use outcome::{NotReceived, NotSent, Sent};
pub use setup::{Role, Setup, SetupError};
pub use spaces::{Cids, FEW, LIVE};

use crate::site_config::ChannelConfig;
use crate::unit::{Protocol, SiteId, Unit};
use bridge::BridgedFrame;
use ends::ChannelEnds;
use spaces::Spaces;

/// Octets by which compression may enlarge a header, with extension headers.
const GROWTH: usize = 1_024;

/// Maximum size of a delivered packet or frame, with the room that it is made in, in octets.
pub const LONGEST: usize = bridge::HEADER + 65_535 + 40;

/// Room before a compressed packet for the header of a frame and for feedback, in octets.
const FRONT: usize = bridge::HEADER + feedback::ROOM;

/// Channel to one destination: a peer, or a mesh.
///
/// **Pass each packet to [`send`](Self::send), and each received unit to [`receive`](Self::receive). At
/// [`poll_at`](Self::poll_at) call [`poll`](Self::poll), which sends feedback that has waited for a packet
/// long enough. Units of one call must be sent in order and without other units in between, for they may be
/// segments.** A time that goes backwards is replaced with the latest one.
#[derive(Debug)]
pub struct Channel {
    spaces: Spaces,
    config: ChannelConfig,
    own: Option<SiteId>,
    bridged: bool,
    as_is: bool,
    /// True if the packaging has Types.
    typed: bool,
    mtu: usize,
    largest_unit: usize,
    mrru: usize,
    /// A unit to send; the compressed packet begins at [`FRONT`].
    room: Vec<u8>,
    /// One segment.
    segment: Vec<u8>,
    now: Instant,
    counters: Counters,
}

impl Channel {
    /// Returns a channel, and allocates all its memory.
    pub fn new(setup: &Setup<'_>) -> Result<Self, SetupError> {
        let Setup { config, mtu, largest_unit, mrru, .. } = *setup;
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
            config: config.clone(),
            own,
            bridged: setup.bridged,
            as_is: setup.bridged || config.by_type && setup.typed,
            typed: setup.typed,
            mtu,
            largest_unit,
            mrru: usize::from(mrru),
            room: vec![0; FRONT + mtu + GROWTH],
            segment: vec![0; largest_unit.min(LONGEST)],
            now: Instant::ZERO,
            counters: Counters::default(),
        })
    }

    /// Compresses a packet, or the packet in a frame, and passes the resulting units to `sink`.
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
                let counts = &mut counters.sent;
                counts.packets += 1;
                counts.octets += packet.len() as u64;
                counts.units += sent.units as u64;
                counts.unit_octets += sent.octets as u64;
                match &sent.compressed {
                    Some(compressed) => {
                        counts.headers += compressed.header_in as u64;
                        counts.rohc_headers += compressed.header_out as u64;
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
                BridgedFrame::Packet { addresses, packet } => (addresses, packet),
                BridgedFrame::Short => return Err(NotSent::ShortFrame(packet.len())),
                BridgedFrame::Other if bridge::is_rohc(packet) => return Err(NotSent::RohcFrame),
                BridgedFrame::Other => {
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
        let compressed = self.spaces.compress(self.now, &self.config, ip, room)?;
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
            // Its context refers to a packet that is not sent, as if that packet were lost.
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

    /// Records the units that are missing before the next ones passed to [`receive`](Self::receive); in a
    /// mesh, those of a datagram of one site. Without this call, the number of missing units is unknown.
    pub fn note_missing(&mut self, from: Option<SiteId>, missing: Missing) {
        self.spaces.note_missing(from, missing);
    }

    /// Starts a new datagram for the units that follow.
    pub fn begin_group(&mut self) {
        self.spaces.begin_group();
    }

    /// Receives a unit, in a mesh that of a site. Returns the place of the resulting packet or frame in `room`, which
    /// has [`LONGEST`] octets.
    ///
    /// Feedback in it goes to the compressor. A unit with feedback only, or with a segment of an incomplete
    /// unit, is not an error.
    pub fn receive(
        &mut self,
        now: Instant,
        from: Option<SiteId>,
        unit: Unit<'_>,
        room: &mut [u8],
    ) -> Result<Option<Range<usize>>, NotReceived> {
        self.now = self.now.max(now);
        let counts = &mut self.counters.received;
        counts.units += 1;
        counts.unit_octets += unit.octets.len() as u64;
        let result = self.unpack(from, unit, room);
        match &result {
            Ok(place) if !place.is_empty() => {
                self.counters.received.packets += 1;
                self.counters.received.octets += place.len() as u64;
            }
            Ok(_) => {}
            Err(error) => self.counters.not_received.count(error.name()),
        }
        result.map(|place| Some(place).filter(|place| !place.is_empty()))
    }

    /// Unpacks a unit. Returns the place of what is delivered.
    fn unpack(
        &mut self,
        from: Option<SiteId>,
        unit: Unit<'_>,
        room: &mut [u8],
    ) -> Result<Range<usize>, NotReceived> {
        let Unit { protocol, to, large, octets } = unit;
        if to.is_some() && to != self.own {
            return Err(NotReceived::NotForUs);
        }
        let Some(ends) = self.spaces.receiving(&self.config, large) else {
            return Err(NotReceived::Unexpected(protocol));
        };
        if !ends.knows(from) {
            return Err(NotReceived::UnknownSite);
        }
        match (protocol, self.bridged) {
            (Protocol::Rohc, bridged) => {
                let packet = self.rohc(from, to, large, octets, room)?;
                if packet > 0 && bridged {
                    // A packet instead of a frame.
                    return Err(NotReceived::Malformed(protocol));
                }
                Ok(bridge::HEADER..bridge::HEADER + packet)
            }
            // Of other senders also without `by_type`, which concerns what is sent.
            (Protocol::Ipv4 | Protocol::Ipv6, false) if self.typed => {
                let version = if protocol == Protocol::Ipv4 { 4 } else { 6 };
                let header = if protocol == Protocol::Ipv4 { 20 } else { 40 };
                if octets.len() < header || octets.first().is_none_or(|first| first >> 4 != version) {
                    return Err(NotReceived::Malformed(protocol));
                }
                copy(octets, room).ok_or(NotReceived::Malformed(protocol))
            }
            (Protocol::Bridged, true) => match bridge::incoming(octets) {
                BridgedFrame::Short => Err(NotReceived::Malformed(protocol)),
                BridgedFrame::Other => copy(octets, room).ok_or(NotReceived::Malformed(protocol)),
                BridgedFrame::Packet { addresses, packet } => {
                    let packet = self.rohc(from, to, large, packet, room)?;
                    if packet == 0 {
                        return Ok(0..0);
                    }
                    let (header, ip) = room.split_at_mut(bridge::HEADER);
                    let ether_type = bridge::ether_type(ip).ok_or(NotReceived::Malformed(protocol))?;
                    let (into, of) = header.split_at_mut(addresses.len());
                    into.copy_from_slice(addresses);
                    of.copy_from_slice(&ether_type);
                    Ok(0..bridge::HEADER + packet)
                }
            },
            _ => Err(NotReceived::Unexpected(protocol)),
        }
    }

    /// Decompresses a ROHC packet behind room for the header of a frame. Returns the length of the delivered packet, or 0.
    fn rohc(
        &mut self,
        from: Option<SiteId>,
        to: Option<SiteId>,
        large: bool,
        octets: &[u8],
        room: &mut [u8],
    ) -> Result<usize, NotReceived> {
        let parts = packet::parts(octets).map_err(|e| NotReceived::Decompress(DecompressError::Packet(e)))?;
        let Some(ends) = self.spaces.receiving(&self.config, large) else {
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
        let room = room.get_mut(bridge::HEADER..).unwrap_or_default();
        let due = self.now + self.config.feedback_wait;
        match ends.decompress(self.now, from, rest, room, due, &mut self.counters) {
            Ok(done) => {
                self.spaces.note_received(large);
                let counts = &mut self.counters.received;
                counts.headers += done.header_out as u64;
                counts.rohc_headers += done.header_in as u64;
                self.counters.decompressed.note_received(&done);
                Ok(done.len)
            }
            Err(DecompressError::NothingYet) => Ok(0),
            Err(error) => Err(NotReceived::Decompress(error)),
        }
    }

    /// Time of the next call of [`poll`](Self::poll); `None`: no call is needed.
    pub fn poll_at(&self) -> Option<Instant> {
        self.spaces.poll_at()
    }

    /// Passes on feedback that has waited for a packet long enough.
    pub fn poll(&mut self, now: Instant, sink: &mut dyn FnMut(Unit<'_>)) {
        self.now = self.now.max(now);
        let (now, most) = (self.now, self.most_alone());
        self.spaces.poll(now, most, &mut self.counters, sink);
    }

    /// Passes on feedback by which the compressors of the other end begin again, as the contexts of this one are given back.
    pub fn give_back(&mut self, now: Instant, sink: &mut dyn FnMut(Unit<'_>)) {
        self.now = self.now.max(now);
        self.spaces.give_back(self.now, &mut self.counters);
        self.poll(now, sink);
    }

    /// Maximum size of a unit with feedback only, in octets: packed frames add a header.
    fn most_alone(&self) -> usize {
        self.largest_unit - if self.bridged { bridge::HEADER } else { 0 }
    }

    /// Resets contexts after a restart of the peer or of a site, which has lost its contexts. In a mesh, our
    /// contexts are reinitialized for all sites, so that the restarted one can decompress at once.
    pub fn reset(&mut self, from: Option<SiteId>) {
        self.spaces.reset(&self.config, from);
    }

    /// Counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The CID space of each direction.
    pub fn cids(&self) -> Cids {
        self.spaces.cids()
    }

    /// Limits the size of units from now on, to at most the initial maximum.
    pub fn limit(&mut self, largest_unit: usize) {
        self.largest_unit = largest_unit.min(self.segment.len());
    }

    /// States of our compressor's contexts.
    pub fn compressor_contexts(&self) -> impl Iterator<Item = ContextState> + '_ {
        self.spaces.all().filter_map(ChannelEnds::compressor).flat_map(|compressor| compressor.contexts())
    }

    /// States of our decompressors' contexts, with the site that each receives from.
    pub fn decompressor_contexts(&self) -> impl Iterator<Item = (Option<SiteId>, ContextState)> + '_ {
        self.spaces
            .all()
            .flat_map(ChannelEnds::decompressors)
            .flat_map(|(site, decompressor)| decompressor.contexts().map(move |context| (site, context)))
    }
}

/// Copies octets to the start of a room. Returns their place; `None`: they do not fit.
fn copy(octets: &[u8], room: &mut [u8]) -> Option<Range<usize>> {
    room.get_mut(..octets.len())?.copy_from_slice(octets);
    Some(0..octets.len())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
