//! Tests of the decompressor under loss and damage: states, feedback, repairs. RFC 3095, sections 5.3.2 and 5.4.2.

use std::time::Duration;

use crate::common::{IpLayer, SplitMix64, TestFlow};
use thinair_rohc::feedback::{AckType, Feedback};
use thinair_rohc::{
    Channel, Cid, CidSpace, Compressor, CompressorConfig, CompressorMemory, DecompressError, Decompressor,
    DecompressorConfig, DecompressorMemory, Format, Instant, Mode, ProfileSet, Refresh, packet,
};

const STEP: Duration = Duration::from_millis(20);

struct DecompressorBench {
    flow: TestFlow,
    random: SplitMix64,
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    now: Instant,
}

impl DecompressorBench {
    fn new(mode: Mode) -> Self {
        let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
        let config = CompressorConfig { refresh: Refresh::Off, ..CompressorConfig::new(channel) };
        let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
        let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        let decompressor = Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4)));
        let flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
        Self { flow, random: SplitMix64(3), compressor, decompressor, now: Instant::ZERO }
    }

    /// Returns the next packet and its ROHC packet.
    fn next(&mut self) -> (Vec<u8>, Vec<u8>) {
        self.now = self.now + STEP;
        let packet = self.flow.packet(&mut self.random);
        let mut rohc = vec![0; 200];
        let done = self.compressor.compress(self.now, &packet, &mut rohc).unwrap();
        rohc.truncate(done.len);
        (packet, rohc)
    }

    fn decompress(&mut self, rohc: &[u8]) -> Result<Vec<u8>, DecompressError> {
        let mut out = vec![0; 200];
        let done = self.decompressor.decompress(self.now, rohc, &mut out)?;
        out.truncate(done.len);
        Ok(out)
    }

    /// Carries `count` packets, all of which have to be delivered.
    fn carry(&mut self, count: usize) {
        for _ in 0..count {
            let (packet, rohc) = self.next();
            assert_eq!(self.decompress(&rohc), Ok(packet));
        }
    }

    /// Returns the waiting feedback.
    fn feedback(&mut self) -> Vec<Feedback> {
        let mut all = Vec::new();
        let mut out = [0; 32];
        while let Some(len) = self.decompressor.poll_feedback(&mut out) {
            for data in packet::parts(&out[..len]).unwrap().feedback {
                all.push(Feedback::read(data, CidSpace::Small).unwrap());
            }
        }
        all
    }
}

#[test]
fn unidirectional_mode_sends_no_feedback() {
    let mut bench = DecompressorBench::new(Mode::Unidirectional);
    bench.carry(10);
    let _ = bench.decompress(&[0x25, 1, 2, 3]);
    let _ = bench.decompress(&[0xE7, 0x25, 1, 2, 3]);
    assert_eq!(bench.feedback(), []);
}

#[test]
fn an_ir_packet_is_acknowledged_with_the_mode_and_a_crc() {
    let mut bench = DecompressorBench::new(Mode::Optimistic);
    bench.carry(1);
    let feedback = bench.feedback();
    assert_eq!(feedback.len(), 1);
    assert_eq!((feedback[0].ack, feedback[0].mode), (AckType::Ack, Some(Mode::Optimistic)));
    assert!(feedback[0].protected && feedback[0].sn_bits == 12);
    bench.carry(8);
    // IR packets alone: "when a type 0 or 1 packet is correctly decompressed, no feedback is sent".
    assert_eq!(bench.feedback().len(), 3);
}

#[test]
fn garbage_for_unknown_cids_is_answered_once_per_cid_and_interval() {
    let mut bench = DecompressorBench::new(Mode::Optimistic);
    for _ in 0..1_000 {
        for cid in 1..=3_u8 {
            let _ = bench.decompress(&[0xE0 | cid, 0x25, 1, 2, 3]);
        }
    }
    let feedback = bench.feedback();
    let cids: Vec<_> = feedback.iter().map(|f| (f.cid.value(), f.ack, f.sn_bits)).collect();
    assert_eq!(cids, [1, 2, 3].map(|cid| (cid, AckType::StaticNack, 0)));
    bench.now = bench.now + Duration::from_secs(1);
    let _ = bench.decompress(&[0xE1, 0x25, 1, 2, 3]);
    assert_eq!(bench.feedback().len(), 1);
}

#[test]
fn k_of_n_failures_give_the_dynamic_context_up_and_ask_for_it() {
    let mut bench = DecompressorBench::new(Mode::Optimistic);
    bench.carry(10);
    bench.feedback();
    let mut failed = 0;
    // The TTL changes, and the decompressor misses it: four updates are lost.
    bench.flow.layers[0].ttl = 9;
    for _ in 0..4 {
        bench.next();
    }
    let feedback = loop {
        let (packet, rohc) = bench.next();
        match bench.decompress(&rohc) {
            // CRC-3 accepts one wrong header in eight.
            Ok(delivered) => assert!(delivered != packet),
            Err(DecompressError::Crc(_, Format::Uo0 | Format::Uor2)) => failed += 1,
            Err(error) => panic!("{error}"),
        }
        let feedback = bench.feedback();
        if !feedback.is_empty() {
            break feedback;
        }
    };
    assert_eq!(feedback.iter().map(|f| f.ack).collect::<Vec<_>>(), [AckType::Nack]);
    assert!(failed >= 3);
    // RFC 5795, section 5.2.3: packets with a CRC of 3 bits are not used until an update has passed.
    let (_, rohc) = bench.next();
    if rohc[0] < 0x80 {
        let refused = DecompressError::NotAllowed(Cid::ZERO, Format::Uo0);
        assert_eq!(bench.decompress(&rohc), Err(refused));
    }
    // The NACK reaches the compressor, which sends the dynamic part.
    let mut element = [0; 32];
    let len = feedback[0].write(CidSpace::Small, &mut element).unwrap();
    bench.compressor.receive_feedback(bench.now, &element[1..len]).unwrap();
    bench.carry(20);
}

/// RFC 3095, section 5.3.2.2.4: twenty packets are lost, more than four bits of SN can count; the clock shows it.
#[test]
fn a_wrapped_sn_is_repaired_by_the_clock() {
    let mut bench = DecompressorBench::new(Mode::Unidirectional);
    bench.carry(40);
    for _ in 0..20 {
        bench.next();
    }
    let mut outcomes = Vec::new();
    for _ in 0..5 {
        let (packet, rohc) = bench.next();
        outcomes.push(match bench.decompress(&rohc) {
            Ok(delivered) => {
                assert_eq!(delivered, packet);
                "delivered"
            }
            Err(error) => error.name(),
        });
    }
    // "Of the three successful headers, the first two SHOULD be discarded": not if the pace of the flow proves them.
    assert_eq!(outcomes, ["delivered"; 5]);
}

/// Returns the number of packets, of twelve, that are delivered after one changed by `damage`, for every seed with which
/// the decompressor accepts that one as another packet.
fn delivered_behind(damage: impl Fn(&mut [u8], u8)) -> Vec<usize> {
    let mut delivered = Vec::new();
    for seed in 0..300 {
        let mut bench = DecompressorBench::new(Mode::Unidirectional);
        bench.random = SplitMix64(seed);
        bench.carry(20 + seed as usize % 16);
        let (packet, mut rohc) = bench.next();
        damage(&mut rohc, 2 + seed as u8 % 4);
        let is_moved = bench.decompress(&rohc).is_ok_and(|delivered| delivered != packet);
        if is_moved {
            let behind = (0..12).filter(|_| {
                let (packet, rohc) = bench.next();
                bench.decompress(&rohc).is_ok_and(|other| other == packet)
            });
            delivered.push(behind.count());
        }
    }
    delivered
}

/// RFC 3095, section 5.3.2.2.5: a damaged packet that CRC-3 accepted has moved the SN.
#[test]
fn a_wrong_sn_costs_no_packet_behind_it() {
    let delivered = delivered_behind(|rohc, ahead| {
        let sn = (rohc[0] >> 3).wrapping_add(ahead) & 0x0F;
        rohc[0] = sn << 3 | rohc[0] & 0b111;
    });
    assert!(delivered.len() > 8, "{delivered:?}");
    // Without a repair every packet would fail until the SN of the sender has caught up.
    assert!(delivered.iter().all(|behind| *behind == 12), "{delivered:?}");
}

/// The first octet indicates UO-1, and an octet of the checksum is read as SN and CRC.
#[test]
fn a_wrong_ip_id_offset_costs_a_packet_or_two_behind_it() {
    let delivered = delivered_behind(|rohc, n| rohc[0] = 0x80 | (rohc[0] & 0x0F) | (n << 4 & 0x30));
    assert!(delivered.len() > 8, "{delivered:?}");
    assert!(delivered.iter().all(|behind| *behind >= 10), "{delivered:?}");
}

#[test]
fn a_packet_without_payload_is_not_delivered_from_an_ir_packet() {
    let mut bench = DecompressorBench::new(Mode::Unidirectional);
    bench.flow.payload = 0;
    // The compressor here sends such packets by profile 0x0004 while it would need IR.
    let (packet, rohc) = bench.next();
    assert_eq!(rohc[..2], [0xFD, 0x04]);
    assert_eq!(bench.decompress(&rohc), Ok(packet));
    bench.flow.payload = 4;
    let (_, rohc) = bench.next();
    let header = rohc.len() - 4;
    // An IR packet without its payload: a refresh and nothing else (RFC 3095, section 5.7.7).
    assert_eq!(bench.decompress(&rohc[..header]), Ok(Vec::new()));
}

#[test]
fn every_truncation_and_every_flipped_bit_of_the_header_is_refused_or_harmless() {
    let mut bench = DecompressorBench::new(Mode::Optimistic);
    bench.carry(3);
    let (packet, ir) = bench.next();
    for len in 0..27 {
        let mut other = DecompressorBench::new(Mode::Optimistic);
        assert!(other.decompress(&ir[..len]).is_err(), "{len} octets");
    }
    for bit in 0..27 * 8 {
        let mut damaged = ir.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let mut other = DecompressorBench::new(Mode::Optimistic);
        // CRC-8 covers all bits except those of a payload that seems longer or shorter.
        assert!(other.decompress(&damaged).is_err_or_is(&packet), "bit {bit}");
    }
}

trait ErrOrIs {
    fn is_err_or_is(&self, packet: &[u8]) -> bool;
}

impl ErrOrIs for Result<Vec<u8>, DecompressError> {
    fn is_err_or_is(&self, packet: &[u8]) -> bool {
        self.as_ref().map_or(true, |delivered| delivered == packet)
    }
}
