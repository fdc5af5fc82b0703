//! The packet formats. Section 4 of `docs/dtls-profile.md`.

use thinair_wire::coder::{Coder, LsbSlot, Step};

use super::state::{ChecksumMode, DtlsPath, DtlsState, IpIdMode};
use super::{Carries, HeaderFields, NonceSource};
use crate::cid::Cid;
use crate::id::{Format, ProfileId};

/// Master Sequence Number.
pub(super) const MSN: LsbSlot = LsbSlot::new(0, "MSN");

/// First octets of the long formats.
pub(super) const IR: u8 = 0xFD;
pub(super) const IR_CR: u8 = 0xFC;
pub(super) const CO_REPAIR: u8 = 0xFB;

/// Returns the short format of a packet that needs so many bits of the MSN, and perhaps other fields.
#[inline]
pub(super) fn format_for(path: &DtlsPath, carries: Carries, needed: u32) -> Format {
    match path.checksum {
        ChecksumMode::Carried if carries.is_nothing() && needed <= 7 => Format::Pt0c,
        ChecksumMode::Carried => Format::Pt2c,
        ChecksumMode::Zero | ChecksumMode::Elided if carries.is_nothing() && needed <= 6 => Format::Pt1,
        ChecksumMode::Zero | ChecksumMode::Elided => Format::Pt2,
    }
}

/// Returns the format of a packet of an established context, by its first octet.
#[inline]
pub(super) fn format_of(first: u8, path: &DtlsPath) -> Option<Format> {
    let is_carried = path.checksum == ChecksumMode::Carried;
    match first {
        0..0x80 if is_carried => Some(Format::Pt0c),
        0x80..0xC0 if !is_carried => Some(Format::Pt1),
        0xC0..0xE0 if is_carried => Some(Format::Pt2c),
        0xC0..0xE0 => Some(Format::Pt2),
        CO_REPAIR => Some(Format::CoRepair),
        _ => None,
    }
}

/// True if a format has a CHECK instead of a CRC.
#[inline]
pub(super) const fn has_check(format: Format) -> bool {
    matches!(format, Format::Pt0c | Format::Pt2c)
}

/// Codes a packet of that format.
#[inline]
pub(super) fn packet<'p, C: Coder<'p>>(
    format: Format,
    c: &mut C,
    x: &mut HeaderFields,
    next: &mut DtlsState,
) -> Step {
    match format {
        Format::Pt0c => pt_0c(c, x)?,
        Format::Pt1 => pt_1(c)?,
        Format::Pt2 => pt_2(c, x)?,
        Format::Pt2c => pt_2c(c, x)?,
        Format::CoRepair => co_repair(c, x, next)?,
        Format::Ir => ir(c, x, next)?,
        Format::IrCr => ir_cr(c, x, next)?,
        _ => c.enforce(false)?,
    }
    if !x.carries.is_nothing() || next.has_chain() {
        chain(c, x, next)?;
    }
    if is_long(format) && next.path.checksum != ChecksumMode::Zero {
        c.uint("UDP Checksum", 16, &mut x.checksum)?;
    }
    Ok(())
}

/// True if a format has all fields that can change.
#[inline]
pub(super) const fn is_long(format: Format) -> bool {
    matches!(format, Format::Ir | Format::IrCr | Format::CoRepair)
}

/// `pt_0c`: 7-bit MSN, CHECK. Section 4.1.
#[inline]
fn pt_0c<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields) -> Step {
    c.discriminator(1, 0b0)?;
    c.lsb(MSN, 7, 0)?;
    c.uint("CHECK", 16, &mut x.check)
}

/// `pt_1`: 6-bit MSN, CRC-8. Section 4.2.
#[inline]
fn pt_1<'p, C: Coder<'p>>(c: &mut C) -> Step {
    c.discriminator(2, 0b10)?;
    c.lsb(MSN, 6, 0)?;
    c.crc("CRC", 8)
}

/// `pt_2`: 16-bit MSN, CRC-8, fields that have changed. Section 4.3.
#[inline]
fn pt_2<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields) -> Step {
    changes(c, x)?;
    c.crc("CRC", 8)
}

/// `pt_2c`: 16-bit MSN, CHECK, fields that have changed. Section 4.3.
#[inline]
fn pt_2c<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields) -> Step {
    changes(c, x)?;
    c.uint("CHECK", 16, &mut x.check)
}

/// Common part of `pt_2` and `pt_2c`.
#[inline]
fn changes<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields) -> Step {
    c.discriminator(3, 0b110)?;
    c.flag("ip_id", &mut x.carries.ip_id)?;
    c.flag("record", &mut x.carries.record)?;
    c.flag("number", &mut x.carries.number)?;
    c.flag("length", &mut x.carries.length)?;
    c.reserved(1)?;
    c.lsb(MSN, 16, 0)
}

/// `co_repair`: all fields that can change in a context; CRC-8. Section 4.4.
fn co_repair<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields, next: &mut DtlsState) -> Step {
    c.discriminator(8, CO_REPAIR.into())?;
    c.crc("CRC", 8)?;
    let v6 = next.path.v6;
    control(c, x, next)?;
    c.require(next.path.v6 == v6)?;
    x.has_dynamic = true;
    ip_dynamic(c, x, next)
}

/// IR: all fields. Section 4.5. The CRC-8 covers the ROHC header (RFC 5225, section 6.8.1).
fn ir<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields, next: &mut DtlsState) -> Step {
    c.discriminator(8, IR.into())?;
    c.discriminator(8, ProfileId::Dtls.low_octet().into())?;
    c.crc("CRC", 8)?;
    control(c, x, next)?;
    let path = &mut next.path;
    let len = if path.v6 { 16 } else { 4 };
    for octet in path.source.iter_mut().take(len) {
        c.uint("Source Address", 8, octet)?;
    }
    for octet in path.destination.iter_mut().take(len) {
        c.uint("Destination Address", 8, octet)?;
    }
    x.has_dynamic = true;
    ports(c, path)?;
    ip_dynamic(c, x, next)
}

/// IR-CR: the addresses, and perhaps the dynamic part of the IP header, are those of the base. Section 4.7. The CRC-8 is as in IR.
fn ir_cr<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields, next: &mut DtlsState) -> Step {
    ir_cr_head(c, x, next)?;
    ports(c, &mut next.path)?;
    ip_dynamic(c, x, next)
}

/// IR-CR up to the context CRC.
pub(super) fn ir_cr_head<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields, next: &mut DtlsState) -> Step {
    c.discriminator(8, IR_CR.into())?;
    c.discriminator(8, ProfileId::Dtls.low_octet().into())?;
    c.crc("CRC", 8)?;
    control(c, x, next)?;
    c.flag("dynamic", &mut x.has_dynamic)?;
    c.reserved(1)?;
    let mut base = x.base.map_or(0, Cid::value);
    c.uint("base", 14, &mut base)?;
    x.base = Cid::new(base);
    c.uint("context CRC", 16, &mut x.check)
}

fn ports<'p, C: Coder<'p>>(c: &mut C, path: &mut DtlsPath) -> Step {
    c.uint("Source Port", 16, &mut path.source_port)?;
    c.uint("Destination Port", 16, &mut path.destination_port)
}

/// Control fields, and flags of the long formats.
fn control<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields, next: &mut DtlsState) -> Step {
    let path = &mut next.path;
    c.flag("version", &mut path.v6)?;
    c.flag("DF", &mut path.df)?;
    c.uint("checksum", 2, &mut path.checksum)?;
    c.uint("ip_id", 2, &mut path.ip_id_mode)?;
    c.flag("length", &mut x.carries.length)?;
    c.flag("msn", &mut x.has_msn)?;
    Ok(())
}

/// TOS or Traffic Class, TTL or Hop Limit, Flow Label, MSN.
fn ip_dynamic<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields, next: &mut DtlsState) -> Step {
    let path = &mut next.path;
    if x.has_dynamic {
        c.uint(if path.v6 { "Traffic Class" } else { "TOS" }, 8, &mut path.tos)?;
        c.uint(if path.v6 { "Hop Limit" } else { "TTL" }, 8, &mut path.ttl)?;
    }
    if x.has_dynamic && path.v6 {
        c.reserved(4)?;
        c.uint("Flow Label", 20, &mut path.flow_label)?;
    }
    if x.has_msn {
        c.lsb(MSN, 16, 0)?;
    }
    x.carries = Carries { ip_id: true, record: true, number: true, length: x.carries.length };
    Ok(())
}

/// Chain behind a base header: fields that have changed, and those that every packet carries. Section 4.6.
fn chain<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields, next: &mut DtlsState) -> Step {
    let path = &next.path;
    if !path.v6 && (x.carries.ip_id || path.ip_id_mode == IpIdMode::Irregular) {
        c.uint("IP-ID", 16, &mut x.ip_id)?;
    }
    if x.carries.record {
        record(c, x, next)?;
    }
    let kind = next.shape.kind;
    if x.carries.number && !kind.is_unified() {
        number(c, x, next)?;
    }
    if x.carries.record && x.nonce_source == NonceSource::Carried {
        c.octets("nonce", &mut x.nonce)?;
    }
    if x.carries.length {
        c.uint("length", 16, &mut x.length)?;
    }
    if kind.is_unified() {
        c.uint("encrypted sequence number", 8 * kind.encrypted_len() as u32, &mut x.encrypted)?;
    }
    Ok(())
}

/// Type of a record: content type or first octet of a unified header, version, nonce, connection ID.
fn record<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields, next: &mut DtlsState) -> Step {
    let shape = &mut next.shape;
    c.uint("type", 8, &mut shape.kind.first)?;
    c.flag("version 1.0", &mut shape.kind.is_1_0)?;
    c.uint("nonce", 2, &mut x.nonce_source)?;
    c.uint("CID length", 5, &mut shape.kind.cid_len)?;
    c.require(shape.kind.is_valid())?;
    let len = shape.kind.cid_len.into();
    for octet in shape.cid.iter_mut().take(len) {
        c.uint("CID", 8, octet)?;
    }
    shape.cid.iter_mut().skip(len).for_each(|octet| *octet = 0);
    if shape.kind.is_unified() {
        next.epoch = 0;
    }
    Ok(())
}

/// Epoch and sequence number: 7 and 16 bits, or all.
fn number<'p, C: Coder<'p>>(c: &mut C, x: &mut HeaderFields, next: &mut DtlsState) -> Step {
    let is_wide = next.epoch > 0x7F || x.number > 0xFFFF;
    let (mut high, mut low) = ((x.number >> 16) as u32, x.number as u16);
    if c.flag("wide", &mut { is_wide })? {
        c.reserved(7)?;
        c.uint("epoch", 16, &mut next.epoch)?;
        c.uint("sequence number", 32, &mut high)?;
    } else {
        c.uint("epoch", 7, &mut next.epoch)?;
        high = 0;
    }
    c.uint("sequence number", 16, &mut low)?;
    x.number = u64::from(high) << 16 | u64::from(low);
    Ok(())
}
