//! Assignment of the addresses of a capture to the two sides of a link.

use std::collections::HashMap;
use std::net::IpAddr;

/// A side of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureSide {
    /// Side of the first address.
    A,
    /// The other side.
    B,
}

impl CaptureSide {
    /// The opposite side.
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Name in reports: `a` or `b`.
    pub fn name(self) -> &'static str {
        ["a", "b"][self.index()]
    }

    /// Index: 0 for side A, 1 for side B.
    pub fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }
}

/// Sides of the addresses seen so far.
#[derive(Debug, Default)]
pub struct Sides {
    of: HashMap<IpAddr, CaptureSide>,
}

impl Sides {
    /// Returns the side of the sender of a flow's first packet. A capture does not contain it; addresses that
    /// send to each other are assumed to be on different sides.
    pub fn of_flow(&mut self, source: IpAddr, destination: IpAddr) -> CaptureSide {
        let known = self.of.get(&source).copied();
        let side =
            known.or_else(|| self.of.get(&destination).map(|side| side.other())).unwrap_or(CaptureSide::A);
        for (address, side) in [(source, side), (destination, side.other())] {
            if is_one_host(address) {
                self.of.entry(address).or_insert(side);
            }
        }
        side
    }
}

/// False for group and unspecified addresses, which belong to no side.
fn is_one_host(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !address.is_multicast() && !address.is_unspecified() && !is_broadcast
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_talks_to_each_other_is_on_different_sides() {
        let [client, other, server, group] =
            [[192, 0, 2, 1], [192, 0, 2, 9], [192, 0, 2, 2], [224, 0, 0, 1]].map(IpAddr::from);
        let mut sides = Sides::default();
        assert_eq!(sides.of_flow(client, group), CaptureSide::A);
        assert_eq!(sides.of_flow(client, server), CaptureSide::A);
        assert_eq!(sides.of_flow(server, client), CaptureSide::B);
        assert_eq!(sides.of_flow(server, group), CaptureSide::B);
        assert_eq!(sides.of_flow(other, server), CaptureSide::A);
    }
}
