//! Tunnels by their names: up, down, reload; and name servers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use thinair_tests::site::{INSIDE, Sites, run, sh, thinair};
use thinair_tests::world::in_a_world;

#[test]
fn a_hub_takes_peers_keys_and_routes_while_it_runs() {
    in_a_world("names::a_hub_takes_peers_keys_and_routes_while_it_runs", || {
        let sites = Sites::new(0);
        fs::create_dir_all("/etc/thinair").unwrap();
        let command =
            |netns: &str, line: &str| run(&format!("ip netns exec {netns} {} tunnel {line}", thinair()));
        let ok = |netns: &str, line: &str| {
            let output = command(netns, line);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{line}: {error}");
            error
        };
        for name in ["north", "south"] {
            ok(&sites.gateway, &format!("keygen /etc/thinair/{name}.key"));
        }
        let peer = |name: &str, number: u8| {
            format!("[[peer]]\nname = \"{name}\"\nkey = \"{name}.key\"\nallowed = [\"10.9.0.{number}/32\"]\n")
        };
        let hub = |peers: &str, route: &str| {
            let text = format!(
                "[inside]\ntun = \"hub0\"\naddress = [\"10.9.0.1/24\"]\nroute = [{route}]\n\
                 [carrier]\nurl = \"udp://:7000\"\n[security]\nkey = \"north.key\"\n{peers}"
            );
            fs::write("/etc/thinair/hub.toml", text).unwrap();
        };
        let before = sh(&format!("ip -n {} rule; ip -n {0} route show table all", sites.gateway));
        hub(&(peer("north", 2) + &peer("other", 9).replace("other.key", "south.key")), "");
        ok(&sites.gateway, "up hub");
        let again = command(&sites.gateway, "up hub");
        assert!(String::from_utf8_lossy(&again.stderr).contains("up already"), "{again:?}");
        let start = |name: &str, number: u8| {
            let arguments = format!(
                "udp://198.51.100.7:7000 --listen 0.0.0.0:{} --key /etc/thinair/{name}.key --tun {name}0 --address \
                 10.9.{number}.2/32 --address 10.9.0.{number}/32 --route 10.9.0.1/32",
                7_000 + u16::from(number)
            );
            thinair_tests::site::SiteDaemon::start(&sites.field, &arguments)
        };
        let north = start("north", 2);
        let ping = |from: u8| {
            let line = format!("ip netns exec {} ping -c 1 -W 1 -I 10.9.0.{from} 10.9.0.1", sites.field);
            thinair_tests::site::within(8.0, || run(&line).status.success())
        };
        assert!(ping(2), "{}", north.log());
        assert_eq!(north.end("TERM"), Some(0));

        // South replaces another peer, with the same key, and has an additional route.
        hub(&(peer("north", 2) + &peer("south", 3)), "\"10.30.0.0/16\"");
        let changes = ok(&sites.gateway, "reload hub");
        println!("{changes}");
        for change in ["route 10.30.0.0/16 added", "peer `other` removed", "peer `south` added"] {
            assert!(changes.contains(change), "{change}: {changes}");
        }
        assert!(sh(&format!("ip -n {} route get 10.30.1.1", sites.gateway)).contains("dev hub0"));
        let south = start("south", 3);
        assert!(ping(3), "{}\n{}", south.log(), sh("cat /run/thinair/hub.log"));

        // Replacing a key step by step loses no packet.
        let session = || -> serde_json::Value {
            serde_json::from_slice(&command(&sites.gateway, "status --name hub --json").stdout).unwrap()
        };
        let sessions = session()["peers"][1]["sessions"].clone();
        ok(&sites.gateway, "keygen /etc/thinair/south.key --rotate add");
        let changes = ok(&sites.gateway, "reload hub");
        assert!(changes.contains("keys or address of peer `south` changed"), "{changes}");
        assert!(ping(3));
        assert_eq!(session()["peers"][1]["sessions"], sessions, "the session goes on");

        // Settings that need a restart are named, and nothing changes.
        let text = fs::read_to_string("/etc/thinair/hub.toml").unwrap();
        fs::write("/etc/thinair/hub.toml", text + "[channel]\nmode = \"u\"\n").unwrap();
        let refused = command(&sites.gateway, "reload hub");
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && error.contains("restart") && error.contains("[channel]"),
            "{error}"
        );
        fs::write("/etc/thinair/hub.toml", "[inside]\nnonsense = 1\n").unwrap();
        let refused = command(&sites.gateway, "reload hub");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("hub.toml:2"), "{refused:?}");
        assert!(ping(3));

        // Another address takes the routes along.
        hub(&(peer("north", 2) + &peer("south", 3)), "\"10.30.0.0/16\"");
        let text = fs::read_to_string("/etc/thinair/hub.toml").unwrap();
        fs::write("/etc/thinair/hub.toml", text.replace("10.9.0.1/24", "10.8.0.1/24")).unwrap();
        let changes = ok(&sites.gateway, "reload hub");
        assert!(changes.contains("address 10.8.0.1/24 added"), "{changes}");
        let route = sh(&format!("ip -n {} route get 10.30.1.1", sites.gateway));
        assert!(route.contains("dev hub0") && route.contains("src 10.8.0.1"), "{route}");

        ok(&sites.gateway, "down hub");
        assert_eq!(south.end("TERM"), Some(0));
        let after = sh(&format!("ip -n {} rule; ip -n {0} route show table all", sites.gateway));
        assert_eq!(after, before);
        let down = ok(&sites.gateway, "down hub");
        assert!(down.contains("does not run"), "{down}");
    });
}

#[test]
fn name_servers_are_given_and_taken_back() {
    in_a_world("names::name_servers_are_given_and_taken_back", || {
        let sites = Sites::new(0);
        // Replacement for openresolv, which records its arguments and input.
        let script = "#!/bin/sh\necho \"$*\" >> /run/resolvconf.log\n[ \"$1\" = -a ] && cat >> /run/resolvconf.log\nexit 0\n";
        fs::create_dir_all("/run/bin").unwrap();
        fs::write("/run/bin/resolvconf", script).unwrap();
        fs::set_permissions("/run/bin/resolvconf", fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("PATH=/run/bin:{}", std::env::var("PATH").unwrap());
        let _gateway = sites.start_gateway(0);
        let start = || {
            let arguments = sites.field_arguments(0, "--dns 10.9.0.1 --dns lan.example");
            let line = format!(
                "ip netns exec {} env {path} timeout --signal KILL 60 {} tunnel run {arguments} >/run/dns.out 2>/run/dns.log & echo $!",
                sites.field,
                thinair()
            );
            let timeout = sh(&line).trim().to_owned();
            assert!(sites.reaches(INSIDE[0][0]), "{}", fs::read_to_string("/run/dns.log").unwrap());
            timeout
        };
        let daemon =
            |timeout: &str| sh(&format!("cat /proc/{timeout}/task/{timeout}/children")).trim().to_owned();
        for signal in ["TERM", "KILL"] {
            let timeout = start();
            sh(&format!("kill -{signal} {}", daemon(&timeout)));
            let given = "-a air0 -m 0 -x\nnameserver 10.9.0.1\nsearch lan.example\n-d air0 -f\n";
            let done = thinair_tests::site::within(5.0, || {
                fs::read_to_string("/run/resolvconf.log").unwrap() == given
            });
            assert!(done, "{signal}: {}", fs::read_to_string("/run/resolvconf.log").unwrap());
            assert!(thinair_tests::site::within(5.0, || !fs::exists("/run/thinair/air0").unwrap()));
            fs::remove_file("/run/resolvconf.log").unwrap();
        }
    });
}
