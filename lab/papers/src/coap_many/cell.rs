//! Runs: a star of senders around a sink, whose readings contend for one channel.

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BinaryHeap, VecDeque};

use thinair_link::energy::{CC2538, CORTEX_M3, Energy, Spent};
use thinair_rohc::{Mode, ProfileId, ProfileSet, Refresh};
use thinair_simulation::csma::{
    AccessFailure, BitErrorRate, CsmaConfig, CsmaFraming, CsmaNetwork, Forwarding, FrameCompression,
    MacConfig, NodeCounters, Topology, address,
};
use thinair_simulation::{Purpose, RandomStream, RandomStreams};
use thinair_wire::time::Instant;

use crate::compressed::channel;
use crate::paper::PaperError;
use crate::traffic::{CoapFlow, TrafficPacket};

/// Mean time between two readings of a sender; each gap is from half to one and a half times this.
const INTERVAL: Duration = Duration::from_secs(1);

/// Time in which readings are sent, and time that they may take afterwards.
const SPAN: Duration = Duration::from_secs(120);
const SPAN_QUICK: Duration = Duration::from_secs(10);
const AFTERWARDS: Duration = Duration::from_secs(10);

/// Queue of a sender, in frames.
const QUEUE: u16 = 8;

/// Node in the middle.
const SINK: u16 = 0;

/// Runs this many senders. `way` names the compression of a reading's headers.
pub(super) fn run(
    is_hidden: bool,
    senders: u16,
    way: &str,
    is_quick: bool,
    (seed, run): (u64, u32),
) -> Result<ManySample, PaperError> {
    let config = CsmaConfig {
        topology: Topology::Star { leaves: senders },
        mac: MacConfig {
            access_failure: AccessFailure::Drop,
            queue: QUEUE,
            // A sender that cannot hear the others senses only the sink.
            sense_range: if is_hidden { 1 } else { 2 },
            ..MacConfig::default()
        },
        framing: CsmaFraming::Rfc4944(compression(way)?),
        forwarding: Forwarding::Single,
        errors: BitErrorRate::constant(0.0),
    };
    let mut star = Star::new(&config, senders, RandomStreams::new(seed), run);
    star.run(Instant::ZERO + if is_quick { SPAN_QUICK } else { SPAN });
    Ok(star.sample(senders))
}

fn compression(way: &str) -> Result<FrameCompression, PaperError> {
    // O-mode, feedback after 10 ms in a separate frame; each sender has its own channel.
    let rohc = || {
        let profiles = ProfileSet::of(&[ProfileId::Coap])?;
        Ok::<_, PaperError>(Box::new(channel(profiles, 1, Mode::Optimistic, Refresh::default(), 1)?))
    };
    Ok(match way {
        "6lowpan" => FrameCompression::Iphc,
        "rohc" => FrameCompression::Rohc(rohc()?),
        // In UDP datagrams, whose outer headers are compressed by LOWPAN_IPHC and LOWPAN_NHC.
        "both" => FrameCompression::RohcInUdp(rohc()?),
        _ => FrameCompression::None,
    })
}

/// Run in progress.
struct Star {
    network: CsmaNetwork<Vec<u8>>,
    senders: Vec<ReadingSender>,
    /// Time and sender of the next readings.
    next: BinaryHeap<Reverse<(Instant, u16)>>,
    sent: u64,
    /// Delays of delivered readings, in seconds.
    delays: Vec<f64>,
    altered: u64,
}

struct ReadingSender {
    flow: CoapFlow,
    gaps: RandomStream,
    /// Readings in flight, earliest first.
    under_way: VecDeque<(Instant, Vec<u8>)>,
}

impl Star {
    fn new(config: &CsmaConfig, senders: u16, streams: RandomStreams, run: u32) -> Self {
        let mut next = BinaryHeap::new();
        let senders = (1..=senders)
            .map(|node| {
                let mut gaps = streams.stream(run, node.into(), Purpose::Arrivals);
                let first = gaps.below(INTERVAL.as_nanos() as u64);
                next.push(Reverse((Instant::from_nanos(first), node)));
                let content = streams.stream(run, node.into(), Purpose::Content).next_u64();
                let flow = CoapFlow::notifications(address(node), address(SINK), content);
                ReadingSender { flow, gaps, under_way: VecDeque::new() }
            })
            .collect();
        let network = CsmaNetwork::new(config, streams, run);
        Self { network, senders, next, sent: 0, delays: Vec::new(), altered: 0 }
    }

    fn run(&mut self, end: Instant) {
        let mut packet = TrafficPacket::default();
        while let Some(Reverse((at, node))) = self.next.pop().filter(|Reverse((at, _))| *at < end) {
            self.go_on(at);
            let Some(sender) = self.senders.get_mut(usize::from(node) - 1) else { return };
            sender.flow.next(&mut packet);
            sender.under_way.push_back((at, packet.octets.clone()));
            self.network.send(node, SINK, packet.octets.clone());
            self.sent += 1;
            let interval = INTERVAL.as_nanos() as u64;
            let gap = interval / 2 + sender.gaps.below(interval);
            self.next.push(Reverse((Instant::from_nanos(at.as_nanos() + gap), node)));
        }
        self.go_on(end + AFTERWARDS);
    }

    fn go_on(&mut self, until: Instant) {
        while let Some(arrival) = self.network.next_before(until) {
            let sender = usize::from(arrival.from).checked_sub(1).and_then(|at| self.senders.get_mut(at));
            let Some(sender) = sender.filter(|_| arrival.to == SINK) else { continue };
            match sender.under_way.iter().position(|(_, octets)| *octets == arrival.packet) {
                Some(place) => {
                    // Earlier readings that are missing are lost: frames do not overtake each other.
                    if let Some((since, _)) = sender.under_way.drain(..=place).next_back() {
                        self.delays.push(arrival.at.since(since).as_secs_f64());
                    }
                }
                None => self.altered += 1,
            }
        }
    }

    fn sample(mut self, senders: u16) -> ManySample {
        let mut all = NodeCounters::default();
        (1..=senders).for_each(|node| all += &self.network.counters(node));
        let sink = self.network.counters(SINK);
        let spent = CC2538.spends(&all.usage, &CORTEX_M3, 0);
        self.delays.sort_by(f64::total_cmp);
        let (sent, arrived) = (self.sent as f64, self.delays.len() as f64);
        let p95 = self.delays.get((0.95 * arrived) as usize).or(self.delays.last()).copied();
        let energy = |of: fn(&Spent) -> Energy| of(&spent).as_joules();
        ManySample {
            sent,
            arrived,
            altered: self.altered as f64,
            collisions: (all.collisions + sink.collisions) as f64 / sent,
            access_failures: all.access_failures as f64 / sent,
            dropped: (all.dropped + all.overflowed) as f64 / sent,
            refused: sink.refused as f64 / sent,
            feedback: sink.sent as f64 / sent,
            octets: all.octets as f64 / sent,
            tries: all.sent as f64 / all.begun.max(1) as f64,
            waited: 1e-9 * all.waited as f64 / all.begun.max(1) as f64,
            delay: (arrived > 0.0).then(|| self.delays.iter().sum::<f64>() / arrived),
            p95,
            airtime: (arrived > 0.0).then(|| energy(Spent::airtime) / arrived),
            overhearing: (arrived > 0.0).then(|| energy(Spent::with_overhearing) / arrived),
        }
    }
}

/// Figures of a run, per sent reading unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ManySample {
    pub(super) sent: f64,
    pub(super) arrived: f64,
    /// Readings that arrived altered.
    pub(super) altered: f64,
    /// Collided frames, including acknowledgments.
    pub(super) collisions: f64,
    pub(super) access_failures: f64,
    /// Frames that senders gave up.
    pub(super) dropped: f64,
    /// Frames that the sink received and rejected.
    pub(super) refused: f64,
    /// Frames of the sink, which are feedback.
    pub(super) feedback: f64,
    /// Octets on the air from senders, including their acknowledgments of feedback.
    pub(super) octets: f64,
    /// Transmissions per frame that was transmitted at all.
    pub(super) tries: f64,
    /// Seconds from the queue to the air, for transmitted frames.
    pub(super) waited: f64,
    /// Seconds from the sender to the sink, for delivered readings: mean, and 95th percentile.
    pub(super) delay: Option<f64>,
    pub(super) p95: Option<f64>,
    /// Joules of all senders per delivered reading.
    pub(super) airtime: Option<f64>,
    pub(super) overhearing: Option<f64>,
}

impl ManySample {
    /// Share of readings that arrived.
    pub(super) fn delivered(&self) -> f64 {
        self.arrived / self.sent
    }
}
