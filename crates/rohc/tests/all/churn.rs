//! Where more flows than contexts are in use, none is larger than without compression but for a few octets: flows in turn and in
//! an order of chance, and floods of flows of one packet.

use std::collections::BTreeMap;

use thinair_rohc::{
    Channel, CidSpace, CompressorConfig, DecompressorConfig, Endpoint, Format, Instant, Mode, ProfileId,
    ProfileSet,
};
use thinair_wire::checksum::Sum;
use thinair_wire::header::ipv4::Ipv4;

/// Length up to which a flow may be larger: a context pays off after its first packets.
const SHORT: usize = 20;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) as u32
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }
}

/// An IPv4 packet.
fn ipv4(
    addresses: [u32; 2],
    protocol: u8,
    (ttl, tos): (u8, u8),
    id: u16,
    options: &[u8],
    body: &[u8],
) -> Vec<u8> {
    let head = 20 + options.len();
    let mut packet = vec![0x40 | (head / 4) as u8, tos];
    packet.extend(((head + body.len()) as u16).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend([0x40, 0, ttl, protocol, 0, 0]);
    packet.extend(addresses.iter().flat_map(|address| address.to_be_bytes()));
    packet.extend(options);
    let sum = Ipv4::checksum_of(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(body);
    packet
}

const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;

/// One direction of a TCP connection over IPv4.
#[derive(Clone)]
struct Connection {
    addresses: [u32; 2],
    ports: [u16; 2],
    seq: u32,
    ack: u32,
    clock: u32,
    id: u16,
    ttl: u8,
    window: u16,
}

impl Connection {
    fn new(number: u32, hosts: u32, random: &mut Random) -> Self {
        Self {
            addresses: [0x0A00_0001 + (number % hosts) * 256, 0x0A00_0002],
            ports: [20_000 + number as u16, 80],
            seq: random.next(),
            ack: random.next(),
            clock: random.next(),
            id: random.next() as u16,
            ttl: 64,
            window: 500,
        }
    }

    fn segment(&mut self, flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
        self.id = self.id.wrapping_add(1);
        let mut tcp = Vec::new();
        tcp.extend(self.ports.iter().flat_map(|port| port.to_be_bytes()));
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(if flags & ACK > 0 { self.ack } else { 0 }.to_be_bytes());
        tcp.extend([((20 + options.len()) as u8 / 4) << 4, flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.extend(payload);
        let pseudo: Vec<u8> = self.addresses.iter().flat_map(|address| address.to_be_bytes()).collect();
        let sum = Sum::ZERO.octets(&pseudo).word(6).word(tcp.len() as u16).octets(&tcp).checksum();
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let packet = ipv4(self.addresses, 6, (self.ttl, 0), self.id, &[], &tcp);
        self.seq = self.seq.wrapping_add(payload.len() as u32 + u32::from(flags & (SYN | FIN) > 0));
        packet
    }

    fn timestamps(&mut self, step: u32) -> Vec<u8> {
        self.clock = self.clock.wrapping_add(step);
        let mut options = vec![1, 1, 8, 10];
        options.extend(self.clock.to_be_bytes());
        options.extend(self.clock.wrapping_sub(7).to_be_bytes());
        options
    }

    /// A segment of a connection that goes on.
    fn next(&mut self, has_timestamps: bool, random: &mut Random) -> Vec<u8> {
        let step = 1 + random.below(50);
        let options = if has_timestamps { self.timestamps(step) } else { Vec::new() };
        let payload = vec![7; [0, 100, 400][random.below(3) as usize]];
        self.ack = self.ack.wrapping_add([0, 0, 1_448][random.below(3) as usize]);
        self.segment(ACK, &options, &payload)
    }
}

/// A packet: number of its flow, time in microseconds, octets.
type Packet = (u32, u64, Vec<u8>);

/// TCP connections by turns, or in an order of chance.
fn connections(flows: u32, each: u32, hosts: u32, in_turn: bool, has_timestamps: bool) -> Vec<Packet> {
    let mut random = Random(1);
    let mut all: Vec<_> = (0..flows).map(|i| Connection::new(i, hosts, &mut random)).collect();
    let order = (0..flows * each).map(|i| (i, i % flows));
    let mut left = vec![each; flows as usize];
    order
        .map(|(i, at)| {
            let mut at = if in_turn { at } else { random.below(flows) };
            while left[at as usize] == 0 {
                at = (at + 1) % flows;
            }
            left[at as usize] -= 1;
            (at, u64::from(i) * 1_000, all[at as usize].next(has_timestamps, &mut random))
        })
        .collect()
}

/// Octets of one flow.
#[derive(Clone, Copy, Debug, Default)]
struct FlowOctets {
    packets: usize,
    plain: usize,
    /// Feedback included.
    sent: usize,
    cids: usize,
    /// Octets of the IR packets of profile 0x0000 apart from the packets, and of feedback on them.
    uncompressed: usize,
}

impl FlowOctets {
    /// Octets above the plain ones, the CIDs and what no profile can do without.
    fn excess(&self) -> i64 {
        self.sent as i64 - (self.plain + self.cids + self.uncompressed) as i64
    }
}

fn carry(packets: &[Packet], profiles: ProfileSet, mode: Mode) -> BTreeMap<u32, FlowOctets> {
    let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
    let new = || {
        let decompressor = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        Endpoint::owned(CompressorConfig::new(channel), decompressor)
    };
    let (mut near, mut far) = (new(), new());
    let mut flows = BTreeMap::<u32, FlowOctets>::new();
    let (mut sent, mut back) = (vec![0; 2_000], vec![0; 2_000]);
    for (flow, micros, packet) in packets {
        let now = Instant::from_nanos(micros * 1_000);
        let done = near.send(now, packet, &mut sent).unwrap();
        let got = far.receive(now, &sent[..done.len], &mut back).unwrap();
        assert_eq!(&back[..got.len], &packet[..]);
        let octets = flows.entry(*flow).or_default();
        octets.packets += 1;
        octets.plain += packet.len();
        octets.sent += done.len;
        octets.cids += usize::from(done.cid.value() > 0);
        let is_uncompressed = done.profile == ProfileId::Uncompressed;
        octets.uncompressed += 3 * usize::from(is_uncompressed && done.format == Format::Ir);
        while let Some(len) = far.poll_feedback(&mut back) {
            octets.sent += len;
            octets.uncompressed += len * usize::from(is_uncompressed);
            // No packet follows the feedback, so nothing is delivered.
            let _ = near.receive(now, &back[..len], &mut []);
        }
    }
    flows
}

/// Octets of all connections, compared to those without compression.
fn saved(packets: &[Packet], profiles: ProfileSet, mode: Mode) -> i64 {
    -carry(packets, profiles, mode).values().map(FlowOctets::excess).sum::<i64>()
}

/// One flow more than contexts, in turn: each that gets a context takes it from the next one.
#[test]
fn flows_in_turn_keep_their_contexts() {
    let packets = connections(17, 200, 1, true, true);
    let tcp = ProfileSet::of(&[ProfileId::Tcp]).unwrap();
    let modes = [(Mode::Unidirectional, 85_000), (Mode::Optimistic, 110_000)];
    for (mode, least) in modes {
        let saved = saved(&packets, tcp, mode);
        assert!(saved >= least, "{}: {saved}", mode.letter());
    }
}

/// One SYN of each of many connections to a host, whose sources are others each time or a single one.
fn syns(flows: u32, hosts: u32) -> Vec<Packet> {
    let mut random = Random(2);
    (0..flows)
        .map(|i| {
            let mut connection = Connection::new(i, hosts, &mut random);
            (i, u64::from(i) * 500, connection.segment(SYN, &[2, 4, 5, 0xB4], &[]))
        })
        .collect()
}

/// IGMP version 2 reports for many groups, with the router alert option, from a few hosts.
fn reports(groups: u32, times: u32) -> Vec<Packet> {
    let mut id = 0;
    (0..groups * times)
        .map(|i| {
            let group = 0xEF00_0000 + i % groups * 0x101;
            let mut igmp = vec![0x16, 0, 0, 0];
            igmp.extend(group.to_be_bytes());
            let sum = Sum::ZERO.octets(&igmp).checksum();
            igmp[2..4].copy_from_slice(&sum.to_be_bytes());
            id += 1;
            let packet = ipv4([0x0A00_0001 + i % 3, group], 2, (1, 0xC0), id, &[], &igmp);
            (i % (groups * 3), u64::from(i) * 5_000, packet)
        })
        .collect()
}

/// UDP: `each` datagrams of each of `flows`, in turn in bursts.
fn datagrams(flows: u32, hosts: u32, each: u32, burst: u32, in_turn: bool) -> Vec<Packet> {
    let mut random = Random(3);
    let mut ids = vec![0_u16; flows as usize];
    let mut packets = Vec::new();
    for i in 0..flows * each / burst {
        let at = if in_turn { i % flows } else { random.below(flows) };
        for _ in 0..burst {
            let id = &mut ids[at as usize];
            *id = id.wrapping_add(1);
            let mut udp = Vec::new();
            udp.extend((20_000 + at as u16).to_be_bytes());
            udp.extend([0x12, 0x34]);
            let len = 20 + random.below(60) as usize;
            udp.extend((8 + len as u16).to_be_bytes());
            udp.extend((random.next() as u16 | 1).to_be_bytes());
            udp.extend((0..len).map(|_| random.next() as u8));
            let packet = ipv4([0x0A00_0001 + at % hosts * 256, 0x0A00_0002], 17, (64, 0), *id, &[], &udp);
            packets.push((at, packets.len() as u64 * 2_000, packet));
        }
    }
    packets
}

/// What all flows may cost above plain packets, CIDs and profile 0x0000: the first use of each context, and those whose end
/// shows that contexts churn, 12 octets each with feedback.
const FIRST: i64 = 20 * 12;

/// Flows of 1,000 that may be larger, by a few octets of the IR packets of a context: those that have lost it before it is known
/// that contexts churn, and those that end soon after they have got it.
const SOME: usize = 32;
const A_FEW: i64 = 15;

const MODES: [Mode; 3] = [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable];

/// Returns the octets above [`FIRST`] and the flows of more than 20 packets that are larger, in all modes.
fn larger(what: &str, packets: &[Packet]) -> (i64, usize) {
    let tcp = ProfileSet::of(&[ProfileId::Tcp]).unwrap();
    let (mut most, mut count) = (i64::MIN, 0);
    for (set, profiles) in [("default", ProfileSet::default()), ("v1", ProfileSet::v1()), ("tcp", tcp)] {
        for mode in MODES {
            let flows = carry(packets, profiles, mode);
            let excess = flows.values().map(FlowOctets::excess).sum::<i64>();
            let larger = flows.values().filter(|flow| flow.packets > SHORT && flow.excess() > 0);
            let (count_here, worst) = (larger.clone().count(), larger.map(FlowOctets::excess).max());
            println!(
                "{what}, {set}/{}: {excess:+} octets, {count_here} flows larger, {worst:?}",
                mode.letter()
            );
            assert!(worst.is_none_or(|worst| worst <= A_FEW), "{what}, {set}/{}: {worst:?}", mode.letter());
            most = most.max(excess - FIRST);
            count = count.max(count_here);
        }
    }
    (most, count)
}

#[test]
fn a_thousand_connections_in_turn_are_not_larger() {
    for (hosts, in_turn) in [(1, true), (1_000, true), (1_000, false)] {
        let packets = connections(1_000, 24, hosts, in_turn, hosts > 1);
        let (excess, flows) = larger(&format!("{hosts} hosts, {in_turn}"), &packets);
        assert!(excess <= 0 && flows <= SOME, "{hosts} hosts: {excess} octets, {flows} flows");
    }
}

#[test]
fn connections_that_never_answer_are_not_larger() {
    for hosts in [1, 7_000] {
        let (excess, _) = larger(&format!("SYNs of {hosts} hosts"), &syns(7_000, hosts));
        assert!(excess <= 0, "{hosts} hosts: {excess} octets");
    }
}

#[test]
fn reports_to_many_groups_are_not_larger() {
    for (groups, times) in [(3_000, 1), (40, 20), (10, 30)] {
        let (excess, flows) = larger(&format!("{groups} groups"), &reports(groups, times));
        assert!(excess <= 0 && flows == 0, "{groups} groups: {excess} octets, {flows} flows");
    }
}

#[test]
fn datagrams_of_many_flows_are_not_larger() {
    for (flows, each, burst, in_turn) in
        [(200, 24, 1, true), (200, 24, 1, false), (2_000, 1, 1, true), (40, 50, 5, true)]
    {
        let packets = datagrams(flows, 7, each, burst, in_turn);
        let (excess, flows) = larger(&format!("{flows} flows, {burst} in a row"), &packets);
        assert!(excess <= 0 && flows <= SOME, "{excess} octets, {flows} flows");
    }
}
