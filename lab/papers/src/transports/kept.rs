//! Persistent connections: costs of the first object, and of a later one on that connection.

use std::time::Duration;

use thinair_simulation::network::fetch::{ConnectionEnd, Fetch, FetchService, Round, Rounds};

use super::Range;
use super::cell::{self, TransportLink};
use super::over_rohc::{Below, PAUSE};
use super::virtual_time::{fetch, name};
use crate::form::{Figures, Named};
use crate::paper::{PaperError, RunPlan};

/// Services with persistent connections, and CoAP, which needs none, for comparison.
pub(super) const SERVICES: [FetchService; 5] = [
    FetchService::Coap,
    FetchService::CoapOscore,
    FetchService::CoapTcp,
    FetchService::Http,
    FetchService::IotSpdy,
];

/// Sizes of the objects, in octets.
pub(super) const SIZES: [usize; 2] = [10, 1_000];

/// Number of the later exchange, from 0, by which ROHC has established its contexts.
const FOLLOWS: usize = 19;

/// Costs of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Took {
    pub(super) packets: f64,
    /// Octets on the link.
    pub(super) octets: f64,
    /// Time in milliseconds.
    pub(super) time: f64,
}

/// Figures of an object, by their names in ids, and their decimals.
const FIGURES: [(Named<Took, f64>, usize); 3] = [
    (("packets", |took| took.packets), 0),
    (("octets", |took| took.octets), 0),
    (("odt", |took| took.time), 1),
];

impl Took {
    fn of(round: &Round) -> Option<Self> {
        let took = (*round.took.first()?)?;
        let (packets, octets) = (round.carried.packets as f64, round.carried.octets as f64);
        Some(Self { packets, octets, time: took.as_secs_f64() * 1e3 })
    }
}

/// First and second object; `None` for one that was not delivered.
pub(super) type FirstAndSecond = [Option<Took>; 2];

/// Objects over one connection in real time.
#[derive(Clone, Debug)]
pub(super) struct KeptReal {
    pub(super) service: cell::TransportService,
    pub(super) size: usize,
    pub(super) samples: Vec<FirstAndSecond>,
}

impl KeptReal {
    pub(super) fn put(&self, figures: &mut Figures) {
        for (which, name) in ["first", "next"].into_iter().enumerate() {
            for ((figure, of), decimals) in FIGURES {
                let range = self.range(which, of);
                let id = format!("{}/20k/128/{}/kept/{name}/{figure}", self.service.name(), self.size);
                let shown = range.map_or("did not come".to_owned(), |range| range.text(decimals));
                figures.put_text(format!("shown/{id}"), shown);
                figures.put(id, range.map(|range| range.median));
            }
        }
    }

    /// Figure of the first object, or of the later one.
    fn range(&self, which: usize, of: impl Fn(&Took) -> f64) -> Option<Range> {
        let took = self.samples.iter().filter_map(|sample| sample.get(which)?.as_ref());
        Range::of(took.map(of).collect())
    }
}

/// Measures everything, in virtual time.
pub(super) fn measure(plan: &RunPlan, figures: &mut Figures) -> Result<(), PaperError> {
    let rounds = Rounds { clients: 1, rounds: FOLLOWS + 1, spread: Duration::ZERO, pause: PAUSE };
    let each = SERVICES.into_iter().flat_map(|service| SIZES.map(|size| (service, size)));
    for (service, size, below) in
        each.flat_map(|(service, size)| Below::ALL.map(|below| (service, size, below)))
    {
        let plain = fetch(service, TransportLink::Slow, size);
        let rohc = below.channel(1, plan.seed)?;
        let rounds = Fetch { close: ConnectionEnd::Never, rohc, ..plain }.rounds(&rounds, plan.seed);
        for (which, round) in [("first", rounds.first()), ("next", rounds.last())] {
            let took = round.and_then(Took::of);
            for ((figure, of), _) in FIGURES {
                let (service, below) = (name(service), below.name());
                let id = format!("virtual/{service}/20k/128/{size}/kept/{below}/{which}/{figure}");
                figures.put(id, took.as_ref().map(of));
            }
        }
    }
    Ok(())
}
