//! `thinair rohc`, run on real captures as a user runs it.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use thinair_capture::{LinkType, Reader, Timestamp, Writer};

const CHANNELS: [&[&str]; 5] = [
    &[],
    &["--cid", "large"],
    &["--max-cid", "0"],
    &["--ethertype", "--cid", "large", "--max-cid", "200"],
    &["--ethertype", "--profiles", "ip", "--refresh", "ir=3,so=20", "--seed", "7"],
];

#[test]
fn every_packet_comes_back_octet_for_octet() {
    let folder = TestFolder::new("roundtrip");
    for capture in captures() {
        let sent = packets(&capture);
        for mode in ["u", "o", "r"] {
            for channel in CHANNELS {
                let (rohc, back) = (folder.path("rohc.pcap"), folder.path("back.pcap"));
                let options = [&["--mode", mode], channel].concat();
                ok(thinair(["compress"], [&capture, &rohc], &options));
                ok(thinair(["decompress"], [&rohc, &back], &options));
                assert_same(&sent, &packets(&back), &format!("{} {options:?}", capture.display()));
            }
        }
    }
}

#[test]
fn the_file_alone_is_enough_elsewhere() {
    let (here, elsewhere) = (TestFolder::new("here"), TestFolder::new("elsewhere"));
    for mode in ["u", "o", "r"] {
        let capture = capture("coap_udp6_observe.pcap");
        ok(thinair(["compress"], [&capture, &here.path("rohc.pcap")], &["--mode", mode]));
        fs::rename(here.path("rohc.pcap"), elsewhere.path("moved.pcap")).unwrap();
        let done = Command::new(env!("CARGO_BIN_EXE_thinair"))
            .args(["rohc", "decompress", "moved.pcap", "back.pcap", "--mode", mode])
            .current_dir(&elsewhere.0)
            .env_clear()
            .output()
            .unwrap();
        ok(done);
        assert_same(&packets(&capture), &packets(&elsewhere.path("back.pcap")), mode);
    }
}

/// Each context begins with four IR packets; eight records cover both directions of one conversation.
#[test]
fn without_its_first_records_a_file_loses_packets_and_delivers_none_wrong() {
    let folder = TestFolder::new("headless");
    for capture in captures() {
        let sent = packets(&capture);
        for (mode, removed) in [("u", 5), ("u", 8), ("o", 5)] {
            let (rohc, rest, back) =
                (folder.path("rohc.pcap"), folder.path("rest.pcap"), folder.path("back.pcap"));
            ok(thinair(["compress"], [&capture, &rohc], &["--mode", mode]));
            copy_records(&rohc, &rest, |number, data| (number > removed).then(|| data.to_vec()));
            let done = thinair(["decompress"], [&rest, &back], &["--mode", mode]);
            let delivered = packets(&back);
            let what = format!("{} {mode} without {removed}", capture.display());
            assert_eq!(done.status.code(), Some(i32::from(delivered.is_empty() && sent.len() > 5)), "{what}");
            assert!(delivered.len() + 5 <= sent.len().max(5), "{what}");
            let mut left = sent.iter();
            for packet in &delivered {
                assert!(
                    left.any(|one| one == packet),
                    "{what}: a packet that was never sent, at {}",
                    packet.0
                );
            }
        }
    }
}

/// An IR packet without payload refreshes a context (RFC 3095, section 5.7.7), or is a packet of a compressor
/// that violates this rule.
#[test]
fn an_ir_packet_without_payload_is_delivered_where_that_is_asked_for() {
    let folder = TestFolder::new("empty");
    let capture = capture("coap_udp4_get_con.pcap");
    let (rohc, cut, back) = (folder.path("rohc.pcap"), folder.path("cut.pcap"), folder.path("back.pcap"));
    let profiles = ["--profiles", "v1"];
    ok(thinair(["compress"], [&capture, &rohc], &profiles));
    let payload = packets(&capture)[0].1.len() - 28;
    copy_records(&rohc, &cut, |number, data| (number == 1).then(|| data[..data.len() - payload].to_vec()));
    for (options, delivered) in [(&[][..], 0), (&["--lenient"], 1)] {
        thinair(["decompress"], [&cut, &back], &[&profiles, options].concat());
        assert_eq!(packets(&back).len(), delivered, "{options:?}");
    }
}

#[test]
fn a_damaged_record_costs_that_packet() {
    let folder = TestFolder::new("damaged");
    let capture = capture("coap_udp4_get_con.pcap");
    let (rohc, bad, back) = (folder.path("rohc.pcap"), folder.path("bad.pcap"), folder.path("back.pcap"));
    ok(thinair(["compress"], [&capture, &rohc], &[]));
    copy_records(&rohc, &bad, |number, data| {
        let mut data = data.to_vec();
        if number == 2 {
            data[5] ^= 0x10;
        }
        Some(data)
    });
    let done = ok(thinair(["decompress"], [&bad, &back], &[]));
    assert!(stderr(&done).contains("not delivered"), "{}", stderr(&done));
    let mut sent = packets(&capture);
    sent.remove(1);
    assert_same(&sent, &packets(&back), "one damaged record");
}

#[test]
fn feedback_from_a_file_does_what_that_of_the_own_decompressor_did() {
    let folder = TestFolder::new("feedback");
    for capture in [capture("coap_udp4_observe.pcap"), capture("mqtt311_tcp4_qos1.pcap")] {
        for channel in CHANNELS {
            let path = |name| folder.path(name);
            let options = |more: &[&'static str]| [&["--mode", "o"], channel, more].concat();
            let (own, told) = (path("own.pcap"), path("told.pcap"));
            let (made, asked) = (path("made.pcap"), path("asked.pcap"));
            let with = |option: &str, file: &Path| format!("--{option}={}", file.display());
            ok(thinair(
                ["compress".to_owned(), with("feedback-out", &made)],
                [&capture, &own],
                &options(&[]),
            ));
            ok(thinair(
                ["compress".to_owned(), with("feedback-in", &made)],
                [&capture, &told],
                &options(&[]),
            ));
            assert!(fs::read(&own).unwrap() == fs::read(&told).unwrap(), "{} {channel:?}", capture.display());
            let args = ["decompress".to_owned(), with("feedback-out", &asked)];
            ok(thinair(args, [&own, &path("back.pcap")], &options(&[])));
            assert!(
                fs::read(&made).unwrap() == fs::read(&asked).unwrap(),
                "{} {channel:?}",
                capture.display()
            );
        }
    }
}

#[test]
fn o_mode_refreshes_only_when_asked() {
    let folder = TestFolder::new("refresh");
    let capture = capture("coap_udp4_get_con.pcap");
    let refreshes = |options: &[&str]| {
        let summary = ok(thinair(["compress", "--json"], [&capture, &folder.path("rohc.pcap")], options));
        json(&summary)["refreshes"].as_u64().unwrap()
    };
    assert!(refreshes(&["--mode", "u", "--refresh", "packets=50"]) > 0);
    assert_eq!(refreshes(&["--mode", "u", "--refresh", "off"]), 0);
    assert_eq!(refreshes(&["--mode", "o"]), 0);
    assert!(refreshes(&["--mode", "o", "--refresh", "packets=50"]) > 0);
}

#[test]
fn the_summary_counts_every_record() {
    let folder = TestFolder::new("summary");
    for capture in captures() {
        let (rohc, back) = (folder.path("rohc.pcap"), folder.path("back.pcap"));
        let sum =
            |object: &Value| object.as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>();
        let summary = json(&ok(thinair(["compress", "--json"], [&capture, &rohc], &[])));
        assert_eq!(summary["schema"], "thinair.rohc/1");
        assert_eq!(summary["packets"].as_u64().unwrap() + sum(&summary["skipped"]), summary["records"]);
        assert_eq!(sum(&summary["packet_types"]), summary["packets"]);
        let octets = |file: &Path| records(file).iter().map(|(_, data)| data.len() as u64).sum::<u64>();
        assert_eq!(summary["octets_out"], octets(&rohc));

        let done = thinair(["decompress", "--json"], [&rohc, &back], &[]);
        let told = json(&done);
        assert_eq!(told["delivered"], summary["packets"]);
        assert_eq!(
            (&told["octets_in"], &told["octets_out"]),
            (&summary["octets_out"], &summary["octets_in"])
        );
        assert_eq!(told["packet_types"], summary["packet_types"]);
    }
}

#[test]
fn standard_input_and_output_work_as_files_do() {
    let folder = TestFolder::new("stdio");
    let capture = capture("coap_udp4_oscore.pcap");
    ok(thinair(["compress"], [&capture, &folder.path("rohc.pcap")], &[]));
    let rohc = pipe(&["compress", "-", "-", "--json"], &fs::read(&capture).unwrap());
    assert!(rohc.stdout == fs::read(folder.path("rohc.pcap")).unwrap());
    assert!(serde_json::from_slice::<Value>(&rohc.stderr).is_ok());
    let back = pipe(&["decompress", "-", "-"], &rohc.stdout);
    fs::write(folder.path("back.pcap"), &back.stdout).unwrap();
    assert_same(&packets(&capture), &packets(&folder.path("back.pcap")), "piped");
    let told = pipe(&["dissect", "-"], &rohc.stdout);
    assert!(String::from_utf8(told.stdout).unwrap().starts_with("#1 "));
}

/// As curl and gzip do.
#[test]
#[cfg(target_os = "linux")]
fn no_capture_is_written_to_a_terminal() {
    let folder = TestFolder::new("terminal");
    let (capture, rohc) = (capture("coap_udp4_get_con.pcap"), folder.path("rohc.pcap"));
    ok(thinair(["compress"], [&capture, &rohc], &[]));
    for (command, whole) in [("compress", &capture), ("decompress", &rohc)] {
        // One packet, which fits into the buffer of a terminal that nobody reads.
        let input = &folder.path("one.pcap");
        copy_records(whole, input, |number, data| (number == 1).then(|| data.to_vec()));
        let terminal = thinair_os::serial::Pty::open().unwrap();
        let line = fs::File::options().write(true).open(terminal.path()).unwrap();
        let mut run = Command::new(env!("CARGO_BIN_EXE_thinair"));
        let run = run.args(["rohc", command]).args([input.as_os_str(), OsStr::new("-")]).stdout(line);
        let done = run.stderr(Stdio::piped()).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{command}: {}", stderr(&done));
        assert!(stderr(&done).contains("standard output is a terminal"), "{}", stderr(&done));
        assert!(terminal.read(&mut [0; 64]).is_err(), "nothing was written");
    }
}

/// Every bit of a header is listed exactly once.
#[test]
fn the_fields_of_a_dissection_add_up_to_the_header() {
    let folder = TestFolder::new("dissect");
    for capture in captures() {
        for options in [&[][..], &["--cid", "large"], &["--profiles", "ip"]] {
            let rohc = folder.path("rohc.pcap");
            ok(thinair(["compress"], [&capture, &rohc], options));
            let told = ok(thinair(["dissect", "--json"], [&rohc], options));
            let lines = String::from_utf8(told.stdout).unwrap();
            assert_eq!(lines.lines().count(), records(&rohc).len());
            for line in lines.lines() {
                let packet: Value = serde_json::from_str(line).unwrap();
                let what = || format!("{} {options:?}: {packet}", capture.display());
                assert!(packet["format"].is_string(), "{}", what());
                let fields = packet["fields"].as_array().unwrap();
                let bits: u64 = fields.iter().map(|field| field["bits"].as_u64().unwrap()).sum();
                let cid = packet["cid"].as_u64().unwrap();
                let cid_octets = match (options.contains(&"large"), cid) {
                    (true, 128..) => 2,
                    (true, _) | (false, 1..) => 1,
                    (false, 0) => 0,
                };
                let header = packet["decompressed"]["header_octets_in"].as_u64().unwrap();
                let format = packet["format"].as_str().unwrap();
                // The whole packet is one field in format Normal.
                if format != "Normal" {
                    assert_eq!(bits, 8 * (header - cid_octets), "{}", what());
                }
            }
        }
    }
}

#[test]
fn a_dissection_reads_like_the_rfc() {
    let folder = TestFolder::new("text");
    let rohc = folder.path("rohc.pcap");
    let options = ["--mode", "o", "--profiles", "v1"];
    ok(thinair(["compress"], [&capture("coap_udp4_get_con.pcap"), &rohc], &options));
    let told = String::from_utf8(ok(thinair(["dissect"], [&rohc], &["--profiles", "v1"])).stdout).unwrap();
    let third: Vec<_> = told.split("\n\n").nth(2).unwrap().lines().collect();
    assert_eq!(
        third,
        [
            "#3  +0.001964 s  22 octets  CID 0  udp  UO-0",
            "    discriminator               1  0b0",
            "    SN                          4  1",
            "    CRC                         3  5",
            "    UDP Checksum               16  5719 (0x1657)",
            "    => 47 octets: header 3 -> 28, payload 19",
        ]
    );
    assert!(told.contains("Source Address             32  0a630002 (10.99.0.2)\n"), "{told}");
    let capture = capture("coap_udp6_get_con.pcap");
    for (profiles, name, value) in [
        ("v1", "Source Address", "  128  fd000ec0 00000000 00000000 00000002 (fd00:ec0::2)"),
        ("coap", "Source Address", "  128  fd000ec0 00000000 00000000 00000002 (fd00:ec0::2)"),
        ("coap", "Destination Address", "  128  fd000ec0 00000000 00000000 00000001 (fd00:ec0::1)"),
    ] {
        let options = ["--profiles", profiles];
        ok(thinair(["compress"], [&capture, &rohc], &options));
        let told = String::from_utf8(ok(thinair(["dissect"], [&rohc], &options)).stdout).unwrap();
        let first = told.split("\n\n").next().unwrap();
        let lines: Vec<_> = first.lines().filter(|line| line.trim_start().starts_with(name)).collect();
        let [line] = lines[..] else { panic!("{profiles}: {name} is in one line: {first}") };
        assert_eq!(line.trim(), format!("{name:<24}{value}"));
    }
    let options = ["--profiles", "tcp"];
    ok(thinair(["compress"], [&self::capture("mqtt311_tcp4_qos1.pcap"), &rohc], &options));
    let told = String::from_utf8(ok(thinair(["dissect"], [&rohc], &options)).stdout).unwrap();
    assert!(told.contains("    dst_addr                   32  0a630001 (10.99.0.1)\n"), "{told}");
    // With USER0 all octets count as a ROHC packet; the error names the part that is missing.
    let rest = folder.path("rest.pcap");
    copy_records(&rohc, &rest, |number, data| (number > 8).then(|| data.to_vec()));
    let told = String::from_utf8(ok(thinair(["dissect"], [&rest], &[])).stdout).unwrap();
    assert!(told.contains("=> not delivered, no_context: CID 0"), "{told}");
}

#[test]
fn feedback_is_dissected_and_counted() {
    let folder = TestFolder::new("elements");
    let (rohc, made) = (folder.path("rohc.pcap"), folder.path("made.pcap"));
    let capture = capture("coap_udp4_get_con.pcap");
    let option = format!("--feedback-out={}", made.display());
    // Feedback of profile 0x0181 has no mode.
    for (profiles, mode) in [("v1", "  mode o"), ("coap", "")] {
        let options = ["--profiles", profiles];
        let done = ok(thinair(["compress", "--mode", "o", &option], [&capture, &rohc], &options));
        assert!(stderr(&done).contains("feedback made"), "{}", stderr(&done));
        let told = String::from_utf8(ok(thinair(["dissect"], [&made], &options)).stdout).unwrap();
        let whole = |line: &str| {
            line.starts_with("    feedback  ACK  CID 0  SN ") && line.ends_with(&format!("{mode}  CRC ok"))
        };
        assert!(told.lines().any(whole), "{told}");
        // A file with feedback only has no packet to deliver, and no error.
        ok(thinair(["decompress"], [&made, &folder.path("back.pcap")], &options));
    }
}

#[test]
fn damaged_and_foreign_files_are_told_not_feared() {
    let folder = TestFolder::new("foreign");
    let (rohc, back) = (folder.path("rohc.pcap"), folder.path("back.pcap"));
    let capture = capture("coap_udp6_get_con.pcap");
    ok(thinair(["compress"], [&capture, &rohc], &[]));

    // Truncated anywhere.
    let whole = fs::read(&rohc).unwrap();
    for end in [0, 3, 23, 24, 30, 60, 200, whole.len() - 1] {
        let cut = folder.path("cut.pcap");
        fs::write(&cut, &whole[..end]).unwrap();
        let done = thinair(["decompress"], [&cut, &back], &[]);
        let is_capture = end >= 24;
        let delivers = end == 24 || end >= 200;
        assert_eq!(
            done.status.code(),
            Some(i32::from(!(is_capture && delivers))),
            "{end}: {}",
            stderr(&done)
        );
        let done = thinair(["dissect"], [&cut], &[]);
        assert_eq!(done.status.code(), Some(i32::from(!is_capture)), "{end}: {}", stderr(&done));
    }
    let done = thinair(["decompress"], [&folder.path("cut.pcap"), &back], &[]);
    assert!(stderr(&done).contains("truncated file at offset"), "{}", stderr(&done));

    // A capture of IP packets contains no ROHC packets, and vice versa.
    let done = thinair(["decompress"], [&capture, &back], &[]);
    assert_eq!(done.status.code(), Some(1));
    assert!(stderr(&done).contains("not_rohc 600 (first: record 1)"), "{}", stderr(&done));
    let done = thinair(["compress"], [&rohc, &back], &[]);
    assert_eq!(done.status.code(), Some(1));
    assert!(stderr(&done).contains("not_ip 600 (first: record 1)"), "{}", stderr(&done));

    // Channel options that differ from those of the writer: a note, no panic.
    let done = thinair(["decompress"], [&rohc, &back], &["--cid", "large"]);
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
}

#[test]
fn exit_status_and_message_say_what_to_do() {
    let folder = TestFolder::new("errors");
    let capture = capture("coap_udp4_get_con.pcap");
    let (out, missing) = (folder.path("out.pcap"), folder.path("missing.pcap"));
    let refused = |command: &str, files: [&Path; 2], options: &[&str], code, message: &str| {
        let done = thinair([command], files, options);
        let told = stderr(&done);
        assert_eq!(done.status.code(), Some(code), "{command} {options:?}: {told}");
        assert!(told.contains(message), "{command} {options:?}: {told}");
        assert!(!out.exists() || code == 0, "{command} {options:?} wrote a file");
    };
    refused("compress", [&missing, &out], &[], 1, "missing.pcap");
    refused("decompress", [&missing, &out], &[], 1, "missing.pcap");
    refused("compress", [&capture, &folder.path("no/such/folder")], &[], 1, "cannot create");
    refused("compress", [&capture, &out], &["--mode", "x"], 2, "--mode");
    refused("compress", [&capture, &out], &["--max-cid", "16"], 2, "MAX_CID 16 exceeds 15");
    refused("compress", [&capture, &out], &["--profiles", "nonsense"], 2, "nonsense");
    refused("compress", [&capture, &out], &["--refresh", "sometimes"], 2, "--refresh");
    refused("compress", [&capture, &out], &["--feedback-in", "f"], 2, "--mode o");
    refused(
        "compress",
        [&capture, &out],
        &["--mode=o", "--feedback-in=f", "--feedback-out=g"],
        2,
        "exclude each other",
    );
    refused("compress", [&capture, &out], &["--mode=o", "--feedback-in=f"], 1, "cannot open f");
    refused("compress", [&capture, &out], &["--mode=o", "--feedback-out=-"], 2, "name of a file");
    let same = format!("--feedback-out={}", out.display());
    refused("compress", [&capture, &out], &["--mode=o", &same], 2, "are the same file");

    // The input is kept, under any name.
    let copy = folder.path("copy.pcap");
    fs::copy(&capture, &copy).unwrap();
    let roundabout = folder.path("../").join(folder.0.file_name().unwrap()).join("copy.pcap");
    for output in [&copy, &roundabout] {
        refused("compress", [&copy, output], &[], 2, "IN and OUT are the same file");
        refused("decompress", [&copy, output], &[], 2, "IN and OUT are the same file");
    }
    assert!(fs::read(&copy).unwrap() == fs::read(&capture).unwrap());
}

#[test]
fn a_file_without_a_packet_to_compress_is_an_error_that_says_what_to_do() {
    let folder = TestFolder::new("nothing");
    let (input, out) = (folder.path("in.pcap"), folder.path("out.pcap"));
    let written = |frame: &[u8]| {
        let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET).unwrap();
        writer.write(Timestamp::from_nanos(1), frame).unwrap();
        writer.into_inner()
    };
    let arp = written(&[&[2; 12][..], &[8, 6], &[0; 46]].concat());
    let mut cut = written(&[&[2; 12][..], b"\x08\0\x45\0\0\x26\0\0\x40\0\x40\xfd", &[0; 20]].concat());
    cut[24 + 12] = 100;
    for (file, why) in [
        (arp, ["not_ip 1 (record 1)", "`thinair analyze` names"]),
        (cut, ["truncated 1 (record 1)", "tcpdump -s 0"]),
    ] {
        fs::write(&input, file).unwrap();
        for options in [&[][..], &["--both-ways"], &["--json"]] {
            let done = thinair(["compress"], [&input, &out], options);
            let told = stderr(&done);
            assert_eq!(done.status.code(), Some(1), "{options:?}: {told}");
            assert!(told.contains("in.pcap could be compressed: "), "{options:?}: {told}");
            assert!(why.iter().all(|why| told.contains(why)), "{options:?}: {told}");
        }
    }
    // No record: nothing was skipped.
    fs::write(&input, Writer::new(Vec::new(), LinkType::ETHERNET).unwrap().into_inner()).unwrap();
    ok(thinair(["compress"], [&input, &out], &[]));
}

#[test]
fn both_directions_are_dissected_as_they_are_decompressed() {
    let folder = TestFolder::new("dissect-both");
    for name in ["coap_udp6_get_con.pcap", "coap_udp4_block1_block2.pcap", "mqtt311_tcp4_qos1.pcap"] {
        let (capture, rohc) = (capture(name), folder.path("rohc.pcap"));
        ok(thinair(["compress"], [&capture, &rohc], &["--both-ways", "--mode", "o"]));
        let rohc = rohc.to_str().unwrap();
        let dissected = |options: &[&str]| {
            let arguments = [&["rohc", "dissect", rohc, "--json"][..], options].concat();
            let done = ok(Command::new(env!("CARGO_BIN_EXE_thinair")).args(arguments).output().unwrap());
            let lines = String::from_utf8(done.stdout).unwrap();
            lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
        };
        let records = dissected(&["--both-ways"]);
        let lengths: Vec<_> = records
            .iter()
            .filter_map(|one| one["decompressed"]["octets"].as_u64())
            .filter(|len| *len > 0)
            .collect();
        let sent: Vec<_> = packets(&capture).iter().map(|(_, packet)| packet.len() as u64).collect();
        assert_eq!(lengths, sent, "{name}");
        for side in ["a", "b"] {
            assert!(records.iter().any(|one| one["side"] == side), "{name}");
        }
        // Feedback alone is no error but one of the form `nothing_yet`.
        let errors = records.iter().filter(|one| one["error"]["name"] != Value::Null);
        for error in errors.clone() {
            assert!(!error["feedback"].as_array().unwrap().is_empty(), "{name}: {error}");
        }
        // As one channel, packets of the two directions have contexts of each other.
        assert!(dissected(&[]).iter().all(|one| one["side"] == Value::Null));
    }
}

/// A limit of the size of files stands for a full disk: writing fails in the middle.
#[cfg(unix)]
#[test]
fn no_half_file_is_left_where_the_disk_is_full() {
    let folder = TestFolder::new("full");
    let (capture, rohc) = (capture("coap_udp6_get_con.pcap"), folder.path("rohc.pcap"));
    ok(thinair(["compress"], [&capture, &rohc], &[]));
    let (capture, rohc) = (capture.to_str().unwrap(), rohc.to_str().unwrap());
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let (out, back, page, chart, bases) =
        (path("out.pcap"), path("back.pcap"), path("report.html"), path("chart.svg"), path("coap.toml"));
    for (arguments, file) in [
        (vec!["rohc", "compress", capture, &out], &out),
        (vec!["rohc", "compress", capture, &out, "--both-ways"], &out),
        (vec!["rohc", "decompress", rohc, &back], &back),
        (vec!["rohc", "learn", capture, "-o", &bases], &bases),
        (vec!["analyze", capture, "--html", &page], &page),
        (vec!["chart", capture, "--svg", &chart], &chart),
    ] {
        let mut limited = Command::new("sh");
        limited.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_thinair")]);
        let done = limited.args(&arguments).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{arguments:?}: {}", stderr(&done));
        assert!(stderr(&done).contains(&format!("cannot write {file}")), "{arguments:?}: {}", stderr(&done));
        let left: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["rohc.pcap"], "{arguments:?}");
    }
}

#[test]
fn files_of_one_direction_and_of_both_are_told_apart() {
    let folder = TestFolder::new("directions");
    let (rohc, back) = (folder.path("rohc.pcap"), folder.path("back.pcap"));
    let capture = capture("coap_udp4_get_con.pcap");
    for options in [&[][..], &["--ethertype"]] {
        ok(thinair(["compress"], [&capture, &rohc], options));
        let done = thinair(["decompress"], [&rohc, &back], &["--both-ways"]);
        assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
        assert!(stderr(&done).contains("it has one direction; omit --both-ways"), "{}", stderr(&done));
        assert!(!stderr(&done).contains("link type 147"), "{}", stderr(&done));
        let done = ok(thinair(["decompress"], [&rohc, &back], &[]));
        assert!(!stderr(&done).contains("--both-ways"), "{}", stderr(&done));
    }
    ok(thinair(["compress", "--both-ways"], [&capture, &rohc], &[]));
    let done = thinair(["decompress"], [&rohc, &back], &[]);
    assert!(stderr(&done).contains("was it written with --both-ways?"), "{}", stderr(&done));
    let done = ok(thinair(["decompress"], [&rohc, &back], &["--both-ways"]));
    assert!(!stderr(&done).contains("was it written"), "{}", stderr(&done));
}

/// Comparison with another implementation: tshark 4.0 reads profile, CID, addresses and ports of every IR
/// packet, and finds nothing malformed. It supports small CIDs only, does not decode the extension header
/// list of IPv6, and confuses UO-1 with R-1 and UOR-2 with that of RTP, so other packets are not compared. It
/// takes an AH after IP for UDP, and prints no addresses of chains with ESP or UDP-Lite.
#[test]
fn tshark_reads_our_ir_packets() {
    if Command::new("tshark").arg("-v").output().is_err() {
        println!("skipped: no tshark");
        return;
    }
    let folder = TestFolder::new("tshark");
    let rohc = folder.path("rohc.pcap");
    for capture in captures() {
        let name = capture.file_name().unwrap().to_str().unwrap();
        if name.starts_with("ah") {
            continue;
        }
        // tshark does not support profile 0x0181.
        ok(thinair(["compress", "--ethertype"], [&capture, &rohc], &["--profiles", "v1"]));
        let sent = packets(&capture);

        let told = ok(thinair(["dissect", "--json"], [&rohc], &["--profiles", "v1"]));
        let told = String::from_utf8(told.stdout).unwrap();
        let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ours: Vec<String> = told
            .iter()
            .zip(&sent)
            .filter(|(packet, _)| packet["format"] == "IR" && packet["profile"] != 0)
            .map(|(packet, (_, ip))| {
                let (mut source, mut destination, transport) = addresses(ip);
                if matches!(packet["profile"].as_u64(), Some(3 | 7 | 8)) {
                    source.clear();
                    destination.clear();
                }
                let ports = match packet["profile"].as_u64().unwrap() {
                    1 | 2 => transport[..4]
                        .chunks(2)
                        .map(|p| u16::from_be_bytes([p[0], p[1]]).to_string())
                        .collect(),
                    _ => vec![String::new(); 2],
                };
                let fields =
                    [packet["record"].to_string(), packet["profile"].to_string(), packet["cid"].to_string()];
                [&fields[..], &[source, destination], &ports].concat().join("|")
            })
            .collect();

        let theirs: Vec<String> = tshark_ir_packets(&rohc)
            .lines()
            .filter_map(|line| {
                let f: Vec<_> = line.split('|').collect();
                assert_eq!(f[9], "", "{name}: malformed in {line}");
                assert!(
                    f[10].split(',').all(|group| matches!(group, "" | UNDECODED)),
                    "{name}: expert information in {line}"
                );
                let (source, destination) = (format!("{}{}", f[3], f[4]), format!("{}{}", f[5], f[6]));
                (f[1] != "0").then(|| [f[0], f[1], f[2], &source, &destination, f[7], f[8]].join("|"))
            })
            .collect();
        assert_eq!(theirs, ours, "{name}");
    }
}

/// Wireshark's group of expert information on what it does not dissect.
const UNDECODED: &str = "83886080";

/// Fields of the IR packets of a file, a line each.
fn tshark_ir_packets(file: &Path) -> String {
    let fields = "frame.number rohc.profile rohc.small_cid rohc.ipv4_src rohc.ipv6.src rohc.ipv4_dst rohc.ipv6.dst \
                  rohc.udp_src_port rohc.udp_dst_port _ws.malformed _ws.expert.group";
    let done = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(["-Y", "rohc.ir_packet", "-T", "fields", "-E", "separator=|"])
        .args(fields.split_whitespace().flat_map(|field| ["-e", field]))
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    String::from_utf8(done.stdout).unwrap()
}

/// Source, destination, and the payload of the IP header.
fn addresses(packet: &[u8]) -> (String, String, &[u8]) {
    use std::net::{Ipv4Addr, Ipv6Addr};
    if packet[0] >> 4 == 4 {
        let at = |at: usize| Ipv4Addr::from(<[u8; 4]>::try_from(&packet[at..at + 4]).unwrap()).to_string();
        (at(12), at(16), &packet[usize::from(packet[0] & 0xF) * 4..])
    } else {
        let at = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&packet[at..at + 16]).unwrap()).to_string();
        (at(8), at(24), &packet[40..])
    }
}

/// Runs `thinair rohc` with a command, files and options.
fn thinair<const C: usize, const F: usize>(
    command: [impl AsRef<OsStr>; C],
    files: [impl AsRef<OsStr>; F],
    options: &[&str],
) -> Output {
    Command::new(env!("CARGO_BIN_EXE_thinair"))
        .arg("rohc")
        .args(command)
        .args(files)
        .args(options)
        .output()
        .unwrap()
}

fn pipe(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_thinair"))
        .arg("rohc")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).unwrap());
        ok(child.wait_with_output().unwrap())
    })
}

fn ok(done: Output) -> Output {
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    done
}

fn stderr(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

fn json(done: &Output) -> Value {
    serde_json::from_slice(&done.stdout).unwrap()
}

/// A packet in a capture: time in nanoseconds, and octets.
type CapturedPacket = (u64, Vec<u8>);

fn assert_same(sent: &[CapturedPacket], received: &[CapturedPacket], what: &str) {
    for (number, (sent, received)) in (1..).zip(sent.iter().zip(received)) {
        assert!(sent == received, "{what}: packet {number}\nsent     {sent:02x?}\nreceived {received:02x?}");
    }
    assert_eq!(sent.len(), received.len(), "{what}: packets");
}

/// Reads the IP packets of a capture.
fn packets(path: &Path) -> Vec<CapturedPacket> {
    let mut packets = Vec::new();
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    while let Some(record) = reader.next_record() {
        let record = record.unwrap();
        if let Ok(network) = record.network_packet() {
            packets.push((record.time.as_nanos(), network.packet.to_vec()));
        }
    }
    packets
}

/// Reads all records of a capture, unchanged.
fn records(path: &Path) -> Vec<CapturedPacket> {
    let mut records = Vec::new();
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    while let Some(record) = reader.next_record() {
        let record = record.unwrap();
        records.push((record.time.as_nanos(), record.data.to_vec()));
    }
    records
}

/// Copies a capture of link type USER0; `change` alters or omits records.
fn copy_records(from: &Path, to: &Path, change: impl Fn(usize, &[u8]) -> Option<Vec<u8>>) {
    let mut writer = Writer::new(Vec::new(), LinkType::USER0).unwrap();
    for (number, (time, data)) in (1..).zip(records(from)) {
        if let Some(data) = change(number, &data) {
            writer.write(Timestamp::from_nanos(time), &data).unwrap();
        }
    }
    fs::write(to, writer.into_inner()).unwrap();
}

fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures").join(name)
}

/// Returns the captures of the project, sorted.
fn captures() -> Vec<PathBuf> {
    let mut captures: Vec<_> = fs::read_dir(capture(""))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension() == Some(OsStr::new("pcap")))
        .collect();
    captures.sort();
    assert!(!captures.is_empty());
    captures
}

/// An empty folder, removed when the test ends.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rohc-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
