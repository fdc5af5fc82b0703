//! Billed units by session, for price lists that round sessions up or have a price for each.
//!
//! A session has all packets of a link, so that units are known at its end only, and not by flow.

use thinair_link::tariff::{Session, Tariff};

/// Sessions of the links so far.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    session: Session,
    /// Octets of a billed unit.
    unit: u32,
    /// Price of the sessions that have ended, apart from their octets.
    price: f64,
    /// Time of the first and of the latest packet of the session that is open, in nanoseconds since 1970.
    open: Option<(u64, u64)>,
    /// By counter.
    units: Vec<SessionUnits>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SessionUnits {
    /// Units of the packets of the open session.
    open: u64,
    /// Units of sessions that have ended, rounded up.
    ended: u64,
}

impl Sessions {
    /// Returns the sessions of a price list, if it has sessions, with a number of counters.
    pub(crate) fn of(tariff: Option<&Tariff>, counters: usize) -> Option<Self> {
        let tariff = tariff?;
        let units = vec![SessionUnits::default(); counters];
        Some(Self { session: tariff.session?, unit: tariff.step.max(1), price: 0.0, open: None, units })
    }

    /// Begins or continues a session with a packet. **Call it before [`add`](Self::add), in the order of packets.**
    pub(crate) fn packet(&mut self, now: u64) {
        match self.open {
            Some((first, latest)) if !self.session.begins(Some(latest), now) => {
                self.open = Some((first, latest.max(now)));
            }
            _ => {
                self.end();
                self.open = Some((now, now));
            }
        }
    }

    /// Adds units of a packet to a counter.
    pub(crate) fn add(&mut self, counter: usize, units: u64) {
        if let Some(sums) = self.units.get_mut(counter) {
            sums.open += units;
        }
    }

    /// Ends the session, as at the end of a link.
    pub(crate) fn end(&mut self) {
        self.price = self.price();
        for counter in 0..self.units.len() {
            self.units[counter] = SessionUnits { open: 0, ended: self.units(counter) };
        }
        self.open = None;
    }

    /// Units of a counter so far.
    pub(crate) fn units(&self, counter: usize) -> u64 {
        let SessionUnits { open, ended } = self.units.get(counter).copied().unwrap_or_default();
        let octets = self.open.map_or(0, |_| self.session.octets(open * u64::from(self.unit)));
        ended + octets / u64::from(self.unit)
    }

    /// Price of sessions so far, apart from their octets.
    pub(crate) fn price(&self) -> f64 {
        self.price + self.open.map_or(0.0, |(first, latest)| self.session.price(latest - first))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_rounded_up_one_by_one() {
        let tariff = Tariff::read(
            r#"
            name = "sessions"
            source = "a page"
            read = 2026-11-28
            currency = "USD"
            price = { amount = 1, octets = 1_000 }
            packet = { floor = 0, step = 10 }
            directions = "both"
            allowance = 0
            session = { idle = 60, floor = 0, step = 1_000, amount = 2, time = { seconds = 20, amount = 5 } }
            "#,
        );
        let mut sessions = Sessions::of(Some(&tariff.unwrap()), 2).unwrap();
        assert_eq!((sessions.units(0), sessions.price()), (0, 0.0));
        // Two sessions: 25 s with 60 and 101 units of 10 octets, and one packet.
        for (second, units) in [(0, [30, 1]), (25, [30, 100]), (85, [1, 0])] {
            sessions.packet(second * 1_000_000_000);
            units.into_iter().enumerate().for_each(|(counter, units)| sessions.add(counter, units));
        }
        assert_eq!([0, 1].map(|counter| sessions.units(counter)), [200, 200]);
        assert_eq!(sessions.price(), 2.0 + 2.0 * 5.0 + 2.0 + 5.0);
        let before = (sessions.units(1), sessions.price());
        sessions.end();
        assert_eq!((sessions.units(1), sessions.price()), before);
    }
}
