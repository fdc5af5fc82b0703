//! Tests of profile 0x0182: sizes of established flows and of first records, and random flows that are restored bit for bit.

use proptest::prelude::*;
use thinair_rohc::{
    Channel, CidSpace, Compressed, Compressor, CompressorConfig, CompressorMemory, Decompressor,
    DecompressorConfig, DecompressorMemory, Endpoint, Format, Instant, Integrity, Mode, ProfileId,
    ProfileSet, Refresh,
};

use crate::common::dtls::{DtlsFlow, Nonce};
use crate::common::{IdKind, SplitMix64, cases};

/// Two ends of a link without delay, for packets of one direction.
struct DtlsLink {
    ends: [Endpoint<'static>; 2],
    now: u64,
}

impl DtlsLink {
    fn new(cids: CidSpace, integrity: Integrity, mode: Mode) -> Self {
        let profiles = ProfileSet::v1().with(ProfileId::Dtls).unwrap();
        let channel = Channel::new(cids, 15, profiles).unwrap().with_integrity_below(integrity);
        let config = CompressorConfig::new(channel);
        let config = if mode == Mode::Optimistic { config.with_refresh(Refresh::Off) } else { config };
        let decompressor = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        let ends = [0; 2].map(|_| {
            Endpoint::new(
                Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4))),
                Decompressor::new(decompressor, DecompressorMemory::owned(channel.sizes().blocks(4))),
            )
        });
        Self { ends, now: 0 }
    }

    /// Carries a packet, which is restored, with its feedback.
    fn carry(&mut self, packet: &[u8]) -> Compressed {
        let (mut rohc, mut back) = (vec![0; 4_096], vec![0; 4_096]);
        let sent = self.send(packet, &mut rohc);
        let delivered = self.receive(&rohc[..sent.len], &mut back);
        assert_eq!(delivered, Some(packet), "{sent:?}");
        sent
    }

    fn send(&mut self, packet: &[u8], rohc: &mut [u8]) -> Compressed {
        self.now += 100;
        self.ends[0].send(Instant::from_millis(self.now), packet, rohc).unwrap()
    }

    /// Receives a packet, and carries its feedback. `None` if it is not delivered.
    fn receive<'b>(&mut self, rohc: &[u8], back: &'b mut [u8]) -> Option<&'b [u8]> {
        let now = Instant::from_millis(self.now);
        let [near, far] = &mut self.ends;
        let delivered = far.receive(now, rohc, back).ok();
        let mut feedback = [0; 64];
        while let Some(len) = far.poll_feedback(&mut feedback) {
            let _ = near.receive(now, &feedback[..len], &mut [0; 64]);
        }
        Some(&back[..delivered?.len])
    }
}

/// Octets of an established flow beside ciphertext, tag, and what is random in the header.
fn steady(flow: &mut DtlsFlow, integrity: Integrity) -> usize {
    let mut link = DtlsLink::new(CidSpace::Small, integrity, Mode::Optimistic);
    let mut random = SplitMix64(1);
    for _ in 0..20 {
        link.carry(&flow.next(&mut random));
    }
    let sent = link.carry(&flow.next(&mut random));
    assert_eq!(sent.profile, ProfileId::Dtls);
    let inner_type = usize::from(!flow.cid.is_empty() || flow.unified.is_some());
    sent.len - flow.plaintext - flow.tag - inner_type
}

#[test]
fn established_records_cost_three_octets_with_the_checksum_and_two_without() {
    let cid = vec![0xC1];
    for six in [false, true] {
        let of =
            |nonce, cid: &[u8], unified| DtlsFlow { nonce, cid: cid.to_vec(), unified, ..DtlsFlow::new(six) };
        let table = [
            (of(Nonce::Difference(0), &[], None), 0),
            (of(Nonce::Difference(0x1234_5678_9ABC_DEF0), &[], None), 0),
            (of(Nonce::None, &[], None), 0),
            (of(Nonce::Difference(0), &cid, None), 0),
            (of(Nonce::Difference(0), &[7; 20], None), 0),
            // A random nonce, or an encrypted sequence number.
            (of(Nonce::Random, &[], None), 8),
            (of(Nonce::None, &[], Some((true, true))), 2),
            (of(Nonce::None, &cid, Some((true, true))), 2),
            (of(Nonce::None, &[], Some((false, false))), 1),
        ];
        for (mut flow, random_octets) in table {
            if flow.unified.is_some() {
                let mut hello = DtlsFlow { unified: None, epoch: 0, number: 0, ..flow.clone() };
                let mut link = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Optimistic);
                let mut random = SplitMix64(2);
                let datagram = hello.record_of(22, 60, &mut random);
                link.carry(&hello.packet(&datagram, &mut random));
                let sizes = (0..20).map(|_| link.carry(&flow.next(&mut random)).len).collect::<Vec<_>>();
                assert_eq!(
                    sizes[19] - flow.plaintext - flow.tag - 1,
                    3 + random_octets,
                    "{flow:?} {sizes:?}"
                );
                continue;
            }
            assert_eq!(steady(&mut flow.clone(), Integrity::None), 3 + random_octets, "{flow:?}");
            assert_eq!(steady(&mut flow, Integrity::Crc32), 2 + random_octets, "{flow:?}");
        }
    }
}

/// Sizes are those of the table in `docs/dtls-profile.md`: of the IP packet, with the checksum carried, and elided.
#[test]
fn requests_have_the_sizes_of_the_table() {
    let get = || DtlsFlow::new(true);
    let table = [
        (get(), [86, 20, 19]),
        (DtlsFlow { cid: vec![0xC1], ..get() }, [88, 21, 20]),
        (DtlsFlow { nonce: Nonce::Random, ..get() }, [86, 28, 27]),
        (DtlsFlow { nonce: Nonce::None, tag: 16, ..get() }, [86, 28, 27]),
        (DtlsFlow { unified: Some((true, true)), tag: 16, ..get() }, [79, 31, 30]),
    ];
    for (flow, sizes) in table {
        let established = |integrity| {
            let mut link = DtlsLink::new(CidSpace::Small, integrity, Mode::Optimistic);
            let (mut flow, mut random) = (flow.clone(), SplitMix64(1));
            let mut hello = DtlsFlow { unified: None, epoch: 0, number: 0, ..flow.clone() };
            let datagram = hello.record_of(22, 60, &mut random);
            link.carry(&hello.packet(&datagram, &mut random));
            (0..9).map(|_| link.carry(&flow.next(&mut random)).len).last().unwrap()
        };
        let packet = flow.clone().next(&mut SplitMix64(1)).len();
        assert_eq!([packet, established(Integrity::None), established(Integrity::Crc32)], sizes, "{flow:?}");
    }
}

/// A first record behind its handshake costs at most 14 octets more than an established one, and with a new context those of the addresses.
#[test]
fn first_records_are_cheap() {
    for nonce in [Nonce::Difference(0), Nonce::None] {
        for six in [false, true] {
            let mut link = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Optimistic);
            let mut random = SplitMix64(3);
            let mut flow = DtlsFlow { nonce, epoch: 0, number: 0, ..DtlsFlow::new(six) };
            for (content_type, octets) in [(22, 120), (22, 140), (22, 60), (20, 1)] {
                let datagram = flow.record_of(content_type, octets, &mut random);
                link.carry(&flow.packet(&datagram, &mut random));
            }
            (flow.epoch, flow.number) = (1, 0);
            let datagram = flow.record_of(22, 16, &mut random);
            link.carry(&flow.packet(&datagram, &mut random));
            let first = link.carry(&flow.next(&mut random));
            let beside = first.len - flow.plaintext - flow.tag;
            assert!(beside <= 3 + 14, "{first:?}");
        }
        for (six, more) in [(false, 24), (true, 49)] {
            let mut link = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Optimistic);
            let mut flow = DtlsFlow { nonce, ..DtlsFlow::new(six) };
            let first = link.carry(&flow.next(&mut SplitMix64(3)));
            assert_eq!(first.len - flow.plaintext - flow.tag, 3 + more, "{first:?}");
        }
    }
}

/// A flow between the hosts of another one, whose context the decompressor has acknowledged, needs no addresses.
#[test]
fn a_first_record_between_known_hosts_is_cheap() {
    for (six, more) in [(true, 16), (false, 18)] {
        for integrity in [Integrity::None, Integrity::Mic] {
            let mut link = DtlsLink::new(CidSpace::Small, integrity, Mode::Optimistic);
            let (mut flow, mut random) = (DtlsFlow::new(six), SplitMix64(10));
            for _ in 0..10 {
                link.carry(&flow.next(&mut random));
            }
            let mut other = DtlsFlow { port: 50_001, ..flow.clone() };
            let first = link.carry(&other.next(&mut random));
            let (settled, elided) =
                (link.carry(&other.next(&mut random)), usize::from(integrity != Integrity::None));
            assert_eq!((first.format, first.len - settled.len), (Format::IrCr, more + elided), "{first:?}");
            // With other fields of the IP header, too; the flow that has begun is a base.
            let mut third = DtlsFlow { port: 50_002, ..other.clone() };
            third.layer.ttl += 1;
            let dynamic = if six { 5 } else { 2 };
            let first = link.carry(&third.next(&mut random));
            assert_eq!(first.format, Format::IrCr);
            assert_eq!(first.len - settled.len, more + elided + dynamic);
        }
    }
}

/// A decompressor that has lost the contexts asks for addresses, and one that has other ones in them delivers nothing.
#[test]
fn a_base_that_is_missing_or_another_one_is_never_wrong() {
    let mut random = SplitMix64(11);
    for address in [1, 2] {
        for lost in [false, true] {
            let mut link = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Optimistic);
            let mut far = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Optimistic);
            let mut flow = DtlsFlow::new(true);
            let mut theirs = flow.clone();
            theirs.layer.address = address;
            for _ in 0..10 {
                link.carry(&flow.next(&mut random));
                if !lost {
                    far.carry(&theirs.next(&mut random));
                }
            }
            let mut other = DtlsFlow { port: 50_001, ..flow.clone() };
            let packet = other.next(&mut random);
            let (mut rohc, mut back) = (vec![0; 512], vec![0; 512]);
            let sent = link.send(&packet, &mut rohc);
            assert_eq!(sent.format, Format::IrCr);
            std::mem::swap(&mut link.ends[1], &mut far.ends[1]);
            let delivered = link.receive(&rohc[..sent.len], &mut back).map(<[u8]>::to_vec);
            assert_eq!(delivered, (address == 1 && !lost).then_some(packet));
            if lost {
                // A STATIC-NACK asks for the addresses of both flows.
                let mut is_restored = |flow: &mut DtlsFlow| {
                    (0..8).any(|_| {
                        let packet = flow.next(&mut random);
                        let sent = link.send(&packet, &mut rohc);
                        let is_delivered = link.receive(&rohc[..sent.len], &mut back) == Some(&packet[..]);
                        assert!(!is_delivered || sent.format == Format::Ir, "{sent:?}");
                        is_delivered
                    })
                };
                assert!(is_restored(&mut other) && is_restored(&mut flow));
            }
        }
    }
}

/// Without feedback no context is a base.
#[test]
fn without_feedback_a_flow_begins_with_its_addresses() {
    let mut link = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Unidirectional);
    let (mut flow, mut random) = (DtlsFlow::new(true), SplitMix64(12));
    for _ in 0..10 {
        link.carry(&flow.next(&mut random));
    }
    let mut other = DtlsFlow { port: 50_001, ..flow };
    assert_eq!(link.carry(&other.next(&mut random)).format, Format::Ir);
}

/// Every length of a record, and of a connection ID.
#[test]
fn records_of_every_length_come_back() {
    let mut random = SplitMix64(4);
    for cid in 0..=20 {
        let mut link = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Unidirectional);
        let mut flow = DtlsFlow { cid: vec![9; cid], ..DtlsFlow::new(cid % 2 == 0) };
        for plaintext in (0..40).chain([1_399, 1_400]) {
            flow.plaintext = plaintext;
            let sent = link.carry(&flow.next(&mut random));
            assert_eq!(sent.profile, ProfileId::Dtls);
        }
    }
}

/// Records of the old epoch arrive behind the first ones of the new epoch, at the compressor and at the decompressor.
#[test]
fn records_that_are_reordered_across_an_epoch_are_never_wrong() {
    let mut random = SplitMix64(5);
    for before in 1..4 {
        let mut flow = DtlsFlow::new(true);
        let mut old: Vec<_> = (0..10).map(|_| flow.next(&mut random)).collect();
        let late = old.split_off(10 - before);
        flow.rekey(&mut random);
        let new: Vec<_> = (0..10).map(|_| flow.next(&mut random)).collect();
        // Late at the compressor: all of them are restored.
        let mut link = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Optimistic);
        let (first, rest) = new.split_at(2);
        for packet in old.iter().chain(first).chain(&late).chain(rest) {
            link.carry(packet);
        }
        // Late at the decompressor: those of the old epoch are not delivered, or right.
        let mut link = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Optimistic);
        for packet in &old {
            link.carry(packet);
        }
        let mut rohc = vec![0; 512];
        let mut sent = |link: &mut DtlsLink, packet: &[u8]| {
            let len = link.send(packet, &mut rohc).len;
            rohc[..len].to_vec()
        };
        let late: Vec<_> = late.iter().map(|packet| (packet, sent(&mut link, packet))).collect();
        let first: Vec<_> = first.iter().map(|packet| (packet, sent(&mut link, packet))).collect();
        let mut back = vec![0; 512];
        for (packet, rohc) in first.iter().chain(&late) {
            let delivered = link.receive(rohc, &mut back);
            assert!(delivered.is_none_or(|delivered| delivered == &packet[..]));
        }
        for packet in rest {
            link.carry(packet);
        }
    }
}

/// A record with the number 0 arrives behind an alert with that number, from which its own one would be -1.
#[test]
fn a_number_below_zero_is_not_taken_for_zero() {
    let mut link = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Optimistic);
    let (mut flow, mut random) = (DtlsFlow::new(true), SplitMix64(9));
    for _ in 0..10 {
        flow.number = 0;
        link.carry(&flow.next(&mut random));
    }
    let (mut late, mut back) = (vec![0; 512], vec![0; 512]);
    flow.number = 0;
    let sent = link.send(&flow.next(&mut random), &mut late);
    assert_eq!(sent.format, Format::Pt0c);
    flow.number = 0;
    let alert = flow.record_of(21, 2, &mut random);
    link.carry(&flow.packet(&alert, &mut random));
    link.carry(&flow.next(&mut random));
    assert_eq!(link.receive(&late[..sent.len], &mut back), None);
}

/// All packets with the new epoch are lost, and its sequence numbers are too low by as much as the epoch is too high: the sum of a record is
/// that of the old epoch.
#[test]
fn an_epoch_that_was_missed_is_not_compensated_by_the_sequence_number() {
    for nonce in [Nonce::None, Nonce::Difference(0)] {
        let mut link = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Unidirectional);
        let (mut flow, mut random) = (DtlsFlow { nonce, ..DtlsFlow::new(true) }, SplitMix64(8));
        for _ in 0..10 {
            link.carry(&flow.next(&mut random));
        }
        (flow.epoch, flow.number) = (2, flow.number - 1);
        let (mut rohc, mut back) = (vec![0; 512], vec![0; 512]);
        let mut short = 0;
        for _ in 0..20 {
            let packet = flow.next(&mut random);
            let sent = link.send(&packet, &mut rohc);
            if sent.format == Format::Pt0c {
                short += 1;
                assert_eq!(link.receive(&rohc[..sent.len], &mut back), None);
            }
        }
        assert!(short > 5, "{short}");
    }
}

#[test]
fn datagrams_that_are_no_records_go_by_another_profile() {
    let mut flow = DtlsFlow::new(true);
    let mut random = SplitMix64(6);
    let mut link = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Optimistic);
    let record = flow.record(&mut random);
    let mut wrong_checksum = flow.packet(&record, &mut random);
    wrong_checksum[47] ^= 1;
    let truncated = flow.packet(&record[..record.len() - 1], &mut random);
    let unified = flow.packet(&[0x2F, 0, 1, 0, 2, 7, 7], &mut random);
    for packet in [wrong_checksum, truncated, unified] {
        assert_eq!(link.carry(&packet).profile, ProfileId::Udp);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(60) as u32))]

    /// Flows with all that records do are restored. `impaired_matrix.rs` has losses.
    #[test]
    fn random_flows_come_back(seed: u64, six: bool, large: bool, two_way: bool, elide: bool, cid in 0..4_usize, kind in 0..5) {
        let cids = if large { CidSpace::Large } else { CidSpace::Small };
        let integrity = if elide { Integrity::Mic } else { Integrity::None };
        let mode = if two_way { Mode::Optimistic } else { Mode::Unidirectional };
        let mut link = DtlsLink::new(cids, integrity, mode);
        let mut random = SplitMix64(seed);
        let mut flow = DtlsFlow { cid: vec![0xC1; [0, 0, 1, 6][cid]], ..DtlsFlow::new(six) };
        flow.layer.id_kind = [IdKind::Counts, IdKind::Constant, IdKind::Random][random.below(3) as usize];
        let mut other = DtlsFlow { port: 50_000, ..flow.clone() };
        if kind == 0 {
            link.carry(&flow.next(&mut random));
            flow.unified = Some((random.once_in(2), random.once_in(2)));
        }
        for _ in 0..200 {
            link.carry(&flow.mixed(&mut random));
            if random.once_in(6) {
                link.carry(&other.mixed(&mut random));
            }
        }
    }
}

/// Formats of the first packets of a flow.
#[test]
fn a_flow_begins_with_ir_and_a_change_of_type_is_repeated() {
    let mut link = DtlsLink::new(CidSpace::Small, Integrity::None, Mode::Unidirectional);
    let (mut flow, mut random) = (DtlsFlow::new(true), SplitMix64(7));
    let formats: Vec<_> = (0..6).map(|_| link.carry(&flow.next(&mut random)).format).collect();
    assert_eq!(formats, [Format::Ir, Format::Ir, Format::Ir, Format::Ir, Format::Pt0c, Format::Pt0c]);
    let alert = flow.record_of(21, 2, &mut random);
    let formats =
        [link.carry(&flow.packet(&alert, &mut random)).format, link.carry(&flow.next(&mut random)).format];
    assert_eq!(formats, [Format::Pt2c; 2]);
    let formats: Vec<_> = (0..5).map(|_| link.carry(&flow.next(&mut random)).format).collect();
    assert_eq!(formats[2..], [Format::Pt2c, Format::Pt0c, Format::Pt0c]);
}
