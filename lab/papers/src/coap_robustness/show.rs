//! The cells as tables and plots.

use thinair_report::{Axis, Cell as Entry, Column, Figure, Lines, Section, Series, Table};
use thinair_rohc::Mode;

use super::condition::{BURSTS, Condition, RATES};
use super::run::{Count, Policy, mode_name};
use super::{Cell, HELD, KINDS};
use crate::row::Bar;
use crate::traffic::Version;

const MODES: [Mode; 2] = [Mode::Unidirectional, Mode::Optimistic];
/// The burst that plots over the loss rate are for.
const PLOTTED_BURST: u32 = 5;
/// The cell that flows are compared in.
const TYPICAL: Condition = Condition::Loss { rate: 20, burst: 5 };

pub(super) fn sections(cells: &[Cell]) -> Vec<Section> {
    let packets = cells.iter().find(|cell| cell.most_wrong().is_some()).map_or(0, |cell| cell.packets);
    let held = Section::new("The default policy").text(format!(
        "wrong: packets delivered with a wrong header, mean of the seeds, of {packets} packets each; expected: what the \
            formats let expect of these."
    ));
    let held = [Policy::AutoCarried, Policy::AutoElided].into_iter().fold(held, |section, policy| {
        let figures: &[Named] = &[("wrong", wrong), ("dropped %", dropped), ("octets", octets)];
        section.table(default_policy(cells, policy, figures))
    });
    let held = held.figure(dropped_over_loss(cells));
    let policies = Section::new("Every policy")
        .text(
            "Means over all flows and both versions; u is U-mode, o is O-mode. A link is named by percent lost/mean burst, the \
                places that packets are late by, or its bit error rate, with a CRC-32 or bare. Octets include the start of a \
                flow, which weighs less in the longer runs that the default policy is held to.",
        )
        .figure(over_loss(
            cells,
            "Octets of a packet over the loss rate",
            Axis::new("octets a packet").unit("B"),
            Count::mean_octets,
        ))
        .figure(over_loss(
            cells,
            "Wrong headers over the loss rate",
            Axis::new("wrong per million sent"),
            Count::wrong_per_million,
        ))
        .table(policies(cells, "Delivered wrong, per million packets sent", 0, Count::wrong_per_million))
        .table(policies(
            cells,
            "Dropped for reasons of compression, % of what arrived",
            2,
            Count::dropped_percent,
        ))
        .table(policies(cells, "Octets of a packet, payload included", 2, Count::mean_octets));
    let flows = Section::new("Every flow").table(flows(cells));
    let damage = Section::new("Damage")
        .text(
            "Damaged packets that reached a decompressor, all flows together. Elided checksums ask for a link that vouches \
                for its frames: without a CRC of the link they are a mistake, shown here for what it costs.",
        )
        .table(damage(cells));
    vec![held, policies, flows, damage]
}

/// The mean of a figure over the cells that are chosen. Each counts once, however many packets it had.
fn mean(cells: &[Cell], chosen: impl Fn(&Cell) -> bool, figure: impl Fn(&Count) -> f64) -> f64 {
    let figures: Vec<_> = cells.iter().filter(|cell| chosen(cell)).map(|cell| figure(&cell.count)).collect();
    figures.iter().sum::<f64>() / figures.len() as f64
}

/// A heading, and what a cell shows under it.
type Named = (&'static str, fn(&Cell) -> Entry);

/// A row for each loss cell: what is expected, then what each of `figures` gives of every flow that is held.
fn default_policy(cells: &[Cell], policy: Policy, figures: &[Named]) -> Table {
    let mut columns = vec![Column::number("loss").unit("%"), Column::number("burst")];
    columns.push(Column::number("expected"));
    for (what, (kind, version)) in figures.iter().flat_map(|(what, _)| HELD.map(|flow| (what, flow))) {
        columns.push(Column::number(format!("{}/{} {what}", kind.name(), version.name())));
    }
    let mut table = Table::new(policy.name(), columns);
    for (rate, burst) in RATES.into_iter().flat_map(|rate| BURSTS.map(|burst| (rate, burst))) {
        let of_flow = |flow| {
            cells.iter().find(|cell| {
                cell.condition.loss() == Some((rate, burst))
                    && cell.case.policy == policy
                    && cell.case.mode == Mode::Unidirectional
                    && (cell.case.kind, cell.case.version) == flow
            })
        };
        let held = HELD.map(of_flow);
        let figure = |cell: Option<&Cell>, figure: fn(&Cell) -> Entry| cell.map_or(Entry::Empty, figure);
        let mut row = vec![Entry::integer(rate), Entry::integer(burst)];
        row.push(figure(held[0], expected));
        row.extend(figures.iter().flat_map(|(_, of_one)| held.map(|cell| figure(cell, *of_one))));
        table.row(row);
    }
    table
}

fn wrong(cell: &Cell) -> Entry {
    verdict(cell.wrong(), 1, cell.most_wrong())
}

fn expected(cell: &Cell) -> Entry {
    cell.expected().map_or(Entry::Empty, |expected| Entry::text(small(expected)))
}

fn dropped(cell: &Cell) -> Entry {
    verdict(cell.count.dropped_percent(), 3, cell.most_dropped())
}

fn octets(cell: &Cell) -> Entry {
    Entry::number(cell.count.mean_octets(), 2)
}

fn policies(cells: &[Cell], title: &str, decimals: u8, figure: impl Fn(&Count) -> f64) -> Table {
    let mut columns = vec![Column::text("link")];
    let ways = || MODES.into_iter().flat_map(|mode| Policy::ALL.map(|policy| (mode, policy)));
    columns.extend(ways().map(|(mode, policy)| {
        Column::number(format!("{} {}", mode_name(mode), policy.name().replace('-', " ")))
    }));
    let mut table = Table::new(title, columns);
    for condition in Condition::all() {
        let figures = ways().map(|(mode, policy)| {
            let chosen =
                |cell: &Cell| (cell.condition, cell.case.mode, cell.case.policy) == (condition, mode, policy);
            Entry::number(mean(cells, chosen, &figure), decimals)
        });
        table.row(std::iter::once(Entry::text(condition.short())).chain(figures));
    }
    table
}

fn flows(cells: &[Cell]) -> Table {
    let mut columns = vec![Column::text("flow")];
    columns.extend(Policy::ALL.map(|policy| Column::number(format!("{} wrong", policy.name()))));
    columns.extend(
        [Policy::AutoCarried, Policy::AutoElided]
            .map(|policy| Column::number(format!("{} octets", policy.name()))),
    );
    let title = format!("U-mode, {}: wrong per million packets sent, octets of a packet", TYPICAL.what());
    let mut table = Table::new(title, columns);
    for (kind, version) in KINDS.into_iter().flat_map(|kind| Version::ALL.map(|version| (kind, version))) {
        let of = |policy, figure: fn(&Count) -> f64| {
            let chosen = |cell: &Cell| {
                cell.condition == TYPICAL
                    && cell.case.mode == Mode::Unidirectional
                    && (cell.case.kind, cell.case.version, cell.case.policy) == (kind, version, policy)
            };
            mean(cells, chosen, figure)
        };
        let name = Entry::text(format!("{} {}", kind.name(), version.name()));
        let wrong = Policy::ALL.map(|policy| Entry::number(of(policy, Count::wrong_per_million), 0));
        let octets = [Policy::AutoCarried, Policy::AutoElided]
            .map(|policy| Entry::number(of(policy, Count::mean_octets), 2));
        table.row(std::iter::once(name).chain(wrong).chain(octets));
    }
    table
}

fn damage(cells: &[Cell]) -> Table {
    let columns = [
        Column::text("link"),
        Column::text("mode"),
        Column::text("policy"),
        Column::number("arrived"),
        Column::number("damaged"),
        Column::number("refused"),
        Column::number("payload only"),
        Column::number("wrong"),
        Column::number("CRC's bound"),
    ];
    let mut table = Table::new("", columns);
    let conditions = Condition::all().filter(|condition| condition.damages());
    for (condition, mode) in conditions.flat_map(|condition| MODES.map(|mode| (condition, mode))) {
        for policy in Policy::ALL {
            let chosen =
                |cell: &Cell| (cell.condition, cell.case.mode, cell.case.policy) == (condition, mode, policy);
            let count: Count = cells.iter().filter(|cell| chosen(cell)).map(|cell| cell.count).sum();
            let bound: f64 = cells
                .iter()
                .filter(|cell| chosen(cell))
                .filter_map(|cell| Some(cell.crc_bound()? * cell.seeds as f64))
                .sum();
            table.row([
                Entry::text(condition.short()),
                Entry::text(mode_name(mode)),
                Entry::text(policy.name()),
                Entry::integer(count.arrived),
                Entry::integer(count.damaged),
                Entry::integer(count.refused),
                Entry::integer(count.payload),
                Entry::integer(count.wrong),
                Entry::number(bound, 1),
            ]);
        }
    }
    table
}

/// A figure of each policy in U-mode over the loss rate.
fn over_loss(cells: &[Cell], title: &str, y: Axis, figure: impl Fn(&Count) -> f64) -> Figure {
    let series = Policy::ALL.map(|policy| {
        let points = RATES.map(|rate| {
            let chosen = |cell: &Cell| {
                cell.condition.loss() == Some((rate, PLOTTED_BURST))
                    && cell.case.mode == Mode::Unidirectional
                    && cell.case.policy == policy
            };
            (f64::from(rate), mean(cells, chosen, &figure))
        });
        Series::new(policy.name(), points)
    });
    let plot = series.into_iter().fold(Lines::new(loss_axis(), y), Lines::series);
    Figure::new(title, plot).note(format!("U-mode, bursts of {PLOTTED_BURST} packets on average, all flows."))
}

fn dropped_over_loss(cells: &[Cell]) -> Figure {
    let series = BURSTS.map(|burst| {
        let points = RATES.map(|rate| {
            let chosen =
                |cell: &Cell| cell.condition.loss() == Some((rate, burst)) && cell.most_wrong().is_some();
            (f64::from(rate), mean(cells, chosen, Count::dropped_percent))
        });
        Series::new(format!("bursts of {burst}"), points)
    });
    let plot = series
        .into_iter()
        .fold(Lines::new(loss_axis(), Axis::new("dropped of what arrived").unit("%")), Lines::series);
    Figure::new("What the default policy drops", plot).note("The bar is 0.1 %.")
}

fn loss_axis() -> Axis {
    Axis::new("loss").unit("%")
}

/// A figure beside its bar.
fn verdict(ours: f64, decimals: u8, max: Option<f64>) -> Entry {
    let Some(max) = max else { return Entry::number(ours, decimals) };
    let sign = if (Bar { max: Some(max), min: None }).holds(ours) { '≤' } else { '>' };
    let ours = if ours == 0.0 { "0".to_owned() } else { format!("{ours:.*}", usize::from(decimals)) };
    Entry::text(format!("{ours} {sign} {max}"))
}

/// A figure that may be hardly anything.
fn small(value: f64) -> String {
    match value {
        0.01.. => format!("{value:.2}"),
        1e-6.. => format!("{value:.0e}"),
        0.0 => "0".to_owned(),
        _ => "<1e-6".to_owned(),
    }
}
