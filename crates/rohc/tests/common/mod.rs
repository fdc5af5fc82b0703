//! Packets for tests: flows with typical and with unusual changes of their headers.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

pub mod coap;
pub mod damage;
pub mod dtls;
pub mod grid;
pub mod journey;
pub mod link;
pub mod losses;
pub mod media;
pub mod pairs;
pub mod pauses;
pub mod peer;
pub mod source;
pub mod table;
pub mod tcp;

use media::Media;
use thinair_wire::header::ipv4::Ipv4;

/// Impairments by a channel: one packet in this many; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Impairment {
    pub loss: u64,
    /// Length of a loss event, in packets.
    pub burst: u64,
    /// Largest number of other packets that overtake a delayed one.
    pub late: u64,
    pub duplicate: u64,
    pub flip: u64,
}

/// Number of random flows of a test: `few`, or `THINAIR_CASES` times as many.
pub fn cases(few: u64) -> u64 {
    std::env::var("THINAIR_CASES").map_or(1, |times| times.parse::<u64>().unwrap()) * few
}

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// True once in `n`.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Behavior of an IP-ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    Counts,
    Swapped,
    Steps(u16),
    Random,
    Constant,
}

/// One IP header of a flow.
#[derive(Clone, Debug)]
pub struct IpLayer {
    pub six: bool,
    pub address: u8,
    pub tos: u8,
    pub ttl: u8,
    pub df: bool,
    pub flow_label: u32,
    pub id: u16,
    pub id_kind: IdKind,
    /// Type and octets behind the length field.
    pub extensions: Vec<(u8, Vec<u8>)>,
    pub ah_sn: u32,
}

impl IpLayer {
    pub fn new(six: bool, address: u8) -> Self {
        Self {
            six,
            address,
            tos: 0,
            ttl: 64,
            df: false,
            flow_label: 0x1234,
            id: 0x1FF0,
            id_kind: IdKind::Counts,
            extensions: Vec::new(),
            ah_sn: 1,
        }
    }

    fn step(&mut self, random: &mut SplitMix64) {
        self.id = match self.id_kind {
            IdKind::Counts | IdKind::Swapped => self.id.wrapping_add(1),
            IdKind::Steps(most) => self.id.wrapping_add(1 + random.below(u64::from(most)) as u16),
            IdKind::Random => random.next() as u16,
            IdKind::Constant => self.id,
        };
        self.ah_sn = self.ah_sn.wrapping_add(1);
    }

    /// Returns the header in front of `inside`, whose protocol is `next`.
    fn wrap(&self, next: u8, inside: &[u8], random: &mut SplitMix64) -> Vec<u8> {
        let mut behind = Vec::with_capacity(inside.len() + 64 * self.extensions.len());
        for (i, (kind, content)) in self.extensions.iter().enumerate() {
            let following = self.extensions.get(i + 1).map_or(next, |(kind, _)| *kind);
            let total = content.len() + 2;
            let length = if *kind == 51 { total / 4 - 2 } else { total / 8 - 1 };
            behind.push(following);
            behind.push(length as u8);
            let at = behind.len();
            behind.extend_from_slice(content);
            if *kind == 51 {
                behind[at + 6..at + 10].copy_from_slice(&self.ah_sn.to_be_bytes());
                for octet in &mut behind[at + 10..] {
                    *octet = random.next() as u8;
                }
            }
        }
        behind.extend_from_slice(inside);
        let first = self.extensions.first().map_or(next, |(kind, _)| *kind);
        let mut packet = Vec::with_capacity(40 + behind.len());
        if self.six {
            let word = 6 << 28 | u32::from(self.tos) << 20 | self.flow_label & 0xF_FFFF;
            packet.extend_from_slice(&word.to_be_bytes());
            packet.extend_from_slice(&(behind.len() as u16).to_be_bytes());
            packet.extend_from_slice(&[first, self.ttl]);
            packet.extend_from_slice(&[0xFD; 15]);
            packet.push(self.address);
            packet.extend_from_slice(&[0xFE; 15]);
            packet.push(self.address);
        } else {
            let id = if self.id_kind == IdKind::Swapped { self.id.swap_bytes() } else { self.id };
            packet.extend_from_slice(&[0x45, self.tos]);
            packet.extend_from_slice(&(20 + behind.len() as u16).to_be_bytes());
            packet.extend_from_slice(&id.to_be_bytes());
            packet.extend_from_slice(&[u8::from(self.df) << 6, 0, self.ttl, first, 0, 0]);
            packet.extend_from_slice(&[10, 0, 0, self.address, 10, 0, 1, self.address]);
            let sum = Ipv4::checksum_of(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        packet.extend_from_slice(&behind);
        packet
    }
}

/// A flow.
#[derive(Clone, Debug)]
pub struct TestFlow {
    pub layers: Vec<IpLayer>,
    /// Protocol behind the IP headers; 17 is UDP.
    pub protocol: u8,
    pub port: u16,
    pub checksum: bool,
    pub payload: usize,
    pub count: u64,
    /// RTP, ESP or UDP-Lite behind IP, instead of `protocol`.
    pub media: Option<Media>,
}

impl TestFlow {
    pub fn udp(layers: Vec<IpLayer>) -> Self {
        Self { layers, protocol: 17, port: 5683, checksum: true, payload: 9, count: 0, media: None }
    }

    /// Returns the next packet.
    pub fn packet(&mut self, random: &mut SplitMix64) -> Vec<u8> {
        self.count += 1;
        let payload: Vec<u8> = (0..self.payload).map(|i| (self.count as usize + i) as u8).collect();
        self.carry(payload, random)
    }

    /// Returns the next packet, with that payload.
    pub fn carry(&mut self, payload: Vec<u8>, random: &mut SplitMix64) -> Vec<u8> {
        let mut inside = payload;
        if let Some(media) = &mut self.media {
            inside = media.packet(self.port, &inside, random);
            self.protocol = media.protocol();
        } else if self.protocol == 17 {
            let mut udp = Vec::with_capacity(8 + inside.len());
            udp.extend_from_slice(&self.port.to_be_bytes());
            udp.extend_from_slice(&5683_u16.to_be_bytes());
            udp.extend_from_slice(&(8 + inside.len() as u16).to_be_bytes());
            let sum = if self.checksum { 1 + random.below(0xFFFF) as u16 } else { 0 };
            udp.extend_from_slice(&sum.to_be_bytes());
            udp.extend_from_slice(&inside);
            inside = udp;
        }
        let mut next = self.protocol;
        for layer in self.layers.iter_mut().rev() {
            layer.step(random);
            inside = layer.wrap(next, &inside, random);
            next = if layer.six { 41 } else { 4 };
        }
        inside
    }

    /// Changes a field that may change in a flow.
    pub fn change(&mut self, random: &mut SplitMix64) {
        if let Some(media) = &mut self.media
            && random.once_in(2)
        {
            return media.change(random);
        }
        let at = random.below(self.layers.len() as u64) as usize;
        let layer = &mut self.layers[at];
        match random.below(14) {
            0 => layer.tos = random.next() as u8,
            1 => layer.ttl = random.next() as u8,
            2 => layer.df = !layer.df,
            3 => layer.id = random.next() as u16,
            4 => {
                layer.id_kind = match random.below(6) {
                    0 => IdKind::Swapped,
                    1 => IdKind::Random,
                    2 => IdKind::Constant,
                    3 => IdKind::Steps(60),
                    4 => IdKind::Steps(3_000),
                    _ => IdKind::Counts,
                }
            }
            5 if random.once_in(4) => layer.flow_label = random.next() as u32 & 0xF_FFFF,
            6 => self.checksum = !self.checksum,
            7 => self.payload = random.below(40) as usize,
            8 | 9 => {
                let extension = extension(random);
                let at = random.below(layer.extensions.len() as u64 + 1) as usize;
                if layer.extensions.len() < 9 {
                    layer.extensions.insert(at, extension);
                }
            }
            10 | 11 if !layer.extensions.is_empty() => {
                let at = random.below(layer.extensions.len() as u64) as usize;
                layer.extensions.remove(at);
            }
            12 if !layer.extensions.is_empty() => {
                let at = random.below(layer.extensions.len() as u64) as usize;
                layer.extensions[at] = extension(random);
            }
            13 => layer.ah_sn = layer.ah_sn.wrapping_add(random.next() as u32),
            _ => {}
        }
    }
}

fn extension(random: &mut SplitMix64) -> (u8, Vec<u8>) {
    let kind = [0, 43, 60, 51][random.below(4) as usize];
    if kind == 51 {
        let mut content = vec![0; 10 + 12];
        content[2..6].copy_from_slice(&[0, 0, 1, random.below(3) as u8]);
        return (kind, content);
    }
    let octets = 6 + 8 * random.below(4) as usize;
    let fill = random.below(3) as u8;
    (kind, vec![fill; octets])
}

/// Returns a random flow.
pub fn any_flow(random: &mut SplitMix64) -> TestFlow {
    let layers = 1 + [0, 0, 0, 1, 1, 2, 3][random.below(7) as usize];
    let mut flow =
        TestFlow::udp((0..layers).map(|_| IpLayer::new(random.once_in(2), random.below(4) as u8)).collect());
    flow.protocol = [17, 17, 17, 58, 6, 47][random.below(6) as usize];
    flow.port = 1_000 + random.below(5) as u16;
    if random.once_in(2) {
        use media::MediaKind::{Esp, Rtp, RtpUdpLite, UdpLite};
        let mut media = Media::new([Rtp, Rtp, Rtp, Esp, UdpLite, RtpUdpLite][random.below(6) as usize]);
        media.ssrc = random.next() as u32;
        flow.media = Some(media);
    }
    for _ in 0..random.below(4) {
        flow.change(random);
    }
    flow
}
