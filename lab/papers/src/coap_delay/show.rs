//! The rows as tables and a plot.

use thinair_report::{Axis, Bars, Cell, Column, Figure, Section, Table};
use thinair_rohc::ProfileId;

use super::Line;
use super::exchange::PROFILES;
use super::published;
use crate::row::Bar;

/// The sentence that must stand wherever times do.
const HONEST: &str = "Wall time of this machine and this moment: informative, held to no bar, and not to be compared \
    with other machines. Median of the rounds; “least” is the fastest round.";

pub(super) fn sections(lines: &[Line]) -> Vec<Section> {
    let paper = Section::new("The paper's tables")
        .text("Milliseconds, as published for a laptop and a Raspberry Pi; sizes of theirs and of ours.")
        .table(paper(lines));
    let clock = PROFILES.into_iter().fold(Section::new("By the clock").text(HONEST), |section, profile| {
        section.table(clock(lines, profile))
    });
    let counted = Section::new("By instructions").text(
        "Counted by `make bench` (scripts/delay), not in this run. Executed instructions of the one call: x86-64 in a build \
            for benches, Cortex-M4 in one for speed (-O3) and one for size (-Oz).",
    );
    let counted =
        PROFILES.into_iter().fold(counted, |section, profile| section.table(counted_by(lines, profile)));
    vec![paper, clock, counted.figure(figure(lines))]
}

fn of(lines: &[Line], profile: ProfileId) -> impl Iterator<Item = &Line> {
    lines.iter().filter(move |line| line.case.profile == profile)
}

fn paper(lines: &[Line]) -> Table {
    let mut columns = vec![Column::text("state"), Column::text("packet type")];
    columns.extend(["theirs", "ours"].map(|whose| Column::number(whose).unit("B")));
    columns.extend(["laptop comp", "decomp", "total"].map(Column::number));
    columns.extend(["RPi comp", "decomp", "total"].map(Column::number));
    let mut table = Table::new("", columns);
    for line in of(lines, ProfileId::Coap2015) {
        let (kind, half) = (line.case.kind, line.case.half);
        let Some(theirs) = published::of(kind, half) else { continue };
        let milliseconds = [theirs.laptop, theirs.raspberry_pi].concat();
        let mut row = vec![Cell::text(published::state(kind)), Cell::text(published::label(kind, half))];
        row.extend([Cell::number(theirs.octets, 0), verdict(line.octets, theirs.most)]);
        row.extend(milliseconds.into_iter().map(|milliseconds| Cell::number(milliseconds, 3)));
        table.row(row);
    }
    table
}

fn clock(lines: &[Line], profile: ProfileId) -> Table {
    let mut columns = vec![Column::text("packet type"), Column::text("format")];
    columns.extend(["comp", "decomp", "total"].map(Column::number));
    columns.extend(["least comp", "least decomp"].map(Column::number));
    let is_udp = profile == ProfileId::Udp;
    if is_udp {
        columns.extend(["rohc-lib comp", "rohc-lib decomp"].map(Column::number));
    }
    let mut table = Table::new(format!("{}, ns", name(profile)), columns);
    for line in of(lines, profile) {
        let mut row = named(line);
        match line.times {
            Some([compress, decompress]) => row.extend(
                [
                    compress.median,
                    decompress.median,
                    compress.median + decompress.median,
                    compress.least,
                    decompress.least,
                ]
                .map(|nanoseconds| Cell::number(nanoseconds, 0)),
            ),
            None => row.extend([Cell::Empty, Cell::Empty, Cell::Empty, Cell::Empty, Cell::Empty]),
        }
        if is_udp {
            row.extend(match published::rohc_lib(line.case.kind) {
                Some(sides) => sides.map(|(least, most)| {
                    Cell::text(if least < most { format!("{least}–{most}") } else { least.to_string() })
                }),
                None => [Cell::Empty, Cell::Empty],
            });
        }
        table.row(row);
    }
    if is_udp {
        table.note("rohc-lib: master 70589cc2, measured elsewhere, on another machine; ns.")
    } else {
        table
    }
}

fn counted_by(lines: &[Line], profile: ProfileId) -> Table {
    let mut columns = vec![Column::text("packet type"), Column::text("format")];
    for build in ["x86-64", "M4 -O3", "M4 -Oz"] {
        columns.push(Column::number(format!("{build} comp")));
        columns.extend(["decomp", "total"].map(Column::number));
    }
    let mut table = Table::new(format!("{}, instructions", name(profile)), columns);
    for line in of(lines, profile) {
        let mut row = named(line);
        let [compress, decompress] = line.counts.map(|count| count.by_build());
        for ((_, compress), (_, decompress)) in compress.into_iter().zip(decompress) {
            let total = compress.zip(decompress).map(|(compress, decompress)| compress + decompress);
            row.extend([compress, decompress, total].map(|count| count.map_or(Cell::Empty, Cell::integer)));
        }
        table.row(row);
    }
    if profile == ProfileId::Udp {
        table.note(
            "rohc-lib (master 70589cc2, measured elsewhere) takes 3,894 and 2,224 for UO-0 over UDP/IPv4 on x86-64.",
        )
    } else {
        table
    }
}

fn figure(lines: &[Line]) -> Figure {
    let labels = of(lines, ProfileId::Coap2015).map(|line| published::label(line.case.kind, line.case.half));
    let plot = Bars::new(Axis::new("packet type"), Axis::new("instructions, both sides"), labels);
    let plot = PROFILES.into_iter().fold(plot, |plot, profile| {
        let totals = of(lines, profile).map(|line| {
            let [compress, decompress] = line.counts.map(|count| count.x86_64);
            compress.zip(decompress).map_or(f64::NAN, |(a, b)| f64::from(a) + f64::from(b))
        });
        plot.series(profile.name(), totals)
    });
    Figure::new("Instructions of a packet on x86-64", plot).note("To compress and to decompress it.")
}

fn named(line: &Line) -> Vec<Cell> {
    let label = published::label(line.case.kind, line.case.half);
    vec![Cell::text(label), Cell::text(line.case.wanted().0.name())]
}

fn name(profile: ProfileId) -> String {
    format!("{} (0x{:04X})", profile.name(), profile.number())
}

/// Octets beside their bar.
fn verdict(octets: Option<usize>, most: f64) -> Cell {
    let Some(octets) = octets else { return Cell::text("never sent") };
    let holds = Bar { max: Some(most), min: None }.holds(octets as f64);
    Cell::text(format!("{octets} {} {most}", if holds { '≤' } else { '>' }))
}
