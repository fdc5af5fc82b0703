//! Profile 0x0006: TCP streams compressed by rohc-lib and others, and their sources through our compressor.

use std::collections::BTreeMap;
use std::path::Path;

use thinair_rohc::packet::{self, PacketBody};
use thinair_rohc::{
    Channel, CidSpace, CompressorConfig, Decompressor, DecompressorConfig, DecompressorMemory, Format,
    Instant, Interop, Mode, ProfileId, ProfileSet,
};

use crate::streams::{Stream, cids_of, decode_all, streams_in};
use crate::{ROOM, RohcPair, captures, compressor_config, files, records, stem, vectors};

fn channel(cids: CidSpace) -> Channel {
    Channel::new(cids, cids.highest(), ProfileSet::v1().with(ProfileId::Tcp).unwrap()).unwrap()
}

fn decompressor(cids: CidSpace) -> Decompressor<'static> {
    let channel = channel(cids);
    let config = DecompressorConfig {
        mode: Mode::Optimistic,
        interop: Interop { deliver_empty: true, ..Interop::STANDARD },
        ..DecompressorConfig::new(channel)
    };
    Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(64)))
}

/// Returns each stream of their tests of RFC 6846: its source, and its goldens.
fn streams(folder: &Path) -> Vec<Stream> {
    let folder = folder.join("non_regression/rfc6846/inputs");
    streams_in(&folder, &|name| name == "source.pcap", "rohc_")
}

/// 61 streams with 8 goldens each.
#[test]
fn goldens_of_tcp_decode_to_their_source_packets() {
    let Some(folder) = vectors("goldens of profile 0x0006") else { return };
    assert_eq!(decode_all(&streams(&folder), decompressor), (488, 488));
}

/// Packets of a base station tester: an IR, and a stream of IRs that ends with a co_common.
#[test]
fn packets_of_another_vendor_decode() {
    let Some(folder) = vectors("1 third-party capture of TCP") else { return };
    let folder = folder.join("interop/inputs/Aeroflex-TM500-1");
    let expected = records(&folder.join("ref_uncomp.pcap"));
    let mut decompressor = decompressor(CidSpace::Small);
    let mut out = vec![0; 2_000];
    let mut decoded = 0;
    for (i, record) in records(&folder.join("source_rohc.pcap")).iter().enumerate() {
        let done = decompressor.decompress(Instant::from_millis(i as u64), record, &mut out).unwrap();
        assert_eq!((&out[..done.len], done.profile), (&expected[i][..], ProfileId::Tcp), "record {}", i + 1);
        decoded += 1;
    }
    assert_eq!(decoded, 1);
}

/// Every IP capture among the vectors is compressed with the profile and restored; prints the octets of TCP
/// with and without it.
#[test]
fn sources_of_all_streams_come_back_with_the_profile_too() {
    let Some(folder) = vectors("sources of all streams, with profile 0x0006") else { return };
    let mut paths = files(&folder.join("non_regression"), &|name| name.starts_with("source.pcap"));
    for more in ["functional/packet_types", "functional/context_reuse", "robustness/lost_packet"] {
        paths.extend(captures(&folder.join(more)));
    }
    let mut formats = BTreeMap::<Format, usize>::new();
    let (mut packets, mut octets) = (0, [0; 2]);
    for path in paths {
        for (cids, mode) in [(CidSpace::Small, Mode::Unidirectional), (CidSpace::Large, Mode::Optimistic)] {
            let mut pair = RohcPair::new(compressor_config(channel(cids)), mode);
            for (i, packet) in records(&path).iter().enumerate() {
                let Ok((done, rohc)) = pair.compress(packet) else { continue };
                let what = || format!("{}: record {}: {done:?}", path.display(), i + 1);
                let back = pair.decompress(&rohc).unwrap_or_else(|error| panic!("{}: {error}", what()));
                assert_eq!(back, *packet, "{}", what());
                if done.profile == ProfileId::Tcp {
                    packets += 1;
                    *formats.entry(done.format).or_default() += 1;
                    octets[0] += done.header_in;
                    octets[1] += done.header_out;
                }
            }
        }
    }
    let formats: Vec<_> =
        formats.iter().map(|(format, count)| format!("{} {count}", format.name())).collect();
    println!(
        "{packets} TCP packets, headers of {} octets in {}: {}",
        octets[0],
        octets[1],
        formats.join(", ")
    );
    assert!(packets > 3_900);
}

/// The goldens are also a limit: octets of the stream in one direction, without feedback.
#[test]
fn our_tcp_packets_are_no_larger_than_theirs_in_all() {
    let Some(folder) = vectors("sizes of 61 TCP streams") else { return };
    let (mut ours, mut theirs, mut larger, mut compared) = (0, 0, 0, 0);
    for (source, goldens) in streams(&folder) {
        let packets = records(&source);
        for golden in goldens.iter().filter(|path| stem(path).starts_with("rohc_maxcontexts0_wlsb4_")) {
            let their_records = records(golden);
            let lengths =
                their_records.iter().step_by(2).map(|record| match packet::parts(record).unwrap().body {
                    PacketBody::Header(header) => header.len(),
                    PacketBody::Empty | PacketBody::Segment { .. } => 0,
                });
            let their_octets: usize = lengths.sum();
            let config = CompressorConfig {
                interop: Interop { sid_everywhere: true, ..Interop::STANDARD },
                ..compressor_config(channel(cids_of(golden)))
            };
            let mut pair = RohcPair::new(config, Mode::Optimistic);
            let carried: Option<usize> = packets
                .iter()
                .map(|packet| {
                    let (done, rohc) = pair.compress(packet).ok()?;
                    assert_eq!(pair.decompress(&rohc).unwrap(), *packet);
                    Some(done.len)
                })
                .sum();
            let Some(our_octets) = carried else { continue };
            let verdict = if our_octets > their_octets { "LARGER: " } else { "" };
            let name = golden.strip_prefix(folder.join("non_regression")).unwrap().display();
            println!("{verdict}{their_octets} -> {our_octets} octets, {} packets, {name}", packets.len());
            larger += usize::from(our_octets > their_octets);
            compared += 1;
            ours += our_octets;
            theirs += their_octets;
        }
    }
    println!("{compared} streams, {larger} larger; {theirs} -> {ours} octets");
    assert_eq!((larger, compared), (0, 102));
}

/// All packets of rohc-lib that are crafted to break decompressors.
#[test]
fn malformed_packets_of_tcp_are_refused_without_a_panic() {
    let Some(folder) = vectors("malformed packets of profile 0x0006") else { return };
    let (mut captured, mut refused, mut delivered) = (0, 0, Vec::new());
    for path in captures(&folder.join("robustness/malformed_rohc_packets/inputs")) {
        for cids in [CidSpace::Small, CidSpace::Large] {
            let mut decompressor = decompressor(cids);
            let mut out = vec![0; ROOM];
            for (i, record) in records(&path).iter().enumerate() {
                let result = decompressor.decompress(Instant::from_millis(i as u64), record, &mut out);
                match result {
                    Ok(done) if done.profile == ProfileId::Tcp => delivered.push(format!(
                        "{} {} of {cids:?}: {}",
                        stem(&path),
                        i + 1,
                        done.format.name()
                    )),
                    Ok(_) => {}
                    Err(_) => refused += 1,
                }
            }
        }
        captured += 1;
    }
    println!("{refused} refused; delivered: {delivered:#?}");
    assert!(delivered.iter().all(|what: &String| what.starts_with("afl0")), "{delivered:?}");
    assert_eq!(delivered.len(), 5, "{delivered:?}");
    assert_eq!(captured, 55);
}

/// One context for all flows: each new flow takes it over.
#[test]
fn a_context_of_tcp_is_taken_over_by_any_other_flow() {
    let Some(folder) = vectors("context reuse of TCP flows") else { return };
    for path in captures(&folder.join("functional/context_reuse/inputs")) {
        for cids in [CidSpace::Small, CidSpace::Large] {
            let profiles = ProfileSet::v1().with(ProfileId::Tcp).unwrap();
            let one = Channel::new(cids, 0, profiles).unwrap();
            let config = compressor_config(one);
            let mut pair = RohcPair::new(config, Mode::Optimistic);
            for packet in records(&path) {
                pair.carry(&packet, stem(&path));
            }
        }
    }
}
