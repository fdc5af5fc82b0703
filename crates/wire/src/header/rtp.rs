//! The RTP header. RFC 3550, sections 5.1 and 5.3.1.

use crate::coder::{Coder, NoRoom, Reader, Refusal, Step, Writer};

/// Version of RTP that RFC 3550 defines.
pub const VERSION: u8 = 2;

/// Every field of an RTP header.
///
/// CC follows from the CSRC list, X from the header extension. The padding that P announces is at the end of
/// the packet, and is payload here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtp<'p> {
    /// V, 2 bits.
    pub version: u8,
    /// P: padding ends the packet.
    pub padding: bool,
    /// M, marker; the RTP profile defines its meaning.
    pub marker: bool,
    /// PT, payload type, 7 bits.
    pub payload_type: u8,
    /// Sequence number; one more for each packet.
    pub sequence_number: u16,
    /// Timestamp, in units of the payload's clock.
    pub timestamp: u32,
    /// SSRC, synchronization source.
    pub ssrc: u32,
    /// CSRC, contributing sources; 4 octets each, at most 15 of them.
    pub csrc: &'p [u8],
    /// Header extension, if X is set.
    pub extension: Option<HeaderExtension<'p>>,
}

/// The header extension of an RTP header. RFC 3550, section 5.3.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderExtension<'p> {
    /// The first 16 bits, "defined by profile".
    pub defined_by_profile: u16,
    /// Octets behind the length; a multiple of 4, 0 to 262 140.
    pub data: &'p [u8],
}

impl Default for Rtp<'_> {
    /// All fields zero except the version.
    fn default() -> Self {
        Self {
            version: VERSION,
            padding: false,
            marker: false,
            payload_type: 0,
            sequence_number: 0,
            timestamp: 0,
            ssrc: 0,
            csrc: &[],
            extension: None,
        }
    }
}

impl<'p> Rtp<'p> {
    /// Octets of a header without CSRC list and header extension.
    pub const LEN: usize = 12;

    /// Octets of the header.
    pub fn len(&self) -> usize {
        Self::LEN + self.csrc.len() + self.extension.map_or(0, |extension| 4 + extension.data.len())
    }

    /// Reads a header from the start of `octets`. Another version than 2 is [`Refusal::NotThis`].
    pub fn read(octets: &'p [u8]) -> Step<Self> {
        let mut header = Self::default();
        let coded = header.code(&mut Reader::contiguous(octets));
        // A truncated header of another version is not malformed RTP.
        if header.version != VERSION {
            return Err(Refusal::NotThis);
        }
        coded.map(|()| header)
    }

    /// Writes the header from octet `at` of `out` on and returns its end.
    pub fn write(mut self, out: &mut [u8], at: usize) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out, at);
        // Every value can be written.
        let _ = self.code(&mut writer);
        writer.finish()
    }

    /// Codes the header, field by field, of any version.
    #[inline]
    pub fn code<C: Coder<'p>>(&mut self, c: &mut C) -> Step {
        let mut x = self.extension.is_some();
        let mut cc = (self.csrc.len() / 4) as u8;
        c.uint("V", 2, &mut self.version)?;
        c.flag("P", &mut self.padding)?;
        c.flag("X", &mut x)?;
        c.uint("CC", 4, &mut cc)?;
        c.flag("M", &mut self.marker)?;
        c.uint("PT", 7, &mut self.payload_type)?;
        c.uint("sequence number", 16, &mut self.sequence_number)?;
        c.uint("timestamp", 32, &mut self.timestamp)?;
        c.uint("SSRC", 32, &mut self.ssrc)?;
        c.slice("CSRC", usize::from(cc) * 4, &mut self.csrc)?;
        if !x {
            self.extension = None;
            return Ok(());
        }
        self.extension.get_or_insert_default().code(c)
    }
}

impl<'p> HeaderExtension<'p> {
    /// Codes the header extension, field by field.
    #[inline]
    pub fn code<C: Coder<'p>>(&mut self, c: &mut C) -> Step {
        let mut length = (self.data.len() / 4) as u16;
        c.uint("defined by profile", 16, &mut self.defined_by_profile)?;
        c.uint("length", 16, &mut length)?;
        c.slice("header extension", usize::from(length) * 4, &mut self.data)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// Made by hand from the figures of RFC 3550, sections 5.1 and 5.3.1: PT 96, two CSRC, and an extension
    /// of one word.
    const HEADER: [u8; 28] =
        *b"\x92\xe0\x12\x34\0\0\x3e\x80\xca\xfe\xba\xbe\0\0\0\x01\0\0\0\x02\xbe\xde\0\x01\x10\xff\0\0";

    #[test]
    fn the_fields_lie_as_in_the_figures() {
        let header = Rtp {
            version: 2,
            padding: false,
            marker: true,
            payload_type: 96,
            sequence_number: 0x1234,
            timestamp: 16_000,
            ssrc: 0xCAFE_BABE,
            csrc: b"\0\0\0\x01\0\0\0\x02",
            extension: Some(HeaderExtension { defined_by_profile: 0xBEDE, data: b"\x10\xff\0\0" }),
        };
        assert_eq!(Rtp::read(&HEADER), Ok(header));
        assert_eq!(header.len(), HEADER.len());
    }

    #[test]
    fn every_truncation_is_refused() {
        for len in 0..HEADER.len() {
            assert_eq!(Rtp::read(&HEADER[..len]), Err(Refusal::Malformed), "{len} octets");
        }
    }

    #[test]
    fn another_version_is_not_this_however_short() {
        for version in [0, 1, 3_u8] {
            let mut octets = HEADER;
            octets[0] = octets[0] & 0x3F | version << 6;
            for len in 1..=octets.len() {
                assert_eq!(Rtp::read(&octets[..len]), Err(Refusal::NotThis), "version {version}");
            }
        }
    }

    #[test]
    fn an_extension_may_be_empty() {
        let mut octets = HEADER;
        octets[23] = 0;
        let header = Rtp::read(&octets).unwrap();
        assert_eq!(header.extension, Some(HeaderExtension { defined_by_profile: 0xBEDE, data: &[] }));
        assert_eq!(header.len(), 24);
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_was_read(mut octets in half_zero(12..120)) {
            octets[0] = octets[0] & 0x3F | VERSION << 6;
            if let Ok(header) = Rtp::read(&octets) {
                let mut out = [0; 120];
                prop_assert_eq!(header.write(&mut out, 0), Ok(header.len()));
                prop_assert_eq!(&out[..header.len()], &octets[..header.len()]);
            }
        }

        #[test]
        fn what_is_read_is_what_was_written(
            (padding, marker, payload_type) in (any::<bool>(), any::<bool>(), 0..128_u8),
            (sequence_number, timestamp, ssrc) in any::<(u16, u32, u32)>(),
            csrc in vec(any::<[u8; 4]>(), 0..=15),
            extension in proptest::option::of((any::<u16>(), vec(any::<[u8; 4]>(), 0..20))),
        ) {
            let csrc = csrc.concat();
            let extension = extension.map(|(word, data)| (word, data.concat()));
            let header = Rtp {
                version: VERSION,
                padding,
                marker,
                payload_type,
                sequence_number,
                timestamp,
                ssrc,
                csrc: &csrc,
                extension: extension
                    .as_ref()
                    .map(|&(defined_by_profile, ref data)| HeaderExtension { defined_by_profile, data }),
            };
            let mut out = [0; 256];
            prop_assert_eq!(header.write(&mut out, 0), Ok(header.len()));
            prop_assert_eq!(Rtp::read(&out), Ok(header));
        }
    }

    /// Random octets of which half are zero, so that lengths are often small.
    fn half_zero(len: core::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
        vec(prop_oneof![Just(0), any::<u8>()], len)
    }
}
