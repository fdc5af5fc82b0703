//! Routes, rules and addresses before, during and after a tunnel.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use thinair_tests::site::{FIELD, GATEWAY, INSIDE, INTERNET, Sites, run, sh, thinair};
use thinair_tests::world::in_a_world;

/// Kind of route: its name, the arguments, and whether it leads to hosts of the Internet by IPv4 and by IPv6.
const KINDS: [(&str, &str, [bool; 2]); 8] = [
    ("0.0.0.0/0", "--route 0.0.0.0/0", [true, false]),
    ("::/0", "--route ::/0", [false, true]),
    ("both defaults", "--route 0.0.0.0/0 --route ::/0", [true, true]),
    ("halves of IPv4", "--route 0.0.0.0/1 --route 128.0.0.0/1", [true, false]),
    ("halves of IPv6", "--route ::/1 --route 8000::/1", [false, true]),
    ("subnet of the carrier", "--route 192.0.2.0/24 --route 2001:db8:1::/64", [false, false]),
    ("network around the peer", "--route 198.51.0.0/16 --route 2001:db8::/32", [false, true]),
    ("network in a wider route", "--route 10.20.0.0/16", [false, false]),
];

const ENDS: [&str; 5] = ["SIGTERM", "SIGINT", "SIGKILL", "both killed, restart", "both killed, `down`"];

#[test]
fn the_host_is_as_it_was() {
    in_a_world("routes::the_host_is_as_it_was", || {
        let cells: Vec<_> = (0..KINDS.len()).flat_map(|kind| [0, 1].map(|version| (kind, version))).collect();
        let (next, rows) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let (next, rows, cells) = (&next, &rows, &cells);
                scope.spawn(move || {
                    while let Some(&(kind, version)) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let number = kind * 2 + version;
                        let row = cell(number, version, kind);
                        lock(rows).insert(number, row);
                        let _ = worker;
                    }
                });
            }
        });
        println!("{:<26} {:<8} {:<34} after each end", "routes of the tunnel", "carrier", "during");
        for row in lock(&rows).values() {
            println!("{row}");
        }
        println!("ends: {}", ENDS.join("; "));
    });
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap()
}

fn cell(number: usize, version: usize, kind: usize) -> String {
    let (name, arguments, to_internet) = KINDS[kind];
    let sites = Sites::new(number);
    let gateway = sites.start_gateway(version);
    let before = sites.look();
    let mut during = String::new();
    let mut after = Vec::new();
    for end in ENDS {
        let field = sites.start_field(version, arguments);
        assert!(sites.reaches(INSIDE[0][0]) && sites.reaches(INSIDE[0][1]), "{name}\n{}", gateway.log());
        for (version, leads) in to_internet.into_iter().enumerate() {
            let way = sh(&format!("ip -n {} route get {}", sites.field, INTERNET[version]));
            assert_eq!(way.contains("dev air"), leads, "{name}: {way}");
            assert!(!leads || sites.reaches(INTERNET[version]), "{name}: {}", INTERNET[version]);
        }
        stays_outside(&sites, version, name);
        let seen = sites.look();
        // Everything that existed before exists.
        for line in before.lines() {
            assert!(
                seen.lines().any(|other| other == line),
                "{name}: gone during the tunnel: {line}\n{seen}"
            );
        }
        let added = |what: &str| {
            let lines = seen.lines().filter(|line| !before.lines().any(|other| other == *line));
            lines.filter(|line| line.contains(what)).count()
        };
        during = format!("{} rules, {} routes added", added("proto 116"), added("table 74"));
        match end {
            "SIGTERM" => assert_eq!(field.end("TERM"), Some(0)),
            "SIGINT" => assert_eq!(field.end("INT"), Some(0)),
            "SIGKILL" => assert_ne!(field.end("KILL"), Some(0)),
            restarted_or_down => {
                field.kill_both();
                if restarted_or_down.ends_with("restart") {
                    assert_eq!(sites.start_field(version, arguments).end("TERM"), Some(0));
                } else {
                    let down = format!("ip netns exec {} {} tunnel down air{number}", sites.field, thinair());
                    assert!(run(&down).status.success());
                }
            }
        }
        let seen = sites.look();
        assert_eq!(seen, before, "{name}, over {}, after {end}", ["IPv4", "IPv6"][version]);
        after.push("same");
    }
    drop(gateway);
    format!("{name:<26} {:<8} {during:<34} {}", ["IPv4", "IPv6"][version], after.join(" "))
}

/// Datagrams of the carrier do not enter the tunnel, with any routes.
fn stays_outside(sites: &Sites, version: usize, name: &str) {
    let to = format!("{} from {} ipproto udp sport 7000 dport 7000", GATEWAY[version], FIELD[version]);
    let way = sh(&format!("ip -n {} route get {to}", sites.field));
    assert!(way.contains("dev eth0"), "{name}: {way}");
}
