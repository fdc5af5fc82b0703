//! Records of TLS in the octets of one direction of a TCP connection.

/// Octets of a record's header: type, version, length (RFC 8446, section 5.1).
const HEADER: usize = 5;

/// Type of the first handshake message (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;

/// Position in the records of a direction.
#[derive(Debug, Default)]
pub(crate) struct TlsRecords {
    is_lost: bool,
    /// Octets left of the record, and true if it is of a handshake.
    left: usize,
    is_handshake: bool,
    /// True after the first record.
    has_begun: bool,
    /// True for the direction of a ClientHello.
    is_of_client: bool,
    /// True if the latest record was a change of the cipher.
    has_changed: bool,
    /// True if a record that looks like data followed it: TLS 1.3 encrypts handshakes (RFC 8446, section 5).
    encrypts: bool,
}

impl TlsRecords {
    /// Gives up: octets are missing.
    pub(crate) fn lose(&mut self) {
        self.is_lost = true;
    }

    /// True if the client of TLS 1.3 has sent its part of the handshake.
    pub(crate) fn has_finished(&self) -> bool {
        self.is_of_client && self.encrypts
    }

    /// Number of octets of handshakes and changes of the cipher among the next octets; `None` if they are not TLS, or
    /// octets before them are missing. A header that a segment divides ends the count. `client_has_finished`: the client has
    /// sent its part of the handshake, before which a server of TLS 1.3 sends no data.
    pub(crate) fn handshake_octets(&mut self, mut data: &[u8], client_has_finished: bool) -> Option<usize> {
        let mut handshake = 0;
        while !self.is_lost && !data.is_empty() {
            if self.left == 0 {
                let has_changed = std::mem::take(&mut self.has_changed);
                let is_of_handshake = match *data {
                    [20, 3, 0..=4, ..] => {
                        self.has_changed = true;
                        true
                    }
                    [22, 3, 0..=4, ..] => {
                        self.is_of_client |= !self.has_begun && data.get(HEADER) == Some(&CLIENT_HELLO);
                        true
                    }
                    [23, 3, 0..=4, ..] if has_changed => {
                        self.encrypts = true;
                        true
                    }
                    [23, 3, 0..=4, ..] if self.encrypts && !self.is_of_client && !client_has_finished => true,
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
