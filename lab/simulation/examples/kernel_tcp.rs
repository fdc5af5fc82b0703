//! Our TCP in virtual time beside the kernel's over an equal link in real time: exchanges over GPRS and WiFi with
//! Nagle's algorithm, and downloads with losses. Needs root and TUN.
//!
//! `cargo run --release -p thinair-simulation --example kernel_tcp -- [RUNS [SECONDS OF EXCHANGES]]`

#[cfg(target_os = "linux")]
#[path = "kernel_tcp/compare.rs"]
mod compare;

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use compare::{ours_download, ours_exchanges, theirs_download, theirs_exchanges};

    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let runs = numbers.next().transpose()?.unwrap_or(3);
    let count = numbers.next().transpose()?.unwrap_or(10) * 10;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;

    for (access, model, loss) in compare::ACCESSES {
        println!("C-RTT, {count} exchanges over {access} with {loss} % of added loss, ms");
        let ours: Vec<_> = (0..200).map(|run| ours_exchanges(model, loss, count, run)).collect();
        let mut theirs = Vec::new();
        for run in 0..runs {
            let (crtt, packets, late) = theirs_exchanges(model, loss, count, run.into())?;
            println!("  kernel {crtt:.1}, {packets:?} packets, p99 {late} us late");
            theirs.push(crtt);
        }
        let (ours, theirs) = (mean(&ours), mean(&theirs));
        println!("  kernel {theirs:.1}, ours {ours:.1} (200 runs): {:.3}", ours / theirs);
    }

    for loss in compare::LOSSES {
        println!("goodput, {} octets with {loss} % of loss, kbit/s", compare::OCTETS);
        let ours: Vec<_> = (0..200).map(|run| ours_download(loss, run)).collect();
        let mut theirs = Vec::new();
        for run in 0..runs {
            let (goodput, late) = theirs_download(loss, run.into())?;
            println!("  kernel {goodput:.0}, p99 {late} us late");
            theirs.push(goodput);
        }
        let (ours, theirs) = (mean(&ours), mean(&theirs));
        println!("  kernel {theirs:.0}, ours {ours:.0} (200 runs): {:.3}", ours / theirs);
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this needs Linux");
}
