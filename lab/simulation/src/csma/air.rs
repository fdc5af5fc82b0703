//! Radios of all nodes and their channel: unslotted CSMA-CA, IEEE 802.15.4-2006, section 7.5.1.4.
//!
//! Contents of frames are handled elsewhere ([`FrameContents`]): here a frame has a length, a sender and an addressee.

use core::time::Duration;

use thinair_wire::time::Instant;

use super::bit_errors::Survival;
use super::counters::{CompactCounters, NodeCounters};
use super::framing::ACK;
use super::node::{FramePhase, Near, Node, QueuedFrame, Reception};
use super::{AccessFailure, CsmaConfig, MacConfig};
use crate::queue::EventQueue;
use crate::streams::{Purpose, RandomStreams};

/// Contents of frames.
pub(super) trait FrameContents {
    /// Size of a frame on the air, in octets.
    fn on_air(&self, frame: &QueuedFrame) -> u16;

    /// Called when a node sends a frame, for the first time or again.
    fn begins(&mut self, now: Instant, frame: &QueuedFrame);
}

/// Event that the contents of frames depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// A frame has arrived at its addressee, for the first time.
    Received(QueuedFrame),
    /// A node has finished with a frame, successfully or not.
    Done(QueuedFrame),
    /// A requested timer has expired.
    Timer(u16),
}

/// All nodes.
#[derive(Clone, Debug)]
pub(super) struct Air {
    mac: Mac,
    survival: Survival,
    nodes: Vec<Node>,
    events: EventQueue<AirEvent>,
    /// Time since which nodes count.
    since: Instant,
    handled: u64,
}

#[derive(Clone, Copy, Debug)]
enum AirEvent {
    /// End of back-off and assessment.
    Assessed(u16),
    /// End of the radio's turnaround: transmission begins.
    Send(u16),
    Sent(u16),
    /// End of the turnaround before an acknowledgment.
    Acknowledge(u16),
    Acknowledged(u16),
    /// End of macAckWaitDuration.
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
    /// Creates the nodes with empty queues, at time zero. Random numbers depend on `streams` and `run`, separately for
    /// each node.
    pub(super) fn new(config: &CsmaConfig, streams: RandomStreams, run: u32) -> Self {
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

    /// Time of the latest event.
    pub(super) fn now(&self) -> Instant {
        self.events.now()
    }

    /// Number of handled events.
    pub(super) const fn events(&self) -> u64 {
        self.handled
    }

    /// Resets the counters of all nodes.
    pub(super) fn clear_counters(&mut self) {
        self.since = self.now();
        for node in &mut self.nodes {
            node.tally = CompactCounters::default();
        }
    }

    /// Counters of a node up to now, since their reset.
    pub(super) fn counters(&self, node: u16) -> NodeCounters {
        let elapsed = self.now().nanos_since(self.since);
        self.nodes.get(usize::from(node)).map_or_else(NodeCounters::default, |node| node.tally.after(elapsed))
    }

    /// Number of frames in a node's queue.
    pub(super) fn waiting(&self, node: u16) -> usize {
        self.nodes.get(usize::from(node)).map_or(0, |node| node.queue.len())
    }

    /// macDSN of the first frame in a node's queue, once its transmission has begun.
    pub(super) fn dsn(&self, node: u16) -> u8 {
        self.nodes.get(usize::from(node)).map_or(0, |node| node.dsn)
    }

    /// macDSN of the next frame that a node is given.
    pub(super) fn next_dsn(&self, node: u16) -> u8 {
        let Some(node) = self.nodes.get(usize::from(node)) else { return 0 };
        // The first frame has its macDSN once its transmission has begun.
        let ahead = node.queue.len() + usize::from(node.phase == FramePhase::Idle);
        node.dsn.wrapping_add(ahead as u8)
    }

    /// Appends a frame to a node's queue. Returns false if the queue is full.
    pub(super) fn enqueue(&mut self, node: u16, frame: QueuedFrame) -> bool {
        let most = usize::from(self.mac.queue);
        let holder = self.node(node);
        if holder.queue.len() >= most {
            holder.tally.overflowed += 1;
            return false;
        }
        holder.queue.push_back(frame);
        if holder.phase == FramePhase::Idle && holder.acknowledges.is_none() {
            self.access(node, true);
        }
        true
    }

    /// Schedules [`Happened::Timer`].
    pub(super) fn wake(&mut self, node: u16, at: Instant) {
        self.events.schedule(at, AirEvent::Timer(node));
    }

    /// Processes the next event before `end`, if there is an end; returns `None` if there is none. The inner value is
    /// the event, if the contents of frames depend on it.
    pub(super) fn next(
        &mut self,
        end: Option<Instant>,
        load: &mut impl FrameContents,
    ) -> Option<Option<Happened>> {
        let (_, event) = match end {
            Some(end) => self.events.next_before(end)?,
            None => self.events.next()?,
        };
        Some(self.handle(event, load))
    }

    fn handle(&mut self, event: AirEvent, load: &mut impl FrameContents) -> Option<Happened> {
        self.handled += 1;
        match event {
            AirEvent::Assessed(node) => return self.on_assessed(node),
            AirEvent::Send(node) => self.on_send(node, load),
            AirEvent::Sent(node) => return self.on_sent(node, load),
            AirEvent::Acknowledge(node) => self.on_acknowledge(node),
            AirEvent::Acknowledged(node) => return self.on_acknowledged(node),
            AirEvent::Silence(node) => return self.on_silence(node),
            AirEvent::Timer(node) => return Some(Happened::Timer(node)),
        }
        None
    }

    /// True if no event is scheduled.
    pub(super) fn is_quiet(&self) -> bool {
        self.events.is_empty()
    }

    fn node(&mut self, node: u16) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }

    fn after(&mut self, nanos: u64, event: AirEvent) {
        let time = Instant::from_nanos(self.now().as_nanos() + nanos);
        self.events.schedule(time, event);
    }

    /// Starts channel access for the first frame of the queue. `is_first`: it was not sent yet.
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
        this.phase = FramePhase::Access;
        let periods = this.random.below(1 << this.be);
        self.after(periods * self.mac.unit + self.mac.cca, AirEvent::Assessed(node));
    }

    fn on_assessed(&mut self, node: u16) -> Option<Happened> {
        let (now, mac) = (self.now(), self.mac);
        let this = self.node(node);
        let clear = this.sensed == 0
            && !this.is_transmitting
            && this.acknowledges.is_none()
            && now.nanos_since(this.clear_since) >= mac.cca;
        if clear {
            this.phase = FramePhase::Turnaround;
            self.after(mac.turnaround, AirEvent::Send(node));
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

    /// Retransmits the first frame, if it may be.
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

    /// Finishes the first frame, successfully or not.
    fn finish(&mut self, node: u16) -> Option<Happened> {
        let this = self.node(node);
        this.phase = FramePhase::Idle;
        let done = this.queue.pop_front();
        if !this.queue.is_empty() {
            self.access(node, true);
        }
        done.map(Happened::Done)
    }

    fn on_send(&mut self, node: u16, load: &mut impl FrameContents) {
        let now = self.now();
        let this = self.node(node);
        let Some(frame) = this.queue.front().copied() else { return };
        this.phase = FramePhase::Sending;
        this.tally.sent += 1;
        this.tally.retries += u32::from(this.retries > 0);
        load.begins(now, &frame);
        let air = self.put_on_air(node, frame.to, load.on_air(&frame));
        self.after(air, AirEvent::Sent(node));
    }

    /// Starts a transmission of `octets` octets. Returns its duration.
    fn put_on_air(&mut self, node: u16, to: u16, octets: u16) -> u64 {
        let now = self.now();
        let air = u64::from(octets) * self.mac.octet;
        let end = Instant::from_nanos(now.as_nanos() + air);
        let this = self.node(node);
        this.is_transmitting = true;
        // A sending radio does not receive.
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

    /// Ends a transmission. Returns true if it has arrived at `to`.
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

    fn on_sent(&mut self, node: u16, load: &impl FrameContents) -> Option<Happened> {
        let this = self.node(node);
        let (dsn, front) = (this.dsn, this.queue.front().copied());
        let frame = front?;
        this.phase = FramePhase::Waiting;
        let arrived = self.take_off_air(node, frame.to, load.on_air(&frame));
        let receiver = self.node(frame.to);
        if !arrived || receiver.is_transmitting || receiver.acknowledges.is_some() {
            self.after(self.mac.ack_wait, AirEvent::Silence(node));
            return None;
        }
        receiver.acknowledges = Some(node);
        let store_dsn = receiver.store_dsn(node, dsn);
        receiver.tally.duplicates += u32::from(!store_dsn);
        self.after(self.mac.turnaround, AirEvent::Acknowledge(frame.to));
        store_dsn.then_some(Happened::Received(frame))
    }

    fn on_acknowledge(&mut self, node: u16) {
        let this = self.node(node);
        let Some(to) = this.acknowledges else { return };
        this.tally.acks += 1;
        let air = self.put_on_air(node, to, ACK);
        self.after(air, AirEvent::Acknowledged(node));
    }

    fn on_acknowledged(&mut self, node: u16) -> Option<Happened> {
        let to = self.node(node).acknowledges.take()?;
        let mut done = None;
        if self.take_off_air(node, to, ACK) {
            done = self.finish(to);
        } else {
            let elapsed = self.mac.turnaround + u64::from(ACK) * self.mac.octet;
            self.after(self.mac.ack_wait.saturating_sub(elapsed), AirEvent::Silence(to));
        }
        // Receptions in progress continue.
        let this = self.node(node);
        if this.phase == FramePhase::Idle && !this.queue.is_empty() {
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
