//! What rohc-lib's functional tests check: the packet type that a compressor chooses, contexts that are taken over
//! by other flows, feedback, and which flows are taken for RTP.

use thinair_rohc::feedback::{AckType, Feedback};
use thinair_rohc::packet;
use thinair_rohc::{Channel, CidSpace, CompressorConfig, Instant, Mode, ProfileSet};

use crate::{
    Pair, ROOM, base, captures, channel, compressor_config, decompressor, is_there, records, stem, vectors,
};

/// The end of a name tells the type of the last packet, with an optimistic approach of two packets and small CIDs in
/// U-mode. `rnd0` and `rnd1` tell which IP-IDs are random before and after it: with two IP headers that decides
/// which of `UO-1`, `UO-1-ID` and `UO-1-TS` there is at all. Streams of profile 0x0006 go by another one here.
#[test]
fn the_last_packet_has_the_type_that_the_name_tells() {
    let Some(folder) = vectors("packet types of 42 captures") else { return };
    let (mut as_told, mut others) = (0, 0);
    for path in captures(&folder.join("functional/packet_types/inputs")) {
        let name = stem(&path);
        let expected = match name.rsplit('_').next().unwrap() {
            // With the profile RTP these are plain UO-1 and UOR-2.
            "uo1rtp" => "uo1",
            "uor2rtp" => "uor2",
            other => other,
        };
        let config = CompressorConfig { repetitions: 2, ..compressor_config(channel(CidSpace::Small)) };
        let mut pair = Pair::new(config, Mode::Unidirectional);
        let packets = records(&path);
        let done: Vec<_> = packets.iter().map(|packet| pair.carry(packet, name)).collect();
        let last = done.last().unwrap();
        if name.contains("_tcp_") {
            continue;
        }
        let told = base(last.format) == expected;
        *if told { &mut as_told } else { &mut others } += 1;
        if !told {
            println!("{name}: {} of {}, {} octets", last.format.name(), last.profile.name(), last.header_out);
        }
    }
    println!("{as_told} of {} as told", as_told + others);
    if is_there("rtp") {
        assert_eq!((as_told, others), (40, 0));
    }
}

/// One context for all flows: each that begins takes it over, whatever kind of flow had it before.
#[test]
fn a_context_is_taken_over_by_any_other_flow() {
    let Some(folder) = vectors("context reuse in 28 captures") else { return };
    let (mut captured, mut packets) = (0, 0);
    for path in captures(&folder.join("functional/context_reuse/inputs")) {
        for cids in [CidSpace::Small, CidSpace::Large] {
            let one = Channel::new(cids, 0, ProfileSet::v1()).unwrap();
            let mut pair = Pair::new(compressor_config(one), Mode::Optimistic);
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

/// The name of a capture tells the CIDs, and how many bits the SN of its packet needs: with more than 12 the SN
/// option is needed beside that of the CRC.
#[test]
fn each_packet_is_acknowledged_by_feedback_2_with_its_options() {
    let Some(folder) = vectors("feedback for 2 captures") else { return };
    if !is_there("rtp") {
        return;
    }
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
            let bits = if name.contains("largesn") { 13..=32 } else { 1..=12 };
            assert!(bits.contains(&feedback.sn_bits), "{name}: {feedback:?}");
        }
    }
}
