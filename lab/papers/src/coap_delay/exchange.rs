//! The paper's exchange and its packet types, for every measurement of one call: `thinair-lab paper run coap-delay` by
//! the clock, the bench `delay` and the program `firmware/delay` by instructions. They share this file, so that they
//! measure the same calls. It therefore allocates nothing.
//!
//! It determines which packet of a flow provokes which packet type, and has no clocks or counters.

use thinair_coap_2015::{Coap2015Compressor, Coap2015Decompressor};
use thinair_rohc::{
    Channel, ChannelError, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor,
    DecompressorConfig, DecompressorMemory, Format, Instant, ProfileId, ProfileSet, Refresh,
};
use thinair_wire::checksum::Sum;

/// Maximum size of a packet, compressed or not, in octets.
pub(crate) const ROOM: usize = 96;
/// Number of contexts of a channel.
pub(crate) const CONTEXTS: usize = 4;
/// Number of blocks for extension headers and options.
pub(crate) const BLOCKS: usize = 4;

/// Number of packets within which every type must occur.
const MOST: u16 = 64;
/// Milliseconds between two packets of a flow.
const PACE: u64 = 1_000;
/// Packets between two IR packets, with an IR-DYN packet halfway.
const REFRESH: u32 = 32;
/// Number of the first packet with a lower TTL, as after a longer route.
const REROUTED: u16 = 20;
/// TTL before and after. CRC-3 does not detect this change, so that the packets after it must carry CRC-7 (RFC 3095, section
/// 5.9.2): UOR-2 without extension.
const TTLS: [u8; 2] = [64, 50];
/// UO-0 packets before the measured one, so that windows are full.
const SETTLED: u8 = 8;

const IPV4: usize = 20;
const HEADERS: usize = IPV4 + 8;
const PROTOCOL_UDP: u8 = 17;
const CLIENT: [u8; 4] = [192, 0, 2, 1];
const SERVER: [u8; 4] = [192, 0, 2, 2];
const CLIENT_PORT: u16 = 49_152;
const COAP_PORT: u16 = 5_683;
/// Message ID of section V.B of the paper.
const MESSAGE_ID: u16 = 58_468;

/// Request or response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Half {
    Get,
    Response,
}

/// Packet type: a row of tables I and II of the paper, with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PacketType {
    /// First IR packet of a flow, which creates the context.
    Ir1,
    Ir2,
    Ir3,
    IrDyn,
    Uor2,
    Uo0,
}

impl Half {
    /// Name in row ids.
    #[allow(dead_code)] // A bench has names of its own.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Response => "rsp",
        }
    }
}

impl PacketType {
    /// Name in row ids.
    #[allow(dead_code)] // A bench has names of its own.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ir1 => "ir-1",
            Self::Ir2 => "ir-2",
            Self::Ir3 => "ir-3",
            Self::IrDyn => "ir-dyn",
            Self::Uor2 => "uor-2",
            Self::Uo0 => "uo-0",
        }
    }
}

/// Rows in the paper's order.
pub(crate) const ROWS: [(PacketType, Half); 12] = [
    (PacketType::Ir1, Half::Get),
    (PacketType::Ir1, Half::Response),
    (PacketType::Ir2, Half::Get),
    (PacketType::Ir2, Half::Response),
    (PacketType::Ir3, Half::Get),
    (PacketType::Ir3, Half::Response),
    (PacketType::IrDyn, Half::Get),
    (PacketType::IrDyn, Half::Response),
    (PacketType::Uor2, Half::Get),
    (PacketType::Uor2, Half::Response),
    (PacketType::Uo0, Half::Get),
    (PacketType::Uo0, Half::Response),
];

/// Measured profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallProfile {
    /// 0x0080, the paper's.
    Coap2015,
    Udp,
    Coap,
}

impl CallProfile {
    /// All, the paper's first.
    pub(crate) const ALL: [Self; 3] = [Self::Coap2015, Self::Udp, Self::Coap];

    /// Name in row ids.
    #[allow(dead_code)] // A bench has names of its own.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Coap2015 => thinair_coap_2015::NAME,
            Self::Udp => ProfileId::Udp.name(),
            Self::Coap => ProfileId::Coap.name(),
        }
    }
}

/// Compressor of a case.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nothing is allocated")]
pub(crate) enum CallCompressor<'m> {
    Rohc(Compressor<'m>),
    Coap2015(Coap2015Compressor<'m>),
}

impl CallCompressor<'_> {
    /// Compresses a packet. Returns its length, format and profile.
    #[inline]
    pub(crate) fn compress(
        &mut self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
    ) -> Option<(usize, Format, CallProfile)> {
        let (done, is_coap_2015) = match self {
            Self::Rohc(side) => (side.compress(now, packet, out).ok()?, false),
            Self::Coap2015(side) => {
                let done = side.compress(now, packet, out).ok()?;
                (done.compressed, done.is_coap)
            }
        };
        let profile = match done.profile {
            _ if is_coap_2015 => CallProfile::Coap2015,
            ProfileId::Udp => CallProfile::Udp,
            ProfileId::Coap => CallProfile::Coap,
            _ => return None,
        };
        Some((done.len, done.format, profile))
    }
}

/// Decompressor of a case.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nothing is allocated")]
pub(crate) enum CallDecompressor<'m> {
    Rohc(Decompressor<'m>),
    Coap2015(Coap2015Decompressor<'m>),
}

impl CallDecompressor<'_> {
    /// Decompresses a packet, and returns its length.
    #[inline]
    pub(crate) fn decompress(&mut self, now: Instant, rohc: &[u8], out: &mut [u8]) -> Option<usize> {
        let done = match self {
            Self::Rohc(side) => side.decompress(now, rohc, out),
            Self::Coap2015(side) => side.decompress(now, rohc, out),
        };
        done.ok().map(|done| done.len)
    }
}

/// One call: a packet type, sent by a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallCase {
    pub(crate) kind: PacketType,
    pub(crate) half: Half,
    pub(crate) profile: CallProfile,
}

/// Packet of a [`CallCase`], and its compressed form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreparedCall {
    packet: [u8; ROOM],
    packet_len: usize,
    rohc: [u8; ROOM],
    rohc_len: usize,
    /// Time of the call.
    pub(crate) now: Instant,
}

impl PreparedCall {
    /// Input of the compressor.
    pub(crate) fn packet(&self) -> &[u8] {
        self.packet.get(..self.packet_len).unwrap_or_default()
    }

    /// Input of the decompressor.
    pub(crate) fn rohc(&self) -> &[u8] {
        self.rohc.get(..self.rohc_len).unwrap_or_default()
    }
}

impl CallCase {
    /// Every case: the rows of the first profile, then those of the next.
    #[allow(dead_code)] // A bench names them one by one.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        CallProfile::ALL
            .into_iter()
            .flat_map(|profile| ROWS.into_iter().map(move |(kind, half)| Self { kind, half, profile }))
    }

    /// Measured format, and the number of packets of that format before it.
    pub(crate) fn wanted(&self) -> (Format, u8) {
        let is_ours = self.profile == CallProfile::Coap;
        match self.kind {
            PacketType::Ir1 => (Format::Ir, 0),
            PacketType::Ir2 => (Format::Ir, 1),
            PacketType::Ir3 => (Format::Ir, 2),
            PacketType::IrDyn => (if is_ours { Format::CoRepair } else { Format::IrDyn }, 0),
            PacketType::Uor2 => (if is_ours { Format::CoCommon } else { Format::Uor2 }, 0),
            PacketType::Uo0 => (if is_ours { Format::Pt0c } else { Format::Uo0 }, SETTLED),
        }
    }

    /// Configuration of both sides of the channel.
    pub(crate) fn config(&self) -> Result<CompressorConfig, ChannelError> {
        let v1 = ProfileSet::v1();
        let profiles = if self.profile == CallProfile::Coap { v1.with(ProfileId::Coap)? } else { v1 };
        let channel = Channel::new(CidSpace::Small, CONTEXTS as u16 - 1, profiles)?;
        let mut config = CompressorConfig::new(channel);
        config.refresh = Refresh::Periodic { packets: Some(REFRESH), time: None, backoff: false };
        Ok(config)
    }

    /// Creates a compressor.
    pub(crate) fn compressor<'m>(
        &self,
        config: CompressorConfig,
        memory: impl Into<CompressorMemory<'m>>,
    ) -> CallCompressor<'m> {
        match self.profile {
            CallProfile::Coap2015 => {
                CallCompressor::Coap2015(Coap2015Compressor::new(config, memory, BLOCKS))
            }
            CallProfile::Udp | CallProfile::Coap => CallCompressor::Rohc(Compressor::new(config, memory)),
        }
    }

    /// Creates the decompressor of that channel.
    pub(crate) fn decompressor<'m>(
        &self,
        channel: Channel,
        memory: impl Into<DecompressorMemory<'m>>,
    ) -> CallDecompressor<'m> {
        let config = DecompressorConfig::new(channel);
        match self.profile {
            CallProfile::Coap2015 => CallDecompressor::Coap2015(Coap2015Decompressor::new(config, memory)),
            CallProfile::Udp | CallProfile::Coap => CallDecompressor::Rohc(Decompressor::new(config, memory)),
        }
    }

    /// Finds the packet of this case: `scout`, which must be new, compresses the flow until it occurs. `None` if it
    /// never does, or if a packet is rejected.
    pub(crate) fn scout(&self, scout: &mut CallCompressor<'_>) -> Option<(PreparedCall, u16)> {
        let (format, mut before) = self.wanted();
        for number in 0..MOST {
            let (packet, packet_len) = self.packet(number);
            let (mut rohc, now) = ([0; ROOM], at(number));
            let (rohc_len, sent, profile) = scout.compress(now, packet.get(..packet_len)?, &mut rohc)?;
            if (profile, sent) == (self.profile, format) {
                if before == 0 {
                    return Some((PreparedCall { packet, packet_len, rohc, rohc_len, now }, number));
                }
                before -= 1;
            }
        }
        None
    }

    /// Brings a new compressor and a new decompressor directly before the packet of that number. Returns true if every
    /// packet was restored exactly.
    pub(crate) fn replay(
        &self,
        number: u16,
        compressor: &mut CallCompressor<'_>,
        decompressor: &mut CallDecompressor<'_>,
    ) -> bool {
        (0..number).all(|number| {
            let (packet, len) = self.packet(number);
            let (packet, now) = (packet.get(..len).unwrap_or_default(), at(number));
            let (mut rohc, mut back) = ([0; ROOM], [0; ROOM]);
            let Some((sent, ..)) = compressor.compress(now, packet, &mut rohc) else { return false };
            let received = decompressor.decompress(now, rohc.get(..sent).unwrap_or_default(), &mut back);
            received.is_some_and(|received| back.get(..received) == Some(packet))
        })
    }

    /// Packet number `number` of the flow, from 0, and its length: IPv4, UDP and CoAP as in section V.B of the paper.
    /// IP-ID and Message ID count.
    pub(crate) fn packet(&self, number: u16) -> ([u8; ROOM], usize) {
        let (fixed, message, ends): (_, &[u8], _) = match self.half {
            Half::Get => ([0x40, 0x01], b"\xB4time", [(CLIENT, CLIENT_PORT), (SERVER, COAP_PORT)]),
            Half::Response => (
                [0x60, 0x45],
                b"\xC0\x21\x01\xFFOct 14 19:45:32",
                [(SERVER, COAP_PORT), (CLIENT, CLIENT_PORT)],
            ),
        };
        let mut packet = [0; ROOM];
        let mut len = 0;
        let mut put = |octets: &[u8]| {
            for (to, octet) in packet.iter_mut().skip(len).zip(octets) {
                *to = *octet;
            }
            len += octets.len();
        };
        let ttl = TTLS[usize::from(number >= REROUTED)];
        let udp_len = (8 + 4 + message.len()) as u16;
        put(&[0x45, 0]);
        put(&(IPV4 as u16 + udp_len).to_be_bytes());
        put(&number.wrapping_add(1).to_be_bytes());
        put(&[0x40, 0, ttl, PROTOCOL_UDP, 0, 0]);
        ends.iter().for_each(|(address, _)| put(address));
        ends.iter().for_each(|(_, port)| put(&port.to_be_bytes()));
        put(&udp_len.to_be_bytes());
        put(&[0, 0]);
        put(&fixed);
        put(&MESSAGE_ID.wrapping_add(number).to_be_bytes());
        put(message);

        let header = Sum::ZERO.octets(&packet[..IPV4]).checksum();
        packet[10..12].copy_from_slice(&header.to_be_bytes());
        let pseudo = Sum::ZERO.octets(&packet[12..IPV4]).word(u16::from(PROTOCOL_UDP)).word(udp_len);
        // Zero would mean no checksum. RFC 768.
        let checksum = match pseudo.octets(&packet[IPV4..]).checksum() {
            0 => u16::MAX,
            checksum => checksum,
        };
        packet[HEADERS - 2..HEADERS].copy_from_slice(&checksum.to_be_bytes());
        (packet, len)
    }
}

/// Time at which a packet is sent.
fn at(number: u16) -> Instant {
    Instant::from_millis(PACE * u64::from(number))
}
