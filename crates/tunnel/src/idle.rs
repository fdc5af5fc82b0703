//! Octets of an idle tunnel, and the interval of keepalives that keeps them within a budget.

use std::time::Duration;

use crate::mtu::Budget;
use crate::site_config::{Others, SiteConfig};

/// A day.
pub const DAY: Duration = Duration::from_secs(86_400);

/// Requested signs of life in a day, with their request beside the keepalive that it replaces: after 10 s, 80 s, 640 s,
/// 5,120 s, and then every 6 hours.
const ANSWERS: u64 = 9;

/// Least budget in octets a day for each peer with a keepalive: there is room for new keys, signs of life and some keepalives.
pub const LEAST_BUDGET: u64 = 2_000;

/// A budget for idle octets, and its price in reachability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleBudget {
    /// Octets a day, both directions and headers of IP and UDP included, of all peers with keepalives.
    pub octets: u64,
    /// Interval of keepalives without the budget.
    pub wanted: Duration,
    /// Interval with it, of the peer with the longest one.
    pub keepalive: Duration,
}

impl IdleBudget {
    /// Share of the time for which an end behind a NAT that needs a keepalive in each wanted interval is reached.
    pub fn reachable(&self) -> f64 {
        (self.wanted.as_secs_f64() / self.keepalive.as_secs_f64()).min(1.0)
    }

    /// Lengthens the intervals of keepalives until an idle day costs at most `octets`. `None`: there are no keepalives.
    pub(crate) fn apply(octets: u64, config: &mut SiteConfig) -> Option<Self> {
        let around = config.around();
        let outer = Budget::of(config).map_or(UDP_ON_IPV6, |budget| budget.outer);
        let Others::Peers(peers) = &mut config.others else { return None };
        let with_keepalive = peers.iter().filter(|peer| peer.keepalive.is_some()).count() as u64;
        let share = octets.checked_div(with_keepalive)?;
        let datagram = (outer + around.usual()) as u64;
        let bare = (outer + 1) as u64;
        // Request, answer, and two keepalives that confirm them.
        let keys = 2 * (outer + around.longest_message) as u64 + 2 * datagram;
        // At the start both ends may request them at once.
        let left = share.saturating_sub(2 * keys + ANSWERS * datagram)
            / if config.bare_keepalive { bare } else { datagram };
        let least = DAY.div_f64(left.max(1) as f64);
        let wanted = peers.iter().filter_map(|peer| peer.keepalive).min()?;
        peers.iter_mut().filter_map(|peer| peer.keepalive.as_mut()).for_each(|at| *at = (*at).max(least));
        let keepalive = peers.iter().filter_map(|peer| peer.keepalive).max()?;
        Some(Self { octets, wanted, keepalive })
    }
}

/// Headers of IPv6 and UDP, in octets.
const UDP_ON_IPV6: usize = 48;
