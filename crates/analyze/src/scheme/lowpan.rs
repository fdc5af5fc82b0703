//! 6LoWPAN in the best case: the prefixes of the capture are contexts, and interface identifiers are derived
//! from link addresses, which the frame contains.

use std::sync::Arc;

use thinair_lowpan::{LinkAddress, Links, LowpanSettings, UdpChecksum, compress, decompress};
use thinair_rohc::Instant;
use thinair_wire::header::ipv6::Ipv6;

use super::{CompressedPacket, FormatLabel, Rejection, SchemeEnds};
use crate::settings;
use crate::sides::CaptureSide;
use crate::survey::SurveyedInput;

/// Both sides, which have equal contexts and no state.
#[derive(Debug)]
pub(super) struct Lowpan {
    settings: LowpanSettings,
    /// Addresses of the frame in transit.
    links: Links,
}

impl Lowpan {
    pub(super) fn new(settings: &settings::Settings, surveyed: &Arc<SurveyedInput>) -> Self {
        let udp_checksum =
            if settings.elides_checksums() { UdpChecksum::Elided } else { UdpChecksum::InLine };
        let settings = LowpanSettings { contexts: surveyed.contexts, udp_checksum };
        Self { settings, links: Links::default() }
    }
}

impl SchemeEnds for Lowpan {
    fn compress(
        &mut self,
        _now: Instant,
        _from: CaptureSide,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Option<CompressedPacket>, Rejection> {
        let Ok(header) = Ipv6::read(packet) else { return Ok(None) };
        self.links =
            Links { source: link_address(&header.source), destination: link_address(&header.destination) };
        let done = compress(&self.settings, self.links, packet, out);
        let done = done.map_err(|error| Rejection::new("6lowpan", error))?;
        let format = if done.header_in == 0 { FormatLabel::Ipv6 } else { FormatLabel::Iphc };
        Ok(Some(CompressedPacket {
            format,
            profile: None,
            header_in: done.header_in,
            header_out: done.header_out,
            len: done.len,
            cid_len: 0,
            refresh: false,
        }))
    }

    fn decompress(
        &mut self,
        _now: Instant,
        _from: CaptureSide,
        sent: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Rejection> {
        let done = decompress(&self.settings, self.links, sent, out);
        done.map(|done| done.len).map_err(|error| Rejection::new("6lowpan", error))
    }
}

/// Returns the link address from which the interface identifier of an address is derived (RFC 6282, section
/// 3.2.2).
fn link_address(address: &[u8; 16]) -> LinkAddress {
    match *address {
        [0xFF, ..] => LinkAddress::None,
        [_, _, _, _, _, _, _, _, ref iid @ ..] => LinkAddress::of_iid(*iid),
    }
}
