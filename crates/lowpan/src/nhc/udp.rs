//! LOWPAN_NHC of the UDP header. RFC 6282, section 4.3.

use thinair_wire::checksum::Sum;
use thinair_wire::coder::{Coder, Step};
use thinair_wire::header::protocol;
use thinair_wire::header::udp::Udp;

/// A UDP header, compressed. Ports are complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UdpNhc {
    /// C: true if the checksum is elided.
    pub(crate) c: bool,
    /// P: number of bits of the ports in-line, as encoded.
    pub(crate) p: u8,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) checksum: u16,
}

/// `LOWPAN_NHC`, UDP header: C, P, ports, checksum. RFC 6282, section 4.3.3.
#[inline]
pub(crate) fn udp<'p, C: Coder<'p>>(c: &mut C, h: &mut UdpNhc) -> Step {
    c.discriminator(5, 0b11110)?;
    let is_elided = c.flag("C", &mut h.c)?;
    c.uint("P", 2, &mut h.p)?;
    let (source, destination) = match h.p {
        0b00 => (16, 16),
        0b01 => (16, 8),
        0b10 => (8, 16),
        _ => (4, 4),
    };
    port(c, "Source Port", source, &mut h.source_port)?;
    port(c, "Destination Port", destination, &mut h.destination_port)?;
    if !is_elided {
        c.uint("Checksum", 16, &mut h.checksum)?;
    }
    Ok(())
}

/// Codes the low `width` bits of a port; the bits above are those of 0xF0B0.
#[inline(always)]
fn port<'p, C: Coder<'p>>(c: &mut C, name: &'static str, width: u32, port: &mut u16) -> Step {
    c.uint(name, width, port)?;
    let low = 0xFFFF_u16 >> (16 - width);
    *port = 0xF0B0 & !low | *port & low;
    Ok(())
}

impl UdpNhc {
    /// Compresses `header` into the fewest octets; `c` if its checksum may be elided.
    ///
    /// Length is not sent: it follows from the length of the packet.
    pub(crate) fn compress(header: &Udp, c: bool) -> Self {
        let has_low = |port: u16, bits: u32| port >> bits == 0xF0B0 >> bits;
        let (source, destination) = (header.source_port, header.destination_port);
        let p = if has_low(source, 4) && has_low(destination, 4) {
            0b11
        } else if has_low(destination, 8) {
            0b01
        } else if has_low(source, 8) {
            0b10
        } else {
            0b00
        };
        Self { c, p, source_port: source, destination_port: destination, checksum: header.checksum }
    }
}

/// Returns the checksum of a UDP datagram over IPv6, independent of its Checksum field. RFC 8200, section
/// 8.1.
///
/// Never 0, which would mean that there is none.
pub(crate) fn checksum(source: &[u8; 16], destination: &[u8; 16], datagram: &[u8]) -> u16 {
    let (before, behind) = datagram.split_at_checked(Udp::LEN - 2).unwrap_or((datagram, &[]));
    let sum = Sum::ZERO
        .octets(source)
        .octets(destination)
        .word(datagram.len() as u16)
        .word(u16::from(protocol::UDP))
        .octets(before)
        .octets(behind.get(2..).unwrap_or_default());
    match sum.checksum() {
        0 => 0xFFFF,
        checksum => checksum,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use thinair_wire::coder::Describer;

    /// Section 4.3.3.
    #[test]
    fn every_form_has_the_widths_of_the_rfc() {
        for (p, ports) in [(0b00, [16, 16]), (0b01, [16, 8]), (0b10, [8, 16]), (0b11, [4, 4])] {
            for (c, checksum) in [(0, 16), (1, 0)] {
                let mut describer = Describer::<6>::new(c);
                udp(&mut describer, &mut UdpNhc { p, ..UdpNhc::default() }).unwrap();
                assert_eq!(describer.fields()[0].pattern, 0b11110);
                let widths: std::vec::Vec<_> = describer.fields().iter().map(|field| field.bits).collect();
                assert_eq!(widths[..5], [5, 1, 2, ports[0], ports[1]]);
                assert_eq!(widths[5..].iter().sum::<u32>(), checksum);
            }
        }
    }
}
