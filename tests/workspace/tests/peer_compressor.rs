//! Our decompressor with packets of another implementation's compressor. The channel is lossless, so each packet must
//! be restored.
//!
//! `THINAIR_PEER_COMPRESSOR` names a program; without it, it is that of `make peers` around rohc-lib
//! (`extras/peers/compressor.c`); without both the test is skipped with a message. The program is started
//! anew for every stream, as `PROGRAM small|large MAX_CID v1|v2`: kind of CIDs, highest CID, and set of profiles (`PROFILES` in
//! `src/peer.rs`). It answers every request before it reads the next one, and ends with its input. Numbers have 32 bits
//! unless noted, least significant octet first.
//!
//! | request, on its standard input | answer, on its standard output |
//! |---|---|
//! | nanoseconds since the start of the stream, 64 bits | length of the ROHC packet; 0 if it refuses the IP packet |
//! | length of the IP packet | the ROHC packet |
//! | the IP packet | status, one octet: 0 is success |
//! | length of the feedback elements that have arrived, their type octets included | |
//! | the feedback elements | |

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use thinair_rohc::{CidSpace, Decompressor, DecompressorConfig, DecompressorMemory, Interop, Mode};
use thinair_tests::peer::{BLOCKS, CIDS, MODES, PROFILES, StreamRun, groups, hex, program};
use thinair_wire::header::chain::HeaderChain;
use thinair_wire::header::protocol;
use thinair_wire::header::rtp::{self, Rtp};
use thinair_wire::header::tcp::Tcp;
use thinair_wire::header::udp::Udp;

/// Number of failures that are shown in full, each the first of its stream.
const SHOWN: usize = 60;

#[test]
fn packets_of_another_compressor_come_back() {
    let packets = "packets of another compressor";
    let Some(program) = program("THINAIR_PEER_COMPRESSOR", "compressor", packets) else { return };
    let (mut failures, mut formats, mut lost, mut captures) = (BTreeMap::new(), BTreeMap::new(), 0, 0);
    println!(
        "{:<44}{:<4}{:<6}{:<7}{:>8}{:>8}{:>7}{:>9}{:>10}",
        "streams", "", "mode", "CIDs", "packets", "right", "wrong", "refused", "by peer"
    );
    for (name, streams) in &groups() {
        captures += streams.len();
        // With one context, each flow replaces that of the previous one.
        let all = CIDS.into_iter().chain([("one", CidSpace::Small, 0)]);
        let runs = PROFILES.iter().flat_map(|set| MODES.map(|mode| (set, mode)));
        for (profiles, mode, cids) in
            runs.flat_map(|(set, mode)| all.clone().map(move |cids| (*set, mode, cids)))
        {
            let mut counts = CompressorCounts::default();
            for stream in streams {
                let run = StreamRun { program: &program, profiles, mode, cids, stream };
                receive(&run, &mut counts, &mut failures, &mut formats);
            }
            let CompressorCounts { right, wrong, refused, by_peer } = counts;
            let all = right + wrong + refused + by_peer;
            println!(
                "{name:<44}{:<4}{mode:<6}{:<7}{all:>8}{right:>8}{wrong:>7}{refused:>9}{by_peer:>10}",
                profiles.0, cids.0
            );
            lost += wrong + refused;
        }
    }
    println!("\nprofiles and formats received");
    for ((profile, format), count) in &formats {
        println!("{profile:<14}{format:<14}{count:>8}");
    }
    failures.iter().take(SHOWN).for_each(|(stream, failure)| println!("\n{stream}, {failure}"));
    println!("\n{} of {captures} captures lose packets", failures.len());
    assert_eq!(lost, 0, "packets were not read, or read wrongly");
}

#[derive(Default)]
struct CompressorCounts {
    right: usize,
    wrong: usize,
    refused: usize,
    /// Packets that the peer does not compress, or compresses incorrectly.
    by_peer: usize,
}

/// Streams whose checksums are wrong behind a sequence number that stands still: our decompressor needs them there.
const WRONG_SUMS: [&str; 1] = ["ir_with-tss-not-set.pcap"];

/// True if rohc-lib does not compress a packet as the RFCs say.
fn deviates(set: &str, packet: &[u8]) -> bool {
    let Ok(chain) = HeaderChain::parse(packet) else { return false };
    // Its profiles of RFC 5225 take extension headers for payload, also where there is none behind their number.
    let is_extended = chain.ips().iter().any(|ip| ip.extension_count > 0 || ip.next == protocol::HOP_BY_HOP);
    // Its IR-DYN packets lack the X bit of RTP.
    let datagram = chain.udp().map_or(&[][..], |_| &packet[chain.ip_end() + Udp::LEN..]);
    let has_x = Rtp::read(datagram).is_ok_and(|rtp| rtp.version == rtp::VERSION && rtp.extension.is_some());
    set == "v2" && is_extended || has_x || has_idle_ack(packet, &chain)
}

/// True if a packet has an acknowledgment number without the ACK flag: rohc-lib does not send its changes.
fn has_idle_ack(packet: &[u8], chain: &HeaderChain<'_>) -> bool {
    let is_tcp = chain.ips().last().is_some_and(|ip| ip.next == protocol::TCP);
    let tcp = packet.get(chain.ip_end()..).filter(|_| is_tcp).and_then(|octets| Tcp::read(octets).ok());
    tcp.is_some_and(|tcp| !tcp.ack && tcp.acknowledgment_number != 0)
}

/// Has a stream compressed by the peer, and decompresses it.
fn receive(
    run: &StreamRun<'_>,
    counts: &mut CompressorCounts,
    failures: &mut BTreeMap<String, String>,
    formats: &mut BTreeMap<(&'static str, &'static str), usize>,
) {
    let channel = run.channel();
    let mode = if run.mode == "o" { Mode::Optimistic } else { Mode::Unidirectional };
    let config = DecompressorConfig { mode, interop: Interop::ROHC_LIB, ..DecompressorConfig::new(channel) };
    let mut decompressor =
        Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(BLOCKS)));
    let mut peer = run.start(&[]);
    let (mut out, mut element, mut feedback) = (vec![0; 70_000], [0; 64], Vec::new());
    for (i, (now, packet)) in run.stream.packets.iter().enumerate() {
        peer.write(&now.as_nanos().to_le_bytes());
        peer.put(packet);
        peer.put(&feedback);
        peer.flush();
        let (rohc, status) = (peer.octets(), peer.octet());
        feedback.clear();
        if status != 0 {
            counts.by_peer += 1;
            continue;
        }
        let what = match decompressor.decompress(*now, &rohc, &mut out) {
            Ok(done) if out[..done.len] == packet[..] => {
                counts.right += 1;
                *formats.entry((done.profile.name(), done.format.name())).or_default() += 1;
                None
            }
            _ if deviates(run.profiles.0, packet)
                || WRONG_SUMS.iter().any(|name| run.stream.name.ends_with(name)) =>
            {
                counts.by_peer += 1;
                None
            }
            Ok(done) => {
                counts.wrong += 1;
                Some(format!("{} read as\n  {}", done.format.name(), hex(&out[..done.len])))
            }
            Err(error) => {
                counts.refused += 1;
                Some(format!("refused: {error}"))
            }
        };
        while let Some(len) = decompressor.poll_feedback(&mut element) {
            feedback.extend_from_slice(&element[..len]);
        }
        // Later failures are mostly consequences of the first.
        if let Some(what) = what
            && !failures.contains_key(&run.stream.name)
        {
            let failure = format!(
                "mode {}, {} CIDs, packet {}\n  {}\nsent as\n  {}\n{what}",
                run.mode,
                run.cids.0,
                i + 1,
                hex(packet),
                hex(&rohc),
            );
            failures.insert(run.stream.name.clone(), failure);
        }
    }
    peer.end();
}
