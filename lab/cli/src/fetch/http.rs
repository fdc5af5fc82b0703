//! HTTP/1 and SPDY.

use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

use thinair_http::{HttpLimits, HttpResponse, status};
use thinair_http_services::http::{self, FetchError, FetchReport, FetchTask, HttpProtocol, Url, UrlError};
use thinair_os::Signals;

use super::output::{Facts, Fetched, seconds, show};
use super::{CloseArgument, FetchArguments};
use thinair_cli::usage::Usage;

/// Time limit of the handshake with one address: five SYNs, on most systems.
const CONNECT: Duration = Duration::from_secs(30);

pub(super) fn run(arguments: &FetchArguments, protocol: HttpProtocol) -> anyhow::Result<ExitCode> {
    let refused = |why: UrlError| Usage::error(format!("`{}`: {why}", arguments.url));
    let url: Url = arguments.url.parse().map_err(refused)?;
    let signals = Signals::take()?;
    let close = match arguments.close {
        CloseArgument::Response => http::Close::Response,
        CloseArgument::Request => http::Close::Request,
        CloseArgument::Reset => http::Close::Reset,
    };
    let acknowledgment =
        if arguments.quick_ack { http::Acknowledgment::AtOnce } else { http::Acknowledgment::Held };
    let task = FetchTask {
        url: &url,
        protocol,
        close,
        acknowledgment,
        limits: HttpLimits { body: arguments.max_body as usize, ..HttpLimits::default() },
        connect_timeout: CONNECT,
        limit: arguments.timeout,
        signals: Some(&signals),
    };
    let outcome = http::fetch(&task);
    let facts = facts(&outcome.report);
    let result = outcome.result.map_err(|error| format!("{error}{}", advice(&error)));
    show_response(arguments, &result, facts)
}

/// Shows a response of any HTTP version, or the reason that there is none.
pub(super) fn show_response(
    arguments: &FetchArguments,
    result: &Result<HttpResponse, String>,
    facts: Facts,
) -> anyhow::Result<ExitCode> {
    let fetched = match result {
        Ok(HttpResponse { status, body }) => Fetched {
            status: Some((*status, format!("{status} {}", status::phrase(*status)))),
            is_success: (200..300).contains(status),
            body,
            error: None,
            facts,
        },
        Err(error) => {
            Fetched { status: None, is_success: false, body: &[], error: Some(error.clone()), facts }
        }
    };
    show(arguments, &fetched)
}

fn facts(report: &FetchReport) -> Facts {
    Facts {
        address: report.address.map(|address| address.to_string()),
        seconds: seconds(report.total),
        connected_seconds: report.connected.map(seconds),
        first_seconds: report.first.map(seconds),
        sent_octets: report.sent,
        sent_with_syn_octets: report.sent_with_syn,
        received_octets: report.received,
        retransmissions: 0,
    }
}

/// Advice on an error.
fn advice(error: &FetchError) -> &'static str {
    match error {
        FetchError::Connect(_, why) if why.kind() == ErrorKind::ConnectionRefused => {
            ". Is the server up, and is this its port?"
        }
        FetchError::Connect(..) => ". Is there a route to it, and does the path let TCP through?",
        FetchError::Protocol(thinair_http::HttpError::Head) => ". Does the server speak this service?",
        FetchError::Protocol(thinair_http::HttpError::BodyTooLarge(_)) => ". Raise it with --max-body",
        FetchError::TimeLimit(_) => ". Give it more time with --timeout",
        _ => "",
    }
}
