//! Randomness on the link in time: rates of loss by size of packet, independence of the directions.

#![allow(clippy::unwrap_used)]

use thinair_link::{
    BitErrorModel, ConstrainedLink, Direction, DropReason, Duplex, Fragmentation, Framing, GilbertElliott,
    Integrity, LinkEvent, LinkModel, LossModel, LossUnit, MeanBurst, Probability, Side, preset,
};
use thinair_wire::time::Instant;

type RandomLink<'a> = ConstrainedLink<'a, Vec<u8>>;

/// Returns the percentage of packets of `len` octets that are dropped for this reason.
fn dropped(direction: Direction<'_>, len: usize, packets: u32, reason: DropReason) -> f64 {
    let mut link = RandomLink::new(&LinkModel::symmetric(direction, Duplex::Full), 11);
    for i in 0..packets {
        let now = Instant::from_millis(i.into());
        link.offer(now, Side::A, vec![0x5A; len]).unwrap();
        while link.poll(now).is_some() {}
    }
    let traffic = link.traffic(Side::A);
    assert_eq!(traffic.delivered + traffic.dropped.by(reason), u64::from(packets));
    100.0 * traffic.dropped.by(reason) as f64 / f64::from(packets)
}

/// Rates from the code of that tunnel at a bit error rate of 10^-3, packets of 5 to 52 octets.
#[test]
fn the_counter_of_the_rohc_tunnel_drops_what_it_is_known_to_drop() {
    let loss = LossModel::RohcTunnel16 { octets: 125 };
    let rates = [5, 21, 18, 33, 38, 52]
        .map(|len| dropped(Direction { loss, ..Direction::IDEAL }, len, 100_000, DropReason::Loss));
    let known = [4.2, 20.2, 16.8, 35.9, 43.7, 71.2];
    for (rate, known) in rates.into_iter().zip(known) {
        assert!((rate - known).abs() <= 0.051, "{rates:?}");
    }
}

/// 1 - 0.999^(8 n) for the same packets.
#[test]
fn independent_bit_errors_drop_what_the_formula_gives() {
    let direction = Direction {
        bit_errors: BitErrorModel::Random(Probability::from_ppm(1_000).unwrap()),
        integrity: Integrity::Modelled { width: 64 },
        ..Direction::IDEAL
    };
    for (len, known) in [(5, 3.9), (21, 15.5), (18, 13.4), (33, 23.2), (38, 26.2), (52, 34.0)] {
        let formula = 100.0 * (1.0 - 0.999_f64.powi(8 * len as i32));
        assert!((formula - known).abs() < 0.051);
        let rate = dropped(direction, len, 100_000, DropReason::Integrity);
        // Four deviations of at most 0.15 %.
        assert!((rate - formula).abs() < 0.6, "{len}: {rate} of {formula}");
    }
}

/// 5 octets of packet in a frame of 21.
#[test]
fn damage_of_what_the_link_layer_adds_is_found_too() {
    for integrity in [Integrity::Modelled { width: 64 }, Integrity::None] {
        let direction = Direction {
            bit_errors: BitErrorModel::Random(Probability::from_ppm(1_000).unwrap()),
            integrity,
            framing: Framing { overhead: 16, ..Framing::default() },
            ..Direction::IDEAL
        };
        let rate = dropped(direction, 5, 100_000, DropReason::Integrity);
        let known = if integrity == Integrity::None { 0.0 } else { 15.5 };
        assert!((rate - known).abs() < 0.6, "{rate} of {known}");
    }
}

#[test]
fn bits_are_flipped_if_nothing_checks_them() {
    let bit_errors = BitErrorModel::Random(Probability::from_percent(1).unwrap());
    let framing = Framing { overhead: 40, mtu: 0, fragmentation: Fragmentation::rfc4944(32) };
    let direction = Direction { bit_errors, framing, ..Direction::IDEAL };
    let mut link = RandomLink::new(&LinkModel::symmetric(direction, Duplex::Full), 5);
    let mut bits = 0;
    for _ in 0..1_000 {
        link.offer(Instant::ZERO, Side::B, vec![0; 100]).unwrap();
        let Some(LinkEvent::Delivered { packet, flipped, to: Side::A, .. }) = link.poll(Instant::ZERO) else {
            panic!()
        };
        assert_eq!(packet.iter().map(|octet| u64::from(octet.count_ones())).sum::<u64>(), flipped);
        bits += flipped;
    }
    // Of 800,000, with a deviation of 89.
    assert!(bits.abs_diff(8_000) < 360, "{bits}");
    assert!(link.traffic(Side::B).damaged > 990);
}

/// With p = 10 % for a frame, and 1, 2, 3 and 4 of them.
#[test]
fn a_packet_is_lost_with_any_of_its_fragments() {
    let loss = LossModel::Random(Probability::from_percent(10).unwrap());
    let framing = Framing { overhead: 0, mtu: 0, fragmentation: Fragmentation::rfc4944(29) };
    let frames = Direction { loss, framing, ..Direction::IDEAL };
    let fragments = Direction { loss, loss_unit: LossUnit::Fragment(24), ..Direction::IDEAL };
    let packets = Direction { loss_unit: LossUnit::Packet, ..frames };
    for n in 1..5 {
        let whole = 100.0 * (1.0 - 0.9_f64.powi(n));
        for (direction, known) in [(frames, whole), (fragments, whole), (packets, 10.0)] {
            let rate = dropped(direction, 24 * n as usize, 40_000, DropReason::Loss);
            // Four deviations of at most 0.25 %.
            assert!((rate - known).abs() < 1.0, "{n}: {rate} of {known}");
        }
    }
}

#[test]
fn bursts_and_lists_reach_the_link() {
    let chain =
        GilbertElliott::bursts(Probability::from_percent(20).unwrap(), MeanBurst::from_units(4).unwrap());
    let direction = Direction { loss: LossModel::Bursts(chain.unwrap()), ..Direction::IDEAL };
    let rate = dropped(direction, 10, 100_000, DropReason::Loss);
    // Bursts make the deviation (2 * 4 - 1)^0.5 times larger: 0.34 %.
    assert!((rate - 20.0).abs() < 1.4, "{rate}");
    let trace = [true, false, false, true, false];
    let direction = Direction { loss: LossModel::Pattern(&trace), ..Direction::IDEAL };
    assert_eq!(dropped(direction, 10, 1_000, DropReason::Loss), 40.0);
}

/// Packets of A have equal outcomes, whatever B sends and whatever happens to that.
#[test]
fn a_direction_has_its_own_chance() {
    let lossy = Direction {
        loss: LossModel::Random(Probability::from_percent(10).unwrap()),
        bit_errors: BitErrorModel::Random(Probability::from_ppm(500).unwrap()),
        ..preset::GPRS.model.a_to_b
    };
    let run = |b_to_a: Direction<'static>, from_b: usize| {
        let mut link = RandomLink::new(&LinkModel { a_to_b: lossy, b_to_a, duplex: Duplex::Full }, 21);
        for i in 0..300_u32 {
            let now = Instant::from_millis(u64::from(i) * 20);
            link.offer(now, Side::A, vec![0; 30]).unwrap();
            (0..from_b).for_each(|_| link.offer(now, Side::B, vec![0; 50]).unwrap());
        }
        let end = Instant::from_millis(1_000_000);
        let events = std::iter::from_fn(|| link.poll(end)).filter(|event| match event {
            LinkEvent::Delivered { to, .. } => *to == Side::B,
            LinkEvent::Dropped { from, .. } => *from == Side::A,
        });
        events.collect::<Vec<_>>()
    };
    let alone = run(Direction::IDEAL, 0);
    assert_eq!(alone.len(), 300);
    assert_eq!(run(lossy, 3), alone);
    assert_eq!(run(preset::WIFI.model.a_to_b, 1), alone);
}
