//! Virtual time, which only the experiment advances.

use thinair_wire::time::Instant;

/// Virtual clock. It starts at [`Instant::ZERO`] and never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualClock(Instant);

impl VirtualClock {
    /// Creates a clock at the origin.
    pub const fn new() -> Self {
        Self(Instant::ZERO)
    }

    /// Current time.
    pub const fn now(self) -> Instant {
        self.0
    }

    /// Advances to `time`; no effect if that is in the past.
    pub fn advance_to(&mut self, time: Instant) {
        self.0 = self.0.max(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back() {
        let mut clock = VirtualClock::new();
        clock.advance_to(Instant::from_millis(5));
        clock.advance_to(Instant::from_millis(3));
        assert_eq!(clock.now(), Instant::from_millis(5));
    }
}
