//! Time to simulate a transfer over five hops of 802.15.4, and memory of 100,000 nodes: `cargo bench -p
//! thinair-simulation --bench chains`.
//!
//! The transfer is that of `extras/ns3/chain.cc`, which is built and run beside it where ns-3 is installed: 512 KiB in
//! segments of 512 octets, a window of one segment, reassembly at every hop, BER 1e-5. Frames are numbers, or octets
//! that every node parses. Memory is that of numbers; of another framing with `-- memory=2`, by its index.

#![allow(missing_docs)]

use core::time::Duration;
use std::process::Command;
use std::time::Instant as Wall;

use thinair_emulator::RohcChannel;
use thinair_rohc::{
    Channel, ChannelError, CidSpace, CompressorConfig, DecompressorConfig, Mode, ProfileId, ProfileSet,
};
use thinair_segment::Fixed;
use thinair_simulation::RandomStreams;
use thinair_simulation::csma::{
    BitErrorRate, CsmaConfig, CsmaFraming, Forwarding, FrameCompression, MacConfig, Running, Topology,
    Transfer,
};
use thinair_wire::time::Instant;

/// Seconds of ns-3.37 for one transfer, used where it is not installed.
const NS3: f64 = 1.06;

/// Source of the ns-3 program, and a file of Debian's `libns3-dev`.
const NS3_PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../extras/ns3/chain.cc");
const NS3_HEADER: &str = "/usr/include/ns3/lr-wpan-module.h";
const NS3_LIBRARIES: [&str; 9] = [
    "applications",
    "internet",
    "lr-wpan",
    "mobility",
    "network",
    "propagation",
    "sixlowpan",
    "spectrum",
    "core",
];

/// Number of rounds, each with all framings.
const ROUNDS: u32 = 5;

/// Number of chains of six nodes: 100,002 nodes.
const CHAINS: u32 = 16_667;

fn transfer(framing: CsmaFraming) -> Transfer {
    Transfer {
        network: CsmaConfig {
            topology: Topology::Chain { hops: 5 },
            mac: MacConfig { sense_range: 1, ..MacConfig::default() },
            framing,
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

/// Profile 0x0006 with feedback, one context per direction and hop.
fn rohc() -> Result<Box<RohcChannel>, ChannelError> {
    let channel = Channel::new(CidSpace::Small, 0, ProfileSet::of(&[ProfileId::Tcp])?)?;
    Ok(Box::new(RohcChannel {
        compressor: CompressorConfig::new(channel),
        decompressor: DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) },
        bases: Vec::new(),
        feedback_wait: Duration::from_millis(10),
        ends: None,
    }))
}

/// Value of `/proc/self/status` in kilobytes.
fn memory(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.trim_matches([':', '\t', ' ', 'k', 'B']).parse().ok()).unwrap_or(0)
}

fn main() -> Result<(), ChannelError> {
    let framings = [
        ("numbers", CsmaFraming::PAPER, 50.0),
        ("octets, IPv6", CsmaFraming::Rfc4944(FrameCompression::None), 20.0),
        ("octets, LOWPAN_IPHC", CsmaFraming::Rfc4944(FrameCompression::Iphc), 20.0),
        ("octets, ROHC", CsmaFraming::Rfc4944(FrameCompression::Rohc(rohc()?)), 20.0),
    ];
    let program = ns3();
    if program.is_none() {
        println!("ns-3 cannot be asked here (libns3-dev, g++): {NS3} s, as measured before");
    }
    // Alternating, and the minimum of each: a machine's speed varies.
    let mut least = f64::INFINITY;
    let mut best = [const { None }; 4];
    for round in 0..ROUNDS {
        least = least.min(program.and_then(worked).unwrap_or(NS3));
        for ((_, framing, _), best) in framings.iter().zip(&mut best) {
            fastest(&transfer(framing.clone()), round, best);
        }
    }
    println!("ns-3: {least:.2} s for a transfer");
    for ((name, _, wanted), best) in framings.iter().zip(&best) {
        let Some(Best { seconds, frames, events }) = best else { continue };
        println!(
            "{name}: a transfer in {:.1} ms, {frames} frames, {events} events, {:.1} M events/s: {:.0} times ns-3, {wanted:.0} wanted",
            seconds * 1e3,
            *events as f64 / seconds / 1e6,
            least / seconds,
        );
    }
    // Each in its own process, so that none reuses memory of another.
    let only = std::env::args().find_map(|arg| arg.strip_prefix("memory=")?.parse::<usize>().ok());
    for (name, framing, _) in framings.iter().skip(only.unwrap_or(0)).take(1) {
        memory_of(name, &transfer(framing.clone()));
    }
    Ok(())
}

/// Builds the equivalent program of ns-3, where possible.
fn ns3() -> Option<&'static str> {
    if !std::path::Path::new(NS3_HEADER).exists() {
        return None;
    }
    let program = concat!(env!("CARGO_TARGET_TMPDIR"), "/ns3-chain");
    let built = Command::new("g++")
        .args(["-O2", "-std=c++17", NS3_PROGRAM, "-o", program])
        .args(NS3_LIBRARIES.map(|library| format!("-lns3-{library}")))
        .status();
    built.ok()?.success().then_some(program)
}

/// CPU time of the program in seconds.
fn worked(program: &str) -> Option<f64> {
    let output = Command::new(program).output().ok().filter(|output| output.status.success())?;
    let output_text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    println!("ns-3: {output_text}");
    output_text.rsplit(' ').next()?.parse().ok()
}

/// Fastest of some runs.
#[derive(Clone, Copy)]
struct Best {
    seconds: f64,
    frames: u64,
    events: u64,
}

fn fastest(plan: &Transfer, round: u32, best: &mut Option<Best>) {
    for run in 0..8 {
        let began = Wall::now();
        let outcome = plan.run(&mut Fixed::new(512), RandomStreams::new(1), 8 * round + run);
        let seconds = began.elapsed().as_secs_f64();
        let all = outcome.all();
        if best.is_none_or(|best| seconds < best.seconds) {
            *best = Some(Best { seconds, frames: all.sent + all.acks, events: outcome.events });
        }
    }
}

fn memory_of(name: &str, plan: &Transfer) {
    let before = memory("VmRSS");
    let mut chains: Vec<_> =
        (0..CHAINS).map(|run| (Running::new(plan, RandomStreams::new(1), run), Fixed::new(512))).collect();
    let began = Wall::now();
    for second in 1..=10 {
        let end = Instant::ZERO + Duration::from_secs(second);
        for (chain, sizer) in &mut chains {
            while chain.step(plan, sizer, end) {}
        }
    }
    let octets: u64 = chains.iter().map(|(chain, _)| chain.outcome(plan).acknowledged).sum();
    println!(
        "{name}: 100,002 nodes in chains of six: {:.1} MB; 10 s of {CHAINS} transfers in {:.1} s, {} octets each",
        (memory("VmHWM").saturating_sub(before)) as f64 * 1.024e-3,
        began.elapsed().as_secs_f64(),
        octets / u64::from(CHAINS),
    );
}
