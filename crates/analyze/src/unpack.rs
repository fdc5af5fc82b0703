//! Extraction of IP packets from the records of a capture, one record at a time.
//!
//! Most frames contain the packet, or its beginning; those of IEEE 802.15.4 contain it compressed and in
//! fragments (`mesh.rs`). Tunnels are removed, since a mirror port or router captures the traffic in them:
//! GRE, ERSPAN, VXLAN, Geneve, GTP-U and L2TP (`tunnel.rs`), and frames of IEEE 802.15.4 that a sniffer forwards in
//! datagrams (ZEP).

use std::collections::BTreeMap;

use thinair_capture::{LinkType, Record, Skip, ZEP_PORT, zep_frame};
use thinair_lowpan::Contexts;
use thinair_rohc::Ports;

use crate::mesh::MeshReassembly;
use crate::packet::ParsedPacket;
use crate::tunnel::{OpenedTunnel, closed_tunnel};

/// Maximum nesting of tunnels.
const DEEPEST: usize = 4;

/// Extracts the IP packets that an analysis counts from the records of one capture.
///
/// ```
/// use thinair_analyze::Unpack;
/// use thinair_capture::{LinkType, Record, Timestamp};
/// use thinair_lowpan::Contexts;
///
/// // GRE from 198.51.100.1 to 198.51.100.2, and in it an IPv4 header from 192.0.2.1 to 192.0.2.2.
/// let data = [
///     0x45, 0, 0, 44, 0, 0, 0, 0, 64, 47, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2, 0, 0, 8, 0,
///     0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0xf6, 0xd5, 192, 0, 2, 1, 192, 0, 2, 2,
/// ];
/// let time = Timestamp::from_nanos(0);
/// let record = Record { number: 1, time, link_type: LinkType::RAW, data: &data, original_len: 44 };
///
/// let mut unpack = Unpack::new(Contexts::NONE);
/// assert_eq!(unpack.network_packet(&record), Ok(&data[24..]));
/// assert_eq!(unpack.unwrapped()["gre"], 1);
///
/// let mut outer = Unpack::new(Contexts::NONE).keeping_tunnels(true);
/// assert_eq!(outer.network_packet(&record), Ok(&data[..]));
/// ```
pub struct Unpack {
    mesh: MeshReassembly,
    keeps_tunnels: bool,
    /// CoAP ports; if set, packets with a truncated payload are filled with zeros according to their headers.
    fills: Option<Ports>,
    filled: Vec<u8>,
    tunnels: TunnelCounts,
}

/// Number of packets in tunnels, by kind of tunnel.
#[derive(Debug, Default)]
struct TunnelCounts {
    opened: BTreeMap<&'static str, u64>,
    closed: BTreeMap<&'static str, u64>,
}

impl Unpack {
    /// Returns an extractor that removes tunnels. `contexts`: those of LOWPAN_IPHC in the captured network.
    pub fn new(contexts: Contexts) -> Self {
        Self {
            mesh: MeshReassembly::new(contexts),
            keeps_tunnels: false,
            fills: None,
            filled: Vec::new(),
            tunnels: TunnelCounts::default(),
        }
    }

    /// Sets whether the outer packets of tunnels are returned. Default: false.
    pub fn keeping_tunnels(self, keep: bool) -> Self {
        Self { keeps_tunnels: keep, ..self }
    }

    /// Accepts packets with complete headers and a truncated payload, as in captures with a snap length:
    /// zeros replace the missing octets, and checksums stay unchanged. Headers are those of IP, of UDP,
    /// UDP-Lite, TCP and ESP, and of CoAP on `ports`. By default such packets are `truncated`.
    pub(crate) fn filling_payload(self, ports: Ports) -> Self {
        Self { fills: Some(ports), ..self }
    }

    /// Number of packets that were in a tunnel, also of tunnels that are kept, by kind: `gre`,
    /// `gre_ethernet`, `erspan`, `vxlan`, `geneve`, `gtpu`, `l2tp` or `zep`.
    pub fn unwrapped(&self) -> &BTreeMap<&'static str, u64> {
        &self.tunnels.opened
    }

    /// Number of packets of tunnels that are not opened, since their content is not IP or has no indication, by kind:
    /// `gre`, `vxlan`, `geneve`, `gtpu`, `l2tp`, `l2tpv3` or `mpls`. Their outer packets are returned.
    pub fn not_unwrapped(&self) -> &BTreeMap<&'static str, u64> {
        &self.tunnels.closed
    }

    /// Number of frames whose headers were compressed with LOWPAN_IPHC; their packets are returned expanded.
    pub(crate) fn iphc_frames(&self) -> u64 {
        self.mesh.iphc_frames()
    }

    /// Returns the octets of the IP packet that a record contains or completes.
    ///
    /// # Errors
    /// A stable name of the reason why there is none.
    pub fn network_packet<'p>(&'p mut self, record: &Record<'p>) -> Result<&'p [u8], &'static str> {
        match self.find(record)? {
            FoundPacket::Packet(packet) => Ok(packet.octets),
            FoundPacket::NotParsed(octets) => Ok(octets),
        }
    }

    /// Returns the IP packet that a record contains or completes, or a stable name of the reason why there is
    /// none.
    pub(crate) fn packet<'p>(&'p mut self, record: &Record<'p>) -> Result<ParsedPacket<'p>, &'static str> {
        match self.find(record)? {
            FoundPacket::Packet(packet) => Ok(packet),
            FoundPacket::NotParsed(_) => Err(Skip::NotIp.name()),
        }
    }

    fn find<'p>(&'p mut self, record: &Record<'p>) -> Result<FoundPacket<'p>, &'static str> {
        let is_mac_frame =
            [LinkType::IEEE802_15_4_WITHFCS, LinkType::IEEE802_15_4_NOFCS, LinkType::IEEE802_15_4_TAP]
                .contains(&record.link_type);
        let frame = if is_mac_frame {
            record.mac_frame().map_err(Skip::name)?
        } else {
            let network = record.part_of_network_packet().map_err(Skip::name)?;
            let missing = network.missing_len;
            let octets = match (missing, self.fills) {
                (0, _) => network.packet,
                (_, None) => return Err(Skip::Truncated.name()),
                (_, Some(_)) => {
                    self.filled.clear();
                    self.filled.extend_from_slice(network.packet);
                    self.filled.resize(network.packet.len() + missing, 0);
                    &self.filled
                }
            };
            let deepest = if self.keeps_tunnels { 0 } else { DEEPEST };
            let found = without_tunnels(octets, deepest, &mut self.tunnels)
                .map_err(|reason| if missing == 0 { reason } else { Skip::Truncated.name() })?;
            let FoundPacket::Packet(packet) = found else {
                return if missing == 0 { Ok(found) } else { Err(Skip::Truncated.name()) };
            };
            let zep = packet.datagram_to(ZEP_PORT).filter(|_| !self.keeps_tunnels).and_then(zep_frame);
            match (zep, self.fills) {
                (None, Some(ports)) if missing > 0 => {
                    let packet = packet.with_missing(missing, &ports).ok_or(Skip::Truncated.name())?;
                    return Ok(FoundPacket::Packet(packet));
                }
                (None, _) => return Ok(FoundPacket::Packet(packet)),
                (Some(_), _) if missing > 0 => return Err(Skip::Truncated.name()),
                (Some(frame), _) => {
                    *self.tunnels.opened.entry("zep").or_default() += 1;
                    frame.map_err(Skip::name)?
                }
            }
        };
        Ok(FoundPacket::of(self.mesh.packet(record.time, frame)?))
    }
}

/// Returns the innermost packet of nested tunnels.
fn without_tunnels<'p>(
    octets: &'p [u8],
    deepest: usize,
    tunnels: &mut TunnelCounts,
) -> Result<FoundPacket<'p>, &'static str> {
    let mut found = FoundPacket::of(octets);
    for _ in 0..deepest {
        let FoundPacket::Packet(packet) = &found else { break };
        let Some(tunnel) = OpenedTunnel::of(packet) else {
            if let Some(name) = closed_tunnel(packet) {
                *tunnels.closed.entry(name).or_default() += 1;
            }
            break;
        };
        *tunnels.opened.entry(tunnel.name).or_default() += 1;
        found = FoundPacket::of(tunnel.inside.map_err(Skip::name)?);
    }
    Ok(found)
}

/// An IP packet, possibly with headers that cannot be parsed.
enum FoundPacket<'p> {
    Packet(ParsedPacket<'p>),
    NotParsed(&'p [u8]),
}

impl<'p> FoundPacket<'p> {
    fn of(octets: &'p [u8]) -> Self {
        ParsedPacket::parse(octets).map_or(Self::NotParsed(octets), Self::Packet)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use thinair_capture::Timestamp;
    use thinair_lowpan::fragment::Fragments;
    use thinair_lowpan::frame::WpanFrame;
    use thinair_lowpan::{
        CompressedPacket, LinkAddress, Links, LowpanContext, LowpanSettings, UdpChecksum, compress, dispatch,
        fcs,
    };

    const SETTINGS: LowpanSettings =
        LowpanSettings { contexts: Contexts::NONE, udp_checksum: UdpChecksum::Elided };

    const LINKS: Links = Links { source: LinkAddress::Short(1), destination: LinkAddress::Short(2) };

    /// ICMPv6 between link-local addresses derived from link addresses.
    fn packet(payload: usize) -> Vec<u8> {
        let mut packet =
            b"\x60\0\0\0\0\0\x3a\x40\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\x01\xfe\x80\0\0\0\0\0\0".to_vec();
        packet.extend(b"\0\0\0\xff\xfe\0\0\x02");
        packet[4..6].copy_from_slice(&(payload as u16).to_be_bytes());
        packet.resize(40 + payload, 0x55);
        packet
    }

    fn frames(compressed: &CompressedPacket, octets: &[u8]) -> Vec<Vec<u8>> {
        let fragments = Fragments::new(compressed, octets, 1, 100).unwrap();
        let frame = |fragment: thinair_lowpan::fragment::Fragment<'_>| {
            let (mut payload, mut out) = ([0; 127], vec![0; 127]);
            let end = fragment.write(&mut payload).unwrap();
            let end = WpanFrame::data(7, LINKS, 0, &payload[..end]).write(&mut out).unwrap();
            out.truncate(end);
            out
        };
        fragments.map(frame).collect()
    }

    fn sent(packet: &[u8], settings: &LowpanSettings) -> Vec<Vec<u8>> {
        let mut out = vec![0; packet.len() + 1];
        let compressed = compress(settings, LINKS, packet, &mut out).unwrap();
        frames(&compressed, &out[..compressed.len])
    }

    /// Returns the results for frames at intervals of one second, with or without check sequence.
    fn results(
        unpack: &mut Unpack,
        frames: &[Vec<u8>],
        link_type: LinkType,
    ) -> Vec<Result<Vec<u8>, &'static str>> {
        let one = |(number, frame): (u64, &Vec<u8>)| {
            let mut data = frame.clone();
            if link_type == LinkType::IEEE802_15_4_WITHFCS {
                data.extend(fcs::fcs(frame));
            }
            let time = Timestamp::from_nanos(number * 1_000_000_000);
            let original_len = data.len() as u32;
            let record = Record { number, time, link_type, data: &data, original_len };
            unpack.packet(&record).map(|packet| packet.octets.to_vec())
        };
        (1..).zip(frames).map(one).collect()
    }

    #[test]
    fn packets_are_whole_again_with_the_frame_that_completes_them() {
        for link_type in [LinkType::IEEE802_15_4_WITHFCS, LinkType::IEEE802_15_4_NOFCS] {
            let (short, long) = (packet(30), packet(300));
            let mut all = sent(&short, &SETTINGS);
            all.extend(sent(&long, &SETTINGS));
            let expected = [Ok(short), Err("fragment"), Err("fragment"), Err("fragment"), Ok(long)];
            assert_eq!(results(&mut Unpack::new(Contexts::NONE), &all, link_type), expected);
        }
    }

    #[test]
    fn a_frame_without_a_packet_says_why() {
        let context =
            LowpanContext::new([0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFE, 0, 0, 2], 128).unwrap();
        let mut other = packet(30);
        other[24..40].copy_from_slice(b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01");
        let global = LowpanContext::new(*b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\0", 64).unwrap();
        let contexts = Contexts::NONE.with(0, context).unwrap().with(1, global).unwrap();
        let with_context = sent(&other, &LowpanSettings { contexts, ..SETTINGS }).remove(0);
        let rohc = [&dispatch::ROHC[..], b"\x12\x34"].concat();
        let rohc = frames(&CompressedPacket::rohc(rohc.len()), &rohc).remove(0);
        let acknowledgement = b"\x02\x00\x6a".to_vec();
        let encrypted = b"\x49\x98\x07\xcd\xab\x04\x03\x02\x01\x05\0\0\0\0\x7a\0\0\0\0".to_vec();
        let cut = b"\x41\x88\x07\xcd\xab\x04".to_vec();
        let all = [with_context, rohc, acknowledgement, encrypted, cut];
        let names = ["no_context", "not_ip", "not_ip", "encrypted", "malformed_frame"];
        let expected = names.map(Err);
        assert_eq!(results(&mut Unpack::new(Contexts::NONE), &all, LinkType::IEEE802_15_4_NOFCS), expected);
        // With the check sequence of an empty frame.
        let wrong = [packet(0)];
        assert_eq!(
            results(&mut Unpack::new(Contexts::NONE), &wrong, LinkType::IEEE802_15_4_TAP),
            [Err("unsupported_link_type")]
        );
        let data = b"\x02\x00\x6a\xe4\x78";
        let link_type = LinkType::IEEE802_15_4_WITHFCS;
        let record = Record { number: 1, time: Timestamp::from_nanos(0), link_type, data, original_len: 5 };
        assert_eq!(Unpack::new(Contexts::NONE).packet(&record).err(), Some("wrong_fcs"));
    }

    #[test]
    fn frames_with_headers_in_iphc_are_counted() {
        let mut all = sent(&packet(30), &SETTINGS);
        all.extend(sent(&packet(300), &SETTINGS));
        let uncompressed = [&[dispatch::IPV6][..], &packet(3)].concat();
        let mut frame = vec![0; 127];
        let end = WpanFrame::data(9, LINKS, 0, &uncompressed).write(&mut frame).unwrap();
        all.push(frame[..end].to_vec());
        let mut unpack = Unpack::new(Contexts::NONE);
        results(&mut unpack, &all, LinkType::IEEE802_15_4_NOFCS);
        // Of the second packet only the first of four fragments has headers.
        assert_eq!(unpack.iphc_frames(), 2);
    }

    /// Returns frames in IPv4 datagrams of ZEP version 2, with check sequence.
    fn zep(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let datagram = |frame: &Vec<u8>| {
            let whole = [&frame[..], &fcs::fcs(frame)].concat();
            let zep = [&b"EX\x02\x01\x0b\0\x01\x01\xff"[..], &[0; 22], &[whole.len() as u8], &whole].concat();
            let udp =
                [&b"\x45\x5a\x45\x5a"[..], &(8 + zep.len() as u16).to_be_bytes(), b"\0\0", &zep].concat();
            let ip = thinair_wire::header::ipv4::Ipv4 {
                total_length: 20 + udp.len() as u16,
                ttl: 64,
                protocol: 17,
                source: [127, 0, 0, 1],
                destination: [127, 0, 0, 1],
                ..Default::default()
            };
            let mut octets = vec![0; 20];
            ip.write(&mut octets, 0).unwrap();
            octets.extend(udp);
            octets
        };
        frames.iter().map(datagram).collect()
    }

    #[test]
    fn frames_in_datagrams_are_as_those_of_a_link() {
        let (short, long) = (packet(30), packet(300));
        let mut all = sent(&short, &SETTINGS);
        all.extend(sent(&long, &SETTINGS));
        let expected = [Ok(short), Err("fragment"), Err("fragment"), Err("fragment"), Ok(long)];
        assert_eq!(results(&mut Unpack::new(Contexts::NONE), &zep(&all), LinkType::RAW), expected);
    }

    #[test]
    fn contexts_that_are_told_are_used() {
        let mut other = packet(30);
        other[24..40].copy_from_slice(b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01");
        let global = LowpanContext::new(*b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\0", 64).unwrap();
        let contexts = Contexts::NONE.with(3, global).unwrap();
        let frames = sent(&other, &LowpanSettings { contexts, ..SETTINGS });
        let results = |contexts| results(&mut Unpack::new(contexts), &frames, LinkType::IEEE802_15_4_NOFCS);
        assert_eq!(results(contexts), [Ok(other)]);
        assert_eq!(results(Contexts::NONE), [Err("no_context")]);
    }

    /// Returns the packet of a record with this number of captured octets.
    fn captured(unpack: &mut Unpack, packet: &[u8], len: usize) -> Result<(Vec<u8>, usize), &'static str> {
        let time = Timestamp::from_nanos(0);
        let (data, original_len) = (&packet[..len], packet.len() as u32);
        let record = Record { number: 1, time, link_type: LinkType::RAW, data, original_len };
        unpack.packet(&record).map(|packet| (packet.octets.to_vec(), packet.missing))
    }

    #[test]
    fn a_packet_whose_headers_were_captured_is_filled_with_zeros() {
        let udp = |port: u16, payload: &[u8]| {
            let mut packet = packet(8 + payload.len());
            packet[6] = 17;
            packet.truncate(40);
            packet.extend([50_000, port, 8 + payload.len() as u16, 7].map(u16::to_be_bytes).concat());
            packet.extend(payload);
            packet
        };
        let mut tcp = packet(20 + 30);
        tcp[6] = 6;
        tcp[40 + 12] = 0x70;
        let message = b"\x40\x01\x12\x34\xb4time\xff21.5";
        let cases = [
            (packet(30), 40),
            (udp(9, &[0x55; 30]), 48),
            (tcp, 40 + 28),
            // The payload marker is part of the CoAP header.
            (udp(5683, message), 48 + 10),
            // The end of its options is unknown.
            (udp(5683, &message[..9]), 48 + 9),
        ];
        let mut unpack = Unpack::new(Contexts::NONE).filling_payload(Ports::COAP);
        for (packet, headers) in cases {
            for len in 1..=packet.len() {
                let mut filled = packet.clone();
                filled[len..].fill(0);
                let expected =
                    if len < headers { Err("truncated") } else { Ok((filled, packet.len() - len)) };
                assert_eq!(captured(&mut unpack, &packet, len), expected, "{len}");
            }
        }
    }

    #[test]
    fn in_a_tunnel_too() {
        let inside = packet(30);
        let mut outer = packet(4 + inside.len());
        outer[6] = 47;
        outer.truncate(40);
        outer.extend(b"\0\0\x86\xdd");
        outer.extend(&inside);
        let mut unpack = Unpack::new(Contexts::NONE).filling_payload(Ports::COAP);
        for len in 44..outer.len() {
            let mut filled = inside.clone();
            filled[len - 44..].fill(0);
            let expected = if len < 84 { Err("truncated") } else { Ok((filled, outer.len() - len)) };
            assert_eq!(captured(&mut unpack, &outer, len), expected, "{len}");
        }
    }

    #[test]
    fn the_commands_that_write_packets_take_whole_ones_only() {
        let mut unpack = Unpack::new(Contexts::NONE);
        assert_eq!(captured(&mut unpack, &packet(30), 69), Err("truncated"));
        assert!(captured(&mut unpack, &packet(30), 70).is_ok());
    }
}
