//! Fragment forwarding: fragments of packets for others go on without waiting for the rest. RFC 8930, section 6, the
//! virtual reassembly buffer.
//!
//! Only the first fragment says where a packet goes. It is decompressed and compressed again, for interface identifiers
//! may be made of link addresses, and those change at every hop; a table remembers what its tag was, and what it is
//! now. Should the headers grow so that it does not fit any more, it goes as two. The other fragments only change their
//! header.
//!
//! What comes with that (RFC 8930, section 6): the first fragment has to come first, all take the same way, none is
//! asked for again, and those of a packet that lacks one are forwarded in vain. Where that is not wanted, a
//! [`Reassembler`](crate::reassembly::Reassembler) at each hop does without this.

use core::time::Duration;

use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::time::Instant;

use crate::compress::{CompressError, Elision, Part, compress_part};
use crate::decompress::{DecompressError, decompress_part};
use crate::fragment::{FragmentError, FragmentHeader, Fragments, UNIT};
use crate::link::Links;
use crate::reassembly::Place;
use crate::{Settings, dispatch, fcs};

/// Where the fragments of a packet go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Of the frames from here to the next hop.
    pub links: Links,
    /// datagram_tag on that hop: as for a packet that begins here.
    pub datagram_tag: u16,
}

/// What is to be done with a subsequent fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// To send it on between `links`, behind `header`.
    To {
        /// Of the frame.
        links: Links,
        /// With the tag of the next hop.
        header: FragmentHeader,
    },
    /// Nothing: it is the one before again.
    Duplicate,
    /// Its packet is not forwarded: it is for this node, or its first fragment has not come.
    Unknown,
}

/// Why a first fragment is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardError {
    /// It is not first, or its length is none that a fragment has.
    Malformed,
    /// It is the one that came before again.
    Duplicate,
    /// Its headers cannot be decompressed; `scratch` may be too short.
    Header(DecompressError),
    /// Its Hop Limit ends here: Time Exceeded is due.
    HopLimit,
    /// The node before has elided a UDP checksum, and here it cannot be.
    Checksum,
    /// The headers cannot be compressed; `out` may be too short.
    Compress(CompressError),
    /// It does not fit into frames.
    Fragment(FragmentError),
    /// As many packets are on their way as there are entries.
    Full,
}

impl core::fmt::Display for ForwardError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Malformed => write!(f, "malformed first fragment"),
            Self::Duplicate => write!(f, "first fragment that came before"),
            Self::Header(error) => write!(f, "first fragment: {error}"),
            Self::HopLimit => write!(f, "the hop limit is exceeded"),
            Self::Checksum => write!(f, "the UDP checksum can no longer be elided"),
            Self::Compress(error) => write!(f, "{error}"),
            Self::Fragment(error) => write!(f, "{error}"),
            Self::Full => write!(f, "all entries are taken"),
        }
    }
}

impl core::error::Error for ForwardError {}

/// A packet whose fragments are forwarded.
#[derive(Clone, Copy, Debug)]
struct Entry {
    links: Links,
    size: u16,
    tag: u16,
    route: Route,
    /// Of the first fragment, to know it again.
    check: [u8; fcs::LEN],
    /// datagram_offset of the last fragment that went on, 0 for the first.
    last: u8,
    /// Octets of the packet that went on.
    forwarded: u16,
    deadline: Instant,
}

impl Entry {
    fn is_of(&self, links: Links, header: FragmentHeader) -> bool {
        (self.links, self.size, self.tag) == (links, header.datagram_size, header.datagram_tag)
    }

    const fn is_done(&self) -> bool {
        self.forwarded >= self.size
    }
}

/// Remembers up to `N` packets whose fragments are forwarded, in at most 80 octets each.
///
/// **Give each first fragment to [`first`](Self::first), each other one to [`subsequent`](Self::subsequent)**; what
/// these do not know is for this node, and goes to a [`Reassembler`](crate::reassembly::Reassembler).
#[derive(Debug)]
pub struct Forwarder<const N: usize> {
    entries: [Option<Entry>; N],
    timeout: Duration,
}

/// The frame's payload of which a first fragment is forwarded, and what there is to do it with.
#[derive(Debug)]
pub struct FirstFragment<'a> {
    /// The addresses of the frame, or of its mesh header.
    pub links: Links,
    /// FRAG1.
    pub header: FragmentHeader,
    /// What follows, from its dispatch octet on.
    pub content: &'a [u8],
    /// Octets of payload of a frame on the next hop.
    pub room: usize,
    /// Where the fragment is decompressed: datagram_size octets are enough.
    pub scratch: &'a mut [u8],
}

impl<const N: usize> Forwarder<N> {
    /// Without entries. `timeout` counts from the first fragment.
    pub const fn new(timeout: Duration) -> Self {
        Self { entries: [None; N], timeout }
    }

    /// Packets that are on their way.
    pub fn forwarding(&self) -> usize {
        self.entries.iter().flatten().filter(|entry| !entry.is_done()).count()
    }

    /// When the next entry is given up; `None` if there is none.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.entries.iter().flatten().map(|entry| entry.deadline).min()
    }

    /// Gives up entries whose time is over.
    pub fn handle_timeout(&mut self, now: Instant) {
        for entry in &mut self.entries {
            *entry = entry.filter(|entry| entry.deadline > now);
        }
    }

    /// Forwards a first fragment to where `route` says by the IPv6 header; if that is nowhere, the packet is for this
    /// node, which is `None`, as it is for what is not IPv6. `out` holds the octets of the fragments: as many as
    /// `scratch`, and one, are enough.
    pub fn first<'o>(
        &mut self,
        now: Instant,
        settings: &Settings,
        fragment: FirstFragment<'_>,
        route: impl FnOnce(&Ipv6) -> Option<Route>,
        out: &'o mut [u8],
    ) -> Result<Option<(Route, Fragments<'o>)>, ForwardError> {
        self.handle_timeout(now);
        let FirstFragment { links, header, content, room, scratch } = fragment;
        if header.datagram_offset.is_some() {
            return Err(ForwardError::Malformed);
        }
        if content.starts_with(&dispatch::ROHC) {
            return Ok(None);
        }
        let total = usize::from(header.datagram_size);
        let have = scratch.len();
        let too_small = ForwardError::Header(DecompressError::OutputTooSmall { have });
        let scratch = scratch.get_mut(..total).ok_or(too_small)?;
        let (done, elided) =
            decompress_part(settings, links, content, Some(total), scratch).map_err(ForwardError::Header)?;
        let packet = scratch.get_mut(..done.len).unwrap_or_default();
        if !packet.len().is_multiple_of(UNIT) && packet.len() != total {
            return Err(ForwardError::Malformed);
        }
        let ip = Ipv6::read(packet).map_err(|_| ForwardError::Malformed)?;
        let Some(route) = route(&ip) else { return Ok(None) };
        let check = fcs::fcs(content);
        let known =
            self.entries.iter().position(|entry| entry.is_some_and(|entry| entry.is_of(links, header)));
        if known
            .and_then(|index| self.entries.get(index))
            .copied()
            .flatten()
            .is_some_and(|it| it.check == check)
        {
            return Err(ForwardError::Duplicate);
        }
        if ip.hop_limit <= 1 {
            return Err(ForwardError::HopLimit);
        }
        if let Some(hop_limit) = packet.get_mut(HOP_LIMIT) {
            *hop_limit = ip.hop_limit - 1;
        }
        let elision = Elision::AsBefore(elided.is_some());
        let compressed = compress_part(settings, route.links, &Part { packet, total, elision }, out)
            .map_err(ForwardError::Compress)?;
        // A UDP header is the last that is compressed: if it went in-line, it would have no checksum.
        if elided.is_some() && compressed.header_in != done.header_out {
            return Err(ForwardError::Checksum);
        }
        let forwarded = packet.len() as u16;
        let octets = out.get(..compressed.len).unwrap_or_default();
        let header = FragmentHeader::first(header.datagram_size, route.datagram_tag);
        let fragments =
            Fragments::of_part(&compressed, octets, header, room).map_err(ForwardError::Fragment)?;
        let tag = fragment.header.datagram_tag;
        let size = header.datagram_size;
        let deadline = now + self.timeout;
        let entry = Entry { links, size, tag, route, check, last: 0, forwarded, deadline };
        let index = known.or_else(|| self.free()).ok_or(ForwardError::Full)?;
        if let Some(place) = self.entries.get_mut(index) {
            *place = Some(entry);
        }
        Ok(Some((route, fragments)))
    }

    /// Says where a subsequent fragment goes on, and behind which header.
    pub fn subsequent(
        &mut self,
        now: Instant,
        links: Links,
        header: FragmentHeader,
        content: &[u8],
    ) -> Forward {
        self.handle_timeout(now);
        let Ok(Place::At { start, end }) = Place::of(header, content) else { return Forward::Unknown };
        let mut entries = self.entries.iter_mut().flatten();
        let Some(entry) = entries.find(|entry| entry.is_of(links, header)) else { return Forward::Unknown };
        // A frame whose acknowledgement was lost comes again before any other.
        if entry.is_done() || header.datagram_offset == Some(entry.last) {
            return Forward::Duplicate;
        }
        entry.last = header.datagram_offset.unwrap_or(0);
        entry.forwarded = entry.forwarded.saturating_add((end - start) as u16);
        let header = FragmentHeader { datagram_tag: entry.route.datagram_tag, ..header };
        Forward::To { links: entry.route.links, header }
    }

    /// An entry that is free, or else one that is only remembered.
    fn free(&self) -> Option<usize> {
        let free =
            self.entries.iter().enumerate().filter(|(_, entry)| entry.is_none_or(|entry| entry.is_done()));
        free.min_by_key(|(_, entry)| entry.map(|entry| entry.deadline)).map(|(index, _)| index)
    }
}

/// Where Hop Limit lies in an IPv6 header.
const HOP_LIMIT: usize = 7;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
