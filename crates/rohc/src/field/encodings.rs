//! Encoding methods that the formal notation of RFC 4997 has, or that RFC 6846 and RFC 5225 have in common.

use thinair_wire::coder::{Coder, Refusal, Step, Word};
use thinair_wire::range::Range;
use thinair_wire::serial::Serial;

/// A field of which least significant bits are sent: `lsb(k, p)` of RFC 4997, section 4.11.5.
///
/// A reader has one reference; a writer has every value that the other side may hold as its reference. Bits are resolved when
/// they are read, because the reference does not depend on the packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter<S = u32> {
    /// The whole value.
    pub(crate) value: S,
    /// The lowest and the highest value that may be the reference. For a reader, and for a writer if the other side has no
    /// value, they are half the space apart: no number of bits is enough, and the field is not static.
    low: S,
    high: S,
    /// Number of bits that were read or written; 0 if the value does not depend on its reference.
    pub(crate) bits: u8,
}

impl<S: Serial + Word> Counter<S> {
    /// Creates a field to be read. Until then it has the value of its reference.
    #[inline]
    pub(crate) fn read(reference: S) -> Self {
        Self::between(reference, None)
    }

    /// Creates a field to be written, with the bounds of the values that the other side may hold.
    #[inline]
    pub(crate) fn between(value: S, bounds: Option<(S, S)>) -> Self {
        Self::within(value, bounds.unwrap_or((value, value.plus(1 << (S::BITS - 1)))))
    }

    /// Creates a field to be written, with all values that the other side may hold.
    #[inline]
    pub(crate) fn beside(value: S, held: &Range<S>) -> Self {
        // Normally it does not change.
        let is_same = held.holds_only(value);
        Self::between(value, if is_same { Some((value, value)) } else { held.bounds() })
    }

    /// Creates a field to be written, with bounds that are half the space apart if no number of bits is enough.
    #[inline]
    pub(crate) fn within(value: S, bounds: (S, S)) -> Self {
        let (low, high) = bounds;
        Self { value, low, high, bits: 0 }
    }

    /// True if `k` bits of the value are enough for every candidate of the other side. `p` is the offset of RFC 4997. (Writing
    /// only.)
    #[inline]
    pub(crate) fn fits(&self, k: u32, p: u32) -> bool {
        let highest = self.value.plus(p);
        highest.since(self.low) | highest.since(self.high) < 1 << k
    }

    /// True if the other side holds the value. (Writing only.)
    #[inline]
    pub(crate) fn is_static(&self) -> bool {
        self.value == self.low && self.value == self.high
    }

    /// `lsb(k, p)`, with `k` less than the width of the field.
    #[inline]
    pub(crate) fn lsb<'p, C: Coder<'p>>(&mut self, c: &mut C, name: &'static str, k: u32, p: u32) -> Step {
        if !C::READS {
            c.enforce(self.fits(k, p))?;
        }
        self.low_bits(c, name, k, p)
    }

    /// [`lsb`](Self::lsb) of a value for which `k` bits are known to be enough.
    #[inline]
    pub(crate) fn low_bits<'p, C: Coder<'p>>(
        &mut self,
        c: &mut C,
        name: &'static str,
        k: u32,
        p: u32,
    ) -> Step {
        let mut bits = Word::to_u32(self.value) & ((1 << k) - 1);
        c.uint(name, k, &mut bits)?;
        self.bits = k as u8;
        if C::READS {
            let start = self.low.plus(p.wrapping_neg());
            self.value = start.plus(bits.wrapping_sub(Word::to_u32(start)) & ((1 << k) - 1));
        }
        Ok(())
    }

    /// `irregular(width)`.
    #[inline]
    pub(crate) fn irregular<'p, C: Coder<'p>>(&mut self, c: &mut C, name: &'static str, width: u32) -> Step {
        c.uint(name, width, &mut self.value)
    }
}

/// Bits that must be zero; "otherwise, the decompressor MUST discard the packet".
#[inline]
pub(crate) fn zeros<'p, C: Coder<'p>>(c: &mut C, name: &'static str, width: u32) -> Step {
    let mut zeros = 0_u8;
    c.uint(name, width, &mut zeros)?;
    c.require(zeros == 0)
}

/// `static_or_irreg(flag, width)`.
#[inline]
pub(crate) fn static_or_irreg<'p, W: Word, C: Coder<'p>>(
    c: &mut C,
    name: &'static str,
    flag: bool,
    width: u32,
    value: &mut W,
) -> Step {
    if flag { c.uint(name, width, value) } else { Ok(()) }
}

/// `fl_enc`: a Flow Label, in 5 bits if it is zero.
pub(crate) fn fl_enc<'p, C: Coder<'p>>(c: &mut C, flow_label: &mut u32) -> Step {
    if c.flag("discriminator", &mut (*flow_label != 0))? {
        return c.uint("flow_label", 20, flow_label);
    }
    *flow_label = 0;
    zeros(c, "reserved", 4)
}

/// Rejects a value that a format cannot encode.
pub(crate) fn refuse<T>() -> Step<T> {
    Err(Refusal::DoesNotFit)
}
