//! What most packets show at a glance: one IP header without options and extension headers, and UDP or ESP.
//!
//! A flow that has settled is recognised and compressed from that; every other packet is parsed in full. Both
//! ways end in the same formats, and a test holds their octets against each other.

use thinair_wire::checksum::checksum;
use thinair_wire::header::protocol;

use super::classify::Key;
use crate::profile::ProfileId;
use crate::profile::rfc3095::rtp;

/// The headers of a packet of the usual shape.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Glance<'p> {
    /// IPv4, and UDP or ESP.
    V4(&'p [u8; 28]),
    /// IPv6, and UDP or ESP.
    V6(&'p [u8; 48]),
}

impl<'p> Glance<'p> {
    /// The headers of `packet`, if it has this shape and they can be rebuilt from its length.
    #[inline]
    pub(super) fn of(packet: &'p [u8]) -> Option<Self> {
        let word = |a: u8, b: u8| usize::from(u16::from_be_bytes([a, b]));
        match packet.first()? {
            0x45 => {
                let h = packet.first_chunk::<28>()?;
                let (ip, _) = h.split_at(20);
                // Neither the reserved flag, MF nor a Fragment Offset.
                let plain = h[6] & 0b1011_1111 == 0 && h[7] == 0;
                let right = word(h[2], h[3]) == packet.len()
                    && (h[9] == protocol::ESP
                        || h[9] == protocol::UDP && word(h[24], h[25]) == packet.len() - 20)
                    && checksum(ip) == 0
                    && [h[10], h[11]] != [0xFF, 0xFF];
                (plain && right).then_some(Self::V4(h))
            }
            0x60..=0x6F => {
                let h = packet.first_chunk::<48>()?;
                let right = word(h[4], h[5]) == packet.len() - 40
                    && (h[6] == protocol::ESP
                        || h[6] == protocol::UDP && word(h[44], h[45]) == packet.len() - 40);
                right.then_some(Self::V6(h))
            }
            _ => None,
        }
    }

    /// Whether it is UDP, and not ESP.
    #[inline]
    pub(super) fn is_udp(&self) -> bool {
        let next = match self {
            Self::V4(h) => h[9],
            Self::V6(h) => h[6],
        };
        next == protocol::UDP
    }

    /// The octets of the headers.
    #[inline]
    pub(crate) fn octets(&self) -> &'p [u8] {
        match self {
            Self::V4(h) => *h,
            Self::V6(h) => *h,
        }
    }

    /// The UDP or ESP header, in its two halves.
    #[inline]
    pub(crate) fn upper(&self) -> [u32; 2] {
        let [.., a, b, c, d, e, f, g, h] = *self.octets() else { return [0; 2] };
        [u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])]
    }
}

/// A packet at a glance, as one of a flow of a profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight<'p> {
    pub(crate) glance: Glance<'p>,
    pub(crate) above: Above<'p>,
}

/// What a profile takes the packet for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Above<'p> {
    Udp,
    Rtp(rtp::Header<'p>),
    Esp,
}

impl Sight<'_> {
    /// The profile.
    #[inline]
    pub(crate) fn profile(&self) -> ProfileId {
        match self.above {
            Above::Udp => ProfileId::Udp,
            Above::Rtp(_) => ProfileId::Rtp,
            Above::Esp => ProfileId::Esp,
        }
    }

    /// Octets of the headers.
    #[inline]
    pub(crate) fn header_len(&self) -> usize {
        let rtp = match &self.above {
            Above::Rtp(header) => header.len(),
            Above::Udp | Above::Esp => 0,
        };
        self.glance.octets().len() + rtp
    }
}

/// The same as of a `Plan`, so that both ways find the same flow.
impl Key for Sight<'_> {
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        match self.glance {
            Glance::V4(h) => {
                word(u64::from_be_bytes([h[12], h[13], h[14], h[15], h[16], h[17], h[18], h[19]]));
            }
            Glance::V6(h) => {
                let half = |at: usize| h[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
                let label = u32::from_be_bytes([h[0], h[1], h[2], h[3]]) & 0xF_FFFF;
                word(half(8) ^ u64::from(label));
                for at in [16, 24, 32] {
                    word(half(at));
                }
            }
        }
        let [first, _] = self.glance.upper();
        let (ports, next) = match self.above {
            Above::Udp | Above::Rtp(_) => (first, protocol::UDP),
            Above::Esp => (0, protocol::ESP),
        };
        word(u64::from(ports) << 16 | u64::from(next) << 8 | self.profile() as u64);
        match &self.above {
            Above::Udp => {}
            Above::Rtp(header) => word(header.fields.ssrc.into()),
            Above::Esp => word(first.into()),
        }
    }
}
