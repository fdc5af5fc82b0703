//! Peers in a file of their own.

use std::path::Path;

use thinair_session::{Key, PEERS};

use super::super::{Settings, site_config};
use super::{complains, surroundings};
use crate::config::ConfigError;
use crate::site_config::{Others, SiteConfig};

const HUB: &str =
    "[carrier]\nurl = \"udp://:7000\"\n[security]\nprivate_key = \"hub.key\"\npeers = \"fleet.peers\"\n";

/// Returns the configuration of a hub, with more than its file and the lines of its peers.
fn of_lines(more: &str, lines: &str) -> Result<SiteConfig, ConfigError> {
    let mut settings = Settings::read(Path::new("/etc/thinair/hub.toml"), &(HUB.to_owned() + more))?;
    let file = settings.peers_file()?.unwrap();
    settings.add_peers(&file, lines)?;
    site_config(&settings, &surroundings())
}

fn public(number: usize) -> String {
    let mut octets = [1; 32];
    octets[..8].copy_from_slice(&number.to_be_bytes());
    Key::new(octets).public().to_string()
}

/// A line with a name, the key of that number, and networks.
fn line(name: &str, key: usize, networks: &str) -> String {
    format!("{name} {} {networks}\n", public(key))
}

#[test]
fn peers_of_the_file_are_beside_those_of_sections() {
    let section =
        format!("[[peer]]\nname = \"west\"\npublic_key = \"{}\"\nallowed = [\"10.9.0.4/32\"]\n", public(4));
    let config = of_lines(
        &section,
        &(line("north", 1, "10.9.0.2/32, fd09::2/128") + &line("south", 2, "10.9.0.3/32")),
    );
    let Others::Peers(peers) = config.unwrap().others else { panic!("peers") };
    let names: Vec<_> = peers.iter().map(|peer| peer.name.as_str()).collect();
    assert_eq!(names, ["west", "north", "south"]);
    assert_eq!(peers[1].public_key.as_ref().unwrap().at, "/etc/thinair/fleet.peers:1");
}

#[test]
fn peers_that_cannot_be_told_apart_are_named_with_both_lines() {
    let north = line("north", 1, "10.9.0.2/32");
    let at = ["/etc/thinair/fleet.peers:2: peer: ", "see /etc/thinair/fleet.peers:1"];
    for (second, what) in [
        (
            line("south", 2, "10.9.0.2/32"),
            "\"south\" and \"north\" have overlapping networks 10.9.0.2/32 and 10.9.0.2/32",
        ),
        (line("south", 2, "10.9.0.0/16"), "overlapping networks 10.9.0.0/16 and 10.9.0.2/32"),
        (line("south", 1, "10.9.0.3/32"), "have the same public key"),
        (line("north", 2, "10.9.0.3/32"), "have the same name"),
    ] {
        complains(of_lines("", &(north.clone() + &second)), &[at[0], what, at[1]]);
    }
    let section =
        format!("[[peer]]\nname = \"west\"\npublic_key = \"{}\"\nallowed = [\"10.9.0.2/32\"]\n", public(4));
    complains(
        of_lines(&section, &north),
        &[
            "/etc/thinair/fleet.peers:1: peer: \"north\" and \"west\"",
            "see /etc/thinair/hub.toml:9: [[peer]] allowed",
        ],
    );
}

#[test]
fn a_file_that_does_not_fit_is_named() {
    complains(of_lines("", "# nobody\n"), &["/etc/thinair/hub.toml:5: [security] peers", "has no peer"]);
    let two = line("north", 1, "10.9.0.2/32") + &line("south", 2, "");
    complains(of_lines("", &two), &["fleet.peers:2: peer: \"south\" needs `allowed`"]);
    let without = HUB.replace("private_key = \"hub.key\"\n", "");
    complains(super::of_text(&without), &["[security] peers", "needs a private key of this end"]);
    complains(
        super::of_text(&(HUB.to_owned() + "[mesh]\nown = 1\n[[site]]\nid = 1\n")),
        &["peers", "is for a hub"],
    );
}

#[test]
fn the_peer_beyond_the_maximum_is_named_with_advice() {
    let key = public(1);
    let lines =
        |count| (0..count).map(|n| format!("p{n} {key} 10.{}.{}.{}/32\n", n >> 16, n >> 8 & 255, n & 255));
    // The keys are equal, which is found behind the number of peers.
    complains(of_lines("", &lines(PEERS).collect::<String>()), &["have the same public key"]);
    complains(
        of_lines("", &lines(PEERS + 1).collect::<String>()),
        &["fleet.peers:10001: peer: \"p10000\" is peer 10001, and a hub has at most 10000", "several hubs"],
    );
}
