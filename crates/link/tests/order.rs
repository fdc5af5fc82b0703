//! A link and its line together: arrivals and their order.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use thinair_link::{
    BitErrorModel, Duplicate, Impairments, Integrity, Link, LinkCounters, LinkOutcome, LossModel, NoSlot,
    Probability, Reason, Reorder, ReorderBuffer,
};

fn percent(percent: u32) -> Probability {
    Probability::from_percent(percent).unwrap()
}

/// Returns the numbers of the packets that come through, the order of arrivals, and the counters.
fn run(impairments: Impairments<'_>, seed: u64, packets: u64) -> (Vec<u64>, Vec<u64>, LinkCounters) {
    let mut link = Link::new(impairments, seed);
    let mut line = ReorderBuffer::new(vec![None; impairments.slots()]);
    let (mut through, mut arrived) = (Vec::new(), Vec::new());
    for i in 0..packets {
        if let LinkOutcome::At(arrival) = link.offer(&mut [0; 8]) {
            through.push(i);
            line.put(arrival, i).unwrap();
        }
        arrived.extend(std::iter::from_fn(|| line.poll()));
    }
    arrived.extend(std::iter::from_fn(|| line.flush()));
    (through, arrived, link.counters())
}

proptest! {
    #[test]
    fn everything_that_comes_through_arrives_and_not_later_than_allowed(
        loss in 0_u32..60, late in 0_u32..=100, up_to in 0_u16..9, twice in 0_u32..=100, later in 0_u16..9,
        seed in any::<u64>(),
    ) {
        let impairments = Impairments {
            loss: LossModel::Random(percent(loss)),
            reorder: Reorder { probability: percent(late), up_to },
            duplicate: Duplicate { probability: percent(twice), up_to: later },
            ..Impairments::default()
        };
        let (through, arrived, counters) = run(impairments, seed, 200);

        prop_assert_eq!(counters.offered - counters.lost, through.len() as u64);
        prop_assert_eq!(arrived.len() as u64, through.len() as u64 + counters.duplicated);
        let (originals, copies) = split(&arrived);
        let mut sorted = originals.clone();
        sorted.sort_unstable();
        prop_assert_eq!(&sorted, &through);
        // Among the originals none is overtaken by more than `up_to`, and only late packets are overtaken.
        let mut overtaken = 0;
        for (place, number) in originals.iter().enumerate() {
            let by = originals[..place].iter().filter(|other| *other > number).count();
            prop_assert!(by <= usize::from(up_to));
            overtaken += u64::from(by > 0);
        }
        prop_assert!(overtaken <= counters.late);
        prop_assert!(up_to > 0 || counters.late == 0);
        // Before a copy, no packet arrives that entered more than so many places after its original.
        let mut seen = Vec::new();
        for number in &arrived {
            let entered = through.binary_search(number).unwrap();
            if seen.contains(&entered) {
                prop_assert!(seen.iter().all(|other| *other <= entered + usize::from(up_to) + usize::from(later)));
            }
            seen.push(entered);
        }
        prop_assert_eq!(copies.len() as u64, counters.duplicated);
        if up_to == 0 && later == 0 {
            prop_assert!(arrived.is_sorted());
        }
    }
}

/// First and second arrivals.
fn split(arrived: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for number in arrived {
        if first.contains(number) { second.push(*number) } else { first.push(*number) }
    }
    (first, second)
}

#[test]
fn a_late_packet_is_overtaken_if_the_next_one_is_on_time() {
    let reorder = Reorder { probability: percent(10), up_to: 1 };
    let (_, arrived, counters) = run(Impairments { reorder, ..Impairments::default() }, 3, 1_000_000);
    let overtaken = arrived.windows(2).filter(|pair| pair[0] > pair[1]).count();
    // 0.1 * 0.9 of a million. Two neighbors are never both overtaken, which makes the deviation less than that of
    // independent draws, 286; 4 of them.
    assert!(overtaken.abs_diff(90_000) < 1_144, "{overtaken}");
    assert!(counters.late.abs_diff(100_000) < 1_200, "{counters:?}");
}

#[test]
fn by_default_a_link_changes_nothing() {
    let (through, arrived, counters) = run(Impairments::default(), 9, 1_000);
    assert_eq!(through, arrived);
    assert_eq!(counters, LinkCounters { offered: 1_000, ..LinkCounters::default() });
    assert_eq!(arrived, (0..1_000).collect::<Vec<_>>());
}

#[test]
fn what_is_lost_and_what_the_check_drops_is_distinguished_and_takes_no_place() {
    let impairments = Impairments {
        loss: LossModel::Pattern(&[true, false, false, false]),
        bit_errors: BitErrorModel::Random(Probability::from_ppm(5_000).unwrap()),
        integrity: Integrity::Crc32,
        ..Impairments::default()
    };
    let mut link = Link::new(impairments, 4);
    let (mut lost, mut dropped, mut last) = (0, 0, None);
    for i in 0..4_000_u32 {
        let mut octets = [7; 21];
        match link.offer(&mut octets) {
            LinkOutcome::Dropped(Reason::Loss) => {
                assert_eq!((i % 4, octets), (0, [7; 21]));
                lost += 1;
            }
            LinkOutcome::Dropped(Reason::Integrity) => dropped += 1,
            LinkOutcome::At(arrival) => {
                assert_eq!((octets, arrival.flipped, arrival.copy), ([7; 21], 0, None));
                assert!(Some(arrival.place) > last);
                last = Some(arrival.place);
            }
        }
    }
    assert_eq!(lost, 1_000);
    // 25 octets with the check sequence are damaged with 1 - 0.995^200 = 63.3 %: 1,899 of 3,000, with a deviation of
    // 26; 4 of them.
    assert!(u64::abs_diff(dropped, 1_899) < 104, "{dropped}");
    let counters = link.counters();
    let expected =
        LinkCounters { offered: 4_000, lost, damaged: dropped, dropped, ..LinkCounters::default() };
    assert_eq!(counters, expected);
}

#[test]
fn a_change_of_one_impairment_leaves_the_others_as_they_were() {
    let lossy = Impairments { loss: LossModel::Random(percent(20)), ..Impairments::default() };
    let more = Impairments {
        reorder: Reorder { probability: percent(20), up_to: 3 },
        bit_errors: BitErrorModel::Random(percent(1)),
        duplicate: Duplicate { probability: percent(20), up_to: 3 },
        ..lossy
    };
    assert_eq!(run(lossy, 5, 1_000).0, run(more, 5, 1_000).0);
    assert_ne!(run(lossy, 5, 1_000).0, run(lossy, 6, 1_000).0);
}

#[test]
fn a_buffer_without_slots_is_an_error() {
    let mut line = ReorderBuffer::new([None; 0]);
    let LinkOutcome::At(arrival) = Link::new(Impairments::default(), 1).offer(&mut []) else {
        panic!("it arrives")
    };
    assert_eq!(line.put(arrival, ()), Err(NoSlot));
    assert_eq!(line.poll(), None);
}
