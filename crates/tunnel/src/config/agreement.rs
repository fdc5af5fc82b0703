//! Settings that must be equal at both ends, since nothing is negotiated.

use std::collections::BTreeMap;
use std::fmt;

use thinair_rohc::ProfileId;
use thinair_ule::Pid;

use super::suite_name;
use crate::mtu::Budget;
use crate::site_config::{Carrier, Framing, Others, Packaging, Security, SiteConfig};
use crate::unit::SiteId;

/// A setting that must be equal at both ends, and is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Name of the setting, by its key: `[channel] max_cid`.
    pub what: String,
    /// Value at this end.
    pub here: String,
    /// Value at the other end.
    pub there: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the ends disagree on {}: {} here, {} there", self.what, self.here, self.there)
    }
}

/// Returns the settings that differ and must not.
pub fn disagreements(here: &SiteConfig, there: &SiteConfig) -> Vec<Disagreement> {
    let mut found = Vec::new();
    for ((what, mine), (_, theirs)) in facts(here).into_iter().zip(facts(there)) {
        let (Some(mine), Some(theirs)) = (mine, theirs) else { continue };
        if mine != theirs {
            found.push(Disagreement { what: what.to_owned(), here: mine, there: theirs });
        }
    }
    match (&here.others, &there.others) {
        (Others::Mesh(_), Others::Mesh(_)) => meshes(here, there, &mut found),
        (Others::Peers(_), Others::Peers(_)) => pairs(here, there, &mut found),
        // Reported already.
        (Others::Mesh(_), Others::Peers(_)) | (Others::Peers(_), Others::Mesh(_)) => {}
    }
    found
}

/// Settings that are equal at all ends, in a fixed order; `None` if this end leaves one open.
fn facts(config: &SiteConfig) -> [(&'static str, Option<String>); 13] {
    let channel = &config.channel;
    let profiles: Vec<_> = channel.profiles.iter().map(ProfileId::name).collect();
    // The default depends on the MTU.
    let mrru = Budget::of(config).map(|budget| budget.mrru).ok();
    let (framing, speed) = match &config.carrier {
        Carrier::Serial { framing, crc, speed, .. } => {
            let framing = match framing {
                Framing::Slip => "slip",
                Framing::Cobs => "cobs",
            };
            let crc = if *crc { "with CRC-32" } else { "without CRC" };
            (Some(format!("{framing} {crc}")), speed.map(|speed| speed.to_string()))
        }
        Carrier::Udp { .. } | Carrier::File { .. } => (None, None),
    };
    [
        ("the carrier", Some(kind(&config.carrier).to_owned())),
        ("[inside] tap", Some(config.inside.bridged.to_string())),
        ("[carrier] framing", framing),
        ("[carrier] speed", speed),
        ("[security]", Some(security(&config.security).to_owned())),
        ("the kind of keys", kind_of_keys(config).map(str::to_owned)),
        ("[channel] cid", Some(channel.cids_name().to_owned())),
        ("[channel] max_cid", Some(channel.large_max_cid.unwrap_or(channel.max_cid).to_string())),
        ("[channel] profiles", Some(profiles.join(","))),
        ("[channel] mrru", mrru.map(|mrru| mrru.to_string())),
        ("[channel] by_type", Some(channel.by_type.to_string())),
        ("[channel] coap_template", Some(bases(config))),
        ("[mesh]", Some(mesh(&config.others).to_owned())),
    ]
}

fn kind(carrier: &Carrier) -> &'static str {
    match carrier {
        Carrier::Udp { packaging, .. } | Carrier::File { packaging, .. } => match packaging {
            Packaging::Packed => "packets on UDP",
            Packaging::Ts { .. } => "transport streams",
            Packaging::Gse { .. } => "GSE",
        },
        Carrier::Serial { .. } => "a serial line",
    }
}

fn security(security: &Security) -> &'static str {
    match security {
        Security::Key { suite, .. } => suite_name(*suite),
        Security::Open => "open",
        Security::Insecure => "insecure",
    }
}

/// Kind of the keys of an end with a single peer; `None` if there are several, or both kinds.
fn kind_of_keys(config: &SiteConfig) -> Option<&'static str> {
    let (Security::Key { path, .. }, Others::Peers(peers)) = (&config.security, &config.others) else {
        return None;
    };
    let [peer] = &peers[..] else { return None };
    match (path.is_some() || peer.key.is_some(), peer.public_key.is_some()) {
        (true, false) => Some("a shared key"),
        (false, true) => Some("public keys"),
        (true, true) | (false, false) => None,
    }
}

fn mesh(others: &Others) -> &'static str {
    match others {
        Others::Peers(_) => "peers",
        Others::Mesh(mesh) if mesh.feedback => "a mesh with feedback",
        Others::Mesh(_) => "a mesh without feedback",
    }
}

/// Number of bases, and a hash of their debug text (FNV-1a).
fn bases(config: &SiteConfig) -> String {
    let bases = &config.channel.bases;
    if bases.is_empty() {
        return "none".to_owned();
    }
    let hash = format!("{bases:?}").bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    format!("{} bases, {hash:016x}", bases.len())
}

/// Compares the sites: each must have the same PID at both ends, and every sender must be known at the other
/// end.
fn meshes(here: &SiteConfig, there: &SiteConfig, found: &mut Vec<Disagreement>) {
    let (own, others) = (own(here), own(there));
    if own.is_some() && own == others {
        let number = own.map(|own| own.number().to_string()).unwrap_or_default();
        let what = "[mesh] own, which must differ".to_owned();
        found.push(Disagreement { what, here: number.clone(), there: number });
        return;
    }
    let (mine, theirs) = (sites(here), sites(there));
    for id in mine.keys().chain(theirs.keys().filter(|id| !mine.contains_key(id))) {
        let sends = [own, others].contains(&Some(*id));
        let (a, b) = (mine.get(id), theirs.get(id));
        if a != b && (sends || (a.is_some() && b.is_some())) {
            let setting = |pid: Option<&Option<Pid>>| pid.map_or("not known".to_owned(), |pid| shown(*pid));
            let what = format!("site {}", id.number());
            found.push(Disagreement { what, here: setting(a), there: setting(b) });
        }
    }
}

fn own(config: &SiteConfig) -> Option<SiteId> {
    match &config.others {
        Others::Mesh(mesh) => mesh.own,
        Others::Peers(_) => None,
    }
}

/// Returns the sites of an end, including itself, with their PIDs.
fn sites(config: &SiteConfig) -> BTreeMap<SiteId, Option<Pid>> {
    let Others::Mesh(mesh) = &config.others else { return BTreeMap::new() };
    let others = mesh.sites.iter().map(|site| (site.id, site.pid));
    others.chain(mesh.own.map(|own| (own, pid(&config.carrier)))).collect()
}

/// Compares the PIDs and NPAs with which each end sends with those that the other one receives.
fn pairs(here: &SiteConfig, there: &SiteConfig, found: &mut Vec<Disagreement>) {
    let heard = |config: &SiteConfig, sent: Pid| match &config.others {
        Others::Peers(peers) if peers.iter().any(|peer| peer.pid == Some(sent)) => None,
        Others::Peers(peers) => {
            let pids: Vec<_> = peers.iter().map(|peer| shown(peer.pid)).collect();
            Some(format!("heard {}", pids.join(", ")))
        }
        Others::Mesh(_) => None,
    };
    let (Some(mine), Some(theirs)) = (pid(&here.carrier), pid(&there.carrier)) else { return };
    if let Some(heard) = heard(there, mine) {
        let what = "the PID from here to there".to_owned();
        found.push(Disagreement { what, here: format!("sent on PID {mine}"), there: heard });
    }
    if let Some(heard) = heard(here, theirs) {
        let what = "the PID from there to here".to_owned();
        found.push(Disagreement { what, here: heard, there: format!("sent on PID {theirs}") });
    }
}

fn pid(carrier: &Carrier) -> Option<Pid> {
    match carrier {
        Carrier::Udp { packaging: Packaging::Ts { pid, .. }, .. }
        | Carrier::File { packaging: Packaging::Ts { pid, .. }, .. } => Some(*pid),
        _ => None,
    }
}

fn shown(pid: Option<Pid>) -> String {
    pid.map_or("known".to_owned(), |pid| format!("on PID {pid}"))
}
