//! From a packet of the interface to those that it stands for.

use std::ops::Range;

use thinair_wire::checksum::Sum;

use super::{
    CWR, FIN, GSO_ECN, GSO_NONE, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CSUM, PSH, Transport, VirtioHeader,
    finish_ipv4, network, put, word,
};

/// Reason why the header of the driver and the packet contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOffload {
    /// Segments of an unknown kind.
    #[error("the interface has a packet of unknown GSO type {0}")]
    Kind(u8),
    /// Offsets or lengths contradict each other.
    #[error("the offload header of the interface and its packet of {0} octets contradict each other")]
    Lengths(usize),
}

/// Makes packets of what an interface has.
///
/// **Pass each packet to [`begin`](Self::begin), and call [`next`](Self::next) with the same buffer until it returns
/// `None`.** Each packet is a part of the buffer, and overwrites a part of the one before.
#[derive(Debug, Default)]
pub struct Splitter {
    bridged: bool,
    /// A packet that is no segment.
    whole: Option<usize>,
    /// Headers of the first segment.
    headers: Vec<u8>,
    segments: Option<Segments>,
}

/// The segments that are left.
#[derive(Debug)]
struct Segments {
    transport: Transport,
    is_ipv6: bool,
    /// Offsets of the headers of IP and transport.
    network: usize,
    transport_at: usize,
    /// Sum of the pseudo-header without the length.
    pseudo: Sum,
    size: usize,
    /// Number of the next segment.
    number: usize,
    /// Length of the packet.
    len: usize,
}

impl Splitter {
    /// Returns a splitter for packets, or for frames.
    pub fn new(bridged: bool) -> Self {
        Self { bridged, ..Self::default() }
    }

    /// Begins a packet; what is left of the one before is dropped. A missing checksum is computed.
    pub fn begin(&mut self, header: &VirtioHeader, packet: &mut [u8]) -> Result<(), BadOffload> {
        (self.whole, self.segments) = (None, None);
        let bad = BadOffload::Lengths(packet.len());
        let needs_checksum = header.flags & NEEDS_CSUM != 0;
        let (transport, is_ipv6) = match header.gso_type & !GSO_ECN {
            GSO_NONE => {
                if needs_checksum {
                    complete(header, packet).ok_or(bad)?;
                }
                self.whole = Some(packet.len());
                return Ok(());
            }
            GSO_TCPV4 => (Transport::Tcp, false),
            GSO_TCPV6 => (Transport::Tcp, true),
            GSO_UDP_L4 => {
                let network = network(self.bridged, packet).ok_or(bad)?;
                (Transport::Udp, packet.get(network).is_some_and(|first| first >> 4 == 6))
            }
            other => return Err(BadOffload::Kind(other)),
        };
        self.segments = Some(self.first(header, packet, transport, is_ipv6).ok_or(bad)?);
        Ok(())
    }

    /// Checks all offsets, and keeps the headers.
    fn first(
        &mut self,
        header: &VirtioHeader,
        packet: &[u8],
        transport: Transport,
        is_ipv6: bool,
    ) -> Option<Segments> {
        let network = network(self.bridged, packet)?;
        let (transport_at, size) = (usize::from(header.csum_start), usize::from(header.gso_size));
        let ip = packet.get(network..)?;
        let (least, version) = if is_ipv6 { (40, 6) } else { (20, 4) };
        let is_whole = match is_ipv6 {
            true => usize::from(word(ip, 4)?) + 40 == ip.len(),
            false => usize::from(word(ip, 2)?) == ip.len(),
        };
        let headers = transport_at + transport.header(packet.get(transport_at..)?)?;
        let is_consistent = is_whole
            && header.flags & NEEDS_CSUM != 0
            && usize::from(header.csum_offset) == transport.checksum_at()
            && size > 0
            && transport_at >= network + least
            && headers < packet.len()
            && ip.first()? >> 4 == version
            && (is_ipv6 || usize::from(ip.first()? & 0xF) * 4 == transport_at - network);
        if !is_consistent {
            return None;
        }
        let covered = u16::try_from(packet.len() - transport_at).ok()?;
        let pseudo = word(packet, transport_at + transport.checksum_at())?;
        self.headers.clear();
        self.headers.extend_from_slice(packet.get(..headers)?);
        put(&mut self.headers, transport_at + transport.checksum_at(), [0; 2]);
        Some(Segments {
            transport,
            is_ipv6,
            network,
            transport_at,
            pseudo: Sum::ZERO.word(pseudo).word(!covered),
            size,
            number: 0,
            len: packet.len(),
        })
    }

    /// True if there is no packet.
    pub fn is_done(&self) -> bool {
        self.whole.is_none() && self.segments.is_none()
    }

    /// Returns the place of the next packet in `packet`, the buffer that was begun.
    pub fn next(&mut self, packet: &mut [u8]) -> Option<Range<usize>> {
        if let Some(len) = self.whole.take() {
            return Some(0..len);
        }
        let segments = self.segments.as_mut()?;
        let headers = self.headers.len();
        // The headers take the place of the end of the segment before.
        let start = segments.number * segments.size;
        let end = (start + headers + segments.size).min(segments.len);
        let place = packet.get_mut(start..end)?;
        place.get_mut(..headers)?.copy_from_slice(&self.headers);
        let is_last = end == segments.len;
        segments.finish(place, is_last);
        segments.number += 1;
        if is_last {
            self.segments = None;
        }
        Some(start..end)
    }
}

impl Segments {
    /// Changes the headers of the first segment to those of this one.
    fn finish(&self, packet: &mut [u8], is_last: bool) {
        let number = self.number;
        let covered = packet.len() - self.transport_at;
        let octets = |len: usize| (len as u16).to_be_bytes();
        let ip_len = packet.len() - self.network;
        if let Some(ip) = packet.get_mut(self.network..self.transport_at) {
            if self.is_ipv6 {
                put(ip, 4, octets(ip_len - 40));
            } else {
                let id = word(ip, 4).unwrap_or_default().wrapping_add(number as u16);
                put(ip, 2, octets(ip_len));
                put(ip, 4, id.to_be_bytes());
                finish_ipv4(ip);
            }
        }
        let Some(segment) = packet.get_mut(self.transport_at..) else { return };
        match self.transport {
            Transport::Tcp => {
                let first = segment.get(4..).and_then(|octets| octets.first_chunk()).copied();
                let first = u32::from_be_bytes(first.unwrap_or_default());
                let sequence = first.wrapping_add((number * self.size) as u32);
                put(segment, 4, sequence.to_be_bytes());
                if let Some(flags) = segment.get_mut(13) {
                    *flags &= !if is_last { 0 } else { FIN | PSH };
                    *flags &= !if number == 0 { 0 } else { CWR };
                }
            }
            Transport::Udp => put(segment, 4, octets(covered)),
        }
        let sum = self.pseudo.word(covered as u16).octets(segment);
        put(segment, self.transport.checksum_at(), self.transport.checksum(sum).to_be_bytes());
    }
}

/// Computes the checksum that a header describes. `None`: it is not in the packet.
fn complete(header: &VirtioHeader, packet: &mut [u8]) -> Option<()> {
    let covered = packet.get_mut(usize::from(header.csum_start)..)?;
    let at = usize::from(header.csum_offset);
    covered.get(at..at + 2)?;
    // The field holds the sum of the pseudo-header.
    let sum = Sum::ZERO.octets(covered);
    // TCP and UDP have their checksums at different places.
    let transport = if at == Transport::Udp.checksum_at() { Transport::Udp } else { Transport::Tcp };
    put(covered, at, transport.checksum(sum).to_be_bytes());
    Some(())
}
