//! ZigBee Encapsulation Protocol (ZEP): frames of IEEE 802.15.4 that a sniffer or a simulator forwards in UDP datagrams.
//!
//! There is no standard. Versions 1 and 2 are implemented as in Wireshark (packet-zep.c):
//!
//! ```text
//! 1: "EX", 1, Channel ID (1), Device ID (2), CRC/LQI mode (1), LQI (1), reserved (7), length (1), frame
//! 2: "EX", 2, 1, Channel ID (1), Device ID (2), CRC/LQI mode (1), LQI (1), NTP time (8), sequence (4), reserved (10),
//!    length (1), frame
//!    "EX", 2, 2, sequence (4): an acknowledgment
//! ```

use crate::link::Skip;
use crate::mac_frame::MacFrame;

/// UDP destination port of ZEP.
pub const ZEP_PORT: u16 = 17_754;

/// Length of the check sequence at the end of a frame, in octets.
const FCS: usize = 2;

/// Returns the frame in a datagram to [`ZEP_PORT`]; `None` if it is not ZEP.
///
/// Some sniffers write the signal strength in place of the check sequence, and indicate it: the frame then
/// has no check sequence.
///
/// # Errors
/// There is no complete frame: [`Skip::Truncated`], or [`Skip::Empty`], as in an acknowledgment.
pub fn zep_frame(datagram: &[u8]) -> Option<Result<MacFrame<'_>, Skip>> {
    let rest = datagram.strip_prefix(b"EX")?;
    let (mode_at, len) = match rest {
        [1, ..] => (6, 16),
        [2, 1, ..] => (7, 32),
        [2, 2, ..] => return Some(Err(Skip::Empty)),
        _ => return None,
    };
    Some(frame(datagram, mode_at, len))
}

fn frame(datagram: &[u8], mode_at: usize, len: usize) -> Result<MacFrame<'_>, Skip> {
    let (header, rest) = datagram.split_at_checked(len).ok_or(Skip::Truncated)?;
    let (Some(mode), Some(&length)) = (header.get(mode_at), header.last()) else {
        return Err(Skip::Truncated);
    };
    let frame = rest.get(..length.into()).ok_or(Skip::Truncated)?;
    if frame.is_empty() {
        return Err(Skip::Empty);
    }
    let (octets, fcs) = frame.split_at_checked(frame.len().wrapping_sub(FCS)).ok_or(Skip::Truncated)?;
    Ok(MacFrame { octets, fcs: if *mode == 0 { &[] } else { fcs } })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const FRAME: &[u8] = b"\x02\x00\x6a\xe4\x79";

    fn one(mode: u8) -> Vec<u8> {
        [&b"EX\x01\x0b\0\x01"[..], &[mode, 0xFF], &[0; 7], &[FRAME.len() as u8], FRAME].concat()
    }

    fn two(mode: u8) -> Vec<u8> {
        [&b"EX\x02\x01\x0b\0\x01"[..], &[mode, 0xFF], &[0; 22], &[FRAME.len() as u8], FRAME].concat()
    }

    #[test]
    fn both_versions_hold_a_frame_with_its_check_sequence_or_without() {
        for datagram in [one, two] {
            let found = |mode| {
                zep_frame(&datagram(mode)).unwrap().map(|frame| (frame.octets.to_vec(), frame.fcs.to_vec()))
            };
            assert_eq!(found(1), Ok((FRAME[..3].to_vec(), FRAME[3..].to_vec())));
            assert_eq!(found(0), Ok((FRAME[..3].to_vec(), Vec::new())));
            // Further octets belong to the datagram only.
            let long = [datagram(1), vec![9; 5]].concat();
            assert_eq!(zep_frame(&long).unwrap().unwrap().octets, &FRAME[..3]);
            let whole = datagram(1);
            for len in 4..whole.len() {
                assert_eq!(zep_frame(&whole[..len]), Some(Err(Skip::Truncated)), "{len}");
            }
        }
        assert_eq!(zep_frame(b"EX\x02\x02\0\0\0\x07"), Some(Err(Skip::Empty)));
    }

    #[test]
    fn other_datagrams_are_none() {
        for datagram in [&b""[..], b"E", b"EX", b"EX\x03\0", b"EX\x02\x03", b"ex\x01"] {
            assert_eq!(zep_frame(datagram), None, "{datagram:?}");
        }
        let mut empty = one(1);
        empty[15] = 0;
        assert_eq!(zep_frame(&empty), Some(Err(Skip::Empty)));
        empty[15] = 1;
        assert_eq!(zep_frame(&empty), Some(Err(Skip::Truncated)));
    }
}
