//! Records of OpenSSL with two handshakes, and so epochs 0, 1 and 2, in another order than they were sent: before compression, and
//! behind it.

use std::path::Path;

use thinair_analyze::endpoint;
use thinair_rohc::{
    Channel, CidSpace, CompressorConfig, DecompressorConfig, Endpoint, Instant, Mode, ProfileId, ProfileSet,
};

use crate::{ROOM, records};

/// Places by which a record is late at most.
const MOST_LATE: u64 = 5;

/// Returns the numbers below `count`, each late by chance.
fn reordered(count: usize, seed: u64) -> Vec<usize> {
    // A multiplicative hash is all that is needed: the same on every machine.
    let late = |number: u64| (number + 1).wrapping_mul(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1) >> 40;
    let mut order: Vec<_> =
        (0..count).map(|at| (at as u64 + late(at as u64) % (MOST_LATE + 1), at)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

/// Epoch of the first record of a packet of IPv4.
fn epoch(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[31], packet[32]])
}

#[test]
fn records_that_are_reordered_across_a_new_epoch_are_never_wrong() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures/dtls_udp4_openssl_gcm.pcap");
    let all = records(&path);
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1().with(ProfileId::Dtls).unwrap()).unwrap();
    let (mut rohc, mut back, mut element) = (vec![0; ROOM], vec![0; ROOM], [0; 64]);
    let (mut crossings, mut delivered, mut sent) = (0, 0, 0);
    for (mode, seed) in [Mode::Unidirectional, Mode::Optimistic].into_iter().zip([1_000, 2_000]) {
        for (from, seed) in all.iter().take(2).map(|packet| &packet[12..16]).zip([seed, seed + 500]) {
            let flow: Vec<_> = all.iter().filter(|packet| &packet[12..16] == from).collect();
            for seed in seed..seed + 100 {
                let end = || {
                    let decompressor = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
                    endpoint(CompressorConfig::new(channel), decompressor, &[])
                };
                // Late at the compressor: all are restored.
                let order = reordered(flow.len(), seed);
                let [mut near, mut far]: [Endpoint<'static>; 2] = [end(), end()];
                for (at, number) in order.iter().enumerate() {
                    let (now, packet) = (Instant::from_millis(20 * at as u64), flow[*number]);
                    let len = near.send(now, packet, &mut rohc).unwrap().len;
                    let got = far.receive(now, &rohc[..len], &mut back).unwrap();
                    assert_eq!(back[..got.len], packet[..], "seed {seed}: packet {at}");
                    while let Some(len) = far.poll_feedback(&mut element) {
                        let _ = near.receive(now, &element[..len], &mut []);
                    }
                    let earlier = order[..at].iter().filter(|other| *other > number);
                    crossings += earlier.filter(|other| epoch(flow[**other]) != epoch(packet)).count();
                }
                // Late at the decompressor: each is right, or not delivered.
                let [mut near, mut far]: [Endpoint<'static>; 2] = [end(), end()];
                let frames: Vec<_> = (0..)
                    .zip(&flow)
                    .map(|(at, packet)| {
                        let done = near.send(Instant::from_millis(20 * at), packet, &mut rohc).unwrap();
                        rohc[..done.len].to_vec()
                    })
                    .collect();
                for (at, number) in (0..).zip(&order) {
                    let now = Instant::from_millis(20 * at);
                    sent += 1;
                    if let Ok(got) = far.receive(now, &frames[*number], &mut back) {
                        assert_eq!(back[..got.len], flow[*number][..], "seed {seed}: packet {at}");
                        delivered += 1;
                    }
                }
            }
        }
    }
    println!(
        "{crossings} pairs in another order than their epochs; {delivered} of {sent} delivered where compressed packets are late"
    );
    assert!(crossings > 500);
    assert!(delivered * 100 > sent * 90);
}
