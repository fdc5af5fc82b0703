//! CoDel: packets are dropped when they leave the queue, if all have waited too long for too long. RFC 8289.

use core::time::Duration;

use thinair_wire::time::Instant;

use crate::jitter::nanoseconds;
use crate::model::CoDelConfig;

/// Queue that CoDel controls.
pub(super) trait CoDelQueue {
    type Packet;

    /// Removes the first packet, and returns it with the time of its arrival in the queue.
    fn pop(&mut self) -> Option<(Instant, Self::Packet)>;
    /// Returns the octets in the queue.
    fn octets(&self) -> u64;
}

/// The state, with the names of section 5.2.
#[derive(Clone, Debug)]
pub(super) struct CoDel {
    config: CoDelConfig,
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

impl CoDel {
    pub(super) fn new(config: CoDelConfig) -> Self {
        Self {
            config,
            first_above_time: None,
            drop_next: Instant::ZERO,
            count: 0,
            lastcount: 0,
            dropping: false,
        }
    }

    /// Returns the next packet to send; those before it are passed to `drop`. Section 5.5.
    pub(super) fn dequeue<Q: CoDelQueue>(
        &mut self,
        now: Instant,
        queue: &mut Q,
        mut drop: impl FnMut(Q::Packet),
    ) -> Option<Q::Packet> {
        let (mut packet, mut ok_to_drop) = self.dodequeue(now, queue);
        if self.dropping {
            if !ok_to_drop {
                // Sojourn time is below TARGET, or the queue is about empty: leave drop state.
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                if let Some(packet) = packet {
                    drop(packet);
                }
                self.count = self.count.saturating_add(1);
                (packet, ok_to_drop) = self.dodequeue(now, queue);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if let Some(packet) = packet {
                drop(packet);
            }
            (packet, _) = self.dodequeue(now, queue);
            self.dropping = true;
            // If the last drop state was recent, its drop rate is a good first guess.
            let delta = self.count.saturating_sub(self.lastcount);
            let recent = nanoseconds(self.config.interval).saturating_mul(16);
            self.count = if delta > 1 && now.nanos_since(self.drop_next) < recent { delta } else { 1 };
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        packet
    }

    /// Section 5.4.
    fn dodequeue<Q: CoDelQueue>(&mut self, now: Instant, queue: &mut Q) -> (Option<Q::Packet>, bool) {
        let Some((entered, packet)) = queue.pop() else {
            self.first_above_time = None;
            return (None, false);
        };
        let sojourn_time = now.nanos_since(entered);
        if sojourn_time < nanoseconds(self.config.target)
            || queue.octets() <= u64::from(self.config.max_packet)
        {
            // Went below: stay below for at least an interval.
            self.first_above_time = None;
            return (Some(packet), false);
        }
        let Some(first_above_time) = self.first_above_time else {
            // Just went above from below: dropping is fine if this is still so after an interval.
            self.first_above_time = Some(now + self.config.interval);
            return (Some(packet), false);
        };
        (Some(packet), now >= first_above_time)
    }

    /// `t + INTERVAL / sqrt(count)`, whole nanoseconds. Section 5.6.
    fn control_law(&self, t: Instant, count: u32) -> Instant {
        let interval = u128::from(nanoseconds(self.config.interval));
        let root = (interval * interval / u128::from(count.max(1))).isqrt();
        // At most the interval, which has 64 bits.
        t + Duration::from_nanos(root as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// A queue of infinitely many packets that arrived at one time.
    struct StandingQueue(Instant);

    impl CoDelQueue for StandingQueue {
        type Packet = ();

        fn pop(&mut self) -> Option<(Instant, ())> {
            Some((self.0, ()))
        }

        fn octets(&self) -> u64 {
            10_000
        }
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Dequeues from a queue that has stood since 0, or from one that has just filled; returns packets dropped,
    /// `count`, and milliseconds of `drop_next`.
    fn dequeue(codel: &mut CoDel, now: u64, is_fresh: bool) -> (u32, u32, u64) {
        let mut dropped = 0;
        let mut queue = StandingQueue(if is_fresh { ms(now) } else { Instant::ZERO });
        codel.dequeue(ms(now), &mut queue, |()| dropped += 1);
        (dropped, codel.count, codel.drop_next.as_nanos() / 1_000_000)
    }

    /// RFC 8289, section 5.5, by hand; the interval is 100 ms.
    #[test]
    fn drop_state_goes_on_where_it_was_if_that_is_not_long_ago() {
        let mut codel = CoDel::new(CoDelConfig::new(1_500));
        let seen: Vec<_> = [10, 110, 210, 281].map(|now| dequeue(&mut codel, now, false)).into();
        // 280.7 and 338.4 ms: 100 / sqrt(2) and 100 / sqrt(3) later.
        assert_eq!(seen, [(0, 0, 0), (1, 1, 210), (1, 2, 280), (1, 3, 338)]);
        assert_eq!(dequeue(&mut codel, 300, true), (0, 3, 338));
        assert!(!codel.dropping);
        assert_eq!(dequeue(&mut codel, 310, false), (0, 3, 338));
        // `count` was 1 when drop state was entered and is 3: it begins with 2.
        assert_eq!(dequeue(&mut codel, 410, false), (1, 2, 480));
        assert_eq!(dequeue(&mut codel, 481, false), (1, 3, 538));
        assert_eq!(dequeue(&mut codel, 539, false), (1, 4, 588));
        assert_eq!(dequeue(&mut codel, 560, true), (0, 4, 588));
        // More than 16 intervals after 588 ms it restarts, although `count` has again grown by 2.
        assert_eq!(dequeue(&mut codel, 2_100, false), (0, 4, 588));
        assert_eq!(dequeue(&mut codel, 2_200, false), (1, 1, 2_300));
    }

    #[test]
    fn a_late_dequeue_drops_all_that_was_due() {
        let mut codel = CoDel::new(CoDelConfig::new(1_500));
        dequeue(&mut codel, 10, false);
        dequeue(&mut codel, 110, false);
        // Due at 210, 280.7, 338.4, 388.4 and 433.2 ms.
        assert_eq!(dequeue(&mut codel, 400, false), (4, 5, 433));
    }
}
