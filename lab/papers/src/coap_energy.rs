//! `coap-energy`: energy of a CoAP exchange at a device, and break-even of compression, on five kinds of radios.

mod again;
mod exchange;
mod radios;

use thinair_link::energy::{self, Energy, Radio, Spent};

use exchange::{Course, EXCHANGES, EnergyScheme, ExchangeLoad};
use radios::{RADIOS, Versus};

use crate::form::{Figures, Named, PaperRun, declared};
use crate::paper::{Paper, PaperError};
use crate::row::Bar;
use crate::sweep::sweep;
use crate::traffic::TrafficVersion;

pub(crate) const PAPER: Paper = declared!("coap-energy", "coap_energy", measure);

/// Totals by their names in ids.
const TOTALS: [Named<Spent, Energy>; 4] = [
    ("airtime", Spent::airtime),
    ("overhearing", Spent::with_overhearing),
    ("idle", Spent::with_idle),
    ("cpu", |spent| spent.cpu),
];

/// Number of exchanges of a course in the plots.
const PLOTTED: usize = 40;

fn measure(run: &PaperRun<'_>, figures: &mut Figures) -> Result<(), PaperError> {
    let plan = run.plan;
    let jobs: Vec<_> = TrafficVersion::ALL
        .into_iter()
        .flat_map(|version| EnergyScheme::ALL.map(|scheme| (version, scheme)))
        .collect();
    let courses = sweep(
        &jobs,
        plan.threads,
        run.progress,
        |_| EXCHANGES as u64,
        |&(version, scheme)| Course::measure(version, scheme, plan.seed),
    )?;
    again::put(figures);
    for version in TrafficVersion::ALL {
        let courses: Vec<_> = courses.iter().filter(|course| course.version == version).cloned().collect();
        for radio in &RADIOS {
            totals(radio, &courses, figures);
            verdicts(radio, &courses, figures);
        }
        if version == TrafficVersion::V6 {
            curves(&courses, figures);
        }
    }
    let not_exact = courses.iter().map(|course| course.not_exact).sum::<u64>();
    figures.put("round-trip/not-exact", not_exact as f64);
    for radio in RADIOS {
        let powers = [radio.transmit, radio.receive, radio.idle, radio.sleep];
        for (state, power) in ["sends", "receives", "waits", "sleeps"].into_iter().zip(powers) {
            figures.put(format!("power/{}/{state}", radio.name), power.as_nanowatts() as f64 / 1e6);
        }
        let sources: Vec<_> = radio.sources.iter().map(|source| source.from).collect();
        figures.put_text(format!("power/{}/source", radio.name), sources.join("; "));
        figures.put_text(format!("power/{}/title", radio.name), radio.title);
    }
    Ok(())
}

/// Puts the totals of each scheme.
fn totals(radio: &Radio, courses: &[Course], figures: &mut Figures) {
    let plain = radios::of(courses, EnergyScheme::Plain)
        .map(|plain| radios::mean(radio, plain.settled(), Spent::airtime));
    for course in courses {
        let settled = course.settled();
        let id = format!("{}/{}/{}", radio.name, course.version.name(), course.scheme.name());
        for (name, total) in TOTALS {
            figures.put(format!("{id}/{name}"), 1e6 * radios::mean(radio, settled, total));
        }
        let octets = settled.iter().map(ExchangeLoad::octets).sum::<usize>() as f64;
        figures.put(format!("{id}/octets"), octets / settled.len() as f64);
        let airtime = radios::mean(radio, settled, Spent::airtime);
        figures.put(format!("{id}/of-plain"), plain.map(|plain| airtime / plain));
    }
}

/// Puts the saving of our profile, and its break-even points.
fn verdicts(radio: &Radio, courses: &[Course], figures: &mut Figures) {
    let (Some(plain), Some(compressed)) =
        (radios::of(courses, EnergyScheme::Plain), radios::of(courses, EnergyScheme::Coap))
    else {
        return;
    };
    let versus = Versus { radio: *radio, plain, compressed };
    let id = |name: &str| format!("{}/{}/{name}", radio.name, compressed.version.name());
    figures.put(id("octets-saved"), versus.octets_saved());
    // Compression is made for radios slower than the paper's.
    let bar = (*radio != RADIOS[0]).then_some(Bar { min: Some(0.0), max: None });
    figures.put(id("saving"), 100.0 * versus.saving()).bar = bar;
    figures.put(id("break-even-loss"), 100.0 * versus.break_even_loss());
    let rate = versus.break_even_rate();
    figures.put(id("break-even-ber"), rate);
    if let Some(rate) = rate {
        figures.put_text(format!("shown/{}", id("break-even-ber")), format!("{rate:.1e}"));
    }
    figures.put(id("break-even-cpu"), versus.break_even_cpu());
    figures.put(id("pays-after"), versus.pays_after().map(|exchanges| exchanges as f64));
}

/// Puts curves: the start of a conversation, and bit errors.
fn curves(courses: &[Course], figures: &mut Figures) {
    for course in courses {
        let mut sum = 0.0;
        let exchanges = course.exchanges.iter().take(PLOTTED).enumerate();
        let points = exchanges.map(|(number, exchange)| {
            sum += 1e6 * radios::spent(&energy::CC2538, exchange).airtime().as_joules();
            let x = (number + 1) as f64;
            (x, sum / x)
        });
        let points = points.collect();
        figures.put_curve(format!("start/{}", course.scheme.name()), points);
    }
    let (Some(plain), Some(compressed)) =
        (radios::of(courses, EnergyScheme::Plain), radios::of(courses, EnergyScheme::Coap))
    else {
        return;
    };
    for radio in [energy::CC2538, energy::WIFI] {
        let versus = Versus { radio, plain, compressed };
        for (i, scheme) in [EnergyScheme::Plain, EnergyScheme::Coap].into_iter().enumerate() {
            let rates = (0..=14).map(|step| 10_f64.powf(-6.0 + f64::from(step) / 4.0));
            let points = rates.map(|rate| (rate, 1e6 * versus.with_errors(rate)[i]));
            figures.put_curve(format!("errors/{}/{}", radio.name, scheme.name()), points.collect());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use thinair_link::energy::{CC2538, Usage};
    use thinair_link::{BitErrorModel, ConstrainedLink, Integrity, LinkEvent, LinkModel, Probability, Side};
    use thinair_wire::time::Instant;

    use super::*;
    use crate::form::Published;
    use crate::paper::{Findings, RunPlan};
    use crate::row::FigureRow;

    fn found(seed: u64, threads: usize) -> Findings {
        PAPER.run(&RunPlan { seed, threads, ..RunPlan::default() }, &|_, _| Ok(())).unwrap()
    }

    fn figure(found: &Findings, id: &str) -> f64 {
        let row = found.rows.iter().find(|row| row.id() == id);
        row.unwrap_or_else(|| panic!("no row {id}")).ours().unwrap()
    }

    #[test]
    fn the_paper_comes_out_and_all_bars_are_met() {
        let found = found(1, 2);
        assert_eq!(found.missed().map(FigureRow::id).collect::<Vec<_>>(), [""; 0]);
        let ids: BTreeSet<_> = found.rows.iter().map(FigureRow::id).collect();
        assert_eq!(ids.len(), found.rows.len());
        // Arithmetic on constants of the paper gives its figures, within their rounding, and is held to no bar.
        let published = Published::read(PAPER.published).unwrap();
        for (name, rounding) in [
            ("extra", 0.05),
            ("increase", 0.1),
            ("measured-increase", 0.05),
            ("break-even", 0.0),
            ("airtime/uncompressed", 0.05),
            ("airtime/compressed", 0.05),
        ] {
            let id = format!("published/{name}");
            let apart = (figure(&found, &id) - published.theirs(&id).unwrap()).abs();
            assert!(apart <= rounding, "{id}: {apart}");
        }
        assert!(found.rows.iter().all(|row| row.bar().is_none() || !row.id().starts_with("published/")));
        assert_eq!(figure(&found, "round-trip/not-exact"), 0.0);
        // “A sixtieth”, “7 % more over IPv4, 2 % over IPv6”.
        let share = figure(&found, "published/extra") / figure(&found, "published/by-instructions");
        assert!((50.0..70.0).contains(&share), "{share}");
        assert!((6.5..7.5).contains(&figure(&found, "802.11g/v4/break-even-loss")));
        assert!((1.5..2.5).contains(&figure(&found, "802.11g/v6/break-even-loss")));
        // 37 and 51 octets, and 31 in each of the two frames, at 32 us; two acknowledgements.
        let plain = (68.0 * 0.032 + 0.352) * 72.0 + (82.0 * 0.032 + 0.352) * 60.0;
        assert!((figure(&found, "802.15.4/v4/plain/airtime") - plain).abs() < 0.01);
        // Of 88 octets 21 are left, but headers and acknowledgements of the link remain.
        assert!((30.0..40.0).contains(&figure(&found, "802.15.4/v4/saving")));
    }

    #[test]
    fn a_seed_determines_every_figure_whatever_the_threads() {
        assert_eq!(found(7, 1).rows, found(7, 3).rows);
    }

    /// The formula for repetitions agrees with a link that repeats: 802.15.4 at a bit error rate of 10^-3.
    #[test]
    fn what_errors_cost_is_what_a_link_in_time_makes_of_them() {
        let rate = Probability::from_ppm(1_000).unwrap();
        let mut model = CC2538.link.model;
        for direction in [&mut model.a_to_b, &mut model.b_to_a] {
            direction.bit_errors = BitErrorModel::Random(rate);
            direction.integrity = Integrity::Modelled { width: 64 };
        }
        let course = Course::measure(TrafficVersion::V4, EnergyScheme::Plain, 1).unwrap();
        let exchange = course.settled()[0];
        let (spent, completed) = carried(&model, &exchange, 20_000);
        let mean = spent.as_joules() / f64::from(completed);
        let versus = Versus { radio: CC2538, plain: &course, compressed: &course };
        let [formula, _] = versus.with_errors(1e-3);
        // The deviation of an exchange is about its mean, so 4 deviations of the mean are 4 %.
        assert!((mean / formula - 1.0).abs() < 0.04, "{mean} of {formula}, {completed} completed");
    }

    /// Energy of this many attempts, and the number of those that were answered.
    fn carried(
        model: &LinkModel<'static>,
        exchange: &exchange::ExchangeLoad,
        attempts: u64,
    ) -> (Energy, u32) {
        let mut link = ConstrainedLink::<Vec<u8>>::new(model, 3);
        let (mut usage, mut completed) = (Usage::default(), 0);
        for attempt in 0..attempts {
            let now = Instant::from_millis(attempt * 1_000);
            link.offer(now, Side::A, vec![0; exchange.request]).unwrap();
            CC2538.sends(&mut usage, exchange.request);
            while let Some(at) = link.poll_at() {
                match link.poll(at) {
                    Some(LinkEvent::Delivered { to: Side::B, .. }) => {
                        CC2538.receives(&mut usage, exchange.response);
                        link.offer(at, Side::B, vec![0; exchange.response]).unwrap();
                    }
                    Some(LinkEvent::Delivered { to: Side::A, .. }) => completed += 1,
                    Some(LinkEvent::Dropped { .. }) | None => {}
                }
            }
        }
        (CC2538.spends(&usage, &radios::CPU, 0).airtime(), completed)
    }
}
