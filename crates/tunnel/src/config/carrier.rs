//! Section `[carrier]`: transport across the network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use thinair_session::mapping;
use thinair_ule::gse::TotalLength;
use thinair_ule::{Npa, Pid};

use super::setting::{ConfigError, ConfiguredValue};
use super::settings::{Settings, SettingsSection};
use super::url::{self, CarrierScheme, Url};
use super::{Surroundings, words};
use crate::idle::LEAST_BUDGET;
use crate::site_config::{Carrier, Framing, Others, Packaging, Security, Tariff};

/// Default PID of both directions, if they are datagrams of different senders.
const DEFAULT_PID: u16 = 0x40;

/// PIDs for streams: lower ones are reserved for tables, 0x1FFF for null packets (ISO/IEC 13818-1, table 2-3;
/// ETSI EN 300 468).
const PIDS: std::ops::RangeInclusive<u16> = 0x20..=0x1FFA;

/// Default MTU in octets: that of Ethernet.
const DEFAULT_MTU: u16 = 1_500;

/// Maximum size of the header of an encrypted datagram: two octets, and the whole counter.
const SEAL_HEADER: usize = 10;

const RTP_HEADER: usize = 12;
const UDP_HEADER: usize = 8;
const TS_PACKET: usize = 188;

/// The carrier, and the other end according to its URL.
pub(super) struct CarrierSettings {
    pub(super) scheme: CarrierScheme,
    pub(super) carrier: Carrier,
    /// Remote address in the URL.
    pub(super) to: Option<SocketAddr>,
    pub(super) keepalive: Option<Keepalive>,
    pub(super) bare_keepalive: bool,
    idle_budget: Option<ConfiguredValue>,
    pub(super) tariff: Option<Tariff>,
    pub(super) pid: Option<Pid>,
    pub(super) peer_pid: Option<Pid>,
    /// The URL as given.
    pub(super) url: ConfiguredValue,
}

impl CarrierSettings {
    /// True if packets are sent in one direction only and cannot be answered.
    pub(super) fn is_one_way(&self) -> bool {
        matches!(self.carrier, Carrier::File { from: None, .. } | Carrier::File { to: None, .. })
    }

    /// Returns the octets a day that idle peers may cost.
    pub(super) fn idle_budget(&self, others: &Others) -> Result<Option<u64>, ConfigError> {
        let Some(setting) = &self.idle_budget else { return Ok(None) };
        let octets = setting.read(words::number(1..=u64::MAX))?;
        let with_keepalive = match others {
            Others::Peers(peers) => peers.iter().filter(|peer| peer.keepalive.is_some()).count() as u64,
            Others::Mesh(_) => 0,
        };
        if with_keepalive == 0 {
            return Err(setting.error(
                "limits keepalives, and there are none; give `keepalive`, too, or remove it: an idle tunnel without \
                 keepalives sends nothing",
            ));
        }
        if matches!(others, Others::Peers(peers) if peers.iter().any(|peer| peer.learns_keepalive)) {
            return Err(setting.error(
                "limits keepalives of a known interval, and a search for the timeout of the NAT needs frequent ones and up to \
                 60 probes; give `keepalive` a time instead of `auto`, such as the one that `thinair tunnel status` shows \
                 after a search, or remove the budget",
            ));
        }
        let least = LEAST_BUDGET * with_keepalive;
        if octets < least {
            return Err(setting.error(format!(
                "is {octets}: below {least} octets a day, {LEAST_BUDGET} for each peer with a keepalive, there is no room \
                 for keepalives; give more, or remove `keepalive`"
            )));
        }
        Ok(Some(octets))
    }

    pub(super) fn is_multicast(&self) -> bool {
        matches!(self.carrier, Carrier::Udp { group: Some(_), .. })
    }

    /// Part of the URL that identifies the other end.
    pub(super) fn url_rest(&self) -> &str {
        let rest = self.url.text().ok().and_then(|text| url::parse(text).ok()).map(|url| url.rest);
        rest.map_or("", |rest| rest.strip_suffix('/').unwrap_or(rest))
    }

    /// Sets the PID and NPA with which this site sends, from the `[[site]]` of a mesh.
    pub(super) fn send_as(&mut self, own_pid: Option<Pid>, own_npa: Option<Npa>) {
        let (Carrier::Udp { packaging, .. } | Carrier::File { packaging, .. }) = &mut self.carrier else {
            return;
        };
        match packaging {
            Packaging::Ts { pid, npa, .. } => {
                *pid = own_pid.unwrap_or(*pid);
                *npa = own_npa.or(*npa);
            }
            Packaging::Gse { npa, .. } => *npa = own_npa.or(*npa),
            Packaging::Packed => {}
        }
    }
}

/// Returns the scheme of the carrier, before other settings are read.
pub(super) fn scheme(settings: &Settings) -> Result<CarrierScheme, ConfigError> {
    let section = settings.section("carrier");
    let url = section.setting("url").ok_or_else(missing)?;
    url.read(|text| url::parse(text).map(|url| url.scheme))
}

fn missing() -> ConfigError {
    ConfigError::of_all(
        "no carrier is given; give one, such as udp://192.0.2.1:7000, or `url` in [carrier] of a file",
    )
}

pub(super) fn carried(
    settings: &Settings,
    security: &Security,
    surroundings: &Surroundings<'_>,
) -> Result<CarrierSettings, ConfigError> {
    let section = settings.section("carrier");
    let setting = section.setting("url").ok_or_else(missing)?.clone();
    let text = setting.text()?;
    let url = url::parse(text).map_err(|wrong| setting.error(format!("is \"{text}\": it {wrong}")))?;
    let section = url.merge(&setting, &section)?;
    let mut carried = CarrierSettings {
        scheme: url.scheme,
        // Placeholder, replaced below.
        carrier: Carrier::File { packaging: Packaging::Packed, from: None, to: None },
        to: None,
        keepalive: section.read("keepalive", keepalive)?,
        bare_keepalive: section.is_true("bare_keepalive")?,
        idle_budget: section.setting("idle_budget").cloned(),
        tariff: tariff(&section, surroundings)?,
        pid: section.read("pid", pid)?,
        peer_pid: section.read("peer_pid", pid)?,
        url: setting.clone(),
    };
    carried.carrier = match url.scheme {
        CarrierScheme::Udp | CarrierScheme::UleUdp | CarrierScheme::GseUdp => {
            let ends = ends(&url, &setting, &section, surroundings)?;
            carried.to = ends.to;
            udp(&url, &section, &ends, security)?
        }
        CarrierScheme::Serial | CarrierScheme::SerialRaw => serial(&url, &setting, &section)?,
        CarrierScheme::UleFile => file(&url, &setting, &section)?,
    };
    Ok(carried)
}

/// Returns name and port if [`address`] had to resolve the text; `None` for an address.
pub(super) fn host(text: &str) -> Option<(String, u16)> {
    let (host, port) = url::host_and_port(text).ok()?;
    let is_name = !host.is_empty() && host.parse::<IpAddr>().is_err();
    is_name.then(|| (host.to_owned(), port))
}

/// The two ends of a UDP carrier.
struct UdpEnds {
    to: Option<SocketAddr>,
    listen: SocketAddr,
    group: Option<(IpAddr, Option<String>)>,
}

fn ends(
    url: &Url<'_>,
    setting: &ConfiguredValue,
    section: &SettingsSection,
    surroundings: &Surroundings<'_>,
) -> Result<UdpEnds, ConfigError> {
    let rest = url.rest.strip_suffix('/').unwrap_or(url.rest);
    let listen_setting = section.setting("listen");
    let listen = match listen_setting {
        Some(listen) => Some(address(listen, listen.text()?, surroundings)?),
        None => None,
    };
    let to = if rest.is_empty() { None } else { Some(address(setting, rest, surroundings)?) };
    let (to, listen) = match (to, listen) {
        (None, None) => {
            return Err(setting.error(
                "has neither the address of the other end nor a port to listen on; write udp://HOST:PORT, or \
                 udp://:PORT to wait there for the other end",
            ));
        }
        // An unspecified address in the URL is the local end.
        (Some(here), None) if here.ip().is_unspecified() => (None, here),
        // The one of the setting overrides it.
        (Some(here), Some(listen)) if here.ip().is_unspecified() => (None, listen),
        (Some(to), None) => (Some(to), default_listen(to)),
        (to, Some(listen)) => (to, listen),
    };
    if let (Some(to), Some(place)) = (to, section.place_of("listen").or(Some(&setting.place))) {
        if to.port() == 0 {
            return Err(setting.error("has port 0, which cannot be a destination; give 1 to 65535"));
        }
        if to.is_ipv4() != listen.is_ipv4() {
            return Err(ConfigError::at(
                place,
                format!("this end listens on {listen}, and sends to {to}; both must be IPv4, or both IPv6"),
            ));
        }
        if to.ip().is_multicast() && to.port() != listen.port() {
            return Err(ConfigError::at(
                place,
                format!("datagrams to the group arrive at port {}; listen on that port", to.port()),
            ));
        }
    }
    let group = to.map(|to| to.ip()).filter(IpAddr::is_multicast);
    for key in ["iface", "ttl"] {
        if let (None, Some(option)) = (group, section.setting(key)) {
            return Err(option.error("applies to multicast groups only; remove it"));
        }
    }
    let iface = section.read("iface", super::inside::name_of_interface)?;
    Ok(UdpEnds { to, listen, group: group.map(|group| (group, iface)) })
}

/// Parses an address, or resolves a host name.
pub(super) fn address(
    setting: &ConfiguredValue,
    text: &str,
    surroundings: &Surroundings<'_>,
) -> Result<SocketAddr, ConfigError> {
    let wrong =
        |what: String| setting.error(format!("is \"{}\": {what}", setting.text().unwrap_or_default()));
    let (host, port) = url::host_and_port(text).map_err(wrong)?;
    if host.is_empty() {
        return Ok(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port));
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, port));
    }
    let found = (surroundings.resolve)(host, port)
        .map_err(|error| setting.error(format!("cannot resolve {host}: {error}")).passing())?;
    found.first().copied().ok_or_else(|| setting.error(format!("{host} has no address")).passing())
}

/// Default local address: the port of the other end on every address; for a multicast group the group itself,
/// so that other datagrams are not received.
fn default_listen(to: SocketAddr) -> SocketAddr {
    let port = to.port();
    match to.ip() {
        IpAddr::V4(group) if group.is_multicast() => SocketAddr::new(group.into(), port),
        // Binding to a group of an interface or link scope requires the name of the interface.
        IpAddr::V6(group) if group.is_multicast() && group.octets()[1] & 0x0F > 2 => {
            SocketAddr::new(group.into(), port)
        }
        IpAddr::V4(_) => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port),
        IpAddr::V6(_) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
    }
}

fn udp(
    url: &Url<'_>,
    section: &SettingsSection,
    ends: &UdpEnds,
    security: &Security,
) -> Result<Carrier, ConfigError> {
    let least = if ends.listen.is_ipv4() { 576 } else { 1_280 };
    let mtu = section.read("mtu", words::number(least..=u16::MAX))?.unwrap_or(DEFAULT_MTU);
    let rtp = section.is_true("rtp")?;
    let packaging = match url.scheme {
        CarrierScheme::UleUdp => {
            let ip = if ends.listen.is_ipv4() { 20 } else { 40 };
            let seal = match security {
                Security::Key { suite, .. } => SEAL_HEADER + suite.tag(),
                Security::Open | Security::Insecure => 0,
            };
            let around = ip + UDP_HEADER + if rtp { RTP_HEADER } else { 0 } + seal;
            let fit = usize::from(mtu).saturating_sub(around) / TS_PACKET;
            let asked = section.read("ts", words::number(1_u8..=7))?;
            if let (Some(asked), Some(place)) =
                (asked.filter(|n| usize::from(*n) > fit), section.setting("ts"))
            {
                return Err(place.error(format!(
                    "{asked} TS Packets need {} octets with their overhead, and the MTU of the carrier is \
                     {mtu}; set `ts` to {fit}, or give a larger `mtu`",
                    usize::from(asked) * TS_PACKET + around
                )));
            }
            ts(section, asked.unwrap_or(fit.min(7) as u8))?
        }
        CarrierScheme::GseUdp => gse(section, security)?,
        CarrierScheme::Udp | CarrierScheme::UleFile | CarrierScheme::Serial | CarrierScheme::SerialRaw => {
            Packaging::Packed
        }
    };
    let ttl = section.read("ttl", words::number(1_u8..=255))?.unwrap_or(1);
    Ok(Carrier::Udp { packaging, listen: ends.listen, group: ends.group.clone(), ttl, mtu, rtp })
}

fn ts(section: &SettingsSection, per_datagram: u8) -> Result<Packaging, ConfigError> {
    let default = Pid::new(DEFAULT_PID).unwrap_or(Pid::NULL);
    Ok(Packaging::Ts {
        pid: section.read("pid", pid)?.unwrap_or(default),
        per_datagram,
        flush: flush(section)?,
        psi: section.read("psi", positive)?,
        bitrate: section.read("bitrate", words::rate)?,
        npa: npa(section)?,
    })
}

fn gse(section: &SettingsSection, security: &Security) -> Result<Packaging, ConfigError> {
    for key in ["total_length", "bbframes"] {
        if let (Some(setting), Security::Key { .. }) = (section.setting(key), security) {
            return Err(
                setting.error("is for BBFrames of other equipment, with `open`; with a key remove it")
            );
        }
    }
    let total_length = words::word(&[("checked", TotalLength::Checked), ("ignored", TotalLength::Ignored)]);
    let bbframes = words::word(&[("whole", false), ("divided", true)]);
    Ok(Packaging::Gse {
        flush: flush(section)?,
        npa: npa(section)?,
        total_length: section.read("total_length", total_length)?.unwrap_or_default(),
        divided: section.read("bbframes", bbframes)?.unwrap_or_default(),
    })
}

fn flush(section: &SettingsSection) -> Result<Duration, ConfigError> {
    Ok(section.read("flush", words::span)?.unwrap_or(Duration::ZERO))
}

fn npa(section: &SettingsSection) -> Result<Option<Npa>, ConfigError> {
    section.read("npa", unicast_npa)
}

/// Parses an NPA of one site.
pub(super) fn unicast_npa(text: &str) -> Result<Npa, String> {
    let npa: Npa = text.parse().map_err(|error| format!("{error}"))?;
    if npa.is_multicast() {
        return Err("is a group address; give one of this site alone, such as 02:00:00:00:00:01".to_owned());
    }
    Ok(npa)
}

/// Parses a PID for a stream.
pub(super) fn pid(text: &str) -> Result<Pid, String> {
    let number = words::number(PIDS)(text);
    let pid = number.ok().and_then(Pid::new);
    pid.ok_or_else(|| {
        "give a PID from 0x0020 to 0x1ffa; others are reserved for tables and null packets".to_owned()
    })
}

/// Parses a time above zero.
pub(super) fn positive(text: &str) -> Result<Duration, String> {
    let span = words::span(text)?;
    if span.is_zero() { Err("give a time above 0, or omit it".to_owned()) } else { Ok(span) }
}

/// Returns the price list of the network below.
fn tariff(section: &SettingsSection, surroundings: &Surroundings<'_>) -> Result<Option<Tariff>, ConfigError> {
    let (Some(setting), Some(path)) = (section.setting("tariff"), section.path("tariff")?) else {
        return Ok(None);
    };
    (surroundings.tariff)(&path).map(Some).map_err(|error| setting.error(error))
}

/// Interval of keepalives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keepalive {
    /// A configured one.
    Every(Duration),
    /// The longest one that keeps the mapping of the NAT, found by probes.
    Learned,
}

impl Keepalive {
    /// Interval until another one is learned.
    pub(super) const fn interval(self) -> Duration {
        match self {
            Self::Every(interval) => interval,
            Self::Learned => mapping::UNKNOWN,
        }
    }
}

pub(super) fn keepalive(text: &str) -> Result<Keepalive, String> {
    if text == "auto" {
        return Ok(Keepalive::Learned);
    }
    positive(text).map(Keepalive::Every).map_err(|wrong| format!("{wrong}; or give auto"))
}

fn serial(
    url: &Url<'_>,
    setting: &ConfiguredValue,
    section: &SettingsSection,
) -> Result<Carrier, ConfigError> {
    if url.rest.is_empty() {
        return Err(setting.error("names no device; write it as in serial:///dev/ttyUSB0"));
    }
    let crc = url.scheme == CarrierScheme::Serial;
    let framing =
        section.read("framing", words::word(&[("cobs", Framing::Cobs), ("slip", Framing::Slip)]))?;
    let speed = section.read("speed", words::rate)?;
    let speed = speed.map(u32::try_from).transpose();
    let speed = speed.map_err(|_| {
        let place = section.place_of("speed").unwrap_or(&setting.place);
        ConfigError::at(place, "exceeds the range of a serial line")
    })?;
    Ok(Carrier::Serial {
        path: setting.place.path(url.rest),
        speed,
        framing: framing.unwrap_or(if crc { Framing::Cobs } else { Framing::Slip }),
        crc,
        mtu: section.read("mtu", words::number(64..=u16::MAX))?.unwrap_or(DEFAULT_MTU),
    })
}

fn file(url: &Url<'_>, setting: &ConfiguredValue, section: &SettingsSection) -> Result<Carrier, ConfigError> {
    let (from, to) = (section.path("from")?, section.path("to")?);
    let (from, to) = match (url.rest, from, to) {
        ("", None, None) => {
            return Err(setting.error(
                "names no file; write ule+file://?to=FILE to send, ?from=FILE to receive, or both; - is standard \
                 output or input",
            ));
        }
        ("", from, to) => (from, to),
        ("-", None, None) => (Some("-".into()), Some("-".into())),
        (path, None, None) => {
            return Err(setting.error(format!(
                "has no direction; write ule+file://?to={path} to send, or ?from={path} to receive"
            )));
        }
        (path, ..) => {
            return Err(
                setting.error(format!("contains {path} in addition to `from` or `to`; remove {path}"))
            );
        }
    };
    let is_same = from.is_some() && from == to;
    if is_same && from.as_ref().is_some_and(|path| path.as_os_str() != "-") {
        return Err(setting.error("has the same file as input and output; give two different ones"));
    }
    Ok(Carrier::File { packaging: ts(section, 1)?, from, to })
}
