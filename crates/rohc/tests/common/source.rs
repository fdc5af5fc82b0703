//! Flows of every profile with valid headers: lengths, checksums, and counters that increase by one.

use thinair_rohc::{Integrity, ProfileId, ProfileSet};
use thinair_wire::checksum::Sum;

use super::coap::{self, CoapSide, FlowName};
use super::dtls::DtlsFlow;
use super::media::{Media, MediaKind, TimestampClock};
use super::tcp::{Outer, TcpPacket, timestamps};
use super::{IdKind, IpLayer, SplitMix64, TestFlow};

/// The headers of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    Rtp,
    /// Voice with pauses: timestamps jump, and the marker is set.
    RtpTalk,
    /// Voice with a steady pace except for a pause now and then, which looks like a loss by the clock.
    RtpPause,
    Udp,
    Esp,
    Ip,
    UdpLite,
    /// Segments of one size.
    TcpData,
    /// Segments without payload that acknowledge one or two others.
    TcpAck,
    /// Dialog over TCP: segments of any size, acknowledgments, and IP-IDs that other flows use, too.
    TcpChat,
    /// Requests for one resource, with counting Message IDs.
    CoapGet,
    /// Notifications with a counting Observe option.
    CoapNotify,
    /// Requests with random Message IDs and tokens, and their responses.
    CoapExchange,
    /// Two endpoints that use all features of CoAP, and some invalid packets.
    CoapMix,
    /// A mix by clients that take new ports.
    CoapClients,
    /// Records of one type and epoch.
    Dtls,
    /// Records with new epochs, alerts, handshakes, jumps, and others in the same datagram.
    DtlsMix,
}

/// The checksum of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumUse {
    Carried,
    /// Zero in UDP; elided and recomputed in profile 0x0181.
    Elided,
}

impl SourceKind {
    pub const ALL: [Self; 16] = [
        Self::Rtp,
        Self::RtpTalk,
        Self::RtpPause,
        Self::Udp,
        Self::Esp,
        Self::Ip,
        Self::UdpLite,
        Self::TcpData,
        Self::TcpAck,
        Self::CoapGet,
        Self::CoapNotify,
        Self::CoapExchange,
        Self::CoapMix,
        Self::CoapClients,
        Self::Dtls,
        Self::DtlsMix,
    ];

    /// True for profiles 0x0181 and 0x0182: they have no R-mode, and no version in RFC 5225.
    pub fn is_own(self) -> bool {
        self.is_coap() || self.is_dtls()
    }

    pub fn is_dtls(self) -> bool {
        matches!(self, Self::Dtls | Self::DtlsMix)
    }

    /// True if any field may change at any time.
    pub fn is_mix(self) -> bool {
        self.is_coap_mix() || self == Self::DtlsMix
    }

    pub fn is_coap(self) -> bool {
        matches!(self, Self::CoapGet | Self::CoapNotify) || self.is_two_way()
    }

    /// True if both ends send.
    pub fn is_two_way(self) -> bool {
        self == Self::CoapExchange || self.is_coap_mix()
    }

    /// True if all features of CoAP are in use.
    pub fn is_coap_mix(self) -> bool {
        matches!(self, Self::CoapMix | Self::CoapClients)
    }

    pub fn is_rtp(self) -> bool {
        matches!(self, Self::Rtp | Self::RtpTalk | Self::RtpPause)
    }

    pub fn is_tcp(self) -> bool {
        matches!(self, Self::TcpData | Self::TcpAck | Self::TcpChat)
    }

    /// Returns the checksums that the flow may have.
    pub fn checksums(self) -> &'static [ChecksumUse] {
        match self {
            Self::Rtp | Self::RtpTalk | Self::RtpPause | Self::Udp => {
                &[ChecksumUse::Carried, ChecksumUse::Elided]
            }
            _ if self.is_own() => &[ChecksumUse::Carried, ChecksumUse::Elided],
            _ => &[ChecksumUse::Carried],
        }
    }

    pub fn profiles(self) -> ProfileSet {
        match self {
            _ if self.is_coap() => ProfileSet::default(),
            _ if self.is_dtls() => ProfileSet::v1().with(ProfileId::Dtls).unwrap(),
            _ if self.is_tcp() => ProfileSet::v1().with(ProfileId::Tcp).unwrap(),
            _ => ProfileSet::v1(),
        }
    }

    /// Returns the integrity check with which profiles 0x0181 and 0x0182 elide the checksum.
    pub fn integrity(self, checksum: ChecksumUse) -> Integrity {
        if self.is_own() && checksum == ChecksumUse::Elided { Integrity::Crc32 } else { Integrity::None }
    }

    /// True if an inferred field is neither covered by a checksum nor follows from one that is: only the CRC then
    /// detects a wrong candidate, unless the pace or the carrier's count excludes it.
    pub fn is_unproved(self, six: bool, checksum: ChecksumUse) -> bool {
        match self {
            // TTLs of the mix change, and some of its checksums are wrong.
            Self::Esp | Self::CoapMix | Self::CoapClients | Self::DtlsMix => true,
            Self::Udp | Self::Ip | Self::UdpLite | Self::TcpData | Self::TcpAck | Self::TcpChat => !six,
            Self::Rtp | Self::RtpTalk | Self::RtpPause | Self::CoapGet | Self::CoapNotify | Self::Dtls => {
                checksum == ChecksumUse::Elided
            }
            // Message IDs are in the packet or follow from a request, which proves no number.
            Self::CoapExchange => !six || checksum == ChecksumUse::Elided,
        }
    }
}

/// The packets of a flow.
pub enum PacketSource {
    Plain { flow: TestFlow, has_pauses: bool, is_elided: bool },
    Tcp { packet: TcpPacket, kind: SourceKind, time: u32, ids: IdKind },
    Coap(coap::CoapFlow),
    Mix(coap::Mix),
    Dtls { flow: DtlsFlow, is_mixed: bool },
}

impl PacketSource {
    /// Creates a source; `stride` is that of RTP timestamps.
    pub fn new(kind: SourceKind, six: bool, checksum: ChecksumUse, stride: u32, seed: u64) -> Self {
        let mut random = SplitMix64(seed);
        let is_talk = kind == SourceKind::RtpTalk;
        let plain = |media: Option<MediaKind>, protocol| {
            let mut layer = IpLayer::new(six, 1);
            let mut random = SplitMix64(seed ^ 0x1D);
            layer.id = random.next() as u16;
            let media = media.map(|kind| {
                let mut media = Media::new(kind);
                media.stride = stride;
                media.clock = if is_talk { TimestampClock::Talkspurts } else { TimestampClock::Voice };
                media.sn = random.next() as u32;
                media.ts = random.next() as u32;
                media
            });
            let flow = TestFlow { media, protocol, payload: 20, ..TestFlow::udp(vec![layer]) };
            Self::Plain {
                flow,
                has_pauses: kind == SourceKind::RtpPause,
                is_elided: checksum == ChecksumUse::Elided,
            }
        };
        match kind {
            SourceKind::Rtp | SourceKind::RtpTalk | SourceKind::RtpPause => plain(Some(MediaKind::Rtp), 17),
            SourceKind::Udp => plain(None, 17),
            SourceKind::Esp => plain(Some(MediaKind::Esp), 50),
            SourceKind::Ip => plain(None, 47),
            SourceKind::UdpLite => plain(Some(MediaKind::UdpLite), 136),
            SourceKind::TcpData | SourceKind::TcpAck | SourceKind::TcpChat => {
                let mut packet = TcpPacket::new(vec![Outer::new(six)], 4_000);
                packet.ips[0].id = random.next() as u16;
                packet.tcp.sequence_number = random.next() as u32;
                packet.tcp.acknowledgment_number = random.next() as u32;
                Self::Tcp { packet, kind, time: 90_000, ids: IdKind::Counts }
            }
            SourceKind::CoapGet => Self::Coap(coap::CoapFlow::new(FlowName::A, six, seed)),
            SourceKind::CoapNotify => Self::Coap(coap::CoapFlow::new(FlowName::D, six, seed)),
            SourceKind::CoapExchange => Self::Coap(coap::CoapFlow::new(FlowName::HRsp, six, seed)),
            SourceKind::CoapMix => Self::Mix(coap::Mix::new(six, &mut random)),
            SourceKind::CoapClients => Self::Mix(coap::Mix::of_clients(six, &mut random)),
            SourceKind::Dtls | SourceKind::DtlsMix => {
                let mut flow = DtlsFlow::new(six);
                flow.layer.id = random.next() as u16;
                flow.number = random.below(1 << 40);
                Self::Dtls { flow, is_mixed: kind == SourceKind::DtlsMix }
            }
        }
    }

    /// Changes TTL and DSCP, which no checksum covers. False if the flow has no such changes.
    pub fn change(&mut self, random: &mut SplitMix64) -> bool {
        let (ttl, tos) = (60 + random.below(4) as u8, (random.below(3) as u8) << 2);
        match self {
            Self::Plain { flow, .. } => {
                let layer = &mut flow.layers[0];
                (layer.ttl, layer.tos) = (ttl, tos);
            }
            Self::Tcp { packet, .. } => {
                let ip = &mut packet.ips[0];
                (ip.ttl, ip.tos) = (ttl, tos);
            }
            Self::Coap(_) | Self::Mix(_) | Self::Dtls { .. } => return false,
        }
        true
    }

    /// Sets the behavior of IP-IDs. Flows of CoAP determine theirs.
    pub fn set_ids(&mut self, kind: IdKind) {
        match self {
            Self::Plain { flow, .. } => {
                let layer = &mut flow.layers[0];
                layer.id_kind = kind;
                layer.id = if kind == IdKind::Constant { 0 } else { layer.id };
            }
            Self::Tcp { ids, .. } => *ids = kind,
            Self::Dtls { flow, .. } => {
                flow.layer.id_kind = kind;
                flow.layer.id = if kind == IdKind::Constant { 0 } else { flow.layer.id };
            }
            Self::Coap(_) | Self::Mix(_) => {}
        }
    }

    /// The sender is silent for that many microseconds, and the clocks of its timestamps go on. True if [`timestamp`](Self::timestamp)
    /// shows the time.
    pub fn skip(&mut self, micros: u64) -> bool {
        match self {
            Self::Plain { flow, .. } => flow.media.as_mut().is_some_and(|media| {
                media.ts = media.ts.wrapping_add((micros / 125) as u32);
                true
            }),
            Self::Tcp { time, .. } => {
                *time = time.wrapping_add((micros / 1_000) as u32);
                false
            }
            Self::Coap(_) | Self::Mix(_) | Self::Dtls { .. } => false,
        }
    }

    /// Timestamp of RTP without its random start.
    pub fn timestamp(&self) -> Option<u32> {
        match self {
            Self::Plain { flow, .. } => flow.media.as_ref().map(|media| media.ts),
            _ => None,
        }
    }

    /// Returns the next packets, and the side that sends each.
    pub fn next(&mut self, random: &mut SplitMix64) -> Vec<(CoapSide, Vec<u8>)> {
        let packet = match self {
            Self::Coap(flow) => return flow.next(),
            Self::Mix(mix) => return vec![mix.next(random)],
            Self::Dtls { flow, is_mixed: true } => flow.mixed(random),
            Self::Dtls { flow, .. } => {
                flow.plaintext = random.below(30) as usize;
                flow.next(random)
            }
            Self::Plain { flow, has_pauses, is_elided } => {
                if *has_pauses
                    && random.once_in(50)
                    && let Some(media) = &mut flow.media
                {
                    media.ts = media.ts.wrapping_add(media.stride * (1 + random.below(100) as u32));
                }
                let mut packet = flow.carry(payload(20, random), random);
                set_checksum(&mut packet, *is_elided);
                packet
            }
            Self::Tcp { packet, kind, time, ids } => {
                let others = *kind == SourceKind::TcpChat && random.once_in(4);
                let ip = &mut packet.ips[0];
                ip.id = match *ids {
                    IdKind::Counts => ip.id.wrapping_add(1 + u16::from(others)),
                    IdKind::Swapped => ip.id.swap_bytes().wrapping_add(1).swap_bytes(),
                    IdKind::Steps(most) => ip.id.wrapping_add(1 + random.below(u64::from(most)) as u16),
                    IdKind::Random => random.next() as u16,
                    IdKind::Constant => 0,
                };
                *time += random.below(30) as u32;
                packet.options = timestamps(*time, *time - 40);
                let sent = packet.payload.len() as u32;
                packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(sent);
                let (octets, acknowledged) = match kind {
                    SourceKind::TcpAck => (0, 1_448 * (1 + random.below(2))),
                    SourceKind::TcpChat => {
                        let octets = if random.once_in(2) { 1 + random.below(300) } else { 0 };
                        (octets, if random.once_in(2) { random.below(3_000) } else { 0 })
                    }
                    _ => (100, 0),
                };
                let acknowledged = acknowledged as u32;
                packet.tcp.acknowledgment_number =
                    packet.tcp.acknowledgment_number.wrapping_add(acknowledged);
                packet.payload = payload(octets as usize, random);
                packet.octets()
            }
        };
        vec![(CoapSide::Client, packet)]
    }
}

fn payload(octets: usize, random: &mut SplitMix64) -> Vec<u8> {
    let mut payload = vec![0; octets];
    for part in payload.chunks_mut(8) {
        part.copy_from_slice(&random.next().to_be_bytes()[..part.len()]);
    }
    payload
}

/// Writes the checksum of UDP or UDP-Lite (with full coverage) behind one IP header, if the packet has it.
fn set_checksum(packet: &mut [u8], is_elided: bool) {
    let (protocol, addresses, at) =
        if packet[0] >> 4 == 4 { (packet[9], 12..20, 20) } else { (packet[6], 8..40, 40) };
    if protocol != 17 && protocol != 136 {
        return;
    }
    packet[at + 6..at + 8].fill(0);
    if protocol == 17 && is_elided {
        return;
    }
    let sum = Sum::ZERO.octets(&packet[addresses]).word(u16::from(protocol));
    let sum = match sum.word((packet.len() - at) as u16).octets(&packet[at..]).checksum() {
        0 => 0xFFFF,
        sum => sum,
    };
    packet[at + 6..at + 8].copy_from_slice(&sum.to_be_bytes());
}
