//! The CoAP message header and an iterator over its options, without loss. RFC 7252, section 3.
//!
//! This module implements the layout of a message over UDP. It does not interpret options, check which codes
//! go with which types, or retransmit. A message format error behind the token (a truncated option, a Payload
//! Marker without payload, octets in an Empty message) is read and written like everything else;
//! [`CoapOptionsEnd`] reports it.
//!
//! A delta or length has exactly one encoding: the extended forms count from 13 and from 269, so a smaller
//! value has no longer form. Only a uint *value* can be longer than needed, see
//! [`CoapOption::is_minimal_uint`].

use core::fmt;
use core::iter::FusedIterator;

use crate::coder::{Coder, NoRoom, Reader, Refusal, Step, Word, Writer};

/// Octet between the options and a payload.
pub const PAYLOAD_MARKER: u8 = 0xFF;

/// Largest length of a token, in octets.
pub const MAX_TOKEN: usize = 8;

/// A CoAP message: every field of its header, and the octets behind it.
///
/// TKL follows from the token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coap<'p> {
    /// Type (T).
    pub message_type: Type,
    /// Code.
    pub code: Code,
    /// Message ID.
    pub message_id: u16,
    /// Token; at most 8 octets.
    pub token: &'p [u8],
    /// Options, Payload Marker and payload as they stand, up to the end of the message.
    pub rest: &'p [u8],
}

impl<'p> Coap<'p> {
    /// Octets of a header without token.
    pub const LEN: usize = 4;

    /// Octets of the message.
    pub fn len(&self) -> usize {
        Self::LEN + self.token.len() + self.rest.len()
    }

    /// Reads the message in `octets`, which ends with them. Another version than 1 is [`Refusal::NotThis`], a
    /// TKL of 9 to 15 is [`Refusal::Malformed`].
    #[inline]
    pub fn read(octets: &'p [u8]) -> Step<Self> {
        // Fast path for valid messages: all fields at once. `read_fields` reads these alike, and classifies
        // the errors of others.
        if let [first, code, high, low, behind @ ..] = octets
            && (0x40..0x80).contains(first)
            && usize::from(first & 0xF) <= MAX_TOKEN
            && let Some((token, rest)) = behind.split_at_checked(usize::from(first & 0xF))
        {
            let message_type = Type::from_u32(u32::from(first >> 4));
            let message_id = u16::from_be_bytes([*high, *low]);
            return Ok(Self { message_type, code: Code(*code), message_id, token, rest });
        }
        Self::read_fields(octets)
    }

    /// Reads the message field by field.
    fn read_fields(octets: &'p [u8]) -> Step<Self> {
        let mut message = Self::default();
        message.code(&mut Reader::contiguous(octets), octets.len())?;
        Ok(message)
    }

    /// Writes the message from octet `at` of `out` on and returns its end. A token of more than 8 octets is
    /// [`NoRoom`].
    #[inline]
    pub fn write(self, out: &mut [u8], at: usize) -> Result<usize, NoRoom> {
        // Fast path: all fields at once, as in `read`.
        let room = out.get_mut(at..).and_then(|out| out.get_mut(..self.len()));
        if let Some([first, code, high, low, behind @ ..]) = room
            && self.token.len() <= MAX_TOKEN
            && let Some((token, rest)) = behind.split_at_mut_checked(self.token.len())
        {
            *first = 0x40 | (self.message_type as u8) << 4 | self.token.len() as u8;
            *code = self.code.0;
            [*high, *low] = self.message_id.to_be_bytes();
            token.copy_from_slice(self.token);
            if !rest.is_empty() {
                rest.copy_from_slice(self.rest);
            }
            return Ok(at + self.len());
        }
        self.write_fields(out, at)
    }

    /// Writes the message field by field.
    fn write_fields(mut self, out: &mut [u8], at: usize) -> Result<usize, NoRoom> {
        let len = self.len();
        let mut writer = Writer::new(out, at);
        self.code(&mut writer, len).map_err(|_| NoRoom)?;
        writer.finish()
    }

    /// Codes the message field by field; it has `len` octets, by the length of the datagram.
    #[inline]
    pub fn code<C: Coder<'p>>(&mut self, c: &mut C, len: usize) -> Step {
        // A longer token than TKL can encode is rejected like a reserved TKL.
        let mut tkl = self.token.len().min(15) as u8;
        c.discriminator(2, 1)?;
        c.uint("T", 2, &mut self.message_type)?;
        c.uint("TKL", 4, &mut tkl)?;
        c.require(usize::from(tkl) <= MAX_TOKEN)?;
        c.uint("Code", 8, &mut self.code)?;
        c.uint("Message ID", 16, &mut self.message_id)?;
        c.slice("Token", usize::from(tkl), &mut self.token)?;
        c.slice("Options and Payload", len.saturating_sub(Self::LEN + usize::from(tkl)), &mut self.rest)
    }

    /// Returns an iterator over the options.
    #[inline]
    pub fn options(&self) -> CoapOptions<'p> {
        CoapOptions::new(self.rest)
    }
}

/// Type of a message. RFC 7252, section 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// CON: asks for an acknowledgement.
    #[default]
    Confirmable = 0,
    /// NON: does not ask for one.
    NonConfirmable = 1,
    /// ACK.
    Acknowledgement = 2,
    /// RST: the message could not be processed.
    Reset = 3,
}

impl Word for Type {
    #[inline]
    fn to_u32(self) -> u32 {
        self as u32
    }

    #[inline]
    fn from_u32(value: u32) -> Self {
        match value & 0b11 {
            0 => Self::Confirmable,
            1 => Self::NonConfirmable,
            2 => Self::Acknowledgement,
            _ => Self::Reset,
        }
    }
}

/// Method or Response Code, printed as c.dd. RFC 7252, section 12.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u8);

impl Code {
    /// 0.00, an Empty message.
    pub const EMPTY: Self = Self::new(0, 0);
    /// 0.01.
    pub const GET: Self = Self::new(0, 1);
    /// 0.02.
    pub const POST: Self = Self::new(0, 2);
    /// 0.03.
    pub const PUT: Self = Self::new(0, 3);
    /// 0.04.
    pub const DELETE: Self = Self::new(0, 4);
    /// 2.04.
    pub const CHANGED: Self = Self::new(2, 4);
    /// 2.05.
    pub const CONTENT: Self = Self::new(2, 5);

    /// Creates the code `class.detail`: class 0 to 7, detail 0 to 31.
    pub const fn new(class: u8, detail: u8) -> Self {
        assert!(class < 8 && detail < 32);
        Self(class << 5 | detail)
    }

    /// Class: 0 for a request or an Empty message, 2 to 5 for a response.
    pub const fn class(self) -> u8 {
        self.0 >> 5
    }

    /// Detail, 0 to 31.
    pub const fn detail(self) -> u8 {
        self.0 & 0b1_1111
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.class(), self.detail())
    }
}

impl Word for Code {
    #[inline]
    fn to_u32(self) -> u32 {
        u32::from(self.0)
    }

    #[inline]
    fn from_u32(value: u32) -> Self {
        Self(value as u8)
    }
}

/// An option with its value: Option Delta, Option Length and Option Value. RFC 7252, section 3.1.
///
/// `delta` is the distance from the number of the previous option. The Payload Marker is not an option: check
/// for it first.
#[inline]
pub fn option<'p, C: Coder<'p>>(c: &mut C, delta: &mut u32, value: &mut &'p [u8]) -> Step {
    let mut length = u32::try_from(value.len()).unwrap_or(u32::MAX);
    option_header(c, delta, &mut length)?;
    c.slice("Option Value", length as usize, value)
}

/// Option Delta and Option Length with their extended forms. RFC 7252, section 3.1.
///
/// Largest value of both: 65 804.
#[inline]
pub fn option_header<'p, C: Coder<'p>>(c: &mut C, delta: &mut u32, length: &mut u32) -> Step {
    let (mut delta_nibble, mut length_nibble) = (nibble(*delta), nibble(*length));
    c.uint("Option Delta", 4, &mut delta_nibble)?;
    c.uint("Option Length", 4, &mut length_nibble)?;
    extended(c, "Option Delta (extended)", delta_nibble, delta)?;
    extended(c, "Option Length (extended)", length_nibble, length)
}

/// Four bits of a delta or length in the first octet of an option.
#[inline]
const fn nibble(value: u32) -> u8 {
    match value {
        0..=12 => value as u8,
        13..=268 => 13,
        _ => 14,
    }
}

#[inline]
fn extended<'p, C: Coder<'p>>(c: &mut C, name: &'static str, nibble: u8, value: &mut u32) -> Step {
    let (width, base) = match nibble {
        0..=12 => {
            *value = u32::from(nibble);
            return Ok(());
        }
        13 => (8, 13),
        14 => (16, 269),
        // Reserved.
        _ => return Err(Refusal::Malformed),
    };
    let mut above = value.wrapping_sub(base);
    c.uint(name, width, &mut above)?;
    // Only a writer can have a value that is too large.
    if above >> width != 0 {
        return Err(Refusal::DoesNotFit);
    }
    *value = base + above;
    Ok(())
}

/// An option of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoapOption<'p> {
    /// Option Number: the sum of the deltas so far.
    pub number: u16,
    /// Option Value.
    pub value: &'p [u8],
    /// The whole option as it stands, with delta and length.
    pub octets: &'p [u8],
}

impl CoapOption<'_> {
    /// The value as a uint (RFC 7252, section 3.2), with or without leading zeros; `None` if it is longer
    /// than 4 octets.
    #[inline]
    pub fn uint(&self) -> Option<u32> {
        (self.value.len() <= 4)
            .then(|| self.value.iter().fold(0, |value, &octet| value << 8 | u32::from(octet)))
    }

    /// True if the value, as a uint, has no leading zero: the integer alone then determines its octets.
    #[inline]
    pub fn is_minimal_uint(&self) -> bool {
        self.value.first() != Some(&0)
    }
}

/// Reason the options of a message end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoapOptionsEnd<'p> {
    /// The Payload Marker and a payload of at least one octet.
    Payload(&'p [u8]),
    /// End of the message.
    NoPayload,
    /// A Payload Marker without payload: a message format error.
    MarkerWithoutPayload,
    /// A reserved delta or length, a truncated option, or an Option Number above 65 535: a message format
    /// error.
    Malformed {
        /// Start of the option, in octets from the first option.
        offset: usize,
    },
}

/// Iterator over the options of a message. RFC 7252, section 3.1.
///
/// **After the last option [`end`](Self::end) returns the reason.** The octets of all options together are
/// the octets visited.
#[derive(Clone, Copy, Debug)]
pub struct CoapOptions<'p> {
    octets: &'p [u8],
    at: usize,
    number: u16,
    end: Option<CoapOptionsEnd<'p>>,
}

impl<'p> CoapOptions<'p> {
    /// Creates an iterator over the options at the start of `octets`, which end with the message.
    #[inline]
    pub const fn new(octets: &'p [u8]) -> Self {
        Self { octets, at: 0, number: 0, end: None }
    }

    /// Octets of the options visited so far.
    #[inline]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// Reason the options end; `None` before the last option was visited.
    #[inline]
    pub const fn end(&self) -> Option<CoapOptionsEnd<'p>> {
        self.end
    }

    /// Skips the remaining options and returns the reason they end.
    #[inline]
    pub fn into_end(mut self) -> CoapOptionsEnd<'p> {
        loop {
            match self.step() {
                Ok(option) => self.advance(&option),
                Err(end) => return end,
            }
        }
    }

    #[inline]
    fn step(&self) -> Result<CoapOption<'p>, CoapOptionsEnd<'p>> {
        let octets = self.octets.get(self.at..).unwrap_or_default();
        match octets {
            [] => Err(CoapOptionsEnd::NoPayload),
            [PAYLOAD_MARKER] => Err(CoapOptionsEnd::MarkerWithoutPayload),
            [PAYLOAD_MARKER, payload @ ..] => Err(CoapOptionsEnd::Payload(payload)),
            _ => read_option(self.number, octets).ok_or(CoapOptionsEnd::Malformed { offset: self.at }),
        }
    }

    #[inline]
    fn advance(&mut self, option: &CoapOption<'p>) {
        self.at += option.octets.len();
        self.number = option.number;
    }
}

/// Reads the option at the start of `octets`, behind an option with number `previous`.
#[inline]
fn read_option(previous: u16, octets: &[u8]) -> Option<CoapOption<'_>> {
    // Fast path for options without extended forms. `read_any_option` reads these alike.
    if let Some((&head, behind)) = octets.split_first() {
        let (delta, length) = (head >> 4, usize::from(head & 0xF));
        if delta < 13 && length < 13 {
            let number = previous.checked_add(u16::from(delta))?;
            return Some(CoapOption { number, value: behind.get(..length)?, octets: octets.get(..=length)? });
        }
    }
    read_any_option(previous, octets)
}

/// Reads an option with or without extended forms.
fn read_any_option(previous: u16, octets: &[u8]) -> Option<CoapOption<'_>> {
    let mut reader = Reader::contiguous(octets);
    let (mut delta, mut value) = (0, [].as_slice());
    option(&mut reader, &mut delta, &mut value).ok()?;
    let number = u16::try_from(u32::from(previous) + delta).ok()?;
    Some(CoapOption { number, value, octets: octets.get(..reader.position())? })
}

impl<'p> Iterator for CoapOptions<'p> {
    type Item = CoapOption<'p>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.step() {
            Ok(option) => {
                self.advance(&option);
                Some(option)
            }
            Err(end) => {
                self.end = Some(end);
                None
            }
        }
    }
}

impl FusedIterator for CoapOptions<'_> {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    const URI_PATH: u16 = 11;
    const CONTENT_FORMAT: u16 = 12;
    const URI_QUERY: u16 = 15;

    /// The request of RFC 7252, figure 16.
    const GET: [u8; 16] = *b"\x40\x01\x7d\x34\xbbtemperature";
    /// The response of RFC 7252, figure 17.
    const CONTENT: [u8; 12] = *b"\x61\x45\x7d\x35\x20\xff22.3 C";
    /// captures/coap_udp6_post_query_cbor.pcap, frame 1.
    const POST: [u8; 32] =
        *b"\x42\x02\x19\xf3\xb5\x92\xb1t\x11\x3c\x38id=dev42\xff\xa2at\xfb\0\0\0\0\0\0\0\0";

    fn options(rest: &[u8]) -> (Vec<(u16, &[u8])>, CoapOptionsEnd<'_>) {
        let mut walk = CoapOptions::new(rest);
        let options = walk.by_ref().map(|option| (option.number, option.value)).collect();
        (options, walk.end().unwrap())
    }

    #[test]
    fn the_request_of_figure_16_is_read() {
        let message = Coap::read(&GET).unwrap();
        assert_eq!(
            message,
            Coap {
                message_type: Type::Confirmable,
                code: Code::GET,
                message_id: 0x7D34,
                token: &[],
                rest: &GET[4..]
            }
        );
        assert_eq!(
            options(message.rest),
            ([(URI_PATH, &b"temperature"[..])].to_vec(), CoapOptionsEnd::NoPayload)
        );
    }

    #[test]
    fn the_response_of_figure_17_is_read() {
        let message = Coap::read(&CONTENT).unwrap();
        assert_eq!((message.message_type, message.code), (Type::Acknowledgement, Code::CONTENT));
        assert_eq!(message.token, [0x20]);
        assert_eq!(options(message.rest), (Vec::new(), CoapOptionsEnd::Payload(b"22.3 C")));
        assert_eq!(message.code.to_string(), "2.05");
    }

    #[test]
    fn the_request_of_a_real_stack_is_read() {
        let message = Coap::read(&POST).unwrap();
        assert_eq!(message.code, Code::POST);
        let (options, end) = options(message.rest);
        assert_eq!(
            options,
            [(URI_PATH, &b"t"[..]), (CONTENT_FORMAT, &[60][..]), (URI_QUERY, &b"id=dev42"[..])]
        );
        assert_eq!(end, CoapOptionsEnd::Payload(&POST[20..]));
        assert_eq!(message.options().into_end(), end);
    }

    /// The datagram determines where a message ends, so every prefix that has its token is a message.
    #[test]
    fn every_truncation_is_refused_or_told_by_the_end() {
        for len in 0..POST.len() {
            let message = Coap::read(&POST[..len]);
            let end = message.map(|message| message.options().into_end());
            let expected = match len {
                0..6 => Err(Refusal::Malformed),
                6 | 8 | 10 | 19 => Ok(CoapOptionsEnd::NoPayload),
                7 => Ok(CoapOptionsEnd::Malformed { offset: 0 }),
                9 => Ok(CoapOptionsEnd::Malformed { offset: 2 }),
                11..19 => Ok(CoapOptionsEnd::Malformed { offset: 4 }),
                20 => Ok(CoapOptionsEnd::MarkerWithoutPayload),
                _ => Ok(CoapOptionsEnd::Payload(&POST[20..len])),
            };
            assert_eq!(end, expected, "{len} octets");
        }
    }

    #[test]
    fn another_version_is_not_this() {
        for version in [0, 2, 3_u8] {
            let mut octets = GET;
            octets[0] = octets[0] & 0x3F | version << 6;
            assert_eq!(Coap::read(&octets), Err(Refusal::NotThis));
        }
    }

    #[test]
    fn a_reserved_token_length_is_malformed() {
        for tkl in 0..16 {
            let mut octets = GET;
            octets[0] |= tkl;
            assert_eq!(Coap::read(&octets).err(), (tkl > 8).then_some(Refusal::Malformed), "TKL {tkl}");
        }
    }

    #[test]
    fn a_token_that_tkl_cannot_say_has_no_room() {
        for len in 9..20 {
            let token = &[7; 20][..len];
            assert_eq!(Coap { token, ..Coap::default() }.write(&mut [0; 40], 0), Err(NoRoom));
        }
    }

    #[test]
    fn every_end_of_the_options_is_told() {
        let end = |rest| CoapOptions::new(rest).into_end();
        assert_eq!(end(b""), CoapOptionsEnd::NoPayload);
        assert_eq!(end(b"\xff"), CoapOptionsEnd::MarkerWithoutPayload);
        assert_eq!(end(b"\x60\xff"), CoapOptionsEnd::MarkerWithoutPayload);
        assert_eq!(end(b"\x60\xff\xff"), CoapOptionsEnd::Payload(b"\xff"));
        // Option Delta 15 without being the Payload Marker, and Option Length 15.
        assert_eq!(end(b"\x60\xf1a"), CoapOptionsEnd::Malformed { offset: 1 });
        assert_eq!(end(b"\x60\x1faaaaaaaaaaaaaaaaaaaaa"), CoapOptionsEnd::Malformed { offset: 1 });
        // Truncated in the value, in the extended delta, in the extended length.
        assert_eq!(end(b"\xb4tim"), CoapOptionsEnd::Malformed { offset: 0 });
        assert_eq!(end(b"\xe0\x01"), CoapOptionsEnd::Malformed { offset: 0 });
        assert_eq!(end(b"\x0e\x01"), CoapOptionsEnd::Malformed { offset: 0 });
    }

    #[test]
    fn a_marker_inside_a_value_is_none() {
        assert_eq!(
            options(b"\x12\xff\xff\xff\xff"),
            ([(1, &[0xFF, 0xFF][..])].to_vec(), CoapOptionsEnd::Payload(&[0xFF]))
        );
    }

    #[test]
    fn an_option_number_ends_at_65_535() {
        // 269 + 0xFEF2 = 65 535.
        assert_eq!(options(b"\xe0\xfe\xf2"), ([(65_535, &[][..])].to_vec(), CoapOptionsEnd::NoPayload));
        assert_eq!(options(b"\xe0\xfe\xf2\x00").0.len(), 2);
        assert_eq!(options(b"\xe0\xfe\xf2\x10").1, CoapOptionsEnd::Malformed { offset: 3 });
        assert_eq!(options(b"\xe0\xfe\xf3").1, CoapOptionsEnd::Malformed { offset: 0 });
        assert_eq!(options(b"\xe0\xff\xff").1, CoapOptionsEnd::Malformed { offset: 0 });
    }

    #[test]
    fn each_form_of_delta_and_length_has_its_range() {
        let written = |mut delta: u32, mut length: u32| {
            let mut out = [0; 5];
            let mut writer = Writer::new(&mut out, 0);
            option_header(&mut writer, &mut delta, &mut length)?;
            let end = writer.finish().unwrap();
            Ok(out[..end].to_vec())
        };
        assert_eq!(written(0, 0), Ok([0x00].to_vec()));
        assert_eq!(written(12, 12), Ok([0xCC].to_vec()));
        assert_eq!(written(13, 0), Ok([0xD0, 0].to_vec()));
        assert_eq!(written(268, 13), Ok([0xDD, 255, 0].to_vec()));
        assert_eq!(written(269, 268), Ok([0xED, 0, 0, 255].to_vec()));
        assert_eq!(written(65_804, 269), Ok([0xEE, 255, 255, 0, 0].to_vec()));
        assert_eq!(written(65_805, 0), Err(Refusal::DoesNotFit));
        assert_eq!(written(0, 65_805), Err(Refusal::DoesNotFit));
        assert_eq!(written(0, u32::MAX), Err(Refusal::DoesNotFit));
    }

    #[test]
    fn a_uint_may_be_longer_than_needed() {
        let read = |value| {
            let option = CoapOption { number: 6, value, octets: &[] };
            (option.uint(), option.is_minimal_uint())
        };
        assert_eq!(read(b""), (Some(0), true));
        assert_eq!(read(b"\0"), (Some(0), false));
        assert_eq!(read(b"\x01"), (Some(1), true));
        assert_eq!(read(b"\0\x01"), (Some(1), false));
        assert_eq!(read(b"\xff\xff\xff\xff"), (Some(u32::MAX), true));
        assert_eq!(read(b"\x01\0\0\0\0"), (None, true));
    }

    #[test]
    fn a_code_is_its_class_and_detail() {
        for octet in 0..=255 {
            let code = Code(octet);
            assert_eq!(Code::new(code.class(), code.detail()), code);
        }
        assert_eq!(Code::new(7, 31).to_string(), "7.31");
    }

    proptest! {
        #[test]
        fn the_shortcut_says_what_the_format_says(previous: u16, octets in vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(read_option(previous, &octets), read_any_option(previous, &octets));
            prop_assert_eq!(Coap::read(&octets), Coap::read_fields(&octets));
        }

        #[test]
        fn the_shortcut_writes_what_the_format_writes(
            message_type in 0..4_u32, code: u8, message_id: u16,
            token in vec(any::<u8>(), 0..11), rest in vec(any::<u8>(), 0..9), at in 0..5_usize, room in 0..40_usize,
        ) {
            let message = Coap {
                message_type: Type::from_u32(message_type),
                code: Code(code),
                message_id,
                token: &token,
                rest: &rest,
            };
            let (mut out, mut expected) = (std::vec![0xA5; room], std::vec![0xA5; room]);
            let written = message.write(&mut out, at);
            prop_assert_eq!(written, message.write_fields(&mut expected, at));
            if written.is_ok() {
                prop_assert_eq!(out, expected);
            }
        }

        #[test]
        fn what_is_written_is_what_was_read(first in 0x40..0x80_u8, mut octets in vec(any::<u8>(), 1..64)) {
            octets[0] = first;
            if let Ok(message) = Coap::read(&octets) {
                let mut out = [0; 64];
                prop_assert_eq!(message.write(&mut out, 0), Ok(octets.len()));
                prop_assert_eq!(&out[..octets.len()], &octets);
            }
        }

        #[test]
        fn what_is_read_is_what_was_written(
            t in 0..4_u32,
            code: u8,
            message_id: u16,
            token in vec(any::<u8>(), 0..=8),
            rest in vec(any::<u8>(), 0..50),
        ) {
            let message = Coap {
                message_type: Type::from_u32(t),
                code: Code(code),
                message_id,
                token: &token,
                rest: &rest,
            };
            let mut out = [0; 64];
            let len = message.write(&mut out, 0).unwrap();
            prop_assert_eq!(len, message.len());
            prop_assert_eq!(Coap::read(&out[..len]), Ok(message));
        }

        /// The iterator visits every octet, and an option written again equals the option that was read: a
        /// delta or length has no second encoding.
        #[test]
        fn options_written_again_are_the_same(octets in random_options()) {
            let mut walk = CoapOptions::new(&octets);
            let mut out = std::vec![0; octets.len()];
            let mut writer = Writer::new(&mut out, 0);
            let mut previous = 0;
            for CoapOption { number, mut value, octets: _ } in walk.by_ref() {
                let mut delta = u32::from(number - previous);
                previous = number;
                prop_assert_eq!(option(&mut writer, &mut delta, &mut value), Ok(()));
            }
            let end = writer.finish().unwrap();
            prop_assert_eq!(end, walk.offset());
            prop_assert_eq!(&out[..end], &octets[..end]);
            let behind = match walk.end().unwrap() {
                CoapOptionsEnd::Payload(payload) => 1 + payload.len(),
                CoapOptionsEnd::NoPayload => 0,
                CoapOptionsEnd::MarkerWithoutPayload => 1,
                CoapOptionsEnd::Malformed { offset } => octets.len() - offset,
            };
            prop_assert_eq!(end + behind, octets.len());
            prop_assert_eq!(walk.next(), None);
            prop_assert_eq!(CoapOptions::new(&octets).into_end(), walk.end().unwrap());
        }

        #[test]
        fn options_that_were_written_are_read(
            plan in vec((
                prop_oneof![0..30_u32, 250..300_u32, 0..20_000_u32],
                prop_oneof![0..20_usize, 250..300_usize],
            ), 0..4),
            payload in proptest::option::of(vec(any::<u8>(), 1..4)),
        ) {
            let value = [0xA5; 300];
            let mut out = [0; 2048];
            let mut writer = Writer::new(&mut out, 0);
            let mut expected = Vec::new();
            let mut number = 0;
            for &(mut delta, len) in &plan {
                number += delta as u16;
                expected.push((number, &value[..len]));
                option(&mut writer, &mut delta, &mut &value[..len]).unwrap();
            }
            if let Some(payload) = &payload {
                writer.copy(&[PAYLOAD_MARKER]);
                writer.copy(payload);
            }
            let end = writer.finish().unwrap();
            let expected_end = payload.as_deref().map_or(CoapOptionsEnd::NoPayload, CoapOptionsEnd::Payload);
            prop_assert_eq!(options(&out[..end]), (expected, expected_end));
        }
    }

    /// Octets of which most are options with small values; extended forms are frequent.
    fn random_options() -> impl Strategy<Value = Vec<u8>> {
        let octet = prop_oneof![
            Just(0),
            Just(0xFF),
            (0..16_u8, 0..3_u8).prop_map(|(delta, length)| delta << 4 | length),
            (13..16_u8, 13..16_u8).prop_map(|(delta, length)| delta << 4 | length),
            any::<u8>(),
        ];
        vec(octet, 0..400)
    }
}
