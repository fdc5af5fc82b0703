//! A host of which every packet is noted, and cut into fragments where it is longer than the MTU.

use core::ops::Add;
use std::collections::{BTreeMap, VecDeque};

use thinair_link::Side;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::tcp::Tcp;
use thinair_wire::header::udp::Udp;
use thinair_wire::time::Instant;

use crate::network::Host;

const UDP: u8 = 17;

/// Octets by layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Octets {
    /// Headers of IP.
    pub ip: usize,
    /// Headers of UDP or TCP, with their options.
    pub transport: usize,
    /// What applications say beside the object; of a single packet, all that they say.
    pub header: usize,
    /// The object.
    pub object: usize,
}

impl Octets {
    /// All of them.
    pub const fn total(&self) -> usize {
        self.ip + self.transport + self.header + self.object
    }
}

impl Add for Octets {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ip: self.ip + other.ip,
            transport: self.transport + other.transport,
            header: self.header + other.header,
            object: self.object + other.object,
        }
    }
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Which side has sent it.
    pub from: Side,
    /// When.
    pub sent: Instant,
    /// When it has arrived; nothing if it has not, or not as it was.
    pub arrived: Option<Instant>,
    /// Its octets by layer.
    pub octets: Octets,
    /// Its octets, from the IP header on.
    pub packet: Vec<u8>,
}

/// A host with an eye on it.
pub(super) struct Recorded<H> {
    pub(super) host: H,
    mtu: usize,
    /// Fragments that wait.
    fragments: VecDeque<Vec<u8>>,
    /// Fragments of packets that are not complete, by Identification and place. RFC 791, section 3.2.
    parts: BTreeMap<(u16, u16), Vec<u8>>,
    sent: Vec<(Instant, Vec<u8>)>,
    arrived: Vec<(Instant, Vec<u8>)>,
}

impl<H> Recorded<H> {
    pub(super) fn new(host: H, mtu: u16) -> Self {
        Self {
            host,
            // RFC 791, section 3.2: every link carries 68 octets.
            mtu: usize::from(mtu.max(68)),
            fragments: VecDeque::new(),
            parts: BTreeMap::new(),
            sent: Vec::new(),
            arrived: Vec::new(),
        }
    }

    /// The whole packet, if this was the last fragment of it that was missing.
    fn whole(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let header = Ipv4::read(packet).ok()?;
        if !header.mf && header.fragment_offset == 0 {
            return Some(packet.to_vec());
        }
        if !Ipv4::checksum_is_right(packet.get(..Ipv4::LEN)?) {
            return None;
        }
        let id = header.identification;
        self.parts.insert((id, header.fragment_offset), packet.to_vec());
        let parts: Vec<Vec<u8>> =
            self.parts.range((id, 0)..=(id, u16::MAX)).map(|(_, part)| part.clone()).collect();
        let mut payload = Vec::new();
        let mut complete = false;
        for part in &parts {
            let header = Ipv4::read(part).ok()?;
            if usize::from(header.fragment_offset) * 8 != payload.len() {
                return None;
            }
            payload.extend_from_slice(part.get(Ipv4::LEN..)?);
            complete = !header.mf;
        }
        if !complete {
            return None;
        }
        self.parts.retain(|(other, _), _| *other != id);
        packet_of(&Ipv4 { mf: false, fragment_offset: 0, ..header }, &payload)
    }
}

/// A header, with its length and its checksum, and a payload.
fn packet_of(header: &Ipv4<'_>, payload: &[u8]) -> Option<Vec<u8>> {
    let total_length = u16::try_from(Ipv4::LEN + payload.len()).ok()?;
    let mut packet = vec![0; Ipv4::LEN];
    Ipv4 { total_length, header_checksum: 0, ..*header }.write(&mut packet, 0).ok()?;
    let checksum = Ipv4::checksum_of(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend_from_slice(payload);
    Some(packet)
}

/// A packet in pieces that are no longer than the MTU. RFC 791, section 3.2.
fn fragments(packet: &[u8], mtu: usize) -> VecDeque<Vec<u8>> {
    let header = match Ipv4::read(packet) {
        Ok(header) if packet.len() > mtu => header,
        _ => return VecDeque::from([packet.to_vec()]),
    };
    let payload = packet.get(Ipv4::LEN..).unwrap_or_default();
    // In units of 8 octets.
    let room = (mtu - Ipv4::LEN) / 8 * 8;
    let pieces = payload.chunks(room).enumerate().filter_map(|(index, piece)| {
        let mf = (index + 1) * room < payload.len();
        let fragment_offset = (index * room / 8) as u16;
        packet_of(&Ipv4 { mf, fragment_offset, df: false, ..header }, piece)
    });
    pieces.collect()
}

impl<H: Host> Host for Recorded<H> {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.arrived.push((now, packet.to_vec()));
        if let Some(whole) = self.whole(packet) {
            self.host.handle_packet(now, &whole);
        }
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        if self.fragments.is_empty() && self.host.poll_packet(now, packet) {
            self.fragments = fragments(packet, self.mtu);
        }
        let Some(next) = self.fragments.pop_front() else { return false };
        self.sent.push((now, next.clone()));
        *packet = next;
        true
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.host.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
    }
}

/// The packets of A and B in the order in which they were sent.
pub(super) fn packets<H>([a, b]: [&Recorded<H>; 2]) -> Vec<Packet> {
    let mut packets = Vec::new();
    for (from, sender, receiver) in [(Side::A, a, b), (Side::B, b, a)] {
        let mut arrived: Vec<_> = receiver.arrived.iter().collect();
        for (sent, packet) in &sender.sent {
            let place = arrived.iter().position(|(_, other)| other == packet);
            let arrived = place.map(|place| arrived.remove(place).0);
            packets.push(Packet {
                from,
                sent: *sent,
                arrived,
                octets: layers(packet),
                packet: packet.clone(),
            });
        }
    }
    packets.sort_by_key(|packet| packet.sent);
    packets
}

/// Octets of a packet by layer: a fragment other than the first has no header of a transport.
fn layers(packet: &[u8]) -> Octets {
    let Ok(ip) = Ipv4::read(packet) else { return Octets { header: packet.len(), ..Octets::default() } };
    let rest = packet.get(Ipv4::LEN..).unwrap_or_default();
    let transport = match ip.protocol {
        _ if ip.fragment_offset > 0 => 0,
        UDP => Udp::LEN,
        _ => Tcp::read(rest).map_or(0, |tcp| tcp.len()),
    };
    Octets { ip: Ipv4::LEN, transport, header: rest.len() - transport.min(rest.len()), object: 0 }
}
