//! A NAT of Linux before the field site, whose timeout the tunnel learns.

use std::path::Path;
use std::time::Instant;

use thinair_tests::site::{Sites, run, sh, thinair, within};
use thinair_tests::world::in_a_world;

/// Timeout of the NAT for mappings with traffic in both directions, in seconds.
const TIMEOUT: u32 = 15;

fn nat(sites: &Sites) -> bool {
    let masquerade = format!(
        "add table ip nat; add chain ip nat out {{ type nat hook postrouting priority srcnat; }}; \
         add rule ip nat out oifname {} masquerade; \
         add chain ip nat in {{ type filter hook input priority filter; policy drop; }}",
        sites.gateway
    );
    let router = sites.router();
    let has_nat = run(&format!("ip netns exec {router} nft '{masquerade}'")).status.success();
    for setting in ["nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"] {
        let path = format!("/proc/sys/net/netfilter/{setting}");
        if !has_nat
            || !run(&format!("ip netns exec {router} sh -c 'echo {TIMEOUT} > {path}'")).status.success()
        {
            return false;
        }
    }
    true
}

#[test]
#[ignore = "takes five minutes"]
fn the_timeout_of_a_nat_is_learned_and_the_field_site_is_reached_meanwhile() {
    in_a_world("nat::the_timeout_of_a_nat_is_learned_and_the_field_site_is_reached_meanwhile", || {
        let sites = Sites::new(0);
        if !nat(&sites) {
            println!("skipped: a NAT, as nft of nftables or connection tracking is missing");
            return;
        }
        let state = thinair_tests::site::folder().join("state");
        let more = format!("--keepalive auto --route 0.0.0.0/0 --state {}", state.display());
        let gateway = sites.start_gateway(0);
        let field = sites.start_field(0, &more);
        let started = Instant::now();
        let ask = format!("ip netns exec {} {} tunnel status --name air0 --json", sites.field, thinair());
        let nat = || {
            let status: serde_json::Value = serde_json::from_slice(&run(&ask).stdout).unwrap_or_default();
            status["peers"][0]["nat"].clone()
        };
        // A ping in one direction each 7 s would keep the mapping: this one is rarer than the timeout.
        let mut missed = 0;
        let is_learned = within(420.0, || {
            std::thread::sleep(std::time::Duration::from_secs(20));
            let ping = format!("ip netns exec {} ping -c 1 -W 2 10.9.0.2", sites.gateway);
            missed += u32::from(!run(&ping).status.success());
            nat()["timeout_seconds"].is_number()
        });
        assert!(is_learned, "{}\n{}", field.log(), gateway.log());
        let found = nat();
        let timeout = found["timeout_seconds"].as_f64().unwrap();
        println!(
            "learned {timeout:.1} s of {TIMEOUT} s after {:.0} s: {found}",
            started.elapsed().as_secs_f64()
        );
        // The system looks at its mappings now and then only.
        assert!((0.9..=1.2).contains(&(timeout / f64::from(TIMEOUT))), "{found}");
        assert_eq!(missed, 0, "{}", field.log());
        assert!(field.log().contains("the NAT keeps a mapping for at least"), "{}", field.log());
        let stored = || std::fs::read_to_string(Path::new(&state).join("mappings")).unwrap_or_default();
        assert!(
            within(15.0, || stored().starts_with("198.51.100.")),
            "{}",
            sh(&format!("ls -l {}", state.display()))
        );
    });
}
