//! Optional Extension Headers: Extension-Padding (RFC 4326, section 5.3), TimeStamp (RFC 5163, section 3.3), and those
//! of others, which are skipped.

use thinair_wire::coder::{Coder, NoRoom, Reader, Step, Writer};

use super::ExtensionError;
use crate::type_field::{HLen, Kind, Type};

/// H-Types. The registry has them with 0x100 added.
const EXTENSION_PADDING: u8 = 0x00;
const TIME_STAMP: u8 = 0x01;

/// An Optional Extension Header: what lies between the Type that names it and the Type of what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalHeader {
    h_len: HLen,
    h_type: u8,
    /// Zero behind the length.
    body: [u8; HLen::MAX.body()],
}

impl OptionalHeader {
    /// A header with its fields, 0, 2, 4, 6 or 8 octets; `None` for another length.
    pub fn new(h_type: u8, fields: &[u8]) -> Option<Self> {
        let words = u8::try_from(fields.len() / 2).ok()?.checked_add(1)?;
        let h_len = HLen::new(words).filter(|h_len| h_len.body() == fields.len())?;
        let mut body = [0; HLen::MAX.body()];
        body.get_mut(..fields.len())?.copy_from_slice(fields);
        Some(Self { h_len, h_type, body })
    }

    /// Extension-Padding: octets that mean nothing.
    pub const fn padding(h_len: HLen) -> Self {
        Self { h_len, h_type: EXTENSION_PADDING, body: [0; HLen::MAX.body()] }
    }

    /// TimeStamp.
    pub const fn time_stamp_of(time_stamp: TimeStamp) -> Self {
        let [a, b, c, d] = time_stamp.0.to_be_bytes();
        Self { h_len: TimeStamp::H_LEN, h_type: TIME_STAMP, body: [a, b, c, d, 0, 0, 0, 0] }
    }

    /// The Type that names it, which stands in front of it.
    pub const fn type_field(&self) -> Type {
        Type::optional(self.h_len, self.h_type)
    }

    /// Octets of it, 2 to 10: its fields and the Type of what follows.
    pub const fn octets(&self) -> usize {
        self.h_len.octets()
    }

    /// Its fields, 0 to 8 octets.
    pub fn fields(&self) -> &[u8] {
        self.body.get(..self.h_len.body()).unwrap_or_default()
    }

    /// The TimeStamp, if that is what it is.
    pub fn time_stamp(&self) -> Option<TimeStamp> {
        let [a, b, c, d, ..] = self.body;
        (self.type_field() == Type::optional(TimeStamp::H_LEN, TIME_STAMP))
            .then_some(TimeStamp(u32::from_be_bytes([a, b, c, d])))
    }

    /// Writes it from octet `at` of `out` on, `next` being the Type of what follows, and returns its end.
    pub fn write(mut self, mut next: Type, out: &mut [u8], at: usize) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out, at);
        // Writing refuses nothing: every value has its place.
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

/// When a PDU was encapsulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeStamp(u32);

impl TimeStamp {
    const H_LEN: HLen = match HLen::new(3) {
        Some(h_len) => h_len,
        None => HLen::MAX,
    };

    /// `micros` microseconds past the hour in Universal Time; a sender keeps them below 3,600,000,000.
    pub const fn new(micros: u32) -> Self {
        Self(micros)
    }

    /// Microseconds past the hour in Universal Time; from a peer that is wrong, more than an hour has.
    pub const fn micros(self) -> u32 {
        self.0
    }
}

/// Takes Optional Extension Headers off, one at a time.
#[derive(Clone, Copy, Debug)]
pub struct OptionalHeaders<'p> {
    next: Type,
    octets: &'p [u8],
}

impl<'p> OptionalHeaders<'p> {
    /// The headers in `octets`, the first of which `type_field` names.
    pub const fn new(type_field: Type, octets: &'p [u8]) -> Self {
        Self { next: type_field, octets }
    }

    /// The next header; none if what follows is not an Optional Extension Header.
    #[inline]
    pub fn read(&mut self) -> Result<Option<OptionalHeader>, ExtensionError> {
        let Kind::Optional { h_len, h_type } = self.next.kind() else { return Ok(None) };
        let mut header = OptionalHeader { h_len, h_type, body: [0; HLen::MAX.body()] };
        let mut reader = Reader::contiguous(self.octets);
        header.code(&mut reader, &mut self.next)?;
        self.octets = reader.remaining();
        Ok(Some(header))
    }

    /// The Type of what follows the headers that were read, and its octets.
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
