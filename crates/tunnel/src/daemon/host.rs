//! Changes of a tunnel to its host: addresses, routes, routing rules and name servers, and their removal.
//!
//! Existing settings of others are never replaced. Routes of the configuration are in a separate table, which routing
//! rules select; the routes are removed with the interface, and the rules when the tunnel ends. Rules of a
//! killed tunnel are recognized by their protocol, and by the missing interface of their table.
//!
//! **Only the helper process calls these functions**, as it has the necessary rights
//! ([`helper`](super::helper)).

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use thinair_os::rule::{self, Family, MAIN_TABLE, PortRange, Rule, Selector};
use thinair_os::{Error, Interface, Namespace, Route};

use super::block;
use super::name_servers::NameServers;
use crate::config::masked;
use crate::site_config::{self, OnFailure};

/// Protocol of the rules of all tunnels (RTPROT_*, as `proto` of ip-rule(8)).
pub(super) const PROTOCOL: u8 = 116;

/// Priorities of rules: one for each tunnel, after rules of the administrator and before that of the main
/// table (32,766).
const PRIORITIES: std::ops::Range<u32> = 31_000..32_000;

/// The number of a tunnel's table is this plus the index of its interface.
const TABLES: u32 = 74_000_000;

/// An address or a network, and the length of its prefix in bits.
type Prefix = (IpAddr, u8);

/// Changes of one tunnel to its host.
#[derive(Debug)]
pub(super) struct Host {
    config: site_config::Inside,
    namespace: Option<Namespace>,
    names: NameServers,
    /// Name of the tunnel.
    name: String,
    carrier_ports: Option<PortRange>,
    set: Option<Set>,
}

/// An interface that is configured, and its routing rules.
#[derive(Debug)]
struct Set {
    interface: Interface,
    carrier_ports: Option<PortRange>,
    priority: u32,
    rules: Vec<Rule>,
}

impl Host {
    /// Removes leftovers of tunnels that have ended. `folder`: that of this tunnel below `/run`.
    pub(super) fn new(config: site_config::Inside, folder: Option<PathBuf>) -> Result<Self, Error> {
        let namespace = config.namespace.as_deref().map(Namespace::open).transpose()?;
        let name = folder.as_deref().and_then(tunnel_name).unwrap_or(&config.name).to_owned();
        let names = NameServers::new(folder);
        let host = Self { config, namespace, names, name, carrier_ports: None, set: None };
        host.block(None)?;
        host.names.restore();
        match host.within(remove_stale_rules) {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "routing rules of a tunnel that was killed are removed"),
            Err(error) if error.is_permission() => {}
            Err(error) => tracing::warn!(%error, "routing rules of earlier tunnels stay"),
        }
        Ok(host)
    }

    /// Runs `work` in the namespace of the interface.
    fn within<T: Send>(&self, work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
        match &self.namespace {
            Some(namespace) => namespace.within(work).and_then(|result| result),
            None => work(),
        }
    }

    fn block(&self, carrier_ports: Option<PortRange>) -> Result<(), Error> {
        block::block_in(self.namespace.as_ref(), &self.name, &self.config, carrier_ports)
    }

    /// Sets MTU, addresses and routes of the interface, and forgets those of its lost predecessor.
    /// `carrier_ports`: ports of the UDP sockets whose datagrams must not enter the tunnel.
    ///
    /// # Errors
    /// The system refuses a change. Changes made before it are undone.
    pub(super) fn set_up(&mut self, mtu: u16, carrier_ports: Option<PortRange>) -> Result<(), Error> {
        self.restore();
        self.carrier_ports = carrier_ports;
        self.block(carrier_ports)?;
        let config = &self.config;
        let interface = self.within(|| bring_up(config, mtu))?;
        let priority = self.within(free_priority)?;
        let carrier_ports = carrier_ports.filter(|_| self.namespace.is_none());
        self.set = Some(Set { interface, carrier_ports, priority, rules: Vec::new() });
        let config = self.config.clone();
        let done = self.set_routes(&config).and_then(|()| self.names.set(&config.name, &config.dns));
        if done.is_err() {
            self.restore();
        }
        done
    }

    /// Sets the MTU of the interface, in octets.
    pub(super) fn set_mtu(&self, mtu: u16) -> Result<(), Error> {
        let Some(Set { interface, .. }) = &self.set else { return Ok(()) };
        self.within(|| interface.set_mtu(mtu.into()))
    }

    /// Replaces addresses, routes and name servers by those of another configuration.
    ///
    /// # Errors
    /// The system refuses a change. Changes made before it are undone.
    pub(super) fn change(&mut self, to: site_config::Inside) -> Result<(), Error> {
        let before = self.config.clone();
        let site_config::Inside { addresses, routes, dns, .. } = to;
        let after = site_config::Inside { addresses, routes, dns, ..before.clone() };
        // Unreachable are those of both, so that there is no moment without either.
        block::block_both(self.namespace.as_ref(), &self.name, (&before, &after), self.carrier_ports)?;
        let done = self.replace(&before, &after);
        if done.is_ok() {
            self.config = after;
        } else if let Err(error) = self.replace(&after, &before) {
            tracing::warn!(%error, "a change that failed is not undone completely");
        }
        self.block(self.carrier_ports)?;
        done
    }

    /// Undoes all changes at the clean end of the tunnel, those for the case of its failure included.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.restore();
        match self.config.on_failure {
            OnFailure::Block => block::lift_in(self.namespace.as_ref(), &self.name).map(drop),
            OnFailure::Open => Ok(()),
        }
    }

    /// Changes the host from one configuration to another, of which some parts may be there already.
    fn replace(&mut self, before: &site_config::Inside, after: &site_config::Inside) -> Result<(), Error> {
        // At first, since without any address Linux removes the routes of the interface.
        self.add(after)?;
        self.remove_missing(before, after)?;
        // Some may be gone with the first address of their network.
        self.add(after)?;
        if before.dns != after.dns && self.set.is_some() {
            self.names.restore();
            self.names.set(&after.name, &after.dns)?;
        }
        Ok(())
    }

    /// Adds the addresses and routes of a configuration that are missing.
    fn add(&mut self, config: &site_config::Inside) -> Result<(), Error> {
        let Some(Set { interface, .. }) = &self.set else { return Ok(()) };
        self.within(|| config.addresses.iter().try_for_each(|&address| add_address(interface, address)))?;
        self.set_routes(config)
    }

    /// Removes the addresses and routes of `before` that `after` does not contain.
    fn remove_missing(&self, before: &site_config::Inside, after: &site_config::Inside) -> Result<(), Error> {
        let Some(Set { interface, .. }) = &self.set else { return Ok(()) };
        let unless_gone = |result: Result<(), Error>| match result {
            Err(error) if !is_gone(&error) => Err(error),
            _ => Ok(()),
        };
        self.within(|| {
            for &to in before.routes.iter().filter(|to| !after.routes.contains(to)) {
                unless_gone(interface.remove_route_in(TABLES + interface.index(), to))?;
            }
            for &(address, bits) in before.addresses.iter().filter(|one| !after.addresses.contains(one)) {
                unless_gone(interface.remove_address(address, bits))?;
            }
            Ok(())
        })
    }

    /// Sets the routes of a configuration, each with an address of it as source, and their rules.
    fn set_routes(&mut self, config: &site_config::Inside) -> Result<(), Error> {
        let Some(Set { interface, carrier_ports, priority, rules }) = &self.set else { return Ok(()) };
        let table = TABLES + interface.index();
        let wanted = rules_for(&config.routes, *priority, table, *carrier_ports);
        let keep = *rules == wanted;
        let changed = self.within(|| {
            for &to in &config.routes {
                let mut own = config.addresses.iter().map(|&(own, _)| own);
                let from = own.find(|own| own.is_ipv4() == to.0.is_ipv4());
                interface.set_route_in(table, &Route { to, from, mtu: 0, congestion: None })?;
            }
            if keep {
                return Ok(());
            }
            remove(rules);
            wanted.iter().try_for_each(Rule::add)
        });
        if let Some(set) = &mut self.set {
            set.rules = wanted;
        }
        changed
    }

    /// Undoes the changes that remain without the interface.
    pub(super) fn restore(&mut self) {
        self.names.restore();
        if let Some(Set { rules, .. }) = self.set.take() {
            let _ = self.within(|| {
                remove(&rules);
                Ok(())
            });
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Rules that make `routes`, in `table`, and the main table act as one table: the longest prefix is used, and
/// of two equal prefixes that of the tunnel. The carrier's own datagrams, from UDP ports `carrier_ports`, and
/// reverse path checks of datagrams received by it do not use the table.
pub(super) fn rules_for(
    routes: &[Prefix],
    priority: u32,
    table: u32,
    carrier_ports: Option<PortRange>,
) -> Vec<Rule> {
    let mut rules = Vec::new();
    for family in [Family::Ipv4, Family::Ipv6] {
        let of_family = routes.iter().filter(|(to, _)| to.is_ipv4() == (family == Family::Ipv4));
        let mut lengths: Vec<u8> = of_family.map(|&(_, bits)| bits).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths.dedup();
        for bits in lengths {
            let rule = |selector, table, suppress| Rule {
                family,
                priority,
                protocol: PROTOCOL,
                selector,
                table,
                suppress,
            };
            rules.push(rule(Selector::All, MAIN_TABLE, Some(bits)));
            let shorter = bits.checked_sub(1);
            match carrier_ports {
                Some(ports) => {
                    rules.push(rule(Selector::Forwarded, table, shorter));
                    rules.push(rule(Selector::NotFromUdpPorts(ports), table, shorter));
                }
                None => rules.push(rule(Selector::All, table, shorter)),
            }
        }
    }
    rules
}

/// Name of the tunnel with this folder below `/run`.
pub(super) fn tunnel_name(folder: &Path) -> Option<&str> {
    folder.file_name()?.to_str()
}

/// Sets the MTU and the addresses of an interface in this thread's namespace.
fn bring_up(config: &site_config::Inside, mtu: u16) -> Result<Interface, Error> {
    let interface = Interface::named(&config.name)?;
    // There is only one neighbor, so address resolution is useless.
    interface.quiet()?;
    interface.set_mtu(mtu.into())?;
    if let Some(queue) = config.queue {
        interface.set_queue(queue)?;
    }
    interface.up()?;
    config.addresses.iter().try_for_each(|&address| add_address(&interface, address))?;
    Ok(interface)
}

/// Adds an address to an interface, and a route to the network of the address, unless both exist.
fn add_address(interface: &Interface, (address, bits): Prefix) -> Result<(), Error> {
    // An address without a network may also be that of another interface (an unnumbered line).
    let is_whole = bits == if address.is_ipv4() { 32 } else { 128 };
    if let Some(other) = interface.other_with(address).filter(|_| !is_whole) {
        let what = format!("give `{}` the address {address}/{bits}, which `{other}` has", interface.name());
        return Err(Error::new(what, io::Error::other("choose one that is free")));
    }
    let unless_there = |result: Result<(), Error>| match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    };
    unless_there(interface.add_address(address, bits))?;
    let to = (masked(address, bits), bits);
    unless_there(interface.add_route(&Route { to, from: Some(address), mtu: 0, congestion: None }))
}

fn remove(rules: &[Rule]) {
    for rule in rules {
        match rule.remove() {
            Err(error) if !is_gone(&error) => tracing::warn!(%error, "a routing rule stays"),
            _ => {}
        }
    }
}

/// True if something cannot be removed because it does not exist.
fn is_gone(error: &Error) -> bool {
    // ESRCH, which has no `ErrorKind`, for routes; ENOENT for rules; EADDRNOTAVAIL for addresses.
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AddrNotAvailable)
        || error.raw_os_error() == Some(ESRCH)
}

/// errno(3) of a missing route.
const ESRCH: i32 = 3;

/// The first priority that no tunnel uses.
fn free_priority() -> Result<u32, Error> {
    let used = rule::of_protocol(PROTOCOL)?;
    let free = PRIORITIES.into_iter().find(|priority| used.iter().all(|rule| rule.priority != *priority));
    free.ok_or_else(|| Error::new("add routing rules: 1,000 tunnels have some", io::ErrorKind::QuotaExceeded))
}

/// Removes the rules of tunnels whose interfaces no longer exist. Returns their number.
pub(super) fn remove_stale_rules() -> Result<usize, Error> {
    let rules = rule::of_protocol(PROTOCOL)?;
    let there: Vec<u32> = Interface::indices()?.iter().map(|index| TABLES + index).collect();
    let stale: Vec<u32> = rules
        .iter()
        .filter(|rule| PRIORITIES.contains(&rule.priority))
        .filter(|rule| rule.table != MAIN_TABLE && !there.contains(&rule.table))
        .map(|rule| rule.priority)
        .collect();
    let stale: Vec<_> = rules.into_iter().filter(|rule| stale.contains(&rule.priority)).collect();
    let count = stale.len();
    stale.into_iter().try_for_each(rule::InstalledRule::remove)?;
    Ok(count)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::UdpSocket;

    use thinair_os::{Tun, TunKind};

    use super::*;

    fn prefixes(all: &[&str]) -> Vec<Prefix> {
        let prefix = |text: &&str| {
            let (address, bits) = text.split_once('/').unwrap();
            (address.parse().unwrap(), bits.parse().unwrap())
        };
        all.iter().map(prefix).collect()
    }

    /// Source of packets to an address, if there is a route.
    fn source(namespace: &Namespace, to: &str) -> Option<String> {
        let to: IpAddr = to.parse().unwrap();
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let own = || {
            let socket = UdpSocket::bind(any)?;
            socket.connect((to, 9))?;
            socket.local_addr()
        };
        namespace.within(own).unwrap().ok().map(|own| own.ip().to_string())
    }

    #[test]
    fn routes_stay_with_changed_addresses_and_what_fails_changes_nothing() {
        let namespace = match Namespace::create_unnamed() {
            Ok(namespace) => namespace,
            Err(error) if error.is_permission() => return println!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        };
        let _tuns = ["host0", "other0"].map(|name| Tun::open_in(&namespace, name, TunKind::Tun).unwrap());
        let other = || Interface::named("other0")?.add_address("10.7.0.1".parse().unwrap(), 24);
        namespace.within(other).unwrap().unwrap();
        let routes = ["10.30.0.0/16", "fd00:30::/32"];
        let config = site_config::Inside {
            name: "host0".to_owned(),
            bridged: false,
            namespace: Some(namespace.called()),
            addresses: prefixes(&["10.9.0.1/24", "fd00:9::1/64"]),
            routes: prefixes(&routes),
            on_failure: OnFailure::Open,
            dns: Vec::new(),
            mtu: None,
            queue: None,
            segments: None,
        };
        let mut host = Host::new(config.clone(), None).unwrap();
        let with = |addresses, routes| site_config::Inside { addresses, routes, ..config.clone() };
        host.set_up(1_400, None).unwrap();
        let sources = || ["10.30.1.1", "fd00:30::1"].map(|to| source(&namespace, to));
        let are = |four: &str, six: &str| [Some(four.to_owned()), Some(six.to_owned())];
        assert_eq!(sources(), are("10.9.0.1", "fd00:9::1"));
        // Another network, another address of the same network, and a further address.
        for (four, six, more) in [
            ("10.8.0.1", "fd00:8::1", "fd00:5::1/64"),
            ("10.8.0.2", "fd00:8::2", "fd00:5::1/64"),
            ("10.8.0.2", "fd00:8::2", "10.5.0.1/24"),
            ("10.4.0.1", "fd00:8::2", "10.8.0.2/24"),
        ] {
            let addresses = prefixes(&[&format!("{four}/24"), &format!("{six}/64"), more]);
            host.change(with(addresses, prefixes(&routes))).unwrap();
            assert_eq!(sources(), are(four, six));
        }
        // The second address is that of another interface.
        for _ in 0..2 {
            let taken = prefixes(&["10.3.0.1/24", "10.7.0.1/24"]);
            assert!(host.change(with(taken, prefixes(&["10.30.0.0/16", "10.31.0.0/16"]))).is_err());
            assert_eq!(sources(), are("10.4.0.1", "fd00:8::2"));
            assert_eq!([source(&namespace, "10.31.1.1"), source(&namespace, "10.3.0.9")], [None, None]);
        }
        host.change(with(prefixes(&["10.9.0.1/24"]), prefixes(&["10.31.0.0/16"]))).unwrap();
        assert_eq!(source(&namespace, "10.31.1.1").as_deref(), Some("10.9.0.1"));
        assert_eq!(sources(), [None, None]);
    }

    #[test]
    fn longer_prefixes_of_either_table_are_looked_up_first() {
        let prefix = |text: &str, bits| (text.parse().unwrap(), bits);
        let routes = [prefix("0.0.0.0", 0), prefix("10.0.0.0", 8), prefix("11.0.0.0", 8), prefix("::", 0)];
        let rules = rules_for(&routes, 31_000, 9, None);
        let shown: Vec<_> = rules.iter().map(|rule| (rule.family, rule.table, rule.suppress)).collect();
        let (four, six, main) = (Family::Ipv4, Family::Ipv6, MAIN_TABLE);
        assert_eq!(
            shown,
            [
                (four, main, Some(8)),
                (four, 9, Some(7)),
                (four, main, Some(0)),
                (four, 9, None),
                (six, main, Some(0)),
                (six, 9, None),
            ]
        );
    }

    #[test]
    fn datagrams_of_the_carrier_stay_outside_and_those_of_others_do_not() {
        let rules = rules_for(&[("0.0.0.0".parse().unwrap(), 0)], 31_000, 9, Some((7_000, 7_001)));
        let selectors: Vec<_> = rules.iter().map(|rule| rule.selector).collect();
        assert_eq!(
            selectors,
            [Selector::All, Selector::Forwarded, Selector::NotFromUdpPorts((7_000, 7_001))]
        );
    }
}
