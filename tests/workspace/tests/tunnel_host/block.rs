//! `on_failure = "block"`: routes of a tunnel stay unreachable when it fails, until `down`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use thinair_tests::site::{
    FIELD, GATEWAY, INSIDE, INTERNET, SiteDaemon, Sites, folder, run, sh, thinair, within,
};
use thinair_tests::world::in_a_world;

const BLOCK: &str = "--on-failure block";

/// A router that is directly attached to the field site, by each version of IP.
const ATTACHED: [&str; 2] = ["192.0.2.1", "2001:db8:1::1"];

/// True if the field site rejects packets to a host of the Internet, by each version of IP.
fn is_blocked(sites: &Sites) -> [bool; 2] {
    INTERNET.map(|host| {
        let way = run(&format!("ip -n {} route get {host} 2>&1", sites.field));
        let text = String::from_utf8_lossy(&way.stdout).into_owned();
        let is_unreachable = text.contains("No route to host") || text.contains("unreachable");
        let ping = run(&format!("ip netns exec {} ping -c 1 -W 1 {host}", sites.field));
        assert!(!is_unreachable || !ping.status.success(), "{text}");
        is_unreachable
    })
}

/// Packets to the Internet are rejected; attached networks and datagrams of the carrier are not.
fn is_closed(sites: &Sites, what: &str) {
    rejects(sites, what);
    for (to, from) in GATEWAY.iter().zip(FIELD) {
        let way = sh(&format!(
            "ip -n {} route get {to} from {from} ipproto udp sport 7000 dport 7000",
            sites.field
        ));
        assert!(way.contains("dev eth0"), "{what}: {way}");
    }
}

/// Packets to the Internet are rejected, and those to attached networks are not.
fn rejects(sites: &Sites, what: &str) {
    assert!(
        within(5.0, || is_blocked(sites) == [true; 2]),
        "{what}: {:?}\n{}",
        is_blocked(sites),
        sites.look()
    );
    for router in ATTACHED {
        assert!(sites.reaches(router), "{what}: {router}");
    }
}

fn down(sites: &Sites) {
    let down = run(&format!("ip netns exec {} {} tunnel down air0", sites.field, thinair()));
    assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
}

/// Starts a daemon that may not open.
fn waiting(sites: &Sites, arguments: &str) -> Child {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &sites.field, thinair(), "tunnel", "run"]);
    command.args(arguments.split_whitespace()).stdin(Stdio::null());
    let log = fs::File::create(folder().join("waiting.log")).unwrap();
    command.stderr(log).spawn().unwrap()
}

fn end(mut daemon: Child) -> Option<i32> {
    sh(&format!("kill -TERM {}", daemon.id()));
    daemon.wait().unwrap().code()
}

#[test]
fn what_a_tunnel_carries_stays_blocked_when_it_is_killed() {
    in_a_world("block::what_a_tunnel_carries_stays_blocked_when_it_is_killed", || {
        for (version, routes) in [
            (0, "--route 0.0.0.0/0"),
            (1, "--route ::/0"),
            (0, "--route 0.0.0.0/0 --route ::/0"),
            (1, "--route 0.0.0.0/1 --route 128.0.0.0/1"),
        ] {
            let sites = Sites::new(0);
            let gateway = sites.start_gateway(version);
            let before = sites.look();
            let start = || {
                let field = sites.start_field(version, &format!("{routes} {BLOCK}"));
                assert!(sites.reaches(INSIDE[0][0]), "{routes}\n{}", field.log());
                // The other version of IP does not leave in clear, either.
                for (host, blocked) in INTERNET.iter().zip(is_blocked(&sites)) {
                    let way = run(&format!("ip -n {} route get {host}", sites.field));
                    let leads = String::from_utf8_lossy(&way.stdout).contains("dev air0");
                    assert!(leads != blocked, "{routes}: {host}");
                    assert!(!leads || sites.reaches(host), "{routes}: {host}");
                }
                field
            };

            // The helper undoes what it has to, and nothing else.
            assert_ne!(start().end("KILL"), Some(0));
            is_closed(&sites, &format!("{routes}: the daemon is killed"));
            // The next start works, and its clean end opens everything.
            assert_eq!(start().end("TERM"), Some(0));
            assert_eq!(sites.look(), before, "{routes}: after SIGTERM");

            // Without a helper, and then without a daemon.
            let field = start();
            let helper = field.helper();
            sh(&format!("kill -KILL {helper}"));
            assert!(sites.reaches(INSIDE[0][0]), "{routes}: the helper is killed");
            sh(&format!("kill -KILL {}", field.pid));
            drop(field);
            is_closed(&sites, &format!("{routes}: the helper is killed, then the daemon"));
            down(&sites);
            assert_eq!(sites.look(), before, "{routes}: after `down`");

            start().kill_both();
            is_closed(&sites, &format!("{routes}: both are killed"));
            down(&sites);
            assert_eq!(sites.look(), before, "{routes}: after `down`");

            // Without the setting the host's own routes are used.
            let field = sites.start_field(version, routes);
            assert_ne!(field.end("KILL"), Some(0));
            assert_eq!((is_blocked(&sites), sites.look()), ([false; 2], before), "{routes}: open");
            drop(gateway);
            println!("{routes}: blocked after each kill, as before after `down`");
        }
    });
}

#[test]
fn a_reload_that_fails_and_a_start_that_waits_open_nothing() {
    in_a_world("block::a_reload_that_fails_and_a_start_that_waits_open_nothing", || {
        let sites = Sites::new(0);
        let before = sites.look();
        let gateway = sites.start_gateway(0);
        let file = folder().join("field.toml");
        let write = |address: &str, route: &str| {
            let text = format!(
                "[inside]\ntun = \"air0\"\naddress = [\"{address}\", \"fd09::2/64\"]\nroute = {route}\n\
                 on_failure = \"block\"\n[carrier]\nurl = \"udp://198.51.100.7:7000\"\n[security]\nkey = \"{}\"\n",
                sites.key
            );
            fs::write(&file, text).unwrap();
        };
        let reload = || run(&format!("ip netns exec {} {} tunnel reload air0", sites.field, thinair()));
        let start = || SiteDaemon::start(&sites.field, &format!("--config {}", file.display()));
        // One host: a reload that fails leaves it blocked, and what the file has beside it as it was.
        write("10.9.0.2/30", &format!("[\"{}/32\"]", INTERNET[0]));
        let field = start();
        write("192.0.2.2/24", "[\"0.0.0.0/0\", \"::/0\"]");
        assert!(!reload().status.success(), "{}", field.log());
        assert_eq!(is_blocked(&sites), [false; 2], "{}", sites.look());
        assert!(sites.reaches(INTERNET[0]), "{}", field.log());
        field.kill_both();
        assert!(
            within(5.0, || is_blocked(&sites) == [true, false]),
            "a reload that failed\n{}",
            sites.look()
        );
        // One that succeeds blocks what is new, and no longer what is gone.
        write("10.9.0.2/30", &format!("[\"{}/32\"]", INTERNET[0]));
        let field = start();
        write("10.9.0.2/30", &format!("[\"{}/128\"]", INTERNET[1]));
        assert!(reload().status.success(), "{}", field.log());
        field.kill_both();
        assert!(within(5.0, || is_blocked(&sites) == [false, true]), "a reload\n{}", sites.look());

        // Killed in the middle of one, when the routes are new and name servers are not set yet: both stay blocked.
        down(&sites);
        let waits = folder().join("waits");
        fs::create_dir_all("/run/bin").unwrap();
        let text = format!(
            "#!/bin/sh\n[ $1 = -a ] || exit 0\necho $$ >{0}.new; mv {0}.new {0}\nexec sleep 60\n",
            waits.display()
        );
        fs::write("/run/bin/resolvconf", text).unwrap();
        fs::set_permissions("/run/bin/resolvconf", fs::Permissions::from_mode(0o755)).unwrap();
        write("10.9.0.2/30", &format!("[\"{}/32\"]", INTERNET[0]));
        let field = start();
        write("10.9.0.2/30", &format!("[\"{}/128\"]\ndns = [\"10.9.0.1\"]", INTERNET[1]));
        let reloading = Command::new("ip")
            .args(["netns", "exec", &sites.field, "timeout", "30", thinair(), "tunnel", "reload", "air0"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(within(10.0, || waits.exists()), "{}", field.log());
        field.kill_both();
        sh(&format!("kill -KILL $(cat {})", waits.display()));
        assert_ne!({ reloading }.wait().unwrap().code(), Some(0));
        assert!(within(5.0, || is_blocked(&sites) == [true; 2]), "in a reload\n{}", sites.look());
        fs::remove_file("/run/bin/resolvconf").unwrap();

        write("10.9.0.2/30", "[\"0.0.0.0/0\"]");
        let field = start();
        assert!(sites.reaches(INTERNET[0]), "{}", field.log());
        // An address that another interface has.
        write("192.0.2.2/24", "[\"0.0.0.0/0\", \"::/0\"]");
        assert!(!reload().status.success(), "{}", field.log());
        assert_eq!(is_blocked(&sites), [false, true], "{}", sites.look());
        write("10.9.0.2/30", "[\"0.0.0.0/0\", \"::/0\"]");
        let done = reload();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(is_blocked(&sites), [false; 2], "{}", sites.look());
        field.kill_both();
        is_closed(&sites, "after both reloads");
        down(&sites);
        assert_eq!(sites.look(), before);

        // A name that does not resolve yet.
        fs::write("/etc/resolv.conf", "options timeout:1 attempts:1\n").unwrap();
        let before = sites.look();
        let arguments = sites.field_arguments(0, "--route 0.0.0.0/0 --on-failure block");
        let arguments = arguments.replace(GATEWAY[0], "later.example");
        let daemon = waiting(&sites, &arguments);
        rejects(&sites, "while a start waits");
        let log = || fs::read_to_string(folder().join("waiting.log")).unwrap();
        assert!(within(10.0, || log().contains("later.example")), "{}", log());
        assert_eq!(end(daemon), Some(0), "{}", log());
        assert_eq!(sites.look(), before, "a clean end");

        // It resolves at last.
        let daemon = waiting(&sites, &arguments);
        rejects(&sites, "while a start waits again");
        fs::write("/etc/hosts", format!("{} later.example\n", GATEWAY[0])).unwrap();
        assert!(within(40.0, || log().contains("tunnel is open")), "{}", log());
        assert!(sites.reaches(INTERNET[0]), "{}\n{}", log(), gateway.log());
        assert_eq!(end(daemon), Some(0), "{}", log());
        assert_eq!(sites.look(), before, "a clean end");
    });
}
