//! CoAP, with Tokens of one octet.

use std::process::ExitCode;

use thinair_coap::uri::Scheme;
use thinair_coap::{Config, Limits, Policy, Request, Tokens, Uri};
use thinair_os::Signals;
use thinair_services::coap::client::{Client, ClientTask, Continuation, Ending, TaskReport};

use super::FetchArguments;
use super::output::{Facts, Fetched, seconds, show};
use crate::service::ServiceName;
use thinair_cli::usage::Usage;

pub(super) fn run(arguments: &FetchArguments) -> anyhow::Result<ExitCode> {
    let text = &arguments.url;
    let mut uri: Uri = text.parse().map_err(|why| Usage::error(format!("`{text}`: {why}")))?;
    match (arguments.service, uri.scheme) {
        // The service determines the transport.
        (ServiceName::CoapTcp, _) => uri.scheme = Scheme::CoapTcp,
        (_, Scheme::Coap) => {}
        (_, Scheme::CoapTcp | Scheme::Coaps) => {
            return Err(Usage::error(format!("`{text}` is for --service coap-tcp; coap fetches coap://")));
        }
    }
    let signals = Signals::take()?;
    let mut request = Request::get("");
    request.options = uri.options();
    let task = ClientTask {
        limit: Some(arguments.timeout),
        signals: Some(&signals),
        ..ClientTask::new(&uri, &request)
    };
    let mut client = Client::new(Config {
        limits: Limits { max_body: arguments.max_body as usize, ..Limits::default() },
        policy: Policy { tokens: Tokens::Counting, ..Policy::default() },
        ..Config::default()
    })?;
    let outcome = client.ask(&task, &mut |_| Continuation::Go);
    let facts = facts(&outcome.report, uri.scheme);
    let without = |error: String| Fetched {
        status: None,
        is_success: false,
        body: &[],
        error: Some(error),
        facts: Facts::default(),
    };
    let fetched = match &outcome.result {
        Ok(Ending::Response(response)) => {
            let code = response.code;
            let status = u16::from(code.class()) * 100 + u16::from(code.detail());
            Fetched {
                status: Some((status, thinair_cli::coap_code(code))),
                is_success: response.is_success(),
                body: &response.payload,
                error: None,
                facts,
            }
        }
        Ok(Ending::Stopped | Ending::Interrupted) => Fetched { facts, ..without("interrupted".to_owned()) },
        Err(error) => Fetched { facts, ..without(error.to_string()) },
    };
    show(arguments, &fetched)
}

fn facts(report: &TaskReport, scheme: Scheme) -> Facts {
    let since = |time| seconds(std::time::Duration::saturating_sub(time, report.resolved));
    Facts {
        address: report.address.map(|address| address.to_string()),
        seconds: since(report.total),
        connected_seconds: (scheme == Scheme::CoapTcp).then(|| since(report.connected)),
        first_seconds: report.first.map(since),
        sent_octets: report.sent_octets,
        sent_with_syn_octets: 0,
        received_octets: report.received_octets,
        retransmissions: report.retransmissions,
    }
}
