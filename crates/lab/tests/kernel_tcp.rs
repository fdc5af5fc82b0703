//! The kernel's TCP as an oracle of ours; where there can be no namespaces, that is said. Times are printed, and asserted only
//! within what a busy machine keeps.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "../examples/kernel_tcp/compare.rs"]
mod compare;

use compare::{LOSSES, OCTETS, ours_download, ours_exchanges, theirs_download, theirs_exchanges};
use thinair_lab::emulator::RunError;

/// What the kernel came to, or nothing and a word on why it could not be tried.
fn tried<T>(result: Result<T, RunError>) -> Option<T> {
    match result {
        Ok(seen) => Some(seen),
        Err(RunError::Os(error)) if error.is_permission() || error.to_string().contains("/dev/net/tun") => {
            println!("skipped: {error}, which needs root and TUN");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Segments are what counts: Nagle's algorithm and delayed acknowledgments make as many of them.
#[test]
fn exchanges_with_nagle_take_as_many_segments_and_as_long_as_the_kernels() {
    let Some((theirs, packets, late)) = tried(theirs_exchanges(40, 1)) else { return };
    let ours = (0..50).map(|run| ours_exchanges(40, run)).sum::<f64>() / 50.0;
    println!("kernel {theirs:.1} ms, {packets:?} packets, {late} us late; ours {ours:.1} ms");
    assert!((0.5..2.0).contains(&(ours / theirs)), "ours {ours} ms, the kernel's {theirs} ms");
    // 40 requests went in fewer segments than one each.
    assert!(packets[0] < 60, "{packets:?}");
}

#[test]
fn a_download_with_losses_is_about_as_quick_as_the_kernels() {
    assert!(LOSSES.contains(&1) && OCTETS == 1_000_000);
    let Some((theirs, late)) = tried(theirs_download(1, 1)) else { return };
    let ours = (0..50).map(|run| ours_download(1, run)).sum::<f64>() / 50.0;
    println!("kernel {theirs:.0} kbit/s, {late} us late; ours {ours:.0} kbit/s");
    assert!((0.3..3.0).contains(&(ours / theirs)), "ours {ours} kbit/s, the kernel's {theirs} kbit/s");
}
