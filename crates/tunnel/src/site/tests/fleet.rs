//! A hub of many peers: contexts by need, and all peers at once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use thinair_session::{PublicKeys, Schedule};

use super::*;
use crate::site::peer_channel::IDLE;
use crate::status::{Identity, Status};

const HUB: usize = 1 << 20;

/// Private key of the hub, or of a peer.
fn private(number: usize) -> Key {
    let mut octets = [0x5a; 32];
    octets[..8].copy_from_slice(&number.to_be_bytes());
    Key::new(octets)
}

fn keys(own: usize, other: usize) -> PublicKeys {
    PublicKeys::new(private(own), private(other).public(), None).unwrap()
}

/// Inner address of a peer.
fn inner(number: usize) -> [u8; 4] {
    [10, 1, (number >> 8) as u8, number as u8]
}

/// Address of a peer on the carrier.
fn outer(number: usize) -> SocketAddr {
    ([172, 16, (number >> 8) as u8, number as u8], 7_002).into()
}

fn peers_file(count: usize) -> String {
    let line = |number: usize| {
        let [a, b, c, d] = inner(number);
        format!("p{number} {} {a}.{b}.{c}.{d}/32\n", private(number).public())
    };
    (0..count).map(line).collect()
}

/// Returns the hub of many peers, and its configuration.
fn hub(count: usize) -> Host {
    let text = "[inside]\naddress = [\"10.0.0.1/8\"]\n[carrier]\nurl = \"udp://:7001\"\n[security]\n\
                private_key = \"hub.key\"\npeers = \"fleet.peers\"\n";
    let mut settings = Settings::read(Path::new("hub.toml"), text).unwrap();
    settings.add_peers(Path::new("fleet.peers"), &peers_file(count)).unwrap();
    let surroundings = Surroundings {
        runtime: None,
        state: "state".into(),
        templates: &|_| Ok(Vec::new()),
        resolve: &config::system_resolver,
        tariff: &|_| Err("no price list".to_owned()),
    };
    let config = config::site_config(&settings, &surroundings).unwrap();
    let known = |number| PeerKeys { keys: keys(HUB, number).into(), address: None, keepalive: None };
    of_config(config, (0..count).map(known).collect(), 1)
}

/// Returns a peer of the hub.
fn peer(number: usize) -> Host {
    let [a, b, c, d] = inner(number);
    let text = format!(
        "[inside]\naddress = [\"{a}.{b}.{c}.{d}/8\"]\n[carrier]\nurl = \"udp://203.0.113.1:7001\"\n\
         listen = \"{}\"\n[security]\nprivate_key = \"peer.key\"\n[[peer]]\npublic_key = \"{}\"\n",
        outer(number),
        private(HUB).public(),
    );
    let known = PeerKeys { keys: keys(number, HUB).into(), address: Some(at_hub()), keepalive: None };
    of_config(config(&text), vec![known], 100 + number as u64)
}

fn at_hub() -> SocketAddr {
    ([203, 0, 113, 1], 7_001).into()
}

fn of_config(config: SiteConfig, peers: Vec<PeerKeys>, start: u64) -> Host {
    let budget = Budget::of(&config).unwrap();
    let Security::Key { suite, .. } = config.security else { panic!("keys") };
    let seal =
        TwoWay::new(Instant::ZERO, Over::Datagrams, peers, suite, [1; 8], Box::new(random(start))).unwrap();
    let seal = Some(Seal::TwoWay(seal));
    let site = Site::new(Instant::ZERO, &config, &budget, seal, &mut random(start + 1)).unwrap();
    let crate::site_config::Carrier::Udp { listen, .. } = config.carrier else { panic!("UDP") };
    let address = if listen.ip().is_unspecified() { at_hub() } else { listen };
    let (out, probes, delivered) = (VecDeque::new(), VecDeque::new(), Vec::new());
    Host { site, config, address, out, probes, numbers: Vec::new(), delivered, sessions: 0 }
}

fn with_contexts(host: &Host) -> Vec<usize> {
    let pipelines = host.site.pipelines.iter().enumerate();
    pipelines.filter(|(_, pipeline)| pipeline.channel.there().is_some()).map(|(number, _)| number).collect()
}

#[test]
fn contexts_of_a_peer_are_there_while_it_has_packets_and_nothing_is_lost_by_that() {
    let mut hosts = vec![hub(70), peer(3), peer(68)];
    let mut now = Instant::from_millis(10);
    settle(&mut hosts, now, &mut |_| 1);
    assert_eq!(with_contexts(&hosts[0]), [] as [usize; 0], "sessions alone need none");
    let mut expected = [Vec::new(), Vec::new()];
    for round in 0..3 {
        for at in 0..30 {
            now = now + Duration::from_millis(500);
            let (there, back) = (datagram(inner(3), [10, 0, 0, 1]), datagram([10, 0, 0, 1], inner(3)));
            send(&mut hosts[1], now, &there);
            settle(&mut hosts, now, &mut |_| 1);
            send(&mut hosts[0], now, &back);
            settle(&mut hosts, now, &mut |_| 1);
            expected[0].push(there);
            expected[1].push(back);
            assert_eq!(hosts[0].delivered, expected[0], "{round}, {at}");
            assert_eq!(hosts[1].delivered, expected[1], "{round}, {at}");
        }
        assert_eq!(with_contexts(&hosts[0]), [3]);
        now = now + IDLE;
        settle(&mut hosts, now, &mut |_| 1);
        assert_eq!(with_contexts(&hosts[0]), [] as [usize; 0]);
    }
    let status: Status = hosts[0].site.status(now, Identity::default(), 0.0, 0.0);
    let counters = status.peers.iter().find(|peer| peer.name == "p3").unwrap().counters;
    assert_eq!(counters.feedback.sent.static_nacks, 3, "one context, given back three times");
    assert_eq!(counters.received.packets, 90);
    assert_eq!((status.peer_counts.unwrap().configured, status.peer_counts.unwrap().listed), (70, 64));
}

/// Octets of the longest packet that is sent in one datagram are the same to a hub of few and of many.
#[test]
fn longer_indices_make_no_datagram_longer_than_the_path() {
    for count in [2, 70] {
        let mut hosts = vec![hub(count), peer(1)];
        settle(&mut hosts, Instant::from_millis(10), &mut |_| 1);
        let mut packet = datagram(inner(1), [10, 0, 0, 1]);
        packet.resize(1_400, 7);
        packet[2..4].copy_from_slice(&1_400_u16.to_be_bytes());
        packet[24..26].copy_from_slice(&1_380_u16.to_be_bytes());
        let mut longest = 0;
        for at in 0..100 {
            let now = Instant::from_millis(1_000 + at * 100);
            send(&mut hosts[1], now, &packet);
            longest = hosts[1].out.iter().map(|(_, datagram)| datagram.len()).max().unwrap_or(0).max(longest);
            settle(&mut hosts, now, &mut |_| 1);
        }
        assert!((1_400..=1_472).contains(&longest), "{longest} with {count} peers");
    }
}

/// Number of peers that all start at once. `THINAIR_PEERS=10000`: as many as a hub may have.
fn many() -> usize {
    std::env::var("THINAIR_PEERS").ok().and_then(|count| count.parse().ok()).unwrap_or(300)
}

/// Datagrams that wait in the socket of the hub.
const SOCKET: usize = 1_000;
/// Datagrams that the daemon receives at once.
const BATCH: usize = 64;
/// Time that the hub needs for a handshake, and for any datagram.
const HANDSHAKE: Duration = Duration::from_micros(400);
const DATAGRAM: Duration = Duration::from_micros(10);

/// Time, order, from the hub or to it, site, datagram.
type Arrival = (Instant, u64, bool, usize, Vec<u8>);

/// A hub with a processor and a socket of limited size, its peers, and a network with losses.
struct Storm {
    hub: Host,
    sites: Vec<Seal>,
    /// When each site is to be polled.
    due: Schedule,
    flying: BinaryHeap<Reverse<Arrival>>,
    socket: VecDeque<(usize, Vec<u8>)>,
    now: Instant,
    busy_until: Instant,
    order: u64,
    random: Box<dyn FnMut() -> u32>,
    dropped: usize,
    /// Time at which each site, and the hub for it, had a session.
    back: BTreeMap<usize, Instant>,
}

impl Storm {
    fn fly(&mut self, now: Instant, from_hub: bool, site: usize, datagram: Vec<u8>) {
        // One of fifty is lost.
        if !(self.random)().is_multiple_of(50) {
            let delay = Duration::from_millis(5 + site as u64 * 7_919 % 300);
            self.order += 1;
            self.flying.push(Reverse((now + delay, self.order, from_hub, site, datagram)));
        }
    }

    fn poll_site(&mut self, now: Instant, number: usize) {
        let mut octets = Vec::new();
        let mut sent = Vec::new();
        while self.sites[number].poll(now, &mut octets).is_some() {
            sent.push(std::mem::take(&mut octets));
        }
        self.due.set(number, self.sites[number].poll_at());
        sent.into_iter().for_each(|datagram| self.fly(now, false, number, datagram));
    }

    /// The hub handles what has arrived, and is busy for as long as that takes.
    fn poll_hub(&mut self, now: Instant) {
        let taken: Vec<_> = self.socket.drain(..self.socket.len().min(BATCH)).collect();
        let mut cost = DATAGRAM * taken.len() as u32;
        for (site, mut datagram) in taken {
            self.hub.handle(|hub| hub.handle_datagram(now, Some(outer(site).into()), &mut datagram));
            self.note_back(now, site);
        }
        self.hub.handle(|hub| hub.handle_timeout(now));
        let sent: Vec<_> = self.hub.out.drain(..).collect();
        cost += HANDSHAKE * sent.iter().filter(|(_, datagram)| datagram.len() > 60).count() as u32;
        self.busy_until = now + cost;
        for (to, datagram) in sent {
            let SocketAddr::V4(to) = to else { panic!("IPv4") };
            let [_, _, c, d] = to.ip().octets();
            self.fly(self.busy_until, true, usize::from(c) << 8 | usize::from(d), datagram);
        }
    }

    /// Runs until `end`.
    fn run(&mut self, end: Instant) {
        loop {
            let arrival = self.flying.peek().map(|Reverse((at, ..))| *at);
            let site = self.due.first().map(|(at, _)| at);
            let hub = if self.socket.is_empty() { self.hub.site.poll_at() } else { Some(Instant::ZERO) };
            let hub = hub.map(|at| at.max(self.busy_until).max(self.now));
            let Some(now) = [arrival, site, hub].into_iter().flatten().min().filter(|at| *at < end) else {
                return;
            };
            self.now = now;
            if arrival == Some(now) {
                let Some(Reverse((_, _, from_hub, site, mut datagram))) = self.flying.pop() else { return };
                if from_hub {
                    self.sites[site].open(now, Some(at_hub().into()), &mut datagram);
                    self.due.set(site, self.sites[site].poll_at());
                    self.note_back(now, site);
                } else if self.socket.len() < SOCKET {
                    self.socket.push_back((site, datagram));
                } else {
                    self.dropped += 1;
                }
            } else if site == Some(now) {
                let number = self.due.due(now).unwrap();
                self.poll_site(now, number);
            } else {
                self.poll_hub(now);
            }
        }
    }

    /// Records that a site and the hub have a session with each other.
    fn note_back(&mut self, now: Instant, number: usize) {
        let Some(hub) = &self.hub.site.common.seal else { return };
        if has_session(hub, number) && has_session(&self.sites[number], 0) {
            self.back.entry(number).or_insert(now);
        }
    }
}

/// Returns peers that start at once, and ask a hub at an address.
fn starting(count: usize, hub: SocketAddr) -> (Vec<Seal>, Schedule) {
    let mut due = Schedule::default();
    (0..count).for_each(|number| due.set(number, Some(Instant::ZERO)));
    ((0..count).map(|number| starting_peer(number, hub)).collect(), due)
}

fn starting_peer(number: usize, hub: SocketAddr) -> Seal {
    let known = PeerKeys { keys: keys(number, HUB).into(), address: Some(hub), keepalive: None };
    let random = Box::new(random(7 + number as u64));
    let suite = crate::site_config::Suite::ChaCha20Poly1305;
    Seal::TwoWay(TwoWay::new(Instant::ZERO, Over::Datagrams, vec![known], suite, [1; 8], random).unwrap())
}

fn has_session(seal: &Seal, number: usize) -> bool {
    matches!(seal, Seal::TwoWay(seal) if seal.session(number).is_some())
}

/// Behind a power cut all peers start at once. Those that find the socket of the hub full come again.
#[test]
fn behind_a_power_cut_every_peer_is_back_within_20_s() {
    let count = many();
    let (sites, due) = starting(count, at_hub());
    let mut octets = random(5);
    let chance = move || {
        let mut number = [0; 4];
        octets(&mut number);
        u32::from_be_bytes(number)
    };
    let mut storm = Storm {
        hub: hub(count),
        sites,
        due,
        flying: BinaryHeap::new(),
        socket: VecDeque::new(),
        now: Instant::ZERO,
        busy_until: Instant::ZERO,
        order: 0,
        random: Box::new(chance),
        dropped: 0,
        back: BTreeMap::new(),
    };
    storm.run(Instant::from_millis(20_000));
    let mut times: Vec<_> = storm.back.values().map(|at| at.since(Instant::ZERO).as_millis()).collect();
    times.sort_unstable();
    let of = |share: usize| times[(times.len() - 1) * share / 100];
    println!(
        "{count} peers: {} back within 20 s; half of them within {} ms, 99 % within {} ms, all within {} ms; {} datagrams found \
         the socket full",
        times.len(),
        of(50),
        of(99),
        of(100),
        storm.dropped
    );
    assert_eq!(times.len(), count);
}

/// Peers at addresses of their own start at once, on real sockets of this machine.
#[cfg(target_os = "linux")]
#[test]
fn on_loopback_every_peer_is_back() {
    use std::net::UdpSocket;

    use thinair_os::clock;
    use thinair_os::udp::{ReceiveBatch, SendQueue, options};

    let count = many();
    let socket = |address: &str| {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    let (at_hub, at_sites) = (socket("127.0.0.1:0"), socket("0.0.0.0:0"));
    options::report_own_address(&at_sites).unwrap();
    let to_hub = at_hub.local_addr().unwrap();
    let mut hub = hub(count);
    let (mut sites, mut due) = starting(count, to_hub);
    let (mut of_hub, mut of_sites) = (ReceiveBatch::new(BATCH, 2_048), ReceiveBatch::new(BATCH, 2_048));
    let (mut queue, mut octets, mut back) = (SendQueue::new(), Vec::new(), 0);
    let start = clock::now();
    // Far more than is needed: a machine may be busy.
    while back < count && clock::now().since(start) < Duration::from_secs(120) {
        let now = clock::now();
        while queue.len() < BATCH
            && let Some(number) = due.due(now)
        {
            while sites[number].poll(now, &mut octets).is_some() {
                let own = [127, 1, (number >> 8) as u8, number as u8];
                queue.push_from(Some(own.into()), to_hub, &octets);
            }
            due.set(number, sites[number].poll_at());
        }
        while !queue.is_empty() && queue.send(&at_sites).is_ok() {}
        let mut is_idle = true;
        while of_hub.receive(&at_hub).is_ok() {
            is_idle = false;
            while let Some(taken) = of_hub.take_next() {
                let Some((datagram, from, _)) = taken else { continue };
                hub.handle(|hub| hub.handle_datagram(now, from.map(Into::into), datagram));
            }
            hub.handle(|hub| hub.handle_timeout(now));
            for (to, datagram) in hub.out.drain(..) {
                let _ = at_hub.send_to(&datagram, to);
            }
        }
        while of_sites.receive(&at_sites).is_ok() {
            is_idle = false;
            while let Some(taken) = of_sites.take_next() {
                let Some((datagram, from, Some(std::net::IpAddr::V4(own)))) = taken else { continue };
                let [_, _, c, d] = own.octets();
                let number = usize::from(c) << 8 | usize::from(d);
                sites[number].open(now, from.map(Into::into), datagram);
                due.set(number, sites[number].poll_at());
            }
        }
        if is_idle {
            std::thread::sleep(Duration::from_millis(1));
        }
        let Some(seal) = &hub.site.common.seal else { panic!("a seal") };
        back =
            (0..count).filter(|number| has_session(seal, *number) && has_session(&sites[*number], 0)).count();
    }
    println!("{back} of {count} peers are back after {} ms", clock::now().since(start).as_millis());
    assert_eq!(back, count);
}

/// Instructions, by the number of peers, of the datagrams of one of them: `scripts/fleet` counts those of this function.
#[inline(never)]
fn receive_measured(hub: &mut Host, from: SocketAddr, datagrams: &[Vec<u8>]) {
    for (datagram, at) in datagrams.iter().zip(0..) {
        let now = Instant::from_millis(10_000 + at);
        hub.handle(|hub| hub.handle_datagram(now, Some(from.into()), &mut datagram.clone()));
        hub.handle(|hub| hub.handle_timeout(now));
    }
}

/// As [`receive_measured`], of packets to one of the peers.
#[inline(never)]
fn send_measured(hub: &mut Host, packets: &[Vec<u8>]) {
    for (packet, at) in packets.iter().zip(0..) {
        let now = Instant::from_millis(10_000 + at);
        send(hub, now, packet);
        hub.handle(|hub| hub.handle_timeout(now));
        hub.out.clear();
    }
}

/// As [`receive_measured`], of forged bodies of a peer that is there.
#[inline(never)]
fn reject_bodies_measured(hub: &mut Host, from: SocketAddr, datagrams: &[Vec<u8>]) {
    receive_measured(hub, from, datagrams);
}

/// As [`receive_measured`], of forged requests for keys.
#[inline(never)]
fn reject_requests_measured(hub: &mut Host, from: SocketAddr, datagrams: &[Vec<u8>]) {
    receive_measured(hub, from, datagrams);
}

#[test]
fn forged_datagrams_to_a_hub_of_many_are_measured() {
    const COUNT: usize = 500;
    let count = many();
    let number = count / 2;
    let mut hosts = vec![hub(count), peer(number)];
    settle(&mut hosts, Instant::from_millis(10), &mut |_| 1);
    send(&mut hosts[1], Instant::from_millis(20), &datagram(inner(number), [10, 0, 0, 1]));
    let (_, body) = hosts[1].out.pop_front().unwrap();
    let mut request = Vec::new();
    starting_peer(number, at_hub()).poll(Instant::ZERO, &mut request).unwrap();
    let forged = |mut datagram: Vec<u8>| {
        *datagram.last_mut().unwrap() ^= 1;
        vec![datagram; COUNT]
    };
    reject_bodies_measured(&mut hosts[0], outer(number), &forged(body));
    reject_requests_measured(&mut hosts[0], outer(number), &forged(request));
    assert_eq!(drops(&hosts[0], Drop::Forged), 2 * COUNT as u64);
}

#[test]
fn datagrams_of_one_of_many_peers_are_measured() {
    const COUNT: usize = 500;
    let count = many();
    let number = count * 2 / 3;
    let mut hosts = vec![hub(count), peer(number)];
    settle(&mut hosts, Instant::from_millis(10), &mut |_| 1);
    let now = Instant::from_millis(20);
    let (there, back) = (datagram(inner(number), [10, 0, 0, 1]), datagram([10, 0, 0, 1], inner(number)));
    for _ in 0..30 {
        send(&mut hosts[1], now, &there);
        send(&mut hosts[0], now, &back);
        settle(&mut hosts, now, &mut |_| 1);
    }
    for _ in 0..COUNT {
        send(&mut hosts[1], now, &there);
    }
    let datagrams: Vec<_> = hosts[1].out.drain(..).map(|(_, datagram)| datagram).collect();
    hosts[0].delivered.clear();
    receive_measured(&mut hosts[0], outer(number), &datagrams);
    assert_eq!(hosts[0].delivered.len(), COUNT);
    send_measured(&mut hosts[0], &vec![back; COUNT]);
    assert_eq!(hosts[0].site.counters().sent.packets, 30 + COUNT as u64);
}

/// Memory of this process, in octets.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap() * 4_096
}

/// 10,000 peers, with their configuration, have at most 60 MB. With `THINAIR_PEERS` the test must run alone, as other tests have
/// memory, too.
#[cfg(target_os = "linux")]
#[test]
fn idle_peers_have_little_memory() {
    let count = many();
    let before = resident();
    let mut hub = hub(count);
    let without = resident() - before;
    let now = Instant::from_millis(10);
    let mut octets = Vec::new();
    for number in 0..count {
        let mut site = starting_peer(number, at_hub());
        for _ in 0..3 {
            while site.poll(now, &mut octets).is_some() {
                hub.handle(|hub| hub.handle_datagram(now, Some(outer(number).into()), &mut octets));
            }
            hub.handle(|hub| hub.handle_timeout(now));
            for (_, mut datagram) in hub.out.drain(..).collect::<Vec<_>>() {
                site.open(now, Some(at_hub().into()), &mut datagram);
            }
        }
    }
    let with = resident() - before;
    // Answers to requests that are given up, and previous sessions, are gone.
    hub.handle(|hub| hub.handle_timeout(Instant::from_millis(100_000)));
    let seal = hub.site.common.seal.as_ref().unwrap();
    assert!((0..count).all(|number| has_session(seal, number)));
    println!(
        "{count} peers: {} kB before they have a session, {} kB with one: {} octets each",
        without / 1_000,
        with / 1_000,
        with / count
    );
    if std::env::var_os("THINAIR_PEERS").is_some() && count >= 1_000 {
        assert!(with / count <= 6_000, "{} octets each", with / count);
    }
}
