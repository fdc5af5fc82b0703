//! DMSS: J.-H. Choi, J.-G. Choi, C. Yoo: Adapting TCP Segment Size in Cellular Networks, ICN 2005, as Ayadi and Awang
//! quote it (2010, section II): “The scheme judges that the channel condition is bad when the error rate is over the
//! threshold, and the state is good when the rate is under the threshold”: the small MSS fits into one link frame, the
//! large one is that of the path MTU.
//!
//! The quotation leaves some points open; each is a parameter of [`DmssConfig`]: the kind of error ([`Measure`]), the
//! window over which the rate is measured, and the size before the first rate is known (the large one).

use core::time::Duration;

use thinair_wire::time::Instant;

use crate::{LossDetection, SegmentSizer};

/// Frame error rate above which a channel is bad, in thousandths. “We consider the FER of 5%”.
const THRESHOLD: u16 = 50;

/// Events that the error rate is measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Transmissions of frames of this host that were not acknowledged by the next one, collisions included: by
    /// [`SegmentSizer::on_frames`]. Without it, the large size is kept.
    Frames,
    /// Segments that were lost from end to end, of those that were sent.
    Segments,
    /// A rate set with [`Dmss::set_frame_error_rate`], for a radio that measures it without collisions.
    Given,
}

/// Parameters that the description of DMSS leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmssConfig {
    /// Small MSS: fits into one frame, in octets.
    pub small: u16,
    /// Large MSS: that of the path MTU, in octets.
    pub large: u16,
    /// Error rate above which the channel is bad, in thousandths.
    pub threshold: u16,
    /// Events that the error rate is measured on.
    pub measure: Measure,
    /// Frames or segments of one measurement window; windows do not overlap; 0 means 1.
    pub window: u16,
}

impl Default for DmssConfig {
    fn default() -> Self {
        Self { small: 64, large: 1_024, threshold: THRESHOLD, measure: Measure::Frames, window: 100 }
    }
}

/// Segment size control with two sizes and a threshold between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dmss {
    config: DmssConfig,
    /// The channel is bad.
    bad: bool,
    /// Sent in the window that is being filled.
    sent: u32,
    failed: u32,
}

impl Dmss {
    /// Creates a control that uses the large size until a full window shows a bad channel.
    pub const fn new(config: DmssConfig) -> Self {
        Self { config, bad: false, sent: 0, failed: 0 }
    }

    /// Sets the frame error rate, in millionths; used only with [`Measure::Given`].
    pub fn set_frame_error_rate(&mut self, millionths: u32) {
        if self.config.measure == Measure::Given {
            self.bad = millionths > u32::from(self.config.threshold) * 1_000;
        }
    }

    fn count(&mut self, measure: Measure, sent: u32, failed: u32) {
        if self.config.measure != measure {
            return;
        }
        self.sent = self.sent.saturating_add(sent);
        self.failed = self.failed.saturating_add(failed);
        if self.sent >= u32::from(self.config.window).max(1) {
            self.bad =
                u64::from(self.failed) * 1_000 > u64::from(self.sent) * u64::from(self.config.threshold);
            (self.sent, self.failed) = (0, 0);
        }
    }
}

impl Default for Dmss {
    fn default() -> Self {
        Self::new(DmssConfig::default())
    }
}

impl SegmentSizer for Dmss {
    fn on_acked(&mut self, _octets: u32, _rtt: Option<Duration>, _now: Instant) {
        self.count(Measure::Segments, 1, 0);
    }

    fn on_lost(&mut self, _loss: LossDetection, _now: Instant) {
        self.count(Measure::Segments, 1, 1);
    }

    fn on_frames(&mut self, sent: u32, failed: u32, _busy: u32, _now: Instant) {
        self.count(Measure::Frames, sent, failed);
    }

    fn size(&self) -> u16 {
        if self.bad { self.config.small.max(1) } else { self.config.large.max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_five_percent_of_frames_are_a_bad_channel() {
        let mut dmss = Dmss::default();
        dmss.on_frames(99, 99, 0, Instant::ZERO);
        assert_eq!(dmss.size(), 1_024, "an incomplete window has no effect");
        dmss.on_frames(1, 0, 0, Instant::ZERO);
        assert_eq!(dmss.size(), 64);
        dmss.on_frames(100, 6, 0, Instant::ZERO);
        assert_eq!(dmss.size(), 64);
        dmss.on_frames(100, 5, 0, Instant::ZERO);
        assert_eq!(dmss.size(), 1_024, "five of a hundred are not more than 5 %");
    }

    #[test]
    fn segments_can_be_counted_instead_of_frames() {
        let config = DmssConfig { measure: Measure::Segments, window: 50, ..DmssConfig::default() };
        let mut dmss = Dmss::new(config);
        for _ in 0..3 {
            dmss.on_lost(LossDetection::Fast, Instant::ZERO);
        }
        for _ in 0..46 {
            dmss.on_acked(1_024, None, Instant::ZERO);
        }
        dmss.on_frames(1_000, 1_000, 0, Instant::ZERO);
        assert_eq!(dmss.size(), 1_024);
        dmss.on_acked(1_024, None, Instant::ZERO);
        assert_eq!(dmss.size(), 64, "3 of 50 are 6 %");
    }

    #[test]
    fn a_rate_can_be_given() {
        let mut dmss = Dmss::new(DmssConfig { measure: Measure::Given, ..DmssConfig::default() });
        dmss.set_frame_error_rate(50_000);
        assert_eq!(dmss.size(), 1_024);
        dmss.set_frame_error_rate(50_001);
        assert_eq!(dmss.size(), 64);
        let mut other = Dmss::default();
        other.set_frame_error_rate(1_000_000);
        assert_eq!(other.size(), 1_024, "the rate is ignored where frames are counted");
    }
}
