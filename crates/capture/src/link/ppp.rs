//! PPP: in the framing of RFC 1661 and RFC 1662, in records of pppd, and over Ethernet (PPPoE, RFC 2516).

use super::{NextProtocol, ParsedFrame, Trailer, be16, ethertype};

/// PPP of RFC 1661 and RFC 1662, with or without address and control field, and with a protocol field of 1 or
/// 2 octets; and Cisco HDLC, whose address is 0x0f or 0x8f (RFC 1547, section 4.3.1).
pub(super) fn ppp(data: &[u8]) -> Option<ParsedFrame<'_>> {
    let framing_len = match data {
        [0x0f | 0x8f, 0x00, ..] => return ethertype(data, 2, 4, Trailer::None),
        [0xff, 0x03, ..] => 2,
        // Start of a framing: not a protocol number of one octet.
        [0x0f | 0x8f | 0xff] => return None,
        _ => 0,
    };
    protocol_at(data, framing_len, Trailer::None)
}

/// Direction (0: received, otherwise sent), then PPP.
pub(super) fn ppp_with_dir(data: &[u8]) -> Option<ParsedFrame<'_>> {
    let link = ppp(data.get(1..)?)?;
    Some(ParsedFrame { header_len: link.header_len + 1, ..link })
}

/// Direction in place of the address field, then the control field.
pub(super) fn ppp_pppd(data: &[u8]) -> Option<ParsedFrame<'_>> {
    match data {
        [0 | 1, 0x03, ..] => protocol_at(data, 2, Trailer::None),
        [0 | 1] => None,
        _ => ppp(data),
    }
}

/// A PPPoE session (RFC 2516, section 4) at `at`: version and type (1 octet), code (1), session (2), length
/// (2), then PPP without framing.
pub(super) fn pppoe(data: &[u8], at: usize, trailer: Trailer) -> Option<ParsedFrame<'_>> {
    const HEADER_LEN: usize = 6;
    const VERSION_AND_TYPE: u8 = 0x11;
    const CODE_SESSION_DATA: u8 = 0;

    let header = data.get(at..at + HEADER_LEN)?;
    let start = at + HEADER_LEN;
    if header[..2] != [VERSION_AND_TYPE, CODE_SESSION_DATA] {
        let payload = data.get(start..)?;
        return Some(ParsedFrame { protocol: NextProtocol::Other, payload, header_len: start, trailer });
    }
    // Ethernet padding may follow.
    let end = start + usize::from(be16(header, 4)?);
    protocol_at(data.get(..end).unwrap_or(data), start, trailer)
}

/// A protocol field of one or two octets at `at`, and the payload.
fn protocol_at(data: &[u8], at: usize, trailer: Trailer) -> Option<ParsedFrame<'_>> {
    // The last octet of the protocol number is odd, the first one of two is even (RFC 1661, section 2).
    let (protocol, protocol_len) = match *data.get(at..)? {
        [short, ..] if short % 2 == 1 => (u16::from(short), 1),
        [high, low, ..] => (u16::from_be_bytes([high, low]), 2),
        _ => return None,
    };
    let protocol = match protocol {
        0x0021 => NextProtocol::Ipv4,
        0x0057 => NextProtocol::Ipv6,
        _ => NextProtocol::Other,
    };
    let header_len = at + protocol_len;
    Some(ParsedFrame { protocol, payload: data.get(header_len..)?, header_len, trailer })
}
