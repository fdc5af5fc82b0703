//! Packets of the profile: one IP header without options, UDP, and a CoAP message. Section 2 of `docs/coap-profile.md`.

use thinair_wire::coder::Word;
use thinair_wire::header::chain::{HeaderChain, IpHeader};
use thinair_wire::header::coap::{Coap, CoapOptions, CoapOptionsEnd, Code, PAYLOAD_MARKER, Type};
use thinair_wire::header::udp::Udp;

use super::HeaderFields;
use super::outline::{HoleKind, Holes, option_at, uint_len};
use super::state::{CoapPath, CoapToken, FlowLabel, PortMode, Template};
use crate::compressor::Ports;

/// Limit from which on Partial IVs do not count, since no packet could carry them.
const MOST_NUMBER: u32 = 0x1FFF_FFFF;

/// The headers of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoapMessage<'p> {
    pub(crate) packet: &'p [u8],
    /// Addresses, ports and the dynamic part of the IP header.
    pub(crate) path: CoapPath,
    /// IP-ID, or the folded flow label.
    pub(super) ip_id: u16,
    pub(super) checksum: u16,
    /// Index of the first octet of the CoAP header.
    pub(super) coap_at: usize,
    pub(super) message_type: Type,
    pub(super) code: Code,
    pub(super) message_id: u16,
    pub(super) token: CoapToken,
    /// Options, Payload Marker and payload.
    pub(super) rest: &'p [u8],
    /// None of the ports is in the list: a strict parse shows that it is CoAP.
    pub(crate) by_parse: bool,
}

impl<'p> CoapMessage<'p> {
    /// A packet that is not read yet.
    #[inline(always)]
    pub(crate) fn new(packet: &'p [u8]) -> Self {
        Self {
            packet,
            path: CoapPath::default(),
            ip_id: 0,
            checksum: 0,
            coap_at: 0,
            message_type: Type::Confirmable,
            code: Code::EMPTY,
            message_id: 0,
            token: CoapToken::EMPTY,
            rest: &[],
            by_parse: false,
        }
    }

    /// Reads the fields of one IP header and UDP. `None` if it is another packet, or cannot be rebuilt.
    #[inline(always)]
    pub(crate) fn read_path(&mut self, chain: &HeaderChain<'_>) -> Option<()> {
        let ([ip], Some(udp)) = (chain.ips(), chain.udp()) else { return None };
        let is_right = usize::from(udp.length) == chain.packet().len() - ip.end();
        if ip.oddity.is_some() || ip.extension_count > 0 || !is_right {
            return None;
        }
        let path = &mut self.path;
        (path.source_port, path.destination_port) = (udp.source_port, udp.destination_port);
        self.checksum = udp.checksum;
        match ip.header() {
            IpHeader::V4(header) => {
                (path.tos, path.ttl, path.df) = (header.tos, header.ttl, header.df);
                path.source[..4].copy_from_slice(&header.source);
                path.destination[..4].copy_from_slice(&header.destination);
                self.ip_id = header.identification;
            }
            IpHeader::V6(header) => {
                path.v6 = true;
                (path.tos, path.ttl) = (header.traffic_class, header.hop_limit);
                path.flow_label = FlowLabel::from_u32(header.flow_label);
                self.ip_id = path.flow_label.folded();
                (path.source, path.destination) = (header.source, header.destination);
            }
        }
        Some(())
    }

    /// Reads the message behind the path; `None` if there is none.
    #[inline(always)]
    pub(crate) fn read(&mut self, chain: &HeaderChain<'p>, ports: &Ports) -> Option<()> {
        self.coap_at = chain.ip_end() + Udp::LEN;
        let coap = self.packet.get(self.coap_at..)?;
        let &[first, code, high, low, ref behind @ ..] = coap else { return None };
        let tkl = first & 0x0F;
        if first >> 6 != 1 || tkl > 8 {
            return None;
        }
        (self.token, self.rest) = CoapToken::at_start_of(behind, tkl)?;
        self.message_type = Word::from_u32(u32::from(first >> 4));
        self.code = Code(code);
        self.message_id = u16::from_be_bytes([high, low]);
        let is_listed = [self.path.source_port, self.path.destination_port].map(|port| ports.has(port));
        self.by_parse = is_listed == [false; 2];
        self.path.port_mode = PortMode::of_servers(is_listed);
        let is_coap = !self.by_parse
            || is_strictly_coap(self.message_type, self.code, self.rest, coap.len() - Coap::LEN);
        is_coap.then_some(())
    }

    /// Returns the payload if a template has the shape of this message except for its type and token. Sets the values of
    /// its holes.
    #[inline(always)]
    pub(super) fn matches(
        &self,
        template: &Template,
        outline: &[u8],
        x: &mut HeaderFields<'p>,
    ) -> Option<&'p [u8]> {
        if template.code != self.code {
            return None;
        }
        if !template.has_token_of(self.token.len) {
            return None;
        }
        payload(if template.is_plain() {
            self.rest.strip_prefix(outline)?
        } else {
            fill(x, self.rest, outline, template.holes)?
        })
    }

    /// The CoAP header and the payload.
    #[inline]
    pub(super) fn coap(&self) -> &'p [u8] {
        self.packet.get(self.coap_at..).unwrap_or_default()
    }
}

/// True if a message on an unknown port is certainly CoAP: a known class of code, an Empty message without more octets,
/// and options up to the end or a payload.
fn is_strictly_coap(message_type: Type, code: Code, rest: &[u8], behind: usize) -> bool {
    let fits = match code.class() {
        0 if code == Code::EMPTY => behind == 0,
        0 => Template::is_own(message_type) && code.detail() <= 7,
        2 | 4 | 5 => message_type != Type::Reset,
        _ => false,
    };
    fits && matches!(
        CoapOptions::new(rest).into_end(),
        CoapOptionsEnd::Payload(_) | CoapOptionsEnd::NoPayload
    )
}

/// Returns the octets behind the options, if the options end here.
#[inline]
pub(super) fn payload(behind: &[u8]) -> Option<&[u8]> {
    match behind {
        [] => Some(behind),
        [PAYLOAD_MARKER, payload @ ..] if !payload.is_empty() => Some(payload),
        _ => None,
    }
}

/// Reads options and outline side by side, and returns the octets behind them.
fn fill<'p>(x: &mut HeaderFields<'p>, mut rest: &'p [u8], outline: &[u8], holes: u8) -> Option<&'p [u8]> {
    x.holes = Holes::of(outline, holes);
    let mut done = 0;
    for ((hole, number), octets) in x.holes.as_slice().iter().zip(&mut x.numbers).zip(&mut x.octets) {
        let (at, end) = hole.place();
        rest = rest.strip_prefix(outline.get(done..at)?)?;
        done = end;
        let (delta, parameters) = hole.option(outline)?;
        // No option starts with the marker, and none is empty.
        if *rest.first()? == PAYLOAD_MARKER {
            return None;
        }
        let (its_delta, value, behind) = option_at(rest)?;
        if its_delta != delta {
            return None;
        }
        rest = behind;
        match hole.kind {
            HoleKind::Counted | HoleKind::Lsb | HoleKind::Step(_) => {
                *number = uint(value, if hole.is_observe { 3 } else { 4 })?;
            }
            HoleKind::Block | HoleKind::BlockOfRequest => {
                let block = uint(value, 3)?;
                (block & 0x0F == u32::from(*parameters.first()?)).then_some(())?;
                *number = block >> 4;
            }
            HoleKind::PartialIv => {
                let piv = partial_iv(value)?;
                ((&piv.flags, piv.behind) == parameters.split_first()?).then_some(())?;
                *number = piv.number;
            }
            HoleKind::Octets(len) => {
                *octets = value.strip_prefix(parameters.get(1..)?)?;
                (octets.len() == usize::from(len)).then_some(())?;
            }
            HoleKind::Variable if value.len() <= 255 => *octets = value,
            HoleKind::Variable => return None,
        }
    }
    rest.strip_prefix(outline.get(done..)?)
}

/// Returns a uint in its shortest form, of at most `most` octets.
#[inline]
pub(super) fn uint(value: &[u8], most: usize) -> Option<u32> {
    let shortest = value.len() <= most && value.first() != Some(&0);
    let number = shortest.then(|| value.iter().fold(0, |value, &octet| value << 8 | u32::from(octet)))?;
    (number <= MOST_NUMBER).then_some(number)
}

/// An OSCORE option with a Partial IV.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartialIv<'p> {
    pub(super) number: u32,
    /// The flags without `n`.
    pub(super) flags: u8,
    /// Octets behind the Partial IV.
    pub(super) behind: &'p [u8],
}

/// Returns the Partial IV of an OSCORE option, if it is in its shortest form. RFC 8613, section 6.1.
pub(super) fn partial_iv(value: &[u8]) -> Option<PartialIv<'_>> {
    let (&flags, behind) = value.split_first()?;
    let n = usize::from(flags & 0b111);
    let (piv, behind) = behind.split_at_checked(n)?;
    if !(1..=4).contains(&n) || flags & 0b1110_0000 != 0 {
        return None;
    }
    let number = piv.iter().fold(0, |value, &octet| value << 8 | u32::from(octet));
    let is_shortest = uint_len(number).max(1) == n && number <= MOST_NUMBER;
    is_shortest.then_some(PartialIv { number, flags: flags & !0b111, behind })
}
