//! HTTP/3.

use std::process::ExitCode;

use anyhow::Context as _;
use thinair_http::HttpLimits;
use thinair_http_services::http::{self, Url, UrlError};
use thinair_http_services::http3::{self, FetchError, Http3Report, Http3Task, Trust};
use thinair_os::Signals;

use super::FetchArguments;
use super::http::show_response;
use super::output::{Facts, seconds};
use thinair_cli::usage::Usage;

pub(super) fn run(arguments: &FetchArguments) -> anyhow::Result<ExitCode> {
    let refused = |why: UrlError| Usage::error(format!("`{}`: {why}", arguments.url));
    let url = Url::secure(&arguments.url).map_err(refused)?;
    let trusted = arguments.trust_certificate.as_deref().ok_or_else(|| {
        Usage::error(
            "http3 needs --trust-certificate FILE: the server's certificate, or those of who vouches for it",
        )
    })?;
    let trust = Trust::read(trusted).context("--trust-certificate")?;
    let signals = Signals::take()?;
    let outcome = http3::fetch(&Http3Task {
        url: &url,
        trust: &trust,
        resumes: arguments.resume,
        limits: HttpLimits { body: arguments.max_body as usize, ..HttpLimits::default() },
        limit: arguments.timeout,
        signals: Some(&signals),
    });
    let facts = facts(&outcome.report);
    let result = outcome.result.map_err(|error| format!("{error}{}", advice(&error)));
    show_response(arguments, &result, facts)
}

fn facts(report: &Http3Report) -> Facts {
    Facts {
        address: report.address.map(|address| address.to_string()),
        seconds: seconds(report.total),
        connected_seconds: report.connected.map(seconds),
        first_seconds: report.first.map(seconds),
        sent_octets: report.sent,
        sent_with_syn_octets: 0,
        received_octets: report.received,
        retransmissions: report.lost,
    }
}

/// Advice on an error.
fn advice(error: &FetchError) -> &'static str {
    match error {
        FetchError::Connection(_) => {
            ". Is it the server's certificate that is trusted, is its address in it, and does the path carry datagrams of 1,200 octets?"
        }
        FetchError::BodyTooLarge(_) => ". Raise it with --max-body",
        FetchError::Common(http::FetchError::TimeLimit(_)) => {
            ". Give it more time with --timeout; does the path carry datagrams of 1,200 octets?"
        }
        _ => "",
    }
}
