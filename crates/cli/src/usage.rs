//! Wrong arguments that only the command notices, not clap.

use std::process::ExitCode;

/// Options that contradict each other: exit status 2, as for those that clap refuses.
#[derive(Debug)]
pub struct Usage(String);

impl Usage {
    /// An error that [`status`] takes for wrong arguments.
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

/// The exit status of a command, with the reason of an error on standard error: 2 for wrong arguments, 1 for a failure.
pub fn status(program: &str, result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("{program}: {error:#}");
        if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
    })
}
