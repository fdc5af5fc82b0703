//! The RFC 3095 family: profiles 0x0001 (RTP), 0x0002 (UDP), 0x0003 (ESP), 0x0004 (IP, RFC 3843), 0x0007 and 0x0008
//! (RTP/UDP-Lite and UDP-Lite, RFC 4019), with the corrections of RFC 4815.
//!
//! The headers of one packet are `Rfc3095Fields`. A function per format moves them to octets and back: `type0`, `type1`, `type2`
//! with its extensions, `cce` around them, `ir` for the chains of IR and IR-DYN, and the tail at the end of every compressed
//! header. `formats` lists the compressed formats of a profile, cheapest first, and both sides choose from this list.

mod attempt;
mod cce;
mod choose;
mod classify;
pub(crate) mod compress;
mod confirm;
pub(crate) mod decompress;
mod doubt;
mod extension;
mod flow;
mod header;
mod initialize;
mod ip_id;
mod ir;
mod late;
mod list;
mod list_plan;
mod list_state;
mod list_update;
mod mode;
mod next;
mod note;
mod own;
mod pending;
mod proof;
mod reliable;
pub(crate) mod rtp;
mod table;
mod tail;
pub(crate) mod timer;
mod timestamp;
mod transitions;
mod type0;
mod type1;
mod type2;
mod unseen;

#[cfg(test)]
mod fast_path_test;
#[cfg(test)]
mod formats_test;
mod receiver;
#[cfg(test)]
mod rtp_formats_test;

use thinair_wire::coder::{Coder, LsbSlot, Step};
use thinair_wire::header::chain::MAX_IP;
use thinair_wire::lsb::Shift;

use crate::field::ip::{IpHeader, IpVersion};
use crate::id::{Format, ProfileId};
use crate::mode::Mode;
use cce::Cce;
use header::ChainFields;
use list::CompressedList;
pub(crate) use list_plan::INDICES;
use rtp::{RtpExtra, RtpFields};
pub use table::ExtensionBlock;

/// Sequence number: that of RTP or ESP, or one that the compressor generates. RFC 3095, sections 5.7, 5.11 and 5.12; RFC 3843,
/// section 3.
const SN: LsbSlot = LsbSlot::new(0, "SN");
/// IP-ID of the innermost IPv4 header whose RND flag is not 1. RFC 3095, section 5.7.
const IP_ID: LsbSlot = LsbSlot::new(1, "IP-ID");
/// IP-ID of the outer header, if both have one that is compressed.
const IP_ID2: LsbSlot = LsbSlot::new(2, "IP-ID2");

/// RTP timestamp, scaled or not. RFC 3095, section 5.7.
const TS: LsbSlot = LsbSlot::new(3, "TS");

/// Number of IP headers in the base formats, and of those whose extension headers are kept. A further one is sent as a dynamic
/// chain (RFC 3843, section 3.2).
pub(crate) const BASE_IPS: usize = 2;

/// Number of lists of a packet: extension headers of both base headers, and CSRC identifiers.
const LISTS: usize = 3;

/// Index of the list of CSRC identifiers.
const CSRC: usize = 2;

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

/// Compressed formats of RTP, cheapest first; of equal lengths, those with the stronger CRC first.
const RTP_FORMATS: [Format; 23] = [
    Format::Uo0,
    Format::Uo1,
    Format::Uo1Id,
    Format::Uo1Ts,
    Format::Uor2,
    Format::Uor2Id,
    Format::Uor2Ts,
    Format::Uo1IdExt0,
    Format::Uor2Ext0,
    Format::Uor2IdExt0,
    Format::Uor2TsExt0,
    Format::Uo1IdExt1,
    Format::Uor2Ext1,
    Format::Uor2IdExt1,
    Format::Uor2TsExt1,
    Format::Uo1IdExt2,
    // Sent with SN, TS and IP-ID alone, since no other field of it is kept (RFC 3095, section 5.7.3).
    Format::Uo1IdExt3,
    Format::Uor2Ext2,
    Format::Uor2IdExt2,
    Format::Uor2TsExt2,
    Format::Uor2Ext3,
    Format::Uor2TsExt3,
    Format::Uor2IdExt3,
];

/// Compressed formats of RTP in R-mode, in the order of [`RTP_FORMATS`].
const RTP_FORMATS_R: [Format; 32] = [
    Format::R0,
    Format::R0Crc,
    Format::R1,
    Format::R1Id,
    Format::R1Ts,
    Format::Uor2,
    Format::Uor2Id,
    Format::Uor2Ts,
    Format::R1Ext0,
    Format::R1IdExt0,
    Format::R1TsExt0,
    Format::Uor2Ext0,
    Format::Uor2IdExt0,
    Format::Uor2TsExt0,
    Format::R1Ext1,
    Format::R1IdExt1,
    Format::R1TsExt1,
    Format::Uor2Ext1,
    Format::Uor2IdExt1,
    Format::Uor2TsExt1,
    Format::R1Ext2,
    Format::R1IdExt2,
    Format::R1TsExt2,
    Format::Uor2Ext2,
    Format::Uor2IdExt2,
    Format::Uor2TsExt2,
    Format::Uor2Ext3,
    Format::Uor2TsExt3,
    Format::Uor2IdExt3,
    // Only received: their fields are not kept.
    Format::R1Ext3,
    Format::R1TsExt3,
    Format::R1IdExt3,
];

/// Compressed formats without RTP in R-mode. Of two with equal lengths, the one that updates the context comes first.
const FORMATS_R: [Format; 12] = [
    Format::R0,
    Format::R0Crc,
    Format::Uor2,
    Format::R1,
    Format::Uor2Ext0,
    Format::R1Ext0,
    Format::Uor2Ext1,
    Format::R1Ext1,
    Format::Uor2Ext2,
    Format::R1Ext2,
    Format::Uor2Ext3,
    // Only received: it is as long as the one before.
    Format::R1Ext3,
];

/// Returns the compressed formats of a profile in a mode, cheapest first.
#[inline]
fn formats(profile: ProfileId, mode: Mode) -> &'static [Format] {
    match mode {
        Mode::Reliable if has_rtp(profile) => &RTP_FORMATS_R,
        _ if has_rtp(profile) => &RTP_FORMATS,
        Mode::Unidirectional | Mode::Optimistic => &FORMATS,
        Mode::Reliable => &FORMATS_R,
    }
}

/// Packet type of a compressed header, by its first octet. RFC 3095, section 5.2.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketType {
    Zero,
    One,
    Two,
}

impl PacketType {
    #[inline]
    const fn of(first: u8) -> Self {
        match first {
            0..0b1000_0000 => Self::Zero,
            0b1000_0000..0b1100_0000 => Self::One,
            _ => Self::Two,
        }
    }

    /// True if a format is of this type.
    #[inline]
    fn has(self, format: Format) -> bool {
        use Format::{R0, R0Crc, R1, R1Ext0, R1Ext1, R1Ext2, R1Ext3};
        use Format::{R1Id, R1IdExt0, R1IdExt1, R1IdExt2, R1IdExt3};
        use Format::{R1Ts, R1TsExt0, R1TsExt1, R1TsExt2, R1TsExt3};
        use Format::{Uo0, Uo1, Uo1Id, Uo1IdExt0, Uo1IdExt1, Uo1IdExt2, Uo1IdExt3, Uo1Ts};
        self == match format {
            Uo0 | R0 | R0Crc => Self::Zero,
            R1 | R1Ext0 | R1Ext1 | R1Ext2 | R1Ext3 => Self::One,
            R1Id | R1IdExt0 | R1IdExt1 | R1IdExt2 | R1IdExt3 => Self::One,
            R1Ts | R1TsExt0 | R1TsExt1 | R1TsExt2 | R1TsExt3 => Self::One,
            Uo1 | Uo1Id | Uo1Ts | Uo1IdExt0 | Uo1IdExt1 | Uo1IdExt2 | Uo1IdExt3 => Self::One,
            _ => Self::Two,
        }
    }
}

/// True if the flags that decide on the T bit of a base header stand behind it, in extension 3. RFC 3095, section 5.7.5.1.
#[inline]
fn has_t_bit_behind(format: Format) -> bool {
    matches!(format, Format::Uor2IdExt3 | Format::Uor2TsExt3)
}

/// Header behind the IP headers of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upper {
    /// Payload.
    None,
    Udp,
    UdpLite,
    Esp,
}

/// Returns the header behind the IP headers in a profile.
#[inline]
const fn upper(profile: ProfileId) -> Upper {
    match profile {
        ProfileId::Rtp | ProfileId::Udp | ProfileId::Coap => Upper::Udp,
        ProfileId::RtpUdpLite | ProfileId::UdpLite if cfg!(feature = "udp-lite") => Upper::UdpLite,
        ProfileId::Esp if cfg!(feature = "esp") => Upper::Esp,
        _ => Upper::None,
    }
}

/// True if the chains of a profile end with an RTP header.
#[inline]
const fn has_rtp(profile: ProfileId) -> bool {
    cfg!(feature = "rtp") && matches!(profile, ProfileId::Rtp | ProfileId::RtpUdpLite)
}

/// Largest number of IP headers in the chains of a profile. RFC 3843, section 3.2; RFC 4019, section 5.3.1.
#[inline]
const fn most_ips(profile: ProfileId) -> usize {
    match profile {
        ProfileId::Ip | ProfileId::UdpLite => MAX_IP,
        _ => BASE_IPS,
    }
}

/// True if the SN is part of the header, so that it may change by more than one per packet.
#[inline]
const fn has_own_sn(profile: ProfileId) -> bool {
    has_rtp(profile) || matches!(profile, ProfileId::Esp)
}

/// Returns the interpretation interval of the SN. RFC 3095, sections 5.7, 5.11 ("always uses p = -1") and 5.12.
#[inline]
const fn sn_shift(profile: ProfileId) -> Shift {
    if has_own_sn(profile) { Shift::Sn } else { Shift::MinusOne }
}

/// Returns `sn + steps` in the width of the SN of a profile: 32 bits in ESP, otherwise 16.
#[inline]
const fn sn_plus(profile: ProfileId, sn: u32, steps: u32) -> u32 {
    let sum = sn.wrapping_add(steps);
    if matches!(profile, ProfileId::Esp) { sum } else { sum & 0xFFFF }
}

/// An IP header of a chain. RFC 3095, sections 5.7.7.3 and 5.7.7.4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct IpFields {
    /// In the static chain, Protocol is the type of the header behind the extension headers.
    header: IpHeader,
    /// The static chain ends here, whatever the Protocol is (RFC 3843, section 3.1).
    terminates: bool,
    rnd: bool,
    nbo: bool,
    sid: bool,
}

impl IpFields {
    const EMPTY: Self =
        Self { header: IpHeader::EMPTY, terminates: false, rnd: false, nbo: false, sid: false };

    /// True if the IP-ID is sent as an offset from the SN: neither random nor absent. A static one (SID) has the place of the
    /// IP-ID in the formats, too, but takes no bits.
    #[inline]
    fn holds_ip_id(&self) -> bool {
        self.header.version == IpVersion::V4 && !self.rnd
    }

    /// True if it has a random IP-ID.
    #[inline]
    fn is_random(&self) -> bool {
        self.header.version == IpVersion::V4 && self.rnd
    }

    /// True if two headers of a flow differ at most in the IP-ID, and its behavior is unchanged.
    #[inline]
    fn is_like(&self, other: &Self) -> bool {
        self.header.is_like(&other.header)
            && (self.rnd, self.nbo, self.sid) == (other.rnd, other.nbo, other.sid)
    }

    /// Returns the IP-ID in the byte order in which it counts. RFC 3095, section 4.5.5.
    #[inline]
    fn counted_id(&self) -> u16 {
        if self.nbo { self.header.id } else { self.header.id.swap_bytes() }
    }

    /// Sets the IP-ID from its value in the byte order in which it counts.
    #[inline]
    fn count_to(&mut self, id: u16) {
        self.header.id = if self.nbo { id } else { id.swap_bytes() };
    }
}

/// Static and dynamic part of a UDP or UDP-Lite header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UdpFields {
    source_port: u16,
    destination_port: u16,
    checksum: u16,
    /// Checksum Coverage; only used for UDP-Lite.
    coverage: u16,
}

/// Fields in extension 3 and the tail for one of the two IP headers of the base formats, or, where they form a list, for the CSRC
/// identifiers.
#[derive(Clone, Copy, Debug, Default)]
struct IpExtra<'p> {
    /// The flags octet of this header is present (`ip`, `ip2`).
    flags: bool,
    tos: bool,
    ttl: bool,
    pr: bool,
    /// The IP-ID stands behind the fields (`I2`; of the outer header only).
    id: bool,
    /// Extension header field (`IPX`).
    ipx: bool,
    /// A compressed list is in the field (`CL`).
    has_list: bool,
    /// AH sequence number in the field (`ASeq`): 31 bits, or 7.
    has_ah_sn: bool,
    ah_sn_long: bool,
    ah_sn: u32,
    /// `None` is equivalent to an empty list; packets without one do not pay for the memory.
    list: Option<CompressedList<'p>>,
    /// Integrity Check Value of a compressed AH, in the tail.
    icv: &'p [u8],
}

impl<'p> IpExtra<'p> {
    /// Returns the list of the packet; empty if it has none.
    #[inline]
    fn list(&self) -> &CompressedList<'p> {
        self.list.as_ref().unwrap_or(&list::EMPTY)
    }
}

/// Headers of one packet, as the formats represent them.
#[derive(Clone, Copy, Debug)]
struct Rfc3095Fields<'p> {
    profile: ProfileId,
    sn: u32,
    ips: [IpFields; MAX_IP],
    /// Number of IP headers of the static chain, at least 1.
    ip_count: usize,
    udp: UdpFields,
    /// SPI of ESP.
    spi: u32,
    rtp: RtpFields,
    rtp_extra: RtpExtra,
    /// Kind of the packet if it is a CCE packet.
    cce: Option<Cce>,
    /// Two bits of the mode; 0 if the packet does not carry it.
    mode: u8,
    /// S, I of extension 3.
    ext3_sn: bool,
    ext3_id: bool,
    /// For the outermost and the second IP header, and for the CSRC identifiers.
    extra: [IpExtra<'p>; LISTS],
}

impl Rfc3095Fields<'_> {
    #[inline(always)]
    fn new(profile: ProfileId) -> Self {
        Self {
            profile,
            sn: 0,
            ips: [IpFields::EMPTY; MAX_IP],
            ip_count: 1,
            udp: UdpFields::default(),
            spi: 0,
            rtp: RtpFields::INITIAL,
            rtp_extra: RtpExtra::default(),
            cce: None,
            mode: 0,
            ext3_sn: false,
            ext3_id: false,
            extra: [IpExtra::default(); LISTS],
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

    /// The headers that the base formats carry.
    #[inline]
    fn base(&self) -> &[IpFields] {
        &self.ips[..self.base_ips()]
    }

    /// Returns the fields from which the headers are rebuilt.
    #[inline]
    fn chain(&self) -> ChainFields<'_> {
        ChainFields {
            profile: self.profile,
            sn: self.sn,
            ips: self.ips.get(..self.ip_count).unwrap_or(&self.ips),
            udp: &self.udp,
            spi: self.spi,
            rtp: &self.rtp,
            version: self.rtp_extra.version,
        }
    }

    /// Index of the header that the slot [`IP_ID`] belongs to: the innermost one whose IP-ID is compressed.
    #[inline]
    fn ip_id_holder(&self) -> Option<usize> {
        (0..self.base_ips()).rev().find(|&i| self.ips[i].holds_ip_id())
    }

    /// True if the base formats of RTP have a T bit: an IP-ID is compressed. RFC 3095, section 5.7.5.
    #[inline]
    fn has_t_bit(&self) -> bool {
        self.ip_id_holder().is_some()
    }

    /// Index of the header that the slot [`IP_ID2`] belongs to: the outer one, if the inner one holds [`IP_ID`].
    #[inline]
    fn ip_id2_holder(&self) -> Option<usize> {
        (self.ip_count > 1 && self.ips[0].holds_ip_id() && self.ips[1].holds_ip_id()).then_some(0)
    }
}

/// Codes a compressed format up to the tail, with the octets around it in a CCE packet.
#[inline]
fn base<'p, C: Coder<'p>>(format: Format, c: &mut C, x: &mut Rfc3095Fields<'p>) -> Step {
    use type2::{FormatExtension, T};
    if cfg!(feature = "udp-lite")
        && let Some(kind) = x.cce
    {
        cce::outer(c, kind)?;
    }
    let rtp = has_rtp(x.profile);
    let none = if rtp { T::Absent } else { T::Undefined };
    match format {
        Format::Uo0 => type0::uo_0(c, x.rtp.m),
        Format::Uo1 if rtp => type1::uo_1_rtp(c, x),
        Format::Uo1 => type1::uo_1(c),
        Format::R0 => type0::r_0(c, x.rtp.m),
        Format::R0Crc => type0::r_0_crc(c, x.rtp.m),
        Format::R1 => type1::r_1(c, x, none, FormatExtension::None),
        Format::R1Ext0 => type1::r_1(c, x, none, FormatExtension::Zero),
        Format::R1Ext1 => type1::r_1(c, x, none, FormatExtension::One),
        Format::R1Ext2 => type1::r_1(c, x, none, FormatExtension::Two),
        Format::R1Ext3 => type1::r_1(c, x, none, FormatExtension::Three),
        Format::Uor2 => type2::uor_2(c, x, none, FormatExtension::None),
        Format::Uor2Ext0 => type2::uor_2(c, x, none, FormatExtension::Zero),
        Format::Uor2Ext1 => type2::uor_2(c, x, none, FormatExtension::One),
        Format::Uor2Ext2 => type2::uor_2(c, x, none, FormatExtension::Two),
        Format::Uor2Ext3 => type2::uor_2(c, x, none, FormatExtension::Three),
        _ if !rtp => c.enforce(false),
        Format::R1Id => type1::r_1(c, x, T::Zero, FormatExtension::None),
        Format::R1IdExt0 => type1::r_1(c, x, T::Zero, FormatExtension::Zero),
        Format::R1IdExt1 => type1::r_1(c, x, T::Zero, FormatExtension::One),
        Format::R1IdExt2 => type1::r_1(c, x, T::Zero, FormatExtension::Two),
        Format::R1IdExt3 => type1::r_1(c, x, T::Zero, FormatExtension::Three),
        Format::R1Ts => type1::r_1(c, x, T::One, FormatExtension::None),
        Format::R1TsExt0 => type1::r_1(c, x, T::One, FormatExtension::Zero),
        Format::R1TsExt1 => type1::r_1(c, x, T::One, FormatExtension::One),
        Format::R1TsExt2 => type1::r_1(c, x, T::One, FormatExtension::Two),
        Format::R1TsExt3 => type1::r_1(c, x, T::One, FormatExtension::Three),
        Format::Uo1Id => type1::uo_1_id(c, x, FormatExtension::None),
        Format::Uo1IdExt0 => type1::uo_1_id(c, x, FormatExtension::Zero),
        Format::Uo1IdExt1 => type1::uo_1_id(c, x, FormatExtension::One),
        Format::Uo1IdExt2 => type1::uo_1_id(c, x, FormatExtension::Two),
        Format::Uo1IdExt3 => type1::uo_1_id(c, x, FormatExtension::Three),
        Format::Uo1Ts => type1::uo_1_ts(c, x),
        Format::Uor2Id => type2::uor_2(c, x, T::Zero, FormatExtension::None),
        Format::Uor2IdExt0 => type2::uor_2(c, x, T::Zero, FormatExtension::Zero),
        Format::Uor2IdExt1 => type2::uor_2(c, x, T::Zero, FormatExtension::One),
        Format::Uor2IdExt2 => type2::uor_2(c, x, T::Zero, FormatExtension::Two),
        Format::Uor2IdExt3 => type2::uor_2(c, x, T::Zero, FormatExtension::Three),
        Format::Uor2Ts => type2::uor_2(c, x, T::One, FormatExtension::None),
        Format::Uor2TsExt0 => type2::uor_2(c, x, T::One, FormatExtension::Zero),
        Format::Uor2TsExt1 => type2::uor_2(c, x, T::One, FormatExtension::One),
        Format::Uor2TsExt2 => type2::uor_2(c, x, T::One, FormatExtension::Two),
        Format::Uor2TsExt3 => type2::uor_2(c, x, T::One, FormatExtension::Three),
        _ => c.enforce(false),
    }
}
