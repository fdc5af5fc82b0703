//! Parameters of a handle, checked.

use core::time::Duration;

use thinair_rohc::{
    Channel, CidSpace, CompressorConfig, DecompressorConfig, Integrity, Mode, ProfileId, ProfileSet, Refresh,
    RtpDetection,
};

use crate::abi::{COMPRESSOR, Config, DECOMPRESSOR, Error, PROFILES};

/// Parameters that a handle can be made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    pub(crate) compressor: CompressorConfig,
    pub(crate) decompressor: DecompressorConfig,
    pub(crate) has_compressor: bool,
    pub(crate) has_decompressor: bool,
    pub(crate) feedback_in_front: bool,
    /// Flows with extension headers, each of which takes a block of memory.
    pub(crate) extension_flows: usize,
}

impl Config {
    /// Defaults for the profiles of RRC that are in this build, of which the variants of RFC 3095 and RFC 6846 are taken.
    pub(crate) fn new() -> Self {
        let is_default = |number: u16| number <= 0x0006 && profile(number).is_some_and(ProfileId::is_built);
        let bits = PROFILES.iter().enumerate().filter(|(_, number)| is_default(**number));
        Self {
            size: size_of::<Self>() as u32,
            profiles: bits.map(|(bit, _)| 1 << bit).sum(),
            max_cid: 15,
            mrru: 0,
            large_cids: 0,
            sides: COMPRESSOR | DECOMPRESSOR,
            mode: Mode::Unidirectional.bits(),
            repetitions: 4,
            window: 4,
            counted: 0,
            feedback_in_front: 0,
            integrity: 0,
            rtp_guess: 1,
            rtp_port_count: 0,
            rtp_ports: [0; 8],
            extension_flows: 4,
            refresh_packets: 0,
            refresh_ms: 0,
            seed: 0,
        }
    }

    /// Checks every parameter.
    pub(crate) fn check(&self) -> Result<Checked, Error> {
        if self.size as usize != size_of::<Self>() || !matches!(self.sides, 1..=3) {
            return Err(Error::CONFIG);
        }
        let is_small = |flag: u8| if flag <= 1 { Ok(flag == 1) } else { Err(Error::CONFIG) };
        let cids = if is_small(self.large_cids)? { CidSpace::Large } else { CidSpace::Small };
        let integrity = match self.integrity {
            0 => Integrity::None,
            1 => Integrity::Crc32,
            2 => Integrity::Mic,
            _ => return Err(Error::CONFIG),
        };
        let channel = Channel::new(cids, self.max_cid, self.profile_set()?).map_err(|_| Error::MAX_CID)?;
        let channel = channel.with_mrru(self.mrru).with_integrity_below(integrity);
        let mode = Mode::from_bits(self.mode).ok_or(Error::CONFIG)?;
        let ports = self.rtp_ports.get(..usize::from(self.rtp_port_count)).ok_or(Error::CONFIG)?;
        let rtp = RtpDetection::of_ports(ports).ok_or(Error::CONFIG)?;
        let compressor = CompressorConfig {
            repetitions: self.repetitions,
            window: self.window,
            counted: is_small(self.counted)?,
            rtp: if is_small(self.rtp_guess)? { rtp.or_guess() } else { rtp },
            seed: self.seed,
            ..CompressorConfig::new(channel)
        };
        if self.repetitions == 0 || !matches!(self.window, 1..=16) {
            return Err(Error::CONFIG);
        }
        Ok(Checked {
            compressor: CompressorConfig { refresh: self.refresh(compressor.refresh), ..compressor },
            decompressor: DecompressorConfig { mode, ..DecompressorConfig::new(channel) },
            has_compressor: self.sides & COMPRESSOR != 0,
            has_decompressor: self.sides & DECOMPRESSOR != 0,
            feedback_in_front: is_small(self.feedback_in_front)?,
            extension_flows: self.extension_flows.into(),
        })
    }

    fn profile_set(&self) -> Result<ProfileSet, Error> {
        if self.profiles >> PROFILES.len() != 0 {
            return Err(Error::PROFILES);
        }
        let mut set = ProfileSet::UNCOMPRESSED;
        for (bit, number) in PROFILES.into_iter().enumerate() {
            if self.profiles >> bit & 1 == 1 {
                let profile = profile(number).ok_or(Error::PROFILES)?;
                set = set.with(profile).map_err(|_| Error::PROFILES)?;
            }
        }
        Ok(set)
    }

    /// The refresh policy of U-mode: 0 for both numbers is the default.
    fn refresh(&self, default: Refresh) -> Refresh {
        if (self.refresh_packets, self.refresh_ms) == (0, 0) {
            return default;
        }
        Refresh::Periodic {
            packets: (self.refresh_packets > 0).then_some(self.refresh_packets),
            time: (self.refresh_ms > 0).then(|| Duration::from_millis(self.refresh_ms.into())),
            backoff: true,
        }
    }
}

/// The profile with that number.
fn profile(number: u16) -> Option<ProfileId> {
    ProfileId::ALL.into_iter().find(|profile| profile.number() == number)
}
