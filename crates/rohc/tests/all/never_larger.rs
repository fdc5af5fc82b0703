//! No pattern of packets makes the octets of a channel exceed those of its packets, except for the octets of CIDs, 3 more per
//! packet, and a constant per context.

use std::collections::BTreeMap;

use crate::common::coap::{CoapSide, TestMessage, datagram};
use crate::common::tcp::{Outer, TcpPacket};
use crate::common::{IpLayer, SplitMix64, TestFlow, any_flow};
use proptest::prelude::*;
use thinair_rohc::{
    Channel, CidSpace, Compressed, Compressor, CompressorConfig, CompressorMemory, Decompressor,
    DecompressorConfig, DecompressorMemory, Format, Instant, ProfileId, ProfileSet, Refresh,
};

/// Octets that each packet may cost in addition to its CID: those of an IR packet of profile 0x0000.
const EACH: usize = 3;

/// Octets that a context may cost at any time (4 IR packets of 32), with the packet that exceeds the limit.
const CONTEXT: usize = 4 * 32 + 64;

/// One direction of a link without loss, in U-mode, with the refreshes of a policy, or none.
struct NeverLargerLink {
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    packets: usize,
    plain: usize,
    sent: usize,
    formats: BTreeMap<(ProfileId, Format), usize>,
    cids: CidSpace,
    cid_octets: usize,
}

impl NeverLargerLink {
    fn new(cids: CidSpace, max_cid: u16, profiles: ProfileSet) -> Self {
        let channel = Channel::new(cids, max_cid, profiles).unwrap();
        let config = CompressorConfig { refresh: Refresh::Off, ..CompressorConfig::new(channel) };
        Self {
            compressor: Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(64))),
            decompressor: Decompressor::new(
                DecompressorConfig::new(channel),
                DecompressorMemory::owned(channel.sizes().blocks(64)),
            ),
            packets: 0,
            plain: 0,
            sent: 0,
            formats: BTreeMap::new(),
            cids,
            cid_octets: 0,
        }
    }

    fn carry(&mut self, packet: &[u8]) -> Compressed {
        let now = Instant::from_millis(20 * self.packets as u64);
        let (mut rohc, mut back) = (vec![0; 4_000], vec![0; 4_000]);
        let done = self.compressor.compress(now, packet, &mut rohc).unwrap();
        let received = self.decompressor.decompress(now, &rohc[..done.len], &mut back);
        let received = received.unwrap_or_else(|error| panic!("packet {}: {done:?}: {error}", self.packets));
        assert_eq!(&back[..received.len], packet, "packet {}: {done:?}", self.packets);
        self.packets += 1;
        self.plain += packet.len();
        self.sent += done.len;
        self.cid_octets += match (self.cids, done.cid.value()) {
            (CidSpace::Small, 0) => 0,
            (CidSpace::Small, _) | (CidSpace::Large, 0..=127) => 1,
            (CidSpace::Large, _) => 2,
        };
        *self.formats.entry((done.profile, done.format)).or_default() += 1;
        done
    }

    /// Returns the octets above the limit for that many contexts.
    fn excess(&self, contexts: usize) -> i64 {
        let allowed = self.plain + self.cid_octets + EACH * self.packets + CONTEXT * contexts;
        self.sent as i64 - allowed as i64
    }
}

fn v1_and(profiles: &[ProfileId]) -> ProfileSet {
    profiles.iter().fold(ProfileSet::v1(), |set, profile| set.with(*profile).unwrap())
}

/// 2,000 packets of two TCP connections between two hosts in turn, each with a flow label of its own, as Linux sends them.
#[test]
fn two_flow_labels_between_two_hosts_are_two_flows() {
    let sent = [v1_and(&[]), v1_and(&[ProfileId::Tcp])].map(|profiles| {
        let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
        let mut link = NeverLargerLink::new(CidSpace::Small, 15, profiles);
        let memory = CompressorMemory::owned(channel.sizes().blocks(64));
        link.compressor = Compressor::new(CompressorConfig::new(channel), memory);
        let mut packets: Vec<TcpPacket> = (0..2_u16)
            .map(|i| {
                let mut packet = TcpPacket::new(vec![Outer::new(true)], 40_000 + i);
                packet.ips[0].flow_label = 0x1_2345 + 777 * u32::from(i);
                packet.payload = vec![b'd'; 100];
                packet
            })
            .collect();
        for i in 0..2_000 {
            let packet = &mut packets[i % 2];
            packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(100);
            link.carry(&packet.octets());
        }
        link.sent - 2_000 * 100
    });
    sent.iter().for_each(|octets| println!("{octets} octets of headers of 120,000"));
    // Two connections with one label: 42,043 by profile 0x0004. Profile 0x0006 needs 9,092 if feedback ends the
    // repetitions.
    assert!(sent[0] <= 46_000 && sent[1] <= 11_000, "{sent:?}");
}

/// Datagrams without payload, as those that keep an address translation open. No IR packet of profile 0x0002 can carry one,
/// and the UDP header is the payload of profile 0x0004.
#[test]
fn datagrams_without_payload_are_compressed() {
    for six in [false, true] {
        for profiles in [v1_and(&[]), ProfileSet::default()] {
            let mut link = NeverLargerLink::new(CidSpace::Small, 15, profiles);
            for ip_id in 0..1_000 {
                link.carry(&datagram(six, 9, CoapSide::Client, ip_id, 64, b"", true));
            }
            assert!(link.sent < 1_000 * (8 + 3) + CONTEXT, "{} octets: {:?}", link.sent, link.formats);
        }
    }
    // One in three has no payload: profile 0x0002 carries all of them once its context is established.
    let mut link = NeverLargerLink::new(CidSpace::Small, 15, v1_and(&[]));
    for i in 0..1_000 {
        let payload = if i % 3 == 1 { &b""[..] } else { b"12" };
        link.carry(&datagram(true, 9, CoapSide::Client, i, 64, payload, true));
    }
    assert!(link.sent < 1_000 * (2 + 3) + 2 * CONTEXT, "{} octets: {:?}", link.sent, link.formats);
}

/// TCP of one connection, whose static chain changes with every packet: two labels in turn, and a new one each time.
#[test]
fn a_context_whose_static_chain_changes_for_ever_rests() {
    for profiles in [v1_and(&[]), v1_and(&[ProfileId::Tcp])] {
        for labels in [2, 3, 7, u32::MAX] {
            let mut link = NeverLargerLink::new(CidSpace::Small, 15, profiles);
            let mut packet = TcpPacket::new(vec![Outer::new(true)], 4_000);
            packet.payload = vec![1; 100];
            for i in 0..4_000_u32 {
                packet.ips[0].flow_label = (i % labels) & 0xF_FFFF;
                packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(100);
                link.carry(&packet.octets());
            }
            let init = link.formats.iter().filter(|((_, format), _)| format.is_initialization());
            let ir: usize = init.map(|(_, count)| count).sum();
            assert!(ir < 800, "{labels} labels: {:?}", link.formats);
            if labels < 16 {
                assert!(link.sent < link.plain - 4_000 * 20, "{labels} labels: {:?}", link.formats);
            }
            assert!(link.excess(16) < 0, "{labels} labels: {} more, {:?}", link.excess(16), link.formats);
        }
    }
}

/// More flows in turn than there are contexts.
#[test]
fn flows_that_take_the_contexts_of_each_other_are_rationed() {
    for hosts in [1, 40] {
        let mut link = NeverLargerLink::new(CidSpace::Small, 15, v1_and(&[]));
        let mut random = SplitMix64(1);
        let mut flows: Vec<TestFlow> = (0..40_u8)
            .map(|i| {
                let mut flow = TestFlow::udp(vec![IpLayer::new(true, i % hosts)]);
                flow.port = 2_000 + u16::from(i);
                flow
            })
            .collect();
        for i in 0..20_000 {
            let packet = flows[i % 40].packet(&mut random);
            link.carry(&packet);
        }
        let ir = link.formats.get(&(ProfileId::Udp, Format::Ir)).copied().unwrap_or_default();
        println!("{hosts} hosts: {} octets of {}, {:?}", link.sent, link.plain, link.formats);
        assert!(
            ir < 6_000 && link.sent < link.plain,
            "{hosts} hosts: {} octets of {}",
            link.sent,
            link.plain
        );
    }
}

/// Thousands of connections of one host; flows of other hosts keep their contexts.
#[test]
fn a_host_with_thousands_of_connections_leaves_others_their_contexts() {
    for (cids, max_cid) in [(CidSpace::Small, 15), (CidSpace::Large, 299)] {
        let mut link = NeverLargerLink::new(cids, max_cid, v1_and(&[]));
        let mut random = SplitMix64(1);
        let mut others: Vec<TestFlow> =
            (0..4).map(|i| TestFlow::udp(vec![IpLayer::new(true, 100 + i)])).collect();
        let mut ir = 0;
        for i in 0..6_000_u16 {
            if i % 500 == 0 {
                for other in &mut others {
                    for _ in 0..5 {
                        let packet = other.packet(&mut random);
                        ir += usize::from(link.carry(&packet).format == Format::Ir);
                    }
                }
            }
            let mut flow = TestFlow::udp(vec![IpLayer::new(true, 1)]);
            flow.port = 2_000 + i;
            let packet = flow.packet(&mut random);
            link.carry(&packet);
        }
        assert!(ir < 4 * 4 * 3, "{ir} of 240 packets, beside {:?}", link.formats);
    }
}

/// A new client of CoAP on IPv6 each time: a new port and a new label.
#[test]
fn new_clients_of_coap_cost_no_more_than_their_ir_packets() {
    for packets in [1, 2, 5, 20] {
        let mut link = NeverLargerLink::new(CidSpace::Small, 15, v1_and(&[]));
        let mut random = SplitMix64(1);
        for client in 0..600_u16 {
            let label = random.next() as u32 & 0xF_FFFF;
            for i in 0..packets {
                let message =
                    TestMessage::get(client.wrapping_mul(31).wrapping_add(i), &[b"sensors", b"temp"]);
                let mut packet = crate::common::coap::packet(true, 1, CoapSide::Client, 0, &message);
                packet[1..4].copy_from_slice(&label.to_be_bytes()[1..]);
                packet[40..42].copy_from_slice(&(30_000 + client).to_be_bytes());
                link.carry(&packet);
            }
        }
        let is_ir = |((_, format), _): &(&(ProfileId, Format), &usize)| *format == Format::Ir;
        let ir: usize = link.formats.iter().filter(is_ir).map(|(_, count)| count).sum();
        let more = link.sent as i64 - link.plain as i64;
        println!("{packets} packets a client: {more:+} octets of {}, {ir} IR packets", link.plain);
        assert!(more <= (link.cid_octets + EACH * ir) as i64, "{packets}: {more}, {:?}", link.formats);
    }
}

/// Returns a packet of a connection over one or two IP headers, with changes of fields that identify flows, and of others.
fn segment(connection: &mut TcpPacket, change: u64, random: &mut SplitMix64) -> Vec<u8> {
    if random.once_in(change) {
        let at = random.below(connection.ips.len() as u64) as usize;
        let ip = &mut connection.ips[at];
        match random.below(9) {
            0 => ip.flow_label = random.below(3) as u32,
            1 => ip.flow_label = random.next() as u32 & 0xF_FFFF,
            2 => ip.tos = random.next() as u8,
            3 => ip.ttl = random.next() as u8,
            4 => ip.options = random.below(3) as usize * usize::from(ip.six),
            5 => ip.id = random.next() as u16,
            6 => connection.tcp.source_port = 4_000 + random.below(3) as u16,
            7 => connection.wrong = random.below(2) as u16 * 77,
            _ => connection.tcp.sequence_number = random.next() as u32,
        }
    }
    connection.tcp.sequence_number = connection.tcp.sequence_number.wrapping_add(20);
    connection.payload = vec![3; 20];
    connection.octets()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn random_flows_cost_no_more_than_their_contexts(
        (seed, flows, large) in (any::<u64>(), 1_u64..24, any::<bool>()),
        (max_cid, profiles, change) in (1_u16..16, 0_usize..4, 1_u64..12),
    ) {
        let cids = if large { CidSpace::Large } else { CidSpace::Small };
        let both = [ProfileId::Tcp, ProfileId::Coap];
        let mut link = NeverLargerLink::new(cids, max_cid, v1_and([&[][..], &both[..1], &both[1..], &both[..]][profiles]));
        let mut random = SplitMix64(seed);
        let mut datagrams: Vec<TestFlow> = (0..flows).map(|_| any_flow(&mut random)).collect();
        let mut segments: Vec<TcpPacket> = (0..flows)
            .map(|i| {
                let layers = (0..=random.below(2)).map(|_| Outer::new(random.once_in(2))).collect();
                TcpPacket::new(layers, 4_000 + i as u16)
            })
            .collect();
        let mut begun = 0;
        for _ in 0..1_500 {
            let at = random.below(flows) as usize;
            let packet = if random.once_in(2) {
                segment(&mut segments[at], change, &mut random)
            } else {
                let flow = &mut datagrams[at];
                if random.once_in(change) {
                    flow.change(&mut random);
                    flow.layers[0].address %= 4;
                    if random.once_in(4) {
                        flow.layers[0].flow_label = random.below(3) as u32;
                    }
                }
                flow.packet(&mut random)
            };
            link.carry(&packet);
            begun = usize::from(max_cid) + 1 + link.compressor.displaced_flows() as usize;
        }
        prop_assert!(link.excess(begun) <= 0, "{} more with {begun} contexts, {:?}", link.excess(begun), link.formats);
    }
}
