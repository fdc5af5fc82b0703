//! Runs in virtual time: each job has its own link.

use std::time::Duration;

use thinair_rohc::{Mode, Refresh};
use thinair_simulation::ProtocolStack;
use thinair_simulation::broadcast::one_way::{self, HeaderCompression, Offered};
use thinair_simulation::broadcast::{Filling, StreamCarrier, mesh};
use thinair_ule::Since;

use super::model::{BITRATE, HeaderForm, PAYLOADS};
use crate::paper::PaperError;

/// Schedule of the paper: 3 IR packets, then 50 in SO state, without any in FO state.
pub(super) const SCHEDULE: Refresh = Refresh::Cycle { ir: 3, so: 50, direct: true };

/// Delay to a geostationary satellite and back.
pub(super) const DELAY: Duration = Duration::from_millis(250);

/// Thresholds in milliseconds. The paper uses 3 ms.
pub(super) const THRESHOLDS: [u64; 6] = [1, 2, 3, 5, 10, 20];
pub(super) const PAPER_THRESHOLD: u64 = 3;

/// Rates at which thresholds are compared, in packets per second, and their payload.
pub(super) const PACES: [u64; 5] = [100, 200, 400, 800, 1_600];
pub(super) const PACED_PAYLOAD: u32 = 40;

/// Step of the offered load in kbit/s, up to the paper's maximum.
pub(super) const STEP: u64 = 100;
pub(super) const MOST: u64 = 3_500;

/// PDUs per SNDU, with PDU-Concat.
pub(super) const CONCAT: u32 = 8;

/// Numbers of sites in a mesh.
pub(super) const SITES: [u8; 3] = [4, 8, 16];
/// Packets per second that each site sends.
pub(super) const SITE_PACE: u32 = 400;

/// Stacks besides the paper's.
pub(super) fn other_stacks() -> impl Iterator<Item = ProtocolStack> {
    ProtocolStack::ALL.into_iter().map(|(_, stack)| stack).filter(|stack| *stack != ProtocolStack::IPV6_UDP)
}

/// Payloads at which stacks are compared.
pub(super) const STACK_PAYLOADS: [u32; 6] = [40, 80, 160, 300, 512, 1_024];

/// Queue before the compressor in packets, where packets are lost.
pub(super) const SHORT_QUEUE: usize = 10;
/// Queue before the compressor in packets, where none may be lost.
const LONG_QUEUE: usize = 1_000;

/// Packing of PDUs into TS packets, and mode of header compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackingScheme {
    /// The paper's: threshold of this many milliseconds since the last packet, U-mode.
    Threshold(u64),
    /// Threshold since the first packet, U-mode.
    Bounded(u64),
    /// No threshold: padding mode, U-mode.
    Padding,
    /// The TS clock pulls packets.
    Pull,
    /// O-mode, with the paper's threshold.
    Optimistic,
    /// PDU-Concat, with the paper's threshold, U-mode.
    Concat,
    /// O-mode and PDU-Concat.
    OptimisticConcat,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimulationJob {
    /// There is always another packet.
    Saturated { stack: ProtocolStack, payload: u32, way: HeaderForm, scheme: PackingScheme },
    /// Offered payload of this many kbit/s.
    Sweep { payload: u32, way: HeaderForm, kbps: u64 },
    /// This many compressed packets per second.
    Pace { scheme: PackingScheme, packets: u64 },
    /// Sites that send to each other.
    Mesh { sites: u8, topology: mesh::Topology, fails: bool },
}

/// Results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RunFigures {
    /// Throughput of payload, in kbit/s.
    pub(super) kbps: f64,
    /// Lost share of the offered packets.
    pub(super) loss: f64,
    /// TS packets per packet; of a mesh, TS packets per second.
    pub(super) ts_packets: Option<f64>,
    /// Delay in milliseconds, including the delay of the satellite.
    pub(super) mean_delay: Option<f64>,
    pub(super) p99_delay: Option<f64>,
    /// Packets delivered in the window.
    pub(super) delivered: u64,
    /// Packets that were not restored exactly.
    pub(super) wrong: u64,
    /// Delivered share of the packets expected after a failure.
    pub(super) after_failure: Option<f64>,
}

/// Duration of runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunDurations {
    pub(super) saturated: Duration,
    pub(super) sweep: Duration,
    pub(super) pace: Duration,
    pub(super) mesh: Duration,
}

pub(super) const FULL: RunDurations = RunDurations {
    saturated: Duration::from_secs(20),
    sweep: Duration::from_secs(12),
    pace: Duration::from_secs(60),
    mesh: Duration::from_secs(10),
};

pub(super) const QUICK: RunDurations = RunDurations {
    saturated: Duration::from_secs(2),
    sweep: Duration::from_millis(300),
    pace: Duration::from_secs(4),
    mesh: Duration::from_millis(1_000),
};

/// All runs.
pub(super) fn jobs() -> Vec<SimulationJob> {
    let mut jobs = Vec::new();
    let mut saturated = |stack, payload, way, scheme| {
        jobs.push(SimulationJob::Saturated { stack, payload, way, scheme });
    };
    for payload in PAYLOADS {
        for way in HeaderForm::BOTH {
            for scheme in
                [PackingScheme::Threshold(PAPER_THRESHOLD), PackingScheme::Padding, PackingScheme::Pull]
            {
                saturated(ProtocolStack::IPV6_UDP, payload, way, scheme);
            }
        }
        for scheme in [PackingScheme::Optimistic, PackingScheme::Concat, PackingScheme::OptimisticConcat] {
            saturated(ProtocolStack::IPV6_UDP, payload, HeaderForm::Cmp, scheme);
        }
    }
    for stack in other_stacks() {
        for payload in STACK_PAYLOADS {
            for way in HeaderForm::BOTH {
                saturated(stack, payload, way, PackingScheme::Threshold(PAPER_THRESHOLD));
            }
        }
    }
    for threshold in THRESHOLDS.into_iter().filter(|threshold| *threshold != PAPER_THRESHOLD) {
        saturated(
            ProtocolStack::IPV6_UDP,
            PACED_PAYLOAD,
            HeaderForm::Cmp,
            PackingScheme::Threshold(threshold),
        );
    }
    for scheme in paced() {
        jobs.extend(PACES.map(|packets| SimulationJob::Pace { scheme, packets }));
    }
    for payload in PAYLOADS {
        for way in HeaderForm::BOTH {
            jobs.extend(rates().map(|kbps| SimulationJob::Sweep { payload, way, kbps }));
        }
    }
    for sites in SITES {
        for topology in [mesh::Topology::Mesh, mesh::Topology::Star] {
            jobs.extend([false, true].map(|fails| SimulationJob::Mesh { sites, topology, fails }));
        }
    }
    jobs
}

/// Schemes that are compared at every rate.
pub(super) fn paced() -> impl Iterator<Item = PackingScheme> {
    let thresholds = THRESHOLDS.into_iter().map(PackingScheme::Threshold);
    let bounded = THRESHOLDS.into_iter().map(PackingScheme::Bounded);
    [PackingScheme::Padding].into_iter().chain(thresholds).chain(bounded).chain([PackingScheme::Pull])
}

/// Offered loads in kbit/s.
pub(super) fn rates() -> impl Iterator<Item = u64> {
    (STEP..=MOST).step_by(STEP as usize)
}

impl PackingScheme {
    fn filling(self) -> Filling {
        let push = |wait, since| Filling::Push { wait: Duration::from_millis(wait), since };
        match self {
            Self::Padding => push(0, Since::Last),
            Self::Threshold(threshold) => push(threshold, Since::Last),
            Self::Bounded(threshold) => push(threshold, Since::First),
            Self::Pull => Filling::Pull,
            Self::Optimistic | Self::Concat | Self::OptimisticConcat => push(PAPER_THRESHOLD, Since::Last),
        }
    }

    fn concat(self) -> usize {
        match self {
            Self::Concat | Self::OptimisticConcat => CONCAT as usize,
            Self::Threshold(_) | Self::Bounded(_) | Self::Padding | Self::Pull | Self::Optimistic => 1,
        }
    }

    fn is_optimistic(self) -> bool {
        matches!(self, Self::Optimistic | Self::OptimisticConcat)
    }

    fn carrier(self) -> StreamCarrier {
        StreamCarrier { bitrate: BITRATE, delay: DELAY, filling: self.filling(), concat: self.concat() }
    }

    fn compression(self) -> HeaderCompression {
        let mode = if self.is_optimistic() { Mode::Optimistic } else { Mode::Unidirectional };
        HeaderCompression { refresh: SCHEDULE, mode }
    }
}

impl SimulationJob {
    /// Weight for the progress: approximate number of packets.
    pub(super) fn cost(&self, scale: &RunDurations) -> u64 {
        let packets = |kbps: u64, payload: u32| kbps * 125 / u64::from(payload);
        match *self {
            Self::Saturated { payload, .. } => packets(3_000, payload + 8) * scale.saturated.as_secs(),
            Self::Sweep { payload, kbps, .. } => {
                packets(kbps, payload) * scale.sweep.as_millis() as u64 / 1_000
            }
            Self::Pace { packets, .. } => packets * scale.pace.as_secs(),
            Self::Mesh { sites, .. } => {
                u64::from(sites) * u64::from(sites) * u64::from(SITE_PACE) * scale.mesh.as_millis() as u64
                    / 1_000
            }
        }
    }

    /// Performs the run.
    pub(super) fn run(&self, scale: &RunDurations, seed: u64) -> Result<RunFigures, PaperError> {
        let one_way = |stack, payload: u32, compression, scheme: PackingScheme| one_way::OneWayPlan {
            carrier: scheme.carrier(),
            stack,
            payload: payload as usize,
            compression,
            offered: Offered::Saturating,
            queue: LONG_QUEUE,
            warm_up: Duration::from_millis(300),
            window: scale.saturated,
            seed,
        };
        let compression = |way, scheme: PackingScheme| (way == HeaderForm::Cmp).then(|| scheme.compression());
        let paper = PackingScheme::Threshold(PAPER_THRESHOLD);
        match *self {
            Self::Saturated { stack, payload, way, scheme } => {
                let mut plan = one_way(stack, payload, compression(way, scheme), scheme);
                if scheme.is_optimistic() {
                    // Feedback takes half a second, and mode transitions take several one-way delays.
                    plan.warm_up = Duration::from_secs(3);
                }
                of_one_way(&plan)
            }
            Self::Sweep { payload, way, kbps } => of_one_way(&one_way::OneWayPlan {
                offered: Offered::Rate(kbps * 1_000),
                queue: SHORT_QUEUE,
                window: scale.sweep,
                ..one_way(ProtocolStack::IPV6_UDP, payload, compression(way, paper), paper)
            }),
            Self::Pace { scheme, packets } => of_one_way(&one_way::OneWayPlan {
                offered: Offered::Rate(packets * u64::from(PACED_PAYLOAD) * 8),
                window: scale.pace,
                ..one_way(
                    ProtocolStack::IPV6_UDP,
                    PACED_PAYLOAD,
                    compression(HeaderForm::Cmp, scheme),
                    scheme,
                )
            }),
            Self::Mesh { sites, topology, fails } => of_mesh(&mesh::MeshPlan {
                topology,
                sites,
                carrier: paper.carrier(),
                stack: ProtocolStack::IPV6_UDP,
                payload: PACED_PAYLOAD as usize,
                packets_per_second: SITE_PACE,
                refresh: Some(SCHEDULE),
                warm_up: Duration::from_millis(700),
                window: scale.mesh,
                failure: fails.then_some(Duration::from_millis(800)),
                seed,
            }),
        }
    }
}

fn of_one_way(plan: &one_way::OneWayPlan) -> Result<RunFigures, PaperError> {
    let outcome = one_way::run(plan)?;
    Ok(RunFigures {
        kbps: outcome.throughput() / 1e3,
        loss: outcome.loss(),
        ts_packets: outcome.ts_packets_each(),
        mean_delay: outcome.delays.mean_ms(),
        p99_delay: outcome.delays.percentile_ms(99),
        delivered: outcome.delivered,
        wrong: outcome.wrong,
        after_failure: None,
    })
}

fn of_mesh(plan: &mesh::MeshPlan) -> Result<RunFigures, PaperError> {
    let outcome = mesh::run(plan)?;
    let after =
        (outcome.expected_after > 0).then(|| outcome.delivered_after as f64 / outcome.expected_after as f64);
    Ok(RunFigures {
        ts_packets: Some(outcome.ts_packets as f64 / plan.window.as_secs_f64()),
        mean_delay: outcome.delays.mean_ms(),
        p99_delay: outcome.delays.percentile_ms(99),
        delivered: outcome.delays.len() as u64,
        wrong: outcome.wrong,
        after_failure: after,
        ..RunFigures::default()
    })
}
