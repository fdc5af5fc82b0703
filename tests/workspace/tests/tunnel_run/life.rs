//! Incidents that a tunnel survives, its ends, and its reports.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use thinair_os::Interface;

use super::bench::{
    ADDRESSES, Between, CarrierKind, DatagramSecurity, TUN, TunnelBench, has, run, thinair, wait_for,
};

/// Seconds for an event that takes five at most, on a busy machine.
const SOON: u64 = 10;

/// True if a ping gets through within a short time.
fn answers(bench: &TunnelBench) -> bool {
    let ping = ["ping", "-c", "1", "-W", "1", ADDRESSES[1][0]];
    wait_for(SOON, || run(&bench.inside[0], 5, &ping).status.success())
}

#[test]
fn an_end_that_is_killed_comes_back() {
    if thinair().is_none() {
        return;
    }
    let serial = CarrierKind { name: "serial", scheme: "serial", ..CarrierKind::UDP };
    let open = CarrierKind {
        name: "gse-open",
        scheme: "gse+udp",
        security: DatagramSecurity::Open,
        ..CarrierKind::UDP
    };
    for kind in [CarrierKind::UDP, serial, open] {
        let mut bench = TunnelBench::started(&format!("killed-{}", kind.name), kind, Between::Nothing, &[]);
        for side in [0, 1, 0] {
            bench.ends[side].take().unwrap().end("-KILL");
            assert!(wait_for(SOON, || !bench.has_interface(side)));
            bench.start(side);
            let begun = Instant::now();
            assert!(answers(&bench), "{}: no traffic\n{}", kind.name, bench.reported());
            println!("{}: traffic {:?} after the start of end {side}", kind.name, begun.elapsed());
        }
        assert!(bench.is_through(SOON), "{}\n{}", kind.name, bench.reported());
    }
}

#[test]
fn an_interrupted_tunnel_is_gone_within_a_second() {
    if thinair().is_none() {
        return;
    }
    let mut bench = TunnelBench::started("interrupted", CarrierKind::UDP, Between::Nothing, &[]);
    for (side, signal) in [(0, "-INT"), (1, "-TERM")] {
        let end = bench.ends[side].take().unwrap();
        let begun = Instant::now();
        assert_eq!(end.end(signal), Some(0), "{signal}");
        println!("{signal}: ended after {:?}", begun.elapsed());
        // The limit is one second; a busy machine gets some more.
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert!(!bench.has_interface(side), "{signal}");
    }
}

#[test]
fn the_carriers_interface_may_go_down() {
    if thinair().is_none() {
        return;
    }
    let bench = TunnelBench::started("down", CarrierKind::UDP, Between::Nothing, &[]);
    let set = |up: bool| {
        let work = || {
            let loopback = Interface::named("lo")?;
            if up { loopback.up() } else { loopback.down() }
        };
        bench.outside.within(work).unwrap().unwrap();
    };
    set(false);
    let ping = ["ping", "-q", "-i", "0.05", "-W", "1", "-c", "20", ADDRESSES[1][0]];
    assert!(!run(&bench.inside[0], 10, &ping).status.success(), "it is down");
    set(true);
    let begun = Instant::now();
    assert!(answers(&bench), "{}", bench.reported());
    println!("traffic {:?} after the interface is up", begun.elapsed());
    assert!(bench.is_through(SOON), "{}", bench.reported());
}

#[test]
fn an_interface_that_is_taken_away_is_found_again() {
    if thinair().is_none() || !has("ip", "iproute2") {
        return;
    }
    let bench = TunnelBench::started("taken", CarrierKind::UDP, Between::Nothing, &[]);
    bench.inside[0].within(|| Interface::named(TUN)?.delete()).unwrap().unwrap();
    assert!(wait_for(SOON, || !bench.end(0).status()["inside"]["up"].as_bool().unwrap()));
    // The test removes the interface and creates it anew, for the user of the daemon.
    let [four, six] = ADDRESSES[0];
    let commands = [
        format!("ip tuntap add dev {TUN} mode tun user nobody"),
        format!("ip link set {TUN} mtu 1400 up"),
        format!("ip addr add {four}/30 dev {TUN}"),
        format!("ip addr add {six}/64 dev {TUN} nodad"),
    ];
    for command in &commands {
        let done = run(&bench.inside[0], 5, &command.split(' ').collect::<Vec<_>>());
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let begun = Instant::now();
    assert!(answers(&bench), "{}\n{}", bench.end(0).log(), bench.reported());
    println!("traffic {:?} after there is an interface again", begun.elapsed());
    assert!(bench.is_through(SOON), "{}", bench.reported());
}

#[test]
fn a_tunnel_without_traffic_takes_no_time() {
    if thinair().is_none() {
        return;
    }
    let serial = CarrierKind { name: "serial", scheme: "serial", ..CarrierKind::UDP };
    let ule = CarrierKind { name: "ule", scheme: "ule+udp", ..CarrierKind::UDP };
    for kind in [CarrierKind::UDP, serial, ule] {
        let bench = TunnelBench::started(&format!("idle-{}", kind.name), kind, Between::Nothing, &[]);
        std::thread::sleep(Duration::from_secs(1));
        let took = |side: usize| {
            let status = bench.end(side).status();
            ["cpu_seconds", "uptime_seconds"].map(|name| status[name].as_f64().unwrap())
        };
        let before = [took(0), took(1)];
        std::thread::sleep(Duration::from_secs(3));
        for (side, before) in before.iter().enumerate() {
            let after = took(side);
            let part = (after[0] - before[0]) / (after[1] - before[1]);
            println!("{}: {:.3} % of a processor", kind.name, part * 100.0);
            assert!(part < 0.01, "{}: {part}", kind.name);
        }
    }
}

#[test]
fn what_it_tells_and_whom() {
    if thinair().is_none() {
        return;
    }
    let mut bench = TunnelBench::new("told", CarrierKind::UDP, Between::Nothing, &[]);
    bench.add(0, &["--http", "127.0.0.1:9464", "--billing-unit", "64"]);
    bench.start(0);
    bench.start(1);
    assert!(bench.is_through(20), "{}", bench.reported());
    let status = bench.end(0).status();
    assert_eq!(status["schema"], "thinair.tunnel.status/1");
    assert_eq!(status["peers"][0]["sessions"], 1, "{}", status["peers"]);
    assert!(status["totals"]["sent"]["packets"].as_u64() > Some(0));
    assert_eq!(status["billing"]["unit_octets"], 64);

    let page = get(&bench, "/", "127.0.0.1:9464");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<html"), "{page}");
    let metrics = get(&bench, "/metrics", "localhost:9464");
    assert!(metrics.starts_with("HTTP/1.1 200") && metrics.contains("thinair_"), "{metrics}");
    let foreign = get(&bench, "/metrics", "example.org");
    assert!(foreign.starts_with("HTTP/1.1 4"), "{foreign}");

    // The daemon, started by root, runs as nobody, whose group may use the socket; others may not.
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let nobody = users.lines().find(|line| line.starts_with("nobody:")).unwrap();
    let group = nobody.split(':').nth(3).unwrap();
    let as_group = |group: &str, arguments: &[&str]| {
        Command::new("setpriv")
            .args(["--reuid", "12345", "--regid", group, "--clear-groups"])
            .arg(thinair().unwrap())
            .args(arguments)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let ask = ["tunnel", "status", bench.end(0).socket(), "--json"];
    if as_group(group, &["--version"]) {
        assert!(as_group(group, &ask));
        assert!(!as_group("12345", &ask));
    } else {
        println!("skipped: who may ask, as others may not run the command, or there is no setpriv");
    }

    // The page is a process without capabilities, and ends with the daemon, even after SIGKILL.
    let page = child(bench.end(0).pid, "page");
    let rights = fs::read_to_string(format!("/proc/{page}/status")).unwrap();
    assert!(rights.contains("CapEff:\t0000000000000000"), "{rights}");
    let is_nobody = |line: &str| line.split_whitespace().nth(2) == nobody.split(':').nth(2);
    assert!(rights.lines().any(|line| line.starts_with("Uid:") && is_nobody(line)), "{rights}");
    bench.end(0).signal("-KILL");
    let has_ended = || !std::path::Path::new(&format!("/proc/{page}")).exists();
    assert!(wait_for(SOON, has_ended), "the page of a daemon that was killed");
}

/// Returns the number of a process that another one has started, with this argument.
fn child(parent: u32, argument: &str) -> u32 {
    let mut processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    let is_child = |process: &u32| {
        let file = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
        file("status").lines().any(|line| line == format!("PPid:\t{parent}"))
            && file("cmdline").split('\0').any(|word| word == argument)
    };
    processes.find_map(|name| name.to_str()?.parse().ok().filter(is_child)).unwrap()
}

/// Response of a server in the carrier's namespace.
fn get(bench: &TunnelBench, path: &str, host: &str) -> String {
    let mut stream = bench.outside.within(|| TcpStream::connect("127.0.0.1:9464")).unwrap().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}
