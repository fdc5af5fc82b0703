//! The rows as tables and plots.

use thinair_lab::plan::Sample;
use thinair_report::{Axis, Cell, Column, Figure, Lines, Point, Section, Series, Shape, Table};

use super::cell::{Access, Metric};
use super::published::{self, LOSSES};
use super::{
    CAPACITY, COMPRESSED, COMPRESSED_CROWDS, CROWDS, LONG, Results, conclusions, controls, crowd_controls,
};
use crate::row::Row;

pub(super) fn sections(results: &Results, rows: &[Row]) -> Vec<Section> {
    let shown = Shown { results, rows };
    let table1 = Section::new("Loss (table 1)")
        .text(
            "Means with their interval of 95 %. ✓ and ✗: whether the bar is met; without either there is none. Default: \
                fasor-quick, which is FASOR with less dither.",
        )
        .table(shown.table1(Access::Gprs))
        .table(shown.table1(Access::Wifi))
        .figure(shown.loss_plot(Access::Gprs))
        .figure(shown.loss_plot(Access::Wifi));
    let tables =
        Section::new("A download, and TCP (tables 2 and 3)").table(shown.table2()).table(shown.table3());
    let concluded = Section::new("What the paper concludes").table(conclusions::table(rows));
    let tail = Section::new("The longest exchange of a run")
        .text("Without jitter. Warm: with what a flow has learned that ended a second before.")
        .table(shown.worst(Access::Gprs))
        .table(shown.worst(Access::Wifi))
        .table(shown.nstart());
    let crowd = Section::new("Many clients on 20 kbit/s")
        .text("Each asks again as soon as it is answered. The uplink carries 67.6 requests a second.")
        .table(shown.crowd())
        .figure(shown.crowd_plot("Exchanges in a second", "1/s", |sample| sample.goodput_per_s))
        .figure(shown.crowd_plot("Transmissions for an exchange", "", |sample| sample.transmissions));
    let compressed = Section::new("Compressed headers")
        .text(
            "Both ends of the link compress, in O-mode: datagrams by the CoAP profile, segments by the IP profile. Octets are \
                those that the link was given, both ways.",
        )
        .table(shown.compressed())
        .table(shown.compressed_crowds());
    let long = Section::new("Long round trips, full queues, protected messages")
        .table(shown.long())
        .table(shown.queues())
        .table(shown.protection());
    vec![table1, tables, concluded, tail, crowd, compressed, long]
}

struct Shown<'a> {
    results: &'a Results,
    rows: &'a [Row],
}

fn number(value: Option<f64>, decimals: u8) -> Cell {
    value.filter(|value| value.is_finite()).map_or(Cell::Empty, |value| Cell::number(value, decimals))
}

const fn decimals(metric: Metric) -> u8 {
    match metric {
        Metric::Fct => 0,
        Metric::CRtt | Metric::Rtr => 1,
    }
}

impl Shown<'_> {
    fn row(&self, id: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.id() == id)
    }

    fn ours(&self, id: &str) -> Option<f64> {
        self.row(id)?.ours()
    }

    /// A mean with its interval, and whether it meets the bar of its row.
    fn verdict(&self, id: &str, cell: &str, decimals: u8, of: impl Fn(&Sample) -> Option<f64>) -> Cell {
        let Some(summary) = self.results.summary(cell, of) else { return Cell::Empty };
        let sign = match self.row(id).filter(|row| row.bar().is_some()) {
            None => "",
            Some(row) if row.met() => " ✓",
            Some(_) => " ✗",
        };
        let decimals = usize::from(decimals);
        let half = summary.half.map_or(String::new(), |half| format!(" ± {half:.decimals$}"));
        Cell::text(format!("{:.decimals$}{half}{sign}", summary.mean))
    }

    fn table1(&self, access: Access) -> Table {
        let mut columns = vec![Column::text(""), Column::number("added loss").unit("%")];
        columns.extend(
            ["RAW, theirs", "RAW, ours", "CoCoA, theirs", "CoCoA, ours", "default", "default, warm"]
                .map(Column::number),
        );
        let mut table = Table::new(access.title(), columns);
        for metric in Metric::ALL {
            for (loss, at) in LOSSES.into_iter().zip(0..) {
                let ours = |control: &str| {
                    let cell = format!("{}/{control}/{loss}", access.name());
                    let id = format!("{cell}/{}", metric.name());
                    self.verdict(&id, &cell, decimals(metric), |sample| metric.of(sample))
                };
                let theirs = |cocoa| {
                    let printed = published::table1(access, cocoa, metric)[at];
                    let mark = if published::not_reproducible(access, cocoa, metric, loss).is_some() {
                        " *"
                    } else {
                        ""
                    };
                    Cell::text(format!("{printed}{mark}"))
                };
                table.row([
                    Cell::text(format!("{}, {}", metric.title(), metric.unit())),
                    Cell::integer(loss),
                    theirs(false),
                    ours("raw"),
                    theirs(true),
                    ours("cocoa"),
                    ours("fasor-quick"),
                    ours("fasor-quick-warm"),
                ]);
            }
        }
        table.note("* cannot be had again: see “Why different”.")
    }

    fn loss_plot(&self, access: Access) -> Figure {
        let axes = (Axis::new("added loss").unit("%"), Axis::new("C-RTT").unit("ms"));
        let plot = controls().into_iter().fold(Lines::new(axes.0, axes.1), |plot, control| {
            let points = LOSSES.into_iter().filter_map(|loss| {
                let cell = format!("{}/{}/{loss}", access.name(), control.name);
                let summary = self.results.summary(&cell, |sample| sample.crtt_ms)?;
                let interval = summary.half.map(|half| (summary.mean - half, summary.mean + half));
                Some(Point { x: f64::from(loss), y: summary.mean, interval })
            });
            plot.series(Series {
                name: control.name.into(),
                points: points.collect(),
                shape: Shape::Straight,
            })
        });
        Figure::new(format!("{}: mean time of an exchange", access.title()), plot)
    }

    fn table2(&self) -> Table {
        let columns = [
            Column::text("beside a download"),
            Column::text("control"),
            Column::number("FCT, theirs").unit("ms"),
            Column::number("ours"),
            Column::number("C-RTT, theirs").unit("ms"),
            Column::number("ours"),
        ];
        let mut table = Table::new("Table 2", columns);
        for access in Access::ALL {
            for control in crowd_controls() {
                let cell = format!("{}/{}/download", access.name(), control.name);
                let theirs =
                    |metric: &str| number(self.row(&format!("{cell}/{metric}")).and_then(Row::stated), 1);
                let ours = |metric: Metric| {
                    self.verdict(&format!("{cell}/{}", metric.name()), &cell, 1, |sample| metric.of(sample))
                };
                table.row([
                    Cell::text(access.title()),
                    Cell::text(control.name),
                    theirs("fct"),
                    ours(Metric::Fct),
                    theirs("crtt"),
                    ours(Metric::CRtt),
                ]);
            }
        }
        table
    }

    fn table3(&self) -> Table {
        let columns = [
            Column::text("C-RTT, ms"),
            Column::number("added loss").unit("%"),
            Column::number("TCP, theirs"),
            Column::number("TCP, Nagle"),
            Column::number("TCP_NODELAY"),
            Column::number("UDP, CoCoA"),
            Column::number("UDP, default"),
        ];
        let mut table = Table::new("Table 3", columns);
        for access in Access::ALL {
            for (loss, at) in LOSSES.into_iter().zip(0..) {
                let ours = |name: &str| {
                    let cell = format!("{}/{name}/{loss}", access.name());
                    self.verdict(&format!("{cell}/crtt"), &cell, 1, |sample| sample.crtt_ms)
                };
                table.row([
                    Cell::text(access.title()),
                    Cell::integer(loss),
                    Cell::number(published::table3(access)[at], 0),
                    ours("tcp-nagle"),
                    ours("tcp-nodelay"),
                    ours("cocoa"),
                    ours("fasor-quick"),
                ]);
            }
        }
        table
    }

    fn worst(&self, access: Access) -> Table {
        let mut columns = vec![Column::text("control")];
        columns.extend(LOSSES.iter().flat_map(|loss| {
            [format!("C-RTT, +{loss} %"), format!("longest, +{loss} %")]
                .map(|title| Column::number(title).unit("ms"))
        }));
        let mut table = Table::new(access.title(), columns);
        for control in controls() {
            let cells = LOSSES.into_iter().flat_map(|loss| {
                let cell = format!("{}/{}/{loss}/steady", access.name(), control.name);
                [
                    self.results.mean(&cell, |sample| sample.crtt_ms),
                    self.results.mean(&cell, |sample| sample.worst_ms),
                ]
            });
            let cells: Vec<Cell> = cells.map(|value| number(value, 1)).collect();
            table.row(std::iter::once(Cell::text(control.name)).chain(cells));
        }
        table
    }

    fn nstart(&self) -> Table {
        let mut columns =
            vec![Column::text(""), Column::text("control"), Column::number("added loss").unit("%")];
        columns.extend(["NSTART 1", "NSTART 4", "open loop"].map(|title| Column::number(title).unit("ms")));
        let mut table = Table::new(
            "C-RTT by NSTART: requests that wait for others count from when they were made",
            columns,
        );
        for access in Access::ALL {
            for control in ["raw", "cocoa", "fasor"] {
                for loss in LOSSES {
                    let id = format!("{}/{control}/{loss}", access.name());
                    table.row([
                        Cell::text(access.title()),
                        Cell::text(control),
                        Cell::integer(loss),
                        number(self.ours(&format!("{id}/nstart-1/crtt")), 1),
                        number(self.ours(&format!("{id}/nstart-4/crtt")), 1),
                        number(self.ours(&format!("{id}/crtt")), 1),
                    ]);
                }
            }
        }
        table
    }

    fn crowd(&self) -> Table {
        let mut columns = vec![Column::number("clients")];
        columns.extend(crowd_controls().iter().flat_map(|control| {
            [format!("{}, 1/s", control.name), format!("{}, sent", control.name)].map(Column::number)
        }));
        let mut table = Table::new("Exchanges in a second, and transmissions for each", columns);
        for clients in CROWDS {
            let cells: Vec<Cell> = crowd_controls()
                .iter()
                .flat_map(|control| {
                    let cell = format!("crowd/{clients}/{}", control.name);
                    [
                        self.verdict(&format!("{cell}/goodput"), &cell, 1, |sample| sample.goodput_per_s),
                        self.verdict(&format!("{cell}/transmissions"), &cell, 2, |sample| {
                            sample.transmissions
                        }),
                    ]
                })
                .collect();
            if cells.iter().any(|cell| *cell != Cell::Empty) {
                table.row(std::iter::once(Cell::integer(clients)).chain(cells));
            }
        }
        table.note(format!("The link carries {CAPACITY:.1} requests a second."))
    }

    fn crowd_plot(&self, title: &str, unit: &'static str, of: fn(&Sample) -> Option<f64>) -> Figure {
        let y = Axis::new(title.to_owned());
        let y = if unit.is_empty() { y } else { y.unit(unit) };
        let plot = crowd_controls().into_iter().fold(Lines::new(Axis::new("clients"), y), |plot, control| {
            let points = CROWDS.into_iter().filter_map(|clients| {
                let y = self.results.mean(&format!("crowd/{clients}/{}", control.name), of)?;
                Some(Point { x: f64::from(clients), y, interval: None })
            });
            plot.series(Series {
                name: control.name.into(),
                points: points.collect(),
                shape: Shape::Straight,
            })
        });
        Figure::new(title.to_owned(), plot)
    }

    fn long(&self) -> Table {
        let mut columns = vec![Column::number("round trip").unit("s")];
        columns.extend(crowd_controls().map(|control| Column::number(control.name)));
        let mut table = Table::new("RTR in % where nothing is lost: what is sent again too early", columns);
        for seconds in LONG {
            let cells = crowd_controls().map(|control| {
                let cell = format!("rtt/{seconds}/{}", control.name);
                self.verdict(&format!("{cell}/rtr"), &cell, 1, |sample| sample.rtr_percent)
            });
            table.row(std::iter::once(Cell::integer(seconds)).chain(cells));
        }
        table
    }

    fn compressed(&self) -> Table {
        let columns = [
            Column::text(""),
            Column::text("control"),
            Column::number("added loss").unit("%"),
            Column::number("C-RTT").unit("ms"),
            Column::number("with ROHC").unit("ms"),
            Column::number("octets of an exchange"),
            Column::number("with ROHC"),
        ];
        let mut table = Table::new("Compressed headers", columns);
        for access in Access::ALL {
            for (name, loss) in COMPRESSED.into_iter().flat_map(|name| LOSSES.map(|loss| (name, loss))) {
                let plain = format!("{}/{name}/{loss}", access.name());
                let rohc = format!("{plain}/rohc");
                let mean = |id: &str, of: fn(&Sample) -> Option<f64>| number(self.results.mean(id, of), 1);
                let octets = |id: &str| match name.ends_with("-warm") {
                    true => Cell::Empty,
                    false => mean(id, |sample| sample.octets),
                };
                table.row([
                    Cell::text(access.title()),
                    Cell::text(name),
                    Cell::integer(loss),
                    mean(&plain, |sample| sample.crtt_ms),
                    mean(&rohc, |sample| sample.crtt_ms),
                    octets(&plain),
                    octets(&rohc),
                ]);
            }
        }
        table
    }

    fn compressed_crowds(&self) -> Table {
        let columns = [
            Column::number("clients"),
            Column::number("exchanges in a second").unit("1/s"),
            Column::number("with ROHC").unit("1/s"),
        ];
        let mut table = Table::new("Compressed headers in a crowd, the default control", columns);
        for clients in COMPRESSED_CROWDS {
            let plain = format!("crowd/{clients}/fasor-quick");
            let mean = |id: &str| number(self.results.mean(id, |sample| sample.goodput_per_s), 1);
            table.row([Cell::integer(clients), mean(&plain), mean(&format!("{plain}/rohc"))]);
        }
        table
    }

    fn queues(&self) -> Table {
        let columns = [
            Column::text("queue of 20 kB"),
            Column::text("control"),
            Column::number("FCT").unit("ms"),
            Column::number("C-RTT").unit("ms"),
            Column::number("RTR").unit("%"),
            Column::number("given up"),
        ];
        let mut table = Table::new("40 kbit/s beside a download without a limit", columns);
        for discipline in ["drop-tail", "codel"] {
            for control in crowd_controls() {
                let id = |name: &str| self.ours(&format!("queue/{discipline}/{}/{name}", control.name));
                table.row([
                    Cell::text(discipline),
                    Cell::text(control.name),
                    number(id("fct"), 0),
                    number(id("crtt"), 0),
                    number(id("rtr"), 1),
                    number(id("given-up"), 2),
                ]);
            }
        }
        table
    }

    fn protection(&self) -> Table {
        let columns = [
            Column::text(""),
            Column::text("octets that protect a message"),
            Column::number("C-RTT").unit("ms"),
            Column::number("octets of an exchange"),
        ];
        let mut table = Table::new("FASOR, no loss", columns);
        for access in Access::ALL {
            for (name, id) in [("none", "0"), ("OSCORE, 11", "0/oscore"), ("DTLS 1.2, 29", "0/dtls")] {
                let cell = format!("{}/fasor/{id}", access.name());
                table.row([
                    Cell::text(access.title()),
                    Cell::text(name),
                    number(self.results.mean(&cell, |sample| sample.crtt_ms), 1),
                    number(self.results.mean(&cell, |sample| sample.octets), 1),
                ]);
            }
        }
        table
    }
}
