//! What the fuzz targets share: channels, and flows of IP packets that change from packet to packet.
//!
//! Random octets are hardly ever a sound IP packet, and random packets hardly ever a flow. So the targets draw
//! flows, and for each packet of a flow the fields that change; lengths and checksums are then made to fit.

pub mod coap;

use arbitrary::Arbitrary;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Mode, ProfileId, ProfileSet, Refresh, Threshold,
};
use thinair_wire::header::extension::octets_of;
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;
use thinair_wire::header::udp::Udp;

/// Room for every packet that [`Flow::packet`] makes, compressed or not.
pub const ROOM: usize = 4_096;

/// A channel with both its ends.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Setup {
    large: bool,
    max_cid: u8,
    profiles: u8,
    window: u8,
    repetitions: u8,
    refresh: RefreshChoice,
    sid_everywhere: bool,
    optimistic: bool,
    blocks: u8,
    seed: u64,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum RefreshChoice {
    Off,
    Packets(u8),
    Cycle { ir: u8, so: u8, direct: bool },
    Default,
}

impl Setup {
    /// The channel: few contexts, so that they are taken over.
    pub fn channel(&self) -> Channel {
        let profiles: &[ProfileId] = match self.profiles % 4 {
            0 => &[],
            1 => &[ProfileId::Ip],
            2 => &[ProfileId::Udp],
            _ => &[ProfileId::Udp, ProfileId::Ip],
        };
        let (cids, max_cid) = if self.large {
            // Beyond 127 a CID takes two octets.
            (CidSpace::Large, if self.max_cid > 250 { 300 } else { u16::from(self.max_cid % 4) })
        } else {
            (CidSpace::Small, u16::from(self.max_cid % 4))
        };
        let profiles = ProfileSet::of(profiles).expect("no two of them are variants");
        Channel::new(cids, max_cid, profiles).expect("MAX_CID is within the space").with_mrru(512)
    }

    /// The compressor, as the input configures it.
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
        let channel = self.channel();
        let config = CompressorConfig {
            refresh,
            repetitions: 1 + self.repetitions % 7,
            window: 1 + self.window % 16,
            sid_everywhere: self.sid_everywhere,
            seed: self.seed,
            ..CompressorConfig::new(channel)
        };
        Compressor::new(config, CompressorMemory::owned(&channel, usize::from(self.blocks % 12)))
    }

    /// Whether the compressor refreshes every 16 seconds.
    pub fn refreshes_by_time(&self) -> bool {
        matches!(self.refresh, RefreshChoice::Default)
    }

    /// The decompressor, with more memory for extension headers than the compressor can ask for.
    pub fn decompressor(&self) -> Decompressor<'static> {
        let channel = self.channel();
        let mode = if self.optimistic { Mode::Optimistic } else { Mode::Unidirectional };
        let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        Decompressor::new(config, DecompressorMemory::owned(&channel, 64))
    }

    /// A decompressor that never gives a context up, so that an input can try many packets on one.
    pub fn patient_decompressor(&self) -> Decompressor<'static> {
        let channel = self.channel();
        let mode = if self.optimistic { Mode::Optimistic } else { Mode::Unidirectional };
        let never = Threshold { k: 17, n: 16 };
        let config =
            DecompressorConfig { mode, nack: never, static_nack: never, ..DecompressorConfig::new(channel) };
        Decompressor::new(config, DecompressorMemory::owned(&channel, usize::from(self.blocks % 12)))
    }
}

/// A flow: the packet that its packets start from.
#[derive(Arbitrary, Clone, Debug)]
pub struct Flow {
    outer: Option<Ip>,
    inner: Ip,
    more: u8,
    carries: Carries,
    ports: (u8, u8),
}

#[derive(Arbitrary, Clone, Debug)]
struct Ip {
    v6: bool,
    tos: u8,
    ttl: u8,
    df: bool,
    id: u16,
    flow_label: u8,
    addresses: (u8, u8),
    extensions: Vec<Extension>,
}

#[derive(Arbitrary, Clone, Debug)]
struct Extension {
    kind: u8,
    length: u8,
    fill: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Carries {
    Udp { checksum: u16 },
    Other(u8),
}

/// What is different in the next packet of a flow.
#[derive(Arbitrary, Clone, Debug)]
pub enum Change {
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
    /// UDP checksum; 0 for none.
    Checksum(u16),
    /// An octet of an extension header.
    ExtensionOctet { outer: bool, which: u8, fill: u8 },
    /// One more extension header, somewhere.
    Insert { outer: bool, at: u8, kind: u8, length: u8 },
    /// One extension header less.
    Remove { outer: bool, at: u8 },
    /// An octet of the finished packet, whatever it breaks.
    Octet { at: u8, xor: u8 },
}

impl Flow {
    /// Applies what changes for good; an [`Change::Octet`] is for one packet.
    pub fn apply(&mut self, change: &Change) {
        match *change {
            Change::Ids { outer, inner, swapped } => {
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
            Change::RandomId(id) => self.inner.id = id,
            Change::Tos { outer, value } => self.side(outer).tos = value,
            Change::Ttl { outer, value } => self.side(outer).ttl = value,
            Change::Df { outer } => self.side(outer).df ^= true,
            Change::FlowLabel { outer, value } => self.side(outer).flow_label = value,
            Change::Checksum(value) => {
                if let Carries::Udp { checksum } = &mut self.carries {
                    *checksum = value;
                }
            }
            Change::ExtensionOctet { outer, which, fill } => {
                let extensions = &mut self.side(outer).extensions;
                if let Some(which) = usize::from(which).checked_rem(extensions.len()) {
                    extensions[which].fill = fill;
                }
            }
            Change::Insert { outer, at, kind, length } => {
                let extensions = &mut self.side(outer).extensions;
                let at = usize::from(at) % (extensions.len() + 1);
                extensions.insert(at, Extension { kind, length, fill: kind });
            }
            Change::Remove { outer, at } => {
                let extensions = &mut self.side(outer).extensions;
                if let Some(at) = usize::from(at).checked_rem(extensions.len()) {
                    extensions.remove(at);
                }
            }
            Change::Octet { .. } => {}
        }
    }

    fn side(&mut self, outer: bool) -> &mut Ip {
        match &mut self.outer {
            Some(ip) if outer => ip,
            _ => &mut self.inner,
        }
    }

    /// The packet of the flow as it stands, with a payload, and with the octets that `changes` break.
    pub fn packet(&self, payload: &[u8], changes: &[Change]) -> Vec<u8> {
        let mut next = match self.carries {
            Carries::Udp { .. } => protocol::UDP,
            Carries::Other(kind) => kind,
        };
        let mut packet = payload.to_vec();
        if let Carries::Udp { checksum } = self.carries {
            let header = Udp {
                source_port: u16::from(self.ports.0),
                destination_port: u16::from(self.ports.1),
                length: (Udp::LEN + payload.len()) as u16,
                checksum,
            };
            let mut octets = vec![0; Udp::LEN];
            header.write(&mut octets, 0).expect("there is room");
            packet.splice(0..0, octets);
        }
        // One to four IP headers, the inner one first.
        for _ in 0..1 + self.more % 3 {
            next = self.inner.around(&mut packet, next);
        }
        if let Some(outer) = &self.outer {
            outer.around(&mut packet, next);
        }
        for change in changes {
            if let Change::Octet { at, xor } = *change
                && let Some(octet) = packet.get_mut(usize::from(at))
            {
                *octet ^= xor;
            }
        }
        packet
    }
}

impl Ip {
    /// Puts the header in front of what it carries; returns its protocol number.
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

/// One packet of an input: which flow, what changes before it, and what it carries.
#[derive(Arbitrary, Clone, Debug)]
pub struct Step {
    /// Which flow, modulo their number.
    pub flow: u8,
    /// Milliseconds since the packet before.
    pub wait: u16,
    /// How many packets with the same changes follow, up to 15: a flow has to become steady, too.
    pub repeat: u8,
    /// What changes before the packet.
    pub changes: Vec<Change>,
    /// What the packet carries, from no octet on.
    pub payload: Vec<u8>,
}
