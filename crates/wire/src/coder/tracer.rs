//! A [`Coder`] that reads, and emits each field: the source of dissections.

use super::{Coder, LsbSlot, Reader, Step, Word};

/// A field that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced<'p> {
    /// Name in the standard.
    pub name: &'static str,
    /// Width in bits.
    pub bits: u32,
    /// Value of a field of at most 32 bits; for longer ones see `octets`.
    pub value: u32,
    /// Octets of a field that is longer than 32 bits or of variable length; empty for other fields.
    pub octets: &'p [u8],
}

/// A [`Reader`] that passes every field to a closure.
#[derive(Debug)]
pub struct Tracer<'p, F> {
    reader: Reader<'p>,
    on_field: F,
}

impl<'p, F: FnMut(Traced<'p>)> Tracer<'p, F> {
    /// Creates a tracer that reads like `reader` and passes each field to `on_field`.
    pub fn new(reader: Reader<'p>, on_field: F) -> Self {
        Self { reader, on_field }
    }

    /// Returns the reader in its current position.
    pub fn reader(&self) -> &Reader<'p> {
        &self.reader
    }

    fn number(&mut self, name: &'static str, bits: u32, value: u32) {
        (self.on_field)(Traced { name, bits, value, octets: &[] });
    }

    fn since(&mut self, name: &'static str, before: usize) {
        let octets = self.reader.rest.get(before..self.reader.at).unwrap_or_default();
        (self.on_field)(Traced { name, bits: octets.len() as u32 * 8, value: 0, octets });
    }
}

impl<'p, F: FnMut(Traced<'p>)> Coder<'p> for Tracer<'p, F> {
    const READS: bool = true;

    fn enforce(&mut self, guard: bool) -> Step {
        self.reader.enforce(guard)
    }

    fn discriminator(&mut self, width: u32, pattern: u32) -> Step {
        self.reader.discriminator(width, pattern)?;
        self.number("discriminator", width, pattern);
        Ok(())
    }

    fn uint<W: Word>(&mut self, name: &'static str, width: u32, value: &mut W) -> Step {
        self.reader.uint(name, width, value)?;
        self.number(name, width, value.to_u32());
        Ok(())
    }

    fn flag(&mut self, name: &'static str, value: &mut bool) -> Step<bool> {
        self.reader.flag(name, value)?;
        self.number(name, 1, u32::from(*value));
        Ok(*value)
    }

    fn reserved(&mut self, width: u32) -> Step {
        let mut value = 0_u32;
        self.reader.uint("reserved", width, &mut value)?;
        self.number("reserved", width, value);
        Ok(())
    }

    fn lsb(&mut self, slot: LsbSlot, width: u32, rest: u32) -> Step {
        self.reader.lsb(slot, width, rest)?;
        let (collected, _) = self.reader.collected(slot);
        let value = (u64::from(collected) & ((1 << width) - 1)) as u32;
        self.number(slot.name, width, value);
        Ok(())
    }

    fn crc(&mut self, name: &'static str, width: u32) -> Step {
        self.reader.crc(name, width)?;
        let value = self.reader.crc_read().map_or(0, |(_, value)| u32::from(value));
        self.number(name, width, value);
        Ok(())
    }

    fn octets<const N: usize>(&mut self, name: &'static str, value: &mut [u8; N]) -> Step {
        let before = self.reader.at;
        self.reader.octets(name, value)?;
        self.since(name, before);
        Ok(())
    }

    fn slice(&mut self, name: &'static str, len: usize, value: &mut &'p [u8]) -> Step {
        let before = self.reader.at;
        self.reader.slice(name, len, value)?;
        self.since(name, before);
        Ok(())
    }
}
