//! Modes of the RFC 3095 family: transitions as in the figures of RFC 3095, section 5.6, and R-mode under loss.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::common::media::{Coverage, Media, MediaKind, TimestampClock};
use crate::common::{IdKind, IpLayer, SplitMix64, TestFlow, any_flow, cases};
use thinair_rohc::feedback::{AckType, Feedback};
use thinair_rohc::{
    Channel, CidSpace, Compressed, Compressor, CompressorConfig, CompressorMemory, Decompressor,
    DecompressorConfig, DecompressorMemory, Endpoint, Format, Instant, Mode, ProfileId, ProfileSet, Refresh,
    RtpDetection, packet,
};

const STEP: Duration = Duration::from_millis(20);

/// Two ends and the link between them.
struct ModesLink {
    channel: Channel,
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    random: SplitMix64,
    now: Instant,
    /// Number of packets between the sending of feedback and its arrival.
    delay: usize,
    /// Feedback in flight, and the number of the packet with which it arrives.
    under_way: VecDeque<(usize, Vec<u8>)>,
    packets: usize,
    wrong: usize,
    collided: usize,
    right: usize,
    refused: usize,
    /// Contexts for which a packet of R-mode was sent, and number of these packets that were rejected.
    reliable: BTreeSet<u16>,
    lost_later: usize,
    formats: BTreeMap<&'static str, usize>,
    octets: usize,
}

impl ModesLink {
    fn new(mode: Mode) -> Self {
        Self::with(mode, CidSpace::Small, |_| {})
    }

    fn with(mode: Mode, cids: CidSpace, change: impl FnOnce(&mut CompressorConfig)) -> Self {
        let channel = Channel::new(cids, 15, ProfileSet::v1()).unwrap();
        let mut config = CompressorConfig { refresh: Refresh::Off, ..CompressorConfig::new(channel) };
        change(&mut config);
        let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(8)));
        Self {
            channel,
            compressor,
            decompressor: decompressor(channel, mode),
            random: SplitMix64(7),
            now: Instant::ZERO,
            delay: 0,
            under_way: VecDeque::new(),
            packets: 0,
            wrong: 0,
            collided: 0,
            right: 0,
            refused: 0,
            reliable: BTreeSet::new(),
            lost_later: 0,
            formats: BTreeMap::new(),
            octets: 0,
        }
    }

    /// Carries one packet, or loses it, and the feedback that is due. Returns the packet and feedback that were sent.
    fn carry(&mut self, flow: &mut TestFlow, lost: bool, feedback_lost: bool) -> (Compressed, Vec<Feedback>) {
        self.now = self.now + STEP;
        while self.under_way.front().is_some_and(|(at, _)| *at <= self.packets) {
            let (_, element) = self.under_way.pop_front().unwrap();
            for data in packet::parts(&element).unwrap().feedback {
                let _ = self.compressor.receive_feedback(self.now, data);
            }
        }
        self.packets += 1;
        let original = flow.packet(&mut self.random);
        let (mut rohc, mut out) = (vec![0; 600], vec![0; 600]);
        let done = self.compressor.compress(self.now, &original, &mut rohc).unwrap();
        self.octets += done.header_out;
        *self.formats.entry(done.format.name()).or_default() += 1;
        let name = done.format.name();
        if name.starts_with("R-") {
            self.reliable.insert(done.cid.value());
        } else if name.starts_with("UO-") {
            self.reliable.remove(&done.cid.value());
        }
        let mut sent = Vec::new();
        if !lost {
            let result = self.decompressor.decompress(self.now, &rohc[..done.len], &mut out);
            match result {
                Ok(back) if back.len > 0 && out[..back.len] != original => {
                    // Before R-mode, changes are repeated and not acknowledged: loss can take all packets with one, and a
                    // CRC may match.
                    if !self.reliable.contains(&done.cid.value()) {
                        self.collided += 1;
                    } else {
                        self.wrong += 1;
                    }
                }
                Ok(_) => self.right += 1,
                Err(error) => {
                    self.refused += 1;
                    if self.reliable.contains(&done.cid.value()) {
                        println!("{} {} {error:?}", self.packets, name);
                    }
                    self.lost_later += usize::from(self.reliable.contains(&done.cid.value()));
                }
            }
            let mut element = [0; 64];
            while let Some(len) = self.decompressor.poll_feedback(&mut element) {
                for data in packet::parts(&element[..len]).unwrap().feedback {
                    sent.push(Feedback::read(data, self.channel.cids()).unwrap());
                }
                if !feedback_lost {
                    self.under_way.push_back((self.packets + self.delay, element[..len].to_vec()));
                }
            }
        }
        (done, sent)
    }

    /// Carries packets without loss and returns the names of their formats.
    fn formats(&mut self, flow: &mut TestFlow, count: usize) -> Vec<&'static str> {
        let names = (0..count).map(|_| self.carry(flow, false, false).0.format.name()).collect();
        assert_eq!((self.wrong, self.collided, self.refused), (0, 0, 0));
        names
    }

    /// Replaces the decompressor by one without contexts.
    fn replace_decompressor(&mut self, mode: Mode) {
        self.decompressor = decompressor(self.channel, mode);
    }
}

fn decompressor(channel: Channel, mode: Mode) -> Decompressor<'static> {
    let config = DecompressorConfig { mode, ..DecompressorConfig::new(channel) };
    Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(8)))
}

fn udp() -> TestFlow {
    TestFlow::udp(vec![IpLayer::new(false, 1)])
}

/// RFC 3095, sections 5.6.3 and 5.6.4: ACK(R); UOR-2(SN, R); ACK(SN, R); R-0*.
#[test]
fn from_unidirectional_to_reliable_mode() {
    let (mut link, mut flow) = (ModesLink::new(Mode::Reliable), udp());
    let (first, asked) = link.carry(&mut flow, false, false);
    assert_eq!(first.format, Format::Ir);
    assert_eq!((asked[0].ack, asked[0].mode, asked[0].protected), (AckType::Ack, Some(Mode::Reliable), true));
    // IR of this profile does not carry the mode.
    let (second, answered) = link.carry(&mut flow, false, false);
    assert_eq!(second.format, Format::Uor2Ext3);
    assert_eq!((answered[0].ack, answered[0].mode), (AckType::Ack, Some(Mode::Reliable)));
    let (third, silent) = link.carry(&mut flow, false, false);
    assert_eq!((third.format, silent), (Format::R0, Vec::new()));
}

#[test]
fn no_packet_of_type_0_or_1_is_sent_while_a_transition_is_pending() {
    for to in [Mode::Reliable, Mode::Optimistic, Mode::Unidirectional] {
        let from = if to == Mode::Reliable { Mode::Optimistic } else { Mode::Reliable };
        let (mut link, mut flow) = (ModesLink::new(from), udp());
        link.formats(&mut flow, 10);
        link.decompressor.set_mode(to);
        // The request arrives, and no acknowledgment after it.
        let mut asked = false;
        for i in 0..200 {
            let (done, feedback) = link.carry(&mut flow, i % 3 == 1, asked);
            assert!(!asked || done.format == Format::Uor2Ext3, "{to:?}: {}", done.format.name());
            asked |= feedback.iter().any(|feedback| feedback.mode == Some(to));
        }
        assert!(asked);
        // Acknowledgments arrive again: it ends, as soon as one is sent.
        let formats = link.formats(&mut flow, 40);
        let expected = if to == Mode::Reliable { "R-0" } else { "UO-0" };
        assert_eq!(formats.last(), Some(&expected), "{to:?}: {formats:?}");
        assert_eq!((link.wrong, link.refused), (0, 0));
    }
}

/// Every transition of the figure at the beginning of RFC 3095, section 5.6, in sequence, with a round trip of some packets.
#[test]
fn a_context_goes_through_all_modes() {
    use Mode::{Optimistic as O, Reliable as R, Unidirectional as U};
    for delay in [0, 1, 7, 40] {
        let (mut link, mut flow) = (ModesLink::new(U), udp());
        link.delay = delay;
        assert!(link.formats(&mut flow, 20).ends_with(&["UO-0"]));
        for (mode, expected) in
            [(O, "UO-0"), (R, "R-0"), (O, "UO-0"), (U, "UO-0"), (R, "R-0"), (U, "UO-0"), (O, "UO-0")]
        {
            link.decompressor.set_mode(mode);
            let formats = link.formats(&mut flow, 8 * delay + 60);
            assert!(formats.last().unwrap().starts_with(expected), "delay {delay}, to {mode:?}: {formats:?}");
        }
    }
}

#[test]
fn a_transition_back_to_unidirectional_mode_ends_feedback() {
    let (mut link, mut flow) = (ModesLink::new(Mode::Reliable), udp());
    link.formats(&mut flow, 20);
    link.decompressor.set_mode(Mode::Unidirectional);
    link.formats(&mut flow, 20);
    for _ in 0..300 {
        flow.layers[0].ttl = link.random.next() as u8;
        assert_eq!(link.carry(&mut flow, false, false).1, []);
    }
}

/// RFC 3095, section 5.6.1: "MUST NOT be initiated by feedback which is not protected by a CRC".
#[test]
fn feedback_without_a_crc_changes_no_mode() {
    let (mut link, mut flow) = (ModesLink::new(Mode::Unidirectional), udp());
    link.formats(&mut flow, 10);
    for ack in [AckType::Ack, AckType::Nack] {
        let feedback = Feedback { mode: Some(Mode::Reliable), ..Feedback::new(thinair_rohc::Cid::ZERO, ack) };
        let mut element = [0; 32];
        let len = feedback.write(CidSpace::Small, &mut element).unwrap();
        link.compressor.receive_feedback(link.now, &element[1..len]).unwrap();
        // After a NACK packets have more bits for some time.
        let formats = link.formats(&mut flow, 100);
        assert!(formats.ends_with(&["UO-0"]), "{formats:?}");
    }
}

/// RFC 3843, section 3.4.
#[test]
fn a_compressor_without_r_mode_declines_where_there_is_a_word_for_it() {
    let mut flow = udp();
    flow.protocol = 58;
    let mut link = ModesLink::with(Mode::Reliable, CidSpace::Small, |config| config.reliable = false);
    let (done, _) = link.carry(&mut flow, false, false);
    assert_eq!(done.profile, ProfileId::Ip);
    let (done, acks) = link.carry(&mut flow, false, false);
    // The mode of extension 3 is 0; the answer refers to the mode in use.
    assert_eq!((done.format, acks[0].mode), (Format::Uor2Ext3, Some(Mode::Unidirectional)));
    for _ in 0..100 {
        let (done, feedback) = link.carry(&mut flow, false, false);
        assert_eq!((done.format, feedback), (Format::Uo0, Vec::new()));
    }
    assert_eq!(link.wrong, 0);
    // Profile 0x0002 has no such message: the request is ignored, and repeated now and then.
    let (mut link, mut flow) =
        (ModesLink::with(Mode::Reliable, CidSpace::Small, |config| config.reliable = false), udp());
    let asked = (0..1_000).map(|_| link.carry(&mut flow, false, false).1.len()).sum::<usize>();
    assert!((50..150).contains(&asked), "{asked}");
    assert!(link.formats.keys().all(|name| !name.starts_with("R-")), "{:?}", link.formats);
    assert_eq!(link.wrong, 0);
}

#[test]
fn steady_flows_in_r_mode_are_mostly_r_0() {
    for delay in [0, 5, 20] {
        let (mut link, mut flow) = (ModesLink::new(Mode::Reliable), udp());
        link.delay = delay;
        link.formats(&mut flow, 100);
        link.formats.clear();
        link.octets = 0;
        link.formats(&mut flow, 10_000);
        let count = |name| link.formats.get(name).copied().unwrap_or(0);
        println!("delay {delay}: {:?}, {} octets a header", link.formats, link.octets as f64 / 1e4);
        // One octet and the UDP checksum.
        assert!(count("R-0") > 8_000 && count("R-0") + count("R-0-CRC") == 10_000, "{:?}", link.formats);
        assert!(link.octets < 32_500, "{}", link.octets);
    }
}

#[test]
fn an_ip_id_that_jumps_goes_in_r_1_and_is_referred_to_once_acknowledged() {
    let (mut link, mut flow) = (ModesLink::new(Mode::Reliable), udp());
    link.delay = 3;
    link.formats(&mut flow, 40);
    flow.layers[0].id = flow.layers[0].id.wrapping_add(50);
    let formats = link.formats(&mut flow, 40);
    assert!(
        formats.contains(&"R-1") && formats.iter().filter(|name| **name == "R-0").count() > 25,
        "{formats:?}"
    );
    flow.layers[0].id_kind = IdKind::Steps(20);
    link.formats(&mut flow, 400);
    assert!(link.formats["R-1"] > 100, "{:?}", link.formats);
}

/// Every packet has a change until one with it is acknowledged: RFC 3095, section 5.5.1.1.1.
#[test]
fn a_change_is_said_until_it_is_acknowledged() {
    let (mut link, mut flow) = (ModesLink::new(Mode::Reliable), udp());
    link.formats(&mut flow, 20);
    flow.layers[0].ttl = 3;
    for _ in 0..100 {
        assert_eq!(link.carry(&mut flow, false, true).0.format, Format::Uor2Ext3);
    }
    let formats = link.formats(&mut flow, 8);
    assert!(formats.ends_with(&["R-0"]), "{formats:?}");
}

/// All packets with a change are lost, and CRC-3 does not notice it: the packets behind them have a CRC of 7 bits, which does.
#[test]
fn a_change_that_was_lost_as_a_whole_is_noticed() {
    for (six, ttl) in (65..=128).flat_map(|ttl| [(false, ttl), (true, ttl)]) {
        let (mut link, mut flow) =
            (ModesLink::new(Mode::Optimistic), TestFlow::udp(vec![IpLayer::new(six, 1)]));
        link.formats(&mut flow, 20);
        flow.layers[0].ttl = ttl;
        for i in 0..100 {
            link.carry(&mut flow, i < 30, false);
        }
        let before = link.collided;
        (0..50).for_each(|_| drop(link.carry(&mut flow, false, false)));
        assert_eq!(link.collided, before, "TTL {ttl}, IPv6: {six}");
    }
}

/// A TTL of IPv4 and the checksum are 14 octets apart in the CRC of profile 0x0004, so that no CRC notices a change whose bits are equal in
/// both: it is repeated for longer than losses last.
#[test]
fn a_lost_change_that_no_crc_notices_is_repeated() {
    for ttl in 65..=128 {
        let mut link = ModesLink::new(Mode::Optimistic);
        let mut flow = TestFlow { protocol: 47, ..TestFlow::udp(vec![IpLayer::new(false, 1)]) };
        link.formats(&mut flow, 20);
        flow.layers[0].ttl = ttl;
        (0..400).for_each(|i| drop(link.carry(&mut flow, i < 40, false)));
        assert_eq!((link.wrong, link.collided), (0, 0), "TTL {ttl}");
    }
}

/// Traffic with random changes, and loss of packets and feedback.
fn lossy(seed: u64, mode: Mode, loss: u64, feedback_loss: u64, delay: usize, packets: usize) -> ModesLink {
    let mut random = SplitMix64(seed);
    let cids = if random.once_in(2) { CidSpace::Small } else { CidSpace::Large };
    let mut link = ModesLink::with(mode, cids, |config| config.repetitions = 1 + (seed % 5) as u8);
    (link.random, link.delay) = (SplitMix64(seed ^ 99), delay);
    let mut flows: Vec<TestFlow> = (0..3).map(|_| any_flow(&mut random)).collect();
    for _ in 0..packets {
        let at = random.below(flows.len() as u64) as usize;
        if random.once_in(40) {
            flows[at].change(&mut random);
        }
        let lost = loss > 0 && random.below(100) < loss;
        let feedback_lost = feedback_loss > 0 && random.below(100) < feedback_loss;
        link.carry(&mut flows[at], lost, feedback_lost);
        assert_eq!(link.wrong, 0, "seed {seed}, packet {}", link.packets);
    }
    link
}

#[test]
fn in_r_mode_loss_makes_no_packet_wrong_and_loses_no_other() {
    for (loss, feedback_loss, delay) in [(0, 0, 0), (5, 5, 0), (20, 20, 3), (20, 50, 12), (5, 0, 60)] {
        let (mut right, mut refused, mut collided, mut formats) = (0, 0, 0, BTreeMap::new());
        for seed in 0..cases(24) {
            let link = lossy(seed, Mode::Reliable, loss, feedback_loss, delay, 1_500);
            assert_eq!(link.lost_later, 0, "seed {seed}");
            collided += link.collided;
            right += link.right;
            refused += link.refused;
            for (name, count) in link.formats {
                *formats.entry(name).or_insert(0) += count;
            }
        }
        println!(
            "loss {loss} %, of feedback {feedback_loss} %, delay {delay}: {right} right, {refused} refused, {formats:?}"
        );
        // Packets are rejected before R-mode is reached.
        assert!((refused + collided) * 50 < right, "{refused} and {collided} of {right}");
    }
}

/// Flows of a kind, with a few changes, under loss.
fn lossy_media(seed: u64, media: Media, (loss, feedback_loss, delay): (u64, u64, usize)) -> ModesLink {
    let mut random = SplitMix64(seed);
    let mut link = ModesLink::with(Mode::Reliable, CidSpace::Small, |config| {
        config.repetitions = 1 + (seed % 5) as u8;
        config.window = 1 + (seed % 7) as u8;
        config.interop.established_by_ir = seed % 3 == 1;
    });
    (link.random, link.delay) = (SplitMix64(seed ^ 99), delay);
    let mut flow = TestFlow::udp(vec![IpLayer::new(seed.is_multiple_of(3), 1)]);
    if seed % 5 == 1 {
        flow.layers.push(IpLayer::new(seed.is_multiple_of(2), 2));
    }
    if seed % 4 == 2 {
        flow.layers[0].id_kind = IdKind::Random;
    }
    flow.media = Some(media);
    for _ in 0..1_500 {
        if random.once_in(60) {
            flow.change(&mut random);
        }
        flow.payload = 5 + random.below(9) as usize;
        let lost = loss > 0 && random.below(100) < loss;
        let feedback_lost = feedback_loss > 0 && random.below(100) < feedback_loss;
        link.carry(&mut flow, lost, feedback_lost);
        assert_eq!(link.wrong, 0, "seed {seed}, packet {}", link.packets);
    }
    assert_eq!(link.lost_later, 0, "seed {seed}");
    link
}

#[test]
fn in_r_mode_loss_makes_no_packet_of_rtp_or_udp_lite_wrong() {
    let with = |kind, clock, coverage| {
        let mut media = Media::new(kind);
        (media.clock, media.coverage) = (clock, coverage);
        media
    };
    let mut formats = BTreeMap::new();
    for media in [
        with(MediaKind::Rtp, TimestampClock::Voice, Coverage::Full),
        with(MediaKind::Rtp, TimestampClock::Talkspurts, Coverage::Full),
        with(MediaKind::Rtp, TimestampClock::Frames(5), Coverage::Full),
        with(MediaKind::Rtp, TimestampClock::Wild, Coverage::Full),
        with(MediaKind::UdpLite, TimestampClock::Voice, Coverage::Full),
        with(MediaKind::UdpLite, TimestampClock::Voice, Coverage::Fixed(8)),
        with(MediaKind::UdpLite, TimestampClock::Voice, Coverage::Varies),
        with(MediaKind::RtpUdpLite, TimestampClock::Talkspurts, Coverage::Full),
        with(MediaKind::RtpUdpLite, TimestampClock::Frames(3), Coverage::Fixed(20)),
        with(MediaKind::RtpUdpLite, TimestampClock::Voice, Coverage::Varies),
    ] {
        for impairment in [(0, 0, 2), (5, 5, 0), (20, 20, 3), (20, 50, 12), (5, 0, 60)] {
            let (mut right, mut not_right) = (0, 0);
            for seed in 0..cases(8) {
                let link = lossy_media(seed, media.clone(), impairment);
                right += link.right;
                not_right += link.refused + link.collided;
                for (name, count) in link.formats {
                    *formats.entry(name).or_insert(0) += count;
                }
            }
            assert!(not_right * 50 < right, "{media:?}, {impairment:?}: {not_right} of {right}");
        }
    }
    println!("{formats:?}");
    for name in ["R-0", "R-0-CRC", "R-1", "R-1-TS", "R-1-ID", "R-1-EXT-0", "R-1-TS-EXT-0", "R-1-ID-EXT-1"] {
        assert!(formats.contains_key(name), "{name}: {formats:?}");
    }
    for name in ["CCE()", "CCE(ON)", "CCE(OFF)"] {
        assert!(formats[name] > 100, "{name}: {formats:?}");
    }
}

#[test]
fn steady_voice_in_r_mode_is_mostly_r_0() {
    for (kind, six) in [
        (MediaKind::Rtp, false),
        (MediaKind::Rtp, true),
        (MediaKind::RtpUdpLite, false),
        (MediaKind::UdpLite, true),
    ] {
        for delay in [0, 5, 20] {
            let mut link = ModesLink::with(Mode::Reliable, CidSpace::Small, |config| {
                config.rtp = RtpDetection::of_ports(&[5004]).unwrap();
            });
            let mut flow = TestFlow::udp(vec![IpLayer::new(six, 1)]);
            flow.media = Some(Media::new(kind));
            link.delay = delay;
            link.formats(&mut flow, 150);
            link.formats.clear();
            link.octets = 0;
            link.formats(&mut flow, 10_000);
            let count = |name| link.formats.get(name).copied().unwrap_or(0);
            println!(
                "{kind:?}, delay {delay}: {:?}, {} octets a header",
                link.formats,
                link.octets as f64 / 1e4
            );
            // One octet and the checksum.
            assert!(count("R-0") > 8_000 && count("R-0") + count("R-0-CRC") > 9_990, "{:?}", link.formats);
            assert!(link.octets < 32_600, "{}", link.octets);
        }
    }
}

/// Sent until an update with it is acknowledged.
#[test]
fn a_timestamp_that_jumps_is_sent_until_it_is_referred_to() {
    for (six, name) in [(false, "R-1-TS"), (true, "R-1")] {
        let (mut link, mut flow) =
            (ModesLink::new(Mode::Reliable), TestFlow::udp(vec![IpLayer::new(six, 1)]));
        flow.media = Some(Media::new(MediaKind::Rtp));
        link.delay = 6;
        link.formats(&mut flow, 100);
        let media = flow.media.as_mut().unwrap();
        media.ts = media.ts.wrapping_add(10 * media.stride);
        let formats = link.formats(&mut flow, 30);
        assert!(formats.iter().any(|format| format.starts_with(name)), "{formats:?}");
        assert!(!formats[..6].contains(&"R-0") && formats.ends_with(&["R-0"]), "{formats:?}");
        // A new TS_OFFSET. Without acknowledgments it is sent forever.
        let media = flow.media.as_mut().unwrap();
        media.ts = media.ts.wrapping_add(1);
        for _ in 0..100 {
            let (done, _) = link.carry(&mut flow, false, true);
            assert!(done.format.name().starts_with("UOR-2") && done.format.name().ends_with("EXT-3"));
        }
        let formats = link.formats(&mut flow, 30);
        assert!(formats.ends_with(&["R-0"]), "{formats:?}");
    }
}

/// RFC 4019, section 5.3.2: `CCE(ON)` and `CCE(OFF)` extend updates only, and `CCE()` extends any packet.
#[test]
fn a_change_of_the_coverage_is_said_until_it_is_acknowledged() {
    let (mut link, mut flow) = (ModesLink::new(Mode::Reliable), TestFlow::udp(vec![IpLayer::new(true, 1)]));
    flow.media = Some(Media::new(MediaKind::UdpLite));
    assert!(link.formats(&mut flow, 60).ends_with(&["R-0"]));
    let change = |flow: &mut TestFlow, coverage| flow.media.as_mut().unwrap().coverage = coverage;
    change(&mut flow, Coverage::Fixed(9));
    let (once, _) = link.carry(&mut flow, false, false);
    // Outer type, R-0, coverage and checksum.
    assert_eq!((once.format, once.header_out), (Format::Cce, 6));
    let names: Vec<_> = (0..100).map(|_| link.carry(&mut flow, false, true).0.format.name()).collect();
    assert!(names[20..].iter().all(|name| *name == names[20] && name.starts_with("CCE(O")), "{names:?}");
    let formats = link.formats(&mut flow, 40);
    assert!(formats.ends_with(&["R-0"]), "{formats:?}");
    // A packet that a compressor must not send is rejected.
    change(&mut flow, Coverage::Full);
    let (mut rohc, mut out) = ([0; 200], [0; 200]);
    let packet = flow.packet(&mut link.random);
    let done = link.compressor.compress(link.now, &packet, &mut rohc).unwrap();
    assert_eq!((done.format, rohc[0], rohc[1] >> 6), (Format::Cce, 0b1111_1001, 0b00));
    for first in [0b1111_1010, 0b1111_1011] {
        rohc[0] = first;
        assert!(link.decompressor.decompress(link.now, &rohc[..done.len], &mut out).is_err());
    }
    rohc[0] = 0b1111_1001;
    assert!(link.decompressor.decompress(link.now, &rohc[..done.len], &mut out).is_ok());
}

#[test]
fn rtp_goes_through_all_modes_with_a_timer_at_both_ends() {
    use Mode::{Optimistic as O, Reliable as R, Unidirectional as U};
    for kind in [MediaKind::Rtp, MediaKind::RtpUdpLite] {
        for delay in [0, 4, 30] {
            let mut link =
                ModesLink::with(R, CidSpace::Small, |config| config.timer = Some(Duration::from_millis(50)));
            let config = DecompressorConfig { clock: Some(10), ..DecompressorConfig::new(link.channel) };
            link.decompressor =
                Decompressor::new(config, DecompressorMemory::owned(link.channel.sizes().blocks(8)));
            link.delay = delay;
            let mut flow = TestFlow::udp(vec![IpLayer::new(false, 1)]);
            let mut media = Media::new(kind);
            media.clock = TimestampClock::Frames(4);
            flow.media = Some(media);
            for mode in [O, R, O, R, U, R, O, U] {
                link.decompressor.set_mode(mode);
                let formats = link.formats(&mut flow, 8 * delay + 200);
                let is_reliable = formats[formats.len() - 20..].iter().any(|name| name.starts_with("R-"));
                assert_eq!(is_reliable, mode == R, "{mode:?}: {formats:?}");
            }
        }
    }
}

#[test]
fn modes_may_change_all_the_time_under_loss() {
    for seed in 0..40 {
        let mut random = SplitMix64(seed);
        let (mut link, mut flow) = (ModesLink::new(Mode::Reliable), udp());
        link.delay = random.below(20) as usize;
        for _ in 0..3_000 {
            if random.once_in(60) {
                link.decompressor.set_mode(
                    [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable][random.below(3) as usize],
                );
            }
            if random.once_in(100) {
                flow.change(&mut random);
            }
            // Bursts of up to three, fewer than the repetitions of a change in U- and O-mode.
            let lost = link.packets % 7 == 3 && random.once_in(2);
            let feedback_lost = random.once_in(5);
            link.carry(&mut flow, lost, feedback_lost);
            assert_eq!((link.wrong, link.collided), (0, 0), "seed {seed}, packet {}", link.packets);
        }
    }
}

#[test]
fn a_context_is_reached_again_after_a_long_outage() {
    for outage in [63, 64, 100, 500, 5_000, 20_000, 40_000, 70_000] {
        for change in [false, true] {
            let (mut link, mut flow) = (ModesLink::new(Mode::Reliable), udp());
            link.delay = 4;
            link.formats(&mut flow, 200);
            for i in 0..outage {
                if change && i % 50 == 49 {
                    flow.layers[0].tos = i as u8;
                    flow.layers[0].id = link.random.next() as u16;
                }
                link.carry(&mut flow, true, true);
            }
            let formats = link.formats(&mut flow, 60);
            assert!(formats[59].starts_with("R-0"), "outage {outage}: {formats:?}");
        }
    }
}

/// Permanent loss of feedback costs octets and no packet: RFC 4815, section 8.7.
#[test]
fn a_peer_whose_feedback_is_lost_decompresses_all_the_same() {
    for mode in [Mode::Optimistic, Mode::Reliable] {
        let (mut link, mut flow) = (ModesLink::new(mode), udp());
        for i in 0..5_000 {
            link.carry(&mut flow, i % 20 == 19, true);
        }
        assert!(link.formats.keys().all(|name| !name.starts_with("R-")), "{:?}", link.formats);
        assert_eq!((link.wrong, link.refused), (0, 0));
    }
    // Also if it is lost once R-mode is reached.
    let (mut link, mut flow) = (ModesLink::new(Mode::Reliable), udp());
    link.formats(&mut flow, 100);
    for i in 0..80_000 {
        if i % 1_000 == 999 {
            flow.layers[0].tos = link.random.next() as u8;
        }
        link.carry(&mut flow, i % 20 == 19, true);
        assert_eq!((link.wrong, link.refused), (0, 0), "packet {}", link.packets);
    }
    let formats = link.formats(&mut flow, 20);
    assert!(formats.ends_with(&["R-0"]), "{formats:?}");
}

/// A decompressor that has lost its contexts is in U-mode and reads R-0 as UO-0.
#[test]
fn a_decompressor_without_memory_is_found_again() {
    for mode in [Mode::Reliable, Mode::Optimistic] {
        let (mut link, mut flow) = (ModesLink::new(Mode::Reliable), udp());
        link.formats(&mut flow, 100);
        link.replace_decompressor(mode);
        for _ in 0..100 {
            link.carry(&mut flow, false, false);
            assert_eq!(link.wrong, 0);
        }
        let formats = link.formats_after_failures(&mut flow, 20);
        let expected = if mode == Mode::Reliable { "R-0" } else { "UO-0" };
        assert_eq!(formats.last(), Some(&expected), "{formats:?}");
    }
}

impl ModesLink {
    fn formats_after_failures(&mut self, flow: &mut TestFlow, count: usize) -> Vec<&'static str> {
        self.refused = 0;
        self.formats(flow, count)
    }
}

/// RFC 4815, section 7.2.1: the mode is inherited by the next flow on the CID.
#[test]
fn a_flow_that_takes_over_a_cid_stays_in_r_mode() {
    let channel = Channel::new(CidSpace::Small, 0, ProfileSet::v1()).unwrap();
    let mut link = ModesLink::new(Mode::Reliable);
    let config = CompressorConfig { refresh: Refresh::Off, ..CompressorConfig::new(channel) };
    link.channel = channel;
    link.compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
    link.decompressor = decompressor(channel, Mode::Reliable);
    for round in 0..20_u8 {
        let mut flow = TestFlow::udp(vec![IpLayer::new(round % 3 == 0, round)]);
        // Now and then another profile, which starts in U-mode.
        if round % 7 == 6 {
            flow.protocol = 58;
        }
        let formats = link.formats(&mut flow, 30);
        assert_eq!(formats[0], "IR");
        assert!(formats.ends_with(&["R-0"]), "{formats:?}");
    }
}

/// RFC 4815, section 7.2.2: "not using packets of types beginning with 00 or 10 before it is highly confident".
#[test]
fn another_profile_on_a_cid_in_r_mode_is_acknowledged_before_it_is_small() {
    let channel = Channel::new(CidSpace::Small, 0, ProfileSet::v1()).unwrap();
    for mode in [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable] {
        let mut link = ModesLink::new(Mode::Reliable);
        let config = CompressorConfig { refresh: Refresh::Off, ..CompressorConfig::new(channel) };
        link.channel = channel;
        link.compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
        link.decompressor = decompressor(channel, Mode::Reliable);
        link.formats(&mut udp(), 30);
        link.decompressor.set_mode(mode);
        let mut flow = udp();
        flow.protocol = 58;
        for _ in 0..20 {
            let (done, _) = link.carry(&mut flow, true, false);
            assert_eq!(done.format, Format::Ir);
        }
        let formats = link.formats(&mut flow, 20);
        let expected = if mode == Mode::Reliable { "R-0" } else { "UO-0" };
        assert_eq!(formats.last(), Some(&expected), "{mode:?}: {formats:?}");
    }
}

#[test]
fn a_change_of_the_udp_checksum_in_ir_state_is_said_often_enough() {
    let (mut link, mut flow) = (ModesLink::new(Mode::Unidirectional), udp());
    link.formats(&mut flow, 3);
    flow.checksum = !flow.checksum;
    // The context has four IR packets, of which the fourth is the first with that flow; the other three need no static
    // part.
    let formats = link.formats(&mut flow, 5);
    assert_eq!(formats, ["IR", "IR-DYN", "IR-DYN", "IR-DYN", "UO-0"]);
}

/// A carrier that takes feedback out of a packet by itself calls `decompress`.
#[test]
fn an_endpoint_passes_feedback_to_its_compressor_by_receive_alone() {
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
    let decompressor = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) };
    let end = || Endpoint::owned(CompressorConfig::new(channel), decompressor);
    let (mut near, mut far, now) = (end(), end(), Instant::ZERO);
    let packet = udp().packet(&mut SplitMix64(7));
    let (mut rohc, mut back) = ([0; 512], [0; 512]);
    let done = near.send(now, &packet, &mut rohc).unwrap();
    far.receive(now, &rohc[..done.len], &mut back).unwrap();
    let len = far.send(now, &packet, &mut rohc).unwrap().len;
    let mode = |end: &Endpoint<'_>| end.compressor.context(done.cid).unwrap().mode;
    near.decompress(now, &rohc[..len], &mut back).unwrap();
    assert_eq!((&back[..packet.len()], mode(&near)), (&packet[..], Mode::Unidirectional));
    near.receive(now, &rohc[..len], &mut back).unwrap();
    assert_eq!(mode(&near), Mode::Optimistic);
}

#[test]
fn feedback_waits_where_a_packet_cannot_be_sent() {
    let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1()).unwrap();
    let decompressor = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) };
    let end = || Endpoint::owned(CompressorConfig::new(channel), decompressor);
    let (mut near, mut far, now) = (end(), end(), Instant::ZERO);
    let packet = udp().packet(&mut SplitMix64(7));
    let (mut rohc, mut back) = ([0; 512], [0; 512]);
    let done = near.send(now, &packet, &mut rohc).unwrap();
    far.receive(now, &rohc[..done.len], &mut back).unwrap();
    assert!(far.send(now, &packet, &mut rohc[..8]).is_err());
    let len = far.send(now, &packet, &mut rohc).unwrap().len;
    assert_eq!(packet::parts(&rohc[..len]).unwrap().feedback.count(), 1);
    assert_eq!(far.poll_feedback(&mut rohc), None);
}

/// The decompressor has the context of the flow before, and asks it for repair.
#[test]
fn uncompressed_packets_whose_ir_packets_are_lost_come_back() {
    let channel = Channel::new(CidSpace::Small, 0, ProfileSet::v1()).unwrap();
    let decompressor = DecompressorConfig { mode: Mode::Optimistic, ..DecompressorConfig::new(channel) };
    let end = || Endpoint::owned(CompressorConfig::new(channel), decompressor);
    let (mut near, mut far, mut now) = (end(), end(), Instant::ZERO);
    let (mut flow, mut random) = (udp(), SplitMix64(7));
    let (mut rohc, mut back, mut feedback) = ([0; 512], [0; 512], [0; 64]);
    let mut delivered = Vec::new();
    for number in 0..60 {
        now = now + STEP;
        let packet = flow.packet(&mut random);
        let is_compressed = number < 20;
        let sent = if is_compressed {
            near.send(now, &packet, &mut rohc)
        } else {
            near.compressor.uncompressed(now, &packet, &mut rohc)
        };
        let len = sent.unwrap().len;
        if (20..36).contains(&number) {
            continue;
        }
        let done = far.receive(now, &rohc[..len], &mut back);
        delivered.push(done.is_ok_and(|done| back[..done.len] == packet));
        while let Some(len) = far.poll_feedback(&mut feedback) {
            let _ = near.receive(now, &feedback[..len], &mut back);
        }
    }
    assert!(delivered[..20].iter().chain(&delivered[24..]).all(|is_right| *is_right), "{delivered:?}");
}
