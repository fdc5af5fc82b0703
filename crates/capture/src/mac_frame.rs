//! Frames of IEEE 802.15.4 in captures: position of the MAC frame and of its check sequence.
//!
//! The payload is not parsed: its IP headers are compressed, so it does not contain an IP packet as such.

use crate::LinkType;
use crate::link::{Skip, is_truncated};

/// A MAC frame of IEEE 802.15.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacFrame<'a> {
    /// Octets from Frame Control to the end of the payload, without check sequence.
    pub octets: &'a [u8],
    /// Check sequence as received, 2 or 4 octets; empty if it was not captured.
    pub fcs: &'a [u8],
}

/// Type of the TLV of a TAP header with the type of check sequence.
const FCS_TYPE: u16 = 0;

/// Finds the MAC frame of a record. `data`: captured octets; `original_len`: octets on the link.
///
/// # Errors
/// Reason why there is no complete frame. [`Skip::UnsupportedLinkType`] for link types other than the three
/// of IEEE 802.15.4, and for a TAP header of a version other than 0.
pub fn mac_frame(link_type: LinkType, data: &[u8], original_len: u32) -> Result<MacFrame<'_>, Skip> {
    let (frame, fcs_len) = match link_type {
        LinkType::IEEE802_15_4_WITHFCS => (data, 2),
        LinkType::IEEE802_15_4_NOFCS => (data, 0),
        LinkType::IEEE802_15_4_TAP if data.first().is_some_and(|version| *version != 0) => {
            return Err(Skip::UnsupportedLinkType);
        }
        LinkType::IEEE802_15_4_TAP => tap(data).ok_or(Skip::Truncated)?,
        _ => return Err(Skip::UnsupportedLinkType),
    };
    if is_truncated(data, original_len) {
        return Err(Skip::Truncated);
    }
    if frame.is_empty() {
        return Err(Skip::Empty);
    }
    let len = frame.len().checked_sub(fcs_len).ok_or(Skip::Truncated)?;
    let (octets, fcs) = frame.split_at(len);
    Ok(MacFrame { octets, fcs })
}

/// Parses a TAP header: version (1 octet), reserved (1), total length (2), TLVs: type (2), length (2), value,
/// padding to 4; least significant octet first. Returns the octets that follow, and the length of the check
/// sequence at their end.
fn tap(data: &[u8]) -> Option<(&[u8], usize)> {
    let end = usize::from(le16(data, 2)?);
    let header = data.get(..end)?;
    let (mut at, mut fcs_len) = (4, 0);
    while at < end {
        let (kind, len) = (le16(header, at)?, usize::from(le16(header, at + 2)?));
        let value = header.get(at + 4..at + 4 + len)?;
        if kind == FCS_TYPE {
            fcs_len = match value.first()? {
                0 => 0,
                1 => 2,
                _ => 4,
            };
        }
        at += 4 + len.next_multiple_of(4);
    }
    Some((data.get(end..)?, fcs_len))
}

fn le16(octets: &[u8], at: usize) -> Option<u16> {
    octets.get(at..)?.first_chunk().copied().map(u16::from_le_bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const FRAME: &[u8] = b"\x02\x00\x6a\xe4\x79";

    fn find(link_type: LinkType, data: &[u8]) -> Result<(&[u8], &[u8]), Skip> {
        mac_frame(link_type, data, data.len() as u32).map(|frame| (frame.octets, frame.fcs))
    }

    #[test]
    fn the_check_sequence_is_behind_the_frame_or_not_there() {
        assert_eq!(find(LinkType::IEEE802_15_4_WITHFCS, FRAME), Ok(FRAME.split_at(3)));
        assert_eq!(find(LinkType::IEEE802_15_4_NOFCS, FRAME), Ok((FRAME, &[][..])));
        assert_eq!(find(LinkType::IEEE802_15_4_WITHFCS, &FRAME[..1]), Err(Skip::Truncated));
        assert_eq!(find(LinkType::IEEE802_15_4_NOFCS, &[]), Err(Skip::Empty));
        assert_eq!(find(LinkType::ETHERNET, FRAME), Err(Skip::UnsupportedLinkType));
        let cut = mac_frame(LinkType::IEEE802_15_4_NOFCS, FRAME, 6);
        assert_eq!(cut, Err(Skip::Truncated));
    }

    #[test]
    fn a_tap_header_says_which_check_sequence_there_is() {
        for (fcs_type, fcs_len) in [(0, 0), (1, 2), (2, 4)] {
            // Channel assignment first: 3 octets and one octet of padding.
            let mut data = b"\0\0\x14\0\x03\0\x03\0\x0b\0\0\0\0\0\x01\0".to_vec();
            data.extend([fcs_type, 0, 0, 0]);
            data.extend(FRAME);
            let expected = FRAME.split_at(FRAME.len() - fcs_len);
            assert_eq!(find(LinkType::IEEE802_15_4_TAP, &data), Ok(expected));
            for len in 0..20 {
                assert_eq!(find(LinkType::IEEE802_15_4_TAP, &data[..len]), Err(Skip::Truncated), "{len}");
            }
        }
        // Without TLVs; with another version.
        assert_eq!(find(LinkType::IEEE802_15_4_TAP, b"\0\0\x04\0abc"), Ok((&b"abc"[..], &[][..])));
        assert_eq!(find(LinkType::IEEE802_15_4_TAP, b"\x01\0\x04\0abc"), Err(Skip::UnsupportedLinkType));
    }
}
