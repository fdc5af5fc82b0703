//! A segment size control that is chosen at run time.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use thinair_wire::time::Instant;

use crate::{Adaptive, Dmss, Fixed, LossDetection, SegmentSizer, Tssa};

/// Any of the segment size controls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizer {
    /// Constant size.
    Fixed(Fixed),
    /// Two sizes.
    Dmss(Dmss),
    /// Steps of one link MTU.
    Tssa(Tssa),
    /// Least expected cost.
    Adaptive(Adaptive),
}

impl SegmentSizer for Sizer {
    fn on_acked(&mut self, octets: u32, rtt: Option<Duration>, now: Instant) {
        match self {
            Self::Fixed(sizer) => sizer.on_acked(octets, rtt, now),
            Self::Dmss(sizer) => sizer.on_acked(octets, rtt, now),
            Self::Tssa(sizer) => sizer.on_acked(octets, rtt, now),
            Self::Adaptive(sizer) => sizer.on_acked(octets, rtt, now),
        }
    }

    fn on_lost(&mut self, loss: LossDetection, now: Instant) {
        match self {
            Self::Fixed(sizer) => sizer.on_lost(loss, now),
            Self::Dmss(sizer) => sizer.on_lost(loss, now),
            Self::Tssa(sizer) => sizer.on_lost(loss, now),
            Self::Adaptive(sizer) => sizer.on_lost(loss, now),
        }
    }

    fn on_frames(&mut self, sent: u32, failed: u32, busy: u32, now: Instant) {
        match self {
            Self::Fixed(sizer) => sizer.on_frames(sent, failed, busy, now),
            Self::Dmss(sizer) => sizer.on_frames(sent, failed, busy, now),
            Self::Tssa(sizer) => sizer.on_frames(sent, failed, busy, now),
            Self::Adaptive(sizer) => sizer.on_frames(sent, failed, busy, now),
        }
    }

    fn size(&self) -> u16 {
        match self {
            Self::Fixed(sizer) => sizer.size(),
            Self::Dmss(sizer) => sizer.size(),
            Self::Tssa(sizer) => sizer.size(),
            Self::Adaptive(sizer) => sizer.size(),
        }
    }
}

impl From<Fixed> for Sizer {
    fn from(sizer: Fixed) -> Self {
        Self::Fixed(sizer)
    }
}

impl From<Dmss> for Sizer {
    fn from(sizer: Dmss) -> Self {
        Self::Dmss(sizer)
    }
}

impl From<Tssa> for Sizer {
    fn from(sizer: Tssa) -> Self {
        Self::Tssa(sizer)
    }
}

impl From<Adaptive> for Sizer {
    fn from(sizer: Adaptive) -> Self {
        Self::Adaptive(sizer)
    }
}

/// Error: unknown segment size control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseSizerError;

impl fmt::Display for ParseSizerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown segment size control; use fixed:OCTETS (1 to 65535), dmss, tssa or adaptive")
    }
}

impl core::error::Error for ParseSizerError {}

impl FromStr for Sizer {
    type Err = ParseSizerError;

    /// Parses `fixed:OCTETS`, `dmss`, `tssa` or `adaptive`; the last three have their defaults.
    fn from_str(text: &str) -> Result<Self, ParseSizerError> {
        match text {
            "dmss" => Ok(Dmss::default().into()),
            "tssa" => Ok(Tssa::default().into()),
            "adaptive" => Ok(Adaptive::default().into()),
            _ => {
                let size = text.strip_prefix("fixed:").and_then(|size| size.parse().ok());
                size.filter(|size| *size > 0).map(|size| Fixed::new(size).into()).ok_or(ParseSizerError)
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::{AdaptiveConfig, DmssConfig, TssaConfig};

    #[test]
    fn names_are_those_of_the_files() {
        assert_eq!("fixed:300".parse(), Ok(Sizer::from(Fixed::new(300))));
        assert_eq!("tssa".parse(), Ok(Sizer::from(Tssa::default())));
        for wrong in ["", "fixed", "fixed:", "fixed:0", "fixed:65536", "fixed:+-1", "TSSA", "tssa "] {
            assert_eq!(wrong.parse::<Sizer>(), Err(ParseSizerError), "{wrong}");
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum SizerInput {
        Acked(u32, Option<Duration>),
        Lost(LossDetection),
        Frames(u32, u32, u32),
    }

    fn inputs() -> impl Strategy<Value = Vec<SizerInput>> {
        let input = prop_oneof![
            (any::<u32>(), prop::option::of(any::<u32>().prop_map(|us| Duration::from_micros(us.into()))))
                .prop_map(|(octets, rtt)| SizerInput::Acked(octets, rtt)),
            Just(SizerInput::Lost(LossDetection::Rto)),
            Just(SizerInput::Lost(LossDetection::Fast)),
            (any::<u32>(), any::<u32>(), any::<u32>())
                .prop_map(|(sent, failed, busy)| SizerInput::Frames(sent, failed, busy)),
        ];
        prop::collection::vec(input, 0..400)
    }

    fn stays_within(
        mut sizer: Sizer,
        inputs: &[SizerInput],
        least: u16,
        most: u16,
    ) -> Result<(), TestCaseError> {
        for (input, at) in inputs.iter().zip(0..) {
            let now = Instant::from_millis(at);
            match *input {
                SizerInput::Acked(octets, rtt) => sizer.on_acked(octets, rtt, now),
                SizerInput::Lost(loss) => sizer.on_lost(loss, now),
                SizerInput::Frames(sent, failed, busy) => sizer.on_frames(sent, failed, busy, now),
            }
            let size = sizer.size();
            prop_assert!((least..=most).contains(&size), "{size} after {input:?}: {sizer:?}");
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn sizes_stay_within_their_bounds(
            inputs in inputs(), bounds in (1_u16..2_000, 0_u16..3_000), step in any::<u16>(), counts in any::<(u16, u16)>(),
        ) {
            let (least, most) = (bounds.0, bounds.0 + bounds.1);
            let (s_max, l_max) = counts;
            let tssa = TssaConfig { start: 0, least, most, step, s_max, l_max, ..TssaConfig::default() };
            stays_within(Tssa::new(tssa).into(), &inputs, least, most)?;
            let dmss = DmssConfig { small: least, large: most, window: s_max, ..DmssConfig::default() };
            stays_within(Dmss::new(dmss).into(), &inputs, least, most)?;
            let adaptive = AdaptiveConfig { least, most, frame: step, ..AdaptiveConfig::default() };
            stays_within(Adaptive::new(adaptive).into(), &inputs, least, most)?;
        }
    }
}
