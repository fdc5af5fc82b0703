//! `thinair analyze`, run as a user runs it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use thinair_capture::{LinkType, Timestamp, Writer};

const ONE: &str = "../../captures/coap_udp4_observe.pcap";
const SIX: &str = "../../captures/coap_udp6_get_con.pcap";

fn thinair(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_thinair")).arg("analyze").args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = thinair(&[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns the captures of a folder, sorted.
fn captures(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut captures: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "pcap" || end == "pcapng")).collect();
    captures.sort();
    captures
}

/// Checks any captures: no abort, every packet accounted for and verified.
fn assert_sound(paths: &[PathBuf]) -> Value {
    let arguments: Vec<_> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    let found = json(&arguments);
    assert_eq!(found["schema"], "thinair.analyze/1");
    let inputs = found["inputs"].as_array().unwrap();
    assert_eq!(inputs.len(), paths.len());
    for input in inputs {
        let skipped: u64 = input["skipped"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(input["ip_packets"].as_u64().unwrap() + skipped, input["packets"], "{input}");
        assert_eq!(input["ended_by"], Value::Null);
    }
    let totals = &found["totals"];
    assert_eq!(sum(&found["inputs"], "ip_packets"), totals["packets"]);
    for key in ["packets", "bytes_in", "header_bytes_in"] {
        assert_eq!(sum(&found["flows"], key), totals[key], "{key}");
    }
    let schemes = totals["schemes"].as_array().unwrap();
    let ids: Vec<_> = schemes.iter().map(id).collect();
    assert!(ALL.iter().all(|known| ids.iter().any(|id| id == known)), "{ids:?}");
    for scheme in schemes {
        assert_eq!((&scheme["roundtrip_mismatches"], &scheme["lost"]), (&0.into(), &0.into()), "{scheme}");
        let types = total(&scheme["packet_types"]) + scheme["not_applicable"].as_u64().unwrap();
        assert_eq!(types, totals["packets"]);
        assert_eq!(total(&scheme["layers_out"]), scheme["bytes_out"]);
        let (mut firsts, mut first_headers) = (0, 0);
        for flow in found["flows"].as_array().unwrap() {
            let of_flow =
                flow["schemes"].as_array().unwrap().iter().find(|one| id(one) == id(scheme)).unwrap();
            firsts += of_flow["first_packet_bytes"].as_u64().unwrap();
            first_headers += of_flow["first_header_bytes_out"].as_u64().unwrap();
            assert!(of_flow["first_packet_bytes"].as_u64() <= of_flow["bytes_out"].as_u64());
        }
        assert_eq!(
            (&scheme["first_packet_bytes"], &scheme["first_header_bytes_out"]),
            (&firsts.into(), &first_headers.into())
        );
        assert!(first_headers <= firsts);
        assert_rest_is_untouched(&found, scheme);
    }
    found
}

/// Octets that are not headers stay unchanged, in schemes and flows in which only IP and transport are
/// compressed.
fn assert_rest_is_untouched(found: &Value, scheme: &Value) {
    if scheme["scheme"] != "rohc-v1" && scheme["scheme"] != "6lowpan" {
        return;
    }
    let rest = |bytes: &Value, headers: &Value| bytes.as_u64().unwrap() - headers.as_u64().unwrap();
    for flow in found["flows"].as_array().unwrap() {
        let of_flow = flow["schemes"].as_array().unwrap().iter().find(|one| id(one) == id(scheme)).unwrap();
        let profiles = of_flow["profiles"].as_object().unwrap();
        if ["rtp", "rtp-udp-lite"].iter().all(|profile| !profiles.contains_key(*profile)) {
            assert_eq!(
                rest(&of_flow["bytes_out"], &of_flow["header_bytes_out"]),
                rest(&flow["bytes_in"], &flow["header_bytes_in"])
            );
        }
    }
}

/// All schemes for CoAP over IPv6, in order.
const ALL: [&str; 8] =
    ["rohc-v1/u", "rohc-v1/o", "coap/u", "coap/o", "coap-learned/u", "coap-learned/o", "schc", "6lowpan"];

/// Name of a scheme in `break_even`.
fn id(scheme: &Value) -> String {
    let mut id = scheme["scheme"].as_str().unwrap().to_owned();
    if let Some(mode) = scheme["mode"].as_str() {
        id += &format!("/{mode}");
    }
    if let Some(cid) = scheme["contexts"]["cid"].as_str() {
        id += &format!("/{cid}-{}", scheme["contexts"]["max_cid"]);
    }
    id
}

fn ids(found: &Value) -> Vec<String> {
    found["totals"]["schemes"].as_array().unwrap().iter().map(id).collect()
}

/// Returns the sum of an object's values.
fn total(object: &Value) -> u64 {
    object.as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum()
}

fn sum(list: &Value, key: &str) -> u64 {
    list.as_array().unwrap().iter().map(|one| one[key].as_u64().unwrap()).sum()
}

#[test]
fn every_packet_of_our_captures_comes_back() {
    let found = assert_sound(&captures(Path::new("../../captures")));
    assert_eq!(sum(&found["inputs"], "packets"), 17_441);
}

#[test]
fn every_packet_of_the_shared_captures_comes_back() {
    let Some(shared) = std::env::var_os("THINAIR_VECTORS") else {
        println!("skipped: THINAIR_VECTORS is not set (20 captures, 24,401 records)");
        return;
    };
    let folder = Path::new(&shared).join("captures");
    let paths = [captures(&folder.join("own")), captures(&folder.join("open"))].concat();
    assert_eq!(paths.len(), 20);
    let found = assert_sound(&paths);
    assert_eq!(sum(&found["inputs"], "packets"), 24_401);
}

#[test]
fn a_damaged_octet_is_noticed() {
    let output = thinair(&[ONE, "--break", "--all"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("1 packet did NOT come back bit for bit"));
    assert!(stderr(&output).contains("first differs at octet 47"), "{}", stderr(&output));
    let every = stdout(&thinair(&[SIX, "--break", "--all"]));
    assert_eq!(every.matches("1 packet did NOT come back bit for bit").count(), ALL.len());
}

#[test]
fn r_mode_is_compared_where_it_is_asked_for() {
    let found = json(&[SIX, "--mode", "r"]);
    assert_eq!(ids(&found), ["rohc-v1/r", "coap/r", "coap-learned/r", "schc", "6lowpan"]);
    for scheme in found["totals"]["schemes"].as_array().unwrap() {
        assert_eq!(scheme["roundtrip_mismatches"], 0);
    }
}

#[test]
fn less_than_asked_for_is_status_3() {
    assert_eq!(thinair(&[ONE, "--fail-under", "50"]).status.code(), Some(0));
    let output = thinair(&[ONE, "--fail-under", "99"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("less than the 99 % asked for"));
}

#[test]
fn wrong_arguments_are_status_2_and_say_why() {
    for (arguments, why) in [
        (&[ONE, "--mode", "x"][..], "expected u, o or r"),
        (&[ONE, "--schemes", "schc,lzw"], "invalid value 'lzw'"),
        (&[ONE, "--schemes", "schc", "--profiles", "v1"], "cannot be used with '--profiles"),
        (&[ONE, "--coap-checksum", "maybe"], "invalid value 'maybe'"),
        (&[ONE, "--coap-format", "pt_2"], "invalid value 'pt_2'"),
        (&[ONE, "--coap-ports", "5683,x"], "expected UDP ports"),
        (&[ONE, "--coap-ports", "0"], "expected UDP ports"),
        (&[ONE, "--coap-ports", "1,2,3,4,5,6,7,8,9"], "the maximum is 8"),
        (&[ONE, "--profiles", "udp,bogus"], "unknown profile `bogus`"),
        (&[ONE, "--profiles", "v1,bogus"], "unknown profile `bogus`"),
        (&[ONE, "--rtp-ports", "5004,x"], "expected UDP ports"),
        (&[ONE, "--rtp-ports", "1,2,3,4,5,6,7,8,9"], "the maximum is 8"),
        (&[ONE, "--rtp", "ports"], "such as --rtp-ports 5004"),
        (&[ONE, "--rtp", "never", "--rtp-ports", "5004"], "omit --rtp-ports, or give --rtp ports"),
        (&[ONE, "--rtp-ports", "5004", "--profiles", "udp,ip"], "add one, as in --profiles"),
        (&[ONE, "--max-cid", "16"], "MAX_CID 16 exceeds 15"),
        (&[ONE, "--refresh", "often"], "expected `budget=PERCENT%"),
        (&[ONE, "--loss", "101"], "from 0 to 100"),
        (&[ONE, "--price", "x"], "not negative"),
        (&[ONE, "--billing-unit", "0"], "--billing-unit"),
        (&[ONE, "--partitions", "0"], "not in 1..=1024"),
        (&[ONE, "--jobs", "0"], "not in 1..=256"),
        (&[ONE, "--for", "5s"], "cannot be used with '--for"),
        (&[ONE, "--write", "kept.pcap"], "cannot be used with '--write"),
        (&["-", "-"], "only once"),
        (&[], "<FILE>"),
    ] {
        let output = thinair(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn files_that_cannot_be_read_are_status_1_and_named() {
    for (path, why) in
        [("absent.pcap", "cannot open absent.pcap"), ("Cargo.toml", "Cargo.toml: not a capture")]
    {
        let output = thinair(&[ONE, path]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}

#[test]
fn the_same_run_gives_the_same_octets() {
    for arguments in [&[ONE][..], &[ONE, "--json"], &[ONE, "--loss", "10", "--json"], &[ONE, "--csv"]] {
        assert_eq!(thinair(arguments).stdout, thinair(arguments).stdout, "{arguments:?}");
    }
}

#[test]
fn standard_input_is_a_capture() {
    let piped = Command::new(env!("CARGO_BIN_EXE_thinair"))
        .args(["analyze", "-", "--schemes", "coap,schc", "--json"])
        .stdin(Stdio::from(fs::File::open(ONE).unwrap()))
        .output()
        .unwrap();
    let piped: Value = serde_json::from_slice(&piped.stdout).unwrap();
    let named = json(&[ONE, "--schemes", "coap,schc"]);
    assert_eq!(piped["inputs"][0]["path"], "-");
    assert_eq!((&piped["totals"], &piped["flows"]), (&named["totals"], &named["flows"]));
}

/// Returns a capture in which 40 hosts each send datagrams to one host, which responds.
fn many_hosts() -> Vec<u8> {
    let mut file = Writer::new(Vec::new(), LinkType::RAW).unwrap();
    for number in 0..1_600_u32 {
        let (host, port) = ((number / 2 % 40) as u8 + 2, 50_000 + (number / 400) as u16);
        let (ends, ports) = if number % 2 == 0 { ([host, 1], [port, 9]) } else { ([1, host], [9, port]) };
        let mut packet = [0; 56];
        (packet[0], packet[5], packet[6], packet[7]) = (0x60, 16, 17, 64);
        (packet[8], packet[23], packet[24], packet[39]) = (0xFD, ends[0], 0xFD, ends[1]);
        packet[40..42].copy_from_slice(&ports[0].to_be_bytes());
        packet[42..44].copy_from_slice(&ports[1].to_be_bytes());
        packet[45] = 16;
        packet[52..].copy_from_slice(&number.to_be_bytes());
        file.write(Timestamp::from_nanos(u64::from(number) * 50_000_000), &packet).unwrap();
    }
    file.into_inner()
}

#[test]
fn the_number_of_threads_changes_no_octet_and_that_of_partitions_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts.pcap");
    fs::write(&path, many_hosts()).unwrap();
    let path = path.to_str().unwrap();
    for format in ["--json", "--csv"] {
        let common = ["analyze", path, SIX, "--partitions", "7", "--loss", "3", "--most-flows", "50", format];
        let output = |jobs| {
            let output = thinair(&[&common[1..], &["--jobs", jobs]].concat());
            assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
            stdout(&output)
        };
        let one = output("1");
        for jobs in ["2", "3", "9"] {
            assert!(output(jobs) == one, "{format}, {jobs} jobs");
        }
    }
    let octets = |partitions| {
        let found = json(&[path, "--mode", "o", "--schemes", "rohc-v1", "--partitions", partitions]);
        assert_eq!(found["partitions"].to_string(), partitions);
        found["totals"]["schemes"][0]["bytes_out"].as_u64().unwrap()
    };
    assert!(octets("16") < octets("1"), "more contexts, fewer octets");
}

#[test]
fn threads_share_the_schemes_of_a_single_channel() {
    let output = thinair(&[ONE, "--jobs", "2", "--json"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!(stdout(&output), stdout(&thinair(&[ONE, "--jobs", "1", "--json"])));
    assert_eq!(stdout(&output), stdout(&thinair(&[ONE, "--json"])));
}

#[test]
fn threads_share_a_pipe_too() {
    let run = |file: &str, stdin: Stdio| {
        let arguments = ["analyze", file, "--json", "--partitions", "4", "--jobs", "2"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_thinair"));
        let output = command.args(arguments).stdin(stdin).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        // Bases are learned from files only.
        assert!(!ids(&found).iter().any(|id| id.starts_with("coap-learned")));
        (found["totals"].clone(), found["flows"].clone())
    };
    let mut cat = Command::new("cat").arg(ONE).stdout(Stdio::piped()).spawn().unwrap();
    let standard = run("-", cat.stdout.take().unwrap().into());
    cat.wait().unwrap();
    if cfg!(target_os = "linux") {
        let mut cat = Command::new("cat").arg(ONE).stdout(Stdio::piped()).spawn().unwrap();
        assert_eq!(run("/dev/stdin", cat.stdout.take().unwrap().into()), standard);
        cat.wait().unwrap();
    }
}

#[test]
fn a_reader_that_stops_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_thinair"))
        .args(["analyze", ONE, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn lost_packets_are_counted_and_do_not_corrupt_others() {
    let found = json(&[ONE, "--loss", "10", "--seed", "3"]);
    for scheme in found["totals"]["schemes"].as_array().unwrap() {
        let lost = scheme["lost"].as_u64().unwrap();
        assert!((20..80).contains(&lost), "{lost}");
        assert_eq!(scheme["roundtrip_mismatches"], 0);
    }
    let all = json(&[ONE, "--loss", "100"]);
    assert_eq!(all["totals"]["schemes"][0]["lost"], all["totals"]["packets"]);
}

#[test]
fn two_captures_are_two_links() {
    let (one, two) = (json(&[ONE]), json(&[ONE, ONE]));
    assert_eq!(two["flows"].as_array().unwrap().len(), 2 * one["flows"].as_array().unwrap().len());
    for (at, scheme) in one["totals"]["schemes"].as_array().unwrap().iter().enumerate() {
        let twice = &two["totals"]["schemes"][at]["bytes_out"];
        assert_eq!(twice.as_u64().unwrap(), 2 * scheme["bytes_out"].as_u64().unwrap());
    }
}

#[test]
fn what_cannot_be_compressed_is_carried_and_counted() {
    let found = json(&[ONE, "--profiles", "uncompressed", "--mode", "u"]);
    let scheme = &found["totals"]["schemes"][0];
    assert_eq!(found["flows"][0]["profile"], "uncompressed");
    assert_eq!(found["totals"]["schemes"].as_array().unwrap().len(), 1);
    assert!(scheme["bytes_out"].as_u64() >= found["totals"]["bytes_in"].as_u64());
    assert!(scheme["saved_ratio"].as_f64().unwrap() <= 0.0);
}

#[test]
fn schemes_are_chosen_by_name_each_once_and_in_order() {
    let chosen = |list| ids(&json(&[SIX, "--schemes", list]));
    assert_eq!(ids(&json(&[SIX])), ALL);
    assert_eq!(chosen("6lowpan,coap"), ["6lowpan", "coap/u", "coap/o"]);
    assert_eq!(chosen("schc,schc"), ["schc"]);
    let in_o_mode = ["rohc-v1/o", "coap/o", "coap-learned/o", "schc", "6lowpan"];
    assert_eq!(ids(&json(&[SIX, "--mode", "o"])), in_o_mode);
    for profiles in ["udp,coap", "v1,coap", "rtp-udp-lite,udp-lite,esp"] {
        assert_eq!(ids(&json(&[SIX, "--profiles", profiles])), ["rohc-v1/u", "rohc-v1/o"]);
    }
}

#[test]
fn the_best_mode_of_each_scheme_is_shown_and_all_of_them_are_where_that_is_asked_for() {
    let rows = |arguments: &[&str]| {
        let text = stdout(&thinair(arguments));
        let (_, table) = text.split_once("before").unwrap();
        let labels = table.lines().skip(1).take_while(|line| !line.is_empty());
        labels.map(|line| line.split("  ").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(rows(&[SIX]), ["rohc-v1 O", "coap O", "coap-learned O", "schc", "6lowpan"]);
    assert_eq!(rows(&[SIX, "--all"]).len(), ALL.len());
}

#[test]
fn tcp_and_more_contexts_are_compared_where_they_can_make_a_difference() {
    assert_eq!(
        ids(&json(&["../../captures/mqtt311_tcp4_qos1.pcap"])),
        ["rohc-v1/u", "rohc-v1/o", "tcp/u", "tcp/o", "schc"]
    );
    let crowd = &crowd(40);
    let found = ids(&json(&[crowd]));
    assert!(found.contains(&"coap/u/large-127".to_owned()), "{found:?}");
    assert!(!ids(&json(&[crowd, "--max-cid", "7"])).iter().any(|id| id.contains("large")));
}

#[test]
fn a_scheme_that_cannot_carry_ipv4_is_shown_only_where_it_is_asked_for() {
    assert_eq!(ids(&json(&[ONE])), ALL[..7]);
    let asked = json(&[ONE, "--schemes", "6lowpan"]);
    let scheme = &asked["totals"]["schemes"][0];
    assert_eq!(scheme["not_applicable"], asked["totals"]["packets"]);
    assert_eq!(scheme["bytes_out"], asked["totals"]["bytes_in"]);
    let both = json(&[ONE, SIX]);
    assert_eq!(ids(&both), ALL);
    assert_eq!(both["totals"]["schemes"][7]["not_applicable"], both["inputs"][0]["ip_packets"]);
    assert!(stdout(&thinair(&[ONE, SIX, "--all"])).contains("403 packets not IPv6 went as they were"));
}

#[test]
fn checksums_that_are_left_out_save_two_octets_a_packet() {
    let octets = |how| {
        let found = json(&[SIX, "--schemes", "schc,6lowpan", "--coap-checksum", how]);
        [0, 1].map(|at| found["totals"]["schemes"][at]["bytes_out"].as_u64().unwrap())
    };
    let (carried, elided) = (octets("carry"), octets("elide"));
    assert_eq!([carried[0] - elided[0], carried[1] - elided[1]], [2 * 600, 2 * 600]);
    let told = |how| {
        stdout(&thinair(&[SIX, "--coap-checksum", how])).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(told("carry").contains("UDP checksums are sent:"));
    assert!(told("elide").contains("leave out correct UDP checksums"));
}

#[test]
fn coap_is_where_ports_say_so() {
    let application = |arguments: &[&str]| {
        let found = json(&[&[SIX, "--schemes", "rohc-v1"], arguments].concat());
        found["totals"]["layers_in"]["application"].as_u64().unwrap()
    };
    assert!(application(&[]) > 0);
    assert_eq!(application(&["--coap-ports", "61616,61617"]), 0);
    assert_eq!(application(&["--coap-ports", "61616,5683"]), application(&[]));
}

/// SCHC is small from the start, ROHC only after its IR packets: it overtakes 6LoWPAN, which lies in between.
#[test]
fn a_flow_tells_when_a_scheme_has_made_up_for_its_start() {
    let found = json(&[SIX, "--schemes", "rohc-v1,schc,6lowpan", "--mode", "u"]);
    for flow in found["flows"].as_array().unwrap() {
        let first = |at: usize| flow["schemes"][at]["first_packet_bytes"].as_u64().unwrap();
        assert!(first(1) < first(2) && first(2) < first(0), "{flow}");
        let after = |cheaper: &str, than: &str| {
            let told = flow["break_even"].as_array().unwrap();
            let told = told.iter().find(|one| one["cheaper"] == cheaper && one["than"] == than);
            told.map(|one| one["after_packets"].as_u64().unwrap())
        };
        assert_eq!(flow["break_even"].as_array().unwrap().len(), 3);
        assert_eq!(after("schc", "6lowpan"), Some(1));
        assert_eq!(after("schc", "rohc-v1/u"), Some(1));
        let overtaken = after("rohc-v1/u", "6lowpan").unwrap();
        assert!((5..50).contains(&overtaken), "{overtaken}");
    }
    assert!(stdout(&thinair(&[SIX, "--all"])).contains("Start-up and break-even"));
}

#[test]
fn what_schc_and_6lowpan_were_told_beforehand_is_told() {
    let input = json(&[SIX])["inputs"][0].take();
    assert_eq!(input["lowpan_contexts"], serde_json::json!(["fd00:ec0::/64"]));
    let rules = &input["schc_rules"];
    let octets: u64 = rules["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["provisioning_bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(rules["provisioning_bytes"], octets);
    assert_eq!(rules["rules"][0]["direction"], "Up");
    assert_eq!(rules["rules"][0]["fields"][0]["field"], "IPv6.version");
    assert_eq!(json(&[SIX, "--schemes", "coap"])["inputs"][0]["schc_rules"], Value::Null);
}

#[test]
fn a_link_has_units_and_an_mtu() {
    let arguments = ["--mode", "u", "--billing-unit", "10", "--price", "0.5", "--link-mtu", "30"];
    let totals = json(&[&[ONE][..], &arguments].concat())["totals"].take();
    // Whole units: at least the price of the octets alone.
    assert!(totals["cost_in"].as_f64().unwrap() >= totals["bytes_in"].as_f64().unwrap() / 10.0 * 0.5);
    assert!(totals["schemes"][0]["cost_out"].as_f64() < totals["cost_in"].as_f64());
    assert_eq!(totals["over_mtu_in"], totals["packets"]);
    assert!(totals["schemes"][0]["over_mtu_out"].as_u64() < totals["over_mtu_in"].as_u64());
}

#[test]
fn a_capture_that_was_interrupted_is_told() {
    let whole = fs::read(ONE).unwrap();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interrupted.pcap");
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let output = thinair(&[path.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["inputs"][0]["packets"], 402);
    assert!(found["inputs"][0]["ended_by"].as_str().unwrap().contains("truncated file"));
    assert!(stderr(&output).contains("truncated file"));
}

#[test]
fn the_page_needs_no_network_and_the_csv_has_every_flow() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.html");
    let output = thinair(&[ONE, "--csv", "--html", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let csv = stdout(&output);
    assert!(csv.starts_with("path,src,dst,protocol,profile,packets,bytes_in,header_bytes_in,bytes_out_u,"));
    assert_eq!(csv.lines().count(), 1 + 2);
    let page = fs::read_to_string(path).unwrap();
    for part in ["Header size over time", "Start-up and break-even", "Rules of SCHC", "10.99.0.1:5683"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("src=\"http") && !page.contains("<link"));
}

#[test]
fn output_to_a_file_has_no_colour() {
    let text = stdout(&thinair(&[ONE]));
    assert!(!text.contains('\u{1b}'));
    assert!(text.contains("rohc-v1 O"), "{text}");
    let all = stdout(&thinair(&[ONE, "--all"]));
    assert!(all.contains("ROHC v1 in U-mode: 15,133 -> "));
    assert!(all.contains("every packet came back bit for bit."));
}

/// Writes a capture of these frames, a second apart, and returns its path.
fn made(name: &str, link_type: LinkType, frames: &[Vec<u8>]) -> String {
    let mut file = Writer::new(Vec::new(), link_type).unwrap();
    for (frame, second) in frames.iter().zip(1..) {
        file.write(Timestamp::from_nanos(second * 1_000_000_000), frame).unwrap();
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, file.into_inner()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Eight GET requests by each of several hosts, in turn.
fn crowd(hosts: u8) -> String {
    let request = |number: u8, host: u8| {
        let mut packet = *b"\x45\0\0\x25\0\0\x40\0\x40\x11\0\0\xc0\0\x02\x01\xc0\0\x02\xff\x16\x33\x16\x33\0\x11\0\0\x40\x01\0\0\xb4time";
        (packet[15], packet[31]) = (host, number);
        let sum: u32 = packet[..20].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
        packet[10..12].copy_from_slice(&(!(sum + (sum >> 16)) as u16).to_be_bytes());
        packet.to_vec()
    };
    let requests = (0..8).flat_map(|number| (1..=hosts).map(move |host| request(number, host)));
    made("crowd.pcap", LinkType::RAW, &requests.collect::<Vec<_>>())
}

#[test]
fn what_costs_more_in_billing_units_is_not_recommended() {
    // 38 octets are one unit of 40, as little as any packet costs; feedback costs a unit of its own.
    let packet = *b"\x45\0\0\x26\0\0\x40\0\x40\x11\xb6\xc3\xc0\0\x02\x01\xc0\0\x02\x02\x13\x8c\x13\x8c\0\x12\0\0thin air.\0";
    let capture = made("unit.pcap", LinkType::RAW, &vec![packet.to_vec(); 40]);
    let without = json(&[&capture]);
    assert!(without["recommendation"]["bytes_out"].as_u64() < without["totals"]["bytes_in"].as_u64());
    let arguments = [&*capture, "--billing-unit", "40", "--price", "3"];
    assert_eq!(json(&arguments)["recommendation"], Value::Null);
    let text = stdout(&thinair(&arguments));
    let headline = "leave headers as they are: no scheme of ROHC costs less in billing units of 40 octets";
    assert!(text.contains(headline), "{text}");
    assert!(!text.contains("less to pay"), "{text}");

    // Feedback takes a unit for each packet: O-mode sends fewer octets, and U-mode costs less.
    let arguments = ["../../captures/mqtt311_tcp4_qos1.pcap", "--billing-unit", "40"];
    let found = json(&arguments);
    assert_eq!(
        (&found["recommendation"]["scheme"], &found["recommendation"]["mode"]),
        (&"tcp".into(), &"u".into())
    );
    let schemes = found["totals"]["schemes"].as_array().unwrap();
    let cost = |mode| schemes.iter().find(|one| id(one) == mode).unwrap()["cost_out"].as_f64().unwrap();
    assert!(cost("tcp/u") < cost("tcp/o"));
    assert!(stdout(&thinair(&arguments)).contains("tcp U"));
}

/// Returns ten readings of 8 octets over UDP and IPv4, a second apart.
fn readings(name: &str) -> String {
    let packet = *b"\x45\0\0\x24\0\0\x40\0\x40\x11\xb6\xc5\xc0\0\x02\x01\xc0\0\x02\x02\x13\x8c\x13\x8c\0\x10\0\0thin air";
    made(name, LinkType::RAW, &vec![packet.to_vec(); 10])
}

/// Returns the path of a price list with that text.
fn tariff(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const FLOOR: &str = "../../docs/tariffs/skylo-monogoto.toml";

/// The arithmetic of that price list: ten packets of 36 octets cost 50 each, and one packet 28 + 80.
#[test]
fn under_a_floor_packing_saves_and_compression_does_not() {
    let arguments = [&*readings("readings.pcap"), "--tariff", FLOOR];
    let found = json(&arguments);
    let totals = &found["totals"];
    assert_eq!((totals["cost_in"].as_f64(), &found["recommendation"]), (Some(500.0), &Value::Null));
    let packing = |seconds: u64| {
        let all = totals["packing"].as_array().unwrap();
        all.iter().find(|one| one["within_seconds"] == seconds).unwrap()["cost"].as_f64()
    };
    // Two readings of 8 octets in a packet of 44, for 50.
    assert_eq!((packing(1), packing(10), packing(300)), (Some(250.0), Some(108.0), Some(108.0)));
    let text = stdout(&thinair(&arguments));
    let headline = "leave headers as they are: compression saves nothing under this tariff; packing within 10 s saves 78.4 %";
    assert!(text.contains(headline), "{text}");
    // Packets of 61 and 67 octets: compression saves down to the floor, and packing more.
    let text = stdout(&thinair(&[SIX, "--tariff", FLOOR]));
    let headline = "Recommendation: packing within 1 s saves 73.9 % of the price, compression alone 21.9 %: ROHC in U-mode";
    assert!(text.contains(headline) && text.contains("cost (octet)") && text.contains(" 38,400 "), "{text}");
}

#[test]
fn a_price_list_counts_directions_steps_and_an_allowance() {
    let (readings, text) = (readings("readings9.pcap"), fs::read_to_string(FLOOR).unwrap());
    let cost = |capture: &str, changes: &[(&str, &str)]| {
        let changed = changes.iter().fold(text.clone(), |text, (from, to)| text.replace(from, to));
        let found = json(&[capture, "--tariff", &tariff("changed.toml", &changed)]);
        (found["totals"]["cost_in"].as_f64().unwrap(), found["recommendation"]["month"]["cost_in"].as_f64())
    };
    let (up, down) = (cost(SIX, &[("both", "up")]), cost(SIX, &[("both", "down")]));
    let both = cost(SIX, &[]);
    assert!(up.0 > 0.0 && down.0 > 0.0);
    assert_eq!(up.0 + down.0, both.0);
    assert_eq!(cost(SIX, &[("floor = 50", "floor = 1000")]).0 % 1_000.0, 0.0);
    assert!(cost(SIX, &[("step = 1 ", "step = 100 ")]).0 > both.0);
    let without_floor = ("floor = 50", "floor = 0");
    let paid = cost(&readings, &[without_floor]);
    let month = paid.1.unwrap();
    let half = format!("allowance = {}", (month / 2.0) as u64);
    let free = cost(&readings, &[without_floor, ("allowance = 0", &half)]);
    assert_eq!(free.0, paid.0);
    assert!((free.1.unwrap() - month / 2.0).abs() < 2.0, "{free:?} {month}");
}

#[test]
fn sessions_are_rounded_up_in_the_totals() {
    let (readings, text) = (readings("sessions.pcap"), fs::read_to_string(FLOOR).unwrap());
    let found = |idle: u32| {
        let session = format!("session = {{ idle = {idle}, floor = 0, step = 1000, amount = 5 }}\n");
        json(&[&readings, "--tariff", &tariff(&format!("sessions{idle}.toml"), &(text.clone() + &session))])
    };
    // Ten packets a second apart, 50 octets each: one session, and one for each packet.
    for (idle, sessions) in [(60, 1.0), (1, 10.0)] {
        let found = found(idle);
        let (totals, flow) = (&found["totals"], &found["flows"][0]);
        assert_eq!(totals["session_cost"].as_f64(), Some(5.0 * sessions));
        assert_eq!(totals["cost_in"].as_f64(), Some(1_005.0 * sessions));
        assert_eq!(totals["schemes"][0]["cost_out"].as_f64(), Some(1_005.0 * sessions));
        assert_eq!((flow["cost_in"].as_f64(), totals.get("packing")), (Some(500.0), None));
    }
    let path =
        tariff("partitions.toml", &(text + "session = { idle = 1, floor = 0, step = 1, amount = 5 }\n"));
    let output = thinair(&[&*readings, "--tariff", &path, "--partitions", "2"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_month_has_a_fee_and_tiers() {
    let (readings, text) = (readings("months.pcap"), fs::read_to_string(FLOOR).unwrap());
    let month = |more: &str| {
        let text = text.replace("floor = 50", "floor = 0") + more;
        let found = json(&[&*readings, "--tariff", &tariff("months.toml", &text)]);
        found["recommendation"]["month"]["cost_in"].as_f64().unwrap()
    };
    let plain = month("");
    let above = (plain / 4.0) as u64;
    let tiers = format!("[month]\nfee = 7\ntiers = [{{ above = {above}, amount = 0, octets = 1 }}]\n");
    assert_eq!(month(&tiers), above as f64 + 7.0);
}

#[test]
fn the_tables_of_the_manual_are_one_price_list() {
    let page = fs::read_to_string("../../docs/tariffs.md").unwrap();
    let tables: String =
        page.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    let found = json(&[SIX, "--tariff", &tariff("manual.toml", &tables)]);
    assert!(found["totals"]["session_cost"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_price_list_that_cannot_be_read_is_named_with_line_and_reason() {
    let text = fs::read_to_string(FLOOR).unwrap();
    for (from, to, reason) in [
        ("step = 1", "step = 0", "line 7: invalid step 0: not within 1 and 65535"),
        ("currency = \"octet\"\n", "", "missing field `currency`"),
        ("\"octet\"", "\"doubloon\"", "line 5: unknown currency `doubloon`"),
        ("amount = 1", "amount = 1e300", "line 6: invalid price 1e300"),
    ] {
        let path = tariff("wrong.toml", &text.replace(from, to));
        let output = thinair(&[ONE, "--tariff", &path]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
        let (error, file) = (stderr(&output), format!("{path}, line "));
        assert!(error.contains(&file) && error.contains(reason), "{error}");
    }
    let output = thinair(&[ONE, "--tariff", FLOOR, "--price", "1"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn every_price_list_of_the_manual_prices_a_capture() {
    let lists: Vec<_> =
        fs::read_dir("../../docs/tariffs").unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(lists.len() >= 5);
    for list in lists {
        let found = json(&[SIX, "--tariff", list.to_str().unwrap()]);
        let (totals, source) = (&found["totals"], &found["totals"]["tariff"]["source"]);
        assert!(totals["cost_in"].as_f64().unwrap() > 0.0 && !source.as_str().unwrap().is_empty());
    }
}

#[test]
fn the_commands_of_the_advice_take_the_options_of_coap() {
    let capture = fs::canonicalize("../../captures/coap_udp6_libcoap_observe.pcap").unwrap();
    let options = ["--coap-checksum", "elide", "--coap-ports", "5683,6000"];
    let text = stdout(&thinair(&[&[capture.to_str().unwrap()][..], &options].concat()));
    let lines: Vec<_> = text.lines().filter_map(|line| line.trim().strip_prefix("thinair ")).collect();
    let learn = lines.iter().find(|line| line.starts_with("rohc learn")).unwrap();
    assert!(learn.ends_with(" --coap-checksum elide --coap-ports 5683,6000"), "{learn}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("advice");
    fs::create_dir_all(&folder).unwrap();
    for line in lines.iter().filter(|line| line.starts_with("rohc")) {
        let typed = format!("{} {line}", env!("CARGO_BIN_EXE_thinair"));
        let output = Command::new("sh").args(["-c", &typed]).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{line}: {}", stderr(&output));
    }
}

#[test]
fn the_advice_says_that_cut_packets_cannot_be_tried() {
    let whole = made("whole.pcap", LinkType::RAW, &vec![[&HEADERS[..], &[7; 100]].concat(); 9]);
    // Records of pcap: 24 octets of the file header, then 16 octets before each, with both lengths at 8 and 12.
    let cut = |cut: usize, name: &str| {
        let octets = fs::read(&whole).unwrap();
        let mut file = octets[..24].to_vec();
        for (at, record) in octets[24..].chunks(16 + 128).enumerate() {
            let len: u32 = if at < cut { 40 } else { 128 };
            file.extend([&record[..8], &len.to_le_bytes(), &record[12..16 + len as usize]].concat());
        }
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, file).unwrap();
        stdout(&thinair(&[path.to_str().unwrap()]))
    };
    let none = cut(0, "cut-none.pcap");
    assert!(none.contains("Try it") && !none.contains("skips"), "{none}");
    let some = cut(2, "cut-some.pcap");
    assert!(some.contains("Try it") && some.contains("`thinair rohc compress` skips 2 packets"), "{some}");
    let all = cut(9, "cut-all.pcap");
    assert!(!all.contains("Try it") && all.contains("`thinair rohc compress` skips 9 packets"), "{all}");
}

/// Headers of UDP over IPv4 with 100 octets of payload.
const HEADERS: [u8; 28] =
    *b"\x45\0\0\x80\0\0\x40\0\x40\x11\xb6\x69\xc0\0\x02\x01\xc0\0\x02\x02\x13\x8c\x13\x8c\0\x6c\0\0";

#[test]
fn without_a_scheme_of_rohc_none_is_judged() {
    let text = stdout(&thinair(&[ONE, "--schemes", "schc"]));
    assert!(text.contains("Recommendation: none: no scheme of ROHC was compared"), "{text}");
    assert!(!text.contains("sends fewer octets"), "{text}");
}

#[test]
fn frames_that_are_not_unpacked_are_named() {
    let frame = |kind: u16, payload: &[u8]| [&[2; 12][..], &kind.to_be_bytes(), payload].concat();
    let damaged = [&[0x15][..], &[0; 40]].concat();
    for (name, link_type, octets, why) in [
        (
            "mpls.pcap",
            LinkType::ETHERNET,
            frame(0x8847, &[0; 40]),
            "MPLS (EtherType 0x8847), which is not unpacked",
        ),
        (
            "llc.pcap",
            LinkType::ETHERNET,
            frame(40, &[0xaa; 40]),
            "LLC (a length instead of an EtherType), which is not unpacked",
        ),
        (
            "vlan.pcap",
            LinkType::ETHERNET,
            frame(0x8100, &[0, 1, 0x88, 0xe7, 0]),
            "EtherType 0x88e7, which is not unpacked",
        ),
        ("arp.pcap", LinkType::ETHERNET, frame(0x0806, &[0; 40]), "such as ARP; capture while"),
        (
            "damaged.pcap",
            LinkType::ETHERNET,
            frame(0x0800, &damaged),
            "announced as IPv4 (EtherType 0x0800), and their IP headers are damaged",
        ),
        ("raw.pcap", LinkType::RAW, damaged.clone(), "their IP headers are damaged"),
    ] {
        let output = thinair(&[&made(name, link_type, &[frame(0x0806, &[0; 40]), octets.clone(), octets])]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(stderr(&output).contains(why), "{name}: {}", stderr(&output));
    }
}

/// Frames that scapy made: `tests/vectors/README.md`.
#[test]
fn packets_in_tunnels_of_mobile_networks_and_overlays_are_found() {
    for (name, tunnel) in [
        ("geneve_eth", "geneve"),
        ("gtpu_noext", "gtpu"),
        ("gtpu_psc", "gtpu"),
        ("l2tp", "l2tp"),
        ("vxlan8472", "vxlan"),
    ] {
        let found = json(&[&format!("../../tests/vectors/encapsulations/{name}.pcap")]);
        let (input, totals) = (&found["inputs"][0], &found["totals"]);
        assert_eq!(input["unwrapped"], serde_json::json!({ tunnel: 60 }), "{name}");
        assert_eq!(
            (&totals["packets"], &totals["bytes_in"], &totals["flows"]),
            (&60.into(), &2580.into(), &1.into()),
            "{name}"
        );
        assert_eq!(found["flows"][0]["dst"], "10.2.0.2:5683", "{name}");
    }
}

#[test]
fn tunnels_that_are_not_opened_are_noted() {
    // L2TP version 3 over IP: the length of its header is known to both ends only.
    let packet = *b"\x45\0\0\x20\0\0\0\0\x40\x73\x66\x66\xc0\0\x02\x01\xc0\0\x02\x02\0\0\0\x09\x0a\x0b\x0c\x0d\x0e\x0f\0\0";
    // MPLS in IP (RFC 4023), and in GRE.
    for (protocol, name) in [(115, "l2tpv3"), (137, "mpls"), (47, "gre")] {
        let mut packet = packet;
        (packet[9], packet[11]) = (protocol, packet[11].wrapping_add(115).wrapping_sub(protocol));
        if protocol == 47 {
            packet[20..24].copy_from_slice(b"\0\0\x88\x47");
        }
        let capture = made(&format!("{name}.pcap"), LinkType::RAW, &vec![packet.to_vec(); 3]);
        assert_eq!(json(&[&capture])["inputs"][0]["not_unwrapped"], serde_json::json!({ name: 3 }));
        let text = stdout(&thinair(&[&capture]));
        assert!(text.contains(&format!("of tunnels that are not opened: {name} 3")), "{text}");
        assert_eq!(json(&[&capture, "--outer"])["inputs"][0]["not_unwrapped"], Value::Null);
    }
}

/// Returns a capture of 1,000 packets of `octets` octets over UDP and IPv4, in `seconds` seconds.
fn constant(name: &str, octets: usize, seconds: u64) -> String {
    let mut file = Writer::new(Vec::new(), LinkType::RAW).unwrap();
    let mut packet = vec![0; octets];
    packet[..28].copy_from_slice(
        b"\x45\0\0\0\0\0\x40\0\x40\x11\0\0\xc0\0\x02\x01\xc0\0\x02\x02\x13\x8c\x13\x8c\0\0\0\0",
    );
    packet[2..4].copy_from_slice(&(octets as u16).to_be_bytes());
    packet[24..26].copy_from_slice(&(octets as u16 - 20).to_be_bytes());
    let words = packet[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    for number in 0..1_000 {
        file.write(Timestamp::from_nanos(1 + number * seconds * 1_001_001), &packet).unwrap();
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, file.into_inner()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn nothing_is_recommended_where_nothing_is_gained() {
    // 20 octets less of 8,000 are a quarter of a percent.
    let capture = constant("large.pcap", 8_000, 28);
    let found = json(&[&capture]);
    let best =
        found["totals"]["schemes"].as_array().unwrap().iter().map(|one| one["saved_ratio"].as_f64().unwrap());
    let best = best.fold(0.0, f64::max);
    assert!(best > 0.001 && best < 0.01, "{best}");
    assert_eq!(found["recommendation"], Value::Null);
    let text = stdout(&thinair(&[&capture]));
    assert!(text.contains("Recommendation: leave headers as they are: the best scheme of ROHC, "), "{text}");
    assert!(text.contains(", less than 1 %"), "{text}");
    assert!(!text.contains("to pay") && !text.contains("thinair tunnel run"), "{text}");
}

#[test]
fn each_carrier_has_its_price_and_one_that_costs_more_is_not_recommended() {
    // 64 octets: a datagram has 48 around each packet, a frame of a serial line 17.
    let capture = constant("small.pcap", 64, 28);
    let text = stdout(&thinair(&[&capture, "--price", "10"]));
    let line = |label: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(label));
        line.unwrap_or_else(|| panic!("{label}: {text}")).to_owned()
    };
    let month = line("a month");
    for part in [
        "extrapolated from 28.0 s, a guess: capture a day or more",
        "where the link itself carries ROHC packets",
        " less",
    ] {
        assert!(month.contains(part), "{part}: {month}");
    }
    let tunnel = line("in a tunnel");
    let (udp, serial) = tunnel.split_once("; ").unwrap();
    assert!(udp.contains("more than before") && udp.ends_with(" more to pay a month"), "{udp}");
    assert!(serial.contains(" saved") && serial.ends_with(" less to pay a month"), "{serial}");
    assert!(
        text.contains("thinair tunnel run serial://") && !text.contains("thinair tunnel run udp://"),
        "{text}"
    );

    // A tunnel adds 17 octets and saves less than 1 % of 1,000: none is recommended.
    let text = stdout(&thinair(&[&constant("middle.pcap", 1_000, 28)]));
    let headline = text.lines().find(|line| line.starts_with("Recommendation: ")).unwrap();
    assert!(headline.ends_with(", only where the link itself carries ROHC packets"), "{headline}");
    assert!(!text.contains("thinair tunnel run") && !text.contains("[channel]"), "{text}");

    // Units are counted with the octets around each packet.
    let text = stdout(&thinair(&[&capture, "--billing-unit", "40", "--price", "1"]));
    let udp = text.lines().find(|line| line.trim_start().starts_with("in a tunnel")).unwrap();
    assert!(udp.contains(" of the price"), "{udp}");
}

#[test]
fn a_day_of_capture_is_no_guess() {
    let month = |seconds| {
        let text = stdout(&thinair(&[&constant("long.pcap", 64, seconds)]));
        text.lines().find(|line| line.trim_start().starts_with("a month")).unwrap().to_owned()
    };
    assert!(month(90_000).contains("at the rate of these 25.0 h"), "{}", month(90_000));
    assert!(month(80_000).contains("extrapolated from 22.2 h, a guess"), "{}", month(80_000));
}

#[test]
fn files_that_are_no_captures_are_left_out_and_the_others_are_analyzed() {
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty.pcap");
    fs::write(&empty, b"").unwrap();
    let cut = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut_header.pcap");
    fs::write(&cut, &fs::read(ONE).unwrap()[..20]).unwrap();
    let (empty, cut) = (empty.to_str().unwrap(), cut.to_str().unwrap());
    let alone = json(&[ONE, SIX]);
    for arguments in [
        &[ONE, empty, "Cargo.toml", cut, SIX, "--json"][..],
        &[empty, ONE, "Cargo.toml", cut, SIX, "--json", "--partitions", "1"],
    ] {
        let output = thinair(arguments);
        assert_eq!(output.status.code(), Some(1));
        let errors = stderr(&output);
        for name in [empty, "Cargo.toml", cut] {
            assert_eq!(errors.matches(&format!("{name}: ")).count(), 1, "{name}: {errors}");
        }
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["inputs"].as_array().unwrap().len(), 5);
        assert_eq!(found["totals"], alone["totals"]);
        let left_out =
            found["inputs"].as_array().unwrap().iter().filter(|input| input["ended_by"] != Value::Null);
        assert!(left_out.clone().count() == 3 && left_out.clone().all(|input| input["packets"] == 0));
    }
    // The first file is named if none is a capture.
    let output = thinair(&[empty, "Cargo.toml"]);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true));
    assert!(stderr(&output).contains(empty), "{}", stderr(&output));
}

#[test]
fn no_tunnel_is_advised_with_options_that_tunnels_lack() {
    let capture = "../../captures/rtp_udp4_pcmu.pcap";
    let with = |options: &[&str]| stdout(&thinair(&[&[capture][..], options].concat()));
    let plain = with(&[]);
    for part in ["octets around each packet", "thinair tunnel run", "[channel]"] {
        assert!(plain.contains(part), "{part}: {plain}");
    }
    for (options, name) in [
        (&["--coap-checksum", "elide"][..], "--coap-checksum"),
        (&["--coap-ports", "5683,6000"], "--coap-ports"),
        (&["--nack", "2/3"], "--nack"),
    ] {
        let text = with(options);
        let reason = format!("in a tunnel  not possible: `thinair tunnel` has no option {name}");
        assert!(text.contains(&reason), "{text}");
        for part in ["octets around each packet", "thinair tunnel run", "[channel]"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn headers_that_were_compressed_on_the_air_are_noted() {
    // A frame of IEEE 802.15.4 with short addresses, then LOWPAN_IPHC, or an uncompressed IPv6 header.
    let mac = *b"\x41\x88\x01\xcd\xab\x02\x00\x01\x00";
    let iphc = [&mac[..], b"\x7a\x33\x3a\x80\0\0\0thin air"].concat();
    let hosts = *b"\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\x01\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\x02";
    let plain = [&mac[..], b"\x41\x60\0\0\0\0\x04\x3a\x40", &hosts, b"\x80\0\0\0"].concat();
    let note = "compressed with LOWPAN_IPHC on the air: their octets count as IPv6; compare with row 6lowpan";
    let link_type = LinkType::IEEE802_15_4_NOFCS;
    let capture = made("iphc.pcap", link_type, &[iphc.clone(), plain.clone(), iphc]);
    assert!(stdout(&thinair(&[&capture])).contains(&format!("2 frames {note}")));
    assert_eq!(json(&[&capture])["inputs"][0]["iphc_frames"], 2);
    let capture = made("plain.pcap", link_type, &[plain]);
    assert!(!stdout(&thinair(&[&capture])).contains(note));
    assert_eq!(json(&[&capture])["inputs"][0]["iphc_frames"], Value::Null);
}

#[test]
fn json_has_traffic_and_price_of_each_carrier() {
    let capture = constant("priced.pcap", 64, 28);
    for price in [&["--price", "10"][..], &["--billing-unit", "40", "--price", "0.1"], &[]] {
        let arguments = [&[&*capture], price].concat();
        let (text, document) = (stdout(&thinair(&arguments)), json(&arguments));
        let best = &document["recommendation"];
        let packets = document["totals"]["packets"].as_u64().unwrap();
        let of = |value: &Value| value.as_u64().unwrap();
        let carriers = best["carriers"].as_array().unwrap();
        let names: Vec<_> = carriers
            .iter()
            .map(|one| (one["carrier"].as_str().unwrap(), of(&one["overhead_bytes"])))
            .collect();
        assert_eq!(names, [("udp", 48), ("serial", 17)]);
        for one in carriers {
            assert_eq!(of(&one["bytes_out"]), of(&best["bytes_out"]) + packets * of(&one["overhead_bytes"]));
            let kept = of(&one["bytes_out"]) as f64 / of(&best["bytes_in"]) as f64;
            assert!((one["saved_ratio"].as_f64().unwrap() - (1.0 - kept)).abs() < 1e-9);
            let (month, cost) = (&one["month"], one["cost_out"].as_f64());
            assert_eq!(
                (month["bytes_in"] == best["month"]["bytes_in"], cost.is_some()),
                (true, !price.is_empty())
            );
            // The text has the price of a month.
            if let Some(month) = month["cost_out"].as_f64() {
                let shown = text.replace(',', "");
                assert!(shown.contains(&format!("-> {month:.2}")), "{month} in {text}");
            }
        }
    }
}
