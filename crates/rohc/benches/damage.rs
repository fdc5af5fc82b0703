//! Table of the packets that damage costs in addition to those that it hits. A seed determines every run.
//!
//! `cargo bench -p thinair-rohc --bench damage` sends flows over a link without CRC that flips one bit in 5 % of the
//! packets, and counts
//!
//! - packets that were hit in their compressed header: such a packet is rejected, or CRC-3 accepts it (*wrong*);
//! - packets that were not hit, and were rejected or wrong because of one before them: *propagated*.
//!
//! Below are flows over links that lose packets: errors among those that arrive. The figures of rohc-lib (master of
//! 2019-09-24, optimistic approach of 4, one seed) were measured elsewhere, on flows of the same kind.

use std::time::Duration;

use thinair_rohc::Mode;

#[path = "../tests/common/damage.rs"]
mod damage;

use damage::{DamageCount, DamageRun, Rates, UdpFlow};

const PACKETS: u32 = 2_000;
const SEEDS: u64 = 10;

fn main() {
    println!("One bit flipped in 5 % of packets: of {PACKETS} packets, mean of {SEEDS} seeds, in 2,000");
    println!("{:<18}{:>5}{:>16}{:>29}{:>6}{:>10}", "", "", "hit in header", "propagated", "", "");
    println!(
        "{:<18}{:>5}{:>9}{:>7}{:>9}{:>7}{:>7}{:>6}{:>6}{:>10}",
        "flow", "mode", "refused", "wrong", "refused", "wrong", "mean", "worst", "bar", "rohc-lib"
    );
    let damaged = Rates { damage: 5, loss: 0 };
    for (mode, bar, rohc_lib) in [(Mode::Unidirectional, 20, "137"), (Mode::Optimistic, 5, "10")] {
        for flow in UdpFlow::ALL {
            row(&DamageRun::new(flow, mode, damaged), bar, rohc_lib);
        }
    }
    for (mode, rohc_lib) in [(Mode::Unidirectional, "8"), (Mode::Optimistic, "-")] {
        for flow in UdpFlow::ALL_RTP {
            row(&DamageRun::new(flow, mode, damaged), 4, rohc_lib);
        }
    }
    println!("Without a clock:");
    let (u, o) = (Mode::Unidirectional, Mode::Optimistic);
    let rows = [(UdpFlow::UDP_V4, u, 20, "137"), (UdpFlow::UDP_V4, o, 5, "10"), (UdpFlow::RTP, u, 4, "8")];
    for (flow, mode, bar, rohc_lib) in rows {
        row(&DamageRun { step: Duration::ZERO, ..DamageRun::new(flow, mode, damaged) }, bar, rohc_lib);
    }
    println!();
    println!("Loss: packets that arrive, and are refused or wrong, of all {SEEDS} seeds");
    println!("{:<18}{:>5}{:>9}{:>9}", "flow", "mode", "5 %", "20 %");
    for mode in [Mode::Unidirectional, Mode::Optimistic] {
        for flow in [UdpFlow::UDP_V4, UdpFlow::UDP_V6, UdpFlow::RTP] {
            let errors = [5, 20].map(|loss| {
                let (all, _) = all_seeds(&DamageRun::new(flow, mode, Rates { damage: 0, loss }));
                all.propagated()
            });
            println!("{:<18}{:>5}{:>9}{:>9}", flow.name, mode.letter(), errors[0], errors[1]);
        }
    }
}

fn row(run: &DamageRun, bar: u32, rohc_lib: &str) {
    let (all, worst) = all_seeds(run);
    let mean = |packets: u32| f64::from(packets) / SEEDS as f64;
    println!(
        "{:<18}{:>5}{:>9.1}{:>7.1}{:>9.1}{:>7.1}{:>7.1}{worst:>6}{bar:>6}{rohc_lib:>10}",
        run.flow.name,
        run.mode.letter(),
        mean(all.header_refused),
        mean(all.header_wrong),
        mean(all.refused),
        mean(all.wrong),
        mean(all.propagated()),
    );
}

/// Returns the packets of all seeds, and the largest number in one seed that suffered from a previous one.
fn all_seeds(run: &DamageRun) -> (DamageCount, u32) {
    let (mut all, mut worst) = (DamageCount::default(), 0);
    for seed in 0..SEEDS {
        let count = run.carry(PACKETS, seed);
        worst = worst.max(count.propagated());
        all.add(&count);
    }
    (all, worst)
}
