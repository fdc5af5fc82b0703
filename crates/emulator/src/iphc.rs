//! LOWPAN_IPHC and LOWPAN_NHC at both ends of the link (RFC 6282): stateless compression of IPv6 packets. Both ends know
//! each other's link address, from which interface identifiers are derived, and the prefix.

use std::net::IpAddr;

use thinair_link::Side;
use thinair_lowpan::{
    CompressError, CompressedPacket, Contexts, DecompressError, LinkAddress, Links, LowpanContext,
    LowpanSettings, UdpChecksum, compress, decompress,
};

use super::addresses;

/// Compression and decompression at both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Iphc {
    settings: LowpanSettings,
    /// Link addresses of a frame from each side.
    links: [Links; 2],
}

impl Iphc {
    /// Creates the codec for hosts with the addresses of [`addresses`].
    pub(super) fn new() -> Self {
        let mut contexts = Contexts::NONE;
        let link = Side::ALL.map(|side| {
            let [_, (address, length)] = addresses(side);
            let IpAddr::V6(address) = address else { return LinkAddress::None };
            let [prefix @ .., a, b, c, d, e, f, g, h] = address.octets();
            let mut octets = [0; 16];
            octets[..prefix.len()].copy_from_slice(&prefix);
            let context = LowpanContext::new(octets, length).and_then(|context| contexts.with(0, context));
            contexts = context.unwrap_or(contexts);
            LinkAddress::of_iid([a, b, c, d, e, f, g, h])
        });
        let [a, b] = link;
        let links = [Links { source: a, destination: b }, Links { source: b, destination: a }];
        Self { settings: LowpanSettings { contexts, udp_checksum: UdpChecksum::InLine }, links }
    }

    /// Compresses a packet of a side. `room` is a scratch buffer.
    pub(super) fn compress(
        &self,
        from: Side,
        packet: &[u8],
        room: &mut [u8],
    ) -> Result<(CompressedPacket, Vec<u8>), &'static str> {
        match compress(&self.settings, self.links[from as usize], packet, room) {
            Ok(done) => Ok((done, room.get(..done.len).unwrap_or_default().to_vec())),
            Err(CompressError::NotIpv6) => Err("not_ipv6"),
            Err(CompressError::OutputTooSmall { .. }) => Err("output_too_small"),
        }
    }

    /// Decompresses a packet from a side into an IPv6 packet.
    pub(super) fn decompress(
        &self,
        from: Side,
        octets: &[u8],
        room: &mut [u8],
    ) -> Result<Vec<u8>, &'static str> {
        match decompress(&self.settings, self.links[from as usize], octets, room) {
            Ok(done) => Ok(room.get(..done.len).unwrap_or_default().to_vec()),
            Err(DecompressError::OutputTooSmall { .. } | DecompressError::TooLong) => Err("output_too_small"),
            Err(_) => Err("malformed"),
        }
    }
}
