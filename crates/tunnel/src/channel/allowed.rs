//! Allowed source addresses of peers, and routing of packets to peers, by the longest matching prefix.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::site_config::{Peer, Site};

/// Prefixes of all peers, or of all sites of a mesh, by their index in the configuration.
///
/// Between peers, an address belongs to the peer with the longest matching prefix: packets to it are sent to
/// this peer, and are accepted from no other. Sites of a mesh receive all packets; a source is accepted from
/// each site with a matching prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedIps {
    /// Sorted by falling length, so that the first match is the longest one.
    prefixes: Vec<Prefix>,
    shared: bool,
    /// True for Ethernet frames: all go to the only peer, and are accepted from each sender.
    bridged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prefix {
    six: bool,
    /// Address bits; those of an IPv4 address are the high ones.
    bits: u128,
    length: u8,
    owner: usize,
}

impl Prefix {
    fn matches(&self, (six, bits): (bool, u128)) -> bool {
        self.six == six && (self.bits ^ bits) & mask(self.length) == 0
    }
}

/// Reason why prefixes are invalid: the configuration is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowedError {
    /// A prefix is longer than an address.
    #[error("{0}/{1}: the prefix length of such an address is at most {2}")]
    Length(IpAddr, u8, u8),
    /// Bits after the prefix are set.
    #[error("{0}/{1}: bits after the prefix are set; did you mean {2}/{1}?")]
    Host(IpAddr, u8, IpAddr),
    /// Two peers have an identical prefix.
    #[error(
        "{prefix}/{length} is assigned to `{first}` and to `{second}`: a packet can be sent to one of them only \
         (a peer without `allowed` has all addresses)"
    )]
    Twice {
        /// The prefix.
        prefix: IpAddr,
        /// Its length.
        length: u8,
        /// First peer with the prefix.
        first: String,
        /// Second peer with the prefix.
        second: String,
    },
    /// Ethernet frames cannot be assigned to peers by IP address.
    #[error("`{0}` has `allowed`, which has no effect on Ethernet frames: omit it, or use TUN")]
    Bridged(String),
    /// Ethernet frames can be sent to a single peer only.
    #[error("Ethernet frames (TAP) need a single peer or a mesh; there are {0} peers")]
    BridgedPeers(usize),
}

impl AllowedIps {
    /// Returns the prefixes of peers, by their numbers. A peer without prefixes has all remaining addresses;
    /// at most one such peer is possible.
    pub fn of_peers<'p>(
        peers: impl Iterator<Item = (usize, &'p Peer)> + Clone,
        bridged: bool,
    ) -> Result<Self, AllowedError> {
        let count = peers.clone().count();
        if bridged && count > 1 {
            return Err(AllowedError::BridgedPeers(count));
        }
        let of = |(number, peer): (usize, &Peer)| (number, peer.name.clone(), peer.allowed.clone());
        Self::new(peers.map(of), bridged, false)
    }

    /// Returns the prefixes of the sites of a mesh, which may overlap.
    pub fn of_sites(sites: &[Site], bridged: bool) -> Result<Self, AllowedError> {
        let of = |(number, site): (usize, &Site)| (number, site.name.clone(), site.allowed.clone());
        Self::new(sites.iter().enumerate().map(of), bridged, true)
    }

    fn new(
        lists: impl Iterator<Item = (usize, String, Vec<(IpAddr, u8)>)>,
        bridged: bool,
        shared: bool,
    ) -> Result<Self, AllowedError> {
        let mut prefixes: Vec<Prefix> = Vec::new();
        let mut names = BTreeMap::new();
        for (owner, name, mut list) in lists {
            if bridged && !list.is_empty() {
                return Err(AllowedError::Bridged(name));
            }
            if list.is_empty() {
                list = vec![(IpAddr::from([0; 4]), 0), (IpAddr::from([0_u16; 8]), 0)];
            }
            names.insert(owner, name);
            for (address, length) in list {
                let prefix = Prefix { owner, ..prefix(address, length)? };
                let same = |other: &&Prefix| Prefix { owner, ..**other } == prefix;
                match prefixes.iter().find(same) {
                    Some(other) if other.owner != owner && !shared => {
                        return Err(AllowedError::Twice {
                            prefix: address,
                            length,
                            first: names.get(&other.owner).cloned().unwrap_or_default(),
                            second: names.get(&owner).cloned().unwrap_or_default(),
                        });
                    }
                    Some(other) if other.owner == owner => {}
                    Some(_) | None => prefixes.push(prefix),
                }
            }
        }
        prefixes.sort_by_key(|prefix| core::cmp::Reverse(prefix.length));
        Ok(Self { prefixes, shared, bridged })
    }

    /// True if a packet from a peer or site has an allowed source. Other data than IP packets is not allowed;
    /// Ethernet frames always are.
    pub fn allows(&self, owner: usize, packet: &[u8]) -> bool {
        if self.bridged {
            return true;
        }
        let Some((source, _)) = addresses(packet) else { return false };
        if self.shared {
            return self.prefixes.iter().any(|prefix| prefix.owner == owner && prefix.matches(source));
        }
        self.owner(source) == Some(owner)
    }

    /// True for Ethernet frames instead of packets.
    pub fn is_bridged(&self) -> bool {
        self.bridged
    }

    /// Returns the peer to which a packet, or a frame, is sent; `None` if its destination belongs to no peer.
    pub fn route(&self, packet: &[u8]) -> Option<usize> {
        if self.bridged {
            return self.prefixes.first().map(|prefix| prefix.owner);
        }
        let (_, destination) = addresses(packet)?;
        self.owner(destination)
    }

    fn owner(&self, address: (bool, u128)) -> Option<usize> {
        self.prefixes.iter().find(|prefix| prefix.matches(address)).map(|prefix| prefix.owner)
    }
}

fn prefix(address: IpAddr, length: u8) -> Result<Prefix, AllowedError> {
    let (six, bits, most) = match address {
        IpAddr::V4(address) => (false, u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (true, u128::from(address), 128),
    };
    if length > most {
        return Err(AllowedError::Length(address, length, most));
    }
    let right = bits & mask(length);
    if right != bits {
        let right = if six {
            IpAddr::from(right.to_be_bytes())
        } else {
            IpAddr::from(((right >> 96) as u32).to_be_bytes())
        };
        return Err(AllowedError::Host(address, length, right));
    }
    Ok(Prefix { six, bits, length, owner: 0 })
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

/// Source and destination, each with a flag for IPv6.
fn addresses(packet: &[u8]) -> Option<((bool, u128), (bool, u128))> {
    match packet.first()? >> 4 {
        4 => {
            let at = |at: usize| {
                let octets = packet.get(at..)?.first_chunk()?;
                Some((false, u128::from(u32::from_be_bytes(*octets)) << 96))
            };
            Some((at(12)?, at(16)?))
        }
        6 => {
            let at = |at: usize| Some((true, u128::from_be_bytes(*packet.get(at..)?.first_chunk()?)));
            Some((at(8)?, at(24)?))
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of_peers(peers: &[Peer], bridged: bool) -> Result<AllowedIps, AllowedError> {
        AllowedIps::of_peers(peers.iter().enumerate(), bridged)
    }

    fn peer(name: &str, allowed: &[&str]) -> Peer {
        let allowed = allowed.iter().map(|prefix| {
            let (address, length) = prefix.split_once('/').unwrap();
            (address.parse().unwrap(), length.parse().unwrap())
        });
        Peer {
            name: name.into(),
            address: None,
            host: None,
            allowed: allowed.collect(),
            key: None,
            keepalive: None,
            pid: None,
        }
    }

    fn packet(source: &str, destination: &str) -> Vec<u8> {
        match (source.parse().unwrap(), destination.parse().unwrap()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut packet = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0];
                packet.extend(source.octets());
                packet.extend(destination.octets());
                packet
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let mut packet = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
                packet.extend(source.octets());
                packet.extend(destination.octets());
                packet
            }
            _ => unreachable!("addresses of one kind"),
        }
    }

    #[test]
    fn the_longest_prefix_says_who_it_is() {
        let peers = [
            peer("all", &[]),
            peer("ten", &["10.0.0.0/8", "fd00::/16"]),
            peer("one", &["10.1.0.0/16", "fd00:1::1/128"]),
        ];
        let allowed = of_peers(&peers, false).unwrap();
        let from = |source| packet(source, source);
        for (source, owner) in [
            ("192.0.2.1", 0),
            ("10.2.0.1", 1),
            ("10.1.0.1", 2),
            ("2001:db8::1", 0),
            ("fd00:1::2", 1),
            ("fd00:1::1", 2),
        ] {
            assert_eq!(allowed.route(&from(source)), Some(owner), "{source}");
            for other in 0..3 {
                assert_eq!(allowed.allows(other, &from(source)), other == owner, "{source} from {other}");
            }
        }
        assert!(allowed.allows(2, &packet("10.1.2.3", "10.2.0.1")));
        assert_eq!(allowed.route(&packet("10.1.2.3", "10.2.0.1")), Some(1));
    }

    #[test]
    fn what_belongs_to_nobody_goes_nowhere() {
        let allowed = of_peers(&[peer("a", &["10.0.0.0/8"])], false).unwrap();
        assert_eq!(allowed.route(&packet("10.0.0.1", "11.0.0.1")), None);
        assert_eq!(allowed.route(&packet("fd00::1", "fd00::2")), None);
        assert!(!allowed.allows(0, &packet("11.0.0.1", "10.0.0.1")));
        let whole = packet("10.0.0.1", "10.0.0.1");
        for len in 0..whole.len() {
            assert!(!allowed.allows(0, &whole[..len.min(15)]), "{len}");
            assert_eq!(allowed.route(&whole[..len]), None, "{len}");
        }
        assert!(!allowed.allows(0, &[0x55; 40]));
    }

    #[test]
    fn contradictions_are_told() {
        let of = |peers: &[Peer]| of_peers(peers, false).unwrap_err().to_string();
        assert_eq!(
            of(&[peer("a", &["10.0.0.0/33"])]),
            "10.0.0.0/33: the prefix length of such an address is at most 32"
        );
        assert_eq!(
            of(&[peer("a", &["10.1.2.3/16"])]),
            "10.1.2.3/16: bits after the prefix are set; did you mean 10.1.0.0/16?"
        );
        assert!(of(&[peer("a", &["fd00::1/64"])]).ends_with("did you mean fd00::/64?"));
        let twice = of(&[peer("a", &["10.0.0.0/8"]), peer("b", &["10.0.0.0/8"])]);
        assert!(twice.starts_with("10.0.0.0/8 is assigned to `a` and to `b`"), "{twice}");
        assert!(of(&[peer("a", &[]), peer("b", &[])]).starts_with("0.0.0.0/0 is assigned to `a` and to `b`"));
        assert!(of_peers(&[peer("a", &["10.0.0.0/8", "10.0.0.0/8"])], false).is_ok());
    }

    #[test]
    fn a_bridge_has_one_peer_and_no_prefixes() {
        assert_eq!(
            of_peers(&[peer("a", &["10.0.0.0/8"])], true).unwrap_err(),
            AllowedError::Bridged("a".into())
        );
        let two = [peer("a", &[]), peer("b", &[])];
        assert_eq!(of_peers(&two, true).unwrap_err(), AllowedError::BridgedPeers(2));
        assert!(of_peers(&[peer("a", &[])], true).is_ok());
    }

    #[test]
    fn sites_may_share_prefixes() {
        let site = |number, allowed: &[&str]| Site {
            id: crate::unit::SiteId::new(number).unwrap(),
            name: format!("site {number}"),
            pid: None,
            npa: None,
            allowed: peer("", allowed).allowed,
        };
        let sites = [site(1, &[]), site(2, &["10.0.0.0/8"]), site(3, &["10.0.0.0/8"])];
        let allowed = AllowedIps::of_sites(&sites, false).unwrap();
        let ten = packet("10.0.0.1", "10.0.0.2");
        let other = packet("11.0.0.1", "10.0.0.2");
        assert!([0, 1, 2].iter().all(|site| allowed.allows(*site, &ten)));
        assert_eq!([0, 1, 2].map(|site| allowed.allows(site, &other)), [true, false, false]);
    }
}
