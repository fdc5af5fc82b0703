//! Packets of the kernel's TCP beside ours; without namespaces, the test prints the reason. A busy machine is late, so times are
//! compared by `make bench`: the example `kernel_tcp`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[allow(dead_code)] // Times and bands are for the example.
#[path = "../examples/kernel_tcp/compare.rs"]
mod compare;

use compare::{ACCESSES, LOSSES, OCTETS, ours_exchanges, theirs_download, theirs_exchanges};
use thinair_emulator::EmulatorError;

/// Exchanges of a run, and runs of ours.
const COUNT: u32 = 40;
const RUNS: u32 = 50;

/// Least and most of our packets, of the kernel's, for each of [`ACCESSES`].
const SEGMENTS: [[f64; 2]; 4] = [[0.8, 1.25]; 4];

/// Result of the kernel; `None`, and a message with the reason, if it is not available.
fn tried<T>(result: Result<T, EmulatorError>) -> Option<T> {
    match result {
        Ok(seen) => Some(seen),
        Err(EmulatorError::Os(error))
            if error.is_permission() || error.to_string().contains("/dev/net/tun") =>
        {
            println!("skipped: {error}, which needs root and TUN");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Nagle's algorithm and delayed acknowledgments determine the number of segments.
#[test]
fn exchanges_take_the_segments_of_the_kernel() {
    for ((access, model, loss), band) in ACCESSES.into_iter().zip(SEGMENTS) {
        let Some((time, theirs, late)) = tried(theirs_exchanges(model, loss, COUNT, 1)) else { return };
        let ours: Vec<_> = (0..RUNS).map(|run| ours_exchanges(model, loss, COUNT, run).1).collect();
        for side in 0..2 {
            let mean = ours.iter().map(|packets| packets[side] as f64).sum::<f64>() / f64::from(RUNS);
            let ratio = mean / theirs[side] as f64;
            println!(
                "{access}, {loss} %, side {side}: ours {mean:.1} packets, kernel {}, {ratio:.3}; {time:.1} ms, {late} us late",
                theirs[side]
            );
            assert!(
                (band[0]..=band[1]).contains(&ratio),
                "{access}, {loss} %: {ratio:.3} is not in {band:?}"
            );
        }
    }
}

#[test]
fn a_download_with_losses_arrives_by_the_kernel() {
    assert!(LOSSES.contains(&1) && OCTETS == 1_000_000);
    let Some((theirs, late)) = tried(theirs_download(1, 1)) else { return };
    println!("kernel {theirs:.0} kbit/s, {late} us late");
    // Goodput is positive only if every octet has arrived, and not above the rate of the link.
    assert!(theirs > 0.0 && theirs <= 4_000.0, "{theirs}");
}
