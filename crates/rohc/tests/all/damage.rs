//! Damage does not spread beyond the packets that it hits, and loss not beyond those that are lost.
//!
//! The limits are those of `cargo bench -p thinair-rohc --bench damage`, which prints more flows.

use std::time::Duration;

use crate::common::damage::{DamageCount, DamageRun, Rates, UdpFlow};
use thinair_rohc::Mode;

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
