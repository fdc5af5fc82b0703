//! Protocol stacks on which header compression is measured, and flows of them: whole IP packets of equal size, in which
//! only counters change.

use core::fmt;
use core::str::FromStr;

use thinair_link::Random;
use thinair_rohc::{
    Channel, ChannelError, CidSpace, CompressorConfig, ProfileId, ProfileSet, Refresh, RtpDetection,
};
use thinair_wire::checksum::Sum;

const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
const RTP: usize = 12;
const TCP: usize = 20;
const PROTOCOL_TCP: u8 = 6;
const ACK: u8 = 0x10;
const PROTOCOL_UDP: u8 = 17;

/// The port of iperf, which the published measurements used.
const IPERF_PORT: u16 = 5_001;
const RTP_PORT: u16 = 5_004;
const COAP_PORT: u16 = 5_683;

/// Samples of a packet: 20 ms at 8 kHz. RFC 3551, section 4.5.
const TIMESTAMP_STRIDE: u32 = 160;

/// NON 0.03 (PUT) without token, Uri-Path `time`, payload marker; the Message ID is filled in. RFC 7252, section 3.
const COAP: [u8; 10] = *b"\x50\x03\0\0\xB4time\xFF";

/// Headers of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolStack {
    version: StackVersion,
    checksum: StackChecksum,
    above: Above,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum StackVersion {
    V4,
    V6,
}

/// Checksum of UDP or TCP: zero is allowed for UDP over IPv4. RFC 768.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum StackChecksum {
    Sent,
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Above {
    Nothing,
    Rtp,
    Coap,
    /// TCP in place of UDP.
    Tcp,
}

impl ProtocolStack {
    /// The stack of the published evaluation.
    pub const IPV6_UDP: Self = Self::new(StackVersion::V6, StackChecksum::Sent, Above::Nothing);

    /// All stacks, with their names.
    pub const ALL: [(&'static str, Self); 10] = [
        ("ipv6/udp", Self::IPV6_UDP),
        ("ipv4/udp", Self::new(StackVersion::V4, StackChecksum::Sent, Above::Nothing)),
        ("ipv4/udp0", Self::new(StackVersion::V4, StackChecksum::Zero, Above::Nothing)),
        ("ipv6/udp/rtp", Self::new(StackVersion::V6, StackChecksum::Sent, Above::Rtp)),
        ("ipv4/udp/rtp", Self::new(StackVersion::V4, StackChecksum::Sent, Above::Rtp)),
        ("ipv4/udp0/rtp", Self::new(StackVersion::V4, StackChecksum::Zero, Above::Rtp)),
        ("ipv6/udp/coap", Self::new(StackVersion::V6, StackChecksum::Sent, Above::Coap)),
        ("ipv4/udp/coap", Self::new(StackVersion::V4, StackChecksum::Sent, Above::Coap)),
        ("ipv6/tcp", Self::new(StackVersion::V6, StackChecksum::Sent, Above::Tcp)),
        ("ipv4/tcp", Self::new(StackVersion::V4, StackChecksum::Sent, Above::Tcp)),
    ];

    const fn new(version: StackVersion, checksum: StackChecksum, above: Above) -> Self {
        Self { version, checksum, above }
    }

    /// Returns its name, as in `ipv6/udp`; `udp0` is UDP without checksum.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, stack)| *stack == self).map_or("", |(name, _)| name)
    }

    /// Returns the octets of all headers; those of CoAP include its option and the payload marker.
    pub const fn headers(self) -> usize {
        let ip = match self.version {
            StackVersion::V4 => IPV4,
            StackVersion::V6 => IPV6,
        };
        let above = match self.above {
            Above::Nothing => UDP,
            Above::Rtp => UDP + RTP,
            Above::Coap => UDP + COAP.len(),
            Above::Tcp => TCP,
        };
        ip + above
    }

    /// Returns the largest payload of a packet, in octets.
    pub const fn most_payload(self) -> usize {
        // The lengths of IPv4 and UDP have 16 bits; that of IPv6 does not count its own header.
        match self.version {
            StackVersion::V4 => 0xFFFF - self.headers(),
            StackVersion::V6 => 0xFFFF - (self.headers() - IPV6),
        }
    }

    /// Returns the host that a packet comes from: the last octet of its source address. `None` if there is no address.
    pub fn host(self, packet: &[u8]) -> Option<u8> {
        let at = match self.version {
            StackVersion::V4 => 15,
            StackVersion::V6 => 23,
        };
        packet.get(at).copied()
    }

    /// Returns the profile of the stack.
    pub const fn profile(self) -> ProfileId {
        match self.above {
            Above::Nothing => ProfileId::Udp,
            Above::Rtp => ProfileId::Rtp,
            Above::Coap => ProfileId::Coap,
            Above::Tcp => ProfileId::Tcp,
        }
    }

    /// Returns the configuration of a compressor for `flows` flows, at least 1: the profile of the stack, and small CIDs,
    /// so that CID 0 takes no octet.
    ///
    /// # Errors
    ///
    /// More than 16 flows.
    pub fn compressor(self, flows: u16, refresh: Refresh) -> Result<CompressorConfig, ChannelError> {
        let profiles = ProfileSet::of(&[ProfileId::Uncompressed, self.profile()])?;
        let mut config =
            CompressorConfig::new(Channel::new(CidSpace::Small, flows.saturating_sub(1), profiles)?);
        config.refresh = refresh;
        config.rtp = RtpDetection::of_ports(&[RTP_PORT]).unwrap_or_default();
        Ok(config)
    }
}

impl fmt::Display for ProtocolStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error: unknown stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseStackError;

impl fmt::Display for ParseStackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected one of ")?;
        let mut comma = "";
        for (name, _) in ProtocolStack::ALL {
            write!(f, "{comma}{name}")?;
            comma = ", ";
        }
        Ok(())
    }
}

impl core::error::Error for ParseStackError {}

impl FromStr for ProtocolStack {
    type Err = ParseStackError;

    fn from_str(text: &str) -> Result<Self, ParseStackError> {
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, stack)| *stack).ok_or(ParseStackError)
    }
}

/// Packets of one stack and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFlow {
    stack: ProtocolStack,
    payload: usize,
    /// Sending host: the last octet of its address.
    host: u8,
    seed: u64,
}

impl StackFlow {
    /// Creates a flow from host `host`. The seed determines its payload and its first counters. `None` if `payload`
    /// octets do not fit into a packet.
    pub fn new(stack: ProtocolStack, payload: usize, host: u8, seed: u64) -> Option<Self> {
        (payload <= stack.most_payload()).then_some(Self { stack, payload, host, seed })
    }

    /// Returns the octets of a packet.
    pub const fn packet_len(&self) -> usize {
        self.stack.headers() + self.payload
    }

    /// Replaces the content of `out` by packet `number`. Payloads differ from packet to packet.
    pub fn packet(&self, number: u32, out: &mut Vec<u8>) {
        let mut counters = Random::new(self.seed);
        let [ip_id, above, timestamp] = [0; 3].map(|_: u8| counters.next_u64() as u32);
        let Self { stack: ProtocolStack { version, checksum, above: kind }, host, .. } = *self;
        out.clear();
        out.resize(self.packet_len(), 0);
        let mut content = Random::new(self.seed.rotate_left(32) ^ u64::from(number));
        for octets in out[self.stack.headers()..].chunks_mut(8) {
            octets.copy_from_slice(&content.next_u64().to_le_bytes()[..octets.len()]);
        }

        let ip_len = match version {
            StackVersion::V4 => IPV4,
            StackVersion::V6 => IPV6,
        };
        let len = (out.len() - ip_len) as u16;
        let protocol = if kind == Above::Tcp { PROTOCOL_TCP } else { PROTOCOL_UDP };
        let (ip, datagram) = out.split_at_mut(ip_len);
        match version {
            StackVersion::V4 => {
                ip[..2].copy_from_slice(&[0x45, 0]);
                ip[2..4].copy_from_slice(&(ip_len as u16 + len).to_be_bytes());
                ip[4..6].copy_from_slice(&(ip_id.wrapping_add(number) as u16).to_be_bytes());
                ip[6..10].copy_from_slice(&[0x40, 0, 64, protocol]);
                ip[12..20].copy_from_slice(&[10, 9, 0, host, 10, 9, 0, 254]);
                let checksum = Sum::ZERO.octets(ip).checksum();
                ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            StackVersion::V6 => {
                ip[0] = 0x60;
                ip[4..6].copy_from_slice(&len.to_be_bytes());
                ip[6..8].copy_from_slice(&[protocol, 64]);
                [ip[8], ip[9], ip[23]] = [0xFD, 0x09, host];
                [ip[24], ip[25], ip[39]] = [0xFD, 0x09, 254];
            }
        }
        let (addresses, _) = ip[if version == StackVersion::V4 { 12 } else { 8 }..].split_at(match version {
            StackVersion::V4 => 8,
            StackVersion::V6 => 32,
        });
        let port = match kind {
            Above::Nothing | Above::Tcp => IPERF_PORT,
            Above::Rtp => RTP_PORT,
            Above::Coap => COAP_PORT,
        };
        datagram[..2].copy_from_slice(&49_152_u16.to_be_bytes());
        datagram[2..4].copy_from_slice(&port.to_be_bytes());
        if protocol == PROTOCOL_UDP {
            datagram[4..6].copy_from_slice(&len.to_be_bytes());
        }
        let counter = (above.wrapping_add(number) as u16).to_be_bytes();
        match kind {
            Above::Nothing => {}
            Above::Rtp => {
                datagram[8..10].copy_from_slice(&[0x80, 0]);
                datagram[10..12].copy_from_slice(&counter);
                let timestamp = timestamp.wrapping_add(number.wrapping_mul(TIMESTAMP_STRIDE));
                datagram[12..16].copy_from_slice(&timestamp.to_be_bytes());
                datagram[16..20].copy_from_slice(&[0x7A, 0x11, 0xA1, host]);
            }
            Above::Coap => {
                datagram[8..18].copy_from_slice(&COAP);
                datagram[10..12].copy_from_slice(&counter);
            }
            // Segments of one direction: the sequence number grows by the payload. RFC 9293, section 3.1.
            Above::Tcp => {
                let sequence = above.wrapping_add(number.wrapping_mul(self.payload as u32));
                datagram[4..8].copy_from_slice(&sequence.to_be_bytes());
                datagram[8..12].copy_from_slice(&timestamp.to_be_bytes());
                datagram[12..16].copy_from_slice(&[5 << 4, ACK, 0x20, 0]);
            }
        }
        if checksum == StackChecksum::Sent {
            let sum = Sum::ZERO.octets(addresses).word(u16::from(protocol)).word(len).octets(datagram);
            // Zero would mean that there is no checksum. RFC 768.
            let checksum = match sum.checksum() {
                0 => 0xFFFF,
                checksum => checksum,
            };
            let at = if protocol == PROTOCOL_TCP { 16 } else { 6 };
            datagram[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_read_and_reported() {
        for (name, stack) in ProtocolStack::ALL {
            assert_eq!((name.parse(), stack.to_string().as_str()), (Ok(stack), name));
        }
        assert_eq!("ipx".parse::<ProtocolStack>(), Err(ParseStackError));
        assert!(ParseStackError.to_string().ends_with("ipv4/udp/coap, ipv6/tcp, ipv4/tcp"));
    }

    #[test]
    fn packets_are_whole_and_their_checksums_right() {
        for (name, stack) in ProtocolStack::ALL {
            for payload in [0, 1, 40, 1_024] {
                let flow = StackFlow::new(stack, payload, 3, 9).unwrap();
                let mut packet = Vec::new();
                flow.packet(70_000, &mut packet);
                assert_eq!(packet.len(), stack.headers() + payload, "{name}");
                let (ip, datagram) = packet.split_at(if stack.version == StackVersion::V4 { 20 } else { 40 });
                if stack.version == StackVersion::V4 {
                    assert_eq!(Sum::ZERO.octets(ip).fold(), 0xFFFF, "{name}");
                }
                let addresses = &ip[ip.len() - if stack.version == StackVersion::V4 { 8 } else { 32 }..];
                let protocol = if stack.above == Above::Tcp { 6 } else { 17 };
                let sum =
                    Sum::ZERO.octets(addresses).word(protocol).word(datagram.len() as u16).octets(datagram);
                let at = if stack.above == Above::Tcp { 16 } else { 6 };
                let is_zero = datagram[at..at + 2] == [0, 0];
                assert_eq!(is_zero, stack.checksum == StackChecksum::Zero, "{name}");
                assert!(is_zero || sum.fold() == 0xFFFF, "{name}");
            }
            assert!(StackFlow::new(stack, stack.most_payload(), 0, 0).is_some());
            assert!(StackFlow::new(stack, stack.most_payload() + 1, 0, 0).is_none());
        }
    }

    #[test]
    fn only_counters_and_payload_differ_from_packet_to_packet() {
        let (_, stack) = ProtocolStack::ALL[3];
        let flow = StackFlow::new(stack, 4, 1, 2).unwrap();
        let [mut one, mut other] = [Vec::new(), Vec::new()];
        flow.packet(7, &mut one);
        flow.packet(8, &mut other);
        for same in [0..46, 48..50, 56..60] {
            assert_eq!(one[same.clone()], other[same]);
        }
        let number = |packet: &[u8]| u16::from_be_bytes([packet[50], packet[51]]);
        assert_eq!(number(&one).wrapping_add(1), number(&other));
        assert_ne!(one[60..], other[60..]);
    }
}
