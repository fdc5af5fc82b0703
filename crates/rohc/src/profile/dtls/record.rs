//! Packets of the profile: one IP header without options, UDP with a right checksum or none, and records. Section 2 of
//! `docs/dtls-profile.md`.

use thinair_wire::header::chain::{HeaderChain, IpHeader};
use thinair_wire::header::dtls::{MOST_CID, Record};
use thinair_wire::header::udp::Udp;

use super::NONCE;
use super::state::{DtlsPath, RecordShape};

/// The headers of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DtlsPacket<'p> {
    pub(super) octets: &'p [u8],
    /// Addresses, ports and the dynamic part of the IP header.
    pub(super) path: DtlsPath,
    pub(super) ip_id: u16,
    pub(super) checksum: u16,
    pub(super) record: Record<'p>,
}

impl<'p> DtlsPacket<'p> {
    /// Returns the path of a packet, its IP-ID and its UDP checksum; `None` if it is no datagram, or its headers cannot be rebuilt.
    #[inline(always)]
    pub(super) fn path(chain: &HeaderChain<'_>) -> Option<(DtlsPath, u16, u16)> {
        let ([ip], Some(udp)) = (chain.ips(), chain.udp()) else { return None };
        let is_right = usize::from(udp.length) == chain.packet().len() - ip.end();
        if ip.oddity.is_some() || ip.extension_count > 0 || !is_right {
            return None;
        }
        let mut path = DtlsPath::default();
        (path.source_port, path.destination_port) = (udp.source_port, udp.destination_port);
        let mut ip_id = 0;
        match ip.header() {
            IpHeader::V4(header) => {
                (path.tos, path.ttl, path.df) = (header.tos, header.ttl, header.df);
                path.source[..4].copy_from_slice(&header.source);
                path.destination[..4].copy_from_slice(&header.destination);
                ip_id = header.identification;
            }
            IpHeader::V6(header) => {
                path.v6 = true;
                (path.tos, path.ttl) = (header.traffic_class, header.hop_limit);
                path.flow_label = header.flow_label;
                (path.source, path.destination) = (header.source, header.destination);
            }
        }
        Some((path, ip_id, udp.checksum))
    }

    /// The datagram of a packet.
    #[inline(always)]
    pub(super) fn datagram(chain: &HeaderChain<'p>) -> Option<&'p [u8]> {
        chain.packet().get(chain.ip_end() + Udp::LEN..)
    }

    /// The shape of the record, with a nonce or without.
    pub(super) fn shape(&self, has_nonce: bool) -> RecordShape {
        let mut cid = [0; MOST_CID];
        cid.iter_mut().zip(self.record.cid).for_each(|(place, octet)| *place = *octet);
        RecordShape { kind: self.record.kind, cid, has_nonce }
    }

    /// The octets that are a nonce if the record has one: those in front of a ciphertext that is not empty.
    pub(super) fn nonce(&self) -> Option<[u8; NONCE]> {
        let may = !self.record.kind.is_unified() && self.record.epoch > 0;
        let (nonce, ciphertext) = self.record.fragment.split_first_chunk()?;
        (may && !ciphertext.is_empty()).then_some(*nonce)
    }
}
