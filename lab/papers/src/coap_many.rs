//! `coap-many`: readings of many senders on one IEEE 802.15.4 channel, by header compression scheme.

mod cell;

use thinair_simulation::Summary;

use cell::ManySample;

use crate::form::{Figures, Named, PaperRun, declared};
use crate::paper::{Paper, PaperError};
use crate::row::Bar;

pub(crate) const PAPER: Paper = declared!("coap-many", "coap_many", measure, without published);

/// Figures of a run, by their names in ids.
const FIGURES: [Named<ManySample>; 13] = [
    ("delivered", |sample| Some(100.0 * sample.delivered())),
    ("collisions", |sample| Some(100.0 * sample.collisions)),
    ("waited", |sample| Some(1e3 * sample.waited)),
    ("delay", |sample| sample.delay.map(|seconds| 1e3 * seconds)),
    ("p95", |sample| sample.p95.map(|seconds| 1e3 * seconds)),
    ("energy", |sample| sample.airtime.map(|joules| 1e3 * joules)),
    ("energy-overhearing", |sample| sample.overhearing.map(|joules| 1e3 * joules)),
    ("octets", |sample| Some(sample.octets)),
    ("tries", |sample| Some(sample.tries)),
    ("access-failures", |sample| Some(100.0 * sample.access_failures)),
    ("dropped", |sample| Some(100.0 * sample.dropped)),
    ("refused", |sample| Some(100.0 * sample.refused)),
    ("feedback", |sample| Some(100.0 * sample.feedback)),
];

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let quick = run.plan.quick;
    let samples = run.repeat(|cell, seed, number| {
        let vars = &cell.vars;
        let (is_hidden, senders) = (vars.text("hearing")? == "hidden", vars.parse("senders")?);
        cell::run(is_hidden, senders, vars.text("way")?, quick, (seed, number))
    })?;
    for (id, of_cell) in samples.iter() {
        for (name, of) in FIGURES {
            samples.put(figures, id, name, of);
        }
        figures.put(format!("{id}/altered"), of_cell.iter().map(|sample| sample.altered).sum::<f64>());
        // Upper end of the 95 % interval of ROHC's excess over IPv6 without compression.
        let Some(star) = id.strip_suffix("/rohc") else { continue };
        for (name, of) in FIGURES {
            let upper = |rohc: Summary, plain: Summary| {
                Some(rohc.mean - plain.mean + rohc.half.unwrap_or(0.0).hypot(plain.half?))
            };
            let [rohc, plain] = ["rohc", "plain"].map(|way| samples.summary(&format!("{star}/{way}"), of));
            let more = rohc.zip(plain).and_then(|(rohc, plain)| upper(rohc, plain));
            let held = !quick && is_claimed(star, name);
            let bar = held.then_some(Bar { max: Some(0.0), min: None });
            figures.put(format!("{star}/{name}-above-plain"), more).bar = bar;
        }
    }
    Ok(())
}

/// Few senders rarely collide, and hidden senders do not defer to each other.
fn is_claimed(star: &str, figure: &str) -> bool {
    let (hearing, senders) = star.split_once('/').unwrap_or_default();
    senders.parse().is_ok_and(|senders: u16| senders >= 50) && (hearing == "hearing" || figure != "waited")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, without contention: 11 octets of MAC and 6 of the PHY around a dispatch and 82 octets; 2 and 7 octets for the 48
    /// of IPv6 and UDP.
    #[test]
    fn a_sender_alone_needs_what_its_frames_need() {
        let alone = |way| cell::run(false, 1, way, true, (1, 0)).expect("it runs");
        for (way, octets) in [("plain", 17.0 + 1.0 + 82.0), ("6lowpan", 17.0 + 82.0 - 48.0 + 9.0)] {
            let sample = alone(way);
            assert_eq!((sample.octets, sample.tries, sample.collisions), (octets, 1.0, 0.0));
            assert_eq!((sample.arrived, sample.altered, sample.feedback), (sample.sent, 0.0, 0.0));
            // Back-off of 0 to 7 periods, assessment, turnaround.
            assert!((320e-6..2.56e-3).contains(&sample.waited), "{}", sample.waited);
        }
        let [rohc, both] = ["rohc", "both"].map(alone);
        assert!(rohc.arrived == rohc.sent && rohc.feedback > 0.0 && rohc.refused == 0.0, "{rohc:?}");
        // IPv6 and UDP of the outer packet are 6 octets where the dispatch is 2.
        assert!((both.octets - rohc.octets - 4.0).abs() < 0.5, "{} {}", both.octets, rohc.octets);
    }
}
