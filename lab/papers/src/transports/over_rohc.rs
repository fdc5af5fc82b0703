//! ROHC under every service, in virtual time: exchanges one after the other over a link whose ends remember what they have
//! compressed; without harm, with bit errors, bursts and fewer acknowledgments, and crowds that come again and again.

use std::time::Duration;

use thinair_lab::emulator::{RohcChannel, with_mtu};
use thinair_lab::network::fetch::{Carried, Fetch, Round, Rounds, Service, Stack, TcpOptions};
use thinair_link::Queue;
use thinair_rohc::{Mode, ProfileId, ProfileSet, Refresh};

use super::Range;
use super::cell::Link;
use super::virtual_time::{CROWDS, Harm, QUEUES, SERVICES, SPREAD, both, fetch, name, what};
use crate::compressed::channel;
use crate::paper::{Error, Plan, Progress};
use crate::row::Row;
use crate::sweep::sweep;

/// Exchanges that are not counted, as contexts are made meanwhile: as in real time.
const BEFORE: usize = 19;

/// Rounds of crowds that are not counted.
const ROUNDS_BEFORE: usize = 4;

/// From the end of an exchange to the next one.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// Octets of the objects.
pub(super) const SIZES: [usize; 2] = [10, 1_000];

pub(super) const HARMS: [Harm; 5] =
    [Harm::Bits(1e-5), Harm::Bits(1e-4), Harm::Bits(3e-4), Harm::Bits(1e-3), Harm::Bursts(0.1)];

/// What is below IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    Plain,
    /// ROHC in U-mode, as it is set without saying anything.
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

    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::Plain => "without ROHC",
            Self::Unidirectional => "ROHC in U-mode",
            Self::Optimistic => "ROHC in O-mode",
        }
    }

    /// For so many clients: each has a flow, another one while a new connection takes the place of an old one, and the pattern
    /// of its connections.
    pub(super) fn channel(self, clients: u16, seed: u64) -> Result<Option<RohcChannel>, Error> {
        let mode = match self {
            Self::Plain => return Ok(None),
            Self::Unidirectional => Mode::Unidirectional,
            Self::Optimistic => Mode::Optimistic,
        };
        let profiles = ProfileSet::v1().with(ProfileId::Tcp)?.with(ProfileId::Coap)?;
        channel(profiles, 3 * clients, mode, Refresh::default(), seed).map(Some)
    }
}

/// What happens to exchanges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Case {
    /// Nothing is lost, and TCP is as in kernels.
    Clean,
    /// The same, with fewer acknowledgments.
    Thinned,
    /// The same, as RFC 7413 allows at best.
    Best,
    Harmed(Harm),
    Crowd {
        queue: u32,
        clients: u16,
    },
}

impl Case {
    /// Those of one client.
    pub(super) fn alone() -> impl Iterator<Item = Self> {
        [Self::Clean, Self::Thinned, Self::Best].into_iter().chain(HARMS.map(Self::Harmed))
    }

    /// Those of many.
    pub(super) fn crowds() -> impl Iterator<Item = Self> {
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

    pub(super) fn what(self) -> String {
        match self {
            Self::Clean => "nothing".to_owned(),
            Self::Thinned => "fewer ACKs".to_owned(),
            Self::Best => "nothing, TCP at best".to_owned(),
            Self::Harmed(harm) => harm.what(),
            Self::Crowd { queue, clients } => format!("{clients} clients, queue of {queue}"),
        }
    }

    /// Whether it is another one for this service than [`Case::Clean`]: CoAP has no acknowledgments to thin, and no SYN.
    fn is_of(self, service: Service) -> bool {
        !matches!((self, service), (Self::Thinned | Self::Best, Service::Coap))
    }

    /// The exchange, and how many clients make it.
    fn fetch(self, service: Service, size: usize) -> (Fetch, u16) {
        let plain = fetch(service, Link::Slow, size);
        // What compression makes longer goes in two frames, as over `thinair link run --mtu 128`.
        let plain = Fetch { model: with_mtu(&plain.model, plain.mtu), ..plain };
        match self {
            Self::Clean => (plain, 1),
            Self::Thinned => (Fetch { thins: true, ..plain }, 1),
            Self::Best => (Fetch { options: TcpOptions::LEAN, holds: true, stack: Stack::Best, ..plain }, 1),
            Self::Harmed(harm) => (Fetch { model: harm.on(&plain.model), ..plain }, 1),
            Self::Crowd { queue, clients } => {
                let model = both(&plain.model, |direction| direction.queue = Queue::packets(queue));
                (Fetch { model, ..plain }, clients)
            }
        }
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Links with an exchange after the other, and exchanges of each that count.
    links: u64,
    exchanges: usize,
    /// Rounds of a crowd that count.
    rounds: usize,
}

const QUICK: Scale = Scale { links: 1, exchanges: 20, rounds: 1 };
const USUAL: Scale = Scale { links: 20, exchanges: 40, rounds: 8 };

/// What exchanges came to, when contexts are there.
#[derive(Clone, Debug)]
pub(super) struct Came {
    pub(super) service: Service,
    pub(super) size: usize,
    pub(super) below: Below,
    pub(super) case: Case,
    /// Octets on the link of the first exchange, or round.
    first: Option<u64>,
    /// Objects that were asked for.
    asked: usize,
    /// Milliseconds that each took of those that came.
    times: Vec<f64>,
    pub(super) carried: Carried,
}

impl Came {
    /// The share of the objects, 0 to 1.
    pub(super) fn share(&self) -> f64 {
        self.times.len() as f64 / self.asked.max(1) as f64
    }

    fn an_object(&self, sum: f64) -> Option<f64> {
        (!self.times.is_empty()).then(|| sum / self.times.len() as f64)
    }

    /// Mean time of an object that came, milliseconds.
    pub(super) fn mean(&self) -> Option<f64> {
        self.an_object(self.times.iter().sum())
    }

    /// Median of it.
    fn median(&self) -> Option<f64> {
        Range::of(self.times.clone()).map(|range| range.median)
    }

    /// Octets on the link for an object that came, with all that was lost.
    pub(super) fn octets(&self) -> Option<f64> {
        self.an_object(self.carried.octets as f64)
    }

    fn add(&mut self, round: &Round) {
        self.asked += round.took.len();
        self.times.extend(round.took.iter().flatten().map(|took| took.as_secs_f64() * 1e3));
        self.carried = self.carried + round.carried;
    }
}

/// Measures all of it. The same seed gives the same figures, on any machine.
pub(super) fn measure(plan: &Plan, progress: Progress<'_>) -> Result<Vec<Came>, Error> {
    let scale = if plan.quick { QUICK } else { USUAL };
    let mut jobs = Vec::new();
    for (service, size) in SERVICES.into_iter().flat_map(|service| SIZES.map(|size| (service, size))) {
        let cases = Case::alone().chain(Case::crowds()).filter(|case| case.is_of(service));
        jobs.extend(cases.flat_map(|case| Below::ALL.map(|below| (service, size, below, case))));
    }
    let cost = |&(_, size, _, case): &(Service, usize, Below, Case)| {
        let exchanges = match case {
            Case::Crowd { clients, .. } => usize::from(clients) * (ROUNDS_BEFORE + scale.rounds),
            _ => scale.links as usize * (BEFORE + scale.exchanges),
        };
        (exchanges * (5 + size / 50)) as u64
    };
    sweep(&jobs, plan.threads, progress, cost, |&(service, size, below, case)| {
        let (fetch, clients) = case.fetch(service, size);
        let (links, before, counted, spread) = match case {
            Case::Crowd { .. } => (1, ROUNDS_BEFORE, scale.rounds, SPREAD),
            _ => (scale.links, BEFORE, scale.exchanges, Duration::ZERO),
        };
        let rounds = Rounds { clients, rounds: before + counted, spread, pause: PAUSE };
        let (first, carried) = (None, Carried::default());
        let mut came = Came { service, size, below, case, first, asked: 0, times: Vec::new(), carried };
        for link in 0..links {
            let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(link);
            let fetch = Fetch { rohc: below.channel(clients, seed)?, ..fetch.clone() };
            let rounds = fetch.rounds(&rounds, seed);
            came.first = came.first.or(rounds.first().map(|round| round.carried.octets));
            rounds.iter().skip(before).for_each(|round| came.add(round));
        }
        Ok(came)
    })
}

pub(super) fn rows(all: &[Came]) -> Vec<Row> {
    let mut rows: Vec<Row> = all.iter().flat_map(of_one).collect();
    for below in [Below::Unidirectional, Below::Optimistic] {
        let sum = compared(all, below);
        let row = |figure, words: &str, count: u64| {
            let id = format!("virtual/rohc/{}/{figure}", below.name());
            Row::new(id, format!("{}: packets that came out{words}", below.what()), "", Some(count as f64))
        };
        rows.push(row("compared", ", each compared with what went in", sum.delivered));
        rows.push(row("altered", " and were not, bit for bit, what went in", sum.altered).at_most(0.0));
    }
    rows
}

/// What the link has carried in all exchanges that count.
pub(super) fn compared(all: &[Came], below: Below) -> Carried {
    all.iter().filter(|came| came.below == below).fold(Carried::default(), |sum, came| sum + came.carried)
}

fn of_one(of: &Came) -> Vec<Row> {
    let row = |figure: &str, words: &str, unit, ours| {
        let (service, below, case) = (name(of.service), of.below.name(), of.case.name());
        let id = format!("virtual/{service}/20k/128/{}/rohc/{below}/{case}/{figure}", of.size);
        let (service, below, case) = (what(of.service), of.below.what(), of.case.what());
        Row::new(id, format!("{service}, {} octets, {below}, {case}: {words}", of.size), unit, ours)
    };
    let mut rows = vec![
        row("came", "objects that came", "%", Some(of.share() * 100.0)),
        row("median", "time of those, median", "ms", of.median()),
        row("mean", "time of those, mean", "ms", of.mean()),
        row("octets", "octets on the link for each of those", "octets", of.octets()),
    ];
    if of.below != Below::Plain {
        let lost = of.carried.not_decompressed as f64 / of.carried.packets.max(1) as f64 * 100.0;
        rows.push(row("not-decompressed", "packets that arrived in vain", "%", Some(lost)));
        let first = of.first.filter(|_| of.case == Case::Clean).map(|octets| octets as f64);
        rows.extend(first.map(|first| row("first", "octets of the first exchange", "octets", Some(first))));
    }
    rows
}
