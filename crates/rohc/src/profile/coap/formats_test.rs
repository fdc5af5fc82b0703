//! Tests of `docs/coap-profile.md` against the code. A Describer that runs the function of each format prints its
//! description, and all octets of the examples come from a compressor and pass a decompressor.
//!
//! With `THINAIR_BLESS=1` the tests write the blocks of the document.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use thinair_wire::checksum::Sum;
use thinair_wire::coder::sdvl;
use thinair_wire::header::coap::{Code, Type};

use super::formats::{self, chain, long, short};
use super::outline::{Class, Holes, append};
use super::state::{ChecksumMode, CoapState, CoapToken, IpIdMode, MessageIdMode, Template, TokenMode};
use super::{Base, BaseEnd, BasePath, BaseTemplate, Carries, HeaderFields, Whole};
use crate::compressor::FormatPolicy;
use crate::exchange::Exchanges;
use crate::id::{Format, ProfileId};
use crate::profile::notation::{self, described};
use crate::storage::Slots;
use crate::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Endpoint, Instant, Integrity, Mode, ProfileSet, Refresh,
};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/coap-profile.md");

fn hold(name: &str, block: &str) {
    notation::hold(DOCUMENT, name, block);
}

fn state(v6: bool, checksum: ChecksumMode, ip_id_mode: IpIdMode) -> CoapState {
    let mut state = CoapState::new();
    (state.path.v6, state.path.checksum, state.path.ip_id_mode) = (v6, checksum, ip_id_mode);
    state
}

#[test]
fn short_formats_are_those_of_the_document() {
    let one = |title: &str, format: Format, choices: u32| {
        described(title, choices, |c| short(format, c, &mut HeaderFields::new(0)))
    };
    hold("format pt_0", &one("COMPRESSED pt_0", Format::Pt0, 0));
    hold("format pt_0c", &one("COMPRESSED pt_0c", Format::Pt0c, 0));
    hold("format pt_1", &one("COMPRESSED pt_1", Format::Pt1, 0));
    hold("format pt_1t", &one("COMPRESSED pt_1t", Format::Pt1t, 0));
    hold("format pt_1tc", &one("COMPRESSED pt_1tc", Format::Pt1tc, 0));
    for (name, format) in [("pt_2", Format::Pt2), ("pt_2c", Format::Pt2c)] {
        let block = [
            one(&format!("COMPRESSED {name}, F = 0"), format, 0),
            one(&format!("COMPRESSED {name}, F = 1, msn = 0"), format, 0b0111_1111),
            one(&format!("COMPRESSED {name}, F = 1, msn = 1"), format, 0b1111_1111),
        ];
        hold(&format!("format {name}"), &block.join("\n"));
    }
}

#[test]
fn long_formats_are_those_of_the_document() {
    let of = |v6| state(v6, ChecksumMode::Zero, IpIdMode::Constant);
    let one = |title: &str, format: Format, v6: bool, choices: u32| {
        let mut whole = Whole::new(of(v6).path);
        whole.definition.token.len = 2;
        described(title, choices, |c| long(format, c, &mut HeaderFields::new(0), &mut whole))
    };
    let block = [
        one("COMPRESSED co_common, ip = 0, control = 0, definition = 0", Format::CoCommon, false, 0b000),
        one("COMPRESSED co_common, IPv4, all flags 1, TKL = 2", Format::CoCommon, false, 0b111),
    ];
    hold("format co_common", &block.join("\n"));
    hold("format co_repair", &one("COMPRESSED co_repair, IPv6, TKL = 2", Format::CoRepair, true, 0));
    let block = [
        one("COMPRESSED IR, IPv4, TKL = 2", Format::Ir, false, 0),
        one("COMPRESSED IR, IPv6, TKL = 2", Format::Ir, true, 1),
    ];
    hold("format IR", &block.join("\n"));
    let replicated = |title: &str, v6: bool, choices: u32| {
        let (mut x, mut whole) = (HeaderFields::new(0), Whole::new(of(v6).path));
        described(title, choices, |c| {
            long(Format::IrCr, c, &mut x, &mut whole)?;
            formats::differences(c, &mut x, &mut whole)
        })
    };
    let block = [
        replicated("COMPRESSED IR-CR, F = 0", true, 0),
        replicated("COMPRESSED IR-CR, IPv6, F = 1, all flags 1", true, 0x1FF),
        replicated("COMPRESSED IR-CR, IPv4, F = 1, source = 1, all other flags 0", false, 0b1001),
    ];
    hold("format IR-CR", &block.join("\n"));
}

#[test]
fn parts_are_those_of_the_document() {
    let v4 = state(false, ChecksumMode::Zero, IpIdMode::Constant);
    let v6 = state(true, ChecksumMode::Zero, IpIdMode::Constant);
    let block = [
        described("ip_dynamic, IPv4", 0, |c| formats::ip_dynamic(c, &mut { v4.path })),
        described("ip_dynamic, IPv6", 0, |c| formats::ip_dynamic(c, &mut { v6.path })),
    ];
    hold("format ip_dynamic", &block.join("\n"));
    hold("format control", &described("control", 0, |c| formats::control(c, &mut { v4.path })));
    let defined = |title: &str, mode: TokenMode| {
        let mut template = Template { token_mode: mode, token: CoapToken::of_uint(0, 4), ..Template::EMPTY };
        described(title, 0, |c| formats::definition(c, &mut template, &mut &[][..]))
    };
    let block = [
        defined("definition, token = 0 (static), TKL = 4", TokenMode::Static),
        defined("definition, token = 4 (irregular)", TokenMode::Irregular),
    ];
    hold("format definition", &block.join("\n"));
    let number = |title: &str, choices: u32| described(title, choices, |c| sdvl(c, "number", &mut 0));
    let block = [
        number("number, 0 to 127", 0),
        number("number, 128 to 16,383", 0b1),
        number("number, 16,384 to 2,097,151", 0b11),
        number("number, 2,097,152 to 536,870,911", 0b111),
    ];
    hold("format number", &block.join("\n"));
}

#[test]
fn chains_are_those_of_the_document() {
    let mut room = [0; 64];
    let mut len = 0;
    for class in [Class::Lsb, Class::Irregular(2), Class::Prefix(6, b"t="), Class::Variable] {
        assert!(append(&mut room, &mut len, 6, &class));
    }
    let outline = &room[..len];
    let one = |title: &str, state: &CoapState, carries: Carries, message_id: MessageIdMode| {
        let mut template = Template {
            token_mode: TokenMode::Irregular,
            message_id,
            token: CoapToken::of_uint(0, 4),
            ..Template::EMPTY
        };
        template.settle(outline);
        let mut x = HeaderFields::new(0);
        x.holes = Holes::of(outline, template.holes);
        x.carries = carries;
        x.token = template.token;
        described(title, 0, |c| chain(c, state, &template, false, &mut x))
    };
    let raw = state(false, ChecksumMode::Raw, IpIdMode::Lsb);
    let elided = state(true, ChecksumMode::Elided, IpIdMode::Irregular);
    let block = [
        one(
            "chain, nothing flagged, IPv4, modes: raw, lsb, irregular, irregular(4);\n\
             options: lsb, irregular(2), prefix(6, 2 octets), variable",
            &raw,
            Carries::NOTHING,
            MessageIdMode::Irregular,
        ),
        one(
            "chain, everything flagged, the same, but message_id = of_request",
            &raw,
            Carries::EVERYTHING,
            MessageIdMode::OfRequest,
        ),
        one(
            "chain, everything flagged, IPv6, ip_id = irregular, checksum elided, message_id = counted",
            &elided,
            Carries::EVERYTHING,
            MessageIdMode::Counted,
        ),
    ];
    hold("format chain", &block.join("\n"));
}

/// A CoAP message in a UDP datagram; addresses end in `from` and `to`.
struct Datagram<'a> {
    v6: bool,
    ends: [u8; 2],
    ports: [u16; 2],
    ip_id: u16,
    ttl: u8,
    coap: &'a [u8],
}

impl Datagram<'_> {
    fn octets(&self) -> Vec<u8> {
        let len = (8 + self.coap.len()) as u16;
        let [addresses, head] = if self.v6 {
            let address = |end: u8| [0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end];
            let [a, b] = len.to_be_bytes();
            [self.ends.map(address).concat(), [0x60, 0, 0, 0, a, b, 17, self.ttl].to_vec()]
        } else {
            let [a, b] = (20 + len).to_be_bytes();
            let [c, d] = self.ip_id.to_be_bytes();
            let mut head = [0x45, 0, a, b, c, d, 0x40, 0, self.ttl, 17, 0, 0].to_vec();
            let addresses = self.ends.map(|end| [10, 0, 0, end]).concat();
            let sum = Sum::ZERO.octets(&head).octets(&addresses).checksum().to_be_bytes();
            head[10..12].copy_from_slice(&sum);
            [addresses, head]
        };
        let ports = self.ports.map(u16::to_be_bytes).concat();
        let sum = Sum::ZERO.octets(&addresses).octets(&ports).word(17).word(len).word(len).octets(self.coap);
        [&head[..], &addresses, &ports, &len.to_be_bytes(), &sum.checksum().to_be_bytes(), self.coap].concat()
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(" ")
}

/// Formats octets in lines of 24, the first of them behind a label.
fn lines(label: &str, octets: &[u8]) -> String {
    let mut text = String::new();
    for (i, line) in octets.chunks(24).enumerate() {
        text += &format!("   {:<9} {}\n", if i == 0 { label } else { "" }, hex(line));
    }
    text
}

/// Two ends, and the text of their conversation for the document.
struct ExampleConversation {
    ends: [Endpoint<'static>; 2],
    text: String,
    count: usize,
    now: u64,
}

impl ExampleConversation {
    fn new(integrity: Integrity, format: FormatPolicy, bases: &[Base]) -> Self {
        let profiles = ProfileSet::v1().with(ProfileId::Coap).unwrap_or(ProfileSet::UNCOMPRESSED);
        let Ok(channel) = Channel::new(CidSpace::Small, 15, profiles) else { panic!("15 is a small CID") };
        let channel = channel.with_integrity_below(integrity);
        let mut config = CompressorConfig::new(channel);
        (config.repetitions, config.refresh, config.coap.format) = (1, Refresh::Off, format);
        let end = || {
            let far = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) };
            let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(0)));
            let decompressor = Decompressor::new(far, DecompressorMemory::owned(channel.sizes().blocks(0)));
            Endpoint::new(
                compressor.with_bases(Slots::owned(bases.to_vec())),
                decompressor.with_bases(Slots::owned(bases.to_vec())),
            )
            .with_exchanges(Exchanges::owned(16), Exchanges::owned(16))
        };
        Self { ends: [end(), end()], text: String::new(), count: 0, now: 0 }
    }

    /// Carries a packet from one end to the other, describes it, and returns its octets on the link.
    fn say(&mut self, from: usize, what: &str, packet: &Datagram<'_>) -> Vec<u8> {
        self.carry(from, Some(what), packet)
    }

    fn carry(&mut self, from: usize, what: Option<&str>, packet: &Datagram<'_>) -> Vec<u8> {
        self.count += 1;
        self.now += 10;
        let now = Instant::from_millis(self.now);
        let [a, b] = &mut self.ends;
        let (near, far) = if from == 0 { (a, b) } else { (b, a) };
        let (mut out, mut back) = ([0; 256], [0; 256]);
        let sent = packet.octets();
        let Ok(compressed) = near.send(now, &sent, &mut out) else { panic!("{what:?} is not compressed") };
        let len = compressed.len;
        let mut told: Vec<(&str, String, bool)> = Vec::new();
        far.decompressor.dissect(&out[..len], |field| {
            let value = match field.name {
                "discriminator" => format!("'{:0width$b}'", field.value, width = field.bits as usize),
                _ if !field.octets.is_empty() => hex(field.octets),
                _ if field.bits > 7 => format!("{:0width$x}", field.value, width = field.bits as usize / 4),
                _ => field.value.to_string(),
            };
            match told.last_mut() {
                // Addresses and tokens come octet by octet.
                Some((name, octets, true)) if *name == field.name && field.bits == 8 => {
                    *octets += &format!(" {value}")
                }
                _ if field.name == "reserved" => {}
                _ => told.push((field.name, value, field.bits == 8)),
            }
        });
        let Ok(done) = far.receive(now, &out[..len], &mut back) else { panic!("{what:?} is not delivered") };
        assert_eq!(back[..done.len], sent);
        if let Some(what) = what {
            let name = compressed.format.name();
            self.text += &format!("{}. {what}: {} octets, {name} of {len}\n", self.count, sent.len());
            self.text += &lines("packet", &sent);
            self.text += &lines("ROHC", &out[..len]);
            let mut line = String::new();
            for (name, value, _) in told {
                let part = format!("{name} {value}");
                if line.len() + part.len() > 72 {
                    self.text += &format!("   {:<9} {line}\n", "");
                    line.clear();
                }
                line += if line.is_empty() { "" } else { "; " };
                line += &part;
            }
            self.text += &format!("   {:<9} {line}\n", "");
        }
        let rohc = out[..len].to_vec();
        while let Some(len) = far.poll_feedback(&mut out) {
            assert!(near.receive(now, &out[..len], &mut back).is_err(), "feedback alone is no packet");
            if what.is_some() {
                self.text += &lines("feedback", &out[..len]);
            }
        }
        rohc
    }
}

const CLIENT: u16 = 0xC001;

fn request(ip_id: u16, coap: &[u8]) -> Datagram<'_> {
    Datagram { v6: false, ends: [1, 2], ports: [CLIENT, 5683], ip_id, ttl: 64, coap }
}

fn get(message_id: u16) -> Vec<u8> {
    [&[0x40, 0x01][..], &message_id.to_be_bytes(), b"\xb4time"].concat()
}

#[test]
fn a_flow_that_carries_its_checksum_is_that_of_the_document() {
    let mut talk = ExampleConversation::new(Integrity::None, FormatPolicy::Auto, &[]);
    talk.say(0, "GET /time", &request(0x0100, &get(0x1234)));
    let short = talk.say(0, "GET /time", &request(0x0101, &get(0x1235)));
    talk.say(0, "GET /time, TTL 63", &Datagram { ttl: 63, ..request(0x0102, &get(0x1236)) });
    talk.say(0, "GET /time, TTL 63", &Datagram { ttl: 63, ..request(0x0103, &get(0x1237)) });
    let again = get(0x1237);
    talk.say(0, "the same once more, with the next IP-ID", &Datagram { ttl: 63, ..request(0x0104, &again) });
    let empty = [0x60, 0x00, 0x70, 0x00];
    talk.say(0, "empty ACK of message 7000", &Datagram { ttl: 63, ..request(0x0105, &empty) });
    talk.say(0, "GET /time", &Datagram { ttl: 63, ..request(0x0106, &get(0x1238)) });
    talk.say(0, "GET /time", &Datagram { ttl: 63, ..request(0x0107, &get(0x1239)) });
    hold("example carried", &talk.text);
    hold("example CHECK", &check_by_hand(&short));
}

/// Returns the CRC of `width` bits, computed bit by bit. RFC 4815, appendix A.
fn crc(width: u32, polynomial: u8, start: u8, octets: &[u8]) -> u8 {
    octets.iter().fold(start, |crc, octet| {
        (0..8).fold(crc, |crc, bit| {
            let carry = (crc ^ octet >> bit) & 1;
            ((crc >> 1) ^ (polynomial * carry)) & (0xFF >> (8 - width))
        })
    })
}

/// The distance of a number from the multiples of 2^16 - 1, each of which is 0 in one's complement, for an octet at an even or odd place:
/// it counts 2^8 times there, or once.
fn distance_from_zero(number: i64) -> i64 {
    let distance = |number: i64| number.rem_euclid(0xFFFF).min((-number).rem_euclid(0xFFFF));
    distance(number).min(distance(number * 256))
}

/// An IP-ID of which 8 bits are sent may be some turns too high or low, as a number, a Message ID or an MSN may be by a little.
#[test]
fn turns_of_the_ip_id_are_not_compensated_in_check() {
    use super::header::{IP_ID_SPREAD, MESSAGE_ID_SPREAD, SPREAD};
    for turns in (-8..=8).filter(|turns| *turns != 0) {
        let ip_id = i64::from(IP_ID_SPREAD) * turns * 256;
        assert!(distance_from_zero(ip_id) > 4_000, "{turns}");
        for error in -8..=8 {
            // The checksum has the Message ID, too.
            let message_id = (i64::from(MESSAGE_ID_SPREAD) - 1) * error;
            let msn = i64::from(SPREAD) * error;
            assert!(distance_from_zero(ip_id + message_id) > 200, "{turns} {error}");
            assert!(distance_from_zero(ip_id + msn) > 200, "{turns} {error}");
        }
    }
}

/// Computes the CHECK of the second packet of the flow from section 7.4 alone.
fn check_by_hand(rohc: &[u8]) -> String {
    let sent = request(0x0101, &get(0x1235)).octets();
    let kind = [0b01, 0, 64, 0, 0, 0_u8];
    let digest = kind.iter().fold(0xFFFF_u16, |crc, octet| {
        (0..8).fold(crc ^ u16::from(*octet) << 8, |crc, _| (crc << 1) ^ (0x1021 * (crc >> 15)))
    });
    let udp = u16::from_be_bytes([sent[26], sent[27]]);
    let (msn, anchor) = (0x1235_u16, 0x0101_u16.wrapping_sub(0x1235));
    // Message ID and MSN are equal.
    let message_id = 0_u64;
    let template = [&[1, 0, 0][..], b"\xb4time"].concat();
    let crcs = u16::from_be_bytes([crc(7, 0x79, 0x7F, &template), crc(8, 0xE0, 0xFF, &template)]);
    let spread = u64::from(anchor) * 0xD088 + message_id * 0x58C7 + u64::from(msn) * 0x6901;
    let words = [udp, digest, crcs, (spread >> 32) as u16, (spread >> 16) as u16, spread as u16];
    let mut sum: u32 = words.into_iter().map(u32::from).sum();
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    let check = if sum == 0xFFFF { 0 } else { sum as u16 };
    assert_eq!(rohc[1..3], check.to_be_bytes());
    format!(
        "first of path     {}\nD                 {digest:04x}\nUDP checksum      {udp:04x}\ntemplate          {}\n\
         C                 {crcs:04x}\nIP-ID - MSN       {anchor:04x}\nMSN               {msn:04x}\n\
         S                 {spread:012x}\nCHECK             {check:04x}\n",
        hex(&kind),
        hex(&template)
    )
}

fn response(coap: &[u8]) -> Datagram<'_> {
    Datagram { v6: true, ends: [2, 1], ports: [5683, CLIENT], ip_id: 0, ttl: 64, coap }
}

fn notification(message_id: u16, token: &[u8; 2], observe: u16, format: u8) -> Vec<u8> {
    let ([a, b], [c, d]) = (message_id.to_be_bytes(), observe.to_be_bytes());
    [&[0x52, 0x45, a, b][..], token, &[0x62, c, d, 0x61, format, 0xFF, b'2', b'1']].concat()
}

#[test]
fn a_flow_without_its_checksum_is_that_of_the_document() {
    let mut talk = ExampleConversation::new(Integrity::Crc32, FormatPolicy::Pt1, &[]);
    let token = b"\x71\x05";
    talk.say(0, "notification 2.05", &response(&notification(0x0200, token, 0x1000, 50)));
    let short = talk.say(0, "notification 2.05", &response(&notification(0x0201, token, 0x1001, 50)));
    hold("example elided", &talk.text);
    hold("example CRC", &crc_by_hand(&short));

    let mut talk = ExampleConversation::new(Integrity::Crc32, FormatPolicy::Pt0, &[]);
    for i in 0..3 {
        let what = (i == 2).then_some("notification 2.05, where pt_0 is allowed");
        talk.carry(0, what, &response(&notification(0x0200 + i, token, 0x1000 + i, 50)));
    }
    hold("example pt_0", &talk.text);

    // Two relations alternate until every packet of the context carries its template.
    let mut talk = ExampleConversation::new(Integrity::Crc32, FormatPolicy::Pt1, &[]);
    for i in 0..24 {
        let (token, format) = if i % 2 == 0 { (b"\x71\x05", 50) } else { (b"\x71\x06", 60) };
        let what = match i {
            1 => Some("a second relation"),
            22 => Some("the first relation again"),
            23 => Some("the second"),
            _ => None,
        };
        talk.carry(0, what, &response(&notification(0x0200 + i, token, 0x1000 + i / 2, format)));
    }
    hold("example switching", &talk.text);
}

/// Computes the CRC-8 of the second packet of the flow from section 7.3 alone.
fn crc_by_hand(rohc: &[u8]) -> String {
    let sent = response(&notification(0x0201, b"\x71\x05", 0x1001, 50)).octets();
    // 6 bits of the MSN, which are 1, change the port of the client.
    let ports = [5683, CLIENT.wrapping_add(0x6901)].map(u16::to_be_bytes).concat();
    let path = [&[0b10, 0, 64, 0, 0, 0][..], &sent[8..40], &ports].concat();
    // NON with a payload; 6 bits of the MSN; Message ID minus MSN is 0; the sum of the payload.
    let head = [0b011, 0, 0x01, 0, 0, b'2', b'1'];
    let template = [&[0x45, 0x00, 2][..], b"\x71\x05", &[0xF1, 0x60, 0x61, 50]].concat();
    let numbers = 0x1001_u32.wrapping_sub(0x0201).to_be_bytes();
    let a = crc(8, 0xE0, crc(8, 0xE0, 0xFF, &path), &head);
    let b = crc(8, 0xE0, 0xFF, &template);
    let c = crc(8, 0xE0, a ^ b, &numbers);
    let sum = c.wrapping_add(45_u8.wrapping_mul((0x0201_u16 >> 6) as u8));
    assert_eq!(rohc[1], sum);
    format!(
        "path              {}\n                  {}\nhead              {}\ntemplate          {}\nnumbers           {}\n\
         CRC-8 of path and head             {a:02x}\nCRC-8 of template                  {b:02x}\n\
         their XOR, continued over numbers  {c:02x}\n45 * (MSN >> 6), 8 bits            {:02x}\n\
         CRC                                {sum:02x}\n",
        hex(&path[..22]),
        hex(&path[22..]),
        hex(&head),
        hex(&template),
        hex(&numbers),
        45 * (0x0201 >> 6) % 256
    )
}

#[test]
fn a_response_that_names_its_request_is_that_of_the_document() {
    let mut talk = ExampleConversation::new(Integrity::Crc32, FormatPolicy::Pt1, &[]);
    for (i, message_id) in [0x5A10_u16, 0x0B77, 0xC3D9].into_iter().enumerate() {
        let [a, b] = message_id.to_be_bytes();
        let token = [0x30, 0xA7, 0x14].map(|octet: u8| octet.wrapping_mul(2 * i as u8 + 1));
        let ask = [&[0x43, 0x01, a, b][..], &token, b"\xb4time"].concat();
        let answer = [&[0x63, 0x45, a, b][..], &token, &[0xC0, 0xFF, b'1', b'2']].concat();
        let ask = Datagram { ends: [1, 2], ports: [CLIENT, 5683], ..response(&ask) };
        talk.carry(1, (i == 2).then_some("a GET with any Message ID and token"), &ask);
        talk.carry(
            0,
            Some(if i == 0 { "its response" } else { "the response to the next" }),
            &response(&answer),
        );
    }
    hold("example correlated", &talk.text);
}

/// Base for GET requests to one server, from any port and host of a prefix.
fn time_base() -> Base {
    let end = |end: u8, port: u16| {
        let mut address = [0; 16];
        (address[0], address[15]) = (0xFD, end);
        BaseEnd { address, port }
    };
    let mut base = Base::new(&BasePath {
        v6: true,
        source: end(1, 0),
        destination: end(2, 5683),
        ttl: 64,
        checksum: ChecksumMode::Elided,
        ..BasePath::default()
    });
    let pushed = base.push(&BaseTemplate {
        message_type: Type::Confirmable,
        code: Code::GET,
        message_id: MessageIdMode::Counted,
        token_mode: TokenMode::CountedUint,
        token: &[],
        outline: b"\xb4time",
    });
    assert!(pushed);
    base
}

#[test]
fn a_flow_with_a_base_is_that_of_the_document() {
    let mut talk = ExampleConversation::new(Integrity::Crc32, FormatPolicy::Pt1, &[time_base()]);
    for i in 0..2 {
        let coap = [&[0x41, 0x01, 0x12, 0x34 + i, 0x20 + i][..], b"\xb4time"].concat();
        let packet = Datagram { ends: [1, 2], ports: [CLIENT, 5683], ..response(&coap) };
        talk.say(0, if i == 0 { "GET /time" } else { "the next" }, &packet);
    }
    hold("example base", &talk.text);
}

/// A payload is delivered with a base as without one: the CRC of the headers does not depend on it.
#[test]
fn the_first_packet_with_a_base_may_have_a_payload() {
    for v6 in [false, true] {
        let base = Base::new(&BasePath { v6, ..time_base().base_path() });
        let mut base = if v6 { time_base() } else { base };
        if !v6 {
            let mut path = base.base_path();
            (path.source.address, path.destination.address) = (Default::default(), Default::default());
            path.source.address[..4].copy_from_slice(&[10, 0, 0, 1]);
            path.destination.address[..4].copy_from_slice(&[10, 0, 0, 2]);
            (path.df, path.ip_id) = (true, IpIdMode::Counted);
            base = Base::new(&path);
        }
        assert!(base.push(&BaseTemplate {
            message_type: Type::NonConfirmable,
            code: Code::POST,
            message_id: MessageIdMode::Counted,
            token_mode: TokenMode::Static,
            token: &[],
            outline: b"\xb4time",
        }));
        let mut talk = ExampleConversation::new(Integrity::Crc32, FormatPolicy::Pt1, &[base]);
        let coap = *b"\x50\x02\x12\x34\xb4time\xff2210";
        let packet = Datagram { v6, ends: [1, 2], ports: [CLIENT, 5683], ..request(7, &coap) };
        assert_eq!(talk.say(0, "POST", &packet)[0], 0xFC);
    }
}

/// A counting token has no length of its own, whatever a base or a packet contains.
#[test]
fn a_base_with_a_length_for_a_counting_token_survives_a_second_definition() {
    let mut base = Base::new(&time_base().base_path());
    assert!(base.push(&BaseTemplate {
        message_type: Type::Confirmable,
        code: Code::GET,
        message_id: MessageIdMode::Counted,
        token_mode: TokenMode::CountedUint,
        token: &[0; 4],
        outline: b"\xb4time",
    }));
    let mut talk = ExampleConversation::new(Integrity::Crc32, FormatPolicy::Pt1, &[base]);
    for i in 0..6 {
        let coap = [&[0x41, 0x01, 0x12, 0x34 + i, 0x20 + i][..], b"\xb4time"].concat();
        let packet = Datagram { ends: [1, 2], ports: [CLIENT, 5683], ..response(&coap) };
        if i == 3 {
            // A NACK of MSN 0x1236 makes the compressor define the template again.
            let cid = crate::Cid::ZERO;
            let nack = crate::feedback::Feedback {
                sn: 0x1236,
                sn_bits: 14,
                form: crate::feedback::FeedbackForm::Rfc6846,
                ..crate::feedback::Feedback::new(cid, crate::feedback::AckType::Nack)
            };
            let mut element = [0; crate::feedback::MAX_ELEMENT];
            let len = nack.write(CidSpace::Small, &mut element).unwrap_or(0);
            let _ = talk.ends[0].receive(Instant::from_millis(30), &element[..len], &mut [0; 64]);
        }
        let sent = talk.say(0, "GET", &packet);
        assert_eq!(sent[0] == 0xFB, i == 3);
    }
}

/// An Observe option that is carried as octets is not the number that others refer to.
#[test]
fn octets_of_observe_are_no_last_number() {
    for (class, expected) in [(Class::Lsb, Some(7)), (Class::Variable, None)] {
        let mut room = [0; 16];
        let mut len = 0;
        assert!(append(&mut room, &mut len, 6, &class));
        let mut x = HeaderFields::new(0);
        x.numbers[0] = 7;
        x.holes = Holes::of(&room[..len], 1);
        assert_eq!(x.observed(), expected, "{class:?}");
    }
}
