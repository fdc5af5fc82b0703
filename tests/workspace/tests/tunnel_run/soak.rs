//! Two ends for hours, with new keys, loss, an address that moves, kills at random, and a hostile neighbor: `make soak`.
//!
//! Each datagram has a number of its own for the whole time: none is delivered twice, or altered; in calm rounds all are delivered; and
//! the memory of an end that is not killed does not grow.

use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::attacks::Garbage;
use super::bench::{
    ADDRESSES, Between, CarrierKind, DatagramSecurity, SetOnDrop, TunnelBench, run, soak, thinair, wait_for,
};
use super::relay::{Harm, Relay, RelayRandom};
use super::traffic::content;

/// Time of a round.
const ROUND: Duration = Duration::from_secs(10);

/// Time behind a round with losses until nothing comes late.
const SETTLED: Duration = Duration::from_secs(4);

/// Datagrams a second and direction.
const RATE: u32 = 200;

/// Datagrams a second of the neighbor, to each end.
const HOSTILE: u32 = 1_000;

/// Growth of memory that is permitted, in octets.
const GROWTH: u64 = 1 << 20;

/// Numbered datagrams in one direction.
#[derive(Default)]
struct Numbered {
    sent: AtomicU64,
    /// Numbers that were delivered: 64 of them for each index.
    delivered: Mutex<BTreeMap<u64, u64>>,
    again: AtomicU64,
    other: AtomicU64,
}

impl Numbered {
    fn send(&self, socket: &UdpSocket, to: SocketAddr, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let number = self.sent.load(Ordering::Relaxed);
            // There is no interface while an end is down.
            let _ = socket.send_to(&content(to.port(), number), to);
            self.sent.store(number + 1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_secs(1) / RATE);
        }
    }

    fn receive(&self, socket: &UdpSocket, port: u16, stop: &AtomicBool) {
        let mut room = vec![0; 2_000];
        while !stop.load(Ordering::Relaxed) {
            let Ok(len) = socket.recv(&mut room) else { continue };
            let octets = &room[..len];
            match octets.first_chunk().map(|number| u64::from_be_bytes(*number)) {
                Some(number) if content(port, number) == octets => {
                    let mut delivered = self.delivered.lock().unwrap();
                    let word = delivered.entry(number / 64).or_default();
                    let before = std::mem::replace(word, *word | (1 << (number % 64)));
                    self.again.fetch_add(u64::from(before == *word), Ordering::Relaxed);
                }
                _ => {
                    self.other.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn delivered(&self) -> u64 {
        self.delivered.lock().unwrap().values().map(|word| u64::from(word.count_ones())).sum()
    }

    /// True if the last datagrams were delivered, but for those on the way.
    fn is_through(&self) -> bool {
        let sent = self.sent.load(Ordering::Relaxed);
        self.missing(sent.saturating_sub(70)..sent.saturating_sub(20)) == 0
    }

    /// Numbers in a range that were not delivered.
    fn missing(&self, range: std::ops::Range<u64>) -> usize {
        let delivered = self.delivered.lock().unwrap();
        range
            .filter(|number| {
                delivered.get(&(number / 64)).is_none_or(|word| word & (1 << (number % 64)) == 0)
            })
            .count()
    }
}

/// Sends garbage, altered datagrams and recorded ones to both ends, in the name of the other one.
fn neighbor(relay: &Relay, stop: &AtomicBool) -> u64 {
    // Some of each minute, besides the latest ones.
    let (mut old, mut datagram, mut sent) = (VecDeque::new(), Vec::new(), 0);
    let mut garbage = Garbage::new(0x6a7b, relay.kept());
    while !stop.load(Ordering::Relaxed) {
        let recorded = relay.kept();
        old.extend(recorded.iter().take(8).cloned());
        while old.len() > 10_000 {
            old.pop_front();
        }
        for (recorded, old) in recorded.iter().zip(old.iter().cycle().skip(sent as usize % old.len())) {
            garbage.fill(&mut datagram);
            for side in 0..2 {
                for hostile in [&datagram, recorded, old] {
                    sent += u64::from(relay.send(side, hostile));
                }
            }
            std::thread::sleep(Duration::from_secs(3) / HOSTILE);
        }
        garbage.kept = recorded;
    }
    sent
}

#[test]
#[ignore = "takes THINAIR_SOAK seconds: make soak"]
fn nothing_comes_twice_and_memory_is_flat_for_hours() {
    if thinair().is_none() {
        return;
    }
    let seconds = soak().max(60);
    let kind = CarrierKind { security: DatagramSecurity::Public, ..CarrierKind::UDP };
    let mut bench = TunnelBench::new("soak", kind, Between::Relay, &["--rekey", "1min"]);
    bench.start(0);
    bench.start(1);
    assert!(bench.is_through(20), "{}", bench.reported());
    let mut random = RelayRandom(std::env::var("THINAIR_SEED").map_or(56, |seed| seed.parse().unwrap()));
    let ways = [0, 1].map(|_| Numbered::default());
    let at = |side: usize| SocketAddr::new(ADDRESSES[side][0].parse().unwrap(), 9_100 + side as u16);
    let sockets = [0, 1].map(|side| {
        let socket =
            bench.inside[side].within(|| UdpSocket::bind(("0.0.0.0", at(side).port()))).unwrap().unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        socket
    });
    let (begun, length) = (Instant::now(), Duration::from_secs(seconds));
    let (mut kills, mut moves, mut sessions, mut calm) = (0, 0, 0, 0);
    // Memory of the end that is not killed in the second half, in the middle and at the end.
    let (mut memory, mut started) = ([0; 2], Instant::now());
    let stop = AtomicBool::new(false);
    let hostile = std::thread::scope(|scope| {
        let ended = SetOnDrop(&stop);
        for side in 0..2 {
            let (ways, sockets, stop) = (&ways, &sockets, &stop);
            scope.spawn(move || ways[side].send(&sockets[side], at(1 - side), stop));
            scope.spawn(move || ways[side].receive(&sockets[1 - side], at(1 - side).port(), stop));
        }
        let (relay, stop) = (Arc::clone(bench.relay()), &stop);
        let hostile = scope.spawn(move || neighbor(&relay, stop));
        while begun.elapsed() < length {
            let is_late = begun.elapsed() * 2 > length;
            // It has had all kinds of traffic since its start.
            if is_late && memory[0] == 0 && started.elapsed() > 2 * ROUND {
                memory[0] = bench.end(1).memory();
            }
            let harm = match random.below(5) {
                0 => Harm { lost: 50_000, ..Harm::NONE },
                1 => Harm { damaged: 20_000, ..Harm::NONE },
                2 => Harm { again: Some(Duration::from_millis(700)), ..Harm::NONE },
                3 => Harm { reflected: true, lost: 10_000, ..Harm::NONE },
                _ => Harm::NONE,
            };
            bench.relay().set(harm);
            let is_calm = harm.lost == 0 && harm.damaged == 0;
            match random.below(4) {
                0 => {
                    let side = if is_late { 0 } else { random.below(2) };
                    std::thread::sleep(Duration::from_millis(random.next() % 5_000));
                    sessions += bench.sessions(side);
                    bench.ends[side].take().unwrap().end("-KILL");
                    assert!(wait_for(10, || !bench.has_interface(side)));
                    bench.start(side);
                    if side == 1 {
                        started = Instant::now();
                    }
                    kills += 1;
                }
                1 => {
                    bench.relay().roam();
                    moves += 1;
                }
                _ if is_calm => {
                    let ping = ["ping", "-c", "3", "-i", "0.2", "-W", "2", ADDRESSES[1][0]];
                    assert!(wait_for(30, || run(&bench.inside[0], 10, &ping).status.success()));
                    // The neighbor delivers what was lost in the last round, and decompressors recover from that.
                    std::thread::sleep(SETTLED);
                    assert!(wait_for(30, || ways.iter().all(Numbered::is_through)), "{}", bench.reported());
                    let from = [0, 1].map(|side| ways[side].sent.load(Ordering::Relaxed));
                    std::thread::sleep(ROUND);
                    for side in 0..2 {
                        let range = from[side]..ways[side].sent.load(Ordering::Relaxed);
                        assert!(
                            wait_for(5, || ways[side].missing(range.clone()) == 0),
                            "{range:?}: {}\n{}",
                            ways[side].missing(range.clone()),
                            bench.reported()
                        );
                    }
                    calm += 1;
                }
                _ => std::thread::sleep(ROUND),
            }
        }
        bench.relay().set(Harm::NONE);
        assert!(bench.is_through(30), "{}", bench.reported());
        memory[1] = bench.end(1).memory();
        sessions += (0..2).map(|side| bench.sessions(side)).sum::<u64>();
        drop(ended);
        hostile.join().unwrap()
    });
    for (side, way) in ways.iter().enumerate() {
        let counts = [&way.sent, &way.again, &way.other].map(|count| count.load(Ordering::Relaxed));
        println!(
            "from end {side}: {} sent, {} delivered, {} again, {} altered",
            counts[0],
            way.delivered(),
            counts[1],
            counts[2]
        );
        assert_eq!(counts[1..], [0, 0], "{}", bench.reported());
        assert!(way.delivered() * 2 > counts[0], "{}", bench.reported());
    }
    println!(
        "soak: {seconds} s, {calm} calm rounds without a loss, {kills} kills, {moves} moves, {sessions} sessions, {hostile} hostile datagrams; memory {} to {} octets",
        memory[0], memory[1]
    );
    assert!(memory[0] > 0 && memory[1] <= memory[0] + GROWTH, "{memory:?}");
}
