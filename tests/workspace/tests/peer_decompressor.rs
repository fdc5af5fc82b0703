//! Our compressor's packets, decompressed by another implementation.
//!
//! `THINAIR_PEER_DECOMPRESSOR` names a program; without it, it is that of `make peers` around rohc-lib
//! (`extras/peers/decompressor.c`); without both the test is skipped with a message. The program is started
//! anew for every stream, as `PROGRAM small|large MAX_CID v1|v2 u|o`: kind of CIDs, highest CID, set of profiles (`PROFILES` in
//! `src/peer.rs`), and target mode. It answers every request before it reads the next one, and ends with its
//! input. Numbers have 32 bits, least significant octet first.
//!
//! | request, on its standard input | answer, on its standard output |
//! |---|---|
//! | length of the ROHC packet | length of the IP packet; 0 if there is none |
//! | the ROHC packet | the IP packet |
//! | | status, one octet: 0 is success, others are shown as they are |
//! | | length of the feedback elements that it sends, their type octets included; 0 if it sends none, as in mode u |
//! | | the feedback elements |
//!
//! Packets whose headers exceed the abilities of rohc-lib (RFC 3095 profiles of its master of 2019-09-24) are left out
//! and counted with the reason: see [`beyond`].

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use thinair_rohc::{Compressor, CompressorConfig, CompressorMemory, Format, Instant, RtpDetection, packet};
use thinair_tests::peer::{
    BLOCKS, CIDS, CaptureStream, MODES, PROFILES, PeerProgram, RTP_PORTS, StreamRun, groups, hex, program,
};
use thinair_wire::header::chain::{HeaderChain, Ip, IpHeader};
use thinair_wire::header::protocol;
use thinair_wire::header::rtp::{self, Rtp};
use thinair_wire::header::udp::Udp;

/// Number of failures that are shown in full, each the first of its stream.
const SHOWN: usize = 40;

#[test]
fn another_decompressor_gives_the_packets_back() {
    let packets = "packets read by another decompressor";
    let Some(program) = program("THINAIR_PEER_DECOMPRESSOR", "decompressor", packets) else { return };
    let mut groups = groups();
    groups.push(("all in turn".to_owned(), vec![in_turn(&groups)]));
    let (mut failures, mut left_out, mut sent) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut failed = 0;
    println!(
        "{:<44}{:<4}{:<6}{:<7}{:>8}{:>8}{:>7}{:>9}{:>10}",
        "streams", "", "mode", "CIDs", "packets", "right", "wrong", "refused", "left out"
    );
    for (name, streams) in &groups {
        let runs = PROFILES.iter().flat_map(|set| MODES.map(|mode| (set, mode)));
        for (profiles, mode, cids) in runs.flat_map(|(set, mode)| CIDS.map(|cids| (*set, mode, cids))) {
            let mut counts = DecompressorCounts::default();
            for stream in streams {
                let run = StreamRun { program: &program, profiles, mode, cids, stream };
                send(&run, &mut counts, &mut failures, &mut sent);
            }
            let DecompressorCounts { right, wrong, refused, beyond } = &counts;
            println!(
                "{name:<44}{:<4}{mode:<6}{:<7}{:>8}{right:>8}{wrong:>7}{refused:>9}{:>10}",
                profiles.0,
                cids.0,
                right + wrong + refused,
                beyond.values().sum::<usize>()
            );
            failed += wrong + refused;
            // Every mode leaves out the same packets.
            left_out.insert((name, profiles.0), counts.beyond);
        }
    }
    println!("\nleft out of each mode and kind of CIDs");
    for ((name, set), reasons) in &left_out {
        reasons.iter().for_each(|(reason, count)| println!("{name:<44}{set:<4}{count:>6} {reason}"));
    }
    println!("\nprofiles and formats sent");
    for ((profile, format), count) in &sent {
        println!("{profile:<14}{format:<14}{count:>8}");
    }
    failures.iter().take(SHOWN).for_each(|(stream, failure)| println!("\n{stream}, {failure}"));
    assert_eq!(failed, 0, "packets were not read, or read wrongly");
}

/// One packet of each stream in turn, so that contexts are many and replace each other; 1 ms from one to the next.
/// Without extension headers: the peer adds those of a flow to the lengths of the flow that follows in its context.
fn in_turn(groups: &[(String, Vec<CaptureStream>)]) -> CaptureStream {
    let streams: Vec<&CaptureStream> = groups.iter().flat_map(|(_, streams)| streams).collect();
    let longest = streams.iter().map(|stream| stream.packets.len()).max().unwrap_or(0);
    let octets =
        (0..longest).flat_map(|i| streams.iter().filter_map(move |stream| Some(&stream.packets.get(i)?.1)));
    let extends = |packet: &[u8]| {
        HeaderChain::parse(packet).is_ok_and(|chain| chain.ips().iter().any(|ip| ip.extension_count > 0))
    };
    let packets = octets
        .filter(|packet| !extends(packet))
        .zip(0..)
        .map(|(packet, i)| (Instant::from_millis(i), packet.clone()))
        .collect();
    CaptureStream { name: "all".to_owned(), packets }
}

/// State of a flow: values that the peer cannot change.
struct FlowHistory {
    extensions: Vec<u8>,
    /// TOS and TTL of an outer IPv4 header, if there is an inner one.
    outer: Option<[u8; 2]>,
    /// RTP sequence number of the previous packet.
    last_sn: u16,
    wrapped: bool,
}

/// Flows of a stream, by addresses, protocol and ports.
type FlowHistories = BTreeMap<Vec<u8>, FlowHistory>;

/// Reason that a packet exceeds the abilities of the peer with that set of profiles, if there is one.
fn beyond(set: &str, packet: &[u8], flows: &mut FlowHistories) -> Option<&'static str> {
    let Ok(chain) = HeaderChain::parse(packet) else { return Some("no IP packet") };
    let ips = chain.ips();
    if ips.len() > 2 {
        return Some("a third IP header");
    }
    if ips.iter().flat_map(|ip| ip.walk()).any(|(kind, _)| kind == protocol::AH) {
        return Some("AH in a list");
    }
    let datagram = chain.udp().map_or(&[][..], |_| &packet[chain.ip_end() + Udp::LEN..]);
    let rtp = Rtp::read(datagram).ok().filter(|rtp| rtp.version == rtp::VERSION);
    if rtp.is_some_and(|rtp| !rtp.csrc.is_empty()) {
        return Some("a CSRC list");
    }
    let extensions = ips.iter().map(|ip| ip.extensions).collect::<Vec<_>>().concat();
    if set == "v2" && !extensions.is_empty() {
        return Some("extension headers: its profiles of RFC 5225 have none");
    }
    let has_ipv4 = ips.iter().any(|ip| matches!(ip.header(), IpHeader::V4(_)));
    if has_ipv4 && !extensions.is_empty() {
        // Our list of an IPv4 header is then an empty one with a generation identifier, where the peer expects one
        // octet of zero.
        return Some("extension headers beside IPv4");
    }
    let outer = match &*ips.iter().map(Ip::header).collect::<Vec<_>>() {
        [IpHeader::V4(outer), IpHeader::V4(_)] => Some([outer.tos, outer.ttl]),
        _ => None,
    };
    let mut flow: Vec<u8> = chain.udp().map_or(Vec::new(), |_| packet[chain.ip_end()..][..4].to_vec());
    for ip in ips {
        let addresses = match ip.header() {
            IpHeader::V4(_) => 12..20,
            IpHeader::V6(_) => 8..40,
        };
        flow.push(ip.next);
        flow.extend_from_slice(&packet[ip.offset..][addresses]);
    }
    let first = flows.entry(flow).or_insert_with(|| FlowHistory {
        extensions: extensions.clone(),
        outer,
        last_sn: 0,
        wrapped: false,
    });
    let before = std::mem::replace(&mut first.last_sn, rtp.map_or(0, |rtp| rtp.sequence_number));
    if rtp.is_some() && before == u16::MAX && first.last_sn == 0 {
        // The peer adds the difference to TS_SCALED without the wraparound. Its context is wrong from there on.
        first.wrapped = true;
    }
    if first.wrapped {
        return Some("an RTP sequence number that has wrapped around");
    }
    if first.extensions != extensions {
        return Some("a list that changes: IPX of extension 3");
    }
    // The peer expects the IP-ID before TOS and TTL, not after them (RFC 3095, section 5.7.5).
    (first.outer != outer).then_some("an outer TOS or TTL that changes, perhaps with the outer IP-ID")
}

/// Returns the IP-ID of the innermost header; 0 if it has none. Its version need not be that of the protocol number before it.
fn innermost_id(packet: &[u8]) -> u16 {
    let Ok(chain) = HeaderChain::parse(packet) else { return 0 };
    let Some(last) = chain.ips().last() else { return 0 };
    let behind = &packet[chain.ip_end()..];
    match (last.header(), behind) {
        (_, &[0x45, _, _, _, high, low, ..]) if last.next == protocol::IPV6 => {
            u16::from_be_bytes([high, low])
        }
        (IpHeader::V4(header), _) => header.identification,
        (IpHeader::V6(_), _) => 0,
    }
}

#[derive(Default)]
struct DecompressorCounts {
    right: usize,
    wrong: usize,
    refused: usize,
    beyond: BTreeMap<&'static str, usize>,
}

/// Sends a stream through the peer.
fn send(
    run: &StreamRun<'_>,
    counts: &mut DecompressorCounts,
    failures: &mut BTreeMap<String, String>,
    sent: &mut BTreeMap<(&'static str, &'static str), usize>,
) {
    let channel = run.channel();
    let rtp = RtpDetection::of_ports(&RTP_PORTS).unwrap().or_guess();
    let config = CompressorConfig { rtp, ..CompressorConfig::new(channel) };
    let mut compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(BLOCKS)));
    let mut peer = run.start(&[run.mode]);
    let mut out = vec![0; 70_000];
    let mut flows = FlowHistories::new();
    let mut ids = BTreeMap::new();
    for (i, (now, packet)) in run.stream.packets.iter().enumerate() {
        if let Some(reason) = beyond(run.profiles.0, packet, &mut flows) {
            *counts.beyond.entry(reason).or_default() += 1;
            continue;
        }
        let done = compressor.compress(*now, packet, &mut out).unwrap();
        let rohc = &out[..done.len];
        *sent.entry((done.profile.name(), done.format.name())).or_default() += 1;
        let answer = PeerAnswer::of(&mut peer, rohc);
        let id = innermost_id(packet);
        let last = ids.insert(done.cid.value(), id).unwrap_or(id);
        let goes_back = (1..64).contains(&last.wrapping_sub(id));
        let what = if answer.packet == *packet {
            counts.right += 1;
            None
        } else if answer.packet.is_empty() && done.format == Format::CoCommon && goes_back {
            // The peer has no interval for the 8 bits of an IP-ID in co_common (RFC 5225, section 6.6.7: 63 of 256 values are
            // behind).
            *counts.beyond.entry("co_common with an IP-ID that goes back").or_default() += 1;
            None
        } else if answer.packet.is_empty() {
            counts.refused += 1;
            Some(format!("refused with status {}", answer.status))
        } else {
            counts.wrong += 1;
            Some(format!("read as\n  {}", hex(&answer.packet)))
        };
        // Later failures are mostly consequences of the first.
        if let Some(what) = what
            && !failures.contains_key(&run.stream.name)
        {
            let failure = format!(
                "{}, mode {}, {} CIDs, packet {}, CID {}, {} {}\n  {}\nis\n  {}\n{what}",
                run.profiles.0,
                run.mode,
                run.cids.0,
                i + 1,
                done.cid.value(),
                done.profile.name(),
                done.format.name(),
                hex(packet),
                hex(rohc),
            );
            failures.insert(run.stream.name.clone(), failure);
        }
        // An ACK in U-mode, which rohc-lib sends, would cause a mode transition.
        assert!(run.mode == "o" || answer.feedback.is_empty(), "there is feedback in mode u");
        if !answer.feedback.is_empty() {
            for element in packet::parts(&answer.feedback).unwrap().feedback {
                compressor.receive_feedback(*now, element).unwrap();
            }
        }
    }
    peer.end();
}

struct PeerAnswer {
    packet: Vec<u8>,
    status: u8,
    feedback: Vec<u8>,
}

impl PeerAnswer {
    fn of(peer: &mut PeerProgram, rohc: &[u8]) -> Self {
        peer.put(rohc);
        peer.flush();
        Self { packet: peer.octets(), status: peer.octet(), feedback: peer.octets() }
    }
}
