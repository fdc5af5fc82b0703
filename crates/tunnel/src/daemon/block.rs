//! Networks of a tunnel that stay unreachable where it fails: `on_failure = "block"`.
//!
//! From before the start of a tunnel, unreachable routes lie below its own: in a table of their own, with rules behind those
//! of all tunnels. The tunnel's routes vanish with its interface, that is with its process; these stay until a clean end,
//! or [`lift`]. They need no process, and hold for networks that the tunnel routes at a failed reload, too.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use thinair_os::rule::{self, Family, MAIN_TABLE, PortRange};
use thinair_os::unreachable::{self, Prefix};
use thinair_os::{Error, Namespace};

use super::host::{PROTOCOL, rules_for};
use crate::site_config::{Inside, OnFailure, has_all};

/// Priorities of rules: one for each tunnel, and another one for a moment while they change. After those of the routes of
/// all tunnels, before that of the main table (32,766).
const PRIORITIES: std::ops::Range<u32> = 32_000..32_760;

/// First number of tables. That of a tunnel follows from its name, so that another process finds it: 24 bits.
const TABLES: u32 = 80_000_000;

/// Makes the networks of a tunnel unreachable below its routes, if it is configured so. `carrier_ports`: ports of the
/// UDP sockets whose datagrams are excepted.
///
/// # Errors
/// The namespace does not exist, or the system refuses it (CAP_NET_ADMIN).
pub fn block(name: &str, inside: &Inside, carrier_ports: Option<PortRange>) -> Result<(), Error> {
    let namespace = inside.namespace.as_deref().map(Namespace::open).transpose()?;
    block_in(namespace.as_ref(), name, inside, carrier_ports)
}

/// [`block`] in a namespace that is open already.
pub(super) fn block_in(
    namespace: Option<&Namespace>,
    name: &str,
    inside: &Inside,
    carrier_ports: Option<PortRange>,
) -> Result<(), Error> {
    match inside.on_failure {
        OnFailure::Open => Ok(()),
        OnFailure::Block => set(namespace, name, &networks(&inside.routes), carrier_ports),
    }
}

/// Makes the networks of two configurations of a tunnel unreachable, while one replaces the other.
pub(super) fn block_both(
    namespace: Option<&Namespace>,
    name: &str,
    (before, after): (&Inside, &Inside),
    carrier_ports: Option<PortRange>,
) -> Result<(), Error> {
    if after.on_failure == OnFailure::Open {
        return Ok(());
    }
    let both: Vec<_> = before.routes.iter().chain(&after.routes).copied().collect();
    set(namespace, name, &networks(&both), carrier_ports)
}

/// Makes the networks of a tunnel reachable again. Returns the number of routing rules removed.
///
/// # Errors
/// The namespace does not exist, or the system refuses it (CAP_NET_ADMIN).
pub fn lift(name: &str, namespace: Option<&str>) -> Result<usize, Error> {
    lift_in(namespace.map(Namespace::open).transpose()?.as_ref(), name)
}

/// [`lift`] in a namespace that is open already.
pub(super) fn lift_in(namespace: Option<&Namespace>, name: &str) -> Result<usize, Error> {
    let table = table_of(name);
    within(namespace, || {
        let ours = priorities_of(table)?;
        let rules = rule::of_protocol(PROTOCOL)?.into_iter().filter(|rule| ours.contains(&rule.priority));
        let rules: Vec<_> = rules.collect();
        let count = rules.len();
        rules.into_iter().try_for_each(rule::InstalledRule::remove)?;
        for to in unreachable::of_table(table)? {
            unreachable::remove(table, to)?;
        }
        Ok(count)
    })
}

fn set(
    namespace: Option<&Namespace>,
    name: &str,
    networks: &[Prefix],
    carrier_ports: Option<PortRange>,
) -> Result<(), Error> {
    let table = table_of(name);
    // The carrier is in the namespace of the daemon.
    let carrier_ports = carrier_ports.filter(|_| namespace.is_none());
    within(namespace, || {
        for &to in networks {
            match unreachable::add(table, to) {
                // Without IPv6 nothing leaves by it.
                Err(error) if to.0.is_ipv6() && error.kind() == io::ErrorKind::Unsupported => {}
                result => result?,
            }
        }
        let before = priorities_of(table)?;
        let used = rule::of_protocol(PROTOCOL)?;
        let is_free = |priority: &u32| used.iter().all(|rule| rule.priority != *priority);
        let full =
            || Error::new("add routing rules: too many tunnels have some", io::ErrorKind::QuotaExceeded);
        let priority = PRIORITIES.into_iter().find(is_free).ok_or_else(full)?;
        let wanted = rules_for(networks, priority, table, carrier_ports);
        for rule in &wanted {
            match rule.add() {
                Err(error) if rule.family == Family::Ipv6 && error.kind() == io::ErrorKind::Unsupported => {}
                result => result?,
            }
        }
        // Only now, so that there is no moment without them.
        for rule in used.into_iter().filter(|rule| before.contains(&rule.priority)) {
            rule.remove()?;
        }
        for to in unreachable::of_table(table)?.into_iter().filter(|to| !networks.contains(to)) {
            unreachable::remove(table, to)?;
        }
        Ok(())
    })
}

/// The networks that become unreachable: those of the routes. If they have all addresses of one version of IP, also all
/// of the other one, which would leave in clear.
fn networks(routes: &[Prefix]) -> Vec<Prefix> {
    let mut networks: Vec<Prefix> = Vec::new();
    for route in routes {
        if !networks.contains(route) {
            networks.push(*route);
        }
    }
    let [four, six] = has_all(routes);
    match (four, six) {
        (true, false) => networks.push((Ipv6Addr::UNSPECIFIED.into(), 0)),
        (false, true) => networks.push((Ipv4Addr::UNSPECIFIED.into(), 0)),
        (true, true) | (false, false) => {}
    }
    networks
}

/// Priorities of the rules for this table.
fn priorities_of(table: u32) -> Result<Vec<u32>, Error> {
    let rules = rule::of_protocol(PROTOCOL)?;
    let ours = rules.iter().filter(|rule| rule.table != MAIN_TABLE && rule.table == table);
    Ok(ours.map(|rule| rule.priority).collect())
}

/// Number of the table of a tunnel: 24 bits of FNV-1a of its name.
fn table_of(name: &str) -> u32 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, octet| (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193));
    TABLES + ((hash >> 24) ^ (hash & 0x00ff_ffff))
}

fn within<T: Send>(
    namespace: Option<&Namespace>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    match namespace {
        Some(namespace) => namespace.within(work)?,
        None => work(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn prefixes(texts: &[&str]) -> Vec<Prefix> {
        let prefix = |text: &&str| {
            let (address, bits) = text.split_once('/').unwrap();
            (address.parse().unwrap(), bits.parse().unwrap())
        };
        texts.iter().map(prefix).collect()
    }

    #[test]
    fn all_of_one_version_of_ip_blocks_the_other_one_too() {
        for (routes, blocked) in [
            (&["0.0.0.0/0"][..], &["0.0.0.0/0", "::/0"][..]),
            (&["::/0"], &["::/0", "0.0.0.0/0"]),
            (&["0.0.0.0/1", "128.0.0.0/1"], &["0.0.0.0/1", "128.0.0.0/1", "::/0"]),
            (&["0.0.0.0/1", "::/1", "8000::/1"], &["0.0.0.0/1", "::/1", "8000::/1", "0.0.0.0/0"]),
            (&["0.0.0.0/0", "::/0", "0.0.0.0/0"], &["0.0.0.0/0", "::/0"]),
            (&["10.0.0.0/8", "128.0.0.0/1"], &["10.0.0.0/8", "128.0.0.0/1"]),
            (&[], &[]),
        ] {
            assert_eq!(networks(&prefixes(routes)), prefixes(blocked), "{routes:?}");
        }
    }

    #[test]
    fn tunnels_have_tables_of_their_own() {
        let tables = ["sat", "air0", "air1", "thinair0", "thinair0-2"].map(table_of);
        for (number, table) in tables.iter().enumerate() {
            assert!((TABLES..TABLES + (1 << 24)).contains(table));
            assert!(!tables[..number].contains(table));
        }
    }
}
