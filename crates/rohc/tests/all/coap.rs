//! Tests of profile 0x0181: sizes of established flows, and random exchanges that are restored bit for bit.

use crate::common::coap::{CoapFlow, CoapSide, FlowName, Mix, TestMessage, datagram, packet, uint};
use crate::common::{SplitMix64, cases};
use proptest::prelude::*;
use thinair_rohc::FormatPolicy;
use thinair_rohc::exchange::Exchanges;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, DecompressError, Decompressor,
    DecompressorConfig, DecompressorMemory, Endpoint, Format, Instant, Integrity, Mode, ProfileId,
    ProfileSet, Refresh,
};

pub(super) fn channel(cids: CidSpace, integrity: Integrity) -> Channel {
    let profiles = ProfileSet::v1().with(ProfileId::Coap).unwrap();
    Channel::new(cids, 15, profiles).unwrap().with_integrity_below(integrity)
}

fn endpoint(config: CompressorConfig, mode: Mode) -> Endpoint<'static> {
    let channel = config.channel;
    let decompressor = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    Endpoint::new(
        Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(8))),
        Decompressor::new(decompressor, DecompressorMemory::owned(channel.sizes().blocks(8))),
    )
    .with_exchanges(Exchanges::for_channel(&channel), Exchanges::for_channel(&channel))
}

/// Two ends of a link without delay.
pub(super) struct CoapLink {
    config: CompressorConfig,
    mode: Mode,
    ends: [Endpoint<'static>; 2],
    now: u64,
    pub(super) last: Format,
    pub(super) error: Option<DecompressError>,
    /// Octets of feedback.
    pub(super) feedback: usize,
}

impl CoapLink {
    pub(super) fn new(config: CompressorConfig, mode: Mode) -> Self {
        let ends = [endpoint(config, mode), endpoint(config, mode)];
        Self { config, mode, ends, now: 0, last: Format::Ir, error: None, feedback: 0 }
    }

    /// Creates an end without contexts.
    fn fresh(&self) -> Endpoint<'static> {
        endpoint(self.config, self.mode)
    }

    /// Carries a packet, and returns its length on the link, and the delivered packet.
    pub(super) fn carry(&mut self, side: CoapSide, packet: &[u8]) -> (usize, Option<Vec<u8>>) {
        self.now += 100;
        let now = Instant::from_millis(self.now);
        let [a, b] = &mut self.ends;
        let (near, far) = if side == CoapSide::Client { (a, b) } else { (b, a) };
        let (mut out, mut back) = ([0; 2_000], [0; 2_000]);
        let done = near.compressor_send(now, packet, &mut out);
        self.last = done.0;
        let received = far.receive(now, &out[..done.1], &mut back);
        self.error = received.err();
        let delivered = received.ok().map(|d| back[..d.len].to_vec());
        while let Some(len) = far.poll_feedback(&mut out) {
            self.feedback += len;
            let _ = near.receive(now, &out[..len], &mut back);
        }
        (done.1, delivered)
    }
}

trait Send {
    fn compressor_send(&mut self, now: Instant, packet: &[u8], out: &mut [u8]) -> (Format, usize);
}

impl Send for Endpoint<'_> {
    fn compressor_send(&mut self, now: Instant, packet: &[u8], out: &mut [u8]) -> (Format, usize) {
        let compressed = self.send(now, packet, out).unwrap();
        let len = compressed.len;
        (compressed.format, len)
    }
}

/// Average octets of packets 200 to 500 of a flow, in tenths.
fn steady(name: FlowName, six: bool, integrity: Integrity, format: FormatPolicy, seed: u64) -> f64 {
    let mut config = CompressorConfig::new(channel(CidSpace::Small, integrity));
    config.coap.format = format;
    config.refresh = Refresh::Off;
    let mut link = CoapLink::new(config, Mode::Optimistic);
    let mut flow = CoapFlow::new(name, six, seed);
    let (mut sum, mut count) = (0, 0);
    for i in 0..500 {
        for (side, sent) in flow.next() {
            let (len, delivered) = link.carry(side, &sent);
            assert_eq!(
                delivered.as_deref(),
                Some(&sent[..]),
                "{name:?} packet {i} by {:?}: {:?}",
                link.last,
                link.error
            );
            if side == flow.side && i >= 200 {
                sum += len;
                count += 1;
            }
        }
    }
    f64::from(sum as u32) / f64::from(count)
}

/// Sizes are those of the table in `docs/coap-profile.md`: elided with pt_0, with pt_1, carried.
#[test]
fn steady_flows_have_the_sizes_of_the_table() {
    use FlowName::*;
    let table = [
        (A, 1, 2, 3),
        (B, 16, 17, 18),
        (C2, 3, 4, 5),
        (C4, 5, 6, 7),
        (CCount, 1, 2, 3),
        (D, 21, 22, 23),
        (EReq, 1, 2, 3),
        (ERsp, 65, 66, 67),
        (FReq, 15, 16, 17),
        (FRsp, 26, 27, 28),
        (G, 5, 6, 7),
        (H, 3, 4, 5),
        (HRsp, 16, 17, 18),
    ];
    let mut wrong = String::new();
    for (name, pt0, pt1, carried) in table {
        for six in [false, true] {
            for seed in [1, 2] {
                let sizes = [
                    steady(name, six, Integrity::Crc32, FormatPolicy::Pt0, seed),
                    steady(name, six, Integrity::Crc32, FormatPolicy::Pt1, seed),
                    steady(name, six, Integrity::None, FormatPolicy::Auto, seed),
                ];
                if sizes.iter().zip([pt0, pt1, carried]).any(|(size, bar)| *size > f64::from(bar)) {
                    wrong +=
                        &format!("{name:?} six {six} seed {seed}: {sizes:?}, not {pt0} {pt1} {carried}\n");
                }
            }
        }
    }
    assert_eq!(wrong, "");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        cases(60) as u32
    ))]

    /// Packets of two CoAP endpoints, and some that are not CoAP, are restored. `impaired_matrix.rs` has
    /// losses.
    #[test]
    fn random_exchanges_come_back(
        seed: u64,
        six: bool,
        large: bool,
        two_way: bool,
        elide: bool,
        format in 0..4_usize,
        new_ports in any::<bool>(),
    ) {
        let cids = if large { CidSpace::Large } else { CidSpace::Small };
        let integrity = if elide { Integrity::Mic } else { Integrity::None };
        let mut config = CompressorConfig::new(channel(cids, integrity));
        config.coap.format =
            [FormatPolicy::Auto, FormatPolicy::Pt0, FormatPolicy::Pt1, FormatPolicy::Pt0c][format];
        let mut link = CoapLink::new(config, if two_way { Mode::Optimistic } else { Mode::Unidirectional });
        let mut random = SplitMix64(seed);
        let mut messages =
            if new_ports { Mix::of_clients(six, &mut random) } else { Mix::new(six, &mut random) };
        for i in 0..300 {
            let (side, sent) = messages.next(&mut random);
            let (_, delivered) = link.carry(side, &sent);
            prop_assert_eq!(delivered.as_deref(), Some(&sent[..]), "packet {} by {:?}: {:?}", i, link.last, link.error);
        }
    }
}

#[test]
fn a_message_is_what_the_tests_think() {
    let message = TestMessage { token: vec![1, 2], payload: vec![5], ..TestMessage::get(7, &[b"time"]) };
    let octets = packet(false, 0, CoapSide::Client, 9, &message);
    assert_eq!(octets.len(), 20 + 8 + 4 + 2 + 5 + 2);
}

fn link(integrity: Integrity, mode: Mode) -> CoapLink {
    let mut config = CompressorConfig::new(channel(CidSpace::Small, integrity));
    config.refresh = Refresh::Off;
    CoapLink::new(config, mode)
}

/// Sends `packets` packets of a flow, and returns octets and format of the last.
fn run(link: &mut CoapLink, flow: &mut CoapFlow, packets: usize) -> (usize, Format) {
    let mut len = 0;
    for _ in 0..packets {
        for (side, sent) in flow.next() {
            let (octets, delivered) = link.carry(side, &sent);
            assert_eq!(delivered.as_deref(), Some(&sent[..]), "{:?}: {:?}", link.last, link.error);
            len = octets;
        }
    }
    (len, link.last)
}

#[test]
fn a_wrong_checksum_is_sent_as_it_is_and_a_missing_one_stays_missing() {
    for integrity in [Integrity::None, Integrity::Crc32] {
        let mut link = link(integrity, Mode::Optimistic);
        for i in 0..60_u16 {
            let coap = TestMessage::get(100 + i, &[b"time"]).octets();
            let mut sent = datagram(true, 9, CoapSide::Client, 0, 64, &coap, i % 20 != 10);
            if i >= 40 {
                sent[46..48].copy_from_slice(&[0, 0]);
            }
            assert_eq!(link.carry(CoapSide::Client, &sent).1.as_deref(), Some(&sent[..]), "packet {i}");
        }
        assert_eq!(link.last, Format::Pt1);
    }
}

#[test]
fn a_retransmission_costs_no_more_than_a_new_message() {
    let mut link = link(Integrity::None, Mode::Optimistic);
    for i in 0..30_u16 {
        let sent = packet(true, 9, CoapSide::Client, 0, &TestMessage::get(100 + i - i % 2, &[b"time"]));
        let (len, delivered) = link.carry(CoapSide::Client, &sent);
        assert_eq!(delivered.as_deref(), Some(&sent[..]));
        assert!(i < 10 || len == 3, "packet {i}: {len} by {:?}", link.last);
    }
}

#[test]
fn tokens_of_one_octet_that_count_come_round() {
    let mut link = link(Integrity::None, Mode::Optimistic);
    for i in 0..600_u16 {
        let token = vec![(200 + i) as u8];
        let sent = packet(
            true,
            9,
            CoapSide::Client,
            0,
            &TestMessage { token, ..TestMessage::get(100 + i, &[b"time"]) },
        );
        let (len, delivered) = link.carry(CoapSide::Client, &sent);
        assert_eq!(delivered.as_deref(), Some(&sent[..]), "packet {i}");
        // 56, 312 and 568 are used again: the anchor moves, and is sent until that is acknowledged.
        let anchored = i % 256 == 56 || i % 256 == 57;
        assert!(i < 60 || anchored || len == 3, "packet {i}: {len} by {:?}", link.last);
    }
}

#[test]
fn messages_that_overtake_each_other_are_not_anchored_anew() {
    let mut link = link(Integrity::None, Mode::Optimistic);
    for i in 0..64_u16 {
        // The order is 0 4 2 6 1 5 3 7 and so on.
        let id = i & !7 | (i & 1) << 2 | i & 2 | (i & 4) >> 2;
        let sent = packet(true, 9, CoapSide::Client, 0, &TestMessage::get(100 + id, &[b"time"]));
        let (len, delivered) = link.carry(CoapSide::Client, &sent);
        assert_eq!(delivered.as_deref(), Some(&sent[..]), "packet {i}");
        assert!(i < 10 || len <= 3, "packet {i}: {len} by {:?}", link.last);
    }
}

#[test]
fn responses_out_of_order_still_name_their_requests() {
    let mut link = link(Integrity::Crc32, Mode::Optimistic);
    let mut random = SplitMix64(5);
    let mut sizes = Vec::new();
    for round in 0..40_u16 {
        let requests: Vec<_> = (0..4_u16)
            .map(|i| {
                let token = random.next().to_be_bytes()[..4].to_vec();
                TestMessage { token, ..TestMessage::get(1_000 + round * 4 + i, &[b"time"]) }
            })
            .collect();
        for request in &requests {
            let sent = packet(true, 9, CoapSide::Client, 0, request);
            assert_eq!(link.carry(CoapSide::Client, &sent).1.as_deref(), Some(&sent[..]));
        }
        for i in [2, 0, 3, 1] {
            let response = TestMessage { kind: 2, code: 69, payload: vec![9], ..requests[i].clone() };
            let sent = packet(true, 9, CoapSide::Server, 0, &TestMessage { options: vec![], ..response });
            let (len, delivered) = link.carry(CoapSide::Server, &sent);
            assert_eq!(delivered.as_deref(), Some(&sent[..]));
            sizes.push(len);
        }
    }
    // Packets have neither Message ID nor token: two octets, and one of payload.
    assert_eq!(sizes[40..].iter().sum::<usize>(), 3 * sizes[40..].len());
}

/// Average octets of a response to one of `clients`, with all requests pending before the first response.
fn response_in_a_crowd(clients: u8) -> f64 {
    let channel = Channel::new(CidSpace::Large, 999, ProfileSet::default()).unwrap();
    let config = CompressorConfig::new(channel.with_integrity_below(Integrity::Crc32));
    let mut link = CoapLink::new(CompressorConfig { refresh: Refresh::Off, ..config }, Mode::Optimistic);
    let mut random = SplitMix64(5);
    let (mut octets, mut count) = (0, 0);
    for round in 0..40 {
        let requests: Vec<_> = (0..clients)
            .map(|client| {
                let token = random.next().to_be_bytes()[..4].to_vec();
                TestMessage { token, ..TestMessage::get(u16::from(client) * 100 + round, &[b"time"]) }
            })
            .collect();
        for (client, request) in (0..).zip(&requests) {
            let sent = packet(true, client, CoapSide::Client, 0, request);
            assert_eq!(link.carry(CoapSide::Client, &sent).1.as_deref(), Some(&sent[..]));
        }
        for (client, request) in (0..).zip(&requests) {
            let response =
                TestMessage { kind: 2, code: 69, payload: vec![9], options: vec![], ..request.clone() };
            let sent = packet(true, client, CoapSide::Server, 0, &response);
            let (len, delivered) = link.carry(CoapSide::Server, &sent);
            assert_eq!(delivered.as_deref(), Some(&sent[..]));
            if round >= 10 {
                octets += len;
                count += 1;
            }
        }
    }
    octets as f64 / f64::from(count)
}

#[test]
fn responses_in_a_crowd_name_their_requests() {
    let (few, crowd) = (response_in_a_crowd(10), response_in_a_crowd(250));
    // Two octets, one of payload, and a CID of one or two.
    assert!(few == 4.0 && (4.0..5.0).contains(&crowd), "{few} {crowd}");
}

/// All packets that carry the changes are lost. The sum of Message ID, token and code is that of a packet without changes.
#[test]
fn changes_that_were_missed_do_not_compensate_each_other() {
    for (id, token, codes) in [(2, 0, [1, 3]), (0, 2, [3, 1])] {
        let config = CompressorConfig::new(channel(CidSpace::Small, Integrity::None));
        let mut link = CoapLink::new(config, Mode::Unidirectional);
        let message = |i: i32, id: i32, token: i32, code: u8| {
            let token = (0x1234_0000 + i + token).to_be_bytes().to_vec();
            let put = TestMessage { token, code, ..TestMessage::get((500 + i + id) as u16, &[b"time"]) };
            packet(true, 9, CoapSide::Client, 0, &put)
        };
        for i in 0..60 {
            let sent = message(i, 0, 0, codes[0]);
            assert_eq!(link.carry(CoapSide::Client, &sent).1, Some(sent), "{i}: {:?}", link.error);
        }
        assert_eq!(link.last, Format::Pt0c);
        let (mut out, mut back) = ([0; 2_000], [0; 2_000]);
        let mut short = 0;
        for i in 60..90 {
            link.now += 100;
            let now = Instant::from_millis(link.now);
            let [near, far] = &mut link.ends;
            let (format, len) = near.compressor_send(now, &message(i, id, token, codes[1]), &mut out);
            if format == Format::Pt0c {
                short += 1;
                assert!(far.receive(now, &out[..len], &mut back).is_err(), "{id} {token} {codes:?}");
            }
        }
        assert!(short > 5, "{short}");
    }
}

/// Observe and the IP-ID, of which 8 bits are sent, are both a turn higher behind a gap: each compensates the other in a CHECK.
#[test]
fn two_numbers_that_turn_in_a_gap_are_not_taken_for_older_ones() {
    for lost in [60, 180, 200, 240, 300, 330, 560] {
        let mut link = link(Integrity::None, Mode::Optimistic);
        let mut random = SplitMix64(lost);
        let (mut ip_id, mut observe, mut right) = (0, 70_000, 0);
        for i in 0..500 + lost as u32 {
            let relation = random.below(3) as u8;
            let notification = TestMessage {
                kind: 1,
                code: 69,
                id: i as u16,
                token: vec![7, relation],
                options: vec![(6, uint(observe)), (12, vec![50])],
                payload: vec![relation; 20],
            };
            observe += 1 + u32::from(random.once_in(3));
            ip_id += 1 + u16::from(random.once_in(3));
            let sent = packet(false, 9, CoapSide::Server, ip_id, &notification);
            // With a few losses, Observe is sent by 8 bits.
            if i < 400 && i % 8 == 7 || (400..400 + lost as u32).contains(&i) {
                link.now += 100;
                let now = Instant::from_millis(link.now);
                link.ends[1].compressor_send(now, &sent, &mut [0; 2_000]);
                continue;
            }
            let delivered = link.carry(CoapSide::Server, &sent).1;
            assert!(delivered.is_none_or(|delivered| delivered == sent), "{lost} lost, packet {i}");
            right += u32::from(link.error.is_none());
        }
        assert!(right >= 430, "{lost} lost: {right}");
    }
}

#[test]
fn resources_in_turn_cost_no_more_than_one() {
    let mut link = link(Integrity::None, Mode::Optimistic);
    for i in 0..200_u16 {
        let path: &[u8] = [&b"temperature"[..], b"humidity", b"light", b"noise"][usize::from(i % 4)];
        let sent = packet(true, 9, CoapSide::Client, 0, &TestMessage::get(100 + i, &[path]));
        let (len, delivered) = link.carry(CoapSide::Client, &sent);
        assert_eq!(delivered.as_deref(), Some(&sent[..]));
        assert!(i < 40 || len == 3 && link.last == Format::Pt1tc, "packet {i}: {len} by {:?}", link.last);
    }
}

#[test]
fn a_context_that_was_lost_comes_back_by_feedback() {
    let mut link = link(Integrity::None, Mode::Optimistic);
    let mut flow = CoapFlow::new(FlowName::A, true, 3);
    assert_eq!(run(&mut link, &mut flow, 20), (3, Format::Pt0c));
    // The far end restarts.
    link.ends[1] = link.fresh();
    link.now += 2_000;
    let mut delivered = 0;
    for _ in 0..10 {
        for (side, sent) in flow.next() {
            let (_, got) = link.carry(side, &sent);
            assert!(got.is_none() || got.as_deref() == Some(&sent[..]));
            delivered += usize::from(got.is_some());
        }
    }
    assert!(delivered >= 9, "{delivered}");
    assert_eq!(run(&mut link, &mut flow, 5), (3, Format::Pt0c));
}

#[test]
fn a_flow_on_another_port_is_coap_until_a_packet_is_not() {
    let mut link = link(Integrity::None, Mode::Optimistic);
    let mut send = |coap: &[u8]| {
        let mut sent = datagram(true, 9, CoapSide::Client, 0, 64, coap, true);
        // Port 5683 becomes 10005; the checksum is then wrong, which does not matter here.
        sent[42..44].copy_from_slice(&10_005_u16.to_be_bytes());
        let (_, delivered) = link.carry(CoapSide::Client, &sent);
        assert_eq!(delivered.as_deref(), Some(&sent[..]));
        link.last
    };
    let coap = |id: u16| TestMessage::get(id, &[b"time"]).octets();
    assert_eq!([send(&coap(1)), send(&coap(2)), send(&coap(3))][2], Format::Pt1);
    assert_eq!(send(b"something else"), Format::Ir);
    // Profile 0x0002 is used from now on, whatever the packet looks like.
    assert_eq!(send(&coap(4)), Format::Uo0);
    assert_eq!(send(&coap(5)), Format::Uo0);
}

#[test]
fn a_flow_on_another_port_that_began_otherwise_is_no_coap() {
    let mut link = link(Integrity::None, Mode::Unidirectional);
    let formats: Vec<Format> = (0..40_u16)
        .map(|id| {
            // Encrypted or random octets look like a message now and then.
            let coap =
                if id % 8 == 7 { TestMessage::get(id, &[b"time"]).octets() } else { vec![0xC1, id as u8] };
            let mut sent = datagram(true, 9, CoapSide::Client, 0, 64, &coap, true);
            sent[42..44].copy_from_slice(&10_005_u16.to_be_bytes());
            assert_eq!(link.carry(CoapSide::Client, &sent).1.as_deref(), Some(&sent[..]));
            link.last
        })
        .collect();
    let irs = formats.iter().filter(|format| **format == Format::Ir).count();
    assert_eq!((formats[7], formats[8], formats[39]), (Format::Uo0, Format::Uo0, Format::Uo0), "{irs} IRs");
}

/// A CRC detects every single flipped bit, and so does a CHECK.
#[test]
fn no_single_bit_makes_a_wrong_header() {
    for (integrity, six) in [(Integrity::None, true), (Integrity::None, false), (Integrity::Crc32, true)] {
        for name in [FlowName::A, FlowName::D, FlowName::CCount, FlowName::H, FlowName::G, FlowName::FReq] {
            let mut link = link(integrity, Mode::Unidirectional);
            let mut flow = CoapFlow::new(name, six, 11);
            run(&mut link, &mut flow, 30);
            let (side, sent) = flow.next().remove(0);
            let mut out = [0; 500];
            let near = usize::from(side == CoapSide::Server);
            let now = Instant::from_millis(link.now + 100);
            let compressed = link.ends[near].send(now, &sent, &mut out).unwrap();
            let len = compressed.len;
            for bit in 0..8 * compressed.header_out {
                let mut damaged = out[..len].to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let mut back = [0; 500];
                // The context of the far end must not learn from it.
                let mut far = CoapLink::new(link.config, Mode::Unidirectional);
                let mut again = CoapFlow::new(name, six, 11);
                run(&mut far, &mut again, 30);
                let result = far.ends[1 - near].receive(now, &damaged, &mut back);
                if let Ok(done) = result {
                    assert_eq!(
                        &back[..done.len],
                        &sent[..],
                        "{name:?}, bit {bit} of {:?}",
                        compressed.format
                    );
                }
            }
        }
    }
}
