//! 6LoWPAN in the best case: the prefixes of the capture are contexts, and interface identifiers are derived
//! from link addresses, which the frame contains.

use std::rc::Rc;

use thinair_lowpan::{LinkAddress, Links, Settings, UdpChecksum, compress, decompress};
use thinair_rohc::Instant;
use thinair_wire::header::ipv6::Ipv6;

use super::{Carrier, Compressed, Label, Refusal};
use crate::settings;
use crate::sides::Side;
use crate::survey::Provision;

/// Both sides, which have equal contexts and no state.
#[derive(Debug)]
pub(super) struct Lowpan {
    settings: Settings,
    /// Addresses of the frame in transit.
    links: Links,
}

impl Lowpan {
    pub(super) fn new(settings: &settings::Settings, provision: &Rc<Provision>) -> Self {
        let udp_checksum =
            if settings.elides_checksums() { UdpChecksum::Elided } else { UdpChecksum::InLine };
        let settings = Settings { contexts: provision.contexts, udp_checksum };
        Self { settings, links: Links::default() }
    }
}

impl Carrier for Lowpan {
    fn compress(
        &mut self,
        _now: Instant,
        _from: Side,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Option<Compressed>, Refusal> {
        let Ok(header) = Ipv6::read(packet) else { return Ok(None) };
        self.links =
            Links { source: link_address(&header.source), destination: link_address(&header.destination) };
        let done = compress(&self.settings, self.links, packet, out);
        let done = done.map_err(|error| Refusal::new("6lowpan", error))?;
        let format = if done.header_in == 0 { Label::Ipv6 } else { Label::Iphc };
        Ok(Some(Compressed {
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
        _from: Side,
        sent: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Refusal> {
        let done = decompress(&self.settings, self.links, sent, out);
        done.map(|done| done.len).map_err(|error| Refusal::new("6lowpan", error))
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
