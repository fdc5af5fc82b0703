//! Packets whose frames are represented by numbers: packet, part, length.

use thinair_wire::time::Instant;

use super::air::{Air, FrameContents};
use super::framing::Plain;
use super::network::PacketArrival;
use super::node::QueuedFrame;
use super::{CsmaPacket, Forwarding, Topology};

/// Maximum number of packets that a node reassembles at a time if nodes on the way do not.
pub(super) const ASSEMBLIES: usize = 64;

/// All packets in flight.
#[derive(Clone, Debug)]
pub(super) struct Counted<P> {
    framing: Plain,
    forwarding: Forwarding,
    topology: Topology,
    packets: Vec<UnderWay<P>>,
    /// Free slots for packets.
    free: Vec<u32>,
    /// Reassemblies of all nodes, as few have any; those of a node in their order.
    assemblies: Vec<Assembly>,
}

/// Packet in flight.
#[derive(Clone, Debug)]
struct UnderWay<P> {
    content: Option<P>,
    from: u16,
    to: u16,
    octets: u16,
    frames: u16,
    /// Number of its frames and reassemblies.
    live: u32,
}

/// Parts of a packet that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Assembly {
    packet: u32,
    node: u16,
    frames: u16,
}

impl<P> FrameContents for Counted<P> {
    fn on_air(&self, frame: &QueuedFrame) -> u16 {
        let octets = self.packets.get(frame.load as usize).map_or(0, |packet| packet.octets);
        self.framing.on_air(octets, frame.part)
    }

    fn begins(&mut self, _now: Instant, _frame: &QueuedFrame) {}
}

impl<P: CsmaPacket> Counted<P> {
    pub(super) fn new(framing: Plain, forwarding: Forwarding, topology: Topology) -> Self {
        let (packets, free, assemblies) = Default::default();
        Self { framing, forwarding, topology, packets, free, assemblies }
    }

    pub(super) fn send(&mut self, air: &mut Air, from: u16, to: u16, content: P) {
        let octets = content.octets();
        let frames = self.framing.frames(octets);
        let packet = UnderWay { content: Some(content), from, to, octets, frames, live: 1 };
        let place = match self.free.pop() {
            Some(place) => {
                self.packets[place as usize] = packet;
                place
            }
            None => {
                // Few packets are in flight at a time, in many networks.
                if self.packets.len() == self.packets.capacity() {
                    self.packets.reserve_exact(1 + self.packets.len() / 2);
                }
                self.packets.push(packet);
                (self.packets.len() - 1) as u32
            }
        };
        self.enqueue(air, from, place, 0..frames);
        self.release(place);
    }

    /// Appends parts of a packet to a node's queue, as far as there is room.
    fn enqueue(&mut self, air: &mut Air, node: u16, place: u32, parts: core::ops::Range<u16>) {
        let packet = &mut self.packets[place as usize];
        let to = self.topology.next_hop(node, packet.to);
        for part in parts {
            packet.live += u32::from(air.enqueue(node, QueuedFrame { load: place, part, to }));
        }
    }

    /// Drops one reference to a packet.
    fn release(&mut self, place: u32) {
        let packet = &mut self.packets[place as usize];
        packet.live -= 1;
        if packet.live == 0 {
            packet.content = None;
            self.free.push(place);
        }
    }

    /// Releases a frame that a node has finished with.
    pub(super) fn done(&mut self, frame: QueuedFrame) {
        self.release(frame.load);
    }

    /// Handles a frame that has arrived at its addressee.
    pub(super) fn receive(&mut self, air: &mut Air, frame: QueuedFrame) -> Option<PacketArrival<P>> {
        let QueuedFrame { load: place, to: node, part } = frame;
        let packet = &self.packets[place as usize];
        let (is_end, frames) = (packet.to == node, packet.frames);
        let most = match self.forwarding {
            Forwarding::Single if !is_end => {
                self.enqueue(air, node, place, part..part + 1);
                return None;
            }
            Forwarding::Single => ASSEMBLIES,
            Forwarding::Reassembled(most) => usize::from(most.max(1)),
        };
        if frames > 1 && !self.assemble(node, place, frames, most) {
            return None;
        }
        if !is_end {
            self.enqueue(air, node, place, 0..frames);
            return None;
        }
        let packet = &mut self.packets[place as usize];
        let content = packet.content.take()?;
        Some(PacketArrival { at: air.now(), from: packet.from, to: node, packet: content })
    }

    /// Counts a frame of a packet. Returns true if all have arrived.
    fn assemble(&mut self, node: u16, place: u32, frames: u16, most: usize) -> bool {
        let found =
            self.assemblies.iter().position(|assembly| assembly.packet == place && assembly.node == node);
        let Some(at) = found else {
            let mut of_node = (0..self.assemblies.len()).filter(|at| self.assemblies[*at].node == node);
            let oldest = of_node.next().filter(|_| of_node.count() + 1 >= most);
            let oldest = oldest.map(|oldest| self.assemblies.remove(oldest));
            self.assemblies.push(Assembly { packet: place, node, frames: 1 });
            self.packets[place as usize].live += 1;
            if let Some(oldest) = oldest {
                self.release(oldest.packet);
            }
            return false;
        };
        self.assemblies[at].frames += 1;
        if self.assemblies[at].frames < frames {
            return false;
        }
        self.assemblies.remove(at);
        // The last frame's reference remains.
        self.release(place);
        true
    }
}
