//! EDHOC message 3 in front of the first protected request. RFC 9668, section 3.

use alloc::vec::Vec;

use thinair_wire::time::Instant;

use super::context::Context;
use crate::request::Response;

/// Responder of EDHOC: the application runs it, and the endpoint passes it each message 3 that comes with a protected request.
pub trait KeyExchange: Send {
    /// Completes the exchange in which this end has the connection identifier `id` by `message_3`, a CBOR byte string.
    ///
    /// # Errors
    /// There is no such exchange, or it fails: the response is sent without protection.
    fn complete(
        &mut self,
        now: Instant,
        id: &[u8],
        message_3: &[u8],
    ) -> Result<Established, Response<'static>>;
}

/// Result of a key exchange.
#[derive(Debug)]
pub struct Established {
    /// New context, whose Recipient ID is the connection identifier of this end.
    pub context: Context,
    /// Recipient ID of an earlier context, which ends.
    pub replaced: Option<Vec<u8>>,
}

/// Returns the payload of a protected request with message 3.
pub(super) fn join(message_3: &[u8], ciphertext: &[u8]) -> Vec<u8> {
    [message_3, ciphertext].concat()
}

/// Divides the payload of a request with the EDHOC option into message 3, which is a CBOR byte string, and the ciphertext. RFC
/// 9668, section 3.3.1.
pub(super) fn split(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, len) = match *payload {
        [first @ 0x40..=0x57, ..] => (1, usize::from(first & 0x1F)),
        [0x58, len, ..] => (2, usize::from(len)),
        [0x59, high, low, ..] => (3, usize::from(u16::from_be_bytes([high, low]))),
        _ => return None,
    };
    payload.split_at_checked(head + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_divided_behind_the_byte_string() {
        assert_eq!(split(b"\x43abcdef"), Some((&b"\x43abc"[..], &b"def"[..])));
        assert_eq!(split(b"\x58\x03abc"), Some((&b"\x58\x03abc"[..], &b""[..])));
        assert_eq!(split(b"\x59\x00\x01ab"), Some((&b"\x59\x00\x01a"[..], &b"b"[..])));
        for octets in
            [&b""[..], b"\x43ab", b"\x58", b"\x58\x05abc", b"\x59\x00", b"\x63abc", b"\x5f\x41a\xff"]
        {
            assert_eq!(split(octets), None, "{octets:?}");
        }
    }
}
