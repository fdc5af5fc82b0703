//! Carrier with less than the usual MTU of 1,500 octets: from the start, or suddenly, with ICMP errors of its router
//! and without.

use std::time::Instant;

use thinair_tests::site::{SiteDaemon, Sites, run, sh, thinair, within};
use thinair_tests::world::in_a_world;

/// A ping of 1,400 octets, which exceeds a datagram of 1,300.
const LONG: &str = "ping -c 1 -W 1 -s 1372 10.9.0.1";

fn narrow(sites: &Sites, octets: u32) {
    // Link between router and gateway, at both of its ends.
    let (router, gateway) = (sites.router(), &sites.gateway);
    sh(&format!(
        "ip -n {router} link set {gateway} mtu {octets}; ip -n {gateway} link set eth0 mtu {octets}"
    ));
}

fn status(sites: &Sites, field: &SiteDaemon) -> serde_json::Value {
    let line = format!("ip netns exec {} {} tunnel status --name air0 --json", sites.field, thinair());
    serde_json::from_slice(&run(&line).stdout).unwrap_or_else(|_| panic!("{}", field.log()))
}

fn long_pings_pass(sites: &Sites, seconds: f64) -> bool {
    within(seconds, || run(&format!("ip netns exec {} {LONG}", sites.field)).status.success())
}

fn interface_mtu(sites: &Sites) -> String {
    sh(&format!("ip -n {} -o link show air0 | grep -o 'mtu [0-9]*'", sites.field)).trim().to_owned()
}

#[test]
fn a_narrow_carrier_takes_all_packets() {
    in_a_world("path::a_narrow_carrier_takes_all_packets", || {
        for version in [0, 1] {
            let sites = Sites::new(0);
            narrow(&sites, 1_300);
            let gateway = sites.start_gateway(version);
            let field = sites.start_field(version, "");
            assert!(long_pings_pass(&sites, 5.0), "{}\n{}", field.log(), gateway.log());
            let found = within(20.0, || {
                let _ = run(&format!("ip netns exec {} {LONG}", sites.field));
                status(&sites, &field)["carrier"]["path_mtu"] == 1_300
            });
            assert!(found, "{}", status(&sites, &field));
            assert!(within(2.0, || interface_mtu(&sites) == "mtu 1280"), "{}", interface_mtu(&sites));
            println!(
                "over {}: path MTU 1300, interface {}",
                ["IPv4", "IPv6"][version],
                interface_mtu(&sites)
            );
        }
    });
}

#[test]
fn a_carrier_that_shrinks_is_no_black_hole() {
    in_a_world("path::a_carrier_that_shrinks_is_no_black_hole", || {
        for reports in [true, false] {
            let sites = Sites::new(0);
            if !reports {
                let drop = "add table inet silent; add chain inet silent out { type filter hook output priority 0; }; \
                            add rule inet silent out icmp type destination-unreachable drop";
                if !run(&format!("ip netns exec {} nft '{drop}'", sites.router())).status.success() {
                    println!("skipped: a router that reports nothing, as nft of nftables is missing");
                    continue;
                }
            }
            let gateway = sites.start_gateway(0);
            let field = sites.start_field(0, "");
            assert!(long_pings_pass(&sites, 5.0), "{}", field.log());
            assert!(within(5.0, || {
                let _ = run(&format!("ip netns exec {} {LONG}", sites.field));
                status(&sites, &field)["carrier"]["path_mtu"] == 1_500
            }));
            narrow(&sites, 1_300);
            let started = Instant::now();
            assert!(long_pings_pass(&sites, 40.0), "{}\n{}", field.log(), gateway.log());
            let seconds = started.elapsed().as_secs_f64();
            println!(
                "the carrier shrinks to 1,300, {}: packets of 1,400 octets pass again after {seconds:.1} s, path MTU {}",
                if reports { "and its router reports it" } else { "and nobody reports it" },
                status(&sites, &field)["carrier"]["path_mtu"]
            );
        }
    });
}
