//! Flows of a few datagrams that are born again and again: a question to a server, from a new port each time.
//!
//! A context of its own costs such a flow more octets than it saves. Once flows of a shape, those with the same port of a server and about
//! the same size, have ended one after the other within [`FEW`] packets, all of them initialization, the first packet of the next one uses a
//! context that exists already: that of the IP profile which all flows between two hosts share, or that of profile 0x0000. Its second packet
//! gets a context of its own: a long flow loses one packet. A flow that was longer, or has saved octets, ends this for its shape.
//!
//! A flow is taken to have ended when the next one of its shape begins. Flows that begin at the same time may go on together, and count
//! for half.
//!
//! All of it takes constant time for the first packet of a flow, none for packets of a flow that saves octets, and constant memory.

use thinair_wire::IS_SMALL;
use thinair_wire::header::chain::{HeaderChain, IpHeader};
use thinair_wire::time::Instant;

use super::churn::End;
use crate::cid::Cid;

/// Number of shapes that are known.
const SHAPES: usize = if IS_SMALL { 4 } else { 16 };

/// Packets of a brief flow.
const FEW: u8 = 3;

/// Packets of a flow that is not brief.
const MANY: u8 = u8::MAX;

/// Evidence of a flow that has ended, and of one that may go on since the next one has begun within [`TOGETHER`].
const ENDED: u8 = 2;
const MAY_GO_ON: u8 = 1;

/// Evidence from which on flows of a shape are brief: 8 flows that have ended. Its upper limit is the number of other shapes with the same
/// place after which the shape is forgotten, and more.
const ENOUGH: u8 = 8 * ENDED;
const MOST: u8 = 2 * ENOUGH;

/// Time in milliseconds within which flows begin together.
const TOGETHER: u16 = 10;

/// Fields that flows of one kind have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Lower port, whether it is that of the source, and octets of the packet as a power of two.
    key: u32,
    /// Hash of the addresses and the flow label: flows with the same ones share a context of the IP profile.
    route: u16,
}

impl Shape {
    /// Shape of a datagram over one IP header. `hosts` is a hash of the addresses.
    pub(crate) fn of(chain: &HeaderChain<'_>, hosts: u64) -> Option<Self> {
        let ([ip], Some(udp)) = (chain.ips(), chain.udp()) else { return None };
        let (source, destination) = (udp.source_port, udp.destination_port);
        let size = u32::from(udp.length).checked_ilog2()?;
        let key = u32::from(source.min(destination)) << 16 | u32::from(source < destination) << 8 | size;
        let label = match ip.header() {
            IpHeader::V4(_) => 0,
            IpHeader::V6(header) => header.flow_label,
        };
        let route = (hosts >> 40) as u16 ^ label as u16 ^ (label >> 16) as u16;
        Some(Self { key, route })
    }

    /// Index of its place.
    fn index(self) -> usize {
        (self.key.wrapping_mul(0x9E37_79B1) >> 16) as usize % SHAPES
    }
}

/// Context that the first packet of a flow uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstContext {
    /// One of its own.
    Own,
    /// That of the IP profile which flows between the two hosts share, or that of profile 0x0000.
    Shared {
        /// That of the IP profile begins if there is none.
        may_begin: bool,
    },
}

/// The flows of a shape.
#[derive(Clone, Copy, Debug)]
struct Births {
    key: u32,
    /// Bits of the hash and CID of the last flow with a context of its own.
    hash: u16,
    cid: u16,
    /// Time at which it has begun, in milliseconds modulo 2^16.
    at: u16,
    /// [`Shape::route`] of the last flow.
    route: u16,
    /// Number of packets of the last flow with a context; [`MANY`] once it has saved octets.
    packets: u8,
    /// Evidence that flows are brief.
    evidence: u8,
    /// The initialization of the last flow with a context was no larger than plain packets.
    is_even: bool,
}

impl Births {
    /// Evidence if the next flow begins now, so that the last one has ended. 0 if that was not brief.
    fn evidence_at(&self, at: u16) -> u8 {
        let is_together = at.wrapping_sub(self.at) < TOGETHER;
        match self.packets {
            0..=FEW => (self.evidence + if is_together { MAY_GO_ON } else { ENDED }).min(MOST),
            _ => 0,
        }
    }
}

/// Flows that were born, by their shapes.
#[derive(Debug)]
pub(crate) struct BriefFlows {
    shapes: [Births; SHAPES],
    /// Number of packets of the context with CID 0.
    zero: u8,
    /// It is one that flows share.
    is_zero_shared: bool,
}

impl BriefFlows {
    pub(crate) const fn new() -> Self {
        let none =
            Births { key: 0, hash: 0, cid: 0, at: 0, route: 0, packets: MANY, evidence: 0, is_even: false };
        Self { shapes: [none; SHAPES], zero: MANY, is_zero_shared: false }
    }

    /// Returns the context for the first packet of a flow; `has_ip` if there is an IP profile.
    pub(crate) fn first_context(&mut self, now: Instant, shape: Shape, has_ip: bool) -> FirstContext {
        let births = &mut self.shapes[shape.index()];
        if births.key != shape.key || births.evidence_at(millis(now)) < ENOUGH {
            return FirstContext::Own;
        }
        if births.is_even && !has_ip {
            return FirstContext::Own;
        }
        // A context that no other flow shares would cost as much as one of its own.
        let may_begin = births.route == shape.route || births.is_even;
        (births.evidence, births.route) = (MOST, shape.route);
        FirstContext::Shared { may_begin }
    }

    /// Records that a flow has got a context of its own.
    pub(crate) fn note_birth(&mut self, now: Instant, shape: Shape, hash: u32, cid: Cid) {
        if cid == Cid::ZERO {
            self.zero = 0;
        }
        let births = &mut self.shapes[shape.index()];
        if births.key != shape.key && births.evidence > 0 {
            births.evidence -= 1;
            return;
        }
        let at = millis(now);
        let evidence = if births.key == shape.key { births.evidence_at(at) } else { 0 };
        let Shape { key, route, .. } = shape;
        let (hash, cid) = (hash as u16, cid.value());
        *births = Births { key, hash, cid, at, route, packets: 0, evidence, is_even: false };
    }

    /// Records that flows share the context with CID 0 from now on.
    pub(crate) const fn note_shared_zero(&mut self) {
        (self.zero, self.is_zero_shared) = (0, true);
    }

    /// Records a packet of profile 0x0000 with that CID.
    pub(crate) fn note_without_profile(&mut self, cid: Cid) {
        if cid == Cid::ZERO {
            self.zero = self.zero.saturating_add(1);
        }
    }

    /// Records a packet of a flow that had saved nothing before it, and how it ends if this is its last packet.
    pub(crate) fn note_packet(&mut self, hash: u32, cid: Cid, end: End) {
        let count = |packets: &mut u8| {
            *packets = if end == End::Paid { MANY } else { packets.saturating_add(1) };
        };
        if cid == Cid::ZERO {
            count(&mut self.zero);
        }
        let is_last = |births: &&mut Births| births.cid == cid.value() && births.hash == hash as u16;
        for births in self.shapes.iter_mut().filter(is_last) {
            count(&mut births.packets);
            births.is_even = end == End::Even;
        }
    }

    /// Records that another flow takes the context of a CID.
    pub(crate) fn note_end(&mut self, cid: Cid) {
        if cid == Cid::ZERO {
            (self.zero, self.is_zero_shared) = (MANY, false);
        }
    }

    /// True if CID 0, which takes no octet, had few packets so far: a context that flows share may take it, and one of its own may take it
    /// from them.
    pub(crate) const fn has_brief_zero(&self, for_shared: bool) -> bool {
        self.zero <= FEW && (for_shared || self.is_zero_shared)
    }
}

fn millis(now: Instant) -> u16 {
    (now.as_nanos() / 1_000_000) as u16
}
