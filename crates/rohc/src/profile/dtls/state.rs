//! State of a flow that compressor and decompressor share. Section 3 of `docs/dtls-profile.md`.

use thinair_wire::checksum::Sum;
use thinair_wire::crc::{Check, fcs32_of_parts};
use thinair_wire::header::dtls::{MOST_CID, RecordKind};
use thinair_wire::header::protocol;
use thinair_wire::word_enum;

use super::{HeaderFields, NONCE, NonceSource};

/// Encoding of the UDP checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ChecksumMode {
    /// It is 0.
    #[default]
    Zero,
    /// It is right, and in each packet.
    Carried,
    /// It is right, and computed anew.
    Elided,
}

word_enum!(ChecksumMode: Zero Carried, Elided);

/// Encoding of the IP-ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum IpIdMode {
    /// That of the context.
    #[default]
    Constant,
    /// That of the context plus MSN.
    Counted,
    /// 16 bits in each packet.
    Irregular,
}

word_enum!(IpIdMode: Constant Counted, Irregular);

/// The IP and UDP fields of a flow, and their control fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DtlsPath {
    // Static part. IPv4 addresses use the first four octets.
    pub(super) source: [u8; 16],
    pub(super) destination: [u8; 16],
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) v6: bool,
    // Dynamic part, by the names of IPv4; Traffic Class and Hop Limit in IPv6.
    pub(super) tos: u8,
    pub(super) ttl: u8,
    pub(super) df: bool,
    pub(super) flow_label: u32,
    pub(super) checksum: ChecksumMode,
    pub(super) ip_id_mode: IpIdMode,
}

impl DtlsPath {
    /// Octets of the IP and UDP headers.
    fn len(&self) -> usize {
        if self.v6 { 48 } else { 28 }
    }

    /// Sum of the pseudo-header and the UDP header, but for the lengths and the checksum.
    #[inline]
    pub(super) fn sum(&self) -> Sum {
        let sum = Sum::ZERO.octets(&self.source).octets(&self.destination);
        sum.word(self.source_port).word(self.destination_port).word(protocol::UDP.into())
    }

    /// True if addresses are equal.
    pub(super) fn has_same_hosts(&self, other: &Self) -> bool {
        (self.source, self.destination, self.v6) == (other.source, other.destination, other.v6)
    }

    /// True if the dynamic parts of the IP headers are equal.
    pub(super) fn has_same_dynamic(&self, other: &Self) -> bool {
        (self.tos, self.ttl, self.flow_label) == (other.tos, other.ttl, other.flow_label)
    }

    /// True if addresses and ports are equal.
    pub(super) fn is_flow_of(&self, other: &Self) -> bool {
        self.has_same_hosts(other)
            && (self.source_port, self.destination_port) == (other.source_port, other.destination_port)
    }
}

/// Fields of a record that stay from one to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordShape {
    pub(super) kind: RecordKind,
    /// Connection ID, filled up with zeros.
    pub(super) cid: [u8; MOST_CID],
    /// The fragment begins with a nonce that counts with the sequence number.
    pub(super) has_nonce: bool,
}

impl RecordShape {
    /// Octets of the header, with the nonce.
    fn len(&self) -> usize {
        self.kind.header_len() + if self.has_nonce { NONCE } else { 0 }
    }

    /// The connection ID.
    #[inline]
    pub(super) fn cid(&self) -> &[u8] {
        self.cid.get(..usize::from(self.kind.cid_len)).unwrap_or_default()
    }
}

/// The part of a context that both ends share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DtlsState {
    pub(super) path: DtlsPath,
    pub(super) shape: RecordShape,
    pub(super) epoch: u16,
    /// Sequence number and MSN of the newest packet.
    pub(super) number: u64,
    pub(super) msn: u16,
    /// Nonce minus epoch and sequence number.
    pub(super) nonce_difference: u64,
    /// IP-ID; minus the MSN if it counts.
    pub(super) ip_id: u16,
    // Derived from the fields above: octets of the IP and UDP headers, and of all headers with the nonce; a CRC-8 and a
    // digest over all fields but the numbers of the newest packet, and the sum of those of IP and UDP that the UDP checksum covers.
    pub(super) record_at: u8,
    pub(super) headers: u8,
    pub(super) crc: u8,
    pub(super) digest: u16,
    pub(super) sum: u16,
}

impl DtlsState {
    /// Sets the fields that are derived from the others.
    pub(super) fn settle(&mut self) {
        let (path, shape) = (&self.path, &self.shape);
        // At most 48 and 41.
        (self.record_at, self.headers) = (path.len() as u8, (path.len() + shape.len()) as u8);
        let [_, a, b, c] = path.flow_label.to_be_bytes();
        let dynamic = [u8::from(path.v6) << 1 | u8::from(path.df), path.tos, path.ttl, a, b, c];
        self.sum = path.sum().fold();
        let [sp, dp, epoch] = [path.source_port, path.destination_port, self.epoch].map(u16::to_be_bytes);
        let RecordKind { first, is_1_0, cid_len } = shape.kind;
        let flags = cid_len << 2 | u8::from(is_1_0) << 1 | u8::from(shape.has_nonce);
        let fixed = [sp[0], sp[1], dp[0], dp[1], first, flags, epoch[0], epoch[1]];
        let difference = if shape.has_nonce { self.nonce_difference } else { 0 };
        let parts: [&[u8]; 6] =
            [&dynamic, &path.source, &path.destination, &fixed, shape.cid(), &difference.to_be_bytes()];
        // The epoch is covered although the UDP checksum covers it, too: one that is too high compensates a sequence number that is too low.
        let [high, low, ..] = fcs32_of_parts(&parts);
        self.digest = u16::from_be_bytes([high, low]);
        let check = Check::Crc8;
        self.crc = parts.iter().fold(check.start(), |crc, part| check.update(crc, part));
    }

    /// Index of the record in a packet.
    #[inline]
    pub(super) fn record_at(&self) -> usize {
        self.record_at.into()
    }

    /// Octets of all headers, with the nonce.
    #[inline]
    pub(super) fn headers(&self) -> usize {
        self.headers.into()
    }

    /// True if the chain of each packet has fields.
    #[inline]
    pub(super) fn has_chain(&self) -> bool {
        !self.path.v6 && self.path.ip_id_mode == IpIdMode::Irregular || self.shape.kind.is_unified()
    }

    /// Epoch and sequence number, as an explicit nonce has them.
    #[inline]
    fn count(&self, number: u64) -> u64 {
        u64::from(self.epoch) << 48 | number & NUMBER
    }

    /// Nonce of the record of that number.
    #[inline]
    pub(super) fn nonce(&self, number: u64) -> u64 {
        self.count(number).wrapping_add(self.nonce_difference)
    }

    /// Difference of a nonce from epoch and sequence number.
    #[inline]
    pub(super) fn difference(&self, nonce: [u8; NONCE], number: u64) -> u64 {
        u64::from_be_bytes(nonce).wrapping_sub(self.count(number))
    }

    /// Sets how the nonce is encoded, from a packet that carries the type of its record, once its number is known.
    pub(super) fn set_nonce(&mut self, x: &HeaderFields) {
        self.shape.has_nonce = x.nonce_source != NonceSource::None;
        match x.nonce_source {
            NonceSource::None | NonceSource::Difference => {}
            NonceSource::Number => self.nonce_difference = 0,
            NonceSource::Carried => self.nonce_difference = self.difference(x.nonce, x.number),
        }
    }

    /// Distance of an MSN from the newest one.
    #[inline]
    pub(super) fn ahead(&self, msn: u16) -> i32 {
        i32::from(msn.wrapping_sub(self.msn).cast_signed())
    }

    /// Sets the fields of `x` that follow from the context and the MSN. False if no record has the sequence number: it would be below 0, or
    /// too large. In a checksum, -1 equals 0.
    #[inline]
    pub(super) fn infer(&self, x: &mut HeaderFields) -> bool {
        if self.shape.kind.is_unified() {
            x.number = x.msn.into();
        } else if !x.carries.number {
            x.number = self.number.wrapping_add_signed(self.ahead(x.msn).into());
        }
        if !x.carries.ip_id {
            match self.path.ip_id_mode {
                IpIdMode::Constant => x.ip_id = self.ip_id,
                IpIdMode::Counted => x.ip_id = self.ip_id.wrapping_add(x.msn),
                IpIdMode::Irregular => {}
            }
        }
        x.number <= NUMBER
    }

    /// IP-ID of a packet as a reference.
    #[inline]
    pub(super) fn ip_id_reference(&self, x: &HeaderFields) -> u16 {
        match self.path.ip_id_mode {
            IpIdMode::Counted => x.ip_id.wrapping_sub(x.msn),
            IpIdMode::Constant | IpIdMode::Irregular => x.ip_id,
        }
    }

    /// Updates the numbers by a packet that was sent, or verified, and is newer than all before it.
    #[inline]
    pub(super) fn accept(&mut self, x: &HeaderFields) {
        self.ip_id = self.ip_id_reference(x);
        (self.msn, self.number) = (x.msn, x.number);
    }
}

/// Mask of a sequence number.
pub(super) const NUMBER: u64 = (1 << 48) - 1;
