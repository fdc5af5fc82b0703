//! Alerts. RFC 5246, section 7.2.

use core::fmt;

/// Reason for an alert. RFC 5246, section 7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlertDescription(pub u8);

impl AlertDescription {
    /// The sender will not send any more.
    pub const CLOSE_NOTIFY: Self = Self(0);
    /// A record that belongs to no session of its receiver.
    pub const UNEXPECTED_MESSAGE: Self = Self(10);
    /// A record cannot be decrypted: the keys are others.
    pub const BAD_RECORD_MAC: Self = Self(20);
    /// There is no common cipher suite, or no common extension that one end needs.
    pub const HANDSHAKE_FAILURE: Self = Self(40);
    /// A field has a value that is not allowed.
    pub const ILLEGAL_PARAMETER: Self = Self(47);
    /// A message cannot be decoded.
    pub const DECODE_ERROR: Self = Self(50);
    /// Finished has other contents than it must have.
    pub const DECRYPT_ERROR: Self = Self(51);
    /// The version is not supported.
    pub const PROTOCOL_VERSION: Self = Self(70);
    /// An extension was not offered.
    pub const UNSUPPORTED_EXTENSION: Self = Self(110);
    /// There is no key with this identity. RFC 4279, section 2.
    pub const UNKNOWN_PSK_IDENTITY: Self = Self(115);
}

impl fmt::Display for AlertDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            0 => "close_notify",
            10 => "unexpected_message",
            20 => "bad_record_mac",
            22 => "record_overflow",
            40 => "handshake_failure",
            47 => "illegal_parameter",
            49 => "access_denied",
            50 => "decode_error",
            51 => "decrypt_error",
            70 => "protocol_version",
            71 => "insufficient_security",
            80 => "internal_error",
            90 => "user_canceled",
            100 => "no_renegotiation",
            109 => "missing_extension",
            110 => "unsupported_extension",
            112 => "unrecognized_name",
            115 => "unknown_psk_identity",
            number => return write!(f, "alert {number}"),
        };
        f.write_str(name)
    }
}

/// An alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alert {
    pub(crate) is_fatal: bool,
    pub(crate) description: AlertDescription,
}

impl Alert {
    /// Octets of an alert.
    pub(crate) const LEN: usize = 2;

    pub(crate) const CLOSE_NOTIFY: Self =
        Self { is_fatal: false, description: AlertDescription::CLOSE_NOTIFY };

    pub(crate) const fn fatal(description: AlertDescription) -> Self {
        Self { is_fatal: true, description }
    }

    pub(crate) const fn octets(self) -> [u8; Self::LEN] {
        [if self.is_fatal { 2 } else { 1 }, self.description.0]
    }

    pub(crate) fn read(octets: &[u8]) -> Option<Self> {
        match octets {
            [level @ 1..=2, description] => {
                Some(Self { is_fatal: *level == 2, description: AlertDescription(*description) })
            }
            _ => None,
        }
    }

    /// True if its sender has ended the session.
    pub(crate) fn ends_session(self) -> bool {
        self.is_fatal || self.description == AlertDescription::CLOSE_NOTIFY
    }
}
