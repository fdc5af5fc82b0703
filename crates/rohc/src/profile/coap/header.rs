//! The headers of a packet: inferred fields, octets, and checks. Section 7 of `docs/coap-profile.md`.

use thinair_wire::checksum::{Sum, checksum};
use thinair_wire::coder::{Word, Writer};
use thinair_wire::crc::Check;
use thinair_wire::header::coap::PAYLOAD_MARKER;
use thinair_wire::header::protocol;

use super::outline::{HoleKind, uint_len, write_option};
use super::state::{
    ChecksumMode, CoapState, CoapToken, IpIdMode, MessageIdMode, PortMode, Template, TokenMode,
};
use super::{Carries, HeaderFields};
use crate::decompressor::Unbuildable;
use crate::exchange::CoapExchange;
use crate::work;

/// Largest distance below the last number for a number of which 8 bits are sent.
const LSB_BELOW: u32 = 8;

/// Factor of the MSN in a CHECK, so that a counter that is too low does not compensate an MSN that is too high. No factor has a divisor in
/// common with 2^16 - 1.
pub(super) const SPREAD: u32 = 0x6901;

/// Factor of the Message ID in a CHECK.
pub(super) const MESSAGE_ID_SPREAD: u32 = 0x58C7;

/// Factor of the IP-ID in a CHECK: one that is a turn of its 8 bits too high is not compensated by a number that is a little too high,
/// or a Message ID that is a little too low.
pub(super) const IP_ID_SPREAD: u32 = 0xD088;

/// Factor, in a CRC, of the bits of the MSN that are not sent. It is odd, so that every turn gives another CRC.
const TURN: u32 = 45;

/// Sets the fields that a packet does not carry from the context. False if it refers to an unknown message of the other
/// direction.
#[inline(always)]
pub(super) fn infer(
    state: &CoapState,
    template: &Template,
    request: Option<&CoapExchange>,
    x: &mut HeaderFields<'_>,
) -> bool {
    infer_other(state, template, request, x.carries, x)
}

/// [`infer`] for a packet that carries these fields.
#[inline(always)]
pub(super) fn infer_other(
    state: &CoapState,
    template: &Template,
    request: Option<&CoapExchange>,
    carries: Carries,
    x: &mut HeaderFields<'_>,
) -> bool {
    let msn = x.msn;
    let low = msn as u16;
    if !carries.ip_id {
        x.ip_id = match state.path.ip_id_mode {
            IpIdMode::Constant => state.ip_id,
            IpIdMode::Counted => state.ip_id.wrapping_add(low),
            IpIdMode::Lsb => near(u32::from(x.ip_id), u32::from(state.ip_id)) as u16,
            IpIdMode::Irregular => x.ip_id,
        };
    }
    if !carries.message_type {
        x.message_type = template.message_type;
    }
    if !carries.port {
        x.port = match (state.path.port_mode, request) {
            (PortMode::Destination, Some(request)) => request.port,
            (PortMode::SourceInEach, _) => x.port,
            _ => state.path.port(),
        };
    }
    if !carries.message_id {
        x.message_id = match (template.message_id, request) {
            (MessageIdMode::Counted, _) if Template::is_own(x.message_type) => state.own.wrapping_add(low),
            (MessageIdMode::Counted, _) => state.echoed.wrapping_add(low),
            (MessageIdMode::OfRequest, Some(request)) => request.message_id,
            (MessageIdMode::OfRequest, None) => return false,
            (MessageIdMode::Irregular, _) => x.message_id,
        };
    }
    if !carries.token || template.token_mode == TokenMode::Static {
        x.token = match (template.token_mode, request) {
            (TokenMode::Static, _) => template.token,
            (TokenMode::CountedUint, _) => CoapToken::of_shortest_uint(counted_token(template, msn)),
            (TokenMode::Counted, _) => CoapToken::of_uint(counted_token(template, msn), template.token.len),
            (TokenMode::OfRequest, Some(request)) => request.token(),
            (TokenMode::OfRequest, None) => return false,
            (TokenMode::Irregular, _) => x.token,
        };
    }
    template.is_plain() || carries.numbers || infer_numbers(state, template, request, x)
}

/// Sets the numbers of the dynamic options.
fn infer_numbers(
    state: &CoapState,
    template: &Template,
    request: Option<&CoapExchange>,
    x: &mut HeaderFields<'_>,
) -> bool {
    let mut reference = 0;
    for (hole, number) in x.holes.as_slice().iter().zip(&mut x.numbers) {
        let anchor = template.anchors.get(reference).copied().unwrap_or_default();
        let counted = anchor.wrapping_add(x.msn);
        *number = match hole.kind {
            HoleKind::Counted | HoleKind::Block => counted & hole.mask(),
            HoleKind::PartialIv => counted,
            HoleKind::BlockOfRequest => match request.and_then(|request| request.block()) {
                Some(block) => block,
                None => return false,
            },
            HoleKind::Lsb => near(*number, state.last_number) & hole.mask(),
            HoleKind::Step(step) => state.last_number.wrapping_add(u32::from(step)) & hole.mask(),
            HoleKind::Octets(_) | HoleKind::Variable => continue,
        };
        reference += usize::from(hole.has_anchor());
    }
    true
}

/// Returns the MSN of the message of the other direction that a packet refers to.
#[inline]
pub(super) fn named(state: &CoapState, template: &Template, x: &HeaderFields<'_>) -> u16 {
    if x.carries.request {
        x.request_msn
    } else if template.names {
        near(u32::from(x.request_msn), u32::from(state.named)) as u16
    } else {
        state.request.wrapping_add(x.msn as u16)
    }
}

/// Sets the anchors from fields that a packet carries in full: their value minus its MSN.
#[inline(never)]
pub(super) fn set_anchors(template: &mut Template, x: &HeaderFields<'_>) {
    let is_counted = template.token_mode == TokenMode::Counted;
    if x.carries.token && (is_counted || template.token_mode == TokenMode::CountedUint) {
        let anchor = x.token.uint().wrapping_sub(u64::from(x.msn));
        template.token =
            CoapToken { octets: anchor.to_be_bytes(), len: if is_counted { x.token.len } else { 0 } };
    }
    if x.carries.numbers {
        let dynamic = x.holes.as_slice().iter().zip(&x.numbers).filter(|(hole, _)| hole.has_anchor());
        for ((hole, number), anchor) in dynamic.zip(&mut template.anchors) {
            *anchor = number.wrapping_sub(x.msn) & hole.mask();
        }
    }
}

#[inline]
pub(super) fn counted_token(template: &Template, msn: u32) -> u64 {
    u64::from_be_bytes(template.token.octets).wrapping_add(u64::from(msn))
}

/// Returns the number near `reference` whose 8 low bits are those of `bits`.
#[inline]
pub(super) fn near(bits: u32, reference: u32) -> u32 {
    let start = reference.wrapping_sub(LSB_BELOW);
    start.wrapping_add(bits.wrapping_sub(start) & 0xFF)
}

/// Writes the headers to the start of `out`, without the UDP checksum, and returns their length. `payload_behind` returns the octets of
/// the payload by those of the headers up to the options.
#[inline]
pub(super) fn rebuild(
    state: &CoapState,
    template: &Template,
    outline: &[u8],
    x: &HeaderFields<'_>,
    payload_behind: impl FnOnce(usize) -> usize,
    out: &mut [u8],
) -> Result<usize, Unbuildable> {
    let have = out.len();
    let coap_at = state.path.ip_len() + 8;
    let fixed = coap_at + 4 + 8;
    let too_short = Unbuildable::NoRoom(fixed);
    let head = out.get_mut(..fixed).ok_or(too_short)?;
    // CoAP up to the token, which is written with its zeros; the options overwrite those.
    let tkl = x.token.len;
    let coap = head.get_mut(coap_at..).ok_or(too_short)?;
    coap[0] = 0x40 | (x.message_type as u8) << 4 | tkl;
    coap[1] = template.code.0;
    coap[2..4].copy_from_slice(&x.message_id.to_be_bytes());
    coap[4..12].copy_from_slice(&x.token.octets);
    let mut len = coap_at + 4 + usize::from(tkl);
    if template.is_plain() {
        let end = len + outline.len();
        out.get_mut(len..end).ok_or(Unbuildable::NoRoom(end))?.copy_from_slice(outline);
        len = end;
    } else {
        len = options(outline, x, out, len)?;
    }
    let payload = payload_behind(len);
    if payload > 0 {
        *out.get_mut(len).ok_or(Unbuildable::NoRoom(len + 1))? = PAYLOAD_MARKER;
        len += 1;
    }
    work::note(len / 8);
    if len + payload > have {
        return Err(Unbuildable::NoRoom(len + payload));
    }
    let total = len + payload;
    let udp_len =
        u16::try_from(total - state.path.ip_len()).map_err(|_| Unbuildable::Malformed)?.to_be_bytes();
    let [[sa, sb], [da, db]] = state.path.ports(x.port).map(u16::to_be_bytes);
    let udp = [sa, sb, da, db, udp_len[0], udp_len[1], 0, 0];
    if state.path.v6 {
        let ip = out.first_chunk_mut::<48>().ok_or(too_short)?;
        let label = if state.path.has_label_in_each() { x.flow_label } else { state.path.flow_label };
        let word = 6 << 28 | u32::from(state.path.tos) << 20 | label.to_u32();
        ip[..4].copy_from_slice(&word.to_be_bytes());
        ip[4..8].copy_from_slice(&[udp_len[0], udp_len[1], protocol::UDP, state.path.ttl]);
        ip[8..24].copy_from_slice(&state.path.source);
        ip[24..40].copy_from_slice(&state.path.destination);
        ip[40..48].copy_from_slice(&udp);
    } else {
        let ip = out.first_chunk_mut::<28>().ok_or(too_short)?;
        let length = u16::try_from(total).map_err(|_| Unbuildable::Malformed)?.to_be_bytes();
        let id = x.ip_id.to_be_bytes();
        ip[..10].copy_from_slice(&[
            0x45,
            state.path.tos,
            length[0],
            length[1],
            id[0],
            id[1],
            u8::from(state.path.df) << 6,
            0,
            state.path.ttl,
            protocol::UDP,
        ]);
        ip[10..12].copy_from_slice(&[0, 0]);
        ip[12..16].copy_from_slice(&state.path.source[..4]);
        ip[16..20].copy_from_slice(&state.path.destination[..4]);
        ip[20..28].copy_from_slice(&udp);
        let sum = checksum(&ip[..20]).to_be_bytes();
        ip[10..12].copy_from_slice(&sum);
    }
    Ok(len)
}

/// Writes the options of an outline at `at`, and returns their end.
fn options(outline: &[u8], x: &HeaderFields<'_>, out: &mut [u8], at: usize) -> Result<usize, Unbuildable> {
    let room = out.len();
    let mut writer = Writer::new(out, at);
    let mut done = 0;
    for ((hole, &number), &octets) in x.holes.as_slice().iter().zip(&x.numbers).zip(&x.octets) {
        let (at, end) = hole.place();
        // Static options are copied.
        if done < at {
            writer.copy(outline.get(done..at).unwrap_or_default());
        }
        done = end;
        let (delta, parameters) = hole.option(outline).ok_or(Unbuildable::Malformed)?;
        let low = u32::from(parameters.first().copied().unwrap_or_default());
        let prefix = parameters.get(1..).unwrap_or_default();
        let mut head = [0; 6];
        let (front, behind): (&[u8], &[u8]) = match hole.kind {
            HoleKind::Counted | HoleKind::Lsb | HoleKind::Step(_) => (uint(number, &mut head), &[]),
            HoleKind::Block | HoleKind::BlockOfRequest => (uint(number << 4 | low, &mut head), &[]),
            HoleKind::PartialIv => {
                // RFC 8613, section 6.1: a Partial IV of 0 is one octet.
                let n = uint_len(number).max(1);
                head[0] = low as u8 | n as u8;
                head[1..=n].copy_from_slice(&number.to_be_bytes()[4 - n..]);
                (&head[..=n], prefix)
            }
            HoleKind::Octets(_) => (prefix, octets),
            HoleKind::Variable => (octets, &[]),
        };
        write_option(&mut writer, delta, front, behind).map_err(|_| Unbuildable::Malformed)?;
    }
    writer.copy(outline.get(done..).unwrap_or_default());
    writer.finish().map_err(|_| Unbuildable::NoRoom(room + 1))
}

/// Returns a uint in its shortest form.
#[inline]
fn uint(value: u32, room: &mut [u8; 6]) -> &[u8] {
    let len = uint_len(value);
    room[..4].copy_from_slice(&value.checked_shl(8 * (4 - len as u32)).unwrap_or(0).to_be_bytes());
    &room[..len]
}

/// Returns the sum of the payload as if it began at an even octet.
#[inline]
pub(super) fn payload_sum(payload: &[u8]) -> u16 {
    Sum::ZERO.octets(payload).fold()
}

/// Returns the UDP checksum of a packet with that port of the client, whose CoAP header is `header`. RFC 768; RFC 8200, section 8.1.
#[inline]
pub(super) fn udp_checksum(state: &CoapState, port: u16, header: &[u8], payload: Payload) -> u16 {
    let Payload { len: payload, sum: payload_sum } = payload;
    let len = (8 + header.len() + payload) as u16;
    // A payload that begins at an odd octet contributes its sum with the octets exchanged (RFC 1071, section 2 B).
    let odd = header.len() % 2 == 1;
    work::note(header.len() / 8);
    let payload_sum = if odd { payload_sum.swap_bytes() } else { payload_sum };
    // The length is in the pseudo-header and in the header.
    let lengths = u32::from(len) << 16 | u32::from(len);
    let ports_and_payload = u32::from(port) << 16 | u32::from(payload_sum);
    let sum = Sum::ZERO.octets(header).words(lengths).words(ports_and_payload).word(state.sum).checksum();
    if sum == 0 { 0xFFFF } else { sum }
}

/// Payload of a packet: its length, and its checksum if that stands for the one of UDP.
#[derive(Clone, Copy)]
pub(super) struct Payload {
    pub(super) len: usize,
    pub(super) sum: u16,
}

impl Payload {
    pub(super) const NONE: Self = Self { len: 0, sum: 0 };
}

/// Returns the CRC of a packet. It covers the fields of the context and of the packet, with the value minus the 16 bits of the
/// MSN in place of each counting field, and the `sent` bits of the MSN. The bits that are not sent are added to it, so that a
/// wrong turn is always detected.
#[inline(always)]
pub(super) fn crc(
    state: &CoapState,
    template: &Template,
    x: &HeaderFields<'_>,
    check: Check,
    sent: u32,
    payload: Payload,
) -> u8 {
    // In the order of the variants.
    let index = check as usize;
    let low = x.msn as u16;
    let counts = |counts: bool, value: u16| if counts { value.wrapping_sub(low) } else { value };
    let ip_id = counts(state.path.ip_id_mode == IpIdMode::Counted, x.ip_id).to_be_bytes();
    let message_id = counts(template.message_id == MessageIdMode::Counted, x.message_id).to_be_bytes();
    let sum =
        if state.path.checksum == ChecksumMode::Elided { payload.sum } else { x.checksum }.to_be_bytes();
    let kind = (x.message_type as u8) << 1 | u8::from(payload.len > 0);
    let sent = sent.min(16);
    let above = u32::from(low) >> sent;
    let sent_bits = (u32::from(low) & ((1 << sent) - 1)) as u16;
    let [high, lower] = sent_bits.to_be_bytes();
    // A wrong port that has the right CRC by chance has it with few other MSNs.
    let port = x.port.wrapping_add(sent_bits.wrapping_mul(SPREAD as u16));
    let [[sa, sb], [da, db]] = state.path.ports(port).map(u16::to_be_bytes);
    let [[ma, mb], [ca, cb]] = [message_id, sum];
    let head = [sa, sb, da, db, kind, high, lower, ma, mb, ca, cb, ip_id[0], ip_id[1]];
    let head = if state.path.has_ip_id() { &head[..] } else { &head[..11] };
    let mut crc = check.update(state.checks.crcs[index], head) ^ template.check[index];
    match template.token_mode {
        TokenMode::Static => {}
        TokenMode::CountedUint | TokenMode::Counted => {
            let anchor = x.token.uint().wrapping_sub(u64::from(low));
            crc = check.update(crc, &anchor.to_be_bytes());
        }
        TokenMode::OfRequest | TokenMode::Irregular => crc = check.update(crc, x.token.as_slice()),
    }
    if !template.is_plain() {
        crc = crc_of_values(check, crc, x);
    }
    let values = if template.is_plain() { 0 } else { x.octets.iter().map(|octets| octets.len()).sum() };
    work::note(values);
    // The factor keeps a few additional turns from having the effect of a flipped bit.
    ((u32::from(crc) + above * TURN) & ((1 << check.width()) - 1)) as u8
}

/// Continues a CRC over the values of the dynamic options.
fn crc_of_values(check: Check, mut crc: u8, x: &HeaderFields<'_>) -> u8 {
    for ((hole, &number), octets) in x.holes.as_slice().iter().zip(&x.numbers).zip(&x.octets) {
        crc = if hole.has_anchor() {
            let anchor = number.wrapping_sub(x.msn & 0xFFFF) & hole.mask();
            check.update(crc, &anchor.to_be_bytes())
        } else if hole.is_number() {
            check.update(crc, &number.to_be_bytes())
        } else {
            check.update(crc, octets)
        };
    }
    crc
}

/// Returns the CRC-7 of headers, with zero in place of the IPv4 checksum, for IR-CR.
pub(super) fn crc_of_headers(headers: &[u8], v6: bool) -> u8 {
    let check = Check::Crc7;
    let (front, behind) = headers.split_at(if v6 { 0 } else { headers.len().min(10) });
    let behind = if v6 { behind } else { behind.get(2..).unwrap_or_default() };
    let hole: &[u8] = if v6 { &[] } else { &[0, 0] };
    check.update_long(check.update(check.of(front), hole), behind)
}

/// Returns the CHECK of a packet with a correct checksum: the checksum, the fields that it does not cover, those that may compensate each
/// other in it, and the MSN, in one's-complement arithmetic.
#[inline]
pub(super) fn check16(state: &CoapState, template: &Template, x: &HeaderFields<'_>, checksum: u16) -> u16 {
    let low = x.msn as u16;
    let counts = |counts: bool, value: u16| if counts { value.wrapping_sub(low) } else { value };
    let ip_id = counts(state.path.ip_id_mode == IpIdMode::Counted, x.ip_id);
    let ip_id = if state.path.has_ip_id() { ip_id } else { 0 };
    // Alone, the checksum would take a Message ID that is 3 too high and a token, or a code, that is 3 too low.
    let message_id = counts(template.message_id == MessageIdMode::Counted, x.message_id);
    let [_, seven, eight] = template.check;
    let spread = |value: u16, factor: u32| u64::from(value) * u64::from(factor);
    let spread = spread(ip_id, IP_ID_SPREAD) + spread(message_id, MESSAGE_ID_SPREAD) + spread(low, SPREAD);
    let sum = Sum::ZERO.word(checksum).word(state.checks.digest).word(u16::from_be_bytes([seven, eight]));
    let sum = sum.word((spread >> 32) as u16).words(spread as u32).fold();
    // One's complement has two zeros.
    if sum == 0xFFFF { 0 } else { sum }
}
