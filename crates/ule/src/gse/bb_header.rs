//! BBHEADER: the header before the data field of a BBFrame. ETSI EN 302 307-1, section 5.1.6.

use core::fmt;
use thinair_wire::coder::{Coder, Reader, Step, Writer};

/// TS/GS of a Generic Continuous Stream, which carries GSE Packets.
const GENERIC_CONTINUOUS: u8 = 0b01;

/// Header of a BBFrame whose data field consists of GSE Packets, the first of which begins at its start.
///
/// Only the properties of GSE can be expressed: no ISSY, no deletion of null packets, UPL, SYNC and SYNCD of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BbHeader {
    /// Input stream, if there are several (MIS); `None` if there is one (SIS).
    pub isi: Option<u8>,
    /// True if coding and modulation are constant (CCM), false if they are adaptive (ACM).
    pub is_constant: bool,
    /// Roll-off, two bits: 0 is 0.35, 1 is 0.25, 2 is 0.20.
    pub roll_off: u8,
    /// Length of the data field in octets, 0 to [`MAX_DATA_FIELD`](Self::MAX_DATA_FIELD).
    data_field: u16,
}

/// Reason why octets are not a BBHEADER of GSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadBbHeader {
    /// There are fewer than [`BbHeader::OCTETS`].
    Truncated,
    /// The CRC-8 is wrong.
    Crc,
    /// TS/GS, these two bits, is not that of a Generic Continuous Stream.
    Stream(u8),
    /// DFL, in bits, is not a multiple of 8, or exceeds [`BbHeader::MAX_DATA_FIELD`].
    DataFieldLength(u16),
}

impl fmt::Display for BadBbHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "a BBHEADER needs {} octets", BbHeader::OCTETS),
            Self::Crc => f.write_str("the CRC-8 of the BBHEADER is wrong"),
            Self::Stream(bits) => write!(f, "TS/GS {bits:#04b} is not a Generic Continuous Stream"),
            Self::DataFieldLength(bits) => write!(f, "invalid data field length: {bits} bits"),
        }
    }
}

impl core::error::Error for BadBbHeader {}

#[derive(Default)]
struct BbHeaderFields {
    stream: u8,
    is_single: bool,
    is_constant: bool,
    issyi: bool,
    npd: bool,
    roll_off: u8,
    isi: u8,
    upl: u16,
    dfl: u16,
    sync: u8,
    syncd: u16,
    crc: u8,
}

impl BbHeaderFields {
    fn code<'p, C: Coder<'p>>(&mut self, c: &mut C) -> Step {
        c.uint("TS/GS", 2, &mut self.stream)?;
        c.flag("SIS/MIS", &mut self.is_single)?;
        c.flag("CCM/ACM", &mut self.is_constant)?;
        c.flag("ISSYI", &mut self.issyi)?;
        c.flag("NPD", &mut self.npd)?;
        c.uint("RO", 2, &mut self.roll_off)?;
        c.uint("ISI", 8, &mut self.isi)?;
        c.uint("UPL", 16, &mut self.upl)?;
        c.uint("DFL", 16, &mut self.dfl)?;
        c.uint("SYNC", 8, &mut self.sync)?;
        c.uint("SYNCD", 16, &mut self.syncd)?;
        c.uint("CRC-8", 8, &mut self.crc)
    }
}

impl BbHeader {
    /// Length of a BBHEADER, in octets.
    pub const OCTETS: usize = 10;
    /// Length of the longest data field, in octets: a normal FECFRAME of rate 9/10 takes 58,192 bits, 80 of them for
    /// the header.
    pub const MAX_DATA_FIELD: usize = 7_264;

    /// Creates the header of a BBFrame of one stream with constant coding and a roll-off of 0.20, before `data_field`
    /// octets; `None` if they are more than [`MAX_DATA_FIELD`](Self::MAX_DATA_FIELD).
    pub const fn new(data_field: usize) -> Option<Self> {
        if data_field > Self::MAX_DATA_FIELD {
            return None;
        }
        Some(Self { isi: None, is_constant: true, roll_off: 0b10, data_field: data_field as u16 })
    }

    /// Returns the length of the data field, in octets.
    pub const fn data_field(&self) -> usize {
        self.data_field as usize
    }

    /// Returns the encoded header.
    pub fn write(&self) -> [u8; Self::OCTETS] {
        let mut fields = BbHeaderFields {
            stream: GENERIC_CONTINUOUS,
            is_single: self.isi.is_none(),
            is_constant: self.is_constant,
            roll_off: self.roll_off & 0b11,
            isi: self.isi.unwrap_or(0),
            dfl: self.data_field * 8,
            ..BbHeaderFields::default()
        };
        let mut out = [0; Self::OCTETS];
        // No value is rejected, and there is room. The CRC is filled in afterwards.
        let _ = fields.code(&mut Writer::new(&mut out, 0));
        let [covered @ .., crc] = &mut out;
        *crc = crc8(covered);
        out
    }

    /// Reads the header at the start of a BBFrame.
    pub fn read(frame: &[u8]) -> Result<Self, BadBbHeader> {
        let Some(octets) = frame.first_chunk::<{ Self::OCTETS }>() else {
            return Err(BadBbHeader::Truncated);
        };
        if crc8(octets) != 0 {
            return Err(BadBbHeader::Crc);
        }
        let mut fields = BbHeaderFields::default();
        fields.code(&mut Reader::contiguous(octets)).map_err(|_| BadBbHeader::Truncated)?;
        if fields.stream != GENERIC_CONTINUOUS {
            return Err(BadBbHeader::Stream(fields.stream));
        }
        let data_field = fields.dfl / 8;
        if fields.dfl % 8 != 0 || usize::from(data_field) > Self::MAX_DATA_FIELD {
            return Err(BadBbHeader::DataFieldLength(fields.dfl));
        }
        let isi = (!fields.is_single).then_some(fields.isi);
        let BbHeaderFields { is_constant, roll_off, .. } = fields;
        Ok(Self { isi, is_constant, roll_off, data_field })
    }
}

/// Returns the CRC-8 of DVB-S2: x^8 + x^7 + x^6 + x^4 + x^2 + 1, initial value 0, most significant bit first.
/// Computed over data followed by its CRC, it is 0.
fn crc8(octets: &[u8]) -> u8 {
    octets.iter().fold(0, |crc, octet| {
        (0..8).fold(crc ^ octet, |crc, _| if crc >> 7 == 1 { crc << 1 ^ 0xD5 } else { crc << 1 })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Headers that modulators sent, from the tests of the receiver dvb-gse 0.10.
    const MODULATORS: [([u8; 10], usize); 2] =
        [([0x72, 0, 0, 0, 0x02, 0xF0, 0, 0, 0, 0x15], 94), ([0x72, 0, 0, 0, 0x05, 0xB0, 0, 0, 0, 0x7A], 182)];

    #[test]
    fn headers_are_those_of_modulators() {
        for (octets, data_field) in MODULATORS {
            let header = BbHeader::new(data_field).unwrap();
            assert_eq!(header.write(), octets);
            assert_eq!(BbHeader::read(&octets), Ok(header));
        }
    }

    #[test]
    fn what_was_written_is_read() {
        for data_field in 0..=BbHeader::MAX_DATA_FIELD {
            let new = BbHeader::new(data_field).unwrap();
            let header = BbHeader { isi: Some(7), is_constant: false, roll_off: 0b01, ..new };
            assert_eq!(BbHeader::read(&header.write()), Ok(header));
        }
        assert_eq!(BbHeader::new(BbHeader::MAX_DATA_FIELD + 1), None);
    }

    #[test]
    fn what_is_no_header_of_gse_is_reported() {
        let octets = MODULATORS[0].0;
        for bit in 0..80 {
            let mut damaged = octets;
            damaged[bit / 8] ^= 0x80 >> (bit % 8);
            assert_eq!(BbHeader::read(&damaged), Err(BadBbHeader::Crc));
        }
        assert_eq!(BbHeader::read(&octets[..9]), Err(BadBbHeader::Truncated));
        let with = |at: usize, value: u8| {
            let mut octets = octets;
            octets[at] = value;
            octets[9] = crc8(&octets[..9]);
            BbHeader::read(&octets)
        };
        assert_eq!(with(0, 0xF2), Err(BadBbHeader::Stream(0b11)));
        assert_eq!(with(5, 0xF1), Err(BadBbHeader::DataFieldLength(0x02F1)));
        assert_eq!(with(4, 0xFF), Err(BadBbHeader::DataFieldLength(0xFFF0)));
    }
}
