//! Splitting, coalescing, and both in turn.

use proptest::prelude::*;
use thinair_wire::checksum::Sum;

use super::*;

/// A packet of TCP or UDP, with its checksums or with what an interface leaves of them.
#[derive(Clone, Debug)]
struct Shape {
    is_ipv6: bool,
    is_udp: bool,
    /// Header of Ethernet, with a VLAN tag.
    frame: Option<bool>,
    /// Extension headers of IPv6: Hop-by-Hop Options of 8 octets, or options of IPv4 of 4.
    is_extended: bool,
    /// Options of TCP, in words.
    options: usize,
    flags: u8,
    id: u16,
    sequence: u32,
    port: u16,
    payload: Vec<u8>,
}

impl Shape {
    fn tcp(payload: usize) -> Self {
        let payload = (0..payload).map(|i| (i * 7) as u8).collect();
        Self {
            is_ipv6: false,
            is_udp: false,
            frame: None,
            is_extended: false,
            options: 3,
            flags: ACK,
            id: 0xFFFE,
            sequence: u32::MAX - 2_000,
            port: 80,
            payload,
        }
    }

    fn link(&self) -> Vec<u8> {
        let ether_type: [u8; 2] = if self.is_ipv6 { [0x86, 0xDD] } else { [8, 0] };
        match self.frame {
            None => Vec::new(),
            Some(is_tagged) => {
                let mut link = vec![2; 12];
                link.extend_from_slice(if is_tagged { &[0x81, 0, 0, 5] } else { &[] });
                link.extend(ether_type);
                link
            }
        }
    }

    /// Offset of the transport header.
    fn transport_at(&self) -> usize {
        self.link().len()
            + match (self.is_ipv6, self.is_extended) {
                (true, extended) => 40 + if extended { 8 } else { 0 },
                (false, extended) => 20 + if extended { 4 } else { 0 },
            }
    }

    fn transport(&self) -> Transport {
        if self.is_udp { Transport::Udp } else { Transport::Tcp }
    }

    /// The packet without any checksum.
    fn blank(&self) -> Vec<u8> {
        let mut segment = [self.port, 4_000].iter().flat_map(|port| port.to_be_bytes()).collect::<Vec<_>>();
        if self.is_udp {
            segment.extend(((8 + self.payload.len()) as u16).to_be_bytes());
            segment.extend([0; 2]);
        } else {
            segment.extend(self.sequence.to_be_bytes());
            segment.extend([1, 2, 3, 4, ((5 + self.options) << 4) as u8, self.flags, 5, 6, 0, 0, 0, 0]);
            segment.extend(std::iter::repeat_n(1, self.options * 4));
        }
        segment.extend_from_slice(&self.payload);
        let mut packet = self.link();
        let number = self.transport().number();
        if self.is_ipv6 {
            let length = segment.len() + if self.is_extended { 8 } else { 0 };
            packet.extend([0x60, 0, 0, 1]);
            packet.extend((length as u16).to_be_bytes());
            packet.extend([if self.is_extended { 0 } else { number }, 64]);
            packet.extend([0xfd; 16]);
            packet.extend([0xfe; 16]);
            if self.is_extended {
                packet.extend([number, 0, 1, 4, 0, 0, 0, 0]);
            }
        } else {
            let words = if self.is_extended { 6 } else { 5 };
            packet.extend([0x40 | words, 0]);
            packet.extend(((usize::from(words) * 4 + segment.len()) as u16).to_be_bytes());
            packet.extend(self.id.to_be_bytes());
            packet.extend([0x40, 0, 64, number, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            packet.extend(std::iter::repeat_n(1, usize::from(words - 5) * 4));
            let (start, end) = (self.link().len(), packet.len());
            let sum = naive(&packet[start..end]);
            packet[start + 10..start + 12].copy_from_slice(&(!sum).to_be_bytes());
        }
        packet.extend(segment);
        packet
    }

    fn pseudo(&self, covered: usize) -> Vec<u8> {
        let mut pseudo =
            if self.is_ipv6 { [[0xfd; 16], [0xfe; 16]].concat() } else { vec![10, 0, 0, 1, 10, 0, 0, 2] };
        pseudo.extend([0, self.transport().number()]);
        pseudo.extend((covered as u16).to_be_bytes());
        pseudo
    }

    /// The packet as a host without offloads sends it.
    fn packet(&self) -> Vec<u8> {
        let mut packet = self.blank();
        let at = self.transport_at();
        let covered = packet[at..].to_vec();
        let sum = !naive(&[self.pseudo(covered.len()), covered].concat());
        let sum = if self.is_udp && sum == 0 { 0xFFFF } else { sum };
        let place = at + self.transport().checksum_at();
        packet[place..place + 2].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    /// The packet as the interface has it, for segments of `size`.
    fn offloaded(&self, size: usize) -> (VirtioHeader, Vec<u8>) {
        let mut packet = self.blank();
        let at = self.transport_at();
        let place = at + self.transport().checksum_at();
        let sum = naive(&self.pseudo(packet.len() - at));
        packet[place..place + 2].copy_from_slice(&sum.to_be_bytes());
        let gso_type = match (self.is_udp, self.is_ipv6) {
            (true, _) => GSO_UDP_L4,
            (false, true) => GSO_TCPV6,
            (false, false) => GSO_TCPV4,
        };
        let header = VirtioHeader {
            flags: NEEDS_CSUM,
            gso_type: if size == 0 { GSO_NONE } else { gso_type },
            hdr_len: (packet.len() - self.payload.len()) as u16,
            gso_size: size as u16,
            csum_start: at as u16,
            csum_offset: self.transport().checksum_at() as u16,
        };
        (header, packet)
    }

    /// The packets that a host without offloads sends instead.
    fn segments(&self, size: usize) -> Vec<Vec<u8>> {
        let chunks: Vec<_> = self.payload.chunks(size).collect();
        let last = chunks.len() - 1;
        let segment = |(i, payload): (usize, &&[u8])| {
            let mut flags = self.flags;
            flags &= if i == last { 0xFF } else { !(FIN | PSH) };
            flags &= if i == 0 { 0xFF } else { !CWR };
            let id = self.id.wrapping_add(i as u16);
            let sequence = self.sequence.wrapping_add((i * size) as u32);
            Self { flags, id, sequence, payload: payload.to_vec(), ..self.clone() }.packet()
        };
        chunks.iter().enumerate().map(segment).collect()
    }
}

/// The sum of 16-bit words, one after the other (RFC 1071, section 4.1).
fn naive(octets: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in octets.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    sum as u16
}

fn split(bridged: bool, header: &VirtioHeader, packet: &[u8]) -> Result<Vec<Vec<u8>>, BadOffload> {
    let mut packet = packet.to_vec();
    let mut splitter = Splitter::new(bridged);
    splitter.begin(header, &mut packet)?;
    let mut all = Vec::new();
    while let Some(range) = splitter.next(&mut packet) {
        all.push(packet[range].to_vec());
    }
    assert!(splitter.is_done());
    Ok(all)
}

/// Header, octets, and numbers of the packets of each write.
type Writes = Vec<(VirtioHeader, Vec<u8>, Vec<usize>)>;

fn coalesce(bridged: bool, udp: bool, packets: &[Vec<u8>]) -> Writes {
    let mut writes = Vec::new();
    let mut coalescer = Coalescer::new(bridged, udp);
    let write = &mut |header: &VirtioHeader, octets: &[u8], notes: &[usize]| {
        writes.push((*header, octets.to_vec(), notes.to_vec()));
    };
    for (number, packet) in packets.iter().enumerate() {
        coalescer.push(packet, number, write);
    }
    coalescer.flush(write);
    writes
}

fn shapes() -> impl Strategy<Value = Shape> {
    let flags =
        prop::sample::select(vec![ACK, ACK | PSH, ACK | FIN, ACK | CWR, ACK | CWR | PSH | FIN, 0x18 | 0x40]);
    let kind = (any::<bool>(), any::<bool>(), any::<Option<bool>>(), any::<bool>());
    let rest =
        (0..=10_usize, flags, any::<u16>(), any::<u32>(), prop::collection::vec(any::<u8>(), 1..4_000));
    (kind, rest).prop_map(
        |((is_ipv6, is_udp, frame, is_extended), (options, flags, id, sequence, payload))| Shape {
            is_ipv6,
            is_udp,
            frame,
            is_extended,
            options,
            flags,
            id,
            sequence,
            port: 80,
            payload,
        },
    )
}

proptest! {
    #[test]
    fn segments_are_those_of_a_host_without_offloads(shape in shapes(), size in 1..1_500_usize) {
        let (header, packet) = shape.offloaded(size);
        prop_assert_eq!(split(shape.frame.is_some(), &header, &packet).unwrap(), shape.segments(size));
        let (header, packet) = shape.offloaded(0);
        prop_assert_eq!(split(shape.frame.is_some(), &header, &packet).unwrap(), [shape.packet()]);
    }

    #[test]
    fn what_was_split_is_written_as_it_was(mut shape in shapes(), size in 1..1_500_usize) {
        (shape.is_extended, shape.frame) = (false, shape.frame.filter(|is_tagged| !is_tagged));
        shape.flags = shape.flags & PSH | ACK;
        let (header, packet) = shape.offloaded(size);
        let bridged = shape.frame.is_some();
        let segments = split(bridged, &header, &packet).unwrap();
        let writes = coalesce(bridged, true, &segments);
        if (2..=64).contains(&segments.len()) {
            let all: Vec<_> = (0..segments.len()).collect();
            prop_assert_eq!(writes, [(header, packet, all)]);
        } else {
            let written = writes.iter().flat_map(|(header, octets, _)| split(bridged, header, octets).unwrap());
            prop_assert_eq!(written.collect::<Vec<_>>(), segments);
        }
    }

    /// Packets of two flows that go on, or not, and of a third protocol.
    #[test]
    fn each_flow_is_written_octet_by_octet_and_in_its_order(
        steps in prop::collection::vec((0..2_u16, 0..9_u8, 1..200_usize), 1..100),
        is_ipv6: bool, is_udp: bool, udp: bool, frame: bool,
    ) {
        let mut flows = [80, 81].map(|port| {
            let frame = frame.then_some(false);
            Shape { port, is_ipv6, is_udp, frame, payload: vec![port as u8; 100], ..Shape::tcp(0) }
        });
        let mut packets = Vec::new();
        for (flow, what, len) in steps {
            let shape = &mut flows[usize::from(flow)];
            let mut sent = shape.clone();
            let (mut damage, mut hops) = (None, 0);
            match what {
                0 => sent.payload = vec![7; len],
                1 => sent.flags |= PSH,
                2 => sent.flags = ACK | FIN,
                3 => sent.payload.clear(),
                4 => damage = Some(len),
                5 => sent.id = 3,
                6 => hops = 1,
                _ => {}
            }
            shape.sequence = sent.sequence.wrapping_add(sent.payload.len() as u32);
            shape.id = sent.id.wrapping_add(1);
            let mut packet = sent.packet();
            // Behind the ports; and TTL or Hop Limit, of which only the first one has a checksum.
            let transport_at = sent.transport_at();
            if let Some(at) = damage {
                let at = transport_at + 4 + at % (packet.len() - transport_at - 4);
                packet[at] ^= 0x10;
            }
            packet[sent.link().len() + if is_ipv6 { 7 } else { 8 }] ^= hops;
            packets.push(packet);
        }
        let writes = coalesce(frame, udp, &packets);
        let mut order = Vec::new();
        for (header, octets, numbers) in &writes {
            let written = split(frame, header, octets).unwrap();
            prop_assert_eq!(written.len(), numbers.len());
            for (packet, number) in written.iter().zip(numbers) {
                prop_assert_eq!(packet, &packets[*number]);
            }
            order.extend_from_slice(numbers);
        }
        let port_at = flows[0].transport_at() + 1;
        for port in [80, 81] {
            let of_flow = order.iter().filter(|number| packets[**number][port_at] == port);
            prop_assert!(of_flow.is_sorted());
        }
        order.sort_unstable();
        prop_assert_eq!(order, (0..packets.len()).collect::<Vec<_>>());
    }

    #[test]
    fn no_header_and_no_packet_make_it_panic(header: [u8; HEADER], packet: Vec<u8>, bridged: bool, kind in 0..6_u8) {
        let mut header = VirtioHeader::read(header);
        header.gso_type = kind;
        let _ = split(bridged, &header, &packet);
        header.csum_start %= 80;
        header.csum_offset = [16, 6][usize::from(kind) % 2];
        let _ = split(bridged, &header, &packet);
        coalesce(bridged, true, &[packet.clone(), packet]);
    }
}

#[test]
fn a_header_has_the_octets_of_the_driver() {
    let octets = [1, 0x81, 54, 0, 0xB4, 5, 34, 0, 16, 0];
    let header = VirtioHeader {
        flags: NEEDS_CSUM,
        gso_type: GSO_TCPV4 | GSO_ECN,
        hdr_len: 54,
        gso_size: 1_460,
        csum_start: 34,
        csum_offset: 16,
    };
    assert_eq!((VirtioHeader::read(octets), header.octets()), (header, octets));
}

#[test]
fn a_short_last_segment_has_the_flags_of_the_end_and_the_first_one_cwr() {
    let shape = Shape { flags: ACK | CWR | PSH | FIN, ..Shape::tcp(2_500) };
    let (header, packet) = shape.offloaded(1_000);
    let header = VirtioHeader { gso_type: header.gso_type | GSO_ECN, ..header };
    let segments = split(false, &header, &packet).unwrap();
    assert_eq!(segments, shape.segments(1_000));
    let figures = segments
        .iter()
        .map(|segment| (segment.len() - 52, segment[33], u16::from_be_bytes([segment[4], segment[5]])));
    // The Identification goes on behind 0xFFFF.
    let expected = [(1_000, ACK | CWR, 0xFFFE), (1_000, ACK, 0xFFFF), (500, ACK | PSH | FIN, 0)];
    assert_eq!(figures.collect::<Vec<_>>(), expected);
}

#[test]
fn a_packet_of_ipv6_with_extension_headers_is_split() {
    let shape = Shape { is_ipv6: true, is_extended: true, ..Shape::tcp(2_500) };
    let (header, packet) = shape.offloaded(1_000);
    let segments = split(false, &header, &packet).unwrap();
    assert_eq!(segments, shape.segments(1_000));
    // Hop-by-Hop Options in each; written one by one.
    assert!(segments.iter().all(|segment| segment[6] == 0 && segment[40] == 6));
    assert_eq!(coalesce(false, true, &segments).len(), 3);
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    let shape = Shape::tcp(3_000);
    let mut segments = shape.segments(1_000);
    segments[1][36] ^= 1;
    let writes = coalesce(false, true, &segments);
    let alone: Vec<_> = segments.iter().map(|segment| (VirtioHeader::default(), segment.clone())).collect();
    let written: Vec<_> = writes.into_iter().map(|(header, octets, _)| (header, octets)).collect();
    assert_eq!(written, alone);
    let sums = segments.iter().map(|s| Sum::ZERO.octets(&shape.pseudo(s.len() - 20)).octets(&s[20..]).fold());
    assert_eq!(sums.map(|sum| sum == 0xFFFF).collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn a_ping_is_written_at_once_behind_what_came_before() {
    let mut ping = Shape::tcp(10).packet();
    ping[9] = 1;
    let segments = Shape::tcp(3_000).segments(1_000);
    let packets = [segments[..2].to_vec(), vec![ping], segments[2..].to_vec()].concat();
    let numbers: Vec<_> =
        coalesce(false, true, &packets).into_iter().map(|(_, _, numbers)| numbers).collect();
    assert_eq!(numbers, [vec![0, 1], vec![2], vec![3]]);
}

#[test]
fn more_flows_than_places_are_written_in_the_order_of_their_beginning() {
    let flows = (80..92).map(|port| Shape { port, ..Shape::tcp(100) }.packet());
    let numbers =
        coalesce(false, true, &flows.collect::<Vec<_>>()).into_iter().flat_map(|(_, _, numbers)| numbers);
    assert_eq!(numbers.collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
}

#[test]
fn contradictory_headers_are_rejected() {
    let (good, packet) = Shape::tcp(2_500).offloaded(1_000);
    assert!(split(false, &good, &packet).is_ok());
    for bad in [
        VirtioHeader { gso_type: GSO_TCPV6, ..good },
        VirtioHeader { gso_size: 0, ..good },
        VirtioHeader { flags: 0, ..good },
        VirtioHeader { csum_start: 16, ..good },
        VirtioHeader { csum_start: 24, ..good },
        VirtioHeader { csum_offset: 6, ..good },
    ] {
        assert_eq!(split(false, &bad, &packet), Err(BadOffload::Lengths(packet.len())), "{bad:?}");
    }
    let unknown = VirtioHeader { gso_type: 3, ..good };
    assert_eq!(split(false, &unknown, &packet), Err(BadOffload::Kind(3)));
    // A packet that was cut.
    assert!(split(false, &good, &packet[..2_000]).is_err());
    let checksum = VirtioHeader { gso_type: GSO_NONE, csum_start: 2_550, ..good };
    assert!(split(false, &checksum, &packet).is_err());
}
