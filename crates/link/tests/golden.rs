//! First decisions of a seed: equal on every machine, and in every release after the first one.
//!
//! Losses and damaged bits are those of a second implementation, in another language.

#![allow(clippy::unwrap_used)]

use thinair_link::{
    BitErrorModel, BitErrors, ConstrainedLink, Direction, Duplex, Duplicate, GilbertElliott, Impairments,
    Integrity, Link, LinkEvent, LinkModel, LinkOutcome, LossModel, LossProcess, MeanBurst, Probability,
    Random, Reason, Reorder, Side, preset,
};
use thinair_wire::time::Instant;

const SEED: u64 = 0x7468_696e_6169_7201;

fn percent(percent: u32) -> Probability {
    Probability::from_percent(percent).unwrap()
}

fn bursts(rate: Probability, burst: u32) -> GilbertElliott {
    GilbertElliott::bursts(rate, MeanBurst::from_units(burst).unwrap()).unwrap()
}

fn general() -> GilbertElliott {
    GilbertElliott { p: percent(10), r: percent(25), k: percent(95), h: percent(30) }
}

/// Returns `x` for each lost packet, of 64.
fn losses(model: LossModel<'_>) -> String {
    let mut loss = LossProcess::new(model, Random::new(SEED));
    (0..64).map(|_| if loss.takes_next(20) { 'x' } else { '.' }).collect()
}

/// Returns the positions of damaged bits among the first 64.
fn damage(model: BitErrorModel) -> Vec<usize> {
    let mut octets = vec![0_u8; 100_000];
    BitErrors::new(model, Random::new(SEED)).damage(&mut octets);
    (0..octets.len() * 8).filter(|bit| octets[bit / 8] & 0x80 >> (bit % 8) != 0).take(64).collect()
}

#[test]
fn loss() {
    assert_eq!(
        losses(LossModel::Random(percent(30))),
        ".x...x...............x...x..xx..xx...x..x.....xx..x.x..x.....x.."
    );
    assert_eq!(
        losses(LossModel::Bursts(bursts(percent(20), 4))),
        "..........................xxxxxxxx.............................."
    );
    assert_eq!(
        losses(LossModel::Bursts(general())),
        "..........x.........xxxxx........x.x.......x...................."
    );
}

#[test]
fn bit_errors() {
    let rate = Probability::from_ppm(1_000).unwrap();
    assert_eq!(
        damage(BitErrorModel::Random(rate)),
        [
            354, 773, 1198, 2435, 2749, 3662, 4302, 4349, 5119, 5523, 7750, 8271, 8601, 13754, 13781, 16373,
            16968, 17256, 17306, 18123, 18884, 21411, 21691, 22247, 23075, 25095, 25500, 27313, 28366, 30222,
            32074, 32379, 33335, 34158, 34163, 35544, 35547, 37375, 37752, 38874, 39109, 39825, 39832, 43467,
            44682, 45608, 46691, 47069, 47774, 48565, 51301, 52208, 53047, 53361, 53957, 55716, 56430, 57451,
            57565, 57847, 58298, 58811, 59006, 60283
        ]
    );
    assert_eq!(
        damage(BitErrorModel::Bursts(bursts(rate, 5))),
        [
            7779, 7780, 7781, 18583, 18584, 18585, 18586, 26722, 26723, 34078, 34079, 34080, 38352, 38353,
            42201, 42202, 42203, 42204, 42205, 42206, 42207, 42208, 59857, 59858, 67273, 67274, 67275, 67276,
            67277, 67278, 67279, 67280, 67281, 67282, 67283, 67284, 67285, 67825, 67826, 67827, 68720, 68721,
            68722, 68723, 68724, 68725, 68726, 68727, 68728, 69832, 71293, 71294, 71495, 71496, 71497, 71498,
            71499, 71500, 78845, 78846, 79980, 79981, 79982, 81644
        ]
    );
    let chain = GilbertElliott { p: rate, r: percent(5), k: Probability::ALWAYS, h: percent(50) };
    assert_eq!(
        damage(BitErrorModel::Bursts(chain)),
        [
            355, 356, 360, 361, 367, 369, 370, 373, 375, 376, 377, 380, 383, 384, 386, 388, 1559, 1560, 1562,
            1566, 1567, 1570, 1573, 1575, 1576, 1577, 1579, 1581, 1966, 1967, 1968, 1971, 1972, 1973, 1974,
            1975, 1976, 1978, 3837, 3838, 3839, 5221, 5222, 7174, 13318, 13319, 13322, 13326, 13329, 13332,
            13333, 13334, 13335, 13340, 13341, 13344, 13347, 13350, 13351, 13352, 13355, 13356, 13799, 13801
        ]
    );
}

#[test]
fn reordering_and_duplicates() {
    let mut random = Random::new(SEED);
    let reorder = Reorder { probability: percent(30), up_to: 9 };
    let late: String = (0..64).map(|_| reorder.draw(&mut random).to_string()).collect();
    assert_eq!(late, "0500500000000000000400501002000905000030098070000900002774003800");
    let duplicate = Duplicate { probability: percent(30), up_to: 9 };
    let copies = (0..64).map(|_| duplicate.draw(&mut random).map_or(String::from("."), |n| n.to_string()));
    assert_eq!(
        copies.collect::<String>(),
        "....8..8..7....33823..6....3....5...........6.18.700...5..2....."
    );
}

/// `L` lost, `C` dropped by the check, else lateness in places; `!` damaged, `+` and the places of a copy.
#[test]
fn a_link() {
    let impairments = Impairments {
        loss: LossModel::Bursts(bursts(percent(15), 2)),
        bit_errors: BitErrorModel::Random(Probability::from_ppm(2_000).unwrap()),
        integrity: Integrity::Modelled { width: 1 },
        duplicate: Duplicate { probability: percent(10), up_to: 3 },
        reorder: Reorder { probability: percent(20), up_to: 4 },
    };
    let mut link = Link::new(impairments, SEED);
    let fates = (0..64).map(|_| match link.offer(&mut [0; 20]) {
        LinkOutcome::Dropped(Reason::Loss) => String::from("L"),
        LinkOutcome::Dropped(Reason::Integrity) => String::from("C"),
        LinkOutcome::At(arrival) => {
            let damaged = if arrival.flipped > 0 { "!" } else { "" };
            let copy = arrival.copy.map(|copy| format!("+{}", copy.late_by())).unwrap_or_default();
            format!("{}{damaged}{copy}", arrival.place.late_by())
        }
    });
    assert_eq!(
        fates.collect::<Vec<_>>().join(" "),
        "0+2 C 0 C 0 4 0! 4 1 C 0 0! 2 0 0! C 1! 0 C C L 0 C 0 C 4! L L L L 0 0+3 0 0! 0 C 0 C 0! 0 C 0 0! 0 C 0 0 C 0 \
         0+3 3 3 0! 0 0! 0! C 0 0 C 0! 1 0 4!"
    );
}

/// Microseconds from offer to arrival; `L` lost, `C` dropped by the check, `!` damaged.
#[test]
fn a_link_in_time() {
    let direction = Direction {
        loss: LossModel::Bursts(bursts(percent(15), 2)),
        bit_errors: BitErrorModel::Random(Probability::from_ppm(1_000).unwrap()),
        integrity: Integrity::Modelled { width: 1 },
        ..preset::GPRS.model.a_to_b
    };
    let mut link = ConstrainedLink::<[u8; 20]>::new(&LinkModel::symmetric(direction, Duplex::Full), SEED);
    for i in 0..48 {
        let from = if i % 3 == 2 { Side::B } else { Side::A };
        link.offer(Instant::from_millis(10 * i), from, [0; 20]).unwrap();
    }
    let fates = std::iter::from_fn(|| link.poll(Instant::from_millis(100_000))).map(|event| match event {
        LinkEvent::Dropped { reason, .. } => String::from(if reason.name() == "loss" { "L" } else { "C" }),
        LinkEvent::Delivered { times, flipped, .. } => {
            let damaged = if flipped > 0 { "!" } else { "" };
            format!("{}{damaged}", times.arrival.since(times.offered).as_micros())
        }
    });
    assert_eq!(
        fates.collect::<Vec<_>>().join(" "),
        "80502 82081 82258 C 80781 82914 84024 L C 81621 81487 L 82648 81607 80651 81309 81840 81845 81957 80698 \
         82822 81286 82266 L 82172 81658 84453 C 82006 80910 80514 80782 L 82490 L 83089 82497 L 80733 L 83059 \
         81140! 81635 82519 80596 82759 80582 81909"
    );
}
