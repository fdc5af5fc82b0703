//! `thinair link run`: ping and libcoap over the emulated link, plain and compressed, and cleanup afterwards.
//!
//! Needs network namespaces and TUN; without the privilege, the tests are skipped with a message. Times are printed,
//! and asserted only with the tolerance of a busy machine: packets and octets are exact.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use thinair_capture::Reader;
use thinair_tests::{metadata, text};

/// Time limit of a run in seconds, far above the usual time.
const LIMIT: &str = "60";

/// Path of the command, or `None` and a message with the reason that nothing can be tested.
fn thinair() -> Option<&'static str> {
    static COMMAND: OnceLock<(String, Option<String>)> = OnceLock::new();
    let (command, missing) = COMMAND.get_or_init(|| {
        let command = thinair_tests::command();
        let tried = Command::new(&command).args(["link", "run", "--create", "--", "true"]).output().unwrap();
        let stderr = String::from_utf8_lossy(&tried.stderr).into_owned();
        assert!(
            tried.status.success() || stderr.contains("this needs root") || stderr.contains("CONFIG_TUN"),
            "{stderr}"
        );
        (command, (!tried.status.success()).then_some(stderr))
    });
    match missing {
        Some(why) => {
            println!("skipped: {}", why.trim());
            None
        }
        None => Some(command),
    }
}

/// True if a program of a package is installed.
fn has(program: &str, package: &str) -> bool {
    let there = Command::new(program).arg("-h").output().is_ok();
    if !there {
        println!("skipped: there is no {program} (Debian: {package})");
    }
    there
}

/// Runs a link with a command at side A, with a time limit.
fn link(thinair: &str, options: &[&str], command: &[&str]) -> Output {
    Command::new("timeout")
        .args([LIMIT, thinair, "link", "run", "--create", "--json"])
        .args(options)
        .arg("--")
        .args(command)
        .output()
        .unwrap()
}

/// JSON of a successful run, and the output of its command.
fn report(output: &Output, what: &str) -> (Value, String) {
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{what}: {}\n{printed}", output.status);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("{what}: lateness {}", json["lateness_us"]);
    (json, printed)
}

fn count(json: &Value, direction: &str, name: &str) -> u64 {
    json[direction][name].as_u64().unwrap_or_else(|| panic!("{direction} {name}: {json}"))
}

/// Folder of one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(&text(&metadata(), "target_directory")).join("link-run").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Records of a capture.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next_record() {
        let record = record.unwrap();
        let packet = record.network_packet().map(|network| network.packet);
        records.push(packet.or_else(|_| record.rohc_packet().map(|rohc| rohc.packet)).unwrap().to_vec());
    }
    records
}

/// Milliseconds of each `time=` in ping's output, sorted.
fn round_trips(printed: &str) -> Vec<f64> {
    let times = printed.split("time=").skip(1).map(|rest| rest.split(' ').next().unwrap().parse().unwrap());
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    times
}

#[test]
fn ping_takes_the_time_of_the_link() {
    let Some(thinair) = thinair() else { return };
    if !has("ping", "iputils-ping") {
        return;
    }
    let folder = folder("ping");
    let (log, pcap) = (folder.join("log.csv"), folder.join("link.pcap"));
    let options =
        ["--preset", "zigbee-20k", "--log", log.to_str().unwrap(), "--pcap", pcap.to_str().unwrap()];
    let ping = ["ping", "-c", "20", "-i", "0.1", "-s", "16", "10.9.0.2"];
    let (json, printed) = report(&link(thinair, &options, &ping), "ping");

    // 20 requests and 20 responses of 44 octets, and no other packets.
    for direction in ["a_to_b", "b_to_a"] {
        for (name, expected) in [("packets", 20), ("octets", 880), ("frames", 20), ("delivered", 20)] {
            assert_eq!(count(&json, direction, name), expected, "{direction} {name}");
        }
    }
    // 2 * (17.6 + 20) ms, and the time of wake-ups.
    let times = round_trips(&printed);
    let median = times[times.len() / 2];
    println!("round trips: median {median} ms of {}, expected 75.2 to 75.6", times.len());
    assert_eq!(times.len(), 20);
    assert!((75.2..90.0).contains(&median), "{times:?}");

    let log = fs::read_to_string(log).unwrap();
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 41);
    for line in &lines[1..] {
        let nanos = |at: usize| line[at].parse::<u64>().unwrap();
        assert_eq!(nanos(4) - nanos(3), 17_600_000, "{line:?}");
        assert_eq!(nanos(5) - nanos(4), 20_000_000, "{line:?}");
        assert_eq!((line[7], line[8], line[9], line[11]), ("44", "44", "1", "delivered"));
    }
    let packets = records(&pcap);
    assert_eq!(packets.len(), 40);
    assert!(packets.iter().all(|packet| packet.len() == 44 && packet[0] == 0x45));
}

#[test]
fn ipv6_over_frames_of_128_octets_is_fragmented_below_ip() {
    let Some(thinair) = thinair() else { return };
    if !has("ping", "iputils-ping") {
        return;
    }
    let ping = ["ping", "-6", "-c", "3", "-i", "0.2", "-s", "952", "fd09::2"];
    let (json, printed) =
        report(&link(thinair, &["--preset", "zigbee-250k", "--mtu", "128"], &ping), "ping -6");
    assert_eq!(round_trips(&printed).len(), 3, "{printed}");
    for direction in ["a_to_b", "b_to_a"] {
        assert_eq!((count(&json, direction, "packets"), count(&json, direction, "octets")), (3, 3_000));
        // 1,000 octets: 120 in each of 8 frames, 40 in the ninth; headers of 4 and 5 octets.
        assert_eq!(count(&json, direction, "frames"), 3 * 9);
        assert_eq!(count(&json, direction, "frame_octets"), 3 * (1_000 + 4 + 8 * 5));
    }
    // IPv4 fragments by itself: 980 octets of ICMP in fragments of 104.
    let ping = ["ping", "-c", "2", "-i", "0.2", "-s", "972", "10.9.0.2"];
    let (json, _) = report(&link(thinair, &["--preset", "zigbee-250k", "--mtu", "128"], &ping), "ping -4");
    for direction in ["a_to_b", "b_to_a"] {
        assert_eq!((count(&json, direction, "packets"), count(&json, direction, "frames")), (20, 20));
    }
}

/// 40 octets of IPv6 in 6 (RFC 6282: two, the Flow Label that Linux sets, and Next Header, as ICMPv6 is not
/// compressed); hosts receive the sent packets, also with ROHC.
#[test]
fn headers_by_iphc_are_short_and_hosts_get_whole_packets() {
    let Some(thinair) = thinair() else { return };
    if !has("ping", "iputils-ping") {
        return;
    }
    let pcap = folder("iphc").join("hosts.pcap");
    let ping = ["ping", "-6", "-c", "5", "-i", "0.2", "-s", "16", "fd09::2"];
    for (name, options, octets) in
        [("iphc", &["--iphc"][..], Some(5 * (2 + 3 + 1 + 24))), ("rohc", &["--rohc", "--mode", "o"], None)]
    {
        let options =
            [&["--preset", "zigbee-250k", "--ip-pcap", pcap.to_str().unwrap()][..], options].concat();
        let (json, printed) = report(&link(thinair, &options, &ping), name);
        assert_eq!(round_trips(&printed).len(), 5, "{name}: {printed}");
        for direction in ["a_to_b", "b_to_a"] {
            assert_eq!(count(&json, direction, "octets"), 5 * 64, "{name}");
            let carried = count(&json, direction, "carried_octets");
            assert!(octets.is_none_or(|octets| carried == octets) && carried < 5 * 64, "{name}: {carried}");
        }
        let packets = records(&pcap);
        assert_eq!(packets.len(), 10, "{name}");
        // Echo Request and Echo Reply.
        let is_echo = |packet: &Vec<u8>| packet.len() == 64 && packet[0] == 0x60 && packet[40] >> 1 == 64;
        assert!(packets.iter().all(is_echo), "{name}: {packets:02x?}");
    }
}

#[test]
fn libcoap_talks_over_the_link_plain_and_compressed() {
    let Some(thinair) = thinair() else { return };
    for program in ["coap-client-notls", "coap-server-notls"] {
        if !has(program, "libcoap3-bin") {
            return;
        }
    }
    // Requests of one flow: every client has the same port.
    let talk = "set -e
        ip netns exec $THINAIR_B coap-server-notls -A 10.9.0.2 >&2 &
        server=$!
        trap 'kill $server' EXIT
        sleep 1
        for i in $(seq 20); do
            echo answer: $(coap-client-notls -B 10 -p 40000 coap://10.9.0.2/time?ticks)
        done";
    let mut octets = Vec::new();
    let (folder, ways) = (folder("libcoap"), [("ab", "a_to_b"), ("ba", "b_to_a")]);
    let plain: &[&str] = &["--preset", "zigbee-20k"];
    let runs: [(&str, &[&str]); 4] = [
        ("plain", &[]),
        ("u", &["--rohc", "--mode", "u"]),
        ("o", &["--rohc", "--mode", "o"]),
        ("r", &["--rohc", "--mode", "r", "--profiles", "v1"]),
    ];
    for (name, rohc) in runs {
        let pcap = folder.join(format!("{name}.pcap"));
        let options = [plain, rohc, &["--pcap", pcap.to_str().unwrap()]].concat();
        let (json, printed) = report(&link(thinair, &options, &["sh", "-c", talk]), name);
        let answers = printed.lines().filter_map(|line| line.strip_prefix("answer: "));
        let answers: Vec<u64> = answers.map(|answer| answer.trim().parse().unwrap_or_default()).collect();
        assert_eq!(answers.len(), 20, "{name}: {printed}");
        assert!(answers.iter().all(|ticks| *ticks > 0), "{name}: {printed}");
        for (way, direction) in ways {
            // One packet per request and one per response, unless a busy machine caused a retransmission.
            let packets = count(&json, direction, "packets");
            assert!((20..=40).contains(&packets), "{name}: {packets}");
            assert_eq!(count(&json, direction, "delivered"), packets);
            assert_eq!(
                (count(&json, direction, "altered"), &json[direction]["dropped"]),
                (0, &serde_json::json!({}))
            );
            if rohc.is_empty() {
                continue;
            }
            // Another process restores the packets that the link carried.
            let (rohc_file, back) = (folder.join(format!("{name}.{way}.pcap")), folder.join("back.pcap"));
            let carried: usize = records(&rohc_file).iter().map(Vec::len).sum();
            assert_eq!(carried as u64, count(&json, direction, "carried_octets"), "{name} {way}");
            let alone = count(&json[direction], "feedback", "alone");
            let profiles = if name == "r" { "v1" } else { "v1,coap" };
            let done = Command::new(thinair)
                .args(["rohc", "decompress", "--mode", name, "--profiles", profiles])
                .args([&rohc_file, &back])
                .output()
                .unwrap();
            assert!(done.status.success(), "{name} {way}: {}", String::from_utf8_lossy(&done.stderr));
            let restored = records(&back);
            // Responses that refer to requests need both directions.
            assert!(restored.len() as u64 <= packets);
            if profiles == "v1" {
                assert_eq!(restored.len() as u64, packets, "{name} {way}, {alone} of feedback alone");
            }
        }
        if rohc.is_empty() {
            // LINKTYPE_RAW.
            assert_eq!(fs::read(&pcap).unwrap()[20..24], [101, 0, 0, 0]);
        }
        let on_link: u64 = ways.iter().map(|(_, way)| count(&json, way, "frame_octets")).sum();
        let packets: u64 = ways.iter().map(|(_, way)| count(&json, way, "packets")).sum();
        let feedback: u64 = ways.iter().map(|(_, way)| count(&json[way], "feedback", "octets")).sum();
        println!(
            "{name}: {packets} packets in {on_link} octets on the link, of which {feedback} of feedback"
        );
        octets.push(on_link as f64 / packets as f64);
    }
    for (compressed, (name, _)) in octets[1..].iter().zip(&runs[1..]) {
        assert!(compressed < &octets[0], "{name}: {compressed} of {}", octets[0]);
    }
}

#[test]
fn the_status_of_the_command_is_that_of_the_run() {
    let Some(thinair) = thinair() else { return };
    for (command, expected) in [("exit 7", 7), ("kill -TERM $$", 143), ("true", 0)] {
        let done = link(thinair, &[], &["sh", "-c", command]);
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(expected), "{stderr}");
        assert_eq!(stderr.contains("at side A"), expected != 0, "{stderr}");
    }
    let missing = link(thinair, &[], &["/no/such/program"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot run `/no/such/program`"));
    let unknown =
        Command::new(thinair).args(["link", "run", "--netns", "no-such-a,no-such-b"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("/run/netns/no-such-a"));
    let both = Command::new(thinair).args(["link", "run", "--profiles", "udp", "--create"]).output().unwrap();
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn an_interrupted_link_is_gone_within_a_second_and_leaves_nothing() {
    let Some(thinair) = thinair() else { return };
    for signal in ["-INT", "-TERM"] {
        let mut link = Command::new("timeout")
            .args(["--foreground", LIMIT, thinair, "link", "run", "--create", "--preset", "gprs"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut text = BufReader::new(link.stderr.take().unwrap()).lines();
        let names: Vec<_> = (0..2).map(|_| text.next().unwrap().unwrap()).collect();
        let name = |line: &String| line.split(" is ").nth(1).unwrap().split(',').next().unwrap().to_owned();
        let names: Vec<_> = names.iter().map(name).collect();
        text.next();
        let files: Vec<_> = names.iter().map(|name| Path::new("/run/netns").join(name)).collect();
        // Names are not allowed everywhere.
        let named = names.iter().all(|name| !name.contains('/'));
        assert!(!named || files.iter().all(|file| file.exists()), "{names:?}");
        let asked = Instant::now();
        interrupt(&link, signal);
        let status = link.wait().unwrap();
        println!("{signal}: ended after {:?}", asked.elapsed());
        // The limit is one second; a busy machine gets some more.
        assert!(asked.elapsed() < Duration::from_secs(5));
        assert!(status.success(), "{status}");
        // Another test may have the names by now, for a time.
        let are_gone = (0..300).any(|_| {
            files.iter().all(|file| !file.exists()) || {
                std::thread::sleep(Duration::from_millis(100));
                false
            }
        });
        assert!(!named || are_gone, "{names:?}");
    }
}

#[test]
fn a_command_that_will_not_end_is_ended() {
    let Some(thinair) = thinair() else { return };
    let mut link = Command::new("timeout")
        .args(["--foreground", LIMIT, thinair, "link", "run", "--create", "--"])
        .args(["sh", "-c", "trap '' INT TERM; echo ready; while true; do sleep 1; done"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut text = BufReader::new(link.stdout.take().unwrap()).lines();
    assert_eq!(text.next().unwrap().unwrap(), "ready");
    let asked = Instant::now();
    interrupt(&link, "-INT");
    let status = link.wait().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert_eq!(status.code(), Some(137), "SIGKILL ended it");
}

/// Sends a signal to the link only: it is the only child of `timeout`.
fn interrupt(timeout: &Child, signal: &str) {
    let children = format!("/proc/{0}/task/{0}/children", timeout.id());
    let link = fs::read_to_string(children).unwrap();
    assert!(Command::new("kill").args([signal, link.trim()]).status().unwrap().success());
}

/// A limit of the size of files stands for a full disk: the log and the capture end with a whole record, and the end of the
/// command is an error.
#[test]
fn a_log_and_a_capture_on_a_full_disk_end_with_a_whole_record() {
    let Some(thinair) = thinair() else { return };
    if !has("ping", "iputils-ping") {
        return;
    }
    let folder = folder("full");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    for (option, name) in [("--pcap", "link.pcap"), ("--log", "link.csv")] {
        let file = path(name);
        let mut limited = Command::new("sh");
        // 4 blocks of 512 octets.
        limited.args(["-c", "trap '' XFSZ; ulimit -f 4; exec timeout \"$@\"", "sh", LIMIT, thinair]);
        limited.args(["link", "run", "--create", option, &file, "--"]);
        limited.args(["ping", "-c", "30", "-i", "0.01", "-s", "900", "10.9.0.2"]);
        let output = limited.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{option}: {told}");
        assert!(told.contains(&file) && told.contains("with a whole record"), "{option}: {told}");
        let octets = fs::read(&file).unwrap();
        assert!((1_000..=2_048).contains(&octets.len()), "{option}: {}", octets.len());
        match option {
            "--pcap" => assert_eq!(records(Path::new(&file)).len(), 2),
            _ => assert!(octets.ends_with(b"\n"), "{}", String::from_utf8_lossy(&octets)),
        }
    }
}

/// The commands of the manual for a tunnel over an emulated link: neither takes the addresses of the other.
#[test]
fn the_tunnel_over_a_link_of_the_manual_works() {
    if thinair().is_none() || !has("ping", "iputils-ping") {
        return;
    }
    thinair_tests::world::in_a_world("the_tunnel_over_a_link_of_the_manual_works", || {
        let manual = fs::read_to_string(thinair_tests::root().join("docs/tunnel.md")).unwrap();
        let (_, rest) = manual.split_once("On one machine, as root.").unwrap();
        let (block, _) = rest.split_once("\n## ").unwrap();
        let lines: Vec<_> = block.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        let (last, lines) = lines.split_last().unwrap();
        // Commands that run until they are ended do so in the background.
        let mut script = "set -eu\nthinair tunnel keygen sat.key\npids=\n".to_owned();
        for line in lines {
            match line.contains(" run ") {
                true => script += &format!("timeout 50 {line} 2>>log & pids=\"$pids $!\"\nsleep 0.5\n"),
                false => script += &format!("{line}\n"),
            }
        }
        let reached = last.replace("-c 3", "-c 1 -W 2");
        script +=
            &format!("for try in $(seq 20); do {reached} && break; done\n{last} && code=0 || code=$?\n");
        script += "kill $pids\nwait\nip netns del gateway; ip netns del field\nexit $code\n";
        let folder = folder("manual");
        let programs = Path::new(thinair().unwrap()).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let output =
            Command::new("sh").args(["-c", &script]).current_dir(&folder).env("PATH", path).output().unwrap();
        let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && told.contains("3 received, 0% packet loss"), "{told}\n{log}");
        assert_eq!(lines.iter().filter(|line| line.contains("tunnel run")).count(), 2);
    });
}
