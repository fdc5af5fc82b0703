//! A flow over a link that flips bits or loses packets. Packets whose own header was hit are counted separately from
//! packets that suffered from earlier damage.
//!
//! The random numbers for damage are drawn for every packet, whatever the compressor sends: with one seed, the packets
//! with one number are hit in every flow, in about the same part.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use thinair_link::{Impairments, Link, LinkOutcome, LossModel, Probability, Random};
use thinair_rohc::packet;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Instant, Mode, ProfileSet,
};
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;

/// Content of the UDP checksum field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumField {
    /// The correct checksum.
    Right,
    /// A wrong value, as in captures of hosts with checksum offload.
    Wrong,
    /// Zero: no checksum.
    Absent,
}

/// RTP in UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtpTraffic {
    None,
    /// A timestamp that increases with the sequence number.
    Voice,
    /// Pauses now and then, with a marker after each.
    Talkspurts,
}

/// A UDP flow.
#[derive(Clone, Copy, Debug)]
pub struct UdpFlow {
    pub name: &'static str,
    /// IPv6 instead of IPv4 with a counting IP-ID.
    pub six: bool,
    pub checksum: ChecksumField,
    /// Octets of payload, at least 1.
    pub payload: usize,
    /// The IP-ID also counts packets of other flows, and TTL and TOS change now and then.
    pub is_lively: bool,
    pub rtp: RtpTraffic,
}

impl UdpFlow {
    pub const UDP_V4: Self = Self {
        name: "UDP/IPv4",
        six: false,
        checksum: ChecksumField::Right,
        payload: 20,
        is_lively: false,
        rtp: RtpTraffic::None,
    };
    pub const UDP_V6: Self = Self { name: "UDP/IPv6", six: true, ..Self::UDP_V4 };

    pub const RTP: Self = Self { name: "RTP/UDP/IPv4", rtp: RtpTraffic::Voice, ..Self::UDP_V4 };

    /// Kinds of RTP flows.
    pub const ALL_RTP: [Self; 6] = [
        Self::RTP,
        Self { name: "without checksum", checksum: ChecksumField::Absent, ..Self::RTP },
        Self { name: "2 octets payload", payload: 2, ..Self::RTP },
        Self { name: "talkspurts", rtp: RtpTraffic::Talkspurts, ..Self::RTP },
        Self { name: "lively talkspurts", rtp: RtpTraffic::Talkspurts, is_lively: true, ..Self::RTP },
        Self { name: "RTP/UDP/IPv6", six: true, ..Self::RTP },
    ];

    /// Kinds of UDP flows.
    pub const ALL: [Self; 7] = [
        Self::UDP_V4,
        Self { name: "checksum wrong", checksum: ChecksumField::Wrong, ..Self::UDP_V4 },
        Self { name: "without checksum", checksum: ChecksumField::Absent, ..Self::UDP_V4 },
        Self { name: "2 octets payload", payload: 2, ..Self::UDP_V4 },
        Self { name: "lively", is_lively: true, ..Self::UDP_V4 },
        Self::UDP_V6,
        Self { name: "lively", is_lively: true, ..Self::UDP_V6 },
    ];
}

/// Impairments of the link, in percent of packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// One bit of the packet is flipped; all bits are equally likely.
    pub damage: u32,
    pub loss: u32,
}

/// Outcomes of the packets of one run, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamageCount {
    pub sent: u32,
    /// Octets of compressed headers.
    pub octets: u32,
    pub lost: u32,
    /// Not hit, and delivered correctly.
    pub right: u32,
    /// Hit in the compressed header: rejected; delivered correctly; delivered with wrong headers.
    pub header_refused: u32,
    pub header_right: u32,
    pub header_wrong: u32,
    /// Hit in the payload: delivered with correct headers.
    pub payload: u32,
    /// Not hit, or only in the payload, but rejected; delivered with wrong headers.
    pub refused: u32,
    pub wrong: u32,
}

impl DamageCount {
    /// Number of packets lost or wrong because of damage to previous packets.
    pub fn propagated(&self) -> u32 {
        self.refused + self.wrong
    }

    /// Number of packets delivered with wrong headers.
    pub fn wrong_headers(&self) -> u32 {
        self.wrong + self.header_wrong
    }

    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.octets += other.octets;
        self.lost += other.lost;
        self.right += other.right;
        self.header_refused += other.header_refused;
        self.header_right += other.header_right;
        self.header_wrong += other.header_wrong;
        self.payload += other.payload;
        self.refused += other.refused;
        self.wrong += other.wrong;
    }
}

/// The packets of a flow.
struct UdpSource {
    flow: UdpFlow,
    random: Random,
    count: u16,
    id: u16,
    ttl: u8,
    tos: u8,
    ts: u32,
}

impl UdpSource {
    fn new(flow: UdpFlow, mut random: Random) -> Self {
        let (id, ts) = (random.next_u64() as u16, random.next_u64() as u32);
        Self { flow, random, count: 0, id, ttl: 64, tos: 0, ts }
    }

    fn next(&mut self) -> Vec<u8> {
        let UdpFlow { six, checksum, payload, is_lively, rtp, .. } = self.flow;
        self.count = self.count.wrapping_add(1);
        self.id = self.id.wrapping_add(1);
        if is_lively {
            self.id = self.id.wrapping_add(self.random.below(3) as u16 * self.random.below(2) as u16);
            if self.random.below(100) == 0 {
                self.ttl = 60 + self.random.below(5) as u8;
            }
            if self.random.below(200) == 0 {
                self.tos = self.random.below(4) as u8 * 4;
            }
        }
        let rtp = self.rtp(rtp);
        let length = (8 + rtp.len() + payload) as u16;
        let mut ip = Vec::new();
        if six {
            ip.extend([0x60 | self.tos >> 4, self.tos << 4, 0, 0]);
            ip.extend(length.to_be_bytes());
            ip.extend([17, self.ttl]);
            ip.extend(*b"\xfd\x00\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x01");
            ip.extend(*b"\xfd\x00\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x02");
        } else {
            ip.extend([0x45, self.tos]);
            ip.extend((20 + length).to_be_bytes());
            ip.extend(self.id.to_be_bytes());
            ip.extend([0x40, 0, self.ttl, 17, 0, 0, 10, 0, 0, 1, 10, 99, 0, 2]);
            let sum = Ipv4::checksum_of(&ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let addresses = if six { &ip[8..40] } else { &ip[12..20] };
        let mut udp =
            if rtp.is_empty() { vec![0xE0, 0x01, 0x16, 0x33] } else { vec![0x90, 0x00, 0x92, 0x00] };
        udp.extend(length.to_be_bytes());
        udp.extend([0, 0]);
        udp.extend(&rtp);
        // A message that changes from packet to packet: a count, and a value that moves.
        udp.extend(self.count.to_be_bytes());
        udp.extend((2..payload).map(|i| if i < 6 { self.random.next_u64() as u8 } else { i as u8 }));
        udp.truncate(usize::from(length));
        let sum = match checksum {
            ChecksumField::Right => {
                match Sum::ZERO.octets(addresses).word(17).word(length).octets(&udp).checksum() {
                    0 => 0xFFFF,
                    sum => sum,
                }
            }
            ChecksumField::Wrong => 1 + self.random.below(0xFFFF) as u16,
            ChecksumField::Absent => 0,
        };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        ip.extend(udp);
        ip
    }
}

impl UdpSource {
    /// Returns the RTP header of the next packet.
    fn rtp(&mut self, rtp: RtpTraffic) -> Vec<u8> {
        let is_pause = match rtp {
            RtpTraffic::None => return Vec::new(),
            RtpTraffic::Voice => false,
            RtpTraffic::Talkspurts => self.random.below(50) == 0,
        };
        let pause = if is_pause { self.random.below(100) as u32 } else { 0 };
        self.ts = self.ts.wrapping_add(160 * (1 + pause));
        let mut header = vec![0x80, u8::from(is_pause) << 7];
        header.extend(self.count.to_be_bytes());
        header.extend(self.ts.to_be_bytes());
        header.extend(*b"SSRC");
        header
    }
}

/// A flow over a link.
#[derive(Clone, Copy, Debug)]
pub struct DamageRun {
    pub flow: UdpFlow,
    pub mode: Mode,
    pub rates: Rates,
    /// Time between two packets; zero for a user of the library without a clock.
    pub step: Duration,
    /// `CompressorConfig::reliable_crc`.
    pub has_crc: bool,
}

impl DamageRun {
    pub fn new(flow: UdpFlow, mode: Mode, rates: Rates) -> Self {
        Self { flow, mode, rates, step: Duration::from_millis(20), has_crc: false }
    }

    /// Carries packets of the flow with default parameters except the mode. Feedback arrives before the next packet.
    pub fn carry(&self, packets: u32, seed: u64) -> DamageCount {
        self.carry_by(&mut OurEnds::new(self.mode, self.has_crc, seed), packets, seed)
    }

    /// Carries the same packets over the same link by other ends.
    pub fn carry_by(&self, ends: &mut impl ChannelEnds, packets: u32, seed: u64) -> DamageCount {
        let mut random = Random::new(seed);
        let damage = Probability::from_percent(self.rates.damage).unwrap();
        let loss = LossModel::Random(Probability::from_percent(self.rates.loss).unwrap());
        let mut link = Link::new(Impairments { loss, ..Impairments::default() }, random.next_u64());
        let mut source = UdpSource::new(self.flow, random.split());
        let mut count = DamageCount::default();
        let (mut rohc, mut back) = (vec![0; 2_048], vec![0; 2_048]);
        let mut now = Instant::ZERO;
        for _ in 0..packets {
            now = now + self.step;
            let packet = source.next();
            let sent = ends.compress(now, &packet, &mut rohc);
            let octets = &mut rohc[..sent.len];
            count.sent += 1;
            count.octets += (sent.len - sent.payload) as u32;
            let (is_hit, place) = (random.happens(damage), random.below(1 << 32));
            if matches!(link.offer(octets), LinkOutcome::Dropped(_)) {
                count.lost += 1;
                continue;
            }
            let bit = ((place * octets.len() as u64 * 8) >> 32) as usize;
            if is_hit {
                octets[bit / 8] ^= 0x80 >> (bit % 8);
            }
            let outcome = ends.decompress(now, octets, &mut back);
            let headers = packet.len() - sent.payload;
            let is_right = outcome.map(|len| len == packet.len() && back[..headers] == packet[..headers]);
            let is_header_hit = is_hit && bit < 8 * (sent.len - sent.payload);
            *match (is_header_hit, is_right) {
                (true, None) => &mut count.header_refused,
                (true, Some(true)) => &mut count.header_right,
                (true, Some(false)) => &mut count.header_wrong,
                (false, None) => &mut count.refused,
                (false, Some(true)) if is_hit => &mut count.payload,
                (false, Some(true)) => &mut count.right,
                (false, Some(false)) => &mut count.wrong,
            } += 1;
        }
        count
    }
}

/// Compressed packet.
pub struct SentPacket {
    pub len: usize,
    /// Octets behind the compressed headers.
    pub payload: usize,
}

/// Compressor and decompressor of a channel, with their feedback.
pub trait ChannelEnds {
    fn compress(&mut self, now: Instant, packet: &[u8], rohc: &mut [u8]) -> SentPacket;

    /// Returns the octets of the packet, or `None` if it is rejected.
    fn decompress(&mut self, now: Instant, rohc: &[u8], back: &mut [u8]) -> Option<usize>;
}

/// Both ends by this crate.
struct OurEnds {
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
}

impl OurEnds {
    fn new(mode: Mode, reliable_crc: bool, seed: u64) -> Self {
        let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
        let config = CompressorConfig { seed, reliable_crc, ..CompressorConfig::new(channel) };
        let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
        let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        Self {
            compressor,
            decompressor: Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4))),
        }
    }
}

impl ChannelEnds for OurEnds {
    fn compress(&mut self, now: Instant, packet: &[u8], rohc: &mut [u8]) -> SentPacket {
        let sent = self.compressor.compress(now, packet, rohc).unwrap();
        SentPacket { len: sent.len, payload: packet.len() - sent.header_in }
    }

    fn decompress(&mut self, now: Instant, rohc: &[u8], back: &mut [u8]) -> Option<usize> {
        let outcome = self.decompressor.decompress(now, rohc, back).ok();
        let mut element = [0; 64];
        while let Some(len) = self.decompressor.poll_feedback(&mut element) {
            for data in packet::parts(&element[..len]).unwrap().feedback {
                // Damage in an Add-CID octet causes feedback for flows that do not exist.
                let _ = self.compressor.receive_feedback(now, data);
            }
        }
        outcome.map(|done| done.len)
    }
}
