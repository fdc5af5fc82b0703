//! The RFC 3095 family: profiles 0x0002 (UDP) and 0x0004 (IP, RFC 3843), with the corrections of RFC 4815, and
//! 0x0080 (CoAP as published in 2015).
//!
//! One packet's headers are `Fields`; a function per format moves them to octets and back: `type0`, `type1`,
//! `type2` with its extensions, `ir` for the chains of IR and IR-DYN, and the tail that every compressed header
//! ends with. `FORMATS` lists the compressed formats once,
//! cheapest first, and the list is the dispatch of both sides.

mod attempt;
pub(crate) mod coap_2015;
pub(crate) mod compress;
pub(crate) mod decompress;
mod extension;
mod header;
mod ip_id;
mod ir;
mod list;
mod list_plan;
mod list_state;
mod settled;
pub(crate) mod table;
mod tail;
mod type0;
mod type1;
mod type2;

#[cfg(test)]
mod formats_test;

use thinair_wire::coder::{Coder, Slot, Step};
use thinair_wire::header::chain::MAX_IP;
use thinair_wire::lsb::Shift;

use super::{Format, ProfileId};
use list::CompressedList;

/// Sequence number: here always counted by the compressor. RFC 3095, section 5.11; RFC 3843, section 3.
const SN: Slot = Slot::new(0, "SN");
/// IP-ID of the innermost IPv4 header whose RND flag is not 1. RFC 3095, section 5.7.
const IP_ID: Slot = Slot::new(1, "IP-ID");
/// IP-ID of the outer header, where both have one that is compressed.
const IP_ID2: Slot = Slot::new(2, "IP-ID2");

/// RFC 3095, section 5.11: "always uses p = -1 when interpreting the SN".
const SN_SHIFT: Shift = Shift::MinusOne;

/// IP headers that the base formats carry; a further one goes as a dynamic chain (RFC 3843, section 3.2).
const BASE_IPS: usize = 2;

/// Compressed formats, cheapest first.
const FORMATS: [Format; 7] = [
    Format::Uo0,
    // As long as UO-1, but with the stronger CRC.
    Format::Uor2,
    Format::Uo1,
    Format::Uor2Ext0,
    Format::Uor2Ext1,
    Format::Uor2Ext2,
    Format::Uor2Ext3,
];

/// Version of an IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Version {
    #[default]
    V4,
    V6,
}

/// What the family keeps of one IP header. RFC 3095, sections 5.7.7.3 and 5.7.7.4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct IpFields {
    // Static part. IPv4 addresses take the first four octets.
    source: [u8; 16],
    destination: [u8; 16],
    flow_label: u32,
    version: Version,
    /// Type of the next header of the static chain; extension headers do not count.
    protocol: u8,
    /// The static chain ends here whatever `protocol` says (RFC 3843, section 3.1).
    terminates: bool,
    // Dynamic part. Names of IPv6: Traffic Class and Hop Limit.
    tos: u8,
    ttl: u8,
    id: u16,
    df: bool,
    rnd: bool,
    nbo: bool,
    sid: bool,
}

impl IpFields {
    /// Whether the IP-ID goes as an offset from the SN: neither random nor absent. A static one (SID) holds
    /// the place of the IP-ID in the formats too, but sends no bits.
    #[inline]
    fn holds_ip_id(&self) -> bool {
        self.version == Version::V4 && !self.rnd
    }

    /// The IP-ID in the byte order in which it counts. RFC 3095, section 4.5.5.
    #[inline]
    fn counted_id(&self) -> u16 {
        if self.nbo { self.id } else { self.id.swap_bytes() }
    }
}

/// The static and dynamic part of a UDP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UdpFields {
    source_port: u16,
    destination_port: u16,
    checksum: u16,
}

/// What extension 3 and the tail carry for one of the two IP headers of the base formats.
#[derive(Clone, Copy, Debug, Default)]
struct IpExtra<'p> {
    /// The flags octet of this header is present (`ip`, `ip2`).
    flags: bool,
    tos: bool,
    ttl: bool,
    pr: bool,
    /// IP-ID behind the fields (`I2`; of the outer header only).
    id: bool,
    /// Extension header field (`IPX`).
    ipx: bool,
    /// A compressed list is in the field (`CL`).
    has_list: bool,
    /// AH sequence number in the field (`ASeq`): 31 bits, or 7.
    has_ah_sn: bool,
    ah_sn_long: bool,
    ah_sn: u32,
    /// `None` says the same as an empty list; packets without one do not pay for the room.
    list: Option<CompressedList<'p>>,
    /// Integrity Check Value of a compressed AH, in the tail.
    icv: &'p [u8],
}

impl<'p> IpExtra<'p> {
    /// The list that the packet carries; empty if it has none.
    #[inline]
    fn list(&self) -> &CompressedList<'p> {
        self.list.as_ref().unwrap_or(&list::EMPTY)
    }
}

/// The headers of one packet, as the formats see them.
#[derive(Clone, Copy, Debug)]
struct Fields<'p> {
    profile: ProfileId,
    sn: u16,
    ips: [IpFields; MAX_IP],
    /// Number of IP headers of the static chain, at least 1.
    ip_count: usize,
    udp: UdpFields,
    /// The CoAP header, in profile 0x0080 alone. Its options are those of a static chain.
    coap: Option<coap_2015::Header<'p>>,
    /// Mode, as two bits; 0 where the packet does not say it.
    mode: u8,
    /// S, I of extension 3.
    ext3_sn: bool,
    ext3_id: bool,
    /// For the outermost and the second IP header.
    extra: [IpExtra<'p>; BASE_IPS],
}

impl Fields<'_> {
    #[inline(always)]
    fn new(profile: ProfileId) -> Self {
        Self {
            profile,
            sn: 0,
            ips: [IpFields::default(); MAX_IP],
            ip_count: 1,
            udp: UdpFields::default(),
            coap: None,
            mode: 0,
            ext3_sn: false,
            ext3_id: false,
            extra: [IpExtra::default(); BASE_IPS],
        }
    }

    /// Index of the *inner* header of the formats: the second of two, or the only one.
    #[inline]
    fn inner(&self) -> usize {
        if self.ip_count > 1 { 1 } else { 0 }
    }

    /// Number of headers that the base formats carry: 1 or 2.
    #[inline]
    fn base_ips(&self) -> usize {
        self.inner() + 1
    }

    /// Which header the slot [`IP_ID`] belongs to: the innermost whose IP-ID is compressed.
    #[inline]
    fn ip_id_holder(&self) -> Option<usize> {
        (0..self.base_ips()).rev().find(|&i| self.ips[i].holds_ip_id())
    }

    /// Which header the slot [`IP_ID2`] belongs to: the outer one, if the inner one holds [`IP_ID`].
    #[inline]
    fn ip_id2_holder(&self) -> Option<usize> {
        (self.ip_count > 1 && self.ips[0].holds_ip_id() && self.ips[1].holds_ip_id()).then_some(0)
    }
}

/// Whether the chains of a profile of the family end with a UDP header, or with CoAP behind one.
#[inline]
fn has_udp(profile: ProfileId) -> bool {
    profile != ProfileId::Ip
}

/// Runs a compressed format up to the tail.
#[inline]
fn base<'p, C: Coder<'p>>(format: Format, c: &mut C, x: &mut Fields<'p>) -> Step {
    match format {
        Format::Uo0 => type0::uo_0(c),
        Format::Uo1 => type1::uo_1(c),
        Format::Uor2 => type2::uor_2(c, x, type2::Extension::None),
        Format::Uor2Ext0 => type2::uor_2(c, x, type2::Extension::Zero),
        Format::Uor2Ext1 => type2::uor_2(c, x, type2::Extension::One),
        Format::Uor2Ext2 => type2::uor_2(c, x, type2::Extension::Two),
        Format::Uor2Ext3 => type2::uor_2(c, x, type2::Extension::Three),
        Format::Ir
        | Format::IrDyn
        | Format::Normal
        | Format::Pt0
        | Format::Pt0c
        | Format::Pt1
        | Format::Pt1t
        | Format::Pt1tc
        | Format::Pt2
        | Format::Pt2c
        | Format::CoCommon
        | Format::CoRepair
        | Format::IrCr => c.enforce(false),
    }
}
