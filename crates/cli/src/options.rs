//! Options that say what a ROHC channel is, the same in every command.

use clap::{Args, ValueEnum};
use thinair_rohc::{
    Channel, CidSpace, CompressorConfig, DecompressorConfig, ProfileId, ProfileSet, Refresh, Threshold,
};

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
    /// When contexts are refreshed: `packets=N,time=SECONDS[,backoff]`, `ir=N,so=N[,direct]`, or `off`
    /// [default: packets=1024,time=16,backoff in U-mode, off in O-mode]
    #[arg(long, value_name = "POLICY", help_heading = "Channel")]
    pub(crate) refresh: Option<Refresh>,
    /// Packets that say a change before it is taken for known (optimistic approach)
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..), help_heading = "Channel")]
    pub(crate) repetitions: u8,
    /// Values of a W-LSB window; so many packets in a row, less one, may be lost
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=16), help_heading = "Channel")]
    pub(crate) window: u8,
    /// k_1/n_1: failures among the last packets that give up the dynamic context (RFC 3095, 5.3.2.2.3)
    #[arg(long, value_name = "K/N", default_value = "3/6", value_parser = threshold, help_heading = "Channel")]
    pub(crate) nack: Threshold,
    /// k_2/n_2: failures among the last updates that give up the static context
    #[arg(long, value_name = "K/N", default_value = "2/4", value_parser = threshold, help_heading = "Channel")]
    pub(crate) static_nack: Threshold,
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

    /// The compressor of the channel. A refresh policy that is asked for holds in every mode.
    pub(crate) fn compressor(&self, channel: Channel) -> CompressorConfig {
        let mut config = CompressorConfig::new(channel);
        if let Some(refresh) = self.refresh {
            config.refresh = refresh;
            config.refresh_two_way = refresh;
        }
        config.repetitions = self.repetitions;
        config.window = self.window;
        config.sid_everywhere = self.sid_everywhere;
        config
    }

    /// The decompressor of the channel, without its mode.
    pub(crate) fn decompressor(&self, channel: Channel) -> DecompressorConfig {
        DecompressorConfig {
            nack: self.nack,
            static_nack: self.static_nack,
            ..DecompressorConfig::new(channel)
        }
    }
}

fn threshold(text: &str) -> Result<Threshold, String> {
    let (k, n) = text.split_once('/').ok_or("expected K/N, as in 3/6")?;
    match (k.parse(), n.parse()) {
        (Ok(k), Ok(n)) if 1 <= k && k <= n && n <= 16 => Ok(Threshold { k, n }),
        _ => Err("K must be 1 to N, and N at most 16".to_owned()),
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
