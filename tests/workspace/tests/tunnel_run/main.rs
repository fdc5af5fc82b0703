//! `thinair tunnel run`: real traffic through every carrier, undisturbed and impaired, and the incidents that a tunnel
//! must survive.
//!
//! Each test has its own namespaces: one for either inside, one for the carrier, with only loopback. Needs root;
//! without the privilege, or without a program, the tests are skipped with a message. Impairments between the ends
//! depend on a seed. Time limits allow for a busy machine.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod attacks;
mod bench;
mod floods;
mod life;
mod mesh;
mod offloads;
mod public_keys;
mod relay;
mod restart;
mod soak;
mod traffic;

use std::time::Duration;

use bench::{Between, CarrierKind, DatagramSecurity, TunnelBench, has, thinair};
use relay::Harm;
use traffic::{FLOWS, coap, curl, iperf, numbered, ping};

/// Sends all kinds of traffic at once through a tunnel, first undisturbed, then impaired.
fn carries(kind: CarrierKind) {
    if thinair().is_none() {
        return;
    }
    for harm in [Harm::NONE, if kind.is_line() { Harm::BAD_LINE } else { Harm::BAD }] {
        let is_bad = harm != Harm::NONE;
        let between = if is_bad { Between::Relay } else { Between::Nothing };
        let what = format!("{}-{}", kind.name, if is_bad { "bad" } else { "clean" });
        let mut bench = TunnelBench::started(&what, kind, between, &[]);
        if is_bad {
            bench.relay().set(harm);
        }
        all_traffic(&bench, &what, is_bad);
        if is_bad {
            let (lost, damaged) = bench.relay().done();
            println!("{what}: {lost} lost, {damaged} damaged");
            assert!(lost > 0 && damaged > 0);
            bench.relay().set(Harm::NONE);
            assert!(bench.is_through(10), "{what}: does not recover\n{}", bench.reported());
        }
        let reported = bench.reported();
        println!("{what}:\n{reported}");
        // A carrier that harms nothing delivers whole frames.
        assert!(is_bad || !reported.contains("line_"), "{what}:\n{reported}");
        assert!(bench.ends.iter_mut().flatten().all(bench::TunnelDaemon::check_alive));
    }
}

fn all_traffic(bench: &TunnelBench, what: &str, is_bad: bool) {
    std::thread::scope(|scope| {
        if has("ping", "iputils-ping") {
            for version in [0, 1] {
                scope.spawn(move || {
                    let needed = [8, 1_200].map(|size| ping(bench, version, 25, size));
                    println!("{what}: pings until 25 were answered: {needed:?}");
                    assert!(needed.iter().all(Option::is_some), "{what}: {needed:?}\n{}", bench.reported());
                });
            }
        }
        if has("iperf3", "iperf3") {
            scope.spawn(move || {
                let tcp = iperf(bench, false);
                let received = &tcp["end"]["sum_received"];
                println!("{what}: TCP {} bit/s", received["bits_per_second"]);
                assert!(received["bytes"].as_u64() > Some(0), "{received}");
                let udp = iperf(bench, true);
                println!("{what}: UDP, lost {} %", udp["end"]["sum"]["lost_percent"]);
            });
        }
        if has("coap-client-notls", "libcoap3-bin") && has("coap-server-notls", "libcoap3-bin") {
            for version in [0, 1] {
                scope.spawn(move || {
                    let needed = if is_bad { 1 } else { 2 };
                    let notifications = coap(bench, version, needed);
                    println!("{what}: {notifications} notifications");
                    assert!(notifications >= needed, "{}", bench.reported());
                });
            }
        }
        if has("curl", "curl") {
            for version in [0, 1] {
                scope.spawn(move || curl(bench, version));
            }
        }
        for flow in FLOWS {
            scope.spawn(move || {
                let delivered = numbered(bench, flow, 1_000, Duration::from_secs(1));
                println!("{what}: {flow:?} {delivered:?}");
                assert_eq!((delivered.other, delivered.again), (0, 0), "{flow:?} {delivered:?}");
                let least = delivered.sent * if is_bad { 6 } else { 9 } / 10;
                assert!(delivered.once >= least, "{flow:?} {delivered:?}\n{}", bench.reported());
            });
        }
    });
}

#[test]
fn udp_sealed() {
    carries(CarrierKind::UDP);
}

#[test]
fn udp_insecure() {
    carries(CarrierKind { name: "udp-insecure", security: DatagramSecurity::Insecure, ..CarrierKind::UDP });
}

#[test]
fn udp_over_ipv6() {
    carries(CarrierKind { name: "udp-v6", host: std::net::Ipv6Addr::LOCALHOST.into(), ..CarrierKind::UDP });
}

/// PIDs that streams of both directions need without encryption.
const PIDS: [&str; 2] = ["?pid=0x40&peer-pid=0x41&flush=1ms", "?pid=0x41&peer-pid=0x40&flush=1ms"];

#[test]
fn ule_sealed() {
    carries(CarrierKind { name: "ule", scheme: "ule+udp", options: PIDS, ..CarrierKind::UDP });
}

#[test]
fn ule_open() {
    let security = DatagramSecurity::Open;
    carries(CarrierKind { name: "ule-open", scheme: "ule+udp", options: PIDS, security, ..CarrierKind::UDP });
}

#[test]
fn gse_sealed() {
    carries(CarrierKind { name: "gse", scheme: "gse+udp", ..CarrierKind::UDP });
}

#[test]
fn gse_open() {
    carries(CarrierKind {
        name: "gse-open",
        scheme: "gse+udp",
        security: DatagramSecurity::Open,
        ..CarrierKind::UDP
    });
}

#[test]
fn serial_sealed() {
    carries(CarrierKind { name: "serial", scheme: "serial", ..CarrierKind::UDP });
}

#[test]
fn serial_insecure_slip() {
    let (options, security) = (["?framing=slip"; 2], DatagramSecurity::Insecure);
    carries(CarrierKind { name: "serial-insecure", scheme: "serial", options, security, ..CarrierKind::UDP });
}

/// No check detects damaged frames: packets may be damaged, without other consequences.
#[test]
fn serial_raw_survives_damage() {
    if thinair().is_none() {
        return;
    }
    let kind = CarrierKind {
        name: "raw",
        scheme: "serial+raw",
        security: DatagramSecurity::Insecure,
        ..CarrierKind::UDP
    };
    let mut bench = TunnelBench::started("raw", kind, Between::Relay, &[]);
    bench.relay().set(Harm { lost: 200, damaged: 200, ..Harm::NONE });
    std::thread::scope(|scope| {
        for flow in FLOWS {
            let bench = &bench;
            scope.spawn(move || {
                let delivered = numbered(bench, flow, 1_000, Duration::from_secs(1));
                println!("raw: {flow:?} {delivered:?}");
            });
        }
    });
    println!("raw: {:?} lost and damaged\n{}", bench.relay().done(), bench.reported());
    bench.relay().set(Harm::NONE);
    assert!(bench.is_through(10), "does not recover\n{}", bench.reported());
    assert!(bench.ends.iter_mut().flatten().all(bench::TunnelDaemon::check_alive));
}
