//! `thinair-lab lab run`.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use thinair_cli::progress;
use thinair_simulation::plan::{ExperimentJob, ExperimentPlan, Results, RunRecord};
use thinair_simulation::{WorkProgress, work};

use super::{file, show};

#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// The plan, in TOML; `thinair-lab lab plan` prints one to begin with
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Seed of everything random [default: that of the plan]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Runs of each cell [default: those of the plan]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: Option<u32>,
    /// Run in real time, one run after the other; needs root
    ///
    /// Packets go through the kernels of two network namespaces, with the link between them.
    #[arg(long)]
    real: bool,
    /// Do part I of N of the runs, as in 1/2
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<(usize, usize)>,
    /// Append a line to this file for each run (thinair.lab.run/1)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Do only the runs that are not in the file of --out
    #[arg(long, requires = "out", help_heading = "Output")]
    resume: bool,
    #[command(flatten)]
    output: show::ResultFormat,
}

pub(super) fn run(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let path = arguments.plan.display();
    let text = std::fs::read_to_string(&arguments.plan).with_context(|| format!("cannot read {path}"))?;
    let mut plan = match ExperimentPlan::read(&text) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("thinair-lab: {path}: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    for note in plan.notes() {
        eprintln!("note: {path}: {note}");
    }
    plan.count = arguments.runs.unwrap_or(plan.count);
    plan.seed = arguments.seed.unwrap_or(plan.seed);
    let mut results = Results::default();
    let mut out = match &arguments.out {
        Some(path) => Some(file::open(path, arguments.resume, &mut results)?),
        None => None,
    };
    if !results.are_of(&plan.cells) {
        anyhow::bail!("the file of --out has runs of another plan: use another file");
    }
    let (part, of) = arguments.shard.unwrap_or((1, 1));
    let jobs: Vec<ExperimentJob> = plan
        .jobs()
        .skip(part - 1)
        .step_by(of)
        .filter(|job| !results.has(&plan.cells[job.cell], plan.seed, job.run))
        .collect();

    if arguments.real {
        return in_real_time(arguments, &plan, &jobs, out, results);
    }
    #[cfg(target_os = "linux")]
    let signals = thinair_os::signals::Signals::take()?;
    let is_interrupted = || {
        #[cfg(target_os = "linux")]
        return matches!(signals.poll(), Some(thinair_os::signals::Signal::End { .. }));
        #[cfg(not(target_os = "linux"))]
        return false;
    };
    let bar = progress::bar(jobs.len() as u64, progress::COUNT);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut failed = None;
    work(
        &jobs,
        threads,
        |job| plan.run(job, plan.seed),
        |step| {
            if let WorkProgress::Done(record) = step {
                failed = keep(record, &mut out, &mut results).err();
                bar.inc(1);
            }
            if is_interrupted() {
                bar.finish_and_clear();
                interrupted(arguments, bar.position(), jobs.len());
            }
            failed.is_none()
        },
    );
    bar.finish_and_clear();
    if let Some(error) = failed {
        return Err(error);
    }
    show::show(&arguments.output, &plan.title, &results)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a result, and adds it to the others.
fn keep(record: RunRecord, out: &mut Option<File>, results: &mut Results) -> anyhow::Result<()> {
    let line = record.to_line() + "\n";
    out.as_mut().map_or(Ok(()), |out| out.write_all(line.as_bytes())).context("cannot store a result")?;
    results.add(record).context("cannot store a result")
}

#[cfg(not(target_os = "linux"))]
fn in_real_time(
    _: &RunArguments,
    _: &ExperimentPlan,
    _: &[ExperimentJob],
    _: Option<File>,
    _: Results,
) -> anyhow::Result<ExitCode> {
    anyhow::bail!("--real needs network namespaces of Linux, which this system does not have")
}

#[cfg(target_os = "linux")]
fn in_real_time(
    arguments: &RunArguments,
    plan: &ExperimentPlan,
    jobs: &[ExperimentJob],
    mut out: Option<File>,
    mut results: Results,
) -> anyhow::Result<ExitCode> {
    if let Err(error) = plan.check_real_time() {
        eprintln!("thinair-lab: {}: {error}", arguments.plan.display());
        return Ok(ExitCode::from(2));
    }
    let bar = progress::bar(jobs.len() as u64, progress::COUNT);
    let ended = super::real::run(plan, jobs, &bar, &mut |record| keep(record, &mut out, &mut results));
    bar.finish_and_clear();
    if !ended? {
        interrupted(arguments, bar.position(), jobs.len());
    }
    show::show(&arguments.output, &plan.title, &results)?;
    Ok(ExitCode::SUCCESS)
}

/// Exits at once: a run in progress may take long, and completed ones are already written.
fn interrupted(arguments: &RunArguments, done: u64, of: usize) -> ! {
    match &arguments.out {
        Some(path) => eprintln!(
            "thinair-lab: interrupted; {done} of {of} runs are in {}, --resume goes on with it",
            path.display()
        ),
        None => eprintln!("thinair-lab: interrupted; with --out FILE what is done is kept"),
    }
    std::process::exit(1)
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    parts
        .filter(|(part, of)| (1..=*of).contains(part))
        .ok_or_else(|| "expected I/N with I from 1 to N, as 1/2".to_owned())
}
