//! Parts that the fuzz targets share: channels, and flows of IP packets that change from packet to packet.
//!
//! Random octets are rarely a valid IP packet, and random packets rarely a flow. So the targets generate flows, and for
//! each packet of a flow the fields that change, with matching lengths and checksums.

pub mod coap;
pub mod dtls;
pub mod packaging;
pub mod tcp;

use arbitrary::Arbitrary;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Interop, Mode, ProfileId, ProfileSet, Refresh, ReorderRatio, RtpDetection, Threshold,
};
use thinair_wire::header::esp::Esp;
use thinair_wire::header::extension::octets_of;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;
use thinair_wire::header::rtp::Rtp;
use thinair_wire::header::udp::Udp;
use thinair_wire::header::udp_lite::UdpLite;

/// Room for every packet of [`PacketFlow::packet`], compressed or not, in octets.
pub const ROOM: usize = 4_096;

/// Channel with both its ends.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct ChannelSetup {
    large: bool,
    max_cid: u8,
    profiles: u8,
    window: u8,
    repetitions: u8,
    refresh: RefreshChoice,
    sid_everywhere: bool,
    rtp: RtpChoice,
    optimistic: bool,
    blocks: u8,
    seed: u64,
}

/// Reordering that profiles of RFC 5225 bear.
const RATIOS: [ReorderRatio; 4] =
    [ReorderRatio::None, ReorderRatio::Quarter, ReorderRatio::Half, ReorderRatio::ThreeQuarters];

/// Detection of RTP.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum RtpChoice {
    Guess,
    Port { port: u8, guess: bool },
    Never,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum RefreshChoice {
    Off,
    Packets(u8),
    Cycle { ir: u8, so: u8, direct: bool },
    Default,
}

impl ChannelSetup {
    /// Channel with few contexts, so that they are replaced.
    pub fn channel(&self) -> Channel {
        // Any set of profiles of RFC 3095 or of RFC 5225, and all of them in half of the cases.
        let chosen = |place: usize| self.profiles & 0x80 != 0 || self.profiles >> place & 1 == 1;
        let family = if self.profiles & 0x40 == 0 { ProfileSet::v1() } else { ProfileSet::v2() };
        let family = family.iter().filter(|profile| *profile != ProfileId::Uncompressed);
        let profiles: Vec<_> =
            family.enumerate().filter(|(place, _)| chosen(*place)).map(|(_, profile)| profile).collect();
        let (cids, max_cid) = if self.large {
            // A CID above 127 takes two octets.
            (CidSpace::Large, if self.max_cid > 250 { 300 } else { u16::from(self.max_cid % 4) })
        } else {
            (CidSpace::Small, u16::from(self.max_cid % 4))
        };
        let profiles = ProfileSet::of(&profiles).expect("no two of them are variants");
        Channel::new(cids, max_cid, profiles).expect("MAX_CID is within the space").with_mrru(512)
    }

    /// Compressor, configured by the input.
    pub fn compressor(&self) -> Compressor<'static> {
        let refresh = match self.refresh {
            RefreshChoice::Off => Refresh::Off,
            RefreshChoice::Packets(packets) => {
                let policy = format!("packets={}", packets.max(1));
                policy.parse().expect("this is a policy")
            }
            RefreshChoice::Cycle { ir, so, direct } => {
                Refresh::Cycle { ir: u32::from(ir).max(1), so: u32::from(so).max(1), direct }
            }
            RefreshChoice::Default => Refresh::default(),
        };
        let rtp = match self.rtp {
            RtpChoice::Guess => RtpDetection::default(),
            RtpChoice::Never => RtpDetection::NEVER,
            RtpChoice::Port { port, guess } => {
                let rule = RtpDetection::of_ports(&[u16::from(port)]).expect("one port is not too many");
                if guess { rule.or_guess() } else { rule }
            }
        };
        let channel = self.channel();
        let config = CompressorConfig {
            refresh,
            rtp,
            repetitions: 1 + self.repetitions % 7,
            window: 1 + self.window % 16,
            interop: Interop { sid_everywhere: self.sid_everywhere, ..Interop::STANDARD },
            reorder_ratio: RATIOS[(self.seed % 4) as usize],
            seed: self.seed,
            ..CompressorConfig::new(channel)
        };
        Compressor::new(
            config,
            CompressorMemory::owned(channel.sizes().blocks(usize::from(self.blocks % 12))),
        )
    }

    /// True if the compressor refreshes by its default policy, within 128 packets.
    pub fn refreshes_by_default(&self) -> bool {
        matches!(self.refresh, RefreshChoice::Default)
    }

    /// Decompressor, with more memory for extension headers than the compressor can use.
    pub fn decompressor(&self) -> Decompressor<'static> {
        let channel = self.channel();
        let mode = if self.optimistic { Mode::Optimistic } else { Mode::Unidirectional };
        let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(64)))
    }

    /// Decompressor that never gives a context up, so that an input can try many packets on one.
    pub fn patient_decompressor(&self) -> Decompressor<'static> {
        let channel = self.channel();
        let mode = if self.optimistic { Mode::Optimistic } else { Mode::Unidirectional };
        let never = Threshold { k: 17, n: 16 };
        let config = DecompressorConfig::new(channel);
        let config = DecompressorConfig { mode, nack: never, one_way: never, static_nack: never, ..config };
        Decompressor::new(
            config,
            DecompressorMemory::owned(channel.sizes().blocks(usize::from(self.blocks % 12))),
        )
    }
}

/// Flow, as the state of its next packet.
#[derive(Arbitrary, Clone, Debug)]
pub struct PacketFlow {
    outer: Option<IpLayer>,
    inner: IpLayer,
    more: u8,
    carries: Carries,
    ports: (u8, u8),
    /// RTP, in UDP and UDP-Lite.
    rtp: Option<Media>,
}

#[derive(Arbitrary, Clone, Debug)]
struct Media {
    ssrc: u8,
    sn: u16,
    ts: u32,
    /// P and X.
    flags: u8,
    /// M and PT.
    pt: u8,
    csrc: Vec<u8>,
}

#[derive(Arbitrary, Clone, Debug)]
struct IpLayer {
    v6: bool,
    tos: u8,
    ttl: u8,
    df: bool,
    id: u16,
    flow_label: u8,
    addresses: (u8, u8),
    extensions: Vec<ExtensionHeader>,
}

#[derive(Arbitrary, Clone, Debug)]
struct ExtensionHeader {
    kind: u8,
    length: u8,
    fill: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Carries {
    Udp { checksum: u16 },
    UdpLite { checksum: u16, coverage: u16 },
    Esp { spi: u8, sn: u32 },
    Other(u8),
}

/// Change from one packet of a flow to the next.
#[derive(Arbitrary, Clone, Debug)]
pub enum FlowChange {
    /// IP-IDs advance: the outer one and the inner one, in network byte order or swapped.
    Ids { outer: i8, inner: i8, swapped: bool },
    /// IP-IDs jump.
    RandomId(u16),
    /// Type of Service or Traffic Class.
    Tos { outer: bool, value: u8 },
    /// Time to Live or Hop Limit.
    Ttl { outer: bool, value: u8 },
    /// Don't Fragment.
    Df { outer: bool },
    /// Flow Label.
    FlowLabel { outer: bool, value: u8 },
    /// Checksum of UDP or UDP-Lite; 0: no checksum.
    Checksum(u16),
    /// Checksum Coverage of UDP-Lite.
    Coverage(u16),
    /// The sequence number of RTP or ESP advances.
    Sn(i8),
    /// The sequence number jumps.
    FarSn(u32),
    /// The timestamp of RTP advances, by a multiple of 8.
    Ts(i16),
    /// The timestamp jumps.
    FarTs(u32),
    /// P, X, M and PT.
    RtpFlags { flags: u8, pt: u8 },
    /// SSRC or SPI.
    Ssrc(u8),
    /// Adds a CSRC identifier, at any index.
    InsertCsrc { at: u8, csrc: u8 },
    /// Removes a CSRC identifier.
    RemoveCsrc { at: u8 },
    /// Changes an octet of an extension header.
    ExtensionOctet { outer: bool, which: u8, fill: u8 },
    /// Adds an extension header, at any index.
    Insert { outer: bool, at: u8, kind: u8, length: u8 },
    /// Removes an extension header.
    Remove { outer: bool, at: u8 },
    /// Changes an octet of the finished packet, also to an invalid one.
    Octet { at: u8, xor: u8 },
}

impl PacketFlow {
    /// Applies lasting changes; a [`FlowChange::Octet`] is for one packet.
    pub fn apply(&mut self, change: &FlowChange) {
        match *change {
            FlowChange::Ids { outer, inner, swapped } => {
                let step = |id: &mut u16, by: i8| {
                    *id = if swapped {
                        id.swap_bytes().wrapping_add_signed(i16::from(by)).swap_bytes()
                    } else {
                        id.wrapping_add_signed(i16::from(by))
                    }
                };
                if let Some(ip) = &mut self.outer {
                    step(&mut ip.id, outer);
                }
                step(&mut self.inner.id, inner);
            }
            FlowChange::RandomId(id) => self.inner.id = id,
            FlowChange::Tos { outer, value } => self.side(outer).tos = value,
            FlowChange::Ttl { outer, value } => self.side(outer).ttl = value,
            FlowChange::Df { outer } => self.side(outer).df ^= true,
            FlowChange::FlowLabel { outer, value } => self.side(outer).flow_label = value,
            FlowChange::Checksum(value) => {
                if let Carries::Udp { checksum } | Carries::UdpLite { checksum, .. } = &mut self.carries {
                    *checksum = value;
                }
            }
            FlowChange::Coverage(value) => {
                if let Carries::UdpLite { coverage, .. } = &mut self.carries {
                    *coverage = value;
                }
            }
            FlowChange::Sn(by) => match (&mut self.carries, &mut self.rtp) {
                (Carries::Esp { sn, .. }, _) => *sn = sn.wrapping_add_signed(by.into()),
                (_, Some(rtp)) => rtp.sn = rtp.sn.wrapping_add_signed(by.into()),
                _ => {}
            },
            FlowChange::FarSn(value) => match (&mut self.carries, &mut self.rtp) {
                (Carries::Esp { sn, .. }, _) => *sn = value,
                (_, Some(rtp)) => rtp.sn = value as u16,
                _ => {}
            },
            FlowChange::Ts(by) => {
                self.rtp.iter_mut().for_each(|rtp| rtp.ts = rtp.ts.wrapping_add_signed(i32::from(by) * 8));
            }
            FlowChange::FarTs(value) => self.rtp.iter_mut().for_each(|rtp| rtp.ts = value),
            FlowChange::RtpFlags { flags, pt } => {
                self.rtp.iter_mut().for_each(|rtp| (rtp.flags, rtp.pt) = (flags, pt));
            }
            FlowChange::Ssrc(value) => match (&mut self.carries, &mut self.rtp) {
                (Carries::Esp { spi, .. }, _) => *spi = value,
                (_, Some(rtp)) => rtp.ssrc = value,
                _ => {}
            },
            FlowChange::InsertCsrc { at, csrc } => {
                if let Some(rtp) = &mut self.rtp {
                    rtp.csrc.insert(usize::from(at) % (rtp.csrc.len() + 1), csrc);
                }
            }
            FlowChange::RemoveCsrc { at } => {
                if let Some(rtp) = &mut self.rtp
                    && let Some(at) = usize::from(at).checked_rem(rtp.csrc.len())
                {
                    rtp.csrc.remove(at);
                }
            }
            FlowChange::ExtensionOctet { outer, which, fill } => {
                let extensions = &mut self.side(outer).extensions;
                if let Some(which) = usize::from(which).checked_rem(extensions.len()) {
                    extensions[which].fill = fill;
                }
            }
            FlowChange::Insert { outer, at, kind, length } => {
                let extensions = &mut self.side(outer).extensions;
                let at = usize::from(at) % (extensions.len() + 1);
                extensions.insert(at, ExtensionHeader { kind, length, fill: kind });
            }
            FlowChange::Remove { outer, at } => {
                let extensions = &mut self.side(outer).extensions;
                if let Some(at) = usize::from(at).checked_rem(extensions.len()) {
                    extensions.remove(at);
                }
            }
            FlowChange::Octet { .. } => {}
        }
    }

    fn side(&mut self, outer: bool) -> &mut IpLayer {
        match &mut self.outer {
            Some(ip) if outer => ip,
            _ => &mut self.inner,
        }
    }

    /// Current packet of the flow, with a payload, and with the octets that `changes` break.
    pub fn packet(&self, payload: &[u8], changes: &[FlowChange]) -> Vec<u8> {
        let mut packet = payload.to_vec();
        let mut next = self.carried(&mut packet);
        // One to four IP headers, the innermost first.
        for _ in 0..1 + self.more % 3 {
            next = self.inner.around(&mut packet, next);
        }
        if let Some(outer) = &self.outer {
            outer.around(&mut packet, next);
        }
        for change in changes {
            if let FlowChange::Octet { at, xor } = *change
                && let Some(octet) = packet.get_mut(usize::from(at))
            {
                *octet ^= xor;
            }
        }
        packet
    }
}

impl PacketFlow {
    /// Prepends the payload header of the innermost IP header; returns its protocol number.
    fn carried(&self, packet: &mut Vec<u8>) -> u8 {
        let (source_port, destination_port) = (u16::from(self.ports.0), u16::from(self.ports.1));
        let is_datagram = matches!(self.carries, Carries::Udp { .. } | Carries::UdpLite { .. });
        if let Some(rtp) = self.rtp.as_ref().filter(|_| is_datagram) {
            rtp.around(packet);
        }
        let mut octets = [0; 8];
        let (written, kind) = match self.carries {
            Carries::Udp { checksum } => {
                let length = (Udp::LEN + packet.len()) as u16;
                let header = Udp { source_port, destination_port, length, checksum };
                (header.write(&mut octets, 0), protocol::UDP)
            }
            Carries::UdpLite { checksum, coverage: checksum_coverage } => {
                let header = UdpLite { source_port, destination_port, checksum_coverage, checksum };
                (header.write(&mut octets, 0), protocol::UDP_LITE)
            }
            Carries::Esp { spi, sn: sequence_number } => {
                let header = Esp { spi: spi.into(), sequence_number };
                (header.write(&mut octets, 0), protocol::ESP)
            }
            Carries::Other(kind) => return kind,
        };
        written.expect("there is room");
        packet.splice(0..0, octets);
        kind
    }
}

impl Media {
    /// Prepends the header. X announces a header extension, which may be missing.
    fn around(&self, packet: &mut Vec<u8>) {
        let csrc: Vec<_> = self.csrc.iter().take(15).flat_map(|csrc| [0, 0, 0, *csrc]).collect();
        let header = Rtp {
            padding: self.flags & 1 != 0,
            marker: self.pt & 0x80 != 0,
            payload_type: self.pt & 0x7F,
            sequence_number: self.sn,
            timestamp: self.ts,
            ssrc: self.ssrc.into(),
            csrc: &csrc,
            ..Rtp::default()
        };
        let mut octets = vec![0; header.len()];
        header.write(&mut octets, 0).expect("there is room");
        octets[0] |= (self.flags & 2) << 3;
        packet.splice(0..0, octets);
    }
}

impl IpLayer {
    /// Prepends the header; returns its protocol number.
    fn around(&self, packet: &mut Vec<u8>, mut next: u8) -> u8 {
        for extension in self.extensions.iter().take(10).rev() {
            let kind = match extension.kind % 8 {
                0 | 1 => protocol::HOP_BY_HOP,
                2 | 3 => protocol::ROUTING,
                4 | 5 => protocol::DESTINATION,
                6 => protocol::AH,
                _ => protocol::FRAGMENT,
            };
            let length = if extension.length > 240 { 17 } else { extension.length % 6 };
            let mut octets = vec![extension.fill; octets_of(kind, length)];
            octets[0] = next;
            octets[1] = length;
            packet.splice(0..0, octets);
            next = kind;
        }
        let len = packet.len();
        let (source, destination) = self.addresses;
        let mut octets = [0; 40];
        let (header, kind): (&[u8], _) = if self.v6 {
            let header = Ipv6 {
                traffic_class: self.tos,
                flow_label: u32::from(self.flow_label),
                payload_length: len as u16,
                next_header: next,
                hop_limit: self.ttl,
                source: [source; 16],
                destination: [destination; 16],
            };
            header.write(&mut octets, 0).expect("there is room");
            (&octets, protocol::IPV6)
        } else {
            let header = Ipv4 {
                tos: self.tos,
                total_length: (Ipv4::LEN + len) as u16,
                identification: self.id,
                df: self.df,
                ttl: self.ttl,
                protocol: next,
                source: [source; 4],
                destination: [destination; 4],
                ..Ipv4::default()
            };
            header.write(&mut octets, 0).expect("there is room");
            let header_checksum = Ipv4::checksum_of(&octets[..Ipv4::LEN]);
            Ipv4 { header_checksum, ..header }.write(&mut octets, 0).expect("there is room");
            (&octets[..Ipv4::LEN], protocol::IPV4)
        };
        packet.splice(0..0, header.iter().copied());
        kind
    }
}

/// One packet of an input: its flow, the changes before it, and its payload.
#[derive(Arbitrary, Clone, Debug)]
pub struct PacketStep {
    /// Index of the flow, modulo their number.
    pub flow: u8,
    /// Milliseconds since the previous packet.
    pub wait: u16,
    /// Number of following packets with the same changes, up to 15: a flow must become steady, too.
    pub repeat: u8,
    /// Changes before the packet.
    pub changes: Vec<FlowChange>,
    /// Payload of the packet; may be empty.
    pub payload: Vec<u8>,
}
