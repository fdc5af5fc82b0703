//! `thinair analyze`.

use std::process::ExitCode;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
