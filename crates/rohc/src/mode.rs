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
    /// The two bits of the mode in packets and feedback (RFC 3095, section 5.7.5).
    pub const fn bits(self) -> u8 {
        match self {
            Self::Unidirectional => 1,
            Self::Optimistic => 2,
            Self::Reliable => 3,
        }
    }

    /// Returns the mode of two bits. 0 is reserved, and cancels a transition in RFC 3843, section 3.4.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            1 => Some(Self::Unidirectional),
            2 => Some(Self::Optimistic),
            3 => Some(Self::Reliable),
            _ => None,
        }
    }

    /// Returns the mode of a profile that has none: U-mode without feedback, O-mode with it.
    pub(crate) const fn with_feedback(is_two_way: bool) -> Self {
        if is_two_way { Self::Optimistic } else { Self::Unidirectional }
    }

    /// Returns the mode of a [letter](Self::letter).
    pub fn from_letter(letter: &str) -> Option<Self> {
        [Self::Unidirectional, Self::Optimistic, Self::Reliable]
            .into_iter()
            .find(|mode| mode.letter() == letter)
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
