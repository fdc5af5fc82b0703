//! Output of `fetch`: the object, and the costs of its transfer.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

use super::FetchArguments;
use thinair_cli::base64::base64;

/// Result of a transfer, for every protocol.
pub(super) struct Fetched<'o> {
    /// Status code, and its phrase.
    pub(super) status: Option<(u16, String)>,
    /// The response has the object.
    pub(super) is_success: bool,
    pub(super) body: &'o [u8],
    /// Reason that there is no response.
    pub(super) error: Option<String>,
    pub(super) facts: Facts,
}

/// Costs of a transfer: times in seconds, since the address was resolved.
#[derive(Default, Serialize)]
pub(super) struct Facts {
    pub(super) address: Option<String>,
    /// Time until the last octet of the object.
    pub(super) seconds: f64,
    /// Time until the end of the handshake; `None` without one.
    pub(super) connected_seconds: Option<f64>,
    /// Time until the first octet of the server.
    pub(super) first_seconds: Option<f64>,
    /// Octets passed to UDP or TCP.
    pub(super) sent_octets: u64,
    /// Octets sent in the SYN, which `sent_octets` includes.
    pub(super) sent_with_syn_octets: u64,
    /// Octets received from UDP or TCP.
    pub(super) received_octets: u64,
    /// Messages retransmitted by CoAP itself.
    pub(super) retransmissions: u64,
}

#[derive(Serialize)]
struct Json<'o> {
    schema: &'static str,
    service: &'static str,
    url: &'o str,
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'o str>,
    octets: usize,
    #[serde(flatten)]
    facts: &'o Facts,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_encoding: Option<&'static str>,
}

pub(super) fn seconds(time: Duration) -> f64 {
    // Rounded to microseconds.
    (time.as_secs_f64() * 1e6).round() / 1e6
}

/// Shows the result. Returns the exit code.
pub(super) fn show(arguments: &FetchArguments, fetched: &Fetched<'_>) -> anyhow::Result<ExitCode> {
    let body = fetched.body;
    if let (Some(path), true) = (&arguments.output, fetched.is_success) {
        thinair_cli::whole::write(path, body).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if arguments.json {
        let shown = arguments.output.is_none() && fetched.status.is_some();
        let (text, encoding) = match std::str::from_utf8(body) {
            Ok(text) => (text.to_owned(), "text"),
            Err(_) => (base64(body), "base64"),
        };
        let json = Json {
            schema: "thinair.fetch/1",
            service: arguments.service.name(),
            url: &arguments.url,
            status: fetched.status.as_ref().map(|(status, _)| *status),
            error: fetched.error.as_deref(),
            octets: body.len(),
            facts: &fetched.facts,
            body: shown.then_some(text),
            body_encoding: shown.then_some(encoding),
        };
        print(&[serde_json::to_string_pretty(&json)?.as_bytes(), b"\n"])?;
    } else if fetched.is_success && arguments.output.is_none() {
        print(&[body])?;
    }
    match (&fetched.error, &fetched.status) {
        (Some(error), _) => Err(anyhow::anyhow!("{}: {error}", arguments.url)),
        (None, Some((_, phrase))) if !fetched.is_success => {
            eprintln!("thinair-lab: {}: the server responded {phrase}", arguments.url);
            Ok(ExitCode::FAILURE)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// A reader that stops early is no error.
fn print(parts: &[&[u8]]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match parts.iter().try_for_each(|part| out.write_all(part)).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}
