//! Flows of RTP, ESP and UDP-Lite: their sizes, and the effect of loss, which costs packets but never makes them
//! wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::media::{Coverage, Media, MediaKind, TimestampClock};
use crate::common::{IdKind, IpLayer, SplitMix64, TestFlow};
use thinair_rohc::{
    Channel, CidSpace, Compressed, Compressor, CompressorConfig, CompressorMemory, Decompressor,
    DecompressorConfig, DecompressorMemory, Format, Instant, Mode, ProfileId, ProfileSet, Refresh,
    ReorderRatio, RtpDetection,
};
use thinair_wire::checksum::Sum;

struct RtpLink {
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    now: Instant,
    /// Time from the compressor to the decompressor.
    delay: Duration,
}

impl RtpLink {
    fn new(mode: Mode, change: impl Fn(&mut CompressorConfig, &mut DecompressorConfig)) -> Self {
        Self::with(ProfileSet::v1(), mode, change)
    }

    fn with(
        profiles: ProfileSet,
        mode: Mode,
        change: impl Fn(&mut CompressorConfig, &mut DecompressorConfig),
    ) -> Self {
        let channel = Channel::new(CidSpace::Small, 3, profiles).unwrap();
        let mut near = CompressorConfig::new(channel);
        near.rtp = RtpDetection::of_ports(&[5004]).unwrap();
        near.refresh = Refresh::Off;
        let mut far = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
        change(&mut near, &mut far);
        Self {
            compressor: Compressor::new(near, CompressorMemory::owned(channel.sizes().blocks(8))),
            decompressor: Decompressor::new(far, DecompressorMemory::owned(channel.sizes().blocks(8))),
            now: Instant::from_millis(5),
            delay: Duration::ZERO,
        }
    }

    /// Carries a packet, unless it is lost. Returns true if it was delivered correctly, false if it was rejected.
    fn carry(&mut self, packet: &[u8], lost: bool) -> (Compressed, bool) {
        let (mut rohc, mut back) = ([0; 2_000], [0; 2_000]);
        let done = self.compressor.compress(self.now, packet, &mut rohc).unwrap();
        if lost {
            return (done, false);
        }
        let arrival = self.now + self.delay;
        let right = match self.decompressor.decompress(arrival, &rohc[..done.len], &mut back) {
            Ok(got) => {
                assert_eq!(&back[..got.len], packet, "{done:?}");
                true
            }
            Err(_) => false,
        };
        let mut element = [0; 64];
        while let Some(len) = self.decompressor.poll_feedback(&mut element) {
            self.compressor.receive_feedback(arrival, &element[1..len]).unwrap();
        }
        (done, right)
    }
}

fn flow(kind: MediaKind, six: bool) -> TestFlow {
    let mut flow = TestFlow::udp(vec![IpLayer::new(six, 1)]);
    flow.media = Some(Media::new(kind));
    flow.payload = 20;
    flow
}

fn media(flow: &mut TestFlow) -> &mut Media {
    flow.media.as_mut().unwrap()
}

/// Returns profile, format and header octets of the last of `count` packets, 20 ms apart.
fn last(
    kind: MediaKind,
    six: bool,
    count: usize,
    change: impl FnOnce(&mut TestFlow),
) -> (ProfileId, Format, usize) {
    let mut flow = flow(kind, six);
    change(&mut flow);
    let (mut link, mut random) = (RtpLink::new(Mode::Unidirectional, |_, _| {}), SplitMix64(1));
    let mut told = None;
    for _ in 0..count {
        link.now = link.now + Duration::from_millis(20);
        let (done, right) = link.carry(&flow.packet(&mut random), false);
        assert!(right, "{done:?}");
        told = Some((done.profile, done.format, done.header_out));
    }
    told.unwrap()
}

#[test]
fn steady_headers_are_as_small_as_the_formats_allow() {
    for six in [false, true] {
        // UO-0, and the checksum of UDP or UDP-Lite.
        assert_eq!(last(MediaKind::Rtp, six, 40, |_| {}), (ProfileId::Rtp, Format::Uo0, 3));
        assert_eq!(last(MediaKind::Esp, six, 40, |_| {}), (ProfileId::Esp, Format::Uo0, 1));
        assert_eq!(last(MediaKind::RtpUdpLite, six, 40, |_| {}), (ProfileId::RtpUdpLite, Format::Uo0, 3));
        let fixed = |flow: &mut TestFlow| media(flow).coverage = Coverage::Fixed(8);
        assert_eq!(last(MediaKind::UdpLite, six, 40, fixed), (ProfileId::UdpLite, Format::Uo0, 3));
        // Every packet has a coverage that varies.
        let varies = |flow: &mut TestFlow| media(flow).coverage = Coverage::Varies;
        assert_eq!(last(MediaKind::UdpLite, six, 40, varies), (ProfileId::UdpLite, Format::Uo0, 5));
    }
    // Constant CSRC identifiers cost nothing.
    let mixed = |flow: &mut TestFlow| media(flow).csrc = vec![1, 2, 3];
    assert_eq!(last(MediaKind::Rtp, false, 40, mixed), (ProfileId::Rtp, Format::Uo0, 3));
    // A marker and a jump of the timestamp, with and without a counting IP-ID.
    let jump = |flow: &mut TestFlow| media(flow).clock = TimestampClock::Talkspurts;
    let random = |flow: &mut TestFlow| {
        flow.layers[0].id_kind = IdKind::Random;
        media(flow).clock = TimestampClock::Talkspurts;
    };
    let formats = |change: fn(&mut TestFlow)| {
        (20..60).map(|count| last(MediaKind::Rtp, false, count, change).1).collect::<Vec<_>>()
    };
    assert!(formats(jump).contains(&Format::Uo1Ts));
    assert!(formats(random).contains(&Format::Uo1));
}

#[test]
fn ports_of_rtcp_and_other_versions_go_by_udp() {
    let mut link = RtpLink::new(Mode::Unidirectional, |_, _| {});
    let (mut flow, mut random) = (flow(MediaKind::Rtp, true), SplitMix64(1));
    let packet = flow.packet(&mut random);
    assert_eq!(link.carry(&packet, false).0.profile, ProfileId::Rtp);
    for (at, octet) in [(48, 0x40), (49, 200)] {
        let mut other = packet.clone();
        other[at] = octet;
        assert_eq!(link.carry(&other, false).0.profile, ProfileId::Udp, "octet {at} is {octet}");
    }
}

/// Number of packets that were delivered, of `count`. A wrong one fails an assertion.
fn survivors(kind: MediaKind, clock: TimestampClock, mode: Mode, percent: u64, seed: u64) -> usize {
    let mut random = SplitMix64(seed);
    let mut flow = flow(kind, seed.is_multiple_of(2));
    media(&mut flow).clock = clock;
    media(&mut flow).coverage = [Coverage::Full, Coverage::Fixed(8), Coverage::Varies][(seed % 3) as usize];
    let mut link = RtpLink::new(mode, |near, _| near.refresh = Refresh::default());
    (0..2_000)
        .filter(|_| {
            link.now = link.now + Duration::from_millis(20);
            let lost = random.below(100) < percent;
            link.carry(&flow.packet(&mut random), lost).1
        })
        .count()
}

#[test]
fn loss_makes_no_packet_wrong_and_few_unreadable() {
    for kind in [MediaKind::Rtp, MediaKind::Esp, MediaKind::UdpLite, MediaKind::RtpUdpLite] {
        for clock in [TimestampClock::Voice, TimestampClock::Talkspurts, TimestampClock::Frames(5)] {
            for mode in [Mode::Unidirectional, Mode::Optimistic] {
                for (percent, least) in [(0, 2_000), (5, 1_850), (20, 1_450)] {
                    for seed in 0..2 {
                        let got = survivors(kind, clock, mode, percent, seed);
                        assert!(got >= least, "{kind:?} {clock:?} {mode:?}: {got} of 2,000 at {percent} %");
                    }
                }
            }
        }
    }
}

/// Timestamps over a wraparound, which changes TS_OFFSET unless TS_STRIDE is a power of two. RFC 4815, section 4.4.2.
#[test]
fn timestamps_wrap_around() {
    for stride in [128, 160, 3_003] {
        let mut flow = flow(MediaKind::Rtp, true);
        media(&mut flow).stride = stride;
        media(&mut flow).ts = 0_u32.wrapping_sub(40 * stride + 7);
        let (mut link, mut random) = (RtpLink::new(Mode::Unidirectional, |_, _| {}), SplitMix64(1));
        for i in 0..100 {
            link.now = link.now + Duration::from_millis(20);
            let (done, right) = link.carry(&flow.packet(&mut random), false);
            assert!(right, "{done:?}");
            assert!(i < 50 || done.format == Format::Uo0, "packet {i}, stride {stride}: {done:?}");
        }
    }
}

/// UDP directly behind an IPv6 header, with its checksum.
fn with_right_sum(mut packet: Vec<u8>) -> Vec<u8> {
    packet[46..48].fill(0);
    let len = packet.len() as u16 - 40;
    let sum = Sum::ZERO.octets(&packet[8..40]).word(17).word(len).octets(&packet[40..]).checksum();
    packet[46..48].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Sends voice with pauses of up to 90 s on a link with jitter. Returns the number of packets by format.
fn talk(profiles: ProfileSet, timer: Option<Duration>) -> BTreeMap<Format, usize> {
    let mut link = RtpLink::with(profiles, Mode::Optimistic, |near, far| {
        near.timer = timer;
        far.clock = Some(1);
    });
    let (mut flow, mut random) = (flow(MediaKind::Rtp, true), SplitMix64(3));
    let (mut formats, mut undelivered) = (BTreeMap::new(), 0);
    for i in 0..3_000 {
        let mut pause = 1;
        if i > 200 && random.once_in(20) {
            pause = 1 + random.below(4_500);
            let stride = media(&mut flow).stride;
            let skipped = stride * (pause as u32 - 1);
            media(&mut flow).ts = media(&mut flow).ts.wrapping_add(skipped);
        }
        // The source is up to 5 ms late, the link up to 30 ms slower.
        link.now = Instant::from_nanos(link.now.as_nanos() + pause * 20_000_000);
        let late = Duration::from_millis(random.below(6));
        link.delay = Duration::from_millis(40 + random.below(31));
        let before = link.now;
        link.now = link.now + late;
        let packet = with_right_sum(flow.packet(&mut random));
        let lost = random.once_in(20);
        let (done, right) = link.carry(&packet, lost);
        link.now = before;
        undelivered += u32::from(!right && !lost);
        *formats.entry(done.format).or_insert(0) += 1;
    }
    assert!(undelivered <= 1, "{undelivered} packets arrived and were not delivered");
    formats
}

#[test]
fn a_timer_makes_the_end_of_a_pause_as_cheap_as_a_short_one() {
    use Format::{Pt0Crc3, Pt0Crc7, Pt1Rnd, Pt2Rnd, Uo0, Uo1, Uor2};
    let count = |formats: &BTreeMap<Format, usize>| -> usize {
        let short = [Uo0, Uo1, Uor2, Pt0Crc3, Pt0Crc7, Pt1Rnd, Pt2Rnd];
        short.iter().filter_map(|format| formats.get(format)).sum()
    };
    for profiles in [ProfileSet::v1(), ProfileSet::v2()] {
        let (without, with) = (talk(profiles, None), talk(profiles, Some(Duration::from_millis(40))));
        assert!(count(&with) > 2_900, "{with:?}");
        assert!(count(&without) + 200 < count(&with), "{without:?}");
    }
}

/// A silence of any length comes through, without loss: its end is told by a few bits where the clock tells the rest.
#[test]
fn a_silence_of_any_length_comes_through() {
    for (profiles, timer) in [ProfileSet::v1(), ProfileSet::v2()]
        .into_iter()
        .flat_map(|profiles| [None, Some(Duration::from_millis(40))].map(|timer| (profiles, timer)))
    {
        for silent in [0, 10, 100, 1_000, 4_500, 20_000, 60_000] {
            let mut link = RtpLink::with(profiles, Mode::Optimistic, |near, far| {
                near.timer = timer;
                far.clock = Some(1);
            });
            let (mut flow, mut random) = (flow(MediaKind::Rtp, true), SplitMix64(3));
            for i in 0..300 {
                let silent = if i == 200 { silent } else { 0 };
                let stride = media(&mut flow).stride;
                media(&mut flow).ts = media(&mut flow).ts.wrapping_add(stride * silent);
                link.now = link.now + Duration::from_millis(20) * (1 + silent);
                let packet = with_right_sum(flow.packet(&mut random));
                let (done, right) = link.carry(&packet, false);
                assert!(right, "packet {i} behind {silent} intervals: {done:?}");
                assert!(timer.is_none() || i < 200 || done.header_out <= 4, "packet {i}: {done:?}");
            }
        }
    }
}

/// The UDP checksum tells the timestamp of a packet that was sent before several jumps, and of one that tells a jump itself.
#[test]
fn packets_late_over_several_jumps_come_through() {
    let mut link = RtpLink::with(ProfileSet::v2(), Mode::Unidirectional, |near, _| {
        near.reorder_ratio = ReorderRatio::ThreeQuarters;
    });
    let (mut flow, mut random) = (flow(MediaKind::Rtp, true), SplitMix64(3));
    let (mut held, mut late, mut delivered) = (None, 0, 0);
    for i in 0..2_000 {
        let silent = if i > 20 && i % 5 == 0 { 2 + random.below(50) as u32 } else { 0 };
        let stride = media(&mut flow).stride;
        media(&mut flow).ts = media(&mut flow).ts.wrapping_add(stride * silent);
        link.now = link.now + Duration::from_millis(20) * (1 + silent);
        let packet = with_right_sum(flow.packet(&mut random));
        let mut rohc = vec![0; 200];
        let done = link.compressor.compress(link.now, &packet, &mut rohc).unwrap();
        rohc.truncate(done.len);
        if i > 100 && i % 20 == i / 20 % 20 {
            held = Some((i + 11, rohc, packet));
            continue;
        }
        let mut arriving = vec![(rohc, packet, false)];
        if let Some((_, rohc, packet)) = held.take_if(|(until, ..)| *until == i) {
            arriving.push((rohc, packet, true));
        }
        for (rohc, packet, is_late) in arriving {
            let mut back = [0; 200];
            let got = link.decompressor.decompress(link.now, &rohc, &mut back);
            assert!(is_late || got.is_ok(), "packet {i}: {done:?}");
            assert!(got.is_err() || back[..got.unwrap().len] == packet, "packet {i}: {done:?}");
            late += u32::from(is_late);
            delivered += u32::from(is_late && got.is_ok());
        }
    }
    println!("{delivered} of {late} late packets were delivered");
    assert!(late > 80 && delivered + 1 >= late);
}
