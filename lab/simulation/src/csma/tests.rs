use proptest::prelude::*;
use thinair_segment::{Adaptive, Fixed, Tssa};
use thinair_wire::time::Instant;

use super::*;
use crate::streams::RandomStreams;

fn config(topology: Topology) -> CsmaConfig {
    CsmaConfig {
        topology,
        mac: MacConfig::default(),
        framing: CsmaFraming::PAPER,
        forwarding: Forwarding::Single,
        errors: BitErrorRate::constant(0.0),
    }
}

fn transfer(network: CsmaConfig, mss: u16) -> Transfer {
    let to = network.topology.nodes() - 1;
    Transfer {
        network,
        from: 0,
        to,
        octets: 512 * 1024,
        tcp: Transfer::tcp(mss, 1),
        limit: Duration::from_secs(6_000),
        trace: false,
    }
}

fn chain(hops: u16) -> CsmaConfig {
    config(Topology::Chain { hops })
}

/// Configuration of the ns-3 runs: stop-and-wait, reassembly at every hop, carrier sensing over one hop.
fn of_ns3() -> CsmaConfig {
    CsmaConfig {
        mac: MacConfig { sense_range: 1, ..MacConfig::default() },
        forwarding: Forwarding::Reassembled(4),
        errors: BitErrorRate::constant(1e-5),
        ..chain(5)
    }
}

/// Packet identified by a number, without contents.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    octets: u16,
    number: usize,
}

const fn octets(octets: u16, number: usize) -> Numbered {
    Numbered { octets, number }
}

impl CsmaPacket for Numbered {
    fn octets(&self) -> u16 {
        self.octets
    }

    fn write(&self, _from: u16, _to: u16, _out: &mut Vec<u8>) {}

    fn read(_ipv6: &[u8]) -> Option<Self> {
        None
    }
}

fn all<P: CsmaPacket>(network: &mut CsmaNetwork<P>) -> Vec<PacketArrival<P>> {
    std::iter::from_fn(|| network.next_arrival()).collect()
}

/// 8,192 segments over 5 hops, 208 octets each with their acknowledgments: 32 us per octet, at 50.2 and 59.1 mW.
#[test]
fn without_errors_energy_is_that_of_the_octets_to_the_millijoule() {
    let outcome = transfer(chain(5), 64).run(&mut Fixed::new(64), RandomStreams::new(1), 0);
    let joules = outcome.energy.airtime.as_joules();
    let expected = 8_192.0 * 5.0 * 208.0 * 32e-6 * 0.1093;
    assert!(outcome.is_complete && (joules / expected - 1.0).abs() < 1e-3, "{joules} {expected}");
    assert_eq!((outcome.segments, outcome.acknowledged, outcome.retransmissions), (8_192, 524_288, 0));
    assert!(outcome.energy.airtime < outcome.energy.with_overhearing);
    assert!(outcome.energy.with_overhearing < outcome.energy.with_idle);
}

/// ns-3.37 and 3.44, one run each: 164,842, 72,075 and 61,777 frames; 20.6 and 19.1 J with overhearing.
#[test]
fn frames_and_energy_are_those_of_ns3() {
    for (mss, frames, energy) in
        [(64, 164_842.0, None), (512, 72_075.0, Some(20.6)), (1_024, 61_777.0, Some(19.1))]
    {
        let outcome = transfer(of_ns3(), mss).run(&mut Fixed::new(mss), RandomStreams::new(1), 0);
        let counters = outcome.all();
        let ours = (counters.sent + counters.acks) as f64;
        assert!((ours / frames - 1.0).abs() < 0.01, "{mss}: {ours}");
        if let Some(energy) = energy {
            let ours = outcome.energy.with_overhearing.as_joules();
            assert!((ours / energy - 1.0_f64).abs() < 0.03, "{mss}: {ours}");
        }
    }
}

#[test]
fn a_seed_determines_everything() {
    let network = CsmaConfig { errors: BitErrorRate::constant(2e-4), ..chain(5) };
    let plan =
        Transfer { octets: 32_768, tcp: Transfer::tcp(1_024, 4), trace: true, ..transfer(network, 64) };
    let run = |seed, run| plan.run(&mut Adaptive::default(), RandomStreams::new(seed), run);
    let outcome = run(1, 0);
    assert!(outcome.is_complete && outcome.losses != (0, 0));
    assert_eq!(outcome, run(1, 0));
    assert_ne!(outcome.duration, run(1, 1).duration);
    assert_ne!(outcome.duration, run(2, 0).duration);
}

#[test]
fn a_transfer_that_is_left_and_taken_up_again_is_the_same() {
    let network = CsmaConfig { errors: BitErrorRate::constant(3e-4), ..chain(3) };
    let plan = Transfer { octets: 20_000, tcp: Transfer::tcp(1_024, 2), ..transfer(network, 64) };
    let whole = plan.run(&mut Tssa::default(), RandomStreams::new(1), 0);
    let (mut state, mut sizer) = (Running::new(&plan, RandomStreams::new(1), 0), Tssa::default());
    for milliseconds in (0..6_000_000).step_by(777) {
        while state.step(&plan, &mut sizer, Instant::from_millis(milliseconds)) {}
    }
    assert_eq!(state.outcome(&plan), whole);
}

#[test]
fn sizes_follow_the_control() {
    let plan = Transfer { tcp: Transfer::tcp(1_024, 1), trace: true, ..transfer(chain(1), 64) };
    let outcome = plan.run(&mut Tssa::default(), RandomStreams::new(1), 0);
    let sizes: Vec<_> = outcome.sizes.iter().map(|point| point.size).collect();
    assert_eq!(sizes, [64, 128, 256, 512, 1_024]);
    assert_eq!(outcome.segments, 4 + (524_288_u64 - 960).div_ceil(1_024));
}

/// Section 7.5.1.4: a back-off of 0 to 7 periods of 320 us, 128 us of CCA, 192 us of turnaround, and 32 us per octet.
#[test]
fn a_frame_takes_its_backoff_assessment_turnaround_and_airtime() {
    let mut seen = std::collections::BTreeSet::new();
    for run in 0..100 {
        let mut network = CsmaNetwork::new(&chain(1), RandomStreams::new(1), run);
        network.send(0, 1, octets(100, 0));
        let at = all(&mut network).first().unwrap().at.as_nanos() / 1_000;
        let backoff = at - (128 + 192 + 121 * 32);
        assert!(backoff.is_multiple_of(320) && backoff <= 7 * 320, "{backoff}");
        seen.insert(backoff);
        // Turnaround and acknowledgment follow.
        assert_eq!(network.now().as_nanos() / 1_000, at + 192 + 352);
    }
    assert_eq!(seen.len(), 8);
}

#[test]
fn an_acknowledgment_that_is_lost_makes_no_packet_come_twice() {
    let mut network = CsmaNetwork::new(
        &CsmaConfig { errors: BitErrorRate::constant(1e-3), ..chain(1) },
        RandomStreams::new(1),
        0,
    );
    let mut arrived = Vec::new();
    for packet in 0..2_000 {
        network.send(0, 1, octets(60, packet));
        arrived.extend(all(&mut network).into_iter().map(|arrival| arrival.packet.number));
    }
    let counters = network.counters(1);
    assert!(counters.duplicates > 50, "{counters:?}");
    assert!(arrived.is_sorted_by(|a, b| a < b), "none twice");
    let dropped = network.counters(0).dropped;
    assert!(dropped > 0 && arrived.len() + dropped as usize >= 2_000, "{} {dropped}", arrived.len());
}

#[test]
fn stations_that_do_not_hear_each_other_collide_more() {
    let collisions = [1, 2].map(|sense_range| {
        let mac = MacConfig { sense_range, ..MacConfig::default() };
        let mut network = CsmaNetwork::new(
            &CsmaConfig { mac, ..config(Topology::Star { leaves: 8 }) },
            RandomStreams::new(1),
            0,
        );
        for _ in 0..50 {
            (1..=8).for_each(|leaf| network.send(leaf, 0, octets(80, 0)));
            all(&mut network);
        }
        network.counters(0).collisions
    });
    assert!(collisions[0] > 3 * collisions[1] && collisions[1] > 0, "{collisions:?}");
}

#[test]
fn a_busy_channel_drops_frames_or_has_them_tried_again() {
    let dropped = [AccessFailure::Drop, AccessFailure::Retry].map(|access_failure| {
        let mac = MacConfig { access_failure, ..MacConfig::default() };
        let mut network = CsmaNetwork::new(
            &CsmaConfig { mac, ..config(Topology::Star { leaves: 20 }) },
            RandomStreams::new(1),
            0,
        );
        for _ in 0..20 {
            (1..=20).for_each(|leaf| network.send(leaf, 0, octets(100, 0)));
            all(&mut network);
        }
        let failures: u64 = (1..=20).map(|leaf| network.counters(leaf).access_failures).sum();
        assert!(failures > 0);
        (1..=20).map(|leaf| network.counters(leaf).dropped).sum::<u64>()
    });
    assert!(dropped[0] > dropped[1] && dropped[1] > 0, "{dropped:?}");
}

#[test]
fn a_queue_that_is_full_takes_no_more() {
    let mac = MacConfig { queue: 3, ..MacConfig::default() };
    let mut network = CsmaNetwork::new(&CsmaConfig { mac, ..chain(1) }, RandomStreams::new(1), 0);
    (0..5).for_each(|packet| network.send(0, 1, octets(60, packet)));
    assert_eq!((network.waiting(0), network.counters(0).overflowed), (3, 2));
    assert!(all(&mut network).into_iter().map(|arrival| arrival.packet.number).eq(0..3));
}

#[test]
fn who_does_not_exist_is_sent_nothing() {
    let mut network = CsmaNetwork::new(&chain(1), RandomStreams::new(1), 0);
    network.send(0, 2, octets(60, 0));
    network.send(1, 1, octets(60, 0));
    assert!(network.is_quiet() && all(&mut network).is_empty());
}

#[test]
fn a_packet_takes_the_place_of_the_oldest_that_is_not_complete() {
    // One reassembly for three senders of two frames each: some are dropped.
    let network = |places| {
        let config = CsmaConfig {
            forwarding: Forwarding::Reassembled(places),
            ..config(Topology::Star { leaves: 3 })
        };
        let mut network = CsmaNetwork::new(&config, RandomStreams::new(1), 0);
        for _ in 0..20 {
            (1..=3).for_each(|leaf| network.send(leaf, 0, octets(200, 0)));
        }
        all(&mut network).len()
    };
    assert!(network(1) < network(3), "{} {}", network(1), network(3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_packet_arrives_once_or_is_counted_as_lost(
        topology in prop_oneof![
            (1_u16..7).prop_map(|hops| Topology::Chain { hops }),
            (2_u16..4, 2_u16..4).prop_map(|(width, height)| Topology::Grid { width, height }),
            (1_u16..9).prop_map(|leaves| Topology::Star { leaves }),
        ],
        ranges in (1_u8..4, 1_u8..3), queue in 1_u16..20, is_single in any::<bool>(), is_dropped in any::<bool>(),
        errors in prop_oneof![Just(0.0), Just(1e-4), Just(2e-3)],
        packets in prop::collection::vec((any::<u16>(), any::<u16>(), 0_u16..400, 0_u64..60), 1..60),
    ) {
        let mac = MacConfig {
            sense_range: ranges.0,
            interference_range: ranges.1,
            queue,
            access_failure: if is_dropped { AccessFailure::Drop } else { AccessFailure::Retry },
            ..MacConfig::default()
        };
        let forwarding = if is_single { Forwarding::Single } else { Forwarding::Reassembled(2) };
        let config = CsmaConfig { mac, forwarding, errors: BitErrorRate::constant(errors), ..config(topology) };
        let mut network = CsmaNetwork::new(&config, RandomStreams::new(1), 0);
        let nodes = topology.nodes();
        let (mut arrived, mut sent) = (Vec::new(), 0);
        let mut now = Instant::ZERO;
        for (number, (from, to, octets, wait)) in packets.iter().enumerate() {
            let (from, to) = (from % nodes, to % nodes);
            sent += usize::from(from != to);
            network.send(from, to, Numbered { octets: *octets, number });
            now = now + Duration::from_millis(*wait);
            while let Some(arrival) = network.next_before(now) {
                prop_assert_eq!((arrival.from, arrival.to), from_of(&packets, &arrival, nodes));
                arrived.push(arrival.packet.number);
            }
        }
        arrived.extend(all(&mut network).into_iter().map(|arrival| arrival.packet.number));
        prop_assert!(network.is_quiet());
        let count = arrived.len();
        arrived.sort_unstable();
        arrived.dedup();
        prop_assert_eq!(arrived.len(), count, "none twice");
        let mut all = NodeCounters::default();
        for node in 0..nodes {
            prop_assert_eq!(network.waiting(node), 0);
            let counters = network.counters(node);
            prop_assert_eq!(counters.usage.transmit, counters.octets * 32_000);
            prop_assert!(counters.usage.transmit + counters.usage.receive + counters.usage.overhear <= counters.usage.elapsed);
            all += &counters;
        }
        prop_assert!(count <= sent);
        if count < sent {
            // Reassemblies are scarce, too.
            prop_assert!(all.dropped + all.overflowed > 0 || !is_single, "{} of {}: {:?}", count, sent, all);
        }
        prop_assert!(all.dropped > 0 || all.sent >= all.acks.min(count as u64));
    }
}

fn from_of(packets: &[(u16, u16, u16, u64)], arrival: &PacketArrival<Numbered>, nodes: u16) -> (u16, u16) {
    let (from, to, ..) = packets[arrival.packet.number];
    (from % nodes, to % nodes)
}
