//! Messages in streams. RFC 8323, sections 3.2 and 5.
//!
//! There is no Type and no Message ID: the stream is reliable. Instead, each message begins with its length.

use thinair_wire::header::coap::{CoapOption, Code, MAX_TOKEN};

use crate::event::StreamError;
use crate::message::{BuildError, split};
use crate::option::Options;
use crate::token::Token;

/// Largest message that the other side has to accept before its CSM: base value of Max-Message-Size, in octets. RFC 8323,
/// section 5.3.1.
pub const MAX_MESSAGE_SIZE: usize = 1152;

/// Options of signals. RFC 8323, section 5; each signal has its own numbers.
pub mod signal {
    /// Max-Message-Size of CSM: uint of 0 to 4 octets.
    pub const MAX_MESSAGE_SIZE: u16 = 2;
    /// Block-Wise-Transfer of CSM: empty.
    pub const BLOCK_WISE_TRANSFER: u16 = 4;
    /// Custody of Ping and Pong: empty.
    pub const CUSTODY: u16 = 2;
    /// Bad-CSM-Option of Abort: uint of 0 to 2 octets.
    pub const BAD_CSM_OPTION: u16 = 2;
}

/// A message in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamMessage<'p> {
    /// Code.
    pub code: Code,
    /// Token.
    pub token: Token,
    /// Options.
    pub options: Options<'p>,
    /// Payload; empty if there is none.
    pub payload: &'p [u8],
}

/// Header before the Token, with the length of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamMessageHeader {
    /// Octets before the Token, 2 to 6.
    pub header: usize,
    /// Octets of the Token.
    pub token: usize,
    /// Octets after the Token.
    pub rest: usize,
}

impl StreamMessageHeader {
    /// Reads the header of the message at the start of `octets`. `None` if it is incomplete.
    pub fn read(octets: &[u8]) -> Result<Option<Self>, StreamError> {
        let Some(first) = octets.first() else { return Ok(None) };
        let (nibble, token) = (first >> 4, usize::from(first & 0xF));
        if token > MAX_TOKEN {
            return Err(StreamError::Token);
        }
        let (width, base) = match nibble {
            13 => (1, 13),
            14 => (2, 269),
            15 => (4, 65_805),
            short => (0, u64::from(short)),
        };
        let Some(extended) = octets.get(1..1 + width) else { return Ok(None) };
        let length = base + extended.iter().fold(0, |length, &octet| length << 8 | u64::from(octet));
        let rest = usize::try_from(length).unwrap_or(usize::MAX);
        Ok(Some(Self { header: 2 + width, token, rest }))
    }

    /// Octets of the message.
    pub const fn len(&self) -> usize {
        self.rest.saturating_add(self.header + self.token)
    }

    /// Always false: there is at least a header.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

impl<'p> StreamMessage<'p> {
    /// Reads the message at the start of `octets`, and returns it with its number of octets. `None` if it is incomplete.
    pub fn read(octets: &'p [u8]) -> Result<Option<(Self, usize)>, StreamError> {
        Self::read_with(octets, |_, _| {})
    }

    /// [`read`](Self::read) that passes every option to `each` in the same walk.
    pub(crate) fn read_with(
        octets: &'p [u8],
        mut each: impl FnMut(Code, &CoapOption<'p>),
    ) -> Result<Option<(Self, usize)>, StreamError> {
        let Some(header) = StreamMessageHeader::read(octets)? else { return Ok(None) };
        let Some(message) = octets.get(..header.len()) else { return Ok(None) };
        let (front, rest) = message.split_at(header.header + header.token);
        let token = Token::new(front.get(header.header..).unwrap_or_default()).unwrap_or_default();
        let code = Code(front.get(header.header - 1).copied().unwrap_or_default());
        let (options, payload) = split(rest, |option| each(code, option)).map_err(|_| StreamError::Format)?;
        Ok(Some((Self { code, token, options, payload }, message.len())))
    }

    /// Writes the message to the start of `out` and returns its octets.
    pub fn write(&self, out: &mut [u8]) -> Result<usize, BuildError> {
        let rest = rest_len(self.options.octets(), self.payload);
        let (header, len) = header(rest, self.code, &self.token);
        let marker: &[u8] = if self.payload.is_empty() { &[] } else { &[0xFF] };
        let parts = [
            header.get(..len).unwrap_or_default(),
            self.token.octets(),
            self.options.octets(),
            marker,
            self.payload,
        ];
        let mut at = 0;
        for part in parts {
            let place = out.get_mut(at..).and_then(|out| out.get_mut(..part.len()));
            place.ok_or(BuildError::NoRoom)?.copy_from_slice(part);
            at += part.len();
        }
        Ok(at)
    }
}

/// Returns the octets after a Token.
pub(crate) fn rest_len(options: &[u8], payload: &[u8]) -> usize {
    options.len() + if payload.is_empty() { 0 } else { 1 + payload.len() }
}

/// Returns the header of a message with `rest` octets after its Token, at most 4 GiB, and the octets of the header.
pub(crate) fn header(rest: usize, code: Code, token: &Token) -> ([u8; 6], usize) {
    let (nibble, width, base) = match rest {
        0..=12 => (rest as u8, 0, rest),
        13..=268 => (13, 1, 13),
        269..=65_804 => (14, 2, 269),
        _ => (15, 4, 65_805),
    };
    let mut header = [0; 6];
    header[0] = nibble << 4 | token.len() as u8;
    let extended = ((rest - base) as u32).to_be_bytes();
    header[1..1 + width].copy_from_slice(&extended[4 - width..]);
    header[1 + width] = code.0;
    (header, 2 + width)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::code;
    use crate::number;
    use crate::option::OptionList;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// RFC 8323, section 3.2: "a CoAP message just containing a 2.03 code with the Token 7f and no options or payload is
    /// encoded as shown in Figure 6": 01 43 7f.
    #[test]
    fn figure_6_a_message_without_options() {
        let (frame, len) = StreamMessage::read(b"\x01\x43\x7f").unwrap().unwrap();
        assert_eq!((frame.code, frame.token.octets(), len), (code::VALID, &[0x7F][..], 3));
        let mut out = [0; 3];
        assert_eq!(frame.write(&mut out), Ok(3));
        assert_eq!(out, *b"\x01\x43\x7f");
    }

    /// RFC 8323, section 3.2, table 1.
    #[test]
    fn each_form_of_the_length_has_its_range() {
        for (rest, expected) in [
            (12, &b"\xc0\x45"[..]),
            (13, b"\xd0\x00\x45"),
            (268, b"\xd0\xff\x45"),
            (269, b"\xe0\x00\x00\x45"),
            (65_804, b"\xe0\xff\xff\x45"),
            (65_805, b"\xf0\x00\x00\x00\x00\x45"),
        ] {
            let (octets, len) = header(rest, Code::CONTENT, &Token::EMPTY);
            assert_eq!(&octets[..len], expected);
            let read = StreamMessageHeader::read(expected).unwrap().unwrap();
            assert_eq!((read.header, read.token, read.rest), (len, 0, rest));
        }
        assert_eq!(StreamMessageHeader::read(b"\x09"), Err(StreamError::Token));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_nothing_less(
            options in vec((0..300_u16, vec(any::<u8>(), 0..20)), 0..6),
            token in vec(any::<u8>(), 0..=8),
            payload in vec(any::<u8>(), 0..400),
        ) {
            let mut list = OptionList::new();
            options.iter().for_each(|(number, value)| list.push(*number, value));
            list.push_uint(number::MAX_AGE, 5);
            let frame = StreamMessage {
                code: Code::POST,
                token: Token::new(&token).unwrap(),
                options: list.as_options(),
                payload: &payload,
            };
            let mut out = [0; 1_000];
            let len = frame.write(&mut out).unwrap();
            prop_assert_eq!(StreamMessage::read(&out[..len]), Ok(Some((frame.clone(), len))));
            prop_assert_eq!(StreamMessage::read(&out), Ok(Some((frame, len))));
            for cut in 0..len {
                prop_assert_eq!(StreamMessage::read(&out[..cut]), Ok(None));
            }
        }
    }
}
