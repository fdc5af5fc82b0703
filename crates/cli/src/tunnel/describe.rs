//! Description of a plan, which `check` prints.

use std::net::IpAddr;

use serde_json::{Value, json};
use thinair_rohc::ProfileId;
use thinair_tunnel::config::suite_name;
use thinair_tunnel::idle::IdleBudget;
use thinair_tunnel::mtu::Budget;
use thinair_tunnel::site_config::{
    Carrier, Framing, HoldRule, Inside, OnFailure, Others, Packaging, Security, SiteConfig, TotalLength,
    has_all,
};
use thinair_wire::header::protocol;

/// Returns a plan as lines of a label and a text.
pub(super) fn rows(plan: &SiteConfig) -> Vec<(&'static str, String)> {
    let inside = &plan.inside;
    let mut rows = vec![("interface", interface(plan)), ("addresses", networks(&inside.addresses))];
    if !inside.routes.is_empty() {
        let blocked = match inside.on_failure {
            OnFailure::Open => "",
            OnFailure::Block => "; unreachable when the tunnel fails, until it ends",
        };
        rows.push(("routes", networks(&inside.routes) + blocked));
    }
    rows.push(("carrier", carrier(&plan.carrier)));
    rows.push(("security", security(plan)));
    rows.push(("channel", channel(plan)));
    rows.extend(others(plan));
    rows.extend(plan.idle.map(|idle| ("idle", idle_budget(&idle))));
    rows.extend(plan.hold.iter().map(|rule| ("hold", hold(rule))));
    if let Some(status) = &plan.seeing.status {
        rows.push(("status", status.display().to_string()));
    }
    if let Some(http) = plan.seeing.http {
        rows.push(("page", format!("http://{http}/")));
    }
    if let Some(user) = &plan.user {
        rows.push(("user", user.clone()));
    }
    rows
}

fn idle_budget(idle: &IdleBudget) -> String {
    let IdleBudget { octets, wanted, keepalive } = idle;
    format!(
        "at most {octets} octets a day, keepalive every {:.0} s, wanted {wanted:?}",
        keepalive.as_secs_f64()
    )
}

fn hold(rule: &HoldRule) -> String {
    let HoldRule { dst_port, protocol, dscp, time } = rule;
    let protocol = match protocol {
        Some(protocol::UDP) => "UDP",
        Some(_) => "UDP-Lite",
        None => "UDP and UDP-Lite",
    };
    let port = dst_port.map(|port| format!(" to port {port}")).unwrap_or_default();
    let dscp = dscp.map(|dscp| format!(" with DSCP {dscp}")).unwrap_or_default();
    format!("{protocol}{port}{dscp} for at most {time:?}")
}

fn interface(plan: &SiteConfig) -> String {
    let inside = &plan.inside;
    let mut text = format!("{} ({})", inside.name, if inside.bridged { "TAP" } else { "TUN" });
    if let Some(namespace) = &inside.namespace {
        text += &format!(" in namespace {namespace}");
    }
    if let Some(mtu) = inside.mtu {
        text += &format!(", MTU {mtu}");
    }
    text
}

fn networks(list: &[(IpAddr, u8)]) -> String {
    let texts: Vec<_> = list.iter().map(|(address, bits)| format!("{address}/{bits}")).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

fn carrier(carrier: &Carrier) -> String {
    match carrier {
        Carrier::Udp { packaging, listen, group, ttl, mtu, rtp } => {
            let mut text = format!("{} on UDP, listens on {listen}", packed(packaging));
            if let Some((group, iface)) = group {
                text += &format!(", group {group}, TTL {ttl}");
                text += &iface.as_ref().map(|iface| format!(" by {iface}")).unwrap_or_default();
            }
            let rtp = if *rtp { ", RTP in front" } else { "" };
            format!("{text}, IP packets of at most {mtu} octets{rtp}")
        }
        Carrier::Serial { path, speed, framing, crc, mtu } => {
            let speed = speed.map_or("as it is set".to_owned(), |speed| format!("{speed} bit/s"));
            let framing = match framing {
                Framing::Slip => "SLIP",
                Framing::Cobs => "COBS",
            };
            let crc = if *crc { "CRC-32" } else { "no CRC" };
            format!(
                "serial line {}, {speed}, {framing}, {crc}, frames of at most {mtu} octets",
                path.display()
            )
        }
        Carrier::File { packaging, from, to } => {
            let from = from.as_ref().map(|path| format!("from {}", path.display()));
            let to = to.as_ref().map(|path| format!("to {}", path.display()));
            let ways: Vec<_> = from.into_iter().chain(to).collect();
            format!("{}, {}", packed(packaging), ways.join(" and "))
        }
    }
}

fn packed(packaging: &Packaging) -> String {
    match packaging {
        Packaging::Packed => "packets".to_owned(),
        Packaging::Ts { pid, per_datagram, flush, psi, bitrate, npa } => {
            let mut text =
                format!("ULE, PID {pid}, {per_datagram} TS Packets at most, flushed after {flush:?}");
            text += &psi.map(|psi| format!(", PAT and PMT every {psi:?}")).unwrap_or_default();
            text += &bitrate.map(|rate| format!(", {rate} bit/s")).unwrap_or_default();
            text + &npa.map(|npa| format!(", NPA {npa}")).unwrap_or_default()
        }
        Packaging::Gse { flush, npa, total_length, divided } => {
            let npa = npa.map(|npa| format!(", NPA {npa}")).unwrap_or_default();
            let ignored = if *total_length == TotalLength::Ignored { ", Total_Length ignored" } else { "" };
            let divided = if *divided { ", BBFrames in several datagrams" } else { "" };
            format!("GSE, flushed after {flush:?}{npa}{ignored}{divided}")
        }
    }
}

fn security(plan: &SiteConfig) -> String {
    match &plan.security {
        Security::Key { suite, negotiates, .. } => {
            let or = if *negotiates { " (aes-gcm if both processors have AES)" } else { "" };
            let shared = plan.common_key_file().map(|path| format!("key file {}", path.display()));
            let private = plan.private_key_file().map(|path| format!("private key file {}", path.display()));
            let mut files: Vec<_> = private.into_iter().chain(shared).collect();
            if files.is_empty() {
                files.push("a key file for each peer".to_owned());
            }
            format!("{}{or}, tag of {} octets, {}", suite_name(*suite), suite.tag(), files.join(", "))
        }
        Security::Open => "open: the standard format, not encrypted".to_owned(),
        Security::Insecure => "none: anybody who can send a datagram can send packets".to_owned(),
    }
}

fn channel(plan: &SiteConfig) -> String {
    let channel = &plan.channel;
    let profiles: Vec<_> = channel.profiles.iter().map(ProfileId::name).collect();
    format!(
        "{}-mode, {} CIDs to {}, profiles {}",
        channel.mode.letter(),
        channel.cids_name(),
        channel.large_max_cid.unwrap_or(channel.max_cid),
        profiles.join(", ")
    )
}

/// Sources that a peer or site may send from.
fn allowed(list: &[(IpAddr, u8)], inside: &Inside) -> String {
    match (inside.bridged, list) {
        (true, _) => String::new(),
        (false, []) => format!(", allowed {} by [inside]", networks(&inside.sources())),
        (false, list) => format!(", allowed {}", networks(list)),
    }
}

/// Largest number of peers that are shown.
const SHOWN: usize = 64;

fn others(plan: &SiteConfig) -> Vec<(&'static str, String)> {
    match &plan.others {
        Others::Peers(peers) => {
            let peer = |peer: &thinair_tunnel::site_config::Peer| {
                let mut text = peer.name.clone();
                text += &peer.address.map(|address| format!(" at {address}")).unwrap_or_default();
                text += &peer.pid.map(|pid| format!(", PID {pid}")).unwrap_or_default();
                text += &allowed(&peer.allowed, &plan.inside);
                if let Some(public) = &peer.public_key {
                    text += &format!(", public key {}", public.key);
                }
                if let Some(key) = &peer.key {
                    text += &format!(", key file {}", key.display());
                }
                ("peer", text)
            };
            let mut rows: Vec<_> = peers.iter().take(SHOWN).map(peer).collect();
            if let Some(more) = peers.len().checked_sub(SHOWN).filter(|more| *more > 0) {
                rows.push(("peer", format!("and {more} more (--json has all of them)")));
            }
            rows
        }
        Others::Mesh(mesh) => {
            let own = mesh.own.map_or("only receives".to_owned(), |own| format!("is site {}", own.number()));
            let to = mesh.to.filter(|_| mesh.own.is_some());
            let to = to.map(|to| format!(", sends to {to}")).unwrap_or_default();
            let feedback = if mesh.feedback { ", with feedback" } else { "" };
            let mut rows = vec![("mesh", format!("this end {own}{to}{feedback}"))];
            rows.extend(mesh.sites.iter().map(|site| {
                let mut text = format!("{} ({})", site.id.number(), site.name);
                text += &site.pid.map(|pid| format!(", PID {pid}")).unwrap_or_default();
                text += &site.npa.map(|npa| format!(", NPA {npa}")).unwrap_or_default();
                text += &allowed(&site.allowed, &plan.inside);
                ("site", text)
            }));
            rows
        }
    }
}

/// Returns warnings about a plan that is valid and may be unintended.
pub(super) fn warnings(plan: &SiteConfig) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if plan.inside.on_failure == OnFailure::Open {
        match has_all(&plan.inside.routes) {
            [true, false] => notes.push(
                "all of IPv4 is routed through the tunnel, and nothing of IPv6, which leaves as before; route ::/0, too, \
                 or set `on_failure` to \"block\"",
            ),
            [false, true] => notes.push(
                "all of IPv6 is routed through the tunnel, and nothing of IPv4, which leaves as before; route 0.0.0.0/0, \
                 too, or set `on_failure` to \"block\"",
            ),
            [true, true] | [false, false] => {}
        }
    }
    let has_default = match &plan.others {
        Others::Peers(peers) => peers.iter().any(|peer| peer.allowed.is_empty()),
        Others::Mesh(mesh) => mesh.sites.iter().any(|site| site.allowed.is_empty()),
    };
    let inside = &plan.inside;
    if has_default && !inside.bridged && inside.addresses.is_empty() && inside.routes.is_empty() {
        notes.push(
            "without `address` and `route`, packets of the other end are accepted from any source; restrict them by \
             `allowed`",
        );
    }
    match &plan.security {
        Security::Insecure => notes.push(
            "insecure: nothing is encrypted or authenticated; anybody who can send a datagram here can send packets into \
             the network, and anybody on the path can read and change packets",
        ),
        Security::Open => notes.push(
            "open: packets are sent in the standard format, without encryption; every receiver can read them, and \
             anybody who can send to the same address can forge them",
        ),
        Security::Key { suite, .. } => {
            if suite.tag() == 4 {
                notes.push("a tag of 4 octets: one of 2^32 forged packets is accepted; keys are renewed after 65,536 wrong tags");
            }
            if matches!(plan.others, Others::Mesh(_)) {
                notes.push("all sites share one key: each can impersonate any other");
            }
        }
    }
    notes
}

/// Returns a note about ends without `allowed`, of whose packets some may be dropped.
fn default_sources(plan: &SiteConfig) -> Option<String> {
    let names: Vec<_> = match &plan.others {
        Others::Peers(peers) => {
            peers.iter().filter(|peer| peer.allowed.is_empty()).map(|peer| &peer.name).collect()
        }
        Others::Mesh(mesh) => {
            mesh.sites.iter().filter(|site| site.allowed.is_empty()).map(|site| &site.name).collect()
        }
    };
    let sources = plan.inside.sources();
    if plan.inside.bridged || names.is_empty() || has_all(&sources) == [true, true] {
        return None;
    }
    Some(format!(
        "packets of {} are dropped unless they come from {} (`address` and `route`) or a link-local address; list the \
         other networks behind it in `route`, or in `allowed`; \"any\" there allows all",
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        networks(&sources)
    ))
}

/// Returns [`warnings`], and notes for a reader of the configuration that a log need not repeat at every
/// start.
pub(super) fn notes(plan: &SiteConfig) -> Vec<String> {
    let mut notes: Vec<String> = warnings(plan).into_iter().map(str::to_owned).collect();
    notes.extend(default_sources(plan));
    if matches!(plan.security, Security::Key { .. }) && plan.channel.pad <= 1 {
        notes.push(
            "lengths of encrypted packets show how well their headers were compressed; `pad` hides that, for some octets \
             a packet"
                .to_owned(),
        );
    }
    notes
}

/// Returns a plan as JSON.
pub(super) fn to_json(plan: &SiteConfig) -> Value {
    let strings = |list: &[(IpAddr, u8)]| -> Vec<String> {
        list.iter().map(|(address, bits)| format!("{address}/{bits}")).collect()
    };
    let channel = &plan.channel;
    json!({
        "inside": {
            "tun": plan.inside.name,
            "tap": plan.inside.bridged,
            "namespace": plan.inside.namespace,
            "addresses": strings(&plan.inside.addresses),
            "routes": strings(&plan.inside.routes),
            "on_failure": match plan.inside.on_failure {
                OnFailure::Open => "open",
                OnFailure::Block => "block",
            },
            "mtu": plan.inside.mtu,
        },
        "carrier": carrier(&plan.carrier),
        "security": match &plan.security {
            Security::Key { suite, .. } => {
                let (file, private) = (plan.common_key_file(), plan.private_key_file());
                json!({ "suite": suite_name(*suite), "tag": suite.tag(), "key_file": file, "private_key_file": private })
            }
            Security::Open => json!({ "open": true }),
            Security::Insecure => json!({ "insecure": true }),
        },
        "channel": {
            "cid": channel.cids_name(),
            "max_cid": channel.large_max_cid.unwrap_or(channel.max_cid),
            "profiles": channel.profiles.iter().map(ProfileId::name).collect::<Vec<_>>(),
            "mode": channel.mode.letter(),
            "mrru": channel.mrru,
            "pad": channel.pad,
        },
        "others": others(plan).into_iter().map(|(_, text)| text).collect::<Vec<_>>(),
        "status": plan.seeing.status,
        "http": plan.seeing.http,
        "user": plan.user,
        "state": plan.state,
        "notes": notes(plan),
    })
}

/// Returns MTU, MRRU, and the overhead of each packet as JSON.
pub(super) fn budget_to_json(budget: &Budget) -> Value {
    let layers = budget.layers.iter().map(|layer| json!({ "name": layer.name, "octets": layer.octets }));
    json!({
        "mtu": budget.mtu,
        "mrru": budget.mrru,
        "segments": budget.is_cut,
        "overhead": budget.overhead(),
        "layers": layers.collect::<Vec<_>>(),
    })
}
