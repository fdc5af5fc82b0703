//! Options that say what a ROHC channel is, the same in every command.

use clap::{Args, ValueEnum};
use thinair_rohc::{Channel, CidSpace, ProfileId, ProfileSet, Refresh};

/// LARGE_CIDS by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CidOption {
    /// 0 to 15, of which 0 costs nothing
    Small,
    /// 0 to 16,383, one or two octets each
    Large,
}

/// Parameters of a ROHC channel (RFC 5795, section 5.1.2) and of its compressor.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChannelOptions {
    /// CID space of the channel
    #[arg(long, value_enum, default_value_t = CidOption::Small, help_heading = "Channel")]
    pub(crate) cid: CidOption,
    /// Highest CID that is used [default: 15 for small, 16383 for large CIDs]
    #[arg(long, value_name = "N", help_heading = "Channel")]
    pub(crate) max_cid: Option<u16>,
    /// Profiles of the channel besides `uncompressed`: names separated by commas, or the set `v1`
    #[arg(long, value_name = "LIST", default_value = "v1", value_parser = profiles, help_heading = "Channel")]
    pub(crate) profiles: ProfileSet,
    /// When contexts are refreshed: `packets=N,time=SECONDS`, `ir=N,so=N[,direct]`, or `off`
    /// [default: packets=1024,time=16 in U-mode, off in O-mode]
    #[arg(long, value_name = "POLICY", help_heading = "Channel")]
    pub(crate) refresh: Option<Refresh>,
    /// Send constant IP-IDs by SID in profiles that do not define it (not standard)
    #[arg(long, help_heading = "Channel")]
    pub(crate) sid_everywhere: bool,
}

impl ChannelOptions {
    /// The channel, or what contradicts itself: a usage error.
    pub(crate) fn channel(&self) -> Result<Channel, String> {
        let cids = match self.cid {
            CidOption::Small => CidSpace::Small,
            CidOption::Large => CidSpace::Large,
        };
        let max_cid = self.max_cid.unwrap_or(cids.highest());
        Channel::new(cids, max_cid, self.profiles).map_err(|error| error.to_string())
    }
}

fn profiles(text: &str) -> Result<ProfileSet, String> {
    if text == "v1" {
        return Ok(ProfileSet::v1());
    }
    let known = || ProfileId::ALL.map(ProfileId::name).join(", ");
    let named: Result<Vec<_>, _> = text
        .split(',')
        .map(|name| {
            ProfileId::by_name(name)
                .ok_or_else(|| format!("no profile `{name}`; there are {}, and the set v1", known()))
        })
        .collect();
    ProfileSet::of(&named?).map_err(|error| error.to_string())
}
