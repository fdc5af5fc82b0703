//! The ROHC channel and its parameters. RFC 5795, section 5.1.

use crate::cid::{Cid, CidSpace};
use crate::id::ProfileId;

/// Parameters of a channel, on which both ends have agreed before the first packet. RFC 5795, section 5.1.2.
///
/// A channel has one direction. FEEDBACK_FOR, the channel of the other direction to which feedback on this one refers,
/// is the pairing in an `Endpoint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    cids: CidSpace,
    max_cid: u16,
    profiles: ProfileSet,
    mrru: u16,
    integrity_below: Integrity,
}

/// Integrity check of the carrier below, which keeps damage on the link from the decompressor.
///
/// Profiles 0x0181 and 0x0182 leave out a correct UDP checksum, to be computed by the receiver, only where the carrier checks
/// every frame at least as well (RFC 6282, section 4.3.2; RFC 8724, section 10.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Integrity {
    /// None: UDP checksums are carried.
    #[default]
    None,
    /// A CRC of at least 32 bits over every frame, checked at the end of the link.
    Crc32,
    /// A message integrity code.
    Mic,
}

/// Error in the parameters of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelError {
    /// MAX_CID exceeds the CID space: 15 for small CIDs, 16,383 for large ones.
    MaxCid {
        /// The requested MAX_CID.
        max_cid: u16,
        /// The highest CID of the space.
        highest: u16,
    },
    /// Two variants of one profile, which packets cannot distinguish (RFC 5795, section 5.1.2).
    Variants(ProfileId, ProfileId),
    /// A profile that this build lacks: its Cargo feature is off.
    NotBuilt(ProfileId),
}

impl core::fmt::Display for ChannelError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::MaxCid { max_cid, highest } => {
                write!(f, "MAX_CID {max_cid} exceeds {highest}, the highest CID of the CID space")
            }
            Self::Variants(a, b) => write!(
                f,
                "profiles {} (0x{:04X}) and {} (0x{:04X}) are variants of one profile: choose one of them for the channel",
                a.name(),
                a.number(),
                b.name(),
                b.number()
            ),
            Self::NotBuilt(profile) => {
                write!(f, "profile {} is not in this build: enable the Cargo feature", profile.name())?;
                profile.features().iter().try_for_each(|feature| write!(f, " `{feature}`"))
            }
        }
    }
}

impl core::error::Error for ChannelError {}

impl Channel {
    /// Creates a channel with LARGE_CIDS, MAX_CID, PROFILES, and without segmentation (MRRU 0).
    pub fn new(cids: CidSpace, max_cid: u16, profiles: ProfileSet) -> Result<Self, ChannelError> {
        if max_cid > cids.highest() {
            return Err(ChannelError::MaxCid { max_cid, highest: cids.highest() });
        }
        Ok(Self { cids, max_cid, profiles, mrru: 0, integrity_below: Integrity::None })
    }

    /// Sets MRRU, the largest reconstructed unit in octets, including its CRC. Default: 0, no segments.
    pub fn with_mrru(self, mrru: u16) -> Self {
        Self { mrru, ..self }
    }

    /// Sets the integrity check of the carrier. Default: none.
    pub fn with_integrity_below(self, integrity_below: Integrity) -> Self {
        Self { integrity_below, ..self }
    }

    /// Integrity check of the carrier.
    pub fn integrity_below(&self) -> Integrity {
        self.integrity_below
    }

    /// LARGE_CIDS: the CID space.
    pub fn cids(&self) -> CidSpace {
        self.cids
    }

    /// MAX_CID: the highest CID that the channel uses.
    pub fn max_cid(&self) -> u16 {
        self.max_cid
    }

    /// Number of contexts: MAX_CID + 1.
    pub fn contexts(&self) -> usize {
        usize::from(self.max_cid) + 1
    }

    /// PROFILES.
    pub fn profiles(&self) -> ProfileSet {
        self.profiles
    }

    /// The channel with other profiles.
    pub(crate) fn with_profiles(self, profiles: ProfileSet) -> Self {
        Self { profiles, ..self }
    }

    /// MRRU in octets.
    pub fn mrru(&self) -> usize {
        usize::from(self.mrru)
    }

    /// True if the channel may use `cid`.
    pub fn allows(&self, cid: Cid) -> bool {
        cid.value() <= self.max_cid
    }
}

/// A set of profiles, no two of which have the same low octet. It always has the uncompressed profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileSet(u32);

impl Default for ProfileSet {
    /// Profiles for all traffic that are in this build: those of [`v1`](Self::v1), TCP (RFC 6846) and CoAP.
    fn default() -> Self {
        Self::v1().and(ProfileId::Tcp).and(ProfileId::Coap)
    }
}

impl ProfileSet {
    /// The uncompressed profile alone.
    pub const UNCOMPRESSED: Self = Self(1 << ProfileId::Uncompressed as u32);

    /// Creates the set of `profiles` and the uncompressed one.
    pub fn of(profiles: &[ProfileId]) -> Result<Self, ChannelError> {
        let mut set = Self::UNCOMPRESSED;
        for &profile in profiles {
            if !profile.is_built() {
                return Err(ChannelError::NotBuilt(profile));
            }
            let rival = set.iter().find(|p| *p != profile && p.low_octet() == profile.low_octet());
            if let Some(rival) = rival {
                return Err(ChannelError::Variants(rival, profile));
            }
            set.0 |= 1 << profile as u32;
        }
        Ok(set)
    }

    /// Every profile of RFC 3095, RFC 3843 and RFC 4019 that is in this build.
    pub fn v1() -> Self {
        Self::UNCOMPRESSED
            .and(ProfileId::Rtp)
            .and(ProfileId::Udp)
            .and(ProfileId::Esp)
            .and(ProfileId::Ip)
            .and(ProfileId::RtpUdpLite)
            .and(ProfileId::UdpLite)
    }

    /// All profiles of RFC 5225 that this build has.
    pub fn v2() -> Self {
        Self::UNCOMPRESSED
            .and(ProfileId::RtpV2)
            .and(ProfileId::UdpV2)
            .and(ProfileId::EspV2)
            .and(ProfileId::IpV2)
            .and(ProfileId::RtpUdpLiteV2)
            .and(ProfileId::UdpLiteV2)
    }

    /// Adds `profile`. An error if the set has another variant of it, or this build lacks it.
    pub fn with(self, profile: ProfileId) -> Result<Self, ChannelError> {
        match self.by_low_octet(profile.low_octet()) {
            _ if !profile.is_built() => Err(ChannelError::NotBuilt(profile)),
            Some(rival) if rival != profile => Err(ChannelError::Variants(rival, profile)),
            _ => Ok(self.and(profile)),
        }
    }

    /// Adds `profile` if it is in this build.
    const fn and(self, profile: ProfileId) -> Self {
        Self(self.0 | (profile.is_built() as u32) << profile as u32)
    }

    /// True if the set has `profile`.
    #[inline]
    pub fn has(&self, profile: ProfileId) -> bool {
        profile.is_built() && self.0 >> profile as u32 & 1 == 1
    }

    /// Returns the profile with that low octet, which names it in IR packets (RFC 5795, section 5.2.2.1).
    #[inline]
    pub fn by_low_octet(&self, low: u8) -> Option<ProfileId> {
        self.iter().find(|profile| profile.low_octet() == low)
    }

    /// Iterates over the profiles, by number.
    pub fn iter(&self) -> impl Iterator<Item = ProfileId> + use<> {
        let set = *self;
        ProfileId::ALL.into_iter().filter(move |&profile| set.has(profile))
    }
}
