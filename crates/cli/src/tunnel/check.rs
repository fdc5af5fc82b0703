//! `thinair tunnel check`: checks a configuration, and compares it with that of the other end.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use thinair_tunnel::config;
use thinair_tunnel::config::agreement::{Disagreement, disagreements};
use thinair_tunnel::mtu::{Budget, BudgetError};
use thinair_tunnel::seal::Keys;
use thinair_tunnel::site_config::SiteConfig;

use super::sources::Folders;
use super::{describe, sources};
use crate::terminal::print;

pub(super) const EXIT_STATUS: &str = "\
Starts nothing. Reads key files, and prints only the ids of their keys. --against compares the settings that must be equal at both ends, not the \
addresses, which differ.\n\n\
Exit status: 0 if the configuration is valid; 2 if it is not, or if the ends disagree.";

const SCHEMA: &str = "thinair.tunnel.check/1";

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// Configuration file to check
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Configuration file of the other end, to compare with
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Print JSON (thinair.tunnel.check/1)
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let plan = plan(&arguments.file)?;
    let (keys, wrong_keys) = keys(&plan);
    let budget = Budget::of(&plan);
    let no_room = budget.as_ref().err().map(BudgetError::to_string);
    let mut wrong: Vec<String> = wrong_keys.into_iter().chain(no_room).collect();
    let differ = match &arguments.against {
        Some(other) => disagreements(&plan, &self::plan(other)?),
        None => Vec::new(),
    };
    wrong.extend(differ.iter().map(Disagreement::to_string));
    if arguments.json {
        let json = json!({
            "schema": SCHEMA,
            "file": arguments.file,
            "ok": wrong.is_empty(),
            "wrong": wrong,
            "plan": describe::to_json(&plan),
            "budget": budget.as_ref().ok().map(describe::budget_to_json),
        });
        print(&(serde_json::to_string_pretty(&json)? + "\n"))?;
    } else {
        let mut rows = describe::rows(&plan);
        rows.extend(keys.into_iter().map(|keys| ("keys", keys)));
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, value) in rows {
            text += &format!("{name:width$}  {value}\n");
        }
        if let Ok(budget) = &budget {
            text += &format!("\n{budget}\n");
        }
        for note in describe::notes(&plan) {
            text += &format!("{:width$}  {note}\n", "note");
        }
        print(&text)?;
        for wrong in &wrong {
            eprintln!("thinair: {wrong}");
        }
    }
    Ok(ExitCode::from(if wrong.is_empty() { 0 } else { 2 }))
}

fn plan(file: &std::path::Path) -> anyhow::Result<SiteConfig> {
    let name = file.file_stem().and_then(|name| name.to_str());
    let settings = sources::read(file)?;
    Ok(sources::plan(&settings, &Folders::of(&settings, name)?, &config::system_resolver)?)
}

/// Returns the key ids of each file, by which ends can compare keys, and the errors in key files.
fn keys(plan: &SiteConfig) -> (Vec<String>, Vec<String>) {
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for file in plan.key_files() {
        match Keys::read(&file) {
            Ok(keys) => {
                let ids: Vec<_> = keys.iter().map(|key| key.id().to_string()).collect();
                found.push(format!("{} in {}", ids.join(", then "), file.display()));
            }
            Err(error) => wrong.push(error.to_string()),
        }
    }
    (found, wrong)
}
