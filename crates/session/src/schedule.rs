//! Times of many numbered parties, such as peers, of which the first is found without looking at the others.

use std::collections::BTreeSet;

use thinair_wire::time::Instant;

/// A time for each number, at most. It may be earlier than needed: who finds nothing due [sets](Self::set) the next one.
#[derive(Debug, Default)]
pub struct Schedule {
    times: Vec<Option<Instant>>,
    order: BTreeSet<(Instant, u32)>,
}

impl Schedule {
    /// Sets the time of a number.
    pub fn set(&mut self, number: usize, at: Option<Instant>) {
        if self.times.len() <= number {
            self.times.resize(number + 1, None);
        }
        let Some(time) = self.times.get_mut(number) else { return };
        if *time == at {
            return;
        }
        let before = std::mem::replace(time, at);
        if let Some(before) = before {
            self.order.remove(&(before, number as u32));
        }
        if let Some(at) = at {
            self.order.insert((at, number as u32));
        }
    }

    /// Sets the time of a number unless it has an earlier one.
    pub fn by(&mut self, number: usize, at: Option<Instant>) {
        let Some(at) = at else { return };
        if self.times.get(number).copied().flatten().is_none_or(|known| at < known) {
            self.set(number, Some(at));
        }
    }

    /// The first time, with its number; of equal times the lowest number.
    pub fn first(&self) -> Option<(Instant, usize)> {
        self.order.first().map(|(at, number)| (*at, *number as usize))
    }

    /// The number with the first time, if that has come.
    pub fn due(&self, now: Instant) -> Option<usize> {
        self.first().filter(|(at, _)| *at <= now).map(|(_, number)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_first_and_later_ones_move_nothing() {
        let at = Instant::from_millis;
        let mut schedule = Schedule::default();
        schedule.by(7, Some(at(30)));
        schedule.by(2, Some(at(20)));
        schedule.by(7, Some(at(40)));
        schedule.by(2, None);
        assert_eq!(schedule.first(), Some((at(20), 2)));
        assert_eq!((schedule.due(at(19)), schedule.due(at(20))), (None, Some(2)));
        schedule.set(2, Some(at(50)));
        assert_eq!(schedule.first(), Some((at(30), 7)));
        schedule.set(7, None);
        schedule.set(2, None);
        assert_eq!(schedule.first(), None);
    }
}
