//! The short way of a decompressor, held against the long one.

use thinair_wire::time::Instant;

use super::*;
use crate::channel::ProfileSet;
use crate::cid::CidSpace;
use crate::compressor::{Compressor, CompressorConfig, CompressorMemory, RtpDetection};
use crate::test_flow::{Flow, RTP_PORT, Step, Upper, flows, steps};
use alloc::format;
use alloc::vec::Vec;
use proptest::prelude::*;

const ROOM: usize = 256;

fn channel(cids: CidSpace) -> Channel {
    Channel::new(cids, cids.highest().min(200), ProfileSet::v1()).unwrap()
}

fn compressor(cids: CidSpace) -> Compressor<'static> {
    let channel = channel(cids);
    let rtp = RtpDetection::of_ports(&[RTP_PORT]).unwrap();
    let config = CompressorConfig { rtp, ..CompressorConfig::new(channel) };
    Compressor::new(config, CompressorMemory::owned(&channel, 2))
}

fn decompressor(cids: CidSpace, mode: Mode) -> Decompressor<'static> {
    let channel = channel(cids);
    let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    Decompressor::new(config, DecompressorMemory::owned(&channel, 2))
}

/// A packet by the long way alone.
fn in_full(
    decompressor: &mut Decompressor<'_>,
    now: Instant,
    packet: &[u8],
    out: &mut [u8],
) -> Result<Decompressed, DecompressError> {
    match packet::parts(packet).map_err(DecompressError::Packet)?.body {
        Body::Header(whole) => {
            let header =
                Header::read(whole, decompressor.config.channel.cids()).ok_or(DecompressError::Cid)?;
            if !decompressor.config.channel.allows(header.cid) {
                return Err(DecompressError::Cid);
            }
            decompressor.in_full(now.into(), &header, out, None)
        }
        Body::Empty | Body::Segment { .. } => decompressor.decompress(now, packet, out),
    }
}

/// What happens to a packet on its way.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    IsLost,
    ArrivesTwice,
    /// Behind the one that was sent after it.
    IsLate,
    /// With this bit flipped.
    IsHit(u16),
    /// After a pause, in milliseconds.
    Waits(u16),
    /// The room for it has that many octets.
    FindsRoom(u8),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        60 => Just(Fate::Arrives),
        3 => Just(Fate::IsLost),
        2 => Just(Fate::ArrivesTwice),
        2 => Just(Fate::IsLate),
        3 => (0..400_u16).prop_map(Fate::IsHit),
        2 => (0..2_000_u16).prop_map(Fate::Waits),
        1 => (0..60_u8).prop_map(Fate::FindsRoom),
    ]
}

proptest! {
    /// Results, octets, feedback, and the context after each packet.
    #[test]
    fn a_settled_context_decompresses_like_any_other(
        mut flow in flows(),
        large: bool,
        two_way: bool,
        steps in proptest::collection::vec(steps(), 4..16),
        fates in proptest::collection::vec(fate(), 200),
    ) {
        let cids = if large { CidSpace::Large } else { CidSpace::Small };
        let mode = if two_way { Mode::Optimistic } else { Mode::Unidirectional };
        let (mut short, mut long) = (decompressor(cids, mode), decompressor(cids, mode));
        let mut compressor = compressor(cids);
        let (mut now, mut late) = (Instant::ZERO, None);
        let steps = steps.into_iter().flat_map(|(step, times)| core::iter::repeat_n(step, times));
        for (step, fate) in steps.zip(fates) {
            flow.step(step);
            now = now + Duration::from_millis(20);
            let mut octets = [0; ROOM];
            let sent = compressor.compress(now, &flow.packet(), &mut octets).unwrap();
            let mut packet = octets[..sent.len].to_vec();
            let mut room = ROOM;
            let mut arrivals = Vec::new();
            match fate {
                Fate::Arrives | Fate::ArrivesTwice | Fate::IsLate => {}
                Fate::IsLost => continue,
                Fate::IsHit(bit) => {
                    let at = usize::from(bit / 8) % packet.len();
                    packet[at] ^= 1 << (bit % 8);
                }
                Fate::Waits(millis) => now = now + Duration::from_millis(millis.into()),
                Fate::FindsRoom(octets) => room = octets.into(),
            }
            if matches!(fate, Fate::IsLate) && late.is_none() {
                late = Some(packet);
                continue;
            }
            arrivals.push(packet);
            if matches!(fate, Fate::ArrivesTwice) {
                arrivals.push(arrivals[0].clone());
            }
            arrivals.extend(late.take());
            for packet in arrivals {
                let (mut a, mut b) = ([0; ROOM], [0; ROOM]);
                let x = short.decompress(now, &packet, &mut a[..room]);
                let y = in_full(&mut long, now, &packet, &mut b[..room]);
                prop_assert_eq!(x, y);
                if let Ok(done) = x {
                    prop_assert_eq!(&a[..done.len], &b[..done.len]);
                }
                prop_assert_eq!(format!("{:?}", short.contexts), format!("{:?}", long.contexts));
                prop_assert_eq!(short.pending, long.pending);
            }
        }
    }
}

#[test]
fn most_packets_of_a_steady_flow_are_settled() {
    let steps = [(false, Step::Counts(1)), (false, Step::CountsSwapped), (true, Step::Stays)];
    let uppers = [Upper::Udp, Upper::Rtp, Upper::Esp];
    for (upper, (six, step)) in uppers.into_iter().flat_map(|upper| steps.map(|step| (upper, step))) {
        let mut compressor = compressor(CidSpace::Small);
        let mut decompressor = decompressor(CidSpace::Small, Mode::Optimistic);
        let mut flow = Flow::new(upper, six);
        let mut settled = 0;
        for i in 0..100 {
            let (mut rohc, mut out) = ([0; ROOM], [0; ROOM]);
            flow.step(step);
            let (now, packet) = (Instant::from_millis(i), flow.packet());
            let sent = compressor.compress(now, &packet, &mut rohc).unwrap();
            let header = Header::read(&rohc[..sent.len], CidSpace::Small).unwrap();
            let done = match decompressor.settled(now.into(), &header, &mut out) {
                Some(done) => {
                    settled += 1;
                    done
                }
                None => decompressor.in_full(now.into(), &header, &mut out, None).unwrap(),
            };
            assert_eq!(out[..done.len], packet);
        }
        // The others are IR packets, IR-DYN packets, and after each the one by which the CRC is known.
        assert!(settled > 75, "{upper:?}, {step:?}: {settled}");
    }
}
