//! Damage does not spread beyond the packets that it hits, and loss not beyond those that are lost.
//!
//! The limits are those of `cargo bench -p thinair-rohc --bench damage`, which prints more flows.

use std::time::Duration;

use crate::common::SplitMix64;
use crate::common::damage::{DamageCount, DamageRun, Rates, UdpFlow};
use crate::common::source::{ChecksumUse, PacketSource, SourceKind};
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, DecompressError, Decompressor,
    DecompressorConfig, DecompressorMemory, Instant, Mode, ProfileSet,
};

const PACKETS: u32 = 2_000;
const SEEDS: u32 = 5;

fn all_seeds(run: &DamageRun) -> DamageCount {
    let mut all = DamageCount::default();
    for seed in 0..SEEDS {
        all.add(&run.carry(PACKETS, 100 + u64::from(seed)));
    }
    println!("{run:?}: {all:?}");
    all
}

/// Compares the average over the seeds with limits: number of packets that suffer from damage to others, and number
/// of wrong ones among them.
fn hold(run: &DamageRun, propagated: u32, wrong: u32) {
    let all = all_seeds(run);
    assert!(all.header_refused > 0 && all.payload + all.header_wrong > 0, "{run:?}: nothing was hit");
    assert!(all.propagated() <= SEEDS * propagated, "{run:?}: {all:?}");
    assert!(all.wrong <= SEEDS * wrong, "{run:?}: {all:?}");
    // CRC-3 accepts one damaged header in eight; most bits of a header belong to a field that it covers directly.
    assert!(all.header_wrong * 4 < all.header_refused, "{run:?}: {all:?}");
}

/// have no CRC. With `reliable_crc` every packet has one of 7 bits, which lets one damaged header in 128 through.
#[test]
fn damage_is_detected_in_r_mode_where_every_packet_has_a_crc() {
    let [seldom, always] = [false, true].map(|has_crc| {
        let mut all = DamageCount::default();
        for flow in UdpFlow::ALL.into_iter().chain(UdpFlow::ALL_RTP) {
            all.add(&all_seeds(&DamageRun { has_crc, ..DamageRun::new(flow, Mode::Reliable, DAMAGE) }));
        }
        all
    });
    let hit = |all: &DamageCount| all.header_refused + all.header_right + all.header_wrong;
    assert!(hit(&always) > 500 && always.header_wrong * 64 <= hit(&always), "{always:?}");
    assert!(seldom.header_wrong * 8 > hit(&seldom), "{seldom:?}");
}

const DAMAGE: Rates = Rates { damage: 5, loss: 0 };

#[test]
fn damage_in_one_header_costs_few_others() {
    for flow in UdpFlow::ALL.into_iter().chain(UdpFlow::ALL_RTP) {
        for mode in [Mode::Unidirectional, Mode::Optimistic] {
            hold(&DamageRun::new(flow, mode, DAMAGE), 4, 1);
        }
    }
}

#[test]
fn damage_costs_few_others_where_there_is_no_clock() {
    for flow in UdpFlow::ALL.into_iter().chain(UdpFlow::ALL_RTP) {
        for (mode, propagated) in [(Mode::Unidirectional, 20), (Mode::Optimistic, 10)] {
            let run = DamageRun { step: Duration::ZERO, ..DamageRun::new(flow, mode, DAMAGE) };
            hold(&run, propagated, 1);
        }
    }
}

#[test]
fn damage_and_loss_together_cost_few_others() {
    for flow in [UdpFlow::UDP_V4, UdpFlow::UDP_V6, UdpFlow::RTP] {
        for mode in [Mode::Unidirectional, Mode::Optimistic] {
            hold(&DamageRun::new(flow, mode, Rates { damage: 5, loss: 5 }), 4, 1);
        }
    }
}

#[test]
fn loss_costs_no_packet_that_arrives() {
    for flow in [UdpFlow::UDP_V4, UdpFlow::UDP_V6, UdpFlow::RTP] {
        for mode in [Mode::Unidirectional, Mode::Optimistic] {
            for loss in [5, 20] {
                let run = DamageRun::new(flow, mode, Rates { damage: 0, loss });
                let all = all_seeds(&run);
                assert!(all.lost > 0, "{run:?}");
                assert_eq!(all.propagated(), 0, "{run:?}");
            }
        }
    }
}

/// Returns the outcome of the last one of the packets behind a gap in a paced flow, if the CRC of each is damaged by these bits.
fn behind_gap(kind: SourceKind, lost: usize, damage: &[u8]) -> Result<(), DecompressError> {
    let channel = Channel::new(CidSpace::Small, 0, ProfileSet::v1()).unwrap();
    let mut compressor =
        Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(channel.sizes()));
    let mut decompressor =
        Decompressor::new(DecompressorConfig::new(channel), DecompressorMemory::owned(channel.sizes()));
    let mut source = PacketSource::new(kind, true, ChecksumUse::Elided, 160, 1);
    let (mut random, mut rohc, mut back) = (SplitMix64(1), [0; 400], [0; 400]);
    let mut now = Instant::ZERO;
    let mut send = |damage: u8| {
        now = now + Duration::from_millis(20);
        let packet = source.next(&mut random).remove(0).1;
        let sent = compressor.compress(now, &packet, &mut rohc).unwrap();
        (now, packet, rohc[..sent.len].to_vec(), damage)
    };
    let mut before: Vec<_> = (0..100 + lost).map(|_| send(0)).collect();
    before.truncate(100);
    let mut outcome = Ok(());
    for (now, packet, mut rohc, damage) in before.into_iter().chain(damage.iter().map(|bits| send(*bits))) {
        assert!(damage == 0 || rohc[0] & 0x80 == 0, "no UO-0: {rohc:?}");
        rohc[0] ^= damage;
        let done = decompressor.decompress(now, &rohc, &mut back);
        outcome = done.map(|done| assert!(damage > 0 || back[..done.len] == packet));
    }
    outcome
}

/// Behind two packets that fit nowhere, a CRC of 3 bits proves no candidate: the next one is on trial, and the flow goes on.
#[test]
fn behind_two_packets_that_fit_nowhere_the_next_one_is_on_trial() {
    let fits_nowhere = |outcome| matches!(outcome, Err(DecompressError::Crc(..)));
    for kind in [SourceKind::Udp, SourceKind::Esp] {
        let mut gaps = 0;
        for lost in 33..49 {
            let damaged = |before: &[u8]| {
                let mut runs = (1..8).map(|bits| [before, &[bits]].concat());
                runs.find(|damage| fits_nowhere(behind_gap(kind, lost, damage)))
            };
            let outcome =
                |damage: &[u8], intact: usize| behind_gap(kind, lost, &[damage, &vec![0; intact]].concat());
            let Some(one) = damaged(&[]).filter(|one| outcome(one, 1).is_ok()) else { continue };
            let Some(two) = damaged(&one) else { continue };
            assert!(matches!(outcome(&two, 1), Err(DecompressError::OnTrial(..))), "{:?}", outcome(&two, 1));
            assert_eq!(outcome(&two, 2), Ok(()));
            gaps += 1;
        }
        assert!(gaps > 0, "{kind:?}");
    }
}
