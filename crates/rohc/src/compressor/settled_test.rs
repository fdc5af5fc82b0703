//! The short way of a compressor, held against the long one, for each profile that has one but CoAP.

use super::*;
use crate::channel::ProfileSet;
use crate::cid::CidSpace;
use crate::test_flow::{Flow, RTP_PORT, Step, Upper, flows, steps};
use alloc::format;
use proptest::prelude::*;

const ROOM: usize = 128;

fn compressor(cids: CidSpace, by_port: bool) -> Compressor<'static> {
    let channel = Channel::new(cids, cids.highest().min(200), ProfileSet::v1()).unwrap();
    let mut config = CompressorConfig::new(channel);
    if by_port {
        config.rtp = RtpDetection::of_ports(&[RTP_PORT]).unwrap();
    }
    Compressor::new(config, CompressorMemory::owned(&channel, 1))
}

fn settled(
    compressor: &mut Compressor<'_>,
    now: Instant,
    packet: &[u8],
    out: &mut [u8],
) -> Option<Compressed> {
    let glance = Glance::of(packet)?;
    compressor.settled(now, &glance, packet, out)
}

proptest! {
    /// Results, octets, and the context after each packet.
    #[test]
    fn a_settled_flow_is_compressed_like_any_other(
        mut flow in flows(),
        large: bool,
        by_port: bool,
        steps in proptest::collection::vec(steps(), 4..16),
    ) {
        let cids = if large { CidSpace::Large } else { CidSpace::Small };
        let (mut short, mut long) = (compressor(cids, by_port), compressor(cids, by_port));
        let steps = steps.into_iter().flat_map(|(step, times)| core::iter::repeat_n(step, times));
        for (i, step) in steps.enumerate() {
            flow.step(step);
            let (now, packet) = (Instant::from_millis(20 * i as u64), flow.packet());
            let (mut a, mut b) = ([0; ROOM], [0; ROOM]);
            let x = settled(&mut short, now, &packet, &mut a).ok_or(());
            let x = x.or_else(|()| short.in_full(now, &packet, &mut a)).unwrap();
            let y = long.in_full(now, &packet, &mut b).unwrap();
            prop_assert_eq!((x, &a[..x.len]), (y, &b[..y.len]));
            prop_assert_eq!(format!("{:?}", short.flows.kind(x.cid)), format!("{:?}", long.flows.kind(y.cid)));
        }
    }
}

#[test]
fn most_packets_of_a_steady_flow_are_settled() {
    for (upper, six) in [Upper::Udp, Upper::Rtp, Upper::Esp].into_iter().flat_map(|u| [(u, false), (u, true)])
    {
        let (mut compressor, mut flow) = (compressor(CidSpace::Small, false), Flow::new(upper, six));
        let mut out = [0; ROOM];
        let count = (0..100_u64)
            .filter(|i| {
                flow.step(Step::Counts(1));
                let (now, packet) = (Instant::from_millis(*i), flow.packet());
                settled(&mut compressor, now, &packet, &mut out).is_some()
                    || compressor.in_full(now, &packet, &mut out).is_err()
            })
            .count();
        // Not the IR packets, the refreshes of the slow start, and those of RTP until its stride is sure.
        let most = if upper == Upper::Rtp { 65 } else { 85 };
        assert!(count > most, "{upper:?}: {count}");
    }
}
