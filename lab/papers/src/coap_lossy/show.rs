//! The rows as tables and plots.

use thinair_report::{Axis, Cell, Column, Figure, Lines, Point, Section, Series, Shape, Table};

use super::Results;
use super::cell::{self, Errors, Profile, Rate, Sample, Way};
use super::published;
use crate::row::Row;

pub(super) fn sections(results: &Results, rows: &[Row]) -> Vec<Section> {
    let shown = Shown { results, rows };
    let tables = Section::new("20 exchanges at 10^-3 (tables V and VI)")
        .text("Mean, and in brackets what 95 % of runs of 20 lie in; given up, of 20. Min and max are those of all our runs.")
        .table(shown.of_20("Table V: bidirectional", Way::Bi))
        .table(shown.of_20("Table VI: unidirectional", Way::Uni))
        .text(
            "The paper's uncompressed row owes much to its tunnel's counter: with independent errors its 22 s are out of \
                reach.",
        )
        .table(shown.text());
    let truth = Section::new("Many exchanges").text(
        "Mean with its interval of 95 %. ✓ and ✗: whether the bar is met; without either there is none.",
    );
    let truth = Errors::ALL.into_iter().fold(truth, |section, errors| section.table(shown.rtt(errors)));
    let truth = Errors::ALL.into_iter().fold(truth, |section, errors| section.table(shown.give_ups(errors)));
    let truth = truth.table(shown.ratio());
    let plots = Errors::ALL.into_iter().fold(
        Section::new("Over the bit error rate, bidirectional"),
        |section, errors| {
            let rtt = shown.plot(errors, "Mean time of an exchange", "s", Sample::rtt);
            let give_ups = shown.plot(errors, "Exchanges given up", "%", Sample::give_ups);
            section.figure(rtt).figure(give_ups)
        },
    );
    let cost = Section::new("What it costs")
        .text("Independent errors. IR and IR-DYN packets are those that set up and refresh contexts.")
        .table(shown.cost(Way::Bi))
        .table(shown.cost(Way::Uni))
        .table(shown.clock());
    vec![tables, truth, plots, cost]
}

struct Shown<'a> {
    results: &'a Results,
    rows: &'a [Row],
}

fn number(value: Option<f64>, decimals: u8) -> Cell {
    value.filter(|value| value.is_finite()).map_or(Cell::Empty, |value| Cell::number(value, decimals))
}

fn id(profile: Profile, way: Way, rate: Rate, errors: Errors) -> String {
    cell::Cell { profile, way, rate, errors, exchanges: 0, runs: 0 }.id()
}

impl Shown<'_> {
    /// Whether the bar of a row is met, if it has one.
    fn sign(&self, id: &str) -> &'static str {
        match self.rows.iter().find(|row| row.id() == id).filter(|row| row.bar().is_some()) {
            None => "",
            Some(row) if row.met() => " ✓",
            Some(_) => " ✗",
        }
    }

    /// A mean of long runs with its interval.
    fn mean(&self, id: &str, name: &str, of: fn(&Sample) -> Option<f64>) -> Cell {
        let Some(mean) = of(&self.results.long(id)) else { return Cell::Empty };
        let half = self.results.half(id, of).map_or(String::new(), |half| format!(" ± {half:.3}"));
        Cell::text(format!("{mean:.3}{half}{}", self.sign(&format!("{id}/{name}"))))
    }

    /// A mean of runs of 20, and how they spread.
    fn spread(&self, id: &str) -> Cell {
        let (Some(mean), Some((low, high))) =
            (self.results.of_20(id).rtt(), self.results.band(id, Sample::rtt))
        else {
            return Cell::Empty;
        };
        Cell::text(format!("{mean:.3} ({low:.3} to {high:.3})"))
    }

    fn of_20(&self, title: &str, way: Way) -> Table {
        let mut columns = vec![Column::text("")];
        columns.extend(Profile::ALL.map(|profile| Column::number(profile.name())));
        let mut table = Table::new(title, columns);
        let theirs = |of: fn(&published::Column) -> Cell| {
            Profile::ALL.map(|profile| published::table(profile, way).as_ref().map_or(Cell::Empty, of))
        };
        let mut row = |title: &str, cells: [Cell; 5]| {
            table.row(std::iter::once(Cell::text(title)).chain(cells));
        };
        row("mean, theirs, s", theirs(|theirs| Cell::number(theirs.mean, 3)));
        for errors in Errors::ALL {
            let title = format!("{}, s", errors.name());
            row(&title, Profile::ALL.map(|profile| self.spread(&id(profile, way, Rate::OF_TABLES, errors))));
        }
        row(
            "min to max, theirs, s",
            theirs(|theirs| Cell::text(format!("{} to {}", theirs.min, theirs.max))),
        );
        for errors in Errors::ALL {
            let title = format!("{}, s", errors.name());
            row(
                &title,
                Profile::ALL.map(|profile| {
                    let sum = self.results.of_20(&id(profile, way, Rate::OF_TABLES, errors));
                    let text = |(min, max)| Cell::text(format!("{min:.3} to {max:.3}"));
                    sum.extremes.map_or(Cell::Empty, text)
                }),
            );
        }
        row("given up, theirs", theirs(|theirs| Cell::integer(theirs.dropped)));
        for errors in Errors::ALL {
            row(
                errors.name(),
                Profile::ALL.map(|profile| {
                    let id = id(profile, way, Rate::OF_TABLES, errors);
                    let given_up = self.results.of_20(&id).give_ups().map(|percent| percent / 5.0);
                    let band = self.results.band(&id, |sample| Some(sample.given_up));
                    match given_up.zip(band) {
                        Some((mean, (low, high))) => Cell::text(format!("{mean:.2} ({low} to {high})")),
                        None => Cell::Empty,
                    }
                }),
            );
        }
        table
    }

    /// What the text says of 10^-4.
    fn text(&self) -> Table {
        let mut columns = vec![Column::text("profile"), Column::number("theirs").unit("s")];
        columns.extend(Errors::ALL.map(|errors| Column::number(errors.name()).unit("s")));
        let mut table = Table::new("20 exchanges at 10^-4, bidirectional", columns);
        for profile in Profile::ALL {
            let ours = Errors::ALL.map(|errors| self.spread(&id(profile, Way::Bi, Rate::OF_TEXT, errors)));
            let first = [Cell::text(profile.name()), number(published::at_1e_4(profile), 3)];
            table.row(first.into_iter().chain(ours));
        }
        table
    }

    fn by_rate(&self, title: String, of: impl Fn(Profile, Way, Rate) -> Cell) -> Table {
        let mut columns = vec![Column::text("profile"), Column::text("mode")];
        columns.extend(Rate::ALL.map(|rate| Column::number(rate.name())));
        let mut table = Table::new(title, columns);
        for profile in Profile::ALL {
            for way in Way::ALL {
                let cells = Rate::ALL.map(|rate| of(profile, way, rate));
                table.row([Cell::text(profile.name()), Cell::text(way.name())].into_iter().chain(cells));
            }
        }
        table
    }

    fn rtt(&self, errors: Errors) -> Table {
        self.by_rate(format!("Mean time of an exchange in s, {}", errors.name()), |profile, way, rate| {
            self.mean(&id(profile, way, rate, errors), "rtt", Sample::rtt)
        })
    }

    fn give_ups(&self, errors: Errors) -> Table {
        self.by_rate(format!("Exchanges given up in %, {}", errors.name()), |profile, way, rate| {
            self.mean(&id(profile, way, rate, errors), "give-ups", Sample::give_ups)
        })
    }

    fn ratio(&self) -> Table {
        let mut columns = vec![Column::text("errors"), Column::text("mode")];
        columns.extend(Rate::ALL.map(|rate| Column::number(rate.name())));
        let mut table = Table::new("Time of an exchange: uncompressed over coap", columns);
        for errors in Errors::ALL {
            for way in Way::ALL {
                let cells = Rate::ALL.map(|rate| {
                    let id = format!("ratio/{}/{}/{}", way.name(), rate.name(), errors.name());
                    let ours = self.rows.iter().find(|row| row.id() == id).and_then(Row::ours);
                    ours.map_or(Cell::Empty, |ours| Cell::text(format!("{ours:.2}{}", self.sign(&id))))
                });
                table.row([Cell::text(errors.name()), Cell::text(way.name())].into_iter().chain(cells));
            }
        }
        table
    }

    fn plot(
        &self,
        errors: Errors,
        title: &str,
        unit: &'static str,
        of: fn(&Sample) -> Option<f64>,
    ) -> Figure {
        let axes = (Axis::new("bit error rate").logarithmic(), Axis::new(title).unit(unit).logarithmic());
        let plot = Profile::ALL.into_iter().fold(Lines::new(axes.0, axes.1), |plot, profile| {
            let points = Rate::ALL.into_iter().filter_map(|rate| {
                let y = of(&self.results.long(&id(profile, Way::Bi, rate, errors)))?;
                // What did not happen has no place on such an axis.
                (y > 0.0).then_some(Point { x: rate.as_f64(), y, interval: None })
            });
            let series =
                Series { name: profile.name().into(), points: points.collect(), shape: Shape::Straight };
            if series.points.is_empty() { plot } else { plot.series(series) }
        });
        Figure::new(format!("{title}, {}", errors.name()), plot)
    }

    /// What a clock of refreshes does to coap.
    fn clock(&self) -> Table {
        let columns = [
            Column::text("refreshed"),
            Column::number("mean").unit("s"),
            Column::number("given up").unit("%"),
            Column::number("IR, IR-DYN").unit("%"),
        ];
        let mut table = Table::new("coap, unidirectional, BER 1e-3, independent", columns);
        for (name, way) in [
            ("every 1,700 packets", Way::Uni),
            ("every 1,024 packets or 16 s, sooner at first", Way::UniClock),
        ] {
            let id = id(Profile::Coap, way, Rate::OF_TABLES, Errors::Iid);
            table.row([
                Cell::text(name),
                self.mean(&id, "rtt", Sample::rtt),
                self.mean(&id, "give-ups", Sample::give_ups),
                number(self.results.long(&id).refreshes(), 2),
            ]);
        }
        table
    }

    fn cost(&self, way: Way) -> Table {
        let columns = [
            Column::text("profile"),
            Column::number("BER"),
            Column::number("octets of an exchange"),
            Column::number("of them feedback"),
            Column::number("IR, IR-DYN").unit("%"),
            Column::number("in vain").unit("%"),
            Column::number("retransmissions"),
            Column::number("energy").unit("mJ"),
        ];
        let title = match way {
            Way::Bi => "Bidirectional",
            Way::Uni => "Unidirectional",
            Way::UniClock => "Unidirectional, refreshed by the clock, too",
        };
        let mut table = Table::new(title, columns);
        for profile in Profile::ALL {
            for rate in Rate::ALL {
                let sum = self.results.long(&id(profile, way, rate, Errors::Iid));
                table.row([
                    Cell::text(profile.name()),
                    Cell::text(rate.name()),
                    number(sum.octets(), 1),
                    number(sum.feedback(), 2),
                    number(sum.refreshes(), 2),
                    number(sum.not_decompressed(), 2),
                    number(sum.retransmissions(), 3),
                    number(sum.energy(), 3),
                ]);
            }
        }
        table
    }
}
