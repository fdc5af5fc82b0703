//! What is run in virtual time: each job is a link of its own.

use std::time::Duration;

use thinair_rohc::{Mode, Refresh};
use thinair_simulation::ProtocolStack;
use thinair_simulation::broadcast::one_way::{self, Compression, Offered};
use thinair_simulation::broadcast::{Carrier, Filling, mesh};
use thinair_ule::Since;

use super::model::{BITRATE, PAYLOADS, Way};
use crate::paper::Error;

/// The paper's: 3 IR packets, then 50 in SO state, without any in FO state.
pub(super) const SCHEDULE: Refresh = Refresh::Cycle { ir: 3, so: 50, direct: true };

/// Way up to a geostationary satellite and down again.
pub(super) const DELAY: Duration = Duration::from_millis(250);

/// Thresholds in milliseconds. 3 ms is the paper's.
pub(super) const THRESHOLDS: [u64; 6] = [1, 2, 3, 5, 10, 20];
pub(super) const PAPER_THRESHOLD: u64 = 3;

/// Packets a second at which thresholds are compared, and their payload.
pub(super) const PACES: [u64; 5] = [100, 200, 400, 800, 1_600];
pub(super) const PACED_PAYLOAD: u32 = 40;

/// Offered load in kbit/s: up to the paper's most.
pub(super) const STEP: u64 = 100;
pub(super) const MOST: u64 = 3_500;

/// PDUs of an SNDU, where there is PDU-Concat.
pub(super) const CONCAT: u32 = 8;

/// Sites of a mesh.
pub(super) const SITES: [u8; 3] = [4, 8, 16];
/// What each of them sends.
pub(super) const SITE_PACE: u32 = 400;

/// Stacks besides the paper's.
pub(super) fn other_stacks() -> impl Iterator<Item = ProtocolStack> {
    ProtocolStack::ALL.into_iter().map(|(_, stack)| stack).filter(|stack| *stack != ProtocolStack::IPV6_UDP)
}

/// Payloads at which they are compared.
pub(super) const STACK_PAYLOADS: [u32; 6] = [40, 80, 160, 300, 512, 1_024];

/// Packets that wait in front of the compressor, at most, where packets are lost.
pub(super) const SHORT_QUEUE: usize = 10;
/// Where none is to be lost.
const LONG_QUEUE: usize = 1_000;

/// How PDUs get into TS packets, and how headers are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// The paper's: threshold of so many milliseconds from the last packet, U-mode.
    Threshold(u64),
    /// The same from the first packet.
    Bounded(u64),
    /// The same without any threshold: padding mode.
    Padding,
    /// The TS clock pulls.
    Pull,
    /// O-mode, threshold of the paper.
    Optimistic,
    /// PDU-Concat, threshold of the paper, U-mode.
    Concat,
    /// Both.
    OptimisticConcat,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// There is always another packet.
    Saturated { stack: ProtocolStack, payload: u32, way: Way, scheme: Scheme },
    /// So many kbit/s of payload are offered.
    Sweep { payload: u32, way: Way, kbps: u64 },
    /// So many compressed packets a second.
    Pace { scheme: Scheme, packets: u64 },
    /// Sites that send to each other.
    Mesh { sites: u8, topology: mesh::Topology, fails: bool },
}

/// What a run has found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    /// kbit/s of payload.
    pub(super) kbps: f64,
    /// Part of the packets offered.
    pub(super) loss: f64,
    /// TS packets a packet; of a mesh, TS packets a second.
    pub(super) ts_packets: Option<f64>,
    /// Milliseconds, the way to the satellite and back included.
    pub(super) mean_delay: Option<f64>,
    pub(super) p99_delay: Option<f64>,
    /// Packets delivered, in the window.
    pub(super) delivered: u64,
    /// Packets that did not come as they were sent.
    pub(super) wrong: u64,
    /// Part of what was to be expected after a failure.
    pub(super) after_failure: Option<f64>,
}

/// How long runs are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) saturated: Duration,
    pub(super) sweep: Duration,
    pub(super) pace: Duration,
    pub(super) mesh: Duration,
}

pub(super) const FULL: Scale = Scale {
    saturated: Duration::from_secs(20),
    sweep: Duration::from_secs(12),
    pace: Duration::from_secs(60),
    mesh: Duration::from_secs(10),
};

pub(super) const QUICK: Scale = Scale {
    saturated: Duration::from_secs(2),
    sweep: Duration::from_millis(300),
    pace: Duration::from_secs(4),
    mesh: Duration::from_millis(1_000),
};

/// All runs.
pub(super) fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut saturated = |stack, payload, way, scheme| {
        jobs.push(Job::Saturated { stack, payload, way, scheme });
    };
    for payload in PAYLOADS {
        for way in Way::BOTH {
            for scheme in [Scheme::Threshold(PAPER_THRESHOLD), Scheme::Padding, Scheme::Pull] {
                saturated(ProtocolStack::IPV6_UDP, payload, way, scheme);
            }
        }
        for scheme in [Scheme::Optimistic, Scheme::Concat, Scheme::OptimisticConcat] {
            saturated(ProtocolStack::IPV6_UDP, payload, Way::Cmp, scheme);
        }
    }
    for stack in other_stacks() {
        for payload in STACK_PAYLOADS {
            for way in Way::BOTH {
                saturated(stack, payload, way, Scheme::Threshold(PAPER_THRESHOLD));
            }
        }
    }
    for threshold in THRESHOLDS.into_iter().filter(|threshold| *threshold != PAPER_THRESHOLD) {
        saturated(ProtocolStack::IPV6_UDP, PACED_PAYLOAD, Way::Cmp, Scheme::Threshold(threshold));
    }
    for scheme in paced() {
        jobs.extend(PACES.map(|packets| Job::Pace { scheme, packets }));
    }
    for payload in PAYLOADS {
        for way in Way::BOTH {
            jobs.extend(rates().map(|kbps| Job::Sweep { payload, way, kbps }));
        }
    }
    for sites in SITES {
        for topology in [mesh::Topology::Mesh, mesh::Topology::Star] {
            jobs.extend([false, true].map(|fails| Job::Mesh { sites, topology, fails }));
        }
    }
    jobs
}

/// What is compared at every pace.
pub(super) fn paced() -> impl Iterator<Item = Scheme> {
    let thresholds = THRESHOLDS.into_iter().map(Scheme::Threshold);
    let bounded = THRESHOLDS.into_iter().map(Scheme::Bounded);
    [Scheme::Padding].into_iter().chain(thresholds).chain(bounded).chain([Scheme::Pull])
}

/// Offered loads in kbit/s.
pub(super) fn rates() -> impl Iterator<Item = u64> {
    (STEP..=MOST).step_by(STEP as usize)
}

impl Scheme {
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

    fn carrier(self) -> Carrier {
        Carrier { bitrate: BITRATE, delay: DELAY, filling: self.filling(), concat: self.concat() }
    }

    fn compression(self) -> Compression {
        let mode = if self.is_optimistic() { Mode::Optimistic } else { Mode::Unidirectional };
        Compression { refresh: SCHEDULE, mode }
    }
}

impl Job {
    /// Weighs it for the progress: about the packets of it.
    pub(super) fn cost(&self, scale: &Scale) -> u64 {
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

    /// Runs it.
    pub(super) fn run(&self, scale: &Scale, seed: u64) -> Result<Found, Error> {
        let one_way = |stack, payload: u32, compression, scheme: Scheme| one_way::Plan {
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
        let compression = |way, scheme: Scheme| (way == Way::Cmp).then(|| scheme.compression());
        let paper = Scheme::Threshold(PAPER_THRESHOLD);
        match *self {
            Self::Saturated { stack, payload, way, scheme } => {
                let mut plan = one_way(stack, payload, compression(way, scheme), scheme);
                if scheme.is_optimistic() {
                    // Feedback takes half a second, and changes of mode more than one way.
                    plan.warm_up = Duration::from_secs(3);
                }
                of_one_way(&plan)
            }
            Self::Sweep { payload, way, kbps } => of_one_way(&one_way::Plan {
                offered: Offered::Rate(kbps * 1_000),
                queue: SHORT_QUEUE,
                window: scale.sweep,
                ..one_way(ProtocolStack::IPV6_UDP, payload, compression(way, paper), paper)
            }),
            Self::Pace { scheme, packets } => of_one_way(&one_way::Plan {
                offered: Offered::Rate(packets * u64::from(PACED_PAYLOAD) * 8),
                window: scale.pace,
                ..one_way(ProtocolStack::IPV6_UDP, PACED_PAYLOAD, compression(Way::Cmp, scheme), scheme)
            }),
            Self::Mesh { sites, topology, fails } => of_mesh(&mesh::Plan {
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

fn of_one_way(plan: &one_way::Plan) -> Result<Found, Error> {
    let outcome = one_way::run(plan)?;
    Ok(Found {
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

fn of_mesh(plan: &mesh::Plan) -> Result<Found, Error> {
    let outcome = mesh::run(plan)?;
    let after =
        (outcome.expected_after > 0).then(|| outcome.delivered_after as f64 / outcome.expected_after as f64);
    Ok(Found {
        ts_packets: Some(outcome.ts_packets as f64 / plan.window.as_secs_f64()),
        mean_delay: outcome.delays.mean_ms(),
        p99_delay: outcome.delays.percentile_ms(99),
        delivered: outcome.delays.len() as u64,
        wrong: outcome.wrong,
        after_failure: after,
        ..Found::default()
    })
}
