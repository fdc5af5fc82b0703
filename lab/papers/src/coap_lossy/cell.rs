//! Runs: one client on a link with bit errors, many times.

use core::time::Duration;

use thinair_coap::congestion::Algorithm;
use thinair_coap::{Config, Request, Timing};
use thinair_link::energy::{CC2538, CORTEX_M3, Usage};
use thinair_link::{
    BitErrorModel, Direction, Duplex, GilbertElliott, Integrity, LinkModel, LossModel, LossUnit, MeanBurst,
    Probability,
};
use thinair_rohc::{Format, Mode, ProfileId, ProfileSet, Refresh};
use thinair_simulation::emulator::DirectionTotals;
use thinair_simulation::network::{MessageTransport, RequestPace, Requests, Scenario, ScenarioOutcome};
use thinair_wire::time::Instant;

use crate::compressed::channel;
use crate::form::Vars;
use crate::pair::PairCodec;
use crate::paper::PaperError;

/// One-way delay: the minimum in tables V and VI is 7 and 8 ms for both directions.
const DELAY: Duration = Duration::from_millis(4);

/// Octets of the content: a response of 52 octets, as the paper's with its Max-Age.
const CONTENT: usize = 17;

/// Mean length of a burst, in bits.
const BURST: u32 = 10;

/// Profiles of a channel.
fn profiles(name: &str) -> Result<ProfileSet, PaperError> {
    Ok(match name {
        "coap" => ProfileSet::v1().with(ProfileId::Coap)?,
        thinair_coap_2015::NAME => ProfileSet::v1(),
        "udp" => ProfileSet::of(&[ProfileId::Udp])?,
        "ip" => ProfileSet::of(&[ProfileId::Ip])?,
        _ => ProfileSet::UNCOMPRESSED,
    })
}

/// Our defaults; or O-mode without refreshes, and U-mode with those of rohc-lib, in packets alone or by a clock as
/// well, which continues while a client backs off.
fn mode(way: &str) -> (Mode, Refresh) {
    let refresh = match way {
        "default-bi" => return (Mode::Optimistic, Refresh::default()),
        "default-uni" => Refresh::default(),
        "bi" => return (Mode::Optimistic, Refresh::Off),
        "uni" => Refresh::Periodic { packets: Some(1_700), time: None, backoff: false },
        _ => Refresh::Periodic { packets: Some(1_024), time: Some(Duration::from_secs(16)), backoff: true },
    };
    (Mode::Unidirectional, refresh)
}

/// Link with an integrity check that detects all damage, as the paper's tunnel drops damaged packets.
fn model(errors: &str, ppm: u32) -> LinkModel<'static> {
    let probability = Probability::from_ppm(ppm).unwrap_or_default();
    let mut direction = Direction { delay: DELAY, loss_unit: LossUnit::Packet, ..Direction::IDEAL };
    direction.integrity = Integrity::Modelled { width: 64 };
    match errors {
        "iid" => direction.bit_errors = BitErrorModel::Random(probability),
        "gilbert" => {
            let burst = MeanBurst::from_units(BURST).unwrap_or(MeanBurst::ONE);
            if let Ok(chain) = GilbertElliott::bursts(probability, burst) {
                direction.bit_errors = BitErrorModel::Bursts(chain);
            }
        }
        _ => direction.loss = LossModel::RohcTunnel16 { octets: 1_000_000 / (8 * ppm) },
    }
    LinkModel::symmetric(direction, Duplex::Full)
}

/// Runs a cell, starting without contexts.
pub(super) fn run(cell: &Vars, exchanges: usize, seed: u64, run: u32) -> Result<LossySample, PaperError> {
    let way = cell.text("way")?;
    let is_default = way.starts_with("default");
    let (mode, refresh) = mode(way);
    let profile = cell.text("profile")?;
    let mut channel = channel(profiles(profile)?, 1, mode, refresh, seed.wrapping_add(u64::from(run)))?;
    if profile == thinair_coap_2015::NAME {
        channel.ends = Some(|out, back, blocks| Box::new(PairCodec::coap_2015(out, back, blocks)));
    }
    let scenario = Scenario {
        model: model(cell.text("errors")?, cell.parse("rate.ppm")?),
        rohc: Some(channel),
        clients: 1,
        transport: MessageTransport::Udp { protection: 0 },
        // ACK_TIMEOUT 2 s, ACK_RANDOM_FACTOR 1.5, MAX_RETRANSMIT 4, NSTART 1.
        config: Config {
            timing: Timing { congestion: Algorithm::Rfc7252, ..Timing::default() },
            ..Config::default()
        },
        requests: Requests {
            request: Request::get("/time"),
            count: exchanges,
            start: Instant::ZERO,
            pace: RequestPace::Closed { think: Duration::ZERO },
        },
        spread: Duration::ZERO,
        content: CONTENT,
        stepping: is_default,
        download: None,
        download_octets: None,
        warm_up: 0,
        pause: None,
        end: Instant::from_millis(1_000_000_000),
    };
    Ok(LossySample::new(&scenario.run(seed, run)))
}

/// Sums over runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LossySample {
    pub(super) exchanges: f64,
    pub(super) answered: f64,
    pub(super) given_up: f64,
    /// Total time of answered exchanges, in seconds.
    took: f64,
    /// Shortest and longest time, in seconds.
    pub(super) extremes: Option<(f64, f64)>,
    retransmissions: f64,
    /// Number of IP packets, both directions.
    packets: f64,
    /// Octets carried, both directions.
    octets: f64,
    /// Octets of feedback, which `octets` includes.
    feedback: f64,
    /// Number of IR and IR-DYN packets.
    refreshes: f64,
    /// Packets that arrived and could not be decompressed.
    not_decompressed: f64,
    /// Energy of the client's radio, in joules.
    energy: f64,
}

impl LossySample {
    fn new(outcome: &ScenarioOutcome) -> Self {
        let mut sample = Self::default();
        for client in &outcome.clients {
            sample.exchanges += client.exchanges.len() as f64;
            sample.given_up += client.exchanges.iter().filter(|one| one.error.is_some()).count() as f64;
            sample.retransmissions += client.retransmissions as f64;
            for took in client.took().map(|took| took.as_secs_f64()) {
                sample.answered += 1.0;
                sample.took += took;
                let (min, max) = sample.extremes.unwrap_or((took, took));
                sample.extremes = Some((min.min(took), max.max(took)));
            }
        }
        for totals in &outcome.totals {
            let refreshes = [Format::Ir, Format::IrDyn].map(|format| totals.formats.get(&format).copied());
            sample.refreshes += refreshes.into_iter().flatten().sum::<u64>() as f64;
            sample.packets += totals.packets as f64;
            sample.octets += totals.carried_octets as f64;
            sample.feedback += totals.feedback.octets as f64;
            sample.not_decompressed += totals.not_decompressed() as f64;
        }
        sample.energy = energy(&outcome.totals);
        sample
    }

    pub(super) fn and(self, other: Self) -> Self {
        let extremes = match (self.extremes, other.extremes) {
            (Some((min, max)), Some((less, more))) => Some((min.min(less), max.max(more))),
            (one, other) => one.or(other),
        };
        Self {
            exchanges: self.exchanges + other.exchanges,
            answered: self.answered + other.answered,
            given_up: self.given_up + other.given_up,
            took: self.took + other.took,
            extremes,
            retransmissions: self.retransmissions + other.retransmissions,
            packets: self.packets + other.packets,
            octets: self.octets + other.octets,
            feedback: self.feedback + other.feedback,
            refreshes: self.refreshes + other.refreshes,
            not_decompressed: self.not_decompressed + other.not_decompressed,
            energy: self.energy + other.energy,
        }
    }

    /// True if there are enough exchanges to hold their figures to a bar.
    pub(super) fn is_significant(&self) -> bool {
        self.exchanges >= 50_000.0
    }

    /// Mean time of an answered exchange, in seconds.
    pub(super) fn rtt(&self) -> Option<f64> {
        self.an_answer(self.took)
    }

    /// Share of exchanges that were given up, in percent.
    pub(super) fn give_ups(&self) -> Option<f64> {
        (self.exchanges > 0.0).then(|| 100.0 * self.given_up / self.exchanges)
    }

    /// Octets per answered exchange, including all lost packets.
    pub(super) fn octets(&self) -> Option<f64> {
        self.an_answer(self.octets)
    }

    /// Octets of feedback per answered exchange.
    pub(super) fn feedback(&self) -> Option<f64> {
        self.an_answer(self.feedback)
    }

    /// Millijoules of the client's radio per answered exchange.
    pub(super) fn energy(&self) -> Option<f64> {
        self.an_answer(1e3 * self.energy)
    }

    /// Retransmissions per request.
    pub(super) fn retransmissions(&self) -> Option<f64> {
        (self.exchanges > 0.0).then(|| self.retransmissions / self.exchanges)
    }

    /// Share of IR and IR-DYN packets, in percent.
    pub(super) fn refreshes(&self) -> Option<f64> {
        (self.packets > 0.0).then(|| 100.0 * self.refreshes / self.packets)
    }

    /// Share of packets that arrived and could not be decompressed, in percent.
    pub(super) fn not_decompressed(&self) -> Option<f64> {
        (self.packets > 0.0).then(|| 100.0 * self.not_decompressed / self.packets)
    }

    fn an_answer(&self, sum: f64) -> Option<f64> {
        (self.answered > 0.0).then(|| sum / self.answered)
    }
}

/// Energy of the client's CC2538 for airtime, in joules. Damaged frames are received, too. As no packet is fragmented,
/// airtime is linear in octets.
fn energy([up, down]: &[DirectionTotals; 2]) -> f64 {
    let one = |count: fn(&mut Usage, usize), len| {
        let mut usage = Usage::default();
        count(&mut usage, len);
        CC2538.spends(&usage, &CORTEX_M3, 0).airtime().as_joules()
    };
    let sum = |totals: &DirectionTotals, count: fn(&mut Usage, usize)| {
        /// Octets between the two points that define the line, many so that rounding does not matter.
        const SPAN: usize = 50;
        let [least, more] = [1, 1 + SPAN].map(|len| one(count, len));
        let slope = (more - least) / SPAN as f64;
        totals.link.offered as f64 * (least - slope) + totals.link.offered_octets as f64 * slope
    };
    sum(up, |usage, len| CC2538.sends(usage, len)) + sum(down, |usage, len| CC2538.receives(usage, len))
}
