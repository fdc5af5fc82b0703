//! Cells: a carrier, what the link does, what is offered, and the mode of operation.

use core::time::Duration;

use thinair_link::{
    Airtime, CoDelConfig, Direction, Discipline, Duplex, GilbertElliott, LinkModel, LossModel, MeanBurst,
    Probability, Queue, Rate,
};
use thinair_rohc::Mode;
use thinair_wire::time::Instant;

use super::flow::{Flow, Meter, Sample, ticks};
use super::{direct, tunnel};
use crate::paper::Error;
use crate::sweep::Repeated;

/// Rate of the link, in bits a second.
pub(super) const RATE: u64 = 2_000_000;
/// Share of packets that are lost where they are lost in bursts, in percent.
pub(super) const BURSTY: u32 = 5;
/// Packets that wait, unless a cell has its own queue.
const QUEUE: u32 = 100;
/// Octets of the longest packet, for CoDel.
const MTU: u32 = 1_500;

/// Time from the first packet to the beginning of the window that is measured.
const WARM_UP: Duration = Duration::from_millis(500);
/// Length of the window.
const SPAN: Duration = Duration::from_secs(10);
const SPAN_QUICK: Duration = Duration::from_secs(4);

/// Carrier of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// ROHC on the link: `link run --rohc`.
    Link,
    /// A sealed tunnel over UDP.
    Udp,
    /// A sealed tunnel over ULE in UDP.
    Ule,
}

impl Carrier {
    pub(super) const ALL: [Self; 3] = [Self::Link, Self::Udp, Self::Ule];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Udp => "udp",
            Self::Ule => "ule",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Link => "ROHC on the link",
            Self::Udp => "Tunnel over UDP",
            Self::Ule => "Tunnel over ULE",
        }
    }
}

/// Loss on the link, beside what the queue drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// A queue of 100 packets, drop-tail.
    Full,
    /// A queue of 20 packets, drop-tail.
    Short,
    /// A queue of 100 packets with CoDel (RFC 8289).
    CoDel,
    /// Percent of datagrams, at random.
    Random(u32),
    /// [`BURSTY`] percent of datagrams in bursts of this mean length.
    Bursts(u32),
}

impl Condition {
    pub(super) const OTHERS: [Self; 8] = [
        Self::Short,
        Self::CoDel,
        Self::Random(1),
        Self::Random(5),
        Self::Random(20),
        Self::Bursts(5),
        Self::Bursts(16),
        Self::Bursts(64),
    ];

    pub(super) fn name(self) -> String {
        match self {
            Self::Full => "queue-100".to_owned(),
            Self::Short => "queue-20".to_owned(),
            Self::CoDel => "codel".to_owned(),
            Self::Random(percent) => format!("loss-{percent}"),
            Self::Bursts(mean) => format!("bursts-{mean}"),
        }
    }

    /// Share of datagrams that the link loses.
    pub(super) fn loss(self) -> f64 {
        match self {
            Self::Full | Self::Short | Self::CoDel => 0.0,
            Self::Random(percent) => 0.01 * f64::from(percent),
            Self::Bursts(_) => 0.01 * f64::from(BURSTY),
        }
    }

    fn model(self) -> LinkModel<'static> {
        let queue = match self {
            Self::Short => Queue::packets(20),
            Self::CoDel => {
                Queue { discipline: Discipline::CoDel(CoDelConfig::new(MTU)), ..Queue::packets(QUEUE) }
            }
            Self::Full | Self::Random(_) | Self::Bursts(_) => Queue::packets(QUEUE),
        };
        let percent = |percent| Probability::from_percent(percent).unwrap_or(Probability::NEVER);
        let loss = match self {
            Self::Full | Self::Short | Self::CoDel => LossModel::None,
            Self::Random(share) => LossModel::Random(percent(share)),
            Self::Bursts(mean) => {
                let mean = MeanBurst::from_units(mean).unwrap_or(MeanBurst::ONE);
                GilbertElliott::bursts(percent(BURSTY), mean).map_or(LossModel::None, LossModel::Bursts)
            }
        };
        let airtime = Rate::from_bps(RATE).map_or(Airtime::None, Airtime::Rate);
        // Feedback goes over a direction of its own, which nothing else fills, and is lost as the packets are.
        LinkModel::symmetric(Direction { airtime, queue, loss, ..Direction::IDEAL }, Duplex::Full)
    }
}

/// Treatment of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Profile uncompressed, or no ROHC.
    Plain,
    /// Compressed, in this mode.
    Rohc(Mode),
}

impl Way {
    pub(super) const MODES: [Mode; 3] = [Mode::Unidirectional, Mode::Optimistic, Mode::Reliable];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Rohc(Mode::Unidirectional) => "u",
            Self::Rohc(Mode::Optimistic) => "o",
            Self::Rohc(Mode::Reliable) => "r",
        }
    }
}

/// A scenario, but for the treatment of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scenario {
    pub(super) carrier: Carrier,
    pub(super) condition: Condition,
    /// Offered UDP payload in tenths of the rate of the link.
    pub(super) load: u32,
    /// Octets of UDP payload.
    pub(super) payload: usize,
}

impl Scenario {
    pub(super) fn id(&self) -> String {
        let Self { carrier, condition, load, payload } = self;
        format!("{}/{}/{}.{}x/{payload}", carrier.name(), condition.name(), load / 10, load % 10)
    }

    /// Mbit/s of UDP payload that are offered.
    pub(super) fn offered(&self) -> f64 {
        1e-7 * f64::from(self.load) * RATE as f64
    }

    /// Packets that are due so long after the begin.
    fn due(&self, after: Duration) -> u32 {
        let bits = u128::from(RATE) * u128::from(self.load) / 10 * after.as_nanos();
        (bits / (8 * self.payload as u128 * 1_000_000_000)) as u32
    }
}

/// A scenario with a treatment of headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) scenario: Scenario,
    pub(super) way: Way,
    runs: u32,
    span: Duration,
}

/// One run of a cell, as the engines need it.
pub(super) struct Run {
    pub(super) scenario: Scenario,
    pub(super) way: Way,
    pub(super) model: LinkModel<'static>,
    pub(super) seed: u64,
    pub(super) flow: Flow,
    /// Times after the begin at which the sender sends.
    pub(super) ticks: Vec<Duration>,
    /// Length of the whole run.
    pub(super) span: Duration,
}

impl Run {
    /// Measures what is delivered in a run that begins at `begin`, from the end of the warm-up on.
    pub(super) fn meter(&self, begin: Instant) -> Meter {
        Meter::new(&self.flow, begin + WARM_UP..begin + self.span)
    }

    /// Times at which packets are sent in a run that begins at `begin`, with the packets.
    pub(super) fn groups(&self, begin: Instant) -> impl Iterator<Item = (Instant, Vec<Vec<u8>>)> {
        let mut sent = 0;
        self.ticks.iter().map(move |after| {
            let (now, from) = (begin + *after, sent);
            sent = self.scenario.due(*after);
            (now, (from..sent).map(|number| self.flow.packet(number, now)).collect())
        })
    }
}

impl Cell {
    pub(super) const fn new(scenario: Scenario, way: Way, quick: bool) -> Self {
        let (runs, span) = if quick { (1, SPAN_QUICK) } else { (5, SPAN) };
        Self { scenario, way, runs, span }
    }

    pub(super) fn id(&self) -> String {
        format!("{}/{}", self.scenario.id(), self.way.name())
    }
}

impl Repeated for Cell {
    type Sample = Sample;

    fn runs(&self) -> u32 {
        self.runs
    }

    fn cost(&self) -> u64 {
        u64::from(self.scenario.load) * 1_000 / self.scenario.payload as u64
    }

    fn run(&self, seed: u64, run: u32) -> Result<Sample, Error> {
        let Self { scenario, way, span, .. } = *self;
        // Alike for every treatment of headers.
        let seed = seed.wrapping_mul(1_000).wrapping_add(run.into());
        let run = Run {
            scenario,
            way,
            model: scenario.condition.model(),
            seed,
            flow: Flow::new(scenario.payload, seed),
            ticks: ticks(seed, WARM_UP + span),
            span: WARM_UP + span,
        };
        match scenario.carrier {
            Carrier::Link => direct::run(&run),
            Carrier::Udp | Carrier::Ule => tunnel::run(&run),
        }
    }
}
