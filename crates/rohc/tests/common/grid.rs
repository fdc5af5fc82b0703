//! Cells of a table, measured on all cores. A run that was interrupted goes on where it ended: with `THINAIR_RESULTS`, the name of a
//! folder, each finished cell is kept there, and a cell that the same program has measured with the same seed and size is not measured
//! again. Progress is on standard error then.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::journey::JourneyOutcome;
use super::table::Size;

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);

/// Measures each cell by `run`, which gets its number. The names identify the cells in `table`.
pub fn measure(
    table: &str,
    names: &[String],
    size: &Size,
    run: impl Fn(usize) -> JourneyOutcome + Sync,
) -> Vec<JourneyOutcome> {
    let kept = Kept::open(table, size);
    let mut outcomes: Vec<Option<JourneyOutcome>> =
        names.iter().map(|name| kept.as_ref().and_then(|kept| kept.outcome(name))).collect();
    let open: Vec<usize> = (0..names.len()).filter(|at| outcomes[*at].is_none()).collect();
    let progress = Progress::new(table, open.len(), names.len() - open.len());
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&cell) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = Instant::now();
                    let outcome = run(cell);
                    if let Some(kept) = &kept {
                        kept.add(&names[cell], begun.elapsed().as_secs_f64(), &outcome);
                    }
                    let mut done = done.lock().unwrap();
                    done.push((cell, outcome));
                    if kept.is_some() {
                        progress.show(done.len());
                    }
                }
            });
        }
    });
    for (cell, outcome) in done.into_inner().unwrap() {
        outcomes[cell] = Some(outcome);
    }
    let outcomes: Vec<JourneyOutcome> = outcomes.into_iter().flatten().collect();
    if let Some(kept) = &kept {
        println!("{}", summary(table, &outcomes, *kept.seconds.lock().unwrap() / 60.0));
    }
    outcomes
}

/// The cells of a table in one line: wrong packets where none may be, and elsewhere, with the number that the formats accept.
fn summary(table: &str, outcomes: &[JourneyOutcome], minutes: f64) -> String {
    let (mut all, mut unproved) = (JourneyOutcome::default(), JourneyOutcome::default());
    for outcome in outcomes {
        all.add(outcome);
        if outcome.bound > 0.0 {
            unproved.add(outcome);
        }
    }
    let (cells, JourneyOutcome { sent, arrived, undelivered, .. }) = (outcomes.len(), all);
    let (proved, wrong, bound) = (all.wrong - unproved.wrong, unproved.wrong, unproved.bound);
    format!(
        "{table}: {cells} cells, {sent} packets, {proved} wrong where none may be, {wrong} elsewhere (bound {bound:.0}), \
         {undelivered} of {arrived} not delivered, {minutes:.1} minutes of one core"
    )
}

/// Outcomes of finished cells, in a file.
struct Kept {
    outcomes: HashMap<String, JourneyOutcome>,
    /// First part of each key: program, size and seed.
    run: String,
    file: Mutex<File>,
    /// Time that all cells took, in seconds.
    seconds: Mutex<f64>,
}

impl Kept {
    fn open(table: &str, size: &Size) -> Option<Self> {
        let folder = PathBuf::from(std::env::var_os("THINAIR_RESULTS")?);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{table}.txt"));
        let packets = size.packets.map_or("default".into(), |packets| packets.to_string());
        let run = format!("{:016x} {packets} {}", program(), size.seed);
        let text = fs::read_to_string(&path).unwrap_or_default();
        // A line that was not written to its end has too few numbers.
        let lines = text.lines().filter_map(|line| {
            let mut parts = line.split('\t');
            parts.next().filter(|key| *key == run)?;
            let (name, spent) = (parts.next()?, parts.next()?.parse::<f64>().ok()?);
            let outcome = JourneyOutcome::parse(parts.next()?)?;
            (parts.next() == Some(".")).then(|| (name.to_owned(), (outcome, spent)))
        });
        let cells: HashMap<String, (JourneyOutcome, f64)> = lines.collect();
        let seconds = Mutex::new(cells.values().map(|(_, spent)| spent).sum());
        let outcomes = cells.into_iter().map(|(name, (outcome, _))| (name, outcome)).collect();
        let mut file = File::options().create(true).append(true).open(&path).unwrap();
        if !text.is_empty() && !text.ends_with('\n') {
            writeln!(file).unwrap();
        }
        Some(Self { outcomes, run, file: Mutex::new(file), seconds })
    }

    fn outcome(&self, name: &str) -> Option<JourneyOutcome> {
        self.outcomes.get(name).copied()
    }

    fn add(&self, name: &str, spent: f64, outcome: &JourneyOutcome) {
        *self.seconds.lock().unwrap() += spent;
        let line = format!("{}\t{name}\t{spent:.3}\t{}\t.\n", self.run, outcome.to_text());
        self.file.lock().unwrap().write_all(line.as_bytes()).unwrap();
    }
}

/// Identifies the code that measures: FNV-1a of this program.
fn program() -> u64 {
    let octets = fs::read(std::env::current_exe().unwrap()).unwrap();
    octets.iter().fold(0xCBF2_9CE4_8422_2325, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// Lines about the time left.
struct Progress {
    table: String,
    cells: usize,
    begun: Instant,
    shown: Mutex<Instant>,
}

impl Progress {
    fn new(table: &str, cells: usize, kept: usize) -> Self {
        if kept > 0 {
            eprintln!("{table}: {kept} cells of an earlier run, {cells} to measure");
        }
        let begun = Instant::now();
        Self { table: table.to_owned(), cells, begun, shown: Mutex::new(begun) }
    }

    fn show(&self, done: usize) {
        let mut shown = self.shown.lock().unwrap();
        if shown.elapsed() >= PROGRESS || done == self.cells {
            *shown = Instant::now();
            let spent = self.begun.elapsed().as_secs_f64();
            let left = spent / done as f64 * (self.cells - done) as f64;
            let (table, cells) = (&self.table, self.cells);
            eprintln!(
                "{table}: {done} of {cells} cells in {:.1} min, {:.1} min left",
                spent / 60.0,
                left / 60.0
            );
        }
    }
}
