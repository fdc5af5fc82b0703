//! Logs of commands that run until they are stopped.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Logs to standard error. RUST_LOG selects levels by module, as in `info,thinair_tunnel=trace`; `default` does without it.
///
/// # Panics
/// `default` is no such selection, or logs have a destination already.
#[expect(clippy::unwrap_used, reason = "the selection is a constant of the caller")]
pub(crate) fn to_stderr(default: &str) {
    let chosen = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let targets = chosen.as_deref().map(str::parse::<Targets>);
    let (targets, wrong) = match targets {
        Some(Ok(targets)) => (targets, None),
        Some(Err(error)) => (default.parse().unwrap(), Some(error)),
        None => (default.parse().unwrap(), None),
    };
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(targets);
    // A service's log has times already.
    if std::env::var_os("JOURNAL_STREAM").is_some() {
        registry.with(layer.without_time().with_ansi(false)).init();
    } else {
        registry.with(layer.with_ansi(std::io::stderr().is_terminal())).init();
    }
    if let Some(error) = wrong {
        tracing::warn!("RUST_LOG is ignored: {error}; write levels as in info,thinair_tunnel=trace");
    }
}
