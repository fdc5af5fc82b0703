//! The Wireshark dissector of `extras/wireshark`, a second parser of the profiles for CoAP and DTLS without common code: tshark's
//! fields of a packet equal those of `thinair rohc dissect`, and those of the uncompressed packet.
//!
//! Where there is no tshark with Lua, the tests are skipped with a message.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use thinair_capture::{LinkType, Reader};
use thinair_tests::tshark::{self, OutputFolder, hex, ok};
use thinair_tests::{command, root, text};
use thinair_wire::header::coap::Coap;

/// Profiles of the dissector.
const COAP: u64 = 0x181;
const DTLS: u64 = 0x182;

const PROFILES: &str = "--profiles=udp,ip,coap";

/// Options of `rohc compress`, with those of tshark.
const CHANNELS: &[(&[&str], &[&str])] = &[
    (&[PROFILES], &[]),
    (&[PROFILES, "--mode=o", "--ethertype"], &[]),
    (&[PROFILES, "--coap-checksum=elide", "--mode=o"], &[]),
    (&[PROFILES, "--cid=large"], &["-o", "rohc_coap.large_cids:TRUE"]),
];

/// Every format that the captures cause, with their own UDP checksums and without.
const FORMATS: &str = "IR co_common co_repair pt_0 pt_0c pt_1 pt_1t pt_1tc pt_2 pt_2c";

/// Fields requested from tshark, in this order.
const FIELDS: &[&str] = &[
    "frame.number",
    "rohc_coap.cid",
    "rohc_coap.profile",
    "rohc_coap.format",
    "rohc_coap.msn",
    "rohc_coap.template",
    "rohc_coap.crc_status",
    "rohc_coap.type",
    "rohc_coap.code",
    "rohc_coap.message_id",
    "rohc_coap.token",
    "rohc_coap.payload",
    "_ws.expert.message",
];

#[test]
fn tshark_tells_what_thinair_tells_and_what_the_packets_say() {
    let Some(thinair) = prepared() else { return };
    let folder = OutputFolder::new("fields");
    let mut formats = BTreeSet::new();
    for capture in captures(&folder) {
        let sent = packets(&capture);
        for (options, preferences) in CHANNELS {
            let name = format!("{} {options:?}", capture.display());
            let rohc = folder.path("rohc.pcap");
            ok(run(&thinair, &["compress"], options).args([&capture, &rohc]).output().unwrap());
            let shown = dissected(&thinair, &rohc, options);
            let seen = dissected_by_tshark(&rohc, preferences);
            assert_eq!((shown.len(), seen.len()), (sent.len(), sent.len()), "{name}");
            for ((ours, theirs), packet) in shown.iter().zip(&seen).zip(&sent) {
                let profile = ours["profile"].as_u64().unwrap();
                if profile == COAP {
                    formats.insert(text(ours, "format"));
                    compare(ours, theirs, packet, &name);
                }
            }
        }
    }
    let missed: Vec<_> = FORMATS.split(' ').filter(|format| !formats.contains(*format)).collect();
    assert!(missed.is_empty(), "no packet was {missed:?}");
}

/// Compares tshark's fields of a packet with ours, and with the packet before compression.
fn compare(ours: &Value, theirs: &[String], packet: &[u8], name: &str) {
    let name = format!("{name}, record {}: {theirs:?}", ours["record"]);
    let [
        record,
        cid,
        profile,
        format,
        msn,
        template,
        crc,
        message_type,
        code,
        message_id,
        token,
        payload,
        expert,
    ] = theirs
    else {
        panic!("{name}")
    };
    assert_eq!(*record, ours["record"].to_string(), "{name}");
    assert_eq!(*cid, ours["cid"].to_string(), "{name}");
    assert_eq!(*format, text(ours, "format"), "{name}");
    assert_eq!(expert, "", "{name}");
    assert_ne!(crc, "wrong", "{name}");
    let number = |hex: &str| u64::from_str_radix(hex.trim_start_matches("0x"), 16).unwrap();
    assert_eq!(number(profile), ours["profile"].as_u64().unwrap(), "{name}");
    assert_eq!(*msn, values_of(ours, "MSN"), "{name}");
    let named = values_of(ours, "template");
    assert!(named.is_empty() || *template == named, "{name}: template {named}");

    let udp = if packet[0] >> 4 == 4 { usize::from(packet[0] & 0x0F) * 4 } else { 40 };
    let coap = Coap::read(&packet[udp + 8..]).unwrap();
    // A packet that carries the Type has it a second time.
    let last = |values: &String| values.rsplit(',').next().unwrap().to_owned();
    assert_eq!(last(message_type), (coap.message_type as u8).to_string(), "{name}");
    assert_eq!(last(code), coap.code.0.to_string(), "{name}");
    assert_eq!(*message_id, coap.message_id.to_string(), "{name}");
    assert_eq!(last(token), hex(coap.token), "{name}");
    let len = ours["decompressed"]["octets"].as_u64().unwrap();
    let header = ours["decompressed"]["header_octets_out"].as_u64().unwrap();
    assert_eq!(payload.len() as u64 / 2, len - header, "{name}");
    assert_eq!(*payload, hex(&packet[header as usize..]), "{name}");
}

#[test]
fn records_of_dtls_are_shown_alike() {
    const PROFILES: &str = "--profiles=udp,ip,dtls";
    let Some(thinair) = prepared() else { return };
    let folder = OutputFolder::new("dtls");
    let rohc = folder.path("rohc.pcap");
    let mut formats = BTreeSet::new();
    for capture in [
        "coaps_udp4_dtls_psk",
        "dtls_udp4_openssl_gcm",
        "dtls_udp6_openssl_ccm8",
        "dtls_udp6_openssl_new_port_each",
    ] {
        let capture = root().join(format!("captures/{capture}.pcap"));
        let sent = packets(&capture);
        for options in [&[PROFILES][..], &[PROFILES, "--mode=o", "--coap-checksum=elide"]] {
            ok(run(&thinair, &["compress"], options).args([&capture, &rohc]).output().unwrap());
            let (shown, seen) = (dissected(&thinair, &rohc, options), dissected_by_tshark(&rohc, &[]));
            assert_eq!((shown.len(), seen.len()), (sent.len(), sent.len()), "{}", capture.display());
            for ((ours, theirs), packet) in shown.iter().zip(&seen).zip(&sent) {
                let name =
                    format!("{} {options:?}, record {}: {theirs:?}", capture.display(), ours["record"]);
                let [_, cid, _, format, msn, .., payload, expert] = &theirs[..] else { panic!("{name}") };
                assert_eq!(ours["profile"], DTLS, "{name}");
                formats.insert(text(ours, "format"));
                assert_eq!((format, expert.as_str()), (&text(ours, "format"), ""), "{name}");
                assert_eq!((cid, msn), (&ours["cid"].to_string(), &values_of(ours, "MSN")), "{name}");
                let header = ours["decompressed"]["header_octets_out"].as_u64().unwrap();
                assert_eq!(*payload, hex(&packet[header as usize..]), "{name}");
            }
        }
    }
    assert_eq!(formats.into_iter().collect::<Vec<_>>().join(" "), "IR IR-CR co_repair pt_0c pt_1 pt_2 pt_2c");
}

/// Values of a field in the output of `thinair rohc dissect`.
fn values_of(packet: &Value, name: &str) -> String {
    let fields = packet["fields"].as_array().unwrap().iter().filter(|field| field["name"] == name);
    fields.map(|field| field["value"].to_string()).collect::<Vec<_>>().join(",")
}

/// Wireshark may show a packet before later ones are dissected again; tshark does so with `-2`.
#[test]
fn packets_can_be_shown_in_any_order() {
    let Some(thinair) = prepared() else { return };
    let folder = OutputFolder::new("order");
    let rohc = folder.path("rohc.pcap");
    for capture in ["coap_udp4_block1_block2.pcap", "coap_udp6_observe.pcap"] {
        let capture = root().join("captures").join(capture);
        ok(run(&thinair, &["compress"], &[PROFILES]).args([&capture, &rohc]).output().unwrap());
        assert_eq!(dissected_by_tshark(&rohc, &["-2"]), dissected_by_tshark(&rohc, &[]));
    }
}

#[test]
fn missing_state_is_said() {
    let Some(thinair) = prepared() else { return };
    let folder = OutputFolder::new("missing");
    let (rohc, cut) = (folder.path("rohc.pcap"), folder.path("cut.pcap"));
    let capture = root().join("captures/coap_udp4_block1_block2.pcap");
    ok(run(&thinair, &["compress"], &[PROFILES, "--mode=o"]).args([&capture, &rohc]).output().unwrap());
    let shown = dissected(&thinair, &rohc, &[PROFILES]);
    let all = rohc_packets(&rohc);

    // Without an IR packet there is no profile, so only the CID is shown.
    let late = shown.iter().rposition(|packet| packet["format"] == "IR").unwrap() + 1;
    write(&cut, &all[late..]);
    for packet in dissected_by_tshark(&cut, &[]) {
        assert_eq!(packet[2..12].concat(), "", "{packet:?}");
        assert!(packet[12].ends_with("was seen"), "{packet:?}");
    }

    // Without the packet that defines a template, packets that refer to it cannot be parsed further.
    let defines =
        |packet: &Value| packet["format"] == "co_common" && !values_of(packet, "outline length").is_empty();
    let cut_out: Vec<_> = all
        .iter()
        .zip(&shown)
        .filter(|(_, shown)| !defines(shown))
        .map(|(packet, _)| packet.clone())
        .collect();
    assert!(cut_out.len() < all.len());
    write(&cut, &cut_out);
    let seen = dissected_by_tshark(&cut, &[]);
    assert!(seen.iter().any(|packet| packet[12].ends_with("is not known")), "{seen:?}");
    // The CRC detects control fields of which a change was missed.
    let is_told = |packet: &Vec<String>| packet[12].is_empty() || packet[6] == "wrong";
    assert!(seen.iter().all(|packet| is_told(packet) != packet[9].is_empty()), "{seen:?}");
}

/// No octets make the script fail, and a damaged packet changes no context.
#[test]
fn damaged_packets_are_survived() {
    let Some(thinair) = prepared() else { return };
    let folder = OutputFolder::new("damaged");
    let (rohc, damaged) = (folder.path("rohc.pcap"), folder.path("damaged.pcap"));
    let capture = root().join("captures/coap_udp4_block1_block2.pcap");
    ok(run(&thinair, &["compress"], &[PROFILES]).args([&capture, &rohc]).output().unwrap());
    let all = rohc_packets(&rohc);
    let shown = &dissected(&thinair, &rohc, &[PROFILES])[0];
    let ir = &all[0];
    assert_eq!(ir[0], 0xFD);

    let header = shown["decompressed"]["header_octets_in"].as_u64().unwrap() as usize;
    let mut packets: Vec<_> = (0..header * 8)
        .map(|bit| {
            let mut packet = ir.clone();
            packet[bit / 8] ^= 1 << (bit % 8);
            packet
        })
        .collect();
    packets.push(all.iter().find(|packet| packet[0] < 0xE0).unwrap().clone());
    write(&damaged, &packets);
    for packet in dissected_by_tshark(&damaged, &[]) {
        let is_refused = packet[6] != "right" && !packet[12].is_empty();
        assert!(is_refused || packet[2] != "0x0181", "{packet:?}");
    }

    // Every packet truncated at every octet, after a packet that establishes its context; and with every octet changed.
    let mut packets = all.clone();
    for packet in all.iter().filter(|packet| packet.len() < 64).take(60) {
        packets.extend((1..packet.len()).map(|len| packet[..len].to_vec()));
        for (at, add) in (0..packet.len()).zip((1..=255).cycle()) {
            let mut packet = packet.clone();
            packet[at] = packet[at].wrapping_add(add);
            packets.push(packet);
        }
    }
    write(&damaged, &packets);
    assert_eq!(dissected_by_tshark(&damaged, &[]).len(), packets.len());
}

#[test]
fn feedback_is_read_in_the_form_of_its_profile() {
    let Some(thinair) = prepared() else { return };
    let folder = OutputFolder::new("feedback");
    let (rohc, feedback) = (folder.path("rohc.pcap"), folder.path("feedback.pcap"));
    let capture = root().join("captures/coap_udp4_observe.pcap");
    for (profiles, form) in
        [(PROFILES, "FEEDBACK-2, RFC 5225"), ("--profiles=udp,ip", "FEEDBACK-2, RFC 3095")]
    {
        let mut compress = run(&thinair, &["compress"], &[profiles, "--mode=o"]);
        ok(compress.arg("--feedback-out").args([&feedback, &capture, &rohc]).output().unwrap());
        let fields =
            ["rohc_coap.feedback_form", "rohc_coap.crc_status", "rohc_coap.acktype", "_ws.expert.message"];
        let mut shown = fields_of(&feedback, &[], &fields);
        // FEEDBACK-1 is one octet, the same in all profiles.
        shown.retain(|element| element[0] != "FEEDBACK-1");
        assert!(!shown.is_empty());
        for element in shown {
            assert_eq!(element, [form, "right", "0", ""]);
        }
    }
    // Piggybacked feedback after padding, with a CID: FEEDBACK-1 has 8 bits of the MSN.
    write(&feedback, &[vec![0xE0, 0xF2, 0xE8, 17]]);
    let fields = ["rohc_coap.cid", "rohc_coap.acked", "rohc_coap.padding", "_ws.expert.message"];
    assert_eq!(fields_of(&feedback, &[], &fields), [["8", "17", "e0", ""]]);
}

/// Path of the command, if tshark is installed and runs Lua.
fn prepared() -> Option<String> {
    if !tshark::runs_lua() {
        return None;
    }
    Some(command())
}

/// CoAP over UDP of real stacks; those over IPv4 also without UDP checksums.
fn captures(folder: &OutputFolder) -> Vec<PathBuf> {
    let all = thinair_tests::files(&root().join("captures"), ".pcap");
    let mut captures: Vec<_> = all
        .into_iter()
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("coap_udp"))
        .collect();
    for capture in captures.clone() {
        let mut packets = packets(&capture);
        if packets[0][0] != 0x45 {
            continue;
        }
        for packet in &mut packets {
            packet[26..28].copy_from_slice(&[0, 0]);
        }
        let path = folder.path(&format!("zero_{}", capture.file_name().unwrap().to_string_lossy()));
        tshark::write(LinkType::RAW, &path, &packets);
        captures.push(path);
    }
    captures
}

/// Output of `thinair rohc dissect` for each packet.
fn dissected(thinair: &str, rohc: &Path, options: &[&str]) -> Vec<Value> {
    let channel: Vec<_> =
        options.iter().filter(|option| !["--ethertype", "--mode=o"].contains(*option)).copied().collect();
    let shown = ok(run(thinair, &["dissect", "--json"], &channel).arg(rohc).output().unwrap());
    let shown = String::from_utf8(shown.stdout).unwrap();
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// [`FIELDS`] of every packet.
fn dissected_by_tshark(file: &Path, options: &[&str]) -> Vec<Vec<String>> {
    fields_of(file, options, FIELDS)
}

fn fields_of(file: &Path, options: &[&str], fields: &[&str]) -> Vec<Vec<String>> {
    tshark::fields_of(&[root().join("extras/wireshark/thinair_coap.lua")], file, options, fields)
}

/// IP packets of a capture.
fn packets(file: &Path) -> Vec<Vec<u8>> {
    records(file, |record| record.network_packet().unwrap().packet.to_vec())
}

fn rohc_packets(file: &Path) -> Vec<Vec<u8>> {
    records(file, |record| record.rohc_packet().unwrap().packet.to_vec())
}

fn records(file: &Path, take: impl Fn(&thinair_capture::Record<'_>) -> Vec<u8>) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(fs::File::open(file).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next_record() {
        packets.push(take(&record.unwrap()));
    }
    packets
}

/// Writes ROHC packets.
fn write(path: &Path, packets: &[Vec<u8>]) {
    tshark::write(LinkType::USER0, path, packets);
}

fn run(thinair: &str, what: &[&str], options: &[&str]) -> Command {
    let mut command = Command::new(thinair);
    command.arg("rohc").args(what).args(options);
    command
}
