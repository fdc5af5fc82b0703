//! Savings, losses and damage that a status shows, and commands around a tunnel.

use std::fs;

use thinair_tests::site::{FIELD, GATEWAY, INSIDE, SiteDaemon, Sites, folder, run, sh, thinair, within};
use thinair_tests::world::in_a_world;

fn status(sites: &Sites, name: &str) -> serde_json::Value {
    let line = format!("ip netns exec {} {} tunnel status --name {name} --json", sites.field, thinair());
    let output = run(&line);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn text(sites: &Sites, arguments: &str) -> String {
    let output = run(&format!("ip netns exec {} {} tunnel {arguments} 2>&1", sites.field, thinair()));
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn nothing_is_saved_by_what_does_not_arrive() {
    in_a_world("told::nothing_is_saved_by_what_does_not_arrive", || {
        let sites = Sites::new(0);
        let field = sites.start_field(0, "");
        let ping = format!("ip netns exec {} ping -c 5 -i 0.1 -W 1 {}", sites.field, INSIDE[0][0]);
        // Nobody is at the other end.
        let _ = run(&ping);
        let now = status(&sites, "air0");
        let totals = &now["totals"];
        assert_eq!(totals["ratio"], serde_json::Value::Null, "{totals}");
        assert_eq!(
            (&totals["sent"]["packets"], &totals["arrived"]["packets"]),
            (&0.into(), &0.into()),
            "{totals}"
        );
        assert!(!text(&sites, "status --name air0").contains("saved"));

        let gateway = sites.start_gateway(0);
        assert!(sites.reaches(INSIDE[0][0]), "{}", field.log());
        assert!(within(30.0, || status(&sites, "air0")["totals"]["ratio"].is_number()), "{}", field.log());
        let peer = status(&sites, "air0")["peers"][0].clone();
        assert!(peer["round_trip_seconds"].as_f64() > Some(0.0), "{peer}");
        assert_eq!(peer["loss"]["lost_units"], 0, "{peer}");
        // What was before the first reader came.
        let history = status(&sites, "air0")["history"].clone();
        let first = history.as_array().unwrap().first().cloned().unwrap_or_default();
        assert!(first["uptime_seconds"].as_f64() < Some(5.0) && first["packets"] == 0, "{history}");
        assert!(text(&sites, "status --name air0").contains("round trip (ms)"));

        // It is down: packets leave, and count for no share.
        assert_ne!(gateway.end("KILL"), Some(0));
        let before = status(&sites, "air0")["totals"].clone();
        let _ = run(&ping);
        let after = status(&sites, "air0")["totals"].clone();
        assert_eq!((&after["ratio"], &after["arrived"]), (&before["ratio"], &before["arrived"]), "{after}");
        assert!(after["sent"]["packets"].as_u64() > before["sent"]["packets"].as_u64(), "{after}");
    });
}

#[test]
fn packets_with_a_type_of_their_own_are_delivered_and_damage_is_shown() {
    in_a_world("told::packets_with_a_type_of_their_own_are_delivered_and_damage_is_shown", || {
        let sites = Sites::new(0);
        for (scheme, pids) in
            [("ule+udp", ["?pid=0x40&peer-pid=0x41", "?pid=0x41&peer-pid=0x40"]), ("gse+udp", ["", ""])]
        {
            // Only the sender sends by type: packets that no profile compresses.
            let gateway =
                format!("{scheme}://{}:7000{} --open --address 10.9.0.1/30 --tun gate0", FIELD[0], pids[0]);
            let config = folder().join("types.toml");
            fs::write(&config, "[channel]\nby_type = true\n").unwrap();
            let gateway = format!("{gateway} --config {}", config.display());
            let field =
                format!("{scheme}://{}:7000{} --open --address 10.9.0.2/30 --tun air0", GATEWAY[0], pids[1]);
            let gateway = SiteDaemon::start(&sites.gateway, &gateway);
            let field = SiteDaemon::start(&sites.field, &field);
            // Fragments are compressed by no profile: a ping of more than the MTU.
            let ping = format!("ip netns exec {} ping -c 1 -W 1 -s 3000 {}", sites.gateway, INSIDE[1][0]);
            assert!(
                within(6.0, || run(&ping).status.success()),
                "{scheme}\n{}\n{}",
                gateway.log(),
                field.log()
            );

            // Datagrams that are neither TS Packets nor BBFrames.
            let socket = thinair_os::Namespace::open(&sites.gateway)
                .unwrap()
                .within(|| std::net::UdpSocket::bind("0.0.0.0:0").unwrap())
                .unwrap();
            for _ in 0..35 {
                socket.send_to(&[0x55; 188], format!("{}:7000", FIELD[0])).unwrap();
            }
            let is_shown = || text(&sites, "status --name air0").contains("Damaged or lost on the carrier");
            assert!(within(5.0, is_shown), "{scheme}: {}", text(&sites, "status --name air0"));
            drop((gateway, field));
        }
    });
}

#[test]
fn commands_around_a_tunnel() {
    in_a_world("told::commands_around_a_tunnel", || {
        let sites = Sites::new(0);
        let gateway = sites.start_gateway(0);
        // `status` finds the only tunnel beside its log; keys are replaced without a file.
        fs::create_dir_all("/etc/thinair").unwrap();
        let file = format!(
            "[inside]\ntun = \"sat0\"\naddress = [\"10.9.0.2/30\"]\n[carrier]\nurl = \"udp://198.51.100.7:7000\"\n\
             [security]\nkey = \"{}\"\n",
            sites.key
        );
        fs::write("/etc/thinair/sat.toml", file).unwrap();
        assert_eq!(gateway.end("TERM"), Some(0));
        text(&sites, "up sat");
        assert!(fs::exists("/run/thinair/sat.log").unwrap());
        assert!(text(&sites, "status").contains("sat0 over udp://"));
        text(&sites, "down sat");

        let field = sites.start_field(0, "");
        let gateway = sites.start_gateway(0);
        assert!(sites.reaches(INSIDE[0][0]), "{}", field.log());
        text(&sites, &format!("keygen {} --rotate add", sites.key));
        let reload = |name: &str, netns: &str| {
            let output = run(&format!("ip netns exec {netns} {} tunnel reload {name} 2>&1", thinair()));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            String::from_utf8(output.stdout).unwrap()
        };
        for (name, netns) in [("air0", &sites.field), ("gate0", &sites.gateway)] {
            assert!(reload(name, netns).contains("keys"), "{name}");
        }
        text(&sites, &format!("keygen {} --rotate promote", sites.key));
        reload("air0", &sites.field);
        reload("gate0", &sites.gateway);
        assert!(sites.reaches(INSIDE[0][0]), "{}", gateway.log());

        // The log names the address that a peer has now.
        sh(&format!(
            "ip -n {0} addr add 192.0.2.3/24 dev eth0; ip -n {0} addr del 192.0.2.2/24 dev eth0
            ip -n {0} addr show dev eth0 | grep -q 192.0.2.3 || ip -n {0} addr add 192.0.2.3/24 dev eth0
            ip -n {0} route replace default via 192.0.2.1",
            sites.field
        ));
        assert_eq!(field.end("TERM"), Some(0));
        let field = sites.start_field(0, "");
        assert!(sites.reaches(INSIDE[0][0]), "{}", field.log());
        let log = gateway.log();
        let keys = log.lines().rfind(|line| line.contains("new keys")).unwrap();
        assert!(keys.contains("192.0.2.3:7000"), "{keys}");

        // A busy port of the page names its option.
        let _socket = thinair_os::Namespace::open(&sites.gateway)
            .unwrap()
            .within(|| std::net::TcpListener::bind("127.0.0.1:9464").unwrap())
            .unwrap();
        let busy = format!(
            "ip netns exec {} timeout 20 {} tunnel run udp://:7009 --key {} --http 127.0.0.1:9464 --tun busy0 2>&1",
            sites.gateway,
            thinair(),
            sites.key
        );
        let busy = String::from_utf8(run(&busy).stdout).unwrap();
        let last = busy.lines().last().unwrap();
        assert!(last.contains("--http") && last.contains("127.0.0.1:9464"), "{last}");

        // `check` rejects what `run` rejects.
        sh(&format!("cd {} && {} tunnel keygen hub.key >hub.pub 2>&1", folder().display(), thinair()));
        let peer =
            |n: usize| format!("p{n} {n:0>42}A= 10.{}.{}.{}/32\n", 64 + n / 65_536, n / 256 % 256, n % 256);
        fs::write(folder().join("many.peers"), (0..10_001).map(peer).collect::<String>()).unwrap();
        let file = folder().join("many.toml");
        let many = "[carrier]\nurl = \"udp://:7000\"\n[security]\nprivate_key = \"hub.key\"\npeers = \"many.peers\"\n";
        fs::write(&file, many).unwrap();
        for command in ["check", "run --config"] {
            let output = run(&format!("timeout 20 {} tunnel {command} {} 2>&1", thinair(), file.display()));
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.code(), Some(2), "{command}: {told}");
            assert!(told.contains("is peer 10001"), "{command}: {told}");
        }
    });
}
