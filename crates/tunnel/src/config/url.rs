//! Carriers as URLs: `ule+udp://239.1.2.3:5000?iface=eth0&ttl=4`. Options after the `?` can also be set in
//! `[carrier]`. No characters are escaped.

use super::keys;
use super::setting::{ConfigError, ConfiguredValue, SettingValue};
use super::settings::SettingsSection;

/// Carrier and packaging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CarrierScheme {
    Udp,
    UleUdp,
    GseUdp,
    UleFile,
    Serial,
    SerialRaw,
}

const SCHEMES: [(&str, CarrierScheme); 6] = [
    ("udp", CarrierScheme::Udp),
    ("ule+udp", CarrierScheme::UleUdp),
    ("gse+udp", CarrierScheme::GseUdp),
    ("ule+file", CarrierScheme::UleFile),
    ("serial", CarrierScheme::Serial),
    ("serial+raw", CarrierScheme::SerialRaw),
];

impl CarrierScheme {
    pub(super) fn name(self) -> &'static str {
        SCHEMES.iter().find(|(_, scheme)| *scheme == self).map_or("", |(name, _)| *name)
    }

    pub(super) fn is_udp(self) -> bool {
        matches!(self, Self::Udp | Self::UleUdp | Self::GseUdp)
    }

    pub(super) fn is_serial(self) -> bool {
        matches!(self, Self::Serial | Self::SerialRaw)
    }

    pub(super) fn is_ts(self) -> bool {
        matches!(self, Self::UleUdp | Self::UleFile)
    }

    /// True if datagrams without a key follow a standard that others can receive.
    pub(super) fn is_standard(self) -> bool {
        matches!(self, Self::UleUdp | Self::GseUdp | Self::UleFile)
    }

    /// Returns the options that a URL of this scheme can have, as they are written there.
    fn options(self) -> Vec<String> {
        let keys = keys::section("carrier").into_iter().flat_map(keys::SectionKeys::names);
        let own = keys.filter(|key| keys::is_option(key));
        own.filter(|key| Self::of_key(key).contains(&self)).map(|key| key.replace('_', "-")).collect()
    }

    /// Returns the message for an unknown option.
    fn unknown_option(self, name: &str) -> String {
        let (own, options) = (self.name(), self.options());
        if let Some(close) = super::words::closest(name, options.iter().map(String::as_str)) {
            return format!("unknown option of {own}://; did you mean `{close}`?");
        }
        match keys::section_of(&name.replace('-', "_")) {
            Some(title) => format!("unknown option of {own}://; `{name}` belongs to {title}"),
            None => format!("unknown option of {own}://; the options are {}", options.join(", ")),
        }
    }

    /// Returns the carriers that have a key of `[carrier]`.
    fn of_key(key: &str) -> &'static [Self] {
        use CarrierScheme::{GseUdp, Serial, SerialRaw, Udp, UleFile, UleUdp};
        match key {
            "listen" | "keepalive" | "bare_keepalive" | "idle_budget" | "tariff" | "iface" | "ttl" => {
                &[Udp, UleUdp, GseUdp]
            }
            "mtu" => &[Udp, UleUdp, GseUdp, Serial, SerialRaw],
            "rtp" | "ts" => &[UleUdp],
            "pid" | "peer_pid" | "psi" | "bitrate" => &[UleUdp, UleFile],
            "total_length" | "bbframes" => &[GseUdp],
            "flush" | "npa" => &[UleUdp, GseUdp, UleFile],
            "from" | "to" => &[UleFile],
            "speed" => &[Serial, SerialRaw],
            "framing" => &[Serial],
            _ => &[Udp, UleUdp, GseUdp, UleFile, Serial, SerialRaw],
        }
    }
}

/// A parsed URL.
#[derive(Debug)]
pub(super) struct Url<'u> {
    pub(super) scheme: CarrierScheme,
    /// Text between `://` and `?`.
    pub(super) rest: &'u str,
    options: Vec<(&'u str, Option<&'u str>)>,
}

/// Parses a URL.
pub(super) fn parse(text: &str) -> Result<Url<'_>, String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err("is no carrier; write it as in udp://HOST:PORT or serial:///dev/ttyUSB0".to_owned());
    };
    let scheme = super::words::word(&SCHEMES)(scheme)
        .map_err(|wrong| format!("has the scheme \"{scheme}\": {wrong}"))?;
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, query)| (rest, query));
    let options = query.split('&').filter(|option| !option.is_empty());
    let options = options.map(|option| match option.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (option, None),
    });
    Ok(Url { scheme, rest, options: options.collect() })
}

impl Url<'_> {
    /// Merges `[carrier]` and the options of the URL. Arguments override files.
    pub(super) fn merge(
        &self,
        setting: &ConfiguredValue,
        section: &SettingsSection,
    ) -> Result<SettingsSection, ConfigError> {
        let mut merged = section.clone();
        for &(name, value) in &self.options {
            let place = setting.place.with(format!("option `{name}` of {}", setting.place.what));
            let key = name.replace('-', "_");
            let known = keys::section("carrier").filter(|_| keys::is_option(&key));
            let Some((key, _)) = known.and_then(|section| section.key(&key)) else {
                return Err(ConfigError::at(&place, self.scheme.unknown_option(name)));
            };
            let value = value.unwrap_or("true");
            let option = ConfiguredValue { value: SettingValue::One(value.to_owned()), place };
            let Some(other) = merged.setting(key) else {
                merged.insert(key, option);
                continue;
            };
            match (&other.place.file, &setting.place.file) {
                (None, Some(_)) => {}
                (Some(_), None) => merged.insert(key, option),
                _ => {
                    return Err(option.error(format!("is also set by {}; remove one", other.place)));
                }
            }
        }
        for (key, setting) in merged.iter() {
            let schemes = CarrierScheme::of_key(key);
            if !schemes.contains(&self.scheme) {
                let names: Vec<_> = schemes.iter().map(|scheme| format!("{}://", scheme.name())).collect();
                let (names, own) = (names.join(", "), self.scheme.name());
                return Err(setting.error(format!("is for {names}, and the carrier is {own}://; remove it")));
            }
        }
        Ok(merged)
    }
}

/// Splits host and port: `192.0.2.1:5000`, `[2001:db8::1]:5000`, `name:5000`, `:5000`.
pub(super) fn host_and_port(text: &str) -> Result<(&str, u16), String> {
    let wrong = || "expected HOST:PORT, such as 192.0.2.1:5000 or [2001:db8::1]:5000".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').ok_or_else(wrong)?,
        None if host.contains(':') => {
            return Err("put brackets around the IPv6 address, as in [2001:db8::1]:5000".to_owned());
        }
        None => host,
    };
    if host.contains(|c: char| !c.is_ascii_alphanumeric() && !"-._:%".contains(c)) {
        return Err(wrong());
    }
    if port.is_empty() {
        return Err(wrong());
    }
    let port = super::words::number(0..=u16::MAX)(port)
        .map_err(|_| format!("\"{port}\" is not a port; give a number from 1 to {}", u16::MAX))?;
    Ok((host, port))
}
