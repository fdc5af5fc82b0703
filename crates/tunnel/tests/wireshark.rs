//! Comparison with tshark and the ULE dissector of `extras/wireshark`, for datagrams of TS Packets, with and
//! without RTP headers, and for BBFrames: it finds the sent units, and all CRCs correct.
//!
//! The tests are skipped, with a message, without a tshark that supports Lua.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use thinair_capture::{LinkType, Timestamp, Writer};
use thinair_tunnel::packaging::{Packager, PackagerConfig, rtp};
use thinair_tunnel::site_config::{Others, Packaging};
use thinair_tunnel::unit::{Protocol, Unit};
use thinair_ule::Pid;
use thinair_wire::time::Instant;

const PORT: u16 = 5_004;

#[test]
fn tshark_reads_ts_packets_with_rtp_and_without() {
    if !is_there("with Lua") {
        return;
    }
    let packaging = Packaging::Ts {
        pid: Pid::new(0x35).unwrap(),
        per_datagram: 7,
        flush: Duration::ZERO,
        psi: Some(Duration::from_secs(1)),
        bitrate: None,
        npa: None,
    };
    let units = units();
    let start = rtp::Start { ssrc: 7, sequence_number: 0xFFFE };
    for rtp in [None, Some(start)] {
        let datagrams = datagrams(&packaging, rtp, &units);
        let decode = ["-d".to_owned(), format!("udp.port=={PORT},rtp")];
        let options = if rtp.is_some() { &decode[..] } else { &[] };
        let name = if rtp.is_some() { "rtp.pcap" } else { "ts.pcap" };
        let fields = ["ule.pdu", "ule.crc_status", "ule.type", "rtp.seq", "rtp.p_type", "_ws.malformed"];
        let told = tshark(name, &datagrams, options, &fields);
        let all = |i: usize| told.iter().flat_map(|told| told[i].clone()).collect::<Vec<_>>();
        assert_eq!(all(0), units.iter().map(|unit| hex(unit)).collect::<Vec<_>>());
        assert_eq!(all(1), vec!["right"; units.len()]);
        assert_eq!(all(2), vec!["0x22f1"; units.len()]);
        let numbers = (0xFFFE_u32..).map(|number| (number & 0xFFFF).to_string());
        let count = if rtp.is_some() { datagrams.len() } else { 0 };
        assert!(count == 0 || count > 3);
        assert_eq!(all(3), numbers.take(count).collect::<Vec<_>>());
        assert_eq!(all(4), vec!["33"; count]);
    }
}

#[test]
fn tshark_reads_bb_frames() {
    if !is_there("") {
        return;
    }
    let packaging = Packaging::Gse {
        flush: Duration::ZERO,
        npa: None,
        total_length: thinair_ule::gse::TotalLength::Checked,
        divided: false,
    };
    let units = units();
    // Mode adaptation in its format of four octets, which tshark needs to recognize BBFrames.
    let mut datagrams = datagrams(&packaging, None, &units);
    datagrams.iter_mut().for_each(|datagram| drop(datagram.splice(0..0, [0xB8, 0x2C, 0, 0])));
    let mut options = vec!["-d".to_owned(), format!("udp.port=={PORT},dvb-s2_modeadapt")];
    for preference in ["full_decode:FALSE", "decode_df:TRUE"] {
        options.extend(["-o".to_owned(), format!("dvb-s2_modeadapt.{preference}")]);
    }
    let fields = ["dvb-s2_bb.crc.status", "dvb-s2_gse.proto", "dvb-s2_gse.data"];
    let told = tshark("gse.pcap", &datagrams, &options, &fields);
    let all = |i: usize| told.iter().flat_map(|told| told[i].clone()).collect::<Vec<_>>();
    assert_eq!(all(0), vec!["1"; datagrams.len()]);
    let kinds = all(1);
    assert!(kinds.len() == units.len() && kinds.iter().all(|kind| kind == "0x22f1"), "{kinds:?}");
    // Octets of the units, regardless of fragmentation.
    let sent: String = units.iter().map(|unit| hex(unit)).collect();
    assert_eq!(all(2).concat(), sent);
}

/// ROHC packets of various lengths.
fn units() -> Vec<Vec<u8>> {
    (0..60_usize).map(|i| (0..i * 29 % 400 + 3).map(|j| (i * 7 + j) as u8 & 0x7F).collect()).collect()
}

fn datagrams(packaging: &Packaging, rtp: Option<rtp::Start>, units: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let config = PackagerConfig { rtp, ..PackagerConfig::new(1_400) };
    let others = Others::Peers(Vec::new());
    let mut packager = Packager::new(Instant::ZERO, packaging, &others, config).unwrap();
    let mut datagrams = Vec::new();
    for octets in units {
        let unit = Unit { protocol: Protocol::Rohc, to: None, large: false, octets };
        packager.push(Instant::ZERO, unit, &mut |body| datagrams.push(body.octets.to_vec())).unwrap();
    }
    packager.pause(Instant::ZERO, &mut |body| datagrams.push(body.octets.to_vec()));
    datagrams
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// True if there is a tshark whose version text contains `needed`; otherwise prints a message.
fn is_there(needed: &str) -> bool {
    let version = Command::new("tshark").arg("-v").output();
    let is_there = version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains(needed));
    if !is_there {
        println!("skipped: no tshark {needed}");
    }
    is_there
}

/// Returns the values of fields of each datagram.
fn tshark(name: &str, payloads: &[Vec<u8>], options: &[String], fields: &[&str]) -> Vec<Vec<Vec<String>>> {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut writer = Writer::new(Vec::new(), LinkType::RAW).unwrap();
    for (time, payload) in (0..).zip(payloads) {
        writer.write(Timestamp::from_nanos(time * 1_000_000), &datagram(payload)).unwrap();
    }
    fs::write(&file, writer.into_inner()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../extras/wireshark/ule.lua");
    let mut tshark = Command::new("tshark");
    tshark.arg("-X").arg(format!("lua_script:{}", script.display())).arg("-r").arg(&file).args(options);
    tshark.args(["-T", "fields", "-E", "separator=|"]);
    let done = tshark.args(fields.iter().flat_map(|field| ["-e", field])).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    let values =
        |field: &str| field.split(',').filter(|value| !value.is_empty()).map(str::to_owned).collect();
    let told: Vec<Vec<_>> = text.lines().map(|line| line.split('|').map(values).collect()).collect();
    assert_eq!(told.len(), payloads.len());
    told
}

/// An IPv4 packet with a UDP datagram, without checksums.
fn datagram(payload: &[u8]) -> Vec<u8> {
    let udp = u16::try_from(8 + payload.len()).unwrap();
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    for word in [PORT, PORT, udp, 0] {
        packet.extend(word.to_be_bytes());
    }
    packet.extend_from_slice(payload);
    packet
}
