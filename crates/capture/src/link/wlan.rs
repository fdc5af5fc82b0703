//! Data frames of IEEE 802.11, and the headers that drivers prepend: radiotap, Prism and AVS.
//!
//! Packets are extracted from data frames that are neither encrypted nor fragmented (IEEE 802.11-2020,
//! sections 9.2 and 9.3.2; LLC and SNAP: RFC 1042).

use super::{NextProtocol, ParsedFrame, Skip, Trailer, ethertype};

/// Length of a frame check sequence, in octets.
const FCS_LEN: usize = 4;

/// A frame with the properties from the prepended header.
#[derive(Debug, Clone, Copy)]
struct WlanFrame<'a> {
    data: &'a [u8],
    /// Offset of the frame, in octets.
    at: usize,
    /// True if a frame check sequence follows the frame; `None` if the header does not contain this
    /// information.
    has_fcs: Option<bool>,
    /// True if the MAC header is padded to a multiple of four octets.
    is_padded: bool,
}

/// Parses a frame without a prepended header.
pub(super) fn ieee802_11(data: &[u8]) -> Result<ParsedFrame<'_>, Skip> {
    frame(WlanFrame { data, at: 0, has_fcs: None, is_padded: false })
}

/// Parses a radiotap header: version (1 octet), padding (1), length (2), then words of 4 octets that state
/// which fields follow, all least significant octet first (<https://www.radiotap.org>). If the end of the
/// frame was not captured, the check sequence was not either.
pub(super) fn radiotap(data: &[u8], is_truncated: bool) -> Result<ParsedFrame<'_>, Skip> {
    /// Bits of the word that states which fields follow.
    const TSFT: u32 = 1;
    const FLAGS: u32 = 1 << 1;
    const ANOTHER_WORD: u32 = 1 << 31;
    /// Bits of the field Flags.
    const FCS_AT_END: u8 = 0x10;
    const DATA_PAD: u8 = 0x20;
    const BAD_FCS: u8 = 0x40;

    if data.first().is_some_and(|version| *version != 0) {
        return Err(Skip::UnsupportedLinkType);
    }
    let len = usize::from(le16(data, 2).ok_or(Skip::Truncated)?);
    let header = data.get(..len).ok_or(Skip::Truncated)?;
    let word = |at| le32(header, at).ok_or(Skip::Truncated);
    let present = word(4)?;
    let mut at = 8;
    let mut latest = present;
    while latest & ANOTHER_WORD != 0 {
        latest = word(at)?;
        at += 4;
    }
    if present & TSFT != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = match present & FLAGS {
        0 => None,
        _ => Some(*header.get(at).ok_or(Skip::Truncated)?),
    };
    if flags.is_some_and(|flags| flags & BAD_FCS != 0) {
        return Err(Skip::WrongFcs);
    }
    frame(WlanFrame {
        data,
        at: len,
        has_fcs: flags.map(|flags| flags & FCS_AT_END != 0).filter(|_| !is_truncated),
        is_padded: flags.is_some_and(|flags| flags & DATA_PAD != 0),
    })
}

/// Parses a Prism header: message code (4 octets) and length (4), in the byte order of the capturing machine;
/// or AVS, which some drivers record under this type.
pub(super) fn prism(data: &[u8]) -> Result<ParsedFrame<'_>, Skip> {
    const CODES: [u32; 2] = [0x41, 0x44];

    let code = be32(data, 0).ok_or(Skip::Truncated)?;
    if code & AVS_MASK == AVS_MAGIC {
        return avs(data);
    }
    let len = if CODES.contains(&code) { be32(data, 4) } else { le32(data, 4) };
    behind(data, len)
}

const AVS_MASK: u32 = 0xffff_f000;
const AVS_MAGIC: u32 = 0x8021_1000;

/// Parses an AVS header: version (4 octets) and length (4), most significant octet first.
pub(super) fn avs(data: &[u8]) -> Result<ParsedFrame<'_>, Skip> {
    behind(data, be32(data, 4))
}

/// Parses the frame after a header of this length.
fn behind(data: &[u8], len: Option<u32>) -> Result<ParsedFrame<'_>, Skip> {
    let at = len.and_then(|len| usize::try_from(len).ok()).ok_or(Skip::Truncated)?;
    if at > data.len() {
        return Err(Skip::Truncated);
    }
    frame(WlanFrame { data, at, has_fcs: None, is_padded: false })
}

/// Parses a MAC header: Frame Control (2 octets), Duration (2), three addresses (6 each), Sequence Control
/// (2); depending on flags, a fourth address between two access points, QoS Control (2) and HT Control (4).
fn frame(captured: WlanFrame<'_>) -> Result<ParsedFrame<'_>, Skip> {
    const TYPE: u8 = 0b1100;
    const TYPE_DATA: u8 = 0b1000;
    const VERSION: u8 = 0b11;
    const SUBTYPE_NO_DATA: u8 = 0x40;
    const SUBTYPE_QOS: u8 = 0x80;
    const TO_AND_FROM_DS: u8 = 0b11;
    const MORE_FRAGMENTS: u8 = 0x04;
    const PROTECTED: u8 = 0x40;
    const HTC: u8 = 0x80;
    const A_MSDU_PRESENT: u8 = 0x80;

    let WlanFrame { data, at, .. } = captured;
    let [kind, flags] = *data.get(at..).and_then(|frame| frame.first_chunk()).ok_or(Skip::Truncated)?;
    if kind & (TYPE | VERSION) != TYPE_DATA || kind & SUBTYPE_NO_DATA != 0 {
        return Err(Skip::NotData);
    }
    if flags & PROTECTED != 0 {
        return Err(Skip::Encrypted);
    }
    let sequence_control = le16(data, at + 22).ok_or(Skip::Truncated)?;
    if flags & MORE_FRAGMENTS != 0 || sequence_control & 0xf != 0 {
        return Err(Skip::Fragment);
    }
    let mut end = 24;
    if flags & TO_AND_FROM_DS == TO_AND_FROM_DS {
        end += 6;
    }
    let mut is_aggregated = false;
    if kind & SUBTYPE_QOS != 0 {
        is_aggregated = data.get(at + end).ok_or(Skip::Truncated)? & A_MSDU_PRESENT != 0;
        end += 2;
        if flags & HTC != 0 {
            end += 4;
        }
    }
    if captured.is_padded {
        end = usize::next_multiple_of(end, 4);
    }
    let (whole, trailer) = match captured.has_fcs {
        Some(true) => (data.get(..data.len().saturating_sub(FCS_LEN)).unwrap_or_default(), Trailer::None),
        Some(false) => (data, Trailer::None),
        None => (data, Trailer::Fcs),
    };
    match is_aggregated {
        true => a_msdu(whole, at + end, trailer),
        false => llc(whole, at + end, trailer),
    }
}

/// Parses the only subframe of an A-MSDU: destination (6 octets), source (6), length (2), then LLC (IEEE
/// 802.11-2020, section 9.3.2.2.2).
fn a_msdu(data: &[u8], at: usize, trailer: Trailer) -> Result<ParsedFrame<'_>, Skip> {
    let len = data.get(at + 12..at + 14).ok_or(Skip::Truncated)?;
    let start = at + 14;
    let end = start + usize::from(u16::from_be_bytes([len[0], len[1]]));
    // A further subframe begins at a multiple of four octets; fewer octets are padding, or a check sequence.
    let next = at + (end - at).next_multiple_of(4);
    if data.len() > next + FCS_LEN {
        return Err(Skip::Aggregated);
    }
    llc(data.get(..end).unwrap_or(data), start, trailer)
}

/// Parses DSAP, SSAP and control, three octets of a SNAP header for EtherTypes, and the EtherType.
fn llc(data: &[u8], at: usize, trailer: Trailer) -> Result<ParsedFrame<'_>, Skip> {
    const SNAP_RFC1042: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
    /// Bridge-Tunnel Encapsulation Protocol (IEEE 802.1H).
    const SNAP_BRIDGE_TUNNEL: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0xf8];

    let rest = data.get(at..).ok_or(Skip::Truncated)?;
    match rest.first_chunk() {
        Some(&(SNAP_RFC1042 | SNAP_BRIDGE_TUNNEL)) => {
            ethertype(data, at + 6, at + 8, trailer).ok_or(Skip::Truncated)
        }
        Some(_) => Ok(ParsedFrame { protocol: NextProtocol::Other, payload: rest, header_len: at, trailer }),
        None => Err(Skip::Truncated),
    }
}

fn le16(octets: &[u8], at: usize) -> Option<u16> {
    octets.get(at..)?.first_chunk().copied().map(u16::from_le_bytes)
}

fn le32(octets: &[u8], at: usize) -> Option<u32> {
    octets.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn be32(octets: &[u8], at: usize) -> Option<u32> {
    octets.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
