//! Invariants of every constrained link, for any packets offered.

use std::time::Duration;

use proptest::prelude::*;
use thinair_link::{
    Airtime, BitErrorModel, CoDelConfig, ConstrainedLink, Direction, Discipline, Duplex, DutyCycle,
    Fragmentation, Framing, IdleWake, Integrity, Jitter, LinkEvent, LinkModel, LoRa, LossModel, Ofdm,
    Probability, Queue, Rate, Side, Times, energy, preset,
};
use thinair_wire::time::Instant;

type CheckedLink = ConstrainedLink<'static, Vec<u8>>;

fn direction() -> impl Strategy<Value = Direction<'static>> {
    let airtime = prop_oneof![
        Just(Airtime::None),
        (1_000_u64..1_000_000).prop_map(|bits| Rate::from_bps(bits).map_or(Airtime::None, Airtime::Rate)),
        Just(preset::LORA.model.a_to_b.airtime),
        Just(preset::WIFI_80211G.model.a_to_b.airtime),
    ];
    let discipline = prop_oneof![
        Just(Discipline::DropTail),
        (0_u64..50, 1_u64..200, 0_u32..200).prop_map(|(target, interval, max_packet)| {
            let (target, interval) = (Duration::from_millis(target), Duration::from_millis(interval));
            Discipline::CoDel(CoDelConfig { target, interval, max_packet })
        }),
    ];
    let queue = (1_u32..20, 50_u64..2_000, 1_u32..40, discipline)
        .prop_map(|(packets, octets, held, discipline)| Queue { packets, octets, discipline, held });
    let framing = prop_oneof![
        Just(Framing::default()),
        (0_u16..40, 0_u32..200, 0_u16..120).prop_map(|(overhead, mtu, payload)| Framing {
            overhead,
            mtu,
            fragmentation: Fragmentation::rfc4944(payload)
        }),
    ];
    let loss = prop_oneof![
        Just(LossModel::None),
        Just(LossModel::RohcTunnel16 { octets: 125 }),
        (0_u32..50)
            .prop_map(|percent| LossModel::Random(Probability::from_percent(percent).unwrap_or_default())),
    ];
    let damage = (any::<bool>(), any::<bool>()).prop_map(|(is_damaged, is_checked)| {
        let rate = Probability::from_ppm(1_000).unwrap_or_default();
        let bit_errors = if is_damaged { BitErrorModel::Random(rate) } else { BitErrorModel::None };
        (bit_errors, if is_checked { Integrity::Crc16 } else { Integrity::None })
    });
    let pauses = (proptest::option::of(1_u16..1_000), proptest::option::of((0_u64..50, 0_u64..50)));
    let spans = (0_u64..100, 0_u64..5, any::<bool>(), any::<bool>());
    (airtime, queue, framing, loss, damage, pauses, spans).prop_map(
        |(
            airtime,
            queue,
            framing,
            loss,
            damage,
            (share, idle),
            (delay, per_frame, keeps_order, is_jittery),
        )| Direction {
            airtime,
            per_frame: Duration::from_millis(per_frame),
            delay: Duration::from_millis(delay),
            jitter: if is_jittery { preset::GPRS.model.a_to_b.jitter } else { Default::default() },
            keeps_order,
            queue,
            framing,
            idle_wake: idle.map(|(after, wake)| IdleWake {
                after: Duration::from_millis(after),
                wake: Duration::from_millis(wake),
            }),
            duty_cycle: share.and_then(DutyCycle::from_per_mille),
            loss,
            bit_errors: damage.0,
            integrity: damage.1,
            ..Direction::IDEAL
        },
    )
}

fn model() -> impl Strategy<Value = LinkModel<'static>> {
    let duplex = prop_oneof![
        Just(Duplex::Full),
        (0_u64..3).prop_map(|ms| Duplex::Half { turnaround: Duration::from_millis(ms) }),
    ];
    (direction(), direction(), duplex).prop_map(|(a_to_b, b_to_a, duplex)| LinkModel {
        a_to_b,
        b_to_a,
        duplex,
    })
}

/// Packets to offer: milliseconds after the last one, sender, octets, and whether the link is
/// polled then.
fn offers() -> impl Strategy<Value = Vec<(u64, bool, usize, bool)>> {
    proptest::collection::vec((0_u64..30, any::<bool>(), 0_usize..250, any::<bool>()), 0..80)
}

/// Returns all events; packets begin with their number.
fn run(
    model: &LinkModel<'static>,
    seed: u64,
    offers: &[(u64, bool, usize, bool)],
) -> (CheckedLink, Vec<LinkEvent<Vec<u8>>>) {
    let mut link = CheckedLink::new(model, seed);
    let (mut now, mut events) = (Instant::ZERO, Vec::new());
    for (number, &(after, is_a, len, polls)) in offers.iter().enumerate() {
        now = now + Duration::from_millis(after);
        let mut packet = vec![0; len];
        packet.iter_mut().zip((number as u16).to_be_bytes()).for_each(|(to, octet)| *to = octet);
        // Rejected or not: the counters show it.
        let _ = link.offer(now, if is_a { Side::A } else { Side::B }, packet);
        if polls {
            events.extend(std::iter::from_fn(|| link.poll(now)));
        }
        for side in Side::ALL {
            let traffic = link.traffic(side);
            assert_eq!(
                traffic.offered,
                traffic.delivered + traffic.dropped.total() + u64::from(link.held(side)),
                "what is offered is delivered, dropped or held"
            );
        }
    }
    while let Some(at) = link.poll_at() {
        events.extend(std::iter::from_fn(|| link.poll(at)));
    }
    (link, events)
}

fn at(event: &LinkEvent<Vec<u8>>) -> Instant {
    match event {
        LinkEvent::Delivered { times, .. } => times.arrival,
        LinkEvent::Dropped { at, .. } => *at,
    }
}

fn delivered(events: &[LinkEvent<Vec<u8>>], side: Side) -> Vec<(Times, Vec<u8>)> {
    let delivered = events.iter().filter_map(|event| match event {
        LinkEvent::Delivered { to, packet, times, .. } if *to == side => Some((*times, packet.clone())),
        LinkEvent::Delivered { .. } | LinkEvent::Dropped { .. } => None,
    });
    delivered.collect()
}

/// Small or maximal values.
fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(Duration::ZERO), Just(Duration::from_millis(3)), Just(Duration::MAX)]
}

/// A link with extreme parameters.
fn extreme() -> impl Strategy<Value = Direction<'static>> {
    let modem = (any::<u8>(), prop_oneof![Just(0), any::<u32>()], any::<u8>(), any::<u16>()).prop_map(
        |(spreading_factor, bandwidth, coding_rate, preamble)| {
            let (has_header, has_crc) = (bandwidth % 2 == 0, bandwidth % 3 == 0);
            Airtime::LoRa(LoRa { spreading_factor, bandwidth, coding_rate, preamble, has_header, has_crc })
        },
    );
    let ofdm = (any::<u32>(), any::<u16>(), any::<u16>(), any::<u32>()).prop_map(
        |(preamble, service, bits, symbol)| Airtime::Ofdm(Ofdm { preamble, service, bits, symbol }),
    );
    let rate = prop_oneof![Just(1), Just(u64::MAX)]
        .prop_map(|bits| Rate::from_bps(bits).map_or(Airtime::None, Airtime::Rate));
    let spans = proptest::array::uniform7(span());
    let fragments = (any::<u16>(), any::<u8>(), any::<u8>(), any::<u8>());
    (prop_oneof![modem, ofdm, rate], spans, fragments, direction()).prop_map(
        |(airtime, [per_frame, delay, deviation, spike, after, wake, interval], fragments, direction)| {
            let (payload, first, next, unit) = fragments;
            let codel = CoDelConfig { target: Duration::ZERO, interval, max_packet: 0 };
            Direction {
                airtime,
                per_frame,
                delay,
                jitter: Jitter { deviation, spikes: Probability::ALWAYS, spike },
                queue: Queue { discipline: Discipline::CoDel(codel), ..direction.queue },
                framing: Framing {
                    overhead: payload,
                    mtu: 0,
                    fragmentation: Fragmentation::Frames { payload, first, next, unit },
                },
                idle_wake: Some(IdleWake { after, wake }),
                ..direction
            }
        },
    )
}

proptest! {
    #[test]
    fn numbers_without_sense_are_borne(a_to_b in extreme(), b_to_a in extreme(), turnaround in span(), offers in offers()) {
        let model = LinkModel { a_to_b, b_to_a, duplex: Duplex::Half { turnaround } };
        let (link, events) = run(&model, 1, &offers);
        prop_assert!(Side::ALL.iter().all(|side| link.held(*side) == 0));
        prop_assert!(events.windows(2).all(|pair| at(&pair[0]) <= at(&pair[1])));
        prop_assert!(!a_to_b.to_string().is_empty());
        for radio in energy::radios() {
            let mut usage = energy::Usage::default();
            radio.sends(&mut usage, offers.len());
            radio.spends(&usage, &energy::CORTEX_M3, u16::MAX);
        }
    }

    #[test]
    fn nothing_is_lost_without_a_reason(model in model(), seed: u64, offers in offers()) {
        let (link, events) = run(&model, seed, &offers);
        let mut offered = 0;
        for side in Side::ALL {
            prop_assert_eq!(link.held(side), 0);
            prop_assert_eq!(link.waiting(side), (0, 0));
            let traffic = link.traffic(side);
            offered += traffic.offered;
            prop_assert_eq!(traffic.offered, traffic.delivered + traffic.dropped.total());
        }
        prop_assert_eq!(offered, offers.len() as u64);
        prop_assert!(events.windows(2).all(|pair| at(&pair[0]) <= at(&pair[1])), "in the order of time");
    }

    #[test]
    fn a_direction_sends_one_after_the_other(model in model(), seed: u64, offers in offers()) {
        let (_, events) = run(&model, seed, &offers);
        for (to, direction) in [(Side::B, model.a_to_b), (Side::A, model.b_to_a)] {
            let mut sent = delivered(&events, to);
            for (times, _) in &sent {
                prop_assert!(times.offered <= times.start && times.start <= times.sent);
                prop_assert!(times.sent + direction.delay <= times.arrival);
            }
            if direction.keeps_order {
                prop_assert!(sent.windows(2).all(|pair| pair[0].0.start <= pair[1].0.start), "first in, first out");
            }
            sent.sort_by_key(|(times, _)| (times.start, times.sent));
            prop_assert!(sent.windows(2).all(|pair| pair[0].0.sent <= pair[1].0.start));
            prop_assert!(sent.windows(2).all(|pair| pair[0].0.offered <= pair[1].0.offered));
        }
    }

    #[test]
    fn on_a_shared_medium_one_is_on_the_air_at_a_time(model in model(), seed: u64, offers in offers()) {
        let model = LinkModel { duplex: Duplex::Half { turnaround: Duration::from_millis(1) }, ..model };
        let (_, events) = run(&model, seed, &offers);
        let mut on_air: Vec<_> = Side::ALL
            .into_iter()
            .flat_map(|to| delivered(&events, to).into_iter().map(move |(times, _)| (times.start, times.sent, to)))
            .collect();
        on_air.sort_by_key(|(start, sent, _)| (*start, *sent));
        for pair in on_air.windows(2) {
            prop_assert!(pair[0].1 <= pair[1].0, "{:?}", pair);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_events(model in model(), seed: u64, offers in offers()) {
        let (_, one) = run(&model, seed, &offers);
        let (_, other) = run(&model, seed, &offers);
        prop_assert_eq!(one, other);
    }

    /// The times of polling do not matter, if the link holds enough packets.
    #[test]
    fn polling_changes_nothing(model in model(), seed: u64, offers in offers()) {
        let roomy = |direction: Direction<'static>| {
            Direction { queue: Queue { held: u32::MAX, ..direction.queue }, ..direction }
        };
        let model = LinkModel { a_to_b: roomy(model.a_to_b), b_to_a: roomy(model.b_to_a), ..model };
        let asked = |polls| offers.iter().map(|offer| (offer.0, offer.1, offer.2, polls)).collect::<Vec<_>>();
        let (_, often) = run(&model, seed, &asked(true));
        let (_, at_the_end) = run(&model, seed, &asked(false));
        prop_assert_eq!(often, at_the_end);
    }
}
