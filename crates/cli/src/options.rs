//! Options that define a ROHC channel, shared by all commands.

use std::path::Path;
#[cfg(feature = "templates")]
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use thinair_rohc::profile::coap::Base;
#[cfg(feature = "templates")]
use thinair_rohc::profile::coap::ChecksumMode;
use thinair_rohc::{
    Channel, CidSpace, CompressorConfig, DecompressorConfig, Integrity, Mode, Ports, ProfileId, ProfileSet,
    Refresh, ReorderRatio, RtpDetection, Threshold,
};
use thinair_rohc::{CoapConfig, FormatPolicy};

#[cfg(feature = "templates")]
use crate::template;

/// Maximum number of bases that a packet of profile `coap` can refer to.
pub(crate) const MOST_BASES: usize = 256;

/// Blocks for extension headers in each compressor and decompressor.
pub(crate) const BLOCKS: usize = 256;

/// Default number of repetitions of a change, and default width of a W-LSB window.
const DEFAULT_REPETITIONS: u8 = 4;
const DEFAULT_WINDOW: u8 = 4;

/// Default of k_2/n_2 (RFC 3095, section 5.3.2.2.3).
const DEFAULT_STATIC_NACK: &str = "2/4";

/// Mode of operation, by its letter.
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

/// Small or large CIDs (LARGE_CIDS in RFC 5795, section 5.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CidOption {
    /// CIDs 0 to 15; CID 0 adds no octet, the others add one
    Small,
    /// CIDs 0 to 16,383; each adds one or two octets
    Large,
}

/// Detection of RTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RtpOption {
    /// Ports of --rtp-ports, and other flows whose first packets look like RTP. Packets that are not RTP are
    /// restored bit for bit, too
    Guess,
    /// Ports of --rtp-ports only
    Ports,
    /// No detection: RTP is compressed as UDP or UDP-Lite
    Never,
}

/// Treatment of UDP checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChecksumOption {
    /// Send UDP checksums
    Carry,
    /// Omit correct UDP checksums; the decompressor computes them. Only for link layers with a CRC of 32 bits
    /// or more, since nothing else then detects damage
    Elide,
}

/// Smallest format of profile `coap` (`FormatPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoapFormatOption {
    /// `pt_0c` where the UDP checksum is sent; else `pt_1`, or `pt_0` once feedback shows that few packets
    /// are lost
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
    /// Size of context identifiers (CIDs): small (0 to 15) or large
    #[arg(long, value_enum, default_value_t = CidOption::Small, help_heading = "Channel")]
    pub(crate) cid: CidOption,
    /// Highest CID (MAX_CID) [default: 15 for small, 16383 for large CIDs]
    #[arg(long, hide_short_help = true, value_name = "N", help_heading = "Channel")]
    pub(crate) max_cid: Option<u16>,
    /// Profiles, separated by commas, such as v1,coap [default: v1,coap,tcp]
    ///
    /// Names: rtp, udp, esp, ip, rtp-udp-lite, udp-lite, tcp and coap; v1 stands for the first six, v2 for those
    /// of ROHCv2, such as udp-v2.
    /// `uncompressed` is always included. Without this option `analyze` compares several sets.
    #[arg(long, value_name = "LIST", value_parser = profiles, help_heading = "Channel")]
    pub(crate) profiles: Option<ProfileSet>,
    /// Refresh of contexts: `budget=PERCENT%[,packets=N][,time=SECONDS]`, `packets=N,time=SECONDS[,backoff]`,
    /// `ir=N,so=N[,direct]`, or `off` [default: budget=5%,packets=128,time=16 in U-mode, off in O-mode and
    /// R-mode]
    ///
    /// A budget sends an IR packet SECONDS after the previous one, if IR packets have used at most that
    /// percentage of the octets sent or N packets have passed; docs/refresh.md has figures.
    #[arg(long, value_name = "POLICY", hide_short_help = true, help_heading = "Channel")]
    pub(crate) refresh: Option<Refresh>,
    /// Number of packets that repeat a change (optimistic approach)
    #[arg(long, value_name = "N", default_value_t = DEFAULT_REPETITIONS, hide_short_help = true, value_parser = clap::value_parser!(u8).range(1..), help_heading = "Channel")]
    pub(crate) repetitions: u8,
    /// Values in a W-LSB window: number of consecutive lost packets to tolerate, plus one
    #[arg(long, value_name = "N", default_value_t = DEFAULT_WINDOW, hide_short_help = true, value_parser = clap::value_parser!(u8).range(1..=16), help_heading = "Channel")]
    pub(crate) window: u8,
    /// ROHCv2: packets of the smallest headers may be 1 (none), 3 (quarter), 7 (half) or 11 (three-quarters) late;
    /// with feedback a flow gets more as needed
    #[arg(long, value_name = "RATIO", default_value = "none", hide_short_help = true, value_parser = reorder_ratio, help_heading = "Channel")]
    pub(crate) reorder_ratio: ReorderRatio,
    /// k_1/n_1: damage of the dynamic context is assumed after k of n packets have failed (RFC 3095, section
    /// 5.3.2.2.3) [default: 3/6, in U-mode 5/6]
    #[arg(long, value_name = "K/N", hide_short_help = true, value_parser = threshold, help_heading = "Channel")]
    pub(crate) nack: Option<Threshold>,
    /// k_2/n_2: damage of the static context is assumed after k of n updates have failed
    #[arg(long, value_name = "K/N", hide_short_help = true, default_value = DEFAULT_STATIC_NACK, value_parser = threshold, help_heading = "Channel")]
    pub(crate) static_nack: Threshold,
    /// Compress constant IP-IDs (SID) in profiles that do not define it (not standard)
    #[arg(long, hide_short_help = true, help_heading = "Channel")]
    pub(crate) sid_everywhere: bool,
    /// Detection of RTP, for profiles `rtp` and `rtp-udp-lite`
    #[arg(long, value_enum, value_name = "HOW", default_value_t = RtpOption::Guess, hide_short_help = true, help_heading = "RTP")]
    pub(crate) rtp: RtpOption,
    /// UDP and UDP-Lite destination ports of RTP, at most 8, separated by commas
    #[arg(long, value_name = "LIST", value_parser = rtp_ports, hide_short_help = true, help_heading = "RTP")]
    pub(crate) rtp_ports: Option<RtpPorts>,
    /// Treatment of UDP checksums in profiles `coap` and `dtls`, SCHC and 6LoWPAN
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ChecksumOption::Carry, hide_short_help = true, help_heading = "CoAP")]
    pub(crate) coap_checksum: ChecksumOption,
    /// Smallest packet format of profile `coap`
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = CoapFormatOption::Auto, hide_short_help = true, help_heading = "CoAP")]
    pub(crate) coap_format: CoapFormatOption,
    /// UDP ports of CoAP, at most 8, separated by commas [default: 5683]
    #[arg(long, value_name = "LIST", value_parser = coap_ports, hide_short_help = true, help_heading = "CoAP")]
    pub(crate) coap_ports: Option<Ports>,
    /// Template file for profile `coap`, equal at both ends
    ///
    /// It shortens the first packets of flows. `thinair rohc learn` writes one.
    #[cfg(feature = "templates")]
    #[arg(long, value_name = "FILE", help_heading = "Channel")]
    coap_template: Option<PathBuf>,
}

impl ChannelOptions {
    /// Path of the template file. Always `None` in a build without `templates`.
    pub(crate) fn template(&self) -> Option<&Path> {
        #[cfg(feature = "templates")]
        return self.coap_template.as_deref();
        #[cfg(not(feature = "templates"))]
        None
    }

    /// Name of the bases of the template file; both ends compare it.
    pub(crate) fn template_name(&self, bases: &[Base]) -> Option<String> {
        #[cfg(feature = "templates")]
        return self.template().map(|_| template::name(bases));
        #[cfg(not(feature = "templates"))]
        None.filter(|_: &String| !bases.is_empty())
    }

    /// Returns the channel, with the default profiles if none are given. The error text describes
    /// contradicting options.
    pub(crate) fn channel(&self) -> Result<Channel, String> {
        self.channel_with(self.profiles.unwrap_or_default())
    }

    /// Returns the channel with the given profiles.
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

    /// Checks the options of RTP. An error names options that contradict each other or have no effect.
    fn check_rtp(&self, profiles: ProfileSet) -> Result<(), String> {
        let of_rtp = [ProfileId::Rtp, ProfileId::RtpUdpLite, ProfileId::RtpV2, ProfileId::RtpUdpLiteV2];
        let has_rtp = of_rtp.iter().any(|profile| profiles.has(*profile));
        match (self.rtp, &self.rtp_ports) {
            (RtpOption::Ports, None) => {
                Err("--rtp ports needs a list of ports, such as --rtp-ports 5004".to_owned())
            }
            (RtpOption::Never, Some(_)) => {
                Err("--rtp never contradicts --rtp-ports; omit --rtp-ports, or give --rtp ports".to_owned())
            }
            (_, Some(_)) if !has_rtp => {
                Err("--rtp-ports needs profile rtp or rtp-udp-lite; add one, as in --profiles rtp,udp,ip"
                    .to_owned())
            }
            (RtpOption::Guess | RtpOption::Ports | RtpOption::Never, _) => Ok(()),
        }
    }

    /// Returns the rule that detects RTP.
    fn rtp(&self) -> RtpDetection {
        let ports = self.rtp_ports.map_or(RtpDetection::NEVER, |RtpPorts(rule)| rule);
        match self.rtp {
            RtpOption::Guess => ports.or_guess(),
            RtpOption::Ports | RtpOption::Never => ports,
        }
    }

    /// Returns the bases of the template file.
    ///
    /// # Errors
    /// The file cannot be read, or a base does not fit the treatment of checksums on the channel.
    #[cfg(feature = "templates")]
    pub(crate) fn bases(&self) -> anyhow::Result<Vec<Base>> {
        let Some(path) = &self.coap_template else { return Ok(Vec::new()) };
        let bases = template::read(path)?;
        for (base, number) in bases.iter().zip(1..) {
            let (file, name) = (path.display(), "--coap-checksum");
            match (base.base_path().checksum, self.coap_checksum) {
                (ChecksumMode::Elided, ChecksumOption::Carry) => {
                    anyhow::bail!(
                        "{file}: base {number} elides UDP checksums, but the channel sends them; give {name} elide, or learn the file again"
                    )
                }
                (ChecksumMode::Carried, ChecksumOption::Elide) => {
                    anyhow::bail!(
                        "{file}: base {number} sends UDP checksums, but the channel elides them; give {name} carry, or learn the file again"
                    )
                }
                _ => {}
            }
        }
        Ok(bases)
    }

    /// Returns no bases: this build reads no template files.
    #[cfg(not(feature = "templates"))]
    pub(crate) fn bases(&self) -> anyhow::Result<Vec<Base>> {
        Ok(Vec::new())
    }

    /// Returns the settings of the compressor. A refresh policy that is given applies in every mode.
    pub(crate) fn compressor(&self, channel: Channel) -> CompressorConfig {
        let mut config = CompressorConfig::new(channel);
        if let Some(refresh) = self.refresh {
            config = config.with_refresh(refresh);
        }
        config.repetitions = self.repetitions;
        config.window = self.window;
        config.reorder_ratio = self.reorder_ratio;
        config.interop.sid_everywhere = self.sid_everywhere;
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

    /// Returns the settings of the decompressor, without its mode.
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

/// An option as given on the command line.
pub(crate) struct Given {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    /// True if `thinair tunnel run` has an option of that name.
    pub(crate) in_tunnels: bool,
}

impl ChannelOptions {
    /// Returns the options that were given, except profiles and CIDs.
    pub(crate) fn given(&self) -> Vec<Given> {
        let is_not = |value: u8, default: u8| (value != default).then(|| value.to_string());
        let threshold = |Threshold { k, n }: Threshold| format!("{k}/{n}");
        let ratio = threshold(self.static_nack);
        let word = |word: Option<clap::builder::PossibleValue>| word.map(|word| word.get_name().to_owned());
        let rtp = (self.rtp != RtpOption::Guess).then_some(self.rtp);
        let checksum = (self.coap_checksum != ChecksumOption::Carry).then_some(self.coap_checksum);
        let format = (self.coap_format != CoapFormatOption::Auto).then_some(self.coap_format);
        let reorder = ReorderRatio::NAMES[1..].iter().find(|(_, value)| *value == self.reorder_ratio);
        let reorder = reorder.map(|(name, _)| (*name).to_owned());
        let options = [
            ("refresh", self.refresh.map(|refresh| refresh.to_string()), true),
            ("repetitions", is_not(self.repetitions, DEFAULT_REPETITIONS), true),
            ("window", is_not(self.window, DEFAULT_WINDOW), true),
            ("reorder-ratio", reorder, true),
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

/// Returns the ports of a set, separated by commas.
fn listed(has: impl Fn(u16) -> bool) -> String {
    let ports = (1..=u16::MAX).filter(|port| has(*port)).map(|port| port.to_string());
    ports.collect::<Vec<_>>().join(",")
}

fn reorder_ratio(text: &str) -> Result<ReorderRatio, String> {
    let found = ReorderRatio::NAMES.iter().find(|(name, _)| *name == text);
    found.map(|(_, ratio)| *ratio).ok_or_else(|| {
        let names = ReorderRatio::NAMES.map(|(name, _)| name);
        format!("expected one of {}", names.join(", "))
    })
}

fn threshold(text: &str) -> Result<Threshold, String> {
    let (k, n) = text.split_once('/').ok_or("expected K/N, as in 3/6")?;
    match (k.parse(), n.parse()) {
        (Ok(k), Ok(n)) if 1 <= k && k <= n && n <= 16 => Ok(Threshold { k, n }),
        _ => Err("expected K/N with 1 <= K <= N <= 16".to_owned()),
    }
}

pub(crate) fn coap_ports(text: &str) -> Result<Ports, String> {
    Ports::of(&ports(text)?).ok_or_else(|| format!("too many ports; the maximum is {}", Ports::MOST))
}

/// Ports of RTP, as a detection rule without heuristics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RtpPorts(RtpDetection);

fn rtp_ports(text: &str) -> Result<RtpPorts, String> {
    let rule = RtpDetection::of_ports(&ports(text)?);
    rule.map(RtpPorts).ok_or_else(|| format!("too many ports; the maximum is {}", Ports::MOST))
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
                return Err(format!(
                    "unknown profile `{name}`; the profiles are {known}, and the sets v1 and v2"
                ));
            }
        }
    }
    ProfileSet::of(&named).map_err(|error| error.to_string())
}
