//! Third-party packets: streams compressed by rohc-lib, decoded by our decompressor.
//!
//! The vectors lie where `THINAIR_SHARED` points (`vectors/rohc-lib`). A golden alternates two compressors over
//! the same source packets, with the feedback of the other direction piggybacked in front.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use thinair_capture::{ETHERNET_HEADER_LEN, Error, LinkType, Reader};
use thinair_rohc::channel::{Channel, ProfileSet};
use thinair_rohc::cid::CidSpace;
use thinair_rohc::decompressor::{Decompressor, DecompressorConfig, DecompressorMemory};
use thinair_wire::time::Instant;

/// The folder of vectors, if the environment names one.
fn vectors() -> Option<PathBuf> {
    let shared = std::env::var_os("THINAIR_SHARED")?;
    let folder = Path::new(&shared).join("vectors/rohc-lib");
    assert!(folder.is_dir(), "THINAIR_SHARED is set, but {} is absent", folder.display());
    Some(folder)
}

/// Octets after the link header of every record, without padding of the link.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next_record() {
        let record = match record {
            Ok(record) => record,
            Err(Error::Truncated { .. }) => break,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        let octets = match (record.rohc_packet(), record.network_packet()) {
            (Ok(rohc), _) => rohc.packet,
            (Err(_), Ok(network)) => network.packet,
            (Err(_), Err(_)) if record.link_type == LinkType::ETHERNET => &record.data[ETHERNET_HEADER_LEN..],
            (Err(_), Err(_)) => record.data,
        };
        records.push(octets.to_vec());
    }
    records
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("source.pcap")) {
            found.push(path);
        }
    }
}

fn decompressor(large: bool) -> Decompressor<'static> {
    let cids = if large { CidSpace::Large } else { CidSpace::Small };
    let channel = Channel::new(cids, cids.highest(), ProfileSet::v1()).unwrap();
    Decompressor::new(DecompressorConfig::new(channel), DecompressorMemory::owned(&channel, 64))
}

#[test]
fn goldens_decode_to_their_source_packets() {
    let Some(folder) = vectors() else {
        println!("skipped: THINAIR_SHARED is not set (168 goldens)");
        return;
    };
    let mut found = Vec::new();
    sources(&folder.join("non_regression/rfc3095/inputs"), &mut found);
    let (mut good, mut all) = (0, 0);
    let mut bad = Vec::new();
    for source in &found {
        let expected = records(source);
        let folder = source.parent().unwrap();
        let mut goldens: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).filter(|p| p.file_name().unwrap().to_string_lossy().starts_with("rohc_")).collect();
        goldens.sort();
        for golden in goldens {
            let name = golden.file_name().unwrap().to_string_lossy().into_owned();
            let large = name.contains("largecid");
            let mut sides = [decompressor(large), decompressor(large)];
            let mut out = vec![0; 70_000];
            let mut result = Ok(());
            let rec = records(&golden);
            if rec.len() != expected.len() * 2 { result = Err(format!("{} records for {} packets", rec.len(), expected.len())); }
            for (i, record) in rec.iter().enumerate() {
                match sides[i % 2].decompress(Instant::from_millis(i as u64), record, &mut out) {
                    Ok(done) if expected.get(i / 2).is_some_and(|e| *e == out[..done.len]) => {}
                    Ok(done) => { result = Err(format!("record {i} {:?} differs {:02x?} {:02x?}", done, &out[..done.len.min(60)], &expected.get(i/2).map(|e| &e[..e.len().min(60)]))); break }
                    Err(error) => { result = Err(format!("record {i}: {error} {:02x?}", &record[..record.len().min(40)])); break }
                }
            }
            all += 1;
            match result {
                Ok(()) => good += 1,
                Err(e) => bad.push(format!("{}: {e}", golden.strip_prefix(&vectors().unwrap()).unwrap().display())),
            }
        }
    }
    for b in &bad { println!("{b}"); }
    println!("{good} of {all}");
}
