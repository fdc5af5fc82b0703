//! `thinair tunnel check`: checks a configuration, and compares it with that of the other end.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use thinair_session::Key;
use thinair_tunnel::config;
use thinair_tunnel::config::agreement::{Disagreement, disagreements};
use thinair_tunnel::key_file;
use thinair_tunnel::mtu::{Budget, BudgetError};
use thinair_tunnel::site::Site;
use thinair_tunnel::site_config::{Others, SiteConfig};

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
        wrong.extend(Site::obstacles(&plan, budget, &key_file::read));
    }
    let mut notes = describe::notes(&plan);
    if let Some(other) = &arguments.against {
        let other = self::plan(other)?;
        wrong.extend(disagreements(&plan, &other).iter().map(Disagreement::to_string));
        wrong.extend(other_public_keys(&plan, &other));
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
    is_shared: bool,
}

/// Returns the ids of the keys of each file, and the errors in key files.
fn keys(plan: &SiteConfig) -> (Vec<KeyIds>, Vec<String>) {
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for file in plan.key_files() {
        match key_file::read(&file) {
            Ok(keys) => {
                let is_shared = plan.private_key_file() != Some(&file);
                // A private key is known by its public one.
                let id = |key: &Key| if is_shared { key.id().to_string() } else { key.public().to_string() };
                found.push(KeyIds { ids: keys.iter().map(id).collect(), file, is_shared });
            }
            Err(error) => wrong.push(error.to_string()),
        }
    }
    (found, wrong)
}

/// Returns what is wrong with two ends of which one has public keys, and none is that of the other's private key.
fn other_public_keys(here: &SiteConfig, there: &SiteConfig) -> Vec<String> {
    let unknown = |knows: &SiteConfig, of: &SiteConfig, [one, other]: [&str; 2]| {
        let Others::Peers(peers) = &knows.others else { return None };
        let known: Vec<_> = peers.iter().filter_map(|peer| Some(peer.public_key.as_ref()?.key)).collect();
        let public = key_file::read(of.private_key_file()?).ok()?.first().public();
        let is_unknown = !known.is_empty() && !known.contains(&public);
        is_unknown.then(|| format!("the public key {public} of the end {other} is in no [[peer]] {one}"))
    };
    let both = [unknown(here, there, ["here", "there"]), unknown(there, here, ["there", "here"])];
    both.into_iter().flatten().collect()
}

/// Returns what is wrong with two ends that have keys, but none in common. One with several peers may have more.
fn other_keys(here: &[KeyIds], there: &[KeyIds]) -> Option<String> {
    let shared = |keys: &KeyIds| if keys.is_shared { keys.ids.clone() } else { Vec::new() };
    let ids = |keys: &[KeyIds]| keys.iter().flat_map(shared).collect::<Vec<_>>();
    let (here, there) = (ids(here), ids(there));
    let differ = !here.is_empty() && !there.is_empty() && !here.iter().any(|id| there.contains(id));
    let [here, there] = [here.join(", "), there.join(", ")];
    differ.then(|| format!("the ends disagree on [security] key: {here} here, {there} there"))
}
