//! Changes of the peers of a running site; unchanged peers keep their state.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;

use thinair_session::mapping::MappingSearch;
use thinair_session::{BadPeers, Keyring, Keys, PEERS, PeerKeys, Random, Seal};
use thinair_wire::time::Instant;

use super::Site;
use super::build::{BuildError, PeerPlan};
use super::host_multicast::HostMulticast;
use crate::channel::AllowedIps;
use crate::mtu::Budget;
use crate::site_config::{Peer, SiteConfig};

/// Error that prevents a change of peers.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// Their networks or channels are invalid.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Their keys are invalid.
    #[error(transparent)]
    Keys(#[from] BadPeers),
}

impl Site {
    /// Replaces the allowed sources. Returns the change, in a sentence.
    ///
    /// # Errors
    /// They are contradictory. Nothing changes then.
    pub fn change_networks(&mut self, config: &SiteConfig) -> Result<Option<String>, ChangeError> {
        let allowed = AllowedIps::of(&config.others, &config.inside).map_err(BuildError::from)?;
        self.host_multicast = HostMulticast::of(config);
        Ok(self.set_allowed(allowed))
    }

    fn set_allowed(&mut self, allowed: AllowedIps) -> Option<String> {
        if self.allowed == allowed {
            return None;
        }
        self.allowed = allowed;
        self.sources.iter_mut().for_each(|source| source.not_allowed = None);
        Some("networks of peers changed".to_owned())
    }

    /// Replaces the peers and their keys. Peers are identified by name. Returns the changes, one sentence
    /// each. Peers without keys stay, and only their networks change.
    ///
    /// # Errors
    /// The peers cannot be distinguished by their networks or keys. Nothing changes then.
    pub fn change_peers(
        &mut self,
        now: Instant,
        config: &SiteConfig,
        budget: &Budget,
        peers: &[(&Peer, Option<Keyring>)],
        random: &mut dyn Random,
    ) -> Result<Vec<String>, ChangeError> {
        let Some(Seal::TwoWay(seal)) = &mut self.common.seal else {
            return Ok(self.change_networks(config)?.into_iter().collect());
        };
        let peers: Vec<(&Peer, PeerKeys)> = peers
            .iter()
            .filter_map(|(peer, keys)| {
                let same = self.pipelines.iter().find(|pipeline| pipeline.name == peer.name);
                let learned = same.and_then(|same| same.link.mapping.as_ref()).map(MappingSearch::keepalive);
                let keepalive = learned.filter(|_| peer.learns_keepalive).or(peer.keepalive);
                Some((*peer, PeerKeys { keys: keys.clone()?, address: peer.address, keepalive }))
            })
            .collect();
        seal.check(&peers.iter().map(|(_, keys)| keys.clone()).collect::<Vec<_>>())?;
        let names = self.pipelines.iter().map(|pipeline| pipeline.name.as_str());
        let places = places(names, &peers).ok_or(BadPeers::Count(peers.len()))?;
        let of_places = places.iter().zip(&peers).map(|(&(place, _), (peer, _))| (place, *peer));
        let allowed = AllowedIps::of_peers(of_places, &config.inside).map_err(BuildError::from)?;

        self.host_multicast = HostMulticast::of(config);
        self.inside_mtu = None;
        let mut changes = Vec::new();
        let kept: HashSet<usize> =
            places.iter().filter(|(_, is_new)| !is_new).map(|(place, _)| *place).collect();
        for (number, pipeline) in
            self.pipelines.iter_mut().enumerate().filter(|(_, pipeline)| !pipeline.name.is_empty())
        {
            if !kept.contains(&number) {
                changes.push(format!("peer `{}` removed", pipeline.name));
                pipeline.name.clear();
                pipeline.channel.reset(None);
                seal.remove(now, number);
            }
        }
        let mut plan = PeerPlan::new(now, config, budget, random);
        for (&(number, is_new), (peer, keys)) in places.iter().zip(&peers) {
            if !is_new {
                let mapping = self.pipelines.get_mut(number).map(|pipeline| &mut pipeline.link.mapping);
                match mapping {
                    Some(mapping @ None) if peer.learns_keepalive => {
                        *mapping = Some(MappingSearch::new(now, None));
                    }
                    Some(mapping) if !peer.learns_keepalive => *mapping = None,
                    Some(_) | None => {}
                }
                if seal.change(now, number, keys)? {
                    changes.push(format!("keys or address of peer `{}` changed", peer.name));
                }
                continue;
            }
            let (pipeline, source, unpackager) = plan.peer(number, peer)?;
            seal.add(now, number, keys.clone())?;
            self.schedule.set(number, pipeline.poll_at());
            put(&mut self.pipelines, number, pipeline);
            put(&mut self.sources, number, source);
            if let Some(unpackager) = unpackager {
                put(&mut self.unpackagers, number, unpackager);
            }
            changes.push(format!("peer `{}` added", peer.name));
        }
        changes.extend(self.set_allowed(allowed));
        Ok(changes)
    }

    /// Replaces the keys of a mesh by those that the key file contains now. Returns the change, in a sentence.
    /// Nothing changes without a mesh, or if it has no keys.
    pub fn change_keys(&mut self, now: Instant, keys: &Keys) -> Option<String> {
        let Some(Seal::Group(seal)) = &mut self.common.seal else { return None };
        seal.set_keys(now, keys).then(|| "keys changed".to_owned())
    }

    /// True if the peer of that name has a trouble, so that it may have moved.
    pub fn is_troubled(&self, name: &str) -> bool {
        self.sources.iter().any(|source| source.name == name && source.trouble.is_some())
    }

    /// Sets a new address of the name of a peer.
    pub fn move_peer(&mut self, now: Instant, name: &str, address: SocketAddr) {
        let number = self.pipelines.iter().position(|pipeline| pipeline.name == name);
        if let (Some(number), Some(Seal::TwoWay(seal))) = (number, &mut self.common.seal) {
            seal.move_to(now, number, Some(address));
        }
    }
}

/// Replaces a value, or appends it.
fn put<T>(places: &mut Vec<T>, number: usize, value: T) {
    match places.get_mut(number) {
        Some(vacant) => *vacant = value,
        None => places.push(value),
    }
}

/// The place of each peer, and whether it is new there: that of its name, or the first vacant one. `None`: there are too
/// many.
fn places<'n>(
    names: impl Iterator<Item = &'n str>,
    peers: &[(&Peer, PeerKeys)],
) -> Option<Vec<(usize, bool)>> {
    let wanted: HashSet<&str> = peers.iter().map(|(peer, _)| peer.name.as_str()).collect();
    let (mut known, mut vacant, mut next) = (HashMap::new(), VecDeque::new(), 0);
    for (place, name) in names.enumerate() {
        next = place + 1;
        if wanted.contains(name) {
            known.insert(name, place);
        } else {
            vacant.push_back(place);
        }
    }
    let mut vacant = vacant.into_iter().chain(next..PEERS);
    let place = |(peer, _): &(&Peer, PeerKeys)| match known.get(peer.name.as_str()) {
        Some(place) => Some((*place, false)),
        None => Some((vacant.next()?, true)),
    };
    peers.iter().map(place).collect()
}
