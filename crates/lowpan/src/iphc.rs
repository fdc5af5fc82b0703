//! LOWPAN_IPHC: the IPv6 header. RFC 6282, section 3.

use thinair_wire::coder::{Coder, Step};
use thinair_wire::header::ipv6::Ipv6;

use crate::address::{Address, AddressFault, Role};
use crate::context::Contexts;
use crate::link::Encapsulation;

/// Every field of a LOWPAN_IPHC header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Iphc {
    /// TF: which of Traffic Class and Flow Label are in-line.
    pub(crate) tf: u8,
    /// NH: Next Header is elided, and LOWPAN_NHC follows.
    pub(crate) nh: bool,
    /// HLIM: 0 for a Hop Limit in-line.
    pub(crate) hlim: u8,
    /// CID: true if SCI and DCI are present.
    pub(crate) cid: bool,
    pub(crate) ecn: u8,
    pub(crate) dscp: u8,
    pub(crate) flow_label: u32,
    pub(crate) next_header: u8,
    pub(crate) hop_limit: u8,
    pub(crate) source: Address,
    pub(crate) destination: Address,
}

/// `LOWPAN_IPHC`: dispatch, base encoding, CID extension, fields in-line. RFC 6282, sections 3.1 and 3.2.
#[inline]
pub(crate) fn lowpan_iphc<'p, C: Coder<'p>>(c: &mut C, h: &mut Iphc) -> Step {
    c.discriminator(3, 0b011)?;
    c.uint("TF", 2, &mut h.tf)?;
    let nh = c.flag("NH", &mut h.nh)?;
    c.uint("HLIM", 2, &mut h.hlim)?;
    let cid = c.flag("CID", &mut h.cid)?;
    c.flag("SAC", &mut h.source.stateful)?;
    c.uint("SAM", 2, &mut h.source.mode)?;
    c.flag("M", &mut h.destination.multicast)?;
    c.flag("DAC", &mut h.destination.stateful)?;
    c.uint("DAM", 2, &mut h.destination.mode)?;
    if cid {
        c.uint("SCI", 4, &mut h.source.context)?;
        c.uint("DCI", 4, &mut h.destination.context)?;
    }
    // ECN is first, so that it has the same place in all forms (section 3.2.1).
    match h.tf {
        0b00 => {
            c.uint("ECN", 2, &mut h.ecn)?;
            c.uint("DSCP", 6, &mut h.dscp)?;
            c.reserved(4)?;
            c.uint("Flow Label", 20, &mut h.flow_label)?;
        }
        0b01 => {
            c.uint("ECN", 2, &mut h.ecn)?;
            c.reserved(2)?;
            c.uint("Flow Label", 20, &mut h.flow_label)?;
        }
        0b10 => {
            c.uint("ECN", 2, &mut h.ecn)?;
            c.uint("DSCP", 6, &mut h.dscp)?;
        }
        _ => {}
    }
    if !nh {
        c.uint("Next Header", 8, &mut h.next_header)?;
    }
    match h.hlim {
        0b00 => c.uint("Hop Limit", 8, &mut h.hop_limit)?,
        0b01 => h.hop_limit = 1,
        0b10 => h.hop_limit = 64,
        _ => h.hop_limit = 255,
    }
    h.source.code(c, Role::Source)?;
    h.destination.code(c, Role::Destination)
}

impl Iphc {
    /// Compresses `header` into the fewest octets; `nh` if LOWPAN_NHC follows.
    ///
    /// Payload Length is not sent: it follows from the length of the packet.
    pub(crate) fn compress(
        header: &Ipv6,
        nh: bool,
        contexts: &Contexts,
        encapsulation: Encapsulation,
    ) -> Self {
        let (dscp, ecn) = (header.traffic_class >> 2, header.traffic_class & 0b11);
        let tf = match (header.flow_label, dscp, ecn) {
            (0, 0, 0) => 0b11,
            (0, ..) => 0b10,
            (_, 0, _) => 0b01,
            _ => 0b00,
        };
        let hlim = match header.hop_limit {
            1 => 0b01,
            64 => 0b10,
            255 => 0b11,
            _ => 0b00,
        };
        let source = Address::compress(Role::Source, &header.source, contexts, encapsulation.source);
        let destination =
            Address::compress(Role::Destination, &header.destination, contexts, encapsulation.destination);
        Self {
            tf,
            nh,
            hlim,
            cid: source.context != 0 || destination.context != 0,
            ecn,
            dscp,
            flow_label: header.flow_label,
            next_header: header.next_header,
            hop_limit: header.hop_limit,
            source,
            destination,
        }
    }

    /// Restores the IPv6 header, except Payload Length and an elided Next Header, which are 0.
    pub(crate) fn expand(
        &self,
        contexts: &Contexts,
        encapsulation: Encapsulation,
    ) -> Result<Ipv6, (Role, AddressFault)> {
        Ok(Ipv6 {
            traffic_class: self.dscp << 2 | self.ecn,
            flow_label: self.flow_label,
            payload_length: 0,
            next_header: self.next_header,
            hop_limit: self.hop_limit,
            source: self
                .source
                .expand(Role::Source, contexts, encapsulation.source)
                .map_err(|fault| (Role::Source, fault))?,
            destination: self
                .destination
                .expand(Role::Destination, contexts, encapsulation.destination)
                .map_err(|fault| (Role::Destination, fault))?,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use thinair_wire::coder::Describer;

    /// Bits of an address in-line, typed off the tables of section 3.1.1: by M, SAC or DAC, and mode.
    fn bits(role: Role, m: u32, stateful: u32, mode: u8) -> Option<u32> {
        let row = match (m, stateful, role) {
            (0, 0, _) => [Some(128), Some(64), Some(16), Some(0)],
            (0, 1, Role::Source) => [Some(0), Some(64), Some(16), Some(0)],
            (0, 1, Role::Destination) => [None, Some(64), Some(16), Some(0)],
            (1, 0, _) => [Some(128), Some(48), Some(32), Some(8)],
            _ => [Some(48), None, None, None],
        };
        row[usize::from(mode)]
    }

    #[test]
    fn every_combination_of_the_base_format_has_the_widths_of_the_rfc() {
        let mut seen = 0;
        for choices in 0..32 {
            // In the order of bits: NH, CID, SAC, M, DAC.
            let [nh, cid, sac, m, dac] = [0, 1, 2, 3, 4].map(|bit| choices >> bit & 1);
            for modes in 0..=255_u8 {
                let [tf, hlim, sam, dam] = [6, 4, 2, 0].map(|shift| modes >> shift & 0b11);
                let mut h = Iphc { tf, hlim, ..Iphc::default() };
                h.source.mode = sam;
                h.destination.mode = dam;
                let mut describer = Describer::<24>::new(choices);
                let done = lowpan_iphc(&mut describer, &mut h);
                let source = bits(Role::Source, 0, sac, sam);
                let (Some(source), Some(destination)) = (source, bits(Role::Destination, m, dac, dam)) else {
                    assert!(done.is_err(), "{choices:05b} {modes:08b}");
                    continue;
                };
                done.unwrap();
                let expected = 16
                    + cid * 8
                    + [32, 24, 8, 0][usize::from(tf)]
                    + (1 - nh) * 8
                    + if hlim == 0 { 8 } else { 0 }
                    + source
                    + destination;
                assert_eq!(describer.bits(), expected, "{choices:05b} {modes:08b}");
                seen += 1;
            }
        }
        // Of 16 destinations, M and DAC and DAM, 4 are reserved.
        assert_eq!(seen, 32 * 256 * 12 / 16);
    }

    /// Figure 2, and the order in-line, which is that of the IPv6 header.
    #[test]
    fn the_fields_stand_in_the_order_of_the_figures() {
        let mut describer = Describer::<24>::new(0b00010);
        lowpan_iphc(&mut describer, &mut Iphc::default()).unwrap();
        let fields: std::vec::Vec<_> =
            describer.fields().iter().map(|field| (field.name, field.bits)).collect();
        let expected = [
            ("", 3),
            ("TF", 2),
            ("NH", 1),
            ("HLIM", 2),
            ("CID", 1),
            ("SAC", 1),
            ("SAM", 2),
            ("M", 1),
            ("DAC", 1),
            ("DAM", 2),
            ("SCI", 4),
            ("DCI", 4),
            ("ECN", 2),
            ("DSCP", 6),
            ("reserved", 4),
            ("Flow Label", 20),
            ("Next Header", 8),
            ("Hop Limit", 8),
            ("Source Address", 128),
            ("Destination Address", 128),
        ];
        assert_eq!(fields, expected);
        assert_eq!(describer.fields()[0].pattern, 0b011);
    }
}
