//! `thinair-lab paper`: published evaluations, repeated with this implementation.
//!
//! Arguments, progress and exit codes. Measurements and their presentation are in `thinair-papers`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use thinair_papers::{Findings, PAPERS, Paper, RunPlan, by_name, document, outcome};
use thinair_report::{Cell, Column, Table};

use thinair_cli::progress;
use thinair_cli::terminal::{print, style};

const EXIT_STATUS: &str = "\
Exit status: 0 if every bar is met; 1 for a failure; 2 for wrong arguments; 3 if a bar is not met.\n\
Rows that need the captures of THINAIR_VECTORS (a folder) are left out without it.";

/// Columns of the output when it does not go to a terminal.
const PLAIN_WIDTH: usize = 100;

/// Columns of the list, for its titles.
const LIST_WIDTH: usize = 120;

/// Maximum number of missed bars that are listed.
const MOST_MISSED: usize = 20;

#[derive(Debug, Subcommand)]
pub(crate) enum PaperCommand {
    /// List the evaluations
    #[command(after_long_help = thinair_cli::help::PLAIN_EXIT_STATUS)]
    List,
    /// Run an evaluation: published figures, ours, and the bars that ours must meet
    #[command(after_long_help = EXIT_STATUS)]
    Run(PaperArguments),
}

#[derive(Args, Debug)]
pub(crate) struct PaperArguments {
    /// Name of the evaluation
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    name: String,
    /// Fewer packets and seeds: seconds instead of minutes
    #[arg(long)]
    quick: bool,
    /// Run every cell, including those that the default run of `transports` skips
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Measure in real time, too, where that is possible; needs root
    ///
    /// Packets go between network namespaces. Such figures depend on the machine.
    #[arg(long)]
    real_time: bool,
    /// Measure nothing in real time
    #[arg(long, conflicts_with = "real_time")]
    no_real_time: bool,
    /// Print every figure as JSON (thinair.paper/1)
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Also write a page with plots, one file that needs no network
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
}

pub(crate) fn run(task: &PaperCommand) -> anyhow::Result<ExitCode> {
    match task {
        PaperCommand::List => list(),
        PaperCommand::Run(arguments) => run_one(arguments),
    }
}

fn list() -> anyhow::Result<ExitCode> {
    let mut table = Table::new("", [Column::text("name"), Column::text("year"), Column::text("title")]);
    for about in PAPERS.iter().map(|paper| paper.about()) {
        table.row([about.name, about.year().unwrap_or("ours"), about.title].map(Cell::text));
    }
    print(&table.to_text(&style(LIST_WIDTH)))?;
    Ok(ExitCode::SUCCESS)
}

fn run_one(arguments: &PaperArguments) -> anyhow::Result<ExitCode> {
    let paper =
        by_name(&arguments.name).context("unknown evaluation: `thinair-lab paper list` lists them")?;
    // Measurements in real time are slow, but `--quick` keeps them if there are no others.
    let is_quick = arguments.quick && !paper.is_real_time();
    let plan = RunPlan {
        quick: arguments.quick,
        full: arguments.full,
        seed: arguments.seed,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        shared: std::env::var_os("THINAIR_VECTORS").filter(|shared| !shared.is_empty()).map(PathBuf::from),
        real_time: arguments.real_time || !(is_quick || arguments.no_real_time),
        program: std::env::current_exe().ok(),
    };
    let bar = progress::bar(0, progress::COUNT);
    let progress = |done, of| {
        bar.set_length(of);
        bar.set_position(done);
        Ok(())
    };
    let findings = paper.run(&plan, &progress);
    bar.finish_and_clear();
    let findings = findings?;
    show(arguments, paper, &plan, &findings)?;
    Ok(verdict(&findings))
}

fn show(
    arguments: &PaperArguments,
    paper: &Paper,
    plan: &RunPlan,
    findings: &Findings,
) -> anyhow::Result<()> {
    let document = document(paper, plan, findings);
    if arguments.json {
        print(&(serde_json::to_string_pretty(&outcome(paper, findings))? + "\n"))?;
    } else {
        print(&document.to_text(&style(PLAIN_WIDTH)))?;
    }
    if let Some(path) = &arguments.html {
        thinair_cli::whole::write(path, document.to_html())
            .with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("thinair-lab: wrote {}", path.display());
    }
    Ok(())
}

fn verdict(findings: &Findings) -> ExitCode {
    for left_out in &findings.left_out {
        eprintln!("thinair-lab: {left_out}");
    }
    let missed: Vec<_> = findings.missed().collect();
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    for row in missed.iter().take(MOST_MISSED) {
        let ours = row.ours().map_or("not measured".to_owned(), |ours| ours.to_string());
        let bar = row.bar().map(|bar| bar.to_string()).unwrap_or_default();
        eprintln!("thinair-lab: {}: {ours}, the bar is {bar} {}", row.id(), row.unit());
    }
    if missed.len() > MOST_MISSED {
        eprintln!("thinair-lab: and {} more", missed.len() - MOST_MISSED);
    }
    eprintln!("thinair-lab: {} of {} figures do not meet their bar", missed.len(), findings.rows.len());
    ExitCode::from(3)
}

fn names() -> Vec<&'static str> {
    PAPERS.iter().map(|paper| paper.about().name).collect()
}
