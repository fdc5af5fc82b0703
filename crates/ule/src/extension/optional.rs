//! Optional Extension Headers: Extension-Padding (RFC 4326, section 5.3), TimeStamp (RFC 5163, section 3.3), and
//! unknown ones, which are skipped.

use thinair_wire::coder::{Coder, NoRoom, Reader, Step, Writer};

use super::ExtensionError;
use crate::type_field::{HLen, Type, TypeKind};

/// H-Types. In the registry, 0x100 is added to them.
const EXTENSION_PADDING: u8 = 0x00;
const TIME_STAMP: u8 = 0x01;

/// An Optional Extension Header: the octets between the Type that identifies it and the Type of the next header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalHeader {
    h_len: HLen,
    h_type: u8,
    /// Fields, padded with zeros.
    body: [u8; HLen::MAX.body()],
}

impl OptionalHeader {
    /// Creates a header with fields of 0, 2, 4, 6 or 8 octets; `None` for another length.
    pub fn new(h_type: u8, fields: &[u8]) -> Option<Self> {
        let words = u8::try_from(fields.len() / 2).ok()?.checked_add(1)?;
        let h_len = HLen::new(words).filter(|h_len| h_len.body() == fields.len())?;
        let mut body = [0; HLen::MAX.body()];
        body.get_mut(..fields.len())?.copy_from_slice(fields);
        Some(Self { h_len, h_type, body })
    }

    /// Creates an Extension-Padding header: octets without meaning.
    pub const fn padding(h_len: HLen) -> Self {
        Self { h_len, h_type: EXTENSION_PADDING, body: [0; HLen::MAX.body()] }
    }

    /// Creates a TimeStamp header.
    pub const fn time_stamp_of(time_stamp: TimeStamp) -> Self {
        let [a, b, c, d] = time_stamp.0.to_be_bytes();
        Self { h_len: TimeStamp::H_LEN, h_type: TIME_STAMP, body: [a, b, c, d, 0, 0, 0, 0] }
    }

    /// Returns the Type that identifies it, which precedes it.
    pub const fn type_field(&self) -> Type {
        Type::optional(self.h_len, self.h_type)
    }

    /// Returns its length, 2 to 10 octets: its fields and the Type of the next header.
    pub const fn octets(&self) -> usize {
        self.h_len.octets()
    }

    /// Returns its fields, 0 to 8 octets.
    pub fn fields(&self) -> &[u8] {
        self.body.get(..self.h_len.body()).unwrap_or_default()
    }

    /// Returns the TimeStamp, if it is one.
    pub fn time_stamp(&self) -> Option<TimeStamp> {
        let [a, b, c, d, ..] = self.body;
        (self.type_field() == Type::optional(TimeStamp::H_LEN, TIME_STAMP))
            .then_some(TimeStamp(u32::from_be_bytes([a, b, c, d])))
    }

    /// Writes the header from octet `at` of `out` on, followed by the Type `next`, and returns its end.
    pub fn write(mut self, mut next: Type, out: &mut [u8], at: usize) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out, at);
        // No value is rejected: every one has its place.
        let _ = self.code(&mut writer, &mut next);
        writer.finish()
    }

    /// The fields of the header and the next Type: `H1` and `T2` of RFC 4326, figure 8.
    #[inline]
    fn code<'p, C: Coder<'p>>(&mut self, c: &mut C, next: &mut Type) -> Step {
        for word in self.body.as_chunks_mut::<2>().0.iter_mut().take(self.h_len.body() / 2) {
            c.octets("H", word)?;
        }
        let mut value = next.value();
        c.uint("Type", 16, &mut value)?;
        *next = Type::new(value);
        Ok(())
    }
}

/// Time of encapsulation of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeStamp(u32);

impl TimeStamp {
    const H_LEN: HLen = match HLen::new(3) {
        Some(h_len) => h_len,
        None => HLen::MAX,
    };

    /// Creates a time of `micros` microseconds past the hour in Universal Time; a sender keeps them below
    /// 3,600,000,000.
    pub const fn new(micros: u32) -> Self {
        Self(micros)
    }

    /// Returns the microseconds past the hour in Universal Time; a faulty peer may send more than an hour has.
    pub const fn micros(self) -> u32 {
        self.0
    }
}

/// Reads Optional Extension Headers one at a time.
#[derive(Clone, Copy, Debug)]
pub struct OptionalHeaders<'p> {
    next: Type,
    octets: &'p [u8],
}

impl<'p> OptionalHeaders<'p> {
    /// Creates a reader of `octets`, the first header of which is identified by `type_field`.
    pub const fn new(type_field: Type, octets: &'p [u8]) -> Self {
        Self { next: type_field, octets }
    }

    /// Reads the next header; `None` if an Optional Extension Header does not follow.
    #[inline]
    pub fn read(&mut self) -> Result<Option<OptionalHeader>, ExtensionError> {
        let TypeKind::Optional { h_len, h_type } = self.next.kind() else { return Ok(None) };
        let mut header = OptionalHeader { h_len, h_type, body: [0; HLen::MAX.body()] };
        let mut reader = Reader::contiguous(self.octets);
        header.code(&mut reader, &mut self.next)?;
        self.octets = reader.remaining();
        Ok(Some(header))
    }

    /// Returns the Type after the headers that were read, and the octets after it.
    pub const fn rest(&self) -> (Type, &'p [u8]) {
        (self.next, self.octets)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_up_to_four_words_of_its_own() {
        let lens = (0..12).filter(|&len| OptionalHeader::new(7, &[1; 12][..len]).is_some());
        assert!(lens.eq([0, 2, 4, 6, 8]));
        assert_eq!(OptionalHeader::new(7, &[1, 2]).unwrap().fields(), [1, 2]);
        assert_eq!(OptionalHeader::new(7, &[1, 2]).unwrap().type_field(), Type::new(0x0207));
    }

    #[test]
    fn a_time_stamp_has_its_own_length() {
        let header = OptionalHeader::time_stamp_of(TimeStamp::new(1_234_567));
        assert_eq!(
            (header.type_field(), header.fields()),
            (Type::new(0x0301), &[0x00, 0x12, 0xD6, 0x87][..])
        );
        assert_eq!(header.time_stamp(), Some(TimeStamp::new(1_234_567)));
        assert_eq!(OptionalHeader::new(TIME_STAMP, &[0; 6]).unwrap().time_stamp(), None);
        assert_eq!(OptionalHeader::padding(TimeStamp::H_LEN).time_stamp(), None);
    }

    #[test]
    fn there_is_no_room_for_half_a_header() {
        let header = OptionalHeader::padding(HLen::MAX);
        assert_eq!(header.write(Type::TEST, &mut [0; 9], 0), Err(NoRoom));
        assert_eq!(header.write(Type::TEST, &mut [0; 12], 2), Ok(12));
    }
}
