//! ROHC packets on record, in `tests/vectors`: they are decompressed to their source, and the source is compressed to them.
//!
//! They need no packets of others: every format family has some. `THINAIR_BLESS=1` writes them anew.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use thinair_capture::Reader;

/// Number of files.
const FILES: usize = 14;

/// Option for the end of a name.
fn profiles(end: &str) -> &str {
    match end {
        "tcp" => "v1,tcp",
        "coap" => "v1,coap",
        other => other,
    }
}

#[test]
fn vectors_are_those_of_their_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let mut files: Vec<_> =
        fs::read_dir(root.join("tests/vectors")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "pcap"));
    files.sort();
    for vector in &files {
        let (source, end) = vector.file_stem().unwrap().to_str().unwrap().split_once('.').unwrap();
        let source = root.join("captures").join(source).with_extension("pcap");
        let [back, again] = ["back.pcap", "again.pcap"].map(|name| folder.path().join(name));
        if std::env::var_os("THINAIR_BLESS").is_some() {
            thinair("compress", &source, vector, end);
        }
        thinair("decompress", vector, &back, end);
        assert!(packets(&back) == packets(&source), "{}: other packets", vector.display());
        thinair("compress", &source, &again, end);
        assert!(packets(&again) == packets(vector), "{}: other octets are sent", vector.display());
    }
    assert_eq!(files.len(), FILES);
}

fn thinair(what: &str, from: &PathBuf, to: &PathBuf, end: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thinair"));
    let output =
        command.args(["rohc", what]).args([from, to]).args(["--profiles", profiles(end)]).output().unwrap();
    assert!(output.status.success(), "{what} {}: {output:?}", from.display());
}

/// Octets of the records: IP packets, or ROHC packets.
fn packets(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next_record() {
        let record = record.unwrap();
        packets.push(record.network_packet().map_or(record.data, |network| network.packet).to_vec());
    }
    packets
}
