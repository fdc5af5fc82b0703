//! SLIP (RFC 1055).

use super::FramePosition;

/// Delimiter of frames.
pub(super) const END: u8 = 0xC0;
/// Prefix of escaped END and ESC octets.
const ESC: u8 = 0xDB;
/// END after ESC.
const ESC_END: u8 = 0xDC;
/// ESC after ESC.
const ESC_ESC: u8 = 0xDD;

/// Appends a frame, optionally with a leading END.
pub(super) fn encode(end_first: bool, parts: [&[u8]; 2], out: &mut Vec<u8>) {
    if end_first {
        out.push(END);
    }
    for mut part in parts {
        // Octets without escapes are copied in one piece.
        while let Some(at) = part.iter().position(|octet| matches!(*octet, END | ESC)) {
            let (plain, rest) = part.split_at(at);
            out.extend_from_slice(plain);
            out.extend_from_slice(if rest.first() == Some(&END) { &[ESC, ESC_END] } else { &[ESC, ESC_ESC] });
            part = rest.get(1..).unwrap_or_default();
        }
        out.extend_from_slice(part);
    }
    out.push(END);
}

/// Decodes an octet that is not END: returns the next state, and the decoded octet, or the octet as an error
/// if it is invalid here. RFC 1055 would keep such an octet in the packet.
pub(super) const fn step(state: FramePosition, octet: u8) -> Result<(FramePosition, Option<u8>), u8> {
    match (state, octet) {
        (FramePosition::Skipping, _) => Ok((FramePosition::Skipping, None)),
        (FramePosition::Escaped, ESC_END) => Ok((FramePosition::Octet, Some(END))),
        (FramePosition::Escaped, ESC_ESC) => Ok((FramePosition::Octet, Some(ESC))),
        (FramePosition::Escaped, octet) => Err(octet),
        (_, ESC) => Ok((FramePosition::Escaped, None)),
        (_, octet) => Ok((FramePosition::Octet, Some(octet))),
    }
}
