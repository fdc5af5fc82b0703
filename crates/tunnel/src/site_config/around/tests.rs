//! The sizes of a budget agree with real datagrams, for every example configuration and all
//! variants of encryption.

use std::net::SocketAddr;
use std::path::Path;

use thinair_session::{
    Around, BodyFlags, Destination, Epoch, EpochStore, Group, GroupConfig, Insecure, Key, Keys, Over,
    PeerKeys, Random, Seal, TwoWay,
};
use thinair_wire::time::Instant;

use crate::config::templates::Template;
use crate::config::{self, Settings, Surroundings};
use crate::mtu::Budget;
use crate::packaging::{Packager, PackagerConfig};
use crate::site_config::{Carrier, Others, Rekey, Security, SiteConfig, Suite};
use crate::unit::SiteId;

fn config(template: Template) -> Option<SiteConfig> {
    let surroundings = Surroundings {
        runtime: None,
        state: "state".into(),
        templates: &|_| Ok(Vec::new()),
        tariff: &|_| Err(String::new()),
        resolve: &|_, port| Ok(vec![([192, 0, 2, 1], port).into()]),
    };
    if template == Template::Shared {
        return None;
    }
    let mut settings = Settings::read(Path::new("site.toml"), template.text()).expect("a template");
    if template == Template::Mesh {
        settings.add_shared(Path::new("shared.toml"), Template::Shared.text()).expect("a template");
    }
    if template == Template::Fleet {
        let peer = "north ANJNyPtSrzb2EBE8iRx4G1XF2hO/PMa9+C5JUwrYuTk= 10.9.0.2/32";
        settings.add_peers(Path::new("fleet.peers"), peer).expect("a peer");
    }
    Some(config::site_config(&settings, &surroundings).expect("a template"))
}

/// A store without persistence.
struct Nothing;

impl EpochStore for Nothing {
    fn load(&mut self, _: SiteId) -> std::io::Result<Option<Epoch>> {
        Ok(None)
    }

    fn store(&mut self, _: SiteId, _: &Epoch) -> std::io::Result<()> {
        Ok(())
    }
}

/// Random octets that repeat.
fn random(seed: u8) -> Box<dyn Random> {
    Box::new(move |octets: &mut [u8]| octets.fill(seed))
}

fn keys() -> Keys {
    Keys::one(Key::new([1; 32]))
}

/// Returns an end whose session with a peer has used many counters, so that it sends whole ones.
fn with_session(now: Instant, over: Over, suite: Suite) -> Seal {
    let [left, right] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 5_000)));
    let end = |address, seed| {
        let peers = vec![PeerKeys { keys: keys().into(), address, keepalive: None }];
        Seal::TwoWay(TwoWay::new(now, over, peers, suite, [0; 8], random(seed)).expect("one peer"))
    };
    let (mut here, mut there) = (end(Some(right), 3), end(None, 4));
    let from = |address: SocketAddr| (over == Over::Datagrams).then_some(address.into());
    let (mut request, mut answer) = (Vec::new(), Vec::new());
    here.poll(now, &mut request).expect("a request");
    there.open(now, from(left), &mut request);
    there.poll(now, &mut answer).expect("an answer");
    here.open(now, from(right), &mut answer);
    here.seal(now, Destination::Peer(0), BodyFlags::default(), b"first", &mut Vec::new()).expect("a session");
    here.note_sealed(Destination::Peer(0), 40_000);
    here
}

/// Encrypts `body` in a datagram with the whole counter, if there is one.
fn sealed(config: &SiteConfig, body: &[u8]) -> (Around, Vec<u8>) {
    let now = Instant::from_millis(500);
    let mut seal = match (&config.security, &config.others) {
        (Security::Open, _) => return (config.around(), body.to_vec()),
        (Security::Key { suite, .. }, Others::Peers(_)) => with_session(now, config.carrier.over(), *suite),
        (Security::Key { suite, .. }, Others::Mesh(mesh)) => {
            let group = GroupConfig {
                own: mesh.own,
                sites: mesh.sites.iter().map(|site| site.id).collect(),
                keys: keys(),
                suite: *suite,
                digest: [0; 8],
                wall_seconds: 1_790_000_000,
            };
            Seal::Group(Group::new(now, group, Box::new(Nothing), random(1)).expect("a group"))
        }
        (Security::Insecure, Others::Peers(peers)) => {
            Seal::Insecure(Insecure::peers(peers.iter().map(|peer| peer.address).collect()))
        }
        (Security::Insecure, Others::Mesh(mesh)) => {
            Seal::Insecure(Insecure::group(mesh.own, mesh.sites.iter().map(|site| site.id).collect()))
        }
    };
    let to = match &config.others {
        Others::Peers(_) => Destination::Peer(0),
        Others::Mesh(_) => Destination::Everybody,
    };
    let mut out = Vec::new();
    seal.seal(now, to, BodyFlags::default(), body, &mut out).expect("it sends");
    (seal.around(), out)
}

#[test]
fn the_largest_body_fills_the_largest_datagram_and_no_more() {
    let mut meshes = 0;
    for template in Template::ALL {
        let Some(mut config) = config(template) else { continue };
        if let Others::Mesh(mesh) = &mut config.others {
            // A receiver-only site encrypts nothing.
            mesh.own = mesh.own.or(SiteId::new(77));
            meshes += 1;
        }
        let securities = Suite::ALL
            .map(|suite| Security::Key {
                path: Some("key".into()),
                private: None,
                suite,
                negotiates: false,
                rekey: Rekey::Auto,
            })
            .into_iter()
            .chain([Security::Insecure, config.security.clone()]);
        for security in securities {
            let short = matches!(&security, Security::Key { suite: Suite::AesCcm4, .. });
            if short && matches!(config.others, Others::Mesh(_)) {
                continue;
            }
            config.security = security;
            let what = format!("{template:?}, {:?}", config.security);
            let budget = Budget::of(&config).expect("there is room");
            let (around, datagram) = sealed(&config, &vec![7; budget.largest_body]);
            // The longest message depends on the kind of keys, and here both ends share one.
            let longest_message = config.around().longest_message;
            assert_eq!(Around { longest_message, ..around }, config.around(), "{what}");
            assert_eq!(datagram.len(), budget.largest_body + around.most(), "{what}");
            assert!(datagram.len() <= budget.largest_datagram, "{what}");
            let packaging = crate::site::packaging(&config.carrier);
            let packager_config = PackagerConfig::new(budget.largest_body);
            let packager = Packager::new(Instant::ZERO, packaging, &config.others, packager_config)
                .expect("there is room");
            assert!(budget.largest_unit <= packager.largest_unit(), "{what}");
            if matches!(config.carrier, Carrier::Serial { .. })
                || *packaging == crate::site_config::Packaging::Packed
            {
                assert_eq!(datagram.len(), budget.largest_datagram, "nothing is left: {what}");
            }
        }
    }
    assert!(meshes > 0);
}
