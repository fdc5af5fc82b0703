//! Memory of a context.

use thinair_report::{Cell, Column, Section, Table};
use thinair_rohc::{Compressor, Decompressor};

use crate::coap_sizes::table::verdict;
use crate::paper::Findings;
use crate::row::Row;

/// Octets that a context may take.
const MOST: f64 = 512.0;

pub(super) fn measure(findings: &mut Findings) {
    let mut table = Table::new("", [Column::text("context of"), Column::number("octets").unit("B")]);
    for (who, (context, _block)) in [
        ("compressor", Compressor::octets_per_context()),
        ("decompressor", Decompressor::octets_per_context()),
    ] {
        let octets = context as f64;
        table.row([Cell::text(who), verdict(octets, Some(MOST))]);
        findings.rows.push(
            Row::new(format!("memory/{who}"), format!("a context of a {who}"), "octets", octets)
                .at_most(MOST),
        );
    }
    findings.ours.push(Section::new("Memory").table(table));
}
