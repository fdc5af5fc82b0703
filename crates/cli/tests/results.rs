//! `analyze` as a function gives what the command writes, octet by octet.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Output};

use thinair_capture::{LinkType, Timestamp, Writer};
use thinair_cli::analyze::{ReadAt, Reading, Results, check};

const COAP: &str = "coap_udp6_get_con.pcap";
const RTP: &str = "rtp_udp4_pcmu.pcap";

struct Octets(Vec<u8>);

impl ReadAt for Octets {
    fn read_at(&self, out: &mut [u8], position: u64) -> io::Result<usize> {
        let rest = self.0.get(position as usize..).unwrap_or_default();
        let len = rest.len().min(out.len());
        out[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

/// Runs the command in a folder.
fn thinair(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thinair"));
    command.arg("analyze").args(arguments).current_dir(folder).output().unwrap()
}

fn results(folder: &Path, names: &[&str], options: &[&str], tariff: Option<&str>) -> anyhow::Result<Results> {
    let octets = |name: &&str| fs::read(folder.join(name)).unwrap();
    let captures =
        names.iter().map(|name| ((*name).to_owned(), Box::new(Octets(octets(name))) as Box<dyn ReadAt>));
    let options = options.iter().map(|option| (*option).to_owned());
    Results::of(options, tariff.map(|text| ("price list", text)), captures.collect(), |_| ())
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn documents_are_those_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in [COAP, RTP] {
        fs::copy(Path::new("../../captures").join(name), folder.join(name)).unwrap();
    }
    fs::write(folder.join("letter.txt"), "no capture at all").unwrap();
    let cut = fs::read(folder.join(RTP)).unwrap();
    fs::write(folder.join("cut.pcap"), &cut[..5_000]).unwrap();
    let tariff = fs::read_to_string("../../docs/tariffs/skylo-monogoto.toml").unwrap();
    fs::write(folder.join("tariff.toml"), &tariff).unwrap();

    for (names, options, tariff) in [
        (&[COAP][..], &[][..], None),
        (&[COAP, "letter.txt", "cut.pcap"], &["--mode", "o", "--schemes", "rohc-v1,schc"], None),
        (&[RTP, COAP], &["--schemes", "coap", "--loss", "1"], Some(&*tariff)),
    ] {
        let results = results(folder, names, options, tariff).unwrap();
        let priced: &[&str] = if tariff.is_some() { &["--tariff", "tariff.toml"] } else { &[] };
        let same = [options, names, priced].concat();
        let told = thinair(folder, &[&same[..], &["--json", "--html", "report.html"]].concat());
        assert_eq!(
            written(|out| results.write_json(out)),
            String::from_utf8(told.stdout).unwrap(),
            "{names:?}"
        );
        assert_eq!(results.report().to_html(), fs::read_to_string(folder.join("report.html")).unwrap());
        let told = thinair(folder, &[&same[..], &["--csv"]].concat());
        assert_eq!(written(|out| results.write_csv(out)), String::from_utf8(told.stdout).unwrap());
        let notes: String = results.notes().iter().map(|note| format!("thinair: {note}\n")).collect();
        assert_eq!(notes, String::from_utf8(told.stderr).unwrap());
        assert!(results.report().to_html().contains(&results.report().to_html_body()));
    }
}

#[test]
fn errors_are_those_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("letter.txt"), "no capture at all").unwrap();
    let error = |options: &[&str], tariff| {
        format!("{:#}", results(folder, &["letter.txt"], options, tariff).unwrap_err())
    };
    let stderr = |options: &[&str]| {
        let told = thinair(folder, &[options, &["letter.txt"]].concat());
        String::from_utf8(told.stderr).unwrap()
    };
    assert_eq!(format!("thinair: {}\n", error(&[], None)), stderr(&[]));
    let checked = check("letter.txt", &Octets(b"no capture at all".to_vec())).unwrap_err();
    assert_eq!(format!("{checked:#}"), error(&[], None));
    assert_eq!(error(&["--loss", "101"], None).lines().next(), stderr(&["--loss", "101"]).lines().next());
    assert!(error(&[], Some("name = 1")).starts_with("price list, line 1: "));
    for option in ["--tariff", "--html"] {
        assert!(error(&[option, "file"], None).contains("options of the command"), "{option}");
    }
    assert!(error(&["--interface", "lo"], None).contains("cannot be used with"));
}

#[test]
fn flows_without_all_figures_are_one_row_and_readings_are_announced() {
    let octets = fs::read(Path::new("../../captures").join(COAP)).unwrap();
    let capture: (_, Box<dyn ReadAt>) = (COAP.to_owned(), Box::new(Octets(octets)));
    let mut readings = Vec::new();
    let options = ["--most-flows", "1"].map(str::to_owned);
    let results = Results::of(options, None, vec![capture], |reading| readings.push(reading)).unwrap();
    assert_eq!(readings, [Reading::Survey, Reading::Learning, Reading::Analysis]);
    let flows = results.flows();
    let packets = |rows: &str| flows[rows][0]["packets"].as_u64().unwrap();
    assert_eq!(flows["rows"].as_array().unwrap().len(), 1);
    assert_eq!(flows["totals"][0]["flow"], "1 smaller flow, listed in the CSV file");
    assert_eq!(packets("rows") + packets("totals"), 600);
    assert!(results.configuration().unwrap().starts_with("[channel]\n"));
}

/// Rows are written a thousand at a time.
#[test]
fn a_table_of_many_flows_has_one_header_and_every_flow() {
    const FLOWS: u16 = 2_001;
    let mut file = Writer::new(Vec::new(), LinkType::RAW).unwrap();
    for flow in 0..FLOWS {
        let [high, low] = flow.to_be_bytes();
        let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 10, 0, high, low, 192, 0, 2, 1];
        file.write(Timestamp::from_nanos(flow.into()), &packet).unwrap();
    }
    let capture: (_, Box<dyn ReadAt>) = ("flows.pcap".to_owned(), Box::new(Octets(file.into_inner())));
    let options = ["--schemes", "rohc-v1", "--mode", "o", "--most-flows", "10"].map(str::to_owned);
    let results = Results::of(options, None, vec![capture], |_| ()).unwrap();
    let csv = written(|out| results.write_csv(out));
    assert_eq!(csv.lines().filter(|line| line.starts_with("path,")).count(), 1);
    let sources: BTreeSet<_> = csv.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!((csv.lines().count(), sources.len()), (usize::from(FLOWS) + 1, usize::from(FLOWS)));
}
