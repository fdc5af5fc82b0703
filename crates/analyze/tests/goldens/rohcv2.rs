//! RFC 5225: what rohc-lib has made of the streams of RFC 3095, and what our compressor makes of the sources.

use std::collections::BTreeMap;
use std::path::Path;

use thinair_rohc::packet::{self, PacketBody};
use thinair_rohc::{
    Channel, CidSpace, CompressorConfig, Decompressor, DecompressorConfig, DecompressorMemory, Format,
    Instant, Mode, ProfileId, ProfileSet, ReorderRatio,
};

use crate::streams::{Stream, cids_of, decode_all, streams_in};
use crate::{ROOM, RohcPair, captures, compressor_config, files, records, stem, vectors, with_payload};

fn channel(cids: CidSpace) -> Channel {
    Channel::new(cids, cids.highest(), ProfileSet::v2().with(ProfileId::Tcp).unwrap()).unwrap()
}

fn decompressor(cids: CidSpace) -> Decompressor<'static> {
    let channel = channel(cids);
    let config = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) };
    Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(64)))
}

/// Each stream: its source, and its goldens.
fn streams(folder: &Path) -> Vec<Stream> {
    let folder = folder.join("non_regression/rfc3095/inputs");
    streams_in(&folder, &|name| name.starts_with("source.pcap"), "rohcv2_")
}

/// 60 streams with 8 goldens each; every CRC of every packet is right.
#[test]
fn goldens_of_rohcv2_decode_to_their_source_packets() {
    let Some(folder) = vectors("480 goldens of RFC 5225") else { return };
    assert_eq!(decode_all(&streams(&folder), decompressor), (480, 480));
}

/// Packets of the goldens by profile and format.
#[test]
fn goldens_of_rohcv2_have_these_formats() {
    let Some(folder) = vectors("formats of the goldens of RFC 5225") else { return };
    let mut counts = BTreeMap::new();
    let mut out = vec![0; ROOM];
    for (_, goldens) in streams(&folder) {
        for golden in goldens {
            let mut sides = [decompressor(cids_of(&golden)), decompressor(cids_of(&golden))];
            for (i, record) in records(&golden).iter().enumerate() {
                let now = Instant::from_millis(10 * i as u64);
                let Ok(done) = sides[i % 2].decompress(now, record, &mut out) else { continue };
                *counts.entry((done.profile, done.format)).or_insert(0_u32) += 1;
            }
        }
    }
    let of = |profile, formats: &[(Format, u32)]| {
        for (format, count) in formats {
            assert_eq!(
                counts.get(&(profile, *format)).copied().unwrap_or(0),
                *count,
                "{profile:?} {format:?}"
            );
        }
    };
    use Format::{CoCommon, CoRepair, Ir, Pt0Crc3, Pt0Crc7, Pt1SeqId, Pt2SeqId};
    of(ProfileId::RtpV2, &[(Ir, 28_464)]);
    of(ProfileId::UdpV2, &[(Ir, 7_776), (CoRepair, 3_192), (CoCommon, 16), (Pt0Crc3, 2_184), (Pt0Crc7, 152)]);
    of(ProfileId::UdpV2, &[(Pt1SeqId, 6_140), (Pt2SeqId, 204)]);
    of(ProfileId::EspV2, &[(Ir, 208), (CoRepair, 1_444), (CoCommon, 3_096), (Pt0Crc3, 2_044), (Pt1SeqId, 8)]);
    of(
        ProfileId::IpV2,
        &[(Ir, 4_164), (CoRepair, 3_880), (CoCommon, 116), (Pt0Crc3, 2_720), (Pt1SeqId, 1_272)],
    );
    of(ProfileId::IpV2, &[(Pt2SeqId, 328)]);
}

/// Truncated IR packets are refused, and so is a lone octet behind good packets.
#[test]
fn malformed_packets_of_rohcv2_are_refused() {
    let Some(folder) = vectors("malformed packets of RFC 5225") else { return };
    let files = captures(&folder.join("robustness/malformed_rohc_packets/inputs"));
    let mut seen = 0;
    for path in files.iter().filter(|path| stem(path).starts_with("rohcv2_")) {
        let (mut decompressor, mut out) = (decompressor(CidSpace::Small), vec![0; ROOM]);
        let records = records(path);
        for (i, record) in records.iter().enumerate() {
            let done = decompressor.decompress(Instant::from_millis(10 * i as u64), record, &mut out);
            assert_eq!(done.is_ok(), i + 1 < records.len(), "{}: record {}", path.display(), i + 1);
        }
        seen += 1;
    }
    assert_eq!(seen, 4);
}

/// Every IP capture among the vectors goes through our compressor and comes back.
#[test]
fn sources_of_all_streams_come_back_by_rohcv2() {
    let Some(folder) = vectors("sources of all streams by RFC 5225") else { return };
    let mut packets = 0;
    let ratios = [ReorderRatio::None, ReorderRatio::Quarter, ReorderRatio::Half, ReorderRatio::ThreeQuarters];
    for path in files(&folder.join("non_regression"), &|name| name.starts_with("source.pcap")) {
        for (i, reorder_ratio) in ratios.into_iter().enumerate() {
            let cids = [CidSpace::Small, CidSpace::Large][i % 2];
            let mode = [Mode::Unidirectional, Mode::Optimistic][i / 2];
            let config = CompressorConfig { reorder_ratio, ..compressor_config(channel(cids)) };
            let mut pair = RohcPair::new(config, mode);
            for (i, packet) in records(&path).iter().enumerate() {
                // Some captures hold other things than whole IP packets as well.
                let Ok((done, rohc)) = pair.compress(packet) else { continue };
                let what = || format!("{}: record {}: {done:?}", path.display(), i + 1);
                let back = pair.decompress(&rohc).unwrap_or_else(|error| panic!("{}: {error}", what()));
                assert_eq!(back, *packet, "{}", what());
                packets += 1;
            }
        }
    }
    println!("{packets} packets came back");
    assert!(packets > 26_000);
}

/// The goldens are also a bar: octets of the same stream, without the feedback in front, with feedback to our compressor as to theirs.
#[test]
fn our_packets_of_rohcv2_are_no_larger_than_theirs() {
    let Some(folder) = vectors("sizes of 60 streams by RFC 5225") else { return };
    let (mut compared, mut larger) = (0, 0);
    for (source, goldens) in streams(&folder) {
        let what = source.display().to_string();
        let packets: Option<Vec<_>> = records(&source).iter().map(|packet| with_payload(packet)).collect();
        let Some(packets) = packets else { continue };
        for golden in goldens.iter().filter(|golden| golden.to_string_lossy().contains("maxcontexts0_wlsb4_"))
        {
            let records = records(golden);
            let lengths = records.iter().step_by(2).map(|record| match packet::parts(record).unwrap().body {
                PacketBody::Header(header) => header.len() + 1,
                PacketBody::Empty | PacketBody::Segment { .. } => 0,
            });
            let theirs: usize = lengths.sum();
            let mut pair = RohcPair::new(compressor_config(channel(cids_of(golden))), Mode::Optimistic);
            let ours: usize = packets.iter().map(|packet| pair.carry(packet, &what).len).sum();
            let verdict = if ours > theirs { "LARGER: " } else { "" };
            println!("{verdict}{theirs} -> {ours} octets, {} packets, {what}", packets.len());
            compared += 1;
            larger += usize::from(ours > theirs);
        }
    }
    println!("{larger} of {compared} are larger");
    assert!(compared > 100);
    assert_eq!(larger, 0);
}
