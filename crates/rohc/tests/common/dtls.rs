//! Flows of DTLS records: DTLS 1.2 with and without connection IDs, DTLS 1.3, several associations, alerts, handshakes.

use thinair_wire::checksum::Sum;

use super::{IdKind, IpLayer, SplitMix64};

/// Explicit nonces of the records of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nonce {
    /// None: ChaCha20.
    None,
    /// Epoch and sequence number plus this.
    Difference(u64),
    Random,
}

/// A flow of one direction.
#[derive(Clone, Debug)]
pub struct DtlsFlow {
    pub layer: IpLayer,
    pub port: u16,
    pub has_checksum: bool,
    /// DTLS 1.3, with the length field, and with a sequence number of 16 bits.
    pub unified: Option<(bool, bool)>,
    pub cid: Vec<u8>,
    pub epoch: u16,
    pub number: u64,
    pub nonce: Nonce,
    /// Octets of plaintext.
    pub plaintext: usize,
    /// Octets of the authentication tag.
    pub tag: usize,
}

impl DtlsFlow {
    /// An established association of CCM_8.
    pub fn new(six: bool) -> Self {
        let mut layer = IpLayer::new(six, 1);
        layer.df = true;
        Self {
            layer,
            port: 49_152,
            has_checksum: true,
            unified: None,
            cid: Vec::new(),
            epoch: 1,
            number: 1,
            nonce: Nonce::Difference(0),
            plaintext: 9,
            tag: 8,
        }
    }

    /// The next record of application data.
    pub fn record(&mut self, random: &mut SplitMix64) -> Vec<u8> {
        // With a connection ID, the inner content type is one octet of plaintext.
        let has_inner_type = !self.cid.is_empty() && self.unified.is_none();
        let (content_type, octets) =
            if has_inner_type { (25, self.plaintext + 1) } else { (23, self.plaintext) };
        self.record_of(content_type, octets, random)
    }

    /// The next record of that type, with that many octets of plaintext.
    pub fn record_of(&mut self, content_type: u8, plaintext: usize, random: &mut SplitMix64) -> Vec<u8> {
        let mut ciphertext: Vec<u8> = Vec::new();
        let number = self.number;
        self.number += 1;
        if let Some((has_length, has_16_bits)) = self.unified {
            let has_cid = !self.cid.is_empty();
            let flags = u8::from(has_cid) << 4 | u8::from(has_16_bits) << 3 | u8::from(has_length) << 2;
            let mut record = vec![0x20 | flags | self.epoch as u8 & 3];
            record.extend_from_slice(&self.cid);
            let encrypted = (random.next() as u16).to_be_bytes();
            record.extend_from_slice(if has_16_bits { &encrypted } else { &encrypted[..1] });
            let len = plaintext + 1 + self.tag;
            if has_length {
                record.extend_from_slice(&(len as u16).to_be_bytes());
            }
            record.extend((0..len).map(|_| random.next() as u8));
            return record;
        }
        let count = u64::from(self.epoch) << 48 | number;
        match self.nonce {
            _ if self.epoch == 0 => {}
            Nonce::None => {}
            Nonce::Difference(more) => ciphertext.extend_from_slice(&count.wrapping_add(more).to_be_bytes()),
            Nonce::Random => ciphertext.extend_from_slice(&random.next().to_be_bytes()),
        }
        let tag = if self.epoch == 0 { 0 } else { self.tag };
        ciphertext.extend((0..plaintext + tag).map(|_| random.next() as u8));
        let mut record = vec![content_type, 254, 253];
        record.extend_from_slice(&count.to_be_bytes());
        if content_type == 25 {
            record.extend_from_slice(&self.cid);
        }
        record.extend_from_slice(&(ciphertext.len() as u16).to_be_bytes());
        record.extend_from_slice(&ciphertext);
        record
    }

    /// The packet that carries a datagram.
    pub fn packet(&mut self, datagram: &[u8], random: &mut SplitMix64) -> Vec<u8> {
        let mut udp = Vec::with_capacity(8 + datagram.len());
        udp.extend_from_slice(&self.port.to_be_bytes());
        udp.extend_from_slice(&5684_u16.to_be_bytes());
        udp.extend_from_slice(&(8 + datagram.len() as u16).to_be_bytes());
        udp.extend_from_slice(&[0, 0]);
        udp.extend_from_slice(datagram);
        self.layer.step(random);
        let mut packet = self.layer.wrap(17, &udp, random);
        if self.has_checksum {
            set_checksum(&mut packet);
        }
        packet
    }

    /// The packet of the next record of application data.
    pub fn next(&mut self, random: &mut SplitMix64) -> Vec<u8> {
        let record = self.record(random);
        self.packet(&record, random)
    }

    /// Begins a new epoch, with other nonces.
    pub fn rekey(&mut self, random: &mut SplitMix64) {
        (self.epoch, self.number) = (self.epoch % 3 + 1, 0);
        self.nonce = match random.below(4) {
            0 => Nonce::None,
            1 => Nonce::Difference(random.next()),
            2 => Nonce::Random,
            _ => Nonce::Difference(0),
        };
    }

    /// The next packet of a flow with all that records do: alerts, handshakes, new epochs, several records in a datagram, records that
    /// overtake one another, jumps, and changes of IP fields.
    pub fn mixed(&mut self, random: &mut SplitMix64) -> Vec<u8> {
        match random.below(60) {
            0 => self.rekey(random),
            1 => self.layer.ttl = 60 + random.below(4) as u8,
            2 => self.layer.tos = (random.below(3) as u8) << 2,
            3 => self.number += random.below(300),
            4 => self.number = self.number.saturating_sub(random.below(12)),
            5 => self.plaintext = random.below(60) as usize,
            6 => (self.epoch, self.number) = (0, random.below(3)),
            7 => self.layer.id = random.next() as u16,
            8 if random.once_in(3) => {
                self.layer.id_kind =
                    [IdKind::Counts, IdKind::Constant, IdKind::Random][random.below(3) as usize];
            }
            9 if random.once_in(3) => self.has_checksum = self.layer.six || !self.has_checksum,
            _ => {}
        }
        let mut datagram = match random.below(40) {
            0 => self.record_of(21, 2, random),
            1 if self.epoch == 0 => self.record_of(20, 1, random),
            2 | 3 => self.record_of(22, 30, random),
            _ => self.record(random),
        };
        if random.once_in(12) && self.unified.is_none_or(|(has_length, _)| has_length) {
            datagram.extend(self.record(random));
        }
        self.packet(&datagram, random)
    }
}

/// Writes the checksum of UDP behind one IP header.
fn set_checksum(packet: &mut [u8]) {
    let (addresses, at) = if packet[0] >> 4 == 4 { (12..20, 20) } else { (8..40, 40) };
    let sum = Sum::ZERO.octets(&packet[addresses]).word(17).word((packet.len() - at) as u16);
    let sum = match sum.octets(&packet[at..]).checksum() {
        0 => 0xFFFF,
        sum => sum,
    };
    packet[at + 6..at + 8].copy_from_slice(&sum.to_be_bytes());
}
