//! Tests with carriers that count lost packets: flows whose IP-ID moves against the SN, and groups of packets that are lost as
//! a whole.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{IdKind, IpLayer, SplitMix64, TestFlow};
use thinair_rohc::{
    Arrival, Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor,
    DecompressorConfig, DecompressorMemory, Instant, ProfileSet,
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
                CompressorMemory::owned(&channel, 4),
            ),
            decompressor: Decompressor::new(
                DecompressorConfig::new(channel),
                DecompressorMemory::owned(&channel, 4),
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
