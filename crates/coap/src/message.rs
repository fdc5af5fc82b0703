//! Messages for datagrams. RFC 7252, section 3.
//!
//! This module detects everything that sections 3 and 4.1 call a message format error. It does not interpret options.

use core::fmt;

use thinair_wire::coder::Refusal;
use thinair_wire::header::coap::{Coap, CoapOption, CoapOptionsEnd, Code, PAYLOAD_MARKER, Type};

use crate::code::{self, MessageKind};
use crate::option::{MAX_VALUE, OptionHead, Options};
use crate::token::Token;

/// Largest message that any peer has to accept, in octets. RFC 7252, section 4.6.
pub const MAX_MESSAGE: usize = 1152;

/// A well-formed message in a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'p> {
    /// T.
    pub message_type: Type,
    /// Code.
    pub code: Code,
    /// Message ID.
    pub message_id: u16,
    /// Token.
    pub token: Token,
    /// Options.
    pub options: Options<'p>,
    /// Payload; empty if there is none.
    pub payload: &'p [u8],
}

/// A datagram that is not a well-formed message, with the fields that could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Format error.
    pub error: FormatError,
    /// Type and Message ID, with which the message can be rejected; `None` if it is not CoAP at all.
    pub header: Option<(Type, u16)>,
}

/// Format error of a message. The peer is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// Fewer than 4 octets, or another version than 1: to be ignored silently.
    NotCoap,
    /// A Token Length of 9 to 15, or a Token that is cut off.
    Token,
    /// An Empty message with octets after its header.
    NotEmpty,
    /// A code of a reserved class, or of a class for streams only.
    Code(Code),
    /// A malformed option, `offset` octets from the first one.
    Option {
        /// In octets.
        offset: usize,
    },
    /// A Payload Marker without a payload.
    MarkerWithoutPayload,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCoap => write!(f, "not a CoAP message: shorter than 4 octets, or not version 1"),
            Self::Token => write!(f, "the Token is longer than 8 octets, or than the message"),
            Self::NotEmpty => write!(f, "an Empty message with octets after its header"),
            Self::Code(code) => write!(f, "code {code} is reserved"),
            Self::Option { offset } => {
                write!(f, "the option {offset} octets into the options is malformed")
            }
            Self::MarkerWithoutPayload => write!(f, "a Payload Marker without a payload"),
        }
    }
}

impl core::error::Error for FormatError {}

impl<'p> Message<'p> {
    /// Reads the message in a datagram.
    #[inline]
    pub fn read(datagram: &'p [u8]) -> Result<Self, Unreadable> {
        Self::read_with(datagram, |_, _| {})
    }

    /// [`read`](Self::read) that passes every option to `each` in the same walk.
    #[inline]
    pub(crate) fn read_with(
        datagram: &'p [u8],
        mut each: impl FnMut(Code, &CoapOption<'p>),
    ) -> Result<Self, Unreadable> {
        let header = Coap::read(datagram).map_err(|refusal| unreadable(datagram, refusal))?;
        let header_only = Some((header.message_type, header.message_id));
        let refused = |error| Unreadable { error, header: header_only };
        match code::kind(header.code) {
            MessageKind::Empty if datagram.len() > Coap::LEN => return Err(refused(FormatError::NotEmpty)),
            MessageKind::Reserved | MessageKind::Signal => {
                return Err(refused(FormatError::Code(header.code)));
            }
            MessageKind::Empty | MessageKind::Request | MessageKind::Response => {}
        }
        let (options, payload) = split(header.rest, |option| each(header.code, option)).map_err(refused)?;
        Ok(Self {
            message_type: header.message_type,
            code: header.code,
            message_id: header.message_id,
            token: Token::new(header.token).unwrap_or_default(),
            options,
            payload,
        })
    }

    /// Writes the message to the start of `out` and returns its octets.
    #[inline]
    pub fn write(&self, out: &mut [u8]) -> Result<usize, BuildError> {
        let builder = Builder::new(out, self.message_type, self.code, self.message_id, &self.token)?;
        builder.rest(self.options.octets(), self.payload)
    }
}

#[cold]
fn unreadable(datagram: &[u8], refusal: Refusal) -> Unreadable {
    match (refusal, datagram) {
        (Refusal::Malformed, [first, _, high, low, ..]) => {
            let message_type = [Type::Confirmable, Type::NonConfirmable, Type::Acknowledgement, Type::Reset];
            let message_type = message_type[usize::from(first >> 4 & 0b11)];
            let message_id = u16::from_be_bytes([*high, *low]);
            Unreadable { error: FormatError::Token, header: Some((message_type, message_id)) }
        }
        _ => Unreadable { error: FormatError::NotCoap, header: None },
    }
}

/// Splits the octets after a Token into options and payload; passes every option to `each`.
#[inline]
pub(crate) fn split<'p>(
    rest: &'p [u8],
    mut each: impl FnMut(&CoapOption<'p>),
) -> Result<(Options<'p>, &'p [u8]), FormatError> {
    let mut walk = thinair_wire::header::coap::CoapOptions::new(rest);
    walk.by_ref().for_each(|option| each(&option));
    let options = Options::walked(rest.get(..walk.offset()).unwrap_or_default());
    match walk.end() {
        Some(CoapOptionsEnd::Payload(payload)) => Ok((options, payload)),
        Some(CoapOptionsEnd::NoPayload) | None => Ok((options, &[])),
        Some(CoapOptionsEnd::MarkerWithoutPayload) => Err(FormatError::MarkerWithoutPayload),
        Some(CoapOptionsEnd::Malformed { offset }) => Err(FormatError::Option { offset }),
    }
}

/// Reason why a message could not be written. The caller is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The buffer is shorter than the message.
    NoRoom,
    /// An option after one with a larger number.
    OutOfOrder {
        /// Its Option Number.
        number: u16,
        /// Number of the previous option.
        behind: u16,
    },
    /// A value of more than [`MAX_VALUE`] octets.
    TooLong {
        /// Option Number.
        number: u16,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom => write!(f, "the buffer is shorter than the message"),
            Self::OutOfOrder { number, behind } => {
                write!(f, "option {number} must not follow option {behind}")
            }
            Self::TooLong { number } => {
                write!(f, "the value of option {number} has more than {MAX_VALUE} octets")
            }
        }
    }
}

impl core::error::Error for BuildError {}

/// Writes a message into a buffer, from front to back.
///
/// **Options must be in the order of their numbers.** [`OptionList`](crate::option::OptionList) sorts them.
///
/// ```
/// use thinair_coap::{Builder, Code, Token, Type, number};
///
/// let mut buffer = [0; 64];
/// let mut message = Builder::new(&mut buffer, Type::Confirmable, Code::GET, 0x7d34, &Token::EMPTY)?;
/// message.option(number::URI_PATH, b"temperature")?;
/// let len = message.finish();
/// // RFC 7252, figure 16.
/// assert_eq!(&buffer[..len], b"\x40\x01\x7d\x34\xbbtemperature");
/// # Ok::<(), thinair_coap::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Builder<'b> {
    out: &'b mut [u8],
    at: usize,
    number: u16,
}

impl<'b> Builder<'b> {
    /// Writes the header of a datagram's message.
    #[inline]
    pub fn new(
        out: &'b mut [u8],
        message_type: Type,
        code: Code,
        message_id: u16,
        token: &Token,
    ) -> Result<Self, BuildError> {
        let header = Coap { message_type, code, message_id, token: token.octets(), rest: &[] };
        let at = header.write(out, 0).map_err(|_| BuildError::NoRoom)?;
        Ok(Self { out, at, number: 0 })
    }

    /// Appends an option.
    #[inline]
    pub fn option(&mut self, number: u16, value: &[u8]) -> Result<(), BuildError> {
        let Some(delta) = number.checked_sub(self.number) else {
            return Err(BuildError::OutOfOrder { number, behind: self.number });
        };
        if value.len() > MAX_VALUE {
            return Err(BuildError::TooLong { number });
        }
        let before = self.at;
        let head = OptionHead::new(delta, value.len());
        if let Err(error) = self.copy(head.octets()).and_then(|()| self.copy(value)) {
            self.at = before;
            return Err(error);
        }
        self.number = number;
        Ok(())
    }

    /// Appends an option with a uint in as few octets as it needs.
    #[inline]
    pub fn uint(&mut self, number: u16, value: u32) -> Result<(), BuildError> {
        let octets = value.to_be_bytes();
        self.option(number, octets.get(value.leading_zeros() as usize / 8..).unwrap_or_default())
    }

    /// Appends options in order; none of the earlier options may have a larger number.
    #[inline]
    pub fn options(&mut self, options: &Options<'_>) -> Result<(), BuildError> {
        options.iter().try_for_each(|option| self.option(option.number, option.value))
    }

    /// Appends the payload, after a Payload Marker unless it is empty; returns the octets of the message.
    #[inline]
    pub fn payload(mut self, payload: &[u8]) -> Result<usize, BuildError> {
        if !payload.is_empty() {
            self.copy(&[PAYLOAD_MARKER])?;
            self.copy(payload)?;
        }
        Ok(self.at)
    }

    /// Ends the message without a payload; returns its octets.
    #[inline]
    pub const fn finish(self) -> usize {
        self.at
    }

    /// Appends encoded options and the payload; returns the octets of the message.
    #[inline]
    pub(crate) fn rest(mut self, options: &[u8], payload: &[u8]) -> Result<usize, BuildError> {
        self.copy(options)?;
        self.payload(payload)
    }

    #[inline]
    fn copy(&mut self, octets: &[u8]) -> Result<(), BuildError> {
        let place = self.out.get_mut(self.at..).and_then(|out| out.get_mut(..octets.len()));
        place.ok_or(BuildError::NoRoom)?.copy_from_slice(octets);
        self.at += octets.len();
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::number;
    use crate::option::OptionList;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// RFC 7252, figures 16 and 17.
    #[test]
    fn the_messages_of_figures_16_and_17_are_read_and_written() {
        let request = b"\x40\x01\x7d\x34\xbbtemperature";
        let message = Message::read(request).unwrap();
        assert_eq!((message.message_type, message.code), (Type::Confirmable, Code::GET));
        assert!(message.options.is_path("/temperature") && message.payload.is_empty());
        let mut out = [0; 40];
        let len = message.write(&mut out).unwrap();
        assert_eq!(&out[..len], request);

        let response = b"\x61\x45\x7d\x35\x20\xff22.3 C";
        let message = Message::read(response).unwrap();
        assert_eq!(
            (message.message_type, message.code.0, message.message_id),
            (Type::Acknowledgement, 0x45, 0x7d35)
        );
        assert_eq!((message.token.octets(), message.payload), (&[0x20][..], &b"22.3 C"[..]));
        let len = message.write(&mut out).unwrap();
        assert_eq!(&out[..len], response);
    }

    /// RFC 7252, sections 3, 4.1 and 4.2.
    #[test]
    fn every_message_format_error_has_its_name() {
        let error = |octets: &[u8]| Message::read(octets).map(|_| ()).unwrap_err();
        let header = Some((Type::Confirmable, 0x1234));
        for octets in [&b""[..], b"\x40\x01\x12", b"\x80\x01\x12\x34", b"\x00\x01\x12\x34"] {
            assert_eq!(error(octets), Unreadable { error: FormatError::NotCoap, header: None }, "{octets:?}");
        }
        let cases: [(&[u8], FormatError); 9] = [
            (b"\x49\x01\x12\x34abcdefghi", FormatError::Token),
            (b"\x44\x01\x12\x34abc", FormatError::Token),
            (b"\x41\x00\x12\x34a", FormatError::NotEmpty),
            (b"\x40\x00\x12\x34\xff", FormatError::NotEmpty),
            (b"\x40\x20\x12\x34", FormatError::Code(Code::new(1, 0))),
            (b"\x40\xe1\x12\x34", FormatError::Code(Code::new(7, 1))),
            (b"\x40\x01\x12\x34\xb1a\x0f", FormatError::Option { offset: 2 }),
            (b"\x40\x01\x12\x34\xb4abc", FormatError::Option { offset: 0 }),
            (b"\x40\x01\x12\x34\xff", FormatError::MarkerWithoutPayload),
        ];
        for (octets, expected) in cases {
            assert_eq!(error(octets), Unreadable { error: expected, header }, "{octets:?}");
        }
    }

    #[test]
    fn a_builder_refuses_what_cannot_be_written() {
        let mut out = [0; 8];
        assert_eq!(
            Builder::new(&mut out[..3], Type::Reset, Code::EMPTY, 1, &Token::EMPTY).err(),
            Some(BuildError::NoRoom)
        );
        let mut builder = Builder::new(&mut out, Type::Confirmable, Code::GET, 1, &Token::EMPTY).unwrap();
        builder.option(number::URI_QUERY, b"").unwrap();
        assert_eq!(
            builder.option(number::URI_PATH, b""),
            Err(BuildError::OutOfOrder { number: number::URI_PATH, behind: number::URI_QUERY })
        );
        assert_eq!(builder.option(17, &[0; MAX_VALUE + 1]), Err(BuildError::TooLong { number: 17 }));
        assert_eq!(builder.option(17, b"abcd"), Err(BuildError::NoRoom));
        builder.option(17, b"a").unwrap();
        assert_eq!(builder.finish(), 8);
        assert_eq!(out[4..], *b"\xd0\x02\x21a");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            options in vec((0..300_u16, vec(any::<u8>(), 0..20)), 0..6),
            token in vec(any::<u8>(), 0..=8),
            payload in vec(any::<u8>(), 0..30),
            message_id: u16,
        ) {
            let mut list = OptionList::new();
            options.iter().for_each(|(number, value)| list.push(*number, value));
            let token = Token::new(&token).unwrap();
            let mut out = [0; 300];
            let mut builder = Builder::new(&mut out, Type::NonConfirmable, Code::POST, message_id, &token).unwrap();
            builder.options(&list.as_options()).unwrap();
            let len = builder.payload(&payload).unwrap();
            let message = Message::read(&out[..len]).unwrap();
            prop_assert_eq!(message.options.octets(), list.octets());
            prop_assert_eq!((message.token, message.payload), (token, &payload[..]));
            let mut again = [0; 300];
            prop_assert_eq!(message.write(&mut again), Ok(len));
            prop_assert_eq!(&again[..len], &out[..len]);
        }

        #[test]
        fn what_is_read_is_written_octet_by_octet(octets in vec(any::<u8>(), 4..60)) {
            let mut octets = octets;
            octets[0] = octets[0] & 0b0011_0011 | 0x40;
            if let Ok(message) = Message::read(&octets) {
                let mut out = Vec::from([0; 60]);
                let len = message.write(&mut out).unwrap();
                prop_assert_eq!(&out[..len], &octets);
            }
        }
    }
}
