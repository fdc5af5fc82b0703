//! `thinair tunnel check`: checks a configuration, and compares it with that of the other end.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use thinair_tunnel::config;
use thinair_tunnel::config::agreement::{Disagreement, disagreements};
use thinair_tunnel::mtu::{Budget, BudgetError};
use thinair_tunnel::seal::Keys;
use thinair_tunnel::site::Site;
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
    let (keys, mut wrong) = keys(&plan);
    let budget = Budget::of(&plan);
    wrong.extend(budget.as_ref().err().map(BudgetError::to_string));
    if let Ok(budget) = &budget {
        wrong.extend(Site::obstacles(&plan, budget, &Keys::read));
    }
    let mut notes = describe::notes(&plan);
    if let Some(other) = &arguments.against {
        let other = self::plan(other)?;
        wrong.extend(disagreements(&plan, &other).iter().map(Disagreement::to_string));
        match self::keys(&other) {
            (others, missing) if missing.is_empty() => wrong.extend(other_keys(&keys, &others)),
            _ => notes.push("the keys of the other end cannot be read here, and are not compared".to_owned()),
        }
    }
    if arguments.json {
        let json = json!({
            "schema": SCHEMA,
            "file": arguments.file,
            "ok": wrong.is_empty(),
            "wrong": wrong,
            "plan": describe::to_json(&plan),
            "keys": keys.iter().map(|keys| json!({ "file": keys.file, "ids": keys.ids })).collect::<Vec<_>>(),
            "budget": budget.as_ref().ok().map(describe::budget_to_json),
        });
        print(&(serde_json::to_string_pretty(&json)? + "\n"))?;
    } else {
        let mut rows = describe::rows(&plan);
        let shown = |keys: &KeyIds| format!("{} in {}", keys.ids.join(", then "), keys.file.display());
        rows.extend(keys.iter().map(|keys| ("keys", shown(keys))));
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, value) in rows {
            text += &format!("{name:width$}  {value}\n");
        }
        if let Ok(budget) = &budget {
            text += &format!("\n{budget}\n");
        }
        for note in notes {
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
    let settings = sources::read(file)?;
    let folders = Folders::of(&settings, sources::name_of(file))?;
    Ok(sources::plan(&settings, &folders, &config::system_resolver)?)
}

/// Ids of the keys of a file, by which ends can compare keys.
struct KeyIds {
    file: PathBuf,
    ids: Vec<String>,
}

/// Returns the ids of the keys of each file, and the errors in key files.
fn keys(plan: &SiteConfig) -> (Vec<KeyIds>, Vec<String>) {
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for file in plan.key_files() {
        match Keys::read(&file) {
            Ok(keys) => {
                found.push(KeyIds { ids: keys.iter().map(|key| key.id().to_string()).collect(), file })
            }
            Err(error) => wrong.push(error.to_string()),
        }
    }
    (found, wrong)
}

/// Returns what is wrong with two ends that have keys, but none in common. One with several peers may have more.
fn other_keys(here: &[KeyIds], there: &[KeyIds]) -> Option<String> {
    let ids = |keys: &[KeyIds]| keys.iter().flat_map(|keys| keys.ids.clone()).collect::<Vec<_>>();
    let (here, there) = (ids(here), ids(there));
    let differ = !here.is_empty() && !there.is_empty() && !here.iter().any(|id| there.contains(id));
    let [here, there] = [here.join(", "), there.join(", ")];
    differ.then(|| format!("the ends disagree on [security] key: {here} here, {there} there"))
}
