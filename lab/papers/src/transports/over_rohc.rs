//! ROHC below every service, in virtual time: consecutive exchanges over a link whose contexts persist; without
//! impairments, with bit errors, bursts and fewer acknowledgments, and crowds with repeated exchanges.

use std::time::Duration;

use thinair_link::Queue;
use thinair_rohc::{Mode, ProfileId, ProfileSet, Refresh};
use thinair_simulation::emulator::{RohcChannel, with_mtu};
use thinair_simulation::network::fetch::{Fetch, FetchService, LinkLoad, Rounds, TcpInteraction, TcpOptions};

use super::cell::TransportLink;
use super::virtual_time::{CROWDS, Harm, QUEUES, SERVICES, SPREAD, both, fetch, name, put_times};
use crate::compressed::channel;
use crate::form::{Figures, PaperRun};
use crate::paper::PaperError;
use crate::sweep::sweep;

/// Exchanges that are not counted, during which contexts are established, as in real time.
const BEFORE: usize = 19;

/// Rounds of crowds that are not counted.
const ROUNDS_BEFORE: usize = 4;

/// Time from the end of an exchange to the next one.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// Sizes of the objects, in octets.
const SIZES: [usize; 2] = [10, 1_000];

const HARMS: [Harm; 5] =
    [Harm::Bits(1e-5), Harm::Bits(1e-4), Harm::Bits(3e-4), Harm::Bits(1e-3), Harm::Bursts(0.1)];

/// Compression below IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    Plain,
    /// ROHC in U-mode with default settings.
    Unidirectional,
    /// ROHC in O-mode.
    Optimistic,
}

impl Below {
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::Unidirectional, Self::Optimistic];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Unidirectional => "u",
            Self::Optimistic => "o",
        }
    }

    /// Channel for this many clients: each has a flow, another one while a new connection replaces an old one, and the
    /// pattern of its connections.
    pub(super) fn channel(self, clients: u16, seed: u64) -> Result<Option<RohcChannel>, PaperError> {
        let mode = match self {
            Self::Plain => return Ok(None),
            Self::Unidirectional => Mode::Unidirectional,
            Self::Optimistic => Mode::Optimistic,
        };
        let profiles = ProfileSet::v1().with(ProfileId::Tcp)?.with(ProfileId::Coap)?;
        channel(profiles, 3 * clients, mode, Refresh::default(), seed).map(Some)
    }
}

/// Conditions of exchanges.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ExchangeCase {
    /// No losses, and TCP as in kernels.
    Clean,
    /// No losses, with fewer acknowledgments.
    Thinned,
    /// No losses, with the fewest packets that RFC 7413 allows.
    Best,
    Harmed(Harm),
    Crowd {
        queue: u32,
        clients: u16,
    },
}

impl ExchangeCase {
    /// Cases with one client.
    fn alone() -> impl Iterator<Item = Self> {
        [Self::Clean, Self::Thinned, Self::Best].into_iter().chain(HARMS.map(Self::Harmed))
    }

    /// Cases with many clients.
    fn crowds() -> impl Iterator<Item = Self> {
        QUEUES.into_iter().flat_map(|queue| CROWDS.map(|clients| Self::Crowd { queue, clients }))
    }

    fn name(self) -> String {
        match self {
            Self::Clean => "clean".to_owned(),
            Self::Thinned => "thin".to_owned(),
            Self::Best => "best".to_owned(),
            Self::Harmed(harm) => harm.name(),
            Self::Crowd { queue, clients } => format!("crowd-{clients}-{queue}"),
        }
    }

    /// True if it differs from [`ExchangeCase::Clean`] for this service: CoAP has no acknowledgments to thin, and no SYN.
    fn is_of(self, service: FetchService) -> bool {
        !matches!((self, service), (Self::Thinned | Self::Best, FetchService::Coap))
    }

    /// Exchange, and number of clients that perform it.
    fn fetch(self, service: FetchService, size: usize) -> (Fetch, u16) {
        let plain = fetch(service, TransportLink::Slow, size);
        // Packets that compression makes longer than the MTU take two frames, as over `thinair link run --mtu 128`.
        let plain = Fetch { model: with_mtu(&plain.model, plain.mtu), ..plain };
        match self {
            Self::Clean => (plain, 1),
            Self::Thinned => (Fetch { thins: true, ..plain }, 1),
            Self::Best => {
                (Fetch { options: TcpOptions::LEAN, holds: true, stack: TcpInteraction::Best, ..plain }, 1)
            }
            Self::Harmed(harm) => (Fetch { model: harm.on(&plain.model), ..plain }, 1),
            Self::Crowd { queue, clients } => {
                let model = both(&plain.model, |direction| direction.queue = Queue::packets(queue));
                (Fetch { model, ..plain }, clients)
            }
        }
    }
}

/// Amount of measurement.
#[derive(Clone, Copy, Debug)]
struct RohcScale {
    /// Number of links with consecutive exchanges, and exchanges of each that count.
    links: u64,
    exchanges: usize,
    /// Rounds of a crowd that count.
    rounds: usize,
}

const QUICK: RohcScale = RohcScale { links: 1, exchanges: 20, rounds: 1 };
const USUAL: RohcScale = RohcScale { links: 20, exchanges: 40, rounds: 8 };

/// Results of exchanges with established contexts.
#[derive(Default)]
struct Came {
    /// Octets on the link of the first exchange, or round.
    first: Option<u64>,
    /// Number of requested objects.
    asked: usize,
    /// Milliseconds of each delivered object.
    times: Vec<f64>,
    carried: LinkLoad,
}

/// Measures everything. Equal seeds give equal figures, on any machine.
pub(super) fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let plan = run.plan;
    let scale = if plan.quick { QUICK } else { USUAL };
    let mut jobs = Vec::new();
    for (service, size) in SERVICES.into_iter().flat_map(|service| SIZES.map(|size| (service, size))) {
        let cases = ExchangeCase::alone().chain(ExchangeCase::crowds()).filter(|case| case.is_of(service));
        jobs.extend(cases.flat_map(|case| Below::ALL.map(|below| (service, size, below, case))));
    }
    let cost = |&(_, size, _, case): &(FetchService, usize, Below, ExchangeCase)| {
        let exchanges = match case {
            ExchangeCase::Crowd { clients, .. } => usize::from(clients) * (ROUNDS_BEFORE + scale.rounds),
            _ => scale.links as usize * (BEFORE + scale.exchanges),
        };
        (exchanges * (5 + size / 50)) as u64
    };
    let came = sweep(&jobs, plan.threads, run.progress, cost, |&(service, size, below, case)| {
        let (fetch, clients) = case.fetch(service, size);
        let (links, before, counted, spread) = match case {
            ExchangeCase::Crowd { .. } => (1, ROUNDS_BEFORE, scale.rounds, SPREAD),
            _ => (scale.links, BEFORE, scale.exchanges, Duration::ZERO),
        };
        let rounds = Rounds { clients, rounds: before + counted, spread, pause: PAUSE };
        let mut came = Came::default();
        for link in 0..links {
            let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(link);
            let fetch = Fetch { rohc: below.channel(clients, seed)?, ..fetch.clone() };
            let rounds = fetch.rounds(&rounds, seed);
            came.first = came.first.or(rounds.first().map(|round| round.carried.octets));
            for round in rounds.iter().skip(before) {
                came.asked += round.took.len();
                came.times.extend(round.took.iter().flatten().map(|took| took.as_secs_f64() * 1e3));
                came.carried = came.carried + round.carried;
            }
        }
        Ok(came)
    })?;
    let mut sums = [(Below::Unidirectional, LinkLoad::default()), (Below::Optimistic, LinkLoad::default())];
    for ((service, size, below, case), came) in jobs.into_iter().zip(&came) {
        let id = format!("virtual/{}/20k/128/{size}/rohc/{}/{}", name(service), below.name(), case.name());
        put_times(figures, &id, &came.times, came.asked);
        // Octets on the link per delivered object, including all losses.
        let octets = (!came.times.is_empty()).then(|| came.carried.octets as f64 / came.times.len() as f64);
        figures.put(format!("{id}/octets"), octets);
        if below != Below::Plain {
            let lost = came.carried.not_decompressed as f64 / came.carried.packets.max(1) as f64 * 100.0;
            figures.put(format!("{id}/not-decompressed"), lost);
            if let Some(first) = came.first.filter(|_| case == ExchangeCase::Clean) {
                figures.put(format!("{id}/first"), first as f64);
            }
        }
        for (_, sum) in sums.iter_mut().filter(|(of, _)| *of == below) {
            *sum = *sum + came.carried;
        }
    }
    // Each delivered packet was compared, bit for bit, with the sent one.
    for (below, sum) in sums {
        figures.put(format!("virtual/rohc/{}/compared", below.name()), sum.delivered as f64);
        figures.put(format!("virtual/rohc/{}/altered", below.name()), sum.altered as f64);
    }
    Ok(())
}
