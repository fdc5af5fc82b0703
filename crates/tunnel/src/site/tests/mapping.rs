//! An end behind a NAT whose timeout it learns.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

/// A NAT before the first host. Only datagrams from inside keep a mapping, the shortest that RFC 4787 permits; it lasts 30 s
/// until it has seen an answer, and traffic 2 s later.
struct Nat {
    timeout: Duration,
    /// Mappings of both sockets: external port, beginning, end, and whether there was an answer.
    mappings: [(u16, Instant, Instant, bool); 2],
    next_port: u16,
    /// Datagrams of the second socket, in both directions.
    probes: u32,
    /// True if the peer is of an earlier version, which drops probes.
    is_old_peer: bool,
}

impl Nat {
    fn new(timeout: Duration) -> Self {
        let none = (0, Instant::ZERO, Instant::ZERO, false);
        Self { timeout, mappings: [none; 2], next_port: 40_000, probes: 0, is_old_peer: false }
    }

    fn is_mapped(&self, socket: usize, now: Instant) -> bool {
        now <= self.mappings[socket].2
    }

    fn out(&mut self, socket: usize, now: Instant) -> SocketAddr {
        if !self.is_mapped(socket, now) {
            self.next_port += 1;
            self.mappings[socket] = (self.next_port, now, now, false);
        }
        let (port, since, until, is_answered) = &mut self.mappings[socket];
        let is_stream = *is_answered && now.since(*since) > Duration::from_secs(2);
        *until = now + if is_stream { self.timeout } else { self.timeout.min(Duration::from_secs(30)) };
        SocketAddr::from(([198, 51, 100, 1], *port))
    }

    fn back(&mut self, to: SocketAddr, now: Instant) -> Option<usize> {
        let socket =
            (0..2).find(|socket| self.mappings[*socket].0 == to.port() && self.is_mapped(*socket, now))?;
        self.mappings[socket].3 = true;
        Some(socket)
    }

    /// Exchanges datagrams of two hosts until none is left.
    fn settle(&mut self, hosts: &mut [Host], now: Instant) {
        loop {
            hosts.iter_mut().for_each(|host| host.handle(|site| site.handle_timeout(now)));
            let from_inside = hosts[0].out.drain(..).map(|(_, datagram)| (0, datagram));
            let mut from_inside: Vec<_> = from_inside.collect();
            from_inside.extend(hosts[0].probes.drain(..).map(|(_, datagram)| (1, datagram)));
            let from_outside: Vec<_> = hosts[1].out.drain(..).collect();
            if from_inside.is_empty() && from_outside.is_empty() {
                return;
            }
            for (socket, mut datagram) in from_inside {
                self.probes += u32::from(socket == 1);
                let from = self.out(socket, now);
                let before = address_at(&hosts[1]);
                if socket == 0 || !self.is_old_peer {
                    hosts[1].handle(|site| site.handle_datagram(now, Some(from.into()), &mut datagram));
                }
                assert!(socket == 0 || address_at(&hosts[1]) == before, "a probe moves no address");
            }
            for (to, mut datagram) in from_outside {
                self.probes += u32::from(datagram[0] & 0xe3 == 0xc3);
                let Some(socket) = self.back(to, now) else { continue };
                let from = Some(hosts[1].address.into()).filter(|_| socket == 0);
                hosts[0].handle(|site| site.handle_datagram(now, from, &mut datagram));
            }
        }
    }

    /// Passes time.
    fn pass(&mut self, hosts: &mut [Host], now: &mut Instant, end: Instant) {
        self.settle(hosts, *now);
        while let Some(at) = hosts.iter().filter_map(|host| host.site.poll_at()).min().filter(|at| *at <= end)
        {
            *now = at.max(*now);
            self.settle(hosts, *now);
        }
        *now = end;
    }
}

fn hosts() -> Vec<Host> {
    hosts_with("\"auto\"")
}

/// Hosts of which the first one has this keepalive.
fn hosts_with(keepalive: &str) -> Vec<Host> {
    let inside = text(7_001, 7_002, KEY).replace("listen", &format!("keepalive = {keepalive}\nlisten"));
    let outside = text(7_002, 7_001, KEY).replace("udp://127.0.0.1:7001", "udp://:7002");
    let mut hosts = vec![host(&inside, 1, 10), host(&outside, 1, 20)];
    hosts[1].address = "127.0.0.1:7002".parse().unwrap();
    hosts
}

/// Address of the end behind the NAT at the other one.
fn address_at(host: &Host) -> Option<SocketAddr> {
    host.site.whereabouts().map(|(_, _, at)| at.peer).next()
}

fn learned(host: &Host) -> Option<Duration> {
    host.site.learned_mappings().map(|(_, learned)| learned.timeout).next()
}

#[test]
fn timeouts_are_learned_while_the_far_end_reaches_this_one_at_any_minute_of_a_day() {
    for seconds in [15, 30, 120, 300] {
        let timeout = Duration::from_secs(seconds);
        let (mut hosts, mut nat, mut now) = (hosts(), Nat::new(timeout), Instant::from_millis(1));
        let start = now;
        for minute in 1..=24 * 60 {
            nat.pass(&mut hosts, &mut now, start + MINUTE * minute);
            assert!(nat.is_mapped(0, now), "NAT of {seconds} s: no mapping in minute {minute}");
            if minute.is_power_of_two() || minute % 179 == 0 {
                let packet = datagram([10, 0, 0, 1], [10, 0, 0, minute as u8]);
                send(&mut hosts[1], now, &packet);
                nat.settle(&mut hosts, now);
                assert_eq!(hosts[0].delivered.pop(), Some(packet), "minute {minute}");
            }
        }
        let learned = learned(&hosts[0]).unwrap();
        println!("NAT of {seconds} s: learned {:.1} s by {} datagrams", learned.as_secs_f64(), nat.probes);
        assert!(learned <= timeout && learned * 10 >= timeout * 9, "{seconds}: {learned:?}");
        assert!(nat.probes <= 60, "{}", nat.probes);
        // The mapping in use has been one all the time.
        assert_eq!(nat.mappings[0].0, 40_001);
        assert_eq!(address_at(&hosts[1]), Some(SocketAddr::from(([198, 51, 100, 1], 40_001))));
        assert_eq!(hosts[0].sessions, hosts[1].sessions);
    }
}

#[test]
fn an_end_with_bare_keepalives_is_reached_at_any_minute_of_a_day() {
    let timeout = MINUTE * 5;
    let (mut hosts, mut nat, mut now) =
        (hosts_with("\"270s\"\nbare_keepalive = true"), Nat::new(timeout), Instant::from_millis(1));
    let start = now;
    for minute in 1..=24 * 60 {
        nat.pass(&mut hosts, &mut now, start + MINUTE * minute);
        assert!(nat.is_mapped(0, now), "no mapping in minute {minute}");
        // Within two hours with the keys of the last packet, then with new ones.
        if minute.is_power_of_two() || minute % 479 == 0 {
            let packet = datagram([10, 0, 0, 1], [10, 0, 0, minute as u8]);
            send(&mut hosts[1], now, &packet);
            nat.settle(&mut hosts, now);
            assert_eq!(hosts[0].delivered.pop(), Some(packet), "minute {minute}");
        }
    }
    assert_eq!(nat.mappings[0].0, 40_001);
    assert_eq!(drops(&hosts[1], Drop::MalformedDatagram), 0);
}

#[test]
fn an_earlier_version_at_the_far_end_leaves_25_s() {
    let (mut hosts, mut nat, mut now) = (hosts(), Nat::new(Duration::from_secs(30)), Instant::from_millis(1));
    nat.is_old_peer = true;
    nat.pass(&mut hosts, &mut now, Instant::ZERO + MINUTE * 60);
    assert_eq!((learned(&hosts[0]), nat.probes), (None, 5));
    let before = hosts[0].site.counters().sent.datagrams;
    nat.pass(&mut hosts, &mut now, Instant::ZERO + MINUTE * 120);
    let more = hosts[0].site.counters().sent.datagrams - before;
    assert!((144..=146).contains(&more), "{more}");
    assert!(nat.is_mapped(0, now));
}

#[test]
fn a_peer_answers_each_probe_once_and_only_one_at_a_time() {
    let (mut hosts, mut nat, mut now) = (hosts(), Nat::new(MINUTE), Instant::from_millis(1));
    nat.settle(&mut hosts, now);
    let probe = |hosts: &mut [Host], now, delay| {
        let message = thinair_session::MappingMessage::Request { id: 9, delay };
        let mut datagram = Vec::new();
        let seal = hosts[0].site.common.seal.as_mut().unwrap();
        seal.seal_mapping(now, 0, &message, &mut datagram).unwrap();
        datagram
    };
    let from = |port| Some(AddressPair::from(SocketAddr::from(([203, 0, 113, 5], port))));
    let second = Duration::from_secs(1);
    let [first, last] = [1, 2].map(|seconds| probe(&mut hosts, now, second * seconds));
    let long = probe(&mut hosts, now, thinair_session::mapping::LONGEST + second);
    for (datagram, port) in [(&first, 1), (&last, 2), (&last, 3), (&long, 4)] {
        hosts[1].handle(|site| site.handle_datagram(now, from(port), &mut datagram.clone()));
    }
    assert_eq!(drops(&hosts[1], Drop::Replayed), 1);
    now = now + second * 2;
    hosts[1].handle(|site| site.handle_timeout(now));
    let answers: Vec<_> = hosts[1].out.drain(..).collect();
    let [(to, answer)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((to.port(), answer.len()), (2, last.len()));
}
