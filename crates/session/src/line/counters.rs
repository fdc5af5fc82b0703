//! Counters of a line.

use super::FrameError;

/// Counters of a [`Framer`](super::Framer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FramerCounters {
    /// Frames.
    pub frames: u64,
    /// Octets of their datagrams.
    pub octets: u64,
    /// Octets on the line.
    pub line_octets: u64,
}

impl FramerCounters {
    pub(super) const ZERO: Self = Self { frames: 0, octets: 0, line_octets: 0 };
}

/// Counters of a [`Deframer`](super::Deframer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DeframerCounters {
    /// Frames that were delivered.
    pub frames: u64,
    /// Octets of their datagrams.
    pub octets: u64,
    /// Octets received from the line.
    pub line_octets: u64,
    /// Frames with a wrong CRC-32.
    pub crc_errors: u64,
    /// Frames shorter than a CRC-32.
    pub too_short: u64,
    /// Frames that exceed the maximum size.
    pub too_long: u64,
    /// SLIP frames with an invalid escape.
    pub bad_escapes: u64,
    /// Frames that end within an escape or a block.
    pub cut_short: u64,
}

impl DeframerCounters {
    pub(super) const fn count(&mut self, error: FrameError) {
        let counter = match error {
            FrameError::Crc { .. } => &mut self.crc_errors,
            FrameError::TooShort { .. } => &mut self.too_short,
            FrameError::TooLong { .. } => &mut self.too_long,
            FrameError::BadEscape { .. } => &mut self.bad_escapes,
            FrameError::CutShort { .. } => &mut self.cut_short,
        };
        *counter += 1;
    }

    /// Frames dropped for any reason.
    pub const fn dropped(&self) -> u64 {
        self.crc_errors + self.too_short + self.too_long + self.bad_escapes + self.cut_short
    }
}
