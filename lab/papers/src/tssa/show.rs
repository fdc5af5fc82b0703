//! The rows as tables and plots.

use thinair_lab::csma::Point as Size;
use thinair_report::{Axis, Cell, Column, Figure, Lines, Point, Section, Series, Shape, Table};

use super::cell::{
    BASE, Control, ELSEWHERE, HIDDEN, REAL, SIZES, STEPS, Sample, Setting, TURNED, WINDOW4, ambiguities, id,
    written,
};
use super::rows::best;
use super::{
    AMBIGUOUS, DMSS_RATES, DMSS_WAYS, OUTSIDE, Results, model, rates, rates_elsewhere, rates_of_real,
    rates_of_window_4,
};
use crate::row::Row;

pub(super) fn sections(results: &Results, rows: &[Row], quick: bool) -> Vec<Section> {
    let shown = Shown { results, rows };
    let mut sections = vec![
        Section::new("Checks: analysis and ns-3").table(shown.checks()).table(Shown::equations()),
        Section::new("Fixed sizes (figures 3 to 5)")
            .text(
                "Theirs: collisions are many at MSS 512, most at the nodes near the source; simulation and analysis agree at 64 and \
                differ at 512; long segments are cheaper up to 1e-4 and grow exponentially beyond.",
            )
            .table(shown.collisions(rates(quick)))
            .table(shown.fixed(&BASE, rates(quick)))
            .figure(shown.plot("Energy of fixed sizes", "energy", "J", &BASE, rates(quick), &["64", "512", "1024"], |sample| sample.energy)),
        Section::new("TSSA and DMSS (figures 6 and 7)")
            .text("Theirs: TSSA below DMSS from 1e-5 to 4e-4, 15 to 40 % less time, alike outside. Means with their interval of 95 %.")
            .table(shown.controls(&BASE, rates(quick)))
            .table(shown.totals(rates(quick)))
            .figure(shown.plot("Energy", "energy", "J", &BASE, rates(quick), &CONTROLS, |sample| sample.energy))
            .figure(shown.plot("Duration", "duration", "s", &BASE, rates(quick), &CONTROLS, |sample| sample.duration))
            .figure(shown.plot("Bits sent by all nodes", "bits", "Mbit", &BASE, rates(quick), &CONTROLS, |sample| sample.bits / 1e6)),
        Section::new("Four segments under way")
            .table(shown.fixed(&WINDOW4, rates_of_window_4(quick)))
            .table(shown.controls(&WINDOW4, rates_of_window_4(quick))),
        Section::new("Real frames")
            .text(
                "The base set with every octet of RFC 4944: MAC headers of short addresses, IPv6, or LOWPAN_IPHC, or ROHC's profile 0x0006; \
                TCP is read again out of what has arrived. LOWPAN_IPHC goes by fragment forwarding, the others by mesh headers. All controls \
                are as they were.",
            )
            .table(shown.real("One segment under way", [&BASE].into_iter().chain(&REAL[0]), rates_of_real(quick)))
            .table(shown.real("Four segments under way", [&WINDOW4].into_iter().chain(&REAL[1]), rates_of_real(quick))),
        Section::new("Size over time")
            .text("The first time that a fixed transfer of the size in use would cost at most 10 % more than the best one.")
            .table(shown.convergence(rates(quick)))
            .figure(shown.sizes("Size at BER 2e-4", |control| id(&BASE, 2e-4, control))),
    ];
    if quick {
        return sections;
    }
    let turned = TURNED.into_iter().filter(|setting| *setting != HIDDEN);
    let turned = turned.fold(Section::new("What the base set decides"), |section, setting| {
        section.table(shown.fixed(&setting, &[1e-5, 2e-4])).table(shown.controls(&setting, &[1e-5, 2e-4]))
    });
    let elsewhere = ELSEWHERE.into_iter().fold(
        Section::new("Adaptive where it was not tuned")
            .text("3 and 7 hops, 128 KiB, and nodes that sense one hop only."),
        |section, setting| section.table(shown.controls(&setting, rates_elsewhere(quick))),
    );
    sections.extend([
        Section::new("Outside of the range").table(shown.controls(&BASE, &OUTSIDE)),
        Section::new("What TSSA leaves open").table(shown.ambiguities()),
        Section::new("DMSS three ways")
            .text("Its error rate by frames that were not acknowledged, as a radio without collisions would have it, and by segments.")
            .table(shown.dmss()),
        turned,
        elsewhere,
        Section::new("A rate that steps")
            .text(format!("1 MiB at 1e-5; 3e-4 from {} s to {} s.", STEPS[0].as_secs(), STEPS[1].as_secs()))
            .table(shown.stepped())
            .figure(shown.sizes("Size while the rate steps", |control| format!("stepped/{control}"))),
    ]);
    sections
}

const CONTROLS: [&str; 3] = ["tssa", "dmss", "adaptive"];

struct Shown<'a> {
    results: &'a Results,
    rows: &'a [Row],
}

fn number(value: Option<f64>, decimals: u8) -> Cell {
    value.filter(|value| value.is_finite()).map_or(Cell::Empty, |value| Cell::number(value, decimals))
}

impl Shown<'_> {
    /// A row's figure, and whether it meets its bar.
    fn verdict(&self, id: &str, decimals: usize) -> Cell {
        let Some(row) = self.rows.iter().find(|row| row.id() == id) else { return Cell::Empty };
        let Some(ours) = row.ours() else { return Cell::text("not finished") };
        let sign = match row.bar() {
            None => "",
            Some(_) if row.met() => " ✓",
            Some(_) => " ✗",
        };
        Cell::text(format!("{ours:.decimals$}{sign}"))
    }

    /// The same, with half of its interval, which is a row of its own.
    fn with_half(&self, id: &str, decimals: usize) -> Cell {
        let half =
            self.rows.iter().find(|row| row.id().strip_suffix("-half") == Some(id)).and_then(Row::ours);
        let row = self.rows.iter().find(|row| row.id() == id);
        match (half, row.and_then(|row| Some((row.ours()?, row.bar().map(|_| row.met()))))) {
            (Some(half), Some((ours, met))) => {
                let sign = met.map_or("", |met| if met { " ✓" } else { " ✗" });
                Cell::text(format!("{ours:.decimals$} ± {half:.decimals$}{sign}"))
            }
            _ => self.verdict(id, decimals),
        }
    }

    fn estimate(&self, cell: &str, decimals: usize, of: impl Fn(&Sample) -> f64) -> Cell {
        match self.results.summary(cell, of) {
            Some(summary) => match summary.half {
                Some(half) => Cell::text(format!("{:.decimals$} ± {half:.decimals$}", summary.mean)),
                None => Cell::text(format!("{:.decimals$}", summary.mean)),
            },
            None if self.results.samples(cell).is_empty() => Cell::Empty,
            None => Cell::text("not finished"),
        }
    }

    fn checks(&self) -> Table {
        let columns = [
            Column::number("MSS"),
            Column::number("no errors").unit("J"),
            Column::number("analysis").unit("J"),
            Column::number("frames"),
            Column::number("ns-3"),
            Column::number("overhearing").unit("J"),
            Column::number("ns-3").unit("J"),
        ];
        let mut table = Table::new("What must agree", columns);
        for (mss, frames, energy) in super::rows::OF_NS3 {
            table.row([
                Cell::integer(mss),
                self.verdict(&format!("base/0e0/{mss}/energy"), 2),
                Cell::number(model::energy(0.0, mss, 512 * 1_024, 5), 2),
                self.verdict(&format!("ns3/1e-5/{mss}/frames"), 0),
                Cell::number(frames, 0),
                self.verdict(&format!("ns3/1e-5/{mss}/energy"), 2),
                Cell::number(energy, 1),
            ]);
        }
        table
    }

    fn equations() -> Table {
        let columns = [
            Column::text("BER"),
            Column::number("MSS"),
            Column::number("FER, full frame").unit("%"),
            Column::number("SER, equation 2").unit("%"),
            Column::number("as printed").unit("%"),
        ];
        let mut table = Table::new("Equations 1 and 2, without retransmissions", columns);
        for rate in [1e-5, 1e-4, 1e-3] {
            for mss in [64, 512, 1_024] {
                table.row([
                    Cell::text(written(rate)),
                    Cell::integer(mss),
                    Cell::number(100.0 * model::frame_error_rate(rate, 127), 2),
                    Cell::number(100.0 * model::segment_error_rate(rate, mss), 2),
                    Cell::number(100.0 * model::as_printed(rate, mss), 2),
                ]);
            }
        }
        table
    }

    fn collisions(&self, rates: &[f64]) -> Table {
        let columns = [Column::text("set"), Column::text("BER"), Column::number("MSS")];
        let nodes = (1..=6).map(|node| Column::number(format!("node {node}")));
        let mut table =
            Table::new("Collisions at each node, by run (figure 3)", columns.into_iter().chain(nodes));
        for setting in [BASE, HIDDEN] {
            let Some(rate) = rates.first() else { continue };
            for mss in ["64", "512"] {
                let samples = self.results.samples(&id(&setting, *rate, mss));
                let mean = |node: usize| {
                    let count = samples.len() as f64;
                    let all: f64 = samples.iter().filter_map(|sample| sample.collisions.get(node)).sum();
                    number(Some(all / count), 0)
                };
                let name = [Cell::text(setting.name), Cell::text(written(*rate)), Cell::text(mss)];
                table.row(name.into_iter().chain((0..6).map(mean)));
            }
        }
        table
    }

    fn fixed(&self, setting: &Setting, rates: &[f64]) -> Table {
        let columns = [Column::text("BER")];
        let sizes = SIZES.map(|size| Column::number(size.to_string()).unit("J"));
        let rest = [Column::number("analysis, 64").unit("J"), Column::number("analysis, 512").unit("J")];
        let mut table = Table::new(
            format!("Energy by MSS: {}", setting.name),
            columns.into_iter().chain(sizes).chain(rest),
        );
        for rate in rates {
            let cells = SIZES
                .map(|size| self.estimate(&id(setting, *rate, &size.to_string()), 2, |sample| sample.energy));
            let analysis = [64, 512].map(|mss| {
                Cell::number(model::energy(*rate, mss, setting.kib * 1_024, setting.hops.into()), 2)
            });
            table.row([Cell::text(written(*rate))].into_iter().chain(cells).chain(analysis));
        }
        table.note("Analysis: without collisions, each frame sent up to four times at a hop.")
    }

    fn controls(&self, setting: &Setting, rates: &[f64]) -> Table {
        let columns = [
            Column::text("BER"),
            Column::number("TSSA").unit("J"),
            Column::number("DMSS").unit("J"),
            Column::number("Adaptive").unit("J"),
            Column::number("best size"),
            Column::number("above best").unit("%"),
            Column::number("above TSSA").unit("%"),
            Column::number("TSSA").unit("s"),
            Column::number("DMSS").unit("s"),
            Column::number("Adaptive").unit("s"),
            Column::number("TSSA - DMSS, 95 %").unit("J"),
            Column::number("TSSA - DMSS, time").unit("%"),
            Column::number("size TSSA"),
            Column::number("size Adaptive"),
        ];
        let mut table = Table::new(format!("Controls: {}", setting.name), columns);
        for rate in rates {
            let of = |control: &str| id(setting, *rate, control);
            let energy = |control| self.estimate(&of(control), 2, |sample| sample.energy);
            let duration = |control| self.estimate(&of(control), 0, |sample| sample.duration);
            let best = best(self.results, setting.name, Some(*rate));
            table.row([
                Cell::text(written(*rate)),
                energy("tssa"),
                energy("dmss"),
                energy("adaptive"),
                best.map_or(Cell::Empty, |(size, _)| Cell::integer(size)),
                self.verdict(&format!("{}/above-best", of("adaptive")), 1),
                self.verdict(&format!("{}/above-tssa", of("adaptive")), 1),
                duration("tssa"),
                duration("dmss"),
                duration("adaptive"),
                self.verdict(&format!("{}/energy-above-dmss", of("tssa")), 2),
                self.with_half(&format!("{}/duration-above-dmss", of("tssa")), 1),
                self.estimate(&of("tssa"), 0, |sample| sample.mean_size),
                self.estimate(&of("adaptive"), 0, |sample| sample.mean_size),
            ]);
        }
        table
    }

    /// What headers make of controls.
    fn real<'s>(
        &self,
        title: &str,
        settings: impl Iterator<Item = &'s Setting> + Clone,
        rates: &[f64],
    ) -> Table {
        const CONTROLS: [&str; 6] = ["64", "512", "1024", "tssa", "dmss", "adaptive"];
        let energies = CONTROLS.map(|control| Column::number(control).unit("J"));
        let rest = [
            Column::number("best size"),
            Column::number("Adaptive above it").unit("%"),
            Column::number("tssa").unit("s"),
            Column::number("adaptive").unit("s"),
        ];
        let columns = [Column::text("BER"), Column::text("headers")].into_iter().chain(energies).chain(rest);
        let mut table = Table::new(title, columns);
        for rate in rates {
            for setting in settings.clone() {
                let of = |control: &str| id(setting, *rate, control);
                let energies = CONTROLS.map(|control| self.estimate(&of(control), 2, |sample| sample.energy));
                let best = best(self.results, setting.name, Some(*rate));
                let rest = [
                    best.map_or(Cell::Empty, |(size, _)| Cell::integer(size)),
                    self.verdict(&format!("{}/above-best", of("adaptive")), 1),
                    self.estimate(&of("tssa"), 0, |sample| sample.duration),
                    self.estimate(&of("adaptive"), 0, |sample| sample.duration),
                ];
                let names = [Cell::text(written(*rate)), Cell::text(setting.headers.name())];
                table.row(names.into_iter().chain(energies).chain(rest));
            }
        }
        table
    }

    /// Three energies, which may not be mixed, and all bits.
    fn totals(&self, rates: &[f64]) -> Table {
        let columns = [
            Column::text("BER"),
            Column::text("control"),
            Column::number("airtime").unit("J"),
            Column::number("with overhearing").unit("J"),
            Column::number("with waiting").unit("J"),
            Column::number("sent").unit("Mbit"),
            Column::number("frames"),
        ];
        let mut table = Table::new("Three energies, and all bits sent", columns);
        for rate in rates {
            for control in ["64", "512", "1024", "tssa", "dmss", "adaptive"] {
                let cell = id(&BASE, *rate, control);
                let mean = |of: fn(&Sample) -> f64| self.results.mean(&cell, of);
                let airtime = match mean(|sample| sample.energy) {
                    None => Cell::text("not finished"),
                    airtime => number(airtime, 2),
                };
                table.row([
                    Cell::text(written(*rate)),
                    Cell::text(control),
                    airtime,
                    number(mean(|sample| sample.overhearing), 2),
                    number(mean(|sample| sample.idle), 1),
                    number(mean(|sample| sample.bits / 1e6), 1),
                    number(mean(|sample| sample.frames), 0),
                ]);
            }
        }
        table.note("With waiting: receivers that never sleep, as the paper leaves them out.")
    }

    #[allow(clippy::too_many_arguments, reason = "a plot has as many words")]
    fn plot(
        &self,
        title: &str,
        label: &str,
        unit: &str,
        setting: &Setting,
        rates: &[f64],
        controls: &[&str],
        of: impl Fn(&Sample) -> f64,
    ) -> Figure {
        let axes = (Axis::new("bit error rate").logarithmic(), Axis::new(label).unit(unit));
        let plot = controls.iter().fold(Lines::new(axes.0, axes.1), |plot, control| {
            let points = rates.iter().filter_map(|rate| {
                let summary = self.results.summary(&id(setting, *rate, control), &of)?;
                let interval = summary.half.map(|half| (summary.mean - half, summary.mean + half));
                Some(Point { x: *rate, y: summary.mean, interval })
            });
            plot.series(Series { name: (*control).into(), points: points.collect(), shape: Shape::Straight })
        });
        Figure::new(title, plot)
    }

    fn sizes(&self, title: &str, cell: impl Fn(&str) -> String) -> Figure {
        let axes = (Axis::new("time").unit("s"), Axis::new("size").unit("octets"));
        let plot = CONTROLS.iter().fold(Lines::new(axes.0, axes.1), |plot, control| {
            let Some(sample) = self.results.samples(&cell(control)).first() else { return plot };
            let last = sample.sizes.last().map(|last| (sample.duration, f64::from(last.size)));
            let points =
                sample.sizes.iter().map(|point| (point.at.as_secs_f64(), f64::from(point.size))).chain(last);
            plot.series(Series::new(*control, points).step())
        });
        Figure::new(title, plot)
    }

    /// What a transfer with a size in between would cost, by the fixed ones on either side; nothing if those do not finish.
    fn cost(&self, rate: f64, size: u16) -> Option<f64> {
        let cost = |size: u16| self.results.mean(&id(&BASE, rate, &size.to_string()), |sample| sample.energy);
        let below = SIZES.into_iter().rfind(|other| *other <= size)?;
        let above = SIZES.into_iter().find(|other| *other >= size)?;
        let share = if above > below { f64::from(size - below) / f64::from(above - below) } else { 0.0 };
        Some(cost(below)? * (1.0 - share) + cost(above)? * share)
    }

    fn convergence(&self, rates: &[f64]) -> Table {
        let columns = [
            Column::text("BER"),
            Column::number("TSSA").unit("s"),
            Column::number("after").unit("KiB"),
            Column::number("changes"),
            Column::number("Adaptive").unit("s"),
            Column::number("after").unit("KiB"),
            Column::number("changes"),
        ];
        let mut table = Table::new("Until within 10 % of the best, mean of the first runs", columns);
        for rate in rates {
            let Some((_, least)) = best(self.results, BASE.name, Some(*rate)) else { continue };
            let found = |control: &str| {
                let near =
                    |point: &Size| self.cost(*rate, point.size).is_some_and(|cost| cost <= 1.1 * least);
                let samples = self.results.samples(&id(&BASE, *rate, control));
                let firsts: Vec<_> = samples
                    .iter()
                    .filter_map(|sample| {
                        let at = sample.sizes.iter().position(near)?;
                        let point = sample.sizes.get(at)?;
                        Some((point.at.as_secs_f64(), point.acknowledged as f64 / 1_024.0, at as f64))
                    })
                    .collect();
                let mean = |of: fn(&(f64, f64, f64)) -> f64| {
                    number(Some(firsts.iter().map(of).sum::<f64>() / firsts.len() as f64), 1)
                };
                [mean(|first| first.0), mean(|first| first.1), mean(|first| first.2)]
            };
            table.row([Cell::text(written(*rate))].into_iter().chain(found("tssa")).chain(found("adaptive")));
        }
        table
    }

    fn ambiguities(&self) -> Table {
        let columns = AMBIGUOUS.into_iter().flat_map(|rate| {
            [
                Column::number(format!("{rate:e}")).unit("J"),
                Column::number(format!("{rate:e}")).unit("s"),
                Column::number("above DMSS").unit("%"),
            ]
        });
        let mut table =
            Table::new("Turned, one at a time", [Column::text("what")].into_iter().chain(columns));
        let as_chosen = ("as chosen", Control::tssa());
        for (name, control) in [as_chosen].into_iter().chain(ambiguities()) {
            let cells = AMBIGUOUS.into_iter().flat_map(|rate| {
                let cell = id(&BASE, rate, &control.name);
                [
                    self.estimate(&cell, 2, |sample| sample.energy),
                    self.estimate(&cell, 0, |sample| sample.duration),
                    self.verdict(&format!("{cell}/duration-above-dmss"), 1),
                ]
            });
            table.row([Cell::text(name)].into_iter().chain(cells));
        }
        table.note("As chosen: S_MAX 10, steps of 106, start at 64, half is left after the first loss, two losses until the size changes.")
    }

    fn dmss(&self) -> Table {
        let columns = DMSS_WAYS.map(|(name, ..)| Column::number(name).unit("J"));
        let all = [Column::text("BER")].into_iter().chain(columns);
        let mut table =
            Table::new("Energy of DMSS by how it measures", all.chain([Column::number("TSSA").unit("J")]));
        for rate in DMSS_RATES {
            let names = DMSS_WAYS.map(|(name, ..)| name).into_iter().chain(["tssa"]);
            let cells = names.map(|name| self.estimate(&id(&BASE, rate, name), 2, |sample| sample.energy));
            table.row([Cell::text(written(rate))].into_iter().chain(cells));
        }
        table
    }

    fn stepped(&self) -> Table {
        let columns = [
            Column::text("control"),
            Column::number("energy").unit("J"),
            Column::number("duration").unit("s"),
        ];
        let mut table = Table::new("1 MiB while the rate steps", columns);
        for control in Control::all(1e-5) {
            let cell = format!("stepped/{}", control.name);
            table.row([
                Cell::text(control.name),
                self.estimate(&cell, 2, |sample| sample.energy),
                self.estimate(&cell, 0, |sample| sample.duration),
            ]);
        }
        table
    }
}
