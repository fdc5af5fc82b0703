//! Outage of an end that restarts, and the reports of both ends meanwhile.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thinair_os::Namespace;

use super::bench::{Between, CarrierKind, SetOnDrop, TunnelBench, address, key, thinair, wait_for};

/// Maximum time from the start of an end until packets flow. Three round trips are negligible on loopback.
const BAR: Duration = Duration::from_secs(2);

/// Maximum time in seconds until a reason is reported.
const KNOWN: u64 = 5;

const PORT: u16 = 9_100;

/// The end that listens, without the other's address; and the end that connects to it.
const NAMES: [&str; 2] = ["listening", "connecting"];
const LISTENING: usize = 0;
const CONNECTING: usize = 1;

/// Bench of which one end does not have the address of the other.
fn bench(name: &str) -> TunnelBench {
    let mut bench = TunnelBench::new(name, CarrierKind::UDP, Between::Nothing, &[]);
    bench.listen(LISTENING);
    bench
}

/// One end inside sends a datagram every 10 ms, the other one returns each.
struct Echo {
    begun: Instant,
    /// Times at which the restart began, and at which the first later datagram arrived and returned.
    times: Mutex<[Option<Duration>; 3]>,
}

impl Echo {
    fn run(&self, from: &Namespace, to: &Namespace, target: SocketAddr, stop: &AtomicBool) {
        let socket = |namespace: &Namespace, port| {
            let any = SocketAddr::from(([0; 4], port));
            let socket = namespace.within(|| UdpSocket::bind(any)).unwrap().unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let (near, far) = (socket(from, 0), socket(to, PORT));
        let mut room = [0; 64];
        while !stop.load(Ordering::Relaxed) {
            // Without an interface, and without a route, there are errors.
            let now = u64::try_from(self.begun.elapsed().as_nanos()).unwrap();
            let _ = near.send_to(&now.to_be_bytes(), target);
            while let Ok((len, from)) = far.recv_from(&mut room) {
                self.arrived(1, &room[..len]);
                let _ = far.send_to(&room[..len], from);
            }
            while let Ok((len, _)) = near.recv_from(&mut room) {
                self.arrived(2, &room[..len]);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn arrived(&self, which: usize, octets: &[u8]) {
        let sent = Duration::from_nanos(u64::from_be_bytes(octets.try_into().unwrap()));
        let mut times = self.times.lock().unwrap();
        if times[0].is_some_and(|start| sent >= start) && times[which].is_none() {
            times[which] = Some(self.begun.elapsed());
        }
    }
}

/// Seconds from the start of an end until packets get through to it, and back, after it has ended by a signal; and
/// until it is open.
fn restart(bench: &mut TunnelBench, signal: &str, side: usize) -> [Duration; 3] {
    let echo = Echo { begun: Instant::now(), times: Mutex::default() };
    let stop = AtomicBool::new(false);
    let (from, to) = (bench.inside[1 - side].called(), bench.inside[side].called());
    let [from, to] = [from, to].map(|name| Namespace::open(&name).unwrap());
    std::thread::scope(|scope| {
        let _stop = SetOnDrop(&stop);
        scope.spawn(|| echo.run(&from, &to, SocketAddr::new(address(side, 0), PORT), &stop));
        std::thread::sleep(Duration::from_millis(300));
        bench.ends[side].take().unwrap().end(signal);
        assert!(wait_for(10, || !bench.has_interface(side)));
        std::thread::sleep(Duration::from_millis(500));
        echo.times.lock().unwrap()[0] = Some(echo.begun.elapsed());
        bench.start(side);
        let open = echo.begun.elapsed();
        assert!(
            wait_for(30, || echo.times.lock().unwrap()[2].is_some()),
            "{signal} {side}\n{}",
            bench.reported()
        );
        let [start, there, back] = echo.times.lock().unwrap().map(Option::unwrap);
        [open - start, there - start, back - start]
    })
}

/// Prints the table of docs/tunnel.md.
#[test]
fn packets_flow_soon_after_an_end_starts_again() {
    if thinair().is_none() {
        return;
    }
    let mut bench = bench("restart");
    bench.start(LISTENING);
    bench.start(CONNECTING);
    assert!(bench.is_through(20), "{}", bench.reported());
    println!("| signal | end that starts again | it is open | packets to it | and back |");
    println!("|---|---|---|---|---|");
    let mut worst = Duration::ZERO;
    for signal in ["KILL", "TERM", "INT"] {
        for (side, name) in NAMES.iter().enumerate() {
            let [open, there, back] = restart(&mut bench, &format!("-{signal}"), side);
            let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
            println!("| SIG{signal} | {name} | {} | {} | {} |", seconds(open), seconds(there), seconds(back));
            worst = worst.max(there).max(back);
        }
    }
    assert!(worst <= BAR, "{worst:?}");
}

/// True if an end soon logs a warning with that reason, and has it in its status.
fn reports(bench: &TunnelBench, side: usize, reason: &str) -> bool {
    let has = || {
        let end = bench.end(side);
        let log = end.log();
        let is_logged = log.lines().any(|line| line.contains("WARN") && line.contains(reason));
        is_logged && end.status()["peers"][0]["trouble"]["reason"] == reason
    };
    let found = wait_for(KNOWN, has);
    println!("{}: {}", NAMES[side], bench.end(side).status()["peers"][0]["trouble"]);
    found
}

#[test]
fn both_ends_report_that_their_keys_differ() {
    if thinair().is_none() {
        return;
    }
    let mut bench = bench("other-key");
    let other = key(&bench.folder, "other");
    bench.replace(CONNECTING, &bench.folder.path("key"), &other);
    bench.start(LISTENING);
    bench.start(CONNECTING);
    assert!(reports(&bench, LISTENING, "other_key"), "{}", bench.end(LISTENING).log());
    assert!(reports(&bench, CONNECTING, "no_answer"), "{}", bench.end(CONNECTING).log());
    // The key that one end names is unknown to the other.
    let text = |side: usize| bench.end(side).status()["peers"][0]["trouble"]["text"].to_string();
    let ours = text(CONNECTING).rsplit(' ').next().unwrap().trim_matches('"').to_owned();
    assert_eq!(ours.len(), 8);
    assert!(text(LISTENING).contains(&format!("names key {ours}")), "{}", text(LISTENING));
}

#[test]
fn both_ends_report_that_their_configurations_differ() {
    if thinair().is_none() {
        return;
    }
    for (name, options, reason) in [
        ("parameters", ["--max-cid", "3"], "other_parameters"),
        ("suite", ["--suite", "aes-ccm-8"], "other_suite"),
    ] {
        let mut bench = bench(name);
        bench.add(CONNECTING, &options);
        bench.start(LISTENING);
        bench.start(CONNECTING);
        for side in [LISTENING, CONNECTING] {
            assert!(reports(&bench, side, reason), "{}", bench.end(side).log());
        }
    }
}

#[test]
fn an_end_reports_that_nobody_is_there_and_that_the_other_one_has_ended() {
    if thinair().is_none() {
        return;
    }
    let mut bench = bench("nobody");
    bench.start(CONNECTING);
    let trouble = |bench: &TunnelBench| bench.end(CONNECTING).status()["peers"][0]["trouble"].clone();
    // Where the network reports it, the status has that no process listens there.
    let is_known = wait_for(KNOWN, || {
        let trouble = trouble(&bench);
        trouble["reason"] == "no_answer" || trouble["reason"] == "unreachable"
    });
    println!("nobody there: {}", trouble(&bench));
    assert!(is_known, "{}", bench.end(CONNECTING).log());
    bench.start(LISTENING);
    assert!(bench.is_through(20), "{}", bench.reported());
    assert!(trouble(&bench).is_null(), "{}", trouble(&bench));
    assert!(bench.end(CONNECTING).log().contains("works again"));
    bench.ends[LISTENING].take().unwrap().end("-TERM");
    assert!(reports(&bench, CONNECTING, "closed"), "{}", bench.end(CONNECTING).log());
}
