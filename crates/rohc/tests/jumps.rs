//! Sequence numbers that jump: valid steps do not look like late packets.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::media::{Media, MediaKind};
use common::{IdKind, IpLayer, SplitMix64, TestFlow};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Format, Instant, ProfileSet, RtpDetection,
};

/// Fields that jump with the SN.
#[derive(Clone, Copy, Debug)]
struct With {
    timestamp: bool,
    ip_id: bool,
}

/// Sends RTP with two steps in a row, of which the first packet is lost. Returns the format of the second one, and true if it was
/// delivered.
fn run(layers: Vec<IpLayer>, steps: [u32; 2], seed: u64, with: With) -> (Format, bool) {
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
    let config =
        CompressorConfig { rtp: RtpDetection::of_ports(&[5004]).unwrap(), ..CompressorConfig::new(channel) };
    let mut compressor = Compressor::new(config, CompressorMemory::owned(&channel, 4));
    let mut decompressor =
        Decompressor::new(DecompressorConfig::new(channel), DecompressorMemory::owned(&channel, 4));
    let mut random = SplitMix64(seed);
    let mut flow = TestFlow::udp(layers);
    let mut media = Media::new(MediaKind::Rtp);
    media.ssrc = random.next() as u32;
    media.ts = random.next() as u32;
    media.sn = random.next() as u32;
    // The stride also decides whether a header is right with both SNs.
    media.stride = [160, 80, 240, 320, 480, 960, 40, 1, 20, 3_000, 3_600, 90, 1_024, 882, 20_000, 721]
        [seed as usize % 16];
    flow.media = Some(media);
    let (mut rohc, mut back) = ([0; 400], [0; 400]);
    let mut outcome = (Format::Ir, false);
    for i in 0..22 {
        if let Some(step) = usize::checked_sub(i, 20).map(|at| steps[at]) {
            let media = flow.media.as_mut().unwrap();
            media.sn = media.sn.wrapping_add(step - 1);
            if with.timestamp {
                media.ts = media.ts.wrapping_add(media.stride.wrapping_mul(step - 1));
            }
            if with.ip_id {
                flow.layers.iter_mut().for_each(|layer| layer.id = layer.id.wrapping_add(step as u16 - 1));
            }
        }
        let packet = flow.packet(&mut random);
        let now = Instant::from_millis(20 * i as u64);
        let done = compressor.compress(now, &packet, &mut rohc).unwrap();
        if i == 20 {
            continue;
        }
        let received = decompressor.decompress(now, &rohc[..done.len], &mut back);
        if let Ok(received) = &received {
            assert_eq!(&back[..received.len], packet, "packet {i}: {done:?}");
        }
        outcome = (done.format, received.is_ok());
    }
    outcome
}

/// 14 bits of SN reach 15,872 SNs ahead (RFC 3095, section 4.5.1 with the `p` of section 5.7). One header in 128 is also right
/// with the SN of a packet that is late by the rest of 16,384: no channel delays a packet by thousands of others.
#[test]
fn a_step_of_9_981_is_no_packet_that_is_late_by_6_403() {
    let mut tried = 0;
    for seed in 0..400 {
        for what in 0..16 {
            let bit = |at: u32| what >> at & 1 == 1;
            let layers = if bit(0) { vec![1] } else { vec![1, 2] };
            let layers = layers.into_iter().map(|i| IpLayer::new(bit(1), i)).collect();
            let with = With { timestamp: bit(2), ip_id: bit(3) };
            let (format, is_delivered) = run(layers, [7_000, 2_981], seed, with);
            tried += usize::from(!format.is_initialization());
            assert!(is_delivered, "seed {seed}, {with:?}, {}", format.name());
        }
    }
    assert!(tried > 1_000, "{tried} packets with 14 bits");
}

/// A change in a flow of ESP that repeats its sequence number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Ttl,
    /// The order of the octets in which the IP-ID counts.
    ByteOrder,
}

/// A sender of ESP that repeats its sequence number: with other fields a packet is not the last one once more.
#[test]
fn fields_that_change_while_the_sn_stands_still_are_kept() {
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
    for (change, seed) in (0..40).flat_map(|seed| [(Change::Ttl, seed), (Change::ByteOrder, seed)]) {
        let config = CompressorConfig { sid_everywhere: true, ..CompressorConfig::new(channel) };
        let mut compressor = Compressor::new(config, CompressorMemory::owned(&channel, 4));
        let mut decompressor =
            Decompressor::new(DecompressorConfig::new(channel), DecompressorMemory::owned(&channel, 4));
        let mut random = SplitMix64(seed);
        let id_kind = if change == Change::Ttl { IdKind::Constant } else { IdKind::Counts };
        let id = random.next() as u16;
        let mut flow = TestFlow::udp(vec![IpLayer { id, id_kind, ..IpLayer::new(false, 1) }]);
        flow.media = Some(Media::new(MediaKind::Esp));
        let (mut rohc, mut back) = ([0; 400], [0; 400]);
        for i in 0..60 {
            flow.media.as_mut().unwrap().sn = 7;
            let layer = &mut flow.layers[0];
            match change {
                Change::Ttl => layer.ttl = if i < 30 { 64 } else { 63 },
                Change::ByteOrder => layer.id_kind = if i < 30 { IdKind::Counts } else { IdKind::Swapped },
            }
            let packet = flow.packet(&mut random);
            let now = Instant::from_millis(20 * i);
            let done = compressor.compress(now, &packet, &mut rohc).unwrap();
            let received = decompressor.decompress(now, &rohc[..done.len], &mut back);
            let received = received
                .unwrap_or_else(|error| panic!("{change:?}, seed {seed}, packet {i}: {error}: {done:?}"));
            assert_eq!(&back[..received.len], packet, "{change:?}, seed {seed}, packet {i}: {done:?}");
        }
    }
}
