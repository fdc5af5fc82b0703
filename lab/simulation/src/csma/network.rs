//! Network, from the view of the senders and receivers of packets.

use thinair_wire::time::Instant;

use super::air::{Air, FrameContents, Happened};
use super::counted::Counted;
use super::counters::NodeCounters;
use super::framing::CsmaFraming;
use super::lowpan::Lowpan;
use super::node::QueuedFrame;
use super::{CsmaConfig, CsmaPacket};
use crate::streams::RandomStreams;

/// Packet that has arrived at its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketArrival<P> {
    /// Time of arrival.
    pub at: Instant,
    /// Sending node.
    pub from: u16,
    /// Receiving node.
    pub to: u16,
    /// Packet.
    pub packet: P,
}

/// Nodes that carry packets of a kind `P`.
///
/// **Call [`send`](Self::send) when [`now`](Self::now) is the time to send; receive packets with
/// [`next_before`](Self::next_before), up to the time of the next packet to send.**
#[derive(Debug)]
pub struct CsmaNetwork<P> {
    air: Air,
    nodes: u16,
    load: Loads<P>,
}

/// Contents of frames: numbers, or octets.
#[derive(Debug)]
pub(super) enum Loads<P> {
    Counted(Counted<P>),
    Octets(Box<Lowpan>),
}

impl<P> FrameContents for Loads<P> {
    fn on_air(&self, frame: &QueuedFrame) -> u16 {
        match self {
            Self::Counted(load) => load.on_air(frame),
            Self::Octets(load) => load.on_air(frame),
        }
    }

    fn begins(&mut self, now: Instant, frame: &QueuedFrame) {
        match self {
            Self::Counted(load) => load.begins(now, frame),
            Self::Octets(load) => load.begins(now, frame),
        }
    }
}

impl<P: CsmaPacket> CsmaNetwork<P> {
    /// Creates a network with empty queues, at time zero. Random numbers depend on `streams` and `run`, separately for
    /// each node.
    pub fn new(config: &CsmaConfig, streams: RandomStreams, run: u32) -> Self {
        let (forwarding, topology) = (config.forwarding, config.topology);
        let load = match &config.framing {
            CsmaFraming::Plain(plain) => Loads::Counted(Counted::new(*plain, forwarding, topology)),
            CsmaFraming::Rfc4944(compression) => {
                Loads::Octets(Box::new(Lowpan::new(compression.clone(), forwarding, topology)))
            }
        };
        Self { air: Air::new(config, streams, run), nodes: topology.nodes(), load }
    }

    /// Time of the latest event.
    pub fn now(&self) -> Instant {
        self.air.now()
    }

    /// Number of handled events.
    pub const fn events(&self) -> u64 {
        self.air.events()
    }

    /// Resets the counters of all nodes.
    pub fn clear_counters(&mut self) {
        self.air.clear_counters();
        if let Loads::Octets(load) = &mut self.load {
            load.clear_counters();
        }
    }

    /// Counters of a node up to now, since their reset. A frame counts when its transmission begins.
    pub fn counters(&self, node: u16) -> NodeCounters {
        let counters = self.air.counters(node);
        match &self.load {
            Loads::Counted(_) => counters,
            Loads::Octets(load) => load.counters(node, counters),
        }
    }

    /// Number of frames in a node's queue.
    pub fn waiting(&self, node: u16) -> usize {
        self.air.waiting(node)
    }

    /// Sends a packet from one node to another, now. No effect if one of them does not exist, or both are equal.
    pub fn send(&mut self, from: u16, to: u16, packet: P) {
        if from.max(to) >= self.nodes || from == to {
            return;
        }
        match &mut self.load {
            Loads::Counted(load) => load.send(&mut self.air, from, to, packet),
            Loads::Octets(load) => load.send(&mut self.air, from, to, &packet),
        }
    }

    /// Next packet that arrives before `end`; if there is none, time advances to `end`.
    pub fn next_before(&mut self, end: Instant) -> Option<PacketArrival<P>> {
        self.next(Some(end))
    }

    /// Next packet that arrives; if there is none, time is that of the latest event.
    pub fn next_arrival(&mut self) -> Option<PacketArrival<P>> {
        self.next(None)
    }

    fn next(&mut self, end: Option<Instant>) -> Option<PacketArrival<P>> {
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

    /// Contents of frames.
    #[cfg(test)]
    pub(super) const fn load(&self) -> &Loads<P> {
        &self.load
    }

    /// True if no event is scheduled.
    pub fn is_quiet(&self) -> bool {
        self.air.is_quiet()
    }
}
