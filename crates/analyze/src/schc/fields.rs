//! Parser: the fields of a packet, in their order, and their positions in bits.

use std::fmt;

use serde::{Deserialize, Serialize};
use thinair_wire::header::chain::{HeaderChain, IpHeader};
use thinair_wire::header::coap::{Coap, CoapOptionsEnd};
use thinair_wire::header::ipv4::Ipv4;
use thinair_wire::header::ipv6::Ipv6;
use thinair_wire::header::protocol;
use thinair_wire::header::udp::Udp;

use super::bits::Bits;
use super::checksum::udp_checksum;
use super::{Checksum, Direction, FieldRoom, Reading};

/// Maximum number of parsed options. A message with more is parsed as UDP payload.
const MAX_OPTIONS: usize = 64;

const OBSERVE: u16 = 6;
const OSCORE: u16 = 9;
/// If-Match, ETag, Location-Path, Location-Query, Block2, Block1: rules cannot contain their values (RFC
/// 8824, sections 5.5 and 6.1).
const NOT_IN_RULES: [u16; 6] = [1, 4, 8, 20, 23, 27];

/// FID: protocol and field. Addresses and ports are named by role (RFC 8724, section 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum FieldId {
    Ipv4Version,
    Ipv4Ihl,
    Ipv4TypeOfService,
    Ipv4Length,
    Ipv4Identification,
    Ipv4Flags,
    Ipv4FragmentOffset,
    Ipv4TimeToLive,
    Ipv4Protocol,
    Ipv4Checksum,
    Ipv4DevAddress,
    Ipv4AppAddress,
    Ipv6Version,
    Ipv6TrafficClass,
    Ipv6FlowLabel,
    Ipv6Length,
    Ipv6NextHeader,
    Ipv6HopLimit,
    Ipv6DevPrefix,
    Ipv6DevIid,
    Ipv6AppPrefix,
    Ipv6AppIid,
    UdpDevPort,
    UdpAppPort,
    UdpLength,
    UdpChecksum,
    CoapVersion,
    CoapType,
    CoapTkl,
    CoapCode,
    CoapMid,
    CoapToken,
    /// An option by its number.
    CoapOption(u16),
    OscoreFlags,
    OscorePiv,
    OscoreKidctx,
    OscoreKid,
    /// The Payload Marker.
    CoapOptionEnd,
}

/// Extent to which a rule may contain the value of a field before packets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Knowledge {
    /// Any value that the packets have in common.
    Plain,
    /// Value chosen at run time for a flow: an ephemeral port, a Flow Label.
    PerFlow,
    /// Value chosen at run time for a packet; the next one may differ.
    Any,
}

impl FieldId {
    /// True for fields whose value is chosen for each packet.
    fn is_of_packet(self) -> bool {
        match self {
            Self::Ipv4Identification
            | Self::Ipv4Checksum
            | Self::UdpChecksum
            | Self::CoapMid
            | Self::CoapToken
            | Self::OscorePiv => true,
            Self::CoapOption(number) => number == OBSERVE || NOT_IN_RULES.contains(&number),
            _ => false,
        }
    }

    /// Extent to which a rule may contain `value` of this field.
    pub(super) fn knowledge(self, value: &Bits) -> Knowledge {
        match self {
            _ if self.is_of_packet() => Knowledge::Any,
            Self::Ipv6FlowLabel if value.to_uint() != Some(0) => Knowledge::PerFlow,
            // Ephemeral ports of Linux (from 32768) and IANA (from 49152).
            Self::UdpDevPort | Self::UdpAppPort if value.to_uint() >= Some(0x8000) => Knowledge::PerFlow,
            _ => Knowledge::Plain,
        }
    }

    /// True for (part of) the value of an option, whose length is counted in octets.
    pub(super) fn is_option(self) -> bool {
        use FieldId::{CoapOption, OscoreFlags, OscoreKid, OscoreKidctx, OscorePiv};
        matches!(self, CoapOption(_) | OscoreFlags | OscorePiv | OscoreKidctx | OscoreKid)
    }

    /// True for (part of) an address.
    pub(super) fn is_address(self) -> bool {
        use FieldId::{Ipv4AppAddress, Ipv4DevAddress, Ipv6AppIid, Ipv6AppPrefix, Ipv6DevIid, Ipv6DevPrefix};
        matches!(
            self,
            Ipv4DevAddress | Ipv4AppAddress | Ipv6DevPrefix | Ipv6DevIid | Ipv6AppPrefix | Ipv6AppIid
        )
    }

    /// Number of the option, and true if the field ends its value.
    pub(super) fn option(self) -> Option<(u16, bool)> {
        match self {
            Self::CoapOption(number) => Some((number, true)),
            Self::OscoreFlags | Self::OscorePiv | Self::OscoreKidctx => Some((OSCORE, false)),
            Self::OscoreKid => Some((OSCORE, true)),
            _ => None,
        }
    }
}

impl fmt::Display for FieldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4Version => "IPv4.version",
            Self::Ipv4Ihl => "IPv4.IHL",
            Self::Ipv4TypeOfService => "IPv4.ToS",
            Self::Ipv4Length => "IPv4.length",
            Self::Ipv4Identification => "IPv4.ID",
            Self::Ipv4Flags => "IPv4.flags",
            Self::Ipv4FragmentOffset => "IPv4.fragment offset",
            Self::Ipv4TimeToLive => "IPv4.TTL",
            Self::Ipv4Protocol => "IPv4.protocol",
            Self::Ipv4Checksum => "IPv4.checksum",
            Self::Ipv4DevAddress => "IPv4.Dev address",
            Self::Ipv4AppAddress => "IPv4.App address",
            Self::Ipv6Version => "IPv6.version",
            Self::Ipv6TrafficClass => "IPv6.DiffServ",
            Self::Ipv6FlowLabel => "IPv6.Flow Label",
            Self::Ipv6Length => "IPv6.length",
            Self::Ipv6NextHeader => "IPv6.Next Header",
            Self::Ipv6HopLimit => "IPv6.Hop Limit",
            Self::Ipv6DevPrefix => "IPv6.DevPrefix",
            Self::Ipv6DevIid => "IPv6.DevIID",
            Self::Ipv6AppPrefix => "IPv6.AppPrefix",
            Self::Ipv6AppIid => "IPv6.AppIID",
            Self::UdpDevPort => "UDP.DevPort",
            Self::UdpAppPort => "UDP.AppPort",
            Self::UdpLength => "UDP.length",
            Self::UdpChecksum => "UDP.checksum",
            Self::CoapVersion => "CoAP.version",
            Self::CoapType => "CoAP.type",
            Self::CoapTkl => "CoAP.TKL",
            Self::CoapCode => "CoAP.code",
            Self::CoapMid => "CoAP.MID",
            Self::CoapToken => "CoAP.token",
            Self::OscoreFlags => "CoAP.OSCORE_flags",
            Self::OscorePiv => "CoAP.OSCORE_piv",
            Self::OscoreKidctx => "CoAP.OSCORE_kidctx",
            Self::OscoreKid => "CoAP.OSCORE_kid",
            Self::CoapOptionEnd => "CoAP.Option-End",
            Self::CoapOption(number) => match number {
                1 => "CoAP.If-Match",
                3 => "CoAP.Uri-Host",
                4 => "CoAP.ETag",
                5 => "CoAP.If-None-Match",
                6 => "CoAP.Observe",
                7 => "CoAP.Uri-Port",
                8 => "CoAP.Location-Path",
                11 => "CoAP.Uri-Path",
                12 => "CoAP.Content-Format",
                14 => "CoAP.Max-Age",
                15 => "CoAP.Uri-Query",
                17 => "CoAP.Accept",
                20 => "CoAP.Location-Query",
                23 => "CoAP.Block2",
                27 => "CoAP.Block1",
                28 => "CoAP.Size2",
                35 => "CoAP.Proxy-Uri",
                39 => "CoAP.Proxy-Scheme",
                60 => "CoAP.Size1",
                258 => "CoAP.No-Response",
                number => return write!(f, "CoAP.option {number}"),
            },
        })
    }
}

/// Properties of a field that a matching rule must have, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct FieldLabel {
    /// FID.
    pub(super) id: FieldId,
    /// FP: ordinal number of the field among those with this FID, from 1.
    pub(super) position: u16,
    /// True if the value follows from the rest of the packet.
    pub(super) computable: bool,
}

impl FieldLabel {
    /// True if a rule contains the value at most where all packets have it: packets of one kind may differ in it.
    pub(super) fn varies(self) -> bool {
        self.computable || self.id.is_of_packet()
    }
}

/// A field of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParsedField {
    pub(super) label: FieldLabel,
    /// Offset in the packet, in bits.
    pub(super) at: usize,
    /// Length in bits.
    pub(super) len: usize,
}

/// A packet that rules can compress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsed<'p> {
    pub(super) octets: &'p [u8],
    /// The fields in their order.
    pub(super) fields: &'p [ParsedField],
    /// Octets after the last field.
    pub(super) payload: &'p [u8],
}

impl<'p> Parsed<'p> {
    /// Parses UDP over one IP header, and CoAP in it. Returns `None` for other packets, for fragments and
    /// options of IP, and for lengths that do not match the packet (RFC 8724, section 10.10). `room` is memory for the
    /// fields.
    pub(super) fn parse(
        reading: &Reading,
        direction: Direction,
        octets: &'p [u8],
        room: &'p mut FieldRoom,
    ) -> Option<Self> {
        let chain = HeaderChain::parse(octets).ok()?;
        let [ip] = chain.ips() else { return None };
        let udp = chain.udp()?;
        if ip.next != protocol::UDP || !ip.extensions.is_empty() {
            return None;
        }
        room.clear();
        let mut parser = Parser { fields: room, at: 0 };
        match ip.header() {
            IpHeader::V4(header) => {
                let right = header.options.is_empty() && usize::from(header.total_length) == octets.len();
                let whole = !header.mf && header.fragment_offset == 0;
                if !right || !whole {
                    return None;
                }
                parser.ipv4(direction, Ipv4::checksum_is_right(octets.get(..Ipv4::LEN)?));
            }
            IpHeader::V6(header) => {
                if usize::from(header.payload_length) + Ipv6::LEN != octets.len() {
                    return None;
                }
                parser.ipv6(direction);
            }
        }
        let datagram = octets.get(chain.ip_end()..)?;
        if usize::from(udp.length) != datagram.len() {
            return None;
        }
        let computed = match reading.checksum {
            Checksum::Computed => udp_checksum(octets, chain.ip_end()) == Some(udp.checksum),
            Checksum::Sent => false,
        };
        parser.udp(direction, computed);
        let (fields, at) = (parser.fields.len(), parser.at);
        let is_coap = reading.ports.has(udp.source_port) || reading.ports.has(udp.destination_port);
        if is_coap && parser.coap(datagram.get(Udp::LEN..)?).is_none() {
            parser.fields.truncate(fields);
            parser.at = at;
        }
        let payload = octets.get(parser.at / 8..)?;
        Some(Self { octets, fields: parser.fields, payload })
    }

    /// The octets of all headers.
    pub(super) fn header(&self) -> &'p [u8] {
        self.octets.get(..self.octets.len() - self.payload.len()).unwrap_or_default()
    }

    /// The labels of the fields.
    pub(super) fn labels(&self) -> Vec<FieldLabel> {
        self.fields.iter().map(|field| field.label).collect()
    }

    /// The value of a field.
    pub(super) fn value(&self, field: &ParsedField) -> Bits {
        Bits::of(self.octets, field.at, field.len)
    }
}

struct Parser<'r> {
    fields: &'r mut FieldRoom,
    at: usize,
}

impl Parser<'_> {
    fn field(&mut self, id: FieldId, len: usize) {
        self.push(id, len, false);
    }

    fn push(&mut self, id: FieldId, len: usize, computable: bool) {
        // Only options occur several times.
        let before = match id.is_option() {
            true => self.fields.iter().filter(|field| field.label.id == id).count(),
            false => 0,
        };
        let label = FieldLabel { id, position: before as u16 + 1, computable };
        self.fields.push(ParsedField { label, at: self.at, len });
        self.at += len;
    }

    /// Appends a field of the sender and one of the receiver.
    fn pair(&mut self, direction: Direction, dev: &[FieldId], app: &[FieldId], len: usize) {
        let (source, destination) = match direction {
            Direction::Up => (dev, app),
            Direction::Dw => (app, dev),
        };
        for id in source.iter().chain(destination) {
            self.field(*id, len);
        }
    }

    fn ipv4(&mut self, direction: Direction, right: bool) {
        self.field(FieldId::Ipv4Version, 4);
        self.field(FieldId::Ipv4Ihl, 4);
        self.field(FieldId::Ipv4TypeOfService, 8);
        self.push(FieldId::Ipv4Length, 16, true);
        self.field(FieldId::Ipv4Identification, 16);
        self.field(FieldId::Ipv4Flags, 3);
        self.field(FieldId::Ipv4FragmentOffset, 13);
        self.field(FieldId::Ipv4TimeToLive, 8);
        self.field(FieldId::Ipv4Protocol, 8);
        self.push(FieldId::Ipv4Checksum, 16, right);
        self.pair(direction, &[FieldId::Ipv4DevAddress], &[FieldId::Ipv4AppAddress], 32);
    }

    fn ipv6(&mut self, direction: Direction) {
        self.field(FieldId::Ipv6Version, 4);
        self.field(FieldId::Ipv6TrafficClass, 8);
        self.field(FieldId::Ipv6FlowLabel, 20);
        self.push(FieldId::Ipv6Length, 16, true);
        self.field(FieldId::Ipv6NextHeader, 8);
        self.field(FieldId::Ipv6HopLimit, 8);
        let dev = [FieldId::Ipv6DevPrefix, FieldId::Ipv6DevIid];
        self.pair(direction, &dev, &[FieldId::Ipv6AppPrefix, FieldId::Ipv6AppIid], 64);
    }

    fn udp(&mut self, direction: Direction, right: bool) {
        self.pair(direction, &[FieldId::UdpDevPort], &[FieldId::UdpAppPort], 16);
        self.push(FieldId::UdpLength, 16, true);
        self.push(FieldId::UdpChecksum, 16, right);
    }

    /// Parses a message; `None` for format errors.
    fn coap(&mut self, message: &[u8]) -> Option<()> {
        let coap = Coap::read(message).ok()?;
        self.field(FieldId::CoapVersion, 2);
        self.field(FieldId::CoapType, 2);
        self.field(FieldId::CoapTkl, 4);
        self.field(FieldId::CoapCode, 8);
        self.field(FieldId::CoapMid, 16);
        if !coap.token.is_empty() {
            self.field(FieldId::CoapToken, coap.token.len() * 8);
        }
        let mut options = coap.options();
        for (count, option) in options.by_ref().enumerate() {
            if count == MAX_OPTIONS {
                return None;
            }
            self.at += (option.octets.len() - option.value.len()) * 8;
            match oscore(option.value) {
                Some(parts) if option.number == OSCORE => {
                    use FieldId::{OscoreFlags, OscoreKid, OscoreKidctx, OscorePiv};
                    for (id, len) in [OscoreFlags, OscorePiv, OscoreKidctx, OscoreKid].into_iter().zip(parts)
                    {
                        self.field(id, len * 8);
                    }
                }
                _ => self.field(FieldId::CoapOption(option.number), option.value.len() * 8),
            }
        }
        match options.end()? {
            CoapOptionsEnd::Payload(_) => self.field(FieldId::CoapOptionEnd, 8),
            CoapOptionsEnd::NoPayload => {}
            CoapOptionsEnd::MarkerWithoutPayload | CoapOptionsEnd::Malformed { .. } => return None,
        }
        Some(())
    }
}

/// Octets of flags, piv, kid context with its length, and kid of an OSCORE option (RFC 8824, section 6.4).
fn oscore(value: &[u8]) -> Option<[usize; 4]> {
    let Some((flags, rest)) = value.split_first() else { return Some([0; 4]) };
    let piv = usize::from(flags & 0b111);
    let context = match flags & 0b1_0000 {
        0 => 0,
        _ => 1 + usize::from(*rest.get(piv)?),
    };
    let kid = rest.len().checked_sub(piv + context)?;
    let has_kid = flags & 0b1000 != 0;
    (has_kid || kid == 0).then_some([1, piv, context, kid])
}
