//! `coap-energy`: what an exchange of CoAP costs a device in energy, and whether compression pays, on four kinds of
//! radios.

mod exchange;
mod published;
mod radios;
mod show;

use thinair_link::energy::{Energy, Radio, Spent};

use exchange::{Course, EXCHANGES, Scheme};
use radios::{RADIOS, Versus};

use crate::paper::{About, Error, Findings, Paper, Plan, Progress};
use crate::row::{Bar, Row};
use crate::sweep::sweep;
use crate::traffic::Version;

/// The evaluation.
#[derive(Debug)]
pub(crate) struct CoapEnergy;

impl Paper for CoapEnergy {
    fn about(&self) -> About {
        About::read("coap-energy", include_str!("coap_energy/paper.md"))
    }

    fn run(&self, plan: &Plan, progress: Progress<'_>) -> Result<Findings, Error> {
        let jobs: Vec<_> = Version::ALL
            .into_iter()
            .flat_map(|version| Scheme::ALL.map(|scheme| (version, scheme)))
            .collect();
        let courses = sweep(
            &jobs,
            plan.threads,
            progress,
            |_| EXCHANGES as u64,
            |&(version, scheme)| Course::measure(version, scheme, plan.seed),
        )?;
        let published = published::rows();
        let ours = show::sections(&published, &courses);
        let mut rows = published;
        for version in Version::ALL {
            let courses: Vec<_> =
                courses.iter().filter(|course| course.version == version).cloned().collect();
            rows.extend(RADIOS.iter().flat_map(|radio| totals(radio, &courses)));
            rows.extend(RADIOS.iter().flat_map(|radio| verdicts(radio, &courses)));
        }
        rows.push(
            Row::new(
                "round-trip/not-exact",
                "packets that did not come back as they were",
                "packets",
                courses.iter().map(|course| course.not_exact).sum::<u64>() as f64,
            )
            .at_most(0.0),
        );
        Ok(Findings { rows, ours, left_out: Vec::new() })
    }
}

/// The three totals of each scheme.
fn totals(radio: &Radio, courses: &[Course]) -> Vec<Row> {
    type Total = fn(&Spent) -> Energy;
    const TOTALS: [(&str, &str, Total); 3] = [
        ("airtime", "airtime and CPU", Spent::airtime),
        ("overhearing", "and overhearing", Spent::with_overhearing),
        ("idle", "and overhearing and waiting", Spent::with_idle),
    ];
    let rows = courses.iter().flat_map(|course| {
        TOTALS.map(|(id, what, total)| {
            let scheme = course.scheme.name();
            Row::new(
                format!("{}/{}/{scheme}/{id}", radio.name, course.version.name()),
                format!("an exchange, {scheme}, over {}: {what}", radio.title),
                "uJ",
                1e6 * radios::mean(radio, course.settled(), total),
            )
        })
    });
    rows.collect()
}

/// Whether our profile pays.
fn verdicts(radio: &Radio, courses: &[Course]) -> Vec<Row> {
    let (Some(plain), Some(compressed)) =
        (radios::of(courses, Scheme::Plain), radios::of(courses, Scheme::Coap))
    else {
        return Vec::new();
    };
    let versus = Versus { radio: *radio, plain, compressed };
    let row = |id: &str, what: &str, unit, ours: Option<f64>| {
        Row::new(
            format!("{}/{}/{id}", radio.name, compressed.version.name()),
            format!("{what}, over {}", radio.title),
            unit,
            ours,
        )
    };
    let is_of_paper = *radio == RADIOS[0];
    let saving = row(
        "saving",
        "energy that profile coap saves of an exchange, by airtime and CPU",
        "%",
        Some(100.0 * versus.saving()),
    );
    vec![
        row(
            "octets-saved",
            "octets that profile coap saves of an exchange",
            "octets",
            Some(versus.octets_saved()),
        ),
        // Slower radios are what compression is for.
        if is_of_paper { saving } else { saving.within(Bar { min: Some(0.0), max: None }) },
        row(
            "break-even-loss",
            "exchanges that must be spared a repetition for profile coap to pay",
            "%",
            Some(100.0 * versus.break_even_loss()),
        )
        .theirs(is_of_paper.then_some(2.5)),
        row(
            "break-even-ber",
            "bit error rate from which profile coap pays, where it does not without errors",
            "",
            versus.break_even_rate(),
        ),
        row(
            "break-even-cpu",
            "energy of an instruction at which the saving of profile coap is gone",
            "nJ",
            versus.break_even_cpu(),
        ),
        row(
            "pays-after",
            "exchanges after which profile coap has cost less in all",
            "exchanges",
            versus.pays_after().map(|exchanges| exchanges as f64),
        ),
    ]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use thinair_link::energy::{CC2538, Usage};
    use thinair_link::{BitErrorModel, ConstrainedLink, Event, Integrity, LinkModel, Probability, Side};
    use thinair_wire::time::Instant;

    use super::*;

    fn found(seed: u64, threads: usize) -> Findings {
        CoapEnergy.run(&Plan { seed, threads, ..Plan::default() }, &|_, _| ()).unwrap()
    }

    fn figure(found: &Findings, id: &str) -> f64 {
        let row = found.rows.iter().find(|row| row.id() == id);
        row.unwrap_or_else(|| panic!("no row {id}")).ours().unwrap()
    }

    #[test]
    fn the_paper_comes_out_and_all_bars_are_met() {
        let found = found(1, 2);
        assert_eq!(found.missed().map(Row::id).collect::<Vec<_>>(), [""; 0]);
        let ids: BTreeSet<_> = found.rows.iter().map(Row::id).collect();
        assert_eq!(ids.len(), found.rows.len());
        assert_eq!(figure(&found, "published/extra"), 3.91);
        assert_eq!(figure(&found, "published/break-even"), 40.0);
        assert_eq!(figure(&found, "round-trip/not-exact"), 0.0);
        // “A fiftieth”, “5 % more over IPv4, no more over IPv6”.
        let share = figure(&found, "published/extra") / figure(&found, "published/by-instructions");
        assert!((45.0..60.0).contains(&share), "{share}");
        assert!((4.0..6.5).contains(&figure(&found, "802.11g/v4/break-even-loss")));
        assert!(figure(&found, "802.11g/v6/break-even-loss") < 0.0);
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

    /// The formula for repetitions against a link that carries them: 802.15.4 at a bit error rate of 10^-3.
    #[test]
    fn what_errors_cost_is_what_a_link_in_time_makes_of_them() {
        let rate = Probability::from_ppm(1_000).unwrap();
        let mut model = CC2538.link.model;
        for direction in [&mut model.a_to_b, &mut model.b_to_a] {
            direction.bit_errors = BitErrorModel::Random(rate);
            direction.integrity = Integrity::Modelled { width: 64 };
        }
        let course = Course::measure(Version::V4, Scheme::Plain, 1).unwrap();
        let exchange = course.settled()[0];
        let (spent, completed) = carried(&model, &exchange, 20_000);
        let mean = spent.as_joules() / f64::from(completed);
        let versus = Versus { radio: CC2538, plain: &course, compressed: &course };
        let [formula, _] = versus.with_errors(1e-3);
        // The deviation of an exchange is about its mean, so 4 deviations of the mean are 4 %.
        assert!((mean / formula - 1.0).abs() < 0.04, "{mean} of {formula}, {completed} completed");
    }

    /// What so many attempts cost, and how many of them were answered.
    fn carried(model: &LinkModel<'static>, exchange: &exchange::Exchange, attempts: u64) -> (Energy, u32) {
        let mut link = ConstrainedLink::<Vec<u8>>::new(model, 3);
        let (mut usage, mut completed) = (Usage::default(), 0);
        for attempt in 0..attempts {
            let now = Instant::from_millis(attempt * 1_000);
            link.offer(now, Side::A, vec![0; exchange.request]).unwrap();
            CC2538.sends(&mut usage, exchange.request);
            while let Some(at) = link.poll_at() {
                match link.poll(at) {
                    Some(Event::Delivered { to: Side::B, .. }) => {
                        CC2538.receives(&mut usage, exchange.response);
                        link.offer(at, Side::B, vec![0; exchange.response]).unwrap();
                    }
                    Some(Event::Delivered { to: Side::A, .. }) => completed += 1,
                    Some(Event::Dropped { .. }) | None => {}
                }
            }
        }
        (CC2538.spends(&usage, &radios::CPU, 0).airtime(), completed)
    }
}
