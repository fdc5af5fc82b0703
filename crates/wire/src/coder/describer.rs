//! A [`Coder`] that lists the fields of a format without any octets.

use super::{Coder, LsbSlot, Refusal, Step, Word};

/// A field of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatField {
    /// Name in the standard; `""` for a discriminator.
    pub name: &'static str,
    /// Width in bits; 0 for a field of variable length.
    pub bits: u32,
    /// Pattern of a discriminator; 0 for other fields.
    pub pattern: u32,
}

/// Lists the fields of one configuration of a format, at most `N` of them.
///
/// Every guard holds. Flags are answered from `choices`, lowest bit first, so that a caller can visit every
/// branch; [`flags`](Self::flags) returns how many flags the format has read.
#[derive(Clone, Copy, Debug)]
pub struct Describer<const N: usize> {
    fields: [FormatField; N],
    len: usize,
    choices: u32,
    flags: u32,
}

impl<const N: usize> Describer<N> {
    /// Creates a describer whose `i`-th flag is bit `i` of `choices`. Flags from the 33rd on are false.
    pub fn new(choices: u32) -> Self {
        Self { fields: [FormatField { name: "", bits: 0, pattern: 0 }; N], len: 0, choices, flags: 0 }
    }

    /// The fields, in the order of the octets.
    pub fn fields(&self) -> &[FormatField] {
        self.fields.get(..self.len).unwrap_or_default()
    }

    /// Number of flags that the format has read.
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// Sum of the widths, in bits.
    pub fn bits(&self) -> u32 {
        self.fields().iter().map(|field| field.bits).sum()
    }

    fn list(&mut self, name: &'static str, bits: u32, pattern: u32) -> Step {
        let slot = self.fields.get_mut(self.len).ok_or(Refusal::Malformed)?;
        *slot = FormatField { name, bits, pattern };
        self.len += 1;
        Ok(())
    }
}

impl<'p, const N: usize> Coder<'p> for Describer<N> {
    const READS: bool = true;

    fn enforce(&mut self, _guard: bool) -> Step {
        Ok(())
    }

    fn discriminator(&mut self, width: u32, pattern: u32) -> Step {
        self.list("", width, pattern)
    }

    fn uint<W: Word>(&mut self, name: &'static str, width: u32, _value: &mut W) -> Step {
        self.list(name, width, 0)
    }

    fn flag(&mut self, name: &'static str, value: &mut bool) -> Step<bool> {
        *value = self.choices >> self.flags.min(31) & 1 == 1 && self.flags < 32;
        self.flags += 1;
        self.list(name, 1, 0)?;
        Ok(*value)
    }

    fn reserved(&mut self, width: u32) -> Step {
        self.list("reserved", width, 0)
    }

    fn lsb(&mut self, slot: LsbSlot, width: u32, _rest: u32) -> Step {
        self.list(slot.name, width, 0)
    }

    fn crc(&mut self, name: &'static str, width: u32) -> Step {
        self.list(name, width, 0)
    }

    fn octets<const M: usize>(&mut self, name: &'static str, _value: &mut [u8; M]) -> Step {
        self.list(name, M as u32 * 8, 0)
    }

    fn slice(&mut self, name: &'static str, _len: usize, _value: &mut &'p [u8]) -> Step {
        self.list(name, 0, 0)
    }

    /// Accepts everything, since nothing was read.
    fn require(&mut self, _holds: bool) -> Step {
        Ok(())
    }
}
