//! Profiles that are on. A channel always has profile 0x0000; whether the caller has turned it on is remembered.

use std::ffi::c_uint;

use thinair_rohc::{Channel, ProfileId, ProfileSet};

/// The greatest number of rohc-lib without its version.
const GREATEST: u16 = 0x0008;

/// Profiles of one side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profiles {
    pub(crate) set: ProfileSet,
    has_uncompressed: bool,
}

impl Profiles {
    /// All off.
    pub(crate) const NONE: Self = Self { set: ProfileSet::UNCOMPRESSED, has_uncompressed: false };

    /// The profile with a number that rohc-lib knows.
    fn of(number: c_uint) -> Option<ProfileId> {
        let is_known = |number: u16| number & 0xFF <= GREATEST;
        let number = u16::try_from(number).ok().filter(|number| is_known(*number))?;
        ProfileId::ALL.into_iter().find(|profile| profile.number() == number)
    }

    pub(crate) fn has(&self, number: c_uint) -> bool {
        Self::of(number).is_some_and(|profile| match profile {
            ProfileId::Uncompressed => self.has_uncompressed,
            _ => self.set.has(profile),
        })
    }

    /// A channel with these profiles.
    pub(crate) fn on(&self, channel: Channel) -> Channel {
        let mrru = channel.mrru() as u16;
        // MAX_CID was checked before.
        Channel::new(channel.cids(), channel.max_cid(), self.set).map_or(channel, |with| with.with_mrru(mrru))
    }

    /// True if a profile of RFC 5225 is on.
    pub(crate) fn has_second_version(&self) -> bool {
        self.set.iter().any(|profile| profile.number() >> 8 == 1)
    }

    /// Turns a profile on; false if it is not known, or its other version is on.
    pub(crate) fn enable(&mut self, number: c_uint) -> bool {
        let Some(profile) = Self::of(number) else { return false };
        let Ok(set) = self.set.with(profile) else { return false };
        self.has_uncompressed |= profile == ProfileId::Uncompressed;
        self.set = set;
        true
    }

    /// Turns a profile off; false if it is not known.
    pub(crate) fn disable(&mut self, number: c_uint) -> bool {
        let Some(profile) = Self::of(number) else { return false };
        self.has_uncompressed &= profile != ProfileId::Uncompressed;
        let others = self.set.iter().filter(|other| *other != profile);
        self.set = others.fold(ProfileSet::UNCOMPRESSED, |set, other| set.with(other).unwrap_or(set));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_versions_the_first_stays() {
        let mut profiles = Profiles::NONE;
        assert!(!profiles.has(0) && profiles.enable(0) && profiles.has(0));
        assert!(profiles.enable(2) && !profiles.enable(0x0102) && profiles.has(2) && !profiles.has(0x0102));
        assert!(!profiles.enable(5) && !profiles.enable(0x81) && !profiles.enable(0x1_0002));
        assert!(profiles.disable(2) && !profiles.has(2) && profiles.has(0));
    }
}
