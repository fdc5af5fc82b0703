//! Allowed source addresses of peers, and routing of packets to peers, by the longest matching prefix.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use prefix_trie::PrefixMap;

use crate::site_config::{Inside, Others, Peer, Site};

/// Prefixes of all peers, or of all sites of a mesh, by their index in the configuration.
///
/// Between peers, an address belongs to the peer with the longest matching prefix: packets to it are sent to
/// this peer, and are accepted from no other. Sites of a mesh receive all packets; a source is accepted from
/// each site with a matching prefix. One without `allowed` has the networks of `address` and `route`.
///
/// Link-local sources of no prefix are accepted from all, and so is the unspecified source of a packet to a group,
/// with which the discovery of neighbors and groups begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedIps {
    /// Sorted by falling length.
    prefixes: Vec<Prefix>,
    /// Owners of prefixes, unless they are shared.
    owners: Owners,
    shared: bool,
    only: Option<OnlyPeer>,
    /// True for Ethernet frames: all go to the only peer, and are accepted from each sender.
    bridged: bool,
}

/// The peer to which packets are sent, if there are no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OnlyPeer {
    number: usize,
    /// True without `allowed`: destinations are those that the system routes to the interface.
    takes_all: bool,
}

/// Owners of prefixes, of which the longest one that matches an address is found in steps of its bits, whatever the number of
/// peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Owners {
    four: PrefixMap<(u32, u8), usize>,
    six: PrefixMap<(u128, u8), usize>,
}

impl Owners {
    /// Sets the owner of a prefix. Returns the previous one.
    fn insert(&mut self, prefix: &Prefix) -> Option<usize> {
        match prefix.address() {
            IpAddr::V4(address) => self.four.insert((address.into(), prefix.length), prefix.owner),
            IpAddr::V6(address) => self.six.insert((address.into(), prefix.length), prefix.owner),
        }
    }

    /// Owner of the longest prefix that matches.
    fn of(&self, address: IpAddr) -> Option<usize> {
        match address {
            IpAddr::V4(address) => self.four.get_lpm(&(address.into(), 32)).map(|(_, owner)| *owner),
            IpAddr::V6(address) => self.six.get_lpm(&(address.into(), 128)).map(|(_, owner)| *owner),
        }
    }
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
    fn address(&self) -> IpAddr {
        if self.six {
            IpAddr::from(self.bits.to_be_bytes())
        } else {
            IpAddr::from(((self.bits >> 96) as u32).to_be_bytes())
        }
    }

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
         (a peer without `allowed` has the networks of `address` and `route`)"
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
    /// Returns the prefixes of a configuration.
    pub fn of(others: &Others, inside: &Inside) -> Result<Self, AllowedError> {
        match others {
            Others::Peers(peers) => Self::of_peers(peers.iter().enumerate(), inside),
            Others::Mesh(mesh) => Self::of_sites(&mesh.sites, inside),
        }
    }

    /// Returns the prefixes of peers, by their numbers.
    pub fn of_peers<'p>(
        peers: impl Iterator<Item = (usize, &'p Peer)> + Clone,
        inside: &Inside,
    ) -> Result<Self, AllowedError> {
        let count = peers.clone().count();
        if inside.bridged && count > 1 {
            return Err(AllowedError::BridgedPeers(count));
        }
        let of = |(number, peer): (usize, &'p Peer)| (number, peer.name.as_str(), peer.allowed.as_slice());
        let only = peers.clone().next().filter(|_| count == 1);
        let only = only.map(|(number, peer)| OnlyPeer { number, takes_all: peer.allowed.is_empty() });
        Ok(Self { only, ..Self::new(peers.map(of), inside, false)? })
    }

    /// Returns the prefixes of the sites of a mesh, which may overlap.
    fn of_sites(sites: &[Site], inside: &Inside) -> Result<Self, AllowedError> {
        let of =
            sites.iter().zip(0..).map(|(site, number)| (number, site.name.as_str(), site.allowed.as_slice()));
        Self::new(of, inside, true)
    }

    fn new<'n>(
        lists: impl Iterator<Item = (usize, &'n str, &'n [(IpAddr, u8)])>,
        inside: &Inside,
        shared: bool,
    ) -> Result<Self, AllowedError> {
        let bridged = inside.bridged;
        let default = inside.sources();
        let (mut prefixes, mut owners) = (Vec::<Prefix>::new(), Owners::default());
        let mut names = BTreeMap::new();
        for (owner, name, list) in lists {
            if bridged && !list.is_empty() {
                return Err(AllowedError::Bridged(name.to_owned()));
            }
            names.insert(owner, name);
            for &(address, length) in if list.is_empty() { &default } else { list } {
                let prefix = Prefix { owner, ..prefix(address, length)? };
                if shared {
                    if !prefixes.contains(&prefix) {
                        prefixes.push(prefix);
                    }
                    continue;
                }
                match owners.insert(&prefix) {
                    Some(other) if other != owner => {
                        let name = |owner| names.get(&owner).copied().unwrap_or_default().to_owned();
                        let (first, second) = (name(other), name(owner));
                        return Err(AllowedError::Twice { prefix: address, length, first, second });
                    }
                    Some(_) => {}
                    None => prefixes.push(prefix),
                }
            }
        }
        prefixes.sort_by_key(|prefix| core::cmp::Reverse(prefix.length));
        Ok(Self { prefixes, owners, shared, only: None, bridged })
    }

    /// True if a packet from a peer or site has an allowed source. Other data than IP packets is not allowed;
    /// Ethernet frames always are.
    pub fn allows(&self, owner: usize, packet: &[u8]) -> bool {
        if self.bridged {
            return true;
        }
        let Some((source, destination)) = addresses(packet) else { return false };
        self.has(owner, source)
            || (self.owner(source).is_none() && is_link_local(source))
            || (source.is_unspecified() && is_group(destination))
    }

    /// True if a source address is one of the prefixes of a peer or site.
    fn has(&self, owner: usize, source: IpAddr) -> bool {
        if self.shared {
            let source = bits(source);
            return self.prefixes.iter().any(|prefix| prefix.owner == owner && prefix.matches(source));
        }
        self.owner(source) == Some(owner)
    }

    /// Returns the line of a configuration that allows a source, besides the present ones. `None`: it belongs to another
    /// peer.
    pub fn line(&self, owner: usize, source: IpAddr) -> Option<String> {
        if !self.shared && self.owner(source).is_some() {
            return None;
        }
        let present = self.prefixes.iter().filter(|prefix| prefix.owner == owner);
        let present = present.map(|prefix| (prefix.address(), prefix.length));
        let list = present.chain([(source, if source.is_ipv4() { 32 } else { 128 })]);
        let list: Vec<_> = list.map(|(address, length)| format!("\"{address}/{length}\"")).collect();
        Some(format!("allowed = [{}]", list.join(", ")))
    }

    /// True for Ethernet frames instead of packets.
    pub fn is_bridged(&self) -> bool {
        self.bridged
    }

    /// Returns the peer to which a packet, or a frame, is sent; `None` if its destination belongs to no peer.
    pub fn route(&self, packet: &[u8]) -> Option<usize> {
        if self.bridged {
            return self.only.map(|only| only.number);
        }
        let (_, destination) = addresses(packet)?;
        let only =
            self.only.filter(|only| only.takes_all || is_group(destination) || is_link_local(destination));
        self.owner(destination).or(only.map(|only| only.number))
    }

    fn owner(&self, address: IpAddr) -> Option<usize> {
        if self.shared {
            let address = bits(address);
            return self.prefixes.iter().find(|prefix| prefix.matches(address)).map(|prefix| prefix.owner);
        }
        self.owners.of(address)
    }
}

/// True for addresses of a single link: 169.254.0.0/16 and fe80::/10.
fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// True for multicast, and the limited broadcast of IPv4.
fn is_group(address: IpAddr) -> bool {
    address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// Bits of an address, those of an IPv4 address in the high ones, with a flag for IPv6.
fn bits(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(address) => (false, u128::from(u32::from(address)) << 96),
        IpAddr::V6(address) => (true, u128::from(address)),
    }
}

fn prefix(address: IpAddr, length: u8) -> Result<Prefix, AllowedError> {
    let (six, bits) = bits(address);
    let most = if six { 128 } else { 32 };
    if length > most {
        return Err(AllowedError::Length(address, length, most));
    }
    let prefix = Prefix { six, bits: bits & mask(length), length, owner: 0 };
    if prefix.bits != bits {
        return Err(AllowedError::Host(address, length, prefix.address()));
    }
    Ok(prefix)
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

/// Returns the source address of an IP packet.
pub(crate) fn source_address(packet: &[u8]) -> Option<IpAddr> {
    addresses(packet).map(|(source, _)| source)
}

/// Source and destination.
fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match packet.first()? >> 4 {
        4 => {
            let at = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<4>()?));
            Some((at(12)?, at(16)?))
        }
        6 => {
            let at = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<16>()?));
            Some((at(8)?, at(24)?))
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// An interface with networks of `address` and `route`.
    fn inside(addresses: &[&str], routes: &[&str]) -> Inside {
        let network = |text: &&str| {
            let (address, length) = text.split_once('/').unwrap();
            (address.parse().unwrap(), length.parse().unwrap())
        };
        let of = |texts: &[&str]| texts.iter().map(network).collect();
        Inside { addresses: of(addresses), routes: of(routes), ..Inside::default() }
    }

    fn of_peers(peers: &[Peer], bridged: bool) -> Result<AllowedIps, AllowedError> {
        AllowedIps::of_peers(peers.iter().enumerate(), &Inside { bridged, ..inside(&[], &[]) })
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
            public_key: None,
            keepalive: None,
            learns_keepalive: false,
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
            peer("all", &["0.0.0.0/0", "::/0"]),
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
        let all = ["0.0.0.0/0"];
        assert!(
            of(&[peer("a", &all), peer("b", &all)]).starts_with("0.0.0.0/0 is assigned to `a` and to `b`")
        );
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
        let allowed = AllowedIps::of_sites(&sites, &inside(&[], &[])).unwrap();
        let ten = packet("10.0.0.1", "10.0.0.2");
        let other = packet("11.0.0.1", "10.0.0.2");
        assert!([0, 1, 2].iter().all(|site| allowed.allows(*site, &ten)));
        assert_eq!([0, 1, 2].map(|site| allowed.allows(site, &other)), [true, false, false]);
    }

    #[test]
    fn without_allowed_the_networks_of_the_interface_are_sources() {
        let inside = inside(&["10.9.0.1/30", "fd09::1/64"], &["10.20.0.0/16"]);
        let one = [peer("a", &[])];
        let allowed = AllowedIps::of_peers(one.iter().enumerate(), &inside).unwrap();
        let from = |source: &str, to: &str| allowed.allows(0, &packet(source, to));
        for source in ["10.9.0.2", "10.20.3.4", "fd09::2", "fe80::1", "169.254.7.7"] {
            let to = if source.contains(':') { "fd09::1" } else { "10.9.0.1" };
            assert!(from(source, to), "{source}");
        }
        for source in ["10.9.0.4", "192.0.2.1", "fd0a::2", "::1", "::", "0.0.0.0"] {
            let to = if source.contains(':') { "fd09::1" } else { "10.9.0.1" };
            assert!(!from(source, to), "{source}");
        }
        assert!(from("::", "ff02::1:ff00:2") && from("0.0.0.0", "255.255.255.255"));
        // The system has routed these packets to the interface.
        for (source, to) in [("10.9.0.1", "192.0.2.1"), ("10.9.0.1", "224.0.0.251"), ("fd09::1", "ff02::1")] {
            assert_eq!(allowed.route(&packet(source, to)), Some(0), "{to}");
        }
        assert_eq!(
            allowed.line(0, "192.0.2.1".parse().unwrap()).as_deref(),
            Some("allowed = [\"fd09::/64\", \"10.9.0.0/30\", \"10.20.0.0/16\", \"192.0.2.1/32\"]")
        );
    }

    #[test]
    fn a_default_route_or_its_halves_allow_all_of_their_version() {
        for routes in [&["0.0.0.0/0"][..], &["0.0.0.0/1", "128.0.0.0/1"]] {
            let one = [peer("a", &[])];
            let inside = inside(&["10.9.0.1/30"], routes);
            let allowed = AllowedIps::of_peers(one.iter().enumerate(), &inside).unwrap();
            assert!(allowed.allows(0, &packet("192.0.2.1", "10.9.0.1")));
            assert!(!allowed.allows(0, &packet("fd00::1", "fd09::1")));
        }
    }

    #[test]
    fn an_interface_without_networks_leaves_sources_to_the_system() {
        let allowed = of_peers(&[peer("a", &[])], false).unwrap();
        assert!(allowed.allows(0, &packet("192.0.2.1", "10.9.0.1")));
        assert!(allowed.allows(0, &packet("fd00::1", "fd09::1")));
    }

    #[test]
    fn a_single_peer_with_networks_takes_groups_and_link_local_addresses_too() {
        let one = of_peers(&[peer("a", &["10.9.0.2/32"])], false).unwrap();
        for (to, peer) in [("10.9.0.2", Some(0)), ("224.0.0.251", Some(0)), ("192.0.2.1", None)] {
            assert_eq!(one.route(&packet("10.9.0.1", to)), peer, "{to}");
        }
        assert_eq!(one.route(&packet("fe80::1", "fe80::2")), Some(0));
        // With several peers, the packet may be for any of them.
        let two = [peer("a", &["10.9.0.2/32"]), peer("b", &["10.9.0.3/32", "fe80::3/128"])];
        let two = of_peers(&two, false).unwrap();
        assert_eq!(two.route(&packet("10.9.0.1", "224.0.0.251")), None);
        assert_eq!([0, 1].map(|peer| two.allows(peer, &packet("fe80::2", "ff02::1"))), [true, true]);
        assert_eq!([0, 1].map(|peer| two.allows(peer, &packet("fe80::3", "ff02::1"))), [false, true]);
        assert_eq!(two.line(0, "10.9.0.3".parse().unwrap()), None, "it belongs to the other");
    }
}
