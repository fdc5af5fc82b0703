//! The encoding methods that several formats share. RFC 6846, section 8.2, "General encoding methods".

use thinair_wire::coder::{Coder, Step, Word};

pub(super) use crate::field::encodings::{Counter, fl_enc, refuse, static_or_irreg, zeros};

/// `zero_or_irreg(flag, width)`.
#[inline(always)]
pub(super) fn zero_or_irreg<'p, W: Word, C: Coder<'p>>(
    c: &mut C,
    name: &'static str,
    is_zero: bool,
    width: u32,
    value: &mut W,
) -> Step {
    if is_zero {
        *value = W::from_u32(0);
        return Ok(());
    }
    c.uint(name, width, value)
}

/// `variable_length_32_enc(flag)`.
pub(super) fn variable_length_32_enc<'p, C: Coder<'p>>(
    c: &mut C,
    name: &'static str,
    flag: u8,
    value: &mut Counter,
) -> Step {
    match flag {
        0 => Ok(()),
        1 => value.lsb(c, name, 8, 63),
        2 => value.lsb(c, name, 16, 16_383),
        _ => value.irregular(c, name, 32),
    }
}

/// Returns the shortest flag of [`variable_length_32_enc`] that can encode a value.
pub(super) fn variable_length_32_flag(value: &Counter) -> u8 {
    if value.is_static() {
        0
    } else if value.fits(8, 63) {
        1
    } else if value.fits(16, 16_383) {
        2
    } else {
        3
    }
}

/// `lsb_7_or_31`: the sequence number of an AH.
pub(super) fn lsb_7_or_31<'p, C: Coder<'p>>(c: &mut C, name: &'static str, value: &mut Counter) -> Step {
    if !c.flag("discriminator", &mut !value.fits(7, 8))? {
        return value.lsb(c, name, 7, 8);
    }
    value.lsb(c, name, 31, 256)
}

/// `rsf_index_enc`: RST, SYN and FIN, of which at most one is set.
#[inline(always)]
pub(super) fn rsf_index_enc<'p, C: Coder<'p>>(c: &mut C, rsf: &mut u8) -> Step {
    let index = match *rsf {
        0b000 => Some(0),
        0b100 => Some(1),
        0b010 => Some(2),
        0b001 => Some(3),
        _ => None,
    };
    if !C::READS {
        // A value that is read stands for the flags of the previous packet, which may have been several.
        c.enforce(index.is_some())?;
    }
    let mut index = index.unwrap_or(0_u8);
    c.uint("rsf_flags", 2, &mut index)?;
    *rsf = [0b000, 0b100, 0b010, 0b001][usize::from(index & 3)];
    Ok(())
}

/// `ts_lsb`: a timestamp of 7, 14, 21 or 29 bits.
#[inline(always)]
pub(super) fn ts_lsb<'p, C: Coder<'p>>(c: &mut C, name: &'static str, value: &mut Counter) -> Step {
    let form = if C::READS { None } else { ts_form(value) };
    if !C::READS {
        c.enforce(form.is_some())?;
    }
    if !c.flag("discriminator", &mut (form > Some(0)))? {
        return value.low_bits(c, name, 7, MINUS_ONE);
    }
    if !c.flag("discriminator", &mut (form > Some(1)))? {
        return value.low_bits(c, name, 14, MINUS_ONE);
    }
    if !c.flag("discriminator", &mut (form > Some(2)))? {
        return value.low_bits(c, name, 21, 0x0004_0000);
    }
    value.low_bits(c, name, 29, 0x0400_0000)
}

/// Returns the shortest form of [`ts_lsb`] for a value, by its index.
#[inline(always)]
fn ts_form(value: &Counter) -> Option<u8> {
    if value.fits(7, MINUS_ONE) {
        Some(0)
    } else if value.fits(14, MINUS_ONE) {
        Some(1)
    } else if value.fits(21, 0x0004_0000) {
        Some(2)
    } else {
        ts_fits(value).then_some(3)
    }
}

/// True if [`ts_lsb`] has a form for a value: the longest one encodes all that the others do.
#[inline]
pub(super) fn ts_fits(value: &Counter) -> bool {
    value.fits(29, 0x0400_0000)
}

/// Offset of a field that always grows.
const MINUS_ONE: u32 = u32::MAX;

/// `sack_pure_lsb(base)`: a sequence number, as its distance from another one.
pub(super) fn sack_pure_lsb<'p, C: Coder<'p>>(
    c: &mut C,
    name: &'static str,
    base: u32,
    field: &mut u32,
) -> Step {
    let mut distance = field.wrapping_sub(base);
    if !c.flag("discriminator", &mut (distance > 0x7FFF))? {
        c.uint(name, 15, &mut distance)?;
    } else if !c.flag("discriminator", &mut (distance > 0x3F_FFFF))? {
        c.uint(name, 22, &mut distance)?;
    } else if !c.flag("discriminator", &mut (distance > 0x1FFF_FFFF))? {
        c.uint(name, 29, &mut distance)?;
    } else {
        let mut ones = 0b1_1111_u8;
        c.uint("discriminator", 5, &mut ones)?;
        c.require(ones == 0b1_1111)?;
        c.uint(name, 32, &mut distance)?;
    }
    *field = base.wrapping_add(distance);
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use thinair_wire::coder::{Reader, Writer};
    use thinair_wire::range::Range;

    use super::*;

    type Method<'a> = &'a dyn Fn(&mut Writer<'_>, &mut Counter) -> Step;
    type Inverse<'a> = &'a dyn Fn(&mut Reader<'_>, &mut Counter) -> Step;

    fn passes(
        value: u32,
        candidates: &[u32],
        write: Method<'_>,
        read: Inverse<'_>,
    ) -> Result<bool, TestCaseError> {
        let mut range = Range::<u32>::new();
        candidates.iter().for_each(|candidate| range.push(*candidate, 4));
        let mut out = [0; 8];
        let mut writer = Writer::new(&mut out, 0);
        if write(&mut writer, &mut Counter::beside(value, &range)).is_err() {
            return Ok(false);
        }
        let len = writer.finish().unwrap();
        for reference in candidates {
            let mut field = Counter::read(*reference);
            prop_assert!(read(&mut Reader::contiguous(&out[..len]), &mut field).is_ok());
            prop_assert_eq!(field.value, value, "from {}", reference);
        }
        Ok(true)
    }

    proptest! {
        /// A field is read as it was written, whichever of the last four values the other side holds.
        #[test]
        fn lsbs_are_read_from_every_candidate(
            first: u32,
            steps in proptest::collection::vec(prop_oneof![Just(0_u32), 0..200_u32, 0..70_000_u32, any::<u32>()], 4),
        ) {
            let mut values = std::vec![first];
            for step in steps {
                values.push(values[values.len() - 1].wrapping_add(step));
            }
            let (candidates, value) = (&values[..4], values[4]);
            for (k, p) in [(8, 63), (16, 16_383), (16, 32_767), (24, 65_535)] {
                passes(value, candidates, &|w, v| v.lsb(w, "", k, p), &|r, v| v.lsb(r, "", k, p))?;
            }
            passes(value, candidates, &|w, v| lsb_7_or_31(w, "", v), &|r, v| lsb_7_or_31(r, "", v))?;
            let mut range = Range::<u32>::new();
            candidates.iter().for_each(|candidate| range.push(*candidate, 4));
            let done = passes(value, candidates, &|w, v| ts_lsb(w, "", v), &|r, v| ts_lsb(r, "", v))?;
            prop_assert_eq!(done, ts_fits(&Counter::beside(value, &range)));
            let field = Counter::beside(value, &range);
            prop_assert_eq!(field.is_static(), variable_length_32_flag(&field) == 0);
        }

        #[test]
        fn sack_blocks_are_distances(base: u32, field: u32, near in 0..0x80_0000_u32) {
            for field in [field, base.wrapping_add(near), base.wrapping_add(near >> 8), base.wrapping_sub(near)] {
                let mut out = [0; 8];
                let mut writer = Writer::new(&mut out, 0);
                sack_pure_lsb(&mut writer, "", base, &mut { field }).unwrap();
                let len = writer.finish().unwrap();
                let mut back = 0;
                sack_pure_lsb(&mut Reader::contiguous(&out[..len]), "", base, &mut back).unwrap();
                prop_assert_eq!(back, field);
            }
        }
    }
}
