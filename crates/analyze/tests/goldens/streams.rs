//! Whole streams: sources, and the output of rohc-lib for them with eight settings each. A golden alternates
//! two compressors over the source packets, with the feedback of the other direction piggybacked, so two
//! decompressors read it in turn.

use std::path::{Path, PathBuf};

use thinair_rohc::packet::{self, PacketBody};
use thinair_rohc::{CidSpace, CompressorConfig, Decompressor, Instant, Interop, Mode, ProfileId, ProfileSet};

use crate::{
    ROOM, RohcPair, captures, channel, compressor_config, decompressor, files, records, vectors, with_payload,
};

pub(crate) fn cids_of(golden: &Path) -> CidSpace {
    let large = golden.to_string_lossy().contains("largecid");
    if large { CidSpace::Large } else { CidSpace::Small }
}

/// Returns the low octets of the profiles in the IR and IR-DYN packets of a golden.
fn profiles_named(records: &[Vec<u8>], cids: CidSpace) -> Vec<u8> {
    let named = |record: &Vec<u8>| {
        let Ok(packet::Parts { body: PacketBody::Header(header), .. }) = packet::parts(record) else {
            return None;
        };
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

/// Decompresses a golden with the given decompressors of both directions. The error describes the first failure.
fn decode(
    records: &[Vec<u8>],
    expected: &[Vec<u8>],
    mut sides: [Decompressor<'static>; 2],
) -> Result<(), String> {
    if records.len() != expected.len() * 2 {
        return Err(format!("{} records for {} packets", records.len(), expected.len()));
    }
    let mut out = vec![0; ROOM];
    for (i, record) in records.iter().enumerate() {
        let now = Instant::from_millis(10 * i as u64);
        let done = sides[i % 2].decompress(now, record, &mut out);
        let done = done.map_err(|error| format!("record {}: {error}", i + 1))?;
        // rohc-lib includes the octets after an IP packet in its frame, if the packet is sent uncompressed.
        let packet = &expected[i / 2];
        let trailer = done.profile == ProfileId::Uncompressed && done.len > packet.len();
        if out[..done.len] != packet[..] && !(trailer && out.starts_with(packet)) {
            let at = out.iter().zip(&expected[i / 2]).position(|(ours, theirs)| ours != theirs);
            return Err(format!(
                "record {}: {} of {} gives another packet: {} octets instead of {}, octet {at:?}",
                i + 1,
                done.format.name(),
                done.profile.name(),
                done.len,
                expected[i / 2].len(),
            ));
        }
    }
    Ok(())
}

/// A source, and the goldens made of it.
pub(crate) type Stream = (PathBuf, Vec<PathBuf>);

/// Returns each source below a folder, by name, and the goldens beside it, by the beginning of their names.
pub(crate) fn streams_in(folder: &Path, is_source: &dyn Fn(&str) -> bool, golden: &str) -> Vec<Stream> {
    let goldens = |source: &PathBuf| {
        let stream = source.parent().unwrap();
        files(stream, &|name| name.starts_with(golden))
            .into_iter()
            .filter(|golden| golden.parent() == Some(stream))
            .collect()
    };
    files(folder, is_source).into_iter().map(|source| (source.clone(), goldens(&source))).collect()
}

/// Returns how many goldens decode to their source packets, and how many there are. Prints the failures.
pub(crate) fn decode_all(
    streams: &[Stream],
    decompressor: impl Fn(CidSpace) -> Decompressor<'static>,
) -> (usize, usize) {
    let (mut good, mut all) = (0, 0);
    for (source, goldens) in streams {
        let expected = records(source);
        for golden in goldens {
            all += 1;
            let cids = cids_of(golden);
            match decode(&records(golden), &expected, [decompressor(cids), decompressor(cids)]) {
                Ok(()) => good += 1,
                Err(why) => println!("{}: {why}", golden.display()),
            }
        }
    }
    println!("{good} of {all} goldens decode to their source packets");
    (good, all)
}

/// Returns each stream whose goldens use only profiles of RFC 3095.
fn streams(folder: &Path) -> Vec<Stream> {
    let folder = folder.join("non_regression/rfc3095/inputs");
    let mut streams = streams_in(&folder, &|name| name == "source.pcap", "rohc_");
    streams.retain(|(_, goldens)| {
        let mut named = goldens.iter().flat_map(|golden| profiles_named(&records(golden), cids_of(golden)));
        named.all(|profile| ProfileSet::v1().by_low_octet(profile).is_some())
    });
    streams
}

/// 59 streams with 8 goldens each; another one uses profile 0x0006 in part.
#[test]
fn goldens_decode_to_their_source_packets() {
    let Some(folder) = vectors("472 goldens") else { return };
    assert_eq!(decode_all(&streams(&folder), decompressor), (472, 472));
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

/// Every IP capture among the vectors is compressed and restored.
#[test]
fn sources_of_all_streams_come_back_through_our_compressor() {
    let Some(folder) = vectors("sources of all streams") else { return };
    let is_source = |name: &str| name.starts_with("source.pcap");
    let mut paths = files(&folder.join("non_regression"), &is_source);
    for more in ["packet_types", "context_reuse", "rtp_detection"] {
        paths.extend(captures(&folder.join("functional").join(more)));
    }
    for more in ["empty_payload", "damaged_packet", "lost_packet", "reordered_packet"] {
        paths.extend(captures(&folder.join("robustness").join(more)));
    }
    let mut packets = 0;
    for path in paths {
        for (cids, mode) in [(CidSpace::Small, Mode::Unidirectional), (CidSpace::Large, Mode::Optimistic)] {
            let mut pair = RohcPair::new(compressor_config(channel(cids)), mode);
            for (i, packet) in records(&path).iter().enumerate() {
                // Some captures also contain other things than whole IP packets.
                let Ok((done, rohc)) = pair.compress(packet) else { continue };
                let what = || format!("{}: record {}: {done:?}", path.display(), i + 1);
                let back = pair.decompress(&rohc).unwrap_or_else(|error| panic!("{}: {error}", what()));
                assert_eq!(back, *packet, "{}", what());
                packets += 1;
            }
        }
    }
    println!("{packets} packets came back");
    assert!(packets > 8_000);
}

/// Octets that our compressor needs for a stream in O-mode, with the repetitions and window of the golden.
fn our_octets(packets: &[Vec<u8>], cids: CidSpace, what: &str) -> usize {
    // rohc-lib's compressor sends constant IP-IDs by SID in every profile.
    let config = CompressorConfig {
        interop: Interop { sid_everywhere: true, ..Interop::STANDARD },
        ..compressor_config(channel(cids))
    };
    let mut pair = RohcPair::new(config, Mode::Optimistic);
    let carried = packets.iter().map(|packet| {
        let (done, rohc) = pair.compress(packet).unwrap();
        match pair.decompress(&rohc) {
            Ok(back) => assert_eq!(back, *packet, "{what}: {done:?}"),
            Err(error) => println!("REFUSED: {error}, {done:?}, {what}"),
        }
        done.len
    });
    carried.sum()
}

/// The goldens are also a limit: octets of the stream with each packet an octet longer, without feedback.
#[test]
fn our_packets_are_no_larger_than_theirs() {
    let Some(folder) = vectors("sizes of 52 streams") else { return };
    let (mut compared, mut larger) = (0, 0);
    for (source, goldens) in streams(&folder) {
        let what = source.display().to_string();
        let packets: Option<Vec<_>> = records(&source).iter().map(|packet| with_payload(packet)).collect();
        let Some(packets) = packets else {
            println!("not compared, because not everything is a whole IP packet: {what}");
            continue;
        };
        let is_bar = |golden: &&PathBuf| golden.to_string_lossy().contains("maxcontexts0_wlsb4_");
        for golden in goldens.iter().filter(is_bar) {
            let theirs = records(golden);
            let lengths = theirs.iter().step_by(2).map(|record| match packet::parts(record).unwrap().body {
                PacketBody::Header(header) => header.len() + 1,
                PacketBody::Empty | PacketBody::Segment { .. } => 0,
            });
            let theirs: usize = lengths.sum();
            let ours = our_octets(&packets, cids_of(golden), &what);
            let verdict = if ours > theirs { "LARGER: " } else { "" };
            println!("{verdict}{theirs} -> {ours} octets, {} packets, {what}", packets.len());
            compared += 1;
            larger += usize::from(ours > theirs);
        }
    }
    assert_eq!((larger, compared), (0, 104));
}
