//! Timers of each congestion control under the same losses, as a table.
//!
//! `cargo run -p thinair-coap --example timers` sends a message every 60 s on a path of 300 ms, some transmissions of
//! which are lost. The argument is another pattern of losses, one digit for each message: the number of its transmissions
//! that are lost.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use thinair_coap::congestion::{
    Acknowledged, Algorithm, CongestionControl, Controller, FasorConfig, Transmission,
};
use thinair_wire::time::Instant;

const PATTERN: &str = "0010200110";
const ROUND_TRIP: Duration = Duration::from_millis(300);
const INTERVAL: u64 = 60;

fn main() -> ExitCode {
    let pattern = std::env::args().nth(1).unwrap_or_else(|| PATTERN.into());
    let lost: Option<Vec<u8>> =
        pattern.chars().map(|digit| digit.to_digit(10).and_then(|digit| digit.try_into().ok())).collect();
    let Some(lost) = lost.filter(|lost| !lost.is_empty()) else {
        eprintln!("{pattern:?} is not a pattern of losses: use a digit for each message, as in {PATTERN}");
        return ExitCode::FAILURE;
    };
    print!("{}", table(&lost));
    ExitCode::SUCCESS
}

/// Returns the timeouts in milliseconds, without dither; `lost` is the number of lost transmissions of each message.
pub(crate) fn table(lost: &[u8]) -> String {
    let counted = FasorConfig { count_in_token: true, ..FasorConfig::default() };
    let mut algorithms: Vec<(String, Algorithm)> = Algorithm::NAMES
        .into_iter()
        .filter_map(|name| Some((name.to_string(), name.parse().ok()?)))
        .collect();
    algorithms.push(("fasor, counted".into(), Algorithm::Fasor(counted)));
    let mut rows = vec![vec!["message".to_string(), "lost".to_string()]];
    rows.extend(lost.iter().enumerate().map(|(i, lost)| vec![(i + 1).to_string(), lost.to_string()]));
    for (name, algorithm) in algorithms {
        let timers = std::iter::once(name).chain(timers(&algorithm, lost));
        rows.iter_mut().zip(timers).for_each(|(row, cell)| row.push(cell));
    }
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> =
        (0..columns).map(|i| rows.iter().map(|row| row[i].len()).max().unwrap_or(0)).collect();
    let mut table = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        let _ = writeln!(table, "{}", line.trim_end());
    }
    table
}

/// Returns the timeouts of each message: of its first transmission, and after a plus of each further one.
fn timers(algorithm: &Algorithm, lost: &[u8]) -> Vec<String> {
    let parameters = Transmission::default();
    let mut controller = Controller::new(algorithm, &parameters);
    let mut sent = 0;
    let message = |&lost: &u8| {
        let first = Instant::from_millis(INTERVAL * 1_000 * sent);
        sent += 1;
        let mut timer = controller.start(first, &parameters, 0, 0);
        let (mut last, mut text) = (first, timer.timeout().as_millis().to_string());
        for _ in 0..lost.min(parameters.max_retransmit) {
            last = last + timer.timeout();
            controller.back_off(&mut timer);
            let _ = write!(text, "+{}", timer.timeout().as_millis());
        }
        if lost > parameters.max_retransmit {
            controller.on_give_up(last + timer.timeout());
            return text + " given up";
        }
        let now = last + ROUND_TRIP;
        controller.on_ack(&Acknowledged { now, first, last, transmissions: lost + 1, answered: Some(last) });
        text
    };
    lost.iter().map(message).collect()
}
