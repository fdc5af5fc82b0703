//! Outputs of a site until they are polled.
//!
//! The memory grows to the most that one input has put out, and is used again. It has an upper bound: outputs of a caller that
//! does not poll are dropped.

use std::mem::size_of;
use std::net::SocketAddr;
use std::ops::Range;

use super::Trouble;
use super::source::Source;

/// Output of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteOutput<'s> {
    /// A datagram, a frame, or TS Packets, for the carrier.
    Datagram {
        /// Address of the receiver; `None`: the carrier has no addresses.
        to: Option<SocketAddr>,
        /// Payload of the carrier.
        octets: &'s [u8],
    },
    /// A packet, or a frame, for the interface.
    Packet(&'s [u8]),
    /// Change of a peer, or of another site of a mesh.
    Event {
        /// Its name; empty if it is not known.
        name: &'s str,
        /// The change.
        event: SiteEvent,
    },
}

/// Change of a peer, or of another site of a mesh. Authentic, unless its [`Trouble`] is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteEvent {
    /// New keys were agreed on, or announced.
    Session {
        /// Address of the peer.
        address: Option<SocketAddr>,
        /// True if the peer has started anew since it was heard before.
        restarted: bool,
    },
    /// A trouble begins.
    Trouble(Trouble),
    /// A trouble is over.
    Over(Trouble),
    /// The path has another MTU: octets of the longest IP packet on the carrier.
    PathMtu(u16),
}

/// Octets that the packets of one input may take. A datagram of 1,472 octets holds 736 packets at most, and a packet of 65,535
/// octets becomes that many octets of datagrams and their headers at most.
const INPUT: usize = 1 << 20;

/// Datagrams that all peers together may be sent at one time: a request for keys, a probe, feedback, and the body that is begun.
pub(super) const A_PEER: usize = 4;

/// Outputs, the oldest first.
pub(super) struct OutputQueue {
    octets: Vec<u8>,
    entries: Vec<QueuedOutput>,
    /// Entries that were polled.
    polled: usize,
    /// Octets that entries and what is in them may take.
    limit: usize,
}

enum QueuedOutput {
    Datagram(Option<SocketAddr>, Range<usize>),
    Packet(Option<PacketReceipt>, Range<usize>),
    /// An event of the source of that number.
    Event(Option<usize>, SiteEvent),
}

/// Numbers by which a packet was counted as received.
#[derive(Clone, Copy)]
pub(super) struct PacketReceipt {
    /// Number of the source.
    pub(super) source: usize,
    pub(super) octets: usize,
    pub(super) compressed: usize,
}

impl OutputQueue {
    /// A queue for one input, and for so many octets that are due at one time.
    pub(super) fn new(due: usize) -> Self {
        Self { octets: Vec::new(), entries: Vec::new(), polled: 0, limit: INPUT + due }
    }

    /// Appends a datagram. False, without a change, if the queue is full.
    pub(super) fn push_datagram(&mut self, to: Option<SocketAddr>, datagram: &[u8]) -> bool {
        self.push(datagram, |octets| QueuedOutput::Datagram(to, octets))
    }

    /// Appends a packet. `received`: as it was counted; `None`: it was made here. False, without a change, if the queue is full.
    pub(super) fn push_packet(&mut self, received: Option<PacketReceipt>, packet: &[u8]) -> bool {
        self.push(packet, |octets| QueuedOutput::Packet(received, octets))
    }

    /// Appends an event of the source of that number, unless the queue is full.
    pub(super) fn push_event(&mut self, source: Option<usize>, event: SiteEvent) {
        self.push(&[], |_| QueuedOutput::Event(source, event));
    }

    fn push(&mut self, octets: &[u8], entry: impl FnOnce(Range<usize>) -> QueuedOutput) -> bool {
        if self.polled == self.entries.len() {
            self.octets.clear();
            self.entries.clear();
            self.polled = 0;
        }
        let start = self.octets.len();
        let taken = start + octets.len() + (self.entries.len() + 1) * size_of::<QueuedOutput>();
        if taken > self.limit {
            return false;
        }
        self.octets.extend_from_slice(octets);
        self.entries.push(entry(start..self.octets.len()));
        true
    }

    /// Returns the oldest output that was not polled.
    pub(super) fn poll<'o>(&'o mut self, sources: &'o [Source]) -> Option<SiteOutput<'o>> {
        let entry = self.entries.get(self.polled)?;
        self.polled += 1;
        let octets = |range: &Range<usize>| self.octets.get(range.clone()).unwrap_or_default();
        Some(match entry {
            QueuedOutput::Datagram(to, range) => SiteOutput::Datagram { to: *to, octets: octets(range) },
            QueuedOutput::Packet(_, range) => SiteOutput::Packet(octets(range)),
            QueuedOutput::Event(source, event) => {
                let source = source.and_then(|number| sources.get(number));
                SiteOutput::Event { name: source.map_or("", |source| &source.name), event: *event }
            }
        })
    }

    /// Returns how the packet was counted that was polled last; `None` if it was not, or if something else was polled last.
    pub(super) fn last_received(&self) -> Option<PacketReceipt> {
        match self.entries.get(self.polled.checked_sub(1)?)? {
            QueuedOutput::Packet(received, _) => *received,
            QueuedOutput::Datagram(..) | QueuedOutput::Event(..) => None,
        }
    }
}
