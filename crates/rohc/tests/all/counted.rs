//! Tests with carriers that count lost packets: flows whose IP-ID moves against the SN, and groups of packets that are lost as
//! a whole.

use crate::common::source::{ChecksumUse, PacketSource, SourceKind};
use crate::common::{IdKind, IpLayer, SplitMix64, TestFlow};
use thinair_rohc::{
    Arrival, Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor,
    DecompressorConfig, DecompressorMemory, Instant, ProfileSet, ReorderRatio, RtpDetection,
};

struct CountedRun {
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    flow: TestFlow,
    random: SplitMix64,
    sent: u64,
    lost: u32,
}

impl CountedRun {
    /// Creates a run in U-mode, of UDP over IPv4 whose IP-ID steps by at most `steps` from packet to packet.
    fn new(steps: u16, seed: u64) -> Self {
        let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
        let layer = IpLayer { id_kind: IdKind::Steps(steps), ..IpLayer::new(false, 1) };
        Self {
            compressor: Compressor::new(
                CompressorConfig { counted: true, ..CompressorConfig::new(channel) },
                CompressorMemory::owned(channel.sizes().blocks(4)),
            ),
            decompressor: Decompressor::new(
                DecompressorConfig::new(channel),
                DecompressorMemory::owned(channel.sizes().blocks(4)),
            ),
            flow: TestFlow::udp(vec![layer]),
            random: SplitMix64(seed),
            sent: 0,
            lost: 0,
        }
    }

    /// Sends the next packet, of 2,000 per second. Returns true if it was delivered, which must be correct.
    fn send(&mut self, arrives: bool) -> bool {
        let packet = self.flow.packet(&mut self.random);
        let now = Instant::from_nanos(500_000 * self.sent);
        self.sent += 1;
        let (mut rohc, mut back) = ([0; 200], [0; 200]);
        let done = self.compressor.compress(now, &packet, &mut rohc).unwrap();
        if !arrives {
            self.lost += 1;
            return false;
        }
        let lost = Some(std::mem::take(&mut self.lost));
        let done = self.decompressor.decompress(Arrival { now, lost }, &rohc[..done.len], &mut back);
        done.is_ok_and(|done| {
            assert_eq!(&back[..done.len], packet, "packet {}", self.sent);
            true
        })
    }
}

/// Neither a checksum nor the count of packets covers the IP-ID: it is waited for, and one packet in 16 has it.
#[test]
fn an_ip_id_that_has_moved_in_a_gap_is_never_wrong_and_soon_there() {
    for seed in 1..=20 {
        let mut run = CountedRun::new(12, seed);
        (0..100).for_each(|_| assert!(run.send(true)));
        for _ in 0..200 {
            let gap = 4 + run.random.below(100);
            (0..gap).for_each(|_| assert!(!run.send(false)));
            let delivered: Vec<bool> = (0..64).map(|_| run.send(true)).collect();
            let waited = delivered.iter().position(|is_delivered| *is_delivered).unwrap();
            assert!(waited < 48, "seed {seed}: {waited} packets");
            assert!(delivered[waited..].iter().all(|is_delivered| *is_delivered));
        }
    }
}

/// Groups as in the datagrams of a tunnel: two groups of 50 packets in three are lost.
#[test]
fn a_group_is_known_however_many_groups_were_lost() {
    let mut run = CountedRun::new(1, 1);
    for group in 0..300 {
        run.compressor.begin_group();
        let arrives = group % 3 == 0;
        (0..50).for_each(|packet| assert_eq!(run.send(arrives), arrives, "{packet} of group {group}"));
    }
}

/// A packet that the carrier counts is behind all that have arrived, also where packets that were late have interrupted its count.
#[test]
fn a_packet_that_is_counted_is_not_taken_for_a_late_one() {
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v2()).unwrap();
    let mut delivered = 0;
    for seed in 1..=200 {
        let near = CompressorConfig {
            counted: true,
            reorder_ratio: ReorderRatio::ThreeQuarters,
            ..CompressorConfig::new(channel)
        };
        let mut compressor = Compressor::new(near, CompressorMemory::owned(channel.sizes().blocks(0)));
        let mut decompressor = Decompressor::new(
            DecompressorConfig::new(channel),
            DecompressorMemory::owned(channel.sizes().blocks(0)),
        );
        let mut flow = TestFlow { protocol: 47, ..TestFlow::udp(vec![IpLayer::new(false, 1)]) };
        let mut random = SplitMix64(seed);
        let sent: Vec<_> = (0..60)
            .map(|_| {
                let (packet, mut rohc) = (flow.packet(&mut random), vec![0; 200]);
                let done = compressor.compress(Instant::ZERO, &packet, &mut rohc).unwrap();
                rohc.truncate(done.len);
                (rohc, packet)
            })
            .collect();
        // One is lost, one is late, and one overtakes five others: its bits are those of the lost one.
        let order = (0..42).chain(43..50).map(|number| (number, Some(u32::from(number == 43))));
        let order = order.chain([(51, Some(1)), (52, Some(0)), (50, None), (58, Some(5))]);
        for (number, lost) in order {
            let (rohc, packet): &(Vec<u8>, Vec<u8>) = &sent[number];
            let mut back = [0; 200];
            let got = decompressor.decompress(Arrival { now: Instant::ZERO, lost }, rohc, &mut back);
            assert!(got.is_err() || back[..got.unwrap().len] == *packet, "seed {seed}, packet {number}");
            delivered += u32::from(number == 58 && got.is_ok());
        }
    }
    println!("{delivered} of 200 packets that have overtaken others were delivered");
    assert!(delivered > 150);
}

/// Behind 57 packets that the carrier counts, a packet is 58 ahead, and not late by 6, even if it is right with that number alone.
#[test]
fn a_packet_of_voice_that_is_counted_is_not_taken_for_a_late_one() {
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
    let rtp = RtpDetection::of_ports(&[5004]).unwrap();
    let near = CompressorConfig { rtp, counted: true, ..CompressorConfig::new(channel) };
    let mut compressor = Compressor::new(near, CompressorMemory::owned(channel.sizes().blocks(0)));
    let (mut random, mut back) = (SplitMix64(1), [0; 200]);
    let mut source = PacketSource::new(SourceKind::Rtp, true, ChecksumUse::Elided, 160, 1);
    let (mut sent, mut newest) = (Vec::new(), 0);
    for _ in 0..60 {
        let (packet, mut rohc) = (source.next(&mut random).remove(0).1, vec![0; 200]);
        let done = compressor.compress(Instant::ZERO, &packet, &mut rohc).unwrap();
        rohc.truncate(done.len);
        sent.push(rohc);
        newest = u16::from_be_bytes([packet[50], packet[51]]);
    }
    // UOR-2 with any CRC.
    for (ts, crc) in (0..4).flat_map(|ts| (0..128).map(move |crc| (ts, crc))) {
        let mut decompressor = Decompressor::new(
            DecompressorConfig::new(channel),
            DecompressorMemory::owned(channel.sizes().blocks(0)),
        );
        let mut receive = |lost, rohc: &[u8]| {
            let at = Arrival { now: Instant::ZERO, lost: Some(lost) };
            decompressor.decompress(at, rohc, &mut back).is_ok()
        };
        assert!(sent.iter().all(|rohc| receive(0, rohc)));
        let sn = newest.wrapping_add(58) as u8 & 0x3F;
        let is_delivered = receive(57, &[0xC0 | ts >> 1, ts << 7 | sn, crc, 1, 2, 3, 4]);
        let number = u16::from_be_bytes([back[50], back[51]]);
        assert!(!is_delivered || number == newest.wrapping_add(58), "{ts} {crc}: {number} behind {newest}");
    }
}
