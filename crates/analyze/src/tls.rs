//! Records of TLS in the octets of one direction of a TCP connection.

/// Octets of a record's header: type, version, length (RFC 8446, section 5.1).
const HEADER: usize = 5;

/// Position in the records of a direction.
#[derive(Debug, Default)]
pub(crate) struct TlsRecords {
    is_lost: bool,
    /// Octets left of the record, and true if it is of a handshake.
    left: usize,
    is_handshake: bool,
    /// True after the first record.
    has_begun: bool,
}

impl TlsRecords {
    /// Gives up: octets are missing.
    pub(crate) fn lose(&mut self) {
        self.is_lost = true;
    }

    /// Number of octets of handshakes and changes of the cipher among the next octets; `None` if they are not TLS, or
    /// octets before them are missing. A header that a segment divides ends the count.
    pub(crate) fn handshake_octets(&mut self, mut data: &[u8]) -> Option<usize> {
        let mut handshake = 0;
        while !self.is_lost && !data.is_empty() {
            if self.left == 0 {
                let is_of_handshake = match *data {
                    [20 | 22, 3, 0..=4, ..] => true,
                    [21 | 23 | 24, 3, 0..=4, ..] if self.has_begun => false,
                    _ => {
                        self.is_lost = true;
                        break;
                    }
                };
                let Some(&[_, _, _, high, low]) = data.first_chunk::<HEADER>() else {
                    self.is_lost = true;
                    break;
                };
                self.left = HEADER + usize::from(u16::from_be_bytes([high, low]));
                (self.is_handshake, self.has_begun) = (is_of_handshake, true);
            }
            let (now, rest) = data.split_at(self.left.min(data.len()));
            self.left -= now.len();
            handshake += if self.is_handshake { now.len() } else { 0 };
            data = rest;
        }
        self.has_begun.then_some(handshake)
    }
}
