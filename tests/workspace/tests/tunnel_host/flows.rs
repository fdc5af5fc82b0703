//! Many concurrent flows through a tunnel with its defaults.

use std::net::UdpSocket;
use std::time::Duration;

use thinair_os::Namespace;

use thinair_tests::site::{INTERNET, Sites, run, thinair};
use thinair_tests::world::in_a_world;

/// Number of flows, and packets of each.
const FLOWS: u16 = 1_000;
const PACKETS: u8 = 20;

#[test]
fn a_thousand_flows_are_compressed() {
    in_a_world("flows::a_thousand_flows_are_compressed", || {
        for cid in ["auto", "small"] {
            let sites = Sites::new(0);
            let gateway = sites.start_gateway_with(0, &format!("--cid {cid}"));
            let field = sites.start_field(0, &format!("--cid {cid} --route 0.0.0.0/0"));
            assert!(sites.reaches(INTERNET[0]), "{}", field.log());
            let memory = || {
                let status = std::fs::read_to_string(format!("/proc/{}/status", field.pid)).unwrap();
                let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
                line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
            };
            let before = memory();
            let send = || {
                let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
                for number in 0..PACKETS {
                    for flow in 0..FLOWS {
                        // Beyond the gateway, to an address without a host.
                        socket.send_to(&[number; 60], ("203.0.113.10", 20_000 + flow)).unwrap();
                        if flow % 20 == 0 {
                            std::thread::sleep(Duration::from_millis(4));
                        }
                    }
                }
            };
            Namespace::open(&sites.field).unwrap().within(send).unwrap();
            let ask = |netns: &str, name: &str| -> serde_json::Value {
                let line = format!("ip netns exec {netns} {} tunnel status --name {name} --json", thinair());
                serde_json::from_slice(&run(&line).stdout).unwrap()
            };
            let here = ask(&sites.field, "air0");
            let sent = &here["totals"]["sent"];
            let count = |name: &str| sent[name].as_u64().unwrap();
            let (inside, compressed) = (count("octets"), count("compressed_octets"));
            let share = compressed as f64 / inside as f64;
            println!(
                "cid {cid}: memory {before} -> {} KiB, {} packets, {inside} octets inside, {compressed} compressed ({:.1} %), {} on the carrier; {}",
                memory(),
                count("packets"),
                share * 100.0,
                count("carrier_octets"),
                here["peers"][0]["cids"]
            );
            let there = ask(&sites.gateway, "gate0");
            let arrived = there["totals"]["received"]["packets"].as_u64().unwrap();
            let sent = count("packets");
            assert!(arrived + 5 >= sent, "{arrived} of {sent} arrive: {}", there["drops"]);
            match cid {
                "auto" => assert!(share < 0.85 && here["peers"][0]["cids"]["sent"] == "large", "{share}"),
                _ => assert!(share > 0.95, "{share}: 16 contexts are too few"),
            }
            drop(gateway);
        }
    });
}
