//! How long a transfer over five hops of 802.15.4 takes to simulate, and how much memory 100,000 nodes need:
//! `cargo bench -p thinair-lab --bench chains`.
//!
//! The transfer is the one for which ns-3.37 took 1.06 s of one core: 512 KiB in segments of 512 octets, a window of one
//! segment, packets put together at every hop, BER 1e-5.

#![allow(missing_docs)]

use core::time::Duration;
use std::time::Instant as Wall;

use thinair_lab::Streams;
use thinair_lab::csma::{BitErrorRate, Config, Forwarding, Framing, MacConfig, Running, Topology, Transfer};
use thinair_segment::Fixed;
use thinair_wire::time::Instant;

/// Seconds of ns-3.37 for one transfer.
const NS3: f64 = 1.06;

/// Chains of six nodes: 100,002 nodes.
const CHAINS: u32 = 16_667;

fn transfer() -> Transfer {
    Transfer {
        network: Config {
            topology: Topology::Chain { hops: 5 },
            mac: MacConfig { sense_range: 1, ..MacConfig::default() },
            framing: Framing::PAPER,
            forwarding: Forwarding::Reassembled(4),
            errors: BitErrorRate::constant(1e-5),
        },
        from: 0,
        to: 5,
        octets: 512 * 1024,
        tcp: Transfer::tcp(512, 1),
        limit: Duration::from_secs(6_000),
        trace: false,
    }
}

/// A figure of `/proc/self/status` in kilobytes.
fn memory(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.trim_matches([':', '\t', ' ', 'k', 'B']).parse().ok()).unwrap_or(0)
}

fn main() {
    let plan = transfer();
    let mut fastest = f64::INFINITY;
    let mut events = 0;
    for run in 0..50 {
        let began = Wall::now();
        events = plan.run(&mut Fixed::new(512), Streams::new(1), run).events;
        fastest = fastest.min(began.elapsed().as_secs_f64());
    }
    println!(
        "a transfer: {:.1} ms, {events} events, {:.1} M events/s: {:.0} times ns-3.37 ({NS3} s)",
        fastest * 1e3,
        events as f64 / fastest / 1e6,
        NS3 / fastest,
    );

    let before = memory("VmRSS");
    let mut chains: Vec<_> =
        (0..CHAINS).map(|run| (Running::new(&plan, Streams::new(1), run), Fixed::new(512))).collect();
    let began = Wall::now();
    for second in 1..=10 {
        let end = Instant::ZERO + Duration::from_secs(second);
        for (chain, sizer) in &mut chains {
            while chain.step(&plan, sizer, end) {}
        }
    }
    let octets: u64 = chains.iter().map(|(chain, _)| chain.outcome(&plan).acknowledged).sum();
    println!(
        "100,002 nodes in chains of six: {:.0} MB; 10 s of {CHAINS} transfers in {:.1} s, {} octets each",
        (memory("VmHWM") - before) as f64 * 1.024e-3,
        began.elapsed().as_secs_f64(),
        octets / u64::from(CHAINS),
    );
}
