//! Receiving state of one peer, or of one other site of a mesh.

use std::net::{IpAddr, SocketAddr};

use thinair_session::Missing;
use thinair_wire::time::Instant;

use super::Trouble;
use crate::channel::source_address;
use crate::status::PeerCounters;
use crate::unit::SiteId;

/// Receiving state of a peer or site.
pub(super) struct Source {
    pub(super) name: String,
    /// Its number in a mesh.
    pub(super) id: Option<SiteId>,
    pub(super) counters: PeerCounters,
    /// Source address of its newest datagram.
    pub(super) address: Option<SocketAddr>,
    /// True if its last datagram was late. Partially received units may be lost then, although no counter is
    /// missing.
    pub(super) was_late: bool,
    /// Time when it was last heard, and when it agreed on keys.
    pub(super) heard_at: Option<Instant>,
    pub(super) session_at: Option<Instant>,
    /// Units of encrypted datagrams that are missing, and those that have arrived.
    pub(super) lost: u64,
    pub(super) arrived: u64,
    /// Trouble, and the time of its beginning.
    pub(super) trouble: Option<(Trouble, Instant)>,
    /// Number of packets with a source that is not allowed, and the source of the last one.
    pub(super) not_allowed: Option<(u64, IpAddr)>,
}

impl Source {
    /// Returns the state of a peer or site that was not heard yet.
    pub(super) fn new(name: &str, id: Option<SiteId>) -> Self {
        Self {
            name: name.to_owned(),
            id,
            counters: PeerCounters::default(),
            address: None,
            was_late: false,
            heard_at: None,
            session_at: None,
            lost: 0,
            arrived: 0,
            trouble: None,
            not_allowed: None,
        }
    }

    /// Counts a packet whose source is not allowed.
    pub(super) fn count_not_allowed(&mut self, packet: &[u8]) {
        let Some(address) = source_address(packet) else { return };
        let count = self.not_allowed.map_or(0, |(count, _)| count);
        self.not_allowed = Some((count + 1, address));
    }

    /// Counts a datagram, of a unit at least, and those missing before it. A late one is no longer missing.
    pub(super) fn count_datagram(&mut self, missing: Missing) {
        self.arrived += 1;
        match missing {
            Missing::Counted(units) => self.lost += u64::from(units),
            Missing::Uncounted => self.lost = self.lost.saturating_sub(1),
            Missing::Unknown => {}
        }
    }

    /// Counts the units of that datagram.
    pub(super) fn count_units(&mut self, missing: Missing, units: u32) {
        let more = u64::from(units).saturating_sub(1);
        self.arrived += more;
        if missing == Missing::Uncounted {
            self.lost = self.lost.saturating_sub(more);
        }
    }

    /// Units of a channel that may be missing before a datagram. `tears`: the packaging may split units.
    pub(super) fn missing(&mut self, counted: Missing, tears: bool) -> Missing {
        match counted {
            Missing::Uncounted => {
                self.was_late = true;
                counted
            }
            _ if tears && std::mem::take(&mut self.was_late) => Missing::Unknown,
            // The first part of a unit that ends in this datagram is lost, too.
            Missing::Counted(units) if tears && units > 0 => Missing::Counted(units.saturating_add(1)),
            Missing::Counted(_) | Missing::Unknown => counted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_unit_may_be_missing_beside_those_that_are_counted() {
        let mut source = Source::new("", None);
        let mut settle = |missing, tears| source.missing(missing, tears);
        assert_eq!(settle(Missing::Counted(3), false), Missing::Counted(3));
        assert_eq!(settle(Missing::Counted(3), true), Missing::Counted(4));
        assert_eq!(settle(Missing::Counted(0), true), Missing::Counted(0));
        // A late datagram is out of order, so that a unit that continues in the next one is lost.
        assert_eq!(settle(Missing::Uncounted, true), Missing::Uncounted);
        assert_eq!(settle(Missing::Counted(0), true), Missing::Unknown);
        assert_eq!(settle(Missing::Counted(0), true), Missing::Counted(0));
    }
}
