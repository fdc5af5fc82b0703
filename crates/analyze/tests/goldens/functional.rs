//! Checks of rohc-lib's functional tests: the packet type that a compressor selects, reuse of contexts by
//! other flows, feedback, and detection of RTP.

use thinair_rohc::feedback::{AckType, Feedback};
use thinair_rohc::packet;
use thinair_rohc::{Channel, CidSpace, CompressorConfig, Instant, Mode, ProfileId, ProfileSet, RtpDetection};

use crate::{
    ROOM, RohcPair, base, captures, channel, compressor_config, decompressor, records, stem, vectors,
    with_payload,
};

/// The end of a file name is the type of the last packet, with two repetitions (optimistic approach) and
/// small CIDs in U-mode. `rnd0` and `rnd1` state which IP-IDs are random before and after it: with two IP
/// headers this decides whether `UO-1`, `UO-1-ID` or `UO-1-TS` exists at all. Streams of profile 0x0006 are
/// covered by another test.
#[test]
fn the_last_packet_has_the_type_that_the_name_tells() {
    let Some(folder) = vectors("packet types of 42 captures") else { return };
    let (mut as_told, mut refused, mut octets) = (0, 0, 0);
    let mut others = Vec::new();
    for path in captures(&folder.join("functional/packet_types/inputs")) {
        let name = stem(&path);
        if name.contains("_tcp_") {
            continue;
        }
        let config = CompressorConfig { repetitions: 2, ..compressor_config(channel(CidSpace::Small)) };
        let mut pair = RohcPair::new(config, Mode::Unidirectional);
        let mut formats = Vec::new();
        for packet in records(&path) {
            let packet = with_payload(&packet).unwrap_or(packet);
            let (done, rohc) = pair.compress(&packet).unwrap();
            formats.push(done.format);
            octets += rohc.len();
            match pair.decompress(&rohc) {
                Ok(back) => assert_eq!(back, packet, "{name}: {done:?}"),
                Err(error) => {
                    println!("{name}: {error}, {done:?}");
                    refused += 1;
                }
            }
        }
        let expected = match name.rsplit('_').next().unwrap() {
            // In profile RTP these are plain UO-1 and UOR-2.
            "uo1rtp" => "uo1",
            "uor2rtp" => "uor2",
            other => other,
        };
        if base(*formats.last().unwrap()) == expected {
            as_told += 1;
        } else {
            others.push(format!(
                "{name}: {:?}",
                formats.iter().map(|format| format.name()).collect::<Vec<_>>()
            ));
        }
    }
    println!("{octets} octets; {as_told} as told, {} others:\n{}", others.len(), others.join("\n"));
    assert_eq!((as_told + others.len(), refused), (40, 0));
    // Our compressor detects random IP-IDs earlier, and then needs a smaller type. Six captures have IPv4
    // where the outer header announces IPv6; they use the IP profile.
    assert!(as_told >= 16, "{as_told}");
    assert!(octets <= 7_675, "{octets}");
}

/// One context for all flows: each new flow takes it over, regardless of the kind of the old one.
#[test]
fn a_context_is_taken_over_by_any_other_flow() {
    let Some(folder) = vectors("context reuse in 28 captures") else { return };
    let (mut captured, mut packets) = (0, 0);
    for path in captures(&folder.join("functional/context_reuse/inputs")) {
        for cids in [CidSpace::Small, CidSpace::Large] {
            let one = Channel::new(cids, 0, ProfileSet::v1()).unwrap();
            let mut pair = RohcPair::new(compressor_config(one), Mode::Optimistic);
            for packet in records(&path) {
                pair.carry(&packet, stem(&path));
                packets += 1;
            }
        }
        captured += 1;
    }
    println!("{captured} captures, {packets} packets with one context");
    assert_eq!(captured, 28);
}

/// The name of a capture contains the CIDs, and the number of bits of the SN of its packet. For more than 12,
/// rohc-lib adds an SN option; 12 bits identify the packet as well.
#[test]
fn a_first_packet_is_acknowledged_by_feedback_2_with_a_crc() {
    let Some(folder) = vectors("feedback for 2 captures") else { return };
    for path in captures(&folder.join("functional/feedback2/inputs")) {
        let name = stem(&path);
        let cids = if name.contains("largecid") { CidSpace::Large } else { CidSpace::Small };
        let mut decompressor = decompressor(cids);
        let mut out = vec![0; ROOM];
        for record in records(&path) {
            decompressor.decompress(Instant::ZERO, &record, &mut out).unwrap();
            let mut octets = [0; 32];
            let len = decompressor.poll_feedback(&mut octets).unwrap();
            let element = packet::parts(&octets[..len]).unwrap().feedback.next().unwrap();
            let feedback = Feedback::read(element, cids).unwrap();
            println!("{name}: {feedback:?}");
            assert_eq!((feedback.ack, feedback.mode), (AckType::Ack, Some(Mode::Optimistic)), "{name}");
            assert!(feedback.protected, "{name}: {feedback:?}");
            let sn = if name.contains("largesn") { 0x1000_u32 } else { 0x0100 };
            assert_eq!(feedback.sn, sn & ((1 << feedback.sn_bits) - 1), "{name}: {feedback:?}");
            assert!(feedback.sn_bits >= 12, "{name}: {feedback:?}");
        }
    }
}

/// The callback of rohc-lib treats packets to port 1234 as RTP, or none.
#[test]
fn a_flow_is_taken_for_rtp_where_the_rule_says_so() {
    let Some(folder) = vectors("RTP detection in 80 packets") else { return };
    let packets = records(&folder.join("functional/rtp_detection/input/rtp.pcap"));
    for (rtp, profile) in [
        (RtpDetection::of_ports(&[1234]).unwrap(), ProfileId::Rtp),
        (RtpDetection::of_ports(&[1235]).unwrap(), ProfileId::Udp),
        (RtpDetection::NEVER, ProfileId::Udp),
    ] {
        let config = CompressorConfig { rtp, ..CompressorConfig::new(channel(CidSpace::Small)) };
        let mut pair = RohcPair::new(config, Mode::Unidirectional);
        for packet in &packets {
            assert_eq!(pair.carry(packet, "rtp").profile, profile);
        }
    }
}
