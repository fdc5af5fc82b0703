//! Cells: carrier, condition of the link, offered load, and mode of operation.

use core::time::Duration;

use thinair_link::{
    Airtime, CoDelConfig, Direction, Discipline, Duplex, GilbertElliott, LinkModel, LossModel, MeanBurst,
    Probability, Queue, Rate,
};
use thinair_rohc::Mode;
use thinair_wire::time::Instant;

use super::flow::{GoodputSample, IperfFlow, Meter, ticks};
use super::{direct, tunnel};
use crate::form::Vars;
use crate::paper::PaperError;

/// Rate of the link, in bit/s.
pub(super) const RATE: u64 = 2_000_000;
/// Queue of the link in packets, unless a cell has another one.
const QUEUE: u32 = 100;
/// Size of the longest packet for CoDel, in octets.
const MTU: u32 = 1_500;

/// Time from the first packet to the beginning of the window that is measured.
const WARM_UP: Duration = Duration::from_millis(500);
/// Length of the window.
const SPAN: Duration = Duration::from_secs(10);
const SPAN_QUICK: Duration = Duration::from_secs(4);

/// Carrier of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkCarrier {
    /// ROHC on the link: `link run --rohc`.
    Link,
    /// A sealed tunnel over UDP.
    Udp,
    /// A sealed tunnel over ULE in UDP.
    Ule,
}

/// Impairments of the link, drops of the queue apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Condition {
    /// Queue of the link in packets; `None`: [`QUEUE`].
    pub(super) queue: Option<u32>,
    /// CoDel (RFC 8289), drop-tail otherwise.
    pub(super) codel: bool,
    /// Datagrams that are lost, in percent.
    pub(super) loss: u32,
    /// Mean length of loss bursts; `None`: independent losses.
    pub(super) burst: Option<u32>,
}

impl Condition {
    fn model(self) -> LinkModel<'static> {
        let mut queue = Queue::packets(self.queue.unwrap_or(QUEUE));
        if self.codel {
            queue.discipline = Discipline::CoDel(CoDelConfig::new(MTU));
        }
        let share = Probability::from_percent(self.loss).unwrap_or(Probability::NEVER);
        let loss = match self.burst {
            _ if self.loss == 0 => LossModel::None,
            None => LossModel::Random(share),
            Some(mean) => {
                let mean = MeanBurst::from_units(mean).unwrap_or(MeanBurst::ONE);
                GilbertElliott::bursts(share, mean).map_or(LossModel::None, LossModel::Bursts)
            }
        };
        let airtime = Rate::from_bps(RATE).map_or(Airtime::None, Airtime::Rate);
        // Feedback has its own direction without other traffic, with the losses of the packets.
        LinkModel::symmetric(Direction { airtime, queue, loss, ..Direction::IDEAL }, Duplex::Full)
    }
}

/// Compression of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderTreatment {
    /// Profile uncompressed, or no ROHC.
    Plain,
    /// Compressed, in this mode.
    Rohc(Mode),
}

impl HeaderTreatment {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Rohc(Mode::Unidirectional) => "u",
            Self::Rohc(Mode::Optimistic) => "o",
            Self::Rohc(Mode::Reliable) => "r",
        }
    }
}

/// Scenario without the compression of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkScenario {
    pub(super) carrier: LinkCarrier,
    pub(super) condition: Condition,
    /// Offered UDP payload, in tenths of the rate of the link.
    pub(super) load: u32,
    /// UDP payload of a packet, in octets.
    pub(super) payload: usize,
}

impl LinkScenario {
    /// Scenario of a cell, and its compression of headers.
    pub(super) fn read(cell: &Vars) -> Result<(Self, HeaderTreatment), PaperError> {
        let carrier = match cell.text("carrier")? {
            "udp" => LinkCarrier::Udp,
            "ule" => LinkCarrier::Ule,
            _ => LinkCarrier::Link,
        };
        let number = |name: &str| cell.has(name).then(|| cell.parse(name)).transpose();
        let condition = Condition {
            queue: number("condition.queue")?,
            codel: cell.has("condition.codel"),
            loss: number("condition.loss")?.unwrap_or(0),
            burst: number("condition.burst")?,
        };
        let way = match cell.text("way")? {
            "u" => HeaderTreatment::Rohc(Mode::Unidirectional),
            "o" => HeaderTreatment::Rohc(Mode::Optimistic),
            "r" => HeaderTreatment::Rohc(Mode::Reliable),
            _ => HeaderTreatment::Plain,
        };
        let (load, payload) = (cell.parse("load.tenths")?, cell.parse("payload")?);
        Ok((Self { carrier, condition, load, payload }, way))
    }

    /// Mbit/s of payload that are offered and not lost on the link.
    pub(super) fn arriving(&self) -> f64 {
        self.offered() * (1.0 - 0.01 * f64::from(self.condition.loss))
    }

    /// Mbit/s of UDP payload that are offered.
    pub(super) fn offered(&self) -> f64 {
        1e-7 * f64::from(self.load) * RATE as f64
    }

    /// Number of packets due by this time after the start.
    fn due(&self, after: Duration) -> u32 {
        let bits = u128::from(RATE) * u128::from(self.load) / 10 * after.as_nanos();
        (bits / (8 * self.payload as u128 * 1_000_000_000)) as u32
    }
}

/// One run of a cell, as input of the engines.
pub(super) struct LinkRun {
    pub(super) scenario: LinkScenario,
    pub(super) way: HeaderTreatment,
    pub(super) model: LinkModel<'static>,
    pub(super) seed: u64,
    pub(super) flow: IperfFlow,
    /// Times at which the sender sends, after the start.
    pub(super) ticks: Vec<Duration>,
    /// Length of the whole run.
    pub(super) span: Duration,
}

impl LinkRun {
    /// Meter for a run that starts at `begin`, which measures from the end of the warm-up.
    pub(super) fn meter(&self, begin: Instant) -> Meter {
        Meter::new(&self.flow, begin + WARM_UP..begin + self.span)
    }

    /// Times at which packets are sent in a run that starts at `begin`, with the packets.
    pub(super) fn groups(&self, begin: Instant) -> impl Iterator<Item = (Instant, Vec<Vec<u8>>)> {
        let mut sent = 0;
        self.ticks.iter().map(move |after| {
            let (now, from) = (begin + *after, sent);
            sent = self.scenario.due(*after);
            (now, (from..sent).map(|number| self.flow.packet(number, now)).collect())
        })
    }
}

/// Runs a scenario once.
pub(super) fn run(
    scenario: LinkScenario,
    way: HeaderTreatment,
    is_quick: bool,
    (seed, run): (u64, u32),
) -> Result<GoodputSample, PaperError> {
    // Equal for every compression.
    let seed = seed.wrapping_mul(1_000).wrapping_add(run.into());
    let span = WARM_UP + if is_quick { SPAN_QUICK } else { SPAN };
    let run = LinkRun {
        scenario,
        way,
        model: scenario.condition.model(),
        seed,
        flow: IperfFlow::new(scenario.payload, seed),
        ticks: ticks(seed, span),
        span,
    };
    match scenario.carrier {
        LinkCarrier::Link => direct::run(&run),
        LinkCarrier::Udp | LinkCarrier::Ule => tunnel::run(&run),
    }
}
