//! Connections that stay: what the first object takes, and one that follows on the same connection.

use std::time::Duration;

use thinair_lab::network::fetch::{Close, Fetch, Round, Rounds, Service};

use super::Range;
use super::cell::{self, Link};
use super::over_rohc::{Below, PAUSE};
use super::virtual_time::{fetch, name, what};
use crate::paper::{Error, Plan};
use crate::row::Row;

/// Those whose connections can stay. CoAP, which needs none, stands beside them.
pub(super) const SERVICES: [Service; 4] = [Service::Coap, Service::CoapTcp, Service::Http, Service::IotSpdy];

/// Octets of the objects.
pub(super) const SIZES: [usize; 2] = [10, 1_000];

/// The exchange that follows, from 0: when ROHC has made its contexts.
const FOLLOWS: usize = 19;

/// What an object took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Took {
    pub(super) packets: f64,
    /// Octets on the link.
    pub(super) octets: f64,
    /// Milliseconds.
    pub(super) time: f64,
}

impl Took {
    fn of(round: &Round) -> Option<Self> {
        let took = (*round.took.first()?)?;
        let (packets, octets) = (round.carried.packets as f64, round.carried.octets as f64);
        Some(Self { packets, octets, time: took.as_secs_f64() * 1e3 })
    }
}

/// The first object, and one that follows.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) service: Service,
    pub(super) size: usize,
    pub(super) below: Below,
    pub(super) first: Option<Took>,
    pub(super) next: Option<Took>,
}

/// The first object and the second one; nothing for what did not come.
pub(super) type Sample = [Option<Took>; 2];

/// Objects over one connection in real time.
#[derive(Clone, Debug)]
pub(super) struct KeptReal {
    pub(super) service: cell::Service,
    pub(super) size: usize,
    pub(super) samples: Vec<Sample>,
}

impl KeptReal {
    /// A figure of the first object, or of the one that follows.
    pub(super) fn range(&self, which: usize, of: impl Fn(&Took) -> f64) -> Option<Range> {
        let took = self.samples.iter().filter_map(|sample| sample.get(which)?.as_ref());
        Range::of(took.map(of).collect())
    }
}

pub(super) fn real_rows(of: &KeptReal) -> Vec<Row> {
    let figures = [("first", "the first object"), ("next", "one that follows")];
    let rows = figures.into_iter().enumerate().flat_map(|(which, (id, words))| {
        let row = move |figure: &str, unit, took: fn(&Took) -> f64| {
            let id = format!("{}/20k/128/{}/kept/{id}/{figure}", of.service.name(), of.size);
            let what =
                format!("{}, {} octets, on one connection: {words}, {figure}", of.service.what(), of.size);
            Row::new(id, what, unit, of.range(which, took).map(|range| range.median))
        };
        [
            row("packets", "", |took| took.packets),
            row("octets", "octets", |took| took.octets),
            row("odt", "ms", |took| took.time),
        ]
    });
    rows.collect()
}

/// Measures all of it, in virtual time.
pub(super) fn measure(plan: &Plan) -> Result<Vec<Kept>, Error> {
    let rounds = Rounds { clients: 1, rounds: FOLLOWS + 1, spread: Duration::ZERO, pause: PAUSE };
    let each = SERVICES.into_iter().flat_map(|service| SIZES.map(|size| (service, size)));
    let each = each.flat_map(|(service, size)| Below::ALL.map(|below| (service, size, below)));
    each.map(|(service, size, below)| {
        let plain = fetch(service, Link::Slow, size);
        let rohc = below.channel(1, plan.seed)?;
        let rounds = Fetch { close: Close::Never, rohc, ..plain }.rounds(&rounds, plan.seed);
        let [first, next] = [rounds.first(), rounds.last()].map(|round| round.and_then(Took::of));
        Ok(Kept { service, size, below, first, next })
    })
    .collect()
}

pub(super) fn rows(all: &[Kept]) -> Vec<Row> {
    let of = |kept: &Kept| {
        let (service, size, below) = (name(kept.service), kept.size, kept.below.name());
        let words = format!("{}, {size} octets, {}", what(kept.service), kept.below.what());
        let figures = [("first", "the first object", kept.first), ("next", "one that follows", kept.next)];
        let rows = figures.map(|(which, what, took)| {
            let row = |figure: &str, unit, of: fn(&Took) -> f64| {
                let id = format!("virtual/{service}/20k/128/{size}/kept/{below}/{which}/{figure}");
                let what = format!("{words}, on one connection: {what}, {figure}");
                Row::new(id, what, unit, took.as_ref().map(of))
            };
            [
                row("packets", "", |took| took.packets),
                row("octets", "octets", |took| took.octets),
                row("odt", "ms", |took| took.time),
            ]
        });
        rows.into_iter().flatten()
    };
    all.iter().flat_map(of).collect()
}
