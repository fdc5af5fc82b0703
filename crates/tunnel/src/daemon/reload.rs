//! A new configuration for a running tunnel: possible changes are made without loss of packets, all others
//! are reported.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use thinair_os::clock;
use thinair_wire::time::Instant;

use super::control::{Answer, Verb};
use super::helper::{Late, Loaded, words};
use super::keys::SystemRandom;
use super::setup::{Daemon, RunError};
use crate::site_config::{KeyringError, Others, Peer, Security, SiteConfig, read_once};

impl Daemon {
    /// Serves clients of the control socket. Returns whether the daemon must end.
    pub(super) fn take_verbs(&mut self) -> bool {
        let Some(mut control) = self.control.take() else { return false };
        let mut ends = false;
        while let Some(verb) = control.accept() {
            match verb {
                Verb::Stop => {
                    control.answer(&Answer { ok: true, messages: vec!["the tunnel ends".to_owned()] });
                    ends = true;
                }
                Verb::Reload => {
                    if let Err(error) = self.helper.load() {
                        control.answer(&Answer { ok: false, messages: vec![words(&error)] });
                    }
                }
            }
        }
        self.control = Some(control);
        ends
    }

    /// Processes late answers of the helper.
    pub(super) fn take_late_answers(&mut self) -> Result<(), RunError> {
        loop {
            match self.helper.next_late() {
                Ok(Some(Late::Loaded(loaded))) => {
                    let answer = match loaded.and_then(|loaded| self.reload(&loaded)) {
                        Ok(messages) => Answer { ok: true, messages },
                        Err(wrong) => Answer { ok: false, messages: vec![wrong] },
                    };
                    for message in &answer.messages {
                        tracing::info!("reload: {message}");
                    }
                    if let Some(control) = &mut self.control {
                        control.answer(&answer);
                    }
                }
                Ok(Some(Late::Resolved(host, port, addresses))) => {
                    self.take_addresses(&host, port, &addresses);
                }
                Ok(None) => {}
                Err(_) => {
                    if let Some(socket) = self.helper.as_fd() {
                        self.events.remove(socket)?;
                    }
                    tracing::error!("the helper process is gone: routes and MTU stay as they are");
                    self.helper.end();
                }
            }
            if !self.helper.has_late() {
                return Ok(());
            }
        }
    }
}

/// Least time between two lookups of a peer's name.
const LOOK_UP_AGAIN: Duration = Duration::from_secs(15);

impl Daemon {
    /// Looks up the names of peers again that have problems.
    pub(super) fn look_up_peers(&mut self, now: Instant) {
        let Others::Peers(peers) = &self.config.others else { return };
        // Without host names, the peers of a large fleet are not searched.
        if !self.has_names {
            return;
        }
        for peer in peers {
            let Some((host, port)) = &peer.host else { continue };
            if !self.site.is_troubled(&peer.name) {
                continue;
            }
            let due = self.lookups.get(&peer.name).is_none_or(|at| *at + LOOK_UP_AGAIN <= now);
            if due {
                self.lookups.insert(peer.name.clone(), now);
                // Without the helper the address stays.
                let _ = self.helper.resolve(host, *port);
            }
        }
    }

    /// Applies the addresses of a name. A peer whose name is unknown keeps its address.
    fn take_addresses(&mut self, host: &str, port: u16, addresses: &[SocketAddr]) {
        let Others::Peers(peers) = &mut self.config.others else { return };
        for peer in
            peers.iter_mut().filter(|peer| peer.host.as_ref().is_some_and(|(h, p)| h == host && *p == port))
        {
            let Some(before) = peer.address else { continue };
            let of_family = addresses.iter().find(|address| address.is_ipv4() == before.is_ipv4());
            let Some(&address) = of_family.filter(|_| !addresses.contains(&before)) else { continue };
            tracing::info!(peer = peer.name, host, %address, "the host has another address");
            peer.address = Some(address);
            self.site.move_peer(clock::now(), &peer.name, address);
        }
    }

    /// Applies a configuration that was read again. Returns the changes made, or the reason why there are
    /// none.
    fn reload(&mut self, loaded: &Loaded) -> Result<Vec<String>, String> {
        let source = self.source.clone().ok_or("the tunnel has no configuration to be read again")?;
        let config = (source.config)(&loaded.files, &|host, port| loaded.addresses(host, port))?;
        let fixed = needs_restart(&self.config, &config);
        if !fixed.is_empty() {
            return Err(format!("nothing was changed: a restart is needed for {}", fixed.join(", ")));
        }
        let read = |file: &Path| loaded.keys(file);
        let read = read_once(&read);
        let keys = |peer: &Peer| match &config.security {
            Security::Key { .. } => config.keyring(peer, &read).map(Some),
            Security::Open | Security::Insecure => Ok(None),
        };
        let keyrings = match (&config.others, &config.security) {
            (Others::Mesh(_), _) | (_, Security::Open) => None,
            (Others::Peers(peers), _) => {
                let with_keys = |peer| Ok((peer, keys(peer)?));
                let all: Result<Vec<_>, KeyringError> = peers.iter().map(with_keys).collect();
                Some(all.map_err(|error| error.to_string())?)
            }
        };
        let mut changes = Vec::new();
        let before = self.config.inside.clone();
        let after = &config.inside;
        if (&before.addresses, &before.routes, &before.dns) != (&after.addresses, &after.routes, &after.dns) {
            self.helper.change(loaded).map_err(|error| words(&error))?;
            changes.extend(difference("address", &before.addresses, &after.addresses, shown));
            changes.extend(difference("route", &before.routes, &after.routes, shown));
            changes.extend(difference("name server", &before.dns, &after.dns, String::clone));
        }
        let now = clock::now();
        self.site.send_waiting(now);
        if let Some(peers) = keyrings {
            let mut random = SystemRandom;
            let changed = self.site.change_peers(now, &config, &self.budget, &peers, &mut random);
            changes.extend(changed.map_err(|error| error.to_string())?);
        } else {
            changes.extend(self.site.change_networks(&config).map_err(|error| error.to_string())?);
        }
        if let (Others::Mesh(_), Some(path)) = (&config.others, config.common_key_file())
            && let Ok(keys) = loaded.keys(path)
        {
            changes.extend(self.site.change_keys(now, &keys));
        }
        self.has_names = has_names(&config);
        self.config = config;
        if changes.is_empty() {
            changes.push("nothing has changed".to_owned());
        }
        Ok(changes)
    }
}

/// True if a peer has a host name.
pub(super) fn has_names(config: &SiteConfig) -> bool {
    matches!(&config.others, Others::Peers(peers) if peers.iter().any(|peer| peer.host.is_some()))
}

/// Parts of a configuration that differ, and cannot change while a tunnel is running.
fn needs_restart(before: &SiteConfig, after: &SiteConfig) -> Vec<&'static str> {
    let insides = [before, after].map(|config| {
        let inside = config.inside.clone();
        crate::site_config::Inside { addresses: Vec::new(), routes: Vec::new(), dns: Vec::new(), ..inside }
    });
    let with_keys = |config: &SiteConfig| matches!(config.security, Security::Key { .. });
    // Without keys, peers are distinguished by their addresses only.
    let others = |config: &SiteConfig| match &config.others {
        Others::Peers(_) if with_keys(config) => None,
        others => Some(others.clone()),
    };
    let security = |config: &SiteConfig| match (&config.security, &config.others) {
        (&Security::Key { suite, negotiates, rekey, .. }, Others::Peers(_)) => {
            Security::Key { path: None, private: None, suite, negotiates, rekey }
        }
        (security, _) => security.clone(),
    };
    // Values are equal if their debug texts are.
    let differs = |a: &dyn Debug, b: &dyn Debug| format!("{a:?}") != format!("{b:?}");
    let parts = [
        ("[inside] and [segments], but for `address`, `route` and `dns`", differs(&insides[0], &insides[1])),
        (
            "[carrier]",
            differs(
                &(&before.carrier, &before.idle, before.bare_keepalive, &before.tariff),
                &(&after.carrier, &after.idle, after.bare_keepalive, &after.tariff),
            ),
        ),
        (
            "`keepalive` that becomes \"auto\", or was it",
            differs(&before.learns_keepalive(), &after.learns_keepalive()),
        ),
        ("[[hold]]", differs(&before.hold, &after.hold)),
        ("[security], but for the keys of peers", differs(&security(before), &security(after))),
        ("[channel]", differs(&before.channel, &after.channel)),
        ("[mesh] and [[site]], or [[peer]] without keys", differs(&others(before), &others(after))),
        ("[seeing]", differs(&before.seeing, &after.seeing)),
        (
            "[daemon]",
            differs(
                &(&before.user, &before.state, before.offloads),
                &(&after.user, &after.state, after.offloads),
            ),
        ),
    ];
    parts.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

/// Returns the elements added to a list, and those removed.
fn difference<T: PartialEq>(
    what: &str,
    before: &[T],
    after: &[T],
    shown: impl Fn(&T) -> String,
) -> Vec<String> {
    let removed = before.iter().filter(|one| !after.contains(one));
    let added = after.iter().filter(|one| !before.contains(one));
    let removed = removed.map(|one| format!("{what} {} removed", shown(one)));
    removed.chain(added.map(|one| format!("{what} {} added", shown(one)))).collect()
}

fn shown((address, bits): &(IpAddr, u8)) -> String {
    format!("{address}/{bits}")
}
