//! Errors in arguments that a command detects after clap has parsed them.

use std::process::ExitCode;

/// Wrong or contradicting options. Exit status 2, as for errors that clap detects.
#[derive(Debug)]
pub struct Usage(String);

impl Usage {
    /// Returns an error for which [`status`] returns 2.
    pub fn error(text: impl Into<String>) -> anyhow::Error {
        Self(text.into()).into()
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Returns the exit status of a command, and prints an error on standard error: 2 for wrong arguments, 1 for
/// other failures.
pub fn status(program: &str, result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("{program}: {error:#}");
        if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
    })
}
