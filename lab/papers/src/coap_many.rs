//! `coap-many`: readings of many senders on one channel of IEEE 802.15.4, by what stands for their headers.

mod cell;
mod show;
#[cfg(test)]
mod tests;

use thinair_lab::Summary;

use cell::{Cell, Hearing, SENDERS, Sample, Way, id};

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};
use crate::row::Row;
use crate::sweep::{Samples, runs};

/// The evaluation.
#[derive(Debug)]
pub(crate) struct CoapMany;

const ABOUT: About = About {
    name: "coap-many",
    title: "Readings of many CoAP senders on one channel, by header compression",
    source: "M. Majanen, P. Koskela, M. Valta: Constrained Application Protocol Profile for Robust Header \
        Compression Framework, 2015, section V.E: left there for later",
    claim: &[
        "“This may also turn out to be energy efficient when there are more than one sender and more traffic, since smaller packets \
            may result in less queuing and less packet collisions. Studying this will be one of our future work items, too.”",
        "Ours: so it is. Of 200 senders with a reading a second that hear each other, 95 % of the readings arrive with ROHC, 90 % with \
            6LoWPAN and 75 % as they are, for 0.15, 0.20 and 0.33 mJ each. Where senders do not hear each other it decides whether \
            there is a network: of 50, 92, 85 and 69 % arrive, with 49, 77 and 139 frames destroyed for 100 readings.",
    ],
    method: &[
        "A star in virtual time: 10 to 200 senders around a sink, unslotted CSMA-CA as in IEEE 802.15.4 (BE 3 to 5, four back-offs, \
            three retransmissions, a channel that stays busy drops the frame), 250 kbit/s, a queue of 8 frames each, frames that \
            overlap are lost. Once all senders hear each other, once the sink alone. No bit errors: all that is lost is lost to \
            contention.",
        "Each sender has a reading every 0.5 to 1.5 s: a notification of CoAP in a NON message, IPv6 and UDP, 82 octets with 20 of \
            content, for 120 s. Every frame is there octet by octet (RFC 4944, short addresses), and what the sink rebuilds is \
            compared with what was sent.",
        "plain: IPv6 as it is. 6lowpan: LOWPAN_IPHC and LOWPAN_NHC, addresses elided. rohc: profile 0x0081 with feedback, behind a \
            private dispatch of two octets; packets that set up contexts, and feedback in frames of its own, are in all figures. \
            both: the same ROHC packets in UDP datagrams, whose own headers go by LOWPAN_IPHC and LOWPAN_NHC: this needs no dispatch.",
        "Waiting is the time of a frame from the queue to the air. Energy is that of the airtime of all senders' radios, a CC2538, \
            without CPU and without waiting, for each reading that arrives. 20 runs, means with intervals of 95 % by Student's t.",
    ],
    theirs: &["Nothing was measured there."],
    why_different: &[
        "Less queuing is seen where senders hear each other. Those that do not never find the channel busy: what they lose is lost on \
            the air, so there waiting says nothing, and the delay and what arrives say all.",
        "With overhearing, senders spend more on acknowledgments that are not for them than on their own readings: no compression \
            changes that, only a radio that sleeps.",
        "Bars are held from 50 senders on: with 10 and 20 that hear each other, hardly a frame in a hundred is destroyed either way.",
    ],
};

impl Paper for CoapMany {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let cells: Vec<Cell> = grid(plan.quick)
            .map(|(hearing, senders, way)| Cell::new(hearing, senders, way, plan.quick))
            .collect();
        let samples = runs(&cells, plan, progress)?;
        let results = Samples::new(cells.iter().map(Cell::id).zip(samples));
        let rows = rows(&results, plan.quick);
        let ours = show::sections(&results, &rows, plan.quick);
        Ok(Findings { rows, ours, left_out: Vec::new() })
    }
}

/// Samples by cell.
type Results = Samples<Sample>;

/// Senders of the stars in a run of that size.
fn senders(quick: bool) -> &'static [u16] {
    if quick { &[20, 100] } else { &SENDERS }
}

fn grid(quick: bool) -> impl Iterator<Item = (Hearing, u16, Way)> {
    Hearing::ALL.into_iter().flat_map(move |hearing| {
        senders(quick)
            .iter()
            .flat_map(move |senders| Way::ALL.into_iter().map(move |way| (hearing, *senders, way)))
    })
}

/// A figure of a run.
#[derive(Clone, Copy)]
struct Figure {
    name: &'static str,
    what: &'static str,
    unit: &'static str,
    /// Of a mean, as it is shown.
    decimals: usize,
    of: fn(&Sample) -> Option<f64>,
}

const DELIVERED: Figure = Figure {
    name: "delivered",
    what: "readings that arrive",
    unit: "%",
    decimals: 1,
    of: |sample| Some(100.0 * sample.delivered()),
};

const COLLISIONS: Figure = Figure {
    name: "collisions",
    what: "frames destroyed, of 100 readings",
    unit: "",
    decimals: 1,
    of: |sample| Some(100.0 * sample.collisions),
};

const WAITED: Figure = Figure {
    name: "waited",
    what: "from the queue to the air",
    unit: "ms",
    decimals: 2,
    of: |sample| Some(1e3 * sample.waited),
};

const DELAY: Figure = Figure {
    name: "delay",
    what: "from sender to sink",
    unit: "ms",
    decimals: 2,
    of: |sample| sample.delay.map(|seconds| 1e3 * seconds),
};

const P95: Figure = Figure {
    name: "p95",
    what: "from sender to sink, 95 % are below",
    unit: "ms",
    decimals: 1,
    of: |sample| sample.p95.map(|seconds| 1e3 * seconds),
};

const ENERGY: Figure = Figure {
    name: "energy",
    what: "energy of the senders for a reading that arrives",
    unit: "mJ",
    decimals: 3,
    of: |sample| sample.airtime.map(|joules| 1e3 * joules),
};

const OVERHEARING: Figure = Figure {
    name: "energy-overhearing",
    what: "the same with overhearing",
    unit: "mJ",
    decimals: 3,
    of: |sample| sample.overhearing.map(|joules| 1e3 * joules),
};

const OCTETS: Figure = Figure {
    name: "octets",
    what: "octets of senders on the air for a reading",
    unit: "octets",
    decimals: 1,
    of: |sample| Some(sample.octets),
};

const TRIES: Figure = Figure {
    name: "tries",
    what: "transmissions of a frame that is sent",
    unit: "",
    decimals: 2,
    of: |sample| Some(sample.tries),
};

const ACCESS_FAILURES: Figure = Figure {
    name: "access-failures",
    what: "accesses to the channel given up, of 100 readings",
    unit: "",
    decimals: 2,
    of: |sample| Some(100.0 * sample.access_failures),
};

const DROPPED: Figure = Figure {
    name: "dropped",
    what: "frames given up or not queued, of 100 readings",
    unit: "",
    decimals: 2,
    of: |sample| Some(100.0 * sample.dropped),
};

const REFUSED: Figure = Figure {
    name: "refused",
    what: "packets that the sink cannot read, of 100 readings",
    unit: "",
    decimals: 2,
    of: |sample| Some(100.0 * sample.refused),
};

const FEEDBACK: Figure = Figure {
    name: "feedback",
    what: "frames of the sink, of 100 readings",
    unit: "",
    decimals: 2,
    of: |sample| Some(100.0 * sample.feedback),
};

const FIGURES: [Figure; 13] = [
    DELIVERED,
    COLLISIONS,
    WAITED,
    DELAY,
    P95,
    ENERGY,
    OVERHEARING,
    OCTETS,
    TRIES,
    ACCESS_FAILURES,
    DROPPED,
    REFUSED,
    FEEDBACK,
];

fn rows(results: &Results, quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (hearing, senders, way) in grid(quick) {
        let cell = id(hearing, senders, way);
        let what = |of: &str| format!("{}, {senders}, {}: {of}", hearing.title(), way.name());
        rows.extend(FIGURES.map(|Figure { name, what: of, unit, of: figure, .. }| {
            Row::new(format!("{cell}/{name}"), what(of), unit, results.mean(&cell, figure))
        }));
        let altered: f64 = results.of(&cell).iter().map(|sample| sample.altered).sum();
        rows.push(
            Row::new(format!("{cell}/altered"), what("readings that arrive altered"), "", altered)
                .at_most(0.0),
        );
    }
    for hearing in Hearing::ALL {
        for senders in senders(quick) {
            rows.extend(CLAIMED.map(|figure| {
                let is_held = !quick && is_claimed(hearing, *senders, figure);
                above_plain(results, hearing, *senders, figure, is_held)
            }));
        }
    }
    rows
}

/// What smaller packets are said to lessen.
const CLAIMED: [Figure; 3] = [COLLISIONS, WAITED, ENERGY];

/// Few senders hardly meet, and those that hear nobody wait for nobody.
fn is_claimed(hearing: Hearing, senders: u16, figure: Figure) -> bool {
    senders >= 50 && (hearing == Hearing::All || figure.name != WAITED.name)
}

/// The upper end of what ROHC may need more than IPv6 as it is, at 95 %.
fn above_plain(results: &Results, hearing: Hearing, senders: u16, figure: Figure, is_held: bool) -> Row {
    let of = |way: Way| results.summary(&id(hearing, senders, way), figure.of);
    let upper = |rohc: Summary, plain: Summary| {
        Some(rohc.mean - plain.mean + rohc.half.unwrap_or(0.0).hypot(plain.half?))
    };
    let more = of(Way::Rohc).zip(of(Way::Plain)).and_then(|(rohc, plain)| upper(rohc, plain));
    let Figure { name, what, unit, .. } = figure;
    let what = format!("{}, {senders}: rohc above plain, at most (95 %): {what}", hearing.title());
    Row::new(format!("{}/{senders}/{name}-above-plain", hearing.name()), what, unit, more)
        .at_most(is_held.then_some(0.0))
}
