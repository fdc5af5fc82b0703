//! Messages of EDHOC around `lakers`: what it must not be given is refused here, and errors get their octets. RFC 9528, sections
//! 5 and 6.

use lakers::EdhocMessageBuffer;
use p256::AffinePoint;
use p256::elliptic_curve::point::DecompressPoint as _;

use super::ExchangeError;

/// Cipher suite 2: P-256, AES-CCM-16-64-128, SHA-256.
const SUITE: u8 = 2;

/// Method 3: static Diffie-Hellman keys at both ends.
const METHOD: u8 = 3;

/// Octets of an ephemeral public key, and of the CBOR head before it.
const POINT: usize = 32;
const POINT_HEAD: [u8; 2] = [0x58, POINT as u8];

/// Largest plaintext of messages 2 and 3, in octets: the context of a MAC has room for it beside the largest credential.
const MAX_PLAINTEXT: usize = 72;

/// Octets of a tag of AES-CCM-16-64-128.
const TAG: usize = 8;

/// True if there is a point of P-256 with this x-coordinate.
pub(super) fn is_point(x: &[u8; POINT]) -> bool {
    bool::from(AffinePoint::decompress(&(*x).into(), 1.into()).is_some())
}

/// Checks message 1, and returns it for `lakers`.
pub(super) fn message_1(octets: &[u8]) -> Result<EdhocMessageBuffer, ExchangeError> {
    let malformed = || ExchangeError::Malformed(1);
    let mut rest = octets;
    match uint(&mut rest).ok_or_else(malformed)? {
        METHOD => {}
        method => return Err(ExchangeError::Method(method)),
    }
    let selected = match rest {
        // An array has two suites or more; the last one is selected.
        [head @ 0x82..=0x89, behind @ ..] => {
            rest = behind;
            (0..head & 0x1F).try_fold(0, |_, _| uint(&mut rest))
        }
        _ => uint(&mut rest),
    };
    if selected.ok_or_else(malformed)? != SUITE {
        return Err(ExchangeError::Suite);
    }
    let (point, rest) =
        rest.strip_prefix(&POINT_HEAD).and_then(<[u8]>::split_first_chunk).ok_or_else(malformed)?;
    if !is_point(point) || connection_id(rest).is_none() {
        return Err(malformed());
    }
    buffer(octets).ok_or_else(malformed)
}

/// Checks message 2, and returns it for `lakers`.
pub(super) fn message_2(octets: &[u8]) -> Result<EdhocMessageBuffer, ExchangeError> {
    let content = bytes(octets).and_then(|content| content.split_first_chunk());
    let content = content.filter(|(point, plaintext)| is_point(point) && plaintext.len() <= MAX_PLAINTEXT);
    content.and_then(|_| buffer(octets)).ok_or(ExchangeError::Malformed(2))
}

/// Checks message 3, and returns it for `lakers`.
pub(super) fn message_3(octets: &[u8]) -> Result<EdhocMessageBuffer, ExchangeError> {
    let content = bytes(octets).filter(|content| (TAG..=TAG + MAX_PLAINTEXT).contains(&content.len()));
    content.and_then(|_| buffer(octets)).ok_or(ExchangeError::Malformed(3))
}

/// Divides the payload of a request with message 3 into the connection identifier of the Responder and the message. RFC 9528,
/// appendix A.2.
pub(super) fn identified(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    connection_id(payload)
}

/// Splits a connection identifier off: a byte string, or one octet that is also an integer. RFC 9528, section 3.3.2.
fn connection_id(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    match *octets.first()? {
        0x00..=0x17 | 0x20..=0x37 => octets.split_at_checked(1),
        head @ 0x40..=0x47 => octets.get(1..)?.split_at_checked(usize::from(head & 0x1F)),
        _ => None,
    }
}

/// Returns the content of a byte string that is all of the octets.
fn bytes(octets: &[u8]) -> Option<&[u8]> {
    let (len, content) = match octets {
        [head @ 0x40..=0x57, content @ ..] => (head & 0x1F, content),
        [0x58, len, content @ ..] => (*len, content),
        _ => return None,
    };
    Some(content).filter(|content| content.len() == usize::from(len))
}

/// Splits an unsigned integer below 256 off.
fn uint(octets: &mut &[u8]) -> Option<u8> {
    let (value, rest) = match **octets {
        [value @ 0..=0x17, ref rest @ ..] => (value, rest),
        [0x18, value, ref rest @ ..] => (value, rest),
        _ => return None,
    };
    *octets = rest;
    Some(value)
}

fn buffer(octets: &[u8]) -> Option<EdhocMessageBuffer> {
    EdhocMessageBuffer::new_from_slice(octets).ok()
}

/// Encodes an error message. RFC 9528, section 6.
pub(super) fn error(why: &ExchangeError) -> Vec<u8> {
    match why {
        ExchangeError::Suite => vec![0x02, SUITE],
        ExchangeError::UnknownCredential(_) => vec![0x03, 0xF5],
        // A peer that is not authenticated yet learns nothing else.
        _ => {
            let text = match why {
                ExchangeError::Malformed(_) => "malformed",
                ExchangeError::Method(_) => "method 3 only",
                ExchangeError::Unknown => "no such exchange",
                _ => "not authentic",
            };
            [&[0x01, 0x60 | text.len() as u8], text.as_bytes()].concat()
        }
    }
}

/// Returns the meaning of an error message of the other end; `None` if it is none.
pub(super) fn meaning(octets: &[u8]) -> Option<String> {
    let mut rest = octets;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).escape_debug().to_string();
    match (uint(&mut rest)?, rest) {
        (1, [head @ 0x60..=0x77, why @ ..]) if why.len() == usize::from(head & 0x1F) => Some(text(why)),
        (1, [0x78, len, why @ ..]) if why.len() == usize::from(*len) => Some(text(why)),
        (2, _) => Some("it does not support cipher suite 2".to_owned()),
        (3, _) => Some("it does not have the credential of this end".to_owned()),
        _ => None,
    }
}
