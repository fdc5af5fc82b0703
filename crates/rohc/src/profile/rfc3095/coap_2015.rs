//! Profile 0x0080: profile 0x0002 with the CoAP header added, as published in M. Majanen, P. Koskela and M. Valta,
//! "Constrained Application Protocol Profile for Robust Header Compression Framework" (2015), section IV.
//!
//! A flow is identified by addresses, ports, Type, Code, TKL and all options "as one combined bundle", including the Payload
//! Marker; these and the Token are static. Every packet carries the full Message ID, and the Token once it has changed. The
//! flag for the latter is in the static chain, because the published size of IR-DYN leaves no octet for it in the dynamic
//! one. IR and IR-DYN carry packets without payload, since most requests have none.

use thinair_wire::coder::{Coder, Step};
use thinair_wire::crc::Check;
use thinair_wire::header::coap::{Coap, CoapOptionsEnd, Code, MAX_TOKEN, PAYLOAD_MARKER, Type};
use thinair_wire::header::udp::Udp;

use super::Rfc3095Fields;
use super::compress;
use super::decompress;
use super::list::Item;
use super::own::UpperContext;
use super::table::{self, ItemTable, NoMemory, Pool};
use crate::decompressor::Failure;
use crate::profile::Format;

/// Largest size of the options of a message, in octets: that of one block. Messages with more use profile 0x0002.
pub(super) const MAX_OPTIONS: usize = table::DATA - 1;

/// Owner of the options in the table: none of the IP headers.
const OWNER: usize = 4;

/// Proof that the profile is in this build. Without it there is no header of it, so that other builds have no code for one.
#[cfg(feature = "coap-2015")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Built;
#[cfg(not(feature = "coap-2015"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Built {}

impl Built {
    const fn proof() -> Option<Self> {
        #[cfg(feature = "coap-2015")]
        return Some(Self);
        #[cfg(not(feature = "coap-2015"))]
        return None;
    }
}

/// Fields of a CoAP header that the profile keeps, without its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "coap-2015", derive(Default))]
pub(super) struct CoapFields {
    pub(super) built: Built,
    /// The token as a number of TKL octets: high and low half, to avoid a larger alignment.
    pub(super) token: [u32; 2],
    pub(super) message_id: u16,
    pub(super) message_type: Type,
    pub(super) code: Code,
    pub(super) tkl: u8,
    /// Octets of the options.
    pub(super) options_len: u8,
    /// Every packet has the token behind the Message ID.
    pub(super) token_changing: bool,
    /// A Payload Marker follows the options.
    pub(super) marker: bool,
}

impl CoapFields {
    /// Initial fields of a context; `None` if the profile is not in this build.
    pub(super) fn initial() -> Option<Self> {
        let (message_type, code) = Default::default();
        Built::proof().map(|built| Self {
            built,
            token: [0; 2],
            message_id: 0,
            message_type,
            code,
            tkl: 0,
            options_len: 0,
            token_changing: false,
            marker: false,
        })
    }

    /// Octets of the header, Payload Marker included.
    pub(super) fn len(&self) -> usize {
        Coap::LEN + usize::from(self.tkl) + usize::from(self.options_len) + usize::from(self.marker)
    }

    /// Number of octets of the token in every packet.
    pub(super) fn changing_octets(&self) -> usize {
        if self.token_changing { usize::from(self.tkl) } else { 0 }
    }

    /// True if another header is of this flow, without comparing the options.
    fn is_flow_of(&self, other: &Self) -> bool {
        let flow = |x: &Self| (x.message_type, x.code, x.tkl, x.marker, x.options_len);
        flow(self) == flow(other)
    }

    /// Writes the header with its options to `out` from octet `at` on; `None` if there is no room.
    #[cold]
    pub(super) fn write(&self, options: &[u8], out: &mut [u8], at: usize) -> Option<()> {
        let [high, low] = self.token.map(u64::from);
        let token = (high << 32 | low).to_be_bytes();
        let header = Coap {
            message_type: self.message_type,
            code: self.code,
            message_id: self.message_id,
            token: token.get(MAX_TOKEN.checked_sub(usize::from(self.tkl))?..)?,
            rest: options,
        };
        let end = header.write(out, at).ok()?;
        if self.marker {
            *out.get_mut(end)? = PAYLOAD_MARKER;
        }
        Some(())
    }
}

/// The CoAP header of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoapHeader<'p> {
    pub(super) fields: CoapFields,
    pub(super) options: &'p [u8],
}

impl<'p> CoapHeader<'p> {
    /// Reads the header of a message; `None` if it is invalid, or its options are longer than a context keeps.
    pub(crate) fn read(message: &'p [u8]) -> Option<Self> {
        let built = Built::proof()?;
        let coap = Coap::read(message).ok()?;
        let mut walk = coap.options();
        walk.by_ref().for_each(drop);
        let marker = match walk.end()? {
            CoapOptionsEnd::Payload(_) => true,
            CoapOptionsEnd::NoPayload => false,
            CoapOptionsEnd::MarkerWithoutPayload | CoapOptionsEnd::Malformed { .. } => return None,
        };
        let options = coap.rest.get(..walk.offset()).filter(|options| options.len() <= MAX_OPTIONS)?;
        let fields = CoapFields {
            built,
            token: halves(coap.token.iter().fold(0, |token, &octet| token << 8 | u64::from(octet))),
            message_id: coap.message_id,
            message_type: coap.message_type,
            code: coap.code,
            tkl: coap.token.len() as u8,
            options_len: options.len() as u8,
            token_changing: false,
            marker,
        };
        Some(Self { fields, options })
    }

    /// Octets of the header, Payload Marker included.
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// True if a flow of it needs memory.
    pub(crate) fn has_options(&self) -> bool {
        !self.options.is_empty()
    }

    /// Passes the fields that distinguish flows to `word`, word by word.
    #[cold]
    pub(crate) fn key(&self, mut word: impl FnMut(u64)) {
        let CoapFields { message_type, code: Code(code), tkl, options_len, marker, .. } = self.fields;
        word(u64::from_be_bytes([message_type as u8, code, tkl, options_len, u8::from(marker), 0, 0, 0]));
        for chunk in self.options.chunks(8) {
            word(chunk.iter().fold(0, |octets, &octet| octets << 8 | u64::from(octet)));
        }
    }
}

/// CoAP in the static chain: Ver, T, TKL, Code, token if it is static, options.
#[cold]
pub(super) fn coap_static<'p, C: Coder<'p>>(c: &mut C, x: &mut CoapHeader<'p>) -> Step {
    let mut version = 1_u8;
    c.uint("Ver", 2, &mut version)?;
    c.require(version == 1)?;
    c.uint("T", 2, &mut x.fields.message_type)?;
    c.uint("TKL", 4, &mut x.fields.tkl)?;
    c.require(usize::from(x.fields.tkl) <= MAX_TOKEN)?;
    c.uint("Code", 8, &mut x.fields.code)?;
    c.flag("Token Changing", &mut x.fields.token_changing)?;
    c.flag("Payload Marker", &mut x.fields.marker)?;
    c.reserved(6)?;
    c.uint("Options Length", 8, &mut x.fields.options_len)?;
    let len = usize::from(x.fields.options_len);
    c.require(len <= MAX_OPTIONS)?;
    if !x.fields.token_changing {
        token(c, &mut x.fields)?;
    }
    c.slice("Options", len, &mut x.options)
}

/// CoAP in the dynamic chain, and behind the UDP checksum of every compressed header: Message ID, token if it
/// changes.
#[cold]
pub(super) fn coap_dynamic<'p, C: Coder<'p>>(c: &mut C, x: &mut CoapHeader<'p>) -> Step {
    c.uint("Message ID", 16, &mut x.fields.message_id)?;
    if x.fields.token_changing { token(c, &mut x.fields) } else { Ok(()) }
}

/// High and low half of a token.
fn halves(token: u64) -> [u32; 2] {
    [(token >> 32) as u32, token as u32]
}

/// The token, in words of at most 32 bits.
fn token<'p, C: Coder<'p>>(c: &mut C, x: &mut CoapFields) -> Step {
    let [mut high, mut low] = x.token;
    let bits = 8 * u32::from(x.tkl);
    if bits > 32 {
        c.uint("Token", bits - 32, &mut high)?;
    }
    if bits > 0 {
        c.uint("Token", bits.min(32), &mut low)?;
    }
    // Octets of the context beyond the length of this token are not part of it.
    let mask = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
    x.token = halves((u64::from(high) << 32 | u64::from(low)) & mask);
    Ok(())
}

fn item(options: &[u8]) -> Item<'_> {
    Item { kind: 0, length: 0, body: options }
}

/// True if a header is of the flow whose fields a context keeps.
#[cold]
pub(super) fn is_coap_flow_of(
    table: &ItemTable,
    pool: &Pool<'_>,
    x: &CoapFields,
    header: &CoapHeader<'_>,
) -> bool {
    x.is_flow_of(&header.fields) && stored(table, pool, x) == Some(header.options)
}

/// Returns the options that a context keeps; `None` if it does not have them.
fn stored<'t>(table: &ItemTable, pool: &'t Pool<'_>, x: &CoapFields) -> Option<&'t [u8]> {
    if x.options_len == 0 {
        return Some(&[]);
    }
    let place = table.find(pool, OWNER, 0)?;
    Some(table::stored(pool, place).body).filter(|options| options.len() == usize::from(x.options_len))
}

fn keep(table: &mut ItemTable, pool: &mut Pool<'_>, x: &CoapFields, options: &[u8]) -> Result<(), NoMemory> {
    if options.is_empty() || stored(table, pool, x) == Some(options) {
        return Ok(());
    }
    table.put(pool, OWNER, 0, &item(options))
}

impl compress::Rfc3095SenderContext {
    /// Stores the fields of a CoAP header that identify the flow.
    #[cold]
    pub(crate) fn start_coap(
        &mut self,
        header: &CoapHeader<'_>,
        pool: &mut Pool<'_>,
    ) -> Result<(), NoMemory> {
        self.own = UpperContext::Coap(header.fields);
        keep(&mut self.table, pool, &header.fields, header.options)
    }

    /// True if a CoAP header belongs to this flow.
    #[cold]
    pub(super) fn is_coap_flow_of(&self, header: &CoapHeader<'_>, pool: &Pool<'_>) -> bool {
        let UpperContext::Coap(coap) = &self.own else { return false };
        is_coap_flow_of(&self.table, pool, coap, header)
    }

    /// Copies the fields of a CoAP header, and returns true if its token is the first one that differs, which the static
    /// chain has to carry.
    #[cold]
    pub(super) fn note_coap<'p>(&mut self, x: &mut Rfc3095Fields<'p>, header: &CoapHeader<'p>) -> bool {
        let UpperContext::Coap(coap) = &mut self.own else { return false };
        let turns = !coap.token_changing && coap.token != header.fields.token;
        coap.token_changing |= turns;
        let fields = CoapFields { token_changing: coap.token_changing, ..header.fields };
        x.coap = Some(CoapHeader { fields, ..*header });
        turns
    }
}

impl decompress::Rfc3095ReceiverContext {
    /// The options of the flow.
    #[cold]
    pub(super) fn options<'t>(&self, pool: &'t Pool<'_>, format: Format) -> Result<&'t [u8], Failure> {
        let options = match &self.own {
            decompress::UpperFields::Coap(coap) => stored(&self.table, pool, coap),
            _ => None,
        };
        options.ok_or(Failure::UnknownItem(format))
    }

    /// Stores the CoAP header of a verified IR or IR-DYN packet; the latter has no options.
    #[cold]
    pub(super) fn keep_coap(&mut self, header: &CoapHeader<'_>, pool: &mut Pool<'_>) -> Result<(), Failure> {
        keep(&mut self.table, pool, &header.fields, header.options).map_err(|_| Failure::NoMemory)?;
        self.own = decompress::UpperFields::Coap(header.fields);
        Ok(())
    }
}

/// Layout of a CoAP header behind a UDP header, for CRCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoapLayout {
    built: Built,
    /// Octets of the header.
    len: u16,
    /// Octets of a changing token.
    changing: u8,
}

impl CoapLayout {
    pub(super) fn of(x: &CoapFields) -> Self {
        Self { built: x.built, len: x.len() as u16, changing: x.changing_octets() as u8 }
    }

    /// Index of the CoAP header in a chain of headers that ends with it.
    fn start(self, chain: usize) -> usize {
        chain.saturating_sub(usize::from(self.len))
    }

    /// Returns the CRC-STATIC octets of UDP and CoAP: ports, Ver to Code, and the octets behind a changing token.
    pub(super) fn crc_static(self, chain: usize) -> [(usize, usize); 3] {
        let at = self.start(chain);
        let udp = at.saturating_sub(Udp::LEN);
        [(udp, udp + 4), (at, at + 2), (at + Coap::LEN + usize::from(self.changing), chain)]
    }

    /// Continues a check over the CRC-DYNAMIC octets of `header`: UDP length and checksum, Message ID, and a changing token.
    #[cold]
    pub(super) fn update_dynamic(self, check: Check, crc: u8, header: &[u8]) -> u8 {
        let at = self.start(header.len());
        let udp = header.get(at.saturating_sub(4)..at).unwrap_or_default();
        let coap = header.get(at + 2..at + Coap::LEN + usize::from(self.changing)).unwrap_or_default();
        check.update(check.update(crc, udp), coap)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::profile::ProfileId;
    use crate::profile::rfc3095::header::{ExtensionLists, rebuild};
    use crate::profile::rfc3095::{IpFields, IpHeader, IpVersion};
    use alloc::vec;
    use alloc::vec::Vec;
    use thinair_wire::coder::{Reader, Refusal, Writer};

    /// A response with a token of three octets: the header has 11 octets.
    const CONTENT: [u8; 15] = *b"\x63\x45\xe4\x64abc\xc0\x21\x01\xffOct ";

    #[test]
    fn a_header_ends_behind_the_payload_marker() {
        let header = CoapHeader::read(&CONTENT).unwrap();
        assert_eq!((header.len(), header.options), (11, &b"\xc0\x21\x01"[..]));
        let expected = CoapFields {
            built: Built,
            token: [0, 0x61_6263],
            message_id: 58_468,
            message_type: Type::Acknowledgement,
            code: Code::CONTENT,
            tkl: 3,
            options_len: 3,
            token_changing: false,
            marker: true,
        };
        assert_eq!(header.fields, expected);
        let mut out = [0; 11];
        assert_eq!(expected.write(header.options, &mut out, 0), Some(()));
        assert_eq!(out, CONTENT[..11]);
        assert_eq!(expected.write(header.options, &mut [0; 10], 0), None);
    }

    #[test]
    fn an_unsound_message_has_no_header() {
        assert!(CoapHeader::read(&CONTENT[..10]).is_some_and(|header| !header.fields.marker));
        // Marker without payload, a truncated option, no token, no Message ID.
        for len in [11, 9, 6, 3] {
            assert!(CoapHeader::read(&CONTENT[..len]).is_none(), "{len} octets");
        }
    }

    #[test]
    fn options_are_taken_as_long_as_a_block_holds_them() {
        let message =
            |len: u8| [&[0x40, 1, 0, 0, 0xBD, len - 2 - 13][..], &vec![7; usize::from(len - 2)]].concat();
        assert_eq!(CoapHeader::read(&message(123)).unwrap().options.len(), MAX_OPTIONS);
        assert!(CoapHeader::read(&message(124)).is_none());
    }

    fn written(run: impl FnOnce(&mut Writer<'_>) -> Step) -> Vec<u8> {
        let mut out = [0; 64];
        let mut writer = Writer::new(&mut out, 0);
        run(&mut writer).unwrap();
        let end = writer.finish().unwrap();
        out[..end].to_vec()
    }

    #[test]
    fn chains_carry_a_token_where_the_flag_says() {
        let mut x = CoapHeader::read(&CONTENT).unwrap();
        assert_eq!(written(|c| coap_static(c, &mut x)), b"\x63\x45\x40\x03abc\xc0\x21\x01");
        assert_eq!(written(|c| coap_dynamic(c, &mut x)), b"\xe4\x64");
        x.fields.token_changing = true;
        assert_eq!(written(|c| coap_static(c, &mut x)), b"\x63\x45\xc0\x03\xc0\x21\x01");
        assert_eq!(written(|c| coap_dynamic(c, &mut x)), b"\xe4\x64abc");
    }

    #[test]
    fn a_static_chain_that_cannot_be_kept_is_refused() {
        let read = |octets: &[u8]| {
            let mut x = CoapHeader { fields: CoapFields::default(), options: &[] };
            coap_static(&mut Reader::contiguous(octets), &mut x)
        };
        let mut chain = [&[0x40, 1, 0, 123][..], &[7; 124]].concat();
        assert_eq!(read(&chain), Ok(()));
        chain[3] = 124;
        assert_eq!(read(&chain), Err(Refusal::Malformed));
        assert_eq!(read(&[0x80, 1, 0, 0]), Err(Refusal::Malformed));
        assert_eq!(read(&[0x49, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), Err(Refusal::Malformed));
    }

    /// RFC 3095, section 5.9.2: CRC-STATIC octets in their order, then CRC-DYNAMIC ones. In CoAP, the Message ID and a
    /// changing token are CRC-DYNAMIC.
    #[test]
    fn message_id_and_a_changing_token_are_crc_dynamic() {
        let header = CoapHeader::read(&CONTENT).unwrap();
        for token_changing in [false, true] {
            let mut x = Rfc3095Fields::new(ProfileId::Coap2015);
            let ip = IpHeader { version: IpVersion::V6, protocol: 17, ttl: 64, ..IpHeader::EMPTY };
            x.ips[0] = IpFields { header: ip, ..IpFields::EMPTY };
            x.udp.source_port = 5683;
            x.udp.checksum = 0x1234;
            x.coap = Some(CoapHeader { fields: CoapFields { token_changing, ..header.fields }, ..header });
            let mut lists = ExtensionLists::default();
            lists.options = Some(header.options);
            let mut out = [0; 80];
            let layout = rebuild(&x.chain(), &lists, 4, &mut out).unwrap();
            let octets = &out[..layout.len];
            assert_eq!((octets.len(), &octets[48..]), (48 + 11, &CONTENT[..11]));

            let [parts, dynamic] = if token_changing {
                [&[0..4, 6..40, 40..44, 48..50, 55..59][..], &[4..6, 44..48, 50..55]]
            } else {
                [&[0..4, 6..40, 40..44, 48..50, 52..59][..], &[4..6, 44..48, 50..52]]
            };
            for check in [Check::Crc3, Check::Crc7] {
                let covered: Vec<u8> =
                    parts.iter().chain(dynamic).flat_map(|range| octets[range.clone()].to_vec()).collect();
                let state = layout.crc_static(check, octets);
                assert_eq!(layout.crc_dynamic(check, state, octets), check.of(&covered));
            }
        }
    }
}
