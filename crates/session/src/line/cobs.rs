//! Consistent Overhead Byte Stuffing: S. Cheshire and M. Baker, IEEE/ACM Transactions on Networking, April
//! 1999.
//!
//! A frame consists of blocks, each a code and octets: code `n` below 255 means `n - 1` octets that are not
//! zero, followed by a zero; 255 means 254 octets without a following zero. The zero of the last block is
//! omitted. A frame thus contains no zeros, and is delimited by one.

use super::FramePosition;

/// Delimiter of frames.
pub(super) const LIMIT: u8 = 0;
/// Maximum length of a block without its code, in octets.
pub(super) const BLOCK: usize = 254;

/// Appends a frame, optionally with a leading delimiter.
pub(super) fn encode(limit_first: bool, parts: [&[u8]; 2], out: &mut Vec<u8>) {
    if limit_first {
        out.push(LIMIT);
    }
    let mut code = out.len();
    out.push(1);
    let last = parts.iter().map(|part| part.len()).sum::<usize>();
    for (i, &octet) in (1..).zip(parts.into_iter().flatten()) {
        let mut is_full = false;
        if octet != 0 {
            out.push(octet);
            if let Some(code) = out.get_mut(code) {
                *code += 1;
                is_full = *code == u8::MAX;
            }
        }
        // No code follows a block of 254 octets at the end of a frame.
        if octet == 0 || is_full && i < last {
            code = out.len();
            out.push(1);
        }
    }
    out.push(LIMIT);
}

/// Decodes an octet that is not zero: returns the next state, and the decoded octet.
pub(super) const fn step(state: FramePosition, octet: u8) -> Result<(FramePosition, Option<u8>), u8> {
    Ok(match state {
        FramePosition::Skipping | FramePosition::Escaped => (FramePosition::Skipping, None),
        FramePosition::Block { left: 1, zero } => (FramePosition::BlockEnd { zero }, Some(octet)),
        FramePosition::Block { left, zero } => (FramePosition::Block { left: left - 1, zero }, Some(octet)),
        FramePosition::Start | FramePosition::Octet => (block(octet), None),
        FramePosition::BlockEnd { zero } => (block(octet), if zero { Some(0) } else { None }),
    })
}

/// Returns the block that a code begins.
const fn block(code: u8) -> FramePosition {
    let zero = code < u8::MAX;
    match code {
        0 | 1 => FramePosition::BlockEnd { zero },
        code => FramePosition::Block { left: code - 1, zero },
    }
}
