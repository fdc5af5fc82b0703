//! The headers of a packet: octets and checks. Section 5 of `docs/dtls-profile.md`.

use thinair_wire::checksum::{Sum, checksum};
use thinair_wire::crc::Check;
use thinair_wire::header::protocol;

use super::state::{ChecksumMode, DtlsPath, DtlsState, IpIdMode};
use super::{HeaderFields, NONCE};
use crate::decompressor::Unbuildable;
use crate::work;

/// Factor of the MSN in a CHECK. Sequence number and nonce count with the MSN, so that a distance of `d` changes the sum by `d` times this
/// and one or two more: 0 modulo 2^16 - 1 for no `d` that is a multiple of 16, up to 2^15.
const SPREAD: u32 = 0x6901;

/// Factor, in a CRC, of the bits of the MSN that are not sent. It is odd, so that every turn gives another CRC.
const TURN: u32 = 45;

/// Writes the headers in front of a payload to the start of `out`, without the UDP checksum, and returns their length.
#[inline]
pub(super) fn rebuild(
    state: &DtlsState,
    x: &HeaderFields,
    payload: usize,
    out: &mut [u8],
) -> Result<usize, Unbuildable> {
    let path = &state.path;
    let (at, len) = (state.record_at(), state.headers());
    let total = len + payload;
    let (head, record) =
        out.get_mut(..len).and_then(|out| out.split_at_mut_checked(at)).ok_or(Unbuildable::NoRoom(total))?;
    write_record(state, x, payload, record).ok_or(Unbuildable::Malformed)?;
    let ip_len = at - 8;
    let udp_len = u16::try_from(total - ip_len).map_err(|_| Unbuildable::Malformed)?.to_be_bytes();
    let [[sa, sb], [da, db]] = [path.source_port, path.destination_port].map(u16::to_be_bytes);
    let udp = [sa, sb, da, db, udp_len[0], udp_len[1], 0, 0];
    if let Some(ip) = head.first_chunk_mut::<48>() {
        let word = 6 << 28 | u32::from(path.tos) << 20 | path.flow_label;
        ip[..4].copy_from_slice(&word.to_be_bytes());
        ip[4..8].copy_from_slice(&[udp_len[0], udp_len[1], protocol::UDP, path.ttl]);
        ip[8..24].copy_from_slice(&path.source);
        ip[24..40].copy_from_slice(&path.destination);
        ip[40..48].copy_from_slice(&udp);
    } else if let Some(ip) = head.first_chunk_mut::<28>() {
        let [la, lb] = u16::try_from(total).map_err(|_| Unbuildable::Malformed)?.to_be_bytes();
        let [ia, ib] = x.ip_id.to_be_bytes();
        let flags = u8::from(path.df) << 6;
        ip[..10].copy_from_slice(&[0x45, path.tos, la, lb, ia, ib, flags, 0, path.ttl, protocol::UDP]);
        ip[10..12].copy_from_slice(&[0, 0]);
        ip[12..16].copy_from_slice(&path.source[..4]);
        ip[16..20].copy_from_slice(&path.destination[..4]);
        ip[20..28].copy_from_slice(&udp);
        let sum = checksum(&ip[..20]).to_be_bytes();
        ip[10..12].copy_from_slice(&sum);
    }
    work::note(len / 8);
    Ok(len)
}

/// Writes the header of the first record, and its nonce.
#[inline]
fn write_record(state: &DtlsState, x: &HeaderFields, payload: usize, out: &mut [u8]) -> Option<()> {
    let shape = &state.shape;
    let kind = shape.kind;
    let (header, nonce) = out.split_at_mut_checked(kind.header_len())?;
    let length = if x.carries.length { x.length } else { u16::try_from(payload + nonce.len()).ok()? };
    if let Some(nonce) = nonce.first_chunk_mut::<NONCE>() {
        *nonce = state.nonce(x.number).to_be_bytes();
    }
    if kind.has_length() {
        *header.last_chunk_mut()? = length.to_be_bytes();
    }
    if kind.is_unified() {
        let (first, rest) = header.split_first_mut()?;
        *first = kind.first;
        let (cid, rest) = rest.split_at_mut_checked(shape.cid().len())?;
        cid.copy_from_slice(shape.cid());
        match kind.encrypted_len() {
            1 => *rest.first_mut()? = x.encrypted as u8,
            _ => *rest.first_chunk_mut()? = x.encrypted.to_be_bytes(),
        }
        return Some(());
    }
    let (fixed, rest) = header.split_first_chunk_mut::<11>()?;
    let [_, _, s, t, u, v, w, y] = x.number.to_be_bytes();
    let [e, f] = state.epoch.to_be_bytes();
    *fixed = [kind.first, 254, 253 | u8::from(kind.is_1_0) << 1, e, f, s, t, u, v, w, y];
    if kind.cid_len > 0 {
        rest.get_mut(..shape.cid().len())?.copy_from_slice(shape.cid());
    }
    Some(())
}

/// Returns the sum of the payload as if it began at an even octet.
#[inline]
pub(super) fn payload_sum(payload: &[u8]) -> u16 {
    work::note(payload.len() / 8);
    Sum::ZERO.octets(payload).fold()
}

/// Returns the UDP checksum of a packet, by the octets of its record header, and length and sum of the payload. RFC 768; RFC 8200, section
/// 8.1.
#[inline(always)]
pub(super) fn udp_checksum(state: &DtlsState, record: &[u8], payload: usize, payload_sum: u16) -> u16 {
    let len = (8 + record.len() + payload) as u16;
    // A payload that begins at an odd octet contributes its sum with the octets exchanged (RFC 1071, section 2 B).
    let payload_sum = if record.len() % 2 == 1 { payload_sum.swap_bytes() } else { payload_sum };
    // The length is in the pseudo-header and in the header.
    let sum = Sum::ZERO.octets(record).word(state.sum).word(len).word(len).word(payload_sum).checksum();
    if sum == 0 { 0xFFFF } else { sum }
}

/// True if that is the UDP checksum of a datagram.
pub(super) fn is_right(path: &DtlsPath, datagram: &[u8], checksum: u16) -> bool {
    let len = (8 + datagram.len()) as u16;
    let sum = path.sum().word(len).word(len).word(checksum).octets(datagram).fold();
    sum == 0xFFFF && checksum != 0
}

/// Returns the CRC-8 of a packet. It covers the fields of the context and of the packet, with the value minus the MSN in place of each field
/// that counts, and the `sent` bits of the MSN. Those that are not sent are added to it, so that a wrong turn is always detected. `sum` is
/// that of the payload if the UDP checksum is elided.
#[inline]
pub(super) fn crc8(state: &DtlsState, x: &HeaderFields, sent: u32, sum: u16) -> u8 {
    let [_, _, a, b, c, d, e, f] = (x.number.wrapping_sub(x.msn.into())).to_be_bytes();
    let sent = sent.min(16);
    let above = u32::from(x.msn) >> sent;
    let [ma, mb] = ((u32::from(x.msn) & ((1 << sent) - 1)) as u16).to_be_bytes();
    let [sa, sb] = if state.path.checksum == ChecksumMode::Elided { sum } else { 0 }.to_be_bytes();
    let check = Check::Crc8;
    let mut crc = check.update(state.crc, &[a, b, c, d, e, f, ma, mb, sa, sb]);
    if !state.path.v6 {
        crc = check.update(crc, &state.ip_id_reference(x).to_be_bytes());
    }
    if state.shape.kind.is_unified() {
        crc = check.update(crc, &x.encrypted.to_be_bytes());
    }
    if x.carries.length {
        crc = check.update(crc, &x.length.to_be_bytes());
    }
    work::note(16);
    (u32::from(crc) + above * TURN) as u8
}

/// Returns the CHECK of a packet: its checksum, the fields of the context, the IP-ID, and the MSN, in one's-complement arithmetic.
#[inline]
pub(super) fn check16(state: &DtlsState, x: &HeaderFields, checksum: u16) -> u16 {
    let ip_id = match state.path.ip_id_mode {
        _ if state.path.v6 => 0,
        IpIdMode::Counted => x.ip_id.wrapping_sub(x.msn),
        IpIdMode::Constant | IpIdMode::Irregular => x.ip_id,
    };
    let spread = u32::from(x.msn) * SPREAD;
    let sum = Sum::ZERO.word(checksum).word(state.digest).word(ip_id);
    let sum = sum.word((spread >> 16) as u16).word(spread as u16).fold();
    // One's complement has two zeros.
    if sum == 0xFFFF { 0 } else { sum }
}
