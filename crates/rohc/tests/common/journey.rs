//! Packets of one flow on their path from a compressor to a decompressor in virtual time, over a channel that loses,
//! delays and repeats them, with feedback in the other direction. Every delivered packet is compared with the one that
//! was sent, bit for bit.

use std::collections::VecDeque;
use std::time::Duration;

use thinair_rohc::exchange::Exchanges;
use thinair_rohc::{
    Arrival, Channel, CidSpace, Compressor, CompressorConfig, CompressorMemory, Decompressor,
    DecompressorConfig, DecompressorMemory, Endpoint, Format, Instant, Mode, ProfileSet, ReorderRatio,
    RtpDetection,
};

use super::coap::CoapSide;
use super::peer::{Peer, PeerFlow};
use super::source::{ChecksumUse, PacketSource, SourceKind};
use super::{IdKind, SplitMix64};

/// Time between packets, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketPace {
    /// One packet per interval, with a jitter of at most 1 ms at the sender and 2 ms on the channel.
    Every(u64),
    /// Gaps with an exponential distribution of that mean.
    Exponential(u64),
    /// As [`Every`](Self::Every), by a sender that pauses: time alone proves nothing.
    Pausing(u64),
    /// Gaps of people and programs: bursts, and pauses of up to 4,000 times that mean.
    Erratic(u64),
}

impl PacketPace {
    pub const MS_20: Self = Self::Every(20_000);
    pub const MS_160: Self = Self::Every(160_000);
    pub const NONE: Self = Self::Exponential(20_000);

    pub fn is_paced(self) -> bool {
        matches!(self, Self::Every(_))
    }

    pub fn name(self) -> String {
        match self {
            Self::Every(interval) => format!("{} ms", interval / 1_000),
            Self::Pausing(_) => "pauses".into(),
            Self::Exponential(_) => "unpaced".into(),
            Self::Erratic(_) => "erratic".into(),
        }
    }
}

/// A flow, and the parameters of both ends of the channel.
#[derive(Clone, Copy, Debug)]
pub struct JourneySetup {
    pub kind: SourceKind,
    pub six: bool,
    pub checksum: ChecksumUse,
    pub mode: Mode,
    pub pace: PacketPace,
    /// The carrier numbers its frames.
    pub counts: bool,
    /// TTL and DSCP change once in 100 packets: no checksum covers them, and no change can be predicted.
    pub moves: bool,
    /// Delay in one direction, in microseconds.
    pub delay: u64,
    /// Ratio of the profiles of RFC 5225, if they are used.
    pub v2: Option<ReorderRatio>,
    /// IP-IDs of IPv4, where the headers behind IP do not determine them.
    pub ids: IdKind,
}

impl JourneySetup {
    /// Returns every flow in every mode of its profile, at these paces.
    pub fn all(paces: &[PacketPace], delay: u64) -> Vec<Self> {
        let mut all = Vec::new();
        for kind in SourceKind::ALL {
            for six in [false, true] {
                for &checksum in kind.checksums() {
                    for &pace in paces {
                        // The pace proves the packets of a paced flow without a count.
                        for counts in [false, true].into_iter().filter(|counts| !counts || !pace.is_paced()) {
                            for mode in [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable] {
                                if mode != Mode::Reliable || !kind.is_own() && !kind.is_tcp() {
                                    let (moves, v2, ids) = (false, None, IdKind::Counts);
                                    all.push(Self {
                                        kind,
                                        six,
                                        checksum,
                                        mode,
                                        pace,
                                        counts,
                                        moves,
                                        delay,
                                        v2,
                                        ids,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
        all
    }

    /// The flows that profiles of RFC 5225 carry, with a ratio.
    pub fn of_v2(paces: &[PacketPace], delay: u64, ratio: ReorderRatio) -> Vec<Self> {
        let all = Self::all(paces, delay).into_iter();
        all.filter(|setup| !setup.kind.is_own() && !setup.kind.is_tcp() && setup.mode != Mode::Reliable)
            .map(|setup| Self { v2: Some(ratio), ..setup })
            .collect()
    }

    /// Returns the flows whose TTL and DSCP can change, with the changes.
    pub fn moving(pace: PacketPace, delay: u64) -> Vec<Self> {
        let all = Self::all(&[pace], delay).into_iter();
        all.filter(|setup| !setup.kind.is_own() && setup.checksum == ChecksumUse::Carried)
            .map(|setup| Self { moves: true, ..setup })
            .collect()
    }

    /// The value in each dimension of a table.
    pub fn dimensions(&self) -> Vec<String> {
        let Self { kind, six, checksum, mode, pace, counts, moves, delay: _, v2, ids } = self;
        let moving = format!("{counts} {moves}");
        vec![
            format!("{kind:?}"),
            format!("{six} {ids:?}"),
            format!("{checksum:?}"),
            format!("{mode:?}"),
            format!("{pace:?}"),
            moving,
            format!("{v2:?}"),
        ]
    }

    /// True if the time determines the number of missing packets.
    pub fn is_paced(&self) -> bool {
        self.pace.is_paced()
            && !self.kind.is_mix()
            && !matches!(self.kind, SourceKind::RtpTalk | SourceKind::RtpPause)
    }

    /// True if only a CRC proves some candidate: neither a checksum, nor the pace, nor the carrier's count, which does
    /// not help for a late packet.
    pub fn is_unproved(&self) -> bool {
        self.is_wild() || !self.is_paced() && self.has_unproved_field()
    }

    /// True if a checksum, the pace or the carrier's count proves every candidate of a packet that is not late.
    pub fn is_proved(&self) -> bool {
        !self.is_unproved() || self.counts && !self.is_wild()
    }

    /// True if an inferred field is neither covered by a checksum nor follows from one that is.
    fn has_unproved_field(&self) -> bool {
        let has_no_inferred_id = self.six || matches!(self.ids, IdKind::Random | IdKind::Constant);
        self.has_stepping_ids() || self.kind.is_unproved(has_no_inferred_id, self.checksum)
    }

    /// True if IP-IDs change that do not follow from the SN.
    fn has_stepping_ids(&self) -> bool {
        !self.six
            && (matches!(self.ids, IdKind::Steps(_))
                || self.kind == SourceKind::TcpChat && self.ids == IdKind::Counts)
    }

    /// True if fields change that do not follow from others.
    fn is_wild(&self) -> bool {
        let has_jumps = matches!(self.kind, SourceKind::RtpTalk | SourceKind::RtpPause);
        self.moves
            || self.kind.is_mix()
            || self.has_stepping_ids()
            || (has_jumps || matches!(self.pace, PacketPace::Pausing(_)) && self.kind.is_rtp())
                && self.checksum == ChecksumUse::Elided
    }

    pub fn name(&self) -> String {
        let Self { kind, six, checksum, mode, pace, counts, moves, .. } = self;
        let checksum = match checksum {
            ChecksumUse::Carried => "",
            ChecksumUse::Elided => "elided",
        };
        format!(
            "{:<12} {} {:<6} {:<7} {:<5} {}",
            format!("{kind:?}"),
            if *six { "v6" } else { "v4" },
            if *moves { "moves" } else { checksum },
            pace.name(),
            if *counts { "count" } else { "" },
            mode.letter(),
        )
    }
}

/// Impairment of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketFate {
    pub is_lost: bool,
    /// Number of other packets that overtake it.
    pub late: u64,
    /// A duplicate arrives after that many other packets.
    pub again: Option<u64>,
}

/// Impairments of packets, by their number in one direction.
pub trait Fates {
    fn of(&mut self, number: u64, random: &mut SplitMix64) -> PacketFate;

    fn loses_feedback(&mut self, _random: &mut SplitMix64) -> bool {
        false
    }

    /// False if so many packets are late that they do not arrive at the pace at which they were sent.
    fn keeps_pace(&self) -> bool {
        true
    }
}

/// One packet of a flow whose sender pauses.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Time since the packet before, in microseconds.
    pub wait: u64,
    /// Part of it for which the clock of RTP timestamps stands still.
    pub stopped: u64,
    pub is_lost: bool,
    /// The sender has paused before the packet.
    pub is_behind_pause: bool,
}

/// Figures of one run, or of several.
#[derive(Clone, Copy, Debug, Default)]
pub struct JourneyOutcome {
    pub sent: u64,
    pub octets: u64,
    /// Packets that arrived, without duplicates.
    pub arrived: u64,
    /// Packets or duplicates that were delivered with wrong octets.
    pub wrong: u64,
    /// Packets that arrived, and were not delivered correctly.
    pub undelivered: u64,
    /// Gaps: losses in a row.
    pub gaps: u64,
    /// Largest number of packets in a row that arrived and were not delivered correctly.
    pub outage: u64,
    /// Longest time, in microseconds, from the arrival of a packet that is not delivered to that of the next one that is.
    pub wait: u64,
    /// Number of gaps after which packets are not delivered for longer than [`Limit`] allows.
    pub overdue: u64,
    /// Expected number of wrong packets that the CRCs of the formats accept, if only these prove a candidate: each
    /// packet that arrives where its LSBs are ambiguous counts 2^-n for n bits of CRC.
    pub bound: f64,
    /// Variance of that number. A change that is lost after a reference affects all packets after it, or none: the
    /// difference in the CRC is constant.
    pub variance: f64,
}

impl JourneyOutcome {
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.octets += other.octets;
        self.arrived += other.arrived;
        self.wrong += other.wrong;
        self.undelivered += other.undelivered;
        self.gaps += other.gaps;
        self.outage = self.outage.max(other.outage);
        self.wait = self.wait.max(other.wait);
        self.overdue += other.overdue;
        self.bound += other.bound;
        self.variance += other.variance;
    }

    /// The figures in one line.
    pub fn to_text(self) -> String {
        let Self { sent, octets, arrived, wrong, undelivered, gaps, outage, wait, overdue, .. } = self;
        let numbers = [sent, octets, arrived, wrong, undelivered, gaps, outage, wait, overdue];
        let numbers = numbers.map(|number| number.to_string()).join(" ");
        format!("{numbers} {} {}", self.bound, self.variance)
    }

    /// Returns the figures of such a line, if it is whole.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let (mut numbers, mut sums) = ([0; 9], [0.0; 2]);
        for number in &mut numbers {
            *number = parts.next()?.parse().ok()?;
        }
        for sum in &mut sums {
            *sum = parts.next()?.parse().ok()?;
        }
        let [sent, octets, arrived, wrong, undelivered, gaps, outage, wait, overdue] = numbers;
        let [bound, variance] = sums;
        Some(Self { sent, octets, arrived, wrong, undelivered, gaps, outage, wait, overdue, bound, variance })
    }

    /// Average number of packets not delivered after a gap.
    pub fn undelivered_a_gap(&self) -> f64 {
        if self.gaps == 0 { 0.0 } else { self.undelivered as f64 / self.gaps as f64 }
    }
}

/// A packet in flight.
#[derive(Clone)]
struct Flight {
    to: usize,
    number: u64,
    frame: u64,
    rohc: Vec<u8>,
    packet: Vec<u8>,
    format: Format,
    is_duplicate: bool,
}

enum ChannelEvent {
    Arrival(Flight),
    Feedback { to: usize, frame: u64, octets: Vec<u8> },
    Send { from: usize, packet: Vec<u8> },
}

/// One direction of the channel.
#[derive(Default)]
struct ChannelDirection {
    sent: u64,
    /// Number of frames of the carrier sent, including those with only feedback, and number of the newest that has
    /// arrived.
    frames: u64,
    newest: u64,
    lost: VecDeque<u64>,
    /// Packets that others still overtake.
    held: Vec<(u64, Flight)>,
    last_arrival: u64,
    /// The highest number that has arrived, and the one that the decompressor uses as reference.
    highest: u64,
    reference: u64,
    /// Number of packets after the reference that only a CRC proves.
    unproved: u32,
    outage: u64,
    /// Arrival of the first packet of an outage.
    since: u64,
    /// Packets not delivered since the last gap, and arrivals of the first and the last of them.
    refused: u64,
    first_refused: u64,
    last_refused: u64,
    /// The gap follows a pause of the sender.
    is_behind_pause: bool,
}

/// Longest time from the end of a gap to service: packets or microseconds, whichever is longer.
struct Limit {
    packets: u64,
    micros: u64,
}

impl Limit {
    const BEHIND_PAUSE: Self = Self { packets: 16, micros: 1_000_000 };
    /// The default refresh in U-mode, and time for the packet behind it.
    const ELSEWHERE: Self = Self { packets: 128, micros: 17_000_000 };
}

/// A time with an exponential distribution of that mean.
fn exponential(mean: u64, random: &mut SplitMix64) -> u64 {
    let unit = (1 + random.below(1 << 32)) as f64 / (1_u64 << 32) as f64;
    (-unit.ln() * mean as f64) as u64
}

/// Carries `packets` packets in flows of at most `longest`, each with seed and impairments of its own.
pub fn run_flows<F: Fates>(
    setup: &JourneySetup,
    seed: u64,
    packets: u64,
    longest: u64,
    mut fates: impl FnMut() -> F,
) -> JourneyOutcome {
    let (mut all, mut random) = (JourneyOutcome::default(), SplitMix64(seed));
    while all.sent < packets {
        all.add(&run(setup, &mut fates(), random.next(), (packets - all.sent).min(longest)));
    }
    all
}

/// Carries `packets` packets of the flow.
pub fn run(setup: &JourneySetup, fates: &mut dyn Fates, seed: u64, packets: u64) -> JourneyOutcome {
    carry(setup, fates, seed, packets, &[], None)
}

/// Carries the packets of [`run`] or, where there are `steps`, of [`run_steps`], and sends them through rohc-lib, too. Returns its figures.
pub fn run_peer(
    setup: &JourneySetup,
    fates: &mut dyn Fates,
    seed: u64,
    packets: u64,
    steps: &[Step],
    peer: &Peer,
) -> JourneyOutcome {
    let mut flow = peer.start(setup);
    let fates: &mut dyn Fates = if steps.is_empty() { fates } else { &mut StepFates(steps) };
    let sent = carry(setup, fates, seed, packets, steps, Some(&mut flow)).sent;
    JourneyOutcome { sent, ..flow.end() }
}

/// Losses of a flow with such steps.
struct StepFates<'a>(&'a [Step]);

impl Fates for StepFates<'_> {
    fn of(&mut self, number: u64, _random: &mut SplitMix64) -> PacketFate {
        let is_lost =
            usize::try_from(number - 1).is_ok_and(|at| self.0.get(at).is_some_and(|step| step.is_lost));
        PacketFate { is_lost, ..PacketFate::default() }
    }
}

/// Carries one packet of the flow for each step.
pub fn run_steps(setup: &JourneySetup, steps: &[Step], seed: u64) -> JourneyOutcome {
    carry(setup, &mut StepFates(steps), seed, steps.len() as u64, steps, None)
}

fn carry<'a>(
    setup: &'a JourneySetup,
    fates: &'a mut dyn Fates,
    seed: u64,
    packets: u64,
    steps: &'a [Step],
    peer: Option<&'a mut PeerFlow>,
) -> JourneyOutcome {
    let mut journey = Journey::new(setup, fates, seed);
    journey.steps = steps;
    journey.peer = peer;
    let interval = match setup.pace {
        PacketPace::Every(interval)
        | PacketPace::Pausing(interval)
        | PacketPace::Exponential(interval)
        | PacketPace::Erratic(interval) => interval,
    };
    // A clock of 8 kHz, as for voice.
    let mut source = PacketSource::new(
        setup.kind,
        setup.six,
        setup.checksum,
        (interval / 125) as u32,
        journey.random.next(),
    );
    source.set_ids(setup.ids);
    let mut time = 0;
    for number in 0..packets {
        let mut is_changed = setup.moves && journey.random.once_in(100) && source.change(&mut journey.random);
        let before = source.timestamp();
        let step = steps.get(number as usize);
        if let Some(step) = step {
            // The clock of the timestamps moves by one interval with each packet.
            let skipped = (step.wait - step.stopped).saturating_sub(interval);
            let is_stamped = source.skip(skipped);
            time += if is_stamped { step.stopped } else { step.stopped + skipped };
        }
        let next = source.next(&mut journey.random);
        let passed = source.timestamp().unwrap_or(0).wrapping_sub(before.unwrap_or(0));
        is_changed |= setup.kind.is_rtp() && before.is_some() && passed != interval as u32 / 125;
        if is_changed {
            journey.changed.push(journey.directions[0].sent + 1);
        }
        // Timestamps continue in pauses.
        time += u64::from(passed).saturating_sub(interval / 125) * 125;
        let at = match setup.pace {
            PacketPace::Every(interval) | PacketPace::Pausing(interval) => {
                time += interval;
                time + journey.random.below(interval.min(20_000) / 20)
            }
            PacketPace::Exponential(mean) => {
                time += exponential(mean, &mut journey.random);
                time
            }
            PacketPace::Erratic(mean) => {
                time += match journey.random.below(20) {
                    0..8 => journey.random.below(100),
                    8..18 => exponential(mean, &mut journey.random),
                    18 => exponential(mean << journey.random.below(13), &mut journey.random),
                    _ => mean,
                };
                time
            }
        };
        journey.advance(at);
        for (side, packet) in next {
            match side {
                CoapSide::Client => journey.send(at, 0, packet),
                // The response to a request that has arrived.
                CoapSide::Server => {
                    let from = usize::from(setup.kind.is_two_way());
                    let behind = if from == 1 { setup.delay + 5_000 } else { 0 };
                    journey.note(at + behind, ChannelEvent::Send { from, packet });
                }
            }
        }
    }
    journey.advance(u64::MAX);
    for from in 0..2 {
        journey.end_gap(from);
        journey.end_outage(from, journey.directions[from].last_arrival);
    }
    journey.outcome
}

struct Journey<'a> {
    setup: &'a JourneySetup,
    fates: &'a mut dyn Fates,
    random: SplitMix64,
    ends: [Endpoint<'static>; 2],
    directions: [ChannelDirection; 2],
    /// Later events by their time, the next one last.
    events: Vec<(u64, ChannelEvent)>,
    /// Buffers of packets that have arrived.
    spare: Vec<Vec<u8>>,
    /// Packets whose TTL or DSCP differs from the packet before, or whose timestamp does not follow from the SN.
    changed: Vec<u64>,
    /// The packets, where the sender pauses.
    steps: &'a [Step],
    /// Another implementation that gets the packets, too.
    peer: Option<&'a mut PeerFlow>,
    outcome: JourneyOutcome,
    rohc: Vec<u8>,
    back: Vec<u8>,
}

impl<'a> Journey<'a> {
    fn new(setup: &'a JourneySetup, fates: &'a mut dyn Fates, seed: u64) -> Self {
        let profiles = if setup.v2.is_some() { ProfileSet::v2() } else { setup.kind.profiles() };
        let channel = Channel::new(CidSpace::Small, 15, profiles).unwrap();
        let channel = channel.with_integrity_below(setup.kind.integrity(setup.checksum));
        let end = || {
            // One in four random payloads looks like RTP.
            let ports: &[u16] = if setup.kind.is_rtp() { &[5004] } else { &[] };
            let rtp = RtpDetection::of_ports(ports).unwrap();
            let reorder_ratio = setup.v2.unwrap_or_default();
            let config = CompressorConfig { seed, rtp, reorder_ratio, ..CompressorConfig::new(channel) };
            let compressor = Compressor::new(config, CompressorMemory::owned(channel.sizes().blocks(4)));
            let config = DecompressorConfig { mode: setup.mode, ..DecompressorConfig::new(channel) };
            let decompressor =
                Decompressor::new(config, DecompressorMemory::owned(channel.sizes().blocks(4)));
            Endpoint::new(compressor, decompressor)
                .with_exchanges(Exchanges::for_channel(&channel), Exchanges::for_channel(&channel))
        };
        Self {
            setup,
            fates,
            random: SplitMix64(seed),
            ends: [end(), end()],
            directions: [ChannelDirection::default(), ChannelDirection::default()],
            events: Vec::new(),
            spare: Vec::new(),
            changed: Vec::new(),
            steps: &[],
            peer: None,
            outcome: JourneyOutcome::default(),
            rohc: vec![0; 2_048],
            back: vec![0; 2_048],
        }
    }

    fn note(&mut self, at: u64, event: ChannelEvent) {
        // Events at one time keep their order.
        let place = self.events.partition_point(|(other, _)| *other > at);
        self.events.insert(place, (at, event));
    }

    /// Processes all events up to a time.
    fn advance(&mut self, until: u64) {
        while let Some((at, event)) = self.events.pop_if(|(at, _)| *at <= until) {
            match event {
                ChannelEvent::Arrival(flight) => self.arrive(at, flight),
                ChannelEvent::Send { from, packet } => self.send(at, from, packet),
                ChannelEvent::Feedback { to, frame, octets } => {
                    let arrival = self.arrival(at, to, frame);
                    let _ = self.ends[to].receive(arrival, &octets, &mut self.back);
                }
            }
        }
    }

    fn send(&mut self, at: u64, from: usize, packet: Vec<u8>) {
        let done = self.ends[from].send(instant(at), &packet, &mut self.rohc).unwrap();
        let len = done.len;
        let direction = &mut self.directions[from];
        direction.sent += 1;
        direction.frames += 1;
        self.outcome.sent += 1;
        self.outcome.octets += done.header_out as u64;
        let (number, frame) = (direction.sent, direction.frames);
        let fate = self.fates.of(number, &mut self.random);
        if let Some(peer) = &mut self.peer {
            peer.send(at, fate.is_lost, &packet);
        }
        let mut arrivals = Vec::new();
        if fate.is_lost {
            direction.lost.push_back(number);
        } else {
            let mut rohc = self.spare.pop().unwrap_or_default();
            rohc.extend_from_slice(&self.rohc[..len]);
            let flight = Flight {
                to: 1 - from,
                number,
                frame,
                rohc,
                packet,
                format: done.format,
                is_duplicate: false,
            };
            if let Some(behind) = fate.again {
                direction.held.push((behind + 1, Flight { is_duplicate: true, ..flight.clone() }));
            }
            match fate.late {
                0 => arrivals.push(flight),
                late => direction.held.push((late + 1, flight)),
            }
        }
        for (left, flight) in std::mem::take(&mut direction.held) {
            match left {
                1 => arrivals.push(flight),
                _ => direction.held.push((left - 1, flight)),
            }
        }
        for flight in arrivals {
            let direction = &mut self.directions[from];
            let arrival = at + self.setup.delay + self.random.below(2_000);
            direction.last_arrival = arrival.max(direction.last_arrival + 1);
            let arrival = direction.last_arrival;
            self.note(arrival, ChannelEvent::Arrival(flight));
        }
    }

    /// Returns the arrival of a frame, with the number of those missing before it if the carrier counts.
    fn arrival(&mut self, at: u64, to: usize, frame: u64) -> Arrival {
        let newest = &mut self.directions[1 - to].newest;
        let missing = frame.checked_sub(*newest + 1).map(|missing| missing as u32);
        *newest = frame.max(*newest);
        Arrival { now: instant(at), lost: missing.filter(|_| self.setup.counts) }
    }

    /// A packet is delivered again at that time, or there are no more.
    fn end_outage(&mut self, from: usize, at: u64) {
        let direction = &mut self.directions[from];
        if direction.outage > 0 {
            self.outcome.wait = self.outcome.wait.max(at.saturating_sub(direction.since));
        }
        direction.outage = 0;
    }

    /// Packets are delivered again, or the next gap begins.
    fn end_gap(&mut self, from: usize) {
        let direction = &mut self.directions[from];
        let limit = if direction.is_behind_pause { Limit::BEHIND_PAUSE } else { Limit::ELSEWHERE };
        let micros = direction.last_refused - direction.first_refused;
        let is_overdue = direction.refused > limit.packets && micros > limit.micros;
        self.outcome.overdue += u64::from(is_overdue);
        direction.refused = 0;
    }

    fn arrive(&mut self, at: u64, flight: Flight) {
        let Flight { to, number, frame, mut rohc, packet, format, is_duplicate } = flight;
        let direction = &mut self.directions[1 - to];
        let is_newest = number > direction.highest;
        if is_newest {
            let (mut is_gap, mut is_behind_pause) = (false, false);
            while let Some(&lost) = direction.lost.front().filter(|lost| **lost < number) {
                direction.lost.pop_front();
                is_gap |= lost > direction.highest;
                is_behind_pause |= self.steps.get(lost as usize - 1).is_some_and(|step| step.is_behind_pause);
            }
            if is_gap {
                self.end_gap(1 - to);
            }
            let direction = &mut self.directions[1 - to];
            direction.is_behind_pause = if is_gap { is_behind_pause } else { direction.is_behind_pause };
            self.outcome.gaps += u64::from(is_gap);
            direction.highest = number;
        }
        let direction = &mut self.directions[1 - to];
        let JourneySetup { kind, six, checksum, .. } = *self.setup;
        let is_unproved =
            self.setup.is_unproved() || !self.fates.keeps_pace() && kind.is_unproved(six, checksum);
        // The carrier's count excludes other distances, but does not determine fields that have changed.
        let is_counted = self.setup.counts && is_newest;
        if is_unproved && (!is_counted || self.setup.is_wild()) {
            let (from, to) = (direction.reference.min(number), direction.reference.max(number));
            let distance = number as i64 - direction.reference as i64;
            let is_changed = match kind {
                // Any field may have changed in lost or overtaking packets.
                kind if kind.is_mix() => distance != 1,
                _ if self.setup.has_stepping_ids() => distance != 1,
                _ => {
                    let at = self.changed.partition_point(|changed| *changed <= from);
                    self.changed.get(at).is_some_and(|changed| *changed <= to)
                }
            };
            let distance = if is_counted { 1 } else { distance };
            let part = match self.setup.v2 {
                Some(ratio) => let_through_by_v2(self.setup, ratio, format, distance, is_changed),
                None => let_through(kind, format, distance, is_changed),
            };
            self.outcome.bound += part;
            // The sum of the first odd numbers is the square of their number.
            self.outcome.variance += part * f64::from(2 * direction.unproved + 1);
            direction.unproved += u32::from(part > 0.0);
        }
        let arrival = self.arrival(at, to, frame);
        let received = self.ends[to].receive(arrival, &rohc, &mut self.back);
        rohc.clear();
        self.spare.push(rohc);
        let direction = &mut self.directions[1 - to];
        let is_delivered = received.is_ok_and(|done| done.len > 0);
        let is_right = received.is_ok_and(|done| self.back[..done.len] == packet);
        self.outcome.wrong += u64::from(is_delivered && !is_right);
        if is_delivered && !is_right && std::env::var_os("THINAIR_WRONG").is_some() {
            let back = &self.back[..received.map_or(0, |done| done.len)];
            let differ: Vec<_> =
                packet.iter().zip(back).enumerate().filter(|(_, (sent, back))| sent != back).collect();
            println!(
                "{}: packet {number} to end {to} by {}, behind {}, lengths {} {}, differs at (sent, delivered) {differ:?}",
                self.setup.name(),
                format.name(),
                direction.reference,
                packet.len(),
                back.len()
            );
        }
        if !is_delivered && std::env::var_os("THINAIR_LOST").is_some() {
            let name = self.setup.name();
            println!(
                "{at} {name}: packet {number} to end {to} by {}, behind {}, {received:?}",
                format.name(),
                direction.reference
            );
        }
        if is_right && updates(format) && number > direction.reference {
            direction.reference = number;
            direction.unproved = 0;
        }
        if !is_duplicate {
            self.outcome.arrived += 1;
            self.outcome.undelivered += u64::from(!is_right);
            if !is_right {
                direction.since = if direction.outage == 0 { at } else { direction.since };
                direction.outage += 1;
                direction.first_refused = if direction.refused == 0 { at } else { direction.first_refused };
                direction.last_refused = at;
                direction.refused += 1;
                self.outcome.outage = self.outcome.outage.max(direction.outage);
            } else if direction.outage > 0 {
                self.end_gap(1 - to);
                self.end_outage(1 - to, at);
            }
        }
        let mut feedback = [0; 64];
        while let Some(len) = self.ends[to].poll_feedback(&mut feedback) {
            self.directions[to].frames += 1;
            let frame = self.directions[to].frames;
            if !self.fates.loses_feedback(&mut self.random) {
                let octets = feedback[..len].to_vec();
                self.note(at + self.setup.delay, ChannelEvent::Feedback { to: 1 - to, frame, octets });
            }
        }
    }
}

fn instant(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// True if a format changes the context: do not (RFC 3095, section 5.7).
fn updates(format: Format) -> bool {
    let name = format.name();
    name == "R-0-CRC" || !name.starts_with("R-")
}

/// Probability that a format accepts a wrong header, for a packet with that distance from the reference: 0 if its LSBs
/// are unambiguous (RFC 3095, sections 4.5.1 and 5.7; RFC 6846, section 8.2) and no other field has changed meanwhile.
fn let_through(kind: SourceKind, format: Format, distance: i64, is_changed: bool) -> f64 {
    // Bits of the sequence number, the tolerated reordering, and bits of CRC.
    let (bits, behind, check) = match format {
        Format::Uo0 | Format::Uo1Ts | Format::Uo1Id => (4, 1, 3),
        Format::Uo1 if kind.is_rtp() => (4, 1, 3),
        Format::Uo1 => (5, 0, 3),
        Format::Uor2 if !kind.is_rtp() => (5, 0, 7),
        Format::Uor2 | Format::Uor2Id | Format::Uor2Ts => (6, 1, 7),
        Format::R0 => (6, 1, 0),
        Format::R0Crc => (7, 3, 7),
        Format::Pt0 => (4, 0, 3),
        Format::Pt0c => (7, 0, 16),
        Format::Pt1t => (4, 0, 8),
        Format::Pt1tc => (4, 0, 16),
        Format::Pt1 => (6, 0, 8),
        Format::Pt2 => (8, 0, 8),
        Format::Pt2c => (8, 0, 16),
        Format::Rnd8 | Format::Seq8 => (4, 4, 7),
        Format::CoCommon if kind.is_tcp() => (4, 4, 7),
        _ if kind.is_tcp() && !format.is_initialization() => (4, 4, 3),
        _ if format.name().starts_with("UO") => (8, 7, 7),
        _ if format.name().starts_with("R-1") => (6, 1, 0),
        _ => return 0.0,
    };
    let decides = (-behind..(1 << bits) - behind).contains(&distance);
    if decides && !is_changed { 0.0 } else { 0.5_f64.powi(check) }
}

/// [`let_through`] of RFC 5225, section 6.8.2.4. Acknowledgments of late packets may have raised the ratio.
fn let_through_by_v2(
    setup: &JourneySetup,
    ratio: ReorderRatio,
    format: Format,
    distance: i64,
    is_changed: bool,
) -> f64 {
    let (bits, check) = match format {
        Format::Pt0Crc3 | Format::Pt1Rnd | Format::Pt1SeqTs => (4, 3),
        Format::Pt1SeqId if setup.kind.is_rtp() => (5, 3),
        Format::Pt1SeqId => (6, 3),
        Format::Pt0Crc7 if setup.kind.is_rtp() => (5, 7),
        Format::Pt0Crc7 => (6, 7),
        Format::Pt2Rnd | Format::Pt2SeqId | Format::Pt2SeqTs | Format::Pt2SeqBoth => (7, 7),
        Format::CoCommon => (7, 7),
        _ => return 0.0,
    };
    let behind = |ratio| match ratio {
        ReorderRatio::None => 1,
        _ => (1 << bits) / 4 * ratio as i64 - 1,
    };
    let highest = if setup.mode == Mode::Unidirectional { ratio } else { ReorderRatio::ThreeQuarters };
    let decides = (-behind(ratio)..(1 << bits) - behind(highest)).contains(&distance);
    if decides && !is_changed { 0.0 } else { 0.5_f64.powi(check) }
}
