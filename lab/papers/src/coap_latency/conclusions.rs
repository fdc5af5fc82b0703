//! What the paper concludes, and whether it holds here.

use thinair_report::{Cell, Column, Table};

use crate::row::Row;

/// A sentence of the paper's, and the quotient of two figures that tells whether it holds.
struct Conclusion {
    id: &'static str,
    claim: &'static str,
    what: &'static str,
    /// Ids of rows.
    figure: &'static str,
    over: &'static str,
    /// The quotient of the paper's own figures.
    theirs: f64,
    holds: fn(f64) -> bool,
    /// What is to be said of it.
    note: &'static str,
}

const SHORTER: &str = "CoCoA shortens exchanges where packets are lost";
const REPEATS: &str = "CoCoA sends again more often";
const DOWNLOAD: &str = "Beside a download GPRS suffers, WiFi does not";

const CONCLUSIONS: [Conclusion; 8] = [
    Conclusion {
        id: "cocoa-is-shorter/gprs",
        claim: SHORTER,
        what: "GPRS, +5 %: C-RTT of CoCoA, of RAW's",
        figure: "gprs/cocoa/5/crtt",
        over: "gprs/raw/5/crtt",
        theirs: 203.0 / 332.0,
        holds: |ratio| ratio < 1.0,
        note: "",
    },
    Conclusion {
        id: "cocoa-is-shorter/wifi",
        claim: SHORTER,
        what: "WiFi, +5 %: C-RTT of CoCoA, of RAW's",
        figure: "wifi/cocoa/5/crtt",
        over: "wifi/raw/5/crtt",
        theirs: 18.0 / 180.0,
        holds: |ratio| ratio < 1.0,
        note: "",
    },
    Conclusion {
        id: "cocoa-repeats/gprs",
        claim: REPEATS,
        what: "GPRS, +5 %: RTR of CoCoA, of RAW's",
        figure: "gprs/cocoa/5/rtr",
        over: "gprs/raw/5/rtr",
        theirs: 9.0 / 5.3,
        holds: |ratio| ratio > 1.0,
        note: "",
    },
    Conclusion {
        id: "cocoa-repeats/wifi",
        claim: REPEATS,
        what: "WiFi, +5 %: RTR of CoCoA, of RAW's",
        figure: "wifi/cocoa/5/rtr",
        over: "wifi/raw/5/rtr",
        theirs: 6.8 / 6.3,
        holds: |ratio| ratio > 1.0,
        note: "",
    },
    Conclusion {
        id: "download/gprs",
        claim: DOWNLOAD,
        what: "GPRS: C-RTT beside a download, of that without",
        figure: "gprs/raw/download/crtt",
        over: "gprs/raw/0/crtt",
        theirs: 1_344.0 / 178.0,
        holds: |ratio| ratio > 3.0,
        note: "it is the window and the rate, not how the queue is managed",
    },
    Conclusion {
        id: "download/wifi",
        claim: DOWNLOAD,
        what: "WiFi: C-RTT beside a download, of that without",
        figure: "wifi/raw/download/crtt",
        over: "wifi/raw/0/crtt",
        theirs: 30.9 / 18.0,
        holds: |ratio| ratio < 2.0,
        note: "",
    },
    Conclusion {
        id: "tcp-is-slow/gprs",
        claim: "CoAP over TCP is slow on GPRS",
        what: "GPRS: C-RTT over TCP with Nagle's algorithm, of that over UDP",
        figure: "gprs/tcp-nagle/0/crtt",
        over: "gprs/cocoa/0/crtt",
        theirs: 450.0 / 172.0,
        holds: |ratio| ratio > 1.5,
        note: "",
    },
    Conclusion {
        id: "because-of-headers/gprs",
        claim: "... because of its headers",
        what: "GPRS: C-RTT over TCP with TCP_NODELAY, of that over UDP",
        figure: "gprs/tcp-nodelay/0/crtt",
        over: "gprs/cocoa/0/crtt",
        theirs: f64::NAN,
        holds: |ratio| ratio > 1.5,
        note: "the headers are the same without Nagle's algorithm",
    },
];

fn id(conclusion: &Conclusion) -> String {
    format!("conclusion/{}", conclusion.id)
}

/// A row for each. There is no bar: a conclusion of others may be wrong.
pub(super) fn rows(rows: &[Row]) -> Vec<Row> {
    let ours = |id: &str| rows.iter().find(|row| row.id() == id).and_then(Row::ours);
    let row = |one: &Conclusion| {
        let ratio = ours(one.figure).zip(ours(one.over)).map(|(figure, over)| figure / over);
        let theirs = Some(one.theirs).filter(|theirs| theirs.is_finite());
        Row::new(id(one), format!("{}: {}", one.claim, one.what), "", ratio).theirs(theirs)
    };
    CONCLUSIONS.iter().map(row).collect()
}

/// Theirs beside ours, and what follows.
pub(super) fn table(rows: &[Row]) -> Table {
    let columns = [
        Column::text("theirs"),
        Column::text("quotient"),
        Column::number("by their figures"),
        Column::number("ours"),
        Column::text(""),
    ];
    let mut table = Table::new("Conclusions", columns);
    for one in &CONCLUSIONS {
        let Some(row) = rows.iter().find(|row| row.id() == id(one)) else { continue };
        let Some(ours) = row.ours() else { continue };
        let verdict = if (one.holds)(ours) { "holds" } else { "does not hold" };
        let note = if one.note.is_empty() { "" } else { "; " };
        table.row([
            Cell::text(one.claim),
            Cell::text(one.what),
            row.stated().map_or(Cell::Empty, |theirs| Cell::number(theirs, 2)),
            Cell::number(ours, 2),
            Cell::text(format!("{verdict}{note}{}", one.note)),
        ]);
    }
    table
}
