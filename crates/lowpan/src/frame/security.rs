//! The Auxiliary Security Header. IEEE 802.15.4-2015, section 9.4.

use thinair_wire::coder::{Coder, Step};

/// Security fields of a secured frame. Keys and nonces are the application's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuxSecurityHeader {
    /// Security Level, 0 to 7: bit 2 for encryption, the bits below for the length of the integrity code.
    pub level: u8,
    /// Identification of the key.
    pub key_id_mode: KeyIdMode,
    /// Frame Counter; `None` if it is suppressed.
    pub frame_counter: Option<u32>,
    /// True if the nonce contains the Absolute Slot Number.
    pub is_asn_in_nonce: bool,
    /// Key Source and Key Index as encoded; octets that are absent in [`Self::key_id_mode`] are 0.
    pub key_identifier: [u8; 9],
}

/// Key Identifier Mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyIdMode {
    /// The key is determined by sender and receiver.
    #[default]
    Implicit,
    /// By Key Index: 1 octet.
    Index,
    /// By a Key Source of 4 octets, and Key Index.
    Source4,
    /// By a Key Source of 8 octets, and Key Index.
    Source8,
}

impl AuxSecurityHeader {
    /// True if the payload is encrypted.
    pub const fn is_encrypted(self) -> bool {
        self.level & 0b100 != 0
    }

    /// Returns the length of the Message Integrity Code: 0, 4, 8 or 16 octets.
    pub const fn mic_len(self) -> usize {
        match self.level & 0b11 {
            0 => 0,
            1 => 4,
            2 => 8,
            _ => 16,
        }
    }

    /// Security Control, Frame Counter, Key Identifier. Figures 9-1 and 9-2; least significant octet first.
    pub(super) fn code<'p, C: Coder<'p>>(&mut self, c: &mut C) -> Step {
        let mut mode = self.key_id_mode as u8;
        c.reserved(1)?;
        c.flag("ASN in Nonce", &mut self.is_asn_in_nonce)?;
        // Reserved, and therefore zero, before 2015.
        let is_suppressed = c.flag("Frame Counter Suppression", &mut self.frame_counter.is_none())?;
        c.uint("Key Identifier Mode", 2, &mut mode)?;
        c.uint("Security Level", 3, &mut self.level)?;
        self.frame_counter = if is_suppressed {
            None
        } else {
            let mut counter = self.frame_counter.unwrap_or(0).to_le_bytes();
            c.octets("Frame Counter", &mut counter)?;
            Some(u32::from_le_bytes(counter))
        };
        let [a, b, d, e, f, ..] = self.key_identifier;
        match mode {
            0 => self.key_id_mode = KeyIdMode::Implicit,
            1 => {
                self.key_id_mode = KeyIdMode::Index;
                let mut index = [a];
                c.octets("Key Identifier", &mut index)?;
                self.key_identifier[..1].copy_from_slice(&index);
            }
            2 => {
                self.key_id_mode = KeyIdMode::Source4;
                let mut source = [a, b, d, e, f];
                c.octets("Key Identifier", &mut source)?;
                self.key_identifier[..5].copy_from_slice(&source);
            }
            _ => {
                self.key_id_mode = KeyIdMode::Source8;
                c.octets("Key Identifier", &mut self.key_identifier)?;
            }
        }
        Ok(())
    }
}
