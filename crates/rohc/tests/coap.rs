//! Profile 0x0081: sizes of steady flows, and every packet of random exchanges bit for bit.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::Random;
use common::coap::{Flow, FlowName, Message, Side, packet};
use proptest::prelude::*;
use thinair_rohc::exchange::Exchanges;
use thinair_rohc::profile::coap::FormatPolicy;
use thinair_rohc::{
    Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, DecompressError, Decompressor,
    DecompressorConfig, DecompressorMemory, Endpoint, Format, Instant, Integrity, Mode, ProfileId,
    ProfileSet, Refresh,
};

fn channel(cids: CidSpace, integrity: Integrity) -> Channel {
    let profiles = ProfileSet::v1().with(ProfileId::Coap).unwrap();
    Channel::new(cids, 15, profiles).unwrap().with_integrity_below(integrity)
}

fn endpoint(config: CompressorConfig, mode: Mode) -> Endpoint<'static> {
    let channel = config.channel;
    let decompressor = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    Endpoint::new(
        Compressor::new(config, CompressorMemory::owned(&channel, 8)),
        Decompressor::new(decompressor, DecompressorMemory::owned(&channel, 8)),
    )
    .with_exchanges(Exchanges::owned(64), Exchanges::owned(64))
}

/// Two ends of a link without delay.
struct Link {
    ends: [Endpoint<'static>; 2],
    now: u64,
    last: Format,
    error: Option<DecompressError>,
    random: Random,
    /// In thousandths.
    loss: u64,
}

impl Link {
    fn new(config: CompressorConfig, mode: Mode) -> Self {
        let ends = [endpoint(config, mode), endpoint(config, mode)];
        Self { ends, now: 0, last: Format::Ir, error: None, random: Random(7), loss: 0 }
    }

    /// Carries a packet, and returns its length on the link, and what came out.
    fn carry(&mut self, side: Side, packet: &[u8]) -> (usize, Option<Vec<u8>>) {
        self.now += 100;
        let now = Instant::from_millis(self.now);
        let [a, b] = &mut self.ends;
        let (near, far) = if side == Side::Client { (a, b) } else { (b, a) };
        let (mut out, mut back) = ([0; 2_000], [0; 2_000]);
        let done = near.compressor_send(now, packet, &mut out);
        self.last = done.0;
        if self.random.below(1_000) < self.loss {
            return (done.1, None);
        }
        let received = far.receive(now, &out[..done.1], &mut back);
        self.error = received.err();
        let delivered = received.ok().map(|d| back[..d.len].to_vec());
        while let Some(len) = far.poll_feedback(&mut out) {
            if self.random.below(1_000) >= self.loss {
                let _ = near.receive(now, &out[..len], &mut back);
            }
        }
        (done.1, delivered)
    }
}

trait Send {
    fn compressor_send(&mut self, now: Instant, packet: &[u8], out: &mut [u8]) -> (Format, usize);
}

impl Send for Endpoint<'_> {
    fn compressor_send(&mut self, now: Instant, packet: &[u8], out: &mut [u8]) -> (Format, usize) {
        let (compressed, len) = self.send(now, packet, out).unwrap();
        (compressed.format, len)
    }
}

/// Mean octets of packets 200 to 500 of a flow, in tenths.
fn steady(name: FlowName, six: bool, integrity: Integrity, format: FormatPolicy, seed: u64) -> f64 {
    let mut config = CompressorConfig::new(channel(CidSpace::Small, integrity));
    config.coap.format = format;
    config.refresh = Refresh::Off;
    let mut link = Link::new(config, Mode::Optimistic);
    let mut flow = Flow::new(name, six, seed);
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

/// The table of the profile's document: elided with pt_0, with pt_1, carried.
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
        std::env::var("THINAIR_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
    ))]

    /// Whatever two CoAP endpoints and some that are none send, it comes back; what is lost makes nothing wrong.
    #[test]
    fn random_exchanges_come_back(
        seed: u64,
        six: bool,
        large: bool,
        two_way: bool,
        elide: bool,
        loss in prop_oneof![3 => Just(0_u64), 1 => 0_u64..300],
        format in 0..4_usize,
    ) {
        let cids = if large { CidSpace::Large } else { CidSpace::Small };
        let integrity = if elide { Integrity::Mic } else { Integrity::None };
        let mut config = CompressorConfig::new(channel(cids, integrity));
        config.coap.format =
            [FormatPolicy::Auto, FormatPolicy::Pt0, FormatPolicy::Pt1, FormatPolicy::Pt0c][format];
        let mut link = Link::new(config, if two_way { Mode::Optimistic } else { Mode::Unidirectional });
        link.loss = loss;
        let mut random = Random(seed);
        let mut messages = common::coap::Mix::new(six, &mut random);
        for i in 0..300 {
            let (side, sent) = messages.next(&mut random);
            let (_, delivered) = link.carry(side, &sent);
            if loss == 0 {
                prop_assert_eq!(delivered.as_deref(), Some(&sent[..]), "packet {} by {:?}: {:?}", i, link.last, link.error);
            } else if let Some(delivered) = delivered {
                // A CRC-3 lets one wrong header in eight through, where the context is wrong: those are not counted.
                prop_assert!(delivered == sent || format == 1 || loss > 0 && elide, "packet {} by {:?}: {:?}", i, link.last, link.error);
            }
        }
    }
}

#[test]
fn a_message_is_what_the_tests_think() {
    let message = Message { token: vec![1, 2], payload: vec![5], ..Message::get(7, &[b"time"]) };
    let octets = packet(false, 0, Side::Client, 9, &message);
    assert_eq!(octets.len(), 20 + 8 + 4 + 2 + 5 + 2);
}
