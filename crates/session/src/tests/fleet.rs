//! Hubs of many peers: indices of three octets, earlier versions, removed peers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use thinair_wire::time::Instant;

use super::room::{PARAMETERS, random};
use crate::{
    BadPeers, BodyFlags, Destination, FEW, Key, Opened, Over, PEERS, PeerKeys, PublicKeys, Sender, Suite,
    TwoWay,
};

const SUITE: Suite = Suite::ChaCha20Poly1305;
const HUB: usize = usize::MAX;
const START: Instant = Instant::from_millis(1_000);

/// The private key of a site, or of the hub.
fn private(number: usize) -> Key {
    let mut octets = [0x5a; 32];
    octets[..8].copy_from_slice(&number.to_be_bytes());
    Key::new(octets)
}

fn keys(own: usize, other: usize) -> PublicKeys {
    PublicKeys::new(private(own), private(other).public(), None).expect("keys of two ends")
}

/// Address of a site, or of the hub.
fn address(number: usize) -> SocketAddr {
    match number {
        HUB => ([203, 0, 113, 1], 7_000).into(),
        _ => ([10, 0, (number >> 8) as u8, number as u8], 5_000).into(),
    }
}

/// Parameters of a site at the hub.
fn known(number: usize, address: Option<SocketAddr>) -> PeerKeys {
    PeerKeys { keys: keys(HUB, number).into(), address, keepalive: None }
}

fn hub(peers: Vec<PeerKeys>) -> TwoWay {
    TwoWay::new(START, Over::Datagrams, peers, SUITE, PARAMETERS, random(77)).expect("a hub")
}

fn site(number: usize, start: u64, asks: bool) -> TwoWay {
    let keys = keys(number, HUB).into();
    let peer = PeerKeys { keys, address: asks.then(|| address(HUB)), keepalive: None };
    let seed = start << 32 | number as u64;
    TwoWay::new(START, Over::Datagrams, vec![peer], SUITE, PARAMETERS, random(seed)).expect("a site")
}

/// Exchanges due messages of a hub and one site until there are none.
fn settle(now: Instant, hub: &mut TwoWay, site: &mut TwoWay, number: usize) {
    let mut octets = Vec::new();
    loop {
        let mut is_quiet = true;
        while site.poll(now, &mut octets).is_some() {
            is_quiet = false;
            hub.open(now, Some(address(number).into()), &mut octets);
            octets.clear();
        }
        while hub.poll(now, &mut octets).is_some() {
            is_quiet = false;
            site.open(now, Some(address(HUB).into()), &mut octets);
            octets.clear();
        }
        if is_quiet {
            return;
        }
    }
}

fn seal(end: &mut TwoWay, now: Instant, peer: usize, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    end.seal(now, Destination::Peer(peer), BodyFlags::default(), body, &mut out).expect("a session");
    out
}

/// Octets of encryption: from a site to its hub, and back.
fn around(hub: &mut TwoWay, site: &mut TwoWay, peer: usize) -> [usize; 2] {
    let (there, back) = (seal(site, START, 0, b"body"), seal(hub, START, peer, b"body"));
    let lengths = [there.len() - 4, back.len() - 4];
    for (end, from, mut datagram) in [(hub, address(peer), there), (site, address(HUB), back)] {
        let opened = end.open(START, Some(from.into()), &mut datagram);
        assert!(matches!(opened, Opened::Body { body: b"body", .. }), "{opened:?}");
    }
    lengths
}

#[test]
fn only_datagrams_to_a_hub_of_many_have_two_octets_more() {
    for (count, octets) in [(2, [20, 20]), (FEW, [20, 20]), (FEW + 1, [22, 20]), (300, [22, 20])] {
        let mut hub = hub((0..count).map(|number| known(number, None)).collect());
        for number in [0, count - 1] {
            let mut site = site(number, 0, true);
            settle(START, &mut hub, &mut site, number);
            assert_eq!(around(&mut hub, &mut site, number), octets, "{number} of {count}");
        }
    }
}

#[test]
fn an_end_of_an_earlier_version_has_a_short_index_at_a_hub_of_many() {
    let mut hub = hub((0..300).map(|number| known(number, None)).collect());
    for number in [7, 8] {
        let mut site = site(number, 0, true);
        site.take_short_only();
        settle(START, &mut hub, &mut site, number);
        assert_eq!(around(&mut hub, &mut site, number), [20, 20]);
    }
}

#[test]
fn a_hub_of_many_asks_with_long_indices_and_earlier_versions_with_short_ones() {
    let peers = (0..100).map(|number| known(number, (number == 5 || number == 6).then(|| address(number))));
    let mut hub = hub(peers.collect());
    let mut sites = [site(5, 0, false), site(6, 0, false)];
    sites[1].take_short_only();
    let mut octets = Vec::new();
    for step in 0..200 {
        let now = START + Duration::from_millis(100) * step;
        while let Some((to, _)) = hub.poll(now, &mut octets) {
            let Destination::Peer(number @ 5..7) = to else { panic!("{to:?}") };
            // Earlier versions drop the requests that they do not know.
            if number == 5 || octets[0] == 0x64 || octets[0] & 0xe0 != 0x60 {
                sites[number - 5].open(now, Some(address(HUB).into()), &mut octets);
            }
            octets.clear();
            settle(now, &mut hub, &mut sites[number - 5], number);
        }
    }
    let [new, old] = &mut sites;
    assert_eq!(around(&mut hub, new, 5), [22, 20]);
    assert_eq!(around(&mut hub, old, 6), [20, 20]);
}

#[test]
fn the_peer_beyond_the_maximum_is_refused_with_advice() {
    // One shared key, as the number alone matters.
    let peer = |number: usize| PeerKeys {
        keys: crate::Keys::one(private(1)).into(),
        address: Some(([10, (number >> 16) as u8, (number >> 8) as u8, number as u8], 5_000).into()),
        keepalive: None,
    };
    let new = |count| {
        let peers = (0..count).map(peer).collect();
        TwoWay::new(START, Over::Datagrams, peers, SUITE, PARAMETERS, random(1)).map(drop)
    };
    assert_eq!(new(PEERS), Ok(()));
    assert_eq!(new(PEERS + 1), Err(BadPeers::Count(10_001)));
    assert!(BadPeers::Count(10_001).to_string().contains("divide them among several hubs"));
}

/// A hub and its sites, and datagrams between them.
struct Fleet {
    now: Instant,
    hub: TwoWay,
    /// The site of each number of the hub.
    owners: BTreeMap<usize, usize>,
    sites: Vec<TwoWay>,
    /// Datagrams with source and destination that have not arrived, and some that have.
    flying: Vec<(usize, usize, Vec<u8>)>,
    recorded: Vec<(usize, usize, Vec<u8>)>,
    /// Number of the last body, and those that were delivered.
    last: u32,
    delivered: BTreeSet<u32>,
}

impl Fleet {
    fn new(count: usize, random: &mut dyn FnMut(usize) -> usize) -> Self {
        let hub = hub((0..count).map(|number| known(number, None)).collect());
        let mut sites: Vec<_> = (0..count).map(|number| site(number, 0, true)).collect();
        sites.iter_mut().filter(|_| random(10) == 0).for_each(TwoWay::take_short_only);
        let owners = (0..count).map(|number| (number, number)).collect();
        let (flying, recorded) = (Vec::new(), Vec::new());
        Self { now: START, hub, owners, sites, flying, recorded, last: 0, delivered: BTreeSet::new() }
    }

    /// Sends a body that names its sender and its receiver.
    fn send(&mut self, from: usize, to: usize) {
        let number = |site| self.owners.iter().find(|(_, owner)| **owner == site).map(|(number, _)| *number);
        let (end, peer) = match from {
            HUB => (&mut self.hub, number(to)),
            _ => (&mut self.sites[from], Some(0)),
        };
        let Some(peer) = peer else { return };
        self.last += 1;
        let body = [from.to_be_bytes(), to.to_be_bytes(), u64::from(self.last).to_be_bytes()].concat();
        let mut out = Vec::new();
        if end.seal(self.now, Destination::Peer(peer), BodyFlags::default(), &body, &mut out).is_ok() {
            self.flying.push((from, to, out));
        }
    }

    /// Delivers a datagram, and checks what it contains.
    fn arrive(&mut self, from: usize, to: usize, datagram: &[u8]) {
        let end = if to == HUB { &mut self.hub } else { &mut self.sites[to] };
        let mut octets = datagram.to_vec();
        let Opened::Body { from: Sender::Peer(peer), body, .. } =
            end.open(self.now, Some(address(from).into()), &mut octets)
        else {
            return;
        };
        let part = |at: usize| usize::from_be_bytes(*body[at..].first_chunk().expect("24 octets"));
        let (sender, receiver, number) = (part(0), part(8), part(16) as u32);
        assert_eq!(receiver, to, "a body for another end");
        if to == HUB {
            assert_eq!(self.owners.get(&peer), Some(&sender), "of a removed peer, or taken for another one");
        } else {
            assert_eq!(sender, HUB);
        }
        assert!(self.delivered.insert(number), "twice");
    }

    fn poll(&mut self) {
        let mut octets = Vec::new();
        for (number, site) in self.sites.iter_mut().enumerate() {
            while site.poll(self.now, &mut octets).is_some() {
                self.flying.push((number, HUB, std::mem::take(&mut octets)));
            }
        }
        while let Some((Destination::Peer(peer), to)) = self.hub.poll(self.now, &mut octets) {
            let to = to.map(|to| to.peer).or_else(|| self.hub.address(peer));
            let at = to.and_then(|to| (0..self.sites.len()).find(|number| address(*number) == to));
            if let Some(number) = at {
                self.flying.push((HUB, number, octets.clone()));
            }
            octets.clear();
        }
    }

    fn step(&mut self, random: &mut dyn FnMut(usize) -> usize) {
        let site = random(self.sites.len());
        match random(100) {
            0..25 => self.send(site, HUB),
            25..40 => self.send(HUB, site),
            40..80 => {
                for _ in 0..random(20) {
                    if self.flying.is_empty() {
                        break;
                    }
                    let (from, to, datagram) = self.flying.swap_remove(random(self.flying.len()));
                    // A tenth is lost, and some are recorded.
                    if random(10) > 0 {
                        self.arrive(from, to, &datagram);
                    }
                    if random(4) == 0 {
                        self.recorded.push((from, to, datagram));
                    }
                }
            }
            80..90 if !self.recorded.is_empty() => {
                let (from, to, datagram) = self.recorded[random(self.recorded.len())].clone();
                let source = if random(3) == 0 { random(self.sites.len()) } else { from };
                self.arrive(if from == HUB { HUB } else { source }, to, &datagram);
            }
            90..92 => {
                let number = self.owners.iter().find(|(_, owner)| **owner == site).map(|(number, _)| *number);
                if let Some(number) = number {
                    self.hub.remove(self.now, number);
                    self.owners.remove(&number);
                }
            }
            92..94 => {
                let is_there = self.owners.values().any(|owner| *owner == site);
                let vacant = (0..self.sites.len()).find(|number| !self.owners.contains_key(number));
                if let Some(number) = vacant.filter(|_| !is_there) {
                    self.hub.add(self.now, number, known(site, None)).expect("a vacant number");
                    self.owners.insert(number, site);
                }
            }
            _ => {
                self.now = self.now + Duration::from_millis(random(2_000) as u64);
                self.poll();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    /// Sites connect, send, lose and replay; peers are removed, and their numbers are given to others.
    #[test]
    fn nothing_comes_from_a_removed_peer_and_nothing_goes_to_a_wrong_one(seed in any::<u64>()) {
        let mut octets = random(seed);
        let mut random = move |below: usize| {
            let mut number = [0; 4];
            octets.fill(&mut number);
            u32::from_be_bytes(number) as usize % below
        };
        let mut fleet = Fleet::new(FEW + 16, &mut random);
        for _ in 0..1_500 {
            fleet.step(&mut random);
        }
        prop_assert!(fleet.delivered.len() > 100, "{} delivered", fleet.delivered.len());
    }
}
