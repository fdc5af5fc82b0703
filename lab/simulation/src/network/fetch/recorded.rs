//! Host whose packets are all recorded.

use core::ops::Add;

use thinair_link::Side;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::tcp::Tcp;
use thinair_wire::header::udp::Udp;
use thinair_wire::time::Instant;

use crate::network::NetworkHost;

const UDP: u8 = 17;

/// Octets by layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerOctets {
    /// IP headers.
    pub ip: usize,
    /// Headers of UDP or TCP, with their options.
    pub transport: usize,
    /// Octets of the application other than the object; for a single packet, all its octets of the application.
    pub header: usize,
    /// Object.
    pub object: usize,
}

impl LayerOctets {
    /// Sum of all layers.
    pub const fn total(&self) -> usize {
        self.ip + self.transport + self.header + self.object
    }
}

impl Add for LayerOctets {
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

/// Recorded packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedPacket {
    /// Sending side.
    pub from: Side,
    /// Time of sending.
    pub sent: Instant,
    /// Time of arrival; `None` if it was lost or altered.
    pub arrived: Option<Instant>,
    /// Octets by layer.
    pub octets: LayerOctets,
    /// Whole packet, from the IP header on.
    pub packet: Vec<u8>,
}

/// Host with a recorder.
pub(super) struct Recorded<H> {
    pub(super) host: H,
    sent: Vec<(Instant, Vec<u8>)>,
    arrived: Vec<(Instant, Vec<u8>)>,
}

impl<H> Recorded<H> {
    pub(super) const fn new(host: H) -> Self {
        Self { host, sent: Vec::new(), arrived: Vec::new() }
    }
}

impl<H: NetworkHost> NetworkHost for Recorded<H> {
    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.arrived.push((now, packet.to_vec()));
        self.host.handle_packet(now, packet);
    }

    fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        let is_one = self.host.poll_packet(now, packet);
        if is_one {
            self.sent.push((now, packet.clone()));
        }
        is_one
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.host.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
    }
}

/// Packets of A and B in the order of sending.
pub(super) fn packets<H>([a, b]: [&Recorded<H>; 2]) -> Vec<RecordedPacket> {
    let mut packets = Vec::new();
    for (from, sender, receiver) in [(Side::A, a, b), (Side::B, b, a)] {
        let mut arrived: Vec<_> = receiver.arrived.iter().collect();
        for (sent, packet) in &sender.sent {
            let place = arrived.iter().position(|(_, other)| other == packet);
            let arrived = place.map(|place| arrived.remove(place).0);
            packets.push(RecordedPacket {
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

/// Octets of a packet by layer: a fragment other than the first has no transport header.
fn layers(packet: &[u8]) -> LayerOctets {
    let Ok(ip) = Ipv4::read(packet) else {
        return LayerOctets { header: packet.len(), ..LayerOctets::default() };
    };
    let rest = packet.get(Ipv4::LEN..).unwrap_or_default();
    let transport = match ip.protocol {
        _ if ip.fragment_offset > 0 => 0,
        UDP => Udp::LEN,
        _ => Tcp::read(rest).map_or(0, |tcp| tcp.len()),
    };
    LayerOctets { ip: Ipv4::LEN, transport, header: rest.len() - transport.min(rest.len()), object: 0 }
}
