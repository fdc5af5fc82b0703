//! The helper of a tunnel that root has started: what it may do, while it does all that it has to.

use std::fs;

use thinair_tests::site::{INSIDE, SiteDaemon, Sites, run, sh, thinair, within};
use thinair_tests::world::in_a_world;

/// CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_KILL, CAP_NET_ADMIN, CAP_SYS_ADMIN.
const OVERRIDE: u64 = 1 << 1;
const READ: u64 = 1 << 2;
const KILL: u64 = 1 << 5;
const NETWORK: u64 = 1 << 12;
const SYSTEM: u64 = 1 << 21;

/// Returns a line of the status of a process.
fn status(process: u32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap().trim().to_owned()
}

fn has(daemon: &SiteDaemon, capabilities: u64) {
    let helper = daemon.helper();
    for field in ["CapPrm", "CapEff", "CapBnd"] {
        assert_eq!(u64::from_str_radix(&status(helper, field), 16), Ok(capabilities), "{field}");
    }
    assert_eq!(["NoNewPrivs", "Seccomp"].map(|field| status(helper, field)), ["1", "2"]);
}

#[test]
fn a_helper_has_what_its_configuration_needs_and_restores_the_host() {
    in_a_world("helper::a_helper_has_what_its_configuration_needs_and_restores_the_host", || {
        let sites = Sites::new(0);
        let _gateway = sites.start_gateway(0);
        let before = sites.look();
        // A namespace of its own for the inside, which is also that of the networks that stay unreachable.
        sh("ip netns add inner");
        let rules = || sh("ip -n inner rule; ip -n inner route show table all");
        let inner = rules();
        let field = sites.start_field(0, "--netns inner --route 10.20.0.0/16 --on-failure block");
        has(&field, NETWORK | READ | SYSTEM);
        let ping = format!("ip netns exec inner ping -c 1 -W 1 {}", INSIDE[0][0]);
        assert!(within(6.0, || run(&ping).status.success()), "{}", field.log());
        assert!(rules().contains("10.20.0.0/16"));
        assert_eq!(field.end("TERM"), Some(0));
        assert_eq!(rules(), inner);

        // A file that is read again: another route, and a name of a peer.
        fs::create_dir_all("/etc/thinair").unwrap();
        let file = |route: &str| {
            let text = format!(
                "[inside]\ntun = \"air0\"\naddress = [\"10.9.0.2/30\"]\nroute = [\"{route}\"]\n\
                 [carrier]\nurl = \"udp://198.51.100.7:7000\"\n[security]\nkey = \"{}\"\n",
                sites.key
            );
            fs::write("/etc/thinair/air0.toml", text).unwrap();
        };
        file("10.20.0.0/16");
        let field = SiteDaemon::start(&sites.field, "--name air0");
        has(&field, NETWORK | READ);
        assert!(sites.reaches(INSIDE[0][0]), "{}", field.log());
        file("10.21.0.0/16");
        let reload = run(&format!("ip netns exec {} {} tunnel reload air0", sites.field, thinair()));
        let changes = String::from_utf8_lossy(&reload.stderr).into_owned();
        assert!(reload.status.success() && changes.contains("route 10.21.0.0/16 added"), "{changes}");
        assert!(sh(&format!("ip -n {} route get 10.21.1.1", sites.field)).contains("dev air0"));
        assert_eq!(field.end("KILL"), None);
        let restored = within(5.0, || sites.look() == before);
        assert!(restored, "{}\n{before}", sites.look());
        sh("ip netns del inner");
    });
}

#[test]
fn a_helper_with_name_servers_may_signal_the_programs_that_use_them() {
    in_a_world("helper::a_helper_with_name_servers_may_signal_the_programs_that_use_them", || {
        let sites = Sites::new(0);
        sh(
            "mkdir -p /run/bin; printf '#!/bin/sh\\nexec cat >/dev/null\\n' > /run/bin/resolvconf; chmod +x /run/bin/resolvconf",
        );
        let field = sites.start_field(0, "--dns 10.9.0.1");
        has(&field, NETWORK | OVERRIDE | READ | KILL);
        assert_eq!(field.end("TERM"), Some(0));
    });
}
