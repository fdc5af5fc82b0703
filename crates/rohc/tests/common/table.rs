//! Table of flows by impairments of a channel, measured on all cores, and the limits that it misses.

use super::grid::measure;
use super::journey::{JourneyOutcome, JourneySetup};
use super::pairs;

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

    /// Numbers of the cells that are measured, by their values in each dimension: in a full run a part in which each pair of values occurs,
    /// unless `THINAIR_ROWS` says which.
    pub fn part(&self, cells: &[Vec<String>]) -> Vec<usize> {
        match self.packets {
            Some(_) if self.rows.is_empty() => pairs::subset(cells, self.seed),
            _ => (0..cells.len()).collect(),
        }
    }

    /// True if a row with that name is measured.
    pub fn has(&self, name: &str) -> bool {
        self.rows.iter().all(|word| name.split_whitespace().any(|part| part == word))
    }
}

/// Outcomes by row and column, of those cells that are measured.
pub struct OutcomeTable {
    columns: Vec<&'static str>,
    rows: Vec<(JourneySetup, Vec<Option<JourneyOutcome>>)>,
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
        let setups = setups.into_iter().filter(|setup| size.has(&setup.name()));
        let mut rows: Vec<_> = setups.map(|setup| (setup, vec![None; columns.len()])).collect();
        let cells = rows.iter().enumerate().flat_map(|(row, _)| (0..columns.len()).map(move |at| (row, at)));
        let cells: Vec<(usize, usize)> = cells.collect();
        let values = |&(row, column): &(usize, usize)| {
            let mut values = rows[row].0.dimensions();
            values.push(columns[column].to_owned());
            values
        };
        let part = size.part(&cells.iter().map(values).collect::<Vec<_>>());
        let cells: Vec<(usize, usize)> = part.into_iter().map(|at| cells[at]).collect();
        let names = cells.iter().map(|&(row, column)| format!("{}, {}", rows[row].0.name(), columns[column]));
        let outcomes = measure(table, &names.collect::<Vec<_>>(), size, |cell| {
            let (row, column) = cells[cell];
            run(&rows[row].0, column)
        });
        for ((row, column), outcome) in cells.into_iter().zip(outcomes) {
            rows[row].1[column] = Some(outcome);
        }
        Self { columns: columns.to_vec(), rows }
    }

    /// Prints the rows, with `cell` for the text of each cell.
    pub fn print(&self, cell: impl Fn(&JourneySetup, &JourneyOutcome) -> String) {
        let mut head = format!("{:<43}", "");
        self.columns.iter().for_each(|column| head += &format!("{column:>19}"));
        println!("{head}");
        for (setup, outcomes) in &self.rows {
            if outcomes.iter().any(Option::is_some) {
                let texts = outcomes.iter().map(|outcome| outcome.map(|outcome| cell(setup, &outcome)));
                let line = texts.map(|text| format!("{:>19}", text.unwrap_or_default()));
                println!("{}", format!("{:<43}{}", setup.name(), line.collect::<String>()).trim_end());
            }
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
            self.columns
                .iter()
                .zip(outcomes)
                .filter_map(move |(column, outcome)| Some((setup, *column, outcome.as_ref()?)))
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
