//! ROHCv2 (RFC 5225) over channels that lose, reorder and repeat packets: a packet that is delivered is the one that was sent, and
//! packets that are late by no more than the ratio allows are delivered.
//!
//! Each cell has wrong packets (and, where nothing but a CRC proves a candidate, the number that the formats let through),
//! packets of 1,000 that arrive and are not delivered, and the longest outage in packets. In full, with other seeds:
//!
//! ```text
//! THINAIR_PACKETS=1000000 THINAIR_SEED=2 cargo test --profile optimized -p thinair-rohc --test rohcv2_impaired -- --nocapture
//! ```

#![cfg(feature = "v2")]
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::journey::{Fates, JourneySetup, PacketFate, PacketPace, run_flows};
use common::source::{ChecksumUse, PacketSource, SourceKind};
use common::table::{OutcomeTable, Size, wrong};
use common::{IpLayer, SplitMix64, TestFlow};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Instant, Mode, ProfileSet, Refresh, ReorderRatio, RtpDetection, packet,
};

const COLUMNS: [&str; 5] = ["5 % late", "all late", "loss 20 %", "bursts 2 to 40", "5 % twice"];

/// Ratios, and packets by which a packet is late at most.
const RATIOS: [(ReorderRatio, u64); 4] = [
    (ReorderRatio::None, 1),
    (ReorderRatio::Quarter, 3),
    (ReorderRatio::Half, 7),
    (ReorderRatio::ThreeQuarters, 11),
];

/// The fates of a column.
struct Cell {
    column: usize,
    depth: u64,
    losing: u64,
}

impl Fates for Cell {
    fn of(&mut self, number: u64, random: &mut SplitMix64) -> PacketFate {
        let mut fate = PacketFate::default();
        // The context is there before anything is lost.
        if number <= 20 {
            return fate;
        }
        match self.column {
            0 if random.once_in(20) => fate.late = 1 + random.below(self.depth),
            1 => fate.late = random.below(self.depth + 1),
            2 => fate.is_lost = random.once_in(5),
            3 => {
                if self.losing == 0 && random.once_in(100) {
                    self.losing = 2 + random.below(39);
                }
                fate.is_lost = self.losing > 0;
                self.losing = self.losing.saturating_sub(1);
            }
            4 if random.once_in(20) => fate.again = Some(random.below(self.depth + 1)),
            _ => {}
        }
        fate
    }

    fn keeps_pace(&self) -> bool {
        self.column != 1
    }
}

/// Cells that miss their bar.
const OPEN: &[&str] = &[];

#[test]
fn packets_are_right_whatever_the_channel_does() {
    let size = Size::from_environment();
    for (ratio, depth) in RATIOS {
        println!("{ratio:?}, late by {depth} at most");
        let setups = JourneySetup::of_v2(&[PacketPace::MS_20, PacketPace::NONE], 50_000, ratio);
        let table =
            OutcomeTable::measure(&format!("rohcv2_{ratio:?}"), setups, &COLUMNS, &size, |setup, column| {
                run_flows(setup, size.seed + 1_000, size.packets(setup, 800), 20_000, || Cell {
                    column,
                    depth,
                    losing: 0,
                })
            });
        table.print(|_, outcome| {
            let bound = if outcome.bound > 0.0 { format!("/{:.0}", outcome.bound) } else { String::new() };
            let undelivered = 1_000.0 * outcome.undelivered as f64 / outcome.arrived as f64;
            format!("{}{bound} {undelivered:.1} {}", outcome.wrong, outcome.outage)
        });
        table.hold(OPEN, |_, _, outcome| wrong(outcome));
    }
}

/// Late packets of the second half that do not come back, of all of them, where the last packets of a flow of UDP are overtaken by
/// 1, then up to 3, then up to 7 others. The compressor begins with [`ReorderRatio::None`].
fn late_packets_lost(mode: Mode) -> (usize, usize) {
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v2()).unwrap();
    let mut compressor =
        Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(channel.sizes().blocks(0)));
    let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    let mut decompressor = Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(0)));
    let mut random = SplitMix64(7);
    let mut flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
    let (mut lost, mut late, mut now) = (0, 0, Instant::ZERO);
    for depth in [1, 3, 7] {
        // Packets that wait, each until so many others have overtaken it.
        let mut waiting: Vec<(u64, Vec<u8>, Vec<u8>)> = Vec::new();
        for number in 0..2_000 {
            now = now + Duration::from_millis(20);
            let packet = flow.packet(&mut random);
            let mut rohc = vec![0; 200];
            let len = compressor.compress(now, &packet, &mut rohc).unwrap().len;
            rohc.truncate(len);
            if random.once_in(10) && number > 20 {
                waiting.push((1 + random.below(depth), rohc, packet));
                continue;
            }
            let mut arriving = vec![(rohc, packet, false)];
            waiting.retain_mut(|(left, rohc, packet)| {
                *left -= 1;
                if *left == 0 {
                    arriving.push((core::mem::take(rohc), core::mem::take(packet), true));
                }
                *left > 0
            });
            for (rohc, packet, is_late) in arriving {
                let (mut back, mut feedback) = ([0; 300], [0; 16]);
                let done =
                    decompressor.decompress(now, &rohc, &mut back).map(|done| back[..done.len].to_vec());
                if is_late && number > 1_000 {
                    late += 1;
                    lost += usize::from(!done.is_ok_and(|back| back == packet));
                }
                while let Some(len) = decompressor.poll_feedback(&mut feedback) {
                    let parts = packet::parts(&feedback[..len]).unwrap();
                    parts.feedback.for_each(|element| compressor.receive_feedback(now, element).unwrap());
                }
            }
        }
    }
    (lost, late)
}

#[test]
fn acknowledgments_of_late_packets_widen_the_interval() {
    let (without, with) = (late_packets_lost(Mode::Unidirectional), late_packets_lost(Mode::Optimistic));
    println!(
        "late packets lost: {} of {} in U-mode, {} of {} in O-mode",
        without.0, without.1, with.0, with.1
    );
    assert!(without.0 > 10 && with.0 == 0 && with.1 > 200);
}

/// Packets of voice that are delivered behind a silence of so many intervals in packets that are lost, of 200 flows with 10 each.
fn delivered_behind_silence(intervals: u32) -> u32 {
    const INTERVAL: Duration = Duration::from_millis(20);
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v2()).unwrap();
    let mut delivered = 0;
    for seed in 0..200 {
        let config = CompressorConfig {
            rtp: RtpDetection::of_ports(&[5004]).unwrap(),
            refresh: Refresh::Off,
            ..CompressorConfig::new(channel)
        };
        let mut compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(0)));
        let mut decompressor = Decompressor::new(
            DecompressorConfig::new(channel),
            DecompressorMemory::owned(channel.sizes().blocks(0)),
        );
        let mut random = SplitMix64(seed);
        let mut source = PacketSource::new(SourceKind::Rtp, true, ChecksumUse::Carried, 160, seed);
        let mut now = Instant::ZERO;
        for number in 0..80 {
            // The flow has paused before.
            let silent = if [20, 40].contains(&number) { 30 } else { intervals * u32::from(number == 64) };
            now = now + INTERVAL * (silent + 1);
            if let PacketSource::Plain { flow, .. } = &mut source
                && let Some(media) = &mut flow.media
            {
                media.ts = media.ts.wrapping_add(160 * silent);
            }
            let (_, packet) = source.next(&mut random).remove(0);
            let (mut rohc, mut back) = ([0; 200], [0; 300]);
            let len = compressor.compress(now, &packet, &mut rohc).unwrap().len;
            if (60..70).contains(&number) {
                continue;
            }
            if let Ok(done) = decompressor.decompress(now, &rohc[..len], &mut back) {
                assert_eq!(back[..done.len], packet, "flow {seed}, packet {number}");
                delivered += u32::from(number >= 70);
            }
        }
    }
    delivered
}

/// The timestamp has jumped, and the clock tells by how much. A silence of 161 intervals and an SN that is 160 ahead of the right one have
/// the same UDP checksum.
#[test]
fn a_lost_silence_is_no_loss_of_160_packets() {
    let delivered = [100, 161].map(delivered_behind_silence);
    println!("delivered behind a silence of 100 and of 161 intervals: {delivered:?} of 2,000");
    assert!(delivered[0] > 1_900, "{delivered:?}");
}
