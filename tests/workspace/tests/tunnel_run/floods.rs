//! Floods beside known peers: share of 20 Mbit/s that arrives, and its delay, while 50,000 hostile datagrams a second come in.
//!
//!     cargo test --profile optimized -p thinair-tests --test tunnel_run floods -- --ignored --nocapture
//!
//! Both ends run on the first processor, and the flood comes from the second one, from addresses of 127.0.0.0/8. `THINAIR_FLOOD` is the number
//! of datagrams of each kind.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thinair_os::udp::SendQueue;
use thinair_os::{FrameCapture, Interface, clock};

use super::attacks::Garbage;
use super::bench::{ADDRESSES, Between, CarrierKind, DatagramSecurity, SetOnDrop, TunnelBench, thinair};
use super::relay::RelayRandom;

/// Hostile datagrams a second.
const HOSTILE: u32 = 50_000;

/// Octets of a datagram of a known peer, with the headers of IP and UDP, and the time between two: 20 Mbit/s.
const DATAGRAM: usize = 1_228;
const INTERVAL: Duration = Duration::from_nanos(DATAGRAM as u64 * 8 * 1_000 / 20);

/// Least share that arrives, and largest further delay at the 99th percentile.
const SHARE: f64 = 0.98;
const DELAY: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Garbage,
    ForgedBodies,
    ForgedRequests,
    /// Requests of the known peer, from other addresses.
    RecordedRequests,
}

const KINDS: [Kind; 4] = [Kind::Garbage, Kind::ForgedBodies, Kind::ForgedRequests, Kind::RecordedRequests];

/// Share of the datagrams that arrive, and delay at the 99th percentile.
struct Measured {
    share: f64,
    delay: Duration,
}

/// Sends datagrams of a known peer until `stop`, and measures those that arrive.
fn known_peer(bench: &TunnelBench, length: Duration) -> Measured {
    let sockets = [0, 1].map(|side| {
        let address = (ADDRESSES[side][0], 9_200);
        let socket = bench.inside[side].within(|| UdpSocket::bind(address)).unwrap().unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let _ = thinair_os::udp::set_receive_room(&socket, 8 << 20);
        socket
    });
    let [from, to] = &sockets;
    from.connect(to.local_addr().unwrap()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            pin(0);
            let (mut delays, mut seen, mut room) = (Vec::new(), BTreeSet::new(), vec![0; 2_000]);
            loop {
                match to.recv(&mut room) {
                    Ok(_) => {
                        let word = |at: usize| u64::from_be_bytes(room[at..at + 8].try_into().unwrap());
                        assert!(seen.insert(word(0)), "a datagram twice");
                        delays.push(clock::now().as_nanos() - word(8));
                    }
                    Err(_) if stop.load(Ordering::Relaxed) => return delays,
                    Err(_) => {}
                }
            }
        });
        let ended = SetOnDrop(&stop);
        pin(0);
        let (begun, mut number) = (Instant::now(), 0_u32);
        let mut datagram = vec![0; DATAGRAM - 28];
        while begun.elapsed() < length {
            datagram[..8].copy_from_slice(&u64::from(number).to_be_bytes());
            datagram[8..16].copy_from_slice(&clock::now().as_nanos().to_be_bytes());
            let _ = from.send(&datagram);
            number += 1;
            std::thread::sleep((INTERVAL * number).saturating_sub(begun.elapsed()));
        }
        std::thread::sleep(Duration::from_millis(300));
        drop(ended);
        let mut delays = receiver.join().unwrap();
        delays.sort_unstable();
        let late = delays.get(delays.len() * 99 / 100).copied().unwrap_or(u64::MAX);
        Measured { share: delays.len() as f64 / f64::from(number), delay: Duration::from_nanos(late) }
    })
}

/// Puts this thread on one processor.
fn pin(processor: usize) {
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    put(processor, thread.file_name().unwrap().to_str().unwrap());
}

fn put(processor: usize, thread: &str) {
    let mut command = Command::new("taskset");
    let _ = command
        .args(["-pc", &processor.to_string(), thread])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Datagrams of end A that pass on the carrier.
fn recorded(bench: &mut TunnelBench) -> (Vec<u8>, Vec<u8>) {
    let capture = || FrameCapture::open(&Interface::named("lo").unwrap()).unwrap();
    let mut capture = bench.outside.within(capture).unwrap();
    bench.start(0);
    bench.start(1);
    assert!(bench.is_through(20), "{}", bench.reported());
    let mut datagrams = Vec::new();
    while let Some(frame) = capture.next_frame().unwrap() {
        // Ethernet 14, IP 20, UDP 8: from port 7001 to port 7002.
        if frame.octets.get(34..38) == Some(&[0x1b, 0x59, 0x1b, 0x5a]) {
            datagrams.push(frame.octets[42..].to_vec());
        }
    }
    let of = |kind: u8| {
        datagrams.iter().rfind(|datagram| datagram[0] >> 5 == kind && datagram.len() > 30).unwrap().clone()
    };
    (of(3), of(1))
}

/// Sends hostile datagrams of a kind at their rate. Returns their number a second.
fn flood(bench: &TunnelBench, kind: Kind, (request, body): &(Vec<u8>, Vec<u8>), count: u32) -> f64 {
    const BATCH: u32 = 50;
    pin(1);
    let socket = bench.outside.within(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    let mut random = RelayRandom(kind as u64);
    let mut garbage = Garbage::new(5, vec![request.clone(), body.clone()]);
    let to = SocketAddr::from(([127, 0, 0, 1], 7_002));
    let (begun, mut datagram, mut queue) = (Instant::now(), Vec::new(), SendQueue::new());
    for batch in 1..=count / BATCH {
        for _ in 0..BATCH {
            let mut from = (random.next() as u32).to_be_bytes();
            from[0] = 127;
            match kind {
                Kind::Garbage => garbage.fill(&mut datagram),
                Kind::ForgedBodies | Kind::ForgedRequests => {
                    let original = if kind == Kind::ForgedBodies { body } else { request };
                    datagram.clone_from(original);
                    let at = datagram.len() - 1 - random.below(16);
                    datagram[at] ^= 1 << random.below(8);
                }
                Kind::RecordedRequests => datagram.clone_from(request),
            }
            queue.push_from(Some(IpAddr::V4(Ipv4Addr::from(from))), to, &datagram);
        }
        while !queue.is_empty() {
            if queue.send(&socket).is_err() {
                queue.skip();
            }
        }
        queue.clear();
        std::thread::sleep(
            (Duration::from_secs(1) * batch * BATCH / HOSTILE).saturating_sub(begun.elapsed()),
        );
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}

#[test]
#[ignore = "measures for minutes"]
fn known_peers_notice_little_of_floods() {
    if thinair().is_none() {
        return;
    }
    let count: u32 = std::env::var("THINAIR_FLOOD").map_or(500_000, |count| count.parse().unwrap());
    let length = Duration::from_secs(1) * count / HOSTILE;
    println!(
        "{:<8} {:<18} {:>10} {:>9} {:>9} {:>11} {:>11} {:>10}",
        "keys", "flood", "a second", "arrived", "without", "delay p99", "without", "memory"
    );
    let mut missed = Vec::new();
    for (security, keys) in [(DatagramSecurity::Sealed, "shared"), (DatagramSecurity::Public, "public")] {
        let kind = CarrierKind { security, ..CarrierKind::UDP };
        let mut bench =
            TunnelBench::new(&format!("floods-{keys}"), kind, Between::Nothing, &["--rekey", "2h"]);
        let recorded = recorded(&mut bench);
        for end in bench.ends.iter().flatten() {
            put(0, &end.pid.to_string());
        }
        let bench = &bench;
        for kind in KINDS {
            let without = known_peer(bench, length.min(Duration::from_secs(10)));
            let (sessions, before) = (bench.sessions(1), bench.end(1).memory());
            let (rate, with) = std::thread::scope(|scope| {
                let flood = scope.spawn(|| flood(bench, kind, &recorded, count));
                let with = known_peer(bench, length);
                (flood.join().unwrap(), with)
            });
            let grown = bench.end(1).memory().saturating_sub(before);
            println!(
                "{keys:<8} {:<18} {rate:>10.0} {:>9.4} {:>9.4} {:>11.1?} {:>11.1?} {grown:>10}",
                format!("{kind:?}"),
                with.share,
                without.share,
                with.delay,
                without.delay
            );
            assert_eq!(
                bench.sessions(1),
                sessions,
                "{kind:?}: a session for a stranger\n{}",
                bench.reported()
            );
            if with.share < SHARE || with.delay > without.delay + DELAY {
                missed.push((keys, kind));
            }
        }
        assert!(bench.is_through(10), "{}", bench.reported());
    }
    assert!(missed.is_empty(), "less than {SHARE} arrive, or {DELAY:?} later: {missed:?}");
}
