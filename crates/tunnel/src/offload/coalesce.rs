//! From packets to what is written to the interface.

use thinair_wire::checksum::Sum;

use super::{
    ACK, GSO_NONE, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CSUM, PSH, Transport, VirtioHeader, finish_ipv4,
    network, put, word,
};

/// Flows of which segments are kept at one time.
const FLOWS: usize = 8;

/// Largest number of segments in one write: older kernels accept 64 datagrams of UDP.
const SEGMENTS: usize = 64;

/// Largest packet in octets, without the header of a frame.
const LONGEST: usize = 65_535;

/// Receiver of what is to be written: header, octets, and the notes on the packets in them.
type WriteSink<'s, T> = &'s mut dyn FnMut(&VirtioHeader, &[u8], &[T]);

/// Collects packets that can be written as one.
///
/// **Pass packets to [`push`](Self::push), and call [`flush`](Self::flush) when no more of them wait.** Packets of a flow
/// keep their order. A packet is written as it is if its flow does not go on, or if anything in it would be lost: a wrong
/// checksum, other flags than ACK and PSH, fragments, extension headers, options of IPv4, or VLAN tags.
#[derive(Debug)]
pub struct Coalescer<T> {
    bridged: bool,
    /// True if the system accepts datagrams of UDP in one packet.
    udp: bool,
    /// Groups in use come first, the oldest one at the front.
    groups: Vec<Group<T>>,
    used: usize,
}

/// Segments of one flow, each of which continues the one before.
#[derive(Debug)]
struct Group<T> {
    octets: Vec<u8>,
    notes: Vec<T>,
    segment: Segment,
    /// True if its last segment ends it.
    is_closed: bool,
}

/// Offsets and numbers of a packet that may be a segment.
#[derive(Clone, Copy, Debug)]
struct Segment {
    transport: Transport,
    is_ipv6: bool,
    /// Offsets of the headers of IP and transport, and of the payload.
    network: usize,
    transport_at: usize,
    payload_at: usize,
    /// Octets of the payload.
    payload: usize,
    /// Sequence number of TCP.
    sequence: u32,
    /// Identification of IPv4.
    id: u16,
    /// True if it ends a group: PSH.
    is_end: bool,
}

impl<T: Copy> Coalescer<T> {
    /// Returns a coalescer for packets, or for frames. `udp`: the system accepts datagrams of UDP in one packet.
    pub fn new(bridged: bool, udp: bool) -> Self {
        Self { bridged, udp, groups: Vec::with_capacity(FLOWS), used: 0 }
    }

    /// Takes a packet, and passes to `write` what cannot wait for others.
    pub fn push(&mut self, packet: &[u8], note: T, write: WriteSink<'_, T>) {
        let Some((segment, can_start)) = Segment::of(self.bridged, self.udp, packet) else {
            // It may be of any flow.
            self.flush(write);
            write(&VirtioHeader::default(), packet, &[note]);
            return;
        };
        let found = (0..self.used).find(|&place| self.groups[place].is_flow(&segment, packet));
        if let Some(place) = found {
            let group = &mut self.groups[place];
            if can_start && group.continues(&segment, packet) {
                group.add(&segment, packet, note);
                if group.is_closed {
                    self.finish(place, write);
                }
                return;
            }
            self.finish(place, write);
        }
        if !can_start || segment.is_end {
            write(&VirtioHeader::default(), packet, &[note]);
            return;
        }
        if self.used == FLOWS {
            self.finish(0, write);
        }
        if self.used == self.groups.len() {
            self.groups.push(Group { octets: Vec::new(), notes: Vec::new(), segment, is_closed: false });
        }
        self.groups[self.used].start(segment, packet, note);
        self.used += 1;
    }

    /// Passes everything on.
    pub fn flush(&mut self, write: WriteSink<'_, T>) {
        for group in self.groups.iter_mut().take(self.used) {
            group.write(write);
        }
        self.used = 0;
    }

    /// Passes on the group at a place, which becomes free.
    fn finish(&mut self, place: usize, write: WriteSink<'_, T>) {
        self.groups[place].write(write);
        self.groups[place..self.used].rotate_left(1);
        self.used -= 1;
    }
}

impl<T: Copy> Group<T> {
    fn start(&mut self, segment: Segment, packet: &[u8], note: T) {
        self.octets.clear();
        self.octets.extend_from_slice(packet);
        self.notes.clear();
        self.notes.push(note);
        (self.segment, self.is_closed) = (segment, false);
    }

    /// True if the packet has the addresses and ports of this group.
    fn is_flow(&self, segment: &Segment, packet: &[u8]) -> bool {
        let own = &self.segment;
        let addresses = own.addresses();
        own.transport == segment.transport
            && own.is_ipv6 == segment.is_ipv6
            && (own.network, own.transport_at) == (segment.network, segment.transport_at)
            && self.octets.get(addresses.clone()) == packet.get(addresses)
            && self.octets.get(own.ports()) == packet.get(own.ports())
    }

    /// True if splitting this group with the packet at its end yields the packet again.
    fn continues(&self, segment: &Segment, packet: &[u8]) -> bool {
        let (own, count) = (&self.segment, self.notes.len());
        let same = |range: std::ops::Range<usize>| self.octets.get(range.clone()) == packet.get(range);
        let (n, t) = (own.network, own.transport_at);
        let ip_alike = match own.is_ipv6 {
            // Version to flow label; Next Header and Hop Limit.
            true => same(n..n + 4) && same(n + 6..n + 8),
            // Version to TOS; flags to protocol, with the identification of its number.
            false => same(n..n + 2) && same(n + 6..n + 10) && segment.id == own.id.wrapping_add(count as u16),
        };
        let transport_alike = match own.transport {
            // Acknowledgment number and data offset; window; urgent pointer and options. All have ACK.
            Transport::Tcp => {
                own.payload_at == segment.payload_at
                    && same(t + 8..t + 13)
                    && same(t + 14..t + 16)
                    && same(t + 18..own.payload_at)
                    && segment.sequence == own.sequence.wrapping_add((count * own.payload) as u32)
            }
            Transport::Udp => true,
        };
        let len = self.octets.len() - n + segment.payload;
        ip_alike
            && transport_alike
            && same(0..n)
            && segment.payload <= own.payload
            && count < SEGMENTS
            && len <= LONGEST
    }

    fn add(&mut self, segment: &Segment, packet: &[u8], note: T) {
        self.octets.extend_from_slice(packet.get(segment.payload_at..).unwrap_or_default());
        self.notes.push(note);
        if segment.is_end
            && let Some(flags) = self.octets.get_mut(segment.transport_at + 13)
        {
            *flags |= PSH;
        }
        self.is_closed = segment.is_end || segment.payload < self.segment.payload;
    }

    /// Passes on its packet. A single one has the octets with which it came.
    fn write(&mut self, write: WriteSink<'_, T>) {
        if self.notes.len() == 1 {
            write(&VirtioHeader::default(), &self.octets, &self.notes);
            return;
        }
        let Segment { transport, is_ipv6, network, transport_at, payload_at, payload, .. } = self.segment;
        let len = |from: usize| (self.octets.len() - from) as u16;
        let (ip_len, covered) = (len(network), len(transport_at));
        let addresses = self.segment.addresses();
        if let Some(ip) = self.octets.get_mut(network..transport_at) {
            if is_ipv6 {
                put(ip, 4, (ip_len - 40).to_be_bytes());
            } else {
                put(ip, 2, ip_len.to_be_bytes());
                finish_ipv4(ip);
            }
        }
        if transport == Transport::Udp {
            put(&mut self.octets, transport_at + 4, covered.to_be_bytes());
        }
        let pseudo = pseudo_header(transport, self.octets.get(addresses).unwrap_or_default(), covered);
        put(&mut self.octets, transport_at + transport.checksum_at(), pseudo.fold().to_be_bytes());
        let header = VirtioHeader {
            flags: NEEDS_CSUM,
            gso_type: match (transport, is_ipv6) {
                (Transport::Tcp, false) => GSO_TCPV4,
                (Transport::Tcp, true) => GSO_TCPV6,
                (Transport::Udp, _) => GSO_UDP_L4,
            },
            hdr_len: payload_at as u16,
            gso_size: payload as u16,
            csum_start: transport_at as u16,
            csum_offset: transport.checksum_at() as u16,
        };
        debug_assert_ne!(header.gso_type, GSO_NONE);
        write(&header, &self.octets, &self.notes);
    }
}

impl Segment {
    /// Returns the segment in a packet, and whether it can be in a group. `None`: a packet without ports.
    fn of(bridged: bool, udp: bool, packet: &[u8]) -> Option<(Self, bool)> {
        let network = network(bridged, packet)?;
        let is_tagged = bridged && network > 14;
        let ip = packet.get(network..)?;
        let (is_ipv6, protocol, header) = match ip.first()? >> 4 {
            4 => (false, *ip.get(9)?, usize::from(ip.first()? & 0xF) * 4),
            6 => (true, *ip.get(6)?, 40),
            _ => return None,
        };
        let transport = match protocol {
            6 => Transport::Tcp,
            17 => Transport::Udp,
            _ => return None,
        };
        let transport_at = network + header;
        let covered = packet.get(transport_at..)?;
        let transport_header = transport.header(covered)?;
        let (ip_len, id, is_fragment) = match is_ipv6 {
            true => (usize::from(word(ip, 4)?) + 40, 0, false),
            // MF, and the offset.
            false => (usize::from(word(ip, 2)?), word(ip, 4)?, word(ip, 6)? & 0x3FFF != 0),
        };
        let payload = covered.len() - transport_header;
        let flags = *covered.get(13).unwrap_or(&0);
        let (sequence, is_end, is_plain) = match transport {
            Transport::Tcp => {
                let sequence = u32::from_be_bytes(*covered.get(4..)?.first_chunk()?);
                // Also no reserved bits.
                let is_plain = flags & !PSH == ACK && covered.get(12)? & 0xF == 0;
                (sequence, flags & PSH != 0, is_plain)
            }
            Transport::Udp => {
                (0, false, usize::from(word(covered, 4)?) == covered.len() && word(covered, 6)? != 0)
            }
        };
        let payload_at = transport_at + transport_header;
        let segment =
            Self { transport, is_ipv6, network, transport_at, payload_at, payload, sequence, id, is_end };
        let can_start = (udp || transport == Transport::Tcp)
            && !is_tagged
            && !is_fragment
            && is_plain
            && payload > 0
            && header == if is_ipv6 { 40 } else { 20 }
            && ip_len == ip.len()
            && segment.has_right_checksums(packet);
        Some((segment, can_start))
    }

    /// Place of both addresses.
    fn addresses(&self) -> std::ops::Range<usize> {
        let n = self.network;
        if self.is_ipv6 { n + 8..n + 40 } else { n + 12..n + 20 }
    }

    /// Place of both ports.
    fn ports(&self) -> std::ops::Range<usize> {
        self.transport_at..self.transport_at + 4
    }

    fn has_right_checksums(&self, packet: &[u8]) -> bool {
        let part = |range: std::ops::Range<usize>| packet.get(range).unwrap_or_default();
        let covered = part(self.transport_at..packet.len());
        let pseudo = pseudo_header(self.transport, part(self.addresses()), covered.len() as u16);
        // The other form of zero is lost, and with it the octets of the packet.
        let is_right = |octets: &[u8], at: usize, sum: Sum| {
            sum.octets(octets).fold() == 0xFFFF && word(octets, at).is_some_and(|checksum| checksum != 0xFFFF)
        };
        let ip = part(self.network..self.transport_at);
        let has_right_ip = self.is_ipv6 || is_right(ip, 10, Sum::ZERO);
        let at = self.transport.checksum_at();
        let has_right_transport = match self.transport {
            Transport::Tcp => is_right(covered, at, pseudo),
            // 0xFFFF is the form that UDP sends, since 0 stands for no checksum.
            Transport::Udp => pseudo.octets(covered).fold() == 0xFFFF,
        };
        has_right_ip && has_right_transport
    }
}

/// Sum of the pseudo-header of `covered` octets.
fn pseudo_header(transport: Transport, addresses: &[u8], covered: u16) -> Sum {
    Sum::ZERO.octets(addresses).word(transport.number().into()).word(covered)
}
