//! Bursts of losses, and a decompressor that ignores pauses, as behind a compressor of another make; also without a clock at all.
//! All bursts are within the bits of the SN, so that RFC 3095, section 5.3.2.2.3, decompresses what follows.

use crate::common::SplitMix64;
use crate::common::source::{ChecksumUse, PacketSource, SourceKind};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Instant, Interop, ProfileSet, Refresh,
};

const PACKETS: u64 = 10_000;
const SEEDS: u64 = 10;

/// Returns the numbers of packets that were wrong, and not delivered.
fn run(kind: SourceKind, profiles: ProfileSet, pace_ms: u64, longest: u64, seed: u64) -> (u64, u64) {
    let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
    // With refreshes as rare as those of rohc-lib.
    let refresh = Refresh::Periodic { packets: Some(1_700), time: None, backoff: false };
    let config = CompressorConfig { refresh, ..CompressorConfig::new(channel) };
    let mut compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
    let interop = Interop { ignores_pauses: true, ..Interop::STANDARD };
    let config = DecompressorConfig { interop, ..DecompressorConfig::new(channel) };
    let mut decompressor = Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4)));
    let mut source = PacketSource::new(kind, false, ChecksumUse::Carried, 160, 7);
    let (mut rohc, mut back) = ([0; 400], [0; 400]);
    let (mut random, mut lost, mut outcome) = (SplitMix64(seed), 0, (0, 0));
    for number in 0..PACKETS {
        let (_, sent) = source.next(&mut random).remove(0);
        let now = Instant::from_millis(1_000 + number * pace_ms);
        let len = compressor.compress(now, &sent, &mut rohc).unwrap().len;
        if lost == 0 && number > 100 && random.once_in(50) {
            lost = 1 + random.below(longest);
        }
        if lost > 0 {
            lost -= 1;
            continue;
        }
        match decompressor.decompress(now, &rohc[..len], &mut back) {
            Ok(done) => outcome.0 += u64::from(back[..done.len] != sent),
            Err(_) => outcome.1 += 1,
        }
    }
    outcome
}

#[test]
fn packets_behind_a_loss_within_the_bits_come_back() {
    for (kind, profiles, most_percent) in [
        (SourceKind::Udp, ProfileSet::v1(), 1),
        (SourceKind::Ip, ProfileSet::v1(), 1),
        // An SN that is the sender's own may take any step.
        (SourceKind::Esp, ProfileSet::v1(), 4),
        (SourceKind::Udp, ProfileSet::v2(), 1),
    ] {
        // Without a clock, two packets in a row that may be late are held back; with other losses behind them the bits come round.
        for (pace_ms, longest, most_percent) in [(20, 10, most_percent), (0, 7, most_percent), (0, 10, 8)] {
            let (mut wrong, mut undelivered) = (0, 0);
            for seed in 0..SEEDS {
                let one = run(kind, profiles, pace_ms, longest, seed);
                (wrong, undelivered) = (wrong + one.0, undelivered + one.1);
            }
            println!("{kind:?} {pace_ms} ms, 1 to {longest}: {wrong} wrong, {undelivered} not delivered");
            let all = PACKETS * SEEDS;
            assert!(wrong <= all / 1_000 && undelivered <= all * most_percent / 100, "{kind:?} {pace_ms} ms");
        }
    }
}
