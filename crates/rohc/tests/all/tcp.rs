//! Tests of profile 0x0006 from one end to the other: every packet is delivered correctly, or not at all.

use std::collections::BTreeMap;

use crate::common::tcp::{Outer, TcpPacket, sack, timestamps};
use proptest::collection::vec;
use proptest::prelude::*;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor, DecompressorConfig,
    DecompressorMemory, Endpoint, Format, Instant, Mode, ProfileId, ProfileSet,
};

fn channel(cids: CidSpace) -> Channel {
    Channel::new(cids, 15, ProfileSet::v1().with(ProfileId::Tcp).unwrap()).unwrap()
}

fn endpoint(cids: CidSpace, mode: Mode, seed: u64) -> Endpoint<'static> {
    let channel = channel(cids);
    let config = CompressorConfig { seed, ..CompressorConfig::new(channel) };
    let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
    let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    Endpoint::new(compressor, Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4))))
}

/// A link without losses, and the packets that it has carried.
struct TcpLink {
    near: Endpoint<'static>,
    far: Endpoint<'static>,
    sent: u64,
    /// Milliseconds from one end to the other.
    delay: u64,
    formats: BTreeMap<Format, usize>,
    headers: usize,
}

impl TcpLink {
    fn new(mode: Mode) -> Self {
        let (near, far) = (endpoint(CidSpace::Small, mode, 1), endpoint(CidSpace::Small, mode, 2));
        Self { near, far, sent: 0, delay: 0, formats: BTreeMap::new(), headers: 0 }
    }

    /// Carries a packet, and returns profile, format and octets of its header.
    fn carry(&mut self, packet: &TcpPacket) -> (ProfileId, Format, usize) {
        let octets = packet.octets();
        let now = Instant::from_millis(10 * self.sent);
        self.sent += 1;
        let (mut rohc, mut back) = (vec![0; 4096], vec![0; 4096]);
        let done = self.near.send(now, &octets, &mut rohc).unwrap();
        let len = done.len;
        *self.formats.entry(done.format).or_default() += 1;
        self.headers += done.header_out;
        let arrival = Instant::from_millis(10 * (self.sent - 1) + self.delay);
        let delivered = self.far.receive(arrival, &rohc[..len], &mut back);
        let delivered = delivered
            .unwrap_or_else(|error| panic!("packet {}, {:?}, {packet:x?}: {error}", self.sent, done.format));
        assert_eq!(back[..delivered.len], octets, "packet {}, {:?}", self.sent, done.format);
        // A packet of the other direction carries feedback.
        let len = self.far.send(now, &[0x60; 40], &mut rohc).unwrap().len;
        self.near.receive(now, &rohc[..len], &mut back).unwrap();
        (done.profile, done.format, done.header_out)
    }

    /// Carries packets, and returns the last one.
    fn carry_all(&mut self, packets: impl Iterator<Item = TcpPacket>) -> Option<TcpPacket> {
        let mut last = None;
        for packet in packets {
            self.carry(&packet);
            last = Some(packet);
        }
        last
    }
}

/// Segments of one flow, of 20 octets each.
fn segments(port: u16, sequence_number: u32) -> impl Iterator<Item = TcpPacket> {
    (0..).map(move |i: u16| {
        let mut packet = TcpPacket::new(vec![Outer::new(false)], port);
        packet.ips[0].id = i;
        packet.tcp.sequence_number = sequence_number.wrapping_add(20 * u32::from(i));
        packet.payload = vec![7; 20];
        packet
    })
}

/// A SYN with an unusual checksum, and these options.
fn syn(options: &[u8]) -> TcpPacket {
    let mut packet = TcpPacket::new(vec![Outer::new(false)], 4000);
    (packet.ips[0].id, packet.ips[0].df, packet.wrong) = (1, false, 77);
    (packet.tcp.syn, packet.tcp.ack) = (true, false);
    (packet.tcp.sequence_number, packet.tcp.acknowledgment_number) = (0, 0);
    packet.options = options.to_vec();
    packet
}

/// Octets of all packets of a stream in U-mode.
fn octets_in_u_mode(packets: &[TcpPacket]) -> usize {
    let mut link = TcpLink::new(Mode::Unidirectional);
    packets.iter().map(|packet| link.carry(packet).2 + packet.payload.len()).sum()
}

/// SYNs that follow at once are no retransmissions, and take as many IR packets as any flow. The limits are the octets of rohc-lib in
/// U-mode for streams of this shape, "generic stable and irregular options" and "many EOL options".
#[test]
fn repeated_syns_take_no_more_octets_than_those_of_another_implementation() {
    let generic = syn(&[25, 10, 0, 1, 2, 3, 4, 5, 6, 7, 0, 0]);
    let octets = octets_in_u_mode(&vec![generic; 8]);
    assert!(octets <= 234, "{octets}");
    // rohc-lib's octets without the first two packets, whose options no list can encode.
    let octets = octets_in_u_mode(&vec![syn(&[0; 32]); 8]);
    assert!(octets <= 356 - 81 - 77 - 8, "{octets}");
}

/// A SYN that is repeated after a timeout shows that it did not arrive, so that it is an IR packet, however often.
#[test]
fn a_syn_that_is_sent_again_behind_a_pause_is_an_ir_packet() {
    let mut link = TcpLink::new(Mode::Unidirectional);
    for i in 0..7 {
        link.sent += 100 << i;
        assert_eq!(link.carry(&syn(&[2, 4, 5, 180])).1, Format::Ir, "{i}");
    }
}

/// Generic options get low indices whenever they are sent in full anyway: a list of low indices is shorter.
#[test]
fn options_that_are_no_longer_used_leave_their_indices() {
    let sizes = |first: &[u8]| {
        let mut link = TcpLink::new(Mode::Unidirectional);
        link.carry(&syn(first));
        let mut all = vec![];
        for i in 0..6 {
            let mut options = [&[232, 3, 0][..], &[1; 1]].concat();
            if i % 2 == 1 {
                options.extend([2, 4, 5, 180]);
            }
            all.push(link.carry(&syn(&options)).2);
        }
        // Their content has been repeated by then in either flow.
        all.split_off(4)
    };
    assert_eq!(sizes(&[132, 2, 232, 3, 0, 1, 1, 1]), sizes(&[232, 3, 0, 1, 1, 1, 1, 1]));
}

/// TCP has waited for an acknowledgment, and would wait for twice as long: this packet can be decompressed, whatever was lost
/// before.
#[test]
fn a_segment_that_is_sent_again_behind_a_pause_says_everything() {
    let mut link = TcpLink::new(Mode::Optimistic);
    let mut packets = segments(4000, 1);
    let last = link.carry_all(packets.by_ref().take(20)).unwrap();
    let formats = [0, 30, 0].map(|pause| {
        link.sent += pause;
        link.carry(&last).1
    });
    assert!(formats[0] != Format::IrDyn && formats[1] == Format::IrDyn, "{formats:?}");
    // Later packets are as small as ever, with or without a pause.
    link.sent += 30;
    assert_ne!(link.carry(&packets.next().unwrap()).1, Format::IrDyn);
}

/// Both are delivered at once without losses: near the last numbers, and far from them.
#[test]
fn wrong_checksums_come_back_wherever_the_numbers_are() {
    for far in [false, true] {
        let mut link = TcpLink::new(Mode::Optimistic);
        let mut packets = segments(4000, 1);
        link.carry_all(packets.by_ref().take(20));
        let mut packet = packets.next().unwrap();
        packet.wrong = 77;
        if far {
            packet.tcp.sequence_number ^= 1 << 30;
            packet.tcp.acknowledgment_number ^= 1 << 30;
        }
        let expected = if far { Format::Ir } else { Format::IrDyn };
        assert_eq!(link.carry(&packet).1, expected);
    }
}

/// Carries a packet whose checksum was wrong at the sender, from a compressor that sends it in any format, by changing the
/// payload after compression. Returns true if it is delivered.
fn carry_wrong(link: &mut TcpLink, packet: &TcpPacket) -> bool {
    let mut octets = packet.octets();
    let now = Instant::from_millis(10 * link.sent);
    link.sent += 1;
    let (mut rohc, mut back) = ([0; 200], [0; 200]);
    let done = link.near.send(now, &octets, &mut rohc).unwrap();
    let len = done.len;
    assert!(!matches!(done.format, Format::Ir | Format::IrDyn | Format::CoCommon), "{:?}", done.format);
    *octets.last_mut().unwrap() ^= 0x55;
    rohc[len - 1] ^= 0x55;
    let arrival = Instant::from_millis(10 * (link.sent - 1) + link.delay);
    let received = link.far.receive(arrival, &rohc[..len], &mut back);
    received.is_ok_and(|received| {
        assert_eq!(back[..received.len], octets);
        true
    })
}

/// RFC 6846 does not require a correct TCP checksum: if its own CRC is correct, and the packet is the next one, there is no
/// doubt.
#[test]
fn a_wrong_checksum_alone_is_no_damage() {
    for six in [false, true] {
        let mut link = TcpLink::new(Mode::Optimistic);
        let mut packets = segments(4000, 1).map(|mut packet| {
            packet.ips[0].six = six;
            packet
        });
        link.carry_all(packets.by_ref().take(20));
        for packet in packets.by_ref().take(40) {
            assert!(carry_wrong(&mut link, &packet));
        }
        link.carry_all(packets.take(20));
    }
}

/// After a gap or a pause of the link, and soon after, it shows that the packet is another one.
#[test]
fn a_wrong_checksum_in_doubt_is_damage() {
    for (gap, pause, right) in [(2, 0, 0), (2, 0, 5), (0, 30, 0)] {
        let mut link = TcpLink::new(Mode::Unidirectional);
        let mut packets = segments(4000, 1);
        link.carry_all(packets.by_ref().take(20));
        let (mut rohc, now) = ([0; 200], Instant::from_millis(10 * link.sent));
        for packet in packets.by_ref().take(gap) {
            link.near.send(now, &packet.octets(), &mut rohc).unwrap();
        }
        link.delay = 10 * pause;
        link.carry_all(packets.by_ref().take(right));
        assert!(!carry_wrong(&mut link, &packets.next().unwrap()), "{gap} {pause} {right}");
        link.carry_all(packets.take(20));
    }
}

/// The sum of the pseudo-header alone, as in captures at a sender, is always the sender's.
#[test]
fn a_checksum_that_an_interface_is_to_complete_is_no_damage() {
    let mut link = TcpLink::new(Mode::Unidirectional);
    let mut packets = segments(4000, 1);
    link.carry_all(packets.by_ref().take(20));
    let (mut rohc, now) = ([0; 200], Instant::from_millis(10 * link.sent));
    for packet in packets.by_ref().take(2) {
        link.near.send(now, &packet.octets(), &mut rohc).unwrap();
    }
    let mut packet = packets.next().unwrap();
    let octets = packet.octets();
    let words = octets[12..20].chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = words.sum::<u32>() + 6 + (octets.len() as u32 - 20);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    // A correct checksum of that value.
    packet.payload[..2].fill(0);
    let is = packet.octets();
    let is = u32::from(u16::from_be_bytes([is[36], is[37]]));
    packet.payload[..2].copy_from_slice(&((is + 0xFFFF - sum) % 0xFFFF).to_be_bytes()[2..]);
    assert_eq!(packet.octets()[36..38], sum.to_be_bytes()[2..]);
    assert!(carry_wrong(&mut link, &packet));
}

/// The context of the CID belongs to another flow, whose ports would be used: no CRC of an IR-DYN packet covers them.
#[test]
fn an_ir_dyn_packet_of_another_flow_is_refused() {
    let flows = [(4000, 1), (5000, 0x4000_0000)];
    let [mut ours, mut theirs] = flows.map(|(port, sequence_number)| {
        let mut link = TcpLink::new(Mode::Optimistic);
        link.carry_all(segments(port, sequence_number).take(20));
        link
    });
    // Two flags at once, which no other format can encode.
    let mut packet = segments(5000, 0x4000_0000).nth(20).unwrap();
    packet.tcp.acknowledgment_number ^= 0x4000_0000;
    (packet.tcp.syn, packet.tcp.fin) = (true, true);
    let now = Instant::from_millis(1_000);
    let (mut rohc, mut back) = ([0; 200], [0; 200]);
    let done = theirs.near.send(now, &packet.octets(), &mut rohc).unwrap();
    let len = done.len;
    assert_eq!((done.format, done.cid.value()), (Format::IrDyn, 0));
    assert!(ours.far.receive(now, &rohc[..len], &mut back).is_err());
    let received = theirs.far.receive(now, &rohc[..len], &mut back).unwrap();
    assert_eq!(back[..received.len], packet.octets());
}

#[test]
fn a_stream_of_acknowledgments_takes_few_octets() {
    for six in [false, true] {
        let mut link = TcpLink::new(Mode::Unidirectional);
        let mut packet = TcpPacket::new(vec![Outer::new(six)], 4000);
        let mut last = 0;
        for i in 0..200 {
            packet.tcp.acknowledgment_number = packet.tcp.acknowledgment_number.wrapping_add(2896);
            packet.ips[0].id += 1;
            packet.options = timestamps(1000 + 3 * i, 70 + 3 * i);
            let (profile, _, len) = link.carry(&packet);
            assert_eq!(profile, ProfileId::Tcp);
            last = len;
        }
        println!("{six}: {:?}, {} octets, at last {last}", link.formats, link.headers);
        assert!(last <= 2 + 2 + 2, "{last}");
        // rohc-lib needs 10.47 octets on average for such a flow over IPv4.
        assert!(link.headers * 100 <= 200 * 1_047, "{}", link.headers);
    }
}

/// A host that continues after a SYN has received its answer.
#[test]
fn a_connection_that_is_seen_from_its_start_takes_one_ir_packet() {
    for six in [false, true] {
        let mut link = TcpLink::new(Mode::Unidirectional);
        let mut packet = TcpPacket::new(vec![Outer::new(six)], 4000);
        (packet.tcp.syn, packet.tcp.ack) = (true, false);
        packet.tcp.acknowledgment_number = 0;
        packet.options =
            [&[2, 4, 5, 180, 4, 2, 8, 10][..], &[0, 0, 3, 232, 0, 0, 0, 0], &[1, 3, 3, 7]].concat();
        // The first one was not answered yet.
        assert_eq!([link.carry(&packet).1, link.carry(&packet).1], [Format::Ir; 2]);
        (packet.tcp.syn, packet.tcp.ack) = (false, true);
        packet.tcp.sequence_number += 1;
        packet.tcp.acknowledgment_number = 77_000;
        packet.options = timestamps(1_001, 500);
        let (_, format, len) = link.carry(&packet);
        assert_eq!((format, len <= 30), (Format::CoCommon, true), "{len}");
        for i in 0..6 {
            packet.ips[0].id += 1;
            packet.payload = vec![7; 100];
            packet.tcp.sequence_number += 100;
            packet.options = timestamps(1_002 + i, 501 + i);
            assert_ne!(link.carry(&packet).1, Format::Ir);
        }
    }
}

#[test]
fn flags_that_no_packet_can_say_together_do_not_stay() {
    for mode in [Mode::Unidirectional, Mode::Optimistic] {
        for six in [false, true] {
            let mut link = TcpLink::new(mode);
            for port in [4000, 4001] {
                let mut packet = TcpPacket::new(vec![Outer::new(six)], port);
                for i in 0..24 {
                    packet.ips[0].id += 1;
                    packet.tcp.sequence_number += 100;
                    (packet.tcp.syn, packet.tcp.fin, packet.tcp.rst) = (i % 8 > 3, i % 8 > 3, i % 8 > 3);
                    assert_eq!(link.carry(&packet).0, ProfileId::Tcp);
                }
            }
        }
    }
}

#[test]
fn a_bulk_transfer_is_scaled() {
    for six in [false, true] {
        let mut link = TcpLink::new(Mode::Unidirectional);
        let mut packet = TcpPacket::new(vec![Outer::new(six)], 4000);
        packet.payload = vec![7; 1448];
        let mut last = 0;
        for _ in 0..100 {
            packet.tcp.sequence_number = packet.tcp.sequence_number.wrapping_add(1448);
            packet.ips[0].id += 1;
            last = link.carry(&packet).2;
        }
        println!("{six}: {:?}, {} octets, at last {last}", link.formats, link.headers);
        assert!(last <= 5, "{last}");
    }
}

/// Change from one packet to the next.
#[derive(Clone, Debug)]
enum SegmentChange {
    Seq(u32),
    Ack(u32),
    Window(u16),
    Flags(u8),
    Psh(bool),
    Ecn(u8),
    Reserved(u8),
    Urgent(bool, u16),
    Tos(usize, u8),
    Ttl(usize, u8),
    Df(usize, bool),
    FlowLabel(u32),
    Id(usize, u16),
    Options(Vec<u8>),
    Payload(usize),
    Wrong(u16),
    Nothing,
}

fn change() -> impl Strategy<Value = SegmentChange> {
    let step = prop_oneof![3 => Just(1448_u32), 2 => 0..3000_u32, 1 => any::<u32>(), 1 => Just(0_u32.wrapping_sub(1448))];
    prop_oneof![
        6 => step.clone().prop_map(SegmentChange::Seq),
        6 => step.prop_map(SegmentChange::Ack),
        2 => any::<u16>().prop_map(SegmentChange::Window),
        1 => any::<u8>().prop_map(SegmentChange::Flags),
        2 => any::<bool>().prop_map(SegmentChange::Psh),
        1 => (0..16_u8).prop_map(SegmentChange::Ecn),
        1 => (0..16_u8).prop_map(SegmentChange::Reserved),
        1 => any::<(bool, u16)>().prop_map(|(is, at)| SegmentChange::Urgent(is, at)),
        1 => any::<(usize, u8)>().prop_map(|(i, tos)| SegmentChange::Tos(i, tos)),
        1 => any::<(usize, u8)>().prop_map(|(i, ttl)| SegmentChange::Ttl(i, ttl)),
        1 => any::<(usize, bool)>().prop_map(|(i, df)| SegmentChange::Df(i, df)),
        1 => (0..0x10_0000_u32).prop_map(SegmentChange::FlowLabel),
        2 => any::<(usize, u16)>().prop_map(|(i, id)| SegmentChange::Id(i, id)),
        4 => options().prop_map(SegmentChange::Options),
        2 => prop_oneof![Just(0_usize), Just(1448), 0..50_usize].prop_map(SegmentChange::Payload),
        1 => any::<u16>().prop_map(SegmentChange::Wrong),
        6 => Just(SegmentChange::Nothing),
    ]
}

/// Options of real stacks, and others.
fn options() -> impl Strategy<Value = Vec<u8>> {
    let one = prop_oneof![
        3 => Just(vec![1]),
        1 => any::<u16>().prop_map(|mss| [&[2, 4][..], &mss.to_be_bytes()].concat()),
        1 => any::<u8>().prop_map(|scale| vec![3, 3, scale]),
        1 => Just(vec![4, 2]),
        3 => any::<(u8, u8)>().prop_map(|(a, b)| timestamps(1000 + u32::from(a), u32::from(b))[2..].to_vec()),
        1 => any::<[u32; 2]>().prop_map(|[a, b]| timestamps(a, b)[2..].to_vec()),
        2 => vec(any::<(u32, u32)>(), 1..4).prop_map(|blocks| sack(&blocks)[2..].to_vec()),
        1 => (prop_oneof![Just(34_u8), Just(19), any::<u8>()], vec(0..3_u8, 0..12)).prop_map(|(kind, content)| {
            [&[kind.max(2), 2 + content.len() as u8][..], &content].concat()
        }),
        1 => (0..4_usize).prop_map(|padding| vec![0; padding + 1]),
    ];
    vec(one, 0..7).prop_map(|options| {
        let mut octets = Vec::new();
        for option in options {
            if octets.len() + option.len() <= 40 {
                octets.extend_from_slice(&option);
            }
        }
        while octets.len() % 4 != 0 {
            octets.push(1);
        }
        octets
    })
}

fn apply(packet: &mut TcpPacket, change: &SegmentChange) {
    let count = packet.ips.len();
    let tcp = &mut packet.tcp;
    match change.clone() {
        SegmentChange::Seq(step) => tcp.sequence_number = tcp.sequence_number.wrapping_add(step),
        SegmentChange::Ack(step) => tcp.acknowledgment_number = tcp.acknowledgment_number.wrapping_add(step),
        SegmentChange::Window(window) => tcp.window = window,
        SegmentChange::Flags(bits) => {
            (tcp.rst, tcp.syn, tcp.fin, tcp.ack) =
                (bits & 12 == 4, bits & 3 == 1, bits & 2 == 2, bits & 48 != 0);
        }
        SegmentChange::Psh(psh) => tcp.psh = psh,
        SegmentChange::Ecn(bits) => {
            (tcp.cwr, tcp.ece) = (bits & 1 == 1, bits & 2 == 2);
            packet.ips[count - 1].tos = packet.ips[count - 1].tos & !3 | bits >> 2;
        }
        SegmentChange::Reserved(bits) => tcp.reserved = bits,
        SegmentChange::Urgent(is, at) => (tcp.urg, tcp.urgent_pointer) = (is, at),
        SegmentChange::Tos(i, tos) => packet.ips[i % count].tos = tos,
        SegmentChange::Ttl(i, ttl) => packet.ips[i % count].ttl = ttl,
        SegmentChange::Df(i, df) => packet.ips[i % count].df = df,
        SegmentChange::FlowLabel(label) => packet.ips[0].flow_label = label,
        SegmentChange::Id(i, id) => packet.ips[i % count].id = id,
        SegmentChange::Options(options) => packet.options = options,
        SegmentChange::Payload(len) => packet.payload = vec![5; len],
        SegmentChange::Wrong(wrong) => packet.wrong = if wrong < 0x8000 { 0 } else { wrong },
        SegmentChange::Nothing => {}
    }
}

fn chains() -> impl Strategy<Value = Vec<Outer>> {
    (vec(any::<bool>(), 1..3), 0..3_usize).prop_map(|(sixes, options)| {
        let mut ips: Vec<_> = sixes.into_iter().map(Outer::new).collect();
        ips[0].options = if ips[0].six { options } else { 0 };
        ips
    })
}

/// Behavior of IP-IDs.
fn count_ids(packet: &mut TcpPacket, how: u8, random: u16) {
    for ip in &mut packet.ips {
        ip.id = match how {
            0 => ip.id.wrapping_add(1),
            1 => ip.id.swap_bytes().wrapping_add(1).swap_bytes(),
            2 => 0,
            3 => random,
            4 => ip.id.wrapping_add(random % 20),
            _ => ip.id,
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Without losses every packet is delivered correctly, whatever changes.
    #[test]
    fn every_packet_comes_back(
        ips in chains(),
        ids in 0..6_u8,
        steps in vec((vec(change(), 0..3), any::<u16>()), 1..60),
        optimistic: bool,
    ) {
        let mode = if optimistic { Mode::Optimistic } else { Mode::Unidirectional };
        let mut link = TcpLink::new(mode);
        let mut packet = TcpPacket::new(ips, 4000);
        for (changes, random) in &steps {
            count_ids(&mut packet, ids, *random);
            changes.iter().for_each(|change| apply(&mut packet, change));
            link.carry(&packet);
        }
    }
}

/// Steps of one and a half strides and back: an old acknowledgment number has the residue of the new one, those in between have
/// another one. The position of the first such step among the candidates does not matter.
#[test]
fn a_scaled_acknowledgment_is_told_from_the_residue_of_the_last_one() {
    for settling in 60..72 {
        let mut link = TcpLink::new(Mode::Unidirectional);
        let mut packet = TcpPacket::new(vec![Outer::new(false)], 4000);
        let mut steps = vec![2_920; settling];
        for _ in 0..6 {
            steps.extend([4_380, 2_920, 2_920, 2_920, 10_220, 2_920, 2_920, 2_920, 2_920]);
        }
        for step in steps {
            packet.tcp.acknowledgment_number = packet.tcp.acknowledgment_number.wrapping_add(step);
            packet.ips[0].id += 1;
            link.carry(&packet);
        }
        assert!(link.formats[&Format::Seq4] > settling / 4, "{:?}", link.formats);
    }
}
