//! Cost of a request and its response on a link: packets, octets by layer, and time until the object was
//! delivered.
//!
//! The input is the packets of one exchange with the times at which they entered and left the link: from the
//! log of a link, or from a capture, where both times are equal. The object is located by its octets, so any
//! service is supported: all other octets above UDP and TCP count as application header. Encrypted exchanges
//! are not supported.

use std::net::IpAddr;

use serde::Serialize;
use thinair_rohc::Ports;
use thinair_wire::header::protocol;

use crate::follow::{Follower, LayerOctets};
use crate::packet::ParsedPacket;

/// Octets of a stream kept in memory, in each direction.
const MOST: usize = 1 << 20;

/// A packet on a link. Times are in nanoseconds of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage<'p> {
    /// Time of entering the link.
    pub entered: u64,
    /// Time of delivery; `None` if the packet was not delivered.
    pub delivered: Option<u64>,
    /// The IP packet.
    pub octets: &'p [u8],
}

/// An exchange; the client is the host that sent the first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exchange {
    /// IP packets that entered the link in both directions, from the first to the last one of the connection.
    pub packets: u64,
    /// Retransmissions among them: TCP segments without new octets, and repeated CoAP messages.
    pub again: u64,
    /// Packets among them that were not delivered.
    pub lost: u64,
    /// Octets of all packets by layer. The payload is the object, once; all other octets that are not part of
    /// an IP, UDP or TCP header count as application header, all of them if the object is missing.
    pub octets: LayerOctets,
    /// Time from the first packet to the first packet of the client with application octets, both entering
    /// the link.
    pub set_up_ns: Option<u64>,
    /// Time from the first packet entering the link to the delivery of the last octet of the object, if the
    /// server sent it.
    pub download_ns: Option<u64>,
    /// Time from the first packet entering the link to the delivery of the last packet of the server with new
    /// octets.
    pub answered_ns: Option<u64>,
}

impl Exchange {
    /// Share of the download time spent on connection setup, 0 to 1.
    pub fn set_up_share(&self) -> Option<f64> {
        match (self.set_up_ns, self.download_ns) {
            (Some(set_up), Some(download)) if download > 0 => Some(set_up as f64 / download as f64),
            _ => None,
        }
    }

    /// Octets of all layers.
    pub const fn total(&self) -> u64 {
        self.octets.total()
    }
}

/// Octets sent by one host.
#[derive(Default)]
struct HostStream {
    /// Pieces with their offsets, from 0, and times of delivery.
    pieces: Vec<(usize, Vec<u8>, u64)>,
    /// Offset for the next piece that is not part of a TCP stream.
    end: usize,
}

impl HostStream {
    fn add(&mut self, place: Option<u32>, octets: &[u8], delivered: u64) {
        let place = place.map_or(self.end, |place| place as usize);
        if octets.is_empty() || place.saturating_add(octets.len()) > MOST {
            return;
        }
        self.end = self.end.max(place + octets.len());
        self.pieces.push((place, octets.to_vec(), delivered));
    }

    /// Time at which the last octet of the object was delivered; `None` if it was not delivered completely.
    fn has(&self, object: &[u8]) -> Option<u64> {
        if object.is_empty() {
            return None;
        }
        // An octet is delivered with its first copy.
        let mut whole = vec![(0, u64::MAX); self.end];
        for (place, octets, delivered) in &self.pieces {
            for (known, octet) in whole.iter_mut().skip(*place).zip(octets) {
                if *delivered < known.1 {
                    *known = (*octet, *delivered);
                }
            }
        }
        let is_object = |at: &&[(u8, u64)]| {
            at.iter().zip(object).all(|((octet, delivered), sought)| octet == sought && *delivered < u64::MAX)
        };
        whole.windows(object.len()).find(is_object)?.iter().map(|(_, delivered)| *delivered).max()
    }
}

/// Measures an exchange in which `object` was sent in either direction. Ignores passages that are not IP
/// packets.
///
/// **Passages must be in the order of entering the link, and belong to a single exchange.**
pub fn measure<'p>(
    passages: impl IntoIterator<Item = Passage<'p>>,
    object: &[u8],
    coap_ports: Ports,
) -> Exchange {
    let mut flows = Follower::new(coap_ports);
    let mut exchange = Exchange::default();
    let mut begin: Option<(IpAddr, u64)> = None;
    let mut streams = [HostStream::default(), HostStream::default()];
    for passage in passages {
        let Ok(packet) = ParsedPacket::parse(passage.octets) else { continue };
        let description = flows.follow(&packet);
        let (client, start) = *begin.get_or_insert((packet.key.source, passage.entered));
        let is_of_client = packet.key.source == client;
        let since = |time: u64| time.saturating_sub(start);
        exchange.packets += 1;
        exchange.again += u64::from(description.again);
        exchange.lost += u64::from(passage.delivered.is_none());
        exchange.octets.ip += description.octets.ip;
        exchange.octets.transport += description.octets.transport;
        let above = description.octets.application + description.octets.payload;
        exchange.octets.application += above;
        let carries = above > 0 && matches!(packet.key.protocol, protocol::TCP | protocol::UDP);
        if carries && is_of_client && exchange.set_up_ns.is_none() {
            exchange.set_up_ns = Some(since(passage.entered));
        }
        let Some(delivered) = passage.delivered.filter(|_| carries) else { continue };
        if !is_of_client && !description.again {
            exchange.answered_ns = exchange.answered_ns.max(Some(since(delivered)));
        }
        // Of a CoAP message only the payload: an object may be spread over several.
        let behind = packet.headers() + description.octets.application as usize;
        let stream = &mut streams[usize::from(!is_of_client)];
        if description.place.is_some() || !description.again {
            stream.add(description.place, passage.octets.get(behind..).unwrap_or_default(), delivered);
        }
    }
    let [of_client, of_server] = streams.map(|stream| stream.has(object));
    exchange.download_ns =
        of_server.zip(begin).map(|(delivered, (_, start))| delivered.saturating_sub(start));
    if of_client.or(of_server).is_some() {
        let octets = &mut exchange.octets;
        octets.payload = octets.application.min(object.len() as u64);
        octets.application -= octets.payload;
    }
    exchange
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns an IPv4 packet between the client 192.0.2.1 and the server 192.0.2.2.
    fn ipv4(from_client: bool, protocol: u8, fragment: u16, behind: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0];
        packet.extend((20 + behind.len() as u16).to_be_bytes());
        packet.extend([0, 7]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0]);
        let (from, to) = if from_client { (1, 2) } else { (2, 1) };
        packet.extend([192, 0, 2, from, 192, 0, 2, to]);
        let sum: u32 = packet.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        packet[10..12].copy_from_slice(&(!((sum & 0xFFFF) + (sum >> 16)) as u16).to_be_bytes());
        packet.extend(behind);
        packet
    }

    fn udp(from_client: bool, length: usize, payload: &[u8]) -> Vec<u8> {
        let ports: [u16; 2] = if from_client { [40_000, 5_683] } else { [5_683, 40_000] };
        let mut udp: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
        udp.extend((8 + length as u16).to_be_bytes());
        udp.extend([0, 0]);
        udp.extend(payload);
        udp
    }

    const FIN: u8 = 1;
    const SYN: u8 = 2;
    const ACK: u8 = 16;

    fn tcp(from_client: bool, flags: u8, sequence: u32, options: usize, payload: &[u8]) -> Vec<u8> {
        let ports: [u16; 2] = if from_client { [50_000, 80] } else { [80, 50_000] };
        let mut tcp: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
        tcp.extend(sequence.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend([((20 + options) as u8 / 4) << 4, flags, 16, 0, 0, 0, 0, 0]);
        // No-Operation.
        tcp.extend(vec![1; options]);
        tcp.extend(payload);
        ipv4(from_client, protocol::TCP, 0x4000, &tcp)
    }

    fn measured(packets: &[(u64, Option<u64>, Vec<u8>)], object: &[u8]) -> Exchange {
        let passages = packets.iter().map(|(entered, delivered, octets)| Passage {
            entered: entered * MS,
            delivered: delivered.map(|delivered| delivered * MS),
            octets,
        });
        measure(passages, object, Ports::COAP)
    }

    fn octets(ip: u64, transport: u64, application: u64, payload: u64) -> LayerOctets {
        LayerOctets { ip, transport, application, payload }
    }

    #[test]
    fn a_coap_exchange_is_two_packets() {
        let get = ipv4(true, protocol::UDP, 0, &udp(true, 7, b"\x40\x01\x12\x34\xb210"));
        let content = ipv4(false, protocol::UDP, 0, &udp(false, 15, b"\x60\x45\x12\x34\xff0123456789"));
        let of = measured(
            &[(5, Some(39), get.clone()), (40, Some(77), content), (2_005, Some(2_039), get)],
            b"0123456789",
        );
        assert_eq!((of.packets, of.again, of.lost), (3, 1, 0));
        assert_eq!(of.octets, octets(60, 24, 7 + 5 + 7, 10));
        assert_eq!((of.set_up_ns, of.download_ns, of.answered_ns), (Some(0), Some(72 * MS), Some(72 * MS)));
        assert_eq!(of.set_up_share(), Some(0.0));
    }

    #[test]
    fn an_object_in_ip_fragments_is_there_with_the_last_one() {
        let object: Vec<u8> = (0..60).collect();
        let message = [b"\x60\x45\x12\x34\xff".as_slice(), &object].concat();
        let datagram = udp(false, message.len(), &message);
        let get = ipv4(true, protocol::UDP, 0, &udp(true, 7, b"\x40\x01\x12\x34\xb210"));
        let first = ipv4(false, protocol::UDP, 0x2000, &datagram[..40]);
        let last = ipv4(false, protocol::UDP, 5, &datagram[40..]);
        let of = measured(&[(0, Some(10), get), (10, Some(30), first), (10, Some(45), last)], &object);
        assert_eq!((of.packets, of.octets), (3, octets(60, 16, 12, 60)));
        assert_eq!(of.download_ns, Some(45 * MS));
    }

    /// Figures of a published exchange: 6 packets, 120 octets of IP, 148 of TCP.
    fn fast_open() -> Vec<(u64, Option<u64>, Vec<u8>)> {
        let request = [b'x'; 48];
        let reply = b"HTTP/1.0 200\r\n\r\n0123456789";
        vec![
            (0, Some(10), tcp(true, SYN, 99, 20, &request)),
            (10, Some(30), tcp(false, SYN | ACK, 999, 8, b"")),
            (10, Some(40), tcp(false, FIN | ACK, 1_000, 0, reply)),
            (30, Some(50), tcp(true, ACK, 148, 0, b"")),
            (41, Some(60), tcp(true, FIN | ACK, 148, 0, b"")),
            (60, Some(80), tcp(false, ACK, 1_027, 0, b"")),
        ]
    }

    #[test]
    fn a_request_in_the_syn_needs_no_set_up() {
        let of = measured(&fast_open(), b"0123456789");
        assert_eq!((of.packets, of.again), (6, 0));
        assert_eq!(of.octets, octets(120, 148, 48 + 16, 10));
        assert_eq!(
            (of.set_up_share(), of.download_ns, of.answered_ns),
            (Some(0.0), Some(40 * MS), Some(40 * MS))
        );
    }

    #[test]
    fn a_handshake_before_the_request_is_set_up() {
        let mut packets = fast_open();
        packets[0].2 = tcp(true, SYN, 99, 20, b"");
        packets[3].2 = tcp(true, ACK, 100, 0, &[b'x'; 48]);
        let of = measured(&packets, b"0123456789");
        assert_eq!((of.set_up_ns, of.set_up_share()), (Some(30 * MS), Some(0.75)));
    }

    #[test]
    fn an_octet_that_is_sent_again_is_there_when_its_first_copy_is() {
        let mut packets = fast_open();
        let lost = packets[2].2.clone();
        packets[2].1 = None;
        packets.push((1_000, Some(1_040), lost.clone()));
        packets.push((2_000, Some(2_040), lost));
        let of = measured(&packets, b"0123456789");
        assert_eq!((of.packets, of.again, of.lost, of.download_ns), (8, 2, 1, Some(1_040 * MS)));
    }

    #[test]
    fn an_object_that_is_not_there_was_not_downloaded() {
        let of = measured(&fast_open(), b"something else");
        assert_eq!((of.download_ns, of.set_up_share(), of.octets), (None, None, octets(120, 148, 74, 0)));
        assert_eq!(of.answered_ns, Some(40 * MS));
        let published = measured(&fast_open(), &[b'x'; 48]);
        assert_eq!((published.download_ns, published.octets), (None, octets(120, 148, 26, 48)));
        assert_eq!(measured(&[(0, None, vec![1, 2, 3])], b"x"), Exchange::default());
    }
}
