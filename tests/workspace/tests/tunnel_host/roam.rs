//! Either end changes its address while the field site's default route leads through the tunnel.

use std::time::Instant;

use thinair_tests::site::{INSIDE, INTERNET, SiteDaemon, Sites, run, sh, within};
use thinair_tests::world::in_a_world;

#[test]
fn either_end_roams_with_a_default_route() {
    in_a_world("roam::either_end_roams_with_a_default_route", || {
        let sites = Sites::new(0);
        let gateway = sites.start_gateway(0);
        let field = sites.start_field(0, "--route 0.0.0.0/0");
        assert!(sites.reaches(INTERNET[0]), "{}", field.log());
        let before = sites.look();

        // The field site gets another address, as by DHCP, and its routes again.
        let started = Instant::now();
        sh(&format!(
            "ip -n {0} addr add 192.0.2.3/24 dev eth0; ip -n {0} addr del 192.0.2.2/24 dev eth0
            ip -n {0} addr show dev eth0 | grep -q 192.0.2.3 || ip -n {0} addr add 192.0.2.3/24 dev eth0
            ip -n {0} route replace default via 192.0.2.1; ip -n {0} route replace 10.0.0.0/8 via 192.0.2.1",
            sites.field
        ));
        assert!(sites.reaches(INTERNET[0]), "{}\n{}", field.log(), gateway.log());
        println!("the field site roams: packets flow after {:.1} s", started.elapsed().as_secs_f64());

        // The gateway gets another address, and has something to send.
        let started = Instant::now();
        sh(&format!(
            "ip -n {0} addr add 198.51.100.8/24 dev eth0; ip -n {0} addr del 198.51.100.7/24 dev eth0
            ip -n {0} addr show dev eth0 | grep -q 198.51.100.8 || ip -n {0} addr add 198.51.100.8/24 dev eth0
            ip -n {0} route replace default via 198.51.100.1",
            sites.gateway
        ));
        let ping = format!("ip netns exec {} ping -c 1 -W 1 10.9.0.2", sites.gateway);
        assert!(within(10.0, || run(&ping).status.success()), "{}\n{}", field.log(), gateway.log());
        assert!(sites.reaches(INTERNET[0]), "{}", field.log());
        println!("the gateway roams: packets flow after {:.1} s", started.elapsed().as_secs_f64());

        // The tunnel's own rules and routes need no change.
        let rules = |seen: &str| seen.lines().filter(|line| line.contains("74000")).count();
        assert_eq!(rules(&sites.look()), rules(&before));
        assert_eq!((field.end("TERM"), gateway.end("TERM")), (Some(0), Some(0)));
    });
}

#[test]
fn the_name_of_a_peer_is_looked_up_again() {
    in_a_world("roam::the_name_of_a_peer_is_looked_up_again", || {
        let sites = Sites::new(0);
        let known_as =
            |address: &str| std::fs::write("/etc/hosts", format!("{address} gateway.example\n")).unwrap();
        known_as("198.51.100.7");
        let gateway = sites.start_gateway(0);
        let arguments = sites.field_arguments(0, "").replace("198.51.100.7", "gateway.example");
        let field = SiteDaemon::start(&sites.field, &arguments);
        assert!(sites.reaches(INSIDE[0][0]), "{}", field.log());
        // The gateway restarts at another address, without state of its peers.
        assert_ne!(gateway.end("KILL"), Some(0));
        sh("rm -rf /var/lib/thinair/gate0");
        sh(&format!(
            "ip -n {0} addr add 198.51.100.8/24 dev eth0; ip -n {0} addr del 198.51.100.7/24 dev eth0
            ip -n {0} addr show dev eth0 | grep -q 198.51.100.8 || ip -n {0} addr add 198.51.100.8/24 dev eth0
            ip -n {0} route replace default via 198.51.100.1",
            sites.gateway
        ));
        known_as("198.51.100.8");
        let gateway = sites.start_gateway(0);
        let started = Instant::now();
        assert!(within(60.0, || sites.reaches(INSIDE[0][0])), "{}\n{}", field.log(), gateway.log());
        println!(
            "the gateway has another address by its name: found after {:.1} s",
            started.elapsed().as_secs_f64()
        );
        assert!(field.log().contains("the host has another address"), "{}", field.log());
    });
}
