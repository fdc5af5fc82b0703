//! Properties of a network that are known beforehand, and each control's parameters for them.

use crate::{Adaptive, AdaptiveConfig, Dmss, DmssConfig, Fixed, Measure, Sizer, Tssa, TssaConfig};

/// Window of DMSS, in segments, where it cannot count frames: large enough for a threshold of 5 %.
const DMSS_SEGMENTS: u16 = 50;

/// A network behind a host that does not see its frames: one that sends by sockets, or through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkProperties {
    /// Octets of a packet that a frame carries: the step of TSSA, and the unit that [`Adaptive`] fills. 0 means 1.
    pub frame: u16,
    /// Octets of headers in front of a segment, as sent.
    pub headers: u16,
    /// Smallest size of a segment, in octets; 0 means 1.
    pub least: u16,
    /// Largest size of a segment, in octets.
    pub most: u16,
}

impl Default for NetworkProperties {
    /// IEEE 802.15.4 with TCP timestamps over IPv4: the frames of Ayadi and Awang.
    fn default() -> Self {
        Self { frame: 106, headers: 52, least: 64, most: 1_024 }
    }
}

impl NetworkProperties {
    /// Returns a control of the same kind with the parameters of this network and no measurements. A fixed size
    /// stays as it is.
    pub fn configure(&self, sizer: &Sizer) -> Sizer {
        let &Self { frame, headers, least, most } = self;
        match sizer {
            Sizer::Fixed(fixed) => Fixed::clone(fixed).into(),
            Sizer::Dmss(_) => Dmss::new(DmssConfig {
                small: least,
                large: most,
                measure: Measure::Segments,
                window: DMSS_SEGMENTS,
                ..DmssConfig::default()
            })
            .into(),
            Sizer::Tssa(_) => {
                Tssa::new(TssaConfig { start: least, least, most, step: frame, ..TssaConfig::default() })
                    .into()
            }
            Sizer::Adaptive(_) => {
                Adaptive::new(AdaptiveConfig { least, most, frame, headers, ..AdaptiveConfig::default() })
                    .into()
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use core::time::Duration;

    use thinair_wire::time::Instant;

    use super::*;
    use crate::{LossDetection, SegmentSizer as _};

    #[test]
    fn each_control_stays_within_the_network() {
        let network = NetworkProperties { frame: 50, headers: 40, least: 60, most: 700 };
        for name in ["dmss", "tssa", "adaptive"] {
            let mut sizer = network.configure(&name.parse().unwrap());
            let mut sizes = std::vec::Vec::new();
            for at in 0..2_000 {
                let now = Instant::from_millis(at);
                if at > 1_000 && at % 2 == 0 {
                    sizer.on_lost(LossDetection::Rto, now);
                }
                sizer.on_acked(sizer.size().into(), Some(Duration::from_millis(9)), now);
                sizes.push(sizer.size());
            }
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(*least >= 60 && *least < 120 && *most <= 700 && *most > 600, "{name}: {least} to {most}");
        }
        assert_eq!(network.configure(&"fixed:9".parse().unwrap()), Fixed::new(9).into());
    }
}
