//! The kernel's TCP as a reference for ours; without namespaces, the test prints the reason. Times are printed but not
//! asserted: a busy machine is late.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "../examples/kernel_tcp/compare.rs"]
mod compare;

use compare::{ACCESSES, LOSSES, OCTETS, ours_download, ours_exchanges, theirs_download, theirs_exchanges};
use thinair_emulator::EmulatorError;

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

/// The number of segments matters: Nagle's algorithm and delayed acknowledgments reduce it.
#[test]
fn exchanges_with_nagle_share_segments_of_the_kernel() {
    let (_, gprs, loss) = ACCESSES[0];
    let Some((theirs, packets, late)) = tried(theirs_exchanges(gprs, loss, 40, 1)) else { return };
    let ours = (0..50).map(|run| ours_exchanges(gprs, loss, 40, run)).sum::<f64>() / 50.0;
    println!("kernel {theirs:.1} ms, {packets:?} packets, {late} us late; ours {ours:.1} ms");
    // 40 requests took fewer than one segment each.
    assert!(packets[0] < 60, "{packets:?}");
}

#[test]
fn a_download_with_losses_arrives_by_the_kernel() {
    assert!(LOSSES.contains(&1) && OCTETS == 1_000_000);
    let Some((theirs, late)) = tried(theirs_download(1, 1)) else { return };
    let ours = (0..50).map(|run| ours_download(1, run)).sum::<f64>() / 50.0;
    println!("kernel {theirs:.0} kbit/s, {late} us late; ours {ours:.0} kbit/s");
    // Goodput is positive only if every octet has arrived.
    assert!(ours > 0.0 && theirs > 0.0);
}
