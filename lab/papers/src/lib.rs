//! Published evaluations, repeated: a module each, in the form Claim, Method, Theirs, Ours, Why different.
//!
//! This crate has published claims, their measurement with this implementation, and the bars that our figures must
//! meet. It has no arguments, terminals or exit codes. Its figures depend only on the [`RunPlan`]: equal plans give equal
//! figures on any machine, with any number of threads. Times by the clock of the machine are the exception; bars on
//! them use only medians of measurements that ran side by side.
//!
//! A paper is a folder with its prose in `paper.md`, published figures in `published.csv`, cells, rows and tables in
//! `plan.toml`, the Rust that measures figures by their ids, and a line in [`PAPERS`]. One runner and one renderer read
//! them: `form.rs`.
//!
//! ```
//! use thinair_papers::{RunPlan, by_name, outcome};
//!
//! let paper = by_name("coap-sizes").ok_or("no such paper")?;
//! let plan = RunPlan { quick: true, ..RunPlan::default() };
//! let findings = paper.run(&plan, &|_done, _of| Ok(()))?;
//! let outcome = outcome(paper, &findings);
//! assert_eq!(outcome.schema, "thinair.paper/1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(target_os = "linux")]
mod children;
mod coap_delay;
mod coap_energy;
mod coap_latency;
mod coap_lossy;
mod coap_many;
mod coap_robustness;
mod coap_sizes;
mod coap_tunnel_rtt;
mod compressed;
mod form;
mod full_link;
mod ntn_voice;
mod page;
mod pair;
mod paper;
mod row;
mod sweep;
mod traffic;
mod transports;
mod tssa;
mod ule_throughput;

pub use page::document;
pub use paper::{About, Findings, Paper, PaperError, ProgressCallback, RunPlan, by_name};
pub use row::{Bar, FigureRow, PaperOutcome, SCHEMA, outcome};

/// Every paper, in the order of their names.
pub const PAPERS: &[Paper] = &[
    coap_delay::PAPER,
    coap_energy::PAPER,
    coap_latency::PAPER,
    coap_lossy::PAPER,
    coap_many::PAPER,
    coap_robustness::PAPER,
    coap_sizes::PAPER,
    coap_tunnel_rtt::PAPER,
    full_link::PAPER,
    ntn_voice::PAPER,
    transports::PAPER,
    tssa::PAPER,
    ule_throughput::PAPER,
];
