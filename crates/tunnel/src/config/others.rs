//! Sections `[[peer]]`, `[mesh]` and `[[site]]`: the other ends.

use std::net::{IpAddr, SocketAddr};

use thinair_session::{PEERS, PublicKey};
use thinair_ule::Pid;

use super::carrier::{self, CarrierSettings, Keepalive};
use super::fleet::{self, Clash};
use super::setting::{ConfigError, ConfiguredValue, SettingPlace};
use super::settings::{Settings, SettingsSection};
use super::{Surroundings, security, words};
use crate::site_config::{ALL_ADDRESSES, Mesh, Others, Packaging, Peer, PeerPublicKey, Security, Site};
use crate::unit::SiteId;

/// True if the sites are a mesh, with a single key.
pub(super) fn is_mesh(settings: &Settings) -> bool {
    settings.has("mesh") || settings.has("site")
}

/// True if sites of a mesh answer each other.
pub(super) fn has_feedback(settings: &Settings) -> Result<bool, ConfigError> {
    settings.section("mesh").is_true("feedback")
}

pub(super) fn others(
    settings: &Settings,
    carried: &mut CarrierSettings,
    security: &Security,
    surroundings: &Surroundings<'_>,
) -> Result<Others, ConfigError> {
    if !is_mesh(settings) {
        return peers(settings, carried, security, surroundings).map(Others::Peers);
    }
    if let Some(peer) = settings.sections("peer").first().and_then(|peer| peer.place.as_ref()) {
        return Err(ConfigError::at(peer, "[[peer]] and [mesh] exclude each other; remove one of them"));
    }
    mesh(settings, carried, security, surroundings).map(Others::Mesh)
}

fn peers(
    settings: &Settings,
    carried: &CarrierSettings,
    security: &Security,
    surroundings: &Surroundings<'_>,
) -> Result<Vec<Peer>, ConfigError> {
    let sections = settings.sections("peer");
    let mut peers = Vec::new();
    for (section, number) in sections.iter().zip(1..) {
        peers.push(peer(section, number, carried, surroundings)?);
    }
    if let Some(setting) = settings.section("security").setting("peers") {
        let fleet = settings.fleet().ok_or_else(|| setting.error("was not read"))?;
        peers.extend(fleet.peers(carried.keepalive));
        if peers.is_empty() {
            return Err(setting.error("has no peer; write a line for each: name, public key, networks"));
        }
    }
    if peers.is_empty() {
        peers.push(Peer {
            name: "peer".to_owned(),
            address: None,
            host: None,
            allowed: Vec::new(),
            key: None,
            public_key: None,
            keepalive: carried.keepalive.map(Keepalive::interval),
            learns_keepalive: carried.keepalive == Some(Keepalive::Learned),
            pid: None,
        });
    }
    let url = &carried.url;
    if let Some(to) = carried.to {
        match &mut peers[..] {
            [one] if one.address.is_none() => {
                one.address = Some(to);
                one.host = carrier::host(carried.url_rest());
            }
            _ => {
                return Err(url.error(format!(
                    "has the address {to}, but the peers have their own addresses; write {}:// and `listen`, as in \
                     listen = \"0.0.0.0:{}\"",
                    carried.scheme.name(),
                    to.port()
                )));
            }
        }
    }
    if carried.scheme.is_ts() {
        pids_of_peers(&mut peers, sections, carried)?;
    }
    let is_key = matches!(security, Security::Key { .. });
    if carried.is_multicast() && is_key {
        return Err(url.error(
            "is a multicast group, and a key of two ends does not suit many; write [mesh] with `own` and a [[site]] for \
             each other one",
        ));
    }
    let lost = peers.iter().position(|peer| peer.address.is_none());
    if let (Some(lost), true) = (lost, carried.scheme.is_udp() && !is_key) {
        let place = sections.get(lost).and_then(|section| section.place.as_ref());
        let (flag, key) = match security {
            Security::Open => ("--open", "open"),
            Security::Insecure | Security::Key { .. } => ("--insecure", "insecure"),
        };
        return Err(ConfigError::at(
            place.unwrap_or(&url.place),
            format!(
                "has no address of the other end, and {flag} (`{key}` in [security]) needs one: without a key, senders \
                 are not authenticated, so packets go to that address only; give HOST:PORT, or --key FILE instead of {flag}",
            ),
        ));
    }
    if peers.len() > 1 {
        several(&peers, settings, carried, is_key)?;
    }
    if let (Security::Key { path: None, .. }, Some(number)) =
        (security, peers.iter().position(|peer| peer.key.is_none() && peer.public_key.is_none()))
    {
        let place = sections.get(number).and_then(|section| section.place.as_ref());
        return Err(ConfigError::at(
            place.unwrap_or(&url.place),
            format!(
                "\"{}\" needs the public key of the other end; give --public-key KEY (`public_key` in [[peer]]), as \
                 `thinair tunnel keygen FILE` prints it there",
                peers[number].name
            ),
        ));
    }
    Ok(peers)
}

fn peer(
    section: &SettingsSection,
    number: usize,
    carried: &CarrierSettings,
    surroundings: &Surroundings<'_>,
) -> Result<Peer, ConfigError> {
    for key in ["address", "keepalive"] {
        if let (false, Some(setting)) = (carried.scheme.is_udp(), section.setting(key)) {
            return Err(setting.error(format!("{}:// has no addresses; remove it", carried.scheme.name())));
        }
    }
    if let (false, Some(setting)) = (carried.scheme.is_ts(), section.setting("pid")) {
        return Err(setting.error("PIDs apply to transport streams only; remove it"));
    }
    let address = match section.setting("address") {
        Some(setting) => Some(carrier::address(setting, setting.text()?, surroundings)?),
        None => None,
    };
    let is_none = |address: SocketAddr| {
        address.ip().is_unspecified() || address.ip().is_multicast() || address.port() == 0
    };
    if let (Some(setting), true) = (section.setting("address"), address.is_some_and(is_none)) {
        return Err(setting.error("is not the address of a peer; give the address and port of one host"));
    }
    let keepalive = section.read("keepalive", carrier::keepalive)?.or(carried.keepalive);
    let text = section.setting("address").map(ConfiguredValue::text).transpose()?;
    Ok(Peer {
        host: text.and_then(carrier::host),
        name: section.read("name", name)?.unwrap_or_else(|| format!("peer {number}")),
        address,
        allowed: allowed(section)?,
        key: section.setting("key").map(security::key_path).transpose()?,
        public_key: public_key(section)?,
        keepalive: keepalive.map(Keepalive::interval),
        learns_keepalive: keepalive == Some(Keepalive::Learned),
        pid: section.read("pid", carrier::pid)?,
    })
}

/// Returns the public key of a peer, and the secret that is shared with it besides.
fn public_key(section: &SettingsSection) -> Result<Option<PeerPublicKey>, ConfigError> {
    let psk = section.setting("psk");
    let Some(setting) = section.setting("public_key") else {
        return psk.map_or(Ok(None), |psk| {
            Err(psk
                .error("is used besides a public key, which is missing; give `public_key`, or `key` instead"))
        });
    };
    let wrong = "is not a public key; give the 44 characters that `thinair tunnel keygen FILE` prints at the other end";
    let key = PublicKey::parse(setting.text()?).ok_or_else(|| setting.error(wrong))?;
    let psk = psk.map(security::key_path).transpose()?;
    Ok(Some(PeerPublicKey { key, psk, at: setting.place.to_string() }))
}

/// Returns the networks of `allowed`.
fn allowed(section: &SettingsSection) -> Result<Vec<(IpAddr, u8)>, ConfigError> {
    let lists = section.read_all("allowed", |text| match text {
        "any" => Ok(ALL_ADDRESSES.to_vec()),
        _ => words::network(text).map(|network| vec![network]).map_err(|why| format!("{why}, or \"any\"")),
    })?;
    Ok(lists.concat())
}

/// Parses the name of a peer or site.
pub(super) fn name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 64 || text.chars().any(char::is_control) {
        return Err("give a name of 1 to 64 octets".to_owned());
    }
    Ok(text.to_owned())
}

/// Assigns PIDs to peers. In a multicast group all receive both directions, so the PIDs must differ.
fn pids_of_peers(
    peers: &mut [Peer],
    sections: &[SettingsSection],
    carried: &CarrierSettings,
) -> Result<(), ConfigError> {
    let url = &carried.url;
    let own = own_pid(carried);
    if carried.is_multicast() && (carried.pid.is_none() || carried.peer_pid.is_none()) && sections.is_empty()
    {
        return Err(url.error(
            "is a multicast group, in which all ends receive all datagrams; give each end a PID, as in \
             ?pid=0x40&peer-pid=0x41 here and ?pid=0x41&peer-pid=0x40 there",
        ));
    }
    for peer in &mut *peers {
        peer.pid = peer.pid.or(carried.peer_pid).or(own);
    }
    let same = peers.iter().any(|peer| peer.pid == own);
    if carried.is_multicast() && same {
        return Err(url.error(
            "is a multicast group, in which this end receives its own datagrams; give the other end a different PID \
             than this one",
        ));
    }
    Ok(())
}

fn own_pid(carried: &CarrierSettings) -> Option<Pid> {
    match &carried.carrier {
        crate::site_config::Carrier::Udp { packaging: Packaging::Ts { pid, .. }, .. }
        | crate::site_config::Carrier::File { packaging: Packaging::Ts { pid, .. }, .. } => Some(*pid),
        _ => None,
    }
}

/// Checks the requirements of several peers: each packet must be assignable to one of them.
fn several(
    peers: &[Peer],
    settings: &Settings,
    carried: &CarrierSettings,
    is_key: bool,
) -> Result<(), ConfigError> {
    let sections = settings.sections("peer");
    let place = |number: usize, key: &str| {
        let of_section = sections.get(number).and_then(|section| section.place_of(key)).cloned();
        let of_fleet = || settings.fleet()?.place(number.checked_sub(sections.len())?);
        of_section.or_else(of_fleet).unwrap_or_else(|| carried.url.place.clone())
    };
    if peers.len() > PEERS {
        return Err(ConfigError::at(
            &place(PEERS, "name"),
            format!(
                "\"{}\" is peer {}, and a hub has at most {PEERS}: divide them among several hubs, each with a port and a \
                 file of its own",
                peers[PEERS].name,
                PEERS + 1
            ),
        ));
    }
    if !carried.scheme.is_udp() {
        let what = format!("{}:// supports a single peer; remove the others", carried.scheme.name());
        return Err(ConfigError::at(&place(1, "name"), what));
    }
    for (number, peer) in peers.iter().enumerate() {
        if peer.allowed.is_empty() {
            return Err(ConfigError::at(
                &place(number, "allowed"),
                format!(
                    "\"{}\" needs `allowed`, the networks behind it, since there are several peers: packets to them \
                     are sent to this peer",
                    peer.name
                ),
            ));
        }
        if is_key && peer.key.is_none() && peer.public_key.is_none() {
            return Err(ConfigError::at(
                &place(number, "key"),
                format!(
                    "\"{}\" needs its own `key` or `public_key`, since there are several peers: with one key for all, each could \
                     impersonate any other",
                    peer.name
                ),
            ));
        }
    }
    let Some((number, other, clash)) = fleet::clash(peers) else { return Ok(()) };
    let (key, what) = match clash {
        Clash::Value(key, what) => (key, what.to_owned()),
        Clash::Networks(a, b) => (
            "allowed",
            format!(
                "have overlapping networks {}/{} and {}/{}; a packet can be sent to one of them only",
                a.0, a.1, b.0, b.1
            ),
        ),
    };
    Err(ConfigError::at(
        &place(number, key),
        format!("\"{}\" and \"{}\" {what}; see {}", peers[number].name, peers[other].name, place(other, key)),
    ))
}

fn mesh(
    settings: &Settings,
    carried: &mut CarrierSettings,
    security: &Security,
    surroundings: &Surroundings<'_>,
) -> Result<Mesh, ConfigError> {
    let section = settings.section("mesh");
    let sections = settings.sections("site");
    if !settings.has("mesh") {
        return Err(ConfigError::maybe_at(
            sections.first().and_then(|site| site.place.as_ref()),
            "is a site of a mesh, and [mesh] is missing; write it with `own`, the `id` of this site, or without \
             `own` if this site is a receiver only",
        ));
    }
    let at = |key: &str| section.place_of(key).cloned().unwrap_or_else(|| carried.url.place.clone());
    let place = at("own");
    if carried.scheme.is_serial() {
        return Err(ConfigError::at(&place, "a serial line supports a single peer; remove [mesh]"));
    }
    let own = section.read("own", site_id)?;
    let to = match section.setting("to") {
        Some(setting) => Some(carrier::address(setting, setting.text()?, surroundings)?),
        None => carried.to,
    };
    let feedback = section.is_true("feedback")?;
    if own.is_some() && to.is_none() && carried.scheme.is_udp() {
        return Err(ConfigError::at(
            &place,
            "a site that sends needs a destination; give the group or host in the carrier, or `to` in [mesh]",
        ));
    }
    if feedback && own.is_none() {
        return Err(ConfigError::at(
            &at("feedback"),
            "a receiver-only site cannot answer; give it a number with `own`, or remove `feedback`",
        ));
    }
    if feedback && carried.is_one_way() {
        return Err(ConfigError::at(&at("feedback"), "files allow no feedback; remove `feedback`"));
    }

    let mut sites = Vec::new();
    for section in sections {
        sites.push((site(section, carried)?, section));
    }
    distinct(&sites)?;
    let mine = sites.iter().position(|(site, _)| Some(site.id) == own).map(|index| sites.remove(index));
    if let Some((mine, _)) = &mine {
        carried.send_as(mine.pid, mine.npa);
    }
    let sends = own.is_some();
    let heard: Vec<_> = sites.iter().map(|(site, _)| site).collect();
    if heard.is_empty() && (!sends || feedback) {
        return Err(ConfigError::at(&place, "there are no senders; write a [[site]] for each other site"));
    }
    if carried.scheme.is_ts() {
        if let Some((site, section)) = sites.iter().find(|(site, _)| site.pid.is_none()) {
            let what = format!("\"{}\" needs a `pid`, which identifies its stream", site.name);
            return Err(ConfigError::maybe_at(section.place.as_ref(), what));
        }
        let own_pid = own_pid(carried).filter(|_| sends);
        if let Some((site, section)) = sites.iter().find(|(site, _)| site.pid == own_pid) {
            let at: &SettingPlace = section.place_of("pid").unwrap_or(&place);
            let what = format!(
                "\"{}\" has the PID of this site; give this one a `pid` in its [[site]], or in [carrier]",
                site.name
            );
            return Err(ConfigError::at(at, what));
        }
    }
    if matches!(security, Security::Open) {
        open_mesh(carried, &sites, mine.as_ref().map(|(site, _)| site), feedback, &place)?;
    }
    Ok(Mesh { own, to, feedback, sites: sites.into_iter().map(|(site, _)| site).collect() })
}

/// Checks the requirements of a mesh whose datagrams have no header with sender and destination.
fn open_mesh(
    carried: &CarrierSettings,
    sites: &[(Site, &SettingsSection)],
    mine: Option<&Site>,
    feedback: bool,
    place: &SettingPlace,
) -> Result<(), ConfigError> {
    if !carried.scheme.is_ts() && sites.len() > 1 {
        return Err(ConfigError::at(
            place,
            "GSE Packets do not identify their sender, so several sites are not possible; give a key, or use ule+udp:// \
             with a PID for each site",
        ));
    }
    let has_own = mine.is_some_and(|site| site.npa.is_some()) || has_npa(carried);
    if feedback && (!has_own || sites.iter().any(|(site, _)| site.npa.is_none())) {
        return Err(ConfigError::at(
            place,
            "feedback in an open mesh is sent to the NPA of a site; give each [[site]] an `npa`, such as \
             02:00:00:00:00:01, or remove `feedback`",
        ));
    }
    Ok(())
}

fn has_npa(carried: &CarrierSettings) -> bool {
    match &carried.carrier {
        crate::site_config::Carrier::Udp { packaging, .. }
        | crate::site_config::Carrier::File { packaging, .. } => {
            matches!(packaging, Packaging::Ts { npa: Some(_), .. } | Packaging::Gse { npa: Some(_), .. })
        }
        crate::site_config::Carrier::Serial { .. } => false,
    }
}

fn site_id(text: &str) -> Result<SiteId, String> {
    let number = words::number(1_u8..=255)(text)?;
    SiteId::new(number).ok_or_else(|| "give a number from 1 to 255".to_owned())
}

fn site(section: &SettingsSection, carried: &CarrierSettings) -> Result<Site, ConfigError> {
    let Some(id) = section.read("id", site_id)? else {
        let what = "has no `id`; give each site a number from 1 to 255";
        return Err(ConfigError::maybe_at(section.place.as_ref(), what));
    };
    if let (false, Some(setting)) = (carried.scheme.is_ts(), section.setting("pid")) {
        return Err(setting.error("PIDs apply to transport streams only; remove it"));
    }
    Ok(Site {
        id,
        name: section.read("name", name)?.unwrap_or_else(|| format!("site {}", id.number())),
        pid: section.read("pid", carrier::pid)?,
        npa: section.read("npa", carrier::unicast_npa)?,
        allowed: allowed(section)?,
    })
}

/// Checks that sites differ in the values that identify them.
fn distinct(sites: &[(Site, &SettingsSection)]) -> Result<(), ConfigError> {
    for (number, (site, section)) in sites.iter().enumerate() {
        for (earlier, other) in sites.iter().take(number) {
            let same = [
                ("id", site.id == earlier.id),
                ("name", site.name == earlier.name),
                ("pid", site.pid.is_some() && site.pid == earlier.pid),
                ("npa", site.npa.is_some() && site.npa == earlier.npa),
            ];
            let Some((key, _)) = same.iter().find(|(_, is_same)| *is_same) else { continue };
            let (Some(at), Some(first)) = (section.place_of(key), other.place_of(key)) else { continue };
            return Err(ConfigError::at(
                at,
                format!(
                    "\"{}\" and \"{}\" have the same `{key}`; give each its own; see {first}",
                    site.name, earlier.name
                ),
            ));
        }
    }
    Ok(())
}
