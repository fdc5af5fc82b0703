//! Packet formats as generic functions: one function per format, run by a [`Writer`], a [`Reader`], a [`Tracer`] or a
//! [`Describer`].
//!
//! A format is written once, for compression and decompression, so that the two cannot differ:
//!
//! ```
//! use thinair_wire::coder::{Coder, Lsb, Reader, LsbSlot, Step, Writer};
//!
//! const SN: LsbSlot = LsbSlot::new(0, "SN");
//!
//! /// `UO-0`: SN and CRC-3. RFC 3095, section 5.7.1.
//! fn uo_0<'p, C: Coder<'p>>(c: &mut C) -> Step {
//!     c.discriminator(1, 0b0)?;
//!     c.lsb(SN, 4, 0)?;
//!     c.crc("CRC", 3)
//! }
//!
//! let mut out = [0; 1];
//! let mut writer = Writer::new(&mut out, 0);
//! writer.offer(SN, Lsb { value: 0x1235, needed: 3 });
//! uo_0(&mut writer).unwrap();
//! writer.fill_crc(0b101);
//! assert_eq!(writer.finish(), Ok(1));
//! assert_eq!(out, [0b0_0101_101]);
//!
//! let mut reader = Reader::new(out[0], &[]);
//! uo_0(&mut reader).unwrap();
//! assert_eq!(reader.collected(SN), (0x5, 4));
//! assert_eq!(reader.crc_read(), Some((3, 0b101)));
//! ```
//!
//! **A format call only moves bits.** Values that depend on a reference are collected in slots and resolved once after
//! the last octet; a CRC is recorded, and verified over the rebuilt header. When writing, a slot that needs more bits
//! than the format has is rejected with [`Refusal::DoesNotFit`], which selects the packet type.

mod describer;
mod reader;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod tracer;
mod writer;

pub use describer::{Describer, FormatField};
pub use reader::Reader;
pub use tracer::{Traced, Tracer};
pub use writer::{NoRoom, Writer};

/// Number of slots that one header can use.
pub const SLOTS: usize = 4;

/// Result of a call on a [`Coder`].
pub type Step<T = ()> = Result<T, Refusal>;

/// Reason a format does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A discriminator or a guard belongs to another format: try the next one.
    NotThis,
    /// A value needs more bits than this format has (writing only): try the next one.
    DoesNotFit,
    /// The octets belong to no format: stop.
    Malformed,
}

/// A compressible field of which only the least significant bits are sent.
///
/// The bits may stand in several places of a header. A base header and its extension share the slot; the extension holds
/// the lower bits (RFC 3095, section 4.5.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsbSlot {
    index: usize,
    name: &'static str,
}

impl LsbSlot {
    /// Creates a slot with an index (less than [`SLOTS`]) and the name of its field in the standard.
    pub const fn new(index: usize, name: &'static str) -> Self {
        assert!(index < SLOTS);
        Self { index, name }
    }

    /// Name of the field in the standard.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

/// A value that is offered to a [`Writer`], and the number of its bits that the other side needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lsb {
    /// The whole value, right-aligned.
    pub value: u32,
    /// Least significant bits without which the other side could decode another value, 0 to 32.
    pub needed: u32,
}

/// An unsigned integer that fits in 32 bits.
pub trait Word: Copy {
    /// The value, zero-extended.
    fn to_u32(self) -> u32;
    /// Returns the low bits of `value`.
    fn from_u32(value: u32) -> Self;
}

macro_rules! word {
    ($($t:ty),*) => {$(
        impl Word for $t {
            #[inline]
            fn to_u32(self) -> u32 {
                u32::from(self)
            }
            #[inline]
            fn from_u32(value: u32) -> Self {
                value as Self
            }
        }
    )*};
}
word!(u8, u16, u32);

/// Makes an enum a [`Word`](crate::coder::Word) by the numbers of its variants; the last one named stands for all other numbers.
///
/// ```
/// use thinair_wire::coder::Word as _;
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Mode { Unidirectional = 1, Optimistic = 2, Reliable = 3 }
/// thinair_wire::word_enum!(Mode: Unidirectional Optimistic, Reliable);
///
/// assert_eq!((Mode::Optimistic.to_u32(), Mode::from_u32(2)), (2, Mode::Optimistic));
/// assert_eq!(Mode::from_u32(0), Mode::Reliable);
/// ```
#[macro_export]
macro_rules! word_enum {
    ($name:ident: $($variant:ident)+, $other:ident) => {
        impl $crate::coder::Word for $name {
            #[inline]
            fn to_u32(self) -> u32 {
                self as u32
            }

            #[inline]
            fn from_u32(value: u32) -> Self {
                $(if value == Self::$variant as u32 {
                    return Self::$variant;
                })+
                Self::$other
            }
        }
    };
}

/// Operations from which formats are built. An implementation writes the values, reads them, or lists their names.
///
/// `'p` is the lifetime of the packet that is read, so that long fields are borrowed from it and not copied. Widths are
/// in bits, 1 to 32 unless stated otherwise.
pub trait Coder<'p> {
    /// True if values are read from octets. A format can then leave out what only writing needs, and the other way
    /// round.
    const READS: bool;

    /// Continues only if `guard` holds. The guard is a property of the context, never of the octets.
    fn enforce(&mut self, guard: bool) -> Step;

    /// A fixed pattern that distinguishes formats; another pattern is [`Refusal::NotThis`].
    fn discriminator(&mut self, width: u32, pattern: u32) -> Step;

    /// A value of which all `width` bits are sent.
    fn uint<W: Word>(&mut self, name: &'static str, width: u32, value: &mut W) -> Step;

    /// One bit. Returns the value, on which the rest of the format may depend.
    fn flag(&mut self, name: &'static str, value: &mut bool) -> Step<bool>;

    /// Bits that are sent as zero and ignored by the receiver.
    fn reserved(&mut self, width: u32) -> Step;

    /// The next `width` bits of `slot`; `rest` less significant bits follow later.
    fn lsb(&mut self, slot: LsbSlot, width: u32, rest: u32) -> Step;

    /// A CRC of at most 8 bits that ends on an octet boundary. A header has at most one.
    fn crc(&mut self, name: &'static str, width: u32) -> Step;

    /// `N` octets; on an octet boundary.
    fn octets<const N: usize>(&mut self, name: &'static str, value: &mut [u8; N]) -> Step;

    /// `len` octets of the packet; on an octet boundary.
    fn slice(&mut self, name: &'static str, len: usize, value: &mut &'p [u8]) -> Step;

    /// Rejects an invalid value that was read ([`Refusal::Malformed`]).
    #[inline]
    fn require(&mut self, holds: bool) -> Step {
        if holds { Ok(()) } else { Err(Refusal::Malformed) }
    }
}

/// Self-describing variable-length value of 1 to 4 octets. RFC 5795, section 5.3.2.
///
/// Values above 2^29 - 1 do not fit.
pub fn sdvl<'p, C: Coder<'p>>(c: &mut C, name: &'static str, value: &mut u32) -> Step {
    let v = *value;
    if !c.flag("sdvl", &mut (v > 0x7F))? {
        return c.uint(name, 7, value);
    }
    if !c.flag("sdvl", &mut (v > 0x3FFF))? {
        return c.uint(name, 14, value);
    }
    if !c.flag("sdvl", &mut (v > 0x1F_FFFF))? {
        return c.uint(name, 21, value);
    }
    c.uint(name, 29, value)?;
    // Only a writer can have a value that is too large.
    if *value > 0x1FFF_FFFF { Err(Refusal::DoesNotFit) } else { Ok(()) }
}
