//! Fragment forwarding: fragments of packets for other nodes are forwarded without waiting for the rest. RFC 8930,
//! section 6, the virtual reassembly buffer.
//!
//! Only the first fragment contains the destination. It is decompressed and compressed again, because interface
//! identifiers may be derived from link addresses, which change at every hop; a table stores its old and its new tag.
//! If its headers grow so that it does not fit any more, it is sent as two fragments. In the other fragments only the
//! header changes.
//!
//! Consequences (RFC 8930, section 6): the first fragment has to arrive first, all take the same route, none is
//! requested again, and those of an incomplete packet are forwarded in vain. Where that is not acceptable, use a
//! [`Reassembler`](crate::reassembly::Reassembler) at each hop instead.

use core::time::Duration;

use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::time::Instant;

use crate::compress::{CompressError, Elision, PacketPart, compress_part};
use crate::decompress::{DecompressError, decompress_part};
use crate::fragment::{FragmentError, FragmentHeader, Fragments, UNIT};
use crate::link::Links;
use crate::reassembly::FragmentPlace;
use crate::{LowpanSettings, dispatch, fcs};

/// Next hop of the fragments of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Addresses of the frames to the next hop.
    pub links: Links,
    /// datagram_tag on that hop, from the counter for packets that begin here.
    pub datagram_tag: u16,
}

/// Action for a subsequent fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Send it between `links`, after `header`.
    To {
        /// Addresses of the frame.
        links: Links,
        /// Header with the tag of the next hop.
        header: FragmentHeader,
    },
    /// Drop it: it repeats the previous one.
    Duplicate,
    /// Reassemble it: its packet is not forwarded, since it is for this node, or its first fragment has not arrived.
    Unknown,
}

/// Reason why a first fragment is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardError {
    /// It is not a first fragment, or its length is invalid.
    Malformed,
    /// It repeats an earlier one.
    Duplicate,
    /// Its headers cannot be decompressed; `scratch` may be too short.
    Header(DecompressError),
    /// Its Hop Limit expires here; a Time Exceeded message is due.
    HopLimit,
    /// The previous node elided a UDP checksum, and here it cannot be elided.
    Checksum,
    /// The headers cannot be compressed; `out` may be too short.
    Compress(CompressError),
    /// It does not fit into frames.
    Fragment(FragmentError),
    /// All entries are in use.
    Full,
}

impl core::fmt::Display for ForwardError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Malformed => write!(f, "malformed first fragment"),
            Self::Duplicate => write!(f, "repeated first fragment"),
            Self::Header(error) => write!(f, "first fragment: {error}"),
            Self::HopLimit => write!(f, "hop limit exceeded"),
            Self::Checksum => write!(f, "the UDP checksum can no longer be elided"),
            Self::Compress(error) => write!(f, "{error}"),
            Self::Fragment(error) => write!(f, "{error}"),
            Self::Full => write!(f, "all forwarding entries are in use"),
        }
    }
}

impl core::error::Error for ForwardError {}

/// A packet whose fragments are forwarded.
#[derive(Clone, Copy, Debug)]
struct ForwardingEntry {
    links: Links,
    size: u16,
    tag: u16,
    route: Route,
    /// Check sequence of the first fragment, to recognize its repetition.
    check: [u8; fcs::LEN],
    /// datagram_offset of the last forwarded fragment, 0 for the first.
    last: u8,
    /// Octets of the packet that were forwarded.
    forwarded: u16,
    deadline: Instant,
}

impl ForwardingEntry {
    fn is_of(&self, links: Links, header: FragmentHeader) -> bool {
        (self.links, self.size, self.tag) == (links, header.datagram_size, header.datagram_tag)
    }

    const fn is_done(&self) -> bool {
        self.forwarded >= self.size
    }
}

/// Table of up to `N` packets whose fragments are forwarded, in at most 80 octets each.
///
/// **Give each first fragment to [`first`](Self::first), each other one to [`subsequent`](Self::subsequent)**; fragments
/// without an entry are for this node, and are given to a [`Reassembler`](crate::reassembly::Reassembler).
#[derive(Debug)]
pub struct Forwarder<const N: usize> {
    entries: [Option<ForwardingEntry>; N],
    timeout: Duration,
}

/// A first fragment to forward, and a buffer for it.
#[derive(Debug)]
pub struct FirstFragment<'a> {
    /// Addresses of the frame, or of its mesh header.
    pub links: Links,
    /// FRAG1.
    pub header: FragmentHeader,
    /// Content after the header, from its dispatch octet on.
    pub content: &'a [u8],
    /// Octets of payload of a frame on the next hop.
    pub room: usize,
    /// Buffer in which the fragment is decompressed: datagram_size octets are sufficient.
    pub scratch: &'a mut [u8],
}

impl<const N: usize> Forwarder<N> {
    /// Creates an empty table. `timeout` counts from the first fragment.
    pub const fn new(timeout: Duration) -> Self {
        Self { entries: [None; N], timeout }
    }

    /// Returns the number of packets that are being forwarded.
    pub fn forwarding(&self) -> usize {
        self.entries.iter().flatten().filter(|entry| !entry.is_done()).count()
    }

    /// Returns the time at which the next entry expires; `None` if there is none.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.entries.iter().flatten().map(|entry| entry.deadline).min()
    }

    /// Removes expired entries.
    pub fn handle_timeout(&mut self, now: Instant) {
        for entry in &mut self.entries {
            *entry = entry.filter(|entry| entry.deadline > now);
        }
    }

    /// Forwards a first fragment to the next hop that `route` returns for its IPv6 header; if that is `None`, the
    /// packet is for this node, and the result is `None`, as for a packet that is not IPv6. `out` receives the
    /// fragments: the length of `scratch` and one octet are sufficient.
    pub fn first<'o>(
        &mut self,
        now: Instant,
        settings: &LowpanSettings,
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
        let compressed = compress_part(settings, route.links, &PacketPart { packet, total, elision }, out)
            .map_err(ForwardError::Compress)?;
        // A UDP header is the last that is compressed: in-line, it would have no checksum.
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
        let entry = ForwardingEntry { links, size, tag, route, check, last: 0, forwarded, deadline };
        let index = known.or_else(|| self.free()).ok_or(ForwardError::Full)?;
        if let Some(place) = self.entries.get_mut(index) {
            *place = Some(entry);
        }
        Ok(Some((route, fragments)))
    }

    /// Returns the next hop and the header of a subsequent fragment.
    pub fn subsequent(
        &mut self,
        now: Instant,
        links: Links,
        header: FragmentHeader,
        content: &[u8],
    ) -> Forward {
        self.handle_timeout(now);
        let Ok(FragmentPlace::At { start, end }) = FragmentPlace::of(header, content) else {
            return Forward::Unknown;
        };
        let mut entries = self.entries.iter_mut().flatten();
        let Some(entry) = entries.find(|entry| entry.is_of(links, header)) else { return Forward::Unknown };
        // A frame whose acknowledgement was lost is repeated before any other.
        if entry.is_done() || header.datagram_offset == Some(entry.last) {
            return Forward::Duplicate;
        }
        entry.last = header.datagram_offset.unwrap_or(0);
        entry.forwarded = entry.forwarded.saturating_add((end - start) as u16);
        let header = FragmentHeader { datagram_tag: entry.route.datagram_tag, ..header };
        Forward::To { links: entry.route.links, header }
    }

    /// Returns a free entry, or else one of a complete packet.
    fn free(&self) -> Option<usize> {
        let free =
            self.entries.iter().enumerate().filter(|(_, entry)| entry.is_none_or(|entry| entry.is_done()));
        free.min_by_key(|(_, entry)| entry.map(|entry| entry.deadline)).map(|(index, _)| index)
    }
}

/// Offset of Hop Limit in an IPv6 header.
const HOP_LIMIT: usize = 7;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
