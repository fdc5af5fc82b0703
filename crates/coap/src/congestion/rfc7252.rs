//! Binary exponential back-off from ACK_TIMEOUT, without state. RFC 7252, section 4.2.

use core::time::Duration;

use thinair_wire::time::Instant;

use super::{Acknowledged, CongestionControl, Series, Timer, Transmission, dither, nanos};

/// The first timeout is between ACK_TIMEOUT and ACK_TIMEOUT * ACK_RANDOM_FACTOR; each further one is twice the previous
/// one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rfc7252;

impl CongestionControl for Rfc7252 {
    fn start(&mut self, _now: Instant, parameters: &Transmission, _in_flight: usize, random: u64) -> Timer {
        let base = nanos(parameters.ack_timeout);
        let first = dither(base, parameters.ack_random_factor, random);
        Timer::new(first, first, Series::Double)
    }

    fn back_off(&mut self, timer: &mut Timer) {
        timer.retransmissions = timer.retransmissions.saturating_add(1);
        timer.nanos = timer.nanos.saturating_mul(2);
    }

    fn on_ack(&mut self, _ack: &Acknowledged) {}

    fn rto(&self, _now: Instant, parameters: &Transmission) -> Duration {
        parameters.ack_timeout
    }

    fn has_sample(&self) -> bool {
        false
    }

    fn is_adaptive(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_double_from_a_dithered_ack_timeout() {
        let parameters = Transmission::default();
        for (random, first) in [(0, 2_000), (1 << 63, 2_500), (u64::MAX, 3_000)] {
            let mut timer = Rfc7252.start(Instant::ZERO, &parameters, 0, random);
            for k in 0..5 {
                assert_eq!(timer.timeout(), Duration::from_millis(first << k));
                Rfc7252.back_off(&mut timer);
            }
        }
    }
}
