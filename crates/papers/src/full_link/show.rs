//! Cells as tables: a section for each carrier.

use thinair_report::{Cell as Entry, Column, Section, Table};

use super::Found;
use super::cell::{Carrier, Condition};

pub(super) fn sections(found: &[Found]) -> Vec<Section> {
    let of = |carrier| found.iter().filter(move |found| found.scenario.carrier == carrier);
    let section = |carrier: Carrier| {
        let full = of(carrier).filter(|found| found.scenario.condition == Condition::Full);
        let others = of(carrier).filter(|found| found.scenario.condition != Condition::Full);
        Section::new(carrier.title())
            .table(table("Queue of 100 packets, by load and payload", full))
            .table(table("3 Mbit/s of 100 octets, by what the link does", others))
    };
    Carrier::ALL.map(section).into()
}

fn table<'f>(title: &str, found: impl Iterator<Item = &'f Found>) -> Table {
    let columns = [
        Column::text("link"),
        Column::number("offered").unit("Mbit/s"),
        Column::number("payload").unit("octets"),
        Column::text("mode"),
        Column::number("without").unit("Mbit/s"),
        Column::number("with").unit("Mbit/s"),
        Column::text("ratio"),
        Column::number("wrong"),
        Column::text("undelivered"),
        Column::text("outage, ms"),
        Column::text("octets"),
    ];
    let mut table = Table::new(title, columns);
    for found in found {
        let Found { scenario, way, with, without } = found;
        let (ratio, bar) = (found.ratio(), found.bar());
        let sign = if ratio >= bar { "≥" } else { "<" };
        let arrived = with.delivered + with.wrong + with.undelivered;
        table.row([
            Entry::text(scenario.condition.name()),
            Entry::number(scenario.offered(), 1),
            Entry::integer(scenario.payload),
            Entry::text(way.name()),
            Entry::number(without.goodput, 3),
            Entry::number(with.goodput, 3),
            Entry::text(format!("{ratio:.3} {sign} {bar:.3}")),
            Entry::number(with.wrong, 0),
            Entry::text(format!("{} of {arrived}", with.undelivered)),
            Entry::text(format!("{:.0} ({:.0})", with.outage, without.outage)),
            Entry::text(format!("{:.1} ({:.1})", with.octets, without.octets)),
        ]);
    }
    table.note(
        "without, with: goodput. ratio: with over without, beside its bar. undelivered: of the packets that arrived. outage and octets: \
         with compression, and without in parentheses; octets of the link for each right packet.",
    )
}
