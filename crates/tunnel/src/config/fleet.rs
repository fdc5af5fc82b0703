//! File of a fleet: a line for each peer, with its name, its public key, and its networks.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use thinair_session::PublicKey;

use super::carrier::Keepalive;
use super::setting::{ConfigError, SettingPlace};
use super::{others, words};
use crate::site_config::{ALL_ADDRESSES, Peer, PeerPublicKey};

/// Peers of a file.
#[derive(Debug)]
pub(super) struct Fleet {
    file: Arc<Path>,
    peers: Vec<FleetPeer>,
}

/// A line of the file.
#[derive(Debug)]
struct FleetPeer {
    line: usize,
    name: String,
    key: PublicKey,
    allowed: Vec<(IpAddr, u8)>,
}

impl Fleet {
    /// Parses the text of a file.
    pub(super) fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let file: Arc<Path> = Arc::from(file);
        let mut peers = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let text = line.split('#').next().unwrap_or_default();
            let mut parts = text.split([' ', '\t', ',']).filter(|part| !part.is_empty());
            let Some(name) = parts.next() else { continue };
            let wrong = |what: String| ConfigError::at(&SettingPlace::of_file(&file, number, "peer"), what);
            let name = others::name(name).map_err(wrong)?;
            let key = parts.next().and_then(PublicKey::parse).ok_or_else(|| {
                wrong(format!(
                    "\"{name}\" needs a public key behind its name, the 44 characters that `thinair tunnel keygen FILE` \
                     prints at that end"
                ))
            })?;
            let networks = parts.map(|part| match part {
                "any" => Ok(ALL_ADDRESSES.to_vec()),
                _ => words::network(part).map(|network| vec![network]),
            });
            let allowed: Result<Vec<_>, _> = networks.collect();
            let allowed = allowed.map_err(|why| wrong(format!("\"{name}\": {why}")))?.concat();
            peers.push(FleetPeer { line: number, name, key, allowed });
        }
        Ok(Self { file, peers })
    }

    /// Returns the peers.
    pub(super) fn peers(&self, keepalive: Option<Keepalive>) -> impl Iterator<Item = Peer> {
        self.peers.iter().map(move |peer| Peer {
            name: peer.name.clone(),
            address: None,
            host: None,
            allowed: peer.allowed.clone(),
            key: None,
            public_key: Some(PeerPublicKey {
                key: peer.key,
                psk: None,
                at: format!("{}:{}", self.file.display(), peer.line),
            }),
            keepalive: keepalive.map(Keepalive::interval),
            learns_keepalive: keepalive == Some(Keepalive::Learned),
            pid: None,
        })
    }

    /// Place of a peer of the file.
    pub(super) fn place(&self, number: usize) -> Option<SettingPlace> {
        Some(SettingPlace::of_file(&self.file, self.peers.get(number)?.line, "peer"))
    }
}

/// A value that two peers have in common, or networks that overlap.
pub(super) enum Clash {
    Value(&'static str, &'static str),
    Networks((IpAddr, u8), (IpAddr, u8)),
}

/// Finds two peers that cannot be told apart: the later one, the earlier one, and what they have in common.
pub(super) fn clash(peers: &[Peer]) -> Option<(usize, usize, Clash)> {
    let mut values = HashMap::new();
    for (number, peer) in peers.iter().enumerate() {
        let file = peer.key.as_ref().map(|file| file.display().to_string());
        let public = peer.public_key.as_ref().map(|public| public.key.to_string());
        let of_peer = [
            ("name", "have the same name; give each its own", Some(peer.name.clone())),
            (
                "address",
                "have the same address; give each its own",
                peer.address.map(|address| address.to_string()),
            ),
            ("key", "have the same key file; create one for each with `thinair tunnel keygen`", file),
            ("public_key", "have the same public key; each end has its own", public),
        ];
        for (key, what, value) in of_peer {
            let Some(value) = value else { continue };
            if let Some(earlier) = values.insert((key, value), number) {
                return Some((number, earlier, Clash::Value(key, what)));
            }
        }
    }
    overlap(peers)
}

/// Finds two peers with networks of which one contains the other.
fn overlap(peers: &[Peer]) -> Option<(usize, usize, Clash)> {
    let networks = |(number, peer): (usize, &Peer)| {
        peer.allowed.iter().map(move |network| (*network, number)).collect::<Vec<_>>()
    };
    let mut all: Vec<((IpAddr, u8), usize)> = peers.iter().enumerate().flat_map(networks).collect();
    // Each network is behind those that contain it.
    all.sort_unstable();
    let mut around: Vec<((IpAddr, u8), usize)> = Vec::new();
    for (network, number) in all {
        while around.last().is_some_and(|(outer, _)| !words::overlap(*outer, network)) {
            around.pop();
        }
        if let Some((outer, other)) = around.iter().find(|(_, other)| *other != number) {
            let (later, earlier) = (number.max(*other), number.min(*other));
            let (a, b) = if later == number { (network, *outer) } else { (*outer, network) };
            return Some((later, earlier, Clash::Networks(a, b)));
        }
        around.push((network, number));
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const KEYS: [&str; 2] =
        ["ANJNyPtSrzb2EBE8iRx4G1XF2hO/PMa9+C5JUwrYuTk=", "xTMqYybNmJW/q6JOtnYFih1eunHXi3CrIaSrIj52F3U="];

    fn peers(text: &str) -> Result<Vec<Peer>, String> {
        let fleet = Fleet::parse(Path::new("fleet.peers"), text).map_err(|error| error.to_string())?;
        Ok(fleet.peers(None).collect())
    }

    #[test]
    fn a_line_is_a_peer() {
        let [a, b] = KEYS;
        let text =
            format!("# sites\n\nnorth {a}  10.9.0.2/32, 10.21.0.0/16 # a comment\nsouth\t{b} fd09::3/128\n");
        let peers = peers(&text).unwrap();
        let names: Vec<_> = peers.iter().map(|peer| (peer.name.as_str(), peer.allowed.len())).collect();
        assert_eq!(names, [("north", 2), ("south", 1)]);
        assert_eq!(peers[1].public_key.as_ref().unwrap().at, "fleet.peers:4");
    }

    #[test]
    fn a_wrong_line_is_named() {
        let a = KEYS[0];
        for (text, expected) in [
            ("north", "fleet.peers:1: peer: \"north\" needs a public key"),
            ("\nnorth 10.9.0.2/32", "fleet.peers:2: peer: \"north\" needs a public key"),
            (&format!("north {a} 10.9.0.2/24"), "fleet.peers:1: peer: \"north\": has host bits"),
            (&format!("north {a} x"), "fleet.peers:1: peer: \"north\": "),
        ] {
            let error = peers(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn networks_of_two_peers_that_overlap_are_found_and_those_of_one_are_not() {
        let of = |lists: &[&str]| {
            let text: String =
                lists.iter().enumerate().map(|(n, list)| format!("p{n} {} {list}\n", KEYS[0])).collect();
            let found = overlap(&peers(&text).unwrap());
            found.map(|(later, earlier, _)| (later, earlier))
        };
        assert_eq!(of(&["10.0.0.0/8 10.1.0.0/16", "11.0.0.0/8", "fd00::/8"]), None);
        assert_eq!(of(&["10.1.2.0/24", "10.1.0.0/16"]), Some((1, 0)));
        // Between the two networks is another one, of the peer that has the outer one, too.
        assert_eq!(of(&["10.0.0.0/8 10.1.0.0/16", "10.2.0.0/16"]), Some((1, 0)));
        assert_eq!(of(&["10.2.0.0/16", "10.0.0.0/8 10.1.0.0/16"]), Some((1, 0)));
        assert_eq!(of(&["10.1.0.0/16", "10.2.0.0/16", "10.1.0.0/16"]), Some((2, 0)));
    }
}
