//! Sections `[inside]`, `[seeing]` and `[daemon]`: resources of this machine.

use std::net::{IpAddr, SocketAddr};

use thinair_segment::{NetworkProperties, Sizer};

use super::setting::ConfigError;
use super::settings::Settings;
use super::{Surroundings, words};
use crate::site_config::{Inside, OnFailure, Seeing};

/// Default name of the interface.
const DEFAULT_NAME: &str = "thinair0";

/// Minimum MTU of IPv6 (RFC 8200, section 5).
const LEAST_OF_IPV6: u16 = 1_280;

/// Returns the interface of a configuration, whose other parts may be wrong.
///
/// # Errors
/// A setting of `[inside]` or `[segments]` is wrong.
pub fn inside(settings: &Settings) -> Result<Inside, ConfigError> {
    let section = settings.section("inside");
    let addresses = section.read_all("address", interface_address)?;
    let routes = section.read_all("route", words::network)?;
    let mtu = section.read("mtu", words::number(68..=u16::MAX))?;
    let has_ipv6 = addresses.iter().chain(&routes).any(|(address, _)| address.is_ipv6());
    if let (Some(mtu), Some(setting)) =
        (mtu.filter(|mtu| *mtu < LEAST_OF_IPV6 && has_ipv6), section.setting("mtu"))
    {
        return Err(setting.error(format!(
            "is {mtu}, and the system disables IPv6 below {LEAST_OF_IPV6}; give {LEAST_OF_IPV6} or more, or \
             remove the IPv6 addresses and routes"
        )));
    }
    let on_failure =
        section.read("on_failure", words::word(&[("open", OnFailure::Open), ("block", OnFailure::Block)]))?;
    if let Some(setting) =
        section.setting("on_failure").filter(|_| on_failure == Some(OnFailure::Block) && routes.is_empty())
    {
        return Err(setting.error("blocks nothing, as there is no `route`; give one, or remove it"));
    }
    let dns = section.read_all("dns", name_server)?;
    if let (Some(setting), true) = (section.setting("dns"), section.setting("namespace").is_some()) {
        return Err(setting.error(
            "sets the name servers of this host, but the interface is in another namespace; remove it, and write \
             /etc/netns/NAME/resolv.conf",
        ));
    }
    let namespace = section.read("namespace", |text| {
        let plain = !text.is_empty() && !text.contains('/') && text != "." && text != "..";
        if plain { Ok(text.to_owned()) } else { Err("give a name of `ip netns`".to_owned()) }
    })?;
    Ok(Inside {
        name: interface(settings)?,
        bridged: section.is_true("tap")?,
        namespace,
        addresses,
        routes,
        on_failure: on_failure.unwrap_or_default(),
        dns,
        mtu,
        queue: section.read("queue", words::number(1..=u32::MAX))?,
        segments: segments(settings)?,
    })
}

/// Section `[segments]`: control of the size of TCP segments.
fn segments(settings: &Settings) -> Result<Option<Sizer>, ConfigError> {
    let section = settings.section("segments");
    let sizer = section.read("sizer", |text| text.parse::<Sizer>().map_err(|why| format!("is {why}")))?;
    let usual = NetworkProperties::default();
    let network = NetworkProperties {
        frame: section.read("frame", words::number(16..=2_048))?.unwrap_or(usual.frame),
        headers: section.read("headers", words::number(0..=200))?.unwrap_or(usual.headers),
        least: section.read("least", words::number(1..=u16::MAX))?.unwrap_or(usual.least),
        most: section.read("most", words::number(1..=u16::MAX))?.unwrap_or(usual.most),
    };
    if let Some((key, setting)) = section.iter().next().filter(|_| sizer.is_none()) {
        return Err(setting
            .error(format!("is a parameter of `sizer`, which is missing; give `sizer`, or remove `{key}`")));
    }
    if let Some(setting) =
        section.setting("least").or(section.setting("most")).filter(|_| network.least > network.most)
    {
        return Err(setting.error(format!(
            "contradicts the other limit: minimum {}, maximum {}",
            network.least, network.most
        )));
    }
    if let Some(setting) =
        section.setting("sizer").filter(|_| settings.section("inside").is_true("tap").unwrap_or(false))
    {
        return Err(
            setting.error("needs IP packets on the interface, not Ethernet frames; remove it, or `tap`")
        );
    }
    Ok(sizer.map(|sizer| network.configure(&sizer)))
}

pub(super) fn interface(settings: &Settings) -> Result<String, ConfigError> {
    let name = settings.section("inside").read("tun", name_of_interface)?;
    Ok(name.unwrap_or_else(|| DEFAULT_NAME.to_owned()))
}

fn interface_address(text: &str) -> Result<(IpAddr, u8), String> {
    let (address, bits) = words::address(text)?;
    if address.is_unspecified() || address.is_multicast() {
        return Err("is not a valid interface address".to_owned());
    }
    Ok((address, bits))
}

/// True if the text is the address of a name server, or a search domain.
fn is_name_server(text: &str) -> bool {
    let plain = text.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-_.:".contains(&octet));
    !text.is_empty() && plain && !text.starts_with('-')
}

fn name_server(text: &str) -> Result<String, String> {
    if !is_name_server(text) {
        return Err("give the address of a name server, or a search domain".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses an interface name: at most 15 octets (IFNAMSIZ), without blanks, slashes and colons.
pub(super) fn name_of_interface(text: &str) -> Result<String, String> {
    let plain = text.bytes().all(|octet| octet.is_ascii_graphic() && !b"/:%".contains(&octet));
    if text.is_empty() || text.len() > 15 || !plain || text == "." || text == ".." {
        return Err("give the name of an interface: 1 to 15 letters and digits".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn seeing(settings: &Settings, surroundings: &Surroundings<'_>) -> Result<Seeing, ConfigError> {
    let section = settings.section("seeing");
    let http = section.read("http", loopback)?;
    let status = match section.read("status", |text| Ok(text == "none"))? {
        Some(true) => None,
        Some(false) => section.path("status")?,
        None => surroundings.runtime.as_ref().map(|folder| folder.join(STATUS_SOCKET)),
    };
    Ok(Seeing {
        status,
        http,
        pcap_inside: section.path("pcap_inside")?,
        pcap_outside: section.path("pcap_outside")?,
        billing_unit: section.read("billing_unit", words::number(0..=u32::MAX))?.unwrap_or(0),
    })
}

/// File name of the status socket in the folder of a tunnel below `/run`.
pub const STATUS_SOCKET: &str = "status.sock";

/// Parses an address of the page: a loopback address and a port, or `:` and a port.
pub fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = match text.strip_prefix(':').map(words::number(1..=u16::MAX)) {
        Some(port) => SocketAddr::from(([127, 0, 0, 1], port?)),
        None => {
            text.parse().map_err(|_| "write ADDRESS:PORT, as in 127.0.0.1:9464 or [::1]:9464".to_owned())?
        }
    };
    if !address.ip().is_loopback() {
        return Err(format!(
            "would expose the page, which has no access control; use 127.0.0.1:{}, and reach it by ssh -L or a \
             proxy",
            address.port()
        ));
    }
    Ok(address)
}

/// Returns whether the daemon uses offloads.
pub(super) fn offloads(settings: &Settings) -> Result<bool, ConfigError> {
    let section = settings.section("daemon");
    Ok(section.read("offloads", words::word(&[("on", true), ("off", false)]))?.unwrap_or(true))
}

/// Returns the user to which the daemon changes.
pub(super) fn user(settings: &Settings) -> Result<Option<String>, ConfigError> {
    settings.section("daemon").read("user", |text| {
        let plain = text.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet));
        if text.is_empty() || !plain {
            return Err("give the name of a user".to_owned());
        }
        Ok(text.to_owned())
    })
}
