//! `thinair-lab fetch` and `thinair-lab serve` between two kernels over the link of `thinair link run`, compared with
//! virtual time: all packets have equal sizes.
//!
//! Needs network namespaces and TUN; where they are missing, the test is skipped with a message. Times are printed but
//! not asserted.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use thinair_link::Side;
use thinair_link::preset::ZIGBEE_20K;
use thinair_simulation::network::fetch::{ConnectionEnd, Fetch, FetchService, Fetched, TcpOptions};

/// Object to fetch, and the configuration of kernels and of the simulation.
struct LinkCase {
    fetch: Fetch,
    service: &'static str,
    /// Options of `thinair-lab fetch`.
    options: &'static [&'static str],
}

/// IoT-HTTP and IoT-SPDY, with kernels whose TCP has no optional options.
fn case(service: &'static str, octets: usize) -> LinkCase {
    let which = match service {
        "coap" => FetchService::Coap,
        "http" => FetchService::Http,
        "iot-http" => FetchService::IotHttp,
        _ => FetchService::IotSpdy,
    };
    LinkCase { fetch: Fetch::new(which, octets, ZIGBEE_20K.model, 128), service, options: &[] }
}

fn cases() -> Vec<LinkCase> {
    // Options of the table of 2014: no timestamps, no SACK, a cookie.
    let published = TcpOptions { window_scaling: true, cookie: Some(8), ..TcpOptions::LEAN };
    let with =
        |case: LinkCase, options: TcpOptions| LinkCase { fetch: Fetch { options, ..case.fetch }, ..case };
    let closing = |case: LinkCase, close: ConnectionEnd, options| LinkCase {
        fetch: Fetch { close, ..case.fetch },
        options,
        ..case
    };
    let quick = |case: LinkCase| LinkCase {
        fetch: Fetch { holds: false, ..case.fetch },
        options: &["--quick-ack"],
        ..case
    };
    vec![
        case("coap", 10),
        case("coap", 1_000),
        case("http", 10),
        case("iot-http", 10),
        case("iot-http", 1_000),
        closing(case("iot-http", 10), ConnectionEnd::Reset, &["--close", "reset"]),
        quick(case("iot-http", 10)),
        quick(with(case("iot-http", 10), published)),
        with(case("iot-http", 10), TcpOptions::DEFAULT),
        case("iot-spdy", 10),
        with(case("iot-spdy", 10), published),
        closing(case("iot-spdy", 10), ConnectionEnd::Request, &["--close", "request"]),
    ]
}

/// Sizes of the packets of A and of B, in ascending order: the order of concurrent packets varies.
type PacketSizes = [Vec<usize>; 2];

fn simulated(fetched: &Fetched) -> PacketSizes {
    Side::ALL.map(|side| {
        let packets = fetched.packets.iter().filter(|packet| packet.from == side);
        let mut sizes: Vec<_> = packets.map(|packet| packet.packet.len()).collect();
        sizes.sort_unstable();
        sizes
    })
}

/// Path of the command, unless something is missing.
fn thinair() -> Option<String> {
    let command = thinair_tests::command();
    let tried = Command::new(&command).args(["link", "run", "--create", "--", "true"]).output().unwrap();
    if tried.status.success() {
        return Some(command);
    }
    let why = String::from_utf8_lossy(&tried.stderr);
    assert!(["this needs root", "CONFIG_TUN", "not found"].iter().any(|known| why.contains(known)), "{why}");
    println!("skipped: {}", why.trim());
    None
}

fn folder() -> PathBuf {
    let target = thinair_tests::text(&thinair_tests::metadata(), "target_directory");
    let folder = Path::new(&target).join("services-over-link");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("served")).unwrap();
    for octets in [10, 1_000] {
        fs::write(folder.join("served").join(octets.to_string()), vec![b'x'; octets]).unwrap();
    }
    folder
}

/// Octets that the link has carried, and the output of `thinair-lab fetch`. With cookies, one is obtained before.
fn measured(thinair: &str, folder: &Path, case: &LinkCase) -> (PacketSizes, Value) {
    let TcpOptions { timestamps, sack, window_scaling, cookie } = case.fetch.options;
    let set = [("timestamps", timestamps), ("sack", sack), ("window_scaling", window_scaling)];
    let mut sysctls: String = set.map(|(name, on)| format!("net.ipv4.tcp_{name}={} ", u8::from(on))).concat();
    sysctls += if cookie.is_some() { "net.ipv4.tcp_fastopen=3" } else { "net.ipv4.tcp_fastopen=0x207" };
    let (service, octets, options) = (case.service, case.fetch.octets, case.options.join(" "));
    let scheme = if service == "coap" { "coap" } else { "http" };
    let fetch =
        format!("$THINAIR_LAB fetch --service {service} {scheme}://10.9.0.2:8080/{octets} --json {options}");
    let before = if cookie.is_some() { format!("{fetch} >cookie.json; sleep 1;") } else { String::new() };
    let script = format!(
        "set -e
        for setting in {sysctls}; do sysctl -qw $setting; ip netns exec $THINAIR_B sysctl -qw $setting; done
        ip netns exec $THINAIR_B $THINAIR_LAB serve --service {service} --bind 10.9.0.2:8080 --trust-addresses served 2>serving & serves=$!
        trap 'kill -INT $serves; wait $serves' EXIT
        until grep -q serving serving; do sleep 0.05; done
        {before}
        {fetch} >fetched.json
        sleep 0.5"
    );
    let link =
        ["link", "run", "--create", "--rate", "20k", "--delay", "20ms", "--mtu", "128", "--log", "log.csv"];
    let output = Command::new("timeout")
        .args(["60", thinair])
        .args(link)
        .args(["--", "bash", "-c", &script])
        .env("THINAIR", thinair)
        .env("THINAIR_LAB", thinair_tests::laboratory())
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{service}: {}", String::from_utf8_lossy(&output.stderr));
    let report = serde_json::from_slice(&fs::read(folder.join("fetched.json")).unwrap()).unwrap();
    (sizes(&fs::read_to_string(folder.join("log.csv")).unwrap()), report)
}

/// Packets after the last pause of half a second, or all of them.
fn sizes(log: &str) -> PacketSizes {
    let mut lines = log.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| names.iter().position(|other| *other == name).unwrap();
    let (from, at, until, octets) = (column("from"), column("in_ns"), column("out_ns"), column("ip_octets"));
    let mut sizes = PacketSizes::default();
    let mut last: Option<u64> = None;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let (at, until): (u64, u64) = (fields[at].parse().unwrap(), fields[until].parse().unwrap());
        if last.is_some_and(|last| at > last + 500_000_000) {
            sizes = PacketSizes::default();
        }
        last = last.max(Some(until));
        sizes[usize::from(fields[from] == "B")].push(fields[octets].parse().unwrap());
    }
    sizes.iter_mut().for_each(|sizes| sizes.sort_unstable());
    sizes
}

#[test]
fn kernels_send_what_was_calculated() {
    let Some(thinair) = thinair() else { return };
    let folder = folder();
    for case in cases() {
        let fetched = case.fetch.run(1);
        let expected = simulated(&fetched);
        let mut report = Value::Null;
        let sizes = thinair_tests::measured_until(&expected, || {
            let (sizes, of_fetch) = measured(&thinair, &folder, &case);
            report = of_fetch;
            sizes
        });
        let count: usize = expected.iter().map(Vec::len).sum();
        println!(
            "{} {} {:?} {:?}: {count} packets, {} octets, {:.1} ms in virtual time and {:.1} ms in real time",
            case.service,
            case.fetch.octets,
            case.options,
            case.fetch.options,
            fetched.total(),
            fetched.took.unwrap().as_secs_f64() * 1e3,
            report["seconds"].as_f64().unwrap() * 1e3,
        );
        assert_eq!(sizes, expected, "{} {:?}", case.service, case.options);
    }
}
