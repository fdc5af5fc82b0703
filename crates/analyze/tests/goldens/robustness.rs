//! Checks of rohc-lib's robustness tests: damage, loss, reordering, packets without payload, and packets
//! crafted to break decompressors. Our decompressor may deliver good packets that rohc-lib rejects, but never
//! a different packet.

use std::path::PathBuf;

use thinair_rohc::{CidSpace, Format, Instant, Mode};

use crate::{ROOM, RohcPair, captures, channel, compressor_config, decompressor, records, stem, vectors};

fn small() -> RohcPair {
    RohcPair::new(compressor_config(channel(CidSpace::Small)), Mode::Unidirectional)
}

fn capture(folder: &str) -> Option<PathBuf> {
    vectors(folder).map(|vectors| vectors.join("robustness").join(folder))
}

/// Number of packets of a stream that were delivered correctly, rejected, or delivered wrong.
#[derive(Debug, Default, PartialEq, Eq)]
struct StreamOutcome {
    refused: Vec<usize>,
    wrong: Vec<usize>,
}

impl StreamOutcome {
    fn note(&mut self, number: usize, packet: &[u8], back: Result<Vec<u8>, impl Sized>) {
        match back {
            Ok(back) if back == packet => {}
            Ok(_) => self.wrong.push(number),
            Err(_) => self.refused.push(number),
        }
    }
}

/// The name of a rohc-lib script contains the damaged packet, from 1; it changes the last octet, or the last
/// but one of UOR-2-TS. All other packets must be restored.
#[test]
fn one_damaged_packet_takes_no_other_with_it() {
    let Some(folder) = capture("damaged_packet/inputs") else { return };
    let damaged = [
        ("ir_with-tss-not-set", 3, 1),
        ("ir_with-tss-set", 3, 1),
        ("uor2_with-ext3-but-not-ts-stride", 8, 1),
        ("uor2ts_with-ext3-and-ts-stride", 8, 2),
        ("uor2ts_without-ext3", 8, 2),
    ];
    for (name, number, from_end) in damaged {
        let packets = records(&folder.join(name).with_extension("pcap"));
        for change in 1..=255 {
            let (mut pair, mut fate) = (small(), StreamOutcome::default());
            for (i, packet) in packets.iter().enumerate() {
                let (done, mut rohc) = pair.compress(packet).unwrap();
                if i + 1 == number {
                    let at = rohc.len() - from_end;
                    rohc[at] ^= change;
                    if change == 1 {
                        println!("{name}: {} damaged at octet {at} of {}", done.format.name(), rohc.len());
                    }
                }
                fate.note(i + 1, packet, pair.decompress(&rohc));
            }
            let others: Vec<_> = fate.refused.iter().chain(&fate.wrong).filter(|at| **at != number).collect();
            assert!(others.is_empty(), "{name}, change {change:#04x}: {fate:?}");
        }
    }
}

/// The first octet of the 273rd packet becomes 0x70: a UO-0 whose CRC-3 happens to match another SN. rohc-lib
/// delivers it, rejects the next two packets, and repairs its context. Our decompressor delivers those, based
/// on the SN before, and rejects at most one: if a header matches both SNs.
#[test]
fn a_damaged_packet_that_is_believed_costs_less_than_with_theirs() {
    let Some(folder) = capture("damaged_packet/inputs") else { return };
    let (mut pair, mut fate) = (small(), StreamOutcome::default());
    for (i, packet) in records(&folder.join("uo0_repair.pcap")).iter().enumerate() {
        let (done, mut rohc) = pair.compress(packet).unwrap();
        if i + 1 == 273 {
            println!("uo0_repair: {} {:02x} becomes 70", done.format.name(), rohc[0]);
            rohc[0] = 0x70;
        }
        fate.note(i + 1, packet, pair.decompress(&rohc));
    }
    println!("uo0_repair: {fate:?}");
    assert!(fate.wrong.iter().all(|at| *at == 273), "{fate:?}");
    assert!(fate.refused.len() < 2 && fate.refused.iter().all(|at| (273..=278).contains(at)), "{fate:?}");
}

/// The name of a rohc-lib script contains the lost packets, and the packet up to which the following ones may
/// be rejected.
#[test]
fn packets_behind_lost_ones_are_right_or_refused() {
    let Some(folder) = capture("lost_packet/inputs") else { return };
    for (name, lost, refused_up_to) in
        [("rtp_with_sn_wrapround", 102..=105, 125), ("nominal_tcp", 13..=16, 16)]
    {
        let (mut pair, mut fate) = (small(), StreamOutcome::default());
        for (i, packet) in records(&folder.join(name).with_extension("pcap")).iter().enumerate() {
            let (_, rohc) = pair.compress(packet).unwrap();
            if !lost.contains(&(i + 1)) {
                fate.note(i + 1, packet, pair.decompress(&rohc));
            }
        }
        println!("{name}: {fate:?}");
        assert_eq!(fate.wrong, [], "{name}");
        assert!(fate.refused.iter().all(|at| *at <= refused_up_to), "{name}: {fate:?}");
    }
}

/// The 51st packet arrives after the 52nd. rohc-lib rejects it and the 53rd.
#[test]
fn a_late_packet_is_right_or_refused() {
    let Some(folder) = capture("reordered_packet/inputs") else { return };
    let (mut pair, mut fate) = (small(), StreamOutcome::default());
    let packets = records(&folder.join("lossy_rtp.pcap"));
    let mut late = None;
    for (i, packet) in packets.iter().enumerate() {
        let (_, rohc) = pair.compress(packet).unwrap();
        if i + 1 == 51 {
            late = Some(rohc);
            continue;
        }
        fate.note(i + 1, packet, pair.decompress(&rohc));
        if let Some(late) = late.take() {
            fate.note(51, &packets[50], pair.decompress(&late));
        }
    }
    println!("lossy_rtp: {fate:?}");
    assert_eq!(fate.wrong, []);
    assert!(fate.refused.iter().all(|at| [51, 53].contains(at)), "{fate:?}");
}

/// The name contains the type of the last packet in rohc-lib, and its profile. Our compressor sends packets
/// without payload uncompressed when IR is due, since an IR packet without payload is not delivered (RFC
/// 3095, section 5.7.7).
#[test]
fn packets_without_payload_come_back() {
    let Some(folder) = capture("empty_payload/inputs") else { return };
    for path in captures(&folder) {
        let name = stem(&path);
        let mut pair = small();
        for packet in records(&path) {
            let done = pair.carry(&packet, name);
            let is_bare = done.format == Format::Ir && done.len == done.header_out;
            assert!(!is_bare, "{name}: {done:?}");
        }
    }
}

/// First record that rohc-lib must reject; earlier ones need not be rejected. Other files only must not cause
/// errors: some use profiles that we do not implement, for which the number applies to rohc-lib alone.
const REFUSED_FROM: &[(&str, usize)] = &[
    ("fuzzer_crash_", 1),
    ("ir_with_list_encoding_type1", 1),
    ("tcp_ir_", 1),
    ("truncated_uor2id", 14),
    ("uo0_no_context", 1),
];

/// Packets crafted to break decompressors: rejected where rohc-lib rejects them.
#[test]
fn malformed_packets_are_refused_without_a_panic() {
    let Some(folder) = capture("malformed_rohc_packets/inputs") else { return };
    let (mut captured, mut refused, mut delivered) = (0, 0, 0);
    for path in captures(&folder) {
        let name = stem(&path);
        let from = REFUSED_FROM.iter().find(|(start, _)| name.starts_with(start)).map(|(_, from)| *from);
        for cids in [CidSpace::Small, CidSpace::Large] {
            let mut decompressor = decompressor(cids);
            let mut out = vec![0; ROOM];
            for (i, record) in records(&path).iter().enumerate() {
                let result = decompressor.decompress(Instant::from_millis(i as u64), record, &mut out);
                let what = || format!("{name}: record {}: {result:?}", i + 1);
                match from {
                    Some(from) if i + 1 >= from => assert!(result.is_err(), "{}", what()),
                    Some(_) if cids == CidSpace::Small => {
                        assert!(result.is_ok(), "{}", what());
                    }
                    _ => {}
                }
                *if result.is_ok() { &mut delivered } else { &mut refused } += 1;
            }
        }
        captured += 1;
    }
    println!("{captured} captures, {refused} packets refused, {delivered} delivered");
    assert_eq!(captured, 55);
}
