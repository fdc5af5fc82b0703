//! Nanoseconds to encrypt and to decrypt a body of 64 octets, for each suite, and to reject forged datagrams: minimum
//! and median of 2,000 runs of 100 bodies. Runs are so short that other load of the machine does not affect the minimum. `cargo
//! bench -p thinair-session --bench encryption`

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Instant as Clock;

use thinair_session::{
    BodyFlags, Destination, Key, Keys, Opened, Over, PeerKeys, Random, Seal, Suite, TwoWay,
};
use thinair_wire::time::Instant;

const RUNS: usize = 2_000;
const BODIES: usize = 100;
const BODY: [u8; 64] = [0x5a; 64];
const PEER: Destination = Destination::Peer(0);

fn main() {
    println!("{:<20} {:>10} {:>10} {:>10} {:>10}", "suite", "seal best", "median", "open best", "median");
    for suite in Suite::ALL {
        let [seal, open] = measure(suite).map(|mut runs| {
            runs.sort_unstable();
            (runs[0], runs[RUNS / 2])
        });
        let name = format!("{suite:?}");
        println!("{name:<20} {:>7} ns {:>7} ns {:>7} ns {:>7} ns", seal.0, seal.1, open.0, open.1);
    }
    println!("\n{:<20} {:>10} {:>10}", "rejected", "best", "median");
    for (name, mut runs) in rejections() {
        runs.sort_unstable();
        println!("{name:<20} {:>7} ns {:>7} ns", runs[0], runs[RUNS / 2]);
    }
}

/// Nanoseconds to reject a forged body, and a forged request of a session.
fn rejections() -> [(&'static str, Vec<u128>); 2] {
    let now = Instant::from_millis(1);
    let left = SocketAddr::from(([192, 0, 2, 1], 5_000));
    let mut ends = ready(now, Suite::ChaCha20Poly1305);
    let (mut body, mut request) = (Vec::new(), Vec::new());
    ends[0].seal(now, PEER, BodyFlags::default(), &BODY, &mut body).expect("a session");
    let [mut asking, _] = fresh(now, Suite::ChaCha20Poly1305);
    asking.poll(now, &mut request).expect("a request");
    [("body", body), ("request", request)].map(|(name, mut forged)| {
        let last = forged.len() - 1;
        forged[last] ^= 1;
        let run = |_| {
            let mut copies = vec![forged.clone(); BODIES];
            let start = Clock::now();
            for datagram in &mut copies {
                let opened = ends[1].open(now, Some(left.into()), black_box(datagram));
                assert!(matches!(opened, Opened::Refused(_)));
            }
            start.elapsed().as_nanos() / BODIES as u128
        };
        (name, (0..RUNS).map(run).collect())
    })
}

/// Two ends before their key exchange.
fn fresh(now: Instant, suite: Suite) -> [Seal; 2] {
    let right = SocketAddr::from(([192, 0, 2, 2], 5_000));
    [(1, Some(right)), (2, None)].map(|(seed, address)| {
        let keys = Keys::one(Key::new(*b"thirty-two octets, known to both"));
        let peers = vec![PeerKeys { keys: keys.into(), address, keepalive: None }];
        let end = TwoWay::new(now, Over::Datagrams, peers, suite, [0; 8], random(seed));
        Seal::TwoWay(end.expect("one peer"))
    })
}

/// Two ends after their key exchange.
fn ready(now: Instant, suite: Suite) -> [Seal; 2] {
    let [left, right] = [1_u8, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 5_000)));
    let mut ends = fresh(now, suite);
    let mut out = Vec::new();
    for _ in 0..4 {
        for (from, to, address) in [(0, 1, left), (1, 0, right)] {
            while ends[from].poll(now, &mut out).is_some() {
                ends[to].open(now, Some(address.into()), &mut out);
            }
        }
    }
    ends
}

/// Nanoseconds per body of each run: to encrypt, to decrypt.
fn measure(suite: Suite) -> [Vec<u128>; 2] {
    let now = Instant::from_millis(1);
    let left = SocketAddr::from(([192, 0, 2, 1], 5_000));
    let mut ends = ready(now, suite);
    let mut datagrams = vec![Vec::new(); BODIES];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        let start = Clock::now();
        for datagram in &mut datagrams {
            datagram.clear();
            let sealed = ends[0].seal(now, PEER, BodyFlags::default(), black_box(&BODY), datagram);
            sealed.expect("a session");
        }
        times[0].push(start.elapsed().as_nanos() / BODIES as u128);
        let start = Clock::now();
        for datagram in &mut datagrams {
            let opened = ends[1].open(now, Some(left.into()), black_box(datagram));
            assert!(matches!(opened, Opened::Body { body, .. } if body.len() == BODY.len()));
        }
        times[1].push(start.elapsed().as_nanos() / BODIES as u128);
    }
    times
}

fn random(seed: u64) -> Box<dyn Random> {
    let mut state = seed;
    Box::new(move |octets: &mut [u8]| {
        for octet in octets {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            *octet = (state >> 32) as u8;
        }
    })
}
