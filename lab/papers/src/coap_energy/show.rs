//! The rows as tables and plots.

use thinair_link::energy::{self, Radio, Spent};
use thinair_report::{Axis, Bars, Cell, Column, Figure, Lines, Point, Section, Series, Shape, Table};

use super::exchange::{Course, Scheme};
use super::radios::{self, RADIOS, Versus};
use crate::row::Row;
use crate::traffic::Version;

pub(super) fn sections(published: &[Row], courses: &[Course]) -> Vec<Section> {
    let again = Section::new("Section V.E again")
        .text("Derived from the paper's own measurements by the model that all figures below come from.")
        .table(again(published));
    let radios = Section::new("Radio by radio").text(
        "One exchange in steady state at the client: airtime is sending, receiving and computing. saving, break-even loss and \
            all behind them are of profile coap, UDP checksums carried, by its airtime.",
    );
    let radios = Version::ALL.into_iter().fold(radios, |section, version| {
        let courses = of(courses, version);
        section.table(exchanges(&courses, version)).table(verdicts(&courses, version))
    });
    let courses_v6 = of(courses, Version::V6);
    let radios = radios
        .figure(shares(&courses_v6))
        .figure(course(&courses_v6, &energy::CC2538))
        .figure(over_errors(&courses_v6, &energy::CC2538))
        .figure(over_errors(&courses_v6, &energy::WIFI));
    vec![again, radios, Section::new("Powers").table(powers())]
}

fn of(courses: &[Course], version: Version) -> Vec<Course> {
    courses.iter().filter(|course| course.version == version).cloned().collect()
}

fn again(rows: &[Row]) -> Table {
    let columns = [
        Column::text("figure"),
        Column::number("theirs"),
        Column::number("ours"),
        Column::text("unit"),
        Column::text("bar"),
    ];
    let mut table = Table::new("", columns);
    for row in rows {
        let number = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::number(value, 2));
        table.row([
            Cell::text(row.what()),
            number(row.stated()),
            number(row.ours()),
            Cell::text(row.unit()),
            row.bar().map_or(Cell::Empty, |bar| {
                Cell::text(format!("{bar}, {}", if row.met() { "met" } else { "missed" }))
            }),
        ]);
    }
    table
}

fn title(version: Version) -> &'static str {
    match version {
        Version::V4 => "IPv4",
        Version::V6 => "IPv6",
    }
}

fn exchanges(courses: &[Course], version: Version) -> Table {
    let mut columns = vec![Column::text("radio"), Column::text("scheme"), Column::number("octets")];
    columns.extend(["airtime", "+ overhearing", "+ idle"].map(|total| Column::number(total).unit("uJ")));
    columns.push(Column::number("of it CPU").unit("uJ"));
    let mut table = Table::new(format!("{}, an exchange", title(version)), columns);
    for radio in &RADIOS {
        for course in courses {
            let settled = course.settled();
            let octets = settled.iter().map(|exchange| exchange.octets()).sum::<usize>() as f64;
            let mean = |total: fn(&Spent) -> energy::Energy| {
                Cell::number(1e6 * radios::mean(radio, settled, total), 1)
            };
            table.row([
                Cell::text(radio.name),
                Cell::text(course.scheme.name()),
                Cell::number(octets / settled.len() as f64, 1),
                mean(Spent::airtime),
                mean(Spent::with_overhearing),
                mean(Spent::with_idle),
                mean(|spent| spent.cpu),
            ]);
        }
    }
    table
}

fn verdicts(courses: &[Course], version: Version) -> Table {
    let columns = [
        Column::text("radio"),
        Column::number("octets saved"),
        Column::number("saving"),
        Column::number("break-even loss"),
        Column::number("break-even BER"),
        Column::number("break-even CPU").unit("nJ"),
        Column::number("pays after").unit("exchanges"),
    ];
    let mut table = Table::new(format!("{}, profile coap", title(version)), columns);
    for radio in RADIOS {
        let Some(versus) = versus(courses, radio) else { continue };
        let rate = versus.break_even_rate();
        table.row([
            Cell::text(radio.name),
            Cell::number(versus.octets_saved(), 1),
            Cell::Percent(versus.saving()),
            Cell::Percent(versus.break_even_loss()),
            rate.map_or(Cell::Empty, |rate| Cell::text(format!("{rate:.1e}"))),
            versus.break_even_cpu().map_or(Cell::Empty, |nanojoules| Cell::number(nanojoules, 1)),
            versus.pays_after().map_or(Cell::Empty, Cell::integer),
        ]);
    }
    table.note(
        "break-even loss: exchanges that must be spared a repetition; below 0, that may be repeated on top. break-even BER: from \
            which compression pays, where it does not without errors. break-even CPU: the energy of an instruction at which \
            the saving is gone.",
    )
}

fn versus(courses: &[Course], radio: Radio) -> Option<Versus<'_>> {
    let (plain, compressed) = (radios::of(courses, Scheme::Plain)?, radios::of(courses, Scheme::Coap)?);
    Some(Versus { radio, plain, compressed })
}

fn shares(courses: &[Course]) -> Figure {
    let y = Axis::new("energy of an exchange, of uncompressed").percent();
    let plot = Bars::new(Axis::new("radio"), y, RADIOS.map(|radio| radio.name));
    let joules = |radio: &Radio, course: &Course| radios::mean(radio, course.settled(), Spent::airtime);
    let plot = courses.iter().skip(1).fold(plot, |plot, course| {
        let shares = RADIOS.iter().map(|radio| {
            let plain = radios::of(courses, Scheme::Plain).map(|plain| joules(radio, plain));
            plain.map_or(f64::NAN, |plain| joules(radio, course) / plain)
        });
        plot.series(course.scheme.name(), shares)
    });
    Figure::new("Energy of an exchange over IPv6", plot).note("Airtime and CPU, steady state.")
}

/// Exchanges that are plotted of a course.
const PLOTTED: usize = 40;

fn course(courses: &[Course], radio: &Radio) -> Figure {
    let axes = (Axis::new("exchanges since the start"), Axis::new("mean energy of an exchange").unit("uJ"));
    let plot = courses.iter().fold(Lines::new(axes.0, axes.1), |plot, course| {
        let mut sum = 0.0;
        let points = course.exchanges.iter().take(PLOTTED).enumerate().map(|(number, exchange)| {
            sum += 1e6 * radios::spent(radio, exchange).airtime().as_joules();
            let x = (number + 1) as f64;
            Point { x, y: sum / x, interval: None }
        });
        let points = points.collect();
        plot.series(Series { name: course.scheme.name().into(), points, shape: Shape::Straight })
    });
    Figure::new(format!("The start of a conversation over {}", radio.title), plot)
        .note("IPv6. Airtime and CPU of all exchanges so far, by their number.")
}

fn over_errors(courses: &[Course], radio: &Radio) -> Figure {
    let axes = (
        Axis::new("bit error rate").logarithmic(),
        Axis::new("energy of a completed exchange").unit("uJ").logarithmic(),
    );
    let plot = Lines::new(axes.0, axes.1);
    let Some(versus) = versus(courses, *radio) else { return Figure::new(radio.title, plot) };
    let rates: Vec<_> = (0..=14).map(|step| 10_f64.powf(-6.0 + f64::from(step) / 4.0)).collect();
    let plot = [Scheme::Plain, Scheme::Coap].into_iter().enumerate().fold(plot, |plot, (i, scheme)| {
        let points = rates.iter().map(|rate| Point {
            x: *rate,
            y: 1e6 * versus.with_errors(*rate)[i],
            interval: None,
        });
        let points = points.collect();
        plot.series(Series { name: scheme.name().into(), points, shape: Shape::Straight })
    });
    Figure::new(format!("Bit errors on {}", radio.title), plot)
        .note("IPv6. The client asks again until it is answered; the link layer repeats nothing.")
}

fn powers() -> Table {
    let mut columns = vec![Column::text("radio")];
    columns.extend(["sends", "receives", "waits", "sleeps"].map(|state| Column::number(state).unit("mW")));
    columns.push(Column::text("source"));
    let mut table = Table::new("", columns);
    for radio in RADIOS {
        let mut row = vec![Cell::text(radio.title)];
        row.extend(
            [radio.transmit, radio.receive, radio.idle, radio.sleep]
                .map(|power| Cell::number(power.as_nanowatts() as f64 / 1e6, 4)),
        );
        row.push(Cell::text(radio.sources.iter().map(|source| source.from).collect::<Vec<_>>().join("; ")));
        table.row(row);
    }
    table
}
