//! Cells as tables: a section for each carrier.

use thinair_report::{Cell as Entry, Column, Section, Table};

use super::cell::{Carrier, Condition};
use super::{Clock, Found};

pub(super) fn sections(found: &[Found], real: &[Found]) -> Vec<Section> {
    let load =
        |found: &Found| [Entry::number(found.scenario.offered(), 0), Entry::integer(found.scenario.payload)];
    let columns = || [Column::number("offered"), Column::number("payload")];
    let section = |carrier: Carrier| {
        let of = found.iter().filter(move |found| found.scenario.carrier == carrier);
        let (full, others): (Vec<_>, Vec<_>) =
            of.partition(|found| found.scenario.condition == Condition::Full);
        let by_load = table(BY_LOAD, columns(), &full, load);
        let condition = |found: &Found| [Entry::text(found.scenario.condition.name())];
        let title = "3 Mbit/s of 100 octets, by what the link does";
        let by_condition = table(title, [Column::text("link")], &others, condition);
        Section::new(carrier.title()).table(by_load).table(by_condition)
    };
    let mut sections: Vec<_> = Carrier::ALL.map(section).into();
    for carrier in Carrier::ALL {
        let of: Vec<_> = real.iter().filter(|found| found.scenario.carrier == carrier).collect();
        if !of.is_empty() {
            let title = format!("{}, in real time", carrier.title());
            sections.push(Section::new(title).table(table(BY_LOAD, columns(), &of, load)));
        }
    }
    sections
}

const BY_LOAD: &str = "Queue of 100 packets, by load (Mbit/s) and payload (octets)";

fn table<const N: usize>(
    title: &str,
    names: [Column; N],
    found: &[&Found],
    cells: impl Fn(&Found) -> [Entry; N],
) -> Table {
    let figures = [
        Column::text("mode"),
        Column::number("without"),
        Column::number("with"),
        Column::number("ratio"),
        Column::number("bar"),
        Column::text("met"),
        Column::number("wrong"),
        Column::number("lost").unit("%"),
        Column::number("outage").unit("ms"),
        Column::number("before").unit("ms"),
    ];
    let mut table = Table::new(title, names.into_iter().chain(figures));
    for found in found {
        let Found { clock, way, with, without, .. } = found;
        let (ratio, bar) = (found.ratio(), found.bar());
        let arrived = with.delivered + with.wrong + with.undelivered;
        let lost = match clock {
            Clock::Virtual => Entry::number(100.0 * with.undelivered / arrived.max(1.0), 1),
            Clock::Real => Entry::Empty,
        };
        let figures = [
            Entry::text(way.name()),
            Entry::number(without.goodput, 3),
            Entry::number(with.goodput, 3),
            Entry::number(ratio, 3),
            Entry::number(bar, 3),
            Entry::text(if ratio >= bar { "yes" } else { "no" }),
            Entry::number(with.wrong, 0),
            lost,
            Entry::number(with.outage, 0),
            Entry::number(without.outage, 0),
        ];
        table.row(cells(found).into_iter().chain(figures));
    }
    table.note(
        "without, with: goodput in Mbit/s. ratio: with over without. wrong: packets delivered that are not as they were sent. lost: \
         packets that arrived and were not decompressed. outage: longest time without a right packet; before: without compression.",
    )
}
