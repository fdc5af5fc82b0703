//! Table of flows by impairments of a channel, measured on all cores, and the limits that it misses.

use super::grid::measure;
use super::journey::{JourneyOutcome, JourneySetup};

/// Size of a run, from the environment: `THINAIR_PACKETS` packets per cell, a tenth of them where only a CRC proves some candidate,
/// the first `THINAIR_SEED`, and only the rows whose name has all words of `THINAIR_ROWS`.
#[derive(Clone, Debug)]
pub struct Size {
    pub packets: Option<u64>,
    pub seed: u64,
    rows: Vec<String>,
}

impl Size {
    pub fn from_environment() -> Self {
        let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
        let rows = std::env::var("THINAIR_ROWS").unwrap_or_default();
        Self {
            packets: number("THINAIR_PACKETS"),
            seed: number("THINAIR_SEED").unwrap_or(1),
            rows: rows.split_whitespace().map(String::from).collect(),
        }
    }

    /// Number of packets of a cell: `small` in a short run.
    pub fn packets(&self, setup: &JourneySetup, small: u64) -> u64 {
        match self.packets {
            Some(packets) if setup.is_proved() => packets,
            Some(packets) => (packets / 10).max(1),
            None => small,
        }
    }

    /// True if a row with that name is measured.
    pub fn has(&self, name: &str) -> bool {
        self.rows.iter().all(|word| name.split_whitespace().any(|part| part == word))
    }
}

/// Outcomes of every row and column.
pub struct OutcomeTable {
    columns: Vec<&'static str>,
    rows: Vec<(JourneySetup, Vec<JourneyOutcome>)>,
}

impl OutcomeTable {
    /// Measures each cell by `run`, which gets the row and the number of the column.
    pub fn measure(
        table: &str,
        setups: Vec<JourneySetup>,
        columns: &[&'static str],
        size: &Size,
        run: impl Fn(&JourneySetup, usize) -> JourneyOutcome + Sync,
    ) -> Self {
        let setups: Vec<JourneySetup> = setups.into_iter().filter(|setup| size.has(&setup.name())).collect();
        let cells = setups.iter().flat_map(|setup| columns.iter().map(move |column| (setup, column)));
        let names: Vec<String> = cells.map(|(setup, column)| format!("{}, {column}", setup.name())).collect();
        let outcomes =
            measure(table, &names, size, |cell| run(&setups[cell / columns.len()], cell % columns.len()));
        let outcomes = outcomes.chunks(columns.len().max(1)).map(<[_]>::to_vec);
        Self { columns: columns.to_vec(), rows: setups.iter().copied().zip(outcomes).collect() }
    }

    /// Prints the rows, with `cell` for the text of each cell.
    pub fn print(&self, cell: impl Fn(&JourneySetup, &JourneyOutcome) -> String) {
        let mut head = format!("{:<43}", "");
        self.columns.iter().for_each(|column| head += &format!("{column:>19}"));
        println!("{head}");
        for (setup, outcomes) in &self.rows {
            let mut line = format!("{:<43}", setup.name());
            outcomes.iter().for_each(|outcome| line += &format!("{:>19}", cell(setup, outcome)));
            println!("{line}");
        }
    }

    /// Fails with every cell for which `miss` gives a reason, except those in `open`: by words of the row, the column
    /// and the reason.
    pub fn hold(
        &self,
        open: &[&str],
        miss: impl Fn(&JourneySetup, &'static str, &JourneyOutcome) -> Option<String>,
    ) {
        let cells = self.rows.iter().flat_map(|(setup, outcomes)| {
            self.columns.iter().zip(outcomes).map(move |(column, outcome)| (setup, *column, outcome))
        });
        let missed = cells.filter_map(|(setup, column, outcome)| {
            miss(setup, column, outcome).map(|reason| format!("{}, {column}: {reason}", setup.name()))
        });
        hold(open, missed);
    }
}

/// Fails with every line, a cell and why it misses its limit, except those that have all words of one of `open`.
pub fn hold(open: &[&str], lines: impl Iterator<Item = String>) {
    let (mut missed, mut known) = (Vec::new(), vec![0; open.len()]);
    for line in lines {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let has = |word: &str| line.split([' ', ',', ':']).any(|part| part == word);
        match open.iter().position(|words| words.split(' ').all(has)) {
            Some(at) => known[at] += 1,
            None => missed.push(line),
        }
    }
    open.iter().zip(known).for_each(|(words, cells)| println!("open: {words}: {cells} cells"));
    assert!(missed.is_empty(), "{} cells miss their bar:\n{}", missed.len(), missed.join("\n"));
}

/// Returns the reason if a cell has too many wrong packets: more than the CRCs of the formats accept where only these
/// prove a candidate (plus four standard deviations), or any at all elsewhere.
pub fn wrong(outcome: &JourneyOutcome) -> Option<String> {
    let bound = if outcome.bound > 0.0 { 1.0 + outcome.bound + 4.0 * outcome.variance.sqrt() } else { 0.0 };
    let JourneyOutcome { wrong, arrived, bound: let_through, .. } = *outcome;
    (wrong as f64 > bound).then(|| format!("{wrong} wrong of {arrived}, bound {let_through:.1}"))
}
