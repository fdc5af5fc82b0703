//! Headers of DTLS records: DTLS 1.0 and 1.2 (RFC 6347, section 4.1), with connection IDs (RFC 9146, section 4), and the
//! unified header of DTLS 1.3 (RFC 9147, section 4). Contents of records are not parsed.

/// Content type of records with a connection ID.
pub const TLS12_CID: u8 = 25;

/// Largest connection ID that is recognized, in octets. RFC 9146 allows 255.
pub const MOST_CID: usize = 20;

/// Largest length of a record: 2^14 and the expansion of RFC 5246, section 6.2.3.
const MOST_LENGTH: u16 = (1 << 14) + 2_048;

/// Octets of a header without a connection ID.
const PLAIN_LEN: usize = 13;

/// Bits of the first octet of a unified header: connection ID, sequence number of 16 bits, length.
const C: u8 = 0x10;
const S: u8 = 0x08;
const L: u8 = 0x04;

/// Type and presence of fields in the header of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordKind {
    /// Content type, or the first octet of a unified header.
    pub first: u8,
    /// The version is DTLS 1.0 (254.255), not DTLS 1.2 (254.253).
    pub is_1_0: bool,
    /// Octets of the connection ID, at most [`MOST_CID`].
    pub cid_len: u8,
}

impl RecordKind {
    /// True if the header is the unified one of DTLS 1.3, whose sequence number is encrypted.
    #[inline]
    pub const fn is_unified(self) -> bool {
        self.first & 0xE0 == 0x20
    }

    /// True if such a record exists.
    pub const fn is_valid(self) -> bool {
        let has_cid = self.cid_len > 0;
        self.cid_len as usize <= MOST_CID
            && match self.first {
                20..=24 => !has_cid,
                TLS12_CID => true,
                _ => self.is_unified() && !self.is_1_0 && has_cid == (self.first & C != 0),
            }
    }

    /// True if the header has a length.
    #[inline]
    pub const fn has_length(self) -> bool {
        !self.is_unified() || self.first & L != 0
    }

    /// Octets of the encrypted sequence number of a unified header, otherwise 0.
    #[inline]
    pub const fn encrypted_len(self) -> usize {
        if !self.is_unified() {
            0
        } else if self.first & S != 0 {
            2
        } else {
            1
        }
    }

    /// Octets of the header.
    #[inline]
    pub const fn header_len(self) -> usize {
        let cid_len = self.cid_len as usize;
        if self.is_unified() {
            1 + cid_len + self.encrypted_len() + if self.has_length() { 2 } else { 0 }
        } else {
            PLAIN_LEN + cid_len
        }
    }
}

/// The first record of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'p> {
    /// Type and presence of fields.
    pub kind: RecordKind,
    /// Epoch; 0 with a unified header, whose two bits of it are in the first octet.
    pub epoch: u16,
    /// Sequence number, 48 bits; 8 or 16 encrypted bits with a unified header.
    pub number: u64,
    /// Connection ID.
    pub cid: &'p [u8],
    /// Octets behind the header.
    pub fragment: &'p [u8],
    /// Octets of the datagram behind the record.
    pub behind: &'p [u8],
}

impl<'p> Record<'p> {
    /// Reads the first record of a datagram that consists of records of DTLS 1.0 or 1.2 alone. A connection ID has no length field: its
    /// length is `cid_len` if that fits, otherwise the smallest one with which the lengths of all records fit.
    pub fn read(datagram: &'p [u8], cid_len: u8) -> Option<Self> {
        let &first = datagram.first()?;
        if !(20..=TLS12_CID).contains(&first) {
            return None;
        }
        core::iter::once(cid_len).chain(0..=MOST_CID as u8).find_map(|cid_len| {
            let record = Self::split(datagram, if first == TLS12_CID { cid_len } else { 0 })?;
            record.is_tiled(cid_len).then_some(record)
        })
    }

    /// Reads the first record of a datagram of a flow of DTLS 1.3, whose header is the unified one: see [`read`](Self::read). Without a
    /// length field, a connection ID has `cid_len` octets.
    pub fn read_unified(datagram: &'p [u8], cid_len: u8) -> Option<Self> {
        let &first = datagram.first()?;
        let kind = |cid_len| RecordKind { first, is_1_0: false, cid_len };
        let any = 1..=MOST_CID as u8;
        let lengths =
            core::iter::once(cid_len).chain(any).take(if first & L != 0 { 1 + MOST_CID } else { 1 });
        let mut records =
            lengths.map(|cid_len| if first & C != 0 { cid_len } else { 0 }).filter_map(|cid_len| {
                let kind = kind(cid_len);
                if !kind.is_valid() || !kind.is_unified() {
                    return None;
                }
                let (header, rest) = datagram.split_at_checked(kind.header_len())?;
                let (cid, behind) = header.get(1..)?.split_at_checked(usize::from(cid_len))?;
                let (number, length) = behind.split_at_checked(kind.encrypted_len())?;
                let number = number.iter().fold(0, |number, &octet| number << 8 | u64::from(octet));
                let (fragment, behind) = match *length {
                    [high, low] => rest.split_at_checked(u16::from_be_bytes([high, low]).into())?,
                    _ => (rest, &[][..]),
                };
                Some(Self { kind, epoch: 0, number, cid, fragment, behind })
            });
        let is_record = |&first: &u8| (20..=TLS12_CID).contains(&first) || first & 0xE0 == 0x20;
        records.find(|record| !record.fragment.is_empty() && record.behind.first().is_none_or(is_record))
    }

    /// Splits a datagram behind its first record of DTLS 1.0 or 1.2.
    fn split(datagram: &'p [u8], cid_len: u8) -> Option<Self> {
        let (&[first, 254, minor, e, f, s, t, u, v, w, x], rest) = datagram.split_first_chunk()? else {
            return None;
        };
        let kind = RecordKind { first, is_1_0: minor == 255, cid_len };
        if !kind.is_valid() || !matches!(minor, 253 | 255) {
            return None;
        }
        let (cid, rest) = rest.split_at_checked(usize::from(cid_len))?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = u16::from_be_bytes(*length);
        let (fragment, behind) = rest.split_at_checked(usize::from(length))?;
        let number = u64::from_be_bytes([0, 0, s, t, u, v, w, x]);
        let epoch = u16::from_be_bytes([e, f]);
        (length <= MOST_LENGTH).then_some(Self { kind, epoch, number, cid, fragment, behind })
    }

    /// True if records stand behind this one up to the end of the datagram.
    fn is_tiled(&self, cid_len: u8) -> bool {
        let mut behind = self.behind;
        while let Some(&first) = behind.first() {
            let cid_len = if first == TLS12_CID { cid_len } else { 0 };
            let Some(next) = Self::split(behind, cid_len) else { return false };
            behind = next.behind;
        }
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// A record of DTLS 1.2.
    fn record(first: u8, cid: &[u8], fragment: &[u8]) -> Vec<u8> {
        let mut octets = std::vec![first, 254, 253, 0, 1, 0, 0, 0, 0, 0, 9];
        octets.extend_from_slice(cid);
        octets.extend_from_slice(&(fragment.len() as u16).to_be_bytes());
        octets.extend_from_slice(fragment);
        octets
    }

    #[test]
    fn a_datagram_is_records_up_to_its_end() {
        let one = record(23, &[], b"text");
        let found = Record::read(&one, 0).unwrap();
        assert_eq!((found.epoch, found.number, found.fragment), (1, 9, &b"text"[..]));
        assert_eq!(found.kind.header_len(), 13);
        let two = [one.clone(), record(22, &[], b"")].concat();
        assert_eq!(Record::read(&two, 0).unwrap().behind.len(), 13);
        assert_eq!(Record::read(&two[..two.len() - 1], 0), None);
        assert_eq!(Record::read(&[&one[..], &[0]].concat(), 0), None);
        assert_eq!(Record::read(&[19; 40], 0), None);
        assert_eq!(Record::read(&[], 0), None);
    }

    #[test]
    fn a_connection_id_has_the_length_that_fits() {
        for len in [0, 1, 6, 20] {
            let cid = [0xC1; MOST_CID];
            let octets = record(TLS12_CID, &cid[..len], b"a longer text");
            assert_eq!(usize::from(Record::read(&octets, 0).unwrap().kind.cid_len), len);
            assert_eq!(usize::from(Record::read(&octets, len as u8).unwrap().kind.cid_len), len);
        }
        assert_eq!(Record::read(&record(TLS12_CID, &[0xC1; 21], b"text"), 0), None);
        // Behind a change of the cipher, which has none.
        let two = [record(20, &[], &[1]), record(TLS12_CID, &[0xC1; 3], b"finished")].concat();
        assert_eq!(Record::read(&two, 0).unwrap().kind.cid_len, 0);
    }

    #[test]
    fn a_unified_header_has_the_fields_of_its_first_octet() {
        // RFC 9147, section 4: C, S and L.
        let whole = [0x3D, 0xC1, 0x12, 0x34, 0, 2, 7, 8];
        let found = Record::read_unified(&whole, 0).unwrap();
        assert_eq!((found.number, found.cid, found.fragment), (0x1234, &[0xC1][..], &[7, 8][..]));
        let minimal = [0x21, 0x12, 7, 8];
        let found = Record::read_unified(&minimal, 0).unwrap();
        assert_eq!((found.number, found.fragment), (0x12, &[7, 8][..]));
        assert_eq!(Record::read_unified(&[0x25, 0x12, 0, 3, 7, 8], 0), None);
        assert_eq!(Record::read_unified(&[0x41, 0x12, 7, 8], 0), None);
    }
}
