//! Modes of operation of the RFC 3095 family. RFC 3095, sections 4.4 and 5.6.

/// A mode of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// U-mode: no feedback is needed; the compressor refreshes periodically.
    #[default]
    Unidirectional,
    /// O-mode: feedback asks for refreshes.
    Optimistic,
    /// R-mode: updates wait for acknowledgments.
    Reliable,
}

impl Mode {
    /// The two bits that say the mode in packets and feedback (RFC 3095, section 5.7.5).
    pub const fn bits(self) -> u8 {
        match self {
            Self::Unidirectional => 1,
            Self::Optimistic => 2,
            Self::Reliable => 3,
        }
    }

    /// The mode that two bits say; 0 is reserved, and cancels a transition in RFC 3843, section 3.4.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            1 => Some(Self::Unidirectional),
            2 => Some(Self::Optimistic),
            3 => Some(Self::Reliable),
            _ => None,
        }
    }

    /// The letter of the mode: `u`, `o` or `r`.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Unidirectional => "u",
            Self::Optimistic => "o",
            Self::Reliable => "r",
        }
    }
}

/// What a compressor does with a request for a mode (RFC 3095, section 5.6).
///
/// The table keeps a place for R-mode, which no profile of this crate operates yet: a request for it is
/// declined by staying in the mode in use, which RFC 3843, section 3.4, allows.
pub(crate) const fn transition(current: Mode, wanted: Mode) -> Mode {
    match (current, wanted) {
        // 5.6.2: as soon as any protected feedback asks for it.
        (Mode::Unidirectional | Mode::Optimistic, Mode::Optimistic) => Mode::Optimistic,
        // 5.6.6: packet types are common to U- and O-mode, so the three-way handshake changes nothing that
        // the decompressor could misread; its acknowledgments go on until a type 0 or 1 packet arrives.
        (Mode::Unidirectional | Mode::Optimistic, Mode::Unidirectional) => Mode::Unidirectional,
        (Mode::Unidirectional | Mode::Optimistic, Mode::Reliable) => current,
        (Mode::Reliable, _) => Mode::Reliable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_transitions() {
        use Mode::{Optimistic as O, Reliable as R, Unidirectional as U};
        let table = [
            (U, U, U),
            (U, O, O),
            (U, R, U),
            (O, U, U),
            (O, O, O),
            (O, R, O),
            (R, U, R),
            (R, O, R),
            (R, R, R),
        ];
        for (current, wanted, next) in table {
            assert_eq!(transition(current, wanted), next, "{current:?} asked for {wanted:?}");
        }
    }
}
