//! Encoding methods of RFC 5225. Section 6.8.2.4, "General encoding methods" and "Encoding methods used in the profiles' CO headers".

use thinair_wire::coder::{Coder, Step};

pub(super) use crate::compressor::ReorderRatio;
pub(super) use crate::field::encodings::{Counter, fl_enc, refuse, zeros};

/// The offset of `k` bits of other fields.
pub(super) const fn quarter(k: u32) -> u32 {
    (1 << k) / 4 - 1
}

/// The widths of self-describing fields, up to the whole value.
const WIDTHS: [u32; 4] = [7, 14, 21, 28];

/// The discriminator of a self-describing field: its width in bits, `whole` if it is none of the shorter ones. A writer takes the first that
/// `fits`.
fn sdvl_width<'p, C: Coder<'p>>(c: &mut C, whole: u32, fits: impl Fn(u32) -> bool) -> Step<u32> {
    for width in WIDTHS {
        if !c.flag("discriminator", &mut (C::READS || !fits(width)))? {
            return Ok(width);
        }
    }
    let mut ones = 0xF_u8;
    c.uint("discriminator", 4, &mut ones)?;
    c.require(ones == 0xF)?;
    Ok(whole)
}

/// `sdvl_or_static(flag)` and, with the value `absent`, `sdvl_or_default(flag, default_value)`.
pub(super) fn sdvl_or<'p, C: Coder<'p>>(
    c: &mut C,
    name: &'static str,
    flag: bool,
    absent: Option<u32>,
    value: &mut u32,
) -> Step {
    if !flag {
        *value = absent.unwrap_or(*value);
        return Ok(());
    }
    let written = *value;
    let width = sdvl_width(c, 32, |width| written >> width == 0)?;
    c.uint(name, width, value)
}

/// `sdvl_lsb(32)`, with the offsets `p` of its widths.
pub(super) fn sdvl_lsb<'p, C: Coder<'p>>(
    c: &mut C,
    name: &'static str,
    value: &mut Counter,
    p: impl Fn(u32) -> u32,
) -> Step {
    let written = *value;
    match sdvl_width(c, 32, |width| written.fits(width, p(width)))? {
        32 => value.irregular(c, name, 32),
        width => value.lsb(c, name, width, p(width)),
    }
}

/// The widths of an MSN in `sdvl_sn_lsb`.
#[derive(Clone, Copy)]
pub(super) struct SnWidths {
    /// Bits of the whole MSN.
    pub(super) whole: u32,
    pub(super) ratio: ReorderRatio,
    /// Least number of bits that a writer sends.
    pub(super) least: u32,
}

/// `sdvl_sn_lsb(field_width)`. An MSN of 16 bits is kept with 32: whole, it is the one that is next to the reference. It is never
/// written with 21 or 28 bits, of which the low ones count.
pub(super) fn sdvl_sn_lsb<'p, C: Coder<'p>>(
    c: &mut C,
    name: &'static str,
    SnWidths { whole, ratio, least }: SnWidths,
    value: &mut Counter,
) -> Step {
    let (written, reference) = (*value, value.value);
    let fits = |k: u32| (least..whole).contains(&k) && written.fits(k, ratio.p(k));
    match sdvl_width(c, whole, fits)? {
        16 => {
            let mut low = written.value as u16;
            c.uint(name, 16, &mut low)?;
            value.value = near(reference, low);
            Ok(())
        }
        32 => value.irregular(c, name, 32),
        k => value.lsb(c, name, k, ratio.p(k)),
    }
}

/// The number next to a reference that has these low bits.
pub(super) const fn near(reference: u32, low: u16) -> u32 {
    reference.wrapping_add_signed(low.wrapping_sub(reference as u16) as i16 as i32)
}

/// `lsb_7_or_31`: sequence numbers of AH and GRE.
pub(super) fn lsb_7_or_31<'p, C: Coder<'p>>(c: &mut C, name: &'static str, value: &mut Counter) -> Step {
    let k = if c.flag("discriminator", &mut (C::READS || !value.fits(7, quarter(7))))? { 31 } else { 7 };
    value.lsb(c, name, k, quarter(k))
}
