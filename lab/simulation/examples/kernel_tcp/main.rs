//! Our TCP in virtual time beside the kernel's over an equal link in real time: exchanges over GPRS and WiFi with
//! Nagle's algorithm, and downloads with losses. Needs root and TUN. Fails if a mean of ours is further from the kernel's than
//! [`BANDS`](compare::BANDS) allows.
//!
//! `cargo run --profile optimized -p thinair-simulation --example kernel_tcp -- [RUNS [SECONDS OF EXCHANGES]]`

#[cfg(target_os = "linux")]
mod compare;

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use compare::{ours_download, ours_exchanges, theirs_download, theirs_exchanges};

    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let runs = numbers.next().transpose()?.unwrap_or(3);
    let count = numbers.next().transpose()?.unwrap_or(10) * 10;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let mut bands = compare::BANDS.into_iter();
    let mut missed = 0;
    let mut compared = |kernel: f64, ours: f64| {
        let (ratio, [least, most]) = (ours / kernel, bands.next().unwrap_or_default());
        let is_met = (least..=most).contains(&ratio);
        missed += u32::from(!is_met);
        let met = if is_met { "met" } else { "MISSED" };
        println!(
            "  kernel {kernel:.1}, ours {ours:.1} (200 runs): {ratio:.3}, band {least} to {most}: {met}"
        );
    };

    for (access, model, loss) in compare::ACCESSES {
        println!("C-RTT, {count} exchanges over {access} with {loss} % of added loss, ms");
        let ours: Vec<_> = (0..200).map(|run| ours_exchanges(model, loss, count, run).0).collect();
        let mut theirs = Vec::new();
        for run in 0..runs {
            let (crtt, packets, late) = theirs_exchanges(model, loss, count, run.into())?;
            println!("  kernel {crtt:.1}, {packets:?} packets, p99 {late} us late");
            theirs.push(crtt);
        }
        compared(mean(&theirs), mean(&ours));
    }

    for loss in compare::LOSSES {
        println!("goodput, {} octets with {loss} % of loss, kbit/s", compare::OCTETS);
        let ours: Vec<_> = (0..200).map(|run| ours_download(loss, run)).collect();
        let mut theirs = Vec::new();
        // A download is short, and with losses one of the kernel's may take three times as long as another.
        for run in 0..4 * runs {
            let (goodput, late) = theirs_download(loss, run.into())?;
            println!("  kernel {goodput:.0}, p99 {late} us late");
            theirs.push(goodput);
        }
        compared(mean(&theirs), mean(&ours));
    }
    if missed > 0 {
        return Err(format!("{missed} of {} bands are missed", compare::BANDS.len()).into());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this needs Linux");
}
