//! The kernel's TCP as an oracle of ours; where there can be no namespaces, that is said. Times are printed, and not
//! asserted: a busy machine keeps none.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "../examples/kernel_tcp/compare.rs"]
mod compare;

use compare::{ACCESSES, LOSSES, OCTETS, ours_download, ours_exchanges, theirs_download, theirs_exchanges};
use thinair_emulator::EmulatorError;

/// What the kernel came to, or nothing and a word on why it could not be tried.
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

/// Segments are what counts: Nagle's algorithm and delayed acknowledgments make few of them.
#[test]
fn exchanges_with_nagle_share_segments_of_the_kernel() {
    let (_, gprs, loss) = ACCESSES[0];
    let Some((theirs, packets, late)) = tried(theirs_exchanges(gprs, loss, 40, 1)) else { return };
    let ours = (0..50).map(|run| ours_exchanges(gprs, loss, 40, run)).sum::<f64>() / 50.0;
    println!("kernel {theirs:.1} ms, {packets:?} packets, {late} us late; ours {ours:.1} ms");
    // 40 requests went in fewer segments than one each.
    assert!(packets[0] < 60, "{packets:?}");
}

#[test]
fn a_download_with_losses_arrives_by_the_kernel() {
    assert!(LOSSES.contains(&1) && OCTETS == 1_000_000);
    let Some((theirs, late)) = tried(theirs_download(1, 1)) else { return };
    let ours = (0..50).map(|run| ours_download(1, run)).sum::<f64>() / 50.0;
    println!("kernel {theirs:.0} kbit/s, {late} us late; ours {ours:.0} kbit/s");
    // Every octet has come, or there would be no goodput.
    assert!(ours > 0.0 && theirs > 0.0);
}
