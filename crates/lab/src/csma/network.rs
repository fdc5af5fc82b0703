//! All nodes, and what happens among them: unslotted CSMA-CA, IEEE 802.15.4-2006, section 7.5.1.4.

use core::time::Duration;

use thinair_wire::time::Instant;

use super::bit_errors::Survival;
use super::counters::{Counters, Tally};
use super::framing::{ACK, Framing};
use super::node::{Assembly, Frame, Near, Node, Phase, Reception};
use super::{AccessFailure, Config, Forwarding, MacConfig, Topology};
use crate::queue::EventQueue;
use crate::streams::{Purpose, Streams};

/// Packets that a node puts together at a time if nobody on the way does.
const ASSEMBLIES: usize = 64;

/// A packet at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival<P> {
    /// When.
    pub at: Instant,
    /// Who sent it.
    pub from: u16,
    /// Where it is.
    pub to: u16,
    /// It.
    pub packet: P,
}

/// Nodes that carry packets of a kind `P`.
///
/// **[`send`](Self::send) at the time that [`now`](Self::now) tells; take what arrives with
/// [`next_before`](Self::next_before), up to the time at which the next packet is to be sent.**
#[derive(Clone, Debug)]
pub struct Network<P> {
    mac: Mac,
    topology: Topology,
    framing: Framing,
    forwarding: Forwarding,
    survival: Survival,
    nodes: Vec<Node>,
    packets: Vec<Packet<P>>,
    /// Places of packets that are empty.
    free: Vec<u32>,
    events: EventQueue<Event>,
    /// Since when nodes count.
    since: Instant,
    handled: u64,
}

/// A packet under way.
#[derive(Clone, Debug)]
struct Packet<P> {
    content: Option<P>,
    from: u16,
    to: u16,
    octets: u16,
    frames: u16,
    /// Frames and assemblies that are of it.
    live: u32,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// Back-off and assessment are over.
    Assessed(u16),
    /// The radio has turned around, and sends.
    Send(u16),
    Sent(u16),
    /// The same for an acknowledgment.
    Acknowledge(u16),
    Acknowledged(u16),
    /// macAckWaitDuration is over.
    Silence(u16),
}

/// [`MacConfig`] in nanoseconds, within bounds.
#[derive(Clone, Copy, Debug)]
struct Mac {
    unit: u64,
    cca: u64,
    turnaround: u64,
    ack_wait: u64,
    octet: u64,
    min_be: u8,
    max_be: u8,
    max_csma_backoffs: u8,
    max_frame_retries: u8,
    access_failure: AccessFailure,
    queue: u16,
}

impl<P> Network<P> {
    /// All queues empty, at time zero. Random numbers follow from `streams` and `run`, those of each node by itself.
    pub fn new(config: &Config, streams: Streams, run: u32) -> Self {
        let topology = config.topology;
        let (sense, disturb) = (config.mac.sense_range.max(1), config.mac.interference_range.max(1));
        let reach = u16::from(sense.max(disturb));
        let near = |node: u16| -> Box<[Near]> {
            (0..topology.nodes())
                .filter(|other| (1..=reach).contains(&topology.distance(node, *other)))
                .map(|other| {
                    let hops = topology.distance(node, other);
                    Near::new(other, hops == 1, hops <= u16::from(disturb), hops <= u16::from(sense))
                })
                .collect()
        };
        let nodes = (0..topology.nodes())
            .map(|node| Node::new(near(node), streams.random(run, node.into(), Purpose::Choice)))
            .collect();
        Self {
            mac: Mac::new(&config.mac),
            topology,
            framing: config.framing,
            forwarding: config.forwarding,
            survival: Survival::new(config.errors.clone()),
            nodes,
            packets: Vec::new(),
            free: Vec::new(),
            events: EventQueue::new(),
            since: Instant::ZERO,
            handled: 0,
        }
    }

    /// The time of what happened last.
    pub fn now(&self) -> Instant {
        self.events.now()
    }

    /// Events that were handled.
    pub const fn events(&self) -> u64 {
        self.handled
    }

    /// All nodes count from zero, and from now.
    pub fn clear_counters(&mut self) {
        self.since = self.now();
        for node in &mut self.nodes {
            node.tally = Tally::default();
        }
    }

    /// What a node has done since it counts, up to now. Frames count when they begin.
    pub fn counters(&self, node: u16) -> Counters {
        let elapsed = self.now().nanos_since(self.since);
        self.nodes.get(usize::from(node)).map_or_else(Counters::default, |node| node.tally.told(elapsed))
    }

    /// Frames that wait at a node.
    pub fn waiting(&self, node: u16) -> usize {
        self.nodes.get(usize::from(node)).map_or(0, |node| node.queue.len())
    }

    /// A node sends a packet of so many octets to another one, now. Nothing happens if one of them does not exist, or both
    /// are the same.
    pub fn send(&mut self, from: u16, to: u16, octets: u16, content: P) {
        if from.max(to) >= self.topology.nodes() || from == to {
            return;
        }
        let frames = self.framing.frames(octets);
        let packet = Packet { content: Some(content), from, to, octets, frames, live: 1 };
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
        for frame in 0..frames {
            self.enqueue(from, place, frame);
        }
        self.release(place);
    }

    /// The next packet that arrives before `end`; if none does, it is `end` now.
    pub fn next_before(&mut self, end: Instant) -> Option<Arrival<P>> {
        loop {
            let (_, event) = self.events.next_before(end)?;
            if let Some(arrival) = self.handle(event) {
                return Some(arrival);
            }
        }
    }

    /// The next packet that arrives; if none does, it is the time of what happened last.
    pub fn next_arrival(&mut self) -> Option<Arrival<P>> {
        loop {
            let (_, event) = self.events.next()?;
            if let Some(arrival) = self.handle(event) {
                return Some(arrival);
            }
        }
    }

    fn handle(&mut self, event: Event) -> Option<Arrival<P>> {
        self.handled += 1;
        match event {
            Event::Assessed(node) => self.on_assessed(node),
            Event::Send(node) => self.on_send(node),
            Event::Sent(node) => return self.on_sent(node),
            Event::Acknowledge(node) => self.on_acknowledge(node),
            Event::Acknowledged(node) => self.on_acknowledged(node),
            Event::Silence(node) => self.on_silence(node),
        }
        None
    }

    /// Whether nothing happens any more by itself.
    pub fn is_quiet(&self) -> bool {
        self.events.is_empty()
    }

    fn node(&mut self, node: u16) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }

    fn after(&mut self, nanos: u64, event: Event) {
        let time = Instant::from_nanos(self.now().as_nanos() + nanos);
        self.events.schedule(time, event);
    }

    /// Puts a part of a packet behind the others, if there is room.
    fn enqueue(&mut self, node: u16, place: u32, frame: u16) {
        let packet = &mut self.packets[place as usize];
        let to = self.topology.next_hop(node, packet.to);
        let most = usize::from(self.mac.queue);
        let holder = &mut self.nodes[usize::from(node)];
        if holder.queue.len() >= most {
            holder.tally.overflowed += 1;
            return;
        }
        packet.live += 1;
        holder.queue.push_back(Frame { packet: place, to, number: frame });
        if holder.phase == Phase::Idle && holder.acknowledges.is_none() {
            self.access(node, true);
        }
    }

    fn release(&mut self, place: u32) {
        let packet = &mut self.packets[place as usize];
        packet.live -= 1;
        if packet.live == 0 {
            packet.content = None;
            self.free.push(place);
        }
    }

    /// Begins an access to the channel for the frame at the front. `is_first`: it was not sent yet.
    fn access(&mut self, node: u16, is_first: bool) {
        let min_be = self.mac.min_be;
        let this = self.node(node);
        if is_first {
            this.retries = 0;
            this.dsn = this.dsn.wrapping_add(1);
        }
        (this.nb, this.be) = (0, min_be);
        self.back_off(node);
    }

    fn back_off(&mut self, node: u16) {
        let this = self.node(node);
        this.phase = Phase::Access;
        let periods = this.random.below(1 << this.be);
        self.after(periods * self.mac.unit + self.mac.cca, Event::Assessed(node));
    }

    fn on_assessed(&mut self, node: u16) {
        let (now, mac) = (self.now(), self.mac);
        let this = self.node(node);
        let clear = this.sensed == 0
            && !this.is_transmitting
            && this.acknowledges.is_none()
            && now.nanos_since(this.clear_since) >= mac.cca;
        if clear {
            this.phase = Phase::Turnaround;
            return self.after(mac.turnaround, Event::Send(node));
        }
        this.tally.busy += 1;
        (this.nb, this.be) = (this.nb + 1, (this.be + 1).min(mac.max_be));
        if this.nb <= mac.max_csma_backoffs {
            return self.back_off(node);
        }
        this.tally.access_failures += 1;
        match mac.access_failure {
            AccessFailure::Drop => self.drop_frame(node),
            AccessFailure::Retry => self.retry(node),
        }
    }

    /// The frame at the front goes again, if it may.
    fn retry(&mut self, node: u16) {
        let most = self.mac.max_frame_retries;
        let this = self.node(node);
        if this.retries >= most {
            return self.drop_frame(node);
        }
        this.retries += 1;
        self.access(node, false);
    }

    fn drop_frame(&mut self, node: u16) {
        self.node(node).tally.dropped += 1;
        self.finish(node);
    }

    /// The frame at the front is done with, one way or the other.
    fn finish(&mut self, node: u16) {
        let this = self.node(node);
        this.phase = Phase::Idle;
        let done = this.queue.pop_front();
        let more = !this.queue.is_empty();
        if let Some(frame) = done {
            self.release(frame.packet);
        }
        if more {
            self.access(node, true);
        }
    }

    fn on_send(&mut self, node: u16) {
        let this = self.node(node);
        let Some(frame) = this.queue.front().copied() else { return };
        this.phase = Phase::Sending;
        this.tally.sent += 1;
        this.tally.retries += u32::from(this.retries > 0);
        let octets = self.octets(&frame);
        let air = self.put_on_air(node, frame.to, octets);
        self.after(air, Event::Sent(node));
    }

    /// Octets of a frame on the air.
    fn octets(&self, frame: &Frame) -> u16 {
        let octets = self.packets.get(frame.packet as usize).map_or(0, |packet| packet.octets);
        self.framing.on_air(octets, frame.number)
    }

    /// A frame of so many octets begins; how long it lasts.
    fn put_on_air(&mut self, node: u16, to: u16, octets: u16) -> u64 {
        let now = self.now();
        let air = u64::from(octets) * self.mac.octet;
        let end = Instant::from_nanos(now.as_nanos() + air);
        let this = self.node(node);
        this.is_transmitting = true;
        // Whoever sends does not hear.
        if let Reception::Whole(from) = this.reception {
            this.reception = Reception::Destroyed(from);
        }
        this.tally.octets += u64::from(octets);
        this.tally.transmit += air;
        for at in 0..this.near.len() {
            let near = self.nodes[usize::from(node)].near[at];
            let other = &mut self.nodes[usize::from(near.node)];
            other.sensed += u16::from(near.senses());
            if near.is_disturbed() {
                other.disturbing += 1;
                if let Reception::Whole(from) = other.reception {
                    other.reception = Reception::Destroyed(from);
                }
            }
            if near.understands() && !other.is_transmitting {
                let counted = end.nanos_since(other.counted_until.max(now));
                other.counted_until = other.counted_until.max(end);
                match near.node == to {
                    true => other.tally.receive += counted,
                    false => other.tally.overhear += counted,
                }
                if other.disturbing == 1 {
                    other.reception = Reception::Whole(node);
                }
            }
        }
        air
    }

    /// A frame ends; whether it has arrived at `to`.
    fn take_off_air(&mut self, node: u16, to: u16, octets: u16) -> bool {
        let now = self.now();
        let this = self.node(node);
        this.is_transmitting = false;
        this.clear_since = now;
        let mut arrived = false;
        for at in 0..this.near.len() {
            let near = self.nodes[usize::from(node)].near[at];
            let other = &mut self.nodes[usize::from(near.node)];
            if near.senses() {
                other.sensed -= 1;
                other.clear_since = now;
            }
            other.disturbing -= u16::from(near.is_disturbed());
            let whole = other.reception == Reception::Whole(node);
            if whole || other.reception == Reception::Destroyed(node) {
                other.reception = Reception::Nothing;
            }
            if near.node == to {
                if !whole {
                    other.tally.collisions += 1;
                } else if self.survival.arrives(now, octets, &mut other.random) {
                    arrived = true;
                } else {
                    other.tally.damaged += 1;
                }
            }
        }
        arrived
    }

    fn on_sent(&mut self, node: u16) -> Option<Arrival<P>> {
        let this = self.node(node);
        let (dsn, front) = (this.dsn, this.queue.front().copied());
        let frame = front?;
        this.phase = Phase::Waiting;
        let octets = self.octets(&frame);
        let arrived = self.take_off_air(node, frame.to, octets);
        let receiver = self.node(frame.to);
        if !arrived || receiver.is_transmitting || receiver.acknowledges.is_some() {
            self.after(self.mac.ack_wait, Event::Silence(node));
            return None;
        }
        receiver.acknowledges = Some(node);
        let is_new = receiver.is_new(node, dsn);
        receiver.tally.duplicates += u32::from(!is_new);
        self.after(self.mac.turnaround, Event::Acknowledge(frame.to));
        if is_new { self.on_frame(frame) } else { None }
    }

    /// A frame has come to a node, for the first time.
    fn on_frame(&mut self, frame: Frame) -> Option<Arrival<P>> {
        let Frame { packet: place, to: node, number } = frame;
        let packet = &self.packets[place as usize];
        let (is_end, frames) = (packet.to == node, packet.frames);
        let most = match self.forwarding {
            Forwarding::Single if !is_end => {
                self.enqueue(node, place, number);
                return None;
            }
            Forwarding::Single => ASSEMBLIES,
            Forwarding::Reassembled(most) => usize::from(most.max(1)),
        };
        if frames > 1 && !self.assemble(node, place, frames, most) {
            return None;
        }
        if !is_end {
            (0..frames).for_each(|frame| self.enqueue(node, place, frame));
            return None;
        }
        let (at, packet) = (self.now(), &mut self.packets[place as usize]);
        let content = packet.content.take()?;
        Some(Arrival { at, from: packet.from, to: node, packet: content })
    }

    /// Counts a frame of a packet; whether all are there.
    fn assemble(&mut self, node: u16, place: u32, frames: u16, most: usize) -> bool {
        let this = self.node(node);
        let Some(at) = this.assemblies.iter().position(|assembly| assembly.packet == place) else {
            let oldest = (this.assemblies.len() >= most).then(|| this.assemblies.remove(0));
            this.assemblies.push(Assembly { packet: place, frames: 1 });
            self.packets[place as usize].live += 1;
            if let Some(oldest) = oldest {
                self.release(oldest.packet);
            }
            return false;
        };
        this.assemblies[at].frames += 1;
        if this.assemblies[at].frames < frames {
            return false;
        }
        this.assemblies.remove(at);
        // The frame that was last still counts.
        self.release(place);
        true
    }

    fn on_acknowledge(&mut self, node: u16) {
        let this = self.node(node);
        let Some(to) = this.acknowledges else { return };
        this.tally.acks += 1;
        let air = self.put_on_air(node, to, ACK);
        self.after(air, Event::Acknowledged(node));
    }

    fn on_acknowledged(&mut self, node: u16) {
        let Some(to) = self.node(node).acknowledges.take() else { return };
        if self.take_off_air(node, to, ACK) {
            self.finish(to);
        } else {
            let elapsed = self.mac.turnaround + u64::from(ACK) * self.mac.octet;
            self.after(self.mac.ack_wait.saturating_sub(elapsed), Event::Silence(to));
        }
        // What has come in the meantime goes on.
        let this = self.node(node);
        if this.phase == Phase::Idle && !this.queue.is_empty() {
            self.access(node, true);
        }
    }

    fn on_silence(&mut self, node: u16) {
        self.node(node).tally.unacknowledged += 1;
        self.retry(node);
    }
}

impl Mac {
    fn new(config: &MacConfig) -> Self {
        let nanos =
            |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX >> 24);
        Self {
            unit: nanos(config.unit_backoff_period),
            cca: nanos(config.cca),
            turnaround: nanos(config.turnaround),
            ack_wait: nanos(config.ack_wait),
            octet: nanos(config.octet),
            min_be: config.min_be.min(8),
            max_be: config.max_be.min(8),
            max_csma_backoffs: config.max_csma_backoffs,
            max_frame_retries: config.max_frame_retries,
            access_failure: config.access_failure,
            queue: config.queue,
        }
    }
}
