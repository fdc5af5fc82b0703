use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use thinair_capture::Reader;
use thinair_session::{Insecure, Key, Keys, Over, PeerKeys, TwoWay};
use thinair_wire::time::Instant;

use super::*;
use crate::config::{self, Settings, Surroundings};
use crate::mtu::Budget;
use crate::site_config::{Others, Security, SiteConfig};

/// A site with its address and outputs.
struct Host {
    site: Site,
    config: SiteConfig,
    address: SocketAddr,
    out: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Datagrams of the second socket.
    probes: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Numbers of the datagrams.
    numbers: Vec<u64>,
    delivered: Vec<Vec<u8>>,
    sessions: u32,
}

impl Host {
    /// Gives the site an input, and collects all outputs.
    fn handle(&mut self, input: impl FnOnce(&mut Site)) {
        input(&mut self.site);
        while let Some(output) = self.site.poll_output() {
            match output {
                SiteOutput::Datagram { number, to, octets } => {
                    self.numbers.push(number);
                    self.out.push_back((to.unwrap().peer, octets.to_vec()))
                }
                SiteOutput::Probe { to, octets } => self.probes.push_back((to, octets.to_vec())),
                SiteOutput::Packet { octets, .. } => self.delivered.push(octets.to_vec()),
                SiteOutput::Event { event, .. } => {
                    self.sessions += u32::from(matches!(event, SiteEvent::Session { .. }));
                }
            }
        }
    }
}

mod bridged;
mod fleet;
mod full;
mod hold;
mod idle;
mod mapping;
mod mesh;
mod output;
mod sent;
mod sources;
mod trial;
mod trouble;

/// Reproducible random octets.
fn random(seed: u64) -> impl FnMut(&mut [u8]) + Send {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |octets: &mut [u8]| {
        for octet in octets {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *octet = (state >> 32) as u8;
        }
    }
}

fn config(text: &str) -> SiteConfig {
    let settings = Settings::read(Path::new("test.toml"), text).unwrap();
    let surroundings = Surroundings {
        runtime: None,
        state: "state".into(),
        templates: &|_| Ok(Vec::new()),
        tariff: &|_| Err(String::new()),
        resolve: &config::system_resolver,
    };
    config::site_config(&settings, &surroundings).unwrap()
}

/// Creates a host. `start`: number of the start, so that restarted sites draw different random numbers.
fn host(text: &str, key: u8, start: u64) -> Host {
    let config = config(text);
    let budget = Budget::of(&config).unwrap();
    let Others::Peers(peers) = &config.others else { panic!("peers") };
    let seal = match &config.security {
        Security::Insecure => {
            Seal::Insecure(Insecure::peers(peers.iter().map(|peer| peer.address).collect()))
        }
        Security::Key { suite, .. } => {
            let keys = |peer: usize| Keys::one(Key::new([key + peer as u8; 32]));
            let peers = peers.iter().enumerate();
            let peers = peers
                .map(|(n, peer)| PeerKeys {
                    keys: keys(n).into(),
                    address: peer.address,
                    keepalive: peer.keepalive,
                })
                .collect();
            let random = Box::new(random(start));
            let mut seal =
                TwoWay::new(Instant::ZERO, Over::Datagrams, peers, *suite, [1; 8], random).unwrap();
            if config.bare_keepalive {
                seal.send_bare_keepalives();
            }
            Seal::TwoWay(seal)
        }
        Security::Open => panic!("nothing is open here"),
    };
    let site = Site::new(Instant::ZERO, &config, &budget, Some(seal), &mut random(start + 1)).unwrap();
    let crate::site_config::Carrier::Udp { listen, .. } = config.carrier else { panic!("UDP") };
    let (out, probes, delivered) = (VecDeque::new(), VecDeque::new(), Vec::new());
    Host { site, config, address: listen, out, probes, numbers: Vec::new(), delivered, sessions: 0 }
}

fn text(port: u16, peer: u16, security: &str) -> String {
    format!(
        "[inside]\naddress = [\"10.0.0.1/24\"]\nroute = [\"::/0\"]\n[carrier]\nurl = \"udp://127.0.0.1:{peer}\"\n\
         listen = \"127.0.0.1:{port}\"\n[security]\n{security}\n"
    )
}

const KEY: &str = "key = \"key\"";

fn pair(security: &str) -> Vec<Host> {
    vec![host(&text(7_001, 7_002, security), 1, 10), host(&text(7_002, 7_001, security), 1, 20)]
}

/// Effect of the network on a datagram; returns the number of copies.
type Fate = dyn FnMut(&mut Vec<u8>) -> usize;

/// Exchanges datagrams until none is left.
fn settle(hosts: &mut [Host], now: Instant, fate: &mut Fate) {
    loop {
        for host in hosts.iter_mut() {
            host.handle(|site| site.handle_timeout(now));
        }
        let mut moved = Vec::new();
        for host in hosts.iter_mut() {
            let from = host.address;
            moved.extend(host.out.drain(..).map(|(to, datagram)| (from, to, datagram)));
        }
        if moved.is_empty() {
            return;
        }
        for (from, to, mut datagram) in moved {
            for _ in 0..fate(&mut datagram) {
                let Some(host) = hosts.iter_mut().find(|host| host.address == to) else { continue };
                host.handle(|site| site.handle_datagram(now, Some(from.into()), &mut datagram.clone()));
            }
        }
    }
}

fn send(host: &mut Host, now: Instant, packet: &[u8]) {
    host.handle(|site| site.handle_packet(now, packet));
    host.handle(|site| site.pause(now));
}

fn captured() -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures/coap_udp6_get_con.pcap");
    let mut reader = Reader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next_record() {
        packets.push(record.unwrap().network_packet().unwrap().packet.to_vec());
    }
    packets
}

fn drops(host: &Host, reason: Drop) -> u64 {
    host.site.counters().drops.of(reason)
}

#[test]
fn packets_come_back_as_they_went_in_from_the_first_one_on() {
    for security in [KEY, "insecure = true"] {
        let mut hosts = pair(security);
        let packets = captured();
        for (packet, at) in packets.iter().zip(0..) {
            let now = Instant::from_millis(10 * at);
            // GETs go in one direction, and responses in the other.
            send(&mut hosts[at as usize % 2], now, packet);
            settle(&mut hosts, now, &mut |_| 1);
        }
        let of = |start: usize| packets.iter().skip(start).step_by(2).cloned().collect::<Vec<_>>();
        assert_eq!(hosts[1].delivered, of(0), "{security}");
        assert_eq!(hosts[0].delivered, of(1), "{security}");
        // All contexts are established: 64 octets of a GET have become 3, and those of the seal.
        let sent = hosts[0].site.counters().sent;
        assert!(sent.compressed_octets * 5 < sent.octets, "{sent:?}");
    }
}

#[test]
fn a_carrier_that_loses_repeats_and_damages_delivers_nothing_else() {
    let mut hosts = pair(KEY);
    let packets = captured();
    let mut chance = random(99);
    let mut fate = move |datagram: &mut Vec<u8>| {
        let mut octets = [0; 4];
        chance(&mut octets);
        if octets[1] < 8 {
            let at = usize::from(octets[2]) % datagram.len();
            datagram[at] ^= 1 << (octets[3] % 8);
        }
        match octets[0] {
            0..16 => 0,
            16..32 => 2,
            _ => 1,
        }
    };
    for (packet, at) in packets.iter().zip(0..) {
        let now = Instant::from_millis(200 * at);
        send(&mut hosts[at as usize % 2], now, packet);
        settle(&mut hosts, now, &mut fate);
    }
    for (host, start) in [(1, 0), (0, 1)] {
        let sent: Vec<_> = packets.iter().skip(start).step_by(2).collect();
        let delivered = &hosts[host].delivered;
        // In order, without duplicates or foreign packets.
        let mut rest = sent.iter();
        assert!(delivered.iter().all(|packet| rest.any(|sent| *sent == packet)));
        assert!(delivered.len() * 10 > sent.len() * 8, "{} of {}", delivered.len(), sent.len());
        assert!(drops(&hosts[host], Drop::Forged) > 0);
        assert!(drops(&hosts[host], Drop::Replayed) > 0);
    }
}

#[test]
fn an_end_that_starts_anew_is_heard_at_once() {
    let mut hosts = pair(KEY);
    let packets = captured();
    for (packet, at) in packets.iter().step_by(2).take(50).zip(0..) {
        let now = Instant::from_millis(10 * at);
        send(&mut hosts[0], now, packet);
        settle(&mut hosts, now, &mut |_| 1);
    }
    assert_eq!(hosts[1].delivered.len(), 50);
    hosts[1] = host(&text(7_002, 7_001, KEY), 1, 30);
    for (packet, at) in packets.iter().step_by(2).skip(50).take(50).zip(100..) {
        let now = Instant::from_millis(10 * at);
        settle(&mut hosts, now, &mut |_| 1);
        send(&mut hosts[0], now, packet);
        settle(&mut hosts, now, &mut |_| 1);
    }
    assert_eq!(hosts[1].delivered.len(), 50);
    assert_eq!(hosts[0].site.sources[0].counters.restarts, 1);
}

#[test]
fn another_key_gets_nothing_through() {
    let mut hosts = vec![host(&text(7_001, 7_002, KEY), 1, 10), host(&text(7_002, 7_001, KEY), 2, 20)];
    for at in 0..100 {
        let now = Instant::from_millis(100 * at);
        send(&mut hosts[0], now, &captured()[0]);
        settle(&mut hosts, now, &mut |_| 1);
    }
    assert!(hosts.iter().all(|host| host.delivered.is_empty() && host.sessions == 0));
}

/// An empty IPv4 datagram.
fn datagram(from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0];
    packet.extend([from, to].concat());
    let sum = thinair_wire::checksum::checksum(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet.extend([1, 2, 3, 4, 0, 8, 0, 0]);
    packet
}

#[test]
fn a_hub_tells_its_peers_apart_and_lets_nobody_speak_for_another() {
    let hub = "[inside]\naddress = [\"10.0.0.1/24\"]\n[carrier]\nurl = \"udp://:7001\"\n\
               [security]\nkey = \"key\"\n\
               [[peer]]\nname = \"two\"\nallowed = [\"10.0.0.2/32\"]\nkey = \"two\"\n\
               [[peer]]\nname = \"three\"\nallowed = [\"10.0.0.3/32\"]\nkey = \"three\"\n";
    let mut hosts =
        vec![host(hub, 1, 10), host(&text(7_002, 7_001, KEY), 1, 20), host(&text(7_003, 7_001, KEY), 2, 30)];
    hosts[0].address = "127.0.0.1:7001".parse().unwrap();
    let now = Instant::from_millis(1);
    settle(&mut hosts, now, &mut |_| 1);
    // They reach the hub from any address.
    send(&mut hosts[1], now, &datagram([10, 0, 0, 2], [10, 0, 0, 1]));
    send(&mut hosts[2], now, &datagram([10, 0, 0, 3], [10, 0, 0, 1]));
    settle(&mut hosts, now, &mut |_| 1);
    assert_eq!(hosts[0].delivered.len(), 2);
    // A packet of one peer with the address of the other.
    send(&mut hosts[1], now, &datagram([10, 0, 0, 3], [10, 0, 0, 1]));
    settle(&mut hosts, now, &mut |_| 1);
    assert_eq!((hosts[0].delivered.len(), drops(&hosts[0], Drop::NotAllowedSource)), (2, 1));
    // Each peer receives only its own packets.
    send(&mut hosts[0], now, &datagram([10, 0, 0, 1], [10, 0, 0, 3]));
    send(&mut hosts[0], now, &datagram([10, 0, 0, 1], [10, 0, 0, 4]));
    settle(&mut hosts, now, &mut |_| 1);
    assert_eq!((hosts[1].delivered.len(), hosts[2].delivered.len()), (0, 1));
    assert_eq!(drops(&hosts[0], Drop::NoRoute), 1);
}

#[test]
fn a_site_that_waits_for_nothing_has_no_time_to_be_woken_at_soon() {
    let mut hosts = pair("insecure = true");
    assert_eq!(hosts[0].site.poll_at(), None);
    send(&mut hosts[0], Instant::ZERO, &captured()[0]);
    settle(&mut hosts, Instant::ZERO, &mut |_| 1);
    // Feedback waits to be sent with a packet.
    assert!(hosts[1].site.poll_at().is_some());
    settle(&mut hosts, Instant::ZERO + Duration::from_secs(5), &mut |_| 1);
    assert_eq!(hosts[1].site.poll_at(), None);
    let status = hosts[0].config.carrier.to_string();
    assert_eq!(status, "udp://127.0.0.1:7001");
}
