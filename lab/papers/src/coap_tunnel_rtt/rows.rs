//! What was measured, as rows with their bars.

use thinair_rohc::ProfileId;

use super::cell::{Place, Version, Way};
use super::published::{self, Published};
use super::summary::Summary;
use super::{Carried, Measured, Told};
use crate::row::{Bar, Row};

/// Milliseconds that each of the two tunnels may add to a round trip, above what a plain forwarder takes.
pub(super) const MOST_ADDED: f64 = 0.3;

/// Milliseconds that round trips by a profile may be from those without compression.
pub(super) const MOST_APART: f64 = 0.1;

/// A mean of requests and one of responses.
type Octets = fn(&Carried) -> [f64; 2];

const UNCOMPRESSED: Way = Way::Tunnel(ProfileId::Uncompressed);

pub(super) fn rows(measured: &[Measured]) -> Vec<Row> {
    let mut rows = Vec::new();
    for at in measured {
        rows.extend(at.cells.iter().flat_map(|told| of_cell(at, told)));
    }
    rows.extend(measured.iter().flat_map(conclusions));
    let cells = || measured.iter().flat_map(|at| &at.cells);
    let lost: usize = cells().map(|told| told.lost).sum();
    let others = cells().filter(|told| told.carried.is_some_and(|carried| !carried.is_by_profile)).count();
    rows.extend([
        Row::new("lost", "requests that were sent twice or not answered", "requests", lost as f64),
        Row::new(
            "other-profile",
            "tunnels without a context of their profile in both directions",
            "cells",
            others as f64,
        )
        .at_most(0.0),
    ]);
    for at in measured {
        let place = at.place.name();
        let what = format!("share of the machine's time that its host took away, {}", at.place.what());
        rows.push(Row::new(format!("stolen/{place}"), what, "%", at.stolen * 100.0));
        if let Some(late) = at.late {
            let what = "how late the link was with 99 % of its packets";
            rows.push(Row::new(format!("late/{place}"), what, "us", late));
        }
    }
    rows
}

/// Milliseconds that each tunnel adds to what the plain forwarder takes, by medians.
pub(super) fn added(at: &Measured, told: &Told) -> Option<f64> {
    let forwarder = at.times(Way::Forwarder, told.cell.version)?;
    Some((told.times?.median - forwarder.median) / 2.0)
}

/// Whether the cell is held to [`MOST_ADDED`].
pub(super) fn is_added(at: &Measured, way: Way) -> bool {
    way.profile().is_some() && at.place == Place::Veth
}

/// Whether the cell is held to [`MOST_APART`].
pub(super) fn is_apart(way: Way) -> bool {
    matches!(way, Way::Tunnel(profile) if profile != ProfileId::Uncompressed)
}

/// Milliseconds that round trips take longer than those of profile `uncompressed`, by medians.
pub(super) fn apart(at: &Measured, told: &Told) -> Option<f64> {
    let uncompressed = at.times(UNCOMPRESSED, told.cell.version)?;
    Some(told.times?.median - uncompressed.median)
}

fn of_cell(at: &Measured, told: &Told) -> Vec<Row> {
    let (way, version) = (told.cell.way, told.cell.version);
    let id = format!("{}/{}/{}", way.name(), version.name(), at.place.name());
    let what = format!("{}, {}, {}", way.what(), version.name(), at.place.what());
    let theirs = published::of(way, version).filter(|_| at.place == Place::Link);
    let time = |name: &str, words: &str, ours: fn(&Summary) -> f64| {
        Row::new(format!("{id}/{name}"), format!("{what}: {words}"), "ms", told.times.as_ref().map(ours))
    };
    let mut rows = vec![
        time("mean", "round trip, mean", |times| times.mean).theirs(theirs.map(|theirs| theirs.mean)),
        time("ci95", "half the 95 % interval of the mean", |times| times.margin)
            .theirs(theirs.map(|theirs| theirs.margin())),
        time("median", "round trip, median", |times| times.median),
        time("min", "round trip, least", |times| times.min).theirs(theirs.map(|theirs| theirs.min)),
        time("max", "round trip, most", |times| times.max).theirs(theirs.map(|theirs| theirs.max)),
    ];
    if is_added(at, way) {
        let what = format!("{what}: added by each tunnel, median");
        rows.push(Row::new(format!("{id}/added"), what, "ms", added(at, told)).at_most(MOST_ADDED));
    }
    if is_apart(way) {
        let bar = Bar { max: Some(MOST_APART), min: Some(-MOST_APART) };
        let what = format!("{what}: longer than uncompressed, median");
        rows.push(Row::new(format!("{id}/apart"), what, "ms", apart(at, told)).within(bar));
    }
    let octets: [(&str, &str, Octets); 3] = [
        ("inside", "IP packet", |carried| carried.inside),
        ("rohc", "ROHC packet", |carried| carried.compressed),
        ("octets", "on the carrier, feedback included", |carried| carried.carrier),
    ];
    if let Some(carried) = &told.carried {
        for (name, words, of) in octets {
            for (half, ours) in ["get", "rsp"].into_iter().zip(of(carried)) {
                let what = format!("{what}: {half}, {words}");
                rows.push(Row::new(format!("{id}/{name}/{half}"), what, "octets", ours));
            }
        }
    }
    rows
}

/// What the paper concludes: a difference of two ways.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conclusion {
    id: &'static str,
    pub(super) what: &'static str,
    pub(super) of: Way,
    pub(super) to: Way,
}

pub(super) const CONCLUSIONS: [Conclusion; 5] = [
    Conclusion { id: "tunnel", what: "uncompressed − no tunnel", of: UNCOMPRESSED, to: Way::Plain },
    Conclusion {
        id: "compression",
        what: "coap-2015 − uncompressed",
        of: Way::Tunnel(ProfileId::Coap2015),
        to: UNCOMPRESSED,
    },
    Conclusion {
        id: "all-headers/udp",
        what: "coap-2015 − udp",
        of: Way::Tunnel(ProfileId::Coap2015),
        to: Way::Tunnel(ProfileId::Udp),
    },
    Conclusion {
        id: "all-headers/ip",
        what: "coap-2015 − ip",
        of: Way::Tunnel(ProfileId::Coap2015),
        to: Way::Tunnel(ProfileId::Ip),
    },
    Conclusion { id: "seal", what: "uncompressed − insecure", of: UNCOMPRESSED, to: Way::Insecure },
];

impl Conclusion {
    /// The difference of the means, and half its 95 % interval.
    pub(super) fn ours(&self, at: &Measured, version: Version) -> Option<(f64, f64)> {
        Some(at.times(self.of, version)?.minus(&at.times(self.to, version)?))
    }

    /// The same of the medians.
    pub(super) fn medians(&self, at: &Measured, version: Version) -> Option<(f64, f64)> {
        Some(at.times(self.of, version)?.median_minus(&at.times(self.to, version)?))
    }

    /// The difference of the means of the paper's; it has no other place than one that is like the link.
    pub(super) fn theirs(&self, place: Place, version: Version) -> Option<(f64, f64)> {
        if place != Place::Link {
            return None;
        }
        let of = |way| -> Option<Published> { published::of(way, version) };
        Some(of(self.of)?.minus(&of(self.to)?))
    }
}

fn conclusions(at: &Measured) -> Vec<Row> {
    let each = CONCLUSIONS.iter().flat_map(|conclusion| Version::ALL.map(|version| (conclusion, version)));
    each.flat_map(|(conclusion, version)| {
        let id = format!("difference/{}/{}/{}", conclusion.id, version.name(), at.place.name());
        let what = format!("{}, {}, {}", conclusion.what, version.name(), at.place.what());
        let medians = conclusion.medians(at, version);
        let (ours, theirs) = (conclusion.ours(at, version), conclusion.theirs(at.place, version));
        [
            Row::new(id.clone(), format!("{what}: of the means"), "ms", ours.map(|ours| ours.0))
                .theirs(theirs.map(|theirs| theirs.0)),
            Row::new(
                format!("{id}/ci95"),
                format!("{what}: half the 95 % interval"),
                "ms",
                ours.map(|ours| ours.1),
            )
            .theirs(theirs.map(|theirs| theirs.1)),
            Row::new(
                format!("{id}/median"),
                format!("{what}: of the medians"),
                "ms",
                medians.map(|medians| medians.0),
            ),
            Row::new(
                format!("{id}/median/ci95"),
                format!("{what}: half the 95 % interval"),
                "ms",
                medians.map(|medians| medians.1),
            ),
        ]
    })
    .collect()
}
