//! Sources of packets: those that a peer or site may use, and the report of others.

use super::*;
use crate::status::{Identity, SourceNotAllowed, Status};

const FOREIGN: [u8; 4] = [192, 0, 2, 1];

/// Two ends, the first of which has this configuration besides.
fn pair_with(more: &str) -> Vec<Host> {
    let [first, second] = [(7_001, 7_002, 10), (7_002, 7_001, 20)].map(|(port, peer, start)| {
        let more = if port == 7_001 { more } else { "" };
        host(&(text(port, peer, KEY) + more), 1, start)
    });
    let mut hosts = vec![first, second];
    settle(&mut hosts, Instant::ZERO, &mut |_| 1);
    hosts
}

/// Sends an empty datagram from the second host to the first. Returns the number of packets that are delivered.
fn delivered(hosts: &mut [Host], from: [u8; 4]) -> usize {
    hosts[0].delivered.clear();
    send(&mut hosts[1], Instant::ZERO, &datagram(from, [10, 0, 0, 1]));
    settle(hosts, Instant::ZERO, &mut |_| 1);
    hosts[0].delivered.len()
}

fn report(host: &Host) -> Option<SourceNotAllowed> {
    let status: Status = host.site.status(Instant::ZERO, Identity::default(), 0.0, 0.0);
    status.peers[0].source_not_allowed.clone()
}

#[test]
fn by_default_a_peer_sends_from_the_networks_of_the_interface_alone() {
    let mut hosts = pair_with("");
    assert_eq!(delivered(&mut hosts, [10, 0, 0, 2]), 1);
    assert_eq!(delivered(&mut hosts, [169, 254, 1, 2]), 1, "a link-local source");
    assert_eq!(report(&hosts[0]), None);
    assert_eq!(delivered(&mut hosts, FOREIGN), 0);
    assert_eq!(drops(&hosts[0], Drop::NotAllowedSource), 1);
    let expected = SourceNotAllowed {
        packets: 1,
        address: "192.0.2.1".to_owned(),
        line: Some("allowed = [\"10.0.0.0/24\", \"::/0\", \"192.0.2.1/32\"]".to_owned()),
    };
    assert_eq!(report(&hosts[0]), Some(expected.clone()));
    // The line does what it promises.
    let peer = format!("[[peer]]\n{}\n", expected.line.unwrap());
    assert_eq!(delivered(&mut pair_with(&peer), FOREIGN), 1);
}

#[test]
fn any_source_is_accepted_by_name() {
    assert_eq!(delivered(&mut pair_with("[[peer]]\nallowed = \"any\"\n"), FOREIGN), 1);
}

#[test]
fn a_route_that_is_added_by_a_reload_allows_its_sources() {
    let mut hosts = pair_with("");
    assert_eq!(delivered(&mut hosts, FOREIGN), 0);
    let with_route = text(7_001, 7_002, KEY).replace("\"::/0\"", "\"::/0\", \"192.0.2.0/24\"");
    let (config, host) = (super::config(&with_route), &mut hosts[0]);
    let Others::Peers(peers) = &config.others else { panic!("peers") };
    let budget = Budget::of(&config).unwrap();
    let peers = [(&peers[0], Some(Keys::one(Key::new([1; 32])).into()))];
    let changes = host.site.change_peers(Instant::ZERO, &config, &budget, &peers, &mut random(1)).unwrap();
    assert_eq!(changes, ["networks of peers changed"]);
    assert_eq!(report(&hosts[0]), None);
    assert_eq!(delivered(&mut hosts, FOREIGN), 1);
}

#[test]
fn peers_without_keys_change_their_networks_too() {
    let mut one = host(&text(7_001, 7_002, "insecure = true"), 1, 10);
    assert_eq!(one.site.change_networks(&one.config).unwrap(), None);
    let other = super::config(&text(7_001, 7_002, "insecure = true").replace("10.0.0.1", "10.1.0.1"));
    assert!(one.site.change_networks(&other).unwrap().is_some());
}
