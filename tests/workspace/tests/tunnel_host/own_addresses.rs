//! A listening end with several addresses answers from the one that it was asked at, as a NAT or a stateful firewall
//! in front of the other end requires.

use std::fs;

use thinair_tests::site::{FIELD, GATEWAY, INSIDE, SiteDaemon, Sites, folder, run, sh, within};
use thinair_tests::world::in_a_world;

/// Second addresses of the gateway.
const SECOND: [&str; 2] = ["198.51.100.8", "2001:db8:2::8"];

/// Gives the gateway its second addresses; datagrams from the first ones do not reach the field site.
fn two_addresses(sites: &Sites) {
    let (gateway, router) = (&sites.gateway, sites.router());
    for (second, bits) in SECOND.iter().zip([24, 64]) {
        sh(&format!("ip -n {gateway} addr add {second}/{bits} dev eth0"));
    }
    for ((first, field), family) in GATEWAY.iter().zip(FIELD).zip(["-4", "-6"]) {
        sh(&format!("ip -n {router} {family} rule add from {first} to {field} pref 10 blackhole"));
    }
}

fn gateway_reaches(sites: &Sites, address: &str) -> bool {
    let ping = format!("ip netns exec {} ping -c 1 -W 1 {address}", sites.gateway);
    within(6.0, || run(&ping).status.success())
}

#[test]
fn an_end_answers_from_the_address_that_was_asked() {
    in_a_world("own_addresses::an_end_answers_from_the_address_that_was_asked", || {
        for version in [0, 1] {
            let sites = Sites::new(version);
            two_addresses(&sites);
            let field =
                sites.field_arguments(version, "--keepalive 5s").replace(GATEWAY[version], SECOND[version]);
            // A pair, and a hub; a socket of IPv6 is also asked by IPv4.
            let hub = folder().join(format!("hub{version}.toml"));
            let peer = "[[peer]]\nname = \"field\"\nallowed = [\"10.9.0.2/32\", \"fd09::2/128\"]\n";
            fs::write(&hub, peer).unwrap();
            let hub = format!("--config {}", hub.display());
            for more in ["", hub.as_str()] {
                let gateway = sites.start_gateway_with(version, more);
                let end = SiteDaemon::start(&sites.field, &field);
                assert!(sites.reaches(INSIDE[0][0]), "{version} {more}\n{}\n{}", end.log(), gateway.log());
                assert!(gateway_reaches(&sites, INSIDE[1][1]), "{version} {more}\n{}", gateway.log());
                // The gateway restarts, and speaks first.
                assert_ne!(gateway.end("KILL"), Some(0));
                let gateway = sites.start_gateway_with(version, more);
                assert!(
                    gateway_reaches(&sites, INSIDE[1][0]),
                    "{version} {more}: restarted\n{}",
                    gateway.log()
                );
                assert_eq!((end.end("TERM"), gateway.end("TERM")), (Some(0), Some(0)));
            }
            println!("over {}: asked at the second address, answered from there", ["IPv4", "IPv6"][version]);
        }
        let sites = Sites::new(2);
        two_addresses(&sites);
        let gateway = sites.start_gateway(1);
        let field = sites.field_arguments(0, "").replace(GATEWAY[0], SECOND[0]);
        let end = SiteDaemon::start(&sites.field, &field);
        assert!(sites.reaches(INSIDE[0][0]), "IPv4 at a socket of IPv6\n{}\n{}", end.log(), gateway.log());
    });
}

#[test]
fn without_keys_datagrams_leave_from_the_address_that_the_other_end_uses() {
    in_a_world(
        "own_addresses::without_keys_datagrams_leave_from_the_address_that_the_other_end_uses",
        || {
            let sites = Sites::new(0);
            two_addresses(&sites);
            for (scheme, security) in [("udp", "--insecure"), ("ule+udp", "--open"), ("gse+udp", "--open")] {
                let pids = |own, other| match scheme {
                    "ule+udp" => format!("?pid={own}&peer-pid={other}"),
                    _ => String::new(),
                };
                let gateway = format!(
                    "{scheme}://{}:7000{} {security} --address 10.9.0.1/30 --tun gate0",
                    FIELD[0],
                    pids("0x40", "0x41")
                );
                let field = format!(
                    "{scheme}://{}:7000{} {security} --address 10.9.0.2/30 --tun air0",
                    SECOND[0],
                    pids("0x41", "0x40")
                );
                let gateway = SiteDaemon::start(&sites.gateway, &gateway);
                let field = SiteDaemon::start(&sites.field, &field);
                assert!(sites.reaches(INSIDE[0][0]), "{scheme}\n{}\n{}", field.log(), gateway.log());
            }
        },
    );
}

#[test]
fn listen_overrides_the_address_of_the_url() {
    in_a_world("own_addresses::listen_overrides_the_address_of_the_url", || {
        let sites = Sites::new(0);
        two_addresses(&sites);
        let gateway = sites.start_gateway_with(0, &format!("--listen {}:7000", SECOND[0]));
        let field = sites.field_arguments(0, "").replace(GATEWAY[0], SECOND[0]);
        let field = SiteDaemon::start(&sites.field, &field);
        assert!(sites.reaches(INSIDE[0][0]), "{}\n{}", field.log(), gateway.log());
    });
}
