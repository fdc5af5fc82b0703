//! What most packets show at a glance: one IP header without options and extension headers, and UDP.
//!
//! A flow that has settled is recognised and compressed from that; every other packet is parsed in full. Both
//! ways end in the same formats, and a test holds their octets against each other.

use thinair_wire::checksum::checksum;
use thinair_wire::header::protocol;

use super::classify::Key;
use crate::profile::ProfileId;

/// The headers of a packet of the usual shape.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Glance<'p> {
    /// IPv4 and UDP.
    V4(&'p [u8; 28]),
    /// IPv6 and UDP.
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
                let plain = h[6] & 0b1011_1111 == 0 && h[7] == 0 && h[9] == protocol::UDP;
                let right = word(h[2], h[3]) == packet.len()
                    && word(h[24], h[25]) == packet.len() - 20
                    && checksum(ip) == 0
                    && [h[10], h[11]] != [0xFF, 0xFF];
                (plain && right).then_some(Self::V4(h))
            }
            0x60..=0x6F => {
                let h = packet.first_chunk::<48>()?;
                let right = word(h[4], h[5]) == packet.len() - 40 && word(h[44], h[45]) == packet.len() - 40;
                (h[6] == protocol::UDP && right).then_some(Self::V6(h))
            }
            _ => None,
        }
    }

    /// The octets of the headers.
    #[inline]
    pub(crate) fn octets(&self) -> &'p [u8] {
        match self {
            Self::V4(h) => *h,
            Self::V6(h) => *h,
        }
    }
}

impl Key for Glance<'_> {
    #[inline]
    fn key(&self, mut word: impl FnMut(u64)) {
        let ports = match self {
            Self::V4(h) => {
                word(u64::from_be_bytes([h[12], h[13], h[14], h[15], h[16], h[17], h[18], h[19]]));
                u32::from_be_bytes([h[20], h[21], h[22], h[23]])
            }
            Self::V6(h) => {
                for at in [8, 16, 24, 32] {
                    word(h[at..at + 8].try_into().map_or(0, u64::from_ne_bytes));
                }
                u32::from_be_bytes([h[40], h[41], h[42], h[43]])
            }
        };
        word(u64::from(ports) << 16 | u64::from(protocol::UDP) << 8 | ProfileId::Udp as u64);
    }
}
