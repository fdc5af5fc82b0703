//! Third-party packets: streams compressed by rohc-lib and others, decoded by our decompressor, and their sources
//! through our own compressor.
//!
//! The vectors lie where `THINAIR_SHARED` points (`vectors/rohc-lib`). A golden alternates two compressors over
//! the same source packets, with the feedback of the other direction piggybacked in front, so two decompressors
//! read it in turn.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use thinair_capture::{ETHERNET_HEADER_LEN, Error, LinkType, Reader};
use thinair_rohc::packet::{self, Body};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Instant, Mode, ProfileSet,
};

/// The folder of vectors, if the environment names one.
fn vectors(skipped: &str) -> Option<PathBuf> {
    let Some(shared) = std::env::var_os("THINAIR_SHARED") else {
        println!("skipped, because THINAIR_SHARED is not set: {skipped}");
        return None;
    };
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
            (Err(_), Err(_)) if record.link_type == LinkType::ETHERNET => {
                record.data.get(ETHERNET_HEADER_LEN..).unwrap_or_default()
            }
            (Err(_), Err(_)) => record.data,
        };
        records.push(octets.to_vec());
    }
    records
}

/// The files below a folder whose name is accepted, sorted.
fn files(folder: &Path, accept: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path, accept));
        } else if accept(&path.file_name().unwrap().to_string_lossy()) {
            found.push(path);
        }
    }
    found
}

fn decompressor(cids: CidSpace) -> Decompressor<'static> {
    let channel = Channel::new(cids, cids.highest(), ProfileSet::v1()).unwrap();
    let config = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) };
    Decompressor::new(config, DecompressorMemory::owned(&channel, 64))
}

fn cids_of(golden: &Path) -> CidSpace {
    let large = golden.to_string_lossy().contains("largecid");
    if large { CidSpace::Large } else { CidSpace::Small }
}

/// The profiles that the IR and IR-DYN packets of a golden name, as their low octets.
fn profiles_named(records: &[Vec<u8>], cids: CidSpace) -> Vec<u8> {
    let named = |record: &Vec<u8>| {
        let Ok(packet::Parts { body: Body::Header(header), .. }) = packet::parts(record) else { return None };
        let header = match cids {
            CidSpace::Small if header[0] & 0xF0 == 0xE0 => &header[1..],
            _ => header,
        };
        let is_ir = header[0] & 0xFE == 0xFC || header[0] == 0xF8;
        let cid = match cids {
            CidSpace::Small => 0,
            CidSpace::Large => 1 + usize::from(header[1] >> 7),
        };
        is_ir.then(|| header[1 + cid])
    };
    records.iter().filter_map(named).collect()
}

/// What went wrong with a golden, if anything.
fn decode(records: &[Vec<u8>], expected: &[Vec<u8>], cids: CidSpace) -> Result<(), String> {
    if records.len() != expected.len() * 2 {
        return Err(format!("{} records for {} packets", records.len(), expected.len()));
    }
    let mut sides = [decompressor(cids), decompressor(cids)];
    let mut out = vec![0; 70_000];
    for (i, record) in records.iter().enumerate() {
        let now = Instant::from_millis(10 * i as u64);
        let done = sides[i % 2].decompress(now, record, &mut out);
        let done = done.map_err(|error| format!("record {}: {error}", i + 1))?;
        if out[..done.len] != expected[i / 2] {
            return Err(format!("record {}: {} gives another packet", i + 1, done.format.name()));
        }
    }
    Ok(())
}

/// 21 streams with 8 goldens each, whose IR packets name profiles 0x0000, 0x0002 and 0x0004 alone.
#[test]
fn goldens_decode_to_their_source_packets() {
    let Some(folder) = vectors("168 goldens") else { return };
    let (mut good, mut all) = (0, 0);
    for source in files(&folder.join("non_regression/rfc3095/inputs"), &|name| name == "source.pcap") {
        let stream = source.parent().unwrap();
        let goldens: Vec<_> = files(stream, &|name| name.starts_with("rohc_"))
            .into_iter()
            .filter(|golden| golden.parent() == Some(stream))
            .map(|golden| (records(&golden), cids_of(&golden), golden))
            .collect();
        let ours = |(records, cids, _): &(Vec<Vec<u8>>, CidSpace, PathBuf)| {
            profiles_named(records, *cids).iter().all(|profile| matches!(profile, 0 | 2 | 4))
        };
        if goldens.is_empty() || !goldens.iter().all(ours) {
            continue;
        }
        let expected = records(&source);
        for (records, cids, golden) in goldens {
            all += 1;
            match decode(&records, &expected, cids) {
                Ok(()) => good += 1,
                Err(why) => println!("{}: {why}", golden.display()),
            }
        }
    }
    println!("{good} of {all} goldens decode to their source packets");
    assert_eq!((good, all), (168, 168));
}

/// A capture of another vendor: 23 packets of the IP profile with random IP-IDs.
#[test]
fn a_third_party_capture_decodes() {
    let Some(folder) = vectors("1 third-party capture") else { return };
    let folder = folder.join("interop/inputs/Effnet-IPonly-rnd-ip-id-without-nbo");
    let expected = records(&folder.join("ref_uncomp.pcap"));
    let mut decompressor = decompressor(CidSpace::Small);
    let mut out = vec![0; 2_000];
    for (i, record) in records(&folder.join("source_rohc.pcap")).iter().enumerate() {
        let done = decompressor.decompress(Instant::from_millis(i as u64), record, &mut out).unwrap();
        assert_eq!(&out[..done.len], expected[i], "record {}", i + 1);
    }
}

/// Packets that were made to break decompressors: each is refused or decoded, with either CID space.
#[test]
fn malformed_packets_are_refused_without_a_panic() {
    let Some(folder) = vectors("51 captures of malformed packets") else { return };
    let (mut captures, mut refused) = (0, 0);
    for path in
        files(&folder.join("robustness/malformed_rohc_packets/inputs"), &|name| name.ends_with(".pcap"))
    {
        let records = records(&path);
        for cids in [CidSpace::Small, CidSpace::Large] {
            let mut decompressor = decompressor(cids);
            let mut out = vec![0; 70_000];
            for (i, record) in records.iter().enumerate() {
                let result = decompressor.decompress(Instant::from_millis(i as u64), record, &mut out);
                refused += usize::from(result.is_err());
            }
        }
        captures += 1;
    }
    println!("{captures} captures, {refused} packets refused");
    assert!(captures > 50 && refused > 500);
}

/// Every IP capture among the vectors goes through our compressor and comes back.
#[test]
fn sources_of_all_streams_come_back_through_our_compressor() {
    let Some(folder) = vectors("sources of all streams") else { return };
    let is_source = |name: &str| name.starts_with("source.pcap");
    let mut paths = files(&folder.join("non_regression"), &is_source);
    for more in ["functional/packet_types", "functional/context_reuse", "robustness/empty_payload"] {
        paths.extend(files(&folder.join(more), &|name| name.ends_with(".pcap")));
    }
    let mut packets = 0;
    for path in paths {
        for cids in [CidSpace::Small, CidSpace::Large] {
            let channel = Channel::new(cids, cids.highest(), ProfileSet::v1()).unwrap();
            let memory = CompressorMemory::owned(&channel, 64);
            let mut compressor = Compressor::new(CompressorConfig::new(channel), memory);
            let mut decompressor = decompressor(cids);
            let (mut rohc, mut back) = (vec![0; 70_000], vec![0; 70_000]);
            for (i, packet) in records(&path).iter().enumerate() {
                let now = Instant::from_millis(10 * i as u64);
                let Ok(compressed) = compressor.compress(now, packet, &mut rohc) else { continue };
                let done = decompressor.decompress(now, &rohc[..compressed.len], &mut back);
                let done = done.unwrap_or_else(|error| {
                    panic!("{}: record {}: {error} {compressed:?}", path.display(), i + 1)
                });
                assert_eq!(&back[..done.len], packet, "{}: record {}", path.display(), i + 1);
                packets += 1;
            }
        }
    }
    println!("{packets} packets came back");
    assert!(packets > 5_000);
}

/// Octets that our compressor needs for a stream in O-mode, with the repetitions and the window of the golden.
fn our_octets(packets: &[Vec<u8>], cids: CidSpace) -> usize {
    let channel = Channel::new(cids, cids.highest(), ProfileSet::v1()).unwrap();
    // Their compressor sends constant IP-IDs by SID in every profile.
    let config = CompressorConfig { sid_everywhere: true, ..CompressorConfig::new(channel) };
    let mut compressor = Compressor::new(config, CompressorMemory::owned(&channel, 64));
    let mut decompressor = decompressor(cids);
    let (mut rohc, mut back) = (vec![0; 70_000], vec![0; 70_000]);
    let mut octets = 0;
    for (i, packet) in packets.iter().enumerate() {
        let now = Instant::from_millis(10 * i as u64);
        let Ok(compressed) = compressor.compress(now, packet, &mut rohc) else { continue };
        octets += compressed.len;
        decompressor.decompress(now, &rohc[..compressed.len], &mut back).unwrap();
        let mut feedback = [0; 32];
        while let Some(len) = decompressor.poll_feedback(&mut feedback) {
            for element in packet::parts(&feedback[..len]).unwrap().feedback {
                compressor.receive_feedback(now, element).unwrap();
            }
        }
    }
    octets
}

/// The goldens are also a bar: octets of the same stream, without the feedback in front.
#[test]
fn our_packets_are_no_larger_than_theirs() {
    let Some(folder) = vectors("sizes of 21 streams") else { return };
    let mut streams = 0;
    for source in files(&folder.join("non_regression/rfc3095/inputs"), &|name| name == "source.pcap") {
        let packets = records(&source);
        for (name, cids) in [("small", CidSpace::Small), ("large", CidSpace::Large)] {
            let golden = source.with_file_name(format!("rohc_maxcontexts0_wlsb4_{name}cid.pcap"));
            let golden = records(&golden);
            let named = profiles_named(&golden, cids);
            // One stream holds no IP packets at all, and is not ours to compress.
            let is_ip = packets.iter().all(|packet| matches!(packet.first().map(|o| o >> 4), Some(4 | 6)));
            if !is_ip || !named.iter().all(|profile| matches!(profile, 0 | 2 | 4)) {
                continue;
            }
            let theirs: usize = golden
                .iter()
                .step_by(2)
                .map(|record| match packet::parts(record).unwrap().body {
                    Body::Header(header) => header.len(),
                    Body::Empty | Body::Segment { .. } => 0,
                })
                .sum();
            let ours = our_octets(&packets, cids);
            println!("{theirs} -> {ours} octets, {} packets, {}", packets.len(), source.display());
            assert!(ours <= theirs, "{}", source.display());
            streams += 1;
        }
    }
    assert_eq!(streams, 40);
}
