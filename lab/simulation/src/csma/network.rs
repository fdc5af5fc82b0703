//! A network as those see it who send packets over it.

use thinair_wire::time::Instant;

use super::air::{Air, Happened, Load};
use super::counted::Counted;
use super::counters::Counters;
use super::framing::Framing;
use super::lowpan::Lowpan;
use super::node::Frame;
use super::{Config, Packet};
use crate::streams::Streams;

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
#[derive(Debug)]
pub struct Network<P> {
    air: Air,
    nodes: u16,
    load: Loads<P>,
}

/// What frames are of: numbers, or octets.
#[derive(Debug)]
pub(super) enum Loads<P> {
    Counted(Counted<P>),
    Octets(Box<Lowpan>),
}

impl<P> Load for Loads<P> {
    fn on_air(&self, frame: &Frame) -> u16 {
        match self {
            Self::Counted(load) => load.on_air(frame),
            Self::Octets(load) => load.on_air(frame),
        }
    }

    fn begins(&mut self, now: Instant, frame: &Frame) {
        match self {
            Self::Counted(load) => load.begins(now, frame),
            Self::Octets(load) => load.begins(now, frame),
        }
    }
}

impl<P: Packet> Network<P> {
    /// All queues empty, at time zero. Random numbers follow from `streams` and `run`, those of each node by itself.
    pub fn new(config: &Config, streams: Streams, run: u32) -> Self {
        let (forwarding, topology) = (config.forwarding, config.topology);
        let load = match &config.framing {
            Framing::Plain(plain) => Loads::Counted(Counted::new(*plain, forwarding, topology)),
            Framing::Rfc4944(compression) => {
                Loads::Octets(Box::new(Lowpan::new(compression.clone(), forwarding, topology)))
            }
        };
        Self { air: Air::new(config, streams, run), nodes: topology.nodes(), load }
    }

    /// The time of what happened last.
    pub fn now(&self) -> Instant {
        self.air.now()
    }

    /// Events that were handled.
    pub const fn events(&self) -> u64 {
        self.air.events()
    }

    /// All nodes count from zero, and from now.
    pub fn clear_counters(&mut self) {
        self.air.clear_counters();
        if let Loads::Octets(load) = &mut self.load {
            load.clear_counters();
        }
    }

    /// What a node has done since it counts, up to now. Frames count when they begin.
    pub fn counters(&self, node: u16) -> Counters {
        let counters = self.air.counters(node);
        match &self.load {
            Loads::Counted(_) => counters,
            Loads::Octets(load) => load.counters(node, counters),
        }
    }

    /// Frames that wait at a node.
    pub fn waiting(&self, node: u16) -> usize {
        self.air.waiting(node)
    }

    /// A node sends a packet to another one, now. Nothing happens if one of them does not exist, or both are the same.
    pub fn send(&mut self, from: u16, to: u16, packet: P) {
        if from.max(to) >= self.nodes || from == to {
            return;
        }
        match &mut self.load {
            Loads::Counted(load) => load.send(&mut self.air, from, to, packet),
            Loads::Octets(load) => load.send(&mut self.air, from, to, &packet),
        }
    }

    /// The next packet that arrives before `end`; if none does, it is `end` now.
    pub fn next_before(&mut self, end: Instant) -> Option<Arrival<P>> {
        self.next(Some(end))
    }

    /// The next packet that arrives; if none does, it is the time of what happened last.
    pub fn next_arrival(&mut self) -> Option<Arrival<P>> {
        self.next(None)
    }

    fn next(&mut self, end: Option<Instant>) -> Option<Arrival<P>> {
        loop {
            let Some(happened) = self.air.next(end, &mut self.load)? else { continue };
            let arrival = match (happened, &mut self.load) {
                (Happened::Received(frame), Loads::Counted(load)) => load.receive(&mut self.air, frame),
                (Happened::Received(frame), Loads::Octets(load)) => load.receive(&mut self.air, frame),
                (Happened::Done(frame), Loads::Counted(load)) => {
                    load.done(frame);
                    None
                }
                (Happened::Done(frame), Loads::Octets(load)) => {
                    load.done(frame);
                    None
                }
                (Happened::Timer(node), Loads::Octets(load)) => {
                    load.on_timer(&mut self.air, node);
                    None
                }
                (Happened::Timer(_), Loads::Counted(_)) => None,
            };
            if arrival.is_some() {
                return arrival;
            }
        }
    }

    /// What frames are of.
    #[cfg(test)]
    pub(super) const fn load(&self) -> &Loads<P> {
        &self.load
    }

    /// Whether nothing happens any more by itself.
    pub fn is_quiet(&self) -> bool {
        self.air.is_quiet()
    }
}
