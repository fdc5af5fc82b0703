//! Events in the order of their time; those of equal time in the order in which they were scheduled.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use thinair_wire::time::Instant;

use crate::clock::VirtualClock;

/// Scheduled events, and the clock that they advance.
///
/// **Take an event with [`next`](Self::next), which advances the clock to its time; then schedule its consequences.**
/// The order is (time, sequence number of the schedule), and depends on nothing else, in particular not on the events
/// themselves.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    clock: VirtualClock,
    heap: BinaryHeap<Reverse<Scheduled<E>>>,
    scheduled: u64,
}

impl<E> EventQueue<E> {
    /// Creates an empty queue, with the clock at the origin.
    pub const fn new() -> Self {
        Self { clock: VirtualClock::new(), heap: BinaryHeap::new(), scheduled: 0 }
    }

    /// Time of the latest event taken.
    pub const fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Schedules an event at `time`. An event for the past is scheduled for now, after all that are already due.
    pub fn schedule(&mut self, time: Instant, event: E) {
        let time = time.max(self.now());
        self.heap.push(Reverse(Scheduled { time, seq: self.scheduled, event }));
        self.scheduled += 1;
    }

    /// Takes the next event, with its time, which is now.
    #[allow(clippy::should_implement_trait, reason = "events are scheduled while they are taken")]
    pub fn next(&mut self) -> Option<(Instant, E)> {
        let Reverse(Scheduled { time, event, .. }) = self.heap.pop()?;
        self.clock.advance_to(time);
        Some((time, event))
    }

    /// Takes the next event if it is before `end`; otherwise time advances to `end`.
    pub fn next_before(&mut self, end: Instant) -> Option<(Instant, E)> {
        if self.next_at().is_some_and(|time| time < end) {
            return self.next();
        }
        self.clock.advance_to(end);
        None
    }

    /// Time of the next event.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(scheduled)| scheduled.time)
    }

    /// Number of scheduled events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if no event is scheduled.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Clone, Debug)]
struct Scheduled<E> {
    time: Instant,
    seq: u64,
    event: E,
}

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.seq) == (other.time, other.seq)
    }
}

impl<E> Eq for Scheduled<E> {}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Scheduled<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.seq).cmp(&(other.time, other.seq))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drained<E>(mut queue: EventQueue<E>) -> Vec<(u64, E)> {
        std::iter::from_fn(|| queue.next()).map(|(time, event)| (time.as_nanos(), event)).collect()
    }

    #[test]
    fn events_of_one_time_keep_the_order_in_which_they_were_scheduled() {
        let mut queue = EventQueue::new();
        for (nanos, event) in [(7, 'c'), (3, 'a'), (7, 'd'), (3, 'b'), (7, 'e')] {
            queue.schedule(Instant::from_nanos(nanos), event);
        }
        assert_eq!(drained(queue), [(3, 'a'), (3, 'b'), (7, 'c'), (7, 'd'), (7, 'e')]);
    }

    #[test]
    fn an_event_for_the_past_happens_now_behind_what_is_due() {
        let mut queue = EventQueue::new();
        queue.schedule(Instant::from_nanos(5), 'a');
        queue.schedule(Instant::from_nanos(5), 'b');
        assert_eq!(queue.next(), Some((Instant::from_nanos(5), 'a')));
        queue.schedule(Instant::from_nanos(1), 'c');
        assert_eq!(drained(queue), [(5, 'b'), (5, 'c')]);
    }

    #[test]
    fn events_at_the_end_belong_to_what_comes_after_it() {
        let mut queue = EventQueue::new();
        queue.schedule(Instant::from_nanos(5), 'a');
        queue.schedule(Instant::from_nanos(9), 'b');
        assert_eq!(queue.next_before(Instant::from_nanos(9)), Some((Instant::from_nanos(5), 'a')));
        assert_eq!(queue.next_before(Instant::from_nanos(9)), None);
        assert_eq!((queue.now(), queue.len(), queue.is_empty()), (Instant::from_nanos(9), 1, false));
        assert_eq!(queue.next_before(Instant::from_nanos(12)), Some((Instant::from_nanos(9), 'b')));
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_a_stable_sort(times in prop::collection::vec(0_u64..20, 0..200)) {
            let mut queue = EventQueue::new();
            for (event, nanos) in times.iter().enumerate() {
                queue.schedule(Instant::from_nanos(*nanos), event);
            }
            let mut expected: Vec<_> = times.into_iter().zip(0..).collect();
            expected.sort_by_key(|(nanos, _)| *nanos);
            prop_assert_eq!(drained(queue), expected);
        }
    }
}
