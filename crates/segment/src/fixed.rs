//! A fixed segment size: the usual practice, and the baseline for the other controls.

use core::time::Duration;

use thinair_wire::time::Instant;

use crate::{LossDetection, SegmentSizer};

/// Constant segment size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    size: u16,
}

impl Fixed {
    /// Creates a control with `size` octets of payload; 0 means 1.
    pub const fn new(size: u16) -> Self {
        Self { size: if size == 0 { 1 } else { size } }
    }
}

impl SegmentSizer for Fixed {
    fn on_acked(&mut self, _octets: u32, _rtt: Option<Duration>, _now: Instant) {}

    fn on_lost(&mut self, _loss: LossDetection, _now: Instant) {}

    fn size(&self) -> u16 {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changes_a_fixed_size() {
        let mut sizer = Fixed::new(512);
        sizer.on_lost(LossDetection::Rto, Instant::ZERO);
        sizer.on_acked(512, None, Instant::ZERO);
        sizer.on_frames(10, 10, 10, Instant::ZERO);
        assert_eq!((sizer.size(), Fixed::new(0).size()), (512, 1));
    }
}
