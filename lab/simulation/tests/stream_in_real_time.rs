//! A transport stream between two kernels, filled by iperf3; where that is not possible, the test prints the reason.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::process::Command;

use thinair_rohc::Refresh;
use thinair_simulation::broadcast::real_time::{RealTimePlan, RealTimeRunError, run};
use thinair_ule::capacity::{Encapsulation, Filling, HeaderRun, PacketFlow, cost};

const BITRATE: u64 = 3_507_000;

#[test]
fn payload_that_kernels_exchange_comes_near_to_exact_packing() {
    if Command::new("iperf3").arg("--version").output().is_err() {
        println!("skipped: there is no iperf3");
        return;
    }
    let refresh = Some(Refresh::Cycle { ir: 3, so: 50, direct: true });
    let plan = RealTimePlan { bitrate: BITRATE, refresh, payload: 160, offered: BITRATE, seconds: 2 };
    let outcome = match run(&plan) {
        Ok(outcome) => outcome,
        Err(RealTimeRunError::Os(error))
            if error.is_permission() || error.to_string().contains("/dev/net/tun") =>
        {
            println!("skipped: {error}, which needs root and TUN");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let headers = [HeaderRun { packets: 3, octets: 50 }, HeaderRun { packets: 50, octets: 3 }];
    let exact = cost(Encapsulation::ULE, Filling::Packing, PacketFlow { payload: 160, headers: &headers });
    let share = outcome.throughput / exact.throughput(BITRATE);
    println!("{:.1} kbit/s of payload, {share:.3} of exact packing; {outcome:?}", outcome.throughput / 1e3);
    assert_eq!((outcome.not_delivered, outcome.lost_ts), (0, 0));
    // The delivered share is at most the stream's capacity; the shortfall depends on the load of the machine. `make bench`
    // demands 0.97: the example of this name.
    assert!((0.5..1.02).contains(&share), "{share}");
}

#[test]
fn what_iperf_cannot_measure_is_refused() {
    let plan = RealTimePlan { bitrate: BITRATE, refresh: None, payload: 15, offered: 1, seconds: 1 };
    assert!(matches!(run(&plan), Err(RealTimeRunError::Payload(15))));
}
