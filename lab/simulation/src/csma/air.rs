//! The radios of all nodes, and what is on the air: unslotted CSMA-CA, IEEE 802.15.4-2006, section 7.5.1.4.
//!
//! What is in a frame is the business of others ([`Load`]): here it has a length, a sender and an addressee.

use core::time::Duration;

use thinair_wire::time::Instant;

use super::bit_errors::Survival;
use super::counters::{Counters, Tally};
use super::framing::ACK;
use super::node::{Frame, Near, Node, Phase, Reception};
use super::{AccessFailure, Config, MacConfig};
use crate::queue::EventQueue;
use crate::streams::{Purpose, Streams};

/// What frames are of.
pub(super) trait Load {
    /// Octets of a frame on the air.
    fn on_air(&self, frame: &Frame) -> u16;

    /// A node sends a frame, for the first time or again.
    fn begins(&mut self, now: Instant, frame: &Frame);
}

/// What those who know what is in frames have to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// A frame has come to its addressee, for the first time.
    Received(Frame),
    /// A node is done with a frame, one way or the other.
    Done(Frame),
    /// It is the time that somebody has asked for.
    Timer(u16),
}

/// All nodes.
#[derive(Clone, Debug)]
pub(super) struct Air {
    mac: Mac,
    survival: Survival,
    nodes: Vec<Node>,
    events: EventQueue<Event>,
    /// Since when nodes count.
    since: Instant,
    handled: u64,
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
    Timer(u16),
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

impl Air {
    /// All queues empty, at time zero. Random numbers follow from `streams` and `run`, those of each node by itself.
    pub(super) fn new(config: &Config, streams: Streams, run: u32) -> Self {
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
            survival: Survival::new(config.errors.clone()),
            nodes,
            events: EventQueue::new(),
            since: Instant::ZERO,
            handled: 0,
        }
    }

    /// The time of what happened last.
    pub(super) fn now(&self) -> Instant {
        self.events.now()
    }

    /// Events that were handled.
    pub(super) const fn events(&self) -> u64 {
        self.handled
    }

    /// All nodes count from zero, and from now.
    pub(super) fn clear_counters(&mut self) {
        self.since = self.now();
        for node in &mut self.nodes {
            node.tally = Tally::default();
        }
    }

    /// What a node has done since it counts, up to now.
    pub(super) fn counters(&self, node: u16) -> Counters {
        let elapsed = self.now().nanos_since(self.since);
        self.nodes.get(usize::from(node)).map_or_else(Counters::default, |node| node.tally.told(elapsed))
    }

    /// Frames that wait at a node.
    pub(super) fn waiting(&self, node: u16) -> usize {
        self.nodes.get(usize::from(node)).map_or(0, |node| node.queue.len())
    }

    /// The macDSN of the frame at the front of a node, once its turn has come.
    pub(super) fn dsn(&self, node: u16) -> u8 {
        self.nodes.get(usize::from(node)).map_or(0, |node| node.dsn)
    }

    /// The macDSN that the next frame will have that a node is given.
    pub(super) fn next_dsn(&self, node: u16) -> u8 {
        let Some(node) = self.nodes.get(usize::from(node)) else { return 0 };
        // The frame at the front has its own as soon as its turn has come.
        let ahead = node.queue.len() + usize::from(node.phase == Phase::Idle);
        node.dsn.wrapping_add(ahead as u8)
    }

    /// Puts a frame behind the others of a node, if there is room; whether there was.
    pub(super) fn enqueue(&mut self, node: u16, frame: Frame) -> bool {
        let most = usize::from(self.mac.queue);
        let holder = self.node(node);
        if holder.queue.len() >= most {
            holder.tally.overflowed += 1;
            return false;
        }
        holder.queue.push_back(frame);
        if holder.phase == Phase::Idle && holder.acknowledges.is_none() {
            self.access(node, true);
        }
        true
    }

    /// [`Happened::Timer`] will happen.
    pub(super) fn wake(&mut self, node: u16, at: Instant) {
        self.events.schedule(at, Event::Timer(node));
    }

    /// Lets happen what is next and before `end`, if there is an end; none if nothing is. What it was is told, if others have
    /// to know.
    pub(super) fn next(&mut self, end: Option<Instant>, load: &mut impl Load) -> Option<Option<Happened>> {
        let (_, event) = match end {
            Some(end) => self.events.next_before(end)?,
            None => self.events.next()?,
        };
        Some(self.handle(event, load))
    }

    fn handle(&mut self, event: Event, load: &mut impl Load) -> Option<Happened> {
        self.handled += 1;
        match event {
            Event::Assessed(node) => return self.on_assessed(node),
            Event::Send(node) => self.on_send(node, load),
            Event::Sent(node) => return self.on_sent(node, load),
            Event::Acknowledge(node) => self.on_acknowledge(node),
            Event::Acknowledged(node) => return self.on_acknowledged(node),
            Event::Silence(node) => return self.on_silence(node),
            Event::Timer(node) => return Some(Happened::Timer(node)),
        }
        None
    }

    /// Whether nothing happens any more by itself.
    pub(super) fn is_quiet(&self) -> bool {
        self.events.is_empty()
    }

    fn node(&mut self, node: u16) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }

    fn after(&mut self, nanos: u64, event: Event) {
        let time = Instant::from_nanos(self.now().as_nanos() + nanos);
        self.events.schedule(time, event);
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

    fn on_assessed(&mut self, node: u16) -> Option<Happened> {
        let (now, mac) = (self.now(), self.mac);
        let this = self.node(node);
        let clear = this.sensed == 0
            && !this.is_transmitting
            && this.acknowledges.is_none()
            && now.nanos_since(this.clear_since) >= mac.cca;
        if clear {
            this.phase = Phase::Turnaround;
            self.after(mac.turnaround, Event::Send(node));
            return None;
        }
        this.tally.busy += 1;
        (this.nb, this.be) = (this.nb + 1, (this.be + 1).min(mac.max_be));
        if this.nb <= mac.max_csma_backoffs {
            self.back_off(node);
            return None;
        }
        this.tally.access_failures += 1;
        match mac.access_failure {
            AccessFailure::Drop => self.drop_frame(node),
            AccessFailure::Retry => self.retry(node),
        }
    }

    /// The frame at the front goes again, if it may.
    fn retry(&mut self, node: u16) -> Option<Happened> {
        let most = self.mac.max_frame_retries;
        let this = self.node(node);
        if this.retries >= most {
            return self.drop_frame(node);
        }
        this.retries += 1;
        self.access(node, false);
        None
    }

    fn drop_frame(&mut self, node: u16) -> Option<Happened> {
        self.node(node).tally.dropped += 1;
        self.finish(node)
    }

    /// The frame at the front is done with, one way or the other.
    fn finish(&mut self, node: u16) -> Option<Happened> {
        let this = self.node(node);
        this.phase = Phase::Idle;
        let done = this.queue.pop_front();
        if !this.queue.is_empty() {
            self.access(node, true);
        }
        done.map(Happened::Done)
    }

    fn on_send(&mut self, node: u16, load: &mut impl Load) {
        let now = self.now();
        let this = self.node(node);
        let Some(frame) = this.queue.front().copied() else { return };
        this.phase = Phase::Sending;
        this.tally.sent += 1;
        this.tally.retries += u32::from(this.retries > 0);
        load.begins(now, &frame);
        let air = self.put_on_air(node, frame.to, load.on_air(&frame));
        self.after(air, Event::Sent(node));
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

    fn on_sent(&mut self, node: u16, load: &impl Load) -> Option<Happened> {
        let this = self.node(node);
        let (dsn, front) = (this.dsn, this.queue.front().copied());
        let frame = front?;
        this.phase = Phase::Waiting;
        let arrived = self.take_off_air(node, frame.to, load.on_air(&frame));
        let receiver = self.node(frame.to);
        if !arrived || receiver.is_transmitting || receiver.acknowledges.is_some() {
            self.after(self.mac.ack_wait, Event::Silence(node));
            return None;
        }
        receiver.acknowledges = Some(node);
        let is_new = receiver.is_new(node, dsn);
        receiver.tally.duplicates += u32::from(!is_new);
        self.after(self.mac.turnaround, Event::Acknowledge(frame.to));
        is_new.then_some(Happened::Received(frame))
    }

    fn on_acknowledge(&mut self, node: u16) {
        let this = self.node(node);
        let Some(to) = this.acknowledges else { return };
        this.tally.acks += 1;
        let air = self.put_on_air(node, to, ACK);
        self.after(air, Event::Acknowledged(node));
    }

    fn on_acknowledged(&mut self, node: u16) -> Option<Happened> {
        let to = self.node(node).acknowledges.take()?;
        let mut done = None;
        if self.take_off_air(node, to, ACK) {
            done = self.finish(to);
        } else {
            let elapsed = self.mac.turnaround + u64::from(ACK) * self.mac.octet;
            self.after(self.mac.ack_wait.saturating_sub(elapsed), Event::Silence(to));
        }
        // What has come in the meantime goes on.
        let this = self.node(node);
        if this.phase == Phase::Idle && !this.queue.is_empty() {
            self.access(node, true);
        }
        done
    }

    fn on_silence(&mut self, node: u16) -> Option<Happened> {
        self.node(node).tally.unacknowledged += 1;
        self.retry(node)
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
