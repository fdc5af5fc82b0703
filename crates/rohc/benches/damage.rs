//! Table of the packets that damage costs in addition to those that it hits. A seed determines every run.
//!
//! `cargo bench -p thinair-rohc --bench damage` sends flows over a link without CRC that flips one bit in 5 % of the
//! packets, and counts
//!
//! - packets that were hit in their compressed header: such a packet is rejected, or CRC-3 accepts it (*wrong*);
//! - packets that were not hit, and were rejected or wrong because of one before them: *propagated*.
//!
//! The last two columns are rohc-lib's propagated packets, with its defaults: the same packets, seeds and places of damage in the same
//! run, by the programs of `make peers`. Below are flows over links that lose packets: errors among those that arrive. Last comes the time
//! that the worst of many hostile packets takes in each engine; `work` in the sources bounds its steps.

use std::time::{Duration, Instant};

use thinair_link::Random;
use thinair_rohc::Mode;

#[path = "../tests/common/damage.rs"]
mod damage;
#[path = "peer/ends.rs"]
mod ends;
#[path = "../tests/common/hostile.rs"]
mod hostile;
#[allow(dead_code, reason = "programs that have to end by themselves are those of tests")]
#[path = "peer/program.rs"]
mod program;

use damage::{DamageCount, DamageRun, Rates, UdpFlow};
use ends::PeerPrograms;
use hostile::{HostileFlow, Run, all_gaps};

const PACKETS: u32 = 2_000;
const SEEDS: u64 = 10;

fn main() {
    let peer = PeerPrograms::find();
    println!("One bit flipped in 5 % of packets: of {PACKETS} packets, mean of {SEEDS} seeds, in 2,000");
    println!("{:<18}{:>5}{:>16}{:>29}{:>6}{:>16}", "", "", "hit in header", "propagated", "", "rohc-lib");
    println!(
        "{:<18}{:>5}{:>9}{:>7}{:>9}{:>7}{:>7}{:>6}{:>6}{:>9}{:>7}",
        "flow", "mode", "refused", "wrong", "refused", "wrong", "mean", "worst", "bar", "mean", "worst"
    );
    let damaged = Rates { damage: 5, loss: 0 };
    let (u, o) = (Mode::Unidirectional, Mode::Optimistic);
    for (mode, bar) in [(u, 20), (o, 5)] {
        for flow in UdpFlow::ALL {
            row(&DamageRun::new(flow, mode, damaged), bar, peer.as_ref());
        }
    }
    for mode in [u, o] {
        for flow in UdpFlow::ALL_RTP {
            row(&DamageRun::new(flow, mode, damaged), 4, peer.as_ref());
        }
    }
    println!("Without a clock:");
    for (flow, mode, bar) in [(UdpFlow::UDP_V4, u, 20), (UdpFlow::UDP_V4, o, 5), (UdpFlow::RTP, u, 4)] {
        let run = DamageRun { step: Duration::ZERO, ..DamageRun::new(flow, mode, damaged) };
        row(&run, bar, peer.as_ref());
    }
    if peer.is_none() {
        println!("skipped: rohc-lib, which `make peers ROHC_PREFIX=DIR` gives a column in the same run");
    }
    println!();
    println!("R-mode, without and with a CRC in every packet (`reliable_crc`), all {SEEDS} seeds");
    println!("{:<18}{:>7}{:>8}{:>10}{:>8}{:>12}", "flows", "CRC", "hit", "accepted", "wrong", "octets");
    for (name, flows) in [("UDP", &UdpFlow::ALL[..]), ("RTP", &UdpFlow::ALL_RTP[..])] {
        for has_crc in [false, true] {
            let mut all = DamageCount::default();
            for &flow in flows {
                let run = DamageRun { has_crc, ..DamageRun::new(flow, Mode::Reliable, damaged) };
                all.add(&all_seeds(|seed| run.carry(PACKETS, seed)).0);
            }
            let hit = all.header_refused + all.header_right + all.header_wrong;
            println!(
                "{name:<18}{has_crc:>7}{hit:>8}{:>10}{:>8}{:>12.2}",
                all.header_wrong,
                all.wrong,
                f64::from(all.octets) / f64::from(all.sent)
            );
        }
    }
    println!();
    println!("Loss: packets that arrive, and are refused or wrong, of all {SEEDS} seeds");
    println!("{:<18}{:>5}{:>9}{:>9}", "flow", "mode", "5 %", "20 %");
    for mode in [u, o] {
        for flow in [UdpFlow::UDP_V4, UdpFlow::UDP_V6, UdpFlow::RTP] {
            let errors = [5, 20].map(|loss| {
                let run = DamageRun::new(flow, mode, Rates { damage: 0, loss });
                let (all, _) = all_seeds(|seed| run.carry(PACKETS, seed));
                all.propagated()
            });
            println!("{:<18}{:>5}{:>9}{:>9}", flow.name, mode.letter(), errors[0], errors[1]);
        }
    }
    println!();
    println!(
        "Decompression of damaged packets and garbage behind losses, silences and counts: the longest, in us"
    );
    for flow in HostileFlow::all() {
        println!("{:<12}{:<30}{:>7.1}", flow.engine(), flow.name, longest(flow));
    }
}

/// Time of the hostile packet that takes longest, the shortest of several measurements, in microseconds.
fn longest(flow: HostileFlow) -> f64 {
    const MEASUREMENTS: u32 = 4;

    let mut longest = Duration::ZERO;
    let mut out = vec![0; 4_096];
    for (mode, gap) in all_gaps() {
        let run = Run::new(flow, mode, gap, 5);
        let mut times = Vec::new();
        for _ in 0..MEASUREMENTS {
            let mut number = 0;
            run.attack(&mut Random::new(3), 1, |end, arrival, packet| {
                let start = Instant::now();
                let _ = std::hint::black_box(end.receive(arrival, packet, &mut out));
                let time = start.elapsed();
                match times.get_mut(number) {
                    Some(shortest) => *shortest = time.min(*shortest),
                    None => times.push(time),
                }
                number += 1;
            });
        }
        longest = longest.max(times.into_iter().max().unwrap_or_default());
    }
    longest.as_secs_f64() * 1e6
}

fn row(run: &DamageRun, bar: u32, peer: Option<&PeerPrograms>) {
    let (all, worst) = all_seeds(|seed| run.carry(PACKETS, seed));
    let mean = |packets: u32| f64::from(packets) / SEEDS as f64;
    print!(
        "{:<18}{:>5}{:>9.1}{:>7.1}{:>9.1}{:>7.1}{:>7.1}{worst:>6}{bar:>6}",
        run.flow.name,
        run.mode.letter(),
        mean(all.header_refused),
        mean(all.header_wrong),
        mean(all.refused),
        mean(all.wrong),
        mean(all.propagated()),
    );
    match peer {
        Some(peer) => {
            let start = || peer.start(run.mode, run.flow.payload);
            let (all, worst) = all_seeds(|seed| run.carry_by(&mut start(), PACKETS, seed));
            println!("{:>9.1}{worst:>7}", mean(all.propagated()));
        }
        None => println!("{:>9}{:>7}", "-", "-"),
    }
}

/// Returns the packets of all seeds, and the largest number in one seed that suffered from a previous one.
fn all_seeds(carry: impl Fn(u64) -> DamageCount) -> (DamageCount, u32) {
    let (mut all, mut worst) = (DamageCount::default(), 0);
    for seed in 0..SEEDS {
        let count = carry(seed);
        worst = worst.max(count.propagated());
        all.add(&count);
    }
    (all, worst)
}
