//! Time that an experiment moves on by itself: no second passes that nobody asked for.

use thinair_wire::time::Instant;

/// A virtual clock. It starts at [`Instant::ZERO`] and never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock(Instant);

impl Clock {
    /// A clock at the origin.
    pub const fn new() -> Self {
        Self(Instant::ZERO)
    }

    /// What the time is.
    pub const fn now(self) -> Instant {
        self.0
    }

    /// It is `time` now; or still what it was, if that is later.
    pub fn advance_to(&mut self, time: Instant) {
        self.0 = self.0.max(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back() {
        let mut clock = Clock::new();
        clock.advance_to(Instant::from_millis(5));
        clock.advance_to(Instant::from_millis(3));
        assert_eq!(clock.now(), Instant::from_millis(5));
    }
}
