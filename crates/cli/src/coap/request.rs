//! `thinair coap get|put|post|delete|observe`.

use std::process::ExitCode;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
