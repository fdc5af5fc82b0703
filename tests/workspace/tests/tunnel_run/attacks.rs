//! Attackers: other keys, replayed and reflected datagrams, and garbage.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thinair_os::udp;

use super::bench::{
    ADDRESSES, Between, CarrierKind, SetOnDrop, TunnelBench, TunnelDaemon, key, run, thinair,
};
use super::relay::{Harm, RelayRandom};
use super::traffic::{FLOWS, numbered, ping};

/// Number of garbage datagrams.
const GARBAGE: usize = 1_000_000;

/// Octets that may wait at a socket, as the system counts them. Far below its buffer, so that none are lost.
const WAITING: u64 = 1 << 20;

#[test]
fn nothing_gets_through_with_another_key() {
    if thinair().is_none() {
        return;
    }
    let ule = CarrierKind { name: "ule", scheme: "ule+udp", ..CarrierKind::UDP };
    for kind in [CarrierKind::UDP, ule] {
        let mut bench = TunnelBench::new(&format!("key-{}", kind.name), kind, Between::Relay, &[]);
        let (own, other) = (bench.folder.path("key"), key(&bench.folder, "other"));
        bench.replace(1, &own, &other);
        bench.start(0);
        bench.start(1);
        std::thread::scope(|scope| {
            for flow in FLOWS {
                let bench = &bench;
                scope.spawn(move || {
                    let delivered = numbered(bench, flow, 1_000, Duration::from_secs(2));
                    assert_eq!((delivered.once, delivered.again, delivered.other), (0, 0, 0), "{flow:?}");
                });
            }
        });
        for side in 0..2 {
            let status = bench.end(side).status();
            assert_eq!(status["totals"]["received"]["packets"], 0, "{}", bench.reported());
            assert_eq!(status["peers"][0]["sessions"], 0, "{}", status["peers"][0]);
            let reported = ["forged", "handshake"].map(|reason| bench.end(side).drops(reason));
            assert!(reported.iter().sum::<u64>() > 0, "{}", bench.reported());
            assert!(bench.end(side).drops("no_session") > 0, "{}", bench.reported());
        }
        println!("{}: {}", kind.name, bench.reported());
    }
}

#[test]
fn what_is_sent_again_is_not_delivered_again() {
    // Datagrams of a replaced session belong to an unknown session, or fail its key.
    let reasons = ["replayed", "unknown_session", "forged"];
    between_ends("again", Harm { again: Some(Duration::from_secs(1)), ..Harm::NONE }, &reasons);
}

#[test]
fn what_comes_back_is_not_delivered() {
    let harm = Harm { reflected: true, ..Harm::NONE };
    between_ends("reflected", harm, &["reflected", "forged", "unknown_session", "replayed"]);
}

/// Sends numbered datagrams in both directions through a relay with this harm, which must be counted by one of these
/// reasons.
fn between_ends(name: &str, harm: Harm, reasons: &[&str]) {
    if thinair().is_none() {
        return;
    }
    let mut bench = TunnelBench::new(name, CarrierKind::UDP, Between::Relay, &[]);
    // Handshakes, too.
    bench.relay().set(harm);
    bench.start(0);
    bench.start(1);
    assert!(bench.is_through(20), "{}", bench.reported());
    std::thread::scope(|scope| {
        for flow in FLOWS {
            let bench = &bench;
            scope.spawn(move || {
                let delivered = numbered(bench, flow, 1_000, Duration::from_secs(3));
                assert_eq!((delivered.again, delivered.other), (0, 0), "{flow:?} {delivered:?}");
                assert!(
                    delivered.once * 10 >= delivered.sent * 9,
                    "{flow:?} {delivered:?}\n{}",
                    bench.reported()
                );
            });
        }
    });
    println!("{name}: {}", bench.reported());
    let statuses = [0, 1].map(|side| bench.end(side).status());
    for side in 0..2 {
        let counted: u64 =
            reasons.iter().map(|&reason| statuses[side]["drops"][reason].as_u64().unwrap()).sum();
        assert!(counted > 1_000, "{name}: {counted}\n{}", bench.reported());
        let ways = ["received", "sent"].map(|way| statuses[side]["totals"][way]["packets"].as_u64().unwrap());
        let other = statuses[1 - side]["totals"]["sent"]["packets"].as_u64().unwrap();
        assert!(ways[0] <= other, "{name}: {} of {other} came\n{}", ways[0], bench.reported());
        assert_eq!(statuses[side]["peers"][0]["restarts"], 0, "{name}");
    }
    bench.relay().set(Harm::NONE);
    assert!(bench.is_through(10), "{}", bench.reported());
}

#[test]
fn garbage_leaves_no_trace() {
    if thinair().is_none() {
        return;
    }
    let bench = TunnelBench::started("garbage", CarrierKind::UDP, Between::Relay, &[]);
    assert!(ping(&bench, 0, 50, 100).is_some() && ping(&bench, 1, 50, 1_000).is_some());
    let kept = bench.relay().kept();
    let mut garbage = Garbage::new(0x6a7b, kept);
    let (end, socket) = (bench.end(1), bench.relay().socket(1));
    let to = SocketAddr::from(([127, 0, 0, 1], 7_002));
    // Allocates everything once.
    garbage.send(socket, to, end, GARBAGE / 20);
    assert!(bench.is_through(10), "{}", bench.reported());
    let (before, received) = (end.memory(), datagrams(end));
    let done = AtomicBool::new(false);
    let (answered, asked) = std::thread::scope(|scope| {
        let pings = scope.spawn(|| {
            let (mut answered, mut asked) = (0, 0);
            while !done.load(Ordering::Relaxed) {
                let ping = ["ping", "-c", "1", "-W", "2", ADDRESSES[1][asked % 2]];
                asked += 1;
                answered += usize::from(run(&bench.inside[0], 5, &ping).status.success());
                std::thread::sleep(Duration::from_millis(100));
            }
            (answered, asked)
        });
        let ended = SetOnDrop(&done);
        let begun = Instant::now();
        garbage.send(socket, to, end, GARBAGE);
        println!("garbage: {GARBAGE} datagrams in {:?}", begun.elapsed());
        drop(ended);
        pings.join().unwrap()
    });
    assert!(bench.is_through(10), "{}", bench.reported());
    let (after, taken) = (end.memory(), datagrams(end) - received);
    println!("garbage: {before} octets of memory before, {after} after; {answered} of {asked} pings");
    println!("garbage: {}", bench.reported());
    assert!(taken >= GARBAGE as u64, "{taken} were taken");
    assert!(after.abs_diff(before) <= 1 << 20, "{before} octets before, {after} after");
    assert!(answered * 10 >= asked * 8, "{answered} of {asked} pings");
}

fn datagrams(end: &TunnelDaemon) -> u64 {
    end.status()["totals"]["received"]["datagrams"].as_u64().unwrap()
}

/// Source of garbage.
pub(crate) struct Garbage {
    random: RelayRandom,
    pool: Vec<u8>,
    /// Previously valid datagrams.
    pub(crate) kept: Vec<Vec<u8>>,
}

impl Garbage {
    pub(crate) fn new(seed: u64, kept: Vec<Vec<u8>>) -> Self {
        Self { random: RelayRandom(seed), pool: RelayRandom(9).octets(1 << 20), kept }
    }

    /// Sends this many datagrams, not faster than they are received.
    fn send(&mut self, socket: &std::net::UdpSocket, to: SocketAddr, end: &TunnelDaemon, count: usize) {
        let mut batch = vec![Vec::new(); udp::MOST];
        let mut sent = 0;
        while sent < count {
            if sent % (4 * udp::MOST) == 0 {
                while waiting(end, to.port()) > WAITING {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            for datagram in &mut batch {
                self.fill(datagram);
            }
            let batch: Vec<_> = batch.iter().map(Vec::as_slice).collect();
            let mut gone = 0;
            while gone < batch.len() {
                gone += udp::send(socket, Some(to), &batch[gone..]).unwrap_or(0);
            }
            sent += batch.len();
        }
    }

    pub(crate) fn fill(&mut self, datagram: &mut Vec<u8>) {
        let random = &mut self.random;
        let len = random.below(1_473);
        let start = random.below(self.pool.len() - len);
        datagram.clear();
        match random.below(4) {
            0 => datagram.extend_from_slice(&self.pool[start..start + len]),
            // A valid kind (docs/carriers.md), and flags.
            1 => {
                datagram.extend_from_slice(&self.pool[start..start + len]);
                if let Some((kind, rest)) = datagram.split_first_mut() {
                    *kind = (*kind & 0x1f) | [0x20, 0x40, 0x60, 0x80, 0xa0][random.below(5)];
                    if let Some(index) = rest.first_mut() {
                        *index &= 0x03;
                    }
                }
            }
            cut => {
                let good = &self.kept[random.below(self.kept.len())];
                datagram.extend_from_slice(good);
                if cut == 2 {
                    datagram.truncate(random.below(good.len()));
                } else {
                    for _ in 0..1 + random.below(4) {
                        let at = random.below(good.len());
                        datagram[at] ^= 1 << random.below(8);
                    }
                }
            }
        }
    }
}

/// Octets that wait at the socket with that port, in the namespace of an end.
fn waiting(end: &TunnelDaemon, port: u16) -> u64 {
    let table = fs::read_to_string(format!("/proc/{}/net/udp", end.pid)).unwrap();
    let local = format!(":{port:04X}");
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|fields| fields.get(1).is_some_and(|field| field.ends_with(&local))).unwrap();
    u64::from_str_radix(line[4].split(':').nth(1).unwrap(), 16).unwrap()
}
