//! Options that say what a ROHC channel is, the same in every command.

use std::path::Path;
#[cfg(feature = "templates")]
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use thinair_rohc::profile::coap::Base;
#[cfg(feature = "templates")]
use thinair_rohc::profile::coap::ChecksumMode;
use thinair_rohc::{
    Channel, CidSpace, CompressorConfig, DecompressorConfig, Integrity, Mode, Ports, ProfileId, ProfileSet,
    Refresh, RtpDetection, Threshold,
};
use thinair_rohc::{CoapConfig, FormatPolicy};

#[cfg(feature = "templates")]
use crate::template;

/// Bases that a packet of profile `coap` can name.
pub(crate) const MOST_BASES: usize = 256;

/// Blocks for extension headers, of each compressor and decompressor.
pub(crate) const BLOCKS: usize = 256;

/// Repetitions of a change, and values of a W-LSB window, unless others are given.
const DEFAULT_REPETITIONS: u8 = 4;
const DEFAULT_WINDOW: u8 = 4;

/// k_2/n_2 unless another one is given.
const DEFAULT_STATIC_NACK: &str = "2/4";

/// A mode by its letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeOption {
    /// No feedback; contexts are refreshed periodically
    U,
    /// Feedback asks for refreshes
    O,
    /// Updates wait for acknowledgments
    R,
}

impl ModeOption {
    pub(crate) fn mode(self) -> Mode {
        match self {
            Self::U => Mode::Unidirectional,
            Self::O => Mode::Optimistic,
            Self::R => Mode::Reliable,
        }
    }
}

/// LARGE_CIDS by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CidOption {
    /// 0 to 15; CID 0 takes no octet, the others one
    Small,
    /// 0 to 16,383, of one or two octets
    Large,
}

/// How RTP is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RtpOption {
    /// On the ports of --rtp-ports, and elsewhere by the first packets of a flow. Packets that are no RTP come back bit for
    /// bit, too
    Guess,
    /// Only on the ports of --rtp-ports
    Ports,
    /// Never: RTP is compressed as UDP or UDP-Lite
    Never,
}

/// What becomes of UDP checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChecksumOption {
    /// Send them
    Carry,
    /// Compute them anew at the other end, if they were right. Only for link layers with a CRC of 32 bits or more, since
    /// nothing else then detects damage
    Elide,
}

/// FormatPolicy by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoapFormatOption {
    /// `pt_0c` where the UDP checksum is sent; else `pt_1`, and `pt_0` after feedback has shown that little is lost
    Auto,
    /// 1 octet, for links without loss
    Pt0,
    /// 2 octets, with CRC-8
    Pt1,
    /// `pt_0c` where the UDP checksum is sent, else `pt_1`
    Pt0c,
}

/// Parameters of a ROHC channel (RFC 5795, section 5.1.2) and of its compressor.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChannelOptions {
    /// CIDs of the channel
    #[arg(long, value_enum, default_value_t = CidOption::Small, help_heading = "Channel")]
    pub(crate) cid: CidOption,
    /// Highest CID (MAX_CID) [default: 15 for small, 16383 for large CIDs]
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Channel")]
    pub(crate) max_cid: Option<u16>,
    /// Profiles, separated by commas, as in v1,coap [default: v1,coap,tcp]
    ///
    /// Names: rtp, udp, esp, ip, rtp-udp-lite, udp-lite, tcp and coap; v1 stands for the first six.
    /// `uncompressed` is always there. Without this option `analyze` compares several sets.
    #[arg(long, value_name = "LIST", value_parser = profiles, help_heading = "Channel")]
    pub(crate) profiles: Option<ProfileSet>,
    /// Refreshes of contexts: `budget=PERCENT%[,packets=N][,time=SECONDS]`, `packets=N,time=SECONDS[,backoff]`,
    /// `ir=N,so=N[,direct]`, or `off` [default: budget=5%,packets=128,time=16 in U-mode, off in O-mode and R-mode]
    ///
    /// A budget sends an IR packet SECONDS after the one before, where that share of the octets sent pays for it or N packets
    /// have passed; docs/refresh.md has figures.
    #[arg(long, value_name = "POLICY", hide_short_help = true, help_heading = "Channel")]
    pub(crate) refresh: Option<Refresh>,
    /// Packets that repeat a change (optimistic approach)
    #[arg(long, value_name = "N", default_value_t = DEFAULT_REPETITIONS, hide_short_help = true, value_parser = clap::value_parser!(u8).range(1..), help_heading = "Channel")]
    pub(crate) repetitions: u8,
    /// Values in a W-LSB window: one more than the packets in a row that may be lost
    #[arg(long, value_name = "N", default_value_t = DEFAULT_WINDOW, hide_short_help = true, value_parser = clap::value_parser!(u8).range(1..=16), help_heading = "Channel")]
    pub(crate) window: u8,
    /// k_1/n_1: failures among the last packets after which the dynamic context is given up (RFC 3095, section 5.3.2.2.3)
    /// [default: 3/6, in U-mode 5/6]
    #[arg(long, value_name = "K/N", hide_short_help = true, value_parser = threshold, help_heading = "Channel")]
    pub(crate) nack: Option<Threshold>,
    /// k_2/n_2: failures among the last updates after which the static context is given up
    #[arg(long, value_name = "K/N", hide_short_help = true, default_value = DEFAULT_STATIC_NACK, value_parser = threshold, help_heading = "Channel")]
    pub(crate) static_nack: Threshold,
    /// Compress constant IP-IDs (SID) in profiles that do not define this (not standard)
    #[arg(long, hide_short_help = true, help_heading = "Channel")]
    pub(crate) sid_everywhere: bool,
    /// How RTP is found, for profiles `rtp` and `rtp-udp-lite`
    #[arg(long, value_enum, value_name = "HOW", default_value_t = RtpOption::Guess, hide_short_help = true, help_heading = "RTP")]
    pub(crate) rtp: RtpOption,
    /// UDP and UDP-Lite destination ports of RTP, at most 8, separated by commas
    #[arg(long, value_name = "LIST", value_parser = rtp_ports, hide_short_help = true, help_heading = "RTP")]
    pub(crate) rtp_ports: Option<RtpPorts>,
    /// UDP checksums in profile `coap`, SCHC and 6LoWPAN
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ChecksumOption::Carry, hide_short_help = true, help_heading = "CoAP")]
    pub(crate) coap_checksum: ChecksumOption,
    /// Smallest packet format of profile `coap`
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = CoapFormatOption::Auto, hide_short_help = true, help_heading = "CoAP")]
    pub(crate) coap_format: CoapFormatOption,
    /// UDP ports of CoAP, at most 8, separated by commas [default: 5683]
    #[arg(long, value_name = "LIST", value_parser = coap_ports, hide_short_help = true, help_heading = "CoAP")]
    pub(crate) coap_ports: Option<Ports>,
    /// Template file for profile `coap`, the same at both ends
    ///
    /// It makes the first packets of flows small. `thinair rohc learn` makes one.
    #[cfg(feature = "templates")]
    #[arg(long, value_name = "FILE", help_heading = "Channel")]
    coap_template: Option<PathBuf>,
}

impl ChannelOptions {
    /// The template file. A build without `templates` takes none.
    pub(crate) fn template(&self) -> Option<&Path> {
        #[cfg(feature = "templates")]
        return self.coap_template.as_deref();
        #[cfg(not(feature = "templates"))]
        None
    }

    /// The name of the bases of the template file, which both ends compare.
    pub(crate) fn template_name(&self, bases: &[Base]) -> Option<String> {
        #[cfg(feature = "templates")]
        return self.template().map(|_| template::name(bases));
        #[cfg(not(feature = "templates"))]
        None.filter(|_: &String| !bases.is_empty())
    }

    /// The channel, with the default profiles if no others are asked for; or what contradicts itself, a usage error.
    pub(crate) fn channel(&self) -> Result<Channel, String> {
        self.channel_with(self.profiles.unwrap_or_default())
    }

    /// The channel with these profiles.
    pub(crate) fn channel_with(&self, profiles: ProfileSet) -> Result<Channel, String> {
        let cids = match self.cid {
            CidOption::Small => CidSpace::Small,
            CidOption::Large => CidSpace::Large,
        };
        let max_cid = self.max_cid.unwrap_or(cids.highest());
        let channel = Channel::new(cids, max_cid, profiles).map_err(|error| error.to_string())?;
        self.check_rtp(profiles)?;
        Ok(channel.with_integrity_below(match self.coap_checksum {
            ChecksumOption::Carry => Integrity::None,
            ChecksumOption::Elide => Integrity::Crc32,
        }))
    }

    /// Refuses options of RTP that contradict each other, or that nothing could come of.
    fn check_rtp(&self, profiles: ProfileSet) -> Result<(), String> {
        let of_rtp = [ProfileId::Rtp, ProfileId::RtpUdpLite, ProfileId::RtpV2, ProfileId::RtpUdpLiteV2];
        let has_rtp = of_rtp.iter().any(|profile| profiles.has(*profile));
        match (self.rtp, &self.rtp_ports) {
            (RtpOption::Ports, None) => {
                Err("--rtp ports takes RTP from --rtp-ports alone; name them, as in --rtp-ports 5004"
                    .to_owned())
            }
            (RtpOption::Never, Some(_)) => {
                Err("--rtp never takes nothing for RTP; leave out --rtp-ports, or give --rtp ports"
                    .to_owned())
            }
            (_, Some(_)) if !has_rtp => Err(
                "--rtp-ports is for profiles rtp and rtp-udp-lite; name one in --profiles, as in rtp,udp,ip"
                    .to_owned(),
            ),
            (RtpOption::Guess | RtpOption::Ports | RtpOption::Never, _) => Ok(()),
        }
    }

    /// The rule by which RTP is found.
    fn rtp(&self) -> RtpDetection {
        let ports = self.rtp_ports.map_or(RtpDetection::NEVER, |RtpPorts(rule)| rule);
        match self.rtp {
            RtpOption::Guess => ports.or_guess(),
            RtpOption::Ports | RtpOption::Never => ports,
        }
    }

    /// The provisioned bases of the channel. It is an error if some are for another kind of channel.
    #[cfg(feature = "templates")]
    pub(crate) fn bases(&self) -> anyhow::Result<Vec<Base>> {
        let Some(path) = &self.coap_template else { return Ok(Vec::new()) };
        let bases = template::read(path)?;
        for (base, number) in bases.iter().zip(1..) {
            let (file, name) = (path.display(), "--coap-checksum");
            match (base.base_path().checksum, self.coap_checksum) {
                (ChecksumMode::Elided, ChecksumOption::Carry) => {
                    anyhow::bail!(
                        "{file}: base {number} elides checksums, the channel carries them; give {name} elide, or learn the file anew"
                    )
                }
                (ChecksumMode::Carried, ChecksumOption::Elide) => {
                    anyhow::bail!(
                        "{file}: base {number} carries checksums, the channel elides them; give {name} carry, or learn the file anew"
                    )
                }
                _ => {}
            }
        }
        Ok(bases)
    }

    /// The provisioned bases of the channel: there is no file that could have them.
    #[cfg(not(feature = "templates"))]
    pub(crate) fn bases(&self) -> anyhow::Result<Vec<Base>> {
        Ok(Vec::new())
    }

    /// The compressor of the channel. A refresh policy that is asked for holds in every mode.
    pub(crate) fn compressor(&self, channel: Channel) -> CompressorConfig {
        let mut config = CompressorConfig::new(channel);
        if let Some(refresh) = self.refresh {
            config = config.with_refresh(refresh);
        }
        config.repetitions = self.repetitions;
        config.window = self.window;
        config.sid_everywhere = self.sid_everywhere;
        config.rtp = self.rtp();
        let format = match self.coap_format {
            CoapFormatOption::Auto => FormatPolicy::Auto,
            CoapFormatOption::Pt0 => FormatPolicy::Pt0,
            CoapFormatOption::Pt1 => FormatPolicy::Pt1,
            CoapFormatOption::Pt0c => FormatPolicy::Pt0c,
        };
        config.coap = CoapConfig { format, ports: self.coap_ports.unwrap_or(Ports::COAP) };
        config
    }

    /// The decompressor of the channel, without its mode.
    pub(crate) fn decompressor(&self, channel: Channel) -> DecompressorConfig {
        let config = DecompressorConfig::new(channel);
        DecompressorConfig {
            nack: self.nack.unwrap_or(config.nack),
            one_way: self.nack.unwrap_or(config.one_way),
            static_nack: self.static_nack,
            ..config
        }
    }
}

/// An option as it was given.
pub(crate) struct Given {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    /// A tunnel has it, too, by the same name.
    pub(crate) in_tunnels: bool,
}

impl ChannelOptions {
    /// The options that were given, without profiles and CIDs.
    pub(crate) fn given(&self) -> Vec<Given> {
        let is_not = |value: u8, default: u8| (value != default).then(|| value.to_string());
        let threshold = |Threshold { k, n }: Threshold| format!("{k}/{n}");
        let ratio = threshold(self.static_nack);
        let word = |word: Option<clap::builder::PossibleValue>| word.map(|word| word.get_name().to_owned());
        let rtp = (self.rtp != RtpOption::Guess).then_some(self.rtp);
        let checksum = (self.coap_checksum != ChecksumOption::Carry).then_some(self.coap_checksum);
        let format = (self.coap_format != CoapFormatOption::Auto).then_some(self.coap_format);
        let options = [
            ("refresh", self.refresh.map(|refresh| refresh.to_string()), true),
            ("repetitions", is_not(self.repetitions, DEFAULT_REPETITIONS), true),
            ("window", is_not(self.window, DEFAULT_WINDOW), true),
            ("nack", self.nack.map(threshold), false),
            ("static-nack", (ratio != DEFAULT_STATIC_NACK).then_some(ratio), false),
            ("rtp", word(rtp.and_then(|rtp| rtp.to_possible_value())), true),
            ("rtp-ports", self.rtp_ports.map(|RtpPorts(rule)| listed(|port| rule.has(port))), true),
            ("coap-checksum", word(checksum.and_then(|checksum| checksum.to_possible_value())), false),
            ("coap-format", word(format.and_then(|format| format.to_possible_value())), false),
            ("coap-ports", self.coap_ports.map(|ports| listed(|port| ports.has(port))), false),
            ("coap-template", self.template().map(|path| path.display().to_string()), true),
        ];
        let given = options
            .into_iter()
            .filter_map(|(name, value, in_tunnels)| Some(Given { name, value: value?, in_tunnels }));
        let flag = self.sid_everywhere.then(|| Given {
            name: "sid-everywhere",
            value: String::new(),
            in_tunnels: false,
        });
        given.chain(flag).collect()
    }
}

/// The ports of a set, separated by commas.
fn listed(has: impl Fn(u16) -> bool) -> String {
    let ports = (1..=u16::MAX).filter(|port| has(*port)).map(|port| port.to_string());
    ports.collect::<Vec<_>>().join(",")
}

fn threshold(text: &str) -> Result<Threshold, String> {
    let (k, n) = text.split_once('/').ok_or("expected K/N, as in 3/6")?;
    match (k.parse(), n.parse()) {
        (Ok(k), Ok(n)) if 1 <= k && k <= n && n <= 16 => Ok(Threshold { k, n }),
        _ => Err("K must be 1 to N, and N at most 16".to_owned()),
    }
}

pub(crate) fn coap_ports(text: &str) -> Result<Ports, String> {
    Ports::of(&ports(text)?).ok_or_else(|| format!("at most {} ports", Ports::MOST))
}

/// Ports to which RTP goes, as a rule without guessing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RtpPorts(RtpDetection);

fn rtp_ports(text: &str) -> Result<RtpPorts, String> {
    let rule = RtpDetection::of_ports(&ports(text)?);
    rule.map(RtpPorts).ok_or_else(|| format!("at most {} ports", Ports::MOST))
}

fn ports(text: &str) -> Result<Vec<u16>, String> {
    let ports = text.split(',').map(|port| port.parse().ok().filter(|port| *port != 0));
    ports.collect::<Option<_>>().ok_or_else(|| "expected UDP ports, separated by commas".to_owned())
}

fn profiles(text: &str) -> Result<ProfileSet, String> {
    let mut named = Vec::new();
    for name in text.split(',') {
        match ProfileId::by_name(name) {
            Some(profile) => named.push(profile),
            None if name == "v1" => named.extend(ProfileSet::v1().iter()),
            None if name == "v2" => named.extend(ProfileSet::v2().iter()),
            None => {
                let built = ProfileId::ALL.into_iter().filter(|profile| profile.is_built());
                let known = built.map(ProfileId::name).collect::<Vec<_>>().join(", ");
                return Err(format!("no profile `{name}`; there are {known}, and the sets v1 and v2"));
            }
        }
    }
    ProfileSet::of(&named).map_err(|error| error.to_string())
}
