//! The packet formats. Section 6 of `docs/coap-profile.md`.

use thinair_wire::coder::{Coder, LsbSlot, Step, Word, sdvl};
use thinair_wire::crc::Check;
use thinair_wire::header::coap::Type;

use super::outline::{HoleKind, MAX_OUTLINE, is_outline};
use super::state::{
    ChecksumMode, CoapPath, CoapState, CoapToken, IpIdMode, MessageIdMode, PortMode, TEMPLATES, Template,
    TokenMode,
};
use super::{Carries, HeaderFields, Least, Whole};
use crate::id::{Format, ProfileId};

/// Master Sequence Number.
pub(super) const MSN: LsbSlot = LsbSlot::new(0, "MSN");

/// Number of templates that a short format can carry.
pub(super) const SHORT_TEMPLATES: u8 = 12;

/// Returns the format of an established context for a packet that needs at `least` these fields, and so many
/// bits of the MSN.
#[inline]
pub(super) fn format_for(state: &CoapState, least: Least, template: u8, needed: u32) -> Format {
    let path = &state.path;
    let is_carried = path.checksum == ChecksumMode::Carried;
    match least {
        Least::Pt0 | Least::Pt1 if path.switching => {
            if template < SHORT_TEMPLATES && needed <= 4 {
                return if is_carried { Format::Pt1tc } else { Format::Pt1t };
            }
        }
        Least::Pt0 if is_carried && needed <= 7 => return Format::Pt0c,
        Least::Pt0 if !is_carried && path.pt_0 && needed <= 4 => return Format::Pt0,
        Least::Pt0 | Least::Pt1 if needed <= 6 => return Format::Pt1,
        Least::Pt0 | Least::Pt1 | Least::Pt2 => {}
        Least::CoCommon => return Format::CoCommon,
        Least::CoRepair => return Format::CoRepair,
    }
    if is_carried { Format::Pt2c } else { Format::Pt2 }
}

/// Returns the format of a packet of an established context, by its first octet.
#[inline]
pub(super) fn format_of(first: u8, state: &CoapState) -> Option<Format> {
    let path = &state.path;
    let is_carried = path.checksum == ChecksumMode::Carried;
    Some(match first {
        0xFA => Format::CoCommon,
        0xFB => Format::CoRepair,
        0xE0.. => return None,
        0xC0.. => {
            if is_carried {
                Format::Pt2c
            } else {
                Format::Pt2
            }
        }
        _ if path.switching => {
            if is_carried {
                Format::Pt1tc
            } else {
                Format::Pt1t
            }
        }
        0x80.. => Format::Pt1,
        _ if is_carried => Format::Pt0c,
        _ if path.pt_0 => Format::Pt0,
        _ => return None,
    })
}

/// Codes a short format up to the chain.
#[inline]
pub(super) fn short<'p, C: Coder<'p>>(format: Format, c: &mut C, x: &mut HeaderFields<'_>) -> Step {
    match format {
        Format::Pt1t => pt_1t(c, x),
        Format::Pt1tc => pt_1tc(c, x),
        Format::Pt2 => pt_2(c, x),
        Format::Pt2c => pt_2c(c, x),
        _ => shortest(format, c, x),
    }
}

/// Codes a format that has nothing but the MSN and a check, up to the chain.
#[inline(always)]
pub(super) fn shortest<'p, C: Coder<'p>>(format: Format, c: &mut C, x: &mut HeaderFields<'_>) -> Step {
    match format {
        Format::Pt0 => pt_0(c),
        Format::Pt0c => pt_0c(c, x),
        Format::Pt1 => pt_1(c),
        _ => c.enforce(false),
    }
}

/// True for the formats of [`shortest`].
#[inline]
pub(super) const fn is_shortest(format: Format) -> bool {
    matches!(format, Format::Pt0 | Format::Pt0c | Format::Pt1)
}

/// Codes a long format up to the chain.
pub(super) fn long<'p, C: Coder<'p>>(
    format: Format,
    c: &mut C,
    x: &mut HeaderFields<'_>,
    whole: &mut Whole<'p>,
) -> Step {
    match format {
        Format::CoCommon => co_common(c, x, whole),
        Format::CoRepair => co_repair(c, x, whole),
        Format::Ir => ir(c, x, whole),
        Format::IrCr => ir_cr(c, whole),
        _ => c.enforce(false),
    }
}

/// True if a format has the fields in `Whole`.
#[inline]
pub(super) const fn is_long(format: Format) -> bool {
    matches!(format, Format::CoCommon | Format::CoRepair | Format::Ir | Format::IrCr)
}

/// True if a format has a CHECK instead of a CRC and the checksum.
#[inline]
pub(super) const fn has_check(format: Format) -> bool {
    matches!(format, Format::Pt0c | Format::Pt1tc | Format::Pt2c)
}

/// Number of bits of the MSN in a format; for `pt_2`, without those of `msn`.
#[inline]
pub(super) const fn msn_bits(format: Format) -> u32 {
    match format {
        Format::Pt0 | Format::Pt1t | Format::Pt1tc => 4,
        Format::Pt1 => 6,
        Format::Pt0c => 7,
        Format::Pt2 | Format::Pt2c => 8,
        _ => 16,
    }
}

/// `pt_0`: 4-bit MSN, CRC-3. Section 6.1.
#[inline]
fn pt_0<'p, C: Coder<'p>>(c: &mut C) -> Step {
    c.discriminator(1, 0b0)?;
    c.lsb(MSN, 4, 0)?;
    c.crc("CRC", 3)
}

/// `pt_0c`: 7-bit MSN, CHECK. Section 6.2.
#[inline]
fn pt_0c<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields<'_>) -> Step {
    c.discriminator(1, 0b0)?;
    c.lsb(MSN, 7, 0)?;
    c.uint("CHECK", 16, &mut x.check)
}

/// `pt_1`: 6-bit MSN, CRC-8. Section 6.3.
#[inline]
fn pt_1<'p, C: Coder<'p>>(c: &mut C) -> Step {
    c.discriminator(2, 0b10)?;
    c.lsb(MSN, 6, 0)?;
    c.crc("CRC", 8)
}

/// `pt_1t`: template 0 to 11, 4-bit MSN, CRC-8. Section 6.4.
#[inline]
fn pt_1t<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields<'_>) -> Step {
    c.uint("template", 4, &mut x.template)?;
    c.lsb(MSN, 4, 0)?;
    c.crc("CRC", 8)
}

/// `pt_1tc`: template 0 to 11, 4-bit MSN, CHECK. Section 6.5.
#[inline]
fn pt_1tc<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields<'_>) -> Step {
    c.uint("template", 4, &mut x.template)?;
    c.lsb(MSN, 4, 0)?;
    c.uint("CHECK", 16, &mut x.check)
}

/// `pt_2`: template, 8-bit or 16-bit MSN, CRC-8, fields that have changed. Section 6.6.
#[inline]
fn pt_2<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields<'_>) -> Step {
    changes(c, x)?;
    c.crc("CRC", 8)
}

/// `pt_2c`: template, 8-bit or 16-bit MSN, CHECK, fields that have changed. Section 6.7.
#[inline]
fn pt_2c<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields<'_>) -> Step {
    changes(c, x)?;
    c.uint("CHECK", 16, &mut x.check)
}

/// Common part of `pt_2` and `pt_2c`.
#[inline]
fn changes<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields<'_>) -> Step {
    c.discriminator(3, 0b110)?;
    c.uint("template", 4, &mut x.template)?;
    if c.flag("F", &mut !x.carries.is_nothing())? {
        let carries = &mut x.carries;
        c.flag("ip_id", &mut carries.ip_id)?;
        c.flag("message_id", &mut carries.message_id)?;
        c.flag("request", &mut carries.request)?;
        c.flag("token", &mut carries.token)?;
        c.flag("numbers", &mut carries.numbers)?;
        c.flag("type", &mut carries.message_type)?;
        c.flag("msn", &mut carries.msn)?;
        c.flag("port", &mut carries.port)?;
    }
    c.lsb(MSN, if x.carries.msn { 16 } else { 8 }, 0)
}

/// `co_common`: all fields that can change in a context, each if it is present; CRC-7, and CRC-3 of the control
/// fields. Section 6.8.
fn co_common<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields<'_>, whole: &mut Whole<'p>) -> Step {
    c.discriminator(8, 0xFA)?;
    c.flag("ip", &mut x.has_ip)?;
    c.flag("control", &mut x.has_control)?;
    c.flag("definition", &mut x.has_definition)?;
    c.flag("port", &mut x.carries.port)?;
    c.reserved(1)?;
    c.uint("control CRC", 3, &mut whole.control_crc)?;
    c.reserved(1)?;
    c.crc("CRC", 7)?;
    body(c, x, whole)
}

/// `co_repair`: all fields that can change in a context. Section 6.9.
fn co_repair<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields<'_>, whole: &mut Whole<'p>) -> Step {
    c.discriminator(8, 0xFB)?;
    c.reserved(3)?;
    c.flag("port", &mut x.carries.port)?;
    c.reserved(1)?;
    c.uint("control CRC", 3, &mut whole.control_crc)?;
    c.reserved(1)?;
    c.crc("CRC", 7)?;
    (x.has_ip, x.has_control, x.has_definition) = (true, true, true);
    body(c, x, whole)
}

/// IR: all fields. Section 6.10. The CRC-8 covers the ROHC header (RFC 5225, section 6.8.1).
fn ir<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields<'_>, whole: &mut Whole<'p>) -> Step {
    c.discriminator(8, 0xFD)?;
    profile(c)?;
    c.crc("CRC", 8)?;
    c.flag("version", &mut whole.next.v6)?;
    c.flag("keep", &mut x.keep)?;
    c.reserved(6)?;
    let len = whole.next.address_len();
    for octet in whole.next.source.iter_mut().take(len) {
        c.uint("Source Address", 8, octet)?;
    }
    for octet in whole.next.destination.iter_mut().take(len) {
        c.uint("Destination Address", 8, octet)?;
    }
    c.uint("Source Port", 16, &mut whole.next.source_port)?;
    c.uint("Destination Port", 16, &mut whole.next.destination_port)?;
    (x.has_ip, x.has_control, x.has_definition) = (true, true, true);
    body(c, x, whole)
}

fn profile<'p, C: Coder<'p>>(c: &mut C) -> Step {
    let mut low = ProfileId::Coap.low_octet();
    c.uint("Profile", 8, &mut low)?;
    c.require(low == ProfileId::Coap.low_octet())
}

/// IR-CR: replication of a provisioned base, and the differences from it. Section 6.11.
fn ir_cr<'p, C: Coder<'p>>(c: &mut C, whole: &mut Whole<'p>) -> Step {
    c.discriminator(8, 0xFC)?;
    profile(c)?;
    c.crc("CRC", 8)?;
    c.uint("base", 8, &mut whole.base)?;
    c.flag("F", &mut whole.differs)?;
    c.uint("header CRC", 7, &mut whole.header_crc)?;
    c.lsb(MSN, 16, 0)?;
    Ok(())
}

/// Differences in an IR-CR packet, behind the number of the base.
pub(super) fn differences<'p, C: Coder<'p>>(
    c: &mut C,
    x: &mut HeaderFields<'_>,
    whole: &mut Whole<'p>,
) -> Step {
    if !whole.differs {
        return Ok(());
    }
    let d = &mut whole.differences;
    c.flag("source_port", &mut d.source_port)?;
    c.flag("destination_port", &mut d.destination_port)?;
    c.flag("source", &mut d.source)?;
    c.flag("destination", &mut d.destination)?;
    c.flag("template", &mut d.template)?;
    c.flag("message_id", &mut x.carries.message_id)?;
    c.flag("token", &mut x.carries.token)?;
    c.flag("numbers", &mut x.carries.numbers)?;
    if d.source_port {
        c.uint("Source Port", 16, &mut whole.next.source_port)?;
    }
    if d.destination_port {
        c.uint("Destination Port", 16, &mut whole.next.destination_port)?;
    }
    // The interface identifier; of IPv4 the whole address.
    let interface = if whole.next.v6 { 8..16 } else { 0..4 };
    if d.source {
        for octet in whole.next.source.get_mut(interface.clone()).into_iter().flatten() {
            c.uint("Source Address", 8, octet)?;
        }
    }
    if d.destination {
        for octet in whole.next.destination.get_mut(interface).into_iter().flatten() {
            c.uint("Destination Address", 8, octet)?;
        }
    }
    if d.template {
        let has_label = c.flag("flow_label", &mut d.flow_label)?;
        c.reserved(3)?;
        c.uint("template", 4, &mut x.template)?;
        if has_label {
            c.reserved(4)?;
            c.uint("Flow Label", 20, &mut whole.next.flow_label)?;
        }
    }
    Ok(())
}

/// Dynamic part of the IP header, control fields, definition of a template.
fn body<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields<'_>, whole: &mut Whole<'p>) -> Step {
    c.reserved(4)?;
    c.uint("template", 4, &mut x.template)?;
    c.lsb(MSN, 16, 0)?;
    if x.has_ip {
        ip_dynamic(c, &mut whole.next)?;
    }
    if x.has_control {
        control(c, &mut whole.next)?;
    }
    if x.has_definition {
        definition(c, &mut whole.definition, &mut whole.outline)?;
    }
    x.carries = Carries { port: x.carries.port, ..Carries::EVERYTHING };
    Ok(())
}

pub(super) fn ip_dynamic<'p, C: Coder<'p>>(c: &mut C, next: &mut CoapPath) -> Step {
    let v6 = next.v6;
    c.uint(if v6 { "Traffic Class" } else { "TOS" }, 8, &mut next.tos)?;
    c.uint(if v6 { "Hop Limit" } else { "TTL" }, 8, &mut next.ttl)?;
    if v6 {
        c.reserved(4)?;
        c.uint("Flow Label", 20, &mut next.flow_label)
    } else {
        c.flag("DF", &mut next.df)?;
        c.reserved(7)
    }
}

pub(super) fn control<'p, C: Coder<'p>>(c: &mut C, next: &mut CoapPath) -> Step {
    c.uint("checksum", 2, &mut next.checksum)?;
    c.uint("ip_id", 2, &mut next.ip_id_mode)?;
    c.flag("switching", &mut next.switching)?;
    c.flag("pt_0", &mut next.pt_0)?;
    c.uint("port", 2, &mut next.port_mode)
}

/// A template. Section 5.
pub(super) fn definition<'p, C: Coder<'p>>(c: &mut C, t: &mut Template, outline: &mut &'p [u8]) -> Step {
    let mut token_mode = t.token_mode as u8;
    let mut message_id = t.message_id as u8;
    c.uint("T", 2, &mut t.message_type)?;
    c.uint("message_id", 2, &mut message_id)?;
    c.uint("TKL", 4, &mut t.token.len)?;
    c.require(t.token.len <= 8)?;
    c.uint("Code", 8, &mut t.code)?;
    c.uint("token", 3, &mut token_mode)?;
    c.flag("names", &mut t.names)?;
    c.reserved(4)?;
    c.require(message_id <= MessageIdMode::Irregular as u8 && token_mode <= TokenMode::Irregular as u8)?;
    t.message_id = Word::from_u32(u32::from(message_id));
    t.token_mode = Word::from_u32(u32::from(token_mode));
    if t.token_mode == TokenMode::Static {
        token(c, &mut t.token)?;
    }
    let mut len = outline.len() as u8;
    c.uint("outline length", 8, &mut len)?;
    c.require(usize::from(len) <= MAX_OUTLINE)?;
    c.slice("outline", usize::from(len), outline)?;
    c.require(is_outline(outline))
}

fn token<'p, C: Coder<'p>>(c: &mut C, token: &mut CoapToken) -> Step {
    for octet in token.octets.iter_mut().take(usize::from(token.len)) {
        c.uint("Token", 8, octet)?;
    }
    Ok(())
}

/// Chain behind every base header: fields that have changed, and fields that every packet of the context
/// carries. Section 6.12.
#[inline(always)]
pub(super) fn chain<'p, C: Coder<'p>>(
    c: &mut C,
    state: &CoapState,
    template: &Template,
    has_check: bool,
    x: &mut HeaderFields<'p>,
) -> Step {
    let carries = x.carries;
    let has_message_fields = template.is_irregular(&x.holes) || !carries.is_nothing();
    chain_with(c, state, template, carries, has_message_fields, has_check, x)
}

/// [`chain`] with these fields, and with or without those of the message.
#[inline(always)]
pub(super) fn chain_with<'p, C: Coder<'p>>(
    c: &mut C,
    state: &CoapState,
    template: &Template,
    carries: Carries,
    has_message_fields: bool,
    has_check: bool,
    x: &mut HeaderFields<'p>,
) -> Step {
    if carries.message_type {
        c.reserved(6)?;
        c.uint("T", 2, &mut x.message_type)?;
    }
    // IR has it in its static part.
    if carries.port || state.path.port_mode == PortMode::SourceInEach && !x.has_checksum {
        c.uint("port", 16, &mut x.port)?;
    }
    if state.path.has_label_in_each() {
        c.reserved(4)?;
        c.uint("Flow Label", 20, &mut x.flow_label)?;
        x.ip_id = x.flow_label.folded();
    } else if !state.path.v6 {
        if carries.ip_id || state.path.ip_id_mode == IpIdMode::Irregular {
            c.uint("IP-ID", 16, &mut x.ip_id)?;
        } else if state.path.ip_id_mode == IpIdMode::Lsb {
            let mut low = x.ip_id as u8;
            c.uint("IP-ID", 8, &mut low)?;
            x.ip_id = x.ip_id & 0xFF00 | u16::from(low);
        }
    }
    if has_message_fields {
        message_fields(c, template, x)?;
    }
    let is_sent = match state.path.checksum {
        ChecksumMode::Raw | ChecksumMode::Carried => !has_check,
        // The CRC of an IR packet does not cover the payload; the checksum does.
        ChecksumMode::Elided => x.has_checksum,
        ChecksumMode::Zero => false,
    };
    if is_sent {
        c.uint("UDP Checksum", 16, &mut x.checksum)?;
    }
    Ok(())
}

/// Fields of the message in the chain.
fn message_fields<'p, C: Coder<'p>>(c: &mut C, template: &Template, x: &mut HeaderFields<'p>) -> Step {
    let carries = x.carries;
    if carries.message_id || template.message_id == MessageIdMode::Irregular {
        c.uint("Message ID", 16, &mut x.message_id)?;
    }
    if carries.request && template.refers {
        c.uint("request MSN", 16, &mut x.request_msn)?;
    } else if template.names {
        let mut low = x.request_msn as u8;
        c.uint("request MSN", 8, &mut low)?;
        x.request_msn = x.request_msn & 0xFF00 | u16::from(low);
    }
    match template.token_mode {
        TokenMode::CountedUint | TokenMode::OfRequest if carries.token => {
            c.uint("TKL", 8, &mut x.token.len)?;
            c.require(x.token.len <= 8)?;
            token(c, &mut x.token)?;
        }
        TokenMode::Counted if carries.token => {
            x.token.len = template.token.len;
            token(c, &mut x.token)?;
        }
        TokenMode::Irregular => {
            x.token.len = template.token.len;
            token(c, &mut x.token)?;
        }
        TokenMode::Static | TokenMode::Counted | TokenMode::CountedUint | TokenMode::OfRequest => {}
    }
    for ((hole, number), octets) in x.holes.as_slice().iter().zip(&mut x.numbers).zip(&mut x.octets) {
        match hole.kind {
            HoleKind::Octets(len) => c.slice("option", usize::from(len), octets)?,
            HoleKind::Variable => {
                let mut len = octets.len().min(255) as u8;
                c.uint("option length", 8, &mut len)?;
                c.slice("option", usize::from(len), octets)?;
            }
            _ if carries.numbers => sdvl(c, "number", number)?,
            HoleKind::Lsb => {
                let mut low = *number as u8;
                c.uint("number", 8, &mut low)?;
                *number = *number & !0xFF | u32::from(low);
            }
            HoleKind::Counted
            | HoleKind::Step(_)
            | HoleKind::Block
            | HoleKind::BlockOfRequest
            | HoleKind::PartialIv => {}
        }
    }
    Ok(())
}

/// Returns the CRC-3 of the control fields after a packet. Section 6.8.
pub(super) fn control_crc(state: &CoapState, number: u8, template: &Template) -> u8 {
    let modes = (state.path.checksum as u8) << 6
        | (state.path.ip_id_mode as u8) << 4
        | u8::from(state.path.switching) << 3;
    let modes = modes | u8::from(state.path.pt_0) << 2 | state.path.port_mode as u8;
    let octets = [
        modes,
        number,
        (template.message_type as u8) << 6 | (template.message_id as u8) << 4 | template.token.len,
        template.code.0,
        (template.token_mode as u8) << 1 | u8::from(template.names),
        template.len,
    ];
    Check::Crc3.of(&octets)
}

const _: () = assert!(TEMPLATES == 16 && (Type::Reset as u8) < 4);
