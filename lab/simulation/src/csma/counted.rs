//! Packets whose frames are a handful of numbers: which packet, which part of it, how long.

use thinair_wire::time::Instant;

use super::air::{Air, Load};
use super::framing::Plain;
use super::network::Arrival;
use super::node::Frame;
use super::{Forwarding, Packet, Topology};

/// Packets that a node puts together at a time if nobody on the way does.
pub(super) const ASSEMBLIES: usize = 64;

/// All packets that are under way.
#[derive(Clone, Debug)]
pub(super) struct Counted<P> {
    framing: Plain,
    forwarding: Forwarding,
    topology: Topology,
    packets: Vec<UnderWay<P>>,
    /// Places of packets that are empty.
    free: Vec<u32>,
    /// Of all nodes, as few have any; those of a node with the oldest first.
    assemblies: Vec<Assembly>,
}

/// A packet.
#[derive(Clone, Debug)]
struct UnderWay<P> {
    content: Option<P>,
    from: u16,
    to: u16,
    octets: u16,
    frames: u16,
    /// Frames and assemblies that are of it.
    live: u32,
}

/// Parts of a packet that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Assembly {
    packet: u32,
    node: u16,
    frames: u16,
}

impl<P> Load for Counted<P> {
    fn on_air(&self, frame: &Frame) -> u16 {
        let octets = self.packets.get(frame.load as usize).map_or(0, |packet| packet.octets);
        self.framing.on_air(octets, frame.part)
    }

    fn begins(&mut self, _now: Instant, _frame: &Frame) {}
}

impl<P: Packet> Counted<P> {
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
                // Few packets are under way at a time, in many networks.
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

    /// Puts parts of a packet behind the others of a node, if there is room.
    fn enqueue(&mut self, air: &mut Air, node: u16, place: u32, parts: core::ops::Range<u16>) {
        let packet = &mut self.packets[place as usize];
        let to = self.topology.next_hop(node, packet.to);
        for part in parts {
            packet.live += u32::from(air.enqueue(node, Frame { load: place, part, to }));
        }
    }

    /// Something that was of a packet is not any more.
    fn release(&mut self, place: u32) {
        let packet = &mut self.packets[place as usize];
        packet.live -= 1;
        if packet.live == 0 {
            packet.content = None;
            self.free.push(place);
        }
    }

    /// A node is done with a frame.
    pub(super) fn done(&mut self, frame: Frame) {
        self.release(frame.load);
    }

    /// A frame has come to its addressee.
    pub(super) fn receive(&mut self, air: &mut Air, frame: Frame) -> Option<Arrival<P>> {
        let Frame { load: place, to: node, part } = frame;
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
        Some(Arrival { at: air.now(), from: packet.from, to: node, packet: content })
    }

    /// Counts a frame of a packet; whether all are there.
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
        // The frame that was last still counts.
        self.release(place);
        true
    }
}
