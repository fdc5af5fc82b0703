//! The CoAP header: its fields, and their place in the chains.

use thinair_wire::checksum;
use thinair_wire::coder::{Coder, Step};
use thinair_wire::header::coap::{Coap, CoapOptionsEnd, Code, MAX_TOKEN, PAYLOAD_MARKER, Type};

/// Largest size of the options of a message, in octets. Messages with more use profile 0x0002.
pub(crate) const MAX_OPTIONS: usize = 123;

/// The CoAP header of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoapHeader<'p> {
    pub(crate) message_type: Type,
    pub(crate) code: Code,
    pub(crate) message_id: u16,
    pub(crate) token: &'p [u8],
    pub(crate) options: &'p [u8],
    /// A Payload Marker follows the options.
    pub(crate) marker: bool,
    /// Every packet has the token behind the Message ID.
    pub(crate) token_changing: bool,
}

impl<'p> CoapHeader<'p> {
    /// Reads the header of a message; `None` if it is invalid, or its options are longer than a context keeps.
    pub(crate) fn read(message: &'p [u8]) -> Option<Self> {
        let coap = Coap::read(message).ok()?;
        let mut walk = coap.options();
        walk.by_ref().for_each(drop);
        let marker = match walk.end()? {
            CoapOptionsEnd::Payload(_) => true,
            CoapOptionsEnd::NoPayload => false,
            CoapOptionsEnd::MarkerWithoutPayload | CoapOptionsEnd::Malformed { .. } => return None,
        };
        let options = coap.rest.get(..walk.offset()).filter(|options| options.len() <= MAX_OPTIONS)?;
        let Coap { message_type, code, message_id, token, .. } = coap;
        Some(Self { message_type, code, message_id, token, options, marker, token_changing: false })
    }

    /// Octets of the header, Payload Marker included.
    pub(crate) fn len(&self) -> usize {
        Coap::LEN + self.token.len() + self.options.len() + usize::from(self.marker)
    }

    /// Writes the header to `out` from octet `at` on, and returns its end; `None` if there is no room.
    pub(crate) fn write(&self, out: &mut [u8], at: usize) -> Option<usize> {
        let Self { message_type, code, message_id, token, options, .. } = *self;
        let end = Coap { message_type, code, message_id, token, rest: options }.write(out, at).ok()?;
        if self.marker {
            *out.get_mut(end)? = PAYLOAD_MARKER;
        }
        Some(end + usize::from(self.marker))
    }

    /// Octets of the token that are dynamic.
    pub(crate) fn changing(&self) -> usize {
        if self.token_changing { self.token.len() } else { 0 }
    }
}

/// CoAP in the static chain: Ver, T, TKL, Code, token if it is static, options.
pub(crate) fn coap_static<'p, C: Coder<'p>>(c: &mut C, x: &mut CoapHeader<'p>, tkl: &mut usize) -> Step {
    let (mut version, mut len) = (1_u8, *tkl as u8);
    c.uint("Ver", 2, &mut version)?;
    c.require(version == 1)?;
    c.uint("T", 2, &mut x.message_type)?;
    c.uint("TKL", 4, &mut len)?;
    c.require(usize::from(len) <= MAX_TOKEN)?;
    *tkl = usize::from(len);
    c.uint("Code", 8, &mut x.code)?;
    c.flag("Token Changing", &mut x.token_changing)?;
    c.flag("Payload Marker", &mut x.marker)?;
    c.reserved(6)?;
    let mut options = x.options.len() as u8;
    c.uint("Options Length", 8, &mut options)?;
    c.require(usize::from(options) <= MAX_OPTIONS)?;
    if !x.token_changing {
        c.slice("Token", *tkl, &mut x.token)?;
    }
    c.slice("Options", usize::from(options), &mut x.options)
}

/// CoAP in the dynamic chain, and behind the UDP checksum of every compressed header: Message ID, token if it changes.
pub(crate) fn coap_dynamic<'p, C: Coder<'p>>(c: &mut C, x: &mut CoapHeader<'p>, tkl: usize) -> Step {
    c.uint("Message ID", 16, &mut x.message_id)?;
    if x.token_changing { c.slice("Token", tkl, &mut x.token) } else { Ok(()) }
}

/// The static fields of a flow, in memory of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptHeader {
    message_type: Type,
    code: Code,
    pub(crate) tkl: usize,
    token: [u8; MAX_TOKEN],
    options: [u8; MAX_OPTIONS],
    options_len: usize,
    marker: bool,
    pub(crate) token_changing: bool,
}

impl KeptHeader {
    pub(crate) fn new(header: &CoapHeader<'_>) -> Self {
        let CoapHeader { message_type, code, marker, token_changing, .. } = *header;
        let (tkl, options_len) = (header.token.len(), header.options.len());
        let (mut token, mut options) = ([0; MAX_TOKEN], [0; MAX_OPTIONS]);
        copy(&mut token, header.token);
        copy(&mut options, header.options);
        Self { message_type, code, tkl, token, options, options_len, marker, token_changing }
    }

    /// The header of a packet of the flow with the static token.
    pub(crate) fn header(&self, message_id: u16) -> CoapHeader<'_> {
        CoapHeader {
            message_type: self.message_type,
            code: self.code,
            message_id,
            token: self.token.get(..self.tkl).unwrap_or_default(),
            options: self.options.get(..self.options_len).unwrap_or_default(),
            marker: self.marker,
            token_changing: self.token_changing,
        }
    }

    /// True if the header is of this flow.
    pub(crate) fn is_flow_of(&self, header: &CoapHeader<'_>) -> bool {
        let flow = |x: &CoapHeader<'_>| {
            (x.message_type, x.code, x.token.len(), x.marker)
                == (self.message_type, self.code, self.tkl, self.marker)
        };
        flow(header) && self.header(0).options == header.options
    }

    pub(crate) fn has_options(&self) -> bool {
        self.options_len > 0
    }

    /// The ports that the flow has in profile 0x0002, which tell it from others between equal ports.
    pub(crate) fn inner_ports(&self, ports: [u8; 4]) -> [u8; 4] {
        let fixed = [self.message_type as u8, self.code.0, self.tkl as u8, u8::from(self.marker)];
        let octets = ports.iter().chain(&fixed).chain(self.header(0).options);
        // FNV-1a.
        let hash =
            octets.fold(0x811C_9DC5_u32, |hash, octet| (hash ^ u32::from(*octet)).wrapping_mul(0x0100_0193));
        hash.to_be_bytes()
    }
}

/// Returns the UDP checksum of a packet with other ports, right if it was right.
pub(crate) fn sum_with(sum: [u8; 2], from: [u8; 4], to: [u8; 4]) -> [u8; 2] {
    let word = |octets: [u8; 4], i: usize| u16::from_be_bytes([octets[i], octets[i + 1]]);
    let sum = match u16::from_be_bytes(sum) {
        0 => 0,
        sum => {
            let sum =
                [0, 2].into_iter().fold(sum, |sum, i| checksum::update(sum, word(from, i), word(to, i)));
            // Zero would mean no checksum.
            if sum == 0 { u16::MAX } else { sum }
        }
    };
    sum.to_be_bytes()
}

/// Copies as many octets as there is room for.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::vec;
    use thinair_wire::coder::{Reader, Refusal, Writer};

    /// A response with a token of three octets: the header has 11 octets.
    const CONTENT: [u8; 15] = *b"\x63\x45\xe4\x64abc\xc0\x21\x01\xffOct ";

    #[test]
    fn a_header_ends_behind_the_payload_marker() {
        let header = CoapHeader::read(&CONTENT).unwrap();
        assert_eq!((header.len(), header.token, header.options), (11, &b"abc"[..], &b"\xc0\x21\x01"[..]));
        assert_eq!((header.message_type, header.code), (Type::Acknowledgement, Code::CONTENT));
        assert_eq!((header.message_id, header.marker, header.token_changing), (58_468, true, false));
        let mut out = [0; 11];
        assert_eq!(KeptHeader::new(&header).header(58_468).write(&mut out, 0), Some(11));
        assert_eq!(out, CONTENT[..11]);
        assert_eq!(header.write(&mut [0; 10], 0), None);
    }

    #[test]
    fn an_unsound_message_has_no_header() {
        assert!(CoapHeader::read(&CONTENT[..10]).is_some_and(|header| !header.marker));
        // Marker without payload, a truncated option, no token, no Message ID.
        for len in [11, 9, 6, 3] {
            assert!(CoapHeader::read(&CONTENT[..len]).is_none(), "{len} octets");
        }
    }

    #[test]
    fn options_are_taken_as_long_as_a_context_keeps_them() {
        let message =
            |len: u8| [&[0x40, 1, 0, 0, 0xBD, len - 2 - 13][..], &vec![7; usize::from(len - 2)]].concat();
        assert_eq!(CoapHeader::read(&message(123)).unwrap().options.len(), MAX_OPTIONS);
        assert!(CoapHeader::read(&message(124)).is_none());
    }

    #[test]
    fn chains_hold_what_was_put_into_them() {
        for (changing, [static_len, dynamic_len]) in [(false, [10, 2]), (true, [7, 5])] {
            let mut header = CoapHeader { token_changing: changing, ..CoapHeader::read(&CONTENT).unwrap() };
            let (sent, mut tkl) = (header, 3);
            let mut out = [0; 32];
            let mut writer = Writer::new(&mut out, 0);
            coap_static(&mut writer, &mut header, &mut tkl).unwrap();
            let head = writer.finish().unwrap();
            assert_eq!(head, static_len);
            let mut writer = Writer::new(&mut out, head);
            coap_dynamic(&mut writer, &mut header, tkl).unwrap();
            let end = writer.finish().unwrap();
            assert_eq!(end - head, dynamic_len);
            let (mut back, mut tkl) = (CoapHeader::default(), 0);
            let mut reader = Reader::contiguous(&out[..end]);
            coap_static(&mut reader, &mut back, &mut tkl).unwrap();
            coap_dynamic(&mut reader, &mut back, tkl).unwrap();
            assert_eq!(back, sent);
            // TKL 9, and more options than are kept.
            for (at, octet) in [(0, 0x69), (3, 124)] {
                let mut broken = out;
                broken[at] = octet;
                let (mut back, mut tkl) = (CoapHeader::default(), 0);
                let read = coap_static(&mut Reader::contiguous(&broken), &mut back, &mut tkl);
                assert_eq!(read, Err(Refusal::Malformed));
            }
        }
    }
}
