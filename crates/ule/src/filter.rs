//! NPA addresses that a Receiver accepts. RFC 4326, section 7.2.

use core::fmt;

use crate::npa::Npa;

/// Largest number of joined groups.
pub const GROUPS: usize = 32;

/// Filter of addresses. SNDUs without an address, and those to [`Npa::BROADCAST`], are always accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpaFilter {
    own: Option<Npa>,
    groups: [Option<Npa>; GROUPS],
    all: All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum All {
    No,
    Groups,
    Addresses,
}

/// Reason why a group cannot be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// The address is not a multicast address.
    NotAGroup(Npa),
    /// [`GROUPS`] groups are joined.
    Full,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAGroup(npa) => write!(f, "{npa} is not a multicast address"),
            Self::Full => write!(f, "{GROUPS} groups, the maximum, are joined already"),
        }
    }
}

impl core::error::Error for JoinError {}

impl NpaFilter {
    /// Creates a filter that accepts every address.
    pub const fn everything() -> Self {
        Self { own: None, groups: [None; GROUPS], all: All::Addresses }
    }

    /// Creates a filter that accepts the address of this Receiver, if it has one, and the broadcast address.
    pub const fn of(own: Option<Npa>) -> Self {
        Self { own, groups: [None; GROUPS], all: All::No }
    }

    /// Accepts every multicast address from now on: for a router, or a host that filters by IP address.
    pub const fn join_all(&mut self) {
        if matches!(self.all, All::No) {
            self.all = All::Groups;
        }
    }

    /// Accepts a multicast address from now on.
    pub fn join(&mut self, group: Npa) -> Result<(), JoinError> {
        if !group.is_multicast() {
            return Err(JoinError::NotAGroup(group));
        }
        if self.groups.contains(&Some(group)) {
            return Ok(());
        }
        *self.groups.iter_mut().find(|place| place.is_none()).ok_or(JoinError::Full)? = Some(group);
        Ok(())
    }

    /// No longer accepts a multicast address.
    pub fn leave(&mut self, group: Npa) {
        for place in self.groups.iter_mut().filter(|place| **place == Some(group)) {
            *place = None;
        }
    }

    /// True if an SNDU to this address is for this Receiver.
    #[inline]
    pub fn accepts(&self, npa: Npa) -> bool {
        match self.all {
            All::Addresses => true,
            _ if self.own == Some(npa) => true,
            _ if !npa.is_multicast() => false,
            All::Groups => true,
            All::No => npa == Npa::BROADCAST || self.groups.contains(&Some(npa)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn group(i: u8) -> Npa {
        Npa::of_ipv4_group([224, 1, 1, i]).unwrap()
    }

    #[test]
    fn own_broadcast_and_joined_addresses_are_accepted() {
        let own = Npa::new([0, 1, 2, 3, 4, 5]).unwrap();
        let other = Npa::new([0, 1, 2, 3, 4, 6]).unwrap();
        let mut filter = NpaFilter::of(Some(own));
        filter.join(group(1)).unwrap();
        let accepted = [own, other, Npa::BROADCAST, group(1), group(2)];
        assert_eq!(accepted.map(|npa| filter.accepts(npa)), [true, false, true, true, false]);
        filter.leave(group(1));
        assert!(!filter.accepts(group(1)));
        filter.join_all();
        assert_eq!(accepted.map(|npa| filter.accepts(npa)), [true, false, true, true, true]);
        assert_eq!(accepted.map(|npa| NpaFilter::everything().accepts(npa)), [true; 5]);
        assert_eq!(accepted.map(|npa| NpaFilter::of(None).accepts(npa)), [false, false, true, false, false]);
    }

    #[test]
    fn groups_are_bounded_and_joined_once() {
        let mut filter = NpaFilter::of(None);
        for i in 0..GROUPS as u8 {
            assert_eq!((filter.join(group(i)), filter.join(group(i))), (Ok(()), Ok(())));
        }
        assert_eq!(filter.join(group(99)), Err(JoinError::Full));
        let unicast = Npa::new([2, 0, 0, 0, 0, 1]).unwrap();
        assert_eq!(filter.join(unicast), Err(JoinError::NotAGroup(unicast)));
    }
}
