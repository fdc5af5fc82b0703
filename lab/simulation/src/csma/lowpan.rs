//! Packets whose frames are represented by their octets: IPv6 over IEEE 802.15.4, by RFC 4944.
//!
//! Every packet is encoded, compressed, fragmented and framed, and parsed at each node that needs its contents, by
//! [`thinair_lowpan`] and [`thinair_rohc`]: received packets depend on the received octets alone. Damage is determined
//! without the octets: a damaged frame is lost, as if the FCS detected every error.
//!
//! Where packets are reassembled at each hop, nodes route (route-over). Where frames are forwarded singly, LOWPAN_IPHC
//! uses fragment forwarding (RFC 8930); packets that have no IPv6 header in their first fragment, or must not be
//! compressed on the way, use mesh headers (mesh-under, RFC 4944, section 5.2).

mod station;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use thinair_link::Side;
use thinair_lowpan::dispatch;
use thinair_lowpan::forward::{FirstFragment, Forward, Route};
use thinair_lowpan::fragment::{Fragment, FragmentHeader, Fragments};
use thinair_lowpan::frame::{MAX_LEN, WpanFrame as MacFrame};
use thinair_lowpan::reassembly::DatagramKind;
use thinair_lowpan::stack::{HeaderStack, MeshHeader, StackContent};
use thinair_lowpan::{
    CompressedPacket, Contexts, LinkAddress, Links, LowpanContext, LowpanSettings, compress, decompress, fcs,
};
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::time::Instant;

use super::air::{Air, FrameContents};
use super::counted::ASSEMBLIES;
use super::counters::NodeCounters;
use super::framing::{FrameCompression, PHYH};
use super::network::PacketArrival;
use super::node::QueuedFrame;
use super::packet::{self, CsmaPacket, address};
use super::tunnel;
use super::{Forwarding, Topology};
use station::Station;
use thinair_emulator::{FeedbackTotals, RohcChannel, Terminal};

/// Destination PAN ID of all frames.
const PAN: u16 = 0xBEEF;

/// Size of a MAC header with short addresses of one PAN, in octets.
const MAC_HEADER: usize = 9;

/// Offset of the Sequence Number in it.
const SEQUENCE_NUMBER: usize = 2;

/// Maximum payload of a frame, in octets.
const FRAME_ROOM: usize = MAX_LEN - MAC_HEADER - fcs::LEN;

/// Size of a mesh header with short addresses and less than 15 hops, in octets.
const MESH_HEADER: usize = 5;

/// Maximum size of a packet with one dispatch, in octets: datagram_size of a fragment is at most 2,047.
const PACKET_ROOM: usize = 2_048;

/// Maximum size of such a packet, compressed or not, in octets.
const ROHC_ROOM: usize = PACKET_ROOM + 256;

/// Number of blocks for extension headers of each compressor and decompressor: there are none.
const BLOCKS: usize = 0;

/// All frames in flight, and the state of the nodes.
#[derive(Debug)]
pub(super) struct Lowpan {
    compression: FrameCompression,
    forwarding: Forwarding,
    topology: Topology,
    settings: LowpanSettings,
    frames: Vec<OnTheWay>,
    /// Free slots for frames.
    free: Vec<u32>,
    stations: Box<[Station]>,
}

/// Frame in flight.
#[derive(Debug)]
struct OnTheWay {
    octets: Vec<u8>,
    from: u16,
    /// Time at which it was enqueued, until it is sent.
    since: Option<Instant>,
}

impl FrameContents for Lowpan {
    fn on_air(&self, frame: &QueuedFrame) -> u16 {
        self.frames.get(frame.load as usize).map_or(0, |frame| frame.octets.len() as u16 + PHYH)
    }

    fn begins(&mut self, now: Instant, frame: &QueuedFrame) {
        let Some(frame) = self.frames.get_mut(frame.load as usize) else { return };
        if let Some(since) = frame.since.take()
            && let Some(station) = self.stations.get_mut(usize::from(frame.from))
        {
            station.begun += 1;
            station.waited += now.nanos_since(since);
        }
    }
}

impl Lowpan {
    pub(super) fn new(compression: FrameCompression, forwarding: Forwarding, topology: Topology) -> Self {
        let prefix = LowpanContext::new(address(0), packet::PREFIX_BITS);
        let contexts = prefix.and_then(|prefix| Contexts::NONE.with(0, prefix)).unwrap_or(Contexts::NONE);
        Self {
            compression,
            forwarding,
            topology,
            settings: LowpanSettings { contexts, ..LowpanSettings::default() },
            frames: Vec::new(),
            free: Vec::new(),
            stations: (0..topology.nodes()).map(|_| Station::default()).collect(),
        }
    }

    /// Adds the counters of this module to those of a node's radio.
    pub(super) fn counters(&self, node: u16, counters: NodeCounters) -> NodeCounters {
        let Some(station) = self.stations.get(usize::from(node)) else { return counters };
        let Station { begun, waited, refused, .. } = *station;
        NodeCounters { begun, waited, refused, ..counters }
    }

    pub(super) fn clear_counters(&mut self) {
        for station in &mut self.stations {
            (station.begun, station.waited, station.refused) = (0, 0, 0);
        }
    }

    /// Sends a packet of a node.
    pub(super) fn send(&mut self, air: &mut Air, from: u16, to: u16, packet: &impl CsmaPacket) {
        let mut octets = Vec::with_capacity(Ipv6::LEN + usize::from(packet.octets()));
        packet.write(from, to, &mut octets);
        self.submit(air, from, to, &octets);
    }

    /// Releases a frame that a node has finished with.
    pub(super) fn done(&mut self, frame: QueuedFrame) {
        if let Some(place) = self.frames.get_mut(frame.load as usize) {
            place.octets.clear();
            self.free.push(frame.load);
        }
    }

    /// Handles a frame that has arrived at its addressee.
    pub(super) fn receive<P: CsmaPacket>(
        &mut self,
        air: &mut Air,
        frame: QueuedFrame,
    ) -> Option<PacketArrival<P>> {
        let place = frame.load as usize;
        let OnTheWay { octets, from, .. } = self.frames.get_mut(place)?;
        // Sequence numbers are assigned when frames are enqueued; the radio counts them when their transmission begins.
        debug_assert_eq!(octets.get(SEQUENCE_NUMBER), Some(&air.dsn(*from)));
        let octets = core::mem::take(octets);
        let ipv6 = self.on_frame(air, frame.to, &octets);
        self.frames.get_mut(place)?.octets = octets;
        let ipv6 = ipv6?;
        let from = packet::node(&Ipv6::read(&ipv6).ok()?.source)?;
        Some(PacketArrival { at: air.now(), from, to: frame.to, packet: P::read(&ipv6)? })
    }

    /// Sends feedback separately if no packet has carried it in time.
    pub(super) fn on_timer(&mut self, air: &mut Air, node: u16) {
        let now = air.now();
        let mut totals = FeedbackTotals::default();
        let terminals = &mut self.station(node).terminals;
        let alone: Vec<_> = terminals
            .iter_mut()
            .filter_map(|(peer, terminal)| Some((*peer, terminal.poll_feedback(now, &mut totals)?)))
            .collect();
        for (peer, octets) in alone {
            self.send_rohc(air, node, peer, &octets);
        }
    }

    fn station(&mut self, node: u16) -> &mut Station {
        &mut self.stations[usize::from(node)]
    }

    /// True if frames are forwarded by mesh headers.
    const fn is_mesh(&self) -> bool {
        match (self.forwarding, &self.compression) {
            (Forwarding::Single, FrameCompression::None | FrameCompression::Rohc(_)) => true,
            (Forwarding::Single, FrameCompression::Iphc | FrameCompression::RohcInUdp(_))
            | (Forwarding::Reassembled(_), _) => false,
        }
    }

    /// Other end of the ROHC channel of a node for packets to `to`.
    const fn peer(&self, node: u16, to: u16) -> u16 {
        match (self.forwarding, &self.compression) {
            (Forwarding::Reassembled(_), FrameCompression::Rohc(_)) => self.topology.next_hop(node, to),
            _ => to,
        }
    }

    /// Sends a packet from a node towards another one, with the network's compression.
    fn submit(&mut self, air: &mut Air, node: u16, to: u16, ipv6: &[u8]) {
        let peer = self.peer(node, to);
        let Some(terminal) = self.terminal(node, peer) else { return self.route(air, node, to, ipv6) };
        let mut room = [0; ROHC_ROOM];
        match terminal.compress(air.now(), ipv6, &mut room, &mut FeedbackTotals::default()) {
            Ok((_, octets)) => self.send_rohc(air, node, peer, &octets),
            Err(_) => self.station(node).refused += 1,
        }
    }

    /// ROHC state of a node towards a peer, if there is ROHC.
    fn terminal(&mut self, node: u16, peer: u16) -> Option<&mut Terminal> {
        let channel: &RohcChannel = match &self.compression {
            FrameCompression::None | FrameCompression::Iphc => return None,
            FrameCompression::Rohc(channel) | FrameCompression::RohcInUdp(channel) => channel,
        };
        let side = if node < peer { Side::A } else { Side::B };
        let terminals = &mut self.stations[usize::from(node)].terminals;
        Some(terminals.entry(peer).or_insert_with(|| Terminal::new(channel, side, BLOCKS)))
    }

    /// Sends a ROHC packet, or separate feedback, to the other end of its channel.
    fn send_rohc(&mut self, air: &mut Air, node: u16, peer: u16, rohc: &[u8]) {
        if matches!(self.compression, FrameCompression::RohcInUdp(_)) {
            return self.route(air, node, peer, &tunnel::wrap(node, peer, rohc));
        }
        let octets = [&dispatch::ROHC, rohc].concat();
        let compressed = CompressedPacket::rohc(octets.len());
        self.cut(air, node, peer, &compressed, &octets);
    }

    /// Sends an IPv6 packet to the next hop, or by mesh headers to its end.
    fn route(&mut self, air: &mut Air, node: u16, to: u16, ipv6: &[u8]) {
        let hop = if self.is_mesh() { to } else { self.topology.next_hop(node, to) };
        if matches!(self.compression, FrameCompression::None) {
            let octets = [&[dispatch::IPV6], ipv6].concat();
            let compressed = CompressedPacket { header_in: 0, header_out: 1, len: octets.len() };
            return self.cut(air, node, hop, &compressed, &octets);
        }
        let mut out = [0; PACKET_ROOM];
        match compress(&self.settings, links(node, hop), ipv6, &mut out) {
            Ok(compressed) => {
                let octets = out.get(..compressed.len).unwrap_or_default();
                self.cut(air, node, hop, &compressed, octets);
            }
            Err(_) => self.station(node).refused += 1,
        }
    }

    /// Fragments a packet to `to`, which is a neighbor or, with mesh headers, any node.
    fn cut(&mut self, air: &mut Air, node: u16, to: u16, compressed: &CompressedPacket, octets: &[u8]) {
        let hop = self.topology.next_hop(node, to);
        let hops = self.topology.distance(node, to) as u8;
        let mesh = (hop != to).then(|| MeshHeader { hops_left: hops, links: links(node, to) });
        let room = FRAME_ROOM - if mesh.is_some() { MESH_HEADER } else { 0 };
        let station = self.station(node);
        match Fragments::new(compressed, octets, station.tag.wrapping_add(1), room) {
            Ok(fragments) => {
                station.tag = station.tag.wrapping_add(1);
                fragments.for_each(|fragment| self.put(air, node, hop, mesh, &fragment));
            }
            Err(_) => station.refused += 1,
        }
    }

    /// Enqueues a frame to a neighbor.
    fn put(&mut self, air: &mut Air, node: u16, hop: u16, mesh: Option<MeshHeader>, fragment: &Fragment<'_>) {
        let mut payload = [0; MAX_LEN];
        let start = mesh.map_or(Some(0), |mesh| mesh.write(&mut payload));
        let end = start.and_then(|start| Some(start + fragment.write(payload.get_mut(start..)?).ok()?));
        let payload = end.and_then(|end| payload.get(..end)).unwrap_or_default();
        self.enqueue(air, node, hop, payload);
    }

    fn enqueue(&mut self, air: &mut Air, node: u16, hop: u16, payload: &[u8]) {
        let frame = MacFrame::data(PAN, links(node, hop), air.next_dsn(node), payload);
        let mut octets = [0; MAX_LEN];
        let Ok(end) = frame.write(&mut octets) else {
            self.station(node).refused += 1;
            return;
        };
        let octets = octets.get(..end).unwrap_or_default();
        let place = self.free.pop().unwrap_or(self.frames.len() as u32);
        let since = Some(air.now());
        if self.frames.len() <= place as usize {
            self.frames.push(OnTheWay { octets: Vec::new(), from: node, since });
        }
        if let Some(frame) = self.frames.get_mut(place as usize) {
            (frame.from, frame.since) = (node, since);
            frame.octets.reserve_exact(end + fcs::LEN);
            frame.octets.extend_from_slice(octets);
            frame.octets.extend_from_slice(&fcs::fcs(octets));
        }
        let frame = QueuedFrame { load: place, part: 0, to: hop };
        if !air.enqueue(node, frame) {
            self.done(frame);
        }
    }

    /// Handles a frame at a node. Returns a packet for this node.
    fn on_frame(&mut self, air: &mut Air, node: u16, octets: &[u8]) -> Option<Vec<u8>> {
        let frame = MacFrame::read(fcs::check(octets).ok()?).ok()?;
        let Ok(stack) = HeaderStack::read(frame.links(), frame.payload) else {
            self.station(node).refused += 1;
            return None;
        };
        if let (Some(hops_left), LinkAddress::Short(to)) = (stack.hops_left, stack.links.destination)
            && to != node
        {
            self.on_mesh(air, node, to, MeshHeader { hops_left, links: stack.links }, frame.payload);
            return None;
        }
        match (stack.fragment, stack.content) {
            (None, StackContent::Ipv6(octets)) => {
                let mut out = [0; PACKET_ROOM];
                match decompress(&self.settings, stack.links, octets, &mut out) {
                    Ok(done) => self.on_ipv6(air, node, out.get(..done.len)?.to_vec()),
                    Err(_) => self.refuse(node),
                }
            }
            (None, StackContent::Rohc(octets)) => {
                self.on_rohc(air, node, stack.links.source, octets.get(dispatch::ROHC.len()..)?)
            }
            (None, StackContent::Part(_)) => self.refuse(node),
            (Some(header), content) => self.on_fragment(air, node, stack.links, header, content.octets()),
        }
    }

    fn refuse(&mut self, node: u16) -> Option<Vec<u8>> {
        self.station(node).refused += 1;
        None
    }

    /// Forwards a frame for another node, unchanged except for Hops Left. RFC 4944, section 5.2.
    fn on_mesh(&mut self, air: &mut Air, node: u16, to: u16, mesh: MeshHeader, payload: &[u8]) {
        let mut payload = payload.to_vec();
        let mesh = MeshHeader { hops_left: mesh.hops_left.saturating_sub(1), ..mesh };
        if mesh.hops_left == 0 || mesh.write(&mut payload).is_none() {
            self.station(node).refused += 1;
            return;
        }
        self.enqueue(air, node, self.topology.next_hop(node, to), &payload);
    }

    fn on_fragment(
        &mut self,
        air: &mut Air,
        node: u16,
        links: Links,
        header: FragmentHeader,
        content: &[u8],
    ) -> Option<Vec<u8>> {
        let forwards = self.forwarding == Forwarding::Single && !self.is_mesh();
        if forwards && self.forward(air, node, links, header, content) {
            return None;
        }
        let most = match self.forwarding {
            Forwarding::Single => ASSEMBLIES,
            Forwarding::Reassembled(most) => usize::from(most.max(1)),
        };
        let settings = self.settings;
        let (kind, octets) =
            self.station(node).assemble(air.now(), &settings, links, header, content, most)?;
        match kind {
            DatagramKind::Ipv6 => self.on_ipv6(air, node, octets),
            DatagramKind::Rohc => self.on_rohc(air, node, links.source, &octets),
        }
    }

    /// Forwards a fragment. Returns false if it is for this node.
    fn forward(
        &mut self,
        air: &mut Air,
        node: u16,
        from: Links,
        header: FragmentHeader,
        content: &[u8],
    ) -> bool {
        let (now, topology, settings) = (air.now(), self.topology, self.settings);
        let station = self.station(node);
        let next_tag = station.tag.wrapping_add(1);
        if header.datagram_offset.is_some() {
            return match station.forwarder().subsequent(now, from, header, content) {
                Forward::To { links, header } => {
                    let fragment = Fragment { header: Some(header), content };
                    self.put(air, node, short(links.destination), None, &fragment);
                    true
                }
                Forward::Duplicate => true,
                Forward::Unknown => false,
            };
        }
        let route = |ip: &Ipv6| {
            let to = packet::node(&ip.destination).filter(|to| *to != node && *to < topology.nodes())?;
            Some(Route { links: links(node, topology.next_hop(node, to)), datagram_tag: next_tag })
        };
        let (mut scratch, mut out) = ([0; PACKET_ROOM], [0; PACKET_ROOM]);
        let first = FirstFragment { links: from, header, content, room: FRAME_ROOM, scratch: &mut scratch };
        match station.forwarder().first(now, &settings, first, route, &mut out) {
            Ok(None) => false,
            Ok(Some((route, fragments))) => {
                station.tag = next_tag;
                let hop = short(route.links.destination);
                fragments.for_each(|fragment| self.put(air, node, hop, None, &fragment));
                true
            }
            Err(_) => {
                station.refused += 1;
                true
            }
        }
    }

    /// Handles a whole IPv6 packet at a node.
    fn on_ipv6(&mut self, air: &mut Air, node: u16, mut ipv6: Vec<u8>) -> Option<Vec<u8>> {
        let header = Ipv6::read(&ipv6).ok()?;
        let (Some(from), Some(to)) = (packet::node(&header.source), packet::node(&header.destination)) else {
            return self.refuse(node);
        };
        if to != node {
            if header.hop_limit <= 1 || to >= self.topology.nodes() {
                return self.refuse(node);
            }
            let _ = Ipv6 { hop_limit: header.hop_limit - 1, ..header }.write(&mut ipv6, 0);
            match self.compression {
                FrameCompression::Rohc(_) => self.submit(air, node, to, &ipv6),
                FrameCompression::None | FrameCompression::Iphc | FrameCompression::RohcInUdp(_) => {
                    self.route(air, node, to, &ipv6);
                }
            }
            return None;
        }
        match tunnel::unwrap(&ipv6) {
            Some(rohc) if matches!(self.compression, FrameCompression::RohcInUdp(_)) => {
                self.on_rohc(air, node, LinkAddress::Short(from), rohc)
            }
            _ => Some(ipv6),
        }
    }

    /// Handles a ROHC packet at the end of its channel.
    fn on_rohc(&mut self, air: &mut Air, node: u16, peer: LinkAddress, rohc: &[u8]) -> Option<Vec<u8>> {
        let now = air.now();
        let terminal = self.terminal(node, short(peer))?;
        let was_waiting = terminal.feedback_at().is_some();
        let mut room = [0; ROHC_ROOM];
        let result = terminal.decompress(now, rohc, &mut room, &mut FeedbackTotals::default());
        if let Some(at) = terminal.feedback_at().filter(|_| !was_waiting) {
            air.wake(node, at);
        }
        match result {
            Ok((done, _)) if done.len == 0 => None,
            Ok((_, ipv6)) if matches!(self.compression, FrameCompression::RohcInUdp(_)) => Some(ipv6),
            Ok((_, ipv6)) => self.on_ipv6(air, node, ipv6),
            // Separate feedback.
            Err(thinair_rohc::DecompressError::NothingYet) => None,
            Err(_) => self.refuse(node),
        }
    }
}

const fn links(from: u16, to: u16) -> Links {
    Links { source: LinkAddress::Short(from), destination: LinkAddress::Short(to) }
}

/// All addresses are short here.
const fn short(address: LinkAddress) -> u16 {
    match address {
        LinkAddress::Short(address) => address,
        LinkAddress::None | LinkAddress::Extended(_) => u16::MAX,
    }
}
