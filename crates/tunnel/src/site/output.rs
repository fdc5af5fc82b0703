//! Queue of the outputs of a site.
//!
//! Its memory grows to the largest output of one input, and is reused. It has an upper bound: outputs of a
//! caller that does not poll are dropped.

use std::mem::size_of;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use thinair_session::AddressPair;

use super::Trouble;
use super::source::Source;

/// Output of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteOutput<'s> {
    /// A datagram, a frame, or TS Packets, for the carrier.
    Datagram {
        /// Its number: see [`Site::note_refused_datagram`](super::Site::note_refused_datagram).
        number: u64,
        /// Address of the receiver, and the own one; `None`: the carrier has no addresses.
        to: Option<AddressPair>,
        /// Payload of the carrier.
        octets: &'s [u8],
    },
    /// A datagram for the second socket, from which the mapping of a NAT is probed.
    Probe {
        /// Address of the receiver.
        to: SocketAddr,
        /// Payload of UDP.
        octets: &'s [u8],
    },
    /// A packet, or a frame, for the interface.
    Packet {
        /// Its origin: see [`Site::note_refused_packet`](super::Site::note_refused_packet).
        receipt: Receipt,
        /// The packet.
        octets: &'s [u8],
    },
    /// Change of a peer, or of another site of a mesh.
    Event {
        /// Its name; empty if it is not known.
        name: &'s str,
        /// The change.
        event: SiteEvent,
    },
}

/// Origin of a packet for the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Number of its source, and its length when received; `None`: it was created by this site.
    pub(super) received: Option<(usize, usize)>,
    /// Its length in octets.
    pub(super) octets: usize,
}

/// Change of a peer, or of another site of a mesh. Authentic, unless it is a [`Trouble`] that is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteEvent {
    /// New keys were agreed on, or announced.
    Session {
        /// Address of the peer.
        address: Option<SocketAddr>,
        /// True if the peer was restarted since it was last heard.
        restarted: bool,
    },
    /// A trouble begins.
    Trouble(Trouble),
    /// A trouble is over.
    Over(Trouble),
    /// The path has a new MTU: maximum length of an IP packet on the carrier, in octets.
    PathMtu(u16),
    /// The timeout of mappings is learned. `None`: the peer does not answer probes.
    Mapping {
        /// Shortest time for which mappings are kept.
        timeout: Option<Duration>,
        /// Interval of keepalives from now on.
        keepalive: Duration,
    },
}

/// Octets of the outputs of one input. A datagram of 1,472 octets contains 736 packets at most, and a packet
/// of 65,535 octets becomes that many octets of datagrams and their headers at most.
const INPUT: usize = 1 << 20;

/// Maximum number of datagrams to a peer at one time: a request for keys, a probe, feedback, and the
/// unfinished body.
pub(super) const A_PEER: usize = 4;

/// Outputs, the oldest first, and their octets: datagrams are encrypted where they wait, packets decompressed.
pub(super) struct OutputQueue {
    outputs: Vec<(QueuedOutput, Range<usize>)>,
    /// Octets of datagrams, and of one that is not queued yet.
    datagrams: Vec<u8>,
    queued: usize,
    /// Octets of packets, and initialized room behind the first `used` octets.
    packets: Vec<u8>,
    used: usize,
    /// Outputs that were polled.
    polled: usize,
    /// Limit of octets.
    limit: usize,
}

/// Output without its octets.
pub(super) enum QueuedOutput {
    /// A datagram: its destination, and its number.
    Datagram(Option<AddressPair>, u64),
    /// A datagram for the second socket: its destination.
    Probe(SocketAddr),
    /// A packet: number of its source, and its length when received; `None`: it was created by this site.
    Packet(Option<(usize, usize)>),
    /// An event of the source of that number.
    Event(Option<usize>, SiteEvent),
}

impl OutputQueue {
    /// Returns a queue for one input, and for `due` octets that are due at one time.
    pub(super) fn new(due: usize) -> Self {
        let (outputs, datagrams, packets) = (Vec::new(), Vec::new(), Vec::new());
        Self { outputs, datagrams, queued: 0, packets, used: 0, polled: 0, limit: INPUT + due }
    }

    /// True if there is room for an output of `octets`.
    pub(super) fn has_room(&self, octets: usize) -> bool {
        let (octets_before, outputs_before) = match self.polled == self.outputs.len() {
            true => (0, 0),
            false => (self.queued + self.used, self.outputs.len()),
        };
        let outputs = (outputs_before + 1) * size_of::<(QueuedOutput, Range<usize>)>();
        octets_before + octets + outputs <= self.limit
    }

    /// Makes the memory of polled outputs free, if nothing else is there.
    fn reuse(&mut self) {
        if self.polled == self.outputs.len() {
            self.outputs.clear();
            self.datagrams.drain(..self.queued);
            (self.queued, self.used, self.polled) = (0, 0, 0);
        }
    }

    fn queue(&mut self, output: QueuedOutput, place: Range<usize>) {
        self.outputs.push((output, place));
    }

    /// Appends an event. False, without a change, if the queue is full.
    pub(super) fn push_event(&mut self, source: Option<usize>, event: SiteEvent) -> bool {
        let has_room = self.has_room(0);
        if has_room {
            self.reuse();
            self.queue(QueuedOutput::Event(source, event), 0..0);
        }
        has_room
    }

    /// Buffer to which a datagram is appended for [`push_datagram`](Self::push_datagram).
    pub(super) fn begin_datagram(&mut self) -> &mut Vec<u8> {
        self.reuse();
        self.datagrams.truncate(self.queued);
        &mut self.datagrams
    }

    /// Length of the datagram that was begun.
    pub(super) fn begun(&self) -> usize {
        self.datagrams.len() - self.queued
    }

    /// Queues the datagram that was begun. There must be room.
    pub(super) fn push_datagram(&mut self, to: Option<AddressPair>, number: u64) {
        let place = self.queued..self.datagrams.len();
        self.queued = place.end;
        self.queue(QueuedOutput::Datagram(to, number), place);
    }

    /// Queues the datagram that was begun, for the second socket. There must be room.
    pub(super) fn push_probe(&mut self, to: SocketAddr) {
        let place = self.queued..self.datagrams.len();
        self.queued = place.end;
        self.queue(QueuedOutput::Probe(to), place);
    }

    /// Room for a packet of at most `octets`.
    pub(super) fn room(&mut self, octets: usize) -> &mut [u8] {
        self.reuse();
        let end = self.used + octets;
        if self.packets.len() < end {
            self.packets.resize(end, 0);
        }
        &mut self.packets[self.used..end]
    }

    /// Appends the packet at a place in the [room](Self::room). False, without a change, if the queue is full.
    pub(super) fn push_packet(&mut self, received: Option<(usize, usize)>, place: Range<usize>) -> bool {
        let has_room = self.has_room(place.len());
        if has_room {
            let place = self.used + place.start..self.used + place.end;
            self.used = place.end;
            self.queue(QueuedOutput::Packet(received), place);
        }
        has_room
    }

    /// Returns the oldest output that was not polled.
    pub(super) fn poll<'o>(&'o mut self, sources: &'o [Source]) -> Option<SiteOutput<'o>> {
        let (output, place) = self.outputs.get(self.polled)?;
        self.polled += 1;
        let octets = match output {
            QueuedOutput::Datagram(..) | QueuedOutput::Probe(_) => &self.datagrams,
            QueuedOutput::Packet(_) | QueuedOutput::Event(..) => &self.packets,
        };
        let octets = octets.get(place.clone()).unwrap_or_default();
        Some(match *output {
            QueuedOutput::Datagram(to, number) => SiteOutput::Datagram { number, to, octets },
            QueuedOutput::Probe(to) => SiteOutput::Probe { to, octets },
            QueuedOutput::Packet(received) => {
                SiteOutput::Packet { receipt: Receipt { received, octets: octets.len() }, octets }
            }
            QueuedOutput::Event(source, event) => {
                let source = source.and_then(|number| sources.get(number));
                SiteOutput::Event { name: source.map_or("", |source| &source.name), event }
            }
        })
    }
}
