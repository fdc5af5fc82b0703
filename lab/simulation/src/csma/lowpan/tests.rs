use core::time::Duration;

use proptest::prelude::*;
use thinair_rohc::{Channel, CidSpace, CompressorConfig, DecompressorConfig, Mode, ProfileId, ProfileSet};
use thinair_segment::{Adaptive, Fixed};
use thinair_wire::header::protocol;

use super::super::network::Loads;
use super::super::{
    BitErrorRate, CsmaConfig, CsmaFraming, CsmaNetwork, MacConfig, NodeCounters, Running, Transfer,
    packet::header,
};
use super::*;
use crate::streams::RandomStreams;

fn rohc() -> Box<RohcChannel> {
    let profiles = ProfileSet::v1().with(ProfileId::Tcp).and_then(|set| set.with(ProfileId::Coap)).unwrap();
    let channel = Channel::new(CidSpace::Small, 3, profiles).unwrap();
    Box::new(RohcChannel {
        compressor: CompressorConfig::new(channel),
        decompressor: DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) },
        bases: Vec::new(),
        feedback_wait: Duration::from_millis(10),
        ends: None,
    })
}

fn compressions() -> [FrameCompression; 4] {
    [
        FrameCompression::None,
        FrameCompression::Iphc,
        FrameCompression::Rohc(rohc()),
        FrameCompression::RohcInUdp(rohc()),
    ]
}

fn config(
    topology: Topology,
    compression: FrameCompression,
    forwarding: Forwarding,
    rate: f64,
) -> CsmaConfig {
    CsmaConfig {
        topology,
        mac: MacConfig::default(),
        framing: CsmaFraming::Rfc4944(compression),
        forwarding,
        errors: BitErrorRate::constant(rate),
    }
}

fn transfer(network: CsmaConfig, mss: u16, octets: u64) -> Transfer {
    Transfer {
        to: network.topology.nodes() - 1,
        network,
        from: 0,
        octets,
        tcp: Transfer::tcp(mss, 1),
        limit: Duration::from_secs(6_000),
        trace: false,
    }
}

/// IPv6 and UDP around `payload`.
fn datagram(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = tunnel::wrap(from, to, payload);
    // A port that differs from the tunnel's.
    packet[41] = 0x17;
    packet[43] = 0x17;
    let sum = u16::from_be_bytes([packet[46], packet[47]]);
    let sum = thinair_wire::checksum::update(sum, 0xF0B1, 0xF017);
    packet[46..48].copy_from_slice(&thinair_wire::checksum::update(sum, 0xF0B1, 0xF017).to_be_bytes());
    packet
}

fn all(network: &mut CsmaNetwork<Vec<u8>>) -> Vec<PacketArrival<Vec<u8>>> {
    std::iter::from_fn(|| network.next_arrival()).collect()
}

/// Packet without Hop Limit, the one field that may change on the way.
fn without_hop_limit(mut packet: Vec<u8>) -> Vec<u8> {
    packet[7] = 0;
    packet
}

/// Computed by hand: 11 octets of MAC, 6 of the PHY; a dispatch; 40 and 8 of IPv6 and UDP, or 2 of LOWPAN_IPHC and 6 of
/// LOWPAN_NHC (a port of 16 bits, one of 8, the checksum).
#[test]
fn frames_are_as_long_as_their_formats() {
    for (compression, octets) in
        [(FrameCompression::None, 17 + 1 + 48 + 30), (FrameCompression::Iphc, 17 + 2 + 6 + 30)]
    {
        let star = Topology::Star { leaves: 2 };
        let config = config(star, compression, Forwarding::Single, 0.0);
        let mut network = CsmaNetwork::new(&config, RandomStreams::new(1), 0);
        let packet = datagram(1, 0, &[7; 30]);
        network.send(1, 0, packet.clone());
        let arrived = all(&mut network);
        assert_eq!((arrived[0].from, arrived[0].to, &arrived[0].packet), (1, 0, &packet));
        assert_eq!((network.counters(1).octets, network.counters(1).sent), (octets, 1));
        assert_eq!((network.counters(1).begun, network.counters(0).refused), (1, 0));
    }
}

/// A packet over several hops has 2 octets for each address that is not a neighbor's, or 5 of mesh header. The Hop
/// Limit of 64 has a code, lower ones after the first hop take an octet.
#[test]
fn frames_on_the_way_say_where_they_go() {
    for (compression, forwarding, octets) in [
        (FrameCompression::None, Forwarding::Single, [96 + 5; 3]),
        (FrameCompression::None, Forwarding::Reassembled(1), [96; 3]),
        (FrameCompression::Iphc, Forwarding::Single, [55 + 2, 55 + 4 + 1, 55 + 2 + 1]),
        (FrameCompression::Iphc, Forwarding::Reassembled(1), [55 + 2, 55 + 4 + 1, 55 + 2 + 1]),
    ] {
        let config = config(Topology::Chain { hops: 3 }, compression, forwarding, 0.0);
        let mut network = CsmaNetwork::new(&config, RandomStreams::new(1), 0);
        network.send(0, 3, datagram(0, 3, &[7; 30]));
        assert_eq!(all(&mut network).len(), 1);
        let at = |node| network.counters(node).octets;
        // Each node but the first also sends an acknowledgment of 11 octets.
        assert_eq!([at(0), at(1) - 11, at(2) - 11], octets, "{forwarding:?}");
    }
}

#[test]
fn files_arrive_over_five_hops_whatever_stands_for_headers() {
    for forwarding in [Forwarding::Single, Forwarding::Reassembled(4)] {
        let frames = compressions().map(|compression| {
            let network = config(Topology::Chain { hops: 5 }, compression, forwarding, 1e-5);
            let plan = transfer(network, 512, 40_000);
            let outcome = plan.run(&mut Fixed::new(512), RandomStreams::new(1), 0);
            let NodeCounters { refused, octets, .. } = outcome.all();
            assert!(outcome.is_complete && refused == 0, "{forwarding:?} {outcome:?}");
            octets
        });
        let [plain, iphc, rohc, in_udp] = frames;
        assert!(iphc < plain && rohc < iphc && rohc < in_udp, "{forwarding:?} {frames:?}");
    }
}

#[test]
fn a_bad_channel_loses_segments_and_no_octet_of_the_file() {
    for forwarding in [Forwarding::Single, Forwarding::Reassembled(4)] {
        for compression in compressions() {
            let network = config(Topology::Chain { hops: 4 }, compression, forwarding, 3e-4);
            let plan = Transfer { tcp: Transfer::tcp(1_024, 4), ..transfer(network, 64, 30_000) };
            let run = || plan.run(&mut Adaptive::default(), RandomStreams::new(1), 3);
            let outcome = run();
            assert!(outcome.is_complete && outcome.losses != (0, 0), "{forwarding:?} {outcome:?}");
            assert_eq!(outcome, run());
        }
    }
}

#[test]
fn what_is_left_behind_does_not_grow() {
    let network =
        config(Topology::Chain { hops: 5 }, FrameCompression::Iphc, Forwarding::Reassembled(4), 1e-4);
    let plan = transfer(network, 512, 60_000);
    let mut state = Running::new(&plan, RandomStreams::new(1), 0);
    while state.step(&plan, &mut Fixed::new(512), Instant::from_millis(600_000)) {}
    let Loads::Octets(load) = state.load() else { panic!("there are octets") };
    assert!(load.frames.len() < 40, "{}", load.frames.len());
}

#[test]
fn feedback_goes_alone_if_nobody_answers() {
    let star = Topology::Star { leaves: 1 };
    let config = config(star, FrameCompression::Rohc(rohc()), Forwarding::Single, 0.0);
    let mut network = CsmaNetwork::new(&config, RandomStreams::new(1), 0);
    for number in 0..20 {
        network.send(1, 0, datagram(1, 0, &[number; 10]));
        assert_eq!(all(&mut network).len(), 1);
    }
    // The first feedback is separate, in its own frame.
    let sent = network.counters(0).sent;
    assert!((1..6).contains(&sent), "{sent}");
    // 17 octets, 2 of dispatch, 10 of payload, and the ROHC header.
    network.clear_counters();
    network.send(1, 0, datagram(1, 0, &[99; 10]));
    all(&mut network);
    assert!(network.counters(1).octets < 17 + 2 + 10 + 6, "{}", network.counters(1).octets);
}

#[test]
fn a_hop_limit_ends() {
    let chain = Topology::Chain { hops: 3 };
    let config = config(chain, FrameCompression::Iphc, Forwarding::Reassembled(1), 0.0);
    let mut network = CsmaNetwork::new(&config, RandomStreams::new(1), 0);
    let mut packet = Vec::new();
    header(&address(0), &address(3), protocol::UDP, 0, &mut packet);
    packet[7] = 2;
    network.send(0, 3, packet);
    assert!(all(&mut network).is_empty());
    assert_eq!([1, 2].map(|node| network.counters(node).refused), [0, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn what_arrives_is_what_was_sent(
        topology in prop_oneof![
            (1_u16..6).prop_map(|hops| Topology::Chain { hops }),
            (1_u16..9).prop_map(|leaves| Topology::Star { leaves }),
        ],
        compression in 0_usize..4, is_single in any::<bool>(),
        errors in prop_oneof![Just(0.0), Just(1e-4), Just(2e-3)],
        packets in prop::collection::vec((any::<u16>(), any::<u16>(), 1_usize..400, 0_u64..60), 1..50),
    ) {
        let forwarding = if is_single { Forwarding::Single } else { Forwarding::Reassembled(2) };
        let config = config(topology, compressions()[compression].clone(), forwarding, errors);
        let mut network = CsmaNetwork::new(&config, RandomStreams::new(1), 0);
        let nodes = topology.nodes();
        let (mut sent, mut arrived, mut now) = (Vec::new(), Vec::new(), Instant::ZERO);
        for (number, (from, to, octets, wait)) in packets.iter().enumerate() {
            let (from, to) = (from % nodes, to % nodes);
            let mut payload = vec![number as u8; *octets];
            payload[0] = (number >> 8) as u8;
            let packet = datagram(from, to, &payload);
            network.send(from, to, packet.clone());
            if from != to {
                sent.push(without_hop_limit(packet));
            }
            now = now + Duration::from_millis(*wait);
            arrived.extend(std::iter::from_fn(|| network.next_before(now)));
        }
        arrived.extend(all(&mut network));
        for arrival in arrived {
            let packet = without_hop_limit(arrival.packet);
            let at = sent.iter().position(|sent| *sent == packet);
            prop_assert!(at.is_some(), "it was never sent");
            sent.remove(at.unwrap());
        }
        prop_assert!(errors > 0.0 || sent.len() < packets.len());
        for node in 0..nodes {
            prop_assert_eq!(network.waiting(node), 0);
        }
    }
}
