//! Exchanges of real programs over an emulated link, counted: libcoap, and our HTTP with Fast Open. Octets follow from
//! the standards and the kernel's options, so they are exact; times are ignored.
//!
//! Needs network namespaces, TUN and libcoap; where they are missing, the tests are skipped with a message.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use thinair_analyze::exchange::{Exchange, Passage, measure};
use thinair_capture::Reader;
use thinair_rohc::Ports;

/// Time limit of a run in seconds, far above the usual time.
const LIMIT: &str = "60";

/// Maximum number of attempts of an exchange, in which a busy machine may cause retransmissions.
const TRIES: usize = 5;

/// Object that is fetched.
const OBJECT: &[u8] = b"+29@GNU\\cj";

/// Path of the command, unless something is missing.
fn thinair() -> Option<String> {
    let command = thinair_tests::command();
    let tried = Command::new(&command).args(["link", "run", "--create", "--", "true"]).output().unwrap();
    if tried.status.success() {
        return Some(command);
    }
    let why = String::from_utf8_lossy(&tried.stderr);
    assert!(["this needs root", "CONFIG_TUN"].iter().any(|known| why.contains(known)), "{why}");
    println!("skipped: {}", why.trim());
    None
}

fn folder(name: &str) -> PathBuf {
    let target = thinair_tests::text(&thinair_tests::metadata(), "target_directory");
    let folder = Path::new(&target).join("transports").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("objects")).unwrap();
    fs::write(folder.join("objects/10"), OBJECT).unwrap();
    folder
}

/// Last exchange of a script at side A of a link of 20 kbit/s with packets of at most 128 octets. Between two exchanges
/// the script is silent for 300 ms or more.
fn last_exchange(name: &str, thinair: &str, script: &str) -> Exchange {
    let folder = folder(name);
    let mut measured = Exchange::default();
    for _ in 0..TRIES {
        let output = Command::new("timeout")
            .args([
                LIMIT,
                thinair,
                "link",
                "run",
                "--create",
                "--preset",
                "zigbee-20k",
                "--pcap",
                "link.pcap",
            ])
            .args(["--", "bash", "-c", script])
            .env("THINAIR", thinair)
            .env("THINAIR_LAB", thinair_tests::laboratory())
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut reader = Reader::new(File::open(folder.join("link.pcap")).unwrap()).unwrap();
        let mut packets: Vec<(u64, Vec<u8>)> = Vec::new();
        while let Some(record) = reader.next_record() {
            let record = record.unwrap();
            let time = record.time.as_nanos();
            let is_of_next = packets.last().is_some_and(|(before, _)| time > before + 300_000_000);
            if is_of_next {
                packets.clear();
            }
            packets.push((time, record.network_packet().unwrap().packet.to_vec()));
        }
        let passages =
            packets.iter().map(|(time, octets)| Passage { entered: *time, delivered: Some(*time), octets });
        measured = measure(passages, OBJECT, Ports::COAP);
        if measured.again == 0 && measured.download_ns.is_some() {
            break;
        }
        println!("tried again: {measured:?}");
    }
    println!("{name}: {measured:?}");
    measured
}

/// Number of packets, and octets of IP, of UDP or TCP, and of the service.
fn counts(of: &Exchange) -> (u64, [u64; 3]) {
    (of.packets, [of.octets.ip, of.octets.transport, of.octets.application])
}

#[test]
fn libcoap_takes_two_packets() {
    let Some(thinair) = thinair() else { return };
    for program in ["coap-client-notls", "coap-server-notls"] {
        if Command::new(program).arg("-h").output().is_err() {
            println!("skipped: there is no {program} (Debian: libcoap3-bin)");
            return;
        }
    }
    let script = "set -e
        ip netns exec $THINAIR_B coap-server-notls -A 10.9.0.2 -d 1 >&2 & server=$!
        trap 'kill $server' EXIT
        sleep 1
        coap-client-notls -B 20 -m put -f objects/10 coap://10.9.0.2/10
        sleep 1
        coap-client-notls -B 20 coap://10.9.0.2/10
        sleep 0.2";
    let of = last_exchange("libcoap", &thinair, script);
    assert_eq!(counts(&of), (2, [40, 16, 14]));
    assert_eq!(of.total(), 80);
}

/// Lean options of the kernel: the octets of TCP match a publication. The client's first exchange obtains the cookie.
#[test]
fn http_with_fast_open_takes_six() {
    let Some(thinair) = thinair() else { return };
    let script = "set -e
        for namespace in $THINAIR_A $THINAIR_B; do
            ip netns exec $namespace sh -c 'cd /proc/sys/net/ipv4
                echo 3 >tcp_fastopen; echo 0 >tcp_timestamps; echo 0 >tcp_sack'
        done
        ip netns exec $THINAIR_B $THINAIR_LAB serve --service iot-http --bind 10.9.0.2:8080 objects >&2 & server=$!
        trap 'kill $server' EXIT
        sleep 1
        for i in 1 2; do
            $THINAIR_LAB fetch --service iot-http --quick-ack http://10.9.0.2:8080/10 --output fetched
            cmp fetched objects/10
            sleep 1
        done";
    let expected = (6, [120, 148, 39]);
    let measured = thinair_tests::measured_until(&(expected, 317, Some(0.0)), || {
        let of = last_exchange("iot-http", &thinair, script);
        (counts(&of), of.total(), of.set_up_share())
    });
    assert_eq!(measured, (expected, 317, Some(0.0)));
}
