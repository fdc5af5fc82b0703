//! RTP headers: their fields, the RTP part of the chains and of extension 3. RFC 3095, sections 5.7.5 and 5.7.7.6; RFC
//! 4815, sections 5.1, 5.2, 6.4, 6.5 and 8.4.

use thinair_wire::coder::{Coder, LsbSlot, Step, sdvl};
use thinair_wire::header::rtp::{Rtp, VERSION};

use super::list::{Item, ListKind, compressed_list};
use super::{CSRC as LIST, Rfc3095Fields};

/// Octets of a CSRC identifier.
pub(crate) const CSRC_LEN: usize = 4;

/// Fields of an RTP header in the contexts of the family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RtpFields {
    pub(crate) ssrc: u32,
    pub(crate) ts: u32,
    /// TS_STRIDE; its initial value is 1 (RFC 3095, section 5.7.5.2).
    pub(super) stride: u32,
    /// TIME_STRIDE in milliseconds; 0 if the timestamp is not compressed by a timer.
    pub(super) time_stride: u32,
    pub(crate) pt: u8,
    pub(super) p: bool,
    pub(super) x: bool,
    pub(super) m: bool,
}

impl RtpFields {
    /// Initial values of a context. RFC 3095, section 5.7.5.2.
    pub(super) const INITIAL: Self =
        Self { ssrc: 0, ts: 0, stride: 1, time_stride: 0, pt: 0, p: false, x: false, m: false };
}

/// RTP header of one packet, as the profiles compress it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RtpHeader<'p> {
    pub(crate) fields: RtpFields,
    pub(crate) sn: u16,
    /// CSRC identifiers, 4 octets each.
    pub(crate) csrc: &'p [u8],
}

/// True if a datagram may be RTP of version 2, by its length and its first octet.
#[inline]
pub(super) fn may_be(datagram: &[u8]) -> bool {
    datagram.first_chunk::<{ Rtp::LEN }>().is_some_and(|header| header[0] >> 6 == VERSION)
}

impl<'p> RtpHeader<'p> {
    /// Reads the header at the start of a datagram; `None` if it is not RTP version 2. A header extension is payload.
    #[inline]
    pub(crate) fn read(datagram: &'p [u8]) -> Option<Self> {
        let (h, rest) = datagram.split_first_chunk::<{ Rtp::LEN }>()?;
        let csrc = rest.get(..usize::from(h[0] & 0x0F) * CSRC_LEN)?;
        let fields = RtpFields {
            ssrc: u32::from_be_bytes([h[8], h[9], h[10], h[11]]),
            ts: u32::from_be_bytes([h[4], h[5], h[6], h[7]]),
            stride: 1,
            time_stride: 0,
            pt: h[1] & 0x7F,
            p: h[0] & 0x20 != 0,
            x: h[0] & 0x10 != 0,
            m: h[1] & 0x80 != 0,
        };
        let header = Self { fields, sn: u16::from_be_bytes([h[2], h[3]]), csrc };
        (h[0] >> 6 == VERSION).then_some(header)
    }

    /// Octets of the header.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        Rtp::LEN + self.csrc.len()
    }

    /// SSRC and sequence number, as [`Guess`](crate::field::rtp::Guess) uses them.
    pub(super) fn proof(&self) -> (u32, u16) {
        (self.fields.ssrc, self.sn)
    }

    /// Returns the CSRC identifiers as items of a list.
    #[inline]
    pub(super) fn items(&self) -> impl Iterator<Item = Item<'p>> + Clone + use<'p> {
        self.csrc.chunks_exact(CSRC_LEN).map(|body| Item { kind: 0, length: 0, body })
    }
}

/// Fields of RTP in extension 3 or a dynamic chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct RtpExtra {
    /// The octet of RTP flags is present (`rtp`).
    pub(super) flags: bool,
    /// `R-PT`.
    pub(super) pt: bool,
    /// `TSS`.
    pub(super) stride: bool,
    /// `TIS`.
    pub(super) time_stride: bool,
    /// `Tsc`. Without an extension 3, TS is scaled.
    pub(super) scaled: bool,
    /// Number of octets of TS in extension 3 (`R-TS`), 0 to 4.
    pub(super) ts: u8,
    /// V: 2, but some compressors use RTP profiles for datagrams of other versions.
    pub(super) version: u8,
}

impl Default for RtpExtra {
    fn default() -> Self {
        Self {
            flags: false,
            pt: false,
            stride: false,
            time_stride: false,
            scaled: true,
            ts: 0,
            version: VERSION,
        }
    }
}

/// Number of value bits in a self-describing variable-length field of that many octets. RFC 3095, section 4.5.6.
#[inline]
pub(super) const fn sdvl_bits(octets: u8) -> u32 {
    match octets {
        0 => 0,
        1 => 7,
        2 => 14,
        3 => 21,
        _ => 29,
    }
}

/// Number of octets of such a field with room for `bits` bits; 4 if none has.
pub(super) const fn sdvl_octets(bits: u32) -> u8 {
    match bits {
        0 => 0,
        1..=7 => 1,
        8..=14 => 2,
        15..=21 => 3,
        _ => 4,
    }
}

/// Least significant bits in a self-describing variable-length field of 1 to 4 octets.
pub(super) fn sdvl_lsb<'p, C: Coder<'p>>(c: &mut C, slot: LsbSlot, octets: &mut u8) -> Step {
    let more = *octets;
    for len in 1..=3 {
        if !c.flag("sdvl", &mut (more > len))? {
            *octets = len;
            return c.lsb(slot, sdvl_bits(len), 0);
        }
    }
    *octets = 4;
    c.lsb(slot, sdvl_bits(4), 0)
}

/// `RTP header flags and fields` of extension 3. RFC 3095, section 5.7.5. `m` is true if the base header has M.
pub(super) fn rtp_header_flags_and_fields<'p, C: Coder<'p>>(
    c: &mut C,
    x: &mut Rfc3095Fields<'p>,
    m: bool,
) -> Step {
    let in_base = x.rtp.m;
    c.uint("Mode", 2, &mut x.mode)?;
    let pt = c.flag("R-PT", &mut x.rtp_extra.pt)?;
    c.flag("M", &mut x.rtp.m)?;
    // RFC 4815, section 8.4: two occurrences must agree, or the packet is discarded.
    c.require(!m || x.rtp.m == in_base)?;
    c.flag("R-X", &mut x.rtp.x)?;
    let csrc = c.flag("CSRC", &mut x.extra[LIST].has_list)?;
    let stride = c.flag("TSS", &mut x.rtp_extra.stride)?;
    let time_stride = c.flag("TIS", &mut x.rtp_extra.time_stride)?;
    if pt {
        c.flag("R-P", &mut x.rtp.p)?;
        c.uint("RTP PT", 7, &mut x.rtp.pt)?;
    } else {
        // RFC 4815, section 6.4: "If R-PT = 0, context(R-P) is updated to zero."
        x.rtp.p = false;
    }
    if csrc {
        compressed_list(c, x.extra[LIST].list.get_or_insert_default(), ListKind::Csrc)?;
    }
    if stride {
        sdvl(c, "TS_STRIDE", &mut x.rtp.stride)?;
    }
    if time_stride {
        sdvl(c, "TIME_STRIDE", &mut x.rtp.time_stride)?;
    }
    Ok(())
}

/// Static part of an RTP header. RFC 3095, section 5.7.7.6.
pub(super) fn rtp_static<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>) -> Step {
    c.uint("SSRC", 32, &mut x.rtp.ssrc)
}

/// Dynamic part of an RTP header, with the SN. RFC 3095, section 5.7.7.6.
pub(super) fn rtp_dynamic<'p, C: Coder<'p>>(c: &mut C, x: &mut Rfc3095Fields<'p>) -> Step {
    // RFC 4815, section 5.2: equal to that of the list, and ignored when received.
    let mut cc = x.extra[LIST].list().count;
    let mut more = x.rtp.x || x.rtp_extra.stride || x.rtp_extra.time_stride;
    c.uint("V", 2, &mut x.rtp_extra.version)?;
    c.flag("P", &mut x.rtp.p)?;
    let more = c.flag("RX", &mut more)?;
    c.uint("CC", 4, &mut cc)?;
    c.flag("M", &mut x.rtp.m)?;
    c.uint("PT", 7, &mut x.rtp.pt)?;
    c.uint("RTP Sequence Number", 16, &mut x.sn)?;
    c.uint("RTP Timestamp", 32, &mut x.rtp.ts)?;
    compressed_list(c, x.extra[LIST].list.get_or_insert_default(), ListKind::Csrc)?;
    if !more {
        // RFC 4815, section 6.5: "If RX = 0, context(X) is updated to zero."
        x.rtp.x = false;
        return Ok(());
    }
    c.reserved(3)?;
    c.flag("X", &mut x.rtp.x)?;
    c.uint("Mode", 2, &mut x.mode)?;
    let time_stride = c.flag("TIS", &mut x.rtp_extra.time_stride)?;
    if c.flag("TSS", &mut x.rtp_extra.stride)? {
        sdvl(c, "TS_Stride", &mut x.rtp.stride)?;
    }
    if time_stride {
        sdvl(c, "Time_Stride", &mut x.rtp.time_stride)?;
    }
    Ok(())
}
