//! Exchanges of a sensor at several intervals: octets, share of refreshes, and waiting time of a decompressor
//! that starts late.
//!
//! `cargo run -p thinair-analyze --example sparse` prints the tables of docs/refresh.md. The traffic is the
//! demo capture, 300 CoAP GETs with their responses, with new times: the interval between exchanges is
//! constant. `-- REFRESH...` compares the given refresh policies instead of the usual ones.

#[path = "../tests/sparse/retimed.rs"]
mod retimed;

use std::error::Error;

use thinair_analyze::{Analysis, SchemeSpec, Settings, Survey};
use thinair_rohc::{Channel, CidSpace, Mode, ProfileId, ProfileSet, Refresh};

use retimed::{PACES, retimed};

/// Policies in addition to the default.
const POLICIES: [&str; 7] = [
    "off",
    "budget=1%,packets=128,time=16",
    "budget=5%,packets=128,time=16",
    "budget=10%,packets=128,time=16",
    "budget=5%,time=16",
    "budget=10%,time=16",
    "packets=1024,time=16,backoff",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("With the default refresh, {}:", Refresh::default());
    println!();
    println!("| exchange every | profiles | mode | octets | refreshes | late: packets | late: time |");
    println!("|---:|---|---|---:|---:|---:|---:|");
    for pace in PACES {
        for coap in [false, true] {
            for mode in [Mode::Unidirectional, Mode::Optimistic] {
                row(&format!("{pace} s"), pace, coap, mode, Refresh::default())?;
            }
        }
    }
    println!();
    println!("In U-mode with profile coap, by `--refresh`:");
    println!();
    println!("| refresh | exchange every | octets | refreshes | late: packets | late: time |");
    println!("|---|---:|---:|---:|---:|---:|");
    let named: Vec<_> = std::env::args().skip(1).collect();
    let policies = if named.is_empty() { POLICIES.map(str::to_owned).to_vec() } else { named };
    for policy in &policies {
        for pace in [1, 60] {
            row(&format!("`{policy}` | {pace} s"), pace, true, Mode::Unidirectional, policy.parse()?)?;
        }
    }
    Ok(())
}

/// One row: the traffic at one interval through one scheme.
fn row(head: &str, pace: u64, coap: bool, mode: Mode, refresh: Refresh) -> Result<(), Box<dyn Error>> {
    let profiles = if coap { ProfileSet::v1().with(ProfileId::Coap)? } else { ProfileSet::v1() };
    let channel = Channel::new(CidSpace::Small, 15, profiles)?;
    let scheme = SchemeSpec::Rohc { name: "rohc", channel, mode, learned: false };
    let mut settings = Settings::new(channel, &[scheme]);
    settings.compressor.refresh = refresh;
    let capture = retimed(pace);
    let mut survey = Survey::default();
    survey.read(&settings, capture.as_slice(), |_| ())?;
    let mut analysis = Analysis::new(settings, survey);
    analysis.read("sparse", capture.as_slice(), |_| ())?;
    let outcome = analysis.finish();
    assert_eq!(outcome.mismatches(), 0);
    let scheme = &outcome.totals.schemes[0];
    let share = 100.0 * scheme.refresh_bytes as f64 / scheme.sent_bytes() as f64;
    let wait = scheme
        .late_wait
        .map_or(("-".to_owned(), "-".to_owned()), |wait| (wait.packets.to_string(), hours(wait.seconds)));
    let kind = if head.starts_with('`') {
        String::new()
    } else {
        format!(" {} | {} |", if coap { "v1,coap" } else { "v1" }, mode.letter())
    };
    println!("| {head} |{kind} {} | {share:.1} % | {} | {} |", scheme.sent_bytes(), wait.0, wait.1);
    Ok(())
}

/// Formats a time in seconds, or in hours from two hours on.
fn hours(seconds: f64) -> String {
    if seconds < 7_200.0 { format!("{seconds:.0} s") } else { format!("{:.1} h", seconds / 3_600.0) }
}
